"""The written catalogue against the installed Ragas: names, constructors, arguments; and what an eval file may say."""

import inspect

import pytest
import ragas.metrics
import ragas.metrics.collections
from ragas.metrics.base import Metric
from ragas.metrics.collections.base import BaseMetric
from tests.adapters.backends.ragas_world import COLLECTIONS, LEGACY

from ragparity.core.errors import ConfigError, MissingExtra, UnknownMetric
from ragparity.core.sample import FIELDS
from ragparity_adapters.backends import _ragas_catalog as catalog
from ragparity_adapters.backends._ragas_build import settings_of

PROMPTS = ("prompt", "question_generation")
"""Parameters whose names end so hold prompt objects."""
IN_PLACE_OF = {"_distance_measure": "distance_measure"}
HIDDEN = {"_required_columns"}


def installed(api):
    """The metric classes of an API of the installed Ragas, by the names under which it serves them."""
    if api == "collections":
        named = {name: getattr(ragas.metrics.collections, name) for name in ragas.metrics.collections.__all__}
        base = BaseMetric
    else:
        named, base = dict(ragas.metrics._DEPRECATED_METRICS), Metric
    return {
        name: one for name, one in named.items() if isinstance(one, type) and issubclass(one, base) and one is not base
    }


@pytest.mark.parametrize("api", catalog.APIS)
def test_the_catalogue_names_exactly_the_metric_classes_of_ragas(api):
    assert sorted(catalog.class_names(api)) == sorted(installed(api))


@pytest.mark.parametrize("api", catalog.APIS)
def test_every_parameter_of_a_constructor_is_a_setting_or_an_object(api):
    for name, cls in installed(api).items():
        entry = catalog.find(name)
        parameters = {
            IN_PLACE_OF.get(one.name, one.name): one.default
            for one in inspect.signature(cls.__init__).parameters.values()
            if one.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
            and one.name not in {"self", "name"} | HIDDEN
            and one.name not in catalog.NOT_FROM_A_FILE
            and not one.name.endswith(PROMPTS)
        }
        settings = {key: one for key, one in settings_of(entry, api).items() if key not in ("name", "allow_fetch")}
        if entry.concept == "DomainSpecificRubrics" or name.startswith("RubricsScore"):
            parameters["rubrics"] = None  # the default text of the rubric is Ragas' own
        assert set(parameters) == set(settings), name
        for key, setting in settings.items():
            simple = isinstance(parameters[key], bool | int | float | str)
            if simple:
                assert parameters[key] == setting.default, (name, key)


def test_every_argument_of_a_collections_coroutine_is_a_field_of_the_sample():
    for name, cls in installed("collections").items():
        entry = catalog.find(name)
        arguments = {one for one in inspect.signature(cls.ascore).parameters if one != "self"}
        known = {"user_input" if one == "messages" else one for one in (*entry.reads, *entry.may_read)}
        assert arguments <= known | {"user_input"}, name
        assert set(entry.fields("collections")) <= set(FIELDS)


def test_what_a_legacy_class_requires_is_what_the_catalogue_says_it_reads():
    for name, cls in installed("legacy").items():
        entry = catalog.find(name)
        if entry.needs or entry.fetches:
            continue
        made = cls(**({"name": "x", "definition": "d"} if entry.concept in ("AspectCritic", "SimpleCriteria") else {}))
        for columns in made.required_columns.values():
            reads = {"user_input" if one == "messages" else one for one in entry.fields("legacy")}
            assert columns == reads or entry.multi_turn == "both", name


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("faithfulness", "Faithfulness"),
        ("FAITHFULNESS", "Faithfulness"),
        ("ResponseRelevancy", "AnswerRelevancy"),
        ("nv_accuracy", "AnswerAccuracy"),
        ("LLMContextPrecisionWithReference", "ContextPrecision"),
        ("ContextPrecisionWithReference", "ContextPrecisionWithReference"),
        ("AnswerSimilarity", "SemanticSimilarity"),
        ("ChrfScore", "CHRFScore"),
        ("SummarizationScore", "SummaryScore"),
        ("RubricsScore", "DomainSpecificRubrics"),
        ("TopicAdherenceScore", "TopicAdherence"),
        ("LLMSQLEquivalence", "SQLSemanticEquivalence"),
    ],
)
def test_names_and_aliases_of_either_api_lead_to_the_collections_class(name, class_name):
    built = COLLECTIONS.build(name, {})
    assert (built.name, built.api, built.backend) == (class_name, "collections", "ragas")


def test_a_class_that_only_the_legacy_api_has_is_taken_from_there_and_says_so():
    built = COLLECTIONS.build("aspectcritic", {"definition": "Is it polite?"})
    assert (built.backend, built.api) == ("ragas", "legacy")
    assert "legacy" in built.version


def test_a_comparison_can_ask_whether_the_api_itself_has_a_metric():
    assert COLLECTIONS.has_own("faithfulness")
    assert not COLLECTIONS.has_own("AspectCritic")
    assert LEGACY.has_own("aspect_critic")
    assert not COLLECTIONS.has_own("TokenF1")


