"""Scores against people's labels: how far a judge may be trusted, and what people would have said about all rows.

Labels are read once into shares of their scale, 0 (bad) to 1 (good). A row without a label takes no part in the
comparison, but its score does in the estimates for all rows. A row that the judge could not score is left out and
counted: a failure is not a disagreement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from ragparity.agreement import (
    Draws,
    Estimate,
    auroc,
    balanced_accuracy,
    confusion,
    kappa,
    krippendorff_alpha,
    mean_absolute_error,
    mean_difference,
    pair,
    ppi_mean,
    proportion,
    raw_agreement,
    rogan_gladen,
    spearman,
)
from ragparity.agreement.resampling import LEAST_PAIRS
from ragparity.agreement.summary import ENOUGH_TO_JUDGE
from ragparity.core.errors import ConfigError
from ragparity.results import reaches

GOOD = frozenset({"true", "yes", "pass", "passed", "good", "correct"})
BAD = frozenset({"false", "no", "fail", "failed", "bad", "incorrect"})
MIDDLE = 0.5
"""Share of the scale from which on a label is good, and the threshold of a score where none is set."""
STARS, TENS, HUNDRED = 5.0, 10.0, 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of one column by row, as shares of `scale`. `unreadable` are values that are no label."""

    column: str
    scale: tuple[float, float]
    shares: Mapping[str, float]
    n_missing: int = 0
    unreadable: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def binary(self) -> bool:
        """Whether every label is the lowest or the highest."""
        return set(self.shares.values()) <= {0.0, 1.0}

    def as_json(self) -> dict[str, Any]:
        """What was read, in counts."""
        return {
            "column": self.column,
            "scale": list(self.scale),
            "n_labelled": len(self.shares),
            "n_missing": self.n_missing,
            "n_unreadable": len(self.unreadable),
            "notes": list(self.notes),
        }


def read_labels(name: str, values: Mapping[str, Any], scale: tuple[float, float] | None = None) -> Labels:
    """Labels from a column: numbers, true and false, pass and fail. `None` and blank are missing.

    Without a `scale` it is taken from the labels: 0 to 1, 1 to 5, or 0 to 5, 10 or 100. Raises `ConfigError` for a
    column that no row has, that has no label in it, or whose scale cannot be told.

    >>> read_labels("human", {"a": "yes", "b": False, "c": None}).shares
    {'a': 1.0, 'b': 0.0}
    >>> read_labels("stars", {"a": 1, "b": "5", "c": 3}).shares
    {'a': 0.0, 'b': 1.0, 'c': 0.5}
    """
    numbers: dict[str, float] = {}
    unreadable: dict[str, Any] = {}
    missing = 0
    for row, value in values.items():
        if value is None or (isinstance(value, str) and not value.strip()) or value != value:  # noqa: PLR0124  # NaN
            missing += 1
        elif (number := _number(value, scale)) is None:
            unreadable[row] = value
        else:
            numbers[row] = number
    if not numbers:
        if unreadable:
            row, value = next(iter(unreadable.items()))
            raise ConfigError(
                f"labels {name}: no value is a label; row {row} has {str(value)[:60]!r}; expected numbers, "
                "true or false, pass or fail"
            )
        raise ConfigError(f"labels {name}: no row has such a column; name the column that holds people's labels")
    low, high = scale or _scale_of(name, list(numbers.values()))
    notes = []
    if scale is None and (low, high) != (0.0, 1.0):
        notes.append(f"read as a scale of {low:g} to {high:g}; --label-scale sets another")
    for row, number in list(numbers.items()):
        if not low <= number <= high:
            unreadable[row] = values[row]
            del numbers[row]
    if unreadable:
        row, value = next(iter(unreadable.items()))
        notes.append(
            f"no labels from {low:g} to {high:g}: {len(unreadable)} values, first in row {row}: {str(value)[:60]!r}"
        )
    shares = {row: (number - low) / (high - low) for row, number in numbers.items()}
    return Labels(
        column=name, scale=(low, high), shares=shares, n_missing=missing, unreadable=unreadable, notes=notes
    )  # fmt: skip


