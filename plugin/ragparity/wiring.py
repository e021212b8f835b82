"""From an eval file to bound evaluators: THE ONE FILE THAT IMPORTS THE ADAPTERS.

A `Plan` holds what can be known without a client: metrics built, entries found, every problem named at once.
Opening it builds the clients, one endpoint and one lane per llm entry, shared by all evaluators.
"""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragparity import dataset
from ragparity.around import Around, model_settings, replies_of
from ragparity.config import OFFLINE
from ragparity.core import user_rules
from ragparity.core.errors import ConfigError, EvaluationError, UnknownBackend, did_you_mean
from ragparity.core.ports import Prepared
from ragparity.core.prompt import Prompt
from ragparity.middleware import Lane, Retrying, RetryingEmbedder
from ragparity.registry import NativeBackend
from ragparity.runner import Evaluator
from ragparity.spending import Spending
from ragparity_adapters import embeddings, llms
from ragparity_adapters.fields import RowReader

if TYPE_CHECKING:
    from ragparity.config import EvalFile, EvaluatorEntry, ModelEntry
    from ragparity.core.ports import Backend, Embedder, Judge, Metric
    from ragparity.core.row import Row
    from ragparity.spending import Budget
    from ragparity_adapters.endpoint import Endpoint

NATIVE = "native"
JUDGED = frozenset({"rating", "structured", "text"})
JUDGE_OPTIONS = (
    "output",
    "max_tokens",
    "temperature",
    "timeout_s",
    "reasoning",
    "structured",
    "language",
    "prompt",
    "context_window",
)
LOOKED_AT = 200
"""Rows that `check` looks at to estimate the sizes of answers."""


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
            llms.check(_spec(_usable(file, file.llms[entry.llm_name])))
    if planned.embeds:
        if entry.embedder_name is None:
            raise ConfigError(f"{metric.name} needs embedder_name ({_choices(file.embedders)})")
        if entry.embedder_name != OFFLINE and entry.embedder_name not in session.embedders:
            embeddings.check(_spec(_usable(file, file.embedders[entry.embedder_name])))
    return planned


def _choices(entries: Mapping[str, Any]) -> str:
    return "there is " + ", ".join((*entries, OFFLINE))


def _usable(file: EvalFile, entry: ModelEntry) -> ModelEntry:
    unset = file.unset_variables(entry)
    if file.general.ragparity.cache.mode == "replay":
        # Nobody is asked, so no key is needed.
        key = file.tree[entry.section][entry.name].get("api_key")
        unset = [name for name in unset if name not in getattr(key, "names", ())]
        entry = replace(entry, api_key=entry.api_key or "none")
    if unset:
        where = f"{entry.section}.{entry.name}"
        raise ConfigError(f"{where}: the variable {unset[0]} is not set; set it, or give a default: ${{{unset[0]}:-…}}")
    return entry


def _spec(entry: ModelEntry) -> llms.LlmSpec:
    options = dict(entry.options)
    if entry.type == "langchain":
        options = {"class": entry.class_path, "kwargs": dict(entry.kwargs)}
    said = entry.toolkit
    return llms.LlmSpec(
        name=entry.name, type=entry.type, model_name=entry.model_name, azure_deployment=entry.azure_deployment,
        base_url=entry.base_url, api_key=entry.api_key, max_tokens=getattr(entry, "max_tokens", None),
        verify_ssl=said.get("verify_ssl") is not False, thinking=said.get("thinking"), api_type=said.get("api_type"),
        options=options,
    )  # fmt: skip


# -- rows


@dataclass(frozen=True, slots=True)
class Rows:
    """The data set of a plan: every row once, seen through each set of field settings that evaluators use."""

    source: dataset.Dataset
    readers: tuple[RowReader, ...]
    view_of: Mapping[str, int]

    def __iter__(self) -> Iterator[tuple[Row, ...]]:
        if len(self.readers) == 1:
            for row in self.readers[0].read_rows(iter(self.source)):
                yield (row,)
            return
        yield from zip(*(one.read_rows(iter(self.source)) for one in self.readers), strict=True)

    def first(self) -> tuple[Row, ...]:
        """A few rows, to look at."""
        return tuple(views[0] for views in self.head(LOOKED_AT))

    def head(self, n: int) -> Iterator[tuple[Row, ...]]:
        """The first rows."""
        return islice(self, n)

    def field_map(self) -> list[tuple[str, str]]:
        """Column and field of the first row."""
        first = self.source.first()
        return self.readers[0].field_map(first) if first is not None else []


