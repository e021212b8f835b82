"""Retrieved passages against reference passages by string similarity, without a judge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ragparity.core.outcome import Scored
from ragparity.metrics.ranking import average_precision
from ragparity.metrics.strings import Distance, similarity
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.sample import Sample

Threshold = Annotated[float, Field(ge=0, le=1)]
"""The similarity from which on two passages count as the same."""


@dataclass(frozen=True, slots=True)
class Closest:
    """The most similar of some passages: its index and how similar it is."""

    index: int
    similarity: float


def closest(text: str, passages: Sequence[str], measure: Distance = "levenshtein") -> Closest:
    """The passage most like the text, the first of several; there must be one.

    >>> closest("Paris", ["Rome", "Pariss"])
    Closest(index=1, similarity=0.8333333333333334)
    """
    found = [similarity(text, passage, measure) for passage in passages]
    best = max(found)
    return Closest(found.index(best), best)


def matches(found: float, threshold: float, *, strict: bool = False) -> bool:
    """Whether a similarity counts as a match: at the threshold it does, unless `strict`.

    >>> matches(0.5, 0.5), matches(0.5, 0.5, strict=True)
    (True, False)
    """
    return found > threshold if strict else found >= threshold


def _judged(index: int, text: str, best: Closest, *, matched: bool) -> dict[str, Any]:
    return {
        "passage": index,
        "text": text,
        "similarity": best.similarity,
        "closest": best.index,
        "matched": matched,
    }


@metric
@dataclass(frozen=True, repr=False)
class NonLLMContextPrecisionWithReference(Unjudged):
    """Σ_k precision@k · match_k / matching passages; 0 when none matches.

    A retrieved passage matches when its best string similarity to a reference passage reaches the threshold.

    Reads: retrieved_contexts, reference_contexts.
    Asks: nothing.
    Range: 0 to 1, higher is better. Rank counts; 1 when all matching passages stand in front.
    Settings: threshold (0.5); distance_measure, `levenshtein` (default), `hamming`, `jaro` or `jaro_winkler`.
    Undefined when: never, once both fields hold text.
    Differs from its source in: exact, where Ragas adds 1e-10 to the divisor and never reaches 1; blank
        passages are dropped.
    Source: Ragas 0.4.3, NonLLMContextPrecisionWithReference.

    Example::

        >>> average_precision([False, True, False, True], of=2)  # (1/2 + 2/4) / 2
        0.5
    """

    threshold: Threshold = 0.5
    distance_measure: Distance = "levenshtein"

    reads: ClassVar[tuple[str, ...]] = ("retrieved_contexts", "reference_contexts")

    def outcome(self, sample: Sample) -> Scored:
        """Score one admitted sample."""
        retrieved = sample.retrieved_contexts or ()
        found = [closest(text, sample.reference_contexts or (), self.distance_measure) for text in retrieved]
        hits = [matches(best.similarity, self.threshold) for best in found]
        detail = {
            "retrieved_contexts": [
                _judged(index, text, best, matched=hit)
                for index, (text, best, hit) in enumerate(zip(retrieved, found, hits, strict=True))
            ]
        }
        reason = f"{sum(hits)} of {len(hits)} retrieved passages match a reference passage"
        return Scored(average_precision(hits, of=sum(hits)), reason, detail)


@metric
@dataclass(frozen=True, repr=False)
class NonLLMContextRecall(Unjudged):
    """Reference passages matched by a retrieved passage / reference passages.

    A reference passage is matched when its best string similarity to a retrieved passage reaches the
    threshold.

    Reads: retrieved_contexts, reference_contexts.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: threshold (0.5); strict (false), where true wants more than the threshold;
        distance_measure, `levenshtein` (default), `hamming`, `jaro` or `jaro_winkler`.
    Undefined when: never, once both fields hold text.
    Differs from its source in: a similarity of exactly the threshold counts, as it does in the precision;
        Ragas wants more here (`strict: true`); blank passages are dropped.
    Source: Ragas 0.4.3, NonLLMContextRecall.

    Example::

        >>> matches(0.5, 0.5), matches(0.5, 0.5, strict=True)
        (True, False)
    """

    threshold: Threshold = 0.5
    strict: bool = False
    distance_measure: Distance = "levenshtein"

    reads: ClassVar[tuple[str, ...]] = ("retrieved_contexts", "reference_contexts")

    def outcome(self, sample: Sample) -> Scored:
        """Score one admitted sample."""
        wanted = sample.reference_contexts or ()
        found = [closest(text, sample.retrieved_contexts or (), self.distance_measure) for text in wanted]
        hits = [matches(best.similarity, self.threshold, strict=self.strict) for best in found]
        detail = {
            "reference_contexts": [
                _judged(index, text, best, matched=hit)
                for index, (text, best, hit) in enumerate(zip(wanted, found, hits, strict=True))
            ]
        }
        reason = f"{sum(hits)} of {len(hits)} reference passages match a retrieved passage"
        return Scored(float(Fraction(sum(hits), len(hits))), reason, detail)
