"""The scores of one evaluator, in 8 bytes each, and the figures over them."""

from __future__ import annotations

import math
import statistics
from array import array
from typing import Any

from ragparity.core.student import t_quantile


class Scores:
    """Scores as they come. Figures are over all of them and not rounded, and are worked out once for each number."""

    def __init__(self) -> None:
        self._all = array("d")
        self._known: tuple[int, dict[str, Any]] = (-1, {})

    def __len__(self) -> int:
        return len(self._all)

    def add(self, score: float) -> None:
        """One more score."""
        self._all.append(score)

    @property
    def mean(self) -> float | None:
        """Their mean, or nothing."""
        return math.fsum(self._all) / len(self._all) if self._all else None

    def stderr(self) -> float | None:
        """s/√n with the sample standard deviation, absent under two scores."""
        n, mean = len(self._all), self.mean
        if mean is None or n <= 1:
            return None
        off = array("d", (score - mean for score in self._all))
        squares = math.fsum(one * one for one in off) - math.fsum(off) ** 2 / n  # the mean is rounded; this is not
        return math.sqrt(max(squares, 0.0) / (n - 1) / n)

    def figures(self) -> dict[str, Any]:
        """`mean`, `stderr`, `ci95`, `median`, `min` and `max`; nothing in place of what there are too few scores for.

        `ci95` is mean ± t·s/√n with Student's t at n−1 degrees of freedom.
        """
        n, known = self._known
        if n != len(self._all):
            self._known = (len(self._all), known := self._worked_out())
        return known

    def _worked_out(self) -> dict[str, Any]:
        mean, stderr = self.mean, self.stderr()
        half = None if stderr is None else t_quantile(len(self._all) - 1) * stderr
        return {
            "mean": mean,
            "stderr": stderr,
            "ci95": None if half is None or mean is None else [mean - half, mean + half],
            "median": statistics.median(self._all) if self._all else None,
            "min": min(self._all, default=None),
            "max": max(self._all, default=None),
        }
