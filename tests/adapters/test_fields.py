import datetime as dt
import decimal
import enum
import json
import math
from types import SimpleNamespace

import pytest

from ragparity.core.errors import ConfigError, SampleError
from ragparity.core.row import BrokenRow, Row
from ragparity.core.sample import FIELDS, Sample
from ragparity_adapters.fields import ALIASES, RowReader, folded

PORT = "The Heron gateway listens on TCP port 7443 by default."
THEME = "Heron ships with a dark theme."


def read(row, **options):
    return RowReader(**options).normalise(row)


def wrong(row, **options):
    with pytest.raises(SampleError) as caught:
        read(row, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def rows(raw, **options):
    return list(RowReader(**options).read_rows(raw))


# -- spellings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", sorted(ALIASES))
def test_every_spelling_is_read_into_its_field(spelling):
    values = {
        "messages": ([{"role": "system", "content": "v"}], ({"role": "system", "content": "v", "tool_calls": []},)),
        "reference_tool_calls": ([{"name": "v", "args": {}}], ({"name": "v", "args": {}},)),
        "rubrics": ({"v": "w"}, {"v": "w"}),
    }
    given, expected = values.get(ALIASES[spelling], (["v"], ("v",)))
    if ALIASES[spelling] in ("user_input", "response", "reference"):
        given = expected = "v"
    assert getattr(read({spelling: given}), ALIASES[spelling]) == expected


def test_every_alias_leads_to_a_field_of_a_sample_and_is_written_as_it_is_compared():
    assert set(ALIASES.values()) <= set(FIELDS)
    assert all(folded(name) == name for name in ALIASES)


def test_case_blanks_hyphens_and_camel_case_do_not_matter():
    sample = read({"Question": "q", "groundTruth": "g", "Retrieved Contexts": ["c"], "generated-answer": "a"})
    assert (sample.user_input, sample.reference, sample.retrieved_contexts, sample.response) == ("q", "g", ("c",), "a")


def test_columns_that_are_none_of_ours_are_kept_and_disturb_nothing():
    sample = read({"question": "q", "answer": "a", "ground_truth": "g", "owner": "me", "tags": ["x"], "blank": None})
    assert (sample.response, sample.reference, sample.retrieved_contexts) == ("a", "g", None)
    assert sample.extra == {"owner": "me", "tags": ["x"]}


# -- the rule for `answer` -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "response", "reference"),
    [
        ({"answer": "A", "generated_answer": "G"}, "G", "A"),
        ({"answer": "A", "generated_answer": None}, None, "A"),  # the workflow failed; it is no answer for that
        ({"answer": "A", "ground_truth": "T"}, "A", "T"),
        ({"answer": "A", "ground_truth": ""}, "A", ""),  # one unfilled cell turns no other cell around
        ({"answer": "A", "ground_truths": ["T"]}, "A", "T"),
        ({"answer": "A", "expected_output": "T"}, "A", "T"),
        ({"answer": "A"}, None, "A"),
        ({"answer": "A", "prediction": "P"}, "P", "A"),
        ({"answer": "A", "contexts": ["c"]}, None, "A"),
        ({"answer": "A", "generated_answer": "G", "ground_truth": "A"}, "G", "A"),
        ({"ANSWER": "A", "Generated Answer": "G"}, "G", "A"),
    ],
)
def test_answer_is_the_reference_or_the_response_by_what_stands_beside_it(row, response, reference):
    sample = read({"question": "q", **row})
    assert (sample.response, sample.reference) == (response, reference)


@pytest.mark.parametrize(
    ("row", "response", "reference"),
    [
        ({"answer": "A"}, "A", None),
        ({"answer": "A", "ground_truth": "T"}, "A", "T"),
        ({"answer": "A", "generated_answer": "G"}, "G", "A"),
    ],
)
def test_from_python_answer_is_the_response(row, response, reference):
    sample = read({"question": "q", **row}, python=True)
    assert (sample.response, sample.reference) == (response, reference)


