"""How many calls a Ragas metric makes for a sample, and how many tokens its answers need.

Estimates, on the generous side: an answer that is cut is a failed row. Lengths in tokens are UTF-8 bytes
over three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragparity.core.ports import RATING_TOKENS, Ask

if TYPE_CHECKING:
    from ragparity.core.sample import Sample

AROUND = 64
"""Tokens of brackets, keys and whatever a judge puts around its answer."""
CLAIM = 20
VERDICT = 80
"""Tokens of a verdict with its reason, beyond the claim that it repeats."""
QUESTION = 96
ONE_VERDICT = 240
GRADE = 400
UNKNOWN_INPUT = 1024
"""Tokens of an answer whose question does not show its data."""


def tokens(text: str) -> int:
    """An estimate of the tokens of a text."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 3)


def restated(text: str) -> int:
    """Tokens for a text said again as a list of claims."""
    return AROUND + 2 * tokens(text)


def claims_in(text: str) -> int:
    """Claims to expect of a text."""
    return max(1, tokens(text) // CLAIM)


def verdicts_on(n: int, size: int = CLAIM) -> int:
    """Tokens for verdicts on `n` claims of `size` tokens each."""
    return AROUND + n * (VERDICT + size)


def _joined(*parts: Any) -> str:
    return "\n".join(str(one) for part in parts for one in ([part] if isinstance(part, str) else part or ()))


# -- before the first call: calls of a metric for a sample


def nothing(_sample: Sample) -> tuple[Ask, ...]:
    """No calls."""
    return ()


def claims_then_verdicts(sample: Sample) -> tuple[Ask, ...]:
    """The statements of the response, then a verdict on each."""
    text = sample.response or ""
    return (Ask(1, "structured", restated(text)), Ask(1, "structured", verdicts_on(claims_in(text))))


def claims_only(sample: Sample) -> tuple[Ask, ...]:
    """The statements of the response."""
    return (Ask(1, "structured", restated(sample.response or "")),)


def questions(_sample: Sample) -> tuple[Ask, ...]:
    """Three questions and their vectors."""
    return (Ask(3, "structured", QUESTION), Ask(1, "embeddings"))


def verdict_per_passage(sample: Sample) -> tuple[Ask, ...]:
    """One verdict a passage."""
    return (Ask(max(1, len(sample.retrieved_contexts or ())), "structured", ONE_VERDICT),)


def attributions(sample: Sample) -> tuple[Ask, ...]:
    """The statements of the reference, each with a verdict."""
    return (Ask(1, "structured", 2 * AROUND + 5 * tokens(sample.reference or "")),)


def entities(sample: Sample) -> tuple[Ask, ...]:
    """The entities of the reference and of the contexts."""
    both = (sample.reference or "", _joined(sample.retrieved_contexts))
    return tuple(Ask(1, "structured", restated(text)) for text in both)


def noise(sample: Sample) -> tuple[Ask, ...]:
    """The statements of both texts, and verdicts on them by every passage and by the reference."""
    response, reference, passages = sample.response or "", sample.reference or "", len(sample.retrieved_contexts or ())
    return (
        Ask(1, "structured", restated(response)),
        Ask(1, "structured", restated(reference)),
        Ask(passages + 1, "structured", verdicts_on(claims_in(response))),
        Ask(passages, "structured", verdicts_on(claims_in(reference))),
    )


def facts(sample: Sample) -> tuple[Ask, ...]:
    """The claims of both texts, and verdicts on them by the other."""
    both = (sample.response or "", sample.reference or "")
    sizes = [size for text in both for size in (restated(text), verdicts_on(claims_in(text)))]
    return tuple(Ask(1, "structured", size) for size in sizes)


def correctness(sample: Sample) -> tuple[Ask, ...]:
    """The statements of both texts, their classification, and two vectors."""
    response, reference = sample.response or "", sample.reference or ""
    both = verdicts_on(claims_in(response) + claims_in(reference))
    sizes = (restated(response), restated(reference), both)
    return (*(Ask(1, "structured", size) for size in sizes), Ask(2, "embeddings"))


def vectors(_sample: Sample) -> tuple[Ask, ...]:
    """Two vectors in one request."""
    return (Ask(1, "embeddings"),)


def two_ratings(_sample: Sample) -> tuple[Ask, ...]:
    """Two ratings."""
    return (Ask(2, "rating", RATING_TOKENS),)


def one_verdict(_sample: Sample) -> tuple[Ask, ...]:
    """One verdict or grade with its reason."""
    return (Ask(1, "structured", GRADE),)


def summary(sample: Sample) -> tuple[Ask, ...]:
    """Key phrases, questions about them, and whether the summary answers them."""
    text = _joined(sample.reference_contexts)
    asked = max(4, claims_in(text))
    sizes = (restated(text), AROUND + asked * CLAIM * 2, AROUND + asked * 8)
    return tuple(Ask(1, "structured", size) for size in sizes)


def goal(_sample: Sample) -> tuple[Ask, ...]:
    """Goal and end state of the conversation, then their comparison."""
    return (Ask(1, "structured", GRADE), Ask(1, "structured", ONE_VERDICT))


def topics(sample: Sample) -> tuple[Ask, ...]:
    """The topics, whether each was refused, and whether each is allowed."""
    expected = max(1, sum(1 for one in sample.messages or () if one.get("role") == "user"))
    return (
        Ask(1, "structured", AROUND + expected * CLAIM),
        Ask(expected, "structured", AROUND),
        Ask(1, "structured", AROUND + expected * 8),
    )


def sql(sample: Sample) -> tuple[Ask, ...]:
    """Both queries explained, and a verdict."""
    return (Ask(1, "structured", GRADE + 3 * tokens((sample.response or "") + (sample.reference or ""))),)


# -- at the call: tokens of an answer of a kind to a question with this data


FIXED = {"question": QUESTION, "verdict": ONE_VERDICT, "graded": GRADE, "goal": GRADE, "refused": AROUND}


def budget_of(kind: str, data: Mapping[str, Any]) -> int:
    """Tokens that an answer of this kind needs; `data` is the question's own input, where it could be read."""
    if kind in FIXED:
        return FIXED[kind]
    if not data:
        return UNKNOWN_INPUT
    match kind:
        case "verdicts":
            size = AROUND + sum(VERDICT + tokens(one) for one in _lines(data, "statements"))
        case "attributions":
            size = 2 * AROUND + 5 * tokens(str(data.get("answer", "")))
        case "classes":
            size = AROUND + sum(VERDICT + tokens(one) for one in _lines(data, "answer", "ground_truth"))
        case "questions":
            size = AROUND + 2 * CLAIM * max(4, len(_lines(data, "keyphrases")))
        case "answers" | "in_topics":
            size = AROUND + 8 * len(_lines(data, "questions", "topics"))
        case "sql":
            size = GRADE + 3 * tokens(_joined(str(data.get("response", "")), str(data.get("reference", ""))))
        case "claims":
            size = restated(max((one for one in data.values() if isinstance(one, str)), key=len, default=""))
        case _:
            size = GRADE + tokens(_joined(*(str(one) for one in data.values())))
    return size


def _lines(data: Mapping[str, Any], *names: str) -> list[str]:
    return [str(one) for name in names for one in data.get(name, ())]
