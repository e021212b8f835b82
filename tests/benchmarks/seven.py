"""The seven core metrics on made rows: what every benchmark of speed scores, with what its judge says.

Only the standard library is used here, since processes of other environments import it.
"""

from __future__ import annotations

import json
import time
from typing import Any, Self

from tests.fakebrain import default_reply
from tests.fakeserver import Reply, Request, stats_of

METRICS = (
    "Faithfulness",
    "AnswerRelevancy",
    "ContextPrecision",
    "ContextRecall",
    "AnswerAccuracy",
    "ContextRelevance",
    "ResponseGroundedness",
)
WITHOUT_EMBEDDINGS = tuple(name for name in METRICS if name != "AnswerRelevancy")
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


def judge(request: Request) -> Reply:
    """What the judge says to anybody: the object that is asked for, or the rating 2, which is on every scale."""
    content = default_reply(request).content
    return Reply(content=_decided(content) if isinstance(content, dict) else "2")


def _decided(value: Any) -> Any:
    """The object with ratings of 2 and a response that commits itself, in the type that was asked for."""
    if isinstance(value, list):
        return [_decided(one) for one in value]
    if not isinstance(value, dict):
        return value
    said = {"rating": lambda _: 2, "noncommittal": lambda one: type(one)(0)}
    return {name: said.get(name, _decided)(one) for name, one in value.items()}


class Watch:
    """Wall and CPU time of this process between two moments, and what the judge was asked between them."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def __enter__(self) -> Self:
        self._counted = stats_of(self._base_url)
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        counted = stats_of(self._base_url)
        asked = {name: counted[name] - self._counted[name] for name in ("calls", "prompt_characters")}
        self.seen = {"wall": wall, "cpu": cpu, **asked}


def as_line(**seen: Any) -> str:
    """One line of JSON, for a parent process."""
    return json.dumps(seen)
