"""The same judgements give the same score natively, through Ragas' collections API and through its legacy API.

Judgements are generated; where a definition differs on purpose, a test of its own states the difference and
shows it.
"""

from fractions import Fraction
from math import isclose
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adapters.backends.ragas_world import (
    ALL,
    BOTH,
    COLLECTIONS,
    LEGACY,
    NATIVE,
    Knowing,
    embedder,
    fields_of,
    outcome_of,
    row,
)  # fmt: skip

from ragparity.core.ports import Rating
from ragparity_adapters.backends import _ragas_catalog as catalog
from ragparity_adapters.scripted import ScriptedJudge

few = settings(max_examples=25)
YES_NO = st.sampled_from([1, 0, -1])
"""Yes, no, and "cannot tell"."""
WORDS = st.text(alphabet="abc xyz", min_size=1, max_size=12).filter(str.strip)


class Told(Knowing):
    """One set of judgements for every implementation: the native forms are filled from the same knowledge."""

    def __call__(self, question):
        if question.prompt.text is not None:
            return super().__call__(question)
        data, wanted = question.prompt.data, fields_of(question)
        if isinstance(question.shape, Rating):
            return self.rating(data)["rating"]
        if wanted == {"refusal", "claims"}:
            return {"refusal": False, "claims": self.claims_of(data["text"])}
        if wanted == {"closed_questions"}:
            return {"closed_questions": list(self.known["questions"])}
        if wanted in ({"entities"}, {"keyphrases"}, {"topics"}, {"user_goal", "end_state"}):
            return super().__call__(question)
        if wanted == {"verdicts"} and "claims" not in data:
            return {"verdicts": self.by_id(data)}
        if wanted == {"verdicts"}:
            context = "\n".join(data["contexts"])
            judged = zip(data["claims"], self.judged(data["claims"].values(), context, "verdict"), strict=True)
            return {"verdicts": [{"id": int(at), "evidence": "none", "verdict": one["verdict"]} for at, one in judged]}
        if wanted == {"claims"}:
            judged = self.judged(self.claims_of(data["reference"]), "", "verdict")
            return {
                "claims": [{"claim": one["statement"], "evidence": "none", "verdict": one["verdict"]} for one in judged]
            }
        if wanted == {"questions"}:
            return {"questions": [self.question(data) for _ in range(data["how_many_questions"])]}
        return self.verdict(data)

    def by_id(self, data):
        """Verdicts on pieces of which Ragas makes lists in order."""
        right, wrong, missed = self.known["classes"]
        classes = [True] * right + [False] * wrong + [False] * missed + [True]
        said, pieces = classes, {**data.get("answer_claims", {}), **data.get("reference_claims", {})}
        if "questions" in data:
            said, pieces = [one == "1" for one in self.known["answers"]], data["questions"]
        if "topics" in data:
            answered = [not one for one in self.known["refused"]]
            said, pieces = self.known["allowed"] if "reference_topics" in data else answered, data["topics"]
        return [{"id": int(at), "evidence": "none", "verdict": said[int(at) - 1]} for at in pieces]


def scored(backends, name, *, sample=None, settings=(), vectors=None, **known):
    """The score of every backend; each has a judge of its own that knows the same."""
    found = []
    for backend in backends:
        judge = ScriptedJudge(Told(**known))
        out = outcome_of(backend, name, judge, sample=sample, settings=settings, embedder=vectors or embedder())
        assert out.status == "scored", (backend.name, out)
        found.append(out.value)
    return found


def numbered(verdicts):
    return tuple(f"Statement number {at}." for at in range(len(verdicts)))


def by_number(verdicts):
    """The verdict on a numbered statement, whatever it is asked together with."""
    return lambda _context, claim: verdicts[int(claim.strip(".").split()[-1])]


# -- with a native metric: three implementations, one score


@few
@given(st.lists(YES_NO, min_size=1, max_size=14))
def test_faithfulness_is_the_share_of_supported_claims_everywhere(verdicts):
    exact = Fraction(verdicts.count(1), len(verdicts))
    assert scored(ALL, "Faithfulness", claims=numbered(verdicts), verdicts=by_number(verdicts)) == [float(exact)] * 3


