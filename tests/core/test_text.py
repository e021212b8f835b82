from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragparity.core.text import folded, normalised, spaced, words


def test_none_changes_nothing_and_case_changes_case_only():
    text = "  The\tＡ  Straße.  "
    assert normalised(text, "none") == text
    assert normalised(text, "case") == "  the\tａ  strasse.  "


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("  Paris.\n", "paris"),
        ("“Paris”, (France)!", "paris france"),
        ("**Paris** `x`", "paris x"),
        ("3.5", "3.5"),  # not 35
        ("3,000.", "3,000"),
        ("-5", "-5"),  # not 5
        (".5!", ".5"),  # not 5
        ("5%", "5%"),  # not 5
        ("C#", "c#"),
        ("don't", "don't"),
        ("the", "the"),  # articles stay
        ("東京。", "東京"),
        ("ﬁne ½", "fine 1⁄2"),  # compatibility forms
        ("co\u00adop\u200b", "coop"),  # soft hyphen and zero-width space are not seen
        ("?!", ""),
    ],
)
def test_full_drops_what_does_not_change_the_meaning(text, full):
    assert normalised(text, "full") == full


def bared(word):
    """Each sign of punctuation at the ends taken away, one by one, but for a point before a digit."""
    while word and punctuation(word[-1]):
        word = word[:-1]
    while word and punctuation(word[0]) and not (word[0] == "." and word[1:2].isdigit()):
        word = word[1:]
    return word


def punctuation(sign):
    kind = unicodedata.category(sign)
    return kind in ("Ps", "Pe", "Pi", "Pf") or sign == "`" or (kind == "Po" and sign not in "#%&/@\\§‰‱")


@given(st.text(alphabet="a5.,!?(['`-_%#\\«…é", min_size=1))
def test_only_punctuation_at_the_ends_of_a_word_goes_in_ascii_as_in_other_text(word):
    assert normalised(word, "full") == bared(folded(word))


def test_composed_and_decomposed_letters_fold_to_the_same_text():
    assert folded("Café") == folded("Cafe\u0301") == "café"


@given(st.text())
def test_folding_twice_is_folding_once(text):
    assert folded(folded(text)) == folded(text)


@given(st.text())
def test_full_leaves_no_outer_or_double_blanks(text):
    assert normalised(text, "full") == " ".join(normalised(text, "full").split())


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_words_of_ascii_text_are_its_runs_of_letters_and_digits(text):
    assert words(text) == re.findall(r"[a-z0-9]+", text.lower())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京は", ["東", "京", "は"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("ที่", ["ที่"]),  # one letter with a vowel and a tone mark above
        ("か\u3099", ["が"]),  # a mark is part of its letter
        ("한국어 말", ["한국어", "말"]),  # Korean is written with spaces
        ("Größe, naïve", ["grösse", "naïve"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),  # vowel signs do not split a word
        ("العربية", ["العربية"]),
        ("👍 ok", ["👍", "ok"]),
        ("...", []),
    ],
)
def test_words_of_other_scripts(text, expected):
    assert words(text) == expected


def test_spacing_leaves_scripts_with_spaces_alone_and_keeps_every_character():
    assert spaced("Paris is  small.") == "Paris is  small."
    assert spaced("a東京b").split() == ["a", "東", "京", "b"]


@given(st.text())
def test_spacing_only_adds_blanks(text):
    assert spaced(text).replace(" ", "") == text.replace(" ", "")
