"""Where an entry's requests go, and which key they carry.

A key that stands in the entry goes to the entry's address. A key that stands only in an environment variable goes
to the provider's own hosts, or to the address that the environment names beside it: a file that names another host
must name the key too (`api_key: ${OPENAI_API_KEY}`). A file from somebody else can therefore not send a key to a
host of its choice without saying so, and a local server gets none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ragparity.core.errors import ConfigError

NO_KEY = "none"
"""What is sent where there is no key: servers that need none accept anything."""
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104  # names of this machine, nothing is bound


@dataclass(frozen=True, slots=True)
class Rule:
    """A provider: its own address (if it has one), its hosts (with all below them), and the variables it reads."""

    url: str | None
    hosts: tuple[str, ...]
    key_variable: str
    url_variables: tuple[str, ...]
    url_key: str = "base_url"


RULES: dict[str, Rule] = {
    "openai": Rule(
        "https://api.openai.com/v1", ("api.openai.com",), "OPENAI_API_KEY", ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    ),
    "nim": Rule("https://integrate.api.nvidia.com/v1", ("api.nvidia.com",), "NVIDIA_API_KEY", ("NVIDIA_BASE_URL",)),
    "azure_openai": Rule(
        None,
        ("azure.com", "azure.us", "azure.cn", "azure-api.net"),
        "AZURE_OPENAI_API_KEY",
        ("AZURE_OPENAI_ENDPOINT",),
        "azure_endpoint",
    ),
    "dynamo": Rule(None, (), "DYNAMO_API_KEY", ()),
}
"""`_type` of an entry -> where it goes."""
_OTHER_WAYS_IN = ("azure_ad_token", "azure_ad_token_provider", "azure_ad_async_token_provider")


def url_of(type_: str, base_url: str | None) -> str:
    """The address of an entry; an empty text where nothing names one.

    >>> url_of("nim", None), url_of("openai", "http://localhost:1/v1")
    ('https://integrate.api.nvidia.com/v1', 'http://localhost:1/v1')
    """
    return base_url or _url_from_environment(RULES[type_]) or RULES[type_].url or ""


def key_of(type_: str, base_url: str | None, api_key: str | None) -> str | None:
    """The key that goes along with the requests of an entry, if one does."""
    if api_key:
        return api_key
    rule = RULES[type_]
    return (os.environ.get(rule.key_variable) or None) if _may_have(rule, base_url) else None


def withheld(type_: str, base_url: str | None, api_key: str | None) -> str | None:
    """A sentence where the environment has a key that is not sent to another host; nothing about this machine."""
    rule = RULES[type_]
    host = urlsplit(base_url or "").hostname
    if api_key or not os.environ.get(rule.key_variable) or _may_have(rule, base_url) or host in LOOPBACK:
        return None
    return (
        f"the variable {rule.key_variable} is not sent to {host}; if it is meant for this host, "
        f"write api_key: ${{{rule.key_variable}}}"
    )


def check(where: str, type_: str, base_url: str | None, api_key: str | None, options: Mapping[str, Any]) -> None:
    """Raise `ConfigError` where an entry has no address, or needs a key that nothing names."""
    rule = RULES[type_]
    if not url_of(type_, base_url):
        also = f", or in the variable {rule.url_variables[0]}" if rule.url_variables else ""
        raise ConfigError(f"{where}: {rule.url_key} is missing; set it there{also}")
    if key_of(type_, base_url, api_key) is not None:
        return
    azure = type_ == "azure_openai"
    if azure and (any(options.get(one) for one in _OTHER_WAYS_IN) or os.environ.get("AZURE_OPENAI_AD_TOKEN")):
        return
    if azure or _may_have(rule, base_url):
        also = f" or in the variable {rule.key_variable}" if _may_have(rule, base_url) else ""
        sentence = withheld(type_, base_url, api_key)
        more = f" ({sentence})" if sentence else ""
        raise ConfigError(f"{where}: api_key is missing; set it there{also}{more}")


def _may_have(rule: Rule, base_url: str | None) -> bool:
    """Whether a key from the environment may go to this address."""
    if base_url is None:
        return True
    host = urlsplit(base_url).hostname or ""
    return any(host == own or host.endswith(f".{own}") for own in rule.hosts)


def _url_from_environment(rule: Rule) -> str | None:
    return next((url for name in rule.url_variables if (url := os.environ.get(name))), None)
