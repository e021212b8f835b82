"""Correctness: the claims of the response against those of the reference, alone or beside the similarity of the two."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ragparity.core.concurrency import together
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import without_claims
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.core.text import folded
from ragparity.metrics.claims import (
    EXTRACT,
    TOGETHER,
    Claims,
    Judged,
    batches_of,
    claims_budget,
    claims_in,
    claims_in_detail,
    claims_of,
    judge_pieces,
    share,
    verdicts_budget,
    with_question,
)
from ragparity.metrics.faithfulness import SUPPORT, counted
from ragparity.registry import NativeMetric, metric
from ragparity.vectors import cosine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.policy import Policies
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

Level = Literal["low", "high"]
Mode = Literal["f1", "precision", "recall"]

ONE_FACT = "Each statement holds one fact; split a list of things into one statement for each."
MAIN_POINTS = "Only the main points: leave out details, examples and side remarks."
ANSWERS_THE_QUESTION = "The context is an answer to the question; read it as such."

CLASSIFY = Prompt(
    task="Compare an answer with a reference, claim by claim, both given to the same question.",
    rules=(
        "For each claim of the answer: does the reference say it? For each claim of the reference: does the answer?",
        '`evidence`: the words of the other text that say what the claim says, copied; "none" if there are none.',
        '`verdict`: "yes" only if this evidence says all of the claim, in whatever words; else "no".',
        "Use nothing but the two texts, not what you know.",
        "Give one verdict for each claim of both lists, with its id.",
    ),
)


@lru_cache(maxsize=4)
def extraction(atomicity: Level, coverage: Level) -> Prompt:
    """How claims are to be taken from a text. With low atomicity and high coverage as for every other metric."""
    rules = [ONE_FACT if one == TOGETHER and atomicity == "high" else one for one in EXTRACT.rules]
    return Prompt(EXTRACT.task, (*rules, MAIN_POINTS) if coverage == "low" else tuple(rules))


def f_beta(precision: Fraction, recall: Fraction, beta: float = 1.0) -> Fraction:
    """(1 + β²)·P·R / (β²·P + R), 0 where both are 0 (van Rijsbergen 1979).

    >>> f_beta(Fraction(1, 2), Fraction(1, 4)), f_beta(Fraction(1, 2), Fraction(1, 4), 2)
    (Fraction(1, 3), Fraction(5, 18))
    """
    square = Fraction(str(beta)) ** 2
    divisor = square * precision + recall
    return (1 + square) * precision * recall / divisor if divisor else Fraction(0)


def f_of_counts(right: int, wrong: int, missed: int, beta: float = 1.0) -> Fraction:
    """(1 + β²)·TP / ((1 + β²)·TP + β²·FN + FP), 0 where there is nothing right.

    >>> f_of_counts(2, 1, 1)
    Fraction(2, 3)
    """
    square = Fraction(str(beta)) ** 2
    return (1 + square) * right / ((1 + square) * right + square * missed + wrong) if right else Fraction(0)


def known(verdicts: Sequence[bool | None], policies: Policies) -> list[bool]:
    """The verdicts that count: "cannot tell" is a no, or is left out by policy."""
    return [bool(one) for one in verdicts if one is not None or policies.unknown_verdict == "unsupported"]


def mixed(said: Sequence[bool], wanted: Sequence[bool], mode: Mode, beta: float) -> Fraction | None:
    """The score of hits among the response's claims and misses among the reference's, as Ragas counts.

    `said`: whether each claim of the response is in the reference; `wanted`: the reverse. `None` where nothing is said.

    >>> mixed([True, True, False], [True, False], "recall", 1.0)
    Fraction(2, 3)
    """
    right, missed = sum(said), len(wanted) - sum(wanted)
    if not said:
        return None
    if mode == "precision":
        return Fraction(right, len(said))
    if mode == "recall":
        return Fraction(right, right + missed) if right else Fraction(0)
    return f_of_counts(right, len(said) - right, missed, beta)


def without_one_side(sample: Sample, policies: Policies, which: str, refusal: bool) -> Scored | Undefined:
    """The outcome where a side makes no claims: 1 for equal texts, else by policy."""
    detail: dict[str, object] = {"refusal": True} if refusal else {}
    if folded(sample.response or "") == folded(sample.reference or ""):
        return Scored(1.0, "response and reference are equal", {**detail, "equal": True})
    return without_claims(policies, f"the {which} makes no claims", detail)


def lacking(claims: dict[str, Claims], sample: Sample, policies: Policies) -> Scored | Undefined | None:
    """The outcome where one of the sides has no claims; `None` where all have some."""
    empty = next((side for side, found in claims.items() if not found.claims), None)
    if empty is None:
        return None
    refusal = "response" in claims and claims["response"].refusal
    return without_one_side(sample, policies, empty, refusal)


@metric
@dataclass(frozen=True, repr=False)
class FactualCorrectness(NativeMetric):
    """F_β of P, the share of the response's claims that the reference supports, and R, the reverse share.

    Reads: response, reference; user_input where present, to understand a text of a few words.
    Asks: 4 (the claims of both at the same time, then the verdicts on both at the same time); 2 for `mode: precision`
    (R is not needed) or `mode: recall` (P is not); one more per further 10 claims.
    Range: 0 to 1, higher is better.
    Undefined when: a side that is needed makes no claims (`no_claims`, policy `no_claims`), unless response and
    reference are equal but for case, width and white space: then 1.
    Differs from its source in: P and R are each a share of one list of claims, and F comes from P and R (`beta` weighs
    R); the source takes its hits from the response's claims and its misses from the reference's (`counting: ragas`
    does so too, and then needs both lists for `recall`); not rounded to two decimals; equal texts without claims are 1,
    not 0. `atomicity: high` asks for one fact per claim, `coverage: low` for the main points only; the
    source's default is low for both, here every statement counts (`coverage: high`).
    Source: Ragas 0.4.3, FactualCorrectness; F_β: van Rijsbergen, Information Retrieval, 1979.

    Example::

        response claims yes, yes, no; reference claims yes, no -> P 2/3, R 1/2, F1 4/7
        counting ragas: TP 2, FP 1, FN 1 -> 2/3
    """

    mode: Literal["f1", "precision", "recall"] = "f1"
    beta: Annotated[float, Field(gt=0)] = 1.0
    atomicity: Literal["low", "high"] = "low"
    coverage: Literal["low", "high"] = "high"
    counting: Literal["own", "ragas"] = "own"

    aliases: ClassVar[tuple[str, ...]] = ("factual_correctness",)
    reads: ClassVar[tuple[str, ...]] = ("response", "reference")
    may_read: ClassVar[tuple[str, ...]] = ("user_input",)
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 2

    @property
    def _sides(self) -> tuple[str, ...]:
        if self.mode == "precision":
            return ("response",)
        return ("reference",) if self.mode == "recall" and self.counting == "own" else ("response", "reference")

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The claims of the sides that are needed, and the verdicts on about as many as they have sentences."""
        texts = [getattr(sample, side) or "" for side in self._sides]
        claims = (Ask(1, "structured", claims_budget(text)) for text in texts)
        sizes = (size for text in texts for size in batches_of(claims_in(text)))
        return (*claims, *(Ask(1, "structured", verdicts_budget(size)) for size in sizes))

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Extract the claims of the sides that are needed, then judge each side by the other text."""
        how = extraction(self.atomicity, self.coverage)
        texts = {"response": sample.response or "", "reference": sample.reference or ""}
        sides = self._sides
        extracted = await together(claims_of(texts[one], kit, question=sample.user_input, how=how) for one in sides)
        found = dict(zip(sides, extracted, strict=True))
        if (outcome := lacking(found, sample, kit.policies)) is not None:
            return outcome
        other = {"response": "reference", "reference": "response"}
        answers = await together(
            supported_by(texts[other[side]], found[side].claims, kit, question=sample.user_input) for side in sides
        )
        judged = {side: one for side, (one, _) in zip(sides, answers, strict=True)}
        detail: dict[str, object] = {
            f"{side}_claims": claims_in_detail(one, (texts[other[side]],)) for side, one in judged.items()
        }
        detail |= counted([one for some in judged.values() for one in some], sum(extra for _, extra in answers))
        verdicts = {side: [one.verdict for one in some] for side, some in judged.items()}
        shares = {side: share(some, kit.policies) for side, some in verdicts.items()}
        names = {"response": "precision", "reference": "recall"}
        detail |= {names[side]: float(one) for side, one in shares.items() if one is not None}
        value = self._value(shares, verdicts, kit.policies)
        if value is None:
            return Undefined("no_verdicts", "the judge could not tell for any claim of a side", detail)
        said = {
            "response": "{} of {} claims of the response are in the reference",
            "reference": "{} of {} claims of the reference are in the response",
        }
        reason = "; ".join(said[side].format(sum(1 for v in some if v), len(some)) for side, some in verdicts.items())
        return Scored(float(value), reason, detail)

    def _value(
        self, shares: dict[str, Fraction | None], verdicts: dict[str, list[bool | None]], policies: Policies
    ) -> Fraction | None:
        if any(one is None for one in shares.values()):
            return None
        if self.counting == "ragas":
            said, wanted = (known(verdicts.get(side, ()), policies) for side in ("response", "reference"))
            return mixed(said, wanted, self.mode, self.beta)
        precision, recall = shares.get("response"), shares.get("reference")
        if precision is None or recall is None:
            return recall if precision is None else precision
        return f_beta(precision, recall, self.beta)


async def supported_by(text: str, claims: Sequence[str], kit: Kit, *, question: str | None) -> tuple[list[Judged], int]:
    """Verdicts on claims given one text, which a question helps to understand where it is of a few words."""
    shown = with_question(text, question)
    rules = (*SUPPORT.rules, ANSWERS_THE_QUESTION) if shown else SUPPORT.rules
    return await judge_pieces(
        claims,
        lambda some: Prompt(SUPPORT.task, rules, {**shown, "contexts": [text], "claims": some}),
        kit,
        what="claims",
    )


class _UsesByWeight:
    """The judge where claims weigh something, the embedder where the similarity does."""

    def __get__(self, metric: AnswerCorrectness | None, cls: type[AnswerCorrectness]) -> frozenset[Use]:
        weights = (1.0, 1.0) if metric is None else metric.weights
        uses: tuple[Use, Use] = ("structured", "embeddings")
        return frozenset(use for use, weight in zip(uses, weights, strict=True) if weight)


class _BoundsByWeight:
    """The lowest score is that of an F of 0 and a cosine of −1."""

    def __get__(self, metric: AnswerCorrectness | None, cls: type[AnswerCorrectness]) -> tuple[float, float]:
        return (-1.0, 1.0) if metric is None else (-float(metric.share_of_similarity), 1.0)


@metric
@dataclass(frozen=True, repr=False)
class AnswerCorrectness(NativeMetric):
    """Weighted mean of F_β(TP, FP, FN) over claims and the cosine of the vectors of response and reference.

    TP and FP: claims of the response that the reference says or does not say; FN: claims of the reference that the
    response does not say. `weights` of the two parts, by default 0.75 and 0.25; `beta` weighs the missed claims.

    Reads: user_input, response, reference.
    Asks: 3 (the claims of both at the same time, then all verdicts; one more per further 10 claims) and 1 request for
    the vectors; a part of weight 0 is not asked for.
    Range: −w2 to 1 (w2 the share of the similarity), higher is better.
    Undefined when: a side makes no claims (`no_claims`, policy `no_claims`), unless response and reference are equal
    but for case, width and white space: then 1; a vector is zero (`zero_vector`).
    Differs from its source in: the two APIs give 0.225 and 0.975 where a side has no claims, here that is undefined;
    each claim is judged once and by its number, instead of being copied into one of three lists; exact fractions.
    Source: Ragas 0.4.3, AnswerCorrectness.

    Example::

        TP 2, FP 1, FN 1 -> F1 2/3; cosine 0.6 -> 0.75 * 2/3 + 0.25 * 0.6 = 0.65
    """

    weights: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]] = (0.75, 0.25)
    beta: Annotated[float, Field(gt=0)] = 1.0

    aliases: ClassVar[tuple[str, ...]] = ("answer_correctness",)
    reads: ClassVar[tuple[str, ...]] = ("user_input", "response", "reference")
    uses: ClassVar[frozenset[Use]] = _UsesByWeight()  # type: ignore[assignment]  # read as a set
    bounds: ClassVar[tuple[float, float]] = _BoundsByWeight()  # type: ignore[assignment]  # read as a pair
    steps: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not any(self.weights):
            raise ValueError(f"weights: expected one or two of them above 0, got {list(self.weights)}")

    @property
    def share_of_similarity(self) -> Fraction:
        """The weight of the similarity as a share of both."""
        claims, similarity = (Fraction(str(one)) for one in self.weights)
        return similarity / (claims + similarity)

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The claims of both sides, the verdicts on about as many as they have sentences, and the vectors."""
        texts = [sample.response or "", sample.reference or ""]
        sizes = batches_of(sum(claims_in(text) for text in texts))
        found: list[Ask] = []
        if "structured" in self.uses:
            found += (Ask(1, "structured", claims_budget(text)) for text in texts)
            found += (Ask(1, "structured", verdicts_budget(size)) for size in sizes)
        return (*found, Ask(1, "embeddings")) if "embeddings" in self.uses else tuple(found)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Extract the claims of both, judge all of them, and add the similarity."""
        detail: dict[str, object] = {}
        value, parts = Fraction(0), []
        if "structured" in self.uses:
            found = await self._by_claims(sample, kit, detail)
            if not isinstance(found, Fraction):
                return found
            value = (1 - self.share_of_similarity) * found
            parts.append(f"F of claims {float(found):.2f}")
        if "embeddings" not in self.uses:
            return Scored(float(value), parts[0], detail)
        vectors = await kit.embed([sample.response or "", sample.reference or ""])
        similarity = cosine(*vectors)
        if similarity is None:
            return Undefined("zero_vector", "the embedder gave a zero vector", detail)
        parts.append(f"similarity {similarity:.2f}")
        total = float(value) + float(self.share_of_similarity) * similarity
        return Scored(total, ", ".join(parts), {**detail, "similarity": similarity})

    async def _by_claims(self, sample: Sample, kit: Kit, detail: dict[str, object]) -> Fraction | Scored | Undefined:
        """F_β of the claims, or the outcome where it has no value; what was judged goes into the detail."""
        texts = {"response": sample.response or "", "reference": sample.reference or ""}
        extracted = await together(claims_of(one, kit, question=sample.user_input) for one in texts.values())
        claims = dict(zip(texts, extracted, strict=True))
        if (outcome := lacking(claims, sample, kit.policies)) is not None:
            return outcome
        said = claims["response"].claims

        def ask(some: dict[str, str]) -> Prompt:
            ours = {number: one for number, one in some.items() if int(number) <= len(said)}
            theirs = {number: one for number, one in some.items() if number not in ours}
            data = {"question": sample.user_input, "answer": texts["response"], "reference": texts["reference"]}
            return Prompt(CLASSIFY.task, CLASSIFY.rules, {**data, "answer_claims": ours, "reference_claims": theirs})

        judged, extra = await judge_pieces([*said, *claims["reference"].claims], ask, kit, what="claims")
        ours, theirs = judged[: len(said)], judged[len(said) :]
        detail["response_claims"] = claims_in_detail(ours, (texts["reference"],))
        detail["reference_claims"] = claims_in_detail(theirs, (texts["response"],))
        detail |= counted(judged, extra)
        in_reference, in_response = (known([one.verdict for one in some], kit.policies) for some in (ours, theirs))
        if not (in_reference and in_response):
            return Undefined("no_verdicts", "the judge could not tell for any claim of a side", detail)
        right, missed = sum(in_reference), len(in_response) - sum(in_response)
        wrong = len(in_reference) - right
        detail |= {"true_positives": right, "false_positives": wrong, "false_negatives": missed}
        return f_of_counts(right, wrong, missed, self.beta)
