"""Every row meets every evaluator, a bounded number at a time; each meeting leaves exactly one record.

This is the only place that catches every exception: whatever a metric, a wrapped framework or a client
raises becomes one failed record, and the other rows go on.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
import traceback
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ragparity.core.concurrency import together
from ragparity.core.errors import JudgeError, SampleError
from ragparity.core.outcome import Failed, Outcome, Scored
from ragparity.core.policy import Policies, score
from ragparity.core.ports import Kit, Tally
from ragparity.repetitions import flip_rate
from ragparity.results import reaches, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ragparity.core.ports import Embedder, Judge, Metric
    from ragparity.core.row import Row
    from ragparity.results import Made, Record

WINDOW = 8
"""Meetings under way per call in flight: enough that the judges never wait for the next row."""
LONGEST_TURN_S = 0.02
"""Seconds of work without a judge after which calls under way, and a request to stop, get their turn."""
LONGEST_MESSAGE = 1000
"""Characters kept of the message of an error that nobody foresaw."""
DRAWS_PER_REPETITION = 1000
"""Repetitions number their draws apart, above the draws that a metric makes itself."""


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """One entry of the eval file, bound to what it needs.

    `price` is for a million input and output tokens, `embedding_price` for a million of an embedder; `view` says
    which reading of a row it uses, where evaluators map columns differently; `settings` are those of the models that
    their identities do not name, and the wording of the metric's prompts.
    """

    name: str
    metric: Metric
    judge: Judge | None = None
    embedder: Embedder | None = None
    policies: Policies = field(default_factory=Policies)
    reps: int = 1
    threshold: float | None = None
    price: tuple[float, float] | None = None
    embedding_price: float | None = None
    view: int = 0
    settings: str = ""

    @cached_property
    def spec(self) -> str:
        """Metric and settings, as written to the results."""
        return repr(self.metric)

    @cached_property
    def fingerprint(self) -> str:
        """Everything about this entry that can change a score: an outcome is reused only under the same one."""
        metric = self.metric
        judge = (self.judge_identity, self.reps, self.settings)
        parts = (metric.backend, self.spec, metric.version, repr(self.policies), *judge)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @cached_property
    def judge_identity(self) -> str | None:
        """The judge, where one is asked; the embedder, where only that is."""
        asked = [one.identity for one in (self.judge, self.embedder) if one is not None]
        return " + ".join(asked) or None


async def run(
    rows: Iterable[Sequence[Row]],
    evaluators: Sequence[Evaluator],
    write: Callable[[Sequence[Made]], None],
    *,
    concurrency: int,
    done: Callable[[str, int], bool] = lambda _evaluator, _row: False,
) -> None:
    """Score every row with every evaluator and hand the records to `write` as they come.

    A row comes as its views, one per way of mapping its columns. `concurrency` is the number of judge calls that
    may be in flight; `done` says which meetings of an evaluator (by name) and a row (by index) need not take place.
    Metrics that ask nobody score a row one after the other, and their records come together. A cancelled run cancels
    what is under way; an error of `write` or of the rows ends the run.
    """
    asking = sorted((one for one in evaluators if one.metric.uses), key=lambda one: -one.metric.steps)
    alone = [one for one in evaluators if not one.metric.uses]
    room = asyncio.Semaphore(concurrency * WINDOW)
    turn = Turn()

    async def meet(row: Row, evaluator: Evaluator) -> None:
        try:
            made = await _meet(row, evaluator)
            if not made[1].stopped:  # else a call that it needed was not made, and it counts as not run
                write([made])
        finally:
            room.release()

    try:
        async with asyncio.TaskGroup() as group:
            for views in rows:
                index = views[0].index
                for one in asking:
                    if not done(one.name, index):
                        await room.acquire()
                        group.create_task(meet(views[one.view], one))
                if made := [await _meet(views[one.view], one) for one in alone if not done(one.name, index)]:
                    write(made)
                await turn.offered()
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None


class Turn:
    """Lets the loop do something else now and then, in work that never waits by itself."""

    def __init__(self) -> None:
        self._next = time.monotonic() + LONGEST_TURN_S

    async def offered(self) -> None:
        """Give way, if it is time."""
        now = time.monotonic()
        if now >= self._next:
            await asyncio.sleep(0)
            self._next = time.monotonic() + LONGEST_TURN_S


async def _meet(row: Row, evaluator: Evaluator) -> Made:
    tally = Tally(turn=row.index)
    began = time.perf_counter()
    outcome = await _outcome(row, evaluator, tally)
    seconds = time.perf_counter() - began
    if row.sample is not None and row.sample.notes and not isinstance(outcome, Failed):
        outcome = replace(outcome, detail={**outcome.detail, "row_notes": list(row.sample.notes)})
    made = record(
        row=row.index, id=row.id, key=key_of(evaluator, row), evaluator=evaluator.name, metric=evaluator.spec,
        backend=evaluator.metric.backend, judge=evaluator.judge_identity, threshold=evaluator.threshold,
        higher_is_better=evaluator.metric.higher_is_better, outcome=outcome, tally=tally, seconds=seconds,
    )  # fmt: skip
    return made, tally


def key_of(evaluator: Evaluator, row: Row) -> str:
    """What a record stands for: the entry's fingerprint and the row's content, as 16 hexadecimal digits."""
    return hashlib.sha256(f"{evaluator.fingerprint}{row.content}".encode("utf-8", "replace")).hexdigest()[:16]


async def _outcome(row: Row, evaluator: Evaluator, tally: Tally) -> Outcome:
    if row.sample is None:
        return Failed("input", row.error or "the row could not be read")
    kit = Kit(judge=evaluator.judge, embedder=evaluator.embedder, policies=evaluator.policies, tally=tally)
    if evaluator.reps == 1:
        return await _guarded(evaluator.metric, row, kit)
    draws = [replace(kit, draw=repetition * DRAWS_PER_REPETITION) for repetition in range(evaluator.reps)]
    found = repeated(await together(_guarded(evaluator.metric, row, one) for one in draws))
    return _with_flips(found, evaluator) if isinstance(found, Scored) else found


def _with_flips(found: Scored, evaluator: Evaluator) -> Scored:
    """Repetitions with their flip rate, where there is a threshold."""
    detail = {name: value for name, value in found.detail.items() if name != "flip_rate"}
    if evaluator.threshold is not None:
        higher = evaluator.metric.higher_is_better
        verdicts = [reaches(one, evaluator.threshold, higher_is_better=higher) for one in detail["repetitions"]]
        detail["flip_rate"] = flip_rate(verdicts)
    return replace(found, detail=detail)


def rejudged(one: Record, evaluator: Evaluator) -> Record:
    """A record of an earlier run under the evaluator's present threshold, which asks nobody anything."""
    outcome = one.outcome
    if not isinstance(outcome, Scored):
        return one
    if evaluator.reps > 1:
        outcome = _with_flips(outcome, evaluator)
    passed = None
    if evaluator.threshold is not None:
        higher = evaluator.metric.higher_is_better
        passed = reaches(outcome.value, evaluator.threshold, higher_is_better=higher)
    unchanged = outcome is one.outcome and passed == one.passed
    return one if unchanged else replace(one, outcome=outcome, passed=passed)


