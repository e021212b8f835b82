"""Every error that ragparity raises on purpose.

::

    EvaluationError
    ├── ConfigError            before the first call; the command ends with exit code 2
    │   ├── UnknownMetric      did you mean …?
    │   ├── UnknownBackend
    │   └── MissingExtra       names the install line; keeps the real import error as its cause
    ├── SampleError            this row, this metric (names the field and what was seen)
    └── JudgeError             carries the judge, the attempts and the raw text
        ├── JudgeUnavailable   retryable: timeout, 429, 5xx, no connection
        ├── Truncated          the finish reason says that the token limit was reached
        ├── MalformedVerdict   retryable: each retry says what was wrong with the last reply
        ├── AmbiguousRating    retryable: two candidates, or off the scale
        ├── JudgeRejected      not retryable: 400, 401, 403, 404
        ├── JudgeRefused       the judge declined to answer
        ├── NotCached          nobody may be asked, and no stored reply answers this question
        └── BudgetSpent        no further call may be made; leaves no record

A `JudgeError` becomes one failed row; its `kind` is the word written to the results.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal[
    "timeout",
    "rate_limit",
    "unavailable",
    "auth",
    "rejected",
    "truncated",
    "truncated_reasoning",
    "malformed",
    "ambiguous",
    "refused",
    "empty",
    "context_too_long",
    "not_cached",
    "out_of_range",
    "input",
    "internal",
]
"""Why a row has no score although its input was complete."""


class EvaluationError(Exception):
    """Base of every error of this package."""


class ConfigError(EvaluationError):
    """The eval file, a metric, a keyword argument or a package is wrong; nothing was asked yet."""


class UnknownMetric(ConfigError):
    """No backend in question has a metric of this name."""


class UnknownBackend(ConfigError):
    """No backend of this name."""


class MissingExtra(ConfigError):
    """An optional package is absent or does not import; the message says what to install."""


class SampleError(EvaluationError):
    """One row cannot be read or cannot be scored by one metric; other rows are not affected."""


class JudgeError(EvaluationError):
    """A judge or an embedder gave no usable answer.

    `kind` is the word in the results, `raw` the text that came back (if any), `attempts` how many
    times the question was put, `retry_after` seconds the endpoint asked to wait (if it did), `retryable`
    whether putting the question again can change anything, `ends_entry` whether no other question to this
    llm entry can succeed either. `detail` is kept in the failed record.
    """

    default_kind: ClassVar[Kind] = "unavailable"
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        kind: Kind | None = None,
        judge: str = "",
        raw: str | None = None,
        attempts: int = 1,
        retry_after: float | None = None,
        retryable: bool | None = None,
        ends_entry: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind or self.default_kind
        self.judge = judge
        self.raw = raw
        self.attempts = attempts
        self.retry_after = retry_after
        self.detail: dict[str, object] = {}
        self.retryable = self.default_retryable if retryable is None else retryable
        self.ends_entry = ends_entry


class JudgeUnavailable(JudgeError):
    """No answer: no connection, a time-out, 429 or 5xx (kinds `unavailable`, `timeout`, `rate_limit`)."""

    default_retryable = True


class Truncated(JudgeError):
    """The token limit ended the answer (kinds `truncated`, `truncated_reasoning`)."""

    default_kind = "truncated"


class MalformedVerdict(JudgeError):
    """The answer does not have the shape that was asked for (kinds `malformed`, `empty`)."""

    default_kind = "malformed"
    default_retryable = True


class AmbiguousRating(JudgeError):
    """No single rating on the scale can be read from the answer."""

    default_kind = "ambiguous"
    default_retryable = True


class JudgeRejected(JudgeError):
    """The endpoint refuses the request (kinds `auth`, `rejected`, `context_too_long`)."""

    default_kind = "rejected"


class JudgeRefused(JudgeError):
    """The judge declines, or a content filter stopped it."""

    default_kind = "refused"


class NotCached(JudgeError):
    """A run that asks nobody needs a reply that is not stored; the message names what differs."""

    default_kind = "not_cached"


class BudgetSpent(JudgeError):
    """The budget of the run is spent: this call was not made, and what needed it counts as not run."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt word, with a leading space, or nothing.

    >>> did_you_mean("Faithfullness", ["Faithfulness", "ContextRecall"])
    ' Did you mean Faithfulness?'
    >>> did_you_mean("zzz", ["Faithfulness"])
    ''
    """
    by_folded = {name.casefold(): name for name in known}
    close = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean {by_folded[close[0]]}?" if close else ""
