"""One run of an eval file from rows to files, and the same for rows handed over in a program."""

from __future__ import annotations

import asyncio
import platform
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragparity import estimates, runner, wiring
from ragparity.core.errors import ConfigError, did_you_mean
from ragparity.folder import SUMMARY, read_json
from ragparity.gate import Check, Limits, judge_gate
from ragparity.probe import LARGE, before_a_run, spent_on
from ragparity.results import Summary, Troubles
from ragparity.slices import Slices, value_in

if TYPE_CHECKING:
    from ragparity.core.row import Row
    from ragparity.folder import RunFolder
    from ragparity.results import Made, Record
    from ragparity.runner import Evaluator
    from ragparity.spending import Budget
    from ragparity.wiring import Plan, Rows

PACKAGES = (
    "ragparity", "langchain-core", "langchain-openai", "openai", "pydantic", "ragas", "openevals",
    "arize-phoenix-evals", "deepeval", "nvidia-nat-core",
)  # fmt: skip
"""Packages whose versions can change a score."""
MOST_COLUMNS = 8
"""Columns that are listed where a slice names none of them."""


def summary_of(one: Evaluator) -> Summary:
    """An empty summary for an evaluator."""
    return Summary(
        evaluator=one.name,
        metric=one.spec,
        backend=one.metric.backend,
        judge=one.judge_identity,
        higher_is_better=one.metric.higher_is_better,
        price=one.price,
        embedding_price=one.embedding_price,
    )


def versions() -> dict[str, str]:
    """The installed versions of what can change a score."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which rows of the data set are run: the first `limit`, or `sample` of them drawn with `seed`."""

    limit: int | None = None
    sample: int | None = None
    seed: int = 0

    def of(self, rows: Iterable[Sequence[Row]], total: int | None) -> Iterator[Sequence[Row]]:
        """The chosen rows, in data order. `total` is the number of rows, where it is known."""
        chosen = iter(rows)
        if self.sample is not None:
            total = sum(1 for _ in rows) if total is None else total
            drawn = set(random.Random(self.seed).sample(range(total), min(self.sample, total)))  # noqa: S311  # a draw of rows
            chosen = (views for views in chosen if views[0].index in drawn)
        return islice(chosen, self.limit)

    def count(self, total: int) -> int:
        """How many rows are chosen out of `total`."""
        left = total if self.sample is None else min(self.sample, total)
        return left if self.limit is None else min(self.limit, left)


