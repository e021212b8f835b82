"""Options and lines of the commands that compare scores: labels of people, and plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragparity.commands.shared import stop
from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


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


def _drawable(_context: click.Context, _option: click.Parameter, value: bool) -> bool:
    """Whether plots are wanted; where they cannot be drawn, that is said before anything is scored."""
    if value:
        from ragparity.report import plots

        try:
            plots.require()
        except ConfigError as error:
            stop(f"--plots: {error}")
    return value


LABELS = click.option(
    "--labels", multiple=True, metavar="FIELD",
    help="A column with people's labels, or a path to them (human.label); once for each annotator.",
)  # fmt: skip
LABEL_SCALE = click.option(
    "--label-scale", callback=_ends, metavar="LO,HI", help="The lowest and the highest label, where they do not show."
)

PLOTS = click.option(
    "--plots", is_flag=True, callback=_drawable,
    help="Draw it too, as PNG and SVG in the run's plots/ (needs ragparity[stats]).",
)  # fmt: skip


def say_plots(drawn: Sequence[Path], *, as_json: bool) -> None:
    """Say what was drawn; beside JSON, where it does not get in the way."""
    if drawn:
        count = len({one.stem for one in drawn})
        click.echo(f"plots: {drawn[0].parent} ({count}, each as PNG and SVG)", err=as_json)
