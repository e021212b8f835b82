"""Any LangChain embeddings behind one method, over HTTP where they are OpenAI's; and the hashing embedder."""

import asyncio
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from tests.fakeserver import FakeServer, rate_limited, server_error, unauthorized

from ragparity.core.errors import ConfigError, JudgeError, JudgeRejected, JudgeUnavailable, MissingExtra
from ragparity.core.ports import Tally
from ragparity.vectors import cosine
from ragparity_adapters import embeddings
from ragparity_adapters.embeddings import HashingEmbedder, LangChainEmbedder
from ragparity_adapters.llms import LlmSpec


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "NVIDIA_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def entry(server=None, **more):
    url = {} if server is None else {"base_url": server.base_url, "api_key": "k"}
    return LlmSpec(**{"name": "emb", "type": "openai", "model_name": "e", **url, **more})


def embedded(spec, texts):
    async def main():
        embedder = embeddings.build(spec)
        try:
            return await embedder.embed(texts, Tally())
        finally:
            await embedder.aclose()

    return asyncio.run(main())


def through(model, texts=("a", "b"), **more):
    tally = Tally()
    embedder = LangChainEmbedder(model, name="emb", identity="e", **more)
    return asyncio.run(embedder.embed(list(texts), tally)), tally


class Given(Embeddings):
    """What a test says, by the two methods that every class has."""

    def __init__(self, make):
        self.make = make

    def embed_documents(self, texts):
        return self.make(texts)

    def embed_query(self, text):
        return self.make([text])[0]


# -- over HTTP


def test_all_texts_go_in_one_request_as_text_and_come_back_in_order():
    with FakeServer(embeddings=lambda text: [float(len(text)), 1.0]) as server:
        assert embedded(entry(server), ["abc", "温度"]) == [[3.0, 1.0], [2.0, 1.0]]
        assert server.embedding_calls == 1
        assert server.requests[0].body["input"] == ["abc", "温度"], "text, not tokens of a tokeniser from elsewhere"


@pytest.mark.parametrize(
    ("reply", "error", "kind"),
    [
        (unauthorized(), JudgeRejected, "auth"),
        (rate_limited(retry_after=7), JudgeUnavailable, "rate_limit"),
        (server_error(503), JudgeUnavailable, "unavailable"),
    ],
)
def test_an_endpoint_that_refuses_is_a_judge_error_of_its_kind_after_one_attempt(reply, error, kind):
    with FakeServer(embeddings=lambda _text: reply) as server:
        with pytest.raises(error) as caught:
            embedded(entry(server), ["a"])
        assert server.embedding_calls == 1, "retries are ours, not the client's"
    assert caught.value.kind == kind
    assert "emb" in str(caught.value)


def test_an_endpoint_that_is_not_there_is_unavailable():
    with pytest.raises(JudgeUnavailable) as caught:
        embedded(entry(base_url="http://127.0.0.1:9/v1", api_key="k"), ["a"])
    assert caught.value.kind == "unavailable"


# -- entries


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (entry(type="opnai"), "embedders.emb._type: 'opnai' is not known here"),
        (entry(model_name=None), "embedders.emb: model_name is missing"),
        (entry(), "api_key"),
        (entry(type="langchain", options={}), "embedders.emb.class: expected an import path"),
    ],
)
def test_what_is_wrong_with_an_entry_is_known_before_a_client_is_built(spec, said):
    with pytest.raises(ConfigError) as caught:
        embeddings.check(spec)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "kwargs", "error", "said"),
    [
        ("no_such_package.Emb", {}, MissingExtra, "pip install no-such-package"),
        ("langchain_core.embeddings.NoEmbeddings", {}, ConfigError, "has no class NoEmbeddings"),
        ("langchain_core.prompts.PromptTemplate", {}, ConfigError, "is no class of LangChain embeddings"),
        ("langchain_core.embeddings.FakeEmbeddings", {"size": "many"}, ConfigError, "the client cannot be made"),
    ],
)
def test_a_class_that_cannot_be_used_is_one_line(path, kwargs, error, said):
    with pytest.raises(error) as caught:
        embeddings.build(entry(type="langchain", options={"class": path, "kwargs": kwargs}))
    assert said in str(caught.value) and str(caught.value).startswith("embedders.emb")


