"""Two backends on the same rows: the statistics that their definitions allow, in one value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ragparity.agreement import scores as continuous
from ragparity.agreement import verdicts as categorical
from ragparity.agreement.resampling import DECIMALS, LEAST_PAIRS, RESAMPLES, TOO_FEW, Array, Draws, Estimate, proportion
from ragparity.agreement.scores import Limits
from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from ragparity.agreement.pairs import Pairs
    from ragparity.agreement.verdicts import McNemar

Scale = Literal["continuous", "levels", "binary"]
Relation = Literal["same", "near", "name"]
"""Both sides measure one estimand on one scale; one construct; or only share a name."""

Flags = npt.NDArray[np.bool_]

ENOUGH_TO_JUDGE = 30
"""Pairs below which no word such as "substantial" is used."""
CEILING = 0.9
"""The share of one value above which correlations are not interpretable."""
FEW_CLUSTERS = 20

_MOST_LEVELS = 20  # observed values above which "levels" are no levels
_MOST_WORK = 1e10  # resamples · (different pairs)²: some seconds of Kendall's tau
_LEAST_RESAMPLES = 200
_WORDS = ((0.0, "no"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))
_BEST_WORD = "almost perfect"
_SPREAD = {"correlations and CCC": 0.8, "kappa": 1.2, "the mean difference": 0.4, "raw agreement": 0.7}
_LOOSE = {"near": "are near, not the same", "name": "only share a name"}
_ABSOLUTE = (
    "mean_diff",
    "mae",
    "exact_agreement",
    "slope",
    "hodges_lehmann",
    "wilcoxon_p",
    "pearson",
    "ccc",
    "icc",
)
_ENOUGH_TO_LOOK, _ENOUGH_FOR_BIAS, _ENOUGH_FOR_KAPPA = 50, 100, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two sides agree on the rows that both scored.

    `estimates` holds every statistic by name, also those that are undefined or not allowed (`why` says so):
    mean_a, mean_b, mean_diff, mae, exact_agreement, slope, hodges_lehmann, wilcoxon_p, pearson, spearman,
    kendall, ccc, icc; level_agreement, kappa_linear, kappa_quadratic, ac2 (scores in levels or bins); with a
    threshold pass_rate_a, pass_rate_b, raw_agreement, kappa, ac1. `level_table` and `verdict_table` count
    pairs: rows a, columns b. `notes` are cautions in whole sentences, `words` a verdict or `None`, `hint` what
    the number of pairs is good for.
    """

    n: int
    n_unscored_a: int
    n_unscored_b: int
    n_only_a: int
    n_only_b: int
    names: tuple[str, str]
    relation: Relation
    scale: Scale
    estimates: Mapping[str, Estimate]
    limits: Limits
    cuts: tuple[float, ...] = ()
    level_table: tuple[tuple[int, ...], ...] = ()
    threshold: float | None = None
    verdict_table: tuple[tuple[int, ...], ...] = ()
    mcnemar: McNemar | None = None
    n_clusters: int | None = None
    resamples: int = 0
    seed: int = 0
    notes: tuple[str, ...] = ()
    words: str | None = None
    hint: str = ""

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def as_json(self) -> dict[str, Any]:
        """One flat object: counts, every statistic as a number or null, `ci95` and `why` by statistic."""
        return {
            "n": self.n,
            "n_unscored_a": self.n_unscored_a,
            "n_unscored_b": self.n_unscored_b,
            "n_only_a": self.n_only_a,
            "n_only_b": self.n_only_b,
            "names": list(self.names),
            "relation": self.relation,
            "scale": self.scale,
            **{name: one.value for name, one in self.estimates.items()},
            "limits_of_agreement": None if self.limits.low is None else [self.limits.low, self.limits.high],
            "limits_kind": self.limits.kind,
            "ci95": {name: list(one.interval) for name, one in self.estimates.items() if one.interval},
            "why": {name: one.why for name, one in self.estimates.items() if one.why}
            | ({"limits_of_agreement": self.limits.why} if self.limits.why else {}),
            "cuts": list(self.cuts),
            "level_table": [list(row) for row in self.level_table],
            "threshold": self.threshold,
            "verdict_table": [list(row) for row in self.verdict_table],
            "mcnemar": self.mcnemar.as_json() if self.mcnemar else None,
            "n_clusters": self.n_clusters,
            "resamples": self.resamples,
            "seed": self.seed,
            "notes": list(self.notes),
            "words": self.words,
            "hint": self.hint,
        }