def test_answer_and_another_spelling_of_what_it_is_must_agree():
    assert "'answer'" in wrong({"answer": "A", "response": "R", "reference": "T"})
    told = wrong({"answer": "A", "generated_answer": "G", "ground_truth": "T"})
    assert "reference" in told and "'answer'" in told and "'ground_truth'" in told


# -- structure -------------------------------------------------------------------------------------------


def test_structure_says_which_columns_hold_question_and_answers():
    structure = {"question_key": "question", "answer_key": "ground_truth", "generated_answer_key": "answer"}
    sample = read({"question": "q", "answer": "A", "ground_truth": "T"}, structure=structure)
    assert (sample.user_input, sample.response, sample.reference) == ("q", "A", "T")


def test_structure_wins_over_the_rule_and_the_other_spelling_is_kept_aside():
    sample = read({"question": "q", "answer": "A", "ground_truth": "T"}, structure={"answer_key": "answer"})
    assert (sample.response, sample.reference, sample.extra) == (None, "A", {"ground_truth": "T"})


@pytest.mark.parametrize(
    ("row", "response", "reference"),
    [
        ({"question": "q", "answer": "A", "ground_truth": "T"}, "A", "T"),
        ({"query": "q", "response": "A", "expected_output": "T"}, "A", "T"),
        ({"prompt": "q", "answer": "T", "generated_answer": "A"}, "A", "T"),
    ],
)
def test_a_structure_column_that_a_row_lacks_falls_back_to_the_spellings(row, response, reference):
    structure = {"question_key": "q_text", "answer_key": "gold", "generated_answer_key": "bot"}
    sample = read(row, structure=structure)
    assert (sample.user_input, sample.response, sample.reference) == ("q", response, reference)


def test_with_disable_the_whole_row_is_the_question():
    row = {"id": 1, "question": "q", "answer": "Größe", "n": math.nan}
    sample = read(row, structure={"disable": True, "question_key": "question"})
    assert json.loads(sample.user_input) == {"id": 1, "question": "q", "answer": "Größe"}
    assert (sample.response, sample.reference) == (None, None)


def test_a_misspelt_structure_key_is_refused():
    with pytest.raises(ConfigError, match=r"Did you mean answer_key\?"):
        RowReader(structure={"anwser_key": "a"})


# -- fields ----------------------------------------------------------------------------------------------

NESTED = {
    "inputs": {"q": "Which port?"},
    "outputs": {"text": "7443.", "docs": [{"body": PORT}, {"body": THEME}]},
}
PATHS = {"question": "inputs.q", "answer": "outputs.text", "contexts": "outputs.docs[].body"}


def test_paths_reach_into_nested_rows():
    sample = read(NESTED, fields=PATHS)
    assert (sample.user_input, sample.response) == ("Which port?", "7443.")
    assert sample.retrieved_contexts == (PORT, THEME)
    assert sample.extra == NESTED  # nothing is lost from what was not taken whole


@pytest.mark.parametrize(
    "outputs",
    [
        {"text": "7443."},
        {"text": "7443.", "docs": None},
        {"text": "7443.", "docs": [{"body": PORT}, {"text": THEME}]},
        {"text": "7443.", "docs": [PORT]},
        "no object",
    ],
)
def test_a_path_that_matches_nothing_is_an_error_of_that_row_with_the_path(outputs):
    first, second = rows([NESTED, {**NESTED, "outputs": outputs}], fields={"contexts": "outputs.docs[].body"})
    assert first.sample is not None
    assert "'outputs.docs[].body' matches nothing" in second.error


def test_a_path_into_a_csv_cell_reads_its_json():
    row = {"outputs": json.dumps(NESTED["outputs"])}
    assert read(row, fields={"retrieved_contexts": "outputs.docs[].body"}).retrieved_contexts == (PORT, THEME)


def test_fields_win_over_structure_and_spellings():
    row = {"question": "q", "prompt": "long", "answer": "A", "gold": "G", "reference": "R"}
    sample = read(row, fields={"user_input": "question", "reference": "gold"}, structure={"answer_key": "reference"})
    assert (sample.user_input, sample.reference, sample.response) == ("q", "G", "A")
    assert sample.extra == {"prompt": "long", "reference": "R"}


