"""BLEU and chrF, counted by sacrebleu (the extra `text`), on the scale 0 to 1 and in any script."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ragparity.core.errors import MissingExtra
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.text import Normalise, normalised, spaced
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from ragparity.core.sample import Sample

Order = Annotated[int, Field(ge=1, le=10, strict=True)]
WordOrder = Annotated[int, Field(ge=0, le=10, strict=True)]


def sacrebleu_metrics(metric_name: str) -> Any:
    """The module `sacrebleu.metrics`; raises `MissingExtra` where it does not import."""
    try:
        return importlib.import_module("sacrebleu.metrics")
    except ImportError as error:
        raise MissingExtra(
            f"metric {metric_name}: needs sacrebleu, which does not import ({error}). "
            "Install it with: pip install 'ragparity[text]'"
        ) from error


def sentence_bleu(response: str, reference: str) -> tuple[float, Any]:
    """BLEU of one text against another, 0 to 1, and sacrebleu's counts.

    Both texts are one segment. Effective order: n-gram lengths that the response is too short for do not
    count, so that a short text that equals its reference gets 1. Exponential smoothing, tokeniser 13a
    after blanks are put round each character of scripts that are written without spaces.

    >>> sentence_bleu("Paris", "Paris")[0]
    1.0
    """
    counted = sacrebleu_metrics("BleuScore").BLEU(effective_order=True)
    found = counted.sentence_score(spaced(response), [spaced(reference)])
    return min(found.score / 100, 1.0), found  # the logarithms leave 1.0000000000000004 on equal texts


def sentence_chrf(response: str, reference: str, *, char_order: int = 6, word_order: int = 0, beta: int = 2) -> float:
    """The chrF of one text against another, 0 to 1. Both texts must hold more than white space.

    >>> sentence_chrf("東京", "東京")
    1.0
    """
    counted = sacrebleu_metrics("CHRFScore").CHRF(char_order=char_order, word_order=word_order, beta=beta)
    score: float = counted.sentence_score(response, [reference]).score
    return min(score / 100, 1.0)


@metric
@dataclass(frozen=True, repr=False)
class BleuScore(Unjudged):
    """Brevity penalty · geometric mean of the n-gram precisions (n = 1 to 4) of the response against the reference.

    Reads: response, reference.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: normalise, `none` (default), `case` or `full`, as for ExactMatch.
    Undefined when: the reference has no token (`no_text`).
    Differs from its source in: the whole texts are compared, where Ragas scores the first sentence of the
        response only; lengths that the response is too short for do not count (effective order), so that
        "Paris" against "Paris" is 1 and not 0; each character is a token in scripts without spaces.
    Raises: MissingExtra without sacrebleu, when the metric is built.
    Source: Papineni et al. 2002; sacrebleu sentence BLEU / 100; Ragas 0.4.3, BleuScore.

    Example::

        >>> sentence_bleu("the capital is Paris", "the capital is Paris")[0]
        1.0
    """

    normalise: Normalise = "none"

    reads: ClassVar[tuple[str, ...]] = ("response", "reference")

    def __post_init__(self) -> None:
        sacrebleu_metrics("BleuScore")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        response = normalised(sample.response or "", self.normalise)
        reference = normalised(sample.reference or "", self.normalise)
        value, found = sentence_bleu(response, reference)
        if not found.ref_len:
            return Undefined("no_text", "the reference has no token")
        matched = [
            {"n": n, "matched": correct, "of": total}
            for n, (correct, total) in enumerate(zip(found.counts, found.totals, strict=True), start=1)
        ]
        detail = {"ngrams": matched, "response_tokens": found.sys_len, "reference_tokens": found.ref_len}
        reason = (
            f"{found.counts[0]} of {found.sys_len} tokens and {found.counts[1]} of {found.totals[1]} token pairs match"
        )
        return Scored(value, reason, detail)


@metric
@dataclass(frozen=True, repr=False)
class CHRFScore(Unjudged):
    """F_beta of the mean precision and the mean recall of character n-grams (n = 1 to 6), blanks left out.

    Reads: response, reference.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: char_order (6); word_order (0; 2 gives chrF++); beta (2); normalise, `none` (default), `case`
        or `full`, as for ExactMatch.
    Undefined when: nothing is left of the reference after normalising (`no_text`).
    Differs from its source in: a blank response or reference, which is 0 in Ragas and missing here.
    Raises: MissingExtra without sacrebleu, when the metric is built.
    Source: Popović 2015; sacrebleu sentence chrF / 100; Ragas 0.4.3, CHRFScore.

    Example::

        >>> sentence_chrf("Paris", "Paris")
        1.0
    """

    char_order: Order = 6
    word_order: WordOrder = 0
    beta: Order = 2
    normalise: Normalise = "none"

    aliases: ClassVar[tuple[str, ...]] = ("ChrfScore",)
    reads: ClassVar[tuple[str, ...]] = ("response", "reference")

    def __post_init__(self) -> None:
        sacrebleu_metrics("CHRFScore")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        response = normalised(sample.response or "", self.normalise)
        reference = normalised(sample.reference or "", self.normalise)
        if not reference:
            return Undefined("no_text", f"nothing is left of the reference after normalise: {self.normalise}")
        value = sentence_chrf(
            response, reference, char_order=self.char_order, word_order=self.word_order, beta=self.beta
        )
        name = "chrF++" if self.word_order else "chrF"
        detail = {"response": response, "reference": reference}
        return Scored(value, f"{name} of response and reference is {value:.3g}", detail)
