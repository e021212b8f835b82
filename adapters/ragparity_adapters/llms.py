"""Llm entries of an eval file -> LangChain chat models. LangChain is imported when a client is built, not before.

An entry is the toolkit's: `_type`, a model name, and keys that go to the client as they are. Nothing that
the entry does not say is set on the client, with two exceptions: its own retries are off (ragparity retries)
and its own time-out is out of the way (ragparity's deadline counts each call). The token limit of the entry
is a ceiling, kept by the endpoint, not set on the client.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from ragparity.core.errors import ConfigError, MissingExtra, did_you_mean

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

    from ragparity_adapters.endpoint import Endpoint, TokenParam

NIM_URL = "https://integrate.api.nvidia.com/v1"
OPENAI_HOST = "api.openai.com"

@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSpec:
    """What an llm entry says: `options` are the keys that go to the client."""

    name: str
    type: str
    model_name: str | None = None
    base_url: str | None = None
    api_key: str | None = None
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def identity(spec: LlmSpec) -> str:
    """Provider, model, endpoint and options that can change an answer; no keys, no user names.

    >>> identity(LlmSpec(name="judge", type="openai", model_name="m", base_url="http://me:pw@localhost:1/v1"))
    'openai/m at http://localhost:1/v1'
    """
    where = f" at {without_credentials(spec.base_url)}" if spec.base_url else ""
    kwargs = spec.options.get("kwargs", {}) if spec.type == "langchain" else {}
    model = spec.model_name or kwargs.get("model") or kwargs.get("model_name") or spec.options.get("class", "")
    shown = {
        name: value
        for name, value in sorted({**spec.options, **kwargs}.items())
        if name in ("temperature", "top_p", "seed", "reasoning_effort", "n", "azure_endpoint", "api_version")
    }
    settings = "".join(f" {name}={value}" for name, value in shown.items())
    return f"{spec.type}/{model}{where}{settings}"


def without_credentials(url: str) -> str:
    """A URL without user name, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def check(spec: LlmSpec) -> None:
    """Raise `ConfigError` for what is wrong with an entry and can be known without building a client."""
    where = f"llms.{spec.name}"
    if spec.type not in BUILDERS:
        known = ", ".join(BUILDERS)
        raise ConfigError(
            f"{where}._type: {spec.type!r} is not known here; known are {known}.{did_you_mean(spec.type, BUILDERS)} "
            "Any LangChain chat model can be used with `_type: langchain`, `class: module.Class`, `kwargs: {…}`"
        )
    if spec.type == "langchain":
        _class_path(spec)
        return
    if not spec.model_name:
        raise ConfigError(f"{where}: model_name is missing")
    if spec.type == "openai" and not spec.api_key and not os.environ.get("OPENAI_API_KEY") and not spec.base_url:
        raise ConfigError(f"{where}: api_key is missing; set it there or in the variable OPENAI_API_KEY")
    if spec.type == "nim" and not spec.api_key and not os.environ.get("NVIDIA_API_KEY") and not spec.base_url:
        raise ConfigError(f"{where}: api_key is missing; set it there or in the variable NVIDIA_API_KEY")


def build(spec: LlmSpec) -> Endpoint:
    """The endpoint of an entry; raises `ConfigError` and `MissingExtra`."""
    from ragparity_adapters.endpoint import Endpoint

    check(spec)
    model, token_param = BUILDERS[spec.type](spec)
    return Endpoint(model, name=spec.name, identity=identity(spec), ceiling=spec.max_tokens, token_param=token_param)


def from_model(model: BaseChatModel, name: str = "judge") -> Endpoint:
    """The endpoint of a chat model that was made elsewhere; it is not changed."""
    from ragparity_adapters.endpoint import Endpoint

    label = getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__
    url = getattr(model, "openai_api_base", None) or getattr(model, "base_url", None)
    where = f" at {without_credentials(url)}" if isinstance(url, str) else ""
    settings = "".join(
        f" {key}={getattr(model, key)}"
        for key in ("temperature", "top_p", "seed", "reasoning_effort")
        if getattr(model, key, None) is not None
    )
    said = f"{type(model).__name__}/{label}{where}{settings}"
    return Endpoint(model, name=name, identity=said, token_param=_param_for(url if isinstance(url, str) else None))


