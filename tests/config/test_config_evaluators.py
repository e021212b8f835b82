"""Entries of `eval.evaluators`: metric, backend, judge, and their defaults."""

from __future__ import annotations

from dataclasses import fields

import pytest
from tests.evalfiles import evaluator, evaluator_lines, load, ours

from ragparity.config import (
    JudgeSettings,
    metric_choice,
)
from ragparity.config.problems import Problems, keys_of
from ragparity.config.sections import PolicySection
from ragparity.core.policy import Policies


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"llm": "j"}, "llm: unknown key; did you mean llm_name?"),
        ({"embeddings": "e"}, "embeddings: unknown key; did you mean embedder_name?"),
        ({"kwargs": {}}, "kwargs: unknown key; write metric: {Name: {kwargs: {...}}}"),
        ({"temperature": 0}, "temperature: unknown key; did you mean judge.temperature?"),
        ({"no_claims": "one"}, "no_claims: unknown key; did you mean policies.no_claims?"),
        ({"backends": ["a", "b"]}, "backends: unknown key; did you mean backend?"),
        ({"zzz": 1}, "zzz: unknown key; the keys here are metric, llm_name, embedder_name, input_obj_field, enable_atif_evaluator, fields, judge, reps, threshold, all_failed_average, policies, do_auto_retry, num_retries, retry_on_status_codes, retry_on_errors and backend"),
        ({"judge": {"output": "ratings"}}, "judge.output: got 'ratings'; expected auto, rating or structured; did you mean rating?"),
        ({"judge": {"timeout_s": 0}}, "judge.timeout_s: got 0; expected seconds, more than 0"),
        ({"judge": {"retries": -1}}, "judge.retries: got -1; expected a whole number, 0 or more: attempts after the first"),
        ({"judge": "x"}, "judge: got 'x'; expected a mapping with output, max_tokens, temperature, timeout_s, retries, reasoning, context_window, structured, price, language and prompt"),
        ({"policies": {"no_claims": "two"}}, "policies.no_claims: got 'two'; expected undefined, one or zero"),
        ({"policies": {"noclaims": "one"}}, "policies.noclaims: unknown key; did you mean no_claims?"),
        ({"num_retries": 0}, "num_retries: got 0; expected a whole number of attempts, 1 or more"),
        ({"metric": None}, "metric: missing; expected a metric: Name, backend/Name or {Name: {kwargs: {...}}}"),
        ({"metric": ["A"]}, "metric: got a list; expected a metric: Name, backend/Name or {Name: {kwargs: {...}}}"),
        ({"metric": " "}, "metric: got ' '; expected a metric: Name, backend/Name or {Name: {kwargs: {...}}}"),
        ({"metric": "a/b/c"}, "metric: got 'a/b/c'; expected Name or backend/Name"),
        ({"metric": "ragas/"}, "metric: got 'ragas/'; expected Name or backend/Name"),
        ({"metric": {}}, "metric: no metric in one evaluator; expected one; write one evaluator for each"),
        ({"metric": {"A": {}, "B": {}}}, "metric: 2 metrics (A, B) in one evaluator; expected one; write one evaluator for each"),
        ({"metric": {"A": {"kwargs": {}, "mode": "f1"}}}, "metric.A: kwargs beside mode; expected only kwargs and skip, with mode in kwargs"),
        ({"metric": {"A": 3}}, "metric.A: got 3; expected a mapping of arguments"),
        ({"metric": {"A": {"kwargs": [1]}}}, "metric.A.kwargs: got a list; expected a mapping of arguments"),
        ({"metric": {"A": {"skip": "no"}}}, "metric.A.skip: got 'no'; expected true or false"),
        ({"metric": {"A": {1: 2}}}, "metric.A.1: an argument whose name is no text; put it into quotes"),
        ({"metric": "ragas/A", "backend": "native"}, "backend: backend is native and metric is ragas/A; keep one"),
    ],
)  # fmt: skip
def test_an_evaluator_that_is_wrong_gets_its_line(tmp_path, more, line):
    assert evaluator_lines(tmp_path, ours(**more)) == [f"eval.evaluators.x.{line}"]


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"backend": "ragas"}, "backend: unknown key; did you mean backends?"),
        ({"backends": ["native"]}, "backends: only native; expected two or more backends to compare"),
        ({"backends": ["native", "Native"]}, "backends: native stands twice; name each backend once"),
        ({"backends": [1, 2]}, "backends.0: got 1; expected a list of names of backends"),
        ({"metric": "ragas/A"}, "metric: got ragas/A; expected the name alone, since backends lists the backends"),
    ],
)
def test_a_cross_validation_that_is_wrong_gets_its_line(tmp_path, more, line):
    entry = {"_type": "ragparity_crossvalidate", "metric": "A", **more}
    assert evaluator_lines(tmp_path, entry)[0] == f"eval.evaluators.x.{line}"


def test_backends_may_come_as_one_text_from_the_command_line(tmp_path):
    text = {"eval": {"evaluators": {"x": {"_type": "ragparity_crossvalidate", "metric": "A"}}}}
    assert load(tmp_path, text).evaluators["x"].backends == ()
    file = load(tmp_path, text, ("eval.evaluators.x.backends", "native, ragas"))
    assert file.evaluators["x"].backends == ("native", "ragas")


