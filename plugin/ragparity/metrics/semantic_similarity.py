"""Semantic similarity: how near the vectors of response and reference are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.registry import NativeMetric, metric
from ragparity.vectors import cosine

if TYPE_CHECKING:
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample


@metric
@dataclass(frozen=True, repr=False)
class SemanticSimilarity(NativeMetric):
    """Cosine of the vectors of response and reference; with a `threshold` 1 from there on, below it 0.

    Reads: response, reference.
    Asks: no judge; 1 request for the vectors.
    Range: −1 to 1, higher is better; its floor depends on the embedding model.
    Undefined when: a vector is zero (`zero_vector`).
    Differs from its source in: a threshold of 0 is a threshold; blank texts are missing, not embedded as a blank.
    Source: Ragas 0.4.3, SemanticSimilarity (AnswerSimilarity).

    Example::

        vectors (1, 0) and (3, 4) -> 0.6; with threshold 0.5 -> 1.0
    """

    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None

    aliases: ClassVar[tuple[str, ...]] = ("AnswerSimilarity", "semantic_similarity", "answer_similarity")
    reads: ClassVar[tuple[str, ...]] = ("response", "reference")
    uses: ClassVar[frozenset[Use]] = frozenset({"embeddings"})
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    steps: ClassVar[int] = 1

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # one request whatever the sample says
        """The vectors."""
        return (Ask(1, "embeddings"),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Compare the two vectors."""
        similarity = cosine(*await kit.embed([sample.response or "", sample.reference or ""]))
        if similarity is None:
            return Undefined("zero_vector", "the embedder gave a zero vector")
        detail = {"similarity": similarity}
        if self.threshold is None:
            return Scored(similarity, f"similarity {similarity:.2f}", detail)
        reached = similarity >= self.threshold
        side = "reaches" if reached else "is below"
        return Scored(float(reached), f"similarity {similarity:.2f} {side} {self.threshold:g}", detail)
