"""Judge replies and vectors on disk: one SQLite file, every reply plain JSON, safe under several processes.

A stored reply is what a judge's answer was in the end, after retries; failures and cut replies are none, and an
answer that a metric can do nothing with is forgotten again, or the row could never be mended. The key
is everything that could change it (see `ragparity.questions`), with one exception: the way in which structure
was asked for counts where a user pinned it, not where it was found out, since the next run has yet to find it.

Reading is done on the spot: a look-up takes about 12 µs. Writing is left to a thread, because a commit may wait
for the disk (31 µs in the median, 37 ms at worst) or for another process, and the event loop must not. Whatever
goes wrong with the file is said once and counts as "not stored": a cache never fails a run.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from ragparity.cache_file import COLUMNS, WAITS_S, connect
from ragparity.core.errors import ConfigError, NotCached
from ragparity.core.ports import Answer, Rating, Structured, Usage
from ragparity.questions import Asked, asked, vector_asked
from ragparity.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ragparity.core.ports import Embedder, Judge, Question, Shape, Tally

Mode = Literal["read_write", "read_only", "replay"]

BATCH = 500
"""Replies that are written in one transaction at most."""
TIMES = 6
"""Times that a write waits `WAITS_S` for another process."""

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The present time."""
    return datetime.now(UTC)


class Replies:
    """The stored replies of one file. `said` holds what went wrong, each once, in sentences.

    `read_write` stores what is new, `read_only` does not, `replay` asks nobody: there, a file that cannot be read
    is a `ConfigError`.
    """

    def __init__(self, path: Path, mode: Mode, *, now: Clock = utc_now) -> None:
        self.path = path
        self.mode = mode
        self.said: list[str] = []
        self._now = now
        self._reader: sqlite3.Connection | None = None
        self._writer: threading.Thread | None = None
        self._to_write: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        self._unwritten: dict[str, str] = {}
        self._dropped: set[str] = set()
        self._may_write = mode == "read_write"
        self._closed = False
        try:
            self._reader = connect(path, write=self._may_write)
        except sqlite3.Error as error:
            if mode == "replay":
                text = f"cache {path}: replay needs the stored replies, but they cannot be read ({error})"
                raise ConfigError(text) from error
            self._may_write = False
            self._warn(f"cannot be used ({error}); every question is asked")
            if mode == "read_write":
                self._read_at_least()

    def _read_at_least(self) -> None:
        """Look things up in a file that cannot be written."""
        try:
            self._reader = connect(self.path, write=False)
        except sqlite3.Error:
            return
        self.said[-1] = f"cache {self.path}: cannot be written; stored replies are used, new ones are not kept"

    def _warn(self, what: str) -> None:
        line = f"cache {self.path}: {what}"
        if line not in self.said:
            self.said.append(line)

    # -- looking up

    def find(self, key: str) -> Any:
        """The stored JSON value of a key, or nothing."""
        if key in self._dropped:
            return None
        text = self._unwritten.get(key)
        if text is None:
            found = self._rows("SELECT answer FROM replies WHERE key = ?", key)
            if not found:
                return None
            text = found[0][0]
        try:
            return json.loads(text)
        except (ValueError, TypeError):
            self.unreadable()
            return None

    def unreadable(self) -> None:
        """Say that a stored reply cannot be read; it counts as not stored."""
        self._warn("a stored reply cannot be read and is asked for again")

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._reader is None:
            return []
        try:
            return self._reader.execute(query, values).fetchall()
        except sqlite3.Error as error:
            self._warn(f"cannot be read ({error}); questions are asked as if nothing were stored")
            return []

    # -- storing

    def keep(self, question: Asked, value: Any) -> None:
        """Store a JSON value; returns at once. What JSON cannot hold is not stored."""
        if not self._may_write or self._closed:
            return
        try:
            text = json.dumps(value, allow_nan=False)
        except (ValueError, TypeError):
            self._warn("an answer that JSON cannot hold is not kept")
            return
        self._unwritten[question.key] = text
        self._dropped.discard(question.key)
        q = question
        parts = (
            q.key,
            self._now().isoformat(timespec="seconds"),
            q.judge,
            q.settings,
            q.task,
            q.prompt,
            q.data,
            q.shape,
        )
        clean = tuple(part.encode("utf-8", "replace").decode() for part in parts)
        self._write_later((*clean, q.budget, q.draw, text))

    def drop(self, key: str) -> None:
        """Forget a reply; returns at once."""
        if not self._may_write or self._closed:
            return
        self._dropped.add(key)
        self._unwritten.pop(key, None)
        self._write_later((key,))

    def _write_later(self, row: tuple[Any, ...]) -> None:
        self._to_write.put(row)
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="ragparity-cache", daemon=True)
            self._writer.start()

    def _write_all(self) -> None:
        """Write what is put into the queue, as much at a time as has gathered, until there is nothing more to come."""
        more = True
        try:
            with closing(connect(self.path, write=True)) as connection:
                while more:
                    rows, more = self._gathered()
                    _write(connection, rows)
                    for row in rows:
                        self._unwritten.pop(row[0], None)
        except sqlite3.Error as error:
            self._may_write = False
            self._warn(f"cannot be written ({error}); new replies are not kept from here on")

    def _gathered(self) -> tuple[list[tuple[Any, ...]], bool]:
        rows, item = [], self._to_write.get()
        while item is not None:
            rows.append(item)
            if len(rows) == BATCH:
                return rows, True
            try:
                item = self._to_write.get_nowait()
            except Empty:
                return rows, True
        return rows, False

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            self._to_write.put(None)
            self._writer.join(2 * WAITS_S)
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    # -- saying what is different

    def nearest(self, question: Asked) -> str:
        """What the stored question that is most like this one has different, in a sentence."""
        q = question
        # A ready-made prompt has its data in its text.
        column, value = ("data", q.data) if q.data else ("prompt", q.prompt)
        nearest = (
            f"SELECT judge, settings, task, prompt, shape, budget, draw FROM replies WHERE {column} = ? "  # noqa: S608  # constants
            "ORDER BY (prompt = ?) DESC, (judge = ?) DESC, (shape = ?) DESC, (settings = ?) DESC LIMIT 1"
        )
        if found := self._rows(nearest, value, q.prompt, q.judge, q.shape, q.settings):
            return _difference(q, found[0])
        if q.data and self._rows("SELECT 1 FROM replies WHERE prompt = ? AND shape = ? LIMIT 1", q.prompt, q.shape):
            return f"other data: this was asked about other rows, never with the data of this one ({_named(q)})"
        return f"nothing is stored that has this prompt or this data ({_named(q)})"


