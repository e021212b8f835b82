from __future__ import annotations

import pytest
from tests.scoring import NATIVE, outcome, value, why

from ragparity.core.errors import ConfigError

PRECISION, RECALL = "NonLLMContextPrecisionWithReference", "NonLLMContextRecall"

# Against the reference passage "abcd": similarity 1, 3/4, 1/2, 0.
SAME, NEAR, HALF, FAR = "abcd", "abcx", "abxy", "wxyz"


@pytest.mark.parametrize(
    ("retrieved", "expected"),
    [
        ([FAR, SAME, FAR, NEAR], 1 / 2),  # (1/2 + 2/4) / 2
        ([SAME, FAR, NEAR, FAR], 5 / 6),  # (1/1 + 2/3) / 2
        ([SAME, NEAR, FAR, FAR], 1.0),  # exactly, no epsilon
        ([FAR, HALF], 1 / 2),  # a similarity of exactly the threshold matches
        ([FAR, FAR], 0.0),
    ],
)
def test_precision_is_weighted_by_rank(retrieved, expected):
    assert value(PRECISION, retrieved_contexts=retrieved, reference_contexts=[SAME]) == expected


def test_recall_is_the_share_of_reference_passages_with_a_match():
    sample = {"retrieved_contexts": [NEAR, FAR], "reference_contexts": [SAME, "zzzzzzzz", "mnop"]}
    assert value(RECALL, **sample) == 1 / 3


def test_a_similarity_of_exactly_the_threshold_counts_unless_strict():
    sample = {"retrieved_contexts": [HALF], "reference_contexts": [SAME]}
    assert value(RECALL, **sample) == 1.0
    assert value(RECALL, {"strict": True}, **sample) == 0.0
    assert value(RECALL, {"strict": True, "threshold": 0.49}, **sample) == 1.0


@pytest.mark.parametrize("tenths", range(1, 10))
def test_decimal_thresholds_meet_the_fractions_they_stand_for(tenths):
    # Ten characters of which `tenths` agree: the similarity is tenths / 10, and 0.1 * 3 style dust must not matter.
    passage = "a" * tenths + "b" * (10 - tenths)
    sample = {"retrieved_contexts": [passage], "reference_contexts": ["a" * 10]}
    assert value(RECALL, {"threshold": float(f"0.{tenths}")}, **sample) == 1.0
    assert value(RECALL, {"threshold": float(f"0.{tenths}1")}, **sample) == 0.0


def test_every_passage_keeps_its_text_similarity_and_closest_reference():
    found = outcome(PRECISION, retrieved_contexts=[FAR, "mnox"], reference_contexts=[SAME, "mnop"])
    assert found.reason == "1 of 2 retrieved passages match a reference passage"
    assert found.detail["retrieved_contexts"] == [
        {"passage": 0, "text": FAR, "similarity": 0.0, "closest": 0, "matched": False},
        {"passage": 1, "text": "mnox", "similarity": 0.75, "closest": 1, "matched": True},
    ]


def test_blank_passages_are_dropped_before_ranks_are_counted():
    # With the blank passage at rank 1 the match would stand at rank 2 and give 1/2.
    found = outcome(PRECISION, retrieved_contexts=["", SAME], reference_contexts=[SAME, " "])
    assert found.value == 1.0
    assert (found.detail["blank_retrieved_contexts_dropped"], found.detail["blank_reference_contexts_dropped"]) == (
        1,
        1,
    )


@pytest.mark.parametrize("name", [PRECISION, RECALL])
@pytest.mark.parametrize("blank", [[], [""], [" ", "\n"]])
def test_blank_contexts_are_undefined(name, blank):
    assert why(name, retrieved_contexts=blank, reference_contexts=[SAME]) == "blank_contexts"
    assert why(name, retrieved_contexts=[SAME], reference_contexts=blank) == "blank_contexts"


def test_another_measure_can_be_chosen():
    # One character in front moves everything: 1 edit of 5 for Levenshtein, 5 of 5 places for Hamming.
    sample = {"retrieved_contexts": ["xabcd"], "reference_contexts": [SAME]}
    assert value(RECALL, **sample) == 1.0
    assert value(RECALL, {"distance_measure": "hamming"}, **sample) == 0.0


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "high"])
def test_a_threshold_is_a_number_from_zero_to_one(threshold):
    with pytest.raises(ConfigError, match=f"metric {RECALL}: threshold: "):
        NATIVE.build(RECALL, {"threshold": threshold})
