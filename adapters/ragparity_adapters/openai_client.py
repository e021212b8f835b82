"""OpenAI-style chat models that keep what servers add to a reply, and send nothing that the user did not set.

Servers such as vLLM, NIM and DeepSeek's put thinking beside the content; LangChain's clients drop it. Here it is
kept in `additional_kwargs["reasoning_content"]`, so that an empty answer after much thinking can be told from an
empty answer. It is never read as an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from openai import DefaultAsyncHttpxClient

if TYPE_CHECKING:
    from langchain_core.outputs import ChatResult

LONG = 86_400.0
"""Seconds; longer than any deadline of ours, so that ours is the one that counts."""
_REASONING = ("reasoning_content", "reasoning")


class JudgeChatOpenAI(ChatOpenAI):
    """`ChatOpenAI` as a judge."""

    def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return _without_stream(super()._get_request_payload(*args, **kwargs))

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        return _with_reasoning(super()._create_chat_result(response, generation_info), response)


class JudgeAzureChatOpenAI(AzureChatOpenAI):
    """`AzureChatOpenAI` as a judge."""

    def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return _without_stream(super()._get_request_payload(*args, **kwargs))

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        return _with_reasoning(super()._create_chat_result(response, generation_info), response)


def _without_stream(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload without `stream: false`, which is what leaving it out means (LangChain pops it in one case)."""
    if payload.get("stream") is False and "response_format" not in payload:
        del payload["stream"]
    return payload


def _with_reasoning(result: ChatResult, response: Any) -> ChatResult:
    """The result with the thinking of each choice."""
    choices = response.get("choices") if isinstance(response, dict) else getattr(response, "choices", None)
    for generation, choice in zip(result.generations, choices or [], strict=False):
        message = choice.get("message") if isinstance(choice, dict) else getattr(choice, "message", None)
        said = next((text for name in _REASONING if (text := _field(message, name))), None)
        if said and isinstance(generation.message, AIMessage):
            generation.message.additional_kwargs["reasoning_content"] = str(said)
    return result


def _field(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, dict) else getattr(message, name, None)


def http_client() -> Any:
    """An HTTP client of its own for one run.

    LangChain shares one client per address among all models of a process; its connections would outlive the event
    loop of a run and break the next one.
    """
    return DefaultAsyncHttpxClient(timeout=LONG)
