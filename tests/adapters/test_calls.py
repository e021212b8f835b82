"""One call: its deadline, what a client that hangs may hold up (nothing), and event loops that come and go."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from tests.adapters.wired import RATING, asked, asked_at_once, azure_chat, built, chat, held, retrying, settled
from tests.fakeserver import FakeServer, Reply

from ragparity.core.ports import Tally
from ragparity_adapters import calls

ROOT = Path(__file__).parents[2]


def said(text):
    return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class Blocking(BaseChatModel):
    """Knows only blocking calls, and hangs where `seconds` says so."""

    seconds: float = 0.0

    @property
    def _llm_type(self):
        return "blocking"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        time.sleep(self.seconds)
        return said("4")


class Stubborn(Blocking):
    """Swallows every cancellation."""

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            try:
                await asyncio.sleep(self.seconds)
            except asyncio.CancelledError:
                continue
        return said("4")


def test_a_call_without_a_reply_is_a_time_out_that_names_the_limit():
    with FakeServer(Reply(hang=True)) as server:
        (error,) = asked(built(server), RATING, retries=1, timeout_s=0.5)
        assert (error.kind, error.attempts, server.calls) == ("timeout", 2, 2)
        assert str(error) == "judge: no reply within 0.5 s (judge.timeout_s)"


def test_a_time_out_of_the_clients_own_is_a_time_out_too():
    with FakeServer(Reply(hang=True)) as server:
        (error,) = asked(held(chat(server, timeout=0.1)), RATING)
        assert error.kind == "timeout"


def test_a_call_that_ignores_its_cancellation_holds_neither_the_run_nor_its_end(monkeypatch):
    monkeypatch.setattr(calls, "GRACE_S", 0.05)
    begun = time.monotonic()
    (error,) = asked(held(Stubborn(seconds=5.0)), RATING, timeout_s=0.1)
    assert error.kind == "timeout"
    assert time.monotonic() - begun < 3.0


def test_hung_blocking_calls_do_not_hold_up_the_others():
    model = Blocking()
    begun = time.monotonic()

    async def run():
        slow, quick = held(Blocking(seconds=5.0)), held(model)
        return await asyncio.gather(
            *(settled(retrying(slow, timeout_s=0.2), RATING) for _ in range(40)),
            *(settled(retrying(quick), RATING) for _ in range(10)),
        )

    results = asyncio.run(run())
    assert [one.kind for one in results[:40]] == ["timeout"] * 40
    assert [one.value for one in results[40:]] == [4] * 10
    assert time.monotonic() - begun < 3.0


def test_a_process_with_hung_calls_ends_at_once():
    program = """
        from tests.adapters.test_calls import Blocking, Stubborn
        from tests.adapters.wired import RATING, asked, held
        for kind in (Blocking, Stubborn):
            (error,) = asked(held(kind(seconds=300.0)), RATING, timeout_s=0.1)
            print(error.kind)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (["timeout", "timeout"], "")


def test_an_error_of_a_blocking_call_arrives_as_it_is():
    class Broken(Blocking):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            raise self.error()

        def error(self):
            return ConnectionError("no route")

    class Exhausted(Broken):
        def error(self):
            return StopIteration()

    (error,) = asked(held(Broken()), RATING)
    assert (error.kind, str(error)) == ("unavailable", "judge: no route")
    (error,) = asked(held(Exhausted()), RATING)
    assert isinstance(error, RuntimeError) and "ran out of replies" in str(error)


@pytest.mark.parametrize("make", [chat, azure_chat, built], ids=["ChatOpenAI", "AzureChatOpenAI", "entry"])
def test_one_model_object_serves_three_event_loops_without_a_warning(make):
    with FakeServer("4") as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        endpoint = make(server) if make is built else held(make(server))

        async def four():
            judge = retrying(endpoint)
            answers = await asyncio.gather(*(judge.ask(RATING, Tally()) for _ in range(4)))
            return [one.value for one in answers]

        assert [asyncio.run(four()) for _ in range(3)] == [[4] * 4] * 3
        endpoint = None
        gc.collect()


def test_connections_are_reused_within_a_loop_and_closed_at_its_end():
    with FakeServer("4") as server:
        endpoint = built(server)

        async def ten():
            judge = retrying(endpoint)
            for _ in range(10):
                await judge.ask(RATING, Tally())
            return len(server.connections)

        assert asyncio.run(ten()) == 1
        deadline = time.monotonic() + 2.0
        while server.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not server.connections


def test_an_http_client_of_the_users_own_is_used_and_left_open():
    async def run(server):
        import openai

        own = openai.DefaultAsyncHttpxClient(headers={"x-own": "yes"})
        endpoint = held(chat(server, http_async_client=own))
        answer = await retrying(endpoint).ask(RATING, Tally())
        await endpoint.aclose()
        still_open = not own.is_closed
        await own.aclose()
        return answer.value, still_open

    with FakeServer("4") as server:
        assert asyncio.run(run(server)) == (4, True)
        assert server.requests[0].headers["x-own"] == "yes"


def test_two_threads_may_use_one_model_object_at_once():
    import threading

    with FakeServer("4", latency=0.02) as server:
        model, results = chat(server), []
        threads = [
            threading.Thread(target=lambda: results.extend(asked_at_once(held(model), [RATING] * 5))) for _ in range(2)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join(20)
        assert [one.value for one in results] == [4] * 10
