"""Scores against people's labels: ROC curve and confusion table for good and bad, scores by label for grades."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragparity.calibration import MIDDLE
from ragparity.report.plots import marks
from ragparity.report.plots.canvas import (
    COLOURS,
    DASHES,
    FAINT,
    INK,
    Sheet,
    estimate_text,
    number,
    shown,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ragparity.agreement.summary import Flags
    from ragparity.calibration import AgainstPeople, Calibration
    from ragparity.report.plots.marks import Array

TABLE_IN = 1.8
_SHADES = "Blues"
_DARK = 0.6
_QUARTERS = (0, 0.25, 0.5, 0.75, 1)


def against_labels(found: AgainstPeople, name: str) -> Figure:
    """Every judge against people: by verdicts where each label is good or bad, else by grades."""
    columns = ", ".join(shown(one.column) for one in found.people.annotators)
    if all(one.binary for one in found.people.annotators):
        return _verdicts(found, name, columns)
    return _grades(found, name, columns)


def _verdicts(found: AgainstPeople, name: str, columns: str) -> Figure:
    sheet = Sheet(least=7.2)
    (first,) = sheet.panels(1)
    _roc(first, found)
    for (judge, one), axes in zip(found.judges.items(), sheet.panels(len(found.judges), TABLE_IN), strict=True):
        _confusion(axes, judge, one)
        sheet.head(
            axes, shown(judge), estimate_text("balanced accuracy", one.estimates["balanced_accuracy"]), _counts(one)
        )
    caption = [
        "Curve: a step for each threshold; above the diagonal, better scores go with better labels",
        "Dot: the threshold in use, at which the tables count",
        "Tables: rows with a score and a label, and their share of the rows that people call good or bad",
    ]
    return sheet.finish(f"{name}: scores against people ({columns})", caption)


def _roc(axes: Axes, found: AgainstPeople) -> None:
    """A curve for every judge, with its threshold as a dot."""
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, zorder=1)
    for at, (judge, one) in enumerate(found.judges.items()):
        colour, area = COLOURS[at % len(COLOURS)], one.estimates["auroc"]
        curve: tuple[Array, Array] = (np.array([]), np.array([]))
        if area.value is not None:
            curve = roc_curve(np.array(one.judged), np.array(one.human) >= MIDDLE)
            dot = 1 - one.counts["specificity"], one.counts["sensitivity"]
            axes.plot(*dot, marker="o", markersize=6, color=colour, linestyle="", clip_on=False, zorder=4)
        axes.plot(
            *curve, color=colour, linestyle=DASHES[at % len(DASHES)], linewidth=1.6, clip_on=False, zorder=3,
            label=estimate_text(shown(judge), area),
        )  # fmt: skip
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xticks=_QUARTERS, yticks=_QUARTERS)
    axes.set(xlabel="share of bad rows that pass", ylabel="share of good rows that pass")
    axes.legend(
        title="area under the curve (AUROC)", alignment="left", loc="upper left", bbox_to_anchor=(1.02, 1),
        borderaxespad=0, handlelength=2.6,
    )  # fmt: skip


def roc_curve(judged: Array, good: Flags) -> tuple[Array, Array]:
    """Shares of bad and of good rows that reach each threshold, from the strictest on; both go from 0 to 1."""
    steps, place = np.unique(judged, return_inverse=True)
    found = []
    for rows in (~good, good):
        reached = np.bincount(place[rows], minlength=len(steps))[::-1].cumsum()
        found.append(np.concatenate([[0.0], reached / rows.sum()]))
    return found[0], found[1]


def _confusion(axes: Axes, judge: str, one: Calibration) -> None:
    """How many rows pass and fail by the judge, of those that people call good and bad."""
    if not one.counts:
        words(axes, f"{shown(judge)}: nothing to count")
        return
    counts = np.array(
        [
            [one.counts["true_pass"], one.counts["false_fail"]],
            [one.counts["false_pass"], one.counts["true_fail"]],
        ]
    )
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    axes.pcolormesh(shares, cmap=_SHADES, vmin=0, vmax=1, edgecolors="white", linewidth=2, label="shares")
    for (row, at), share in np.ndenumerate(shares):
        text = f"{counts[row, at]:,}" + (f"\n{100 * share:.0f} %" if totals[row, 0] else "")
        axes.text(at + 0.5, row + 0.5, text, ha="center", va="center", color="white" if share > _DARK else INK)
    axes.set(xlim=(0, 2), ylim=(2, 0))
    axes.set_xticks([0.5, 1.5], ["passes", "fails"])
    axes.set_yticks([0.5, 1.5], ["good", "bad"], rotation=90, va="center")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    passing = f"from {one.threshold:g} on" if one.higher_is_better else f"up to {one.threshold:g}"
    axes.set_xlabel(f"judge, passes {passing}")
    axes.set_ylabel("people")


def _grades(found: AgainstPeople, name: str, columns: str) -> Figure:
    sheet = Sheet()
    judges = found.judges.values()
    room = {"below": any(one.human_alone for one in judges), "left": any(one.judged_alone for one in judges)}
    caption: list[str] = []
    for (judge, one), axes in zip(found.judges.items(), sheet.panels(len(found.judges)), strict=True):
        sheet.head(axes, estimate_text("ρ", one.estimates["spearman"]), _counts(one))
        caption += _grade(axes, judge, one, room)
    caption.append("Scores and labels are shares of their scales, 0 bad and 1 good; line: a score equals its label")
    if any(room.values()):
        caption.append(marks.ALONE.format("have a label or a score alone"))
    return sheet.finish(f"{name}: scores against people ({columns})", caption)


def _grade(axes: Axes, judge: str, one: Calibration, room: Mapping[str, bool]) -> list[str]:
    """A point for each row with a score and a label; gives the sentence that says how it is drawn."""
    labels, scores = np.array(one.human, dtype=np.float64), np.array(one.judged, dtype=np.float64)
    alone = np.array(one.human_alone, dtype=np.float64), np.array(one.judged_alone, dtype=np.float64)
    seen = np.concatenate([scores, alone[1], [0.0, 1.0]])
    low, high = float(seen.min()), float(seen.max())
    marks.frame(axes, low, high, **room)
    marks.draw_identity(axes, low, high, tolerance=None)
    marks.draw_unscored(axes, alone[0], "x", low, high)
    marks.draw_unscored(axes, alone[1], "y", low, high)
    axes.set_xlabel("people" + (f", mean {number(float(labels.mean()))}" if len(labels) else ""))
    axes.set_ylabel(shown(judge) + (f", mean {number(float(scores.mean()))}" if len(scores) else ""))
    if not len(labels):
        axes.text((low + high) / 2, (low + high) / 2, "no row has a score and a label", ha="center", va="center")
        return []
    return [marks.draw_rows(axes, labels, scores, levels=marks.few_levels(labels, scores))]


def _counts(one: Calibration) -> str:
    pairs = ((one.n_unscored, "score"), (one.n_unlabelled, "label"))
    missing = [f"{count:,} without {what}" for count, what in pairs if count]
    return f"n = {one.n:,}" + (f" ({', '.join(missing)})" if missing else "")
