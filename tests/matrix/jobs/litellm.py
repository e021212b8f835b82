"""The extra `litellm`: an llm entry of its type asks a server on this machine."""

from tests.fakeserver import FakeServer
from tests.matrix.commands import eval_file, evaluated, scores


def main() -> None:
    with FakeServer(reply="4") as server:
        judge = {"_type": "litellm", "model_name": "openai/m", "base_url": server.base_url, "api_key": "sk-invented-1"}
        accuracy = {"_type": "ragparity", "metric": "AnswerAccuracy", "llm_name": "judge"}
        eval_file({"accuracy": accuracy}, llms={"judge": judge})
        # Every rating is the best one, whatever the answer.
        assert scores(evaluated()["accuracy"]) == {"right": 1.0, "also-right": 1.0, "wrong": 1.0}
        assert server.calls >= 6  # two ratings for each of three rows


if __name__ == "__main__":
    main()
