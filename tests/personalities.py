"""How servers differ: what each rejects, honours, ignores and wraps. The fake server applies one of these.

A `Personality` is data; `PERSONALITIES` names the known ones and `like(name, **quirks)` changes single
fields: `like("vllm", thinking="inline")`. `refusal_of` says why a chat request is rejected (the model is
then not asked), `completion` turns what the model says into the response body.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tests.fakewire import (
    Reply,
    Request,
    bad_request,
    content_filter_results,
    context_too_long,
    count_prompt,
    count_tokens,
    error_body,
    failure,
    first_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

THOUGHT = "Let me think about the scale from 0 to 4 and the evidence before I answer."
OPENAI_UNKNOWN = ("nvext", "guided_json", "guided_choice", "structured_outputs", "chat_template_kwargs", "top_k")
EFFORT = {"none": 0.0, "minimal": 0.25, "low": 0.5, "medium": 1.0, "high": 2.0}
"""Share of `reasoning_tokens` spent for each `reasoning_effort`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Personality:
    """The manners of one kind of server.

    Limits and prompts:
      `limits`: token limits that really cut, the first one present wins; others are ignored.
      `one_limit`: two limits at once are an error.
      `context_window`, `overflow`: prompts beyond the window are cut without a word, or rejected.
      `system_role`: whether system messages are accepted. `n`: several choices are given, ignored, rejected.
    Parameters:
      `unsupported`, `unknown`: parameters answered with 400 (two wordings). `fixed_temperature`: the only
      value accepted. `errors`: shape of these errors (`openai`; `coded` and `flat` as vLLM has had them;
      `detail`, FastAPI's 422).
    JSON and tools:
      `strict`: schemas marked strict are checked as OpenAI does. `tools`: honoured or ignored.
      `wrap`, `wrap_when`: what stands around a JSON answer, and when.
    Reasoning:
      `reasoning_tokens`: hidden ones, spent before the answer. `thinking`: visible reasoning, in its own
      field, between tags, or with only the closing tag (the template holds the opening one); a request
      switches it off with `chat_template_kwargs`. `thought` is its text. `thinking_and_json`: what a JSON
      answer becomes while thinking is on: itself, prose, or empty content with the JSON in the reasoning.
      A `reasoning_content` of the reply itself is always shown (in its own field if thinking is off).
    Transport:
      `latency` seconds; `usage`: none, plain, or with details; `dies_after`: this many requests are
      answered, then connections are reset and refused; `azure`: Azure's paths, header and filter results;
      `embedding_batch`: the most inputs of one embeddings request.
    """

    name: str
    limits: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    one_limit: bool = False
    context_window: int | None = None
    overflow: Literal["cut", "reject"] = "reject"
    system_role: bool = True
    n: Literal["many", "one", "rejected"] = "one"
    unsupported: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    fixed_temperature: float | None = None
    errors: Literal["openai", "coded", "flat", "detail"] = "openai"
    strict: bool = False
    tools: Literal["called", "ignored"] = "called"
    wrap: Literal["fence", "prose"] | None = None
    wrap_when: Literal["always", "without_schema"] = "always"
    reasoning_tokens: int = 0
    thinking: Literal["off", "separate", "inline", "closing"] = "off"
    thought: str = THOUGHT
    reasoning_field: str = "reasoning_content"
    thinking_and_json: Literal["kept", "prose", "in_reasoning"] = "kept"
    latency: float = 0.0
    usage: Literal["none", "plain", "details"] = "plain"
    dies_after: int | None = None
    azure: bool = False
    embedding_batch: int = 2048


