import json
import pprint
from types import SimpleNamespace

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd

from ragparity.core.errors import SampleError
from ragparity_adapters.fields import RowReader

PORT = "Heron listens on 7443."
THEME = "Heron ships with a dark theme."


def read(row, **options):
    return RowReader(**options).normalise(row)


def wrong(row):
    with pytest.raises(SampleError) as caught:
        read(row)
    return str(caught.value)


# -- shapes of a passage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "passage",
    [
        PORT,
        {"content": PORT},
        {"text": PORT, "score": 0.4},
        {"page_content": PORT, "metadata": {"source": "a"}},
        {"body": PORT},
        {"content": PORT, "text": None},
        {"content": PORT, "text": PORT},
        {"content": {"text": PORT}},
        {"content": [{"type": "text", "text": PORT}]},
        Document(page_content=PORT),
        dumpd(Document(page_content=PORT)),
        SimpleNamespace(page_content=PORT, metadata={}),
        SimpleNamespace(content=PORT),
    ],
)
def test_every_known_shape_of_a_passage_gives_the_same_text(passage):
    assert read({"contexts": [passage, THEME]}).retrieved_contexts == (PORT, THEME)
    assert read({"contexts": passage}).retrieved_contexts == (PORT,)
    assert read({"reference_contexts": [passage]}).reference_contexts == (PORT,)


def test_texts_and_documents_may_be_mixed_and_none_is_lost():
    mixed = [PORT, Document(page_content=THEME)]
    assert read({"contexts": mixed}).retrieved_contexts == (PORT, THEME)


@pytest.mark.parametrize(
    "output",
    [
        {"results": [{"page_content": PORT, "metadata": {}, "document_id": "d1"}, {"page_content": THEME}]},
        SimpleNamespace(results=[Document(page_content=PORT), Document(page_content=THEME)]),
        {"documents": [{"content": PORT}, {"content": THEME}]},
        json.dumps({"results": [{"page_content": PORT}, {"page_content": THEME}]}),
    ],
)
def test_a_retrievers_whole_answer_is_its_documents(output):
    assert read({"contexts": output}).retrieved_contexts == (PORT, THEME)


def test_an_unknown_object_names_the_keys_seen_and_those_accepted():
    told = wrong({"contexts": [PORT, {"title": "t", "chunk": "c"}]})
    assert told.startswith("contexts[1]: ")
    assert "title, chunk" in told and "page_content, content, text, body" in told
    assert "fields: {retrieved_contexts: 'contexts[].key'}" in told
    assert "keys: none" in wrong({"contexts": {}})


def test_an_object_with_two_different_texts_is_not_guessed_at():
    told = wrong({"contexts": [{"content": PORT, "text": THEME}]})
    assert "content and text hold different texts" in told


def test_a_text_beside_an_empty_one_is_the_text():
    assert read({"contexts": [{"content": "", "text": PORT}]}).retrieved_contexts == (PORT,)


def test_lists_inside_lists_and_sets_are_refused():
    assert "contexts[0]" in wrong({"contexts": [[PORT]]})
    assert "not a value of type set" in wrong({"contexts": [{PORT}]})


def test_missing_items_keep_their_rank_as_blank_passages():
    assert read({"contexts": [None, PORT, {"text": None}]}).retrieved_contexts == ("", PORT, "")


@pytest.mark.parametrize(
    ("value", "passages"), [(None, None), ([], ()), ("", ()), ("  ", ()), ("[]", ()), (42, ("42",))]
)
def test_absent_empty_and_numbers_are_told_apart(value, passages):
    assert read({"contexts": value}).retrieved_contexts == passages


