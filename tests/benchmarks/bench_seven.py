"""Seven core metrics on one machine: wall time against the bound, and against Ragas' `evaluate`.

Run `python -m tests.benchmarks.bench_seven` in the project folder; the environments that it needs are set up by
`peers.py`. Every process scores a few rows first, so that what is measured begins with warm clients, and counts only
what the judge was asked after that. The bound is calls x latency / calls in flight: no scheduler can be faster.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks import peers, processes
from tests.benchmarks.seven import METRICS, judge
from tests.fakeserver import FakeServer

ROWS, PASSAGES, IN_FLIGHT, WARM = 40, 4, 16, 4


def measured(python: str, script: str, base_url: str, *numbers: int) -> dict[str, Any]:
    """What a process says of itself and of what it asked the judge."""
    command = [python, str(processes.ROOT / f"tests/benchmarks/{script}.py"), base_url, *map(str, numbers)]
    with tempfile.TemporaryDirectory() as place:
        processes.run(command, Path(place), PYTHONPATH=str(processes.ROOT), XDG_DATA_HOME=place)
        said: dict[str, Any] = json.loads((Path(place) / "said.txt").read_text(encoding="utf-8").splitlines()[-1])
    return said


def at_latency(latency: float, ours: str, theirs: str) -> None:
    """40 rows of four passages, 16 calls in flight; the arguments are the interpreters of both sides."""
    wanted = ROWS * len(METRICS)
    with FakeServer(judge, latency=latency, record=False) as server:
        numbers = (ROWS, PASSAGES, IN_FLIGHT, WARM)
        own = measured(ours, "ours_seven", server.base_url, *numbers)
        peer = measured(theirs, "ragas_seven", server.base_url, *numbers)
    bound = own["calls"] * latency / IN_FLIGHT
    print(
        f"latency {latency:g} s: ragparity {own['wall']:.2f} s for {own['calls']} calls and {own['scored']} of {wanted} "
        f"scores, {own['wall'] / bound:.2f} x the bound of {bound:.2f} s; CPU {own['cpu']:.2f} s"
    )
    print(
        f"  Ragas evaluate {peer['wall']:.2f} s for {peer['calls']} calls and {peer['scored']} of {wanted} scores; "
        f"CPU {peer['cpu']:.2f} s"
    )
    if own["scored"] < wanted or peer["scored"] < wanted:
        print("  scores are missing, so there are no ratios")
        return
    shares = ", ".join(
        f"{own[name] / peer[name]:.2f} of its {said}"
        for name, said in (("wall", "wall time"), ("cpu", "CPU"), ("calls", "calls"), ("prompt_characters", "prompts"))
    )
    print(f"  ragparity takes {shares}")


def main() -> None:
    """Print the figures."""
    ours, theirs = peers.both()
    at_latency(0.5, ours.python, theirs.python)
    at_latency(0.1, ours.python, theirs.python)
    with FakeServer(judge, latency=1.0, record=False) as server:
        one = measured(ours.python, "ours_seven", server.base_url, 1, 10, 32, 1)
        print(
            f"one row of ten passages, latency 1 s, 32 in flight: {one['wall']:.2f} latencies for {one['calls']} calls "
            f"and {one['scored']} of {len(METRICS)} scores"
        )


if __name__ == "__main__":
    main()
