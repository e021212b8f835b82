"""The judge and the embedder that say what they are told."""

import asyncio

import pytest
from pydantic import BaseModel

from ragparity.core.errors import JudgeUnavailable, MalformedVerdict
from ragparity.core.ports import Answer, Kit, Scale, Tally
from ragparity.core.prompt import Prompt
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

LEVELS = Scale((0, 1, 2))


class Verdict(BaseModel):
    reason: str
    verdict: bool


def rating(judge):
    return asyncio.run(Kit(judge=judge).rating(Prompt("Rate it."), LEVELS)).value


def test_replies_come_in_the_order_of_the_questions_and_the_questions_are_kept():
    judge = ScriptedJudge([2, 0])
    assert [rating(judge), rating(judge)] == [2, 0]
    assert [question.prompt.task for question in judge.questions] == ["Rate it."] * 2


def test_a_question_too_many_is_an_error_that_names_it():
    judge = ScriptedJudge([])
    with pytest.raises(AssertionError, match=r"no reply left for: Rate it\."):
        rating(judge)


def test_a_function_sees_the_question():
    assert rating(ScriptedJudge(lambda question: len(question.prompt.task) - 7)) == 1  # "Rate it." has 8 letters


def test_an_exception_in_the_script_is_raised_and_the_call_counted():
    tally = Tally()
    with pytest.raises(JudgeUnavailable):
        asyncio.run(Kit(judge=ScriptedJudge([JudgeUnavailable("down")]), tally=tally).rating(Prompt("t"), LEVELS))
    assert tally.calls == 1


def test_a_mapping_becomes_an_object_of_the_schema_and_one_that_does_not_fit_is_malformed():
    def verdict(reply):
        return asyncio.run(Kit(judge=ScriptedJudge([reply])).verdict(Prompt("t"), Verdict, budget=8))

    assert verdict({"reason": "r", "verdict": True}) == Verdict(reason="r", verdict=True)
    with pytest.raises(MalformedVerdict, match="does not fit"):
        verdict({"reason": "r"})


def test_a_rating_off_the_scale_is_malformed():
    with pytest.raises(MalformedVerdict, match=r"7 is not one of \(0, 1, 2\)"):
        rating(ScriptedJudge([7]))


def test_a_ready_answer_is_passed_on():
    answer = Answer(1, "1", reason="because")
    assert asyncio.run(Kit(judge=ScriptedJudge([answer])).rating(Prompt("t"), LEVELS)) is answer


def test_vectors_come_from_a_mapping_or_a_function_in_the_order_of_the_texts():
    tally = Tally()
    by_text = ScriptedEmbedder({"a": [1.0], "b": [2.0]})
    assert asyncio.run(by_text.embed(["b", "a"], tally)) == [[2.0], [1.0]]
    assert by_text.texts == ["b", "a"] and tally.embedding_calls == 1
    assert asyncio.run(ScriptedEmbedder(lambda text: [float(len(text))]).embed(["abc"], tally)) == [[3.0]]
