"""The folder of a run: one at a time, strict files, nothing lost and nothing stale."""

import errno
import json
from pathlib import Path

import pytest

from ragparity.core.errors import ConfigError
from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.core.ports import Tally
from ragparity.core.row import Row
from ragparity.core.sample import Sample
from ragparity.folder import Places, RunFolder, read_json, read_records, unfinished
from ragparity.results import json_line, record


def made(outcome, row=0, evaluator="e", key="k"):
    return record(
        row=row, id=f"id-{row}", key=key, evaluator=evaluator, metric="M()", backend="native", judge=None, threshold=None,
        higher_is_better=True, outcome=outcome, tally=Tally(), seconds=0.0,
    )  # fmt: skip


def begin(folder, wanted=(), **manifest):
    return [one for one in folder.begin({"finished": None, **manifest}, wanted) if one is not None]


def written(path, outcomes, *, finished="2026-01-01T00:00:00+00:00", evaluators=(("e", "e"),), **options):
    """A folder with these records."""
    with RunFolder(path, **options) as folder:
        begin(folder)
        for number, outcome in enumerate(outcomes):
            folder.write([(made(outcome, number), Tally())])
        summary = {"evaluators": {name: {"mean": 0.5} for name, _ in evaluators}, "gate": []}
        folder.finish(list(evaluators), summary, {"finished": finished})
    return path


def lines(path, name="results.jsonl"):
    return [json.loads(line) for line in Path(path, name).read_text(encoding="utf-8").splitlines()]


def wanted(*rows, key="k"):
    return [("e", Row(row, f"new-{row}", Sample()), key) for row in rows]


# -- files


@pytest.mark.parametrize(
    "left", [b"", b'{"id": "b", "ra', b'{"id": "b"' + b"x" * 200_000], ids=["whole", "cut", "long"]
)
def test_a_resumed_run_begins_its_lines_after_what_a_crash_cut(tmp_path, left):
    with RunFolder(tmp_path) as folder:
        begin(folder)
    Path(tmp_path, "calls.jsonl").write_bytes(b'{"id": "a"}\n' + left)
    with RunFolder(tmp_path, mode="resume", save_calls="all") as folder:
        begin(folder)
        folder.write([(made(Scored(1.0)), Tally(replies=[{"raw": "4"}]))])
    assert [line["id"] for line in lines(tmp_path, "calls.jsonl")] == ["a", "id-0"]


def test_a_reply_file_that_holds_nothing_but_a_cut_line_begins_anew(tmp_path):
    with RunFolder(tmp_path) as folder:
        begin(folder)
    Path(tmp_path, "calls.jsonl").write_bytes(b'{"id": "a')
    with RunFolder(tmp_path, mode="resume", save_calls="all") as folder:
        begin(folder)
    assert Path(tmp_path, "calls.jsonl").read_bytes() == b""


def test_every_record_is_in_the_file_as_soon_as_it_is_written(tmp_path):
    with RunFolder(tmp_path) as folder:
        begin(folder)
        folder.write([(made(Scored(1.0)), Tally())])
        assert [line["id"] for line in lines(tmp_path)] == ["id-0"]


def test_output_files_are_in_data_order_and_keep_rows_without_a_score(tmp_path):
    with RunFolder(tmp_path) as folder:
        begin(folder)
        for row, outcome in [(2, Scored(0.25)), (0, Undefined("no_claims", "a greeting")), (1, Failed("auth", "401"))]:
            folder.write([(made(outcome, row), Tally())])
        folder.finish([("e", "e")], {"evaluators": {"e": {"mean": 0.25}}}, {"finished": "now"})
    found = read_json(tmp_path / "e_output.json")
    assert found["average_score"] == 0.25
    items = found["eval_output_items"]
    assert [(one["id"], one["score"], one["error"]) for one in items] == [
        ("id-0", None, "undefined: no_claims"),
        ("id-1", None, "auth: 401"),
        ("id-2", 0.25, None),
    ]
    assert items[0]["reasoning"] == {
        "reason": "a greeting",
        "status": "undefined",
        "metric": "M()",
        "backend": "native",
    }


def test_an_evaluator_without_a_record_has_an_empty_output(tmp_path):
    written(tmp_path, [], evaluators=[("e", "e")])
    assert read_json(tmp_path / "e_output.json") == {"average_score": 0.5, "eval_output_items": []}


