"""How far two columns of scores agree: differences, correlations, concordance.

`a` and `b` are paired columns of finite scores, taken as they are (`Pairs` frees scores from the float dust
that would break ties). Differences are a − b: a positive bias means that a is higher. Everything symmetric is
symmetric in a and b. A side whose scores are all the same says nothing about the other one; what is then 0/0
(Pearson, Spearman, Kendall) or forced to 0 whatever the other side says (concordance, ICC) is undefined here,
in the sample as in a resample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ragparity.agreement.resampling import (
    CONSTANT,
    DECIMALS,
    LEAST_PAIRS,
    LEVEL,
    TOO_FEW,
    Array,
    Draws,
    Estimate,
    Kernel,
    Scores,
    cluster_codes,
    columns,
    estimate,
    is_constant,
    normal_quantile,
    proportion,
)
from ragparity.core.student import t_quantile

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

FEW_LEVELS = 6
"""Scores with at most so many distinct values get empirical limits of agreement."""

_ROWS = 512  # rows of the pairwise table of Kendall's tau that are held at once
_MOST_WALSH = 2000  # distinct differences; above, Hodges-Lehmann takes as many evenly spaced quantiles of them
_MOST_EXACT = 400  # differences other than zero up to which the signed-rank p value is exact


# --------------------------------------------------------------------------------------------- differences


def mean(values: Scores, *, clusters: Sequence[Hashable] | None = None) -> Estimate:
    """The mean with Student's t interval, x̄ ± t·s/√n.

    With `clusters` (one label per value) the standard error is the cluster-robust one with the factor
    G/(G−1) for G clusters, and t has G−1 degrees of freedom (Cameron and Miller 2015, "A practitioner's guide
    to cluster-robust inference"); with one value per cluster it is the plain one.
    """
    (x,) = columns(values)
    if not len(x):
        return Estimate(why="undefined: no scores")
    middle = float(x.mean())
    codes = np.arange(len(x)) if clusters is None else cluster_codes(clusters, len(x))
    groups = int(codes.max()) + 1
    if groups < 2:  # noqa: PLR2004  # a spread needs two
        return Estimate(middle, why="no interval: a single score" if len(x) == 1 else "no interval: a single cluster")
    sums = np.bincount(codes, weights=x - middle)
    half = t_quantile(groups - 1) * math.sqrt(groups / (groups - 1) * float(sums @ sums)) / len(x)
    if half == 0:
        return Estimate(middle, why="no interval: every score is the same")
    return Estimate(middle, middle - half, middle + half)


def mean_difference(a: Scores, b: Scores, *, clusters: Sequence[Hashable] | None = None) -> Estimate:
    """The bias: the mean of a − b with its t interval (see `mean`)."""
    x, y = columns(a, b)
    found = mean(np.round(x - y, DECIMALS), clusters=clusters)
    if found.value is not None and found.low is None and len(x) > 1 and clusters is None:
        return Estimate(found.value, why="no interval: every pair differs by the same amount")
    return found


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of agreement: about 95 % of the differences a − b lie between them, or `why` there are none."""

    low: float | None = None
    high: float | None = None
    kind: Literal["normal", "empirical"] = "normal"
    why: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields, JSON-ready."""
        return {"low": self.low, "high": self.high, "kind": self.kind, "why": self.why}


def limits_of_agreement(a: Scores, b: Scores, *, kind: Literal["auto", "normal", "empirical"] = "auto") -> Limits:
    """Bland and Altman 1986 (Lancet 327, 307): mean difference ± 1.96 standard deviations of the differences.

    Those assume differences that are near normal. Scores of few levels are not: there (`auto`, at most
    `FEW_LEVELS` distinct scores on both sides together) the limits are the 2.5 % and 97.5 % points of the
    differences themselves (Bland and Altman 1999, Stat. Methods Med. Res. 8, 135).
    """
    x, y = columns(a, b)
    if kind == "auto":
        kind = "empirical" if len(np.unique(np.concatenate([x, y]))) <= FEW_LEVELS else "normal"
    if len(x) < LEAST_PAIRS:
        return Limits(kind=kind, why=TOO_FEW)
    difference = x - y
    if kind == "empirical":
        low, high = (float(end) for end in np.quantile(difference, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
        return Limits(low, high, kind)
    half = normal_quantile() * float(difference.std(ddof=1))
    return Limits(float(difference.mean()) - half, float(difference.mean()) + half, kind)


def slope(a: Scores, b: Scores, *, draws: Draws | None = None) -> Estimate:
    """The slope of a − b on (a + b)/2: whether the bias depends on the level (Bland and Altman 1999).

    2·(var a − var b) / (var a + var b + 2·cov): 0 where both sides spread equally far, positive where a
    spreads further.
    """
    x, y = columns(a, b)

    def kernel(weights: Array) -> Array:
        m = _moments(x, y, weights)
        spread = m.var_x + m.var_y + 2 * m.cov
        return np.where(is_constant(np.round(x + y, DECIMALS), weights), np.nan, 2 * (m.var_x - m.var_y) / spread)

    return _of_pairs(kernel, len(x), draws, "undefined: every pair has the same mean")


def mean_absolute_error(a: Scores, b: Scores, *, draws: Draws | None = None) -> Estimate:
    """The mean of |a − b|."""
    x, y = columns(a, b)
    gap = np.abs(x - y)
    return estimate(lambda w: w @ gap / w.sum(axis=1), len(x), draws=draws, undefined="undefined: no pairs")


def exact_agreement(a: Scores, b: Scores, *, within: float = 0.0, draws: Draws | None = None) -> Estimate:
    """The share of pairs that differ by at most `within`, with Wilson's interval (clusters: resampled)."""
    x, y = columns(a, b)
    return proportion((np.round(np.abs(x - y), DECIMALS) <= within).astype(np.float64), draws)


def hodges_lehmann(a: Scores, b: Scores) -> Estimate:
    """The median of the pairwise averages of the differences a − b, i ≤ j, with a distribution-free interval.

    Hodges and Lehmann 1963; interval after Hollander, Wolfe and Chicken 2014, section 3.3, with the normal
    approximation of the signed-rank distribution. It is the size that belongs to `wilcoxon`.
    """
    x, y = columns(a, b)
    if len(x) < LEAST_PAIRS:
        return Estimate(why=TOO_FEW)
    values, counts = np.unique(np.round(x - y, DECIMALS), return_counts=True)
    n = len(x)
    if len(values) > _MOST_WALSH:
        values = np.quantile(x - y, (np.arange(_MOST_WALSH) + 0.5) / _MOST_WALSH)
        counts = np.ones(_MOST_WALSH, dtype=np.intp)
        n = _MOST_WALSH
    first, second = np.triu_indices(len(values))
    averages = (values[first] + values[second]) / 2
    times = np.where(first == second, counts[first] * (counts[first] + 1) // 2, counts[first] * counts[second])
    order = np.argsort(averages, kind="stable")
    ranked, reached = averages[order], np.cumsum(times[order])
    total = int(reached[-1])

    def at(rank: int) -> float:
        return float(ranked[np.searchsorted(reached, rank)])

    middle = (at((total + 1) // 2) + at(total // 2 + 1)) / 2
    # The spread of ranks follows the number of pairs, also where quantiles stand in for them.
    spread = math.sqrt(len(x) * (len(x) + 1) * (2 * len(x) + 1) / 24) * (n / len(x)) ** 2
    outside = math.floor(total / 2 - normal_quantile() * spread)
    if outside < 1:
        return Estimate(middle, why="no interval: too few pairs for 95 %")
    low, high = at(outside), at(total + 1 - outside)
    if low == high:
        return Estimate(middle, why="no interval: too many differences are the same")
    return Estimate(middle, low, high)


def wilcoxon(a: Scores, b: Scores) -> Estimate:
    """The two-sided p value of the signed-rank test: are the differences symmetric about 0?

    Zeros take part in the ranking and are then left out (Pratt 1959, JASA 54, 655), ties get mean ranks. The
    p value is that of all sign changes given these ranks, counted exactly (so ties and zeros need no
    correction), above 400 differences other than zero the normal approximation with tie correction. The
    pairs must be independent: it has no version for clusters. A small p is not a large bias: see
    `hodges_lehmann` and `mean_difference`.
    """
    x, y = columns(a, b)
    difference = np.round(x - y, DECIMALS)
    if not difference.any():
        return Estimate(why="undefined: no pair differs")
    doubled = np.round(2 * _midranks(np.abs(difference), np.ones((1, len(x))))[0]).astype(np.int64)
    ranks = doubled[difference != 0]
    positive = int(doubled[difference > 0].sum())
    if len(ranks) <= _MOST_EXACT:
        chance = np.zeros(int(ranks.sum()) + 1)
        chance[0] = 1.0
        for rank in ranks:
            shifted = np.zeros_like(chance)
            shifted[rank:] = chance[:-rank]
            chance = (chance + shifted) / 2
        tail = min(float(chance[: positive + 1].sum()), float(chance[positive:].sum()))
        return Estimate(min(1.0, 2 * tail))
    spread = math.sqrt(float((ranks.astype(np.float64) ** 2).sum())) / 2
    z = abs(positive - float(ranks.sum()) / 2) / spread
    return Estimate(math.erfc(z / math.sqrt(2)))


# ------------------------------------------------------------------------------ correlation and concordance


def pearson(a: Scores, b: Scores, *, draws: Draws | None = None) -> Estimate:
    """The product-moment correlation (Pearson 1895), −1..1. It is 1 under any constant bias."""
    x, y = columns(a, b)

    def kernel(weights: Array) -> Array:
        m = _moments(x, y, weights)
        return _unless_constant(x, y, weights, m.cov / np.sqrt(m.var_x * m.var_y))

    return _of_pairs(kernel, len(x), draws)


def spearman(a: Scores, b: Scores, *, draws: Draws | None = None) -> Estimate:
    """Pearson's correlation of the mid-ranks (Spearman 1904), −1..1."""
    x, y = columns(a, b)

    def kernel(weights: Array) -> Array:
        total = weights.sum(axis=1, keepdims=True)
        left = _midranks(x, weights) - (total + 1) / 2
        right = _midranks(y, weights) - (total + 1) / 2
        cov = (weights * left * right).sum(axis=1)
        spread = np.sqrt((weights * left * left).sum(axis=1) * (weights * right * right).sum(axis=1))
        return _unless_constant(x, y, weights, cov / spread)

    return _of_pairs(kernel, len(x), draws)


def kendall(a: Scores, b: Scores, *, draws: Draws | None = None) -> Estimate:
    """Kendall's τ-b (Kendall 1945), −1..1: (concordant − discordant) / √(untied in a · untied in b).

    With different numbers of levels on the two sides it cannot reach 1. Time grows with resamples · u² for u
    different pairs.
    """
    x, y = columns(a, b)
    points, codes = np.unique(np.stack([x, y], axis=1), axis=0, return_inverse=True)
    left, right = points.T

    def kernel(weights: Array) -> Array:
        counts = _sums_of_groups(weights, codes)
        light = counts.astype(np.float32)  # holds the whole numbers of this sum exactly, at twice the speed
        sums = np.zeros((3, len(weights)))
        for start in range(0, len(left), _ROWS):
            rows = slice(start, start + _ROWS)
            sign_x = np.sign(left[rows, None] - left).astype(np.float32)
            sign_y = np.sign(right[rows, None] - right).astype(np.float32)
            for index, table in enumerate((sign_x * sign_y, np.abs(sign_x), np.abs(sign_y))):
                sums[index] += ((light @ table.T).astype(np.float64) * counts[:, rows]).sum(axis=1)
        agree, untied_x, untied_y = sums
        return _unless_constant(x, y, weights, agree / np.sqrt(untied_x * untied_y))

    return _of_pairs(kernel, len(x), draws)


def ccc(a: Scores, b: Scores, *, draws: Draws | None = None) -> Estimate:
    """Lin's concordance correlation coefficient (Lin 1989, Biometrics 45, 255), −1..1.

    2·cov / (var a + var b + (mean a − mean b)²), moments over n as in the paper: Pearson's correlation times
    a factor for bias and for a different spread. 1 only where every pair is equal.
    """
    x, y = columns(a, b)

    def kernel(weights: Array) -> Array:
        m = _moments(x, y, weights)
        return _unless_constant(x, y, weights, 2 * m.cov / (m.var_x + m.var_y + m.gap**2))

    return _of_pairs(kernel, len(x), draws)


def icc(a: Scores, b: Scores, *, draws: Draws | None = None) -> Estimate:
    """ICC(A,1): two-way, single rater, absolute agreement (McGraw and Wong 1996), also called ICC(2,1).

    (MSR − MSE) / (MSR + MSE + 2/n·(MSC − MSE)) for two sides: rows, columns, residual of the two-way table.
    At most 1; close to `ccc`, with unbiased variances (so a few pairs can give less than −1).
    """
    x, y = columns(a, b)

    def kernel(weights: Array) -> Array:
        m = _moments(x, y, weights)
        degrees = m.total - 1
        rows = m.total * (m.var_x + m.var_y + 2 * m.cov) / 2 / degrees
        residual = m.total * (m.var_x + m.var_y - 2 * m.cov) / 2 / degrees
        sides = m.total * m.gap**2 / 2
        found = (rows - residual) / (rows + residual + 2 / m.total * (sides - residual))
        return _unless_constant(x, y, weights, found, lowest=-np.inf)

    return _of_pairs(kernel, len(x), draws)


# -------------------------------------------------------------------------------------------------- kernels


@dataclass(frozen=True, slots=True)
class _Moments:
    total: Array
    gap: Array
    var_x: Array
    var_y: Array
    cov: Array


def _moments(x: Array, y: Array, weights: Array) -> _Moments:
    """Weighted moments over n of every resample; each column is centred first, against cancellation."""
    left, right = x - x.mean(), y - y.mean()
    total = weights.sum(axis=1)
    sums = weights @ np.stack([left, right, left * left, right * right, left * right], axis=1)
    mean_x, mean_y, xx, yy, xy = (sums / total[:, None]).T
    return _Moments(
        total=total,
        gap=mean_x - mean_y + (x.mean() - y.mean()),
        var_x=np.maximum(xx - mean_x * mean_x, 0),
        var_y=np.maximum(yy - mean_y * mean_y, 0),
        cov=xy - mean_x * mean_y,
    )


def _midranks(values: Array, weights: Array) -> Array:
    """Mid-ranks within every resample, for each item (also for those that a resample left out)."""
    _, codes = np.unique(values, return_inverse=True)
    counts = _sums_of_groups(weights, codes)
    ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2
    return np.asarray(ranks[:, codes])


def _sums_of_groups(weights: Array, codes: npt.NDArray[np.intp]) -> Array:
    """The weight of each group of items in every resample; groups are 0, 1, …, none empty."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(codes.max() + 1))
    return np.asarray(np.add.reduceat(weights[:, order], starts, axis=1))


def _unless_constant(x: Array, y: Array, weights: Array, found: Array, *, lowest: float = -1) -> Array:
    """A coefficient, clipped to its range against float dust, NaN where a side is constant."""
    lost = is_constant(x, weights) | is_constant(y, weights)
    return np.where(lost, np.nan, np.clip(found, lowest, 1))


def _of_pairs(kernel: Kernel, n: int, draws: Draws | None, undefined: str = CONSTANT) -> Estimate:
    if n < LEAST_PAIRS:
        return Estimate(why=TOO_FEW)
    return estimate(kernel, n, draws=draws, undefined=undefined)
