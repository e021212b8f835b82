"""Ragas behind our judge and embedder: what is asked, what comes out, and what never becomes a number."""

import asyncio
import json
from fractions import Fraction

import pytest
from tests.adapters.backends.ragas_world import (
    BOTH,
    COLLECTIONS,
    LEGACY,
    MESSAGES,
    PASSAGES,
    built,
    embedder,
    fields_of,
    outcome_of,
    ragas_answers,
    row,
    unit,
)  # fmt: skip

from ragparity.core.errors import AmbiguousRating, JudgeRejected, JudgeUnavailable, MalformedVerdict, SampleError
from ragparity.core.outcome import Scored
from ragparity.core.policy import score
from ragparity.core.ports import Answer, Kit, Rating, Structured, Tally
from ragparity_adapters.backends._ragas_import import load
from ragparity_adapters.backends._ragas_judge import input_of, places_of, plain_json
from ragparity_adapters.backends._ragas_outcomes import as_number
from ragparity_adapters.offline import OfflineJudge
from ragparity_adapters.scripted import ScriptedJudge

CLAIMS = ("The pump is stopped.", "The belt is tightened.", "It is Monday.")
both = pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)


# -- what goes out


@both
def test_the_prompt_of_ragas_goes_out_byte_for_byte_with_its_input_as_data(backend):
    judge = ragas_answers(claims=CLAIMS, verdicts=(1, 0, 1))
    outcome_of(backend, "Faithfulness", judge)
    ragas = load()
    cls = (ragas.collections if backend is COLLECTIONS else ragas.legacy)["Faithfulness"]
    if backend is COLLECTIONS:
        from ragas.metrics.collections.faithfulness.util import StatementGeneratorInput, StatementGeneratorPrompt

        own = StatementGeneratorPrompt()
    else:
        from ragas.metrics._faithfulness import StatementGeneratorInput

        own = cls().statement_generator_prompt
    wanted = own.to_string(StatementGeneratorInput(question=row().user_input, answer=row().response))
    first, second = judge.questions
    assert first.prompt.text == wanted
    assert first.prompt.data == {"question": row().user_input, "answer": row().response}
    assert second.prompt.data == {"context": "\n".join(PASSAGES), "statements": list(CLAIMS)}


@both
@pytest.mark.parametrize(
    ("name", "scale"),
    [("AnswerAccuracy", (0, 2, 4)), ("ContextRelevance", (0, 1, 2)), ("ResponseGroundedness", (0, 1, 2))],
)
def test_a_lone_integer_is_asked_for_as_a_rating_in_eight_tokens(backend, name, scale):
    judge = ragas_answers(ratings=(scale[2], scale[1]))
    found = outcome_of(backend, name, judge)
    assert [(one.shape, one.budget) for one in judge.questions] == [(Rating(judge.questions[0].shape.scale), 8)] * 2
    assert judge.questions[0].shape.scale.points == scale
    assert found.value == 0.75
    assert found.detail["asked_as"] == "rating"
    assert found.detail["ratings"] == [scale[2], scale[1]]


@both
def test_three_questions_of_answer_relevancy_are_three_draws_and_nothing_else_is_set(backend):
    judge = ragas_answers(questions=("One?", "Two??", "Three?"), flags=(0, 0, 0))
    outcome_of(backend, "AnswerRelevancy", judge, embedder=embedder())
    assert sorted(one.draw for one in judge.questions) == [0, 1, 2]
    assert len({one.prompt.text for one in judge.questions}) == 1


@both
def test_vectors_of_question_and_made_questions_come_in_one_request(backend):
    tally, vectors = Tally(), embedder()
    judge = ragas_answers(questions=("One?", "Two??", "Three?"), flags=(0, 0, 0))
    outcome_of(backend, "AnswerRelevancy", judge, embedder=vectors, tally=tally)
    assert tally.embedding_calls == 1
    assert set(vectors.texts) == {row().user_input, "One?", "Two??", "Three?"}


@both
def test_repetitions_are_told_apart_by_their_draw(backend):
    judge = ragas_answers(ratings=(4, 4))
    kit = Kit(judge=judge, draw=1000)
    asyncio.run(score(built(backend, "AnswerAccuracy"), row(), kit))
    assert [one.draw for one in judge.questions] == [1000, 1000]


