"""What a run leaves: one record per row and evaluator, the summary over them, and both as files.

The log `results.jsonl` grows as outcomes come, so nothing that was scored is lost; everything else in the
folder is made from it when the run ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ragparity.core.outcome import Failed, Outcome, Scored, Status, Undefined
from ragparity.core.ports import known_sum
from ragparity.core.values import plain, whole
from ragparity.repetitions import Repetitions
from ragparity.scores import Scores
from ragparity.spending import cost_of, cost_of_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ragparity.core.ports import Tally

    Made = tuple["Record", Tally]
    """A record and what it cost."""

AT_THRESHOLD = 1e-9
"""A score this close below a threshold has reached it: it differs by float rounding only."""


COUNTS = ("calls", "cached_calls", "shared_calls", "embedding_calls")
TOKENS = ("input_tokens", "output_tokens", "embedding_tokens")
"""Sums that are unknown as soon as a part is."""
TOKENS_WITHIN = ("reasoning_tokens", "cached_tokens")
"""Tokens among those above, as far as they are reported."""
SPENT = (*COUNTS, *TOKENS, *TOKENS_WITHIN)
"""What a record and a summary say about calls and tokens, by the names of a `Tally`."""
_counts_of = attrgetter(*COUNTS)

DEEPEST = 8
"""Levels at which the parts of a value that has no plain form are still looked at one by one."""
LONGEST_UNKNOWN = 1000
"""Characters kept of a value that JSON does not know."""

_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False)


text_in_json: Callable[[str], str] = _LINE.encode
"""A text as it stands in JSON, with half characters still."""


def json_in_text(value: Any, *, indent: int | None = None) -> str:
    """The JSON of `json_text`, with half characters still."""
    encode = _LINE.encode
    if indent is not None:
        encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent).encode
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError):  # not strict, not JSON, or a value that contains itself
        return encode(_plain_or_text(value))


def utf_8(text: str) -> bytes:
    """The text as bytes, without half characters."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return whole(text).encode()


