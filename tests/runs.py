"""An eval file over HTTP, in this process or in one of its own, and what it leaves."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from click.testing import CliRunner

from ragparity.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence

PRELOADED = (
    "ragparity.cli",
    "ragparity.evaluation",
    "ragparity.report.progress",
    "ragparity.report.terminal",
    "ragparity_adapters.langchain",
    "langchain_openai",
    "openai.resources.chat.completions",
)
ACCURACY = {"accuracy": {"metric": "AnswerAccuracy", "llm_name": "judge"}}
TIMES = ("seconds",)
COSTS = (
    "calls",
    "cached_calls",
    "shared_calls",
    "embedding_calls",
    "input_tokens",
    "output_tokens",
    "embedding_tokens",
    "reasoning_tokens",
    "cached_tokens",
    "cost",
)


def rows(count: int) -> list[dict[str, Any]]:
    """Rows that differ in every field."""
    return [
        {
            "id": f"r{number}",
            "question": f"Which port does gateway {number} use?",
            "generated_answer": f"Gateway {number} listens on port {7000 + number}.",
            "answer": f"Port {7000 + number}.",
            "contexts": [f"The gateway {number} listens on TCP port {7000 + number}.", f"Gateway {number} is grey."],
        }
        for number in range(count)
    ]


def write(
    evaluators: dict[str, Any], data: Sequence[dict[str, Any]], server: Any, *, run: dict[str, Any] | None = None,
    llm: dict[str, Any] | None = None, name: str = "eval.yml", output: str = "out", **general: Any,
) -> None:  # fmt: skip
    """Rows and an eval file in the current folder."""
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")
    url = server if isinstance(server, str) else server.base_url
    judge = {"_type": "openai", "model_name": "m", "base_url": url, "api_key": "sk-very-secret-1", **(llm or {})}
    emb = {"_type": "openai", "model_name": "e", "base_url": url, "api_key": "sk-very-secret-1"}
    dataset = {"_type": "jsonl", "file_path": "rows.jsonl"}
    content = {
        "llms": {"judge": judge},
        "embedders": {"emb": emb},
        "eval": {
            "general": {"output_dir": output, "dataset": dataset, "ragparity": run or {}, **general},
            "evaluators": {key: {"_type": "ragparity", **entry} for key, entry in evaluators.items()},
        },
    }
    Path(name).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def command(*arguments: str) -> Any:
    """The result of a command in this process."""
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def start(*arguments: str, output: str | None = None, largest_file: int | None = None) -> Any:
    """The command in a process of its own; what it prints goes to a file, if it is wanted.

    Forked from a process that has imported everything, so that it starts at once. `largest_file` is in bytes.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    child = context.Process(target=_in_child, args=(arguments, output, largest_file))
    child.start()
    return child


def _in_child(arguments: tuple[str, ...], output: str | None, largest_file: int | None) -> None:
    said = os.open(output or os.devnull, os.O_RDWR | os.O_CREAT)
    for stream in range(3):
        os.dup2(said, stream)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    main(list(arguments))


def ended(child: Any, seconds: float = 90.0) -> int:
    """The exit code of a process, which must end in time."""
    child.join(seconds)
    code = child.exitcode
    child.kill()
    child.join()
    assert code is not None, "it hangs"
    return int(code)


def lines(folder: str = "out") -> list[dict[str, Any]]:
    """The lines of the log, in order of completion."""
    text = Path(folder, "results.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def record(folder: str, evaluator: str, row: str) -> dict[str, Any]:
    """One line of the log."""
    (found,) = [line for line in lines(folder) if (line["evaluator"], line["id"]) == (evaluator, row)]
    return found


def summary(folder: str = "out") -> dict[str, Any]:
    """The summary by evaluator."""
    found: dict[str, Any] = read(folder, "summary.json")["evaluators"]
    return found


def read(folder: str, name: str) -> dict[str, Any]:
    """A JSON file of a run."""
    found: dict[str, Any] = json.loads(Path(folder, name).read_text(encoding="utf-8"))
    return found


def files(folder: str = "out", *, without: Sequence[str] = TIMES) -> dict[str, Any]:
    """Every file of a run but the manifest, the log by evaluator and row, without some of its columns."""
    found: dict[str, Any] = {}
    for path in sorted(Path(folder).iterdir()):
        if path.name == "manifest.json":
            continue
        if path.name == "results.jsonl":
            kept = [{key: value for key, value in line.items() if key not in without} for line in lines(folder)]
            found[path.name] = sorted(kept, key=lambda line: (line["evaluator"], line["row"]))
        elif path.name == "summary.json":
            content = read(folder, path.name)
            for one in content["evaluators"].values():
                for key in without:
                    one.pop(key, None)
            found[path.name] = content
        else:
            found[path.name] = path.read_text(encoding="utf-8")
    return found
