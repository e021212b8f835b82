"""What goes over the wire to the fake server and back: `Request`, `Reply`, ready-made errors, token counts.

Shapes are those of the OpenAI API reference (chat completions, embeddings, error object).
"""

from __future__ import annotations

import json
import math
import re
import time
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOKEN = re.compile(r" ?[^\W\d]{1,10}|\d{1,3}| ?[^\w\s]+[\r\n]*|\s+(?!\S)|\s+")
"""A simple tokeniser. It agrees with real ones on what short judges say: `4` is 1 token, `{"rating":4}` 5,
`{"rating": 4}` 6, the same pretty-printed 9, the same in a fence 10."""


def count_tokens(text: str) -> int:
    """Tokens of a completion."""
    return sum(1 for _ in TOKEN.finditer(text))


def first_tokens(text: str, limit: int) -> str:
    """The text up to and with its token number `limit`."""
    end = 0
    for number, match in enumerate(TOKEN.finditer(text)):
        if number == limit:
            return text[:end]
        end = match.end()
    return text


def count_prompt(text: str) -> int:
    """Tokens of a prompt: a quarter of its characters."""
    return math.ceil(len(text) / 4)


def text_of(content: Any) -> str:
    """The text of a message's content, which is a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""


@dataclass(slots=True)
class Request:
    """One request as it arrived. `body` is the parsed JSON object ({} where there is none).

    `arrived` and `answered` are `time.monotonic()`; `in_flight` counts the requests being handled at
    arrival, this one included; `index` counts the requests to the same endpoint from 0. `status` is what was
    sent back, `None` while it is pending or when the client went away or the connection was cut.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any] = field(default_factory=dict)
    arrived: float = field(default_factory=time.monotonic)
    in_flight: int = 1
    index: int = 0
    deployment: str = ""
    answered: float | None = None
    status: int | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    @property
    def text(self) -> str:
        """The text of all messages."""
        return "\n".join(text_of(message.get("content")) for message in self.messages)

    @property
    def system(self) -> str:
        """The text of the system (or developer) messages."""
        return self._said_by("system", "developer")

    @property
    def user(self) -> str:
        """The text of the user messages."""
        return self._said_by("user")

    def _said_by(self, *roles: str) -> str:
        return "\n".join(text_of(one.get("content")) for one in self.messages if one.get("role") in roles)

    @property
    def data(self) -> dict[str, Any]:
        """The labelled data of the user messages: every line `label: JSON`."""
        found: dict[str, Any] = {}
        for line in self.user.splitlines():
            label, colon, value = line.partition(": ")
            if colon:
                try:
                    found[label] = json.loads(value)
                except ValueError:
                    continue
        return found

    @property
    def model(self) -> str:
        return str(self.body.get("model") or self.deployment or "fake-model")

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema asked for by `response_format`, `nvext`, `guided_json` or `structured_outputs`."""
        body = self.body
        response_format = body.get("response_format") or {}
        return (
            (response_format.get("json_schema") or {}).get("schema")
            or (body.get("nvext") or {}).get("guided_json")
            or body.get("guided_json")
            or (body.get("structured_outputs") or {}).get("json")
        )

    @property
    def wants_json(self) -> bool:
        """A JSON answer is asked for, by schema or by JSON mode."""
        return self.schema is not None or (self.body.get("response_format") or {}).get("type") == "json_object"

    @property
    def tool(self) -> dict[str, Any] | None:
        """The function that `tool_choice` names, or the first one; `None` without tools or with choice none."""
        tools, choice = self.body.get("tools") or [], self.body.get("tool_choice")
        if not tools or choice == "none":
            return None
        functions = [tool["function"] for tool in tools]
        if isinstance(choice, dict):
            return next((one for one in functions if one["name"] == choice["function"]["name"]), None)
        return functions[0]

    @property
    def echo(self) -> str:
        """What the reply's `id` and `x-request-id` carry: the request's `x-request-id`, else its `user`."""
        return re.sub(r"[^\x21-\x7e]", "_", self.headers.get("x-request-id") or str(self.body.get("user") or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says, and what goes wrong on the way.

    `content` is text, or a dict or list that is sent as JSON; for a request with tools a dict becomes the
    arguments of the tool. `finish_reason` is kept unless the text is cut (`length`) or a tool is called.
    `tool_calls` are `(name, arguments)` pairs, or complete OpenAI objects. `usage`: `...` is counted, `None`
    is left out, a dict is sent as it is. With another `status`, `content` is the error's message; `body`
    replaces the whole body. `latency` (seconds) replaces the server's. `drop="before"` resets the
    connection instead of answering, `"half"` sends half of the body and hangs up; `hang` never answers.
    `chunk_delays`: the body goes out in that many pieces, each after its delay in seconds.
    """

    content: Any = ""
    finish_reason: str = "stop"
    reasoning_content: str | None = None
    tool_calls: Sequence[Any] | None = None
    refusal: str | None = None
    usage: Any = ...
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float | None = None
    body: bytes | None = None
    drop: Literal["before", "half"] | None = None
    hang: bool = False
    chunk_delays: Sequence[float] = ()


