"""DeepEval behind our judge: how answers are read, errors, and what importing and running it leaves alone."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
from tests.adapters.backends.deepeval_world import BACKEND, NO, SAMPLE, YES, needs_it, run
from tests.adapters.wired import built as endpoint_of
from tests.fakeserver import FakeServer

from ragparity.core.errors import (
    ConfigError,
    JudgeRejected,
    JudgeUnavailable,
    MalformedVerdict,
    MissingExtra,
    SampleError,
)
from ragparity.core.policy import score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity_adapters.backends import _deepeval_import as importing
from ragparity_adapters.backends._deepeval_catalog import ENTRIES
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge
from ragparity_adapters.scripted import ScriptedJudge

# -- answers


@needs_it
def test_verdicts_are_read_as_everywhere():
    words = [{"reason": None, "verdict": word} for word in ("Yes.", "no, it says 9000", "cannot tell", "Borderline")]
    found, _ = run("Faithfulness", {"claims": list("abcd"), "truths": ["t"], "verdicts": [words]})
    assert [one["verdict"] for one in found.detail["claims"]] == [True, False, False, False]
    assert ["said" in one for one in found.detail["claims"]] == [False, False, True, True]


@needs_it
@pytest.mark.parametrize("given", [(YES,), (YES, YES, YES)])
def test_more_or_fewer_verdicts_than_claims_are_asked_again_and_give_no_score(given):
    with pytest.raises(MalformedVerdict, match=f"there are {len(given)} verdicts; give 2, one for each"):
        run("Faithfulness", {"claims": ["a", "b"], "truths": ["t"], "verdicts": [given]})
    with pytest.raises(MalformedVerdict, match="give 3"):
        run("ContextPrecision", {"verdicts": [(YES,)]})


# -- errors


@needs_it
@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize(
    "error",
    [
        JudgeUnavailable("no connection"),
        JudgeRejected("this model's maximum context length is 8192 tokens", kind="context_too_long"),
    ],
    ids=["unavailable", "too_long"],
)
def test_an_error_of_the_judge_comes_through_as_it_is(name, error):
    """DeepEval knows an overlong prompt by its wording, and would raise an error of its own."""
    judge = ScriptedJudge(lambda _question: error)
    with pytest.raises(type(error)) as raised:
        asyncio.run(BACKEND.build(name, {}).score(SAMPLE, Kit(judge=judge)))
    assert raised.value is error and error.detail["class"] == ENTRIES[name].class_name


@needs_it
def test_after_a_failure_nothing_else_is_asked_and_what_is_under_way_is_waited_for():
    came = []

    class Slow:
        identity = "slow"

        async def ask(self, question, tally):
            (name,) = question.shape.schema.model_fields
            if name == "claims":
                raise JudgeUnavailable("no connection")
            for _ in range(5):
                await asyncio.sleep(0)
            came.append(name)
            return await ScriptedJudge([{name: ["t"]}]).ask(question, tally)

    async def all_done():
        with pytest.raises(JudgeUnavailable):
            await BACKEND.build("Faithfulness", {}).score(SAMPLE, Kit(judge=Slow()))
        return list(came)

    assert asyncio.run(all_done()) == ["truths"]


@needs_it
def test_a_wrong_schema_is_no_reason_to_ask_without_it():
    """DeepEval's own model puts a question again without a schema after a TypeError."""
    asked = []

    def broken(question):
        asked.append(question)
        raise TypeError("a bug")

    with pytest.raises(SampleError, match="HallucinationMetric of DeepEval cannot score this row: TypeError: a bug"):
        asyncio.run(BACKEND.build("Hallucination", {}).score(SAMPLE, Kit(judge=ScriptedJudge(broken))))
    assert len(asked) == 1


@needs_it
def test_an_image_that_a_text_names_is_not_opened_and_the_text_is_judged_as_it_stands(tmp_path):
    named = f"[DEEPEVAL:IMAGE:{tmp_path / 'absent.png'}] [DEEPEVAL:PDF:http://127.0.0.1:9/x.pdf]"
    sample = Sample(user_input=named, response=named, retrieved_contexts=(named,))
    found, judge = run("Hallucination", {"verdicts": [(YES,)]}, sample=sample)
    assert found.value == 1.0 and named in judge.questions[0].prompt.text


# -- over HTTP


@needs_it
def test_a_server_sees_the_prompts_of_deepeval_and_nothing_that_nobody_set():
    async def over(server):
        endpoint = endpoint_of(server)
        try:
            return await score(
                BACKEND.build("Faithfulness", {}), SAMPLE, Kit(judge=LangChainJudge(endpoint, JudgeOptions()))
            )
        finally:
            await endpoint.aclose()

    with FakeServer() as server:
        found = asyncio.run(over(server))
    assert found.value == 1.0  # the server finds one claim, and says yes to it
    assert len(server.requests) == 3
    for request in server.requests:
        assert request.messages[-1]["content"].startswith("Based on the given")
        assert not {"temperature", "n", "stop", "seed"} & set(request.body)


