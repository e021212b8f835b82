import csv
import json
import math
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from ragparity.core.errors import ConfigError, MissingExtra
from ragparity.core.row import BrokenRow
from ragparity.core.sample import Sample
from ragparity.dataset import as_row, kind_of, open_dataset, row_of_item, rows_of

HERON = {
    "question": "Which port does the Heron gateway use?",
    "answer": "Heron listens on port 7443.",
    "contexts": ["The Heron gateway listens on TCP port 7443 by default.", "Heron ships with a dark theme."],
    "ground_truth": "Port 7443.",
}
GERMAN = "Größe 7 µm — 温度"


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path, **options):
    with pytest.raises(ConfigError) as caught:
        list(open_dataset(path, **options))
    message = str(caught.value)
    assert "\n" not in message
    return message


# -- JSON and JSONL --------------------------------------------------------------------------------------


def test_json_values_keep_the_type_and_the_digits_they_were_written_with(tmp_path):
    path = written(tmp_path, "rows.json", '[{"id": "007", "answer": 4, "x": 12345678901234567890, "made_at": "1e3"}]')
    assert list(open_dataset(path)) == [{"id": "007", "answer": 4, "x": 12345678901234567890, "made_at": "1e3"}]


def test_jsonl_skips_blank_lines_and_counts_the_others(tmp_path):
    path = written(tmp_path, "rows.jsonl", '{"question": "a"}\n\n   \n{"question": "b"}\n\n')
    dataset = open_dataset(path)
    assert [row["question"] for row in dataset] == ["a", "b"]
    assert dataset.count_rows() == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"question": "b"', "not valid JSON"),
        (b'{"question": "Gr\xf6\xdfe"}', "not UTF-8 (byte 17 of the line)"),
        (b"[1, 2]", "expected an object with named columns, found a list"),
        (b"7", "found a number"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not readable as JSON"),
        (b"[" * 100_000, "not readable as JSON"),
    ],
)
def test_a_broken_jsonl_line_is_that_row_alone_with_file_and_line(tmp_path, line, why):
    path = written(tmp_path, "rows.jsonl", b'{"question": "a"}\n' + line + b'\n{"question": "c"}\n')
    first, broken, third = open_dataset(path)
    assert (first["question"], third["question"]) == ("a", "c")
    assert isinstance(broken, BrokenRow)
    assert broken.error.startswith("rows.jsonl, line 2: ") and why in broken.error


def test_a_line_separator_inside_a_jsonl_text_ends_no_line(tmp_path):
    path = written(tmp_path, "rows.jsonl", json.dumps({"question": "a\u2028b\x85c"}, ensure_ascii=False))
    assert list(open_dataset(path)) == [{"question": "a\u2028b\x85c"}]


def test_a_jsonl_line_that_is_a_conversation_is_a_row(tmp_path):
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert list(open_dataset(written(tmp_path, "rows.jsonl", json.dumps(talk)))) == [{"messages": talk}]


def test_jsonl_is_read_line_by_line_as_it_is_asked_for(tmp_path):
    path = written(tmp_path, "rows.jsonl", '{"question": "a"}\n')
    rows = iter(open_dataset(path))
    assert next(rows) == {"question": "a"}
    with path.open("a") as file:
        file.write('{"question": "written later"}\n')
    assert list(rows) == [{"question": "written later"}]


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "rows.csv"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_files_are_utf_8_with_or_without_a_byte_order_mark(tmp_path, name, mark):
    text = {
        "rows.json": json.dumps([{"id": "1", "question": GERMAN}], ensure_ascii=False),
        "rows.jsonl": json.dumps({"id": "1", "question": GERMAN}, ensure_ascii=False),
        "rows.csv": f"id,question\r\n1,{GERMAN}\r\n",
    }[name]
    assert list(open_dataset(written(tmp_path, name, mark + text.encode()))) == [{"id": "1", "question": GERMAN}]


def test_json_columns_and_an_enclosing_key_are_rows_too(tmp_path):
    rows = [{"question": "a", "answer": "A"}, {"question": "b", "answer": "B"}]
    for shape in (
        rows,
        {"question": ["a", "b"], "answer": ["A", "B"]},
        {"question": {"0": "a", "1": "b"}, "answer": {"0": "A", "1": "B"}},
        {"samples": rows},
    ):
        assert list(open_dataset(written(tmp_path, "rows.json", json.dumps(shape)))) == rows


