"""Every metric on every backend: the same rows, judge and settings, and how far the scores agree.

One run scores everything: an evaluator for each entry and backend (`faithfulness@ragas`), in one folder, with one
judge per llm entry. A backend that cannot be used is left out with a line; none ever stands in for another.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragparity import evaluation, wiring
from ragparity.calibration import AgainstPeople, Calibration, Labels, People, calibrate, read_labels
from ragparity.comparison import TOLERANCE, Comparison, Side, Terms, compare
from ragparity.core.errors import ConfigError, UnknownBackend
from ragparity.definitions import definition_of, is_of_another_api, relation, why_related
from ragparity.folder import AGREEMENT, CALLS, read_records
from ragparity.results import json_text

if TYPE_CHECKING:
    from ragparity.config import EvalFile, EvaluatorEntry
    from ragparity.core.ports import Metric
    from ragparity.core.row import Row
    from ragparity.evaluation import Choice, Finished
    from ragparity.folder import RunFolder
    from ragparity.results import Record
    from ragparity.wiring import Plan, Rows

CROSSVALIDATE = "ragparity_crossvalidate"
MANY_ROWS = 500
"""Rows from which on the comparison takes some seconds, which are announced."""
ANOTHER_API = "the collections API of Ragas has no such class; ragas_legacy has it"


@dataclass(slots=True)
class Group:
    """One entry of the file on its backends: the name of each evaluator, and why a backend is left out."""

    entry: EvaluatorEntry
    evaluators: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def backends(self) -> list[str]:
        """The backends that are compared, in order."""
        return [one for one in self.evaluators if one not in self.left_out]


@dataclass(frozen=True, slots=True)
class Field:
    """What will be compared. `problems` are entries that cannot be; `warnings` the backends that are left out."""

    plan: Plan
    groups: Sequence[Group]
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(slots=True)
class Crossvalidation:
    """What came of it: `comparisons` by name of the entry, the figures of the run, and remarks in sentences."""

    comparisons: dict[str, Comparison]
    tolerance: float = TOLERANCE
    finished: Finished | None = None
    remarks: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        pairs = ", ".join(
            f"{name}: {pair.a} – {pair.b} ({pair.relation}, {pair.n} rows)"
            for name, one in self.comparisons.items()
            for pair in one.pairs
        )
        return f"Crossvalidation({pairs})"

    @property
    def partial(self) -> str:
        """That it is about a part of the rows, where the run did not come to its end; else nothing."""
        if self.finished is None or not (self.finished.cancelled or self.finished.stopped):
            return ""
        missing = sum(one.n_not_run for one in self.finished.summaries.values())
        why = self.finished.stopped or "cancelled"
        return f"partial: {missing} scores are still to come ({why}); --resume completes it"

    @property
    def agreement(self) -> dict[str, Any]:
        """The content of `agreement.json`: per metric its backends, pairs, α, and people where there are labels.

        It begins with `partial` where the run did not come to its end.
        """
        metrics = {name: one.as_json() for name, one in self.comparisons.items()}
        return {**({"partial": self.partial} if self.partial else {}), "tolerance": self.tolerance, "metrics": metrics}

    def as_json(self) -> dict[str, Any]:
        """The same with the remarks."""
        return {**self.agreement, "remarks": list(self.remarks)}

    def plot(self, folder: str | Path) -> list[Path]:
        """Draw it into a folder, as `<metric>_<kind>.png` and `.svg`; gives the files.

        The kinds are `scatter`, `bland_altman`, `ecdf`, `heat_map`, and `labels` where there are labels of people.
        Raises `MissingExtra` without matplotlib.
        """
        from ragparity.report import plots

        return plots.draw_agreement(
            self.comparisons, Path(folder), tolerance=self.tolerance, partial=bool(self.partial)
        )

    @property
    def without_scores(self) -> list[str]:
        """Backends of an entry that have no scored row."""
        return [
            side.evaluator
            for one in self.comparisons.values()
            for side in one.sides
            if all(score is None for score in side.scores.values())
        ]


# -- planning


def has_entries(file: EvalFile) -> bool:
    """Whether the file itself says what is to be compared."""
    return any(one.type == CROSSVALIDATE for one in file.evaluators.values())


def expanded(file: EvalFile, backends: Sequence[str] = (), *, rest: bool = False) -> tuple[EvalFile, list[Group]]:
    """The file with an evaluator for each entry and backend in place of what is compared.

    Compared are the entries of `_type: ragparity_crossvalidate` on their backends; with `backends`, every entry on
    those. With `rest`, the other evaluators stay in the file. Raises `ConfigError` for a backend that is none, and
    where nothing is to be compared.
    """
    groups: list[Group] = []
    evaluators: dict[str, EvaluatorEntry] = {}
    raw: dict[str, Any] = {}
    written = (file.tree.get("eval") or {}).get("evaluators") or {}
    for name, entry in file.evaluators.items():
        if not (backends or entry.type == CROSSVALIDATE):
            if rest:
                evaluators[name], raw[name] = entry, written.get(name, {})
            continue
        if entry.skip:
            continue
        group = Group(entry, {})
        for backend in backends or entry.backends or wiring.backend_names():
            _refuse_unknown(backend, name)
            label = f"{name}@{backend.casefold()}"
            group.evaluators[backend.casefold()] = label
            evaluators[label] = replace(
                entry, name=label, type="ragparity", backend=backend.casefold(), backend_chosen=True,
                backend_in_name=backend.casefold(), backends=(),
            )  # fmt: skip
            raw[label] = _written(written.get(name, {}), entry, backend.casefold())
        groups.append(group)
    if not groups:
        raise ConfigError(
            f"nothing to compare: no entry of _type {CROSSVALIDATE} in this file; name the backends: "
            "--backends native,ragas"
        )
    general = file.general
    if not rest:
        run = general.ragparity.model_copy(update={"gate": {}, "baseline": None})
        general = replace(general, ragparity=run)
    tree = {**file.tree, "eval": {**(file.tree.get("eval") or {}), "evaluators": raw}}
    return replace(file, evaluators=evaluators, general=general, tree=tree), groups


def _refuse_unknown(backend: str, entry: str) -> None:
    try:
        wiring.backend(backend)
    except UnknownBackend as error:
        raise ConfigError(f"eval.evaluators.{entry}: {error}") from None
    except ConfigError:
        return  # it is known but cannot be used here, which its evaluators will say


def _written(raw: Mapping[str, Any], entry: EvaluatorEntry, backend: str) -> dict[str, Any]:
    """The entry as it would stand in a file, for the manifest."""
    kept = {key: value for key, value in raw.items() if key not in ("type", "_type", "backends", "backend", "metric")}
    metric = {entry.metric_name: {"kwargs": dict(entry.kwargs)}} if entry.kwargs else entry.metric_name
    return {"_type": "ragparity", "metric": metric, "backend": backend, **kept}


def lay_out(
    file: EvalFile, backends: Sequence[str] = (), *, force: bool = False, prepare: bool = True, least: int = 2
) -> Field:
    """Build every metric on every backend, and leave out what cannot be built or compared.

    With `prepare`, wrapped frameworks are imported. An entry with fewer than `least` backends is a problem. Raises
    `ConfigError` as `expanded` does.
    """
    file, groups = expanded(file, backends)
    plan = wiring.make_plan(file)
    if prepare:
        plan = wiring.prepared(plan)
    problems: list[str] = []
    warnings: list[str] = []
    kept: set[str] = set()
    metrics = {one.entry.name: one.metric for one in plan.evaluators}
    for group in groups:
        where = f"eval.evaluators.{group.entry.name}"
        _leave_out(group, metrics, plan.problems, force=force)
        if len(group.backends) < least:
            reasons = list(dict.fromkeys(group.left_out.values()))
            told = reasons if len(reasons) == 1 else [f"{one}: {why}" for one, why in group.left_out.items()]
            left = f"only {group.backends[0]} can be used; " if group.backends else ""
            problems.append(f"{where}: nothing to compare: {left}{'; '.join(told)}")
            continue
        warnings += [f"{group.entry.name}: {backend} is left out: {why}" for backend, why in group.left_out.items()]
        kept |= {group.evaluators[backend] for backend in group.backends}
    usable = tuple(one for one in plan.evaluators if one.entry.name in kept)
    compared = [one for one in groups if len(one.backends) >= least]
    return Field(replace(plan, evaluators=usable, problems=()), compared, problems, warnings)


def _leave_out(group: Group, metrics: Mapping[str, Metric], problems: Sequence[str], *, force: bool) -> None:
    """Note why a backend of a group cannot be compared."""
    for backend, name in group.evaluators.items():
        prefix = f"eval.evaluators.{name}: "
        if name not in metrics:
            said = next((line for line in problems if line.startswith(prefix)), "it cannot be used")
            group.left_out[backend] = said.removeprefix(prefix)
        elif is_of_another_api(metrics[name]):
            group.left_out[backend] = ANOTHER_API
    built = {backend: metrics[group.evaluators[backend]] for backend in group.backends}
    if not force:
        group.left_out |= strangers(built)


def strangers(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Backends that share no more than a name with every other, and the sentence that says so."""
    found = {}
    for backend, metric in metrics.items():
        others = {name: other for name, other in metrics.items() if name != backend}
        mine = definition_of(metric)
        if others and all(relation(mine, definition_of(other)) == "name" for other in others.values()):
            name, other = next(iter(others.items()))
            said = why_related(definition_of(other), mine, (f"{name}/{other.name}", f"{backend}/{metric.name}"))
            found[backend] = f"{said} (--force compares ranks nevertheless)"
    return found if len(found) < len(metrics) else dict(list(found.items())[1:])


