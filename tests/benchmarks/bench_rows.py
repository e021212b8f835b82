"""Rows per second, and the memory that a run needs, through metrics without a judge and through the offline judge.

Run `python -m tests.benchmarks rows` in the project folder. Each run is the command in a process of its own, with
all its files written; seconds are CPU time, so that other work on the machine does not count. Memory must not grow with the number of rows but for 8 bytes a score, ids and places:
the ratio of the peaks of a run of ten times the rows says whether it does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SMALL, LARGE = 10_000, 100_000
JUDGED = 2_000
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


def measured(folder: Path, evaluators: dict[str, Any], rows: int) -> tuple[float, float]:
    """CPU seconds and peak megabytes of one run."""
    data, file = folder / f"{rows}.jsonl", folder / f"{rows}.json"
    with data.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row(number)) + "\n" for number in range(rows))
    general = {"output_dir": str(folder / f"out-{rows}"), "dataset": {"_type": "jsonl", "file_path": str(data)}}
    file.write_text(json.dumps({"eval": {"general": general, "evaluators": evaluators}}), encoding="utf-8")
    command = [sys.executable, "-m", "ragparity", "eval", str(file), "--quiet", "--overwrite"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # the project's own command
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peaks = {}
        for rows in (SMALL, LARGE):
            seconds, peaks[rows] = measured(folder, WITHOUT_JUDGE, rows)
            scores = rows * len(WITHOUT_JUDGE)
            print(  # its result
                f"{rows:,} rows, {len(WITHOUT_JUDGE)} metrics without a judge: {seconds:.1f} s CPU, "
                f"{rows / seconds:,.0f} rows/s, {scores / seconds:,.0f} scores/s, peak {peaks[rows]:.0f} MB"
            )
        ratio = peaks[LARGE] / peaks[SMALL]
        print(f"peak memory at {LARGE // SMALL} times the rows: {ratio:.2f} times")  # its result
        seconds, peak = measured(folder, WITH_JUDGE, JUDGED)
        print(f"{JUDGED:,} rows, Faithfulness, offline judge: {JUDGED / seconds:,.0f} rows/s, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
