"""Runs every `bench_*.py` of this folder, one after the other: `python -m tests.benchmarks [NAME…]`.

A benchmark is a module with `main()` that prints its figures; what matters in them are ratios and comparisons with a
target, since the seconds are those of the machine. A NAME such as `rows` runs that one alone. Each runs in a process
of its own: one that has imported much would lend its memory to those that it measures.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The benchmarks there are, without `bench_`."""
    return sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def main(wanted: list[str]) -> int:
    """Run the wanted ones, all without any; the exit code is 2 for a name that is none, 1 if one of them failed."""
    if unknown := [name for name in wanted if name not in names()]:
        print(f"no benchmark {unknown[0]!r}; there is {', '.join(names())}", file=sys.stderr)
        return 2
    print(
        "peers are installed into .bench once, by the benchmarks that need them (minutes, a package index)", flush=True
    )
    failed = False
    for name in wanted or names():
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"tests.benchmarks.bench_{name}"]
        failed |= subprocess.run(command, cwd=FOLDER.parents[1], check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
