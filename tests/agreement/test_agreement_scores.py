"""Differences, correlations and concordance against loops, published figures and properties."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.agreement.kernels import counts_of, same_as_repeated
from tests.reference import naive_agreement as naive

from ragparity.agreement import (
    Draws,
    ccc,
    exact_agreement,
    hodges_lehmann,
    icc,
    kendall,
    limits_of_agreement,
    mean,
    mean_absolute_error,
    mean_difference,
    pearson,
    slope,
    spearman,
    wilcoxon,
)

LEVELS = [0.0, 0.25, 0.5, 0.75, 1.0]
CORRELATIONS = (pearson, spearman, kendall, ccc, icc)

# Peak expiratory flow of 17 people by two meters, l/min: Bland and Altman 1986, table 1.
WRIGHT = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]


def scores(levels=False):
    return st.sampled_from(LEVELS) if levels else st.integers(0, 40).map(lambda step: step / 32)


@st.composite
def columns(draw, least=3, most=20):
    levels = draw(st.booleans())
    n = draw(st.integers(least, most))
    side = st.lists(scores(levels), min_size=n, max_size=n)
    return draw(side), draw(side)


def varied(pair):
    return all(len(set(side)) > 1 for side in pair)


@given(columns())
@settings(max_examples=70, deadline=None)
def test_every_coefficient_equals_its_textbook_loop(pair):
    assume(varied(pair))
    a, b = pair
    assert pearson(a, b).value == pytest.approx(naive.pearson(a, b), abs=1e-12)
    assert spearman(a, b).value == pytest.approx(naive.spearman(a, b), abs=1e-12)
    assert kendall(a, b).value == pytest.approx(naive.kendall(a, b), abs=1e-12)
    assert ccc(a, b).value == pytest.approx(naive.concordance(a, b), abs=1e-12)
    assert icc(a, b).value == pytest.approx(naive.icc_absolute(a, b), abs=1e-12)


@given(columns())
@settings(max_examples=70, deadline=None)
def test_differences_equal_their_textbook_loops(pair):
    a, b = pair
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    assert mean_difference(a, b).value == pytest.approx(sum(gaps) / len(gaps), abs=1e-12)
    assert mean_absolute_error(a, b).value == pytest.approx(sum(map(abs, gaps)) / len(gaps), abs=1e-12)
    assert exact_agreement(a, b).value == pytest.approx(gaps.count(0) / len(gaps), abs=1e-12)
    assert hodges_lehmann(a, b).value == pytest.approx(naive.hodges_lehmann(a, b), abs=1e-12)
    means = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
    if len(set(means)) > 1:
        assert slope(a, b).value == pytest.approx(naive.regression_slope(means, gaps), abs=1e-10)
    else:
        assert slope(a, b).why == "undefined: every pair has the same mean"


@given(columns(most=11))
@settings(max_examples=60, deadline=None)
def test_the_signed_rank_p_counts_every_change_of_signs(pair):
    a, b = pair
    found = wilcoxon(a, b)
    if a == b:
        assert found.value is None and found.why == "undefined: no pair differs"
    else:
        assert found.value == pytest.approx(naive.signed_rank_p(a, b), abs=1e-12)


def test_the_signed_rank_test_changes_to_the_normal_approximation_without_a_jump():
    generator = np.random.default_rng(3)
    a = generator.random(401)
    b = a + generator.normal(0.01, 0.1, 401)
    assert wilcoxon(a, b).value == pytest.approx(wilcoxon(a[:400], b[:400]).value, rel=0.25)
    z = (401 * 402 / 2 - 0 - 401 * 402 / 4) / math.sqrt(401 * 402 * 803 / 24)  # every difference positive
    assert wilcoxon(a + 9, a).value == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-9)


@given(columns())
@settings(max_examples=60, deadline=None)
def test_swapping_the_sides_changes_only_the_sign_of_differences(pair):
    a, b = pair
    for statistic in (*CORRELATIONS, mean_absolute_error, exact_agreement, wilcoxon):
        left, right = statistic(a, b), statistic(b, a)
        assert left.why == right.why
        assert left.value == pytest.approx(right.value, abs=1e-12) if left.value is not None else right.value is None
    for statistic in (mean_difference, hodges_lehmann, slope):
        left, right = statistic(a, b).value, statistic(b, a).value
        assert left is None if right is None else left == pytest.approx(-right, abs=1e-12)


@given(columns(), st.integers(1, 5), st.integers(-3, 3))
@settings(max_examples=60, deadline=None)
def test_each_coefficient_ignores_what_it_says_it_ignores(pair, times, plus):
    assume(varied(pair))
    a, b = pair
    moved = [times * y + plus for y in b]
    bent = [2.0**y for y in b]
    both = [times * x + plus for x in a]
    assert pearson(a, moved).value == pytest.approx(pearson(a, b).value, abs=1e-9)
    for statistic in (spearman, kendall):
        assert statistic(a, bent).value == pytest.approx(statistic(a, b).value, abs=1e-12)
        assert statistic(a, [-y for y in b]).value == pytest.approx(-statistic(a, b).value, abs=1e-12)
    for statistic in (ccc, icc):  # the same unit and origin on both sides
        assert statistic(both, moved).value == pytest.approx(statistic(a, b).value, abs=1e-9)


@given(columns())
@settings(max_examples=60, deadline=None)
def test_coefficients_stay_in_range_and_concordance_is_below_correlation(pair):
    assume(varied(pair))
    found = {statistic.__name__: statistic(*pair).value for statistic in CORRELATIONS}
    assert all(value <= 1 for value in found.values())
    assert all(value >= -1 for name, value in found.items() if name != "icc")
    assert abs(found["ccc"]) <= abs(found["pearson"]) + 1e-12


@given(st.lists(scores(), min_size=3, max_size=30))
@settings(max_examples=40, deadline=None)
def test_equal_columns_agree_perfectly_or_are_constant(column):
    for statistic in CORRELATIONS:
        found = statistic(column, column)
        if len(set(column)) > 1:
            assert found.value == pytest.approx(1, abs=1e-12)
        else:
            assert (found.value, found.why) == (None, "undefined: constant scores")
    assert exact_agreement(column, column).value == 1
    assert mean_absolute_error(column, column).value == 0


def test_a_constant_bias_leaves_the_correlation_at_one_but_not_the_concordance():
    a = [0.3, 0.5, 0.7, 0.9]
    b = [x - 0.3 for x in a]
    assert pearson(a, b).value == pytest.approx(1)
    # variance .05 on both sides, covariance .05, gap .3: 2·.05/(.05+.05+.09)
    assert ccc(a, b).value == pytest.approx(0.1 / 0.19)
    assert mean_difference(a, b).value == pytest.approx(0.3)
    assert mean_difference(a, b).why == "no interval: every pair differs by the same amount"


@pytest.mark.parametrize("statistic", CORRELATIONS)
def test_one_constant_side_is_undefined_in_words(statistic):
    assert statistic([1, 1, 1, 1], [0, 0.5, 1, 1]).why == "undefined: constant scores"
    assert statistic([0, 0.5, 1, 1], [0.1 * 3] * 4).value is None


@pytest.mark.parametrize("statistic", [*CORRELATIONS, slope, hodges_lehmann])
def test_two_pairs_are_too_few(statistic):
    assert statistic([0, 1], [0, 1]).why == "undefined: fewer than 3 pairs"


@pytest.mark.parametrize(
    "statistic", [*CORRELATIONS, slope, hodges_lehmann, mean_difference, mean_absolute_error, exact_agreement, wilcoxon]
)
def test_no_pairs_give_a_reason_and_no_number(statistic):
    found = statistic([], [])
    assert found.value is None and found.why


def test_the_flow_meters_of_bland_and_altman_give_their_published_figures():
    # Published: mean difference −2.1, standard deviation 38.8 l/min.
    assert mean_difference(WRIGHT, MINI).value == pytest.approx(-2.1, abs=0.05)
    limits = limits_of_agreement(WRIGHT, MINI)
    assert limits.kind == "normal"
    assert (limits.high - limits.low) / (2 * 1.959964) == pytest.approx(38.8, abs=0.05)
    assert limits.low == pytest.approx(-2.1 - 1.96 * 38.8, abs=0.2)


def test_few_levels_get_empirical_limits():
    a = [0.0] * 20 + [1.0] * 20
    b = [0.0] * 19 + [0.5] + [1.0] * 20
    limits = limits_of_agreement(a, b)
    # 39 differences of 0 and one of −.5: the 2.5 % point is .975 of the way from −.5 to 0 (rank 0.025·39 = .975)
    assert (limits.kind, limits.low, limits.high) == ("empirical", pytest.approx(-0.5 * 0.025), 0.0)
    assert limits_of_agreement(a, b, kind="normal").low < -0.1
    assert limits_of_agreement([1], [0]).why == "undefined: fewer than 3 pairs"


def test_the_bias_interval_is_students():
    # differences 1, 2, 3: mean 2, s = 1, t(2) = 4.302653
    found = mean_difference([1, 2, 3], [0, 0, 0])
    assert found.interval == pytest.approx((2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / math.sqrt(3)), abs=1e-6)


def test_clusters_of_one_change_nothing_and_repeated_rows_add_no_certainty():
    values = [0.1, 0.4, 0.4, 0.9, 0.2]
    plain = mean(values)
    assert mean(values, clusters=list("abcde")).interval == pytest.approx(plain.interval)
    twice = mean(values * 2, clusters=list("abcde") * 2)
    assert twice.interval == pytest.approx(plain.interval)
    assert mean(values * 2).high < plain.high


def test_one_score_or_one_cluster_has_no_interval():
    assert mean([0.5]).why == "no interval: a single score"
    assert mean([0.5, 0.7], clusters=["q", "q"]).why == "no interval: a single cluster"
    assert mean([0.5, 0.5]).why == "no interval: every score is the same"


def test_hodges_lehmann_ignores_one_wild_pair():
    a = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1000.0]
    b = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    found = hodges_lehmann(a, b)
    assert found.value == pytest.approx(0.1)
    assert hodges_lehmann([1, 2, 3], [0, 0, 0]).why == "no interval: too few pairs for 95 %"


def test_hodges_lehmann_of_very_many_differences_is_close_to_the_full_one():
    generator = np.random.default_rng(5)
    a, b = generator.random(2100), generator.random(2100) ** 2
    i, j = np.triu_indices(2100)
    found = hodges_lehmann(a, b)
    assert found.value == pytest.approx(np.median(((a - b)[i] + (a - b)[j]) / 2), abs=2e-3)
    assert found.low < found.value < found.high


def test_agreement_within_a_tolerance_counts_the_border():
    assert exact_agreement([0.1, 0.5], [0.3, 0.8], within=0.2).value == 0.5


def test_kendall_is_the_same_when_the_table_is_done_in_parts():
    generator = np.random.default_rng(7)
    a = np.round(generator.random(600), 2)
    b = np.round(a + generator.normal(0, 0.2, 600), 2)
    assert kendall(a, b).value == pytest.approx(naive.kendall(a.tolist(), b.tolist()), abs=1e-12)


@given(columns(least=4, most=12), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_resample_is_the_statistic_of_the_repeated_pairs(pair, seed):
    counts = counts_of(len(pair[0]), seed)
    for statistic in (*CORRELATIONS, slope, mean_absolute_error):
        same_as_repeated(statistic, pair, counts)


def test_bad_columns_are_refused_in_one_line():
    with pytest.raises(ValueError, match=r"lists of one length, got \[2, 3\]; join them with pair"):
        pearson([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="one flat list of finite numbers"):
        pearson([0, math.nan, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="resamples are of 4 items, the statistic of 3"):
        pearson([0, 0.5, 1], [0, 1, 1], draws=Draws(4))
    with pytest.raises(ValueError, match="one label for each of 2 items, got 1"):
        mean([0, 1], clusters=["q"])
