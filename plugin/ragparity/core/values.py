"""Values from data files and other libraries, made plain: what is absent, what is JSON, what is a message.

Other libraries' objects are known by what they can do, so that none of those libraries is imported here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

_NOTHING = frozenset({"NAType", "NaTType"})
"""The classes of `pandas.NA` and `pandas.NaT`."""

ROLES: Mapping[str, str] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
"""The roles of a conversation, and what LangChain, Ragas and OpenAI call them."""


def is_absent(value: Any) -> bool:
    """No value at all: None, NaN, and the missing values of pandas. An empty text is a value.

    >>> is_absent(float("nan")), is_absent("nan"), is_absent("")
    (True, False, False)
    """
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    return type(value).__name__ in _NOTHING


def get(item: Any, name: str) -> Any:
    """An entry of a mapping or an attribute of an object; None where there is none."""
    if type(item) is dict or isinstance(item, Mapping):  # the exact type first: it is nearly always this one
        return item.get(name)
    return getattr(item, name, None)


def whole(text: str) -> str:
    r"""The text without half characters (lone surrogates), which no file or request can carry.

    >>> whole("a\ud800b") == "a\ufffdb"
    True
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def plain(value: Any) -> Any:
    """The value as strict JSON knows it: None, bool, int, finite float, text, list, dict with text keys.

    Missing values become None, at any depth. Numpy scalars and arrays, pydantic objects, dataclasses,
    enums, dates (ISO 8601), decimals and paths are turned into these; an infinite float becomes its name. Raises
    `TypeError` for anything else.

    >>> plain({"when": date(2025, 1, 2), "scores": (1, float("nan"), float("inf"))})
    {'when': '2025-01-02', 'scores': [1, None, 'inf']}
    """
    kind = type(value)
    if kind is str:
        return whole(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return {key if type(key) is str else str(key): plain(one) for key, one in value.items()}
    if kind is list or kind is tuple:
        return [plain(one) for one in value]
    if is_absent(value):
        return None
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return _foreign(value)


def _foreign(value: Any) -> Any:
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return whole(str.__str__(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta | Decimal | Fraction | PurePath | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(one) for one in value), key=str)
    if isinstance(value, type):
        raise TypeError(f"the class {value.__name__}")
    for method in ("model_dump", "tolist", "item"):  # pydantic, numpy arrays, numpy scalars
        convert = getattr(value, method, None)
        if callable(convert):
            return plain(convert())
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain(one) for one in value]
    raise TypeError(f"a value of type {type(value).__name__}")


def role_of(item: Any) -> str | None:
    """The role of one message of a conversation: user, assistant, system or tool; None for anything else.

    A message is a mapping or an object with a `role` or `type` and a `content` (or tool calls), a
    LangChain dump, or a pair of role and text.

    >>> role_of({"role": "user", "content": "hi"}), role_of({"type": "ai", "content": "hello"}), role_of("hi")
    ('user', 'assistant', None)
    """
    if isinstance(item, str):
        return None
    if isinstance(item, list | tuple):
        return _role(item[0]) if len(item) == 2 and isinstance(item[1], str) else None  # noqa: PLR2004  # a pair
    inner = dumped(item)
    if get(inner, "content") is None and not get(inner, "tool_calls") and not get(inner, "function_call"):
        return None
    return _role(get(inner, "role")) or _role(get(inner, "type"))


def dumped(item: Any) -> Any:
    """What LangChain's own dump of an object holds; anything else as it is."""
    if isinstance(item, dict) and "lc" in item and isinstance(item.get("kwargs"), Mapping):
        return item["kwargs"]
    return item


def is_conversation(value: Any) -> bool:
    """Whether it is a list of messages, with at least one."""
    return isinstance(value, list | tuple) and bool(value) and all(role_of(one) for one in value)


def _role(name: Any) -> str | None:
    if isinstance(name, Enum):
        name = name.value
    if not isinstance(name, str):
        return None
    return ROLES.get(name.casefold().removesuffix("chunk").removesuffix("message"))
