"""Context precision in its three forms: ranked, ranked against the response, and the plain share."""

import asyncio
from fractions import Fraction
from itertools import product

import pytest
from tests.metrics.judged import everything_shown, no_judge, outcome, row, verdicts

from ragparity.core.errors import JudgeUnavailable, MalformedVerdict
from ragparity.core.outcome import Undefined
from ragparity.core.ports import Tally
from ragparity.metrics.context_precision import (
    ContextPrecision,
    ContextPrecisionShare,
    ContextPrecisionWithoutReference,
    average_precision,
)
from ragparity_adapters.scripted import ScriptedJudge

ALL_THREE = [ContextPrecision(), ContextPrecisionWithoutReference(), ContextPrecisionShare()]
TOGETHER = ContextPrecision(judging="together")


def by_passage(**verdict_of):
    """A judge that answers about a passage by its name."""
    return ScriptedJudge(
        lambda question: {"reason": "so it is", "verdict": verdict_of[question.prompt.data["context"]]}
    )


def useful(*said):
    """Passages p1, p2, … and the judge that says so about them."""
    names = [f"p{rank}" for rank in range(1, len(said) + 1)]
    return row(retrieved_contexts=names), by_passage(**dict(zip(names, said, strict=True)))


def value(metric, *said, **policies):
    sample, judge = useful(*said)
    return outcome(metric, sample, judge, **policies).value


# -- the value


@pytest.mark.parametrize(
    ("said", "exact"),
    [
        ([1, 1], Fraction(1)),
        ([0, 1], Fraction(1, 2)),
        ([1, 0], Fraction(1)),
        ([0, 0], Fraction(0)),
        ([0, 1, 0, 1], Fraction(1, 2)),
        ([1, 0, 1, 0], Fraction(5, 6)),
        ([0, 1, 1], Fraction(7, 12)),
    ],
)
def test_the_ranked_value_is_exact(said, exact):
    assert value(ContextPrecision(), *said) == float(exact)


def test_a_perfect_ranking_is_one_and_not_a_little_less():
    assert value(ContextPrecision(), *[1] * 9) == 1.0


def test_the_order_matters_to_the_ranked_metric_and_not_to_the_share():
    assert value(ContextPrecision(), 0, 1) == 0.5
    assert value(ContextPrecision(), 1, 0) == 1.0
    assert value(ContextPrecisionShare(), 0, 1) == 0.5
    assert value(ContextPrecisionShare(), 1, 0) == 0.5


def test_the_share_is_useful_passages_over_passages():
    assert value(ContextPrecisionShare(), 0, 1, 1) == float(Fraction(2, 3))


def test_average_precision_is_the_mean_of_the_precisions_at_the_useful_ranks():
    for said in product([False, True], repeat=5):
        ranks = [rank for rank in range(1, 6) if said[rank - 1]]
        expected = sum((Fraction(sum(said[:rank]), rank) for rank in ranks), Fraction(0))
        assert average_precision(said) == (expected / len(ranks) if ranks else 0)


def test_average_precision_stays_within_its_bounds_and_is_one_only_for_useful_passages_in_front():
    for said in product([False, True], repeat=6):
        found = average_precision(said)
        assert 0 <= found <= 1
        assert (found == 1) == (any(said) and list(said) == sorted(said, reverse=True))


@pytest.mark.parametrize("metric", ALL_THREE, ids=repr)
def test_every_passage_is_kept_with_verdict_and_reason(metric):
    sample, judge = useful("no", "yes")
    result = outcome(metric, sample, judge)
    assert result.detail["passages"] == [
        {"passage": 0, "text": "p1", "verdict": False, "reason": "so it is"},
        {"passage": 1, "text": "p2", "verdict": True, "reason": "so it is"},
    ]
    assert result.reason == "1 of 2 passages are useful (rank 2)"


# -- verdicts


@pytest.mark.parametrize("large", [2, 3, 5, -2, 0.5, "2"])
@pytest.mark.parametrize("metric", ALL_THREE, ids=repr)
def test_a_larger_number_is_no_verdict_and_never_lifts_the_score_above_one(metric, large):
    sample, judge = useful(large, 0, 1)
    with pytest.raises(MalformedVerdict):
        outcome(metric, sample, judge)


@pytest.mark.parametrize("unknown", [None, -1, "unknown"])
def test_cannot_tell_counts_as_not_useful_and_is_counted(unknown):
    sample, judge = useful(unknown, "yes")
    result = outcome(ContextPrecision(), sample, judge)
    assert result.value == 0.5
    assert result.detail["unknown_verdicts"] == 1


def test_cannot_tell_is_left_out_by_policy_and_the_others_move_up():
    assert value(ContextPrecision(), "unknown", "yes", unknown_verdict="exclude") == 1.0
    assert value(ContextPrecisionShare(), "unknown", "yes", "no", unknown_verdict="exclude") == 0.5


@pytest.mark.parametrize("metric", ALL_THREE, ids=repr)
def test_nothing_but_cannot_tell_left_out_is_undefined(metric):
    sample, judge = useful("unknown", "unknown")
    result = outcome(metric, sample, judge, unknown_verdict="exclude")
    assert isinstance(result, Undefined)
    assert result.why == "no_verdicts"


