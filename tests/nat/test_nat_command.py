"""The toolkit's command itself, as a user runs it."""

import json
from pathlib import Path

from tests.fakeserver import FakeServer, unauthorized
from tests.nat.nateval import ACCURACY, PORT, SIZE, command, eval_file, judge_at, outputs, scores


def test_the_command_scores_a_file_and_prints_its_table():
    with FakeServer(reply="2") as server:
        evaluators = {"accuracy": ACCURACY, "exact": {"metric": "ExactMatch"}, "typo": {"metric": "ExactMath"}}
        eval_file(evaluators, rows=[PORT, SIZE], llms=judge_at(server))
        code, said = command("--skip_workflow")
    assert code == 0, said
    found = outputs()
    assert scores(found["accuracy"]) == {"port": 0.5, "size": 0.5}
    assert "| accuracy    | 0.5000" in said
    assert "| typo        | None" in said and "Did you mean ExactMatch?" in said
    effective = json.loads(Path("out/config_metadata.json").read_text(encoding="utf-8"))
    assert effective["skip_workflow"] is True


def test_a_wrong_key_ends_the_command_before_anything_is_asked():
    with FakeServer(reply="4") as server:
        eval_file({"accuracy": {**ACCURACY, "backends": ["native"]}}, llms=judge_at(server))
        code, said = command("--skip_workflow")
        assert server.calls == 0
    assert code != 0
    assert "evaluator AnswerAccuracy (_type: ragparity): backends: unknown key; did you mean backend?" in said
    assert not Path("out").exists()


def test_a_setting_can_be_overridden_and_a_dead_judge_is_no_number():
    with FakeServer(reply=unauthorized()) as server:
        eval_file({"accuracy": ACCURACY}, rows=[PORT], llms=judge_at(server))
        code, said = command("--skip_workflow", "--override", "eval.evaluators.accuracy.reps", "2")
    assert code == 0
    found = outputs()["accuracy"]
    assert found["average_score"] is None and found["errors"] == {"auth": 1}
    assert "| accuracy    | None" in said
