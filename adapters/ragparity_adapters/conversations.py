"""Conversations and tool calls of LangChain, OpenAI, Anthropic and Ragas, as plain messages.

A message is `{"role": user | assistant | system | tool, "content": text, "tool_calls": [{"name", "args"}]}`.
"""

from __future__ import annotations

import json
from typing import Any

from ragparity.core.errors import SampleError
from ragparity.core.values import ROLES, dumped, get, is_absent, role_of
from ragparity_adapters.cells import content, list_in, plain_or_error

_ARGUMENTS = ("args", "arguments", "input_parameters", "input")


def messages(value: Any, column: str, notes: list[str]) -> tuple[dict[str, Any], ...] | None:
    """The messages of a conversation: a list, or a cell that spells one. A blank cell is absent."""
    items = _items(value, column)
    if items is None:
        return None
    return tuple(_message(item, f"{column}[{index}]", notes) for index, item in enumerate(items))


def _items(value: Any, column: str) -> list[Any] | None:
    if is_absent(value) or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        found, _ = list_in(value)
    elif callable(getattr(value, "tolist", None)):  # a numpy array from a Parquet file
        found = value.tolist()
    else:
        found = list(value) if isinstance(value, list | tuple) else None
    if found is None:
        raise SampleError(f"{column}: expected a list of objects, found a value of type {type(value).__name__}")
    return found


def _message(item: Any, where: str, notes: list[str]) -> dict[str, Any]:
    item = dumped(item)
    role = role_of(item)
    if role is None:
        raise SampleError(
            f"{where}: a message has a content and a role (or type) out of {', '.join(ROLES)}; found {_shown(item)}"
        )
    if isinstance(item, list | tuple):
        return {"role": role, "content": content(item[1], where, notes), "tool_calls": []}
    told = get(item, "content")
    called = get(item, "tool_calls")
    calls = list(called) if isinstance(called, list | tuple) else []
    if not calls and get(item, "function_call"):
        calls = [get(item, "function_call")]
    if not calls and isinstance(told, list | tuple):
        calls = [part for part in told if get(part, "type") == "tool_use"]
    return {
        "role": role,
        "content": content(told, where, notes),
        "tool_calls": [_call(one, f"{where}.tool_calls[{index}]", notes) for index, one in enumerate(calls)],
    }


def tool_calls(value: Any, column: str) -> tuple[dict[str, Any], ...] | None:
    """Tool calls as they should be made: a list, one call, or a cell that spells a list. A blank cell is absent."""
    one = get(value, "name") or get(value, "function")
    items = [value] if one else _items(value, column)
    if items is None:
        return None
    return tuple(_call(item, f"{column}[{index}]", None) for index, item in enumerate(items))


def _call(item: Any, where: str, notes: list[str] | None) -> dict[str, Any]:
    """One call. Without `notes`, arguments that are no object are an error; else they are kept as text."""
    inner = get(item, "function") or item
    name = get(inner, "name")
    if not isinstance(name, str) or not name:
        raise SampleError(f"{where}: a tool call has a name and args; found {_shown(item)}")
    given = next((found for key in _ARGUMENTS if not is_absent(found := get(inner, key))), None)
    args = _opened(given)
    if isinstance(args, dict):
        return {"name": name, "args": args}
    shown = given if isinstance(given, str) else json.dumps(plain_or_error(given, where), ensure_ascii=False)
    if notes is None:
        raise SampleError(f"{where}: the arguments of {name} are no JSON object: {shown[:80]}")
    notes.append(f"{where}: the arguments of {name} are no JSON object and were kept as text")
    return {"name": name, "args": {"arguments": shown}}


def _opened(given: Any) -> Any:
    """Arguments, which OpenAI writes as a JSON text."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return given
    return plain_or_error(given, "arguments")


def _shown(item: Any) -> str:
    if isinstance(item, dict):
        return f"the keys: {', '.join(map(str, item)) or 'none'}"
    return f"a value of type {type(item).__name__}"
