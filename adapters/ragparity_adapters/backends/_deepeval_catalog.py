"""What is known about the metrics of DeepEval without importing it: fields, settings, questions and definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, PositiveInt

from ragparity.core.definition import Definition
from ragparity.core.ports import Ask
from ragparity_adapters.backends._deepeval_import import VERSIONS
from ragparity_adapters.backends._deepeval_judge import Item, Judged, JudgedInThree, Stated, Wanted, texts, verdicts
from ragparity_adapters.backends._ragas_sizes import (
    AROUND,
    attributions,
    claims_then_verdicts,
    restated,
    tokens,
    verdicts_on,
)

if TYPE_CHECKING:
    from ragparity.core.sample import Sample

RELEASE: Mapping[str, Any] = {"package": "deepeval", "versions": VERSIONS}
GROUNDED = "groundedness"


class NoSettings(BaseModel):
    """A metric without settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OfFaithfulness(NoSettings):
    """The settings of Faithfulness. The first is on here and off in DeepEval: what is not supported does not pass."""

    penalize_ambiguous_claims: bool = True
    truths_extraction_limit: PositiveInt | None = None


def _faithfulness(settings: NoSettings) -> Definition:
    pass_as = "support" if getattr(settings, "penalize_ambiguous_claims", True) else "do not contradict"
    return Definition(
        estimand=f"share of the response's claims that truths drawn from the contexts {pass_as}", construct=GROUNDED,
        unit="claim", no_claims="undefined",
        by={"truths_extraction_limit": getattr(settings, "truths_extraction_limit", None)},
        differs="the judge does not see the contexts when it judges, but the truths that it drew from them", **RELEASE,
    )  # fmt: skip


def _fixed(estimand: str, construct: str, **more: Any) -> Callable[[NoSettings], Definition]:
    found = Definition(estimand=estimand, construct=construct, **more, **RELEASE)
    return lambda _settings: found


# -- questions: what a prompt with verdicts shows, by the state of DeepEval's metric and the number of the question


def _of_claims(metric: Any, _sample: Sample, _number: int) -> Mapping[str, Any]:
    return {"contexts": list(metric.truths), "claims": list(metric.claims)}


def _of_statements(metric: Any, sample: Sample, _number: int) -> Mapping[str, Any]:
    return {"question": sample.user_input, "statements": list(metric.statements)}


def _of_one_passage(_metric: Any, sample: Sample, number: int) -> Mapping[str, Any]:
    return {"question": sample.user_input, "context": (sample.retrieved_contexts or ())[number]}


def _of_fields(**names: str) -> Callable[[Any, Sample, int], Mapping[str, Any]]:
    def data(_metric: Any, sample: Sample, _number: int) -> Mapping[str, Any]:
        shown = {label: getattr(sample, name) for label, name in names.items()}
        return {label: list(value) if isinstance(value, tuple) else value for label, value in shown.items()}

    return data


# -- calls to expect


def _joined(sample: Sample) -> str:
    return "\n\n".join(sample.retrieved_contexts or ())


def _listed(text: str) -> int:
    """Tokens of the statements of a text, said again with a verdict on each."""
    return 2 * AROUND + 5 * tokens(text)


def _truths_too(sample: Sample) -> tuple[Ask, ...]:
    return (Ask(1, "structured", restated(_joined(sample))), *claims_then_verdicts(sample))


def _on_all_passages(sample: Sample) -> tuple[Ask, ...]:
    return (Ask(1, "structured", verdicts_on(len(sample.retrieved_contexts or ()))),)


