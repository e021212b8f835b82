"""An estimate with its interval or the reason why there is none; bootstrap resamples; quantiles.

A statistic is a *kernel*: weights of shape (resamples, items) in, one number per resample out, NaN where it
is undefined. A resample of the bootstrap is a row of counts (how often each item was drawn) and the sample
itself is the row of ones, so one formula in matrix products gives the value and every resample at once. NaN
lives only inside kernels: what leaves this package is an `Estimate`, whose numbers are finite or `None`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Scores = Sequence[float] | Array
Kernel = Callable[[Array], Array]

LEVEL = 0.95
"""Every interval of this package covers 95 %."""
RESAMPLES = 2000
CONSTANT = "undefined: constant scores"
TOO_FEW = "undefined: fewer than 3 pairs"
LEAST_PAIRS = 3
"""Two pairs always lie on a line: a correlation of two says nothing."""
DECIMALS = 12
"""Joined scores are rounded to so many decimals: 2/3 reached in two ways is one score, hence a tie."""

_CELLS = 2_000_000  # weights held at once: 16 MB
_KEPT_CELLS = 5_000_000  # weights kept for the next statistic instead of drawn again: 40 MB
_LOST_SHARE = 0.2  # with more undefined resamples than this, those left no longer describe the sample
_FLAT = 1e-12  # resamples that differ by less are the same number


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with a 95 % interval, or the reason why there is none.

    `value` is `None` where the statistic is undefined or not allowed; `low` and `high` are `None` where there
    is no interval; `why` then says the reason in words, and otherwise a caution if there is one.
    `undefined_resamples` counts bootstrap resamples in which the statistic had no value. Raises `ValueError`
    for a number that is not finite.

    >>> Estimate(0.5, 0.4, 0.6)
    Estimate(value=0.5, low=0.4, high=0.6, why=None, undefined_resamples=0)
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str | None = None
    undefined_resamples: int = 0

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if number is not None:
                if not math.isfinite(number):
                    raise ValueError(f"{name} of an estimate is a finite number or None, not {number!r}")
                object.__setattr__(self, name, float(number))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, or `None`."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def as_json(self) -> dict[str, Any]:
        """The four fields, JSON-ready."""
        return {"value": self.value, "low": self.low, "high": self.high, "why": self.why}


class Draws:
    """Bootstrap resamples of `n` items, the same for every statistic that is handed this object.

    Items are drawn with replacement; with `clusters` (one label per item) whole clusters are (Field and Welsh
    2007, "Bootstrapping clustered data", JRSS B 69). The same seed, `n` and clusters give the same resamples.
    Raises `ValueError` where `n` or `resamples` is below 1 or the labels are not one per item.
    """

    def __init__(
        self, n: int, *, resamples: int = RESAMPLES, seed: int = 0, clusters: Sequence[Hashable] | None = None
    ) -> None:
        if n < 1 or resamples < 1:
            raise ValueError(f"resampling needs at least 1 item and 1 resample, not {n} and {resamples}")
        self.n = n
        self.resamples = resamples
        self.seed = seed
        self.clusters = None if clusters is None else cluster_codes(clusters, n)
        self._kept: list[Array] = []

    def blocks(self) -> Iterator[Array]:
        """Weights of shape (some resamples, n), until all resamples were given."""
        if self._kept:
            yield from self._kept
            return
        keep = self.n * self.resamples <= _KEPT_CELLS
        groups = self.n if self.clusters is None else int(self.clusters.max()) + 1
        generator = np.random.default_rng(self.seed)
        rows = max(1, _CELLS // self.n)
        kept: list[Array] = []
        for start in range(0, self.resamples, rows):
            size = min(rows, self.resamples - start)
            drawn = generator.integers(0, groups, size=(size, groups)) + groups * np.arange(size)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=size * groups).reshape(size, groups).astype(np.float64)
            block = counts if self.clusters is None else counts[:, self.clusters]
            if keep:
                kept.append(block)
            yield block
        self._kept = kept

    def of(self, kernel: Kernel) -> Array:
        """The statistic of every resample, NaN where it is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.concatenate([kernel(block) for block in self.blocks()])


