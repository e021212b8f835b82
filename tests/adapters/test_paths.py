from types import SimpleNamespace

import pytest

from ragparity.core.errors import ConfigError, SampleError
from ragparity_adapters.paths import find, parse

ROW = {
    "a": {"b": [{"c": 1, "d": [10, 11]}, {"c": 2, "d": []}], "none": None},
    "a.b": "a column of this name",
    "text": '{"x": ["y"]}',
    "thing": SimpleNamespace(part="of an object"),
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[].c", [1, 2]),
        ("a.b[*].c", [1, 2]),
        ("a.b[0].c", 1),
        ("a.b[-1].c", 2),
        ("a.b[].d[]", [10, 11]),
        ("a.b[].d", [[10, 11], []]),
        ("a.none", None),
        ("a.b", "a column of this name"),
        ("text.x[0]", "y"),
        ("thing.part", "of an object"),
    ],
)
def test_paths_find_values(path, value):
    assert find(ROW, parse(path, "fields"), "fields") == value


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("z", "the row has no 'z', only: a, a.b, text, thing"),
        ("a.z", "a has no 'z', only: b, none"),
        ("a.b[2].c", "a.b has 2 items"),
        ("a.b[].z", "a.b[0] has no 'z', only: c, d"),
        ("a.b[].d[0]", "a.b[1].d has 0 items"),
        ("a[]", "a is not a list"),
        ("a.none.x", "a.none is no object with an entry 'x'"),
        ("text.z", "text has no 'z', only: x"),
        ("thing.z", "thing is no object with an entry 'z'"),
    ],
)
def test_a_path_that_ends_nowhere_says_where_and_what_is_there(path, told):
    with pytest.raises(SampleError) as caught:
        find(ROW, parse(path, "fields"), "fields")
    assert str(caught.value) == f"fields: the path {path!r} matches nothing: {told}"


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "a[", "a[x]", "[]", "a]b", 3, None])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ConfigError, match="is no path"):
        parse(path, "fields")
