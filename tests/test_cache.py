"""The cache of judge replies: what is one question, what comes back, and what happens when the file is no good."""

import asyncio
import json
import math
import sqlite3
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel, field_validator

from ragparity.around import model_settings
from ragparity.cache import Cached, CachedEmbedder, Replies, as_json, restored
from ragparity.cache_file import connect, prune, stats
from ragparity.core.errors import (
    ConfigError,
    JudgeRefused,
    JudgeUnavailable,
    MalformedVerdict,
    NotCached,
    Truncated,
)
from ragparity.core.ports import Answer, Question, Rating, Scale, Structured, Tally, Text, Usage
from ragparity.core.prompt import Prompt
from ragparity.questions import asked
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

LEVELS = Scale((0, 1, 2))
PROMPT = Prompt("Rate it.", ("Be strict.",), {"question": "Which port?", "answer": "7443"})


class Verdict(BaseModel):
    reason: str
    verdict: bool

    @field_validator("verdict", mode="before")
    @classmethod
    def yes_is_true(cls, value):
        return {"yes": True, "no": False}.get(value, value) if isinstance(value, str) else value


class OneWay(BaseModel):
    """What it writes is not what it reads."""

    share: float

    @field_validator("share", mode="before")
    @classmethod
    def of_a_hundred(cls, value):
        return value / 100


RATING = Question(PROMPT, Rating(LEVELS), 8)
VERDICT = Question(PROMPT, Structured(Verdict), 200)
TEXT = Question(PROMPT, Text(), 50)


def stored_in(tmp_path, mode="read_write", **more):
    return Replies(tmp_path / "cache.sqlite", mode, **more)


def ask(judge, question, tally=None):
    return asyncio.run(judge.ask(question, tally if tally is not None else Tally()))


def filled(tmp_path, *pairs, identity="scripted", settings="", now=None):
    """A cache file with the replies to some questions."""
    replies = stored_in(tmp_path, **({"now": now} if now else {}))
    judge = ScriptedJudge([reply for _, reply in pairs])
    judge.identity = identity
    cached = Cached(judge, replies, settings)

    async def all_of_them():
        for question, _ in pairs:
            await cached.ask(question, Tally())

    asyncio.run(all_of_them())
    replies.close()
    assert replies.said == []
    return tmp_path / "cache.sqlite"


# -- what comes back


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (RATING, Answer(2, "2", usage=Usage(90, 1, None, 64))),
        (RATING, Answer(0, '{"rating": 0}', reason='says "no"\n— 七', usage=Usage(1, 2, 3, 4))),
        (VERDICT, Answer(Verdict(reason="因为 \ud800 {", verdict=True), '{"verdict": "yes"}')),
        (TEXT, Answer("two\nlines \u2028 and \x00", "raw <think>hm</think>")),
    ],
)
def test_an_answer_comes_back_exactly_as_it_was(tmp_path, question, answer):
    filled(tmp_path, (question, answer))
    replies, tally = stored_in(tmp_path, "replay"), Tally()
    found = ask(Cached(ScriptedJudge([]), replies), question, tally)
    assert found == answer and type(found.value) is type(answer.value)
    assert (tally.calls, tally.cached_calls, tally.input_tokens, tally.output_tokens) == (0, 1, 0, 0)
    assert tally.replies == [{"task": "Rate it.", "draw": 0, "raw": answer.raw, "cached": True}]
    replies.close()


def test_an_answer_is_there_before_it_is_on_disk_and_within_the_same_run(tmp_path):
    replies = stored_in(tmp_path)
    judge = ScriptedJudge([1])
    cached = Cached(judge, replies)
    assert [ask(cached, RATING).value for _ in range(3)] == [1, 1, 1]
    assert len(judge.questions) == 1
    replies.close()


def test_what_would_come_back_different_is_not_stored(tmp_path):
    question = Question(PROMPT, Structured(OneWay), 50)
    filled(tmp_path, (question, Answer(OneWay(share=50), "50")))
    assert stats(tmp_path / "cache.sqlite") == []
    assert as_json(Answer(OneWay(share=50), "50"), question.shape) is None


