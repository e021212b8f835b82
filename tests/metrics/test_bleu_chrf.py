from __future__ import annotations

import math
import sys

import pytest
from tests.scoring import NATIVE, outcome, value, why

from ragparity.core.errors import MissingExtra

BOTH = ["BleuScore", "CHRFScore"]


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "กรุงเทพเป็นเมืองหลวง",
        "東京は日本の首都です。",
        "北京是中国的首都",
        "Paris",
        "42",
        "It is Paris.",
        "The cat sat on the mat. It was a warm day, and nobody came.",
    ],
)
def test_the_same_text_in_any_script_and_length_gives_exactly_one(name, text):
    found = outcome(name, response=text, reference=text)
    assert (found.status, found.value) == ("scored", 1.0)


def test_bleu_by_hand():
    # 5 of 6 tokens (the, cat, on, the, mat), 3 of 5 pairs, 1 of 4 triples, 0 of 3 quadruples -> 1 / (2 * 3) smoothed.
    texts = {"response": "the cat sits on the mat", "reference": "the cat sat on the mat"}
    expected = (5 / 6 * 3 / 5 * 1 / 4 * 1 / 6) ** (1 / 4)
    found = outcome("BleuScore", **texts)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.reason == "5 of 6 tokens and 3 of 5 token pairs match"
    assert found.detail["ngrams"][2] == {"n": 3, "matched": 1, "of": 4}


def test_bleu_punishes_brevity_and_ignores_lengths_that_a_short_response_cannot_have():
    # Both tokens and the pair match, the response has half the length: exp(1 - 4/2).
    found = value("BleuScore", response="the cat", reference="the cat sat down")
    assert found == pytest.approx(math.exp(-1), rel=1e-12)


def test_bleu_reads_the_whole_response_and_not_its_first_sentence():
    right = "It is Paris. The river is the Seine."
    wrong = "It is Paris. Rabbits eat carrots all day."
    assert value("BleuScore", response=wrong, reference=right) < 0.5


def test_bleu_compares_scripts_without_spaces_by_character():
    # 6 of 7 characters agree; as one unbroken token nothing would.
    assert value("BleuScore", response="北京是中国的首城", reference="北京是中国的首都") > 0.8


def test_chrf_by_hand():
    # "ab" and "abc": 1-grams 2/2 and 2/3, 2-grams 1/1 and 1/2; means P = 1, R = 7/12; F2 = 5PR / (4P + R).
    precision, recall = 1, (2 / 3 + 1 / 2) / 2
    expected = 5 * precision * recall / (4 * precision + recall)
    assert value("CHRFScore", response="ab", reference="abc") == pytest.approx(expected, rel=1e-12)


def test_chrf_settings_reach_the_count():
    texts = {"response": "ab", "reference": "abc"}
    # One order only: P = 2/2, R = 2/3, F1 = 4/5.
    assert value("CHRFScore", {"char_order": 1, "beta": 1}, **texts) == pytest.approx(4 / 5, rel=1e-12)
    # One word order more, "ab" against "abc", shares nothing: P = 1/2, R = 1/3, F1 = 2/5.
    with_words = value("CHRFScore", {"char_order": 1, "word_order": 1, "beta": 1}, **texts)
    assert with_words == pytest.approx(2 / 5, rel=1e-12)
    assert outcome("CHRFScore", {"word_order": 2}, **texts).reason.startswith("chrF++ ")


@pytest.mark.parametrize("name", BOTH)
def test_normalising_comes_first(name):
    texts = {"response": "“PARIS”", "reference": "paris."}
    assert value(name, **texts) < 1.0
    assert value(name, {"normalise": "full"}, **texts) == 1.0


@pytest.mark.parametrize("name", BOTH)
def test_a_reference_of_which_nothing_is_left_is_undefined(name):
    assert why(name, {"normalise": "full"}, response="Paris", reference="...") == "no_text"


@pytest.mark.parametrize("name", BOTH)
def test_nothing_in_common_is_zero(name):
    assert value(name, response="xyz", reference="abc") == 0.0


@pytest.mark.parametrize("name", [*BOTH, "ChrfScore"])
def test_without_sacrebleu_the_metric_is_not_built_and_the_message_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ragparity\[text\]'") as caught:
        NATIVE.build(name, {})
    assert isinstance(caught.value.__cause__, ImportError)
    assert str(caught.value).count("\n") == 0


def test_the_other_metrics_do_not_need_sacrebleu(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    assert value("RougeScore", response="Paris", reference="Paris") == 1.0
