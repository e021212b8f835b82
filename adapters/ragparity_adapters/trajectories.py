"""Passages and tool calls from the intermediate steps of a NeMo Agent Toolkit workflow.

Only what tools gave back is evidence. What a model wrote (`LLM_END`) is never a passage: an answer would be its
own evidence. Nor is the text of a tool that asked a model itself (an agent called as a tool, a chat completion);
its documents are, since a retriever may ask a model how to search.

The toolkit records a tool that an agent called as `TOOL_END`, but only where the agent's framework is watched (its
profiler package does that); the toolkit's own functions are always recorded, as `FUNCTION_END`. So functions count
where no tool was recorded, and of those only the ones that called no other function.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import SampleError
from ragparity.core.values import dumped, get, is_absent
from ragparity_adapters.cells import (
    DOCUMENT_LISTS,
    PASSAGE_KEYS,
    documents_in,
    list_in,
    passages,
    plain_or_error,
    text_of,
)
from ragparity_adapters.printed import printed_objects

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOL_EVENTS: frozenset[str] = frozenset({"TOOL_END", "RETRIEVER_END"})
"""Steps whose output is evidence."""

FUNCTION_EVENT = "FUNCTION_END"
MODEL_EVENTS: frozenset[str] = frozenset({"LLM_END"})
TURN_EVENTS: frozenset[str] = frozenset({"LLM_END", "WORKFLOW_END"})
"""Steps that end a turn: the tools between two of them were called together."""

WORKFLOW = "<workflow>"
"""What the toolkit calls the function round the whole workflow."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One step: its event, the name and id of what it is about, who called it, when it began and ended."""

    event: str
    name: str
    function: str | None
    function_name: str | None
    caller: str | None
    began: float
    ended: float
    input: Any
    output: Any


def tool_passages(steps: Any, column: str) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The passages of the tool outputs in order, and their ids where every one has an id.

    `steps`: a list of steps (objects or mappings), or a cell that spells one. None where no tool was used.
    A tool output that is no retriever's answer is one passage, as text.
    """
    texts: list[str] = []
    ids: list[str] = []
    for step in _evidence(_read(steps)):
        found, their_ids = _passages_of(step.output, column)
        texts += found
        ids += their_ids
    if not texts:
        return None, None
    return tuple(texts), tuple(ids) if len(ids) == len(texts) else None


def tool_calls(steps: Any) -> tuple[dict[str, Any], ...]:
    """The calls of tools in the order in which they were made, each with its `output` as text beside it."""
    return tuple(
        {"name": step.name or "unknown_tool", "args": _arguments(step.input), "output": _shown(step.output)}
        for step in _called(_read(steps))
    )


def is_recorded(steps: Any) -> bool:
    """Whether there is any step at all: without one, nobody knows which tools were called."""
    return bool(_read(steps))


def _read(steps: Any) -> list[_Step]:
    """The steps in order of time, tools of one turn in the order in which they were called."""
    if isinstance(steps, str):
        steps, _ = list_in(steps)
    elif callable(getattr(steps, "tolist", None)):
        steps = steps.tolist()
    if not isinstance(steps, list | tuple):
        return []
    read = sorted((_step(one) for one in steps), key=lambda step: step.ended)
    ordered: list[_Step] = []
    turn: list[_Step] = []
    for step in read:
        if step.event in TURN_EVENTS:
            ordered += [*_by_start(ordered, turn), step]
            turn = []
        else:
            turn.append(step)
    return ordered + _by_start(ordered, turn)


def _by_start(before: Sequence[_Step], turn: list[_Step]) -> list[_Step]:
    """The tools of a turn; without a turn before them, in the order in which they ended."""
    return sorted(turn, key=lambda step: step.began) if before else turn


def _step(step: Any) -> _Step:
    payload = get(step, "payload") or step
    event = get(payload, "event_type")
    ancestry = get(step, "function_ancestry")
    data = get(payload, "data")
    ended = _time(get(payload, "event_timestamp"))
    return _Step(
        event=str(getattr(event, "value", event)),
        name=str(get(payload, "name") or ""),
        function=get(ancestry, "function_id"),
        function_name=get(ancestry, "function_name"),
        caller=get(ancestry, "parent_id"),
        began=_time(get(payload, "span_event_timestamp"), ended),
        ended=ended,
        input=get(data, "input"),
        output=get(data, "output"),
    )


def _time(value: Any, default: float = 0.0) -> float:
    return float(value) if isinstance(value, int | float) and not is_absent(value) else default


def _called(steps: list[_Step]) -> list[_Step]:
    """The tools that were called; the toolkit's functions where no tool was recorded."""
    named = [step for step in steps if step.name != WORKFLOW]
    tools = [step for step in named if step.event in TOOL_EVENTS]
    return tools or [step for step in named if _is_function(step)]