@pytest.mark.parametrize(
    "error",
    [
        JudgeUnavailable("503"),
        Truncated("cut"),
        MalformedVerdict("no number"),
        JudgeRefused("no"),
    ],
)
def test_a_failure_is_not_remembered(tmp_path, error):
    replies = stored_in(tmp_path)
    judge = ScriptedJudge([error, 2])
    cached = Cached(judge, replies)
    with pytest.raises(type(error)):
        ask(cached, RATING)
    assert ask(cached, RATING).value == 2
    replies.close()
    assert sum(group.replies for group in stats(replies.path)) == 1


def test_a_question_with_a_complaint_goes_past_the_cache(tmp_path):
    replies = stored_in(tmp_path)
    judge = ScriptedJudge([1, 2])
    cached = Cached(judge, replies)
    assert ask(cached, RATING.again("not a number")).value == 1
    assert ask(cached, RATING).value == 2
    replies.close()


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {"value": 1},
        {"value": 7, "raw": "7", "usage": {}},
        {"value": True, "raw": "1", "usage": {}},
        {"value": [1], "raw": "1", "usage": {}},
        {"value": 1, "raw": "1", "usage": {"colour": 3}},
        {"value": 1, "raw": "1", "usage": {}, "reason": 3},
    ],
)
def test_a_stored_value_that_does_not_fit_is_no_answer(stored):
    assert restored(stored, RATING.shape) is None


# -- what is one question


def keys(*questions, judge="j", settings=""):
    return {asked(judge, settings, one).key for one in questions}


def test_whatever_can_change_a_reply_changes_the_key():
    data = PROMPT.data
    different = [
        RATING,
        replace(RATING, draw=1000),
        replace(RATING, budget=16),
        replace(RATING, shape=Rating(Scale((0, 2, 4)))),
        replace(RATING, shape=Text()),
        replace(RATING, shape=Structured(Verdict)),
        replace(RATING, shape=Structured(OneWay)),
        *(
            replace(RATING, prompt=prompt)
            for prompt in (
                Prompt("Rate this.", PROMPT.rules, data),
                Prompt("Rate it.", (), data),
                Prompt("Rate it.", PROMPT.rules, {**data, "answer": "7444"}),
                Prompt("Rate it.", PROMPT.rules, dict(reversed(data.items()))),
                Prompt("Rate it.", PROMPT.rules, data, reminder="Rate the answer."),
                Prompt.verbatim("Rate it."),
                Prompt.verbatim("Rate it.", data),
            )
        ),
    ]
    assert len(keys(*different)) == len(different)
    assert keys(RATING) != keys(RATING, judge="other") != keys(RATING, judge="other", settings='{"top_p": 1}')


def test_a_schema_made_anew_is_the_same_schema():
    def made():
        class Questions(BaseModel):
            questions: list[str]

        return Question(PROMPT, Structured(Questions), 60)

    assert len(keys(made(), made())) == 1


def test_a_complaint_is_no_part_of_the_key():
    assert len(keys(RATING, RATING.again("say one number"))) == 1


def test_settings_of_the_model_are_part_of_the_key_and_secrets_and_time_limits_are_not():
    options = {"top_k": 5, "extra_body": {"min_p": 0.1}, "api_key": "sk-abcdefgh12345678", "timeout": 3}
    settings = model_settings(options, {"sk-abcdefgh12345678"})
    assert json.loads(settings) == {"top_k": 5, "extra_body": {"min_p": 0.1}}
    assert settings == model_settings(dict(reversed(options.items())) | {"timeout": 9}, ())


# -- replay says what is different


def missed(tmp_path, question, *, identity="scripted", settings=""):
    replies = stored_in(tmp_path, "replay")
    judge = ScriptedJudge([])
    judge.identity = identity
    with pytest.raises(NotCached) as caught:
        ask(Cached(judge, replies, settings), question)
    replies.close()
    assert caught.value.kind == "not_cached" and not caught.value.retryable
    return str(caught.value)


