"""The output files of a run in the toolkit's shape: one per evaluator, in data order whatever the order of completion.

While a run goes on, its items wait in files that have no name, so that a run that ends, early or not, need not read
its log again. A crash leaves nothing of them: a resumed run writes them anew.
"""

from __future__ import annotations

import json
import os
from array import array
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ABSENT = -1
_BLOCK = 1 << 16
_BETWEEN = b",\n"


class OutputItems:
    """The items of every evaluator; memory grows by 8 bytes an item. Close it, or its files stay open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[str, _Waiting] = {}

    def add(self, evaluator: str, row: int, item: bytes) -> None:
        """Keep the item of a record, a line of JSON; the last of a row and an evaluator counts. Raises `OSError`."""
        if (of_evaluator := self._waiting.get(evaluator)) is None:
            of_evaluator = self._waiting[evaluator] = _Waiting(self._folder)
        of_evaluator.add(row, item + _BETWEEN)

    def write(self, evaluator: str, path: Path, average: float | None) -> None:
        """Write the output file of an evaluator. Raises `OSError`."""
        waiting = self._waiting.get(evaluator)
        with path.open("wb") as file:
            file.write(b'{"average_score": ' + json.dumps(average).encode() + b', "eval_output_items": [\n')
            for some in () if waiting is None else waiting.in_data_order():
                file.write(some)
            file.seek(-1 if waiting is None else -len(_BETWEEN), os.SEEK_END)
            file.write(b"\n]}\n")

    def close(self) -> None:
        """Let the files go."""
        for one in self._waiting.values():
            one.file.close()
        self._waiting.clear()


class _Waiting:
    """The items of one evaluator in a file, and where that of each row begins."""

    def __init__(self, folder: Path) -> None:
        self.file = TemporaryFile(dir=folder, buffering=_BLOCK)  # noqa: SIM115  # it stays open until the run ends
        self._places = array("q")
        self._size = 0
        self._in_data_order = True

    def add(self, row: int, item: bytes) -> None:
        self.file.write(item)
        if row < len(self._places):
            self._in_data_order = False
            self._places[row] = self._size
        else:
            self._places.extend([ABSENT] * (row - len(self._places)))
            self._places.append(self._size)
        self._size += len(item)

    def in_data_order(self) -> Iterator[bytes]:
        """Everything, a block or an item at a time."""
        if self._in_data_order:
            self.file.seek(0)
            while block := self.file.read(_BLOCK):
                yield block
            return
        for place in self._places:
            if place != ABSENT:
                self.file.seek(place)
                yield self.file.readline()
