"""The eval file as a whole: read, checked, its defaults resolved; and what of it goes into the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from ragparity.config.entries import (
    OFFLINE,
    EmbedderEntry,
    LlmEntry,
    named_mappings,
    read_entries,
    take_type,
)
from ragparity.config.evaluators import EvaluatorEntry, evaluator_entry, evaluator_path, our_type
from ragparity.config.masking import masked, secrets_in
from ragparity.config.names import file_stems
from ragparity.config.problems import Problems, Where, dotted, listed, read, shown, suggestion, unknown_key
from ragparity.config.sections import (
    DEFAULT_OUTPUT,
    CustomDatasetSection,
    DatasetSection,
    Filter,
    GeneralSection,
    RunSettings,
    Structure,
)
from ragparity.config.spelling import misspelt
from ragparity.config.yamlfile import Reader, unset_in

DatasetType = Literal["json", "jsonl", "csv", "parquet", "xls", "custom"]
DATASET_TYPES: tuple[DatasetType, ...] = ("json", "jsonl", "csv", "parquet", "xls", "custom")

OUR_SECTIONS = ("llms", "embedders", "eval")
TOOLKIT_SECTIONS = (
    "general",
    "functions",
    "function_groups",
    "middleware",
    "memory",
    "object_stores",
    "optimizer",
    "retrievers",
    "ttc_strategies",
    "workflow",
    "authentication",
    "trainers",
    "trainer_adapters",
    "trajectory_builders",
    "finetuning",
)
_TOOLKIT_GENERAL = ("workflow_alias", "profiler", "validate_llm_endpoints", "per_input_user_id")
_REMOTE = ("s3", "remote_file_path")
_DATASET = ("eval", "general", "dataset")
_RUN = ("eval", "general", "ragparity")
_NAMED = (
    ("llms",),
    ("embedders",),
    ("eval", "evaluators"),
    ("eval", "evaluators", "*", "metric"),
    *((*_RUN, part) for part in ("fields", "judges", "embedders", "gate")),
)
"""Places whose keys are names that a user chose; `*` is any one key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """`eval.general.dataset`. `structure.model_fields_set` names the columns that the file sets.

    `file_path` is relative to the current directory, as in the toolkit; `function` and `kwargs` are for
    `_type: custom`.
    """

    type: DatasetType
    file_path: str | None = None
    id_key: str = "id"
    structure: Structure = field(default_factory=Structure)
    filter: Filter | None = None
    function: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Where:
        """Where the section stands in the file."""
        return _DATASET


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """`eval.general`. `output_dir` is relative to the current directory; `max_concurrency` counts judge calls."""

    output_dir: Path
    max_concurrency: int
    dataset: Dataset | None = None
    ragparity: RunSettings = field(default_factory=RunSettings)


