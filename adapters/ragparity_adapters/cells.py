"""The values of one row's cells, read as texts, passages, references, ids, topics and rubrics.

Every function takes the value and the name of its column, raises `SampleError` for a shape it does not
know (never guesses, never takes a text apart into characters), and puts into `notes` what it changed.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import SampleError
from ragparity.core.values import dumped, get, is_absent, plain, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

PASSAGE_KEYS: tuple[str, ...] = ("page_content", "content", "text", "body")
"""Where an object of a retriever keeps its text."""

DOCUMENT_LISTS: tuple[str, ...] = ("results", "documents", "docs")
"""Where a retriever's whole answer keeps its documents (`results` in the NeMo Agent Toolkit)."""

ID_KEYS: tuple[tuple[str, ...], ...] = (
    ("document_id",),
    ("doc_id",),
    ("id",),
    ("metadata", "document_id"),
    ("metadata", "doc_id"),
    ("metadata", "id"),
)
"""Where a document keeps its id."""


def plain_or_error(value: Any, column: str) -> Any:
    """The value as JSON knows it; `SampleError` where that is impossible."""
    try:
        return plain(value)
    except TypeError as error:
        raise SampleError(f"{column}: {error} cannot be read; give text, a number, a list or an object") from None


def text_of(value: Any) -> str:
    """A plain value as text: texts as they are, everything else as JSON writes it (floats keep their `.0`).

    >>> text_of(True), text_of(4), text_of(4.0), text_of({"port": [7443]})
    ('true', '4', '4.0', '{"port": [7443]}')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text(value: Any, column: str) -> str | None:
    """A text field: None where absent."""
    value = plain_or_error(value, column)
    return None if value is None else text_of(value)


def are_texts(value: Any) -> bool:
    """Whether it is a list of texts without half characters, which can be taken as it is; nearly every list is."""
    if type(value) is not list or not {str}.issuperset(map(type, value)):
        return False
    together = "".join(value)
    return together.isascii() or whole(together) is together


def list_in(cell: str) -> tuple[list[Any] | None, bool]:
    """The list that a cell spells in JSON or Python, if it spells one; and whether its commas are missing.

    A printed numpy array of texts has no commas; Python would join its texts into one, so they are told
    apart here.

    >>> list_in('["A., with comma"]'), list_in("['A.', 'B.']"), list_in('["A.'), list_in("['A.' 'B.']")
    ((['A., with comma'], False), (['A.', 'B.'], False), (None, False), (['A.', 'B.'], True))
    """
    cell = cell.strip()
    if not (cell.startswith("[") and cell.endswith("]")):
        return None, False
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return _python_list(cell)
    return (value, False) if isinstance(value, list) else (None, False)


def _python_list(cell: str) -> tuple[list[Any] | None, bool]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # "\d" in a passage is no business of the user's
            warnings.simplefilter("ignore", DeprecationWarning)  # the same before Python 3.12
            value = ast.literal_eval(cell)
            texts = _array_texts(cell)
            if len(texts) > 1:
                return [ast.literal_eval(one) for one in texts], True
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return None, False
    return (value, False) if isinstance(value, list) else (None, False)


def _array_texts(cell: str) -> list[str]:
    """The string literals of a list that holds nothing else, not even a comma."""
    texts = []
    for token in tokenize.generate_tokens(io.StringIO(cell).readline):
        if token.type == tokenize.STRING:
            texts.append(token.string)
        elif token.string.strip() not in ("", "[", "]"):
            return []
    return texts


def list_or_none(value: Any, column: str, notes: list[str]) -> list[Any] | None:
    """The list in a column that must hold one, as plain values; a blank cell is absent, a text one item."""
    if isinstance(value, str):
        if not value.strip():
            return None
        value = _listed(value, column, notes)
    value = plain_or_error(value, column)
    if value is None:
        return None
    return value if isinstance(value, list) else [value]


def _listed(cell: str, column: str, notes: list[str]) -> list[Any]:
    """The list that a cell spells, or the cell as the only item."""
    found, without_commas = list_in(cell)
    if without_commas and found is not None:
        notes.append(f"{column}: a printed array without commas, read as {len(found)} items")
    elif found is None and cell.lstrip()[:2] in ('["', "['", "[[", "[{"):
        notes.append(f"{column}: starts like a list but is none; read as one text")
    return [cell] if found is None else found


def passages(value: Any, column: str, notes: list[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The passages in a cell, and their ids where every document carries exactly one.

    None is absent; a blank cell and an empty list are no passages. A text is one passage unless it spells
    a list or a retriever's answer. A missing item of a list is a blank passage, so that ranks stay right.
    """
    if are_texts(value):
        return tuple(value), None
    if is_absent(value):
        return None, None
    if isinstance(value, str):
        told = documents_in(value) if value.strip() else []
        value = _listed(value, column, notes) if told is None else told
    value = dumped(value)
    documents = _document_list(value)
    if documents is not None:
        value = documents
    elif callable(getattr(value, "tolist", None)):  # a numpy array from a Parquet file
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return (_passage(value, column, column),), _ids_of_documents([value], column, notes)
    texts = tuple(_passage(one, f"{column}[{index}]", column) for index, one in enumerate(value))
    return texts, _ids_of_documents(value, column, notes)