@few
@given(st.lists(YES_NO, min_size=1, max_size=14))
def test_context_recall_is_the_share_of_attributable_claims_everywhere(verdicts):
    exact = Fraction(verdicts.count(1), len(verdicts))
    assert scored(ALL, "ContextRecall", claims=numbered(verdicts), verdicts=by_number(verdicts)) == [float(exact)] * 3


@few
@pytest.mark.parametrize("name", ["ContextPrecision", "ContextPrecisionWithoutReference"])
@given(useful=st.lists(YES_NO, min_size=1, max_size=9))
def test_context_precision_is_average_precision_everywhere(name, useful):
    passages = [f"Passage {at}." for at in range(len(useful))]
    hits = [at for at, one in enumerate(useful) if one == 1]
    parts = [Fraction(number, at + 1) for number, at in enumerate(hits, start=1)]
    exact = sum(parts, Fraction(0)) / len(parts) if parts else Fraction(0)
    found = scored(ALL, name, sample=row(retrieved_contexts=passages), useful=lambda one: useful[passages.index(one)])
    assert found == [float(exact)] * 3


@few
@given(st.lists(st.tuples(WORDS, st.booleans()), min_size=3, max_size=3))
def test_answer_relevancy_is_the_mean_cosine_or_zero_when_all_are_noncommittal(drawn):
    questions, flags = zip(*drawn, strict=True)
    vectors = embedder(lambda text: [1.0, float(len(text)), float(text.count("a"))])
    native, *wrapped = scored(ALL, "AnswerRelevancy", questions=questions, flags=flags, vectors=vectors)
    assert all(isclose(native, one, abs_tol=1e-12) for one in wrapped)
    assert (native == 0.0) == all(flags)


@pytest.mark.parametrize(
    ("name", "points"),
    [("AnswerAccuracy", (0, 2, 4)), ("ContextRelevance", (0, 1, 2)), ("ResponseGroundedness", (0, 1, 2))],
)
def test_the_rating_metrics_are_the_mean_of_two_ratings_everywhere(name, points):
    for one in points:
        for other in points:
            exact = Fraction(one + other, 2 * points[-1])
            assert scored(ALL, name, ratings=(one, other)) == [float(exact)] * 3


@few
@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8),
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8),
)
def test_id_metrics_agree_whatever_the_order_and_the_repeats(retrieved, wanted):
    sample = row(retrieved_context_ids=retrieved, reference_context_ids=wanted)
    for name in ("IDBasedContextPrecision", "IDBasedContextRecall"):
        assert len(set(scored(ALL, name, sample=sample))) == 1


@few
@given(response=WORDS, reference=WORDS, measure=st.sampled_from(["levenshtein", "hamming", "jaro", "jaro_winkler"]))
def test_string_metrics_agree(response, reference, measure):
    sample = row(response=response, reference=reference)
    for name in ("ExactMatch", "StringPresence"):
        assert len(set(scored(ALL, name, sample=sample))) == 1
    native, *wrapped = scored(ALL, "NonLLMStringSimilarity", sample=sample, settings={"distance_measure": measure})
    assert all(isclose(native, one, abs_tol=1e-12) for one in wrapped)


@few
@given(
    passages=st.lists(WORDS, min_size=1, max_size=5), wanted=st.lists(WORDS, min_size=1, max_size=3),
    threshold=st.sampled_from([0.31, 0.49, 0.71]),
)  # fmt: skip
def test_passages_by_similarity_agree_where_no_similarity_is_the_threshold_itself(passages, wanted, threshold):
    sample = row(retrieved_contexts=passages, reference_contexts=wanted)
    for name in ("NonLLMContextPrecisionWithReference", "NonLLMContextRecall"):
        found = scored(ALL, name, sample=sample, settings={"threshold": threshold})
        assert len(set(found)) == 1, name


@few
@given(response=WORDS, reference=WORDS)
def test_chrf_agrees(response, reference):
    native, *wrapped = scored(ALL, "CHRFScore", sample=row(response=response, reference=reference))
    assert all(isclose(native, one, abs_tol=1e-12) for one in wrapped)


