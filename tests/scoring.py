"""One sample and one native metric, the way the runner brings them together, without a judge."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ragparity.core.policy import Policies, score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity.registry import NativeBackend

if TYPE_CHECKING:
    from ragparity.core.outcome import Failed, Scored, Undefined

NATIVE = NativeBackend()


def outcome(
    name: str, kwargs: dict[str, Any] | None = None, *, policies: Policies | None = None, **sample: Any
) -> Scored | Undefined | Failed:
    """The outcome of a metric built from a spec as in an eval file."""
    metric = NATIVE.build(name, kwargs or {})
    kit = Kit(policies=policies or Policies())
    return asyncio.run(score(metric, Sample(**sample), kit))


def value(name: str, kwargs: dict[str, Any] | None = None, **sample: Any) -> float:
    """The score; anything else is an error of the test."""
    found = outcome(name, kwargs, **sample)
    assert found.status == "scored", found
    return found.value


def why(name: str, kwargs: dict[str, Any] | None = None, **sample: Any) -> str:
    """Why there is no score; a score is an error of the test."""
    found = outcome(name, kwargs, **sample)
    assert found.status == "undefined", found
    return found.why
