"""One row of a data set, in the field names of Ragas 0.4."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

Field = Literal[
    "user_input",
    "response",
    "reference",
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "messages",
    "reference_tool_calls",
    "reference_topics",
    "rubrics",
]
"""A field that a metric can read."""

FIELDS: tuple[str, ...] = get_args(Field)
TEXT_FIELDS: frozenset[str] = frozenset({"user_input", "response", "reference"})
CONTEXT_FIELDS: frozenset[str] = frozenset({"retrieved_contexts", "reference_contexts"})

_LISTS = (
    "references",
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "messages",
    "reference_tool_calls",
    "reference_topics",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one row says. `None` means absent; `()` means present and empty: the two are not the same.

    `references` holds every acceptable reference where there are several; `reference` is then the
    first of them. Lists that are passed in become tuples. `extra` keeps the columns that are none of
    ours; `notes` says what the reading of the row changed (a blob cut, a list that did not parse).
    """

    id: str = ""
    user_input: str | None = None
    response: str | None = None
    reference: str | None = None
    references: tuple[str, ...] | None = None
    retrieved_contexts: tuple[str, ...] | None = None
    reference_contexts: tuple[str, ...] | None = None
    retrieved_context_ids: tuple[str, ...] | None = None
    reference_context_ids: tuple[str, ...] | None = None
    messages: tuple[Mapping[str, Any], ...] | None = None
    reference_tool_calls: tuple[Mapping[str, Any], ...] | None = None
    reference_topics: tuple[str, ...] | None = None
    rubrics: Mapping[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _LISTS:
            value = getattr(self, name)
            if value is None or isinstance(value, tuple):
                continue
            if isinstance(value, str):
                raise TypeError(f"Sample.{name}: expected a list of texts, got one text; put it into a list")
            object.__setattr__(self, name, tuple(value))
        if self.references and self.reference is None:
            object.__setattr__(self, "reference", self.references[0])

    def canonical(self) -> dict[str, Any]:
        """The fields that are present, by name, as JSON-ready values, without `extra` and `notes`."""
        found: dict[str, Any] = {}
        for name in _CANONICAL:
            value = getattr(self, name)
            if value is not None:
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

    def digest(self) -> str:
        """A SHA-256 of the fields (not of `id` and `extra`): the same question asked again has the same one."""
        content = self.canonical()
        del content["id"]
        return hashlib.sha256(_SORTED.encode(content).encode("utf-8", "surrogatepass")).hexdigest()


_CANONICAL = tuple(one.name for one in fields(Sample) if one.name not in ("extra", "notes"))
_SORTED = json.JSONEncoder(sort_keys=True, ensure_ascii=False, check_circular=False, default=str)
