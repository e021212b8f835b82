"""A process that scores the seven metrics with ragparity: `ours_seven.py BASE_URL ROWS PASSAGES IN_FLIGHT`."""

from __future__ import annotations

import asyncio
import sys

from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from tests.benchmarks.seven import METRICS, Watch, as_line, rows

from ragparity import aevaluate


async def main() -> None:
    """Once to warm up the connections, once measured."""
    base_url, n, passages, in_flight = sys.argv[1], *map(int, sys.argv[2:5])
    model = ChatOpenAI(model="m", base_url=base_url, api_key="x", max_retries=0)
    embeddings = OpenAIEmbeddings(model="e", base_url=base_url, api_key="x", check_embedding_ctx_length=False)
    made = rows(n, passages)

    async def once(which: list[dict[str, object]]) -> dict[str, object]:
        results = await aevaluate(
            which, metrics=list(METRICS), judge=model, embedder=embeddings, max_concurrency=in_flight, retries=0
        )
        return {name: one["n_failed"] for name, one in results.summary.items()}

    await once(made[:4])
    with Watch() as watch:
        failed = await once(made)
    print(as_line(watch.seen, failed=sum(failed.values())))


asyncio.run(main())