# -- what is left alone

RUN = """
import asyncio, json, os, signal, socket, sys
def watch(event, args):
    if event == "socket.connect" or (event == "socket.getaddrinfo" and args[0] not in (None, "127.0.0.1", "localhost")):
        print("FOREIGN", event, args, file=sys.stderr)
        raise OSError("no connection")
sys.addaudithook(watch)
environment = dict(os.environ)
machinery = {name: getattr(asyncio, name) for name in dir(asyncio)}
handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]

from ragparity import evaluate
from ragparity_adapters.backends import deepeval

names = deepeval.backend().names()
rows = [{"question": "How long?", "answer": f"Thirty days, {n}.", "ground_truth": "Thirty days.",
         "contexts": ["Returns take thirty days."]} for n in range(10)]
results = evaluate(rows, metrics=[f"deepeval/{name}" for name in names], judge="offline")
print(json.dumps({
    "status": sorted({one.status for one in results.records}),
    "records": len(results.records),
    "environment": {name: one for name, one in os.environ.items() if environment.get(name) != one},
    "gone": [name for name in environment if name not in os.environ],
    "asyncio": [name for name, one in machinery.items() if getattr(asyncio, name) is not one],
    "handlers": handlers == [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)],
    "telemetry": "posthog" in sys.modules,
}))
"""


@needs_it
def test_running_every_metric_sends_nothing_and_leaves_files_environment_and_asyncio_alone(tmp_path):
    """More than 50 scores: so many DeepEval counts before it sends what it counted; the rest at the end."""
    home, work = tmp_path / "home", tmp_path / "work"
    (work / ".deepeval").mkdir(parents=True)
    home.mkdir()
    files = {work / ".env": "OPENAI_API_KEY=from-a-file\nAPP_ENV=test\n"}
    files[work / ".deepeval/.deepeval"] = json.dumps({"confident_api_key": "from-a-file", "USE_LOCAL_MODEL": "YES"})
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("DEEPEVAL", "OPENAI", "CONFIDENT"))
    }
    environment = {**kept, "HOME": str(home), "DEEPEVAL_EVAL_MODE": "hybrid"}
    environment |= {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "0",
        "DEEPEVAL_UPDATE_WARNING_OPT_IN": "1",
        "CONFIDENT_TRACE_INTERNAL": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, cwd=work, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert (found["status"], found["records"]) == (["scored"], 60)
    assert found["environment"] == importing.QUIET and found["gone"] == []
    assert found["asyncio"] == [] and found["handlers"] and not found["telemetry"]
    assert {path: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()} == files


@needs_it
def test_a_trace_of_the_callers_own_does_not_hold_the_questions(monkeypatch):
    importing.load()
    from deepeval.tracing import current_span_context, observe

    monkeypatch.setenv("CONFIDENT_TRACING_ENABLED", "NO")  # nothing is sent when the trace ends

    @observe()
    async def traced():
        await BACKEND.build("Hallucination", {}).score(SAMPLE, Kit(judge=ScriptedJudge([{"verdicts": [YES, NO, YES]}])))
        return list(current_span_context.get().children)

    assert asyncio.run(traced()) == []


@needs_it
def test_a_broken_package_is_one_line_with_the_real_cause(monkeypatch):
    def broken(name):
        raise ImportError(f"no parking in {name}")

    monkeypatch.setattr(importing, "_deepeval", None)
    monkeypatch.setattr(importing.importlib, "import_module", broken)
    with pytest.raises(
        MissingExtra, match=r"does not import: ImportError: no parking in deepeval\.metrics: pip install"
    ):
        BACKEND.build("Faithfulness", {}).prepare()


@needs_it
def test_a_release_that_takes_other_arguments_is_told_before_the_first_row(monkeypatch):
    class Other:
        def __init__(self, model):
            pass

    monkeypatch.setattr(importing.load().metrics, "HallucinationMetric", Other)
    with pytest.raises(
        ConfigError, match=r"metric Hallucination: DeepEval refuses it: TypeError: .* unexpected keyword"
    ):
        BACKEND.build("Hallucination", {}).prepare()


@needs_it
def test_a_newer_release_than_the_tried_ones_is_remarked_on(monkeypatch):
    monkeypatch.setattr(importing, "_deepeval", None)
    monkeypatch.setattr(importing.metadata, "version", lambda _name: "4.9.0")
    with pytest.warns(UserWarning, match=r"DeepEval 4\.9\.0 is newer than the tested releases \(below 4\.4\)"):
        importing.load()
