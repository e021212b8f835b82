"""CPU time per judge call, native metric to wire and back, against the same `ChatOpenAI.ainvoke` in the same run.

Run `python -m tests.benchmarks.bench_adapter` in the project folder, with the package installed as a wheel or
with bytecode allowed (`PYTHONDONTWRITEBYTECODE` unset), so that nothing is compiled while it is measured. The
server is a process of its own, so its work does not count. Rounds of both kinds alternate; the ratio is that of
the medians.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from tests.fakeserver import ServerProcess

from ragparity.core.ports import Answer, Kit, Question, Tally
from ragparity.core.sample import Sample
from ragparity.middleware import Lane, Retrying
from ragparity.registry import NativeBackend
from ragparity_adapters import llms, schemas
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CONCURRENCY = 16
CONTEXT = "The tower was finished in 1889 and is 330 metres tall. " * 20
SAMPLE = Sample(
    id="1",
    user_input="How tall is the tower?",
    response="The tower is 330 metres tall.",
    reference="330 metres.",
    retrieved_contexts=(CONTEXT, CONTEXT),
)


class Recording:
    """A judge that keeps the questions it is asked, to put the same ones to the plain client."""

    identity = "recording"

    def __init__(self, judge: Any) -> None:
        self.judge = judge
        self.questions: list[Question] = []

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """Pass a question on."""
        self.questions.append(question)
        answer: Answer = await self.judge.ask(question, tally)
        return answer


async def cpu_per_call(one: Callable[[], Awaitable[Any]], times: int, calls_each: int) -> float:
    """Seconds of CPU time per call, `times` repetitions at bounded concurrency."""
    left = iter(range(times))

    async def worker() -> None:
        for _ in left:
            await one()

    begun = time.process_time()
    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    return (time.process_time() - begun) / (times * calls_each)


async def compare(base_url: str, metric_name: str, times: int, rounds: int) -> tuple[float, float]:
    """Median CPU seconds per call: the plain client, and the metric through the whole layer."""
    spec = llms.LlmSpec(name="judge", type="openai", model_name="m", base_url=base_url, api_key="k")
    endpoint = llms.build(spec)
    judge = Retrying(LangChainJudge(endpoint, JudgeOptions()), Lane("judge", CONCURRENCY), 3)
    metric = NativeBackend().build(metric_name, {})
    recording = Recording(judge)
    await metric.score(SAMPLE, Kit(judge=recording))
    asked = recording.questions
    plain = ChatOpenAI(model="m", base_url=base_url, api_key="k", max_retries=0)  # type: ignore[arg-type]  # as a user writes it
    wired: list[tuple[list[Any], dict[str, Any]]] = []
    for question in asked:
        messages = [SystemMessage(question.prompt.system()), HumanMessage(question.prompt.user())]
        kwargs: dict[str, Any] = {"max_completion_tokens": question.budget}
        if (schema := getattr(question.shape, "schema", None)) is not None:
            kwargs["response_format"] = schemas.response_format(schema)
        wired.append((messages, kwargs))

    async def by_client() -> None:
        await asyncio.gather(*(plain.ainvoke(messages, **kwargs) for messages, kwargs in wired))

    async def by_metric() -> None:
        await metric.score(SAMPLE, Kit(judge=judge))

    for warm in (by_client, by_metric):
        await cpu_per_call(warm, 2 * CONCURRENCY, len(asked))
    seen: dict[str, list[float]] = {"client": [], "metric": []}
    for _ in range(rounds):
        seen["client"].append(await cpu_per_call(by_client, times, len(asked)))
        seen["metric"].append(await cpu_per_call(by_metric, times, len(asked)))
    await endpoint.aclose()
    return statistics.median(seen["client"]), statistics.median(seen["metric"])


def main() -> None:
    """Print one line per metric."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    for metric_name in ("AnswerAccuracy", "Faithfulness"):
        with ServerProcess() as server:
            client, metric = asyncio.run(compare(server.base_url, metric_name, chosen.times, chosen.rounds))
        print(
            f"{metric_name}: ChatOpenAI.ainvoke {client * 1e3:.2f} ms, ragparity {metric * 1e3:.2f} ms CPU per call, "
            f"ratio {metric / client:.2f}"
        )


if __name__ == "__main__":
    main()