def _on_each_passage(sample: Sample) -> tuple[Ask, ...]:
    return tuple(Ask(1, "structured", _listed(one)) for one in sample.retrieved_contexts or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One metric of DeepEval.

    `reads` are the fields that its prompts show, although DeepEval asks for the question everywhere. `item` is one of
    its verdicts; `owed` names the list of the question's data that gets one verdict a piece; `shown` is these data.
    """

    class_name: str
    aliases: tuple[str, ...]
    reads: tuple[str, ...]
    item: Item
    shown: Callable[[Any, Sample, int], Mapping[str, Any]]
    owed: str = ""
    asks: Callable[[Sample], tuple[Ask, ...]]
    asks_in_words: str = "1"
    steps: int = 1
    define: Callable[[NoSettings], Definition]
    settings: type[NoSettings] = NoSettings

    def wanted(self, model: type[BaseModel], metric: Any, sample: Sample, number: int) -> Wanted:
        """How an answer of a schema of DeepEval's is asked for; `number` counts the questions for verdicts from 0."""
        match sorted(model.model_fields):
            case ["truths"]:
                shown = {"contexts": list(sample.retrieved_contexts or ())}
                return Wanted(texts("truths"), restated(_joined(sample)), shown)
            case ["claims" | "statements" as name]:
                text = sample.response or ""
                return Wanted(texts(name), restated(text), {"text": text, "response": text})
            case ["verdicts"]:
                data = self.shown(metric, sample, number)
                owed = len(data[self.owed]) if self.owed else None
                read = _listed(data.get("context") or str(data.get("reference", "")))
                return Wanted(verdicts(self.item, owed), read if owed is None else verdicts_on(owed), data)
        raise TypeError(f"DeepEval asks for {model.__name__}, which is not known here")


ENTRIES: Mapping[str, Entry] = {
    "Faithfulness": Entry(
        class_name="FaithfulnessMetric", aliases=("FaithfulnessMetric",), reads=("response", "retrieved_contexts"),
        item=JudgedInThree, shown=_of_claims, owed="claims", asks=_truths_too, asks_in_words="3", steps=2,
        define=_faithfulness, settings=OfFaithfulness,
    ),
    "AnswerRelevancy": Entry(
        class_name="AnswerRelevancyMetric", aliases=("AnswerRelevancyMetric", "answer_relevancy"),
        reads=("user_input", "response"), item=JudgedInThree, shown=_of_statements, owed="statements",
        asks=claims_then_verdicts, asks_in_words="2", steps=2,
        define=_fixed(
            "share of the response's statements that serve the question or may do so", "answer relevance",
            unit="claim", no_claims="undefined",
        ),
    ),
    "ContextPrecision": Entry(
        class_name="ContextualPrecisionMetric",
        aliases=("ContextualPrecisionMetric", "ContextualPrecision", "contextual_precision", "context_precision"),
        reads=("user_input", "reference", "retrieved_contexts"), item=Judged,
        shown=_of_fields(question="user_input", reference="reference", contexts="retrieved_contexts"),
        owed="contexts", asks=_on_all_passages,
        define=_fixed(
            "average precision of the passages useful for the reference", "retrieval precision", unit="passage",
            differs="one question judges all passages, and a passage that is remotely useful counts",
        ),
    ),
    "ContextRecall": Entry(
        class_name="ContextualRecallMetric",
        aliases=("ContextualRecallMetric", "ContextualRecall", "contextual_recall", "context_recall"),
        reads=("reference", "retrieved_contexts"), item=Judged,
        shown=_of_fields(reference="reference", contexts="retrieved_contexts"),
        asks=attributions,
        define=_fixed(
            "share of the reference's sentences that the contexts hold", "retrieval recall", unit="sentence",
            no_claims="undefined", differs="divides by the verdicts that the judge gave, whatever sentences there are",
        ),
    ),
    "ContextRelevance": Entry(
        class_name="ContextualRelevancyMetric",
        aliases=("ContextualRelevancyMetric", "ContextualRelevancy", "contextual_relevancy", "context_relevance"),
        reads=("user_input", "retrieved_contexts"), item=Stated, shown=_of_one_passage, asks=_on_each_passage,
        asks_in_words="1 a passage",
        define=_fixed(
            "share of the statements of all contexts that serve the question", "context relevance", unit="claim",
            no_claims="undefined",
        ),
    ),
    "Hallucination": Entry(
        class_name="HallucinationMetric", aliases=("HallucinationMetric",), reads=("response", "retrieved_contexts"),
        item=Judged, shown=_of_fields(response="response", contexts="retrieved_contexts"), owed="contexts",
        asks=_on_all_passages,
        define=_fixed("share of the passages that the response does not contradict", GROUNDED, unit="passage"),
    ),
}  # fmt: skip
"""By the name of the native metric that tells of the same; `Hallucination` has none."""
