"""What each kind of row and judge comes to under the toolkit: a failure is never a number."""

import json
from pathlib import Path

import pytest
from tests.fakeserver import FakeServer, Reply, rate_limited, refused, server_error, unauthorized
from tests.nat.nateval import ACCURACY, PORT, SIZE, eval_file, evaluate, items, judge_at, scores

AT_ONCE = {"judge": {"retries": 0}}


def test_scores_stand_beside_counts_and_the_average_is_not_rounded():
    with FakeServer(reply=iter(["4", "4", "2", "2", "2", "0"])) as server:
        rows = [PORT, SIZE, SIZE | {"id": "third", "question": "How long is it?"}]
        eval_file({"accuracy": ACCURACY}, rows=rows, llms=judge_at(server), general={"max_concurrency": 1})
        found = evaluate()["accuracy"]
    given = scores(found)
    assert len(given) == 3 and found["average_score"] == pytest.approx(sum(given.values()) / 3)
    assert found["average_score"] != round(found["average_score"], 2)
    assert (found["n_total"], found["n_scored"], found["coverage"]) == (3, 3, 1.0)
    assert found["calls"] == 6


def test_a_row_without_reference_is_undefined_and_not_in_the_average():
    with FakeServer(reply="4") as server:
        eval_file({"accuracy": ACCURACY}, rows=[PORT, SIZE | {"answer": ""}], llms=judge_at(server))
        found = evaluate()["accuracy"]
        assert server.calls == 2, "nothing is asked about a row that cannot be scored"
    assert scores(found) == {"port": 1.0, "size": None}
    assert items(found)["size"]["error"] == "undefined: missing:reference"
    assert found["average_score"] == 1.0
    assert (found["n_undefined"], found["coverage"]) == (1, 0.5)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (unauthorized(), "auth"),
        (rate_limited(), "rate_limit"),
        (server_error(500), "unavailable"),
        (refused(), "refused"),
        ("it depends", "ambiguous"),
        (Reply(content="", finish_reason="length"), "truncated_reasoning"),
    ],
    ids=["401", "429", "500", "refusal", "malformed", "cut"],
)
def test_a_judge_without_an_answer_leaves_no_score_and_no_average(reply, kind):
    with FakeServer(reply=reply) as server:
        eval_file({"accuracy": ACCURACY | AT_ONCE}, rows=[PORT], llms=judge_at(server))
        found = evaluate()["accuracy"]
    (item,) = found["eval_output_items"]
    assert item["score"] is None
    assert item["error"].split(":")[0] in (kind, "malformed"), item["error"]
    assert found["average_score"] is None
    assert found["n_failed"] == 1


def test_a_judge_that_is_down_fails_its_own_evaluator_only():
    llms = {"judge": {"_type": "openai", "model_name": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "x"}}
    eval_file({"accuracy": ACCURACY | AT_ONCE, "exact": {"metric": "ExactMatch"}}, llms=llms)
    found = evaluate()
    assert {one["error"].split(":")[0] for one in found["accuracy"]["eval_output_items"]} == {"unavailable"}
    assert found["accuracy"]["average_score"] is None
    assert found["exact"]["average_score"] == 0.0 and found["exact"]["n_scored"] == 2


def test_who_needs_a_number_where_nothing_was_scored_can_say_which():
    eval_file({"accuracy": ACCURACY | {"llm_name": "offline", "all_failed_average": 0.0}}, rows=[PORT | {"answer": ""}])
    found = evaluate()["accuracy"]
    assert found["average_score"] == 0.0
    assert scores(found) == {"port": None}
    assert found["n_scored"] == 0


def test_a_wrong_metric_a_wrong_kwarg_and_a_missing_entry_are_the_errors_of_their_items():
    eval_file(
        {
            "typo": {"metric": "Faithfullness", "llm_name": "offline"},
            "kwarg": {"metric": {"NDCG": {"kwargs": {"top": 3}}}},
            "judge": {"metric": "Faithfulness", "llm_name": "nobody"},
            "none": {"metric": "Faithfulness"},
            "backend": {"metric": "Faithfulness", "backend": "ragass", "llm_name": "offline"},
            "exact": {"metric": "ExactMatch"},
        }
    )
    found = evaluate()
    said = {name: {one["error"] for one in output["eval_output_items"]} for name, output in found.items()}
    assert "Did you mean Faithfulness?" in next(iter(said["typo"]))
    assert "unknown kwarg 'top'" in next(iter(said["kwarg"]))
    assert "no entry 'nobody'" in next(iter(said["judge"]))
    assert "set llm_name" in next(iter(said["none"]))
    assert "known are native" in next(iter(said["backend"]))
    assert said["exact"] == {None}
    for name in ("typo", "kwarg", "judge", "none", "backend"):
        assert all(text.startswith("config: ") for text in said[name])
        assert found[name]["average_score"] is None and found[name]["errors"] == {"config": 2}


