"""Correctness: claims of the response against those of the reference, and the similarity beside them."""

import asyncio
from fractions import Fraction

import pytest
from tests.metrics.judged import claims, everything_shown, no_judge, outcome, row, verdicts

from ragparity.core.errors import ConfigError, MalformedVerdict
from ragparity.core.outcome import Scored
from ragparity.metrics.claims import EXTRACT, Claims
from ragparity.metrics.correctness import AnswerCorrectness, FactualCorrectness, extraction, f_beta, f_of_counts, mixed
from ragparity.registry import NativeBackend
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

BACKEND = NativeBackend()


def vectors(text):
    """Response and reference have a cosine of 0.6."""
    return [1.0, 0.0] if text == row().response else [0.6, 0.8]


EMBEDDER = ScriptedEmbedder(vectors)


def judging(said, wanted, *, refusal=False):
    """A judge by which the response and the reference make these claims: text -> verdict."""

    def say(question):
        data = question.prompt.data
        if question.shape.schema is Claims:
            side = said if data["text"] == row().response else wanted
            return claims(*side, refusal=refusal and side is said)
        given = data.get("claims") or {**data["answer_claims"], **data["reference_claims"]}
        return {
            "verdicts": [
                {"id": int(number), "evidence": "none", "verdict": {**said, **wanted}[text]}
                for number, text in given.items()
            ]
        }

    return ScriptedJudge(say)


def factual(said, wanted, policies=(), **settings):
    return outcome(FactualCorrectness(**settings), row(), judging(said, wanted), **dict(policies))


def answer(said, wanted, policies=(), **settings):
    judge = judging(said, wanted)
    return outcome(AnswerCorrectness(**settings), row(), judge, embedder=EMBEDDER, **dict(policies))


SAID = {"A is so.": "yes", "B is so.": "yes", "C is so.": "no"}
WANTED = {"D is so.": "yes", "E is so.": "no"}

# -- factual correctness


# P = 2/3 of what is said, R = 1/2 of what is wanted; F1 = 2·(2/3)(1/2)/(2/3 + 1/2) = (2/3)/(7/6) = 4/7.
# Ragas counts TP 2, FP 1, FN 1: P 2/3, R 2/3, F1 2/3.
@pytest.mark.parametrize(
    ("mode", "own", "ragas"),
    [
        ("f1", Fraction(4, 7), Fraction(2, 3)),
        ("precision", Fraction(2, 3), Fraction(2, 3)),
        ("recall", Fraction(1, 2), Fraction(2, 3)),
    ],
)
def test_each_share_is_of_one_list_and_ragas_mixes_two(mode, own, ragas):
    assert factual(SAID, WANTED, mode=mode).value == float(own)
    assert factual(SAID, WANTED, mode=mode, counting="ragas").value == float(ragas)


def test_beta_weighs_recall():
    # F2 = 5·(2/3)(1/2) / (4·2/3 + 1/2) = (5/3) / (19/6) = 10/19; by counts 5·2 / (5·2 + 4·1 + 1) = 10/15
    assert factual(SAID, WANTED, beta=2).value == float(Fraction(10, 19))
    assert factual(SAID, WANTED, beta=2, counting="ragas").value == float(Fraction(2, 3))


def test_precision_and_recall_ask_about_one_side_only():
    for mode, asked in (("f1", 4), ("precision", 2), ("recall", 2)):
        judge = judging(SAID, WANTED)
        outcome(FactualCorrectness(mode=mode), row(), judge)
        assert len(judge.questions) == asked
    judge = judging(SAID, WANTED)
    outcome(FactualCorrectness(mode="recall", counting="ragas"), row(), judge)
    assert len(judge.questions) == 4


def test_a_response_with_one_true_and_many_needless_claims_has_no_more_recall_by_that():
    said = {f"Claim {at}.": "yes" for at in range(9)}
    wanted = {"D is so.": "no"}
    assert factual(said, wanted, mode="recall").value == 0.0
    assert factual(said, wanted, mode="recall", counting="ragas").value == 0.9  # nine hits, one miss


def test_nothing_right_on_either_side_is_zero():
    said, wanted = {"A is so.": "no"}, {"D is so.": "no"}
    for counting in ("own", "ragas"):
        for mode in ("f1", "precision", "recall"):
            assert factual(said, wanted, mode=mode, counting=counting).value == 0.0


