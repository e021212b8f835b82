"""JSON as judges write it: whole texts, and objects inside prose. What cannot be read without loss is refused."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn


class KeyTwiceError(ValueError):
    """One object gives one key two values."""


_REWRITE = re.compile(
    r"""
    "(?:[^"\\]|\\.)*(?:"|\\?\Z) | '(?P<single>(?:[^'\\]|\\.)*)(?:'|\\?\Z)
  | (?P<comma>,)(?=\s*[}\]]) | (?<![\w.])(?P<word>True|False|None)(?!\w)
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}


def parsed(text: str) -> Any:
    r"""The value of a JSON text.

    After plain JSON has failed, what can be read without loss is: single quotes, True, False, None, trailing
    commas, line breaks inside strings. Raises `ValueError`, also for NaN and infinities, and `KeyTwiceError`
    for a key with two values.

    >>> parsed("{'supported': True, 'by': 'it\\'s',}")
    {'supported': True, 'by': "it's"}
    """
    try:
        return _loads(text)
    except KeyTwiceError:
        raise
    except ValueError:
        return _loads(_REWRITE.sub(_rewritten, text), strict=False)


def _loads(text: str, *, strict: bool = True) -> Any:
    try:
        return json.loads(
            text,
            strict=strict,
            object_pairs_hook=_unambiguous,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise KeyTwiceError(f"it gives {key!r} two values")
        found[key] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _rewritten(found: re.Match[str]) -> str:
    if found["comma"]:
        return ""
    if found["word"]:
        return _WORDS[found["word"]]
    single = found["single"]
    if single is None:
        return found[0]
    return '"' + re.sub(r"""\\'|(\\.)|(")""", lambda m: m[1] or ('\\"' if m[2] else "'"), single) + '"'


@dataclass(frozen=True, slots=True)
class Found:
    """A JSON object in prose and where it stands, the fence around it included."""

    start: int
    end: int
    value: dict[str, Any]


_STRUCTURE = re.compile(r'\\.|[{}"]', re.DOTALL)
_FENCE_BEFORE = re.compile(r"(?<!`)```[A-Za-z0-9_+-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\s*```(?!`)")


def objects_in(text: str) -> tuple[list[Found], str | None]:
    """The outermost JSON objects of a text, in order, and what is wrong with the braces around them (or None).

    Braces and fences inside strings are harmless. A group of braces without quotation marks is prose.
    Raises `KeyTwiceError`.
    """
    found: list[Found] = []
    depth = begin = 0
    in_string = False
    for mark in _STRUCTURE.finditer(text):
        sign = mark[0]
        if in_string:
            in_string = sign != '"'
        elif sign == "{":
            begin = begin if depth else mark.start()
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth < 0:
                return found, "it closes an object that was not opened"
            if depth == 0:
                group = text[begin : mark.end()]
                try:
                    found.append(Found(*_with_fence(text, begin, mark.end()), parsed(group)))
                except KeyTwiceError:
                    raise
                except ValueError:
                    if '"' in group or "'" in group:
                        return found, "it holds an object that is not valid JSON"
        elif sign == '"':
            in_string = depth > 0
    return found, "its JSON object is incomplete" if depth else None


def _with_fence(text: str, start: int, end: int) -> tuple[int, int]:
    lowest = max(0, start - 40)
    before = _FENCE_BEFORE.search(text[lowest:start])
    after = _FENCE_AFTER.match(text, end)
    return (lowest + before.start(), after.end()) if before and after else (start, end)
