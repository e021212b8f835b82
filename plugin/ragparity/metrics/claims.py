"""Claims, and verdicts about numbered pieces: what the claim-based and passage-based metrics share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, model_validator

from ragparity.core.concurrency import together
from ragparity.core.errors import JudgeError, MalformedVerdict
from ragparity.core.prompt import Prompt
from ragparity.core.text import normalised, words
from ragparity.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragparity.core.policy import Policies
    from ragparity.core.ports import Kit

BATCH = 10
"""Claims per question: longer lists of verdicts lose some."""
BYTES_PER_TOKEN = 3
TOKENS_PER_CLAIM = 20
TOKENS_PER_VERDICT = 80
TOKENS_AROUND = 64


def tokens_of(text: str) -> int:
    """A generous estimate of the tokens of a text: its UTF-8 bytes over three."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


# -- claims


class Claims(BaseModel):
    """The claims of a text; `refusal` says that the text declines to answer. Claims first: they come from the text."""

    claims: list[str]
    refusal: bool


TOGETHER = "Keep a list of things together in one statement."
EXTRACT = Prompt(
    task="Copy the factual statements out of the text, each as one short sentence.",
    rules=(
        "Write what pronouns stand for; otherwise keep the words, numbers and negations; add nothing, correct nothing.",
        TOGETHER,
        "Leave out greetings, opinions and questions.",
        "`refusal`: true if the text is nothing but a refusal.",
        "Write in the language of the text.",
    ),
)
STANDS_ALONE = 5
"""Words from which on a text is understood without the question that it answers.

Small judges that see the question, or hear of an answer, write claims about the conversation ("the answer does not
say …"). So the question is shown only with a text that says nothing without it ("Yes, in 1889.").
"""


def with_question(text: str, question: str | None) -> dict[str, str]:
    """The question as data where the text says nothing without it, else nothing."""
    return {"question": question} if question and len(words(text)) < STANDS_ALONE else {}


async def claims_of(text: str, kit: Kit, *, question: str | None, how: Prompt = EXTRACT) -> Claims:
    """The claims of a text, blank and repeated ones left out. One call; `how` has the task and the rules."""
    prompt = Prompt(how.task, how.rules, {**with_question(text, question), "text": text})
    found = await kit.verdict(prompt, Claims, budget=claims_budget(text))
    return Claims(refusal=found.refusal, claims=distinct(found.claims))


def distinct(texts: Sequence[str]) -> list[str]:
    """The texts in order, without those that are blank, mere punctuation, or repeat an earlier one.

    >>> distinct(["It is red.", " ", "It is big.", "it is RED"])
    ['It is red.', 'It is big.']
    """
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normalised(text, "full"), text.strip())
    first.pop("", None)
    return list(first.values())


def claims_in(text: str) -> int:
    """An estimate of the number of claims of a text, before they are known: one per sentence of ordinary length.

    >>> claims_in("42"), claims_in("The tower of steel was opened in Paris in the year 1889 by its engineer. " * 3)
    (1, 4)
    """
    return 1 + tokens_of(text) // TOKENS_PER_CLAIM


def claims_budget(text: str) -> int:
    """Tokens that the claims of a text need: they say it again, a little longer."""
    return TOKENS_AROUND + 2 * tokens_of(text)


# -- verdicts on numbered pieces


@dataclass(frozen=True, slots=True)
class Judged:
    """One judged piece: its number from 1, its text, the verdict (`None`: cannot tell) and what speaks for it."""

    id: int
    text: str
    verdict: bool | None
    reason: str


@lru_cache(maxsize=256)
def verdicts_schema(ids: tuple[int, ...]) -> type[BaseModel]:
    """Verdicts on the pieces of these ids, the evidence before the verdict.

    The judge is shown the ids and that it owes one verdict for each. Other ids and fewer verdicts are still
    read, so that what is missing can be asked for alone; two different verdicts for one id are refused.
    """

    class OneVerdict(BaseModel):
        id: Annotated[int, Field(json_schema_extra={"enum": list(ids)})]
        evidence: str
        verdict: Verdict

    exactly = {"minItems": len(ids), "maxItems": len(ids)}

    class Verdicts(BaseModel):
        verdicts: Annotated[list[OneVerdict], Field(json_schema_extra=exactly)]

        @model_validator(mode="after")
        def one_verdict_per_piece(self) -> Verdicts:
            by_id: dict[int, bool | None] = {}
            for one in self.verdicts:
                if by_id.setdefault(one.id, one.verdict) != one.verdict:
                    raise ValueError(f"two different verdicts for {one.id}")
            return self

    return Verdicts


