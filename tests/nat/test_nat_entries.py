"""What stands on an entry: the toolkit's keys and ours, wrong ones refused, several backends side by side."""

import json
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from nat.cli.type_registry import GlobalTypeRegistry
from nat.runtime.loader import load_config
from tests.fakeserver import FakeServer
from tests.nat.nateval import PORT, SIZE, eval_file, evaluate, items, judge_at, scores
from tests.toys import Toy, install

from ragparity import wiring
from ragparity.core.errors import MissingExtra

RAGAS = find_spec("ragas") is not None


def absent(monkeypatch, name):
    """Let one backend be a package that is not installed."""
    found = wiring.backend

    def backend(asked):
        if asked.casefold() == name:
            raise MissingExtra(f"{name} is not installed: pip install 'ragparity[{name}]', or set backend: native")
        return found(asked)

    monkeypatch.setattr(wiring, "backend", backend)


def refusal(**entry):
    eval_file({"x": {"metric": "ExactMatch", **entry}})
    with pytest.raises(ValueError, match="Invalid configuration") as told:
        load_config(Path("eval.yml"))
    return str(told.value)


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"lm_name": "judge"}, "lm_name: unknown key; did you mean llm_name?"),
        ({"retries": 3}, "retries: unknown key; did you mean judge.retries?"),
        ({"judge": {"retry": 3}}, "judge.retry: unknown key; did you mean retries?"),
        ({"policies": {"no_claim": "one"}}, "policies.no_claim: unknown key; did you mean no_claims?"),
        ({"reps": 0}, "reps: got 0; expected a whole number, 1 or more"),
        ({"metric": {"A": {}, "B": {}}}, "metric: 2 metrics (A, B) in one evaluator; expected one"),
        ({"backends": ["native"]}, "backends: unknown key; did you mean backend?"),
    ],
)
def test_a_wrong_key_or_value_is_refused_with_the_file(entry, line):
    assert line in refusal(**entry)


def test_every_key_of_the_incumbent_is_accepted():
    entry = {
        "_type": "ragas",
        "metric": {"ExactMatch": {"skip": False, "kwargs": {}}},
        "llm_name": "judge",
        "input_obj_field": "text",
        "enable_atif_evaluator": False,
        "do_auto_retry": True,
        "num_retries": 5,
        "retry_on_status_codes": [429, 500],
        "retry_on_errors": ["Too Many Requests"],
    }
    eval_file({"x": entry})
    config = load_config(Path("eval.yml"))
    assert config.eval.evaluators["x"].metric == entry["metric"]


def test_an_entry_of_the_incumbent_that_we_score_ourselves(monkeypatch):
    absent(monkeypatch, "ragas")
    shipped = {
        "accuracy": {"_type": "ragas", "metric": "AnswerAccuracy", "llm_name": "judge"},
        "relevance": {"_type": "ragas", "metric": {"ContextRelevance": {"skip": False}}, "llm_name": "judge"},
        "own": {"_type": "ragas", "metric": "AnswerAccuracy", "llm_name": "judge", "backend": "native"},
    }
    with FakeServer(reply="4") as server:
        eval_file(shipped, llms=judge_at(server))
        found = evaluate()
    for name in ("accuracy", "relevance"):
        errors = {item["error"] for item in found[name]["eval_output_items"]}
        assert errors == {"config: ragas is not installed: pip install 'ragparity[ragas]', or set backend: native"}
    assert found["own"]["average_score"] == 1.0


SHIPPED = {
    "accuracy": {"_type": "ragas", "metric": "AnswerAccuracy", "llm_name": "judge"},
    "groundedness": {
        "_type": "ragas",
        "metric": "ResponseGroundedness",
        "llm_name": "judge",
        "enable_atif_evaluator": False,
    },
    "relevance": {"_type": "ragas", "metric": {"ContextRelevance": {"skip": False}}, "llm_name": "judge"},
    "correctness": {
        "_type": "ragas",
        "metric": {"FactualCorrectness": {"kwargs": {"mode": "precision"}}},
        "llm_name": "roomy",
        "input_obj_field": "text",
    },
    "left_out": {"_type": "ragas", "metric": {"AnswerAccuracy": {"skip": True}}, "llm_name": "judge"},
}
"""The forms in which the toolkit's own eval files have `_type: ragas`: names, mappings, kwargs, skip, 8 tokens."""


