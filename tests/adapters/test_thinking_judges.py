"""Judges that think before they answer: room where it is needed, and nothing of the thinking is ever scored."""

from __future__ import annotations

import pytest
from tests.adapters.wired import GOOD, GOOD_TEXT, RATING, STRUCTURED, Verdict, asked, asked_at_once, built, limits_sent
from tests.fakeserver import FakeServer, Reply

from ragparity.core.errors import Truncated
from ragparity_adapters.langchain import ALLOWANCES

THINKS = 8 + ALLOWANCES[1]


@pytest.mark.parametrize(
    "text",
    [
        "<think>The scale has 0, 2 and 4.</think>\n4",
        "The scale has 0, 2 and 4.</think>4",
        "<think>\n</think>\n\n4",
        "<reasoning>0? {2}?</reasoning> 4",
    ],
)
def test_what_stands_in_thinking_is_not_the_rating(text):
    with FakeServer(text) as server:
        (answer,) = asked(built(server), RATING, reasoning=True)
        assert answer.value == 4


@pytest.mark.parametrize(
    "text", [f'<think>{{"verdict": 0}}</think>{GOOD_TEXT}', f"So {{1}}.</think>\n```json\n{GOOD_TEXT}\n```"]
)
def test_what_stands_in_thinking_is_not_the_verdict(text):
    with FakeServer(text) as server:
        (answer,) = asked(built(server), STRUCTURED)
        assert answer.value == Verdict(**GOOD)


@pytest.mark.parametrize("reply", [Reply(content=None, reasoning_content="4"), "<think>4", "<think>4</think>"])
def test_a_rating_in_the_reasoning_alone_is_no_rating(reply):
    with FakeServer(reply) as server:
        (error,) = asked(built(server), RATING, retries=1)
        assert (error.kind, server.calls) == ("empty", 2)


@pytest.mark.parametrize("thinking", ["separate", "inline", "closing"])
def test_a_judge_that_thinks_gets_room_for_the_rest_of_the_run_and_it_is_said_once(thinking):
    with FakeServer("4", personality="vllm", thinking=thinking) as server:
        endpoint = built(server)
        answers = asked(endpoint, RATING, RATING, RATING)
        assert [one.value for one in answers] == [4, 4, 4]
        assert limits_sent(server) == [8, THINKS, THINKS, THINKS]
        assert endpoint.findings.said == [
            "judge: the judge thinks before it answers; its token limit is raised by 4096 for the rest of the run"
        ]


def test_a_judge_that_thinks_at_length_gets_more_room_once():
    with FakeServer("4", personality="openai-reasoning", reasoning_tokens=5000) as server:
        endpoint = built(server)
        answers = asked(endpoint, RATING, RATING)
        assert [one.value for one in answers] == [4, 4]
        assert limits_sent(server) == [8, 8, 8 + 4096, 8 + 16384, 8 + 16384]
    with FakeServer("4", personality="openai-reasoning", reasoning_tokens=50_000) as server:
        (error,) = asked(built(server), RATING, retries=3)
        assert (error.kind, error.attempts) == ("truncated_reasoning", 1)
        assert str(error) == (
            "judge: the reply was cut at 16392 tokens, all of them spent on thinking; "
            "ask for less thinking or switch its thinking off"
        )


def test_sixteen_first_ratings_at_once_find_out_that_the_judge_thinks():
    with FakeServer("4", personality="vllm", thinking="inline", latency=0.02) as server:
        endpoint = built(server)
        answers = asked_at_once(endpoint, [RATING] * 16)
        assert [one.value for one in answers] == [4] * 16
        assert len(endpoint.findings.said) == 1
        assert server.calls == 32


def test_reasoning_true_gives_the_room_from_the_start_and_false_never():
    with FakeServer("4", personality="vllm", thinking="inline") as server:
        asked(built(server), RATING, reasoning=True)
        (error,) = asked(built(server), RATING, reasoning=False, retries=2)
        assert limits_sent(server) == [THINKS, 8]
        assert error.kind == "truncated_reasoning"
        assert str(error).endswith("leave judge.reasoning out, or set it to true or switch its thinking off")


@pytest.mark.parametrize(
    ("ceiling", "options", "remedy"),
    [
        (8, {}, "raise max_tokens of llms.judge (8)"),
        (None, {"max_tokens": 12}, "raise judge.max_tokens (12)"),
    ],
)
def test_thinking_under_a_ceiling_is_truncated_reasoning_with_what_to_change(ceiling, options, remedy):
    with FakeServer("4", personality="vllm", thinking="separate") as server:
        (error,) = asked(built(server, ceiling=ceiling), RATING, retries=3, **options)
        assert isinstance(error, Truncated) and error.kind == "truncated_reasoning"
        assert f"all of them spent on thinking; {remedy} or switch its thinking off" in str(error)
        assert error.raw.startswith("Let me think about the scale")
        assert error.attempts == 1


def test_a_rating_that_opens_a_cut_reply_needs_no_second_call():
    with FakeServer("4 because the answer says all that the reference says, and more.") as server:
        (answer,) = asked(built(server, ceiling=8), RATING)
        assert (answer.value, server.calls) == (4, 1)