_OPENAI = Personality(name="openai", one_limit=True, n="many", unknown=OPENAI_UNKNOWN, strict=True, usage="details")
_VLLM = Personality(name="vllm", errors="coded", n="many")
PERSONALITIES = {
    one.name: one
    for one in (
        _OPENAI,
        replace(
            _OPENAI,
            name="openai-reasoning",
            limits=("max_completion_tokens",),
            unsupported=("max_tokens", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs"),
            fixed_temperature=1,
            reasoning_tokens=64,
        ),
        replace(_OPENAI, name="azure", azure=True),
        Personality(name="nim", limits=("max_tokens",), unknown=("max_completion_tokens",), errors="flat"),
        Personality(name="ollama", limits=("max_tokens",), context_window=2048, overflow="cut"),
        _VLLM,
        Personality(name="llamacpp", wrap="fence", wrap_when="without_schema"),
        Personality(name="ignores-schema", wrap="prose", tools="ignored"),
        Personality(name="tools-only", unsupported=("response_format",)),
        Personality(name="rejects-temperature", unsupported=("temperature",)),
        Personality(name="slow", latency=0.5),
        Personality(name="dies-half-way", dies_after=5),
        Personality(name="no-usage", usage="none"),
        Personality(name="legacy-text", unsupported=("response_format", "tools", "tool_choice")),
    )
}


def like(name: str | Personality, **quirks: Any) -> Personality:
    """A known personality with some fields changed."""
    if isinstance(name, str):
        if name not in PERSONALITIES:
            raise ValueError(f"unknown personality {name!r}; known: {', '.join(PERSONALITIES)}")
        name = PERSONALITIES[name]
    return replace(name, **quirks)


# --- what is rejected ---------------------------------------------------------------------------------


def refusal_of(request: Request, manners: Personality) -> Reply | None:
    """The error this server answers the request with, or `None` when the model may be asked."""
    if not request.messages:
        return _rejected(manners, "messages", "Missing required parameter: 'messages'.", "missing_required_parameter")
    return _parameter_refusal(request, manners) or _format_refusal(request, manners)


def azure_refusal(request: Request) -> Reply | None:
    """What Azure answers to a missing api-version or key."""
    if request.deployment and "api-version" not in request.query:
        return failure(404, {"error": {"code": "404", "message": "Resource not found"}})
    if "api-key" not in request.headers and "authorization" not in request.headers:
        message = "Access denied due to invalid subscription key or wrong API endpoint."
        return failure(401, {"error": {"code": "401", "message": message}})
    return None


def _parameter_refusal(request: Request, manners: Personality) -> Reply | None:
    body = request.body
    for name in manners.unsupported:
        value = body.get(name)
        if value is None or (name == "response_format" and value.get("type") == "text"):
            continue
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        if name == "max_tokens" and manners.limits:
            message += f" Use '{manners.limits[0]}' instead."
        return _rejected(manners, name, message, "unsupported_parameter")
    for name in manners.unknown:
        if name in body:
            return _rejected(manners, name, f"Unknown parameter: '{name}'.", "unknown_parameter", body[name])
    fixed, temperature = manners.fixed_temperature, body.get("temperature")
    if fixed is not None and temperature is not None and temperature != fixed:
        message = (
            f"Unsupported value: 'temperature' does not support {temperature} with this model. "
            f"Only the default ({fixed:g}) value is supported."
        )
        return _rejected(manners, "temperature", message, "unsupported_value")
    limits = [name for name in manners.limits if body.get(name) is not None]
    if manners.one_limit and len(limits) > 1:
        message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        return _rejected(manners, "max_tokens", message, "invalid_parameter_combination")
    for name in limits:
        if not isinstance(body[name], int) or body[name] < 1:
            message = f"Invalid '{name}': expected an integer >= 1, but got {body[name]!r} instead."
            return _rejected(manners, name, message, "integer_below_min_value")
    if manners.n == "rejected" and body.get("n", 1) != 1:
        return _rejected(manners, "n", "Only n = 1 is supported.", None)
    return None


def _format_refusal(request: Request, manners: Personality) -> Reply | None:
    if not manners.system_role and request.system:
        return _rejected(manners, "messages", "System role not supported", None)
    if manners.strict and (error := _strict_refusal(request)):
        return error
    asked = count_prompt(request.text)
    if manners.overflow == "reject" and manners.context_window is not None and asked > manners.context_window:
        error = context_too_long(manners.context_window, asked)
        message = json.loads(error.body or b"")["error"]["message"]
        return error if manners.errors == "openai" else _rejected(manners, "messages", message, None)
    return None


def _rejected(manners: Personality, param: str, message: str, code: str | None, value: Any = None) -> Reply:
    """A 400 (or 422) in the shape of this server."""
    if manners.errors == "openai":
        return bad_request(message=message, param=param, code=code)
    extra = "Extra inputs are not permitted"
    if manners.errors == "detail":
        kind, text = ("extra_forbidden", extra) if code == "unknown_parameter" else ("value_error", message)
        return failure(422, {"detail": [{"type": kind, "loc": ["body", param], "msg": text, "input": value}]})
    if code == "unknown_parameter":
        problem = {"type": "extra_forbidden", "loc": ("body", param), "msg": extra, "input": value}
        message = str([problem])
    if manners.errors == "coded":
        return failure(400, error_body(message, "BadRequestError", param=param, code=400))
    flat = {"object": "error", "message": message, "type": "BadRequestError", "param": param, "code": 400}
    return failure(400, flat)


def _strict_refusal(request: Request) -> Reply | None:
    """OpenAI's checks of structured output: schemas marked strict, and the word JSON in JSON mode."""
    response_format = request.body.get("response_format") or {}
    named = response_format.get("json_schema") or {}
    if named.get("strict") and (problem := next(strict_problems(named.get("schema") or {}), None)):
        message = f"Invalid schema for response_format '{named.get('name')}': {problem}"
        return bad_request(message=message, param="response_format")
    for number, tool in enumerate(request.body.get("tools") or ()):
        function = tool["function"]
        problem = next(strict_problems(function.get("parameters") or {}), None)
        if function.get("strict") and problem:
            message = f"Invalid schema for function '{function['name']}': {problem}"
            param = f"tools[{number}].function.parameters"
            return bad_request(message=message, param=param, code="invalid_function_parameters")
    if response_format.get("type") == "json_object" and "json" not in request.text.lower():
        message = "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
        return bad_request(message=message, param="messages")
    return None


def strict_problems(schema: dict[str, Any], where: tuple[str, ...] = ()) -> Iterator[str]:
    """What OpenAI's strict mode refuses in a schema (its structured-outputs guide lists the rules)."""
    place = f"In context={where!r}, "
    if not where and schema.get("type") != "object":
        yield f"schema must be a JSON Schema of 'type: \"object\"', got {schema.get('type')!r}."
    if "$ref" in schema and len(schema) > 1:
        yield place + f"$ref cannot have keywords {sorted(set(schema) - {'$ref'})}."
    for keyword in ("default", "oneOf", "allOf"):
        if keyword in schema:
            yield place + f"'{keyword}' is not permitted."
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            yield place + "'additionalProperties' is required to be supplied and to be false."
        missing = [key for key in schema.get("properties", {}) if key not in schema.get("required", ())]
        if missing:
            yield place + f"'required' must list every key in properties. Missing '{missing[0]}'."
    for group in ("properties", "$defs"):
        for key, inner in schema.get(group, {}).items():
            yield from strict_problems(inner, (*where, group, key))
    for number, inner in enumerate(schema.get("anyOf", ())):
        yield from strict_problems(inner, (*where, "anyOf", str(number)))
    if isinstance(schema.get("items"), dict):
        yield from strict_problems(schema["items"], (*where, "items"))


# --- what is answered ---------------------------------------------------------------------------------


def completion(request: Request, reply: Reply, manners: Personality, identifier: str) -> dict[str, Any]:
    """The body of a chat completion: what the model says, after this server's habits."""
    thought, mode = _thought(request, reply, manners)
    calls = None if manners.tools == "ignored" else _tool_calls(request, reply)
    text = "" if calls else _wrapped(request, reply, manners)
    if thought and mode == manners.thinking and request.wants_json and manners.thinking_and_json != "kept":
        if manners.thinking_and_json == "in_reasoning":
            thought, text = text, ""
        else:
            text = f"Having thought about it, this is my answer.\n{text}\nThat is all."
    spent = _Spent(request, manners)
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": reply.refusal}
    if mode == "separate":
        message[manners.reasoning_field] = spent.say(thought) or None
        spent.reasoning = spent.tokens
    elif thought:
        text = f"<think>{thought}</think>\n{text}" if mode == "inline" else f"{thought}</think>\n{text}"
    said = spent.say(text)
    if not calls and reply.refusal is None and (said or (reply.content is not None and mode != "separate")):
        message["content"] = said
    finish = reply.finish_reason
    if calls:
        _call(message, calls, spent)
        if finish == "stop" and not isinstance(request.body.get("tool_choice"), dict):
            finish = "tool_calls"  # OpenAI keeps `stop` where the choice names the function
    if spent.cut:
        finish = "length"
    choice: dict[str, Any] = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    number = (request.body.get("n") or 1) if manners.n == "many" else 1
    body: dict[str, Any] = {
        "id": identifier,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [{**choice, "index": index} for index in range(number)],
    }
    if manners.azure:
        body["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": content_filter_results()}]
        filtered = ("violence",) if finish == "content_filter" else ()
        for one in body["choices"]:
            one["content_filter_results"] = content_filter_results(*filtered)
    usage = _usage(request, manners, spent, number) if reply.usage is ... else reply.usage
    if usage is not None:
        body["usage"] = usage
    return body


