"""Rows from files and from Python, as plain mappings with the names and the values they were written with.

Nothing is guessed: a CSV cell is text ("007" stays "007"), a JSON number is a number, no column becomes a
date. What cannot be opened, is empty or is no table at all is a `ConfigError` of one line; one line that
cannot be parsed is that row alone (a `BrokenRow` with file and line), and the others go on.

JSONL, CSV and Parquet are read as they are asked for, so that a file may be larger than memory.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ragparity import tables
from ragparity.core.errors import ConfigError, did_you_mean
from ragparity.core.row import BrokenRow
from ragparity.core.sample import Sample
from ragparity.core.values import is_absent, is_conversation
from ragparity.rowfilter import RowFilter

RawRow = Mapping[str, Any] | Sample | BrokenRow
"""A row before its columns are known as fields."""

Kind = Literal["json", "jsonl", "csv", "parquet", "xls", "custom"]
"""The `_type` of a data set."""

SUFFIXES: Mapping[str, Kind] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xls",
    ".xlsm": "xls",
    ".xls": "xls",
}
"""The type of a file by the end of its name."""

_ITEM_KEYS = {
    "question_key": ("question", "input_obj"),
    "answer_key": ("answer", "expected_output_obj"),
    "generated_answer_key": ("generated_answer", "output_obj"),
    "trajectory_key": ("intermediate_steps", "trajectory"),
    "expected_trajectory_key": ("expected_intermediate_steps", "expected_trajectory"),
}
"""Key of `structure` to its default column, and to the attribute of the toolkit's item."""

