"""Kwargs of metrics over every backend: true is no number, and a number is neither true nor false."""

import pytest
from pydantic import TypeAdapter, create_model
from tests.needed import NEEDED, kwargs_needed

from ragparity.core.errors import ConfigError
from ragparity.registry import NativeBackend
from ragparity_adapters.backends._ragas_catalog import ENTRIES

NATIVE = NativeBackend()


def wrong_ones(schema):
    """Values of the wrong kind for a kwarg, by its JSON schema: one for each number and each truth value in it."""
    kind = schema.get("type")
    if kind in ("integer", "number"):
        yield from (True, False)
    elif kind == "boolean":
        yield from (0, 1, 1.0)
    elif kind == "array":
        inner = schema.get("prefixItems") or [schema.get("items", {})] * max(1, schema.get("minItems", 1))
        right = [one.get("minimum", 1) for one in inner]
        for at, one in enumerate(inner):
            yield from ([*right[:at], wrong, *right[at + 1 :]] for wrong in wrong_ones(one))
    for one in schema.get("anyOf", ()):
        yield from wrong_ones(one)


def of_native():
    for cls in NATIVE.classes():
        for name, schema in TypeAdapter(cls).json_schema().get("properties", {}).items():
            for value in wrong_ones(schema):
                yield "native", cls.__name__, {**kwargs_needed(cls), name: value}, name


def of_ragas():
    for entry in ENTRIES:
        for api, settings in entry.settings.items():
            if not entry.classes(api):
                continue
            made = create_model("Settings", **{name: (one.type, one.default) for name, one in settings.items()})
            class_name = next(iter(entry.classes(api)))
            for name, schema in made.model_json_schema().get("properties", {}).items():
                for value in wrong_ones(schema):
                    needed = {key: NEEDED[key] for key, one in settings.items() if one.default is ...}
                    kwargs = {**needed, name: value}
                    yield {"collections": "ragas", "legacy": "ragas_legacy"}[api], class_name, kwargs, name


CASES = [*of_native(), *of_ragas()]


def refused(backend, metric, kwargs):
    from ragparity import wiring

    with pytest.raises(ConfigError) as caught:
        wiring.backend(backend).build(metric, kwargs)
    return str(caught.value)


@pytest.mark.parametrize(("backend", "metric", "kwargs", "name"), CASES, ids=str)
def test_a_truth_value_is_no_number_and_a_number_no_truth_value(backend, metric, kwargs, name):
    said = refused(backend, metric, kwargs)
    assert said.startswith(f"metric {metric}: ") and name in said and "\n" not in said


def test_the_cases_are_many_and_of_both_kinds():
    kinds = {(backend, type(kwargs[name])) for backend, _, kwargs, name in CASES}
    assert {("native", bool), ("native", int), ("native", list), ("ragas", bool), ("ragas_legacy", bool)} <= kinds


@pytest.mark.parametrize(
    ("metric", "kwargs", "said"),
    [
        ("AnswerRelevancy", {"strictness": True}, "metric AnswerRelevancy: strictness: expected a number, got true"),
        ("SummaryScore", {"length_penalty": 0}, "metric SummaryScore: length_penalty: expected true or false, got 0"),
        (
            "AnswerCorrectness",
            {"weights": [True, 0.5]},
            "metric AnswerCorrectness: weights: expected a number, got true",
        ),
    ],
)
def test_the_line_says_what_was_expected(metric, kwargs, said):
    assert refused("native", metric, kwargs) == said


def test_what_is_written_as_text_is_read_as_before():
    """A variable of the environment, `${STRICTNESS}`, is always text."""
    assert NATIVE.build("AnswerRelevancy", {"strictness": "3"}).strictness == 3
    assert NATIVE.build("SummaryScore", {"length_penalty": "false"}).length_penalty is False