def test_samples_keep_fields_extra_columns_and_a_hash_and_broken_rows_their_error(tmp_path):
    sample = Sample(id="a", user_input="q", retrieved_contexts=(), extra={"topic": "shop"}, notes=("cut",))
    with RunFolder(tmp_path) as folder:
        begin(folder)
        folder.sample(Row(0, "a", sample))
        folder.sample(Row(1, "b", error="torn"))
    first, second = lines(tmp_path, "samples.jsonl")
    assert first == {
        "id": "a", "user_input": "q", "retrieved_contexts": [], "extra": {"topic": "shop"}, "hash": sample.digest(), "notes": ["cut"],
    }  # fmt: skip
    assert second == {"id": "b", "error": "torn"}


@pytest.mark.parametrize(
    ("save", "ids"), [("none", None), ("failed", ["id-1"]), ("all", ["id-0", "id-1"])], ids=["none", "failed", "all"]
)
def test_raw_replies_are_kept_as_far_as_they_are_wanted(tmp_path, save, ids):
    tally = Tally()
    tally.replies.append({"raw": "4"})
    with RunFolder(tmp_path, save_calls=save) as folder:
        begin(folder)
        folder.write([(made(Scored(1.0), 0), tally)])
        folder.write([(made(Failed("malformed", "m"), 1), tally)])
    path = tmp_path / "calls.jsonl"
    assert path.exists() is (ids is not None)
    if ids is not None:
        assert [(line["id"], line["raw"]) for line in lines(tmp_path, "calls.jsonl")] == [(one, "4") for one in ids]


def test_samples_can_be_left_out(tmp_path):
    with RunFolder(tmp_path, save_samples=False) as folder:
        begin(folder)
        folder.sample(Row(0, "a", Sample()))
    assert not (tmp_path / "samples.jsonl").exists()


# -- one run after the other


def test_entering_a_folder_changes_nothing_in_it(tmp_path):
    written(tmp_path, [Scored(1.0)])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with RunFolder(tmp_path):
        pass
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_finished_run_is_replaced_with_its_output_files_and_nothing_else(tmp_path):
    written(tmp_path, [Scored(1.0)], evaluators=[("e", "e"), ("old", "old")])
    (tmp_path / "mine_output.json").write_text("{}")
    written(tmp_path, [Scored(0.5)])
    assert [line["score"] for line in lines(tmp_path)] == [0.5]
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.jsonl", "samples.jsonl", "calls.jsonl", "summary.json", "manifest.json", "e_output.json", "mine_output.json",
    }  # fmt: skip


def test_an_unfinished_run_is_refused_with_the_ways_out(tmp_path):
    written(tmp_path, [Scored(1.0)], finished=None)
    assert unfinished(tmp_path)
    with pytest.raises(ConfigError, match="unfinished run; continue it with --resume, replace it with --overwrite"):
        RunFolder(tmp_path).__enter__()
    assert len(lines(tmp_path)) == 1
    written(tmp_path, [Scored(1.0), Scored(0.5)], mode="overwrite")
    assert len(lines(tmp_path)) == 2 and not unfinished(tmp_path)