@few
@given(st.lists(st.booleans(), min_size=1, max_size=5))
def test_quotations_found_in_the_contexts_are_counted_alike(found):
    spans = [f"words number {at} here" for at in range(len(found))]
    response = " and ".join(f'"{one}"' for one in spans)
    contexts = ["Nothing.", *(one for one, is_there in zip(spans, found, strict=True) if is_there)]
    exact = float(Fraction(sum(found), len(found)))
    sample = row(response=response, retrieved_contexts=contexts)
    assert scored((NATIVE, COLLECTIONS), "QuotedSpansAlignment", sample=sample) == [exact] * 2


@few
@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), min_size=1, max_size=4))
def test_as_many_calls_as_wanted_in_the_wanted_order_score_by_their_arguments_everywhere(wanted):
    calls = [{"name": name, "args": {"x": 1, "y": 2}} for name, _ in wanted]
    made = [{"name": name, "args": {"x": 1, "y": 2 if right else 3}} for name, right in wanted]
    messages = ({"role": "user", "content": "Go."}, {"role": "assistant", "content": "", "tool_calls": made})
    sample = row(messages=messages, reference_tool_calls=calls)
    exact = sum(1.0 if right else 0.5 for _, right in wanted) / len(wanted)
    assert scored(ALL, "ToolCallAccuracy", sample=sample) == [exact] * 3


@pytest.mark.parametrize("verdict", [0, 1])
def test_the_aspect_critic_passes_the_verdict_on_everywhere(verdict):
    known = {"verdict": verdict, "ratings": (verdict,), "settings": {"definition": "Is it polite?"}}
    assert scored(ALL, "AspectCritic", **known) == [float(verdict)] * 3


# -- with a native metric: the differences that are meant


def test_a_claim_written_twice_counts_once_natively_and_twice_in_ragas():
    known = {
        "claims": ("It is red.", "it is RED", "It is big."),
        "verdicts": lambda _context, claim: "big" not in claim,
    }
    assert scored(ALL, "Faithfulness", **known) == [1 / 2, 2 / 3, 2 / 3]


def test_contexts_that_equal_the_question_are_judged_natively_and_are_zero_unasked_in_ragas():
    same = row(retrieved_contexts=(row().user_input,))
    assert scored(ALL, "ContextRelevance", sample=same, ratings=(2, 2)) == [1.0, 0.0, 0.0]


def test_a_response_that_stands_in_a_context_is_judged_except_by_the_legacy_api():
    inside = row(response="a repair")
    assert scored(ALL, "ResponseGroundedness", sample=inside, ratings=(0, 0)) == [0.0, 0.0, 1.0]


def test_a_similarity_of_exactly_the_threshold_is_a_hit_natively_and_a_miss_in_the_recall_of_ragas():
    sample = row(retrieved_contexts=("ab",), reference_contexts=("ac",))
    recall = scored((NATIVE, LEGACY), "NonLLMContextRecall", sample=sample, settings={"threshold": 0.5})
    assert recall == [1.0, 0.0]
    precision = scored(
        (NATIVE, LEGACY), "NonLLMContextPrecisionWithReference", sample=sample, settings={"threshold": 0.5}
    )
    assert precision == [1.0, 1.0]


@pytest.mark.parametrize("grade", [1, 2, 3])
def test_a_grade_is_a_share_of_the_scale_natively_and_the_grade_itself_in_ragas(grade):
    for name, settings_of in (
        ("InstanceSpecificRubrics", {}),
        ("RubricsScoreWithReference", {"rubrics": dict(row().rubrics)}),
        ("RubricsScore", {"rubrics": dict(row().rubrics)}),
    ):
        backends = [one for one in ALL if one is not LEGACY or one.has_own(name)]
        native, *wrapped = scored(backends, name, settings=settings_of, ratings=(grade,), grade=grade)
        assert set(wrapped) == {float(grade)}
        assert native == (grade - 1) / 2


