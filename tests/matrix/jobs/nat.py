"""The extra `nat`: `nat eval` scores an example file with our evaluators."""

import json
from pathlib import Path

from tests.matrix.commands import command


def main() -> None:
    command("nat", "eval", "--config_file", "configs/nat/context_column.yml", "--skip_workflow")
    output = json.loads(Path("out/nat_context_column/faithfulness_output.json").read_text(encoding="utf-8"))
    # The answer of the second row is made up.
    found = {item["id"]: item["score"] for item in output["eval_output_items"]}
    assert found == {"port": 1.0, "restart": 0.0, "logs": 1.0}


if __name__ == "__main__":
    main()
