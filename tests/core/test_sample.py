"""The row as a value: absent is not empty, lists are frozen, and the digest is of what is asked."""

import dataclasses

import pytest

from ragparity.core.row import Row
from ragparity.core.sample import FIELDS, Sample


def test_absent_and_empty_are_not_the_same():
    assert Sample().retrieved_contexts is None
    assert Sample(retrieved_contexts=[]).retrieved_contexts == ()
    assert "retrieved_contexts" not in Sample().canonical()
    assert Sample(retrieved_contexts=[]).canonical()["retrieved_contexts"] == []


def test_lists_become_tuples_and_the_sample_cannot_be_changed():
    passages = ["a"]
    sample = Sample(retrieved_contexts=passages)
    passages.append("b")
    assert sample.retrieved_contexts == ("a",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.response = "x"


@pytest.mark.parametrize("name", ["retrieved_contexts", "reference_contexts", "references", "reference_context_ids"])
def test_one_text_where_a_list_belongs_is_refused_and_never_split_into_letters(name):
    with pytest.raises(TypeError, match=f"Sample.{name}: expected a list of texts"):
        Sample(**{name: "abc"})


def test_the_first_of_several_references_is_the_reference():
    assert Sample(references=["a", "b"]).reference == "a"
    assert Sample(references=["a", "b"], reference="c").reference == "c"


def test_the_digest_is_of_the_content_and_not_of_the_id_the_extras_or_the_notes():
    one = Sample(id="1", user_input="q", extra={"k": 1}, notes=("n",))
    assert one.digest() == Sample(id="2", user_input="q").digest()
    assert len(one.digest()) == 64


@pytest.mark.parametrize(
    "other",
    [
        Sample(user_input="p"),
        Sample(user_input="q", response=""),
        Sample(user_input="q", retrieved_contexts=()),
        Sample(user_input="q", retrieved_contexts=("a", "b")),
        Sample(user_input="q", retrieved_contexts=("b", "a")),
        Sample(response="q"),
    ],
)
def test_any_difference_in_a_field_is_a_difference_of_the_digest(other):
    assert other.digest() != Sample(user_input="q").digest()


def test_half_a_character_does_not_stop_the_digest():
    assert len(Sample(user_input="a\ud800b").digest()) == 64


def test_every_field_that_a_metric_may_read_is_an_attribute():
    assert all(hasattr(Sample(), name) for name in FIELDS)


def test_a_row_is_a_sample_or_an_error_and_never_both_or_neither():
    with pytest.raises(ValueError, match="either a sample or an error"):
        Row(0, "a")
    with pytest.raises(ValueError, match="either a sample or an error"):
        Row(0, "a", Sample(), "broken")


def test_the_content_of_a_row_is_the_digest_of_its_sample_or_what_is_wrong_with_it():
    sample = Sample(id="a", user_input="q")
    assert Row(0, "a", sample).content == sample.digest()
    assert Row(0, "a", error="two responses").content == "two responses"
