"""One llm entry on the wire: which parameters it takes, one call with a deadline, one plain reply.

An `Endpoint` belongs to one llm entry and is shared by every evaluator that uses it. What the endpoint
shows about itself during a run (the token parameter it takes, parameters it refuses, whether it thinks
aloud) is kept in `findings`, said once, and written to the manifest. The chat model that was passed in is
never changed: settings travel with the call, or on a copy that is made once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableBinding

from ragparity.core.errors import JudgeRejected
from ragparity.core.ports import Tally, Usage
from ragparity_adapters import calls, foreign_errors
from ragparity_adapters.chat_reply import Reply, message_in, reply_of, usage_of
from ragparity_adapters.findings import (
    LIMITS,
    STRUCTURE,
    Findings,
    TokenParam,
    is_about_structure,
    is_about_system_message,
    named_parameter,
    room,
)
from ragparity_adapters.held_secrets import hidden, layers, secrets_of

if TYPE_CHECKING:
    from pydantic import BaseModel
from ragparity_adapters.prompt_sizes import PromptSizes

__all__ = ["Endpoint", "Findings", "Reply", "Request", "StructureNotTaken", "StructuredBy", "TokenParam"]

_LIMIT_FIELDS = ("max_tokens", "max_output_tokens", "max_new_tokens", "num_predict", "max_tokens_to_sample")
_SETTINGS = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "stop",
    "n",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "reasoning",
    "verbosity",
    "service_tier",
    "store",
)
_REFUSALS = (foreign_errors.HTTP_BAD_REQUEST, foreign_errors.HTTP_UNPROCESSABLE, foreign_errors.HTTP_NOT_IMPLEMENTED)
_CLIENT_REFUSES = (TypeError, ValueError, NotImplementedError, AttributeError)
_MOST_ADAPTATIONS = 8
_MOST_COPIES = 64


class StructureNotTaken(Exception):  # a signal to the ladder, not an error a user sees
    """The endpoint refuses this way of asking for a structured answer; the ladder goes one rung down.

    `certain`: the refusal speaks of the structure. Otherwise it may be about something else in the request.
    """

    def __init__(self, text: str, error: BaseException, *, certain: bool) -> None:
        super().__init__(text)
        self.error = error
        self.certain = certain


@dataclass(frozen=True, slots=True)
class StructuredBy:
    """A structured answer asked for through LangChain's `with_structured_output`."""

    schema: type[BaseModel]
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call: messages, the token limit (`None`: unlimited), and how the structure is asked for.

    `body` are parts of the request body of an OpenAI-style client, `structured` is for all others.
    """

    messages: tuple[BaseMessage, ...]
    limit: int | None
    timeout_s: float
    temperature: float | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    structured: StructuredBy | None = None

    @property
    def asks_structure(self) -> bool:
        """Whether more than plain text is asked for."""
        return self.structured is not None or bool(self.body)


@dataclass(frozen=True, slots=True)
class _Form:
    """In which form a request went out: what has changed since then need not be changed again."""

    token_param: str
    limit: int | None
    dropped: frozenset[str]
    system_message: bool


class Endpoint:
    """A LangChain chat model behind one method, `call`.

    `name` is the name of the llm entry, `ceiling` the token limit that the user set on it; a limit that stands on
    the model itself is a ceiling too. `system_line` ends every system message (how some models are told to think or
    not to); `verify_ssl` is for clients whose connections are ours.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str,
        identity: str,
        ceiling: int | None = None,
        token_param: TokenParam | None = None,
        verify_ssl: bool = True,
        system_line: str | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self._system_line = system_line
        self._bound: dict[str, Any] = {}
        self._config: Any = {}
        while type(model) is RunnableBinding or type(model).__name__ == "_ChatModelBinding":
            self._bound = {**model.kwargs, **self._bound}
            self._config = {**model.config, **self._config}
            model = model.bound
        self.model = model
        self._secrets = secrets_of(model, self._bound)
        self.is_chat_model = isinstance(model, BaseChatModel)
        self.openai_family = any(cls.__name__ == "BaseChatOpenAI" for cls in type(model).__mro__) and not getattr(
            model, "use_responses_api", False
        )
        self._speaks_openai = any(
            cls.__name__ == "BaseChatOpenAI" for one in layers(model) for cls in type(one).__mro__
        )
        self._fields: Mapping[str, Any] = getattr(type(model), "model_fields", {})
        self.limit_field = next((one for one in _LIMIT_FIELDS if one in self._fields), None)
        self.ceiling = self._lowest(ceiling)
        first = (token_param or "max_completion_tokens") if self.openai_family else (self.limit_field or "max_tokens")
        self.findings = Findings(token_param=first)
        self.sizes = PromptSizes()
        self._blocks = calls.only_blocks(model)
        self._clients = calls.ClientPerLoop(model, verify=verify_ssl)
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[frozenset[str], Any]] = WeakKeyDictionary()
        self._copies: dict[Any, Any] = {}

    async def aclose(self) -> None:
        """Close the connections that were opened on the running event loop, where they are ours."""
        await self._clients.aclose()
        self._of_loop.pop(asyncio.get_running_loop(), None)

    @property
    def structured_calls(self) -> str:
        """Which ways of asking for structure the client has: `all`, `tool` alone, or `none`."""
        if self.openai_family:
            return "all"
        if not self.is_chat_model:
            return "none"
        if type(self.model).with_structured_output is not BaseChatModel.with_structured_output:
            return "all"
        return "none" if type(self.model).bind_tools is BaseChatModel.bind_tools else "tool"

    def can_limit(self, *, structured: bool) -> bool:
        """Whether a token limit can be said in a call."""
        return self.openai_family or self.limit_field is not None or not structured

    async def call(self, request: Request, tally: Tally) -> Reply:
        """One readable reply; raises a `JudgeError`, or `StructureNotTaken` for the ladder.

        A refusal that names a parameter is mended once per parameter (renamed, lowered or dropped) and the request
        put again at once, since the same request could never succeed.
        """
        limit = request.limit
        for _ in range(_MOST_ADAPTATIONS):
            found = self.findings
            limit = self._within_known_bounds(limit)
            form = _Form(found.token_param, limit, found.dropped, found.system_message)
            try:
                result = await self._once(request, form, tally)
            except _ClientFault as fault:
                adapted = self._adapts(fault.error, request, form)
                if adapted is None:
                    known = foreign_errors.translate(
                        fault.error, self.name, speaks_openai=self._speaks_openai, secrets=self._secrets
                    )
                    if known is None:
                        fault.error.args = hidden(fault.error.args, self._secrets)
                        raise fault.error from None
                    raise known from fault.error
                limit = adapted.limit
                continue
            reply = reply_of(result, None if form.token_param == "none" else limit, self._secrets)
            self._check_limit(reply, form)
            return reply
        text = f"{self.name}: the endpoint refused {_MOST_ADAPTATIONS} forms of the request in a row"
        raise JudgeRejected(text, judge=self.identity)

    # -- one attempt on the wire

    async def _once(self, request: Request, form: _Form, tally: Tally) -> Any:
        cost = Usage()
        try:
            try:
                future = await self._start(request, form)
            except _CLIENT_REFUSES as error:
                cost = Usage(input_tokens=0, output_tokens=0)
                raise _ClientFault(error) from error
            if not await calls.within(request.timeout_s, future):
                raise foreign_errors.timed_out(self.name, request.timeout_s)
            fault = foreign_errors.cut_off() if future.cancelled() else future.exception()
            if fault is not None:
                if foreign_errors.status_of(fault) is not None:
                    cost = Usage(input_tokens=0, output_tokens=0)
                raise _ClientFault(fault)
            result = future.result()
            cost = usage_of(message_in(result))
            return result
        finally:
            tally.call(cost)

    async def _start(self, request: Request, form: _Form) -> asyncio.Future[Any]:
        model, kwargs = await self._prepared(request, form)
        said = _with_line(request.messages, self._system_line) if self._system_line else request.messages
        messages = list(said if form.system_message else _merged(said))
        if self._blocks:
            return calls.in_daemon_thread(lambda: model.invoke(messages, self._config or None, **kwargs))
        return cast(
            "asyncio.Future[Any]", asyncio.ensure_future(model.ainvoke(messages, self._config or None, **kwargs))
        )

    async def _prepared(self, request: Request, form: _Form) -> tuple[Any, dict[str, Any]]:
        """The runnable to call and the keyword arguments of this call."""
        temperature = None if "temperature" in form.dropped else request.temperature
        limit = None if form.token_param == "none" else form.limit
        kwargs = {name: value for name, value in self._bound.items() if name not in form.dropped}
        if self.openai_family:
            model = await self._openai_model(form.dropped)
            kwargs |= {"temperature": temperature} if temperature is not None else {}
            body = dict(request.body)
            if limit is not None:
                body[form.token_param] = limit
            kwargs |= {name: body.pop(name) for name in ("tools", "tool_choice") if name in body}
            if body:
                set_by_user = {**(model.extra_body or {}), **(kwargs.get("extra_body") or {})}
                kwargs["extra_body"] = {**set_by_user, **body}
            return model, kwargs
        on_copy: dict[str, Any] = {}
        for name, value in (("temperature", temperature), (self.limit_field or "max_tokens", limit)):
            if value is not None and name in self._fields:
                on_copy[name] = value
            elif value is not None and request.structured is None:
                kwargs[name] = value
        return self._copy(on_copy, form.dropped, request.structured), kwargs

    async def _openai_model(self, dropped: frozenset[str]) -> Any:
        """The model without its own limit and without what the endpoint refuses, for the running event loop."""
        loop = asyncio.get_running_loop()
        ready = self._of_loop.get(loop)
        if ready is None or ready[0] != dropped:
            changes = {**self._without((*LIMITS, *dropped)), **await self._clients.fields()}
            ready = self._of_loop[loop] = dropped, self.model.model_copy(update=changes) if changes else self.model
        return ready[1]

    def _without(self, names: Sequence[str]) -> dict[str, Any]:
        """The fields of a copy of the model that does not send these parameters."""
        changes: dict[str, Any] = {
            name: None for name in names if name in self._fields and getattr(self.model, name, None) is not None
        }
        for holder in ("model_kwargs", "extra_body"):
            held = getattr(self.model, holder, None)
            if isinstance(held, Mapping) and any(name in held for name in names):
                changes[holder] = {name: value for name, value in held.items() if name not in names}
        return changes

    def _copy(self, changes: dict[str, Any], dropped: frozenset[str], structured: StructuredBy | None) -> Any:
        """The model with these fields, made once for the calls that need the same ones."""
        key = (*sorted(changes.items()), dropped, structured)
        if key not in self._copies:
            if len(self._copies) >= _MOST_COPIES:
                self._copies.clear()
            changes = {**self._without(tuple(dropped)), **changes}
            model = self.model.model_copy(update=changes) if changes else self.model
            if structured is not None:
                model = model.with_structured_output(structured.schema, method=structured.method, include_raw=True)
            self._copies[key] = model
        return self._copies[key]

    # -- what the endpoint shows about itself

    def _adapts(self, error: BaseException, request: Request, form: _Form) -> _Form | None:
        """The form in which a refused request is put again; raises `StructureNotTaken` for the ladder.

        Another call may have learnt the same in the meantime; then the request only takes the new form.
        """
        found, status = self.findings, foreign_errors.status_of(error)
        text = foreign_errors.text_of(error, self._secrets)
        if status and status >= foreign_errors.HTTP_BAD_REQUEST and is_about_system_message(text):
            return self._no_system_message(form)
        if foreign_errors.is_unreadable(error):
            return None
        refused = status in _REFUSALS
        client_refuses = status is None and not self.openai_family and isinstance(error, _CLIENT_REFUSES)
        if not refused and not client_refuses:
            return None
        if refused and form.limit is not None:
            value, always = room(text, form.limit)
            if value is not None:
                return self._other_limit(value, form, always=always)
        if refused and foreign_errors.is_about_prompt(error):
            return None
        named = named_parameter(error, text, (*STRUCTURE, *self._sends(request, form)))
        if named in LIMITS or (named is not None and named == self.limit_field):
            return self._other_token_param(f"refuses {named}", form)
        if named is not None and named not in STRUCTURE:
            if named not in found.dropped:
                found.dropped |= {named}
                found.say(f"{self.name}: the endpoint refuses {named}; it is left out from now on ({text})")
            return form
        if request.asks_structure:
            certain = client_refuses or named in STRUCTURE or is_about_structure(text)
            raise StructureNotTaken(text, error, certain=certain) from None
        return None

    def _sends(self, request: Request, form: _Form) -> list[str]:
        """The names of the settings that a request carries, as far as they can be left out."""
        names = [name for name in _SETTINGS if getattr(self.model, name, None) is not None]
        for holder in (getattr(self.model, "model_kwargs", None), getattr(self.model, "extra_body", None), self._bound):
            names += list(holder or ())
        if request.temperature is not None:
            names.append("temperature")
        return [name for name in names if name not in form.dropped]

    def _no_system_message(self, form: _Form) -> _Form | None:
        if not form.system_message:
            return None
        self.findings.system_message = False
        self.findings.say(f"{self.name}: the endpoint takes no system message; rules go to the user message")
        return form

    def _other_limit(self, value: int, form: _Form, *, always: bool) -> _Form | None:
        """Another value of the token limit: what the endpoint has room for, or its least, under the ceiling."""
        found = self.findings
        if form.limit is not None and value > form.limit:
            if self.ceiling is not None and value > self.ceiling:
                return None
            found.least = max(found.least, value)
            found.say(f"{self.name}: the endpoint takes no token limit below {value}")
        elif always:
            found.most = value if found.most is None else min(found.most, value)
            found.say(f"{self.name}: the endpoint takes no token limit above {value}")
        else:
            found.say(f"{self.name}: the context window leaves less room than asked for; the token limit is lowered")
        return _Form(form.token_param, value, form.dropped, form.system_message)

    def _within_known_bounds(self, limit: int | None) -> int | None:
        if limit is None:
            return None
        limit = max(limit, self.findings.least)
        return limit if self.findings.most is None else min(limit, self.findings.most)

    def _other_token_param(self, why: str, form: _Form) -> _Form | None:
        """Switch to the other spelling of the token limit, then to none at all; `None` when all were tried."""
        found = self.findings
        if form.token_param != found.token_param:
            return form
        found.token_params_tried.add(form.token_param)
        order = ("max_tokens", "max_completion_tokens", "none") if self.openai_family else ("none",)
        other = next((one for one in order if one not in found.token_params_tried), None)
        if other is None:
            return None
        how = "no limit is sent any more" if other == "none" else f"the token limit is now sent as {other}"
        found.say(f"{self.name}: the endpoint {why}; {how}")
        found.token_param = other
        return form

    def _check_limit(self, reply: Reply, form: _Form) -> None:
        """Notice an endpoint that ignores the token limit, and try the other spelling once."""
        found, written = self.findings, reply.usage.output_tokens
        if reply.limit is None or written is None or not self.openai_family or form.token_param != found.token_param:
            return
        if written > reply.limit + 1 and not found.token_param_confirmed and not found.token_params_tried:
            self._other_token_param(f"wrote {written} tokens where {form.token_param} said {reply.limit}", form)
        elif written == reply.limit and reply.finish == "length":
            found.token_param_confirmed = True

    # -- small things

    def _lowest(self, ceiling: int | None) -> int | None:
        """The lowest of the limits that the user set: on the entry, on the model, or in what the model sends along."""
        limits: list[Any] = [ceiling, getattr(self.model, self.limit_field, None) if self.limit_field else None]
        for holder in (getattr(self.model, "model_kwargs", None), getattr(self.model, "extra_body", None), self._bound):
            limits += [(holder or {}).get(name) for name in LIMITS] if isinstance(holder, Mapping) else []
        for name in LIMITS:
            self._bound.pop(name, None)
        known = [limit for limit in limits if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0]
        return min(known, default=None)


class _ClientFault(Exception):  # carries a client's error out of the call, is always caught here
    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def _with_line(messages: Sequence[BaseMessage], line: str) -> list[BaseMessage]:
    """The messages with a line at the end of the system message, or as one where there is none."""
    if messages and isinstance(messages[0], SystemMessage):
        return [SystemMessage(f"{messages[0].content}\n{line}"), *messages[1:]]
    return [SystemMessage(line), *messages]


def _merged(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The system message put in front of the user message, for endpoints that take no system message."""
    system = "\n".join(str(one.content) for one in messages if isinstance(one, SystemMessage))
    rest = [one for one in messages if not isinstance(one, SystemMessage)]
    if not system or not rest:
        return list(messages)
    return [HumanMessage(f"{system}\n\n{rest[0].content}"), *rest[1:]]
