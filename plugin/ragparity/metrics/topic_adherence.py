"""Topic adherence: whether an agent answered on the topics that it may answer on, and on no others."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel

from ragparity.core.concurrency import together
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.claims import BATCH, TOKENS_AROUND, Judged, distinct, judge_pieces, verdicts_budget
from ragparity.metrics.conversation import turns_of
from ragparity.metrics.correctness import Mode, f_of_counts
from ragparity.metrics.faithfulness import counted
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

TOPICS_BUDGET = TOKENS_AROUND + 20 * BATCH

ASKED_ABOUT = Prompt(
    task="List the topics about which the user asks in the conversation.",
    rules=(
        "Each topic in a few words, once; a topic of several questions is one.",
        "Only topics that the user raises, whether the agent answers or not.",
    ),
)
ANSWERED = Prompt(
    task="For each topic, decide whether the agent answered what the user asked about it.",
    rules=(
        '`evidence`: the words of the agent that decide, copied; "none" if there are none.',
        '`verdict`: "yes" if the agent gave an answer or did what was asked; "no" if it declined or passed over it.',
        "Give one verdict for each topic, with its id.",
    ),
)
ALLOWED = Prompt(
    task="For each topic, decide whether it belongs to one of the reference topics.",
    rules=(
        '`evidence`: the reference topic that it belongs to, copied; "none" if there is none.',
        '`verdict`: "yes" if it is the same as that reference topic or a part of it, else "no".',
        "Give one verdict for each topic, with its id.",
    ),
)


class Topics(BaseModel):
    """What a conversation is about."""

    topics: list[str]


def adherence(answered: Sequence[bool], allowed: Sequence[bool], mode: Mode) -> Fraction | None:
    """Precision, recall or F1 of the answered topics against the allowed ones; `None` for nothing by nothing.

    >>> adherence([True, True, False], [True, False, True], "f1"), adherence([False], [False], "f1")
    (Fraction(1, 2), None)
    """
    right = sum(one and may for one, may in zip(answered, allowed, strict=True))
    wrong, missed = sum(answered) - right, sum(allowed) - right
    if mode == "f1":
        return f_of_counts(right, wrong, missed) if right + wrong + missed else None
    divisor = right + (wrong if mode == "precision" else missed)
    return Fraction(right, divisor) if divisor else None


@metric
@dataclass(frozen=True, repr=False)
class TopicAdherence(NativeMetric):
    """F1 of the topics that the agent answered against those that it may answer, or with `mode` precision or recall.

    Precision: allowed and answered topics / answered ones. Recall: allowed and answered ones / allowed ones.

    Reads: messages, reference_topics.
    Asks: 3 (the topics; then, at the same time, which were answered and which are allowed; one more of each per further
    10 topics).
    Range: 0 to 1, higher is better.
    Undefined when: there is no message (`no_messages`), no reference topic (`no_reference_topics`) or the user
    raises no topic (`no_topics`); nothing was answered (precision, `no_answered_topics`), nothing is allowed (recall,
    `no_allowed_topics`) or neither (F1): an agent that declines all that it must decline is no 0.
    Differs from its source in: both kinds of verdict are matched to the topics by number, missing ones are asked again
    (the source pads or cuts the list); topics are judged in batches instead of one by one; a divisor of 0 is undefined;
    no epsilon.
    Raises: `SampleError` for what is no message.
    Source: Ragas 0.4.3, TopicAdherence (TopicAdherenceScore).

    Example::

        topics: answered and allowed, answered and not allowed, allowed and not answered -> F1 1/2
    """

    mode: Literal["f1", "precision", "recall"] = "f1"

    aliases: ClassVar[tuple[str, ...]] = ("TopicAdherenceScore", "topic_adherence")
    reads: ClassVar[tuple[str, ...]] = ("messages", "reference_topics")
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 2

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # the number of topics is not known before
        """The topics, and two kinds of verdict on up to ten of them."""
        return (Ask(1, "structured", TOPICS_BUDGET), Ask(2, "structured", verdicts_budget(BATCH)))

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Find the topics, then judge each twice, and count."""
        turns = turns_of(sample.messages or ())
        wanted = distinct(sample.reference_topics or ())
        if not turns:
            return Undefined("no_messages", "the conversation has no message")
        if not wanted:
            return Undefined("no_reference_topics", "the row names no reference topic")
        prompt = Prompt(ASKED_ABOUT.task, ASKED_ABOUT.rules, {"conversation": turns})
        topics = distinct((await kit.verdict(prompt, Topics, budget=TOPICS_BUDGET)).topics)
        if not topics:
            return Undefined("no_topics", "the user raises no topic")

        async def verdicts(asked: Prompt, data: dict[str, object]) -> tuple[list[Judged], int]:
            return await judge_pieces(
                topics, lambda some: Prompt(asked.task, asked.rules, {**data, "topics": some}), kit, what="topics"
            )

        (answered, extra), (allowed, more) = await together(
            (verdicts(ANSWERED, {"conversation": turns}), verdicts(ALLOWED, {"reference_topics": wanted}))
        )
        pairs = list(zip(answered, allowed, strict=True))
        detail: dict[str, object] = {
            "topics": [
                {
                    "id": one.id, "topic": one.text, "answered": one.verdict, "allowed": may.verdict,
                    "reason": one.reason, "allowed_by": may.reason,
                }
                for one, may in pairs
            ],
            **counted([*answered, *allowed], extra + more),
        }  # fmt: skip
        if kit.policies.unknown_verdict == "exclude":
            pairs = [(one, may) for one, may in pairs if None not in (one.verdict, may.verdict)]
        if not pairs:
            return Undefined("no_verdicts", "the judge could not tell for any topic", detail)
        said, may_say = [bool(one.verdict) for one, _ in pairs], [bool(may.verdict) for _, may in pairs]
        value = adherence(said, may_say, self.mode)
        if value is None:
            why = "no_answered_topics" if self.mode == "precision" else "no_allowed_topics"
            nothing = {"precision": "answered", "recall": "allowed", "f1": "answered or allowed"}[self.mode]
            return Undefined(why, f"none of {len(pairs)} topics is {nothing}", detail)
        right = sum(one and may for one, may in zip(said, may_say, strict=True))
        reason = f"of {len(pairs)} topics {sum(said)} are answered and {sum(may_say)} allowed, {right} both"
        return Scored(float(value), reason, detail)
