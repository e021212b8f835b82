"""What our plugin costs under `nat eval`, and one item of one metric against NVIDIA's own plugin.

Run `python -m tests.benchmarks.bench_nat [PYTHON_WITH_NVIDIA_NAT_RAGAS]` with an interpreter that has
`ragparity[nat]`; the other one needs `nvidia-nat[eval] nvidia-nat-ragas nvidia-nat-langchain` and
`langchain-community<0.4.2`. Both run the same file against the same server, in turn, after one run each that
writes bytecode. CPU time is that of the whole process, memory its largest resident size; the ratios are those of
medians.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.fakeserver import FakeServer, Request

ROUNDS = 5
LOADING = """
import json, time, importlib
from nat.runtime import loader
ours = [one for one in loader.discover_entrypoints(loader.PluginTypes.CONFIG_OBJECT) if one.module.startswith("ragparity")]
found = loader.discover_entrypoints
loader.discover_entrypoints = lambda kind: [one for one in found(kind) if one not in ours]
loader.discover_and_register_plugins(loader.PluginTypes.CONFIG_OBJECT)
begun = time.process_time()
for one in ours:
    one.load()
loaded = time.process_time()
from ragparity.nat.register import EvaluatorConfig
EvaluatorConfig(metric="AnswerAccuracy", llm_name="judge")
print(json.dumps([len(ours), loaded - begun, time.process_time() - begun]))
"""
ROW = [{"id": "1", "question": "Which port?", "answer": "Port 7443.", "generated_answer": "It is port 7443."}]


def judge(request: Request) -> Any:
    """The best rating, as an object where one is asked for."""
    return {"rating": 4} if request.body.get("response_format") else "4"


def environment() -> dict[str, str]:
    """That of this process, with bytecode."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def write_file(folder: Path, base_url: str, type_: str) -> None:
    """One item, one metric, one judge; only the type of the evaluator differs."""
    (folder / "rows.json").write_text(json.dumps(ROW), encoding="utf-8")
    content = {
        "llms": {"judge": {"_type": "openai", "model_name": "m", "base_url": base_url, "api_key": "x"}},
        "eval": {
            "general": {"output_dir": "out", "dataset": {"_type": "json", "file_path": "rows.json"}},
            "evaluators": {"accuracy": {"_type": type_, "metric": "AnswerAccuracy", "llm_name": "judge"}},
        },
    }
    (folder / "eval.json").write_text(json.dumps(content), encoding="utf-8")


def run_once(python: str, folder: Path) -> tuple[float, float]:
    """CPU seconds and megabytes of one `nat eval`; ends the benchmark where it gave no score."""
    command = [python, "-c", "from nat.cli.main import run_cli; run_cli()", "eval", "--config_file", "eval.json"]
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--skip_workflow"], cwd=folder, stdout=said, stderr=said, env=environment()
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    output = folder / "out/accuracy_output.json"
    score = json.loads(output.read_text(encoding="utf-8"))["average_score"] if output.exists() else None
    if process.returncode or score != 1.0:
        raise SystemExit(
            f"{python}: exit {process.returncode}, average {score}: {(folder / 'said.txt').read_text()[-1500:]}"
        )
    output.unlink()
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def loading() -> None:
    """What loading our entry point adds, alone and with the first entry checked."""
    figures = []
    for _ in range(ROUNDS + 1):
        done = subprocess.run(
            [sys.executable, "-c", LOADING], capture_output=True, text=True, check=True, env=environment()
        )
        figures.append(json.loads(done.stdout.splitlines()[-1]))
    count = figures[0][0]
    if count != 1:
        raise SystemExit(f"{count} entry points of ragparity are installed; expected one")
    alone, checked = (statistics.median(one[n] for one in figures[1:]) for n in (1, 2))
    print(f"loading the plugin: {alone:.3f} CPU s; with the first entry checked: {checked:.3f} CPU s (bound: 0.3)")


def against(other: str) -> None:
    """One item with ours and with NVIDIA's plugin, in turn."""
    with FakeServer(judge, record=False) as server, tempfile.TemporaryDirectory() as place:
        sides = {"ragparity": (sys.executable, "ragparity"), "nvidia-nat-ragas": (other, "ragas")}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for name, (_, type_) in sides.items():
            (Path(place) / name).mkdir()
            write_file(Path(place) / name, server.base_url, type_)
        for turn in range(ROUNDS + 1):
            for name, (python, _) in sides.items():
                used = run_once(python, Path(place) / name)
                if turn:
                    found[name].append(used)
    medians = {name: [statistics.median(one[n] for one in runs) for n in (0, 1)] for name, runs in found.items()}
    for name, (cpu, megabytes) in medians.items():
        print(f"nat eval, 1 item, {name}: {cpu:.2f} CPU s, {megabytes:.0f} MB")
    cpu, memory = (medians["ragparity"][n] / medians["nvidia-nat-ragas"][n] for n in (0, 1))
    print(f"ratio: CPU {cpu:.2f} (bound: 0.6), memory {memory:.2f} (bound: 0.8)")


def main() -> None:
    """Print every figure."""
    loading()
    if len(sys.argv) > 1:
        against(sys.argv[1])
    else:
        print("nat eval against nvidia-nat-ragas: name an interpreter that has it to compare")


if __name__ == "__main__":
    main()
