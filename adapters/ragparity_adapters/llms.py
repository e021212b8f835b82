"""Llm entries of an eval file -> LangChain chat models. LangChain is imported when a client is built, not before.

An entry is the toolkit's: `_type`, a model name, and keys that go to the client as they are. Nothing that
the entry does not say is set on the client, with two exceptions: its own retries are off (ragparity retries)
and its own time-out is out of the way (ragparity's deadline counts each call). The token limit of the entry
is a ceiling, kept by the endpoint, not set on the client.

A key from the environment goes to its provider's own hosts and nowhere else, see `access`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from ragparity.core.errors import ConfigError, MissingExtra, did_you_mean
from ragparity.core.values import plain
from ragparity_adapters import access, providers
from ragparity_adapters.held_secrets import layers

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

    from ragparity_adapters.endpoint import Endpoint, TokenParam

OPENAI_HOST = "api.openai.com"
API_VERSION = "2025-04-01-preview"
"""The toolkit's default for Azure."""
OWN_SWITCHES = ("max_retries", "timeout", "request_timeout", "stream_usage")
"""Options that are ours to set: attempts and deadlines are counted here, replies are never streamed."""
_SHOWN = ("temperature", "top_p", "seed", "reasoning_effort", "n", "api_version", "region_name", "provider")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSpec:
    """What an entry of `llms` or `embedders` says: `options` are the keys that go to the client.

    `verify_ssl`, `thinking` and `api_type` are the toolkit's keys of these names. A key never shows in the repr.
    """

    name: str
    type: str
    model_name: str | None = None
    azure_deployment: str | None = None
    base_url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    max_tokens: int | None = None
    verify_ssl: bool = True
    thinking: bool | None = None
    api_type: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def identity(spec: LlmSpec) -> str:
    """Provider, model, endpoint and options that can change an answer; no keys, no user names.

    >>> identity(LlmSpec(name="judge", type="openai", model_name="m", base_url="http://me:pw@localhost:1/v1"))
    'openai/m at http://localhost:1/v1'
    """
    rule = access.RULES.get(spec.type)
    url = access.url_of(spec.type, spec.base_url) if rule else spec.base_url
    where = f" at {without_credentials(url)}" if url and not (rule and url == rule.url) else ""
    kwargs = spec.options.get("kwargs", {}) if spec.type == "langchain" else {}
    model = spec.model_name or kwargs.get("model") or kwargs.get("model_name") or spec.options.get("class", "")
    if spec.azure_deployment and spec.azure_deployment != model:
        model = f"{spec.azure_deployment}:{model}"
    shown = {name: value for name, value in sorted({**spec.options, **kwargs}.items()) if name in _SHOWN}
    if spec.type == "azure_openai":
        shown.setdefault("api_version", API_VERSION)
    if spec.thinking is not None:
        shown["thinking"] = spec.thinking
    settings = "".join(f" {name}={value}" for name, value in shown.items())
    return f"{spec.type}/{model}{where}{settings}"


