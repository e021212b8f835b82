"""From what Ragas returned, and the answers it was given, to an outcome under the written policies.

A score is Ragas' own number. Where the captured answers give the same number within `SAME`, the exact fraction
takes its place, so that an epsilon or float dust does not show. NaN and None are never scores: they become what
their cause is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from ragparity.core.errors import MalformedVerdict
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import without_claims
from ragparity.core.text import normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ragparity.core.policy import Policies
    from ragparity.core.sample import Sample
    from ragparity_adapters.backends._ragas_catalog import Api, Entry
    from ragparity_adapters.backends._ragas_judge import Exchange, Session

SAME = 1e-6
"""How near Ragas' number must be to the exact one."""
LABELS = {"pass": 1.0, "yes": 1.0, "true": 1.0, "fail": 0.0, "no": 0.0, "false": 0.0}
"""The numbers of categorical results; any other label has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that is known after Ragas is done with a sample."""

    entry: Entry
    api: Api
    settings: Mapping[str, Any]
    sample: Sample
    policies: Policies
    session: Session
    value: Any
    reason: str | None = None


@dataclass(slots=True)
class Reading:
    """What the captured answers say: the exact score where it follows from them, why, and every judged piece."""

    exact: Fraction | None = None
    reason: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    undefined: str = ""
    rounded: int | None = None


Read: TypeAlias = "Callable[[Found], Reading]"


def outcome(found: Found, about: Mapping[str, Any]) -> Scored | Undefined:
    """The outcome of one sample; `about` says which class gave the number, and goes into `detail`.

    Raises the judge's error where Ragas hid it behind a NaN.
    """
    label, number = as_number(found.value)
    detail = {**about, "raw": label if label is not None else plain(found.value)}
    if found.policies.upstream:
        return _upstream(found, number, {**detail, "answers": answers_in_detail(found.session)})
    failed = found.session.error
    if failed is not None and not _one_rating_will_do(found):
        ratings = [one.answer for one in found.session.of("rating")]
        failed.detail = {**failed.detail, **about, **({"readable_ratings": ratings} if ratings else {})}
        raise failed
    reading = READERS.get(found.entry.family, _plain)(found)
    detail = {**reading.detail, **detail}
    if label is not None:
        detail["label"] = label
    if extra := found.session.extra_pieces:
        detail["extra_verdicts"] = extra
    if reading.undefined:
        return Undefined(reading.undefined, reading.reason, detail)
    if number is None and _one_rating_will_do(found) and reading.exact is not None:
        number = float(reading.exact)
    if number is None:
        why = "categorical" if label is not None else "no_number"
        return Undefined(why, f"Ragas gave {detail['raw']!r}, which is no number", detail)
    return _scored(number, found, reading, detail)


def _scored(number: float, found: Found, reading: Reading, detail: dict[str, Any]) -> Scored:
    value = number + 0.0
    if reading.exact is not None:
        exact = float(reading.exact)
        if reading.rounded is not None:
            detail |= {"rounded_by_ragas_to": reading.rounded, "unrounded": exact}
        elif abs(exact - number) <= SAME:
            value = exact
        else:
            detail["by_the_answers"] = exact
    if _one_rating_will_do(found):
        detail |= {"policy": "one_rating", "unreadable": str(found.session.error)}
    return Scored(value, found.reason or reading.reason or None, detail)


def _upstream(found: Found, number: float | None, detail: dict[str, Any]) -> Scored | Undefined:
    if number is None:
        if found.session.error is not None:
            raise found.session.error
        return Undefined("no_number", f"Ragas gave {detail['raw']!r}", {**detail, "policy": "upstream"})
    return Scored(number, found.reason, {**detail, "policy": "upstream"})


def _one_rating_will_do(found: Found) -> bool:
    ratings = found.session.of("rating")
    return found.entry.family == "ratings" and found.policies.one_rating == "use" and len(ratings) == 1


