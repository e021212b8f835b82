"""Response against reference as strings: equality, presence, edit distance and shared words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.text import Normalise, bare_words, normalised, spaced
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.sample import Sample

Distance = Literal["levenshtein", "hamming", "jaro", "jaro_winkler"]
"""A measure of how far two strings are apart; see `similarity`."""


def compared(sample: Sample, how: Normalise) -> tuple[str, str] | Undefined:
    """Response and reference of an admitted sample, normalised; undefined when no reference is left."""
    response = normalised(sample.response or "", how)
    reference = normalised(sample.reference or "", how)
    if not reference:
        return Undefined("no_text", f"nothing is left of the reference after normalise: {how}")
    return response, reference


def similarity(one: str, other: str, measure: Distance = "levenshtein") -> float:
    """How alike two strings are, 0 to 1; the same string gives 1.

    `levenshtein`: 1 - insertions, deletions and substitutions / length of the longer. `hamming`: the
    same with substitutions only, what is longer counted as different. `jaro`, `jaro_winkler`: the record
    linkage measures (Jaro 1989, Winkler 1990; prefix weight 0.1, applied above 0.7).

    >>> similarity("kitten", "sitting")  # 3 edits, 7 characters
    0.5714285714285714
    >>> similarity("Rome", "Romes", "hamming")
    0.8
    """
    if measure == "jaro":
        return Jaro.similarity(one, other)
    if measure == "jaro_winkler":
        return JaroWinkler.similarity(one, other)
    longer = max(len(one), len(other))
    if not longer:
        return 1.0
    edits = Hamming.distance(one, other) if measure == "hamming" else Levenshtein.distance(one, other)
    return (longer - edits) / longer


def common(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """The tokens that two texts have in common, sorted, each as often as in both.

    >>> common(["b", "a", "a", "c"], ["a", "a", "a", "b"])
    ['a', 'a', 'b']
    """
    left = Counter(other)
    found = []
    for token in one:
        if left.get(token, 0):
            left[token] -= 1
            found.append(token)
    return sorted(found)


def overlap_f1(shared: int, response: int, reference: int) -> float:
    """2 · shared / (tokens of both); one of the two must not be empty.

    This equals the harmonic mean of shared / response and shared / reference.

    >>> overlap_f1(1, 3, 1)  # "in paris paris" and "paris": 2 * 1 / (3 + 1)
    0.5
    """
    return 2 * shared / (response + reference)


@metric
@dataclass(frozen=True, repr=False)
class ExactMatch(Unjudged):
    """1 when response and reference are the same string, else 0.

    Reads: response, reference.
    Asks: nothing.
    Range: 0 or 1, higher is better.
    Settings: normalise, `none` (default: as they stand, to the last blank), `case` (case folded) or
        `full` (Unicode NFKC, case folded, white space collapsed, punctuation at the ends of words removed).
    Undefined when: nothing is left of the reference after normalising (`no_text`).
    Differs from its source in: the setting; an absent reference, which Ragas compares as a value.
    Source: Ragas 0.4.3, ExactMatch.

    Example::

        >>> normalised("paris.", "full") == normalised("Paris", "full")
        True
    """

    normalise: Normalise = "none"

    reads: ClassVar[tuple[str, ...]] = ("response", "reference")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        texts = compared(sample, self.normalise)
        if isinstance(texts, Undefined):
            return texts
        response, reference = texts
        same = response == reference
        reason = f"the response {'equals' if same else 'differs from'} the reference"
        return Scored(float(same), reason, {"response": response, "reference": reference})


@metric
@dataclass(frozen=True, repr=False)
class StringPresence(Unjudged):
    """1 when the reference is a substring of the response, else 0.

    Reads: response, reference.
    Asks: nothing.
    Range: 0 or 1, higher is better. A part of a word counts: "10" is present in "100".
    Settings: normalise, `none` (default), `case` or `full`, as for ExactMatch.
    Undefined when: nothing is left of the reference after normalising (`no_text`).
    Differs from its source in: the setting; an empty reference, which gives 1 in Ragas.
    Source: Ragas 0.4.3, StringPresence.

    Example::

        >>> normalised("Paris", "case") in normalised("It is PARIS.", "case")
        True
    """

    normalise: Normalise = "none"

    reads: ClassVar[tuple[str, ...]] = ("response", "reference")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        texts = compared(sample, self.normalise)
        if isinstance(texts, Undefined):
            return texts
        response, reference = texts
        at = response.find(reference)
        reason = f"the reference {'is not in the response' if at < 0 else f'stands in the response at {at}'}"
        detail = {"response": response, "reference": reference, "at": None if at < 0 else at}
        return Scored(float(at >= 0), reason, detail)


@metric
@dataclass(frozen=True, repr=False)
class NonLLMStringSimilarity(Unjudged):
    """1 - edits between response and reference / length of the longer (or another string similarity).

    Reads: response, reference.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: distance_measure, `levenshtein` (default), `hamming`, `jaro` or `jaro_winkler`; normalise,
        `none` (default), `case` or `full`, as for ExactMatch.
    Undefined when: nothing is left of the reference after normalising (`no_text`).
    Differs from its source in: the measure is a word here; edit similarities are the exact fraction.
    Source: Ragas 0.4.3, NonLLMStringSimilarity; distances by RapidFuzz.

    Example::

        >>> similarity("kitten", "sitting")  # 1 - 3 edits / 7 characters
        0.5714285714285714
    """

    distance_measure: Distance = "levenshtein"
    normalise: Normalise = "none"

    reads: ClassVar[tuple[str, ...]] = ("response", "reference")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        texts = compared(sample, self.normalise)
        if isinstance(texts, Undefined):
            return texts
        value = similarity(*texts, self.distance_measure)
        measure = self.distance_measure.replace("_", "-")
        detail = {"response": texts[0], "reference": texts[1]}
        return Scored(value, f"{measure} similarity of response and reference is {value:.3g}", detail)


@metric
@dataclass(frozen=True, repr=False)
class TokenF1(Unjudged):
    """2 · shared tokens / (response tokens + reference tokens), each token counted as often as in both.

    Reads: response, reference.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: normalise, `full` (default), `case` or `none`, as for ExactMatch.
    Undefined when: the reference has no token after normalising (`no_text`).
    Differs from its source in: articles count; punctuation inside a word stays, so 3.5 is one token and
        not 35; each character of a script that is written without spaces is a token.
    Source: SQuAD 1.1 evaluation (Rajpurkar et al. 2016), the F1 of answers. Not in Ragas.

    Example::

        >>> overlap_f1(1, len(tokens("It is Paris.", "full")), len(tokens("Paris", "full")))  # 2 * 1 / (3 + 1)
        0.5
    """

    normalise: Normalise = "full"

    reads: ClassVar[tuple[str, ...]] = ("response", "reference")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        response = tokens(sample.response or "", self.normalise)
        reference = tokens(sample.reference or "", self.normalise)
        if not reference:
            return Undefined("no_text", f"the reference has no token after normalise: {self.normalise}")
        shared = common(response, reference)
        sizes = f"{len(response)} of the response and {len(reference)} of the reference"
        detail = {"shared": shared, "response_tokens": len(response), "reference_tokens": len(reference)}
        value = overlap_f1(len(shared), len(response), len(reference))
        return Scored(value, f"{len(shared)} tokens are shared by {sizes}", detail)


def tokens(text: str, how: Normalise) -> list[str]:
    """The words of a normalised text; a character of a script without spaces is a word.

    >>> tokens("東京。", "full")
    ['東', '京']
    """
    return bare_words(spaced(text)) if how == "full" else normalised(spaced(text), how).split()
