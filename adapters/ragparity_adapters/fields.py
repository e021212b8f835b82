"""From a row as it was written to a `Sample`: which column is which field, and how ids are given.

The rule for a column called `answer`: with a `generated_answer` in the row it is the reference (the habit of
the NeMo Agent Toolkit); else, with another spelling of the reference in the row, it is the response (the
habit of Ragas); else it is the reference, and the response is missing. Rows handed over in Python have their
response in `answer`, unless a `generated_answer` stands beside it. "In the row" means that the column is
there, whether or not its cell is filled, so that one empty cell does not turn the meaning of another around.

Columns named in `fields` (paths) or `structure` come before all of this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ragparity.core.errors import ConfigError, SampleError, did_you_mean
from ragparity.core.row import BrokenRow, Row
from ragparity.core.sample import FIELDS, TEXT_FIELDS, Sample
from ragparity.core.values import is_absent, is_conversation, plain
from ragparity_adapters import cells, paths, preprocess, reading
from ragparity_adapters.taken_ids import TakenIds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# A new spelling is one more line here. Case, blanks and hyphens do not matter, and camelCase is understood.
ALIASES: dict[str, str] = {
    "user_input": "user_input",
    "question": "user_input",
    "query": "user_input",
    "input": "user_input",
    "input_obj": "user_input",
    "prompt": "user_input",
    "response": "response",
    "output": "response",
    "output_obj": "response",
    "generated_answer": "response",
    "actual_output": "response",
    "prediction": "response",
    "reference": "reference",
    "references": "reference",
    "ground_truth": "reference",
    "ground_truths": "reference",
    "expected_output": "reference",
    "expected_output_obj": "reference",
    "expected_answer": "reference",
    "reference_answer": "reference",
    "reference_answers": "reference",
    "ideal": "reference",
    "retrieved_contexts": "retrieved_contexts",
    "retrieved_context": "retrieved_contexts",
    "retrieval_context": "retrieved_contexts",
    "retrieved_documents": "retrieved_contexts",
    "contexts": "retrieved_contexts",
    "context": "retrieved_contexts",
    "documents": "retrieved_contexts",
    "docs": "retrieved_contexts",
    "source_documents": "retrieved_contexts",
    "reference_contexts": "reference_contexts",
    "reference_context": "reference_contexts",
    "ground_truth_contexts": "reference_contexts",
    "ground_truth_context": "reference_contexts",
    "expected_contexts": "reference_contexts",
    "expected_context": "reference_contexts",
    "retrieved_context_ids": "retrieved_context_ids",
    "retrieved_document_ids": "retrieved_context_ids",
    "retrieved_doc_ids": "retrieved_context_ids",
    "retrieved_ids": "retrieved_context_ids",
    "context_ids": "retrieved_context_ids",
    "reference_context_ids": "reference_context_ids",
    "reference_document_ids": "reference_context_ids",
    "reference_doc_ids": "reference_context_ids",
    "reference_ids": "reference_context_ids",
    "expected_context_ids": "reference_context_ids",
    "messages": "messages",
    "conversation": "messages",
    "turns": "messages",
    "reference_tool_calls": "reference_tool_calls",
    "expected_tool_calls": "reference_tool_calls",
    "expected_tools": "reference_tool_calls",
    "reference_topics": "reference_topics",
    "rubrics": "rubrics",
    "rubric": "rubrics",
}
"""Field by spelling. `answer` is not among them: it has the rule above."""

_STRUCTURE = {"question_key": "user_input", "answer_key": "reference", "generated_answer_key": "response"}
_OTHER_KEYS = ("disable", "trajectory_key", "expected_trajectory_key")
_PLANS_KEPT = 1024


class _Source(NamedTuple):
    """Where a field is read from: a column, or a path (then `name` is its text)."""

    name: str
    path: paths.Path | None = None


class _Plan(NamedTuple):
    """What each column of a row is; the same for all rows with the same columns."""

    id_column: str | None
    takes: tuple[tuple[str, tuple[_Source, ...]], ...]
    extras: tuple[str, ...]
    trajectory: str | None
    expected_trajectory: str | None


class RowReader:
    """Reads rows of one data set.

    `structure`: the keys that the eval file sets under `dataset.structure`, without the defaults of those it does
    not (`question_key`, `answer_key`, `generated_answer_key`, `trajectory_key`, `disable`); where a row lacks the
    column, the known spellings are looked for. With `disable` the whole row, as JSON, is the question.
    `fields`: field (or a spelling of one) to path; a row in which the path matches nothing is an error of that
    row. Here `answer` is the response, unless the response is named too. `id_key`: the column with the ids.
    `python`: the rows come from a program, so `answer` is the response. `input_obj_field`: the entry of a
    question that is an object. `preprocess`: names out of `preprocess.PREPROCESSORS`.

    Raises `ConfigError` for options that no row could satisfy.

    >>> reader = RowReader()
    >>> sample = reader.normalise({"question": "q", "answer": "a", "ground_truth": ["g"], "contexts": '["c", "d"]'})
    >>> sample.response, sample.reference, sample.retrieved_contexts
    ('a', 'g', ('c', 'd'))
    """

    def __init__(
        self,
        *,
        structure: Mapping[str, Any] | None = None,
        fields: Mapping[str, str | None] | None = None,
        id_key: str = "id",
        python: bool = False,
        input_obj_field: str | None = None,
        preprocess: Sequence[str] = (),
    ) -> None:
        self.structure = {key: value for key, value in (structure or {}).items() if value is not None}
        for key in self.structure:
            if key not in _STRUCTURE and key not in _OTHER_KEYS:
                known = (*_STRUCTURE, *_OTHER_KEYS)
                raise ConfigError(f"dataset.structure: unknown key {key!r}.{did_you_mean(key, known)}")
        self.paths = _paths(fields or {})
        self.id_key = id_key
        self.python = python
        self.input_obj_field = input_obj_field
        self._clean_ups = _clean_ups(preprocess)
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def normalise(self, row: Mapping[str, Any], *, row_id: str | None = None) -> Sample:
        """The sample in a row, under the id `row_id` or else the row's own (blank where it has none).

        Raises `SampleError`, naming the column, for anything that cannot be read.
        """
        if not isinstance(row, Mapping):
            raise SampleError(f"expected a row with named columns, found a value of type {type(row).__name__}")
        plan = self._plan_of(row)
        return self._sample(row, plan, self._id_in(row, plan) if row_id is None else row_id)

    def read_rows(
        self, raw_rows: Iterable[Mapping[str, Any] | Sample | BrokenRow], *, warn: Callable[[str], None] | None = None
    ) -> Iterator[Row]:
        """One `Row` per raw row, in order and as they are asked for; only hashes of the ids are kept.

        Rows without an id are called `row-1`, `row-2`, … by their place; a second `7` is called `7#2`, which
        is told to `warn` and noted in the sample.
        """
        taken = TakenIds()
        for index, raw in enumerate(raw_rows):
            row: Any = raw
            plan = self._plan_of(row) if type(row) is dict or isinstance(row, Mapping) else None
            given = self._id_in(row, plan) if plan else getattr(row, "id", "")
            wanted = given or f"row-{index + 1}"
            row_id = taken.given(wanted)
            note = "" if row_id == wanted else f"id {wanted!r} was used by an earlier row; this row is {row_id!r}"
            if note and warn is not None:
                warn(note)
            try:
                sample = self._sample(row, plan, row_id) if plan else self._ready(row, row_id)
            except SampleError as error:
                yield Row(index, row_id, error=" ".join(str(error).split()))
                continue
            yield Row(index, row_id, replace(sample, notes=(*sample.notes, note)) if note else sample)

    def field_map(self, row: Mapping[str, Any] | Sample | BrokenRow) -> list[tuple[str, str]]:
        """What each column of this row is: its field, `id` or `extra`; paths stand after the columns."""
        if isinstance(row, Sample):
            return [(name, name) for name in row.canonical()] + [(str(name), "extra") for name in row.extra]
        if not isinstance(row, Mapping):
            return []
        plan = self._plan_of(row)
        told = dict.fromkeys(map(str, row), "extra")
        if plan.id_column is not None:
            told[plan.id_column] = "id"
        for name, sources in plan.takes:
            for source in sources:
                talk = name == "user_input" and source.path is None and is_conversation(row[source.name])
                told[source.name] = "messages" if talk else name
        if plan.trajectory is not None and all(name != "retrieved_contexts" for name, _ in plan.takes):
            told[plan.trajectory] = "retrieved_contexts"
        if plan.expected_trajectory is not None and all(name != "reference_tool_calls" for name, _ in plan.takes):
            told[plan.expected_trajectory] = "reference_tool_calls"
        return list(told.items())

    def _ready(self, raw: Any, row_id: str) -> Sample:
        """A row that is a sample already, under this id; anything else has no columns to read."""
        if isinstance(raw, Sample):
            return self._cleaned(replace(raw, id=row_id))
        if isinstance(raw, BrokenRow):
            raise SampleError(raw.error)
        raise SampleError(f"expected a row with named columns, found a value of type {type(raw).__name__}")

    def _sample(self, row: Mapping[str, Any], plan: _Plan, row_id: str) -> Sample:
        notes: list[str] = []
        values: dict[str, Any] = {"id": row_id}
        try:
            self._read_all(row, plan, values, notes)
            extra = _extras(row, plan.extras) if plan.extras else {}
        except RecursionError:
            raise SampleError("the row is nested too deeply, or contains itself") from None
        sample = Sample(**values, extra=extra, notes=tuple(notes))
        return self._cleaned(sample) if self._clean_ups else sample

    def _read_all(self, row: Mapping[str, Any], plan: _Plan, values: dict[str, Any], notes: list[str]) -> None:
        for name, sources in plan.takes:
            if len(sources) > 1:
                self._read_several(name, sources, row, values, notes)
                continue
            column, path = sources[0]
            value = row[column] if path is None else paths.find(row, path, f"fields: {name}")
            reading.into(values, name, value, column, notes, input_obj_field=self.input_obj_field)
        if self.structure and self.structure.get("disable") and "user_input" not in self.paths:
            values["user_input"] = json.dumps(_extras(row, row), ensure_ascii=False)
        if plan.trajectory is not None:
            reading.from_trajectory(row[plan.trajectory], plan.trajectory, values, notes)
        if plan.expected_trajectory is not None:
            reading.from_expected_trajectory(row[plan.expected_trajectory], values)
        if values.get("messages") is not None:
            reading.from_exchange(values)

    def _cleaned(self, sample: Sample) -> Sample:
        for clean_up in self._clean_ups:
            sample = clean_up(sample)
        return sample

    # -- which column is which field -------------------------------------------------------------------

    def _plan_of(self, row: Mapping[str, Any]) -> _Plan:
        columns = tuple(row)
        plan = self._plans.get(columns)
        if plan is None:
            if len(self._plans) >= _PLANS_KEPT:  # rows with columns of their own: forget, do not grow
                self._plans.clear()
            plan = self._plans[columns] = self._plan(columns)
        return plan

    def _plan(self, columns: tuple[Any, ...]) -> _Plan:
        known = {column: folded(column) for column in columns if isinstance(column, str)}
        takes: dict[str, list[_Source]] = {}
        used: set[str] = set()
        for name, path in self.paths.items():
            takes[name] = [_Source(path.text, None if path.text in known else path)]
            used.add(path.text)
        disabled = bool(self.structure.get("disable"))
        for key, name in () if disabled else _STRUCTURE.items():
            column = self.structure.get(key)
            if column in known and name not in takes:
                takes[name] = [_Source(column)]
                used.add(column)
        explicit = frozenset(takes)
        id_column = self._id_column(known, explicit)
        used.update(() if id_column is None else (id_column,))
        meant = {**ALIASES, "answer": self._answer(known, used, explicit)}
        for column, folded_name in known.items():
            field = meant.get(folded_name)
            if column in used or field is None or field in explicit:
                continue
            if disabled and field in TEXT_FIELDS:
                continue
            takes.setdefault(field, []).append(_Source(column))
            used.add(column)
        trajectory = self.structure.get("trajectory_key", "intermediate_steps")
        expected = self.structure.get("expected_trajectory_key", "expected_intermediate_steps")
        return _Plan(
            id_column=id_column,
            takes=tuple((name, tuple(takes[name])) for name in FIELDS if name in takes),  # ids after contexts
            extras=tuple(column for column in columns if column not in used),
            trajectory=trajectory if trajectory in known and not disabled else None,
            expected_trajectory=expected if expected in known and not disabled else None,
        )

    def _id_column(self, known: Mapping[str, str], explicit: frozenset[str]) -> str | None:
        if "id" in explicit:
            return None
        if self.id_key in known:
            return self.id_key
        return next((column for column, name in known.items() if name == "id"), None)

    def _answer(self, known: Mapping[str, str], used: set[str], explicit: frozenset[str]) -> str:
        """The field of a column called `answer`; see the head of this file."""
        if "response" in explicit:
            return "reference"
        if "reference" in explicit:
            return "response"
        others = [name for column, name in known.items() if column not in used]
        if "generated_answer" in others:
            return "reference"
        spelled_out = any(ALIASES.get(name) == "reference" for name in others)
        return "response" if spelled_out or self.python else "reference"

    # -- what is in it ---------------------------------------------------------------------------------

    def _id_in(self, row: Mapping[str, Any], plan: _Plan) -> str:
        """The id of a row as text, blank where it has none; a row keeps its place even where it cannot be read."""
        if plan.id_column is not None:
            value = row[plan.id_column]
            if type(value) is str and value.isascii():
                return "" if value.isspace() else value
        try:
            if (path := self.paths.get("id")) is not None:
                value = paths.find(row, path, "fields: id")
            elif plan.id_column is None:
                return ""
            found = cells.text(value, "id") or ""
        except (SampleError, RecursionError):
            return ""
        return found if found.strip() else ""

    def _read_several(
        self, name: str, sources: tuple[_Source, ...], row: Mapping[str, Any], values: dict[str, Any], notes: list[str]
    ) -> None:
        """One field under several spellings: an unfilled cell gives way, two different values are an error."""
        first: str | None = None
        for source in sources:
            found: dict[str, Any] = {}
            reading.into(found, name, row[source.name], source.name, notes, input_obj_field=self.input_obj_field)
            filled = {key: value for key, value in found.items() if not _unfilled(value, row[source.name])}
            for key, value in filled.items():
                if first is not None and key in values and values[key] != value:
                    raise SampleError(
                        f"{key}: the columns {first!r} and {source.name!r} hold different values; "
                        f"remove one, or say which with fields: {{{key}: {first}}}"
                    )
            values.update(filled or {key: value for key, value in found.items() if key not in values})
            if filled:
                first = first or source.name


@lru_cache(maxsize=4096)
def folded(column: str) -> str:
    """A column's name as it is compared with the known spellings.

    >>> folded("Retrieved Contexts"), folded("groundTruth"), folded(" user-input")
    ('retrieved_contexts', 'ground_truth', 'user_input')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.strip())
    return re.sub(r"[\s_-]+", "_", apart).casefold()