def open_rows(plan: Plan, *, file_path: Path | None = None) -> Rows:
    """The rows of the plan's data set, or of another file; raises `ConfigError`."""
    general = plan.file.general
    section = general.dataset
    if section is None and file_path is None:
        raise ConfigError("eval.general.dataset: missing; set it in the file, or name the rows with --dataset")
    structure = section.structure.model_dump(exclude_unset=True) if section is not None else {}
    id_key = section.id_key if section is not None else "id"
    chosen = section if file_path is None else None
    source = dataset.open_dataset(
        file_path or (section.file_path if section is not None else None),
        kind=chosen.type if chosen is not None else None,
        filter=section.filter.model_dump(exclude_none=True) if section is not None and section.filter else None,
        function=chosen.function if chosen is not None else None,
        kwargs=chosen.kwargs if chosen is not None else None,
        structure=structure,
        id_key=id_key,
    )
    readers: dict[str, RowReader] = {}
    view_of: dict[str, int] = {}
    for one in plan.evaluators:
        fields, question_field = dict(one.entry.fields), one.entry.input_obj_field
        key = repr((sorted(fields.items()), question_field))
        if key not in readers:
            readers[key] = RowReader(structure=structure, fields=fields, id_key=id_key, input_obj_field=question_field)
        view_of[one.entry.name] = list(readers).index(key)
    if not readers:
        readers[""] = RowReader(structure=structure, fields=dict(general.ragparity.fields), id_key=id_key)
    return Rows(source, tuple(readers.values()), view_of)


# -- clients


@dataclass(slots=True)
class Session:
    """The clients of one run, and the evaluators bound to them. It belongs to one event loop."""

    evaluators: list[Evaluator] = field(default_factory=list)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)
    embedders: dict[str, Embedder] = field(default_factory=dict)
    bare_embedders: dict[str, Embedder] = field(default_factory=dict)
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    around: Around = field(default_factory=Around)

    async def aclose(self) -> None:
        """Close the connections of every client, and the cache."""
        try:
            for close in self.closing:
                await close()
        finally:
            self.around.close()

    def findings(self) -> list[str]:
        """What the endpoints have shown about themselves, and remarks on cache and budget, in sentences."""
        return [*(line for one in self.endpoints.values() for line in one.findings.said), *self.around.said()]

    def judges_json(self) -> dict[str, Any]:
        """Identity, rung and token parameter of every endpoint, for the manifest."""
        from ragparity_adapters.langchain import RUNGS

        return {
            name: {
                "identity": one.identity,
                "structured": RUNGS[one.findings.rung] if one.findings.rung_confirmed else None,
                "token_parameter": one.findings.token_param,
                "left_out": sorted(one.findings.dropped),
                "thinks": one.findings.thinks,
                "max_tokens": one.ceiling,
            }
            for name, one in self.endpoints.items()
        }


def open_session(plan: Plan, rows: Rows | None = None, *, budget: Budget | None = None) -> Session:
    """Build the clients that the plan's evaluators use, with the file's cache and budget; raises `ConfigError`.

    `budget` stands in place of the file's.
    """
    settings = plan.file.general.ragparity
    budget = settings.budget.as_limits() if budget is None else budget
    if problem := without_price(plan, budget):
        raise ConfigError(problem)
    session = Session(around=Around(spending=Spending(budget), replies=replies_of(settings.cache)))
    for one in plan.evaluators:
        view = rows.view_of[one.entry.name] if rows is not None else 0
        session.evaluators.append(bind(plan, one, session, view=view))
    return session


def bind(plan: Plan, one: Planned, session: Session, *, view: int = 0) -> Evaluator:
    """An evaluator on the clients of a session; those that it lacks are built, one per llm entry and embedder.

    Evaluators that are bound to one session share its clients and their limits. Raises `ConfigError`.
    """
    entry, concurrency = one.entry, plan.file.general.max_concurrency
    return Evaluator(
        name=entry.name,
        metric=one.metric,
        judge=_judge(plan, session, one, concurrency) if one.judged else None,
        embedder=_embedder(plan, session, one, concurrency) if one.embeds else None,
        policies=entry.policies,
        reps=entry.reps,
        threshold=entry.threshold,
        price=one.price,
        view=view,
        settings=_unnamed(plan, one),
    )


def _unnamed(plan: Plan, one: Planned) -> str:
    """What can change a score and shows in no identity: settings of the models, and the wording of prompts."""
    entries = [
        (one.judged, plan.file.llms.get(str(one.entry.llm_name))),
        (one.embeds, plan.file.embedders.get(str(one.entry.embedder_name))),
    ]
    said = [_settings(plan, entry) for asked, entry in entries if asked and entry is not None]
    return " ".join((*said, prompt_digest(one.metric)))