# -- cells that spell a list -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "passages"),
    [
        ('["A.", "B."]', ("A.", "B.")),
        ("['A.', 'B.']", ("A.", "B.")),
        ("A.", ("A.",)),
        ("", ()),
        ('["A., with comma"]', ("A., with comma",)),
        ('  ["A."]\n', ("A.",)),
        ("""["it's", 'say "hi"']""", ("it's", 'say "hi"')),
        (r"['\\d+ is a pattern', '\d too']", (r"\d+ is a pattern", r"\d too")),
        ('[{"text": "A."}, {"text": "B."}]', ("A.", "B.")),
        ("[{'page_content': 'A.'}]", ("A.",)),
        ("A. B; C | D", ("A. B; C | D",)),
        ("[Kiruna](https://example.org) lies north", ("[Kiruna](https://example.org) lies north",)),
        ("[1] see [2]", ("[1] see [2]",)),
        ("('A.', 'B.')", ("('A.', 'B.')",)),
        ('{"port": 7443}', ('{"port": 7443}',)),
        ('{"results": []}', ()),
        ('{"text": "A."}', ("A.",)),
        (json.dumps(["Größe — 温度"]), ("Größe — 温度",)),
    ],
)
def test_a_cell_is_a_list_in_json_or_python_or_else_one_passage(cell, passages):
    sample = read({"contexts": cell})
    assert sample.retrieved_contexts == passages
    assert sample.notes == ()


@pytest.mark.parametrize("cell", ['["A.', "['A.', 'B.", '["A." "B", 3', "[['A.']", "[" * 5000, '["A.", open("x")]'])
def test_a_broken_list_is_one_passage_with_a_note(cell):
    sample = read({"contexts": cell})
    assert sample.retrieved_contexts == (cell,)
    assert sample.notes == ("contexts: starts like a list but is none; read as one text",)


def test_a_printed_numpy_array_has_no_commas_and_is_not_joined_into_one_passage():
    import numpy as np

    cell = str(np.array(["A.", "it's B."], dtype=object))
    assert cell == """['A.' "it's B."]"""
    sample = read({"contexts": cell})
    assert sample.retrieved_contexts == ("A.", "it's B.")
    assert sample.notes == ("contexts: a printed array without commas, read as 2 items",)


def test_a_long_passage_that_pprint_has_wrapped_stays_one():
    passages = ["word " * 40, "short"]
    assert read({"contexts": pprint.pformat(passages)}).retrieved_contexts == tuple(passages)


def test_a_text_inside_a_list_is_never_read_as_a_list():
    assert read({"contexts": ['["A.", "B."]']}).retrieved_contexts == ('["A.", "B."]',)


# -- ids -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        ([1, "b", 2.5], ("1", "b", "2.5")),
        ("[1, 2]", ("1", "2")),
        ("['a', 'b']", ("a", "b")),
        ("a, b", ("a, b",)),
        (7, ("7",)),
        ([{"id": 1}, {"document_id": "d"}], ("1", "d")),
        ([], ()),
        ("", None),
        (None, None),
    ],
)
def test_context_ids_are_texts(value, ids):
    assert read({"retrieved_context_ids": value}).retrieved_context_ids == ids
    assert read({"reference_context_ids": value}).reference_context_ids == ids


def test_an_id_that_is_missing_or_no_id_is_an_error():
    assert "retrieved_context_ids[1]: an id is a text or a number" in wrong({"retrieved_context_ids": ["a", None]})
    assert "[0]" in wrong({"retrieved_context_ids": [["a"]]})


@pytest.mark.parametrize(
    "documents",
    [
        [{"text": "a", "id": 1}, {"text": "b", "id": "x"}],
        [{"page_content": "a", "document_id": "1"}, {"page_content": "b", "document_id": "x"}],
        [{"text": "a", "metadata": {"id": 1}}, {"text": "b", "metadata": {"id": "x"}}],
        [Document(page_content="a", id="1"), Document(page_content="b", id="x")],
        [{"text": "a", "id": 1, "document_id": "1"}, {"text": "b", "id": "x", "document_id": "x"}],
        [{"text": "a", "id": 1, "metadata": {"id": "only here"}}, {"text": "b", "id": "x"}],
    ],
)
def test_documents_that_all_carry_one_id_give_the_context_ids(documents):
    assert read({"contexts": documents}).retrieved_context_ids == ("1", "x")
    assert read({"reference_contexts": documents}).reference_context_ids == ("1", "x")


@pytest.mark.parametrize(
    ("documents", "noted"),
    [
        ([{"text": "a", "id": 1}, {"text": "b"}], False),
        ([{"text": "a", "id": 1}, "b"], False),
        ([{"text": "a", "id": 1}, {"text": "b", "document_id": 2}], False),
        ([{"text": "a", "id": "u-1", "metadata": {"id": "d-1"}}], True),
    ],
)
def test_ids_that_are_missing_or_ambiguous_are_not_taken(documents, noted):
    sample = read({"contexts": documents})
    assert sample.retrieved_context_ids is None
    assert bool(sample.notes) is noted


