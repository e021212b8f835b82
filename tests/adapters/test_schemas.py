"""How a wanted object is described: strict where it can be, flat where it can be, and in words."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Literal

import pytest
from pydantic import BaseModel, Field
from tests.personalities import strict_problems

import ragparity.metrics
from ragparity.core.ports import Scale
from ragparity_adapters import schemas


class Part(BaseModel):
    """A part with its own docstring."""

    id: int
    title: str = Field(default="none", examples=["a"])
    grade: Literal["C", "P"] | None = None


class Whole(BaseModel):
    reason: str = Field(description="One sentence.")
    parts: list[Part]
    default: Part | None = None


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


class Open(BaseModel):
    counts: dict[str, int]


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


def native_schemas():
    """Every answer that a native metric asks for."""
    for found in pkgutil.walk_packages(ragparity.metrics.__path__, "ragparity.metrics."):
        module = importlib.import_module(found.name)
        for _, value in inspect.getmembers(module, inspect.isclass):
            if issubclass(value, BaseModel) and value.__module__ == module.__name__:
                yield value


ALL = sorted(native_schemas(), key=lambda one: (one.__module__, one.__name__))


def test_there_are_native_schemas():
    assert len(ALL) > 5


@pytest.mark.parametrize(
    "model", [*ALL, Whole, Tree, Owner, schemas.rating_schema(Scale((0, 2, 4)))], ids=lambda one: one.__name__
)
def test_a_strict_server_takes_the_schema(model):
    asked = schemas.response_format(model)["json_schema"]
    assert asked["strict"] is True
    assert list(strict_problems(asked["schema"])) == []


@pytest.mark.parametrize("model", ALL, ids=lambda one: f"{one.__module__.rpartition('.')[2]}.{one.__name__}")
def test_the_reason_stands_before_the_verdict(model):
    properties = list(schemas.strict_schema(model)["properties"])
    if "reason" in properties:
        others = [one for one in properties if one not in ("reason", "id", "claim", "passage", "statement")]
        assert all(properties.index("reason") < properties.index(one) for one in others)


def test_references_are_written_out_and_noise_is_left_out_but_never_a_property():
    schema = schemas.strict_schema(Whole)
    assert "$defs" not in schema and "$ref" not in str(schema)
    part = schema["properties"]["parts"]["items"]
    assert list(part["properties"]) == part["required"] == ["id", "title", "grade"]
    assert part["properties"]["title"] == {"type": "string"}
    assert "default" in schema["properties"]
    assert schema["properties"]["reason"] == {"description": "One sentence.", "type": "string"}


def test_a_recursive_model_keeps_its_references():
    schema = schemas.strict_schema(Tree)
    assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert schemas.form(Tree).startswith('{"name": <text>, "children": [{"name": <text>, ')


def test_an_open_object_is_asked_for_without_strictness():
    asked = schemas.response_format(Open)["json_schema"]
    assert asked["strict"] is False
    assert asked["schema"]["properties"]["counts"]["additionalProperties"] == {"type": "integer"}


def test_the_form_in_words_has_a_blank_per_value():
    assert schemas.form(Whole) == (
        '{"reason": <text>, "parts": [{"id": <whole number>, "title": <text>, "grade": <"C" or "P"> or <null>}, …], '
        '"default": {"id": <whole number>, "title": <text>, "grade": <"C" or "P"> or <null>} or <null>}'
    )
    assert schemas.form(Owner) == '{"pet": {"kind": "cat"} or {"kind": "dog"}}'
    assert schemas.form(schemas.rating_schema(Scale((1, 2)))) == '{"reason": <text>, "rating": <1 or 2>}'


def test_names_are_what_endpoints_take():
    class Generic(BaseModel):
        a: int

    Generic.__name__ = "Answer[list[int], " + "x" * 80 + "]"
    assert schemas.name_of(Generic).startswith("Answer_list_int_x")
    assert len(schemas.name_of(Generic)) == 64
    assert schemas.tool(Whole)["function"]["name"] == "Whole"
