"""Answer relevancy: whether the response answers the question that was asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from ragparity.core.errors import MalformedVerdict
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.claims import TOKENS_AROUND
from ragparity.registry import NativeMetric, metric
from ragparity.vectors import cosine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

TOKENS_PER_QUESTION = 60

ASK_BACK = Prompt(
    task="Write questions to which the response is the answer, as many as `how_many_questions` says.",
    rules=(
        "Each question asks for all that the response says, is complete on its own, and is worded differently.",
        "Write in the language of the response.",
        (
            '`noncommittal` is true when the response avoids an answer ("I don\'t know", "it depends", '
            "a reference to somewhere else), false when it says something definite, right or wrong."
        ),
    ),
)


class AskedBack(BaseModel):
    """A question that the response answers; `noncommittal` says that the response answers nothing."""

    question: str
    noncommittal: bool


@lru_cache(maxsize=16)
def questions_schema(n: int) -> type[BaseModel]:
    """`n` questions; fewer are accepted and asked for again."""

    class Questions(BaseModel):
        questions: Annotated[list[AskedBack], Field(json_schema_extra={"minItems": n, "maxItems": n})]

    return Questions


def noncommittal_by(flags: Sequence[bool], rule: Literal["all", "majority", "any"]) -> bool:
    """Whether a response counts as noncommittal, from the flags of its questions.

    >>> noncommittal_by([False, True, False], "majority"), noncommittal_by([False, True, False], "any")
    (False, True)
    """
    if rule == "all":
        return all(flags)
    return any(flags) if rule == "any" else 2 * sum(flags) > len(flags)


@metric
@dataclass(frozen=True, repr=False)
class AnswerRelevancy(NativeMetric):
    """Mean cosine similarity of the question and `strictness` questions made from the response; 0 if noncommittal.

    Reads: user_input, response.
    Asks: 1 for all the questions, then 1 request for the vectors.
    Range: −1 to 1, higher is better; its floor depends on the embedding model.
    Undefined when: a vector is zero (`zero_vector`).
    Differs from its source in: the questions come from one call that asks for different ones; blank questions are
    asked for again instead of becoming zero vectors; `noncommittal` says whether all, the majority or any of the
    flags make the response noncommittal (default all, as in Ragas).
    Source: Ragas 0.4.3, AnswerRelevancy (ResponseRelevancy).

    Example::

        similarities 0.91, 0.88, 0.94, no flag -> 0.91; all three flags -> 0.0
    """

    strictness: Annotated[int, Field(ge=1, le=20)] = 3
    noncommittal: Literal["all", "majority", "any"] = "all"

    aliases: ClassVar[tuple[str, ...]] = ("ResponseRelevancy", "answer_relevancy")
    reads: ClassVar[tuple[str, ...]] = ("user_input", "response")
    uses: ClassVar[frozenset[Use]] = frozenset({"structured", "embeddings"})
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    steps: ClassVar[int] = 2

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # the questions are short whatever the sample says
        """The questions and the vectors."""
        return (Ask(1, "structured", questions_budget(self.strictness)), Ask(1, "embeddings"))

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Ask back, then compare with the question that was asked."""
        asked = await self._asked_back(sample, kit)
        flags = [one.noncommittal for one in asked]
        evasive = noncommittal_by(flags, self.noncommittal)
        detail: dict[str, object] = {
            "questions": [{"question": one.question, "noncommittal": one.noncommittal} for one in asked]
        }
        if evasive:
            return Scored(0.0, "the response is noncommittal", detail | {"noncommittal": True})
        vectors = await kit.embed([sample.user_input or "", *(one.question for one in asked)])
        similarities = [cosine(vectors[0], one) for one in vectors[1:]]
        known = [one for one in similarities if one is not None]
        detail["similarities"] = similarities
        if len(known) < len(similarities):
            return Undefined("zero_vector", "the embedder gave a zero vector", detail)
        if any(flags):
            detail["noncommittal"] = False
        if len(asked) < self.strictness:
            detail["questions_missing"] = self.strictness - len(asked)
        mean = math.fsum(known) / len(known)
        return Scored(mean, f"mean similarity of {len(known)} questions that the response answers", detail)

    async def _asked_back(self, sample: Sample, kit: Kit) -> list[AskedBack]:
        """The questions with text; blank or missing ones are asked for once more."""
        found: list[AskedBack] = []
        for draw in (0, 1):
            lacking = self.strictness - len(found)
            prompt = Prompt(ASK_BACK.task, ASK_BACK.rules, {"response": sample.response, "how_many_questions": lacking})
            answer = await kit.verdict(prompt, questions_schema(lacking), budget=questions_budget(lacking), draw=draw)
            asked: list[AskedBack] = answer.questions  # type: ignore[attr-defined]  # a field of the schema asked for
            found += [one for one in asked if one.question.strip()][:lacking]
            if len(found) == self.strictness:
                return found
        if not found:
            raise MalformedVerdict("the judge gave only blank questions, also when asked again", attempts=2)
        return found


def questions_budget(n: int) -> int:
    """Tokens that `n` questions need."""
    return TOKENS_AROUND + TOKENS_PER_QUESTION * n
