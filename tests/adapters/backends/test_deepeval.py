"""DeepEval behind our judge: its prompts, its own code, our answers. What runs it is skipped where it is absent."""

import asyncio
import json
import os
import subprocess
import sys
from importlib import metadata

import pytest
from tests.adapters.wired import built as endpoint_of
from tests.direction import good_minus_bad
from tests.fakeserver import FakeServer

from ragparity import catalogue, crossvalidate
from ragparity.core.errors import (
    ConfigError,
    JudgeRejected,
    JudgeUnavailable,
    MalformedVerdict,
    MissingExtra,
    SampleError,
    UnknownMetric,
)
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.policy import Policies, score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity.definitions import CONCEPTS, definition_of, relation
from ragparity_adapters.backends import _deepeval_import as importing
from ragparity_adapters.backends import deepeval
from ragparity_adapters.backends._deepeval_catalog import ENTRIES
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge
from ragparity_adapters.scripted import ScriptedJudge

MISSING = importing.missing()
needs_it = pytest.mark.skipif(bool(MISSING), reason=f"needs the extra deepeval: {MISSING}")
BACKEND = deepeval.backend()
SAMPLE = Sample(
    user_input="Which {port}?", response='Port 7443 "it" is. It is red.', reference="7443. It is grey.",
    retrieved_contexts=("The gateway listens on 7443.", "It is grey.", "Apples ripen."),
)  # fmt: skip
YES, NO, BORDERLINE = ({"reason": f"why {word}", "verdict": word} for word in ("yes", "no", "borderline"))


def metric(name, **settings):
    return deepeval.DeepEvalMetric(name, "deepeval 4.3.1", ENTRIES[name].settings(**settings))


def verdicts(*judged):
    return {"verdicts": list(judged)}


def by_fields(replies):
    """A judge that answers by the field that is wanted; the verdicts one after the other."""
    given = iter(replies.get("verdicts", ()))

    def say(question):
        (name,) = question.shape.schema.model_fields
        if name == "verdicts":
            return verdicts(*next(given))
        reply = replies[name]
        return reply if isinstance(reply, Exception) else {name: reply}

    return ScriptedJudge(say)


def run(name, replies, *, sample=SAMPLE, policies=None, **settings):
    judge = by_fields(replies)
    found = asyncio.run(score(BACKEND.build(name, settings), sample, Kit(judge=judge, policies=policies or Policies())))
    return found, judge


# -- without the package


@pytest.mark.parametrize(
    ("name", "related"),
    [
        ("Faithfulness", "near"),  # judged by truths drawn from the contexts, not by the contexts
        ("AnswerRelevancy", "near"),  # a share of statements, not a similarity
        ("ContextPrecision", "same"),
        ("ContextRecall", "near"),  # sentences, not claims
        ("ContextRelevance", "near"),  # a share of statements, not a degree
    ],
)
def test_each_metric_says_how_far_it_measures_what_the_native_one_measures(name, related):
    assert relation(definition_of(metric(name)), CONCEPTS[name]) == related


def test_what_contradicts_is_another_quantity_than_what_supports():
    supported, left_open = metric("Faithfulness"), metric("Faithfulness", penalize_ambiguous_claims=False)
    limited = metric("Faithfulness", truths_extraction_limit=3)
    assert relation(definition_of(supported), definition_of(left_open)) == "near"
    assert relation(definition_of(supported), definition_of(limited)) == "near"
    assert definition_of(limited).phrase.endswith("support (truths_extraction_limit 3)")
    assert relation(definition_of(metric("Hallucination")), definition_of(supported)) == "near"
    assert all(definition_of(metric(name)).higher_is_better for name in ENTRIES)


def test_names_and_aliases_are_found_whatever_their_case():
    assert BACKEND.about("faithfulnessmetric") == ("response, retrieved_contexts", "3", "0 to 1")
    assert "deepeval/ContextRelevance" in BACKEND.card("contextual_relevancy")
    with pytest.raises(UnknownMetric, match="Did you mean ContextualRecall"):
        BACKEND.about("ContextualRecal")