def dry_evaluators(plan: Plan, rows: Rows) -> list[Evaluator]:
    """The plan's evaluators with a judge and an embedder that need no model: for what is to be expected of a run.

    Wrapped frameworks are left out: importing one takes seconds.
    """
    from ragparity_adapters.offline import OfflineJudge

    return [
        Evaluator(
            name=one.entry.name,
            metric=one.metric,
            judge=OfflineJudge() if one.judged else None,
            embedder=embeddings.HashingEmbedder() if one.embeds else None,
            policies=one.entry.policies,
            view=rows.view_of[one.entry.name],
        )
        for one in plan.evaluators
        if one.metric.backend == NATIVE
    ]


def without_price(plan: Plan, budget: Budget) -> str | None:
    """What is missing for a budget in money: the price of a judge, if it is not known."""
    for one in plan.evaluators:
        asked = one.judged and one.entry.llm_name != OFFLINE
        if budget.cost is not None and asked and one.price is None:
            where = f"eval.general.ragparity.judges.{one.entry.llm_name}.price"
            return f"budget: a limit of cost needs the price of every judge; set {where} (for {one.entry.name})"
    return None


def _settings(plan: Plan, entry: ModelEntry) -> str:
    return model_settings({**entry.options, **entry.kwargs}, plan.file.secrets)


def _judge(plan: Plan, session: Session, one: Planned, concurrency: int) -> Judge:
    name, said = str(one.entry.llm_name), one.entry.judge
    if name == OFFLINE:
        from ragparity_adapters.offline import OfflineJudge

        return OfflineJudge()
    if name not in session.endpoints:
        session.endpoints[name] = llms.build(_spec(_usable(plan.file, plan.file.llms[name])))
        session.closing.append(session.endpoints[name].aclose)
    if name not in session.lanes:
        session.lanes[name] = Lane(name, concurrency)
    settings = _settings(plan, plan.file.llms[name]) if name in plan.file.llms else ""
    options = judge_options(said, one.metric.name)
    return bound_judge(
        session.endpoints[name], session.lanes[name], retries=said.retries, options=options,
        around=session.around, settings=settings, price=one.price,
    )  # fmt: skip


def bare_judge(session: Session, one: Planned, longest_s: float) -> Judge:
    """The judge of an evaluator without retries, cache and budget; a reply is waited for `longest_s` at most."""
    from ragparity_adapters.langchain import JudgeOptions, LangChainJudge

    options = judge_options(one.entry.judge, one.metric.name)
    options["timeout_s"] = min(options["timeout_s"], longest_s)
    return LangChainJudge(session.endpoints[str(one.entry.llm_name)], JudgeOptions(**options))


def judge_options(said: Any, metric: str | None = None) -> dict[str, Any]:
    """The settings of a judge block that the adapter takes, the user's rules filled in as far as is known."""
    options = {name: getattr(said, name) for name in JUDGE_OPTIONS}
    if options["prompt"]:
        known = {"metric": metric, "language": said.language}
        values = {name: value for name, value in known.items() if value}
        options["prompt"] = user_rules.filled(options["prompt"], values, leave=("scale",))
    return options


def check_prompt(said: Any, metric: Metric, *, named: bool = True) -> None:
    """Raise `ConfigError` where the user's own rules cannot be followed; not `named`: one judge serves many metrics."""
    if not said.prompt:
        return
    if metric.backend != NATIVE:
        raise ConfigError(
            f"judge.prompt: {metric.backend} asks with prompts of its own, which stay as they are; set it on "
            "evaluators of the native backend only"
        )
    without = {} if named else {"metric": "the same judge is asked by several metrics"}
    if "rating" not in metric.uses:
        without["scale"] = f"{metric.name} asks for no rating"
    if not said.language:
        without["language"] = "judge.language is not set"
    user_rules.check(said.prompt, without=without)


def bound_judge(
    endpoint: Endpoint, lane: Lane, *, retries: int, options: Mapping[str, Any], around: Around | None = None,
    settings: str = "", price: tuple[float, float] | None = None,
) -> Judge:  # fmt: skip
    """An endpoint under the options of one evaluator, behind its lane, with retries and what stands around them."""
    from ragparity_adapters.langchain import JudgeOptions, LangChainJudge

    around = around or Around()
    judge = around.metered(LangChainJudge(endpoint, JudgeOptions(**options)), endpoint.name, price)
    return around.judge(Retrying(judge, lane, retries), settings)