async def _guarded(metric: Metric, row: Row, kit: Kit) -> Outcome:
    try:
        found = await score(metric, row.sample, kit)  # type: ignore[arg-type]  # a row without a sample does not get here
    except JudgeError as error:
        if not error.judge and error.kind in ("malformed", "empty"):  # the metric can do nothing with what was said
            _forget(kit.tally)
        return Failed(error.kind, str(error), error.attempts, error.raw, error.detail)
    except SampleError as error:
        return Failed("input", str(error))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Failed("internal", "something within the metric cancelled its own work")
    except Exception as error:  # noqa: BLE001  # one bad meeting must not end the run; the message keeps type and place
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        said = " ".join(str(error).split())[:LONGEST_MESSAGE]
        return Failed("internal", f"{type(error).__name__}: {said} ({where})")
    if not isinstance(found, Outcome):
        return Failed("internal", f"{metric.name} gave a {type(found).__name__}, not Scored or Undefined")
    if isinstance(found, Failed):
        _forget(kit.tally)
    return found


def _forget(tally: Tally) -> None:
    for one in tally.forget:
        one()


def repeated(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean over the scored repetitions, with every value and their spread; without any, the first outcome.

    >>> repeated([Scored(1.0), Scored(0.5)]).detail["repetitions"]
    [1.0, 0.5]
    """
    scored = [one for one in outcomes if isinstance(one, Scored)]
    if not scored:
        return outcomes[0]
    values = [one.value for one in scored]
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else None
    detail: dict[str, Any] = {
        "repetitions": values,
        "spread": spread,
        "repetitions_without_score": len(outcomes) - len(scored),
        "by_repetition": [dict(one.detail) for one in scored],
    }
    return Scored(mean, scored[0].reason, detail)
