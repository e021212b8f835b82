"""What reading one row of a data set comes to: a sample, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragparity.core.sample import Sample


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """Stands where a row could not be parsed. `error` is one line with the file and the line number."""

    error: str


@dataclass(frozen=True)
class Row:
    """One row in data order: `index` counts from 0, `id` is unique in the run.

    Either `sample` is there, or `error` says in one line why not; such a row is a failure of kind
    `input` for every metric.
    """

    index: int
    id: str
    sample: Sample | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if (self.sample is None) is (self.error is None):
            raise ValueError(f"row {self.id}: either a sample or an error, not both and not neither")

    @cached_property
    def content(self) -> str:
        """What the row says, as a digest; what is wrong with it where it cannot be read."""
        return str(self.error) if self.sample is None else self.sample.digest()
