"""The extra `stats`: a comparison of two backends, its correlation computed again with scipy, and one with labels."""

import json
from pathlib import Path

from scipy.stats import spearmanr
from tests.matrix.commands import DEMO, command, eval_file


def main() -> None:
    entry = {"_type": "ragparity_crossvalidate", "metric": "AnswerAccuracy", "backends": ["native", "openevals"]}
    eval_file({"accuracy": {**entry, "llm_name": "offline"}}, dataset=DEMO)
    command("ragparity", "crossvalidate", "eval.yml", "--overwrite")
    agreement = json.loads(Path("out/agreement.json").read_text(encoding="utf-8"))["metrics"]["accuracy"]
    (pair,) = agreement["pairs"]
    sides = [read("native"), read("openevals")]
    both = [row for row in sides[0] if sides[0][row] is not None and sides[1][row] is not None]
    assert pair["n"] == len(both) == 21
    expected = spearmanr(*([side[row] for row in both] for side in sides)).statistic
    assert abs(pair["spearman"] - expected) < 1e-9


def read(backend: str) -> dict[str, float | None]:
    """The scores of a backend, from the toolkit's file."""
    content = json.loads(Path(f"out/accuracy@{backend}_output.json").read_text(encoding="utf-8"))
    return {item["id"]: item["score"] for item in content["eval_output_items"]}


if __name__ == "__main__":
    main()
