"""Criteria, rubrics and weighted parts: the declared scale, what is no rating, majorities."""

import pytest
from tests.metrics.judged import everything_shown, outcome, row

from ragparity.core.errors import AmbiguousRating, ConfigError, JudgeRefused, SampleError
from ragparity.core.outcome import Undefined
from ragparity.metrics.criteria import majority
from ragparity.metrics.rubrics import levels_of
from ragparity.registry import NativeBackend
from ragparity_adapters.offline import OfflineJudge
from ragparity_adapters.scripted import ScriptedJudge

NATIVE = NativeBackend()
FIVE = {f"score{n}_description": f"level {n}" for n in range(1, 6)}


def build(name, **kwargs):
    return NATIVE.build(name, kwargs)


def refusal(name, **kwargs):
    with pytest.raises(ConfigError) as caught:
        build(name, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- AspectCritic


def test_one_draw_decides_alone():
    found = outcome(build("AspectCritic", definition="Is it polite?"), row(), ScriptedJudge([1]))
    assert found.value == 1.0
    assert found.detail == {"votes": [1], "scale": [0, 1]}


def test_strictness_draws_are_really_made_and_the_majority_counts():
    judge = ScriptedJudge([1, 0, 0])
    found = outcome(build("AspectCritic", definition="Is it polite?", strictness=3), row(), judge)
    assert found.value == 0.0
    assert found.reason == "2 of 3 draws say that the criterion does not hold"
    assert sorted(one.draw for one in judge.questions) == [0, 1, 2]


def test_a_failed_draw_matters_only_where_it_could_decide():
    metric = build("AspectCritic", definition="Is it polite?", strictness=3)
    found = outcome(metric, row(), ScriptedJudge([1, JudgeRefused("no"), 1]))
    assert (found.value, found.detail["failed_draws"]) == (1.0, 1)
    with pytest.raises(JudgeRefused) as caught:
        outcome(metric, row(), ScriptedJudge([1, JudgeRefused("no"), 0]))
    assert caught.value.detail == {"readable_votes": [1, 0]}


def test_an_even_number_of_draws_is_refused():
    assert refusal("AspectCritic", definition="x", strictness=2) == (
        "metric AspectCritic: strictness: expected an odd number of draws, 1 or more, got 2"
    )


@pytest.mark.parametrize(
    ("votes", "draws", "expected"), [([], 1, None), ([0], 1, 0), ([1, 1], 5, None), ([0] * 3, 5, 0)]
)
def test_a_majority_is_more_than_half_of_all_draws(votes, draws, expected):
    assert majority(votes, draws) == expected


def test_the_judge_sees_the_chosen_fields_and_no_others():
    judge = ScriptedJudge([1])
    metric = build("AspectCritic", definition="Is it short?", reads=["response"])
    assert metric.reads == ("response",)
    outcome(metric, row(), judge)
    assert list(judge.questions[0].prompt.data) == ["answer"]
    found = outcome(metric, row(response=None), ScriptedJudge([]))
    assert (type(found), found.why) == (Undefined, "missing:response")


def test_a_field_that_cannot_be_shown_is_refused():
    assert "reads.0" in refusal("AspectCritic", definition="x", reads=["messages"])
    assert "one or more different fields" in refusal("AspectCritic", definition="x", reads=[])
    assert "one or more different fields" in refusal("SimpleCriteria", definition="x", reads=["response", "response"])


def test_braces_in_a_criterion_are_shown_as_they_are():
    judge = ScriptedJudge([1])
    outcome(build("AspectCritic", definition='Is it JSON like {"port": {x}} %s {{}}?'), row(), judge)
    assert 'Is it JSON like {"port": {x}} %s {{}}?' in everything_shown(judge)


# -- SimpleCriteria


@pytest.mark.parametrize(
    ("scale", "rating", "expected"),
    [([1, 5], 1, 0.0), ([1, 5], 4, 0.75), ([0, 10], 7, 0.7), ([0, 1], 1, 1.0), ([0, 100], 25, 0.25), ([2, 4], 2, 0.0)],
)
def test_the_minimum_is_subtracted_and_the_raw_rating_kept(scale, rating, expected):
    found = outcome(build("SimpleCriteria", definition="How clear is it?", scale=scale), row(), ScriptedJudge([rating]))
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.detail["rating"] == rating


def test_nine_tenths_on_a_scale_from_zero_to_one_stays_nine_tenths():
    metric = build("SimpleCriteria", definition="How clear is it, from 0.0 to 1.0?", scale=[0, 1], step=0.1)
    found = outcome(metric, row(), ScriptedJudge([0.9]))
    assert found.value == 0.9
    assert metric.asks(row())[0].budget > 8, "a fraction is asked for with its reason, not within 8 tokens"


def test_the_scale_is_shown_to_the_judge():
    judge = ScriptedJudge([3])
    outcome(build("SimpleCriteria", definition="How clear is it?"), row(), judge)
    assert "1 is the worst rating and 5 the best." in everything_shown(judge)
    assert judge.questions[0].shape.scale.points == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    "definition",
    [
        "Score 0 to 10 by similarity",
        "score from 0.0 to 1.0",
        "Rate it on a scale of 1-10.",
        "Give a grade between 1 and 6",
    ],
)
def test_a_definition_that_speaks_of_another_scale_is_refused(definition):
    assert "make them agree" in refusal("SimpleCriteria", definition=definition)


