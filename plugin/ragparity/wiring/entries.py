"""Entries of the eval file as the adapters take them, and what can be checked about them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragparity.around import model_settings
from ragparity.core import user_rules
from ragparity.core.errors import ConfigError
from ragparity_adapters import embeddings, llms

if TYPE_CHECKING:
    from ragparity.config import EvalFile, ModelEntry
    from ragparity.core.ports import Metric

NATIVE = "native"
JUDGED = frozenset({"rating", "structured", "text"})
"""Uses of a metric that ask a judge."""
JUDGE_OPTIONS = (
    "output",
    "max_tokens",
    "temperature",
    "timeout_s",
    "reasoning",
    "structured",
    "language",
    "prompt",
    "context_window",
)
"""Keys of a judge block that the adapter takes."""


def usable(file: EvalFile, entry: ModelEntry) -> ModelEntry:
    """The entry; raises `ConfigError` where a variable that it needs is not set."""
    unset = file.unset_variables(entry)
    if file.general.ragparity.cache.mode == "replay":
        # Nobody is asked, so no key is needed.
        key = file.tree[entry.section][entry.name].get("api_key")
        unset = [name for name in unset if name not in getattr(key, "names", ())]
        entry = replace(entry, api_key=entry.api_key or "none")
    if unset:
        where = f"{entry.section}.{entry.name}"
        raise ConfigError(f"{where}: the variable {unset[0]} is not set; set it, or give a default: ${{{unset[0]}:-…}}")
    return entry


def spec_of(entry: ModelEntry) -> llms.LlmSpec:
    """The entry as the adapters take it."""
    options = dict(entry.options)
    if entry.type == "langchain":
        options = {"class": entry.class_path, "kwargs": dict(entry.kwargs)}
    said = entry.toolkit
    return llms.LlmSpec(
        name=entry.name, type=entry.type, model_name=entry.model_name, azure_deployment=entry.azure_deployment,
        base_url=entry.base_url, api_key=entry.api_key, max_tokens=getattr(entry, "max_tokens", None),
        verify_ssl=said.get("verify_ssl") is not False, thinking=said.get("thinking"), api_type=said.get("api_type"),
        options=options,
    )  # fmt: skip


def settings_of(file: EvalFile, entry: ModelEntry) -> str:
    """Every setting of a model, without secrets."""
    return model_settings({**entry.options, **entry.kwargs}, file.secrets)


def is_buildable(entry: ModelEntry) -> bool:
    """Whether a client for this type of entry can be made here; else the caller must bring one."""
    return llms.can_build(entry.type) if entry.section == "llms" else embeddings.can_build(entry.type)


def judge_options(said: Any, metric: str | None = None) -> dict[str, Any]:
    """The settings of a judge block that the adapter takes, the user's rules filled in as far as is known."""
    options = {name: getattr(said, name) for name in JUDGE_OPTIONS}
    if options["prompt"]:
        known = {"metric": metric, "language": said.language}
        values = {name: value for name, value in known.items() if value}
        options["prompt"] = user_rules.filled(options["prompt"], values, leave=("scale",))
    return options


def check_prompt(said: Any, metric: Metric, *, named: bool = True) -> None:
    """Raise `ConfigError` where the user's own rules cannot be followed; not `named`: one judge serves many metrics."""
    if not said.prompt:
        return
    if metric.backend != NATIVE:
        raise ConfigError(
            f"judge.prompt: {metric.backend} asks with prompts of its own, which stay as they are; set it on "
            "evaluators of the native backend only"
        )
    without = {} if named else {"metric": "the same judge is asked by several metrics"}
    if "rating" not in metric.uses:
        without["scale"] = f"{metric.name} asks for no rating"
    if not said.language:
        without["language"] = "judge.language is not set"
    user_rules.check(said.prompt, without=without)
