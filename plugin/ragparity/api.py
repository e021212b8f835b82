"""`evaluate` and `aevaluate`: rows and metrics in, results out, from a program.

HTTP clients are bound to the event loop on which they were first used. So `evaluate` runs everything on one
background loop of the process: it works in notebooks, inside a running loop, and again and again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragparity import runner, wiring
from ragparity.catalogue import split_name
from ragparity.core.errors import ConfigError
from ragparity.core.policy import Policies
from ragparity.core.ports import Tally
from ragparity.evaluation import Finished, summary_of, versions
from ragparity.folder import RunFolder
from ragparity.results import Record, plain
from ragparity.runner import Evaluator

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ragparity.core.ports import Metric
    from ragparity.core.row import Row


@dataclass(slots=True)
class Results:
    """What `evaluate` gives: every record in data order, and the figures over them."""

    records: list[Record]
    finished: Finished
    rows: list[Row] = field(repr=False)
    findings: list[str] = field(default_factory=list)

    @property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Figures by evaluator, as in `summary.json`."""
        found: dict[str, dict[str, Any]] = self.finished.as_json()["evaluators"]
        return found

    def __getitem__(self, evaluator: str) -> list[Record]:
        """The records of one evaluator, in data order."""
        return [one for one in self.records if one.evaluator == evaluator]

    def to_pandas(self) -> Any:
        """A frame with one line per record, the columns of `results.jsonl`; a missing score is NaN there."""
        try:
            import pandas as pd
        except ImportError as error:
            from ragparity.core.errors import MissingExtra

            raise MissingExtra("to_pandas needs pandas: pip install 'ragparity[data]'") from error
        return pd.DataFrame([one.as_json() for one in self.records])

    def save(self, path: str | Path) -> Path:
        """Write the files of a run into a folder (a finished run in it is replaced)."""
        with RunFolder(Path(path)) as folder:
            for row in self.rows:
                folder.sample(row)
            for one in self.records:
                folder.write(one, Tally())
            from ragparity.config import file_stems

            stems = file_stems(self.finished.summaries)
            manifest = {"versions": versions(), "finished": True, "findings": self.findings}
            folder.finish(list(stems.items()), self.finished.as_json(), manifest)
        return Path(path)

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{name}: {'none' if one.mean is None else f'{one.mean:.4f}'} ({one.n_scored}/{one.n_total} scored)"
            for name, one in self.finished.summaries.items()
        )
        return f"Results({figures})"


async def aevaluate(
    rows: Any,
    metrics: Sequence[str | Mapping[str, Any] | Metric],
    *,
    judge: Any = None,
    embedder: Any = None,
    fields: Mapping[str, str] | None = None,
    policies: Policies | Mapping[str, Any] | None = None,
    judge_options: Mapping[str, Any] | None = None,
    thresholds: Mapping[str, float] | None = None,
    retries: int = 3,
    reps: int = 1,
    max_concurrency: int = 16,
) -> Results:
    """Score rows with metrics on the caller's event loop.

    `rows`: a list of dicts or `Sample`s, a frame, a data set, a path. `metrics`: names (`Faithfulness`,
    `ragas/Faithfulness`), `{name: kwargs}`, or metrics. `judge`: a LangChain chat model or `"offline"`;
    `embedder`: LangChain embeddings or `"offline"`. `judge_options`: keys of the `judge` block of an eval
    file (`output`, `max_tokens`, `temperature`, `timeout_s`, `reasoning`, `structured`, `language`).

    Raises `ConfigError` before the first call for a metric, keyword or judge that cannot work. A row that cannot
    be scored raises nothing: its record says why.
    """
    chosen = policies if isinstance(policies, Policies) else Policies(**(policies or {}))
    evaluators = bind(
        metrics, judge=judge, embedder=embedder, policies=chosen, judge_options=judge_options or {},
        thresholds=thresholds or {}, retries=retries, reps=reps, concurrency=max_concurrency,
    )  # fmt: skip
    read = wiring.read_python_rows(rows, fields)
    records: list[Record] = []
    kept: list[Row] = []

    def remembered() -> Any:
        for views in read():
            kept.append(views[0])
            yield views

    await runner.run(remembered(), evaluators, lambda one, _tally: records.append(one), concurrency=max_concurrency)
    order = {one.name: number for number, one in enumerate(evaluators)}
    records.sort(key=lambda one: (one.row, order[one.evaluator]))
    finished = Finished({one.name: summary_of(one) for one in evaluators})
    for summary in finished.summaries.values():
        summary.n_total = len(kept)
    for one in records:
        finished.summaries[one.evaluator].add(one)
    return Results(records, finished, kept)