def test_a_criterion_is_a_share_of_its_declared_scale_natively_and_a_bare_number_in_ragas():
    (native,) = scored(
        (NATIVE,), "SimpleCriteria", ratings=(4,), settings={"definition": "How clear?", "scale": [1, 5]}
    )
    wrapped = scored(BOTH, "SimpleCriteria", grade=4, settings={"definition": "How clear?"})
    assert (native, *wrapped) == (0.75, 4.0, 4.0)


def test_bleu_of_ragas_looks_at_the_first_sentence_only():
    sample = row(
        response="The cat sat on the mat. Nonsense follows it here.",
        reference="The cat sat on the mat. It slept all day.",
    )
    native, *wrapped = scored(ALL, "BleuScore", sample=sample)
    assert wrapped == [1.0, 1.0]
    assert native < 0.8


def test_rouge_of_ragas_does_not_see_text_in_other_scripts():
    sample = row(response="東京 は 首都", reference="東京 は 首都")
    assert scored(ALL, "RougeScore", sample=sample) == [1.0, 0.0, 0.0]


def test_one_wanted_call_and_one_too_many_is_a_half_natively_and_zero_in_ragas():
    call = {"name": "book", "args": {"table": 4}}
    messages = (
        {"role": "user", "content": "Book.", "tool_calls": []},
        {"role": "assistant", "content": "", "tool_calls": [call, {"name": "pay", "args": {}}]},
    )
    sample = row(messages=messages, reference_tool_calls=(call,))
    assert scored(ALL, "ToolCallAccuracy", sample=sample) == [0.5, 0.0, 0.0]
    assert scored(ALL, "ToolCallF1", sample=sample) == [2 / 3, 0.6667, 0.6667]


def test_a_response_without_quotations_has_no_alignment_here_although_ragas_says_one():
    for backend in (NATIVE, COLLECTIONS):
        assert outcome_of(backend, "QuotedSpansAlignment").why == "no_quoted_spans"
    assert outcome_of(COLLECTIONS, "QuotedSpansAlignment", upstream=True).value == 1.0


# -- metrics of several questions: the formula written out


def f_beta(right, wrong, missed, beta=1):
    divisor = (1 + beta**2) * right + beta**2 * missed + wrong
    return Fraction((1 + beta**2) * right, divisor) if divisor else Fraction(0)


@few
@given(
    response=st.lists(st.booleans(), min_size=1, max_size=6), reference=st.lists(st.booleans(), min_size=1, max_size=6),
    mode=st.sampled_from(["precision", "recall", "f1"]), beta=st.sampled_from([1, 2]),
)  # fmt: skip
def test_factual_correctness_counts_claims_of_both_sides_and_rounds(response, reference, mode, beta):
    texts = {row().response: [f"Said {at}." for at in range(len(response))]}
    texts[row().reference] = [f"True {at}." for at in range(len(reference))]

    def verdict(_context, claim):
        side = response if claim.startswith("Said") else reference
        return int(side[int(claim.strip(".").split()[1])])

    right, wrong, missed = sum(response), len(response) - sum(response), len(reference) - sum(reference)
    exact = {
        "precision": Fraction(right, right + wrong),
        "recall": Fraction(right, right + missed) if right + missed else Fraction(0),
        "f1": f_beta(right, wrong, missed, beta),
    }[mode]
    known = {"claims": texts, "verdicts": verdict}
    settings_of = {"mode": mode, "beta": beta}
    wrapped = scored(BOTH, "FactualCorrectness", settings=settings_of, **known)
    (native,) = scored((NATIVE,), "FactualCorrectness", settings={**settings_of, "counting": "ragas"}, **known)
    assert native == float(exact)
    assert len(set(wrapped)) == 1
    assert abs(wrapped[0] - exact) <= Fraction(1, 200) + Fraction(1, 10**9)


