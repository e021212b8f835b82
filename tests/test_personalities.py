"""Each kind of server that the fake one can be: its rule, shown once."""

import http.client
import json

import pytest
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from openai import BadRequestError
from pydantic import BaseModel
from tests.fakeserver import PERSONALITIES, FakeServer, Reply, content_filtered, like
from tests.personalities import strict_problems

SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "rating": {"type": "integer", "enum": [0, 2, 4]}},
    "required": ["reason", "rating"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "Rating", "schema": SCHEMA, "strict": True}}
TOOLS = [{"type": "function", "function": {"name": "Rating", "parameters": SCHEMA}}]
CHOICE = {"type": "function", "function": {"name": "Rating"}}
ANSWER = {"reason": "It says so.", "rating": 4}
TEN_WORDS = " ".join(["word"] * 10)


def ask(text="Rate it as json.", **more):
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def send(server, body, path="/v1/chat/completions", headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request("POST", path, json.dumps(body), headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def choice(server, **body):
    """Content, finish reason and message of the first choice."""
    status, reply = send(server, ask(**body))
    assert status == 200, reply
    first = reply["choices"][0]
    return first["message"]["content"], first["finish_reason"], first["message"]


def error(server, **body):
    status, reply = send(server, ask(**body))
    return status, reply.get("error", reply)


class Rating(BaseModel):
    reason: str
    rating: int


@pytest.mark.parametrize("name", PERSONALITIES)
def test_every_personality_answers_a_plain_prompt_and_a_bad_one_with_an_error(name):
    azure = {"api-key": "k"}
    with FakeServer(reply="4", personality=name, latency=0.001) as server:
        status, reply = send(server, ask(), headers=azure)
        assert status == 200 and reply["choices"][0]["message"]["content"] == "4"
        assert send(server, {"model": "m"}, headers=azure)[0] in (400, 422)
        assert server.calls == 2


def test_the_model_is_not_asked_about_a_rejected_request():
    with FakeServer(reply=["only one"], personality="rejects-temperature") as server:
        assert error(server, temperature=0)[0] == 400
        assert choice(server)[0] == "only one"


def test_an_unknown_personality_names_the_known_ones():
    with pytest.raises(ValueError, match="unknown personality 'gpt'; known: openai, "):
        like("gpt")


def test_openai_honours_either_limit_but_not_both():
    with FakeServer(reply=TEN_WORDS, personality="openai") as server:
        assert choice(server, max_tokens=2)[:2] == ("word word", "length")
        assert choice(server, max_completion_tokens=3)[:2] == ("word word word", "length")
        assert choice(server, max_completion_tokens=10)[:2] == (TEN_WORDS, "stop")
        assert error(server, max_tokens=2, max_completion_tokens=2)[1]["code"] == "invalid_parameter_combination"
        assert error(server, max_tokens=0)[0] == 400
        assert error(server, nvext={})[1]["code"] == "unknown_parameter"


def test_openai_gives_schema_and_tool_answers_and_checks_strict_schemas():
    with FakeServer(reply=ANSWER, personality="openai") as server:
        assert json.loads(choice(server, response_format=FORMAT)[0]) == ANSWER
        content, finish, message = choice(server, tools=TOOLS)
        assert (content, finish) == (None, "tool_calls")
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == ANSWER
        assert choice(server, tools=TOOLS, tool_choice=CHOICE)[1] == "stop"
        assert choice(server, tools=TOOLS, tool_choice=CHOICE, max_tokens=4)[1] == "length"
        assert choice(server, tools=TOOLS, tool_choice="none")[0] == json.dumps(ANSWER)
        loose = {**FORMAT, "json_schema": {"name": "R", "schema": {"type": "object"}, "strict": True}}
        status, problem = error(server, response_format=loose)
        assert status == 400 and "'additionalProperties' is required" in problem["message"]
        mode = {"type": "json_object"}
        assert error(server, text="Rate it.", response_format=mode)[1]["param"] == "messages"
        assert choice(server, response_format=mode)[0] == json.dumps(ANSWER)
        assert len(send(server, ask(n=3))[1]["choices"]) == 3


def test_strict_mode_finds_what_openai_refuses():
    class Inner(BaseModel, extra="forbid"):
        a: int = 3

    class Outer(BaseModel, extra="forbid"):
        inner: list[Inner]

    missing, default = strict_problems(Outer.model_json_schema())
    assert missing == "In context=('$defs', 'Inner'), 'required' must list every key in properties. Missing 'a'."
    assert default == "In context=('$defs', 'Inner', 'properties', 'a'), 'default' is not permitted."
    assert list(strict_problems(SCHEMA)) == []
    assert "must be a JSON Schema of 'type: \"object\"'" in next(strict_problems({"type": "array"}))


def test_openai_reasoning_rejects_max_tokens_and_temperature_and_spends_hidden_tokens_first():
    with FakeServer(reply="4", personality="openai-reasoning") as server:
        status, problem = error(server, max_tokens=8)
        assert (status, problem["code"], problem["param"]) == (400, "unsupported_parameter", "max_tokens")
        assert "Use 'max_completion_tokens' instead" in problem["message"]
        assert error(server, temperature=0)[1]["code"] == "unsupported_value"
        assert choice(server, temperature=1)[0] == "4"
        assert choice(server, max_completion_tokens=8)[:2] == ("", "length")
        assert choice(server, max_completion_tokens=65)[:2] == ("4", "stop")
        usage = send(server, ask())[1]["usage"]
        assert usage["completion_tokens"] == 65
        assert usage["completion_tokens_details"]["reasoning_tokens"] == 64
        assert choice(server, max_completion_tokens=8, reasoning_effort="none")[0] == "4"


def test_openai_reasoning_names_the_parameter_to_the_langchain_client():
    with FakeServer(personality="openai-reasoning") as server:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0, temperature=0.1)
        with pytest.raises(BadRequestError, match="Only the default"):
            model.invoke("Rate it.")


def test_azure_wants_a_deployment_path_an_api_version_and_a_key():
    with FakeServer(reply=["4", "4", content_filtered()], personality="azure", models=["judge-eu"]) as server:
        model = AzureChatOpenAI(
            azure_endpoint=server.url, azure_deployment="judge-eu", api_version="2024-10-21", api_key="k", max_retries=0
        )
        assert model.invoke("Rate it.").content == "4"
        seen = server.requests[0]
        assert seen.path == "/openai/deployments/judge-eu/chat/completions"
        assert seen.query == {"api-version": "2024-10-21"} and seen.headers["api-key"] == "k"
        path, key = "/openai/deployments/{}/chat/completions?api-version=v", {"api-key": "k"}
        _, reply = send(server, ask(), path.format("judge-eu"), key)
        assert reply["choices"][0]["content_filter_results"]["hate"] == {"filtered": False, "severity": "safe"}
        with pytest.raises(BadRequestError) as caught:
            model.invoke("Rate it.")
        assert caught.value.code == "content_filter" and "innererror" in caught.value.body
        assert send(server, ask(), path.format("judge-eu"))[0] == 401
        assert send(server, ask(), path.format("judge-eu").partition("?")[0], key)[0] == 404
        assert send(server, ask(), path.format("other"), key)[1]["error"]["code"] == "DeploymentNotFound"
        assert send(server, ask() | {"model": "judge-eu"}, "/openai/v1/chat/completions")[0] == 401


def test_nim_knows_max_tokens_only_and_guided_json():
    with FakeServer(personality="nim") as server:
        status, problem = error(server, max_completion_tokens=8)
        assert status == 400 and "extra_forbidden" in problem["message"] and problem["object"] == "error"
        assert json.loads(choice(server, nvext={"guided_json": SCHEMA})[0])["rating"] == 0
        assert json.loads(choice(server, response_format=FORMAT)[0])["rating"] == 0
    with FakeServer(reply=TEN_WORDS, personality="nim", errors="detail") as server:
        status, problem = error(server, max_completion_tokens=8)
        assert status == 422 and problem["detail"][0]["loc"] == ["body", "max_completion_tokens"]
        assert choice(server, max_tokens=2)[:2] == ("word word", "length")


def test_ollama_overlooks_max_completion_tokens_and_cuts_long_prompts_without_a_word():
    with FakeServer(reply=TEN_WORDS, personality="ollama") as server:
        assert choice(server, max_completion_tokens=2)[:2] == (TEN_WORDS, "stop")
        assert choice(server, max_tokens=2)[:2] == ("word word", "length")
        assert send(server, ask("x" * 100_000))[1]["usage"]["prompt_tokens"] == 2048
    with FakeServer(personality="ollama", context_window=4096) as server:
        assert send(server, ask("x" * 100_000))[1]["usage"]["prompt_tokens"] == 4096


def test_vllm_honours_both_limits_and_rejects_prompts_beyond_its_window():
    with FakeServer(reply=TEN_WORDS, personality="vllm", context_window=100) as server:
        assert choice(server, max_completion_tokens=2, max_tokens=5)[:2] == ("word word", "length")
        status, problem = error(server, text="x" * 1000)
        assert status == 400 and problem["code"] == 400
        assert "maximum context length is 100 tokens" in problem["message"]


@pytest.mark.parametrize(
    ("thinking", "content"),
    [
        ("off", "4"),
        ("separate", "4"),
        ("inline", "<think>I weigh it.</think>\n4"),
        ("closing", "I weigh it.</think>\n4"),
    ],
)
def test_vllm_thinks_aloud_in_four_ways(thinking, content):
    with FakeServer(reply="4", personality="vllm", thinking=thinking, thought="I weigh it.") as server:
        got, _, message = choice(server)
        assert got == content
        assert message.get("reasoning_content") == ("I weigh it." if thinking == "separate" else None)
        assert choice(server, chat_template_kwargs={"enable_thinking": False})[0] == "4"
        # "I weigh it." is 4 tokens, so a limit of 2 ends inside the thought.
        cut, finish, _ = choice(server, max_tokens=2)
        if thinking != "off":
            assert finish == "length" and "4" not in (cut or "")


def test_vllm_may_forget_the_schema_while_it_thinks():
    with FakeServer(reply=ANSWER, personality="vllm", thinking="separate", thinking_and_json="prose") as server:
        content = choice(server, response_format=FORMAT)[0]
        assert content.startswith("Having thought about it") and json.dumps(ANSWER) in content
    with FakeServer(reply=ANSWER, personality="vllm", thinking="separate", thinking_and_json="in_reasoning") as server:
        content, finish, message = choice(server, response_format=FORMAT)
        assert (content, finish) == (None, "stop") and json.loads(message["reasoning_content"]) == ANSWER
        off = {"enable_thinking": False}
        assert json.loads(choice(server, response_format=FORMAT, chat_template_kwargs=off)[0]) == ANSWER


def test_a_reply_may_bring_its_own_reasoning():
    reply = Reply(content="4", reasoning_content="because")
    with FakeServer(reply=reply, reasoning_field="reasoning") as server:
        content, _, message = choice(server)
    assert (content, message["reasoning"]) == ("4", "because")


def test_llamacpp_fences_json_unless_a_schema_is_asked_for_and_rejects_nothing():
    with FakeServer(reply=ANSWER, personality="llamacpp") as server:
        assert json.loads(choice(server, response_format=FORMAT)[0]) == ANSWER
        assert choice(server)[0] == f"```json\n{json.dumps(ANSWER)}\n```"
        assert choice(server, temperature=0, nvext={}, max_tokens=99, max_completion_tokens=99, n=2)[1] == "stop"


def test_ignores_schema_puts_prose_or_a_fence_around_the_json():
    with FakeServer(reply=ANSWER, personality="ignores-schema") as server:
        content = choice(server, response_format=FORMAT)[0]
        assert content.startswith("Sure! ") and content.endswith(" helps.") and json.dumps(ANSWER) in content
        assert choice(server, tools=TOOLS, tool_choice=CHOICE)[0] == content
    with FakeServer(reply=ANSWER, personality="ignores-schema", wrap="fence") as server:
        assert choice(server, response_format=FORMAT)[0].startswith("```json\n{")


def test_tools_only_rejects_response_format_and_calls_tools():
    with FakeServer(personality="tools-only") as server:
        assert error(server, response_format=FORMAT)[1]["param"] == "response_format"
        assert choice(server, response_format={"type": "text"})[0] == "4"
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0)
        assert model.with_structured_output(Rating, method="function_calling").invoke("Rate it.").rating == 1
        with pytest.raises(BadRequestError):
            model.with_structured_output(Rating, method="json_schema").invoke("Rate it.")


