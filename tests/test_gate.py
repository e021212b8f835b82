"""Limits on a summary: reached, missed, and held against figures that do not exist."""

import pytest

from ragparity.gate import Limits, judge_gate


def summaries(**more):
    figures = {"mean": 0.8, "higher_is_better": True, "n_failed": 0, "n_not_run": 0, "coverage": 1.0}
    return {"e": figures | more}


def only(limits, baseline=None, **figures):
    (check,) = judge_gate(summaries(**figures), {"e": limits}, baseline)
    return check


@pytest.mark.parametrize(
    ("mean", "limit", "passed"),
    [(0.8, 0.8, True), (0.8 - 1e-10, 0.8, True), (0.1 + 0.2, 0.3, True), (0.79, 0.8, False), (0.0, 0.0, True)],
)
def test_a_mean_at_the_limit_has_reached_it_and_rounding_does_not_matter(mean, limit, passed):
    assert only(Limits(min_mean=limit), mean=mean).passed is passed


def test_the_worst_mean_is_a_ceiling_where_lower_is_better():
    assert only(Limits(min_mean=0.2), mean=0.1, higher_is_better=False).passed
    check = only(Limits(min_mean=0.2), mean=0.3, higher_is_better=False)
    assert not check.passed
    assert check.sentence() == "e: mean at most 0.2, here 0.3000: FAILED"


def test_no_mean_fails_its_limit_even_at_zero():
    check = only(Limits(min_mean=0.0), mean=None)
    assert not check.passed and check.figure is None
    assert check.sentence() == "e: mean at least 0, nothing was scored: FAILED"


def test_rows_that_were_not_run_count_as_failed():
    assert only(Limits(max_failed=3), n_failed=1, n_not_run=2).passed
    check = only(Limits(max_failed=2), n_failed=1, n_not_run=2)
    assert not check.passed
    assert check.sentence() == "e: failed rows at most 2, here 3: FAILED"


@pytest.mark.parametrize(("coverage", "passed"), [(0.9, True), (2 / 3, False), (None, False)])
def test_coverage_must_be_there_and_high_enough(coverage, passed):
    assert only(Limits(min_coverage=0.9), coverage=coverage).passed is passed


@pytest.mark.parametrize(
    ("before", "now", "up", "passed"),
    [
        (0.82, 0.80, True, True),
        (0.83, 0.80, True, False),
        (0.70, 0.80, True, True),
        (0.2, 0.22, False, True),
        (0.2, 0.3, False, False),
    ],
)
def test_a_drop_is_measured_against_the_baseline_in_the_direction_of_the_metric(before, now, up, passed):
    check = only(Limits(max_drop=0.02), {"e": {"mean": before}}, mean=now, higher_is_better=up)
    assert check.passed is passed


@pytest.mark.parametrize(
    ("baseline", "mean", "said"),
    [
        (None, 0.8, "no baseline is set"),
        ({}, 0.8, "the baseline has no mean of this evaluator"),
        ({"e": {"mean": None}}, 0.8, "the baseline has no mean of this evaluator"),
        ({"e": {"mean": 0.8}}, None, "nothing was scored"),
    ],
)
def test_a_drop_that_cannot_be_measured_fails_and_says_why(baseline, mean, said):
    check = only(Limits(max_drop=0.02), baseline, mean=mean)
    assert not check.passed and check.figure is None and said in check.sentence()


def test_without_limits_nothing_is_checked_and_several_limits_are_checked_in_order():
    assert judge_gate(summaries(), {"e": Limits()}) == []
    checks = judge_gate(
        summaries(), {"e": Limits(min_mean=0.5, max_failed=0, min_coverage=0.5, max_drop=0.1)}, {"e": {"mean": 0.8}}
    )
    assert [one.passed for one in checks] == [True] * 4
    assert [one.as_json()["figure"] for one in checks] == [0.8, 0, 1.0, 0.0]
