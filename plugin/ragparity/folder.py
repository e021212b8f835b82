"""The folder of a run: one run at a time, written as it goes, finished at the end, read back later.

`results.jsonl` is a log in order of completion; `samples.jsonl` holds the rows; `calls.jsonl` raw replies as
far as they are wanted; `summary.json` and `<evaluator>_output.json` are made at the end, `manifest.json` at
the beginning and again at the end. A folder is unfinished while its manifest has no end time.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from array import array
from contextlib import suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Self

from ragparity.core.errors import ConfigError
from ragparity.core.outcome import Failed
from ragparity.output_items import ABSENT, OutputItems
from ragparity.record_text import line_and_item
from ragparity.results import Record, json_line, json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ragparity.core.ports import Tally
    from ragparity.core.row import Row
    from ragparity.results import Made

RESULTS, SAMPLES, CALLS = "results.jsonl", "samples.jsonl", "calls.jsonl"
SUMMARY, MANIFEST, LOCK = "summary.json", "manifest.json", ".ragparity.lock"
AGREEMENT, CALIBRATION = "agreement.json", "calibration.json"
"""What is made from the records of a finished run; gone as soon as another run begins."""
PLOTS, PLOT_FORMATS = "plots", ("png", "svg")
"""The folder of the plots of a run, and what each of them is written as. They go with what they show."""
_BLOCK = 65536


class RunFolder:
    """Writes one run. Use it as a context manager; a second process on the same folder is locked out.

    `mode`: `new` replaces a finished run and refuses an unfinished one, `overwrite` replaces either, `resume`
    keeps what `keep` is told to keep. Entering takes the folder and changes nothing in it; `begin` replaces
    what an earlier run left there.
    """

    def __init__(self, path: Path, *, mode: str = "new", save_samples: bool = True, save_calls: str = "failed") -> None:
        self.path = path
        self._mode = mode
        self._save_samples = save_samples
        self._save_calls = save_calls
        self._files: dict[str, IO[bytes]] = {}
        self._items = OutputItems(path)
        self._lock: IO[bytes] | None = None
        self.result: Any = None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._take()
            self._refuse_unfinished()
        except OSError as error:
            self.close()
            raise self._unwritable(error) from None
        except ConfigError:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and let the folder go."""
        for one in self._files.values():
            with suppress(OSError):  # a full disk was told when the line was written
                one.close()
        self._files.clear()
        self._items.close()
        if self._lock is not None:
            for name in (RESULTS, SAMPLES):
                (self.path / f"{name}.new").unlink(missing_ok=True)  # of a run that did not begin
            (self.path / LOCK).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

    def _unwritable(self, error: OSError) -> ConfigError:
        return ConfigError(f"output folder {self.path}: cannot be written ({error.strerror or error})")

    def _take(self) -> None:
        path = self.path / LOCK
        while self._lock is None:
            lock = path.open("ab")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                text = (
                    f"output folder {self.path}: another run is writing to it; wait for it or choose another --output"
                )
                raise ConfigError(text) from None
            # The run before may have removed the file between our opening and locking it.
            if path.exists() and os.fstat(lock.fileno()).st_ino == path.stat().st_ino:
                self._lock = lock
            else:
                lock.close()

    def _refuse_unfinished(self) -> None:
        if self._mode == "new" and unfinished(self.path):
            raise ConfigError(
                f"output folder {self.path}: it holds an unfinished run; continue it with --resume, "
                "replace it with --overwrite, or choose another --output"
            )

    def begin(
        self,
        manifest: Mapping[str, Any],
        wanted: Iterable[tuple[str, Row, str]] = (),
        renew: Callable[[Record], Record] = lambda one: one,
    ) -> Iterator[Record | None]:
        """Replace what an earlier run left, and give the records of it that are kept.

        `wanted` are evaluator, row and key of every record that would do; it is only looked at when a run is
        resumed. A record is kept when its evaluator, row and key are wanted and it did not fail; `renew` brings it up
        to the settings of this run. Where a record is not kept, and now and then while the earlier log is looked
        through, nothing is given, so that the caller may stop. Until the last is given, the earlier log stands
        untouched; rows that are told to `sample` before that are kept with the others. Raises `ConfigError` for a
        folder that cannot be written.
        """
        try:
            outputs = [*listed(self.path, "outputs"), *(f"{PLOTS}/{name}" for name in listed(self.path, "plots"))]
            fresh = [name for name in (RESULTS, SAMPLES) if name == RESULTS or self._save_samples]
            for name in fresh:
                self._files[name] = (self.path / f"{name}.new").open("wb")
            if self._mode == "resume":
                yield from self._kept(wanted, renew)
            self.flush()
            self.manifest(manifest)
            for name in fresh:
                (self.path / f"{name}.new").replace(self.path / name)
            unwanted = [] if self._save_samples else [SAMPLES]
            for name in (SUMMARY, AGREEMENT, CALIBRATION, *outputs, *unwanted):
                (self.path / name).unlink(missing_ok=True)
            _remove_if_empty(self.path / PLOTS)
            if self._save_calls != "none":
                self._open_calls()
            else:
                (self.path / CALLS).unlink(missing_ok=True)
        except OSError as error:
            raise self._unwritable(error) from None

    def _kept(
        self, wanted: Iterable[tuple[str, Row, str]], renew: Callable[[Record], Record]
    ) -> Iterator[Record | None]:
        """The records of the earlier log that are wanted again, in the order of `wanted`, written to the new one."""
        places = Places()
        for _ in places.found_in(self.path):
            yield None
        if not places:
            return
        with (self.path / RESULTS).open("rb") as log:
            for evaluator, row, key in wanted:
                text = places.line(log, evaluator, row.index)
                earlier = _record_in(text)
                if earlier is None or earlier.key != key or earlier.status == "failed":
                    yield None
                    continue
                kept = renew(earlier if earlier.id == row.id else replace(earlier, id=row.id))
                line, item = line_and_item(kept)
                self._files[RESULTS].write(text if kept is earlier else line)
                self._items.add(evaluator, row.index, item)
                yield kept

    def _open_calls(self) -> None:
        path, resumed = self.path / CALLS, self._mode == "resume"
        if resumed:
            _end_with_a_line(path)
        self._files[CALLS] = path.open("ab" if resumed else "wb")

    # -- while the run goes on

    def sample(self, row: Row) -> None:
        """Keep a row: its fields and extra columns, and a hash of its fields."""
        if (file := self._files.get(SAMPLES)) is None:
            return
        if row.sample is None:
            file.write(json_line({"id": row.id, "error": row.error}))
            return
        line = row.sample.canonical()  # the id stands first
        line |= {"id": row.id, "extra": dict(row.sample.extra), "hash": row.content}
        if row.sample.notes:
            line["notes"] = list(row.sample.notes)
        file.write(json_line(line))

    def write(self, made: Iterable[Made]) -> None:
        """Append records; they are in the file when this returns."""
        results = self._files[RESULTS]
        for one, tally in made:
            line, item = line_and_item(one)
            results.write(line)
            self._items.add(one.evaluator, one.row, item)
            if tally.replies:
                self._write_calls(one, tally)
        results.flush()

    def _write_calls(self, one: Record, tally: Tally) -> None:
        wanted = self._save_calls == "all" or (self._save_calls == "failed" and isinstance(one.outcome, Failed))
        if wanted and (calls := self._files.get(CALLS)) is not None:
            for reply in tally.replies:
                calls.write(json_line({"id": one.id, "evaluator": one.evaluator, **reply}))
            calls.flush()

    def flush(self) -> None:
        """Everything that was written is in the files when this returns."""
        for one in self._files.values():
            one.flush()

    def manifest(self, content: Mapping[str, Any]) -> None:
        """Write the manifest, whole or not at all."""
        _write_json(self.path, MANIFEST, content)

    # -- at the end

    def finish(
        self, evaluators: Sequence[tuple[str, str]], summary: Mapping[str, Any], manifest: Mapping[str, Any]
    ) -> None:
        """Write what a run ends with. `evaluators` are pairs of name and file stem."""
        self.flush()
        outputs = {name: f"{stem}_output.json" for name, stem in evaluators}
        for name, file in outputs.items():
            self._items.write(name, self.path / file, summary["evaluators"][name]["mean"])
        _write_json(self.path, SUMMARY, summary)
        self.manifest({**manifest, "outputs": list(outputs.values())})