# -- rows


def column_of(row: Row, name: str) -> Any:
    """The value of a column of a row, or below one (`human.faithfulness`); nothing where there is none."""
    return None if row.sample is None else value_at({**row.sample.canonical(), **row.sample.extra}, name)


def value_at(columns: Mapping[str, Any], name: str) -> Any:
    """The value of this name, or at this path through objects; nothing where there is none.

    >>> value_at({"human": {"label": 1}}, "human.label"), value_at({"human.label": 0}, "human.label")
    (1, 0)
    """
    if name in columns:
        return columns[name]
    found: Any = columns
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def questions_of(rows: Iterable[Row]) -> dict[str, str]:
    """The question of every row that has one."""
    return {row.id: row.sample.user_input for row in rows if row.sample is not None and row.sample.user_input}


def people_of(
    values: Mapping[str, Mapping[str, Any]], scale: tuple[float, float] | None
) -> tuple[People | None, list[str]]:
    """The labels of every column that has usable ones, and a line for what is wrong with the others."""
    annotators: list[Labels] = []
    lines: list[str] = []
    for name, column in values.items():
        try:
            annotators.append(found := read_labels(name, column, scale))
        except ConfigError as error:
            lines.append(str(error))
        else:
            lines += [f"labels {name}: {note}" for note in found.notes]
            if found.n_missing:
                lines.append(f"labels {name}: {found.n_missing} rows have none")
    return (People(annotators=annotators) if annotators else None), lines


