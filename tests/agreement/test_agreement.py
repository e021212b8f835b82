"""Joining, resampling and the summary of a pair of backends."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragparity.agreement import (
    Draws,
    Estimate,
    Pairs,
    agree,
    ccc,
    estimate,
    holm,
    kernel_of,
    pair,
    pearson,
    proportion,
    sample_size_hint,
    spearman,
)
from ragparity.core.errors import ConfigError, SampleError


def joined(a, b, **more):
    return pair({str(i): x for i, x in enumerate(a)}, {str(i): x for i, x in enumerate(b)}, **more)


def correlated(n, seed=0, levels=None):
    generator = np.random.default_rng(seed)
    a = generator.random(n)
    b = np.clip(a + generator.normal(0, 0.15, n), 0, 1)
    if levels:
        a, b = np.round(a * levels) / levels, np.round(b * levels) / levels
    return joined(a.tolist(), b.tolist())


# ------------------------------------------------------------------------------------------------- joining


def test_rows_without_a_score_are_counted_per_side_and_left_out():
    a = {"1": 1.0, "2": None, "3": math.nan, "4": 0.5, "5": 0.25}
    b = {"1": 0.5, "2": 0.5, "3": None, "4": None, "9": 1.0}
    found = pair(a, b)
    assert (found.ids, found.a, found.b) == (("1",), (1.0,), (0.5,))
    assert (found.n, found.n_unscored_a, found.n_unscored_b, found.n_only_a, found.n_only_b) == (1, 2, 2, 1, 1)


def test_float_dust_is_a_tie():
    found = pair({"1": 0.1 + 0.2, "2": 2 / 3}, {"1": 0.3, "2": 1 - 1 / 3})
    assert found.a == found.b


def test_a_score_that_is_no_finite_number_is_refused_with_its_row():
    with pytest.raises(SampleError, match=r"row 7: the score of native is '0\.5'; expected a number, or null"):
        pair({"7": "0.5"}, {"7": 1.0}, names=("native", "ragas"))
    with pytest.raises(SampleError, match="row 7: the score of b is inf; expected a finite number"):
        pair({"7": 1.0}, {"7": math.inf})
    with pytest.raises(ValueError, match="pairs: 1 ids, 1 and 2 scores"):
        Pairs(ids=("1",), a=(1.0,), b=(1.0, 0.0))


# ---------------------------------------------------------------------------------------------- resampling


def test_an_estimate_holds_finite_numbers_only():
    with pytest.raises(ValueError, match="low of an estimate is a finite number or None, not nan"):
        Estimate(0.5, math.nan, 1.0)
    assert Estimate(np.float64(0.5)).as_json() == {"value": 0.5, "low": None, "high": None, "why": None}


def test_a_resample_draws_as_many_items_as_there_are_and_each_equally_often():
    weights = np.concatenate(list(Draws(7, resamples=3000).blocks()))
    assert weights.shape == (3000, 7) and (weights.sum(axis=1) == 7).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(7), abs=0.1)
    assert weights.var(axis=0) == pytest.approx(np.full(7, 6 / 7), abs=0.1)  # binomial(7, 1/7)


def test_the_seed_alone_decides_the_resamples():
    first, again, other = (np.concatenate(list(Draws(5, seed=seed).blocks())) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
    draws = Draws(5, resamples=10)
    assert (np.concatenate(list(draws.blocks())) == np.concatenate(list(draws.blocks()))).all()


def test_resamples_in_parts_are_the_same_as_at_once(monkeypatch):
    whole = np.concatenate(list(Draws(6, resamples=50, seed=4).blocks()))
    monkeypatch.setattr("ragparity.agreement.resampling._CELLS", 60)
    monkeypatch.setattr("ragparity.agreement.resampling._KEPT_CELLS", 0)
    parts = list(Draws(6, resamples=50, seed=4).blocks())
    assert len(parts) == 5 and (np.concatenate(parts) == whole).all()


def test_clusters_are_drawn_whole():
    weights = np.concatenate(list(Draws(5, clusters=["q1", "q2", "q1", "q2", "q3"]).blocks()))
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 3]).all()
    assert (weights[:, 0] + weights[:, 1] + weights[:, 4] == 3).all()


def test_any_statistic_can_be_resampled():
    a, b = [0.1, 0.4, 0.5, 0.9, 0.7], [0.2, 0.3, 0.6, 0.8, 0.9]
    slow = estimate(kernel_of(lambda x, y: pearson(x, y).value, a, b), 5, draws=Draws(5, resamples=200))
    fast = pearson(a, b, draws=Draws(5, resamples=200))
    assert slow.interval == pytest.approx(fast.interval) and slow.undefined_resamples == fast.undefined_resamples


def test_the_interval_of_a_mean_is_close_to_the_normal_one():
    values = np.random.default_rng(0).random(400)
    found = estimate(lambda w: w @ values / w.sum(axis=1), 400, draws=Draws(400, resamples=4000))
    half = 1.96 * values.std() / 20
    assert found.low == pytest.approx(values.mean() - half, abs=0.003)
    assert found.high == pytest.approx(values.mean() + half, abs=0.003)


def test_undefined_resamples_are_counted_and_too_many_leave_no_interval():
    a, b = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1], [0, 1, 0.5, 1, 1, 1, 1, 1, 1, 1]
    # side a is constant in a resample without its first row: (9/10)^10 = 35 % of them
    found = pearson(a, b, draws=Draws(10, resamples=1000))
    assert found.value is not None and found.interval is None
    assert found.undefined_resamples == pytest.approx(349, abs=50)
    assert found.why == f"no interval: undefined in {found.undefined_resamples} of 1000 resamples"
    some = pearson([0, 0, 0, *a], [0, 0.5, 0, *b], draws=Draws(13, resamples=1000))
    # four of thirteen rows are 0: (9/13)^13 = 0.8 %
    assert 0 < some.undefined_resamples < 30 and some.interval
    assert some.why == f"undefined in {some.undefined_resamples} of 1000 resamples, left out of the interval"


def test_equal_columns_have_no_interval_since_no_resample_differs():
    found = ccc([0, 0.5, 1, 1], [0, 0.5, 1, 1], draws=Draws(4))
    assert found.value == 1 and found.interval is None
    assert "resamples" in found.why or "resample" in found.why


def test_a_proportion_of_clustered_rows_is_resampled():
    flags = np.array([1.0, 1, 0, 0, 1, 1, 0, 0])
    clustered = proportion(flags, Draws(8, clusters=list("aabbccdd")))
    assert clustered.low == 0 and clustered.high == 1  # four questions, two right: anything is possible
    assert proportion(flags).low > 0.2


def test_nothing_to_resample_is_refused():
    with pytest.raises(ValueError, match="at least 1 item and 1 resample, not 0 and 2000"):
        Draws(0)


# ------------------------------------------------------------------------------------------------- summary

cell = st.one_of(st.none(), st.just(math.nan), st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))


@given(
    st.lists(st.tuples(cell, cell), max_size=15),
    st.sampled_from(["continuous", "levels", "binary"]),
    st.sampled_from(["same", "near", "name"]),
    st.sampled_from([None, 0.5, 1.0]),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_no_input_makes_a_nan_and_every_gap_has_a_reason(rows, scale, relation, threshold, clustered):
    pairs = joined([a for a, _ in rows], [b for _, b in rows])
    clusters = {row: int(row) // 2 for row in pairs.ids} if clustered else None
    found = agree(pairs, scale=scale, relation=relation, threshold=threshold, clusters=clusters, resamples=40)
    text = json.dumps(found.as_json(), allow_nan=False)
    assert json.loads(text)["n"] == pairs.n
    for one in found.estimates.values():
        assert one.value is not None or one.why
        assert one.interval or one.why or one.value is not None


def test_the_file_gets_the_promised_keys():
    found = agree(correlated(40), scale="continuous", threshold=0.5, resamples=100).as_json()
    for name in ("mean_diff", "mae", "spearman", "kendall", "ccc"):
        assert isinstance(found[name], float) and found["ci95"][name][0] < found["ci95"][name][1]
    low, high = found["limits_of_agreement"]
    assert low < found["mean_diff"] < high
    assert (found["n"], found["n_unscored_a"], found["n_unscored_b"]) == (40, 0, 0)
    assert sum(map(sum, found["verdict_table"])) == 40 == sum(map(sum, found["level_table"]))


def test_near_definitions_get_ranks_and_bins_but_no_absolute_agreement():
    found = agree(correlated(40), scale="levels", relation="near", threshold=0.5, resamples=100)
    for name in ("mean_diff", "mae", "exact_agreement", "slope", "pearson", "ccc", "icc", "hodges_lehmann"):
        assert found[name] == Estimate(why="not computed: the definitions are near, not the same")
    assert found.limits.low is None and found.as_json()["limits_of_agreement"] is None
    assert found["spearman"].value > 0.5 and found["kendall"].value > 0.3
    assert found.cuts == (0.25, 0.75) and found["kappa_quadratic"].value > 0.5
    assert "the definitions are near, not the same: only ranks and binned scores are compared" in found.notes


def test_definitions_that_only_share_a_name_say_so():
    found = agree(correlated(40), scale="continuous", relation="name", resamples=50)
    assert found["ccc"].why == "not computed: the definitions only share a name"


def test_levels_of_one_scale_are_compared_as_they_are():
    found = agree(correlated(60, levels=4), scale="levels", levels=(0, 0.25, 0.5, 0.75, 1), resamples=50)
    assert found.cuts == (0.125, 0.375, 0.625, 0.875) and len(found.level_table) == 5
    assert found.limits.kind == "empirical"
    assert found["level_agreement"].value == found["exact_agreement"].value


def test_levels_that_are_too_many_to_be_levels_are_binned():
    assert agree(correlated(60), scale="levels", resamples=50).cuts == (0.25, 0.75)


def test_bins_follow_the_range_of_the_scores():
    pairs = joined([1, 2, 3, 5, 5], [1, 2, 3, 4, 5])
    assert agree(pairs, scale="continuous", bounds=(1, 5), resamples=50).cuts == (2.0, 4.0)


def test_binary_scores_become_verdicts_without_a_threshold():
    found = agree(joined([1, 1, 0, 0, 1], [1, 0, 0, 0, 1]), scale="binary", resamples=50)
    assert (found.threshold, found.verdict_table) == (0.5, ((2, 0), (1, 2)))
    assert found["raw_agreement"].value == 0.8
    assert (found.mcnemar.only_a, found.mcnemar.only_b) == (1, 0)
    assert "kappa_quadratic" not in found.estimates


def test_where_lower_is_better_a_low_score_passes():
    found = agree(
        joined([0.1, 0.3, 0.9], [0.2, 0.6, 0.8]),
        scale="continuous",
        threshold=0.3,
        higher_is_better=False,
        resamples=20,
    )
    assert found["pass_rate_a"].value == pytest.approx(2 / 3)
    assert found["pass_rate_b"].value == pytest.approx(1 / 3)


def test_the_threshold_itself_passes_also_with_float_dust():
    found = agree(joined([0.1 + 0.2, 0, 1], [0.3, 0, 1]), scale="continuous", threshold=0.3, resamples=20)
    assert found["pass_rate_a"].value == found["pass_rate_b"].value == pytest.approx(2 / 3)


def test_constant_scores_are_said_in_words():
    found = agree(joined([1.0] * 40, [1.0, 0.5] * 20), scale="continuous", threshold=1.0, resamples=50)
    for name in ("spearman", "kendall", "pearson", "ccc", "icc"):
        assert found[name] == Estimate(why="undefined: constant scores")
    assert found.as_json()["why"]["ccc"] == "undefined: constant scores"
    assert found["kappa"].why == "undefined: one side uses a single category"
    assert found["ac1"].value is not None and found["raw_agreement"].value == 0.5


def test_a_ceiling_is_flagged_with_the_side_and_its_value():
    a, b = [1.0] * 46 + [0.0] * 4, [1.0] * 40 + [0.0] * 10
    found = agree(joined(a, b, names=("native", "ragas")), scale="binary", resamples=50)
    assert found.notes[0] == ("ceiling: 92% of the scores of native are 1, correlations not interpretable")
    assert not any("ragas are" in note for note in found.notes)
    assert found.words is None


def test_no_word_of_praise_below_thirty_pairs_and_one_from_there_on():
    few, enough = agree(correlated(29), scale="continuous"), agree(correlated(30), scale="continuous")
    assert few.words is None and "29 pairs, fewer than 30: too few for a verdict in words" in few.notes
    assert enough.words is not None and enough.words.endswith("agreement (ccc, words of Landis and Koch 1977)")


def test_the_words_cover_the_whole_interval():
    found = agree(correlated(200, seed=3), scale="continuous")
    assert found["ccc"].low > 0.8 and found.words.startswith("almost perfect agreement")
    generator = np.random.default_rng(1)
    a, b = generator.random(40), generator.random(40)
    unrelated = agree(joined(a.tolist(), b.tolist()), scale="continuous")
    assert unrelated["ccc"].low < 0 and unrelated.words.startswith("no to ")


def test_fewer_than_three_pairs_give_counts_and_reasons():
    found = agree(joined([1.0, None, 0.5], [1.0, 1.0, 0.0]), scale="continuous", threshold=0.5)
    assert (found.n, found.n_unscored_a, found.resamples) == (2, 1, 0)
    assert {one.why for one in found.estimates.values()} == {"undefined: fewer than 3 pairs"}
    assert found.limits.why == "undefined: fewer than 3 pairs"
    assert found.hint.startswith("Fewer than 3 pairs: nothing can be said")


def test_the_order_of_the_rows_does_not_matter():
    pairs = correlated(30)
    order = np.random.default_rng(9).permutation(30)
    mixed = Pairs(
        ids=tuple(pairs.ids[i] for i in order), a=tuple(pairs.a[i] for i in order), b=tuple(pairs.b[i] for i in order)
    )
    clusters = {row: int(row) // 2 for row in pairs.ids}
    assert agree(pairs, scale="continuous", threshold=0.5) == agree(mixed, scale="continuous", threshold=0.5)
    assert agree(pairs, scale="continuous", clusters=clusters) == agree(mixed, scale="continuous", clusters=clusters)


def test_the_seed_changes_intervals_only():
    one, two = (agree(correlated(30), scale="continuous", seed=seed) for seed in (1, 2))
    assert one["ccc"].value == two["ccc"].value and one["ccc"].interval != two["ccc"].interval
    assert one["mean_diff"] == two["mean_diff"]


def test_rows_of_one_question_widen_the_intervals():
    base = correlated(20, seed=5)
    copies = Pairs(
        ids=tuple(f"{row}-{k}" for row in base.ids for k in range(5)),
        a=tuple(score for score in base.a for _ in range(5)),
        b=tuple(score for score in base.b for _ in range(5)),
    )
    clusters = {row: row.split("-")[0] for row in copies.ids}
    alone, loose, tied = (
        agree(base, scale="continuous"),
        agree(copies, scale="continuous"),
        agree(copies, scale="continuous", clusters=clusters),
    )
    assert tied["mean_diff"].interval == pytest.approx(alone["mean_diff"].interval)
    width = {
        name: found["ccc"].high - found["ccc"].low
        for name, found in (("alone", alone), ("loose", loose), ("tied", tied))
    }
    assert width["loose"] < 0.7 * width["tied"] and width["tied"] == pytest.approx(width["alone"], rel=0.15)
    assert tied.n == 100 and tied.n_clusters == 20 and tied.hint.startswith("20 clusters: ")
    assert tied["wilcoxon_p"].why == "not computed: rows in clusters are not independent"
    assert tied.words is None  # 20 questions, whatever the number of rows


def test_few_clusters_and_left_out_rows_are_said():
    pairs = pair(
        {"1": 1.0, "2": None, "3": 0.0, "4": 0.5, "5": 1.0}, {"1": 1.0, "2": 0.5, "3": 0.5, "4": 0.5, "6": 0.1}
    )
    found = agree(pairs, scale="continuous", clusters={"1": "q", "3": "r", "4": "r"}, resamples=50)
    assert "only 2 clusters: below 20, intervals by resampling are too short" in found.notes
    assert "left out, not compared as 0: 1 rows that a and 0 that b did not score" in found.notes
    assert "rows of one side alone: 1 of a, 1 of b" in found.notes


def test_very_many_different_pairs_get_fewer_resamples_and_say_so(monkeypatch):
    monkeypatch.setattr("ragparity.agreement.summary._MOST_WORK", 300 * 50 * 50)
    found = agree(correlated(50), scale="continuous", resamples=500)
    assert found.resamples == 300 and "300 resamples instead of 500, for time" in found.notes


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"scale": "ordinal"}, "scale is 'ordinal'; expected continuous, levels, binary"),
        ({"relation": "other"}, "relation is 'other'; expected same, near, name"),
        ({"bounds": (1.0, 1.0)}, r"bounds are \(1.0, 1.0\); expected the lowest and the highest score"),
        ({"levels": [1.0]}, r"levels are \[1.0\]; expected at least two"),
        ({"clusters": {"0": "q"}}, r"row 1 has no cluster \(4 rows have none\); give each one"),
    ],
)
def test_unusable_settings_are_one_line(more, message):
    with pytest.raises(ConfigError, match=message):
        agree(correlated(5), **{"scale": "continuous", **more})


def test_the_hint_follows_the_number_of_pairs():
    assert "±.25 on kappa" not in sample_size_hint(20) and "±.27 on kappa" in sample_size_hint(20)
    assert sample_size_hint(49).endswith("take 50, and 100 for a claim about bias.")
    assert sample_size_hint(50).endswith(
        "Enough to look; a claim about bias takes 100, kappa or a difference between two backends 200."
    )
    assert sample_size_hint(200).endswith("Enough for kappa and for a difference between two backends.")


def test_holm_steps_down_in_order():
    # sorted .01 .02 .03 .04: times 4, 3, 2, 1 = .04 .06 .06 .04, never falling
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert holm([0.9, 0.8]) == (1.0, 1.0) and holm([None, 0.0]) == (None, 0.0)


def test_dust_would_break_ties_in_ranks_and_pairs_prevent_it():
    a = [0.1 + 0.2, 0.3, 0.3, 0.9]
    b = [0.2, 0.5, 0.1, 0.6]
    assert agree(joined(a, b), scale="continuous", resamples=20)["spearman"].value == pytest.approx(
        spearman([0.3, 0.3, 0.3, 0.9], b).value
    )
    assert spearman(a, b).value != pytest.approx(spearman([0.3, 0.3, 0.3, 0.9], b).value)


def test_it_works_without_scipy():
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "from ragparity.agreement import *\n"
        "p = pair({str(i): i / 9 for i in range(10)}, {str(i): (i % 4) / 3 for i in range(10)})\n"
        "print(agree(p, scale='continuous', threshold=0.5)['ccc'].interval is not None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr
