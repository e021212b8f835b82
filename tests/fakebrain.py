"""What the fake server says when a test gives it no `reply`: just enough for every step to go on.

- With tools: arguments that satisfy the tool's parameters. With a JSON schema (in the request, or spelt out
  in the prompt): an object that satisfies it. With a form in words (`{"reason": <text>, "rating": <0 or 2>}`):
  the form, filled in. In JSON mode without any of these: `{"answer": "4"}`.
- Otherwise: the first number of a scale that the messages name (`0, 2 or 4` -> `0`; `1 to 5` -> `1`),
  the system message first; else `4`.

Objects have their required properties only. Booleans are true, numbers 1 (or the nearest value in range),
enums and unions give their first member, strings say `some <property>`. A list has one item, or as many as
`minItems` says. A list of objects with an integer `id` has one item per id in the user messages
(`"id": 7`), so a batch of claims gets its verdicts.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.fakewire import Reply, Request

SCALE = re.compile(
    r"(?<![\w.,:-])(\d)(?:\s*,\s*(?:or\s+|and\s+)?|\s+(?:or|to|and)\s+|\s*[-\u2013]\s*)\d(?![\w.:-]|,\d)"
)
ID = re.compile(r'\\?"id\\?"\s*:\s*(\d+)')
BLANK = re.compile(r"<([^<>]*)>")
BLANKS = {"text": '"some text"', "whole number": "1", "number": "1.0", "true or false": "true"}
DEEP = 6


def default_reply(request: Request) -> Reply:
    """An answer that fits the request (see the module)."""
    tool = request.tool
    if tool is not None:
        return Reply(content=minimal(tool.get("parameters") or {}, ids(request)))
    schema = request.schema or schema_in(request.text)
    if schema is not None:
        return Reply(content=minimal(schema, ids(request)))
    filled = filled_form(request.system, ids(request)) or filled_form(request.user, ids(request))
    if filled is not None or request.wants_json:
        return Reply(content=filled or {"answer": "4"})
    scale = SCALE.search(request.system) or SCALE.search(request.user)
    return Reply(content=scale[1] if scale else "4")


def ids(request: Request) -> list[int]:
    """The integer ids in the user messages, each once, in order."""
    return list(dict.fromkeys(int(number) for number in ID.findall(request.user)))


def schema_in(text: str) -> dict[str, Any] | None:
    """The first JSON object in the text that looks like a schema of an object."""
    if '"properties"' not in text:
        return None
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{", text):
        try:
            found, _ = decoder.raw_decode(text, brace.start())
        except ValueError:
            continue
        if isinstance(found.get("properties"), dict):
            return found
    return None


def filled_form(text: str, known_ids: list[int]) -> dict[str, Any] | None:
    """The first form in the text with its blanks filled in, `None` without one.

    >>> filled_form('Say {"verdicts": [{"id": <whole number>, "so": <"yes" or "no">}, …]} only.', [4, 6])
    {'verdicts': [{'id': 4, 'so': 'yes'}, {'id': 6, 'so': 'yes'}]}
    """
    if not BLANK.search(text):
        return None
    decoder = json.JSONDecoder()
    filled = BLANK.sub(lambda blank: BLANKS.get(blank[1]) or blank[1].split(" or ")[0], text)
    filled = filled.replace(", …]", "]")
    for opening in re.finditer(r'\{"\w+": ', filled):
        try:
            found, end = decoder.raw_decode(filled, opening.start())
        except ValueError:
            continue
        if filled[opening.start() : end] not in text:  # else it had no blanks: it is data
            return {key: _numbered(value, known_ids) for key, value in found.items()}
    return None


def _numbered(value: Any, known_ids: list[int]) -> Any:
    """A list of one object with an id, as one object per known id."""
    if known_ids and isinstance(value, list) and isinstance(value[0], dict) and "id" in value[0]:
        return [{**value[0], "id": number} for number in known_ids]
    return value


def minimal(schema: dict[str, Any], known_ids: list[int] | None = None) -> Any:
    """A small value that satisfies the schema. Patterns and formats are not looked at."""
    return _Filler(schema, known_ids or []).value(schema, "value", 0)


class _Filler:
    """Fills one schema; `root` holds the definitions that references point to."""

    def __init__(self, root: dict[str, Any], known_ids: list[int]):
        self.root = root
        self.known_ids = known_ids

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with references followed and `allOf` merged."""
        while "$ref" in schema:
            target: Any = self.root
            for step in schema["$ref"].removeprefix("#").strip("/").split("/"):
                target = target[step] if step else target
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        for part in schema.get("allOf", ()):
            schema = {**schema, **self.resolved(part)}
        return schema

    def value(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        schema = self.resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if branches := schema.get("anyOf") or schema.get("oneOf"):
            # A recursive type ends at its null branch.
            if depth > DEEP and any(branch.get("type") == "null" for branch in branches):
                return None
            return self.value(branches[0], name, depth)
        kind = schema.get("type") or ("object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = kind[0]
        if kind == "object":
            properties = schema.get("properties", {})
            return {key: self.value(properties[key], key, depth + 1) for key in schema.get("required", ())}
        if kind == "array":
            return self.items(schema, name, depth)
        if kind == "string":
            length = schema.get("maxLength")
            return f"some {name}".ljust(schema.get("minLength", 0), ".")[:length]
        if kind in ("integer", "number"):
            return self.number(schema, kind)
        return True if kind == "boolean" else None

    def items(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.value(one, name, depth + 1) for one in schema["prefixItems"]]
        least, most = schema.get("minItems", 0), schema.get("maxItems", 10**6)
        item = self.resolved(schema.get("items") or {})
        numbered = item.get("properties", {}).get("id", {}).get("type") == "integer"
        if numbered and self.known_ids and depth <= DEEP:
            return [{**self.value(item, name, depth + 1), "id": number} for number in self.known_ids[:most]]
        number = max(least, min(1, most) if depth <= DEEP else 0)
        return [self.value(item, name, depth + 1) for _ in range(number)]

    def number(self, schema: dict[str, Any], kind: str) -> float:
        step = schema.get("multipleOf", 1 if kind == "integer" else 0.5)
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1e9) + ("exclusiveMinimum" in schema) * step)
        high = schema.get("maximum", schema.get("exclusiveMaximum", 1e9) - ("exclusiveMaximum" in schema) * step)
        value = min(max(1, step, low), high)
        return int(value) if kind == "integer" else float(value)
