"""From an eval file to bound evaluators: THE ONE ROOM THAT IMPORTS THE ADAPTERS.

A `Plan` holds what can be known without a client: metrics built, entries found, every problem named at once.
`rows` reads its data set; `clients` builds what it asks, one endpoint and one lane per llm entry, shared by all
evaluators. (The first design was one file; it had these four rooms in it.)
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ragparity.config import OFFLINE
from ragparity.core.errors import ConfigError, EvaluationError, UnknownBackend, did_you_mean
from ragparity.core.ports import Prepared
from ragparity.registry import NativeBackend
from ragparity.wiring.clients import (
    Session,
    adopt_embedder,
    adopt_llm,
    bare_judge,
    bind,
    bound_judge,
    dry_evaluators,
    embedder_from,
    judge_from,
    open_session,
    prompt_digest,
    without_price,
)
from ragparity.wiring.entries import (
    JUDGE_OPTIONS,
    JUDGED,
    NATIVE,
    check_prompt,
    is_buildable,
    judge_options,
    spec_of,
    usable,
)
from ragparity.wiring.rows import LOOKED_AT, Rows, file_digest, open_rows, read_python_rows, row_reader
from ragparity_adapters import embeddings, llms

if TYPE_CHECKING:
    from ragparity.config import EvalFile, EvaluatorEntry
    from ragparity.core.ports import Backend, Metric

__all__ = [
    "JUDGED",
    "JUDGE_OPTIONS",
    "LOOKED_AT",
    "NATIVE",
    "Plan",
    "Planned",
    "Rows",
    "Session",
    "adopt_embedder",
    "adopt_llm",
    "backend",
    "backend_names",
    "bare_judge",
    "bind",
    "bound_judge",
    "check_prompt",
    "dry_evaluators",
    "embedder_from",
    "file_digest",
    "is_buildable",
    "judge_from",
    "judge_options",
    "make_plan",
    "open_rows",
    "open_session",
    "prepare",
    "prepared",
    "prompt_digest",
    "read_python_rows",
    "row_reader",
    "without_price",
]


# -- backends


def backend_names() -> tuple[str, ...]:
    """`native` and every framework that has a file in the adapters' `backends`."""
    package = importlib.import_module("ragparity_adapters.backends")
    return (NATIVE, *(one.name for one in pkgutil.iter_modules(package.__path__) if not one.name.startswith("_")))


@lru_cache(maxsize=32)
def backend(name: str) -> Backend:
    """The backend of this name, case ignored; raises `UnknownBackend` or `MissingExtra`."""
    folded = name.casefold()
    if folded == NATIVE:
        return NativeBackend()
    if folded not in backend_names():
        known = ", ".join(backend_names())
        raise UnknownBackend(f"backend {name!r}: unknown; known are {known}.{did_you_mean(name, backend_names())}")
    made: Backend = importlib.import_module(f"ragparity_adapters.backends.{folded}").backend()
    return made


# -- the plan


@dataclass(frozen=True, slots=True)
class Planned:
    """One evaluator of the file with its metric, before any client exists."""

    entry: EvaluatorEntry
    metric: Metric

    @property
    def judged(self) -> bool:
        """Whether a judge is asked."""
        return bool(self.metric.uses & JUDGED)

    @property
    def embeds(self) -> bool:
        """Whether an embedder is asked."""
        return "embeddings" in self.metric.uses

    @property
    def price(self) -> tuple[float, float] | None:
        """For a million tokens read and written, where it is known."""
        said = self.entry.judge.price
        return (said.input_per_1m, said.output_per_1m) if said else None


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run, and what is wrong. With problems, nothing runs unless the caller wants the rest to."""

    file: EvalFile
    evaluators: tuple[Planned, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def make_plan(file: EvalFile, *, default_backend: str | None = None, session: Session | None = None) -> Plan:
    """Build every metric and look up every entry; problems are collected, one line each.

    A client that a `session` holds already is taken as it is, whatever its entry says.
    """
    evaluators: list[Planned] = []
    problems: list[str] = []
    notes: list[str] = []
    for entry in file.evaluators.values():
        if entry.skip:
            notes.append(f"{entry.name}: skipped (skip: true)")
            continue
        try:
            planned = _planned(file, entry, default_backend, session or Session())
            evaluators.append(planned)
            if planned.judged and entry.judge.language and planned.metric.backend != NATIVE:
                whose = planned.metric.backend
                notes.append(f"{entry.name}: judge.language is not used; the prompts of {whose} stay as they are")
        except EvaluationError as error:
            problems.append(f"eval.evaluators.{entry.name}: {error}")
    if not file.evaluators:
        problems.append("eval.evaluators: no evaluator of type ragparity or ragas in this file")
    for name in file.general.ragparity.gate:
        if name not in file.evaluators:
            hint = did_you_mean(name, file.evaluators)
            problems.append(f"eval.general.ragparity.gate.{name}: no evaluator of this name.{hint}")
    return Plan(file, tuple(evaluators), tuple(problems), tuple(notes))


def prepared(plan: Plan) -> Plan:
    """The plan with every framework that it needs imported; what cannot be imported is one problem more.

    Takes seconds where a framework is wrapped, so not for `check`, and not on an event loop.
    """
    usable: list[Planned] = []
    problems = list(plan.problems)
    for one in plan.evaluators:
        try:
            prepare(one.metric)
        except ConfigError as error:
            problems.append(f"eval.evaluators.{one.entry.name}: {error}")
        else:
            usable.append(one)
    return replace(plan, evaluators=tuple(usable), problems=tuple(problems))


def prepare(metric: Metric) -> None:
    """Import what a metric wraps; raises `ConfigError`. Not on an event loop."""
    if isinstance(metric, Prepared):
        metric.prepare()


def _planned(file: EvalFile, entry: EvaluatorEntry, default_backend: str | None, session: Session) -> Planned:
    chosen = entry.backend_in_name or default_backend or entry.backend
    metric = backend(chosen).build(entry.metric_name, dict(entry.kwargs))
    planned = Planned(entry, metric)
    if missing := file.missing_entries(entry):
        raise ConfigError(missing[0].removeprefix(f"eval.evaluators.{entry.name}."))
    if planned.judged:
        if entry.llm_name is None:
            raise ConfigError(f"{metric.name} asks a judge: set llm_name ({_choices(file.llms)})")
        check_prompt(entry.judge, metric)
        if entry.llm_name != OFFLINE and entry.llm_name not in session.endpoints:
            llms.check(spec_of(usable(file, file.llms[entry.llm_name])))
    if planned.embeds:
        if entry.embedder_name is None:
            raise ConfigError(f"{metric.name} needs embedder_name ({_choices(file.embedders)})")
        if entry.embedder_name != OFFLINE and entry.embedder_name not in session.embedders:
            embeddings.check(spec_of(usable(file, file.embedders[entry.embedder_name])))
    return planned


def _choices(entries: Mapping[str, Any]) -> str:
    return "there is " + ", ".join((*entries, OFFLINE))