def json_text(value: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    r"""Strict JSON in UTF-8: no NaN, no half characters, no escapes beyond those that JSON demands.

    Values of other types are made plain (see `ragparity.core.values.plain`); what has no plain form is kept as its
    text, cut after 1000 characters.

    >>> json_text({"share": float("nan"), "text": "größer"}).decode()
    '{"share": null, "text": "größer"}'
    """
    return utf_8(json_in_text(value, indent=indent))


def json_line(value: Mapping[str, Any]) -> bytes:
    """The same on one line, with the end of the line."""
    return json_text(value) + b"\n"


def _plain_or_text(value: Any, depth: int = 0) -> Any:
    """The value made plain, part by part, so that one odd part does not cost the others."""
    try:
        return plain(value)
    except (TypeError, RecursionError):
        if isinstance(value, Mapping) and depth < DEEPEST:
            return {str(key): _plain_or_text(part, depth + 1) for key, part in value.items()}
        if isinstance(value, list | tuple) and depth < DEEPEST:
            return [_plain_or_text(part, depth + 1) for part in value]
        return whole(str(value)[:LONGEST_UNKNOWN])


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The outcome of one row and one evaluator, with what it cost. `row` counts from 0 in data order.

    `key` stands for the row's content, the metric and the judge: a record is reused only under the same key.
    """

    row: int
    id: str
    key: str
    evaluator: str
    metric: str
    backend: str
    outcome: Outcome
    judge: str | None = None
    passed: bool | None = None
    calls: int = 0
    cached_calls: int = 0
    shared_calls: int = 0
    embedding_calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    embedding_tokens: int | None = 0
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """`scored`, `undefined` or `failed`."""
        return self.outcome.status

    @property
    def score(self) -> float | None:
        """The score of a scored row, else nothing."""
        return self.outcome.value if isinstance(self.outcome, Scored) else None

    def as_json(self) -> dict[str, Any]:
        """The line of `results.jsonl`."""
        outcome = self.outcome
        failed = outcome if isinstance(outcome, Failed) else None
        return {
            "id": self.id,
            "evaluator": self.evaluator,
            "metric": self.metric,
            "backend": self.backend,
            "status": outcome.status,
            "score": self.score,
            "passed": self.passed,
            "why": outcome.why if isinstance(outcome, Undefined) else None,
            "reason": None if failed else outcome.reason,  # type: ignore[union-attr]  # only a failure has no reason
            "detail": dict(outcome.detail),
            "error": failed
            and {"kind": failed.kind, "message": failed.message, "raw": failed.raw, "attempts": failed.attempts},
            "judge": self.judge,
            **{name: getattr(self, name) for name in SPENT},
            "seconds": round(self.seconds, 4),
            "row": self.row,
            "key": self.key,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Record:
        """The record of a line of `results.jsonl`."""
        outcome: Outcome
        error = line.get("error") or {}
        if line["status"] == "scored":
            outcome = Scored(line["score"], line["reason"], line["detail"])
        elif line["status"] == "undefined":
            outcome = Undefined(line["why"], line["reason"], line["detail"])
        else:
            outcome = Failed(error["kind"], error["message"], error["attempts"], error["raw"], line["detail"])
        copied = ("row", "id", "key", "evaluator", "metric", "backend", "judge", "passed", "seconds", *SPENT)
        return cls(outcome=outcome, **{name: line[name] for name in copied if name in line})


def record(
    *, row: int, id: str, key: str, evaluator: str, metric: str, backend: str, judge: str | None,  # noqa: A002  # the column's name
    threshold: float | None, higher_is_better: bool, outcome: Outcome, tally: Tally, seconds: float,
) -> Record:  # fmt: skip
    """A record; `passed` says whether a scored row reaches the threshold, and is nothing without one."""
    passed = None
    if threshold is not None and isinstance(outcome, Scored):
        passed = reaches(outcome.value, threshold, higher_is_better=higher_is_better)
    spent = {name: getattr(tally, name) for name in SPENT} if any(_counts_of(tally)) else {}
    return Record(
        row=row, id=id, key=key, evaluator=evaluator, metric=metric, backend=backend, judge=judge,
        outcome=outcome, passed=passed, seconds=seconds, **spent,
    )  # fmt: skip


def reaches(score: float, threshold: float, *, higher_is_better: bool) -> bool:
    """Whether a score is as good as a threshold, or as good as equal to it."""
    gap = score - threshold if higher_is_better else threshold - score
    return gap >= -AT_THRESHOLD


@dataclass(slots=True)
class Summary:
    """The figures of one evaluator, kept while records come; memory grows by 8 bytes per scored row.

    Means are over scored rows; `coverage` is scored / total.
    """

    evaluator: str
    metric: str
    backend: str
    judge: str | None
    higher_is_better: bool
    n_total: int = 0
    scores: Scores = field(default_factory=Scores)
    errors: Counter[str] = field(default_factory=Counter)
    undefined: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    passed: int = 0
    judged_passed: int = 0
    calls: int = 0
    cached_calls: int = 0
    shared_calls: int = 0
    embedding_calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    embedding_tokens: int | None = 0
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    price: tuple[float, float] | None = None
    embedding_price: float | None = None
    repetitions: Repetitions = field(default_factory=Repetitions)

    def add(self, one: Record) -> None:
        """Count one record."""
        outcome = one.outcome
        if isinstance(outcome, Scored):
            self.scores.add(outcome.value)
            if values := outcome.detail.get("repetitions"):
                self.repetitions.add(values, outcome.detail.get("flip_rate"))
        elif isinstance(outcome, Undefined):
            self.undefined[outcome.why] += 1
        else:
            self.errors[outcome.kind] += 1
        if not isinstance(outcome, Failed) and outcome.detail.get("refusal"):
            self.refusals += 1
        if one.passed is not None:
            self.judged_passed += 1
            self.passed += one.passed
        if any(_counts_of(one)):
            self._add_spent(one)

    def _add_spent(self, one: Record) -> None:
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(one, name))
        for name in TOKENS:
            setattr(self, name, known_sum(getattr(self, name), getattr(one, name)))
        for name in TOKENS_WITHIN:
            if (seen := getattr(one, name)) is not None:
                setattr(self, name, (getattr(self, name) or 0) + seen)

    @property
    def n_scored(self) -> int:
        """Rows with a score."""
        return len(self.scores)

    @property
    def n_not_run(self) -> int:
        """Rows that have not met the evaluator."""
        return self.n_total - self.n_scored - self.undefined.total() - self.errors.total()

    @property
    def mean(self) -> float | None:
        """Mean over the scored rows, or nothing."""
        return self.scores.mean

    @property
    def coverage(self) -> float | None:
        """Scored rows / all rows."""
        return self.n_scored / self.n_total if self.n_total else None

    @property
    def cost(self) -> float | None:
        """Tokens at the prices of judge and embedder; nothing without a price or where tokens are unknown.

        What an embedder without a price costs is not in it.
        """
        judged = cost_of(self.input_tokens, self.output_tokens, self.price)
        if self.embedding_price is None:
            return judged
        if self.price is None and not self.calls:
            judged = 0.0
        vectors = cost_of_vectors(self.embedding_tokens, self.embedding_price)
        return None if judged is None or vectors is None else judged + vectors

    def as_json(self) -> dict[str, Any]:
        """The evaluator's entry of `summary.json`."""
        n_undefined, n_failed = self.undefined.total(), self.errors.total()
        return {
            "metric": self.metric,
            "backend": self.backend,
            "judge": self.judge,
            "higher_is_better": self.higher_is_better,
            "n_total": self.n_total,
            "n_scored": self.n_scored,
            "n_undefined": n_undefined,
            "n_failed": n_failed,
            "n_not_run": self.n_not_run,
            "n_refusals": self.refusals,
            "coverage": self.coverage,
            **self.scores.figures(),
            "passed": self.passed if self.judged_passed else None,
            "repetitions": self.repetitions.as_json(),
            **{name: getattr(self, name) for name in SPENT},
            "cost": self.cost,
            "errors": dict(self.errors),
            "undefined": dict(self.undefined),
        }


@dataclass(slots=True)
class Trouble:
    """Why scores are missing: one kind of failure or one reason for being undefined, with the first case of it.

    `count` counts scores, not rows.
    """

    status: Status
    word: str
    message: str
    id: str
    evaluator: str
    count: int = 0
    evaluators: dict[str, None] = field(default_factory=dict)


class Troubles:
    """Every reason for a missing score, with how often it occurred."""

    def __init__(self) -> None:
        self._found: dict[tuple[Status, str], Trouble] = {}

    def add(self, one: Record) -> None:
        """Count one record, where it has no score."""
        outcome = one.outcome
        if isinstance(outcome, Scored):
            return
        if isinstance(outcome, Failed):
            word, message = str(outcome.kind), outcome.message
        else:
            word, message = outcome.why, outcome.reason or outcome.why
        found = self._found.get((outcome.status, word))
        if found is None:
            found = Trouble(outcome.status, word, message, one.id, one.evaluator)
            self._found[outcome.status, word] = found
        found.count += 1
        found.evaluators[one.evaluator] = None

    def __iter__(self) -> Iterator[Trouble]:
        """Failures first, the most frequent of each first."""
        return iter(sorted(self._found.values(), key=lambda one: (one.status != "failed", -one.count, one.word)))

    def __len__(self) -> int:
        return len(self._found)
