"""Any LangChain chat model as a judge: a budget per answer, a ladder of ways to ask for structure, strict reading.

A rating is asked for as one bare number within `RATING_TOKENS` tokens, or, with `output: structured`, as an
object with the reason first. A structured answer is asked for down a ladder: JSON schema, tool call, JSON
mode, prompt and parse. The form of the object is said in words on every rung, so that an endpoint which ignores
a schema can still answer. The first rung that works is kept for the run; a reply of the wrong shape, an empty
one, the schema echoed back, or one cut although it had all the room it needs is a miss of that rung, and the
next attempt asks one rung lower.

Each answer gets the budget that it needs, never above a ceiling that the user set. A judge that thinks
aloud gets an allowance on top for the rest of the run, once it has shown it; text inside reasoning is never
read as an answer.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from ragparity.core.errors import AmbiguousRating, JudgeError, JudgeRefused, JudgeRejected, MalformedVerdict, Truncated
from ragparity.core.ports import RATED_WITH_REASON, Answer, Question, Rating, Structured, Tally
from ragparity.core.ports import Text as FreeText
from ragparity.core.user_rules import filled
from ragparity_adapters import schemas
from ragparity_adapters.chat_reply import as_text, declines
from ragparity_adapters.endpoint import Endpoint, Reply, Request, StructuredBy, StructureNotTaken
from ragparity_adapters.findings import window_in
from ragparity_adapters.ratings import read_rating
from ragparity_adapters.replies import read_object, strip_reasoning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

Rung = Literal["json_schema", "tool", "json_mode", "prompt"]
RUNGS: tuple[Rung, ...] = ("json_schema", "tool", "json_mode", "prompt")
_FIRST = {"all": 0, "tool": 1, "none": 3}
_METHODS = {"json_schema": "json_schema", "tool": "function_calling", "json_mode": "json_mode"}

ALLOWANCES = (0, 4096, 16384)
"""Tokens on top of an answer's own budget: for a judge that answers at once, thinks, thinks at length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """What an evaluator says about its judge. Nothing that is `None` is ever sent.

    `max_tokens` is a ceiling on top of that of the llm entry; `reasoning` says beforehand whether the model
    thinks aloud (`None`: find out); `structured` pins a rung. `language` is that of the answer's texts, `prompt` the
    user's own rules (see `ragparity.core.user_rules`); neither touches a wrapped framework's prompt.
    """

    output: Literal["auto", "rating", "structured"] = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    timeout_s: float = 60.0
    reasoning: bool | None = None
    structured: Literal["auto", "json_schema", "tool", "json_mode", "prompt"] = "auto"
    language: str | None = None
    prompt: str | None = None
    context_window: int | None = None


class LangChainJudge:
    """One evaluator's judge: an endpoint and the options for it."""

    def __init__(self, endpoint: Endpoint, options: JudgeOptions | None = None) -> None:
        self.endpoint = endpoint
        self.options = options or JudgeOptions()
        limits = [limit for limit in (endpoint.ceiling, self.options.max_tokens) if limit is not None]
        self.ceiling = min(limits) if limits else None
        self._first = _FIRST[endpoint.structured_calls]

    @property
    def identity(self) -> str:
        """The endpoint and every option that can change an answer."""
        said = self.options
        parts = {
            "output": said.output if said.output != "auto" else None,
            "max_tokens": self.ceiling,
            "temperature": said.temperature,
            "structured": said.structured if said.structured != "auto" else None,
            "context_window": said.context_window,
            "language": said.language,
            "rules": hashlib.sha256(said.prompt.encode("utf-8", "replace")).hexdigest()[:12] if said.prompt else None,
        }
        shown = ", ".join(f"{name}={value}" for name, value in parts.items() if value is not None)
        return f"{self.endpoint.identity} ({shown})" if shown else self.endpoint.identity

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """One attempt at an answer; raises a `JudgeError`."""
        shape = question.shape
        question = self._with_own_rules(question)
        try:
            if isinstance(shape, Structured):
                return await self._structured(question, shape.schema, tally)
            if isinstance(shape, Rating):
                if self.options.output == "structured" or not shape.scale.bare:
                    return await self._rating_with_reason(question, shape, tally)
                return await self._bare_rating(question, shape, tally)
            return await self._free_text(question, shape, tally)
        except JudgeError as error:
            error.judge = self.identity
            raise

    def _with_own_rules(self, question: Question) -> Question:
        """The question with the user's rules and language; a wrapped framework's prompt stays as it is."""
        prompt, shape, said = question.prompt, question.shape, self.options
        if prompt.text is not None:
            return question
        rated = isinstance(shape, Rating) and (said.output == "structured" or not shape.scale.bare)
        reasoned = rated or (isinstance(shape, Structured) and "reason" in shape.schema.model_fields)
        ready = prompt.in_language(said.language, reasoned=reasoned)
        if said.prompt:
            scale = {"scale": shape.scale.spelled} if isinstance(shape, Rating) else {}
            ready = replace(ready, rules=(*ready.rules, filled(said.prompt.strip(), scale)))
        return question if ready is prompt else replace(question, prompt=ready)

    # -- the three shapes

    async def _free_text(self, question: Question, _shape: FreeText, tally: Tally) -> Answer:
        reply = await self._reply(question, self._messages(question), tally)
        visible, _ = strip_reasoning(self._visible(reply))
        if reply.finish == "length":
            raise self._cut(reply)
        return Answer(visible, visible, usage=reply.usage)

    async def _bare_rating(self, question: Question, shape: Rating, tally: Tally) -> Answer:
        spelled = shape.scale.spelled
        number = spelled if spelled.startswith("a ") else f"one number, {spelled},"
        rule = f"Answer with {number} and nothing else."

        def read(reply: Reply) -> float:
            return read_rating(self._visible(reply), shape.scale, cut=reply.finish == "length")

        reply = await self._reply(question, self._messages(question, rule), tally, read=read)
        try:
            rating = read(reply)
        except (MalformedVerdict, AmbiguousRating, Truncated) as error:
            raise self._unreadable(error, reply) from error
        return Answer(rating, reply.raw(), usage=reply.usage)

    async def _rating_with_reason(self, question: Question, shape: Rating, tally: Tally) -> Answer:
        schema = schemas.rating_schema(shape.scale)
        budget = max(question.budget, RATED_WITH_REASON)
        answer = await self._structured(replace(question, shape=Structured(schema), budget=budget), schema, tally)
        rating = shape.scale.point(answer.value.rating)
        if rating is None:
            text = f"{self.endpoint.name}: the rating {answer.value.rating} is not {shape.scale.listed}"
            raise AmbiguousRating(text, raw=answer.raw)
        return Answer(rating, answer.raw, reason=answer.value.reason, usage=answer.usage)

    async def _structured(self, question: Question, schema: type[BaseModel], tally: Tally) -> Answer:
        rung = self._rung()
        while True:
            messages = self._structured_messages(question, schema, rung)
            try:
                reply = await self._reply(question, messages, tally, rung=rung, schema=schema)
            except StructureNotTaken as refused:
                rung = self._refused_rung(rung, refused)
                continue
            except MalformedVerdict:
                self._missed(rung)
                raise
            self._reached(rung)
            try:
                value = self._object(reply, schema)
            except (MalformedVerdict, AmbiguousRating, Truncated) as error:
                told = self._unreadable(error, reply)
                if isinstance(told, Truncated):
                    # with a budget that should have done, asking in another way may still do
                    told.retryable = not self._bound(reply) and told.kind == "truncated" and self._missed(rung)
                elif isinstance(told, MalformedVerdict):
                    self._missed(rung)
                raise told from error
            self._worked(rung)
            return Answer(value, reply.raw(), usage=reply.usage)

    # -- the ladder

    def _rung(self) -> Rung:
        pinned = self.options.structured
        if pinned != "auto":
            return pinned
        rung = RUNGS[max(self.endpoint.findings.rung, self._first)]
        fits = rung == "prompt" or self.ceiling is None or self.endpoint.can_limit(structured=True)
        return rung if fits else "prompt"

    def _refused_rung(self, rung: Rung, refused: StructureNotTaken) -> Rung:
        """The rung to ask on after a refusal; one that may be about something else changes nothing for others yet."""
        if self.options.structured != "auto" or rung == "prompt":
            text = f"{self.endpoint.name}: the endpoint refuses structured answers by {rung}: {refused}"
            raise JudgeRejected(text) from refused.error
        if refused.certain:
            self._down(rung, f"refuses {rung} ({refused})")
        return RUNGS[max(RUNGS.index(rung) + 1, RUNGS.index(self._rung()))]

    def _missed(self, rung: Rung) -> bool:
        """A reply on this rung was no answer; unless the rung has worked before, the next attempt asks lower."""
        if self.endpoint.findings.rung_confirmed and self.endpoint.findings.rung == RUNGS.index(rung):
            return False
        return self._down(rung, f"did not answer in shape by {rung}")

    def _down(self, rung: Rung, why: str) -> bool:
        """One rung lower, unless the user pinned one or another call has gone down already."""
        found, at = self.endpoint.findings, RUNGS.index(rung)
        if self.options.structured != "auto" or rung == "prompt":
            return False
        if found.rung <= at:
            found.rung, found.rung_confirmed = at + 1, False
            lower = RUNGS[at + 1]
            found.say(f"{self.endpoint.name}: the endpoint {why}; structured answers are now asked for by {lower}")
        return True

    def _reached(self, rung: Rung) -> None:
        """The endpoint took a request on this rung, so a refusal that brought it here was about the structure."""
        at = RUNGS.index(rung)
        skipped = self.ceiling is not None and not self.endpoint.can_limit(structured=True)
        if self.options.structured == "auto" and not skipped and at > max(self.endpoint.findings.rung, self._first):
            self._down(RUNGS[at - 1], f"refuses {RUNGS[at - 1]}")

    def _worked(self, rung: Rung) -> None:
        """Keep the rung. An answer on a higher one that came late, after others went down, changes nothing."""
        found, at = self.endpoint.findings, RUNGS.index(rung)
        if self.options.structured == "auto" and at == max(found.rung, self._first):
            found.rung, found.rung_confirmed = at, True

    def _structured_messages(self, question: Question, schema: type[BaseModel], rung: Rung) -> tuple[BaseMessage, ...]:
        form = schemas.form(schema)
        if rung in ("json_schema", "tool") and question.prompt.text is not None:
            return self._messages(question)
        if rung == "tool":
            name = schemas.name_of(schema)
            return self._messages(question, f"Answer by calling {name} with arguments of this form: {form}")
        return self._messages(question, f"Answer with one JSON object of this form and nothing else: {form}")

    def _object(self, reply: Reply, schema: type[BaseModel]) -> BaseModel:
        """The object in a reply, wherever the rung put it."""
        if reply.finish in ("filter", "refusal"):
            raise self._refused(reply)
        if reply.tool_args:
            if reply.finish == "length":
                raise self._cut(reply)
            said = [read_object(as_text(args), schema) for args in reply.tool_args]
            if any(one != said[0] for one in said):
                raise AmbiguousRating(f"the tool was called {len(said)} times with different arguments")
            return said[0]
        visible, _ = strip_reasoning(reply.text)
        if not visible.strip() and reply.parsed is not None:
            return read_object(as_text(reply.parsed), schema)
        return read_object(self._visible(reply), schema, cut=reply.finish == "length")

    # -- the call

    async def _reply(
        self,
        question: Question,
        messages: tuple[BaseMessage, ...],
        tally: Tally,
        *,
        rung: Rung | None = None,
        schema: type[BaseModel] | None = None,
        read: Callable[[Reply], Any] | None = None,
    ) -> Reply:
        """One reply, put again at once with more room where the first one shows that it had too little."""
        body, structured = self._structure(rung, schema) if rung and schema else ({}, None)
        budget, start = question.budget, self._level()
        level = start
        texts = [one.content for one in messages if isinstance(one.content, str)]
        room = self._room_for(texts, budget)
        while True:
            limit = self._limit(budget, level)
            if room is not None:
                limit = min(limit, room)
            request = Request(
                messages=messages,
                limit=limit,
                timeout_s=self.options.timeout_s,
                temperature=self.options.temperature,
                body=body,
                structured=structured,
            )
            try:
                reply = await self.endpoint.call(request, tally)
            except JudgeRejected as refused:
                self._learn_window(refused)
                raise
            if len(texts) == len(messages):  # what images cost, nobody says beforehand
                self._learn_size(texts, reply)
            if level > start and (_shows_thinking(reply) or _reads(read, reply)):
                self._remember_level(level)
            tally.replies.append(
                {
                    "task": question.prompt.task or "verbatim",
                    "draw": question.draw,
                    "raw": reply.raw(),
                    "reasoning": reply.reasoning or None,
                    "finish": reply.finish,
                    "limit": reply.limit,
                }
            )
            if reply.finish != "length" or reply.limit is None or reply.limit < limit or _reads(read, reply):
                return reply
            # Prose in place of a rating may be thinking: where a template holds the opening tag, the two
            # cannot be told apart before the closing tag comes.
            if self.options.reasoning is not False and (read is not None or _shows_thinking(reply)):
                level = max(level + 1, self.endpoint.findings.level)
            elif read is None and budget == question.budget:
                budget *= 2
            else:
                return reply
            if level >= len(ALLOWANCES) or self._limit(budget, level) <= limit or room == limit:
                return reply

    # -- the context window

    def _room_for(self, texts: list[str], budget: int) -> int | None:
        """Tokens that the window leaves for the answer (`None`: the window is unknown); raises where they are too few.

        What a ceiling keeps the answer from using need not be there.
        """
        known = [one for one in (self.options.context_window, self.endpoint.sizes.window) if one is not None]
        if not known:
            return None
        window, needed = min(known), budget if self.ceiling is None else min(budget, self.ceiling)
        prompt = self.endpoint.sizes.at_most(texts)
        if prompt + needed > window:
            text = (
                f"{self.endpoint.name}: the prompt has about {prompt} tokens and its answer needs {needed}, but the "
                f"context window holds {window}; nothing was sent"
            )
            raise JudgeRejected(text, kind="context_too_long")
        return window - prompt

    def _learn_window(self, refused: JudgeRejected) -> None:
        """Keep the window that a refusal names, so that the next over-long prompt is not sent."""
        sizes = self.endpoint.sizes
        if refused.kind == "context_too_long" and (window := window_in(str(refused))) and sizes.window != window:
            sizes.window = window
            self.endpoint.findings.say(f"{self.endpoint.name}: the context window holds {window} tokens")

    def _learn_size(self, texts: list[str], reply: Reply) -> None:
        """Correct the estimate of prompts by a reported size, and notice a server that cuts them."""
        sizes, reported = self.endpoint.sizes, reply.usage.input_tokens
        if sizes.learn(texts, reported):
            sent = sizes.expected(texts)
            self.endpoint.findings.say(
                f"{self.endpoint.name}: the server reports {reported} prompt tokens where about {sent} were sent; it "
                "seems to cut long prompts without a word. Raise its context length (num_ctx with Ollama), and say it "
                "in judge.context_window, so that no prompt is longer"
            )

    def _level(self) -> int:
        known = self.endpoint.findings.level
        if self.options.reasoning is None:
            return known
        return max(1, known) if self.options.reasoning else 0

    def _limit(self, budget: int, level: int) -> int:
        """The token limit of a call: the budget and what thinking needs, never above the ceiling."""
        limit = budget + ALLOWANCES[level]
        return limit if self.ceiling is None else min(limit, self.ceiling)

    def _remember_level(self, level: int) -> None:
        found = self.endpoint.findings
        if level > found.level:
            found.level = level
            under = f", up to {self.ceiling}" if self.ceiling is not None else ""
            found.say(
                f"{self.endpoint.name}: the judge thinks before it answers; its token limit is raised by "
                f"{ALLOWANCES[level]}{under} for the rest of the run"
            )

    def _structure(self, rung: Rung, schema: type[BaseModel]) -> tuple[Mapping[str, Any], StructuredBy | None]:
        """How a rung asks: a request body for OpenAI-style clients, a structured runnable for others."""
        if rung == "prompt":
            return {}, None
        if not self.endpoint.openai_family:
            return {}, StructuredBy(schema, _METHODS[rung])
        if rung == "json_schema":
            return {"response_format": schemas.response_format(schema)}, None
        if rung == "json_mode":
            return {"response_format": {"type": "json_object"}}, None
        choice = {"type": "function", "function": {"name": schemas.name_of(schema)}}
        return {"tools": [schemas.tool(schema)], "tool_choice": choice}, None

    def _messages(self, question: Question, *more: str) -> tuple[BaseMessage, ...]:
        """Rules in the system message, data in the user message; a verbatim prompt is the user message, unchanged."""
        prompt, rules = question.prompt, list(more)
        if question.complaint:
            rules.append(f"Your last reply could not be used: {question.complaint}")
        if prompt.text is not None:
            user = HumanMessage([dict(part) for part in prompt.parts] or _sendable(prompt.text))
            return (SystemMessage(_sendable("\n".join(rules))), user) if rules else (user,)
        system, data = _sendable(prompt.system(*rules)), _sendable(prompt.user())
        return (SystemMessage(system), HumanMessage(data)) if data.strip() else (HumanMessage(system),)

    # -- what a reply is worth

    def _visible(self, reply: Reply) -> str:
        """The part of a reply that is an answer; raises where there is none."""
        if reply.finish in ("filter", "refusal"):
            raise self._refused(reply)
        visible, _ = strip_reasoning(reply.text)
        if visible.strip():
            return reply.text
        if reply.finish == "length":
            raise self._cut(reply)
        where = " (its reasoning holds text, which is never read as an answer)" if reply.reasoning or reply.text else ""
        text = f"{self.endpoint.name}: the judge's answer is empty{where}"
        raise MalformedVerdict(text, kind="empty", raw=reply.raw())

    def _unreadable(self, error: JudgeError, reply: Reply) -> JudgeError:
        """The error of a reply that cannot be read: cut, declined, or what its reader says."""
        if reply.finish == "length":
            cut = self._cut(reply)
            cut.retryable = cut.kind == "truncated"
            return cut
        if isinstance(error, MalformedVerdict) and error.kind == "malformed" and declines(reply.text):
            text = f"{self.endpoint.name}: the judge declined to answer; expected what the rules ask for"
            return JudgeRefused(text, raw=reply.raw(), retryable=True)
        said, prefix = str(error), f"{self.endpoint.name}: "
        message = said if said.startswith(prefix) else prefix + said
        return type(error)(message, kind=error.kind, raw=error.raw or reply.raw(), retryable=error.retryable)

    def _bound(self, reply: Reply) -> bool:
        """Whether a ceiling or the endpoint, not the answer's own need, set the limit that cut a reply."""
        return self.ceiling is not None and reply.limit is not None and reply.limit >= self.ceiling

    def _cut(self, reply: Reply) -> Truncated:
        """The error of a cut reply: where it was cut, what the tokens went to, and what to change."""
        visible, _ = strip_reasoning(reply.text)
        kind: Literal["truncated", "truncated_reasoning"] = (
            "truncated" if visible.strip() or reply.tool_args else "truncated_reasoning"
        )
        thinking = kind == "truncated_reasoning"
        spent = ", all of them spent on thinking" if thinking else ""
        own = self.options.max_tokens is not None and self.ceiling == self.options.max_tokens
        if self._bound(reply):
            remedy = (
                f"raise {'judge.max_tokens' if own else f'max_tokens of llms.{self.endpoint.name}'} ({self.ceiling})"
            )
        elif thinking and self.options.reasoning is False:
            remedy = "leave judge.reasoning out, or set it to true"
        elif thinking:
            remedy = "ask for less thinking"
        else:
            remedy = "the answer has more than the room it needs; look at raw, or use another judge"
        more = " or switch its thinking off" if thinking else ""
        limit = "its own limit" if reply.limit is None else f"{reply.limit} tokens"
        text = f"{self.endpoint.name}: the reply was cut at {limit}{spent}; {remedy}{more}"
        return Truncated(text, kind=kind, raw=reply.raw())

    def _refused(self, reply: Reply) -> JudgeRefused:
        why = "a content filter stopped the reply" if reply.finish == "filter" else "the judge declined to answer"
        return JudgeRefused(f"{self.endpoint.name}: {why}", raw=reply.raw())


def _reads(read: Callable[[Reply], Any] | None, reply: Reply) -> bool:
    """Whether a reply says all that is needed, cut or not."""
    if read is None:
        return False
    try:
        read(reply)
    except JudgeError:
        return False
    return True


def _shows_thinking(reply: Reply) -> bool:
    """Whether a reply holds thinking, or nothing that can be seen."""
    visible, thought = strip_reasoning(reply.text)
    return not reply.tool_args and (bool(thought or reply.reasoning) or not visible.strip())


def _sendable(text: str) -> str:
    """Text without lone halves of a character, which no request can carry; they become question marks."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
