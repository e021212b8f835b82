from __future__ import annotations

import asyncio
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scoring import NATIVE, outcome, value, why

from ragparity.core.errors import ConfigError, SampleError
from ragparity.core.policy import score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity.metrics.tool_calls import calls_made, typed

ACCURACY, F1 = "ToolCallAccuracy", "ToolCallF1"


def call(name, **args):
    return {"name": name, "args": args}


def talk(*calls):
    """A conversation in which the agent makes these calls, one a turn."""
    turns = [{"role": "user", "content": "Is it cold?"}]
    for one in calls:
        turns.append({"role": "assistant", "content": "", "tool_calls": [one]})
        turns.append({"role": "tool", "content": "4 °C"})
    return [*turns, {"role": "assistant", "content": "Yes."}]


def rows(made, wanted):
    return {"messages": talk(*made), "reference_tool_calls": wanted}


OSLO, ROME, BERN = (call("weather", city=city) for city in ("Oslo", "Rome", "Bern"))
CLOCK = call("clock")


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize(
    ("made", "wanted", "penalised", "ignored"),
    [
        ([OSLO], [OSLO], 1, 1),
        ([OSLO, OSLO, OSLO], [OSLO], Fraction(1, 3), 1),  # one wanted, three made
        ([OSLO, CLOCK], [OSLO], Fraction(1, 2), 1),  # one wanted, one more made
        ([ROME, ROME], [OSLO, ROME], Fraction(1, 2), Fraction(1, 2)),  # a duplicate is met once
        ([OSLO], [OSLO, OSLO], Fraction(1, 2), Fraction(1, 2)),
        ([OSLO], [OSLO, ROME, BERN], Fraction(1, 3), Fraction(1, 3)),
        ([], [OSLO], 0, 0),
        ([CLOCK], [OSLO], 0, 0),  # another tool
        ([ROME], [OSLO], 0, 0),  # the right tool, the wrong argument
    ],
)
def test_each_wanted_call_is_met_once_and_extra_calls_cost_their_share(order, made, wanted, penalised, ignored):
    assert value(ACCURACY, {"order": order}, **rows(made, wanted)) == float(penalised)
    assert value(ACCURACY, {"order": order, "extra_calls": "ignore"}, **rows(made, wanted)) == float(ignored)


@pytest.mark.parametrize(
    ("made", "wanted", "strict", "free"),
    [
        ([ROME, OSLO], [OSLO, ROME], Fraction(1, 2), 1),  # one of the two keeps its order
        ([CLOCK, OSLO], [OSLO, CLOCK], Fraction(1, 2), 1),
        ([BERN, OSLO, ROME], [OSLO, ROME, BERN], Fraction(2, 3), 1),
        ([OSLO, CLOCK, ROME], [OSLO, ROME], Fraction(2, 3), Fraction(2, 3)),  # a call between keeps the order
    ],
)
def test_strict_order_meets_calls_in_the_order_of_both_lists(made, wanted, strict, free):
    assert value(ACCURACY, **rows(made, wanted)) == float(strict)
    assert value(ACCURACY, {"order": "any"}, **rows(made, wanted)) == float(free)


def test_a_call_counts_by_its_share_of_right_arguments():
    wanted = [call("search", query="cats", limit=5, lang="en")]
    made = [call("search", query="cats", limit="5", lang="en")]
    found = outcome(ACCURACY, **rows(made, wanted))
    assert found.value == 2 / 3
    assert found.detail["calls"][0]["share"] == 2 / 3


def test_any_order_finds_the_best_pairing_and_not_the_first():
    # The first wanted call would take the first made one and leave 1/2 for the second.
    wanted = [call("f", a=1), call("f", a=1, b=2)]
    made = [call("f", a=1, b=2), call("f", a=1)]
    assert value(ACCURACY, {"order": "any"}, **rows(made, wanted)) == 1.0


