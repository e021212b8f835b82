"""Beside NVIDIA's own plugin: `_type: ragas` stays its own, unless the name is taken over."""

import json
from pathlib import Path

from tests.fakeserver import FakeServer
from tests.matrix.commands import command, eval_file

BOTH = {"theirs": {"_type": "ragas"}, "ours": {"_type": "ragparity"}}


def main() -> None:
    def best(request):
        return {"rating": 4} if request.body.get("response_format") else "4"

    with FakeServer(best) as server:
        judge = {"_type": "openai", "model_name": "m", "base_url": server.base_url, "api_key": "sk-invented-1"}
        entries = {name: {**one, "metric": "AnswerAccuracy", "llm_name": "judge"} for name, one in BOTH.items()}
        eval_file(entries, llms={"judge": judge})
        for taken, owners in (("", {"theirs": False, "ours": True}), ("ragas", {"theirs": True, "ours": True})):
            command("nat", "eval", "--config_file", "eval.yml", "--skip_workflow", RAGPARITY_TAKE_OVER=taken)
            for name, is_ours in owners.items():
                output = json.loads(Path(f"out/{name}_output.json").read_text(encoding="utf-8"))
                assert output["average_score"] == 1.0, output
                assert ("n_scored" in output) is is_ours, (taken, name)


if __name__ == "__main__":
    main()
