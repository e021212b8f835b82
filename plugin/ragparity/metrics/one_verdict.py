"""One yes or no about a whole: what the metrics share whose score is 1 or 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from ragparity.core.outcome import Scored, Undefined
from ragparity.verdicts import Verdict

if TYPE_CHECKING:
    from ragparity.core.policy import Policies

TOKENS = 200
"""Tokens of a verdict with a reason of some sentences."""


class Reasoned(BaseModel):
    """A verdict, the reason first."""

    reason: str
    verdict: Verdict


def scored(answer: Reasoned, policies: Policies, detail: dict[str, object]) -> Scored | Undefined:
    """1 for yes, 0 for no; "cannot tell" is 0, or undefined by policy. The judge's reason is that of the score.

    >>> from ragparity.core.policy import Policies
    >>> scored(Reasoned(reason="It is booked.", verdict="yes"), Policies(), {}).value
    1.0
    """
    reason = " ".join(answer.reason.split())
    found = {**detail, "verdict": answer.verdict}
    if answer.verdict is None:
        if policies.unknown_verdict == "exclude":
            return Undefined("no_verdicts", "the judge could not tell", {**found, "reason": reason})
        found["unknown_verdicts"] = 1
    return Scored(float(bool(answer.verdict)), reason or "the judge gave no reason", found)
