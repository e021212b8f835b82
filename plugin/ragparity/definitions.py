"""What every metric of every backend measures, and how far two of them may be compared.

One table for the concepts, and one for where an API of Ragas arrives elsewhere. A wrapped framework may declare its
own: a metric with an attribute `declared` that is a `Definition`. Two metrics are `same` when they have one estimand
with the same settings on one scale, `near` when they have one construct, else they only share a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ragparity.core.definition import Definition, Relation

if TYPE_CHECKING:
    from ragparity.core.ports import Metric

QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
RAGAS: Mapping[str, Any] = {"package": "ragas", "versions": ">=0.4,<0.5"}

GROUNDED, RELEVANT, CORRECT = "groundedness", "answer relevance", "answer correctness"
PRECISION, RECALL, CONTEXT = "retrieval precision", "retrieval recall", "context relevance"
LIKE, RANKED, CRITERION, TOOLS = "likeness of texts", "ranking quality", "the user's criterion", "tool calls"


def _claims(estimand: str, construct: str, **more: Any) -> Definition:
    return Definition(estimand=estimand, construct=construct, unit="claim", no_claims="undefined", **more)


def _rated(estimand: str, construct: str) -> Definition:
    return Definition(estimand=estimand, construct=construct, unit="response", scale="levels", levels=QUARTERS)


def _binary(estimand: str, construct: str, **more: Any) -> Definition:
    return Definition(
        estimand=estimand, construct=construct, unit="response", scale="binary", levels=(0.0, 1.0), **more
    )


def _graded(estimand: str, **more: Any) -> Definition:
    return Definition(estimand=estimand, construct=CRITERION, unit="response", scale="levels", **more)


def _passages(estimand: str, construct: str, **more: Any) -> Definition:
    return Definition(estimand=estimand, construct=construct, unit="passage", **more)


def _list(estimand: str, construct: str, **more: Any) -> Definition:
    return Definition(estimand=estimand, construct=construct, unit="list", **more)


def _text(estimand: str, **more: Any) -> Definition:
    return Definition(estimand=estimand, construct=LIKE, unit="response", **more)


CONCEPTS: Mapping[str, Definition] = {
    # -- support by the contexts
    "Faithfulness": _claims("share of the response's claims that the contexts support", GROUNDED),
    "FaithfulnesswithHHEM": _claims("share of the response's claims that a classifier finds supported", GROUNDED),
    "ResponseGroundedness": _rated("degree to which the contexts support the whole response", GROUNDED),
    "MultiModalFaithfulness": _binary("support of the whole response by images and texts", GROUNDED),
    "QuotedSpansAlignment": _list(
        "share of the response's quoted spans that stand in the contexts", GROUNDED,
        by={"casefold": True, "min_span_words": 3},
    ),
    # -- answer and question
    "AnswerRelevancy": Definition(
        estimand="mean similarity of the question and questions that the response answers", construct=RELEVANT,
        unit="response", by={"noncommittal": "all"},
    ),
    "MultiModalRelevance": _binary("accord of the whole response with images and texts", RELEVANT),
    # -- contexts
    "ContextPrecision": _passages("average precision of the passages useful for the reference", PRECISION),
    "ContextPrecisionWithoutReference": _passages(
        "average precision of the passages useful for the response", PRECISION
    ),
    "ContextPrecisionShare": _passages("share of the passages useful for the reference", PRECISION),
    "NonLLMContextPrecisionWithReference": _passages(
        "average precision of the passages similar to a reference context", PRECISION,
        by={"threshold": 0.5, "distance_measure": "levenshtein"},
    ),
    "IDBasedContextPrecision": _list("share of the retrieved ids that are wanted", PRECISION),
    "PrecisionAtK": _list("share of the first k retrieved ids that are wanted", PRECISION, by={"k": None}),
    "ContextRecall": _claims("share of the reference's claims that the contexts hold", RECALL),
    "ContextEntityRecall": _list(
        "share of the reference's entities that the contexts name", RECALL, by={"match": "normalised"}
    ),
    "NonLLMContextRecall": _passages(
        "share of the reference contexts similar to a passage", RECALL,
        by={"threshold": 0.5, "distance_measure": "levenshtein", "strict": False},
    ),
    "IDBasedContextRecall": _list("share of the wanted ids that were retrieved", RECALL),
    "RecallAtK": _list("share of the wanted ids among the first k retrieved", RECALL, by={"k": None}),
    "ContextRelevance": _rated("degree to which the contexts as a whole serve the question", CONTEXT),
    "NoiseSensitivity": _claims(
        "share of the response's claims that are wrong and supported by a passage", "sensitivity to noise",
        higher_is_better=False, by={"mode": "relevant"},
    ),
    # -- rankings of ids
    "HitRate": _list(
        "presence of a wanted id among the first k", RANKED, scale="binary", levels=(0.0, 1.0), by={"k": None}
    ),
    "NDCG": _list("normalised discounted cumulative gain of wanted ids", RANKED, by={"k": None}),
    "ReciprocalRank": _list("reciprocal rank of the first wanted id", RANKED, by={"k": None}),
    "AveragePrecision": _list("average precision of wanted ids", RANKED, by={"k": None}),
    # -- answer and reference
    "FactualCorrectness": _claims(
        "F score of claims of response and reference", CORRECT, by={"mode": "f1", "beta": 1.0, "counting": "own"},
    ),
    "AnswerCorrectness": _claims(
        "weighted mean of the F score of claims and the similarity of response and reference", CORRECT,
        by={"weights": (0.75, 0.25), "beta": 1.0},
    ),
    "AnswerAccuracy": _rated("agreement of the whole response with the reference", CORRECT),
    "SQLSemanticEquivalence": _binary("equivalence of two queries", CORRECT),
    "DataCompyScore": _list("overlap of two tables", CORRECT, by={"mode": "rows", "metric": "f1"}),
    "TunableRag": Definition(
        estimand="weighted mean of coverage, correctness and relevance of the response", construct=CORRECT,
        unit="response", by={"coverage": 0.5, "correctness": 0.3, "relevance": 0.2},
    ),
    "SemanticSimilarity": _text("similarity of response and reference by their vectors", by={"threshold": None}),
    "ExactMatch": _text(
        "equality of response and reference", scale="binary", levels=(0.0, 1.0), by={"normalise": "none"}
    ),
    "StringPresence": _text(
        "presence of the reference in the response", scale="binary", levels=(0.0, 1.0), by={"normalise": "none"}
    ),
    "NonLLMStringSimilarity": _text(
        "likeness of response and reference by edit distance",
        by={"distance_measure": "levenshtein", "normalise": "none"},
    ),
    "TokenF1": _text("F1 of the words of response and reference", by={"normalise": "full"}),
    "BleuScore": _text("BLEU of response and reference", by={"normalise": "none"}),
    "CHRFScore": _text("chrF of response and reference", by={"normalise": "none"}),
    "RougeScore": _text("ROUGE of response and reference", by={"rouge_type": "rougeL", "mode": "fmeasure"}),
    # -- what the user asks for
    "AspectCritic": _binary("presence of the aspect that the user defines", CRITERION, by={"definition": None}),
    "SimpleCriteria": _graded("grade by the user's criterion, as a share of its scale", by={"definition": None}),
    "RubricsScore": _graded("grade by the user's rubric, as a share of its scale"),
    "RubricsScoreWithReference": _graded("grade by the user's rubric given a reference, as a share of its scale"),
    "RubricsScoreWithoutReference": _graded("grade by the user's rubric, as a share of its scale"),
    "DomainSpecificRubrics": _graded("grade by the user's rubric, as a share of its scale"),
    "InstanceSpecificRubrics": _graded("grade by the row's own rubric, as a share of its scale"),
    # -- others
    "SummaryScore": Definition(
        estimand="mean of the questions that the summary answers and its conciseness", construct="summary quality",
        unit="list", by={"length_penalty": True, "coeff": 0.5},
    ),
    "RefusalCorrectness": _binary("refusal of unanswerable questions and of no others", "refusals"),
    "AgentGoalAccuracy": _binary("the end state meets the goal", "goal of the user"),
    "AgentGoalAccuracyWithReference": _binary("the end state is the wanted one", "goal of the user"),
    "AgentGoalAccuracyWithoutReference": _binary("the end state is what the user wanted", "goal of the user"),
    "TopicAdherence": _list("answered topics against the allowed ones", "topics", by={"mode": "f1"}),
    "ToolCallAccuracy": _list("share of the wanted calls that were made, by their arguments", TOOLS),
    "ToolCallF1": _list("F1 of the wanted and the made calls, each as often as it was made", TOOLS),
}  # fmt: skip
"""Every concept as it is meant here. Names are those of the native classes and of the concepts of the Ragas table."""

RAW_GRADE = "grade by the user's {}, as it was given"
IN_RAGAS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("*", "Faithfulness"): {"differs": "divides by the verdicts that the judge gave, not by the claims it found"},
    ("*", "ContextEntityRecall"): {"by": {"match": "exact"}},
    ("*", "NonLLMContextRecall"): {"by": {"threshold": 0.5, "distance_measure": "levenshtein", "strict": True}},
    ("*", "FactualCorrectness"): {
        "by": {"mode": "f1", "beta": 1.0, "counting": "ragas"},
        "differs": "rounds to two decimals",
    },
    ("*", "SemanticSimilarity"): {"differs": "takes a threshold of 0 for none"},
    ("*", "TopicAdherence"): {"differs": "0 where no topic counts, and lists of verdicts cut or padded to fit"},
    ("*", "BleuScore"): {"estimand": "BLEU of the first sentence of the response", "by": {}},
    ("*", "RougeScore"): {"estimand": "ROUGE of response and reference with English stemming"},
    ("*", "SimpleCriteria"): {"estimand": RAW_GRADE.format("criterion")},
    ("*", "RubricsScoreWithReference"): {"estimand": RAW_GRADE.format("rubric with a reference")},
    ("*", "RubricsScoreWithoutReference"): {"estimand": RAW_GRADE.format("rubric")},
    ("*", "DomainSpecificRubrics"): {"estimand": RAW_GRADE.format("rubric")},
    ("*", "InstanceSpecificRubrics"): {"estimand": "grade by the row's own rubric, as it was given"},
    ("*", "ToolCallAccuracy"): {
        "estimand": "share of right arguments where the names of all calls are as wanted, else 0",
        "by": {"strict_order": True},
    },
    ("*", "ToolCallF1"): {"estimand": "F1 of the wanted and the made calls, as sets"},
    ("collections", "AnswerRelevancy"): {"differs": "leaves out empty questions together with their flags"},
    ("collections", "AnswerAccuracy"): {
        "estimand": "agreement of the whole response with the reference, the second time with their roles exchanged",
    },
    ("collections", "AnswerCorrectness"): {"differs": "the F score is 1 where one side makes no claims"},
    ("legacy", "AnswerAccuracy"): {"differs": "the judge answers in free text"},
    ("legacy", "ContextRelevance"): {"differs": "0 without asking where the contexts stand in the question"},
    ("legacy", "ResponseGroundedness"): {"differs": "1 without asking where the response stands in the contexts"},
    ("legacy", "ContextEntityRecall"): {"differs": "an entity that the reference names twice counts twice below"},
    ("legacy", "SummaryScore"): {"differs": "without length_penalty the share of answers is halved"},
}
"""Where Ragas arrives elsewhere, in both APIs (`*`) or in one."""


def definition_of(metric: Metric) -> Definition:
    """What a metric measures, with the settings it was built with. One that nobody described has `known` false."""
    declared = getattr(metric, "declared", None)
    if isinstance(declared, Definition):
        return _with_settings(declared, metric)
    concept, api = getattr(metric, "concept", metric.name), getattr(metric, "api", None)
    found = CONCEPTS.get(concept)
    if found is None or not (metric.backend == "native" or api is not None):
        return Definition(
            estimand=metric.definition,
            construct=f"{metric.name} of {metric.backend}",
            unit="response",
            higher_is_better=metric.higher_is_better,
            known=False,
        )
    if api is not None:
        found = replace(found, **RAGAS)
        for which in ("*", str(api)):
            found = replace(found, **IN_RAGAS.get((which, concept), {}))
    return _with_settings(found, metric)


def _with_settings(found: Definition, metric: Metric) -> Definition:
    """The definition with the values of the settings that are part of it, and a threshold's two scores."""
    given = getattr(metric, "settings", None)
    if not isinstance(given, Mapping):
        given = {one.name: getattr(metric, one.name) for one in fields(metric)} if is_dataclass(metric) else {}
    by = {name: _plain(given.get(name, default)) for name, default in found.by.items()}
    if by.get("threshold") is not None and found.estimand.startswith("similarity"):
        return replace(found, by=by, scale="binary", levels=(0.0, 1.0))
    return replace(found, by=by)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else None if value is MISSING else value


