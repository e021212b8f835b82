"""`evaluate` and `aevaluate`: rows and metrics in, results out, from a program.

HTTP clients are bound to the event loop on which they were first used. So `evaluate` runs everything on one
background loop of the process: it works in notebooks, inside a running loop, and again and again.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragparity import runner, wiring
from ragparity.around import Around, replies_of
from ragparity.catalogue import split_name
from ragparity.core.errors import ConfigError, MissingExtra, did_you_mean
from ragparity.core.policy import Policies
from ragparity.core.ports import Prepared, Tally
from ragparity.evaluation import Finished, metrics_json, summary_of, versions
from ragparity.folder import RunFolder
from ragparity.runner import Evaluator

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from ragparity.config import Cache, JudgeSettings
    from ragparity.core.ports import Judge, Metric
    from ragparity.core.row import Row
    from ragparity.results import Record
    from ragparity_adapters.endpoint import Endpoint

R = TypeVar("R")


@dataclass(slots=True)
class Results:
    """What `evaluate` gives: every record in data order, and the figures over them."""

    records: list[Record]
    finished: Finished
    rows: list[Row] = field(repr=False)
    evaluators: list[Evaluator] = field(default_factory=list, repr=False)
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Figures by evaluator, as in `summary.json`."""
        found: dict[str, dict[str, Any]] = self.finished.as_json()["evaluators"]
        return found

    @property
    def findings(self) -> list[str]:
        """What the judge's endpoint has shown about itself, in sentences."""
        return self.finished.findings

    def __getitem__(self, evaluator: str) -> list[Record]:
        """The records of one evaluator, in data order; raises `KeyError` for a name that is none."""
        if evaluator not in self.finished.summaries:
            names = ", ".join(self.finished.summaries)
            raise KeyError(f"no evaluator {evaluator!r}; there is {names}")
        return [one for one in self.records if one.evaluator == evaluator]

    def to_pandas(self) -> Any:
        """A frame with one line per record, the columns of `results.jsonl`; a missing score is NaN there.

        Raises `MissingExtra` without pandas.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtra("to_pandas needs pandas: pip install 'ragparity[data]'") from error
        frame = pd.DataFrame([one.as_json() for one in self.records])
        return frame.astype({"score": "float64"}) if len(frame) else frame

    def save(self, path: str | Path) -> Path:
        """Write the files of a run into a folder, in place of a finished run there; gives the folder.

        Raises `ConfigError` where the folder holds an unfinished run, is in use, or cannot be written.
        """
        from ragparity.config import file_stems

        manifest = {
            "started": self.started.isoformat(timespec="seconds"),
            "finished": None,
            "versions": versions(),
            "dataset": {"source": "rows of a program", "rows": len(self.rows), "sha256": None},
            "metrics": metrics_json(self.evaluators),
            "findings": self.findings,
        }
        with RunFolder(Path(path), save_calls="none") as folder:
            for _ in folder.begin(manifest):
                pass
            for row in self.rows:
                folder.sample(row)
            folder.write((one, Tally()) for one in self.records)
            stems = file_stems(self.finished.summaries)
            ended = self.ended.isoformat(timespec="seconds")
            folder.finish(list(stems.items()), self.finished.as_json(), {**manifest, "finished": ended})
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
    cache: str | Path | Mapping[str, Any] | None = None,
    max_concurrency: int = 16,
) -> Results:
    """Score rows with metrics on the caller's event loop.

    `rows`: a list of dicts or `Sample`s, a frame, a data set, a path. `metrics`: names (`Faithfulness`,
    `ragas/Faithfulness`), `{name: kwargs}`, or metrics. `judge`: a LangChain chat model or `"offline"`;
    `embedder`: LangChain embeddings or `"offline"`; neither has a default. `fields`: field to path, where a column
    is nested. `judge_options`: keys of the `judge` block of an eval file (`output`, `max_tokens`, `temperature`,
    `timeout_s`, `reasoning`, `structured`, `price`, `language`). `thresholds`: by name of the metric; then each
    scored row has passed or not. `retries` are attempts after the first; `reps` repeats every score and takes the
    mean. `cache`: the path of a file that keeps replies and vectors, or the `cache` block of an eval file
    (`{"path": "judge.sqlite", "mode": "replay"}`). `max_concurrency` is the number of judge calls in flight.

    Raises `ConfigError` before the first call for a metric, keyword, judge or row source that cannot work. A row
    that cannot be scored raises nothing: its record says why.
    """
    _at_least(1, reps=reps, max_concurrency=max_concurrency)
    _at_least(0, retries=retries)
    records: list[Record] = []
    kept: list[Row] = []
    started = datetime.now(UTC)
    with closing(Around(replies=replies_of(_cache(cache)))) as around:
        evaluators, endpoint = bind(
            metrics, judge=judge, embedder=embedder, policies=_policies(policies), judge_options=judge_options or {},
            thresholds=thresholds or {}, retries=retries, reps=reps, concurrency=max_concurrency, around=around,
        )  # fmt: skip
        for evaluator in evaluators:
            if isinstance(evaluator.metric, Prepared):
                await asyncio.to_thread(evaluator.metric.prepare)
        read = wiring.read_python_rows(rows, fields)

        def remembered() -> Iterator[Sequence[Row]]:
            for views in read():
                kept.append(views[0])
                yield views

        try:
            await runner.run(
                remembered(),
                evaluators,
                lambda made: records.extend(one for one, _ in made),
                concurrency=max_concurrency,
            )
        finally:
            if endpoint is not None:
                await endpoint.aclose()
    if not kept:
        raise ConfigError("rows: there are none; expected at least one row")
    order = {one.name: number for number, one in enumerate(evaluators)}
    records.sort(key=lambda one: (one.row, order[one.evaluator]))
    finished = Finished(
        {one.name: summary_of(one) for one in evaluators},
        findings=[*(endpoint.findings.said if endpoint is not None else ()), *around.said()],
    )
    for summary in finished.summaries.values():
        summary.n_total = len(kept)
    for one in records:
        finished.summaries[one.evaluator].add(one)
        finished.troubles.add(one)
    return Results(records, finished, kept, evaluators, started, datetime.now(UTC))


def _at_least(least: int, **numbers: int) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ConfigError(f"{name}: expected a whole number, {least} or more, got {number!r}")


def _policies(said: Policies | Mapping[str, Any] | None) -> Policies:
    """Policies from a mapping, checked as those of an eval file are."""
    if isinstance(said, Policies):
        return said
    from ragparity.config.problems import Problems, read
    from ragparity.config.sections import PolicySection

    problems = Problems()
    section = read(PolicySection, dict(said or {}), ("policies",), problems)
    problems.stop()
    return Policies(**section.model_dump()) if section is not None else Policies()


def _cache(said: str | Path | Mapping[str, Any] | None) -> Cache:
    """A cache block, checked as that of an eval file is; a path alone is read and written."""
    from ragparity.config import Cache
    from ragparity.config.problems import Problems, read

    problems = Problems()
    block = {"path": said, "mode": "read_write"} if isinstance(said, str | Path) else said or {}
    section = read(Cache, block, ("cache",), problems)
    problems.stop()
    return section or Cache()


def _judge_settings(said: Mapping[str, Any]) -> JudgeSettings:
    """A judge block, checked as that of an eval file is; what only an eval file can use is refused."""
    from ragparity.config import JudgeSettings
    from ragparity.config.problems import Problems, read

    known = (*wiring.JUDGE_OPTIONS, "price")
    if unknown := [str(name) for name in said if name not in known]:
        hint = " Pass retries= to evaluate." if unknown[0] == "retries" else did_you_mean(unknown[0], known)
        raise ConfigError(f"judge_options: unknown key {unknown[0]!r}; known are {', '.join(known)}.{hint}")
    problems = Problems()
    section = read(JudgeSettings, dict(said), ("judge_options",), problems)
    problems.stop()
    return section or JudgeSettings()


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
    around: Around,
) -> tuple[list[Evaluator], Endpoint | None]:
    """Evaluators named after their metrics, and the endpoint of the judge that was made; raises `ConfigError`."""
    if isinstance(metrics, str | Mapping) or not isinstance(metrics, Sequence) or not metrics:
        raise ConfigError('metrics: expected a list of at least one metric, e.g. metrics=["Faithfulness"]')
    said = _judge_settings(judge_options)
    asked: Judge | None = None
    endpoint: Endpoint | None = None
    if judge is not None:
        asked, endpoint = wiring.judge_from(judge, concurrency, retries, wiring.judge_options(said), around)
    embeds = None if embedder is None else wiring.embedder_from(embedder, concurrency, retries, around)
    evaluators: dict[str, Evaluator] = {}
    for one in metrics:
        name, metric = _metric(one)
        if name in evaluators:
            raise ConfigError(f"metrics: {name} stands there twice")
        judged, embedding = bool(metric.uses & wiring.JUDGED), "embeddings" in metric.uses
        if judged:
            wiring.check_prompt(said, metric, named=False)
        if judged and asked is None:
            raise ConfigError(f'{name} asks a judge: pass judge=, a LangChain chat model or "offline"')
        if embedding and embeds is None:
            raise ConfigError(f'{name} needs embeddings: pass embedder=, LangChain embeddings or "offline"')
        evaluators[name] = Evaluator(
            name=name,
            metric=metric,
            judge=asked if judged else None,
            embedder=embeds if embedding else None,
            policies=policies,
            reps=reps,
            threshold=thresholds.get(name, thresholds.get(metric.name)),
            price=(said.price.input_per_1m, said.price.output_per_1m) if judged and said.price else None,
        )
    known = {*evaluators, *(one.metric.name for one in evaluators.values())}
    if stray := [name for name in thresholds if name not in known]:
        raise ConfigError(f"thresholds: no metric {stray[0]!r} here; there is {', '.join(evaluators)}")
    return list(evaluators.values()), endpoint


def _metric(one: str | Mapping[str, Any] | Metric) -> tuple[str, Metric]:
    """A metric and the name of its evaluator."""
    if isinstance(one, str):
        backend, name = split_name(one)
        return one, wiring.backend(backend).build(name, {})
    if isinstance(one, Mapping):
        if len(one) != 1:
            raise ConfigError(f"metrics: expected one metric per mapping, got {', '.join(map(str, one)) or 'none'}")
        ((label, kwargs),) = one.items()
        if kwargs is not None and not isinstance(kwargs, Mapping):
            raise ConfigError(f"metrics: {label}: expected a mapping of its kwargs, got {type(kwargs).__name__}")
        backend, name = split_name(str(label))
        metric = wiring.backend(backend).build(name, dict(kwargs or {}))
        spec = repr(metric)
        return (spec if backend == wiring.NATIVE else f"{backend}/{spec}").removesuffix("()"), metric
    if not callable(getattr(one, "score", None)):
        raise ConfigError(f"metrics: expected a name, {{name: kwargs}} or a metric, got {type(one).__name__}")
    return repr(one).removesuffix("()"), one


# -- the door for code that is not async

_loop: tuple[int, asyncio.AbstractEventLoop] | None = None
_starting = threading.Lock()


def _background_loop() -> asyncio.AbstractEventLoop:
    """The one loop of this process, in a daemon thread, started on first use (and again in a forked process)."""
    global _loop  # noqa: PLW0603  # one loop per process is the point: clients are bound to it
    with _starting:
        if _loop is None or _loop[0] != os.getpid():
            loop = asyncio.new_event_loop()
            ready = threading.Event()
            loop.call_soon(ready.set)
            threading.Thread(target=loop.run_forever, name="ragparity", daemon=True).start()
            ready.wait()
            _loop = os.getpid(), loop
        return _loop[1]


def on_background_loop(work: Coroutine[Any, Any, R]) -> R:
    """The result of a coroutine, run on the loop that all calls of this process share."""
    loop = _background_loop()
    if asyncio._get_running_loop() is loop:  # noqa: SLF001  # the public one raises where no loop runs
        work.close()
        raise RuntimeError("evaluate was called from within evaluate; use `await aevaluate(...)` there")
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def evaluate(
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
    cache: str | Path | Mapping[str, Any] | None = None,
    max_concurrency: int = 16,
) -> Results:
    """`aevaluate` for code that is not async: the same arguments, run on a background loop.

    >>> from ragparity import evaluate
    >>> evaluate([{"question": "q", "answer": "Paris", "ground_truth": "Paris"}], metrics=["ExactMatch"])
    Results(ExactMatch: 1.0000 (1/1 scored))
    """
    return on_background_loop(
        aevaluate(
            rows, metrics, judge=judge, embedder=embedder, fields=fields, policies=policies,
            judge_options=judge_options, thresholds=thresholds, retries=retries, reps=reps, cache=cache,
            max_concurrency=max_concurrency,
        )
    )  # fmt: skip
