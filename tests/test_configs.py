"""Every eval file in `configs/` loads without any key; the offline ones run, with figures worked out by hand."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragparity.cli import main

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "configs").glob("*.yml"))
OFFLINE = "offline lexical judge: for wiring and smoke tests"


@pytest.fixture(autouse=True)
def _without_keys_at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    for name in ("OPENAI_API_KEY", "NVIDIA_API_KEY", "JUDGE_URL", "JUDGE_MODEL", "JUDGE_KEY", "EMBEDDING_MODEL"):
        monkeypatch.delenv(name, raising=False)


def ragparity(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """The folder, the exit code and the output of one run of the demonstration."""
    folder = tmp_path_factory.mktemp("quickstart")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        done = ragparity("eval", "configs/quickstart.yml", "--output", str(folder), "--slice", "topic")
    return folder, done


def results(folder):
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {(line["evaluator"], line["id"]): line for line in map(json.loads, lines)}


def summary(folder):
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def test_there_is_a_file_for_every_kind_of_judge():
    assert {path.stem for path in FILES} >= {
        "quickstart", "openai", "nim", "local_server", "langchain_class", "toolkit_file",
    }  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_ready_to_run_as_it_is_and_begins_with_what_it_is_for(path):
    assert path.read_text(encoding="utf-8").startswith("# ")
    done = ragparity("check", str(path.relative_to(ROOT)))
    assert done.exit_code == 0, done.output
    assert "ready to run" in done.output


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_file_holds_a_key(path):
    for key in re.findall(r"api_key:\s*(\S+)", path.read_text(encoding="utf-8")):
        assert re.fullmatch(r"\$\{\w+(:-[\w-]*)?\}", key), key


# -- the demonstration


def test_the_demonstration_passes_its_gate_and_is_open_about_its_judge(quickstart):
    folder, done = quickstart
    assert done.exit_code == 0, done.output
    assert all(check["passed"] for check in summary(folder)["gate"]) and len(summary(folder)["gate"]) == 4
    assert f"judge: {OFFLINE}" in done.output and "not how good answers are" in done.output
    assert {line["judge"] for line in results(folder).values() if line["calls"]} == {
        OFFLINE,
        f"{OFFLINE} + offline hashing embedder",
    }


def test_every_row_meets_every_evaluator(quickstart):
    folder, _ = quickstart
    rows = [
        json.loads(line)["id"] for line in (ROOT / "configs/data/demo.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(rows) == len(set(rows)) >= 24
    evaluators = summary(folder)["evaluators"]
    assert set(results(folder)) == {(name, row) for name in evaluators for row in rows}


# Worked out by hand from the rows:
# - shop-returns: 2 of 3 claims are in the contexts; passages 2 and 4 of 4 are useful, (1/2 + 2/4) / 2; two wanted ids
#   at ranks 2 and 4 of 4 retrieved: precision 2/4, recall 2/2.
# - pump-grease: useful by its words is passage 1 (bearings, 500 hours), and passage 3 too; (1/1 + 2/3) / 2 = 5/6; the wanted id
#   is one of three retrieved.
# - pump-seal: one of the two wanted ids was retrieved; so was one of the two wanted passages.
# - ferry-bicycle: only passage 3 of 3 is useful: precision at 3 = 1/3; the wanted id is third: 1/log2(4) = 1/2.
# - tram-night: the claim says more than the passage; answer and reference differ in their numbers.
WORKED = [
    ("faithfulness", "shop-returns", 2 / 3),
    ("context_precision", "shop-returns", 0.5),
    ("context_recall", "shop-returns", 1.0),
    ("id_precision", "shop-returns", 0.5),
    ("id_recall", "shop-returns", 1.0),
    ("faithfulness", "shop-vouchers", 1.0),
    ("exact_match", "shop-vouchers", 1.0),  # "No, vouchers …" and "No. Vouchers …" without case and punctuation
    ("faithfulness", "shop-warranty", 0.0),  # 36 months against 24
    ("answer_accuracy", "shop-warranty", 0.0),
    ("context_precision", "pump-grease", 5 / 6),
    ("id_precision", "pump-grease", 1 / 3),
    ("id_recall", "pump-seal", 0.5),
    ("passage_recall", "pump-seal", 0.5),
    ("faithfulness", "conveyor-torque", 0.0),
    ("context_precision", "ferry-bicycle", 1 / 3),
    ("ndcg_at_3", "ferry-bicycle", 0.5),
    ("faithfulness", "docs-timeout", 0.5),  # the second of two claims is made up
    ("faithfulness", "tram-night", 0.0),
    ("answer_accuracy", "bread-proof", 0.0),  # off the topic
    ("faithfulness", "bread-proof", 1.0),  # and yet from the contexts: the two metrics see different things
    ("faithfulness", "kaffeemaschine-entkalken", 0.5),
    ("faithfulness", "図書館-貸出期間", 1.0),
    ("exact_match", "図書館-貸出期間", 1.0),
]


@pytest.mark.parametrize(
    ("evaluator", "row", "score"), WORKED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_scores_that_can_be_worked_out_by_hand_are_these(quickstart, evaluator, row, score):
    line = results(quickstart[0])[evaluator, row]
    assert line["score"] == pytest.approx(score, abs=1e-12), line


# Each way to have no score.
UNSCORED = [
    ("faithfulness", "compressor-oil", "no_claims"),  # a refusal
    ("faithfulness", "custard-heat", "no_claims"),  # evasive
    ("faithfulness", "docs-greeting", "no_claims"),
    ("faithfulness", "valve-blank", "blank_contexts"),
    ("context_recall", "stock-nothing-found", "blank_contexts"),
    ("id_precision", "stock-nothing-found", "no_retrieved_ids"),
    ("answer_accuracy", "leaflet-no-reference", "missing:reference"),
    ("answer_accuracy", "museum-no-answer", "missing:response"),
    ("id_recall", "leaflet-no-reference", "missing:reference_context_ids"),
]


@pytest.mark.parametrize(("evaluator", "row", "why"), UNSCORED)
def test_each_way_to_be_undefined_is_there_and_has_no_number(quickstart, evaluator, row, why):
    line = results(quickstart[0])[evaluator, row]
    assert (line["status"], line["why"], line["score"]) == ("undefined", why, None)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("shop-two-answers", "'generated_answer' and 'response' hold different values"),
        ("docs-unknown-shape", "similarity"),
    ],
)
def test_rows_that_cannot_be_read_fail_alone_and_say_why(quickstart, row, said):
    lines = [line for (_, id_), line in results(quickstart[0]).items() if id_ == row]
    assert {line["error"]["kind"] for line in lines} == {"input"}
    assert said in lines[0]["error"]["message"]


def test_the_means_are_those_of_the_scored_rows(quickstart):
    folder, _ = quickstart
    by_name = {}
    for (name, _row), line in results(folder).items():
        if line["status"] == "scored":
            by_name.setdefault(name, []).append(line["score"])
    for name, figures in summary(folder)["evaluators"].items():
        assert figures["mean"] == pytest.approx(sum(by_name[name]) / len(by_name[name]), abs=1e-12)
        assert figures["n_scored"] == len(by_name[name]) and figures["n_failed"] == 2


def test_refusals_are_counted_apart_from_claims(quickstart):
    assert summary(quickstart[0])["evaluators"]["faithfulness"]["n_refusals"] == 2  # the oil and the custard


def test_reasons_keep_every_claim_with_its_verdict_and_its_passage(quickstart):
    line = results(quickstart[0])["faithfulness", "shop-returns"]
    claims = line["detail"]["claims"]
    assert [(one["verdict"], one.get("passage")) for one in claims] == [(True, 1), (True, 3), (False, None)]
    assert "five working days" in claims[2]["claim"]
    assert line["reason"] == "2 of 3 claims are supported by the contexts"


def test_a_wrong_answer_and_a_good_one_are_told_apart(quickstart):
    slices = summary(quickstart[0])["slices"]["topic"]
    assert list(slices) == [
        "shop",
        "(unreadable row)",
        "maintenance",
        "cooking",
        "medicine",
        "software",
        "travel",
        "german",
        "japanese",
    ]
    good, bad = ("rice-water", "leaflet-storage", "pump-grease"), ("shop-warranty", "conveyor-torque", "tram-night")
    found = results(quickstart[0])
    for name in ("faithfulness", "answer_accuracy", "response_groundedness"):
        assert min(found[name, row]["score"] for row in good) > max(found[name, row]["score"] for row in bad)


def test_the_toolkits_file_runs_and_says_what_it_leaves_to_the_toolkit(tmp_path):
    done = ragparity("eval", "configs/toolkit_file.yml", "--output", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "eval.evaluators.trajectory_accuracy: an evaluator of the toolkit" in done.output
    evaluators = summary(tmp_path / "out")["evaluators"]
    assert set(evaluators) == {"rag_accuracy", "rag_groundedness", "rag_relevance"}
    assert {one["n_total"] for one in evaluators.values()} == {23}, (
        "the filter leaves out the German and the Japanese row"
    )
    assert {one["backend"] for one in evaluators.values()} == {"native"}


def test_the_rows_are_written_in_their_own_scripts():
    text = (ROOT / "configs/data/demo.jsonl").read_text(encoding="utf-8")
    assert "\\u" not in text
    assert "図書館" in text and "Zitronensäure" in text
