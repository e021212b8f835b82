"""The folder of a run: one run at a time, written as it goes, finished at the end, read back later.

`results.jsonl` is a log in order of completion; `samples.jsonl` holds the rows; `calls.jsonl` raw replies as
far as they are wanted; `summary.json`, `manifest.json` and `<evaluator>_output.json` are made at the end.
A folder is unfinished while its manifest has no end time.
"""

from __future__ import annotations

import fcntl
import json
import os
from array import array
from typing import IO, TYPE_CHECKING, Any, Self

from ragparity.core.errors import ConfigError
from ragparity.core.outcome import Failed
from ragparity.results import Record, json_line, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ragparity.core.ports import Tally
    from ragparity.core.row import Row

RESULTS, SAMPLES, CALLS = "results.jsonl", "samples.jsonl", "calls.jsonl"
SUMMARY, MANIFEST, LOCK = "summary.json", "manifest.json", ".ragparity.lock"
ABSENT = -1


class RunFolder:
    """Writes one run. Use it as a context manager; a second process on the same folder is locked out.

    `mode`: `new` replaces a finished run and refuses an unfinished one, `overwrite` replaces either, `resume`
    keeps the scored and undefined records of an unfinished or finished one.
    """

    def __init__(self, path: Path, *, mode: str = "new", save_samples: bool = True, save_calls: str = "failed") -> None:
        self.path = path
        self._mode = mode
        self._save_samples = save_samples
        self._save_calls = save_calls
        self._files: dict[str, IO[bytes]] = {}
        self._lock: IO[bytes] | None = None
        self.kept: list[Record] = []
        self.result: Any = None

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._take()
            self._begin()
        except OSError as error:
            self.close()
            raise ConfigError(f"output folder {self.path}: cannot be written ({error.strerror or error})") from None
        except ConfigError:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and let the folder go."""
        for one in self._files.values():
            one.close()
        self._files.clear()
        if self._lock is not None:
            (self.path / LOCK).unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

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

    def _begin(self) -> None:
        manifest = read_json(self.path / MANIFEST)
        unfinished = manifest is not None and not manifest.get("finished")
        if unfinished and self._mode == "new":
            raise ConfigError(
                f"output folder {self.path}: it holds an unfinished run; continue it with --resume, "
                "replace it with --overwrite, or choose another --output"
            )
        if self._mode == "resume":
            self.kept = [one for one in read_records(self.path) if not isinstance(one.outcome, Failed)]
        for name in (SUMMARY, *self._outputs()):
            (self.path / name).unlink(missing_ok=True)
        self._rewrite_results()
        self._open(RESULTS)
        if self._save_samples:
            self._open(SAMPLES, fresh=True)
        else:
            (self.path / SAMPLES).unlink(missing_ok=True)
        if self._save_calls != "none":
            self._open(CALLS, fresh=self._mode != "resume")

    def _outputs(self) -> list[str]:
        """The output files that an earlier run of ours listed; others in the folder are not ours to remove."""
        manifest = read_json(self.path / MANIFEST) or {}
        return [name for name in manifest.get("outputs", []) if isinstance(name, str) and "/" not in name]

    def _rewrite_results(self) -> None:
        fresh = self.path / f"{RESULTS}.new"
        with fresh.open("wb") as file:
            for one in self.kept:
                file.write(json_line(one.as_json()))
        fresh.replace(self.path / RESULTS)

    def _open(self, name: str, *, fresh: bool = False) -> None:
        self._files[name] = (self.path / name).open("wb" if fresh else "ab")

    # -- while the run goes on

    def sample(self, row: Row) -> None:
        """Keep a row: its fields and extra columns, and a hash of its fields."""
        if (file := self._files.get(SAMPLES)) is None:
            return
        if row.sample is None:
            file.write(json_line({"id": row.id, "error": row.error}))
            return
        known = {**row.sample.canonical(), "id": row.id}
        line = {"id": row.id, **known, "extra": dict(row.sample.extra), "hash": row.sample.digest()}
        file.write(json_line({**line, "notes": list(row.sample.notes)} if row.sample.notes else line))

    def write(self, one: Record, tally: Tally) -> None:
        """Append a record; it is in the file when this returns."""
        results = self._files[RESULTS]
        results.write(json_line(one.as_json()))
        results.flush()
        wanted = self._save_calls == "all" or (self._save_calls == "failed" and isinstance(one.outcome, Failed))
        if wanted and tally.replies and (calls := self._files.get(CALLS)) is not None:
            for reply in tally.replies:
                calls.write(json_line({"id": one.id, "evaluator": one.evaluator, **reply}))
            calls.flush()

    def manifest(self, content: Mapping[str, Any]) -> None:
        """Write the manifest, whole or not at all."""
        self._json(MANIFEST, content)

    # -- at the end

    def finish(
        self, evaluators: Sequence[tuple[str, str]], summary: Mapping[str, Any], manifest: Mapping[str, Any]
    ) -> None:
        """Write what is made from the log. `evaluators` are pairs of name and file stem."""
        self._files[RESULTS].flush()
        outputs = self._write_outputs(dict(evaluators), summary)
        self._json(SUMMARY, summary)
        self.manifest({**manifest, "outputs": outputs})

    def _write_outputs(self, stems: Mapping[str, str], summary: Mapping[str, Any]) -> list[str]:
        """One file per evaluator in the toolkit's shape, in data order; only offsets are kept in memory."""
        offsets: dict[str, array[int]] = {name: array("q") for name in stems}
        with (self.path / RESULTS).open("rb") as log:
            at = 0
            for line in log:
                head = json.loads(line)
                if (places := offsets.get(head["evaluator"])) is not None:
                    places.extend([ABSENT] * (head["row"] + 1 - len(places)))
                    places[head["row"]] = at
                at += len(line)
            for name, stem in stems.items():
                average = summary["evaluators"][name]["mean"]
                with (self.path / f"{stem}_output.json").open("wb") as file:
                    file.write(b'{"average_score": ' + json.dumps(average).encode() + b', "eval_output_items": [')
                    between = b"\n"
                    for place in offsets[name]:
                        if place != ABSENT:
                            log.seek(place)
                            file.write(between + json_line(_output_item(json.loads(log.readline()))).rstrip(b"\n"))
                            between = b",\n"
                    file.write(b"\n]}\n")
        return [f"{stem}_output.json" for stem in stems.values()]

    def _json(self, name: str, content: Mapping[str, Any]) -> None:
        fresh = self.path / f"{name}.new"
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2, default=plain)
        fresh.write_bytes(text.encode("utf-8", "replace") + b"\n")
        fresh.replace(self.path / name)


def _output_item(line: Mapping[str, Any]) -> dict[str, Any]:
    """A record as the toolkit's output item: an unscored row has no score and says why."""
    error = line["error"]
    said = f"{error['kind']}: {error['message']}" if error else (line["why"] and f"undefined: {line['why']}")
    reasoning = {
        "reason": line["reason"],
        "status": line["status"],
        "metric": line["metric"],
        "backend": line["backend"],
    }
    return {
        "id": line["id"],
        "score": line["score"],
        "reasoning": {**reasoning, **line["detail"]},
        "error": said or None,
    }


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file, or nothing where there is none or it is broken."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def read_records(path: Path) -> Iterator[Record]:
    """The records of a folder, in order of completion; a line that was cut by a crash is left out."""
    try:
        file = (path / RESULTS).open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            try:
                yield Record.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError):
                continue
