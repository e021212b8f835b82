"""Ragas that is absent, too old or broken; and what importing and running it leaves alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.adapters.backends.ragas_world import COLLECTIONS

from ragparity import catalogue
from ragparity.core.errors import MissingExtra
from ragparity_adapters.backends import _ragas_import as importing

ROOT = Path(__file__).resolve().parents[3]
BOTH_REMEDIES = "pip install 'ragparity[ragas]', or set backend: native"


@pytest.fixture
def afresh():
    """The memory of the check is emptied before and after."""
    importing.check_installed.cache_clear()
    yield
    importing.check_installed.cache_clear()


@pytest.fixture
def absent(monkeypatch, afresh):
    monkeypatch.delitem(sys.modules, "ragas", raising=False)
    monkeypatch.setattr(importing.importlib.util, "find_spec", lambda _name: None)


def test_an_absent_ragas_is_named_with_both_remedies_when_a_metric_is_built(absent):
    with pytest.raises(MissingExtra) as refused:
        COLLECTIONS.build("Faithfulness", {})
    assert str(refused.value) == f"Ragas is not installed: {BOTH_REMEDIES}"


def test_an_absent_ragas_still_has_its_metrics_listed_with_the_reason_why_they_cannot_be_used(absent):
    rows = list(catalogue.rows("ragas"))
    assert rows[0][:2] == ("ragas", "(cannot be used)")
    assert "not installed" in rows[0][2]
    assert ("ragas", "NoiseSensitivity", "user_input, response, reference, retrieved_contexts") in [
        one[:3] for one in rows
    ]


def test_a_ragas_that_is_too_old_is_refused(monkeypatch, afresh):
    monkeypatch.setattr(importing.metadata, "version", lambda _name: "0.3.9")
    with pytest.raises(MissingExtra, match=r"Ragas 0\.3\.9 is installed, but 0\.4 is the oldest"):
        importing.check_installed()


def test_a_package_without_the_module_that_ragas_imports_does_not_count_as_met(monkeypatch):
    assert importing._unmet() == []
    monkeypatch.setitem(importing.IMPORTED_BY_RAGAS, "langchain-community", "langchain_community/gone.py")
    assert importing._unmet() == ["langchain-community"]


def test_what_does_not_fit_is_imported_for_its_real_cause(monkeypatch, afresh):
    monkeypatch.setitem(importing.IMPORTED_BY_RAGAS, "langchain-community", "langchain_community/gone.py")
    monkeypatch.setattr(importing, "_ragas", None)

    def broken(name):
        raise ModuleNotFoundError("No module named 'langchain_community.chat_models.vertexai'", name=name)

    monkeypatch.setattr(importing.importlib, "import_module", broken)
    with pytest.raises(MissingExtra) as refused:
        COLLECTIONS.build("Faithfulness", {})
    said = str(refused.value)
    assert "No module named 'langchain_community.chat_models.vertexai'" in said
    assert "langchain-community 0.4" in said
    assert said.endswith(BOTH_REMEDIES)
    assert isinstance(refused.value.__cause__, ModuleNotFoundError)


def test_a_ragas_that_breaks_while_it_is_imported_ends_the_run_before_the_data_is_read(tmp_path):
    (tmp_path / "ragas").mkdir()
    (tmp_path / "ragas/__init__.py").write_text("raise ImportError('no parking')", encoding="utf-8")
    (tmp_path / "eval.yml").write_text(
        json.dumps(
            {
                "eval": {
                    "general": {"output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}},
                    "evaluators": {"f": {"_type": "ragas", "metric": "Faithfulness", "llm_name": "offline"}},
                }
            }
        ),
        encoding="utf-8",
    )
    (tmp_path / "rows.jsonl").write_text("", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "ragparity", "eval", "eval.yml"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 2, done.stderr
    assert "eval.evaluators.f: Ragas is installed but does not import: ImportError: no parking" in done.stderr
    assert BOTH_REMEDIES in done.stderr
    assert not (tmp_path / "out").exists()


RUN = """
import asyncio, json, os, socket, sys, threading
allowed = []
def guard(address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        allowed.append(repr(address))
        raise OSError(f"no connection to {address}")
def watch(event, args):
    if event == "socket.connect":
        guard(args[1])
    if event == "socket.getaddrinfo" and args[0] not in ("127.0.0.1", "localhost", None):
        guard((args[0],))
sys.addaudithook(watch)
before = {name: getattr(asyncio, name) for name in dir(asyncio)}
policy = asyncio.get_event_loop_policy().__class__

from ragparity import evaluate
from ragparity_adapters.backends import ragas, ragas_legacy
from ragparity_adapters.backends._ragas_import import load

rows = [{"question": "How long?", "answer": "Thirty days.", "ground_truth": "Thirty days.",
         "contexts": ["Returns take thirty days."]}]
names = ["Faithfulness", "AnswerAccuracy", "ContextRecall", "AnswerRelevancy", "SemanticSimilarity"]
results = [
    evaluate(rows, metrics=[f"{backend}/{name}" for backend in ("ragas", "ragas_legacy") for name in names],
             judge="offline", embedder="offline")
    for _ in range(2)
]
importers = []
assert "RAGAS_DO_NOT_TRACK" in os.environ and os.environ["RAGAS_DO_NOT_TRACK"] == "true"
import ragas._analytics as analytics
analytics._analytics_batcher.flush()
print(json.dumps({
    "status": [[one.status for one in result.records] for result in results],
    "scores": [[one.score for one in result.records] for result in results],
    "foreign": allowed,
    "asyncio": [name for name, one in before.items() if getattr(asyncio, name) is not one],
    "policy": asyncio.get_event_loop_policy().__class__ is policy,
    "id": analytics.get_userid(),
}))
"""


def test_running_both_apis_sends_nothing_writes_nothing_at_home_and_leaves_asyncio_alone(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAGAS", "XDG", "OPENAI"))}
    environment |= {"HOME": str(home), "USERPROFILE": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["status"] == [["scored"] * 10] * 2
    assert found["scores"][0] == found["scores"][1]
    assert found["foreign"] == []
    assert found["asyncio"] == []
    assert found["policy"]
    assert found["id"].startswith("anonymous-")
    assert [str(one.relative_to(home)) for one in home.rglob("*")] == []
    assert "Deprecat" not in done.stderr


def test_the_printed_list_spells_the_remedy_out_in_full(absent, capsys):
    catalogue.print_list(sys.stdout, "ragas")
    assert "'ragparity[ragas]'" in capsys.readouterr().out
