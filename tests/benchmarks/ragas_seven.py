"""A process that scores the seven metrics with Ragas' `evaluate`: `ragas_seven.py BASE_URL ROWS PASSAGES IN_FLIGHT`."""

from __future__ import annotations

import os
import sys
import warnings

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
warnings.simplefilter("ignore")

from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # noqa: E402  # the switch above comes first
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
    """Once to warm up, once measured."""
    base_url, n, passages, in_flight = sys.argv[1], *map(int, sys.argv[2:5])
    llm = LangchainLLMWrapper(ChatOpenAI(model="m", base_url=base_url, api_key="x", max_retries=0))
    embeddings = LangchainEmbeddingsWrapper(
        OpenAIEmbeddings(model="e", base_url=base_url, api_key="x", check_embedding_ctx_length=False)
    )
    metrics = [
        Faithfulness(), AnswerRelevancy(), ContextPrecision(), ContextRecall(), AnswerAccuracy(), ContextRelevance(),
        ResponseGroundedness(),
    ]  # fmt: skip
    made = [{key: value for key, value in row.items() if key != "id"} for row in rows(n, passages)]
    config = RunConfig(max_workers=in_flight)

    def once(which: list[dict[str, object]]) -> None:
        dataset = EvaluationDataset.from_list(which)
        evaluate(dataset, metrics=metrics, llm=llm, embeddings=embeddings, run_config=config, show_progress=False)

    once(made[:4])
    with Watch() as watch:
        once(made)
    print(as_line(watch.seen))


main()
