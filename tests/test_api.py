"""The door for programs: any loop, any thread, again and again; clear lines for what cannot work; frames and files."""

import ast
import asyncio
import inspect
import json
import math
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pandas as pd
import pytest
from langchain_core.embeddings import Embeddings
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from tests.fakeserver import FakeServer, server_error

import ragparity
from ragparity import ConfigError, Policies, Sample, UnknownMetric, aevaluate, evaluate
from ragparity.folder import read_json, read_records
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

ROWS = [
    {"id": "a", "question": "q", "answer": "x", "ground_truth": "x", "topic": "t"},
    {"id": "b", "question": "q", "answer": "x", "ground_truth": "y"},
    {"id": "c", "question": "q", "answer": "x"},
]


def chat(server, **more):
    return ChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0, **more)


# -- results


def test_records_are_in_data_order_and_say_what_became_of_each_row():
    results = evaluate(ROWS, metrics=["ExactMatch", "TokenF1"])
    assert [(one.id, one.evaluator) for one in results.records] == [
        (row, name) for row in "abc" for name in ("ExactMatch", "TokenF1")
    ]
    assert [one.score for one in results["ExactMatch"]] == [1.0, 0.0, None]
    assert results["ExactMatch"][2].outcome.why == "missing:reference"
    assert results.summary["ExactMatch"]["mean"] == 0.5
    assert repr(results) == "Results(ExactMatch: 0.5000 (2/3 scored), TokenF1: 0.5000 (2/3 scored))"
    with pytest.raises(KeyError, match="no evaluator 'Exact'; there is ExactMatch, TokenF1"):
        results["Exact"]


def test_in_a_program_answer_is_the_response():
    (row,) = evaluate([{"question": "q", "answer": "x", "ground_truth": "y"}], metrics=["ExactMatch"]).rows
    assert (row.sample.response, row.sample.reference) == ("x", "y")


def test_samples_frames_and_single_rows_are_rows_too():
    samples = [Sample(id="s", response="x", reference="x")]
    assert evaluate(samples, metrics=["ExactMatch"]).records[0].score == 1.0
    assert evaluate(pd.DataFrame(ROWS), metrics=["ExactMatch"]).summary["ExactMatch"]["n_scored"] == 2
    assert evaluate(ROWS[0], metrics=["ExactMatch"]).summary["ExactMatch"]["mean"] == 1.0
    assert evaluate(iter(ROWS), metrics=["ExactMatch"]).summary["ExactMatch"]["n_total"] == 3


def test_a_frame_of_the_records_has_the_columns_of_the_log_and_nan_where_no_score_is():
    results = evaluate(ROWS, metrics=["ExactMatch"])
    frame = results.to_pandas()
    assert list(frame.columns) == list(results.records[0].as_json())
    assert frame["score"].dtype == "float64"
    assert frame["score"].tolist()[:2] == [1.0, 0.0] and math.isnan(frame["score"][2])
    assert frame["score"].mean() == results.summary["ExactMatch"]["mean"], "pandas leaves out what is no number, too"
    assert evaluate(ROWS[2:], metrics=["ExactMatch"]).to_pandas()["score"].dtype == "float64"


def test_saved_results_read_back_and_equal_the_summary(tmp_path):
    results = evaluate(ROWS, metrics=["ExactMatch", {"NonLLMStringSimilarity": {"distance_measure": "hamming"}}])
    folder = results.save(tmp_path / "out")
    assert [one.as_json() for one in read_records(folder)] == [one.as_json() for one in results.records]
    assert read_json(folder / "summary.json")["evaluators"] == results.summary
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(one["id"], one["extra"]) for one in samples] == [("a", {"topic": "t"}), ("b", {}), ("c", {})]
    manifest = read_json(folder / "manifest.json")
    assert manifest["metrics"]["ExactMatch"]["metric"] == "ExactMatch()"
    assert manifest["started"] <= manifest["finished"]
    assert sorted(manifest["outputs"]) == sorted(path.name for path in folder.glob("*_output.json"))
    assert not (folder / "calls.jsonl").exists()


def test_saving_twice_replaces_and_saving_into_a_file_is_one_line(tmp_path):
    results = evaluate(ROWS, metrics=["ExactMatch"])
    results.save(tmp_path / "out")
    results.save(str(tmp_path / "out"))
    assert len(list(read_records(tmp_path / "out"))) == 3
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        results.save(tmp_path / "file")


