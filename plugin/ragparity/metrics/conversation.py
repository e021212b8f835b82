"""Conversations as a judge sees them: who said what, and which tools were called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragparity.core.errors import SampleError


def turns_of(messages: Sequence[object]) -> list[dict[str, Any]]:
    """The messages in order with role, content and tool calls, without those that say nothing.

    Raises `SampleError` for what is no message.

    >>> turns_of([{"role": "user", "content": "Hi.", "id": 7}, {"role": "assistant", "content": ""}])
    [{'role': 'user', 'content': 'Hi.'}]
    """
    turns = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(role := message.get("role"), str):
            raise SampleError(f"messages[{index}]: expected a mapping with role and content, got {message!r:.80}")
        said = {name: message[name] for name in ("content", "tool_calls") if message.get(name)}
        if said:
            turns.append({"role": role, **said})
    return turns
