"""The user's rules and language: in the system message, part of the identity, braces as they are."""

import asyncio
import json

import pytest
from pydantic import BaseModel
from tests.evalfiles import load
from tests.fakeserver import FakeServer

from ragparity import evaluate, wiring
from ragparity.core.errors import ConfigError
from ragparity.core.ports import Question, Rating, Scale, Structured, Tally
from ragparity.core.prompt import Prompt
from ragparity_adapters import llms
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge
from ragparity_adapters.llms import LlmSpec

ODD = '{0} {{}} %s $name {% if %} {"port": 1} {"a": {}} 東京 \u2028 é ß'
ROW = {"question": "Wo ist der Turm?", "answer": "Der Turm steht in Paris.", "contexts": ["Der Turm steht in Paris."]}


class Reasoned(BaseModel):
    reason: str
    verdict: bool


def asked(server, question, shape, **options):
    """The request that one question became."""
    endpoint = llms.build(LlmSpec(name="judge", type="openai", model_name="m", base_url=server.base_url))

    async def once():
        try:
            await LangChainJudge(endpoint, JudgeOptions(**options)).ask(Question(question, shape, 50), Tally())
        finally:
            await endpoint.aclose()

    asyncio.run(once())
    return server.requests[-1]


def planned(tmp_path, metric="AnswerAccuracy", **judge):
    entry = {"_type": "ragparity", "metric": metric, "llm_name": "offline", "judge": judge}
    return wiring.make_plan(load(tmp_path, {"eval": {"evaluators": {"x": entry}}}))


# -- rules


def test_the_users_rules_stand_in_the_system_message_with_their_placeholders_filled():
    with FakeServer(reply="2") as server:
        request = asked(
            server, Prompt("Rate it.", data={"answer": "a"}), Rating(Scale((0, 1, 2))), prompt="Be strict: {scale}."
        )
    assert "- Be strict: 0, 1 or 2." in request.system.splitlines()
    assert request.user == 'answer: "a"'


def test_braces_in_rules_and_data_are_text():
    with FakeServer(reply="2") as server:
        request = asked(
            server, Prompt("Rate it.", data={"answer": ODD}), Rating(Scale((0, 2))), prompt=f"Mind {ODD} {{{{scale}}}}"
        )
    assert f"- Mind {ODD} {{scale}}" in request.system
    assert json.loads(request.user.removeprefix("answer: ")) == ODD


def test_characters_reach_the_judge_unescaped():
    with FakeServer(reply="2") as server:
        request = asked(server, Prompt("Rate it.", data={"answer": "東京, naïve, 😀"}), Rating(Scale((0, 2))))
    assert request.user == 'answer: "東京, naïve, 😀"'


def test_rules_and_language_are_part_of_the_identity():
    endpoint = llms.build(LlmSpec(name="judge", type="openai", model_name="m", base_url="http://localhost/v1"))
    options = ({}, {"prompt": "Be strict."}, {"prompt": "Be kind."}, {"language": "German"})
    assert len({LangChainJudge(endpoint, JudgeOptions(**one)).identity for one in options}) == 4


def test_a_frameworks_own_prompt_gets_no_rule_and_no_language():
    with FakeServer(reply="2") as server:
        request = asked(
            server, Prompt.verbatim("Rate this."), Rating(Scale((0, 2))), prompt="Be strict.", language="German"
        )
    assert "strict" not in request.text and "German" not in request.text
    assert request.user == "Rate this."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Use {scales}.", "judge.prompt: unknown placeholder {scales}; known are {metric}, {scale}, {language}."),
        ('As JSON: {"port": {x}}', "unknown placeholder {x}"),
        ("In {language}.", "judge.prompt: {language} has no value here: judge.language is not set"),
    ],
)
def test_a_placeholder_without_a_value_is_refused_before_the_run(tmp_path, text, said):
    (problem,) = planned(tmp_path, prompt=text).problems
    assert problem.startswith("eval.evaluators.x: ") and said in problem


def test_a_scale_is_refused_where_nothing_is_rated(tmp_path):
    assert "Faithfulness asks for no rating" in planned(tmp_path, metric="Faithfulness", prompt="{scale}").problems[0]
    assert not planned(tmp_path, metric="AnswerAccuracy", prompt="{scale} {metric}").problems


def test_a_hint_names_the_placeholder_that_was_meant(tmp_path):
    assert "Did you mean scale?" in planned(tmp_path, prompt="{scal}").problems[0]
    assert "write {{scal}}" in planned(tmp_path, prompt="{scal}").problems[0]


def test_metric_and_language_are_filled_in_from_the_file(tmp_path):
    plan = planned(tmp_path, prompt="This is {metric} in {language}, not {{metric}}.", language="Danish")
    options = wiring.judge_options(plan.evaluators[0].entry.judge, plan.evaluators[0].metric.name)
    assert options["prompt"] == "This is AnswerAccuracy in Danish, not {{metric}}."


def test_rules_for_a_wrapped_framework_are_refused_in_one_line(tmp_path):
    class Wrapped:
        name, backend, uses = "Faithfulness", "ragas", frozenset({"structured"})

    said = planned(tmp_path, prompt="Be strict.").evaluators[0].entry.judge
    with pytest.raises(ConfigError, match="ragas asks with prompts of its own"):
        wiring.check_prompt(said, Wrapped())


def test_in_python_the_metric_has_no_placeholder():
    with pytest.raises(ConfigError, match="the same judge is asked by several metrics"):
        evaluate([ROW], metrics=["AnswerAccuracy"], judge="offline", judge_options={"prompt": "{metric}"})


# -- language


@pytest.mark.parametrize(
    ("rules", "language", "expected"),
    [
        (("Write in the language of the answer.",), None, "Write in the language of the answer."),
        (("Write in the language of the answer.",), "German", "Write every text of your answer in German."),
        ((), None, "Write reasons in the language of the data."),
        ((), "German", "Write every text of your answer in German."),
    ],
)
def test_there_is_one_rule_on_language_and_the_users_wins(rules, language, expected):
    with FakeServer() as server:
        request = asked(server, Prompt("Judge it.", rules, {"answer": "a"}), Structured(Reasoned), language=language)
    about_language = [line for line in request.system.splitlines() if line.startswith("- Write")]
    assert about_language == [f"- {expected}"]


def test_a_bare_number_needs_no_language():
    with FakeServer(reply="2") as server:
        assert "Write" not in asked(server, Prompt("Rate it.", data={"answer": "a"}), Rating(Scale((0, 2)))).system


def test_questions_about_an_answer_are_wanted_in_its_language():
    def reply(request):
        german = "in the language of the response" in request.system or "in German" in request.system
        said = "Wo steht der Turm?" if german else "Where is the tower?"
        return {"questions": [{"question": said, "noncommittal": False}] * 3}

    class SameLanguage:
        identity = "one for texts in the same language"

        async def embed(self, texts, tally):
            return [[1.0, 0.0] if text.startswith("Wo ") else [0.2, 0.98] for text in texts]

    with FakeServer(reply=reply) as server:
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model="m", base_url=server.base_url, api_key="k")
        results = evaluate([ROW], metrics=["AnswerRelevancy"], judge=model, embedder=SameLanguage())
    assert results.summary["AnswerRelevancy"]["mean"] == 1.0
