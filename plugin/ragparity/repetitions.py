"""How far a judge agrees with itself when it is asked the same again."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def flip_rate(verdicts: Sequence[bool]) -> float | None:
    """The share of pairs of repetitions that differ in their verdict, from 0 to 1; nothing under two.

    It is the chance that a row passes once and fails once when it is judged twice.

    >>> flip_rate([True, True, False])
    0.6666666666666666
    """
    n, passed = len(verdicts), sum(verdicts)
    return 2 * passed * (n - passed) / (n * (n - 1)) if n > 1 else None


@dataclass(slots=True)
class Repetitions:
    """The figures over rows that were scored at least twice; memory grows by three numbers a row.

    Its repr is short, however many they are: asyncio asks for that of whatever a task gives.
    """

    counts: array[int] = field(default_factory=lambda: array("q"), repr=False)
    means: array[float] = field(default_factory=lambda: array("d"), repr=False)
    within: array[float] = field(default_factory=lambda: array("d"), repr=False)
    flips: array[float] = field(default_factory=lambda: array("d"), repr=False)

    def add(self, values: Sequence[float], flips: float | None) -> None:
        """Count the repetitions of one row, and its flip rate where there is a threshold."""
        if len(values) < 2:  # noqa: PLR2004  # one value repeats nothing
            return
        mean = math.fsum(values) / len(values)
        self.counts.append(len(values))
        self.means.append(mean)
        self.within.append(math.fsum((value - mean) ** 2 for value in values))
        if flips is not None:
            self.flips.append(flips)

    def as_json(self) -> dict[str, Any] | None:
        """Rows, pooled standard deviation within a row, mean flip rate and test-retest reliability.

        Nothing where no row was scored twice.
        """
        if not self.counts:
            return None
        freedom = sum(self.counts) - len(self.counts)
        return {
            "n": len(self.counts),
            "spread": math.sqrt(math.fsum(self.within) / freedom),
            "flip_rate": math.fsum(self.flips) / len(self.flips) if self.flips else None,
            "test_retest": self.reliability(),
        }

    def reliability(self) -> float | None:
        """The intraclass correlation of single repetitions, one-way random: 1 where repetitions never differ.

        (MSB − MSW) / (MSB + (k₀ − 1)·MSW), ICC(1,1) of Shrout and Fleiss 1979; with unequal numbers of repetitions,
        k₀ = (N − Σk²/N) / (n − 1), as in McGraw and Wong 1996. Below 0 where rows differ less than their repetitions;
        nothing under two rows, and where every value is the same.

        >>> two = Repetitions()
        >>> two.add([0.0, 0.0], None); two.add([1.0, 1.0], None)
        >>> two.reliability()
        1.0
        """
        n, total = len(self.counts), sum(self.counts)
        if n < 2:  # noqa: PLR2004  # one row cannot be told from others
            return None
        grand = math.fsum(k * mean for k, mean in zip(self.counts, self.means, strict=True)) / total
        between = math.fsum(k * (mean - grand) ** 2 for k, mean in zip(self.counts, self.means, strict=True)) / (n - 1)
        within = math.fsum(self.within) / (total - n)
        k0 = (total - sum(k * k for k in self.counts) / total) / (n - 1)
        scale = between + (k0 - 1) * within
        return (between - within) / scale if scale > 0 else None
