"""The fake server itself: wire format, transport accidents, counters. Its kinds: test_personalities.py."""

import asyncio
import base64
import contextlib
import http.client
import itertools
import json
import socket
import struct
import threading
import time

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from openai import (
    APIConnectionError,
    APITimeoutError,
    AsyncOpenAI,
    AuthenticationError,
    OpenAI,
    RateLimitError,
)
from pydantic import BaseModel, Field
from tests.fakebrain import minimal
from tests.fakeserver import (
    FakeServer,
    Reply,
    ServerProcess,
    bad_request,
    count_tokens,
    hash_vector,
    quota_exhausted,
    rate_limited,
    refused,
    server_error,
    stats_of,
    unauthorized,
)
from tests.fakewire import first_tokens

CHAT = "/v1/chat/completions"


def ask(text="How many legs has a cat?", **more):
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def send(server, body, path=CHAT, method="POST", headers=None):
    """Status, headers and parsed body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        payload = body if isinstance(body, bytes) or body is None else json.dumps(body)
        connection.request(method, path, payload, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, json.loads(response.read())
    finally:
        connection.close()


def said(server, body):
    return send(server, body)[2]["choices"][0]["message"]["content"]


def openai_client(server, **more):
    return OpenAI(base_url=server.base_url, api_key="fake", max_retries=0, **more)


class Verdict(BaseModel):
    id: int
    reason: str
    supported: bool


class Verdicts(BaseModel):
    verdicts: list[Verdict] = Field(min_length=1)


# --- what is said ---------------------------------------------------------------------------------------


def test_the_openai_client_reads_a_plain_reply_with_its_usage():
    with FakeServer(reply="four legs") as server, openai_client(server) as client:
        reply = client.chat.completions.create(**ask("x" * 40))
    assert reply.choices[0].message.content == "four legs"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.model == "m"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (10, 2, 12)


def test_langchain_gets_a_structured_answer_without_any_reply_given():
    prompt = 'claims: [{"id": 3, "claim": "a"}, {"id": 5, "claim": "b"}]'
    for method in ("json_schema", "function_calling", "json_mode"):
        with FakeServer(reply=None if method != "json_mode" else lambda _: {"verdicts": []}) as server:
            model = ChatOpenAI(model="m", base_url=server.base_url, api_key="fake", max_retries=0)
            shape = model.with_structured_output(Verdicts, method=method, include_raw=True, strict=None)
            answer = shape.invoke(prompt + " as json")
        if method == "json_mode":
            assert answer["raw"].content == '{"verdicts": []}'
        else:
            assert [(one.id, one.supported) for one in answer["parsed"].verdicts] == [(3, True), (5, True)]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([("user", "Is it so? Say a number.")], "4"),
        ([("system", "Answer with 0, 2 or 4."), ("user", "It opened 1 to 2 years later.")], "0"),
        ([("user", "On a scale from 1 to 5, how good is it?")], "1"),
        ([("user", "Built 1887-1889, 3-4 metres")], "3"),
        ([("user", "Version 1.2, 3.4 and 10, 20")], "4"),
    ],
)
def test_a_rating_is_the_first_number_of_a_scale_and_otherwise_4(messages, expected):
    with FakeServer() as server:
        body = {"model": "m", "messages": [{"role": role, "content": text} for role, text in messages]}
        assert said(server, body) == expected


def test_a_schema_that_only_the_prompt_spells_out_is_filled_too():
    with FakeServer() as server:
        text = "Use this schema:\n" + json.dumps(Verdicts.model_json_schema())
        assert Verdicts.model_validate_json(said(server, ask(text))).verdicts[0].id == 1


def test_a_form_in_words_is_filled_in_with_the_ids_of_the_data():
    form = '{"verdicts": [{"id": <whole number>, "reason": <text>, "supported": <true or false>}, …]}'
    with FakeServer(personality="legacy-text") as server:
        rules, data = f"Answer with {form} and nothing else.", 'claims: [{"id": 7, "claim": "1 to 3 <b>x</b>"}]'
        body = {"model": "m", "messages": [{"role": "system", "content": rules}, {"role": "user", "content": data}]}
        verdicts = Verdicts.model_validate_json(said(server, body)).verdicts
        assert [(one.id, one.supported) for one in verdicts] == [(7, True)]
        assert said(server, ask('rows: [{"id": 7}], <text>, rated from 1 to 3')) == "1"


def test_minimal_values_satisfy_their_schema():
    class Tree(BaseModel):
        size: int = Field(ge=3, multiple_of=2)
        share: float = Field(gt=0, lt=0.9)
        name: str = Field(min_length=12)
        left: "Tree | None"
        pair: tuple[int, str]
        tags: list[str] = Field(min_length=2, max_length=2)
        later: str = "not needed"

    value = minimal(Tree.model_json_schema() | {"required": ["share", "name", "left", "pair", "tags"]})
    assert set(value) == {"share", "name", "left", "pair", "tags"}
    assert 0 < value["share"] < 0.9 and len(value["name"]) == 12 and len(value["tags"]) == 2
    # a recursive type ends, with null or an empty list
    recursive = {
        "$defs": {
            "T": {
                "type": "object",
                "required": ["kids"],
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
            }
        },
        "$ref": "#/$defs/T",
    }
    assert json.dumps(minimal(recursive)).count("kids") < 10
    assert minimal({"enum": [0, 2, 4]}) == 0
    assert minimal({"const": "yes"}) == "yes"
    assert minimal({"anyOf": [{"type": "null"}, {"type": "integer"}]}) is None
    assert minimal({"type": "integer", "exclusiveMaximum": 1}) == 0


def test_a_sequence_is_consumed_in_order_and_may_hold_any_kind_of_reply():
    script = ["a", {"b": 1}, Reply(content="c"), lambda request: f"call {request.index}", None, rate_limited()]
    with FakeServer(reply=script) as server:
        texts = [said(server, ask()) for _ in range(5)]
        assert send(server, ask())[0] == 429
    assert texts == ["a", '{"b": 1}', "c", "call 3", "4"]


def test_a_sequence_that_has_run_out_is_an_error_of_the_test():
    server = FakeServer(reply=["once"]).__enter__()
    assert said(server, ask()) == "once"
    assert send(server, ask())[0] == 400
    with pytest.raises(RuntimeError, match="run out at request 1"):
        server.__exit__(None)


def test_an_assertion_in_the_brain_fails_the_test():
    def brain(request):
        assert request.body["model"] == "another"

    with pytest.raises(AssertionError, match="another"), FakeServer(reply=brain) as server:
        assert send(server, ask())[0] == 500


def test_the_brain_can_be_exchanged_and_the_counters_reset():
    with FakeServer(reply="old") as server:
        assert said(server, ask()) == "old"
        server.reply = "new"
        assert said(server, ask()) == "new"
        assert server.calls == 2
        server.reset(reply=["newer"])
        assert (server.calls, server.requests, server.max_in_flight) == (0, [], 0)
        assert said(server, ask()) == "newer"


def test_characters_of_prompts_schemas_and_answers_are_counted_until_the_reset():
    schema = {"type": "object", "properties": {}}
    tool = {"type": "function", "function": {"name": "say", "parameters": schema}}
    shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    parts = [{"role": "system", "content": "abc"}, {"role": "user", "content": [{"type": "text", "text": "dé"}]}]
    with FakeServer(reply=lambda request: {"a": 1} if request.tool else "four") as server:
        send(server, {"model": "m", "messages": parts, "n": 2})
        assert (server.prompt_characters, server.schema_characters) == (3 + 2, 0)
        assert server.completion_characters == 2 * len("four")
        server.reset()
        send(server, ask("x" * 7, tools=[tool]))
        send(server, ask("y", response_format=shape))
        assert server.prompt_characters == 7 + 1
        assert server.schema_characters == len(json.dumps([tool])) + len(json.dumps(shape))
        assert server.completion_characters == len('{"a": 1}') + len("four")
        server.reset()
        assert (server.prompt_characters, server.schema_characters, server.completion_characters) == (0, 0, 0)


def test_a_server_is_active_from_its_first_request_to_its_last_answer():
    with FakeServer(reply="4") as server:
        active = []
        for _ in range(2):
            said(server, ask())
            time.sleep(0.02)
            active += [stats_of(server.base_url)["active_s"] for _ in range(2)]
    assert active[0] == active[1] < active[2] == active[3]  # asking for the counters is no work
    assert active[2] >= 0.02


def test_tokens_are_counted_as_real_tokenisers_count_short_judge_replies():
    fenced = '```json\n{"rating": 4}\n```'
    texts = ["4", '{"rating":4}', '{"rating": 4}', '{\n  "rating": 4\n}', fenced]
    assert [count_tokens(text) for text in texts] == [1, 5, 6, 9, 10]
    assert first_tokens('{"rating": 4}', 3) == '{"rating":'
    assert first_tokens("4", 3) == "4"


def test_a_refusal_has_no_content():
    with FakeServer(reply=refused("No.")) as server:
        message = send(server, ask())[2]["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "No.")


def test_tool_calls_usage_and_finish_reason_can_be_scripted():
    replies = [
        Reply(tool_calls=[("look_up", {"q": "é"}), ("stop", "{")], usage={"prompt_tokens": 9}),
        Reply(content="partial", finish_reason="content_filter", usage=None, headers={"x-more": "1"}),
    ]
    with FakeServer(reply=replies) as server:
        _, _, called = send(server, ask())
        _, headers, filtered = send(server, ask())
    calls = called["choices"][0]["message"]["tool_calls"]
    assert [(one["function"]["name"], one["function"]["arguments"]) for one in calls] == [
        ("look_up", '{"q": "é"}'),
        ("stop", "{"),
    ]
    assert called["choices"][0]["finish_reason"] == "tool_calls" and called["usage"] == {"prompt_tokens": 9}
    assert filtered["choices"][0]["finish_reason"] == "content_filter" and "usage" not in filtered
    assert headers["x-more"] == "1"


# --- errors ---------------------------------------------------------------------------------------------


def test_errors_have_openais_shape_and_reach_the_client_as_its_exceptions():
    script = [rate_limited(2), unauthorized(), bad_request(param="top_p", message="No."), quota_exhausted()]
    with FakeServer(reply=script) as server, openai_client(server) as client:
        with pytest.raises(RateLimitError) as limited:
            client.chat.completions.create(**ask())
        with pytest.raises(AuthenticationError):
            client.chat.completions.create(**ask())
        status, _, body = send(server, ask())
        with pytest.raises(RateLimitError) as exhausted:
            client.chat.completions.create(**ask())
    assert limited.value.response.headers["retry-after"] == "2"
    assert limited.value.code == "rate_limit_exceeded" and exhausted.value.code == "insufficient_quota"
    assert (status, body["error"]["param"], body["error"]["message"]) == (400, "top_p", "No.")
    assert set(body["error"]) == {"message", "type", "param", "code"}


def test_the_openai_client_retries_a_server_error_and_succeeds():
    with (
        FakeServer(reply=[server_error(503), "4"]) as server,
        OpenAI(base_url=server.base_url, api_key="fake", max_retries=1) as client,
    ):
        assert client.chat.completions.create(**ask()).choices[0].message.content == "4"
        assert [request.status for request in server.requests] == [503, 200]


def test_a_raw_body_and_a_bare_status_are_sent_as_they_are():
    page = Reply(status=502, body=b"<html>bad gateway</html>", headers={"content-type": "text/html"})
    with FakeServer(reply=[page, Reply(status=503, content="busy")]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", CHAT, json.dumps(ask()))
        response = connection.getresponse()
        assert (response.status, response.headers["content-type"]) == (502, "text/html")
        assert response.read() == b"<html>bad gateway</html>"
        connection.close()
        assert send(server, ask())[2]["error"]["message"] == "busy"


def test_unknown_paths_wrong_keys_wrong_models_and_broken_json_are_answered_and_recorded():
    with FakeServer(models=["m"], api_key="right") as server:
        right = {"authorization": "Bearer right"}
        assert send(server, {}, path="/v1/responses")[0] == 404
        assert send(server, ask(), headers={"authorization": "Bearer wrong"})[0] == 401
        status, _, body = send(server, ask() | {"model": "other"}, headers=right)
        assert (status, body["error"]["code"]) == (404, "model_not_found")
        assert send(server, b"{not json")[0] == 400
        assert send(server, ask(), headers=right)[0] == 200
        models = send(server, None, "/v1/models", "GET", right)[2]["data"]
        assert [model["id"] for model in models] == ["m"]
        seen = [(request.path, request.status) for request in server.requests]
    assert seen == [("/v1/responses", 404), (CHAT, 401), (CHAT, 404), (CHAT, 400), (CHAT, 200), ("/v1/models", 200)]
    assert server.calls == 4


# --- transport ------------------------------------------------------------------------------------------


def test_a_dropped_connection_is_a_reset():
    with FakeServer(reply=[Reply(drop="before"), "4"]) as server:
        with pytest.raises(ConnectionResetError):
            send(server, ask())
        assert said(server, ask()) == "4"
        assert [request.status for request in server.requests] == [None, 200]


def test_half_a_body_is_an_incomplete_read():
    with FakeServer(reply=Reply(content="4", drop="half")) as server:
        with pytest.raises(http.client.IncompleteRead):
            send(server, ask())
        with openai_client(server) as client, pytest.raises(APIConnectionError):
            client.chat.completions.create(**ask())


def test_a_hanging_request_ends_with_the_clients_patience_and_frees_its_place():
    with FakeServer(reply=[Reply(hang=True), "4"]) as server, openai_client(server, timeout=0.3) as client:
        with pytest.raises(APITimeoutError):
            client.chat.completions.create(**ask())
        deadline = time.monotonic() + 5
        while server.in_flight and time.monotonic() < deadline:
            time.sleep(0.005)
        assert server.in_flight == 0 and server.requests[0].status is None
        assert said(server, ask()) == "4"


def test_a_body_can_trickle_in_pieces():
    with FakeServer(reply=Reply(content="4", chunk_delays=(0.0, 0.05, 0.05))) as server:
        begun = time.monotonic()
        assert said(server, ask()) == "4"
        assert time.monotonic() - begun >= 0.1


def test_a_stream_gives_deltas_and_the_usage_at_the_end():
    with FakeServer(reply="one two three") as server, openai_client(server) as client:
        stream = client.chat.completions.create(**ask(), stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "one two three" and len(chunks) == 6
    assert chunks[-1].usage.completion_tokens == 3


def test_replies_carry_the_id_of_their_request():
    async def both(base_url):
        async with AsyncOpenAI(base_url=base_url, api_key="fake") as client:
            return await asyncio.gather(
                *(client.chat.completions.create(**ask(), user=f"row-{number}") for number in range(8))
            )

    # The first to arrive is the last to be answered.
    with FakeServer(latency=lambda request: 0.08 - request.index * 0.01) as server:
        replies = asyncio.run(both(server.base_url))
        headers = send(server, ask(), headers={"x-request-id": "mine"})[1]
    assert [reply.id for reply in replies] == [f"chatcmpl-row-{number}" for number in range(8)]
    assert headers["x-request-id"] == "mine"


def test_a_header_cannot_be_smuggled_in_through_the_user_field():
    with FakeServer() as server:
        _, headers, _ = send(server, ask(user="a\r\nx-evil: 1"))
    assert headers["x-request-id"] == "a__x-evil:_1" and headers["x-evil"] is None


def burst(server, number):
    """Send this many requests at once, each on its own connection, and read all answers."""
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)))
            for _ in range(number)
        ]
        for client in clients:
            client.connect()
        for client in clients:
            client.request("POST", CHAT, json.dumps(ask()))
        for client in clients:
            client.getresponse().read()


def test_requests_in_flight_are_counted_and_a_busy_server_makes_them_wait():
    with FakeServer(latency=0.4) as server:
        burst(server, 64)
        assert server.max_in_flight == 64 and server.in_flight == 0
        assert sorted(request.in_flight for request in server.requests) == list(range(1, 65))
    with FakeServer(latency=0.05, parallel=2) as server:
        begun = time.monotonic()
        burst(server, 8)
        # Two at a time, so the last pair is done after four times the latency.
        assert time.monotonic() - begun >= 4 * 0.05


def test_a_connection_is_kept_open_unless_the_client_asks_to_close_it():
    with FakeServer() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        sockets = set()
        for _ in range(3):
            connection.request("POST", CHAT, json.dumps(ask()))
            connection.getresponse().read()
            sockets.add(connection.sock)
        assert len(sockets) == 1 and None not in sockets
        connection.request("POST", CHAT, json.dumps(ask()), {"connection": "close"})
        connection.getresponse().read()
        assert connection.sock is None
        connection.close()


def test_a_request_may_arrive_in_pieces_and_two_may_arrive_at_once():
    body = json.dumps(ask()).encode()
    one = b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with FakeServer(latency=0.01) as server, socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(one[:30])
        time.sleep(0.01)
        raw.sendall(one[30:] + one)
        received = b""
        while received.count(b'"chat.completion"') < 2:
            received += raw.recv(65536)
        assert [request.in_flight for request in server.requests] == [1, 1]
        raw.sendall(b"nonsense\r\n\r\n")
        assert raw.recv(65536).startswith(b"HTTP/1.1 400 ")


def test_the_end_of_the_block_ends_the_thread_and_open_requests():
    threads = threading.active_count()
    with FakeServer(reply=Reply(hang=True)) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", CHAT, json.dumps(ask()))
        while not server.in_flight:
            time.sleep(0.001)
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        connection.getresponse()
    connection.close()
    assert threading.active_count() == threads
    with pytest.raises(ConnectionRefusedError):
        send(server, ask())


# --- embeddings -----------------------------------------------------------------------------------------


def test_embeddings_are_unit_vectors_in_either_encoding_and_in_order():
    texts = ["a red fox", "A fox, red", "an old boat"]
    with FakeServer(embeddings=32) as server, openai_client(server) as client:
        as_floats = client.embeddings.create(model="e", input=texts, encoding_format="float")
        _, _, raw = send(server, {"model": "e", "input": texts, "encoding_format": "base64"}, "/v1/embeddings")
        short = send(server, {"model": "e", "input": "x", "dimensions": 3}, "/v1/embeddings")[2]
    first, second, third = (one.embedding for one in as_floats.data)
    assert first == second == pytest.approx(hash_vector("a red fox", 32)) and first != third
    assert sum(value * value for value in third) == pytest.approx(1)
    decoded = struct.unpack("<32f", base64.b64decode(raw["data"][2]["embedding"]))
    assert decoded == pytest.approx(third)
    assert len(short["data"][0]["embedding"]) == 3
    assert as_floats.usage.prompt_tokens == 3 + 3 + 3 and server.embedding_calls == 3


def test_langchain_embeddings_work_and_token_ids_are_rejected():
    with FakeServer(embeddings=lambda text: [float(len(text)), 1.0]) as server:
        model = OpenAIEmbeddings(model="e", base_url=server.base_url, api_key="fake", check_embedding_ctx_length=False)
        assert model.embed_documents(["ab", "abc"]) == [[2.0, 1.0], [3.0, 1.0]]
        for wrong in ([[101, 102]], [101], [], [""], None):
            assert send(server, {"model": "e", "input": wrong}, "/v1/embeddings")[0] == 400


def test_an_embeddings_request_can_fail():
    answers = itertools.chain([rate_limited(0)], itertools.repeat([1.0]))
    with FakeServer(embeddings=lambda _: next(answers), embedding_batch=2) as server:
        body = {"model": "e", "input": ["a", "b"]}
        assert [send(server, body, "/v1/embeddings")[0] for _ in range(2)] == [429, 200]
        assert send(server, {"model": "e", "input": ["a", "b", "c"]}, "/v1/embeddings")[0] == 400


# --- a process of its own -------------------------------------------------------------------------------


def test_the_server_runs_as_a_process_and_tells_its_counters():
    quirks = {"thinking": "closing", "thought": "hm"}
    with ServerProcess(personality="vllm", reply="2", latency=0.01, quirks=quirks) as server:
        with OpenAI(base_url=server.base_url, api_key="fake") as client:
            reply = client.chat.completions.create(**ask())
        assert reply.choices[0].message.content == "hm</think>\n2"
        seen = server.stats()
        counted = {name: seen[name] for name in ("calls", "embedding_calls", "served", "max_in_flight")}
        assert counted == {"calls": 1, "embedding_calls": 0, "served": 1, "max_in_flight": 1}
    assert server.process.returncode == 0