def test_factual_correctness_is_of_two_shares_natively_and_of_mixed_counts_in_ragas():
    said, wanted = (1, 1, 1, 1, 0), (1, 0, 0)
    texts = {row().response: [f"Said {at}." for at in range(5)], row().reference: [f"True {at}." for at in range(3)]}
    known = {
        "claims": texts,
        "verdicts": lambda _, claim: (said if claim.startswith("Said") else wanted)[int(claim[5])],
    }
    # P 4/5 and R 1/3 natively; Ragas has TP 4, FN 2 and so R 4/6.
    assert scored(ALL, "FactualCorrectness", settings={"mode": "recall"}, **known) == [1 / 3, 0.67, 0.67]
    assert scored(ALL, "FactualCorrectness", **known) == [float(Fraction(8, 17)), 0.73, 0.73]


@few
@given(
    statements=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=5),
    truths=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=3),
    mode=st.sampled_from(["relevant", "irrelevant"]),
)  # fmt: skip
def test_noise_sensitivity_is_the_share_of_wrong_statements_that_a_passage_supports(statements, truths, mode):
    texts = {
        row().response: [f"Said {at}." for at in range(len(statements))],
        row().reference: [f"True {at}." for at in range(len(truths))],
    }
    passages = list(row().retrieved_contexts)

    def verdict(context, claim):
        kind, at = claim.strip(".").split()
        known = (statements if kind == "Said" else truths)[int(at)]
        return int(known[passages.index(context)] if context in passages else known[2])

    relevant = [any(one[at] for one in truths) for at in range(2)]
    counted = 0
    for first, second, correct in statements:
        from_relevant = any(held and useful for held, useful in zip((first, second), relevant, strict=True))
        from_other = any(held and not useful for held, useful in zip((first, second), relevant, strict=True))
        counted += not correct and (from_relevant if mode == "relevant" else from_other and not from_relevant)
    exact = float(Fraction(counted, len(statements)))
    assert scored(ALL, "NoiseSensitivity", claims=texts, verdicts=verdict, settings={"mode": mode}) == [exact] * 3


@few
@given(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)).filter(lambda one: one[0] + one[1] > 0))
def test_answer_correctness_weighs_the_f_score_and_the_cosine(classes):
    right, wrong, missed = classes
    texts = {row().response: numbered(range(right + wrong))}
    texts[row().reference] = tuple(f"True {at}." for at in range(missed + 1))
    found = scored(ALL, "AnswerCorrectness", claims=texts, classes=classes)
    exact = 0.75 * float(f_beta(*classes)) + 0.25 * 0.6
    assert all(isclose(one, exact, abs_tol=1e-12) for one in found)


@few
@given(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from("abcd"), max_size=4),
)
def test_entity_recall_is_the_share_of_distinct_entities(wanted, there):
    exact = float(Fraction(len(set(wanted) & set(there)), len(wanted)))
    assert scored(ALL, "ContextEntityRecall", entities=(wanted, there)) == [exact] * 3


def test_an_entity_named_twice_counts_twice_in_the_legacy_divisor():
    assert scored(ALL, "ContextEntityRecall", entities=(("Ulm", "Ulm"), ("Ulm",))) == [1.0, 1.0, 0.5]


def test_an_entity_in_other_letters_is_the_same_natively_unless_it_must_be_exact():
    entities = (("ULM", "Rome"), ("Ulm", "Rome"))
    assert scored(ALL, "ContextEntityRecall", entities=entities) == [1.0, 0.5, 0.5]
    assert scored((NATIVE,), "ContextEntityRecall", entities=entities, settings={"match": "exact"}) == [0.5]


@few
@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=5),
    st.sampled_from(["precision", "recall", "f1"]),
)
def test_topic_adherence_counts_answered_against_allowed_topics(topics, mode):
    right = sum(1 for refused, allowed in topics if not refused and allowed)
    wrong = sum(1 for refused, allowed in topics if not refused and not allowed)
    missed = sum(1 for refused, allowed in topics if refused and allowed)
    exact = {
        "precision": Fraction(right, max(1, right + wrong)),
        "recall": Fraction(right, max(1, right + missed)),
        "f1": f_beta(right, wrong, missed),
    }[mode]
    refused, allowed = zip(*topics, strict=True)
    known = {"topics": numbered(topics), "refused": refused, "allowed": allowed}
    assert scored(BOTH, "TopicAdherence", settings={"mode": mode}, **known) == [float(exact)] * 2
    divisor = right + {"precision": wrong, "recall": missed, "f1": wrong + missed}[mode]
    native = outcome_of(NATIVE, "TopicAdherence", ScriptedJudge(Told(**known)), settings={"mode": mode})
    if divisor:
        assert native.value == float(exact)
    else:  # nothing by nothing, which is 0 in Ragas
        assert native.status == "undefined"


