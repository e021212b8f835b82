"""Agent goal accuracy: whether a conversation with an agent ended where it should."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel

from ragparity.core.outcome import Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.conversation import turns_of
from ragparity.metrics.one_verdict import TOKENS, Reasoned, scored
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from ragparity.core.outcome import Scored
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

GOAL_AND_END = Prompt(
    task="Read a conversation between a user and an agent; say what the user wanted and what came of it.",
    rules=(
        "`user_goal`: all that the user asked for, later changes of mind included, in one or two sentences.",
        "`end_state`: what is done, answered, refused or still open at the end, in one or two sentences.",
        "A tool's result counts more than what the agent says about it.",
        "Only report what happened; do not judge it.",
    ),
)
MET = Prompt(
    task="Decide whether the end state of a conversation meets the goal.",
    rules=(
        "`reason`: one short sentence: what is met, or what is missing or different.",
        '`verdict`: "yes" if all that the goal asks for is there, in whatever words, and nothing contradicts it.',
        '"no" if a part is missing, different or only promised.',
    ),
)


class GoalAndEnd(BaseModel):
    """What the user wanted, and the state in which the conversation ended."""

    user_goal: str
    end_state: str


@dataclass(frozen=True, repr=False)
class _Goal(NativeMetric):
    """What the metrics of this file share; they differ in where the goal comes from."""

    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 2

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # two short answers whatever was said
        """What happened, and whether that was the goal."""
        return (Ask(1, "structured", TOKENS), Ask(1, "structured", TOKENS))

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Find out goal and end state, then compare the end state with the reference or with the goal."""
        turns = turns_of(sample.messages or ())
        if not turns:
            return Undefined("no_messages", "the conversation has no message")
        prompt = Prompt(GOAL_AND_END.task, GOAL_AND_END.rules, {"conversation": turns})
        found = await kit.verdict(prompt, GoalAndEnd, budget=TOKENS)
        wanted = sample.reference if "reference" in (*self.reads, *self.may_read) else None
        data = {"goal": wanted or found.user_goal, "end_state": found.end_state}
        answer = await kit.verdict(Prompt(MET.task, MET.rules, data), Reasoned, budget=TOKENS)
        return scored(answer, kit.policies, {"user_goal": found.user_goal, "end_state": found.end_state})


@metric
@dataclass(frozen=True, repr=False)
class AgentGoalAccuracy(_Goal):
    """1 when the end state of the conversation meets the reference, or without one the user's own goal, else 0.

    Reads: messages; reference where present: the outcome that was wanted.
    Asks: 2, one after the other (goal and end state, then the comparison).
    Range: 0 or 1, higher is better.
    Undefined when: there is no message (`no_messages`).
    Differs from its source in: one class takes the reference where a row has one; verdicts are read in every spelling
    (the source takes the texts 0 and 1 only); "cannot tell" is no (policy `unknown_verdict`).
    Raises: `SampleError` for what is no message.
    Source: Ragas 0.4.3, AgentGoalAccuracy.

    Example::

        "Book a table for four.", "The table is booked."; reference "a table for four is booked" -> 1
    """

    aliases: ClassVar[tuple[str, ...]] = ("agent_goal_accuracy",)
    reads: ClassVar[tuple[str, ...]] = ("messages",)
    may_read: ClassVar[tuple[str, ...]] = ("reference",)


@metric
@dataclass(frozen=True, repr=False)
class AgentGoalAccuracyWithReference(_Goal):
    """1 when the end state of the conversation is the wanted one, else 0.

    Reads: messages, reference (the outcome that was wanted).
    Asks: 2, one after the other (goal and end state, then the comparison).
    Range: 0 or 1, higher is better.
    Undefined when: there is no message (`no_messages`).
    Differs from its source in: verdicts are read in every spelling; "cannot tell" is no (policy `unknown_verdict`).
    Raises: `SampleError` for what is no message.
    Source: Ragas 0.4.3, AgentGoalAccuracyWithReference.

    Example::

        "The table is booked."; reference "a table for four is booked" -> 1
    """

    reads: ClassVar[tuple[str, ...]] = ("messages", "reference")


@metric
@dataclass(frozen=True, repr=False)
class AgentGoalAccuracyWithoutReference(_Goal):
    """1 when the end state of the conversation is what the user wanted, else 0.

    Reads: messages.
    Asks: 2, one after the other (goal and end state, then the comparison).
    Range: 0 or 1, higher is better.
    Undefined when: there is no message (`no_messages`).
    Differs from its source in: verdicts are read in every spelling; "cannot tell" is no (policy `unknown_verdict`).
    Raises: `SampleError` for what is no message.
    Source: Ragas 0.4.3, AgentGoalAccuracyWithoutReference.

    Example::

        "Book a table for four.", "I can not do that." -> 0
    """

    reads: ClassVar[tuple[str, ...]] = ("messages",)
