"""Without an extra: the commands of a first run, and nothing there that only an extra asks for."""

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tests.matrix.commands import command
from tests.matrix.distributions import asked_for_by_extras, needed

FILE = "configs/quickstart.yml"


def main() -> None:
    assert "crossvalidate" in command("ragparity", "--help")
    assert "25 rows" in command("ragparity", "check", FILE)
    command("ragparity", "eval", FILE)
    summary = json.loads(Path("out/quickstart/summary.json").read_text(encoding="utf-8"))
    assert {one["n_total"] for one in summary["evaluators"].values()} == {25}
    there = [name for name in asked_for_by_extras() - needed() if is_there(name)]
    assert not there, f"installed without an extra: {there}"


def is_there(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
