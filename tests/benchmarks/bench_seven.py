"""Seven core metrics on one machine: wall time against the bound, and against Ragas' `evaluate`.

Run `python -m tests.benchmarks.bench_seven [PYTHON_WITH_RAGAS]`. Every figure is a ratio within one run.
The bound is calls x latency / calls in flight: no scheduler can be faster.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fakebrain import default_reply
from tests.fakeserver import FakeServer, Reply, Request

ROOT = Path(__file__).resolve().parents[2]
IN_FLIGHT = 16


def judge(request: Request) -> Reply:
    """Objects as they are asked for, of a response that commits itself; 2 where a rating on any scale is wanted."""
    reply = default_reply(request)
    if not isinstance(reply.content, dict):
        return Reply(content="2")
    content = json.loads(json.dumps(reply.content).replace('"noncommittal": true', '"noncommittal": false'))
    return Reply(content={**content, "noncommittal": 0} if "noncommittal" in content else content)


def measured(script: str, python: str, server: FakeServer, *numbers: int) -> dict[str, Any]:
    """What a process says of itself, and what the server saw of the measured run."""
    command = [python, f"tests/benchmarks/{script}.py", server.base_url, *map(str, numbers)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def python_with_ragas() -> str | None:
    """The interpreter that has Ragas: named on the command line, or this one."""
    if len(sys.argv) > 1 and Path(sys.argv[1]).exists():
        return sys.argv[1]
    return sys.executable if importlib.util.find_spec("ragas") else None


def at_latency(latency: float, python: str | None) -> None:
    """40 samples of four passages, 16 calls in flight."""
    with FakeServer(judge, latency=latency, record=False) as server:
        before = server.calls
        ours = measured("ours_seven", sys.executable, server, 40, 4, IN_FLIGHT)
        calls = round((server.calls - before) * 40 / 44)
        bound = calls * latency / IN_FLIGHT
        print(
            f"latency {latency:g} s: ragparity {ours['wall']:.2f} s for {calls} calls, "
            f"{ours['wall'] / bound:.2f} x the bound of {bound:.2f} s; CPU {ours['cpu']:.2f} s; failed {ours['failed']}"
        )
        if python is None:
            print("  Ragas is not installed here: name a Python that has it to compare")
            return
        before = server.calls
        theirs = measured("ragas_seven", python, server, 40, 4, IN_FLIGHT)
        their_calls = round((server.calls - before) * 40 / 44)
        print(
            f"  Ragas evaluate {theirs['wall']:.2f} s for {their_calls} calls, CPU {theirs['cpu']:.2f} s: "
            f"ragparity takes {ours['wall'] / theirs['wall']:.2f} of its wall time, {ours['cpu'] / theirs['cpu']:.2f} of its "
            f"CPU, {calls / their_calls:.2f} of its calls"
        )


def main() -> None:
    """Print the figures."""
    python = python_with_ragas()
    at_latency(0.5, None if python is None else python)
    at_latency(0.1, python)
    with FakeServer(judge, latency=1.0, record=False) as server:
        one = measured("ours_seven", sys.executable, server, 1, 10, 32)
        print(f"one sample of ten passages, latency 1 s, 32 in flight: {one['wall']:.2f} latencies")


if __name__ == "__main__":
    main()
