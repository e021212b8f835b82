"""What to do about a missing score, by the kind of its failure or the reason why it is undefined."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragparity.core.errors import Kind
    from ragparity.core.outcome import Status

FAILED: Mapping[Kind, str] = {
    "timeout": "raise judge.timeout_s, or lower eval.general.max_concurrency; then --resume",
    "rate_limit": "lower eval.general.max_concurrency, or wait; then --resume",
    "unavailable": "see whether the endpoint runs and base_url is right; then --resume",
    "auth": "set a valid api_key on the llm entry; then --resume",
    "rejected": "compare model_name and the settings of the llm entry with what the endpoint accepts; then --resume",
    "truncated": "raise max_tokens of the llm entry (or judge.max_tokens); then --resume",
    "truncated_reasoning": "raise max_tokens of the llm entry, or let the model think less; then --resume",
    "malformed": "try another judge.structured (json_schema, tool, json_mode, prompt) or a stronger judge",
    "ambiguous": "try judge.output: structured, or a stronger judge",
    "refused": "the judge declines these rows; try another judge for them",
    "empty": "see whether the model is loaded and max_tokens is high enough; then --resume",
    "context_too_long": "give the judge shorter or fewer contexts, or take one with a larger window",
    "out_of_range": "the metric's own implementation left its range; the value is in error.raw",
    "input": "correct these rows, or map their columns with `fields`; `ragparity check` names them beforehand",
    "not_cached": "run once with cache.mode: read_write to store the replies, or leave out replay",
    "internal": "a defect of the metric; please report it with the line above",
}
"""What to do about each kind of failure."""

_UNDEFINED: Mapping[str, str] = {
    "blank_contexts": "nothing was retrieved for these rows; policies.blank_contexts: zero makes it the worst score, 0",
    "no_claims": "there is nothing to verify in a refusal or a greeting; policies.no_claims: one or zero gives a score",
    "no_verdicts": "the judge could not tell; policies.unknown_verdict says how that counts",
    "zero_vector": "the embedder found nothing in these texts",
}


def advice(status: Status, word: str) -> str | None:
    """One line on what to do, or nothing where there is nothing to say.

    >>> advice("undefined", "missing:reference")
    'fill in reference, or map its column with `fields`; `ragparity check` shows which column is which field'
    >>> advice("undefined", "no_quotes") is None
    True
    """
    if status == "failed":
        return next((text for kind, text in FAILED.items() if kind == word), None)
    what, colon, field = word.partition(":")
    if what == "missing" and colon:
        return f"fill in {field}, or map its column with `fields`; `ragparity check` shows which column is which field"
    return _UNDEFINED.get(word)
