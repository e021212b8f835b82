"""Answer relevancy: questions asked back, and their similarity to the question that was asked."""

import math

import pytest
from tests.metrics.judged import everything_shown, no_judge, outcome, row

from ragparity.core.errors import JudgeUnavailable, MalformedVerdict, SampleError
from ragparity.core.outcome import Undefined
from ragparity.core.ports import Tally
from ragparity.metrics.answer_relevancy import AnswerRelevancy, noncommittal_by
from ragparity.registry import NativeBackend
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

RELEVANCY = AnswerRelevancy()
QUESTION = row().user_input


def asked(*questions, flags=None):
    flags = flags or [False] * len(questions)
    return {"questions": [{"question": q, "noncommittal": f} for q, f in zip(questions, flags, strict=True)]}


def at(cosine):
    """A unit vector with this cosine to the question's."""
    return [cosine, math.sqrt(1 - cosine * cosine)]


def embedder(**cosine_of):
    return ScriptedEmbedder({QUESTION: [1.0, 0.0], **{name: at(cosine) for name, cosine in cosine_of.items()}})


def scored(*replies, metric=RELEVANCY, vectors=None, tally=None):
    judge = ScriptedJudge(replies)
    vectors = vectors or embedder(a=0.91, b=0.88, c=0.94)
    return outcome(metric, row(), judge, embedder=vectors, tally=tally), judge


# -- the value


def test_the_value_is_the_mean_of_the_cosines():
    result, _ = scored(asked("a", "b", "c"))
    assert result.value == pytest.approx((0.91 + 0.88 + 0.94) / 3, abs=1e-12)
    assert result.detail["similarities"] == pytest.approx([0.91, 0.88, 0.94], abs=1e-12)
    assert [one["question"] for one in result.detail["questions"]] == ["a", "b", "c"]


def test_opposite_questions_score_below_zero():
    result, _ = scored(asked("a", "a", "a"), vectors=embedder(a=-1.0))
    assert result.value == -1.0


def test_the_same_question_back_is_one_exactly():
    assert scored(asked(QUESTION, QUESTION, QUESTION))[0].value == 1.0


def test_the_length_of_a_vector_does_not_matter():
    vectors = ScriptedEmbedder({QUESTION: [0.001, 0.0], "a": [3e200, 4e200]})
    assert scored(asked("a", "a", "a"), vectors=vectors)[0].value == pytest.approx(0.6, abs=1e-12)


def test_one_call_and_one_request_for_vectors():
    tally = Tally()
    scored(asked("a", "b", "c"), tally=tally)
    assert (tally.calls, tally.embedding_calls) == (1, 1)
    shapes = {one.shape: one.calls for one in RELEVANCY.asks(row())}
    assert shapes == {"structured": 1, "embeddings": 1}


@pytest.mark.parametrize("strictness", [1, 2, 5])
def test_strictness_is_the_number_of_questions(strictness):
    metric = AnswerRelevancy(strictness=strictness)
    _, judge = scored(asked(*["a"] * strictness), metric=metric)
    schema = judge.questions[0].shape.schema.model_json_schema()["properties"]["questions"]
    assert schema["minItems"] == schema["maxItems"] == strictness


def test_more_questions_than_asked_for_do_not_count():
    result, judge = scored(asked("a", "a", "a", "b", "c"))
    assert result.value == pytest.approx(0.91, abs=1e-12)
    assert len(judge.questions) == 1


# -- noncommittal


@pytest.mark.parametrize(
    ("flags", "by_all", "by_majority", "by_any"),
    [
        ([0, 0, 0], False, False, False),
        ([0, 1, 0], False, False, True),
        ([1, 1, 0], False, True, True),
        ([1, 1, 1], True, True, True),
        ([1, 0], False, False, True),
    ],
)
def test_the_rule_says_how_many_flags_make_a_response_noncommittal(flags, by_all, by_majority, by_any):
    flags = [bool(flag) for flag in flags]
    assert [noncommittal_by(flags, rule) for rule in ("all", "majority", "any")] == [by_all, by_majority, by_any]


