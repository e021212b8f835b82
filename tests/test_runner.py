"""The runner: one record per row and evaluator whatever happens, bounded, cancellable, and nothing left behind."""

import asyncio
import math
import time

import pytest
from tests.meetings import Echo, evaluator, rows

from ragparity import runner
from ragparity.core.errors import AmbiguousRating, JudgeUnavailable, MalformedVerdict, SampleError
from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.core.prompt import Prompt
from ragparity.core.row import Row
from ragparity.core.sample import Sample
from ragparity.runner import repeated


def keeping(records):
    return lambda made: records.extend(one for one, _tally in made)


def run(rows_in, evaluators, *, concurrency=4, **more):
    found = []
    asyncio.run(runner.run(rows_in, evaluators, keeping(found), concurrency=concurrency, **more))
    return found


def by_meeting(records):
    return {(one.evaluator, one.row): one for one in records}


# -- one bad meeting is one failed record


def test_one_failing_row_leaves_the_others_their_scores():
    def says(sample, _kit):
        return JudgeUnavailable("down") if sample.id == "1" else 1.0

    found = by_meeting(run(rows(5), [evaluator(says)]))
    assert [found["e", row].score for row in range(5)] == [1.0, None, 1.0, 1.0, 1.0]
    assert found["e", 1].outcome.kind == "unavailable"


