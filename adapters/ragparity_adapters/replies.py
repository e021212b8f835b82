r"""The JSON reader: a judge's reply to one object of a schema, or a `JudgeError`. Never a repaired guess.

======================================================  =================================================
reply                                                   reading
======================================================  =================================================
thinking (`<think>…</think>` and its kin)               removed; text before a lone closing tag as well;
                                                        after an unclosed opening tag nothing is visible;
                                                        ambiguous where a tag that could be repeated from the
                                                        data hides an object that says something else
JSON, alone or in a fence                               read as it is; nothing inside its strings matters
single quotes, True/False/None, trailing commas         rewritten without loss, once plain JSON has failed
an object in prose                                      read where it is the judge's own (`own_words`);
                                                        inside a sentence or quotation marks: malformed
two objects that say different things                   ambiguous, whichever comes last (a verdict quoted
                                                        from the data could be either); a differing
                                                        `reason` alone does not count
`[{…}]`, `{"result": {…}}`, `{"properties": {…}}`       unwrapped, one level, when one reading fits
`1`, `"yes"`, `[…]` for a schema with one needed field  the value of that field
the JSON schema sent back                               malformed
an object that does not close; an unreadable one        malformed: later text could change what was said
a key twice with different values                       ambiguous
NaN, Infinity, 1e999                                    malformed
a needed field that is absent, a value off its type     malformed, naming the field
nothing, or only thinking                               malformed, kind `empty`
======================================================  =================================================

Extra keys are ignored, except that a second object among them which fits and differs is ambiguous. With
`cut`, an object counts only where it opens the reply: what was cut off might have been the judge's own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from ragparity.core.errors import AmbiguousRating, MalformedVerdict, Truncated
from ragparity_adapters.json_text import Found, KeyTwiceError, objects_in, parsed
from ragparity_adapters.own_words import Quotations, is_closed, is_own, unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragparity.core.errors import Kind

M = TypeVar("M", bound=BaseModel)

# ---------------------------------------------------------------- thinking

_TAG_NAMES = "think|thinking|thoughts?|reasoning|reflection|scratchpad|seed:think"
_TAG = re.compile(
    rf"""
    (?P<open> <\s?(?:{_TAG_NAMES})(?:\s[^<>\n]{{0,80}})?> | ◁(?:{_TAG_NAMES})▷ | \[(?:think|thinking)\]
            | <\|begin_of_thought\|> | <\|channel\|>(?:analysis|commentary)\b | <unused94>)
  | (?P<close> <\s?/\s?(?:{_TAG_NAMES})\s?> | ◁/(?:{_TAG_NAMES})▷ | \[/(?:think|thinking)\]
            | <\|end_of_thought\|> | <\|channel\|>final<\|message\|> | <unused95>)
  | (?P<brace> \{{ )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ONE_VALUE = json.JSONDecoder()


def strip_reasoning(text: str) -> tuple[str, str | None]:
    """The visible part of a reply, and the thinking in it (None where there is none).

    A reply that is JSON as a whole is left alone, and so are tags inside the strings of a JSON object.

    >>> strip_reasoning("<think>2 or 4?</think> 4")
    ('4', '2 or 4?')
    >>> strip_reasoning("2 or 4?</think>4")
    ('4', '2 or 4?')
    >>> strip_reasoning("<think>2 or")
    ('', '2 or')
    """
    parts = parted(text)
    return parts.visible, parts.hidden


@dataclass(frozen=True, slots=True)
class Parts:
    """A reply without its thinking, the thinking, and whether a tag was found where a model does not put one.

    `doubtful`: an opening tag after visible text, or a lone closing tag, may be repeated from the data; then
    what it hides must not contradict what it shows.
    """

    visible: str
    hidden: str | None = None
    doubtful: bool = False


def parted(text: str) -> Parts:
    """The parts of a reply; see `strip_reasoning`."""
    if not _has_tag(text) or _is_json(unwrapped(text)):
        return Parts(text)
    visible: list[str] = []
    hidden: list[str] = []
    doubtful = False
    tries_left = 100  # a broken object costs a look at the whole text, so a text full of braces gives up
    depth = at = object_end = no_object_before = 0
    for found in _TAG.finditer(text):
        start, end = found.span()
        if start < object_end:
            continue
        if found["brace"]:
            if depth == 0 and start >= no_object_before and tries_left:
                object_end, no_object_before = _object_at(text, start)
                tries_left -= object_end == 0
            continue
        (hidden if depth else visible).append(text[at:start])
        at = end
        if found["open"]:
            doubtful = doubtful or (depth == 0 and any(part.strip() for part in visible))
            depth += 1
        elif depth:
            depth -= 1
        else:
            doubtful = True
            hidden.extend(visible)
            visible.clear()
    (hidden if depth else visible).append(text[at:])
    return Parts("".join(visible).strip(), "\n".join(part.strip() for part in hidden).strip(), doubtful)


def _has_tag(text: str) -> bool:
    return any(not found["brace"] for found in _TAG.finditer(text))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _object_at(text: str, start: int) -> tuple[int, int]:
    """The end of the JSON object that begins here (0 if none does), and a place before which none begins.

    A brace between a broken object's start and the place where it breaks begins a part that breaks there too.
    """
    try:
        end = _ONE_VALUE.raw_decode(text, start)[1]
    except json.JSONDecodeError as error:
        return 0, error.pos
    except (ValueError, RecursionError):
        return 0, len(text)
    return end, end


# ---------------------------------------------------------------- one object of a schema


def read_object(text: str, schema: type[M], *, cut: bool = False) -> M:
    """The one object of the schema that the reply holds; `cut` says that the token limit ended the reply.

    Raises `MalformedVerdict` (kinds `malformed`, `empty`), `AmbiguousRating` or, with `cut`, `Truncated`.
    The messages say what is wrong in words that can be sent back to the judge; the reply is in `raw`.
    """
    parts = parted(text)
    if not parts.visible.strip():
        raise_empty(text, parts.hidden, cut=cut)
    try:
        found = _read(parts.visible, schema, cut=cut)
        if parts.doubtful:
            _raise_if_contradicted(found, parts.hidden or "", schema)
    except KeyTwiceError as error:
        raise AmbiguousRating(f"the JSON object is not clear: {error}; expected each key once", raw=text) from None
    except (MalformedVerdict, AmbiguousRating) as error:
        if cut and isinstance(error, MalformedVerdict):
            raise Truncated("the token limit ended the reply before its JSON object was complete", raw=text) from error
        error.raw = text
        raise
    return found


_CONTRADICTION = "the reply holds objects that contradict each other; expected exactly one"


def raise_empty(text: str, thought: str | None, *, cut: bool) -> NoReturn:
    """Raise the error of a reply in which nothing is visible."""
    if cut:
        kind: Kind = "truncated" if thought is None else "truncated_reasoning"
        raise Truncated("the token limit ended the reply before any answer", kind=kind, raw=text)
    what = "the reply is empty" if thought is None else "the reply holds nothing but thinking"
    raise MalformedVerdict(what, kind="empty", raw=text)


def _read(text: str, schema: type[M], *, cut: bool) -> M:
    try:
        said = _from_whole(_whole(text), schema)
    except KeyTwiceError:
        raise
    except ValueError:
        said = _from_prose(unwrapped(text), schema, cut=cut)
    if any(_stated(one) != _stated(said[0]) for one in said):
        raise AmbiguousRating(_CONTRADICTION)
    return said[-1]


def _whole(text: str) -> Any:
    """The JSON value that the text is as a whole; raises `ValueError`."""
    try:
        value = parsed(text.strip())
    except KeyTwiceError:
        raise
    except ValueError:
        value = parsed(unwrapped(text))
    return parsed(value) if isinstance(value, str) and value.lstrip().startswith("{") else value


def _from_whole(value: Any, schema: type[M]) -> list[M]:
    said: list[M] = []
    if isinstance(value, list) or (value is not None and not isinstance(value, dict)):
        said.extend(_as_only_field(value, schema))
    item = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(item, dict) and (not said or _keys(schema) & set(item)):
        said.extend(_readings(item, schema))
    if not said:
        raise MalformedVerdict(_why_not(value, schema))
    return said


def _from_prose(text: str, schema: type[M], *, cut: bool) -> list[M]:
    """What the objects in prose say; raises unless one is in the judge's own place and none is in doubt."""
    objects, broken = objects_in(text)
    if broken:
        raise MalformedVerdict(f"the reply cannot be read: {broken}; expected exactly one complete JSON object")
    quotations = Quotations(_without(objects, text))
    own: list[M] = []
    elsewhere: list[M] = []
    for one in objects:
        placed = not text[: one.start].strip() if cut else is_own(text, one.start)
        placed = placed and not quotations.cover(one.start) and is_closed(text, one.start, one.end)
        (own if placed else elsewhere).extend(_readings(one.value, schema))
    if own:
        return elsewhere + own
    if elsewhere:
        raise MalformedVerdict("the JSON object stands inside other text; expected the object and nothing else")
    if any(_is_schema(one.value) for one in objects):
        raise MalformedVerdict(_SCHEMA_BACK)
    raise MalformedVerdict(f"the reply holds no JSON object with {', '.join(schema.model_fields)}")


def _raise_if_contradicted(found: M, hidden: str, schema: type[M]) -> None:
    """Raise where an object in the text that a doubtful tag hides says something else, or cannot be told."""
    objects, broken = objects_in(hidden)
    if broken and any(key in hidden for key in _keys(schema)):
        raise AmbiguousRating(_CONTRADICTION)
    for one in objects:
        try:
            readings = list(_readings(one.value, schema))
        except MalformedVerdict:
            continue
        if any(_stated(reading) != _stated(found) for reading in readings):
            raise AmbiguousRating(_CONTRADICTION)


def _without(objects: list[Found], text: str) -> str:
    """The text with blanks in place of the objects, so that quotation marks inside them do not count."""
    pieces: list[str] = []
    at = 0
    for one in objects:
        pieces += [text[at : one.start], " " * (one.end - one.start)]
        at = one.end
    return "".join([*pieces, text[at:]])


def _readings(value: dict[str, Any], schema: type[M]) -> Iterator[M]:
    """Every way in which a JSON object is an object of the schema: itself, and the objects directly in it.

    Raises `MalformedVerdict` where it is meant to be one (it has the schema's keys) and is none.
    """
    keys = _keys(schema)
    itself = bool(keys & set(value)) and not _is_schema(value)
    if itself:
        yield _valid(value, schema)
    for key, inner in value.items():
        content = inner[0] if isinstance(inner, list) and len(inner) == 1 else inner
        if key in keys or not isinstance(content, dict) or not keys & set(content) or _is_schema(content):
            continue
        if key == "properties" and _is_schema(value):
            continue
        try:
            yield _valid(content, schema)
        except MalformedVerdict:
            if not itself:
                raise


def _as_only_field(value: Any, schema: type[M]) -> Iterator[M]:
    """A bare value as the one field that the schema needs."""
    needed = [field.alias or name for name, field in schema.model_fields.items() if field.is_required()]
    if len(needed) == 1:
        try:
            yield _valid({needed[0]: value}, schema)
        except MalformedVerdict:
            return


def _valid(value: dict[str, Any], schema: type[M]) -> M:
    try:
        return schema.model_validate(value)
    except ValidationError:
        raise MalformedVerdict(_why_not(value, schema)) from None


def _keys(schema: type[BaseModel]) -> set[str]:
    return {key for name, field in schema.model_fields.items() for key in (name, field.alias) if key}


def _is_schema(value: Any) -> bool:
    """Whether this is a JSON schema and not an answer to one."""
    if not isinstance(value, dict):
        return False
    if "$defs" in value or "$schema" in value:
        return True
    properties = value.get("properties")
    if not isinstance(properties, dict) or not properties:
        return False
    words = {"type", "anyOf", "allOf", "oneOf", "$ref", "enum", "const"}
    return all(isinstance(one, dict) and words & set(one) for one in properties.values())


def _stated(value: Any) -> Any:
    """What an object states, without the reasons given for it."""
    if isinstance(value, BaseModel):
        return {name: _stated(inner) for name, inner in value if name != "reason"}
    if isinstance(value, list | tuple):
        return [_stated(one) for one in value]
    return value


_SCHEMA_BACK = "the reply repeats the JSON schema; expected an object with values"


def _why_not(value: Any, schema: type[BaseModel]) -> str:
    """Why a JSON value is no object of the schema, without repeating what it says."""
    wanted = f"expected one JSON object with {', '.join(schema.model_fields)}"
    if _is_schema(value):
        return _SCHEMA_BACK
    if isinstance(value, list):
        return f"{wanted}, got a list of {len(value)}"
    if not isinstance(value, dict):
        return f"{wanted}, got {'null' if value is None else 'a bare value'}"
    try:
        schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "content"
        if first["type"] == "missing":
            return f"the JSON object lacks {where}; a missing value is never filled in"
        return f"the JSON object's {where} is wrong: {first['msg'].removeprefix('Value error, ')}"
    return f"{wanted}, got one without any of them"
