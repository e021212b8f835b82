"""The same question asked at once is one call, whatever happens to those who wait for it."""

import asyncio
from dataclasses import replace

import pytest

from ragparity.cache import Cached, Replies
from ragparity.core.errors import BudgetSpent, JudgeUnavailable
from ragparity.core.ports import Answer, Question, Rating, Scale, Tally, Usage
from ragparity.core.prompt import Prompt
from ragparity.single_flight import Flights, SingleFlight, SingleFlightEmbedder
from ragparity.spending import Budget, Metered, Spending
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

QUESTION = Question(Prompt("Rate it.", data={"answer": "7443"}), Rating(Scale((0, 1, 2))), 8)
DRAWS = [replace(QUESTION, draw=draw) for draw in range(3)]


class Slow:
    """A judge that answers when it is let, and counts."""

    identity = "slow"

    def __init__(self, answer=1):
        self.go = asyncio.Event()
        self.asked = 0
        self.cancelled = 0
        self.answer = answer

    async def ask(self, question, tally):
        self.asked += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        tally.call(Usage(10, 2, None, 4))
        tally.replies.append({"raw": "1"})
        tally.notes.append("noted")
        if isinstance(self.answer, BaseException):
            raise self.answer
        return Answer(self.answer, str(self.answer))


def others():
    """Tasks that are still there, apart from the one that asks."""
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_ten_who_ask_at_once_make_one_call_and_one_of_them_pays():
    async def body():
        judge, tallies = Slow(), [Tally() for _ in range(10)]
        single = SingleFlight(judge, Flights())
        waiting = asyncio.gather(*(single.ask(QUESTION, tally) for tally in tallies))
        await settle()
        judge.go.set()
        assert [one.value for one in await waiting] == [1] * 10
        assert judge.asked == 1
        assert sorted(tally.calls for tally in tallies) == [0] * 9 + [1]
        assert sum(tally.input_tokens for tally in tallies) == 10
        assert sorted(tally.shared_calls for tally in tallies) == [0] + [1] * 9
        payer = next(tally for tally in tallies if tally.calls)
        assert payer.notes == ["noted"] and payer.replies == [{"raw": "1"}] and payer.cached_tokens == 4
        assert all(tally.replies == [{"raw": "1", "shared": True}] for tally in tallies if tally is not payer)
        assert not others()

    asyncio.run(body())


def test_the_same_question_later_is_asked_again():
    async def body():
        judge = ScriptedJudge([1, 2])
        single = SingleFlight(judge, Flights())
        assert [(await single.ask(QUESTION, Tally())).value for _ in range(2)] == [1, 2]

    asyncio.run(body())


def test_other_draws_other_judges_and_complaints_are_questions_of_their_own():
    async def body():
        flights = Flights()
        first, second = Slow(), Slow()
        second.identity = "another"
        asks = [SingleFlight(first, flights).ask(one, Tally()) for one in DRAWS]
        asks += [SingleFlight(second, flights).ask(QUESTION, Tally())]
        asks += [SingleFlight(first, flights).ask(QUESTION.again("no number"), Tally()) for _ in range(2)]
        waiting = asyncio.gather(*asks)
        await settle()
        first.go.set()
        second.go.set()
        await waiting
        assert (first.asked, second.asked) == (5, 1)

    asyncio.run(body())


def test_several_evaluators_with_judges_of_their_own_share_one_call():
    async def body():
        flights, judge = Flights(), Slow()
        waiting = asyncio.gather(*(SingleFlight(judge, flights).ask(QUESTION, Tally()) for _ in range(3)))
        await settle()
        judge.go.set()
        await waiting
        assert judge.asked == 1

    asyncio.run(body())


def test_a_failure_is_shared_but_each_has_its_own_and_it_is_not_remembered():
    async def body():
        judge = Slow(JudgeUnavailable("503", kind="unavailable", judge="slow", attempts=4))
        single = SingleFlight(judge, Flights())
        tallies = [Tally() for _ in range(3)]
        waiting = asyncio.gather(*(single.ask(QUESTION, one) for one in tallies), return_exceptions=True)
        await settle()
        judge.go.set()
        errors = await waiting
        assert judge.asked == 1 and all(isinstance(one, JudgeUnavailable) for one in errors)
        assert {(str(one), one.kind, one.judge, one.attempts) for one in errors} == {("503", "unavailable", "slow", 4)}
        errors[0].detail["note"] = "mine"
        assert errors[1].detail == {} and errors[2].detail == {}
        assert sum(one.calls for one in tallies) == 1, "a failed request is a call too"
        judge.answer = 2
        assert (await single.ask(QUESTION, Tally())).value == 2

    asyncio.run(body())


