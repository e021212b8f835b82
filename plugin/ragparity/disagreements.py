"""Why two backends differ on a row: the scores side by side, the claims aligned, and a word for the cause."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from ragparity.core.matching import pairs_in_any_order
from ragparity.core.outcome import Failed, Undefined
from ragparity.core.text import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragparity.core.definition import Definition, Relation
    from ragparity.results import Record

Cause = Literal["definition", "parsing", "unscored", "judge_variance", "version", "judgement"]
"""Why two scores of a row differ.

`unscored`: a side has no score; `parsing`: because its answer could not be read. `version`: a side runs on a release
that its definition was not written for. `judge_variance`: the repetitions of each side reach the other's. `definition`:
the two measure different things, or make different scores of the same verdicts. `judgement`: one definition, and other
claims or verdicts.
"""
PIECES = ("claims", "response_claims", "reference_claims", "passages")
"""Where a record keeps judged pieces, in the order in which they are looked for."""
ALIKE = Fraction(1, 2)
"""Share of common words from which on two claims are taken for the same."""
UNREADABLE = frozenset({"malformed", "ambiguous", "out_of_range", "truncated", "truncated_reasoning", "empty"})
"""Failures of an answer that came but could not be read."""
MOST_CLAIMS = 40
"""Claims of a side up to which the best pairing of all is looked for (its time grows with the third power); beyond,
the most alike are paired one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row on which two sides differ. `difference` is a − b, nothing where a side has no score."""

    id: str
    difference: float | None
    cause: Cause
    because: str
    a: Mapping[str, Any]
    b: Mapping[str, Any]
    pieces: Sequence[Mapping[str, Any]] = ()

    def as_json(self) -> dict[str, Any]:
        """The fields; `pieces` only where there are any."""
        found = {name: getattr(self, name) for name in ("id", "difference", "cause", "because")}
        found |= {"a": dict(self.a), "b": dict(self.b)}
        return found | ({"pieces": [dict(one) for one in self.pieces]} if self.pieces else {})


def pieces_of(record: Record) -> list[dict[str, Any]]:
    """The judged pieces of a record (of its first repetition): text, verdict, reason, and number of the passage."""
    detail = record.outcome.detail
    if repetitions := detail.get("by_repetition"):
        detail = repetitions[0]
    name = next((one for one in PIECES if isinstance(detail.get(one), list) and detail[one]), None)
    if name is None:
        return []
    found = []
    for one in detail[name]:
        if isinstance(one, dict):
            text = one.get("claim", one.get("text"))
            piece = {"text": text, "verdict": one.get("verdict"), "reason": one.get("reason")}
            found.append(piece | ({"passage": one["passage"]} if name == "passages" and "passage" in one else {}))
    return found


def overlap(a: str, b: str) -> Fraction:
    """Dice's coefficient over the words of two texts, each as often as it occurs; 0..1.

    >>> overlap("The pump runs.", "the pump stops")
    Fraction(2, 3)
    """
    left, right = Counter(words(a)), Counter(words(b))
    total = left.total() + right.total()
    return Fraction(2 * (left & right).total(), total) if total else Fraction(0)


def aligned(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of both sides, those of one meaning together; `decides` marks what can move the scores apart.

    Passages meet by number, claims by the words they share: the pairing with the most common words, none below one
    half. What has no partner stands alone.
    """
    weights = [[_weight(one, other) for other in b] for one in a]
    partner = pairs_in_any_order(weights) if max(len(a), len(b)) <= MOST_CLAIMS else _nearest_first(weights)
    alone = sorted(set(range(len(b))) - set(partner.values()))
    met = [(one, b[partner[at]] if at in partner else None) for at, one in enumerate(a)]
    return [_together(one, other) for one, other in (*met, *((None, b[at]) for at in alone))]


def _nearest_first(weights: Sequence[Sequence[Fraction | None]]) -> dict[int, int]:
    found: dict[int, int] = {}
    taken: set[int] = set()
    every = [
        (weight, row, at) for row, line in enumerate(weights) for at, weight in enumerate(line) if weight is not None
    ]
    for _, row, at in sorted(every, key=lambda one: (-one[0], one[1], one[2])):
        if row not in found and at not in taken:
            found[row] = at
            taken.add(at)
    return found


