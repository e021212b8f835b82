"""Verdicts, levels and labels against loops, published tables and properties."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.agreement.kernels import counts_of, same_as_repeated
from tests.reference import naive_agreement as naive

from ragparity.agreement import (
    THREE_BINS,
    auroc,
    balanced_accuracy,
    confusion,
    confusion_table,
    cuts_between,
    gwet,
    into_levels,
    kappa,
    mcnemar,
    raw_agreement,
)

WEIGHTINGS = ("none", "linear", "quadratic")


def from_table(table):
    """Two columns of codes with these counts."""
    rows = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in rows], [j for _, j in rows]


@st.composite
def codes(draw, categories=4):
    n = draw(st.integers(1, 25))
    side = st.lists(st.integers(0, categories - 1), min_size=n, max_size=n)
    return draw(side), draw(side)


@given(codes(), st.sampled_from(WEIGHTINGS))
@settings(max_examples=70, deadline=None)
def test_kappa_and_gwet_equal_their_textbook_loops(pair, weighting):
    a, b = pair
    assert gwet(a, b, 4, weighting=weighting).value == pytest.approx(naive.gwet(a, b, 4, weighting), abs=1e-12)
    found = kappa(a, b, 4, weighting=weighting)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert found.why == "undefined: one side uses a single category"
    else:
        assert found.value == pytest.approx(naive.kappa(a, b, 4, weighting), abs=1e-12)


@given(codes(), st.sampled_from(WEIGHTINGS))
@settings(max_examples=50, deadline=None)
def test_chance_corrected_agreement_is_symmetric_in_range_and_one_for_equal_columns(pair, weighting):
    a, b = pair
    assert gwet(a, b, 4, weighting=weighting).value == pytest.approx(gwet(b, a, 4, weighting=weighting).value)
    assert -1 <= gwet(a, b, 4, weighting=weighting).value <= 1
    assert gwet(a, a, 4, weighting=weighting).value == pytest.approx(1)
    assume(len(set(a)) > 1 and len(set(b)) > 1)
    assert kappa(a, b, 4, weighting=weighting).value == pytest.approx(kappa(b, a, 4, weighting=weighting).value)
    assert -1 <= kappa(a, b, 4, weighting=weighting).value <= 1
    assert kappa(a, a, 4, weighting=weighting).value == pytest.approx(1)


def test_the_textbook_table_of_kappa_gives_four_tenths():
    # 20 + 15 of 50 agree: .7; chance .5·.6 + .5·.4 = .5; (.7 − .5)/.5
    assert kappa(*from_table([[20, 5], [10, 15]])).value == pytest.approx(0.4)


def test_the_paradox_table_of_gwet_gives_his_published_figures():
    # Gwet 2008: 125 subjects, 118 and 0 agreements; κ = −.0234, AC1 = .9408
    table = from_table([[118, 5], [2, 0]])
    assert kappa(*table).value == pytest.approx(-0.0234, abs=5e-5)
    assert gwet(*table).value == pytest.approx(0.9408, abs=5e-5)
    assert raw_agreement(*table).value == pytest.approx(0.944)


def test_categories_that_nobody_used_still_count():
    a, b = [0, 0, 1, 1], [0, 1, 1, 1]
    # the same verdicts on a scale of three: pairs one step apart of two possible ones
    assert gwet(a, b, 3).value != pytest.approx(gwet(a, b, 2).value)
    assert confusion_table(a, b, 3) == ((1, 1, 0), (0, 2, 0), (0, 0, 0))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40))
@settings(max_examples=60, deadline=None)
def test_mcnemar_is_the_binomial_test_of_the_discordant_pairs(pairs):
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    found = mcnemar(a, b)
    assert found.only_a == pairs.count((True, False)) and found.only_b == pairs.count((False, True))
    assert found.p == pytest.approx(naive.binomial_two_sided(found.only_a, found.only_a + found.only_b))


def test_mcnemar_of_18_against_6_has_the_published_p():
    # published for two detectors on 300 rows: 18/6, p = .023
    assert mcnemar([True] * 18 + [False] * 6, [False] * 18 + [True] * 6).p == pytest.approx(0.0227, abs=5e-5)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
@settings(max_examples=70, deadline=None)
def test_auroc_counts_pairs_with_ties_as_half(rows):
    scores, labels = [score / 4 for score, _ in rows], [label for _, label in rows]
    found = auroc(scores, labels)
    if len(set(labels)) == 1:
        assert (found.value, found.why) == (None, "undefined: every label is the same")
    else:
        assert found.value == pytest.approx(naive.auroc(scores, labels), abs=1e-12)
        assert auroc([-score for score in scores], labels).value == pytest.approx(1 - found.value)


def test_balanced_accuracy_is_the_mean_of_both_rates():
    verdicts, labels = [1, 1, 1, 0, 1, 0], [1, 1, 1, 1, 0, 0]
    counts = confusion(verdicts, labels)
    assert (counts.true_pass, counts.false_pass, counts.false_fail, counts.true_fail) == (3, 1, 1, 1)
    assert (counts.sensitivity, counts.specificity) == (0.75, 0.5)
    assert balanced_accuracy(verdicts, labels).value == 0.625
    assert balanced_accuracy([1, 0], [1, 1]).why == "undefined: every label is the same"
    assert confusion([1, 0], [1, 1]).specificity is None


def test_levels_are_cut_half_way_and_bins_at_fixed_places():
    assert cuts_between([1, 0, 0.5, 0.25, 0.75]) == (0.125, 0.375, 0.625, 0.875)
    assert into_levels([0, 0.24, 0.25, 0.74, 0.75, 1], THREE_BINS).tolist() == [0, 0, 1, 1, 2, 2]
    third = 1 / 3
    assert into_levels([0.1 + 0.2], [0.3]).tolist() == [1] == into_levels([1 - 2 * third], [third]).tolist()


@given(codes(categories=3), st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_resample_is_the_statistic_of_the_repeated_rows(pair, seed):
    a, b = map(np.asarray, pair)
    counts = counts_of(len(a), seed)
    same_as_repeated(partial(kappa, categories=3, weighting="quadratic"), (a, b), counts)
    same_as_repeated(partial(gwet, categories=3, weighting="linear"), (a, b), counts)
    same_as_repeated(auroc, (a, b > 0), counts)
    same_as_repeated(balanced_accuracy, (a > 1, b > 0), counts)


def test_raw_agreement_of_all_equal_verdicts_keeps_an_interval():
    found = raw_agreement([1] * 10, [1] * 10)
    assert found.value == 1 and found.high == 1
    assert found.low == pytest.approx(10 / (10 + 1.959964**2), abs=1e-6)  # Wilson at p = 1: n/(n + z²)


def test_no_pairs_give_a_reason():
    for found in (kappa([], []), gwet([], []), auroc([], []), balanced_accuracy([], []), raw_agreement([], [])):
        assert found.value is None and found.why.startswith("undefined: no ")
    assert mcnemar([], []).p == 1.0


def test_codes_and_labels_off_the_scale_are_refused_in_one_line():
    with pytest.raises(ValueError, match=r"whole numbers 0 to 1, got 0\.5"):
        kappa([0, 0.5], [0, 1])
    with pytest.raises(ValueError, match="whole numbers 0 to 2, got 3"):
        gwet([0, 3], [0, 1], 3)
    with pytest.raises(ValueError, match="expected 0 or 1, got 5; say from which value on a label counts as 1"):
        auroc([0.1, 0.2], [5, 1])
    with pytest.raises(ValueError, match="expected at least 2, got 1"):
        kappa([0], [0], 1)
