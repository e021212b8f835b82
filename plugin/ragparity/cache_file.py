"""The file of the cache: its layout, opening it to read or to write, and looking after it.

One table, one line per reply, every reply plain JSON. A write-ahead log lets several processes read while one
writes; where the file system has none, SQLite's locks do the same more slowly.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ragparity.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 1
"""The layout of the file, kept in its `user_version`."""
APPLICATION = 0x52505259
"""Marks the file as ours, in its `application_id`."""
WAITS_S = 10.0
"""Seconds that a write waits for another process."""
READ_WAITS_S = 1.0
"""Seconds that a look-up waits; with a write-ahead log it never has to."""

_WAYS_TO_READ = ("mode=rw", "mode=ro", "immutable=1")
"""The first tidies up what the write-ahead log leaves beside the file; the last needs nothing beside it."""
COLUMNS = "key, created, judge, settings, task, prompt, data, shape, budget, draw, answer"
_LAYOUT = f"""
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, created TEXT NOT NULL, judge TEXT NOT NULL, settings TEXT NOT NULL, task TEXT NOT NULL,
    prompt TEXT NOT NULL, data TEXT NOT NULL, shape TEXT NOT NULL, budget INTEGER NOT NULL, draw INTEGER NOT NULL,
    answer TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_data ON replies (data);
CREATE INDEX IF NOT EXISTS by_prompt ON replies (prompt);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
"""


class ForeignFile(sqlite3.DatabaseError):
    """A database that is not ours or comes from a later version; it is left alone."""


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """An open cache file; raises `sqlite3.Error`. A file that may only be read is opened as it stands."""
    if write:
        return _connect_to_write(path)
    if not path.exists():
        raise sqlite3.OperationalError("no such file")
    for how in _WAYS_TO_READ[:-1]:
        try:
            return _checked(_opened(path, how, READ_WAITS_S))
        except sqlite3.OperationalError:
            continue
    return _checked(_opened(path, _WAYS_TO_READ[-1], READ_WAITS_S))


def _connect_to_write(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise sqlite3.OperationalError(error.strerror or str(error)) from error
    until = time.monotonic() + WAITS_S
    while True:
        connection = _opened(path, "mode=rwc", WAITS_S)
        try:
            if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                _check(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(f"BEGIN IMMEDIATE;{_LAYOUT}COMMIT;")
        except sqlite3.OperationalError as error:
            # Changing the journal does not wait for others that do the same, so the waiting is done here.
            connection.close()
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)
        except sqlite3.DatabaseError:
            connection.close()
            raise
        else:
            return connection


def _opened(path: Path, how: str, waits_s: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, timeout=waits_s, isolation_level=None, check_same_thread=False
    )


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        _check(connection)
        connection.execute("PRAGMA query_only = 1")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise ForeignFile("it is the database of another program")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != FORMAT:
        raise ForeignFile(f"its format is {version}, this version knows {FORMAT}")


# -- looking after the file


@dataclass(frozen=True, slots=True)
class Group:
    """How many replies of one judge are stored, and the times of the first and the last."""

    judge: str
    replies: int
    oldest: str
    newest: str


def stats(path: Path) -> list[Group]:
    """What is stored, by judge; raises `ConfigError` for a file that is no cache."""
    query = "SELECT judge, count(*), min(created), max(created) FROM replies GROUP BY judge ORDER BY judge"
    with _upkeep(path, write=False) as connection:
        return [Group(*row) for row in connection.execute(query)]


def prune(path: Path, *, before: datetime | None = None, judge: str | None = None) -> int:
    """Remove replies from before a time, of judges whose name holds a text, or both (all without either).

    Returns how many were removed, and gives their room back to the disk.
    """
    limit = before.astimezone(UTC).isoformat(timespec="seconds") if before is not None else None
    query = "DELETE FROM replies WHERE (?1 IS NULL OR created < ?1) AND (?2 IS NULL OR instr(judge, ?2))"
    with _upkeep(path, write=True) as connection:
        removed = connection.execute(query, (limit, judge)).rowcount
        connection.execute("VACUUM")
    return removed


@contextmanager
def _upkeep(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; expected a cache of judge replies")
    try:
        with closing(connect(path, write=write)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise ConfigError(f"{path}: not a cache that can be used ({error})") from error
