"""Chat models that behave badly in ways that no server can."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

STUBBORN_S = 30.0


class Stubborn(BaseChatModel):
    """Answers 4, but hangs on everything about gateway 1 and does not let itself be cancelled."""

    @property
    def _llm_type(self) -> str:
        return "stubborn"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        if any("gateway 1 " in str(one.content) for one in messages):
            until = time.monotonic() + STUBBORN_S
            while time.monotonic() < until:
                try:
                    await asyncio.sleep(until - time.monotonic())
                except asyncio.CancelledError:
                    continue
        return ChatResult(generations=[ChatGeneration(message=AIMessage("4"))])


class Blocking(BaseChatModel):
    """A model with blocking calls only, which hangs in its thread on everything about gateway 1."""

    @property
    def _llm_type(self) -> str:
        return "blocking"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        if any("gateway 1 " in str(one.content) for one in messages):
            time.sleep(STUBBORN_S)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("4"))])
