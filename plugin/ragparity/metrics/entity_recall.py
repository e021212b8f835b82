"""Entity recall: the names, places, dates and figures of the reference that the contexts have."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel

from ragparity.core.concurrency import together
from ragparity.core.errors import JudgeError
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.core.text import normalised
from ragparity.metrics.claims import TOKENS_AROUND, distinct, tokens_of
from ragparity.metrics.parts import half, in_parts, too_long
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

Match = Literal["normalised", "exact"]
MOST_TOKENS = 1024
"""Tokens of a list of entities: long contexts name the same ones again."""

NAMED = Prompt(
    task="List the named entities of the text.",
    rules=(
        "Entities: people, organisations, places, products, works, events, dates, and numbers with what they count.",
        "Copy each as the text writes it, without articles; list it once.",
        "Common nouns are no entities; leave the list empty if there are none.",
    ),
)


class Entities(BaseModel):
    """The entities of a text, as it writes them."""

    entities: list[str]


def kept(entities: Sequence[str], match: Match) -> list[str]:
    """The entities in order, each once as `match` compares them, without blank ones.

    >>> kept(["Ulm", "ULM ", "", "Rome"], "normalised"), kept(["Ulm", "ULM ", "", "Rome"], "exact")
    (['Ulm', 'Rome'], ['Ulm', 'ULM', 'Rome'])
    """
    if match == "normalised":
        return distinct(entities)
    return list(dict.fromkeys(bare for one in entities if (bare := one.strip())))


def found_among(wanted: Sequence[str], there: Sequence[str], match: Match) -> list[str]:
    """Those of the wanted entities that are there.

    >>> found_among(["the Danube", "ULM"], ["Ulm", "Rome"], "normalised"), found_among(["ULM"], ["Ulm"], "exact")
    (['ULM'], [])
    """
    if match == "exact":
        return [one for one in wanted if one in set(there)]
    known = {normalised(one, "full") for one in there}
    return [one for one in wanted if normalised(one, "full") in known]


@metric
@dataclass(frozen=True, repr=False)
class ContextEntityRecall(NativeMetric):
    """Entities of the reference that are among those of the contexts / entities of the reference.

    Reads: retrieved_contexts, reference.
    Asks: 2 (the entities of the reference and those of the contexts, at the same time).
    Range: 0 to 1, higher is better.
    Undefined when: the reference names no entity (`no_entities`).
    Differs from its source in: entities are compared without regard to case, width, white space and punctuation at
    their ends (`match: exact` compares them as they are written, as the source does); one that is named twice counts
    once (in one of the source's APIs it counts twice); a reference without entities is undefined, not 0; no epsilon.
    Source: Ragas 0.4.3, ContextEntityRecall.

    Example::

        reference: Ulm, Danube, 1377; contexts: ULM, 1377, Rome -> 2/3, with `match: exact` 1/3
    """

    match: Literal["normalised", "exact"] = "normalised"

    aliases: ClassVar[tuple[str, ...]] = ("context_entity_recall",)
    reads: ClassVar[tuple[str, ...]] = ("retrieved_contexts", "reference")
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 1

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The entities of the reference, and of the contexts."""
        texts = (sample.reference or "", " ".join(sample.retrieved_contexts or ()))
        return tuple(Ask(1, "structured", entities_budget(text)) for text in texts)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """List the entities of both sides and compare."""
        reference, contexts = sample.reference or "", sample.retrieved_contexts or ()
        (wanted, _), (there, parts) = await together(
            entities_of(texts, kit) for texts in ((reference,), tuple(contexts))
        )
        wanted, there = kept(wanted, self.match), kept(there, self.match)
        detail: dict[str, object] = {"in_reference": wanted, "in_contexts": there, **in_parts(parts)}
        if not wanted:
            return Undefined("no_entities", "the reference names no entity", detail)
        held = found_among(wanted, there, self.match)
        detail["missing"] = [one for one in wanted if one not in held]
        reason = f"{len(held)} of {len(wanted)} entities of the reference are in the contexts"
        return Scored(float(Fraction(len(held), len(wanted))), reason, detail)


async def entities_of(texts: Sequence[str], kit: Kit) -> tuple[list[str], int]:
    """The entities of some texts, and in how many parts they were asked for: texts too long together are halved."""
    shown = "\n".join(texts)
    try:
        found = await kit.verdict(
            Prompt(NAMED.task, NAMED.rules, {"text": shown}), Entities, budget=entities_budget(shown)
        )
    except JudgeError as error:
        if not too_long(error) or len(texts) == 1:
            raise
    else:
        return found.entities, 1
    middle = half(texts)
    first, second = await together(entities_of(part, kit) for part in (texts[:middle], texts[middle:]))
    return [*first[0], *second[0]], first[1] + second[1]


def entities_budget(text: str) -> int:
    """Tokens that the entities of a text need: at most the text itself."""
    return TOKENS_AROUND + min(MOST_TOKENS, 2 * tokens_of(text))
