"""The same question asked by several metrics or rows at once is one call.

Whoever asks first starts the call; others who ask the same before it has ended wait for it too. It goes on as
long as one of them waits. A failure is shared by those who wait and forgotten afterwards.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ragparity.core.errors import JudgeError
from ragparity.core.ports import Tally
from ragparity.questions import asked, digest
from ragparity.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ragparity.core.ports import Answer, Embedder, Judge, Question

T = TypeVar("T")


@dataclass(slots=True)
class _Flight:
    """A call under way: its task, what it has cost, how many wait, and whether somebody has taken its cost over."""

    task: asyncio.Task[Any]
    tally: Tally
    waiting: int = 0
    paid: bool = False


class Flights:
    """The calls under way, by key. It belongs to one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Flight] = {}

    async def share(self, key: str, call: Callable[[Tally], Awaitable[T]], tally: Tally) -> T:
        """The result of the call of this key, made now or already under way; its cost goes to one of those who wait."""
        flight = self._under_way.get(key)
        if flight is None or flight.task.done():
            flight = self._started(key, call, tally.turn)
        flight.waiting += 1
        try:
            await asyncio.wait({flight.task})
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                self._forget(key, flight)
                flight.task.cancel()
                await asyncio.wait({flight.task})
        self._share_cost(flight, tally)
        error = flight.task.exception()
        if isinstance(error, JudgeError):
            # Each gets its own: what a metric notes on its error must not show on another's.
            own = copy.copy(error)
            own.detail = dict(error.detail)
            raise own from error
        if error is not None:
            raise error
        result: T = flight.task.result()
        return result

    def _started(self, key: str, call: Callable[[Tally], Awaitable[T]], turn: int) -> _Flight:
        tally = Tally(turn=turn)

        async def made() -> T:
            return await call(tally)

        flight = self._under_way[key] = _Flight(asyncio.create_task(made()), tally)
        flight.task.add_done_callback(lambda _task: self._forget(key, flight))
        return flight

    def _forget(self, key: str, flight: _Flight) -> None:
        if self._under_way.get(key) is flight:
            del self._under_way[key]

    def _share_cost(self, flight: _Flight, tally: Tally) -> None:
        if not flight.paid:
            flight.paid = True
            tally.add(flight.tally)
            return
        tally.shared_calls += 1
        tally.stopped = tally.stopped or flight.tally.stopped
        tally.replies += [{**one, "shared": True} for one in flight.tally.replies]
        tally.forget += flight.tally.forget


class SingleFlight(Wrapper["Judge"]):
    """A judge that is asked the same question once at a time."""

    def __init__(self, judge: Judge, flights: Flights, settings: str = "") -> None:
        super().__init__(judge)
        self._flights = flights
        self._settings = settings

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """The judge's answer, or the one that is on its way to somebody else."""
        if question.complaint:
            return await self.within.ask(question, tally)
        key = asked(self.identity, self._settings, question).key
        return await self._flights.share(key, lambda own: self.within.ask(question, own), tally)


class SingleFlightEmbedder(Wrapper["Embedder"]):
    """The same for an embedder: the same texts asked for at once are one request."""

    def __init__(self, embedder: Embedder, flights: Flights, settings: str = "") -> None:
        super().__init__(embedder)
        self._flights = flights
        self._settings = settings

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """The vectors, or those that are on their way to somebody else."""
        key = digest(["vectors", self.identity, self._settings, *texts])
        return await self._flights.share(key, lambda own: self.within.embed(texts, own), tally)
