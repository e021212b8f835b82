"""Context precision: whether the useful passages stand first; and the plain share of useful passages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel

from ragparity.core.concurrency import together
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.claims import Judged, batches_of, judge_pieces, share, verdicts_budget
from ragparity.metrics.faithfulness import counted
from ragparity.registry import NativeMetric, metric
from ragparity.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.policy import Policies
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

USEFUL_TOKENS = 120

ONE_PASSAGE = Prompt(
    task="Decide whether the context was useful for arriving at the answer to the question.",
    rules=(
        "`reason`: one short sentence.",
        '`verdict`: "yes" if the context holds information that the answer rests on, else "no".',
        "A context on the same topic that adds nothing to this answer is not useful.",
    ),
)
ALL_PASSAGES = Prompt(
    task="For each context, decide whether it was useful for arriving at the answer to the question.",
    rules=(
        '`evidence`: the words of the context that the answer rests on, or "none".',
        '`verdict`: "yes" if the context holds information that the answer rests on, else "no".',
        "A context on the same topic that adds nothing to this answer is not useful.",
        "Give one verdict for each context, with the id of the context.",
    ),
)


class Usefulness(BaseModel):
    """A verdict on one passage, the reason first."""

    reason: str
    verdict: Verdict


def average_precision(useful: Sequence[bool]) -> Fraction:
    """Σ_k precision@k · useful_k / number of useful passages, 0 when none is useful (Ragas 0.4.3, without its epsilon).

    >>> average_precision([False, True, False, True])
    Fraction(1, 2)
    """
    hits, total = 0, Fraction(0)
    for rank, one in enumerate(useful, start=1):
        if one:
            hits += 1
            total += Fraction(hits, rank)
    return total / hits if hits else Fraction(0)


@dataclass(frozen=True, repr=False)
class _ByPassage(NativeMetric):
    """What the metrics of this file share: a verdict on each passage against an answer."""

    judging: Literal["apart", "together"] = "apart"

    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 1
    against: ClassVar[str] = "reference"

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """One question a passage, or one for up to ten of them."""
        n = max(1, len(sample.retrieved_contexts or ()))
        if self.judging == "apart":
            return (Ask(n, "structured", USEFUL_TOKENS),)
        return tuple(Ask(1, "structured", verdicts_budget(size)) for size in batches_of(n))

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Judge every passage at the same time, then weigh the verdicts."""
        contexts = sample.retrieved_contexts or ()
        target = {"question": sample.user_input, "answer": getattr(sample, self.against)}
        if self.judging == "apart":
            prompts = [Prompt(ONE_PASSAGE.task, ONE_PASSAGE.rules, {**target, "context": one}) for one in contexts]
            answers = await together(kit.verdict(one, Usefulness, budget=USEFUL_TOKENS) for one in prompts)
            judged = [
                Judged(number, text, one.verdict, one.reason)
                for number, (text, one) in enumerate(zip(contexts, answers, strict=True), start=1)
            ]
            extra = 0
        else:
            judged, extra = await judge_pieces(
                contexts,
                lambda some: Prompt(ALL_PASSAGES.task, ALL_PASSAGES.rules, {**target, "contexts": some}),
                kit,
                what="passages",
            )
        detail: dict[str, object] = {
            "passages": [
                {"passage": one.id - 1, "text": one.text, "verdict": one.verdict, "reason": one.reason}
                for one in judged
            ],
            **counted(judged, extra),
        }
        value = self.weigh([one.verdict for one in judged], kit.policies)
        if value is None:
            return Undefined("no_verdicts", "the judge could not tell for any passage", detail)
        ranks = [str(one.id) for one in judged if one.verdict]
        where = f" (rank {', '.join(ranks)})" if ranks else ""
        return Scored(float(value), f"{len(ranks)} of {len(judged)} passages are useful{where}", detail)

    def weigh(self, verdicts: Sequence[bool | None], policies: Policies) -> Fraction | None:
        """The score of the verdicts in rank order."""
        counted_ones = [one for one in verdicts if one is not None or policies.unknown_verdict == "unsupported"]
        return average_precision([bool(one) for one in counted_ones]) if counted_ones else None


@metric
@dataclass(frozen=True, repr=False)
class ContextPrecision(_ByPassage):
    """Σ_k precision@k · useful_k / useful passages, 0 when none is useful: the average precision of the ranking.

    Reads: user_input, retrieved_contexts, reference.
    Asks: one per passage, all at the same time (`judging: together`: one per ten passages).
    Range: 0 to 1, higher is better.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: verdicts are yes or no (larger numbers gave scores up to 1.67); no epsilon, so a
    perfect ranking is 1.0. It is weighted by rank; the plain share is ContextPrecisionShare.
    Source: Ragas 0.4.3, ContextPrecision (LLMContextPrecisionWithReference).

    Example::

        verdicts no, yes, no, yes -> (1/2 + 2/4) / 2 = 0.5
    """

    aliases: ClassVar[tuple[str, ...]] = (
        "ContextPrecisionWithReference",
        "LLMContextPrecisionWithReference",
        "context_precision",
    )
    reads: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "reference")


@metric
@dataclass(frozen=True, repr=False)
class ContextPrecisionWithoutReference(_ByPassage):
    """Σ_k precision@k · useful_k / useful passages, with usefulness judged against the response.

    Reads: user_input, retrieved_contexts, response.
    Asks: one per passage, all at the same time (`judging: together`: one per ten passages).
    Range: 0 to 1, higher is better.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: verdicts are yes or no; no epsilon.
    Source: Ragas 0.4.3, ContextUtilization (LLMContextPrecisionWithoutReference).

    Example::

        verdicts yes, no, yes, no -> (1/1 + 2/3) / 2 = 5/6
    """

    aliases: ClassVar[tuple[str, ...]] = (
        "ContextUtilization",
        "LLMContextPrecisionWithoutReference",
        "context_utilization",
    )
    reads: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "response")
    against: ClassVar[str] = "response"


@metric
@dataclass(frozen=True, repr=False)
class ContextPrecisionShare(_ByPassage):
    """Useful passages / passages, rank ignored.

    Reads: user_input, retrieved_contexts, reference.
    Asks: the same questions as ContextPrecision, `judging` included.
    Range: 0 to 1, higher is better.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: it is ours: what many people take context precision to mean.
    Source: precision of a set, with the verdicts of ContextPrecision.

    Example::

        verdicts no, yes -> 1/2; yes, no -> 1/2
    """

    reads: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts", "reference")

    def weigh(self, verdicts: Sequence[bool | None], policies: Policies) -> Fraction | None:
        """The share of positive verdicts."""
        return share(verdicts, policies)
