"""A judge without a model: it compares words. Deterministic, no network, for wiring and smoke tests only.

It reads the labelled data of a prompt, never its prose, and answers by the fields of the wanted object. Its
scores say how many words two texts share, which is not what the metrics mean; every table and file
therefore names it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ragparity.core.errors import MalformedVerdict
from ragparity.core.ports import Answer, Question, Rating, Scale, Structured, Tally, Usage
from ragparity.core.text import words as split_words

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragparity.core.prompt import Prompt

IDENTITY = "offline lexical judge: for wiring and smoke tests"

SUPPORTED = 0.7
"""Share of a claim's words that one passage must hold to count as support."""
USEFUL = 0.5
"""Share of the words of a passage's sentence that the answer must hold for the passage to count as useful."""

# fmt: off
_COMMON = frozenset((
    "a", "an", "the", "and", "or", "but", "if", "of", "in", "on", "at", "to", "for", "from", "by", "with",
    "without", "within", "as", "is", "are", "was", "were", "be", "been", "being", "it", "its", "this", "that",
    "these", "those", "he", "she", "they", "we", "you", "i", "his", "her", "their", "our", "your", "who", "which",
    "what", "when", "where", "how", "why", "can", "could", "may", "might", "will", "would", "shall", "should",
    "must", "do", "does", "did", "has", "have", "had", "not", "no", "than", "then", "there", "here", "also",
    "about", "after", "before", "during", "into", "over", "under", "up", "down", "out", "so", "such", "only",
    "very", "more", "most", "some", "any", "each", "per",
))
# fmt: on
"""English words that say little by themselves. Other languages have none here: their texts share a little more."""
_REFUSALS = re.compile(
    r"\b(?:i (?:do not|don't|cannot|can't|could not|couldn't)|no information|not (?:sure|able|specified|mentioned)|"
    r"unable to|sorry|it depends|as an ai|don't know|do not know|weiß (?:es |ich )?nicht|keine (?:angabe|information))|"
    r"(?:分|わ)かりません|不知道",
    re.IGNORECASE,
)
_GREETINGS = re.compile(
    r"(?:hello|hi|hey|welcome|thanks|thank you|good (?:morning|day|evening)|guten (?:morgen|tag|abend)|hallo|"
    r"こんにちは|你好)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?:[^.!?。！？\n]|[.](?=\S))+[.!?。！？]*")
"""A full stop ends a sentence only before white space: `larkspur.toml` and `1.5` are whole."""


class OfflineJudge:
    """Answers the questions of the native metrics by counting shared words."""

    identity = IDENTITY

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """An answer at once; raises `MalformedVerdict` for an object that it does not know how to fill."""
        tally.call(Usage(input_tokens=0, output_tokens=0))
        shape, data = question.shape, question.prompt.data
        if isinstance(shape, Rating):
            rating = rating_of(_named(question.prompt), shape.scale)
            return Answer(rating, str(rating))
        if isinstance(shape, Structured):
            fields = frozenset(shape.schema.model_fields)
            fill = _filler(question.prompt, shape.schema)
            if fill is None:
                text = f"the offline judge does not know how to fill {', '.join(sorted(fields))}; use a real judge"
                raise MalformedVerdict(text, judge=IDENTITY, retryable=False)
            filled = fill(data)
            raw = json.dumps(filled, ensure_ascii=False)
            try:
                return Answer(shape.schema.model_validate(filled), raw)
            except ValidationError as error:
                text = f"the offline judge cannot fill this form: {error.errors()[0]['msg']}; use a real judge"
                raise MalformedVerdict(text, judge=IDENTITY, raw=raw, retryable=False) from error
        text = " ".join(str(value) for value in data.values())
        return Answer(text, text)


def _filler(prompt: Prompt, schema: type[BaseModel]) -> Callable[[Mapping[str, Any]], dict[str, Any]] | None:
    """How to fill an object of this schema; a wrapped framework's prompt has data under its own names."""
    from ragparity_adapters.offline_wrapped import known

    return _BY_FIELDS.get(frozenset(schema.model_fields)) if prompt.text is None else known(schema)


def _named(prompt: Prompt) -> Mapping[str, Any]:
    """The data of a prompt under the names of the native metrics."""
    from ragparity_adapters.offline_wrapped import renamed

    return prompt.data if prompt.text is None else renamed(prompt.data)


