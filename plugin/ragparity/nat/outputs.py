"""Records as the toolkit's output: a row without a score has `score: null` and says why, never a number.

The average is over the rows with a score and not rounded; counts and coverage stand beside it.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from nat.plugins.eval.data_models.evaluator_io import EvalOutput, EvalOutputItem
from pydantic import ConfigDict

from ragparity.core.outcome import Failed, Undefined
from ragparity.core.values import plain, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragparity.core.row import Row
    from ragparity.results import Record, Summary
    from ragparity.runner import Evaluator

MISSING = "missing:"
IN_BOTH_LANES = frozenset({"response", "reference"})
"""Fields that an ATIF sample carries; one that lacks them lacks them in the data."""


class Output(EvalOutput):  # type: ignore[misc]  # the toolkit is not installed where types are checked
    """The toolkit's output with counts beside the average: `n_total`, `n_scored`, `coverage`, `errors`, …"""

    model_config = ConfigDict(extra="allow")


def output(items: Sequence[EvalOutputItem], average: float | None, counts: Mapping[str, Any]) -> Output:
    """The output of one evaluator."""
    return Output(average_score=average, eval_output_items=list(items), **dict(counts))


def counts_of(summary: Summary) -> dict[str, Any]:
    """The figures of a summary without the mean, which is the average."""
    return {name: plain(value) for name, value in summary.as_json().items() if name != "mean"}


def why(record: Record, *, atif: bool, no_passages: str) -> str | None:
    """Why a row has no score, in one line; nothing where it has one."""
    outcome = record.outcome
    if isinstance(outcome, Failed):
        return whole(f"{outcome.kind}: {outcome.message}")
    if not isinstance(outcome, Undefined):
        return None
    text = f"undefined: {outcome.why}"
    missing = outcome.why.removeprefix(MISSING) if outcome.why.startswith(MISSING) else ""
    if atif and missing and missing not in IN_BOTH_LANES:
        return f"{text}, not in the ATIF lane"
    if missing in ("retrieved_contexts", "retrieved_context_ids") and no_passages:
        return f"{text}: {no_passages}"
    return whole(f"{text}: {outcome.reason}") if outcome.reason and not missing else text


def reasoning(record: Record, evaluator: Evaluator, row: Row) -> dict[str, Any]:
    """What a score rests on: fields, backend, judge, claims and verdicts, calls and tokens."""
    outcome = record.outcome
    found: dict[str, Any] = {
        "status": outcome.status,
        "metric": record.metric,
        "backend": record.backend,
        "judge": record.judge,
        "reason": None if isinstance(outcome, Failed) else outcome.reason,
        "fields": fields_used(evaluator, row),
        "detail": dict(outcome.detail),
        "calls": record.calls,
        "input_tokens": record.input_tokens,
        "output_tokens": record.output_tokens,
        "seconds": round(record.seconds, 4),
    }
    if record.passed is not None:
        found["passed"] = record.passed
    if isinstance(outcome, Failed):
        found |= {"attempts": outcome.attempts, "raw": outcome.raw}
    kept: dict[str, Any] = plain(found)
    return kept


def fields_used(evaluator: Evaluator, row: Row) -> dict[str, Any]:
    """The fields of the row that the metric reads, as the judge was shown them."""
    sample = row.sample
    if sample is None:
        return {}
    metric = evaluator.metric
    names = dict.fromkeys((*metric.reads, *metric.may_read))
    return {name: value for name in names if (value := getattr(sample, name, None)) is not None}


def item(item_id: Any, record: Record, evaluator: Evaluator, row: Row, *, error: str | None) -> EvalOutputItem:
    """One row of one evaluator. The id is the toolkit's own; ours stands in the reasoning where it differs."""
    said = reasoning(record, evaluator, row)
    if record.id != str(item_id):
        said["row"] = record.id
    return EvalOutputItem(id=native_id(item_id), score=record.score, reasoning=said, error=error)


def native_id(item_id: Any) -> Any:
    """An id out of the toolkit's data frame as JSON can hold it; equal to what it was."""
    convert = getattr(item_id, "item", None)
    return convert() if callable(convert) else item_id


def unbuilt(ids: Sequence[Any], problem: str, label: str) -> list[EvalOutputItem]:
    """The items of an evaluator that could not be made: each says why."""
    said = {"status": "failed", "metric": label, "reason": None}
    return [EvalOutputItem(id=native_id(one), score=None, reasoning=dict(said), error=problem) for one in ids]


def side_by_side(item_id: Any, sides: Mapping[str, EvalOutputItem | str]) -> EvalOutputItem:
    """One row of several backends: the mean of those with a score, their spread, and who has none and why.

    `spread` is the largest score less the smallest, `stdev` the sample standard deviation; both need two scores.
    """
    scores: dict[str, float] = {}
    unscored: dict[str, str] = {}
    shown: dict[str, Any] = {}
    for backend, side in sides.items():
        if isinstance(side, str):
            unscored[backend] = side
            continue
        shown[backend] = {"score": side.score, "error": side.error, **side.reasoning}
        if side.score is None:
            unscored[backend] = side.error or "no score"
        else:
            scores[backend] = side.score
    values = list(scores.values())
    mean = math.fsum(values) / len(values) if values else None
    several = len(values) > 1
    said = {
        "mean": mean,
        "spread": max(values) - min(values) if several else None,
        "stdev": statistics.stdev(values) if several else None,
        "scores": scores,
        "unscored": unscored,
        "by_backend": shown,
    }
    error = None if values else "; ".join(f"{backend}: {text}" for backend, text in unscored.items())
    return EvalOutputItem(id=native_id(item_id), score=mean, reasoning=said, error=error)
