"""What `nat eval` does not see of a file."""

from __future__ import annotations

import yaml

from ragparity.config import load_eval_file, what_nat_eval_ignores, what_nvidia_ragas_ignores

LLMS = {"j": {"_type": "openai", "model": "m"}}


def load(tmp_path, run, evaluators, llms=LLMS):
    path = tmp_path / "eval.yml"
    text = {"llms": llms, "eval": {"general": {"ragparity": run}, "evaluators": evaluators}}
    path.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    return load_eval_file(path)


def ours(**more):
    return {"_type": "ragparity", "metric": "A", "llm_name": "j", **more}


def test_a_default_backend_is_named_with_the_evaluators_that_rely_on_it(tmp_path):
    evaluators = {
        "a": ours(),
        "b": ours(backend="native"),
        "c": ours(metric="native/A"),
        "d": {"_type": "ragas", "metric": "A"},  # its default is ragas without the block as well
        "e": {"_type": "ragparity_crossvalidate", "metric": "A"},
        "f": ours(),
    }
    assert what_nat_eval_ignores(load(tmp_path, {"backend": "ragas"}, evaluators)) == [
        "eval.general.ragparity.backend: nat eval does not see it; write backend: ragas on a and f",
    ]


def test_fields_and_judge_settings_are_named_where_the_entry_does_not_repeat_them(tmp_path):
    run = {
        "fields": {"response": "outputs.text"},
        "judges": {"j": {"structured": "tool", "reasoning": True, "prompt": "long", "language": "de"}},
    }
    evaluators = {"a": ours(), "b": ours(fields={"response": "x"}, judge={"structured": "auto", "reasoning": True})}
    assert what_nat_eval_ignores(load(tmp_path, run, evaluators)) == [
        "eval.general.ragparity.fields.response: nat eval does not see it; write fields: {response: 'outputs.text'} on a",
        "eval.general.ragparity.judges.j.reasoning: nat eval does not see it; write judge: {reasoning: true} on a",
        "eval.general.ragparity.judges.j.structured: nat eval does not see it; write judge: {structured: tool} on a",
        "eval.general.ragparity.judges.j.language: nat eval does not see it; write judge: {language: de} on a and b",
        "eval.general.ragparity.judges.j.prompt: nat eval does not see it; write judge: {prompt: …} on a and b",
    ]


def test_settings_that_change_no_score_are_not_named(tmp_path):
    run = {
        "backend": "native",
        "judges": {"j": {"price": {"input_per_1m": 1, "output_per_1m": 2}, "timeout_s": 5, "structured": "auto"}},
        "cache": {"mode": "read_write"},
        "gate": {"a": {"min_mean": 0.5}},
    }
    assert what_nat_eval_ignores(load(tmp_path, run, {"a": ours()})) == []


def test_a_file_that_nat_eval_refuses_anyway_gets_no_lines(tmp_path):
    llms = {"j": {"_type": "langchain", "class": "a.B"}}
    assert what_nat_eval_ignores(load(tmp_path, {"backend": "ragas"}, {"a": ours()}, llms)) == []


def test_our_keys_on_an_evaluator_that_nvidias_plugin_would_take_are_named(tmp_path):
    evaluators = {
        "a": {
            "_type": "ragas",
            "metric": "A",
            "llm_name": "j",
            "num_retries": 2,
            "threshold": 0.5,
            "judge": {"output": "rating"},
        },
        "b": {"_type": "ragas", "metric": "A", "llm_name": "j", "input_obj_field": "q"},
        "c": ours(threshold=0.5),
    }
    assert what_nvidia_ragas_ignores(load(tmp_path, {}, evaluators)) == [
        (
            "eval.evaluators.a: with nvidia-nat-ragas installed, nat eval hands it to that plugin, which drops judge and "
            "threshold; write _type: ragparity and backend: ragas"
        ),
    ]
