"""Context recall: claims of the reference that the contexts hold."""

from fractions import Fraction

import pytest
from tests.metrics.judged import everything_shown, no_judge, outcome, row

from ragparity.core.errors import MalformedVerdict
from ragparity.core.outcome import Scored, Undefined
from ragparity.metrics.context_recall import ContextRecall
from ragparity_adapters.scripted import ScriptedJudge

RECALL = ContextRecall()


def held(*said, claims=None, evidence="none"):
    texts = claims or [f"Fact {number}." for number in range(1, len(said) + 1)]
    return {
        "claims": [{"claim": text, "evidence": evidence, "verdict": one} for text, one in zip(texts, said, strict=True)]
    }


def scored(reply, sample=None, **policies):
    judge = ScriptedJudge([reply])
    return outcome(RECALL, sample or row(), judge, **policies), judge


@pytest.mark.parametrize(
    ("said", "exact"), [([1, 1, 1], Fraction(1)), ([1, 0, 0], Fraction(1, 3)), ([1, 1, 0, 0], Fraction(1, 2)), ([0], 0)]
)
def test_the_value_is_exact(said, exact):
    result, judge = scored(held(*said))
    assert result.value == float(exact)
    assert len(judge.questions) == 1


@pytest.mark.parametrize("large", [2, -2, "two"])
def test_a_larger_number_is_no_verdict_and_never_lifts_the_score_above_one(large):
    with pytest.raises(MalformedVerdict):
        scored(held(large, 2, 0))


def test_the_response_never_enters_the_prompt():
    result, judge = scored(held("yes", "yes"), row(response="UNRELATED one. UNRELATED two. UNRELATED three."))
    assert result.value == 1.0
    assert "UNRELATED" not in everything_shown(judge)
    assert set(judge.questions[0].prompt.data) == {"question", "contexts", "reference"}


def test_the_response_does_not_have_to_be_there():
    assert scored(held("yes"), row(response=None))[0].value == 1.0


def test_the_question_does_not_have_to_be_there():
    result, judge = scored(held("yes"), row(user_input=None))
    assert result.value == 1.0
    assert "question" not in judge.questions[0].prompt.data


def test_a_claim_that_is_written_twice_counts_once():
    result, _ = scored(held("yes", "no", "yes", claims=["A is red.", "B is red.", "a is  RED"]))
    assert result.value == 0.5
    assert [one["claim"] for one in result.detail["claims"]] == ["A is red.", "B is red."]


def test_two_different_verdicts_on_one_claim_are_malformed():
    with pytest.raises(MalformedVerdict, match="two different verdicts"):
        scored(held("yes", "no", claims=["A is red.", "a is red"]))


def test_blank_claims_do_not_count():
    assert scored(held("yes", "no", "no", claims=["A.", " ", "…"]))[0].value == 1.0


def test_many_lines_of_evidence_do_not_change_the_value():
    assert scored(held("yes", "no", evidence="one line\n" * 7))[0].value == 0.5


def test_no_claims_are_undefined_or_what_the_policy_says():
    result, _ = scored({"claims": []})
    assert isinstance(result, Undefined)
    assert result.why == "no_claims"
    assert scored({"claims": []}, no_claims="one")[0] == Scored(
        1.0, "the reference makes no claims", {"policy": "no_claims"}
    )
    assert scored({"claims": []}, no_claims="zero")[0].value == 0.0


def test_cannot_tell_is_not_held_and_counted_or_left_out_by_policy():
    result, _ = scored(held("yes", "unknown"))
    assert result.value == 0.5
    assert result.detail["unknown_verdicts"] == 1
    assert scored(held("yes", "unknown"), unknown_verdict="exclude")[0].value == 1.0
    assert scored(held("unknown"), unknown_verdict="exclude")[0].why == "no_verdicts"


def test_every_claim_is_kept_with_evidence_and_passage():
    result, _ = scored(held("yes", claims=["It is 30 days."], evidence="during the 30 days"))
    assert result.detail["claims"] == [
        {"id": 1, "claim": "It is 30 days.", "verdict": True, "reason": "during the 30 days", "passage": 1}
    ]
    assert result.reason == "1 of 1 claims of the reference are in the contexts"


@pytest.mark.parametrize("contexts", [(), ("",), ("  \n",)])
def test_blank_contexts_are_undefined_without_a_question(contexts):
    assert outcome(RECALL, row(retrieved_contexts=contexts), no_judge()).why == "blank_contexts"


@pytest.mark.parametrize("reference", [None, "", " "])
def test_a_missing_reference_is_named_without_a_question(reference):
    assert outcome(RECALL, row(reference=reference), no_judge()).why == "missing:reference"


def test_prose_instead_of_verdicts_is_a_failure():
    with pytest.raises(MalformedVerdict):
        scored({"answer": "Both facts are in the contexts."})


def test_a_claim_without_a_verdict_is_a_failure():
    with pytest.raises(MalformedVerdict):
        scored({"claims": [{"claim": "A.", "evidence": "none"}]})


def test_references_are_joined_averaged_or_the_best_is_taken():
    def say(question):
        text = question.prompt.data["reference"]
        return held("yes") if text == "one" else held("no")

    sample = row(reference=None, references=("one", "two"))
    for policy, expected, asked in (("best", 1.0, 2), ("mean", 0.5, 2), ("joined", 0.0, 1)):
        judge = ScriptedJudge(say)
        assert outcome(RECALL, sample, judge, references=policy).value == expected
        assert len(judge.questions) == asked
    best = outcome(RECALL, sample, ScriptedJudge(say))
    assert best.detail["reference_used"] == 0
    assert judge.questions[0].prompt.data["reference"] == "one\ntwo"


def test_a_reference_without_claims_does_not_hide_one_with_claims():
    def say(question):
        return {"claims": []} if question.prompt.data["reference"] == "42?" else held("no")

    assert outcome(RECALL, row(reference=None, references=("42?", "two")), ScriptedJudge(say)).value == 0.0
