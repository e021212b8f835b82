"""Runs every `bench_*.py` of this folder, one after the other: `python -m tests.benchmarks [NAME…]`.

A benchmark is a module with `main()` that prints its figures; what matters in them are ratios and comparisons with a
target, since the seconds are those of the machine. A NAME such as `rows` runs that one alone.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def names() -> list[str]:
    """The benchmarks there are, without `bench_`."""
    return sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))


def main(wanted: list[str]) -> int:
    """Run the wanted ones, all without any; the exit code is 2 for a name that is none."""
    if unknown := [name for name in wanted if name not in names()]:
        print(f"no benchmark {unknown[0]!r}; there is {', '.join(names())}", file=sys.stderr)  # a command's line
        return 2
    for name in wanted or names():
        print(f"== {name}", flush=True)  # as above
        sys.argv = [name]  # a benchmark that takes options of its own gets none here
        importlib.import_module(f"tests.benchmarks.bench_{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