def test_every_estimate_of_calls_is_what_is_asked_for_this_row():
    for backend in BOTH:
        for name in backend.names():
            entry = backend.find(name)[0]
            if not entry.uses or entry.fetches:
                continue
            metric = backend.build(
                name, {"definition": "d"} if entry.concept in ("AspectCritic", "SimpleCriteria") else {}
            )
            tally = Tally()
            kit = Kit(judge=OfflineJudge(), embedder=embedder(lambda text: [1.0, float(len(text))]), tally=tally)
            found = asyncio.run(score(metric, row(response=row().reference), kit))
            assert isinstance(found, Scored), (backend.name, name, found)
            expected = sum(ask.calls for ask in metric.asks(row(response=row().reference)) if ask.shape != "embeddings")
            assert tally.calls == expected, (backend.name, name)


# -- what comes out


@both
def test_claims_verdicts_and_reasons_are_kept_although_ragas_throws_them_away(backend):
    found = outcome_of(backend, "Faithfulness", ragas_answers(claims=CLAIMS, verdicts=(1, 0, 1)))
    assert found.value == 2 / 3
    assert found.detail["claims"][1] == {"id": 2, "claim": CLAIMS[1], "verdict": False, "reason": "why 1"}
    api = "collections" if backend is COLLECTIONS else "legacy"
    assert (found.detail["api"], found.detail["class"], found.detail["raw"]) == (api, "Faithfulness", 2 / 3)


@both
def test_the_epsilon_of_ragas_does_not_show_but_its_raw_number_is_kept(backend):
    found = outcome_of(backend, "ContextPrecision", ragas_answers(useful=(1, 1)))
    assert found.value == 1.0
    assert found.detail["raw"] == 0.99999999995
    assert [one["verdict"] for one in found.detail["passages"]] == [True, True]


@both
def test_two_decimals_of_factual_correctness_stay_and_are_noted(backend):
    def verdict(context, claim):
        return claim != CLAIMS[2]

    found = outcome_of(backend, "FactualCorrectness", ragas_answers(claims=CLAIMS, verdicts=verdict))
    assert found.value == 0.67
    assert found.detail["unrounded"] == 2 / 3
    assert found.detail["rounded_by_ragas_to"] == 2


@both
def test_verdicts_that_ragas_would_add_up_as_numbers_are_refused(backend):
    with pytest.raises(MalformedVerdict) as found:
        outcome_of(backend, "ContextPrecision", ragas_answers(useful=(2, 1)))
    assert found.value.kind == "malformed"


@both
def test_cannot_tell_is_not_support_and_is_counted_or_left_out_by_policy(backend):
    judge = ragas_answers(claims=CLAIMS, verdicts=(1, -1, 0))
    found = outcome_of(backend, "Faithfulness", judge)
    assert (found.value, found.detail["unknown_verdicts"]) == (1 / 3, 1)
    excluded = outcome_of(backend, "Faithfulness", judge, unknown_verdict="exclude")
    assert excluded.value == 0.5


@both
@pytest.mark.parametrize("policy", [("undefined", None), ("one", 1.0), ("zero", 0.0)])
def test_an_answer_without_claims_follows_the_policy_and_asks_nothing_more(backend, policy):
    judge = ragas_answers(claims=())
    found = outcome_of(backend, "Faithfulness", judge, no_claims=policy[0])
    assert getattr(found, "why", found.status) == ("no_claims" if policy[1] is None else "scored")
    assert getattr(found, "value", None) == policy[1]
    assert len(judge.questions) == 1


@both
@pytest.mark.parametrize("name", ["FactualCorrectness", "AnswerCorrectness"])
def test_equal_texts_without_claims_are_correct(backend, name):
    same = row(response="Ok  then", reference="ok then")
    assert outcome_of(backend, name, ragas_answers(), sample=same, embedder=embedder()).value == 1.0
    assert outcome_of(backend, name, ragas_answers(), embedder=embedder()).why == "no_claims"


@both
def test_contexts_that_are_blank_or_absent_are_no_score_and_no_call(backend):
    judge = ScriptedJudge([])
    for name in ("Faithfulness", "ContextPrecision", "ContextRecall", "ContextRelevance"):
        assert outcome_of(backend, name, judge, sample=row(retrieved_contexts=())).why == "blank_contexts"
        assert outcome_of(backend, name, judge, sample=row(retrieved_contexts=(" ", ""))).why == "blank_contexts"
        assert outcome_of(backend, name, judge, sample=row(retrieved_contexts=None)).why == "missing:retrieved_contexts"
    assert outcome_of(backend, "AnswerAccuracy", judge, sample=row(reference=" ")).why == "missing:reference"


