"""Commands as a user types them, in the environment that runs this, and the eval files for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(sys.executable).parent
DEMO = "configs/data/demo.jsonl"
KINDS = {".jsonl": "jsonl", ".parquet": "parquet", ".xlsx": "xls"}
ROWS = [
    {
        "id": "right",
        "question": "Which port does the Heron gateway listen on?",
        "answer": "The Heron gateway listens on port 7443.",
        "generated_answer": "The Heron gateway listens on port 7443.",
        "contexts": ["The Heron gateway listens on port 7443.", "Heron ships with a dark theme."],
    },
    {
        "id": "also-right",
        "question": "How long is the bridge?",
        "answer": "The bridge is two metres long.",
        "generated_answer": "The bridge is two metres long.",
        "contexts": ["The bridge is two metres long."],
    },
    {
        "id": "wrong",
        "question": "How is the gateway restarted?",
        "answer": "With the command heronctl restart.",
        "generated_answer": "Every night it restarts by itself.",
        "contexts": ["The command heronctl restart does so.", "Logs are kept for thirty days."],
    },
]
"""Two rows that a metric of the response must score above the third."""


def command(name: str, *arguments: str, **variables: str) -> str:
    """What a command of this environment prints; it must end with 0."""
    line = [str(HERE / name), *arguments]
    print("$", *line, flush=True)
    done = subprocess.run(line, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    print(done.stdout, done.stderr, sep="\n", flush=True)
    if done.returncode:
        raise SystemExit(f"{name} {' '.join(arguments)}: exit code {done.returncode}")
    return done.stdout


def eval_file(evaluators: dict[str, Any], dataset: str = "rows.jsonl", **sections: Any) -> str:
    """Write `eval.yml` (JSON is YAML) over the data set, and `rows.jsonl`; its path."""
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    general = {"output_dir": "out", "dataset": {"_type": KINDS[Path(dataset).suffix], "file_path": dataset}}
    content = {**sections, "eval": {"general": general, "evaluators": evaluators}}
    Path("eval.yml").write_text(json.dumps(content), encoding="utf-8")
    return "eval.yml"


def evaluated(*arguments: str) -> dict[str, dict[str, Any]]:
    """The records of `ragparity eval eval.yml` by evaluator and row."""
    command("ragparity", "eval", "eval.yml", "--overwrite", *arguments)
    found: dict[str, dict[str, Any]] = {}
    for line in map(json.loads, Path("out/results.jsonl").read_text(encoding="utf-8").splitlines()):
        found.setdefault(line["evaluator"], {})[line["id"]] = line
    return found


def scores(records: dict[str, Any]) -> dict[str, float | None]:
    """The scores of an evaluator by row."""
    return {row: record["score"] for row, record in records.items()}