def error_body(message: str, kind: str | None, *, param: str | None = None, code: Any = None) -> dict[str, Any]:
    """OpenAI's error object."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def failure(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply with this status and this JSON body."""
    return Reply(status=status, body=json.dumps(body).encode(), headers=headers or {})


def bad_request(
    *, message: str = "The request is invalid.", param: str | None = None, code: str | None = None
) -> Reply:
    return failure(400, error_body(message, "invalid_request_error", param=param, code=code))


def unauthorized() -> Reply:
    message = "Incorrect API key provided: fake-****."
    return failure(401, error_body(message, "invalid_request_error", code="invalid_api_key"))


def forbidden() -> Reply:
    message = "This project has no access to the model."
    return failure(403, error_body(message, "invalid_request_error", code="model_not_found"))


def model_not_found(model: str = "fake-model") -> Reply:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return failure(404, error_body(message, "invalid_request_error", code="model_not_found"))


def rate_limited(retry_after: float | None = 1) -> Reply:
    """429 with `retry-after` in seconds (none when `retry_after` is `None`)."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    body = error_body("Rate limit reached for requests.", "requests", code="rate_limit_exceeded")
    return failure(429, body, headers)


def quota_exhausted() -> Reply:
    """429 that no waiting cures."""
    message = "You exceeded your current quota, please check your plan and billing details."
    return failure(429, error_body(message, "insufficient_quota", code="insufficient_quota"))


def server_error(status: int = 500) -> Reply:
    return failure(status, error_body("The server had an error.", "server_error"))


def context_too_long(window: int = 8192, asked: int = 9000) -> Reply:
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in "
        f"{asked} tokens. Please reduce the length of the messages."
    )
    return bad_request(message=message, param="messages", code="context_length_exceeded")


def content_filter_results(*filtered: str) -> dict[str, Any]:
    """Azure's verdicts per category; the named ones are filtered."""
    return {
        name: {"filtered": name in filtered, "severity": "high" if name in filtered else "safe"}
        for name in ("hate", "self_harm", "sexual", "violence")
    }


def content_filtered() -> Reply:
    """Azure's refusal of a prompt: 400 with code `content_filter` and an inner error."""
    error = {
        "message": "The response was filtered due to the prompt triggering the content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": content_filter_results("violence"),
        },
    }
    return failure(400, {"error": error})


def refused(text: str = "I cannot help with that.") -> Reply:
    """The model declines: `refusal` is set, `content` is null."""
    return Reply(content=None, refusal=text)


def encoded(body: Any) -> bytes:
    """JSON in UTF-8; a lone surrogate becomes its JSON escape."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace")


def split(body: bytes, number: int) -> tuple[bytes, ...]:
    """The body in this many pieces of about equal size."""
    size = math.ceil(len(body) / max(number, 1)) or 1
    return tuple(body[start : start + size] for start in range(0, len(body), size))


def events(body: dict[str, Any], request: Request) -> tuple[bytes, ...]:
    """A completion as server-sent events: a delta per few words, the finish, the usage if asked for."""
    shared = {**{key: body[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}
    deltas: list[tuple[int, dict[str, Any], str | None]] = []
    for choice in body["choices"]:
        message = dict(choice["message"])
        content = message.pop("content") or ""
        message["tool_calls"] = [{"index": at, **call} for at, call in enumerate(message.get("tool_calls") or ())]
        first = {key: value for key, value in message.items() if value}
        deltas.append((choice["index"], {**first, "content": ""}, None))
        deltas += [(choice["index"], {"content": word}, None) for word in re.findall(r"\s*\S+\s*", content)]
        deltas.append((choice["index"], {}, choice["finish_reason"]))
    chunks: list[Any] = [
        {**shared, "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}
        for index, delta, finish in deltas
    ]
    if (request.body.get("stream_options") or {}).get("include_usage") and "usage" in body:
        chunks.append({**shared, "choices": [], "usage": body["usage"]})
    return (*(b"data: " + encoded(event) + b"\n\n" for event in chunks), b"data: [DONE]\n\n")


@lru_cache(maxsize=10_000)
def hash_vector(text: str, dimension: int) -> tuple[float, ...]:
    """A unit vector of the words of a text: each word adds 1 or -1 at a place given by its CRC-32.

    Equal texts have cosine 1 and texts that share words are alike; case and order do not matter.
    """
    vector = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()) or [text]:
        code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
        vector[code % dimension] += 1.0 if code >> 31 else -1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return tuple(value / norm for value in vector) if norm else (1.0, *vector[1:])
