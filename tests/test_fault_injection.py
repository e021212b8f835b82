"""Judges, disks and clocks that fail: no row is lost, no score is wrong, nothing hangs, no task is left over."""

import asyncio
import itertools
import json
import os
import random
import re
import signal
import threading
import time
from pathlib import Path

import pytest
import yaml
from tests import faulty_models, runs
from tests.fakeserver import FakeServer, Reply, rate_limited, server_error

from ragparity.commands import shared

HURRIED = {"accuracy": {**runs.ACCURACY["accuracy"], "judge": {"retries": 0, "timeout_s": 1.5}}}
PATIENT = {"accuracy": {**runs.ACCURACY["accuracy"], "judge": {"retries": 3, "timeout_s": 20}}}
LONGEST_S = 25.0
"""Far more than any of these runs needs, far less than a hang."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(autouse=True, scope="module")
def _warm(tmp_path_factory):
    """Clients are imported by the first run; on a busy machine that takes longer than some of these judges may."""
    with pytest.MonkeyPatch.context() as patch, FakeServer(reply="4") as server:
        patch.chdir(tmp_path_factory.mktemp("warm"))
        runs.write(PATIENT, runs.rows(1), server)
        runs.command("eval", "eval.yml")


@pytest.fixture(autouse=True)
def left_over(monkeypatch):
    """The tasks that are still there when a run has ended; none may be, unless a test takes them out."""
    found = []
    original = shared._until_terminated

    async def watched(work):
        try:
            return await original(work)
        finally:
            found.extend(one for one in asyncio.all_tasks() if one is not asyncio.current_task())

    monkeypatch.setattr(shared, "_until_terminated", watched)
    yield found
    assert found == []


def number_of(request):
    """The row that a request is about."""
    return int(re.search(r"gateway (\d+)", request.text)[1])


def right(request):
    """Rows with an even number are right, the others wrong: an answer that strays to another row shows."""
    return "0" if number_of(request) % 2 else "4"


def evaluated(*arguments, code=0):
    """A run in this process that must end in time with this exit code."""
    began = time.monotonic()
    done = runs.command("eval", "eval.yml", *arguments)
    assert time.monotonic() - began < LONGEST_S
    assert done.exit_code == code, done.output
    return done


def sound(count, *, failed=(), kind=None, not_run=0):
    """Every row has one line, with the right score or with the expected failure."""
    found = {line["id"]: line for line in runs.lines()}
    assert len(found) == len(runs.lines()) == count - not_run
    for name, line in found.items():
        number = int(name[1:])
        if number in failed:
            assert (line["status"], line["score"]) == ("failed", None)
            assert line["error"]["kind"] == kind
        else:
            assert (line["status"], line["score"]) == ("scored", float(number % 2 == 0)), line
    one = runs.summary()["accuracy"]
    assert one["n_total"] == count and one["n_not_run"] == not_run
    assert one["n_scored"] + one["n_failed"] == count - not_run


class Once:
    """Something goes wrong the first time that a question is asked, and never again."""

    def __init__(self, wrong):
        self.wrong = wrong
        self.seen = set()

    def __call__(self, request):
        if request.text in self.seen:
            return right(request)
        self.seen.add(request.text)
        return self.wrong(request) if callable(self.wrong) else self.wrong


# -- judges


def test_a_judge_that_hangs_costs_its_rows_and_no_others():
    with FakeServer(reply=lambda request: Reply(hang=True) if number_of(request) == 3 else right(request)) as server:
        runs.write(HURRIED, runs.rows(8), server)
        evaluated()
    sound(8, failed={3}, kind="timeout")


@pytest.mark.parametrize("model", ["Stubborn", "Blocking"])
def test_a_model_that_ignores_its_cancellation_holds_neither_the_run_nor_the_exit(model):
    runs.write(HURRIED, runs.rows(4)[::2] + runs.rows(4)[1:2], "http://unused")
    content = yaml.safe_load(Path("eval.yml").read_text(encoding="utf-8"))
    content["llms"] = {"judge": {"_type": "langchain", "class": f"{faulty_models.__name__}.{model}"}}
    Path("eval.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    evaluated()
    assert runs.record("out", "accuracy", "r1")["error"]["kind"] == "timeout"
    assert {runs.record("out", "accuracy", name)["score"] for name in ("r0", "r2")} == {1.0}


@pytest.mark.parametrize("how", ["before", "half"])
def test_connections_that_are_cut_are_tried_again(how):
    with FakeServer(reply=Once(Reply(content="2", drop=how))) as server:
        runs.write(PATIENT, runs.rows(6), server)
        evaluated()
        assert server.calls == 24
    sound(6)


@pytest.mark.parametrize("how", ["before", "half"])
def test_connections_that_are_always_cut_fail_their_rows(how):
    def reply(request):
        return Reply(content="4", drop=how) if number_of(request) == 2 else right(request)

    with FakeServer(reply=reply) as server:
        runs.write(HURRIED, runs.rows(5), server)
        evaluated()
    sound(5, failed={2}, kind="unavailable")


def test_half_a_body_that_looks_complete_is_no_answer():
    whole = json.dumps({"choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}]})
    with FakeServer(reply=Once(Reply(body=whole[: len(whole) // 2].encode()))) as server:
        runs.write(PATIENT, runs.rows(4), server)
        evaluated()
    sound(4)


def test_429_and_500_in_turn_are_waited_out():
    trouble = itertools.cycle([rate_limited(retry_after=0), server_error(500)])
    with FakeServer(reply=Once(lambda _request: next(trouble))) as server:
        runs.write(PATIENT, runs.rows(6), server, max_concurrency=4)
        evaluated()
        assert server.calls == 24
    sound(6)


def test_a_judge_that_becomes_ten_times_slower_is_waited_for():
    def latency(request):
        return 0.02 if request.index < 12 else 0.2

    with FakeServer(reply=right, latency=latency) as server:
        runs.write(PATIENT, runs.rows(16), server, max_concurrency=8)
        evaluated()
        assert server.calls == 32
    sound(16)


def test_an_answer_that_comes_too_late_is_taken_for_no_other_row():
    def late(request):
        wrong = "4" if number_of(request) % 2 else "0"
        return Reply(content=wrong, latency=2.5)

    hurried = {"accuracy": {**runs.ACCURACY["accuracy"], "judge": {"retries": 2, "timeout_s": 1.2}}}
    with FakeServer(reply=Once(late)) as server:
        runs.write(hurried, runs.rows(6), server, max_concurrency=12)
        evaluated()
    sound(6)


def test_an_answer_in_drips_within_its_time_is_an_answer_and_beyond_it_is_none():
    def reply(request):
        slow = number_of(request) == 3
        return Reply(content=right(request), chunk_delays=(0.8,) * 4 if slow else (0.01,) * 4)

    with FakeServer(reply=reply) as server:
        runs.write(HURRIED, runs.rows(5), server)
        evaluated()
    sound(5, failed={3}, kind="timeout")


def test_a_server_that_dies_on_the_way_ends_in_rows_that_say_so():
    quick = {"accuracy": {**runs.ACCURACY["accuracy"], "judge": {"retries": 0, "timeout_s": 5}}}
    with FakeServer(reply=right, dies_after=11) as server:
        runs.write(quick, runs.rows(12), server, max_concurrency=1)
        evaluated()
    one = runs.summary()["accuracy"]
    assert one["n_scored"] == 5 and one["errors"] == {"unavailable": 7}
    assert len(runs.lines()) == 12


# -- disks


def test_a_full_disk_is_one_line_and_what_was_scored_can_be_continued():
    Path("out").mkdir()
    Path("out/samples.jsonl.new").symlink_to("/dev/full")  # it becomes samples.jsonl when the run begins
    with FakeServer(reply=right) as server:
        runs.write(PATIENT, runs.rows(40), server)
        done = evaluated(code=2)
        (line,) = [one for one in done.output.splitlines() if one.startswith("ragparity:")]
        assert "No space left on device" in line and "--resume" in line
        Path("out/samples.jsonl").unlink()
        evaluated("--resume")
    sound(40)
    assert len(Path("out/samples.jsonl").read_text(encoding="utf-8").splitlines()) == 40


def test_a_log_that_may_not_grow_any_more_keeps_its_whole_lines():
    with FakeServer(reply=right) as server:
        runs.write(PATIENT, runs.rows(30), server, run={"save": {"samples": False}})
        child = runs.start("eval", "eval.yml", "--quiet", output="said.txt", largest_file=6000)
        assert runs.ended(child) == 2
        said = Path("said.txt").read_text(encoding="utf-8")
        assert "File too large" in said and "Traceback" not in said
        kept = [line for line in Path("out/results.jsonl").read_bytes().split(b"\n") if line.endswith(b"}")]
        server.reset()
        evaluated("--resume")
        assert server.calls == 2 * (30 - len(kept)), "whole lines are not asked for again"
    sound(30)


def test_a_cache_on_a_full_disk_does_not_touch_the_run():
    Path("cache").symlink_to("/proc")
    with FakeServer(reply=right) as server:
        runs.write(PATIENT, runs.rows(4), server, run={"cache": {"path": "cache/judge.sqlite", "mode": "read_write"}})
        evaluated()
    sound(4)


# -- two runs


def test_two_runs_into_one_folder_are_never_mixed():
    with FakeServer(reply=right, latency=0.1) as server:
        runs.write(PATIENT, runs.rows(12), server, max_concurrency=2)
        names = ("a.txt", "b.txt")
        both = [runs.start("eval", "eval.yml", "--quiet", output=name) for name in names]
        codes = [runs.ended(one) for one in both]
    assert 0 in codes
    for code, name in zip(codes, names, strict=True):
        if code != 0:  # else one began only after the other had ended
            assert code == 2 and "another run is writing to it" in Path(name).read_text(encoding="utf-8")
    sound(12)


# -- clocks


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_wall_clock_that_jumps_changes_nothing(monkeypatch, jump):
    real, jumps = time.time, itertools.count()
    monkeypatch.setattr(time, "time", lambda: real() + jump * next(jumps))
    trouble = itertools.cycle([rate_limited(retry_after=0), server_error(500)])
    with FakeServer(reply=Once(lambda _request: next(trouble))) as server:
        runs.write(PATIENT, runs.rows(4), server)
        evaluated()
    sound(4)
    assert all(0 <= line["seconds"] < LONGEST_S for line in runs.lines())


# -- killed


def killed_when(server, calls, pause):
    """Start a run, kill it some time after so many calls; whether it was still running."""
    child = runs.start("eval", "eval.yml", "--resume", "--quiet")
    until = time.monotonic() + LONGEST_S
    while server.calls < calls and child.is_alive() and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(pause)
    alive = child.is_alive()
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    return alive


@pytest.mark.parametrize("cached", [False, True], ids=["no cache", "cache"])
def test_a_run_killed_again_and_again_ends_like_an_unbroken_one(cached):
    chance = random.Random(f"{cached}")  # noqa: S311  # moments, not secrets
    more = {"judge": {"retries": 0}}
    both = {
        "accuracy": {**runs.ACCURACY["accuracy"], **more},
        "relevance": {"metric": "ContextRelevance", "llm_name": "judge", "threshold": 0.5, **more},
    }
    brain = lambda request: "2" if "contexts" in request.user else right(request)  # noqa: E731  # two brains in one line
    run = {"cache": {"path": "cache.sqlite", "mode": "read_write" if cached else "off"}}
    with FakeServer(reply=brain, latency=0.01) as server:
        runs.write(both, runs.rows(25), server, output="whole", max_concurrency=4)
        evaluated()
        server.reset()
        runs.write(both, runs.rows(25), server, run=run, max_concurrency=4)
        alive = [killed_when(server, calls, chance.random() / 20) for calls in (0, 1, 17, 40, 77, 99, 100)]
        assert sum(alive) >= 4, "too few of them were killed in their work"
        evaluated("--resume")
        wasted = server.calls - 100
        assert 0 <= wasted <= 7 * 8 * (1 if cached else 2), "each kill loses what was under way, not more"
    assert runs.files("out", without=("seconds", *(runs.COSTS if cached else ()))) == runs.files(
        "whole", without=("seconds", *(runs.COSTS if cached else ()))
    )


def test_a_log_cut_at_any_byte_is_continued():
    chance = random.Random(7)  # noqa: S311  # moments, not secrets
    with FakeServer(reply=right) as server:
        runs.write(PATIENT, runs.rows(6), server)
        evaluated()
        whole, log = runs.files(), Path("out/results.jsonl").read_bytes()
        for cut in sorted(chance.sample(range(len(log)), 6)):
            Path("out/results.jsonl").write_bytes(log[:cut])
            server.reset()
            evaluated("--resume")
            assert server.calls == 2 * (6 - log[:cut].count(b"\n") - log[:cut].endswith(b"}"))
            assert runs.files() == whole


def test_a_hung_judge_does_not_keep_a_terminated_run_alive():
    with FakeServer(reply=lambda request: Reply(hang=True) if number_of(request) else right(request)) as server:
        runs.write(PATIENT, runs.rows(5), server)
        child = runs.start("eval", "eval.yml", "--quiet", output="said.txt")
        until = time.monotonic() + LONGEST_S
        while server.calls < 10 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)
        began = time.monotonic()
        child.terminate()
        assert runs.ended(child) == 130
        assert time.monotonic() - began < 10
        said = Path("said.txt").read_text(encoding="utf-8")
        assert "Traceback" not in said and "never retrieved" not in said
    sound(5, not_run=4)
    assert threading.active_count() < 20
