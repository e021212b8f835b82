"""Eval files for the toolkit, its evaluation run in this process, and its command in another one."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import yaml
from click.testing import CliRunner
from nat.data_models.evaluate_runtime import EvaluationRunConfig
from nat.plugins.eval.runtime.evaluate import EvaluationRun
from nat.runtime.loader import PluginTypes, discover_and_register_plugins

from ragparity.cli import main

discover_and_register_plugins(PluginTypes.CONFIG_OBJECT)

PORT = {
    "id": "port",
    "question": "Which port does the Heron gateway use?",
    "answer": "Port 7443.",
    "generated_answer": "Heron listens on port 7443.",
    "contexts": ["The Heron gateway listens on TCP port 7443.", "Heron ships with a dark theme."],
}
SIZE = {
    "id": "size",
    "question": "How big is it?",
    "answer": "2 m",
    "generated_answer": "Two metres.",
    "contexts": ["It is two metres long."],
}
ACCURACY = {"metric": "AnswerAccuracy", "llm_name": "judge"}


def judge_at(server, **more):
    return {
        "judge": {"_type": "openai", "model_name": "m", "base_url": server.base_url, "api_key": "sk-invented-1", **more}
    }


def eval_file(evaluators, *, rows=(PORT, SIZE), dataset=None, llms=None, embedders=None, general=None, **sections):
    """Write `eval.yml`, and `rows.json` where no other data set is named; an entry without `_type` is ours."""
    if dataset is None:
        Path("rows.json").write_text(json.dumps(list(rows)), encoding="utf-8")
        dataset = {"_type": "json", "file_path": "rows.json"}
    content = {
        **sections,
        "llms": llms or {},
        "embedders": embedders or {},
        "eval": {
            "general": {"output_dir": "out", "max_concurrency": 4, "dataset": dataset, **(general or {})},
            "evaluators": {name: {"_type": "ragparity", **entry} for name, entry in evaluators.items()},
        },
    }
    Path("eval.yml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def evaluate(*, skip_workflow=True, **more):
    """Run the evaluation of `eval.yml` in this process; the outputs as their files have them, by evaluator."""
    return evaluate_file("eval.yml", "out", skip_workflow=skip_workflow, **more)


def evaluate_file(path, folder, *, skip_workflow=True, **more):
    """The same for any file and the folder that it names."""
    run = EvaluationRun(EvaluationRunConfig(config_file=Path(path), skip_workflow=skip_workflow, **more))
    asyncio.run(run.run_and_evaluate())
    return outputs(folder)


def outputs(folder="out"):
    """What the toolkit wrote for each evaluator."""
    found = {}
    for path in sorted(Path(folder).glob("*_output.json")):
        if path.name != "workflow_output.json":
            found[path.name.removesuffix("_output.json")] = json.loads(path.read_text(encoding="utf-8"))
    return found


def items(output):
    """The items of an output by id."""
    return {item["id"]: item for item in output["eval_output_items"]}


def scores(output):
    """The scores of an output by id."""
    return {item["id"]: item["score"] for item in output["eval_output_items"]}


def command(*arguments, **environment):
    """`nat eval` as a user runs it: exit code, and what it printed."""
    script = "from nat.cli.main import run_cli; run_cli()"
    done = subprocess.run(
        [sys.executable, "-c", script, "eval", "--config_file", "eval.yml", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout + done.stderr


def other_door(*arguments):
    """`ragparity eval` on the same file: records by evaluator and id."""
    done = CliRunner().invoke(main, ["eval", "eval.yml", "--output", "ours", *arguments], catch_exceptions=False)
    lines = Path("ours/results.jsonl").read_text(encoding="utf-8").splitlines()
    found = {}
    for line in map(json.loads, lines):
        found.setdefault(line["evaluator"], {})[line["id"]] = line
    return done.exit_code, found
