"""Recorded steps of the toolkit: what counts as evidence, and which calls were made."""

import json

import pytest

from ragparity_adapters import trajectories
from ragparity_adapters.fields import RowReader
from ragparity_adapters.printed import printed_objects


def step(event, number, *, name="search", given=None, output=None, function="agent", caller=None, began=None):
    return {
        "function_ancestry": {"function_id": function, "function_name": function, "parent_id": caller},
        "payload": {
            "event_type": event,
            "event_timestamp": float(number),
            "span_event_timestamp": began,
            "name": name,
            "data": {"input": given, "output": output},
        },
    }


def passages(*steps):
    return trajectories.tool_passages(list(steps), "intermediate_steps")


# -- evidence


def test_a_retrievers_answer_is_its_documents_with_their_ids():
    answer = {"results": [{"page_content": "a", "document_id": "1"}, {"page_content": "b", "document_id": "2"}]}
    message = {"content": json.dumps(answer), "type": "tool", "tool_call_id": "c"}
    for output in (answer, json.dumps(answer), message, str(answer), "content='x' tool_call_id='c'"):
        expected = (("x",), None) if output == "content='x' tool_call_id='c'" else (("a", "b"), ("1", "2"))
        assert passages(step("TOOL_END", 1, output=output)) == expected


def test_what_a_model_wrote_is_no_evidence():
    assert passages(step("LLM_END", 1, output="made up")) == (None, None)


def test_functions_count_only_where_no_tool_was_recorded():
    function = step("FUNCTION_END", 1, name="lookup", output="from a function", function="lookup", caller="agent")
    assert passages(function)[0] == ("from a function",)
    assert passages(function, step("TOOL_END", 2, output="from a tool"))[0] == ("from a tool",)


def test_a_function_that_called_another_one_or_only_wrote_is_an_agent():
    inner = step("FUNCTION_END", 1, name="lookup", output="passage", function="lookup", caller="writer")
    writer = step("FUNCTION_END", 3, name="writer", output="an answer", function="writer", caller="<workflow>")
    poet = step("FUNCTION_END", 4, name="poet", output="a poem", function="poet", caller="<workflow>")
    asked = step("LLM_END", 2, output="a poem", function="poet")
    whole = step("FUNCTION_END", 5, name="<workflow>", output="an answer", function="w")
    assert passages(inner, asked, writer, poet, whole)[0] == ("passage",)


def test_the_nodes_of_an_agents_graph_are_no_functions_and_no_evidence():
    node = step("FUNCTION_END", 1, name="LangGraph", output={"messages": ["the answer"]}, function="<workflow>")
    prompt = step("FUNCTION_END", 2, name="PromptPassthrough", output="the question", function="<workflow>")
    assert passages(node, prompt) == (None, None)
    assert trajectories.tool_calls([node, prompt]) == ()


@pytest.mark.parametrize("event", ["TOOL_END", "FUNCTION_END"])
def test_of_a_tool_that_asked_a_model_documents_are_evidence_and_text_is_not(event):
    asked = step("LLM_END", 1, output="how to search", function="search")
    documents = {"results": [{"page_content": "passage"}]}
    for output in (documents, str(documents), {"content": json.dumps(documents), "tool_call_id": "c"}):
        assert passages(asked, step(event, 2, output=output, function="search"))[0] == ("passage",)
    for output in ("an answer", {"content": "an answer", "tool_call_id": "c"}, "['an answer']"):
        assert passages(asked, step(event, 2, output=output, function="search")) == (None, None)
    calls = trajectories.tool_calls([asked, step(event, 2, output="an answer", function="search")])
    assert [call["name"] for call in calls] == ["search"], "it was called all the same"


@pytest.mark.parametrize("output", [None, "", "  "])
def test_a_tool_that_gave_nothing_back_is_no_passage(output):
    assert passages(step("TOOL_END", 1, output=output)) == (None, None)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"port": 7443, "tls": True}, '{"port": 7443, "tls": true}'),
        (str({"port": 7443, "tls": True}), '{"port": 7443, "tls": true}'),
        ('{"port": 7443}', '{"port": 7443}'),
        ("x = 3, y=4", "x = 3, y=4"),
        ("Timeout(after=5)", "Timeout(after=5)"),
        (4.5, "4.5"),
    ],
)
def test_an_object_of_another_kind_is_one_passage_however_it_was_written(output, text):
    assert passages(step("TOOL_END", 1, output=output))[0] == (text,)