def test_a_class_by_import_path_embeds():
    path = "langchain_core.embeddings.DeterministicFakeEmbedding"
    spec = entry(type="langchain", model_name=None, options={"class": path, "kwargs": {"size": 4}})
    first, second = embedded(spec, ["a", "b"])
    assert len(first) == len(second) == 4 and first != second


# -- any embeddings object


def test_sync_embeddings_do_not_stop_the_loop():
    def slow(texts):
        time.sleep(0.2)
        return [[1.0]] * len(texts)

    async def main():
        turns = 0
        task = asyncio.create_task(LangChainEmbedder(Given(slow), name="e", identity="e").embed(["a"], Tally()))
        while not task.done():
            turns += 1
            await asyncio.sleep(0.005)
        assert await task == [[1.0]]
        return turns

    assert asyncio.run(main()) > 5


def test_numbers_of_other_libraries_become_floats():
    import numpy as np

    (first, _), tally = through(Given(lambda texts: [np.ones(2, dtype=np.float32)] * len(texts)))
    assert first == [1.0, 1.0] and type(first[0]) is float
    assert tally.embedding_calls == 1


@pytest.mark.parametrize("n", [0, 1, 3])
def test_vectors_that_do_not_match_the_texts_in_number_are_an_error(n):
    with pytest.raises(JudgeError, match=f"{n}"):
        through(Given(lambda _texts: [[1.0]] * n))


def test_a_call_that_takes_too_long_is_a_timeout_and_is_left():
    class Hangs(Embeddings):
        def embed_documents(self, texts):
            raise NotImplementedError

        embed_query = embed_documents

        async def aembed_documents(self, texts):
            await asyncio.sleep(30)

    began = time.monotonic()
    with pytest.raises(JudgeUnavailable) as caught:
        through(Hangs(), timeout_s=0.05)
    assert caught.value.kind == "timeout" and time.monotonic() - began < 5


def test_an_object_made_elsewhere_is_named_by_class_and_model_without_its_key():
    from langchain_openai import OpenAIEmbeddings

    model = OpenAIEmbeddings(model="text-e", base_url="http://me:secret@localhost:1/v1", api_key="sk-secret")
    identity = embeddings.from_embeddings(model).identity
    assert identity == "OpenAIEmbeddings/text-e at http://localhost:1/v1"


# -- the hashing embedder


def hashed(*texts):
    return asyncio.run(HashingEmbedder().embed(texts, Tally()))


def test_the_same_words_give_the_same_vector_of_length_one_on_any_day():
    first, second = hashed("The rye dough rests.", "the RYE dough rests")
    assert first == second
    assert math.hypot(*first) == pytest.approx(1.0)
    # Weinberger et al.: each feature goes to one place with a sign. One word is one feature.
    assert sorted(map(abs, hashed("dough")[0]))[-2:] == [0.0, 1.0]


def test_more_words_in_common_are_nearer():
    question, near, far = hashed(
        "Where is the ferry to Marrow Island?", "The ferry to Marrow Island is here.", "Rye dough rests."
    )
    assert cosine(question, near) > 0.5 > abs(cosine(question, far))


def test_a_text_without_words_is_a_zero_vector_that_is_no_similarity():
    (zero,) = hashed("?!")
    assert set(zero) == {0.0}
    assert cosine(zero, hashed("a")[0]) is None


@given(st.text(), st.text())
def test_the_similarity_of_any_two_texts_is_between_minus_one_and_one(a, b):
    first, second = hashed(a, b)
    found = cosine(first, second)
    assert found is None or -1.0 <= found <= 1.0