def test_in_fields_answer_is_the_response_unless_the_response_is_named_too():
    row = {"a": "A", "b": "B"}
    assert read(row, fields={"answer": "a"}).response == "A"
    both = read(row, fields={"answer": "a", "generated_answer": "b"})
    assert (both.reference, both.response) == ("A", "B")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"refrence": "a"}, "Did you mean reference?"),
        ({"question": "a", "user_input": "b"}, "a second time"),
        ({"response": "a..b"}, "is no path"),
        ({"response": "a[x]"}, "is no path"),
        ({"response": ""}, "is no path"),
    ],
)
def test_fields_that_no_row_can_satisfy_are_refused_before_any_row(fields, told):
    with pytest.raises(ConfigError) as caught:
        RowReader(fields=fields)
    assert told in str(caught.value)


# -- two spellings ---------------------------------------------------------------------------------------


def test_two_spellings_with_different_values_fail_the_row_and_name_both_columns():
    first, second = rows([{"question": "a", "query": "b"}, {"question": "c", "query": "c"}])
    assert "'question' and 'query' hold different values" in first.error
    assert "fields: {user_input: question}" in first.error
    assert second.sample.user_input == "c"


def test_retrieved_and_reference_contexts_are_never_mixed_up():
    sample = read({"contexts": ["r"], "reference_contexts": ["g"]})
    assert (sample.retrieved_contexts, sample.reference_contexts) == (("r",), ("g",))
    # In DeepEval `context` is the reference: beside `retrieval_context` it must not slip in as retrieved.
    told = wrong({"context": ["ideal"], "retrieval_context": ["found"]})
    assert "'context' and 'retrieval_context'" in told
    chosen = read(
        {"context": ["ideal"], "retrieval_context": ["found"]},
        fields={"retrieved_contexts": "retrieval_context", "reference_contexts": "context"},
    )
    assert (chosen.retrieved_contexts, chosen.reference_contexts) == (("found",), ("ideal",))


@pytest.mark.parametrize("blank", [None, math.nan, "", "  "])
def test_an_unfilled_cell_gives_way_to_the_other_spelling(blank):
    assert read({"contexts": blank, "retrieved_contexts": ["c"]}).retrieved_contexts == ("c",)
    assert read({"ground_truth": "g", "reference": blank}).reference == "g"


def test_an_empty_list_beside_passages_is_a_difference():
    assert "hold different values" in wrong({"contexts": [], "retrieved_contexts": ["c"]})


def test_equal_values_in_other_shapes_do_not_differ():
    sample = read({"contexts": '["a", "b"]', "documents": [{"text": "a"}, {"text": "b"}]})
    assert sample.retrieved_contexts == ("a", "b")
    assert read({"ground_truth": "g", "ground_truths": ["g"]}).reference == "g"


# -- texts -----------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("007", "007"),
        (" kept as it is ", " kept as it is "),
        (4, "4"),
        (4.0, "4.0"),
        (0.1, "0.1"),
        (True, "true"),
        (10**30, "1" + "0" * 30),
        (math.inf, "inf"),
        ({"port": 7443, "ü": [None]}, '{"port": 7443, "ü": [null]}'),
        ([1, "b"], '[1, "b"]'),
        (dt.date(2025, 1, 2), "2025-01-02"),
        (dt.datetime(2025, 1, 2, 3, 4, tzinfo=dt.UTC), "2025-01-02T03:04:00+00:00"),
        (decimal.Decimal("4.10"), "4.10"),
        (Colour.RED, "red"),
        ("", ""),
        (None, None),
        (math.nan, None),
    ],
)
def test_whatever_stands_in_a_text_field_becomes_text(value, expected):
    assert read({"response": value}).response == expected
    assert read({"question": value}).user_input == expected


