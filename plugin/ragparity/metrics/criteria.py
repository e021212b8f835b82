"""Criteria in the user's own words: one aspect, yes or no, and one criterion on a declared scale."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ragparity.core.concurrency import settled
from ragparity.core.errors import JudgeError
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import RATED_WITH_REASON, RATING_TOKENS, Answer, Ask, Scale, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.shown import Readable, check_reads, data_of
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

YES_OR_NO = Scale((0, 1))

ASPECT = Prompt(
    task="Decide whether the criterion holds for what the user message shows.",
    rules=(
        "1: the criterion holds.",
        "0: it does not hold, or not clearly.",
        "Judge nothing but the criterion: not length, style or anything else that it does not name.",
    ),
)
CRITERION = Prompt(
    task="Rate what the user message shows by the criterion.",
    rules=(
        "Judge nothing but the criterion: not length, style or anything else that it does not name.",
        "Use the whole scale; choose the lower of two ratings when you hesitate.",
    ),
)

_RANGE = re.compile(
    r"\b(?:(?:scale|score|grade|mark|rating)[sd]?\b[^.;\n]{0,24}?|rated?\b[^.;\n]{0,24}?\b(?:from|between|on|with)\b[^.;\n]{0,12}?)"
    r"(?<![\w.])([01](?:\.0+)?)\s*(?:to|-|–|—|and|through|\.\.)\s*(\d{1,3}(?:\.\d+)?)(?![\w%]|\.\d)",
    re.IGNORECASE,
)


def check_definition(definition: str) -> None:
    """Raise `ValueError` for a criterion without words."""
    if not re.search(r"\w", definition):
        raise ValueError(f"definition: expected a criterion in words, got {definition!r}")


def check_scale_in_words(definition: str, scale: Scale) -> None:
    """Raise `ValueError` where a criterion speaks of another scale than the declared one.

    >>> check_scale_in_words("Score from 0.0 to 1.0 by similarity.", Scale((1, 2, 3, 4, 5)))
    Traceback (most recent call last):
    ValueError: the definition speaks of a scale from 0 to 1, the declared scale goes from 1 to 5; make them agree
    """
    found = _RANGE.search(definition)
    if found is None:
        return
    said, declared = (float(found[1]), float(found[2])), (scale.points[0], scale.points[-1])
    if said != declared and said[0] < said[1]:
        raise ValueError(
            f"the definition speaks of a scale from {said[0]:g} to {said[1]:g}, the declared scale goes from "
            f"{declared[0]:g} to {declared[1]:g}; make them agree"
        )


def majority(votes: Sequence[int], draws: int) -> int | None:
    """The vote of more than half of all `draws`, `None` while the missing ones could still decide.

    >>> majority([1, 1], 3), majority([1, 0], 3)
    (1, None)
    """
    return next((one for one in (0, 1) if 2 * sum(vote == one for vote in votes) > draws), None)


@metric
@dataclass(frozen=True, repr=False)
class AspectCritic(NativeMetric):
    """1 when the criterion holds, 0 when it does not, by the majority of the draws.

    Reads: the fields in `reads` (user_input, response).
    Asks: `strictness` ratings of 0 or 1, an odd number, at the same time.
    Range: 0 or 1, higher is better; for a criterion that names a fault, 1 means the fault is there.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: `strictness` draws are really made (Ragas makes one) and their majority counts; an
    even number is refused; 5 or -1 is no answer; a draw that fails matters only where it could decide. With
    temperature 0 the draws hardly differ.
    Source: Ragas 0.4.3, AspectCritic. `definition` is the criterion.

    Example::

        definition "Is the answer polite?", strictness 3, draws 1, 0, 1 -> 1
    """

    definition: str = field()
    reads: tuple[Readable, ...] = ("user_input", "response")  # type: ignore[misc]  # chosen for each metric
    strictness: int = 1

    aliases: ClassVar[tuple[str, ...]] = ("aspect_critic",)
    uses: ClassVar[frozenset[Use]] = frozenset({"rating"})
    steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_definition(self.definition)
        check_reads(self.reads)
        if self.strictness < 1 or self.strictness % 2 == 0:
            raise ValueError(f"strictness: expected an odd number of draws, 1 or more, got {self.strictness}")

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # the same whatever the sample says
        """As many ratings as draws."""
        return (Ask(self.strictness, "rating", RATING_TOKENS),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Ask for all draws at the same time; the majority decides."""
        rules = (*ASPECT.rules, f"The criterion: {self.definition.strip()}")
        prompt = Prompt(ASPECT.task, rules, data_of(sample, self.reads))
        answers = await settled(kit.rating(prompt, YES_OR_NO, draw=draw) for draw in range(self.strictness))
        for one in answers:
            if isinstance(one, BaseException) and not isinstance(one, JudgeError):
                raise one
        readable = [one for one in answers if isinstance(one, Answer)]
        failures = [one for one in answers if isinstance(one, JudgeError)]
        votes = [int(one.value) for one in readable]
        vote = majority(votes, self.strictness)
        if vote is None:
            first = failures[0]
            first.detail = {"readable_votes": votes}
            raise first
        detail: dict[str, object] = {"votes": votes, "scale": [0, 1]}
        if failures:
            detail["failed_draws"] = len(failures)
        said = next((one.reason for one in readable if one.reason and one.value == vote), None)
        count = f"{votes.count(vote)} of {self.strictness} draws say that the criterion "
        return Scored(float(vote), said or count + ("holds" if vote else "does not hold"), detail)


