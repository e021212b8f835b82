"""The scores of one metric by several backends, compared pair by pair as far as their definitions allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ragparity.agreement import Agreement, Draws, Estimate, agree, attainable, krippendorff_alpha, pair, retest
from ragparity.agreement.resampling import LEAST_PAIRS, RESAMPLES
from ragparity.core.outcome import Scored
from ragparity.definitions import definition_of, outdated, relation, why_related
from ragparity.disagreements import explained

if TYPE_CHECKING:
    from ragparity.agreement import Retest
    from ragparity.calibration import AgainstPeople
    from ragparity.core.definition import Definition, Relation, ScaleKind
    from ragparity.core.ports import Metric
    from ragparity.disagreements import Row
    from ragparity.results import Record

TOLERANCE = 0.1
"""Difference of two scores up to which they count as the same, in the unit of the score."""
MOST_ROWS = 200
"""Rows beyond tolerance that are kept for each pair, the largest differences first, and as many without a score."""
DUST = 1e-9
AS_SHARES = "the ranges differ, so scores are compared as shares of each range"
MIRRORED = "{} counts the other way round, so its scores are mirrored"


@dataclass(frozen=True, kw_only=True)
class Side:
    """One backend: its metric, and a record for each row it met, by id."""

    backend: str
    evaluator: str
    metric: Metric
    records: Mapping[str, Record]
    threshold: float | None = None

    @cached_property
    def definition(self) -> Definition:
        """What it measures."""
        return definition_of(self.metric)

    @cached_property
    def scores(self) -> dict[str, float | None]:
        """The score of every row, nothing where it has none."""
        return {row: one.score for row, one in self.records.items()}

    @property
    def name(self) -> str:
        """Backend and metric, for sentences."""
        return f"{self.backend}/{self.metric.name}"

    def figures(self) -> dict[str, Any]:
        """Counts, mean and definition."""
        scored = [one for one in self.scores.values() if one is not None]
        kinds = [one.status for one in self.records.values()]
        return {
            "evaluator": self.evaluator,
            "metric": repr(self.metric),
            "version": self.metric.version,
            "judge": next((one.judge for one in self.records.values() if one.judge), None),
            "definition": self.definition.as_json(),
            "n_total": len(kinds),
            "n_scored": len(scored),
            "n_undefined": kinds.count("undefined"),
            "n_failed": kinds.count("failed"),
            "mean": math.fsum(scored) / len(scored) if scored else None,
        }

    def retest(self) -> Retest | None:
        """How far it agrees with itself, where rows were scored several times."""
        repeated = [
            list(one.outcome.detail.get("repetitions", ()))
            for one in self.records.values()
            if isinstance(one.outcome, Scored)
        ]
        reps = max((len(one) for one in repeated), default=0)
        if reps < 2:  # noqa: PLR2004  # one value repeats nothing
            return None
        table = [[one[at] if at < len(one) else None for one in repeated] for at in range(reps)]
        draws = Draws(len(repeated)) if len(repeated) >= LEAST_PAIRS else None
        return retest(table, threshold=self.threshold, higher_is_better=self.metric.higher_is_better, draws=draws)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a comparison is made. `clusters` maps rows to their question, `replies` evaluator and row to raw replies."""

    tolerance: float = TOLERANCE
    force: bool = False
    seed: int = 0
    resamples: int = RESAMPLES
    clusters: Mapping[str, str] = field(default_factory=dict)
    replies: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two backends: how their definitions relate, the statistics that follow from that, and where they differ.

    `agreement` is nothing where the two only share a name and nobody insisted. `n_beyond` counts the rows that both
    scored with a difference above the tolerance; `rows` holds them, the largest first, then those that one side alone
    has scored. `scores_a` and `scores_b` are the scores by row as they were compared (in one direction, as shares where
    the ranges differ), `bounds` their ends.
    """

    a: str
    b: str
    relation: Relation
    because: str
    n: int
    n_unscored_a: int
    n_unscored_b: int
    agreement: Agreement | None = None
    attainable: Estimate | None = None
    n_beyond: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    notes: Sequence[str] = ()
    scores_a: Mapping[str, float | None] = field(default_factory=dict, repr=False)
    scores_b: Mapping[str, float | None] = field(default_factory=dict, repr=False)
    bounds: tuple[float, float] = (0.0, 1.0)

    def as_json(self) -> dict[str, Any]:
        """One flat object: counts, relation, statistics, rows."""
        found: dict[str, Any] = {
            "a": self.a,
            "b": self.b,
            "n": self.n,
            "n_unscored_a": self.n_unscored_a,
            "n_unscored_b": self.n_unscored_b,
            **(self.agreement.as_json() if self.agreement else {"relation": self.relation, "refused": True}),
            "because": self.because,
            "n_beyond": self.n_beyond,
            "causes": dict(self.causes),
            "rows": [one.as_json() for one in self.rows],
        }
        found["notes"] = [*(found.get("notes") or ()), *self.notes]
        if self.attainable is not None:
            found["attainable"] = self.attainable.as_json()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One metric on all its backends. `left_out` says why a backend is not there; `alpha` stands for three or more."""

    name: str
    sides: Sequence[Side]
    pairs: Sequence[Pair]
    left_out: Mapping[str, str] = field(default_factory=dict)
    alpha: Estimate | None = None
    alpha_note: str = ""
    retests: Mapping[str, Retest] = field(default_factory=dict)
    people: AgainstPeople | None = None

    def as_json(self) -> dict[str, Any]:
        """The metric's entry of `agreement.json`."""
        backends = {one.backend: one.figures() for one in self.sides}
        for backend, found in self.retests.items():
            backends[backend]["test_retest"] = found.as_json()
        content: dict[str, Any] = {
            "backends": backends,
            "left_out": dict(self.left_out),
            "pairs": [one.as_json() for one in self.pairs],
        }
        if self.alpha is not None:
            content["krippendorff_alpha"] = {**self.alpha.as_json(), "note": self.alpha_note}
        if self.people is not None:
            content["people"] = self.people.as_json()
        return content


