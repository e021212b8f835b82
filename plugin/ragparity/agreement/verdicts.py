"""How far two columns of verdicts or levels agree, and how well scores follow labels.

Levels are codes 0, 1, …, k−1 with a fixed k: categories that nobody used still count as categories, so a
statistic does not change its scale with the rows. `into_levels` makes codes out of scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ragparity.agreement.resampling import DECIMALS, Array, Draws, Estimate, Scores, columns, estimate, proportion

THREE_BINS = (0.25, 0.75)
"""Cuts for scores between 0 and 1 that have no levels of their own: [0, .25), [.25, .75), [.75, 1]."""
ONE_CATEGORY = "undefined: one side uses a single category"
NO_PAIRS = "undefined: no pairs"
ONE_LABEL = "undefined: every label is the same"

Weighting = Literal["none", "linear", "quadratic"]
Codes = Sequence[int] | Sequence[bool] | npt.NDArray[np.intp] | npt.NDArray[np.bool_]


def into_levels(scores: Scores, cuts: Sequence[float]) -> npt.NDArray[np.intp]:
    """Codes 0..len(cuts): how many cuts lie at or below each score.

    >>> into_levels([0.0, 0.25, 0.74, 1.0], THREE_BINS).tolist()
    [0, 1, 1, 2]
    """
    (values,) = columns(scores)
    return np.searchsorted(np.round(np.asarray(cuts, dtype=np.float64), DECIMALS), np.round(values, DECIMALS), "right")


def cuts_between(levels: Sequence[float]) -> tuple[float, ...]:
    """Cuts half way between neighbouring levels: a score off the levels goes to the nearest one.

    >>> cuts_between([0, 0.5, 1])
    (0.25, 0.75)
    """
    ordered = sorted(set(levels))
    return tuple((low + high) / 2 for low, high in pairwise(ordered))


def confusion_table(a: Codes, b: Codes, categories: int) -> tuple[tuple[int, ...], ...]:
    """Counts: row i, column j holds the pairs where a says i and b says j."""
    left, right = _codes(a, b, categories)
    counts = np.bincount(left * categories + right, minlength=categories**2)
    return tuple(tuple(int(cell) for cell in row) for row in counts.reshape(categories, categories))


def raw_agreement(a: Codes, b: Codes, *, draws: Draws | None = None) -> Estimate:
    """The share of pairs in one category, with Wilson's interval (clusters: resampled)."""
    left, right = columns(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    return proportion((left == right).astype(np.float64), draws)


def kappa(
    a: Codes, b: Codes, categories: int = 2, *, weighting: Weighting = "none", draws: Draws | None = None
) -> Estimate:
    """Cohen's κ (1960), or weighted κ (1968) with disagreement |i − j| or (i − j)²; −1..1.

    1 − observed / expected disagreement. Where one side uses a single category it is 0 whatever the other
    side says, hence undefined here. Near a ceiling it is low although the sides agree (the κ paradox of
    Feinstein and Cicchetti 1990): read it beside `gwet` and the raw agreement.
    """
    left, right = _codes(a, b, categories)
    cost = 1 - _weights(categories, weighting)
    cells = _one_hot(left * categories + right, categories**2)

    def kernel(weights: Array) -> Array:
        table = (weights @ cells).reshape(-1, categories, categories)
        rows, cols, total = table.sum(axis=2), table.sum(axis=1), weights.sum(axis=1)
        observed = (table * cost).sum(axis=(1, 2)) / total
        expected = ((rows @ cost) * cols).sum(axis=1) / total**2
        alone = (rows.max(axis=1) == total) | (cols.max(axis=1) == total)
        return np.asarray(np.where(alone, np.nan, 1 - observed / expected))

    return estimate(kernel, len(left), draws=draws, undefined=ONE_CATEGORY if len(left) else NO_PAIRS)


def gwet(
    a: Codes, b: Codes, categories: int = 2, *, weighting: Weighting = "none", draws: Draws | None = None
) -> Estimate:
    """Gwet's AC1 (2008, Br. J. Math. Stat. Psychol. 61, 29), with a weighting AC2 (Gwet 2014); −1..1.

    (p − e)/(1 − e) with weighted agreement p, e = Σw/(k(k−1)) · Σ π(1 − π), and π the mean share of a
    category over both sides. It stays stable at extreme prevalence, where κ does not.
    """
    left, right = _codes(a, b, categories)
    agree = _weights(categories, weighting)
    cells = _one_hot(left * categories + right, categories**2)
    factor = float(agree.sum()) / (categories * (categories - 1))

    def kernel(weights: Array) -> Array:
        shares = (weights @ cells).reshape(-1, categories, categories) / weights.sum(axis=1)[:, None, None]
        observed = (shares * agree).sum(axis=(1, 2))
        each = (shares.sum(axis=2) + shares.sum(axis=1)) / 2
        expected = factor * (each * (1 - each)).sum(axis=1)
        return np.asarray((observed - expected) / (1 - expected))

    return estimate(kernel, len(left), draws=draws, undefined=NO_PAIRS)


@dataclass(frozen=True, slots=True)
class McNemar:
    """Pairs where only a passes and only b passes, and the exact two-sided p of equal pass rates."""

    only_a: int
    only_b: int
    p: float

    def as_json(self) -> dict[str, Any]:
        """The fields, JSON-ready."""
        return {"only_a": self.only_a, "only_b": self.only_b, "p": self.p}


def mcnemar(a: Codes, b: Codes) -> McNemar:
    """McNemar 1947, exact: the binomial test of the discordant pairs against one half.

    It compares pass rates only: many discordant pairs in both directions give a large p.

    >>> mcnemar([True] * 6 + [False], [False] * 6 + [True])
    McNemar(only_a=6, only_b=1, p=0.125)
    """
    left, right = _codes(a, b, 2)
    only_a, only_b = int(((left == 1) & (right == 0)).sum()), int(((left == 0) & (right == 1)).sum())
    discordant = only_a + only_b
    term = tail = 1
    for k in range(min(only_a, only_b)):
        term = term * (discordant - k) // (k + 1)
        tail += term
    if discordant == 0 or only_a == only_b:
        return McNemar(only_a, only_b, 1.0)
    return McNemar(only_a, only_b, min(1.0, 2 * tail / 2**discordant))


# --------------------------------------------------------------------------------------- scores and labels


def auroc(scores: Scores, labels: Codes, *, draws: Draws | None = None) -> Estimate:
    """The chance that a row labelled 1 scores above one labelled 0, ties counted half; 0..1.

    The area under the ROC curve as Mann and Whitney's U / (n₁·n₀) (Hanley and McNeil 1982).
    """
    x, y = columns(scores, np.asarray(labels, dtype=np.float64))
    _binary(y)
    order = np.argsort(x, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(x[order]) > 0])) if len(x) else order

    def kernel(weights: Array) -> Array:
        ranked = weights[:, order]
        positive = np.add.reduceat(ranked * y[order], starts, axis=1)
        negative = np.add.reduceat(ranked * (1 - y[order]), starts, axis=1)
        below = np.cumsum(negative, axis=1) - negative / 2
        return np.asarray((positive * below).sum(axis=1) / (positive.sum(axis=1) * negative.sum(axis=1)))

    return estimate(kernel, len(x), draws=draws, undefined=ONE_LABEL if len(x) else NO_PAIRS)