def _embedder(plan: Plan, session: Session, one: Planned, concurrency: int) -> Embedder:
    name = str(one.entry.embedder_name)
    if name not in session.embedders:
        if name == OFFLINE:
            session.embedders[name] = embeddings.HashingEmbedder()
        else:
            entry = plan.file.embedders[name]
            made = embeddings.build(_spec(_usable(plan.file, entry)))
            session.closing.append(made.aclose)
            session.bare_embedders[name] = made
            retrying = RetryingEmbedder(made, Lane(name, concurrency), one.entry.judge.retries)
            session.embedders[name] = session.around.embedder(retrying, _settings(plan, entry))
    return session.embedders[name]


# -- models that were made elsewhere


def judge_from(
    model: Any, concurrency: int, retries: int, options: Mapping[str, Any]
) -> tuple[Judge, Callable[[], list[str]]]:
    """A judge from a LangChain chat model, from `"offline"`, or from something that is a judge already.

    The second value gives what its endpoint has shown about itself, in sentences.
    """
    if isinstance(model, str) and model == OFFLINE:
        from ragparity_adapters.offline import OfflineJudge

        return OfflineJudge(), list
    if callable(getattr(model, "ask", None)):
        judge: Judge = model
        return judge, list
    if not hasattr(model, "ainvoke"):
        raise ConfigError(f'judge: expected a LangChain chat model or "offline", got {type(model).__name__}')
    endpoint = llms.from_model(model)
    judge = bound_judge(endpoint, Lane("judge", concurrency), retries=retries, options=options)
    return judge, lambda: list(endpoint.findings.said)


def embedder_from(model: Any, concurrency: int, retries: int) -> Embedder:
    """An embedder from LangChain embeddings, from `"offline"`, or from something that is an embedder already."""
    if isinstance(model, str) and model == OFFLINE:
        return embeddings.HashingEmbedder()
    if callable(getattr(model, "embed", None)):
        embedder: Embedder = model
        return embedder
    if not hasattr(model, "aembed_documents"):
        raise ConfigError(f'embedder: expected LangChain embeddings or "offline", got {type(model).__name__}')
    return RetryingEmbedder(embeddings.from_embeddings(model), Lane("embedder", concurrency), retries)


def is_buildable(entry: ModelEntry) -> bool:
    """Whether a client for this type of entry can be made here; else the caller must bring one."""
    return llms.can_build(entry.type) if entry.section == "llms" else embeddings.can_build(entry.type)


def adopt_llm(session: Session, name: str, model: Any) -> None:
    """Take a LangChain chat model that was made elsewhere as the client of an llm entry; it is not closed here."""
    if not hasattr(model, "ainvoke"):
        raise ConfigError(f"llms.{name}: expected a LangChain chat model, got {type(model).__name__}")
    session.endpoints[name] = llms.from_model(model, name)


def adopt_embedder(session: Session, name: str, model: Any, *, concurrency: int, retries: int) -> None:
    """Take LangChain embeddings that were made elsewhere as the client of an embedder entry."""
    if not hasattr(model, "aembed_documents"):
        raise ConfigError(f"embedders.{name}: expected LangChain embeddings, got {type(model).__name__}")
    session.embedders[name] = RetryingEmbedder(
        embeddings.from_embeddings(model, name), Lane(name, concurrency), retries
    )


def row_reader(
    *, structure: Mapping[str, Any], id_key: str, fields: Mapping[str, str], input_obj_field: str | None
) -> RowReader:
    """A reader of rows that come from elsewhere; the options are those of `RowReader`."""
    return RowReader(structure=structure, fields=fields, id_key=id_key, input_obj_field=input_obj_field)


def read_python_rows(rows: Any, fields: Mapping[str, str] | None) -> Callable[[], Iterator[tuple[Row, ...]]]:
    """Rows handed over in a program; there, `answer` is the response."""
    source = dataset.rows_of(rows)
    reader = RowReader(fields=fields or {}, python=True)
    return lambda: ((row,) for row in reader.read_rows(iter(source)))


# -- provenance


def file_digest(rows: Rows) -> str | None:
    """The SHA-256 of the data file, where the rows come from one."""
    path = Path(rows.source.source)
    if not path.is_file():
        return None
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def prompt_digest(metric: Metric) -> str:
    """A SHA-256 over the prompts of the module that a metric comes from, as 16 hexadecimal digits."""
    module = importlib.import_module(type(metric).__module__)
    prompts = sorted(repr(value) for value in vars(module).values() if isinstance(value, Prompt))
    return hashlib.sha256("\n".join(prompts).encode()).hexdigest()[:16]
