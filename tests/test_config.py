"""The eval file as a whole: what it means, and the line for everything that can be wrong with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.evalfiles import FULL, lines_of, load, ours, written

from ragparity.config import (
    RunSettings,
    file_stem,
    file_stems,
    load_eval_file,
    read_evaluator,
    what_nat_eval_ignores,
)
from ragparity.core.errors import ConfigError
from ragparity.core.policy import Policies


def test_every_key_of_the_format_is_read(tmp_path):
    file = load(tmp_path, FULL)
    judge = file.llms["judge"]
    assert (judge.type, judge.model_name, judge.base_url) == ("openai", "gpt-4o-mini", "http://localhost:8000/v1")
    assert (judge.api_key, judge.max_tokens, judge.options) == ("local-and-harmless", 8, {"temperature": 0})
    assert file.embedders["emb"].model_name == "text-embedding-3-small"
    general = file.general
    assert (general.output_dir, general.max_concurrency) == (Path("out"), 16)
    assert general.dataset.structure.model_fields_set == {"question_key", "answer_key", "generated_answer_key"}
    assert general.ragparity.cache.mode == "off"  # which YAML reads as false
    assert general.ragparity.gate["faithfulness"].model_dump(exclude_unset=True) == {
        "min_mean": 0.8,
        "max_failed": 0,
        "max_drop": 0.02,
    }
    faithfulness = file.evaluators["faithfulness"]
    assert (faithfulness.backend, faithfulness.backend_chosen) == ("native", True)
    assert faithfulness.fields == {"retrieved_contexts": "outputs.docs[].body"}
    assert faithfulness.policies == Policies()
    # Nulls on the entry say nothing, so the settings of all evaluators with this judge stand.
    assert (faithfulness.judge.reasoning, faithfulness.judge.context_window) == (False, 8192)
    assert faithfulness.judge.price.output_per_1m == 0.6
    assert file.evaluators["agreement"].backends == ("native", "ragas", "ragas_legacy")
    assert file.skipped == ()
    assert file.warnings == (
        "eval.general.ragparity.gate.faithfulness.max_drop: no effect without eval.general.ragparity.baseline",
    )


def test_a_file_of_the_toolkit_loads_and_names_what_it_skips(tmp_path):
    file = load(
        tmp_path,
        """
        general: {telemetry: {logging: {console: {_type: console, level: WARN}}}}
        functions: {search: {_type: webpage_query, description: 'file://gone.txt', key: '${A'}}
        workflow: {_type: react_agent, tool_names: [search], llm_name: agent}
        llms:
          agent: {_type: aws_bedrock, model_name: m, region_name: r}
          judge: {_type: nim, model_name: nvidia/m, max_tokens: 8, chat_template_kwargs: {enable_thinking: false}}
        eval:
          general:
            output: {dir: ./here, cleanup: false, remote_dir: s3-prefix}
            output_dir: ./there
            workflow_alias: w
            profiler: {base_metrics: true}
            dataset: {_type: json, file_path: rows.json}
          evaluators:
            accuracy: {_type: ragas, metric: AnswerAccuracy, llm_name: judge}
            groundedness: {type: ragas, metric: {ResponseGroundedness: {kwargs: {}, skip: false}}, llm_name: judge, enable_atif_evaluator: true, num_retries: 3}
            trajectory_accuracy: {_type: trajectory, llm_name: agent, prompt: 'file://gone.txt'}
            tunable: {_type: tunable_rag_evaluator, llm_name: judge, whatever: 1}
        """,
    )
    assert list(file.evaluators) == ["accuracy", "groundedness"]
    assert {(one.type, one.backend, one.backend_chosen) for one in file.evaluators.values()} == {
        ("ragas", "ragas", False)
    }
    assert file.evaluators["groundedness"].enable_atif_evaluator is True
    assert file.evaluators["groundedness"].judge.retries == 2
    assert file.general.output_dir == Path("here")
    assert file.skipped == (
        "general: a section of the toolkit, not used here",
        "functions: a section of the toolkit, not used here",
        "workflow: a section of the toolkit, not used here",
        "eval.general.workflow_alias: a setting of the toolkit, not used here",
        "eval.general.profiler: a setting of the toolkit, not used here",
        "eval.evaluators.trajectory_accuracy: an evaluator of the toolkit (trajectory), not scored here",
        "eval.evaluators.tunable: an evaluator of the toolkit (tunable_rag_evaluator), not scored here",
    )
    assert file.warnings == ("eval.general.output.remote_dir: only `nat eval` does this; here nothing is uploaded",)
    assert not file.llms["agent"].known
    assert file.llms["judge"].options == {"chat_template_kwargs": {"enable_thinking": False}}


def test_the_name_of_a_type_may_have_its_package_before_it(tmp_path):
    file = load(
        tmp_path,
        {
            "llms": {"j": {"_type": "nat.llm/openai", "model": "m"}},
            "eval": {
                "evaluators": {
                    "a": {"_type": "ragparity/ragas", "metric": "A"},
                    "b": {"_type": "nat.plugins.ragas.rag_evaluator/ragas", "metric": "A"},
                    "c": {"_type": "other/ragas", "metric": "A"},
                }
            },
        },
    )
    assert file.llms["j"].type == "openai"
    assert {name: one.type for name, one in file.evaluators.items()} == {"a": "ragas", "b": "ragas"}
    assert file.skipped == ("eval.evaluators.c: an evaluator of the toolkit (other/ragas), not scored here",)


def test_a_misspelt_key_is_named_with_its_path_and_the_key_that_was_meant(tmp_path):
    assert lines_of(tmp_path, {"eval": {"evaluators": {"faithfulness": {"_type": "ragparity", "metrik": "A"}}}}) == [
        "eval.evaluators.faithfulness.metrik: unknown key; did you mean metric?",
    ]


def test_all_problems_of_a_file_are_said_together_in_its_order(tmp_path):
    text = {
        "llm": {},
        "llms": {"j": {"_type": "openai", "max_tokens": 0}},
        "eval": {
            "generl": {},
            "general": {"max_concurrency": 0},
            "evaluators": {"f": ours(reps=0, judge={"outpt": 1}), "g": ours(threshold="high")},
        },
    }
    assert lines_of(tmp_path, text) == [
        "llm: unknown key; did you mean llms?",
        "eval.generl: unknown key; did you mean general?",
        "llms.j.max_tokens: got 0; expected a whole number of tokens, 1 or more",
        "eval.general.max_concurrency: got 0; expected a whole number, 1 or more",
        "eval.evaluators.f.judge.outpt: unknown key; did you mean output?",
        "eval.evaluators.f.reps: got 0; expected a whole number, 1 or more",
        "eval.evaluators.g.threshold: got 'high'; expected a number",
    ]


def test_an_empty_file_and_a_missing_file_say_so(tmp_path):
    path = written(tmp_path, "# nothing\n")
    with pytest.raises(ConfigError, match=r"eval.yml: nothing in it; expected a mapping with `eval:` in it"):
        load_eval_file(path)
    with pytest.raises(ConfigError, match=r"gone.yml does not exist; check the path"):
        load_eval_file(tmp_path / "gone.yml")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("eval: 3", "eval: got 3; expected a mapping with general and evaluators"),
        ("eval: {evaluators: [a]}", "eval.evaluators: got a list; expected a mapping of names to entries"),
        ("eval: {evaluators: {a: b}}", "eval.evaluators.a: got 'b'; expected a mapping with _type in it"),
        ("eval: {evaluators: {1: {}}}", "eval.evaluators.1: a name that is no text; put it into quotes"),
        ("eval: {evaluators: {a: {metric: A}}}", "eval.evaluators.a._type: missing; expected ragparity, ragas or ragparity_crossvalidate"),
        ("eval: {evaluators: {a: {_type: ragass, metric: A}}}", "eval.evaluators.a._type: unknown type 'ragass'; did you mean ragas?"),
        ("eval: {evaluators: {a: {_type: ragas, type: ragparity, metric: A}}}", "eval.evaluators.a.type: _type is 'ragas' and type is 'ragparity'; keep one"),
        ("eval: {evaluators: {a: {_type: ragas, metric: A, yes: 1}}}", "eval.evaluators.a.1: a key that is no text (YAML reads yes, no, on and off as true and false); put it into quotes"),
        ("eval: {general: [1]}", "eval.general: got a list; expected a mapping with max_concurrency, output_dir, output, dataset, ragparity, workflow_alias, profiler, validate_llm_endpoints and per_input_user_id"),
        ("llms: {offline: {_type: openai, model: m}}", "llms.offline: the name offline is reserved (a judge and an embedder without a model); choose another name"),
        ("embedders: {Offline: {_type: openai, model: m}}", "embedders.Offline: the name offline is reserved (a judge and an embedder without a model); choose another name"),
        ("llms: {j: {model: m}}", "llms.j._type: missing; expected openai, nim, azure_openai, litellm or langchain"),
        ("embedders: {e: {model: m}}", "embedders.e._type: missing; expected openai, nim, azure_openai or langchain"),
        ("llms: {j: {_type: openai}}", "llms.j.model_name: missing; expected the name of a model, as text"),
        ("llms: {j: {_type: openai, model: 4}}", "llms.j.model: got 4; expected the name of a model, as text"),
        ("llms: {j: {_type: openai, model: a, model_name: b}}", "llms.j.model: model_name is 'b' and model is 'a'; keep one"),
        ("llms: {j: {_type: openai, model: a, api_key: 0123}}", "llms.j.api_key: got a number; expected a text; put it into quotes"),
        ("llms: {j: {_type: openai, model: a, temperature: hot}}", "llms.j.temperature: got 'hot'; expected a number, 0 or more"),
        ("llms: {j: {_type: openai, model: a, max_tokens: true}}", "llms.j.max_tokens: got true; expected a whole number of tokens, 1 or more"),
        ("llms: {j: {_type: openai, model: a, base_url: localhost}}", "llms.j.base_url: expected a URL that begins with http:// or https://"),
        ("llms: {j: {_type: azure_openai, model: a, base_url: 'x:8000/v1'}}", "llms.j.azure_endpoint: expected a URL that begins with http:// or https://"),
        ("llms: {j: {_type: langchain, class: a.B, model: m}}", "llms.j.model: unknown key; arguments of the model stand under kwargs"),
        ("llms: {j: {_type: langchain, class: ChatX}}", "llms.j.class: got 'ChatX'; expected the import path of a class, package.module.Class"),
        ("llms: {j: {_type: langchain, kwargs: {}}}", "llms.j.class: missing; expected the import path of a class, package.module.Class"),
    ],
)  # fmt: skip
def test_sections_and_entries_that_are_wrong_get_their_line(tmp_path, text, line):
    assert lines_of(tmp_path, text) == [line]


@pytest.mark.parametrize(
    ("dataset", "line"),
    [
        ({"_type": "jsonk"}, "_type: got 'jsonk'; expected json, jsonl, csv, parquet, xls or custom; did you mean json?"),
        ({"file_path": "a"}, "_type: missing; expected json, jsonl, csv, parquet, xls or custom"),
        ({"_type": "json", "file": "a"}, "file: unknown key; did you mean file_path?"),
        ({"_type": "json", "structure": {"question": "q"}}, "structure.question: unknown key; did you mean question_key?"),
        ({"_type": "json", "filter": {"allowlist": {"col": []}}}, "filter.allowlist.col: unknown key; the keys here are field"),
        ({"_type": "json", "filter": {"denylist": {"field": {"c": 1}}}}, "filter.denylist.field.c: got 1; expected a mapping of column to a list of values"),
        ({"_type": "json", "function": "a.b"}, "function: unknown key; only `_type: custom` has it"),
        ({"_type": "custom"}, "function: missing; expected the import path of a function, package.module.function"),
        ({"_type": "json", "file_path": "https://host/rows.json"}, "file_path: got 'https://host/rows.json'; no URL is opened; download the file and give its path"),
        ({"_type": "json", "s3": {"bucket": "b"}}, "s3: remote data is not supported and no URL is opened; download the file and give file_path"),
        ({"_type": "json", "remote_file_path": "a"}, "remote_file_path: remote data is not supported and no URL is opened; download the file and give file_path"),
    ],
)  # fmt: skip
def test_a_data_set_that_is_wrong_gets_its_line(tmp_path, dataset, line):
    assert lines_of(tmp_path, {"eval": {"general": {"dataset": dataset}}}) == [f"eval.general.dataset.{line}"]


def test_a_custom_data_set_keeps_its_function_and_arguments(tmp_path):
    raw = {
        "_type": "custom",
        "function": "my.rows",
        "kwargs": {"n": 1},
        "filter": {"allowlist": {"field": {"c": ["a*", 1]}}},
    }
    dataset = load(tmp_path, {"eval": {"general": {"dataset": raw}}}).general.dataset
    assert (dataset.type, dataset.function, dataset.kwargs, dataset.file_path) == ("custom", "my.rows", {"n": 1}, None)
    assert dataset.filter.allowlist.field == {"c": ["a*", 1]}
    assert dataset.filter.denylist is None


@pytest.mark.parametrize(
    ("run", "line"),
    [
        ({"bakend": "x"}, "bakend: unknown key; did you mean backend?"),
        ({"judges": {"jdge": {}}}, "judges.jdge: no entry of llms has this name; did you mean judge?"),
        ({"judges": {"judge": {"structured": "tools"}}}, "judges.judge.structured: got 'tools'; expected auto, json_schema, tool, json_mode or prompt; did you mean tool?"),
        ({"judges": {"judge": {"price": {"input_per_1m": 1}}}}, "judges.judge.price.output_per_1m: missing; expected a price per million tokens written, 0 or more"),
        ({"cache": {"mode": True}}, "cache.mode: got true; expected off, read_write, read_only or replay"),
        ({"save": {"calls": "al"}}, "save.calls: got 'al'; expected none, failed or all; did you mean all?"),
        ({"gate": {"fath": {}}}, "gate.fath: no evaluator has this name; did you mean faith?"),
        ({"gate": {"steps": {"min_mean": 1}}}, "gate.steps: an evaluator of the toolkit, not scored here; remove the gate"),
        ({"gate": {"faith": {"min_mean": float("nan")}}}, "gate.faith.min_mean: got nan; expected a number"),
        ({"gate": {"faith": {"min_coverage": 80}}}, "gate.faith.min_coverage: got 80; expected a share of the rows, 0 to 1"),
        ({"gate": {"faith": {"max_failed": 0.5}}}, "gate.faith.max_failed: got 0.5; expected a whole number of rows, 0 or more"),
        ({"gate": 3}, "gate: got 3; expected a mapping of names to min_mean, max_failed, min_coverage and max_drop"),
        ({"fields": {"response": 1}}, "fields.response: got 1; expected a mapping of field to path, both text"),
    ],
)  # fmt: skip
def test_run_settings_that_are_wrong_get_their_line(tmp_path, run, line):
    text = {
        "llms": {"judge": {"_type": "openai", "model": "m"}},
        "eval": {
            "general": {"ragparity": run},
            "evaluators": {"faith": ours(), "steps": {"_type": "trajectory", "llm_name": "judge"}},
        },
    }
    assert lines_of(tmp_path, text) == [f"eval.general.ragparity.{line}"]


def test_a_function_that_would_change_the_rows_is_said_not_to_run(tmp_path):
    output = {"dir": "o", "custom_pre_eval_process_function": "a.b", "custom_scripts": {}, "s3": {}}
    file = load(tmp_path, {"eval": {"general": {"output": output}}})
    assert file.warnings[0] == (
        "eval.general.output.custom_pre_eval_process_function: only `nat eval` does this; "
        "here the function is not called, so rows are scored as they are"
    )
    assert len(file.warnings) == 3


def test_an_llm_that_is_not_there_is_named_with_those_that_are(tmp_path):
    file = load(
        tmp_path,
        {
            "llms": {"judge": {"_type": "openai", "model": "m"}, "other": {"_type": "openai", "model": "m"}},
            "eval": {
                "evaluators": {
                    "x": ours(llm_name="judg", embedder_name="emb"),
                    "y": ours(llm_name="offline", embedder_name="offline"),
                }
            },
        },
    )
    assert file.missing_entries(file.evaluators["x"]) == [
        "eval.evaluators.x.llm_name: no entry 'judg'; llms has judge and other, and offline needs no entry; did you mean judge?",
        "eval.evaluators.x.embedder_name: no entry 'emb'; embedders has no entries, and offline needs no entry",
    ]
    assert file.missing_entries(file.evaluators["y"]) == []


KEYS = st.sampled_from(
    [
        "_type", "type", "llms", "embedders", "eval", "general", "evaluators", "dataset", "ragparity", "output", "judges",
        "judge", "gate", "cache", "fields", "policies", "metric", "kwargs", "skip", "class", "model", "model_name",
        "max_tokens", "api_key", "base", "structure", "filter", "field", "backends", "backend", "llm_name", "x", 1, True,
    ]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.floats(),
    st.sampled_from(
        ["ragparity", "ragas", "ragparity_crossvalidate", "openai", "langchain", "json", "a/b", "", "${NO}", "x"]
    ),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=25,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(llms=TREES, general=TREES, evaluators=TREES, more=TREES)
def test_whatever_stands_in_a_file_it_loads_or_is_refused_in_whole_lines(tmp_path, llms, general, evaluators, more):
    text = {
        "llms": llms,
        "eval": {"general": general, "evaluators": evaluators},
        **({"embedders": more} if more else {}),
    }
    lines, effective = [], {"eval": {}}
    try:
        file = load(tmp_path, text)
        effective = file.effective()
        what_nat_eval_ignores(file)
    except ConfigError as error:
        lines = str(error).split("\n")
    assert all(": " in line for line in lines)
    assert "eval" in effective


def test_overrides_change_what_the_file_says_and_are_checked_like_it(tmp_path):
    file = load(
        tmp_path,
        FULL,
        ("eval.evaluators.faithfulness.metric", "{Faithfulness: {kwargs: {a: 1}}}"),
        ("llms.judge.temperature", "0.5"),
    )
    assert file.evaluators["faithfulness"].kwargs == {"a": 1}
    assert file.llms["judge"].options == {"temperature": 0.5}
    assert file.effective()["llms"]["judge"]["temperature"] == 0.5
    assert lines_of(tmp_path, FULL, ("eval.evaluators.faithfulness.metrc", "A"), ("eval.x.y", "1")) == [
        "eval.x: unknown key; the keys here are general and evaluators",
        "eval.evaluators.faithfulness.metrc: unknown key; did you mean metric?",
    ]


def test_the_effective_config_is_an_eval_file_that_means_the_same(tmp_path):
    first = load(tmp_path, FULL, ("eval.evaluators.faithfulness.num_retries", "2"))
    second = load(tmp_path, json.dumps(first.effective(mask=False)))
    assert second.evaluators == first.evaluators
    assert second.llms == first.llms
    assert second.general == first.general


def test_one_entry_can_be_read_by_itself():
    run = RunSettings.model_validate({"judges": {"j": {"retries": 0}}, "backend": "ragas"})
    made = read_evaluator("x", ours(llm_name="j"), run=run)
    assert (made.backend, made.judge.retries) == ("ragas", 0)
    with pytest.raises(ConfigError, match=r"^eval.evaluators.x.reps: got 0; expected a whole number, 1 or more$"):
        read_evaluator("x", ours(reps=0))


def test_names_become_file_names_and_no_two_are_alike(tmp_path):
    file = load(tmp_path, {"eval": {"evaluators": {"ragas/F": ours(), "ragas_F": ours(), "a b@5": ours()}}})
    assert file.stems == {"ragas/F": "ragas_F-2", "ragas_F": "ragas_F", "a b@5": "a b@5"}


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("a\\b:c", "a_b_c"),
        ("..", "_"),
        (".hidden", "_hidden"),
        ("CON", "CON_"),
        ("workflow", "workflow_"),
        ("a\n", "a_"),
        ("", "_"),
        ("é", "é"),
    ],
)
def test_signs_that_a_file_name_cannot_hold_are_replaced(name, stem):
    assert file_stem(name) == stem


def test_very_long_names_stay_apart():
    first, second = file_stems(["x" * 300 + "a", "x" * 300 + "b"]).values()
    assert first != second
    assert len(first.encode()) <= 120


def test_reading_an_eval_file_imports_no_framework(tmp_path):
    code = (
        "import sys; from pathlib import Path; from ragparity.config import load_eval_file;"
        "load_eval_file(Path(sys.argv[1]));"
        "print([m for m in ('langchain_core', 'pandas', 'numpy', 'openai', 'ragas', 'nat') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(written(tmp_path, FULL))], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
