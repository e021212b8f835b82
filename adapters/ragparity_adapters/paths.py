"""Paths into nested rows: `outputs.docs[].body`.

Names are joined by dots; `[]` (or `[*]`) means every item of a list, `[2]` one item (from 0, negative from
the end). Lists inside lists come out flat. A text that spells JSON on the way is read as JSON, so that a CSV
cell can be entered too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragparity.core.errors import ConfigError, SampleError

_EVERY = "[]"
_PART = re.compile(r"(?P<name>[^.\[\]]+)(?P<indices>(?:\[(?:\*|-?\d+)?\])*)(?:\.|$)")
_INDEX = re.compile(r"\[(\*|-?\d+)?\]")


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path: names, indices, and `[]` for every item."""

    text: str
    steps: tuple[str | int, ...]

    @property
    def column(self) -> str:
        """The column where it starts."""
        return str(self.steps[0])


def parse(path: Any, where: str) -> Path:
    """Read a path; a `ConfigError` that begins with `where` for anything that is none.

    >>> parse("outputs.docs[].body", "fields").steps
    ('outputs', 'docs', '[]', 'body')
    """
    wrong = f"{where}: {path!r} is no path; expected names joined by dots, as in outputs.docs[].body or docs[0]"
    if not isinstance(path, str):
        raise ConfigError(wrong)
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        part = _PART.match(path, at)
        if part is None:
            raise ConfigError(wrong)
        steps.append(part["name"])
        steps += [_EVERY if index in ("", "*") else int(index) for index in _INDEX.findall(part["indices"])]
        at = part.end()
    if not steps or path.endswith("."):
        raise ConfigError(wrong)
    return Path(path, tuple(steps))


def find(row: Mapping[str, Any], path: Path, where: str) -> Any:
    """The value at the path, a list where `[]` occurs; `SampleError` with the path where there is none.

    A column that is called exactly like the path is taken before anything else.

    >>> find({"outputs": {"docs": [{"body": "a"}, {"body": "b"}]}}, parse("outputs.docs[].body", ""), "fields")
    ['a', 'b']
    """
    if path.text in row:
        return row[path.text]
    return _walk(row, path.steps, "the row", f"{where}: the path {path.text!r} matches nothing")


def _walk(value: Any, steps: tuple[str | int, ...], seen: str, wrong: str) -> Any:
    for number, step in enumerate(steps):
        value = _opened(value)
        if step == _EVERY:
            items = _items(value, seen, wrong)
            rest = steps[number + 1 :]
            found = [_walk(item, rest, f"{seen}[{index}]", wrong) for index, item in enumerate(items)]
            return [one for part in found for one in part] if _EVERY in rest else found
        if isinstance(step, int):
            items = _items(value, seen, wrong)
            if not -len(items) <= step < len(items):
                raise SampleError(f"{wrong}: {seen} has {len(items)} items")
            value, seen = items[step], f"{seen}[{step}]"
        else:
            value = _entry(value, step, seen, wrong)
            seen = step if seen == "the row" else f"{seen}.{step}"
    return value


def _opened(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _items(value: Any, seen: str, wrong: str) -> list[Any]:
    if callable(getattr(value, "tolist", None)):  # a numpy array
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise SampleError(f"{wrong}: {seen} is not a list")
    return list(value)


def _entry(value: Any, name: str, seen: str, wrong: str) -> Any:
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        raise SampleError(f"{wrong}: {seen} has no {name!r}, only: {', '.join(map(str, value)) or 'nothing'}")
    if isinstance(value, str | list | tuple | int | float | None) or not hasattr(value, name):
        raise SampleError(f"{wrong}: {seen} is no object with an entry {name!r}")
    return getattr(value, name)
