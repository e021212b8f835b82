"""Providers of the toolkit whose LangChain classes live in packages of their own.

Each is one `Provider`: the package, the line that installs it, and how an entry's keys become the arguments of
the class. The packages are imported when a client is built, not before. Their clients' own retries are off where
they have a switch for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import MissingExtra

if TYPE_CHECKING:
    from ragparity_adapters.llms import LlmSpec


@dataclass(frozen=True, slots=True)
class Provider:
    """A package, the line that installs it, and what makes the client from the package and an entry."""

    package: str
    install: str
    make: Callable[[Any, LlmSpec], Any]


def is_installed(provider: Provider | None) -> bool:
    """Whether the package of a provider is there; true where none is needed."""
    return provider is None or importlib.util.find_spec(provider.package) is not None


def installed(provider: Provider, where: str) -> None:
    """Raise `MissingExtra` where the package is absent; it is not imported."""
    if not is_installed(provider):
        raise MissingExtra(f"{where} needs the package {provider.package}: {provider.install}")


def imported(provider: Provider, where: str) -> Any:
    """The package; raises `MissingExtra` with the import error as its cause."""
    if provider.package == "langchain_litellm":
        # Else its import would fetch a list of prices from another host.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        package = importlib.import_module(provider.package)
    except ImportError as error:
        raise MissingExtra(f"{where}: {provider.package} does not import ({error}); {provider.install}") from error
    if provider.package == "langchain_litellm":
        # Else every error prints a banner to the standard output, which is for results.
        importlib.import_module("litellm").suppress_debug_info = True  # type: ignore[attr-defined]  # a flag of its
    return package


def _litellm(package: Any, spec: LlmSpec) -> Any:
    """LiteLLM picks the provider by the model's name. An address of the entry's own gets the entry's key or none."""
    key = spec.api_key or ("none" if spec.base_url else None)
    cls = package.ChatLiteLLM
    known, more = _split(spec.options, cls.model_fields)
    body = {"max_retries": 0, **more, **known.pop("model_kwargs", {})}
    address = {name: value for name, value in (("api_base", spec.base_url), ("api_key", key)) if value}
    return cls(model=spec.model_name, max_retries=1, model_kwargs=body, **address, **known)


def _bedrock(package: Any, spec: LlmSpec) -> Any:
    options = {name: value for name, value in spec.options.items() if name != "context_size"}
    if options.get("region_name") == "None":  # the toolkit's default is this word
        del options["region_name"]
    address = {"base_url": spec.base_url} if spec.base_url else {}
    key = {"api_key": spec.api_key} if spec.api_key else {}
    return package.ChatBedrockConverse(model=spec.model_name, max_retries=0, **address, **key, **options)


def _huggingface_inference(package: Any, spec: LlmSpec) -> Any:
    options = {name: value for name, value in spec.options.items() if name != "timeout"}
    url = options.pop("endpoint_url", None) or spec.base_url
    where = {"endpoint_url": url} if url else {"repo_id": spec.model_name}
    key = {"huggingfacehub_api_token": spec.api_key} if spec.api_key else {}
    model = package.HuggingFaceEndpoint(task="text-generation", **where, **key, **options)
    return package.ChatHuggingFace(llm=model, model_id=spec.model_name)


def _huggingface(package: Any, spec: LlmSpec) -> Any:
    """A model on this machine. `device` and `dtype` are the toolkit's keys."""
    options = dict(spec.options)
    device = options.pop("device", "auto")
    model_kwargs = {"trust_remote_code": bool(options.pop("trust_remote_code", False))}
    if (dtype := options.pop("dtype", "auto")) is not None:
        model_kwargs["dtype"] = dtype
    temperature = options.pop("temperature", None) or 0.0
    pipeline = {"do_sample": temperature > 0, **({"temperature": temperature} if temperature > 0 else {}), **options}
    model = package.HuggingFacePipeline.from_model_id(
        model_id=spec.model_name,
        task="text-generation",
        device_map=device,
        model_kwargs=model_kwargs,
        pipeline_kwargs=pipeline,
    )
    return package.ChatHuggingFace(llm=model, model_id=spec.model_name)


def _oci(package: Any, spec: LlmSpec) -> Any:
    options = {name: value for name, value in spec.options.items() if name not in ("context_size", "region")}
    region = spec.options.get("region", "us-chicago-1")
    url = options.pop("endpoint", None) or options.pop("service_endpoint", None) or spec.base_url
    known, more = _split(options, package.ChatOCIGenAI.model_fields)
    settings = {**more, **known.pop("model_kwargs", {})}
    settings |= {name: known.pop(name) for name in ("temperature", "top_p", "seed") if name in known}
    return package.ChatOCIGenAI(
        model_id=spec.model_name,
        service_endpoint=url or f"https://inference.generativeai.{region}.oci.oraclecloud.com",
        model_kwargs=settings,
        **known,
    )


def _embeddings_huggingface(package: Any, spec: LlmSpec) -> Any:
    options = dict(spec.options)
    if url := options.pop("endpoint_url", None) or spec.base_url:
        key = {"huggingfacehub_api_token": spec.api_key} if spec.api_key else {}
        return package.HuggingFaceEndpointEmbeddings(model=url, **key)
    device = options.pop("device", "auto")
    model_kwargs: dict[str, Any] = {} if device == "auto" else {"device": device}
    if options.pop("trust_remote_code", False):
        model_kwargs["trust_remote_code"] = True
    encode = {
        "normalize_embeddings": options.pop("normalize_embeddings", True),
        "batch_size": options.pop("batch_size", 32),
    }
    return package.HuggingFaceEmbeddings(model_name=spec.model_name, model_kwargs=model_kwargs, encode_kwargs=encode)


def _split(options: Any, fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options that are fields of a class, and the others."""
    names = {*fields, *(one.alias for one in fields.values() if one.alias)}
    known = {name: value for name, value in options.items() if name in names}
    return known, {name: value for name, value in options.items() if name not in names}


LLMS: dict[str, Provider] = {
    "litellm": Provider("langchain_litellm", "pip install 'ragparity[litellm]'", _litellm),
    "aws_bedrock": Provider("langchain_aws", "pip install langchain-aws", _bedrock),
    "huggingface_inference": Provider(
        "langchain_huggingface", "pip install langchain-huggingface", _huggingface_inference
    ),
    "huggingface": Provider("langchain_huggingface", "pip install 'langchain-huggingface[full]'", _huggingface),
    "oci": Provider("langchain_oci", "pip install langchain-oci", _oci),
}
"""`_type` of an llm entry -> its package."""

EMBEDDERS: dict[str, Provider] = {
    "huggingface": Provider(
        "langchain_huggingface", "pip install 'langchain-huggingface[full]'", _embeddings_huggingface
    ),
}
"""`_type` of an embedder entry -> its package."""
