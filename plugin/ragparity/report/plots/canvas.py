"""What every plot shares: one plain style, texts that can be shown, a sheet of panels, and files of equal bytes.

Figures are made without pyplot, so no window, backend or open figure of a program that uses it is touched. The style
is set while a plot is drawn and restored afterwards, whatever matplotlib's settings of the user are.
"""

from __future__ import annotations

import io
import logging
import textwrap
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import MissingExtra
from ragparity.core.values import whole
from ragparity.folder import PLOT_FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ragparity.agreement import Estimate

FONT_PT = 9.0
"""The one size of every text."""
PANEL_IN = 3.1
"""The side of a panel."""
ACROSS = 3
"""Panels beside each other."""
DPI = 200
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Told apart by people who are colour-blind (Okabe and Ito 2008, "Color Universal Design")."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (7, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)))
"""One for each colour, for those who print in black."""
INK, FAINT, BAND, LACK = "#222222", "#8A8A8A", "#E6E6E6", "#D55E00"
LONGEST = 28
"""Characters shown of a name at an axis."""
LONGEST_TITLE = 70
FONT = "DejaVu Sans"
"""It comes with matplotlib."""
ABSENT = "□"
_CHARACTERS_PER_INCH = 15
_LINE_IN, _SPACE_IN = 0.155, 0.1
_BETWEEN_IN = 1.0
"""From panel to panel, for the ticks and the label of the second."""
_FOOT_IN = 0.6
"""For ticks and label below a panel."""
_MARGIN_IN = 0.1

STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": FONT_PT,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": FONT_PT,
    "font.size": FONT_PT,
    "hatch.color": "#B5B5B5",
    "hatch.linewidth": 0.5,
    "legend.fontsize": FONT_PT,
    "legend.frameon": False,
    "svg.fonttype": "path",  # looks the same wherever it is opened
    "svg.hashsalt": "ragparity",  # else every drawing has other ids
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "xtick.color": INK,
    "xtick.labelsize": FONT_PT,
    "xtick.major.width": 0.6,
    "ytick.color": INK,
    "ytick.labelsize": FONT_PT,
    "ytick.major.width": 0.6,
}


def require() -> None:
    """Raises `MissingExtra` where there is nothing to draw with."""
    # What matplotlib has to say of its caches is nobody's concern here, and still reaches whoever sets up logging.
    logging.getLogger("matplotlib").addHandler(logging.NullHandler())
    try:
        import matplotlib.figure
        import matplotlib.style  # noqa: F401  # both are used below
    except (ImportError, ValueError) as error:  # the second where MPLBACKEND names no backend
        raise MissingExtra(
            f"plots need matplotlib, which does not import ({error}). Install it with: pip install 'ragparity[stats]'"
        ) from error


@contextmanager
def style(names: Iterable[str]) -> Iterator[None]:
    """Everything within is drawn in one style, with fonts that have the characters of these names."""
    require()
    import matplotlib.style

    families = dict.fromkeys(found for name in names for one in name if (found := _font_with(one)))
    with matplotlib.style.context(["default", {**STYLE, "font.family": [FONT, *families]}]):
        yield


# -- texts


def shown(text: str, most: int = LONGEST) -> str:
    """A name on one line, cut in the middle where it is long; a character that no font has is an empty box.

    >>> shown("a name that is a good deal too long", 20)
    'a name tha…too long'
    """
    line = " ".join("".join(one if one.isprintable() else " " for one in whole(text)).split())
    if len(line) > most:
        line = f"{line[: most // 2].rstrip()}…{line[most // 2 + 1 - most :].lstrip()}"
    return "".join(one if one in " …" or _font_with(one) else ABSENT for one in line)


@lru_cache(maxsize=4096)
def _font_with(character: str) -> str | None:
    """A font that has this character: the one of all plots, else the first that is installed."""
    from matplotlib import font_manager

    if ord(character) in _characters_of(font_manager.findfont(FONT)):
        return FONT
    installed = sorted(font_manager.fontManager.ttflist, key=lambda one: (one.name, one.style, one.weight, one.fname))
    for one in installed:
        # Matplotlib's own last resort draws the same box for every character.
        if not one.name.startswith("Last Resort") and ord(character) in _characters_of(one.fname):
            return one.name
    return None


@lru_cache(maxsize=512)
def _characters_of(path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):  # a font that has gone, or that cannot be read
        return frozenset()


def number(value: float, *, sign: bool = False) -> str:
    """Two decimals, with a minus sign that is one.

    >>> number(-0.125), number(0.5, sign=True), number(-0.001)
    ('−0.12', '+0.50', '0.00')
    """
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def estimate_text(name: str, one: Estimate, *, sign: bool = False) -> str:
    """A figure with its interval, or in words why there is none.

    >>> from ragparity.agreement import Estimate
    >>> estimate_text("CCC", Estimate(0.76, 0.42, 0.9)), estimate_text("CCC", Estimate(why="undefined: no pairs"))
    ('CCC 0.76 (0.42 … 0.90)', 'CCC undefined: no pairs')
    """
    if one.value is None:
        return f"{name} {one.why}"
    ends = one.interval
    span = f" ({number(ends[0], sign=sign)} … {number(ends[1], sign=sign)})" if ends else ""
    return f"{name} {number(one.value, sign=sign)}{span}"