def test_numbers_of_other_libraries_come_back_as_plain_json(tmp_path):
    frame = pd.DataFrame(
        {"question": ["q"], "answer": ["x"], "ground_truth": ["x"], "n": [7], "when": [pd.Timestamp("2025-01-02")]}
    )
    folder = evaluate(frame, metrics=["ExactMatch"]).save(tmp_path / "out")
    (line,) = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["extra"] == {"n": 7, "when": "2025-01-02T00:00:00"}


def test_thresholds_by_name_of_the_metric_give_each_scored_row_a_verdict():
    results = evaluate(ROWS, metrics=[{"ExactMatch": {"normalise": "full"}}], thresholds={"ExactMatch": 0.5})
    assert [one.passed for one in results.records] == [True, False, None]
    assert [one.passed for one in evaluate(ROWS, metrics=["ExactMatch"]).records] == [None] * 3


# -- what cannot work is said before anything is asked

WRONG = [
    ({"metrics": ["Faithfulness"]}, 'Faithfulness asks a judge: pass judge=, a LangChain chat model or "offline"'),
    ({"metrics": "ExactMatch"}, 'expected a list of at least one metric, e.g. metrics=["Faithfulness"]'),
    ({"metrics": []}, "expected a list of at least one metric"),
    ({"metrics": {"ExactMatch": {}}}, "expected a list of at least one metric"),
    ({"metrics": iter(["ExactMatch"])}, "expected a list of at least one metric"),
    ({"metrics": ["ExactMatch", "ExactMatch"]}, "ExactMatch stands there twice"),
    ({"metrics": [7]}, "expected a name, {name: kwargs} or a metric, got int"),
    ({"metrics": [{"ExactMatch": {}, "TokenF1": {}}]}, "expected one metric per mapping, got ExactMatch, TokenF1"),
    ({"metrics": [{"ExactMatch": 3}]}, "ExactMatch: expected a mapping of its kwargs, got int"),
    ({"metrics": [{"ExactMatch": {"normalize": "full"}}]}, "unknown kwarg 'normalize'; it takes normalise"),
    ({"metrics": ["ExactMatsh"]}, "Did you mean ExactMatch?"),
    ({"metrics": ["nativ/ExactMatch"]}, "Did you mean native?"),
    (
        {"metrics": ["ExactMatch"], "thresholds": {"Exact": 0.5}},
        "thresholds: no metric 'Exact' here; there is ExactMatch",
    ),
    ({"metrics": ["Faithfulness"], "judge": 7}, 'judge: expected a LangChain chat model or "offline", got int'),
    ({"metrics": ["Faithfulness"], "judge": "gpt-4o"}, 'judge: expected a LangChain chat model or "offline", got str'),
    (
        {"metrics": ["ExactMatch"], "embedder": object()},
        'embedder: expected LangChain embeddings or "offline", got object',
    ),
    ({"metrics": ["ExactMatch"], "judge_options": {"time": 3}}, "judge_options: unknown key 'time'"),
    ({"metrics": ["ExactMatch"], "judge_options": {"retries": 3}}, "Pass retries= to evaluate."),
    ({"metrics": ["ExactMatch"], "judge_options": {"output": "json"}}, "judge_options.output"),
    (
        {"metrics": ["ExactMatch"], "judge_options": {"timeout_s": 0}},
        "judge_options.timeout_s: got 0; expected seconds, more than 0",
    ),
    ({"metrics": ["ExactMatch"], "policies": {"no_claim": "one"}}, "policies.no_claim"),
    ({"metrics": ["ExactMatch"], "policies": {"no_claims": "two"}}, "policies.no_claims"),
    ({"metrics": ["ExactMatch"], "reps": 0}, "reps: expected a whole number, 1 or more, got 0"),
    ({"metrics": ["ExactMatch"], "retries": -1}, "retries: expected a whole number, 0 or more, got -1"),
    (
        {"metrics": ["ExactMatch"], "max_concurrency": 1.5},
        "max_concurrency: expected a whole number, 1 or more, got 1.5",
    ),
    ({"metrics": ["ExactMatch"], "fields": {"respons": "a"}}, "respons"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_work_is_one_clear_line(options, said):
    with pytest.raises(ConfigError) as caught:
        evaluate(ROWS, **options)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_metric_is_known_by_its_type():
    with pytest.raises(UnknownMetric):
        evaluate(ROWS, metrics=["Nothing"])


@pytest.mark.parametrize("nothing", [[], iter([]), pd.DataFrame({"question": []})])
def test_no_rows_are_an_error_and_no_empty_success(nothing):
    with pytest.raises(ConfigError, match="rows"):
        evaluate(nothing, metrics=["ExactMatch"])


def test_evaluate_says_its_arguments_and_they_are_those_of_aevaluate():
    assert list(inspect.signature(evaluate).parameters) == list(inspect.signature(aevaluate).parameters)
    for name, one in inspect.signature(evaluate).parameters.items():
        assert one.kind is not inspect.Parameter.VAR_KEYWORD
        assert one.default == inspect.signature(aevaluate).parameters[name].default
    with pytest.raises(TypeError, match="unexpected keyword argument 'thresold'"):
        evaluate(ROWS, metrics=["ExactMatch"], thresold=1)


def test_every_public_name_is_there():
    assert {name for name in ragparity.__all__ if not hasattr(ragparity, name)} == set()
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = ragparity.evalute


# -- judges and embedders: no provider that the user did not name


@pytest.fixture
def no_keys(monkeypatch):
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "_API_BASE")):
            monkeypatch.delenv(name)