@few
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_summary_score_weighs_answered_questions_and_conciseness(answers, coeff):
    known = {"questions": numbered(answers), "answers": [str(int(one)) for one in answers]}
    text, response = row().reference_contexts[0], row().response
    concise = 1 - Fraction(min(len(response), len(text)), len(text))
    exact = Fraction(sum(answers), len(answers)) * (1 - Fraction(coeff)) + concise * Fraction(coeff)
    assert scored(ALL, "SummaryScore", settings={"coeff": coeff}, **known) == [float(exact)] * 3


def test_without_the_length_penalty_legacy_still_takes_the_weight_away():
    known = {"questions": ("a?", "b?"), "answers": ("1", "0")}
    assert scored(ALL, "SummaryScore", settings={"length_penalty": False}, **known) == [0.5, 0.5, 0.25]


@pytest.mark.parametrize("verdict", [0, 1])
def test_single_verdicts_come_through_unchanged(verdict):
    for name in ("SQLSemanticEquivalence", "AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference"):
        assert scored(ALL, name, verdict=verdict) == [float(verdict)] * 3
    assert scored(BOTH, "AspectCritic", verdict=verdict, settings={"definition": "d"}) == [float(verdict)] * 2


@pytest.mark.parametrize("grade", [1, 2, 3])
def test_grades_are_those_of_the_judge(grade):
    for name in ("InstanceSpecificRubrics", "DomainSpecificRubrics"):
        assert scored(BOTH, name, grade=grade) == [float(grade)] * 2


@few
@given(st.integers(0, 8), st.floats(-1, 1))
def test_semantic_similarity_is_the_cosine_or_the_side_of_the_threshold(steps, threshold):
    angle = [1.0, steps / 4]
    vectors = embedder(lambda text: [1.0, 0.0] if text == row().response else angle)
    cosine = 1 / (1 + (steps / 4) ** 2) ** 0.5
    assert all(isclose(one, cosine, abs_tol=1e-12) for one in scored(ALL, "SemanticSimilarity", vectors=vectors))
    if threshold and abs(cosine - threshold) > 1e-9:
        found = scored(ALL, "SemanticSimilarity", vectors=vectors, settings={"threshold": threshold})
        assert found == [float(cosine >= threshold)] * 3


def test_a_threshold_of_zero_is_one_natively_and_ignored_in_ragas():
    vectors = embedder(lambda text: [1.0, 0.0] if text == row().response else [0.6, 0.8])
    native, *wrapped = scored(ALL, "SemanticSimilarity", vectors=vectors, settings={"threshold": 0.0})
    assert native == 1.0
    assert all(isclose(one, 0.6, abs_tol=1e-12) for one in wrapped)


def test_equal_texts_without_claims_are_right_natively_and_as_the_api_has_it_in_ragas():
    sample = row(response="42", reference="42")
    assert scored((NATIVE,), "FactualCorrectness", sample=sample) == [1.0]
    assert scored((NATIVE,), "AnswerCorrectness", sample=sample) == [1.0]
    for backend in BOTH:  # no division by nothing: 0 for equal texts
        found = outcome_of(backend, "FactualCorrectness", ScriptedJudge(Told()), sample=sample, upstream=True)
        assert found.value == 0.0


def test_no_metric_that_is_there_twice_is_left_out():
    here = Path(__file__).read_text(encoding="utf-8")
    for entry in catalog.ENTRIES:
        names = {entry.concept, *entry.collections, *entry.legacy}
        twice = any(name in NATIVE.names() for name in names)
        assert not twice or any(f'"{name}"' in here for name in names), entry.concept
