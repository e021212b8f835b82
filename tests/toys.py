"""Backends whose scores are written in the test, beside the native one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ragparity import wiring
from ragparity.core.definition import Definition
from ragparity.core.errors import JudgeError, MissingExtra, UnknownMetric
from ragparity.core.outcome import Scored, Undefined
from ragparity.definitions import CONCEPTS

if TYPE_CHECKING:
    import pytest

    from ragparity.core.ports import Ask, Kit
    from ragparity.core.sample import Sample

SHARE = CONCEPTS["Faithfulness"]
WHOLE = CONCEPTS["ResponseGroundedness"]
STRANGE = Definition(estimand="number of commas", construct="punctuation", unit="response")


@dataclass(frozen=True)
class ToyMetric:
    """Scores by the id of the row: a number, an outcome, an error to raise, or a list with one for each repetition."""

    name: str
    backend: str
    toy: Toy = field(repr=False, compare=False)

    may_read: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ("response",)
    uses: ClassVar[frozenset[Any]] = frozenset()
    version: ClassVar[str] = "1"
    definition: ClassVar[str] = "what the test says"
    steps: ClassVar[int] = 0

    @property
    def declared(self) -> Definition | None:
        return self.toy.declared

    @property
    def higher_is_better(self) -> bool:
        return self.toy.declared is None or self.toy.declared.higher_is_better

    @property
    def bounds(self) -> tuple[float, float]:
        return self.toy.bounds

    def asks(self, _sample: Sample) -> tuple[Ask, ...]:
        return ()

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        self.toy.asked.append(sample.id)
        said = self.toy.scores[sample.id]
        if isinstance(said, list):
            said = said[kit.draw // 1000]
        if isinstance(said, JudgeError):
            raise said
        return said if isinstance(said, Scored | Undefined) else Scored(said, f"{self.backend} says {said}")


@dataclass
class Toy:
    """A backend with one metric, Faithfulness."""

    name: str
    scores: dict[str, Any]
    declared: Definition | None = SHARE
    bounds: tuple[float, float] = (0.0, 1.0)
    asked: list[str] = field(default_factory=list)

    def names(self) -> tuple[str, ...]:
        return ("Faithfulness",)

    def build(self, name: str, _kwargs: dict[str, Any]) -> ToyMetric:
        if name != "Faithfulness":
            raise UnknownMetric(f"metric {name!r}: the backend {self.name} has no such metric.")
        return ToyMetric(name, self.name, self)


def install(monkeypatch: pytest.MonkeyPatch, *toys: Toy) -> None:
    """Let a run find the toys; `absent` is a backend whose package is missing."""
    by_name, real, names = {toy.name: toy for toy in toys}, wiring.backend, wiring.backend_names()

    def found(name: str) -> Any:
        if name.casefold() == "absent":
            raise MissingExtra("Absent is not installed: pip install absent")
        return by_name.get(name.casefold()) or real(name)

    monkeypatch.setattr(wiring, "backend", found)
    monkeypatch.setattr(wiring, "backend_names", lambda: (*names, *by_name, "absent"))


def claims(verdicts: str) -> Scored:
    """A share of supported claims with the claims in it: one for each letter, y or n."""
    judged = [
        {"claim": f"Claim number {at} holds.", "verdict": letter == "y", "reason": "so"}
        for at, letter in enumerate(verdicts)
    ]
    return Scored(verdicts.count("y") / len(verdicts), "a share", {"claims": judged})
