"""One llm entry on the wire: which parameters it takes, one call with a deadline, one plain reply.

An `Endpoint` belongs to one llm entry and is shared by every evaluator that uses it. What the endpoint
shows about itself during a run (the token parameter it takes, parameters it refuses, whether it thinks
aloud) is kept in `findings`, said once, and written to the manifest. The chat model that was passed in is
never changed: settings travel with the call, or on a copy.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from ragparity.core.errors import JudgeError, JudgeUnavailable
from ragparity.core.ports import Tally, Usage
from ragparity_adapters import foreign_errors

TokenParam = Literal["max_tokens", "max_completion_tokens", "none"]
Finish = Literal["stop", "length", "filter", "refusal"]

_LENGTH = {
    "length",
    "max_tokens",
    "model_length",
    "max_output_tokens",
    "token_limit",
    "max_length",
    "incomplete",
}
_FILTERED = {
    "content_filter",
    "safety",
    "blocklist",
    "prohibited_content",
    "guardrail_intervened",
    "recitation",
}
_SAMPLING = ("temperature", "top_p", "seed", "stop", "n", "logprobs", "presence_penalty", "frequency_penalty")
_STRUCTURED = ("response_format", "json_schema", "tool_choice", "tools", "strict", "structured output")
_LIMIT_FIELDS = ("max_tokens", "max_output_tokens", "max_new_tokens", "num_predict", "max_tokens_to_sample")
_PARAMETER_STATUSES = (foreign_errors.HTTP_BAD_REQUEST, foreign_errors.HTTP_UNPROCESSABLE)
_MOST_ADAPTATIONS = 6


class StructureNotTaken(Exception):  # a signal to the ladder, not an error a user sees
    """The endpoint refuses this way of asking for a structured answer; the ladder goes one rung down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call: messages, the token limit (`None`: unlimited), and how the structure is asked for."""

    messages: tuple[BaseMessage, ...]
    limit: int | None
    timeout_s: float
    temperature: float | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    structured: Callable[[BaseChatModel], Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, told apart: text, reasoning, the arguments of a tool call, why it ended, tokens."""

    text: str
    reasoning: str
    tool_args: Any
    finish: Finish
    usage: Usage
    limit: int | None
    parsed: Any = None

    def raw(self) -> str:
        """The text as a person would want to see it in an error."""
        return self.text or (repr(self.tool_args) if self.tool_args is not None else self.reasoning)