def as_number(value: Any) -> tuple[str | None, float | None]:
    """The label, where a result is one, and the number, where it has a finite one.

    >>> as_number([0.5]), as_number("pass"), as_number(None), as_number(float("nan"))
    ((None, 0.5), ('pass', 1.0), (None, None), (None, None))
    """
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return value, LABELS.get(value.strip().casefold())
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None, None
    return None, number if math.isfinite(number) else None


def plain(value: Any) -> Any:
    """A result as JSON can hold it: NaN and infinities as words."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    try:
        number = float(value)
    except (TypeError, ValueError):
        return repr(value)
    return number if math.isfinite(number) else str(number)


def answers_in_detail(session: Session) -> list[dict[str, Any]]:
    """Every answer that Ragas was given, in order."""
    return [{"kind": one.kind, "answer": _dumped(one.answer)} for one in session.exchanges]


def _dumped(answer: Any) -> Any:
    return answer.model_dump() if hasattr(answer, "model_dump") else answer


# -- known before Ragas is done


def nothing_to_judge(exchange: Exchange, entry: Entry, sample: Sample, policies: Policies) -> Scored | Undefined | None:
    """The outcome where an answer leaves nothing to judge, else `None`."""
    if exchange.kind == "claims" and not _listed(exchange.answer):
        match entry.family:
            case "claims" | "noise":
                return without_claims(policies, "the judge finds no claims", {})
            case "factual" | "correctness":
                return _no_claims_to_compare(sample, policies)
            case "topics":
                return Undefined("no_topics", "the judge finds no topic in the conversation")
            case "entities" if exchange.data.get("text") == sample.reference:
                return Undefined("no_entities", "the reference names no entity")
            case _:
                return None
    if exchange.kind == "attributions" and not exchange.answer.classifications:
        return without_claims(policies, "the reference makes no claims", {})
    if exchange.kind == "questions" and entry.family == "summary" and not exchange.answer.questions:
        return Undefined("no_questions", "the judge finds nothing to ask about the reference contexts")
    return None


def _no_claims_to_compare(sample: Sample, policies: Policies) -> Scored | Undefined:
    same = normalised(sample.response or "", "case").split() == normalised(sample.reference or "", "case").split()
    if same:
        return Scored(1.0, "response and reference are the same, and make no claims", {"policy": "equal_texts"})
    return without_claims(policies, "response or reference makes no claims", {})


def _listed(answer: Any) -> list[Any]:
    (name,) = type(answer).model_fields
    found: list[Any] = getattr(answer, name)
    return found


# -- by family


def _unknown(verdicts: Sequence[bool | None]) -> dict[str, Any]:
    unknown = sum(1 for one in verdicts if one is None)
    return {"unknown_verdicts": unknown} if unknown else {}


def _share(verdicts: Sequence[bool | None]) -> Fraction:
    return Fraction(sum(1 for one in verdicts if one), len(verdicts))


def _claims_of(exchange: Exchange) -> list[dict[str, Any]]:
    return [
        {"id": number, "claim": one.statement, "verdict": one.verdict, "reason": one.reason}
        for number, one in enumerate(exchange.answer.statements, start=1)
    ]


def _claims(found: Found) -> Reading:
    judged = found.session.of("verdicts")
    if not judged:
        return Reading()
    claims = _claims_of(judged[-1])
    verdicts = [one["verdict"] for one in claims]
    detail = {"claims": claims, **_unknown(verdicts)}
    if not verdicts:
        return Reading(undefined="no_verdicts", reason="the judge could not tell for any claim", detail=detail)
    supported = sum(1 for one in verdicts if one)
    return Reading(_share(verdicts), f"{supported} of {len(verdicts)} claims are supported by the contexts", detail)


def _precision(found: Found) -> Reading:
    judged = [one.answer for one in found.session.of("verdict")]
    verdicts = [one.verdict for one in judged]
    contexts = found.sample.retrieved_contexts or ()
    passages = [
        {"passage": number, "text": text, "verdict": one.verdict, "reason": one.reason}
        for number, (text, one) in enumerate(zip(contexts, judged, strict=False))
    ]
    detail = {"passages": passages, **_unknown(verdicts)}
    hits = sum(1 for one in verdicts if one)
    return Reading(average_precision(verdicts), f"{hits} of {len(verdicts)} passages are useful", detail)


def average_precision(useful: Sequence[bool | None]) -> Fraction:
    """Σ_k precision@k · useful_k / useful passages, 0 when none is useful.

    >>> average_precision([True, False, True])
    Fraction(5, 6)
    """
    hits, total = 0, Fraction(0)
    for rank, one in enumerate(useful, start=1):
        if one:
            hits += 1
            total += Fraction(hits, rank)
    return total / hits if hits else Fraction(0)


def _recall(found: Found) -> Reading:
    judged = found.session.of("attributions")
    if not judged:
        return Reading()
    pieces = judged[-1].answer.classifications
    claims = [
        {"id": number, "claim": one.statement, "verdict": one.attributed, "reason": one.reason}
        for number, one in enumerate(pieces, start=1)
    ]
    verdicts = [one.attributed for one in pieces]
    detail = {"claims": claims, **_unknown(verdicts)}
    if not verdicts:
        return Reading(undefined="no_verdicts", reason="the judge could not tell for any claim", detail=detail)
    held = sum(1 for one in verdicts if one)
    return Reading(_share(verdicts), f"{held} of {len(verdicts)} claims of the reference are in the contexts", detail)


def _entities(found: Found) -> Reading:
    named = [list(_listed(one.answer)) for one in found.session.of("claims")]
    if len(named) != 2:  # noqa: PLR2004  # those of the reference, then those of the contexts
        return Reading()
    wanted, there = named
    divisor = len(wanted) if found.api == "legacy" else len(set(wanted))
    common = sorted(set(wanted) & set(there))
    detail = {"found": common, "missed": sorted(set(wanted) - set(there)), "in_contexts": there}
    return Reading(Fraction(len(common), divisor), f"{len(common)} of {len(set(wanted))} entities are found", detail)


def _noise(found: Found) -> Reading:
    """A share of the response's statements; the judgements are kept in the order in which they came."""
    judged = found.session.of("verdicts")
    texts = [list(_listed(one.answer)) for one in found.session.of("claims")]
    if len(texts) != 2 or not judged:  # noqa: PLR2004  # those of the reference, then those of the response
        return Reading()
    _, number = as_number(found.value)
    statements = len(texts[1])
    exact = None if number is None else Fraction(round(number * statements), statements)
    detail = {
        "reference_statements": texts[0],
        "response_statements": texts[1],
        "judgements": [{"against": one.data.get("context"), "claims": _claims_of(one)} for one in judged],
        **_unknown([piece.verdict for one in judged for piece in one.answer.statements]),
    }
    return Reading(exact, "" if exact is None else f"{exact * statements} of {statements} statements", detail)


