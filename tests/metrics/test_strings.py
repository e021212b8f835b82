from __future__ import annotations

import pytest
from tests.scoring import NATIVE, outcome, value, why

from ragparity.core.errors import ConfigError
from ragparity.core.policy import Policies

STRINGS = ["ExactMatch", "StringPresence", "NonLLMStringSimilarity", "TokenF1"]
SCRIPTS = ["กรุงเทพเป็นเมืองหลวง", "東京は日本の首都です。", "北京是中国的首都", "서울은 수도다", "القاهرة", "Paris", "👍"]


@pytest.mark.parametrize("name", STRINGS)
@pytest.mark.parametrize("how", ["none", "case", "full"])
@pytest.mark.parametrize("text", SCRIPTS)
def test_the_same_text_in_any_script_gives_exactly_one(name, how, text):
    assert value(name, {"normalise": how}, response=text, reference=text) == 1.0


@pytest.mark.parametrize(
    ("response", "none", "case", "full"),
    [
        ("Paris", 1.0, 1.0, 1.0),
        ("PARIS", 0.0, 1.0, 1.0),
        ("Paris ", 0.0, 0.0, 1.0),
        ("“Paris.”", 0.0, 0.0, 1.0),
        ("Pari", 0.0, 0.0, 0.0),
    ],
)
def test_exact_match_at_each_level_of_normalising(response, none, case, full):
    for how, expected in (("none", none), ("case", case), ("full", full)):
        assert value("ExactMatch", {"normalise": how}, response=response, reference="Paris") == expected


@pytest.mark.parametrize(("response", "reference"), [("35", "3.5"), ("5", "-5"), ("5", "5%"), ("5", ".5")])
def test_full_normalising_never_makes_two_values_equal(response, reference):
    assert value("ExactMatch", {"normalise": "full"}, response=response, reference=reference) == 0.0


def test_composed_and_decomposed_letters_differ_unless_normalised():
    texts = {"response": "Café", "reference": "Cafe\u0301"}
    assert value("ExactMatch", **texts) == 0.0
    assert value("ExactMatch", {"normalise": "full"}, **texts) == 1.0


def test_presence_looks_for_the_reference_in_the_response_and_not_the_other_way_round():
    assert value("StringPresence", response="It is Paris.", reference="Paris") == 1.0
    assert value("StringPresence", response="Paris", reference="It is Paris.") == 0.0
    assert value("StringPresence", response="It is PARIS.", reference="Paris") == 0.0
    assert value("StringPresence", {"normalise": "case"}, response="It is PARIS.", reference="Paris") == 1.0
    found = outcome("StringPresence", response="It is Paris.", reference="Paris")
    assert found.reason == "the reference stands in the response at 6"
    assert (
        outcome("StringPresence", response="Rome", reference="Paris").reason == "the reference is not in the response"
    )


@pytest.mark.parametrize(
    ("measure", "response", "reference", "expected"),
    [
        ("levenshtein", "kitten", "sitting", 4 / 7),  # 3 edits, 7 characters
        ("levenshtein", "ab", "ba", 0.0),  # 2 edits of 2
        ("levenshtein", "abcde", "abcdf", 0.8),  # not 0.8000000000000000444
        ("hamming", "karolin", "kathrin", 4 / 7),  # 3 places differ
        ("hamming", "Rome", "Romes", 0.8),  # the place that only one has differs
        ("jaro", "MARTHA", "MARHTA", 17 / 18),  # (6/6 + 6/6 + 5/6) / 3
        ("jaro_winkler", "MARTHA", "MARHTA", 173 / 180),  # 17/18 + 3 * 0.1 * 1/18
    ],
)
def test_string_similarity_by_each_measure(measure, response, reference, expected):
    found = value("NonLLMStringSimilarity", {"distance_measure": measure}, response=response, reference=reference)
    if measure.startswith("jaro"):
        assert found == pytest.approx(expected, rel=1e-12)
    else:
        assert found == expected


def test_similarity_of_nothing_left_of_the_response_is_zero():
    assert value("NonLLMStringSimilarity", {"normalise": "full"}, response="?!", reference="Paris") == 0.0


@pytest.mark.parametrize(
    ("response", "reference", "expected"),
    [
        ("It is Paris.", "Paris", 2 * 1 / (3 + 1)),
        ("paris paris", "Paris", 2 * 1 / (2 + 1)),  # the second one has no partner
        ("Rome", "Paris", 0.0),
        ("5.3", "3.5", 0.0),  # a number is one token
        ("東京", "京都", 2 * 1 / (2 + 2)),  # each character is a token
        ("the Paris", "Paris", 2 * 1 / (2 + 1)),  # articles count
    ],
)
def test_token_f1(response, reference, expected):
    assert value("TokenF1", response=response, reference=reference) == expected


def test_token_f1_without_normalising_keeps_case_and_punctuation():
    assert value("TokenF1", {"normalise": "none"}, response="Paris.", reference="Paris") == 0.0
    assert value("TokenF1", {"normalise": "case"}, response="PARIS", reference="Paris") == 1.0


def test_token_f1_shows_the_shared_tokens():
    found = outcome("TokenF1", response="the cat sat", reference="the cat ran off")
    assert found.value == 2 * 2 / (3 + 4)
    assert found.detail == {"shared": ["cat", "the"], "response_tokens": 3, "reference_tokens": 4}
    assert found.reason == "2 tokens are shared by 3 of the response and 4 of the reference"


@pytest.mark.parametrize("name", STRINGS)
def test_a_reference_of_which_nothing_is_left_is_undefined(name):
    # Otherwise every response would hold it, and "..." would equal "?".
    assert why(name, {"normalise": "full"}, response="?", reference="...") == "no_text"


@pytest.mark.parametrize("name", STRINGS)
@pytest.mark.parametrize("blank", [None, "", "  \n"])
def test_a_blank_side_is_missing(name, blank):
    assert why(name, response="Paris", reference=blank) == "missing:reference"
    assert why(name, response=blank, reference="Paris") == "missing:response"


def test_the_best_of_several_references_counts():
    found = outcome("ExactMatch", response="NYC", references=["New York", "NYC"])
    assert (found.value, found.detail["reference_used"]) == (1.0, 1)
    mean = outcome("ExactMatch", response="NYC", references=["New York", "NYC"], policies=Policies(references="mean"))
    assert mean.value == 0.5


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [("ExactMatch", {"normalise": "all"}), ("NonLLMStringSimilarity", {"distance_measure": "cosine"})],
)
def test_an_unknown_setting_is_refused_with_the_accepted_ones(name, kwargs):
    with pytest.raises(ConfigError, match=r"'none', 'case' or 'full'|'levenshtein', 'hamming', 'jaro' or"):
        NATIVE.build(name, kwargs)
