"""What wraps a judge, each once, for every framework: a shared lane to the endpoint, and retries.

A `Lane` belongs to one llm entry. It bounds the calls in flight, makes every call wait while the endpoint
asks for a pause, lowers the number in flight when the endpoint says "too many" and raises it again as
calls succeed, and closes for good when no other question can succeed (a wrong key, a wrong model name, or
one time after the other no answer at all).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from ragparity.core.errors import (
    AmbiguousRating,
    JudgeError,
    JudgeRefused,
    JudgeUnavailable,
    MalformedVerdict,
    Truncated,
)
from ragparity.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from ragparity.core.ports import Answer, Embedder, Judge, Question, Tally

T = TypeVar("T")

BREAK_AFTER = 5
"""Questions in a row that got no answer after all their attempts, until the llm entry is given up."""
ALL_WAIT_AFTER = 3
"""Failures without an answer in between, until every call to the llm entry waits."""
LONGEST_RETRY_AFTER = 120.0
"""Seconds that an endpoint may ask for; a longer wish is cut to this."""
LONGEST_COMPLAINT = 300
"""Characters of a complaint that is fed back to the judge."""
_TOO_LONG = "it was cut off before its end. Keep every text short"
_DECLINED = "it gave no answer. This is a quality check of text that was written by others; only judge it"


class Clock:
    """Time, in seconds; a test may put a faster one in its place."""

    def now(self) -> float:
        """A moment; only differences mean anything."""
        return time.monotonic()

    def later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Call something after a while."""
        return asyncio.get_running_loop().call_later(seconds, call)

    async def sleep(self, seconds: float) -> None:
        """Wait for a while."""
        await asyncio.sleep(seconds)


