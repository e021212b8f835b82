"""Judges and embedders that say what they are told: for tests, for examples, and for checking a metric by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ragparity.core.errors import MalformedVerdict
from ragparity.core.ports import Answer, Question, Rating, Structured, Tally, Usage

Reply = Any
"""A text, a number (a rating), a mapping (an object of the schema), an `Answer`, or an exception to raise."""


class ScriptedJudge:
    """Answers from a list in the order of the questions, or from a function of the question.

    Every question is kept in `questions`. A list that is used up is an error, so a test notices a
    question too many.

    >>> import asyncio
    >>> from ragparity.core.ports import Kit, Scale
    >>> from ragparity.core.prompt import Prompt
    >>> judge = ScriptedJudge([4])
    >>> asyncio.run(Kit(judge=judge).rating(Prompt("Rate it."), Scale((0, 2, 4)))).value
    4
    >>> len(judge.questions)
    1
    """

    identity = "scripted"

    def __init__(self, replies: Iterable[Reply] | Callable[[Question], Reply]) -> None:
        self._say: Callable[[Question], Reply]
        if callable(replies):
            self._say = replies
        else:
            left = iter(list(replies))
            self._say = lambda question: _next(left, question)
        self.questions: list[Question] = []

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """The scripted reply; an exception in the script is raised."""
        self.questions.append(question)
        tally.call(Usage(input_tokens=0, output_tokens=0))
        reply = self._say(question)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Answer):
            return reply
        return Answer(value=_shaped(reply, question), raw=str(reply))


def _next(left: Any, question: Question) -> Reply:
    try:
        return next(left)
    except StopIteration:
        raise AssertionError(f"the script has no reply left for: {question.prompt.task}") from None


def _shaped(reply: Reply, question: Question) -> Any:
    if isinstance(question.shape, Structured) and isinstance(reply, Mapping):
        try:
            return question.shape.schema.model_validate(reply)
        except ValidationError as error:
            text = f"the scripted reply does not fit: {error.errors()[0]['msg']}"
            raise MalformedVerdict(text, raw=str(reply)) from None
    if isinstance(question.shape, Rating) and reply not in question.shape.scale.points:
        raise MalformedVerdict(f"{reply!r} is not one of {question.shape.scale.points}", raw=str(reply))
    return reply


class ScriptedEmbedder:
    """Vectors from a function of the text, or from a mapping of texts to vectors."""

    identity = "scripted"

    def __init__(self, vectors: Callable[[str], Sequence[float]] | Mapping[str, Sequence[float]]) -> None:
        self._vector = vectors if callable(vectors) else vectors.__getitem__
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """The scripted vectors, in order."""
        self.texts.extend(texts)
        tally.embedding(0)
        return [list(self._vector(text)) for text in texts]
