"""What an endpoint is sent: only what the user set, in the form that it takes, on clients that stay as they were."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import httpx
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from tests.adapters.wired import (
    GOOD,
    PROMPT,
    RATING,
    SCALE,
    STRUCTURED,
    TEXT,
    AsyncHttpChat,
    HttpChat,
    Verdict,
    asked,
    asked_at_once,
    azure_chat,
    built,
    chat,
    held,
    judge_azure,
    judge_chat,
    limits_sent,
    retrying,
    settled,
)
from tests.fakeserver import FakeServer, Reply, bad_request
from tests.fakewire import failure

from ragparity.core.errors import JudgeError, JudgeRejected
from ragparity.core.ports import Question, Rating, Tally
from ragparity_adapters.endpoint import Endpoint
from ragparity_adapters.openai_client import JudgeChatOpenAI

ALWAYS = {"model", "messages", "max_tokens"}
RUNG_KEYS = {
    "json_schema": {"response_format"},
    "tool": {"tools", "tool_choice"},
    "json_mode": {"response_format"},
    "prompt": set(),
}
CLIENTS = {"openai": judge_chat, "azure": judge_azure, "ChatOpenAI": chat, "AzureChatOpenAI": azure_chat}


def keys(server) -> list[set[str]]:
    return [set(one.body) for one in server.requests]


# --- only what the user set


@pytest.mark.parametrize("question", [RATING, TEXT], ids=["rating", "text"])
def test_nothing_but_the_limit_is_added_to_what_the_user_set(question):
    with FakeServer("4") as server:
        asked(built(server), question)
        asked(built(server, temperature=0, seed=7), question)
        assert keys(server) == [ALWAYS, {*ALWAYS, "temperature", "seed"}]
        assert server.requests[1].body["temperature"] == 0


@pytest.mark.parametrize("rung", RUNG_KEYS)
@pytest.mark.parametrize("client", ["openai", "azure"])
def test_a_rung_adds_its_own_keys_and_no_others(client, rung):
    with FakeServer(GOOD) as server:
        (answer,) = asked(held(CLIENTS[client](server)), STRUCTURED, structured=rung)
        assert answer.value == Verdict(**GOOD)
        assert keys(server) == [ALWAYS | RUNG_KEYS[rung]]


def test_a_chat_model_of_the_users_own_adds_what_it_always_says():
    with FakeServer("4") as server:
        asked(held(chat(server)), RATING)
        assert keys(server) == [{*ALWAYS, "stream"}]
        assert server.requests[0].body["stream"] is False


def test_extra_parameters_of_the_entry_go_along_unchanged():
    template = {"enable_thinking": False}
    with FakeServer("4", personality="vllm") as server:
        asked(built(server, chat_template_kwargs=template, top_k=1), RATING)
        assert keys(server) == [{*ALWAYS, "chat_template_kwargs", "top_k"}]
        assert server.requests[0].body["chat_template_kwargs"] == template


def test_repeated_draws_are_calls_of_their_own_and_never_n():
    with FakeServer("4", n="rejected") as server:
        one = Question(PROMPT, Rating(SCALE), 8, draw=1)
        answers = asked(built(server), RATING, one)
        assert [answer.value for answer in answers] == [4, 4]
        assert all("n" not in sent for sent in keys(server))


# --- the limit on the wire


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("rung", RUNG_KEYS)
def test_every_rung_of_every_openai_client_says_the_limit(client, rung):
    with FakeServer(GOOD) as server:
        asked(held(CLIENTS[client](server)), STRUCTURED, structured=rung)
        asked(held(CLIENTS[client](server), ceiling=40), STRUCTURED, structured=rung)
        assert limits_sent(server) == [60, 40]


@pytest.mark.parametrize("cls", [HttpChat, AsyncHttpChat])
@pytest.mark.parametrize(("rung", "tools"), [("tool", True), ("json_schema", True), ("prompt", False)])
def test_a_model_of_another_family_says_the_limit_too(cls, rung, tools):
    with FakeServer(GOOD) as server:
        model = cls(url=server.base_url)
        (answer,) = asked(held(model), STRUCTURED, structured=rung)
        assert answer.value == Verdict(**GOOD)
        assert limits_sent(server) == [60]
        assert ("tools" in server.requests[0].body) is tools
        assert model.max_tokens is None


@pytest.mark.parametrize("cls", [HttpChat, AsyncHttpChat])
def test_a_rating_of_another_family_is_asked_within_eight_tokens(cls):
    with FakeServer("4") as server:
        (answer,) = asked(held(cls(url=server.base_url, max_tokens=300)), RATING)
        assert answer.value == 4
        assert limits_sent(server) == [8]


@pytest.mark.parametrize("where", ["entry", "model", "extra_body", "judge", "bind"])
def test_the_lowest_limit_that_the_user_set_is_a_ceiling(where):
    with FakeServer(lambda request: GOOD if request.wants_json else "4") as server:
        model: Any = {
            "model": lambda: chat(server, max_tokens=20),
            "extra_body": lambda: chat(server, extra_body={"max_tokens": 20}),
            "bind": lambda: chat(server).bind(max_tokens=20),
        }.get(where, lambda: chat(server))()
        endpoint = held(model, ceiling=20 if where == "entry" else None)
        options = {"max_tokens": 20} if where == "judge" else {}
        asked(endpoint, STRUCTURED, TEXT, RATING, **options)
        assert limits_sent(server) == [20, 20, 8]
        assert all(len({"max_tokens", "max_completion_tokens"} & set(one.body)) == 1 for one in server.requests)


@pytest.mark.parametrize(("ceiling", "thinking"), [(1, "closing"), (8, "inline"), (100, "separate"), (5000, "closing")])
def test_no_request_ever_goes_above_the_ceiling(ceiling, thinking):
    with FakeServer(personality="vllm", thinking=thinking) as server:
        asked(built(server, ceiling=ceiling), RATING, STRUCTURED, TEXT, retries=2)
        asked(built(server, ceiling=ceiling), RATING, STRUCTURED, retries=2, reasoning=True)
        assert max(limits_sent(server)) <= ceiling


def test_the_fake_chat_models_of_langchain_are_judges():
    listed = FakeListChatModel(responses=["4", '{"reason": "r", "verdict": 1}'])
    first, second = asked(held(listed), RATING, STRUCTURED)
    assert (first.value, second.value.verdict) == (4, 1)
    generic = GenericFakeChatModel(messages=iter([AIMessage("2"), AIMessage('{"reason": "r", "verdict": 0}')]))
    first, second = asked(held(generic), RATING, STRUCTURED)
    assert (first.value, second.value.verdict) == (2, 0)


def test_a_model_without_a_limit_of_its_own_is_never_asked_past_a_ceiling():
    class Limitless(FakeListChatModel):
        def bind_tools(self, tools, **kwargs):
            raise AssertionError("this way of asking cannot carry the ceiling")

    endpoint = held(Limitless(responses=['{"reason": "r", "verdict": 1}']), ceiling=50)
    (answer,) = asked(endpoint, STRUCTURED)
    assert answer.value.verdict == 1


# --- the model stays as it was


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        (chat, {"temperature": 0.7, "max_tokens": 300, "model_kwargs": {"user": "u"}, "extra_body": {"top_k": 3}}),
        (azure_chat, {"temperature": 0.7, "max_tokens": 300}),
    ],
)
def test_two_judges_with_other_settings_share_a_model_and_leave_it_alone(make, fields):
    with FakeServer(lambda request: GOOD if request.wants_json else "4", latency=0.02) as server:
        model = make(server, **fields)
        before, clients = copy.deepcopy(model.model_dump()), (model.async_client, model.root_async_client)
        endpoint = Endpoint(model, name="judge", identity="test", token_param="max_tokens")

        async def both():
            strict = retrying(endpoint, temperature=0.0, max_tokens=100, structured="json_schema")
            loose = retrying(endpoint, temperature=1.0, max_tokens=200, structured="json_schema")
            await asyncio.gather(
                *(settled(one, question) for question in (RATING, STRUCTURED) * 4 for one in (strict, loose))
            )
            await settled(retrying(endpoint), RATING)
            await endpoint.aclose()

        asyncio.run(both())
        sent = [(one.body["temperature"], one.body["max_tokens"]) for one in server.requests]
        assert sorted(set(sent)) == [(0.0, 8), (0.0, 60), (0.7, 8), (1.0, 8), (1.0, 60)]
        assert model.model_dump() == before
        assert (model.async_client, model.root_async_client) == clients


def test_a_model_of_another_family_is_left_alone_too():
    with FakeServer("4") as server:
        model = HttpChat(url=server.base_url, temperature=0.5, max_tokens=99)
        before = copy.deepcopy(model.__dict__)
        asked_at_once(held(model), [RATING] * 4, temperature=0.0)
        assert model.__dict__ == before
        assert {(one.body["temperature"], one.body["max_tokens"]) for one in server.requests} == {(0.0, 8)}


# --- what the endpoint refuses


@pytest.mark.parametrize(
    ("refused", "taken", "errors"),
    [
        ("max_tokens", "max_completion_tokens", "openai"),
        ("max_tokens", "max_completion_tokens", "detail"),
        ("max_completion_tokens", "max_tokens", "openai"),
        ("max_completion_tokens", "max_tokens", "coded"),
        ("max_completion_tokens", "max_tokens", "flat"),
    ],
)
def test_a_refused_name_of_the_limit_is_replaced_once_and_for_all(refused, taken, errors):
    with FakeServer("4", personality="vllm", errors=errors, unknown=(refused,)) as server:
        endpoint = held(chat(server), token_param=refused)
        answers = asked(endpoint, RATING, RATING, RATING)
        assert [one.value for one in answers] == [4, 4, 4]
        names = [next(name for name in ("max_tokens", "max_completion_tokens") if name in one) for one in keys(server)]
        assert names == [refused, taken, taken, taken]
        assert endpoint.findings.said == [
            f"judge: the endpoint refuses {refused}; the token limit is now sent as {taken}"
        ]


def test_sixteen_first_calls_at_once_learn_the_same_and_it_is_said_once():
    with FakeServer("4", personality="openai-reasoning", reasoning_tokens=0, latency=0.02) as server:
        endpoint = built(server, temperature=0, top_p=0.5)
        answers = asked_at_once(endpoint, [RATING] * 16)
        assert [one.value for one in answers] == [4] * 16
        assert endpoint.findings.token_param == "max_completion_tokens"
        assert endpoint.findings.dropped == {"temperature", "top_p"}
        assert len(endpoint.findings.said) == 3
        assert server.calls <= 16 * 4
        server.reset()
        asked(endpoint, RATING)
        assert keys(server) == [{"model", "messages", "max_completion_tokens"}]


@pytest.mark.parametrize(
    ("honoured", "first"), [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
def test_an_ignored_name_of_the_limit_is_noticed_by_the_length_of_a_reply(honoured, first):
    prose = "4 because " + "it is so " * 20
    with FakeServer(prose, limits=(honoured,), one_limit=False) as server:
        endpoint = held(chat(server), token_param=first)
        answers = asked(endpoint, RATING, RATING)
        assert [one.value for one in answers] == [4, 4]
        assert [honoured in one for one in keys(server)] == [False, True]
        assert endpoint.findings.token_param == honoured
        assert len(endpoint.findings.said) == 1


def test_an_endpoint_that_ignores_both_names_is_not_switched_to_and_fro():
    prose = "4 because " + "it is so " * 20
    with FakeServer(prose, limits=(), one_limit=False) as server:
        endpoint = held(chat(server), token_param="max_completion_tokens")
        asked(endpoint, *[RATING] * 6)
        assert ["max_tokens" in one for one in keys(server)] == [False, True, True, True, True, True]
        assert len(endpoint.findings.said) == 1


def test_an_endpoint_that_refuses_both_names_is_asked_without_a_limit():
    with FakeServer("4", unsupported=("max_tokens", "max_completion_tokens")) as server:
        endpoint = held(chat(server))
        (answer,) = asked(endpoint, RATING)
        assert answer.value == 4
        assert limits_sent(server) == [8, 8, None]
        assert endpoint.findings.token_param == "none"


def test_a_refused_temperature_is_left_out_for_the_rest_of_the_run():
    with FakeServer("4", personality="rejects-temperature") as server:
        endpoint = built(server, temperature=0)
        asked(endpoint, RATING, RATING, RATING)
        assert ["temperature" in one for one in keys(server)] == [True, False, False, False]
        assert len(endpoint.findings.said) == 1 and "refuses temperature" in endpoint.findings.said[0]


def test_a_refused_temperature_of_the_judge_block_is_left_out_too():
    with FakeServer("4", personality="rejects-temperature") as server:
        endpoint = built(server)
        asked(endpoint, RATING, RATING, temperature=0.2)
        assert ["temperature" in one for one in keys(server)] == [True, False, False]


def test_a_refused_extra_parameter_is_left_out():
    with FakeServer("4", personality="openai") as server:
        endpoint = built(server, chat_template_kwargs={"enable_thinking": False})
        (answer,) = asked(endpoint, RATING)
        assert answer.value == 4
        assert ["chat_template_kwargs" in one for one in keys(server)] == [True, False]


def test_nothing_the_user_did_not_set_is_ever_left_out():
    complaint = bad_request(message="Something about temperature and top_p in words.")
    with FakeServer([complaint] * 2) as server:
        (error,) = asked(built(server), RATING, retries=1)
        assert isinstance(error, JudgeRejected) and error.kind == "rejected"
        assert server.calls == 1


def test_an_endpoint_without_system_messages_gets_the_rules_in_the_user_message():
    with FakeServer("4", system_role=False) as server:
        endpoint = built(server)
        asked(endpoint, RATING, RATING)
        roles = [[message["role"] for message in one.messages] for one in server.requests]
        assert roles == [["system", "user"], ["user"], ["user"]]
        rules, _, data = server.requests[2].user.partition("\n\n")
        assert rules.startswith("Judge the answer.") and data == 'answer: "Paris"'


def test_a_limit_above_the_room_in_the_window_is_lowered_to_what_is_left():
    text = (
        "'max_tokens' or 'max_completion_tokens' is too large: 4104. This model's maximum context length is 4096 "
        "tokens and your request has 700 input tokens (4104 > 4096 - 700)."
    )
    with FakeServer([bad_request(message=text), "4"], personality="vllm") as server:
        (answer,) = asked(built(server), RATING, reasoning=True)
        assert answer.value == 4
        assert limits_sent(server) == [8 + 4096, 3396]


def test_a_limit_above_the_most_that_a_model_writes_is_lowered_for_the_run():
    text = (
        "max_tokens is too large: 4104. This model supports at most 2048 completion tokens, whereas you provided 4104."
    )
    with FakeServer([bad_request(message=text, param="max_tokens"), "4", "4"]) as server:
        endpoint = built(server)
        asked(endpoint, RATING, RATING, reasoning=True)
        assert limits_sent(server) == [4104, 2048, 2048]
        assert endpoint.findings.token_param == "max_tokens"


@pytest.mark.parametrize(("ceiling", "sent"), [(None, [8, 16, 16]), (8, [8, 8])])
def test_a_limit_below_the_least_that_an_endpoint_takes_is_raised_under_the_ceiling(ceiling, sent):
    text = "Invalid 'max_tokens': integer below minimum value. Expected a value >= 16, but got 8 instead."

    def brain(request):
        limit = request.body.get("max_tokens", 0)
        return bad_request(message=text, param="max_tokens") if limit < 16 else "4"

    with FakeServer(brain) as server:
        endpoint = built(server, ceiling=ceiling)
        asked(endpoint, RATING, RATING)
        assert limits_sent(server) == sent


def test_a_prompt_that_is_too_long_is_said_with_the_numbers_and_no_parameter_is_touched():
    with FakeServer(personality="openai", context_window=10) as server:
        endpoint = built(server)
        rating, structured = asked(endpoint, RATING, STRUCTURED, retries=2)
        assert (rating.kind, structured.kind) == ("context_too_long", "context_too_long")
        assert "maximum context length is 10 tokens" in str(rating)
        assert server.calls == 1, "the second question was not sent: the first refusal named the window"
        assert "the context window holds 10; nothing was sent" in str(structured)
        assert endpoint.findings.said == ["judge: the context window holds 10 tokens"]
        assert not endpoint.findings.dropped and not endpoint.findings.token_params_tried


# --- replies that are none


@pytest.mark.parametrize(
    ("body", "status", "kind", "says"),
    [
        (b'{"error": {"message": "Provider overloaded", "code": 429}}', 200, "rate_limit", "Provider overloaded"),
        (b'{"error": {"message": "no key", "code": 401}}', 200, "auth", "no key"),
        (b'{"id": "1"}', 200, "unavailable", "no chat completion"),
        (b'{"choices": null}', 200, "unavailable", "no chat completion"),
        (b'{"choices": []}', 200, "unavailable", "no chat completion"),
        (b"<html>busy</html>", 200, "unavailable", ""),
        (b"<html>busy</html>", 502, "unavailable", "502"),
        (b"{", 200, "unavailable", "not JSON"),
        (b"", 200, "unavailable", "no chat completion: it is not JSON"),
        (b"{}", 302, "rejected", "check base_url"),
    ],
)
def test_a_body_that_is_no_chat_completion_is_no_score(body, status, kind, says):
    with FakeServer(lambda request: failure(status, {}).__class__(status=status, body=body)) as server:
        (error,) = asked(built(server), RATING)
        assert error.kind == kind
        assert says in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        failure(401, {"error": {"message": "no such key: tuna-and-salmon"}}),
        failure(400, {"error": {"message": "bad header tuna-and-salmon"}}),
        failure(500, {"error": {"message": "tuna-and-salmon"}}),
        Reply(body=b"<pre>tuna-and-salmon</pre>"),
        Reply(body=b'{"error": "tuna-and-salmon"}'),
        Reply(content="My key is tuna-and-salmon."),
        Reply(content="", reasoning_content="The header says tuna-and-salmon."),
    ],
    ids=["401", "400", "500", "page", "error", "reply", "reasoning"],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_key_that_a_server_repeats_is_in_no_message_and_no_stored_reply(reply, wrapped):
    async def run(server, tally):
        async with httpx.AsyncClient() as client:
            model: Any = JudgeChatOpenAI(
                model="m", base_url=server.base_url, api_key="tuna-and-salmon", max_retries=0, http_async_client=client
            )
            endpoint = held(model.with_retry(stop_after_attempt=1) if wrapped else model)
            error = await settled(retrying(endpoint), RATING, tally)
            await endpoint.aclose()
            return error

    with FakeServer(reply) as server:
        tally = Tally()
        error = asyncio.run(run(server, tally))
        assert server.requests[0].headers["authorization"] == "Bearer tuna-and-salmon"
    assert isinstance(error, JudgeError)
    for text in (str(error), str(error.raw), str(tally.replies), str(tally.notes)):
        assert "salmon" not in text


def test_a_keyword_that_the_client_does_not_take_ends_the_entry_with_one_line():
    with FakeServer("4") as server:
        (error,) = asked(held(chat(server, model_kwargs={"no_such": 1})), RATING, retries=3)
        assert isinstance(error, JudgeRejected) and error.ends_entry
        assert "no_such" in str(error) and server.calls == 0


def test_half_a_character_in_the_data_is_sent_as_a_question_mark():
    with FakeServer("4") as server:
        prompt = PROMPT.__class__("Judge.", data={"answer": "Zürich \ud83d!"})
        (answer,) = asked(built(server), Question(prompt, Rating(SCALE), 8))
        assert answer.value == 4
        assert server.requests[0].data == {"answer": "Zürich ?!"}


# --- what is counted


def test_every_request_is_counted_the_refused_ones_too():
    async def run(server):
        endpoint, tally = built(server, temperature=0), Tally()
        await settled(retrying(endpoint), RATING, tally)
        await endpoint.aclose()
        return tally

    with FakeServer("4", personality="rejects-temperature") as server:
        tally = asyncio.run(run(server))
        assert (tally.calls, tally.output_tokens) == (2, 1)
    with FakeServer("4", personality="no-usage") as server:
        tally = asyncio.run(run(server))
        assert (tally.calls, tally.output_tokens, tally.input_tokens) == (1, None, None)


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        ({"prompt_tokens": "many", "completion_tokens": 1, "total_tokens": 1}, (None, 1)),
        ({"prompt_tokens": -5, "completion_tokens": None, "total_tokens": True}, (None, None)),
        ({"prompt_tokens": 90.0, "completion_tokens": 1.5, "total_tokens": 91}, (90, None)),
        (
            {"prompt_tokens": 90, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": "x"}},
            (90, 1),
        ),
    ],
)
def test_token_counts_that_are_none_are_unknown_and_the_answer_still_counts(reported, counted):
    said = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [said], "usage": reported}

    async def run(server):
        endpoint, tally = built(server), Tally()
        answer = await settled(retrying(endpoint), RATING, tally)
        await endpoint.aclose()
        return answer, tally

    with FakeServer(Reply(body=json.dumps(body).encode())) as server:
        answer, tally = asyncio.run(run(server))
        assert answer.value == 4
        assert (tally.input_tokens, tally.output_tokens, tally.reasoning_tokens) == (*counted, None)


# --- models in wrappers


@pytest.mark.parametrize("wrap", ["with_retry", "configurable", "with_config", "bind"])
def test_a_wrapped_chat_model_is_a_judge_too(wrap):
    from langchain_core.runnables import ConfigurableField

    # Through these two, LangChain's own client is used, and nobody could close its connection.
    brief = {"default_headers": {"Connection": "close"}}
    with FakeServer(lambda request: GOOD if '"verdict"' in request.text else "4") as server:
        model: Any = {
            "with_retry": lambda: chat(server, **brief).with_retry(stop_after_attempt=1),
            "configurable": lambda: chat(server, **brief).configurable_fields(temperature=ConfigurableField(id="t")),
            "with_config": lambda: chat(server).with_config(tags=["judge"]),
            "bind": lambda: chat(server).bind(temperature=0.25, user="me"),
        }[wrap]()
        rating, structured = asked(held(model), RATING, STRUCTURED, retries=1)
        assert (rating.value, structured.value) == (4, Verdict(**GOOD))
        assert limits_sent(server) == [8, 60]
        if wrap == "bind":
            assert [(one.body["temperature"], one.body["user"]) for one in server.requests] == [(0.25, "me")] * 2


@pytest.mark.parametrize("question", [RATING, STRUCTURED])
def test_a_refusal_over_the_length_of_the_prompt_is_not_taken_for_one_over_a_parameter(question):
    text = (
        "This model's maximum context length is 4096 tokens. However, you requested 5008 tokens (5000 in the messages, "
        "8 in the completion). Please reduce the length of the messages or max_tokens; tools count too."
    )
    with FakeServer(bad_request(message=text)) as server:
        endpoint = built(server)
        (error,) = asked(endpoint, question, retries=2)
        assert (error.kind, server.calls) == ("context_too_long", 1)
        assert endpoint.findings.token_param == "max_tokens" and endpoint.findings.rung == 0
