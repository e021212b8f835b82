"""Corrected pass rates and means: worked values, limits of the formulas, coverage."""

import math

import numpy as np
import pytest

from ragparity.agreement import power_tuning, ppi_mean, rogan_gladen


def verdicts(passed, n):
    return [True] * passed + [False] * (n - passed)


def calibration(hits, good, rejected, bad):
    """Judge's verdicts and labels with these counts."""
    judge = verdicts(hits, good) + verdicts(bad - rejected, bad)
    return judge, [True] * good + [False] * bad


def published_interval(p, n, *, q0, m0, q1, m1):
    """Equations of arXiv 2511.21140, step by step."""
    z = 1.959963984540054
    pt, nt = (n * p + z * z / 2) / (n + z * z), n + z * z
    q0t, m0t = (m0 * q0 + 1) / (m0 + 2), m0 + 2
    q1t, m1t = (m1 * q1 + 1) / (m1 + 2), m1 + 2
    theta = (pt - (1 - q0t)) / (q1t - (1 - q0t))
    var0, var1, varp = q0t * (1 - q0t) / m0t, q1t * (1 - q1t) / m1t, pt * (1 - pt) / nt
    centre = theta + 2 * z * z * (theta * var1 - (1 - theta) * var0)
    half = z * math.sqrt(varp + (1 - theta) ** 2 * var0 + theta**2 * var1) / (q0t + q1t - 1)
    return max(0, centre - half), min(1, centre + half)


def test_the_pass_rate_is_corrected_by_both_error_rates():
    # 40 % pass, specificity .7, sensitivity .9: (.4 + .7 − 1)/(.7 + .9 − 1) = 1/6
    found = rogan_gladen(verdicts(400, 1000), *calibration(180, 200, 140, 200))
    assert found.value == pytest.approx(1 / 6)
    assert found.interval == pytest.approx(published_interval(0.4, 1000, q0=0.7, m0=200, q1=0.9, m1=200), abs=1e-12)
    assert found.why is None


def test_a_perfect_judge_needs_no_correction():
    found = rogan_gladen(verdicts(30, 40), *calibration(50, 50, 50, 50))
    assert found.value == 0.75
    assert found.low < 0.75 < found.high


def test_a_corrected_rate_stays_a_rate():
    # the judge passes 5 %, but 20 % of bad rows pass by mistake: the formula says below 0
    found = rogan_gladen(verdicts(5, 100), *calibration(45, 50, 40, 50))
    assert found.value == 0 and found.low == 0


def test_no_better_than_chance_is_undefined_in_words():
    found = rogan_gladen(verdicts(5, 10), *calibration(20, 40, 20, 40))
    assert found.value is None and "no better than chance" in found.why
    one_class = rogan_gladen(verdicts(5, 10), [True, False], [True, True])
    assert one_class.why == "undefined: it needs labelled rows that people pass and rows that they fail"
    assert rogan_gladen([], *calibration(9, 10, 9, 10)).why == "undefined: no judged rows without a label"


def test_few_labels_of_a_class_are_said():
    assert rogan_gladen(verdicts(5, 10), *calibration(9, 10, 45, 50)).why == (
        "fewer than 30 labels of a class: wide and unstable"
    )
    # q₀ + q₁ = .2 + .81…: just above 1, but below after one added row of each kind
    edge = rogan_gladen(verdicts(5, 10), *calibration(9, 11, 40, 200))
    assert edge.value is not None and edge.why == "no interval: too few labels to tell the judge from chance"


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(11)
    truth, sensitivity, specificity = 0.8, 0.9, 0.8
    covered, halves = 0, []
    for _ in range(400):
        labels = [1] * 50 + [0] * 50
        judge = [*(generator.random(50) < sensitivity), *(generator.random(50) >= specificity)]
        good = generator.random(300) < truth
        seen = np.where(good, generator.random(300) < sensitivity, generator.random(300) >= specificity)
        found = rogan_gladen(seen, judge, labels)
        covered += found.low <= truth <= found.high
        halves.append((found.high - found.low) / 2)
    assert 0.92 <= covered / 400 <= 0.99
    assert np.mean(halves) == pytest.approx(0.12, abs=0.01)


def test_the_mean_is_the_others_mean_plus_the_judges_mean_error():
    # λ = 1: mean(.5, .7) + mean(1 − .8, 0 − .4) = .6 − .1
    found = ppi_mean([1, 0], [0.8, 0.4], [0.5, 0.7], tuning=1)
    assert found.value == pytest.approx(0.5)
    # variances: others .02/2, errors .2 and −.4: .18/2
    assert found.high - found.value == pytest.approx(1.959964 * math.sqrt(0.01 + 0.09), abs=1e-6)


def test_the_trust_in_the_judge_is_tuned():
    human, judge, others = [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1]
    # covariance 1/3, n/N = 1, variance of 8 scores 2/7: (1/3) / (2·2/7) = 7/12
    assert power_tuning(human, judge, others) == pytest.approx(7 / 12)
    assert power_tuning(human, [1, 1, 0, 0], others) == 0
    assert power_tuning(human, [1, 1, 1, 1], [1, 1]) == 0
    assert power_tuning(human, judge, []) == 0


def test_a_useless_judge_leaves_the_mean_of_the_labels():
    human, judge = [0.2, 0.4, 0.9, 0.5], [0.5] * 4
    found = ppi_mean(human, judge, [0.5] * 100)
    assert found.value == pytest.approx(0.5)
    assert found.interval == pytest.approx(ppi_mean(human, judge, []).interval)


def test_a_good_judge_shortens_the_interval_and_keeps_its_coverage():
    generator = np.random.default_rng(2)
    covered, shorter = 0, 0
    for _ in range(300):
        truth = generator.normal(0.5, 0.3, 500)
        judge = truth + generator.normal(-0.2, 0.1, 500)
        found = ppi_mean(truth[:60], judge[:60], judge[60:])
        alone = ppi_mean(truth[:60], judge[:60], judge[60:], tuning=0)
        covered += found.low <= 0.5 <= found.high
        shorter += found.high - found.low < alone.high - alone.low
    assert shorter == 300
    assert 0.91 <= covered / 300 <= 0.985


def test_too_few_labels_are_said():
    assert ppi_mean([], [], [0.5]).why == "undefined: no labelled rows"
    assert ppi_mean([1], [0.5], [0.5, 0.6]).why == "no interval: a single labelled row"
    assert ppi_mean([1, 1], [0.5, 0.5], []).why == "no interval: the labels do not vary"
    assert ppi_mean([1, 0], [0.5, 0.5], []).why == "fewer than 30 labels: the normal interval is too short"
