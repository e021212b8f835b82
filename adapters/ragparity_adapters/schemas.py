"""How the wanted object is described to a judge: a strict JSON schema, a tool, or a form in words."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, create_model

if TYPE_CHECKING:
    from ragparity.core.ports import Scale

_NOISE = ("title", "default", "examples")


@lru_cache(maxsize=512)
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model as strict servers want it: flat, nothing optional, nothing additional."""
    schema = model.model_json_schema()
    return _strict(schema, schema.get("$defs", {}))


def _strict(node: Any, defs: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_strict(one, defs) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _strict(
            {**defs[node["$ref"].rpartition("/")[2]], **{k: v for k, v in node.items() if k != "$ref"}}, defs
        )
    clean: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$defs" or (key in _NOISE and not isinstance(value, dict)):
            continue
        if key == "properties":
            clean[key] = {name: _strict(one, defs) for name, one in value.items()}
        else:
            clean[key] = _strict(value, defs)
    if "properties" in clean:
        clean["required"] = list(clean["properties"])
        clean["additionalProperties"] = False
    return clean


@lru_cache(maxsize=512)
def response_format(model: type[BaseModel]) -> dict[str, Any]:
    """The `response_format` of a request for this model."""
    return {
        "type": "json_schema",
        "json_schema": {"name": model.__name__, "schema": strict_schema(model), "strict": True},
    }


@lru_cache(maxsize=512)
def tool(model: type[BaseModel]) -> dict[str, Any]:
    """A tool whose arguments are this model."""
    about = "Give the answer."
    return {
        "type": "function",
        "function": {"name": model.__name__, "description": about, "parameters": strict_schema(model)},
    }


@lru_cache(maxsize=512)
def form(model: type[BaseModel]) -> str:
    """The object in one line, with the kind of each value in angle brackets.

    >>> class Verdict(BaseModel):
    ...     reason: str
    ...     verdict: bool
    >>> form(Verdict)
    '{"reason": <text>, "verdict": <true or false>}'
    """
    return _form(strict_schema(model))


def _form(node: dict[str, Any]) -> str:
    if "enum" in node:
        return "<" + " or ".join(json.dumps(one, ensure_ascii=False) for one in node["enum"]) + ">"
    if "const" in node:
        return json.dumps(node["const"], ensure_ascii=False)
    for key in ("anyOf", "oneOf"):
        if key in node:
            return " or ".join(_form(one) for one in node[key])
    kind = node.get("type")
    if kind == "object" and "properties" in node:
        inner = ", ".join(f'"{name}": {_form(one)}' for name, one in node["properties"].items())
        return "{" + inner + "}"
    if kind == "array":
        return f"[{_form(node.get('items', {}))}, …]"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "null",
    }
    return f"<{words.get(str(kind), 'value')}>"


@lru_cache(maxsize=64)
def rating_schema(scale: Scale) -> type[BaseModel]:
    """A rating on this scale with the reason before it."""
    return create_model(
        "Rating",
        reason=(str, ...),
        rating=(int, Field(json_schema_extra={"enum": list(scale.points)})),
    )