@pytest.mark.parametrize("order", [("retrieved_context_ids", "contexts"), ("contexts", "retrieved_context_ids")])
def test_a_column_of_ids_comes_before_the_ids_of_documents(order):
    row = {"contexts": [{"text": "a", "id": "u-1"}], "retrieved_context_ids": ["doc-9"]}
    assert read({name: row[name] for name in order}).retrieved_context_ids == ("doc-9",)


# -- references ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reference", "references"),
    [
        ({"ground_truth": ["Port 7443"]}, "Port 7443", None),
        ({"ground_truths": ["Port 7443", "TCP 7443"]}, "Port 7443", ("Port 7443", "TCP 7443")),
        ({"reference": "Port 7443"}, "Port 7443", None),
        ({"reference": ["Port 7443", 7443, None]}, "Port 7443", ("Port 7443", "7443")),
        ({"ground_truths": '["Port 7443", "TCP 7443"]'}, "Port 7443", ("Port 7443", "TCP 7443")),
        ({"ground_truths": "['Port 7443']"}, "Port 7443", None),
        ({"ground_truths": "Port 7443"}, "Port 7443", None),
        ({"ground_truths": []}, None, ()),
        ({"ground_truth": {"port": 7443}}, '{"port": 7443}', None),
        ({"ground_truth": 4}, "4", None),
    ],
)
def test_one_reference_is_a_text_and_several_are_all_kept(row, reference, references):
    sample = read(row)
    assert (sample.reference, sample.references) == (reference, references)


def test_a_singular_reference_that_looks_like_a_list_stays_text_and_is_noted():
    sample = read({"reference": '["red", "blue"]'})
    assert (sample.reference, sample.references) == ('["red", "blue"]', None)
    assert "call the column references" in sample.notes[0]
    assert read({"reference": "[2, 3, 5]"}).notes == ()


def test_lists_inside_a_list_of_references_are_refused():
    assert "a list inside a list" in wrong({"references": [["a"], ["b"]]})


# -- topics and rubrics ----------------------------------------------------------------------------------


def test_topics_are_a_list_of_texts():
    assert read({"reference_topics": ["a", 1]}).reference_topics == ("a", "1")
    assert read({"reference_topics": '["a", "b"]'}).reference_topics == ("a", "b")
    assert read({"reference_topics": "ports, themes"}).reference_topics == ("ports, themes",)
    assert read({"reference_topics": ""}).reference_topics is None
    assert "a topic is a text" in wrong({"reference_topics": [{"a": 1}]})


def test_rubrics_are_an_object_of_texts():
    rubrics = {"score1_description": "wrong", "score2_description": 2}
    expected = {"score1_description": "wrong", "score2_description": "2"}
    assert read({"rubrics": rubrics}).rubrics == expected == read({"rubrics": json.dumps(rubrics)}).rubrics
    assert read({"rubrics": {**rubrics, "score3_description": None}}).rubrics == expected
    assert read({"rubrics": ""}).rubrics is None
    assert "found a list" in wrong({"rubrics": ["a"]})
    assert "found other text" in wrong({"rubrics": "a"})


# -- lists of texts are nearly always taken as they are --------------------------------------------------


@pytest.mark.parametrize("column", ["contexts", "retrieved_context_ids"])
@pytest.mark.parametrize(
    ("texts", "taken"),
    [
        (["a", "b"], ("a", "b")),
        (["Größe", "温度"], ("Größe", "温度")),
        (["\ud83d", "\ude00"], ("\ufffd", "\ufffd")),  # two halves in two texts are no character
        (["\ud83d\ude00"], ("\U0001f600",)),
        (["é", 7], ("é", "7")),
        ([], ()),
    ],
)
def test_texts_of_any_script_stay_and_half_characters_do_not(column, texts, taken):
    sample = read({"question": "q", column: texts})
    assert (sample.retrieved_contexts if column == "contexts" else sample.retrieved_context_ids) == taken