def test_an_item_of_a_json_list_that_is_no_object_is_that_row_alone(tmp_path):
    rows = list(open_dataset(written(tmp_path, "rows.json", '[{"question": "a"}, "b"]')))
    assert rows[1] == BrokenRow("rows.json, row 2: expected an object with named columns, found a text")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("rows.json", "", "is empty"),
        ("rows.json", "[]", "has no rows"),
        ("rows.json", '{"question": "a"}', "holds an object, not rows"),
        ("rows.json", '{"settings": {"a": {"b": 1}}}', "holds an object, not rows"),
        ("rows.json", '"text"', "holds a text, not rows"),
        ("rows.json", '[{"a": 1},]', "not valid JSON (line 1, column"),
        ("rows.json", '{"a": 1}\n{"a": 2}', "set dataset._type: jsonl"),
        ("rows.json", '{"a": [1], "b": [1, 2]}', "columns of different lengths (a 1, b 2)"),
        ("rows.json", b'[{"a": "\xff"}]', "not UTF-8 (line 1)"),
        ("rows.json", "[{}]".encode("utf-16"), "is UTF-16"),
        ("rows.jsonl", "\n\n", "has no rows"),
        ("rows.jsonl", '[\n{"a": 1}\n]', "set dataset._type: json"),
        ("rows.jsonl", '{\n"a": 1\n}', "set dataset._type: json"),
        ("rows.jsonl", "{}".encode("utf-16"), "is UTF-16"),
        ("rows.csv", "", "has no header"),
        ("rows.csv", "question,answer\n", "has no rows"),
        ("rows.csv", "question,question\na,b\n", "two columns are called 'question'"),
        ("rows.csv", "a,b\n1,2\n".encode("utf-16"), "is UTF-16"),
        ("rows.csv", "Größe,b\n1,2\n".encode("latin-1"), "the header of"),
        ("rows.parquet", "no parquet", "not a readable Parquet file"),
        ("rows.xlsx", "no workbook", "no .xlsx workbook"),
    ],
)
def test_a_file_that_is_empty_or_no_table_is_refused_in_one_line(tmp_path, name, text, told):
    path = written(tmp_path, name, text)
    message = refused(path)
    assert told in message and str(path) in message


def test_a_missing_file_a_folder_and_an_unknown_name_are_refused(tmp_path):
    assert "does not exist" in refused(tmp_path / "none.jsonl")
    assert "is a folder" in refused(tmp_path, kind="csv")
    assert "known are .json, .jsonl" in refused(tmp_path / "rows.txt")
    assert "Did you mean jsonl?" in refused(tmp_path / "rows.jsonl", kind="jsonll")
    assert "file_path: missing" in refused(None, kind="json")


# -- CSV -------------------------------------------------------------------------------------------------


def test_csv_cells_are_text_and_nothing_else(tmp_path):
    path = written(tmp_path, "rows.csv", 'id,answer,empty,list\n007,1e3,,"[""a, b"", ""c""]"\nTrue,NA,nan,null\n')
    assert list(open_dataset(path)) == [
        {"id": "007", "answer": "1e3", "empty": "", "list": '["a, b", "c"]'},
        {"id": "True", "answer": "NA", "empty": "nan", "list": "null"},
    ]


def test_csv_cells_may_hold_line_breaks_and_more_than_131072_characters(tmp_path):
    long = "x" * 200_000
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "context"], ["1", "two\nlines"], ["2", long]])
    dataset = open_dataset(path)
    assert [row["context"] for row in dataset] == ["two\nlines", long]
    assert dataset.count_rows() == 2


def test_a_csv_record_with_the_wrong_number_of_cells_is_that_row_alone(tmp_path):
    path = written(tmp_path, "rows.csv", "id,answer\n1,yes, it does\n2\n3,no\n\n")
    wide, narrow, good = open_dataset(path)
    assert "rows.csv, line 2: 3 cells under a header of 2" in wide.error
    assert "rows.csv, line 3: 1 cells under a header of 2" in narrow.error
    assert good == {"id": "3", "answer": "no"}
    assert open_dataset(path).count_rows() == 3


