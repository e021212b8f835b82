"""What a score measures, so that two of one name are compared only as far as they measure the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Unit = Literal["claim", "sentence", "response", "passage", "list"]
"""What is judged piece by piece: a claim, a sentence, the whole response (or reference), a passage, a whole list."""
ScaleKind = Literal["continuous", "levels", "binary"]
NoClaims = Literal["undefined", "one", "zero", "no_claims_in_it"]
"""The score where the judge finds no claims, by default; `no_claims_in_it` where none are looked for."""
Relation = Literal["same", "near", "name"]
"""Both sides measure one estimand on one scale; one construct; or only share a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What one metric of one backend measures.

    `estimand` is the quantity, a phrase that follows "the …"; `construct` what people want to know from it. `by` are
    the settings that are part of the estimand, with their values. `levels` are the scores that can occur where
    there are few. `differs` says how this implementation arrives at the estimand differently from the plain reading.
    `package` and `versions` (a specifier such as `>=0.4,<0.5`) say which releases this was written for; without a
    package it belongs to this one. `known` is false for a metric that nobody has described.
    """

    estimand: str
    construct: str
    unit: Unit
    scale: ScaleKind = "continuous"
    higher_is_better: bool = True
    no_claims: NoClaims = "no_claims_in_it"
    levels: tuple[float, ...] = ()
    by: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    differs: str = ""
    package: str = ""
    versions: str = ""
    known: bool = True

    @property
    def phrase(self) -> str:
        """The estimand with the settings that are part of it."""
        said = ", ".join(f"{name} {value}" for name, value in self.by.items() if value is not None)
        return f"{self.estimand} ({said})" if said else self.estimand

    def as_json(self) -> dict[str, Any]:
        """The fields, JSON-ready; without `known`, and `levels` and `differs` where there are any."""
        found: dict[str, Any] = {
            "estimand": self.phrase,
            "construct": self.construct,
            "unit": self.unit,
            "scale": self.scale,
            "higher_is_better": self.higher_is_better,
            "no_claims": self.no_claims,
        }
        if self.levels:
            found["levels"] = list(self.levels)
        for name in ("differs", "package", "versions"):
            if value := getattr(self, name):
                found[name] = value
        return found