async def judge_pieces(
    pieces: Sequence[str], ask: Callable[[dict[str, str]], Prompt], kit: Kit, *, what: str, halve: bool = True
) -> tuple[list[Judged], int]:
    """A verdict on every piece, asked in batches at the same time and joined by id.

    A batch that does not fit into the judge's window is halved, unless `halve` says that the caller does better.

    `ask` makes the prompt for some pieces by number. Pieces without a verdict are asked about once more; verdicts
    on pieces that do not exist are ignored and counted (the second value). Raises `MalformedVerdict` when
    a piece still has none.
    """
    numbered = dict(enumerate(pieces, start=1))
    verdicts, extra = await _asked(numbered, ask, kit, halve=halve)
    missing = {number: piece for number, piece in numbered.items() if number not in verdicts}
    if missing:
        more, extra_again = await _asked(missing, ask, kit, draw=1, halve=halve)
        verdicts |= more
        extra += extra_again
        if lacking := len(numbered.keys() - verdicts.keys()):
            text = (
                f"the judge gave verdicts on {len(numbered) - lacking} of {len(numbered)} {what}, also when asked again"
            )
            raise MalformedVerdict(text, attempts=2)
    judged = [Judged(number, piece, *verdicts[number]) for number, piece in numbered.items()]
    return judged, extra


async def _asked(
    numbered: dict[int, str], ask: Callable[[dict[str, str]], Prompt], kit: Kit, draw: int = 0, *, halve: bool
) -> tuple[dict[int, tuple[bool | None, str]], int]:
    numbers = list(numbered)
    batches = [numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH)]

    async def one(batch: list[int]) -> list[tuple[list[int], Any]]:
        prompt = ask({str(number): numbered[number] for number in batch})
        try:
            answer = await kit.verdict(
                prompt, verdicts_schema(tuple(batch)), budget=verdicts_budget(len(batch)), draw=draw
            )
        except JudgeError as error:
            if error.kind != "context_too_long" or len(batch) == 1 or not halve:
                raise
            middle = len(batch) // 2
            halves = await together(one(some) for some in (batch[:middle], batch[middle:]))
            return [*halves[0], *halves[1]]
        return [(batch, answer)]

    answers = await together(one(batch) for batch in batches)
    found: dict[int, tuple[bool | None, str]] = {}
    extra = 0
    for batch, answer in (pair for pairs in answers for pair in pairs):
        for verdict in answer.verdicts:
            if verdict.id in batch:
                found[verdict.id] = (verdict.verdict, verdict.evidence)
            else:
                extra += 1
    return found, extra


def verdicts_budget(n: int) -> int:
    """Tokens that `n` verdicts with their evidence need."""
    return TOKENS_AROUND + TOKENS_PER_VERDICT * n


def batches_of(n: int) -> list[int]:
    """The sizes of the batches in which `n` pieces are asked about."""
    return [min(BATCH, n - at) for at in range(0, n, BATCH)]


# -- arithmetic


def share(verdicts: Sequence[bool | None], policies: Policies) -> Fraction | None:
    """Positive verdicts / verdicts; "cannot tell" counts as not supported, or is left out by policy.

    `None` where nothing is left to divide by.
    """
    counted = [one for one in verdicts if one is not None] if policies.unknown_verdict == "exclude" else list(verdicts)
    return Fraction(sum(1 for one in counted if one), len(counted)) if counted else None


def passage_of(evidence: str, contexts: Sequence[str]) -> int | None:
    """The index of the first passage that holds the quoted evidence, whole words only, if one does.

    >>> passage_of("free returns", ["No vouchers.", "Free returns for all."])
    1
    >>> passage_of("No", ["Norway is a country."]) is None
    True
    """
    quoted = words(evidence)
    if not quoted or quoted == ["none"]:
        return None
    wanted = f" {' '.join(quoted)} "
    return next((index for index, passage in enumerate(contexts) if wanted in f" {' '.join(words(passage))} "), None)


def claims_in_detail(judged: Sequence[Judged], contexts: Sequence[str]) -> list[dict[str, Any]]:
    """Judged claims as they are kept: id, claim, verdict, reason, and the passage that the reason quotes."""
    return [
        {"id": one.id, "claim": one.text, "verdict": one.verdict, "reason": one.reason}
        | ({"passage": at} if (at := passage_of(one.reason, contexts)) is not None else {})
        for one in judged
    ]