# -- running


async def crossvalidate_file(
    field_: Field,
    rows: Rows,
    folder: RunFolder,
    *,
    choice: Choice,
    terms: Terms,
    labels: Sequence[str] = (),
    label_scale: tuple[float, float] | None = None,
    probing: bool = False,
    progress: Callable[[int, int], None],
    say: Callable[[str], None],
) -> Crossvalidation:
    """Score everything into the folder, compare, and write `agreement.json` there; raises as `evaluate_file` does.

    A run that is cancelled or that a budget ends is compared as far as it came, and marked as partial. What came of it
    is the `result` of the folder too, for those who see the cancellation only.
    """
    chosen = [views[0] for views in choice.of(rows, rows.source.count_rows())] if labels else []
    people, remarks = people_of(
        {name: {row.id: column_of(row, name) for row in chosen} for name in labels}, label_scale
    )
    for line in remarks:
        say(line)

    def compare_all(finished: Finished) -> Crossvalidation:
        n_rows = max((one.n_total for one in finished.summaries.values()), default=0)
        if n_rows > MANY_ROWS:
            say(f"comparing the scores of {n_rows:,} rows")
        seen = (views[0] for views in choice.of(rows, rows.source.count_rows()))
        full = replace(terms, clusters=questions_of(seen), replies=replies_in(folder.path))
        comparisons = _comparisons(field_, by_evaluator(read_records(folder.path)), full, people)
        found = Crossvalidation(comparisons, terms.tolerance, finished, [*field_.warnings, *remarks])
        write_agreement(folder.path, found.as_json())
        folder.result = found
        return found

    try:
        finished = await evaluation.evaluate_file(
            field_.plan, rows, folder, choice=choice, limits={}, probing=probing, progress=progress, say=say
        )
    except asyncio.CancelledError:
        if folder.result is not None:  # else it had not begun, and an earlier run still stands in the folder
            with suppress(OSError):
                compare_all(folder.result)
        raise
    return compare_all(finished)


