"""openevals: one verdict of a rubric on the whole answer, through its own code and prompts, asked of our judge.

Its tracing is off: nothing is sent but the questions to the judge.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from ragparity.core.definition import Definition
from ragparity.core.errors import MissingExtra, UnknownMetric, did_you_mean
from ragparity.core.kwargs import refuse_unknown, wrong_value
from ragparity.core.outcome import Scored
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt

if TYPE_CHECKING:
    from ragparity.core.ports import Kit, Metric
    from ragparity.core.sample import Sample

Scale = Literal["continuous", "binary"]

REMEDY = "pip install 'ragparity[openevals]', or set backend: native"
WRAPPER = "1"
"""Version of what is shown to openevals and read from it; part of every metric's version."""
BUDGET = 300
"""Tokens of an answer: the reasoning that openevals asks for, and the score."""
USES: frozenset[Use] = frozenset({"structured"})


class Grade(BaseModel):
    """The answer on a continuous scale."""

    reasoning: str
    score: float = Field(ge=0, le=1)


class Verdict(BaseModel):
    """The answer of two values."""

    reasoning: str
    score: bool


SCHEMAS: Mapping[Scale, type[Grade | Verdict]] = {"continuous": Grade, "binary": Verdict}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """One prompt of openevals: where it stands, what it reads, and what its verdict is about."""

    module: str
    prompt: str
    reads: tuple[str, ...]
    aliases: tuple[str, ...]
    estimand: str
    construct: str


RUBRICS: Mapping[str, Rubric] = {
    "ResponseGroundedness": Rubric(
        module="openevals.prompts.rag", prompt="RAG_GROUNDEDNESS_PROMPT", reads=("response", "retrieved_contexts"),
        aliases=("groundedness", "rag_groundedness", "Faithfulness"),
        estimand="verdict of a rubric on the support of the whole response by the contexts", construct="groundedness",
    ),
    "ContextRelevance": Rubric(
        module="openevals.prompts.rag", prompt="RAG_RETRIEVAL_RELEVANCE_PROMPT",
        reads=("user_input", "retrieved_contexts"), aliases=("retrieval_relevance", "rag_retrieval_relevance"),
        estimand="verdict of a rubric on the use of the contexts for the question", construct="context relevance",
    ),
    "AnswerAccuracy": Rubric(
        module="openevals.prompts", prompt="CORRECTNESS_PROMPT", reads=("user_input", "response", "reference"),
        aliases=("correctness",), estimand="verdict of a rubric on the whole response against the reference",
        construct="answer correctness",
    ),
    "AnswerRelevancy": Rubric(
        module="openevals.prompts.quality", prompt="ANSWER_RELEVANCE_PROMPT", reads=("user_input", "response"),
        aliases=("answer_relevance",), estimand="verdict of a rubric on how far the response serves the question",
        construct="answer relevance",
    ),
}  # fmt: skip
"""By the name of the native metric that tells of the same."""
ARGUMENTS = {
    "user_input": "inputs",
    "response": "outputs",
    "reference": "reference_outputs",
    "retrieved_contexts": "context",
}
"""What openevals calls our fields."""


@dataclass(frozen=True, repr=False)
class OpenEvalsMetric:
    """A prompt of openevals behind our ports. `scale`: a number from 0 to 1, or true and false."""

    name: str
    version: str
    scale: Scale = "continuous"

    backend = "openevals"
    may_read: ClassVar[tuple[str, ...]] = ()
    uses = USES
    bounds = (0.0, 1.0)
    higher_is_better = True
    steps = 1

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it needs."""
        return RUBRICS[self.name].reads

    @property
    def definition(self) -> str:
        """The formula in words."""
        return f"{RUBRICS[self.name].estimand} (openevals, {RUBRICS[self.name].prompt})"

    @property
    def declared(self) -> Definition:
        """What it measures."""
        rubric = RUBRICS[self.name]
        return Definition(
            estimand=rubric.estimand, construct=rubric.construct, unit="response", scale=self.scale,
            levels=(0.0, 1.0) if self.scale == "binary" else (), package="openevals", versions=">=0.2,<0.3",
        )  # fmt: skip

    def asks(self, _sample: Sample) -> tuple[Ask, ...]:
        """One structured answer."""
        return (Ask(1, "structured", BUDGET),)

    async def score(self, sample: Sample, kit: Kit) -> Scored:
        """The verdict of openevals' own judge function on our judge; raises what the judge raises."""
        data = {ARGUMENTS[name]: _shown(getattr(sample, name)) for name in self.reads}

        async def ask(messages: Any) -> dict[str, Any]:
            prompt = Prompt.verbatim(str(messages[0]["content"]), data)
            return (await kit.verdict(prompt, SCHEMAS[self.scale], budget=BUDGET)).model_dump()

        rubric = RUBRICS[self.name]
        prompt = getattr(importlib.import_module(rubric.module), rubric.prompt)
        with importlib.import_module("langsmith").tracing_context(enabled=False):
            judge = importlib.import_module("openevals.llm").create_async_llm_as_judge(
                prompt=prompt, judge=_model_class()(ask=ask), continuous=self.scale == "continuous"
            )
            found = await judge(**data)
        return Scored(float(found["score"]), found["comment"], {"raw": found["score"]})

    def prepare(self) -> None:
        """Import openevals; raises `MissingExtra` with the real cause."""
        try:
            importlib.import_module("openevals.llm")
        except ImportError as error:
            raise MissingExtra(f"openevals is installed but does not import: {error}: {REMEDY}") from error

    def __repr__(self) -> str:
        return f"{self.name}({'' if self.scale == 'continuous' else 'scale=' + repr(self.scale)})"