def test_a_csv_quote_that_is_never_closed_is_told_with_its_line_and_what_it_takes_in(tmp_path):
    path = written(tmp_path, "rows.csv", 'id,answer\n1,a\n2,"never closed\n3,c\n4,d\n')
    first, broken = open_dataset(path)
    assert first["answer"] == "a"
    assert broken.error == "rows.csv, line 3: a double quote is never closed and takes in the 2 lines after it"


def test_a_csv_row_that_is_not_utf_8_is_that_row_alone(tmp_path):
    path = written(tmp_path, "rows.csv", b"id,answer\n1,Gr\xf6\xdfe\n2,ok\n")
    broken, good = open_dataset(path)
    assert broken.error.startswith("rows.csv, line 2: not UTF-8") and good["answer"] == "ok"


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_header_without_commas_shows_another_separator(tmp_path, separator):
    path = written(tmp_path, "rows.csv", f"id{separator}answer\n1{separator}a, b\n")
    assert list(open_dataset(path)) == [{"id": "1", "answer": "a, b"}]


def test_csv_columns_without_a_name_are_numbered(tmp_path):
    assert list(open_dataset(written(tmp_path, "rows.csv", ",answer,\n0,a,b\n"))) == [
        {"column 1": "0", "answer": "a", "column 3": "b"}
    ]


# -- Parquet and Excel -----------------------------------------------------------------------------------


