import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from types import MappingProxyType

import pytest

from ragparity.core.values import get, is_absent, is_conversation, plain, role_of


@dataclass
class Point:
    x: float
    label: str


class Shout(str):
    __slots__ = ()

    def __str__(self):
        return self.upper()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(math.nan, "a"), {"x": None, "label": "a"}),
        (MappingProxyType({1: (2, {3})}), {"1": [2, [3]]}),
        (datetime(2025, 1, 2, tzinfo=UTC), "2025-01-02T00:00:00+00:00"),
        (timedelta(seconds=5), "0:00:05"),
        (PurePosixPath("a/b"), "a/b"),
        (-math.inf, "-inf"),
        (range(3), [0, 1, 2]),
        (Shout("quiet"), "quiet"),
    ],
)
def test_values_of_many_types_become_json(value, expected):
    found = plain(value)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize("value", [b"bytes", object(), Point, len])
def test_what_has_no_plain_form_is_a_type_error(value):
    with pytest.raises(TypeError):
        plain([value])


def test_only_a_missing_value_is_absent():
    import pandas as pd

    assert all(is_absent(value) for value in (None, math.nan, pd.NA, pd.NaT))
    assert not any(is_absent(value) for value in ("", 0, False, [], "nan", math.inf))


def test_an_entry_of_a_mapping_or_an_attribute_is_got_alike():
    assert get({"x": 1}, "x") == 1 == get(Point(1, ""), "x")
    assert get({}, "x") is None is get(Point(1, ""), "y")


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"role": "developer", "content": "x"}, "system"),
        ({"type": "AIMessageChunk", "content": ""}, "assistant"),
        ({"role": "assistant", "content": None, "tool_calls": [{}]}, "assistant"),
        (("human", "x"), "user"),
        ({"role": "user"}, None),
        ({"type": "Document", "content": "x"}, None),
        (("x", "y"), None),
        ("user", None),
        (3, None),
    ],
)
def test_messages_are_known_by_role_and_content(item, role):
    assert role_of(item) == role
    assert is_conversation([item]) is (role is not None)


def test_an_empty_list_is_no_conversation():
    assert not is_conversation([])
