"""The command from an eval file to files, over real HTTP where a judge is asked."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.fakeserver import FakeServer, Reply, rate_limited, server_error, unauthorized

from ragparity.cli import main

ROWS = [
    {
        "id": "good",
        "question": "Which port does the Heron gateway use?",
        "generated_answer": "Heron listens on port 7443.",
        "answer": "Port 7443.",
        "contexts": ["The Heron gateway listens on TCP port 7443 by default.", "Heron ships with a dark theme."],
    },
    {
        "id": "no-reference",
        "question": "Who made it?",
        "generated_answer": "Nobody knows.",
        "contexts": ["Made in Oslo."],
    },
    {"id": "no-contexts", "question": "How big?", "generated_answer": "Two metres.", "answer": "2 m", "contexts": []},
]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def write_rows(rows, name="rows.jsonl"):
    Path(name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def eval_file(evaluators, *, rows=ROWS, llms=None, **general):
    write_rows(rows)
    content = {
        "llms": llms or {},
        "eval": {
            "general": {"output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}, **general},
            "evaluators": {name: {"_type": "ragparity", **entry} for name, entry in evaluators.items()},
        },
    }
    Path("eval.yml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def judge_at(server, **more):
    return {
        "judge": {
            "_type": "openai",
            "model_name": "m",
            "base_url": server.base_url,
            "api_key": "sk-very-secret-1",
            **more,
        }
    }


def alike(count):
    """Rows that differ in their question only: the same question asked at once would be one call."""
    return [dict(ROWS[0], id=str(number), question=f"Which port does gateway {number} use?") for number in range(count)]


def run(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def records(folder="out"):
    lines = Path(folder, "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {(line["evaluator"], line["id"]): line for line in map(json.loads, lines)}


def summary(folder="out"):
    return json.loads(Path(folder, "summary.json").read_text(encoding="utf-8"))["evaluators"]


ACCURACY = {"accuracy": {"metric": "AnswerAccuracy", "llm_name": "judge"}}


def test_a_run_writes_every_file_and_scores_what_can_be_scored():
    with FakeServer(reply="4") as server:
        eval_file(ACCURACY | {"exact": {"metric": "ExactMatch"}}, llms=judge_at(server))
        done = run("eval", "eval.yml")
        assert server.calls == 4, "two ratings for each of the two rows with a reference"
    assert done.exit_code == 0, done.output
    assert {path.name for path in Path("out").iterdir()} == {
        "results.jsonl", "samples.jsonl", "calls.jsonl", "summary.json", "manifest.json",
        "accuracy_output.json", "exact_output.json",
    }  # fmt: skip
    found = records()
    assert found["accuracy", "good"]["score"] == 1.0
    assert found["accuracy", "no-reference"]["status"] == "undefined"
    assert found["accuracy", "no-reference"]["why"] == "missing:reference"
    assert summary()["accuracy"]["mean"] == 1.0 and summary()["accuracy"]["n_scored"] == 2
    assert summary()["accuracy"]["coverage"] == pytest.approx(2 / 3)


def test_the_output_file_has_the_toolkits_shape_in_data_order():
    with FakeServer(reply="2") as server:
        eval_file(ACCURACY, llms=judge_at(server))
        run("eval", "eval.yml")
    output = json.loads(Path("out/accuracy_output.json").read_text(encoding="utf-8"))
    assert output["average_score"] == 0.5
    assert [item["id"] for item in output["eval_output_items"]] == ["good", "no-reference", "no-contexts"]
    assert [item["score"] for item in output["eval_output_items"]] == [0.5, None, 0.5]
    assert output["eval_output_items"][1]["error"] == "undefined: missing:reference"


def test_a_failed_judge_is_no_zero_in_the_mean():
    def reply(request):
        return server_error(500) if "Two metres" in request.text else "4"

    with FakeServer(reply=reply) as server:
        judged = {"metric": "AnswerAccuracy", "llm_name": "judge", "judge": {"retries": 0}}
        eval_file({"accuracy": judged}, llms=judge_at(server))
        done = run("eval", "eval.yml")
    assert done.exit_code == 0
    assert summary()["accuracy"]["mean"] == 1.0
    assert summary()["accuracy"]["errors"] == {"unavailable": 1}
    assert records()["accuracy", "no-contexts"]["score"] is None


def test_a_judge_that_is_down_fails_every_row_and_still_writes_the_files():
    eval_file(
        {"accuracy": {"metric": "AnswerAccuracy", "llm_name": "judge", "judge": {"retries": 1}}},
        llms={"judge": {"_type": "openai", "model_name": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "x"}},
    )
    done = run("eval", "eval.yml")
    assert done.exit_code == 1
    assert summary()["accuracy"]["errors"] == {"unavailable": 2}
    assert summary()["accuracy"]["mean"] is None
    assert "no row was scored" in done.output


def test_a_wrong_key_ends_the_entry_after_the_calls_in_flight():
    rows = alike(40)
    with FakeServer(reply=lambda _request: unauthorized()) as server:
        eval_file(ACCURACY, rows=rows, llms=judge_at(server), max_concurrency=4)
        done = run("eval", "eval.yml")
        assert server.calls <= 8
    assert done.exit_code == 1
    assert summary()["accuracy"]["errors"] == {"auth": 40}


def test_too_many_requests_are_waited_for():
    state = {"left": 3}

    def reply(_request):
        if state["left"]:
            state["left"] -= 1
            return rate_limited(retry_after=0)
        return "4"

    with FakeServer(reply=reply) as server:
        eval_file(ACCURACY, llms=judge_at(server), max_concurrency=1)
        assert run("eval", "eval.yml").exit_code == 0
        assert server.calls == 4 + 3
    assert summary()["accuracy"]["calls"] == 7, "failed requests are calls too"


def test_calls_in_flight_are_bounded_for_all_evaluators_of_an_entry_together():
    rows = alike(12)
    with FakeServer(reply="2", latency=0.02) as server:
        both = {
            "accuracy": {"metric": "AnswerAccuracy", "llm_name": "judge"},
            "relevance": {"metric": "ContextRelevance", "llm_name": "judge"},
        }
        eval_file(both, rows=rows, llms=judge_at(server), max_concurrency=5)
        run("eval", "eval.yml")
        assert server.max_in_flight == 5
        assert server.calls == 12 * 4


def test_no_secret_reaches_a_file_or_the_terminal(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret-2")

    def echo_the_key(request):
        return Reply(
            status=400, body=json.dumps({"error": {"message": f"bad key {request.headers}", "code": "x"}}).encode()
        )

    with FakeServer(reply=echo_the_key) as server:
        llms = judge_at(server)
        llms["judge"]["api_key"] = "${MY_KEY}"
        eval_file(ACCURACY, llms=llms)
        done = run("eval", "eval.yml")
    everything = done.output + "".join(path.read_text(encoding="utf-8") for path in Path("out").iterdir())
    assert "sk-very-secret" not in everything


def test_problems_are_named_together_before_any_call_and_end_with_two():
    with FakeServer() as server:
        eval_file(
            {
                "a": {"metric": "Faithfullness", "llm_name": "judge"},
                "b": {"metric": "AnswerRelevancy", "llm_name": "judge"},
                "c": {"metric": {"AnswerRelevancy": {"kwargs": {"strictnes": 3}}}, "llm_name": "judge"},
                "d": {"metric": "Faithfulness", "llm_name": "judg"},
                "e": {"metric": "ExactMatch"},
            },
            llms=judge_at(server),
        )
        done = run("eval", "eval.yml")
        assert server.calls == 0
    assert done.exit_code == 2
    assert "did you mean Faithfulness?" in done.output.replace("Did", "did")
    assert "AnswerRelevancy needs embedder_name" in done.output
    assert "unknown kwarg 'strictnes'" in done.output
    assert "no entry 'judg'" in done.output
    assert not Path("out").exists()


def test_keep_going_runs_the_others_and_still_ends_with_two():
    eval_file({"a": {"metric": "Faithfullness", "llm_name": "offline"}, "e": {"metric": "ExactMatch"}})
    done = run("eval", "eval.yml", "--keep-going")
    assert done.exit_code == 2
    assert summary()["e"]["n_scored"] == 2


def test_one_conflicting_row_fails_alone():
    rows = [*ROWS, {"id": "torn", "question": "q", "response": "a", "output": "b", "answer": "c"}]
    eval_file({"e": {"metric": "ExactMatch"}}, rows=rows)
    run("eval", "eval.yml")
    torn = records()["e", "torn"]
    assert torn["status"] == "failed" and torn["error"]["kind"] == "input"
    assert "response" in torn["error"]["message"] and "output" in torn["error"]["message"]
    assert summary()["e"]["n_scored"] == 2


def test_every_row_in_is_a_row_out_also_with_ids_that_repeat():
    rows = [{"id": 7, "question": "a", "generated_answer": "x", "answer": "x"}] * 2 + [
        {"id": "7", "question": "b", "generated_answer": "x", "answer": "y"}
    ]
    eval_file({"e": {"metric": "ExactMatch"}}, rows=rows)
    run("eval", "eval.yml")
    assert sorted(key[1] for key in records()) == ["7", "7#2", "7#3"]


def test_characters_of_every_script_reach_the_judge_and_the_files_unescaped():
    rows = [dict(ROWS[0], id="größe-7", question="Größe 7 µm — 温度?", generated_answer="七")]
    with FakeServer(reply="4") as server:
        eval_file(ACCURACY, rows=rows, llms=judge_at(server))
        run("eval", "eval.yml")
        assert "温度" in server.requests[0].user and "\\u" not in server.requests[0].user
    text = Path("out/samples.jsonl").read_text(encoding="utf-8")
    assert "Größe 7 µm — 温度?" in text


def test_a_gate_fails_the_run_and_says_by_what():
    with FakeServer(reply="2") as server:
        eval_file(ACCURACY, llms=judge_at(server), ragparity={"gate": {"accuracy": {"min_mean": 0.8, "max_failed": 0}}})
        done = run("eval", "eval.yml")
    assert done.exit_code == 1
    assert "mean at least 0.8, here 0.5000: FAILED" in done.output
    gate = json.loads(Path("out/summary.json").read_text(encoding="utf-8"))["gate"]
    assert [one["passed"] for one in gate] == [False, True]


def test_fail_under_replaces_the_limit_of_the_file():
    eval_file({"e": {"metric": "ExactMatch"}}, ragparity={"gate": {"e": {"min_mean": 0.9}}})
    assert run("eval", "eval.yml").exit_code == 1
    assert run("eval", "eval.yml", "--fail-under", "e=0.0").exit_code == 0
    assert run("eval", "eval.yml", "--fail-under", "f=0.0").exit_code == 2


def test_a_threshold_gives_every_scored_row_a_verdict_and_the_others_none():
    eval_file({"e": {"metric": "TokenF1", "threshold": 0.5}})
    run("eval", "eval.yml")
    assert records()["e", "good"]["passed"] is (records()["e", "good"]["score"] >= 0.5)
    assert records()["e", "no-reference"]["passed"] is None


def test_a_short_ceiling_is_told_before_the_first_call():
    claims = {"refusal": False, "claims": ["Heron listens on port 7443.", "It is a gateway."]}
    with FakeServer(reply=lambda request: claims if request.schema else "4") as server:
        both = ACCURACY | {"faithful": {"metric": "Faithfulness", "llm_name": "judge", "judge": {"retries": 0}}}
        eval_file(both, llms=judge_at(server, max_tokens=8))
        done = run("eval", "eval.yml")
    assert "faithful: llms.judge may answer with 8 tokens" in done.output
    assert "accuracy: llms.judge may" not in done.output
    assert summary()["accuracy"]["n_scored"] == 2
    assert set(summary()["faithful"]["errors"]) <= {"truncated", "truncated_reasoning"}


def test_an_unfinished_folder_is_refused_and_a_finished_one_replaced():
    eval_file({"e": {"metric": "ExactMatch"}})
    assert run("eval", "eval.yml").exit_code == 0
    assert run("eval", "eval.yml").exit_code == 0
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    Path("out/manifest.json").write_text(json.dumps(manifest | {"finished": None}), encoding="utf-8")
    refused = run("eval", "eval.yml")
    assert refused.exit_code == 2 and "--resume" in refused.output
    assert run("eval", "eval.yml", "--overwrite").exit_code == 0


def test_resume_asks_only_about_what_is_missing_and_notices_a_changed_row():
    with FakeServer(reply="4") as server:
        eval_file(ACCURACY, llms=judge_at(server))
        run("eval", "eval.yml")
        assert server.calls == 4
        server.reset()
        whole = summary()
        log = Path("out/results.jsonl").read_bytes().splitlines(keepends=True)
        kept = [line for line in log if b'"good"' not in line]
        Path("out/results.jsonl").write_bytes(b"".join(kept) + b'{"id": "good", "evalu')
        manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
        Path("out/manifest.json").write_text(json.dumps(manifest | {"finished": None}), encoding="utf-8")
        assert run("eval", "eval.yml", "--resume").exit_code == 0
        assert server.calls == 2, "only the row that was cut from the log"
        assert summary() == whole
        server.reset()
        write_rows([dict(row, generated_answer="changed") if row["id"] == "no-contexts" else row for row in ROWS])
        run("eval", "eval.yml", "--resume")
        assert server.calls == 2, "only the row that changed"


def test_limit_and_sample_choose_rows():
    rows = alike(20)
    eval_file({"e": {"metric": "ExactMatch"}}, rows=rows)
    run("eval", "eval.yml", "--limit", "3")
    assert [key[1] for key in records()] == ["0", "1", "2"]
    run("eval", "eval.yml", "--sample", "5", "--seed", "3")
    drawn = [key[1] for key in records()]
    run("eval", "eval.yml", "--sample", "5", "--seed", "3")
    assert len(drawn) == 5 and drawn == [key[1] for key in records()]


def test_slices_summarise_by_a_column():
    rows = [dict(ROWS[0], id=str(number), kind="x" if number else "y") for number in range(3)]
    eval_file({"e": {"metric": "ExactMatch"}}, rows=rows)
    run("eval", "eval.yml", "--slice", "kind")
    slices = json.loads(Path("out/summary.json").read_text(encoding="utf-8"))["slices"]["kind"]
    assert slices["x"]["e"]["n_total"] == 2 and slices["y"]["e"]["n_total"] == 1


def test_json_prints_the_summary_alone_on_standard_output():
    eval_file({"e": {"metric": "ExactMatch"}})
    done = run("eval", "eval.yml", "--json")
    assert json.loads(done.stdout)["evaluators"]["e"]["n_total"] == 3


def test_check_names_columns_calls_and_rows_without_a_score():
    eval_file({"f": {"metric": "Faithfulness", "llm_name": "offline"}})
    done = run("check", "eval.yml")
    assert done.exit_code == 0
    assert "generated_answer -> response" in done.output and "answer -> reference" in done.output
    assert "no score to expect for 1 of the first 3 rows (blank_contexts)" in done.output


def test_check_says_when_no_row_can_be_scored_and_which_field_is_missing():
    eval_file({"f": {"metric": "Faithfulness", "llm_name": "offline"}}, rows=[{"question": "q", "answer": "a"}])
    assert "no row can be scored (missing:response)" in run("check", "eval.yml").output


def test_check_sees_the_rows_as_each_evaluator_does():
    row = {"id": "1", "question": "q", "answer": "a", "generated_answer": "a", "hits": [{"key": "k"}], "wanted": ["k"]}
    own = {"retrieved_context_ids": "hits[].key", "reference_context_ids": "wanted"}
    hit = {"metric": "HitRate", "fields": own}
    eval_file({"exact": {"metric": "ExactMatch"}, "hit": hit, "lost": {"metric": "HitRate"}}, rows=[row])
    lines = run("check", "eval.yml").output.splitlines()
    assert "  hits[].key -> retrieved_context_ids (hit)" in lines and "  generated_answer -> response" in lines
    assert [line.split(":")[1] for line in lines if "no row can be scored" in line] == [" lost"]


def test_check_names_a_row_that_only_the_fields_of_one_evaluator_make_unreadable():
    row = {"id": "1", "question": "q", "answer": "a", "generated_answer": "a", "hits": [{"key": "k"}]}
    hit = {"metric": "HitRate", "fields": {"retrieved_context_ids": "hits"}}
    eval_file({"exact": {"metric": "ExactMatch"}, "hit": hit}, rows=[row])
    said = run("check", "eval.yml").output
    assert said.count("warning: row 1: ") == 1 and "a text or a number, not an object" in said
    assert "none of the first" not in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "nothing in it"),
        ("eval: [", "eval.yml"),
        ("evals: {}", "evals"),
        ("eval:\n  evaluators: {}\n", "no evaluator"),
    ],
)
def test_a_broken_eval_file_ends_with_two_and_one_clear_line(content, said):
    Path("eval.yml").write_text(content, encoding="utf-8")
    done = run("eval", "eval.yml")
    assert done.exit_code == 2
    assert said in done.output and "Traceback" not in done.output


def test_a_missing_file_ends_with_two():
    done = run("eval", "nowhere.yml")
    assert done.exit_code == 2 and "nowhere.yml" in done.output


def test_list_and_explain_know_every_metric():
    listed = run("list").output
    assert "Faithfulness" in listed and "AnswerAccuracy" in listed
    card = run("explain", "faithfulness").output
    assert "Supported claims / claims" in card
    assert run("explain", "Faithfullness").exit_code == 2


def interrupted(server, seconds, *more):
    eval_file(ACCURACY, rows=alike(60), llms=judge_at(server), max_concurrency=2)
    command = [sys.executable, "-m", "ragparity", "eval", "eval.yml", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    deadline = time.monotonic() + 90
    while server.calls < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(seconds)
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_a_cancelled_run_keeps_what_was_scored_and_ends_with_130(sent):
    with FakeServer(reply="4", latency=0.05) as server:
        code, out, err = interrupted(server, sent)
        assert code == 130, err
        seen = summary()["accuracy"]
        assert 0 < seen["n_scored"] < 60
        assert seen["n_not_run"] == 60 - seen["n_scored"] and seen["n_failed"] == 0
        assert "not run" in out and "--resume" in err
        server.reset(reply="4")
        assert run("eval", "eval.yml", "--resume").exit_code == 0
        assert server.calls == 2 * (60 - seen["n_scored"])
    assert summary()["accuracy"]["n_scored"] == 60


def test_ctrl_c_before_the_run_has_begun_ends_with_130_and_a_word(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ragparity.config.load_eval_file", interrupted)
    found = run("eval", "eval.yml")
    assert found.exit_code == 130
    assert found.stderr == "ragparity: cancelled\n"


def test_a_second_process_is_locked_out_of_the_folder():
    import fcntl

    eval_file({"e": {"metric": "ExactMatch"}})
    Path("out").mkdir()
    with Path("out/.ragparity.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run("eval", "eval.yml")
    assert done.exit_code == 2 and "another run is writing to it" in done.output


def test_an_unwritable_folder_is_one_line():
    eval_file({"e": {"metric": "ExactMatch"}})
    Path("out").write_text("in the way", encoding="utf-8")
    done = run("eval", "eval.yml")
    assert done.exit_code == 2 and "out" in done.output and "Traceback" not in done.output
