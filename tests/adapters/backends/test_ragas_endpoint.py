"""Ragas over an OpenAI-compatible server: what stands on the wire, and how few tokens are enough."""

import asyncio
import json

import pytest
from tests.adapters.backends.ragas_world import BOTH, COLLECTIONS, LEGACY, built, embedder, row
from tests.adapters.wired import HttpChat
from tests.adapters.wired import built as endpoint_of
from tests.fakeserver import FakeServer, Reply, bad_request

from ragparity.core.errors import EvaluationError
from ragparity.core.policies import Policies
from ragparity.core.policy import score
from ragparity.core.ports import Kit, Tally
from ragparity.middleware import Lane, Retrying
from ragparity_adapters import llms
from ragparity_adapters.backends._ragas_judge import input_of
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge

NV = ["AnswerAccuracy", "ContextRelevance", "ResponseGroundedness"]


async def scored(endpoint, backend, name, *, retries=0, tally=None, policies=None, **options):
    """The outcome of one metric over an endpoint, or the error."""
    judge = Retrying(LangChainJudge(endpoint, JudgeOptions(**options)), Lane("judge", 4), retries)
    kit = Kit(judge=judge, embedder=embedder(), policies=policies or Policies(), tally=tally or Tally())
    try:
        return await score(built(backend, name), row(), kit)
    except EvaluationError as error:
        return error


def over(endpoint, backend, name, **options):
    """The same, with a loop of its own."""

    async def run():
        try:
            return await scored(endpoint, backend, name, **options)
        finally:
            await endpoint.aclose()

    return asyncio.run(run())


def test_the_rating_classes_work_under_a_ceiling_of_eight_tokens_in_both_apis():
    forms = ["{}", "Rating: {}", '"{}"', "{}.", '{{"rating": {}}}']

    async def run(server):
        endpoint = endpoint_of(server, ceiling=8)
        for backend in BOTH:
            for name in NV:
                top = built(backend, name).entry.scale.points[-1]
                for form in forms:
                    server.reset(reply=form.format(top))
                    found = await scored(endpoint, backend, name)
                    assert (found.status, found.value) == ("scored", 1.0), (backend.name, name, form)
                    assert server.calls == 2
                    for request in server.requests:
                        assert request.body["max_tokens"] == 8
                        assert not {"temperature", "n", "stop"} & set(request.body)
        await endpoint.aclose()

    with FakeServer() as server:
        asyncio.run(run(server))


@pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)
def test_the_text_of_ragas_is_the_one_user_message_and_one_line_beside_it_says_how_to_answer(backend):
    with FakeServer(reply="2") as server:
        over(endpoint_of(server), backend, "AnswerAccuracy")
    system, user = server.requests[0].messages
    assert (system["role"], user["role"]) == ("system", "user")
    assert len(system["content"].splitlines()) == 1
    assert "0, 2 or 4" in system["content"]
    assert user["content"].startswith(("You are a world class", "Instruction: You are a world class"))
    assert user["content"].endswith("Output: " if backend is COLLECTIONS else "The rating is:\n")


@pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)
def test_a_structured_answer_comes_down_the_same_ladder_as_for_native_metrics(backend):
    said = {
        "statements": ["Stop the pump.", "Tighten the belt."],
        "verdicts": [
            {"statement": one, "reason": "so", "verdict": 1} for one in ("Stop the pump.", "Tighten the belt.")
        ],
    }

    def reply(request):
        if request.body.get("response_format"):
            return bad_request(message="response_format is not supported", param="response_format")
        if request.body.get("tools"):
            return bad_request(message="tools are not supported", param="tools")
        return json.dumps({"statements": said["verdicts" if "statements" in input_of(request.user) else "statements"]})

    with FakeServer(reply=reply) as server:
        endpoint = endpoint_of(server)
        found = over(endpoint, backend, "Faithfulness")
    assert found.status == "scored", found
    assert found.value == 1.0
    assert endpoint.findings.rung_confirmed


@pytest.mark.parametrize(
    ("backend", "name"), [(COLLECTIONS, "AnswerAccuracy"), (LEGACY, "AnswerAccuracy"), (LEGACY, "Faithfulness")]
)
def test_a_judge_that_never_makes_sense_costs_our_attempts_and_not_those_of_ragas(backend, name):
    tally = Tally()
    with FakeServer(reply="I would rather not say.") as server:
        found = over(endpoint_of(server), backend, name, retries=2, tally=tally, structured="prompt")
    assert found.kind == "malformed"
    assert found.attempts == 3
    assert server.calls == tally.calls == 3


@pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)
def test_an_answer_cut_by_the_ceiling_is_truncated_and_not_half_a_list(backend):
    cut = Reply(content='{"statements": ["Stop the pump.", "Tight', finish_reason="length")
    with FakeServer(reply=cut) as server:
        found = over(endpoint_of(server, ceiling=8), backend, "Faithfulness", structured="prompt")
    assert found.kind == "truncated"


@pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)
def test_a_chat_model_that_is_only_synchronous_scores_too(backend):
    with FakeServer(reply="4") as server:
        found = over(llms.from_model(HttpChat(url=server.base_url)), backend, "AnswerAccuracy")
    assert found.value == 1.0


@pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)
def test_a_rating_can_be_asked_for_with_its_reason(backend):
    with FakeServer(reply=json.dumps({"reason": "The same.", "rating": 4})) as server:
        found = over(endpoint_of(server), backend, "AnswerAccuracy", output="structured")
    assert found.value == 1.0
    assert found.reason == "The same. The same."
