"""Rubrics: a description for each rating, the same for all rows or one for each row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ragparity.core.errors import SampleError
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import RATING_TOKENS, Ask, Scale, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.criteria import rated
from ragparity.metrics.shown import Readable, check_reads, data_of
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

RUBRIC = Prompt(
    task="Rate the answer by the rubric.",
    rules=(
        "Compare the answer with every level of the rubric, and choose the level that describes it best.",
        "Judge nothing that the rubric does not name.",
    ),
)
RUBRIC_IN_DATA = Prompt(
    task="Rate the answer by the rubric, which the data shows under the label rubric.",
    rules=RUBRIC.rules,
)
WITH_REFERENCE = "The reference is a correct answer to the question."

_LEVEL = re.compile(r"(?:(?:score|level|rating)[ _-]?)?(\d{1,3})(?:[ _-]?(?:description|desc))?", re.IGNORECASE)


def levels_of(rubrics: Mapping[Any, Any]) -> dict[int, str]:
    """Rating -> description, in ascending order; raises `ValueError` with what is wrong.

    A key is the rating, alone or as Ragas writes it.

    >>> levels_of({"score2_description": "right", "score1_description": "wrong"})
    {1: 'wrong', 2: 'right'}
    """
    found: dict[int, str] = {}
    for key, description in rubrics.items():
        name = _LEVEL.fullmatch(str(key).strip())
        if name is None:
            raise ValueError(f"rubrics: {key!r} names no rating; expected keys such as score1_description or 1")
        rating = int(name[1])
        if rating in found:
            raise ValueError(f"rubrics: two descriptions for {rating}")
        if not isinstance(description, str) or not description.strip():
            raise ValueError(f"rubrics: {key}: expected a description in words, got {description!r}")
        found[rating] = " ".join(description.split())
    if len(found) < 2:  # noqa: PLR2004  # a worst and a best
        raise ValueError(f"rubrics: expected descriptions of two or more ratings, got {len(found)}")
    return dict(sorted(found.items()))


@dataclass(frozen=True, repr=False)
class _Rubrics(NativeMetric):
    rubrics: dict[int | str, str] = field(hash=False)
    reads: tuple[Readable, ...] = ("user_input", "response")  # type: ignore[misc]  # chosen for each metric

    uses: ClassVar[frozenset[Use]] = frozenset({"rating"})
    steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        levels_of(self.rubrics)
        check_reads(self.reads)
        if "response" not in self.reads:
            raise ValueError(f"reads: expected response among the fields, got {list(self.reads)}")

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # the same whatever the sample says
        """One rating."""
        return (Ask(1, "rating", RATING_TOKENS),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Ask for the rating."""
        levels = levels_of(self.rubrics)
        scale = Scale(tuple(levels))
        rules = (
            *RUBRIC.rules,
            *([WITH_REFERENCE] if "reference" in self.reads else []),
            *(f"{rating}: {text}" for rating, text in levels.items()),
        )
        answer = await kit.rating(Prompt(RUBRIC.task, rules, data_of(sample, self.reads)), scale)
        return rated(answer, scale, level=levels[int(answer.value)])


@metric
@dataclass(frozen=True, repr=False)
class RubricsScore(_Rubrics):
    """(rating - min) / (max - min) of one rating by a rubric that describes every rating.

    Reads: the fields in `reads` (user_input, response; add retrieved_contexts where the rubric speaks of them).
    Asks: 1 rating.
    Range: 0 to 1, higher is better; the raw rating and the level's description are in detail.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: the score is a share of the rubric's own scale (Ragas returns 1 to 5), so the lowest
    rating is 0; a rating that `rubrics` does not describe is asked for again; any number of levels, two or more.
    Source: Ragas 0.4.3, RubricsScore and DomainSpecificRubrics.

    Example::

        rubrics for 1 to 5, rating 4 -> (4 - 1) / (5 - 1) = 0.75
    """

    aliases: ClassVar[tuple[str, ...]] = (
        "DomainSpecificRubrics",
        "domain_specific_rubrics",
        "RubricsScoreWithoutReference",
        "rubrics_score_without_reference",
    )


@metric
@dataclass(frozen=True, repr=False)
class RubricsScoreWithReference(_Rubrics):
    """(rating - min) / (max - min) of one rating by a rubric, with a reference to compare with.

    Reads: the fields in `reads` (user_input, response, reference).
    Asks: 1 rating.
    Range: 0 to 1, higher is better; the raw rating and the level's description are in detail.
    Undefined when: never, beyond missing fields and blank contexts.
    Differs from its source in: as RubricsScore: a share of the rubric's own scale, and no rating that `rubrics` does
    not describe.
    Source: Ragas 0.4.3, RubricsScoreWithReference.

    Example::

        rubrics for 1 to 5, rating 2 -> (2 - 1) / (5 - 1) = 0.25
    """

    reads: tuple[Readable, ...] = ("user_input", "response", "reference")  # type: ignore[misc]  # chosen for each metric

    aliases: ClassVar[tuple[str, ...]] = ("rubrics_score_with_reference",)


@metric
@dataclass(frozen=True, repr=False)
class InstanceSpecificRubrics(NativeMetric):
    """(rating - min) / (max - min) of one rating by the row's own rubric.

    Reads: user_input, response, rubrics (a mapping of rating to description, as in RubricsScore); reference and
    retrieved_contexts where present.
    Asks: 1 rating.
    Range: 0 to 1, higher is better; the raw rating and the level's description are in detail.
    Undefined when: the row's rubrics are empty (`missing:rubrics`).
    Differs from its source in: the score is a share of the row's own scale, so that rows with different scales can be
    averaged; the rubric stands among the data, where it cannot change the rules.
    Raises: `SampleError` for rubrics that describe fewer than two ratings or name none.
    Source: Ragas 0.4.3, InstanceSpecificRubrics.

    Example::

        rubrics {0: "wrong", 2: "right"}, rating 2 -> 1.0
    """

    aliases: ClassVar[tuple[str, ...]] = ("InstanceRubrics", "instance_rubrics", "instance_specific_rubrics")
    reads: ClassVar[tuple[str, ...]] = ("user_input", "response", "rubrics")
    may_read: ClassVar[tuple[str, ...]] = ("reference", "retrieved_contexts")
    uses: ClassVar[frozenset[Use]] = frozenset({"rating"})
    steps: ClassVar[int] = 1

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # the same whatever the sample says
        """One rating."""
        return (Ask(1, "rating", RATING_TOKENS),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Ask for the rating."""
        if not sample.rubrics:
            return Undefined("missing:rubrics", "the row's rubrics are empty")
        try:
            levels = levels_of(sample.rubrics)
        except ValueError as error:
            raise SampleError(str(error)) from None
        scale = Scale(tuple(levels))
        data = data_of(sample, ("user_input", "response", "reference", "retrieved_contexts"))
        rules = (*RUBRIC_IN_DATA.rules, *([WITH_REFERENCE] if sample.reference else []))
        rubric = {str(rating): text for rating, text in levels.items()}
        answer = await kit.rating(Prompt(RUBRIC_IN_DATA.task, rules, {"rubric": rubric, **data}), scale)
        return rated(answer, scale, level=levels[int(answer.value)])
