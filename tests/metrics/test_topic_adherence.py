"""Topic adherence: what was answered against what may be answered, topic by topic."""

from fractions import Fraction

import pytest
from tests.metrics.judged import no_judge, outcome, verdicts

from ragparity.core.errors import MalformedVerdict
from ragparity.core.sample import Sample
from ragparity.metrics.topic_adherence import TopicAdherence, Topics, adherence
from ragparity_adapters.scripted import ScriptedJudge

TALK = Sample(
    messages=({"role": "user", "content": "Weather? Politics? Food?"}, {"role": "assistant", "content": "Sunny."}),
    reference_topics=("weather", "Weather ", "food"),
)


def judging(answered, allowed):
    """A judge for topics that were answered and are allowed or not."""

    def say(question):
        data = question.prompt.data
        if question.shape.schema is Topics:
            return {"topics": [f"topic {at}" for at in range(1, len(answered) + 1)]}
        said = allowed if "reference_topics" in data else answered
        return {
            "verdicts": [{"id": int(at), "evidence": "none", "verdict": said[int(at) - 1]} for at in data["topics"]]
        }

    return ScriptedJudge(say)


def scored(answered, allowed, mode="f1", **policies):
    return outcome(TopicAdherence(mode=mode), TALK, judging(answered, allowed), **policies)


# Two topics are answered and allowed, one is answered although it is not allowed, two are allowed and not answered:
# precision 2/3, recall 2/4, F1 2·2/(2·2 + 1 + 2) = 4/7.
@pytest.mark.parametrize(
    ("mode", "value"), [("precision", Fraction(2, 3)), ("recall", Fraction(1, 2)), ("f1", Fraction(4, 7))]
)
def test_answered_topics_are_counted_against_allowed_ones(mode, value):
    found = scored([1, 1, 1, 0, 0], [1, 1, 0, 1, 1], mode)
    assert found.value == float(value)
    assert found.reason == "of 5 topics 3 are answered and 4 allowed, 2 both"


@pytest.mark.parametrize(
    ("mode", "why"), [("precision", "no_answered_topics"), ("recall", "no_allowed_topics"), ("f1", "no_allowed_topics")]
)
def test_an_agent_that_declines_all_that_it_must_decline_is_undefined_and_not_zero(mode, why):
    assert scored([0, 0], [0, 0], mode).why == why


def test_only_wrong_topics_answered_is_zero():
    assert scored([1, 0], [0, 1]).value == 0.0
    assert scored([1], [0], "precision").value == 0.0


def test_no_topics_are_undefined():
    assert scored([], []).why == "no_topics"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"messages": ()}, "no_messages"), ({"reference_topics": ()}, "no_reference_topics"),
        ({"reference_topics": (" ",)}, "no_reference_topics"), ({"reference_topics": None}, "missing:reference_topics"),
    ],
)  # fmt: skip
def test_a_row_without_messages_or_topics_is_undefined_and_nothing_is_asked(fields, why):
    sample = Sample(**{"messages": TALK.messages, "reference_topics": TALK.reference_topics, **fields})
    assert outcome(TopicAdherence(), sample, no_judge()).why == why


def test_twenty_two_topics_are_joined_to_their_verdicts_by_number():
    answered = [at % 2 for at in range(22)]
    allowed = [at % 3 > 0 for at in range(22)]
    judge = judging(answered, allowed)
    found = outcome(TopicAdherence(), TALK, judge)
    assert [one["answered"] for one in found.detail["topics"]] == [bool(one) for one in answered]
    assert [one["allowed"] for one in found.detail["topics"]] == allowed
    assert len(judge.questions) == 1 + 2 * 3  # 10, 10 and 2 topics at a time


def test_twenty_flags_for_twenty_two_topics_are_asked_for_again_by_number_and_then_fail():
    whole = judging([1] * 22, [1] * 22)._say

    def lazy(question):
        answer = whole(question)
        if "conversation" in question.prompt.data and "topics" in question.prompt.data:
            answer["verdicts"] = [one for one in answer["verdicts"] if one["id"] <= 20]
        return answer

    judge = ScriptedJudge(lazy)
    with pytest.raises(MalformedVerdict, match="verdicts on 20 of 22 topics, also when asked again"):
        outcome(TopicAdherence(), TALK, judge)
    assert list(judge.questions[-1].prompt.data["topics"]) == ["21", "22"]


def test_a_missing_flag_that_comes_when_asked_for_again_does_not_shift_the_others():
    topics = {"topics": ["a", "b", "c"]}
    judge = ScriptedJudge([topics, verdicts("yes"), verdicts("yes", "no", "yes"), verdicts("no", "yes", first=2)])
    found = outcome(TopicAdherence(), TALK, judge)
    assert [one["answered"] for one in found.detail["topics"]] == [True, False, True]
    assert found.value == 1.0


def test_cannot_tell_is_not_answered_or_left_out_by_policy():
    # Left out: one of one. Counted as a no: two allowed, one of them answered.
    assert scored([1, "unknown"], [1, 1], unknown_verdict="exclude").value == 1.0
    found = scored([1, "unknown"], [1, 1], "recall")
    assert (found.value, found.detail["unknown_verdicts"]) == (0.5, 1)
    assert scored(["unknown"], [1], unknown_verdict="exclude").why == "no_verdicts"


def test_each_question_sees_what_it_needs_and_no_more():
    judge = judging([1], [1])
    outcome(TopicAdherence(), TALK, judge)
    first, answered, allowed = (one.prompt.data for one in judge.questions)
    assert list(first) == ["conversation"]
    assert list(answered) == ["conversation", "topics"]
    assert allowed == {"reference_topics": ["weather", "food"], "topics": {"1": "topic 1"}}


def test_counts_of_nothing_have_no_value():
    assert adherence([True], [False], "recall") is None
    assert adherence([False], [True], "precision") is None
    assert adherence([False], [True], "f1") == 0
