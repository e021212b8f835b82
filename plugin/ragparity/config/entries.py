"""Entries of `llms` and `embedders`: what is for the model client, and what is for the toolkit or for us."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field

from ragparity.config.problems import (
    Number,
    Problems,
    Section,
    Where,
    Whole,
    Word,
    keys_of,
    listed,
    read,
    shown,
)
from ragparity.config.yamlfile import Unset

OFFLINE = "offline"
"""The reserved name of the judge and the embedder that need no model and no entry."""

LLM_TYPES = ("openai", "nim", "azure_openai", "litellm", "langchain")
EMBEDDER_TYPES = ("openai", "nim", "azure_openai", "langchain")

_BY_HTTP = ("openai", "nim", "azure_openai")
_HTTP = re.compile(r"https?://", re.IGNORECASE)

TOOLKIT_KEYS = (
    "do_auto_retry",
    "num_retries",
    "retry_on_status_codes",
    "retry_on_errors",
    "thinking",
    "api_type",
    "verify_ssl",
    "optimizable_params",
    "search_space",
)
"""Keys of an entry that the toolkit reads itself; its model clients never see them."""

_CEILINGS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model by name. `type` is the toolkit's name of a provider, known to us or not.

    `options` are the keys that go to the model client as they are; `toolkit` those that the toolkit keeps
    for itself (`num_retries`, `thinking`, `api_type`, `verify_ssl`, …). `class_path` and `kwargs` are for
    `_type: langchain`: the import path of a class and its arguments. A secret never shows in the repr.
    """

    section: Literal["llms", "embedders"]
    name: str
    type: str
    model_name: str | None = None
    azure_deployment: str | None = None
    base_url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    toolkit: Mapping[str, Any] = field(default_factory=dict, repr=False)
    class_path: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> Where:
        """Where the entry stands in the file."""
        return (self.section, self.name)

    @property
    def known(self) -> bool:
        """Whether a client for this type can be built here."""
        return self.type in (LLM_TYPES if self.section == "llms" else EMBEDDER_TYPES)

    @property
    def retries(self) -> int | None:
        """Attempts after the first, where the toolkit's keys set them."""
        attempts = self.toolkit.get("num_retries")
        auto = self.toolkit.get("do_auto_retry")
        return retries_of(auto if isinstance(auto, bool) else None, attempts if isinstance(attempts, int) else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmEntry(ModelEntry):
    """An entry of `llms`. `max_tokens` is the ceiling of every answer; `None` is no ceiling."""

    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderEntry(ModelEntry):
    """An entry of `embedders`."""


E = TypeVar("E", LlmEntry, EmbedderEntry)


def retries_of(auto: bool | None, attempts: int | None) -> int | None:
    """The toolkit counts attempts, the first one included; retries are those after it.

    >>> retries_of(None, 5), retries_of(False, 5), retries_of(None, None)
    (4, 0, None)
    """
    if auto is False:
        return 0
    return None if attempts is None else attempts - 1


class _Client(Section):
    """Settings of a model client that are read here too; all other keys are the client's own."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    model_name: Word | None = Field(None, description="the name of a model, as text")
    model: Word | None = Field(None, description="the name of a model, as text")
    azure_deployment: Word | None = Field(None, description="the name of a deployment, as text")
    base_url: Word | None = Field(None, description="a URL")
    api_base: Word | None = Field(None, description="a URL")
    azure_endpoint: Word | None = Field(None, description="a URL")
    api_key: str | None = Field(None, description="a text; put it into quotes")
    max_tokens: Whole | None = Field(None, gt=0, description="a whole number of tokens, 1 or more")
    max_completion_tokens: Whole | None = Field(None, gt=0, description="a whole number of tokens, 1 or more")
    temperature: Number | None = Field(None, ge=0, description="a number, 0 or more")
    do_auto_retry: bool | None = Field(None, description="true or false")
    num_retries: Whole | None = Field(None, gt=0, description="a whole number of attempts, 1 or more")
    thinking: bool | None = Field(None, description="true or false")
    verify_ssl: bool | None = Field(None, description="true or false")
    api_type: Literal["chat_completion", "responses"] | None = None


CLIENT_KEYS = tuple(_Client.model_fields)


class _LangChain(Section):
    """An entry `_type: langchain`; the settings of the model are its own keyword arguments."""

    class_: Word = Field(alias="class", description="the import path of a class, package.module.Class")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="a mapping of arguments")
    max_tokens: Whole | None = Field(None, gt=0, description="a whole number of tokens, 1 or more")
    do_auto_retry: bool | None = Field(None, description="true or false")
    num_retries: Whole | None = Field(None, gt=0, description="a whole number of attempts, 1 or more")
    retry_on_status_codes: Any = None
    retry_on_errors: Any = None
    thinking: Any = None
    api_type: Any = None
    verify_ssl: Any = None


def read_entries(raw: Any, kind: type[E], problems: Problems) -> dict[str, E]:
    """The entries of `llms` or `embedders` that can be read; what is wrong with the others is noted."""
    section: Literal["llms", "embedders"] = "llms" if issubclass(kind, LlmEntry) else "embedders"
    found: dict[str, E] = {}
    for name, entry in named_mappings(raw, (section,), problems):
        if name.casefold() == OFFLINE:
            problems.add(
                (section, name),
                f"the name {OFFLINE} is reserved (a judge and an embedder without a model); choose another name",
            )
            continue
        made = _entry((section, name), entry, kind, problems)
        if made is not None:
            found[name] = made
    return found


def named_mappings(raw: Any, where: Where, problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and what stands under them, where both are what they should be."""
    if raw is None:
        return
    if not isinstance(raw, Mapping):
        problems.add(where, f"got {shown(raw)}; expected a mapping of names to entries")
        return
    for name, entry in raw.items():
        if not isinstance(name, str) or not name.strip():
            problems.add((*where, str(name)), "a name that is no text; put it into quotes")
        elif not isinstance(entry, Mapping):
            problems.add((*where, name), f"got {shown(entry)}; expected a mapping with _type in it")
        else:
            yield name, dict(entry)


def take_type(entry: dict[str, Any], where: Where, known: tuple[str, ...], problems: Problems) -> str | None:
    """Remove `_type` (or `type`) from an entry and return it without a package before a `/`."""
    given = {key: entry.pop(key) for key in ("_type", "type") if entry.get(key) is not None}
    values = list(given.values())
    if not values:
        problems.add((*where, "_type"), f"missing; expected {listed(known, 'or')}")
        return None
    if len(values) == 2 and values[0] != values[1]:  # noqa: PLR2004  # the two spellings
        problems.add((*where, "type"), f"_type is {shown(values[0])} and type is {shown(values[1])}; keep one")
        return None
    if isinstance(values[0], Unset):
        problems.add((*where, "_type"), f"{values[0]} is not set; expected {listed(known, 'or')}")
        return None
    if not isinstance(values[0], str):
        problems.add((*where, "_type"), f"got {shown(values[0])}; expected {listed(known, 'or')}")
        return None
    return values[0]


def _entry(where: Where, raw: dict[str, Any], kind: type[E], problems: Problems) -> E | None:
    known = LLM_TYPES if kind is LlmEntry else EMBEDDER_TYPES
    full = take_type(raw, where, known, problems)
    if full is None:
        return None
    package, _, short = full.rpartition("/")
    type_ = short if package in ("nat.llm", "nat.embedder") else full
    if type_ == "langchain":
        return _langchain_entry(where, raw, kind, problems)
    values = deepcopy(raw)
    if type_ in known:
        unset = {key: value for key, value in values.items() if isinstance(value, Unset)}
        made = read(_Client, {key: value for key, value in values.items() if key not in unset}, where, problems)
        if made is None:
            return None
        values = {**{key: getattr(made, key) for key in made.model_fields_set}, **unset}
    return _client_entry(where, type_, values, kind, problems, needs_model=type_ in known)


def _client_entry(
    where: Where, type_: str, values: dict[str, Any], kind: type[E], problems: Problems, *, needs_model: bool
) -> E | None:
    azure = type_ == "azure_openai"
    toolkit = {key: values.pop(key) for key in TOOLKIT_KEYS if key in values}
    # Azure has a deployment and a model, and each may stand for the other.
    deployment = _one_of(("azure_deployment",), values, where, problems)
    model = _one_of(("model_name", "model"), values, where, problems) or deployment
    if needs_model and model is None:
        problems.add((*where, "model_name"), "missing; expected the name of a model, as text")
        return None
    urls = (
        ("azure_endpoint", "base_url") if azure else ("base_url", "api_base") if type_ == "litellm" else ("base_url",)
    )
    url = _one_of(urls, values, where, problems)
    if type_ in _BY_HTTP and isinstance(url, str) and "${" not in url and not _HTTP.match(url):
        problems.add((*where, urls[0]), "expected a URL that begins with http:// or https://")
    common: dict[str, Any] = {
        "section": where[0],
        "name": where[1],
        "type": type_,
        "model_name": model,
        "azure_deployment": deployment or (model if azure else None),
        "base_url": url,
        "api_key": _one_of(("api_key",), values, where, problems),
        "toolkit": toolkit,
    }
    if kind is LlmEntry:
        common["max_tokens"] = _one_of(("max_tokens", "max_completion_tokens"), values, where, problems, kind=int)
    return kind(**common, options={key: value for key, value in values.items() if value is not None})


def _one_of(keys: tuple[str, ...], values: dict[str, Any], where: Where, problems: Problems, kind: type = str) -> Any:
    """Remove the keys, several names of one thing, and return what they say; two that differ are an error."""
    given = {key: values.pop(key) for key in keys if values.get(key) is not None}
    if len(set(map(repr, given.values()))) > 1:
        (first, one), (second, other) = list(given.items())[:2]
        problems.add((*where, second), f"{first} is {shown(one)} and {second} is {shown(other)}; keep one")
    return next((value for value in given.values() if isinstance(value, kind)), None)


def _langchain_entry(where: Where, raw: dict[str, Any], kind: type[E], problems: Problems) -> E | None:
    hints = {key: "arguments of the model stand under kwargs" for key in raw if key not in keys_of(_LangChain)}
    made = read(
        _LangChain, {key: value for key, value in raw.items() if not isinstance(value, Unset)}, where, problems, hints
    )
    if made is None:
        return None
    parts = made.class_.replace(":", ".").split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):  # noqa: PLR2004  # a package and a class
        problems.add(
            (*where, "class"), f"got {shown(made.class_)}; expected the import path of a class, package.module.Class"
        )
        return None
    arguments: dict[str, Any] = deepcopy(made.kwargs)
    common: dict[str, Any] = {
        "section": where[0],
        "name": where[1],
        "type": "langchain",
        "class_path": ".".join(parts),
        "kwargs": arguments,
        "toolkit": {key: raw[key] for key in TOOLKIT_KEYS if raw.get(key) is not None},
        "model_name": _text_in(arguments, "model", "model_name", "azure_deployment", "deployment_name"),
        "azure_deployment": _text_in(arguments, "azure_deployment", "deployment_name"),
        "base_url": _text_in(arguments, "base_url", "azure_endpoint", "openai_api_base"),
    }
    if kind is LlmEntry:
        ceilings = [made.max_tokens, *(arguments.get(key) for key in _CEILINGS)]
        common["max_tokens"] = min((n for n in ceilings if isinstance(n, int)), default=None)
    return kind(**common)


def _text_in(values: Mapping[str, Any], *keys: str) -> str | None:
    return next((str(values[key]) for key in keys if isinstance(values.get(key), str)), None)