@pytest.mark.parametrize("rule", ["all", "majority", "any"])
def test_a_noncommittal_response_scores_zero_without_vectors(rule):
    tally = Tally()
    metric = AnswerRelevancy(noncommittal=rule)
    result, _ = scored(asked("a", "b", "c", flags=[True] * 3), metric=metric, tally=tally)
    assert result.value == 0.0
    assert result.detail["noncommittal"] is True
    assert tally.embedding_calls == 0


def test_one_flag_of_three_does_not_lower_the_score_and_is_noted():
    result, _ = scored(asked("a", "a", "a", flags=[False, True, False]))
    assert result.value == pytest.approx(0.91, abs=1e-12)
    assert result.detail["noncommittal"] is False


def test_one_flag_of_three_is_enough_where_the_rule_is_any():
    metric = AnswerRelevancy(noncommittal="any")
    assert scored(asked("a", "a", "a", flags=[False, True, False]), metric=metric)[0].value == 0.0


# -- blank questions


def test_blank_questions_are_asked_for_again_and_never_compared():
    vectors = embedder(a=0.9, b=0.5)
    result, judge = scored(asked("", "a", " "), asked("a", "b"), vectors=vectors)
    assert result.value == pytest.approx((0.9 + 0.9 + 0.5) / 3, abs=1e-12)
    assert vectors.texts == [QUESTION, "a", "a", "b"]
    assert [one.prompt.data["how_many_questions"] for one in judge.questions] == [3, 2]
    assert [one.draw for one in judge.questions] == [0, 1]


def test_the_flag_of_a_blank_question_goes_with_it():
    result, _ = scored(asked("", "a", "a", flags=[True, False, False]), asked("a"))
    assert result.value == pytest.approx(0.91, abs=1e-12)


def test_questions_still_missing_after_the_second_request_are_counted():
    result, judge = scored(asked("a"), asked(""))
    assert result.value == pytest.approx(0.91, abs=1e-12)
    assert result.detail["questions_missing"] == 2
    assert len(judge.questions) == 2


def test_only_blank_questions_are_a_failure_and_no_zero():
    with pytest.raises(MalformedVerdict, match="only blank questions"):
        scored(asked("", "", ""), asked(" "))


# -- vectors


def test_a_zero_vector_is_undefined_and_never_nan():
    result, _ = scored(asked("a", "b", "c"), vectors=ScriptedEmbedder(lambda text: [0.0, 0.0 if text == "b" else 1.0]))
    assert isinstance(result, Undefined)
    assert result.why == "zero_vector"


def test_vectors_of_different_length_are_an_error_of_this_row():
    with pytest.raises(SampleError, match="different length"):
        scored(asked("a", "b", "c"), vectors=ScriptedEmbedder(lambda text: [1.0] if text == QUESTION else [1.0, 2.0]))


def test_an_embedder_that_fails_is_a_failure_and_no_zero():
    class Down:
        identity = "down"

        async def embed(self, texts, tally):
            raise JudgeUnavailable("no connection")

    with pytest.raises(JudgeUnavailable):
        scored(asked("a", "b", "c"), vectors=Down())


# -- what is read, and what the judge sees


@pytest.mark.parametrize("field", ["user_input", "response"])
@pytest.mark.parametrize("value", [None, "", " "])
def test_missing_texts_are_named_without_a_question(field, value):
    result = outcome(RELEVANCY, row(**{field: value}), no_judge(), embedder=embedder())
    assert result.why == f"missing:{field}"


def test_the_judge_sees_the_response_and_not_the_question():
    _, judge = scored(asked("a", "b", "c"))
    assert judge.questions[0].prompt.data["response"] == row().response
    assert QUESTION not in everything_shown(judge)


@pytest.mark.parametrize("kwargs", [{"strictness": 0}, {"strictness": 21}, {"noncommittal": "some"}, {"n": 3}])
def test_settings_out_of_range_are_refused(kwargs):
    from ragparity.core.errors import ConfigError

    with pytest.raises(ConfigError, match=next(iter(kwargs))):
        NativeBackend().build("AnswerRelevancy", kwargs)