def compare(
    name: str,
    sides: Sequence[Side],
    terms: Terms,
    *,
    left_out: Mapping[str, str],
    people: AgainstPeople | None = None,
) -> Comparison:
    """Every pair of the sides, Krippendorff's α over those that measure the same, and each side against itself."""
    retests = {one.backend: found for one in sides if (found := one.retest()) is not None}
    pairs = [_pair(a, b, terms, retests) for a, b in combinations(sides, 2)]
    alpha, note = _alpha(sides, terms)
    return Comparison(
        name=name, sides=sides, pairs=pairs, left_out=left_out, alpha=alpha, alpha_note=note, retests=retests,
        people=people,
    )  # fmt: skip


def _alpha(sides: Sequence[Side], terms: Terms) -> tuple[Estimate | None, str]:
    """Krippendorff's α over the largest group of three or more sides with one definition."""
    groups = [[other for other in sides if relation(one.definition, other.definition) == "same"] for one in sides]
    group = max(groups, key=len, default=[])
    if len(sides) < 3 or len(group) < 3:  # noqa: PLR2004  # two backends are a pair
        return None, ""
    rows = [row for row in group[0].records if all(row in one.records for one in group)]
    table = [[one.scores[row] for row in rows] for one in group]
    draws = None
    if len(rows) >= LEAST_PAIRS:
        draws = Draws(len(rows), resamples=terms.resamples, seed=terms.seed, clusters=_clusters(rows, terms.clusters))
    level = "nominal" if group[0].definition.scale == "binary" else "interval"
    said = f"{level}, over {', '.join(one.backend for one in group)}"
    return krippendorff_alpha(table, level="nominal" if level == "nominal" else "interval", draws=draws), said


def _pair(a: Side, b: Side, terms: Terms, retests: Mapping[str, Retest]) -> Pair:
    related = relation(a.definition, b.definition)
    because = why_related(a.definition, b.definition, (a.name, b.name))
    left, right, notes = _comparable(a, b, related)
    joined = pair(left, right, names=(a.backend, b.backend))
    bounds = _bounds(a, b, [*joined.a, *joined.b], related)
    counts: dict[str, Any] = {
        "a": a.backend, "b": b.backend, "relation": related, "because": because, "n": joined.n,
        "n_unscored_a": joined.n_unscored_a, "n_unscored_b": joined.n_unscored_b,
        "scores_a": left, "scores_b": right, "bounds": bounds,
    }  # fmt: skip
    if related == "name" and not terms.force:
        return Pair(**counts, notes=["not compared; --force compares ranks nevertheless"])
    scale, threshold = _scale(a, b, related)
    groups = _clusters(joined.ids, terms.clusters)
    found = agree(
        joined, scale=scale, relation=related, threshold=threshold, higher_is_better=a.metric.higher_is_better,
        levels=a.definition.levels or None if related == "same" and scale == "levels" else None,
        bounds=bounds, clusters=None if groups is None else dict(zip(joined.ids, groups, strict=True)),
        seed=terms.seed, resamples=terms.resamples,
    )  # fmt: skip
    beyond, missing = _beyond(left, right, terms.tolerance)
    if _verdict_beside_share(a, b, related):  # one half and a no say the same, not all of it: those come last
        beyond.sort(key=lambda found: (left[found[0]] == threshold) is (right[found[0]] == threshold))
    late = (outdated(a.definition), outdated(b.definition))

    def told(row: str, difference: float | None) -> Row:
        return explained(
            a.records[row], b.records[row], names=(a.backend, b.backend), related=related,
            definitions=(a.definition, b.definition), outdated=late, difference=difference,
            replies=(terms.replies.get((a.evaluator, row), ()), terms.replies.get((b.evaluator, row), ())),
        )  # fmt: skip

    rows = [told(row, difference) for row, difference in beyond[:MOST_ROWS]]
    rows += [told(row, None) for row in missing[:MOST_ROWS]]
    causes: dict[str, int] = {}
    for one in rows:
        causes[one.cause] = causes.get(one.cause, 0) + 1
    reach = None
    if a.backend in retests and b.backend in retests:
        reach = attainable(retests[a.backend].ccc, retests[b.backend].ccc)
    return Pair(
        **counts, agreement=found, attainable=reach, n_beyond=len(beyond), causes=causes, rows=rows, notes=notes
    )