def is_of_another_api(metric: Metric) -> bool:
    """Whether a Ragas metric comes from the legacy API although the backend stands for the collections.

    That is a convenience of a run; in a comparison the same class would stand on both sides.
    """
    return metric.backend == "ragas" and getattr(metric, "api", "collections") != "collections"


def relation(a: Definition, b: Definition) -> Relation:
    """How far two scores may be compared: absolutely, by ranks and bins, or not at all.

    >>> share = CONCEPTS["Faithfulness"]
    >>> relation(share, share), relation(share, CONCEPTS["ResponseGroundedness"]), relation(share, CONCEPTS["NDCG"])
    ('same', 'near', 'name')
    """
    if not (a.known and b.known):
        return "name"
    alike = (a.estimand, dict(a.by), a.scale, a.unit, a.construct) == (
        b.estimand,
        dict(b.by),
        b.scale,
        b.unit,
        b.construct,
    )
    return "same" if alike else "near" if a.construct == b.construct else "name"


def why_related(a: Definition, b: Definition, names: tuple[str, str]) -> str:
    """The sentence that says why two scores are the same, near, or only share a name."""
    found = relation(a, b)
    if found == "same":
        said = f"both are the {a.phrase}"
        notes = [f"{name}: {one.differs}" for name, one in zip(names, (a, b), strict=True) if one.differs]
        return f"{said} ({'; '.join(notes)})" if notes else said
    undescribed = [name for name, one in zip(names, (a, b), strict=True) if not one.known]
    if undescribed:
        return f"nothing says what {' and '.join(undescribed)} measures, so the two only share a name"
    each = [
        f"{name} is the {one.phrase}, {'scored' if one.scale == 'continuous' else 'in'} "
        f"{'continuously' if one.scale == 'continuous' else 'levels' if one.scale == 'levels' else 'two values'}"
        for name, one in zip(names, (a, b), strict=True)
    ]
    if found == "near":
        return f"both tell of {a.construct}, but {each[0]}, and {each[1]}"
    return f"they only share a name: {each[0]}, and {each[1]}"


def outdated(one: Definition) -> str:
    """The installed release that a definition was not written for, as `name version`; nothing where it fits."""
    if not one.package:
        return ""
    from packaging.specifiers import SpecifierSet

    try:
        installed = metadata.version(one.package)
    except metadata.PackageNotFoundError:
        return ""
    fits = SpecifierSet(one.versions).contains(installed, prereleases=True)
    return "" if fits else f"{one.package} {installed}"