@pytest.mark.parametrize(
    ("made", "wanted", "same"),
    [
        (1, 1.0, True),  # JSON has one kind of number
        (1, "1", False),
        (1, True, False),
        (0, False, False),
        (None, "None", False),
        (None, 0, False),
        ({"a": 1, "b": [1, 2]}, {"b": [1.0, 2], "a": 1}, True),
        ([1, 2], [2, 1], False),
        ("Oslo", "oslo", False),
        ({}, [], False),
    ],
)
def test_arguments_are_compared_as_json_values(made, wanted, same):
    sample = rows([call("f", x=made)], [call("f", x=wanted)])
    assert value(ACCURACY, **sample) == float(same)
    assert value(F1, **sample) == float(same)


def test_arguments_nobody_wanted_are_free_unless_penalised():
    sample = rows([call("search", query="cats", limit=5)], [call("search", query="cats")])
    assert value(ACCURACY, **sample) == 1.0
    assert value(ACCURACY, {"extra_args": "penalise"}, **sample) == 0.5
    assert value(F1, **sample) == 0.0  # F1 wants the same call
    bare = rows([call("clock", zone="UTC")], [CLOCK])
    assert value(ACCURACY, **bare) == 1.0
    assert value(ACCURACY, {"extra_args": "penalise"}, **bare) == 0.0


@pytest.mark.parametrize(
    ("made", "wanted", "expected"),
    [
        ([OSLO], [OSLO], 1),
        ([OSLO, OSLO, OSLO], [OSLO], Fraction(2, 4)),
        ([OSLO, CLOCK], [OSLO], Fraction(2, 3)),
        ([ROME, ROME], [OSLO, ROME], Fraction(2, 4)),
        ([ROME, OSLO], [OSLO, ROME], 1),  # order does not count
        ([], [OSLO], 0),
    ],
)
def test_f1_over_the_multiset_of_calls(made, wanted, expected):
    assert value(F1, **rows(made, wanted)) == float(expected)


def test_f1_names_missed_and_extra_calls():
    found = outcome(F1, **rows([ROME, ROME], [OSLO, ROME]))
    assert found.detail == {"missed_calls": [OSLO], "extra_calls": [ROME], "precision": 0.5, "recall": 0.5}
    assert found.reason == "1 calls agree, 2 were wanted and 2 made"


def test_accuracy_shows_which_call_met_which():
    found = outcome(ACCURACY, **rows([CLOCK, OSLO], [OSLO, ROME]))
    assert found.detail == {
        "calls": [{"wanted": OSLO, "made": OSLO, "share": 1.0}, {"wanted": ROME, "made": None, "share": 0.0}],
        "extra_calls": [CLOCK],
    }
    assert found.reason == "1 of 2 wanted calls were made with the right arguments, 2 were made"


@pytest.mark.parametrize(
    "shape",
    [
        {"name": "weather", "args": {"city": "Oslo"}, "id": "1", "type": "tool_call"},
        {"name": "weather", "arguments": {"city": "Oslo"}},
        {"name": "weather", "arguments": '{"city": "Oslo"}'},
        {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
        {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
    ],
)
def test_usual_shapes_of_a_call_are_the_same_call(shape):
    assert value(ACCURACY, **rows([shape], [OSLO])) == 1.0
    assert value(F1, **rows([OSLO], [shape])) == 1.0


@pytest.mark.parametrize("none", [None, "", " ", {}, "{}"])
def test_absent_and_empty_arguments_are_none(none):
    assert value(F1, **rows([{"name": "clock", "arguments": none}], [CLOCK])) == 1.0


@pytest.mark.parametrize("broken", ['{"city": "Os', "[1]", "null", 7])
def test_unreadable_arguments_of_the_agent_are_all_wrong_and_those_of_the_row_are_an_error(broken):
    bad = {"name": "weather", "arguments": broken}
    found = outcome(ACCURACY, **rows([bad], [OSLO]))
    assert (found.value, found.detail["calls"][0]["made"]) == (0.0, {"name": "weather", "args": None})
    assert value(ACCURACY, **rows([{"name": "clock", "arguments": broken}], [CLOCK])) == 0.0
    with pytest.raises(SampleError, match=r"reference_tool_calls\[1\]: the arguments of weather are no JSON object"):
        outcome(ACCURACY, **rows([OSLO], [OSLO, bad]))


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"messages": ["hello"]}, r"messages\[0\]: expected a mapping with role and content, got 'hello'"),
        ({"messages": [{"tool_calls": "weather"}]}, r"messages\[0\].tool_calls: expected a list of calls"),
        ({"messages": [{"tool_calls": ["weather"]}]}, r"messages\[0\].tool_calls\[0\]: expected a mapping with name"),
        ({"messages": [{"tool_calls": [{"tool": "weather"}]}]}, r"found the keys tool$"),
        ({"reference_tool_calls": ["weather"]}, r"reference_tool_calls\[0\]: expected a mapping with name and args"),
        ({"reference_tool_calls": [{"name": ""}]}, r"reference_tool_calls\[0\]: expected .* found the keys name"),
    ],
)
@pytest.mark.parametrize("name", [ACCURACY, F1])
def test_what_cannot_be_read_is_an_error_that_says_where(name, sample, message):
    with pytest.raises(SampleError, match=message):
        outcome(name, **{**rows([OSLO], [OSLO]), **sample})


