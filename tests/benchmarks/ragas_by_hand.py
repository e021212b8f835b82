"""A process that scores the seven metrics with Ragas' collections, by hand as its documentation shows it.

Call it with `ragas_by_hand.py BASE_URL ROWS PASSAGES IN_FLIGHT`. One client serves all metrics and rows, and a
semaphore bounds how many scores are worked on at a time; a score that fails is counted, and the others go on.
"""

from __future__ import annotations

import asyncio
import math
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")

from openai import AsyncOpenAI  # noqa: E402  # the switch above comes first
from ragas.embeddings.base import embedding_factory  # noqa: E402
from ragas.llms import llm_factory  # noqa: E402
from ragas.metrics.collections import (  # noqa: E402
    AnswerAccuracy,
    AnswerRelevancy,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    Faithfulness,
    ResponseGroundedness,
)
from tests.benchmarks.seven import Watch, as_line, rows  # noqa: E402


async def main() -> None:
    """Once, measured."""
    base_url, n, passages, in_flight = sys.argv[1], *map(int, sys.argv[2:5])
    client = AsyncOpenAI(base_url=base_url, api_key="x")
    llm = llm_factory("m", client=client)
    embeddings = embedding_factory("openai", model="e", client=client)
    metrics = [
        (Faithfulness(llm=llm), ("user_input", "response", "retrieved_contexts")),
        (AnswerRelevancy(llm=llm, embeddings=embeddings), ("user_input", "response")),
        (ContextPrecision(llm=llm), ("user_input", "reference", "retrieved_contexts")),
        (ContextRecall(llm=llm), ("user_input", "retrieved_contexts", "reference")),
        (AnswerAccuracy(llm=llm), ("user_input", "response", "reference")),
        (ContextRelevance(llm=llm), ("user_input", "retrieved_contexts")),
        (ResponseGroundedness(llm=llm), ("response", "retrieved_contexts")),
    ]
    room = asyncio.Semaphore(in_flight)

    async def score(metric: Any, row: dict[str, object], fields: tuple[str, ...]) -> float:
        async with room:
            result = await metric.ascore(**{name: row[name] for name in fields})
        return float(result.value)

    with Watch(base_url) as watch:
        work = [score(metric, row, fields) for row in rows(n, passages) for metric, fields in metrics]
        found = await asyncio.gather(*work, return_exceptions=True)
    failures = [one for one in found if isinstance(one, BaseException)]
    for one in failures[:1]:
        print(f"{len(failures)} failed, first: {one!r}", file=sys.stderr)
    scored = sum(isinstance(one, float) and not math.isnan(one) for one in found)
    print(as_line(**watch.seen, scored=scored))
    await client.close()


asyncio.run(main())
