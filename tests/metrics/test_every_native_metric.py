"""What holds for every native metric. A metric that is added to the registry is covered here by itself.

A metric with a required kwarg needs a value for it in tests/needed.py; a metric that asks a judge is run by the tests of
its own family, and here only on rows for which nothing may be asked.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.needed import kwargs_needed

from ragparity.core.errors import ConfigError, SampleError
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import score
from ragparity.core.ports import Kit
from ragparity.core.sample import FIELDS, TEXT_FIELDS, Sample
from ragparity.registry import NativeBackend, accepted_kwargs

BACKEND = NativeBackend()
CLASSES = BACKEND.classes()

HEADINGS = ("Reads:", "Asks:", "Range:", "Undefined when:", "Differs from its source in:", "Source:", "Example::")

OSLO = {"name": "weather", "args": {"city": "Oslo"}}

COMPLETE = Sample(
    id="row-1",
    user_input="Where is the tower?",
    response='The tower is in Paris, "open all day".',
    reference="The tower is in Paris.",
    retrieved_contexts=("The tower stands in Paris and is open all day.", "Rome has a forum."),
    reference_contexts=("The tower stands in Paris.",),
    retrieved_context_ids=("a", "b"),
    reference_context_ids=("b", "z"),
    messages=(
        {"role": "user", "content": "Is it cold in Oslo?"},
        {"role": "assistant", "content": "", "tool_calls": [OSLO]},
        {"role": "assistant", "content": "Yes."},
    ),
    reference_tool_calls=(OSLO,),
    reference_topics=("weather",),
    rubrics={"score1_description": "wrong", "score2_description": "right"},
    extra={"answerable": True},
)

NOTHING_RETRIEVED_IS_A_MISS = {
    "IDBasedContextRecall",
    "HitRate",
    "NDCG",
    "RecallAtK",
    "ReciprocalRank",
    "AveragePrecision",
}
"""Their divisor is the wanted ids: a retriever that returned nothing missed them all, which is a score of 0."""


class NobodyAsks:
    """A judge and an embedder that must not be asked."""

    identity = "nobody"

    def __init__(self):
        self.asked = 0

    async def ask(self, question, tally):
        self.asked += 1
        raise AssertionError("a judge was asked")

    async def embed(self, texts, tally):
        self.asked += 1
        raise AssertionError("an embedder was asked")


def build(cls, **kwargs):
    return BACKEND.build(cls.__name__, {**kwargs_needed(cls), **kwargs})


def run(metric, sample):
    """The outcome, where nobody may be asked."""
    nobody = NobodyAsks()
    found = asyncio.run(score(metric, sample, Kit(judge=nobody, embedder=nobody)))
    assert nobody.asked == 0
    return found


def choices(schema):
    """Some values that a setting may take, by its JSON schema."""
    if "anyOf" in schema:
        return [choice for one in schema["anyOf"] for choice in choices(one)]
    by_type = {"boolean": [True, False], "integer": [1, 3], "number": [0.25, 1.0]}
    return schema.get("enum") or by_type.get(schema.get("type"), [])


def variants(cls):
    """The metric with its defaults, and with other values of its settings, one at a time: each word, some numbers."""
    yield build(cls)
    for name, schema in TypeAdapter(cls).json_schema().get("properties", {}).items():
        for choice in choices(schema):
            try:
                yield build(cls, **{name: choice})
            except ConfigError:  # a value that needs another setting beside it
                continue


every = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
UNJUDGED = [cls for cls in CLASSES if not cls.uses]
unjudged = pytest.mark.parametrize("cls", UNJUDGED, ids=lambda cls: cls.__name__)


def test_there_are_metrics_without_a_judge():
    assert len(UNJUDGED) >= 17


@every
def test_the_card_has_every_heading_and_explains_every_setting(cls):
    card = inspect.getdoc(cls)
    lines = card.splitlines()
    for heading in HEADINGS:
        assert any(line.startswith(heading) for line in lines), f"{cls.__name__}: no line starts with {heading!r}"
    missing = [name for name in accepted_kwargs(cls) if name not in card]
    assert not missing, f"{cls.__name__}: the card does not mention {missing}"
    assert lines[0].strip()
    if "definition" not in accepted_kwargs(cls):  # else it is the user's own
        assert build(cls).definition == " ".join(card.split("\n\n")[0].split())


@every
def test_the_card_names_the_fields_that_are_read(cls):
    metric = build(cls)
    card = inspect.getdoc(cls)
    for name in (*metric.reads, *metric.may_read):
        assert name in FIELDS
        assert name in card, f"{cls.__name__}: the card does not mention {name}"


@every
def test_a_metric_is_frozen_and_equal_to_its_like(cls):
    metric = build(cls)
    assert metric == build(cls)
    for name in accepted_kwargs(cls):
        with pytest.raises(FrozenInstanceError):
            setattr(metric, name, None)


@every
def test_the_repr_is_a_spec_that_builds_the_same_metric(cls):
    seen = set()
    for metric in variants(cls):
        spec = ast.parse(repr(metric), mode="eval").body
        assert isinstance(spec, ast.Call) and not spec.args
        kwargs = {one.arg: ast.literal_eval(one.value) for one in spec.keywords}
        again = BACKEND.build(spec.func.id, kwargs)
        assert again == metric
        assert repr(again) == repr(metric)
        seen.add(repr(metric))
    assert len(seen) > 1 or not accepted_kwargs(cls) or kwargs_needed(cls)


@every
def test_a_default_is_not_shown_in_the_repr(cls):
    needed = kwargs_needed(cls)
    shown = {one.arg for one in ast.parse(repr(build(cls)), mode="eval").body.keywords}
    assert shown == set(needed)


@every
def test_an_unknown_kwarg_is_refused_in_one_line_that_names_the_accepted_ones(cls):
    with pytest.raises(ConfigError) as caught:
        build(cls, no_such_setting=1)
    message = str(caught.value)
    assert "'no_such_setting'" in message and "\n" not in message
    for name in accepted_kwargs(cls) or ["it takes none"]:
        assert name in message


@every
def test_names_and_aliases_ignore_case(cls):
    for name in (cls.__name__, *cls.aliases):
        for spelled in (name, name.lower(), name.upper()):
            assert BACKEND.find(spelled) is cls


@every
def test_bounds_are_a_range_and_the_version_is_a_word(cls):
    metric = build(cls)
    low, high = metric.bounds
    assert low < high
    assert isinstance(metric.higher_is_better, bool)
    assert metric.version
    assert metric.name == cls.__name__
    assert metric.backend == "native"


@every
def test_every_required_field_is_needed(cls):
    metric = build(cls)
    for name in metric.reads:
        found = run(metric, replace(COMPLETE, references=None, **{name: None}))
        assert (type(found), found.why) == (Undefined, f"missing:{name}")


@every
def test_degenerate_rows_are_undefined_and_nobody_is_asked(cls):
    metric = build(cls)
    for name in metric.reads:
        if name == "rubrics":
            values = ({},)
        elif name in TEXT_FIELDS:
            values = ("", " ", "\n\t")
        else:
            values = ((), ("",), (" ", "\n"))
        for value in values:
            row = replace(COMPLETE, **{name: value})
            if name in ("messages", "reference_tool_calls") and value:
                with pytest.raises(SampleError, match=name):  # a text is no message and no call
                    run(metric, row)
                continue
            found = run(metric, row)
            if cls.__name__ in NOTHING_RETRIEVED_IS_A_MISS and name == "retrieved_context_ids":
                assert isinstance(found, Scored) and found.value == 0.0
            else:
                assert isinstance(found, Undefined), f"{cls.__name__} with {name}={value!r}: {found}"
                assert found.why and found.reason


@unjudged
def test_it_asks_nothing(cls):
    metric = build(cls)
    assert metric.asks(COMPLETE) == ()
    assert metric.steps == 0


@unjudged
def test_a_complete_row_is_scored_with_a_reason_and_a_detail(cls):
    for metric in variants(cls):
        if metric.uses:  # a setting that asks a judge
            continue
        found = run(metric, COMPLETE)
        assert isinstance(found, Scored), found
        low, high = metric.bounds
        assert low <= found.value <= high
        assert found.reason and "\n" not in found.reason
        assert found.detail


@unjudged
def test_the_same_row_gives_the_same_outcome(cls):
    metric = build(cls)
    assert run(metric, COMPLETE) == run(metric, COMPLETE)


@unjudged
def test_fields_that_are_not_read_do_not_matter(cls):
    metric = build(cls)
    read = {*metric.reads, *metric.may_read}
    other = replace(
        COMPLETE,
        id="another",
        notes=("a list did not parse",),
        extra={**COMPLETE.extra, "score": 1},
        **{name: None for name in FIELDS if name not in read},
    )
    assert run(metric, other) == run(metric, COMPLETE)


@unjudged
def test_the_sample_is_not_changed(cls):
    metric = build(cls)
    sample = copy.deepcopy(COMPLETE)
    run(metric, sample)
    assert sample == COMPLETE
    assert sample.digest() == COMPLETE.digest()


short = st.text(alphabet='ab "東\n.1é', max_size=12)
texts = st.none() | short
lists = st.none() | st.lists(short, max_size=4).map(tuple)
calls = st.lists(
    st.builds(lambda name, value: {"name": name, "args": {"x": value}}, st.sampled_from("fg"), st.integers(0, 1)),
    max_size=3,
)
samples = st.builds(
    lambda made, wanted, **rest: Sample(
        messages=({"role": "assistant", "content": "", "tool_calls": made},), reference_tool_calls=tuple(wanted), **rest
    ),
    made=calls,
    wanted=calls,
    user_input=texts,
    response=texts,
    reference=texts,
    retrieved_contexts=lists,
    reference_contexts=lists,
    retrieved_context_ids=lists,
    reference_context_ids=lists,
)


@unjudged
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(sample=samples)
def test_any_row_is_scored_within_bounds_or_undefined(cls, sample):
    metric = build(cls)
    found = run(metric, sample)
    assert isinstance(found, Scored | Undefined), found
    if isinstance(found, Scored):
        assert metric.bounds[0] <= found.value <= metric.bounds[1]
    assert run(metric, sample) == found
