"""One run of an eval file from rows to files, and the same for rows handed over in a program."""

from __future__ import annotations

import asyncio
import platform
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragparity import runner, wiring
from ragparity.core.errors import ConfigError
from ragparity.folder import MANIFEST, SUMMARY, RunFolder, read_json
from ragparity.gate import Check, Limits, judge_gate
from ragparity.results import Record, Summary

if TYPE_CHECKING:
    from pathlib import Path

    from ragparity.core.ports import Tally
    from ragparity.core.row import Row
    from ragparity.runner import Evaluator
    from ragparity.wiring import Plan, Rows

PACKAGES = ("ragparity", "langchain-core", "langchain-openai", "openai", "pydantic", "ragas", "nvidia-nat-core")
"""Packages whose versions can change a score."""


def summary_of(one: Evaluator) -> Summary:
    """An empty summary for an evaluator."""
    return Summary(
        evaluator=one.name,
        metric=one.spec,
        backend=one.metric.backend,
        judge=one.judge_identity,
        higher_is_better=one.metric.higher_is_better,
        price=one.price,
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
    """What a run came to. `cancelled` says that it was stopped before its end."""

    summaries: dict[str, Summary]
    checks: list[Check] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    slices: dict[str, dict[str, dict[str, Summary]]] = field(default_factory=dict)
    cancelled: bool = False

    def as_json(self) -> dict[str, Any]:
        """The content of `summary.json`."""
        content: dict[str, Any] = {
            "evaluators": {name: one.as_json() for name, one in self.summaries.items()},
            "gate": [one.as_json() for one in self.checks],
        }
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
        """No gate failed, and every evaluator has a scored row."""
        return all(one.passed for one in self.checks) and all(one.n_scored for one in self.summaries.values())


async def evaluate_file(
    plan: Plan,
    rows: Rows,
    folder: RunFolder,
    *,
    choice: Choice,
    limits: Mapping[str, Limits],
    slices: Sequence[str] = (),
    progress: Callable[[int, int], None],
    say: Callable[[str], None],
) -> Finished:
    """Run a plan into a folder. A cancelled run is summarised too, then the cancellation goes on."""
    session = wiring.open_session(plan, rows)
    total = _total(rows, choice)
    baseline = _baseline(plan)
    began = datetime.now(UTC)
    done = Finished({one.name: summary_of(one) for one in session.evaluators})
    for summary in done.summaries.values():
        summary.n_total = total
    manifest = _manifest(plan, session, rows, began, total)
    folder.manifest(manifest)
    kept = {(one.evaluator, one.row): one for one in folder.kept}
    by_name = {one.name: one for one in session.evaluators}
    meetings, count = total * len(by_name), 0
    column_values: dict[int, dict[str, str]] = {}

    def add(one: Record) -> None:
        nonlocal count
        count += 1
        done.summaries[one.evaluator].add(one)
        for column, value in column_values.get(one.row, {}).items():
            cell = done.slices.setdefault(column, {}).setdefault(value, {})
            summary = cell.setdefault(one.evaluator, summary_of(by_name[one.evaluator]))
            summary.n_total += 1
            summary.add(one)
        progress(count, meetings)

    def write(one: Record, tally: Tally) -> None:
        folder.write(one, tally)
        add(one)
        for line in session.findings()[len(done.findings) :]:
            done.findings.append(line)
            say(line)

    def reusable(name: str, row: Row) -> bool:
        old = kept.get((name, row.index))
        if old is None or old.key != runner.key_of(by_name[name], row):
            return False
        add(old)
        return True

    def noted() -> Iterator[Sequence[Row]]:
        for views in choice.of(rows, rows.source.count_rows()):
            folder.sample(views[0])
            if slices:
                column_values[views[0].index] = {name: _column(views[0], name) for name in slices}
            yield views

    try:
        await runner.run(
            noted(), session.evaluators, write, concurrency=plan.file.general.max_concurrency, done=reusable
        )
    except asyncio.CancelledError:
        done.cancelled = True
        raise
    finally:
        await session.aclose()
        done.checks = judge_gate({name: one.as_json() for name, one in done.summaries.items()}, limits, baseline)
        ended = None if done.cancelled or sys.exc_info()[0] else datetime.now(UTC).isoformat(timespec="seconds")
        stems = plan.file.stems
        folder.finish(
            [(name, stems[name]) for name in done.summaries],
            done.as_json(),
            {**manifest, "judges": session.judges_json(), "findings": done.findings, "finished": ended},
        )
        folder.result = done
    return done


def _total(rows: Rows, choice: Choice) -> int:
    known = rows.source.count_rows()
    return choice.count(known if known is not None else sum(1 for _ in rows.source))


def _column(row: Row, name: str) -> str:
    """The value of a column by which results are sliced."""
    if row.sample is None:
        return "(unreadable row)"
    value = row.sample.extra.get(name, getattr(row.sample, name, None))
    return "(none)" if value is None else str(value)


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
        "metrics": {
            one.name: {
                "metric": one.spec,
                "backend": one.metric.backend,
                "version": one.metric.version,
                "prompts": wiring.prompt_digest(one.metric),
                "judge": one.judge_identity,
                "fingerprint": one.fingerprint,
            }
            for one in session.evaluators
        },
        "judges": session.judges_json(),
        "config": plan.file.effective(),
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


def unfinished(path: Path) -> bool:
    """Whether a folder holds a run that did not come to its end."""
    manifest = read_json(path / MANIFEST)
    return manifest is not None and not manifest.get("finished")
