"""Contexts that do not fit into the judge's window: parts, joined by claim, recorded, and never cut."""

import pytest
from tests.metrics.judged import claims, outcome, row

from ragparity.core.errors import JudgeRejected
from ragparity.core.ports import Answer, Structured, Usage
from ragparity.metrics.claims import Judged
from ragparity.metrics.parts import either, half
from ragparity.registry import NativeBackend

NATIVE = NativeBackend()
FILLER = "Nothing of interest stands here. " * 40
FACT = "The tower is in Paris."


class Narrow:
    """A judge whose window holds `most` characters of prompt; it finds a claim where a context says it word by word."""

    identity = "narrow"

    def __init__(self, most, found=("The tower is in Paris.", "The tower is red.")):
        self.most = most
        self.found = found
        self.asked = []

    async def ask(self, question, tally):
        size = len(question.prompt.user())
        if size > self.most:
            raise JudgeRejected(f"the prompt has {size}, the window holds {self.most}", kind="context_too_long")
        tally.call(Usage(1, 1))
        self.asked.append(question.prompt.data)
        assert isinstance(question.shape, Structured)
        return Answer(question.shape.schema.model_validate(self.says(question)), "")

    def says(self, question):
        data = question.prompt.data
        if isinstance(data.get("claims"), dict):
            text = " ".join(data["contexts"])
            said = ["yes" if claim in text else "no" for claim in data["claims"].values()]
            return {
                "verdicts": [
                    {"id": int(number), "evidence": "none", "verdict": one}
                    for number, one in zip(data["claims"], said, strict=True)
                ]
            }
        if "claims" in question.shape.schema.model_fields and "refusal" not in question.shape.schema.model_fields:
            text = " ".join(data["contexts"])
            said = [{"claim": one, "evidence": "none", "verdict": "yes" if one in text else "no"} for one in self.found]
            return {"claims": said}
        return claims(*self.found)


def build(name):
    return NATIVE.build(name, {})


def test_a_fact_at_the_end_of_the_last_passage_counts_as_with_a_large_window():
    sample = row(retrieved_contexts=(FILLER, FILLER, FILLER + FACT))
    whole = outcome(build("Faithfulness"), sample, Narrow(10**6))
    judge = Narrow(len(FILLER) + 400)
    parted = outcome(build("Faithfulness"), sample, judge)
    assert (whole.value, parted.value) == (0.5, 0.5)
    assert [one["verdict"] for one in parted.detail["claims"]] == [True, False]
    assert "contexts_in_parts" not in whole.detail
    assert parted.detail["contexts_in_parts"] == 3
    shown = [text for one in judge.asked for text in one.get("contexts", ())]
    assert sorted(shown) == sorted(sample.retrieved_contexts), "every passage was shown once and whole"


def test_parts_are_as_large_as_they_can_be():
    judge = Narrow(2 * len(FILLER) + 400)
    found = outcome(build("Faithfulness"), row(retrieved_contexts=(FILLER,) * 4), judge)
    assert found.detail["contexts_in_parts"] == 2


def test_recall_is_judged_in_parts_too():
    sample = row(retrieved_contexts=(FILLER, FILLER + FACT))
    whole = outcome(build("ContextRecall"), sample, Narrow(10**6))
    parted = outcome(build("ContextRecall"), sample, Narrow(len(FILLER) + 500))
    assert (whole.value, parted.value) == (0.5, 0.5)
    assert parted.detail["contexts_in_parts"] == 2


@pytest.mark.parametrize("name", ["Faithfulness", "ContextRecall"])
def test_a_passage_that_is_too_long_alone_is_a_failure_with_both_numbers_and_never_cut(name):
    judge = Narrow(600)
    with pytest.raises(JudgeRejected, match=r"the prompt has \d+, the window holds 600") as caught:
        outcome(build(name), row(retrieved_contexts=(FILLER, FACT)), judge)
    assert caught.value.kind == "context_too_long"
    assert not any(FILLER in one.get("contexts", ()) for one in judge.asked)


def test_other_failures_are_not_a_reason_to_split():
    class Broken(Narrow):
        async def ask(self, question, tally):
            if "contexts" in question.prompt.data:
                self.asked.append(question.prompt.data)
                raise JudgeRejected("a wrong key", kind="auth")
            return await super().ask(question, tally)

    judge = Broken(10**6)
    with pytest.raises(JudgeRejected, match="a wrong key"):
        outcome(build("Faithfulness"), row(), judge)
    assert sum("contexts" in one for one in judge.asked) == 1


def test_many_claims_about_one_passage_are_asked_in_smaller_batches():
    many = [f"Claim number {n} says a little." for n in range(10)]
    judge = Narrow(360, found=many)
    found = outcome(build("Faithfulness"), row(retrieved_contexts=("Claim number 7 says a little.",)), judge)
    assert found.value == 0.1
    assert [len(one["claims"]) for one in judge.asked if "claims" in one] == [5, 5]


def judged(verdict, reason="r"):
    return Judged(1, "a", verdict, reason)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (True, False, True),
        (False, True, True),
        (None, True, True),
        (False, None, None),
        (None, False, None),
        (False, False, False),
    ],
)
def test_a_claim_is_held_when_any_part_holds_it(one, other, expected):
    assert either(judged(one), judged(other)).verdict is expected


def test_the_evidence_is_that_of_the_part_that_decides():
    assert (
        either(judged(verdict=False, reason="none"), judged(verdict=True, reason="It says a.")).reason == "It says a."
    )


def test_halves_are_of_about_equal_length():
    assert half(["a" * 100, "b" * 100, "c" * 100, "d" * 100]) == 2
    assert half(["a" * 1000, "b", "c"]) == 1