@dataclass(slots=True)
class Findings:
    """What an endpoint has shown about itself."""

    token_param: TokenParam = "max_completion_tokens"
    token_params_tried: set[str] = field(default_factory=set)
    token_param_confirmed: bool = False
    dropped: set[str] = field(default_factory=set)
    rung: int = 0
    rung_confirmed: bool = False
    thinks: bool = False
    system_message: bool = True
    said: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Keep a line for the user, once."""
        if line not in self.said:
            self.said.append(line)


class Endpoint:
    """A LangChain chat model behind one method, `call`.

    `name` is the name of the llm entry, `ceiling` the token limit that the user set on it, `close` what closes
    connections that belong to nobody else.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        name: str,
        identity: str,
        ceiling: int | None = None,
        token_param: TokenParam | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._close = close
        self.identity = identity
        self.openai_family = any(cls.__name__ == "BaseChatOpenAI" for cls in type(model).__mro__) and not getattr(
            model, "use_responses_api", False
        )
        self.limit_field = next((one for one in _LIMIT_FIELDS if one in type(model).model_fields), None)
        set_on_model = getattr(model, self.limit_field) if self.limit_field else None
        limits = [limit for limit in (ceiling, set_on_model) if isinstance(limit, int)]
        self.ceiling = min(limits) if limits else None
        if self.openai_family and set_on_model is not None and self.limit_field:
            model = model.model_copy(update={self.limit_field: None})
        self.model = model
        self.findings = Findings(token_param=token_param or "max_completion_tokens")
        self._left_behind: set[asyncio.Future[Any]] = set()

    async def aclose(self) -> None:
        """Close the client's connections, where they are ours; on the loop on which they were opened."""
        if self._close is not None:
            await self._close()

    async def call(self, request: Request, tally: Tally) -> Reply:
        """One readable reply; raises a `JudgeError`, or `StructureNotTaken` for the ladder.

        A refusal that names a parameter is mended once per parameter (renamed or dropped) and put again
        at once, since the same request could never succeed.
        """
        for _ in range(_MOST_ADAPTATIONS):
            try:
                message = await self._once(request, tally)
            except JudgeError:
                raise
            except _ClientFault as fault:
                if self._adapts(fault.error, request):
                    continue
                known = foreign_errors.translate(fault.error, self.name)
                if known is None:
                    raise fault.error from None
                raise known from fault.error
            reply = self._read(message, request)
            self._check_limit(reply)
            return reply
        raise JudgeUnavailable(f"{self.name}: the endpoint refused {_MOST_ADAPTATIONS} forms of the request in a row")

    # -- one attempt on the wire

    async def _once(self, request: Request, tally: Tally) -> Any:
        task = self._start(request)
        cost = Usage()
        try:
            await asyncio.wait({task}, timeout=request.timeout_s)
            if not task.done():
                raise foreign_errors.timed_out(self.name, request.timeout_s)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                if foreign_errors.status_of(error) is not None:
                    cost = Usage(input_tokens=0, output_tokens=0)
                raise _ClientFault(error)
            result = task.result()
            cost = usage_of(_message_in(result))
            return result
        finally:
            tally.call(cost)
            if not task.done():
                self._abandon(task)

    def _start(self, request: Request) -> asyncio.Future[Any]:
        model, kwargs = self._prepared(request)
        messages = list(request.messages if self.findings.system_message else _merged(request.messages))
        runnable = request.structured(model) if request.structured is not None else model
        if type(self.model)._agenerate is BaseChatModel._agenerate:  # noqa: SLF001  # how LangChain marks a sync-only model
            return _in_daemon_thread(lambda: runnable.invoke(messages, **kwargs))
        return asyncio.ensure_future(runnable.ainvoke(messages, **kwargs))

    def _prepared(self, request: Request) -> tuple[BaseChatModel, dict[str, Any]]:
        """The model to call and the keyword arguments of this call."""
        dropped = self.findings.dropped
        model, kwargs = self.model, {}
        on_copy: dict[str, Any] = {
            name: None for name in dropped if name in type(model).model_fields and getattr(model, name) is not None
        }
        if request.temperature is not None and "temperature" not in dropped:
            kwargs["temperature"] = request.temperature
        body = dict(request.body)
        if self.openai_family:
            if request.limit is not None and self.findings.token_param != "none":
                body[self.findings.token_param] = request.limit
            tools = {name: body.pop(name) for name in ("tools", "tool_choice") if name in body}
            kwargs |= tools
            if body:
                kwargs["extra_body"] = {**(getattr(model, "extra_body", None) or {}), **body}
        elif request.limit is not None and self.findings.token_param != "none":
            if self.limit_field is not None:
                on_copy[self.limit_field] = request.limit
            elif request.structured is None:
                kwargs["max_tokens"] = request.limit
        return (model.model_copy(update=on_copy) if on_copy else model), kwargs

    def _abandon(self, task: asyncio.Future[Any]) -> None:
        """Cancel a call and do not wait for it: a client that ignores cancellation must not hold the run."""
        task.cancel()
        self._left_behind.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()

    # -- what the endpoint shows about itself

    def _adapts(self, error: BaseException, request: Request) -> bool:
        """Whether a refused request can be put again in another form; raises `StructureNotTaken` for the ladder."""
        found, text = self.findings, foreign_errors.text_of(error)
        refused = foreign_errors.status_of(error) in _PARAMETER_STATUSES
        if not refused and not isinstance(error, TypeError | ValueError | NotImplementedError | AttributeError):
            return False
        named = _named_parameter(error, text, refused=refused)
        asked_structure = request.structured is not None or bool({"response_format", "tools"} & request.body.keys())
        if asked_structure and (named in _STRUCTURED or not refused):
            raise StructureNotTaken(text) from None
        if named in ("max_tokens", "max_completion_tokens") and request.limit is not None:
            return self._other_token_param(f"refused {named}")
        if named in _SAMPLING and named not in found.dropped and self._sends(named, request):
            found.dropped.add(named)
            found.say(f"{self.name}: the endpoint refuses {named}; it is left out from now on ({text})")
            return True
        if refused and found.system_message and re.search(r"system (role|message|prompt)", text, re.IGNORECASE):
            found.system_message = False
            found.say(f"{self.name}: the endpoint takes no system message; rules go to the user message")
            return True
        return False

    def _sends(self, name: str, request: Request) -> bool:
        on_call = name == "temperature" and request.temperature is not None
        return on_call or getattr(self.model, name, None) is not None

    def _other_token_param(self, why: str) -> bool:
        """Switch to the other spelling of the token limit, then to none at all; false when all were tried."""
        found = self.findings
        found.token_params_tried.add(found.token_param)
        order: tuple[TokenParam, ...] = ("max_tokens", "max_completion_tokens", "none")
        other = next((one for one in order if one not in found.token_params_tried), None)
        if other is None:
            return False
        found.say(f"{self.name}: the endpoint {why}; the token limit is now sent as {other}")
        found.token_param = other
        return True

    def _check_limit(self, reply: Reply) -> None:
        """Notice an endpoint that ignores the token limit, and try the other spelling once."""
        found, written = self.findings, reply.usage.output_tokens
        if reply.limit is None or written is None or not self.openai_family or found.token_param == "none":
            return
        if written > reply.limit + 1 and not found.token_param_confirmed:
            if not found.token_params_tried:
                self._other_token_param(f"wrote {written} tokens where {found.token_param} said {reply.limit}")
        elif written == reply.limit and reply.finish == "length":
            found.token_param_confirmed = True

    def _read(self, result: Any, request: Request) -> Reply:
        message = _message_in(result)
        text, reasoning = _parts(message.content)
        extra = message.additional_kwargs
        reasoning = reasoning or str(extra.get("reasoning_content") or extra.get("reasoning") or "")
        finish = finish_of(message)
        if extra.get("refusal"):
            text, finish = text or str(extra["refusal"]), "refusal"
        calls = message.tool_calls
        args = calls[0]["args"] if calls else None
        if args is None and message.invalid_tool_calls:
            args = message.invalid_tool_calls[0].get("args")
        parsed = result.get("parsed") if isinstance(result, Mapping) else None
        if not isinstance(result, Mapping | AIMessage):
            parsed = result
        return Reply(text, reasoning, args, finish, usage_of(message), request.limit, parsed)


