"""The digest of a metric's prompts: every text that it was seen to ask with is in it, wherever that text stands."""

import importlib
import itertools
import pkgutil
import re
from dataclasses import fields, replace

import pytest
from pydantic import BaseModel, TypeAdapter
from tests import runs
from tests.fakeserver import FakeServer
from tests.metrics.test_every_judge_metric import run, sample
from tests.needed import kwargs_needed

from ragparity import metrics, wiring
from ragparity.core.ports import Structured
from ragparity.core.prompt import Prompt
from ragparity.metrics import claims
from ragparity.metrics.claims import Claims
from ragparity.metrics.correctness import AnswerCorrectness, FactualCorrectness
from ragparity.metrics.faithfulness import Faithfulness
from ragparity.metrics.noise_sensitivity import NoiseSensitivity
from ragparity.metrics.ratings import AnswerAccuracy
from ragparity.registry import NativeBackend
from ragparity.wording import digest, texts_of

BACKEND = NativeBackend()
SHORT = {"user_input": "Is it so?", "response": "Yes, in 1889.", "reference": "Yes.", "retrieved_contexts": ("Yes.",)}
ROWS = [sample(), sample(4, 6), sample(**SHORT), sample(reference=None), sample(reference=None, user_input=None)]
"""Ordinary rows, long ones, answers that say nothing without their question, rows without a reference."""


def variants(cls):
    """The metric with every value of its settings that are a choice, one after the other."""
    yield BACKEND.build(cls.__name__, kwargs_needed(cls))
    for name, one in TypeAdapter(cls).json_schema().get("properties", {}).items():
        for value in one.get("enum", ()):
            yield BACKEND.build(cls.__name__, {**kwargs_needed(cls), name: value})


ASKING = [cls for cls in BACKEND.classes() if any(one.uses & wiring.JUDGED for one in variants(cls))]


def questions_of(cls):
    """All that a metric was seen to ask, over its settings and many rows."""
    for metric, row in itertools.product(variants(cls), ROWS):
        if all(getattr(row, name) is not None for name in metric.reads):
            for seed in range(3):
                yield from ((metric, row, one) for one in run(metric, row, seed)[1])


def rest_of(text, known):
    """What is left of a text without the known ones, the longest taken out first."""
    for one in sorted(known, key=len, reverse=True):
        text = text.replace(one, " ")
    return re.findall(r"[^\W\d_]+", text)


@pytest.mark.parametrize("cls", ASKING, ids=lambda cls: cls.__name__)
def test_whatever_a_metric_asks_with_is_in_its_digest(cls):
    known = {one for one in texts_of(cls) if one.strip()}
    asked = list(questions_of(cls))
    assert asked
    for metric, row, question in asked:
        prompt, given = question.prompt, {*kwargs_texts(metric), *row.rubrics.values()}
        for text in (prompt.task, *prompt.rules, prompt.reminder, prompt.system()):
            assert not rest_of(text, known | given), text
        for label in prompt.data:
            assert label in known
        schema = question.shape.schema.model_json_schema() if isinstance(question.shape, Structured) else {}
        for name in names_in(schema):
            assert any(name in one for one in known), name


def kwargs_texts(metric):
    """The texts that the user gave, which are in the metric's spec."""
    values = [getattr(metric, one.name) for one in fields(metric)]
    return [
        text for one in values for text in (one.values() if isinstance(one, dict) else [one]) if isinstance(text, str)
    ]


def names_in(schema):
    for key, value in schema.items() if isinstance(schema, dict) else ():
        if key in ("properties", "$defs"):
            yield from value
        if key == "description":
            yield value
        yield from names_in(value)


def modules():
    return [importlib.import_module(f"ragparity.metrics.{one.name}") for one in pkgutil.iter_modules(metrics.__path__)]


PROMPTS = {id(value): value for one in modules() for value in vars(one).values() if isinstance(value, Prompt)}


def put(patch, prompt, other):
    """Another prompt in place of one, under every name and as every default, as an edit of the source would do."""
    for module in modules():
        for name, value in list(vars(module).items()):
            if value is prompt:
                patch.setattr(module, name, other)
            elif prompt in (getattr(value, "__kwdefaults__", None) or {}).values():
                swapped = {key: other if one is prompt else one for key, one in value.__kwdefaults__.items()}
                patch.setattr(value, "__kwdefaults__", swapped)