def _weight(a: Mapping[str, Any], b: Mapping[str, Any]) -> Fraction | None:
    if "passage" in a and "passage" in b:
        return Fraction(1) if a["passage"] == b["passage"] else None
    shared = overlap(str(a["text"]), str(b["text"]))
    return shared if shared >= ALIKE else None


def _together(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> dict[str, Any]:
    decides = a is None or b is None or bool(a["verdict"]) is not bool(b["verdict"])
    return {"a": a and dict(a), "b": b and dict(b), "decides": decides}


def side_of(record: Record, replies: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """One side of a row for `agreement.json`: the score or why there is none, and what was said."""
    outcome = record.outcome
    found: dict[str, Any] = {"score": record.score, "status": record.status}
    if isinstance(outcome, Failed):
        found |= {"error": str(outcome.kind), "reason": outcome.message, "raw": outcome.raw}
    else:
        found["reason"] = outcome.reason
        if isinstance(outcome, Undefined):
            found["why"] = outcome.why
    for name in ("ratings", "questions", "repetitions", "raw"):
        if name in outcome.detail and name not in found:
            found[name] = outcome.detail[name]
    if replies:
        found["replies"] = [dict(one) for one in replies]
    return found


def explained(
    a: Record,
    b: Record,
    *,
    names: tuple[str, str],
    related: Relation,
    definitions: tuple[Definition, Definition],
    outdated: tuple[str, str],
    difference: float | None,
    replies: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]] = ((), ()),
) -> Row:
    """A row with its cause. `difference` is that of the compared numbers; `outdated` names releases not written for."""
    left, right = pieces_of(a), pieces_of(b)
    pieces = aligned(left, right) if left and right else []
    cause, because = _cause(
        a, b, names=names, related=related, definitions=definitions, outdated=outdated, pieces=pieces
    )
    if not pieces:
        pieces = [_together(one, None) for one in left] + [_together(None, one) for one in right]
    return Row(
        id=a.id, difference=difference, cause=cause, because=because,
        a=side_of(a, replies[0]), b=side_of(b, replies[1]), pieces=pieces,
    )  # fmt: skip


def _cause(
    a: Record,
    b: Record,
    *,
    names: tuple[str, str],
    related: Relation,
    definitions: tuple[Definition, Definition],
    outdated: tuple[str, str],
    pieces: Sequence[Mapping[str, Any]],
) -> tuple[Cause, str]:
    sides = tuple(zip(names, (a, b), strict=True))
    missing = [(name, one) for name, one in sides if one.score is None]
    if missing:
        unreadable = all(isinstance(one.outcome, Failed) and one.outcome.kind in UNREADABLE for _, one in missing)
        return ("parsing" if unreadable else "unscored"), "; ".join(f"{name}: {_why(one)}" for name, one in missing)
    late = [f"{name} runs on {release}" for name, release in zip(names, outdated, strict=True) if release]
    if late:
        return "version", f"{' and '.join(late)}, which the definition was not written for"
    spans = [one.outcome.detail.get("repetitions", ()) for _, one in sides]
    if all(len(span) > 1 for span in spans) and min(spans[0]) <= max(spans[1]) and min(spans[1]) <= max(spans[0]):
        return "judge_variance", "the repetitions of each side reach those of the other"
    if related != "same":
        return "definition", "the definitions differ"
    if pieces and not any(one["decides"] for one in pieces):
        notes = [one.differs for one in definitions if one.differs]
        said = f": {'; '.join(notes)}" if notes else ""
        return "definition", f"the same pieces with the same verdicts give different scores{said}"
    return "judgement", _judgement(names, pieces)


def _judgement(names: tuple[str, str], pieces: Sequence[Mapping[str, Any]]) -> str:
    if not pieces:
        return "the judge answered the two differently"
    both = [one for one in pieces if one["a"] and one["b"]]
    turned = sum(one["decides"] for one in both)
    alone = [(name, sum(1 for one in pieces if not one[other])) for name, other in zip(names, "ba", strict=True)]
    parts = [f"{turned} of {len(both)} common pieces have different verdicts"] if both else []
    parts += [f"{count} stand in {name} alone" for name, count in alone if count]
    return ", ".join(parts)


def _why(record: Record) -> str:
    outcome = record.outcome
    if isinstance(outcome, Failed):
        return f"{outcome.kind}: {' '.join(outcome.message.split())[:200]}"
    return f"undefined: {outcome.why}" if isinstance(outcome, Undefined) else "scored"
