"""The rows of a plan: the data set, read through the adapters' field names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragparity import dataset
from ragparity.core.errors import ConfigError
from ragparity_adapters.fields import RowReader

if TYPE_CHECKING:
    from ragparity.core.row import Row
    from ragparity.core.sample import Sample
    from ragparity.wiring import Plan

LOOKED_AT = 200
"""Rows that `check` looks at to estimate the sizes of answers."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The data set of a plan: every row once, seen through each set of field settings that evaluators use."""

    source: dataset.Dataset
    readers: tuple[RowReader, ...]
    view_of: Mapping[str, int]

    def __iter__(self) -> Iterator[tuple[Row, ...]]:
        if len(self.readers) == 1:
            for row in self.readers[0].read_rows(iter(self.source)):
                yield (row,)
            return
        yield from zip(*(one.read_rows(iter(self.source)) for one in self.readers), strict=True)

    def first(self) -> tuple[Row, ...]:
        """A few rows, to look at."""
        return tuple(views[0] for views in self.head(LOOKED_AT))

    def head(self, n: int) -> Iterator[tuple[Row, ...]]:
        """The first rows."""
        return islice(self, n)

    def samples(self) -> dict[str, list[Sample]]:
        """Those of a few rows that can be read, by evaluator, as each sees them."""
        looked_at = list(self.head(LOOKED_AT))
        return {
            name: [row.sample for row in (views[view] for views in looked_at) if row.sample is not None]
            for name, view in self.view_of.items()
        }

    def field_map(self, evaluator: str | None = None) -> list[tuple[str, str]]:
        """Column and field of the first row, as an evaluator sees it; without one, as the first does."""
        first = self.source.first()
        reader = self.readers[self.view_of.get(evaluator or "", 0)]
        return reader.field_map(first) if first is not None else []


def open_rows(plan: Plan, *, file_path: Path | None = None) -> Rows:
    """The rows of the plan's data set, or of another file; raises `ConfigError`."""
    general = plan.file.general
    section = general.dataset
    if section is None and file_path is None:
        raise ConfigError("eval.general.dataset: missing; set it in the file, or name the rows with --dataset")
    structure = section.structure.model_dump(exclude_unset=True) if section is not None else {}
    id_key = section.id_key if section is not None else "id"
    chosen = section if file_path is None else None
    source = dataset.open_dataset(
        file_path or (section.file_path if section is not None else None),
        kind=chosen.type if chosen is not None else None,
        filter=section.filter.model_dump(exclude_none=True) if section is not None and section.filter else None,
        function=chosen.function if chosen is not None else None,
        kwargs=chosen.kwargs if chosen is not None else None,
        structure=structure,
        id_key=id_key,
    )
    readers: dict[str, RowReader] = {}
    view_of: dict[str, int] = {}
    for one in plan.evaluators:
        fields, question_field = dict(one.entry.fields), one.entry.input_obj_field
        key = repr((sorted(fields.items()), question_field))
        if key not in readers:
            readers[key] = RowReader(structure=structure, fields=fields, id_key=id_key, input_obj_field=question_field)
        view_of[one.entry.name] = list(readers).index(key)
    if not readers:
        readers[""] = RowReader(structure=structure, fields=dict(general.ragparity.fields), id_key=id_key)
    return Rows(source, tuple(readers.values()), view_of)


def row_reader(
    *, structure: Mapping[str, Any], id_key: str, fields: Mapping[str, str], input_obj_field: str | None
) -> RowReader:
    """A reader of rows that come from elsewhere; the options are those of `RowReader`."""
    return RowReader(structure=structure, fields=fields, id_key=id_key, input_obj_field=input_obj_field)


def read_python_rows(rows: Any, fields: Mapping[str, str] | None) -> Callable[[], Iterator[tuple[Row, ...]]]:
    """Rows handed over in a program; there, `answer` is the response."""
    source = dataset.rows_of(rows)
    reader = RowReader(fields=fields or {}, python=True)
    return lambda: ((row,) for row in reader.read_rows(iter(source)))


def file_digest(rows: Rows) -> str | None:
    """The SHA-256 of the data file, where the rows come from one."""
    path = Path(rows.source.source)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