def test_embeddings_have_no_default_provider(no_keys):
    with FakeServer() as server:
        with pytest.raises(
            ConfigError, match='AnswerRelevancy needs embeddings: pass embedder=, LangChain embeddings or "offline"'
        ):
            evaluate(ROWS, metrics=["AnswerRelevancy"], judge=chat(server))
        assert server.requests == []


def test_langchain_embeddings_serve_the_metrics_that_need_them(no_keys):
    questions = {"questions": [{"question": "q?", "noncommittal": False}] * 3}
    with FakeServer(reply=questions, embeddings=lambda _text: [3.0, 4.0]) as server:
        embedder = OpenAIEmbeddings(
            model="e", base_url=server.base_url, api_key="k", check_embedding_ctx_length=False,
            default_headers={"Connection": "close"},  # nobody could close the one of an object that was passed in
        )  # fmt: skip
        results = evaluate(ROWS[:1], metrics=["AnswerRelevancy"], judge=chat(server), embedder=embedder)
        assert results.records[0].score == pytest.approx(1.0), results.records[0]
        assert server.embedding_calls == 1


class Sync(Embeddings):
    """Embeddings with the two methods only that every LangChain class has."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed_documents(self, texts):
        return [self.vectors(text) for text in texts]

    def embed_query(self, text):
        return self.vectors(text)


ASKS_BACK = {"questions": [{"question": "one?", "noncommittal": False}] * 3}


def test_embeddings_without_async_methods_are_run_beside_the_loop():
    results = evaluate(
        ROWS[:1], metrics=["AnswerRelevancy"], judge=ScriptedJudge([ASKS_BACK]), embedder=Sync(lambda _: [0.0, 2.0])
    )
    assert results.records[0].score == pytest.approx(1.0)


def test_a_zero_vector_is_undefined_and_no_nan():
    results = evaluate(
        ROWS[:1], metrics=["AnswerRelevancy"], judge=ScriptedJudge([ASKS_BACK]), embedder=Sync(lambda _: [0.0, 0.0])
    )
    assert results.records[0].outcome.why == "zero_vector"
    assert results.summary["AnswerRelevancy"]["mean"] is None


def test_vectors_of_different_lengths_fail_with_a_clear_line():
    vectors = Sync(lambda text: [1.0] if text == "q" else [1.0, 0.0])
    results = evaluate(ROWS[:1], metrics=["AnswerRelevancy"], judge=ScriptedJudge([ASKS_BACK]), embedder=vectors)
    assert results.records[0].status == "failed" and "length" in results.records[0].outcome.message


def test_a_scripted_judge_and_embedder_are_a_judge_and_an_embedder():
    judge = ScriptedJudge([4, 2])
    results = evaluate(ROWS[:1], metrics=["AnswerAccuracy"], judge=judge, embedder=ScriptedEmbedder({}))
    assert results.records[0].score == 0.75 and len(judge.questions) == 2
    assert results.records[0].judge == "scripted"


def test_policies_may_be_given_by_name():
    refusal = {"refusal": True, "claims": []}
    row = [{"question": "q", "answer": "I don't know.", "contexts": ["c"]}]
    for policies in (Policies(no_claims="zero"), {"no_claims": "zero"}):
        results = evaluate(row, metrics=["Faithfulness"], judge=ScriptedJudge([refusal]), policies=policies)
        assert results.records[0].score == 0.0
    assert evaluate(row, metrics=["Faithfulness"], judge=ScriptedJudge([refusal])).records[0].outcome.why == "no_claims"


def test_a_judge_that_fails_on_one_row_costs_that_row_alone():
    rows = [dict(ROWS[0], id=name, answer=name) for name in ("fine", "broken", "good")]
    with FakeServer(reply=lambda request: server_error(500) if "broken" in request.text else "4") as server:
        results = evaluate(rows, metrics=["AnswerAccuracy"], judge=chat(server), retries=0)
    assert [one.score for one in results.records] == [1.0, None, 1.0]
    assert results.summary["AnswerAccuracy"]["mean"] == 1.0
    assert results.summary["AnswerAccuracy"]["errors"] == {"unavailable": 1}


def test_tokens_have_a_price_where_one_is_given():
    with FakeServer(reply="4") as server:
        price = {"input_per_1m": 1_000_000, "output_per_1m": 0}
        results = evaluate(ROWS[:1], metrics=["AnswerAccuracy"], judge=chat(server), judge_options={"price": price})
    found = results.summary["AnswerAccuracy"]
    assert found["cost"] == found["input_tokens"] > 0


# -- loops and threads

ACCURACY = {"metrics": ["AnswerAccuracy"]}


@pytest.fixture(scope="module")
def server():
    with FakeServer(reply="4", latency=0.005) as running:
        yield running


def test_three_evaluations_in_a_row_with_one_model_give_the_same(server):
    model = chat(server)
    found = [evaluate(ROWS, judge=model, **ACCURACY).summary for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert found[0]["AnswerAccuracy"]["mean"] == 1.0


LOOPS = """
import asyncio, sys, threading
from langchain_openai import ChatOpenAI
from ragparity import aevaluate, evaluate