def test_the_detail_has_every_claim_of_both_sides():
    found = factual(SAID, WANTED)
    assert [one["claim"] for one in found.detail["response_claims"]] == list(SAID)
    assert [one["verdict"] for one in found.detail["reference_claims"]] == [True, False]
    assert (found.detail["precision"], found.detail["recall"]) == (2 / 3, 0.5)
    expected = "2 of 3 claims of the response are in the reference; 1 of 2 claims of the reference are in the response"
    assert found.reason == expected


def test_each_side_is_judged_by_the_other_text():
    judge = judging(SAID, WANTED)
    outcome(FactualCorrectness(), row(), judge)
    shown = {tuple(one.prompt.data["claims"].values()): one.prompt.data["contexts"] for one in judge.questions[2:]}
    assert shown == {tuple(SAID): [row().reference], tuple(WANTED): [row().response]}


def test_the_contexts_are_not_shown():
    judge = judging(SAID, WANTED)
    outcome(FactualCorrectness(), row(retrieved_contexts=("A secret of 42 words.",)), judge)
    assert "secret" not in everything_shown(judge)


def test_the_claims_of_both_sides_are_asked_for_at_the_same_time():
    barrier = asyncio.Barrier(2)

    class Waiting(ScriptedJudge):
        async def ask(self, question, tally):
            await asyncio.wait_for(barrier.wait(), 5)
            return await super().ask(question, tally)

    assert outcome(FactualCorrectness(), row(), Waiting(judging(SAID, WANTED)._say)).value == 4 / 7


def test_cannot_tell_is_not_supported_or_left_out_by_policy():
    said = {"A is so.": "yes", "B is so.": "unknown"}
    found = factual(said, WANTED, mode="precision")
    assert (found.value, found.detail["unknown_verdicts"]) == (0.5, 1)
    exclude = {"unknown_verdict": "exclude"}
    assert factual(said, WANTED, exclude, mode="precision").value == 1.0
    assert factual(said, WANTED, exclude, mode="precision", counting="ragas").value == 1.0
    assert factual({"A is so.": "unknown"}, WANTED, exclude).why == "no_verdicts"


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="mode"):
        BACKEND.build("FactualCorrectness", {"mode": "f2"})
    with pytest.raises(ConfigError, match="beta"):
        BACKEND.build("FactualCorrectness", {"beta": 0})


def test_the_grain_of_the_claims_is_in_the_rules_and_nowhere_else():
    assert extraction("low", "high") == EXTRACT
    fine, short = extraction("high", "high"), extraction("low", "low")
    assert len(fine.rules) == len(EXTRACT.rules) == len(short.rules) - 1
    assert set(fine.rules) - set(EXTRACT.rules) and set(EXTRACT.rules) < set(short.rules)
    judge = judging(SAID, WANTED)
    outcome(FactualCorrectness(atomicity="high", coverage="low"), row(), judge)
    assert judge.questions[0].prompt.rules == extraction("high", "low").rules


def test_a_text_of_a_few_words_is_read_with_its_question_and_a_longer_one_alone():
    sample = row(response="Thirty days.", reference="Sealed products can be sent back for 30 days.")
    judge = ScriptedJudge([claims("A."), claims("B."), verdicts("yes"), verdicts("yes")])
    assert outcome(FactualCorrectness(), sample, judge).value == 1.0
    shown = [one.prompt.data.get("question") for one in judge.questions]
    assert shown == [sample.user_input, None, None, sample.user_input]  # the last is judged by the short response


# -- one rule for texts that make no claims


EQUAL = {"response": "42", "reference": " ４２ ", "user_input": "How much is 6 times 7?"}  # the second is full-width


@pytest.mark.parametrize("policy", ["undefined", "zero", "one"])
@pytest.mark.parametrize("metric", [FactualCorrectness(), FactualCorrectness(mode="precision"), AnswerCorrectness()])
def test_equal_texts_without_claims_are_one_whatever_the_policy(metric, policy):
    judge = ScriptedJudge(lambda _: claims())
    found = outcome(metric, row(**EQUAL), judge, embedder=EMBEDDER, no_claims=policy)
    assert found == Scored(1.0, "response and reference are equal", {"equal": True})


def test_equal_texts_with_claims_are_judged():
    said = {"A is so.": "no"}
    sample = row(reference=row().response)
    assert outcome(FactualCorrectness(), sample, judging(said, said)).value == 0.0


@pytest.mark.parametrize(
    ("said", "wanted", "side"), [({}, WANTED, "response"), (SAID, {}, "reference"), ({}, {}, "response")]
)
def test_a_side_without_claims_is_undefined_and_both_metrics_say_the_same(said, wanted, side):
    for found in (factual(said, wanted), answer(said, wanted)):
        assert (found.why, found.reason) == ("no_claims", f"the {side} makes no claims")
    assert factual(said, wanted, {"no_claims": "zero"}).value == 0.0
    assert answer(said, wanted, {"no_claims": "one"}).value == 1.0


