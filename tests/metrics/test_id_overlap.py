from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from tests.scoring import NATIVE, outcome, value, why

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "worked_cases.jsonl").read_text("utf-8").splitlines()
]
ID_CASES = [case for case in CASES if case["metric"].startswith("IDBased")]
BOTH = ["IDBasedContextPrecision", "IDBasedContextRecall"]


def test_both_metrics_have_a_worked_case():
    assert {case["metric"] for case in ID_CASES} == set(BOTH)


@pytest.mark.parametrize("case", ID_CASES, ids=lambda case: case["id"])
def test_worked_case(case):
    assert case["expect"] == float(Fraction(case["exact"]))
    assert value(case["metric"], **case["sample"]) == case["expect"]


def test_reason_and_detail_name_the_ids():
    found = outcome(
        "IDBasedContextPrecision", retrieved_context_ids=["a", "b", "c", "d"], reference_context_ids=["b", "d", "z"]
    )
    assert found.reason == "2 of 4 retrieved ids are wanted"
    assert found.detail == {"found": ["b", "d"], "not_wanted": ["a", "c"], "missed": ["z"]}


def test_repeated_and_blank_ids_count_once_and_not_at_all():
    # Retrieved as a set: a, b. Wanted as a set: b.
    sample = {"retrieved_context_ids": ["a", "b", "a", "b", " "], "reference_context_ids": ["b", "b", ""]}
    assert value("IDBasedContextPrecision", **sample) == 0.5
    assert value("IDBasedContextRecall", **sample) == 1.0
    assert outcome("IDBasedContextRecall", **sample).detail["retrieved_ids_dropped"] == 3


def test_ids_are_compared_as_text_and_as_written():
    assert value("IDBasedContextRecall", retrieved_context_ids=[7], reference_context_ids=["7"]) == 1.0
    assert value("IDBasedContextRecall", retrieved_context_ids=["07"], reference_context_ids=["7"]) == 0.0


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("none_wanted", [[], [""], [" ", "\n"]])
def test_no_wanted_id_is_undefined(name, none_wanted):
    assert why(name, retrieved_context_ids=["a"], reference_context_ids=none_wanted) == "no_reference_ids"


def test_nothing_retrieved_has_no_precision_and_a_recall_of_zero():
    sample = {"retrieved_context_ids": [], "reference_context_ids": ["a", "b"]}
    assert why("IDBasedContextPrecision", **sample) == "no_retrieved_ids"
    found = outcome("IDBasedContextRecall", **sample)
    assert (found.value, found.reason) == (0.0, "0 of 2 wanted ids were retrieved")
    assert found.detail["missed"] == ["a", "b"]


@pytest.mark.parametrize("name", BOTH)
def test_an_absent_field_is_named(name):
    assert why(name, reference_context_ids=["a"]) == "missing:retrieved_context_ids"
    assert why(name, retrieved_context_ids=["a"]) == "missing:reference_context_ids"


@pytest.mark.parametrize("name", BOTH)
def test_the_definition_is_the_formula(name):
    assert NATIVE.build(name, {}).definition.startswith("|retrieved ∩ wanted| / |")
