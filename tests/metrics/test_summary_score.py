"""Summary score: questions that a summary answers, weighed with its length."""

from fractions import Fraction

import pytest
from tests.metrics.judged import outcome, row, verdicts

from ragparity.core.errors import ConfigError, MalformedVerdict
from ragparity.metrics.summary_score import MOST, SummaryScore
from ragparity.registry import NativeBackend
from ragparity_adapters.scripted import ScriptedJudge

BACKEND = NativeBackend()
TEXT = ("a" * 60, "b" * 59)  # 120 characters with the line end between them
SUMMARY = "s" * 30
SAMPLE = row(reference_contexts=TEXT, response=SUMMARY)


def said(*answers, phrases=("k",), questions=None):
    asked = [f"Question {at}?" for at in range(len(answers))] if questions is None else questions
    return [{"keyphrases": list(phrases)}, {"closed_questions": asked}, verdicts(*answers)]


def scored(*answers, policies=(), **settings):
    return outcome(SummaryScore(**settings), SAMPLE, ScriptedJudge(said(*answers)), **dict(policies))


# 2 of 3 questions are answered; 30 of 120 characters: conciseness 3/4.
@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({}, Fraction(1, 2) * Fraction(2, 3) + Fraction(1, 2) * Fraction(3, 4)),
        ({"coeff": 0.1}, Fraction(9, 10) * Fraction(2, 3) + Fraction(1, 10) * Fraction(3, 4)),
        ({"coeff": 0}, Fraction(2, 3)),
        ({"coeff": 1}, Fraction(3, 4)),
        ({"length_penalty": False}, Fraction(2, 3)),
    ],
)
def test_answers_and_conciseness_are_weighed(settings, value):
    assert scored("yes", "no", "yes", **settings).value == float(value)


def test_a_summary_as_long_as_the_text_is_not_concise_and_never_below_zero():
    for length in (120, 500):
        sample = row(reference_contexts=TEXT, response="s" * length)
        found = outcome(SummaryScore(), sample, ScriptedJudge(said("yes")))
        assert (found.value, found.detail["conciseness"]) == (0.5, 0.0)


def test_the_three_questions_build_on_each_other():
    judge = ScriptedJudge(said("yes", "no", phrases=("Ulm", " ", "ulm", "1377")))
    found = outcome(SummaryScore(), SAMPLE, judge)
    first, second, third = (one.prompt.data for one in judge.questions)
    assert first == {"text": "\n".join(TEXT)}
    assert second["keyphrases"] == found.detail["keyphrases"] == ["Ulm", "1377"]
    assert third == {"summary": SUMMARY, "questions": {"1": "Question 0?", "2": "Question 1?"}}
    assert [one["verdict"] for one in found.detail["questions"]] == [True, False]
    assert found.reason == "the summary answers 1 of 2 questions and is 75% shorter than the text"


def test_more_questions_than_asked_for_are_cut():
    asked = [f"Question {at}?" for at in range(MOST + 5)]
    judge = ScriptedJudge(said(*["yes"] * MOST, questions=asked))
    assert len(outcome(SummaryScore(), SAMPLE, judge).detail["questions"]) == MOST


def test_a_text_that_gives_nothing_to_ask_is_undefined():
    judge = ScriptedJudge([{"keyphrases": [" "]}])
    assert outcome(SummaryScore(), SAMPLE, judge).why == "no_keyphrases"
    assert outcome(SummaryScore(), SAMPLE, ScriptedJudge(said(questions=["?"]))).why == "no_questions"


def test_cannot_tell_is_no_answer_or_left_out_by_policy():
    assert scored("yes", "unknown", length_penalty=False).value == 0.5
    exclude = {"unknown_verdict": "exclude"}
    assert scored("yes", "unknown", policies=exclude, length_penalty=False).value == 1.0
    assert scored("unknown", policies=exclude).why == "no_verdicts"


def test_fewer_answers_than_questions_are_asked_for_again_and_then_fail():
    replies = [*said("yes", questions=["A?", "B?", "C?"]), verdicts("no", first=2)]
    with pytest.raises(MalformedVerdict, match="verdicts on 2 of 3 questions"):
        outcome(SummaryScore(), SAMPLE, ScriptedJudge(replies))


def test_a_weight_outside_its_range_is_refused():
    with pytest.raises(ConfigError, match="coeff"):
        BACKEND.build("SummaryScore", {"coeff": 2})
