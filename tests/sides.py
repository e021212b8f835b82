"""Backends whose scores are written in the test, as they stand after a run, and how far they agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.toys import SHARE, Toy, ToyMetric

from ragparity.calibration import AgainstPeople, People, calibrate, read_labels
from ragparity.comparison import Comparison, Side, Terms, compare
from ragparity.core.outcome import Scored, Undefined
from ragparity.results import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.definition import Definition

SAID = "words of a judge about a row"


def side(
    backend: str, scores: Sequence[Any], *, declared: Definition = SHARE, bounds: tuple[float, float] = (0.0, 1.0),
    threshold: float | None = None,
) -> Side:  # fmt: skip
    """A backend by its scores: `None` is a row without one, a list its repetitions."""
    records = {}
    for at, score in enumerate(scores):
        outcome: Scored | Undefined = Undefined("no_claims", SAID)
        if isinstance(score, list):
            outcome = Scored(sum(score) / len(score), SAID, {"repetitions": score})
        elif score is not None:
            outcome = Scored(float(score), SAID)
        records[f"row {at}"] = Record(
            row=at, id=f"row {at}", key="", evaluator=f"faith@{backend}", metric="m", backend=backend, outcome=outcome
        )
    metric = ToyMetric("Faithfulness", backend, Toy(backend, {}, declared=declared, bounds=bounds))
    return Side(
        backend=backend, evaluator=f"faith@{backend}", metric=metric, records=records, threshold=threshold
    )  # fmt: skip


def people(*columns: Sequence[Any], names: Sequence[str] = ("human", "second")) -> People:
    """Annotators by their labels."""
    read = [
        read_labels(name, {f"row {at}": one for at, one in enumerate(column)})
        for name, column in zip(names, columns, strict=False)
    ]
    return People(annotators=read)


def against(labels: People, *sides: Side) -> AgainstPeople:
    """Every side against people."""
    judges = {
        one.backend: calibrate(
            one.evaluator, one.scores, labels, threshold=one.threshold, bounds=one.metric.bounds,
            higher_is_better=one.metric.higher_is_better,
        )
        for one in sides
    }  # fmt: skip
    return AgainstPeople(people=labels, judges=judges)


def compared(*sides: Side, labels: People | None = None, force: bool = False) -> Comparison:
    """The comparison of these sides, with few resamples."""
    found = against(labels, *sides) if labels else None
    return compare("faith", sides, Terms(force=force, resamples=50), left_out={}, people=found)
