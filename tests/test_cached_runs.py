"""Cache, single flight, repetitions, accounting and budgets, from an eval file over HTTP to the files of a run."""

import re
import time
from pathlib import Path

import pytest
from tests import runs
from tests.fakeserver import FakeServer, server_error

from ragparity.cache_file import stats

SEVEN = {
    "faithfulness": {"metric": "Faithfulness", "llm_name": "judge"},
    "relevancy": {"metric": "AnswerRelevancy", "llm_name": "judge", "embedder_name": "emb"},
    "precision": {"metric": "ContextPrecision", "llm_name": "judge"},
    "recall": {"metric": "ContextRecall", "llm_name": "judge"},
    "accuracy": {"metric": "AnswerAccuracy", "llm_name": "judge"},
    "relevance": {"metric": "ContextRelevance", "llm_name": "judge"},
    "groundedness": {"metric": "ResponseGroundedness", "llm_name": "judge"},
}
CACHE = {"path": "cache/judge.sqlite", "mode": "read_write"}
IN_TURN = {**runs.ACCURACY["accuracy"], "judge": {"retries": 0}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def cached_as(mode):
    return {"cache": {**CACHE, "mode": mode}}


# -- the cache


def test_the_second_run_asks_nobody_and_leaves_the_same_files():
    with FakeServer() as server:
        runs.write(SEVEN, runs.rows(5), server, run={"cache": CACHE, "save": {"calls": "none"}})
        assert runs.command("eval", "eval.yml").exit_code == 0
        first, calls = runs.files(without=(*runs.TIMES, *runs.COSTS)), server.calls
        server.reset()
        done = runs.command("eval", "eval.yml")
        assert done.exit_code == 0 and f"calls: 0 made, {calls} answers from the cache" in done.output
        assert server.calls == server.embedding_calls == 0
    assert runs.files(without=(*runs.TIMES, *runs.COSTS)) == first
    assert {one["n_scored"] for one in runs.summary().values()} == {5}
    assert {(one["calls"], one["input_tokens"]) for one in runs.summary().values()} == {(0, 0)}
    assert sum(one["cached_calls"] for one in runs.summary().values()) == calls


def test_the_deterministic_judge_gives_the_same_scores_together_and_alone():
    with FakeServer() as server:
        runs.write(SEVEN, runs.rows(3), server, output="together")
        runs.command("eval", "eval.yml")
        together = {(line["evaluator"], line["id"]): line["score"] for line in runs.lines("together")}
        for name, entry in SEVEN.items():
            runs.write({name: entry}, runs.rows(3), server, output=name)
            runs.command("eval", "eval.yml")
            assert {(line["evaluator"], line["id"]): line["score"] for line in runs.lines(name)} == {
                key: score for key, score in together.items() if key[0] == name
            }


def test_two_processes_at_once_share_what_they_learn():
    data = runs.rows(12)
    with FakeServer(reply="4", latency=0.02) as server:
        for name in ("a", "b"):
            runs.write(runs.ACCURACY, data, server, run={"cache": CACHE}, name=f"{name}.yml", output=name)
        both = [runs.start("eval", f"{name}.yml", "--quiet", output=f"{name}.txt") for name in ("a", "b")]
        for one, name in zip(both, ("a", "b"), strict=True):
            assert runs.ended(one) == 0
            assert "cache cache/" not in Path(f"{name}.txt").read_text(encoding="utf-8")
        assert 24 <= server.calls <= 48
    (group,) = stats(Path(CACHE["path"]))
    assert group.replies == 24
    assert runs.summary("a")["accuracy"]["mean"] == runs.summary("b")["accuracy"]["mean"] == 1.0


def test_replay_needs_neither_server_nor_key(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "sk-very-secret-1")
    with FakeServer(reply="2") as server:
        runs.write(runs.ACCURACY, runs.rows(3), server, run={"cache": CACHE}, llm={"api_key": "${JUDGE_KEY}"})
        runs.command("eval", "eval.yml")
        first = runs.files(without=(*runs.TIMES, *runs.COSTS))
        url = server.base_url
    monkeypatch.delenv("JUDGE_KEY")
    runs.write(runs.ACCURACY, runs.rows(3), url, run=cached_as("replay"), llm={"api_key": "${JUDGE_KEY}"})
    assert runs.command("check", "eval.yml").exit_code == 0
    done = runs.command("eval", "eval.yml")
    assert done.exit_code == 0, done.output
    assert runs.files(without=(*runs.TIMES, *runs.COSTS)) == first


def test_a_variable_other_than_the_key_is_missed_in_a_replay_too():
    runs.write(runs.ACCURACY, runs.rows(1), "${WHERE}", run=cached_as("replay"))
    done = runs.command("eval", "eval.yml")
    assert done.exit_code == 2 and "WHERE is not set" in done.output


def replayed(change, **more):
    """The first error of a replay after a change."""
    with FakeServer(reply="2") as server:
        runs.write(runs.ACCURACY, runs.rows(2), server, run={"cache": CACHE})
        runs.command("eval", "eval.yml")
        url = server.base_url
    change()
    runs.write(**{"evaluators": runs.ACCURACY, "data": runs.rows(2), "server": url, "run": cached_as("replay"), **more})
    assert runs.command("eval", "eval.yml").exit_code == 1
    found = runs.lines()[0]
    assert found["error"]["kind"] == "not_cached" and found["score"] is None
    return found["error"]["message"]


def test_replay_names_a_changed_prompt(monkeypatch):
    from ragparity.core.prompt import Prompt
    from ragparity.metrics import ratings

    def change():
        kinder = Prompt("Rate how well the answer agrees, kindly.", ratings.ACCURACY_RULES)
        monkeypatch.setattr(ratings, "ACCURACY", kinder)

    said = replayed(change)
    assert "other prompt" in said and "kindly" in said and "Rate how well the answer agrees with the reference" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"llm": {"model_name": "m2"}}, "other judge: stored is openai/m at"),
        ({"llm": {"temperature": 1}}, "other settings"),
        ({"llm": {"extra_body": {"min_p": 0.1}}}, 'asked is {"extra_body": {"min_p": 0.1}}'),
        ({"evaluators": {"accuracy": {**runs.ACCURACY["accuracy"], "reps": 2}}}, "another draw: stored is 0"),
        ({"data": [{**runs.rows(1)[0], "answer": "Port 1."}]}, "other data"),
    ],
)
def test_replay_names_whatever_else_was_changed(more, said):
    if "reps" in str(more):
        with FakeServer(reply="2") as server:
            runs.write(runs.ACCURACY, runs.rows(1), server, run={"cache": CACHE})
            runs.command("eval", "eval.yml")
        runs.write(more["evaluators"], runs.rows(1), server, run=cached_as("replay"))
        runs.command("eval", "eval.yml")
        (line,) = runs.lines()
        assert line["score"] == 0.5, "the stored repetition is scored"
        assert line["detail"]["repetitions_without_score"] == 1
        return
    assert said in replayed(lambda: None, **more)