def _number(value: Any, scale: tuple[float, float] | None) -> float | None:
    low, high = scale or (0.0, 1.0)
    if isinstance(value, bool):
        return high if value else low
    if isinstance(value, str):
        word = value.strip().casefold()
        if word in GOOD or word in BAD:
            return high if word in GOOD else low
        value = word
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _scale_of(name: str, seen: Sequence[float]) -> tuple[float, float]:
    low, high = min(seen), max(seen)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if all(one == int(one) for one in seen) and low >= 0:
        if low >= 1 and high <= STARS:
            return 1.0, STARS
        top = next((top for top in (STARS, TENS, HUNDRED) if high <= top), None)
        if top is not None:
            return 0.0, top
    raise ConfigError(
        f"labels {name}: values from {low:g} to {high:g} are on no scale that is known here; "
        "say which: --label-scale LO,HI"
    )


# -- people among themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """One or several annotators. A row's label is the mean of those that it has."""

    annotators: Sequence[Labels]

    @property
    def shares(self) -> dict[str, float]:
        """The label of every row that has one, 0 to 1, in the order in which rows were met."""
        found: dict[str, list[float]] = {}
        for one in self.annotators:
            for row, share in one.shares.items():
                found.setdefault(row, []).append(share)
        return {row: math.fsum(given) / len(given) for row, given in found.items()}

    def ceiling(self) -> dict[str, Any] | None:
        """How far people agree with one another, which no judge can be asked to exceed; nothing for one annotator."""
        if len(self.annotators) < 2:  # noqa: PLR2004  # one agrees with nobody
            return None
        pairs = [_two_people(a, b) for a, b in combinations(self.annotators, 2)]
        rows = list(self.shares)
        table = [[one.shares.get(row) for row in rows] for one in self.annotators]
        draws = Draws(len(rows)) if len(rows) >= LEAST_PAIRS else None
        return {"pairs": pairs, "krippendorff_alpha": krippendorff_alpha(table, draws=draws).as_json()}

    def as_json(self) -> dict[str, Any]:
        """The annotators, and how far they agree."""
        return {"annotators": [one.as_json() for one in self.annotators], "human_human": self.ceiling()}


def _two_people(a: Labels, b: Labels) -> dict[str, Any]:
    joined = pair(dict(a.shares), dict(b.shares), names=(a.column, b.column))
    draws = Draws(joined.n) if joined.n >= LEAST_PAIRS else None
    left, right = ([int(one >= MIDDLE) for one in side] for side in (joined.a, joined.b))
    found = {
        "raw_agreement": raw_agreement(left, right, draws=draws),
        "kappa": kappa(left, right, draws=draws),
        "spearman": spearman(joined.a, joined.b, draws=draws),
    }
    return {"a": a.column, "b": b.column, "n": joined.n, **{name: one.as_json() for name, one in found.items()}}


# -- judges against people