def _shown(value: Any) -> str:
    return "\n\n".join(value) if isinstance(value, tuple) else str(value)


@lru_cache(maxsize=1)
def _model_class() -> Any:
    """A chat model for openevals whose structured answers come from elsewhere: from `ask`."""
    chat_models = importlib.import_module("langchain_core.language_models.chat_models")
    runnables = importlib.import_module("langchain_core.runnables")

    class AskedElsewhere(chat_models.BaseChatModel):  # type: ignore[name-defined,misc]  # imported late
        ask: Callable[[Any], Awaitable[Any]]

        @property
        def _llm_type(self) -> str:
            return "ragparity"

        def with_structured_output(self, _schema: Any, **_options: Any) -> Any:
            return runnables.RunnableLambda(self.ask)

        def _generate(self, *_messages: Any, **_options: Any) -> Any:
            raise TypeError("only structured answers are asked for here")

    return AskedElsewhere


class OpenEvalsBackend:
    """The rubrics of openevals."""

    name = "openevals"

    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(RUBRICS)

    def missing(self) -> str:
        """Why openevals cannot be used here, with the remedy; nothing where it can."""
        return "" if importlib.util.find_spec("openevals") else f"openevals is not installed: {REMEDY}"

    def about(self, name: str) -> tuple[str, str, str]:
        """Fields read, judge calls, and range of a metric, in words."""
        return ", ".join(RUBRICS[self._find(name)].reads), "1", "0 to 1"

    def card(self, name: str) -> str:
        """The card of a metric."""
        found = self._find(name)
        rubric = RUBRICS[found]
        return "\n".join([
            f"openevals/{found} (also {', '.join(rubric.aliases)})", "", f"The {rubric.estimand}.", "",
            f"Source: openevals 0.2, {rubric.prompt}.", f"Reads: {', '.join(rubric.reads)}.", "Asks: 1.",
            "Range: 0 to 1, higher is better.", "", "Settings:", "  scale: 'continuous' | 'binary' = 'continuous'",
        ])  # fmt: skip

    def build(self, name: str, kwargs: dict[str, Any]) -> Metric:
        """One metric, without importing openevals; raises `UnknownMetric`, `MissingExtra` or `ConfigError`."""
        found = self._find(name)
        refuse_unknown(found, kwargs, ["scale"])
        try:
            scale = TypeAdapter(Scale).validate_python(kwargs.get("scale", "continuous"))
        except ValidationError as error:
            raise wrong_value(found, {**error.errors(include_url=False)[0], "loc": ("scale",)}) from None
        if missing := self.missing():
            raise MissingExtra(missing)
        return OpenEvalsMetric(found, f"openevals {metadata.version('openevals')}, wrapping {WRAPPER}", scale)

    def _find(self, name: str) -> str:
        known = {alias: one for one, rubric in RUBRICS.items() for alias in (one, *rubric.aliases)}
        found = {alias.casefold(): one for alias, one in known.items()}.get(name.casefold())
        if found is None:
            hint = did_you_mean(name, known)
            raise UnknownMetric(f"metric {name!r}: the backend openevals has no such metric.{hint}")
        return found


def backend() -> OpenEvalsBackend:
    """The backend `openevals`. Nothing is imported from it before the first score, or `prepare`."""
    return OpenEvalsBackend()