@pytest.mark.parametrize("name", [ACCURACY, F1])
def test_a_single_turn_row_is_undefined_and_names_the_field(name):
    assert why(name, user_input="Is it cold?", response="Yes.") == "missing:messages"
    assert why(name, messages=talk(OSLO)) == "missing:reference_tool_calls"
    assert why(name, messages=[], reference_tool_calls=[OSLO]) == "no_messages"


@pytest.mark.parametrize("name", [ACCURACY, F1])
def test_no_wanted_call_is_undefined_unless_a_score_is_asked_for(name):
    assert why(name, **rows([], [])) == "no_reference_tool_calls"
    assert why(name, **rows([OSLO], [])) == "no_reference_tool_calls"
    assert value(name, {"no_calls_wanted": "score"}, **rows([], [])) == 1.0
    assert value(name, {"no_calls_wanted": "score"}, **rows([OSLO], [])) == 0.0
    assert outcome(name, {"no_calls_wanted": "score"}, **rows([], [])).reason == (
        "no tool call is wanted and none was made"
    )


def test_extra_calls_that_are_ignored_do_not_count_where_none_is_wanted():
    kwargs = {"no_calls_wanted": "score", "extra_calls": "ignore"}
    assert value(ACCURACY, kwargs, **rows([OSLO], [])) == 1.0


def test_several_calls_in_one_message_are_read_in_order():
    messages = [{"role": "assistant", "tool_calls": [OSLO, CLOCK]}, {"role": "assistant", "tool_calls": None}]
    assert [one.name for one in calls_made(messages)] == ["weather", "clock"]


def test_bogus_settings_are_refused():
    with pytest.raises(ConfigError, match=r"order: .*'strict' or 'any', got 'flexible'"):
        NATIVE.build(ACCURACY, {"order": "flexible"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_a_value_equals_itself_after_a_round_trip_through_json(one):
    assert typed(json.loads(json.dumps(one))) == typed(one)


few_calls = st.lists(
    st.builds(lambda name, city: call(name, city=city), st.sampled_from("fg"), st.sampled_from("ab")), max_size=4
)


@given(few_calls, few_calls.filter(bool))
def test_scores_stay_within_bounds_and_any_order_is_never_below_strict(made, wanted):
    sample = Sample(**rows(made, wanted))

    def scored(name, kwargs):
        found = asyncio.run(score(NATIVE.build(name, kwargs), sample, Kit()))
        assert found.status == "scored"
        return found.value

    strict, free = scored(ACCURACY, {"order": "strict"}), scored(ACCURACY, {"order": "any"})
    assert 0 <= strict <= free <= scored(ACCURACY, {"order": "any", "extra_calls": "ignore"}) <= 1
    # With one argument a call, a share is 0 or 1, so F1 and accuracy count the same pairs.
    agreeing = free * max(len(made), len(wanted))
    assert scored(F1, {}) == pytest.approx(2 * agreeing / (len(made) + len(wanted)))