def test_a_side_that_is_not_needed_may_be_without_claims():
    assert factual(SAID, {}, mode="precision").value == 2 / 3
    assert factual({}, WANTED, mode="recall").value == 0.5


def test_a_refusal_is_noted():
    for metric in (FactualCorrectness(), AnswerCorrectness()):
        found = outcome(metric, row(), judging({}, WANTED, refusal=True), embedder=EMBEDDER)
        assert found.why == "no_claims" and found.detail == {"refusal": True}


# -- answer correctness


def test_the_f_score_and_the_cosine_are_weighed():
    # TP 2, FP 1, FN 1: F1 2/3; 0.75·2/3 + 0.25·0.6 = 0.65
    found = answer(SAID, WANTED)
    assert found.value == pytest.approx(0.65, abs=1e-15)
    counts = [found.detail[name] for name in ("true_positives", "false_positives", "false_negatives")]
    assert (counts, found.detail["similarity"]) == ([2, 1, 1], pytest.approx(0.6))
    assert found.reason == "F of claims 0.67, similarity 0.60"


def test_weights_are_relative():
    assert answer(SAID, WANTED, weights=(3, 1)).value == answer(SAID, WANTED).value


def test_a_part_of_weight_zero_is_not_asked_for():
    only_claims = AnswerCorrectness(weights=(1, 0))
    assert only_claims.uses == {"structured"} and only_claims.bounds == (0.0, 1.0)
    assert outcome(only_claims, row(), judging(SAID, WANTED)).value == 2 / 3
    only_similarity = AnswerCorrectness(weights=(0, 1))
    assert only_similarity.uses == {"embeddings"} and only_similarity.bounds == (-1.0, 1.0)
    assert [one.shape for one in only_similarity.asks(row())] == ["embeddings"]
    assert outcome(only_similarity, row(), no_judge(), embedder=EMBEDDER).value == pytest.approx(0.6)


def test_the_lowest_score_is_minus_the_share_of_the_similarity():
    opposite = ScriptedEmbedder(lambda text: [1.0] if text == row().response else [-1.0])
    judge = judging({"A is so.": "no"}, {"D is so.": "no"})
    found = outcome(AnswerCorrectness(), row(), judge, embedder=opposite)
    assert found.value == AnswerCorrectness().bounds[0] == -0.25


@pytest.mark.parametrize("weights", [[0, 0], [-1, 1], [1]])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(ConfigError, match="weights"):
        BACKEND.build("AnswerCorrectness", {"weights": weights})


def test_a_zero_vector_is_no_similarity():
    zero = ScriptedEmbedder(lambda _: [0.0, 0.0])
    assert outcome(AnswerCorrectness(), row(), judging(SAID, WANTED), embedder=zero).why == "zero_vector"


def test_the_claims_of_both_sides_share_one_row_of_numbers():
    judge = judging(SAID, WANTED)
    outcome(AnswerCorrectness(), row(), judge, embedder=EMBEDDER)
    data = judge.questions[2].prompt.data
    assert data["answer_claims"] == dict(zip("123", SAID, strict=True))
    assert data["reference_claims"] == dict(zip("45", WANTED, strict=True))
    assert data["question"] == row().user_input


def test_fewer_verdicts_than_claims_are_asked_for_again_and_then_fail():
    judge = ScriptedJudge([claims("A.", "B."), claims("C."), verdicts("yes"), verdicts("no", first=2)])
    with pytest.raises(MalformedVerdict, match="verdicts on 2 of 3 claims"):
        outcome(AnswerCorrectness(), row(), judge, embedder=EMBEDDER)
    assert judge.questions[3].prompt.data["answer_claims"] == {"2": "B."}


# -- the pure parts


def test_the_two_forms_of_f_agree_where_the_lists_are_one():
    for right, wrong, missed in ((3, 1, 2), (1, 0, 5), (2, 2, 0)):
        precision, recall = Fraction(right, right + wrong), Fraction(right, right + missed)
        for beta in (0.5, 1, 2):
            assert f_beta(precision, recall, beta) == f_of_counts(right, wrong, missed, beta)
    assert f_beta(Fraction(0), Fraction(0)) == f_of_counts(0, 0, 0) == 0


def test_mixed_counts_without_a_claim_of_the_response_have_no_value():
    assert mixed([], [True], "f1", 1.0) is None
    assert mixed([False], [True], "recall", 1.0) == 0