def test_replay_names_what_was_changed(tmp_path):
    filled(tmp_path, (RATING, 2), identity="openai/m at http://a")
    same = {"identity": "openai/m at http://a"}
    prompt = replace(RATING, prompt=Prompt("Rate it kindly.", (), PROMPT.data))
    data = replace(RATING, prompt=Prompt("Rate it.", ("Be strict.",), {"question": "Which port?", "answer": "1"}))
    both = replace(RATING, prompt=Prompt("Count it.", (), {"answer": "1"}))
    assert "other prompt" in (text := missed(tmp_path, prompt, **same))
    assert "'Rate it.'" in text and "'Rate it kindly.'" in text
    assert "other data" in missed(tmp_path, data, **same)
    assert "nothing is stored" in missed(tmp_path, both, **same)
    assert "another draw: stored is 0, asked is 1000" in missed(tmp_path, replace(RATING, draw=1000), **same)
    assert "asked is rating in 16 tokens" in missed(tmp_path, replace(RATING, budget=16), **same)
    assert "other settings of the model" in missed(tmp_path, RATING, **same, settings='{"top_k": 5}')
    other = missed(tmp_path, RATING, identity="openai/m2 at http://a")
    assert "other judge: stored is openai/m at http://a, asked is openai/m2 at http://a" in other
    warmer = missed(tmp_path, RATING, identity="openai/m at http://a temperature=1")
    assert "other settings of the judge" in warmer and "temperature=1" in warmer


def test_replay_finds_the_ready_made_prompt_that_another_judge_was_asked(tmp_path):
    question = replace(RATING, prompt=Prompt.verbatim("Rate 7443 from 0 to 2."))
    filled(tmp_path, (question, 2))
    assert "other judge" in missed(tmp_path, question, identity="another")


# -- vectors


def test_only_vectors_that_are_not_stored_are_asked_for_each_text_once(tmp_path):
    replies = stored_in(tmp_path)
    embedder = ScriptedEmbedder(lambda text: [float(len(text)), 1 / 3])
    cached = CachedEmbedder(embedder, replies)
    tally = Tally()
    first = asyncio.run(cached.embed(["aa", "b", "aa"], tally))
    assert first == [[2.0, 1 / 3], [1.0, 1 / 3], [2.0, 1 / 3]]
    assert embedder.texts == ["aa", "b"]
    assert asyncio.run(cached.embed(["b", "cccc"], tally)) == [[1.0, 1 / 3], [4.0, 1 / 3]]
    assert embedder.texts == ["aa", "b", "cccc"] and tally.embedding_calls == 2
    replies.close()
    again = stored_in(tmp_path, "replay")
    assert asyncio.run(CachedEmbedder(ScriptedEmbedder({}), again).embed(["cccc", "aa"], Tally())) == [
        [4.0, 1 / 3],
        [2.0, 1 / 3],
    ]
    with pytest.raises(NotCached):
        asyncio.run(CachedEmbedder(ScriptedEmbedder({}), again).embed(["new"], Tally()))
    again.close()


def test_a_vector_that_is_no_number_is_given_on_and_not_stored(tmp_path):
    replies = stored_in(tmp_path)
    cached = CachedEmbedder(ScriptedEmbedder(lambda _text: [math.nan]), replies)
    (vector,) = asyncio.run(cached.embed(["a"], Tally()))
    assert math.isnan(vector[0])
    replies.close()
    assert stats(replies.path) == [] and len(replies.said) == 1


# -- a file that is no good


@pytest.mark.parametrize("mode", ["read_write", "read_only"])
def test_a_broken_file_is_said_once_and_every_question_asked(tmp_path, mode):
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"not a database at all, " * 400)
    before = path.read_bytes()
    replies = Replies(path, mode)
    judge = ScriptedJudge([1, 2])
    assert [ask(Cached(judge, replies), RATING).value for _ in range(2)] == [1, 2]
    replies.close()
    assert len(replies.said) == 1 and str(path) in replies.said[0]
    assert path.read_bytes() == before, "somebody's file is left alone"


def test_a_broken_file_ends_a_replay_before_it_begins(tmp_path):
    (tmp_path / "cache.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(ConfigError, match="replay needs the stored replies"):
        stored_in(tmp_path, "replay")
    with pytest.raises(ConfigError, match="no such file"):
        Replies(tmp_path / "none.sqlite", "replay")
    assert not (tmp_path / "none.sqlite").exists()


def test_the_database_of_another_program_is_not_written_to(tmp_path):
    path = tmp_path / "cache.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    replies = Replies(path, "read_write")
    assert ask(Cached(ScriptedJudge([1]), replies), RATING).value == 1
    replies.close()
    assert "another program" in replies.said[0]
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("bookmarks",)]
    other.close()