@dataclass(frozen=True, slots=True)
class Confusion:
    """Verdicts against labels: passed rightly and wrongly, failed wrongly and rightly."""

    true_pass: int
    false_pass: int
    false_fail: int
    true_fail: int

    @property
    def sensitivity(self) -> float | None:
        """The share of good rows that pass, `None` without good rows."""
        good = self.true_pass + self.false_fail
        return self.true_pass / good if good else None

    @property
    def specificity(self) -> float | None:
        """The share of bad rows that fail, `None` without bad rows."""
        bad = self.true_fail + self.false_pass
        return self.true_fail / bad if bad else None

    def as_json(self) -> dict[str, Any]:
        """Counts and rates, JSON-ready."""
        counts = {name: getattr(self, name) for name in ("true_pass", "false_pass", "false_fail", "true_fail")}
        return {**counts, "sensitivity": self.sensitivity, "specificity": self.specificity}


def confusion(verdicts: Codes, labels: Codes) -> Confusion:
    """Count verdicts (passes or not) against labels (good or not)."""
    (true_fail, false_fail), (false_pass, true_pass) = confusion_table(verdicts, labels, 2)
    return Confusion(true_pass, false_pass, false_fail, true_fail)


def balanced_accuracy(verdicts: Codes, labels: Codes, *, draws: Draws | None = None) -> Estimate:
    """The mean of sensitivity and specificity (Brodersen et al. 2010); 0..1, chance is one half."""
    given, wanted = _codes(verdicts, labels, 2)
    cells = _one_hot(2 * given + wanted, 4)

    def kernel(weights: Array) -> Array:
        true_fail, false_fail, false_pass, true_pass = (weights @ cells).T
        return np.asarray((true_pass / (true_pass + false_fail) + true_fail / (true_fail + false_pass)) / 2)

    return estimate(kernel, len(given), draws=draws, undefined=ONE_LABEL if len(given) else NO_PAIRS)


# -------------------------------------------------------------------------------------------------- helpers


def _codes(a: Codes, b: Codes, categories: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    if categories < 2:  # noqa: PLR2004  # with one category there is nothing to agree about
        raise ValueError(f"categories: expected at least 2, got {categories}")
    left, right = columns(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    for side in (left, right):
        strange = side[(side != np.floor(side)) | (side < 0) | (side >= categories)]
        if len(strange):
            raise ValueError(f"codes: expected whole numbers 0 to {categories - 1}, got {strange[0]:g}")
    return left.astype(np.intp), right.astype(np.intp)


def _binary(labels: Array) -> None:
    strange = labels[(labels != 0) & (labels != 1)]
    if len(strange):
        raise ValueError(f"labels: expected 0 or 1, got {strange[0]:g}; say from which value on a label counts as 1")


def _weights(categories: int, weighting: Weighting) -> Array:
    """Agreement of every two categories, 1 on the diagonal."""
    index = np.arange(categories)
    apart = np.abs(index[:, None] - index) / (categories - 1)
    if weighting == "none":
        return np.eye(categories)
    return np.asarray(1 - (apart if weighting == "linear" else apart**2))


def _one_hot(codes: npt.NDArray[np.intp], size: int) -> Array:
    return np.asarray(codes[:, None] == np.arange(size), dtype=np.float64)