def test_an_error_does_not_stick_to_the_metric():
    answers = iter([ValueError("once"), 1.0, 1.0])
    found = by_meeting(run(rows(3), [evaluator(lambda *_: next(answers))], concurrency=1))
    assert [one.status for one in found.values()].count("failed") == 1


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (MalformedVerdict("no verdict", raw="hm", attempts=4), "malformed", "no verdict"),
        (AmbiguousRating("2 or 4"), "ambiguous", "2 or 4"),
        (JudgeUnavailable("slow", kind="timeout"), "timeout", "slow"),
        (SampleError("contexts: a number"), "input", "contexts: a number"),
        (KeyError("x"), "internal", "KeyError: 'x' (meetings.py:"),
        (ValueError("two\nlines"), "internal", "ValueError: two lines (meetings.py:"),
        (RecursionError("deep"), "internal", "RecursionError: deep"),
        (ExceptionGroup("several", [ValueError("a")]), "internal", "ExceptionGroup: several"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_whatever_a_metric_raises_becomes_a_failed_record(raised, kind, message):
    (one,) = run(rows(1), [evaluator(raised)])
    assert one.status == "failed" and one.score is None
    assert one.outcome.kind == kind and one.outcome.message.startswith(message)
    assert "\n" not in one.outcome.message


def test_a_judge_error_keeps_its_raw_text_attempts_and_detail():
    error = MalformedVerdict("no verdict", raw="I think so", attempts=4)
    error.detail = {"readable_ratings": [4]}
    (one,) = run(rows(1), [evaluator(error)])
    assert one.outcome == Failed("malformed", "no verdict", 4, "I think so", {"readable_ratings": [4]})


@pytest.mark.parametrize("odd", [0, None, "1.0", [Scored(1.0)]])
def test_a_metric_that_gives_no_outcome_is_a_failure_of_the_metric(odd):
    (one,) = run(rows(1), [evaluator(lambda *_: odd)])
    assert one.outcome.kind == "internal" and "not Scored or Undefined" in one.outcome.message


def test_a_metric_that_makes_a_score_of_nan_fails():
    (one,) = run(rows(1), [evaluator(lambda *_: math.nan)])
    assert one.status == "failed" and "finite float" in one.outcome.message


def test_a_score_outside_the_bounds_is_out_of_range():
    (one,) = run(rows(1), [evaluator(1.67)])
    assert one.outcome.kind == "out_of_range"


def test_something_within_a_metric_that_cancels_itself_is_a_failed_record_and_no_lost_row():
    async def cancelled():
        raise asyncio.CancelledError

    found = run(rows(2), [evaluator(lambda sample, _kit: cancelled() if sample.id == "0" else 1.0)])
    assert [by_meeting(found)["e", row].status for row in (0, 1)] == ["failed", "scored"]


def test_a_row_that_could_not_be_read_fails_for_every_evaluator_without_asking():
    broken = [(Row(0, "torn", error="two responses"),)]
    metric = evaluator(1.0)
    found = run(broken, [metric, evaluator(1.0, "f", judged=False)])
    assert [(one.evaluator, one.outcome.kind, one.outcome.message) for one in found] == [
        ("f", "input", "two responses"),
        ("e", "input", "two responses"),
    ]
    assert metric.metric.seen == []


# -- every meeting once


def test_every_row_meets_every_evaluator_exactly_once():
    three = [evaluator(1.0, "a"), evaluator(0.5, "b", judged=False), evaluator(Undefined("no_claims"), "c")]
    found = run(rows(17), three)
    assert sorted((one.evaluator, one.row) for one in found) == sorted(
        (name, row) for name in "abc" for row in range(17)
    )


def test_each_evaluator_gets_its_own_view_of_a_row():
    views = (Row(0, "a", Sample(id="a", response="x")), Row(0, "a", Sample(id="a", response="y")))
    seen = {}

    def says(name):
        def keep(sample, _kit):
            seen[name] = sample.response
            return 1.0

        return keep

    second = runner.Evaluator(name="s", metric=evaluator(says("s")).metric, view=1)
    found = run([views], [evaluator(says("e")), second])
    assert seen == {"e": "x", "s": "y"}
    assert len({one.key for one in found}) == 2


def test_meetings_that_are_done_do_not_take_place():
    metric = evaluator(1.0)
    found = run(rows(4), [metric], done=lambda name, row: name == "e" and row < 3)
    assert [one.row for one in found] == [3] and metric.metric.seen == ["3"]


def test_notes_of_the_reading_are_in_the_detail():
    row = Row(0, "a", Sample(id="a", notes=("a list did not parse",)))
    (one,) = run([(row,)], [evaluator(1.0)])
    assert one.outcome.detail == {"row_notes": ["a list did not parse"]}


# -- the key of a record


def test_the_key_changes_with_what_can_change_a_score_and_with_nothing_else():
    def key(sample=None, **more):
        row = Row(0, "0", sample or Sample(id="0", user_input="q0"))
        return runner.key_of(evaluator(1.0, **more), row)

    assert key() == key(name="another name")
    assert key() == key(sample=Sample(id="9", user_input="q0", extra={"note": 1}))
    others = [
        key(version="2"),
        key(reps=2),
        key(judge=Echo()),
        key(sample=Sample(user_input="other")),
        key(backend="ragas"),
    ]
    assert len({key(), *others}) == 6


# -- how many at a time


def test_rows_are_read_as_they_are_needed():
    read = []

    def one_by_one():
        for views in rows(1000):
            read.append(views[0].index)
            yield views

    async def main():
        gate = asyncio.Event()

        async def wait(*_):
            await gate.wait()
            return Scored(1.0)

        task = asyncio.create_task(runner.run(one_by_one(), [evaluator(wait)], lambda *_: None, concurrency=2))
        await asyncio.sleep(0.05)
        under_way = len(read)
        gate.set()
        await task
        return under_way

    # 2 calls in flight x 8 meetings for each, and the row that waits for its place
    assert asyncio.run(main()) == 2 * runner.WINDOW + 1
    assert len(read) == 1000


def test_metrics_without_a_judge_let_others_have_their_turn():
    async def main():
        turns = 0

        async def tick():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        def busy(*_):
            time.sleep(0.001)
            return 1.0

        ticking = asyncio.create_task(tick())
        await runner.run(rows(200), [evaluator(busy, judged=False)], lambda *_: None, concurrency=1)
        ticking.cancel()
        return turns

    assert asyncio.run(main()) >= 3


def test_a_run_of_metrics_without_a_judge_can_be_cancelled():
    kept = []

    async def main():
        def busy(*_):
            time.sleep(0.001)
            return 1.0

        work = runner.run(rows(5000), [evaluator(busy, judged=False)], keeping(kept), concurrency=1)
        task = asyncio.create_task(work)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert 0 < len(kept) < 5000


# -- the end of a run


def test_a_cancelled_run_leaves_no_task_and_no_open_question():
    judge, kept = Echo(seconds=30), []

    async def main():
        async def asks(_sample, kit):
            await kit.text(Prompt("say"), budget=8)
            return Scored(1.0)

        before = asyncio.all_tasks()
        one = evaluator(asks, judge=judge, reps=3)
        task = asyncio.create_task(runner.run(rows(40), [one], keeping(kept), concurrency=4))
        await asyncio.sleep(0.05)
        assert judge.with_it > 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before

    asyncio.run(main())
    assert judge.with_it == 0 and kept == []


def test_an_error_of_writing_ends_the_run_as_itself_and_leaves_no_task():
    async def main():
        def full(*_):
            raise OSError(28, "No space left on device")

        before = asyncio.all_tasks()
        with pytest.raises(OSError, match="No space left"):
            await runner.run(rows(50), [evaluator(1.0)], full, concurrency=4)
        assert asyncio.all_tasks() == before

    asyncio.run(main())


def test_an_error_of_the_rows_ends_the_run_as_itself_after_what_was_written():
    def torn():
        yield from rows(3)
        raise OSError(5, "Input/output error")

    kept = []
    with pytest.raises(OSError, match="Input/output"):
        asyncio.run(runner.run(torn(), [evaluator(1.0, judged=False)], keeping(kept), concurrency=4))
    assert len(kept) == 3


# -- repetitions


def test_repetitions_are_numbered_apart_and_their_mean_is_the_score():
    draws = []

    def says(_sample, kit):
        draws.append(kit.draw)
        return [1.0, 0.5, 0.0][kit.draw // runner.DRAWS_PER_REPETITION]

    (one,) = run(rows(1), [evaluator(says, reps=3)])
    assert sorted(draws) == [0, 1000, 2000]
    assert one.score == 0.5 and one.outcome.detail["repetitions"] == [1.0, 0.5, 0.0]
    assert one.outcome.detail["spread"] == 0.5  # sample standard deviation of 1, 1/2, 0


def test_a_repetition_without_a_score_is_counted_and_is_no_zero():
    outcomes = [Scored(1.0), Failed("timeout", "t"), Undefined("no_claims")]
    assert repeated(outcomes).value == 1.0
    assert repeated(outcomes).detail["repetitions_without_score"] == 2
    assert repeated(outcomes).detail["spread"] is None


def test_without_any_score_the_first_outcome_stands():
    assert repeated([Failed("timeout", "t"), Undefined("no_claims")]) == Failed("timeout", "t")


def test_what_was_asked_is_counted_over_all_repetitions():
    async def asks(kit):
        await kit.text(Prompt("say"), budget=8)
        return Scored(1.0)

    (one,) = run(rows(1), [evaluator(lambda _sample, kit: asks(kit), judge=Echo(), reps=3)])
    assert (one.calls, one.input_tokens) == (3, 3)
