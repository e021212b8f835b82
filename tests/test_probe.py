"""One cheap call to every model: what it finds out, what it says, and that a run begins with it."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.fakeserver import FakeServer, rate_limited, server_error

from ragparity import probe as probing
from ragparity import wiring
from ragparity.cli import main
from ragparity.config import load_eval_file

ROWS = [
    {
        "id": str(n),
        "question": f"Where is it in {1900 + n}?",
        "generated_answer": "In Oslo.",
        "answer": "Oslo",
        "contexts": ["It is in Oslo."],
    }
    for n in range(120)
]
ACCURACY = {"accuracy": {"metric": "AnswerAccuracy", "llm_name": "judge"}}
FAITHFULNESS = {"faithfulness": {"metric": "Faithfulness", "llm_name": "judge"}}
SIMILARITY = {"similarity": {"metric": "SemanticSimilarity", "embedder_name": "emb"}}
RELEVANCY = {"relevancy": {"metric": "AnswerRelevancy", "llm_name": "judge", "embedder_name": "emb"}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def eval_file(evaluators, server, *, rows=3, embedder=None, **entry):
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[:rows]), encoding="utf-8")
    at = {"_type": "openai", "base_url": server.base_url, "api_key": "k"}
    content = {
        "llms": {"judge": {**at, "model_name": "m", **entry}},
        "embedders": {"emb": {**at, "model_name": "e", **(embedder or {})}},
        "eval": {
            "general": {"output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}},
            "evaluators": {name: {"_type": "ragparity", **one} for name, one in evaluators.items()},
        },
    }
    Path("eval.yml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def run(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def probed(*arguments):
    done = run("probe", "eval.yml", "--json", *arguments)
    found = json.loads(done.stdout)
    return done.exit_code, {one["entry"]: one for one in found}


def test_a_good_judge_is_asked_once_for_a_rating_and_once_for_an_object():
    with FakeServer() as server:
        eval_file(ACCURACY | FAITHFULNESS, server)
        code, found = probed()
        assert server.calls == 2
    one = found["llms.judge"]
    assert code == 0
    assert (one["status"], one["short_rating"], one["structured"]) == ("ok", True, "json_schema")
    assert one["token_parameter"] == "max_tokens"
    assert one["thinks"] is False
    assert one["evaluators"] == ["accuracy", "faithfulness"]
    assert one["seconds"] >= 0
    assert one["problems"] == []


def test_only_what_evaluators_ask_for_is_asked():
    with FakeServer() as server:
        eval_file(ACCURACY, server)
        assert probed()[1]["llms.judge"]["structured"] is None
        assert server.calls == 1
        eval_file({"exact": {"metric": "ExactMatch"}}, server)
        done = run("probe", "eval.yml")
        assert (done.exit_code, done.output) == (0, "nothing to probe: no evaluator asks a model\n")
        eval_file({"off": {"metric": "Faithfulness", "llm_name": "offline"}}, server)
        assert run("probe", "eval.yml").exit_code == 0
        assert server.calls == 1


@pytest.mark.parametrize(
    ("personality", "expected"),
    [
        ("openai-reasoning", {"thinks": True, "short_rating": False, "token_parameter": "max_completion_tokens"}),
        ("tools-only", {"structured": "tool", "short_rating": True}),
        ("legacy-text", {"structured": "prompt"}),
        ("nim", {"token_parameter": "max_tokens", "structured": "json_schema"}),
        ("rejects-temperature", {"left_out": ["temperature"]}),
    ],
)
def test_the_manners_of_an_endpoint_are_found_out(personality, expected):
    with FakeServer(personality=personality) as server:
        eval_file(ACCURACY | FAITHFULNESS, server, temperature=0)
        code, found = probed()
    assert code == 0
    assert found["llms.judge"] | expected == found["llms.judge"]
    assert found["llms.judge"]["notes"] or personality == "nim"


def test_a_wrong_key_and_a_wrong_model_are_one_line_each_and_asked_once():
    for quirk, said in (({"api_key": "right"}, "401"), ({"models": ["other"]}, "404")):
        with FakeServer(**quirk) as server:
            eval_file(ACCURACY | FAITHFULNESS, server)
            done = run("probe", "eval.yml")
            assert done.exit_code == 1
            (line,) = done.stderr.splitlines()
            assert line.startswith("ragparity: llms.judge: ") and said in line
            assert server.calls <= 2
            assert "failed" in done.stdout


def test_a_server_that_is_not_there_is_said_so():
    with FakeServer() as server:
        eval_file(ACCURACY, server)
    done = run("probe", "eval.yml")
    assert done.exit_code == 1
    assert done.stderr.startswith("ragparity: llms.judge: ")


def test_a_busy_server_is_asked_once_more():
    replies = iter([rate_limited(retry_after=0.01), "4"])
    with FakeServer(reply=lambda _: next(replies)) as server:
        eval_file(ACCURACY, server)
        assert probed()[0] == 0
        assert server.calls == 2


def test_a_server_that_always_fails_is_given_up_after_two_calls():
    with FakeServer(reply=lambda _: server_error()) as server:
        eval_file(ACCURACY, server)
        assert run("probe", "eval.yml").exit_code == 1
        assert server.calls == 2


def test_a_judge_that_never_answers_in_shape_is_told_from_one_that_rates():
    with FakeServer(reply="I would rather talk about the weather.") as server:
        eval_file(ACCURACY, server)
        code, found = probed()
    assert (code, found["llms.judge"]["status"], found["llms.judge"]["kinds"]) == (1, "failed", ["malformed"])


def test_a_ceiling_of_eight_tokens_is_enough_for_ratings_and_named_for_objects():
    with FakeServer() as server:
        eval_file(ACCURACY | FAITHFULNESS, server, max_tokens=8)
        done = run("probe", "eval.yml")
        assert server.calls == 1
    assert done.exit_code == 1
    assert done.stderr == "ragparity: llms.judge: structured answers: max_tokens 8 leaves them no room; raise it\n"


def test_embedders_are_probed_too():
    with FakeServer(embeddings=16) as server:
        eval_file(RELEVANCY, server)
        code, found = probed()
        assert (server.calls, server.embedding_calls) == (1, 1)
    assert code == 0
    assert found["embedders.emb"]["dimensions"] == 16


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        (lambda _: [0.0, 0.0], "zeros"),
        (lambda text: [1.0] * (2 if "Oslo" in text else 3), "different lengths: 2, 3"),
        (lambda _: [1.0, 2.0], "the same vector for two different texts"),
    ],
)
def test_vectors_that_mean_nothing_are_found_out(vector, said):
    with FakeServer(embeddings=vector) as server:
        eval_file(RELEVANCY, server)
        code, found = probed()
    assert code == 1
    assert said in found["embedders.emb"]["problems"][0]


def test_the_table_names_every_entry():
    with FakeServer() as server:
        eval_file(ACCURACY | FAITHFULNESS | RELEVANCY, server)
        done = run("probe", "eval.yml")
    assert done.exit_code == 0
    for word in ("llms.judge", "embedders.emb", "rating in 8 tokens", "json_schema", "64 dimensions", "yes"):
        assert word in done.stdout


def test_a_bad_file_ends_with_two_and_nobody_is_asked():
    with FakeServer() as server:
        eval_file({"x": {"metric": "Faithfulnes", "llm_name": "judge"}}, server)
        assert run("probe", "eval.yml").exit_code == 2
        eval_file(ACCURACY, server)
        assert run("probe", "eval.yml", "--override", "llms.judge._type", "nothing").exit_code == 2
        assert run("probe", "missing.yml").exit_code == 2
        assert server.calls == 0


# -- before a run


def test_a_large_run_begins_with_a_probe_and_keeps_what_it_found():
    with FakeServer(personality="tools-only") as server:
        eval_file(ACCURACY | FAITHFULNESS, server, rows=50)  # 2 ratings and 2 objects a row: about 200
        assert run("eval", "eval.yml", "--no-probe", "--limit", "1", "--quiet").exit_code == 0
        without = server.calls
        server.reset(None)
        eval_file(ACCURACY | FAITHFULNESS, server, rows=120)
        done = run("eval", "eval.yml", "--quiet", "--overwrite")
    assert done.exit_code == 0, done.output
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    assert manifest["probe"][0]["structured"] == "tool"
    refused = [request for request in server.requests if request.status == 400]
    assert len(refused) == 1, "the way to ask for structure was found out once, by the probe"
    assert without < 10


BUDGET = "eval.general.ragparity.budget.calls"


def summary():
    return json.loads(Path("out/summary.json").read_text(encoding="utf-8"))


def test_the_calls_of_a_probe_have_a_line_of_their_own():
    with FakeServer(lambda request: "4" if "Rate" in request.system else None) as server:
        eval_file(ACCURACY | SIMILARITY, server, rows=120)
        done = run("eval", "eval.yml", "--quiet")
        calls, vectors = server.calls, server.embedding_calls
    found = summary()
    assert found["evaluators"]["accuracy"]["calls"] == 240 == calls - 1
    assert found["evaluators"]["similarity"]["embedding_calls"] == vectors - 1
    assert (found["probe"]["calls"], found["probe"]["embedding_calls"], found["probe"]["cost"]) == (1, 1, None)
    assert found["probe"]["input_tokens"] > 0 and found["probe"]["embedding_tokens"] > 0
    spent = found["probe"]
    assert (
        f"probe before the first row: 1 calls, {spent['input_tokens']} / {spent['output_tokens']} tokens in / out; "
        f"vectors: 1 requests, {spent['embedding_tokens']} tokens"
    ) in done.output


def test_a_probe_has_its_price():
    price = {"input_per_1m": 1_000_000, "output_per_1m": 0}
    with FakeServer("4") as server:
        eval_file(ACCURACY, server, rows=120)
        settings = ("--override", "eval.general.ragparity.judges.judge.price", json.dumps(price))
        assert run("eval", "eval.yml", "--quiet", *settings).exit_code == 0
    assert summary()["probe"]["cost"] == summary()["probe"]["input_tokens"] > 0


def test_a_small_run_has_no_such_line():
    with FakeServer("4") as server:
        eval_file(ACCURACY, server)
        assert "probe" not in run("eval", "eval.yml", "--quiet").output
    assert "probe" not in summary()


@pytest.mark.parametrize("calls", [0, 1, 2, 7])
def test_a_budget_is_kept_with_the_probe(calls):
    with FakeServer() as server:
        eval_file(ACCURACY | FAITHFULNESS, server, rows=120)
        done = run("eval", "eval.yml", "--quiet", "--override", BUDGET, str(calls))
        assert server.calls == calls
    assert done.exit_code == 1 and f"stopped: the budget of {calls} calls is spent" in done.output
    found = summary()
    asked = found.get("probe", {"calls": 0})["calls"]
    made = sum(one["calls"] for one in found["evaluators"].values())
    assert asked + made <= calls, "the calls of rows that were not finished count nowhere"
    assert asked == min(calls, 2)


def test_a_budget_that_is_spent_says_nothing_about_a_model():
    cached = ("--override", "eval.general.ragparity.cache.mode", "read_write")
    with FakeServer("4") as server:
        eval_file(ACCURACY, server, rows=120)
        assert run("eval", "eval.yml", "--quiet", "--no-probe", *cached).exit_code == 0
        server.reset("4")
        done = run("eval", "eval.yml", "--quiet", *cached, "--override", BUDGET, "0")
        assert server.calls == 0
    assert done.exit_code == 0, done.output
    assert summary()["evaluators"]["accuracy"]["n_scored"] == 120, "all of it was stored"
    assert "probe" not in summary()
    assert json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))["probe"][0]["status"] == "not asked"


def test_the_command_is_not_bound_by_the_budget_of_the_runs():
    with FakeServer("4") as server:
        eval_file(ACCURACY, server)
        assert run("probe", "eval.yml", "--override", BUDGET, "0").exit_code == 0
        assert server.calls == 1


def test_a_failed_probe_stops_a_large_run_before_anything_is_written():
    with FakeServer(api_key="right") as server:
        eval_file(ACCURACY, server, rows=120)
        done = run("eval", "eval.yml", "--quiet")
        assert server.calls == 1
    assert done.exit_code == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("ragparity: llms.judge: ") and "401" in lines[0]
    assert lines[-1] == "ragparity: nothing was scored; mend this, or go on with --no-probe"
    assert not Path("out/results.jsonl").exists()


def test_small_runs_and_runs_without_probe_ask_no_such_question():
    with FakeServer(reply="4") as server:
        eval_file(ACCURACY, server, rows=3)
        assert run("eval", "eval.yml", "--quiet").exit_code == 0
        assert server.calls == 6
        server.reset("4")
        eval_file(ACCURACY, server, rows=120)
        assert run("eval", "eval.yml", "--quiet", "--no-probe").exit_code == 0
        assert server.calls == 240


def test_what_works_in_part_is_said_and_the_run_goes_on():
    with FakeServer() as server:
        eval_file(ACCURACY | FAITHFULNESS, server, rows=120, max_tokens=8)
        done = run("eval", "eval.yml")
    assert "structured answers: max_tokens 8 leaves them no room" in done.stderr
    assert Path("out/summary.json").exists()


def test_a_probe_goes_past_the_cache():
    with FakeServer(reply="4") as server:
        eval_file(ACCURACY, server)
        cached = ("--override", "eval.general.ragparity.cache.mode", "read_write")
        assert run("probe", "eval.yml", *cached).exit_code == 0
        assert run("probe", "eval.yml", *cached).exit_code == 0
        assert server.calls == 2


def test_entries_are_probed_at_the_same_time():
    with FakeServer(latency=0.1, embeddings=4) as server:
        eval_file(RELEVANCY, server)
        plan = wiring.make_plan(load_eval_file(Path("eval.yml")))

        async def both():
            session = wiring.open_session(plan)
            try:
                return await probing.probe(plan, session)
            finally:
                await session.aclose()

        asyncio.run(both())
        assert server.max_in_flight == 2


# -- entries from a file


def test_an_azure_entry_of_a_file_needs_only_its_deployment():
    with FakeServer(personality="azure") as server:
        eval_file(ACCURACY, server)
        content = yaml.safe_load(Path("eval.yml").read_text(encoding="utf-8"))
        content["llms"]["judge"] = {
            "_type": "azure_openai",
            "azure_deployment": "judge-1",
            "azure_endpoint": server.url,
            "api_key": "k",
        }
        Path("eval.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
        code, found = probed()
        assert server.requests[0].deployment == "judge-1"
    assert code == 0
    assert found["llms.judge"]["identity"] == f"azure_openai/judge-1 at {server.url} api_version=2025-04-01-preview"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("thinking", "false", "llms.judge.thinking: a switch is known for Nemotron models alone"),
        ("api_type", "responses", "llms.judge.api_type: responses is not used for judges"),
        ("_type", "aws_bedrock", "pip install langchain-aws"),
    ],
)
def test_a_setting_of_an_entry_that_could_not_work_is_refused_before_any_call(key, value, said):
    with FakeServer() as server:
        eval_file(ACCURACY, server)
        done = run("probe", "eval.yml", "--override", f"llms.judge.{key}", value)
        assert server.calls == 0
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert said in line


def test_the_thinking_switch_of_a_file_reaches_the_judge():
    with FakeServer() as server:
        eval_file(ACCURACY, server, model_name="nvidia/nvidia-nemotron-nano-9b-v2", thinking=False)
        assert probed()[0] == 0
    assert server.requests[0].system.endswith("\n/no_think")