def on_one_scale(sides: Sequence[Side]) -> tuple[dict[str, dict[str, float | None]], list[str]]:
    """The scores of every backend by row, for one picture of all, and what was done to them, in sentences.

    All are in the direction of the first side, and shares of their ranges where any two are compared as such.
    """
    shares = any(_as_shares(a, b, relation(a.definition, b.definition)) for a, b in combinations(sides, 2))
    found, notes = {}, [AS_SHARES] if shares else []
    for one in sides:
        turned = one.metric.higher_is_better is not sides[0].metric.higher_is_better
        found[one.backend] = _scores(one, shares=shares, turned=turned)
        notes += [MIRRORED.format(one.backend)] if turned else []
    return found, notes


def _comparable(
    a: Side, b: Side, related: Relation
) -> tuple[dict[str, float | None], dict[str, float | None], list[str]]:
    """The scores of both sides on one direction and, where the scales differ, as shares of their ranges."""
    shares = _as_shares(a, b, related)
    turned = a.metric.higher_is_better is not b.metric.higher_is_better
    notes = [AS_SHARES] if shares else []
    notes += [MIRRORED.format(b.backend)] if turned else []
    return _scores(a, shares=shares, turned=False), _scores(b, shares=shares, turned=turned), notes


def _scores(one: Side, *, shares: bool, turned: bool) -> dict[str, float | None]:
    """The scores of a side, as shares of its range and the other way round where that is wanted."""
    found, (low, high) = one.scores, one.metric.bounds
    if not (math.isfinite(low) and math.isfinite(high)):
        shares, low, high = False, 0.0, 0.0
    if shares:
        found = {row: None if score is None else (score - low) / (high - low) for row, score in found.items()}
        low, high = 0.0, 1.0
    if turned:
        found = {row: None if score is None else low + high - score for row, score in found.items()}
    return found


def _as_shares(a: Side, b: Side, related: Relation) -> bool:
    """Whether the ranges of two definitions differ, so that scores are compared as shares of them."""
    finite = all(map(math.isfinite, (*a.metric.bounds, *b.metric.bounds)))
    return related != "same" and a.metric.bounds != b.metric.bounds and finite


def _scale(a: Side, b: Side, related: Relation) -> tuple[ScaleKind, float | None]:
    """Which statistics a pair gets, and at which threshold.

    A verdict on a whole is compared with a share as "all of it": only a full share passes.
    """
    kinds = {a.definition.scale, b.definition.scale}
    threshold = a.threshold
    if threshold is not None and _as_shares(a, b, related):
        threshold = None  # it is written for one of the two ranges
    if kinds == {"binary"}:
        return "binary", threshold
    if _verdict_beside_share(a, b, related):
        return "binary", 1.0 if a.metric.higher_is_better else 0.0
    return (a.definition.scale if len(kinds) == 1 else "continuous"), threshold


def _verdict_beside_share(a: Side, b: Side, related: Relation) -> bool:
    kinds = {a.definition.scale, b.definition.scale}
    return related != "same" and "binary" in kinds and len(kinds) > 1


def _bounds(a: Side, b: Side, seen: Sequence[float], related: Relation) -> tuple[float, float]:
    ends = [*a.metric.bounds, *b.metric.bounds]
    if not all(map(math.isfinite, ends)):
        low, high = min(seen, default=0.0), max(seen, default=1.0)
        return (low, high) if low < high else (low, low + 1)
    if _as_shares(a, b, related):
        return 0.0, 1.0
    return min(ends), max(ends)


def _clusters(rows: Sequence[str], questions: Mapping[str, str]) -> list[str] | None:
    """The question of every row, where some rows share one; a row without one stands alone."""
    found = [questions.get(row, f"row {row}") for row in rows]
    return found if len(set(found)) < len(found) else None


def _beyond(
    left: Mapping[str, float | None], right: Mapping[str, float | None], tolerance: float
) -> tuple[list[tuple[str, float]], list[str]]:
    """Rows with a larger difference than the tolerance, the largest first, and rows that one side alone scored."""
    beyond: list[tuple[str, float]] = []
    missing = []
    for row, one in left.items():
        other = right.get(row)
        if one is not None and other is not None:
            if abs(one - other) > tolerance + DUST:
                beyond.append((row, one - other))
        elif row in right and (one is None) is not (other is None):
            missing.append(row)
    return sorted(beyond, key=lambda found: -abs(found[1])), missing