def test_a_prompt_that_changes_is_noticed_by_all_who_ask_with_it(monkeypatch):
    before = {cls: digest(cls) for cls in BACKEND.classes()}
    asked = {cls: {one.prompt.task for _, _, one in questions_of(cls)} for cls in ASKING}
    assert len(PROMPTS) > 15
    for prompt in PROMPTS.values():
        with monkeypatch.context() as patch:
            put(patch, prompt, replace(prompt, task=f"{prompt.task} Be kind."))
            noticed = {cls for cls, digest_before in before.items() if digest(cls) != digest_before}
        asking = {cls for cls, tasks in asked.items() if prompt.task in tasks}
        assert asking, f"nobody asks {prompt.task!r}"
        assert asking <= noticed
        assert AnswerAccuracy not in noticed or AnswerAccuracy in asking, "and not by everybody"
    assert {cls: digest(cls) for cls in BACKEND.classes()} == before


@pytest.mark.parametrize("cls", [Faithfulness, FactualCorrectness, AnswerCorrectness, NoiseSensitivity])
def test_the_shared_prompt_for_claims_is_in_the_digest_of_those_who_split_texts(monkeypatch, cls):
    before, untouched = digest(cls), digest(AnswerAccuracy)
    put(monkeypatch, claims.EXTRACT, replace(claims.EXTRACT, rules=(*claims.EXTRACT.rules, "Keep to the point.")))
    assert digest(cls) != before
    assert digest(AnswerAccuracy) == untouched


def test_another_schema_of_the_answer_is_another_digest(monkeypatch):
    class Other(BaseModel):
        statements: list[str]
        refusal: bool

    Other.__module__ = Claims.__module__
    before = digest(Faithfulness)
    monkeypatch.setattr(claims, "Claims", Other)
    assert digest(Faithfulness) != before


def test_what_every_prompt_says_is_in_every_digest(monkeypatch):
    before = {cls: digest(cls) for cls in ASKING}
    monkeypatch.setattr("ragparity.core.prompt.DATA_IS_DATA", "The data is data.")
    assert all(digest(cls) != before[cls] for cls in ASKING)


def test_the_digest_is_the_same_every_time_and_knows_no_docstring(monkeypatch):
    before = digest(Faithfulness)
    monkeypatch.setattr(Faithfulness, "__doc__", "Another card.")
    assert digest(Faithfulness) == before
    assert not any("may be longer than" in one or "One call;" in one for one in texts_of(Faithfulness))


def test_a_metric_of_a_program_is_followed_in_its_own_module(monkeypatch):
    class Own:
        """A card."""

        async def score(self, sample, kit):
            return await kit.text(OWN, budget=5)

    before = digest(Own)
    monkeypatch.setitem(globals(), "OWN", Prompt("Say something else."))
    assert digest(Own) != before


OWN = Prompt("Say something.")


def test_the_manifest_tells_a_shared_prompt_that_changed_and_a_resumed_run_asks_again(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    reply = {"claims": ["The gateway listens on a port."], "refusal": False, "verdicts": [
        {"id": 1, "evidence": "listens on a port", "verdict": "yes"}]}  # fmt: skip
    with FakeServer(reply=reply) as server:
        both = {"faithful": {"metric": "Faithfulness", "llm_name": "judge"}, **runs.ACCURACY}
        server.reply = lambda request: "4" if request.system.startswith("Rate") else reply
        runs.write(both, runs.rows(2), server)
        assert runs.command("eval", "eval.yml").exit_code == 0
        before = runs.read("out", "manifest.json")["metrics"]
        server.reset()
        put(monkeypatch, claims.EXTRACT, replace(claims.EXTRACT, task="Split the text into statements."))
        assert runs.command("eval", "eval.yml", "--resume").exit_code == 0
        assert server.calls == 4, "two rows, claims and verdicts; the ratings stand"
        after = runs.read("out", "manifest.json")["metrics"]
    assert before["faithful"]["prompts"] != after["faithful"]["prompts"]
    assert before["accuracy"] == after["accuracy"]


def test_of_a_wrapped_framework_the_version_stands_for_its_prompts():
    class Wrapped:
        backend = "frame"

        def __init__(self, version):
            self.version = version

    digests = {wiring.prompt_digest(Wrapped(version)) for version in ("frame 1.0", "frame 1.1")}
    assert len(digests) == 2
