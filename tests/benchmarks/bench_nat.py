"""What our plugin costs under `nat eval`, and one item of one metric against NVIDIA's own plugin.

Run `python -m tests.benchmarks.bench_nat` in the project folder; the environments of both sides are set up by
`peers.py`. Both run the same file against the same server, in turn, after one run each that fills the caches of the
machine. CPU time is that of the whole process, memory its largest resident size; the ratios are those of medians.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks import peers, processes
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


def run_once(nat: str, folder: Path) -> tuple[float, float]:
    """CPU seconds and megabytes of one `nat eval`; ends the benchmark where it gave no score."""
    used = processes.run(
        [nat, "eval", "--config_file", "eval.json", "--skip_workflow"], folder, XDG_DATA_HOME=str(folder)
    )
    output = folder / "out/accuracy_output.json"
    score = json.loads(output.read_text(encoding="utf-8"))["average_score"] if output.exists() else None
    if score != 1.0:
        raise SystemExit(f"{nat}: average {score}: {(folder / 'said.txt').read_text(encoding='utf-8')[-1500:]}")
    output.unlink()
    return used.cpu, used.megabytes


def loading(python: str) -> None:
    """What loading our entry point adds, alone and with the first entry checked."""
    figures = []
    for _ in range(ROUNDS + 1):
        done = subprocess.run(
            [python, "-c", LOADING], capture_output=True, text=True, check=True, env=processes.environment()
        )
        figures.append(json.loads(done.stdout.splitlines()[-1]))
    count = figures[0][0]
    if count != 1:
        raise SystemExit(f"{count} entry points of ragparity are installed; expected one")
    alone, checked = (statistics.median(one[n] for one in figures[1:]) for n in (1, 2))
    print(f"loading the plugin: {alone:.3f} CPU s; with the first entry checked: {checked:.3f} CPU s (bound: 0.3)")


def against(ours: str, theirs: str) -> None:
    """One item with ours and with NVIDIA's plugin, in turn."""
    with FakeServer(judge, record=False) as server, tempfile.TemporaryDirectory() as place:
        sides = {"ragparity": (ours, "ragparity"), "nvidia-nat-ragas": (theirs, "ragas")}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for name, (_, type_) in sides.items():
            (Path(place) / name).mkdir()
            write_file(Path(place) / name, server.base_url, type_)
        for turn in range(ROUNDS + 1):
            for name, (nat, _) in sides.items():
                used = run_once(nat, Path(place) / name)
                if turn:
                    found[name].append(used)
    medians = {name: [statistics.median(one[n] for one in runs) for n in (0, 1)] for name, runs in found.items()}
    for name, (cpu, megabytes) in medians.items():
        print(f"nat eval, 1 item, {name}: {cpu:.2f} CPU s, {megabytes:.0f} MB")
    cpu, memory = (medians["ragparity"][n] / medians["nvidia-nat-ragas"][n] for n in (0, 1))
    print(f"ratio: CPU {cpu:.2f} (bound: 0.6), memory {memory:.2f} (bound: 0.8)")


def main() -> None:
    """Print every figure."""
    ours, theirs = peers.both()
    loading(ours.python)
    against(ours.command("nat"), theirs.command("nat"))


if __name__ == "__main__":
    main()
