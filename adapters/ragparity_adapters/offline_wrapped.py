"""The offline judge's answers to the questions of wrapped frameworks, by the fields of the wanted object.

As in `offline`, words are compared; the data are what stood as JSON at the end of the framework's prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ragparity.core.ports import Scale
from ragparity_adapters.offline import is_refusal, rating_of, sentences, shared, support, words
from ragparity_adapters.offline_labels import labelled

if TYPE_CHECKING:
    from pydantic import BaseModel

Filled = dict[str, Any]
MET = 0.5
"""Share of the words of what was wanted that must be there."""
RENAMED = {
    "query": "question", "user_input": "question", "user_answer": "response", "reference_answer": "reference",
    "retrieved_contexts": "contexts",
}  # fmt: skip


def known(schema: type[BaseModel]) -> Callable[[Mapping[str, Any]], Filled] | None:
    """How to fill an object of this schema, where that is known."""
    fields = frozenset(schema.model_fields)
    if "score" in fields and len(fields) == 2:  # noqa: PLR2004  # the grade and the words for it
        wanted = schema.model_json_schema()["properties"]["score"]
        (words_field,) = fields - {"score"}
        if "maximum" in wanted or wanted.get("type") == "boolean":
            two_values = wanted["type"] == "boolean"
            return lambda data: {words_field: "shared words", "score": _by_rubric(data, two_values=two_values)}
        grades = wanted.get("enum", [1, 2, 3, 4, 5])
        return lambda data: {words_field: "shared words", "score": _grade(data, grades)}
    if fields == {"explanation", "label"}:
        return labelled(schema)
    return _BY_FIELDS.get(fields)


def renamed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data under the names that the native metrics use."""
    return {RENAMED.get(name, name): value for name, value in data.items()}


def _text(data: Mapping[str, Any], *names: str) -> str:
    found = next((data[name] for name in names if data.get(name)), "")
    return "\n".join(map(str, found)) if isinstance(found, list) else str(found)


def _judged(claim: str, passage: str) -> tuple[int, str]:
    held, evidence = support(claim, [passage])
    return int(held), evidence


def _statements(data: Mapping[str, Any]) -> Filled:
    """The sentences of an answer, or verdicts on statements that are there."""
    if isinstance(given := data.get("statements"), list):
        judged = [(one, *_judged(str(one), _text(data, "context"))) for one in given]
        return {"statements": [{"statement": one, "reason": why, "verdict": held} for one, held, why in judged]}
    return {"statements": _claims(_text(data, "answer", "text"))}


def _claims(text: str) -> list[str]:
    return [] if is_refusal(text) else [one for one in sentences(text) if words(one)]


def _sentences(data: Mapping[str, Any], name: str) -> list[str]:
    return [one for one in sentences(_text(data, name)) if words(one)]


def _classifications(data: Mapping[str, Any]) -> Filled:
    """Whether each topic is allowed, or each sentence of the answer attributable to the context."""
    if isinstance(topics := data.get("topics"), list):
        allowed = data.get("reference_topics") or []
        return {"classifications": [any(shared(str(one), str(may)) >= MET for may in allowed) for one in topics]}
    judged = [(one, *_judged(one, _text(data, "context"))) for one in _claims(_text(data, "answer"))]
    return {"classifications": [{"statement": one, "reason": why, "attributed": held} for one, held, why in judged]}


def _entities(data: Mapping[str, Any]) -> Filled:
    return {"entities": list(dict.fromkeys(sorted(words(_text(data, "text", "context")))))}


def _classes(data: Mapping[str, Any]) -> Filled:
    answer, truth = [str(one) for one in data.get("answer", ())], [str(one) for one in data.get("ground_truth", ())]

    def piece(one: str) -> dict[str, str]:
        return {"statement": one, "reason": "shared words"}

    right = [one for one in answer if support(one, truth)[0]]
    return {
        "TP": [piece(one) for one in right],
        "FP": [piece(one) for one in answer if one not in right],
        "FN": [piece(one) for one in truth if not support(one, answer)[0]],
    }


def _yes_or_no(data: Mapping[str, Any]) -> Filled:
    """A verdict in words on each claim, statement or passage that is shown, or on each sentence of a text."""
    contexts = [str(one) for one in data.get("contexts", ())]
    if isinstance(claims := data.get("claims"), list):
        judged = [(str(one), support(str(one), contexts)[0]) for one in claims]
    elif isinstance(statements := data.get("statements"), list):
        judged = [(str(one), shared(_text(data, "question"), str(one)) >= MET) for one in statements]
    elif "context" in data:
        judged = [(one, shared(_text(data, "question"), one) >= MET) for one in _sentences(data, "context")]
    elif "question" in data or "response" in data:
        whole = _text(data, "reference", "response")
        judged = [(one, any(shared(part, whole) >= MET for part in sentences(one))) for one in contexts]
    else:
        judged = [(one, support(one, contexts)[0]) for one in _sentences(data, "reference")]
    return {
        "verdicts": [
            {"statement": text, "reason": "shared words", "verdict": "yes" if held else "no"} for text, held in judged
        ]
    }


