"""Entries of `llms` and `embedders`, and the variables they need."""

from __future__ import annotations

import pytest
from tests.evalfiles import evaluator, evaluator_lines, load, ours

from ragparity.config import (
    LlmEntry,
)


def test_the_toolkits_own_keys_do_not_reach_the_model_client(tmp_path):
    entry = {
        "_type": "nim",
        "model_name": "m",
        "num_retries": 5,
        "do_auto_retry": True,
        "retry_on_status_codes": [429],
        "retry_on_errors": None,
        "thinking": False,
        "api_type": "chat_completion",
        "verify_ssl": False,
        "seed": 1,
        "top_p": 0.5,
    }
    made = load(tmp_path, {"llms": {"j": entry}}).llms["j"]
    assert made.options == {"seed": 1, "top_p": 0.5}
    assert made.toolkit["verify_ssl"] is False
    assert made.toolkit["thinking"] is False
    assert (made.retries, made.max_tokens, made.api_key) == (4, None, None)


def test_a_number_written_as_text_is_a_number(tmp_path):
    # YAML 1.1 reads 1e-3 as text; in JSON a variable always stands in a text.
    made = load(tmp_path, "llms: {j: {_type: openai, model: m, temperature: 1e-3, max_tokens: '8'}}").llms["j"]
    assert made.options["temperature"] == 0.001
    assert made.max_tokens == 8


@pytest.mark.parametrize(
    ("names", "model", "deployment"),
    [
        ({"azure_deployment": "d"}, "d", "d"),
        ({"model_name": "m"}, "m", "m"),
        ({"model": "m"}, "m", "m"),
        ({"azure_deployment": "d", "model_name": "m"}, "m", "d"),
    ],
)
def test_one_name_is_enough_for_azure_and_two_may_differ(tmp_path, names, model, deployment):
    entry = {"_type": "azure_openai", "azure_endpoint": "https://x", "api_version": "v", **names}
    for section in ("llms", "embedders"):
        made = getattr(load(tmp_path, {section: {"j": entry}}), section)["j"]
        assert (made.model_name, made.azure_deployment, made.base_url) == (model, deployment, "https://x")
        assert made.options == {"api_version": "v"}


def test_a_langchain_entry_has_a_class_and_arguments(tmp_path):
    entry = {"_type": "langchain", "class": "a.b:C", "kwargs": {"model": "m", "max_tokens": 90}, "max_tokens": 100}
    made = load(tmp_path, {"llms": {"j": entry}}).llms["j"]
    assert (made.class_path, made.model_name, made.max_tokens) == ("a.b.C", "m", 90)
    assert made.kwargs == {"model": "m", "max_tokens": 90}


def test_an_entry_of_an_unknown_type_is_no_error_until_it_is_used(tmp_path):
    made = load(tmp_path, {"llms": {"j": {"_type": "aws_bedrock", "model_name": "m", "max_tokens": "x"}}}).llms["j"]
    assert isinstance(made, LlmEntry)
    assert (made.type, made.known, made.model_name, made.max_tokens) == ("aws_bedrock", False, "m", None)


def test_an_unset_variable_matters_only_where_it_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    text = "llms: {j: {_type: openai, model: m, api_key: '${NO_SUCH_KEY}', headers: {a: '${NO_SUCH_KEY}'}, max_tokens: '${MAX:-9}'}}"
    file = load(tmp_path, text)
    assert file.unset_variables(file.llms["j"]) == ["NO_SUCH_KEY"]
    assert file.llms["j"].max_tokens == 9
    monkeypatch.setenv("NO_SUCH_KEY", "k")
    file = load(tmp_path, text)
    assert file.unset_variables(file.llms["j"]) == []
    assert file.llms["j"].api_key == "k"


def test_an_unset_number_of_an_unused_entry_is_no_error(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH", raising=False)
    file = load(
        tmp_path, "llms: {j: {_type: openai, model: '${NO_SUCH}', max_tokens: '${NO_SUCH}', num_retries: '${NO_SUCH}'}}"
    )
    assert file.unset_variables(file.llms["j"]) == ["NO_SUCH"]
    assert (file.llms["j"].max_tokens, file.llms["j"].retries) == (None, None)


def test_an_unset_variable_on_an_evaluator_of_ours_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH", raising=False)
    assert evaluator_lines(tmp_path, ours(threshold="${NO_SUCH}", llm_name="${NO_SUCH}")) == [
        "eval.evaluators.x.threshold: ${NO_SUCH} is not set; set the variable, or write ${NO_SUCH:-default}",
        "eval.evaluators.x.llm_name: ${NO_SUCH} is not set; set the variable, or write ${NO_SUCH:-default}",
    ]


def test_an_unset_variable_in_the_data_set_is_left_to_the_caller(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH", raising=False)
    file = load(tmp_path, "eval: {general: {dataset: {_type: json, file_path: '${NO_SUCH}'}}}")
    assert file.unset_variables(file.general.dataset) == ["NO_SUCH"]


def test_a_text_from_a_file_may_hold_what_looks_like_a_variable(tmp_path):
    (tmp_path / "p.txt").write_text("Use ${braces}.", encoding="utf-8")
    assert evaluator(tmp_path, ours(judge={"prompt": "file://p.txt"})).judge.prompt == "Use ${braces}."