def agree(
    pairs: Pairs,
    *,
    scale: Scale,
    relation: Relation = "same",
    threshold: float | None = None,
    higher_is_better: bool = True,
    levels: Sequence[float] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    clusters: Mapping[str, Hashable] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Agreement:
    """Every statistic that may be read for this pair of backends, with intervals.

    `relation` decides what may be read: with `same`, absolute agreement (bias, limits, error, concordance);
    otherwise only ranks and scores in levels or bins, since two definitions need not share a level.
    `threshold` turns scores into verdicts, at or above it (at or below where lower is better) passes; with
    `scale="binary"` it is half way between the `bounds` by default. Levels are those of `levels`, else the
    scores that occur; continuous and unequal scales are cut into three bins of the range (a quarter, a half,
    a quarter). `clusters` maps each id to what its rows share (the question): whole clusters are then
    resampled. The order of the pairs does not matter; the same `seed` gives the same intervals. More than
    about 2,200 different pairs get fewer resamples, as `resamples` of the result says. Raises
    `ConfigError` for an unknown scale or relation, unusable levels or bounds, or an id without a cluster.
    """
    _check_words(scale, relation)
    _check_range(levels, bounds)
    rows = sorted(range(pairs.n), key=lambda row: pairs.ids[row])
    a, b = (np.array([side[row] for row in rows], dtype=np.float64) for side in (pairs.a, pairs.b))
    labels = _cluster_labels([pairs.ids[row] for row in rows], clusters)
    if threshold is None and scale == "binary":
        threshold = sum(bounds) / 2
    work = len(set(zip(pairs.a, pairs.b, strict=True))) ** 2
    used = min(resamples, max(_LEAST_RESAMPLES, int(_MOST_WORK / max(1, work))))
    draws = Draws(pairs.n, resamples=used, seed=seed, clusters=labels) if pairs.n >= LEAST_PAIRS else None
    cuts = _cuts(scale, relation, np.concatenate([a, b]), levels, bounds)
    absolute = relation == "same"
    barred = f"not computed: the definitions {_LOOSE[relation]}" if relation != "same" else ""
    estimates = _absolute(a, b, labels, draws) if absolute else dict.fromkeys(_ABSOLUTE, Estimate(why=barred))
    found: dict[str, Estimate] = {
        "mean_a": continuous.mean(a, clusters=labels),
        "mean_b": continuous.mean(b, clusters=labels),
        **estimates,
        "spearman": continuous.spearman(a, b, draws=draws),
        "kendall": continuous.kendall(a, b, draws=draws),
    }
    level_table: tuple[tuple[int, ...], ...] = ()
    if cuts:
        codes = categorical.into_levels(a, cuts), categorical.into_levels(b, cuts)
        found |= _categories(*codes, len(cuts) + 1, draws)
        level_table = categorical.confusion_table(*codes, len(cuts) + 1)
    verdict_table: tuple[tuple[int, ...], ...] = ()
    mcnemar = None
    if threshold is not None:
        passed = tuple(_passes(side, threshold, higher_is_better=higher_is_better) for side in (a, b))
        found |= _verdicts(passed[0], passed[1], labels, draws)
        verdict_table = categorical.confusion_table(passed[0], passed[1], 2)
        mcnemar = categorical.mcnemar(passed[0], passed[1])
    if pairs.n < LEAST_PAIRS:
        found = {name: one if one.why == barred else Estimate(why=TOO_FEW) for name, one in found.items()}
    independent = pairs.n if labels is None else len(set(labels))
    at_ceiling = _ceilings(a, b, pairs.names)
    return Agreement(
        n=pairs.n,
        n_unscored_a=pairs.n_unscored_a,
        n_unscored_b=pairs.n_unscored_b,
        n_only_a=pairs.n_only_a,
        n_only_b=pairs.n_only_b,
        names=pairs.names,
        relation=relation,
        scale=scale,
        estimates=found,
        limits=continuous.limits_of_agreement(a, b) if absolute else Limits(why=barred),
        cuts=cuts,
        level_table=level_table,
        threshold=threshold,
        verdict_table=verdict_table,
        mcnemar=mcnemar,
        n_clusters=None if labels is None else independent,
        resamples=used if draws else 0,
        seed=seed,
        notes=(*at_ceiling, *_cautions(pairs, relation, labels, used, resamples)),
        words=_words(found, scale, independent) if not at_ceiling else None,
        hint=sample_size_hint(independent, "pairs" if labels is None else "clusters"),
    )


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p values, in order, for having looked at all of them (Holm 1979, Scand. J. Stat. 6, 65).

    `None` (no test) stays `None` and does not count.

    >>> holm([0.01, None, 0.04, 0.03])
    (0.03, None, 0.06, 0.06)
    """
    order = sorted((index for index, p in enumerate(p_values) if p is not None), key=lambda i: p_values[i] or 0.0)
    adjusted: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for step, index in enumerate(order):
        reached = max(reached, min(1.0, (len(order) - step) * (p_values[index] or 0.0)))
        adjusted[index] = reached
    return tuple(adjusted)


def sample_size_hint(n: int, unit: str = "pairs") -> str:
    """What `n` independent pairs (or clusters of them, by `unit`) are good for, in a sentence or two.

    The half-widths are those of a simulation with five-level scores that correlate at .74 (0.8/√n for
    correlations and concordance, 1.2/√n κ in three bins, 0.4/√n bias, 0.7/√n raw agreement); near a ceiling
    they are up to half as wide again.

    >>> sample_size_hint(100)
    '100 pairs: expect about ±.08 on correlations and CCC, ±.12 on kappa, ±.04 on the mean difference, \
±.07 on raw agreement. Enough for a claim about bias; kappa or a difference between two backends takes 200.'
    """
    if n < LEAST_PAIRS:
        return f"Fewer than 3 {unit}: nothing can be said; 50 are enough to look, 100 for a claim about bias."
    widths = ", ".join(f"±{half / math.sqrt(n):.2f} on {what}".replace("±0.", "±.") for what, half in _SPREAD.items())
    if n < _ENOUGH_TO_LOOK:
        use = "Too few for more than a first look: take 50, and 100 for a claim about bias."
    elif n < _ENOUGH_FOR_BIAS:
        use = "Enough to look; a claim about bias takes 100, kappa or a difference between two backends 200."
    elif n < _ENOUGH_FOR_KAPPA:
        use = "Enough for a claim about bias; kappa or a difference between two backends takes 200."
    else:
        use = "Enough for kappa and for a difference between two backends."
    return f"{n} {unit}: expect about {widths}. {use}"


# -------------------------------------------------------------------------------------------------- pieces


def _absolute(a: Array, b: Array, labels: list[str] | None, draws: Draws | None) -> dict[str, Estimate]:
    clustered = Estimate(why="not computed: rows in clusters are not independent")
    return {
        "mean_diff": continuous.mean_difference(a, b, clusters=labels),
        "mae": continuous.mean_absolute_error(a, b, draws=draws),
        "exact_agreement": continuous.exact_agreement(a, b, draws=draws),
        "slope": continuous.slope(a, b, draws=draws),
        "hodges_lehmann": continuous.hodges_lehmann(a, b) if labels is None else clustered,
        "wilcoxon_p": continuous.wilcoxon(a, b) if labels is None else clustered,
        "pearson": continuous.pearson(a, b, draws=draws),
        "ccc": continuous.ccc(a, b, draws=draws),
        "icc": continuous.icc(a, b, draws=draws),
    }


def _categories(
    a: categorical.Codes, b: categorical.Codes, categories: int, draws: Draws | None
) -> dict[str, Estimate]:
    return {
        "level_agreement": categorical.raw_agreement(a, b, draws=draws),
        "kappa_linear": categorical.kappa(a, b, categories, weighting="linear", draws=draws),
        "kappa_quadratic": categorical.kappa(a, b, categories, weighting="quadratic", draws=draws),
        "ac2": categorical.gwet(a, b, categories, weighting="quadratic", draws=draws),
    }


def _verdicts(a: Flags, b: Flags, labels: list[str] | None, draws: Draws | None) -> dict[str, Estimate]:
    clustered = None if labels is None else draws
    return {
        "pass_rate_a": proportion(a.astype(np.float64), clustered),
        "pass_rate_b": proportion(b.astype(np.float64), clustered),
        "raw_agreement": categorical.raw_agreement(a, b, draws=draws),
        "kappa": categorical.kappa(a, b, draws=draws),
        "ac1": categorical.gwet(a, b, draws=draws),
    }


def _passes(scores: Array, threshold: float, *, higher_is_better: bool) -> Flags:
    wall = round(threshold, DECIMALS)  # as the scores of `Pairs`
    return scores >= wall if higher_is_better else scores <= wall


def _cuts(
    scale: Scale, relation: Relation, seen: Array, levels: Sequence[float] | None, bounds: tuple[float, float]
) -> tuple[float, ...]:
    if scale == "binary":
        return ()
    low, high = bounds
    thirds = tuple(low + cut * (high - low) for cut in categorical.THREE_BINS)
    if scale == "continuous" or relation != "same":
        return thirds
    wanted = levels if levels is not None else np.unique(seen).tolist()
    return categorical.cuts_between(wanted) if 1 < len(wanted) <= _MOST_LEVELS or levels is not None else thirds


def _ceilings(a: Array, b: Array, names: tuple[str, str]) -> list[str]:
    notes = []
    for side, name in ((a, names[0]), (b, names[1])):
        values, counts = np.unique(side, return_counts=True)
        if len(values) and counts.max() >= CEILING * len(side):
            share, value = counts.max() / len(side), values[counts.argmax()]
            notes.append(f"ceiling: {share:.0%} of the scores of {name} are {value:g}, correlations not interpretable")
    return notes


def _cautions(pairs: Pairs, relation: Relation, labels: list[str] | None, used: int, wanted: int) -> list[str]:
    notes = []
    if relation != "same":
        notes.append(f"the definitions {_LOOSE[relation]}: only ranks and binned scores are compared")
    if pairs.n_unscored_a or pairs.n_unscored_b:
        notes.append(
            f"left out, not compared as 0: {pairs.n_unscored_a} rows that {pairs.names[0]} and "
            f"{pairs.n_unscored_b} that {pairs.names[1]} did not score"
        )
    if pairs.n_only_a or pairs.n_only_b:
        notes.append(
            f"rows of one side alone: {pairs.n_only_a} of {pairs.names[0]}, {pairs.n_only_b} of {pairs.names[1]}"
        )
    if pairs.n < ENOUGH_TO_JUDGE:
        notes.append(f"{pairs.n} pairs, fewer than {ENOUGH_TO_JUDGE}: too few for a verdict in words")
    if labels is not None and len(set(labels)) < FEW_CLUSTERS:
        notes.append(f"only {len(set(labels))} clusters: below {FEW_CLUSTERS}, intervals by resampling are too short")
    if used < wanted and pairs.n >= LEAST_PAIRS:
        notes.append(f"{used} resamples instead of {wanted}, for time")
    return notes


def _words(found: Mapping[str, Estimate], scale: Scale, independent: int) -> str | None:
    """The words of Landis and Koch 1977 for both ends of an interval; none where there are too few pairs."""
    name = "ccc" if found["ccc"].interval else "kappa" if scale == "binary" else "kappa_quadratic"
    interval = found[name].interval if name in found else None
    if interval is None or independent < ENOUGH_TO_JUDGE:
        return None
    low, high = (next((word for top, word in _WORDS if end <= top), _BEST_WORD) for end in interval)
    span = low if low == high else f"{low} to {high}"
    return f"{span} agreement ({name}, words of Landis and Koch 1977)"


def _check_words(scale: str, relation: str) -> None:
    for name, value, known in (("scale", scale, get_args(Scale)), ("relation", relation, get_args(Relation))):
        if value not in known:
            raise ConfigError(f"agreement: {name} is {value!r}; expected {', '.join(known)}")


def _check_range(levels: Sequence[float] | None, bounds: tuple[float, float]) -> None:
    if not (math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] < bounds[1]):
        raise ConfigError(f"agreement: bounds are {bounds}; expected the lowest and the highest score")
    if levels is not None and len(set(levels)) < 2:  # noqa: PLR2004  # one level is no scale
        raise ConfigError(f"agreement: levels are {list(levels)}; expected at least two")


def _cluster_labels(ids: Sequence[str], clusters: Mapping[str, Hashable] | None) -> list[str] | None:
    if clusters is None:
        return None
    missing = [row for row in ids if row not in clusters]
    if missing:
        raise ConfigError(f"agreement: row {missing[0]} has no cluster ({len(missing)} rows have none); give each one")
    return [str(clusters[row]) for row in ids]