def test_numbers_of_numpy_and_missing_values_of_pandas_are_plain():
    import numpy as np
    import pandas as pd

    sample = read(
        {
            "response": np.float64(4.0),
            "question": np.int64(7),
            "reference": pd.NA,
            "contexts": np.array(["a", "b"], dtype=object),
            "when": pd.Timestamp("2025-01-02"),
            "gone": pd.NaT,
            "vector": np.array([1.5, math.nan]),
        }
    )
    assert (sample.response, sample.user_input, sample.reference) == ("4.0", "7", None)
    assert sample.retrieved_contexts == ("a", "b")
    assert sample.extra == {"when": "2025-01-02T00:00:00", "vector": [1.5, None]}
    json.dumps(sample.canonical() | dict(sample.extra), allow_nan=False)


def test_half_a_character_is_replaced_since_no_file_or_request_can_carry_it():
    sample = read({"question": "a\ud800b", "contexts": ["\udfff"], "note": "\ud83d\ude00"})
    assert (sample.user_input, sample.retrieved_contexts) == ("a\ufffdb", ("\ufffd",))
    assert sample.extra == {"note": "\N{GRINNING FACE}"}


@pytest.mark.parametrize("odd", [object(), {1: object()}, [b"\xff"], int, lambda: None])
def test_odd_values_fail_their_row_with_the_column_and_never_crash(odd):
    for column in ("question", "answer", "ground_truth", "contexts", "context_ids", "messages", "reference_topics"):
        (row,) = rows([{column: odd}])
        assert row.error is not None and column in row.error


def test_odd_values_in_other_columns_are_told_as_text():
    assert read({"question": "q", "x": {1, 2}, "y": int}).extra == {"x": [1, 2], "y": "<class 'int'>"}


def test_a_row_that_contains_itself_fails_alone():
    endless = {"question": "q"}
    endless["more"] = endless
    loop = []
    loop.append(loop)
    first, second, third = rows([endless, {"response": loop}, {"question": "q"}])
    assert "contains itself" in first.error and "contains itself" in second.error and third.sample is not None


def test_a_row_that_is_no_mapping_fails_alone():
    first, second = rows([3, {"question": "q"}])
    assert first == Row(0, "row-1", error="expected a row with named columns, found a value of type int")
    assert second.sample.user_input == "q"


# -- questions that are objects --------------------------------------------------------------------------


def test_input_obj_field_picks_an_entry_of_the_question():
    row = {"input_obj": {"text": "q", "lang": "de"}}
    assert read(row, input_obj_field="text").user_input == "q"
    assert read({"question": '{"text": "q"}'}, input_obj_field="text").user_input == "q"
    assert read({"question": SimpleNamespace(text="q")}, input_obj_field="text").user_input == "q"
    assert read({"question": "just text"}, input_obj_field="text").user_input == "just text"
    assert read(row).user_input == '{"text": "q", "lang": "de"}'
    assert "'query' is not among the keys: text, lang" in wrong(row, input_obj_field="query")


def test_a_conversation_in_the_question_column_is_messages():
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    for value in (talk, json.dumps(talk), str(talk)):
        sample = read({"user_input": value})
        assert [message["role"] for message in sample.messages] == ["user", "assistant", "user"]
        assert (sample.user_input, sample.response) == (None, None)  # more than one question: none is taken


def test_the_only_question_and_the_answer_that_ends_a_conversation_are_fields_too():
    talk = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    sample = read({"messages": talk})
    assert (sample.user_input, sample.response, len(sample.messages)) == ("q", "a", 3)
    assert read({"messages": talk, "response": "own"}).response == "own"
    assert read({"messages": talk[:2]}).response is None


def test_an_assistant_message_as_response_is_its_text():
    assert read({"response": {"role": "assistant", "content": "a"}}).response == "a"


# -- ids -------------------------------------------------------------------------------------------------


def test_rows_with_the_same_id_are_all_kept_and_told_apart():
    warnings = []
    reader = RowReader()
    raw = [{"id": 7, "question": "a"}, {"id": 7, "question": "b"}, {"id": "7", "question": "c"}]
    found = list(reader.read_rows(raw, warn=warnings.append))
    assert [row.id for row in found] == ["7", "7#2", "7#3"] == [row.sample.id for row in found]
    assert [row.sample.user_input for row in found] == ["a", "b", "c"]
    assert len(warnings) == 2 and "'7#2'" in warnings[0] and "'7#3'" in warnings[1]
    assert found[0].sample.notes == () and found[1].sample.notes == (warnings[0],)