def _end_with_a_line(path: Path) -> None:
    """Take away what a crash or a full disk left of a last line, so that the next one does not begin inside it."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - _BLOCK)
            file.seek(start)
            if (found := file.read(end - start).rfind(b"\n")) >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def listed(path: Path, what: str) -> list[str]:
    """The files that the run in a folder says are its own (`outputs`, `plots`); others there are not ours to remove."""
    manifest = read_json(path / MANIFEST) or {}
    return [name for name in manifest.get(what) or [] if isinstance(name, str) and "/" not in name]


def announce_plots(path: Path, names: Iterable[str]) -> None:
    """Write into the manifest that plots of these names, without their format, belong to the run and go with it."""
    manifest = read_json(path / MANIFEST)
    if manifest is not None:
        files = [f"{name}.{kind}" for name in names for kind in PLOT_FORMATS]
        _write_json(path, MANIFEST, {**manifest, "plots": [*dict.fromkeys([*listed(path, "plots"), *files])]})


def remove_plots(path: Path, names: Iterable[str]) -> None:
    """Remove plots of these names, without their format, from a run's folder."""
    files = {f"{name}.{kind}" for name in names for kind in PLOT_FORMATS}
    for name in listed(path, "plots"):
        if name in files:
            (path / PLOTS / name).unlink(missing_ok=True)
    _remove_if_empty(path / PLOTS)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # it is not there, or holds what is not ours
        folder.rmdir()


