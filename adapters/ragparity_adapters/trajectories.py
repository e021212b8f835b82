"""Passages and tool calls from the intermediate steps of a NeMo Agent Toolkit workflow.

Only what tools gave back is evidence. What a model wrote (`LLM_END`) is never a passage: an answer would be its
own evidence.

The toolkit records a tool that an agent called as `TOOL_END`, but only where the agent's framework is watched (its
profiler package does that); the toolkit's own functions are always recorded, as `FUNCTION_END`. So functions count
where no tool was recorded, and of those only the ones that called nobody: neither a model nor another function.
A function that did is an agent, and what it gave back is an answer.
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
    from collections.abc import Iterator, Sequence

TOOL_EVENTS: frozenset[str] = frozenset({"TOOL_END", "RETRIEVER_END"})
"""Steps whose output is evidence."""

FUNCTION_EVENT = "FUNCTION_END"
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
    for step in _tools_used(_read(steps)):
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
        for step in _tools_used(_read(steps))
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
        caller=get(ancestry, "parent_id"),
        began=_time(get(payload, "span_event_timestamp"), ended),
        ended=ended,
        input=get(data, "input"),
        output=get(data, "output"),
    )


def _time(value: Any, default: float = 0.0) -> float:
    return float(value) if isinstance(value, int | float) and not is_absent(value) else default


def _tools_used(steps: list[_Step]) -> Iterator[_Step]:
    named = [step for step in steps if step.name != WORKFLOW]
    tools = [step for step in named if step.event in TOOL_EVENTS]
    if tools:
        yield from tools
        return
    functions = [step for step in named if step.event == FUNCTION_EVENT]
    busy = {step.caller for step in functions} | {step.function for step in steps if step.event == "LLM_END"}
    yield from (step for step in functions if step.function is None or step.function not in busy)


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
    if get(output, "tool_call_id") is not None or get(output, "type") == "tool":  # a ToolMessage around the output
        return _passages_of(get(output, "content"), column)
    documents = _documents_in(output) if isinstance(output, str) else output
    if documents is None:
        return ((output,), ()) if output.strip() else ((), ())
    if isinstance(documents, dict) and "tool_call_id" in documents:
        return _passages_of(documents.get("content"), column)
    try:
        texts, ids = passages(documents, column, [])
    except SampleError:  # a tool may give back anything; what is no document is told as it is
        return (text_of(plain_or_error(documents, column)),), ()
    return texts or (), ids or ()


def _is_document(value: Any) -> bool:
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
            if not output.lstrip().startswith(("{", "[")) and not _is_document(documents):
                return None  # a text such as `Timeout(after=5)` says more than its arguments
    return documents