def _factual(found: Found) -> Reading:
    judged = found.session.of("verdicts")
    by_reference = [one for one in judged if one.data.get("context") == found.sample.reference]
    by_response = [one for one in judged if one.data.get("context") == found.sample.response]
    if found.sample.reference == found.sample.response:
        by_reference, by_response = judged[:1], judged[1:]
    response_claims = [claim for one in by_reference for claim in _claims_of(one)]
    reference_claims = [claim for one in by_response for claim in _claims_of(one)]
    right = sum(1 for one in response_claims if one["verdict"])
    wrong = len(response_claims) - right
    missed = sum(1 for one in reference_claims if not one["verdict"])
    detail = {
        "response_claims": response_claims,
        "reference_claims": reference_claims,
        **_unknown([one["verdict"] for one in (*response_claims, *reference_claims)]),
    }
    mode, beta = found.settings.get("mode", "f1"), Fraction(found.settings.get("beta", 1.0))
    if mode == "precision":
        exact = _ratio(right, right + wrong)
    elif mode == "recall":
        exact = _ratio(right, right + missed)
    else:
        exact = f_score(right, wrong, missed, beta)
    reason = f"{right} of {len(response_claims)} claims of the response are supported by the reference"
    if mode != "precision":
        reason += f", {missed} of {len(reference_claims)} claims of the reference are missing"
    return Reading(exact, reason, detail, rounded=2)


