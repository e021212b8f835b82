"""What Ragas 0.4 has: every metric class of both APIs with its aliases, fields, settings, range and cost.

It is written down, so that an eval file is checked without importing Ragas; a contract test compares it with
the installed classes. `collections` is `ragas.metrics.collections`, `legacy` the classes of `ragas.metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from ragparity.core.ports import Scale, Use
from ragparity_adapters.backends import _ragas_sizes as sizes

if TYPE_CHECKING:
    from ragparity.core.ports import Ask
    from ragparity.core.sample import Sample

Api = Literal["collections", "legacy"]
APIS: tuple[Api, ...] = ("collections", "legacy")
Family = Literal[
    "claims", "precision", "recall", "entities", "noise", "factual", "correctness", "relevancy", "similarity",
    "ratings", "binary", "graded", "summary", "goal", "topics", "sql", "passages", "ids", "quotes", "calls", "plain",
]  # fmt: skip
"""How the outcome of a metric is read; see `_ragas_outcomes`."""

STRUCTURED: frozenset[Use] = frozenset({"structured"})
RATED: frozenset[Use] = frozenset({"rating"})
EMBEDDED: frozenset[Use] = frozenset({"embeddings"})
NOTHING: frozenset[Use] = frozenset()

AGREEMENT, LEVELS = Scale((0, 2, 4)), Scale((0, 1, 2))
ANY_NUMBER = (float("-inf"), float("inf"))
"""The range of a score whose scale stands in a free text."""


# -- settings


@dataclass(frozen=True, slots=True)
class Setting:
    """A kwarg of a constructor: its type as pydantic checks it, its default, and how it is handed over."""

    type: Any
    default: Any = ...
    hand_over: Literal["as_is", "distance", "string_metric"] = "as_is"
    argument: str = ""
    """Name of the constructor's parameter, where it differs."""


def _weights(given: list[float]) -> list[float]:
    if any(one < 0 for one in given) or not any(given):
        raise ValueError("expected two weights from 0 up, at least one above 0")
    return given


def _ragas_keys(given: Any) -> Any:
    """A rubric with its bare numbers written as Ragas writes them: `score1_description`."""
    if not isinstance(given, Mapping):
        return given
    return {f"score{key}_description" if str(key).isdigit() else str(key): text for key, text in given.items()}


Modes = Literal["f1", "precision", "recall"]
Distances = Literal["levenshtein", "hamming", "jaro", "jaro_winkler"]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Tries = Annotated[int, Field(ge=1)]
Rubrics = Annotated[dict[str, str], BeforeValidator(_ragas_keys), Field(min_length=2)]
Weights = Annotated[list[Finite], Field(min_length=2, max_length=2), AfterValidator(_weights)]

ON, OFF = Setting(bool, default=True), Setting(bool, default=False)
LOW_HIGH = Setting(Literal["low", "high"], "low")
MODE = Setting(Modes, "f1")
RETRIES = Setting(Tries, 1)
WEIGHING = {"weights": Setting(Weights, [0.75, 0.25]), "beta": Setting(Positive, 1.0)}
FACTS = {"mode": MODE, "beta": Setting(Positive, 1.0), "atomicity": LOW_HIGH, "coverage": LOW_HIGH}
DISTANCE = {"distance_measure": Setting(Distances, "levenshtein", "distance")}
THRESHOLD = {"threshold": Setting(Finite | None, None)}
CROSS_ENCODER = {"is_cross_encoder": Setting(Literal[False], default=False)}
ROUGE = {
    "rouge_type": Setting(Literal["rougeL", "rouge1", "rouge2"], "rougeL"),
    "mode": Setting(Literal["fmeasure", "precision", "recall"], "fmeasure"),
}
SACREBLEU = {"kwargs": Setting(dict[str, Any] | None, None)}
TABLES = {"mode": Setting(Literal["rows", "columns"], "rows"), "metric": MODE}
STRICTNESS = {"strictness": Setting(Annotated[int, Field(ge=1, le=20)], 3)}
VOTES = {"definition": Setting(Annotated[str, Field(min_length=1)]), "strictness": Setting(Tries, 1)}
LENGTH = {"length_penalty": ON, "coeff": Setting(Share, 0.5)}
RUBRICS = {"rubrics": Setting(Rubrics | None, None)}
SIDE = {"mode": Setting(Literal["relevant", "irrelevant"], "relevant")}
QUOTES = {"casefold": ON, "min_span_words": Setting(Tries, 3)}
ORDER = {"strict_order": ON}
TRIES = {"max_retries": Setting(Tries, 5)}