def documents_in(cell: str) -> list[Any] | None:
    """The documents of a retriever's answer that was written as JSON text; None for any other text."""
    if not cell.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    documents = _document_list(value)
    if documents is not None:
        return list(documents)
    return [value] if any(isinstance(value.get(key), str) for key in PASSAGE_KEYS) else None


def _document_list(value: Any) -> Sequence[Any] | None:
    if isinstance(value, str | list | tuple) or any(get(value, key) is not None for key in PASSAGE_KEYS):
        return None
    for key in DOCUMENT_LISTS:
        found = get(value, key)
        if isinstance(found, list | tuple):
            return found
    return None


def _passage(item: Any, where: str, column: str) -> str:
    if type(item) is dict:
        texts = [item[key] for key in PASSAGE_KEYS if item.get(key) is not None]
        if len(texts) == 1 and type(texts[0]) is str:
            return whole(texts[0])
    item = dumped(item)
    if isinstance(item, str | bool | int | float) or is_absent(item):
        return text(item, where) or ""
    if isinstance(item, list | tuple | set | frozenset | bytes | bytearray):
        raise SampleError(f"{where}: a passage is a text or an object with one of {_known()}, not {_a(item)}")
    filled: dict[str, Any] = {
        key: found for key in PASSAGE_KEYS if not is_absent(found := get(item, key)) and not callable(found)
    }
    told = {_inner(found, where, column) for found in filled.values()}
    if len(told) > 1:
        told.discard("")
    if len(told) > 1:
        raise SampleError(
            f"{where}: the entries {' and '.join(filled)} hold different texts; say which one is the passage "
            f"with a path, as in fields: {{retrieved_contexts: '{column}[].{next(iter(filled))}'}}"
        )
    if told:
        return told.pop()
    if isinstance(item, Mapping):
        if any(key in item for key in PASSAGE_KEYS):
            return ""
        seen = ", ".join(str(key) for key in item) or "none"
        raise SampleError(
            f"{where}: no text in an object with the keys: {seen}; accepted are {_known()}. "
            f"Another key can be named with a path, as in fields: {{retrieved_contexts: '{column}[].key'}}"
        )
    raise SampleError(f"{where}: {_a(item)} is no passage; give a text or an object with one of {_known()}")


def _inner(found: Any, where: str, column: str) -> str:
    """The text under a passage key, which may be an object or a list of parts itself."""
    if isinstance(found, Mapping):
        return _passage(found, where, column)
    if isinstance(found, list | tuple):
        return "\n".join(_passage(part, where, column) for part in found)
    return text(found, where) or ""


def _ids_of_documents(items: Sequence[Any], column: str, notes: list[str]) -> tuple[str, ...] | None:
    if not items or any(isinstance(item, str) for item in items):
        return None
    candidates = set()
    items = [dumped(item) for item in items]
    for path in ID_KEYS:
        if _id_at(items[0], path) is None:
            continue
        found = [_id_at(item, path) for item in items]
        if None not in found:
            candidates.add(tuple(str(one) for one in found))
    if len(candidates) > 1:
        notes.append(f"{column}: the documents carry several different ids, so none was taken")
    return candidates.pop() if len(candidates) == 1 else None