@pytest.mark.parametrize(
    ("raw", "choice"),
    [
        ("Faithfulness", ("Faithfulness", None, {}, False)),
        ("ragas/Faithfulness", ("Faithfulness", "ragas", {}, False)),
        ({"HitRate@5": None}, ("HitRate@5", None, {}, False)),
        ({"A": {"kwargs": {"mode": "f1"}, "skip": True}}, ("A", None, {"mode": "f1"}, True)),
        ({"A": {"skip": False}}, ("A", None, {}, False)),
        ({"A": {"kwargs": None}}, ("A", None, {}, False)),
        ({"ragas/A": {"mode": "f1"}}, ("A", "ragas", {"mode": "f1"}, False)),
        ({"A": {}}, ("A", None, {}, False)),
    ],
)
def test_the_forms_of_a_metric(raw, choice):
    problems = Problems()
    assert metric_choice(raw, ("metric",), problems) == choice
    assert problems.found == []


def test_the_arguments_of_a_metric_are_a_copy(tmp_path):
    raw = {"A": {"kwargs": {"weights": [1, 2]}}}
    made = metric_choice(raw, (), Problems())
    made.kwargs["weights"].append(3)
    made.kwargs["llm"] = object()
    assert raw == {"A": {"kwargs": {"weights": [1, 2]}}}
    file = load(tmp_path, {"eval": {"evaluators": {"x": ours(metric=raw)}}})
    file.evaluators["x"].kwargs["weights"].append(3)
    assert file.effective()["eval"]["evaluators"]["x"]["metric"] == raw


def test_a_date_in_the_arguments_stays_text(tmp_path):
    text = "eval: {evaluators: {x: {_type: ragparity, metric: {A: {answer: 2024-01-01}}}}}"
    assert load(tmp_path, text).evaluators["x"].kwargs == {"answer": "2024-01-01"}


@pytest.mark.parametrize(
    ("type_", "run", "entry", "found"),
    [
        ("ragparity", {}, {}, ("native", False)),
        ("ragas", {}, {}, ("ragas", False)),
        ("ragas", {"backend": "native"}, {}, ("native", True)),
        ("ragparity", {"backend": "ragas"}, {"backend": "ragas_legacy"}, ("ragas_legacy", True)),
        ("ragparity", {"backend": "ragas"}, {"metric": "deepeval/A"}, ("deepeval", True)),
        ("ragparity", {}, {"metric": "Ragas/A", "backend": "ragas"}, ("ragas", True)),
    ],
)
def test_the_backend_is_that_of_the_entry_then_of_the_run_then_of_the_type(tmp_path, type_, run, entry, found):
    text = {"eval": {"general": {"ragparity": run}, "evaluators": {"x": {"_type": type_, "metric": "A", **entry}}}}
    made = load(tmp_path, text).evaluators["x"]
    assert (made.backend, made.backend_chosen) == found


def test_judge_settings_of_the_entry_go_before_those_of_the_run_and_those_before_the_defaults(tmp_path):
    text = {
        "llms": {"j": {"_type": "openai", "model": "m"}},
        "eval": {
            "general": {"ragparity": {"judges": {"j": {"structured": "tool", "retries": 1, "reasoning": True}}}},
            "evaluators": {
                "x": ours(llm_name="j", judge={"structured": "auto", "reasoning": None}),
                "y": ours(judge={"timeout_s": "5"}),
            },
        },
    }
    evaluators = load(tmp_path, text).evaluators
    # `auto` is said by the user, and so counts; null says nothing.
    assert evaluators["x"].judge.set_by_user() == {"structured": "auto", "retries": 1, "reasoning": True}
    assert evaluators["x"].judge.timeout_s == 60
    assert evaluators["y"].judge == JudgeSettings(timeout_s=5)


@pytest.mark.parametrize(
    ("llm", "run", "entry", "retries"),
    [
        ({}, {}, {}, 3),
        ({}, {}, {"num_retries": 5}, 4),  # the toolkit's number counts the first attempt
        ({}, {}, {"num_retries": 5, "judge": {"retries": 0}}, 0),
        ({}, {"retries": 7}, {"num_retries": 5}, 4),
        ({}, {}, {"do_auto_retry": False}, 0),
        ({"num_retries": 2}, {}, {}, 1),
        ({"num_retries": 2}, {"retries": 7}, {}, 7),
        ({"do_auto_retry": False, "num_retries": 2}, {}, {}, 0),
    ],
)
def test_retries_are_those_after_the_first_attempt(tmp_path, llm, run, entry, retries):
    text = {
        "llms": {"j": {"_type": "openai", "model": "m", **llm}},
        "eval": {"general": {"ragparity": {"judges": {"j": run}}}, "evaluators": {"x": ours(llm_name="j", **entry)}},
    }
    assert load(tmp_path, text).evaluators["x"].judge.retries == retries


def test_fields_of_the_entry_go_over_those_of_the_run(tmp_path):
    text = {
        "eval": {
            "general": {"ragparity": {"fields": {"question": "a", "answer": "b"}}},
            "evaluators": {"x": ours(fields={"answer": "c"})},
        }
    }
    assert load(tmp_path, text).evaluators["x"].fields == {"question": "a", "answer": "c"}


def test_policies_are_read_and_there_is_one_list_of_them(tmp_path):
    made = evaluator(tmp_path, ours(policies={"no_claims": "one", "upstream": True}))
    assert made.policies == Policies(no_claims="one", upstream=True)
    assert list(keys_of(PolicySection)) == [one.name for one in fields(Policies)]


def test_retry_rules_of_the_toolkit_are_accepted_and_said_to_have_no_effect(tmp_path):
    file = load(tmp_path, {"eval": {"evaluators": {"x": ours(retry_on_status_codes=[429], retry_on_errors=["x"])}}})
    assert file.warnings == (
        "eval.evaluators.x.retry_on_status_codes: accepted, not used here; what is asked again is fixed",
        "eval.evaluators.x.retry_on_errors: accepted, not used here; what is asked again is fixed",
    )
