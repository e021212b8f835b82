"""The commands `crossvalidate` and `calibrate`: how far scores agree with each other, and with people."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ragparity.core.errors import ConfigError, EvaluationError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from ragparity.calibrated_run import CalibratedRun
    from ragparity.config import EvalFile
    from ragparity.crossvalidation import Crossvalidation, Field
    from ragparity.wiring import Rows

EXIT_FAILED, EXIT_CONFIG, EXIT_CANCELLED = 1, 2, 130

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


def _complain(*lines: str) -> None:
    for line in lines:
        click.echo(f"ragparity: {line}", err=True)


def _stop(*lines: str) -> NoReturn:
    _complain(*lines)
    raise SystemExit(EXIT_CONFIG)


def _ends(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[float, float] | None:
    if value is None:
        return None
    low, comma, high = value.partition(",")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not comma or not ends[0] < ends[1]:
        raise click.BadParameter(f"{value!r}: expected the lowest and the highest label, e.g. 1,5")
    return ends


def _names(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in (value or "").split(",") if part.strip()))
    if value is not None and len(found) < 2:  # noqa: PLR2004  # a comparison takes two
        raise click.BadParameter(f"{value!r}: expected two or more backends, e.g. native,ragas")
    return found


def _thresholds(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for value in values:
        name, _, number = value.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise click.BadParameter(f"{value!r}: expected NAME=NUMBER, e.g. faithfulness=0.7")
    return found


def _drawable(_context: click.Context, _option: click.Parameter, value: bool) -> bool:
    """Whether plots are wanted; where they cannot be drawn, that is said before anything is scored."""
    if value:
        from ragparity.report import plots

        try:
            plots.require()
        except ConfigError as error:
            _stop(f"--plots: {error}")
    return value


_LABELS = click.option(
    "--labels", multiple=True, metavar="FIELD",
    help="A column with people's labels, or a path to them (human.label); once for each annotator.",
)  # fmt: skip
_LABEL_SCALE = click.option(
    "--label-scale", callback=_ends, metavar="LO,HI", help="The lowest and the highest label, where they do not show."
)

_DRAW = click.option(
    "--plots", is_flag=True, callback=_drawable,
    help="Draw it too, as PNG and SVG in the run's plots/ (needs ragparity[stats]).",
)  # fmt: skip


@click.command("crossvalidate")
@click.argument("file", type=_FILE)
@click.option("--backends", callback=_names, metavar="A,B,C", help="Compare every evaluator on these backends.")
@_LABELS
@_LABEL_SCALE
@click.option("--force", is_flag=True, help="Also compare what only shares a name, by ranks.")
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=0.1, show_default=True, help="Difference that is none."
)
@click.option("--dataset", "dataset_path", type=_FILE, help="Rows from this file instead.")
@click.option("--output", type=_FOLDER, help="Folder of the run, in place of the file's output_dir.")
@click.option(
    "--override", "overrides", type=(str, str), multiple=True, metavar="KEY VALUE",
    help="Set a value of the eval file. May be repeated.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N rows.")
@click.option("--sample", type=click.IntRange(min=1), help="Only N rows, drawn at random.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw and of the resamples.")
@click.option("--resume", is_flag=True, help="Continue a run: what was scored under the same settings is kept.")
@click.option("--overwrite", is_flag=True, help="Replace an unfinished run.")
@click.option("--no-probe", is_flag=True, help="Do not ask every model one small thing before a large run.")
@_DRAW
@click.option("--json", "as_json", is_flag=True, help="Print the agreement as JSON instead of tables.")
@click.option("--quiet", is_flag=True, help="No progress.")
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
    from ragparity.probe import ProbeFailed
    from ragparity.report.progress import progress_for

    eval_file, laid_out, rows = _laid_out(
        file, overrides, backends, dataset_path, force=force, least=1 if labels else 2
    )
    _complain(*laid_out.problems)
    if not laid_out.groups:
        raise SystemExit(EXIT_CONFIG)
    for line in (*laid_out.plan.notes, *laid_out.warnings):
        click.echo(line, err=True)
    progress = progress_for(sys.stderr, wanted=not quiet)
    mode = "resume" if resume else "overwrite" if overwrite else "new"
    save, path = eval_file.general.ragparity.save, output or eval_file.general.output_dir
    folder = RunFolder(path, mode=mode, save_samples=save.samples, save_calls=save.calls)
    try:
        with folder:
            work = crossvalidation.crossvalidate_file(
                laid_out, rows, folder, choice=Choice(limit=limit, sample=sample, seed=seed),
                terms=Terms(tolerance=tolerance, force=force, seed=seed), labels=labels, label_scale=label_scale,
                probing=not no_probe, progress=progress, say=progress.say,
            )  # fmt: skip
            found = asyncio.run(_until_terminated(work))
            drawn = _draw(found, path) if plots else []
    except (KeyboardInterrupt, asyncio.CancelledError):
        progress.close()
        if isinstance(folder.result, crossvalidation.Crossvalidation):
            _print(folder.result.as_json(), as_json=as_json, folder=path)
        _complain(f"cancelled; what was scored is kept in {path}; continue with --resume")
        raise SystemExit(EXIT_CANCELLED) from None
    except ProbeFailed as error:
        progress.close()
        _complain(*str(error).splitlines(), "nothing was scored; mend this, or go on with --no-probe")
        raise SystemExit(EXIT_FAILED) from None
    except ConfigError as error:
        progress.close()
        _stop(*str(error).splitlines())
    except OSError as error:
        progress.close()
        _stop(f"{path}: {error.strerror or error}; what was scored before is kept, continue with --resume")
    progress.close()
    _print(found.as_json(), as_json=as_json, folder=path)
    _say_plots(drawn, as_json=as_json)
    _end(found, laid_out, path)


def _laid_out(
    file: Path, overrides: tuple[tuple[str, str], ...], backends: tuple[str, ...], dataset_path: Path | None, *,
    force: bool, least: int,
) -> tuple[EvalFile, Field, Rows]:  # fmt: skip
    from ragparity import crossvalidation, wiring
    from ragparity.config import load_eval_file

    try:
        eval_file = load_eval_file(file, overrides)
        laid_out = crossvalidation.lay_out(eval_file, backends, force=force, least=least)
        return eval_file, laid_out, wiring.open_rows(laid_out.plan, file_path=dataset_path)
    except EvaluationError as error:
        _stop(*str(error).splitlines())


async def _until_terminated(work: Coroutine[Any, Any, Crossvalidation]) -> Crossvalidation:
    """The result of the work; a request to terminate cancels it as Ctrl-C does."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def _print(content: dict[str, Any], *, as_json: bool, folder: Path) -> None:
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


