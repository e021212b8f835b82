"""The backends named as arguments: each scores three rows with the offline judge, the wrong answer below the right ones."""

import sys

from tests.matrix.commands import command, eval_file, evaluated, scores


def main(names: list[str]) -> None:
    eval_file({"faithfulness": {"_type": "ragparity", "metric": "Faithfulness", "llm_name": "offline"}})
    for name in names:
        command("ragparity", "check", "eval.yml", "--backend", name)
        records = evaluated("--backend", name)["faithfulness"]
        assert {record["backend"] for record in records.values()} == {name}
        found = scores(records)
        assert None not in found.values(), records
        assert found["right"] == found["also-right"] == 1.0 > found["wrong"], found


if __name__ == "__main__":
    main(sys.argv[1:])
