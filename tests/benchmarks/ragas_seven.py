"""A process that scores the seven metrics with Ragas' `evaluate`.

Call it with `ragas_seven.py BASE_URL ROWS PASSAGES IN_FLIGHT WARM_ROWS`: so many rows are scored before the clock.
"""

from __future__ import annotations

import math
import sys
import warnings

warnings.simplefilter("ignore")

from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # noqa: E402  # the switch above comes first
from openai import DefaultAsyncHttpxClient  # noqa: E402
from ragas import EvaluationDataset, evaluate  # noqa: E402
from ragas.embeddings.base import LangchainEmbeddingsWrapper  # noqa: E402
from ragas.llms.base import LangchainLLMWrapper  # noqa: E402
from ragas.metrics._answer_relevance import AnswerRelevancy  # noqa: E402
from ragas.metrics._context_precision import ContextPrecision  # noqa: E402
from ragas.metrics._context_recall import ContextRecall  # noqa: E402
from ragas.metrics._faithfulness import Faithfulness  # noqa: E402
from ragas.metrics._nv_metrics import AnswerAccuracy, ContextRelevance, ResponseGroundedness  # noqa: E402
from ragas.run_config import RunConfig  # noqa: E402
from tests.benchmarks.seven import Watch, as_line, rows  # noqa: E402


def main() -> None:
    """Warm up where that is wanted; then once measured."""
    base_url, n, passages, in_flight, warm = sys.argv[1], *map(int, sys.argv[2:6])
    embeddings = LangchainEmbeddingsWrapper(
        OpenAIEmbeddings(model="e", base_url=base_url, api_key="x", check_embedding_ctx_length=False)
    )
    metrics = [
        Faithfulness(), AnswerRelevancy(), ContextPrecision(), ContextRecall(), AnswerAccuracy(), ContextRelevance(),
        ResponseGroundedness(),
    ]  # fmt: skip
    made = [{key: value for key, value in row.items() if key != "id"} for row in rows(n, passages)]
    config = RunConfig(max_workers=in_flight)

    def judge() -> LangchainLLMWrapper:
        """A judge for one `evaluate`, which ends its event loop; connections kept for another one would fail there."""
        client = DefaultAsyncHttpxClient()
        return LangchainLLMWrapper(
            ChatOpenAI(model="m", base_url=base_url, api_key="x", max_retries=0, http_async_client=client)
        )

    def once(which: list[dict[str, object]], llm: LangchainLLMWrapper) -> int:
        """The number of scores; what failed is NaN."""
        dataset = EvaluationDataset.from_list(which)
        found = evaluate(
            dataset, metrics=metrics, llm=llm, embeddings=embeddings, run_config=config, show_progress=False
        )
        return sum(not math.isnan(score) for row in found.scores for score in row.values())

    if warm:
        once(made[:warm], judge())
    llm = judge()
    with Watch(base_url) as watch:
        scored = once(made, llm)
    print(as_line(**watch.seen, scored=scored))


main()
