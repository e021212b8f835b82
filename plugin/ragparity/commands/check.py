"""The command `ragparity check`: all that can be known about an eval file before the first call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ragparity.commands import shared
from ragparity.commands.plans import foreign, plan_and_rows
from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from ragparity.config import EvalFile
    from ragparity.wiring import Plan, Rows


@click.command("check")
@click.argument("file", type=shared.FILE)
@shared.DATASET
@shared.OVERRIDE
@shared.BACKEND
def check_command(
    *, file: Path, dataset_path: Path | None, overrides: tuple[tuple[str, str], ...], backend: str | None
) -> None:
    """Say everything about an eval FILE that can be known before the first call."""
    from ragparity import estimates
    from ragparity.config import what_nat_eval_ignores, what_nvidia_ragas_ignores

    eval_file = shared.load(file, overrides)
    plan, rows = plan_and_rows(eval_file, dataset_path, backend)
    if rows is not None:
        _print_rows(plan, rows)
    for line in _compared(eval_file, rows):
        click.echo(line)
    for line in (*foreign(eval_file), *plan.notes):
        click.echo(line)
    for line in (*what_nat_eval_ignores(eval_file), *what_nvidia_ragas_ignores(eval_file)):
        click.echo(f"under `nat eval`: {line}")
    if rows is not None:
        for line in estimates.ceilings(plan, rows.samples()):
            click.echo(f"warning: {line}")
    if plan.problems:
        shared.complain(*plan.problems)
        raise SystemExit(shared.EXIT_CONFIG)
    click.echo("ready to run")


def _compared(file: EvalFile, rows: Rows | None) -> list[str]:
    """What `crossvalidate` will compare, and what it must leave out. None of that keeps the file from being ready."""
    from ragparity import crossvalidation, estimates

    if not crossvalidation.has_entries(file):
        return []
    try:
        found = crossvalidation.lay_out(file, prepare=False)
    except ConfigError as error:
        return [f"warning: under `crossvalidate`: {line}" for line in str(error).splitlines()]
    calls: dict[str, int] = {}
    if rows is not None:
        seen = {one.entry.name: rows.samples()[one.entry.name.rpartition("@")[0]] for one in found.plan.evaluators}
        expected = estimates.expected(found.plan, seen, _total(rows), {})
        calls = {name: one.calls for name, one in expected.items()}
    lines = []
    for one in found.groups:
        asked = sum(calls.get(one.evaluators[backend], 0) for backend in one.backends)
        told = f", about {asked:,} judge calls" if asked else ""
        lines.append(f"under `crossvalidate`: {one.entry.name} on {', '.join(one.backends)}{told}")
    return [*lines, *(f"warning: under `crossvalidate`: {line}" for line in (*found.warnings, *found.problems))]


def _total(rows: Rows) -> int:
    counted = rows.source.count_rows()
    return counted if counted is not None else sum(1 for _ in rows.source)


def _print_rows(plan: Plan, rows: Rows) -> None:
    """The field map of the first row, and what to expect of each evaluator."""
    from ragparity import estimates, wiring
    from ragparity.core.policy import admit

    looked_at, samples = list(rows.head(wiring.LOOKED_AT)), rows.samples()
    total = _total(rows)
    click.echo(f"data: {rows.source.source}, {total} rows")
    for line in _field_map(rows):
        click.echo(f"  {line}")
    broken = [row for views in looked_at for row in views if row.error is not None]
    for line in dict.fromkeys(f"row {row.id}: {row.error}" for row in broken):
        click.echo(f"warning: {line}")
    dry = wiring.dry_evaluators(plan, rows)
    sizes = asyncio.run(estimates.tokens_per_question(dry, rows.head(estimates.TRIED)))
    expected = estimates.expected(plan, samples, total, sizes)
    for one in plan.evaluators:
        outcomes = [admit(sample, one.metric, one.entry.policies) for sample in samples[one.entry.name]]
        unready = [out.why for out in outcomes if not isinstance(out, tuple) and hasattr(out, "why")]
        asked = expected[one.entry.name].sentence() if one.judged else "no judge calls"
        source = "" if one.metric.backend == "native" else f"{one.metric.backend}/"
        click.echo(f"{one.entry.name}: {source}{one.metric!r}, {asked}")
        if unready and len(unready) == len(outcomes):
            seen = ", ".join(column for column, _ in rows.field_map(one.entry.name))
            needs = ", ".join(one.metric.reads)
            click.echo(
                f"warning: {one.entry.name}: no row can be scored ({unready[0]}): it needs {needs}; columns: {seen}"
            )
        elif unready:
            click.echo(f"  no score to expect for {len(unready)} of the first {len(outcomes)} rows ({unready[0]})")
    for line in asyncio.run(estimates.over_long(plan, dry, looked_at)):
        click.echo(f"warning: {line}")
    for line in estimates.remarks(expected, plan.file.general.ragparity.budget.as_limits()):
        click.echo(line)
    if all(row.sample is None for views in looked_at for row in views):
        click.echo(f"warning: none of the first {len(looked_at)} rows can be read as a sample")


def _field_map(rows: Rows) -> list[str]:
    """Column and field as the first evaluator has them, then what others with fields of their own have instead."""
    common = rows.field_map()
    others: dict[tuple[str, str], list[str]] = {}
    for name in rows.view_of:
        for pair in rows.field_map(name):
            if pair not in common:
                others.setdefault(pair, []).append(name)
    lines = [f"{column} -> {field}" for column, field in common]
    return [*lines, *(f"{column} -> {field} ({', '.join(names)})" for (column, field), names in others.items())]
