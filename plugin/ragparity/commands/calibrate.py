"""The command `ragparity calibrate`: a finished run against people's labels."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from ragparity.commands import shared
from ragparity.commands.comparing import LABEL_SCALE, LABELS, PLOTS, say_plots
from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from ragparity.calibrated_run import CalibratedRun


@click.command("calibrate")
@click.argument("run", type=shared.FOLDER)
@LABELS
@LABEL_SCALE
@click.option(
    "--threshold", "thresholds", multiple=True, callback=shared.numbers, metavar="NAME=V",
    help="A score of this evaluator passes from V on.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resamples.")
@PLOTS
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
        shared.stop("--labels FIELD: missing; name the column of the rows that holds people's labels")
    try:
        found = calibrate_run(run, labels, label_scale=label_scale, thresholds=thresholds, seed=seed)
        content = found.as_json()
        (run / CALIBRATION).write_bytes(json_text(content, indent=2) + b"\n")
        drawn = _draw_calibration(found, run, wanted=plots)
    except ConfigError as error:
        shared.stop(*str(error).splitlines())
    except OSError as error:
        shared.stop(f"{run}: {error.strerror or error}")
    if as_json:
        click.echo(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2))
    else:
        print_calibration(content, sys.stdout, folder=str(run))
    say_plots(drawn, as_json=as_json)
    if any(not one["confusion"] for one in content["evaluators"].values()):
        raise SystemExit(shared.EXIT_FAILED)


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