def _write(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Write some replies, and remove those of which there is only a key; all or none.

    Another process that holds the file for long is waited for several times.
    """
    marks = ", ".join("?" * len(COLUMNS.split(",")))
    for left in range(TIMES, 0, -1):
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if left == 1 or "locked" not in str(error):
                raise
        else:
            break
    for row in rows:
        if len(row) == 1:
            connection.execute("DELETE FROM replies WHERE key = ?", row)
        else:
            connection.execute(f"INSERT OR REPLACE INTO replies ({COLUMNS}) VALUES ({marks})", row)  # noqa: S608  # constants
    connection.execute("COMMIT")


def _named(question: Asked) -> str:
    return f"{question.task!r}" if question.task else "a vector"


def _difference(asked_now: Asked, stored: tuple[Any, ...]) -> str:
    judge, settings, task, prompt, shape, budget, draw = stored
    if prompt != asked_now.prompt:
        return (
            f"other prompt: stored for this data is {task!r}, asked is {_named(asked_now)} (with other words or rules)"
        )
    if judge != asked_now.judge:
        one, other = judge.partition(" ")[0], asked_now.judge.partition(" ")[0]
        what = "other settings of the judge" if one == other else "other judge"
        return f"{what}: stored is {judge}, asked is {asked_now.judge}"
    if settings != asked_now.settings:
        return f"other settings of the model: stored is {settings or 'none'}, asked is {asked_now.settings or 'none'}"
    if shape != asked_now.shape or budget != asked_now.budget:
        return (
            f"other form of the answer: stored is {shape.partition(' ')[0]} in {budget} tokens, "
            f"asked is {asked_now.shape.partition(' ')[0]} in {asked_now.budget} tokens"
        )
    return f"another draw: stored is {draw}, asked is {asked_now.draw} (more repetitions than were stored)"


# -- judges and embedders with a memory


class Cached(Wrapper["Judge"]):
    """A judge that is asked only what is not stored. A stored answer is no call and costs no tokens."""

    def __init__(self, judge: Judge, replies: Replies, settings: str = "") -> None:
        super().__init__(judge)
        self._replies = replies
        self._settings = settings

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """The stored answer, or the judge's; raises `NotCached` where nobody may be asked."""
        if question.complaint:
            return await self.within.ask(question, tally)
        parts = asked(self.identity, self._settings, question)
        stored = self._replies.find(parts.key)
        if stored is not None:
            answer = restored(stored, question.shape)
            if answer is not None:
                tally.cached_calls += 1
                about = {"task": question.prompt.task or "verbatim", "draw": question.draw, "raw": answer.raw}
                tally.replies.append({**about, "cached": True})
                tally.forget.append(lambda: self._replies.drop(parts.key))
                return answer
            self._replies.unreadable()
        if self._replies.mode == "replay":
            raise _not_cached(self._replies, parts)
        answer = await self.within.ask(question, tally)
        value = as_json(answer, question.shape)
        if value is not None:
            self._replies.keep(parts, value)
            tally.forget.append(lambda: self._replies.drop(parts.key))
        return answer


class CachedEmbedder(Wrapper["Embedder"]):
    """An embedder that is asked only for the vectors that are not stored, each text once."""

    def __init__(self, embedder: Embedder, replies: Replies, settings: str = "") -> None:
        super().__init__(embedder)
        self._replies = replies
        self._settings = settings

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """Vectors in the order of the texts; raises `NotCached` where nobody may be asked."""
        parts = {text: vector_asked(self.identity, self._settings, text) for text in texts}
        known = {text: vector for text, one in parts.items() if (vector := self._stored(one.key)) is not None}
        missing = [text for text in parts if text not in known]
        if missing and self._replies.mode == "replay":
            raise _not_cached(self._replies, parts[missing[0]])
        if missing:
            for text, vector in zip(missing, await self.within.embed(missing, tally), strict=True):
                known[text] = vector
                self._replies.keep(parts[text], vector)
        return [known[text] for text in texts]

    def _stored(self, key: str) -> list[float] | None:
        vector = self._replies.find(key)
        if vector is None:
            return None
        if isinstance(vector, list) and vector and all(isinstance(one, int | float) for one in vector):
            return [float(one) for one in vector]
        self._replies.unreadable()
        return None


def _not_cached(replies: Replies, parts: Asked) -> NotCached:
    text = (
        f"cache {replies.path}: no reply is stored for this question, and replay asks nobody; {replies.nearest(parts)}"
    )
    return NotCached(text, judge=parts.judge, attempts=0)


def as_json(answer: Answer, shape: Shape) -> dict[str, Any] | None:
    """An answer as JSON, or nothing where it would not come back exactly as it is."""
    value = answer.value
    if isinstance(shape, Structured):
        if not isinstance(value, shape.schema):
            return None
        value = value.model_dump(mode="json", by_alias=True)
    usage = answer.usage
    stored = {
        "value": value,
        "raw": answer.raw,
        "reason": answer.reason,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "cached_tokens": usage.cached_tokens,
        },
    }
    return stored if restored(stored, shape) == answer else None


def restored(stored: Any, shape: Shape) -> Answer | None:
    """The answer of a stored JSON value, checked against the shape that is wanted; nothing where it does not fit."""
    if not isinstance(stored, Mapping) or not isinstance(stored.get("raw"), str):
        return None
    value, reason, usage = stored.get("value"), stored.get("reason"), stored.get("usage")
    if isinstance(shape, Structured):
        try:
            value = shape.schema.model_validate(value)
        except ValueError:
            return None
    elif isinstance(shape, Rating):
        if isinstance(value, bool) or value not in shape.scale.points:
            return None
    elif not isinstance(value, str):
        return None
    if not isinstance(usage, Mapping) or not (reason is None or isinstance(reason, str)):
        return None
    try:
        counted = Usage(**usage)
    except TypeError:
        return None
    return Answer(value, stored["raw"], reason, counted)
