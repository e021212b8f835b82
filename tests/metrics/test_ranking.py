from __future__ import annotations

import math

import pytest
from tests.scoring import NATIVE, outcome, value, why

from ragparity.core.errors import ConfigError, UnknownMetric
from ragparity.metrics.ranking import average_precision, ndcg

SHOP = {"retrieved_context_ids": ["a", "b", "c", "d"], "reference_context_ids": ["b", "d", "z"]}
BY_RANK = ["HitRate", "PrecisionAtK", "RecallAtK", "NDCG", "ReciprocalRank", "AveragePrecision"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("HitRate@1", 0.0),
        ("HitRate@2", 1.0),
        ("HitRate", 1.0),
        ("PrecisionAtK@2", 1 / 2),
        ("PrecisionAtK@5", 2 / 5),  # four were retrieved, the divisor is k
        ("PrecisionAtK", 2 / 4),
        ("RecallAtK@1", 0.0),
        ("RecallAtK@2", 1 / 3),
        ("RecallAtK", 2 / 3),
        ("ReciprocalRank", 1 / 2),
        ("ReciprocalRank@1", 0.0),
        ("AveragePrecision", 1 / 3),  # (1/2 + 2/4) / 3 wanted
        ("AveragePrecision@2", 1 / 6),  # (1/2) / 3 wanted
    ],
)
def test_wanted_ids_at_ranks_two_and_four_of_three_wanted(name, expected):
    assert value(name, **SHOP) == expected


def test_ndcg_weighs_ranks_by_the_logarithm():
    gained = 1 / math.log2(3) + 1 / math.log2(5)  # ranks 2 and 4
    best = 1 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)  # three wanted ids in front
    assert value("NDCG", **SHOP) == pytest.approx(gained / best, rel=1e-15)
    # Within the first two ranks one id is found at rank 2, and the best ranking has two.
    assert value("NDCG@2", **SHOP) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)), rel=1e-15)


@pytest.mark.parametrize("name", [*BY_RANK, *(f"{name}@7" for name in BY_RANK)])
@pytest.mark.parametrize("n", [7, 13])
def test_the_best_ranking_gives_exactly_one(name, n):
    if name == "RecallAtK@7" and n > 7:
        expected = 7 / 13  # seven ranks cannot hold thirteen ids
    elif name == "AveragePrecision@7" and n > 7:
        expected = 7 / 13
    else:
        expected = 1.0
    ids = [str(number) for number in range(n)]
    assert value(name, retrieved_context_ids=ids, reference_context_ids=ids[::-1]) == expected


@pytest.mark.parametrize(
    ("hits", "expected"), [([1, 1], 1.0), ([0, 1], 0.5), ([1, 0], 1.0), ([0, 0], 0.0), ([0, 1, 0, 1], 0.5)]
)
def test_average_precision_over_the_useful_passages_is_exact(hits, expected):
    assert average_precision([bool(hit) for hit in hits], of=sum(hits)) == expected


def test_no_hit_has_no_gain():
    assert ndcg([False, False], wanted=3) == 0.0


def test_a_repeated_id_stands_at_its_first_rank_only():
    # a, a, b is read as a, b: b stands at rank 2.
    sample = {"retrieved_context_ids": ["a", "a", "b"], "reference_context_ids": ["b"]}
    assert value("ReciprocalRank", **sample) == 0.5
    assert outcome("ReciprocalRank", **sample).detail["ranks"] == [2]
    again = {"retrieved_context_ids": ["b", "b", "a", "c"], "reference_context_ids": ["b"]}
    assert value("Precision@2", **again) == 0.5


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("HitRate", "the first wanted id stands at rank 2"),
        ("HitRate@1", "no wanted id stands among the first 1"),
        ("ReciprocalRank@3", "the first wanted id stands at rank 2"),
        ("PrecisionAtK@3", "1 of the first 3 ids are wanted"),
        ("PrecisionAtK", "2 of the first 4 ids are wanted"),
        ("RecallAtK@2", "1 of 3 wanted ids stand among the first 2"),
        ("NDCG", "2 of 3 wanted ids stand in the ranking"),
    ],
)
def test_the_reason_says_where(name, reason):
    assert outcome(name, **SHOP).reason == reason


@pytest.mark.parametrize("name", BY_RANK)
def test_nothing_wanted_is_undefined(name):
    assert why(name, retrieved_context_ids=["a"], reference_context_ids=[]) == "no_reference_ids"


@pytest.mark.parametrize("name", [f"{name}@5" for name in BY_RANK])
def test_nothing_retrieved_misses_everything(name):
    assert value(name, retrieved_context_ids=[], reference_context_ids=["a"]) == 0.0


def test_nothing_retrieved_has_no_precision_without_a_cut_off():
    assert why("PrecisionAtK", retrieved_context_ids=[], reference_context_ids=["a"]) == "no_retrieved_ids"
    assert outcome("HitRate", retrieved_context_ids=[], reference_context_ids=["a"]).reason == (
        "no wanted id was retrieved"
    )


@pytest.mark.parametrize(
    ("spelled", "spec"),
    [
        ("HitRate@5", "HitRate(k=5)"),
        ("hitrate@5", "HitRate(k=5)"),
        ("nDCG@10", "NDCG(k=10)"),
        ("precision@3", "PrecisionAtK(k=3)"),
        ("P@3", "PrecisionAtK(k=3)"),
        ("Recall@3", "RecallAtK(k=3)"),
        ("MRR@10", "ReciprocalRank(k=10)"),
        ("MRR", "ReciprocalRank()"),
        ("MAP", "AveragePrecision()"),
        ("Success@1", "HitRate(k=1)"),
    ],
)
def test_a_cut_off_may_stand_in_the_name(spelled, spec):
    assert repr(NATIVE.build(spelled, {})) == spec


def test_a_cut_off_in_the_name_equals_the_kwarg():
    assert NATIVE.build("HitRate@5", {}) == NATIVE.build("HitRate", {"k": 5}) == NATIVE.build("HitRate@5", {"k": 5})


def test_two_different_cut_offs_are_refused():
    with pytest.raises(ConfigError, match=r"metric HitRate@5: k is 5 in the name and 3 in the kwargs"):
        NATIVE.build("HitRate@5", {"k": 3})


@pytest.mark.parametrize("k", [0, -1, True, 2.5, "5"])
def test_a_cut_off_is_a_whole_number_from_one(k):
    with pytest.raises(ConfigError, match="metric HitRate: k: "):
        NATIVE.build("HitRate", {"k": k})


def test_a_cut_off_of_zero_in_the_name_is_refused():
    with pytest.raises(ConfigError, match="greater than or equal to 1"):
        NATIVE.build("HitRate@0", {})


def test_a_metric_without_a_cut_off_refuses_one():
    with pytest.raises(UnknownMetric, match="ExactMatch has no cut-off k; leave out @5"):
        NATIVE.build("ExactMatch@5", {})


@pytest.mark.parametrize(
    ("typo", "meant"), [("HitRat@5", "HitRate"), ("HitRate@x", "HitRate"), ("Precison@3", "Precision@k")]
)
def test_a_misspelt_name_with_a_cut_off_gets_a_hint(typo, meant):
    with pytest.raises(UnknownMetric, match=f"Did you mean {meant}"):
        NATIVE.build(typo, {})
