"""What a chat model's message says: text, reasoning, arguments of tool calls, why it ended, tokens.

Every provider spells these differently; here are all spellings in use, and what is not known is said to be
unknown. Reasoning is kept apart from text in whatever form it comes, so that it is never read as an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage

from ragparity.core.ports import Usage
from ragparity_adapters.held_secrets import hidden

Finish = Literal["stop", "length", "filter", "refusal"]

_LENGTH = {
    "length",
    "max_tokens",
    "model_length",
    "max_output_tokens",
    "max_completion_tokens",
    "token_limit",
    "max_length",
    "max_new_tokens",
    "incomplete",
    "model_context_window_exceeded",
}
_FILTERED = {
    "content_filter",
    "content_filtered",
    "safety",
    "image_safety",
    "blocklist",
    "blocked",
    "prohibited_content",
    "spii",
    "sensitive",
    "guardrail_intervened",
    "recitation",
    "error_toxic",
}
_REFUSED = {"refusal", "refused"}
_FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "finishReason", "status")
_THINKING = ("thinking", "reasoning", "reasoning_content", "redacted_thinking")
_SAID = ("text", "output_text")
_DECLINES = re.compile(
    r"""
    \W* (?: (?:i['’]?m|i\ am)\ (?:very\ |so\ )?(?:sorry|afraid) | sorry | i\ apologi[sz]e | unfortunately )?
    \W* (?: but\  | that\  )? (?: as\ an\ ai\b [^.]*? )?
    i (?: \ can['’]?t | \ cannot | \ can\ not | \ won['’]?t | \ will\ not | \ must\ decline
        | (?:\ am|['’]m)\ (?:unable|not\ able)\ to ) \b
    .{0,40} \b (?: assist|help|comply|continue|engage|fulfil|provide|rate|judge|evaluate|answer|discuss|process )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, told apart. `tool_args` are the arguments of each tool call, as text where they do not parse.

    `limit` is the token limit that was sent (`None`: none), `parsed` what a client parsed itself.
    """

    text: str
    reasoning: str
    tool_args: tuple[Any, ...]
    finish: Finish
    usage: Usage
    limit: int | None
    parsed: Any = None

    def raw(self) -> str:
        """The text as a person would want to see it in an error."""
        if self.text or not (self.tool_args or self.parsed is not None):
            return self.text or self.reasoning
        return "\n".join(as_text(one) for one in (self.tool_args or (self.parsed,)))


def reply_of(result: Any, limit: int | None, secrets: Collection[str] = ()) -> Reply:
    """The reply in whatever a model or a structured runnable returned, without these secrets.

    >>> reply_of(AIMessage([{"type": "thinking", "thinking": "2 or 4?"}, {"type": "text", "text": "4"}]), 8).text
    '4'
    """
    message = message_in(result)
    text, reasoning, refusal = _parts(message.content)
    extra = message.additional_kwargs
    reasoning = reasoning or _joined(extra.get("reasoning_content") or extra.get("reasoning") or "")
    refusal = refusal or str(extra.get("refusal") or "")
    finish = finish_of(message)
    if refusal:
        text, finish = text or refusal, "refusal"
    calls: list[Any] = [one["args"] for one in message.tool_calls]
    calls += [one.get("args") or "" for one in message.invalid_tool_calls]
    text, reasoning, calls = hidden(text, secrets), hidden(reasoning, secrets), hidden(calls, secrets)
    return Reply(text, reasoning, tuple(calls), finish, usage_of(message), limit, _parsed(result))


def message_in(result: Any) -> AIMessage:
    """The message in a result; an empty one where there is none."""
    held = result.get("raw") if isinstance(result, Mapping) else result
    return held if isinstance(held, AIMessage) else AIMessage(content="")


def _parsed(result: Any) -> Any:
    if isinstance(result, AIMessage):
        return None
    if isinstance(result, Mapping) and "raw" in result:
        return result.get("parsed")
    return result


def declines(text: str) -> bool:
    """Whether a text that holds no answer opens by declining to give one.

    >>> declines("I'm sorry, but I can't assist with that."), declines("I cannot find the claim in the context.")
    (True, False)
    """
    return bool(_DECLINES.match(text))


def as_text(value: Any) -> str:
    """A JSON value as text; text stays as it is.

    >>> as_text({"verdict": 1})
    '{"verdict": 1}'
    """
    if isinstance(value, str):
        return value
    dump = getattr(value, "model_dump", None)
    return json.dumps(dump() if callable(dump) else value, ensure_ascii=False, default=str)


def _parts(content: str | Sequence[Any]) -> tuple[str, str, str]:
    """Text, reasoning and refusal of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content, "", ""
    said: dict[str, list[str]] = {"text": [], "reasoning": [], "refusal": []}
    for part in content:
        if isinstance(part, str):
            said["text"].append(part)
        elif isinstance(part, Mapping):
            kind = part.get("type", "text")
            if kind in _THINKING:
                said["reasoning"].append(_joined(part))
            elif kind == "refusal":
                said["refusal"].append(str(part.get("refusal") or "refused"))
            elif kind in _SAID and isinstance(part.get("text"), str):
                said["text"].append(part["text"])
    return "".join(said["text"]), "".join(said["reasoning"]), "".join(said["refusal"])


def _joined(part: Any) -> str:
    """The text inside a part of reasoning, however deep it is nested."""
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        return next((text for key in (*_THINKING, "text", "summary") if (text := _joined(part.get(key)))), "")
    return "".join(map(_joined, part)) if isinstance(part, Sequence) else ""


def finish_of(message: AIMessage) -> Finish:
    """Why the reply ended, from every spelling in use; unknown ones count as a normal end."""
    about = message.response_metadata
    if not isinstance(about, Mapping):
        return "stop"
    words = [about.get(key) for key in _FINISH_KEYS]
    details = about.get("incomplete_details")
    if isinstance(details, Mapping):
        words.insert(0, details.get("reason"))
    folded = [str(word).rpartition(".")[2].casefold().replace("-", "_") for word in words if word]
    for word in folded:
        if word in _FILTERED:
            return "filter"
        if word in _REFUSED:
            return "refusal"
    return "length" if any(word in _LENGTH for word in folded) else "stop"


def usage_of(message: AIMessage) -> Usage:
    """Tokens as reported; what is not reported, or is no count, is unknown.

    >>> usage_of(AIMessage("4", usage_metadata={"input_tokens": 90, "output_tokens": 1, "total_tokens": 91}))
    Usage(input_tokens=90, output_tokens=1, reasoning_tokens=None, cached_tokens=None)
    """
    seen = _mapping(message.usage_metadata)
    spent, said = _count(seen.get("input_tokens")), _count(seen.get("output_tokens"))
    if not spent and not said:
        return Usage()
    reasoning = _mapping(seen.get("output_token_details")).get("reasoning")
    cached = _mapping(seen.get("input_token_details")).get("cache_read")
    return Usage(spent, said, _count(reasoning), _count(cached))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    """A number of tokens; servers write whole floats too."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