def without_credentials(url: str) -> str:
    """A URL without user name, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


# -- what can be said before a client exists


def can_build(type_: str) -> bool:
    """Whether a client of this type can be made here: the type is known, and its package is installed."""
    return type_ in BUILDERS and providers.is_installed(providers.LLMS.get(type_))


def check(spec: LlmSpec) -> None:
    """Raise `ConfigError` for what is wrong with an entry and can be known without building a client."""
    where = f"llms.{spec.name}"
    if spec.type not in BUILDERS:
        known = ", ".join(BUILDERS)
        raise ConfigError(
            f"{where}._type: {spec.type!r} is not known here; known are {known}.{did_you_mean(spec.type, BUILDERS)} "
            "Any LangChain chat model can be used with `_type: langchain`, `class: module.Class`, `kwargs: {…}`"
        )
    check_toolkit_keys(spec, where)
    if spec.type == "langchain":
        _class_path(spec)
        return
    if not spec.model_name and not spec.azure_deployment:
        raise ConfigError(f"{where}: model_name is missing")
    if spec.type in access.RULES:
        access.check(where, spec.type, spec.base_url, spec.api_key, spec.options)
    if spec.type in providers.LLMS:
        providers.installed(providers.LLMS[spec.type], f"{where}._type: {spec.type}")


def check_toolkit_keys(spec: LlmSpec, where: str) -> None:
    """Raise `ConfigError` for a key of the toolkit that could not take effect."""
    if spec.api_type == "responses":
        raise ConfigError(
            f"{where}.api_type: responses is not used for judges; leave it out, and the model is asked through chat "
            "completions"
        )
    if not spec.verify_ssl and spec.type not in _HTTP_IS_OURS:
        hint = {"langchain": "say it in kwargs", "litellm": "set the variable SSL_VERIFY=False"}
        raise ConfigError(
            f"{where}.verify_ssl: false has no effect on _type {spec.type}; leave it out, and "
            f"{hint.get(spec.type, 'name the certificate authority in the environment')}"
        )
    if spec.thinking is not None and thinking_line(spec) is None:
        raise ConfigError(
            f"{where}.thinking: a switch is known for Nemotron models alone (nvidia/…nemotron…), not for "
            f"{spec.model_name}; leave it out, and say what its server takes, e.g. "
            "chat_template_kwargs: {enable_thinking: false}"
        )


def thinking_line(spec: LlmSpec) -> str | None:
    """What the system message says to switch the thinking of a Nemotron model on or off; `None` without a switch.

    As the toolkit has it: `nvidia/nvidia…` and `nvidia/llama…` from 1.5 on read `/think`, older Llama Nemotrons a
    sentence. Source: the model cards on build.nvidia.com, NeMo Agent Toolkit 1.9 `ThinkingMixin`.

    >>> thinking_line(LlmSpec(name="j", type="nim", model_name="nvidia/nvidia-nemotron-nano-9b-v2", thinking=False))
    '/no_think'
    >>> thinking_line(LlmSpec(name="j", type="nim", model_name="nvidia/llama-3.1-nemotron-70b-v1", thinking=True))
    'detailed thinking on'
    """
    if spec.thinking is None:
        return None
    for said in (spec.model_name, spec.azure_deployment):
        model = (said or "").casefold().replace("_", "-").replace(".", "-")
        if "nemotron" not in model or not model.startswith(("nvidia/nvidia", "nvidia/llama")):
            continue
        first = "v1-0" in model or "v1-1" in model or model.endswith("v1")
        if model.startswith("nvidia/llama") and first:
            return f"detailed thinking {'on' if spec.thinking else 'off'}"
        return "/think" if spec.thinking else "/no_think"
    return None


# -- clients


def build(spec: LlmSpec) -> Endpoint:
    """The endpoint of an entry; raises `ConfigError` and `MissingExtra`."""
    from ragparity_adapters.endpoint import Endpoint

    check(spec)
    model, token_param = BUILDERS[spec.type](replace(spec, options=_without_own_switches(spec.options)))
    endpoint = Endpoint(
        model,
        name=spec.name,
        identity=identity(spec),
        ceiling=spec.max_tokens,
        token_param=token_param,
        verify_ssl=spec.verify_ssl,
        system_line=thinking_line(spec),
    )
    if spec.thinking:
        endpoint.findings.level = 1
    if "request_timeout" in spec.options or "timeout" in spec.options:
        endpoint.findings.say(f"{spec.name}: the entry's time-out is not used; judge.timeout_s bounds each call")
    if spec.type in access.RULES and (withheld := access.withheld(spec.type, spec.base_url, spec.api_key)):
        endpoint.findings.say(f"{spec.name}: {withheld}")
    return endpoint


def _without_own_switches(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in OWN_SWITCHES}


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


def settings_on(model: Any) -> dict[str, Any]:
    """What was set on a model object that was made elsewhere, and on what is around it, in plain types.

    Keys, clients and other objects are left out.
    """
    found: dict[str, Any] = {}
    for one in layers(model):
        shown = {name for name, field in getattr(type(one), "model_fields", {}).items() if not field.exclude}
        for name in shown & getattr(one, "model_fields_set", set()) - {"bound", "config"}:
            with suppress(TypeError):  # it has no plain form
                found[name] = plain(getattr(one, name))
    return {name: value for name, value in found.items() if value is not None}


def _param_for(url: str | None) -> TokenParam:
    """The spelling of the token limit to begin with: OpenAI's own host takes the new one, servers like it the old."""
    host = urlsplit(url).hostname if url else OPENAI_HOST
    own = host is not None and (host == OPENAI_HOST or host.endswith(f".{OPENAI_HOST}"))
    return "max_completion_tokens" if own else "max_tokens"


