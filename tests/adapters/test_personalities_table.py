"""Every kind of server, asked for a rating and for a structured answer: what is sent and what comes of it.

`python -m tests.adapters.test_personalities_table` prints the table for the README.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.adapters.wired import GOOD, RATING, STRUCTURED, FastClock, asked, azure_chat, built, held, judge_azure
from tests.fakeserver import PERSONALITIES, FakeServer

from ragparity.core.errors import JudgeError
from ragparity.middleware import Lane
from ragparity_adapters.langchain import RUNGS

THINKING = {
    "vllm, thinking in its own field": ("vllm", {"thinking": "separate"}),
    "vllm, thinking between tags": ("vllm", {"thinking": "inline"}),
    "vllm, closing tag only": ("vllm", {"thinking": "closing"}),
    "vllm, JSON lands in the reasoning": ("vllm", {"thinking": "separate", "thinking_and_json": "in_reasoning"}),
    "vllm, prose while thinking": ("vllm", {"thinking": "separate", "thinking_and_json": "prose"}),
}
SERVERS = {**{name: (name, {}) for name in PERSONALITIES}, **THINKING}


@dataclass(frozen=True)
class Seen:
    """What one question came to: requests made, and the score or the kind of failure."""

    requests: list[str]
    outcome: str
    said: int


def sent(request) -> str:
    """One request in a few words: how the structure was asked for, and the limit."""
    kind = (request.body.get("response_format") or {}).get("type")
    how = "tool" if request.tool else {"json_schema": "json_schema", "json_object": "json_mode", None: ""}[kind]
    limit = next(
        (f"{name}={request.body[name]}" for name in ("max_tokens", "max_completion_tokens") if name in request.body),
        "no limit",
    )
    temperature = ", temperature" if "temperature" in request.body else ""
    status = "" if request.status == 200 else f" → {request.status or 'reset'}"
    return ", ".join(filter(None, [how, limit])) + temperature + status


def put(name: str, question, *, ceiling: int | None = None, repeat: int = 1) -> Seen:
    """Put one question to a server (the last of several) through the whole layer, with `temperature: 0`."""
    kind, quirks = SERVERS[name]
    brain = (lambda request: "4") if question is RATING else (lambda request: GOOD)
    with FakeServer(brain, personality=kind, **quirks) as server:
        if kind == "azure":
            endpoint = held(judge_azure(server, temperature=0), ceiling=ceiling, token_param="max_completion_tokens")
        else:
            endpoint = built(server, ceiling=ceiling, temperature=0)
        lane = Lane("judge", 4, clock=FastClock(1000))
        result = asked(endpoint, *[question] * repeat, retries=3, lane=lane)[-1]
        if isinstance(result, JudgeError):
            outcome = f"failed: {result.kind}"
        elif question is RATING:
            outcome = f"rating {result.value}"
        else:
            outcome = f"verdict {result.value.verdict} by {RUNGS[endpoint.findings.rung]}"
        return Seen([sent(one) for one in server.requests], outcome, len(endpoint.findings.said))


# personality -> (requests for a rating, outcome; requests for a verdict, outcome)
M, C = "max_tokens", "max_completion_tokens"
PLAIN = ([f"{M}=8, temperature"], "rating 4", [f"json_schema, {M}=60, temperature"], "verdict 1 by json_schema")
EXPECTED = {
    "openai": PLAIN,
    "openai-reasoning": (
        [f"{M}=8, temperature → 400", f"{C}=8, temperature → 400", f"{C}=8", f"{C}=4104"],
        "rating 4",
        [f"json_schema, {M}=60, temperature → 400", f"json_schema, {C}=60, temperature → 400", f"json_schema, {C}=60", f"json_schema, {C}=4156"],
        "verdict 1 by json_schema",
    ),
    "azure": (
        [f"{C}=8, temperature"], "rating 4", [f"json_schema, {C}=60, temperature"], "verdict 1 by json_schema",
    ),
    "nim": PLAIN,
    "ollama": PLAIN,
    "vllm": PLAIN,
    "llamacpp": PLAIN,
    "ignores-schema": (
        [f"{M}=8, temperature"],
        "rating 4",
        [f"json_schema, {M}=60, temperature"],
        "verdict 1 by json_schema",
    ),
    "tools-only": (
        [f"{M}=8, temperature"],
        "rating 4",
        [f"json_schema, {M}=60, temperature → 400", f"tool, {M}=60, temperature"],
        "verdict 1 by tool",
    ),
    "rejects-temperature": (
        [f"{M}=8, temperature → 400", f"{M}=8"],
        "rating 4",
        [f"json_schema, {M}=60, temperature → 400", f"json_schema, {M}=60"],
        "verdict 1 by json_schema",
    ),
    "slow": PLAIN,
    "dies-half-way": PLAIN,
    "no-usage": PLAIN,
    "legacy-text": (
        [f"{M}=8, temperature"],
        "rating 4",
        [
            f"json_schema, {M}=60, temperature → 400",
            f"tool, {M}=60, temperature → 400",
            f"json_mode, {M}=60, temperature → 400",
            f"{M}=60, temperature",
        ],
        "verdict 1 by prompt",
    ),
    "vllm, thinking in its own field": (
        [f"{M}=8, temperature", f"{M}=4104, temperature"], "rating 4", *PLAIN[2:],
    ),
    "vllm, thinking between tags": (
        [f"{M}=8, temperature", f"{M}=4104, temperature"], "rating 4", *PLAIN[2:],
    ),
    "vllm, closing tag only": (
        [f"{M}=8, temperature", f"{M}=4104, temperature"], "rating 4", *PLAIN[2:],
    ),
    "vllm, JSON lands in the reasoning": (
        [f"{M}=8, temperature", f"{M}=4104, temperature"],
        "rating 4",
        [f"json_schema, {M}=60, temperature", f"tool, {M}=60, temperature"],
        "verdict 1 by tool",
    ),
    "vllm, prose while thinking": (
        [f"{M}=8, temperature", f"{M}=4104, temperature"],
        "rating 4",
        [f"json_schema, {M}=60, temperature"],
        "verdict 1 by json_schema",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SERVERS)
def test_a_rating_and_a_verdict_come_through_from_every_kind_of_server(name):
    rating_requests, rating, verdict_requests, verdict = EXPECTED[name]
    seen = put(name, RATING)
    assert (seen.requests, seen.outcome) == (rating_requests, rating)
    seen = put(name, STRUCTURED)
    assert (seen.requests, seen.outcome) == (verdict_requests, verdict)


@pytest.mark.parametrize("name", SERVERS)
def test_under_a_ceiling_of_eight_a_rating_is_right_or_says_what_was_in_the_way(name):
    seen = put(name, RATING, ceiling=8)
    thinks = name == "openai-reasoning" or name in THINKING
    if not thinks:
        assert seen.outcome == "rating 4"
    elif "closing" in name:
        assert seen.outcome == "failed: truncated"  # without its opening tag, thinking that is cut cannot be known
    else:
        assert seen.outcome == "failed: truncated_reasoning"
    assert all(one.endswith("400") or "=8" in one for one in seen.requests)


def test_a_server_that_dies_half_way_is_unavailable_from_then_on():
    seen = put("dies-half-way", RATING, repeat=7)
    assert seen.outcome == "failed: unavailable"
    assert len(seen.requests) == 5


def test_an_old_azure_client_works_as_ours_does():
    with FakeServer("4", personality="azure") as server:
        (answer,) = asked(held(azure_chat(server)), RATING)
        assert answer.value == 4


def main() -> None:
    """Print the table in Markdown."""
    lines = ["| server | a rating | a structured answer | lines said to the user |", "|---|---|---|---|"]
    for name in SERVERS:
        seen = [put(name, question) for question in (RATING, STRUCTURED)]
        cells = [f"{'; '.join(f'`{sent}`' for sent in one.requests)}: **{one.outcome}**" for one in seen]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {max(one.said for one in seen)} |")
    print("\n".join(lines))  # noqa: T201  # its result


if __name__ == "__main__":
    main()