def test_the_legacy_backend_finds_its_own_class_by_a_collections_name_and_never_falls_back():
    assert LEGACY.build("ContextPrecisionWithReference", {}).name == "ContextPrecision"
    with pytest.raises(UnknownMetric, match=r"QuotedSpansAlignment.*legacy API.*set backend: ragas"):
        LEGACY.build("QuotedSpansAlignment", {})


@pytest.mark.parametrize("name", ["DistanceMeasure", "BaseMetric", "Metric", "_Faithfulness", "MetricResult", ""])
def test_enumerations_base_classes_and_private_names_are_no_metrics(name):
    for backend in (COLLECTIONS, LEGACY):
        with pytest.raises(UnknownMetric, match="no such metric"):
            backend.build(name, {})


def test_a_classifier_that_is_downloaded_needs_its_host_on_the_list():
    with pytest.raises(ConfigError, match=r"downloads a classifier.*allow_fetch: \[huggingface\.co\]"):
        COLLECTIONS.build("FaithfulnesswithHHEM", {"allow_fetch": ["images.example.com"]})
    with pytest.raises(MissingExtra, match="needs transformers"):
        COLLECTIONS.build("FaithfulnesswithHHEM", {"allow_fetch": ["huggingface.co"]})


@pytest.mark.parametrize(
    ("name", "kwargs", "said"),
    [
        ("Faithfullness", {}, "Did you mean Faithfulness?"),
        (
            "FactualCorrectness",
            {"mode": "precison"},
            "mode: input should be 'f1', 'precision' or 'recall', got 'precison'",
        ),
        (
            "AnswerRelevancy",
            {"strictnes": 3},
            "unknown kwarg 'strictnes'; it takes strictness. Did you mean strictness?",
        ),
        ("AspectCritic", {}, "definition: field required"),
        ("Faithfulness", {"llm": "gpt"}, "unknown kwarg 'llm'; it takes none"),
        ("AnswerCorrectness", {"weights": [0, 0]}, "weights: expected two weights from 0 up"),
        ("SummaryScore", {"coeff": 2}, "coeff: input should be less than or equal to 1"),
        ("NonLLMStringSimilarity", {"distance_measure": "cosine"}, "distance_measure: input should be 'levenshtein'"),
        ("NoiseSensitivity", {"mode": "both"}, "mode: input should be 'relevant' or 'irrelevant'"),
    ],
)
def test_a_wrong_name_or_setting_is_named_in_one_line_with_what_is_accepted(name, kwargs, said):
    with pytest.raises(ConfigError) as refused:
        COLLECTIONS.build(name, kwargs)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_dict_of_the_eval_file_is_left_as_it_is():
    kwargs = {"mode": "precision", "beta": 2}
    built = COLLECTIONS.build("FactualCorrectness", kwargs)
    assert kwargs == {"mode": "precision", "beta": 2}
    assert repr(built) == "FactualCorrectness(beta=2.0, mode='precision')"


def test_a_rubric_may_have_bare_numbers_as_keys():
    built = COLLECTIONS.build("DomainSpecificRubrics", {"rubrics": {0: "bad", 3: "good"}})
    assert built.settings == {"rubrics": {"score0_description": "bad", "score3_description": "good"}}
    assert built.bounds == (0.0, 3.0)


def test_the_spec_leaves_out_defaults_and_is_the_same_for_the_same_settings():
    assert repr(COLLECTIONS.build("FactualCorrectness", {"mode": "f1"})) == "FactualCorrectness()"
    one, other = ({"mode": "recall", "beta": 2}, {"beta": 2.0, "mode": "recall"})
    assert COLLECTIONS.build("FactualCorrectness", one) == COLLECTIONS.build("FactualCorrectness", other)


def test_correctness_without_a_weight_on_similarity_needs_no_embedder():
    assert "embeddings" in COLLECTIONS.build("AnswerCorrectness", {}).uses
    assert "embeddings" not in COLLECTIONS.build("AnswerCorrectness", {"weights": [1, 0]}).uses


@pytest.mark.parametrize("backend", [COLLECTIONS, LEGACY], ids=lambda one: one.name)
def test_the_card_and_the_line_of_every_metric_say_what_it_reads_asks_and_gives(backend):
    for name in backend.names():
        reads, asks, scale = backend.about(name)
        assert all((reads, asks, scale)), name
        assert f"{backend.name}/{name}" in backend.card(name)
    assert backend.about("NoiseSensitivity")[2] == "0 to 1, lower is better"


@pytest.mark.parametrize(
    "name", ["MultiModalFaithfulness", "multi_modal_relevance", "faithful_rate", "FaithfulnesswithHHEM"]
)
@pytest.mark.parametrize("backend", [COLLECTIONS, LEGACY], ids=lambda one: one.name)
def test_a_class_that_fetches_is_refused_by_whatever_name(backend, name):
    with pytest.raises(ConfigError, match=r"refused; to allow it.*allow_fetch"):
        backend.build(name, {})
