"""A run from plan to files, without a network: what is written when, slices, choices of rows, and a full disk."""

import asyncio
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import yaml
from tests.meetings import rows

from ragparity import evaluation, wiring
from ragparity.config import load_eval_file
from ragparity.core.errors import ConfigError
from ragparity.evaluation import Choice, limits_of
from ragparity.folder import RunFolder, read_json, read_records, unfinished

ROWS = [
    {"id": "a", "question": "q", "generated_answer": "x", "answer": "x", "topic": "one"},
    {"id": "b", "question": "q", "generated_answer": "x", "answer": "y", "topic": "two"},
    {"id": "c", "question": "q", "generated_answer": "x", "answer": None, "topic": "two"},
    {"id": "d", "question": "q", "generated_answer": "x", "output": "z", "answer": "x"},
]
EXACT = {"exact": {"_type": "ragparity", "metric": "ExactMatch"}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def eval_file(evaluators=EXACT, *, rows=ROWS, llms=None, **run_settings):
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    content = {
        "llms": llms or {},
        "eval": {
            "general": {
                "output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}, "ragparity": run_settings,
            },
            "evaluators": evaluators,
        },
    }  # fmt: skip
    Path("eval.yml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def run(*, mode="new", choice=None, said=None, output="out", **options):
    plan = wiring.make_plan(load_eval_file(Path("eval.yml")))
    assert not plan.problems, plan.problems
    data = wiring.open_rows(plan)
    counts = []
    with RunFolder(Path(output), mode=mode) as folder:
        work = evaluation.evaluate_file(
            plan, data, folder, choice=choice or Choice(), limits=limits_of(plan, {}),
            progress=lambda count, total: counts.append((count, total)), say=(said if said is not None else []).append, **options,
        )  # fmt: skip
        finished = asyncio.run(work)
    return finished, counts


def test_a_run_is_summed_up_as_its_log_says():
    eval_file()
    finished, counts = run()
    assert finished.as_json()["evaluators"]["exact"]["mean"] == 0.5  # a is equal, b is not; c and d have no score
    assert finished.as_json() == read_json(Path("out/summary.json"))
    assert [(one.word, one.id) for one in finished.troubles] == [("input", "d"), ("missing:reference", "c")]
    assert counts[-1] == (4, 4)
    assert {one.id: one.status for one in read_records(Path("out"))} == {
        "a": "scored", "b": "scored", "c": "undefined", "d": "failed",
    }  # fmt: skip


def test_the_manifest_says_what_produced_the_numbers_and_no_secret(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-not-for-files")
    judge = {"_type": "openai", "model_name": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "${MY_KEY}"}
    eval_file(
        EXACT | {"off": {"_type": "ragparity", "metric": "AnswerAccuracy", "llm_name": "offline"}},
        llms={"judge": judge},
    )
    run()
    manifest = read_json(Path("out/manifest.json"))
    assert set(manifest) >= {"started", "finished", "versions", "dataset", "metrics", "judges", "config", "outputs"}
    assert manifest["versions"]["ragparity"] and manifest["dataset"]["rows"] == 4
    assert len(manifest["dataset"]["sha256"]) == 64
    assert manifest["metrics"]["off"]["judge"] == "offline lexical judge: for wiring and smoke tests"
    assert manifest["metrics"]["exact"]["prompts"] and manifest["metrics"]["exact"]["version"]
    assert manifest["config"]["llms"]["judge"]["api_key"] == "***"
    assert "sk-not-for-files" not in "".join(path.read_text(encoding="utf-8") for path in Path("out").iterdir())


def test_every_slice_counts_its_rows_in_data_order_unreadable_ones_apart():
    eval_file()
    slices = run(slices=["topic"])[0].as_json()["slices"]["topic"]
    assert list(slices) == ["one", "two", "(unreadable row)"]
    assert [slices[value]["exact"]["n_total"] for value in slices] == [1, 2, 1]
    assert [slices[value]["exact"]["mean"] for value in slices] == [1.0, 0.0, None]


def test_a_slice_by_a_column_that_no_row_has_is_said():
    eval_file(rows=ROWS[:2])
    said = []
    run(slices=["topik", "zzz", "topic"], said=said)
    assert said == [
        "--slice topik: no row has such a column. Did you mean topic?",
        "--slice zzz: no row has such a column. There is topic, id, user_input, response, reference.",
    ]


def test_a_slice_that_cannot_be_is_said_before_anything_is_scored():
    eval_file(rows=ROWS[:2] * 100)  # as many as are looked at: a later row may have it
    heard = []
    plan = wiring.make_plan(load_eval_file(Path("eval.yml")))
    with RunFolder(Path("out")) as folder:
        work = evaluation.evaluate_file(
            plan, wiring.open_rows(plan), folder, choice=Choice(), limits={}, slices=["topik"],
            progress=lambda count, _total: heard.append(count), say=heard.append,
        )  # fmt: skip
        asyncio.run(work)
    assert heard[0] == "--slice topik: no row of the first 200 has such a column. Did you mean topic?"


# -- the earlier run in the folder


def test_an_earlier_run_is_untouched_when_the_new_one_cannot_start():
    eval_file()
    run()
    before = Path("out/results.jsonl").read_bytes()
    eval_file(baseline="nowhere")
    with pytest.raises(ConfigError, match="baseline: nowhere is no finished run"):
        run()
    bad = {
        "_type": "langchain",
        "class": "langchain_core.language_models.FakeListChatModel",
        "kwargs": {"responses": 7},
    }
    eval_file({"judged": {"_type": "ragparity", "metric": "AnswerAccuracy", "llm_name": "bad"}}, llms={"bad": bad})
    with pytest.raises(ConfigError, match=r"llms\.bad"):
        run()
    assert Path("out/results.jsonl").read_bytes() == before
    assert not unfinished(Path("out"))


def test_the_earlier_run_of_the_same_folder_can_be_the_baseline():
    eval_file(rows=ROWS[:1])
    run()
    eval_file(rows=ROWS[1:2], baseline="out", gate={"exact": {"max_drop": 0.5}})
    (check,) = run()[0].checks
    assert check.figure == 1.0 and not check.passed  # from 1.0 to 0.0


def test_a_resumed_run_comes_to_the_same_summary_and_slices():
    eval_file()
    whole = run(slices=["topic"])[0].as_json()
    log = Path("out/results.jsonl")
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    finished, counts = run(mode="resume", slices=["topic"])
    assert finished.as_json() == whole
    assert counts[0] == (1, 4), "one record was kept"


def test_a_finished_run_is_resumed_without_reading_its_rows_twice_and_ends_with_the_same_files(monkeypatch):
    eval_file(rows=ROWS[:3])
    run(slices=["topic"])
    before = {path.name: path.read_bytes() for path in Path("out").iterdir() if path.name != "manifest.json"}
    passes = []
    rows_of_file = wiring.Rows.__iter__
    monkeypatch.setattr(wiring.Rows, "__iter__", lambda rows: (passes.append(1), rows_of_file(rows))[1])
    run(mode="resume", slices=["topic"])
    looked_at = 1  # to see whether the column of the slices is there
    assert len(passes) == looked_at + 1
    assert {path.name: path.read_bytes() for path in Path("out").iterdir() if path.name != "manifest.json"} == before


def test_a_run_can_be_stopped_while_it_takes_over_earlier_records(monkeypatch):
    monkeypatch.setattr("ragparity.runner.LONGEST_TURN_S", 0.0)
    eval_file(rows=[dict(ROWS[0], id=str(number)) for number in range(200)])
    run()
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    plan = wiring.make_plan(load_eval_file(Path("eval.yml")))
    heard = []

    async def stopped(folder):
        work = evaluation.evaluate_file(
            plan, wiring.open_rows(plan), folder, choice=Choice(), limits={},
            progress=lambda count, _total: heard.append(count), say=heard.append,
        )  # fmt: skip
        task = asyncio.create_task(work)
        for _ in range(300):  # more turns than there are lines in the log, fewer than lines and rows
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with RunFolder(Path("out"), mode="resume") as folder:
        asyncio.run(stopped(folder))
    assert heard == [], "nothing was scored"
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before


def test_a_resumed_run_of_fewer_rows_has_only_those():
    eval_file()
    run()
    assert run(mode="resume", choice=Choice(limit=1))[0].summaries["exact"].n_total == 1
    assert [one.id for one in read_records(Path("out"))] == ["a"]


# -- memory


def peak_of(rows, mode):
    """Bytes at the peak of a run, or of a finished run that is resumed."""
    eval_file(rows=[{**ROWS[0], "id": f"row-{number}", "contexts": ["x" * 2000]} for number in range(rows)])
    if mode == "resume":
        run(mode="overwrite", slices=["topic"])
    tracemalloc.start()
    try:
        run(mode=mode, slices=["topic"])
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("mode", ["overwrite", "resume"])
def test_memory_grows_by_some_bytes_a_row_and_no_row_is_kept(mode):
    peak_of(20, mode)  # what is made once is made
    grown = peak_of(1100, mode) - peak_of(100, mode)
    assert grown < 1000 * 200, "a row that is kept has more than 2000 bytes"


# -- which rows


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (Choice(), [0, 1, 2, 3, 4, 5, 6]),
        (Choice(limit=3), [0, 1, 2]),
        (Choice(limit=99), [0, 1, 2, 3, 4, 5, 6]),
        (Choice(sample=99), [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_rows_are_chosen_in_data_order(choice, wanted):
    assert [views[0].index for views in choice.of(rows(7), 7)] == wanted
    assert choice.count(7) == len(wanted)


def test_a_draw_depends_on_its_seed_alone_and_whether_the_count_is_known_does_not_matter():
    def drawn(seed, total=50):
        return [views[0].index for views in Choice(sample=5, seed=seed).of(rows(50), total)]

    assert drawn(1) == drawn(1) == drawn(1, total=None)
    assert drawn(1) == sorted(drawn(1)) and len(set(drawn(1))) == 5
    assert drawn(1) != drawn(2)


# -- a full disk, in earnest: the system allows the process files of a few kilobytes only


def test_a_disk_that_fills_up_keeps_what_was_scored_and_the_run_goes_on_later():
    many = [dict(ROWS[0], id=str(number)) for number in range(300)]
    eval_file(rows=many)
    Path("out").mkdir()
    limited = (
        "import resource, sys\nfrom ragparity.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\nmain(['eval', 'eval.yml'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr and "--resume" in done.stderr and "Traceback" not in done.stderr
    scored = len(list(read_records(Path("out"))))
    assert 10 < scored < 300
    assert unfinished(Path("out"))
    finished, counts = run(mode="resume")
    assert counts[0] == (scored, 300)
    assert finished.summaries["exact"].n_scored == 300 and not unfinished(Path("out"))