@pytest.mark.skipif(not RAGAS, reason="needs the extra ragas")
def test_files_in_the_toolkits_own_forms_run_unchanged():
    def reply(request):
        return "2" if request.body["max_tokens"] <= 8 else None  # a rating; anything longer is the default answer

    with FakeServer(reply=reply, personality="nim") as server:
        nim = {"_type": "nim", "model_name": "judge-70b", "base_url": server.base_url, "api_key": "x"}
        llms = {"judge": {**nim, "max_tokens": 8}, "roomy": {**nim, "max_tokens": 2048}}
        eval_file(SHIPPED, llms=llms)
        found = evaluate()
    assert sorted(found) == ["accuracy", "correctness", "groundedness", "relevance"]
    for name, output in found.items():
        assert output["n_scored"] == 2, (name, output["eval_output_items"])
        assert output["backend"] == "ragas"


def test_a_type_may_be_written_with_its_package():
    eval_file({"x": {"_type": "ragparity.nat/ragparity", "metric": "ExactMatch"}})
    assert evaluate()["x"]["n_scored"] == 2


def test_the_effective_configuration_can_be_read_again():
    ndcg = {"metric": {"NDCG": {"kwargs": {"k": 3}}}, "judge": {"retries": 1}, "policies": {"no_claims": "one"}}
    eval_file({"x": ndcg})
    evaluate()
    content = yaml.safe_load(Path("out/config_effective.yml").read_text(encoding="utf-8"))
    del content["workflow"]  # the toolkit cannot read its own mark for "no workflow"
    Path("again.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    entry = load_config(Path("again.yml")).eval.evaluators["x"]
    assert (entry.metric, entry.judge, entry.policies) == (ndcg["metric"], ndcg["judge"], ndcg["policies"])


def test_settings_of_an_entry_change_its_scores():
    faith = {"metric": "Faithfulness", "llm_name": "offline"}
    evaluators = {"undefined": faith, "zero": faith | {"policies": {"blank_contexts": "zero"}}}
    eval_file(evaluators, rows=[PORT | {"contexts": ["", " "]}])
    found = evaluate()
    assert items(found["undefined"])["port"]["error"].startswith("undefined: blank_contexts")
    assert scores(found["zero"]) == {"port": 0.0}


# -- several backends


def test_backends_stand_side_by_side_with_mean_and_spread(monkeypatch):
    absent(monkeypatch, "elsewhere")
    cross = {"_type": "ragparity_crossvalidate", "metric": "Faithfulness", "llm_name": "offline"}
    eval_file({"cross": cross | {"backends": ["native", "elsewhere"]}})
    found = evaluate()["cross"]
    said = items(found)["port"]["reasoning"]
    assert said["scores"] == {"native": 1.0} and said["mean"] == 1.0
    assert said["spread"] is None, "one score has no spread"
    assert "elsewhere is not installed" in said["unscored"]["elsewhere"]
    assert said["by_backend"]["native"]["detail"]["claims"]
    assert found["n_scored"] == 2 and found["n_scored_by_all"] == 0
    assert found["average_score"] == found["by_backend"]["native"]["mean"]
    assert found["agreement"]["pairs"] == [] and "not installed" in found["agreement"]["left_out"]["elsewhere"]


@pytest.mark.skipif(not RAGAS, reason="needs the extra ragas")
def test_two_backends_that_both_score_have_a_spread():
    cross = {"_type": "ragparity_crossvalidate", "metric": "Faithfulness", "llm_name": "offline"}
    eval_file({"cross": cross | {"backends": ["native", "ragas"]}})
    found = evaluate()["cross"]
    for item in found["eval_output_items"]:
        one, other = (item["reasoning"]["scores"][name] for name in ("native", "ragas"))
        assert item["score"] == pytest.approx((one + other) / 2)
        assert item["reasoning"]["spread"] == pytest.approx(abs(one - other))
    assert found["n_scored_by_all"] == 2
    assert found["agreement"]["pairs"][0]["relation"] == "same"


def test_how_far_two_backends_agree_stands_beside_the_average(monkeypatch):
    install(monkeypatch, Toy("toy", {"port": 0.25, "size": 0.5}))
    cross = {"_type": "ragparity_crossvalidate", "metric": "Faithfulness", "llm_name": "offline"}
    eval_file({"cross": cross | {"backends": ["native", "toy"]}})
    (pair,) = evaluate()["cross"]["agreement"]["pairs"]
    assert (pair["a"], pair["b"], pair["relation"], pair["n"]) == ("native", "toy", "same", 2)
    assert "rows" not in pair and "share of the response's claims" in pair["because"]
    assert pair["why"]["ccc"].startswith("undefined: fewer than 3")


def test_without_named_backends_those_that_have_the_metric_are_compared():
    cross = {"_type": "ragparity_crossvalidate", "metric": "NDCG"}
    eval_file({"cross": cross}, rows=[PORT | {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}])
    found = evaluate()["cross"]
    assert found["by_backend"]["native"]["mean"] == 1.0
    assert scores(found) == {"port": 1.0}


def test_no_backend_that_scores_is_an_error_that_names_them_all(monkeypatch):
    absent(monkeypatch, "elsewhere")
    cross = {"_type": "ragparity_crossvalidate", "metric": "AnswerAccuracy", "llm_name": "offline"}
    eval_file({"cross": cross | {"backends": ["native", "elsewhere"]}}, rows=[SIZE | {"answer": ""}])
    (item,) = evaluate()["cross"]["eval_output_items"]
    assert item["score"] is None
    assert item["error"].startswith(
        "native: undefined: missing:reference; elsewhere: config: elsewhere is not installed"
    )


# -- the name `ragas`


def test_both_of_our_types_and_the_free_name_are_registered_once():
    known = [one.local_name for one in GlobalTypeRegistry.get().get_registered_evaluators()]
    assert [known.count(name) for name in ("ragparity", "ragparity_crossvalidate", "ragas")] == [1, 1, 1]


INCUMBENT = """
from nat.cli.register_workflow import register_evaluator
from nat.data_models.evaluator import EvaluatorBaseConfig


class Config(EvaluatorBaseConfig, name="ragas"):
    metric: str


@register_evaluator(config_type=Config)
async def evaluator(config, builder):
    yield None
"""


@pytest.mark.parametrize(("take_over", "owner"), [("", "nat.plugins.ragas/ragas"), ("ragas", "ragparity.nat/ragas")])
def test_the_name_stays_with_an_installed_incumbent_unless_it_is_taken_over(tmp_path, take_over, owner):
    plugin = tmp_path / "site/nat/plugins/ragas"
    plugin.mkdir(parents=True)
    (plugin / "register.py").write_text(textwrap.dedent(INCUMBENT), encoding="utf-8")
    about = tmp_path / "site/stand_in-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[nat.components]\nz = nat.plugins.ragas.register\n", encoding="utf-8")
    script = (
        "import json\nfrom nat.cli.type_registry import GlobalTypeRegistry\n"
        "from nat.runtime.loader import PluginTypes, discover_and_register_plugins\n"
        "discover_and_register_plugins(PluginTypes.CONFIG_OBJECT)\n"
        "known = [one.full_type for one in GlobalTypeRegistry.get().get_registered_evaluators()]\n"
        "print(json.dumps(known))"
    )
    environment = {
        "PYTHONPATH": str(tmp_path / "site"),
        "RAGPARITY_TAKE_OVER": take_over,
        "PATH": "",
        "HOME": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    known = json.loads(done.stdout.splitlines()[-1])
    assert [one for one in known if one.endswith("/ragas")] == [owner]
    assert "ragparity.nat/ragparity" in known