def test_a_card_says_what_is_fixed_and_what_can_be_set():
    card = BACKEND.card("Faithfulness")
    assert "FaithfulnessMetric, without its reasons" in card
    assert "penalize_ambiguous_claims: <class 'bool'> = True" in card
    assert "Settings" not in BACKEND.card("Hallucination")


def test_without_the_package_the_line_says_what_to_install(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importing.metadata, "version", absent)
    with pytest.raises(MissingExtra, match=r"not installed: pip install 'ragparity\[deepeval\]'"):
        BACKEND.build("Faithfulness", {})
    assert next(iter(catalogue.rows("deepeval")))[:2] == ("deepeval", "(cannot be used)")


def test_a_release_in_which_hallucination_counts_the_other_way_round_is_refused(monkeypatch):
    monkeypatch.setattr(importing.metadata, "version", lambda _name: "4.1.10")
    with pytest.raises(MissingExtra, match=r"DeepEval 4\.1\.10 is installed, but 4\.3 is the oldest"):
        BACKEND.build("Hallucination", {})


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="truths_extraction_limit: input should be greater than 0, got 0"):
        BACKEND.build("Faithfulness", {"truths_extraction_limit": 0})
    with pytest.raises(ConfigError, match="unknown kwarg 'include_reason'; it takes penalize_ambiguous_claims, truths"):
        BACKEND.build("Faithfulness", {"include_reason": True})
    with pytest.raises(ConfigError, match="it takes none"):
        BACKEND.build("Hallucination", {"strict_mode": True})


# -- scores


@needs_it
def test_faithfulness_counts_only_the_claims_that_are_supported():
    replies = {"claims": ["a", "b", "c", " "], "truths": ["t"], "verdicts": [(YES, NO, BORDERLINE)]}
    found, judge = run("Faithfulness", replies)
    assert (found.value, found.reason) == (1 / 3, "1 of 3 claims are supported by the contexts")
    assert [(one["claim"], one["verdict"]) for one in found.detail["claims"]] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
    assert found.detail["claims"][2]["said"] == "borderline" and found.detail["truths"] == ["t"]
    assert len(judge.questions) == 3

    found, _ = run("Faithfulness", replies, penalize_ambiguous_claims=False)
    assert (found.value, found.reason) == (2 / 3, "2 of 3 claims are not contradicted by the contexts")


@needs_it
def test_answer_relevancy_counts_what_may_serve_the_question():
    found, judge = run("AnswerRelevancy", {"statements": ["a", "b", "c"], "verdicts": [(YES, NO, BORDERLINE)]})
    assert found.value == 2 / 3
    assert [one["verdict"] for one in found.detail["claims"]] == [True, False, True]
    assert len(judge.questions) == 2


@needs_it
def test_context_precision_is_the_exact_average_precision():
    found, judge = run("ContextPrecision", {"verdicts": [(YES, NO, YES)]})
    assert found.value == 5 / 6  # (1/1 + 2/3) / 2
    assert [(one["passage"], one["verdict"]) for one in found.detail["passages"]] == [(0, True), (1, False), (2, True)]
    assert found.detail["passages"][0]["text"] == SAMPLE.retrieved_contexts[0]
    assert len(judge.questions) == 1


@needs_it
def test_context_recall_names_the_sentences_where_there_are_as_many_as_verdicts():
    found, _ = run("ContextRecall", {"verdicts": [(YES, NO)]})
    assert found.value == 0.5
    assert [(one["claim"], one["verdict"]) for one in found.detail["claims"]] == [
        ("7443.", True),
        ("It is grey.", False),
    ]

    found, _ = run("ContextRecall", {"verdicts": [(YES, NO, NO)]})
    assert found.value == 1 / 3
    assert "claims" not in found.detail
    assert found.detail["sentences"][0] == {"verdict": True, "reason": "why yes"}


@needs_it
def test_context_relevance_is_the_share_of_the_statements_of_all_passages():
    of_passages = [["a yes", "a no"], ["b no"], ["c yes"]]
    judged = [[{"statement": one, "verdict": one.split()[1]} for one in of] for of in of_passages]
    found, judge = run("ContextRelevance", {"verdicts": judged})
    assert found.value == 0.5
    pieces = [(one["claim"], one["passage"]) for one in found.detail["claims"]]
    assert pieces == [("a yes", 0), ("a no", 0), ("b no", 1), ("c yes", 2)]
    for passage, question in zip(SAMPLE.retrieved_contexts, judge.questions, strict=True):
        assert question.prompt.data["context"] == passage and passage in question.prompt.text


