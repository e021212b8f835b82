"""Which rows of a comparison a reader sees first, and what stands beside them."""

from dataclasses import replace
from io import StringIO

import pytest
from tests.toys import WHOLE, Toy, claims, install

from ragparity import crossvalidate, evaluate
from ragparity.report.agreement_table import print_agreement

ROWS = [{"id": row, "question": "Q?", "answer": "A."} for row in "abcd"]
VERDICT = replace(WHOLE, scale="binary", levels=(0.0, 1.0))


def compared(monkeypatch, left, right):
    install(monkeypatch, left, right)
    found = crossvalidate(ROWS, metrics=["Faithfulness"], backends=[left.name, right.name], judge="offline")
    (pair,) = found.as_json()["metrics"]["Faithfulness"]["pairs"]
    return pair


def test_beside_a_verdict_a_share_differs_first_where_it_means_another_verdict(monkeypatch):
    # all of it: d alone is a pass on one side only, although a and b are further apart
    shares = Toy("left", {"a": 0.5, "b": 0.6, "c": 1.0, "d": 0.75})
    verdicts = Toy("right", {"a": 0.0, "b": 0.0, "c": 1.0, "d": 1.0}, declared=VERDICT)
    pair = compared(monkeypatch, shares, verdicts)
    assert [row["id"] for row in pair["rows"]] == ["d", "b", "a"]


def test_two_shares_differ_first_where_they_are_furthest_apart(monkeypatch):
    left = Toy("left", {"a": 0.5, "b": 0.6, "c": 1.0, "d": 0.75})
    right = Toy("right", {"a": 0.0, "b": 0.0, "c": 1.0, "d": 1.0})
    assert [row["id"] for row in compared(monkeypatch, left, right)["rows"]] == ["b", "a", "d"]


def test_a_side_without_claims_shows_its_reason_beside_the_claims_of_the_other(monkeypatch):
    install(monkeypatch, Toy("left", {"a": claims("ynn")}), Toy("right", {"a": 1.0}, declared=VERDICT))
    found = crossvalidate(ROWS[:1], metrics=["Faithfulness"], backends=["left", "right"], judge="offline")
    out = StringIO()
    print_agreement(found.as_json(), out)
    assert "“Claim number 1 holds.”: left alone, no" in out.getvalue()
    assert "right: right says 1.0" in out.getvalue()


@pytest.mark.parametrize("higher", [True, False])
def test_blank_contexts_never_become_the_best_score(higher):
    metric = "Faithfulness" if higher else "NoiseSensitivity"
    row = {"question": "Q?", "answer": "A.", "ground_truth": "B.", "contexts": [" "]}
    found = evaluate([row], metrics=[metric], judge="offline", policies={"blank_contexts": "zero"})
    (record,) = found.records
    assert (record.score, record.status) == ((0.0, "scored") if higher else (None, "undefined"))
