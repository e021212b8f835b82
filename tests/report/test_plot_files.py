"""The files of plots: where they stand, that they are the same when drawn again, and what is said where none can be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from tests.sides import SAID, compared, people, side
from tests.toys import Toy, install

from ragparity import Crossvalidation, MissingExtra
from ragparity.cli import main
from ragparity.core.errors import MalformedVerdict
from ragparity.evaluation import Finished

ROOT = Path(__file__).resolve().parents[2]
KINDS = ["bland_altman", "ecdf", "heat_map", "scatter"]
LEFT = {"a": 1.0, "b": 0.5, "c": 0.0, "d": 0.75, "e": MalformedVerdict("no verdicts in it")}
RIGHT = {"a": 1.0, "b": 0.0, "c": 0.25, "d": 0.75, "e": 1.0}
HUMAN = {"a": 1, "b": 1, "c": 0, "d": 1, "e": 0}
SIGNATURES = {".png": b"\x89PNG", ".svg": b"<?xml"}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def drawing():
    """For tests that draw."""
    return pytest.importorskip("matplotlib", reason="needs the extra stats")


@pytest.fixture
def without_matplotlib(monkeypatch):
    """An environment that has no matplotlib."""
    for name in [one for one in sys.modules if one.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def write(name="faith", backends=("left", "right"), **more):
    rows = [
        {"id": row, "question": f"Question {row}?", "answer": "x", "generated_answer": "a secret", "human": HUMAN[row]}
        for row in LEFT
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    entry = {"_type": "ragparity_crossvalidate", "metric": "Faithfulness", "backends": list(backends), **more}
    general = {"output_dir": "out", "dataset": {"_type": "jsonl", "file_path": "rows.jsonl"}}
    content = {"eval": {"general": general, "evaluators": {name: entry}}}
    Path("eval.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


def ragparity(*arguments):
    return CliRunner().invoke(main, [*arguments], catch_exceptions=False)


def crossvalidated(*arguments):
    return ragparity("crossvalidate", "eval.yml", "--quiet", *arguments)


def drawn(folder="out/plots"):
    return sorted(one.name for one in Path(folder).iterdir()) if Path(folder).is_dir() else []


def both(stem, kinds):
    return sorted(f"{stem}_{kind}.{end}" for kind in kinds for end in ("png", "svg"))


# -- the command


def test_a_comparison_is_drawn_where_that_is_asked_for_and_only_there(monkeypatch, drawing):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write()
    done = crossvalidated("--plots", "--labels", "human")
    assert done.exit_code == 0, done.output
    assert drawn() == both("faith", [*KINDS, "labels"])
    assert all(one.read_bytes().startswith(SIGNATURES[one.suffix]) for one in Path("out/plots").iterdir())
    assert done.stdout.endswith("\nplots: out/plots (5, each as PNG and SVG)\n")
    Path("out/plots/mine_scatter.png").write_bytes(b"of another program")
    assert crossvalidated().exit_code == 0
    assert drawn() == ["mine_scatter.png"], "the plots of the run before are gone with it"
    Path("out/plots/mine_scatter.png").unlink()
    assert crossvalidated("--plots").exit_code == 0 and drawn() == both("faith", KINDS)
    assert crossvalidated().exit_code == 0 and not Path("out/plots").exists()


def test_what_is_drawn_does_not_get_into_the_json(monkeypatch, drawing):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write()
    done = crossvalidated("--plots", "--json")
    assert json.loads(done.stdout)["metrics"]["faith"]["pairs"][0]["n"] == 4
    assert done.stderr == "plots: out/plots (4, each as PNG and SVG)\n" and "plots" not in done.stdout


def test_odd_names_of_evaluators_are_safe_names_of_files(monkeypatch, drawing):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write("ragas/faith@$x_1$: <b>")
    assert crossvalidated("--plots").exit_code == 0
    assert drawn() == both("ragas_faith@$x_1$_ _b_", KINDS)


def test_with_one_backend_left_there_are_no_pairs_to_draw(monkeypatch, drawing):
    install(monkeypatch, Toy("left", LEFT))
    write(backends=("left", "absent"))
    assert crossvalidated("--plots", "--labels", "human").exit_code == 0
    assert drawn() == both("faith", ["ecdf", "labels"])


def test_a_run_that_a_budget_ends_says_partial_in_its_plots(monkeypatch, drawing):
    from ragparity.report import plots

    names = []
    monkeypatch.setattr(plots.pairs, "scatter", lambda _one, name, _tolerance: names.append(name) or new_figure())

    def new_figure():
        from matplotlib.figure import Figure

        return Figure()

    found = compared(side("left", [0, 0.5, 1]), side("right", [0, 1, 1]))
    for stopped in ("the budget of 5 calls is spent", ""):
        Crossvalidation({"faith": found}, finished=Finished({}, stopped=stopped)).plot("plots")
    assert names == ["faith (partial)", "faith"]


def test_a_finished_run_is_drawn_against_people_and_the_next_calibration_takes_that_away(monkeypatch, drawing):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write()
    assert crossvalidated("--plots").exit_code == 0
    done = ragparity("calibrate", "out", "--labels", "human", "--plots")
    assert done.exit_code == 0, done.output
    labels = [*both("faith@left", ["labels"]), *both("faith@right", ["labels"])]
    assert drawn() == sorted([*both("faith", KINDS), *labels])
    assert "plots: out/plots (2, each as PNG and SVG)" in done.stdout
    assert ragparity("calibrate", "out", "--labels", "human").exit_code == 0
    assert drawn() == both("faith", KINDS)
    ragparity("calibrate", "out", "--labels", "human", "--plots")
    assert crossvalidated().exit_code == 0 and drawn() == []


def test_the_offline_judge_is_drawn_from_end_to_end(drawing):
    pytest.importorskip("openevals", reason="needs the extra openevals")
    rows = [json.loads(line) for line in (ROOT / "configs/data/demo.jsonl").read_text(encoding="utf-8").splitlines()]
    write()
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    content = yaml.safe_load(Path("eval.yml").read_text(encoding="utf-8"))
    content["eval"]["evaluators"] = {
        "grounded": {
            "_type": "ragparity_crossvalidate", "metric": "ResponseGroundedness", "backends": ["native", "openevals"],
            "llm_name": "offline",
        }
    }  # fmt: skip
    Path("eval.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    assert crossvalidated("--plots").exit_code == 0
    assert drawn() == both("grounded", KINDS)


def test_a_plot_that_cannot_be_written_is_one_line_and_the_agreement_is_kept(monkeypatch, drawing):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write()
    Path("out").mkdir()
    Path("out/plots").write_bytes(b"a file where the folder should be")
    done = crossvalidated("--plots")
    assert done.exit_code == 2 and "Traceback" not in done.stderr
    assert "ragparity: out: File exists; what was scored before is kept" in done.stderr
    assert Path("out/agreement.json").exists()


# -- without matplotlib


@pytest.mark.parametrize("command", [["crossvalidate", "eval.yml"], ["calibrate", "out", "--labels", "human"]])
def test_without_matplotlib_plots_are_one_line_that_says_what_to_install(monkeypatch, without_matplotlib, command):
    left = Toy("left", LEFT)
    install(monkeypatch, left, Toy("right", RIGHT))
    write()
    done = ragparity(*command, "--plots")
    assert done.exit_code == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("ragparity: --plots: plots need matplotlib, which does not import (")
    assert line.endswith("Install it with: pip install 'ragparity[stats]'")
    assert not left.asked and not Path("out").exists(), "that is said before anything is scored"


def test_without_matplotlib_everything_else_is_as_it_was(monkeypatch, without_matplotlib):
    install(monkeypatch, Toy("left", LEFT), Toy("right", RIGHT))
    write()
    done = crossvalidated("--labels", "human")
    assert done.exit_code == 0 and "plots" not in done.output and not Path("out/plots").exists()
    assert ragparity("calibrate", "out", "--labels", "human").exit_code == 0


def test_from_a_program_the_missing_extra_is_an_error(without_matplotlib):
    found = Crossvalidation({"faith": compared(side("left", [0, 0.5, 1]), side("right", [0, 1, 1]))})
    with pytest.raises(MissingExtra, match="ragparity\\[stats\\]"):
        found.plot("plots")


# -- the same files every time

SCRIPT = """
import sys
from tests.report.test_plot_files import pictured
pictured().plot(sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules, "no window is opened and no figure of a program is touched"
"""


def pictured():
    left = [0.0, 0.25, 0.5, 1.0, 0.75, None, 1.0, 1.0]
    right = [0.25, 0.25, 0.75, 0.5, None, 0.0, 1.0, 0.9]
    labels = people([0, 0, 1, 1, 1, 0, 1, 1])
    return Crossvalidation({"faith": compared(side("left", left), side("right", right), labels=labels)})


def contents(folder):
    return {one.name: one.read_bytes() for one in Path(folder).iterdir()}


def test_what_is_drawn_again_is_the_same_file_in_any_process_and_under_any_settings(drawing):
    first = pictured().plot("first")
    assert [one.name for one in first][:2] == ["faith_scatter.png", "faith_scatter.svg"] and len(first) == 10
    with drawing.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.hashsalt": "mine", "text.usetex": True}):
        before = dict(drawing.rcParams)
        pictured().plot("second")
        assert dict(drawing.rcParams) == before, "the settings of a program are left as they were"
    environment = {**os.environ, "PYTHONHASHSEED": "3", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "third"], capture_output=True, text=True, env=environment, check=True
    )
    assert (done.stdout, done.stderr) == ("", ""), "nothing is said of fonts and caches"
    assert contents("first") == contents("second") == contents("third")


def test_nothing_that_was_said_of_a_row_is_in_a_plot(drawing):
    for path in pictured().plot("plots"):
        content = path.read_bytes()
        assert SAID.encode() not in content and b"row 3" not in content
        if path.suffix == ".svg":
            assert b"left" in content, "names of backends are"
            assert b"<dc:date>" not in content and b"http://www.w3.org/2000/svg" in content


def test_many_rows_make_no_large_file(drawing):
    import numpy as np

    values = np.random.default_rng(1).random((2, 2500))  # below the number from which on hexagons are drawn
    found = compared(side("left", values[0]), side("right", values[1]))
    sizes = {one.name: one.stat().st_size for one in Crossvalidation({"faith": found}).plot("plots")}
    assert len(sizes) == 8 and max(sizes.values()) < 600_000, sizes