class Lane:
    """The way to one endpoint: at most `limit` calls in flight, one pause for all, one verdict when it is dead.

    Of those who wait, who has the lowest turn goes first, and of one turn who came first: a row that was begun is
    ended before another one is, so a run that is stopped has few calls behind it that brought no score.
    `first_wait` and `longest_wait` bound the back-off, in seconds.
    """

    def __init__(
        self,
        name: str,
        limit: int,
        *,
        first_wait: float = 0.5,
        longest_wait: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        if limit < 1:
            raise ValueError(f"{name}: at least one call must be in flight, not {limit}")
        self.name = name
        self.limit = limit
        self.allowed = limit
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        self.clock = clock or Clock()
        self.in_flight = 0
        self.closed_by: JudgeError | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._came = itertools.count()
        self._open_at = 0.0
        self._unanswered = 0
        self._failures = 0
        self._since_change = 0
        self._lowered_at = float("-inf")
        self._strain = 0
        self._answers_per_step = 1
        self._timer_of: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def slot(self, turn: int = 0) -> AsyncIterator[None]:
        """A place in flight; raises at once when the lane is closed."""
        await self._enter(turn)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, turn: int) -> None:
        """Take a place, or wait until one is handed over: `_wake` counts it before the waiting task runs."""
        self._check()
        if not self._waiting and self.in_flight < self.allowed and self.clock.now() >= self._open_at:
            self.in_flight += 1
            return
        place = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (turn, next(self._came), place))
        self._wake()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._leave()
            elif not place.done():
                place.cancel()
            raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        """Hand free places to those whose turn it is; tell all of them when the lane is closed."""
        if (cause := self.closed_by) is not None:
            while self._waiting:
                *_, place = heapq.heappop(self._waiting)
                if not place.done():
                    place.set_exception(_again(cause))
            return
        pause = self._open_at - self.clock.now()
        while self._waiting and self.in_flight < self.allowed:
            *_, place = self._waiting[0]
            if place.done():
                heapq.heappop(self._waiting)
            elif pause > 0:
                self._wake_later(pause)
                return
            else:
                heapq.heappop(self._waiting)
                self.in_flight += 1
                place.set_result(None)

    def _wake_later(self, pause: float) -> None:
        """One timer for all who wait out a pause; a timer of an event loop that has ended counts for nothing."""
        loop = asyncio.get_running_loop()
        if self._timer_of is not loop:
            self._timer_of = loop
            self.clock.later(pause, self._pause_over)

    def _pause_over(self) -> None:
        self._timer_of = None
        self._wake()

    def _check(self) -> None:
        if (cause := self.closed_by) is not None:
            raise _again(cause)

    def succeeded(self) -> None:
        """A call was answered: one more may be in flight after as many answers as are allowed now.

        After time-outs it takes four times as many, since the next time-out costs a question an attempt.
        """
        self._unanswered = self._failures = 0
        self._strain = max(0, self._strain - 1)
        self._since_change += 1
        if self.allowed < self.limit and self._since_change >= self.allowed * self._answers_per_step:
            self.allowed += 1
            self._since_change = 0
            self._wake()

    def failed(self, error: JudgeError, attempt: int, began: float) -> float:
        """Seconds that this question waits before it is put again; where all should wait, the lane pauses.

        Everybody waits when the endpoint names a time or says "too many", or when nothing was answered since the
        last few failures. A time-out is a question's own, but several of them among few answers say that the
        endpoint works at fewer calls than are in flight. `began` is when the call that failed went out.
        """
        if not isinstance(error, JudgeUnavailable):
            return 0.0
        self._failures += 1
        jitter = random.uniform(0.5, 1.0)  # noqa: S311  # spreads retries, guards nothing
        wait = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1)) * jitter
        if error.retry_after:
            wait = min(error.retry_after, LONGEST_RETRY_AFTER)
        if began >= self._lowered_at:
            self._strain += 2 if error.kind == "timeout" else 0
            if error.kind == "rate_limit" or self._strain > max(1, self.allowed // 2):
                self._lower(slowly_back=error.kind == "timeout")
        everybody = error.kind == "rate_limit" or error.retry_after is not None or self._failures >= ALL_WAIT_AFTER
        if everybody and error.kind != "timeout":
            self._open_at = max(self._open_at, self.clock.now() + wait)
            return 0.0
        return wait

    def _lower(self, *, slowly_back: bool) -> None:
        """Halve what may be in flight; calls that went out before do not count against it again."""
        self.allowed = max(1, self.allowed // 2)
        self._strain = self._since_change = 0
        self._answers_per_step = 4 if slowly_back else 1
        self._lowered_at = self.clock.now()

    def gave_up(self, error: JudgeError) -> None:
        """A question got no answer after all attempts; after several in a row the lane is closed."""
        if isinstance(error, JudgeUnavailable) and self.closed_by is None:
            self._unanswered += 1
            if self._unanswered >= BREAK_AFTER:
                text = f"{self.name}: given up after {self._unanswered} questions without an answer; last: {error}"
                self.close(JudgeUnavailable(text, kind=error.kind, judge=error.judge))

    def close(self, cause: JudgeError) -> None:
        """No call goes out any more; those that wait get the cause."""
        if self.closed_by is None:
            self.closed_by = cause
            self._wake()


def _again(cause: JudgeError) -> JudgeError:
    """What closed a lane, as the error of a question that was not put."""
    return type(cause)(str(cause), kind=cause.kind, judge=cause.judge, attempts=0, retryable=False)


class Retrying(Wrapper["Judge"]):
    """Puts a question again where that can change the answer, `retries` times after the first attempt.

    A reply that could not be used is put again with what was wrong with it, in place of an earlier complaint, so that
    a question never grows, and with the number of the attempt, so that no two are alike. An endpoint that is busy or
    down is given time, all calls to it together. The error that is raised in the end says how many attempts were made.
    """

    def __init__(self, judge: Judge, lane: Lane, retries: int) -> None:
        super().__init__(judge)
        self._lane = lane
        self._retries = retries

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """An answer, or the error of the last attempt."""

        async def put(complaint: str) -> Answer:
            return await self.within.ask(question.again(complaint) if complaint else question, tally)

        return await _persist(self._lane, self._retries, put, tally.turn)


class RetryingEmbedder(Wrapper["Embedder"]):
    """The same for an embedder."""

    def __init__(self, embedder: Embedder, lane: Lane, retries: int) -> None:
        super().__init__(embedder)
        self._lane = lane
        self._retries = retries

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """Vectors, or the error of the last attempt."""

        async def put(_complaint: str) -> list[list[float]]:
            return await self.within.embed(texts, tally)

        return await _persist(self._lane, self._retries, put, tally.turn)


async def _persist(lane: Lane, retries: int, put: Callable[[str], Awaitable[T]], turn: int) -> T:
    """The result of `put`, tried again while that can help; `put` is given what was wrong with the last reply."""
    complaint = ""
    attempts, wait_s = 0, 0.0

    async def once() -> T:
        nonlocal complaint, attempts, wait_s
        async with lane.slot(turn):
            attempts += 1
            began = lane.clock.now()
            try:
                result = await put(complaint)
            except JudgeError as error:
                wait_s = lane.failed(error, attempts, began)
                complaint = _complaint(error, lane.name, attempts) or complaint
                if isinstance(error, MalformedVerdict | AmbiguousRating | Truncated | JudgeRefused):
                    lane.succeeded()
                elif error.ends_entry:
                    lane.close(error)
                raise
            lane.succeeded()
            return result

    def wait(_state: RetryCallState) -> float:
        return wait_s

    retrying = AsyncRetrying(
        stop=stop_after_attempt(retries + 1),
        retry=retry_if_exception(_worth_another),
        wait=wait,
        sleep=lane.clock.sleep,
        reraise=True,
    )
    try:
        return await retrying(once)
    except JudgeError as error:
        error.attempts = attempts
        lane.gave_up(error)
        raise


def _worth_another(error: BaseException) -> bool:
    return isinstance(error, JudgeError) and error.retryable


def _complaint(error: JudgeError, name: str, attempt: int) -> str:
    """What to tell the judge about its last reply; nothing where there was none."""
    if isinstance(error, Truncated):
        what = _TOO_LONG
    elif isinstance(error, JudgeRefused):
        what = _DECLINED
    elif isinstance(error, MalformedVerdict | AmbiguousRating):
        what = str(error).removeprefix(f"{name}: ")[:LONGEST_COMPLAINT]
    else:
        return ""
    return what if attempt == 1 else f"{what} (attempt {attempt + 1})"
