"""Records and summaries: strict JSON, sums that agree with NumPy and SciPy, and no failure that looks like a number."""

import dataclasses
import json
import math
from datetime import date
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.core.ports import Tally, Usage
from ragparity.results import Record, Summary, Troubles, json_line, json_text, record


def made(outcome, *, row=0, threshold=None, higher_is_better=True, tally=None, evaluator="e"):
    return record(
        row=row, id=f"id-{row}", key="0123456789abcdef", evaluator=evaluator, metric="Faithfulness()", backend="native",
        judge="a judge", threshold=threshold, higher_is_better=higher_is_better, outcome=outcome, tally=tally or Tally(),
        seconds=0.25,
    )  # fmt: skip


def summary(outcomes, *, total=None, **more):
    found = Summary(evaluator="e", metric="M()", backend="native", judge=None, higher_is_better=True, **more)
    found.n_total = len(outcomes) if total is None else total
    for number, outcome in enumerate(outcomes):
        found.add(outcome if isinstance(outcome, Record) else made(outcome, row=number))
    return found


def strict(line):
    """The value of a line, read by a parser that refuses what is no JSON."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(line.decode("utf-8"), parse_constant=refuse)


# -- lines


def test_a_scored_line_has_the_keys_of_the_contract_in_its_order():
    tally = Tally()
    tally.call(Usage(input_tokens=10, output_tokens=3))
    line = made(Scored(0.5, "half", {"claims": []}), threshold=0.5, tally=tally).as_json()
    promised = [
        "id", "evaluator", "metric", "backend", "status", "score", "passed", "why", "reason", "detail", "error", "judge",
        "calls", "input_tokens", "output_tokens", "seconds",
    ]  # fmt: skip
    assert [key for key in line if key in promised] == promised
    assert {key: line[key] for key in promised} == {
        "id": "id-0", "evaluator": "e", "metric": "Faithfulness()", "backend": "native", "status": "scored",
        "score": 0.5, "passed": True, "why": None, "reason": "half", "detail": {"claims": []}, "error": None,
        "judge": "a judge", "calls": 1, "input_tokens": 10, "output_tokens": 3, "seconds": 0.25,
    }  # fmt: skip


def test_an_undefined_line_says_why_and_has_no_score_and_no_error():
    line = made(Undefined("missing:reference", "the row has no reference"), threshold=0.5).as_json()
    assert (line["status"], line["score"], line["passed"], line["error"]) == ("undefined", None, None, None)
    assert (line["why"], line["reason"]) == ("missing:reference", "the row has no reference")


def test_a_failed_line_keeps_kind_message_raw_text_and_attempts():
    line = made(Failed("malformed", "no verdict", 4, "I think so"), threshold=0.5).as_json()
    assert (line["status"], line["score"], line["passed"], line["why"]) == ("failed", None, None, None)
    assert line["error"] == {"kind": "malformed", "message": "no verdict", "raw": "I think so", "attempts": 4}


@pytest.mark.parametrize(
    "outcome",
    [
        Scored(1 / 3, "a third", {"claims": [{"id": 1, "verdict": True}]}),
        Undefined("no_claims", "a greeting", {"refusal": True}),
        Failed("timeout", "60 s", 4, None, {"readable_ratings": [4]}),
    ],
)
def test_a_line_reads_back_as_the_same_record(outcome):
    before = made(outcome, threshold=0.5)
    assert Record.from_json(strict(json_line(before.as_json()))) == before


def test_a_score_is_written_as_the_float_it_is():
    assert strict(json_line(made(Scored(2 / 3)).as_json()))["score"] == 2 / 3


# -- strict JSON


class Odd:
    def __str__(self):
        return "odd" * 1000


@dataclasses.dataclass
class Pair:
    left: int
    right: float


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (float("nan"), None),
        (float("inf"), "inf"),
        (np.float64("nan"), None),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(1), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset("b"), ["b"]),
        ((1, (2,)), [1, [2]]),
        (Fraction(2, 3), "2/3"),
        (date(2025, 1, 2), "2025-01-02"),
        (Pair(1, math.nan), {"left": 1, "right": None}),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("Größe\u2028\x00", "Größe\u2028\x00"),
    ],
)
def test_whatever_stands_in_a_detail_the_line_is_strict_json(value, read):
    line = json_line({"detail": {"value": value, "text": "ok"}})
    assert line.count(b"\n") == 1
    assert strict(line) == {"detail": {"value": read, "text": "ok"}}


def test_a_value_without_a_plain_form_is_kept_as_its_text_and_costs_the_others_nothing():
    found = strict(json_line({"detail": {"odd": Odd(), "bytes": b"raw", "share": math.nan, "list": [Odd(), 1]}}))
    assert found["detail"]["odd"] == ("odd" * 1000)[:1000]
    assert found["detail"]["bytes"] == "b'raw'"
    assert found["detail"]["share"] is None and found["detail"]["list"][1] == 1


def test_a_value_that_contains_itself_does_not_end_the_run():
    turning = {}
    turning["again"] = turning
    assert strict(json_line({"id": "a", "detail": turning}))["id"] == "a"


def test_characters_are_not_escaped():
    assert "温度 µ".encode() in json_line({"reason": "温度 µ"})


def test_a_text_of_ten_megabytes_goes_through():
    text = "é" * 5_000_000
    assert strict(json_line({"raw": text}))["raw"] == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
        max_leaves=20,
    )
)
def test_any_nesting_of_plain_values_is_strict_json_on_one_line(value):
    line = json_line({"value": value})
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    strict(line)
    strict(json_text({"value": value}, indent=2))


# -- thresholds (a pass is score >= threshold; without a threshold nothing has passed or failed)


@pytest.mark.parametrize(
    ("score", "threshold", "higher_is_better", "passed"),
    [
        (0.75, 0.7, True, True),
        (0.7, 0.7, True, True),
        (0.1 + 0.2, 0.3, True, True),
        (0.3 - 1e-10, 0.3, True, True),
        (0.3 - 1e-8, 0.3, True, False),
        (0.0, 0.0, True, True),
        (0.2, 0.3, False, True),
        (0.3 + 1e-10, 0.3, False, True),
        (0.4, 0.3, False, False),
        (0.75, None, True, None),
        (0.0, None, True, None),
    ],
)
def test_a_row_has_passed_when_its_score_reaches_the_threshold(score, threshold, higher_is_better, passed):
    assert made(Scored(score), threshold=threshold, higher_is_better=higher_is_better).passed is passed


# -- figures


def test_the_figures_agree_with_numpy_and_scipy():
    scores = np.random.default_rng(5).beta(2, 3, 173)
    found = summary([Scored(float(one)) for one in scores]).as_json()
    assert found["mean"] == pytest.approx(scores.mean(), rel=1e-14)
    assert found["stderr"] == pytest.approx(stats.sem(scores), rel=1e-13)
    low, high = stats.t.interval(0.95, len(scores) - 1, scores.mean(), stats.sem(scores))
    assert found["ci95"] == pytest.approx([low, high], rel=1e-11)
    assert found["median"] == np.median(scores)
    assert (found["min"], found["max"]) == (scores.min(), scores.max())


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=60))
def test_mean_and_standard_error_agree_with_numpy_on_any_scores(scores):
    found = summary([Scored(one) for one in scores])
    assert found.mean == pytest.approx(np.mean(scores), abs=1e-15)
    assert found.scores.stderr() == pytest.approx(stats.sem(scores), rel=1e-9, abs=1e-15)
    assert min(scores) - 1e-12 <= found.mean <= max(scores) + 1e-12


def test_scores_that_are_all_alike_have_no_spread():
    assert summary([Scored(0.1)] * 7).scores.stderr() == pytest.approx(0.0, abs=1e-17)


def test_two_scores_have_the_interval_worked_out_by_hand():
    # Mean 1/2, s = √(1/2), s/√2 = 1/2, t(1 degree of freedom) = tan(0.475π) = 12.7062…
    found = summary([Scored(0.0), Scored(1.0)]).as_json()
    half = math.tan(math.pi * 0.475) / 2
    assert found["stderr"] == pytest.approx(0.5, rel=1e-15)
    assert found["ci95"] == pytest.approx([0.5 - half, 0.5 + half], rel=1e-12)


def test_figures_follow_the_scores_that_come_later():
    found = summary([Scored(0.0)], total=2)
    assert found.as_json()["median"] == 0.0
    found.add(made(Scored(1.0)))
    assert [found.as_json()[name] for name in ("mean", "median", "max")] == [0.5, 0.5, 1.0]


def test_the_repr_of_a_summary_does_not_grow_with_its_rows():
    def length(n):
        return len(repr(summary([Scored(0.5, None, {"repetitions": [0.0, 1.0], "flip_rate": 1.0})] * n, total=1)))

    assert length(2000) == length(2)


def test_under_two_scored_rows_there_is_no_interval():
    one = summary([Scored(0.5), Undefined("no_claims")]).as_json()
    assert (one["mean"], one["stderr"], one["ci95"]) == (0.5, None, None)
    none = summary([Failed("timeout", "t")]).as_json()
    assert [none[name] for name in ("mean", "stderr", "ci95", "median", "min", "max")] == [None] * 6


def test_a_failed_call_is_no_zero_and_lowers_nothing():
    # Two perfect answers and one judge call that failed: 1.0 over 2 of 3, never 0.67.
    found = summary([Scored(1.0), Scored(1.0), Failed("unavailable", "no connection")]).as_json()
    assert (found["mean"], found["n_scored"], found["n_total"], found["n_failed"]) == (1.0, 2, 3, 1)
    assert found["coverage"] == 2 / 3 and found["errors"] == {"unavailable": 1}


def test_a_row_on_which_nothing_was_measured_counts_nowhere_but_in_its_own_count():
    found = summary([Failed("empty", "empty"), Scored(0.9)])
    assert found.as_json()["mean"] == 0.9 and found.as_json()["min"] == 0.9
    assert "NaN" not in json.dumps(found.as_json())


def test_passed_counts_rows_only_where_there_is_a_threshold():
    rows = [
        made(Scored(0.9), threshold=0.5),
        made(Scored(0.1), threshold=0.5),
        made(Undefined("no_claims"), threshold=0.5),
    ]
    assert summary(rows).as_json()["passed"] == 1
    assert summary([Scored(0.9)]).as_json()["passed"] is None
    assert summary([made(Scored(0.1), threshold=0.5)]).as_json()["passed"] == 0


def test_rows_without_a_record_were_not_run():
    found = summary([Scored(1.0), Undefined("no_claims"), Failed("timeout", "t")], total=10).as_json()
    assert (found["n_total"], found["n_not_run"]) == (10, 7)
    assert found["coverage"] == 0.1


def test_refusals_are_counted_apart_whether_they_have_a_score_or_not():
    outcomes = [Undefined("no_claims", None, {"refusal": True}), Scored(1.0, None, {"refusal": True}), Scored(1.0)]
    assert summary(outcomes).as_json()["n_refusals"] == 2


def test_tokens_are_sums_and_unknown_once_a_call_does_not_tell_them():
    told, untold = Tally(), Tally()
    told.call(Usage(input_tokens=1_000_000, output_tokens=500_000))
    untold.call(Usage())
    price = (0.15, 0.60)
    known = summary([made(Scored(1.0), tally=told)] * 2, price=price).as_json()
    assert (known["calls"], known["input_tokens"], known["output_tokens"]) == (2, 2_000_000, 1_000_000)
    assert known["cost"] == pytest.approx(2 * 0.15 + 1 * 0.60)
    unknown = summary([made(Scored(1.0), tally=told), made(Scored(1.0), tally=untold)], price=price).as_json()
    assert (unknown["input_tokens"], unknown["cost"]) == (None, None)
    assert summary([Scored(1.0)]).as_json()["cost"] is None


def test_the_summary_has_every_key_of_the_contract():
    assert set(summary([Scored(1.0)]).as_json()) >= {
        "n_total", "n_scored", "n_undefined", "n_failed", "n_not_run", "n_refusals", "coverage", "mean", "stderr", "ci95",
        "median", "min", "max", "passed", "calls", "input_tokens", "output_tokens", "cost", "errors", "undefined",
        "higher_is_better", "metric", "backend", "judge",
    }  # fmt: skip


# -- why scores are missing


def test_every_reason_is_told_once_with_its_first_case_failures_and_frequent_ones_first():
    troubles = Troubles()
    cases = [
        Undefined("no_claims", "a greeting"), Undefined("no_claims", "a refusal"), Failed("timeout", "60 s"), Scored(1.0),
        Undefined("missing:reference"), Failed("auth", "401 a"), Failed("auth", "401 b"),
    ]  # fmt: skip
    for number, outcome in enumerate(cases):
        troubles.add(made(outcome, row=number, evaluator=f"e{number % 2}"))
    told = [(one.status, one.word, one.count, one.message, one.id) for one in troubles]
    assert told == [
        ("failed", "auth", 2, "401 a", "id-5"),
        ("failed", "timeout", 1, "60 s", "id-2"),
        ("undefined", "no_claims", 2, "a greeting", "id-0"),
        ("undefined", "missing:reference", 1, "missing:reference", "id-4"),
    ]
    assert list(next(iter(troubles)).evaluators) == ["e1", "e0"]
    assert len(troubles) == 4
