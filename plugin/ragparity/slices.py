"""The figures of a run by the values of columns: one summary for each column, value and evaluator."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragparity.core.row import Row
    from ragparity.core.sample import Sample
    from ragparity.results import Record, Summary

NO_VALUE = "(none)"
"""The slice of the rows that have nothing in a column."""
UNREADABLE = "(unreadable row)"
"""The slice of the rows that are no sample."""


class Slices:
    """Counts rows and records by the values of `columns`; `empty` makes the summary of each evaluator.

    Rows come in data order, each before its records. Memory grows by 4 bytes a row.
    """

    def __init__(self, columns: Sequence[str], empty: Mapping[str, Callable[[], Summary]]) -> None:
        self.summaries: dict[str, dict[str, dict[str, Summary]]] = {column: {} for column in columns}
        self._empty = empty
        self._numbers: dict[tuple[str, ...], int] = {}
        self._combinations: list[tuple[str, ...]] = []
        self._of_row = array("i")

    def __bool__(self) -> bool:
        return bool(self.summaries)

    def meet(self, row: Row) -> None:
        """Count a row."""
        values = tuple(_shown(row, column) for column in self.summaries)
        number = self._numbers.setdefault(values, len(self._numbers))
        if number == len(self._combinations):
            self._combinations.append(values)
        self._of_row.extend([0] * (row.index - len(self._of_row)))
        self._of_row.append(number)
        for by_value, value in zip(self.summaries.values(), values, strict=True):
            if value not in by_value:
                by_value[value] = {name: empty() for name, empty in self._empty.items()}
            for summary in by_value[value].values():
                summary.n_total += 1

    def add(self, one: Record) -> None:
        """Count a record."""
        values = self._combinations[self._of_row[one.row]]
        for by_value, value in zip(self.summaries.values(), values, strict=True):
            by_value[value][one.evaluator].add(one)


def value_in(sample: Sample, column: str) -> Any:
    """What a sample has in a column or a field; nothing where it has neither."""
    return sample.extra.get(column, getattr(sample, column, None))


def _shown(row: Row, column: str) -> str:
    if row.sample is None:
        return UNREADABLE
    value = value_in(row.sample, column)
    return NO_VALUE if value is None else str(value)
