"""The secrets that a model client holds, taken out of whatever a server says.

Servers and proxies repeat keys in their errors and pages, and a key of one's own choosing has no shape to know it
by. The client knows its keys, so they are looked for by value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import SecretBytes, SecretStr

SHORTEST = 8
"""A key shorter than this (`EMPTY`, `none`) is no secret, and may be part of any word."""

_MASK = "***"
_NAMED = re.compile(r"(key|token|secret|password|credentials?|headers?|authorization|cookies?)$", re.IGNORECASE)
_WRAPPED = ("bound", "default")
"""Where runnables keep the model that they wrap."""
_BEFORE = re.compile(r"^(Bearer|Basic)\s+", re.IGNORECASE)


def secrets_of(*holders: Any) -> tuple[str, ...]:
    """The secrets in the settings of clients and in mappings of settings, the longest first.

    >>> secrets_of({"api_key": SecretStr("swordfish-1"), "default_headers": {"x": "Bearer abc-def-ghi"}, "n": 1})
    ('swordfish-1', 'abc-def-ghi')
    >>> secrets_of({"api_key": "EMPTY", "max_tokens": 100000000})
    ()
    """
    found: dict[str, None] = {}
    for holder in (one for outer in holders for one in layers(outer)):
        settings = holder if isinstance(holder, Mapping) else getattr(holder, "__dict__", {})
        for name, value in settings.items():
            for text in _texts(value, named=bool(_NAMED.search(str(name)))):
                found[_BEFORE.sub("", text.strip())] = None
    return tuple(sorted((text for text in found if len(text) >= SHORTEST), key=len, reverse=True))


def layers(model: Any) -> Iterator[Any]:
    """A model and what it wraps: runnables that retry, bind or choose hold the model inside."""
    while model is not None:
        yield model
        model = next((inner for name in _WRAPPED if (inner := getattr(model, name, None)) is not None), None)


def _texts(value: Any, *, named: bool) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, SecretBytes):
        yield value.get_secret_value().decode("utf-8", "replace")
    elif isinstance(value, str):
        if named:
            yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, named=named or bool(_NAMED.search(str(name))))


def hidden(value: Any, secrets: Collection[str]) -> Any:
    """The value without these secrets, in texts at any depth.

    >>> hidden({"said": ["no such key: swordfish-1"]}, ("swordfish-1",))
    {'said': ['no such key: ***']}
    """
    if not secrets:
        return value
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:
                value = value.replace(secret, _MASK)
        return value
    if isinstance(value, Mapping):
        return {name: hidden(inner, secrets) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(hidden(inner, secrets) for inner in value)
    return value