@needs_it
def test_hallucination_is_one_where_nothing_is_contradicted():
    found, _ = run("Hallucination", {"verdicts": [(YES, NO, YES)]})
    assert (found.value, found.reason) == (2 / 3, "2 of 3 passages are not contradicted")
    assert run("Hallucination", {"verdicts": [(YES, YES, YES)]})[0].value == 1.0


@needs_it
@pytest.mark.parametrize("name", ENTRIES)
def test_the_prompts_of_deepeval_carry_the_fields_that_a_metric_reads_and_no_others(name):
    judged = [{"statement": "s", **YES}]
    replies = {"claims": ["a"], "statements": ["a"], "truths": ["t"]}
    many = len(SAMPLE.retrieved_contexts) if ENTRIES[name].owed == "contexts" else 1
    _, judge = run(name, {**replies, "verdicts": [judged * many] * len(SAMPLE.retrieved_contexts)})
    shown = "\n".join(question.prompt.text for question in judge.questions)
    for field in ("user_input", "response", "reference", "retrieved_contexts"):
        value = getattr(SAMPLE, field)
        for text in (value,) if isinstance(value, str) else value:
            assert (text in shown) is (field in ENTRIES[name].reads), field
    assert len(judge.questions) == sum(one.calls for one in metric(name).asks(SAMPLE))


@needs_it
@pytest.mark.parametrize("name", ENTRIES)
def test_a_good_sample_is_better_than_a_bad_one(name):
    gap = good_minus_bad(BACKEND.build(name, {}))
    assert gap is not None and gap > 0


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


@needs_it
@pytest.mark.parametrize(
    ("name", "replies", "upstream"),
    [
        ("Faithfulness", {"claims": [], "truths": ["t"]}, 1.0),
        ("AnswerRelevancy", {"statements": []}, 1.0),
        ("ContextRecall", {"verdicts": [()]}, 0.0),
        ("ContextRelevance", {"verdicts": [(), (), ()]}, 0.0),
    ],
)
def test_where_the_judge_finds_nothing_the_policy_decides_and_not_deepeval(name, replies, upstream):
    found, _ = run(name, replies)
    assert isinstance(found, Undefined) and found.why == "no_claims"
    for policy, value in (("one", 1.0), ("zero", 0.0)):
        assert run(name, replies, policies=Policies(no_claims=policy))[0].value == value
    found, _ = run(name, replies, policies=Policies(upstream=True))
    assert isinstance(found, Scored)
    assert (found.value, found.detail["policy"]) == (upstream, "upstream")


@needs_it
def test_upstream_shows_the_number_of_deepeval_for_the_answers_as_they_came():
    replies = {"claims": ["a", "b", "c"], "truths": ["t"], "verdicts": [(YES,)]}
    found, _ = run("Faithfulness", replies, policies=Policies(upstream=True))
    assert found.value == 1.0  # one verdict for three claims
    assert {"claims": ["a", "b", "c"]} in found.detail["answers"]


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


# -- compared


@needs_it
def test_a_reader_sees_which_claim_made_the_difference():
    """A judge that compares words finds the second claim in the passage, and in none of the truths drawn from it."""
    row = {
        "id": "one", "question": "Which port?", "contexts": ["The gateway listens on port 7443. It was built in Bonn."],
        "answer": "It was built in Bonn. The gateway port was built in Bonn.",
    }  # fmt: skip
    found = crossvalidate([row], ["Faithfulness"], backends=["native", "deepeval"], judge="offline")
    (pair,) = found.agreement["metrics"]["Faithfulness"]["pairs"]
    assert pair["relation"] == "near" and "truths drawn from the contexts" in pair["because"]
    (shown,) = pair["rows"]
    assert (shown["a"]["score"], shown["b"]["score"]) == (1.0, 0.5)
    assert [(one["a"]["text"], one["b"]["verdict"], one["decides"]) for one in shown["pieces"]] == [
        ("It was built in Bonn.", True, False),
        ("The gateway port was built in Bonn.", False, True),
    ]


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