def test_a_file_of_a_later_format_is_left_alone(tmp_path):
    path = filled(tmp_path, (RATING, 2))
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    replies = Replies(path, "read_only")
    assert ask(Cached(ScriptedJudge([1]), replies), RATING).value == 1
    assert "format is 99" in replies.said[0]


@pytest.mark.parametrize("broken", ["{", '"2"', '{"value": 9, "raw": "9", "usage": {}}', "null"])
def test_a_broken_entry_is_a_miss_and_is_replaced(tmp_path, broken):
    path = filled(tmp_path, (RATING, 2), (VERDICT, {"reason": "r", "verdict": True}))
    with sqlite3.connect(path) as file:
        file.execute("UPDATE replies SET answer = ?", (broken,))
    file.close()
    replies = stored_in(tmp_path)
    judge = ScriptedJudge([1, {"reason": "r", "verdict": False}])
    cached = Cached(judge, replies)
    assert ask(cached, RATING).value == 1
    assert ask(cached, VERDICT).value.verdict is False
    replies.close()
    assert replies.said in ([], [f"cache {path}: a stored reply cannot be read and is asked for again"])
    assert (replies.said == []) == (broken == "null")
    again = stored_in(tmp_path, "replay")
    assert ask(Cached(ScriptedJudge([]), again), RATING).value == 1
    again.close()


def test_pages_that_are_damaged_later_on_are_a_miss(tmp_path):
    questions = [replace(RATING, prompt=Prompt("Rate it.", (), {"answer": "x" * 300 + str(n)})) for n in range(200)]
    path = filled(tmp_path, *((one, 1) for one in questions))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    replies = Replies(path, "read_only")
    judge = ScriptedJudge(lambda _question: 2)
    cached = Cached(judge, replies)
    found = [ask(cached, one).value for one in questions]
    replies.close()
    assert set(found) <= {1, 2} and judge.questions, "what is readable may still be used"
    assert len(replies.said) == 1


def test_a_folder_that_cannot_be_made_is_said_and_nothing_fails():
    replies = Replies(Path("/proc/nowhere/cache.sqlite"), "read_write")
    assert ask(Cached(ScriptedJudge([1]), replies), RATING).value == 1
    replies.close()
    assert len(replies.said) == 1 and "cannot be used" in replies.said[0]


def test_a_file_that_may_only_be_read_is_used_and_not_added_to(tmp_path, monkeypatch):
    filled(tmp_path, (RATING, 2))

    def refused(path, *, write):
        if write:
            raise sqlite3.OperationalError("attempt to write a readonly database")
        return connect(path, write=False)

    monkeypatch.setattr("ragparity.cache.connect", refused)
    replies = stored_in(tmp_path)
    judge = ScriptedJudge(["text"])
    assert ask(Cached(judge, replies), RATING).value == 2
    assert ask(Cached(judge, replies), TEXT).value == "text"
    replies.close()
    assert len(replies.said) == 1 and "cannot be written" in replies.said[0]
    assert sum(group.replies for group in stats(replies.path)) == 1


def test_reading_only_leaves_the_file_and_its_folder_as_they_are(tmp_path):
    path = filled(tmp_path, (RATING, 2))
    before = path.read_bytes()
    replies = stored_in(tmp_path, "read_only")
    judge = ScriptedJudge([2, 2])
    assert ask(Cached(judge, replies), RATING).value == 2
    assert ask(Cached(judge, replies), replace(RATING, draw=1)).value == 2
    replies.close()
    assert len(judge.questions) == 1 and path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["cache.sqlite"]


def test_a_full_disk_ends_the_storing_and_not_the_run(tmp_path):
    replies = stored_in(tmp_path)
    judge = ScriptedJudge(lambda _question: "x" * 20_000)
    with sqlite3.connect(replies.path) as other:
        pages = other.execute("PRAGMA page_count").fetchone()[0]
    other.close()

    def small(path, *, write):
        connection = connect(path, write=write)
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")  # SQLite then says what it says on a full disk
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragparity.cache.connect", small)
        for number in range(30):
            assert ask(Cached(judge, replies), replace(TEXT, draw=number)).value == "x" * 20_000
        replies.close()
    assert len(replies.said) == 1 and "full" in replies.said[0]
    assert len(judge.questions) == 30


