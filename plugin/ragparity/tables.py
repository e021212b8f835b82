"""Files with rows: JSON, JSONL, CSV, Parquet and Excel workbooks, read without changing a value."""

from __future__ import annotations

import csv
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from ragparity.core.errors import ConfigError, MissingExtra
from ragparity.core.row import BrokenRow

if TYPE_CHECKING:
    from pathlib import Path

TableRow = Mapping[str, Any] | BrokenRow

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LARGEST_CELL = 2**31 - 1
"""Characters; the csv module's own limit of 131,072 is less than one long passage list."""
_BATCH = 1024
"""Rows of a Parquet file in memory at once."""


@dataclass(frozen=True, slots=True)
class Table:
    """A file that was found to be readable: its rows, as often as they are asked for, and their number."""

    rows: Callable[[], Iterator[Any]]
    count: Callable[[], int | None] = lambda: None


# -- JSON ----------------------------------------------------------------------------------------------


def read_json(path: Path) -> Table:
    """A list of objects; also columns with lists (or with pandas' index), or one key with a list of objects."""
    with _opened(path) as file:
        raw = file.read()
    try:
        value = json.loads(_decoded(raw, path))
    except json.JSONDecodeError as error:
        if error.msg.startswith("Extra data"):
            raise ConfigError(
                f"dataset: {path} holds several JSON values, one after the other; "
                "set dataset._type: jsonl if it is one object per line"
            ) from None
        raise ConfigError(
            f"dataset: {path} is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from None
    except RecursionError:
        raise ConfigError(f"dataset: {path} is nested too deeply to be read") from None
    items = _json_items(value, path)
    if not items:
        raise ConfigError(f"dataset: {path} has no rows")
    return Table(lambda: _json_rows(items, path), lambda: len(items))


def _json_items(value: Any, path: Path) -> list[Any]:
    if isinstance(value, dict) and value:
        inner = list(value.values())
        if len(inner) == 1 and isinstance(inner[0], list) and all(isinstance(one, dict) for one in inner[0]):
            return inner[0]
        if all(isinstance(one, list) for one in inner):
            return column_rows(value, f"dataset: {path}")
        if all(isinstance(one, dict) and one.keys() == inner[0].keys() for one in inner) and all(
            index.isdigit() for index in inner[0]
        ):
            return [{name: cells[index] for name, cells in value.items()} for index in inner[0]]
    if not isinstance(value, list):
        raise ConfigError(
            f"dataset: {path} holds {_json_name(value)}, not rows; expected a list of objects, one per row"
        )
    return value


def _json_rows(items: list[Any], path: Path) -> Iterator[TableRow]:
    for number, item in enumerate(items, 1):
        yield item if isinstance(item, dict) else _no_object(item, f"{path.name}, row {number}")


def column_rows(columns: Mapping[Any, Any], where: str) -> list[dict[str, Any]]:
    """Rows out of columns, which must have the same length."""
    lengths = {str(name): len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ConfigError(f"{where}: columns of different lengths ({told}); expected one value per row in each")
    return [dict(zip(lengths, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def read_jsonl(path: Path) -> Table:
    """One object per line; blank lines are skipped."""
    with _opened(path) as file:
        head = next((line for line in file if line.strip(_BOM + b" \t\r\n")), b"")
    _refuse_utf_16(head, path)
    if head.strip(_BOM + b" \t\r\n,") in (b"[", b"{"):
        raise ConfigError(
            f"dataset: {path} is JSON over several lines, not one object per line; set dataset._type: json"
        )
    return Table(lambda: _jsonl_rows(path), lambda: _jsonl_count(path))


def _jsonl_rows(path: Path) -> Iterator[TableRow]:
    loads = json.JSONDecoder().decode
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(_BOM)  # noqa: PLW2901  # the mark belongs to the file, not to the line
            if not line or line.isspace():
                continue
            try:
                value = loads(line.decode())
            except UnicodeDecodeError as error:
                yield BrokenRow(f"{path.name}, line {number}: not UTF-8 (byte {error.start + 1} of the line)")
            except json.JSONDecodeError as error:
                yield BrokenRow(f"{path.name}, line {number}: not valid JSON ({error.msg}, column {error.colno})")
            except (ValueError, RecursionError) as error:  # a number of too many digits, nesting too deep
                yield BrokenRow(f"{path.name}, line {number}: not readable as JSON ({error})")
            else:
                yield value if type(value) is dict else _no_object(value, f"{path.name}, line {number}")


def _jsonl_count(path: Path) -> int:
    with _opened(path) as file:
        return sum(1 for line in file if not line.isspace())


def _no_object(value: Any, where: str) -> Any:
    if isinstance(value, list) and value and all(isinstance(one, dict) and "content" in one for one in value):
        return {"messages": value}
    return BrokenRow(f"{where}: expected an object with named columns, found {_json_name(value)}")


def _json_name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


# -- CSV -----------------------------------------------------------------------------------------------


def read_csv(path: Path) -> Table:
    """A header and one record per row (RFC 4180), separated by commas, or by what a header without commas shows."""
    with _opened(path) as file:
        _refuse_utf_16(file.read(2), path)
    with _csv_reader(path) as (names, _):
        refuse_duplicates(names, f"dataset: {path}")
    return Table(lambda: _csv_rows(path), lambda: _csv_count(path))


@contextmanager
def _csv_reader(path: Path) -> Iterator[tuple[list[str], Any]]:
    csv.field_size_limit(_LARGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            separator = _separator(file)
            file.seek(0)
            reader = csv.reader(file, delimiter=separator, strict=True)
            try:
                names = next(reader, [])
            except csv.Error as error:
                raise ConfigError(f"dataset: the header of {path} cannot be read ({error})") from None
            if not any(name.strip() for name in names):
                raise ConfigError(f"dataset: {path} has no header; the first line must name the columns")
            if not _is_utf_8(names):
                raise ConfigError(f"dataset: the header of {path} is not UTF-8; save the file as UTF-8")
            yield [name if name.strip() else f"column {at}" for at, name in enumerate(names, 1)], reader
    except OSError as error:
        raise _unreadable(path, error) from None


def _separator(file: IO[str]) -> str:
    """A comma, unless the header has none and is parted by semicolons or tabs."""
    header = file.readline()
    if "," in header:
        return ","
    return next((one for one in (";", "\t") if one in header), ",")


def _csv_rows(path: Path) -> Iterator[TableRow]:
    with _csv_reader(path) as (names, reader):
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield BrokenRow(f"{path.name}, line {line}: {_csv_problem(error, reader.line_num - line)}")
                continue
            if cells is None:
                return
            if not cells:
                continue
            if len(cells) != len(names):
                yield BrokenRow(
                    f"{path.name}, line {line}: {len(cells)} cells under a header of {len(names)}; "
                    "put a cell with commas or line breaks into double quotes"
                )
            elif not _is_utf_8(cells):
                yield BrokenRow(f"{path.name}, line {line}: not UTF-8; save the file as UTF-8")
            else:
                yield dict(zip(names, cells, strict=True))


def _csv_problem(error: csv.Error, lines_after: int) -> str:
    if "unexpected end of data" in str(error):
        return f"a double quote is never closed and takes in the {lines_after} lines after it"
    return f"not valid CSV ({error}); a double quote inside a cell is written twice"


def _csv_count(path: Path) -> int:
    count = 0
    with _csv_reader(path) as (_, reader):
        while True:
            try:
                cells = next(reader, None)
            except csv.Error:
                count += 1
                continue
            if cells is None:
                return count
            count += bool(cells)


def _is_utf_8(cells: Iterable[str]) -> bool:
    """Whether no byte had to be escaped in decoding."""
    for cell in cells:
        if not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError:
                return False
    return True


# -- Parquet and Excel ---------------------------------------------------------------------------------


def read_parquet(path: Path) -> Table:
    """The rows of one Parquet file."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
        from pyarrow import parquet
    except ImportError as error:
        raise _missing(path, "pyarrow", error) from error
    _must_be_there(path)
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            count = file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"dataset: {path} is not a readable Parquet file ({_one_line(error)})") from None
    refuse_duplicates(names, f"dataset: {path}")

    def rows() -> Iterator[TableRow]:
        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=_BATCH):
                    yield from batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"dataset: {path} is damaged ({_one_line(error)})") from None

    return Table(rows, lambda: int(count))


def read_workbook(path: Path) -> Table:
    """The first sheet of an Excel workbook (.xlsx); the first row names the columns."""
    try:
        import openpyxl  # type: ignore[import-untyped]  # it has no types
    except ImportError as error:
        raise _missing(path, "openpyxl", error) from error
    _must_be_there(path)
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ConfigError(
                f"dataset: {path} is no .xlsx workbook (the old .xls format is not read); save it as .xlsx or CSV"
            )

    def rows() -> Iterator[TableRow]:
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            sheet = workbook.worksheets[0]
            sheet.reset_dimensions()  # some programs write a wrong size, which would cut rows off
            records = ([_cell(cell) for cell in record] for record in sheet.iter_rows())
            yield from _sheet_rows(records, path)
        finally:
            workbook.close()

    try:
        next(rows(), None)
    except (KeyError, IndexError, ValueError, zipfile.BadZipFile) as error:
        raise ConfigError(f"dataset: {path} is not a readable workbook ({_one_line(error)})") from None
    return Table(rows)


def _cell(cell: Any) -> Any:
    return None if getattr(cell, "data_type", None) == "e" else cell.value  # "#N/A" and its kin are no values


def _sheet_rows(records: Iterator[list[Any]], path: Path) -> Iterator[TableRow]:
    names = ["" if name is None else str(name) for name in next(records, [])]
    while names and not names[-1].strip():
        names.pop()
    if not names:
        raise ConfigError(f"dataset: {path} has no header; the first row must name the columns")
    refuse_duplicates(names, f"dataset: {path}")
    for number, cells in enumerate(records, 2):
        if all(cell is None for cell in cells):
            continue
        if any(cell is not None for cell in cells[len(names) :]):
            yield BrokenRow(f"{path.name}, row {number}: more cells than the header has columns ({len(names)})")
            continue
        filled = [*cells, *[None] * (len(names) - len(cells))]
        yield {name or f"column {at}": cell for at, (name, cell) in enumerate(zip(names, filled, strict=False), 1)}


# -- shared --------------------------------------------------------------------------------------------


def refuse_duplicates(names: Sequence[str], where: str) -> None:
    """A `ConfigError` when two columns have one name."""
    twice = [name for name, count in Counter(names).items() if count > 1 and name.strip()]
    if twice:
        raise ConfigError(f"{where}: two columns are called {twice[0]!r}; rename one of them")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _unreadable(path, error) from None


def _must_be_there(path: Path) -> None:
    with _opened(path):
        pass


def _unreadable(path: Path, error: OSError) -> ConfigError:
    if isinstance(error, FileNotFoundError):
        return ConfigError(f"dataset: {path} does not exist (looked in {path.parent.absolute()})")
    if isinstance(error, IsADirectoryError):
        return ConfigError(f"dataset: {path} is a folder; name a file in it")
    return ConfigError(f"dataset: {path} cannot be read ({error.strerror or error})")


def _decoded(raw: bytes, path: Path) -> str:
    _refuse_utf_16(raw[:2], path)
    if not raw.strip(_BOM + b" \t\r\n"):
        raise ConfigError(f"dataset: {path} is empty")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"dataset: {path} is not UTF-8 (line {line}); save the file as UTF-8") from None


def _refuse_utf_16(head: bytes, path: Path) -> None:
    if head.startswith(_UTF_16):
        raise ConfigError(f"dataset: {path} is UTF-16; save the file as UTF-8")


def _missing(path: Path, package: str, error: ImportError) -> MissingExtra:
    return MissingExtra(
        f"dataset: reading {path} needs {package}, which cannot be imported ({_one_line(error)}); "
        "pip install 'ragparity[data]'"
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
