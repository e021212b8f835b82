"""Rows per second, and the memory that a run needs, through metrics without a judge and through the offline judge.

Run `python -m tests.benchmarks rows` in the project folder. Each run is the command in a process of its own, with
all its files written; seconds are CPU time, so that other work on the machine does not count. Memory must not grow
with the rows but for what is kept of each: 8 bytes for a hash of its id, and for every score 8 and for its place in
an output file 8. The last step is a million rows (1 GB, and 4 GB of files that the run makes of them), and the same
run resumed when nothing is missing: every row is read and compared with its records again.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.processes import Used, run

SMALL, MEDIUM, LARGE = 10_000, 100_000, 1_000_000
JUDGED = 2_000
NEEDED = 12 * 10**9
"""Bytes on the disk for the largest run and its resumption."""
SENTENCES = (
    "The tower was finished in 1889.", "It is 330 metres tall.", "Sealed products can be sent back for 30 days.",
    "Grease the bearings every 500 hours.", "The ferry leaves every two hours.",
)  # fmt: skip
WITHOUT_JUDGE = {
    "exact": {"_type": "ragparity", "metric": "ExactMatch"},
    "recall": {"_type": "ragparity", "metric": "IDBasedContextRecall"},
    "f1": {"_type": "ragparity", "metric": "TokenF1"},
}
WITH_JUDGE = {"faithfulness": {"_type": "ragparity", "metric": "Faithfulness", "llm_name": "offline"}}


def row(number: int) -> dict[str, Any]:
    """A row of about a kilobyte."""
    sentence = SENTENCES[number % len(SENTENCES)]
    return {
        "id": f"row-{number}",
        "question": f"Question {number}: {sentence}",
        "generated_answer": f"{sentence} And {number}.",
        "answer": sentence,
        "contexts": [f"{one} {number}" for one in SENTENCES] * 3,
        "retrieved_context_ids": [f"d{number + k}" for k in range(5)],
        "reference_context_ids": [f"d{number}", f"d{number + 9}"],
    }


def prepare(folder: Path, evaluators: dict[str, Any], rows: int) -> None:
    """The rows and the eval file."""
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row(number)) + "\n" for number in range(rows))
    general = {"output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}}
    content = {"eval": {"general": general, "evaluators": evaluators}}
    (folder / "eval.json").write_text(json.dumps(content), encoding="utf-8")


def evaluated(folder: Path, *options: str) -> Used:
    """What the command used."""
    return run([sys.executable, "-m", "ragparity", "eval", "eval.json", "--quiet", *options], folder)


def told(rows: int, what: str, used: Used) -> None:
    """A line with the figures of a run."""
    scores = rows * len(WITHOUT_JUDGE)
    print(
        f"{rows:,} rows, {what}: {used.cpu:.1f} s CPU, {rows / used.cpu:,.0f} rows/s, "
        f"{scores / used.cpu:,.0f} scores/s, peak {used.megabytes:.0f} MB"
    )


def without_judge(rows: int) -> Used:
    """Metrics without a judge on so many rows, and the largest run once more."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, WITHOUT_JUDGE, rows)
        used = evaluated(folder)
        told(rows, f"{len(WITHOUT_JUDGE)} metrics without a judge", used)
        if rows == LARGE:
            told(rows, "resumed with nothing missing", evaluated(folder, "--resume"))
    return used


def main() -> None:
    """Print the figures."""
    used = {rows: without_judge(rows) for rows in (SMALL, MEDIUM)}
    if (free := shutil.disk_usage(tempfile.gettempdir()).free) < NEEDED:
        print(f"{LARGE:,} rows: left out, {free / 1e9:.1f} GB are free and {NEEDED / 1e9:.0f} GB are needed")
    else:
        used[LARGE] = without_judge(LARGE)
    for rows in (MEDIUM, LARGE):
        if rows in used:
            grown = used[rows].megabytes - used[SMALL].megabytes
            bytes_a_row = grown * 2**20 / (rows - SMALL)
            print(f"memory from {SMALL:,} to {rows:,} rows: {grown:.0f} MB more, {bytes_a_row:.0f} bytes a row")
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), WITH_JUDGE, JUDGED)
        judged = evaluated(Path(name))
    print(
        f"{JUDGED:,} rows, Faithfulness, offline judge: {JUDGED / judged.cpu:,.0f} rows/s, "
        f"peak {judged.megabytes:.0f} MB"
    )


if __name__ == "__main__":
    main()
