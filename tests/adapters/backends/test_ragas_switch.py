"""One switch in an eval file: the same evaluator natively and through both APIs of Ragas."""

import asyncio
import json

import pytest
import uvloop
from click.testing import CliRunner
from tests.adapters.backends.ragas_world import COLLECTIONS, built, ragas_answers, row

from ragparity import evaluate
from ragparity.cli import main
from ragparity.core.errors import ConfigError
from ragparity.core.policy import score
from ragparity.core.ports import Kit

ROWS = [
    {
        "question": "How long can I return it?",
        "generated_answer": "It can be returned within thirty days.",
        "answer": "Thirty days.",
        "contexts": ["It can be returned within thirty days.", "Shops close at ten."],
    },
    {
        "question": "Who pays?",
        "generated_answer": "Sorry, I don't know.",
        "answer": "The shop.",
        "contexts": ["The shop pays."],
    },
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command on an eval file with these evaluators; gives exit code, output and the run's summary."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")

    def command(evaluators, *arguments, name="eval"):
        general = {"output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}}
        (tmp_path / "eval.yml").write_text(
            json.dumps({"eval": {"general": general, "evaluators": evaluators}}), encoding="utf-8"
        )
        done = CliRunner().invoke(main, [name, "eval.yml", *arguments])
        summary = tmp_path / "out" / "summary.json"
        figures = json.loads(summary.read_text(encoding="utf-8"))["evaluators"] if summary.exists() else {}
        return done.exit_code, done.output, figures

    return command


def evaluator(metric="Faithfulness", **more):
    return {"_type": "ragparity", "metric": metric, "llm_name": "offline", **more}


def test_the_backend_is_all_that_changes(run):
    code, output, figures = run(
        {
            "n": evaluator(), "r": evaluator(backend="ragas"), "l": evaluator(backend="ragas_legacy"),
            "t": {**evaluator(), "_type": "ragas"}, "p": evaluator("ragas_legacy/Faithfulness"),
        },
        "--quiet",
    )  # fmt: skip
    assert code == 0, output
    assert {name: one["backend"] for name, one in figures.items()} == {
        "n": "native", "r": "ragas", "l": "ragas_legacy", "t": "ragas", "p": "ragas_legacy",
    }  # fmt: skip
    kept = ("n_scored", "n_undefined", "n_failed", "undefined", "mean")
    assert len({json.dumps({key: one[key] for key in kept}) for one in figures.values()}) == 1
    assert figures["r"]["undefined"] == {"no_claims": 1}


def test_settings_nested_as_in_the_toolkit_and_flat_mean_the_same(run):
    nested = evaluator({"FactualCorrectness": {"kwargs": {"mode": "precision"}}}, backend="ragas")
    flat = evaluator({"FactualCorrectness": {"mode": "precision"}}, backend="ragas")
    _, output, figures = run({"nested": nested, "flat": flat}, "--quiet")
    assert figures["nested"]["metric"] == figures["flat"]["metric"] == "FactualCorrectness(mode='precision')", output


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (evaluator("Faithfullness", backend="ragas"), "Did you mean Faithfulness?"),
        (evaluator({"FactualCorrectness": {"mode": "precison"}}, backend="ragas"), "'f1', 'precision' or 'recall'"),
        (evaluator("AnswerRelevancy", backend="ragas"), "needs embedder_name"),
        (evaluator("MultiModalFaithfulness", backend="ragas"), "so it is refused"),
        ({"_type": "ragas", "metric": "Faithfulness"}, "set llm_name"),
    ],
)
def test_what_is_wrong_ends_with_two_before_the_data_is_read_and_the_others_run_on_request(run, wrong, said):
    for command in ("check", "eval"):
        code, output, figures = run({"wrong": wrong, "right": evaluator()}, name=command)
        assert code == 2, output
        assert said in output.replace("\n", " ")
        assert figures == {}
    code, output, figures = run({"wrong": wrong, "right": evaluator()}, "--keep-going", "--quiet")
    assert code == 2
    assert list(figures) == ["right"]


def test_no_provider_stands_in_where_an_embedder_is_missing(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="needs embeddings"):
        evaluate(ROWS, metrics=["ragas/AnswerRelevancy"], judge="offline")


def test_a_wrapped_metric_runs_on_any_loop_and_on_several_after_one_another():
    metric = built(COLLECTIONS, "AnswerAccuracy")

    def once(runner):
        return runner(score(metric, row(), Kit(judge=ragas_answers(ratings=(4, 2))))).value

    assert [once(asyncio.run), once(uvloop.run), once(asyncio.run)] == [0.75] * 3


def test_the_list_shows_every_backend_with_range_and_direction():
    done = CliRunner().invoke(main, ["list", "--backend", "ragas"])
    assert done.exit_code == 0
    assert "lower is better" in done.output.replace("\n", " ")
    shown = CliRunner().invoke(main, ["explain", "ragas/nv_accuracy"])
    assert "mean of two ratings" in shown.output.lower()
