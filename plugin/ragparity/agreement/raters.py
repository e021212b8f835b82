"""Agreement of more than two raters, of a rater with itself, and what agreement is attainable at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ragparity.agreement.resampling import DECIMALS, LEAST_PAIRS, Array, Draws, Estimate, Kernel, estimate, is_constant

Ratings = Sequence[Sequence[float | None]] | Array
"""One row per rater (or repetition), one column per item; `None` or NaN where there is no score."""


def krippendorff_alpha(
    ratings: Ratings, *, level: Literal["nominal", "ordinal", "interval"] = "interval", draws: Draws | None = None
) -> Estimate:
    """Krippendorff's α (2011, "Computing Krippendorff's alpha-reliability") of two or more raters; up to 1.

    1 − observed / expected disagreement over all pairs of scores of one item, against all pairs of scores at
    all; items with fewer than two scores are left out, missing scores need no filling. The squared distance
    of two values is 0 or 1 (nominal), their difference squared (interval), or the difference of their
    mid-ranks among all scores squared (ordinal). Undefined where all scores are the same. `draws` resamples
    items (columns).
    """
    table = _table(ratings)
    values, codes = np.unique(table[~np.isnan(table)], return_inverse=True)
    counts = np.zeros((table.shape[1], len(values)))
    np.add.at(counts, (np.nonzero(~np.isnan(table))[1], codes), 1)
    raters = counts.sum(axis=1)
    counts[raters < 2] = 0  # noqa: PLR2004  # one score cannot be compared within its item
    raters = counts.sum(axis=1)
    share = np.where(raters > 0, 1 / np.maximum(raters - 1, 1), 0)
    squares = (counts**2).sum(axis=1)

    def kernel(weights: Array) -> Array:
        marginals = weights @ counts
        total = marginals.sum(axis=1)
        if level == "nominal":
            observed = weights @ (share * (raters**2 - squares))
            expected = (total**2 - (marginals**2).sum(axis=1)) / (total - 1)
        else:
            if level == "ordinal":
                place = np.cumsum(marginals, axis=1) - marginals / 2
                place = place - (marginals * place).sum(axis=1, keepdims=True) / total[:, None]
            else:
                place = np.broadcast_to(values - (values.mean() if len(values) else 0), marginals.shape)
            within = raters * (place**2 @ counts.T) - (place @ counts.T) ** 2
            observed = (weights * share * within).sum(axis=1)
            spread = total * (marginals * place**2).sum(axis=1) - (marginals * place).sum(axis=1) ** 2
            expected = spread / (total - 1)
            observed, expected = 2 * observed, 2 * expected
        one_value = (marginals > 0).sum(axis=1) < 2  # noqa: PLR2004  # nothing to disagree about
        return np.where(one_value, np.nan, 1 - observed / expected)

    if not raters.any():
        return Estimate(why="undefined: no item has two scores")
    return estimate(kernel, table.shape[1], draws=draws, undefined="undefined: only one value in the data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retest:
    """One judge asked several times: how much of its scores is noise.

    `n` items with at least two scores (`n_incomplete` of them with some missing) over `reps` repetitions;
    `n_unscored` items have fewer than two and are left out.
    """

    n: int
    n_incomplete: int
    n_unscored: int
    reps: int
    ccc: Estimate
    within_sd: Estimate
    flip_rate: Estimate
    items_flipped: Estimate

    def as_json(self) -> dict[str, Any]:
        """The fields, JSON-ready."""
        counts = {name: getattr(self, name) for name in ("n", "n_incomplete", "n_unscored", "reps")}
        return counts | {
            name: getattr(self, name).as_json() for name in ("ccc", "within_sd", "flip_rate", "items_flipped")
        }


def retest(
    ratings: Ratings,
    *,
    threshold: float | None = None,
    higher_is_better: bool = True,
    draws: Draws | None = None,
) -> Retest:
    """Test-retest agreement of repeated scores (rows: repetitions, columns: items).

    `ccc`: the overall concordance correlation of all repetitions (Barnhart, Haber and Song 2002, Biometrics
    58, 1020; Lin's for two), over items that have every score. `within_sd`: √(pooled variance within items)
    (Bland and Altman 1996, BMJ 312, 1654). `flip_rate`: the chance that two repetitions of an item fall on
    different sides of `threshold`; `items_flipped`: the share of items for which any two do. `draws`
    resamples items; it must be made for all columns.
    """
    table = _table(ratings)
    reps = table.shape[0]
    given = (~np.isnan(table)).sum(axis=0).astype(np.float64)
    usable = (given > 1).astype(np.float64)
    complete = given == reps
    flips = _flips(table, given, threshold, higher_is_better=higher_is_better)

    def over_usable(kernel: Kernel) -> Estimate:
        return estimate(kernel, len(given), draws=draws, undefined="undefined: no item has two scores")

    def share(values: Array) -> Estimate:
        return over_usable(lambda w: w @ (values * usable) / (w @ usable))

    centred = np.where(np.isnan(table), 0, table)
    centred = np.where(np.isnan(table), 0, centred - centred.sum(axis=0) / np.maximum(given, 1))
    squares, degrees = (centred**2).sum(axis=0), np.maximum(given - 1, 0)
    if flips is None:
        flip_rate = items_flipped = Estimate(why="not computed: no threshold")
    else:
        flip_rate, items_flipped = share(flips), share((flips > 0).astype(np.float64))
    return Retest(
        n=int(usable.sum()),
        n_incomplete=int((usable * ~complete).sum()),
        n_unscored=int((1 - usable).sum()),
        reps=reps,
        ccc=_overall_ccc(table, complete, draws),
        within_sd=over_usable(lambda w: np.sqrt(w @ squares / (w @ degrees))),
        flip_rate=flip_rate,
        items_flipped=items_flipped,
    )


def attainable(reliability_a: Estimate, reliability_b: Estimate) -> Estimate:
    """The agreement that two noisy judges can reach at all: √(reliability a · reliability b).

    Spearman 1904 (attenuation): a correlation of two measurements cannot exceed it. The reliabilities are
    test-retest agreements (`Retest.ccc`) or α of each side alone. The ends of the interval combine the ends
    of both, so it is wider than 95 %.
    """
    if reliability_a.value is None or reliability_b.value is None:
        return Estimate(why="undefined: the test-retest agreement of a side is unknown")
    if reliability_a.value < 0 or reliability_b.value < 0:
        return Estimate(why="undefined: the test-retest agreement of a side is below 0")
    value = math.sqrt(reliability_a.value * reliability_b.value)
    if reliability_a.interval is None or reliability_b.interval is None:
        return Estimate(value)
    low, high = (
        math.sqrt(max(0, left) * max(0, right))
        for left, right in zip(reliability_a.interval, reliability_b.interval, strict=True)
    )
    return Estimate(value, low, high)


# -------------------------------------------------------------------------------------------------- kernels


def _flips(table: Array, given: Array, threshold: float | None, *, higher_is_better: bool) -> Array | None:
    """For each item the share of pairs of repetitions with different verdicts."""
    if threshold is None:
        return None
    wall = round(threshold, DECIMALS)
    passed = ((table >= wall) if higher_is_better else (table <= wall)).sum(axis=0)  # False where not scored
    return np.asarray(2 * passed * (given - passed) / np.maximum(given * (given - 1), 1))


def _overall_ccc(table: Array, complete: npt.NDArray[np.bool_], draws: Draws | None) -> Estimate:
    """2·Σ cov / ((J−1)·Σ var + Σ (mean difference)²), sums over the pairs of J repetitions."""
    if int(complete.sum()) < LEAST_PAIRS:
        return Estimate(why="undefined: fewer than 3 items with every score")
    reps = table.shape[0]
    kept = table[:, complete]
    middle = kept.mean()
    shifted = kept - middle
    together = shifted.sum(axis=0)

    def kernel(weights: Array) -> Array:
        inside = weights[:, complete]
        total = inside.sum(axis=1)
        means = inside @ shifted.T / total[:, None]
        variances = inside @ (shifted**2).T / total[:, None] - means**2
        sum_of_means = means.sum(axis=1)
        covariances = (inside @ together**2) / total - sum_of_means**2 - variances.sum(axis=1)
        gaps = reps * (means**2).sum(axis=1) - sum_of_means**2
        found = covariances / ((reps - 1) * variances.sum(axis=1) + np.maximum(gaps, 0))
        lost = (total == 0) | np.any([is_constant(rep, inside) for rep in kept], axis=0)
        return np.where(lost, np.nan, np.clip(found, -1, 1))

    return estimate(kernel, len(complete), draws=draws)


def _table(ratings: Ratings) -> Array:
    table = np.array([[np.nan if score is None else score for score in row] for row in ratings], dtype=np.float64)
    if table.ndim != 2 or len(table) < 2:  # noqa: PLR2004  # agreement takes two
        raise ValueError("ratings: expected two or more rows (raters or repetitions) of the same items")
    if np.isinf(table).any():
        raise ValueError("ratings: expected finite numbers, None or NaN")
    return np.round(table, DECIMALS)
