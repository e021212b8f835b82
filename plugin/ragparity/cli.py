"""The command line: `ragparity eval | check | crossvalidate | calibrate | list | explain`.

Exit codes: 0 all is well; 1 a gate failed or an evaluator has no scored row; 2 the eval file, the data or an
argument is wrong; 130 cancelled. Everything heavy is imported by the command that needs it.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import math
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragparity.cache_commands import cache
from ragparity.core.errors import ConfigError, EvaluationError
from ragparity.crossvalidate_commands import calibrate_command, crossvalidate_command
from ragparity.probe_command import probe_command

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ragparity.config import EvalFile
    from ragparity.evaluation import Finished
    from ragparity.spending import Budget
    from ragparity.wiring import Plan, Rows

EXIT_FAILED, EXIT_CONFIG, EXIT_CANCELLED = 1, 2, 130

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


class _Commands(click.Group):
    """Commands that end with 130 on Ctrl-C at any moment: while something is imported, or at the second one."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            _complain("cancelled")
            raise SystemExit(EXIT_CANCELLED) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="ragparity")
def main() -> None:
    """Score RAG and agent answers from an eval file, and see how far the scores can be trusted."""
    for stream in (sys.stdout, sys.stderr):
        # A console that cannot show a character shows another one; it never ends a run.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def start() -> None:
    """The command as a process of its own.

    The clients bring hundreds of thousands of objects that stay. The collector would look through them again and again
    while they are imported and once more at the end: a fifth of the CPU time of a small run.
    """
    gc.set_threshold(50_000, 10, 10)
    atexit.register(gc.freeze)
    main()


def _complain(*lines: str) -> None:
    for line in lines:
        click.echo(f"ragparity: {line}", err=True)


def _stop(*lines: str) -> None:
    _complain(*lines)
    raise SystemExit(EXIT_CONFIG)


def _load(file: Path, overrides: tuple[tuple[str, str], ...]) -> EvalFile:
    from ragparity.config import load_eval_file

    try:
        return load_eval_file(file, overrides)
    except ConfigError as error:
        _stop(*str(error).splitlines())
        raise


_OVERRIDE = click.option(
    "--override", "overrides", type=(str, str), multiple=True, metavar="KEY VALUE",
    help="Set a value of the eval file, e.g. eval.general.max_concurrency 4. May be repeated.",
)  # fmt: skip
_DATASET = click.option("--dataset", "dataset_path", type=_FILE, help="Rows from this file instead.")
_BACKEND = click.option("--backend", help="Backend of every evaluator, in place of the file's.")


def _numbers(_context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    example = "calls=100" if option.name == "budget" else "faithfulness=0.8"
    found = {}
    for value in values:
        name, _, text = value.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number):
            raise click.BadParameter(f"{value!r}: expected NAME=NUMBER, e.g. {example}")
        found[name] = number
    return found


