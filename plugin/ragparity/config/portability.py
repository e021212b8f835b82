"""What of an eval file only the `ragparity` command sees, for a file that is also run by `nat eval`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragparity.config.evaluators import DEFAULT_BACKEND, EvaluatorEntry
from ragparity.config.problems import keys_of, listed
from ragparity.config.sections import EvaluatorSection, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragparity.config.evalfile import EvalFile

_RUN = "eval.general.ragparity"

_SCORING = ("output", "max_tokens", "temperature", "reasoning", "context_window", "structured", "language", "prompt")
"""Judge settings that can change a score; a price, a time-out and a number of retries cannot."""

_NVIDIA_KEYS = frozenset(
    {
        "_type",
        "type",
        "metric",
        "llm_name",
        "input_obj_field",
        "enable_atif_evaluator",
        "do_auto_retry",
        "num_retries",
        "retry_on_status_codes",
        "retry_on_errors",
    }
)
"""What the evaluator `ragas` of NVIDIA's plugin reads (nvidia-nat-ragas 1.9)."""


def what_nat_eval_ignores(file: EvalFile) -> list[str]:
    """A line for each default of `eval.general.ragparity` that changes a score and is not on the evaluator.

    `nat eval` drops that block before an evaluator of ours can see it. Empty for a file that `nat eval`
    refuses anyway, since it has an entry `_type: langchain`.
    """
    if any(entry.type == "langchain" for entry in (*file.llms.values(), *file.embedders.values())):
        return []
    own = {name: _raw(file, name) for name in file.evaluators}
    return [
        *_backend(file, own),
        *_fields(file, own),
        *(line for llm in file.general.ragparity.judges for line in _judge(file, own, llm)),
    ]


def what_nvidia_ragas_ignores(file: EvalFile) -> list[str]:
    """A line for each evaluator `_type: ragas` with keys that NVIDIA's own plugin drops without a word.

    Where that plugin is installed, `nat eval` gives it every `_type: ragas`.
    """
    lines = []
    for name, entry in file.evaluators.items():
        if entry.type != "ragas":
            continue
        ours = [key for key in keys_of(EvaluatorSection) if key in _raw(file, name) and key not in _NVIDIA_KEYS]
        if ours:
            lines.append(
                f"eval.evaluators.{name}: with nvidia-nat-ragas installed, nat eval hands it to that plugin, "
                f"which drops {listed(ours)}; write _type: ragparity and backend: {entry.backend}"
            )
    return lines


def _raw(file: EvalFile, name: str) -> Mapping[str, Any]:
    raw: Mapping[str, Any] = file.tree["eval"]["evaluators"][name]
    return {key: value for key, value in raw.items() if value is not None}


def _line(setting: str, remedy: str, names: list[str]) -> str:
    return f"{_RUN}.{setting}: nat eval does not see it; write {remedy} on {listed(names)}"


def _backend(file: EvalFile, own: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    backend = file.general.ragparity.backend
    names = [
        name
        for name, entry in file.evaluators.items()
        if backend and _default_counts(entry, own[name]) and backend.casefold() != DEFAULT_BACKEND[entry.type]
    ]
    if names:
        yield _line("backend", f"backend: {backend}", names)


def _default_counts(entry: EvaluatorEntry, own: Mapping[str, Any]) -> bool:
    return entry.type != "ragparity_crossvalidate" and "backend" not in own and not entry.backend_in_name


def _fields(file: EvalFile, own: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for field, path in file.general.ragparity.fields.items():
        names = [name for name, raw in own.items() if field not in (raw.get("fields") or {})]
        if names:
            yield _line(f"fields.{field}", f"fields: {{{field}: '{path}'}}", names)


def _judge(file: EvalFile, own: Mapping[str, Mapping[str, Any]], llm: str) -> Iterator[str]:
    default = JudgeSettings()
    settings = file.general.ragparity.judges[llm]
    for key in _SCORING:
        value = getattr(settings, key)
        if value == getattr(default, key):
            continue
        names = [
            name
            for name, entry in file.evaluators.items()
            if entry.llm_name == llm and (own[name].get("judge") or {}).get(key) is None
        ]
        if names:
            text = "…" if key == "prompt" else str(value).lower() if isinstance(value, bool) else value
            yield _line(f"judges.{llm}.{key}", f"judge: {{{key}: {text}}}", names)