# -- several at once


def test_another_process_that_holds_the_file_delays_the_writing_and_not_the_asking(tmp_path):
    replies = stored_in(tmp_path)
    other = sqlite3.connect(replies.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    judge = ScriptedJudge(lambda _question: 1)
    cached = Cached(judge, replies)
    began = time.perf_counter()
    for number in range(20):
        ask(cached, replace(RATING, draw=number))
    assert [ask(cached, replace(RATING, draw=number)).value for number in range(20)] == [1] * 20
    assert time.perf_counter() - began < 2
    assert len(judge.questions) == 20
    other.execute("COMMIT")
    other.close()
    replies.close()
    assert replies.said == []
    assert sum(group.replies for group in stats(replies.path)) == 20


def test_many_threads_with_files_of_their_own_write_every_reply(tmp_path):
    def work(name):
        replies = stored_in(tmp_path)
        judge = ScriptedJudge(lambda _question: 1)
        judge.identity = name
        for number in range(100):
            ask(Cached(judge, replies), replace(RATING, draw=number))
        replies.close()
        problems.extend(replies.said)

    problems = []
    threads = [threading.Thread(target=work, args=(f"judge {number}",)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert problems == []
    assert [(group.judge, group.replies) for group in stats(tmp_path / "cache.sqlite")] == [
        (f"judge {number}", 100) for number in range(4)
    ]


def test_a_thousand_stored_answers_take_a_fraction_of_a_second(tmp_path):
    prompt = Prompt("Rate it.", ("Be strict.",), {"contexts": ["word " * 300] * 4, "answer": "7443"})
    questions = [replace(VERDICT, prompt=prompt, draw=number) for number in range(1000)]
    filled(tmp_path, *((one, {"reason": "because", "verdict": True}) for one in questions))
    replies = stored_in(tmp_path, "replay")
    cached = Cached(ScriptedJudge([]), replies)

    async def all_of_them():
        return [(await cached.ask(one, Tally())).value.verdict for one in questions]

    began = time.perf_counter()
    assert asyncio.run(all_of_them()) == [True] * 1000
    assert time.perf_counter() - began < 1
    replies.close()


# -- looking after it


def test_old_replies_and_those_of_a_judge_can_be_removed(tmp_path):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    filled(tmp_path, (RATING, 1), (TEXT, "a"), identity="openai/old", now=lambda: start)
    path = filled(tmp_path, (RATING, 1), identity="openai/new", now=lambda: start + timedelta(days=40))
    groups = stats(path)
    assert [(one.judge, one.replies) for one in groups] == [("openai/new", 1), ("openai/old", 2)]
    assert groups[1].oldest == groups[1].newest == "2026-01-01T00:00:00+00:00"
    assert prune(path, before=start) == 0
    assert prune(path, before=start + timedelta(days=1), judge="new") == 0
    assert prune(path, before=start + timedelta(days=1)) == 2
    assert prune(path, judge="openai/n") == 1
    assert stats(path) == []


def test_pruning_gives_the_room_back_and_all_means_all(tmp_path):
    path = filled(tmp_path, *((replace(TEXT, draw=number), "x" * 5000) for number in range(100)))
    before = path.stat().st_size
    assert prune(path) == 100
    assert path.stat().st_size < before / 5


def test_upkeep_of_what_is_no_cache_is_one_clear_line(tmp_path):
    for text in (b"", b"x" * 5000):
        (tmp_path / "f").write_bytes(text)
        with pytest.raises(ConfigError, match="not a cache"):
            stats(tmp_path / "f")
    with pytest.raises(ConfigError, match="no such file"):
        prune(tmp_path / "none")


def test_the_file_is_plain_json_and_holds_no_prompt_data(tmp_path):
    path = filled(tmp_path, (RATING, Answer(2, "2", reason="good")))
    with sqlite3.connect(path) as file:
        (answer,) = file.execute("SELECT answer FROM replies").fetchone()
    file.close()
    assert json.loads(answer)["value"] == 2 and json.loads(answer)["reason"] == "good"
    assert b"7443" not in path.read_bytes()
