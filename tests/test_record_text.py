"""A record's line and item, put together from texts: to the byte what encoding them as a whole gives."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.core.ports import Tally, Usage
from ragparity.record_text import line_and_item
from ragparity.results import Record, json_line, json_text, record

texts = st.text() | st.sampled_from(["", "a\ud800b", '"}, "error": null, {"', "größer\n", "\u2028", "a" * 3000])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
details = st.dictionaries(
    texts | st.sampled_from(["reason", "status", "metric", "backend", "score"]), values, max_size=3
)
reasons = st.none() | texts
outcomes = (
    st.builds(Scored, st.floats(allow_nan=False, allow_infinity=False), reasons, details)
    | st.builds(Undefined, texts, reasons, details)
    | st.builds(Failed, st.sampled_from(["timeout", "internal"]), texts, st.integers(0, 9), reasons, details)
)


def made(outcome, *, threshold=None, judge=None, calls=0, row=3, **names):
    tally = Tally()
    for _ in range(calls):
        tally.call(Usage(input_tokens=10, output_tokens=None, cached_tokens=4))
    named = {"id": "a", "key": "0123456789abcdef", "evaluator": "e", "metric": "M()", "backend": "native", **names}
    return record(
        row=row, **named, judge=judge, threshold=threshold, higher_is_better=True, outcome=outcome, tally=tally,
        seconds=0.123456,
    )  # fmt: skip


def item_of(line):
    """The toolkit's item, taken from a line of the log."""
    error = line["error"] and f"{line['error']['kind']}: {line['error']['message']}"
    names = ("reason", "status", "metric", "backend")
    return {
        "id": line["id"],
        "score": line["score"],
        "reasoning": {**{name: line[name] for name in names}, **line["detail"]},
        "error": error if line["why"] is None else f"undefined: {line['why']}",
    }


def same(one):
    line, item = line_and_item(one)
    assert line == json_line(one.as_json())
    assert json.loads(item) == item_of(json.loads(line))
    assert b"\n" not in item


@given(
    st.builds(
        made,
        outcomes,
        id=texts,
        metric=texts,
        judge=st.none() | texts,
        threshold=st.none() | st.floats(-1, 1),
        calls=st.integers(0, 3),
        row=st.integers(0, 10**12),
    )
)
def test_a_line_is_that_of_the_whole_record_and_the_item_says_the_same(one):
    same(one)


@pytest.mark.parametrize(
    "outcome",
    [
        Scored(1 / 3),
        Scored(1e-7, "tiny", {"share": math.nan, "worst": math.inf, "part": (1, {2, 1})}),
        Scored(1.0, None, {"odd": object, "bytes": b"raw"}),
        Scored(0.5, 7),  # a foreign metric's reason may be anything
        Undefined("no_claims", "a greeting", {"status": "kept", "reason": ["of the detail"]}),
        Failed("malformed", 'said "no"', 4, "raw\ud800", {"readable": [4]}),
    ],
)
def test_odd_values_are_made_plain_in_both(outcome):
    same(made(outcome))


def test_a_detail_has_the_last_word_in_the_item():
    _, item = line_and_item(made(Scored(1.0, "ours", {"reason": "theirs"})))
    assert json.loads(item)["reasoning"] == {
        "reason": "theirs",
        "status": "scored",
        "metric": "M()",
        "backend": "native",
    }
    assert item.count(b'"reason"') == 1


def test_true_and_one_are_not_taken_for_each_other():
    for one in (made(Scored(1.0), threshold=0.5), made(Scored(0.0), threshold=0.5), made(Scored(1.0))):
        same(one)


def test_a_line_is_read_back_as_the_same_record():
    one = made(Scored(0.25, "why", {"claims": []}), threshold=0.5, judge="a judge", calls=2)
    line, _ = line_and_item(one)
    assert line_and_item(Record.from_json(json.loads(line)))[0] == line
    assert json_text(one.as_json()) + b"\n" == line
