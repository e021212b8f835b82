"""Prompts and the context window: estimates that learn, refusals before the call, hints about servers that cut."""

import asyncio

import pytest
from tests.fakeserver import FakeServer

from ragparity.core.errors import JudgeRejected
from ragparity.core.ports import Question, Rating, Scale, Tally
from ragparity.core.prompt import Prompt
from ragparity_adapters import llms
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge
from ragparity_adapters.llms import LlmSpec
from ragparity_adapters.prompt_sizes import PromptSizes


def rate(server, *texts, max_tokens=None, **options):
    """What came of a rating of each text, one after the other, the tally, and the endpoint."""
    endpoint = llms.build(
        LlmSpec(name="judge", type="openai", model_name="m", base_url=server.base_url, max_tokens=max_tokens)
    )
    judge, tally, found = LangChainJudge(endpoint, JudgeOptions(**options)), Tally(), []

    async def all_of_them():
        for text in texts:
            try:
                question = Question(Prompt("Rate it.", data={"answer": text}), Rating(Scale((0, 2, 4))), 8)
                found.append((await judge.ask(question, tally)).value)
            except JudgeRejected as error:
                found.append(error)
        await endpoint.aclose()

    asyncio.run(all_of_them())
    return found, tally, endpoint


def test_a_prompt_that_does_not_fit_is_refused_before_the_call_with_both_numbers():
    with FakeServer(reply="4") as server:
        (error, fits), tally, _ = rate(server, "a" * 8000, "a" * 400, context_window=1000)
        assert server.calls == tally.calls == 1
    assert fits == 4
    assert (error.kind, error.retryable) == ("context_too_long", False)
    # about 8300 characters are 2080 tokens, 2500 with the margin of an estimate that has learnt nothing
    assert "its answer needs 8, but the context window holds 1000; nothing was sent" in str(error)
    assert 2400 < int(str(error).split("about ")[1].split()[0]) < 2700


def test_without_a_window_nothing_is_refused():
    with FakeServer(reply="4") as server:
        assert rate(server, "a" * 100_000)[0] == [4]


def test_the_window_that_a_refusal_names_is_kept():
    with FakeServer(reply="4", personality="vllm", context_window=500) as server:
        found, _, endpoint = rate(server, "a" * 8000, "a" * 8000, "a" * 400)
        assert server.calls == 2, "the second long prompt was not sent"
    assert [getattr(one, "kind", one) for one in found] == ["context_too_long", "context_too_long", 4]
    assert endpoint.sizes.window == 500
    assert "judge: the context window holds 500 tokens" in endpoint.findings.said


def test_the_token_limit_stays_within_the_window():
    with FakeServer(reply="4") as server:
        rate(server, "a" * 400, context_window=1000, reasoning=True)
    limit = server.requests[0].body["max_tokens"]
    assert 8 < limit < 1000


def test_a_ceiling_below_the_answers_need_is_what_the_answer_needs():
    with FakeServer(reply="4") as server:
        assert rate(server, "a" * 400, context_window=400, max_tokens=8)[0] == [4]


def test_a_server_that_cuts_prompts_without_a_word_is_noticed_once():
    with FakeServer(reply="4", personality="ollama") as server:
        _, _, endpoint = rate(server, *("a" * 2000 for _ in range(3)), "b" * 40_000, "c" * 60_000)
    hints = [line for line in endpoint.findings.said if "cut long prompts" in line]
    (hint,) = hints
    assert hint.startswith("judge: the server reports 2048 prompt tokens where about ")
    assert 9000 < int(hint.split("about ")[1].split()[0]) < 11_000  # 40,000 characters and the rules
    assert "num_ctx" in hint and "judge.context_window" in hint


def test_with_its_window_stated_such_a_server_never_gets_a_longer_prompt():
    with FakeServer(reply="4", personality="ollama") as server:
        found, _, endpoint = rate(server, "b" * 40_000, context_window=2048)
        assert server.calls == 0
    assert found[0].kind == "context_too_long"
    assert endpoint.findings.said == []


def test_the_window_is_part_of_the_identity():
    with FakeServer() as server:
        endpoint = rate(server)[2]
    known = {LangChainJudge(endpoint, JudgeOptions(context_window=size)).identity for size in (None, 1000, 2000)}
    assert len(known) == 3


# -- estimates


def test_reported_sizes_correct_the_estimate():
    sizes = PromptSizes()
    text = ["a" * 4000]  # 1008 by the first estimate
    assert sizes.expected(text) == 1008
    assert not sizes.learn(text, 1512)
    assert sizes.expected(text) == 1512
    assert sizes.at_most(text) == 1588  # 5 % more


def test_a_short_prompt_teaches_nothing_yet():
    sizes = PromptSizes()
    sizes.learn(["a" * 40], 40)
    assert sizes.factor == 1.0


@pytest.mark.parametrize("tokens", [None, 0])
def test_a_server_that_reports_nothing_teaches_nothing(tokens):
    sizes = PromptSizes()
    assert not sizes.learn(["a" * 40_000], tokens)
    assert sizes.reported == 0


def test_a_cut_prompt_teaches_nothing():
    sizes = PromptSizes()
    assert sizes.learn(["a" * 40_000], 2048)
    assert sizes.factor == 1.0


def test_other_scripts_cost_more():
    assert PromptSizes().plain(["東京" * 500]) > 2 * PromptSizes().plain(["ab" * 500])