def test_an_error_that_is_no_judges_reaches_all_who_wait():
    async def body():
        judge = Slow(ZeroDivisionError("a bug"))
        single = SingleFlight(judge, Flights())
        waiting = asyncio.gather(*(single.ask(QUESTION, Tally()) for _ in range(2)), return_exceptions=True)
        await settle()
        judge.go.set()
        assert [type(one) for one in await waiting] == [ZeroDivisionError] * 2

    asyncio.run(body())


@pytest.mark.parametrize("who", [0, 1, 2])
def test_one_who_is_cancelled_takes_the_answer_from_nobody(who):
    async def body():
        judge, tallies = Slow(), [Tally() for _ in range(3)]
        single = SingleFlight(judge, Flights())
        tasks = [asyncio.create_task(single.ask(QUESTION, tally)) for tally in tallies]
        await settle()
        tasks[who].cancel()
        await settle()
        assert tasks[who].cancelled() and judge.cancelled == 0
        judge.go.set()
        rest = [await task for number, task in enumerate(tasks) if number != who]
        assert [one.value for one in rest] == [1, 1] and judge.asked == 1
        assert sum(tally.calls for tally in tallies) == 1, "the cost is not lost with the one who went"
        assert tallies[who].calls == 0

    asyncio.run(body())


def test_when_all_are_cancelled_the_call_is_and_nothing_is_left():
    async def body():
        judge = Slow()
        single = SingleFlight(judge, Flights())
        tasks = [asyncio.create_task(single.ask(QUESTION, Tally())) for _ in range(3)]
        await settle()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert judge.cancelled == 1 and not others()
        judge.go.set()
        assert (await single.ask(QUESTION, Tally())).value == 1, "a new call, not the cancelled one"
        assert judge.asked == 2

    asyncio.run(body())


def test_one_who_asks_while_the_last_call_is_being_cancelled_gets_a_call_of_its_own():
    async def body():
        judge = Slow()
        single = SingleFlight(judge, Flights())
        first = asyncio.create_task(single.ask(QUESTION, Tally()))
        await settle()
        first.cancel()
        second = asyncio.create_task(single.ask(QUESTION, Tally()))
        judge.go.set()
        assert (await second).value == 1
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(body())


def test_a_budget_that_is_spent_stops_all_who_wait_for_the_call():
    async def body():
        spending = Spending(Budget(calls=0))
        single = SingleFlight(Metered(ScriptedJudge([]), spending), Flights())
        tallies = [Tally() for _ in range(3)]
        errors = await asyncio.gather(*(single.ask(QUESTION, one) for one in tallies), return_exceptions=True)
        assert all(isinstance(one, BudgetSpent) for one in errors)
        assert all(one.stopped for one in tallies)

    asyncio.run(body())


def test_those_who_wait_look_into_the_cache_once_and_store_once(tmp_path):
    async def body():
        replies = Replies(tmp_path / "cache.sqlite", "read_write")
        judge = Slow()
        single = SingleFlight(Cached(judge, replies), Flights())
        tallies = [Tally() for _ in range(3)]
        waiting = asyncio.gather(*(single.ask(QUESTION, one) for one in tallies))
        await settle()
        judge.go.set()
        await waiting
        later = Tally()
        await single.ask(QUESTION, later)
        replies.close()
        assert judge.asked == 1
        assert (later.calls, later.cached_calls, later.shared_calls) == (0, 1, 0)

    asyncio.run(body())


def test_the_same_texts_embedded_at_once_are_one_request():
    async def body():
        embedder = ScriptedEmbedder(lambda text: [float(len(text))])
        single = SingleFlightEmbedder(embedder, Flights())
        tallies = [Tally() for _ in range(3)]
        found = await asyncio.gather(
            single.embed(["a", "bb"], tallies[0]),
            single.embed(["a", "bb"], tallies[1]),
            single.embed(["a"], tallies[2]),
        )
        assert found == [[[1.0], [2.0]], [[1.0], [2.0]], [[1.0]]]
        assert embedder.texts == ["a", "bb", "a"]
        assert [one.embedding_calls for one in tallies] == [1, 0, 1]

    asyncio.run(body())
