"""Every metric says what it measures, and two are compared only as far as they measure the same."""

from dataclasses import dataclass, replace

import pytest
from tests.direction import KWARGS, UNDECIDED, good_minus_bad

from ragparity import wiring
from ragparity.core.definition import Definition
from ragparity.definitions import (
    CONCEPTS,
    IN_RAGAS,
    definition_of,
    is_of_another_api,
    outdated,
    relation,
    why_related,
)
from ragparity_adapters.backends import _ragas_catalog as catalog
from ragparity_adapters.backends._ragas_metric import RagasMetric

NATIVE = wiring.backend("native")
RUBRICS = {"rubrics": {"1": "wrong", "2": "right"}}


def native(name, **kwargs):
    return NATIVE.build(name, kwargs)


def ragas(concept, api="collections", given="{}"):
    """A metric of Ragas as a plan has it; nothing is imported from Ragas for that."""
    (entry,) = [one for one in catalog.ENTRIES if one.concept == concept]
    backend = "ragas" if api == "collections" else "ragas_legacy"
    return RagasMetric(
        concept=concept, class_name=entry.classes(api)[0], api=api, backend=backend, given=given, ragas_version="0.4.3"
    )


def built(cls):
    kwargs = KWARGS.get(cls.__name__, RUBRICS if cls.__name__.startswith("RubricsScore") else {})
    return native(cls.__name__, **kwargs)


@pytest.mark.parametrize("cls", NATIVE.classes(), ids=lambda cls: cls.__name__)
def test_every_native_metric_is_described_and_the_description_agrees_with_the_class(cls):
    metric = built(cls)
    found = definition_of(metric)
    assert found.known, f"{cls.__name__} has no entry in the table of concepts"
    assert found.higher_is_better is cls.higher_is_better
    assert not found.package, "what is native belongs to this package"


IN_AN_API = [(entry, api) for entry in catalog.ENTRIES for api in catalog.APIS if entry.classes(api)]


@pytest.mark.parametrize(("entry", "api"), IN_AN_API, ids=lambda one: getattr(one, "concept", one))
def test_every_metric_of_both_apis_of_ragas_is_described(entry, api):
    found = definition_of(ragas(entry.concept, api))
    assert found.known, f"{entry.concept} has no entry in the table of concepts"
    assert found.higher_is_better is entry.higher_is_better
    assert (found.package, found.versions) == ("ragas", ">=0.4,<0.5")


def test_no_line_about_ragas_is_about_nothing():
    concepts = {entry.concept for entry in catalog.ENTRIES}
    for api, concept in IN_RAGAS:
        (entry,) = [one for one in catalog.ENTRIES if one.concept == concept]
        assert concept in concepts and (api == "*" or entry.classes(api))


@pytest.mark.parametrize("name", CONCEPTS)
def test_levels_stand_where_the_scale_has_few(name):
    found = CONCEPTS[name]
    assert (found.scale != "continuous") or not found.levels
    if found.scale == "binary":
        assert found.levels == (0.0, 1.0)


# -- how far two may be compared


def related(a, b):
    return relation(definition_of(a), definition_of(b))


@pytest.mark.parametrize(
    "name", ["Faithfulness", "ContextRecall", "ContextPrecision", "AnswerRelevancy", "ContextRelevance"]
)
def test_what_is_one_quantity_on_one_scale_is_the_same_in_all_three(name):
    sides = [native(name), ragas(name), ragas(name, "legacy")]
    assert {related(a, b) for a in sides for b in sides} == {"same"}


def test_the_collections_grade_the_reference_the_second_time_so_they_are_only_near():
    assert related(native("AnswerAccuracy"), ragas("AnswerAccuracy", "legacy")) == "same"
    assert related(native("AnswerAccuracy"), ragas("AnswerAccuracy")) == "near"
    said = why_related(
        definition_of(native("AnswerAccuracy")), definition_of(ragas("AnswerAccuracy")), ("native", "ragas")
    )
    assert "answer correctness" in said and "roles exchanged" in said


def test_a_share_of_claims_and_a_rating_of_the_whole_share_a_construct():
    assert related(native("Faithfulness"), native("ResponseGroundedness")) == "near"


def test_two_constructs_share_at_most_a_name_and_the_sentence_says_so():
    a, b = definition_of(native("Faithfulness")), definition_of(native("AnswerAccuracy"))
    assert relation(a, b) == "name"
    assert why_related(a, b, ("one", "other")).startswith("they only share a name: one is the share of")


