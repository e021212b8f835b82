"""Processes that a benchmark starts: their environment variables, and what each one used."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_PASSED_ON = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
SWITCHES = {"RAGAS_DO_NOT_TRACK": "true", "NAT_TELEMETRY_ENABLED": "false"}
"""Nobody tells anybody that a benchmark runs; time spent on that would count against the peers."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a process used until it ended: seconds by the clock, CPU seconds with its children, and memory at its peak."""

    wall: float
    cpu: float
    megabytes: float


def environment(**more: str) -> dict[str, str]:
    """The variables of this process, with bytecode, without a path that would shadow what is installed."""
    return {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON} | SWITCHES | more


def run(command: list[str], folder: Path, **more: str) -> Used:
    """Run a command in a folder, where `said.txt` is what it printed; ends the benchmark if the command fails.

    A process begins as a copy of the one that starts it and never reports a lower peak of memory, so a benchmark that
    compares memory imports little.
    """
    said = folder / "said.txt"
    with said.open("wb") as file:
        begun = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, env=environment(**more))
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        shown = said.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{shown}")
    return Used(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
