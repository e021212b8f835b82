"""How far a run is: a bar on a terminal, a line now and then elsewhere, remarks alone when it is not wanted."""

from __future__ import annotations

import time
from typing import IO, Protocol

BETWEEN_LINES_S = 10.0


class Progress(Protocol):
    """Is told after every record."""

    def __call__(self, count: int, total: int) -> None:
        """So many of all scores are done."""
        ...

    def say(self, line: str) -> None:
        """Show a line without garbling the bar."""
        ...

    def close(self) -> None:
        """Take the bar away."""
        ...


class Silent:
    """No progress; remarks are shown, they are none."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __call__(self, count: int, total: int) -> None:
        """Nothing is shown."""

    def say(self, line: str) -> None:
        """Write a line."""
        print(line, file=self._file, flush=True)

    def close(self) -> None:
        """There is nothing to take away."""


class Lines:
    """A line every few seconds and at the end, for logs."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._last = time.monotonic()

    def __call__(self, count: int, total: int) -> None:
        """Write a line, if it is time for one."""
        now = time.monotonic()
        if count == total or now - self._last >= BETWEEN_LINES_S:
            self._last = now
            self.say(f"{count} of {total} scores done")

    def say(self, line: str) -> None:
        """Write a line."""
        print(line, file=self._file, flush=True)

    def close(self) -> None:
        """There is nothing to take away."""


class Bar:
    """A bar with the time that is left."""

    def __init__(self, file: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            console=Console(file=file), transient=True, refresh_per_second=4,
        )  # fmt: skip
        self._task = self._bar.add_task("scoring", total=None)
        self._bar.start()

    def __call__(self, count: int, total: int) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=count, total=total)

    def say(self, line: str) -> None:
        """Write a line above the bar."""
        self._bar.console.print(line, highlight=False, markup=False)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def progress_for(file: IO[str], *, wanted: bool) -> Progress:
    """The right one for a stream."""
    if not wanted:
        return Silent(file)
    return Bar(file) if file.isatty() else Lines(file)
