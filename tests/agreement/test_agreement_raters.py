"""Several raters, repeated scores, attainable agreement."""

import math
import statistics
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.kernels import counts_of, same_as_repeated
from tests.reference import naive_agreement as naive

from ragparity.agreement import Draws, Estimate, attainable, ccc, krippendorff_alpha, retest

LEVELS = ("nominal", "ordinal", "interval")
_ = None
# Krippendorff 2011, section C to E: four observers, twelve units; α = .743, .815, .849
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]


@st.composite
def tables(draw):
    raters, units = draw(st.integers(2, 4)), draw(st.integers(1, 10))
    cell = st.one_of(st.none(), st.integers(0, 4).map(lambda step: step / 4))
    return draw(st.lists(st.lists(cell, min_size=units, max_size=units), min_size=raters, max_size=raters))


def pairable(table):
    columns = [[value for value in column if value is not None] for column in zip(*table, strict=True)]
    return [value for column in columns if len(column) > 1 for value in column]


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_published_example_of_alpha(level, published):
    assert krippendorff_alpha(PUBLISHED, level=level).value == pytest.approx(published, abs=5e-4)


@given(tables(), st.sampled_from(LEVELS))
@settings(max_examples=70, deadline=None)
def test_alpha_equals_the_coincidence_matrix(table, level):
    found = krippendorff_alpha(table, level=level)
    kept = pairable(table)
    if not kept:
        assert found.why == "undefined: no item has two scores"
    elif len(set(kept)) == 1:
        assert found.why == "undefined: only one value in the data"
    else:
        assert found.value == pytest.approx(naive.krippendorff(table, level), abs=1e-12)
        assert found.value <= 1 + 1e-12
        upside_down = krippendorff_alpha(table[::-1], level=level)
        assert upside_down.value == pytest.approx(found.value, abs=1e-12)


@given(tables(), st.sampled_from(LEVELS), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_a_resample_of_alpha_is_the_alpha_of_the_repeated_items(table, level, seed):
    array = np.array(table, dtype=float)
    same_as_repeated(partial(krippendorff_alpha, level=level), (array,), counts_of(array.shape[1], seed))


def test_alpha_gets_an_interval_over_items():
    found = krippendorff_alpha(PUBLISHED, draws=Draws(12, seed=1))
    assert found.low < found.value <= found.high <= 1


def test_equal_raters_reach_one():
    for level in LEVELS:
        assert krippendorff_alpha([[0, 0.5, 1], [0, 0.5, 1], [0, None, 1]], level=level).value == 1


@given(st.lists(st.tuples(*[st.integers(0, 8).map(lambda step: step / 8)] * 3), min_size=3, max_size=15))
@settings(max_examples=60, deadline=None)
def test_the_overall_concordance_of_repetitions_equals_its_loop(items):
    reps = [list(column) for column in zip(*items, strict=True)]
    found = retest(reps).ccc
    if any(len(set(column)) == 1 for column in reps):
        assert found.why == "undefined: constant scores"
    else:
        assert found.value == pytest.approx(naive.concordance(*reps), abs=1e-12)
        two = ccc(reps[0], reps[1])
        assert retest(reps[:2]).ccc.value == pytest.approx(two.value, abs=1e-12)


def test_spread_and_flips_are_counted_within_items():
    #        stable   flips      half missing   alone
    reps = [[1.0, 0.8, 0.4, 0.9], [1.0, 0.2, None, None], [1.0, 0.8, 0.6, None]]
    found = retest(reps, threshold=0.5)
    assert (found.n, found.n_incomplete, found.n_unscored, found.reps) == (3, 1, 1, 3)
    # item 2: pass, fail, pass: two of three pairs differ; item 3: fail, pass: the one pair differs
    assert found.flip_rate.value == pytest.approx((0 + 2 / 3 + 1) / 3)
    assert found.items_flipped.value == pytest.approx(2 / 3)
    # squares within items .24 and .02 over 2 + 2 + 1 degrees of freedom
    assert found.within_sd.value == pytest.approx(math.sqrt(0.26 / 5))
    assert found.ccc.why == "undefined: fewer than 3 items with every score"
    lower = retest(
        [[1 - score if score is not None else None for score in row] for row in reps],
        threshold=0.5,
        higher_is_better=False,
    )
    assert lower.flip_rate.value == found.flip_rate.value


def test_the_spread_within_items_of_equal_repetitions_is_the_root_of_the_mean_variance():
    reps = [[0.2, 0.5, 0.9], [0.4, 0.5, 0.8]]
    variances = [statistics.variance(item) for item in zip(*reps, strict=True)]
    assert retest(reps).within_sd.value == pytest.approx(math.sqrt(statistics.mean(variances)))
    assert retest(reps).flip_rate.why == "not computed: no threshold"


def test_a_judge_without_noise_never_flips_and_has_no_spread():
    found = retest([[0, 0.5, 1, 1]] * 3, threshold=0.5, draws=Draws(4))
    assert (found.ccc.value, found.within_sd.value, found.flip_rate.value) == (1, 0, 0)
    assert found.flip_rate.why == "no interval: every resample gives the same value"


def test_retest_is_json_ready():
    found = retest([[0, 0.5, 1], [0, 1, 1]], threshold=1).as_json()
    assert found["n"] == 3 and found["flip_rate"]["value"] == pytest.approx(1 / 3)


def test_attainable_agreement_is_the_geometric_mean_of_both_reliabilities():
    found = attainable(Estimate(0.9, 0.8, 1.0), Estimate(0.4, 0.2, 0.5))
    assert found.value == pytest.approx(0.6) and found.interval == pytest.approx((0.4, math.sqrt(0.5)))
    assert attainable(Estimate(0.81), Estimate(0.25)) == Estimate(0.45)
    assert attainable(Estimate(), Estimate(0.9)).why == "undefined: the test-retest agreement of a side is unknown"
    assert attainable(Estimate(-0.1), Estimate(0.9)).why == "undefined: the test-retest agreement of a side is below 0"


def test_a_single_row_or_an_infinite_score_is_refused():
    with pytest.raises(ValueError, match="two or more rows"):
        krippendorff_alpha([[1, 2, 3]])
    with pytest.raises(ValueError, match="finite numbers, None or NaN"):
        retest([[1, math.inf], [1, 1]])
