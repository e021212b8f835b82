"""Entity recall: sets of names, compared with or without regard to how they are spelled."""

import pytest
from tests.metrics.judged import no_judge, outcome, row

from ragparity.core.errors import JudgeRejected, JudgeUnavailable
from ragparity.metrics.entity_recall import ContextEntityRecall
from ragparity_adapters.scripted import ScriptedJudge


def scored(wanted, there, **settings):
    judge = ScriptedJudge([{"entities": wanted}, {"entities": there}])
    return outcome(ContextEntityRecall(**settings), row(), judge)


# Of Ulm, Danube and 1377 the contexts have two; by their exact spelling one.
@pytest.mark.parametrize(("match", "value"), [("normalised", 2 / 3), ("exact", 1 / 3)])
def test_it_is_the_share_of_the_references_entities(match, value):
    found = scored(["Ulm", "Danube", "1377"], ["ULM.", "1377", "Rome"], match=match)
    assert found.value == value
    assert found.detail["missing"] == (["Danube"] if match == "normalised" else ["Ulm", "Danube"])


def test_the_second_spelling_of_an_entity_counts_once_or_by_its_spelling():
    wanted, there = ["Ulm", "ulm", "Rome"], ["Ulm"]
    assert scored(wanted, there).value == 1 / 2
    assert scored(wanted, there, match="exact").value == 1 / 3
    assert scored(["Ulm", "Ulm"], ["Ulm"], match="exact").value == 1.0


def test_other_entities_of_the_contexts_do_not_matter():
    assert scored(["Ulm"], ["Ulm", "Rome", "Oslo"]).value == 1.0


def test_a_number_is_not_part_of_another():
    assert scored(["30 days"], ["130 days"]).value == 0.0


@pytest.mark.parametrize("wanted", [[], [" "], ["…"]])
def test_no_entities_are_undefined_and_not_zero(wanted):
    assert scored(wanted, ["Ulm"]).why == "no_entities"


def test_nothing_named_in_the_contexts_is_zero():
    assert scored(["Ulm"], []).value == 0.0


def test_both_sides_are_asked_about_apart():
    judge = ScriptedJudge([{"entities": ["Ulm"]}, {"entities": ["Ulm"]}])
    outcome(ContextEntityRecall(), row(), judge)
    shown = [one.prompt.data for one in judge.questions]
    assert shown == [{"text": row().reference}, {"text": "\n".join(row().retrieved_contexts)}]


def test_contexts_that_are_too_long_together_are_asked_about_in_parts():
    def say(question):
        text = question.prompt.data["text"]
        if "\n" in text:
            return JudgeRejected("it does not fit", kind="context_too_long")
        return {"entities": {"one": ["Ulm"], "two": ["Rome"]}.get(text, ["Ulm", "Rome", "Oslo"])}

    found = outcome(ContextEntityRecall(), row(retrieved_contexts=("one", "two")), ScriptedJudge(say))
    assert (found.value, found.detail["contexts_in_parts"]) == (2 / 3, 2)


def test_another_failure_is_passed_on():
    with pytest.raises(JudgeUnavailable):
        outcome(ContextEntityRecall(), row(), ScriptedJudge(lambda _: JudgeUnavailable("down")))


def test_missing_fields_are_named_and_nothing_is_asked():
    for name in ContextEntityRecall.reads:
        assert outcome(ContextEntityRecall(), row(**{name: None}), no_judge()).why == f"missing:{name}"
