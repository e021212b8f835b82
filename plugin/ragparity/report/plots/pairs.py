"""Two backends at a time: their scores against each other, and their differences against their level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ragparity.agreement import pair as join
from ragparity.agreement.resampling import LEAST_PAIRS
from ragparity.report.plots import marks
from ragparity.report.plots.canvas import (
    BAND,
    COLOURS,
    FAINT,
    INK,
    PANEL_IN,
    Sheet,
    estimate_text,
    number,
    sentence,
    shown,
    words,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ragparity.agreement import Agreement, Limits
    from ragparity.comparison import Comparison, Pair
    from ragparity.report.plots.marks import Array

NOTHING_SHARED = "no row has a score on both sides"
LIMITS = {"normal": "mean ± 1.96 SD", "empirical": "empirical"}
_LEAST_REACH = 0.05


@dataclass(frozen=True, slots=True)
class _Scores:
    """The scores of rows that both sides have scored, and those of rows that one of them alone has."""

    x: Array
    y: Array
    only_a: Array
    only_b: Array
    neither: bool
    """Whether there are rows that both have met and none has scored."""

    @classmethod
    def of(cls, one: Pair) -> _Scores:
        joined = join(one.scores_a, one.scores_b)
        alone = _alone(one.scores_a, one.scores_b), _alone(one.scores_b, one.scores_a)
        x, y, only_a, only_b = (np.array(side, dtype=np.float64) for side in (joined.a, joined.b, *alone))
        return cls(x, y, only_a, only_b, joined.n_unscored_a > len(only_b))

    @property
    def few_levels(self) -> bool:
        """Whether the limits of agreement are empirical ones, because there are few different scores."""
        return marks.few_levels(self.x, self.y)


def _alone(scores: Mapping[str, float | None], others: Mapping[str, float | None]) -> list[float]:
    return [score for row, score in scores.items() if score is not None and others.get(row, score) is None]


# -- score against score


def scatter(comparison: Comparison, name: str, tolerance: float) -> Figure:
    """Every pair of backends: a point for each row that both scored, ticks for rows that one alone did."""
    sheet, compared = Sheet(), comparison.pairs
    scores = [_Scores.of(one) for one in compared]
    below, left = any(len(one.only_a) for one in scores), any(len(one.only_b) for one in scores)
    caption: list[str] = []
    for one, found, axes in zip(compared, scores, sheet.panels(len(compared)), strict=True):
        if one.agreement is None:
            words(axes, f"{shown(one.a)} – {shown(one.b)}: not compared. {sentence(one.because)}")
            continue
        low, high = _ends(one, found)
        marks.frame(axes, low, high, below=below, left=left)
        axes.set_xlabel(_side(one.agreement, one.a, "mean_a"))
        axes.set_ylabel(_side(one.agreement, one.b, "mean_b"))
        marks.draw_unscored(axes, found.only_a, "x", low, high)
        marks.draw_unscored(axes, found.only_b, "y", low, high)
        statistic = ("CCC", "ccc") if _is_absolute(one) else ("ρ", "spearman")
        sheet.head(axes, estimate_text(statistic[0], one.agreement[statistic[1]]), _counts(one))
        if len(found.x):
            marks.draw_identity(axes, low, high, tolerance=tolerance if _is_absolute(one) else None)
            caption.append(marks.draw_rows(axes, found.x, found.y, levels=found.few_levels))
        else:
            axes.text((low + high) / 2, low + 0.75 * (high - low), NOTHING_SHARED, ha="center", va="center")
    if any(_is_absolute(one) and one.n for one in compared):
        caption.append(f"Line: equal scores; band: differences of up to {tolerance:g}, the tolerance")
    if any(one.agreement and not _is_absolute(one) for one in compared):
        caption.append(
            "No band: the definitions are not the same, so only the order of scores is compared (Spearman's ρ)"
        )
    if below or left:
        caption.append(marks.ALONE.format("one side alone has scored, at that score"))
    if any(found.neither for found in scores):
        caption.append("A row that neither side has scored is among those without the one and without the other")
    return sheet.finish(f"{name}: the same rows scored by two backends", [*caption, *_notes(comparison)])


def _ends(one: Pair, found: _Scores) -> tuple[float, float]:
    """The bounds of the scores; a score beyond them, of a row that one side alone has, widens them."""
    seen = np.concatenate([found.only_a, found.only_b, one.bounds])
    return float(seen.min()), float(seen.max())


# -- difference against level


def bland_altman(comparison: Comparison, name: str) -> Figure:
    """Every pair of one definition: difference against mean of two scores, the bias, the limits, the slope."""
    sheet, compared = Sheet(), comparison.pairs
    scores = [_Scores.of(one) for one in compared]
    drawn = [(one, found) for one, found in zip(compared, scores, strict=True) if _is_absolute(one)]
    reach = max((_reach(one, found) for one, found in drawn), default=1.0)
    caption: list[str] = []
    for one, found, axes in zip(compared, scores, sheet.panels(len(compared)), strict=True):
        if one.agreement is None or not _is_absolute(one):
            words(axes, f"{shown(one.a)} – {shown(one.b)}: no differences are taken. {sentence(one.because)}")
            continue
        low, high = one.bounds
        axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
        axes.set_ylim(-reach, reach)
        axes.set_xlabel(wrapped(f"mean of {shown(one.a)} and {shown(one.b)}", PANEL_IN))
        axes.set_ylabel(wrapped(f"{shown(one.a)} − {shown(one.b)}", PANEL_IN))
        sheet.head(axes, *_figures(one.agreement), _counts(one))
        axes.axhline(0, color=FAINT, linewidth=0.6, zorder=1)
        if len(found.x):
            _lines(axes, one.agreement, (found.x + found.y) / 2)
            caption.append(marks.draw_rows(axes, (found.x + found.y) / 2, found.x - found.y, levels=found.few_levels))
        else:
            axes.text((low + high) / 2, reach / 2, NOTHING_SHARED, ha="center", va="center")
    if any(one.n >= LEAST_PAIRS for one, _ in drawn):
        caption.append(
            "Solid line: mean difference (bias), the band its 95 % interval; dashed: limits of agreement, which hold "
            "95 % of the differences; dotted: slope of the difference on the level"
        )
    limits = [one.agreement.limits for one, _ in drawn if one.agreement]
    if any(one.kind == "empirical" and one.low is not None for one in limits):
        caption.append(
            "Empirical limits: the 2.5 % and 97.5 % points of the differences, since the scores are few levels"
        )
    return sheet.finish(f"{name}: how far two backends differ, by level", [*caption, *_notes(comparison)])


def _figures(found: Agreement) -> list[str]:
    """Bias, limits and slope; one reason where there is none of them."""
    bias, slope = found["mean_diff"], found["slope"]
    if bias.value is None:
        return [estimate_text("bias", bias)]
    ends = f"limits {_limits(found.limits)}"
    return [estimate_text("bias", bias, sign=True), ends, estimate_text("slope", slope, sign=True)]


def _limits(found: Limits) -> str:
    if found.low is None or found.high is None:
        return str(found.why)
    return f"{number(found.low, sign=True)} … {number(found.high, sign=True)} ({LIMITS[found.kind]})"


def _lines(axes: Axes, found: Agreement, level: Array) -> None:
    """The bias with its interval, the limits, and the slope over the levels that occur."""
    bias, slope = found["mean_diff"], found["slope"]
    if bias.value is None:
        return
    if bias.interval is not None:
        axes.axhspan(*bias.interval, color=BAND, linewidth=0, zorder=0, label="bias interval")
    axes.axhline(bias.value, color=INK, linewidth=1.0, zorder=4, label="bias")
    for end in (found.limits.low, found.limits.high):
        if end is not None:
            axes.axhline(end, color=INK, linewidth=0.8, linestyle=(0, (5, 3)), zorder=4, label="limit")
    if slope.value is not None:
        at = np.array([level.min(), level.max()])
        axes.plot(
            at, bias.value + slope.value * (at - level.mean()), color=COLOURS[1], linewidth=1.4,
            linestyle=(0, (1, 1.5)), zorder=4, label="slope",
        )  # fmt: skip


def _reach(one: Pair, found: _Scores) -> float:
    """How far up and down the differences of a pair go, with some room."""
    limits = one.agreement.limits if one.agreement else None
    ends = [abs(end) for end in (limits.low, limits.high) if end is not None] if limits else []
    return 1.15 * max([*ends, float(np.abs(found.x - found.y).max(initial=0.0)), _LEAST_REACH])


# -- words


def _is_absolute(one: Pair) -> bool:
    """Whether both measure the same, so that scores and not only their order can be compared."""
    return one.relation == "same" and one.agreement is not None


def _side(found: Agreement, backend: str, mean: str) -> str:
    value = found[mean].value
    return shown(backend) if value is None else f"{shown(backend)}, mean {number(value)}"


def _counts(one: Pair) -> str:
    sides = ((one.a, one.n_unscored_a), (one.b, one.n_unscored_b))
    missing = [f"{count:,} without {shown(backend)}" for backend, count in sides if count]
    return f"n = {one.n:,}" + (f" ({', '.join(missing)})" if missing else "")


def _notes(comparison: Comparison) -> list[str]:
    """What has been done to scores, and where a coefficient cannot be read."""
    found: list[str] = []
    for one in comparison.pairs:
        if one.agreement is not None:
            notes = [*(note for note in one.agreement.notes if note.startswith("ceiling")), *one.notes]
            found += [sentence(note, (one.a, one.b)) for note in notes]
    return found
