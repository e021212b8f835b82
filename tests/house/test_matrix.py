"""The matrix of environments itself; what happens inside them is `make matrix`."""

import subprocess
import sys
import tomllib

import pytest
from tests.matrix import __main__ as matrix
from tests.matrix import entries, environments

NO_OTHERS = {"3.12": None}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "PLACE", tmp_path)
    return tmp_path


def test_every_extra_has_an_environment_of_its_own_and_all_share_one():
    project = tomllib.loads((entries.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    found = {one.name: one for one in entries.entries("python3", NO_OTHERS)[0]}
    assert all(found[name].extras[0] == name and found[name].steps for name in extras)
    assert set(found["all"].extras) == extras
    assert found["base"].extras == ()


def test_an_extra_that_nothing_is_tried_of_is_noticed():
    with pytest.raises(KeyError, match=r"nothing is tried of the extra teapot: write tests/matrix/jobs/teapot\.py"):
        entries.steps_of("teapot")


def test_every_step_of_an_entry_is_a_module_that_is_there():
    for one in entries.entries("python3", {"3.12": "python3.12"})[0]:
        for _, module, *_ in one.steps:
            assert module == "pytest" or (entries.ROOT / f"{module.replace('.', '/')}.py").exists()


def test_a_python_that_is_not_there_is_skipped_with_a_line(place, monkeypatch, capsys):
    monkeypatch.setattr(matrix, "pythons", lambda: NO_OTHERS)
    monkeypatch.setattr(matrix, "build_wheel", lambda python: place / "none.whl")
    assert matrix.main(["base-3.12"]) == 0
    assert "skipped: no python3.12 on the PATH that runs" in capsys.readouterr().out


def test_an_entry_that_fails_has_its_reason_and_its_log_and_the_exit_code_is_1(place, monkeypatch, capsys):
    broken = place / "python"
    broken.write_text("#!/bin/sh\necho no ensurepip here\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    found = [entries.Entry(name="base", python=str(broken), steps=())]
    monkeypatch.setattr(matrix, "entries", lambda python, others: (found, []))
    monkeypatch.setattr(matrix, "build_wheel", lambda python: place / "none.whl")
    assert matrix.main(["base"]) == 1
    line = capsys.readouterr().out.splitlines()[-1]
    log = place / "logs/base.log"
    assert line.endswith(f"failed: making the environment failed: no ensurepip here; see {log}")
    assert log.read_text(encoding="utf-8").startswith(f"$ {broken} -m venv")


def test_a_name_that_is_none_ends_with_2(capsys):
    assert matrix.main(["teapot"]) == 2
    assert "no entry 'teapot'; there is base, " in capsys.readouterr().err


def test_without_a_network_the_line_says_what_is_needed():
    said = "WARNING: Retrying … NewConnectionError('Failed to establish a new connection')\nERROR: No matching distribution"
    assert "nothing can be downloaded" in environments.reason(said, 1)


def test_the_error_of_pip_is_its_reason_and_not_the_notice_after_it():
    said = "$ pip\nERROR: ResolutionImpossible\n[notice] To update, run: pip install --upgrade pip\n"
    assert environments.reason(said, 1) == "ERROR: ResolutionImpossible"


def test_only_this_machine_is_reached_from_an_environment(tmp_path):
    script = (
        "import loopback_only, socket\n"
        "with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "    socket.create_connection(server.getsockname()).close()\n"
        "for far in ('192.0.2.1', 'far.invalid'):\n"
        "    try:\n"
        "        socket.create_connection((far, 80), timeout=5)\n"
        "    except OSError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(environments.GUARD.parent), "REACHED": str(tmp_path / "reached.txt")},
    )  # fmt: skip
    refusal = "only this machine may be reached here"
    assert done.stdout.splitlines() == [f"192.0.2.1: {refusal}", f"far.invalid: {refusal}"]
    assert (tmp_path / "reached.txt").read_text(encoding="utf-8").split() == ["192.0.2.1", "far.invalid"]