def _draw_calibration(found: CalibratedRun, run: Path, *, wanted: bool) -> list[Path]:
    """Draw into a run; plots of an earlier calibration are gone in any case."""
    from ragparity.folder import PLOTS, announce_plots, remove_plots
    from ragparity.report import plots

    names = plots.calibration_names(found.against)
    remove_plots(run, names)
    if not wanted:
        return []
    announce_plots(run, names)
    return found.plot(run / PLOTS)


def _say_plots(drawn: Sequence[Path], *, as_json: bool) -> None:
    """Say what was drawn; beside JSON, where it does not get in the way."""
    if drawn:
        count = len({one.stem for one in drawn})
        click.echo(f"plots: {drawn[0].parent} ({count}, each as PNG and SVG)", err=as_json)


def _end(found: Crossvalidation, laid_out: Field, path: Path) -> None:
    """End with the exit code: 2 an entry could not be compared, 1 a backend has no scored row or a budget is spent."""
    for name in found.without_scores:
        _complain(f"{name}: no row was scored")
    stopped = found.finished.stopped if found.finished is not None else ""
    if stopped:
        _complain(f"stopped: {stopped}; what was scored is kept in {path}; continue with --resume")
    if laid_out.problems:
        raise SystemExit(EXIT_CONFIG)
    if found.without_scores or stopped:
        raise SystemExit(EXIT_FAILED)


@click.command("calibrate")
@click.argument("run", type=_FOLDER)
@_LABELS
@_LABEL_SCALE
@click.option(
    "--threshold", "thresholds", multiple=True, callback=_thresholds, metavar="NAME=V",
    help="A score of this evaluator passes from V on.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resamples.")
@_DRAW
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def calibrate_command(
    *, run: Path, labels: tuple[str, ...], label_scale: tuple[float, float] | None, thresholds: dict[str, float],
    seed: int, plots: bool, as_json: bool,
) -> None:  # fmt: skip
    """Compare the scores of a finished RUN with people's labels in its rows."""
    from ragparity.calibrated_run import calibrate_run
    from ragparity.folder import CALIBRATION
    from ragparity.report.agreement_table import print_calibration
    from ragparity.results import json_text

    if not labels:
        _stop("--labels FIELD: missing; name the column of the rows that holds people's labels")
    try:
        found = calibrate_run(run, labels, label_scale=label_scale, thresholds=thresholds, seed=seed)
        content = found.as_json()
        (run / CALIBRATION).write_bytes(json_text(content, indent=2) + b"\n")
        drawn = _draw_calibration(found, run, wanted=plots)
    except ConfigError as error:
        _stop(*str(error).splitlines())
    except OSError as error:
        _stop(f"{run}: {error.strerror or error}")
    if as_json:
        click.echo(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2))
    else:
        print_calibration(content, sys.stdout, folder=str(run))
    _say_plots(drawn, as_json=as_json)
    if any(not one["confusion"] for one in content["evaluators"].values()):
        raise SystemExit(EXIT_FAILED)