def _param_for(url: str | None) -> TokenParam:
    """The spelling of the token limit to begin with: OpenAI's own host takes the new one, servers like it the old."""
    host = urlsplit(url).hostname if url else OPENAI_HOST
    return "max_completion_tokens" if host == OPENAI_HOST else "max_tokens"


def _openai(spec: LlmSpec) -> tuple[BaseChatModel, TokenParam]:
    return _openai_client(spec, spec.base_url, spec.api_key), _param_for(spec.base_url)


def _nim(spec: LlmSpec) -> tuple[BaseChatModel, TokenParam]:
    key = spec.api_key or os.environ.get("NVIDIA_API_KEY")
    return _openai_client(spec, spec.base_url or NIM_URL, key), "max_tokens"


def _openai_client(spec: LlmSpec, base_url: str | None, api_key: str | None) -> BaseChatModel:
    from ragparity_adapters.openai_client import LONG, JudgeChatOpenAI

    options: dict[str, Any] = dict(spec.options)
    known = JudgeChatOpenAI.model_fields
    names = {*known, *(one.alias for one in known.values() if one.alias)}
    body = {name: options.pop(name) for name in list(options) if name not in names}
    if body:
        options["extra_body"] = {**body, **options.get("extra_body", {})}
    if base_url:
        options["base_url"] = base_url
    options["api_key"] = api_key or os.environ.get("OPENAI_API_KEY") or "none"
    options |= {"max_retries": 0, "timeout": LONG}
    return _made(spec, lambda: JudgeChatOpenAI(model=spec.model_name, **options))


def _langchain(spec: LlmSpec) -> tuple[BaseChatModel, TokenParam]:
    module_name, class_name = _class_path(spec)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        package = module_name.partition(".")[0]
        distribution = package.replace("_", "-")
        raise MissingExtra(
            f"llms.{spec.name}.class: {module_name} does not import ({error}); pip install {distribution}"
        ) from error
    cls = getattr(module, class_name, None)
    if not isinstance(cls, type):
        names = [name for name in vars(module) if name.startswith("Chat")]
        hint = did_you_mean(class_name, names)
        raise ConfigError(f"llms.{spec.name}.class: {module_name} has no class {class_name}.{hint}")
    from langchain_core.language_models.chat_models import BaseChatModel

    if not issubclass(cls, BaseChatModel):
        raise ConfigError(f"llms.{spec.name}.class: {class_name} is no LangChain chat model")
    kwargs = dict(spec.options.get("kwargs") or {})
    if "max_retries" in cls.model_fields:
        kwargs.setdefault("max_retries", 0)
    model: BaseChatModel = _made(spec, lambda: cls(**kwargs))
    url = getattr(model, "openai_api_base", None)
    return model, _param_for(url if isinstance(url, str) else None)


def _class_path(spec: LlmSpec) -> tuple[str, str]:
    path = spec.options.get("class")
    module_name, _, class_name = str(path or "").rpartition(".")
    if not module_name or not class_name:
        said = f"got {path!r}" if path else "it is missing"
        raise ConfigError(
            f"llms.{spec.name}.class: expected an import path such as langchain_openai.ChatOpenAI, {said}"
        )
    return module_name, class_name


def _made(spec: LlmSpec, make: Callable[[], Any]) -> Any:
    """A client, or one line on why it cannot be made."""
    try:
        return make()
    except (ValueError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ConfigError(f"llms.{spec.name}: the client cannot be made: {' '.join(lines[:3])[:300]}") from error


BUILDERS: dict[str, Callable[[LlmSpec], tuple[Any, TokenParam]]] = {
    "openai": _openai,
    "nim": _nim,
    "langchain": _langchain,
}
"""`_type` of an llm entry -> what builds its client."""
