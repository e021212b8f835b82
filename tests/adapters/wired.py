"""Judges over the fake server, for the tests of this room."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from pydantic import BaseModel

from ragparity.core.ports import Question, Rating, Scale, Structured, Tally, Text
from ragparity.core.prompt import Prompt
from ragparity.middleware import Clock, Lane, Retrying
from ragparity_adapters import llms
from ragparity_adapters.endpoint import Endpoint
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge
from ragparity_adapters.openai_client import JudgeAzureChatOpenAI, JudgeChatOpenAI


class Verdict(BaseModel):
    reason: str
    verdict: int


GOOD = {"reason": "It is stated.", "verdict": 1}
GOOD_TEXT = json.dumps(GOOD)
PROMPT = Prompt("Judge the answer.", ("Be strict.",), {"answer": "Paris"})
SCALE = Scale((0, 2, 4))
RATING = Question(PROMPT, Rating(SCALE), 8)
STRUCTURED = Question(PROMPT, Structured(Verdict), 60)
TEXT = Question(PROMPT, Text(), 40)


class FastClock(Clock):
    """A clock on which a second lasts a hundredth; it keeps what was waited for."""

    def __init__(self, speed: float = 100.0) -> None:
        self.speed = speed
        self.waits: list[float] = []

    def now(self) -> float:
        return time.monotonic() * self.speed

    def later(self, seconds, call):
        self.waits.append(seconds)
        return super().later(seconds / self.speed, call)

    async def sleep(self, seconds: float) -> None:
        if seconds:
            self.waits.append(seconds)
        await asyncio.sleep(seconds / self.speed)


def chat(server, **fields: Any) -> ChatOpenAI:
    """A chat model as a user makes it."""
    return ChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0, **fields)


def judge_chat(server, **fields: Any) -> JudgeChatOpenAI:
    return JudgeChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0, **fields)


def azure_chat(server, cls: Any = AzureChatOpenAI, **fields: Any) -> AzureChatOpenAI:
    return cls(
        azure_endpoint=server.url, azure_deployment="d", api_version="2024-10-21", api_key="k", max_retries=0, **fields
    )


def judge_azure(server, **fields: Any) -> AzureChatOpenAI:
    return azure_chat(server, JudgeAzureChatOpenAI, **fields)


class HttpChat(BaseChatModel):
    """A chat model of another family: sync-only, its own names, tools by `bind_tools`."""

    url: str
    max_tokens: int | None = None
    temperature: float | None = None

    @property
    def _llm_type(self) -> str:
        return "http"

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools])

    def body(self, messages, kwargs) -> dict[str, Any]:
        roles = {"human": "user", "ai": "assistant"}
        said = [{"role": roles.get(one.type, one.type), "content": one.content} for one in messages]
        settings = {"max_tokens": self.max_tokens, "temperature": self.temperature, "tools": kwargs.get("tools")}
        return {
            "model": "m",
            "messages": said,
            **{name: value for name, value in settings.items() if value is not None},
        }

    def read(self, reply: dict[str, Any]) -> ChatResult:
        choice = reply["choices"][0]
        calls = [
            {"name": one["function"]["name"], "args": json.loads(one["function"]["arguments"]), "id": one["id"]}
            for one in choice["message"].get("tool_calls") or ()
        ]
        message = AIMessage(
            choice["message"]["content"] or "",
            tool_calls=calls,
            response_metadata={"stop_reason": choice["finish_reason"]},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        request = urllib.request.Request(  # noqa: S310  # loopback
            f"{self.url}/chat/completions",
            json.dumps(self.body(messages, kwargs)).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:  # noqa: S310  # loopback
            return self.read(json.load(response))


class AsyncHttpChat(HttpChat):
    """The same with an async call of its own."""

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        return await asyncio.to_thread(self._generate, messages, stop, None, **kwargs)


def built(server, *, ceiling: int | None = None, type: str = "openai", **options: Any) -> Endpoint:  # noqa: A002  # as in the file
    """The endpoint of an llm entry."""
    spec = llms.LlmSpec(
        name="judge",
        type=type,
        model_name="m",
        base_url=server.base_url,
        api_key="k",
        max_tokens=ceiling,
        options=options,
    )
    return llms.build(spec)


def held(model: Any, **more: Any) -> Endpoint:
    """The endpoint of a chat model that was made elsewhere."""
    more.setdefault("token_param", "max_tokens")
    return Endpoint(model, name="judge", identity="test", **more)


def asked(
    endpoint: Endpoint, *questions: Question, retries: int = 0, lane: Lane | None = None, **options: Any
) -> list[Any]:
    """The answers or errors of questions put one after the other, through the whole layer."""
    return asyncio.run(_one_by_one(endpoint, questions, retries, lane, options))


async def _one_by_one(endpoint, questions, retries, lane, options):
    judge = retrying(endpoint, retries, lane, **options)
    try:
        return [await settled(judge, one) for one in questions]
    finally:
        await endpoint.aclose()


def asked_at_once(
    endpoint: Endpoint, questions, *, retries: int = 0, lane: Lane | None = None, **options: Any
) -> list[Any]:
    """The answers or errors of questions put at the same time."""

    async def together():
        judge = retrying(endpoint, retries, lane, **options)
        try:
            return await asyncio.gather(*(settled(judge, one) for one in questions))
        finally:
            await endpoint.aclose()

    return asyncio.run(together())


def retrying(endpoint: Endpoint, retries: int = 0, lane: Lane | None = None, **options: Any) -> Retrying:
    return Retrying(
        LangChainJudge(endpoint, JudgeOptions(**options)), lane or Lane("judge", 16, clock=FastClock()), retries
    )


async def settled(judge, question, tally: Tally | None = None):
    """An answer, or the error in its place."""
    try:
        return await judge.ask(question, tally or Tally())
    except Exception as error:  # noqa: BLE001  # the test says which one it expects
        return error


def limits_sent(server) -> list[int | None]:
    """The token limit of every chat request, by whatever name."""
    return [
        next((one.body[name] for name in ("max_tokens", "max_completion_tokens") if name in one.body), None)
        for one in server.requests
    ]