def _verdict(data: Mapping[str, Any]) -> Filled:
    """Whether a passage was useful, an outcome reached, or a response shares words with what was asked."""
    if "desired_outcome" in data:
        level = shared(_text(data, "desired_outcome"), _text(data, "arrived_outcome"))
        return {"reason": f"shares {level:.0%} of the words", "verdict": str(int(level >= MET))}
    if "context" in data:
        level = shared(_text(data, "context"), _text(data, "answer"))
    else:
        level = shared(_text(data, "user_input"), _text(data, "response", "user_input"))
    return {"reason": f"shares {level:.0%} of the words", "verdict": int(level >= MET)}


def _grade(data: Mapping[str, Any], grades: list[int]) -> int:
    level = shared(_text(data, "reference", "user_input"), _text(data, "response", "user_input"))
    return grades[round((len(grades) - 1) * level)]


RUBRIC_SIDES = (("reference_outputs", "outputs"), ("outputs", "context"), ("inputs", "context"), ("inputs", "outputs"))
"""What a rubric looks for, and in what, by the fields that it shows; the first pair that is there counts."""


def _by_rubric(data: Mapping[str, Any], *, two_values: bool) -> float | bool:
    """The share of the words of one side that the other holds, or whether that is enough."""
    what, where = next((pair for pair in RUBRIC_SIDES if all(name in data for name in pair)), RUBRIC_SIDES[-1])
    level = shared(_text(data, what), _text(data, where))
    return level >= MET if two_values else round(level, 2)


def _rating(data: Mapping[str, Any]) -> Filled:
    return {"rating": rating_of(renamed(data), Scale((0, 2, 4) if "reference_answer" in data else (0, 1, 2)))}


def _topics(data: Mapping[str, Any]) -> Filled:
    asked = [
        line.removeprefix("Human: ") for line in _text(data, "user_input").splitlines() if line.startswith("Human:")
    ]
    return {"topics": [one for one in asked if words(one)]}


def _keyphrases(data: Mapping[str, Any]) -> Filled:
    return {"keyphrases": [one.rstrip(".!?") for one in sentences(_text(data, "text")) if words(one)]}


def _questions(data: Mapping[str, Any]) -> Filled:
    return {"questions": [f"{one}?" for one in data.get("keyphrases", ())]}


def _answers(data: Mapping[str, Any]) -> Filled:
    summary = _text(data, "summary")
    return {"answers": [str(int(shared(str(one), summary) >= MET)) for one in data.get("questions", ())]}


def _goal(data: Mapping[str, Any]) -> Filled:
    lines = _text(data, "workflow").splitlines()
    asked = [line.removeprefix("Human: ") for line in lines if line.startswith("Human:")]
    said = [line.removeprefix("AI: ") for line in lines if line.startswith(("AI:", "ToolOutput:"))]
    return {"user_goal": asked[0] if asked else "", "end_state": " ".join(said)}


def _question(data: Mapping[str, Any]) -> Filled:
    text = _text(data, "response")
    parts = sentences(text) or [text]
    return {"question": f"{parts[0].rstrip('.!?')}?", "noncommittal": int(is_refusal(text))}


def _same_query(data: Mapping[str, Any]) -> bool:
    one, other = (" ".join(_text(data, name).casefold().rstrip(";").split()) for name in ("response", "reference"))
    return one == other


_BY_FIELDS: dict[frozenset[str], Callable[[Mapping[str, Any]], Filled]] = {
    frozenset({"statements"}): _statements,
    frozenset({"claims"}): lambda data: {"claims": _claims(_text(data, "response"))},
    frozenset({"truths"}): lambda data: {"truths": _sentences(data, "contexts")},
    frozenset({"verdicts"}): _yes_or_no,
    frozenset({"classifications"}): _classifications,
    frozenset({"entities"}): _entities,
    frozenset({"TP", "FP", "FN"}): _classes,
    frozenset({"reason", "verdict"}): _verdict,
    frozenset({"question", "noncommittal"}): _question,
    frozenset({"rating"}): _rating,
    frozenset({"topics"}): _topics,
    frozenset({"refused_to_answer"}): lambda data: {"refused_to_answer": is_refusal(_text(data, "user_input"))},
    frozenset({"keyphrases"}): _keyphrases,
    frozenset({"questions"}): _questions,
    frozenset({"answers"}): _answers,
    frozenset({"user_goal", "end_state"}): _goal,
    frozenset({"response_explanation", "reference_explanation", "equivalent"}): lambda data: {
        "response_explanation": "words", "reference_explanation": "words", "equivalent": _same_query(data)
    },
    frozenset({"response_query_explaination", "reference_query_explaination", "equivalence"}): lambda data: {
        "response_query_explaination": "words", "reference_query_explaination": "words",
        "equivalence": _same_query(data),
    },
}  # fmt: skip
