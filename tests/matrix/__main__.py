"""Installs ragparity as users do, once for every extra, toolkit and Python, and tries what belongs to each.

::

    python -m tests.matrix                       # everything: about 20 environments, one after the other
    python -m tests.matrix base ragas            # these alone
    python -m tests.matrix --keep toolkit-1.6    # and leave the environment in .matrix/environments
    python -m tests.matrix --list                # what there is

Nothing but a Python (its standard library) and its pip is needed. Every environment is made anew, and removed when all
is well; that of a failure stays, with its log in `.matrix/logs`. The exit code is 1 if anything failed, and 2 for a
name that is none.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.matrix.entries import Absent, Entry, entries, pythons
from tests.matrix.environments import Environment, StepFailed, build_wheel

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True, kw_only=True)
class Result:
    """What became of an entry."""

    name: str
    python: str = "–"
    distributions: str = "–"
    seconds: str = "–"
    outcome: str = "ok"

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return self.name, self.python, self.distributions, self.seconds, self.outcome


def tried(entry: Entry, wheel: Path, *, keep: bool) -> Result:
    """Make the environment of an entry and do its steps."""
    begun, result, environment = time.monotonic(), Result(name=entry.name), Environment(entry.name)
    try:
        result.python = environment.create(entry.python)
        environment.install([f"ragparity{entry.bracket} @ {wheel.as_uri()}", *entry.also])
        result.distributions = str(environment.distributions())
        for step in entry.steps:
            environment.run(*step)
    except StepFailed as error:
        result.outcome = f"failed: {error}; see {environment.log}"
    else:
        if not keep:
            environment.remove()
    result.seconds = f"{time.monotonic() - begun:.0f}"
    return result


def print_table(results: list[Result]) -> None:
    """One line each, the columns aligned."""
    rows = [("entry", "Python", "distributions", "seconds", "outcome"), *(one.cells() for one in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, python, count, seconds, outcome in rows:
        start = f"{name:<{widths[0]}}  {python:<{widths[1]}}  {count:>{widths[2]}}  {seconds:>{widths[3]}}  "
        print(start + outcome, flush=True)


def main(arguments: list[str]) -> int:
    """Try the wanted entries; see the module for the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries to try; all without any")
    parser.add_argument("--keep", action="store_true", help="leave the environments there")
    parser.add_argument("--list", action="store_true", help="print what there is, and stop")
    options = parser.parse_args(arguments)
    found, absent = entries(sys.executable, pythons())
    known: dict[str, Entry | Absent] = {one.name: one for one in (*found, *absent)}
    if unknown := [name for name in options.names if name not in known]:
        print(f"no entry {unknown[0]!r}; there is {', '.join(known)}", file=sys.stderr)
        return 2
    wanted = [known[name] for name in options.names or known]
    if options.list:
        print(*wanted, sep="\n")
        return 0
    try:
        wheel = build_wheel(sys.executable)
    except StepFailed as error:
        print(f"the wheel cannot be built: {error}", file=sys.stderr)
        return 1
    results = []
    for one in wanted:
        print(f"== {one}", flush=True)
        if isinstance(one, Absent):
            results.append(Result(name=one.name, outcome=f"skipped: {one.why}"))
        else:
            results.append(tried(one, wheel, keep=options.keep))
            print(f"   {results[-1].outcome}", flush=True)
    print_table(results)
    return int(any(one.outcome.startswith("failed") for one in results))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