# -- calls


def test_arguments_are_objects_whether_they_came_as_json_as_python_or_as_plain_text():
    steps = [
        step("TOOL_END", 1, name="a", given='{"n": 1}'),
        step("TOOL_END", 2, name="b", given="{'n': None}"),
        step("TOOL_END", 3, name="c", given="plain"),
        step("TOOL_END", 4, name="d", given=None),
    ]
    assert [(call["name"], call["args"]) for call in trajectories.tool_calls(steps)] == [
        ("a", {"n": 1}), ("b", {"n": None}), ("c", {"input": "plain"}), ("d", {}),
    ]  # fmt: skip


def test_calls_of_one_turn_stand_in_the_order_in_which_they_began():
    steps = [
        step("LLM_END", 1),
        step("TOOL_END", 3, name="slow", began=1.2),
        step("TOOL_END", 2, name="fast", began=1.5),
        step("LLM_END", 4),
        step("TOOL_END", 5, name="next", began=0.5),
    ]
    assert [call["name"] for call in trajectories.tool_calls(steps)] == ["slow", "fast", "next"]


def test_a_row_with_steps_gets_its_conversation_and_the_calls_that_were_wanted():
    row = {
        "question": "q",
        "generated_answer": "a",
        "intermediate_steps": [step("TOOL_END", 1, given={"n": 1}, output="found")],
        "expected_intermediate_steps": json.dumps([step("TOOL_END", 1, name="search", given={"n": 2})]),
    }
    sample = RowReader().normalise(row)
    assert sample.messages == (
        {"role": "user", "content": "q", "tool_calls": []},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "args": {"n": 1}}]},
        {"role": "tool", "content": "found", "tool_calls": []},
        {"role": "assistant", "content": "a", "tool_calls": []},
    )
    assert sample.reference_tool_calls == ({"name": "search", "args": {"n": 2}},)


def test_steps_without_a_tool_are_a_conversation_without_calls_and_no_steps_are_nothing():
    asked = {"question": "q", "intermediate_steps": [step("LLM_END", 1, output="a")]}
    assert RowReader().normalise(asked).messages == ({"role": "user", "content": "q", "tool_calls": []},)
    assert RowReader().normalise({"question": "q", "intermediate_steps": []}).messages is None


def test_a_rows_own_messages_and_calls_come_before_its_steps():
    row = {
        "messages": [{"role": "user", "content": "mine"}],
        "reference_tool_calls": [],
        "intermediate_steps": [step("TOOL_END", 1)],
        "expected_intermediate_steps": [step("TOOL_END", 1)],
    }
    sample = RowReader().normalise(row)
    assert [message["content"] for message in sample.messages] == ["mine"]
    assert sample.reference_tool_calls == ()


# -- printed objects


def test_documents_and_messages_of_langchain_are_read_from_their_printed_form():
    from langchain_core.documents import Document
    from langchain_core.messages import ToolMessage

    documents = [Document(page_content='it\'s "a"\n', metadata={"page": 1}), Document(page_content="b")]
    found = printed_objects(str(documents))
    assert [one["page_content"] for one in found] == ['it\'s "a"\n', "b"]
    message = ToolMessage(content="name='x' [1]", tool_call_id="c", name="search")
    assert printed_objects(str(message))["content"] == "name='x' [1]"
    assert printed_objects(str(documents[1]))["page_content"] == "b"


@pytest.mark.parametrize(
    "text",
    ["", "plain", "a=b", "f(1)", "f(x=g)", "[1, 2]", "{}", "__import__('os')", "x='unclosed", "a.b=3", "{**x}", "\0"],
)
def test_any_other_text_is_left_alone_and_nothing_is_ever_run(text):
    assert printed_objects(text) is None
