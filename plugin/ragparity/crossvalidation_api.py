"""The same rows through several backends, from a program: how far their scores agree."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragparity import wiring
from ragparity.comparison import TOLERANCE, Side, Terms
from ragparity.core.errors import ConfigError, UnknownBackend
from ragparity.crossvalidation import (
    ANOTHER_API,
    Crossvalidation,
    by_evaluator,
    column_of,
    compared,
    people_of,
    questions_of,
    strangers,
)
from ragparity.definitions import is_of_another_api

if TYPE_CHECKING:
    from ragparity.core.ports import Metric


async def acrossvalidate(
    rows: Any,
    metrics: Sequence[str | Mapping[str, Any]],
    *,
    backends: Sequence[str],
    labels: str | Sequence[str] = (),
    label_scale: tuple[float, float] | None = None,
    tolerance: float = TOLERANCE,
    force: bool = False,
    seed: int = 0,
    thresholds: Mapping[str, float] | None = None,
    **options: Any,
) -> Crossvalidation:
    """Score rows with every metric on every backend, on the caller's event loop, and compare.

    `metrics` are names, or `{name: kwargs}`, without a backend. `labels` names columns with people's labels,
    `label_scale` the ends of their scale. `thresholds` are by name of the metric as given here. `options` are those of
    `aevaluate`: `judge`, `embedder`, `fields`, `policies`, `judge_options`, `retries`, `reps`, `cache`,
    `max_concurrency`.

    Raises `ConfigError` where a backend is none, or where fewer than two backends of a metric can be used.
    """
    from ragparity.api import aevaluate

    if isinstance(backends, str) or len({one.casefold() for one in backends}) < 2 - bool(labels):
        raise ConfigError('backends: expected a list of two or more, e.g. backends=["native", "ragas"]')
    wanted: list[tuple[str, str, dict[str, Any]]] = []
    left_out: dict[str, dict[str, str]] = {}
    for one in metrics:
        name, kwargs = _named(one)
        usable, missing = await _usable(name, kwargs, backends, force=force)
        if len(usable) < 2 - bool(labels):
            raise ConfigError(
                f"{name}: nothing to compare: {'; '.join(f'{one}: {why}' for one, why in missing.items())}"
            )
        left_out[name] = missing
        wanted += [(name, backend, kwargs) for backend in usable]
    results = await aevaluate(
        rows, [{f"{backend}/{name}": kwargs} for name, backend, kwargs in wanted], **options
    )  # fmt: skip
    records = by_evaluator(results.records)
    terms = Terms(tolerance=tolerance, force=force, seed=seed, clusters=questions_of(results.rows))
    columns = [labels] if isinstance(labels, str) else labels
    people, remarks = people_of(
        {name: {row.id: column_of(row, name) for row in results.rows} for name in columns}, label_scale
    )
    sides: dict[str, list[Side]] = {}
    for (name, backend, _), evaluator in zip(wanted, results.evaluators, strict=True):
        sides.setdefault(name, []).append(
            Side(
                backend=backend, evaluator=evaluator.name, metric=evaluator.metric,
                records=records.get(evaluator.name, {}), threshold=(thresholds or {}).get(name),
            )
        )  # fmt: skip
    comparisons = {
        name: await asyncio.to_thread(compared, name, found, terms, people, left_out[name])
        for name, found in sides.items()
    }
    remarks += [f"{name}: {backend} is left out: {why}" for name, of in left_out.items() for backend, why in of.items()]
    return Crossvalidation(comparisons, tolerance, results.finished, remarks)


def _named(one: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(one, str):
        found: tuple[str, dict[str, Any]] = (one, {})
    elif isinstance(one, Mapping) and len(one) == 1:
        ((name, kwargs),) = one.items()
        found = (str(name), dict(kwargs or {}))
    else:
        raise ConfigError(f"metrics: expected a name or {{name: kwargs}}, got {one!r}")
    if "/" in found[0]:
        raise ConfigError(f"metrics: {found[0]}: expected the name alone, since backends lists the backends")
    return found


async def _usable(
    name: str, kwargs: dict[str, Any], backends: Sequence[str], *, force: bool
) -> tuple[list[str], dict[str, str]]:
    """The backends on which a metric can be built, imported and compared, and why the others are left out."""
    metrics: dict[str, Metric] = {}
    missing: dict[str, str] = {}
    for backend in dict.fromkeys(one.casefold() for one in backends):
        try:
            metric = wiring.backend(backend).build(name, dict(kwargs))
            await asyncio.to_thread(wiring.prepare, metric)
        except UnknownBackend:
            raise
        except ConfigError as error:
            missing[backend] = str(error)
            continue
        if is_of_another_api(metric):
            missing[backend] = ANOTHER_API
        else:
            metrics[backend] = metric
    if not force:
        missing |= strangers(metrics)
    return [one for one in metrics if one not in missing], missing


def crossvalidate(
    rows: Any, metrics: Sequence[str | Mapping[str, Any]], *, backends: Sequence[str], **options: Any
) -> Crossvalidation:
    """`acrossvalidate` for code that is not async: the same arguments, run on a background loop.

    >>> from ragparity import crossvalidate
    >>> crossvalidate([{"answer": "a", "ground_truth": "a"}], ["ExactMatch"], backends=["native", "nativ"])
    Traceback (most recent call last):
    ragparity.core.errors.UnknownBackend: backend 'nativ': unknown; known are ...
    """
    from ragparity.api import on_background_loop

    return on_background_loop(acrossvalidate(rows, metrics, backends=backends, **options))