def _evidence(steps: list[_Step]) -> list[_Step]:
    """The tools whose output is evidence."""
    writers = {step.function_name for step in steps if step.event in MODEL_EVENTS}

    def is_evidence(step: _Step) -> bool:
        return step.name not in writers or _holds_documents(step.output)

    tools = [step for step in steps if step.event in TOOL_EVENTS and step.name != WORKFLOW and is_evidence(step)]
    if tools:
        return tools
    functions = [step for step in steps if _is_function(step) and step.name != WORKFLOW]
    callers = {step.caller for step in functions if step.caller is not None}
    return [step for step in functions if step.function not in callers and is_evidence(step)]


def _is_function(step: _Step) -> bool:
    """Whether it is a function of the toolkit; parts of an agent's framework bear other names than their function."""
    return step.event == FUNCTION_EVENT and step.function_name in (None, step.name)


def _holds_documents(output: Any) -> bool:
    """Whether a tool gave documents back and not just a text."""
    output = dumped(output)
    if _is_tool_message(output):
        return _holds_documents(get(output, "content"))
    if isinstance(output, str):
        output = _documents_in(output)
        if _is_tool_message(output):
            return _holds_documents(get(output, "content"))
    for key in DOCUMENT_LISTS:
        if isinstance(found := get(output, key), list | tuple):
            output = found
    found = output if isinstance(output, list | tuple) else [output]
    return bool(found) and all(_is_document(one) for one in found)


def _is_tool_message(output: Any) -> bool:
    """Whether LangChain's message stands around what a tool gave back."""
    return not isinstance(output, str) and (get(output, "tool_call_id") is not None or get(output, "type") == "tool")


def _is_document(value: Any) -> bool:
    return not isinstance(value, str) and any(isinstance(get(value, key), str) for key in PASSAGE_KEYS)


def _arguments(given: Any) -> dict[str, Any]:
    """What a tool was called with, as an object; text that spells none stands under `input`, as in the toolkit."""
    if callable(getattr(given, "model_dump", None)):
        given = given.model_dump()
    if isinstance(given, str):
        for read in (json.loads, ast.literal_eval):
            try:
                found = read(given)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            if isinstance(found, dict):
                given = found
                break
    if isinstance(given, dict):
        plain: dict[str, Any] = plain_or_error(given, "the arguments of a tool")
        return plain
    return {} if is_absent(given) or given == "" else {"input": str(given)}


def _shown(output: Any) -> str:
    texts, _ = _passages_of(output, "the output of a tool")
    return "\n\n".join(texts)


def _passages_of(output: Any, column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    output = dumped(output)
    if is_absent(output):
        return (), ()
    if _is_tool_message(output):
        return _passages_of(get(output, "content"), column)
    documents = _documents_in(output) if isinstance(output, str) else output
    if documents is None:
        return ((output,), ()) if output.strip() else ((), ())
    if _is_tool_message(documents):
        return _passages_of(get(documents, "content"), column)
    try:
        texts, ids = passages(documents, column, [])
    except SampleError:  # a tool may give back anything; what is no document is told as it is
        return (text_of(plain_or_error(documents, column)),), ()
    return texts or (), ids or ()


def _is_known(value: Any) -> bool:
    """Whether a printed object is a document, a list of them or a message."""
    return isinstance(value, dict) and any(key in value for key in (*PASSAGE_KEYS, *DOCUMENT_LISTS))


def _documents_in(output: str) -> Any:
    """What a tool's text spells: documents, a list, or an object that Python printed; None for any other text."""
    documents: Any = documents_in(output)
    if documents is None and (found := list_in(output)[0]):
        documents = found
    if documents is None:
        try:
            json.loads(output)
        except (ValueError, RecursionError):
            documents = printed_objects(output)
            if not output.lstrip().startswith(("{", "[")) and not _is_known(documents):
                return None  # a text such as `Timeout(after=5)` says more than its arguments
    return documents
