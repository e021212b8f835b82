"""Quotations in the response that the contexts really hold."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.text import spaced, words
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.sample import Sample

AtLeastOne = Annotated[int, Field(ge=1, strict=True)]

_QUOTED = re.compile(
    r"""
      (?<!\d)"([^"\n]+)"               # straight marks on one line; the one after a digit may be inches
    | \u201c([^\u201c\u201d]+)\u201d   # English
    | \u201e([^\u201e\u201c\u201d]+)[\u201c\u201d]  # German, Polish
    | \u201d([^\u201c\u201d]+)\u201d   # Swedish, Finnish
    | \u00ab([^\u00ab\u00bb]+)\u00bb   # French, Russian
    | \u00bb([^\u00ab\u00bb]+)\u00ab   # German, Danish
    | \u2039([^\u2039\u203a]+)\u203a
    | \u300c([^\u300c\u300d]+)\u300d   # Japanese, Chinese
    | \u300e([^\u300e\u300f]+)\u300f
    | (?<!\w)\u2018([^\u2018\n]+?)\u2019(?!\w)  # single marks stand at the edges of words,
    | (?<!\w)'([^'\n]+(?:'\w[^'\n]*)*)'(?!\w)   # so that an apostrophe is none
    """,
    re.VERBOSE,
)

_PLAIN_MARKS = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb", '\'\'\'\'""""""')
_EDGES = " \t\n.,;:!?\u2026\u3002\u3001\uff0c\uff01\uff1f"


def quoted_spans(text: str, min_span_words: int = 1) -> list[str]:
    """The quotations in a text that have at least this many words, in order, without their marks.

    Marks are straight or typographic, double or single, guillemets and corner brackets; a quotation
    inside another belongs to the outer one. In scripts without spaces each character is a word.

    >>> quoted_spans('It says "open all day" and "closed".', min_span_words=2)
    ['open all day']
    """
    found = (next(group for group in match.groups() if group is not None) for match in _QUOTED.finditer(text))
    return [span for span in found if len(words(span)) >= max(min_span_words, 1)]


def stands_in(span: str, passage: str, *, casefold: bool = True) -> bool:
    """Whether the words of a quotation stand in a passage one after the other, whole words only.

    Ignored are differences in white space, Unicode compatibility form and shape of the quotation marks,
    and punctuation at the ends of the quotation.

    >>> stands_in("Open all day,", "The shop is open   all day.")
    True
    >>> stands_in("art of war", "part of warning")
    False
    """
    wanted = _plain(span.strip(_EDGES), casefold=casefold)
    found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", _plain(passage, casefold=casefold))
    return bool(wanted) and found is not None


def _plain(text: str, *, casefold: bool) -> str:
    plain = " ".join(spaced(unicodedata.normalize("NFKC", text).translate(_PLAIN_MARKS)).split())
    return plain.casefold() if casefold else plain


def place(span: str, passages: Sequence[str], *, casefold: bool = True) -> int | None:
    """The index of the first passage that holds the quotation, `None` where none does.

    >>> place("all day", ["Closed on Sunday.", "Open all day."])
    1
    """
    return next((index for index, passage in enumerate(passages) if stands_in(span, passage, casefold=casefold)), None)


@metric
@dataclass(frozen=True, repr=False)
class QuotedSpansAlignment(Unjudged):
    """Quoted spans of the response that stand in a context / quoted spans of the response.

    Reads: response, retrieved_contexts.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: min_span_words (3), shorter quotations are titles and scare quotes and do not count; casefold
        (true), whether case is ignored.
    Undefined when: the response quotes nothing of that length (`no_quoted_spans`).
    Differs from its source in: no quotation, which gives 1 in Ragas; whole words only; a quotation must
        stand in one passage; marks must pair up, so that an apostrophe opens nothing.
    Source: Ragas 0.4.3, QuotedSpansAlignment.

    Example::

        >>> spans = quoted_spans('They are "open all day" but "closed on Monday".', min_span_words=3)
        >>> [place(span, ["The shop is open all day."]) for span in spans]  # 1 of 2 is found
        [0, None]
    """

    min_span_words: AtLeastOne = 3
    casefold: bool = True

    reads: ClassVar[tuple[str, ...]] = ("response", "retrieved_contexts")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        spans = quoted_spans(sample.response or "", self.min_span_words)
        if not spans:
            return Undefined("no_quoted_spans", f"the response quotes no {self.min_span_words} words or more")
        passages = sample.retrieved_contexts or ()
        places = [place(span, passages, casefold=self.casefold) for span in spans]
        judged: list[dict[str, Any]] = [
            {"text": span, "found": at is not None, "passage": at} for span, at in zip(spans, places, strict=True)
        ]
        found = len(places) - places.count(None)
        reason = f"{found} of {len(spans)} quoted spans stand in the contexts"
        return Scored(float(Fraction(found, len(spans))), reason, {"spans": judged})
