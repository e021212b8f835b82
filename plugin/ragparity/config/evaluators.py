"""Entries of `eval.evaluators`: which metric of which backend, asked of which judge, and how."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from ragparity.config.entries import LlmEntry, retries_of, take_type
from ragparity.config.problems import Problems, Where, keys_of, listed, read, shown, suggestion
from ragparity.config.sections import (
    AnyEvaluatorSection,
    CrossvalidateSection,
    EvaluatorSection,
    JudgeSettings,
    RunSettings,
)
from ragparity.core.policy import Policies

EvaluatorType = Literal["ragparity", "ragas", "ragparity_crossvalidate"]

OUR_TYPES: tuple[EvaluatorType, ...] = ("ragparity", "ragas", "ragparity_crossvalidate")
DEFAULT_BACKEND = {"ragparity": "native", "ragas": "ragas", "ragparity_crossvalidate": "native"}

_PACKAGES = ("ragparity", "ragparity.nat", "nat.plugins.ragas.rag_evaluator")
"""Packages that may stand before a type, `package/type`, as the toolkit writes it where a name is taken twice."""

TOOLKIT_TYPES = frozenset(
    {
        "tunable_rag_evaluator",
        "trajectory",
        "langsmith",
        "langsmith_custom",
        "langsmith_judge",
        "red_teaming_evaluator",
        "avg_llm_latency",
        "avg_workflow_runtime",
        "avg_num_llm_calls",
        "avg_tokens_per_llm_end",
    }
)

_HINTS = {
    "embeddings": "did you mean embedder_name?",
    "kwargs": "write metric: {Name: {kwargs: {...}}}",
    "skip": "write metric: {Name: {skip: true}}",
    "strictness": "write metric: {Name: {kwargs: {strictness: …}}}",
    "timeout": "did you mean judge.timeout_s?",
}
_FORM_KEYS = {"kwargs", "skip"}


class MetricChoice(NamedTuple):
    """What `metric` says: the name, the backend before its `/`, the arguments, and whether to leave it out."""

    name: str
    backend: str | None
    kwargs: dict[str, Any]
    skip: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorEntry:
    """One evaluator with the defaults of `eval.general.ragparity` and of its llm entry under its own settings.

    `backend` is the one to use; `backend_chosen` says whether the file chose it (on the entry, before the
    metric's name, or for all evaluators), `backend_in_name` what stands before the name. `kwargs` are the
    metric's, a copy of the file's. `judge.model_fields_set` names the settings that the file makes.
    `backends` is for `ragparity_crossvalidate`; empty where the file names none.
    `all_failed_average` is for the toolkit alone: the average that its callers get where no row has a score.
    """

    name: str
    type: EvaluatorType
    metric_name: str
    backend: str
    backend_chosen: bool = False
    backend_in_name: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    skip: bool = False
    llm_name: str | None = None
    embedder_name: str | None = None
    input_obj_field: str | None = None
    enable_atif_evaluator: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    judge: JudgeSettings = field(default_factory=JudgeSettings)
    reps: int = 1
    threshold: float | None = None
    all_failed_average: float | None = None
    policies: Policies = field(default_factory=Policies)
    backends: tuple[str, ...] = ()

    @property
    def path(self) -> Where:
        """Where the entry stands in the file."""
        return evaluator_path(self.name)


def evaluator_path(name: str) -> Where:
    """Where an evaluator of this name stands in the file."""
    return ("eval", "evaluators", name)


def our_type(entry: dict[str, Any], where: Where, problems: Problems) -> tuple[EvaluatorType | None, str]:
    """Remove the type of an entry; ours, or `None` and a line where the evaluator belongs to the toolkit.

    A type that is nearly one of ours is an error: left out in silence it would be missed by nobody.
    """
    full = take_type(entry, where, OUR_TYPES, problems)
    if full is None:
        return None, ""
    package, _, short = full.rpartition("/")
    type_ = short if package in _PACKAGES else full
    if type_ in OUR_TYPES:
        return type_, ""
    hint = suggestion(type_, [one for one in OUR_TYPES if _near(type_, one)])
    if hint and type_ not in TOOLKIT_TYPES:
        problems.add((*where, "_type"), f"unknown type {type_!r}; {hint}")
        return None, ""
    return None, f"{'.'.join(where)}: an evaluator of the toolkit ({type_}), not scored here"


def _near(word: str, known: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, word.casefold(), known).ratio() > 0.85  # noqa: PLR2004  # one letter of ragas


def read_evaluator(
    name: str,
    raw: Mapping[str, Any],
    *,
    run: RunSettings | None = None,
    llms: Mapping[str, LlmEntry] | None = None,
) -> EvaluatorEntry:
    """One entry by itself, as the toolkit's door has it; raises `ConfigError` with a line per problem."""
    problems = Problems()
    entry = dict(raw)
    type_, _ = our_type(entry, evaluator_path(name), problems)
    made = None
    if type_ is not None:
        made = evaluator_entry(name, type_, entry, run=run or RunSettings(), llms=llms or {}, problems=problems)
    problems.stop()
    if made is None:
        raise ValueError(f"{name} is no evaluator of ragparity")
    return made


def evaluator_entry(
    name: str,
    type_: EvaluatorType,
    raw: Mapping[str, Any],
    *,
    run: RunSettings,
    llms: Mapping[str, LlmEntry],
    problems: Problems,
) -> EvaluatorEntry | None:
    """The entry over its defaults; `None` with its problems noted."""
    where = evaluator_path(name)
    crossvalidates = type_ == "ragparity_crossvalidate"
    made = read(CrossvalidateSection if crossvalidates else EvaluatorSection, raw, where, problems, _hints())
    metric = None
    if raw.get("metric") is not None:
        metric = metric_choice(raw["metric"], (*where, "metric"), problems)
    if made is None or metric is None:
        return None
    backend = made.backend if isinstance(made, EvaluatorSection) else None
    backends: tuple[str, ...] = ()
    if isinstance(made, CrossvalidateSection):
        backends = _distinct(made.backends, (*where, "backends"), problems)
        if metric.backend:
            problems.add(
                (*where, "metric"),
                f"got {metric.backend}/{metric.name}; expected the name alone, since backends lists the backends",
            )
    elif backend and metric.backend and backend.casefold() != metric.backend.casefold():
        problems.add(
            (*where, "backend"), f"backend is {backend} and metric is {metric.backend}/{metric.name}; keep one"
        )
    chosen = backend or metric.backend or run.backend
    return EvaluatorEntry(
        name=name,
        type=type_,
        metric_name=metric.name,
        backend=chosen or DEFAULT_BACKEND[type_],
        backend_chosen=chosen is not None,
        backend_in_name=metric.backend,
        kwargs=metric.kwargs,
        skip=metric.skip,
        llm_name=made.llm_name,
        embedder_name=made.embedder_name,
        input_obj_field=made.input_obj_field,
        enable_atif_evaluator=made.enable_atif_evaluator,
        fields={**run.fields, **made.fields},
        judge=_judge(made, run, llms),
        reps=made.reps,
        threshold=made.threshold,
        all_failed_average=made.all_failed_average,
        policies=Policies(**made.policies.model_dump()),
        backends=backends,
    )


def own_judge(made: AnyEvaluatorSection) -> JudgeSettings:
    """The judge settings of the entry itself, `num_retries` of the toolkit included."""
    retries = retries_of(made.do_auto_retry, made.num_retries)
    return made.judge if retries is None else made.judge.over(JudgeSettings(retries=retries))


def _judge(made: AnyEvaluatorSection, run: RunSettings, llms: Mapping[str, LlmEntry]) -> JudgeSettings:
    weaker = JudgeSettings()
    llm = llms.get(made.llm_name) if made.llm_name else None
    if llm is not None and llm.retries is not None:
        weaker = JudgeSettings(retries=llm.retries)
    if made.llm_name in run.judges:
        weaker = run.judges[made.llm_name].over(weaker)
    return own_judge(made).over(weaker)


def _distinct(names: list[str], where: Where, problems: Problems) -> tuple[str, ...]:
    folded = [name.casefold() for name in names]
    if twice := [name for name, one in zip(names, folded, strict=True) if folded.count(one) > 1]:
        problems.add(where, f"{twice[0]} stands twice; name each backend once")
    elif len(names) == 1:
        problems.add(where, f"only {names[0]}; expected two or more backends to compare")
    return tuple(names)


def _hints() -> dict[str, str]:
    hints = {}
    for section in ("judge", "policies"):
        info = keys_of(EvaluatorSection)[section]
        for key in keys_of(cast("Any", info.annotation)):
            hints[key] = f"did you mean {section}.{key}?"
    return {**hints, **_HINTS}


def metric_choice(raw: Any, where: Where, problems: Problems) -> MetricChoice | None:
    """`Name`, `backend/Name`, `{Name: {kwargs: {...}, skip: false}}` or `{Name: {<kwargs>}}`.

    An inner mapping whose keys are among `kwargs` and `skip` is the toolkit's form; any other mapping is
    the arguments themselves. The arguments are copied.
    """
    inner: Any = None
    name = raw
    if isinstance(raw, Mapping):
        if len(raw) != 1:
            names = f"{len(raw)} metrics ({', '.join(map(str, raw))})" if raw else "no metric"
            problems.add(where, f"{names} in one evaluator; expected one; write one evaluator for each")
            return None
        ((name, inner),) = raw.items()
    if not isinstance(name, str) or not name.strip():
        problems.add(where, f"got {shown(raw)}; expected a metric: Name, backend/Name or {{Name: {{kwargs: {{...}}}}}}")
        return None
    backend, slash, metric = name.strip().rpartition("/")
    if slash and not (backend.strip() and metric.strip() and "/" not in backend):
        problems.add(where, f"got {shown(name)}; expected Name or backend/Name")
        return None
    arguments = _arguments(inner, (*where, name), problems)
    if arguments is None:
        return None
    kwargs, skip = arguments
    return MetricChoice(metric.strip(), backend.strip() or None, kwargs, skip)


def _arguments(inner: Any, where: Where, problems: Problems) -> tuple[dict[str, Any], bool] | None:
    if inner is None:
        return {}, False
    if not isinstance(inner, Mapping):
        problems.add(where, f"got {shown(inner)}; expected a mapping of arguments")
        return None
    others = [str(key) for key in inner if key not in _FORM_KEYS]
    form = [str(key) for key in inner if key in _FORM_KEYS]
    if others and form:
        problems.add(
            where,
            f"{listed(form)} beside {listed(others)}; expected only kwargs and skip, with {listed(others)} in kwargs",
        )
        return None
    kwargs = (inner.get("kwargs") or {}) if form else inner
    skip = inner.get("skip") if form else None
    if not isinstance(kwargs, Mapping):
        problems.add((*where, "kwargs"), f"got {shown(kwargs)}; expected a mapping of arguments")
        return None
    if not isinstance(skip, bool | None):
        problems.add((*where, "skip"), f"got {shown(skip)}; expected true or false")
        return None
    if odd := [key for key in kwargs if not isinstance(key, str)]:
        problems.add((*where, str(odd[0])), "an argument whose name is no text; put it into quotes")
        return None
    return deepcopy(dict(kwargs)), bool(skip)