@pytest.mark.parametrize(
    "definition",
    [
        "Score 1 to 5 by similarity",
        "Rate it from 1 to 5",
        "Is the price between 3 and 7 euros?",
        "Rate how well it explains the steps; there should be 3 to 7 of them",
        "Rate whether it names the years 1914-1918",
    ],
)
def test_other_numbers_in_a_definition_are_no_scale(definition):
    build("SimpleCriteria", definition=definition)


def test_a_scale_that_is_none_is_refused():
    for scale in ([5, 1], [1, 1]):
        assert "expected a scale [min, max]" in refusal("SimpleCriteria", definition="x", scale=scale)
    assert "leads from min to max" in refusal("SimpleCriteria", definition="x", scale=[0, 1], step=0.3)
    assert "leads from min to max" in refusal("SimpleCriteria", definition="x", scale=[0, 1], step=0)


# -- rubrics


@pytest.mark.parametrize(("rating", "expected"), [(1, 0.0), (2, 0.25), (5, 1.0)])
def test_a_rubric_rating_is_a_share_of_the_rubrics_own_scale(rating, expected):
    found = outcome(build("RubricsScore", rubrics=FIVE), row(), ScriptedJudge([rating]))
    assert found.value == expected
    assert found.detail == {"rating": rating, "scale": [1, 2, 3, 4, 5], "level": f"level {rating}"}


def test_every_level_is_shown_in_order_as_a_rule():
    judge = ScriptedJudge([5])
    outcome(build("DomainSpecificRubrics", rubrics=dict(reversed(FIVE.items()))), row(), judge)
    system = judge.questions[0].prompt.system()
    assert [system.index(f"- {n}: level {n}") for n in range(1, 6)] == sorted(
        system.index(f"- {n}: level {n}") for n in range(1, 6)
    )


def test_the_variant_with_reference_needs_and_shows_one():
    metric = build("RubricsScoreWithReference", rubrics={1: "bad", 3: "good"})
    judge = ScriptedJudge([3])
    assert outcome(metric, row(), judge).value == 1.0
    assert "reference" in judge.questions[0].prompt.data
    assert judge.questions[0].shape.scale.points == (1, 3)
    assert outcome(metric, row(reference=None), ScriptedJudge([])).why == "missing:reference"


@pytest.mark.parametrize(
    "keys", [(1, 2), ("1", "2"), ("score1_description", "score2_description"), ("score_1", "level 2")]
)
def test_rating_keys_may_be_spelled_in_several_ways(keys):
    assert levels_of(dict(zip(keys, ("bad", "good"), strict=True))) == {1: "bad", 2: "good"}


