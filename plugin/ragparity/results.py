"""What a run leaves: one record per row and evaluator, the summary over them, and both as files.

The log `results.jsonl` grows as outcomes come, so nothing that was scored is lost; everything else in the
folder is made from it when the run ends.
"""

from __future__ import annotations

import json
import math
import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragparity.core.outcome import Failed, Outcome, Scored, Status, Undefined
from ragparity.core.student import t_quantile

if TYPE_CHECKING:
    from ragparity.core.ports import Tally

AT_THRESHOLD = 1e-9
"""A score this close below a threshold has reached it: it differs by float rounding only."""


def plain(value: Any) -> Any:
    """A value of some other type as JSON can hold it."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, Iterable):
        return list(value)
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


def json_line(value: Mapping[str, Any]) -> bytes:
    """Strict JSON in UTF-8 on one line: no NaN, no escapes beyond those that JSON demands."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)
    return text.encode("utf-8", "replace") + b"\n"


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
    input_tokens: int | None = 0
    output_tokens: int | None = 0
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
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "cached_tokens": self.cached_tokens,
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
        copied = ("row", "id", "key", "evaluator", "metric", "backend", "judge", "passed", "calls", "input_tokens")
        more = ("output_tokens", "reasoning_tokens", "cached_tokens", "seconds")
        return cls(outcome=outcome, **{name: line[name] for name in (*copied, *more) if name in line})


def record(
    *, row: int, id: str, key: str, evaluator: str, metric: str, backend: str, judge: str | None,  # noqa: A002  # the column's name
    threshold: float | None, higher_is_better: bool, outcome: Outcome, tally: Tally, seconds: float,
) -> Record:  # fmt: skip
    """A record; `passed` says whether a scored row reaches the threshold, and is nothing without one."""
    passed = None
    if threshold is not None and isinstance(outcome, Scored):
        gap = outcome.value - threshold if higher_is_better else threshold - outcome.value
        passed = gap >= -AT_THRESHOLD
    return Record(
        row=row, id=id, key=key, evaluator=evaluator, metric=metric, backend=backend, judge=judge, outcome=outcome, passed=passed,
        calls=tally.calls, input_tokens=tally.input_tokens, output_tokens=tally.output_tokens,
        reasoning_tokens=tally.reasoning_tokens, cached_tokens=tally.cached_tokens, seconds=seconds,
    )  # fmt: skip


@dataclass(slots=True)
class Summary:
    """The figures of one evaluator, kept while records come; memory grows by one float per scored row.

    Means are over scored rows and not rounded; `coverage` is scored / total; `ci95` is mean ± t·s/√n with
    Student's t at n−1 degrees of freedom, absent under two scored rows.
    """

    evaluator: str
    metric: str
    backend: str
    judge: str | None
    higher_is_better: bool
    n_total: int = 0
    scores: array[float] = field(default_factory=lambda: array("d"))
    errors: Counter[str] = field(default_factory=Counter)
    undefined: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    passed: int = 0
    judged_passed: int = 0
    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    price: tuple[float, float] | None = None

    def add(self, one: Record) -> None:
        """Count one record."""
        outcome = one.outcome
        if isinstance(outcome, Scored):
            self.scores.append(outcome.value)
        elif isinstance(outcome, Undefined):
            self.undefined[outcome.why] += 1
        else:
            self.errors[outcome.kind] += 1
        if not isinstance(outcome, Failed) and outcome.detail.get("refusal"):
            self.refusals += 1
        if one.passed is not None:
            self.judged_passed += 1
            self.passed += one.passed
        self.calls += one.calls
        for name in ("input_tokens", "output_tokens"):
            seen, so_far = getattr(one, name), getattr(self, name)
            setattr(self, name, None if seen is None or so_far is None else so_far + seen)

    @property
    def n_scored(self) -> int:
        """Rows with a score."""
        return len(self.scores)

    @property
    def mean(self) -> float | None:
        """Mean over the scored rows, or nothing."""
        return math.fsum(self.scores) / len(self.scores) if self.scores else None

    @property
    def coverage(self) -> float | None:
        """Scored rows / all rows."""
        return self.n_scored / self.n_total if self.n_total else None

    @property
    def cost(self) -> float | None:
        """Tokens at the price of the judge; nothing without a price or where tokens are unknown."""
        if self.price is None or self.input_tokens is None or self.output_tokens is None:
            return None
        return (self.input_tokens * self.price[0] + self.output_tokens * self.price[1]) / 1e6

    def stderr(self) -> float | None:
        """s/√n with the sample standard deviation, absent under two scored rows."""
        n = self.n_scored
        return statistics.stdev(self.scores) / math.sqrt(n) if n > 1 else None

    def as_json(self) -> dict[str, Any]:
        """The evaluator's entry of `summary.json`."""
        n_undefined, n_failed = self.undefined.total(), self.errors.total()
        mean, stderr = self.mean, self.stderr()
        half = None if stderr is None else t_quantile(self.n_scored - 1) * stderr
        return {
            "metric": self.metric,
            "backend": self.backend,
            "judge": self.judge,
            "higher_is_better": self.higher_is_better,
            "n_total": self.n_total,
            "n_scored": self.n_scored,
            "n_undefined": n_undefined,
            "n_failed": n_failed,
            "n_not_run": self.n_total - self.n_scored - n_undefined - n_failed,
            "n_refusals": self.refusals,
            "coverage": self.coverage,
            "mean": mean,
            "stderr": stderr,
            "ci95": None if half is None or mean is None else [mean - half, mean + half],
            "median": statistics.median(self.scores) if self.scores else None,
            "min": min(self.scores, default=None),
            "max": max(self.scores, default=None),
            "passed": self.passed if self.judged_passed else None,
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost": self.cost,
            "errors": dict(self.errors),
            "undefined": dict(self.undefined),
        }
