"""Keys of a model entry that look misspelt. Every key goes to the client, as in the toolkit, so none is refused."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from ragparity.config.entries import CLIENT_KEYS, TOOLKIT_KEYS
from ragparity.config.problems import dotted, keys_of
from ragparity.config.sections import JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragparity.config.entries import ModelEntry

TYPES = ("openai", "nim", "azure_openai", "litellm")
"""Types whose keys are known; with any other the client itself has to say what it does not know."""
CLOSE = 0.84
"""From which likeness on a key is taken for another one: `temprature`, `maxtokens`; not `top_k` for `top_p`."""

OPENAI = (
    "api_version", "azure_ad_token", "default_headers", "default_query", "deployment_name", "extra_body",
    "extra_headers", "extra_query", "max_retries", "model_kwargs", "openai_api_base", "openai_api_key",
    "openai_api_type", "openai_api_version", "openai_organization", "openai_proxy", "organization", "request_timeout",
    "tiktoken_model_name", "timeout", "user",
)  # fmt: skip
"""Of both clients, of chat models and of embeddings."""
CHAT = (
    "audio", "context_management", "disable_streaming", "disabled_params", "frequency_penalty", "include",
    "include_response_headers", "logit_bias", "logprobs", "metadata", "modalities", "moderation", "n", "name",
    "output_version", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "reasoning", "reasoning_effort", "response_format",
    "safety_identifier", "seed", "service_tier", "stop", "stop_sequences", "store", "stream", "stream_options",
    "stream_usage", "streaming", "tags", "tool_choice", "tools", "top_logprobs", "top_p", "truncation",
    "use_previous_response_id", "use_responses_api", "verbose", "verbosity", "web_search_options",
)  # fmt: skip
SERVERS = (
    "best_of", "chat_template_kwargs", "guided_choice", "guided_grammar", "guided_json", "guided_regex", "ignore_eos",
    "keep_alive", "length_penalty", "min_p", "min_tokens", "num_ctx", "num_predict", "nvext", "options",
    "repetition_penalty", "skip_special_tokens", "structured_outputs", "think", "top_k", "truncate_prompt_tokens",
    "typical_p", "use_beam_search",
)  # fmt: skip
"""Of servers that speak OpenAI's protocol and more: vLLM, NIM, Ollama, llama.cpp."""
EMBEDDING = (
    "allowed_special", "check_embedding_ctx_length", "chunk_size", "deployment", "dimensions", "disallowed_special",
    "embedding_ctx_length", "encoding_format", "headers", "input_type", "retry_max_seconds", "retry_min_seconds",
    "show_progress_bar", "skip_empty", "tiktoken_enabled", "truncate",
)  # fmt: skip


def misspelt(entry: ModelEntry) -> Iterator[str]:
    """A line for each key that is unknown and nearly one that is known, or that is one of a judge block."""
    if entry.type not in TYPES:
        return
    chat = entry.section == "llms"
    known = (*CLIENT_KEYS, *TOOLKIT_KEYS, *OPENAI, *((*CHAT, *SERVERS) if chat else EMBEDDING))
    for key in entry.options:
        if key in known:
            continue
        close = get_close_matches(key.casefold().replace("-", "_"), known, n=1, cutoff=CLOSE)
        meant = close[0] if close else ""
        if chat and key in keys_of(JudgeSettings):
            meant = f"eval.general.ragparity.judges.{entry.name}.{key}"
        if meant:
            where = dotted((*entry.path, key))
            yield f"{where}: no key that is known here; it goes to the model as it is. Did you mean {meant}?"