def cluster_codes(clusters: Sequence[Hashable], n: int) -> npt.NDArray[np.intp]:
    """Labels as 0, 1, …, in the order of their text; `ValueError` where they are not one per item."""
    if len(clusters) != n:
        raise ValueError(f"clusters: expected one label for each of {n} items, got {len(clusters)}")
    texts = [str(label) for label in clusters]
    position = {label: code for code, label in enumerate(sorted(set(texts)))}
    return np.array([position[text] for text in texts], dtype=np.intp)


def estimate(kernel: Kernel, n: int, *, draws: Draws | None = None, undefined: str = CONSTANT) -> Estimate:
    """The statistic of `n` items with a percentile interval over `draws` (Efron and Tibshirani 1993, ch. 13).

    The interval runs from the 2.5 % to the 97.5 % point of the resamples in which the statistic is defined;
    `why` says how many were not. There is none where over a fifth of them are undefined, and none where all
    resamples give one number (they then say nothing about other samples). `undefined` is the reason given
    where the sample itself has no value.
    """
    if draws is not None and draws.n != n:
        raise ValueError(f"the resamples are of {draws.n} items, the statistic of {n}")
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(kernel(np.ones((1, n)))[0]) if n else math.nan
    if not math.isfinite(value):
        return Estimate(why=undefined)
    if draws is None:
        return Estimate(value)
    found = draws.of(kernel)
    defined = found[np.isfinite(found)]
    lost = len(found) - len(defined)
    if lost > _LOST_SHARE * len(found):
        return Estimate(value, None, None, f"no interval: undefined in {lost} of {len(found)} resamples", lost)
    low, high = (float(end) for end in np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    if high - low <= _FLAT:
        return Estimate(value, None, None, "no interval: every resample gives the same value", lost)
    why = f"undefined in {lost} of {len(found)} resamples, left out of the interval" if lost else None
    return Estimate(value, low, high, why, lost)


def kernel_of(statistic: Callable[..., float | None], *columns: Sequence[Any] | npt.NDArray[Any]) -> Kernel:
    """A kernel out of any statistic of columns, for use with `estimate`; it is called once per resample.

    `statistic` takes as many arrays as there are columns and gives a number, or `None` where undefined.

    >>> largest = kernel_of(lambda values: float(values.max()), [0.25, 1.0, 0.5])
    >>> estimate(largest, 3).value
    1.0
    """
    arrays = [np.asarray(column) for column in columns]

    def kernel(weights: Array) -> Array:
        found = np.full(len(weights), math.nan)
        for row, counts in enumerate(weights.astype(np.intp)):
            number = statistic(*(np.repeat(array, counts) for array in arrays))
            if number is not None:
                found[row] = number
        return found

    return kernel


def columns(*given: Scores | Sequence[bool]) -> list[Array]:
    """Equally long arrays of finite numbers; `ValueError` for anything else."""
    arrays = []
    for one in given:
        array = np.asarray(one, dtype=np.float64)
        if array.ndim != 1 or not np.isfinite(array).all():
            raise ValueError("scores: expected one flat list of finite numbers; join them with pair(a, b) first")
        arrays.append(array)
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise ValueError(f"scores: expected lists of one length, got {sorted(lengths)}; join them with pair(a, b)")
    return arrays


def is_constant(values: Array, weights: Array) -> npt.NDArray[np.bool_]:
    """Which resamples hold a single value; exact, where a variance would leave rounding dust."""
    drawn = weights > 0
    lowest = np.where(drawn, values, np.inf).min(axis=1)
    highest = np.where(drawn, values, -np.inf).max(axis=1)
    return np.asarray(lowest >= highest)


def normal_quantile(level: float = LEVEL) -> float:
    """The z for a two-sided interval.

    >>> round(normal_quantile(), 6)
    1.959964
    """
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson(hits: int, n: int) -> Estimate:
    """A proportion with the score interval of Wilson 1927 (JASA 22), which does not collapse at 0 and 1.

    >>> round(wilson(10, 10).low, 4), wilson(10, 10).high
    (0.7225, 1.0)
    """
    if not n:
        return Estimate(why="undefined: no rows")
    z2 = normal_quantile() ** 2
    share = hits / n
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return Estimate(share, max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)))


def proportion(flags: Array, draws: Draws | None = None) -> Estimate:
    """The share of flags that are 1: Wilson's interval, or resampled where the rows come in clusters."""
    if draws is None or draws.clusters is None:
        return wilson(int(flags.sum()), len(flags))
    return estimate(lambda weights: weights @ flags / weights.sum(axis=1), len(flags), draws=draws)