def test_a_replay_without_its_file_ends_before_it_begins():
    runs.write(runs.ACCURACY, runs.rows(1), "http://127.0.0.1:9/v1", run=cached_as("replay"))
    done = runs.command("eval", "eval.yml")
    assert done.exit_code == 2 and "no such file" in done.output
    assert not Path("out").exists() or not list(Path("out").iterdir())


@pytest.mark.parametrize("mode", ["read_write", "read_only"])
def test_a_broken_cache_is_one_warning_and_the_run_is_whole(mode):
    Path("cache").mkdir()
    Path(CACHE["path"]).write_bytes(b"garbage " * 1000)
    with FakeServer(reply="4") as server:
        runs.write(runs.ACCURACY, runs.rows(2), server, run=cached_as(mode))
        done = runs.command("eval", "eval.yml")
        assert server.calls == 4
    assert done.exit_code == 0
    assert done.output.count("cache cache/judge.sqlite") == 1
    (line,) = runs.read("out", "manifest.json")["findings"]
    assert "every question is asked" in line


def test_structured_answers_are_cached_although_their_classes_are_made_on_the_way():
    with FakeServer() as server:
        entry = {"faithfulness": {"metric": "Faithfulness", "llm_name": "judge"}}
        for _ in range(2):
            runs.write(entry, runs.rows(2), server, run={"cache": CACHE})
            done = runs.command("eval", "eval.yml")
            assert done.exit_code == 0 and "cache cache/" not in done.output, "nothing went wrong with the file"
        assert runs.summary()["faithfulness"]["calls"] == 0
        assert runs.summary()["faithfulness"]["cached_calls"] == server.calls > 0


