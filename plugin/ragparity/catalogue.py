"""What metrics there are, and the card of one."""

from __future__ import annotations

import inspect
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

from ragparity import wiring
from ragparity.core.errors import MissingExtra
from ragparity.registry import NativeBackend, NativeMetric

if TYPE_CHECKING:
    from collections.abc import Iterator


@runtime_checkable
class Described(Protocol):
    """A backend that can describe its metrics, also where its framework is not installed."""

    def missing(self) -> str:
        """Why its metrics cannot be used here, with the remedy; nothing where they can."""
        ...

    def about(self, name: str) -> tuple[str, str, str]:
        """Fields read, judge calls, and range with direction of one metric, in words."""
        ...

    def card(self, name: str) -> str:
        """The card of one metric."""
        ...


def split_name(name: str) -> tuple[str, str]:
    """`backend/Name` as its two parts; the backend is native where none is said.

    >>> split_name("ragas/Faithfulness"), split_name("Faithfulness")
    (('ragas', 'Faithfulness'), ('native', 'Faithfulness'))
    """
    backend, slash, metric = name.partition("/")
    return (backend, metric) if slash else (wiring.NATIVE, name)


def card(name: str) -> str:
    """The card of a metric: its docstring, with its name, its aliases and its settings before it."""
    backend_name, metric_name = split_name(name)
    found = wiring.backend(backend_name)
    if isinstance(found, NativeBackend):
        return native_card(found.find(metric_name))
    if isinstance(found, Described):
        return found.card(metric_name)
    metric = found.build(metric_name, {})
    return f"{found.name}/{metric.name}\n\n{inspect.cleandoc(type(metric).__doc__ or metric.definition)}"


def native_card(cls: type[NativeMetric]) -> str:
    """The card of a native metric."""
    aliases = f" (also {', '.join(cls.aliases)})" if cls.aliases else ""
    settings = [
        f"  {name}: {parameter.annotation} = {parameter.default!r}"
        for name, parameter in inspect.signature(cls).parameters.items()
    ]
    kwargs = "\n\nSettings:\n" + "\n".join(settings) if settings else ""
    return f"{cls.__name__}{aliases}, version {cls.version}\n\n{inspect.cleandoc(cls.__doc__ or '')}{kwargs}"


def rows(backend_name: str | None) -> Iterator[tuple[str, ...]]:
    """Backend, name, reads, asks, range and direction of every metric."""
    names = wiring.backend_names() if backend_name is None else (backend_name,)
    for name in names:
        try:
            found = wiring.backend(name)
        except MissingExtra as error:
            if backend_name is not None:
                raise
            yield (name, "(not installed)", str(error), "", "")
            continue
        if isinstance(found, NativeBackend):
            for cls in found.classes():
                yield (name, cls.__name__, *_about(cls))
        elif isinstance(found, Described):
            if missing := found.missing():
                yield (name, "(cannot be used)", missing, "", "")
            for metric_name in found.names():
                yield (name, metric_name, *found.about(metric_name))
        else:
            for metric_name in found.names():
                yield (name, metric_name, "", "", "")


def _about(cls: Any) -> tuple[str, str, str]:
    reads = [*cls.reads, *(f"{field}?" for field in cls.may_read)]
    asks = "nothing"
    for line in inspect.cleandoc(cls.__doc__ or "").splitlines():
        if line.startswith("Asks:"):
            asks = line.removeprefix("Asks:").strip().rstrip(".")
    low, high = cls.bounds
    return ", ".join(reads), asks, f"{low:g} to {high:g}{'' if cls.higher_is_better else ', lower is better'}"


def print_list(file: IO[str], backend_name: str | None) -> None:
    """The table of all metrics."""
    from rich.table import Table

    from ragparity.report.terminal import console

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("backend", "metric", "reads (? where present)", "asks the judge", "range"):
        table.add_column(head, overflow="fold")
    for row in rows(backend_name):
        table.add_row(*row)
    console(file).print(table)