def test_a_made_up_id_never_collides_with_one_that_is_written():
    found = rows([{"id": "7"}, {"id": "7#2"}, {"id": "7"}, {"id": "7#2"}, {"id": "row-6"}, {}])
    assert [row.id for row in found] == ["7", "7#2", "7#3", "7#2#2", "row-6", "row-6#2"]


def test_rows_without_an_id_are_numbered_by_their_place():
    found = rows([{"question": "a"}, {"id": "", "question": "b"}, {"id": math.nan}, {"id": "x"}, {"id": object()}])
    assert [row.id for row in found] == ["row-1", "row-2", "row-3", "x", "row-5"]


@pytest.mark.parametrize(("value", "expected"), [("007", "007"), (7, "7"), (7.0, "7.0"), (" a ", " a "), ("Ä", "Ä")])
def test_ids_are_text_as_written(value, expected):
    assert rows([{"id": value}])[0].id == expected


def test_the_id_column_can_be_named_or_reached_by_a_path():
    assert rows([{"key": "k", "id": "i"}], id_key="key")[0].id == "k"
    assert rows([{"ID": "i"}], id_key="key")[0].id == "i"
    assert rows([{"meta": {"uid": 3}}], fields={"id": "meta.uid"})[0].id == "3"


def test_every_row_stays_a_row_in_order_and_a_broken_line_is_one():
    raw = [{"id": "a"}, BrokenRow("rows.jsonl, line 2: not valid JSON"), {"id": "a"}]
    found = rows(raw)
    assert [(row.index, row.id) for row in found] == [(0, "a"), (1, "row-2"), (2, "a#2")]
    assert found[1].error == "rows.jsonl, line 2: not valid JSON" and found[1].sample is None


def test_rows_are_read_as_they_are_asked_for():
    asked = []

    def source():
        for number in range(1_000_000):
            asked.append(number)
            yield {"question": str(number)}

    reading = RowReader().read_rows(source())
    assert next(reading).sample.user_input == "0" and next(reading).id == "row-2"
    assert asked == [0, 1]


def test_samples_are_rows_under_their_own_id():
    found = rows([Sample(id="s", user_input="q"), Sample(user_input="r"), Sample(id="s")])
    assert [row.id for row in found] == ["s", "row-2", "s#2"] == [row.sample.id for row in found]


def test_a_row_is_either_a_sample_or_an_error():
    with pytest.raises(ValueError, match="either a sample or an error"):
        Row(0, "a")


# -- the map of columns ----------------------------------------------------------------------------------


def test_the_map_of_a_row_tells_every_column_in_order():
    row = {"id": 1, "question": "q", "answer": "a", "contexts": [], "ground_truth": "g", "owner": "me"}
    assert RowReader().field_map(row) == [
        ("id", "id"),
        ("question", "user_input"),
        ("answer", "response"),
        ("contexts", "retrieved_contexts"),
        ("ground_truth", "reference"),
        ("owner", "extra"),
    ]


def test_the_map_shows_paths_structure_conversations_and_what_cannot_be_read():
    assert RowReader(fields=PATHS).field_map(NESTED) == [
        ("inputs", "extra"),
        ("outputs", "extra"),
        ("inputs.q", "user_input"),
        ("outputs.text", "response"),
        ("outputs.docs[].body", "retrieved_contexts"),
    ]
    assert RowReader(structure={"question_key": "text"}).field_map({"text": "q"}) == [("text", "user_input")]
    assert RowReader().field_map({"input": [{"role": "user", "content": "q"}]}) == [("input", "messages")]
    assert RowReader().field_map({"question": "a", "query": "b"}) == [
        ("question", "user_input"),
        ("query", "user_input"),
    ]
    assert RowReader().field_map(BrokenRow("x")) == []
    assert RowReader().field_map(Sample(id="1", response="a")) == [("id", "id"), ("response", "response")]


# -- workflows of the toolkit ----------------------------------------------------------------------------