def sentence(text: str, names: Iterable[str] = ()) -> str:
    """The text with a capital at its beginning, unless one of these names stands there."""
    return text if text.startswith(tuple(names)) else f"{text[:1].upper()}{text[1:]}"


def wrapped(text: str, inches: float) -> str:
    """The text in lines that fit into a width."""
    lines = (textwrap.wrap(line, max(16, int(inches * _CHARACTERS_PER_INCH))) for line in text.splitlines())
    return "\n".join(part for line in lines for part in line)


# -- a sheet


class Sheet:
    """Rows of panels below a title and above a caption, each panel as large as it is told to be.

    The places are worked out when all is drawn, so that what is written above a panel has room and does not change its
    size. All lengths are in inches.
    """

    def __init__(self, left: float = 0.7, least: float = 4.6) -> None:
        """`left` is the room for ticks and label of the first panel, `least` the width for title and caption."""
        from matplotlib.figure import Figure

        self.figure = Figure()
        self._left = left
        self._least = least
        self._rows: list[list[Axes]] = []
        self._sizes: dict[Axes, tuple[float, float]] = {}
        self._lines: dict[Axes, int] = {}

    def panels(self, count: int, width: float = PANEL_IN, height: float | None = None) -> list[Axes]:
        """More panels, `ACROSS` beside each other."""
        made = [self.figure.add_axes((0, 0, 1, 1), label=f"{len(self._sizes) + at}") for at in range(count)]
        self._sizes |= dict.fromkeys(made, (width, height or width))
        self._rows += [made[at : at + ACROSS] for at in range(0, count, ACROSS)]
        return made

    def head(self, axes: Axes, *lines: str) -> None:
        """What a panel says, above it."""
        text = "\n".join(wrapped(line, self._sizes[axes][0] + 0.6) for line in lines if line)
        axes.set_title(text)
        self._lines[axes] = text.count("\n") + 1

    def finish(self, title: str, caption: Sequence[str]) -> Figure:
        """Give everything its place, with the title above it all and the sentences of the caption below."""
        rights = [self._left + sum(self._sizes[axes][0] + _BETWEEN_IN for axes in row) for row in self._rows]
        width = max(*rights, self._least)
        sentences = [one if one.endswith(".") else f"{one}." for one in dict.fromkeys(caption) if one]
        title = wrapped(title, width)
        below = wrapped("\n".join(sentences), width)
        at = _line_in(title) + _SPACE_IN
        places: dict[Axes, tuple[float, float]] = {}
        for row in self._rows:
            at += max(self._lines.get(axes, 0) for axes in row) * _LINE_IN + _SPACE_IN
            x = self._left
            for axes in row:
                places[axes] = (x, at + self._sizes[axes][1])
                x += self._sizes[axes][0] + _BETWEEN_IN
            feet = max(axes.get_xlabel().count("\n") for axes in row) * _LINE_IN + _FOOT_IN
            at += max(self._sizes[axes][1] for axes in row) + feet
        height = at + _line_in(below) + _SPACE_IN
        self.figure.set_size_inches(width, height)
        for axes, (x, bottom) in places.items():
            wide, high = self._sizes[axes]
            axes.set_position((x / width, 1 - bottom / height, wide / width, high / height))
        self.figure.text(0, 1, title, va="top", weight="bold")
        self.figure.text(0, 1 - at / height, below, va="top")
        return self.figure


def _line_in(text: str) -> float:
    """The height of a text."""
    return (text.count("\n") + 1) * _LINE_IN if text else 0.0


def words(axes: Axes, text: str) -> None:
    """A panel with nothing to show says why."""
    axes.text(0.5, 0.5, wrapped(text, PANEL_IN * 0.85), transform=axes.transAxes, ha="center", va="center")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(BAND)
    axes.spines[:].set_visible(True)


def save(figure: Figure, folder: Path, name: str, title: str) -> list[Path]:
    """Write a figure as PNG and SVG; the same figure gives the same bytes. Raises `OSError` as writing does."""
    folder.mkdir(parents=True, exist_ok=True)
    box = figure.get_tightbbox().padded(_MARGIN_IN)  # in inches
    written = []
    for kind in PLOT_FORMATS:
        # No date and no version: what is drawn again from the same scores is the same file.
        about = {"Title": title, "Software": None} if kind == "png" else {"Title": title, "Date": None, "Creator": None}
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=DPI, metadata=about, bbox_inches=box)
        path = folder / f"{name}.{kind}"
        path.write_bytes(content.getvalue())
        written.append(path)
    return written
