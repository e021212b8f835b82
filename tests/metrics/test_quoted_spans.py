from __future__ import annotations

import pytest
from tests.scoring import NATIVE, outcome, value, why

from ragparity.core.errors import ConfigError
from ragparity.metrics.quoted_spans import quoted_spans, stands_in

NAME = "QuotedSpansAlignment"
SHOP = "The shop is open all day. Parcels take 3.5 days."


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ('It says "open all day".', ["open all day"]),
        ("It says “open all day”.", ["open all day"]),
        ("Da steht „den ganzen Tag offen“.", ["den ganzen Tag offen"]),
        ("Es steht »den ganzen Tag offen« da.", ["den ganzen Tag offen"]),
        ("On lit «ouvert toute la journée».", ["ouvert toute la journée"]),
        ("Där står ”öppet hela dagen”.", ["öppet hela dagen"]),
        ("「一日中営業」とある。", ["一日中営業"]),
        ("It says 'open all day'.", ["open all day"]),
        ("It says ‘don’t ring the bell’.", ["don’t ring the bell"]),
        ("It says 'don't ring the bell'.", ["don't ring the bell"]),
        ("“one two three” and “four five six”", ["one two three", "four five six"]),
        ("“he said ‘open all day’ twice”", ["he said ‘open all day’ twice"]),  # the outer one
        ("The dogs' bowls and the cats' toys don't match.", []),  # apostrophes
        ('A 5" pipe and a 6" pipe.', []),  # inches
        ('An odd " mark opens nothing', []),
        ("no quotation", []),
    ],
)
def test_what_is_a_quotation(text, spans):
    assert quoted_spans(text) == spans


@pytest.mark.parametrize(
    ("span", "passage", "found"),
    [
        ("open all day", SHOP, True),
        ("OPEN all\n day", SHOP, True),
        ("open all day,", SHOP, True),  # the comma belongs to the sentence round the quotation
        ("open all night", SHOP, False),
        ("pen all day", SHOP, False),  # whole words only
        ("open all da", SHOP, False),
        ("take 3.5 days", SHOP, True),
        ("take 3,5 days", SHOP, False),
        ("it's here", "It’s here.", True),  # the shape of an apostrophe does not count
        ("営業中", "本日は営業中です", True),  # no spaces, no word edges
    ],
)
def test_what_stands_in_a_passage(span, passage, found):
    assert stands_in(span, passage) is found


def test_the_score_is_the_share_of_the_quotations_that_are_found():
    found = outcome(
        NAME,
        response='They are "open all day", "closed on Monday" and "parcels take 3.5 days".',
        retrieved_contexts=["Nothing here.", SHOP],
    )
    assert found.value == 2 / 3
    assert found.reason == "2 of 3 quoted spans stand in the contexts"
    assert found.detail["spans"] == [
        {"text": "open all day", "found": True, "passage": 1},
        {"text": "closed on Monday", "found": False, "passage": None},
        {"text": "parcels take 3.5 days", "found": True, "passage": 1},
    ]


def test_a_quotation_must_stand_in_one_passage():
    assert value(NAME, response='"open all day"', retrieved_contexts=["open all", "day"]) == 0.0


def test_short_quotations_do_not_count():
    sample = {"response": 'The "shop" is "open all day".', "retrieved_contexts": ["open all day"]}
    assert value(NAME, **sample) == 1.0
    assert value(NAME, {"min_span_words": 1}, **sample) == 0.5
    assert why(NAME, {"min_span_words": 4}, **sample) == "no_quoted_spans"


def test_case_counts_on_request():
    sample = {"response": '"Open All Day"', "retrieved_contexts": [SHOP]}
    assert value(NAME, **sample) == 1.0
    assert value(NAME, {"casefold": False}, **sample) == 0.0


def test_a_response_without_quotations_is_undefined_and_not_perfect():
    assert why(NAME, response="They are open all day.", retrieved_contexts=[SHOP]) == "no_quoted_spans"


def test_quoted_punctuation_is_no_quotation():
    assert why(NAME, {"min_span_words": 1}, response='The mark "?!" is odd.', retrieved_contexts=[SHOP]) == (
        "no_quoted_spans"
    )


def test_min_span_words_is_at_least_one():
    with pytest.raises(ConfigError, match="min_span_words: input should be greater than or equal to 1, got 0"):
        NATIVE.build(NAME, {"min_span_words": 0})
