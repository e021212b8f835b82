"""What wrapping costs: a Ragas class behind our judge, against the same class called by hand.

Run `python -m tests.benchmarks.bench_ragas_wrapping` in the project folder, with the extra `ragas` installed. By
hand means Ragas' own way: `llm_factory` with an `AsyncOpenAI` client, and a semaphore. Both score the same rows on
the same server (a process of its own) with the same number in flight; rounds alternate, and the ratio is that of
the fastest rounds. At most 1.10 is wanted. On a machine that does other things too, the ratio of CPU time says
more than that of the clock, so both are printed, and only both together fail.
"""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

from openai import AsyncOpenAI
from tests.fakeserver import ServerProcess

from ragparity.core.row import Row
from ragparity.core.sample import Sample
from ragparity.middleware import Lane, Retrying
from ragparity.runner import Evaluator, run
from ragparity_adapters import llms
from ragparity_adapters.backends import ragas, ragas_legacy
from ragparity_adapters.backends._ragas_import import load
from ragparity_adapters.langchain import JudgeOptions, LangChainJudge

if TYPE_CHECKING:
    from ragparity.results import Record

ROWS, IN_FLIGHT, LATENCY, ROUNDS = 160, 16, 0.05, 3
WANTED = 1.10
CONTEXT = "The tower was finished in 1889 and is 330 metres tall. " * 20


def samples() -> list[Sample]:
    """Rows that differ, so that nothing can be answered once for two."""
    return [
        Sample(
            id=str(number),
            user_input=f"How tall is tower {number}?",
            response=f"Tower {number} is 330 metres tall.",
            reference=f"Tower {number}: 330 metres.",
            retrieved_contexts=(CONTEXT, CONTEXT),
        )
        for number in range(ROWS)
    ]


Way = tuple[Callable[[], Awaitable[list[float]]], Callable[[], Awaitable[None]]]


async def by_hand(base_url: str, name: str) -> Way:
    """Ragas' own way to score the rows with a collections class."""
    from ragas.llms import llm_factory

    client = AsyncOpenAI(base_url=base_url, api_key="x", max_retries=0)
    metric = load().collections[name](llm=llm_factory("m", client=client))
    fields = [one.replace("messages", "user_input") for one in ragas.backend().find(name)[0].reads]
    room = asyncio.Semaphore(IN_FLIGHT)

    async def one(sample: Sample) -> float:
        given: dict[str, Any] = {
            field: list(value) if isinstance(value := getattr(sample, field), tuple) else value for field in fields
        }
        async with room:
            result = await metric.ascore(**given)
        return float(result.value)

    async def rounds() -> list[float]:
        return list(await asyncio.gather(*(one(sample) for sample in samples())))

    return rounds, client.close


async def wrapped(base_url: str, backend: Any, name: str) -> Way:
    """The same class behind our judge, through the runner."""
    spec = llms.LlmSpec(name="judge", type="openai", model_name="m", base_url=base_url, api_key="x")
    endpoint = llms.build(spec)
    judge = Retrying(LangChainJudge(endpoint, JudgeOptions()), Lane("judge", IN_FLIGHT), 0)
    evaluator = Evaluator(name=name, metric=backend.build(name, {}), judge=judge)

    async def rounds() -> list[float]:
        records: list[Record] = []
        rows = [(Row(number, sample.id, sample),) for number, sample in enumerate(samples())]
        await run(rows, [evaluator], lambda made: records.extend(one for one, _ in made), concurrency=IN_FLIGHT)
        failed = [one for one in records if one.score is None]
        if failed:
            raise RuntimeError(f"{len(failed)} rows without a score, first: {failed[0]}")
        return [one.score for one in records if one.score is not None]

    return rounds, endpoint.aclose


async def compare(base_url: str, name: str) -> dict[str, tuple[float, float]]:
    """Seconds of the fastest round of each way: by the clock, and of CPU time."""
    ways: dict[str, Way] = {
        "by hand": await by_hand(base_url, name),
        "ragas": await wrapped(base_url, ragas.backend(), name),
        "ragas_legacy": await wrapped(base_url, ragas_legacy.backend(), name),
    }
    fastest: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for way, (score, _) in ways.items():
            begun, cpu_begun = time.perf_counter(), time.process_time()
            found = await score()
            seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu_begun
            if len(found) != ROWS:
                raise RuntimeError(f"{way}: {len(found)} of {ROWS} rows")
            before = fastest.get(way, (seconds, cpu))
            fastest[way] = (min(seconds, before[0]), min(cpu, before[1]))
    for _, close in ways.values():
        await close()
    return fastest


def main() -> None:
    """Print the ratios; end with 1 where wrapping a class costs more than is wanted."""
    warnings.simplefilter("ignore")
    load()
    worst = 0.0
    for name, reply in (("Faithfulness", None), ("AnswerAccuracy", '{"rating": 4}')):
        with ServerProcess(latency=LATENCY, **({"reply": reply} if reply else {})) as server:
            fastest = asyncio.run(compare(server.base_url, name))
        clock, cpu = (fastest["ragas"][which] / fastest["by hand"][which] for which in (0, 1))
        worst = max(worst, min(clock, cpu))
        shown = ", ".join(
            f"{way} {seconds:.2f} s (CPU {cpu_used:.2f} s)" for way, (seconds, cpu_used) in fastest.items()
        )
        print(f"{name}: wrapped / by hand = {clock:.2f}, CPU {cpu:.2f} (wanted: at most {WANTED:.2f}); {shown}")
    if worst > WANTED:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