def test_an_evaluator_that_is_skipped_leaves_nothing_at_all():
    eval_file({"skipped": {"metric": {"ExactMatch": {"skip": True}}}, "exact": {"metric": "ExactMatch"}})
    assert list(evaluate()) == ["exact"]


def test_numbers_objects_and_lists_as_answers_are_scored_as_text():
    rows = [
        {"id": "n", "question": "q", "answer": 4, "generated_answer": 4},
        {"id": "o", "question": "q", "answer": {"port": [7443]}, "generated_answer": {"port": [7443]}},
        {"id": "b", "question": "q", "answer": True, "generated_answer": False},
    ]
    eval_file({"exact": {"metric": "ExactMatch"}}, rows=rows)
    assert scores(evaluate()["exact"]) == {"n": 1.0, "o": 1.0, "b": 0.0}


def test_whole_numbers_stay_whole_where_another_row_has_none():
    rows = [
        {"id": "n", "question": "q", "answer": "4", "generated_answer": 4},
        {"id": "none", "question": "q", "answer": "5"},
    ]
    eval_file({"exact": {"metric": "ExactMatch"}}, rows=rows)
    found = evaluate()["exact"]
    assert scores(found) == {"n": 1.0, "none": None}
    assert items(found)["none"]["error"] == "undefined: missing:response"


def test_ids_are_the_toolkits_own_duplicates_and_numbers_included():
    rows = [PORT | {"id": one} for one in ("007", "8", "8", "1e3")]
    eval_file({"exact": {"metric": "ExactMatch"}}, rows=rows)
    found = evaluate()["exact"]
    # The toolkit reads these ids as numbers and keeps one of two equal rows before any evaluator sees them.
    assert [item["id"] for item in found["eval_output_items"]] == [7, 8, 1000]
    assert found["n_total"] == 3


def test_rows_without_ids_are_told_apart_by_their_place():
    rows = [{key: value for key, value in one.items() if key != "id"} for one in (PORT, SIZE)]
    eval_file({"exact": {"metric": "ExactMatch"}}, rows=rows)
    found = evaluate()["exact"]["eval_output_items"]
    assert [item["id"] for item in found] == ["", ""]
    assert [item["reasoning"]["row"] for item in found] == ["row-1", "row-2"]


def test_the_reasoning_shows_fields_judge_verdicts_and_cost():
    eval_file({"faith": {"metric": "Faithfulness", "llm_name": "offline"}}, rows=[PORT])
    (item,) = evaluate()["faith"]["eval_output_items"]
    said = item["reasoning"]
    assert said["fields"]["retrieved_contexts"] == PORT["contexts"]
    assert said["fields"]["response"] == PORT["generated_answer"]
    assert said["backend"] == "native" and "offline" in said["judge"]
    assert [claim["verdict"] for claim in said["detail"]["claims"]] == [True]
    assert said["calls"] == 2


def test_the_configuration_files_of_the_toolkit_are_all_written():
    eval_file({"ndcg": {"metric": {"NDCG": {"kwargs": {"k": 3}}}, "judge": {"retries": 1}}})
    evaluate()
    assert {path.name for path in Path("out").iterdir()} == {
        "config_effective.yml", "config_original.yml", "config_metadata.json", "ndcg_output.json", "workflow_output.json",
    }  # fmt: skip
    json.loads(Path("out/ndcg_output.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_the_log_warns_of_items_without_a_score(caplog):
    eval_file({"faith": {"metric": "Faithfulness", "llm_name": "offline"}}, rows=[PORT, SIZE | {"contexts": []}])
    evaluate()
    warned = [one.getMessage() for one in caplog.records if one.levelname == "WARNING" and "ragparity" in one.name]
    assert warned == [
        "native/Faithfulness: 1 of 2 items have no score; first: undefined: blank_contexts: retrieved_contexts holds no text"
    ]
