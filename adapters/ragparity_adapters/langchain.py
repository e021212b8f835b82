"""Any LangChain chat model as a judge: a budget per answer, a ladder of ways to ask for structure, strict reading.

A rating is asked for as one bare number within `RATING_TOKENS` tokens, or, with `output: structured`, as an
object with the reason first. A structured answer is asked for down a ladder: JSON schema, tool call, JSON
mode, prompt and parse. The first rung that works is kept for the run; a reply of the wrong shape, an empty
one, or the schema echoed back is a miss of that rung, and the next attempt asks one rung lower.

Each answer gets the budget that it needs, never above a ceiling that the user set. A judge that thinks
aloud gets an allowance on top for the rest of the run, once it has shown it; text inside reasoning is never
read as an answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ValidationError

from ragparity.core.errors import AmbiguousRating, JudgeRefused, MalformedVerdict, Truncated
from ragparity.core.ports import RATED_WITH_REASON, Answer, Question, Rating, Structured, Tally
from ragparity.core.ports import Text as FreeText
from ragparity_adapters import schemas
from ragparity_adapters.endpoint import Endpoint, Reply, Request, StructureNotTaken
from ragparity_adapters.ratings import read_rating
from ragparity_adapters.replies import read_object, strip_reasoning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_core.language_models.chat_models import BaseChatModel

Rung = Literal["json_schema", "tool", "json_mode", "prompt"]
RUNGS: tuple[Rung, ...] = ("json_schema", "tool", "json_mode", "prompt")

THINKING_ALLOWANCE = 4096
"""Tokens on top of an answer's own budget for a judge that thinks before it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """What an evaluator says about its judge. Nothing that is `None` is ever sent.

    `max_tokens` is a ceiling on top of that of the llm entry; `reasoning` says beforehand whether the model
    thinks aloud (`None`: find out); `structured` pins a rung.
    """

    output: Literal["auto", "rating", "structured"] = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    timeout_s: float = 60.0
    reasoning: bool | None = None
    structured: Literal["auto", "json_schema", "tool", "json_mode", "prompt"] = "auto"
    language: str | None = None


class LangChainJudge:
    """One evaluator's judge: an endpoint and the options for it."""

    def __init__(self, endpoint: Endpoint, options: JudgeOptions | None = None) -> None:
        self.endpoint = endpoint
        self.options = options or JudgeOptions()
        limits = [limit for limit in (endpoint.ceiling, self.options.max_tokens) if limit is not None]
        self.ceiling = min(limits) if limits else None

    @property
    def identity(self) -> str:
        """The endpoint and every option that can change an answer."""
        said = self.options
        parts = {
            "output": said.output if said.output != "auto" else None,
            "max_tokens": self.ceiling,
            "temperature": said.temperature,
            "structured": said.structured if said.structured != "auto" else None,
            "language": said.language,
        }
        shown = ", ".join(f"{name}={value}" for name, value in parts.items() if value is not None)
        return f"{self.endpoint.identity} ({shown})" if shown else self.endpoint.identity

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """One attempt at an answer; raises a `JudgeError`."""
        shape = question.shape
        if isinstance(shape, Structured):
            return await self._structured(question, shape.schema, tally)
        if isinstance(shape, Rating):
            if self.options.output == "structured":
                return await self._rating_with_reason(question, shape, tally)
            return await self._bare_rating(question, shape, tally)
        return await self._free_text(question, shape, tally)

    # -- the three shapes

    async def _free_text(self, question: Question, _shape: FreeText, tally: Tally) -> Answer:
        reply = await self._reply(question, self._messages(question), question.budget, tally)
        visible = self._visible(reply)
        if reply.finish == "length":
            raise self._truncated(question, reply, question.budget)
        return Answer(visible, visible, usage=reply.usage)

    async def _bare_rating(self, question: Question, shape: Rating, tally: Tally) -> Answer:
        points = ", ".join(str(point) for point in shape.scale.points[:-1])
        rule = f"Answer with one number, {points} or {shape.scale.points[-1]}, and nothing else."
        reply = await self._reply(question, self._messages(question, rule), question.budget, tally)
        visible = self._visible(reply)
        try:
            rating = read_rating(visible, shape.scale, cut=reply.finish == "length")
        except Truncated as error:
            raise self._truncated(question, reply, question.budget) from error
        except MalformedVerdict as error:
            if reply.finish != "length":
                raise
            cut = self._truncated(question, reply, question.budget)
            cut.retryable = True
            raise cut from error
        return Answer(rating, visible, usage=reply.usage)

    async def _rating_with_reason(self, question: Question, shape: Rating, tally: Tally) -> Answer:
        schema = schemas.rating_schema(shape.scale)
        asked = Question(
            question.prompt,
            Structured(schema),
            max(question.budget, RATED_WITH_REASON),
            question.draw,
            question.complaint,
        )
        answer = await self._structured(asked, schema, tally)
        rating = answer.value.rating
        if rating not in shape.scale.points:
            points = ", ".join(str(point) for point in shape.scale.points)
            text = f"{self.endpoint.name}: the rating {rating} is not one of {points}"
            raise AmbiguousRating(text, judge=self.identity, raw=answer.raw)
        return Answer(rating, answer.raw, reason=answer.value.reason, usage=answer.usage)

    async def _structured(self, question: Question, schema: type[BaseModel], tally: Tally) -> Answer:
        found = self.endpoint.findings
        while True:
            rung = self._rung()
            try:
                reply = await self._reply(
                    question,
                    self._structured_messages(question, schema, rung),
                    question.budget,
                    tally,
                    rung=rung,
                    schema=schema,
                )
            except StructureNotTaken as refused:
                if not self._down(rung, f"refuses {rung} ({refused})"):
                    text = f"{self.endpoint.name}: the endpoint refuses structured answers by {rung}: {refused}"
                    raise MalformedVerdict(text, judge=self.identity) from None
                continue
            try:
                value = self._object(reply, schema)
            except (MalformedVerdict, AmbiguousRating) as error:
                if reply.finish == "length":
                    raise self._truncated(question, reply, question.budget) from error
                error.judge, error.raw = self.identity, error.raw or reply.raw()
                if not found.rung_confirmed and isinstance(error, MalformedVerdict):
                    self._down(rung, f"did not answer in shape by {rung}")
                raise
            if not found.rung_confirmed and self.options.structured == "auto":
                found.rung_confirmed = True
            return Answer(value, reply.raw(), usage=reply.usage)

    # -- the ladder

    def _rung(self) -> Rung:
        pinned = self.options.structured
        return pinned if pinned != "auto" else RUNGS[self.endpoint.findings.rung]

    def _down(self, missed: Rung, why: str) -> bool:
        """One rung lower, unless the user pinned one or another call has gone down already."""
        found = self.endpoint.findings
        if self.options.structured != "auto":
            return False
        at = RUNGS.index(missed)
        if found.rung > at:
            return True
        if at + 1 == len(RUNGS):
            return False
        found.rung, found.rung_confirmed = at + 1, False
        found.say(f"{self.endpoint.name}: the endpoint {why}; structured answers are now asked for by {RUNGS[at + 1]}")
        return True

    def _structured_messages(self, question: Question, schema: type[BaseModel], rung: Rung) -> tuple[BaseMessage, ...]:
        if rung in ("json_schema", "tool"):
            return self._messages(question)
        rule = f"Answer with one JSON object of this form and nothing else: {schemas.form(schema)}"
        return self._messages(question, rule)

    def _object(self, reply: Reply, schema: type[BaseModel]) -> BaseModel:
        """The object in a reply, wherever the rung put it."""
        if reply.finish in ("filter", "refusal"):
            raise self._refused(reply)
        if reply.tool_args is not None and reply.finish != "length":
            args = reply.tool_args
            return read_object(args if isinstance(args, str) else json.dumps(args, ensure_ascii=False), schema)
        visible, _ = strip_reasoning(reply.text)
        if not visible.strip() and reply.parsed is not None:
            return _validated(reply.parsed, schema)
        return read_object(self._visible(reply), schema)

    # -- the call

    async def _reply(
        self,
        question: Question,
        messages: tuple[BaseMessage, ...],
        budget: int,
        tally: Tally,
        *,
        rung: Rung | None = None,
        schema: type[BaseModel] | None = None,
    ) -> Reply:
        """One reply, put again at once with more room where the first one shows that thinking used it up."""
        for widened in (False, True):
            limit = self._limit(budget, widened=widened)
            body, structured = self._structure(rung, schema) if rung and schema else ({}, None)
            request = Request(
                messages=messages,
                limit=limit,
                timeout_s=self.options.timeout_s,
                temperature=self.options.temperature,
                body=body,
                structured=structured,
            )
            reply = await self.endpoint.call(request, tally)
            tally.replies.append(
                {
                    "task": question.prompt.task or "verbatim",
                    "draw": question.draw,
                    "raw": reply.raw(),
                    "reasoning": reply.reasoning or None,
                    "finish": reply.finish,
                    "limit": limit,
                }
            )
            if widened or reply.finish != "length" or not self._can_widen(reply, budget, rung):
                return reply
        return reply

    def _limit(self, budget: int, *, widened: bool) -> int:
        """The token limit of a call: the budget, what thinking needs, never above the ceiling."""
        thinks = self.options.reasoning or (self.options.reasoning is None and self.endpoint.findings.thinks)
        limit = budget + THINKING_ALLOWANCE if thinks else (2 * budget if widened else budget)
        return limit if self.ceiling is None else min(limit, self.ceiling)

    def _can_widen(self, reply: Reply, budget: int, rung: Rung | None) -> bool:
        """Whether a cut reply is worth asking again with a higher limit; notes a judge that thinks aloud."""
        found, before = self.endpoint.findings, reply.limit or 0
        visible, thought = strip_reasoning(reply.text)
        thinking = bool(thought or reply.reasoning) or not (visible.strip() or reply.tool_args is not None)
        if thinking and self.options.reasoning is None and not found.thinks:
            found.thinks = True
            wider = self._limit(budget, widened=True)
            if wider > before:
                found.say(
                    f"{self.endpoint.name}: the judge thinks before it answers; its token limit is raised by "
                    f"{THINKING_ALLOWANCE} for the rest of the run"
                )
        if not thinking and rung is None:
            return False
        return self._limit(budget, widened=True) > before

    def _structure(
        self, rung: Rung, schema: type[BaseModel]
    ) -> tuple[Mapping[str, Any], Callable[[BaseChatModel], Any] | None]:
        """How a rung asks: a request body for OpenAI-style clients, a structured runnable for others."""
        if rung == "prompt":
            return {}, None
        if self.endpoint.openai_family:
            if rung == "json_schema":
                return {"response_format": schemas.response_format(schema)}, None
            if rung == "json_mode":
                return {"response_format": {"type": "json_object"}}, None
            choice = {"type": "function", "function": {"name": schema.__name__}}
            return {"tools": [schemas.tool(schema)], "tool_choice": choice}, None
        method = {"json_schema": "json_schema", "tool": "function_calling", "json_mode": "json_mode"}[rung]
        return {}, lambda model: model.with_structured_output(schema, method=method, include_raw=True)

    def _messages(self, question: Question, *more: str) -> tuple[BaseMessage, ...]:
        prompt, rules = question.prompt, list(more)
        if question.complaint:
            rules.append(f"Your last reply could not be used: {question.complaint}")
        if prompt.text is not None:
            return (HumanMessage("\n".join([prompt.text, *rules])),)
        if self.options.language:
            rules.append(f"Write every text of your answer in {self.options.language}.")
        return SystemMessage(prompt.system(*rules)), HumanMessage(prompt.user())

    # -- what a reply is worth

    def _visible(self, reply: Reply) -> str:
        """The part of a reply that is an answer; raises where there is none."""
        if reply.finish in ("filter", "refusal"):
            raise self._refused(reply)
        visible, _ = strip_reasoning(reply.text)
        if visible.strip():
            return visible
        if reply.finish == "length":
            raise self._cut(reply, "truncated_reasoning")
        where = " (its reasoning holds text, which is never read as an answer)" if reply.reasoning or reply.text else ""
        text = f"{self.endpoint.name}: the judge's answer is empty{where}"
        raise MalformedVerdict(text, kind="empty", judge=self.identity, raw=reply.raw())

    def _truncated(self, _question: Question, reply: Reply, _budget: int) -> Truncated:
        visible, _ = strip_reasoning(reply.text)
        return self._cut(
            reply, "truncated" if visible.strip() or reply.tool_args is not None else "truncated_reasoning"
        )

    def _cut(self, reply: Reply, kind: Literal["truncated", "truncated_reasoning"]) -> Truncated:
        at = f"{self.endpoint.name}: the reply was cut at {reply.limit} tokens"
        bound = self.ceiling is not None and reply.limit is not None and reply.limit >= self.ceiling
        remedy = (
            f"raise max_tokens ({self.ceiling}) of this llm entry" if bound else "the endpoint's own limit is lower"
        )
        spent = ", all of them spent on thinking" if kind == "truncated_reasoning" else ""
        more = " or switch its thinking off" if kind == "truncated_reasoning" else ""
        return Truncated(f"{at}{spent}; {remedy}{more}", kind=kind, judge=self.identity, raw=reply.raw())

    def _refused(self, reply: Reply) -> JudgeRefused:
        why = "a content filter stopped the reply" if reply.finish == "filter" else "the judge declined to answer"
        return JudgeRefused(f"{self.endpoint.name}: {why}", judge=self.identity, raw=reply.raw())


def _validated(parsed: Any, schema: type[BaseModel]) -> BaseModel:
    """An object that a structured runnable parsed itself, held against the schema once more."""
    if isinstance(parsed, schema):
        return parsed
    value = parsed.model_dump() if isinstance(parsed, BaseModel) else parsed
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise MalformedVerdict(f"the object does not fit: {error.errors()[0]['msg']}", raw=repr(value)) from None
