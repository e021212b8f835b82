"""The command `ragparity eval`: the rows of an eval file, scored."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from ragparity.commands import shared
from ragparity.commands.plans import foreign, plan_and_rows
from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from ragparity.config import EvalFile
    from ragparity.evaluation import Finished
    from ragparity.spending import Budget
    from ragparity.wiring import Plan


@click.command("eval")
@click.argument("file", type=shared.FILE)
@shared.DATASET
@shared.OUTPUT
@shared.OVERRIDE
@shared.BACKEND
@shared.LIMIT
@shared.SAMPLE
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")
@shared.RESUME
@shared.OVERWRITE
@click.option("--keep-going", is_flag=True, help="Run the evaluators that can run; still ends with 2.")
@shared.NO_PROBE
@click.option(
    "--fail-under", multiple=True, callback=shared.numbers, metavar="NAME=V", help="Fail if a mean is below V."
)
@click.option(
    "--budget", multiple=True, callback=shared.numbers, metavar="NAME=V",
    help="Stop at V calls, tokens or cost (NAME).",
)  # fmt: skip
@click.option("--slice", "slices", multiple=True, metavar="FIELD", help="Also summarise by the values of a column.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table.")
@shared.QUIET
def eval_command(
    *, file: Path, dataset_path: Path | None, output: Path | None, overrides: tuple[tuple[str, str], ...],
    backend: str | None, limit: int | None, sample: int | None, seed: int, resume: bool, overwrite: bool,
    keep_going: bool, no_probe: bool, fail_under: dict[str, float], budget: dict[str, float], slices: tuple[str, ...],
    as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Score the rows of an eval FILE, write the run's files, print the table."""
    from ragparity import estimates, evaluation
    from ragparity.folder import RunFolder
    from ragparity.report.progress import progress_for

    eval_file = shared.load(file, overrides)
    plan, rows = plan_and_rows(eval_file, dataset_path, backend, prepare=True, keep_going=keep_going)
    if plan.problems:
        shared.complain(*plan.problems)
        if not keep_going or not plan.evaluators:
            raise SystemExit(shared.EXIT_CONFIG)
    if rows is None:
        raise SystemExit(shared.EXIT_CONFIG)
    if unknown := [name for name in fail_under if name not in {one.entry.name for one in plan.evaluators}]:
        names = ", ".join(one.entry.name for one in plan.evaluators)
        shared.stop(f"--fail-under {unknown[0]}: no evaluator of this name; there is {names}")
    for line in (*plan.notes, *foreign(eval_file), *estimates.ceilings(plan, rows.samples())):
        click.echo(line, err=True)
    spend_at_most = _spend_at_most(budget, eval_file)
    progress = progress_for(sys.stderr, wanted=not quiet)
    mode = "resume" if resume else "overwrite" if overwrite else "new"
    save, path = eval_file.general.ragparity.save, output or eval_file.general.output_dir
    folder = RunFolder(path, mode=mode, save_samples=save.samples, save_calls=save.calls)
    with shared.ends_early(path, progress, lambda: _show(folder.result, path, as_json=as_json)), folder:
        finished = shared.run(
            evaluation.evaluate_file(
                plan, rows, folder,
                choice=evaluation.Choice(limit=limit, sample=sample, seed=seed),
                limits=evaluation.limits_of(plan, fail_under), slices=slices, budget=spend_at_most,
                probing=not no_probe, progress=progress, say=progress.say,
            )
        )  # fmt: skip
    _show(finished, path, as_json=as_json)
    _end(finished, plan, path)


def _spend_at_most(limits: dict[str, float], file: EvalFile) -> Budget:
    """The budget of the command line over that of the file."""
    from ragparity.spending import budget_of

    try:
        return budget_of(limits, file.general.ragparity.budget.as_limits())
    except ConfigError as error:
        shared.stop(str(error))


def _show(finished: Finished | None, path: Path, *, as_json: bool) -> None:
    if finished is None:
        return
    if as_json:
        click.echo(json.dumps(finished.as_json(), ensure_ascii=False, allow_nan=False, indent=2))
        return
    from ragparity.report.terminal import print_finished

    print_finished(finished, sys.stdout, folder=str(path))


def _end(finished: Finished, plan: Plan, path: Path) -> None:
    """End with the exit code of a run that came to its end or to that of its budget."""
    if finished.stopped:
        shared.complain(f"stopped: {finished.stopped}; what was scored is kept in {path}; continue with --resume")
    if plan.problems:
        raise SystemExit(shared.EXIT_CONFIG)
    if not finished.passed:
        raise SystemExit(shared.EXIT_FAILED)
