"""The example files for the toolkit: ready for both doors, and the offline ones run."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fakeserver import FakeServer
from tests.nat.nateval import evaluate_file, items, scores

from ragparity.cli import main

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "configs/nat").glob("*.yml"))
RAGAS = pytest.mark.skipif(find_spec("ragas") is None, reason="needs the extra ragas")


@pytest.fixture(autouse=True)
def _with_the_data_at_hand(tmp_path, monkeypatch):
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    for name in ("JUDGE_URL", "JUDGE_MODEL", "NVIDIA_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_ready_for_the_command_too(path):
    if path.stem in ("drop_in", "side_by_side") and find_spec("ragas") is None:
        pytest.skip("needs the extra ragas")
    done = CliRunner().invoke(main, ["check", str(path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def run(name):
    return evaluate_file(f"configs/nat/{name}.yml", f"out/nat_{name}")


def test_contexts_deep_in_a_column():
    found = run("context_column")
    # The second answer is made up; the wanted passage of the third row was not among the two that were found.
    assert scores(found["faithfulness"]) == {"port": 1.0, "restart": 0.0, "logs": 1.0}
    assert scores(found["found"]) == {"port": 1.0, "restart": 1.0, "logs": 0.0}


def test_a_recorded_agent():
    found = run("agent_trace")
    assert scores(found["faithfulness"]) == {"port": 1.0, "restart": 0.0}
    assert scores(found["trajectory_faithfulness"]) == scores(found["faithfulness"])
    # One call was made in each row; in the second, another one was wanted too: precision 1, recall 1/2.
    assert scores(found["tool_calls"]) == {"port": 1.0, "restart": pytest.approx(2 / 3)}


@RAGAS
def test_two_implementations_side_by_side():
    found = run("side_by_side")
    for row, item in items(found["both"]).items():
        sides = {name: scores(found[name])[row] for name in ("native", "ragas")}
        assert item["reasoning"]["scores"] == sides


@RAGAS
def test_a_file_of_nvidias_own_plugin(monkeypatch):
    with FakeServer(reply="2", personality="nim") as server:
        monkeypatch.setenv("JUDGE_URL", server.base_url)
        found = run("drop_in")
    assert {name: output["average_score"] for name, output in found.items()} == {
        "rag_accuracy": 0.5, "rag_groundedness": 1.0, "rag_relevance": 1.0,
    }  # fmt: skip