def test_parquet_cells_come_as_plain_lists_and_none(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "rows.parquet"
    pandas.DataFrame([HERON, {**HERON, "contexts": None, "ground_truth": None}]).to_parquet(path)
    dataset = open_dataset(path)
    first, second = dataset
    assert first == HERON
    assert second["contexts"] is None and second["ground_truth"] is None
    assert dataset.count_rows() == 2


def test_excel_text_stays_text_and_error_cells_are_absent(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for record in (["id", "answer", "n"], ["007", "1e3", 4], [None, None, None], ["8", "#N/A", 2.5]):
        sheet.append(record)
    sheet["B4"].data_type = "e"
    path = tmp_path / "rows.xlsx"
    workbook.save(path)
    assert list(open_dataset(path)) == [
        {"id": "007", "answer": "1e3", "n": 4},
        {"id": "8", "answer": None, "n": 2.5},
    ]


@pytest.mark.parametrize(("name", "package"), [("rows.parquet", "pyarrow"), ("rows.xlsx", "openpyxl")])
def test_a_missing_package_names_the_extra_that_brings_it(tmp_path, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install 'ragparity\[data\]'") as caught:
        open_dataset(written(tmp_path, name, "x"))
    assert isinstance(caught.value.__cause__, ImportError)


# -- what the type is ------------------------------------------------------------------------------------


def test_the_type_of_a_file_comes_from_the_end_of_its_name():
    names = ("a.json", "a.JSONL", "a.ndjson", "b.c.csv", "a.tsv", "a.parquet", "a.xlsx")
    assert [kind_of(name) for name in names] == ["json", "jsonl", "jsonl", "csv", "csv", "parquet", "xls"]


# -- filter ----------------------------------------------------------------------------------------------

ROWS = [
    {"id": 1, "lang": "de", "hard": True},
    {"id": 2, "lang": "fr-CA", "hard": False},
    {"id": 3, "lang": None, "hard": False},
    {"id": 4, "lang": "DE", "hard": True, "topic": "ports"},
]


@pytest.mark.parametrize(
    ("allow", "deny", "left"),
    [
        ({"lang": ["de"]}, {}, [1]),
        ({"lang": ["fr*", "DE"]}, {}, [2, 4]),
        ({"lang": ["*"]}, {}, [1, 2, 4]),  # an absent value matches nothing, not even *
        ({"id": [1, "3"]}, {}, [1, 3]),
        ({"hard": [True]}, {"id": [4]}, [1]),
        ({"hard": ["true"]}, {}, [1, 4]),
        ({}, {"lang": ["?e", "DE"]}, [2, 3]),
        ({}, {"unheard_of": ["*"]}, [1, 2, 3, 4]),
    ],
)
def test_the_toolkits_filter_keeps_and_leaves_out_rows(tmp_path, allow, deny, left):
    path = written(tmp_path, "rows.json", json.dumps(ROWS))
    dataset = open_dataset(path, filter={"allowlist": {"field": allow}, "denylist": {"field": deny}})
    assert [row["id"] for row in dataset] == left
    assert dataset.count_rows() is None


def test_a_filter_that_leaves_nothing_is_refused_and_names_a_column_that_no_row_has(tmp_path):
    path = written(tmp_path, "rows.json", json.dumps(ROWS))
    assert "none of the rows" in refused(path, filter={"allowlist": {"field": {"lang": ["it"]}}})
    assert "no row has the column 'langg'" in refused(path, filter={"allowlist": {"field": {"langg": ["de"]}}})
    assert "expected {field: {column: [values]}}" in refused(path, filter={"allowlist": {"field": {"lang": "de"}}})


def test_broken_lines_pass_the_filter_since_they_are_failures_to_be_seen(tmp_path):
    path = written(tmp_path, "rows.jsonl", '{"id": 1}\n{"id": 2\n{"id": 3}\n')
    rows = list(open_dataset(path, filter={"allowlist": {"field": {"id": [1]}}}))
    assert rows[0] == {"id": 1} and isinstance(rows[1], BrokenRow) and len(rows) == 2


# -- custom ----------------------------------------------------------------------------------------------


@pytest.fixture
def loaders(tmp_path, monkeypatch):
    written(
        tmp_path,
        "heron_loaders.py",
        """
def rows(file_path, times=1):
    return [{"question": file_path.read_text(), "answer": "a"}] * times

def lazily(file_path):
    yield {"question": "one"}
    yield {"question": "two"}

def broken(file_path):
    raise KeyError("no such sheet")

async def later(file_path):
    return []

not_callable = 3
""",
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield written(tmp_path, "source.txt", "from the file")
    sys.modules.pop("heron_loaders", None)


def test_a_custom_function_gives_rows_from_the_path_and_its_kwargs(loaders):
    dataset = open_dataset(loaders, kind="custom", function="heron_loaders.rows", kwargs={"times": 2})
    assert list(dataset) == [{"question": "from the file", "answer": "a"}] * 2
    assert dataset.count_rows() == 2


def test_a_generator_function_can_be_read_more_than_once(loaders):
    dataset = open_dataset(loaders, kind="custom", function="heron_loaders.lazily")
    assert [row["question"] for row in dataset] == ["one", "two"] == [row["question"] for row in dataset]


@pytest.mark.parametrize(
    ("function", "kwargs", "told"),
    [
        ("rows", {}, "is no import path"),
        ("no_such_module.rows", {}, "PYTHONPATH"),
        ("heron_loaders.row", {}, "Did you mean rows?"),
        ("heron_loaders.not_callable", {}, "no plain function"),
        ("heron_loaders.later", {}, "no plain function"),
        ("heron_loaders.rows", {"tmies": 2}, "unexpected keyword argument 'tmies'"),
        ("heron_loaders.broken", {}, "raised KeyError: 'no such sheet'"),
    ],
)
def test_a_custom_function_that_cannot_be_used_is_a_line_not_a_traceback(loaders, function, kwargs, told):
    assert told in refused(loaders, kind="custom", function=function, kwargs=kwargs)


def toolkit_item(**changes):
    fields = {
        "id": 7,
        "input_obj": "q?",
        "expected_output_obj": "gold",
        "output_obj": "said",
        "trajectory": [],
        "expected_trajectory": [],
        "full_dataset_entry": {"id": 7, "question": "q?", "answer": "gold", "owner": "me"},
    }
    return SimpleNamespace(**{**fields, **changes})


def test_the_toolkits_items_are_rows_with_what_the_workflow_said_over_the_data_set():
    dataset = rows_of(SimpleNamespace(eval_input_items=[toolkit_item()]))
    assert list(dataset) == [{"id": 7, "question": "q?", "answer": "gold", "generated_answer": "said", "owner": "me"}]


def test_an_item_that_says_nothing_adds_no_column_but_empties_one_that_was_there():
    # A workflow that failed must not be judged by an old answer in the data set.
    without = row_of_item(toolkit_item(output_obj=""))
    assert "generated_answer" not in without
    stale = {"question": "q?", "generated_answer": "an old answer"}
    assert row_of_item(toolkit_item(output_obj=None, full_dataset_entry=stale))["generated_answer"] is None


def test_the_toolkits_items_go_to_the_columns_that_structure_names():
    row = row_of_item(
        toolkit_item(full_dataset_entry={}), {"answer_key": "gold", "generated_answer_key": "bot"}, id_key="key"
    )
    assert row == {"key": 7, "question": "q?", "gold": "gold", "bot": "said"}


def test_an_item_without_structure_keeps_its_whole_input():
    row = row_of_item(toolkit_item(input_obj='{"q": 1}', full_dataset_entry={"q": 1}), {"disable": True})
    assert row == {"id": 7, "q": 1, "input_obj": '{"q": 1}'}


# -- Python ----------------------------------------------------------------------------------------------


def test_lists_tuples_and_generators_of_dicts_are_rows():
    for rows in ([HERON, HERON], (HERON, HERON), (HERON for _ in range(2))):
        dataset = rows_of(rows)
        assert list(dataset) == [HERON, HERON] == list(dataset)
        assert dataset.count_rows() == 2


def test_one_dict_is_one_row_and_a_dict_of_lists_is_columns():
    assert list(rows_of(HERON)) == [HERON]
    columns = {"question": ["a", "b"], "contexts": [["x"], []]}
    assert list(rows_of(columns)) == [{"question": "a", "contexts": ["x"]}, {"question": "b", "contexts": []}]


def test_pandas_frames_keep_their_cells_and_nan_is_absent():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "id": ["007", "8"],
            "answer": ["a", math.nan],
            "contexts": [["x"], None],
            "n": pandas.array([1, None], dtype="Int64"),
            "when": [pandas.Timestamp("2025-01-02"), pandas.NaT],
        }
    )
    first, second = rows_of(frame)
    assert (first["id"], first["answer"], first["contexts"], first["n"]) == ("007", "a", ["x"], 1)
    assert second == {"id": "8", "answer": None, "contexts": None, "n": None, "when": None}
    assert rows_of(frame).count_rows() == 2


def test_a_frame_with_two_columns_of_one_name_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ConfigError, match="two columns are called 'a'"):
        list(rows_of(pandas.DataFrame([[1, 2]], columns=["a", "a"])))


class HuggingFaceLike:
    """Rows by iteration, and columns by name, as in a Hugging Face data set."""

    column_names = ("question",)

    def __iter__(self):
        return iter([{"question": "a"}, {"question": "b"}])

    def __len__(self):
        return 2


class OnlyToList:
    def to_list(self):
        return [{"question": "a"}]


class Polars:
    def to_dicts(self):
        return [{"question": "a"}]


def test_data_sets_are_known_by_what_they_can_do():
    assert [row["question"] for row in rows_of(HuggingFaceLike())] == ["a", "b"]
    assert rows_of(HuggingFaceLike()).count_rows() == 2
    assert list(rows_of(OnlyToList())) == [{"question": "a"}] == list(rows_of(Polars()))


def test_several_splits_are_refused_with_their_names():
    with pytest.raises(ConfigError, match="choose a split: train, test"):
        rows_of({"train": HuggingFaceLike(), "test": HuggingFaceLike()})


@dataclass
class MyRow:
    question: str
    answer: str


def test_samples_and_dataclasses_are_rows():
    sample = Sample(user_input="q")
    assert list(rows_of([sample, MyRow("a", "b")])) == [sample, {"question": "a", "answer": "b"}]
    assert list(rows_of(sample)) == [sample]


def test_one_conversation_is_one_row_and_a_list_of_them_is_several():
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert list(rows_of(talk)) == [{"messages": talk}]
    assert list(rows_of([talk, talk])) == [{"messages": talk}, {"messages": talk}]


def test_a_pydantic_sample_gives_the_fields_that_it_fills():
    pydantic = pytest.importorskip("pydantic")
    made = pydantic.create_model("SingleTurnSample", user_input=(str | None, None), response=(str | None, None))
    assert list(rows_of([made(user_input="q")])) == [{"user_input": "q"}] == list(rows_of(made(user_input="q")))


def test_an_item_of_another_type_is_that_row_alone():
    assert as_row(3, "row 1") == BrokenRow("row 1: expected an object with named columns, found a value of type int")
    assert isinstance(list(rows_of([HERON, None]))[1], BrokenRow)


def test_what_holds_no_rows_is_refused():
    with pytest.raises(ConfigError, match="a value of type int holds no rows"):
        rows_of(3)


def test_a_path_is_opened(tmp_path):
    path = written(tmp_path, "rows.jsonl", '{"question": "a"}')
    assert list(rows_of(path)) == list(rows_of(str(path))) == [{"question": "a"}]