STATISTICS = (
    "balanced_accuracy", "raw_agreement", "kappa", "auroc", "spearman", "mean_diff", "mae", "human_pass_rate",
    "judge_pass_rate", "corrected_pass_rate", "human_mean", "corrected_mean",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One evaluator against people; `estimates` are those of `STATISTICS`.

    `n` rows have a score and a label; `n_unscored` have a label and no score, `n_unlabelled` a score and no label.
    A score passes from `threshold` on (up to it, where lower is better), a label from the middle of its scale on.
    `spearman` and `auroc` are above 0 and above 1/2 where the better scores go with the better labels. `mean_diff` is
    score − label, both 0 to 1. `judged` and `human` are the scores and labels of those `n` rows as shares, 0 (bad) to 1
    (good), `judged_alone` and `human_alone` those of rows that have no other.
    """

    evaluator: str
    n: int
    n_unscored: int
    n_unlabelled: int
    threshold: float
    estimates: Mapping[str, Estimate]
    counts: Mapping[str, Any]
    higher_is_better: bool = True
    notes: Sequence[str] = ()
    judged: Sequence[float] = field(default=(), repr=False)
    human: Sequence[float] = field(default=(), repr=False)
    judged_alone: Sequence[float] = field(default=(), repr=False)
    human_alone: Sequence[float] = field(default=(), repr=False)

    def as_json(self) -> dict[str, Any]:
        """One flat object."""
        numbers = ("evaluator", "n", "n_unscored", "n_unlabelled", "threshold")
        return {
            **{name: getattr(self, name) for name in numbers},
            **{name: one.value for name, one in self.estimates.items()},
            "ci95": {name: list(one.interval) for name, one in self.estimates.items() if one.interval},
            "why": {name: one.why for name, one in self.estimates.items() if one.why},
            "confusion": dict(self.counts),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstPeople:
    """Judges by name, each against the same people."""

    people: People
    judges: Mapping[str, Calibration]

    def as_json(self) -> dict[str, Any]:
        """The people, and what was found about the judges of a comparison, which are its backends."""
        return {**self.people.as_json(), "backends": {name: one.as_json() for name, one in self.judges.items()}}


def calibrate(
    evaluator: str,
    scores: Mapping[str, float | None],
    people: People,
    *,
    threshold: float | None = None,
    higher_is_better: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Calibration:
    """One evaluator against people's labels; fewer than three pairs give counts and reasons, no statistics.

    `bounds` are the ends of the score; without a `threshold` it is the middle between them. The labelled rows count
    as a random sample of all rows: the corrected pass rate (Rogan and Gladen) and the corrected mean (PPI++) rest on
    that.
    """
    low, high = bounds if all(map(math.isfinite, bounds)) else _ends(scores.values())
    wall = threshold if threshold is not None else low + MIDDLE * (high - low)
    labels = people.shares
    both = [row for row, score in scores.items() if score is not None and row in labels]
    rest = [score for row, score in scores.items() if score is not None and row not in labels]
    unscored = [labels[row] for row, score in scores.items() if score is None and row in labels]

    def share(score: float) -> float:
        return (score - low) / (high - low) if higher_is_better else (high - score) / (high - low)

    def passes(score: float) -> int:
        return int(reaches(score, wall, higher_is_better=higher_is_better))

    given = [scores[row] for row in both]
    judged = [share(one) for one in given if one is not None]
    verdicts = [passes(one) for one in given if one is not None]
    human = [labels[row] for row in both]
    good = [int(one >= MIDDLE) for one in human]
    judged_alone = [share(one) for one in rest]
    notes = _notes(len(both), len(unscored), len(rest), threshold, wall)
    counts: dict[str, Any] = {}
    if len(both) < LEAST_PAIRS:
        reason = Estimate(why=f"undefined: {len(both)} rows with a score and a label, fewer than {LEAST_PAIRS}")
        estimates = dict.fromkeys(STATISTICS, reason)
    else:
        groups = [clusters.get(row, f"row {row}") for row in both] if clusters else None
        shared = groups if groups is not None and len(set(groups)) < len(groups) else None
        draws = Draws(len(both), seed=seed, clusters=shared)
        counts = confusion(verdicts, good).as_json()
        others = [passes(one) for one in rest]
        estimates = {
            "balanced_accuracy": balanced_accuracy(verdicts, good, draws=draws),
            "raw_agreement": raw_agreement(verdicts, good, draws=draws),
            "kappa": kappa(verdicts, good, draws=draws),
            "auroc": auroc(judged, good, draws=draws),
            "spearman": spearman(judged, human, draws=draws),
            "mean_diff": mean_difference(judged, human, clusters=shared),
            "mae": mean_absolute_error(judged, human, draws=draws),
            "human_pass_rate": proportion(np.array(good, dtype=np.float64), draws if shared else None),
            "judge_pass_rate": proportion(np.array([*verdicts, *others], dtype=np.float64)),
            "corrected_pass_rate": rogan_gladen(others, verdicts, good),
            "human_mean": ppi_mean(human, judged, []),
            "corrected_mean": ppi_mean(human, judged, judged_alone),
        }
    return Calibration(
        evaluator=evaluator, n=len(both), n_unscored=len(unscored), n_unlabelled=len(rest), threshold=wall,
        estimates=estimates, counts=counts, higher_is_better=higher_is_better, notes=notes, judged=judged, human=human,
        judged_alone=judged_alone, human_alone=unscored,
    )  # fmt: skip


def _notes(n: int, unscored: int, rest: int, threshold: float | None, wall: float) -> list[str]:
    notes = []
    if unscored:
        notes.append(f"left out: {unscored} labelled rows that have no score")
    if n < ENOUGH_TO_JUDGE:
        notes.append(f"{n} pairs, fewer than {ENOUGH_TO_JUDGE}: no more than a first look")
    if threshold is None:
        notes.append(f"no threshold is set: scores pass from the middle on, {wall:g}")
    if not rest:
        notes.append("every scored row has a label, so nothing has to be estimated for others")
    return notes


def _ends(scores: Iterable[float | None]) -> tuple[float, float]:
    seen = [one for one in scores if one is not None]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    return (low, high) if low < high else (low, low + 1)
