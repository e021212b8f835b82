"""The seven core metrics on made rows: what every benchmark of speed scores."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Self

METRICS = (
    "Faithfulness",
    "AnswerRelevancy",
    "ContextPrecision",
    "ContextRecall",
    "AnswerAccuracy",
    "ContextRelevance",
    "ResponseGroundedness",
)
TOPICS = ("harbour", "bridge", "tower", "library", "station", "museum", "garden", "market")


def rows(n: int, passages: int = 4) -> list[dict[str, Any]]:
    """Samples with this many passages of a few sentences each."""
    made = []
    for number in range(n):
        name = f"{TOPICS[number % len(TOPICS)]} {number}"
        made.append(
            {
                "id": str(number),
                "user_input": f"When was the {name} opened and who paid for it?",
                "response": f"The {name} was opened in {1900 + number}. The city paid for it. It has {number + 2} gates.",
                "reference": f"The {name} was opened in {1900 + number}, paid for by the city and a donor.",
                "retrieved_contexts": [
                    f"Passage {place} about the {name}: it was opened in {1900 + number} after long works. "
                    f"The city and a donor paid for it. Visitors praise its {place + 2} gates and the quiet yard."
                    for place in range(passages)
                ],
            }
        )
    return made


@dataclass(frozen=True, slots=True)
class Measured:
    """Wall and CPU seconds of a run."""

    wall: float
    cpu: float


class Watch:
    """Wall and CPU time of this process between two moments."""

    def __enter__(self) -> Self:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seen = Measured(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def as_line(measured: Measured, **more: Any) -> str:
    """One line of JSON, for a parent process."""
    return json.dumps({"wall": measured.wall, "cpu": measured.cpu, **more})
