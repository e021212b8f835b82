"""The command `ragparity crossvalidate`: every metric on every backend, and how far the scores agree."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from ragparity.commands import shared
from ragparity.commands.comparing import LABEL_SCALE, LABELS, PLOTS, say_plots
from ragparity.core.errors import EvaluationError

if TYPE_CHECKING:
    from pathlib import Path

    from ragparity.config import EvalFile
    from ragparity.crossvalidation import Crossvalidation, Field
    from ragparity.wiring import Rows


def _names(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in (value or "").split(",") if part.strip()))
    if value is not None and len(found) < 2:  # noqa: PLR2004  # a comparison takes two
        raise click.BadParameter(f"{value!r}: expected two or more backends, e.g. native,ragas")
    return found


@click.command("crossvalidate")
@click.argument("file", type=shared.FILE)
@click.option("--backends", callback=_names, metavar="A,B,C", help="Compare every evaluator on these backends.")
@LABELS
@LABEL_SCALE
@click.option("--force", is_flag=True, help="Also compare what only shares a name, by ranks.")
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=0.1, show_default=True, help="Difference that is none."
)
@shared.DATASET
@shared.OUTPUT
@shared.OVERRIDE
@shared.LIMIT
@shared.SAMPLE
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw and of the resamples.")
@shared.RESUME
@shared.OVERWRITE
@shared.NO_PROBE
@PLOTS
@click.option("--json", "as_json", is_flag=True, help="Print the agreement as JSON instead of tables.")
@shared.QUIET
def crossvalidate_command(
    *, file: Path, backends: tuple[str, ...], labels: tuple[str, ...], label_scale: tuple[float, float] | None,
    force: bool, tolerance: float, dataset_path: Path | None, output: Path | None,
    overrides: tuple[tuple[str, str], ...], limit: int | None, sample: int | None, seed: int, resume: bool,
    overwrite: bool, no_probe: bool, plots: bool, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Score the rows of an eval FILE with every backend and say how far the scores agree."""
    from ragparity import crossvalidation
    from ragparity.comparison import Terms
    from ragparity.evaluation import Choice
    from ragparity.folder import RunFolder
    from ragparity.report.progress import progress_for

    eval_file, laid_out, rows = _laid_out(
        file, overrides, backends, dataset_path, force=force, least=1 if labels else 2
    )
    shared.complain(*laid_out.problems)
    if not laid_out.groups:
        raise SystemExit(shared.EXIT_CONFIG)
    for line in (*laid_out.plan.notes, *laid_out.warnings):
        click.echo(line, err=True)
    progress = progress_for(sys.stderr, wanted=not quiet)
    mode = "resume" if resume else "overwrite" if overwrite else "new"
    save, path = eval_file.general.ragparity.save, output or eval_file.general.output_dir
    folder = RunFolder(path, mode=mode, save_samples=save.samples, save_calls=save.calls)
    with shared.ends_early(path, progress, lambda: _show(folder.result, path, as_json=as_json)), folder:
        work = crossvalidation.crossvalidate_file(
            laid_out, rows, folder, choice=Choice(limit=limit, sample=sample, seed=seed),
            terms=Terms(tolerance=tolerance, force=force, seed=seed), labels=labels, label_scale=label_scale,
            probing=not no_probe, progress=progress, say=progress.say,
        )  # fmt: skip
        found = shared.run(work)
        drawn = _draw(found, path) if plots else []
    _show(found, path, as_json=as_json)
    say_plots(drawn, as_json=as_json)
    _end(found, laid_out, path)


def _laid_out(
    file: Path, overrides: tuple[tuple[str, str], ...], backends: tuple[str, ...], dataset_path: Path | None, *,
    force: bool, least: int,
) -> tuple[EvalFile, Field, Rows]:  # fmt: skip
    from ragparity import crossvalidation, wiring

    eval_file = shared.load(file, overrides)
    try:
        laid_out = crossvalidation.lay_out(eval_file, backends, force=force, least=least)
        return eval_file, laid_out, wiring.open_rows(laid_out.plan, file_path=dataset_path)
    except EvaluationError as error:
        shared.stop(*str(error).splitlines())


def _show(found: object, folder: Path, *, as_json: bool) -> None:
    from ragparity.crossvalidation import Crossvalidation

    if not isinstance(found, Crossvalidation):  # cancelled before there was anything to compare
        return
    content: dict[str, Any] = found.as_json()
    if as_json:
        click.echo(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2))
        return
    from ragparity.report.agreement_table import print_agreement

    print_agreement(content, sys.stdout, folder=str(folder))


def _draw(found: Crossvalidation, run: Path) -> list[Path]:
    from ragparity.folder import PLOTS, announce_plots
    from ragparity.report import plots

    announce_plots(run, plots.agreement_names(found.comparisons))
    return found.plot(run / PLOTS)


def _end(found: Crossvalidation, laid_out: Field, path: Path) -> None:
    """End with the exit code: 2 an entry could not be compared, 1 a backend has no scored row or a budget is spent."""
    for name in found.without_scores:
        shared.complain(f"{name}: no row was scored")
    stopped = found.finished.stopped if found.finished is not None else ""
    if stopped:
        shared.complain(f"stopped: {stopped}; what was scored is kept in {path}; continue with --resume")
    if laid_out.problems:
        raise SystemExit(shared.EXIT_CONFIG)
    if found.without_scores or stopped:
        raise SystemExit(shared.EXIT_FAILED)