def _write_json(path: Path, name: str, content: Mapping[str, Any]) -> None:
    fresh = path / f"{name}.new"
    fresh.write_bytes(json_text(content, indent=2) + b"\n")
    fresh.replace(path / name)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file, or nothing where there is none or it is broken."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def unfinished(path: Path) -> bool:
    """Whether a folder holds a run that did not come to its end."""
    manifest = read_json(path / MANIFEST)
    return manifest is not None and not manifest.get("finished")


_WRITTEN = re.compile(
    rb'\{"id": "(?:[^"\\]|\\.)*", "evaluator": "([^"\\]*)", .*, "row": (\d{1,15}), "key": "[0-9a-f]+"\}\n', re.DOTALL
)
"""A line as it is written, without looking into the middle of it; nearly every line of a log is such a one."""


class Places:
    """Where in the log of a folder the last line of each evaluator and row begins; 8 bytes a line."""

    def __init__(self) -> None:
        self._places: dict[str, array[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def found_in(self, path: Path) -> Iterator[int]:
        """Look through the log of a folder; gives the place of each line that has been looked at."""
        at = 0
        for text in _lines(path):
            if (seen := _WRITTEN.fullmatch(text)) is not None:
                self._put(seen[1].decode("utf-8", "replace"), int(seen[2]), at)
            elif (one := _record_in(text)) is not None:
                self._put(one.evaluator, one.row, at)
            yield at
            at += len(text)

    def _put(self, evaluator: str, row: int, at: int) -> None:
        of_evaluator = self._places.setdefault(evaluator, array("q"))
        if row >= len(of_evaluator):
            of_evaluator.extend([ABSENT] * (row + 1 - len(of_evaluator)))
        of_evaluator[row] = at

    def line(self, log: IO[bytes], evaluator: str, row: int) -> bytes:
        """The line of an evaluator and a row out of the log; empty where there is none."""
        of_evaluator = self._places.get(evaluator, ())
        if row >= len(of_evaluator) or of_evaluator[row] == ABSENT:
            return b""
        log.seek(of_evaluator[row])
        return log.readline()


def read_records(path: Path) -> Iterator[Record]:
    """The records of a folder, in order of completion; a line that was cut by a crash is left out."""
    return (one for text in _lines(path) if (one := _record_in(text)) is not None)


def _lines(path: Path) -> Iterator[bytes]:
    """Every line of the log, as it stands."""
    try:
        file = (path / RESULTS).open("rb")
    except FileNotFoundError:
        return
    with file:
        yield from file


_decode = json.JSONDecoder().decode


def _record_in(text: bytes) -> Record | None:
    """The record of a line; nothing where it is none."""
    try:
        one = Record.from_json(_decode(text.decode()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return one if isinstance(one.row, int) and one.row >= 0 else None
