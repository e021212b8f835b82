"""Context recall: how much of the reference the contexts hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, model_validator

from ragparity.core.errors import JudgeError
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import without_claims
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.core.text import normalised
from ragparity.metrics.claims import (
    TOKENS_AROUND,
    TOKENS_PER_CLAIM,
    TOKENS_PER_VERDICT,
    Judged,
    claims_in,
    claims_in_detail,
    claims_of,
    share,
)
from ragparity.metrics.faithfulness import counted, support_prompt
from ragparity.metrics.parts import in_parts, judge_over, too_long
from ragparity.registry import NativeMetric, metric
from ragparity.verdicts import Verdict

if TYPE_CHECKING:
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

ATTRIBUTE = Prompt(
    task="Copy the factual statements out of the reference, and look for each of them in the contexts.",
    rules=(
        "`claim`: a statement of the reference, as one short sentence that is understood on its own.",
        '`evidence`: the words of the contexts that say what the claim says, copied; "none" if there are none.',
        '`verdict`: "yes" only if this evidence says all of the claim, in whatever words; else "no".',
        "Claim each fact of the reference once, and nothing that only the contexts say.",
        "Use nothing but the contexts for the verdicts, not what you know.",
        "Write in the language of the reference.",
    ),
)


class Attributed(BaseModel):
    """One claim of the reference with the evidence for it before the verdict."""

    claim: str
    evidence: str
    verdict: Verdict


class Attribution(BaseModel):
    """The claims of the reference, each with its verdict; one claim with two different verdicts is refused."""

    claims: list[Attributed]

    @model_validator(mode="after")
    def one_verdict_per_claim(self) -> Attribution:
        """Refuse an answer that contradicts itself."""
        verdicts = {normalised(one.claim, "full"): one.verdict for one in self.kept()}
        for one in self.claims:
            if verdicts.get(normalised(one.claim, "full"), one.verdict) != one.verdict:
                raise ValueError(f"two different verdicts for the claim {one.claim!r}")
        return self

    def kept(self) -> list[Attributed]:
        """The claims in order, without those that are blank or repeat an earlier one."""
        first: dict[str, Attributed] = {}
        for one in self.claims:
            first.setdefault(normalised(one.claim, "full"), one)
        first.pop("", None)
        return list(first.values())


@metric
@dataclass(frozen=True, repr=False)
class ContextRecall(NativeMetric):
    """Reference claims that the contexts hold / reference claims.

    Reads: retrieved_contexts, reference; user_input where present. The response is never shown to the judge.
    Asks: 1.
    Range: 0 to 1, higher is better.
    Undefined when: the reference makes no claims (`no_claims`, policy `no_claims`).
    Differs from its source in: verdicts are yes or no, never larger numbers; a claim that is written twice
    counts once (two different verdicts on it are refused); exact fractions.
    Source: Ragas 0.4.3, ContextRecall (LLMContextRecall).

    Example::

        reference claims "The deadline is 30 days.", "The buyer pays for shipping.", "Defects are free."
        verdicts yes, no, no -> 1/3
    """

    aliases: ClassVar[tuple[str, ...]] = ("LLMContextRecall", "context_recall")
    reads: ClassVar[tuple[str, ...]] = ("retrieved_contexts", "reference")
    may_read: ClassVar[tuple[str, ...]] = ("user_input",)
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 1

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """One question whose answer says the reference again, with evidence."""
        return (Ask(1, "structured", recall_budget(sample.reference or "")),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Attribute the claims of the reference to the contexts."""
        reference, contexts = sample.reference or "", sample.retrieved_contexts or ()
        data = {"question": sample.user_input} if sample.user_input else {}
        prompt = Prompt(ATTRIBUTE.task, ATTRIBUTE.rules, {"contexts": list(contexts), **data, "reference": reference})
        parts = 1
        try:
            answer = await kit.verdict(prompt, Attribution, budget=recall_budget(reference))
            judged = [
                Judged(number, one.claim.strip(), one.verdict, one.evidence)
                for number, one in enumerate(answer.kept(), start=1)
            ]
        except JudgeError as error:
            if not too_long(error) or len(contexts) == 1:
                raise
            # Parts of the contexts need claims of their own to be judged by.
            found = await claims_of(reference, kit, question=sample.user_input)
            judged, _, parts = await judge_over(contexts, found.claims, support_prompt, kit, what="claims")
        if not judged:
            return without_claims(kit.policies, "the reference makes no claims", {})
        value = share([one.verdict for one in judged], kit.policies)
        detail: dict[str, object] = {
            "claims": claims_in_detail(judged, contexts),
            **counted(judged, 0),
            **in_parts(parts),
        }
        if value is None:
            return Undefined("no_verdicts", "the judge could not tell for any claim", detail)
        held = sum(1 for one in judged if one.verdict)
        return Scored(float(value), f"{held} of {len(judged)} claims of the reference are in the contexts", detail)


def recall_budget(reference: str) -> int:
    """Tokens for the claims of a reference with the evidence for each, which can be much longer than the claim."""
    return 2 * TOKENS_AROUND + claims_in(reference) * (TOKENS_PER_CLAIM + TOKENS_PER_VERDICT)