def words(text: str) -> set[str]:
    """The words that carry content, in a form that ignores case and a plural s.

    Scripts that are written without spaces give their characters.

    >>> sorted(words("The buyers pay for 30 days."))
    ['30', 'buyer', 'day', 'pay']
    """
    return {_stem(word) for word in split_words(text) if word not in _COMMON}


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # noqa: PLR2004  # "as", "gas"


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part.strip() for part in _SENTENCE.findall(text) if part.strip()]


def is_refusal(text: str) -> bool:
    """Whether a text sounds like somebody who does not answer."""
    return bool(_REFUSALS.search(text))


def shared(part: str, whole: str) -> float:
    """The share of the words of `part` that `whole` holds; numbers must all be there."""
    wanted, there = words(part), words(whole)
    if not wanted:
        return 0.0
    if any(word.isdigit() and word not in there for word in wanted):
        return 0.0
    return len(wanted & there) / len(wanted)


def support(claim: str, passages: Sequence[str]) -> tuple[bool, str]:
    """Whether one passage holds most of the claim's words, and its sentence that holds most of them."""
    best = max(passages, key=lambda one: shared(claim, one), default="")
    if shared(claim, best) < SUPPORTED:
        return False, "none"
    return True, max(sentences(best) or [best], key=lambda one: len(words(claim) & words(one)))


def _passages(data: Mapping[str, Any]) -> list[str]:
    found = data.get("contexts") or data.get("context") or ()
    if isinstance(found, str):
        return [found]
    return [str(one) for one in (found.values() if isinstance(found, Mapping) else found)]


def _claims(data: Mapping[str, Any]) -> dict[str, Any]:
    text = str(data.get("text") or data.get("response") or "")
    if is_refusal(text):
        return {"refusal": True, "claims": []}
    return {"refusal": False, "claims": [one for one in sentences(text) if _is_claim(one)]}


def _is_claim(sentence: str) -> bool:
    """Whether a sentence states something; a question, a greeting or a bare "No." does not."""
    return bool(words(sentence)) and not sentence.endswith(("?", "？")) and not _GREETINGS.match(sentence)


def _verdicts(data: Mapping[str, Any]) -> dict[str, Any]:
    if "answer_claims" in data:
        judged = _of_both(data)
    elif isinstance(data.get("topics"), Mapping):
        judged = _on_topics(data)
    elif isinstance(pieces := data.get("questions"), Mapping):
        judged = {number: support(str(text), [str(data["summary"])]) for number, text in pieces.items()}
    elif isinstance(pieces := data.get("claims"), Mapping):
        judged = {number: support(str(text), _passages(data)) for number, text in pieces.items()}
    else:
        passages = data.get("contexts") or {}
        judged = {number: _useful(str(text), data) for number, text in passages.items()}
    return {
        "verdicts": [
            {"id": int(number), "evidence": evidence, "verdict": "yes" if verdict else "no"}
            for number, (verdict, evidence) in judged.items()
        ]
    }


def _of_both(data: Mapping[str, Any]) -> dict[str, tuple[bool, str]]:
    """Claims of the answer by the reference, and claims of the reference by the answer."""
    sides = (("answer_claims", "reference"), ("reference_claims", "answer"))
    return {
        number: support(str(text), [str(data[other])])
        for claims, other in sides
        for number, text in data[claims].items()
    }


def _attribution(data: Mapping[str, Any]) -> dict[str, Any]:
    passages = _passages(data)
    judged = [(one, *support(one, passages)) for one in sentences(str(data.get("reference") or "")) if words(one)]
    return {
        "claims": [
            {"claim": claim, "evidence": evidence, "verdict": "yes" if held else "no"}
            for claim, held, evidence in judged
        ]
    }


def _useful(passage: str, data: Mapping[str, Any]) -> tuple[bool, str]:
    answer = str(data.get("answer") or "")
    best = max(sentences(passage) or [passage], key=lambda one: shared(one, answer))
    useful = len(words(best) & words(answer)) >= USEFUL * max(1, len(words(best)))
    return useful, best if useful else "none"


def _usefulness(data: Mapping[str, Any]) -> dict[str, Any]:
    useful, evidence = _useful(" ".join(_passages(data)), data)
    return {"reason": f"shared words: {evidence}", "verdict": "yes" if useful else "no"}


