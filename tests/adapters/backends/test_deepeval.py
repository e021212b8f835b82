"""DeepEval behind our judge: what its metrics measure, and their scores. What runs it is skipped where it is absent."""

from importlib import metadata

import pytest
from tests.adapters.backends.deepeval_world import BACKEND, BORDERLINE, NO, SAMPLE, YES, needs_it, run
from tests.direction import good_minus_bad

from ragparity import catalogue, crossvalidate
from ragparity.core.errors import ConfigError, MissingExtra, UnknownMetric
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import Policies
from ragparity.definitions import CONCEPTS, definition_of, relation
from ragparity_adapters.backends import _deepeval_import as importing
from ragparity_adapters.backends import deepeval
from ragparity_adapters.backends._deepeval_catalog import ENTRIES


def metric(name, **settings):
    return deepeval.DeepEvalMetric(name, "deepeval 4.3.1", ENTRIES[name].settings(**settings))


# -- without the package


@pytest.mark.parametrize(
    ("name", "related"),
    [
        ("Faithfulness", "near"),  # judged by truths drawn from the contexts, not by the contexts
        ("AnswerRelevancy", "near"),  # a share of statements, not a similarity
        ("ContextPrecision", "same"),
        ("ContextRecall", "near"),  # sentences, not claims
        ("ContextRelevance", "near"),  # a share of statements, not a degree
    ],
)
def test_each_metric_says_how_far_it_measures_what_the_native_one_measures(name, related):
    assert relation(definition_of(metric(name)), CONCEPTS[name]) == related


def test_what_contradicts_is_another_quantity_than_what_supports():
    supported, left_open = metric("Faithfulness"), metric("Faithfulness", penalize_ambiguous_claims=False)
    limited = metric("Faithfulness", truths_extraction_limit=3)
    assert relation(definition_of(supported), definition_of(left_open)) == "near"
    assert relation(definition_of(supported), definition_of(limited)) == "near"
    assert definition_of(limited).phrase.endswith("support (truths_extraction_limit 3)")
    assert relation(definition_of(metric("Hallucination")), definition_of(supported)) == "near"
    assert all(definition_of(metric(name)).higher_is_better for name in ENTRIES)


def test_names_and_aliases_are_found_whatever_their_case():
    assert BACKEND.about("faithfulnessmetric") == ("response, retrieved_contexts", "3", "0 to 1")
    assert "deepeval/ContextRelevance" in BACKEND.card("contextual_relevancy")
    with pytest.raises(UnknownMetric, match="Did you mean ContextualRecall"):
        BACKEND.about("ContextualRecal")


def test_a_card_says_what_is_fixed_and_what_can_be_set():
    card = BACKEND.card("Faithfulness")
    assert "FaithfulnessMetric, without its reasons" in card
    assert "penalize_ambiguous_claims: bool = True" in card
    assert "Settings" not in BACKEND.card("Hallucination")


def test_without_the_package_the_line_says_what_to_install(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importing.metadata, "version", absent)
    with pytest.raises(MissingExtra, match=r"not installed: pip install 'ragparity\[deepeval\]'"):
        BACKEND.build("Faithfulness", {})
    assert next(iter(catalogue.rows("deepeval")))[:2] == ("deepeval", "(cannot be used)")


def test_a_release_in_which_hallucination_counts_the_other_way_round_is_refused(monkeypatch):
    monkeypatch.setattr(importing.metadata, "version", lambda _name: "4.1.10")
    with pytest.raises(MissingExtra, match=r"DeepEval 4\.1\.10 is installed, but 4\.3 is the oldest"):
        BACKEND.build("Hallucination", {})


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="truths_extraction_limit: input should be greater than 0, got 0"):
        BACKEND.build("Faithfulness", {"truths_extraction_limit": 0})
    with pytest.raises(ConfigError, match="unknown kwarg 'include_reason'; it takes penalize_ambiguous_claims, truths"):
        BACKEND.build("Faithfulness", {"include_reason": True})
    with pytest.raises(ConfigError, match="it takes none"):
        BACKEND.build("Hallucination", {"strict_mode": True})


# -- scores


@needs_it
def test_faithfulness_counts_only_the_claims_that_are_supported():
    replies = {"claims": ["a", "b", "c", " "], "truths": ["t"], "verdicts": [(YES, NO, BORDERLINE)]}
    found, judge = run("Faithfulness", replies)
    assert (found.value, found.reason) == (1 / 3, "1 of 3 claims are supported by the contexts")
    assert [(one["claim"], one["verdict"]) for one in found.detail["claims"]] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
    assert found.detail["claims"][2]["said"] == "borderline" and found.detail["truths"] == ["t"]
    truths, claims, judged = (question.prompt.data for question in judge.questions)
    assert truths == {"contexts": list(SAMPLE.retrieved_contexts)} and claims["response"] == SAMPLE.response
    assert judged == {"contexts": ["t"], "claims": ["a", "b", "c"]}

    found, _ = run("Faithfulness", replies, penalize_ambiguous_claims=False)
    assert (found.value, found.reason) == (2 / 3, "2 of 3 claims are not contradicted by the contexts")


@needs_it
def test_answer_relevancy_counts_what_may_serve_the_question():
    found, judge = run("AnswerRelevancy", {"statements": ["a", "b", "c"], "verdicts": [(YES, NO, BORDERLINE)]})
    assert found.value == 2 / 3
    assert [one["verdict"] for one in found.detail["claims"]] == [True, False, True]
    assert len(judge.questions) == 2


