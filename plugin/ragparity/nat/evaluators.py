"""An entry of `eval.evaluators` as an evaluator of the toolkit: what is asked, of whom, and what comes out.

Whatever is wrong with one entry (a metric that does not exist, a package that is missing) is the error of its items;
the other evaluators of the file run.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from nat.builder.evaluator import EvaluatorInfo

from ragparity import runner, wiring
from ragparity.comparison import Side as Compared
from ragparity.comparison import Terms, compare
from ragparity.core.errors import ConfigError, EvaluationError, UnknownMetric
from ragparity.core.values import plain
from ragparity.crossvalidation import questions_of
from ragparity.evaluation import summary_of
from ragparity.nat import entries, outputs, rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from nat.plugins.eval.data_models.evaluator_io import EvalOutputItem

    from ragparity.config import EvalFile, EvaluatorEntry
    from ragparity.core.row import Row
    from ragparity.nat.rows import Layout
    from ragparity.results import Made, Record
    from ragparity.runner import Evaluator

logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_evaluator(config: Any, builder: Any) -> AsyncIterator[EvaluatorInfo | None]:
    """The evaluator of an entry, and its clients until the evaluation has ended. Nothing for `skip: true`."""
    entry = entries.read_entry(config)
    if entry.skip:
        logger.info("%s: skipped (skip: true)", _label(entry))
        yield None  # the toolkit passes over an evaluator that is nothing: no file, no average
        return
    with _uncollected():
        sides = await _sides(config, builder)
    scoring = Scoring(entry, sides, rows.layout_of(builder), builder.get_max_concurrency())
    for side in scoring.sides:
        if side.problem:
            logger.error("%s: %s", scoring.label_of(side), side.problem)
    info = EvaluatorInfo(config=config, evaluate_fn=scoring.evaluate, description=scoring.label)
    if entry.enable_atif_evaluator:
        info.evaluate_atif_fn = scoring.evaluate_atif
    try:
        yield info
    finally:
        await entries.close_session(builder)


@dataclass(frozen=True, slots=True)
class Side:
    """One backend: the evaluator, or why there is none."""

    backend: str
    evaluator: Evaluator | None = None
    problem: str = ""
    has_metric: bool = True


def _label(entry: EvaluatorEntry) -> str:
    return (
        entry.metric_name
        if entry.backends or entry.type == entries.CROSSVALIDATE
        else f"{entry.backend}/{entry.metric_name}"
    )


async def _sides(config: Any, builder: Any) -> list[Side]:
    """The backends of an entry, in its order; where it leaves them open, all that have the metric."""
    entry = entries.read_entry(config)
    crossvalidates = entry.type == entries.CROSSVALIDATE
    names = (entry.backends or wiring.backend_names()) if crossvalidates else (entry.backend,)
    try:
        llms = await entries.llm_entries(builder, entry.llm_name)
        embedders = await entries.embedder_entries(builder, entry.embedder_name, entry.judge.retries)
    except ConfigError as error:
        return [Side(name, problem=str(error)) for name in names]
    entry = entries.read_entry(config, llms)
    sides = []
    for name in names:
        chosen = replace(entry, type="ragparity", backend=name, backend_in_name=name) if crossvalidates else entry
        sides.append(_side(entries.file_of(chosen, builder, llms, embedders), name, entries.session_of(builder)))
    if crossvalidates and not entry.backends:
        return [side for side in sides if side.evaluator] or [side for side in sides if side.has_metric] or sides[:1]
    return sides


def _side(file: EvalFile, backend: str, session: wiring.Session) -> Side:
    (entry,) = file.evaluators.values()
    try:
        metric_exists = _has_metric(backend, entry)
        plan = wiring.make_plan(file, session=session)
        if plan.problems:
            problem = plan.problems[0].removeprefix(f"eval.evaluators.{entry.name}: ")
            return Side(backend, problem=problem, has_metric=metric_exists)
        return Side(backend, wiring.bind(plan, plan.evaluators[0], session))
    except EvaluationError as error:
        return Side(backend, problem=str(error))


def _has_metric(backend: str, entry: EvaluatorEntry) -> bool:
    try:
        wiring.backend(backend).build(entry.metric_name, dict(entry.kwargs))
    except UnknownMetric:
        return False
    except EvaluationError:
        return True
    return True


@dataclass(frozen=True, slots=True)
class Column:
    """What came of all rows and one backend; empty where the backend could not be used."""

    side: Side
    records: Sequence[Record] = ()
    items: Sequence[EvalOutputItem] = ()

    @property
    def scores(self) -> list[float]:
        """The scores of the rows that have one."""
        return [one.score for one in self.records if one.score is not None]

    def counts(self) -> dict[str, Any]:
        """The figures over the rows, without the mean."""
        if self.side.evaluator is None:
            return {}
        summary = summary_of(self.side.evaluator)
        summary.n_total = len(self.records)
        for one in self.records:
            summary.add(one)
        return outputs.counts_of(summary)

    def told(self) -> dict[str, Any] | str:
        """Mean and figures, or why there are none."""
        if self.side.evaluator is None:
            return f"config: {self.side.problem}"
        return {"mean": mean(self.scores), **self.counts()}


def mean(scores: Sequence[float]) -> float | None:
    """The mean, or nothing without a score."""
    return math.fsum(scores) / len(scores) if scores else None


@dataclass(frozen=True, slots=True)
class Scoring:
    """What one entry does with the toolkit's items. `sides` has one backend, or those that are compared."""

    entry: EvaluatorEntry
    sides: Sequence[Side]
    layout: Layout
    concurrency: int

    @property
    def label(self) -> str:
        """The entry for people: backend and metric."""
        return _label(self.entry)

    def label_of(self, side: Side) -> str:
        """One backend of the entry for people."""
        return f"{side.backend}/{self.entry.metric_name}"

    @property
    def compares(self) -> bool:
        """Whether backends are compared."""
        return self.entry.type == entries.CROSSVALIDATE

    async def evaluate(self, eval_input: Any) -> outputs.Output:
        """The ordinary lane: every column of the data set, and the recorded steps."""
        items = eval_input.eval_input_items
        raw = rows.from_items(items, self.layout)
        hints = [rows.why_no_passages(one, self.layout) for one in items]
        fields = dict(self.entry.fields)
        if self.layout.whole:
            fields.setdefault("response", rows.RESPONSE_OF_A_WHOLE_ROW)
        return await self._score([one.id for one in items], raw, hints, fields, self.layout)

    async def evaluate_atif(self, samples: Any) -> outputs.Output:
        """The lane of trajectories: no columns, so no mapping of columns either."""
        raw = rows.from_trajectories(samples, self.layout)
        return await self._score([one.item_id for one in samples], raw, [""] * len(raw), {}, None)

    async def _score(
        self,
        ids: Sequence[Any],
        raw: Sequence[Mapping[str, Any]],
        hints: Sequence[str],
        fields: Mapping[str, str],
        layout: Layout | None,
    ) -> outputs.Output:
        try:
            reader = wiring.row_reader(
                structure=layout.structure if layout else {},
                id_key=layout.id_key if layout else "id",
                fields=fields,
                input_obj_field=self.entry.input_obj_field,
            )
        except ConfigError as error:
            return self._unbuilt(ids, f"config: {error}")
        if not any(side.evaluator for side in self.sides):
            return self._unbuilt(ids, self._problems())
        read = list(reader.read_rows(raw))
        records = await self._run(read)
        columns = [
            Column(
                side,
                records[side.backend],
                [
                    outputs.item(
                        ids[n], one, side.evaluator, read[n],
                        error=outputs.why(one, atif=layout is None, no_passages=hints[n]),
                    )
                    for n, one in enumerate(records[side.backend])
                ],
            )
            if side.evaluator is not None
            else Column(side)
            for side in self.sides
        ]  # fmt: skip
        if not self.compares:
            return self._single(columns[0])
        return self._compared(ids, columns, await asyncio.to_thread(self._agreement, columns, read))

    def _problems(self) -> str:
        if not self.compares:
            return f"config: {self.sides[0].problem}"
        return "config: " + "; ".join(f"{side.backend}: {side.problem}" for side in self.sides)

    def _unbuilt(self, ids: Sequence[Any], problem: str) -> outputs.Output:
        logger.warning("%s: none of %d items has a score: %s", self.label, len(ids), problem)
        counts = {
            "n_total": len(ids),
            "n_scored": 0,
            "n_undefined": 0,
            "n_failed": len(ids),
            "coverage": 0.0 if ids else None,
            "errors": {"config": len(ids)},
        }
        return outputs.output(outputs.unbuilt(ids, problem, self.label), self.entry.all_failed_average, counts)

    async def _run(self, read: Sequence[Row]) -> dict[str, list[Record]]:
        """The records of every backend, in the order of the rows."""
        evaluators = [replace(side.evaluator, name=side.backend) for side in self.sides if side.evaluator is not None]
        found: dict[str, dict[int, Record]] = {one.name: {} for one in evaluators}
        with _progress(len(read) * len(evaluators), self.label) as advance:

            def write(made: Sequence[Made]) -> None:
                for one, _ in made:
                    found[one.evaluator][one.row] = one
                    advance()

            await runner.run(((row,) for row in read), evaluators, write, concurrency=self.concurrency)
        return {name: [records[row.index] for row in read] for name, records in found.items()}

    def _single(self, column: Column) -> outputs.Output:
        scores = column.scores
        self._warn(len(column.items), len(scores), [one.error for one in column.items])
        return outputs.output(column.items, self._average(scores), column.counts())

    def _agreement(self, columns: Sequence[Column], read: Sequence[Row]) -> dict[str, Any]:
        """How far the backends agree, as in `agreement.json`; the rows stand in the items."""
        sides = [
            Compared(
                backend=one.side.backend, evaluator=one.side.backend, metric=one.side.evaluator.metric,
                records={record.id: record for record in one.records}, threshold=self.entry.threshold,
            )
            for one in columns
            if one.side.evaluator is not None
        ]  # fmt: skip
        left_out = {one.side.backend: one.side.problem for one in columns if one.side.evaluator is None}
        found = compare(self.label, sides, Terms(clusters=questions_of(read)), left_out=left_out).as_json()
        pairs = [{name: value for name, value in one.items() if name != "rows"} for one in found["pairs"]]
        return plain({**found, "pairs": pairs})  # type: ignore[no-any-return]  # a mapping stays one

    def _compared(self, ids: Sequence[Any], columns: Sequence[Column], agreement: Mapping[str, Any]) -> outputs.Output:
        items = [
            outputs.side_by_side(
                one,
                {
                    column.side.backend: column.items[n] if column.items else f"config: {column.side.problem}"
                    for column in columns
                },
            )
            for n, one in enumerate(ids)
        ]
        scores = [one.score for one in items if one.score is not None]
        complete = sum(not one.reasoning["unscored"] for one in items)
        counts = {
            "n_total": len(items),
            "n_scored": len(scores),
            "n_scored_by_all": complete,
            "coverage": len(scores) / len(items) if items else None,
            "by_backend": {column.side.backend: column.told() for column in columns},
            "agreement": agreement,
        }
        self._warn(len(items), complete, [text for one in items for text in one.reasoning["unscored"].values()])
        return outputs.output(items, self._average(scores), counts)

    def _average(self, scores: Sequence[float]) -> float | None:
        average = mean(scores)
        return self.entry.all_failed_average if average is None else average

    def _warn(self, total: int, scored: int, errors: Sequence[str | None]) -> None:
        if scored < total:
            first = next((text for text in errors if text), "")
            logger.warning("%s: %d of %d items have no score; first: %s", self.label, total - scored, total, first)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection while clients are imported, and none of what was imported afterwards.

    Importing makes hundreds of thousands of objects that stay. The collector would look through them, beside those of
    the toolkit, again and again and once more at the end: a fifth of the time of a small evaluation.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _set_aside()
        gc.enable()


@cache
def _set_aside() -> None:
    """Once in a process, so that what a long-lived one makes later is collected as ever."""
    gc.freeze()


@contextmanager
def _progress(total: int, label: str) -> Iterator[Callable[[], None]]:
    """The toolkit's way of a progress bar, one for each evaluator; none where its bar package is missing."""
    try:
        from nat.plugins.eval.utils.tqdm_position_registry import TqdmPositionRegistry
        from tqdm import tqdm
    except ImportError:
        yield lambda: None
        return
    position = TqdmPositionRegistry.claim()
    try:
        with tqdm(total=total, desc=label, position=position) as bar:
            yield lambda: bar.update(1) and None
    finally:
        TqdmPositionRegistry.release(position)