def _paths(given: Mapping[str, str | None]) -> dict[str, paths.Path]:
    names = {key: folded(str(key)) for key, path in given.items() if path is not None}
    response_named = any(ALIASES.get(name) == "response" for name in names.values())
    meant = {**ALIASES, "id": "id", "answer": "reference" if response_named else "response"}
    found: dict[str, paths.Path] = {}
    for key, name in names.items():
        if name not in meant:
            known = (*FIELDS, *ALIASES, "id")
            raise ConfigError(
                f"fields: unknown field {key!r}; there is {', '.join(FIELDS)}.{did_you_mean(name, known)}"
            )
        if meant[name] in found:
            raise ConfigError(f"fields: {key!r} names {meant[name]} a second time; keep one of the two")
        found[meant[name]] = paths.parse(given[key], f"fields: {key}")
    return found


def _clean_ups(names: Sequence[str]) -> tuple[Callable[[Sample], Sample], ...]:
    return preprocess.chosen((names,) if isinstance(names, str) else names)


def _unfilled(value: Any, cell: Any) -> bool:
    """Absent, or read from a blank text."""
    return value is None or (isinstance(cell, str) and not cell.strip())


def _extras(row: Mapping[Any, Any], columns: Iterable[Any]) -> dict[str, Any]:
    """The other columns, JSON-ready; a value that no JSON can hold is told as text."""
    found: dict[str, Any] = {}
    for column in columns:
        value = row[column]
        if type(value) is str and value.isascii():
            found[column] = value
            continue
        try:
            value = plain(value)
        except TypeError:
            value = str(value)
        if not is_absent(value):
            found[str(column)] = value
    return found