@dataclass(slots=True)
class Finished:
    """What a run came to. `cancelled` says that it was stopped before its end, `stopped` by which budget.

    `probe` is what the questions before the first row cost, which no evaluator counts.
    """

    summaries: dict[str, Summary]
    checks: list[Check] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    slices: dict[str, dict[str, dict[str, Summary]]] = field(default_factory=dict)
    troubles: Troubles = field(default_factory=Troubles)
    cancelled: bool = False
    stopped: str = ""
    probe: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The content of `summary.json`."""
        content: dict[str, Any] = {
            "evaluators": {name: one.as_json() for name, one in self.summaries.items()},
            "gate": [one.as_json() for one in self.checks],
        }
        if self.stopped:
            content["stopped"] = self.stopped
        if self.probe:
            content["probe"] = self.probe
        if self.slices:
            content["slices"] = {
                column: {
                    value: {name: one.as_json() for name, one in by_name.items()} for value, by_name in by_value.items()
                }
                for column, by_value in self.slices.items()
            }
        return content

    @property
    def passed(self) -> bool:
        """No gate failed, every evaluator has a scored row, and no budget ended the run."""
        return (
            not self.stopped
            and all(one.passed for one in self.checks)
            and all(one.n_scored for one in self.summaries.values())
        )


class _Run:
    """The figures of a run while rows and records come, and which records of an earlier run stand."""

    def __init__(self, evaluators: Sequence[Evaluator], total: int, columns: Sequence[str]) -> None:
        self.by_name = {one.name: one for one in evaluators}
        self.slices = Slices(columns, {one.name: partial(summary_of, one) for one in evaluators})
        self.done = Finished({one.name: summary_of(one) for one in evaluators}, slices=self.slices.summaries)
        for summary in self.done.summaries.values():
            summary.n_total = total
        self.count, self.total = 0, total * len(evaluators)
        self._reused = {one.name: bytearray() for one in evaluators}
        self._last_met = -1

    def met(self, rows: Iterable[Sequence[Row]], keep: Callable[[Row], None]) -> Iterator[Sequence[Row]]:
        """The rows as they are asked for; each is kept and counted in its slices when it comes for the first time."""
        for views in rows:
            if (row := views[0]).index > self._last_met:
                self._last_met = row.index
                keep(row)
                if self.slices:
                    self.slices.meet(row)
            yield views

    def add(self, one: Record) -> None:
        """Count a record."""
        self.count += 1
        self.done.summaries[one.evaluator].add(one)
        self.done.troubles.add(one)
        if self.slices:
            self.slices.add(one)

    def renewed(self, one: Record) -> Record:
        """A record of an earlier run under the thresholds of this one."""
        return runner.rejudged(one, self.by_name[one.evaluator])

    async def reuse(self, kept: Iterable[Record | None]) -> None:
        """Count records of an earlier run; their rows need not meet their evaluators again."""
        turn = runner.Turn()
        for one in kept:
            if one is not None:
                reused = self._reused[one.evaluator]
                reused.extend(bytes(one.row + 1 - len(reused)))
                reused[one.row] = True
                self.add(one)
            await turn.offered()

    def is_reused(self, evaluator: str, row: int) -> bool:
        """Whether an earlier record stands for this meeting."""
        reused = self._reused[evaluator]
        return row < len(reused) and bool(reused[row])

    def wanted(self, rows: Iterable[Sequence[Row]]) -> Iterator[tuple[str, Row, str]]:
        """Evaluator, row and key of every record that may be reused."""
        for views in rows:
            for name, one in self.by_name.items():
                yield name, views[one.view], runner.key_of(one, views[one.view])


async def evaluate_file(
    plan: Plan,
    rows: Rows,
    folder: RunFolder,
    *,
    choice: Choice,
    limits: Mapping[str, Limits],
    slices: Sequence[str] = (),
    budget: Budget | None = None,
    probing: bool = False,
    progress: Callable[[int, int], None],
    say: Callable[[str], None],
) -> Finished:
    """Run a plan into a folder. A cancelled run is summarised too, then the cancellation goes on.

    `budget` stands in place of the file's. A run that it ends is summarised, and can be resumed. With `probing`, a run
    of many judge calls begins with one small call to each of its models.

    Nothing in the folder is touched before the clients are made and the baseline is read. Raises `ConfigError`,
    `OSError` where a file cannot be written (what was written before stays), and `ProbeFailed` where a model cannot be
    used.
    """
    baseline = _baseline(plan)
    counted = _counted(rows)
    total = choice.count(counted)
    session = wiring.open_session(plan, rows, budget=budget)
    began = datetime.now(UTC)
    run = _Run(session.evaluators, total, slices)
    done = run.done
    manifest = _manifest(plan, session, rows, began, total)

    def chosen() -> Iterator[Sequence[Row]]:
        return run.met(choice.of(rows, counted), folder.sample)

    def write(made: Sequence[Made]) -> None:
        folder.write(made)
        for one, _ in made:
            run.add(one)
        progress(run.count, run.total)
        tell()

    def tell() -> None:
        for line in session.findings():
            if line not in done.findings:
                done.findings.append(line)
                say(line)

    def finish(ended: datetime | None) -> None:
        done.checks = judge_gate({name: one.as_json() for name, one in done.summaries.items()}, limits, baseline)
        folder.result = done
        stems = plan.file.stems
        folder.finish(
            [(name, stems[name]) for name in done.summaries],
            done.as_json(),
            {
                **manifest,
                "judges": session.judges_json(),
                "findings": done.findings,
                **({"stopped": done.stopped} if done.stopped else {}),
                "finished": ended and ended.isoformat(timespec="seconds"),
            },
        )

    async def score_all() -> None:
        try:
            left = chosen() if run.count < run.total else ()
            await runner.run(
                left, session.evaluators, write, concurrency=plan.file.general.max_concurrency, done=run.is_reused
            )
        except BaseException as error:
            done.cancelled = isinstance(error, asyncio.CancelledError)
            folder.result = done
            with suppress(OSError):  # a full disk is the error that goes on from here, or would be told twice
                finish(None)
            raise

    for line in _unknown_slices(rows, slices):
        say(line)
    try:
        manifest |= await _probe(plan, session, rows, total, say, done=done) if probing else {}
        await run.reuse(folder.begin(manifest, run.wanted(chosen()), run.renewed))
        progress(run.count, run.total)
        await score_all()
    finally:
        await session.aclose()
    tell()
    done.stopped = session.around.spending.stopped
    finish(None if done.stopped else datetime.now(UTC))
    return done


async def _probe(
    plan: Plan, session: wiring.Session, rows: Rows, total: int, say: Callable[[str], None], *, done: Finished
) -> dict[str, Any]:
    """What the models of a large run show when they are asked one small thing, for the manifest; its cost is noted."""
    if not _is_worth_a_probe(plan, rows, total):
        return {}
    probed, remarks = await before_a_run(plan, session)
    done.probe = spent_on(probed)
    for line in remarks:
        say(f"warning: {line}")
    return {"probe": [one.as_json() for one in probed]}


def _is_worth_a_probe(plan: Plan, rows: Rows, total: int) -> bool:
    """Whether a run will put many questions to its judges (a replay puts none)."""
    if plan.file.general.ragparity.cache.mode == "replay":
        return False
    return sum(one.calls for one in estimates.expected(plan, rows.samples(), total, {}).values()) > LARGE


def _counted(rows: Rows) -> int:
    known = rows.source.count_rows()
    return known if known is not None else sum(1 for _ in rows.source)


def _unknown_slices(rows: Rows, slices: Sequence[str]) -> Iterator[str]:
    """A line for each column to slice by that none of the first rows has, said before anything is scored."""
    if not slices:
        return
    samples = [row.sample for row in rows.first() if row.sample is not None]
    known = {name: None for one in samples for name in (*one.extra, *one.canonical())}
    for column in slices:
        if samples and all(value_in(one, column) is None for one in samples):
            few = "" if len(samples) < wiring.LOOKED_AT else f"of the first {len(samples)} "
            others = f" There is {', '.join(list(known)[:MOST_COLUMNS])}." if known else ""
            yield f"--slice {column}: no row {few}has such a column.{did_you_mean(column, known) or others}"


def _baseline(plan: Plan) -> Mapping[str, Any] | None:
    path = plan.file.general.ragparity.baseline
    if path is None:
        return None
    summary = read_json(path / SUMMARY)
    if summary is None or "evaluators" not in summary:
        raise ConfigError(f"eval.general.ragparity.baseline: {path} is no finished run (no {SUMMARY} in it)")
    found: Mapping[str, Any] = summary["evaluators"]
    return found


def _manifest(plan: Plan, session: wiring.Session, rows: Rows, began: datetime, total: int) -> dict[str, Any]:
    return {
        "started": began.isoformat(timespec="seconds"),
        "finished": None,
        "versions": versions(),
        "dataset": {"source": rows.source.source, "rows": total, "sha256": wiring.file_digest(rows)},
        "metrics": metrics_json(session.evaluators),
        "judges": session.judges_json(),
        "config": plan.file.effective(),
    }


def metrics_json(evaluators: Sequence[Evaluator]) -> dict[str, Any]:
    """What scored under each evaluator's name, for the manifest."""
    return {
        one.name: {
            "metric": one.spec,
            "backend": one.metric.backend,
            "version": one.metric.version,
            "prompts": wiring.prompt_digest(one.metric),
            "judge": one.judge_identity,
            "fingerprint": one.fingerprint,
        }
        for one in evaluators
    }


def limits_of(plan: Plan, fail_under: Mapping[str, float]) -> dict[str, Limits]:
    """The gate of the file, with `--fail-under` in place of its `min_mean`."""
    found: dict[str, Limits] = {}
    names = {one.entry.name for one in plan.evaluators}
    for name, gate in plan.file.general.ragparity.gate.items():
        if name in names:
            found[name] = Limits(
                min_mean=gate.min_mean,
                max_failed=gate.max_failed,
                min_coverage=gate.min_coverage,
                max_drop=gate.max_drop,
            )
    for name, value in fail_under.items():
        old = found.get(name, Limits())
        found[name] = Limits(
            min_mean=value, max_failed=old.max_failed, min_coverage=old.min_coverage, max_drop=old.max_drop
        )
    return found
