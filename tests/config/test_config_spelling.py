"""Keys of model entries: a misspelt one is said and sent, and no real one is taken for a misspelling."""

import inspect

import pytest
from langchain_openai import AzureChatOpenAI, AzureOpenAIEmbeddings, ChatOpenAI, OpenAIEmbeddings
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.embeddings import AsyncEmbeddings
from tests import runs
from tests.evalfiles import load
from tests.fakeserver import FakeServer

from ragparity.config import spelling
from ragparity.config.sections import JudgeSettings


def warnings(tmp_path, section="llms", type_="openai", **keys):
    entry = {"_type": type_, "model_name": "m", **keys}
    file = load(tmp_path, {section: {"judge": entry}, "eval": {"evaluators": {}}})
    return [line for line in file.warnings if line.startswith(section)]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("temprature", "temperature"),
        ("Temperature", "temperature"),
        ("top-p", "top_p"),
        ("maxtokens", "max_tokens"),
        ("max_token", "max_tokens"),
        ("reasoning_efort", "reasoning_effort"),
        ("apikey", "api_key"),
        ("base_ulr", "base_url"),
        ("num_retires", "num_retries"),
        ("context_window", "eval.general.ragparity.judges.judge.context_window"),
        ("timeout_s", "eval.general.ragparity.judges.judge.timeout_s"),
    ],
)
@pytest.mark.parametrize("type_", ["openai", "nim", "litellm"])
def test_a_misspelt_key_is_said_with_what_was_meant(tmp_path, type_, key, meant):
    (line,) = warnings(tmp_path, type_=type_, **{key: 1})
    assert line == f"llms.judge.{key}: no key that is known here; it goes to the model as it is. Did you mean {meant}?"


def test_an_embedder_has_keys_of_its_own(tmp_path):
    (line,) = warnings(tmp_path, "embedders", dimension=256)
    assert line.startswith("embedders.judge.dimension: ") and line.endswith("Did you mean dimensions?")
    assert warnings(tmp_path, "embedders", dimensions=256, truncate="END", input_type="query") == []


@pytest.mark.parametrize("key", ["min_p", "repetition_penalty", "guided_json", "my_own_switch", "thinking_budget"])
def test_keys_of_other_servers_are_no_misspellings(tmp_path, key):
    assert warnings(tmp_path, **{key: 1}) == []


def test_a_class_of_the_users_own_says_itself_what_it_does_not_know(tmp_path):
    entry = {"_type": "langchain", "class": "a.B", "kwargs": {"temprature": 1}}
    assert load(tmp_path, {"llms": {"judge": entry}, "eval": {"evaluators": {}}}).warnings == ()


CLIENTS = {
    "llms": ([ChatOpenAI, AzureChatOpenAI], AsyncCompletions.create),
    "embedders": ([OpenAIEmbeddings, AzureOpenAIEmbeddings], AsyncEmbeddings.create),
}


@pytest.mark.parametrize("section", ["llms", "embedders"])
def test_no_key_that_a_client_or_the_api_has_is_taken_for_a_misspelling(section):
    classes, create = CLIENTS[section]
    real = {name for cls in classes for key, one in cls.model_fields.items() for name in (key, one.alias) if name}
    real |= set(inspect.signature(create).parameters) - {"self", "messages", "input"}
    if section == "llms":
        real -= set(JudgeSettings.model_fields) - {*spelling.CHAT}
    entry = type(
        "Entry", (), {"type": "openai", "section": section, "name": "x", "path": (section, "x"), "options": real}
    )
    assert list(spelling.misspelt(entry)) == []


def test_check_and_eval_say_it_and_the_key_is_sent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "llms.judge.temprature: no key that is known here; it goes to the model as it is. Did you mean temperature?"
    with FakeServer("4") as server:
        runs.write(runs.ACCURACY, runs.rows(1), server, llm={"temprature": 0.5})
        assert line in runs.command("check", "eval.yml").output.splitlines()
        done = runs.command("eval", "eval.yml")
        assert done.exit_code == 0 and done.stderr.splitlines()[0] == line
        assert server.requests[0].body["temprature"] == 0.5
