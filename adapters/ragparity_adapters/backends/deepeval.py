"""DeepEval: its metrics for retrieval, through its own code and prompts, asked of our judge.

Its reasons are off (one question less), and a claim that the contexts do not mention counts as not supported. Nothing
is sent but the questions to the judge; see `_deepeval_import` for what else it is kept from.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import metadata
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ValidationError

from ragparity.core.errors import ConfigError, JudgeError, MissingExtra, SampleError, UnknownMetric, did_you_mean
from ragparity.core.kwargs import refuse_swapped, refuse_unknown, wrong_value
from ragparity.core.outcome import Scored
from ragparity_adapters.backends._deepeval_catalog import ENTRIES, Entry, NoSettings
from ragparity_adapters.backends._deepeval_import import load, missing
from ragparity_adapters.backends._deepeval_judge import Session
from ragparity_adapters.backends._deepeval_outcomes import outcome

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragparity.core.definition import Definition
    from ragparity.core.outcome import Undefined
    from ragparity.core.ports import Ask, Kit, Metric, Use
    from ragparity.core.sample import Sample
    from ragparity_adapters.backends._deepeval_judge import Wanted

WRAPPER = "1"
"""Version of the reading of answers and outcomes; part of every metric's version."""
USES: frozenset[Use] = frozenset({"structured"})
FIXED: dict[str, Any] = {
    "include_reason": False,
    "async_mode": True,
    "strict_mode": False,
    "verbose_mode": False,
    "eval_mode": "llm",
}
"""What is set for every metric. The last one keeps the environment from sending the verdicts to another service."""
CANNOT_SCORE = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What DeepEval raises for a row that it cannot score, beside errors of its own."""


@dataclass(frozen=True, repr=False)
class DeepEvalMetric:
    """A metric of DeepEval behind our ports. Its score is DeepEval's own number."""

    name: str
    version: str
    chosen: NoSettings

    backend = "deepeval"
    may_read: ClassVar[tuple[str, ...]] = ()
    uses = USES
    bounds = (0.0, 1.0)
    higher_is_better = True

    @property
    def entry(self) -> Entry:
        """What is known about it."""
        return ENTRIES[self.name]

    @property
    def settings(self) -> dict[str, Any]:
        """All settings with their values."""
        return self.chosen.model_dump()

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it needs."""
        return self.entry.reads

    @property
    def steps(self) -> int:
        """How many questions wait for one another."""
        return self.entry.steps

    @property
    def declared(self) -> Definition:
        """What it measures."""
        return self.entry.define(self.chosen)

    @property
    def definition(self) -> str:
        """The formula in words."""
        return f"{self.declared.phrase} (DeepEval, {self.entry.class_name})"

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The calls to expect for this sample."""
        return self.entry.asks(sample)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Score one admitted sample; raises `JudgeError` or `SampleError`."""
        deepeval = load()
        about = {"class": self.entry.class_name}
        asked = 0

        def wanted(model: type[BaseModel]) -> Wanted:
            nonlocal asked
            found = self.entry.wanted(model, metric, sample, asked)
            asked += "verdicts" in model.model_fields
            return found

        session = Session(kit, wanted)
        metric = self._made(session)
        try:
            await metric.a_measure(_test_case(deepeval.test_case, sample, self.reads), _show_indicator=False)
            if kit.policies.upstream:
                detail = {**about, "raw": metric.score, "answers": session.answers, "policy": "upstream"}
                return Scored(float(metric.score), None, detail)
            return outcome(self.name, metric, sample, kit.policies, about)
        except JudgeError as error:
            failed = error
        except (deepeval.error, *CANNOT_SCORE) as error:
            if session.error is None:
                text = f"{self.entry.class_name} of DeepEval cannot score this row: {_said(error)}"
                raise SampleError(text) from error
            failed = session.error  # DeepEval has words of its own for some errors of a judge
        finally:
            await session.close()
        failed.detail = {**failed.detail, **about}
        raise failed

    def prepare(self) -> None:
        """Import DeepEval and build the class once; raises `MissingExtra` or `ConfigError`."""
        self._made(None)

    def _made(self, session: Session | None) -> Any:
        deepeval = load()
        with warnings.catch_warnings():  # one of them tells of a change of direction that is known here
            warnings.simplefilter("ignore")
            try:
                made = getattr(deepeval.metrics, self.entry.class_name)
                return made(model=deepeval.model(session), **FIXED, **self.settings)
            except (AttributeError, TypeError, ValueError) as error:
                raise ConfigError(f"metric {self.name}: DeepEval refuses it: {_said(error)}") from error

    def __repr__(self) -> str:
        plain = type(self.chosen)().model_dump()
        shown = ", ".join(f"{name}={value!r}" for name, value in self.settings.items() if value != plain[name])
        return f"{self.name}({shown})"


def _test_case(made: Any, sample: Sample, reads: tuple[str, ...]) -> Any:
    """The sample as DeepEval takes it: text only, whatever stands in it, so that it opens no image that is named."""
    contexts = None if sample.retrieved_contexts is None else list(sample.retrieved_contexts)
    case = made(
        input=(sample.user_input or "") if "user_input" in reads else "", actual_output=sample.response,
        expected_output=sample.reference, context=contexts, retrieval_context=contexts,
    )  # fmt: skip
    case.multimodal = False
    return case


def _said(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, ValidationError):
        return str(error.errors(include_url=False)[0]["msg"])
    return f"{type(error).__name__}: {error}"


class DeepEvalBackend:
    """The metrics of DeepEval for retrieval."""

    name = "deepeval"

    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(ENTRIES)

    def missing(self) -> str:
        """Why DeepEval cannot be used here, with the remedy; nothing where it can."""
        return missing()

    def about(self, name: str) -> tuple[str, str, str]:
        """Fields read, judge calls, and range of a metric, in words."""
        entry = ENTRIES[self._find(name)]
        return ", ".join(entry.reads), entry.asks_in_words, "0 to 1"

    def card(self, name: str) -> str:
        """The card of a metric."""
        found = self._find(name)
        entry = ENTRIES[found]
        declared = entry.define(entry.settings())
        lines = [
            f"deepeval/{found} (also {', '.join(entry.aliases)})", "", f"The {declared.phrase}.", "",
            f"Source: DeepEval 4.3, {entry.class_name}, without its reasons.", f"Reads: {', '.join(entry.reads)}.",
            f"Asks: {entry.asks_in_words}.", "Range: 0 to 1, higher is better.",
        ]  # fmt: skip
        if declared.no_claims == "undefined":
            lines.append("Undefined when: the judge finds nothing to judge (`no_claims`, policy `no_claims`).")
        if declared.differs:
            lines.append(f"Differs from the native metric in: {declared.differs}.")
        plain = entry.settings().model_dump()
        shown = [f"  {name}: {kind} = {plain[name]!r}" for name, kind in get_annotations(entry.settings).items()]
        return "\n".join([*lines, *(["", "Settings:", *shown] if shown else [])])

    def build(self, name: str, kwargs: dict[str, Any]) -> Metric:
        """One metric, without importing DeepEval; raises `UnknownMetric`, `MissingExtra` or `ConfigError`."""
        found = self._find(name)
        entry = ENTRIES[found]
        refuse_unknown(found, kwargs, list(entry.settings.model_fields))
        try:
            chosen = entry.settings.model_validate(kwargs)
        except ValidationError as error:
            raise wrong_value(found, dict(error.errors(include_url=False)[0])) from None
        refuse_swapped(found, kwargs, chosen.model_dump())
        if why := missing():
            raise MissingExtra(why)
        version = f"deepeval {metadata.version('deepeval')}, wrapping {WRAPPER}"
        return DeepEvalMetric(found, version, chosen)

    def _find(self, name: str) -> str:
        known = {alias: one for one, entry in ENTRIES.items() for alias in (one, *entry.aliases)}
        found = {alias.casefold(): one for alias, one in known.items()}.get(name.casefold())
        if found is None:
            hint = did_you_mean(name, known)
            raise UnknownMetric(f"metric {name!r}: the backend deepeval has no such metric.{hint}")
        return found


def backend() -> DeepEvalBackend:
    """The backend `deepeval`. Nothing is imported from it before the first score, or `prepare`."""
    return DeepEvalBackend()
