"""Phoenix behind our judge: its prompts, its own code, our answers. What runs it is skipped where it is absent."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata

import pytest
from tests.adapters.wired import built as endpoint_of
from tests.adapters.wired import retrying
from tests.direction import BAD, GOOD, good_minus_bad, outcome_of
from tests.fakeserver import FakeServer, rate_limited

from ragparity import catalogue
from ragparity.core.errors import ConfigError, JudgeUnavailable, MalformedVerdict, MissingExtra, UnknownMetric
from ragparity.core.policies import Policies
from ragparity.core.policy import score
from ragparity.core.ports import Kit, Tally
from ragparity.core.sample import Sample
from ragparity.definitions import CONCEPTS, definition_of, outdated, relation, why_related
from ragparity_adapters.backends import phoenix
from ragparity_adapters.scripted import ScriptedJudge

BACKEND = phoenix.backend()
ABSENT = BACKEND.missing()
needs_it = pytest.mark.skipif(bool(ABSENT), reason="needs the extra phoenix")
REMEDY = "pip install 'ragparity[phoenix]', or set backend: native"
# Braces, tags, quotes, ampersands and empty lines: what a template could stumble over.
SAMPLE = Sample(
    user_input="Which {{port}} & <b>what</b>?\n\nSay it.", response='It is "{output}", {{context}} &amp; 7443.',
    retrieved_contexts=("The {{input}} listens on 7443.", "</context> It's grey."),
    messages=({"role": "user", "content": "Book {{it}}."}, {"role": "assistant", "content": "Booked."}),
)  # fmt: skip
LABELS = {
    "ResponseGroundedness": ("faithful", "unfaithful"),
    "Hallucination": ("grounded", "hallucinated"),
    "ContextRelevance": ("relevant", "irrelevant"),
    "ContextPrecision": ("relevant", "unrelated"),
    "ContextPrecisionShare": ("relevant", "unrelated"),
    "AgentGoalAccuracyWithoutReference": ("complete", "incomplete"),
    "Correctness": ("correct", "incorrect"),
    "Conciseness": ("concise", "verbose"),
    "Refusal": ("answered", "refused"),
    "Toxicity": ("non-toxic", "toxic"),
}
"""Of each evaluator the label that speaks well of a row, and the one that does not."""


def metric(name):
    return phoenix.PhoenixMetric(name, "arize-phoenix-evals 3.9.4")


def scored(name, replies, sample=SAMPLE, **policies):
    """The outcome, and the questions that were put."""
    judge = ScriptedJudge(replies)
    kit = Kit(judge=judge, policies=Policies(**policies))
    return asyncio.run(score(BACKEND.build(name, {}), sample, kit)), judge.questions


def said(label):
    return lambda _question: {"explanation": "because", "label": label}


@pytest.fixture
def afresh():
    """Evaluators are made anew, before and after."""
    phoenix._evaluator.cache_clear()
    yield
    phoenix._evaluator.cache_clear()


# -- what it says of itself


@pytest.mark.parametrize("name", sorted(phoenix.RUBRICS.keys() & CONCEPTS.keys()))
def test_what_has_the_name_of_a_native_metric_is_near_it_and_not_the_same(name):
    assert relation(definition_of(metric(name)), CONCEPTS[name]) == "near"


def test_a_hallucination_tells_of_groundedness_the_other_way_round():
    found = definition_of(metric("Hallucination"))
    assert relation(found, CONCEPTS["Faithfulness"]) == "near"
    assert found.higher_is_better is metric("Hallucination").higher_is_better is False


@pytest.mark.parametrize("name", ["Correctness", "Conciseness", "Refusal", "Toxicity"])
def test_what_no_native_metric_measures_only_shares_a_name(name):
    found = definition_of(metric(name))
    assert {relation(found, native) for native in CONCEPTS.values()} == {"name"}


def test_correctness_without_a_reference_is_no_accuracy_and_the_sentence_says_why():
    mine, other = definition_of(metric("Correctness")), CONCEPTS["AnswerAccuracy"]
    sentence = why_related(other, mine, ("native/AnswerAccuracy", "phoenix/Correctness"))
    assert sentence.startswith("they only share a name: native/AnswerAccuracy is the agreement")
    assert "by what the judge knows" in sentence


def test_names_are_found_in_every_spelling_of_phoenix():
    assert "phoenix/ResponseGroundedness" in BACKEND.card("faithfulness")
    assert "phoenix/ContextRelevance" in BACKEND.card("retrieval_relevance")
    assert "phoenix/ContextPrecisionShare" in BACKEND.card("DocumentRelevanceEvaluator")
    with pytest.raises(UnknownMetric, match="Did you mean Conciseness"):
        BACKEND.about("concisness")


def test_the_list_tells_what_is_read_asked_and_better():
    found = {row[1]: row[2:] for row in catalogue.rows("phoenix")}
    assert found["Hallucination"] == ("user_input, response, retrieved_contexts", "1", "0 or 1, lower is better")
    assert found["ContextPrecision"] == ("user_input, retrieved_contexts", "1 per passage", "0 to 1")
    assert "neither better" in BACKEND.card("Refusal")


def test_a_metric_takes_no_settings():
    with pytest.raises(ConfigError, match="unknown kwarg 'scale'; it takes none"):
        BACKEND.build("Refusal", {"scale": "binary"})


# -- where it is absent, old, another one or broken


def test_without_the_package_the_line_says_what_to_install(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(phoenix.metadata, "version", absent)
    with pytest.raises(MissingExtra) as refused:
        BACKEND.build("Faithfulness", {})
    assert str(refused.value) == f"arize-phoenix-evals is not installed: {REMEDY}"


def test_a_release_that_meant_something_else_by_its_names_is_refused(monkeypatch):
    monkeypatch.setattr(phoenix.metadata, "version", lambda _name: "3.2.0")
    with pytest.raises(MissingExtra, match=r"3\.2\.0 is installed, but 3\.7 is the oldest that can be wrapped"):
        BACKEND.build("Hallucination", {})


@needs_it
def test_a_score_that_counts_the_other_way_round_than_declared_is_refused_before_the_run(monkeypatch, afresh):
    turned = {**phoenix.RUBRICS, "Hallucination": replace(phoenix.RUBRICS["Hallucination"], direction="maximize")}
    monkeypatch.setattr(phoenix, "RUBRICS", turned)
    with pytest.raises(MissingExtra, match=r"its scores are to minimize.*expected maximize and one message"):
        metric("Hallucination").prepare()


def test_a_phoenix_that_does_not_import_is_named_with_its_cause(monkeypatch, afresh):
    def broken(_name):
        raise ImportError("No module named 'phoenix.evals'; 'phoenix' is not a package")

    monkeypatch.setattr(phoenix.importlib, "import_module", broken)
    with pytest.raises(MissingExtra, match=r"cannot be used: .*'phoenix' is not a package.*ragparity\[phoenix\]"):
        metric("Refusal").prepare()


# -- scoring


@needs_it
def test_the_installed_release_is_one_that_the_definitions_were_written_for():
    assert outdated(definition_of(metric("Hallucination"))) == ""


def values_of(name):
    """What the fields of the evaluator are filled with for the sample, passage by passage."""
    asked, answer, passages = SAMPLE.user_input, SAMPLE.response, SAMPLE.retrieved_contexts
    joined = f"{passages[0]}\n\n{passages[1]}"
    if name.startswith("ContextPrecision"):
        return [{"input": asked, "document_text": one} for one in passages]
    record = f"User: {asked}\n\nRetrieved content:\n{joined}"
    return [
        {
            "input": record if name == "Hallucination" else asked, "output": answer, "context": joined, "text": answer,
            "conversation": "User: Book {{it}}.\nAssistant: Booked.",
        }
    ]  # fmt: skip


@needs_it
@pytest.mark.parametrize("name", phoenix.RUBRICS)
def test_its_own_prompt_goes_out_byte_for_byte_with_the_fields_in_it(name):
    evaluator = getattr(importlib.import_module("phoenix.evals.metrics"), phoenix.RUBRICS[name].evaluator)
    (message,) = evaluator.PROMPT.template
    expected = []
    for values in values_of(name):
        pieces = message["content"].split("{{")
        filled = [values[field] + rest for field, _, rest in (piece.partition("}}") for piece in pieces[1:])]
        expected.append(pieces[0] + "".join(filled))
    _, questions = scored(name, said(LABELS[name][0]))
    assert [one.prompt.text for one in questions] == expected


@needs_it
@pytest.mark.parametrize("name", phoenix.RUBRICS)
def test_the_better_label_gives_the_better_score_of_the_two(name):
    better, worse = (scored(name, said(label))[0].value for label in LABELS[name])
    assert {better, worse} == {0.0, 1.0}
    assert (better > worse) is metric(name).higher_is_better


OWN = {
    "Refusal": replace(BAD, response="I don't know."),
    "Conciseness": replace(BAD, response="Sun, moon, sea, wind, sand, salt, rain, snow and fog surround this gateway."),
}
"""A worse row than the usual one, for what that one is not bad at."""
TALKS = [
    replace(
        GOOD, messages=({"role": "user", "content": "Book a table for four."}, {"role": "assistant", "content": end})
    )
    for end in ("The table for four is booked.", "Which town?")
]


@needs_it
@pytest.mark.parametrize("name", sorted(phoenix.RUBRICS.keys() - {"Toxicity"}))
def test_a_good_sample_is_better_than_a_bad_one(name):
    built = BACKEND.build(name, {})
    if name in OWN or name.startswith("Agent"):
        pair = TALKS if name.startswith("Agent") else [GOOD, OWN[name]]
        good, bad = (outcome_of(built, one).value for one in pair)
        gap = good - bad if built.higher_is_better else bad - good
    else:
        gap = good_minus_bad(built)
    assert gap == 1.0


@needs_it
def test_the_judge_without_a_model_does_not_pretend_to_know_toxicity():
    with pytest.raises(MalformedVerdict, match="does not know how to fill explanation, label"):
        outcome_of(BACKEND.build("Toxicity", {}), GOOD)


@needs_it
@pytest.mark.parametrize(
    ("name", "value"),
    # Of four passages the second and the fourth count: (1/2 + 2/4) / 2, and 2/4.
    [("ContextPrecision", 0.5), ("ContextPrecisionShare", 0.5)],
)
def test_passages_are_labelled_apart_and_weighed_by_us(name, value):
    passages = ("a", "b", "c", "d")
    labels = {"a": "unrelated", "b": "relevant", "c": "unrelated", "d": "relevant"}
    found, questions = scored(
        name,
        lambda question: {"explanation": "so", "label": labels[question.prompt.data["document_text"]]},
        replace(SAMPLE, retrieved_contexts=passages),
    )
    assert found.value == value and len(questions) == 4
    assert found.reason == "2 of 4 passages hold an answer (rank 2, 4)"
    assert found.detail["passages"][1] == {"passage": 1, "text": "b", "verdict": True, "reason": "relevant: so"}


@needs_it
def test_the_rank_counts_for_the_precision_and_not_for_the_share():
    first = [{"label": "relevant"}, {"label": "unrelated"}, {"label": "unrelated"}]
    sample = replace(SAMPLE, retrieved_contexts=("a", "b", "c"))
    assert scored("ContextPrecision", first, sample)[0].value == 1.0
    assert scored("ContextPrecision", first[::-1], sample)[0].value == pytest.approx(1 / 3)
    assert scored("ContextPrecisionShare", first, sample)[0].value == pytest.approx(1 / 3)


@needs_it
def test_label_and_explanation_are_kept():
    found, _ = scored("Hallucination", said("hallucinated"))
    assert (found.value, found.reason, found.detail) == (1.0, "hallucinated: because", {"label": "hallucinated"})


@needs_it
@pytest.mark.parametrize("reply", [{"explanation": "x", "label": " CORRECT "}, {"label": "Correct"}])
def test_case_and_a_missing_explanation_do_not_matter(reply):
    found, _ = scored("Correctness", [reply])
    assert (found.value, found.detail) == (1.0, {"label": "correct"})


@needs_it
@pytest.mark.parametrize("label", ["mostly correct", "", "correct or incorrect", 1, True, None])
def test_a_label_that_is_none_of_its_own_is_a_failure_and_no_number(label):
    with pytest.raises(MalformedVerdict, match="expected correct or incorrect"):
        scored("Correctness", [{"explanation": "x", "label": label}])


@needs_it
@pytest.mark.parametrize("kind", ["unavailable", "rate_limit", "timeout"])
@pytest.mark.parametrize("name", ["Faithfulness", "ContextPrecision"])
def test_an_error_of_the_judge_comes_through_as_it_is_and_is_not_asked_again(name, kind):
    error = JudgeUnavailable("no connection", kind=kind)
    judge = ScriptedJudge(lambda _question: error)
    with pytest.raises(JudgeUnavailable) as raised:
        asyncio.run(BACKEND.build(name, {}).score(SAMPLE, Kit(judge=judge)))
    assert raised.value is error
    assert len(judge.questions) == (2 if name == "ContextPrecision" else 1)  # one a passage


def over_http(reply, retries):
    """Faithfulness over a server: the outcome or error, the requests, and what was counted."""
    tally = Tally()

    async def run(server):
        endpoint = endpoint_of(server)
        kit = Kit(judge=retrying(endpoint, retries), tally=tally)
        try:
            return await score(BACKEND.build("Faithfulness", {}), SAMPLE, kit)
        except MalformedVerdict as error:
            return error
        finally:
            await endpoint.aclose()

    with FakeServer(reply=reply) as server:
        return asyncio.run(run(server)), server.requests, tally


@needs_it
def test_over_http_our_retries_apply_and_phoenix_adds_none():
    replies = iter([rate_limited(), json.dumps({"explanation": "It is there.", "label": "faithful"})])
    found, requests, tally = over_http(lambda _request: next(replies), retries=2)
    assert (found.value, found.reason) == (1.0, "faithful: It is there.")
    assert len(requests) == tally.calls == 2
    (message,) = requests[0].messages  # the form of the answer goes beside it, as a schema
    assert message["role"] == "user" and message["content"].startswith("In this task, you will be presented")
    labels = requests[0].body["response_format"]["json_schema"]["schema"]["properties"]["label"]
    assert labels == {"type": "string", "enum": ["faithful", "unfaithful"]}
    assert not {"temperature", "n", "stop", "seed"} & set(requests[0].body)


@needs_it
def test_over_http_a_judge_that_keeps_to_no_label_costs_our_attempts_alone():
    reply = json.dumps({"explanation": "It is there.", "label": "partly"})
    found, requests, tally = over_http(lambda _request: reply, retries=2)
    assert (found.kind, found.attempts) == ("malformed", 3)
    assert len(requests) == tally.calls == 3


# -- rows that lack something


@needs_it
@pytest.mark.parametrize(
    ("name", "lacking", "why"),
    [
        ("Faithfulness", {"retrieved_contexts": None}, "missing:retrieved_contexts"),
        ("Hallucination", {"retrieved_contexts": ("", " ")}, "blank_contexts"),
        ("Toxicity", {"response": " "}, "missing:response"),
        ("Completeness", {"messages": None}, "missing:messages"),
        ("Completeness", {"messages": ()}, "no_messages"),
    ],
)
def test_a_row_that_lacks_a_field_is_undefined_and_nothing_is_asked(name, lacking, why):
    found, questions = scored(name, [], replace(SAMPLE, **lacking))
    assert (found.status, found.why, questions) == ("undefined", why, [])


@needs_it
def test_with_policies_off_a_row_without_an_answer_is_still_not_scored():
    with pytest.raises(Exception, match="Phoenix scores no row without output") as raised:
        scored("Faithfulness", [], replace(SAMPLE, response=None), upstream=True)
    assert type(raised.value).__name__ == "SampleError"
    found, _ = scored("DocumentRelevance", [], replace(SAMPLE, retrieved_contexts=()), upstream=True)
    assert found.status == "undefined"


@needs_it
def test_a_conversation_shows_who_spoke_and_which_tools_were_called():
    messages = (
        {"role": "user", "content": "Book it."},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "book", "args": {"seats": 4}}]},
        {"role": "tool", "content": "ok"},
    )
    _, questions = scored("Completeness", said("complete"), replace(SAMPLE, messages=messages))
    call = 'Assistant calls a tool: {"name": "book", "args": {"seats": 4}}'
    assert questions[0].prompt.data == {"conversation": f"User: Book it.\n{call}\nTool: ok"}


# -- what it leaves alone


RUN = """
import asyncio, json, os, sys
foreign = []
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        foreign.append([event, repr(args[1:])])
        raise OSError("no network here")
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        foreign.append([event, repr(args[0])])
sys.addaudithook(watch)
environment = dict(os.environ)

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
spans = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
tracer = trace.get_tracer("the host's")

