"""The cache of `evaluate`: the block of an eval file or a path; models are told apart by all that is set on them."""

import sqlite3

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from tests import runs
from tests.fakeserver import FakeServer

from ragparity import ConfigError, crossvalidate, evaluate
from ragparity.cache_file import stats
from ragparity_adapters.llms import settings_on
from ragparity_adapters.scripted import ScriptedJudge

ROWS = [{"id": name, "question": "q", "answer": name, "ground_truth": "x"} for name in "ab"]
ASKS_BACK = {"questions": [{"question": "one?", "noncommittal": False}] * 3}


def chat(server, **more):
    return ChatOpenAI(
        **{"model": "m", "base_url": server.base_url, "api_key": "sk-very-secret-1", "max_retries": 0, **more}
    )


def embedder(server, **more):
    """Its connection ends with its request: nobody could close that of an object that was passed in."""
    return OpenAIEmbeddings(
        model="e", base_url=server.base_url, api_key="sk-very-secret-1", check_embedding_ctx_length=False,
        default_headers={"Connection": "close"}, **more,
    )  # fmt: skip


def accuracy(server, cache, **more):
    return evaluate(ROWS, metrics=["AnswerAccuracy"], judge=chat(server, **more), cache=cache)


def test_the_second_evaluation_asks_nobody_and_gives_the_same(tmp_path):
    path = tmp_path / "replies" / "judge.sqlite"
    with FakeServer(lambda request: ASKS_BACK if "questions" in request.system else "4") as server:
        both = {"metrics": ["AnswerAccuracy", "AnswerRelevancy"], "judge": chat(server), "embedder": embedder(server)}
        first = evaluate(ROWS, cache=path, **both)
        asked, embedded = server.calls, server.embedding_calls
        assert asked and embedded
        again = evaluate(ROWS, cache=str(path), **both)
        assert (server.calls, server.embedding_calls) == (asked, embedded)
    assert [one.score for one in again.records] == [one.score for one in first.records]
    assert sum(one["calls"] for one in again.summary.values()) == 0
    assert sum(one["cached_calls"] for one in again.summary.values()) == asked
    assert {group.judge for group in stats(path)} == {one.judge.partition(" + ")[0] for one in first.records} | {
        again["AnswerRelevancy"][0].judge.partition(" + ")[2]
    }


def test_replay_asks_nobody_and_names_what_is_not_stored(tmp_path):
    block = {"path": tmp_path / "judge.sqlite", "mode": "read_write"}
    with FakeServer("2") as server:
        accuracy(server, block)
        model = chat(server)
    replay = {**block, "mode": "replay"}
    assert (
        evaluate(ROWS, metrics=["AnswerAccuracy"], judge=model, cache=replay).summary["AnswerAccuracy"]["mean"] == 0.5
    )
    other = [{**ROWS[0], "answer": "c"}]
    (record,) = evaluate(other, metrics=["AnswerAccuracy"], judge=model, cache=replay).records
    assert record.outcome.kind == "not_cached" and "other data" in record.outcome.message


@pytest.mark.parametrize(
    "more",
    [{"temperature": 1}, {"top_p": 0.5}, {"frequency_penalty": 0.5}, {"extra_body": {"min_p": 0.1}},
     {"model_kwargs": {"user": "me"}}, {"stop": ["x"]}],
)  # fmt: skip
def test_a_model_with_another_setting_is_asked_again(tmp_path, more):
    with FakeServer("2") as server:
        accuracy(server, tmp_path / "c.sqlite")
        assert server.calls == 4
        accuracy(server, tmp_path / "c.sqlite", **more)
        assert server.calls == 8
        accuracy(server, tmp_path / "c.sqlite", **more)
        assert server.calls == 8


def test_what_is_bound_to_a_model_counts_and_who_asks_and_how_long_does_not(tmp_path):
    with FakeServer("2") as server:
        for model, calls in (
            (chat(server), 4),
            (chat(server, timeout=3, max_retries=5, api_key="sk-another-key-22"), 4),
            (chat(server).bind(logit_bias={"7": 1}), 8),
        ):
            evaluate(ROWS, metrics=["AnswerAccuracy"], judge=model, cache=tmp_path / "c.sqlite")
            assert server.calls == calls


def test_no_key_is_in_the_file(tmp_path):
    path = tmp_path / "c.sqlite"
    with FakeServer("2") as server:
        accuracy(server, path, default_headers={"X-Own": "swordfish-12345"})
    assert settings_on(chat(server, temperature=1))["temperature"] == 1
    assert b"sk-very-secret-1" not in path.read_bytes() and b"swordfish" not in path.read_bytes()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM replies").fetchone() == (4,)
    connection.close()


def test_a_judge_of_a_program_is_asked_once(tmp_path):
    judge = ScriptedJudge([4, 2])
    for _ in range(2):
        results = evaluate(ROWS[:1], metrics=["AnswerAccuracy"], judge=judge, cache=tmp_path / "c.sqlite")
        assert results.records[0].score == 0.75
    assert len(judge.questions) == 2


def test_without_a_cache_every_evaluation_asks(tmp_path):
    with FakeServer("2") as server:
        for cache, calls in ((None, 4), ({"path": tmp_path / "c.sqlite", "mode": "off"}, 8)):
            accuracy(server, cache)
            assert server.calls == calls
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_with_the_file_is_said_and_the_scores_are_there(tmp_path):
    (tmp_path / "c.sqlite").write_text("no database, whatever its name says, but long enough to be one" * 20)
    with FakeServer("2") as server:
        results = accuracy(server, tmp_path / "c.sqlite")
    assert results.summary["AnswerAccuracy"]["mean"] == 0.5
    assert any("c.sqlite" in line for line in results.findings)


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        ({"path": "a", "mod": "off"}, "cache.mod: unknown key; did you mean mode?"),
        ({"mode": "replays"}, "did you mean replay?"),
        (7, "cache: got 7; expected a mapping with path and mode"),
        ({"path": "nowhere/c.sqlite", "mode": "replay"}, "cache nowhere/c.sqlite: replay needs the stored replies"),
    ],
)
def test_a_wrong_cache_is_one_clear_line(cache, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        evaluate(ROWS, metrics=["ExactMatch"], cache=cache)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_crossvalidate_takes_it_too(tmp_path):
    calls = []
    with FakeServer(lambda request: "4" if "Rate" in request.system else {"rating": 4}) as server:
        for _ in range(2):
            crossvalidate(
                runs.rows(2), metrics=["AnswerAccuracy"], backends=["native", "ragas"], judge=chat(server),
                cache=tmp_path / "c.sqlite", force=True,
            )  # fmt: skip
            calls.append(server.calls)
    assert calls[0] == calls[1] > 0
