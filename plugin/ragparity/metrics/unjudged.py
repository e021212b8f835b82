"""What the metrics that ask nobody have in common: the sample is all they need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ragparity.registry import NativeMetric

if TYPE_CHECKING:
    from ragparity.core.outcome import Scored, Undefined
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample


class Unjudged(NativeMetric, ABC):
    """Base of the metrics without a judge and without embeddings."""

    @abstractmethod
    def outcome(self, sample: Sample) -> Scored | Undefined:
        """The outcome for one admitted sample; raises `SampleError` where a field cannot be read."""

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:  # noqa: ARG002  # nothing is asked
        """Score one admitted sample."""
        return self.outcome(sample)