def bind(
    metrics: Sequence[str | Mapping[str, Any] | Metric],
    *,
    judge: Any,
    embedder: Any,
    policies: Policies,
    judge_options: Mapping[str, Any],
    thresholds: Mapping[str, float],
    retries: int,
    reps: int,
    concurrency: int,
) -> list[Evaluator]:
    """Evaluators named after their metrics; raises `ConfigError`."""
    if isinstance(metrics, str | Mapping) or not metrics:
        raise ConfigError('metrics: expected a list of at least one metric, e.g. metrics=["Faithfulness"]')
    unknown = [name for name in judge_options if name not in wiring.JUDGE_OPTIONS]
    if unknown:
        raise ConfigError(f"judge_options: unknown key {unknown[0]!r}; known are {', '.join(wiring.JUDGE_OPTIONS)}")
    asked = None if judge is None else wiring.judge_from(judge, concurrency, retries, judge_options)
    embeds = None if embedder is None else wiring.embedder_from(embedder, concurrency, retries)
    evaluators: dict[str, Evaluator] = {}
    for one in metrics:
        name, metric = _metric(one)
        if name in evaluators:
            raise ConfigError(f"metrics: {name} stands there twice")
        if metric.uses & wiring.JUDGED and asked is None:
            raise ConfigError(f'{name} asks a judge: pass judge=, a LangChain chat model or "offline"')
        if "embeddings" in metric.uses and embeds is None:
            raise ConfigError(f'{name} needs embeddings: pass embedder=, LangChain embeddings or "offline"')
        evaluators[name] = Evaluator(
            name=name,
            metric=metric,
            judge=asked if metric.uses & wiring.JUDGED else None,
            embedder=embeds if "embeddings" in metric.uses else None,
            policies=policies,
            reps=reps,
            threshold=thresholds.get(name),
        )
    if stray := [name for name in thresholds if name not in evaluators]:
        raise ConfigError(f"thresholds: no metric {stray[0]!r} here; there is {', '.join(evaluators)}")
    return list(evaluators.values())


def _metric(one: str | Mapping[str, Any] | Metric) -> tuple[str, Metric]:
    """A metric and the name of its evaluator."""
    if isinstance(one, str):
        backend, name = split_name(one)
        return one, wiring.backend(backend).build(name, {})
    if isinstance(one, Mapping):
        if len(one) != 1:
            raise ConfigError(f"metrics: expected one metric per mapping, got {', '.join(map(str, one)) or 'none'}")
        ((label, kwargs),) = one.items()
        backend, name = split_name(str(label))
        metric = wiring.backend(backend).build(name, dict(plain(kwargs or {})))
        spec = repr(metric)
        return (spec if backend == wiring.NATIVE else f"{backend}/{spec}").removesuffix("()"), metric
    if not callable(getattr(one, "score", None)):
        raise ConfigError(f"metrics: expected a name, {{name: kwargs}} or a metric, got {type(one).__name__}")
    return repr(one).removesuffix("()"), one


# -- the door for code that is not async

_loop: asyncio.AbstractEventLoop | None = None
_starting = threading.Lock()


def _background_loop() -> asyncio.AbstractEventLoop:
    """The one loop of this process, in a daemon thread, started on first use."""
    global _loop  # noqa: PLW0603  # one loop per process is the point: clients are bound to it
    with _starting:
        if _loop is None or not _loop.is_running():
            loop = asyncio.new_event_loop()
            ready = threading.Event()
            loop.call_soon(ready.set)
            threading.Thread(target=loop.run_forever, name="ragparity", daemon=True).start()
            ready.wait()
            _loop = loop
        return _loop


def _run(work: Coroutine[Any, Any, Results]) -> Results:
    future = asyncio.run_coroutine_threadsafe(work, _background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def evaluate(rows: Any, metrics: Sequence[str | Mapping[str, Any] | Metric], **options: Any) -> Results:
    """`aevaluate` for code that is not async: the same arguments, run on a background loop.

    >>> from ragparity import evaluate
    >>> evaluate([{"question": "q", "answer": "Paris", "ground_truth": "Paris"}], metrics=["ExactMatch"])
    Results(ExactMatch: 1.0000 (1/1 scored))
    """
    return _run(aevaluate(rows, metrics, **options))