@metric
@dataclass(frozen=True, repr=False)
class SimpleCriteria(NativeMetric):
    """(rating - min) / (max - min) of one rating by the criterion, on the declared scale.

    Reads: the fields in `reads` (user_input, response).
    Asks: 1 rating.
    Range: 0 to 1 in steps of `step` / (max - min), higher is better; the raw rating is in detail.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: the scale is declared (`scale`, its lowest and highest rating, and `step`), shown to the
    judge and kept to: a rating off the scale or between its steps is asked for again, never a score; the minimum is
    subtracted, so the lowest rating is 0 and not 1; a definition that speaks of another scale is refused.
    Source: Ragas 0.4.3, SimpleCriteriaScore. `definition` is the criterion.

    Example::

        scale [1, 5], rating 4 -> (4 - 1) / (5 - 1) = 0.75
    """

    definition: str = field()
    scale: tuple[float, float] = (1, 5)
    step: float = 1
    reads: tuple[Readable, ...] = ("user_input", "response")  # type: ignore[misc]  # chosen for each metric

    aliases: ClassVar[tuple[str, ...]] = ("SimpleCriteriaScore", "simple_criteria")
    uses: ClassVar[frozenset[Use]] = frozenset({"rating"})
    steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_definition(self.definition)
        check_reads(self.reads)
        check_scale_in_words(self.definition, self.points)

    @property
    def points(self) -> Scale:
        """The scale with its steps."""
        return Scale.between(*self.scale, self.step)

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # the same whatever the sample says
        """One rating; on a scale of fractions with its reason."""
        return rating_asked(self.points)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Ask for the rating."""
        scale = self.points
        rules = (
            *CRITERION.rules,
            f"The criterion: {self.definition.strip()}",
            f"{scale.points[0]:g} is the worst rating and {scale.points[-1]:g} the best.",
        )
        answer = await kit.rating(Prompt(CRITERION.task, rules, data_of(sample, self.reads)), scale)
        return rated(answer, scale)


def rating_asked(scale: Scale) -> tuple[Ask, ...]:
    """The call for one rating on a scale."""
    budget = RATING_TOKENS if scale.bare else RATED_WITH_REASON
    return (Ask(1, "rating", budget),)


def rated(answer: Answer, scale: Scale, **more: object) -> Scored:
    """The score of a rating: its share of the scale; the raw rating and the scale are kept."""
    points = list(scale.points)
    shown = points if len(points) <= 11 else [points[0], points[-1]]  # noqa: PLR2004  # a long scale by its ends
    detail: dict[str, object] = {"rating": answer.value, "scale": shown, **more}
    reason = (
        answer.reason or f"rated {answer.value:g} on {points[0]:g} to {points[-1]:g} (a bare rating gives no reason)"
    )
    return Scored(scale.share(answer.value), " ".join(reason.split()), detail)
