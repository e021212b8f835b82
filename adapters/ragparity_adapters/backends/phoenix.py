"""Phoenix evals: one label for a row or for each of its passages, through its own code and prompts, from our judge.

Its evaluator renders the prompt, names the labels and turns the label into a number; between the two our judge is
asked. Its clients, retries and rate limiter are not built, so nothing is asked twice and no failure becomes a
number. Its spans are suppressed: the texts of a row reach no exporter that the host has set up, while the judge's own
calls are traced as the host wants them.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from packaging.version import Version
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, create_model

from ragparity.core.concurrency import together
from ragparity.core.definition import Definition
from ragparity.core.errors import MissingExtra, SampleError, UnknownMetric, did_you_mean
from ragparity.core.kwargs import refuse_unknown
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity_adapters.backends._phoenix_rubrics import RUBRICS

if TYPE_CHECKING:
    from ragparity.core.ports import Kit, Metric
    from ragparity.core.sample import Sample
    from ragparity_adapters.backends._phoenix_rubrics import Given, Rubric

PACKAGE, VERSIONS, OLDEST = "arize-phoenix-evals", ">=3.7,<3.10", "3.7"
"""Prompts, labels and directions are the same in these releases. Earlier ones lack evaluators, and up to 3.2
Hallucination meant something else."""
REMEDY = "pip install 'ragparity[phoenix]', or set backend: native"
USES: frozenset[Use] = frozenset({"structured"})


@dataclass(frozen=True, repr=False)
class PhoenixMetric:
    """An evaluator of Phoenix behind our ports."""

    name: str
    version: str

    backend = "phoenix"
    may_read: ClassVar[tuple[str, ...]] = ()
    uses = USES
    bounds = (0.0, 1.0)
    steps = 1

    @property
    def rubric(self) -> Rubric:
        """The evaluator that is asked."""
        return RUBRICS[self.name]

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it needs."""
        return self.rubric.reads

    @property
    def higher_is_better(self) -> bool:
        """Phoenix' own direction. A refusal, of which it says nothing, counts as the worse."""
        return self.rubric.direction == "maximize"

    @property
    def definition(self) -> str:
        """The formula in words."""
        return f"{self.rubric.estimand} (Phoenix, {self.rubric.evaluator})"

    @property
    def declared(self) -> Definition:
        """What it measures."""
        by_passage = self.rubric.weigh is not None
        return Definition(
            estimand=self.rubric.estimand, construct=self.rubric.construct,
            unit="passage" if by_passage else "response", scale="continuous" if by_passage else "binary",
            levels=() if by_passage else (0.0, 1.0), higher_is_better=self.higher_is_better, package=PACKAGE,
            versions=VERSIONS,
        )  # fmt: skip

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """One structured answer, or one a passage."""
        calls = max(1, len(sample.retrieved_contexts or ())) if self.rubric.weigh else 1
        return (Ask(calls, "structured", self.rubric.budget),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """The number of Phoenix for the label of our judge; raises what the judge raises, and `SampleError`."""
        given = self.rubric.given(sample)
        if absent := [name for name, text in given.items() if text is None]:
            raise SampleError(f"Phoenix scores no row without {' and '.join(absent)}")
        if given.get("conversation") == "":
            return Undefined("no_messages", "the conversation has no message")
        if self.rubric.weigh is None:
            found = await self._labelled(given, kit)
            return Scored(float(found.score), _said(found), {"label": found.label})
        passages = sample.retrieved_contexts or ()
        if not passages:
            return Undefined("blank_contexts", "there is no passage to judge")
        judged = await together(self._labelled({**given, "document_text": one}, kit) for one in passages)
        flags = [found.score == 1 for found in judged]
        detail = {
            "passages": [
                {"passage": at, "text": text, "verdict": flag, "reason": _said(found)}
                for at, (text, flag, found) in enumerate(zip(passages, flags, judged, strict=True))
            ]
        }
        ranks = ", ".join(str(rank) for rank, flag in enumerate(flags, start=1) if flag)
        where = f" (rank {ranks})" if ranks else ""
        said = f"{sum(flags)} of {len(flags)} passages hold an answer{where}"
        return Scored(float(self.rubric.weigh(flags)), said, detail)

    async def _labelled(self, given: Given, kit: Kit) -> Any:
        """The score object of Phoenix for these texts."""
        tracing = importlib.import_module("opentelemetry.context")
        around = tracing.get_current()

        async def ask(text: str, schema: type[BaseModel]) -> dict[str, Any]:
            token = tracing.attach(around)  # what the judge does is traced as it was before
            try:
                return (await kit.verdict(Prompt.verbatim(text, given), schema, budget=self.rubric.budget)).model_dump()
            finally:
                tracing.detach(token)

        evaluator = copy(_evaluator(self.name))
        evaluator.llm = _model_class()(ask)
        with importlib.import_module("openinference.instrumentation").suppress_tracing():
            (found,) = await evaluator.async_evaluate(dict(given))
        return found

    def prepare(self) -> None:
        """Import Phoenix; raises `MissingExtra` with the real cause."""
        try:
            _evaluator(self.name)
            _model_class()
        except (ImportError, AttributeError) as error:
            raise MissingExtra(f"{self.version} is installed but cannot be used: {error}: {REMEDY}") from error

    def __repr__(self) -> str:
        return f"{self.name}()"


def _said(found: Any) -> str:
    return f"{found.label}: {found.explanation}" if found.explanation else str(found.label)


# -- Phoenix itself


@cache
def _evaluator(name: str) -> Any:
    """The evaluator, still without anybody to ask; raises `MissingExtra` where it is not what was wrapped."""
    rubric = RUBRICS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # DocumentRelevanceEvaluator goes in their next major one
        made = getattr(importlib.import_module("phoenix.evals.metrics"), rubric.evaluator)(llm=None)
    roles = [one["role"] for one in made.prompt_template.template]
    if made.direction != rubric.direction or roles != ["user"]:
        found = f"its scores are to {made.direction}, and its prompt is of {' and '.join(roles)}"
        wanted = f"expected {rubric.direction} and one message of the user, as in {PACKAGE} {VERSIONS}"
        raise MissingExtra(f"{rubric.evaluator} of {_version()} is another one: {found}; {wanted}: {REMEDY}")
    return made


@cache
def _model_class() -> Any:
    """A model of Phoenix whose labels come from elsewhere: from `ask`. It has no client, no retries and no limiter."""
    llm = importlib.import_module("phoenix.evals.llm")

    class AskedElsewhere(llm.LLM):  # type: ignore[name-defined,misc]  # imported late
        def __init__(self, ask: Callable[[str, type[BaseModel]], Awaitable[dict[str, Any]]]) -> None:
            self.provider = self.model = "ragparity"
            self.ask = ask

        async def async_generate_object(self, prompt: Any, schema: Any, **_options: Any) -> dict[str, Any]:
            (message,) = prompt
            wanted = schema["properties"]
            answer = _answer(tuple(wanted["label"]["enum"]), wanted["explanation"]["description"])
            return await self.ask(message["content"], answer)

    return AskedElsewhere


@cache
def _answer(labels: tuple[str, ...], about: str) -> type[BaseModel]:
    """What the judge is to fill in, as Phoenix asks for it: an explanation, and one of the labels.

    As with Phoenix, an answer without an explanation counts. The case of a label does not, since its prompts show some
    of them in capitals.
    """

    def read(said: Any) -> str:
        found = next((one for one in labels if isinstance(said, str) and said.strip().casefold() == one.casefold()), "")
        if not found:
            raise ValueError(f"expected {' or '.join(labels)}")
        return found

    shown = WithJsonSchema({"type": "string", "enum": list(labels)})
    return create_model(
        "Classification",
        explanation=(str, Field("", description=about)),
        label=(Annotated[str, BeforeValidator(read), shown], ...),
    )


def _version() -> str:
    return f"{PACKAGE} {metadata.version(PACKAGE)}"


class PhoenixBackend:
    """The evaluators of Phoenix."""

    name = "phoenix"

    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(RUBRICS)

    def missing(self) -> str:
        """Why Phoenix cannot be used here, with the remedy; nothing where it can."""
        try:
            found = metadata.version(PACKAGE)
        except metadata.PackageNotFoundError:
            return f"{PACKAGE} is not installed: {REMEDY}"
        if Version(found) < Version(OLDEST):
            return f"{PACKAGE} {found} is installed, but {OLDEST} is the oldest that can be wrapped: {REMEDY}"
        return ""

    def about(self, name: str) -> tuple[str, str, str]:
        """Fields read, judge calls, and range of a metric, in words."""
        rubric = RUBRICS[self._find(name)]
        span = "0 to 1" if rubric.weigh else "0 or 1"
        worse = "" if rubric.direction == "maximize" else ", lower is better"
        return ", ".join(rubric.reads), "1 per passage" if rubric.weigh else "1", span + worse

    def card(self, name: str) -> str:
        """The card of a metric."""
        found = self._find(name)
        rubric = RUBRICS[found]
        reads, asks, span = self.about(found)
        also = dict.fromkeys((*rubric.also, rubric.evaluator))
        better = "" if rubric.direction == "minimize" else ", higher is better"
        if rubric.direction == "neutral":
            better = " (Phoenix itself calls neither better)"
        return "\n".join([
            f"phoenix/{found} (also {', '.join(also)})", "", f"The {rubric.estimand}.", "",
            f"Source: Phoenix evals {VERSIONS}, {rubric.evaluator}.", f"Reads: {reads}.", f"Asks: {asks}.",
            f"Range: {span}{better}.",
        ])  # fmt: skip

    def build(self, name: str, kwargs: dict[str, Any]) -> Metric:
        """One metric, without importing Phoenix; raises `UnknownMetric`, `MissingExtra` or `ConfigError`."""
        found = self._find(name)
        refuse_unknown(found, kwargs, [])
        if missing := self.missing():
            raise MissingExtra(missing)
        return PhoenixMetric(found, _version())

    def _find(self, name: str) -> str:
        known = {_folded(one): found for found, rubric in RUBRICS.items() for one in (found, *rubric.also)}
        if _folded(name) not in known:
            hint = did_you_mean(name, [*RUBRICS, *(one for rubric in RUBRICS.values() for one in rubric.also)])
            raise UnknownMetric(f"metric {name!r}: the backend phoenix has no such metric.{hint}")
        return known[_folded(name)]


def _folded(name: str) -> str:
    """A name of a metric in any of Phoenix' spellings: `DocumentRelevanceEvaluator`, `document_relevance`."""
    return name.casefold().replace("_", "").removesuffix("evaluator")


def backend() -> PhoenixBackend:
    """The backend `phoenix`. Nothing is imported from it before the first score, or `prepare`."""
    return PhoenixBackend()