@both
def test_fewer_verdicts_than_claims_fail_instead_of_shrinking_the_divisor(backend):
    one = {"statements": [{"statement": CLAIMS[0], "reason": "so", "verdict": 1}]}
    judge = ScriptedJudge([{"statements": list(CLAIMS)}, one])
    with pytest.raises(MalformedVerdict) as failed:
        outcome_of(backend, "Faithfulness", judge)
    assert failed.value.detail["class"] == "Faithfulness"


@both
def test_verdicts_are_joined_to_claims_by_text_and_strange_ones_left_out(backend):
    def piece(claim, verdict):
        return {"statement": claim, "reason": "so", "verdict": verdict}

    shuffled = [piece("Something else.", 1), piece(CLAIMS[2], 0), piece(CLAIMS[0], 1), piece(CLAIMS[1], 0)]
    judge = ScriptedJudge([{"statements": list(CLAIMS)}, {"statements": shuffled}])
    found = outcome_of(backend, "Faithfulness", judge)
    assert found.value == 1 / 3
    assert [one["verdict"] for one in found.detail["claims"]] == [True, False, False]
    assert found.detail["extra_verdicts"] == 1


def test_a_claim_that_is_judged_twice_with_different_verdicts_is_refused():
    with pytest.raises(MalformedVerdict, match="two different verdicts"):
        places_of(["a"], [("a", True), ("A.", False)])
    with pytest.raises(MalformedVerdict, match="1 of 2"):
        places_of(["a", "b"], [("a", True), ("a", True)])
    assert places_of(["a", "b"], [("p", True), ("q", False)]) == [0, 1]


@both
@pytest.mark.parametrize("name", ["AnswerRelevancy", "SemanticSimilarity", "AnswerCorrectness"])
def test_a_zero_vector_is_undefined_in_both_apis_without_a_warning(backend, name):
    judge = ragas_answers(claims=CLAIMS, questions=("a?", "b?", "c?"), flags=(0, 0, 0), classes=(3, 0, 1))
    found = outcome_of(backend, name, judge, embedder=embedder(lambda _text: [0.0, 0.0]))
    assert found.why == "zero_vector"


@both
def test_a_binary_class_gives_the_judges_reason(backend):
    found = outcome_of(backend, "AspectCritic", ragas_answers(verdict=1), settings={"definition": "Is it polite?"})
    assert (found.value, found.reason) == (1.0, "so")


@both
def test_a_grade_off_the_rubric_is_refused_and_one_on_it_is_kept_as_ragas_gives_it(backend):
    found = outcome_of(backend, "InstanceSpecificRubrics", ragas_answers(grade=2))
    assert (found.value, found.detail["scale"]) == (2.0, [1, 2, 3])
    with pytest.raises(MalformedVerdict):
        outcome_of(backend, "InstanceSpecificRubrics", ragas_answers(grade=9))
    metric = (
        built(backend, "DomainSpecificRubrics", (("rubrics", ()),))
        if False
        else built(backend, "DomainSpecificRubrics")
    )
    assert metric.bounds == (1.0, 5.0)


@both
def test_an_integer_verdict_of_the_agent_classes_is_read_although_ragas_wants_a_text(backend):
    replies = [{"user_goal": "a table", "end_state": "booked"}, {"reason": "so", "verdict": 1}]
    found = outcome_of(backend, "AgentGoalAccuracyWithReference", ScriptedJudge(replies))
    assert (found.value, found.detail["end_state"]) == (1.0, "booked")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(0.5, (None, 0.5)), ([0.5], (None, 0.5)), (True, (None, 1.0)), (Fraction(1, 2), (None, 0.5)), (None, (None, None)),
     ("pass", ("pass", 1.0)), ("Fail", ("Fail", 0.0)), ("helpful", ("helpful", None)), (float("nan"), (None, None))],
)  # fmt: skip
def test_every_kind_of_result_is_a_number_a_label_or_nothing(given, wanted):
    assert as_number(given) == wanted


# -- what goes wrong


@both
@pytest.mark.parametrize("name", ["AnswerAccuracy", "Faithfulness", "AnswerRelevancy", "NoiseSensitivity"])
def test_an_error_that_ragas_would_turn_into_nan_comes_out_as_itself_after_one_call(backend, name):
    judge = ScriptedJudge(lambda _question: JudgeUnavailable("no connection", kind="timeout"))
    with pytest.raises(JudgeUnavailable) as failed:
        outcome_of(backend, name, judge, embedder=embedder())
    assert failed.value.kind == "timeout"
    assert failed.value.detail["class"] == built(backend, name).name
    assert len(judge.questions) == 1


