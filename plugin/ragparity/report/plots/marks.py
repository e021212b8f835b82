"""Rows as marks: points that do not hide each other, circles or hexagons where there are many, ticks in the margin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ragparity.agreement.scores import FEW_LEVELS
from ragparity.report.plots.canvas import BAND, COLOURS, FAINT, INK, LACK, PANEL_IN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

MANY_ON_LEVELS = 300
"""Rows of few levels from which on circles with counts stand for points."""
MANY = 3000
"""Rows from which on hexagons stand for points."""
MANY_IN_VECTORS = 500
"""Points from which on the SVG holds a picture of them, not each of them."""
MOST_TICKS, MANY_TICKS = 12, 60
"""Ticks for one score above which their number stands there, and ticks in all above which they are pale."""
ALONE = 'At "none": rows that {}, a tick for each or their number; they count in no figure'
POINTS = "Each point is a row; rows with the same two scores are fanned out around their place"
CIRCLES = "The area of a circle is the number of rows with these two scores, which stands in it"
HEXAGONS = "The shade of a hexagon is the number of rows in it"

_STEP = 0.016  # from point to point of a fan, as a share of the axis: less than the width of a point
_WIDEST = 0.05  # radius of a fan
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_SHADES = ("#C6DBEF", "#08306B")


def few_levels(x: Array, y: Array) -> bool:
    """Whether both sides together have as few scores as get empirical limits of agreement."""
    return len(np.unique(np.concatenate([x, y]))) <= FEW_LEVELS


def fanned_out(x: Array, y: Array, spans: tuple[float, float], most: float) -> tuple[Array, Array]:
    """Points of one place laid out around it as the seeds of a sunflower, the first on the place itself.

    `spans` are the lengths of the axes, `most` is the largest radius as a share of them. It depends on nothing but the
    points: no chance is in it.
    """
    _, place, counts = np.unique(np.stack([x, y], axis=1), axis=0, return_inverse=True, return_counts=True)
    place = place.ravel()
    order = np.argsort(place, kind="stable")
    turn = np.empty(len(x))
    turn[order] = np.arange(len(x)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = min(_STEP, most / np.sqrt(max(1, counts.max() - 1)))
    radius, angle = step * np.sqrt(turn), turn * _GOLDEN_ANGLE
    return x + spans[0] * radius * np.cos(angle), y + spans[1] * radius * np.sin(angle)


def draw_rows(axes: Axes, x: Array, y: Array, *, levels: bool) -> str:
    """Draw rows into axes whose limits are set; gives the sentence that says how. `levels`: the scores are few."""
    spans = (float(np.ptp(axes.get_xlim())), float(np.ptp(axes.get_ylim())))
    if levels:
        gaps = min(_gap(values) / span for values, span in zip((x, y), spans, strict=True))
        if len(x) > MANY_ON_LEVELS:
            _circles(axes, x, y, gaps)
            return CIRCLES
    elif len(x) > MANY:
        _hexagons(axes, x, y)
        return HEXAGONS
    else:
        gaps = 1.0
    at_x, at_y = fanned_out(x, y, spans, min(_WIDEST, 0.4 * gaps))
    axes.scatter(
        at_x, at_y, s=16, color=COLOURS[0], alpha=0.6, linewidths=0, rasterized=len(x) > MANY_IN_VECTORS, zorder=3,
        clip_on=False, label="rows",
    )  # fmt: skip
    return POINTS


def _gap(values: Array) -> float:
    """The least distance of two values, infinite where there is one value."""
    different = np.unique(np.round(values, 9))
    return float(np.diff(different).min()) if len(different) > 1 else np.inf


def _circles(axes: Axes, x: Array, y: Array, gap: float) -> None:
    from matplotlib.patheffects import withStroke

    places, counts = np.unique(np.round(np.stack([x, y], axis=1), 9), axis=0, return_counts=True)
    widest = min(0.85 * gap, 0.16) * PANEL_IN * 72
    areas = np.maximum(widest**2 * counts / counts.max(), 4)
    axes.scatter(
        places[:, 0], places[:, 1], s=areas, color="#9ECAE1", linewidths=0, zorder=3, clip_on=False, label="rows"
    )
    for (left, up), count in zip(places, counts, strict=True):
        text = axes.text(left, up, f"{count:,}", ha="center", va="center", zorder=5)
        text.set_path_effects([withStroke(linewidth=1.5, foreground="white", alpha=0.7)])  # lines may cross it


def _hexagons(axes: Axes, x: Array, y: Array) -> None:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    shades = LinearSegmentedColormap.from_list("rows", _SHADES)
    limits = (*axes.get_xlim(), *axes.get_ylim())
    drawn = axes.hexbin(x, y, gridsize=45, mincnt=1, cmap=shades, extent=limits, linewidths=0.1, zorder=3)
    counts = drawn.get_array()
    most = 2.0 if counts is None else max(2.0, float(np.max(counts)))
    drawn.set_norm(LogNorm(1, most))
    drawn.set_label("rows")
    key = axes.figure.colorbar(drawn, cax=axes.inset_axes((1.03, 0.5, 0.035, 0.5)))
    tens = [float(10**power) for power in range(int(np.log10(most)) + 1)]
    key.set_ticks(tens, labels=[f"{ten:,.0f}" for ten in tens])
    key.ax.minorticks_off()
    key.ax.set_xlabel("rows", loc="left")


def draw_unscored(axes: Axes, values: Array, which: str, low: float, high: float) -> None:
    """Short ticks below (`which` is x) or left of the scores, for rows that have this score and no other.

    Where many rows have one score, their number stands there.
    """
    if not len(values):
        return
    places, counts = np.unique(values, return_counts=True)
    at, span = margin(low, high), high - low
    if counts.max() > MOST_TICKS and len(places) <= 2 * FEW_LEVELS:
        for place, count in zip(places, counts, strict=True):
            if which == "x":
                axes.text(place, at, f"{count:,}", ha="center", va="center", color=LACK)
            else:
                axes.text(low - 0.04 * span, place, f"{count:,}", ha="right", va="center", color=LACK)
        return
    many = np.repeat(counts, counts)
    turn = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    beside = np.repeat(places, counts) + (turn - (many - 1) / 2) * np.minimum(0.012, 0.1 / many) * span
    lines = axes.vlines if which == "x" else axes.hlines
    lines(
        beside, at - 0.025 * span, at + 0.025 * span, colors=LACK, linewidth=1.0, clip_on=False,
        alpha=float(np.clip(MANY_TICKS / len(values), 0.02, 1)), rasterized=len(values) > MANY_IN_VECTORS,
        label=f"unscored {which}",
    )  # fmt: skip


def margin(low: float, high: float) -> float:
    """Where on an axis the ticks of rows without a score stand."""
    return low - 0.14 * (high - low)


def frame(axes: Axes, low: float, high: float, *, below: bool, left: bool) -> None:
    """Equal axes from low to high, with room outside for rows that have no score on the one or the other."""
    span = high - low
    ticks = [low + share * span for share in (0, 0.25, 0.5, 0.75, 1)]
    texts = [f"{tick:.2f}".rstrip("0").rstrip(".").replace("-", "−") for tick in ticks]
    for axis, spine, missing in ((axes.xaxis, "bottom", left), (axes.yaxis, "left", below)):
        start = margin(low, high) if missing else low
        axis.set_ticks([start, *ticks] if missing else ticks, labels=["none", *texts] if missing else texts)
        axes.spines[spine].set_bounds(low, high)
    axes.set_xlim(low - (0.2 if left else 0.04) * span, high + 0.04 * span)
    axes.set_ylim(low - (0.2 if below else 0.04) * span, high + 0.04 * span)
    axes.set_aspect("equal")


def draw_identity(axes: Axes, low: float, high: float, *, tolerance: float | None) -> None:
    """The line of equal scores, with the band of differences that are none."""
    if tolerance:
        at = np.sort(np.clip([low, low + tolerance, high - tolerance, high], low, high))  # where its edges have corners
        axes.fill_between(
            at, np.clip(at - tolerance, low, high), np.clip(at + tolerance, low, high), color=BAND, linewidth=0,
            zorder=0, label="tolerance",
        )  # fmt: skip
    axes.plot([low, high], [low, high], color=INK if tolerance else FAINT, linewidth=0.8, zorder=4, label="identity")
