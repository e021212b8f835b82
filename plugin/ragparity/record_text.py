"""A record as it is written twice: as a line of the log, and as an item of the output file of its evaluator.

Both hold its id, its reason and its detail, and much of a line is the same in the next one. So a line is not encoded as
a whole but put together from JSON texts that are encoded once. What a line holds is said in `Record.as_json`.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from ragparity.core.outcome import Failed, Scored
from ragparity.results import SPENT, json_in_text, text_in_json, utf_8

if TYPE_CHECKING:
    from ragparity.results import Record

_BESIDE_DETAIL = frozenset({"reason", "status", "metric", "backend"})
"""What stands in the reasoning of an item before the detail, which has the last word."""


def line_and_item(one: Record) -> tuple[bytes, bytes]:
    """The line of `results.jsonl`, with its end, and the item of the toolkit's shape: an unscored one says why."""
    outcome = one.outcome
    score = why = reason = error = said = "null"
    if isinstance(outcome, Failed):
        failure = {"kind": outcome.kind, "message": outcome.message, "raw": outcome.raw, "attempts": outcome.attempts}
        error, said = json_in_text(failure), text_in_json(f"{outcome.kind}: {outcome.message}")
    else:
        reason = json_in_text(outcome.reason)
        if isinstance(outcome, Scored):
            score = repr(outcome.value)
        else:
            why, said = text_in_json(outcome.why), text_in_json(f"undefined: {outcome.why}")
    own_id, detail = text_in_json(one.id), json_in_text(dict(outcome.detail))
    status = f'"status": "{outcome.status}"'
    maker = f'"metric": {_again(one.metric)}, "backend": {_again(one.backend)}'
    line = (
        f'{{"id": {own_id}, "evaluator": {_again(one.evaluator)}, {maker}, {status}, "score": {score}, '
        f'"passed": {_again(one.passed)}, "why": {why}, "reason": {reason}, "detail": {detail}, "error": {error}, '
        f'"judge": {_again(one.judge)}, {_costs(_spent(one))}, "seconds": {round(one.seconds, 4)!r}, '
        f'"row": {one.row}, "key": {text_in_json(one.key)}}}\n'
    )
    around = f'{{"reason": {reason}, {status}, {maker}}}'
    if _BESIDE_DETAIL.isdisjoint(outcome.detail):
        reasoning = f"{around[:-1]}, {detail[1:]}" if outcome.detail else around
    else:
        head = {"reason": None if isinstance(outcome, Failed) else outcome.reason, "status": outcome.status}
        reasoning = json_in_text({**head, "metric": one.metric, "backend": one.backend, **outcome.detail})
    item = f'{{"id": {own_id}, "score": {score}, "reasoning": {reasoning}, "error": {said}}}'
    return utf_8(line), utf_8(item)


_spent = attrgetter(*SPENT)


@lru_cache(maxsize=1024, typed=True)
def _again(value: str | bool | None) -> str:
    """The JSON text of a value that comes again and again."""
    return json_in_text(value)


@lru_cache(maxsize=1024)
def _costs(spent: tuple[int | None, ...]) -> str:
    """What was spent, as members of an object; the same for every record that cost nothing."""
    return json_in_text(dict(zip(SPENT, spent, strict=True)))[1:-1]