def step(event, output):
    return {
        "parent_id": "root",
        "payload": {"event_type": event, "name": "t", "data": {"input": "i", "output": output}},
    }


STEPS = [
    step("TOOL_START", None),
    step("TOOL_END", "Heron listens on 7443"),
    step("LLM_END", "The port is 9999"),
    step("TOOL_END", {"results": [{"page_content": PORT, "document_id": "d1"}, {"page_content": THEME}]}),
    step("TOOL_END", None),
    step("TOOL_END", {"sum": 4}),
]
WORKFLOW_ROW = {
    "id": "q1",
    "question": "Which port?",
    "answer": "7443",
    "generated_answer": "The port is 9999",
    "intermediate_steps": STEPS,
    "expected_intermediate_steps": [],
}


@pytest.mark.parametrize("steps", [STEPS, json.dumps(STEPS)])
def test_without_contexts_the_tool_outputs_of_a_workflow_are_and_never_what_a_model_wrote(steps):
    sample = read({**WORKFLOW_ROW, "intermediate_steps": steps})
    assert (sample.response, sample.reference) == ("The port is 9999", "7443")
    assert sample.retrieved_contexts == ("Heron listens on 7443", PORT, THEME, '{"sum": 4}')
    assert "4 taken from the tool outputs in intermediate_steps" in sample.notes[0]
    assert "9999" not in " ".join(sample.retrieved_contexts)


def test_contexts_of_the_row_come_before_those_of_its_workflow():
    assert read({**WORKFLOW_ROW, "contexts": ["own"]}).retrieved_contexts == ("own",)
    assert read({**WORKFLOW_ROW, "contexts": []}).retrieved_contexts == ()
    assert len(read({**WORKFLOW_ROW, "contexts": None}).retrieved_contexts) == 4


def test_a_tool_message_around_a_retrievers_answer_is_opened_and_its_ids_are_kept():
    answer = json.dumps({"results": [{"page_content": PORT, "document_id": "d1"}]})
    steps = [step("TOOL_END", {"type": "tool", "tool_call_id": "c", "content": answer}), step("TOOL_END", answer)]
    sample = read({"steps": steps}, structure={"trajectory_key": "steps"})
    assert sample.retrieved_contexts == (PORT, PORT) and sample.retrieved_context_ids == ("d1", "d1")


def test_a_workflow_without_tools_has_no_contexts():
    assert read({**WORKFLOW_ROW, "intermediate_steps": [step("LLM_END", "9999")]}).retrieved_contexts is None
    assert read({**WORKFLOW_ROW, "intermediate_steps": None}).retrieved_contexts is None


# -- preprocessing ---------------------------------------------------------------------------------------


def test_data_uris_are_cut_out_of_the_response_on_request_noted_and_kept():
    blob = "data:image/png;base64," + "iVBORw0KGgo" * 20_000
    answer = f"See chart. {blob} Port 7443."
    plain = read({"response": answer})
    assert plain.response == answer and plain.notes == ()
    sample = read({"response": answer}, preprocess=["strip_data_uris"])
    assert sample.response == f"See chart. [data URI: image/png, {len(blob)} characters] Port 7443."
    assert sample.extra == {"response_before_preprocessing": answer}
    assert sample.notes == ("response: 1 data URI replaced by media type and length",)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("![x](data:image/svg+xml;utf8,%3Csvg%3E)", "![x]([data URI: image/svg+xml, 33 characters])"),
        ('<img src="data:text/plain;charset=utf-8;base64,aGk=">', '<img src="[data URI: text/plain, 41 characters]">'),
        ("the data: image/png, and data:image/png;base64, with nothing", None),
        ("no blob", None),
    ],
)
def test_only_data_uris_with_something_in_them_are_cut(text, kept):
    sample = read({"response": text}, preprocess="strip_data_uris")
    assert sample.response == (kept or text)
    assert bool(sample.notes) is (kept is not None)


def test_an_unknown_preprocessing_is_refused():
    with pytest.raises(ConfigError, match=r"Did you mean strip_data_uris\?"):
        RowReader(preprocess=["strip_data_uri"])
