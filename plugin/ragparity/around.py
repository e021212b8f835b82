"""What stands around every judge and embedder of one run: single flight, the cache, the budget.

From the outside in: the same question asked at once is one call; a stored reply is no call; retries; the budget
is asked before each attempt. So a reply that is stored costs nothing even when the budget is spent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragparity.cache import Cached, CachedEmbedder, Replies
from ragparity.config.masking import is_secret_name, masked
from ragparity.questions import settings_of
from ragparity.single_flight import Flights, SingleFlight, SingleFlightEmbedder
from ragparity.spending import Metered, MeteredEmbedder, Spending

if TYPE_CHECKING:
    from ragparity.config import Cache
    from ragparity.core.ports import Embedder, Judge

TRANSPORT = frozenset({"timeout", "request_timeout", "max_retries", "async_client", "http_client", "class"})
"""Settings of a model client that cannot change what a model says; the class has its own place in the identity."""


@dataclass(slots=True)
class Around:
    """One run's calls under way, its spending, and its stored replies where a cache is on."""

    flights: Flights = field(default_factory=Flights)
    spending: Spending = field(default_factory=Spending)
    replies: Replies | None = None

    def metered(self, judge: Judge, name: str, price: tuple[float, float] | None) -> Judge:
        """A judge whose calls count against the budget; it belongs inside the retries."""
        return Metered(judge, self.spending, name=name, price=price)

    def metered_embedder(self, embedder: Embedder, name: str, price: float | None) -> Embedder:
        """The same for an embedder; without a price nothing about it can be counted."""
        return embedder if price is None else MeteredEmbedder(embedder, self.spending, name=name, price=price)

    def judge(self, judge: Judge, settings: str = "") -> Judge:
        """A judge with a memory, asked the same once at a time; it belongs outside the retries."""
        if self.replies is not None:
            judge = Cached(judge, self.replies, settings)
        return SingleFlight(judge, self.flights, settings)

    def embedder(self, embedder: Embedder, settings: str = "") -> Embedder:
        """The same for an embedder."""
        if self.replies is not None:
            embedder = CachedEmbedder(embedder, self.replies, settings)
        return SingleFlightEmbedder(embedder, self.flights, settings)

    def said(self) -> list[str]:
        """Remarks on the cache and the budget, in sentences."""
        return [*(self.replies.said if self.replies is not None else ()), *self.spending.said]

    def close(self) -> None:
        """Write what the cache has yet to write."""
        if self.replies is not None:
            self.replies.close()


def replies_of(cache: Cache) -> Replies | None:
    """The stored replies that an eval file names; raises `ConfigError` where they are needed and cannot be read."""
    return None if cache.mode == "off" else Replies(cache.path, cache.mode)


def model_settings(options: Mapping[str, Any], secrets: Collection[str]) -> str:
    """The settings of a model that are part of a question's key: all that may change a reply, and no secret.

    >>> model_settings({"top_p": 0.5, "timeout": 3, "default_headers": {"x": "y"}}, ())
    '{"top_p": 0.5}'
    """
    kept = {name: value for name, value in options.items() if name not in TRANSPORT and not is_secret_name(name)}
    return settings_of(masked(kept, secrets))