class _ClientFault(Exception):  # carries a client's error out of the task, is always caught here
    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def _in_daemon_thread(work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Run blocking work in a thread of its own, so that a hung call blocks neither the others nor the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(give: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            give(value)

    def run() -> None:
        try:
            result, error = work(), None
        except BaseException as raised:  # noqa: BLE001  # carried over to the waiting task, whatever it is
            result, error = None, raised
        give, value = (future.set_result, result) if error is None else (future.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, give, value)

    threading.Thread(target=run, name="ragparity-judge", daemon=True).start()
    return future


def _message_in(result: Any) -> AIMessage:
    """The message in whatever a model or a structured runnable returned."""
    if isinstance(result, Mapping) and isinstance(result.get("raw"), AIMessage):
        message: AIMessage = result["raw"]
        return message
    return result if isinstance(result, AIMessage) else AIMessage(content="")


def _parts(content: str | Sequence[Any]) -> tuple[str, str]:
    """Text and reasoning of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content, ""
    text, reasoning = [], []
    for part in content:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, Mapping):
            kind = str(part.get("type", "text"))
            if kind in ("thinking", "reasoning", "reasoning_content"):
                said = part.get("thinking") or part.get("reasoning") or part.get("text") or part.get("summary") or ""
                reasoning.append(str(said))
            elif isinstance(part.get("text"), str):
                text.append(part["text"])
    return "".join(text), "".join(reasoning)


def finish_of(message: AIMessage) -> Finish:
    """Why the reply ended, from every spelling in use; unknown ones count as a normal end."""
    about = message.response_metadata
    word = next(
        (
            about[key]
            for key in ("finish_reason", "stop_reason", "done_reason", "stopReason", "status")
            if about.get(key)
        ),
        "",
    )
    folded = str(word).rpartition(".")[2].casefold()
    if folded in _LENGTH:
        return "length"
    if folded in _FILTERED:
        return "filter"
    return "refusal" if folded == "refusal" else "stop"


def usage_of(message: AIMessage) -> Usage:
    """Tokens as reported; what is not reported is unknown."""
    seen = message.usage_metadata
    if not seen or not (seen.get("input_tokens") or seen.get("output_tokens")):
        return Usage()
    return Usage(
        seen.get("input_tokens"),
        seen.get("output_tokens"),
        (seen.get("output_token_details") or {}).get("reasoning"),
        (seen.get("input_token_details") or {}).get("cache_read"),
    )


def _named_parameter(error: BaseException, text: str, *, refused: bool) -> str | None:
    """The request parameter that an error is about."""
    stated = getattr(error, "param", None)
    for name in (*_STRUCTURED, "max_completion_tokens", "max_tokens", *_SAMPLING):
        if stated == name or (isinstance(stated, str) and stated.split(".")[0] == name):
            return name
    if not refused and not isinstance(error, TypeError):
        return None
    words = [name for name in ("max_completion_tokens", "max_tokens", *_STRUCTURED, *_SAMPLING) if len(name) > 1]
    at = {name: where.start() for name in words if (where := re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE))}
    return min(at, key=at.__getitem__) if at else None


def _merged(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The system message put in front of the user message, for endpoints that take no system message."""
    system = "\n".join(str(one.content) for one in messages if isinstance(one, SystemMessage))
    rest = [one for one in messages if not isinstance(one, SystemMessage)]
    if not system or not rest:
        return list(messages)
    return [HumanMessage(f"{system}\n\n{rest[0].content}"), *rest[1:]]
