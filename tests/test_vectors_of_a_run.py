"""Requests for vectors in what a run says about itself: counted apart, priced where a price is given, unknown where
a server does not say."""

import asyncio
import re

import pytest
from langchain_openai import OpenAIEmbeddings
from tests import runs
from tests.fakeserver import FakeServer, server_error, unauthorized
from tests.fakewire import count_prompt

from ragparity.core.errors import BudgetSpent, JudgeError
from ragparity.core.ports import Tally
from ragparity.spending import Budget, MeteredEmbedder, Spending
from ragparity_adapters import embeddings
from ragparity_adapters.llms import LlmSpec

SIMILARITY = {"similarity": {"metric": "SemanticSimilarity", "embedder_name": "emb"}}
RELEVANCY = {"relevancy": {"metric": "AnswerRelevancy", "llm_name": "judge", "embedder_name": "emb"}}
ASKS_BACK = {"questions": [{"question": f"Which port is it, {n}?", "noncommittal": False} for n in range(3)]}
PRICED = {"embedders": {"emb": {"price": {"input_per_1m": 1000.0}}}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def tokens_in(server):
    """What the server counted over all requests for vectors."""
    return sum(count_prompt(text) for one in server.requests for text in one.body.get("input", ()))


# -- one request


def tallied(server, texts, **options):
    tally = Tally()
    spec = LlmSpec(name="emb", type="openai", model_name="e", base_url=server.base_url, api_key="k", options=options)

    async def main():
        embedder = embeddings.build(spec)
        try:
            await embedder.embed(texts, tally)
        except JudgeError:
            pass
        finally:
            await embedder.aclose()

    asyncio.run(main())
    return tally


def test_tokens_are_those_that_the_server_reports():
    with FakeServer(embeddings=2) as server:
        tally = tallied(server, ["Which port?", "Port 7443."])
        assert (tally.embedding_calls, tally.embedding_tokens) == (1, tokens_in(server)) and tokens_in(server) > 0
    assert (tally.calls, tally.input_tokens) == (0, 0), "those of judges are others"


def test_a_list_that_the_client_cuts_is_as_many_requests_as_were_sent():
    with FakeServer(embeddings=2) as server:
        tally = tallied(server, ["a b", "c", "d e f"], chunk_size=2)
        assert tally.embedding_calls == server.embedding_calls == 2
        assert tally.embedding_tokens == tokens_in(server)


def test_what_a_server_does_not_report_is_unknown():
    with FakeServer(embeddings=2, usage="none") as server:
        assert (tallied(server, ["a"]).embedding_calls, tallied(server, ["a"]).embedding_tokens) == (1, None)


@pytest.mark.parametrize("refusal", [unauthorized(), server_error(503)])
def test_a_refusal_is_a_request_without_tokens(refusal):
    with FakeServer(embeddings=lambda _text: refusal) as server:
        tally = tallied(server, ["a"])
    assert (tally.embedding_calls, tally.embedding_tokens) == (1, 0)


def test_no_answer_at_all_leaves_the_tokens_unknown():
    with FakeServer() as server:
        url = server.base_url
    tally = Tally()
    model = OpenAIEmbeddings(model="e", base_url=url, api_key="k", check_embedding_ctx_length=False, max_retries=0)
    with pytest.raises(JudgeError):
        asyncio.run(embeddings.from_embeddings(model).embed(["a"], tally))
    assert (tally.embedding_calls, tally.embedding_tokens) == (1, None)


def test_requests_at_the_same_time_are_counted_apart_and_the_object_passed_in_is_not_changed():
    with FakeServer(embeddings=2, latency=0.02) as server:
        model = OpenAIEmbeddings(model="e", base_url=server.base_url, api_key="k", check_embedding_ctx_length=False)
        client, embedder, tallies = model.async_client, embeddings.from_embeddings(model), [Tally(), Tally()]

        async def main():
            texts = (["a"], ["b c d", "e"])
            await asyncio.gather(*(embedder.embed(t, tally) for t, tally in zip(texts, tallies, strict=True)))
            await client._client.close()

        asyncio.run(main())
    assert [one.embedding_calls for one in tallies] == [1, 1]
    assert [one.embedding_tokens for one in tallies] == [count_prompt("a"), count_prompt("b c d") + count_prompt("e")]
    assert model.async_client is client


# -- a run


def test_records_and_summary_count_requests_and_tokens_of_vectors():
    with FakeServer(reply=ASKS_BACK) as server:
        runs.write(SIMILARITY | RELEVANCY, runs.rows(3), server)
        done = runs.command("eval", "eval.yml")
        assert done.exit_code == 0, done.output
        requests, tokens = server.embedding_calls, tokens_in(server)
    summary = runs.summary()
    assert sum(one["embedding_calls"] for one in summary.values()) == requests == 6
    assert sum(one["embedding_tokens"] for one in summary.values()) == tokens
    assert (summary["similarity"]["calls"], summary["similarity"]["input_tokens"]) == (0, 0)
    assert {one["cost"] for one in summary.values()} == {None}
    assert runs.record("out", "similarity", "r0")["embedding_calls"] == 1
    assert f"vectors: 6 requests, {tokens} tokens" in done.output


def test_tokens_of_vectors_that_are_unknown_are_shown_so():
    with FakeServer(usage="none") as server:
        runs.write(SIMILARITY, runs.rows(2), server, run=PRICED)
        done = runs.command("eval", "eval.yml")
    one = runs.summary()["similarity"]
    assert (one["embedding_calls"], one["embedding_tokens"], one["cost"]) == (2, None, None)
    assert "vectors: 2 requests, ? tokens" in done.output


def test_an_embedder_has_a_price_of_its_own():
    judge = {"judges": {"judge": {"price": {"input_per_1m": 2.0, "output_per_1m": 10.0}}}}
    with FakeServer(reply=ASKS_BACK) as server:
        runs.write(SIMILARITY | RELEVANCY, runs.rows(2), server, run=judge | PRICED)
        assert runs.command("eval", "eval.yml").exit_code == 0
    similarity, relevancy = (runs.summary()[name] for name in ("similarity", "relevancy"))
    assert similarity["cost"] == pytest.approx(similarity["embedding_tokens"] * 1000 / 1e6)
    judged = (relevancy["input_tokens"] * 2 + relevancy["output_tokens"] * 10) / 1e6
    assert relevancy["cost"] == pytest.approx(judged + relevancy["embedding_tokens"] * 1000 / 1e6)


def test_a_judge_without_a_price_leaves_the_cost_unknown():
    with FakeServer(reply=ASKS_BACK) as server:
        runs.write(SIMILARITY | RELEVANCY, runs.rows(1), server, run=PRICED)
        runs.command("eval", "eval.yml")
    assert runs.summary()["relevancy"]["cost"] is None
    assert runs.summary()["similarity"]["cost"] > 0


def test_vectors_from_the_cache_are_no_requests():
    cache = {"cache": {"path": "c.sqlite", "mode": "read_write"}}
    with FakeServer() as server:
        runs.write(SIMILARITY, runs.rows(2), server, run=PRICED | cache)
        runs.command("eval", "eval.yml")
        runs.command("eval", "eval.yml")
    one = runs.summary()["similarity"]
    assert (one["embedding_calls"], one["embedding_tokens"], one["cost"], one["n_scored"]) == (0, 0, 0, 2)


# -- budgets


def test_a_budget_in_calls_or_tokens_is_about_judges():
    with FakeServer() as server:
        runs.write(SIMILARITY, runs.rows(4), server, run=PRICED)
        assert runs.command("eval", "eval.yml", "--budget", "calls=0", "--budget", "tokens=0").exit_code == 0
        assert server.embedding_calls == 4


def test_a_budget_in_money_counts_vectors_that_have_a_price():
    with FakeServer() as server:
        runs.write(SIMILARITY, runs.rows(8), server, run=PRICED, max_concurrency=1)
        runs.command("eval", "eval.yml")
        whole = runs.summary()["similarity"]["cost"]
        server.reset()
        done = runs.command("eval", "eval.yml", "--budget", f"cost={whole / 2}")
        assert done.exit_code == 1 and re.search(r"stopped: the budget of \S+ is spent", done.output)
        assert 0 < server.embedding_calls < 8
        seen = runs.summary()["similarity"]
        assert seen["n_scored"] == server.embedding_calls and seen["n_not_run"] == 8 - server.embedding_calls
        assert runs.command("eval", "eval.yml", "--resume").exit_code == 0
        assert server.embedding_calls == 8


class Silent:
    """An embedder whose server reports nothing."""

    identity = "silent"

    async def embed(self, texts, tally):
        tally.embedding(None)
        return [[1.0] for _ in texts]


def test_unknown_tokens_are_estimated_for_a_budget_and_that_is_said_once():
    spending = Spending(Budget(cost=3.0))
    embedder, tally = MeteredEmbedder(Silent(), spending, name="emb", price=1_000_000.0), Tally()
    asyncio.run(embedder.embed(["12345678"], tally))  # eight letters are about two tokens, at one each
    asyncio.run(embedder.embed(["12345678"], tally))
    assert spending.cost == 4.0 and tally.embedding_tokens is None
    with pytest.raises(BudgetSpent, match="the budget of 3 is spent"):
        asyncio.run(embedder.embed(["a"], tally))
    assert tally.stopped and tally.embedding_calls == 2
    assert len(spending.said) == 1 and "emb" in spending.said[0]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"embb": {}}, "eval.general.ragparity.embedders.embb: no entry of embedders has this name; did you mean emb?"),
        ({"emb": {"price": {"input_per_1m": -1}}}, "expected a price per million tokens read, 0 or more"),
        ({"emb": {"price": {"input_per_1m": 1, "output_per_1m": 1}}}, "output_per_1m: unknown key"),
    ],
)
def test_a_wrong_price_is_one_clear_line(wrong, said):
    runs.write(SIMILARITY, runs.rows(1), "http://127.0.0.1:9/v1", run={"embedders": wrong})
    done = runs.command("check", "eval.yml")
    assert done.exit_code == 2 and said in done.output
