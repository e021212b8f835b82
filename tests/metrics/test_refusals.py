"""Refusals: found by their words or by a judge, and compared with what the row says."""

import pytest
from tests.metrics.judged import no_judge, outcome, row

from ragparity.core.errors import SampleError
from ragparity.metrics.refusals import is_refusal
from ragparity.registry import NativeBackend
from ragparity_adapters.scripted import ScriptedJudge

NATIVE = NativeBackend()


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "I do not have enough information to answer that.",
        "I'm sorry, but I cannot answer this question.",
        "The provided context does not mention the opening hours.",
        "This is not mentioned in the given documents.",
        "There is no information about this. Please contact our support, who will gladly help you.",
        "That cannot be determined from the passages.",
        "Unfortunately, I could not find anything about it. Is there anything else I can do?",
        "Das weiß ich leider nicht.",
        "Dazu gibt es keine Informationen.",
        "Je ne sais pas.",
        "No puedo responder a esta pregunta.",
        "Non lo so.",
        "Não sei.",
        "Ik weet het niet.",
        "Я не знаю.",
        "我不知道。",
        "申し訳ありませんが、わかりません。",
        "잘 모르겠습니다.",
        "I’m not sure.",
    ],
)
def test_refusals_are_found_by_their_words(text):
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "Oslo.",
        "",
        "I am not sure, but it is Oslo.",
        "The price is not included in the package.",
        "You do not know the answer until you open the box.",
        (
            "There were no details left to settle on the third of May, and so the treaty was signed in Paris by both kings "
            "and their ministers, who travelled home on the same evening and told their people of the peace."
        ),
        "I know that it stands in Paris.",
        "Sorry for the delay: your parcel arrives on Monday.",
        "Ich weiß, dass er in Paris steht.",
        "我知道这个。",
    ],
)
def test_answers_are_no_refusals(text):
    assert not is_refusal(text)


@pytest.mark.parametrize(
    ("answerable", "response", "expected"),
    [
        (False, "I don't know.", 1.0),
        (True, "In Paris.", 1.0),
        (True, "I don't know.", 0.0),
        (False, "In Paris.", 0.0),
        ("no", "I don't know.", 1.0),
        (1, "In Paris.", 1.0),
        ("false", "In Paris.", 0.0),
    ],
)
def test_a_refusal_is_right_where_nothing_can_be_answered(answerable, response, expected):
    found = outcome(
        NATIVE.build("RefusalCorrectness", {}), row(response=response, extra={"answerable": answerable}), no_judge()
    )
    assert found.value == expected
    assert found.detail["refusal"] is (response != "In Paris.")


@pytest.mark.parametrize("extra", [{}, {"answerable": None}, {"answerable": ""}, {"answerable": "unknown"}])
def test_a_row_that_does_not_say_has_no_score(extra):
    assert outcome(NATIVE.build("RefusalCorrectness", {}), row(extra=extra), no_judge()).why == "missing:answerable"


def test_a_column_that_says_something_else_is_an_error_of_its_row():
    with pytest.raises(SampleError, match="answerable: expected yes or no, got 'perhaps'"):
        outcome(NATIVE.build("RefusalCorrectness", {}), row(extra={"answerable": "perhaps"}), no_judge())


def test_a_judge_may_find_the_refusals():
    metric = NATIVE.build("RefusalCorrectness", {"by": "judge"})
    assert metric.uses == {"rating"}
    sample = row(response="Ask me tomorrow.", extra={"answerable": False})
    judge = ScriptedJudge([1])
    found = outcome(metric, sample, judge)
    assert (found.value, found.detail["found_by"]) == (1.0, "judge")
    assert list(judge.questions[0].prompt.data) == ["question", "answer"]
    assert [one.calls for one in metric.asks(sample)] == [1]
    assert outcome(metric, sample, ScriptedJudge([0])).value == 0.0


def test_by_words_nobody_is_asked():
    metric = NATIVE.build("RefusalCorrectness", {})
    assert metric.uses == frozenset()
    assert metric.asks(row(extra={"answerable": True})) == ()
