"""How far scores agree, as pictures: `<evaluator>_<kind>.png` and `.svg`, drawn with matplotlib (extra `stats`).

A comparison gives a scatter plot and a Bland–Altman plot of its pairs, the cumulative distributions of its backends,
and a heat map of the pairs; labels of people give a plot of their own. Every figure in a plot is one of
`agreement.json` or `calibration.json`. No text of a row is in any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragparity.config.names import file_stems
from ragparity.report.plots import backends, pairs, people
from ragparity.report.plots.canvas import LONGEST_TITLE, require, save, shown, style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

    from ragparity.calibration import AgainstPeople
    from ragparity.comparison import Comparison

__all__ = ["agreement_names", "calibration_names", "draw_agreement", "draw_calibration", "require"]

SCATTER, BLAND_ALTMAN, ECDF, HEAT_MAP, LABELS = "scatter", "bland_altman", "ecdf", "heat_map", "labels"


def agreement_names(comparisons: Mapping[str, Comparison]) -> list[str]:
    """What the plots of comparisons are called, without their format."""
    stems = file_stems(comparisons)
    return [f"{stems[name]}_{kind}" for name, one in comparisons.items() for kind, _ in _plots_of(one, 0.0)]


def calibration_names(found: AgainstPeople) -> list[str]:
    """What the plots of a calibrated run are called, without their format."""
    return [f"{stem}_{LABELS}" for stem in file_stems(found.judges).values()]


def draw_agreement(
    comparisons: Mapping[str, Comparison], folder: Path, *, tolerance: float, partial: bool = False
) -> list[Path]:
    """Draw every comparison into a folder; gives the files. `partial`: the run did not come to its end.

    Raises `MissingExtra` without matplotlib, and `OSError` where a file cannot be written.
    """
    stems = file_stems(comparisons)
    written: list[Path] = []
    for name, one in comparisons.items():
        with style([name, *(side.backend for side in one.sides), *_columns(one.people)]):
            for kind, draw in _plots_of(one, tolerance):
                title = shown(name, LONGEST_TITLE)
                figure = draw(f"{title} (partial)" if partial else title)
                written += save(figure, folder, f"{stems[name]}_{kind}", f"{title}: {kind.replace('_', ' ')}")
    return written


def _plots_of(one: Comparison, tolerance: float) -> Iterator[tuple[str, Callable[[str], Figure]]]:
    """The kinds that a comparison has, each with what draws it under a name."""
    if one.pairs:
        yield SCATTER, lambda name: pairs.scatter(one, name, tolerance)
        yield BLAND_ALTMAN, lambda name: pairs.bland_altman(one, name)
    yield ECDF, lambda name: backends.ecdf(one, name)
    if one.pairs:
        yield HEAT_MAP, lambda name: backends.heat_map(one, name)
    if (found := one.people) is not None:
        yield LABELS, lambda name: people.against_labels(found, name)


def draw_calibration(found: AgainstPeople, folder: Path) -> list[Path]:
    """Draw every evaluator of a run against people into a folder; gives the files. Raises as `draw_agreement`."""
    from ragparity.calibration import AgainstPeople

    stems = file_stems(found.judges)
    written: list[Path] = []
    for name, judge in found.judges.items():
        with style([name, *_columns(found)]):
            title = shown(name, LONGEST_TITLE)
            figure = people.against_labels(AgainstPeople(people=found.people, judges={name: judge}), title)
            written += save(figure, folder, f"{stems[name]}_{LABELS}", f"{title}: {LABELS}")
    return written


def _columns(found: AgainstPeople | None) -> list[str]:
    return [] if found is None else [one.column for one in found.people.annotators]
