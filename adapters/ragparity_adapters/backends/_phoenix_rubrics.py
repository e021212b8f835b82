"""What each evaluator of Phoenix is given of a row, what its label is about, and how labels of passages become a score.

Left out: the evaluators of tools (they need a list of the tools at hand, or calls and results apart, which rows do not
have), PiiDetection (it copies what it finds into its explanation), UserFriction (it judges the user) and those that
ask no judge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from ragparity.core.errors import SampleError

if TYPE_CHECKING:
    from ragparity.core.sample import Sample

BUDGET = 400
"""Tokens of an answer: the explanation that Phoenix asks for, and the label."""
LISTING = 1200
"""The same where the explanation lists every request of a conversation."""

Given = Mapping[str, str | None]
"""What an evaluator is given of a row, under the names of its own fields; `None` only with `policies.upstream`."""


# -- what the evaluators are given


def _asked(sample: Sample) -> Given:
    return {"input": sample.user_input}


def _asked_and_answered(sample: Sample) -> Given:
    return {"input": sample.user_input, "output": sample.response}


def _with_contexts(sample: Sample) -> Given:
    return {**_asked_and_answered(sample), "context": _joined(sample.retrieved_contexts)}


def _record(sample: Sample) -> Given:
    """All that the answer could rest on as one text, which is what Hallucination calls the input."""
    seen = f"User: {sample.user_input}\n\nRetrieved content:\n{_joined(sample.retrieved_contexts)}"
    return {**_asked_and_answered(sample), "input": seen}


def _retrieved(sample: Sample) -> Given:
    return {"input": sample.user_input, "context": _joined(sample.retrieved_contexts)}


def _text(sample: Sample) -> Given:
    return {"text": sample.response}


def _conversation(sample: Sample) -> Given:
    return {"conversation": "\n".join(line for at, one in enumerate(sample.messages or ()) for line in _turn(one, at))}


def _turn(message: object, at: int) -> list[str]:
    """One message as lines: what was said, and which tools were called with what."""
    if not isinstance(message, Mapping) or not isinstance(role := message.get("role"), str):
        raise SampleError(f"messages[{at}]: expected a mapping with role and content, got {message!r:.80}")
    said = [f"{role.capitalize()}: {message['content']}"] if message.get("content") else []
    calls = [json.dumps(one, ensure_ascii=False, default=str) for one in message.get("tool_calls") or ()]
    return [*said, *(f"{role.capitalize()} calls a tool: {one}" for one in calls)]


def _joined(passages: Sequence[str] | None) -> str:
    return "\n\n".join(passages or ())


# -- scores of passages


def average_precision(flags: Sequence[bool]) -> Fraction:
    """Σ_k precision@k · flag_k / number of flags that are set, 0 when none is: as Ragas weighs its verdicts.

    >>> average_precision([False, True, False, True])
    Fraction(1, 2)
    """
    ranks = [rank for rank, flag in enumerate(flags, start=1) if flag]
    return sum((Fraction(hits, rank) for hits, rank in enumerate(ranks, start=1)), Fraction(0)) / max(1, len(ranks))


def share(flags: Sequence[bool]) -> Fraction:
    """Flags that are set / flags.

    >>> share([False, True])
    Fraction(1, 2)
    """
    return Fraction(sum(flags), len(flags))


# -- the evaluators


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """One evaluator of Phoenix: its class, what it is given of a row, and what its label is about.

    `direction` is what Phoenix itself says of its score. With `weigh`, every passage gets a label of its own, and this
    makes one score of them.
    """

    evaluator: str
    reads: tuple[str, ...]
    given: Callable[[Sample], Given]
    estimand: str
    construct: str
    also: tuple[str, ...] = ()
    direction: Literal["maximize", "minimize", "neutral"] = "maximize"
    weigh: Callable[[Sequence[bool]], Fraction] | None = None
    budget: int = BUDGET


PASSAGES = ("user_input", "retrieved_contexts")
RUBRICS: Mapping[str, Rubric] = {
    "ResponseGroundedness": Rubric(
        evaluator="FaithfulnessEvaluator", reads=("user_input", "response", "retrieved_contexts"),
        given=_with_contexts, also=("Faithfulness",),
        estimand="verdict on the support of the whole response by the contexts", construct="groundedness",
    ),
    "Hallucination": Rubric(
        evaluator="HallucinationEvaluator", reads=("user_input", "response", "retrieved_contexts"), given=_record,
        direction="minimize", estimand="presence of a claim in the response that neither question nor contexts support",
        construct="groundedness",
    ),
    "ContextRelevance": Rubric(
        evaluator="RetrievalRelevanceEvaluator", reads=PASSAGES, given=_retrieved, also=("RetrievalRelevance",),
        estimand="presence of anything among the contexts that helps with the question", construct="context relevance",
    ),
    "ContextPrecision": Rubric(
        evaluator="DocumentRelevanceEvaluator", reads=PASSAGES, given=_asked, weigh=average_precision,
        estimand="average precision of the passages that hold an answer to the question",
        construct="retrieval precision",
    ),
    "ContextPrecisionShare": Rubric(
        evaluator="DocumentRelevanceEvaluator", reads=PASSAGES, given=_asked, weigh=share,
        also=("DocumentRelevance",), estimand="share of the passages that hold an answer to the question",
        construct="retrieval precision",
    ),
    "AgentGoalAccuracyWithoutReference": Rubric(
        evaluator="CompletenessEvaluator", reads=("messages",), given=_conversation, also=("Completeness",),
        budget=LISTING, estimand="fulfilment of every request of the user", construct="goal of the user",
    ),
    "Correctness": Rubric(
        evaluator="CorrectnessEvaluator", reads=("user_input", "response"), given=_asked_and_answered,
        estimand="verdict on facts and completeness of the response by what the judge knows",
        construct="correctness without a reference",
    ),
    "Conciseness": Rubric(
        evaluator="ConcisenessEvaluator", reads=("user_input", "response"), given=_asked_and_answered,
        estimand="absence of words that the answer does not need", construct="conciseness",
    ),
    "Refusal": Rubric(
        evaluator="RefusalEvaluator", reads=("user_input", "response"), given=_asked_and_answered,
        direction="neutral", estimand="presence of a refusal, right or wrong", construct="presence of a refusal",
    ),
    "Toxicity": Rubric(
        evaluator="ToxicityEvaluator", reads=("response",), given=_text, direction="minimize",
        estimand="presence of attacks on people in the response", construct="toxicity",
    ),
}  # fmt: skip
"""By the name of the native metric that tells of the same, else by Phoenix' own."""