class Entry(Protocol):
    """Something that stands in the file."""

    @property
    def path(self) -> Where:
        """The keys from the top."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalFile:
    """What an eval file says. `evaluators` holds ours only; `skipped` names what belongs to the toolkit.

    `skipped` and `warnings` are lines for people. `tree` is the file as plain data, bases, variables and
    overrides in it; it holds secrets and is for `effective` alone.
    """

    source: Path
    llms: Mapping[str, LlmEntry]
    embedders: Mapping[str, EmbedderEntry]
    general: General
    evaluators: Mapping[str, EvaluatorEntry]
    skipped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tree: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default_factory=frozenset, repr=False)

    @property
    def stems(self) -> dict[str, str]:
        """A file name without its ending for each evaluator, no two alike."""
        return file_stems(self.evaluators)

    def unset_variables(self, entry: Entry) -> list[str]:
        """The environment variables that an entry needs, has no default for, and that are not set."""
        found: Any = self.tree
        for part in entry.path:
            found = found.get(part) if isinstance(found, Mapping) else None
        return list(dict.fromkeys(name for _, text in unset_in(found) for name in text.names))

    def missing_entries(self, evaluator: EvaluatorEntry) -> list[str]:
        """A line for each llm or embedder that an evaluator names and the file does not have.

        Apart from loading, so that `--keep-going` can score the other evaluators.
        """
        lines = []
        for key, name, entries in (
            ("llm_name", evaluator.llm_name, self.llms),
            ("embedder_name", evaluator.embedder_name, self.embedders),
        ):
            if name is None or name in entries or name == OFFLINE:
                continue
            section = "llms" if key == "llm_name" else "embedders"
            hint = suggestion(name, (*entries, OFFLINE))
            known = f"{section} has {listed(entries)}" if entries else f"{section} has no entries"
            line = f"{dotted((*evaluator.path, key))}: no entry {name!r}; {known}, and {OFFLINE} needs no entry"
            lines.append(f"{line}; {hint}" if hint else line)
        return lines

    def effective(self, mask: bool = True) -> dict[str, Any]:
        """The sections that count here, defaults resolved, in plain types: an eval file again.

        Sections and evaluators of the toolkit are left out. With `mask`, secrets are `***`.
        """
        evaluation = self.tree.get("eval") or {}
        general = dict(evaluation.get("general") or {})
        general.pop("output", None)
        general["output_dir"] = str(self.general.output_dir)
        general["max_concurrency"] = self.general.max_concurrency
        if run := self.general.ragparity.model_dump(mode="json", exclude_unset=True):
            general["ragparity"] = run
        raw = evaluation.get("evaluators") or {}
        found: dict[str, Any] = {
            section: self.tree[section] for section in ("llms", "embedders") if self.tree.get(section)
        }
        found["eval"] = {
            "general": general,
            "evaluators": {name: _resolved(entry, raw[name]) for name, entry in self.evaluators.items()},
        }
        secrets = self.secrets | secrets_in(self.tree, named=_named)
        result: dict[str, Any] = masked(found, secrets, named=_named) if mask else _copied(found)
        return result


def load_eval_file(path: Path, overrides: Sequence[tuple[str, str]] = ()) -> EvalFile:
    """Read an eval file, YAML or JSON, with its `base:` files, variables, `file://` texts and overrides.

    An override is a dotted key and a value in YAML. Raises `ConfigError` with one line per problem, all
    problems of the file together.
    """
    problems = Problems()
    reader = Reader(problems)
    tree = reader.file(Path(path))
    if not tree:
        problems.stop()
        problems.add_line(f"{path}: nothing in it; expected a mapping with `eval:` in it")
    for key, value in overrides:
        tree = reader.override(tree, key, value, Path(path).resolve().parent)
    return _Assembly(Path(path), tree, problems, frozenset(reader.secrets)).file()


@dataclass(slots=True)
class _Assembly:
    source: Path
    tree: dict[str, Any]
    problems: Problems
    secrets: frozenset[str]
    skipped: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unused: list[Where] = field(default_factory=list)

    def file(self) -> EvalFile:
        for section in self.tree:
            self._top(section)
        evaluation = self._mapping(("eval",), self.tree.get("eval"), ("general", "evaluators"))
        self._unset(
            ("eval", "general"), {k: v for k, v in (_mapping(evaluation.get("general"))).items() if k != "dataset"}
        )
        llms = read_entries(self.tree.get("llms"), LlmEntry, self.problems)
        embedders = read_entries(self.tree.get("embedders"), EmbedderEntry, self.problems)
        self.warnings += [line for one in (*llms.values(), *embedders.values()) for line in misspelt(one)]
        general = self._general(evaluation.get("general"))
        evaluators = self._evaluators(evaluation.get("evaluators"), general.ragparity, llms)
        self._names_in_run(general.ragparity, llms, evaluators, _mapping(evaluation.get("evaluators")))
        self.problems.forgive(self.unused)
        self.problems.stop()
        return EvalFile(
            source=self.source,
            llms=llms,
            embedders=embedders,
            general=general,
            evaluators=evaluators,
            skipped=tuple(self.skipped),
            warnings=tuple(self.warnings),
            tree=self.tree,
            secrets=self.secrets,
        )

    def _top(self, section: Any) -> None:
        if section in TOOLKIT_SECTIONS:
            self.skipped.append(f"{section}: a section of the toolkit, not used here")
            self.unused.append((section,))
        elif section not in OUR_SECTIONS:
            self.problems.add((str(section),), unknown_key(str(section), (*OUR_SECTIONS, *TOOLKIT_SECTIONS)))

    def _mapping(self, where: Where, raw: Any, known: Iterable[str]) -> dict[str, Any]:
        if raw is not None and not isinstance(raw, Mapping):
            self.problems.add(where, f"got {shown(raw)}; expected a mapping with {listed(known)}")
        found = _mapping(raw)
        for key in found:
            if key not in known:
                self.problems.add((*where, str(key)), unknown_key(str(key), known))
        return found

    def _unset(self, where: Where, raw: Any) -> None:
        for place, text in unset_in(raw, where):
            names = listed(f"${{{name}}}" for name in text.names)
            self.problems.add(place, f"{names} is not set; set the variable, or write ${{{text.names[0]}:-default}}")

    def _general(self, raw: Any) -> General:
        section = read(GeneralSection, raw, ("eval", "general"), self.problems) or GeneralSection()
        given = _mapping(raw)
        self.skipped += [
            f"eval.general.{key}: a setting of the toolkit, not used here"
            for key in _TOOLKIT_GENERAL
            if given.get(key) is not None
        ]
        output = section.output
        if output is not None:
            for key, loss in (
                ("custom_pre_eval_process_function", "the function is not called, so rows are scored as they are"),
                ("custom_scripts", "the scripts are not run"),
                ("remote_dir", "nothing is uploaded"),
                ("s3", "nothing is uploaded"),
            ):
                if getattr(output, key) is not None:
                    self.warnings.append(f"eval.general.output.{key}: only `nat eval` does this; here {loss}")
        run = read(RunSettings, given.get("ragparity"), _RUN, self.problems) or RunSettings()
        return General(
            output_dir=(output.dir if output else None) or section.output_dir or Path(DEFAULT_OUTPUT),
            max_concurrency=section.max_concurrency,
            dataset=self._dataset(given.get("dataset")),
            ragparity=run,
        )

    def _dataset(self, raw: Any) -> Dataset | None:
        if raw is None:
            return None
        if not isinstance(raw, Mapping):
            self.problems.add(_DATASET, f"got {shown(raw)}; expected a mapping with _type and file_path")
            return None
        rest = dict(raw)
        for key in _REMOTE:
            if rest.pop(key, None) is not None:
                self.problems.add(
                    (*_DATASET, key),
                    "remote data is not supported and no URL is opened; download the file and give file_path",
                )
        type_ = take_type(rest, _DATASET, DATASET_TYPES, self.problems)
        if type_ is not None and type_ not in DATASET_TYPES:
            hint = suggestion(type_, DATASET_TYPES)
            self.problems.add(
                (*_DATASET, "_type"),
                f"got {shown(type_)}; expected {listed(DATASET_TYPES, 'or')}" + (f"; {hint}" if hint else ""),
            )
        custom = type_ == "custom"
        hints = dict.fromkeys(("function", "kwargs"), "only `_type: custom` has it")
        made = read(CustomDatasetSection if custom else DatasetSection, rest, _DATASET, self.problems, hints)
        if made is None:
            return None
        if made.file_path and "://" in made.file_path:
            self.problems.add(
                (*_DATASET, "file_path"),
                f"got {shown(made.file_path)}; no URL is opened; download the file and give its path",
            )
        return Dataset(
            type=type_,  # type: ignore[arg-type]  # any other type is a problem by now, and stops the reading
            file_path=made.file_path,
            id_key=made.id_key,
            structure=made.structure,
            filter=made.filter,
            function=made.function if isinstance(made, CustomDatasetSection) else None,
            kwargs=made.kwargs if isinstance(made, CustomDatasetSection) else {},
        )

    def _evaluators(self, raw: Any, run: RunSettings, llms: Mapping[str, LlmEntry]) -> dict[str, EvaluatorEntry]:
        found: dict[str, EvaluatorEntry] = {}
        for name, entry in named_mappings(raw, ("eval", "evaluators"), self.problems):
            where = evaluator_path(name)
            type_, skipped = our_type(entry, where, self.problems)
            if skipped:
                self.skipped.append(skipped)
                self.unused.append(where)
            if type_ is None:
                continue
            self._unset(where, entry)
            made = evaluator_entry(name, type_, entry, run=run, llms=llms, problems=self.problems)
            if made is None:
                continue
            found[name] = made
            for key in ("retry_on_status_codes", "retry_on_errors"):
                if entry.get(key) is not None:
                    self.warnings.append(
                        f"{dotted((*where, key))}: accepted, not used here; what is asked again is fixed"
                    )
        return found

    def _names_in_run(
        self,
        run: RunSettings,
        llms: Mapping[str, LlmEntry],
        evaluators: Mapping[str, EvaluatorEntry],
        all_evaluators: Mapping[str, Any],
    ) -> None:
        judges = {*_mapping(self.tree.get("llms")), *llms, OFFLINE}
        for name in run.judges:
            if name not in judges:
                self._unknown_name((*_RUN, "judges", name), "no entry of llms has this name", judges)
        embedders = {*_mapping(self.tree.get("embedders")), OFFLINE}
        for name in run.embedders:
            if name not in embedders:
                self._unknown_name((*_RUN, "embedders", name), "no entry of embedders has this name", embedders)
        for name, gate in run.gate.items():
            where = (*_RUN, "gate", name)
            if name not in all_evaluators:
                self._unknown_name(where, "no evaluator has this name", all_evaluators)
            elif evaluator_path(name) in self.unused:
                self.problems.add(where, "an evaluator of the toolkit, not scored here; remove the gate")
            elif name in evaluators and evaluators[name].skip:
                self.warnings.append(f"{dotted(where)}: the evaluator is skipped, and its gate with it")
            if gate.max_drop is not None and run.baseline is None:
                self.warnings.append(f"{dotted((*where, 'max_drop'))}: no effect without {dotted((*_RUN, 'baseline'))}")

    def _unknown_name(self, where: Where, text: str, known: Iterable[str]) -> None:
        known = [str(name) for name in known]
        hint = suggestion(where[-1], known) or (f"there are {listed(sorted(known))}" if known else "there are none")
        self.problems.add(where, f"{text}; {hint}")


def _mapping(raw: Any) -> dict[str, Any]:
    return dict(raw) if isinstance(raw, Mapping) else {}


def _resolved(entry: EvaluatorEntry, raw: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: value for key, value in raw.items() if value is not None}
    if entry.type != "ragparity_crossvalidate":
        found["backend"] = entry.backend
    if entry.fields:
        found["fields"] = dict(entry.fields)
    if settings := entry.judge.set_by_user():
        found["judge"] = settings
    return found


def _named(where: Where) -> bool:
    return any(
        len(where) == len(place) and all(part in ("*", key) for part, key in zip(place, where, strict=True))
        for place in _NAMED
    )


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner) for inner in value]
    return str(value) if isinstance(value, str | Path) else value
