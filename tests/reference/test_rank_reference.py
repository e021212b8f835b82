"""Rank metrics against ir_measures, which runs trec_eval's own code, on every shape of a ranking."""

from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, R, Success, nDCG
from tests.scoring import value

PAIRS = {
    "HitRate@3": Success @ 3,
    "PrecisionAtK@1": P @ 1,
    "PrecisionAtK@3": P @ 3,
    "RecallAtK@3": R @ 3,
    "NDCG": nDCG,
    "NDCG@3": nDCG @ 3,
    "ReciprocalRank": RR,
    "ReciprocalRank@2": RR @ 2,
    "AveragePrecision": AP,
    "AveragePrecision@3": AP @ 3,
}

ids = st.lists(st.sampled_from([f"d{number}" for number in range(9)]), unique=True, max_size=7)


def by_ir_measures(retrieved, wanted):
    """The values of all measures; scores fall with the rank, so that no tie is left to anybody's taste."""
    qrels = {"q": dict.fromkeys(wanted, 1)}
    run = {"q": {one: float(len(retrieved) - rank) for rank, one in enumerate(retrieved)}}
    return ir_measures.calc_aggregate(list(PAIRS.values()), qrels, run)


@settings(max_examples=60, deadline=None)
@given(retrieved=ids, wanted=ids.filter(bool))
def test_every_rank_metric_agrees_with_trec_eval(retrieved, wanted):
    expected = by_ir_measures(retrieved, wanted)
    for name, measure in PAIRS.items():
        ours = value(name, retrieved_context_ids=retrieved, reference_context_ids=wanted)
        assert ours == pytest.approx(expected[measure], rel=1e-9, abs=1e-9), name


@given(retrieved=ids.filter(bool), wanted=ids.filter(bool))
def test_id_precision_and_recall_are_those_of_the_whole_ranking(retrieved, wanted):
    sample = {"retrieved_context_ids": retrieved, "reference_context_ids": wanted}
    assert value("IDBasedContextPrecision", **sample) == value("PrecisionAtK", **sample)
    assert value("IDBasedContextRecall", **sample) == value("RecallAtK", **sample)
