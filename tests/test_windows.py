"""`check` and a context window that the file names: rows that cannot fit are said before the run, and no others."""

import pytest
from tests import runs
from tests.fakeserver import FakeServer

ROW = runs.rows(1)[0]
LONG = {
    **ROW,
    "id": "long",
    "contexts": [f"The gateway {n} listens on port {n}. " * 20 for n in range(5)],
}  # 3,500 letters
BIG = {**ROW, "id": "big", "contexts": ["The gateway listens on a port. " * 120]}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def warnings(metric, rows, window, **judge):
    entry = {"metric": metric, "llm_name": "judge", "judge": {"context_window": window, **judge}}
    with FakeServer() as server:
        runs.write({"e": entry}, rows, server)
        said = runs.command("check", "eval.yml")
        assert server.calls == 0
        runs.command("eval", "eval.yml")
    assert said.exit_code == 0
    return [line for line in said.output.splitlines() if "context_window" in line], runs.summary()["e"]["errors"]


def test_a_row_that_a_metric_cannot_split_is_named_with_its_size():
    (line,), errors = warnings("ResponseGroundedness", [ROW, LONG, {**ROW, "id": "r2"}], 600)
    assert line.startswith("warning: e: row long does not fit into judge.context_window: about ")
    assert line.endswith("and 8 for the answer, and the window holds 600")
    assert errors == {"context_too_long": 1}


def test_a_window_that_holds_every_row_is_no_matter():
    assert warnings("ResponseGroundedness", [ROW, LONG], 2000) == ([], {})


def test_a_metric_that_asks_in_parts_is_named_where_a_part_is_too_long():
    assert warnings("Faithfulness", [ROW, LONG], 900) == ([], {})
    (line,), errors = warnings("Faithfulness", [ROW, BIG], 900)
    assert "row big" in line and errors == {"context_too_long": 1}


def test_without_a_window_nothing_is_known():
    assert warnings("ResponseGroundedness", [BIG], None) == ([], {})


def test_rows_that_cannot_be_read_are_passed_over():
    broken = {**ROW, "id": "x", "output": "another answer"}
    lines, errors = warnings("ResponseGroundedness", [broken], 600)
    assert lines == [] and errors == {"input": 1}
