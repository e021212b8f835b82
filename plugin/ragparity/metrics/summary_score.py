"""Summary score: what a summary still answers of the text it sums up, and how short it is."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import BaseModel, Field

from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.claims import TOKENS_AROUND, distinct, judge_pieces, share, verdicts_budget
from ragparity.metrics.faithfulness import counted
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

MOST = 10
"""Key phrases, and so questions, that are asked for."""
KEYPHRASES_BUDGET = TOKENS_AROUND + 20 * MOST
QUESTIONS_BUDGET = TOKENS_AROUND + 40 * MOST

KEY_PHRASES = Prompt(
    task="List the key phrases of the text: those that a good summary of it must not leave out.",
    rules=(
        f"Up to {MOST}, the most important first; names, dates, quantities and events rather than general words.",
        "Copy them as the text writes them.",
    ),
)
ASK_CLOSED = Prompt(
    task="Write for each key phrase one question about the text that can be answered with yes or no.",
    rules=(
        'The text answers every question with "yes".',
        "Each question is complete on its own and asks for one fact.",
        "Write in the language of the text.",
    ),
)
ANSWERED = Prompt(
    task='For each question, decide whether the summary alone answers it with "yes".',
    rules=(
        '`evidence`: the words of the summary that answer the question, copied; "none" if there are none.',
        '`verdict`: "yes" only if these words answer it with yes; else "no".',
        "Use nothing but the summary, not what you know.",
        "Give one verdict for each question, with its id.",
    ),
)


class KeyPhrases(BaseModel):
    """What a summary must not leave out."""

    keyphrases: list[str]


class ClosedQuestions(BaseModel):
    """Questions that the text answers with yes."""

    closed_questions: list[str]


def conciseness(summary: str, text: str) -> Fraction:
    """1 − characters of the summary / characters of the text, never below 0.

    >>> conciseness("abc", "abcdefghijkl"), conciseness("abc", "ab")
    (Fraction(3, 4), Fraction(0, 1))
    """
    return 1 - Fraction(min(len(summary), len(text)), len(text))


@metric
@dataclass(frozen=True, repr=False)
class SummaryScore(NativeMetric):
    """(1 − coeff) · answered / questions + coeff · conciseness; without `length_penalty` answered / questions.

    The questions come from the text and can be answered with yes; `conciseness` is 1 − characters of the response /
    characters of the text, at least 0. `coeff` is the weight of the conciseness.

    Reads: reference_contexts (the text), response (the summary).
    Asks: 3, one after the other (key phrases, questions, answers).
    Range: 0 to 1, higher is better.
    Undefined when: the text gives no key phrase (`no_keyphrases`) or no question (`no_questions`).
    Differs from its source in: answers are matched to the questions by number; "cannot tell" is no answer; with
    `length_penalty: false` the share of answers counts whole (the legacy API takes the weight away); exact fractions.
    Source: Ragas 0.4.3, SummaryScore (SummarizationScore).

    Example::

        3 of 4 questions answered, a summary of 30 of 120 characters, coeff 0.5 -> 0.5 * 3/4 + 0.5 * 3/4 = 0.75
    """

    length_penalty: bool = True
    coeff: Annotated[float, Field(ge=0, le=1)] = 0.5

    aliases: ClassVar[tuple[str, ...]] = ("SummarizationScore", "summary_score")
    reads: ClassVar[tuple[str, ...]] = ("reference_contexts", "response")
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 3

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # the number of questions is bounded
        """Key phrases, questions and answers."""
        budgets = (KEYPHRASES_BUDGET, QUESTIONS_BUDGET, verdicts_budget(MOST))
        return tuple(Ask(1, "structured", budget) for budget in budgets)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Find key phrases, ask about them, and let the summary answer."""
        summary, text = sample.response or "", "\n".join(sample.reference_contexts or ())
        prompt = Prompt(KEY_PHRASES.task, KEY_PHRASES.rules, {"text": text})
        phrases = distinct((await kit.verdict(prompt, KeyPhrases, budget=KEYPHRASES_BUDGET)).keyphrases)[:MOST]
        if not phrases:
            return Undefined("no_keyphrases", "the text gives no key phrase")
        prompt = Prompt(ASK_CLOSED.task, ASK_CLOSED.rules, {"text": text, "keyphrases": phrases})
        asked = (await kit.verdict(prompt, ClosedQuestions, budget=QUESTIONS_BUDGET)).closed_questions
        questions = distinct(asked)[:MOST]
        detail: dict[str, object] = {"keyphrases": phrases}
        if not questions:
            return Undefined("no_questions", "the text gives no question", detail)
        judged, extra = await judge_pieces(
            questions,
            lambda some: Prompt(ANSWERED.task, ANSWERED.rules, {"summary": summary, "questions": some}),
            kit,
            what="questions",
        )
        detail["questions"] = [
            {"id": one.id, "question": one.text, "verdict": one.verdict, "reason": one.reason} for one in judged
        ]
        detail |= counted(judged, extra)
        answered = share([one.verdict for one in judged], kit.policies)
        if answered is None:
            return Undefined("no_verdicts", "the judge could not tell for any question", detail)
        yes = sum(1 for one in judged if one.verdict)
        reason = f"the summary answers {yes} of {len(judged)} questions"
        if not self.length_penalty:
            return Scored(float(answered), reason, detail)
        weight, short = Fraction(str(self.coeff)), conciseness(summary, text)
        detail["conciseness"] = float(short)
        value = (1 - weight) * answered + weight * short
        return Scored(float(value), f"{reason} and is {float(short):.0%} shorter than the text", detail)