@both
def test_one_of_two_ratings_fails_the_row_or_is_used_by_policy(backend):
    for ratings in ((4, AmbiguousRating("two numbers")), (AmbiguousRating("two numbers"), 4)):
        with pytest.raises(AmbiguousRating) as failed:
            outcome_of(backend, "AnswerAccuracy", ragas_answers(ratings=ratings))
        readable = [one for one in ratings if isinstance(one, int)]
        assert failed.value.detail.get("readable_ratings", []) == (readable if ratings[0] == 4 else [])
        used = outcome_of(backend, "AnswerAccuracy", ragas_answers(ratings=ratings), one_rating="use")
        assert (used.value, used.detail["policy"]) == (1.0, "one_rating")


@both
def test_a_rejected_key_in_the_middle_ends_the_row_with_that_error(backend):
    judge = ScriptedJudge([{"statements": list(CLAIMS)}, JudgeRejected("wrong key", kind="auth", ends_entry=True)])
    with pytest.raises(JudgeRejected) as failed:
        outcome_of(backend, "Faithfulness", judge)
    assert failed.value.ends_entry


@both
def test_a_failing_embedder_is_the_failure_of_the_row(backend):
    def refuse(_text):
        raise JudgeUnavailable("no embeddings")

    with pytest.raises(JudgeUnavailable, match="no embeddings"):
        outcome_of(backend, "SemanticSimilarity", embedder=embedder(refuse))


def test_a_conversation_that_legacy_ragas_cannot_take_is_an_error_of_the_row():
    unordered = row(messages=({"role": "user", "content": "x"}, {"role": "tool", "content": "y"}))
    with pytest.raises(SampleError, match="ToolMessage must be preceded by an AIMessage"):
        outcome_of(LEGACY, "ToolCallF1", sample=unordered)
    with pytest.raises(SampleError, match="expected a role out of"):
        outcome_of(COLLECTIONS, "ToolCallF1", sample=row(messages=({"role": "robot", "content": "x"},)))


def test_nothing_is_left_running_when_legacy_ragas_asks_two_things_at_once_and_one_settles_the_row():
    under_way = []

    class Slow:
        identity = "slow"

        async def ask(self, question, tally):
            text = question.prompt.data["response"]
            if text == row().response:
                return Answer(question.shape.schema.model_validate({"claims": []}), "")
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                under_way.append("cancelled")
                raise

    found = outcome_of(LEGACY, "FactualCorrectness", Slow())
    assert found.why == "no_claims"
    assert under_way == ["cancelled"]


# -- Ragas' own say


@both
def test_upstream_shows_what_ragas_itself_says(backend):
    one = {"statements": [{"statement": CLAIMS[0], "reason": "so", "verdict": 1}]}
    judge = ScriptedJudge([{"statements": list(CLAIMS)}, one])
    assert outcome_of(backend, "Faithfulness", judge, upstream=True).value == 1.0
    perfect = outcome_of(backend, "ContextPrecision", ragas_answers(useful=(1, 1)), upstream=True)
    assert (perfect.value, perfect.detail["policy"]) == (0.99999999995, "upstream")
    assert outcome_of(backend, "Faithfulness", ragas_answers(claims=()), upstream=True).why == "no_number"


def test_upstream_shows_the_differences_of_the_two_apis():
    judge = ragas_answers(useful=(2, 1))
    assert outcome_of(COLLECTIONS, "ContextPrecision", judge, upstream=True).value == pytest.approx(5.5 / 3)
    assert outcome_of(LEGACY, "ContextPrecision", judge, upstream=True).value == pytest.approx(1.0)
    empty = row(retrieved_contexts=())
    with pytest.raises(SampleError, match="retrieved_contexts cannot be empty"):
        outcome_of(COLLECTIONS, "ContextPrecision", judge, sample=empty, upstream=True)
    assert outcome_of(LEGACY, "ContextPrecision", judge, sample=empty, upstream=True).value == 0.0


def test_legacy_ragas_reads_a_rating_from_free_text_as_it_likes_when_upstream_is_asked_for():
    judge = ScriptedJudge(["10", "10"])
    assert outcome_of(LEGACY, "AnswerAccuracy", judge, upstream=True).value == 0.0


# -- fields that other tools cannot hand over