class _Spent:
    """The token budget of one reply: `say` gives as much of a text as the limit still allows."""

    def __init__(self, request: Request, manners: Personality):
        asked = [request.body[name] for name in manners.limits if request.body.get(name) is not None]
        self.limit: float = asked[0] if asked else math.inf
        effort = EFFORT.get(request.body.get("reasoning_effort") or "medium", 1.0)
        hidden = int(manners.reasoning_tokens * effort)
        self.reasoning = self.tokens = int(min(hidden, self.limit))
        self.cut = hidden > self.limit

    def say(self, text: str) -> str:
        if not text:
            return text
        size, left = count_tokens(text), self.limit - self.tokens
        if size <= left:
            self.tokens += size
            return text
        self.tokens, self.cut = int(self.limit), True
        return first_tokens(text, int(left))


def _thought(request: Request, reply: Reply, manners: Personality) -> tuple[str, str]:
    """The visible reasoning and where it is shown."""
    if reply.reasoning_content is not None:
        return reply.reasoning_content, "separate" if manners.thinking == "off" else manners.thinking
    switches = request.body.get("chat_template_kwargs") or {}
    off = switches.get("enable_thinking", switches.get("thinking", True)) is False
    return ("", "off") if off or manners.thinking == "off" else (manners.thought, manners.thinking)