def test_failures_are_asked_about_again_and_the_rest_is_not():
    broken = {"on": True}

    def reply(request):
        return server_error(500) if broken["on"] and "gateway 1 " in request.text else "4"

    with FakeServer(reply=reply) as server:
        runs.write({"accuracy": IN_TURN}, runs.rows(3), server, run={"cache": CACHE})
        runs.command("eval", "eval.yml")
        assert runs.summary()["accuracy"]["n_failed"] == 1
        broken["on"] = False
        server.reset()
        runs.command("eval", "eval.yml")
        assert server.calls == 2
    assert runs.summary()["accuracy"]["n_scored"] == 3


def test_no_secret_is_in_the_cache():
    with FakeServer(reply="4") as server:
        llm = {"default_headers": {"x-token": "abcdefgh-secret"}, "extra_body": {"user": "sk-very-secret-1"}}
        runs.write(runs.ACCURACY, runs.rows(1), server, run={"cache": CACHE}, llm=llm)
        assert runs.command("eval", "eval.yml").exit_code == 0
    content = Path(CACHE["path"]).read_bytes()
    assert b"secret" not in content and b"x-token" not in content


def test_a_run_over_stored_questions_is_fast():
    def seconds():
        began = time.perf_counter()
        assert runs.command("eval", "eval.yml").exit_code == 0
        return time.perf_counter() - began

    with FakeServer(reply="4", record=False) as server:
        runs.write(runs.ACCURACY, runs.rows(100), server, run={"cache": CACHE}, max_concurrency=32)
        asking = seconds()
        server.reset()
        assert seconds() < asking / 2, "a look-up takes a small part of even the fastest call"
        assert server.calls == 0
    assert runs.summary()["accuracy"]["cached_calls"] == 200


def test_a_single_call_is_reused_when_a_killed_run_is_resumed_with_the_cache_on():
    """One rating of a row was answered, the other was not: only the other is asked when the run goes on."""
    broken = {"on": True}

    def reply(request):
        second = request.user.index("reference:") < request.user.index("answer:")
        return server_error(500) if broken["on"] and second else "4"

    with FakeServer(reply=reply) as server:
        runs.write({"accuracy": IN_TURN}, runs.rows(1), server, run={"cache": CACHE})
        assert runs.command("eval", "eval.yml").exit_code == 1
        broken["on"] = False
        server.reset()
        assert runs.command("eval", "eval.yml", "--resume").exit_code == 0
        assert server.calls == 1
    assert runs.summary()["accuracy"]["mean"] == 1.0


def test_the_command_says_what_is_stored_and_removes_it():
    with FakeServer(reply="4") as server:
        runs.write(runs.ACCURACY, runs.rows(2), server, run={"cache": CACHE})
        runs.command("eval", "eval.yml")
    said = runs.command("cache", "stats", "eval.yml")
    assert said.exit_code == 0 and "4 replies" in said.output and "openai/m at http" in said.output
    assert runs.command("cache", "stats", CACHE["path"]).output == said.output
    assert runs.command("cache", "prune", "eval.yml").exit_code == 2
    assert runs.command("cache", "prune", "eval.yml", "--older-than", "soon").exit_code == 2
    assert "0 replies removed" in runs.command("cache", "prune", "eval.yml", "--older-than", "1d").output
    assert "0 replies removed" in runs.command("cache", "prune", "eval.yml", "--judge", "nobody").output
    assert "4 replies removed" in runs.command("cache", "prune", CACHE["path"], "--all").output
    for wrong in ("none.sqlite", "rows.jsonl", "none.yml"):
        done = runs.command("cache", "stats", wrong)
        assert done.exit_code == 2 and len(done.output.splitlines()) == 1


