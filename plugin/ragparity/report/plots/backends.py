"""All backends at once: how their scores are spread, and how far each pair agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragparity.comparison import on_one_scale
from ragparity.report.plots.canvas import COLOURS, DASHES, INK, PANEL_IN, Sheet, number, sentence, shown, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ragparity.agreement import Estimate
    from ragparity.comparison import Comparison, Pair
    from ragparity.report.plots.marks import Array

MOST_STEPS = 1000
"""Steps of a curve that are drawn; of more scores as many are taken, evenly."""
CELL_IN = 1.35
LABEL_IN = 1.7
_LIGHT = 0.55  # from here on either side a shade is dark, and its text white
_NO_COLOUR = "#F2F2F2"


def ecdf(comparison: Comparison, name: str) -> Figure:
    """The share of rows with at most each score, a curve for every backend."""
    scores, notes = on_one_scale(comparison.sides)
    columns = {
        backend: np.array([one for one in of.values() if one is not None], dtype=np.float64)
        for backend, of in scores.items()
    }
    sheet = Sheet(least=7.2)
    (axes,) = sheet.panels(1, PANEL_IN * 1.3, PANEL_IN)
    bounds = np.array([one.metric.bounds for one in comparison.sides], dtype=np.float64).ravel()
    seen = np.concatenate([*columns.values(), [0.0, 1.0] if notes else bounds[np.isfinite(bounds)]])
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    room = 0.03 * ((high - low) or 1.0)
    for at, (backend, column) in enumerate(columns.items()):
        axes.plot(
            *_steps(column, low - room, high + room), drawstyle="steps-post", color=COLOURS[at % len(COLOURS)],
            linestyle=DASHES[at % len(DASHES)], linewidth=1.6, label=_legend(backend, column, len(scores[backend])),
        )  # fmt: skip
    axes.set(
        xlim=(low - room, high + room), ylim=(-0.02, 1.02), xlabel="score", ylabel="share of rows up to this score"
    )
    if not any(map(len, columns.values())):
        axes.text((low + high) / 2, 0.5, "no row has a score", ha="center", va="center")
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, handlelength=2.6)
    caption = ["Further to the right: higher scores; a jump: a score that many rows have"]
    caption += [sentence(note, columns) for note in notes]
    return sheet.finish(f"{name}: how the scores of each backend are spread", caption)


def _legend(backend: str, column: Array, met: int) -> str:
    if not len(column):
        return f"{shown(backend)}: no row of {met:,} has a score"
    rows = f"{len(column):,}" + (f" of {met:,}" if len(column) < met else "")
    return f"{shown(backend)}: n = {rows}, mean {number(float(column.mean()))}"


def _steps(column: Array, low: float, high: float) -> tuple[Array, Array]:
    """Corners of the curve: at every score the share of rows that have at most it."""
    if not len(column):
        return np.array([]), np.array([])
    values, counts = np.unique(column, return_counts=True)
    shares = np.cumsum(counts) / len(column)
    if len(values) > MOST_STEPS:
        kept = np.unique(np.linspace(0, len(values) - 1, MOST_STEPS).round().astype(int))
        values, shares = values[kept], shares[kept]
    return np.concatenate([[low], values, [high]]), np.concatenate([[0.0], shares, [1.0]])


def heat_map(comparison: Comparison, name: str) -> Figure:
    """Each pair's concordance, or rank correlation where only ranks are compared; on the diagonal test–retest."""
    backends, again = [one.backend for one in comparison.sides], comparison.retests
    down, across = (backends, backends) if again else (backends[1:], backends[:-1])
    sheet = Sheet(left=LABEL_IN)
    (axes,) = sheet.panels(1, CELL_IN * len(across), CELL_IN * len(down))
    pairs = {(one.b, one.a): one for one in comparison.pairs}
    values = np.full((len(down), len(across)), np.nan)
    for row, b in enumerate(down):
        for at, a in enumerate(across):
            if a == b and a in again:
                values[row, at] = _cell(axes, row, at, "itself", again[a].ccc)
            elif (one := pairs.get((b, a))) is not None:
                values[row, at] = _pair_cell(axes, row, at, one)
    axes.pcolormesh(
        np.ma.masked_invalid(values), cmap="RdBu", vmin=-1, vmax=1, edgecolors="white", linewidth=2, label="agreement"
    )
    axes.set(xlim=(0, len(across)), ylim=(len(down), 0))
    axes.set_xticks(np.arange(len(across)) + 0.5, [shown(one, 19) for one in across])
    axes.set_yticks(np.arange(len(down)) + 0.5, [shown(one, 24) for one in down])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return sheet.finish(f"{name}: agreement of every pair", _legend_of_cells(comparison))


def _legend_of_cells(comparison: Comparison) -> list[str]:
    """What the cells of the heat map hold."""
    caption = []
    if any(one.relation == "same" for one in comparison.pairs):
        caption.append("CCC: concordance, 1 only where all scores are equal")
    if any(one.relation != "same" and one.agreement for one in comparison.pairs):
        caption.append("ρ: Spearman's rank correlation, where the definitions are not the same")
    if any(one.agreement is None for one in comparison.pairs):
        caption.append("Hatched: the two only share a name and are not compared")
    if comparison.retests:
        caption.append("Itself: CCC of a backend with its own repetitions, which no other can be asked to exceed")
    return [*caption, "Blue: agreement; white: none; red: the opposite"]


def _pair_cell(axes: Axes, row: int, at: int, one: Pair) -> float:
    if one.agreement is None:
        _fill(axes, row, at, hatch="///")
        axes.text(at + 0.5, row + 0.5, "not\ncompared", ha="center", va="center", zorder=3)
        return np.nan
    what = ("CCC", "ccc") if one.relation == "same" else ("ρ", "spearman")
    return _cell(axes, row, at, what[0], one.agreement[what[1]], below=f"n = {one.n:,}")


def _cell(axes: Axes, row: int, at: int, what: str, one: Estimate, *, below: str = "") -> float:
    """Write a figure into a cell, or in words why there is none; gives its value."""
    text = f"{what} {number(one.value)}" if one.value is not None else wrapped(f"{what} {one.why}", CELL_IN * 0.85)
    if one.value is None:
        _fill(axes, row, at)
    axes.text(
        at + 0.5, row + 0.5, "\n".join(line for line in (text, below) if line), ha="center", va="center", zorder=3,
        color="white" if abs(one.value or 0) > _LIGHT else INK,
    )  # fmt: skip
    return np.nan if one.value is None else one.value


def _fill(axes: Axes, row: int, at: int, hatch: str | None = None) -> None:
    """A cell without a colour of the scale."""
    axes.fill_between([at, at + 1], row, row + 1, facecolor=_NO_COLOUR, hatch=hatch, edgecolor="white", zorder=1)
