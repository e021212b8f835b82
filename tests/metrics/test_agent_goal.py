"""Agent goal accuracy: the end of a conversation against the reference or against what the user wanted."""

import pytest
from tests.metrics.judged import no_judge, outcome

from ragparity.core.errors import MalformedVerdict, SampleError
from ragparity.core.sample import Sample
from ragparity.metrics.agent_goal import (
    AgentGoalAccuracy,
    AgentGoalAccuracyWithoutReference,
    AgentGoalAccuracyWithReference,
)
from ragparity.metrics.conversation import turns_of
from ragparity_adapters.scripted import ScriptedJudge

CALL = {"name": "book", "args": {"table": 4}}
MESSAGES = (
    {"role": "user", "content": "Book a table for four."},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "Booked."},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": "Your table is booked."},
)
TABLE = Sample(messages=MESSAGES, reference="A table for four is booked.")
FOUND = {"user_goal": "a table for four", "end_state": "a table is booked"}


def scored(verdict, metric, sample=TABLE, **policies):
    judge = ScriptedJudge([FOUND, {"reason": "So  it\nis.", "verdict": verdict}])
    return outcome(metric, sample, judge, **policies), judge


@pytest.mark.parametrize(
    "metric", [AgentGoalAccuracy(), AgentGoalAccuracyWithReference(), AgentGoalAccuracyWithoutReference()]
)
@pytest.mark.parametrize(("verdict", "value"), [("yes", 1.0), ("no", 0.0), (1, 1.0), ("0", 0.0), ("unknown", 0.0)])
def test_the_verdict_is_the_score_in_every_spelling(metric, verdict, value):
    found, judge = scored(verdict, metric)
    assert (found.value, found.reason) == (value, "So it is.")
    assert found.detail["end_state"] == FOUND["end_state"]
    assert len(judge.questions) == 2 == sum(one.calls for one in metric.asks(TABLE))


@pytest.mark.parametrize(
    ("metric", "sample", "goal"),
    [
        (AgentGoalAccuracy(), TABLE, TABLE.reference),
        (AgentGoalAccuracy(), Sample(messages=MESSAGES), FOUND["user_goal"]),
        (AgentGoalAccuracy(), Sample(messages=MESSAGES, reference="  "), FOUND["user_goal"]),
        (AgentGoalAccuracyWithReference(), TABLE, TABLE.reference),
        (AgentGoalAccuracyWithoutReference(), TABLE, FOUND["user_goal"]),
    ],
)
def test_the_goal_is_the_reference_where_there_is_one_and_it_is_wanted(metric, sample, goal):
    _, judge = scored("yes", metric, sample)
    assert judge.questions[1].prompt.data == {"goal": goal, "end_state": FOUND["end_state"]}


def test_the_reference_does_not_colour_what_happened():
    _, judge = scored("yes", AgentGoalAccuracyWithReference())
    assert list(judge.questions[0].prompt.data) == ["conversation"]


def test_cannot_tell_is_undefined_where_it_does_not_count():
    found, _ = scored("unknown", AgentGoalAccuracy(), unknown_verdict="exclude")
    assert found.why == "no_verdicts"


def test_a_verdict_outside_the_allowed_set_is_a_failure():
    with pytest.raises(MalformedVerdict):
        scored(2, AgentGoalAccuracy())


def test_a_reference_that_is_needed_and_missing_is_named():
    found = outcome(AgentGoalAccuracyWithReference(), Sample(messages=MESSAGES), no_judge())
    assert found.why == "missing:reference"


def test_turns_keep_calls_and_results_and_leave_out_what_says_nothing():
    assert turns_of(MESSAGES) == [
        {"role": "user", "content": "Book a table for four."},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "content": "Booked."},
        {"role": "assistant", "content": "Your table is booked."},
    ]


@pytest.mark.parametrize("messages", [(), ({"role": "user", "content": ""},)])
def test_a_conversation_in_which_nothing_is_said_is_undefined(messages):
    assert outcome(AgentGoalAccuracy(), Sample(messages=messages), no_judge()).why == "no_messages"


@pytest.mark.parametrize("message", ["Hello", {"content": "no role"}])
def test_what_is_no_message_is_named_by_its_place(message):
    sample = Sample(messages=(MESSAGES[0], message))
    with pytest.raises(SampleError, match=r"messages\[1\]: expected a mapping with role and content"):
        outcome(AgentGoalAccuracy(), sample, no_judge())
