"""The offline judge's choice of a label, for wrapped frameworks that ask for one of two; by shared words, as ever.

Labels that no counting of words can tell apart (such as those of toxicity) are not here, so that is not answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ragparity_adapters.offline import is_refusal, sentences, shared, support, words

if TYPE_CHECKING:
    from pydantic import BaseModel

Data = Mapping[str, Any]
MET = 0.5
"""Share of the words of what was wanted that must be there."""
ROOM = 2
"""Words of an answer for each word of its question up to which it is concise."""


def labelled(schema: type[BaseModel]) -> Callable[[Data], dict[str, Any]] | None:
    """How to fill an object of an explanation and one of two labels, where the labels are known."""
    shown = frozenset(schema.model_json_schema()["properties"]["label"].get("enum", ()))
    found = next((one for one in _CHOICES if frozenset(one[:2]) == shown), None)
    if found is None:
        return None
    met, unmet, holds = found
    return lambda data: {"explanation": "by shared words", "label": met if holds(data) else unmet}


def _held(answer: str, source: str) -> bool:
    """Whether the source holds most words of every sentence of the answer."""
    said = [one for one in sentences(answer) if words(one)]
    return bool(said) and all(support(one, [source])[0] for one in said)


def _faithful(data: Data) -> bool:
    return _held(str(data["output"]), str(data["context"]))


def _hallucinated(data: Data) -> bool:
    return not is_refusal(str(data["output"])) and not _held(str(data["output"]), str(data["input"]))


def _relevant(data: Data) -> bool:
    return shared(str(data["input"]), str(data.get("document_text") or data.get("context") or "")) >= MET


def _correct(data: Data) -> bool:
    return not is_refusal(str(data["output"])) and shared(str(data["input"]), str(data["output"])) >= MET


def _concise(data: Data) -> bool:
    return len(words(str(data["output"]))) <= ROOM * len(words(str(data["input"])))


def _complete(data: Data) -> bool:
    lines = str(data["conversation"]).splitlines()
    asked = [line.removeprefix("User: ") for line in lines if line.startswith("User: ")]
    return shared(" ".join(asked), " ".join(line for line in lines if not line.startswith("User: "))) >= MET


_CHOICES: tuple[tuple[str, str, Callable[[Data], bool]], ...] = (
    ("faithful", "unfaithful", _faithful),
    ("hallucinated", "grounded", _hallucinated),
    ("relevant", "irrelevant", _relevant),
    ("relevant", "unrelated", _relevant),
    ("correct", "incorrect", _correct),
    ("concise", "verbose", _concise),
    ("complete", "incomplete", _complete),
    ("refused", "answered", lambda data: is_refusal(str(data["output"]))),
)
"""The label where the last part holds of the data, and the one where it does not."""
