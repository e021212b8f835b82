"""Noise sensitivity: wrong claims that the response took from its contexts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from ragparity.core.concurrency import together
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import without_claims
from ragparity.core.ports import Ask, Use
from ragparity.metrics.claims import batches_of, claims_budget, claims_in, claims_of, verdicts_budget
from ragparity.metrics.correctness import supported_by
from ragparity.metrics.faithfulness import counted
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

Mode = Literal["relevant", "irrelevant"]


def noisy(held: Sequence[bool], relevant: Sequence[bool], mode: Mode) -> bool:
    """Whether a wrong claim came from noise of this kind; `held`, `relevant`: for each passage.

    A claim that a relevant passage supports does not count as noise of irrelevant ones.

    >>> noisy([True, True], [True, False], "relevant"), noisy([True, True], [True, False], "irrelevant")
    (True, False)
    """
    from_relevant = any(one and useful for one, useful in zip(held, relevant, strict=True))
    return from_relevant if mode == "relevant" else any(held) and not from_relevant


@metric
@dataclass(frozen=True, repr=False)
class NoiseSensitivity(NativeMetric):
    """Claims of the response that the reference does not support, but a relevant passage does / claims of the response.

    With `mode: irrelevant` those that only irrelevant passages support. A passage is relevant when it supports a claim
    of the reference.

    Reads: response, reference, retrieved_contexts; user_input where present, to understand a text of a few words.
    Asks: 3 + 2n for n passages: the claims of both texts at the same time, then all verdicts at the same time (one more
    each per further 10 claims).
    Range: 0 to 1, lower is better.
    Undefined when: response or reference makes no claims (`no_claims`; for the response by policy `no_claims`).
    Differs from its source in: verdicts are matched by number, so that lists of different length are asked again
    instead of breaking the arithmetic; a reference without claims is undefined, not an error; exact fractions.
    Source: Ragas 0.4.3, NoiseSensitivity.

    Example::

        4 claims, of which 2 are wrong, one of them supported by a relevant passage -> 1/4
    """

    mode: Literal["relevant", "irrelevant"] = "relevant"

    aliases: ClassVar[tuple[str, ...]] = ("noise_sensitivity",)
    reads: ClassVar[tuple[str, ...]] = ("response", "reference", "retrieved_contexts")
    may_read: ClassVar[tuple[str, ...]] = ("user_input",)
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    higher_is_better: ClassVar[bool] = False
    steps: ClassVar[int] = 2

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The claims of both texts; the verdicts on the response's by the reference, on both by each passage."""
        n = max(1, len(sample.retrieved_contexts or ()))
        response, reference = sample.response or "", sample.reference or ""
        claims = (Ask(1, "structured", claims_budget(text)) for text in (response, reference))
        times = ((response, n + 1), (reference, n))
        verdicts = (
            Ask(calls, "structured", verdicts_budget(size))
            for text, calls in times
            for size in batches_of(claims_in(text))
        )
        return (*claims, *verdicts)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Extract the claims of both texts, judge them by the reference and by every passage, and count."""
        response, reference, question = sample.response or "", sample.reference or "", sample.user_input
        passages = sample.retrieved_contexts or ()
        said, wanted = await together(claims_of(one, kit, question=question) for one in (response, reference))
        detail: dict[str, object] = {"refusal": True} if said.refusal else {}
        if not said.claims:
            return without_claims(kit.policies, "the response makes no claims", detail)
        if not wanted.claims:
            return Undefined("no_claims", "the reference makes no claims", detail)

        by_reference, *by_passage = await together(
            (
                supported_by(reference, said.claims, kit, question=question),
                *(
                    supported_by(passage, claims, kit, question=None)
                    for claims in (said.claims, wanted.claims)
                    for passage in passages
                ),
            )
        )
        of_response, of_reference = by_passage[: len(passages)], by_passage[len(passages) :]
        relevant = [any(one.verdict for one in judged) for judged, _ in of_reference]
        everything = [one for judged, _ in (by_reference, *by_passage) for one in judged]
        detail |= counted(everything, sum(extra for _, extra in (by_reference, *by_passage)))
        detail["passages"] = [
            {"passage": at, "text": text, "relevant": useful}
            for at, (text, useful) in enumerate(zip(passages, relevant, strict=True))
        ]
        found, noise, divisor = [], 0, 0
        for at, claim in enumerate(by_reference[0]):
            if claim.verdict is None and kit.policies.unknown_verdict == "exclude":
                continue
            divisor += 1
            held = [bool(judged[at].verdict) for judged, _ in of_response]
            one = not claim.verdict and noisy(held, relevant, self.mode)
            noise += one
            found.append(
                {
                    "id": claim.id, "claim": claim.text, "verdict": claim.verdict, "reason": claim.reason,
                    "supported_by": [number for number, there in enumerate(held) if there], "noise": one,
                }
            )  # fmt: skip
        detail["claims"] = found
        if not divisor:
            return Undefined("no_verdicts", "the judge could not tell for any claim", detail)
        what = "a relevant passage" if self.mode == "relevant" else "irrelevant passages only"
        reason = f"{noise} of {divisor} claims are wrong and supported by {what}"
        return Scored(float(Fraction(noise, divisor)), reason, detail)
