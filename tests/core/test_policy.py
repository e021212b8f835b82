"""The written policy for degenerate rows: what is asked, what is undefined, and what counts."""

import asyncio
from dataclasses import dataclass

import pytest

from ragparity.core.errors import JudgeUnavailable
from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.core.policy import Policies, admit, score, within_bounds, without_claims
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample


@dataclass(frozen=True)
class Length:
    """A metric that gives what a table says for each reference, and keeps the samples it saw."""

    by_reference: tuple = ()
    reads: tuple = ("response", "reference", "retrieved_contexts")
    may_read: tuple = ("user_input",)
    bounds: tuple = (0.0, 1.0)
    higher_is_better: bool = True
    backend: str = "native"
    name: str = "Length"
    seen: tuple = ()

    async def score(self, sample, _kit):
        found = dict(self.by_reference)[sample.reference]
        if isinstance(found, BaseException):
            raise found
        return found if isinstance(found, Undefined) else Scored(found)


FULL = Sample(user_input="q", response="r", reference="a", retrieved_contexts=("c",))


def scored(metric, sample, **policies):
    return asyncio.run(score(metric, sample, Kit(policies=Policies(**policies))))


def changed(**fields):
    return Sample(**{**FULL.canonical(), "id": "", **fields})


@pytest.mark.parametrize("name", ["response", "reference"])
@pytest.mark.parametrize("value", [None, "", "  \n\t", "\u3000"])
def test_a_text_that_is_absent_or_blank_is_missing(name, value):
    found = admit(changed(**{name: value}), Length(), Policies())
    assert isinstance(found, Undefined) and found.why == f"missing:{name}"


def test_absent_contexts_are_missing_and_empty_or_blank_ones_are_blank():
    assert admit(changed(retrieved_contexts=None), Length(), Policies()).why == "missing:retrieved_contexts"
    assert admit(changed(retrieved_contexts=()), Length(), Policies()).why == "blank_contexts"
    assert admit(changed(retrieved_contexts=("", " ")), Length(), Policies()).why == "blank_contexts"


def test_a_missing_field_is_named_before_blank_contexts():
    found = admit(changed(retrieved_contexts=(), reference=None), Length(), Policies())
    assert found.why == "missing:reference"


def test_blank_contexts_can_be_a_zero_by_policy_and_say_so():
    found = admit(changed(retrieved_contexts=()), Length(), Policies(blank_contexts="zero"))
    assert found == Scored(0.0, "retrieved_contexts holds no text", {"policy": "blank_contexts"})


def test_blank_passages_among_others_are_dropped_and_counted():
    sample, changes = admit(changed(retrieved_contexts=("", "a", "  ", "b")), Length(), Policies())
    assert sample.retrieved_contexts == ("a", "b")
    assert changes == {"blank_retrieved_contexts_dropped": 2}


def test_the_count_of_dropped_passages_is_in_the_detail_of_the_score():
    found = scored(Length((("a", 0.5),)), changed(retrieved_contexts=("", "c")))
    assert found.detail == {"blank_retrieved_contexts_dropped": 1}


def test_a_blank_field_that_may_be_read_is_absent_and_stops_nothing():
    sample, _ = admit(changed(user_input="  "), Length(), Policies())
    assert sample.user_input is None


def test_fields_that_the_metric_does_not_read_do_not_matter():
    assert isinstance(admit(changed(reference_contexts=()), Length(), Policies()), tuple)


def test_upstream_lets_a_wrapped_metric_see_everything_and_a_native_one_not():
    row = changed(retrieved_contexts=("",))
    assert admit(row, Length(backend="ragas"), Policies(upstream=True)) == (row, {})
    assert admit(row, Length(), Policies(upstream=True)).why == "blank_contexts"


@pytest.mark.parametrize(("policy", "value"), [("one", 1.0), ("zero", 0.0)])
def test_no_claims_is_a_number_only_where_the_user_says_which(policy, value):
    found = without_claims(Policies(no_claims=policy), "a refusal", {"refusal": True})
    assert found.value == value and found.detail == {"refusal": True, "policy": "no_claims"}
    assert without_claims(Policies(), "a refusal", {"refusal": True}).detail == {"refusal": True}


SEVERAL = changed(reference=None, references=("a", "b", "c"))


def test_the_best_of_several_references_counts_and_is_named():
    found = scored(Length((("a", 0.25), ("b", 0.75), ("c", 0.5))), SEVERAL)
    assert found.value == 0.75 and found.detail == {"references": 3, "reference_used": 1}


def test_the_best_is_the_lowest_where_lower_is_better():
    found = scored(Length((("a", 0.5), ("b", 0.75), ("c", 0.25)), higher_is_better=False), SEVERAL)
    assert found.value == 0.25 and found.detail["reference_used"] == 2


def test_the_mean_of_several_references_is_over_those_with_a_score():
    found = scored(Length((("a", 0.25), ("b", Undefined("no_claims")), ("c", 0.75))), SEVERAL, references="mean")
    assert found.value == 0.5


def test_joined_references_are_asked_about_once():
    assert scored(Length((("a\nb\nc", 0.5),)), SEVERAL, references="joined").value == 0.5


def test_blank_references_among_several_do_not_count():
    row = changed(reference=None, references=(" ", "b"))
    assert scored(Length((("b", 0.5),)), row).value == 0.5


def test_only_blank_references_are_a_missing_reference():
    row = changed(reference=None, references=(" ", ""))
    assert scored(Length(), row).why == "missing:reference"


def test_a_judge_that_fails_on_one_of_several_references_fails_the_row_and_is_no_lower_score():
    with pytest.raises(JudgeUnavailable):
        scored(Length((("a", 1.0), ("b", JudgeUnavailable("down")), ("c", 0.5))), SEVERAL)


def test_float_dust_beyond_a_bound_is_clamped_and_anything_further_is_out_of_range():
    assert within_bounds(Scored(1.0000000000000002), Length()).value == 1.0
    assert within_bounds(Scored(-1e-12), Length()).value == 0.0
    found = within_bounds(Scored(1.67), Length())
    assert isinstance(found, Failed) and found.kind == "out_of_range"
    assert found.raw == "1.67" and "0 to 1" in found.message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), True])
def test_what_is_no_finite_number_cannot_be_a_score(value):
    with pytest.raises(ValueError, match="finite float"):
        Scored(value)
