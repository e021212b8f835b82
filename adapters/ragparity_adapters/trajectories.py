"""Passages from the intermediate steps of a NeMo Agent Toolkit workflow.

Only what tools gave back counts. What a model wrote (`LLM_END`) is never a passage: an answer would be its
own evidence.
"""

from __future__ import annotations

from typing import Any

from ragparity.core.errors import SampleError
from ragparity.core.values import dumped, get, is_absent
from ragparity_adapters.cells import documents_in, list_in, passages, plain_or_error, text_of

TOOL_EVENTS: frozenset[str] = frozenset({"TOOL_END", "RETRIEVER_END"})
"""Steps whose output is evidence."""


def tool_passages(steps: Any, column: str) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The passages of the tool outputs in order, and their ids where every one has an id.

    `steps`: a list of steps (objects or mappings), or a cell that spells one. None where no tool was used.
    A tool output that is no retriever's answer is one passage, as text.
    """
    if isinstance(steps, str):
        steps, _ = list_in(steps)
    elif callable(getattr(steps, "tolist", None)):
        steps = steps.tolist()
    if not isinstance(steps, list | tuple):
        return None, None
    texts: list[str] = []
    ids: list[str] = []
    for step in steps:
        payload = get(step, "payload") or step
        event = get(payload, "event_type")
        if str(getattr(event, "value", event)) not in TOOL_EVENTS:
            continue
        found, their_ids = _passages_of(get(get(payload, "data"), "output"), column)
        texts += found
        ids += their_ids
    if not texts:
        return None, None
    return tuple(texts), tuple(ids) if len(ids) == len(texts) else None


def _passages_of(output: Any, column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    output = dumped(output)
    if is_absent(output):
        return (), ()
    if get(output, "tool_call_id") is not None or get(output, "type") == "tool":  # a ToolMessage around the output
        return _passages_of(get(output, "content"), column)
    documents = output
    if isinstance(output, str):
        documents = documents_in(output)
        if documents is None and (found := list_in(output)[0]) and not any(isinstance(one, str) for one in found):
            documents = found
        if documents is None:
            return ((output,), ()) if output.strip() else ((), ())
    try:
        texts, ids = passages(documents, column, [])
    except SampleError:  # a tool may give back anything; what is no document is told as it is
        whole = output if isinstance(output, str) else text_of(plain_or_error(output, column))
        return (whole,), ()
    return texts or (), ids or ()
