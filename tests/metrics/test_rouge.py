from __future__ import annotations

import pytest
from tests.scoring import NATIVE, outcome, value, why

from ragparity.core.errors import ConfigError

# Response 6 words, reference 5; shared words: the, the, cat, on, mat -> as multisets 4 ("the" once in the reference).
CAT = {"response": "The cat sat on the mat", "reference": "a cat on the mat"}


@pytest.mark.parametrize(
    ("rouge_type", "mode", "expected"),
    [
        ("rouge1", "precision", 4 / 6),  # cat, on, the, mat
        ("rouge1", "recall", 4 / 5),
        ("rouge1", "fmeasure", 8 / 11),
        ("rouge2", "precision", 2 / 5),  # on the, the mat
        ("rouge2", "recall", 2 / 4),
        ("rouge2", "fmeasure", 4 / 9),
        ("rougeL", "precision", 4 / 6),  # cat … on the mat
        ("rougeL", "recall", 4 / 5),
        ("rougeL", "fmeasure", 8 / 11),
    ],
)
def test_rouge_by_type_and_mode(rouge_type, mode, expected):
    assert value("RougeScore", {"rouge_type": rouge_type, "mode": mode}, **CAT) == expected


def test_order_counts_for_rouge_l_only():
    turned = {"response": "mat the on cat", "reference": "cat on the mat"}
    assert value("RougeScore", {"rouge_type": "rouge1"}, **turned) == 1.0
    assert value("RougeScore", **turned) == 1 / 4  # any single word


@pytest.mark.parametrize("rouge_type", ["rouge1", "rouge2", "rougeL"])
@pytest.mark.parametrize(
    "text",
    ["กรุงเทพเป็นเมืองหลวง", "東京は日本の首都です。", "北京是中国的首都", "서울은 수도다", "القاهرة عاصمة", "Ёлка и дом"],
)
def test_the_same_text_in_any_script_gives_exactly_one(rouge_type, text):
    assert value("RougeScore", {"rouge_type": rouge_type}, response=text, reference=text) == 1.0


def test_scripts_without_spaces_are_compared_by_character():
    # 東京 and 京都 share 京: 2 * 1 / (2 + 2)
    assert value("RougeScore", response="東京", reference="京都") == 0.5


def test_case_and_punctuation_do_not_count():
    assert value("RougeScore", response="PARIS!", reference="“Paris”") == 1.0


def test_detail_and_reason_give_the_counts():
    found = outcome("RougeScore", **CAT)
    assert found.detail == {"shared": 4, "response": 6, "reference": 5}
    assert found.reason == "4 words are shared in the same order, of 6 in the response and 5 in the reference"


def test_no_unit_to_count_is_undefined_and_not_zero():
    assert why("RougeScore", response="Paris", reference="...") == "no_words"
    assert why("RougeScore", {"rouge_type": "rouge2"}, response="It is Paris", reference="Paris") == "no_words"
    assert why("RougeScore", {"mode": "precision"}, response="...", reference="Paris") == "no_words"
    assert value("RougeScore", response="...", reference="Paris") == 0.0


def test_a_bogus_mode_is_refused():
    with pytest.raises(ConfigError, match=r"mode: .*'fmeasure', 'precision' or 'recall', got 'f1'"):
        NATIVE.build("RougeScore", {"mode": "f1"})
