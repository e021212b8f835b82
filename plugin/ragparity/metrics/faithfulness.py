"""Faithfulness: how much of the response the contexts support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import without_claims
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.claims import (
    Judged,
    batches_of,
    claims_budget,
    claims_in,
    claims_in_detail,
    claims_of,
    share,
    verdicts_budget,
)
from ragparity.metrics.parts import in_parts, judge_over
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

SUPPORT = Prompt(
    task="For each claim, look for evidence in the contexts, then decide whether it supports the claim.",
    rules=(
        '`evidence`: the words of the contexts that say what the claim says, copied; "none" if there are none.',
        '`verdict`: "yes" only if this evidence says all of the claim, in whatever words; else "no".',
        "Use nothing but the contexts, not what you know.",
        "Give one verdict for each claim, with its id.",
    ),
)


@metric
@dataclass(frozen=True, repr=False)
class Faithfulness(NativeMetric):
    """Supported claims / claims, over the claims that the response makes.

    Reads: response, retrieved_contexts; user_input where present, to understand a response of a few words.
    Asks: 2 (claims, then verdicts; one more per further 10 claims, at the same time).
    Range: 0 to 1, higher is better.
    Undefined when: the response makes no claims (`no_claims`, policy `no_claims`).
    Differs from its source in: the denominator is the number of claims, not of the verdicts that came back (one
    verdict for five claims is asked again, never 1.0); "cannot tell" is not supported; a claim that is written twice
    counts once; exact fractions.
    Source: Ragas 0.4.3, Faithfulness.

    Example::

        claims "Sealed products go back within 30 days.", "The money is back in five days."
        verdicts yes, no -> 0.5
    """

    reads: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")
    may_read: ClassVar[tuple[str, ...]] = ("user_input",)
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 2

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The claims, and the verdicts on about as many claims as the response has sentences."""
        response = sample.response or ""
        verdicts = (Ask(1, "structured", verdicts_budget(size)) for size in batches_of(claims_in(response)))
        return (Ask(1, "structured", claims_budget(response)), *verdicts)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Extract the claims of the response, then judge each against all contexts."""
        response, contexts = sample.response or "", sample.retrieved_contexts or ()
        found = await claims_of(response, kit, question=sample.user_input)
        detail: dict[str, object] = {"refusal": True} if found.refusal else {}
        if not found.claims:
            return without_claims(kit.policies, "the response makes no claims", detail)
        judged, extra, parts = await judge_over(contexts, found.claims, support_prompt, kit, what="claims")
        value = share([one.verdict for one in judged], kit.policies)
        detail["claims"] = claims_in_detail(judged, contexts)
        detail |= counted(judged, extra) | in_parts(parts)
        if value is None:
            return Undefined("no_verdicts", "the judge could not tell for any claim", detail)
        supported = sum(1 for one in judged if one.verdict)
        return Scored(float(value), f"{supported} of {len(judged)} claims are supported by the contexts", detail)


def support_prompt(contexts: Sequence[str], claims: dict[str, str]) -> Prompt:
    """The question whether some claims, by number, are supported."""
    return Prompt(SUPPORT.task, SUPPORT.rules, {"contexts": list(contexts), "claims": claims})


def counted(judged: Sequence[Judged], extra: int) -> dict[str, object]:
    """How often the judge could not tell, and verdicts that belong to nothing, where there are any."""
    unknown = sum(1 for one in judged if one.verdict is None)
    found: dict[str, object] = {"unknown_verdicts": unknown, "extra_verdicts": extra}
    return {name: count for name, count in found.items() if count}
