"""What makes two questions the same: judge, settings, prompt, data, shape of the answer, budget and draw.

The parts are kept apart, so that a question without a stored reply can say what differs from the stored ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ragparity.core.ports import Rating, Structured

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ragparity.core.ports import Question, Shape

FORM = 1
"""Changes whenever the same question would get another key."""
LONGEST_TASK = 120
"""Characters of a task that are kept to tell prompts apart in a message."""
DIGITS = 32
"""Hexadecimal digits of a part's hash."""

_schemas: WeakKeyDictionary[type[BaseModel], str] = WeakKeyDictionary()


@dataclass(frozen=True)
class Asked:
    """A question by its parts. `prompt`, `data` and `shape` hold hashes; `task` is the beginning of the prompt.

    `data` is empty where all that is known is the text of a ready-made prompt.

    `settings` are those of the model that `judge` does not name, as JSON without secrets.
    """

    judge: str
    settings: str
    task: str
    prompt: str
    data: str
    shape: str
    budget: int
    draw: int

    @cached_property
    def key(self) -> str:
        """A SHA-256 over all parts, as 64 hexadecimal digits."""
        parts = (FORM, self.judge, self.settings, self.prompt, self.data, self.shape, self.budget, self.draw)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def asked(judge: str, settings: str, question: Question) -> Asked:
    """The parts of a question to a judge. What a complaint says about an earlier reply is no part of it."""
    prompt = question.prompt
    # A ready-made prompt is one text: what in it is wording and what is data cannot be told.
    wording = (prompt.text,) if prompt.text is not None else (prompt.task, prompt.rules, prompt.reminder)
    return Asked(
        judge=judge,
        settings=settings,
        task=(prompt.task or prompt.text or "")[:LONGEST_TASK],
        prompt=digest(wording),
        data=digest(prompt.data) if prompt.data or prompt.text is None else "",
        shape=shape_of(question.shape),
        budget=question.budget,
        draw=question.draw,
    )


def vector_asked(embedder: str, settings: str, text: str) -> Asked:
    """The parts of the question for the vector of a text."""
    return Asked(embedder, settings, "", "", digest(text), "vector", 0, 0)


def digest(value: Any) -> str:
    """A hash of a JSON value; the order of keys counts, since it is the order in which a judge reads them."""
    return hashlib.sha256(json.dumps(value, default=_plain).encode()).hexdigest()[:DIGITS]


def shape_of(shape: Shape) -> str:
    """The shape of an answer in a few words; for a structured one its name and a hash of its JSON schema.

    >>> from ragparity.core.ports import Scale
    >>> shape_of(Rating(Scale((0, 2, 4))))
    'rating 0, 2, 4'
    """
    if isinstance(shape, Rating):
        return f"rating {', '.join(map(str, shape.scale.points))}"
    if isinstance(shape, Structured):
        known = _schemas.get(shape.schema)
        if known is None:
            known = _schemas[shape.schema] = digest(shape.schema.model_json_schema())
        return f"{shape.schema.__name__} {known}"
    return "text"


def settings_of(options: Mapping[str, Any]) -> str:
    """Settings as one line of JSON, whatever the order in which they were written; nothing without any.

    >>> settings_of({"top_p": 0.5, "seed": 1})
    '{"seed": 1, "top_p": 0.5}'
    """
    return json.dumps(options, default=_plain, sort_keys=True) if options else ""


def _plain(value: Any) -> Any:
    """What JSON does not know: a mapping or a sequence as such, anything else by its text."""
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, list | tuple | set | frozenset) else str(value)
