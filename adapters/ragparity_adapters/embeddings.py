"""LangChain embeddings as an `Embedder`, and a hashing embedder that needs no model and no network."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import math
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import ConfigError, MissingExtra, did_you_mean
from ragparity.core.text import words as split_words
from ragparity_adapters import access, foreign_errors, providers
from ragparity_adapters.held_secrets import secrets_of
from ragparity_adapters.llms import API_VERSION, OWN_SWITCHES, LlmSpec, identity, made, without_credentials

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_core.embeddings import Embeddings

    from ragparity.core.ports import Tally

TYPES = ("openai", "nim", "azure_openai", *providers.EMBEDDERS, "langchain")
DIMENSIONS = 512


class LangChainEmbedder:
    """Any LangChain embeddings object; sync-only ones run in a thread.

    All texts are embedded as documents, in one request: questions are compared with questions, and models that
    treat queries and documents differently would otherwise compare two spaces.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        name: str,
        identity: str,
        timeout_s: float = 60.0,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._embeddings = _counted(embeddings)
        self._secrets = secrets_of(embeddings)
        self._close = close
        self._name = name
        self._identity = identity
        self._timeout_s = timeout_s

    @property
    def identity(self) -> str:
        """Provider, model and endpoint."""
        return self._identity

    async def aclose(self) -> None:
        """Close the client's connections, where they are ours."""
        if self._close is not None:
            await self._close()

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """One vector per text; raises a `JudgeError`."""
        requests: list[int | None] = []
        before = _requests.set(requests)
        task = asyncio.ensure_future(self._embeddings.aembed_documents(list(texts)))
        _requests.reset(before)
        try:
            await asyncio.wait({task}, timeout=self._timeout_s)
            if not task.done():
                raise foreign_errors.timed_out(self._name, self._timeout_s)
        finally:
            task.cancel()
            for tokens in requests or [None]:
                tally.embedding(tokens)
        if (error := task.exception()) is not None:
            known = foreign_errors.translate(error, self._name, secrets=self._secrets)
            raise known or error from error
        vectors = [[float(value) for value in vector] for vector in task.result()]
        if len(vectors) != len(texts):
            raise foreign_errors.wrong_count(self._name, len(texts), len(vectors))
        return vectors


_requests: ContextVar[list[int | None]] = ContextVar("requests")
"""The tokens of every request that the present call of `embed` has made; `None` where the server did not say."""