@pytest.mark.parametrize(
    ("rubrics", "said"),
    [
        ({"good": "x", "bad": "y"}, "names no rating"),
        ({1: "x"}, "two or more ratings, got 1"),
        ({1: "x", "score1_description": "y"}, "two descriptions for 1"),
        ({1: "x", 2: " "}, "expected a description in words"),
    ],
)
def test_a_rubric_that_is_none_is_refused(rubrics, said):
    assert said in refusal("RubricsScore", rubrics=rubrics)


def test_a_rows_own_rubric_stands_in_the_data_and_sets_the_scale():
    judge = ScriptedJudge([2])
    metric = build("InstanceSpecificRubrics")
    found = outcome(metric, row(rubrics={"0": "wrong {x}", "2": "right"}), judge)
    assert (found.value, found.detail["level"]) == (1.0, "right")
    prompt = judge.questions[0].prompt
    assert prompt.data["rubric"] == {"0": "wrong {x}", "2": "right"}
    assert "wrong {x}" not in prompt.system()
    assert judge.questions[0].shape.scale.points == (0, 2)


def test_a_rows_rubric_that_cannot_be_read_is_an_error_of_that_row():
    with pytest.raises(SampleError, match="names no rating"):
        outcome(build("InstanceSpecificRubrics"), row(rubrics={"good": "x", "bad": "y"}), ScriptedJudge([]))


def test_a_rating_that_the_rubric_does_not_describe_never_becomes_a_score():
    error = AmbiguousRating("the rating 9 is not on the scale")
    with pytest.raises(AmbiguousRating):
        outcome(build("RubricsScore", rubrics=FIVE), row(), ScriptedJudge([error]))


# -- TunableRag


def parts(coverage, correctness, relevance):
    return {"reason": "It says so.", "coverage": coverage, "correctness": correctness, "relevance": relevance}


@pytest.mark.parametrize(
    ("weights", "said", "expected"),
    [
        ({}, (4, 2, 4), 0.85),  # 0.5 + 0.3 / 2 + 0.2
        ({"coverage": 1, "correctness": 1, "relevance": 2}, (4, 0, 2), 0.5),  # (1 + 0 + 1) / 4
        ({"coverage": 0, "correctness": 5, "relevance": 0}, (0, 3, 0), 0.75),
        ({}, (0, 0, 0), 0.0),
        ({}, (4, 4, 4), 1.0),
    ],
)
def test_parts_are_weighted_and_weights_normalised(weights, said, expected):
    found = outcome(build("TunableRag", **weights), row(), ScriptedJudge([parts(*said)]))
    assert found.value == expected
    assert found.detail["parts"] == dict(zip(("coverage", "correctness", "relevance"), said, strict=True))


def test_weights_that_weigh_nothing_are_refused():
    zero = {"coverage": 0, "correctness": 0, "relevance": 0}
    assert "at least one weight above 0" in refusal("TunableRag", **zero)
    assert "relevance" in refusal("TunableRag", relevance=-1)


# -- the judge without a model


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("AspectCritic", {"definition": "Does it answer?"}),
        ("SimpleCriteria", {"definition": "How well does it answer?"}),
        ("RubricsScore", {"rubrics": FIVE}),
        ("RubricsScoreWithReference", {"rubrics": FIVE}),
        ("InstanceSpecificRubrics", {}),
        ("TunableRag", {}),
    ],
)
def test_the_offline_judge_tells_an_answer_from_a_refusal(name, kwargs):
    metric = build(name, **kwargs)
    question = "How long can a sealed product be sent back?"
    good = row(
        user_input=question, rubrics=FIVE, response="A sealed product can be sent back for 30 days, that is how long."
    )
    bad = row(user_input=question, rubrics=FIVE, response="Sorry, I do not know.")
    assert outcome(metric, bad, OfflineJudge()).value < outcome(metric, good, OfflineJudge()).value
