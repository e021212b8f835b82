"""How the wanted object is described to a judge: a strict JSON schema, a tool, or a form in words."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, create_model

if TYPE_CHECKING:
    from ragparity.core.ports import Scale

_NOISE = ("title", "default", "examples", "discriminator", "$defs")
_DEEPEST = 6
_MOST_LISTED = 25
_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}


class _RefersToItself(Exception):  # never leaves this module
    """The schema is recursive and cannot be written without references."""


@lru_cache(maxsize=512)
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model as strict servers want it: flat, nothing optional, nothing additional.

    A recursive model keeps its references, since it cannot be flat.
    """
    schema = model.model_json_schema()
    defs = schema.get("$defs", {})
    try:
        return dict(_strict(schema, defs))
    except _RefersToItself:
        kept = {name: _strict(one, None) for name, one in defs.items()}
        root = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return {**_strict(root, None), "$defs": kept}


def _strict(node: Any, defs: dict[str, Any] | None, within: tuple[str, ...] = ()) -> Any:
    """A node in strict form; with `defs`, references are replaced by what they refer to."""
    if isinstance(node, list):
        return [_strict(one, defs, within) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        if defs is None:
            return {"$ref": node["$ref"]}
        name = node["$ref"].rpartition("/")[2]
        if name in within:
            raise _RefersToItself
        return _strict({**defs[name], **{k: v for k, v in node.items() if k != "$ref"}}, defs, (*within, name))
    clean: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NOISE:
            continue
        if key == "properties":
            clean[key] = {name: _strict(one, defs, within) for name, one in value.items()}
        elif key in ("enum", "const"):
            clean[key] = value
        else:
            clean["anyOf" if key == "oneOf" else key] = _strict(value, defs, within)
    if "properties" in clean:
        clean["required"] = list(clean["properties"])
        clean["additionalProperties"] = False
    return clean


def is_strict(node: Any) -> bool:
    """Whether a schema keeps to what strict servers take: no open objects, no tuples, no merged parts."""
    if isinstance(node, list):
        return all(map(is_strict, node))
    if not isinstance(node, dict):
        return True
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        return False
    if "prefixItems" in node or "allOf" in node or "patternProperties" in node:
        return False
    inner = [*node.get("properties", {}).values(), *node.get("$defs", {}).values(), *node.get("anyOf", ())]
    return all(map(is_strict, [*inner, node.get("items")]))


@lru_cache(maxsize=512)
def name_of(model: type[BaseModel]) -> str:
    """The name of a model as endpoints take it: letters, digits, `_` and `-`, at most 64."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", model.__name__).strip("_")[:64] or "Answer"


@lru_cache(maxsize=512)
def response_format(model: type[BaseModel]) -> dict[str, Any]:
    """The `response_format` of a request for this model; strict, where the schema can be."""
    schema = strict_schema(model)
    return {
        "type": "json_schema",
        "json_schema": {"name": name_of(model), "schema": schema, "strict": is_strict(schema)},
    }


@lru_cache(maxsize=512)
def tool(model: type[BaseModel]) -> dict[str, Any]:
    """A tool whose arguments are this model."""
    about = "Give the answer."
    return {
        "type": "function",
        "function": {"name": name_of(model), "description": about, "parameters": strict_schema(model)},
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
    schema = strict_schema(model)
    return _form(schema, schema.get("$defs", {}))


def _form(node: dict[str, Any], defs: dict[str, Any], depth: int = 0) -> str:
    if "$ref" in node:
        if depth > _DEEPEST:
            return "…"
        return _form(defs[node["$ref"].rpartition("/")[2]], defs, depth + 1)
    if "enum" in node:
        return "<" + " or ".join(json.dumps(one, ensure_ascii=False) for one in node["enum"]) + ">"
    if "const" in node:
        return json.dumps(node["const"], ensure_ascii=False)
    if "anyOf" in node:
        return " or ".join(_form(one, defs, depth) for one in node["anyOf"])
    kind = node.get("type")
    if kind == "object" and "properties" in node:
        inner = ", ".join(f'"{name}": {_form(one, defs, depth + 1)}' for name, one in node["properties"].items())
        return "{" + inner + "}"
    if kind == "array":
        return f"[{_form(node.get('items', {}), defs, depth + 1)}, …]"
    return f"<{_KINDS.get(str(kind), 'value')}>"


@lru_cache(maxsize=64)
def rating_schema(scale: Scale) -> type[BaseModel]:
    """A rating on this scale with the reason before it."""
    whole = all(isinstance(point, int) for point in scale.points)
    shown: dict[str, Any] = {"enum": list(scale.points)}
    if len(scale.points) > _MOST_LISTED:
        shown = {"minimum": scale.points[0], "maximum": scale.points[-1]}
    return create_model(
        "Rating",
        reason=(str, ...),
        rating=(int if whole else float, Field(json_schema_extra=shown)),
    )