def test_rejects_temperature_rejects_any_temperature():
    with FakeServer(personality="rejects-temperature") as server:
        assert error(server, temperature=1)[1]["code"] == "unsupported_parameter"
        assert choice(server)[0] == "4"


def test_slow_takes_its_time():
    with FakeServer(personality="slow") as server:
        assert choice(server)[0] == "4"
        assert server.requests[0].answered - server.requests[0].arrived >= 0.5


def test_dies_half_way_resets_and_then_refuses():
    with FakeServer(personality="dies-half-way", dies_after=2) as server:
        assert [choice(server)[0] for _ in range(2)] == ["4", "4"]
        with pytest.raises(ConnectionResetError):
            send(server, ask())
        with pytest.raises(ConnectionRefusedError):
            send(server, ask())


def test_no_usage_leaves_the_usage_out():
    with FakeServer(personality="no-usage") as server:
        assert "usage" not in send(server, ask())[1]


def test_legacy_text_takes_plain_prompts_only():
    with FakeServer(personality="legacy-text", system_role=False) as server:
        assert error(server, response_format=FORMAT)[0] == 400
        assert error(server, tools=TOOLS)[0] == 400
        status, reply = send(server, ask() | {"messages": [{"role": "system", "content": "Be brief."}]})
        assert (status, reply["error"]["message"]) == (400, "System role not supported")
        assert choice(server)[0] == "4"


def test_a_server_may_refuse_several_choices():
    with FakeServer(n="rejected") as server:
        assert error(server, n=2)[1]["message"] == "Only n = 1 is supported."
        assert choice(server, n=1)[0] == "4"