@needs_it
def test_context_precision_is_the_exact_average_precision():
    found, judge = run("ContextPrecision", {"verdicts": [(YES, NO, YES)]})
    assert found.value == 5 / 6  # (1/1 + 2/3) / 2
    assert [(one["passage"], one["verdict"]) for one in found.detail["passages"]] == [(0, True), (1, False), (2, True)]
    assert found.detail["passages"][0]["text"] == SAMPLE.retrieved_contexts[0]
    assert len(judge.questions) == 1


@needs_it
def test_context_recall_names_the_sentences_where_there_are_as_many_as_verdicts():
    found, _ = run("ContextRecall", {"verdicts": [(YES, NO)]})
    assert found.value == 0.5
    assert [(one["claim"], one["verdict"]) for one in found.detail["claims"]] == [
        ("7443.", True),
        ("It is grey.", False),
    ]

    found, _ = run("ContextRecall", {"verdicts": [(YES, NO, NO)]})
    assert found.value == 1 / 3
    assert "claims" not in found.detail
    assert found.detail["sentences"][0] == {"verdict": True, "reason": "why yes"}


@needs_it
def test_context_relevance_is_the_share_of_the_statements_of_all_passages():
    of_passages = [["a yes", "a no"], ["b no"], ["c yes"]]
    judged = [[{"statement": one, "verdict": one.split()[1]} for one in of] for of in of_passages]
    found, judge = run("ContextRelevance", {"verdicts": judged})
    assert found.value == 0.5
    pieces = [(one["claim"], one["passage"]) for one in found.detail["claims"]]
    assert pieces == [("a yes", 0), ("a no", 0), ("b no", 1), ("c yes", 2)]
    for passage, question in zip(SAMPLE.retrieved_contexts, judge.questions, strict=True):
        assert question.prompt.data["context"] == passage and passage in question.prompt.text


@needs_it
def test_hallucination_is_one_where_nothing_is_contradicted():
    found, _ = run("Hallucination", {"verdicts": [(YES, NO, YES)]})
    assert (found.value, found.reason) == (2 / 3, "2 of 3 passages are not contradicted")
    assert run("Hallucination", {"verdicts": [(YES, YES, YES)]})[0].value == 1.0


@needs_it
@pytest.mark.parametrize("name", ENTRIES)
def test_the_prompts_of_deepeval_carry_the_fields_that_a_metric_reads_and_no_others(name):
    judged = [{"statement": "s", **YES}]
    replies = {"claims": ["a"], "statements": ["a"], "truths": ["t"]}
    many = len(SAMPLE.retrieved_contexts) if ENTRIES[name].owed == "contexts" else 1
    _, judge = run(name, {**replies, "verdicts": [judged * many] * len(SAMPLE.retrieved_contexts)})
    shown = "\n".join(question.prompt.text for question in judge.questions)
    for field in ("user_input", "response", "reference", "retrieved_contexts"):
        value = getattr(SAMPLE, field)
        for text in (value,) if isinstance(value, str) else value:
            assert (text in shown) is (field in ENTRIES[name].reads), field
    assert len(judge.questions) == sum(one.calls for one in metric(name).asks(SAMPLE))


@needs_it
@pytest.mark.parametrize("name", ENTRIES)
def test_a_good_sample_is_better_than_a_bad_one(name):
    gap = good_minus_bad(BACKEND.build(name, {}))
    assert gap is not None and gap > 0


@needs_it
@pytest.mark.parametrize(
    ("name", "replies", "upstream"),
    [
        ("Faithfulness", {"claims": [], "truths": ["t"]}, 1.0),
        ("AnswerRelevancy", {"statements": []}, 1.0),
        ("ContextRecall", {"verdicts": [()]}, 0.0),
        ("ContextRelevance", {"verdicts": [(), (), ()]}, 0.0),
    ],
)
def test_where_the_judge_finds_nothing_the_policy_decides_and_not_deepeval(name, replies, upstream):
    found, _ = run(name, replies)
    assert isinstance(found, Undefined) and found.why == "no_claims"
    for policy, value in (("one", 1.0), ("zero", 0.0)):
        assert run(name, replies, policies=Policies(no_claims=policy))[0].value == value
    found, _ = run(name, replies, policies=Policies(upstream=True))
    assert isinstance(found, Scored)
    assert (found.value, found.detail["policy"]) == (upstream, "upstream")


@needs_it
def test_upstream_shows_the_number_of_deepeval_for_the_answers_as_they_came():
    replies = {"claims": ["a", "b", "c"], "truths": ["t"], "verdicts": [(YES,)]}
    found, _ = run("Faithfulness", replies, policies=Policies(upstream=True))
    assert found.value == 1.0  # one verdict for three claims
    assert {"claims": ["a", "b", "c"]} in found.detail["answers"]


# -- compared


@needs_it
def test_a_reader_sees_which_claim_made_the_difference():
    """A judge that compares words finds the second claim in the passage, and in none of the truths drawn from it."""
    row = {
        "id": "one", "question": "Which port?", "contexts": ["The gateway listens on port 7443. It was built in Bonn."],
        "answer": "It was built in Bonn. The gateway port was built in Bonn.",
    }  # fmt: skip
    found = crossvalidate([row], ["Faithfulness"], backends=["native", "deepeval"], judge="offline")
    (pair,) = found.agreement["metrics"]["Faithfulness"]["pairs"]
    assert pair["relation"] == "near" and "truths drawn from the contexts" in pair["because"]
    (shown,) = pair["rows"]
    assert (shown["a"]["score"], shown["b"]["score"]) == (1.0, 0.5)
    assert [(one["a"]["text"], one["b"]["verdict"], one["decides"]) for one in shown["pieces"]] == [
        ("It was built in Bonn.", True, False),
        ("The gateway port was built in Bonn.", False, True),
    ]
