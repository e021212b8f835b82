import json
from types import SimpleNamespace

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage

from ragparity.core.errors import SampleError
from ragparity_adapters.fields import RowReader

CALL = {"name": "weather", "args": {"city": "Oslo", "days": 2}}
TALK = (
    {"role": "system", "content": "Be brief.", "tool_calls": []},
    {"role": "user", "content": "Weather?", "tool_calls": []},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "7 °C", "tool_calls": []},
    {"role": "assistant", "content": "7 °C.", "tool_calls": []},
)
OPENAI = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "weather", "arguments": json.dumps(CALL["args"])}}
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "7 °C"},
    {"role": "assistant", "content": "7 °C."},
]
LANGCHAIN = [
    SystemMessage("Be brief."),
    HumanMessage("Weather?"),
    AIMessage("", tool_calls=[{**CALL, "id": "c"}]),
    ToolMessage("7 °C", tool_call_id="c"),
    AIMessage("7 °C."),
]
RAGAS = [  # what its message classes dump to, with system left out as it has none
    {"content": "Weather?", "metadata": None, "type": "human"},
    {"content": "", "metadata": None, "type": "ai", "tool_calls": [CALL]},
    {"content": "7 °C", "metadata": None, "type": "tool"},
    {"content": "7 °C.", "metadata": None, "type": "ai", "tool_calls": None},
]
ANTHROPIC = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "name": "weather", "input": CALL["args"]}],
    },
]


def read(row):
    return RowReader().normalise(row)


def wrong(row):
    with pytest.raises(SampleError) as caught:
        read(row)
    return str(caught.value)


@pytest.mark.parametrize("talk", [OPENAI, LANGCHAIN, [dumpd(message) for message in LANGCHAIN], json.dumps(OPENAI)])
def test_conversations_of_every_library_become_the_same_messages(talk):
    sample = read({"messages": talk})
    assert sample.messages == TALK
    assert sample.notes == ()
    json.dumps(sample.canonical())


def test_ragas_and_anthropic_messages_and_pairs_are_read_too():
    assert read({"user_input": RAGAS}).messages == TALK[1:]
    assert read({"messages": ANTHROPIC}).messages == TALK[1:3]
    assert read({"messages": [("human", "Weather?"), ("ai", "7 °C.")]}).messages == (TALK[1], TALK[4])
    assert read({"messages": [AIMessageChunk("7 °C.")]}).messages == (TALK[4],)
    objects = [SimpleNamespace(type="ai", content="", tool_calls=[SimpleNamespace(**CALL)])]
    assert read({"messages": objects}).messages == (TALK[2],)


def test_the_call_of_older_openai_messages_is_a_tool_call():
    message = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}
    assert read({"messages": [message]}).messages[0]["tool_calls"] == [{"name": "f", "args": {}}]


def test_a_part_that_is_no_text_is_left_out_and_noted():
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "x"}}, "Tell me."]
    sample = read({"messages": [{"role": "user", "content": parts}]})
    assert sample.messages[0]["content"] == "What is this?\nTell me."
    assert sample.notes == ("messages[0]: a part of type image_url holds no text and was left out",)


def test_arguments_that_an_agent_garbled_are_kept_as_text_and_noted():
    call = {"function": {"name": "weather", "arguments": '{"city": "Osl'}}
    sample = read({"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]})
    assert sample.messages[0]["tool_calls"] == [{"name": "weather", "args": {"arguments": '{"city": "Osl'}}]
    assert "kept as text" in sample.notes[0]


@pytest.mark.parametrize(
    ("talk", "told"),
    [
        ([{"role": "narrator", "content": "x"}], "messages[0]: a message has a content and a role"),
        ([{"role": "user", "content": "x"}, {"text": "y"}], "messages[1]"),
        ([{"role": "user"}], "messages[0]"),
        (["hi"], "found a value of type str"),
        ("hi", "expected a list of objects"),
        ({"role": "user", "content": "x"}, "expected a list of objects"),
        ([{"role": "assistant", "content": "", "tool_calls": [{"args": {}}]}], "tool_calls[0]: a tool call has a name"),
    ],
)
def test_what_is_no_conversation_is_refused_with_the_place(talk, told):
    assert told in wrong({"messages": talk})


def test_a_blank_cell_holds_no_messages_and_an_empty_list_holds_none():
    assert read({"messages": ""}).messages is None
    assert read({"messages": []}).messages == ()


@pytest.mark.parametrize(
    "calls",
    [
        [CALL],
        CALL,
        json.dumps([CALL]),
        str([CALL]),
        [{"type": "function", "function": {"name": "weather", "arguments": json.dumps(CALL["args"])}}],
        [{"name": "weather", "input_parameters": CALL["args"]}],
        [SimpleNamespace(**CALL)],
    ],
)
def test_reference_tool_calls_of_every_shape_are_name_and_args(calls):
    assert read({"reference_tool_calls": calls}).reference_tool_calls == (CALL,)


def test_reference_tool_calls_that_cannot_be_read_are_refused():
    assert "no JSON object" in wrong({"reference_tool_calls": [{"name": "f", "args": "{"}]})
    assert "no JSON object: [1]" in wrong({"reference_tool_calls": [{"name": "f", "args": [1]}]})
    assert "has a name and args" in wrong({"reference_tool_calls": ["search"]})
    assert read({"reference_tool_calls": ""}).reference_tool_calls is None
    assert read({"reference_tool_calls": [{"name": "f"}]}).reference_tool_calls == ({"name": "f", "args": {}},)