class _CountingClient:
    """The client of OpenAI-style embeddings, which keeps the counts that LangChain drops."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def create(self, **request: Any) -> Any:
        """What the client gives."""
        from openai import APIStatusError

        requests = _requests.get()
        number = len(requests)
        requests.append(None)
        try:
            response = await self._client.create(**request)
        except APIStatusError:
            requests[number] = 0  # a refusal costs no tokens
            raise
        usage = response.get("usage") if isinstance(response, dict) else getattr(response, "usage", None)
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else getattr(usage, "prompt_tokens", None)
        requests[number] = tokens if isinstance(tokens, int) and tokens >= 0 else None
        return response


def _counted(embeddings: Any) -> Any:
    """The embeddings, OpenAI-style ones as a copy whose requests are counted with their tokens."""
    if any(cls.__name__ == "OpenAIEmbeddings" for cls in type(embeddings).__mro__):
        return embeddings.model_copy(update={"async_client": _CountingClient(embeddings.async_client)})
    return embeddings


class HashingEmbedder:
    """Vectors of hashed words and word pairs, of length one: the cosine is lexical overlap, not meaning.

    For wiring and smoke tests. Weinberger et al. 2009, feature hashing; signs by hash, so collisions cancel.
    """

    identity = "offline hashing embedder"

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """One vector of `DIMENSIONS` values per text; zero for a text without words."""
        tally.embedding(0)
        return [_hashed(text) for text in texts]


def _hashed(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    words = split_words(text)
    for feature in (*words, *(f"{a} {b}" for a, b in pairwise(words))):
        digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        vector[number % DIMENSIONS] += 1.0 if number >> 63 else -1.0
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else vector


def can_build(type_: str) -> bool:
    """Whether a client of this type can be made here: the type is known, and its package is installed."""
    return type_ in TYPES and providers.is_installed(providers.EMBEDDERS.get(type_))


def check(spec: LlmSpec) -> None:
    """Raise `ConfigError` for what is wrong with an embedder entry and can be known without building a client."""
    where = f"embedders.{spec.name}"
    if spec.type not in TYPES:
        known = f"known are {', '.join(TYPES)}.{did_you_mean(spec.type, TYPES)}"
        raise ConfigError(f"{where}._type: {spec.type!r} is not known here; {known}")
    if not spec.verify_ssl and spec.type not in access.RULES:
        raise ConfigError(f"{where}.verify_ssl: false has no effect on _type {spec.type}; leave it out")
    if spec.type == "langchain":
        if "." not in str(spec.options.get("class", "")):
            raise ConfigError(f"{where}.class: expected an import path such as langchain_openai.OpenAIEmbeddings")
        return
    if not (spec.model_name or spec.azure_deployment or spec.options.get("endpoint_url")):
        raise ConfigError(f"{where}: model_name is missing")
    if spec.type in access.RULES:
        access.check(where, spec.type, spec.base_url, spec.api_key, spec.options)
    if spec.type in providers.EMBEDDERS:
        providers.installed(providers.EMBEDDERS[spec.type], f"{where}._type: {spec.type}")


def build(spec: LlmSpec) -> LangChainEmbedder:
    """The embedder of an entry; raises `ConfigError` and `MissingExtra`."""
    check(spec)
    where = f"embedders.{spec.name}"
    if spec.type == "langchain":
        return LangChainEmbedder(_by_class(spec), name=spec.name, identity=identity(spec))
    if spec.type in providers.EMBEDDERS:
        provider = providers.EMBEDDERS[spec.type]
        module = providers.imported(provider, f"{where}._type: {spec.type}")
        return LangChainEmbedder(
            made(where, lambda: provider.make(module, spec)), name=spec.name, identity=identity(spec)
        )
    return _openai_style(spec)


def _openai_style(spec: LlmSpec) -> LangChainEmbedder:
    """Embeddings of OpenAI, Azure and NIM, over an HTTP client of their own that ends with the run."""
    from langchain_openai import AzureOpenAIEmbeddings, OpenAIEmbeddings
    from openai import DefaultAsyncHttpxClient

    from ragparity_adapters.openai_client import LONG

    azure = spec.type == "azure_openai"
    cls = AzureOpenAIEmbeddings if azure else OpenAIEmbeddings
    client = DefaultAsyncHttpxClient(timeout=LONG, verify=spec.verify_ssl)
    known = {*cls.model_fields, *(f.alias for f in cls.model_fields.values() if f.alias)} - {*OWN_SWITCHES}
    options = {name: value for name, value in spec.options.items() if name in known}
    body = {name: value for name, value in spec.options.items() if name not in {*known, *OWN_SWITCHES}}
    if spec.type == "nim":
        # Models that tell queries from passages need to be told; the texts of one metric are compared with each other.
        body = {"input_type": "passage", **body}
    if body:
        options["model_kwargs"] = {"extra_body": body, **options.get("model_kwargs", {})}
    key, url = access.key_of(spec.type, spec.base_url, spec.api_key), access.url_of(spec.type, spec.base_url)
    if azure:
        options.setdefault("api_version", API_VERSION)
        options |= {"azure_endpoint": url, "azure_deployment": spec.azure_deployment or spec.model_name}
        options |= {"api_key": key, "openai_api_base": None}
    else:
        options |= {"base_url": url, "api_key": key or access.NO_KEY}
    options |= {
        "model": spec.model_name or spec.azure_deployment,
        "check_embedding_ctx_length": False,  # else a tokeniser file is fetched from a third host
        "max_retries": 0,
        "timeout": LONG,
        "http_async_client": client,
    }
    embeddings = made(f"embedders.{spec.name}", lambda: cls(**options))
    return LangChainEmbedder(embeddings, name=spec.name, identity=identity(spec), close=client.aclose)


def from_embeddings(embeddings: Embeddings, name: str = "embedder") -> LangChainEmbedder:
    """The embedder of an embeddings object that was made elsewhere."""
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None) or ""
    url = getattr(embeddings, "openai_api_base", None)
    where = f" at {without_credentials(url)}" if isinstance(url, str) else ""
    return LangChainEmbedder(embeddings, name=name, identity=f"{type(embeddings).__name__}/{model}{where}")


def _by_class(spec: LlmSpec) -> Embeddings:
    module_name, _, class_name = str(spec.options["class"]).rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except ImportError as error:
        package = module_name.partition(".")[0].replace("_", "-")
        raise MissingExtra(
            f"embedders.{spec.name}.class: {module_name} does not import ({error}); pip install {package}"
        ) from error
    except AttributeError:
        raise ConfigError(f"embedders.{spec.name}.class: {module_name} has no class {class_name}") from None
    from langchain_core.embeddings import Embeddings

    if not isinstance(cls, type) or not issubclass(cls, Embeddings):
        raise ConfigError(f"embedders.{spec.name}.class: {class_name} is no class of LangChain embeddings")
    embeddings: Embeddings = made(f"embedders.{spec.name}", lambda: cls(**(spec.options.get("kwargs") or {})))
    return embeddings
