"""Scores against people's labels: what is compared, what is left out and counted, and what people would have said."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.toys import Toy, install

from ragparity.calibration import People, calibrate, read_labels
from ragparity.cli import main
from ragparity.core.errors import ConfigError, JudgeUnavailable


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# -- reading labels


@pytest.mark.parametrize(
    ("values", "shares"),
    [
        ([1, 0, 1], [1, 0, 1]),
        ([True, False, None], [1, 0]),
        (["true", "No", " PASS "], [1, 0, 1]),
        (["1", "0.5", ""], [1, 0.5]),
        ([1, 3, 5], [0, 0.5, 1]),
        ([2, 4, 4], [0.25, 0.75, 0.75]),
        ([0, 2, 5], [0, 0.4, 1]),
        ([0, 5, 10], [0, 0.5, 1]),
        ([20, 100, 50], [0.2, 1, 0.5]),
        ([float("nan"), 1, 0], [1, 0]),
    ],
    ids=str,
)
def test_labels_become_shares_of_their_scale_and_what_is_missing_has_none(values, shares):
    found = read_labels("human", {str(at): value for at, value in enumerate(values)})
    assert list(found.shares.values()) == pytest.approx(shares)
    assert found.n_missing == len(values) - len(shares)


def test_a_scale_that_does_not_show_is_set_and_labels_off_it_are_no_labels():
    found = read_labels("stars", {"a": 1, "b": 3, "c": 9}, (1, 3))
    assert found.shares == {"a": 0, "b": 1}
    assert found.notes == ["no labels from 1 to 3: 1 values, first in row c: '9'"]


def test_words_on_a_set_scale_are_its_ends():
    assert read_labels("human", {"a": "pass", "b": "3"}, (1, 5)).shares == {"a": 1, "b": 0.5}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([None, ""], "no row has such a column"),
        (["maybe", "perhaps"], "no value is a label; row 0 has 'maybe'"),
        ([-3, 7], "values from -3 to 7 are on no scale"),
        ([0.5, 3.5], "say which: --label-scale LO,HI"),
    ],
    ids=str,
)
def test_what_cannot_be_labels_is_one_clear_line(values, said):
    with pytest.raises(ConfigError) as caught:
        read_labels("human", {str(at): value for at, value in enumerate(values)})
    assert said in str(caught.value) and "\n" not in str(caught.value)


def people(*columns):
    return People(
        annotators=[
            read_labels(f"human{at}", {str(row): one for row, one in enumerate(column)})
            for at, column in enumerate(columns)
        ]
    )


def scores(*values):
    return {str(row): value for row, value in enumerate(values)}


# -- one judge against people


def test_the_figures_of_a_judge_are_those_of_the_table_of_four():
    # Passed rightly 3, passed wrongly 1, failed wrongly 1, failed rightly 3: sensitivity and specificity 3/4.
    found = calibrate("x", scores(1, 1, 1, 0, 1, 0, 0, 0), people([1, 1, 1, 1, 0, 0, 0, 0]), threshold=0.5)
    assert found.counts == {
        "true_pass": 3, "false_pass": 1, "false_fail": 1, "true_fail": 3, "sensitivity": 0.75, "specificity": 0.75,
    }  # fmt: skip
    assert found.estimates["balanced_accuracy"].value == pytest.approx(0.75)
    assert found.estimates["raw_agreement"].value == pytest.approx(0.75)
    assert found.estimates["kappa"].value == pytest.approx(0.5)  # (.75 − .5)/(1 − .5)
    assert found.estimates["auroc"].value == pytest.approx(0.75)
    assert found.estimates["mean_diff"].value == pytest.approx(0.0)


def test_a_judge_that_failed_on_a_row_does_not_disagree_with_people_about_it():
    full = calibrate("x", scores(1, 1, 0, 0), people([1, 1, 0, 0]), threshold=0.5)
    gaps = calibrate("x", scores(1, 1, 0, 0, None, None, None), people([1, 1, 0, 0, 1, 0, 1]), threshold=0.5)
    assert gaps.n == full.n == 4 and gaps.n_unscored == 3
    assert gaps.estimates["kappa"].value == full.estimates["kappa"].value == 1.0
    assert "left out: 3 labelled rows that have no score" in gaps.notes


def test_rows_without_a_label_take_no_part_but_in_what_people_would_have_said():
    # On the labelled rows sensitivity 1 and specificity 1/2; of the ten others 8 pass: (.8 + .5 − 1)/(1 + .5 − 1) = .6
    judged = [1, 1, 1, 1, 1, 1, 0, 0] + [1] * 8 + [0] * 2
    found = calibrate("x", scores(*judged), people([1, 1, 1, 1, 0, 0, 0, 0]), threshold=0.5)
    assert (found.n, found.n_unlabelled) == (8, 10)
    corrected = found.estimates["corrected_pass_rate"]
    assert corrected.value == pytest.approx(0.6) and corrected.low < 0.6 < corrected.high
    mean = found.estimates["corrected_mean"]
    assert mean.value is not None and mean.low < mean.value < mean.high
    assert found.estimates["judge_pass_rate"].value == pytest.approx(14 / 18)
    assert found.estimates["human_pass_rate"].value == pytest.approx(0.5)


def test_where_all_rows_have_labels_nothing_is_estimated_for_others():
    found = calibrate("x", scores(1, 1, 0, 0), people([1, 1, 0, 0]))
    assert found.estimates["corrected_pass_rate"].value is None
    assert "no judged rows without a label" in found.estimates["corrected_pass_rate"].why
    assert any("every scored row has a label" in note for note in found.notes)


def test_a_score_of_which_less_is_better_goes_with_good_labels_when_it_is_low():
    found = calibrate("x", scores(0, 0.1, 0.9, 1), people([1, 1, 0, 0]), higher_is_better=False)
    assert found.estimates["spearman"].value > 0.8 and found.estimates["auroc"].value == 1.0
    assert found.counts["true_pass"] == 2 and found.counts["true_fail"] == 2


def test_without_a_threshold_the_middle_of_the_range_is_taken_and_said():
    found = calibrate("x", scores(1, 2, 4, 5), people([0, 0, 1, 1]), bounds=(1, 5))
    assert found.threshold == 3 and found.counts["true_pass"] == 2
    assert "no threshold is set: scores pass from the middle on, 3" in found.notes


def test_fewer_than_three_pairs_give_counts_and_a_reason():
    found = calibrate("x", scores(1, None, 0), people([1, 0, None])).as_json()
    assert found["n"] == 1 and found["kappa"] is None and found["confusion"] == {}
    assert found["why"]["kappa"] == "undefined: 1 rows with a score and a label, fewer than 3"


def test_labels_of_one_kind_have_no_accuracy_to_balance():
    found = calibrate("x", scores(1, 1, 0), people([1, 1, 1]), threshold=0.5)
    assert found.estimates["balanced_accuracy"].value is None and found.estimates["balanced_accuracy"].why


def test_under_thirty_pairs_is_no_more_than_a_first_look():
    assert (
        "4 pairs, fewer than 30: no more than a first look"
        in calibrate("x", scores(1, 1, 0, 0), people([1, 1, 0, 0])).notes
    )
    long = calibrate("x", scores(*[1, 0] * 15), people([1, 0] * 15))
    assert not any("first look" in note for note in long.notes)


def test_several_annotators_count_by_their_mean_and_set_the_ceiling():
    found = people([1, 1, 0, 0], [1, 0, 0, None])
    assert found.shares == {"0": 1, "1": 0.5, "2": 0, "3": 0}
    ceiling = found.ceiling()
    (pair,) = ceiling["pairs"]
    assert (pair["a"], pair["b"], pair["n"]) == ("human0", "human1", 3)
    assert pair["raw_agreement"]["value"] == pytest.approx(2 / 3)
    assert ceiling["krippendorff_alpha"]["value"] is not None
    assert people([1, 0, 1]).ceiling() is None


# -- the commands

HUMAN = {"a": 1, "b": 0, "c": 1, "d": 0, "e": 1, "f": None}
GOOD = {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0, "e": JudgeUnavailable("no connection"), "f": 1.0}
POOR = {"a": 0.0, "b": 1.0, "c": 1.0, "d": 0.0, "e": 1.0, "f": 0.0}


def write(evaluators, labels=HUMAN, **columns):
    lines = []
    for row in GOOD:
        line = {"id": row, "question": f"Question {row}?", "generated_answer": "An answer.", "human": labels[row]}
        lines.append(json.dumps(line | {name: values[row] for name, values in columns.items()}))
    Path("rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    dataset = {"_type": "jsonl", "file_path": "rows.jsonl"}
    content = {"eval": {"general": {"output_dir": "out", "dataset": dataset}, "evaluators": evaluators}}
    Path("eval.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


def ragparity(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


ENTRY = {"faith": {"_type": "ragparity_crossvalidate", "metric": "Faithfulness", "backends": ["good", "poor"]}}


def test_every_backend_is_compared_with_people(monkeypatch):
    install(monkeypatch, Toy("good", GOOD), Toy("poor", POOR))
    write(ENTRY)
    done = ragparity("crossvalidate", "eval.yml", "--quiet", "--labels", "human")
    assert done.exit_code == 0, done.output
    found = json.loads(Path("out/agreement.json").read_text(encoding="utf-8"))["metrics"]["faith"]["people"]
    assert found["annotators"][0] == {
        "column": "human", "scale": [0.0, 1.0], "n_labelled": 5, "n_missing": 1, "n_unreadable": 0, "notes": [],
    }  # fmt: skip
    good, poor = found["backends"]["good"], found["backends"]["poor"]
    assert (good["n"], good["n_unscored"], good["n_unlabelled"]) == (4, 1, 1) and good["kappa"] == 1.0
    assert poor["n"] == 5 and poor["kappa"] < good["kappa"]
    assert "against people (human)" in done.stdout and "labels human: 1 rows have none" in done.output


def test_labels_that_are_none_are_one_line_and_the_backends_are_still_compared(monkeypatch):
    install(monkeypatch, Toy("good", GOOD), Toy("poor", POOR))
    write(ENTRY, labels=dict.fromkeys(GOOD, "maybe"))
    done = ragparity("crossvalidate", "eval.yml", "--quiet", "--labels", "human")
    assert done.exit_code == 0
    assert "labels human: no value is a label; row a has 'maybe'" in done.output
    found = json.loads(Path("out/agreement.json").read_text(encoding="utf-8"))["metrics"]["faith"]
    assert "people" not in found and found["pairs"][0]["n"] == 5


def test_labels_may_stand_alone_where_one_backend_is_left(monkeypatch):
    install(monkeypatch, Toy("good", GOOD))
    entry = {"faith": {**ENTRY["faith"], "backends": ["good", "absent"]}}
    write(entry)
    done = ragparity("crossvalidate", "eval.yml", "--quiet", "--labels", "human")
    assert done.exit_code == 0 and "absent is left out" in done.stderr


def finished_run(monkeypatch, **more):
    install(monkeypatch, Toy("good", GOOD), Toy("poor", POOR))
    write(
        {
            "good": {"_type": "ragparity", "metric": "Faithfulness", "backend": "good", "threshold": 0.9},
            "poor": {"_type": "ragparity", "metric": "Faithfulness", "backend": "poor"},
        },
        **more,
    )
    assert ragparity("eval", "eval.yml", "--quiet").exit_code == 0


def test_a_finished_run_is_calibrated_from_its_files(monkeypatch):
    finished_run(monkeypatch)
    Path("rows.jsonl").unlink()
    done = ragparity("calibrate", "out", "--labels", "human")
    assert done.exit_code == 0, done.output
    found = json.loads(Path("out/calibration.json").read_text(encoding="utf-8"))
    assert found["evaluators"]["good"]["n"] == 4 and found["evaluators"]["good"]["n_unscored"] == 1
    assert found["evaluators"]["good"]["threshold"] == 0.9, "that of the eval file"
    assert found["evaluators"]["poor"]["threshold"] == 0.5
    assert "good, from 0.9 on: 2 passed and 2 failed by both" in done.stdout


def test_resamples_without_a_value_stay_out_of_the_table_where_the_figure_has_one(monkeypatch):
    # Of 2000 resamples of five good and five bad rows, about four (2 / 2 ** 10 of them) hold one kind alone.
    labels = {str(row): row % 2 for row in range(10)}
    monkeypatch.setitem(globals(), "GOOD", {row: float(label) for row, label in labels.items()} | {"0": 1.0})
    install(monkeypatch, Toy("good", GOOD))
    write({"good": {"_type": "ragparity", "metric": "Faithfulness", "backend": "good"}}, labels)
    ragparity("eval", "eval.yml", "--quiet")
    done = ragparity("calibrate", "out", "--labels", "human")
    figures = json.loads(Path("out/calibration.json").read_text(encoding="utf-8"))["evaluators"]["good"]
    assert figures["auroc"] == 0.9  # of 25 pairs of a good and a bad row, 20 are in order and 5 tie
    assert figures["why"]["auroc"].endswith("of 2000 resamples, left out of the interval")
    assert "resamples" not in done.stdout


def test_a_log_that_lost_rows_is_said_to_be_damaged(monkeypatch):
    finished_run(monkeypatch)
    log = Path("out/results.jsonl")
    kept = [line for line in log.read_bytes().splitlines(keepends=True) if json.loads(line)["evaluator"] == "good"]
    log.write_bytes(b"".join(kept))
    done = ragparity("calibrate", "out", "--labels", "human")
    assert "poor: results.jsonl holds 0 of the 6 rows that summary.json counts; it is damaged" in done.stdout
    assert "good: results.jsonl" not in done.stdout


def test_the_threshold_of_the_command_goes_over_that_of_the_file(monkeypatch):
    finished_run(monkeypatch)
    done = ragparity("calibrate", "out", "--labels", "human", "--threshold", "good=0.25", "--json")
    assert json.loads(done.stdout)["evaluators"]["good"]["threshold"] == 0.25
    wrong = ragparity("calibrate", "out", "--labels", "human", "--threshold", "god=0.25")
    assert wrong.exit_code == 2 and "Did you mean good?" in wrong.stderr


def test_labels_may_stand_inside_an_object(monkeypatch):
    finished_run(monkeypatch, people={row: {"first": value} for row, value in HUMAN.items()})
    done = ragparity("calibrate", "out", "--labels", "people.first", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["evaluators"]["good"]["n"] == 4
    assert ragparity("calibrate", "out", "--labels", "people.second").exit_code == 2
    ragparity("crossvalidate", "eval.yml", "--backends", "good,poor", "--quiet", "--labels", "people.first")
    found = json.loads(Path("out/agreement.json").read_text(encoding="utf-8"))["metrics"]["good"]["people"]
    assert found["backends"]["good"]["n"] == 4


def test_two_annotators_show_how_far_people_agree(monkeypatch):
    finished_run(monkeypatch, second={**HUMAN, "a": 0, "f": 1})
    done = ragparity("calibrate", "out", "--labels", "human", "--labels", "second")
    assert done.exit_code == 0
    assert "people: human – second, 5 rows: κ" in done.stdout


def test_stars_are_read_as_stars_and_said(monkeypatch):
    finished_run(monkeypatch, labels={"a": 5, "b": 1, "c": 4, "d": 2, "e": 3, "f": None})
    done = ragparity("calibrate", "out", "--labels", "human")
    assert done.exit_code == 0 and "read as a scale of 1 to 5" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["out"], "--labels FIELD: missing"),
        (["out", "--labels", "nothing"], "labels nothing: no row has such a column"),
        (["elsewhere", "--labels", "human"], "elsewhere: no finished run"),
        (["out", "--labels", "human", "--label-scale", "5"], "expected the lowest and the highest label"),
        (["out", "--labels", "human", "--threshold", "good"], "expected NAME=NUMBER"),
    ],
    ids=str,
)
def test_what_cannot_be_calibrated_ends_with_2_and_one_line(monkeypatch, arguments, said):
    finished_run(monkeypatch)
    done = ragparity("calibrate", *arguments)
    assert done.exit_code == 2 and said in done.stderr


def test_too_few_pairs_end_with_1_and_the_reason(monkeypatch):
    finished_run(monkeypatch, labels={**dict.fromkeys(GOOD), "a": 1, "b": 0})
    done = ragparity("calibrate", "out", "--labels", "human")
    assert done.exit_code == 1 and "2 rows with a score and a label, fewer than 3" in done.stdout


def test_a_run_without_its_rows_says_how_to_keep_them(monkeypatch):
    finished_run(monkeypatch)
    Path("out/samples.jsonl").unlink()
    done = ragparity("calibrate", "out", "--labels", "human")
    assert done.exit_code == 2 and "save.samples: true" in done.stderr