def name_setting(default: str) -> Setting:
    """The label that Ragas gives a metric; it changes no score."""
    return Setting(Annotated[str, Field(min_length=1)], default)


# -- entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One metric. `collections` and `legacy` are its class names there, `settings` its kwargs in each API.

    `calls` says in words what `asks` says in numbers; `needs` are packages beyond the extra; `fetches` says
    what a class gets from elsewhere, which is refused unless the user lists it (`fetches_from`, where that is known;
    else it is named in the row's contexts).
    """

    concept: str
    collections: tuple[str, ...] = ()
    legacy: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    reads: tuple[str, ...]
    may_read: tuple[str, ...] = ()
    legacy_reads: tuple[str, ...] = ()
    uses: frozenset[Use] = NOTHING
    bounds: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    definition: str
    family: Family = "plain"
    calls: str = "nothing"
    asks: Callable[[Sample], tuple[Ask, ...]] = sizes.nothing
    steps: int = 0
    scale: Scale | None = None
    settings: Mapping[Api, Mapping[str, Setting]] = field(default_factory=lambda: MappingProxyType({}))
    needs: tuple[str, ...] = ()
    fetches: str = ""
    fetches_from: str = ""
    multi_turn: Literal["no", "yes", "both"] = "no"

    def classes(self, api: Api) -> tuple[str, ...]:
        """The names of its classes in an API, the preferred one first."""
        return self.collections if api == "collections" else self.legacy

    def optional(self, api: Api) -> tuple[str, ...]:
        """The fields that it uses where they are present; only the legacy API judges an answer or a conversation."""
        needed = self.fields(api)
        return tuple(one for one in self.may_read if one not in needed and (api == "legacy" or one != "messages"))

    def fields(self, api: Api) -> tuple[str, ...]:
        """The fields that it needs in an API."""
        return (*self.reads, *self.legacy_reads) if api == "legacy" else self.reads


def _both(
    shared: Mapping[str, Setting] = MappingProxyType({}),
    *,
    collections: Mapping[str, Setting] = MappingProxyType({}),
    legacy: Mapping[str, Setting] = MappingProxyType({}),
) -> dict[Api, Mapping[str, Setting]]:
    return {"collections": {**shared, **collections}, "legacy": {**shared, **legacy}}


QUESTION, CONTEXTS, RESPONSE, REFERENCE = "user_input", "retrieved_contexts", "response", "reference"
ANYTHING = ("user_input", "response", "retrieved_contexts", "reference_contexts", "reference")

ENTRIES: tuple[Entry, ...] = (
    Entry(
        concept="Faithfulness", collections=("Faithfulness",), legacy=("Faithfulness",), aliases=("faithfulness",),
        reads=(QUESTION, RESPONSE, CONTEXTS), uses=STRUCTURED, family="claims", steps=2,
        definition="supported statements of the response / verdicts that the judge gave",
        calls="2", asks=sizes.claims_then_verdicts, settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="AnswerRelevancy", collections=("AnswerRelevancy",), legacy=("ResponseRelevancy", "AnswerRelevancy"),
        aliases=("answer_relevancy", "response_relevancy"),
        reads=(QUESTION, RESPONSE), uses=STRUCTURED | EMBEDDED, family="relevancy", steps=2, bounds=(-1.0, 1.0),
        definition="mean cosine of the question and questions made from the response; 0 when all are noncommittal",
        calls="strictness (3), one after the other; legacy at once; and vectors",
        asks=sizes.questions, settings=_both(STRICTNESS),
    ),
    Entry(
        concept="ContextPrecision", collections=("ContextPrecision", "ContextPrecisionWithReference"),
        legacy=("ContextPrecision", "LLMContextPrecisionWithReference"),
        aliases=("context_precision", "context_precision_with_reference", "llm_context_precision_with_reference"),
        reads=(QUESTION, CONTEXTS, REFERENCE), uses=STRUCTURED, family="precision", steps=1,
        definition="average precision of the passages that were useful for the reference",
        calls="one per passage, one after the other", asks=sizes.verdict_per_passage,
        settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="ContextPrecisionWithoutReference",
        collections=("ContextPrecisionWithoutReference", "ContextUtilization"),
        legacy=("LLMContextPrecisionWithoutReference", "ContextUtilization"),
        aliases=(
            "context_utilization", "context_precision_without_reference", "llm_context_precision_without_reference",
        ),
        reads=(QUESTION, CONTEXTS, RESPONSE), uses=STRUCTURED, family="precision", steps=1,
        definition="average precision of the passages that were useful for the response",
        calls="one per passage, one after the other", asks=sizes.verdict_per_passage,
        settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="ContextRecall", collections=("ContextRecall",), legacy=("ContextRecall", "LLMContextRecall"),
        aliases=("context_recall",), reads=(QUESTION, CONTEXTS, REFERENCE), uses=STRUCTURED, family="recall", steps=1,
        definition="statements of the reference attributable to the contexts / statements of the reference",
        calls="1", asks=sizes.attributions, settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="ContextEntityRecall", collections=("ContextEntityRecall",), legacy=("ContextEntityRecall",),
        aliases=("context_entity_recall",), reads=(CONTEXTS, REFERENCE), uses=STRUCTURED, family="entities", steps=2,
        definition="entities of the reference that the contexts name too / entities of the reference, exact strings",
        calls="2", asks=sizes.entities, settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="NoiseSensitivity", collections=("NoiseSensitivity",), legacy=("NoiseSensitivity",),
        aliases=("noise_sensitivity",), reads=(QUESTION, RESPONSE, REFERENCE, CONTEXTS), uses=STRUCTURED,
        family="noise", steps=3, higher_is_better=False,
        definition="share of response statements that are wrong and supported by a relevant (or irrelevant) passage",
        calls="3 + 2 per passage", asks=sizes.noise, settings=_both(SIDE, legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="FactualCorrectness", collections=("FactualCorrectness",), legacy=("FactualCorrectness",),
        aliases=("factual_correctness",), reads=(RESPONSE, REFERENCE), uses=STRUCTURED, family="factual", steps=2,
        definition="precision, recall or F of the claims of response and reference; rounded to two decimals by Ragas",
        calls="4 (2 for precision)", asks=sizes.facts,
        settings=_both(FACTS, legacy={"language": Setting(str, "english")}),
    ),
    Entry(
        concept="AnswerCorrectness", collections=("AnswerCorrectness",), legacy=("AnswerCorrectness",),
        aliases=("answer_correctness",), reads=(QUESTION, RESPONSE, REFERENCE), uses=STRUCTURED | EMBEDDED,
        family="correctness", steps=3, bounds=(-1.0, 1.0),
        definition="weighted mean of the F score of statements and the cosine of response and reference",
        calls="3 and vectors", asks=sizes.correctness, settings=_both(WEIGHING, legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="SemanticSimilarity", collections=("SemanticSimilarity",),
        legacy=("SemanticSimilarity", "AnswerSimilarity"), aliases=("semantic_similarity", "answer_similarity"),
        reads=(RESPONSE, REFERENCE), uses=EMBEDDED, family="similarity", steps=1, bounds=(-1.0, 1.0),
        definition="cosine of response and reference, or 1 and 0 at the threshold",
        calls="vectors", asks=sizes.vectors, settings=_both(THRESHOLD, legacy=CROSS_ENCODER),
    ),
    Entry(
        concept="AnswerAccuracy", collections=("AnswerAccuracy",), legacy=("AnswerAccuracy",),
        aliases=("answer_accuracy", "nv_accuracy"), reads=(QUESTION, RESPONSE, REFERENCE), uses=RATED,
        family="ratings", steps=2, scale=AGREEMENT, definition="mean of two ratings of 0, 2 or 4, divided by 4",
        calls="2 ratings, one after the other", asks=sizes.two_ratings, settings=_both(collections=TRIES),
    ),
    Entry(
        concept="ContextRelevance", collections=("ContextRelevance",), legacy=("ContextRelevance",),
        aliases=("context_relevance", "nv_context_relevance"), reads=(QUESTION, CONTEXTS), uses=RATED,
        family="ratings", steps=2, scale=LEVELS, definition="mean of two ratings of 0, 1 or 2, divided by 2",
        calls="2 ratings, one after the other", asks=sizes.two_ratings, settings=_both(collections=TRIES),
    ),
    Entry(
        concept="ResponseGroundedness", collections=("ResponseGroundedness",), legacy=("ResponseGroundedness",),
        aliases=("response_groundedness", "nv_response_groundedness"), reads=(RESPONSE, CONTEXTS), uses=RATED,
        family="ratings", steps=2, scale=LEVELS, definition="mean of two ratings of 0, 1 or 2, divided by 2",
        calls="2 ratings, one after the other", asks=sizes.two_ratings, settings=_both(collections=TRIES),
    ),
    Entry(
        concept="AspectCritic", legacy=("AspectCritic",), aliases=("aspect_critic",), reads=(),
        may_read=(*ANYTHING, "messages"), uses=STRUCTURED, family="binary", steps=1, multi_turn="both",
        definition="1 when the judge finds the aspect of the definition, else 0; `strictness` does nothing in Ragas",
        calls="1", asks=sizes.one_verdict,
        settings={"legacy": {**VOTES, "name": name_setting("aspect_critic"), "max_retries": RETRIES}},
    ),
    Entry(
        concept="SimpleCriteria", legacy=("SimpleCriteriaScore",), aliases=("simple_criteria",), reads=(),
        may_read=(*ANYTHING, "messages"), uses=STRUCTURED, family="graded", steps=1, multi_turn="both",
        bounds=ANY_NUMBER, definition="the whole number that the judge gives by the definition, on its scale",
        calls="1", asks=sizes.one_verdict, settings={"legacy": {**VOTES, "name": name_setting("simple_criteria")}},
    ),
    Entry(
        concept="DomainSpecificRubrics", collections=("DomainSpecificRubrics",), legacy=("RubricsScore",),
        aliases=("domain_specific_rubrics", "rubrics_score"), reads=(), may_read=(*ANYTHING, "messages"),
        uses=STRUCTURED, family="graded", steps=1, bounds=(1.0, 5.0), multi_turn="both",
        definition="the grade of the rubric that the judge chooses, on the rubric's scale", calls="1",
        asks=sizes.one_verdict,
        settings=_both(
            RUBRICS, collections={"with_reference": OFF}, legacy={"max_retries": RETRIES}
        ),
    ),
    Entry(
        concept="RubricsScoreWithoutReference", collections=("RubricsScoreWithoutReference",),
        aliases=("rubrics_score_without_reference",), reads=(RESPONSE,),
        may_read=tuple(one for one in ANYTHING if one != RESPONSE), uses=STRUCTURED, family="graded", steps=1,
        bounds=(1.0, 5.0), definition="the grade of the rubric that the judge chooses, without a reference",
        calls="1", asks=sizes.one_verdict, settings=_both(RUBRICS),
    ),
    Entry(
        concept="RubricsScoreWithReference", collections=("RubricsScoreWithReference",),
        aliases=("rubrics_score_with_reference",), reads=(RESPONSE, REFERENCE),
        may_read=(QUESTION, CONTEXTS, "reference_contexts"), uses=STRUCTURED, family="graded", steps=1,
        bounds=(1.0, 5.0), definition="the grade of the rubric that the judge chooses, with a reference",
        calls="1", asks=sizes.one_verdict, settings=_both(RUBRICS),
    ),
    Entry(
        concept="InstanceSpecificRubrics", collections=("InstanceSpecificRubrics",), legacy=("InstanceRubrics",),
        aliases=("instance_specific_rubrics", "instance_rubrics"), reads=("rubrics",),
        may_read=(*ANYTHING, "messages"), uses=STRUCTURED, family="graded", steps=1, bounds=ANY_NUMBER,
        multi_turn="both", definition="the grade of the row's own rubric that the judge chooses, on its scale",
        calls="1", asks=sizes.one_verdict, settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="SummaryScore", collections=("SummaryScore",), legacy=("SummarizationScore",),
        aliases=("summary_score", "summarization_score"), reads=("reference_contexts", RESPONSE), uses=STRUCTURED,
        family="summary", steps=3, definition="(1 - coeff) · questions answered + coeff · conciseness in characters",
        calls="3", asks=sizes.summary, settings=_both(LENGTH, legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="AgentGoalAccuracyWithReference",
        collections=("AgentGoalAccuracyWithReference", "AgentGoalAccuracy"),
        legacy=("AgentGoalAccuracyWithReference",),
        aliases=("agent_goal_accuracy", "agent_goal_accuracy_with_reference"), reads=("messages", REFERENCE),
        uses=STRUCTURED, family="goal", steps=2, multi_turn="yes",
        definition="1 when the end state of the conversation is the wanted one, else 0", calls="2", asks=sizes.goal,
        settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="AgentGoalAccuracyWithoutReference", collections=("AgentGoalAccuracyWithoutReference",),
        legacy=("AgentGoalAccuracyWithoutReference",), aliases=("agent_goal_accuracy_without_reference",),
        reads=("messages",), uses=STRUCTURED, family="goal", steps=2, multi_turn="yes",
        definition="1 when the end state of the conversation is what the user wanted, else 0", calls="2",
        asks=sizes.goal, settings=_both(legacy={"max_retries": RETRIES}),
    ),
    Entry(
        concept="TopicAdherence", collections=("TopicAdherence",), legacy=("TopicAdherenceScore",),
        aliases=("topic_adherence", "topic_adherence_score"), reads=("messages", "reference_topics"),
        uses=STRUCTURED, family="topics", steps=3, multi_turn="yes",
        definition="precision, recall or F1 of answered topics against the allowed ones", calls="topics + 2",
        asks=sizes.topics, settings=_both({"mode": MODE}),
    ),
    Entry(
        concept="ToolCallAccuracy", collections=("ToolCallAccuracy",), legacy=("ToolCallAccuracy",),
        aliases=("tool_call_accuracy",), reads=("messages", "reference_tool_calls"), family="calls", multi_turn="yes",
        definition="mean share of right arguments when the names of all calls are those that were wanted, else 0",
        settings=_both(ORDER),
    ),
    Entry(
        concept="ToolCallF1", collections=("ToolCallF1",), legacy=("ToolCallF1",), aliases=("tool_call_f1",),
        reads=("messages", "reference_tool_calls"), family="calls", multi_turn="yes",
        definition="F1 over the sets of calls with their arguments; rounded to four decimals by Ragas",
        settings=_both(legacy={"batch_size": Setting(Tries, 1), "is_multi_turn": ON}),
    ),
    Entry(
        concept="SQLSemanticEquivalence", collections=("SQLSemanticEquivalence",), legacy=("LLMSQLEquivalence",),
        aliases=("sql_semantic_equivalence", "llm_sql_equivalence", "llm_sql_equivalence_with_reference"),
        reads=(RESPONSE, REFERENCE), may_read=("reference_contexts",), legacy_reads=("reference_contexts",),
        uses=STRUCTURED, family="sql", steps=1, definition="1 when the two queries mean the same, given the schema",
        calls="1", asks=sizes.sql, settings=_both(),
    ),
    Entry(
        concept="IDBasedContextPrecision", legacy=("IDBasedContextPrecision",), aliases=("id_based_context_precision",),
        reads=("retrieved_context_ids", "reference_context_ids"), family="ids",
        definition="retrieved ids that are wanted / retrieved ids, as sets", settings=_both(),
    ),
    Entry(
        concept="IDBasedContextRecall", legacy=("IDBasedContextRecall",), aliases=("id_based_context_recall",),
        reads=("retrieved_context_ids", "reference_context_ids"), family="ids",
        definition="wanted ids that were retrieved / wanted ids, as sets", settings=_both(),
    ),
    Entry(
        concept="NonLLMContextPrecisionWithReference", legacy=("NonLLMContextPrecisionWithReference",),
        aliases=("non_llm_context_precision_with_reference",), reads=(CONTEXTS, "reference_contexts"),
        family="passages",
        definition="average precision of passages whose best similarity to a reference context reaches the threshold",
        settings=_both(
            legacy={
                "distance_measure": Setting(Distances, "levenshtein", "string_metric"),
                "threshold": Setting(Share, 0.5),
            }
        ),
    ),
    Entry(
        concept="NonLLMContextRecall", legacy=("NonLLMContextRecall",), aliases=("non_llm_context_recall",),
        reads=(CONTEXTS, "reference_contexts"),
        definition="share of reference contexts whose best similarity to a passage is above the threshold",
        settings=_both(
            legacy={
                "distance_measure": Setting(Distances, "levenshtein", "string_metric", "_distance_measure"),
                "threshold": Setting(Share, 0.5),
            }
        ),
    ),
    Entry(
        concept="ExactMatch", collections=("ExactMatch",), legacy=("ExactMatch",), aliases=("exact_match",),
        reads=(RESPONSE, REFERENCE), definition="1 when response and reference are the same string, else 0",
        settings=_both(),
    ),
    Entry(
        concept="StringPresence", collections=("StringPresence",), legacy=("StringPresence",),
        aliases=("string_presence", "string_present"), reads=(RESPONSE, REFERENCE),
        definition="1 when the reference stands in the response, else 0", settings=_both(),
    ),
    Entry(
        concept="NonLLMStringSimilarity", collections=("NonLLMStringSimilarity",), legacy=("NonLLMStringSimilarity",),
        aliases=("non_llm_string_similarity",), reads=(RESPONSE, REFERENCE),
        definition="1 - normalised edit distance of response and reference", settings=_both(DISTANCE),
    ),
    Entry(
        concept="BleuScore", collections=("BleuScore",), legacy=("BleuScore",), aliases=("bleu_score",),
        reads=(RESPONSE, REFERENCE), needs=("sacrebleu",),
        definition="BLEU of the first sentence of the response against the sentences of the reference",
        settings=_both(SACREBLEU),
    ),
    Entry(
        concept="CHRFScore", collections=("CHRFScore",), legacy=("ChrfScore",), aliases=("chrf_score",),
        reads=(RESPONSE, REFERENCE), needs=("sacrebleu",), definition="chrF of response and reference / 100",
        settings=_both(SACREBLEU),
    ),
    Entry(
        concept="RougeScore", collections=("RougeScore",), legacy=("RougeScore",), aliases=("rouge_score",),
        reads=(RESPONSE, REFERENCE), needs=("rouge_score",),
        definition="ROUGE of response and reference, English stemming", settings=_both(ROUGE),
    ),
    Entry(
        concept="QuotedSpansAlignment", collections=("QuotedSpansAlignment",), aliases=("quoted_spans_alignment",),
        reads=(RESPONSE, CONTEXTS), family="quotes",
        definition="quoted spans of the response found in the contexts / quoted spans", settings=_both(QUOTES),
    ),
    Entry(
        concept="DataCompyScore", collections=("DataCompyScore",), legacy=("DataCompyScore",),
        aliases=("data_compare_score",), reads=(RESPONSE, REFERENCE), needs=("datacompy", "pandas"),
        definition="precision, recall or F1 of the rows or columns of two CSV tables", settings=_both(TABLES),
    ),
    Entry(
        concept="FaithfulnesswithHHEM", legacy=("FaithfulnesswithHHEM",), aliases=("faithfulness_with_hhem",),
        reads=(QUESTION, RESPONSE, CONTEXTS), uses=STRUCTURED, family="plain", steps=1,
        needs=("transformers", "torch"), fetches="downloads a classifier",
        fetches_from="huggingface.co",
        definition="statements of the response that a local classifier finds supported / statements",
        calls="1", asks=sizes.claims_only,
        settings=_both(
            legacy={"max_retries": RETRIES, "device": Setting(str, "cpu"), "batch_size": Setting(Tries, 10)}
        ),
    ),
    Entry(
        concept="MultiModalFaithfulness", collections=("MultiModalFaithfulness",), legacy=("MultiModalFaithfulness",),
        aliases=("multi_modal_faithfulness", "faithful_rate"), reads=(RESPONSE, CONTEXTS), uses=STRUCTURED,
        steps=1, fetches="opens every URL and file that is named in retrieved_contexts",
        definition="1 when images and texts of the contexts support the response, else 0", calls="1",
        asks=sizes.one_verdict, settings=_both(),
    ),
    Entry(
        concept="MultiModalRelevance", collections=("MultiModalRelevance",), legacy=("MultiModalRelevance",),
        aliases=("multi_modal_relevance", "relevance_rate"), reads=(QUESTION, RESPONSE, CONTEXTS), uses=STRUCTURED,
        steps=1, fetches="opens every URL and file that is named in retrieved_contexts",
        definition="1 when the response is in line with images and texts of the contexts, else 0", calls="1",
        asks=sizes.one_verdict, settings=_both(),
    ),
)  # fmt: skip

NOT_FROM_A_FILE = frozenset(
    {"llm", "embeddings", "output_type", "required_columns", "answer_similarity", "arg_comparison_metric"}
)
"""Parameters of constructors that hold objects: the judge and the embedder come from the eval file's entries."""


def class_names(api: Api) -> Iterator[str]:
    """Every class name of an API, in the order of this table."""
    for entry in ENTRIES:
        yield from entry.classes(api)


def find(name: str) -> Entry | None:
    """The entry of a class name of either API or of an alias, case ignored."""
    return _BY_NAME.get(name.casefold())


def class_of(name: str, entry: Entry, api: Api) -> str | None:
    """The class for a name in an API: that of the same name, else the entry's preferred one; `None` without any."""
    classes = entry.classes(api)
    same = (one for one in classes if one.casefold() == name.casefold())
    return next(same, classes[0] if classes else None)


def _by_name() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in ENTRIES:
        for name in (entry.concept, *entry.collections, *entry.legacy, *entry.aliases):
            if found.setdefault(name.casefold(), entry) is not entry:
                raise TypeError(f"two metrics are called {name}")
    return found


_BY_NAME = _by_name()
