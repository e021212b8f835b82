"""What tests of the runner, the folder and a run share: small metrics, rows, and evaluators made of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ragparity.core.outcome import Scored
from ragparity.core.ports import Answer, Tally, Usage
from ragparity.core.row import Row
from ragparity.core.sample import Sample
from ragparity.runner import Evaluator


@dataclass(frozen=True, repr=False)
class Says:
    """A metric that gives what `what` says: an outcome, an exception to raise, or a function of the sample."""

    what: Any
    name: str = "Says"
    uses: frozenset = frozenset({"text"})
    reads: tuple = ()
    may_read: tuple = ()
    bounds: tuple = (0.0, 1.0)
    higher_is_better: bool = True
    backend: str = "native"
    version: str = "1"
    definition: str = "what a test says"
    steps: int = 1
    seen: list = field(default_factory=list, compare=False)

    def __repr__(self) -> str:
        return f"{self.name}()"

    def asks(self, _sample: Sample) -> tuple:
        return ()

    async def score(self, sample: Sample, kit: Any) -> Any:
        self.seen.append(sample.id)
        found = self.what(sample, kit) if callable(self.what) and not isinstance(self.what, type) else self.what
        if asyncio.iscoroutine(found):
            found = await found
        if isinstance(found, BaseException):
            raise found
        return Scored(found) if isinstance(found, float) else found


class Echo:
    """A judge that takes its time and counts how many questions are with it."""

    identity = "echo"

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.with_it = self.most = self.asked = 0

    async def ask(self, question: Any, tally: Tally) -> Answer:
        self.asked += 1
        self.with_it += 1
        self.most = max(self.most, self.with_it)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.with_it -= 1
        tally.call(Usage(input_tokens=1, output_tokens=1))
        return Answer(question.prompt.task, question.prompt.task)


def evaluator(
    what: Any, name: str = "e", *, judged: bool = True, judge: Any = None, reps: int = 1, **metric: Any
) -> Evaluator:
    """An evaluator around a metric that says what a test says."""
    uses = frozenset({"text"}) if judged else frozenset()
    return Evaluator(name=name, metric=Says(what, uses=uses, **metric), judge=judge, reps=reps)


def rows(n: int) -> list[tuple[Row, ...]]:
    """`n` rows with their number as id and question."""
    return [(Row(number, str(number), Sample(id=str(number), user_input=f"q{number}")),) for number in range(n)]
