"""One lane per llm entry and retries: over real HTTP where servers matter, with a judge in memory elsewhere."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adapters.wired import PROMPT, RATING, SCALE, FastClock, asked_at_once, built, retrying, settled
from tests.fakeserver import FakeServer, Reply, forbidden, model_not_found, rate_limited, server_error, unauthorized

from ragparity.core.errors import (
    AmbiguousRating,
    JudgeRefused,
    JudgeRejected,
    JudgeUnavailable,
    MalformedVerdict,
    Truncated,
)
from ragparity.core.ports import Answer, Question, Rating, Tally
from ragparity.middleware import BREAK_AFTER, LONGEST_RETRY_AFTER, Lane, Retrying, RetryingEmbedder

BUSY = {"kind": "rate_limit"}


class Judge:
    """A judge in memory: each reply is an answer, an error, or a function of the question."""

    identity = "memory"

    def __init__(self, *replies, latency=0.0):
        self.replies = list(replies)
        self.latency = latency
        self.questions: list[Question] = []
        self.in_flight = self.most = 0

    async def ask(self, question, tally):
        self.questions.append(question)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(self.latency)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            reply = reply(question) if callable(reply) else reply
            if isinstance(reply, Exception):
                raise reply
            return Answer(reply, str(reply))
        finally:
            self.in_flight -= 1


def fast(limit=8, **more):
    return Lane("judge", limit, clock=FastClock(), **more)


def ask(judge, *, retries=3, lane=None, times=1):
    async def run():
        wrapped = Retrying(judge, lane or fast(), retries)
        return await asyncio.gather(*(settled(wrapped, RATING) for _ in range(times)))

    return asyncio.run(run())


# --- attempts


@pytest.mark.parametrize(
    "error",
    [
        JudgeUnavailable("down"),
        JudgeUnavailable("busy", kind="rate_limit"),
        MalformedVerdict("bad"),
        AmbiguousRating("2 or 4"),
    ],
)
@pytest.mark.parametrize("retries", [0, 3])
def test_what_can_change_is_asked_exactly_the_configured_number_of_times(error, retries):
    judge = Judge(error)
    (given_up,) = ask(judge, retries=retries)
    assert given_up is error
    assert given_up.attempts == len(judge.questions) == 1 + retries


@pytest.mark.parametrize("error", [JudgeRejected("400"), JudgeRefused("no"), Truncated("cut"), ValueError("a bug")])
def test_what_cannot_change_is_asked_once(error):
    judge = Judge(error)
    assert ask(judge) == [error]
    assert len(judge.questions) == 1


def test_an_answer_after_failures_counts_as_one():
    judge = Judge(JudgeUnavailable("down"), MalformedVerdict("bad"), 4)
    (answer,) = ask(judge)
    assert answer.value == 4 and len(judge.questions) == 3


def test_every_retry_of_an_unreadable_reply_says_what_was_wrong_and_no_two_are_alike():
    judge = Judge(MalformedVerdict("judge: the reply holds no number; " + "x" * 1000))
    ask(judge)
    complaints = [one.complaint for one in judge.questions]
    assert complaints[0] == ""
    assert all(one.startswith("the reply holds no number; x") for one in complaints[1:])
    assert len(set(complaints)) == 4
    assert max(map(len, complaints)) < 330
    assert all(one.prompt == PROMPT for one in judge.questions)


def test_a_retry_after_an_outage_is_the_same_question():
    judge = Judge(JudgeUnavailable("down"), 4)
    ask(judge)
    assert judge.questions == [RATING, RATING]


def test_a_complaint_is_kept_over_an_outage():
    judge = Judge(MalformedVerdict("bad"), JudgeUnavailable("down"), 4)
    ask(judge)
    assert [one.complaint for one in judge.questions] == ["", "bad", "bad"]


def test_an_embedder_is_retried_in_the_same_way():
    class Embedder:
        identity = "memory"
        calls = 0

        async def embed(self, texts, tally):
            self.calls += 1
            if self.calls < 3:
                raise JudgeUnavailable("down")
            return [[1.0]] * len(texts)

    inner = Embedder()
    wrapped = RetryingEmbedder(inner, fast(), 3)
    assert asyncio.run(wrapped.embed(["a", "b"], Tally())) == [[1.0], [1.0]]
    assert (inner.calls, wrapped.identity) == (3, "memory")


# --- waiting


def test_a_named_time_is_waited_for_by_everybody():
    clock = FastClock()
    lane = Lane("judge", 2, clock=clock)
    judge = Judge(JudgeUnavailable("busy", kind="rate_limit", retry_after=7.0), 4)
    begun = clock.now()
    answers = ask(judge, lane=lane, times=6)
    assert [one.value for one in answers] == [4] * 6
    assert clock.now() - begun >= 7.0
    assert all(wait <= 7.0 for wait in clock.waits) and max(clock.waits) > 6.0


def test_a_very_long_wish_is_cut():
    clock = FastClock(10_000)
    judge = Judge(JudgeUnavailable("busy", kind="rate_limit", retry_after=90_000.0), 4)
    ask(judge, lane=Lane("judge", 2, clock=clock))
    assert max(clock.waits) <= LONGEST_RETRY_AFTER


def test_waits_grow_with_the_attempt_up_to_the_longest():
    lane = Lane("judge", 2, first_wait=1.0, longest_wait=3.0, clock=FastClock())
    error = JudgeUnavailable("slow", kind="timeout")
    bounds = [(0.5, 1.0), (1.0, 2.0), (1.5, 3.0), (1.5, 3.0)]
    for attempt, (low, high) in enumerate(bounds, 1):
        assert low <= lane.failed(error, attempt, 0.0) <= high


def test_a_time_out_is_a_questions_own_and_does_not_hold_the_others():
    async def run():
        lane = Lane("judge", 1, first_wait=1000.0, longest_wait=1000.0)
        slow = Retrying(Judge(JudgeUnavailable("slow", kind="timeout")), lane, 1)
        waiting = asyncio.ensure_future(settled(slow, RATING))
        await asyncio.sleep(0.01)
        answer = await asyncio.wait_for(Retrying(Judge(4), lane, 0).ask(RATING, Tally()), 1.0)
        waiting.cancel()
        return answer.value

    assert asyncio.run(run()) == 4


# --- how many at a time


def test_no_more_than_the_limit_are_in_flight():
    judge = Judge(4, latency=0.005)
    ask(judge, lane=fast(3), times=20)
    assert judge.most == 3


def test_too_many_requests_lower_the_number_once_per_round_and_answers_raise_it_again():
    lane = fast(8)
    judge = Judge(*[JudgeUnavailable("busy", kind="rate_limit", retry_after=1.0)] * 8, 4, latency=0.005)
    answers = ask(judge, lane=lane, times=8)
    assert [one.value for one in answers] == [4] * 8
    assert lane.allowed in (4, 5, 6)  # eight refusals of one round halve it once; up to eight answers add one or two
    ask(Judge(4), lane=lane, times=40)
    assert lane.allowed == 8


def test_the_number_never_falls_below_one():
    lane = fast(2)
    ask(Judge(JudgeUnavailable("busy", kind="rate_limit")), lane=lane)
    assert lane.allowed == 1


def test_a_lane_needs_room_for_one():
    with pytest.raises(ValueError, match="judge: at least one call must be in flight, not 0"):
        Lane("judge", 0)


def test_a_row_that_was_begun_is_ended_before_a_later_one_is_begun():
    """Three rows of two questions, one place: when a place is free before a row asks on, the next row gets in once."""
    judge, lane = Judge(lambda question: question.budget), fast(limit=1)

    async def row(number):
        wrapped, tally = Retrying(judge, lane, 0), Tally(turn=number)
        for step in (1, 2):
            await wrapped.ask(Question(PROMPT, Rating(SCALE), 10 * number + step), tally)

    async def run():
        await asyncio.gather(*map(row, range(4)))

    asyncio.run(run())
    asked = [divmod(one.budget, 10) for one in judge.questions]
    assert [number for number, step in asked if step == 2] == [0, 1, 2, 3]
    begun, ended, open_rows = set(), set(), []
    for number, step in asked:
        (begun if step == 1 else ended).add(number)
        open_rows.append(len(begun) - len(ended))
    assert max(open_rows) == 2, "in the order in which they came it would be 4"


def test_a_question_that_is_put_again_waits_behind_the_others():
    order = []

    def brain(question):
        order.append(question.draw)
        return (
            JudgeUnavailable("busy", kind="rate_limit", retry_after=0.1)
            if order.count(question.draw) == 1 and question.draw == 0
            else 4
        )

    async def run():
        wrapped = Retrying(Judge(brain), fast(1), 3)
        await asyncio.gather(*(wrapped.ask(Question(PROMPT, Rating(SCALE), 8, draw), Tally()) for draw in range(4)))

    asyncio.run(run())
    assert order == [0, 1, 2, 3, 0]


# --- an entry that is given up


@pytest.mark.parametrize(
    ("reply", "kind"), [(unauthorized(), "auth"), (forbidden(), "auth"), (model_not_found(), "rejected")]
)
def test_a_wrong_key_or_name_ends_the_entry_and_leaves_others_alone(reply, kind):
    with FakeServer(reply, latency=0.01) as dead, FakeServer("4") as alive:
        lane = Lane("judge", 2, clock=FastClock())
        errors = asked_at_once(built(dead), [RATING] * 20, retries=3, lane=lane)
        assert {error.kind for error in errors} == {kind}
        assert dead.calls <= 2
        assert sorted(error.attempts for error in errors) == [0] * (20 - dead.calls) + [1] * dead.calls
        assert [one.value for one in asked_at_once(built(alive), [RATING] * 3)] == [4, 4, 4]


def test_question_after_question_without_an_answer_opens_the_breaker():
    with FakeServer(server_error(503)) as server:
        lane = Lane("judge", 1, clock=FastClock(1000))
        errors = asked_at_once(built(server), [RATING] * 30, retries=2, lane=lane)
        assert {error.kind for error in errors} == {"unavailable"}
        assert server.calls < 30 * 3
        assert "given up after 5 questions without an answer; last: judge: HTTP 503" in str(lane.closed_by)
        assert sum(error.attempts for error in errors) == server.calls


def test_an_answer_in_between_keeps_the_breaker_closed():
    down = [JudgeUnavailable("down")] * (BREAK_AFTER - 1)
    lane = fast(1)
    ask(Judge(*down, 4, *down, 4), lane=lane, retries=0, times=2 * BREAK_AFTER)
    assert lane.closed_by is None


def test_an_unreadable_reply_shows_that_the_endpoint_lives():
    replies = [JudgeUnavailable("down"), MalformedVerdict("bad")] * (2 * BREAK_AFTER)
    lane = fast(1)
    ask(Judge(*replies), lane=lane, retries=0, times=4 * BREAK_AFTER)
    assert lane.closed_by is None


def test_those_who_wait_out_a_pause_are_told_at_once_when_the_lane_closes():
    async def run():
        lane = Lane("judge", 2)
        lane.failed(JudgeUnavailable("busy", kind="rate_limit", retry_after=60.0), 1, 0.0)
        waiting = [asyncio.ensure_future(settled(Retrying(Judge(4), lane, 3), RATING)) for _ in range(5)]
        await asyncio.sleep(0.01)
        lane.close(JudgeRejected("wrong key", kind="auth", ends_entry=True))
        return await asyncio.wait_for(asyncio.gather(*waiting), 1.0)

    errors = asyncio.run(run())
    assert {(one.kind, one.attempts, str(one)) for one in errors} == {("auth", 0, "wrong key")}
    assert len({id(one) for one in errors}) == 5


# --- no lost wake-ups


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), limit=st.integers(1, 4), calls=st.integers(1, 25))
def test_no_place_is_lost_whatever_is_cancelled_whenever(seed, limit, calls):
    dice = random.Random(seed)  # noqa: S311  # decides what is cancelled

    async def run():
        lane = Lane("judge", limit, first_wait=0.0005, longest_wait=0.001)
        most = 0

        async def one():
            nonlocal most
            async with lane.slot():
                most = max(most, lane.in_flight)
                await asyncio.sleep(dice.choice([0, 0, 0.001]))
                if dice.random() < 0.2:
                    lane.failed(JudgeUnavailable("busy", **BUSY), 1, lane.clock.now())
                else:
                    lane.succeeded()

        tasks = [asyncio.ensure_future(one()) for _ in range(calls)]
        for task in tasks:
            if dice.random() < 0.4:
                asyncio.get_running_loop().call_later(dice.choice([0, 0, 0.0005, 0.001, 0.002]), task.cancel)
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert lane.in_flight == 0
        assert most <= limit
        await asyncio.wait_for(asyncio.gather(*(one() for _ in range(limit + 2))), 20)
        assert lane.in_flight == 0

    asyncio.run(run())


def test_a_lane_serves_one_event_loop_after_the_other():
    lane = Lane("judge", 1, first_wait=0.05)

    async def cut_short():
        lane.failed(JudgeUnavailable("busy", **BUSY), 1, 0.0)
        waiting = asyncio.ensure_future(Retrying(Judge(4), lane, 0).ask(RATING, Tally()))
        await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    async def go_on():
        return await asyncio.wait_for(Retrying(Judge(4), lane, 0).ask(RATING, Tally()), 2.0)

    asyncio.run(cut_short())
    assert asyncio.run(go_on()).value == 4


# --- over HTTP


def test_twenty_refusals_and_then_answers_lose_no_question():
    replies = iter([rate_limited(1)] * 20)
    clock = FastClock(20)
    with FakeServer(lambda request: next(replies, "4"), latency=0.005) as server:
        begun = clock.now()
        lane = Lane("judge", 8, clock=clock)
        answers = asked_at_once(built(server), [RATING] * 30, retries=3, lane=lane)
        assert [getattr(one, "value", one) for one in answers] == [4] * 30
        assert server.calls == 50
        assert clock.now() - begun >= 3.0  # 8 + 4 + 2 + 1 … refusals, a second apart
        assert server.max_in_flight <= 8
        assert lane.allowed > 1


def test_a_budget_that_runs_out_is_a_rate_limit_with_its_attempts():
    with FakeServer(rate_limited(1)) as server:
        (error,) = asked_at_once(built(server), [RATING], retries=2, lane=Lane("judge", 8, clock=FastClock()))
        assert (error.kind, error.attempts, server.calls) == ("rate_limit", 3, 3)
        assert "Rate limit reached" in str(error)


def test_the_deadline_counts_the_call_and_not_the_queue():
    with FakeServer("4", latency=0.05, parallel=1) as server:
        answers = asked_at_once(built(server), [RATING] * 20, lane=Lane("judge", 1), timeout_s=0.5)
        assert [one.value for one in answers] == [4] * 20  # a whole second of waiting in the queue


def test_a_server_that_works_at_one_request_at_a_time_is_given_fewer_and_answers_all():
    with FakeServer("4", latency=0.1, parallel=1) as server:
        lane = Lane("judge", 16, first_wait=0.05, longest_wait=0.2)
        answers = asked_at_once(built(server), [RATING] * 30, retries=3, lane=lane, timeout_s=0.45)
        assert [getattr(one, "value", one) for one in answers] == [4] * 30
        assert lane.allowed <= 4


def test_a_single_time_out_among_answers_lowers_nothing():
    lane = fast(16)
    slow = JudgeUnavailable("slow", kind="timeout")
    for _ in range(5):
        lane.failed(slow, 1, lane.clock.now())
        for _ in range(2):
            lane.succeeded()
    assert lane.allowed == 16
    for _ in range(5):
        lane.failed(slow, 1, lane.clock.now())
    assert lane.allowed == 8


def test_clients_of_ours_do_not_retry_on_their_own():
    with FakeServer(server_error(500)) as server:
        (error,) = asked_at_once(built(server), [RATING], retries=1)
        assert (error.attempts, server.calls) == (2, 2)


def test_a_dropped_connection_is_asked_again():
    with FakeServer([Reply(drop="before"), Reply(content="4", drop="half"), "4"]) as server:
        (answer,) = asked_at_once(built(server), [RATING], retries=2)
        assert (answer.value, server.calls) == (4, 3)


def test_a_cancelled_run_ends_at_once_and_leaves_no_task():
    async def run(server):
        endpoint = built(server)
        judge = retrying(endpoint, 3, Lane("judge", 2))
        tasks = [asyncio.ensure_future(judge.ask(RATING, Tally())) for _ in range(6)]
        await asyncio.sleep(0.2)
        begun = time.monotonic()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await endpoint.aclose()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        return time.monotonic() - begun, results, left

    with FakeServer(Reply(hang=True)) as server:
        seconds, results, left = asyncio.run(run(server))
    assert seconds < 1.0
    assert all(isinstance(one, asyncio.CancelledError) for one in results)
    assert left == set()