# -- single flight


def test_rows_that_ask_the_same_at_once_make_one_call_and_all_are_scored():
    data = [dict(runs.rows(1)[0], id=str(number)) for number in range(10)]
    with FakeServer(reply="4", latency=0.1) as server:
        both = {**runs.ACCURACY, "again": runs.ACCURACY["accuracy"]}
        runs.write(both, data, server, max_concurrency=64)
        done = runs.command("eval", "eval.yml")
        assert done.exit_code == 0
        assert server.calls == 2, "two questions, however many ask them"
    assert [one["n_scored"] for one in runs.summary().values()] == [10, 10]
    assert sum(one["calls"] for one in runs.summary().values()) == 2
    assert sum(one["shared_calls"] for one in runs.summary().values()) == 38
    assert "calls: 2 made, 38 shared" in done.output


def test_a_failure_that_is_shared_fails_all_who_asked_and_is_asked_again_later():
    broken = {"on": True}
    data = [dict(runs.rows(1)[0], id=str(number)) for number in range(5)]
    with FakeServer(reply=lambda _request: server_error(500) if broken["on"] else "4", latency=0.1) as server:
        runs.write({"accuracy": IN_TURN}, data, server, run={"cache": CACHE}, max_concurrency=64)
        assert runs.command("eval", "eval.yml").exit_code == 1
        assert server.calls == 2
        assert runs.summary()["accuracy"]["errors"] == {"unavailable": 5}
        broken["on"] = False
        runs.command("eval", "eval.yml")
    assert runs.summary()["accuracy"]["n_scored"] == 5


# -- repetitions


def noisy(replies):
    """A judge whose replies about each row follow one another."""
    seen = {}

    def reply(request):
        row = re.search(r"gateway (\d+)", request.text)[1]
        turn = seen[row] = seen.get(row, -1) + 1
        return replies[int(row)][turn]

    return reply


def test_repetitions_are_separate_calls_with_spread_flip_rate_and_reliability():
    # Per repetition two ratings of 0, 2, 4. Row 0: 1.0, 1.0, 1.0. Row 1: 0.0, 0.5, 0.5, and a threshold of 0.4.
    replies = {0: "444444", 1: "002222"}
    with FakeServer(reply=noisy(replies)) as server:
        entry = {**runs.ACCURACY["accuracy"], "reps": 3, "threshold": 0.4}
        runs.write({"accuracy": entry}, runs.rows(2), server, max_concurrency=1)
        done = runs.command("eval", "eval.yml")
        assert done.exit_code == 0 and "33.3% of its verdicts flip" in " ".join(done.output.split())
        assert server.calls == 12
    steady, shaky = runs.record("out", "accuracy", "r0"), runs.record("out", "accuracy", "r1")
    assert steady["detail"]["repetitions"] == [1.0] * 3 and steady["detail"]["flip_rate"] == 0
    assert sorted(shaky["detail"]["repetitions"]) in ([0.0, 0.5, 0.5], [0.25, 0.25, 0.5])
    assert shaky["score"] == pytest.approx(1 / 3)
    told = runs.summary()["accuracy"]["repetitions"]
    assert told["n"] == 2 and told["spread"] > 0 and 0 < told["test_retest"] < 1
    assert told["flip_rate"] == pytest.approx(1 / 3), "row 1: two of its three pairs differ; row 0: none"


def test_repetitions_are_stored_apart_and_resumed():
    with FakeServer(reply="2") as server:
        entry = {**runs.ACCURACY["accuracy"], "reps": 3}
        runs.write({"accuracy": entry}, runs.rows(2), server, run={"cache": CACHE})
        runs.command("eval", "eval.yml")
        assert server.calls == 12
        runs.write({"accuracy": {**entry, "reps": 4}}, runs.rows(2), server, run={"cache": CACHE})
        runs.command("eval", "eval.yml")
        assert server.calls == 16, "only the fourth repetition is new"
        kept = Path("out/results.jsonl").read_text(encoding="utf-8").splitlines()
        Path("out/results.jsonl").write_text(kept[0] + "\n", encoding="utf-8")
        Path("cache/judge.sqlite").unlink()
        runs.command("eval", "eval.yml", "--resume")
        assert server.calls == 24, "the other row's four repetitions"
    assert runs.summary()["accuracy"]["n_scored"] == 2


