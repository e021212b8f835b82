"""ROUGE-1, ROUGE-2 and ROUGE-L in any script: shared words, word pairs and word order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from rapidfuzz.distance import LCSseq

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.text import words
from ragparity.metrics.strings import common
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.sample import Sample

RougeType = Literal["rouge1", "rouge2", "rougeL"]
Mode = Literal["fmeasure", "precision", "recall"]


class Overlap(NamedTuple):
    """Units that response and reference share, and how many each has."""

    shared: int
    response: int
    reference: int


def overlap(response: Sequence[str], reference: Sequence[str], rouge_type: RougeType) -> Overlap:
    """The overlap of two lists of words: words, word pairs, or the longest common subsequence of words.

    >>> overlap(["a", "b", "c"], ["a", "c"], "rougeL")
    Overlap(shared=2, response=3, reference=2)
    >>> overlap(["a", "b", "c"], ["a", "c"], "rouge2")
    Overlap(shared=0, response=2, reference=1)
    """
    if rouge_type == "rougeL":
        return Overlap(LCSseq.similarity(response, reference), len(response), len(reference))
    if rouge_type == "rouge1":
        return Overlap(len(common(response, reference)), len(response), len(reference))
    ours, theirs = _pairs(response), _pairs(reference)
    return Overlap(len(common(ours, theirs)), len(ours), len(theirs))


def _pairs(tokens: Sequence[str]) -> list[str]:
    return [f"{one} {other}" for one, other in pairwise(tokens)]


def rouge(found: Overlap, mode: Mode = "fmeasure") -> float:
    """Shared / response (precision), shared / reference (recall), or 2 · shared / both (their F1).

    The divisor must not be 0.

    >>> rouge(Overlap(shared=2, response=3, reference=2), "precision")
    0.6666666666666666
    """
    if mode == "precision":
        return float(Fraction(found.shared, found.response))
    if mode == "recall":
        return float(Fraction(found.shared, found.reference))
    return float(Fraction(2 * found.shared, found.response + found.reference))


@metric
@dataclass(frozen=True, repr=False)
class RougeScore(Unjudged):
    """2 · shared / (units of the response + units of the reference); units are words in order, words or pairs.

    `rougeL` takes the longest common subsequence of words, `rouge1` the words, `rouge2` the pairs of
    neighbouring words, each counted as often as in both. Mode `precision` is shared / response, `recall` is
    shared / reference.

    Reads: response, reference.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: rouge_type, `rougeL` (default), `rouge1` or `rouge2`; mode, `fmeasure` (default),
        `precision` or `recall`.
    Undefined when: the reference has no word, or for `rouge2` no pair of words (`no_words`); the response
        has none and mode is `precision` (`no_words`).
    Differs from its source in: words of every script are read, where the package that Ragas uses drops all
        but a-z and 0-9 (each character is a word in scripts written without spaces); no stemmer, which Ragas
        turns on.
    Source: Lin 2004; Ragas 0.4.3, RougeScore.

    Example::

        >>> rouge(overlap(words("It is Paris."), words("Paris"), "rougeL"))  # 2 * 1 / (3 + 1)
        0.5
    """

    rouge_type: RougeType = "rougeL"
    mode: Mode = "fmeasure"

    reads: ClassVar[tuple[str, ...]] = ("response", "reference")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        found = overlap(words(sample.response or ""), words(sample.reference or ""), self.rouge_type)
        unit = "word pair" if self.rouge_type == "rouge2" else "word"
        if not found.reference:
            return Undefined("no_words", f"the reference has no {unit}")
        if self.mode == "precision" and not found.response:
            return Undefined("no_words", f"the response has no {unit}")
        order = " in the same order" if self.rouge_type == "rougeL" else ""
        reason = (
            f"{found.shared} {unit}s are shared{order}, "
            f"of {found.response} in the response and {found.reference} in the reference"
        )
        return Scored(rouge(found, self.mode), reason, found._asdict())