@main.command("eval")
@click.argument("file", type=_FILE)
@_DATASET
@click.option("--output", type=_FOLDER, help="Folder of the run, in place of the file's output_dir.")
@_OVERRIDE
@_BACKEND
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N rows.")
@click.option("--sample", type=click.IntRange(min=1), help="Only N rows, drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")
@click.option("--resume", is_flag=True, help="Continue a run: what was scored under the same settings is kept.")
@click.option("--overwrite", is_flag=True, help="Replace an unfinished run.")
@click.option("--keep-going", is_flag=True, help="Run the evaluators that can run; still ends with 2.")
@click.option("--no-probe", is_flag=True, help="Do not ask every model one small thing before a large run.")
@click.option("--fail-under", multiple=True, callback=_numbers, metavar="NAME=V", help="Fail if a mean is below V.")
@click.option(
    "--budget", multiple=True, callback=_numbers, metavar="NAME=V", help="Stop at V calls, tokens or cost (NAME)."
)
@click.option("--slice", "slices", multiple=True, metavar="FIELD", help="Also summarise by the values of a column.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table.")
@click.option("--quiet", is_flag=True, help="No progress.")
def eval_command(
    *, file: Path, dataset_path: Path | None, output: Path | None, overrides: tuple[tuple[str, str], ...],
    backend: str | None, limit: int | None, sample: int | None, seed: int, resume: bool, overwrite: bool,
    keep_going: bool, no_probe: bool, fail_under: dict[str, float], budget: dict[str, float], slices: tuple[str, ...],
    as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Score the rows of an eval FILE, write the run's files, print the table."""
    from ragparity import estimates, evaluation
    from ragparity.folder import RunFolder
    from ragparity.probe import ProbeFailed
    from ragparity.report.progress import progress_for

    eval_file = _load(file, overrides)
    plan, rows = _plan_and_rows(eval_file, dataset_path, backend, prepare=True, keep_going=keep_going)
    if plan.problems:
        _complain(*plan.problems)
        if not keep_going or not plan.evaluators:
            raise SystemExit(EXIT_CONFIG)
    if rows is None:
        raise SystemExit(EXIT_CONFIG)
    if unknown := [name for name in fail_under if name not in {one.entry.name for one in plan.evaluators}]:
        names = ", ".join(one.entry.name for one in plan.evaluators)
        _stop(f"--fail-under {unknown[0]}: no evaluator of this name; there is {names}")
    for line in (*plan.notes, *_foreign(eval_file), *estimates.ceilings(plan, rows.samples())):
        click.echo(line, err=True)
    spend_at_most = _spend_at_most(budget, eval_file)
    progress = progress_for(sys.stderr, wanted=not quiet)
    mode = "resume" if resume else "overwrite" if overwrite else "new"
    save = eval_file.general.ragparity.save
    path = output or eval_file.general.output_dir
    folder = RunFolder(path, mode=mode, save_samples=save.samples, save_calls=save.calls)
    try:
        with folder:
            work = evaluation.evaluate_file(
                plan, rows, folder,
                choice=evaluation.Choice(limit=limit, sample=sample, seed=seed),
                limits=evaluation.limits_of(plan, fail_under), slices=slices, budget=spend_at_most,
                probing=not no_probe, progress=progress, say=progress.say,
            )  # fmt: skip
            finished = asyncio.run(_until_terminated(work))
    except (KeyboardInterrupt, asyncio.CancelledError):
        progress.close()
        _show(folder.result, path, as_json=as_json)
        _complain(f"cancelled; what was scored is kept in {path}; continue with --resume")
        raise SystemExit(EXIT_CANCELLED) from None
    except ConfigError as error:
        progress.close()
        _stop(*str(error).splitlines())
        raise
    except ProbeFailed as error:
        progress.close()
        _complain(*str(error).splitlines(), "nothing was scored; mend this, or go on with --no-probe")
        raise SystemExit(EXIT_FAILED) from None
    except OSError as error:
        progress.close()
        _show(folder.result, path, as_json=as_json)
        _stop(f"{path}: {error.strerror or error}; what was scored before is kept, continue with --resume")
        raise
    progress.close()
    _show(finished, path, as_json=as_json)
    _end(finished, plan, path)


def _spend_at_most(limits: dict[str, float], file: EvalFile) -> Budget:
    """The budget of the command line over that of the file."""
    from ragparity.spending import budget_of

    try:
        return budget_of(limits, file.general.ragparity.budget.as_limits())
    except ConfigError as error:
        _stop(str(error))
        raise


def _end(finished: Finished, plan: Plan, path: Path) -> None:
    """End with the exit code of a run that came to its end or to that of its budget."""
    if finished.stopped:
        _complain(f"stopped: {finished.stopped}; what was scored is kept in {path}; continue with --resume")
    if plan.problems:
        raise SystemExit(EXIT_CONFIG)
    if not finished.passed:
        raise SystemExit(EXIT_FAILED)


async def _until_terminated(work: Coroutine[Any, Any, Finished]) -> Finished:
    """The result of the work; a request to terminate cancels it as Ctrl-C does."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _plan_and_rows(
    file: EvalFile, dataset_path: Path | None, backend: str | None, *, prepare: bool = False, keep_going: bool = False
) -> tuple[Plan, Rows | None]:
    """The plan and its rows, with every problem of both in the plan; before a run, what is wrapped is imported."""
    from dataclasses import replace

    from ragparity import wiring

    plan = wiring.make_plan(file, default_backend=backend)
    if prepare and (keep_going or not plan.problems):
        plan = wiring.prepared(plan)
    try:
        return plan, wiring.open_rows(plan, file_path=dataset_path)
    except EvaluationError as error:
        return replace(plan, problems=(*plan.problems, *str(error).splitlines())), None


def _foreign(file: EvalFile) -> list[str]:
    skipped = [f"not ours, skipped: {'; '.join(file.skipped)}"] if file.skipped else []
    alone = [name for name, one in file.evaluators.items() if one.type == "ragparity_crossvalidate" and not one.skip]
    compares = f"`eval` scores {', '.join(alone)} with one backend; `ragparity crossvalidate` compares them"
    return [*skipped, *file.warnings, *([compares] if alone else [])]


def _show(finished: Finished | None, path: Path, *, as_json: bool) -> None:
    if finished is None:
        return
    if as_json:
        click.echo(json.dumps(finished.as_json(), ensure_ascii=False, allow_nan=False, indent=2))
        return
    from ragparity.report.terminal import print_finished

    print_finished(finished, sys.stdout, folder=str(path))


@main.command("check")
@click.argument("file", type=_FILE)
@_DATASET
@_OVERRIDE
@_BACKEND
def check_command(
    *, file: Path, dataset_path: Path | None, overrides: tuple[tuple[str, str], ...], backend: str | None
) -> None:
    """Say everything about an eval FILE that can be known before the first call."""
    from ragparity import estimates
    from ragparity.config import what_nat_eval_ignores, what_nvidia_ragas_ignores

    eval_file = _load(file, overrides)
    plan, rows = _plan_and_rows(eval_file, dataset_path, backend)
    compared = _compared(eval_file)
    if rows is not None:
        _print_rows(plan, rows)
    for line in compared:
        click.echo(line)
    for line in (*_foreign(eval_file), *plan.notes):
        click.echo(line)
    for line in (*what_nat_eval_ignores(eval_file), *what_nvidia_ragas_ignores(eval_file)):
        click.echo(f"under `nat eval`: {line}")
    if rows is not None:
        for line in estimates.ceilings(plan, rows.samples()):
            click.echo(f"warning: {line}")
    if plan.problems:
        _complain(*plan.problems)
        raise SystemExit(EXIT_CONFIG)
    click.echo("ready to run")


def _compared(file: EvalFile) -> list[str]:
    """What `crossvalidate` will compare, and what it must leave out. None of that keeps the file from being ready."""
    from ragparity import crossvalidation

    if not crossvalidation.has_entries(file):
        return []
    try:
        found = crossvalidation.lay_out(file, prepare=False)
    except ConfigError as error:
        return [f"warning: under `crossvalidate`: {line}" for line in str(error).splitlines()]
    lines = [f"under `crossvalidate`: {one.entry.name} on {', '.join(one.backends)}" for one in found.groups]
    return [*lines, *(f"warning: under `crossvalidate`: {line}" for line in (*found.warnings, *found.problems))]


def _print_rows(plan: Plan, rows: Rows) -> None:
    """The field map of the first row, and what to expect of each evaluator."""
    from ragparity import estimates, wiring
    from ragparity.core.policy import admit

    looked_at, samples = list(rows.head(wiring.LOOKED_AT)), rows.samples()
    counted = rows.source.count_rows()
    total = counted if counted is not None else sum(1 for _ in rows.source)
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


main.add_command(cache)
main.add_command(probe_command)
main.add_command(crossvalidate_command)
main.add_command(calibrate_command)


@main.command("list")
@click.option("--backend", help="Only this backend.")
def list_command(backend: str | None) -> None:
    """List the metrics, what they read and what they cost."""
    from ragparity import catalogue

    try:
        catalogue.print_list(sys.stdout, backend)
    except ConfigError as error:
        _stop(str(error))


@main.command("explain")
@click.argument("metric")
def explain_command(metric: str) -> None:
    """Print the card of a METRIC (`Name` or `backend/Name`)."""
    from ragparity import catalogue

    try:
        click.echo(catalogue.card(metric))
    except ConfigError as error:
        _stop(str(error))
