"""What wraps a judge, each once, for every framework: a shared lane to the endpoint, and retries.

A `Lane` belongs to one llm entry. It bounds the calls in flight, makes every call wait while the endpoint
asks for a pause, lowers the number in flight when the endpoint says "too many" and raises it again as
calls succeed, and closes for good when no other question can succeed (a wrong key, a wrong model name, or
one time after the other no answer at all).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from ragparity.core.errors import AmbiguousRating, JudgeError, JudgeUnavailable, MalformedVerdict, Truncated

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


class Lane:
    """The way to one endpoint: at most `limit` calls in flight, one pause for all, one verdict when it is dead.

    `first_wait` and `longest_wait` bound the back-off, in seconds.
    """

    def __init__(self, name: str, limit: int, *, first_wait: float = 0.5, longest_wait: float = 30.0) -> None:
        if limit < 1:
            raise ValueError(f"{name}: at least one call must be in flight, not {limit}")
        self.name = name
        self.limit = limit
        self.allowed = limit
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        self.in_flight = 0
        self.closed_by: JudgeError | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open_at = 0.0
        self._unanswered = 0
        self._failures = 0
        self._since_change = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A place in flight; raises at once when the lane is closed."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        while True:
            self.check()
            pause = self._open_at - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            elif self.in_flight < self.allowed:
                self.in_flight += 1
                return
            else:
                turn = asyncio.get_running_loop().create_future()
                self._waiting.append(turn)
                try:
                    await turn
                except asyncio.CancelledError:
                    if turn.done() and not turn.cancelled():
                        self._wake()
                    raise

    def _leave(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        """Let the longest waiting ones in, as many as there is room for; all of them when the lane is closed."""
        room = len(self._waiting) if self.closed_by else self.allowed - self.in_flight
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1

    def check(self) -> None:
        """Raise what closed the lane, if it is closed."""
        if (cause := self.closed_by) is not None:
            raise type(cause)(str(cause), kind=cause.kind, judge=cause.judge, attempts=0, retryable=False)

    def succeeded(self) -> None:
        """A call was answered: one more may be in flight after as many answers as are allowed now."""
        self._unanswered = 0
        self._failures = 0
        self._since_change += 1
        if self.allowed < self.limit and self._since_change >= self.allowed:
            self.allowed += 1
            self._since_change = 0
            self._wake()

    def failed(self, error: JudgeError, attempt: int) -> float:
        """Seconds that this question waits before it is put again; where all should wait, the lane pauses.

        Everybody waits when the endpoint names a time or says "too many", or when nothing was answered since the
        last few failures. A time-out is a question's own.
        """
        if not isinstance(error, JudgeUnavailable):
            return 0.0
        self._failures += 1
        wait = min(self.longest_wait, self.first_wait * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)  # noqa: S311  # jitter
        if error.retry_after is not None:
            wait = min(error.retry_after, LONGEST_RETRY_AFTER)
        if error.kind == "rate_limit":
            self._fewer()
        everybody = error.kind == "rate_limit" or error.retry_after is not None or self._failures >= ALL_WAIT_AFTER
        if everybody and error.kind != "timeout":
            self._open_at = max(self._open_at, time.monotonic() + wait)
            return 0.0
        return wait

    def _fewer(self) -> None:
        """Halve what may be in flight, once per round of refusals."""
        now = time.monotonic()
        if now >= self._open_at:
            self.allowed = max(1, self.allowed // 2)
            self._since_change = 0

    def gave_up(self, error: JudgeError) -> None:
        """A question got no answer after all attempts; after several in a row the lane is closed."""
        if error.ends_entry:
            self.close(error)
        elif isinstance(error, JudgeUnavailable):
            self._unanswered += 1
            if self._unanswered >= BREAK_AFTER and self.closed_by is None:
                text = f"{self.name}: given up after {self._unanswered} questions without an answer; last: {error}"
                self.close(JudgeUnavailable(text, kind=error.kind, judge=error.judge))

    def close(self, cause: JudgeError) -> None:
        """No call goes out any more; those that wait get the cause."""
        if self.closed_by is None:
            self.closed_by = cause
            self._wake()


class Retrying:
    """Puts a question again where that can change the answer, `retries` times after the first attempt.

    A malformed reply is put again with what was wrong with it (in place of an earlier complaint, so a question
    never grows). An endpoint that is busy or down is given time, all calls to it together. The error that is
    raised in the end says how many attempts were made.
    """

    def __init__(self, judge: Judge, lane: Lane, retries: int) -> None:
        self._judge = judge
        self._lane = lane
        self._retries = retries

    @property
    def identity(self) -> str:
        """That of the judge within."""
        return self._judge.identity

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """An answer, or the error of the last attempt."""

        async def put(last: JudgeError | None) -> Answer:
            unreadable = isinstance(last, MalformedVerdict | AmbiguousRating | Truncated)
            asked = question.again(str(last)[:LONGEST_COMPLAINT]) if unreadable else question
            async with self._lane.slot():
                return await self._judge.ask(asked, tally)

        return await _persist(self._lane, self._retries, put)


class RetryingEmbedder:
    """The same for an embedder."""

    def __init__(self, embedder: Embedder, lane: Lane, retries: int) -> None:
        self._embedder = embedder
        self._lane = lane
        self._retries = retries

    @property
    def identity(self) -> str:
        """That of the embedder within."""
        return self._embedder.identity

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """Vectors, or the error of the last attempt."""

        async def put(_last: JudgeError | None) -> list[list[float]]:
            async with self._lane.slot():
                return await self._embedder.embed(texts, tally)

        return await _persist(self._lane, self._retries, put)


async def _persist(lane: Lane, retries: int, put: Callable[[JudgeError | None], Awaitable[T]]) -> T:
    """The result of `put`, tried again while that can help; `put` is given the error of the attempt before."""
    last: JudgeError | None = None
    attempts = 0

    async def once() -> T:
        nonlocal last, attempts
        attempts += 1
        try:
            result = await put(last)
        except JudgeError as error:
            last = error
            raise
        lane.succeeded()
        return result

    def wait(state: RetryCallState) -> float:
        return lane.failed(last, state.attempt_number) if last is not None else 0.0

    retrying = AsyncRetrying(
        stop=stop_after_attempt(retries + 1),
        retry=retry_if_exception(_worth_another),
        wait=wait,
        reraise=True,
    )
    try:
        return await retrying(once)
    except JudgeError as error:
        error.attempts = attempts if error.attempts else attempts - 1
        lane.gave_up(error)
        raise


def _worth_another(error: BaseException) -> bool:
    return isinstance(error, JudgeError) and error.retryable
