"""Our judge behind DeepEval's model, for one sample.

DeepEval's prompt goes out byte for byte. Its answer schemas are put to the judge as schemas of our own with the same
fields, where the reason stands before the verdict, "Yes." is a yes, and a list that answers a list has one piece for
each: DeepEval divides by the verdicts that came, however few. What DeepEval gets is an object of its own schema.
Retries, cache and limits are those of the judge; after a question has failed for good nothing else is asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model

from ragparity.core.errors import JudgeError
from ragparity.core.prompt import Prompt
from ragparity.core.verdicts import read_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ragparity.core.ports import Kit

BORDERLINE = "borderline"
"""DeepEval's word for what is neither supported nor contradicted, or neither relevant nor beside the point."""


def _word(value: object, unsure: str | None = None) -> str | None:
    """A verdict as DeepEval spells it; `unsure` for "cannot tell"."""
    try:
        said = read_verdict(value)
    except ValueError:
        text = str(value).strip(" .\"'").casefold()
        return BORDERLINE if text.startswith(BORDERLINE) else text
    return unsure if said is None else "yes" if said else "no"


def _word_of_three(value: object) -> str | None:
    return _word(value, BORDERLINE)


class Judged(BaseModel):
    """One verdict of two words, each with its reason."""

    reason: str
    verdict: Annotated[Literal["yes", "no"], BeforeValidator(_word)]


class JudgedInThree(BaseModel):
    """One verdict of three words; a yes needs no reason."""

    reason: str | None = None
    verdict: Annotated[Literal["yes", "no", "borderline"], BeforeValidator(_word_of_three)]


class Stated(BaseModel):
    """A statement that the judge finds, and its verdict of two words; a yes needs no reason."""

    statement: str
    reason: str | None = None
    verdict: Annotated[Literal["yes", "no"], BeforeValidator(_word)]


Item = type[Judged] | type[JudgedInThree] | type[Stated]


def _not_blank(texts: list[str]) -> list[str]:
    return [one for one in texts if one.strip()]


@lru_cache(maxsize=8)
def texts(name: str) -> type[BaseModel]:
    """A list of texts in a field of this name; blank ones are left out."""
    made: type[BaseModel] = create_model(
        name.title(), **{name: (Annotated[list[str], AfterValidator(_not_blank)], ...)}
    )  # type: ignore[call-overload]  # a field of any name
    return made


@lru_cache(maxsize=256)
def verdicts(item: Item, owed: int | None) -> type[BaseModel]:
    """Verdicts of this kind; exactly as many as are owed, where that is known."""
    annotation: Any = list[item]  # type: ignore[valid-type]  # a class that is handed over
    shown: dict[str, Any] = {}
    if owed is not None:
        annotation = Annotated[annotation, AfterValidator(_exactly(owed))]
        shown = {"minItems": owed, "maxItems": owed}
    made: type[BaseModel] = create_model("Verdicts", verdicts=(annotation, Field(json_schema_extra=shown)))
    return made


def _exactly(owed: int) -> Callable[[list[Any]], list[Any]]:
    def check(value: list[Any]) -> list[Any]:
        if len(value) != owed:
            raise ValueError(f"there are {len(value)} verdicts; give {owed}, one for each, in order")
        return value

    return check


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a question of DeepEval is put: the schema of its answer, its tokens, and the data that the prompt shows."""

    schema: type[BaseModel]
    budget: int
    data: Mapping[str, Any]


class Session:
    """What one metric asks about one sample. `wanted` tells how an answer of a schema of DeepEval's is asked for."""

    def __init__(self, kit: Kit, wanted: Callable[[type[BaseModel]], Wanted]) -> None:
        self.answers: list[dict[str, Any]] = []
        self.error: JudgeError | None = None
        self._kit = kit
        self._wanted = wanted
        self._under_way: set[asyncio.Task[Any]] = set()

    async def answer(self, text: str, model: type[BaseModel]) -> BaseModel:
        """An object of a schema of DeepEval's; raises `JudgeError`."""
        if self.error is not None:
            raise self.error
        wanted = self._wanted(model)
        schema = model if self._kit.policies.upstream else wanted.schema
        task = asyncio.current_task()
        if task is not None:
            self._under_way.add(task)
        try:
            said = await self._kit.verdict(Prompt.verbatim(text, wanted.data), schema, budget=wanted.budget)
        except JudgeError as error:
            self.error = self.error or error
            raise
        finally:
            if task is not None:
                self._under_way.discard(task)
        self.answers.append(said.model_dump(mode="json"))
        return model.model_validate(said.model_dump())

    async def close(self) -> None:
        """Wait for what DeepEval left under way after an error: it is paid for, and its reply may be reused."""
        left = [one for one in self._under_way if one is not asyncio.current_task()]
        await asyncio.gather(*left, return_exceptions=True)
