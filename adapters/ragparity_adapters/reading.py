"""One cell into one field of a sample: which reader of `cells` and `conversations` each field takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ragparity.core.errors import SampleError
from ragparity.core.sample import TEXT_FIELDS
from ragparity.core.values import dumped, get, is_absent, is_conversation, role_of
from ragparity_adapters import cells, conversations, trajectories


def into(
    values: dict[str, Any], name: str, value: Any, column: str, notes: list[str], *, input_obj_field: str | None = None
) -> None:
    """Put what a cell holds into `values`, under the name of its field.

    A question that is a conversation is `messages`; several references are `references` too; documents with
    ids give ids. `input_obj_field`: the entry of a question that is an object. Raises `SampleError`.
    """
    if type(value) is str and name in TEXT_FIELDS and input_obj_field is None and _is_simple(value):
        values[name] = value  # nearly every cell
    elif name == "user_input":
        _question(value if input_obj_field is None else _entry(value, input_obj_field, column), column, values, notes)
    elif name == "response":
        said = get(dumped(value), "content") if role_of(value) == "assistant" else value
        values[name] = cells.text(value, column) if said is value else cells.content(said, column, notes)
    elif name == "reference":
        _references(value, column, values, notes)
    elif name in ("retrieved_contexts", "reference_contexts"):
        texts, ids = cells.passages(value, column, notes)
        values[name] = texts
        if ids is not None:
            values.setdefault(f"{name[:-1]}_ids", ids)
    else:
        found = _LISTS[name](value, column, notes)
        if found is not None:
            values[name] = found


def _is_simple(value: str) -> bool:
    """Nothing but text, whatever the field."""
    return value.isascii() and value[:1] not in ("[", " ", "\t", "\n", "\r")


def _question(value: Any, column: str, values: dict[str, Any], notes: list[str]) -> None:
    if isinstance(value, str) and not value.lstrip().startswith("[{"):
        values["user_input"] = cells.text(value, column)
        return
    talk: Any = cells.list_in(value)[0] if isinstance(value, str) else value
    talk = talk.tolist() if callable(getattr(talk, "tolist", None)) else talk
    talk = [talk] if isinstance(talk, Mapping) or hasattr(talk, "content") else talk
    if is_conversation(talk):
        values["messages"] = conversations.messages(talk, column, notes)
    else:
        values["user_input"] = cells.text(value, column)


def from_trajectory(steps: Any, column: str, values: dict[str, Any], notes: list[str]) -> None:
    """Passages and calls out of a workflow's steps, for a row that has no passages or no messages of its own."""
    if values.get("retrieved_contexts") is None:
        texts, ids = trajectories.tool_passages(steps, column)
        if texts is not None:
            values["retrieved_contexts"] = texts
            notes.append(f"retrieved_contexts: {len(texts)} taken from the tool outputs in {column}")
        if ids is not None:
            values.setdefault("retrieved_context_ids", ids)
    if values.get("messages") is None and trajectories.is_recorded(steps):
        values["messages"] = _conversation(trajectories.tool_calls(steps), values)


def from_expected_trajectory(steps: Any, values: dict[str, Any]) -> None:
    """The calls that were wanted out of the steps that were wanted, for a row that does not name them otherwise."""
    if values.get("reference_tool_calls") is None and trajectories.is_recorded(steps):
        calls = trajectories.tool_calls(steps)
        values["reference_tool_calls"] = tuple({"name": call["name"], "args": call["args"]} for call in calls)


def _conversation(calls: Iterable[Mapping[str, Any]], values: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The question, each call with what came back, and the answer."""
    talk: list[dict[str, Any]] = []
    if (asked := values.get("user_input")) is not None:
        talk.append({"role": "user", "content": asked, "tool_calls": []})
    for call in calls:
        made = {"name": call["name"], "args": call["args"]}
        talk.append({"role": "assistant", "content": "", "tool_calls": [made]})
        talk.append({"role": "tool", "content": call["output"], "tool_calls": []})
    if (said := values.get("response")) is not None:
        talk.append({"role": "assistant", "content": said, "tool_calls": []})
    return tuple(talk)


def from_exchange(values: dict[str, Any]) -> None:
    """The only question of a conversation is also user_input, and the answer that ends it is response.

    With more questions than one neither is taken: out of its conversation a question may mean nothing.
    """
    talk = values["messages"]
    asked = [message["content"] for message in talk if message["role"] == "user"]
    if len(asked) != 1:
        return
    if values.get("user_input") is None:
        values["user_input"] = asked[0]
    if values.get("response") is None and talk[-1]["role"] == "assistant" and talk[-1]["content"]:
        values["response"] = talk[-1]["content"]


_LISTS: Mapping[str, Callable[[Any, str, list[str]], Any]] = {
    "retrieved_context_ids": cells.ids,
    "reference_context_ids": cells.ids,
    "messages": conversations.messages,
    "reference_tool_calls": lambda value, column, _notes: conversations.tool_calls(value, column),
    "reference_topics": cells.topics,
    "rubrics": lambda value, column, _notes: cells.rubrics(value, column),
}


def _entry(value: Any, name: str, column: str) -> Any:
    """The named entry of a question that is an object (or a JSON object as text); a text is the question."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, str | int | float | list | tuple) or is_absent(value):
        return value
    if isinstance(value, Mapping) and name not in value:
        seen = ", ".join(map(str, value)) or "none"
        raise SampleError(f"{column}: input_obj_field {name!r} is not among the keys: {seen}")
    if not isinstance(value, Mapping) and not hasattr(value, name):
        raise SampleError(f"{column}: input_obj_field {name!r} is no attribute of a {type(value).__name__}")
    return get(value, name)


def _references(value: Any, column: str, values: dict[str, Any], notes: list[str]) -> None:
    found = cells.references(value, column, notes, several=column.casefold().endswith("s"))
    if found is not None:
        values["reference"] = found[0] if found else None
        values["references"] = None if len(found) == 1 else found