def _openai(spec: LlmSpec) -> tuple[BaseChatModel, TokenParam]:
    url = access.url_of(spec.type, spec.base_url)
    return _openai_client(spec, url), "max_tokens" if spec.type != "openai" else _param_for(url)


def _dynamo(spec: LlmSpec) -> tuple[BaseChatModel, TokenParam]:
    """Dynamo speaks OpenAI's protocol; its routing hints steer a cache and change no answer."""
    hints = ("enable_nvext_hints", "disable_headers")
    options = {
        name: value
        for name, value in spec.options.items()
        if name not in hints and not name.startswith(("nvext_", "prefix_", "prediction_trie", "cache_pin", "max_sens"))
    }
    return _openai(replace(spec, options=options))


def _openai_client(spec: LlmSpec, url: str) -> BaseChatModel:
    from ragparity_adapters.openai_client import LONG, JudgeChatOpenAI

    options = in_body(spec.options, JudgeChatOpenAI.model_fields)
    options |= {
        "base_url": url,
        "api_key": access.key_of(spec.type, spec.base_url, spec.api_key) or access.NO_KEY,
        "max_retries": 0,
        "timeout": LONG,
    }
    model: BaseChatModel = made(f"llms.{spec.name}", lambda: JudgeChatOpenAI(model=spec.model_name, **options))
    return model


def _azure(spec: LlmSpec) -> tuple[BaseChatModel, TokenParam]:
    from ragparity_adapters.openai_client import LONG, JudgeAzureChatOpenAI

    options = in_body(spec.options, JudgeAzureChatOpenAI.model_fields)
    options.setdefault("api_version", API_VERSION)
    options |= {
        "azure_endpoint": access.url_of(spec.type, spec.base_url),
        "azure_deployment": spec.azure_deployment or spec.model_name,
        "model": spec.model_name or spec.azure_deployment,
        "api_key": access.key_of(spec.type, spec.base_url, spec.api_key),
        # else the variable OPENAI_API_BASE would be taken for a second address
        "openai_api_base": None,
        "max_retries": 0,
        "timeout": LONG,
    }
    return made(f"llms.{spec.name}", lambda: JudgeAzureChatOpenAI(**options)), "max_completion_tokens"


def in_body(options: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The options with those that the client does not know moved to the body of its requests."""
    known = {*fields, *(one.alias for one in fields.values() if one.alias)}
    kept = {name: value for name, value in options.items() if name in known}
    if body := {name: value for name, value in options.items() if name not in known}:
        kept["extra_body"] = {**body, **(kept.get("extra_body") or {})}
    return kept


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
    model: BaseChatModel = made(f"llms.{spec.name}", lambda: cls(**kwargs))
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


def _foreign(spec: LlmSpec) -> tuple[BaseChatModel, TokenParam]:
    provider, where = providers.LLMS[spec.type], f"llms.{spec.name}"
    module = providers.imported(provider, f"{where}._type: {spec.type}")
    return made(where, lambda: provider.make(module, spec)), "max_tokens"


def made(where: str, make: Callable[[], Any]) -> Any:
    """A client, or one line on why it cannot be made."""
    try:
        return make()
    except (ValueError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ConfigError(f"{where}: the client cannot be made: {' '.join(lines[:3])[:300]}") from error


BUILDERS: dict[str, Callable[[LlmSpec], tuple[Any, TokenParam]]] = {
    "openai": _openai,
    "nim": _openai,
    "azure_openai": _azure,
    "dynamo": _dynamo,
    **dict.fromkeys(providers.LLMS, _foreign),
    "langchain": _langchain,
}
"""`_type` of an llm entry -> what builds its client."""
_HTTP_IS_OURS = ("openai", "nim", "azure_openai", "dynamo")