def test_one_passage_that_fails_fails_the_row_and_the_others_are_asked_all_the_same():
    def say(question):
        if question.prompt.data["context"] == "p1":
            return JudgeUnavailable("no connection")
        return {"reason": "", "verdict": "yes"}

    judge = ScriptedJudge(say)
    with pytest.raises(JudgeUnavailable):
        outcome(ContextPrecision(), row(retrieved_contexts=["p1", "p2", "p3"]), judge)
    assert len(judge.questions) == 3


# -- together


def test_ten_passages_are_asked_about_at_the_same_time():
    class Waiting(ScriptedJudge):
        async def ask(self, question, tally):
            await asyncio.wait_for(barrier.wait(), 5)
            return await super().ask(question, tally)

    barrier = asyncio.Barrier(10)
    judge = Waiting(lambda _: {"reason": "", "verdict": "yes"})
    result = outcome(ContextPrecision(), row(retrieved_contexts=[f"p{rank}" for rank in range(10)]), judge)
    assert result.value == 1.0


def test_judged_together_twelve_passages_take_two_questions():
    def say(question):
        ids = [int(number) for number in question.prompt.data["contexts"]]
        return verdicts(*("yes" if number == 12 else "no" for number in ids), first=ids[0])

    judge, tally = ScriptedJudge(say), Tally()
    sample = row(retrieved_contexts=[f"p{rank}" for rank in range(1, 13)])
    result = outcome(TOGETHER, sample, judge, tally=tally)
    assert tally.calls == 2 == sum(one.calls for one in TOGETHER.asks(sample))
    assert result.value == float(Fraction(1, 12))
    assert judge.questions[0].prompt.data["contexts"]["1"] == "p1"


def test_judged_together_four_passages_need_four_verdicts():
    sample = row(retrieved_contexts=["p1", "p2", "p3", "p4"])
    judge = ScriptedJudge([verdicts("yes"), verdicts("no", "no", "no", first=2)])
    assert outcome(TOGETHER, sample, judge).value == 1.0
    with pytest.raises(MalformedVerdict, match="verdicts on 1 of 4 passages"):
        outcome(TOGETHER, sample, ScriptedJudge([verdicts("yes"), verdicts("yes")]))


def test_judged_together_verdicts_on_no_passage_are_ignored_and_counted():
    judge = ScriptedJudge([verdicts("yes", "no", "yes")])
    result = outcome(TOGETHER, row(retrieved_contexts=["p1", "p2"]), judge)
    assert result.value == 1.0
    assert result.detail["extra_verdicts"] == 1


# -- what is read, and what the judge sees


@pytest.mark.parametrize(
    ("metric", "shown", "hidden"),
    [
        (ContextPrecision(), "a reference", "a response"),
        (ContextPrecisionShare(), "a reference", "a response"),
        (ContextPrecisionWithoutReference(), "a response", "a reference"),
    ],
    ids=repr,
)
def test_usefulness_is_judged_against_one_answer_and_the_other_is_not_shown(metric, shown, hidden):
    sample, judge = useful("yes")
    from dataclasses import replace

    outcome(metric, replace(sample, response="a response", reference="a reference"), judge)
    assert judge.questions[0].prompt.data["answer"] == shown
    assert hidden not in everything_shown(judge)


def test_the_share_asks_the_same_questions_as_the_ranked_metric():
    sample, one = useful("yes", "no")
    _, other = useful("yes", "no")
    outcome(ContextPrecision(), sample, one)
    outcome(ContextPrecisionShare(), sample, other)
    assert one.questions == other.questions


@pytest.mark.parametrize("metric", ALL_THREE, ids=repr)
@pytest.mark.parametrize("contexts", [(), ("",), ("  \n",)])
def test_blank_contexts_are_undefined_without_a_question(metric, contexts):
    result = outcome(metric, row(retrieved_contexts=contexts), no_judge())
    assert result.why == "blank_contexts"


@pytest.mark.parametrize("metric", ALL_THREE, ids=repr)
def test_missing_fields_are_named_without_a_question(metric):
    for field in metric.reads:
        assert outcome(metric, row(**{field: None}), no_judge()).why == f"missing:{field}"
    assert outcome(metric, row(user_input=" "), no_judge()).why == "missing:user_input"


def test_an_empty_reference_is_not_sent():
    assert outcome(ContextPrecision(), row(reference=""), no_judge()).why == "missing:reference"


def test_ranks_are_those_of_the_passages_that_are_kept():
    judge = by_passage(p1="no", p2="yes")
    result = outcome(ContextPrecision(), row(retrieved_contexts=["", "p1", " ", "p2"]), judge)
    assert result.value == 0.5
    assert result.detail["blank_retrieved_contexts_dropped"] == 2
    assert [one["passage"] for one in result.detail["passages"]] == [0, 1]


def test_a_passage_that_repeats_is_judged_at_each_of_its_ranks():
    judge = by_passage(p1="yes")
    result = outcome(ContextPrecision(), row(retrieved_contexts=["p1", "p1"]), judge)
    assert result.value == 1.0
    assert len(judge.questions) == 2


def test_the_best_of_several_references_counts():
    def say(question):
        return {"reason": "", "verdict": "yes" if question.prompt.data["answer"] == "right" else "no"}

    sample = row(reference=None, references=("wrong", "right"), retrieved_contexts=["p1"])
    for policy, expected in (("best", 1.0), ("mean", 0.5), ("joined", 0.0)):
        assert outcome(ContextPrecision(), sample, ScriptedJudge(say), references=policy).value == expected
