"""Noise sensitivity: wrong claims that came out of the contexts."""

from fractions import Fraction

import pytest
from tests.metrics.judged import claims, no_judge, outcome, row

from ragparity.core.errors import MalformedVerdict
from ragparity.metrics.claims import Claims
from ragparity.metrics.noise_sensitivity import NoiseSensitivity, noisy
from ragparity_adapters.scripted import ScriptedJudge

PASSAGES = ("Relevant.", "Aside.", "Both.")
TRUTH = {"True thing.": {"Relevant.", "Both."}}
SAID = {
    "Right and held.": {"Reference", "Relevant."},
    "Wrong from a relevant one.": {"Relevant."},
    "Wrong from the aside.": {"Aside."},
    "Wrong from both.": {"Aside.", "Both."},
    "Wrong from nowhere.": set(),
}
"""Claim -> the texts that support it; "Relevant." and "Both." also support what is true."""


def judging(said=SAID, truth=TRUTH, unknown=()):
    def say(question):
        data = question.prompt.data
        if question.shape.schema is Claims:
            return claims(*(said if data["text"] == row().response else truth))
        (text,) = data["contexts"]
        where = "Reference" if text == row().reference else text
        return {
            "verdicts": [
                {
                    "id": int(number),
                    "evidence": "none",
                    "verdict": "unknown" if (claim, where) in unknown else where in {**said, **truth}[claim],
                }
                for number, claim in data["claims"].items()
            ]
        }

    return ScriptedJudge(say)


def scored(judge=None, mode="relevant", **policies):
    return outcome(NoiseSensitivity(mode=mode), row(retrieved_contexts=PASSAGES), judge or judging(), **policies)


# Of five claims two are wrong and held by a relevant passage, one is wrong and held by the aside alone.
@pytest.mark.parametrize(("mode", "value"), [("relevant", Fraction(2, 5)), ("irrelevant", Fraction(1, 5))])
def test_wrong_claims_count_by_the_kind_of_passage_they_came_from(mode, value):
    found = scored(mode=mode)
    assert found.value == float(value)
    assert [one["relevant"] for one in found.detail["passages"]] == [True, False, True]


def test_every_claim_says_where_it_came_from():
    found = scored()
    assert [(one["verdict"], one["supported_by"], one["noise"]) for one in found.detail["claims"]] == [
        (True, [0], False), (False, [0], True), (False, [1], False), (False, [1, 2], True), (False, [], False),
    ]  # fmt: skip
    assert found.reason == "2 of 5 claims are wrong and supported by a relevant passage"


def test_it_asks_three_times_and_twice_a_passage():
    judge = judging()
    scored(judge)
    assert len(judge.questions) == 3 + 2 * len(PASSAGES)
    assert sum(one.calls for one in NoiseSensitivity().asks(row(retrieved_contexts=PASSAGES))) == 9


def test_lower_is_better():
    assert NoiseSensitivity.higher_is_better is False


def test_a_faithful_answer_from_useless_passages_has_no_noise_that_is_relevant():
    judge = judging({"Wrong.": {"Aside."}}, {"True thing.": set()})
    assert scored(judge).value == 0.0
    assert scored(judging({"Wrong.": {"Aside."}}, {"True thing.": set()}), mode="irrelevant").value == 1.0


def test_a_response_without_claims_goes_by_the_policy_and_a_reference_without_is_undefined():
    assert scored(judging(said={})).why == "no_claims"
    assert scored(judging(said={}), no_claims="zero").value == 0.0
    found = scored(judging(truth={}), no_claims="zero")
    assert (found.why, found.reason) == ("no_claims", "the reference makes no claims")


def test_cannot_tell_about_the_reference_is_wrong_or_left_out_by_policy():
    unknown = {("Wrong from both.", "Reference")}
    assert scored(judging(unknown=unknown)).value == float(Fraction(2, 5))
    assert scored(judging(unknown=unknown), unknown_verdict="exclude").value == float(Fraction(1, 4))


def test_cannot_tell_about_a_passage_is_no_support():
    unknown = {("Wrong from a relevant one.", "Relevant.")}
    for policy in ("unsupported", "exclude"):
        found = scored(judging(unknown=unknown), unknown_verdict=policy)
        assert (found.value, found.detail["unknown_verdicts"]) == (float(Fraction(1, 5)), 1)


def test_nothing_but_cannot_tell_left_out_is_undefined():
    judge = judging({"Wrong.": set()}, unknown={("Wrong.", "Reference")})
    assert scored(judge, unknown_verdict="exclude").why == "no_verdicts"


def test_a_passage_with_too_few_verdicts_is_asked_about_again_and_then_fails():
    whole = judging()._say

    def short(question):
        answer = whole(question)
        if question.prompt.data.get("contexts") == ["Aside."] and len(question.prompt.data["claims"]) > 1:
            answer["verdicts"] = answer["verdicts"][:1]
        return answer

    with pytest.raises(MalformedVerdict, match="verdicts on 2 of 5 claims"):
        scored(ScriptedJudge(short))


def test_missing_fields_are_named_and_nothing_is_asked():
    for name in NoiseSensitivity.reads:
        assert outcome(NoiseSensitivity(), row(**{name: None}), no_judge()).why == f"missing:{name}"


def test_noise_of_one_kind_excludes_the_other():
    for held in ([True, True], [True, False], [False, True], [False, False]):
        kinds = [noisy(held, [True, False], mode) for mode in ("relevant", "irrelevant")]
        assert sum(kinds) == any(held)