def test_two_runs_cannot_write_to_one_folder_and_the_lock_goes_with_the_run(tmp_path):
    with RunFolder(tmp_path), pytest.raises(ConfigError, match="another run is writing to it"):
        RunFolder(tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []
    with RunFolder(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"output folder .*file/out: cannot be written"):
        RunFolder(tmp_path / "file" / "out").__enter__()


# -- resuming


def test_scored_and_undefined_records_are_kept_and_failed_ones_not(tmp_path):
    written(tmp_path, [Scored(1.0), Undefined("no_claims"), Failed("timeout", "t")])
    with RunFolder(tmp_path, mode="resume") as folder:
        kept = begin(folder, wanted(0, 1, 2))
        assert [(one.row, one.status) for one in kept] == [(0, "scored"), (1, "undefined")]
        folder.write([(made(Scored(0.5), 2), Tally())])
    assert [(line["row"], line["status"]) for line in lines(tmp_path)] == [
        (0, "scored"),
        (1, "undefined"),
        (2, "scored"),
    ]


def test_a_record_under_another_key_is_neither_kept_nor_left_in_the_log(tmp_path):
    written(tmp_path, [Scored(1.0), Scored(0.5)])
    with RunFolder(tmp_path, mode="resume") as folder:
        assert begin(folder, [*wanted(0, key="changed"), *wanted(1)])[0].row == 1
    assert [line["row"] for line in lines(tmp_path)] == [1]


def test_a_kept_record_takes_the_id_that_the_row_has_now(tmp_path):
    written(tmp_path, [Scored(1.0)])
    with RunFolder(tmp_path, mode="resume") as folder:
        assert begin(folder, wanted(0))[0].id == "new-0"
    assert lines(tmp_path)[0]["id"] == "new-0"


def test_records_of_evaluators_and_rows_that_are_gone_leave_the_log(tmp_path):
    written(tmp_path, [Scored(1.0), Scored(1.0)])
    with RunFolder(tmp_path, mode="resume") as folder:
        assert begin(folder, [("other", Row(0, "a", Sample()), "k"), *wanted(7)]) == []
    assert lines(tmp_path) == []


def test_the_last_record_of_a_row_counts(tmp_path):
    with RunFolder(tmp_path) as folder:
        begin(folder)
        for value in (0.25, 0.75):
            folder.write([(made(Scored(value)), Tally())])
    with RunFolder(tmp_path, mode="resume") as folder:
        assert [one.score for one in begin(folder, wanted(0))] == [0.75]
    assert len(lines(tmp_path)) == 1


CUT = [b'{"id": "a", "evalu', b"", b"null\n", b"[]\n", b'{"row": 1}\n', b"\xff\xfe\n", b"{}\n"]


@pytest.mark.parametrize("torn", CUT)
def test_a_line_that_was_cut_by_a_crash_is_left_out_and_the_others_are_kept(tmp_path, torn):
    log = written(tmp_path, [Scored(1.0), Scored(0.5)]) / "results.jsonl"
    log.write_bytes(log.read_bytes() + torn)
    assert [one.score for one in read_records(tmp_path)] == [1.0, 0.5]
    with RunFolder(tmp_path, mode="resume") as folder:
        assert len(begin(folder, wanted(0, 1))) == 2
    assert len(lines(tmp_path)) == 2


def test_until_the_last_record_is_kept_the_earlier_log_stands_untouched(tmp_path):
    written(tmp_path, [Scored(1.0), Scored(0.5)])
    before = (tmp_path / "results.jsonl").read_bytes()
    with RunFolder(tmp_path, mode="resume") as folder:
        steps = folder.begin({"finished": None}, wanted(0, 1))
        while (kept := next(steps)) is None or kept.row < 1:
            assert (tmp_path / "results.jsonl").read_bytes() == before
        assert (tmp_path / "results.jsonl").read_bytes() == before
    assert sorted(path.name for path in tmp_path.glob("*.new")) == [], "a run that did not begin leaves nothing"


def test_a_folder_without_a_run_can_be_resumed(tmp_path):
    with RunFolder(tmp_path / "new", mode="resume") as folder:
        assert begin(folder, wanted(0)) == []


def test_places_are_those_of_the_last_line_of_each_row(tmp_path):
    earlier, other, last = (
        json_line(made(Scored(value), row).as_json()) for value, row in ((1.0, 2), (0.5, 0), (0.25, 2))
    )
    (tmp_path / "results.jsonl").write_bytes(earlier + b"torn\n" + other + last)
    places = Places()
    assert list(places.found_in(tmp_path)) == [0, len(earlier), len(earlier) + 5, len(earlier) + 5 + len(other)]
    with (tmp_path / "results.jsonl").open("rb") as log:
        assert [places.line(log, "e", row) for row in range(4)] == [other, b"", last, b""]
        assert places.line(log, "another", 0) == b""


@pytest.mark.parametrize("name", ["e", 'an "e"', "größer", "back\\slash", ', "row": 9'])
def test_places_are_found_whatever_the_evaluator_is_called_and_the_detail_says(tmp_path, name):
    detail = {"text": '"row": 7, "key": "0"}', "evaluator": "other"}
    line = json_line(
        made(Scored(1.0, '", "evaluator": "x"', detail), 3, evaluator=name, key="0123456789abcdef").as_json()
    )
    (tmp_path / "results.jsonl").write_bytes(b"{}\n" + line)
    places = Places()
    assert list(places.found_in(tmp_path)) == [0, 3]
    with (tmp_path / "results.jsonl").open("rb") as log:
        assert [places.line(log, name, row) for row in (3, 7, 9)] == [line, b"", b""]


# -- a full disk


class Full:
    """A file on a disk that takes a few lines more."""

    def __init__(self, file, left):
        self.file, self.left = file, left

    def write(self, data):
        if self.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= 1
        return self.file.write(data)

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_at_once_and_what_was_written_stays(tmp_path):
    with RunFolder(tmp_path) as folder:
        begin(folder)
        folder._files["results.jsonl"] = Full(folder._files["results.jsonl"], 2)
        for row in range(2):
            folder.write([(made(Scored(1.0), row), Tally())])
        with pytest.raises(OSError, match="No space left"):
            folder.write([(made(Scored(1.0), 2), Tally())])
    assert [line["row"] for line in lines(tmp_path)] == [0, 1]
    assert unfinished(tmp_path)
    with RunFolder(tmp_path, mode="resume") as folder:
        assert len(begin(folder, wanted(0, 1, 2))) == 2


def test_the_manifest_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    written(tmp_path, [Scored(1.0)])

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = (tmp_path / "manifest.json").read_bytes()
    with RunFolder(tmp_path) as folder:
        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(ConfigError, match=r"cannot be written \(No space left"):
            begin(folder)
    assert (tmp_path / "manifest.json").read_bytes() == before
    assert [line["score"] for line in lines(tmp_path)] == [1.0]


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_broken_manifest_is_as_none(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    assert read_json(tmp_path / "manifest.json") is None
    assert not unfinished(tmp_path)


# -- output files


def test_a_run_shows_no_file_beside_its_own_and_its_output_only_when_it_ends(tmp_path):
    with RunFolder(tmp_path) as folder:
        begin(folder)
        folder.write((made(Scored(1.0), row), Tally()) for row in range(3))
        assert {path.name for path in tmp_path.iterdir()} == {
            ".ragparity.lock", "results.jsonl", "samples.jsonl", "calls.jsonl", "manifest.json",
        }  # fmt: skip
        folder.finish([("e", "e")], {"evaluators": {"e": {"mean": 1.0}}}, {"finished": "now"})
        assert [item["id"] for item in read_json(tmp_path / "e_output.json")["eval_output_items"]] == [
            "id-0", "id-1", "id-2",
        ]  # fmt: skip


@pytest.mark.parametrize("order", [[0, 1, 2, 5], [5, 2, 1, 0], [1, 0, 5, 2]])
def test_an_output_file_is_the_same_whatever_the_order_of_completion(tmp_path, order):
    with RunFolder(tmp_path) as folder:
        begin(folder)
        for row in order:
            folder.write([(made(Scored(row / 8, "größer"), row), Tally())])
        folder.finish([("e", "e")], {"evaluators": {"e": {"mean": 0.25}}}, {"finished": "now"})
    lines = (tmp_path / "e_output.json").read_text(encoding="utf-8").splitlines()
    assert (lines[0], lines[-1]) == ('{"average_score": 0.25, "eval_output_items": [', "]}")
    assert [json.loads(line.removesuffix(","))["id"] for line in lines[1:-1]] == ["id-0", "id-1", "id-2", "id-5"]
    assert [line.endswith(",") for line in lines[1:-1]] == [True, True, True, False]


def test_the_last_record_of_a_row_is_the_item_of_the_output(tmp_path):
    with RunFolder(tmp_path) as folder:
        begin(folder)
        for row, value in [(0, 0.25), (1, 0.5), (1, 0.75)]:
            folder.write([(made(Scored(value), row), Tally())])
        folder.finish([("e", "e")], {"evaluators": {"e": {"mean": 0.5}}}, {"finished": "now"})
    assert [item["score"] for item in read_json(tmp_path / "e_output.json")["eval_output_items"]] == [0.25, 0.75]


def test_kept_records_are_in_the_output_and_their_lines_stay_as_they_were(tmp_path):
    written(tmp_path, [Scored(1.0), Scored(0.5)])
    log = (tmp_path / "results.jsonl").read_bytes().replace(b'"seconds": 0.0', b'"seconds": 0.00')
    (tmp_path / "results.jsonl").write_bytes(log)  # the same records, spelled in another way
    same_ids = [("e", Row(row, f"id-{row}", Sample()), "k") for row in range(2)]
    with RunFolder(tmp_path, mode="resume") as folder:
        begin(folder, same_ids)
        folder.write([(made(Scored(0.0), 2), Tally())])
        folder.finish([("e", "e")], {"evaluators": {"e": {"mean": 0.5}}}, {"finished": "now"})
    assert (tmp_path / "results.jsonl").read_bytes().startswith(log)
    assert [item["score"] for item in read_json(tmp_path / "e_output.json")["eval_output_items"]] == [1.0, 0.5, 0.0]


def test_rows_told_while_records_are_kept_replace_the_earlier_ones_together_with_the_log(tmp_path):
    written(tmp_path, [Scored(1.0)])
    (tmp_path / "samples.jsonl").write_text('{"id": "earlier"}\n')

    def rows():
        for row in range(2):
            folder.sample(Row(row, f"id-{row}", Sample(id=f"id-{row}")))
            yield "e", Row(row, f"id-{row}", Sample()), "k"

    with RunFolder(tmp_path, mode="resume") as folder:
        steps = folder.begin({"finished": None}, rows())
        while next(steps) is None:
            pass
        assert [line["id"] for line in lines(tmp_path, "samples.jsonl")] == ["earlier"]
        list(steps)
        assert [line["id"] for line in lines(tmp_path, "samples.jsonl")] == ["id-0", "id-1"]
