"""A comparison that is cancelled: what was scored is kept and compared, marked as partial, and --resume completes it."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from tests import runs
from tests.fakeserver import FakeServer, Reply

from ragparity.probe import LARGE

pytest.importorskip("openevals", reason="needs the extra openevals")

COUNT = 24
ENTRY = {
    "accuracy": {**runs.ACCURACY["accuracy"], "_type": "ragparity_crossvalidate", "backends": ["native", "openevals"]}
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def judged(request):
    """Every third gateway is wrong; the share of openevals is a little lower than the rating."""
    good = int(re.search(r"gateway (\d+)", request.text)[1]) % 3
    if request.wants_json or request.tool:
        return {"reasoning": "so it is", "score": 0.9 if good else 0.1}
    return "4" if good else "0"


def write(server, count=COUNT):
    runs.write(ENTRY, runs.rows(count), server, max_concurrency=2)


def agreement(folder):
    return runs.read(folder, "agreement.json")


def stopped(server, sent, calls, *arguments):
    """Exit code and words of a command that gets a signal after so many calls."""
    child = runs.start("crossvalidate", "eval.yml", "--quiet", *arguments, output="said.txt")
    deadline = time.monotonic() + 60
    while server.calls < calls and child.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(child.pid, sent)
    return runs.ended(child), Path("said.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminate"])
def test_a_cancelled_comparison_is_partial_and_a_resumed_one_is_that_of_an_unbroken_run(sent):
    with FakeServer(reply=judged) as server:
        write(server)
        assert runs.command("crossvalidate", "eval.yml", "--quiet", "--output", "whole").exit_code == 0
        asked_by_all = server.calls

        server.reset(reply=judged)
        server.latency = 0.03
        code, said = stopped(server, sent, 30)
        assert code == 130, said
        assert "cancelled; what was scored is kept in out; continue with --resume" in said
        lines = runs.lines()
        scored = {(line["evaluator"], line["id"]) for line in lines if line["status"] == "scored"}
        assert 0 < len(scored) == len(lines) < 2 * COUNT
        found = agreement("out")
        missing = 2 * COUNT - len(scored)
        assert found["partial"] == f"partial: {missing} scores are still to come (cancelled); --resume completes it"
        assert found["partial"] in " ".join(said.split()), "in the table it may be wrapped"
        (pair,) = found["metrics"]["accuracy"]["pairs"]
        both = [row for name, row in scored if name == "accuracy@native" and ("accuracy@openevals", row) in scored]
        assert pair["n"] == len(both), "a row that only one has met is no pair"

        server.reset(reply=judged)
        server.latency = 0
        assert runs.command("crossvalidate", "eval.yml", "--quiet", "--resume").exit_code == 0
        assert 0 < server.calls < asked_by_all
    whole = agreement("whole")
    assert "partial" not in whole and whole["metrics"]["accuracy"]["pairs"][0]["n"] == COUNT
    assert agreement("out") == whole
    assert runs.files("out") == runs.files("whole")


def test_a_run_that_is_cancelled_before_it_has_begun_leaves_the_earlier_agreement():
    with FakeServer(reply=judged) as server:
        write(server)
        assert runs.command("crossvalidate", "eval.yml", "--quiet").exit_code == 0
    before, manifest = runs.files("out"), runs.read("out", "manifest.json")
    with FakeServer(reply=Reply(hang=True)) as server:
        write(server, LARGE)  # such a run begins with a probe, which gets no answer here
        code, said = stopped(server, signal.SIGINT, 1)
    assert code == 130, said
    assert runs.files("out") == before and runs.read("out", "manifest.json") == manifest


def test_a_budget_marks_the_agreement_as_partial_too():
    with FakeServer(reply=judged) as server:
        runs.write(ENTRY, runs.rows(COUNT), server, max_concurrency=2, run={"budget": {"calls": 20}})
        done = runs.command("crossvalidate", "eval.yml", "--quiet", "--json")
    assert done.exit_code == 1
    found = agreement("out")
    assert found == json.loads(done.stdout)
    missing = 2 * COUNT - len(runs.lines())
    assert missing > 0 and found["partial"] == (
        f"partial: {missing} scores are still to come (the budget of 20 calls is spent); --resume completes it"
    )
