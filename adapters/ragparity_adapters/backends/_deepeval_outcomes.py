"""From a measured metric of DeepEval to an outcome: its own number, every judged piece, and the written policies.

Where the verdicts give the same number, the exact fraction takes its place, so that no float dust shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import without_claims
from ragparity_adapters.backends._deepeval_judge import BORDERLINE
from ragparity_adapters.backends._ragas_outcomes import SAME, average_precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.policy import Policies
    from ragparity.core.sample import Sample

SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Reading:
    """The exact score, or nothing where nothing was judged; the sentence for it; and every judged piece."""

    exact: Fraction | None
    reason: str
    detail: Mapping[str, Any] = field(default_factory=dict)


def outcome(name: str, metric: Any, sample: Sample, policies: Policies, about: Mapping[str, Any]) -> Scored | Undefined:
    """The outcome of a sample; `about` says which class gave the number, and goes into `detail`."""
    number = float(metric.score)
    found = READERS[name](metric, sample)
    detail = {**found.detail, **about, "raw": metric.score}
    if found.exact is None:
        return without_claims(policies, found.reason, detail)
    exact = float(found.exact)
    if abs(exact - number) > SAME:
        return Scored(number, found.reason, {**detail, "by_the_answers": exact})
    return Scored(exact, found.reason, detail)


def _piece(number: int, text: str, verdict: Any, *, passes: bool) -> dict[str, Any]:
    piece = {"id": number, "claim": text, "verdict": passes, "reason": verdict.reason}
    return piece | ({"said": BORDERLINE} if verdict.verdict == BORDERLINE else {})


def _share(pieces: Sequence[Mapping[str, Any]], of: str, that: str, without: str, **more: Any) -> Reading:
    if not pieces:
        return Reading(None, without, more)
    passed = sum(1 for one in pieces if one["verdict"])
    return Reading(
        Fraction(passed, len(pieces)), f"{passed} of {len(pieces)} {of} {that}", {"claims": list(pieces), **more}
    )


def _faithfulness(metric: Any, _sample: Sample) -> Reading:
    passing = ("yes",) if metric.penalize_ambiguous_claims else ("yes", BORDERLINE)
    pieces = [
        _piece(number, text, one, passes=one.verdict in passing)
        for number, (text, one) in enumerate(zip(metric.claims, metric.verdicts, strict=True), start=1)
    ]
    that = "are supported by the contexts" if len(passing) == 1 else "are not contradicted by the contexts"
    return _share(pieces, "claims", that, "the judge finds no claims", truths=list(metric.truths))


def _relevancy(metric: Any, _sample: Sample) -> Reading:
    pieces = [
        _piece(number, text, one, passes=one.verdict in ("yes", BORDERLINE))
        for number, (text, one) in enumerate(zip(metric.statements, metric.verdicts, strict=True), start=1)
    ]
    return _share(pieces, "statements", "serve the question or may do so", "the judge finds no statements")


def _recall(metric: Any, sample: Sample) -> Reading:
    """DeepEval's judge splits the reference itself and repeats no sentence.

    So a verdict gets the text of its sentence only where there are as many sentences as verdicts.
    """
    sentences = [one for one in SENTENCE_END.split((sample.reference or "").strip()) if one.strip()]
    held = [one.verdict == "yes" for one in metric.verdicts]
    if len(sentences) == len(held):
        pieces = [
            _piece(number, text, one, passes=one.verdict == "yes")
            for number, (text, one) in enumerate(zip(sentences, metric.verdicts, strict=True), start=1)
        ]
        return _share(pieces, "sentences of the reference", "are in the contexts", "the reference makes no claims")
    said = [{"verdict": one.verdict == "yes", "reason": one.reason} for one in metric.verdicts]
    if not said:
        return Reading(None, "the reference makes no claims")
    reason = f"{sum(held)} of {len(held)} sentences of the reference are in the contexts"
    return Reading(Fraction(sum(held), len(held)), reason, {"sentences": said})


def _density(metric: Any, _sample: Sample) -> Reading:
    judged = [(place, one) for place, of in enumerate(metric.verdicts_list) for one in of.verdicts]
    pieces = [
        {**_piece(number, one.statement, one, passes=one.verdict == "yes"), "passage": place}
        for number, (place, one) in enumerate(judged, start=1)
    ]
    return _share(pieces, "statements of the contexts", "serve the question", "the contexts make no statements")


def _passages(metric: Any, sample: Sample) -> list[dict[str, Any]]:
    return [
        {"passage": place, "text": text, "verdict": one.verdict == "yes", "reason": one.reason}
        for place, (text, one) in enumerate(zip(sample.retrieved_contexts or (), metric.verdicts, strict=True))
    ]


def _precision(metric: Any, sample: Sample) -> Reading:
    passages = _passages(metric, sample)
    useful = [one["verdict"] for one in passages]
    reason = f"{sum(useful)} of {len(useful)} passages are useful"
    return Reading(average_precision(useful), reason, {"passages": passages})


def _hallucination(metric: Any, sample: Sample) -> Reading:
    passages = _passages(metric, sample)
    agreed = sum(1 for one in passages if one["verdict"])
    reason = f"{agreed} of {len(passages)} passages are not contradicted"
    return Reading(Fraction(agreed, len(passages)), reason, {"passages": passages})


READERS: Mapping[str, Callable[[Any, Sample], Reading]] = {
    "Faithfulness": _faithfulness,
    "AnswerRelevancy": _relevancy,
    "ContextPrecision": _precision,
    "ContextRecall": _recall,
    "ContextRelevance": _density,
    "Hallucination": _hallucination,
}
"""By the name of the metric."""