model = ChatOpenAI(model="m", base_url=sys.argv[1], api_key="k", max_retries=0)
rows = [{"question": "q", "answer": "x", "ground_truth": "x"}] * 3
asked = dict(metrics=["AnswerAccuracy"], judge=model)
found = []
def keep(results):
    found.append(results.summary["AnswerAccuracy"]["mean"])
for _ in range(3):
    keep(evaluate(rows, **asked))
for _ in range(3):
    keep(asyncio.run(aevaluate(rows, **asked)))
threads = [threading.Thread(target=lambda: keep(evaluate(rows, **asked))) for _ in range(2)]
[one.start() for one in threads]
[one.join() for one in threads]
print(*found)
"""


def test_a_program_that_evaluates_on_many_loops_prints_its_numbers_and_no_complaint(server):
    done = subprocess.run(
        [sys.executable, "-c", LOOPS, server.base_url], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["1.0"] * 8
    assert done.stderr == ""


def test_three_loops_one_after_the_other_with_one_model_give_the_same(server):
    model = chat(server)
    found = [asyncio.run(aevaluate(ROWS, judge=model, **ACCURACY)).summary for _ in range(3)]
    scored = [(one["AnswerAccuracy"]["mean"], one["AnswerAccuracy"]["n_scored"]) for one in found]
    assert scored == [(1.0, 2)] * 3


def test_evaluations_from_two_threads_at_once_give_the_same(server):
    model, found = chat(server), []

    def work():
        found.append(evaluate(ROWS, judge=model, **ACCURACY).summary["AnswerAccuracy"]["mean"])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert found == [1.0, 1.0]


def test_evaluate_works_inside_a_running_loop(server):
    async def handler():
        return evaluate(ROWS, judge=chat(server), **ACCURACY).summary["AnswerAccuracy"]["mean"]

    assert asyncio.run(handler()) == 1.0


def test_evaluate_works_in_a_notebook_cell_again_and_again():
    # A notebook runs each cell as code inside the loop of its kernel.
    cell = compile(
        "from ragparity import evaluate\nresults = evaluate(rows, metrics=['ExactMatch'])\nmean = results.summary['ExactMatch']['mean']",
        "<cell>", "exec",
    )  # fmt: skip

    async def kernel():
        names = {"rows": ROWS}
        for _ in range(3):
            exec(cell, names)  # noqa: S102  # that is what a notebook does
            assert names["mean"] == 0.5
            await asyncio.sleep(0)

    asyncio.run(kernel())


def test_aevaluate_works_in_a_notebook_cell_with_await():
    source = "results = await aevaluate(rows, metrics=['ExactMatch'])"
    cell = compile(source, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def kernel():
        names = {"rows": ROWS, "aevaluate": aevaluate}
        await eval(cell, names)  # noqa: S307  # as above
        assert names["results"].summary["ExactMatch"]["mean"] == 0.5

    asyncio.run(kernel())


def test_aevaluate_works_on_a_loop_of_another_make(server):
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        results = runner.run(aevaluate(ROWS, judge=chat(server), **ACCURACY))
        assert runner.run(asyncio.sleep(0, evaluate(ROWS, judge=chat(server), **ACCURACY))).summary == results.summary
    assert results.summary["AnswerAccuracy"]["mean"] == 1.0


def test_aevaluate_works_on_a_subclassed_loop():
    class Loop(asyncio.SelectorEventLoop):
        """A loop that nobody can patch."""

        __slots__ = ()

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(aevaluate(ROWS, metrics=["ExactMatch"])).summary["ExactMatch"]["mean"] == 0.5


def test_evaluate_from_within_evaluate_says_what_to_do_and_does_not_hang():
    class Nested:
        """A metric that calls the wrong door."""

        name, backend, version, definition, steps = "Nested", "native", "1", "", 0
        reads, may_read, uses, bounds, higher_is_better = (), (), frozenset(), (0.0, 1.0), True

        async def score(self, _sample, _kit):
            evaluate(ROWS, metrics=["ExactMatch"])

    (record,) = evaluate(ROWS[:1], metrics=[Nested()]).records
    assert "use `await aevaluate(...)` there" in record.outcome.message


def test_an_evaluation_that_is_cancelled_leaves_no_task_behind():
    with FakeServer(reply="4", latency=20) as slow:

        async def main():
            before = asyncio.all_tasks()
            task = asyncio.create_task(aevaluate(ROWS, judge=chat(slow), **ACCURACY))
            while not slow.calls:  # noqa: ASYNC110  # the server counts on a thread of its own
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.05)
            assert asyncio.all_tasks() == before

        asyncio.run(main())


def test_a_forked_process_gets_a_loop_of_its_own():
    evaluate(ROWS, metrics=["ExactMatch"])
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads; that is the point here
        child = os.fork()
    if child == 0:
        try:
            mean = evaluate(ROWS, metrics=["ExactMatch"]).summary["ExactMatch"]["mean"]
            os.write(writer, str(mean).encode())
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 10) == b"0.5"
    os.waitpid(child, 0)


def test_evaluating_changes_nothing_in_asyncio():
    before = {name: getattr(asyncio, name) for name in dir(asyncio)}
    policy = asyncio.get_event_loop_policy() if hasattr(asyncio, "get_event_loop_policy") else None
    evaluate(ROWS, metrics=["ExactMatch"])
    assert {name: getattr(asyncio, name) for name in dir(asyncio)} == before
    assert policy is None or asyncio.get_event_loop_policy() is policy


def test_a_path_is_a_row_source_too(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    assert evaluate(Path(path), metrics=["ExactMatch"]).summary["ExactMatch"]["mean"] == 0.5


@pytest.mark.parametrize("reply", [None, server_error()], ids=["answers", "fails"])
def test_the_connections_of_a_run_are_closed_when_it_returns(reply):
    from langchain_openai import ChatOpenAI

    rows = [{"question": "Which port?", "answer": "Port 7443.", "contexts": ["Heron listens on TCP port 7443."]}]
    with FakeServer(reply) as server:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key="k", max_retries=0)
        evaluate(rows, metrics=["Faithfulness"], judge=model, retries=0)
        assert server.calls >= 1
        deadline = time.monotonic() + 5
        while server.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not server.connections, "and not only when the garbage is collected"
