"""The rating metrics: two bare ratings each, asked at the same time, and their mean."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from ragparity.core.concurrency import settled
from ragparity.core.errors import JudgeError
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import RATING_TOKENS, Answer, Ask, Scale, Use
from ragparity.core.prompt import Prompt
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

AGREEMENT = Scale((0, 2, 4))
LEVELS = Scale((0, 1, 2))

ACCURACY_RULES = (
    (
        "4: the answer states what the reference states, or one of its alternatives, "
        "in whatever words and with whatever else."
    ),
    "2: the answer states only a part of it.",
    "0: the answer states something else instead, such as another name, number, date or place, or it does not answer.",
    "The reference is right even if you believe otherwise. A long or plausible answer that does not state it is 0.",
)
ACCURACY = Prompt(task="Rate how well the answer agrees with the reference.", rules=ACCURACY_RULES)

RELEVANCE_RULES = (
    "2: the contexts hold everything that is needed to answer the question.",
    "1: they hold a part of what is needed.",
    "0: they hold nothing that helps to answer the question, even if they are on its topic.",
)
RELEVANCE = Prompt(
    task="Rate how far the contexts hold the information that answers the question.", rules=RELEVANCE_RULES
)
RELEVANCE_AGAIN = Prompt(
    task="Could somebody who knows only the contexts answer the question? Rate the contexts.", rules=RELEVANCE_RULES
)

GROUNDEDNESS_RULES = (
    "2: everything it states is said by the contexts or follows from them.",
    "1: a part of it is.",
    "0: nothing of it is, or the contexts contradict it.",
    "Use nothing but the contexts, not what you know.",
)
GROUNDEDNESS = Prompt(task="Rate how far the response is supported by the contexts.", rules=GROUNDEDNESS_RULES)
GROUNDEDNESS_AGAIN = Prompt(
    task="Look for every statement of the response in the contexts, then rate the response.", rules=GROUNDEDNESS_RULES
)


def mean_rating(ratings: Sequence[int], scale: Scale) -> Fraction:
    """The mean of ratings as a share of their scale, from 0 to 1.

    >>> mean_rating([4, 2], AGREEMENT)
    Fraction(3, 4)
    """
    low, high = Fraction(str(scale.points[0])), Fraction(str(scale.points[-1]))
    return sum((rating - low for rating in ratings), Fraction(0)) / (len(ratings) * (high - low))


@dataclass(frozen=True, repr=False)
class _TwoRatings(NativeMetric):
    """Two questions about the same data, in another order or other words, and the mean of the two ratings."""

    uses: ClassVar[frozenset[Use]] = frozenset({"rating"})
    steps: ClassVar[int] = 1
    scale: ClassVar[Scale] = LEVELS

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # two ratings whatever the sample says
        """Two ratings."""
        return (Ask(2, "rating", RATING_TOKENS),)

    @abstractmethod
    def questions(self, sample: Sample) -> tuple[Prompt, Prompt]:
        """The two prompts for a sample."""

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Ask for both ratings at the same time; where only one can be read, the policy `one_rating` decides."""
        asked = [kit.rating(prompt, self.scale) for prompt in self.questions(sample)]
        answers = await settled(asked)
        for one in answers:
            if isinstance(one, BaseException) and not isinstance(one, JudgeError):
                raise one
        readable = [one for one in answers if isinstance(one, Answer)]
        failures = [one for one in answers if isinstance(one, JudgeError)]
        if failures and not (readable and kit.policies.one_rating == "use"):
            first = failures[0]
            first.detail = {"readable_ratings": [one.value for one in readable]}
            raise first
        ratings = [int(one.value) for one in readable]
        detail: dict[str, object] = {"ratings": ratings, "scale": list(self.scale.points)}
        if failures:
            detail |= {"policy": "one_rating", "unreadable": str(failures[0])}
        said = [one.reason for one in readable if one.reason]
        top = self.scale.points[-1]
        reason = (
            " ".join(said)
            or f"rated {' and '.join(str(one) for one in ratings)} of {top} (bare ratings give no reason)"
        )
        return Scored(float(mean_rating(ratings, self.scale)), reason, detail)


