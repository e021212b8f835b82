"""The same rows through several backends: how far they agree, and where and why they do not."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.fakeserver import FakeServer
from tests.toys import SHARE, STRANGE, WHOLE, Toy, claims, install

from ragparity import acrossvalidate, crossvalidate
from ragparity.agreement import Estimate
from ragparity.cli import main
from ragparity.core.errors import ConfigError, MalformedVerdict, UnknownBackend
from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.disagreements import aligned, explained, overlap
from ragparity.results import Record


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(entries, rows, **general):
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    llms = general.pop("llms", {})
    content = {
        "llms": llms,
        "eval": {
            "general": {"output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}, **general},
            "evaluators": entries,
        },
    }
    Path("eval.yml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def rows_of(scores, **columns):
    return [
        {"id": row, "question": f"Question {row}?", "generated_answer": "An answer.", "answer": "An answer."}
        | {name: values[row] for name, values in columns.items() if row in values}
        for row in scores
    ]


def entry(*backends, **more):
    return {"faith": {"_type": "ragparity_crossvalidate", "metric": "Faithfulness", "backends": list(backends), **more}}


def run(*arguments):
    return CliRunner().invoke(main, ["crossvalidate", "eval.yml", "--quiet", *arguments], catch_exceptions=False)


def agreement():
    return json.loads(Path("out/agreement.json").read_text(encoding="utf-8"))["metrics"]


def only_pair(name="faith"):
    (found,) = agreement()[name]["pairs"]
    return found


LEFT = {"a": 1.0, "b": 0.5, "c": 0.0, "d": 1.0, "e": Undefined("no_claims"), "f": 0.75}
RIGHT = {"a": 1.0, "b": 0.0, "c": 0.05, "d": 0.75, "e": 1.0, "f": MalformedVerdict("no verdicts in it")}


def test_pairs_are_joined_by_id_and_what_has_no_score_is_counted_not_compared_as_0(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "right"), rows_of(LEFT))
    done = run()
    assert done.exit_code == 0, done.output
    found = only_pair()
    assert (found["a"], found["b"], found["relation"]) == ("left", "right", "same")
    assert (found["n"], found["n_unscored_a"], found["n_unscored_b"]) == (4, 1, 1)
    # a 0, b +.5, c −.05, d +.25 over four pairs
    assert found["mean_diff"] == pytest.approx(0.7 / 4) and found["mae"] == pytest.approx(0.8 / 4)
    assert found["limits_of_agreement"] is not None and found["ccc"] is not None
    assert "share of the response's claims" in found["because"]


def test_rows_beyond_tolerance_come_largest_first_then_those_that_one_side_did_not_score(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "right"), rows_of(LEFT))
    run()
    found = only_pair()
    assert [(one["id"], one["difference"], one["cause"]) for one in found["rows"]] == [
        ("b", 0.5, "judgement"), ("d", 0.25, "judgement"), ("e", None, "unscored"), ("f", None, "parsing"),
    ]  # fmt: skip
    assert found["n_beyond"] == 2
    assert found["causes"] == {"judgement": 2, "unscored": 1, "parsing": 1}
    assert found["rows"][0]["a"]["reason"] == "left says 0.5"
    assert found["rows"][3]["b"]["error"] == "malformed" and found["rows"][3]["b"]["score"] is None


def test_the_tolerance_is_the_users_and_reaching_it_is_within(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "right"), rows_of(LEFT))
    run("--tolerance", "0.25")
    assert only_pair()["n_beyond"] == 1


def test_the_table_fits_into_100_columns_and_names_the_cause_and_the_claim(monkeypatch):
    left = {"a": claims("yy"), "b": claims("yn"), "c": claims("ny")}
    right = {"a": claims("yn"), "b": claims("yn"), "c": claims("ny")}
    install(monkeypatch, Toy("left", left), Toy("right", right))
    write(entry("left", "right"), rows_of(left))
    monkeypatch.setenv("COLUMNS", "100")
    done = run()
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "row a: left 1.00, right 0.50 (+0.50): judgement: 1 of 2 common pieces have different" in done.stdout
    assert "“Claim number 1 holds.”: left yes, right no" in done.stdout


def test_a_backend_that_is_not_installed_is_one_line_and_the_rest_is_compared(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "absent", "right"), rows_of(LEFT))
    done = run()
    assert done.exit_code == 0
    line = "absent is left out: Absent is not installed: pip install absent"
    assert done.stderr.count(line) == done.stdout.count(line) == 1
    assert agreement()["faith"]["left_out"] == {"absent": "Absent is not installed: pip install absent"}
    assert only_pair()["n"] == 4


def test_a_metric_that_a_backend_lacks_leaves_it_out_of_that_entry_alone(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    exact = {"_type": "ragparity_crossvalidate", "metric": "ExactMatch", "backends": ["native", "left"]}
    write(entry("left", "right") | {"exact": exact}, rows_of(LEFT))
    done = run()
    assert done.exit_code == 2, "an entry could not be compared"
    assert "eval.evaluators.exact: nothing to compare: only native can be used; metric 'ExactMatch'" in done.stderr
    assert list(agreement()) == ["faith"]


def test_with_one_backend_left_nothing_is_asked(monkeypatch):
    left = Toy("left", LEFT)
    install(monkeypatch, left)
    write(entry("left", "absent"), rows_of(LEFT))
    done = run()
    assert done.exit_code == 2 and not left.asked and not Path("out").exists()


def test_an_unknown_backend_is_refused_with_a_hint(monkeypatch):
    install(monkeypatch, Toy("left", LEFT))
    write(entry("left", "nativ"), rows_of(LEFT))
    done = run()
    assert done.exit_code == 2 and "Did you mean native?" in done.stderr


def test_near_definitions_get_ranks_and_bins_but_no_bias(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT, declared=WHOLE))
    write(entry("left", "right"), rows_of(LEFT))
    run()
    found = only_pair()
    assert found["relation"] == "near" and "groundedness" in found["because"]
    assert found["mean_diff"] is None and found["limits_of_agreement"] is None and found["ccc"] is None
    assert found["spearman"] is not None and found["kappa_quadratic"] is not None
    assert {one["cause"] for one in found["rows"] if one["difference"]} == {"definition"}


def test_what_only_shares_a_name_is_refused_before_anything_is_asked(monkeypatch):
    stranger = Toy("stranger", RIGHT, declared=STRANGE)
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT), stranger)
    write(entry("left", "right", "stranger"), rows_of(LEFT))
    done = run()
    assert done.exit_code == 0 and not stranger.asked
    assert "stranger is left out: they only share a name: left/Faithfulness is the share of" in done.stderr
    assert run("--force").exit_code == 0 and stranger.asked
    forced = agreement()["faith"]["pairs"][1]
    assert forced["relation"] == "name" and forced["spearman"] is not None and forced["mean_diff"] is None


def test_a_metric_that_nobody_has_described_is_a_stranger(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT, declared=None))
    write(entry("left", "right"), rows_of(LEFT))
    done = run()
    assert done.exit_code == 2 and "nothing says what right/Faithfulness measures" in done.stderr


def test_two_strangers_with_force_are_compared_by_ranks(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT, declared=STRANGE))
    write(entry("left", "right"), rows_of(LEFT))
    assert run("--force").exit_code == 0
    assert only_pair()["relation"] == "name" and only_pair()["kendall"] is not None


def test_a_score_that_counts_the_other_way_round_is_mirrored(monkeypatch):
    wrong = {"a": 0.0, "b": 0.5, "c": 1.0, "d": 0.0}
    other = type(SHARE)(
        estimand="share of wrong claims", construct=SHARE.construct, unit="claim", higher_is_better=False
    )
    install(monkeypatch, Toy("left", LEFT), Toy("right", wrong, declared=other))
    write(entry("left", "right"), rows_of(wrong))
    run()
    found = only_pair()
    assert found["spearman"] == pytest.approx(1.0) and not found["rows"]
    assert any("mirrored" in note for note in found["notes"])


def test_scores_of_other_ranges_are_compared_as_shares_and_a_threshold_of_one_range_is_not_used(monkeypatch):
    stars = {"a": 5, "b": 3, "c": 1, "d": 2, "f": 4}
    install(monkeypatch, Toy("left", LEFT), Toy("stars", stars, declared=WHOLE, bounds=(1.0, 5.0)))
    write(entry("left", "stars", threshold=0.5), rows_of(stars))
    run()
    found = only_pair()
    assert [(one["id"], one["difference"]) for one in found["rows"]] == [("d", 0.75)]  # 1 against (2 − 1)/4
    assert found["threshold"] is None and any("shares of each range" in note for note in found["notes"])


def test_three_backends_get_krippendorffs_alpha(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT), Toy("third", dict(LEFT, e=1.0)))
    write(entry("left", "right", "third"), rows_of(LEFT))
    run()
    found = agreement()["faith"]
    assert len(found["pairs"]) == 3
    assert found["krippendorff_alpha"]["value"] is not None and found["krippendorff_alpha"]["low"] is not None
    assert found["krippendorff_alpha"]["note"] == "interval, over left, right, third"


def test_fewer_than_three_pairs_are_said_and_the_counts_are_still_there(monkeypatch):
    two = {"a": 1.0, "b": 0.5}
    install(monkeypatch, Toy("left", two), Toy("right", two))
    write(entry("left", "right"), rows_of(two))
    done = run()
    assert done.exit_code == 0
    assert only_pair()["n"] == 2 and only_pair()["mean_diff"] is None
    assert "fewer than 3" in done.stdout


def test_a_backend_without_a_scored_row_ends_with_1_and_the_others_are_reported(monkeypatch):
    failing = {row: MalformedVerdict("not readable") for row in LEFT}
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT), Toy("down", failing))
    write(entry("left", "right", "down"), rows_of(LEFT))
    done = run()
    assert done.exit_code == 1 and "faith@down: no row was scored" in done.stderr
    assert agreement()["faith"]["pairs"][0]["n"] == 4


def test_ordinary_entries_are_compared_on_the_backends_of_the_command(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write({"faith": {"_type": "ragparity", "metric": "left/Faithfulness"}}, rows_of(LEFT))
    assert run("--backends", "left,right").exit_code == 0
    assert only_pair()["n"] == 4
    alone = run("--overwrite")
    assert alone.exit_code == 2 and "--backends native,ragas" in alone.stderr


def test_one_folder_holds_all_backends_and_the_manifest_says_which(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "right", threshold=0.5), rows_of(LEFT))
    run()
    lines = [json.loads(line) for line in Path("out/results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["evaluator"] for one in lines} == {"faith@left", "faith@right"} and len(lines) == 12
    written = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))["config"]["eval"]["evaluators"]
    assert written["faith@right"]["backend"] == "right" and written["faith@right"]["metric"] == "Faithfulness"
    assert only_pair()["kappa"] is not None and only_pair()["threshold"] == 0.5


def test_a_resumed_comparison_asks_only_for_what_is_missing(monkeypatch):
    left, right = Toy("left", LEFT), Toy("right", RIGHT)
    install(monkeypatch, left, right)
    write(entry("left", "right"), rows_of(LEFT))
    run()
    before = only_pair()
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    Path("out/manifest.json").write_text(json.dumps({**manifest, "finished": None}), encoding="utf-8")
    left.asked.clear()
    right.asked.clear()
    assert run("--resume").exit_code == 0
    assert left.asked == [] and right.asked == ["f"], "only the failed row is asked again"
    assert only_pair() == before


def test_an_agreement_goes_when_another_run_takes_its_folder(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "right"), rows_of(LEFT))
    run()
    write({"exact": {"_type": "ragparity", "metric": "ExactMatch"}}, rows_of(LEFT))
    assert CliRunner().invoke(main, ["eval", "eval.yml", "--quiet"]).exit_code == 0
    assert Path("out/summary.json").exists() and not Path("out/agreement.json").exists()


def test_rows_of_one_question_are_resampled_together(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    rows = [dict(row, question="The same question?" if row["id"] in "ab" else row["question"]) for row in rows_of(LEFT)]
    write(entry("left", "right"), rows)
    run()
    assert only_pair()["n_clusters"] == 3


def test_a_limit_takes_the_first_rows_everywhere(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "right"), rows_of(LEFT))
    run("--limit", "3")
    assert only_pair()["n"] == 3


def test_json_is_what_the_file_holds(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write(entry("left", "right"), rows_of(LEFT))
    done = run("--json")
    assert json.loads(done.stdout) == json.loads(Path("out/agreement.json").read_text(encoding="utf-8"))


def test_eval_says_that_it_compares_nothing(monkeypatch):
    install(monkeypatch, Toy("left", LEFT))
    write(entry("native", "left", llm_name="offline"), rows_of(LEFT))
    done = CliRunner().invoke(main, ["eval", "eval.yml", "--quiet"])
    assert "`eval` scores faith with one backend; `ragparity crossvalidate` compares them" in done.stderr


# -- noise


def test_repetitions_give_test_retest_flips_and_what_is_attainable(monkeypatch):
    steady = {"a": [1.0, 1.0], "b": [0.5, 0.5], "c": [0.0, 0.0], "d": [0.25, 0.25]}
    noisy = {"a": [1.0, 0.0], "b": [0.5, 0.5], "c": [0.0, 0.5], "d": [0.25, 0.25]}
    install(monkeypatch, Toy("left", steady), Toy("right", noisy))
    write(entry("left", "right", reps=2, threshold=0.5), rows_of(steady))
    done = run()
    assert done.exit_code == 0, done.output
    backends = agreement()["faith"]["backends"]
    assert backends["left"]["test_retest"]["ccc"]["value"] == pytest.approx(1.0)
    assert backends["left"]["test_retest"]["flip_rate"]["value"] == 0.0
    # a passes once of two, c once of two: 2 of 4 rows flip
    assert backends["right"]["test_retest"]["flip_rate"]["value"] == pytest.approx(0.5)
    reach = only_pair()["attainable"]
    noise = backends["right"]["test_retest"]["ccc"]["value"]
    assert reach["value"] == (pytest.approx(noise**0.5) if noise > 0 else None)
    # a: 1.0 against a mean of 0.5, but one of the repetitions says 1.0 too
    assert [one["cause"] for one in only_pair()["rows"] if one["id"] == "a"] == ["judge_variance"]


# -- why two differ


def record(outcome, row="r"):
    return Record(row=0, id=row, key="", evaluator="e", metric="m", backend="b", outcome=outcome)


def why(a, b, **more):
    options = {
        "names": ("left", "right"), "related": "same", "definitions": (SHARE, SHARE), "outdated": ("", ""),
        "difference": 0.5,
    } | more  # fmt: skip
    return explained(record(a), record(b), **options)


def test_the_same_verdicts_and_other_scores_are_a_matter_of_the_formula():
    shares = claims("yn")
    other = Scored(1.0, "divides by what came back", shares.detail)
    found = why(shares, other, definitions=(SHARE, replace(SHARE, differs="divides otherwise")))
    assert found.cause == "definition" and "divides otherwise" in found.because


def test_a_release_that_the_definition_was_not_written_for_is_the_version():
    found = why(claims("y"), claims("n"), outdated=("", "ragas 0.5.0"))
    assert found.cause == "version" and "right runs on ragas 0.5.0" in found.because


def test_a_judge_that_could_not_be_reached_is_unscored_not_parsing():
    assert why(Failed("timeout", "30 s"), claims("y")).cause == "unscored"
    assert why(Failed("truncated", "cut"), claims("y")).cause == "parsing"
    assert why(Failed("malformed", "x"), Undefined("no_claims")).cause == "unscored", "one of the two is no parsing"


def test_claims_meet_by_their_words_and_what_has_no_partner_decides():
    left = [{"text": "Heron uses port 7443.", "verdict": True}, {"text": "It is grey.", "verdict": True}]
    right = [{"text": "Ships sail at dawn.", "verdict": False}, {"text": "The Heron uses port 7443.", "verdict": True}]
    found = aligned(left, right)
    shown = [(one["a"] and one["a"]["text"], one["b"] and one["b"]["text"], one["decides"]) for one in found]
    assert shown == [
        ("Heron uses port 7443.", "The Heron uses port 7443.", False), ("It is grey.", None, True),
        (None, "Ships sail at dawn.", True),
    ]  # fmt: skip


def test_long_lists_of_claims_are_paired_nearest_first():
    texts = [f"Claim {at} of word{at} and word{at}." for at in range(50)]
    left = [{"text": text, "verdict": True} for text in texts]
    found = aligned(left, [{"text": text, "verdict": True} for text in reversed(texts)])
    assert len(found) == 50 and not any(one["decides"] for one in found)


def test_passages_meet_by_number():
    left = [{"text": "x", "verdict": True, "passage": 0}, {"text": "same", "verdict": False, "passage": 1}]
    right = [{"text": "same", "verdict": True, "passage": 1}, {"text": "x", "verdict": True, "passage": 0}]
    assert [one["decides"] for one in aligned(left, right)] == [False, True]


def test_texts_without_words_share_nothing():
    assert overlap("…", "!") == 0 and overlap("a b", "a b") == 1


# -- over HTTP, and from a program


def test_a_judge_over_http_is_asked_for_the_backend_that_needs_it_and_its_replies_are_kept(monkeypatch):
    low = dict.fromkeys("abc", 0.0)
    toy = Toy("toy", low, declared=WHOLE)
    monkeypatch.setattr(toy, "build", lambda _name, _kwargs: Toy.build(toy, "Faithfulness", {}))
    install(monkeypatch, toy)
    rated = {"_type": "ragparity_crossvalidate", "metric": "ResponseGroundedness", "backends": ["native", "toy"]}
    rows = [dict(row, contexts=["An answer."]) for row in rows_of(low)]
    with FakeServer(reply="2") as server:
        llms = {"judge": {"_type": "openai", "model_name": "m", "base_url": server.base_url, "api_key": "sk-secret-1"}}
        write(
            {"grounded": {**rated, "llm_name": "judge"}}, rows, llms=llms, ragparity={"save": {"calls": "all"}},
        )  # fmt: skip
        done = run()
        assert server.calls, "the native side asks"
    assert done.exit_code == 0, done.output
    found = only_pair("grounded")
    assert found["relation"] == "same" and found["mean_diff"] == pytest.approx(1.0)
    assert [one["raw"] for one in found["rows"][0]["a"]["replies"]] == ["2", "2"]
    assert "replies" not in found["rows"][0]["b"]


def test_from_a_program(monkeypatch):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    found = crossvalidate(
        [dict(row, answer="An answer.", human=int(row["id"] in "ad")) for row in rows_of(LEFT)], ["Faithfulness"],
        backends=["left", "absent", "right"], labels="human",
    )  # fmt: skip
    (pair,) = found.agreement["metrics"]["Faithfulness"]["pairs"]
    assert pair["n"] == 4
    assert found.as_json()["remarks"] == [
        "Faithfulness: absent is left out: Absent is not installed: pip install absent"
    ]
    assert found.agreement["metrics"]["Faithfulness"]["people"]["backends"]["left"]["n"] == 5
    assert found.comparisons["Faithfulness"].pairs[0].agreement["mean_diff"] != Estimate()
    assert repr(found) == "Crossvalidation(Faithfulness: left – right (same, 4 rows))"


def test_from_a_program_what_cannot_be_compared_is_refused(monkeypatch):
    install(monkeypatch, Toy("left", LEFT))

    def refused(error, metrics=("Faithfulness",), **options):
        with pytest.raises(error) as caught:
            asyncio.run(acrossvalidate(rows_of(LEFT), list(metrics), **options))
        return str(caught.value)

    assert "expected a list of two" in refused(ConfigError, backends=["left"])
    assert "unknown" in refused(UnknownBackend, backends=["left", "nowhere"])
    assert "nothing to compare: absent" in refused(ConfigError, backends=["left", "absent"])
    assert "the name alone" in refused(ConfigError, ["left/Faithfulness"], backends=["left", "native"])
