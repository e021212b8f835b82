"""One judged answer in three parts, weighted as the user likes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

HIGHEST = 4
"""The best rating of a part; the worst is 0."""
TOKENS = 220
"""Tokens of a sentence or two of reason and three ratings."""
PARTS = ("coverage", "correctness", "relevance")

TUNABLE = Prompt(
    task="Compare the answer with the reference, which is the correct answer, and rate three things apart.",
    rules=(
        "`reason`: one or two sentences on what decides.",
        "`coverage`: how much of what the reference says does the answer say? 4 all of it, 2 about half, 0 nothing.",
        (
            "`correctness`: is what the answer says right by the reference? 4 all of it, 2 right and wrong mixed, "
            "0 wrong; what the reference does not speak of does not count."
        ),
        "`relevance`: does the answer keep to the question? 4 entirely, 2 half of it strays, 0 not at all.",
        "Each is a whole number from 0 to 4.",
    ),
)

Part = Annotated[int, Field(ge=0, le=HIGHEST)]


class Parts(BaseModel):
    """The three ratings, the reason before them."""

    reason: str
    coverage: Part
    correctness: Part
    relevance: Part


def weighted(parts: Mapping[str, int], weights: Mapping[str, float]) -> Fraction:
    """Σ weight · rating / 4, over the sum of the weights.

    >>> weighted({"coverage": 4, "correctness": 2, "relevance": 4}, {"coverage": 2, "correctness": 1, "relevance": 1})
    Fraction(7, 8)
    """
    total = sum(Fraction(str(weight)) for weight in weights.values())
    return sum((Fraction(str(weights[name])) * parts[name] for name in weights), Fraction(0)) / (total * HIGHEST)


@metric
@dataclass(frozen=True, repr=False)
class TunableRag(NativeMetric):
    """Weighted mean of three ratings of the response (coverage, correctness, relevance), each a share of its scale.

    Reads: user_input, response, reference.
    Asks: 1 (an object with a reason and three ratings of 0 to 4).
    Range: 0 to 1, higher is better; the three ratings are in detail.
    Undefined when: never, beyond missing fields.
    Differs from its source in: each part is a whole number on a scale that is shown to the judge and kept to (the
    toolkit takes any float); the weights `coverage`, `correctness` and `relevance` need not add up to 1; a reply that
    cannot be read is a failure, not 0.
    Source: NeMo Agent Toolkit 1.9, tunable_rag_evaluator with its default scoring and weights.

    Example::

        ratings 4, 2, 4 with weights 0.5, 0.3, 0.2 -> (0.5 * 4 + 0.3 * 2 + 0.2 * 4) / 4 = 0.85
    """

    coverage: Annotated[float, Field(ge=0)] = 0.5
    correctness: Annotated[float, Field(ge=0)] = 0.3
    relevance: Annotated[float, Field(ge=0)] = 0.2

    aliases: ClassVar[tuple[str, ...]] = ("tunable_rag", "tunable_rag_evaluator")
    reads: ClassVar[tuple[str, ...]] = ("user_input", "response", "reference")
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not any(self.weights.values()):
            raise ValueError("coverage, correctness, relevance: expected at least one weight above 0")

    @property
    def weights(self) -> dict[str, float]:
        """The weights by part."""
        return {name: getattr(self, name) for name in PARTS}

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # one answer whatever the sample says
        """One object."""
        return (Ask(1, "structured", TOKENS),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Ask for the three ratings."""
        data = {"question": sample.user_input, "answer": sample.response, "reference": sample.reference}
        found = await kit.verdict(Prompt(TUNABLE.task, TUNABLE.rules, data), Parts, budget=TOKENS)
        parts = {name: getattr(found, name) for name in PARTS}
        detail: dict[str, Any] = {"parts": parts, "scale": [0, HIGHEST], "weights": self.weights}
        shown = ", ".join(f"{name} {rating}" for name, rating in parts.items())
        reason = " ".join(found.reason.split()) or f"{shown} of {HIGHEST}"
        return Scored(float(weighted(parts, self.weights)), reason, detail)
