"""`ChatOpenAI` that keeps what OpenAI-compatible servers add to a reply: the text of the judge's reasoning."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient

LONG = 86_400.0
"""Seconds; longer than any deadline of ours, so that ours is the one that counts."""

_REASONING = ("reasoning_content", "reasoning")


class JudgeChatOpenAI(ChatOpenAI):
    """Servers such as vLLM, NIM and DeepSeek's put thinking beside the content; `ChatOpenAI` drops it.

    It is kept in `additional_kwargs["reasoning_content"]`, so that an empty answer after much thinking can be told
    from an empty answer. It is never read as an answer.
    """

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
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
