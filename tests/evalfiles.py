"""Eval files for the tests: written, loaded, and the lines of their problems."""

from __future__ import annotations

import pytest
import yaml

from ragparity.config import load_eval_file
from ragparity.core.errors import ConfigError


def written(tmp_path, text):
    path = tmp_path / "eval.yml"
    path.write_text(
        text
        if isinstance(text, str)
        else yaml.dump(text, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False),
        encoding="utf-8",
    )
    return path


def load(tmp_path, text, *overrides):
    return load_eval_file(written(tmp_path, text), overrides)


def lines_of(tmp_path, text, *overrides):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, *overrides)
    return str(caught.value).split("\n")


def evaluator(tmp_path, entry, **top):
    return load(tmp_path, {**top, "eval": {"evaluators": {"x": entry}}}).evaluators["x"]


def evaluator_lines(tmp_path, entry):
    return lines_of(tmp_path, {"eval": {"evaluators": {"x": entry}}})


def ours(**more):
    return {"_type": "ragparity", "metric": "Faithfulness", **more}


FULL = """
llms:
  judge:
    _type: openai
    model_name: gpt-4o-mini
    base_url: http://localhost:8000/v1
    api_key: local-and-harmless
    temperature: 0
    max_tokens: 8
embedders:
  emb: {_type: openai, model_name: text-embedding-3-small}
eval:
  general:
    output_dir: ./out
    max_concurrency: 16
    dataset:
      _type: jsonl
      file_path: rows.jsonl
      structure: {question_key: question, answer_key: ground_truth, generated_answer_key: answer}
    ragparity:
      backend: native
      fields: {}
      judges: {judge: {reasoning: false, context_window: 8192, structured: auto, price: {input_per_1m: 0.15, output_per_1m: 0.60}}}
      cache: {path: .cache/judge.sqlite, mode: off}
      save: {samples: true, calls: failed}
      gate: {faithfulness: {min_mean: 0.8, max_failed: 0, min_coverage: null, max_drop: 0.02}}
      baseline: null
  evaluators:
    faithfulness:
      _type: ragparity
      metric: Faithfulness
      backend: native
      llm_name: judge
      embedder_name: emb
      input_obj_field: null
      fields: {retrieved_contexts: 'outputs.docs[].body'}
      judge: {output: auto, max_tokens: null, temperature: null, timeout_s: 60, retries: 3,
              reasoning: null, context_window: null, structured: auto, price: null, language: null, prompt: null}
      reps: 1
      threshold: null
      policies: {no_claims: undefined, blank_contexts: undefined, unknown_verdict: unsupported, references: best, one_rating: failed, upstream: false}
    agreement:
      _type: ragparity_crossvalidate
      metric: Faithfulness
      backends: [native, ragas, ragas_legacy]
      llm_name: judge
"""