def _comparisons(
    field_: Field, records: Mapping[str, Mapping[str, Record]], terms: Terms, people: People | None
) -> dict[str, Comparison]:
    """Every entry on its backends, by name."""
    metrics = {one.entry.name: one.metric for one in field_.plan.evaluators}
    return {
        group.entry.name: compared(
            group.entry.name,
            [
                Side(
                    backend=backend, evaluator=group.evaluators[backend], metric=metrics[group.evaluators[backend]],
                    records=records.get(group.evaluators[backend], {}), threshold=group.entry.threshold,
                )
                for backend in group.backends
            ],
            terms, people, group.left_out,
        )
        for group in field_.groups
    }  # fmt: skip


def compared(
    name: str, sides: Sequence[Side], terms: Terms, people: People | None, left_out: Mapping[str, str]
) -> Comparison:
    """One metric on its backends, and each of them against people where there are labels."""
    against = None
    if people is not None:
        judges = {side.backend: against_people(side, people, terms) for side in sides}
        against = AgainstPeople(people=people, judges=judges)
    return compare(name, sides, terms, left_out=left_out, people=against)


def against_people(side: Side, people: People, terms: Terms) -> Calibration:
    """One backend against people's labels."""
    return calibrate(
        side.evaluator, side.scores, people, threshold=side.threshold, bounds=side.metric.bounds,
        higher_is_better=side.metric.higher_is_better, clusters=terms.clusters, seed=terms.seed,
    )  # fmt: skip


def by_evaluator(records: Iterable[Record]) -> dict[str, dict[str, Record]]:
    """Records by evaluator and row, in data order; of two for one row the later counts."""
    found: dict[str, dict[str, Record]] = {}
    for one in records:
        found.setdefault(one.evaluator, {})[one.id] = one
    return {name: dict(sorted(of.items(), key=lambda pair: pair[1].row)) for name, of in found.items()}


def replies_in(path: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The raw replies that a run saved, by evaluator and row."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in _lines(path / CALLS):
        kept: dict[str, Any] = {key: line[key] for key in ("task", "raw", "finish") if key in line}
        found.setdefault((str(line.get("evaluator")), str(line.get("id"))), []).append(kept)
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue  # cut by a crash
            if isinstance(line, dict):
                yield line


def write_agreement(path: Path, content: Mapping[str, Any]) -> None:
    """Write `agreement.json` into a folder, whole or not at all."""
    fresh = path / f"{AGREEMENT}.new"
    fresh.write_bytes(json_text(content, indent=2) + b"\n")
    fresh.replace(path / AGREEMENT)