def _id_at(item: Any, path: tuple[str, ...]) -> str | None:
    for key in path:
        item = get(item, key)
    if item is None or isinstance(item, bool) or not isinstance(item, str | int):
        return None
    return str(item) or None


def references(value: Any, column: str, notes: list[str], *, several: bool) -> tuple[str, ...] | None:
    """The acceptable references in a cell, one or more.

    `several`: the column is named in the plural, so a text that spells a list is one. In a column named in
    the singular a text stays as it is written (the right answer may well be `["a", "b"]`).
    """
    if isinstance(value, str):
        found, _ = list_in(value)
        if found is not None and not several and all(isinstance(one, str) for one in found) and found:
            notes.append(
                f"{column}: looks like a list and was read as one text; call the column references if it is one"
            )
        value = found if found is not None and several else value
    value = plain_or_error(value, column)
    if value is None:
        return None
    if not isinstance(value, list):
        return (text_of(value),)
    nested = next((one for one in value if isinstance(one, list)), None)
    if nested is not None:
        raise SampleError(f"{column}: a list inside a list of references; give one list of texts")
    return tuple(text_of(one) for one in value if one is not None)


def ids(value: Any, column: str, notes: list[str]) -> tuple[str, ...] | None:
    """Document ids as text: a list, a cell that spells one, or a single id. A blank cell is absent."""
    if are_texts(value):
        return tuple(value)
    items = list_or_none(value, column, notes)
    if items is None:
        return None
    found = [_own_id(one) if isinstance(one, Mapping) else one for one in items]
    wrong = next((index for index, one in enumerate(found) if not isinstance(one, str | int | float)), None)
    if wrong is not None:
        raise SampleError(f"{column}[{wrong}]: an id is a text or a number, not {_a(items[wrong])}")
    return tuple(text_of(one) for one in found)


def _own_id(item: Mapping[str, Any]) -> str | None:
    return next((found for path in ID_KEYS if (found := _id_at(item, path)) is not None), None)


def topics(value: Any, column: str, notes: list[str]) -> tuple[str, ...] | None:
    """Topics as texts: a list, a cell that spells one, or a single topic. A blank cell is absent."""
    items = list_or_none(value, column, notes)
    if items is None:
        return None
    wrong = next((index for index, one in enumerate(items) if one is None or isinstance(one, list | dict)), None)
    if wrong is not None:
        raise SampleError(f"{column}[{wrong}]: a topic is a text, not {_a(items[wrong])}")
    return tuple(text_of(one) for one in items)


def rubrics(value: Any, column: str) -> dict[str, str] | None:
    """Rubrics by name, from an object or a cell that spells one in JSON. A blank cell is absent."""
    if isinstance(value, str):
        if not value.strip():
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise SampleError(f"{column}: expected an object of rubric names and texts, found other text") from None
    value = plain_or_error(value, column)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise SampleError(f"{column}: expected an object of rubric names and texts, found {_a(value)}")
    return {name: text_of(one) for name, one in value.items() if one is not None}  # Parquet fills gaps with null


def content(value: Any, where: str, notes: list[str]) -> str:
    """The text of a message: a text, or the text parts of a list of parts, one per line."""
    if isinstance(value, str) or is_absent(value):
        return text(value, where) or ""
    if not isinstance(value, list | tuple):
        return text(value, where) or ""
    texts = []
    for part in value:
        inner = part if isinstance(part, str) else get(part, "text")
        if isinstance(inner, str):
            texts.append(text(inner, where) or "")
        elif (kind := get(part, "type")) != "tool_use":  # a tool call is read elsewhere
            notes.append(f"{where}: a part of type {kind} holds no text and was left out")
    return "\n".join(texts)


def _known() -> str:
    return ", ".join(PASSAGE_KEYS)


def _a(item: Any) -> str:
    names = {"list": "a list", "dict": "an object", "tuple": "a list", "NoneType": "an empty item", "str": "text"}
    return names.get(type(item).__name__, f"a value of type {type(item).__name__}")