def _ratio(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


def f_score(right: int, wrong: int, missed: int, beta: Fraction = Fraction(1)) -> Fraction:
    """F_beta of true positives, false positives and false negatives, 0 without any.

    >>> f_score(2, 0, 1)
    Fraction(4, 5)
    """
    weight = beta * beta
    divisor = (1 + weight) * right + weight * missed + wrong
    return (1 + weight) * right / divisor if divisor else Fraction(0)


def _correctness(found: Found) -> Reading:
    classed = found.session.of("classes")
    if not classed:
        return Reading()
    pieces = classed[-1].answer
    by_class = {name: [one.model_dump() for one in getattr(pieces, name)] for name in ("TP", "FP", "FN")}
    right, wrong, missed = (len(one) for one in by_class.values())
    beta = Fraction(found.settings.get("beta", 1.0))
    reason = f"{right} statements right, {wrong} wrong, {missed} missing"
    return Reading(reason=reason, detail={**by_class, "factual": float(f_score(right, wrong, missed, beta))})


def _relevancy(found: Found) -> Reading:
    asked = [one.answer for one in found.session.of("question")]
    detail = {"questions": [{"question": one.question, "noncommittal": one.noncommittal} for one in asked]}
    if asked and all(one.noncommittal for one in asked):
        return Reading(Fraction(0), "the response is noncommittal", {**detail, "noncommittal": True})
    return Reading(reason=f"mean similarity of {len(asked)} questions that the response answers", detail=detail)


def _ratings(found: Found) -> Reading:
    scale = found.entry.scale
    exchanges = found.session.of("rating")
    if scale is None:
        return Reading()
    ratings = [one.answer for one in exchanges]
    detail: dict[str, Any] = {"ratings": ratings, "scale": list(scale.points), "asked_as": "rating"}
    if not ratings:
        return Reading(reason="Ragas scored it without asking", detail=detail)
    top = scale.points[-1]
    said = " ".join(one.reason for one in exchanges if one.reason)
    reason = said or f"rated {' and '.join(map(str, ratings))} of {top} (bare ratings give no reason)"
    return Reading(Fraction(sum(ratings), len(ratings)) / Fraction(top), reason, detail)


def _binary(found: Found) -> Reading:
    judged = [one.answer for one in found.session.of("verdict")]
    if not judged:
        return Reading()
    last = judged[-1]
    return Reading(
        Fraction(int(bool(last.verdict))), last.reason, {"verdict": last.verdict, **_unknown([last.verdict])}
    )


def _graded(found: Found) -> Reading:
    judged = [one.answer for one in found.session.of("graded")]
    if not judged:
        return Reading()
    last = judged[-1]
    said = str(getattr(last, "feedback", None) or getattr(last, "reason", ""))
    grades = found.session.manners.grades
    return Reading(Fraction(last.score), said, {"grade": last.score, **({"scale": list(grades)} if grades else {})})


def _goal(found: Found) -> Reading:
    reading = _binary(found)
    for one in found.session.of("goal"):
        reading.detail |= {"user_goal": one.answer.user_goal, "end_state": one.answer.end_state}
    return reading


def _topics(found: Found) -> Reading:
    named = found.session.of("claims")
    allowed = found.session.of("in_topics")
    if not named or not allowed:
        return Reading()
    answered = [not one.answer.refused_to_answer for one in found.session.of("refused")]
    inside = [bool(one) for one in _listed(allowed[-1].answer)]
    pieces = [
        {"topic": topic, "answered": did, "allowed": may}
        for topic, did, may in zip(_listed(named[-1].answer), answered, inside, strict=False)
    ]
    right = sum(1 for one in pieces if one["answered"] and one["allowed"])
    wrong = sum(1 for one in pieces if one["answered"] and not one["allowed"])
    missed = sum(1 for one in pieces if not one["answered"] and one["allowed"])
    mode = found.settings.get("mode", "f1")
    by_mode = {"precision": _ratio(right, right + wrong), "recall": _ratio(right, right + missed)}
    exact = by_mode.get(mode, f_score(right, wrong, missed))
    return Reading(exact, f"{right} allowed topics answered, {wrong} others, {missed} refused", {"topics": pieces})


def _summary(found: Found) -> Reading:
    answered = found.session.of("answers")
    if not answered:
        return Reading()
    verdicts = _listed(answered[-1].answer)
    if not verdicts:
        raise MalformedVerdict("the judge answered none of the questions")
    text, response = "\n".join(found.sample.reference_contexts or ()), found.sample.response or ""
    share = _share(verdicts)
    concise = 1 - Fraction(min(len(response), len(text)), len(text))
    coeff = Fraction(found.settings.get("coeff", 0.5))
    if not found.settings.get("length_penalty", True):
        exact = share if found.api == "collections" else share * (1 - coeff)
    else:
        exact = share * (1 - coeff) + concise * coeff
    asked = answered[-1].data.get("questions", ())
    pieces = [{"question": one, "answered": said} for one, said in zip(asked, verdicts, strict=False)]
    reason = f"{sum(1 for one in verdicts if one)} of {len(verdicts)} questions are answered"
    return Reading(exact, reason, {"questions": pieces, "conciseness": float(concise)})


def _sql(found: Found) -> Reading:
    judged = [one.answer for one in found.session.of("sql")]
    if not judged:
        return Reading()
    said = judged[-1].model_dump()
    verdict = next(said[name] for name in ("equivalent", "equivalence") if name in said)
    reason = " ".join(value for value in said.values() if isinstance(value, str))
    return Reading(Fraction(int(bool(verdict))), reason, {"verdict": verdict})


def _passages(found: Found) -> Reading:
    """Average precision of passages by their similarity to the reference contexts, as Ragas measures it."""
    from rapidfuzz import distance

    settings = found.settings
    measures = {"hamming": distance.Hamming, "jaro": distance.Jaro, "jaro_winkler": distance.JaroWinkler}
    measure = measures.get(settings.get("distance_measure", ""), distance.Levenshtein)
    wanted = found.sample.reference_contexts or ()
    closest = [
        max((1 - measure.normalized_distance(one, other) for other in wanted), default=0.0)
        for one in found.sample.retrieved_contexts or ()
    ]
    useful = [one >= settings.get("threshold", 0.5) for one in closest]
    detail = {"similarities": closest, "useful": useful}
    return Reading(average_precision(useful), f"{sum(useful)} of {len(useful)} passages are close enough", detail)


def _ids(found: Found) -> Reading:
    if not found.sample.reference_context_ids:
        return Reading(undefined="no_reference_ids", reason="the row names no wanted id")
    if not found.sample.retrieved_context_ids and "Precision" in found.entry.concept:
        return Reading(undefined="no_retrieved_ids", reason="nothing was retrieved")
    return Reading()


def _quotes(found: Found) -> Reading:
    if (found.reason or "").startswith("No quoted spans"):
        return Reading(undefined="no_quoted_spans", reason="the response quotes nothing that is long enough")
    return Reading()


def _calls(found: Found) -> Reading:
    if not found.sample.messages:
        return Reading(undefined="no_messages", reason="the conversation has no message")
    if not found.sample.reference_tool_calls:
        return Reading(undefined="no_reference_tool_calls", reason="no tool call is wanted")
    return Reading(detail={"rounded_by_ragas_to": 4} if found.entry.concept == "ToolCallF1" else {})


def _plain(found: Found) -> Reading:
    exchanges = found.session.exchanges
    return Reading(detail={"answers": answers_in_detail(found.session)} if exchanges else {})


READERS: dict[str, Read] = {
    "claims": _claims, "precision": _precision, "recall": _recall, "entities": _entities, "noise": _noise,
    "factual": _factual, "correctness": _correctness, "relevancy": _relevancy, "ratings": _ratings,
    "binary": _binary, "graded": _graded, "summary": _summary, "goal": _goal, "topics": _topics, "sql": _sql,
    "passages": _passages, "ids": _ids, "quotes": _quotes, "calls": _calls,
}  # fmt: skip
