"""Yes, no and cannot tell, however a judge spells them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from ragparity.core.verdicts import read_verdict
from ragparity.verdicts import SHOWN_TO_THE_JUDGE, Verdict


class Judged(BaseModel):
    reason: str
    verdict: Verdict


@pytest.mark.parametrize(
    "said",
    [
        1,
        1.0,
        True,
        "1",
        "1.",
        "1.0",
        " 1 ",
        "true",
        "TRUE",
        "yes",
        "Yes.",
        "YES",
        " yes",
        "**Yes**",
        '"yes"',
        "yes, partly",
        "Yes, because the port is stated",
        "ｙｅｓ",
        "yes\u200b",
        "(yes)",
        "yes - stated",
        "yes, no doubt",
    ],
)
def test_a_yes_is_a_yes_by_its_first_word(said):
    assert read_verdict(said) is True


@pytest.mark.parametrize(
    "said",
    [0, 0.0, False, "0", "0.", "0.0", "false", "no", "No.", "NO", "no, the port differs", "No - it is absent", "-0"],
)
def test_a_no_is_a_no_by_its_first_word(said):
    assert read_verdict(said) is False


@pytest.mark.parametrize(
    "said",
    [
        None,
        -1,
        -1.0,
        "-1",
        "\u22121",
        "null",
        "None",
        "unknown",
        "Unknown.",
        "unclear",
        "cannot tell",
        "Can't tell",
        "I cannot tell from the text",
        "can’t tell",
        "cannot determine",
        "not sure",
        "unsure",
        "n/a",
        "N/A",
        "not applicable",
    ],
)
def test_cannot_tell_is_neither(said):
    assert read_verdict(said) is None


@pytest.mark.parametrize(
    "said",
    [
        2,
        7,
        -2,
        0.5,
        1.5,
        float("nan"),
        float("inf"),
        "2",
        "7",
        "10",
        "1 of 3",
        "0.5",
        "",
        " ",
        "...",
        "maybe",
        "partly",
        "yesterday",
        "not",
        "not true",
        "nope",
        "None of the claims",
        "yes and no",
        "yes/no",
        "Yes. No.",
        "no, yes",
        "Yes or no",
        "true|false",
        "supported",
        [],
        [1],
        {},
        {"verdict": 1},
        b"yes",
        object(),
    ],
)
def test_anything_else_is_refused_and_not_taken_as_a_no(said):
    with pytest.raises(ValueError, match="expected yes, no or unknown"):
        read_verdict(said)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.booleans(), st.lists(st.integers())))
def test_any_value_is_one_of_three_answers_or_refused(said):
    try:
        assert read_verdict(said) in (True, False, None)
    except ValueError as error:
        assert "yes, no or unknown" in str(error)  # noqa: PT017  # either way out is fine


def test_every_word_that_the_judge_is_shown_can_be_read():
    assert [read_verdict(word) for word in SHOWN_TO_THE_JUDGE["enum"]] == [True, False, None]
    assert Judged.model_json_schema()["properties"]["verdict"] == {"title": "Verdict", **SHOWN_TO_THE_JUDGE}


def test_a_verdict_that_is_missing_is_an_error_and_one_that_is_null_is_cannot_tell():
    with pytest.raises(ValidationError, match="verdict"):
        Judged.model_validate({"reason": "looks fine"})
    assert Judged.model_validate({"reason": "", "verdict": None}).verdict is None


def test_a_verdict_keeps_its_value_when_an_object_is_written_and_read_again():
    for said in ("yes", "no", "unknown"):
        once = Judged.model_validate({"reason": "", "verdict": said})
        assert Judged.model_validate_json(once.model_dump_json()) == once