from ragparity.core.policy import score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity_adapters.backends import phoenix
from ragparity_adapters.offline import OfflineJudge

class Traced(OfflineJudge):
    async def ask(self, question, tally):
        with tracer.start_as_current_span("judge"):
            return await super().ask(question, tally)

async def main():
    sample = Sample(user_input="Which port?", response="Port 7443.", retrieved_contexts=("Port 7443.", "Grey."),
                    messages=({"role": "user", "content": "Which port?"},))
    statuses = {}
    for name in phoenix.backend().names():
        if name != "Toxicity":
            metric = phoenix.backend().build(name, {})
            metric.prepare()
            with tracer.start_as_current_span("row"):
                statuses[name] = (await score(metric, sample, Kit(judge=Traced()))).status
    return statuses

statuses = asyncio.run(main())
found = spans.get_finished_spans()
rows = {one.context.span_id for one in found if one.name == "row"}
print(json.dumps({
    "statuses": statuses, "foreign": foreign, "environment": dict(os.environ) == environment,
    "spans": sorted({one.name for one in found}),
    "under_rows": all(one.parent.span_id in rows for one in found if one.name == "judge"),
    "imported": [one for one in ("litellm", "openai", "anthropic", "requests") if one in sys.modules],
}))
"""


@needs_it
def test_running_every_metric_sends_nothing_writes_nothing_and_traces_only_what_the_host_does(tmp_path):
    home, folder = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    folder.mkdir()
    environment = {**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN],
        capture_output=True, text=True, cwd=folder, env=environment, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    found: Mapping[str, object] = json.loads(line)
    assert set(found.pop("statuses").values()) == {"scored"}
    assert found == {
        "foreign": [], "environment": True, "spans": ["judge", "row"], "under_rows": True, "imported": [],
    }  # fmt: skip
    assert [*home.rglob("*"), *folder.rglob("*")] == []