@both
def test_reference_contexts_ids_rubrics_topics_messages_and_calls_reach_ragas(backend):
    assert outcome_of(backend, "IDBasedContextRecall").value == 0.5
    assert outcome_of(backend, "NonLLMContextRecall").value == 1.0
    assert outcome_of(backend, "ToolCallAccuracy").value == 1.0
    assert outcome_of(backend, "ToolCallF1").value == 1.0
    judge = ragas_answers(grade=3)
    assert outcome_of(backend, "InstanceSpecificRubrics", judge).value == 3.0
    assert judge.questions[0].prompt.data["rubrics"] == dict(row().rubrics)
    judge = ragas_answers(topics=("tables",), refused=(False,), allowed=(True,))
    assert outcome_of(backend, "TopicAdherence", judge).value == 1.0
    assert judge.questions[0].prompt.data["user_input"].startswith("Human: Book a table for four.\nAI: One moment.")
    assert judge.questions[-1].prompt.data["reference_topics"] == ["restaurants"]


def test_a_legacy_critic_reads_the_conversation_where_there_is_no_response():
    judge = ragas_answers(verdict=1)
    settings = {"definition": "Is it polite?"}
    found = outcome_of(LEGACY, "AspectCritic", judge, sample=row(response=None), settings=settings)
    assert found.value == 1.0
    assert judge.questions[0].prompt.data["user_input"].startswith("Human: Book a table")
    nothing = row(response=None, messages=None)
    assert outcome_of(LEGACY, "AspectCritic", judge, sample=nothing, settings=settings).why == "missing:response"
    assert MESSAGES[0]["content"] not in judge.questions[0].prompt.data["user_input"]


# -- text that is hard on parsers


@both
@pytest.mark.parametrize("text", ["a } b", "```json {", '"quoted" \\ and ] [', "Ünïcode ✓", "input: {}\nOutput: "])
def test_brackets_fences_and_quotes_in_claims_come_back_unharmed(backend, text):
    found = outcome_of(backend, "Faithfulness", ragas_answers(claims=(text, "b."), verdicts=(1, 0)))
    assert [one["claim"] for one in found.detail["claims"]] == [text, "b."]
    assert found.value == 0.5


def test_json_for_the_legacy_parser_says_the_same_and_holds_no_bracket_in_a_string():
    value = {"a": ["} ] ` {", 1, None, True], "b": {"c": "ü\n"}}
    assert json.loads(plain_json(value)) == value
    assert plain_json({"a": "}"}) == '{"a": "\\u007d"}'


def test_the_input_of_a_prompt_is_its_last_one():
    inner = json.dumps({"question": "\ninput: {}\nOutput: "})
    assert input_of(f"Examples\ninput: {{}}\nOutput: \ninput: {inner}\nOutput: ") == json.loads(inner)
    assert input_of("Rate it: 4") == {}


# -- one judge for all


class Cold:
    """A judge that answers Ragas' forms only after something was wrong with the first reply."""

    identity = "cold"

    def __init__(self):
        self.complaints = []

    async def ask(self, question, tally):
        self.complaints.append(question.complaint)
        if isinstance(question.shape, Structured) and fields_of(question) == {"statements"}:
            fewer = "statements" in question.prompt.data and not question.complaint
            given = question.prompt.data.get("statements", CLAIMS)[: 1 if fewer else None]
            said = (
                [{"statement": one, "reason": "so", "verdict": 1} for one in given]
                if "statements" in question.prompt.data
                else list(given)
            )
            from pydantic import ValidationError

            try:
                return Answer(question.shape.schema.model_validate({"statements": said}), "")
            except ValidationError as error:
                raise MalformedVerdict(error.errors()[0]["msg"]) from None
        raise AssertionError(question)


@both
def test_missing_verdicts_are_asked_for_again_by_our_retries_with_what_was_wrong(backend):
    from ragparity.middleware import Lane, Retrying

    cold = Cold()
    found = outcome_of(backend, "Faithfulness", Retrying(cold, Lane("judge", 4), 1))
    assert found.value == 1.0
    assert cold.complaints[:2] == ["", ""]
    assert "1 of 3 were answered" in cold.complaints[2]


def test_a_unit_vector_is_one_long():
    assert all(abs(sum(x * x for x in unit(text)) - 1) < 1e-9 for text in ("a", "bb"))


def test_settings_that_change_the_number_of_calls_change_the_estimate():
    def calls(name, settings):
        metric = COLLECTIONS.build(name, settings)
        return sum(ask.calls for ask in metric.asks(row()) if ask.shape != "embeddings")

    assert (calls("AnswerRelevancy", {}), calls("AnswerRelevancy", {"strictness": 5})) == (3, 5)
    assert (calls("FactualCorrectness", {}), calls("FactualCorrectness", {"mode": "precision"})) == (4, 2)
