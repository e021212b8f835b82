"""The extra `stats`: a comparison of two backends with its plots, and its correlation computed once more."""

import json
from pathlib import Path

import numpy as np
from tests.matrix.commands import DEMO, command, eval_file

BACKENDS = ("native", "openevals")


def main() -> None:
    entry = {"_type": "ragparity_crossvalidate", "metric": "AnswerAccuracy", "backends": list(BACKENDS)}
    eval_file({"accuracy": {**entry, "llm_name": "offline"}}, dataset=DEMO)
    command("ragparity", "crossvalidate", "eval.yml", "--overwrite", "--plots")
    assert {path.suffix for path in Path("out/plots").iterdir() if path.stat().st_size > 1000} == {".png", ".svg"}
    agreement = json.loads(Path("out/agreement.json").read_text(encoding="utf-8"))["metrics"]["accuracy"]
    (pair,) = agreement["pairs"]
    one, other = (scores(name) for name in BACKENDS)
    both = [row for row in one if one[row] is not None and other[row] is not None]
    assert pair["n"] == len(both) == 21
    rho = np.corrcoef(*(ranks([side[row] for row in both]) for side in (one, other)))[0, 1]
    assert abs(pair["spearman"] - rho) < 1e-9


def scores(backend: str) -> dict[str, float | None]:
    """The scores of a backend by row, from the toolkit's file."""
    content = json.loads(Path(f"out/accuracy@{backend}_output.json").read_text(encoding="utf-8"))
    return {item["id"]: item["score"] for item in content["eval_output_items"]}


def ranks(values: list[float]) -> np.ndarray:
    """From 1 on, ties by their mean."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[at]


if __name__ == "__main__":
    main()
