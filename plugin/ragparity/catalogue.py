"""What metrics there are, and the card of one."""

from __future__ import annotations

import inspect
import re
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


ABSENT, UNUSABLE = "(not installed)", "(cannot be used)"
"""What stands for the metrics of a backend whose package is missing, or before them."""


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
            yield (name, ABSENT, str(error), "", "")
            continue
        if isinstance(found, NativeBackend):
            for cls in found.classes():
                yield (name, cls.__name__, *_about(cls))
        elif isinstance(found, Described):
            if missing := found.missing():
                yield (name, UNUSABLE, missing, "", "")
            for metric_name in found.names():
                yield (name, metric_name, *found.about(metric_name))
        else:
            for metric_name in found.names():
                yield (name, metric_name, "", "", "")


def _about(cls: Any) -> tuple[str, str, str]:
    reads = [*cls.reads, *(f"{field}?" for field in cls.may_read)]
    said = re.search(r"^Asks: (.*?)\.?$\n^Range:", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE | re.DOTALL)
    asks = " ".join(said[1].split()) if said else "nothing"
    low, high = cls.bounds
    return ", ".join(reads), asks, f"{low:g} to {high:g}{'' if cls.higher_is_better else ', lower is better'}"


def print_list(file: IO[str], backend_name: str | None) -> None:
    """The metrics of every backend, one table each; in a narrow terminal without what they ask."""
    from itertools import groupby

    from rich.table import Table
    from rich.text import Text

    from ragparity.report.terminal import WIDE, console

    out = console(file)
    with out.capture() as captured:
        for name, group in groupby(rows(backend_name), key=lambda row: row[0]):
            found = list(group)
            count = sum(one[1] != UNUSABLE for one in found)
            title = f"{name}: {found[0][2]}" if found[0][1] == ABSENT else f"{name}: {count} metrics"
            out.print(Text(title, style="bold"))
            if found[0][1] != ABSENT:
                table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
                table.add_column("metric", no_wrap=True)
                table.add_column("reads (? where present)")
                if out.width >= WIDE:
                    table.add_column("asks the judge")
                table.add_column("range")
                for _, metric, reads, asks, span in found:
                    cells = (metric, reads, *([asks] if out.width >= WIDE else []), span)
                    table.add_row(*(Text(one) for one in cells))
                out.print(table)
            out.print()
        out.print(Text("`ragparity explain METRIC` prints what a metric means, asks and differs in."))
    file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