def test_settings_that_change_the_quantity_count():
    assert related(native("ExactMatch"), native("ExactMatch", normalise="full")) == "near"
    assert related(native("NonLLMContextRecall"), ragas("NonLLMContextRecall", "legacy")) == "near"
    assert related(native("NonLLMContextRecall", strict=True), ragas("NonLLMContextRecall", "legacy")) == "same"
    half = ragas("NonLLMContextRecall", "legacy", '{"threshold": 0.9}')
    assert related(native("NonLLMContextRecall", strict=True), half) == "near"


def test_the_counts_of_factual_correctness_are_compared_absolutely_where_both_count_alike():
    for api in ("collections", "legacy"):
        assert related(native("FactualCorrectness"), ragas("FactualCorrectness", api)) == "near"
        assert related(native("FactualCorrectness", counting="ragas"), ragas("FactualCorrectness", api)) == "same"
    only = ragas("FactualCorrectness", given='{"mode": "recall"}')
    assert related(native("FactualCorrectness", counting="ragas"), only) == "near"


def test_entities_are_the_same_only_where_both_are_compared_as_they_are_written():
    assert related(native("ContextEntityRecall"), ragas("ContextEntityRecall")) == "near"
    assert related(native("ContextEntityRecall", match="exact"), ragas("ContextEntityRecall")) == "same"


@pytest.mark.parametrize(
    "name",
    [
        "AnswerCorrectness", "NoiseSensitivity", "SemanticSimilarity", "SummaryScore", "TopicAdherence",
        "AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference", "SQLSemanticEquivalence",
    ],
)  # fmt: skip
def test_what_differs_in_odd_rows_only_is_the_same_quantity(name):
    sides = [native(name), ragas(name), ragas(name, "legacy")]
    assert {related(a, b) for a in sides for b in sides} == {"same"}


def test_a_threshold_makes_two_values_of_a_similarity():
    assert definition_of(ragas("SemanticSimilarity")).scale == "continuous"
    assert definition_of(ragas("SemanticSimilarity", given='{"threshold": 0.8}')).scale == "binary"


@dataclass(frozen=True)
class Foreign:
    """A metric of a framework that nobody has described."""

    name: str = "Faithfulness"
    backend: str = "elsewhere"
    definition: str = "some share"
    higher_is_better: bool = True


def test_a_metric_that_nobody_has_described_shares_a_name_with_everything():
    found = definition_of(Foreign())
    assert not found.known and relation(found, found) == "name"
    assert "nothing says what elsewhere measures" in why_related(
        definition_of(native("Faithfulness")), found, ("native", "elsewhere")
    )


def test_a_framework_may_declare_its_own():
    class Declared(Foreign):
        declared = Definition(
            estimand=CONCEPTS["Faithfulness"].estimand, construct="groundedness", unit="claim", no_claims="one"
        )

    assert relation(definition_of(Declared()), definition_of(native("Faithfulness"))) == "same"


def test_a_class_of_the_legacy_api_does_not_stand_for_the_collections():
    only_legacy = replace(ragas("AspectCritic", "legacy"), backend="ragas")
    assert is_of_another_api(only_legacy)
    assert not is_of_another_api(ragas("Faithfulness")) and not is_of_another_api(ragas("AspectCritic", "legacy"))


def test_a_release_that_the_description_was_not_written_for_is_named():
    ours = Definition(estimand="x", construct="y", unit="claim")
    assert outdated(ours) == ""
    assert outdated(replace(ours, package="pydantic", versions=">=2")) == ""
    assert outdated(replace(ours, package="pydantic", versions="<1")).startswith("pydantic 2")
    assert outdated(replace(ours, package="a-package-that-is-nowhere", versions="<1")) == ""


# -- the direction is tried


@pytest.mark.parametrize(
    "cls", [cls for cls in NATIVE.classes() if cls.__name__ not in UNDECIDED], ids=lambda cls: cls.__name__
)
def test_a_good_sample_is_better_than_a_bad_one(cls):
    gap = good_minus_bad(built(cls))
    if gap is None:
        assert cls.__name__ in {
            "RubricsScore", "RubricsScoreWithReference", "InstanceSpecificRubrics", "ToolCallAccuracy", "ToolCallF1",
            "QuotedSpansAlignment", "TunableRag", "AgentGoalAccuracy", "AgentGoalAccuracyWithReference",
            "AgentGoalAccuracyWithoutReference", "TopicAdherence", "SQLSemanticEquivalence", "RefusalCorrectness",
        }, "the sample has all it reads, so it must be scored"  # fmt: skip
        return
    assert gap > 0, f"{cls.__name__}: the bad sample is as good as the good one"
