"""A process that scores the seven metrics with ragparity from Python.

Call it with `ours_seven.py BASE_URL ROWS PASSAGES IN_FLIGHT WARM_ROWS`: so many rows are scored before the clock.
"""

from __future__ import annotations

import asyncio
import sys

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from tests.benchmarks.seven import METRICS, Watch, as_line, rows

from ragparity import aevaluate


async def main() -> None:
    """Once to warm up the connections, once measured."""
    base_url, n, passages, in_flight, warm = sys.argv[1], *map(int, sys.argv[2:6])
    model = ChatOpenAI(model="m", base_url=base_url, api_key="x", max_retries=0)
    embeddings = OpenAIEmbeddings(model="e", base_url=base_url, api_key="x", check_embedding_ctx_length=False)
    made = rows(n, passages)

    async def once(which: list[dict[str, object]]) -> int:
        """The number of scores."""
        results = await aevaluate(
            which, metrics=list(METRICS), judge=model, embedder=embeddings, max_concurrency=in_flight, retries=0
        )
        return sum(one["n_scored"] for one in results.summary.values())

    await once(made[:warm])
    with Watch(base_url) as watch:
        scored = await once(made)
    print(as_line(**watch.seen, scored=scored))


asyncio.run(main())
