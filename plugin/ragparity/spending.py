"""What a run costs while it goes on, and the budget that ends it.

Tokens that an endpoint does not report stay unknown in every record and summary; only for the budget are they
estimated, so that a limit holds there too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragparity.core.errors import BudgetSpent, ConfigError, did_you_mean
from ragparity.core.ports import Tally
from ragparity.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Answer, Embedder, Judge, Question

PER_PRICE = 1_000_000
"""Tokens that a price is for."""
BYTES_PER_TOKEN = 4
"""A token of English text has about four letters; other scripts have more bytes for a letter."""


def cost_of(input_tokens: int | None, output_tokens: int | None, price: tuple[float, float] | None) -> float | None:
    """Tokens at a price for a million read and a million written; nothing where either is unknown.

    >>> cost_of(2_000_000, 500_000, (0.15, 0.60))
    0.6
    """
    if price is None or input_tokens is None or output_tokens is None:
        return None
    return (input_tokens * price[0] + output_tokens * price[1]) / PER_PRICE


def cost_of_vectors(tokens: int | None, price: float | None) -> float | None:
    """The same for an embedder, which writes nothing."""
    return cost_of(tokens, 0, None if price is None else (price, 0.0))


def about_tokens(text: str) -> int:
    """An estimate of the tokens of a text: a quarter of its bytes in UTF-8.

    >>> about_tokens("Which port does it use?")
    6
    """
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of a run: calls to judges, tokens read and written by them, and cost. `None` is no limit.

    A budget is for one start: its probe counts, what an earlier start of a resumed run has spent does not. Calls and
    tokens are those of judges alone; requests for vectors count only in the cost, where their embedder has a price.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return (self.calls, self.tokens, self.cost) != (None, None, None)


def budget_of(limits: Mapping[str, float], over: Budget) -> Budget:
    """A budget by the names of its limits, in place of those of another; raises `ConfigError`.

    >>> budget_of({"calls": 100}, Budget(calls=5, cost=2.0))
    Budget(calls=100, tokens=None, cost=2.0)
    """
    known = ("calls", "tokens", "cost")
    for name, value in limits.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise ConfigError(f"--budget {name}: no limit of this name; there is {', '.join(known)}.{hint}")
        if not math.isfinite(value) or value < 0 or (name != "cost" and value != int(value)):
            what = "a number, 0 or more" if name == "cost" else "a whole number, 0 or more"
            raise ConfigError(f"--budget {name}={value:g}: expected {what}")
    return Budget(
        calls=int(limits["calls"]) if "calls" in limits else over.calls,
        tokens=int(limits["tokens"]) if "tokens" in limits else over.tokens,
        cost=float(limits["cost"]) if "cost" in limits else over.cost,
    )


@dataclass(slots=True)
class Spending:
    """What has been spent so far, and whether more may be. `said` holds remarks in sentences, each once."""

    budget: Budget = field(default_factory=Budget)
    calls: int = 0
    under_way: int = 0
    tokens: int = 0
    cost: float = 0.0
    stopped: str = ""
    said: list[str] = field(default_factory=list)

    def admit(self) -> None:
        """Let one more call go out; raises `BudgetSpent`. Calls under way count as one each until they end."""
        if not self.stopped:
            self.stopped = self._spent()
        if self.stopped:
            raise BudgetSpent(self.stopped, attempts=0)
        self.under_way += 1

    def _spent(self) -> str:
        limits = self.budget
        if limits.calls is not None and self.calls + self.under_way >= limits.calls:
            return f"the budget of {limits.calls} calls is spent"
        if limits.tokens is not None and self.tokens >= limits.tokens:
            return f"the budget of {limits.tokens} tokens is spent ({self.tokens} used)"
        return self._cost_spent()

    def _cost_spent(self) -> str:
        limit = self.budget.cost
        return (
            f"the budget of {limit:g} is spent ({self.cost:.6g} used)"
            if limit is not None and self.cost >= limit
            else ""
        )

    def admit_vectors(self) -> None:
        """Let a request for vectors go out; raises `BudgetSpent` where the limit of cost is reached."""
        if told := self._cost_spent():
            self.stopped = self.stopped or told
            raise BudgetSpent(told, attempts=0)

    def count_vectors(self, tally: Tally, price: float, texts: Sequence[str], name: str) -> None:
        """Count a request for vectors that was let out and has ended."""
        tokens = tally.embedding_tokens
        if tokens is None:
            tokens = tally.embedding_calls * sum(about_tokens(text) for text in texts)
            self._say_estimated(name)
        self.cost += cost_of_vectors(tokens, price) or 0.0

    def count(self, tally: Tally, price: tuple[float, float] | None, question: Question, raw: str, name: str) -> None:
        """Count a call that was let out and has ended."""
        self.under_way -= 1
        self.calls += tally.calls
        read, written = tally.input_tokens, tally.output_tokens
        if read is None or written is None:
            prompt = question.prompt
            text = prompt.text if prompt.text is not None else f"{prompt.system()}\n{prompt.user()}"
            read = tally.calls * about_tokens(text) if read is None else read
            written = about_tokens(raw) if written is None else written
            self._say_estimated(name)
        self.tokens += read + written
        self.cost += cost_of(read, written, price) or 0.0

    def _say_estimated(self, name: str) -> None:
        limits = self.budget
        line = f"budget: some replies of {name} come without token counts; for the budget they are estimated by length"
        if (limits.tokens is not None or limits.cost is not None) and line not in self.said:
            self.said.append(line)


class Metered(Wrapper["Judge"]):
    """A judge whose calls are counted against a budget. Once it is spent, no call goes out any more."""

    def __init__(
        self, judge: Judge, spending: Spending, *, name: str = "the judge", price: tuple[float, float] | None = None
    ) -> None:
        super().__init__(judge)
        self._spending = spending
        self._name = name
        self._price = price

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """The judge's answer; raises `BudgetSpent`."""
        try:
            self._spending.admit()
        except BudgetSpent as spent:
            tally.stopped, spent.judge = str(spent), self.identity
            raise
        own, raw = Tally(), ""
        try:
            answer = await self.within.ask(question, own)
            raw = answer.raw
            return answer
        finally:
            self._spending.count(own, self._price, question, raw, self._name)
            tally.add(own)


class MeteredEmbedder(Wrapper["Embedder"]):
    """An embedder whose requests count in the cost of a run. Once that is spent, none goes out any more."""

    def __init__(self, embedder: Embedder, spending: Spending, *, name: str, price: float) -> None:
        super().__init__(embedder)
        self._spending = spending
        self._name = name
        self._price = price

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """The embedder's vectors; raises `BudgetSpent`."""
        try:
            self._spending.admit_vectors()
        except BudgetSpent as spent:
            tally.stopped, spent.judge = str(spent), self.identity
            raise
        own = Tally()
        try:
            return await self.within.embed(texts, own)
        finally:
            self._spending.count_vectors(own, self._price, texts, self._name)
            tally.add(own)