def _wrapped(request: Request, reply: Reply, manners: Personality) -> str:
    """The model's text with the fence or the prose that this server's model puts around JSON."""
    content = reply.content
    text = content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)
    if manners.wrap is None or (manners.wrap_when == "without_schema" and request.wants_json):
        return text
    if not text.lstrip().startswith(("{", "[")):
        return text
    if manners.wrap == "fence":
        return f"```json\n{text}\n```"
    return f"Sure! Here is the answer you asked for:\n{text}\nI hope this helps."


def _tool_calls(request: Request, reply: Reply) -> list[dict[str, Any]] | None:
    """The tool calls that were scripted, or the object that the model says as arguments of the tool."""
    pairs = reply.tool_calls
    if pairs is None:
        content = reply.content
        if request.tool is None:
            return None
        if not (isinstance(content, dict) or (isinstance(content, str) and content.lstrip().startswith("{"))):
            return None
        pairs = [(request.tool["name"], content)]
    calls = []
    for number, pair in enumerate(pairs):
        if isinstance(pair, dict):
            calls.append(pair)
            continue
        name, arguments = pair
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        function = {"name": name, "arguments": text}
        calls.append({"id": f"call_{request.index}_{number}", "type": "function", "function": function})
    return calls


def _call(message: dict[str, Any], calls: list[dict[str, Any]], spent: _Spent) -> None:
    """Put the calls into the message; arguments count as completion tokens and are cut like text."""
    message["tool_calls"] = [
        {**call, "function": {**call["function"], "arguments": spent.say(call["function"]["arguments"])}}
        for call in calls
    ]


def _usage(request: Request, manners: Personality, spent: _Spent, number: int) -> dict[str, Any] | None:
    if manners.usage == "none":
        return None
    prompt = count_prompt(request.text)
    if manners.overflow == "cut" and manners.context_window is not None:
        prompt = min(prompt, manners.context_window)
    completed = spent.tokens * number
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completed,
        "total_tokens": prompt + completed,
    }
    if manners.usage == "details":
        usage["prompt_tokens_details"] = {"cached_tokens": 0}
        usage["completion_tokens_details"] = {"reasoning_tokens": spent.reasoning * number}
    return usage