@metric
@dataclass(frozen=True, repr=False)
class AnswerAccuracy(_TwoRatings):
    """Mean of two ratings of 0, 2 or 4, divided by 4, of the response against the reference.

    Reads: user_input, response, reference.
    Asks: 2 ratings, the second with the reference before the response; labels stay right.
    Range: 0 to 1 in steps of 1/4, higher is better.
    Undefined when: never, beyond missing fields.
    Differs from its source in: 1 and 3 are no ratings; nothing but a whole rating is read; the second question
    swaps the order but not the roles of response and reference (the collections API swaps the roles).
    Source: Ragas 0.4.3, AnswerAccuracy (NVIDIA's metric).

    Example::

        ratings 4 and 2 -> (4 + 2) / 8 = 0.75
    """

    aliases: ClassVar[tuple[str, ...]] = ("nv_accuracy", "answer_accuracy")
    reads: ClassVar[tuple[str, ...]] = ("user_input", "response", "reference")
    scale: ClassVar[Scale] = AGREEMENT

    def questions(self, sample: Sample) -> tuple[Prompt, Prompt]:
        """The answer first, then the reference first."""
        question = {"question": sample.user_input}
        answer, reference = {"answer": sample.response}, {"reference": sample.reference}
        return (
            Prompt(ACCURACY.task, ACCURACY.rules, {**question, **answer, **reference}),
            Prompt(ACCURACY.task, ACCURACY.rules, {**question, **reference, **answer}),
        )


@metric
@dataclass(frozen=True, repr=False)
class ContextRelevance(_TwoRatings):
    """Mean of two ratings of 0, 1 or 2, divided by 2, of the contexts for the question.

    Reads: user_input, retrieved_contexts.
    Asks: 2 ratings.
    Range: 0 to 1 in steps of 1/4, higher is better.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: no shortcuts: contexts that equal the question are judged like others.
    Source: Ragas 0.4.3, ContextRelevance (NVIDIA's metric).

    Example::

        ratings 2 and 1 -> (2 + 1) / 4 = 0.75
    """

    aliases: ClassVar[tuple[str, ...]] = ("nv_context_relevance", "context_relevance")
    reads: ClassVar[tuple[str, ...]] = ("user_input", "retrieved_contexts")

    def questions(self, sample: Sample) -> tuple[Prompt, Prompt]:
        """The same data, asked in two ways."""
        question, contexts = {"question": sample.user_input}, {"contexts": list(sample.retrieved_contexts or ())}
        return (
            Prompt(RELEVANCE.task, RELEVANCE.rules, {**question, **contexts}),
            Prompt(RELEVANCE_AGAIN.task, RELEVANCE_AGAIN.rules, {**contexts, **question}),
        )


@metric
@dataclass(frozen=True, repr=False)
class ResponseGroundedness(_TwoRatings):
    """Mean of two ratings of 0, 1 or 2, divided by 2, of the support that the contexts give the response.

    Reads: response, retrieved_contexts.
    Asks: 2 ratings.
    Range: 0 to 1 in steps of 1/4, higher is better.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: a response that is a piece of a context is judged like others (the legacy API
    gives it 1.0 without asking, so "No" is found in "Norway").
    Source: Ragas 0.4.3, ResponseGroundedness (NVIDIA's metric).

    Example::

        ratings 1 and 1 -> (1 + 1) / 4 = 0.5
    """

    aliases: ClassVar[tuple[str, ...]] = ("nv_response_groundedness", "response_groundedness")
    reads: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")

    def questions(self, sample: Sample) -> tuple[Prompt, Prompt]:
        """The same data, asked in two ways."""
        contexts, response = {"contexts": list(sample.retrieved_contexts or ())}, {"response": sample.response}
        return (
            Prompt(GROUNDEDNESS.task, GROUNDEDNESS.rules, {**contexts, **response}),
            Prompt(GROUNDEDNESS_AGAIN.task, GROUNDEDNESS_AGAIN.rules, {**response, **contexts}),
        )
