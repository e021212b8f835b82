"""What to do where a number would be a matter of opinion: the options, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ragparity.core.outcome import Scored, Undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What to do where a number would be a matter of opinion.

    `no_claims`: the judge finds no claims (a refusal, a greeting). `blank_contexts`: contexts are present, but
    empty; `zero` holds where higher is better. `unknown_verdict`: a verdict of "cannot tell". `references`:
    several acceptable references. `one_rating`: one of two ratings is unreadable. `upstream`: all of this off
    for a wrapped metric, so that its framework's own number is seen.
    """

    no_claims: Literal["undefined", "one", "zero"] = "undefined"
    blank_contexts: Literal["undefined", "zero"] = "undefined"
    unknown_verdict: Literal["unsupported", "exclude"] = "unsupported"
    references: Literal["best", "joined", "mean"] = "best"
    one_rating: Literal["failed", "use"] = "failed"
    upstream: bool = False


def without_claims(policies: Policies, reason: str, detail: dict[str, Any]) -> Scored | Undefined:
    """The outcome where there is nothing to judge.

    >>> without_claims(Policies(), "a greeting", {}).why
    'no_claims'
    >>> without_claims(Policies(no_claims="one"), "a greeting", {}).value
    1.0
    """
    if policies.no_claims == "undefined":
        return Undefined("no_claims", reason, detail)
    return Scored(1.0 if policies.no_claims == "one" else 0.0, reason, {**detail, "policy": "no_claims"})
