"""A sample that every metric must find good, and its bad twin: the direction of every backend is tried, not believed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ragparity.core.policy import Policies, score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity_adapters.embeddings import HashingEmbedder
from ragparity_adapters.offline import OfflineJudge

if TYPE_CHECKING:
    from ragparity.core.outcome import Outcome
    from ragparity.core.ports import Metric

QUESTION = "Which port does the Heron gateway use?"
ANSWER = "The Heron gateway uses port 7443."
WRONG = "Bananas ripen faster beside apples."
PASSAGE = "The Heron gateway uses port 7443."
ASIDE = "Glaciers carve deep valleys into granite."
GOOD = Sample(
    id="good", user_input=QUESTION, response=ANSWER, reference=ANSWER, retrieved_contexts=(PASSAGE,),
    reference_contexts=(PASSAGE,), retrieved_context_ids=("p1", "p2"), reference_context_ids=("p1",),
)  # fmt: skip
BAD = Sample(
    id="bad", user_input=QUESTION, response=WRONG, reference=ANSWER, retrieved_contexts=(ASIDE,),
    reference_contexts=(PASSAGE,), retrieved_context_ids=("p2",), reference_context_ids=("p1",),
)  # fmt: skip
# The answer repeats a passage that serves the question and that the reference contradicts: noise got through.
NOISY = Sample(
    id="noisy", user_input=QUESTION, response="The Heron gateway uses port 9000.", reference=ANSWER,
    retrieved_contexts=("The Heron gateway uses port 7443. The Heron gateway uses port 9000.",),
)  # fmt: skip
CRITERION = {"definition": "Does the response say which port the Heron gateway uses?"}
KWARGS = {"AspectCritic": CRITERION, "SimpleCriteria": CRITERION, "SimpleCriteriaScore": CRITERION}
UNDECIDED = frozenset({"AspectCritic", "SimpleCriteria", "SimpleCriteriaScore"})
"""The judge without a model does not understand a criterion in free words."""


def outcome_of(metric: Metric, sample: Sample) -> Outcome:
    """What the judge without a model makes of a sample."""
    kit = Kit(judge=OfflineJudge(), embedder=HashingEmbedder(), policies=Policies())
    return asyncio.run(score(metric, sample, kit))


def good_minus_bad(metric: Metric) -> float | None:
    """How much better the good sample is, in the metric's direction; nothing where it does not score both."""
    bad = NOISY if metric.name == "NoiseSensitivity" else BAD
    found: list[Any] = [outcome_of(metric, sample) for sample in (GOOD, bad)]
    if any(one.status != "scored" for one in found):
        return None
    gap: float = found[0].value - found[1].value
    return gap if metric.higher_is_better else -gap