# -- accounting


def test_tokens_are_counted_by_row_and_metric_retries_included():
    state = {"failed": False}

    def reply(request):
        if "gateway 1 " in request.text and not state["failed"]:
            state["failed"] = True
            return "no number here"
        return "4"

    price = {"judges": {"judge": {"price": {"input_per_1m": 2.0, "output_per_1m": 10.0}}}}
    with FakeServer(reply=reply) as server:
        both = {**runs.ACCURACY, "relevance": {"metric": "ContextRelevance", "llm_name": "judge"}}
        runs.write(both, runs.rows(2), server, run=price)
        server.reply = lambda request: "2" if "contexts" in request.user else reply(request)
        assert runs.command("eval", "eval.yml").exit_code == 0
        sent = [request for request in server.requests if request.path.endswith("completions")]
        read = sum(-(-len(request.text) // 4) for request in sent)
    assert runs.record("out", "accuracy", "r1")["calls"] == 3
    assert runs.record("out", "accuracy", "r0")["calls"] == 2
    total = runs.summary()
    assert sum(one["calls"] for one in total.values()) == len(sent) == 9
    assert sum(one["input_tokens"] for one in total.values()) == pytest.approx(read, abs=len(sent) * 4)
    for one in total.values():
        assert one["cost"] == pytest.approx((one["input_tokens"] * 2 + one["output_tokens"] * 10) / 1e6)


def test_tokens_that_are_not_reported_are_unknown_and_so_is_the_cost():
    price = {"judges": {"judge": {"price": {"input_per_1m": 2.0, "output_per_1m": 10.0}}}}
    with FakeServer(reply="4", usage="none") as server:
        runs.write(runs.ACCURACY, runs.rows(1), server, run=price)
        done = runs.command("eval", "eval.yml")
    one = runs.summary()["accuracy"]
    assert (one["calls"], one["input_tokens"], one["output_tokens"], one["cost"]) == (2, None, None, None)
    assert "? / ?" in done.output


# -- what to expect


def test_check_estimates_calls_tokens_and_cost_near_what_the_run_then_needs():
    price = {"judges": {"judge": {"price": {"input_per_1m": 2.0, "output_per_1m": 10.0}}}}
    with FakeServer() as server:
        runs.write(SEVEN, runs.rows(20), server, run=price)
        said = runs.command("check", "eval.yml").output
        assert server.calls == 0
        runs.command("eval", "eval.yml")
    found = re.search(r"in all: about (\d+) judge calls, ([\d,]+) tokens in, at most ([\d,]+) out, cost at most", said)
    assert found, said
    total = runs.summary().values()
    assert int(found[1]) == sum(one["calls"] for one in total)
    read = sum(one["input_tokens"] for one in total)
    assert 0.6 * read < int(found[2].replace(",", "")) < 1.6 * read
    assert sum(one["output_tokens"] for one in total) <= int(found[3].replace(",", ""))
    assert "estimates" in said


def test_check_counts_repetitions_and_warns_of_a_budget_that_is_too_small():
    entry = {"accuracy": {**runs.ACCURACY["accuracy"], "reps": 5}}
    runs.write(entry, runs.rows(4), "http://127.0.0.1:9/v1", run={"budget": {"calls": 39}})
    said = runs.command("check", "eval.yml").output
    assert "about 40 judge calls" in said and "the budget of 39 calls will end the run early" in said


# -- budgets


def test_a_budget_ends_a_run_cleanly_and_it_can_be_resumed():
    with FakeServer(reply="4") as server:
        runs.write({**runs.ACCURACY, "exact": {"metric": "ExactMatch"}}, runs.rows(6), server, max_concurrency=1)
        done = runs.command("eval", "eval.yml", "--budget", "calls=5")
        assert server.calls == 5
        assert done.exit_code == 1
        assert "stopped: the budget of 5 calls is spent" in done.output and "--resume" in done.output
        seen = runs.summary()
        assert 0 < seen["accuracy"]["n_scored"] <= 2 and seen["accuracy"]["n_failed"] == 0
        assert seen["accuracy"]["n_not_run"] == 6 - seen["accuracy"]["n_scored"]
        assert seen["exact"]["n_scored"] == 6, "what costs nothing is done"
        assert runs.read("out", "summary.json")["stopped"] == "the budget of 5 calls is spent"
        manifest = runs.read("out", "manifest.json")
        assert manifest["finished"] is None and manifest["stopped"]
        assert runs.command("eval", "eval.yml").exit_code == 2, "an unfinished run is not replaced by accident"
        server.reset()
        assert runs.command("eval", "eval.yml", "--resume").exit_code == 0
        assert server.calls == 2 * (6 - seen["accuracy"]["n_scored"])
    assert runs.summary()["accuracy"]["n_scored"] == 6
    assert "stopped" not in runs.read("out", "summary.json")
    assert runs.read("out", "manifest.json")["finished"]


def test_calls_under_way_are_finished_when_the_budget_is_spent():
    with FakeServer(reply="4", latency=0.05) as server:
        runs.write(runs.ACCURACY, runs.rows(20), server, run={"budget": {"calls": 10}}, max_concurrency=8)
        assert runs.command("eval", "eval.yml").exit_code == 1
        assert server.calls == 10
        assert all(request.status == 200 for request in server.requests)
    assert runs.summary()["accuracy"]["errors"] == {}


def test_what_is_stored_costs_nothing_of_a_budget():
    with FakeServer(reply="4") as server:
        runs.write(runs.ACCURACY, runs.rows(5), server, run={"cache": CACHE}, max_concurrency=1)
        assert runs.command("eval", "eval.yml", "--budget", "calls=6").exit_code == 1
        assert runs.command("eval", "eval.yml", "--resume", "--budget", "calls=4").exit_code == 0
        assert server.calls == 10
        assert runs.command("eval", "eval.yml", "--budget", "calls=0").exit_code == 0
        assert server.calls == 10


def test_budgets_of_tokens_and_of_money():
    price = {"judges": {"judge": {"price": {"input_per_1m": 1000.0, "output_per_1m": 0.0}}}}
    with FakeServer(reply="4") as server:
        runs.write(runs.ACCURACY, runs.rows(6), server, run=price, max_concurrency=1)
        assert runs.command("eval", "eval.yml", "--budget", "tokens=300").exit_code == 1
        by_tokens = server.calls
        assert runs.command("eval", "eval.yml", "--overwrite", "--budget", "cost=0.3").exit_code == 1
        assert server.calls - by_tokens in (by_tokens, by_tokens + 1), "300 tokens cost 0.3"
        assert 0 < by_tokens < 12


def test_a_budget_in_money_needs_prices_and_names_where():
    runs.write(runs.ACCURACY, runs.rows(1), "http://127.0.0.1:9/v1", run={"budget": {"cost": 1}})
    done = runs.command("eval", "eval.yml")
    assert done.exit_code == 2 and "eval.general.ragparity.judges.judge.price" in done.output


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("calls", "expected NAME=NUMBER"), ("call=3", "Did you mean calls?"), ("tokens=1.5", "a whole number")],
)
def test_a_wrong_budget_is_one_clear_line(wrong, said):
    runs.write(runs.ACCURACY, runs.rows(1), "http://127.0.0.1:9/v1")
    done = runs.command("eval", "eval.yml", "--budget", wrong)
    assert done.exit_code == 2 and said in done.output