_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a user's function may fail with; anything else is not about the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Rows that can be iterated over again and again; each time a file is read anew.

    `source` says where they come from, for messages. `count` gives the number of rows where that is
    cheap, else None.
    """

    source: str
    read: Callable[[], Iterator[RawRow]]
    count: Callable[[], int | None] = lambda: None
    filter: RowFilter = field(default_factory=RowFilter)

    def __iter__(self) -> Iterator[RawRow]:
        return self.filter.apply(self.read(), self.source) if self.filter else self.read()

    def count_rows(self) -> int | None:
        """The number of rows that iterating gives; None where only reading them would tell."""
        return None if self.filter else self.count()

    def first(self) -> RawRow | None:
        """The first row, or None."""
        return next(iter(self), None)


def kind_of(path: str | Path) -> Kind:
    """The type of a file by the end of its name; `ConfigError` for an unknown one.

    >>> kind_of("rows.JSONL"), kind_of("rows.tsv")
    ('jsonl', 'csv')
    """
    kind = SUFFIXES.get(Path(path).suffix.casefold())
    if kind is None:
        raise ConfigError(
            f"dataset: the type of {path} cannot be told from its name; known are {', '.join(SUFFIXES)}. "
            "Rename it, or set dataset._type in the eval file"
        )
    return kind


def open_dataset(
    path: str | Path | None,
    *,
    kind: str | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002  # the toolkit's own name for it
    function: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
    structure: Mapping[str, Any] | None = None,
    id_key: str = "id",
) -> Dataset:
    """The rows of a file (relative paths start in the current directory), or of a function of the user's.

    `kind`: the `_type` of the data set; without it the file's name tells. `filter`: the toolkit's
    allowlist and denylist. `function` and `kwargs`: for `custom`, an import path; the function is called
    with `file_path` (where there is one) and the kwargs. `structure` and `id_key` say which columns take what the
    items of a toolkit `EvalInput` hold.

    Raises `ConfigError` when the file cannot be read, is empty or has another shape, and `MissingExtra`.
    """
    rows = RowFilter.of(filter)
    if kind == "custom":
        made = _call(function or "", path, kwargs or {})
        found = rows_of(made, structure=structure, id_key=id_key)
        return Dataset(source=f"{function}", read=found.read, count=found.count, filter=rows)
    if kind is not None and kind not in get_args(Kind):
        known = get_args(Kind)
        raise ConfigError(
            f"dataset._type: {kind!r} is unknown; there is {', '.join(known)}.{did_you_mean(kind, known)}"
        )
    if path is None:
        raise ConfigError("dataset.file_path: missing; name the file with the rows")
    path = Path(path)
    opened = _READERS[kind or kind_of(path)](path)
    found = Dataset(source=str(path), read=opened.rows, count=opened.count, filter=rows)
    if found.first() is None:
        raise ConfigError(f"dataset: {path} has no rows")
    return found


def rows_of(rows: Any, *, structure: Mapping[str, Any] | None = None, id_key: str = "id") -> Dataset:
    """The rows of a Python object.

    Accepted: a path; a list (or other iterable) of mappings, samples, Ragas samples, dataclasses or
    conversations; a pandas, polars or Arrow table; a Hugging Face data set; a Ragas `EvaluationDataset`;
    a toolkit `EvalInput`; a mapping of columns to lists; one row. An iterator is read into a list first.
    Raises `ConfigError` for anything else.

    >>> list(rows_of({"question": ["a?", "b?"], "answer": ["A", "B"]}))
    [{'question': 'a?', 'answer': 'A'}, {'question': 'b?', 'answer': 'B'}]
    """
    if isinstance(rows, Dataset):
        return rows
    if isinstance(rows, str | Path):
        return open_dataset(rows)
    if isinstance(rows, Mapping):
        items: Any = _of_mapping(rows)
    elif hasattr(rows, "iloc"):
        return Dataset(source="the frame", read=lambda: _frame_rows(rows), count=lambda: len(rows))
    elif hasattr(rows, "eval_input_items"):
        items = rows.eval_input_items
    elif isinstance(rows, Sample) or is_conversation(rows) or hasattr(type(rows), "model_fields"):
        items = [rows]
    else:
        items = _items_of(rows)
    count = len(items) if hasattr(items, "__len__") else None
    return Dataset(
        source="the rows",
        read=lambda: (
            as_row(item, f"row {number}", structure=structure, id_key=id_key) for number, item in enumerate(items, 1)
        ),
        count=lambda: count,
    )


def as_row(item: Any, where: str, *, structure: Mapping[str, Any] | None = None, id_key: str = "id") -> RawRow:
    """One item of any of the accepted types as a row; a `BrokenRow` that begins with `where` for another."""
    if type(item) is dict or isinstance(item, Mapping | Sample | BrokenRow):
        return item
    if hasattr(item, "full_dataset_entry") and hasattr(item, "input_obj"):
        return row_of_item(item, structure, id_key=id_key)
    if is_conversation(item):
        return {"messages": list(item)}
    names = getattr(type(item), "model_fields", None)  # pydantic: Ragas' samples among others
    if isinstance(names, Mapping):
        return {name: value for name in names if (value := getattr(item, name)) is not None}
    if is_dataclass(item) and not isinstance(item, type):
        return {one.name: getattr(item, one.name) for one in fields(item)}
    return BrokenRow(f"{where}: expected an object with named columns, found {_a(item)}")


def row_of_item(item: Any, structure: Mapping[str, Any] | None = None, *, id_key: str = "id") -> dict[str, Any]:
    """The row in an `EvalInputItem` of the NeMo Agent Toolkit: its data set entry, and over it what the item holds.

    The item's question, answers and trajectories go to the columns that `structure` names, as in the
    toolkit. One that the item leaves blank adds no column.
    """
    entry = item.full_dataset_entry
    row = dict(entry) if isinstance(entry, Mapping) else {}
    found = {id_key: item.id}
    if not (structure or {}).get("disable"):
        for key, (default, attribute) in _ITEM_KEYS.items():
            found[(structure or {}).get(key) or default] = getattr(item, attribute, None)
    else:
        found["input_obj"] = item.input_obj
    for column, value in found.items():
        blank = is_absent(value) or (isinstance(value, str | list | tuple) and not value)
        if column in row or not blank:
            row[column] = value
    return row


def _of_mapping(rows: Mapping[Any, Any]) -> Any:
    values = list(rows.values())
    if values and all(hasattr(value, "column_names") for value in values):
        raise ConfigError(f"rows: several data sets in one; choose a split: {', '.join(map(str, rows))}")
    if values and all(isinstance(value, list | tuple) for value in values):
        return tables.column_rows(rows, "rows")
    return [rows]


def _items_of(rows: Any) -> Any:
    for method in ("to_dicts", "to_pylist"):  # polars, Arrow
        if callable(getattr(rows, method, None)):
            return getattr(rows, method)()
    if isinstance(rows, Iterator):
        return list(rows)
    if isinstance(rows, Iterable) and not isinstance(rows, bytes | bytearray):
        return rows
    if callable(getattr(rows, "to_list", None)):
        return rows.to_list()
    raise ConfigError(f"rows: {_a(rows)} holds no rows; give a list of dicts, a frame or the path of a file")


def _frame_rows(frame: Any) -> Iterator[RawRow]:
    names = [str(name) for name in frame.columns]
    tables.refuse_duplicates(names, "rows")
    for cells in zip(*(frame.iloc[:, at] for at in range(len(names))), strict=True):
        yield {name: None if is_absent(cell) else cell for name, cell in zip(names, cells, strict=True)}


def _call(function: str, path: str | Path | None, kwargs: Mapping[str, Any]) -> Any:
    """What the user's function gives back."""
    where = f"dataset.function: {function!r}"
    module_name, _, name = function.rpartition(".")
    if not module_name or not name:
        raise ConfigError(f"{where} is no import path; expected package.module.function")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{where}: {error}; is its folder on PYTHONPATH?") from error
    made = getattr(module, name, None)
    if not callable(made) or inspect.iscoroutinefunction(made):
        raise ConfigError(f"{where}: the module has no plain function {name!r}.{did_you_mean(name, vars(module))}")
    given = {**kwargs} if path is None else {"file_path": Path(path), **kwargs}
    try:
        inspect.signature(made).bind(**given)
    except TypeError as error:
        raise ConfigError(f"{where}: called with {', '.join(given) or 'nothing'}, but {error}") from None
    try:
        rows = made(**given)
        return list(rows) if isinstance(rows, Iterator) else rows
    except _FAULTS as error:
        told = " ".join(str(error).split())
        raise ConfigError(f"{where} raised {type(error).__name__}: {told[:300]}") from error


def _a(item: Any) -> str:
    return "nothing" if item is None else f"a value of type {type(item).__name__}"


_READERS: Mapping[str, Callable[[Path], tables.Table]] = {
    "json": tables.read_json,
    "jsonl": tables.read_jsonl,
    "csv": tables.read_csv,
    "parquet": tables.read_parquet,
    "xls": tables.read_workbook,
}
