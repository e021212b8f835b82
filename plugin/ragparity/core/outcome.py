"""What came of one sample and one metric: scored, undefined or failed, and nothing else.

A failure is never a number: only `Scored` has a value, and the value is a finite float.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragparity.core.errors import Kind

Status = Literal["scored", "undefined", "failed"]


@dataclass(frozen=True, slots=True)
class Scored:
    """A score with its reason. `detail` keeps every judged piece: text, verdict, reason, passage."""

    value: float
    reason: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    status: ClassVar[Status] = "scored"

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not math.isfinite(self.value):
            raise ValueError(f"a score is a finite float, not {self.value!r}")
        object.__setattr__(self, "value", float(self.value))


@dataclass(frozen=True, slots=True)
class Undefined:
    """The metric has no value for this sample. `why` is one word: `missing:<field>`, `no_claims`, …"""

    why: str
    reason: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    status: ClassVar[Status] = "undefined"


@dataclass(frozen=True, slots=True)
class Failed:
    """The metric has a value for this sample, but it could not be found out."""

    kind: Kind
    message: str
    attempts: int = 0
    raw: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    status: ClassVar[Status] = "failed"


Outcome = Scored | Undefined | Failed
