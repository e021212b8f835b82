"""Cross-validation with Ragas itself behind two of the backends. Runs where Ragas is installed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.direction import KWARGS, UNDECIDED, good_minus_bad

from ragparity import wiring
from ragparity.cli import main
from ragparity.core.errors import ConfigError

pytest.importorskip("ragas", reason="needs the extra ragas")

ROOT = Path(__file__).resolve().parents[2]
THREE = ["native", "ragas", "ragas_legacy"]


@pytest.fixture(scope="module")
def agreement(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crossvalidate")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        done = CliRunner().invoke(
            main, ["crossvalidate", "configs/crossvalidate.yml", "--output", str(folder), "--quiet"]
        )
    assert done.exit_code == 0, done.output
    return json.loads((folder / "agreement.json").read_text(encoding="utf-8"))["metrics"]


def pairs(agreement, name):
    return {(one["a"], one["b"]): one for one in agreement[name]["pairs"]}


def test_the_demonstration_compares_three_backends_on_every_metric(agreement):
    for name, one in agreement.items():
        assert list(one["backends"]) == THREE and not one["left_out"], name
        assert len(one["pairs"]) == 3 and one["krippendorff_alpha"] if name != "answer_accuracy" else True


def test_recall_of_the_same_rows_is_the_same_number_in_all_three(agreement):
    for one in pairs(agreement, "context_recall").values():
        assert one["relation"] == "same" and one["mae"] == 0.0 and not one["rows"]


def test_the_exchanged_roles_of_the_collections_show_as_a_definition(agreement):
    found = pairs(agreement, "answer_accuracy")
    assert found["native", "ragas_legacy"]["relation"] == "same"
    near = found["native", "ragas"]
    assert near["relation"] == "near" and near["mean_diff"] is None and near["spearman"] > 0.8
    assert {one["cause"] for one in near["rows"]} == {"definition"}


def test_rows_without_a_score_are_counted_on_each_side(agreement):
    one = pairs(agreement, "faithfulness")["native", "ragas"]
    backends = agreement["faithfulness"]["backends"]
    for side in ("a", "b"):
        figures = backends[one[side]]
        assert one[f"n_unscored_{side}"] == figures["n_total"] - figures["n_scored"]


def built(backend):
    found = wiring.backend(backend)
    for name in found.names():
        if name in UNDECIDED:
            continue
        try:
            metric = found.build(name, KWARGS.get(name, {}))
        except ConfigError:
            continue  # it fetches from elsewhere, or needs one more package
        if backend == "ragas" and metric.api == "legacy":
            continue
        yield pytest.param(metric, id=f"{backend}-{name}")


TRIED = {"Faithfulness", "AnswerRelevancy", "ContextPrecision", "ContextRecall", "ContextEntityRecall",
         "NoiseSensitivity", "FactualCorrectness", "AnswerCorrectness", "SemanticSimilarity", "AnswerAccuracy",
         "ContextRelevance", "ResponseGroundedness", "ExactMatch"}  # fmt: skip
"""What the judge without a model can answer, and what asks nobody."""


@pytest.mark.parametrize("metric", [*built("ragas"), *built("ragas_legacy")])
def test_a_good_sample_is_better_than_a_bad_one_in_both_apis(metric):
    gap = good_minus_bad(metric)
    if gap is None:
        assert metric.concept not in TRIED
        return
    assert gap > 0, f"{metric!r}: the bad sample is as good as the good one"
