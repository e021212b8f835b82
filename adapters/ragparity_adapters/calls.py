"""One call to a client under a deadline, whatever kind of client it is.

A call that ignores its cancellation is left behind: it holds neither the run nor the exit. Clients that know
only blocking calls run in daemon threads of their own, for the same reason. OpenAI-style clients get an HTTP
client of the running event loop, since a connection belongs to the loop that opened it.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.language_models.chat_models import BaseChatModel, SimpleChatModel

GRACE_S = 1.0
"""Seconds that a cancelled call gets to close its connection before it is left behind."""
_BLOCKING = (BaseChatModel._agenerate, SimpleChatModel._agenerate)  # noqa: SLF001  # how LangChain marks a sync-only model

_left_behind: set[asyncio.Task[Any]] = set()  # held, since a task that nobody holds may vanish while it runs


def only_blocks(model: Any) -> bool:
    """Whether a chat model knows only blocking calls."""
    return getattr(type(model), "_agenerate", None) in _BLOCKING


async def within(seconds: float, future: asyncio.Future[Any]) -> bool:
    """Wait for a call; false when it is not done in time. A call that is not done is cancelled."""
    try:
        await asyncio.wait({future}, timeout=seconds)
        return future.done()
    finally:
        if not future.done():
            await _abandon(future)


async def _abandon(future: asyncio.Future[Any]) -> None:
    future.cancel()
    future.add_done_callback(_look_at_error)
    if isinstance(future, asyncio.Task):
        try:
            await asyncio.wait({future}, timeout=GRACE_S)
        finally:
            if not future.done():
                _leave_behind(future)


def _leave_behind(task: asyncio.Task[Any]) -> None:
    """Take a task, and those that it waits for, off the list that the end of the event loop waits for."""
    for one in _with_those_it_waits_for(task):
        _left_behind.add(one)
        one.add_done_callback(_left_behind.discard)
        asyncio.tasks._unregister_task(one)  # noqa: SLF001  # documented for those who keep tasks of their own
        one._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  # it was said that it did not end


def _with_those_it_waits_for(task: asyncio.Task[Any]) -> list[asyncio.Task[Any]]:
    """A task and, through `await` and `gather` (which LangChain uses in every call), the tasks below it."""
    found: list[asyncio.Task[Any]] = []
    look_at: list[Any] = [task]
    while look_at:
        future = look_at.pop()
        if isinstance(future, asyncio.Task) and future not in found:
            found.append(future)
            look_at.append(getattr(future, "_fut_waiter", None))
        look_at.extend(getattr(future, "_children", ()))
    return found


def _look_at_error(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


def in_daemon_thread(work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Run blocking work in a thread of its own, so that a hung call blocks neither the others nor the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(give: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            give(value)

    def run() -> None:
        give: Callable[[Any], None]
        try:
            give, value = future.set_result, context.run(work)
        except StopIteration as raised:
            give, value = future.set_exception, RuntimeError(f"the client ran out of replies ({raised!r})")
        except BaseException as raised:  # noqa: BLE001  # carried over to the waiting task, whatever it is
            give, value = future.set_exception, raised
        try:
            loop.call_soon_threadsafe(settle, give, value)
        except RuntimeError:  # the loop has been closed: nobody waits any more
            return

    threading.Thread(target=run, name="ragparity-judge", daemon=True).start()
    return future


class ClientPerLoop:
    """OpenAI's client with an HTTP client for each event loop, closed when that loop ends.

    LangChain shares one HTTP client between all models of a process, and with it connections of event loops that
    have ended. An HTTP client that the user gave the model is kept as it is. `verify` is whether certificates are
    checked.
    """

    def __init__(self, model: Any, *, verify: bool = True) -> None:
        self._verify = verify
        root = getattr(model, "root_async_client", None)
        given = getattr(model, "http_async_client", None)
        self._root = root if given is None and callable(getattr(root, "copy", None)) else None
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[dict[str, Any], Any]] = WeakKeyDictionary()

    async def fields(self) -> dict[str, Any]:
        """The fields of a chat model that hold its clients, for the running loop; empty where they stay."""
        if self._root is None:
            return {}
        loop = asyncio.get_running_loop()
        found = self._of_loop.get(loop)
        if found is None:
            import openai

            http = openai.DefaultAsyncHttpxClient(verify=self._verify)
            root = self._root.copy(http_client=http)
            end = _closing(http)
            found = self._of_loop[loop] = {"root_async_client": root, "async_client": root.chat.completions}, end
            await anext(end)
        return found[0]

    async def aclose(self) -> None:
        """Close the HTTP client of the running loop; the next call opens another."""
        found = self._of_loop.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[1].aclose()


async def _closing(client: Any) -> AsyncGenerator[None]:
    """A generator that closes the client when the event loop shuts down its generators, or nobody holds it."""
    try:
        yield
    finally:
        await client.aclose()
        await asyncio.sleep(0)  # a transport that had to be aborted is closed in the next round of the loop