def test_a_wrong_budget_in_the_file_is_named():
    runs.write(runs.ACCURACY, runs.rows(1), "http://127.0.0.1:9/v1", run={"budget": {"calls": -1}})
    done = runs.command("eval", "eval.yml")
    assert done.exit_code == 2 and "eval.general.ragparity.budget.calls" in done.output


def test_an_answer_that_the_metric_can_do_nothing_with_is_forgotten():
    """Readable by its schema, but blank: the row fails, and is asked about anew the next time."""
    useless = {"on": True}

    def reply(_request):
        text = " " if useless["on"] else "Which port?"
        return {"questions": [{"question": text, "noncommittal": False}] * 3}

    with FakeServer(reply=reply) as server:
        runs.write({"relevancy": SEVEN["relevancy"]}, runs.rows(1), server, run={"cache": CACHE})
        assert runs.command("eval", "eval.yml").exit_code == 1
        error = runs.record("out", "relevancy", "r0")["error"]
        assert error["kind"] == "malformed" and "blank" in error["message"]
        useless["on"] = False
        assert runs.command("eval", "eval.yml", "--resume").exit_code == 0
        calls = server.calls
        assert runs.command("eval", "eval.yml").exit_code == 0
        assert server.calls == calls, "what it could use is kept"


# -- what a resumed run takes over


