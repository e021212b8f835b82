"""Rows written as CSV (lists as JSON in a cell), JSONL, JSON and Parquet are the same samples when read again."""

import csv
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragparity.dataset import open_dataset, rows_of
from ragparity_adapters.fields import RowReader

# Any text that a UTF-8 file can hold. A text that spells a list or an object in a text column stays a text;
# carriage returns and NUL included.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": TEXTS,
            "question": TEXTS,
            "response": TEXTS,
            "reference": TEXTS,
            "contexts": st.lists(TEXTS, max_size=4),
            "reference_contexts": st.lists(TEXTS, min_size=1, max_size=2),
            "retrieved_context_ids": st.lists(TEXTS, max_size=3),
            "reference_topics": st.lists(TEXTS, max_size=2),
            "rubrics": st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=2),
            "messages": st.lists(
                st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXTS}), max_size=3
            ),
            "owner": TEXTS,
        }
    ),
    min_size=1,
    max_size=4,
)


def save(rows, folder):
    folder = Path(folder)
    texts = [json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "rows.jsonl").write_bytes("\n".join(texts).encode())
    (folder / "rows.json").write_bytes(json.dumps(rows, ensure_ascii=False, indent=1).encode())
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        for row in rows:
            values = (row[name] for name in rows[0])
            cells = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in values)
            writer.writerow(cells)
    return [folder / name for name in ("rows.jsonl", "rows.json", "rows.csv")]


def read(rows):
    return list(RowReader().read_rows(rows))


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_rows_are_the_same_from_python_jsonl_json_and_csv(rows):
    expected = read(rows_of(rows))
    with tempfile.TemporaryDirectory() as folder:
        for path in save(rows, folder):
            assert read(open_dataset(path)) == expected, path.suffix
            assert open_dataset(path).count_rows() == len(rows)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_every_row_keeps_its_place_its_texts_and_an_id_of_its_own(rows):
    found = read(rows)
    assert [row.index for row in found] == list(range(len(rows)))
    assert len({row.id for row in found}) == len(rows)
    for row, given_row in zip(found, rows, strict=True):
        assert row.sample.response == given_row["response"]
        assert row.sample.retrieved_contexts == tuple(given_row["contexts"])
        assert row.sample.extra == {"owner": given_row["owner"]}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "content", "role", "name", "args", "id", "x"]), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)
COLUMNS = st.sampled_from(
    [
        "id",
        "question",
        "answer",
        "generated_answer",
        "ground_truths",
        "contexts",
        "docs",
        "reference_contexts",
        "context_ids",
        "messages",
        "reference_tool_calls",
        "reference_topics",
        "rubrics",
        "intermediate_steps",
        "other",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(COLUMNS, ANYTHING, max_size=6), max_size=4), st.booleans())
def test_no_row_whatever_it_holds_can_stop_the_others(rows, python):
    found = list(RowReader(python=python).read_rows(rows))
    assert len(found) == len(rows)
    for row in found:
        assert row.id and (row.sample is None) is (row.error is not None)
        if row.sample is not None:
            json.dumps({**row.sample.canonical(), "extra": row.sample.extra}, allow_nan=False).encode()


def test_separators_inside_passages_split_nothing(tmp_path):
    passages = ["cat gw.log | grep WARN", "| Plan | Seats |\n| Basic | 3 |", "x; y"]
    row = {"id": "1", "question": "q", "contexts": passages}
    for path in save([row], tmp_path):
        (found,) = read(open_dataset(path))
        assert found.sample.retrieved_contexts == tuple(passages), path.suffix


def test_passages_come_back_from_parquet_and_excel(tmp_path):
    pandas = pytest.importorskip("pandas")
    row = {"id": "007", "question": "Größe 7 µm — 温度", "contexts": ["a | b", "c; d"], "ground_truths": ["x", "y"]}
    frame = pandas.DataFrame([row, {**row, "id": "8", "contexts": None, "ground_truths": None}])
    frame.to_parquet(tmp_path / "rows.parquet")
    cells = frame.assign(contexts=frame["contexts"].map(json.dumps), ground_truths=None)
    cells.to_excel(tmp_path / "rows.xlsx", index=False)
    first, second = read(open_dataset(tmp_path / "rows.parquet"))
    assert first == read([row])[0]
    assert (second.sample.retrieved_contexts, second.sample.reference) == (None, None)
    assert read(rows_of(frame)) == [first, second]
    assert read(open_dataset(tmp_path / "rows.xlsx"))[0].sample.retrieved_contexts == ("a | b", "c; d")
