"""Judges out of the toolkit's own sections: what is sent, how often, and how many at a time."""

import json

import pytest
from tests.fakeserver import FakeServer, server_error
from tests.nat.nateval import ACCURACY, PORT, SIZE, eval_file, evaluate, items, judge_at, other_door, scores


def bodies(server):
    return sorted(json.dumps(request.body, sort_keys=True) for request in server.requests)


@pytest.mark.parametrize(
    ("type_", "settings"),
    [
        ("openai", {"temperature": 0.2, "seed": 3, "max_tokens": 100}),
        ("openai", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("nim", {}),
        ("nim", {"top_p": 0.5, "max_tokens": 50, "chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_a_judge_is_sent_the_same_through_both_doors(type_, settings):
    personality = "vllm" if type_ == "openai" else "nim"
    with FakeServer(reply="4", personality=personality) as server:
        llms = judge_at(server, **settings)
        llms["judge"]["_type"] = type_
        eval_file({"accuracy": ACCURACY}, llms=llms)
        there = scores(evaluate()["accuracy"])
        sent = bodies(server)
        server.reset()
        code, here = other_door()
        assert sent == bodies(server)
    assert code == 0 and there == {row: line["score"] for row, line in here["accuracy"].items()}
    (first, *_) = map(json.loads, sent)
    assert settings.items() <= {**first, "max_tokens": settings.get("max_tokens")}.items()
    assert first["max_tokens"] == 8, (
        "the ceiling of the entry, or the toolkit's own default, is above what a rating needs"
    )


def test_a_thinking_switch_reaches_the_judge():
    with FakeServer(reply="4", personality="nim") as server:
        llms = judge_at(server, thinking=False)
        llms["judge"] |= {"_type": "nim", "model_name": "nvidia/llama-3.3-nemotron-super-49b-v1.5"}
        eval_file({"accuracy": ACCURACY}, rows=[PORT], llms=llms)
        evaluate()
        assert all("/no_think" in request.body["messages"][0]["content"] for request in server.requests)
        assert len(server.requests) == 2


def test_eight_tokens_are_enough_for_a_rating():
    with FakeServer(reply="4") as server:
        eval_file({"accuracy": ACCURACY}, llms=judge_at(server, max_tokens=8))
        assert scores(evaluate()["accuracy"]) == {"port": 1.0, "size": 1.0}


def test_eight_tokens_are_not_enough_for_claims_and_the_items_say_so():
    with FakeServer() as server:
        eval_file({"faith": {"metric": "Faithfulness", "llm_name": "judge"}}, llms=judge_at(server, max_tokens=8))
        found = evaluate()["faith"]
    assert found["average_score"] is None
    assert found["errors"] == {"truncated": 2}
    assert "raise max_tokens of llms.judge (8)" in items(found)["port"]["error"]


def test_a_judge_that_thinks_first_is_given_room():
    with FakeServer(reply="4", personality="vllm", thinking="inline") as server:
        eval_file({"accuracy": ACCURACY}, llms=judge_at(server))
        assert scores(evaluate()["accuracy"]) == {"port": 1.0, "size": 1.0}


@pytest.mark.parametrize(
    ("on_entry", "on_llm", "attempts"),
    [
        ({}, {"num_retries": 2}, 2),
        ({"num_retries": 1}, {"num_retries": 2}, 1),
        ({"do_auto_retry": False}, {}, 1),
        ({"judge": {"retries": 2}}, {}, 3),
    ],
    ids=["llm entry", "evaluator before llm entry", "switched off", "our own setting"],
)
def test_retries_really_apply(on_entry, on_llm, attempts):
    with FakeServer(reply=server_error(500)) as server:
        accuracy = {"metric": {"AnswerAccuracy": {"kwargs": {}}}, "llm_name": "judge", **on_entry}
        eval_file({"accuracy": accuracy}, rows=[PORT], llms=judge_at(server, **on_llm))
        evaluate()
        # Two ratings are asked for at the same time, and each is tried this often.
        assert server.calls == 2 * attempts


def test_calls_in_flight_are_bounded_over_all_evaluators_together():
    rows = [PORT | {"id": f"r{n}", "question": f"Which port, {n}?"} for n in range(10)]
    evaluators = {f"a{n}": {**ACCURACY, "reps": n + 1} for n in range(3)}
    with FakeServer(reply="4", latency=0.02) as server:
        eval_file(evaluators, rows=rows, llms=judge_at(server), general={"max_concurrency": 3})
        found = evaluate()
        assert server.max_in_flight == 3
        assert server.calls >= 60
    assert all(output["average_score"] == 1.0 for output in found.values())


def test_an_embedder_of_the_toolkit_is_asked():
    embedders = {}
    with FakeServer() as server:
        embedders["emb"] = {"_type": "openai", "model_name": "e", "base_url": server.base_url, "api_key": "x"}
        relevancy = {"metric": "AnswerRelevancy", "llm_name": "offline", "embedder_name": "emb"}
        eval_file({"relevancy": relevancy}, rows=[SIZE], embedders=embedders)
        found = evaluate()["relevancy"]
        assert server.embedding_calls > 0
    assert found["n_scored"] == 1


def test_a_judge_of_a_provider_that_we_do_not_know_comes_from_the_toolkit():
    eval_file({"accuracy": ACCURACY}, llms={"judge": {"_type": "house_llm", "said": "2"}})
    found = evaluate()["accuracy"]
    assert scores(found) == {"port": 0.5, "size": 0.5}
    assert found["calls"] == 4


def test_a_provider_that_only_the_toolkits_langchain_package_knows_says_so():
    eval_file({"accuracy": ACCURACY}, rows=[PORT], llms={"judge": {"_type": "bare_llm"}})
    (item,) = evaluate()["accuracy"]["eval_output_items"]
    assert item["error"] == (
        "config: llms.judge: only the toolkit's LangChain package makes clients of type bare_llm: "
        "pip install nvidia-nat-langchain"
    )
