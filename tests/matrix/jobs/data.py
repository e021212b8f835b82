"""The extra `data`: rows from Parquet and from Excel score as those of JSONL, and results become a frame."""

import json

import pandas as pd
from tests.matrix.commands import ROWS, eval_file, evaluated, scores

from ragparity import evaluate


def main() -> None:
    entry = {"exact": {"_type": "ragparity", "metric": "ExactMatch"}}
    # Two of the three answers are the reference, word for word.
    expected = {"right": 1.0, "also-right": 1.0, "wrong": 0.0}
    pd.DataFrame(ROWS).to_parquet("rows.parquet")
    frame = pd.DataFrame([{**row, "contexts": json.dumps(row["contexts"])} for row in ROWS])
    frame.to_excel("rows.xlsx", index=False)
    for name in ("rows.jsonl", "rows.parquet", "rows.xlsx"):
        eval_file(entry, dataset=name)
        assert scores(evaluated()["exact"]) == expected, name
    scored = evaluate(frame, metrics=["ExactMatch"]).to_pandas()
    assert list(scored["score"]) == list(expected.values())


if __name__ == "__main__":
    main()