def _questions(data: Mapping[str, Any]) -> dict[str, Any]:
    text = str(data.get("response") or "")
    parts = sentences(text) or [text]
    wanted = int(data.get("how_many_questions", 1))
    asked = [f"{parts[number % len(parts)].rstrip('.!?。！？')}?" for number in range(wanted)]
    return {"questions": [{"question": one, "noncommittal": is_refusal(text)} for one in asked]}


def _keyphrases(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"keyphrases": [one.rstrip(".!?。！？") for one in sentences(str(data.get("text") or "")) if words(one)]}


def _closed_questions(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"closed_questions": [f"{one}?" for one in data.get("keyphrases", ())]}


def _turns(data: Mapping[str, Any], *roles: str) -> list[str]:
    """What these roles said in a conversation."""
    turns = data.get("conversation") or ()
    return [str(one["content"]) for one in turns if one.get("role") in roles and one.get("content")]


def _topics(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"topics": [one.rstrip(".!?。！？") for one in _turns(data, "user") if words(one)]}


def _on_topics(data: Mapping[str, Any]) -> dict[str, tuple[bool, str]]:
    """Topics that are allowed, or those on which the next turn of the agent is no refusal."""
    pieces: Mapping[str, Any] = data["topics"]
    if "reference_topics" in data:
        return {
            number: next(
                ((True, str(one)) for one in data["reference_topics"] if shared(str(one), str(text)) >= USEFUL),
                (False, "none"),
            )
            for number, text in pieces.items()
        }
    said = " ".join(_turns(data, "assistant"))
    answered = bool(said) and not is_refusal(said)
    return dict.fromkeys(pieces, (answered, said if answered else "none"))


def _goal(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"user_goal": " ".join(_turns(data, "user")), "end_state": " ".join(_turns(data, "assistant", "tool"))}


def _one_verdict(data: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a passage was useful, a goal met, or a query the same but for case and white space."""
    if "end_state" in data:
        met = shared(str(data["goal"]), str(data["end_state"])) >= USEFUL
        return {"reason": "shared words", "verdict": "yes" if met else "no"}
    if "reference_query" in data:
        one, other = (
            " ".join(str(data[name]).casefold().rstrip("; ").split()) for name in ("query", "reference_query")
        )
        return {"reason": "compared as texts", "verdict": "yes" if one == other else "no"}
    return _usefulness(data)


def _parts(data: Mapping[str, Any]) -> dict[str, Any]:
    answer, reference, question = (str(data.get(name) or "") for name in ("answer", "reference", "question"))
    shares = {
        "coverage": shared(reference, answer),
        "correctness": shared(answer, reference),
        "relevance": shared(question, answer),
    }
    best = 0 if is_refusal(answer) else 4
    return {"reason": "shared words", **{name: round(best * share) for name, share in shares.items()}}


def rating_of(data: Mapping[str, Any], scale: Scale) -> float:
    """A point of the scale from a share of words between 0 and 1."""
    response = str(data.get("response") or data.get("answer") or "")
    if "reference" in data:
        reference = str(data["reference"])
        level = 0.0 if is_refusal(response) else min(shared(reference, response), shared(response, reference) * 2)
    elif response and "contexts" not in data and "question" in data:
        level = 0.0 if is_refusal(response) else shared(str(data["question"]), response)
    elif response:
        parts = [one for one in sentences(response) if words(one)]
        held = [support(one, _passages(data))[0] for one in parts]
        level = sum(held) / len(held) if held else 0.0
    else:
        level = shared(str(data.get("question") or ""), " ".join(_passages(data))) / SUPPORTED
    points = scale.points
    return points[min(len(points) - 1, round(min(1.0, level) * (len(points) - 1)))]


_BY_FIELDS: dict[frozenset[str], Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    frozenset({"refusal", "claims"}): _claims,
    frozenset({"verdicts"}): _verdicts,
    frozenset({"claims"}): _attribution,
    frozenset({"reason", "verdict"}): _one_verdict,
    frozenset({"topics"}): _topics,
    frozenset({"user_goal", "end_state"}): _goal,
    frozenset({"questions"}): _questions,
    frozenset({"entities"}): lambda data: {"entities": sorted(words(str(data.get("text") or "")))},
    frozenset({"keyphrases"}): _keyphrases,
    frozenset({"closed_questions"}): _closed_questions,
    frozenset({"reason", "coverage", "correctness", "relevance"}): _parts,
}