@pytest.mark.parametrize(
    "change",
    [
        {"llm": {"top_p": 0.5}},
        {"llm": {"extra_body": {"min_p": 0.1}}},
        {"evaluators": {"accuracy": {**runs.ACCURACY["accuracy"], "judge": {"temperature": 0.5}}}},
        *(
            {"evaluators": {"accuracy": {**runs.ACCURACY["accuracy"], "judge": judge}}}
            for judge in ({"language": "German"}, {"prompt": "Be strict."}, {"max_tokens": 12})
        ),
        {"evaluators": {"accuracy": {**runs.ACCURACY["accuracy"], "reps": 2}}},
    ],
)
def test_a_setting_that_can_change_a_score_is_noticed_when_a_run_is_resumed(change):
    with FakeServer(reply="4") as server:
        runs.write(runs.ACCURACY, runs.rows(2), server)
        runs.command("eval", "eval.yml")
        server.reset()
        runs.write(**{"evaluators": runs.ACCURACY, "data": runs.rows(2), "server": server, **change})
        assert runs.command("eval", "eval.yml", "--resume").exit_code == 0
        assert server.calls == 4 * (2 if "reps" in str(change) else 1)


def test_another_wording_is_noticed_when_a_run_is_resumed(monkeypatch):
    from ragparity.core.prompt import Prompt
    from ragparity.metrics import ratings

    with FakeServer(reply="4") as server:
        runs.write(runs.ACCURACY, runs.rows(2), server)
        runs.command("eval", "eval.yml")
        monkeypatch.setattr(ratings, "ACCURACY", Prompt("Rate it kindly.", ratings.ACCURACY.rules))
        server.reset()
        runs.command("eval", "eval.yml", "--resume")
        assert server.calls == 4


def test_another_threshold_is_applied_to_what_was_scored_and_nobody_is_asked():
    replies = {0: "444444", 1: "002222"}
    entry = {**runs.ACCURACY["accuracy"], "reps": 3}
    with FakeServer(reply=noisy(replies)) as server:
        runs.write({"accuracy": {**entry, "threshold": 0.2}}, runs.rows(2), server, max_concurrency=1)
        runs.command("eval", "eval.yml")
        assert runs.summary()["accuracy"]["passed"] == 2
        server.reset()
        runs.write({"accuracy": {**entry, "threshold": 0.4}}, runs.rows(2), server, max_concurrency=1)
        assert runs.command("eval", "eval.yml", "--resume").exit_code == 0
        assert server.calls == 0
        assert runs.summary()["accuracy"]["passed"] == 1
        assert runs.record("out", "accuracy", "r1")["passed"] is False
        assert runs.record("out", "accuracy", "r1")["detail"]["flip_rate"] == pytest.approx(2 / 3)
        runs.write({"accuracy": entry}, runs.rows(2), server, max_concurrency=1)
        runs.command("eval", "eval.yml", "--resume")
        assert runs.summary()["accuracy"]["passed"] is None
        assert "flip_rate" not in runs.record("out", "accuracy", "r1")["detail"]
