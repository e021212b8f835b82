"""One cheap question to every llm entry and embedder that an evaluator uses, before many are asked.

What a probe finds out (the way to ask for structure, the token parameter, whether the judge thinks) stays with the
endpoint, so a run that follows begins with it. A probe goes past the cache: it is about the endpoint and not about an
answer. It counts in the budget of its run, and what it cost has a line of its own, since no row has caused it.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from ragparity import wiring
from ragparity.config import OFFLINE
from ragparity.core.errors import BudgetSpent, EvaluationError, JudgeError, JudgeUnavailable
from ragparity.core.ports import RATING_TOKENS, Answer, Question, Rating, Scale, Structured, Tally, Text
from ragparity.core.prompt import Prompt
from ragparity.spending import cost_of, cost_of_vectors
from ragparity.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Embedder, Judge, Shape
    from ragparity.middleware import Lane
    from ragparity.wiring import Plan, Planned, Session

LARGE = 200
"""Judge calls from which on a run begins with a probe."""
ATTEMPTS = 5
"""Of one question: a way down the ladder of structured answers takes four."""
LONGEST_S = 30.0
"""Seconds that a probe waits for one reply at most."""
LONGEST_PAUSE_S = 10.0
"""Seconds that a probe waits for an endpoint that is busy."""

ShapeName = Literal["rating", "structured", "text"]

_DATA = {"question": "Which city is the capital of Norway?", "answer": "Oslo", "reference": "Oslo"}
_RATING = Prompt(
    "Rate how well the answer agrees with the reference.",
    ("4: it says the same.", "2: it is partly right.", "0: it is wrong."),
    _DATA,
)
_VERDICT = Prompt("Decide whether the answer agrees with the reference.", ("`reason`: a few words.",), _DATA)
_TEXT = Prompt("Say in one sentence whether the answer agrees with the reference.", (), _DATA)


class _Agreement(BaseModel):
    """A verdict with its reason, as small as the real ones get."""

    reason: str
    verdict: Verdict


_QUESTIONS: dict[ShapeName, tuple[Prompt, Shape, int]] = {
    "rating": (_RATING, Rating(Scale((0, 2, 4))), RATING_TOKENS),
    "structured": (_VERDICT, Structured(_Agreement), 80),
    "text": (_TEXT, Text(), 80),
}


class ProbeFailed(EvaluationError):
    """Entries that gave no usable answer, one line each."""


@dataclass(slots=True, kw_only=True)
class Probed:
    """What one entry showed. `worked` and `failed` are about the shapes that its evaluators ask for.

    `short` is whether a bare rating came back within `RATING_TOKENS` tokens (`None`: it was not asked for);
    `seconds` is the time of the last reply; the rest stands as it does in the manifest.
    """

    section: Literal["llms", "embedders"]
    name: str
    identity: str = ""
    evaluators: tuple[str, ...] = ()
    worked: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    short: bool | None = None
    rated: float | None = None
    seconds: float | None = None
    found: dict[str, Any] = field(default_factory=dict)
    dimensions: int | None = None
    notes: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    price: tuple[float, float] | None = None
    embedding_price: float | None = None

    @property
    def status(self) -> Literal["ok", "partly", "failed", "not asked"]:
        """Whether everything that is needed of the entry worked, a part of it, or nothing.

        Where the budget was spent before an answer, it is not known.
        """
        if not self.worked and not self.failed:
            return "not asked"
        return "failed" if not self.worked else "partly" if self.failed else "ok"

    @property
    def cost(self) -> float | None:
        """What the probe of this entry cost, where its price is known."""
        if self.section == "llms":
            return cost_of(self.tally.input_tokens, self.tally.output_tokens, self.price)
        return cost_of_vectors(self.tally.embedding_tokens, self.embedding_price)

    def lines(self) -> list[str]:
        """What did not work, one line for each cause."""
        where = f"{self.section}.{self.name}"
        by_cause: dict[str, list[str]] = {}
        for shape, cause in self.failed.items():
            by_cause.setdefault(cause, []).append(shape)
        only = not self.worked
        return [
            f"{where}: {cause}" if only and len(by_cause) == 1 else f"{where}: {' and '.join(shapes)} answers: {cause}"
            for cause, shapes in by_cause.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "entry": f"{self.section}.{self.name}",
            "status": self.status,
            "identity": self.identity,
            "evaluators": list(self.evaluators),
            "short_rating": self.short,
            "rated": self.rated,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "dimensions": self.dimensions,
            "calls": self.tally.calls + self.tally.embedding_calls,
            "input_tokens": self.tally.input_tokens,
            "output_tokens": self.tally.output_tokens,
            **{key: value for key, value in self.found.items() if key != "identity"},
            "problems": self.lines(),
            "kinds": self.kinds,
            "notes": self.notes,
        }


def spent_on(found: Sequence[Probed]) -> dict[str, Any] | None:
    """Calls and tokens of a probe, for the summary; its cost where every price is known. `None`: nothing was asked."""
    total, costs = Tally(), [one.cost for one in found]
    for one in found:
        total.add(one.tally)
    if not total.calls + total.embedding_calls:
        return None
    known = [cost for cost in costs if cost is not None]
    names = ("calls", "embedding_calls", "input_tokens", "output_tokens", "embedding_tokens")
    return {
        **{name: getattr(total, name) for name in names},
        "cost": math.fsum(known) if len(known) == len(costs) else None,
    }


async def probe(plan: Plan, session: Session) -> list[Probed]:
    """Ask every entry that an evaluator of the plan uses, all at the same time; entries in the order of their use."""
    llms: dict[str, list[Planned]] = {}
    embedders: dict[str, list[Planned]] = {}
    for one in plan.evaluators:
        if one.judged and one.entry.llm_name not in (None, OFFLINE):
            llms.setdefault(str(one.entry.llm_name), []).append(one)
        if one.embeds and one.entry.embedder_name not in (None, OFFLINE):
            embedders.setdefault(str(one.entry.embedder_name), []).append(one)
    return await asyncio.gather(
        *(_llm(session, name, users) for name, users in llms.items()),
        *(_embedder(session, name, users) for name, users in embedders.items()),
    )


async def before_a_run(plan: Plan, session: Session) -> tuple[list[Probed], list[str]]:
    """Probe, and say what works in part only; raises `ProbeFailed` where an entry cannot be used at all.

    A budget that is too small for a probe does not end the run: what is stored costs nothing.
    """
    found = await probe(plan, session)
    session.around.spending.stopped = ""
    if dead := [line for one in found if one.status == "failed" for line in one.lines()]:
        raise ProbeFailed("\n".join(dead))
    return found, [line for one in found if one.status == "partly" for line in one.lines()]


# -- judges


async def _llm(session: Session, name: str, users: Sequence[Planned]) -> Probed:
    evaluators = tuple(one.entry.name for one in users)
    result = Probed(section="llms", name=name, evaluators=evaluators, price=users[0].price)
    asked_by = {shape: one for one in reversed(users) for shape in _shapes(one)}
    for shape in _QUESTIONS:
        if shape in asked_by:
            judge = wiring.bare_judge(session, asked_by[shape], LONGEST_S)
            result.identity = result.identity or judge.identity
            await _put(shape, judge, session.lanes[name], result, fits=_fits(session, name, shape))
    result.found = session.judges_json()[name]
    result.notes = list(session.endpoints[name].findings.said)
    return result


def _shapes(one: Planned) -> set[ShapeName]:
    """The shapes of answers that an evaluator asks for."""
    return {shape for shape in _QUESTIONS if shape in one.metric.uses}


def _fits(session: Session, name: str, shape: ShapeName) -> int | None:
    """The ceiling of the entry, where an answer of this shape does not fit under it."""
    ceiling = session.endpoints[name].ceiling
    return ceiling if ceiling is not None and ceiling < _QUESTIONS[shape][2] else None


async def _put(shape: ShapeName, judge: Judge, lane: Lane, result: Probed, *, fits: int | None) -> None:
    if fits is not None and result.worked:
        result.failed[shape] = f"max_tokens {fits} leaves them no room; raise it"
        return
    if result.kinds and result.kinds[-1] in ("auth", "unavailable", "timeout"):
        return  # it would end in the same way
    prompt, wanted, budget = _QUESTIONS[shape]
    try:
        answer = await _answer(Question(prompt, wanted, budget), judge, lane, result)
    except BudgetSpent:
        return  # which says nothing about the entry
    except JudgeError as error:
        result.failed[shape] = str(error).removeprefix(f"{result.name}: ")
        result.kinds.append(error.kind)
        return
    result.worked.append(shape)
    if shape == "rating":
        last = result.tally.replies[-1] if result.tally.replies else {}
        result.rated = answer.value
        result.short = answer.reason is None and (last.get("limit") or RATING_TOKENS) <= RATING_TOKENS


async def _answer(question: Question, judge: Judge, lane: Lane, result: Probed) -> Answer:
    """An answer; a reply that cannot be read is asked for again, an endpoint that is down or busy once more."""
    attempt, waited = 0, False
    while True:
        attempt += 1
        began = time.monotonic()
        try:
            async with lane.slot():
                answer = await judge.ask(question, result.tally)
        except JudgeError as error:
            down = isinstance(error, JudgeUnavailable)
            if not error.retryable or attempt == ATTEMPTS or (down and (waited or error.kind == "timeout")):
                raise
            if down:
                waited = True
                await asyncio.sleep(min(error.retry_after or 1.0, LONGEST_PAUSE_S))
            else:
                question = question.again(str(error))
            continue
        result.seconds = time.monotonic() - began
        return answer


# -- embedders


async def _embedder(session: Session, name: str, users: Sequence[Planned]) -> Probed:
    evaluators = tuple(one.entry.name for one in users)
    price = next(one.embedding_price for one in session.evaluators if one.name == evaluators[0])
    result = Probed(section="embedders", name=name, evaluators=evaluators, embedding_price=price)
    embedder: Embedder = session.bare_embedders[name]
    result.identity = embedder.identity
    began = time.monotonic()
    try:
        vectors = await embedder.embed(["Oslo is a city.", "Vectors have one length."], result.tally)
    except BudgetSpent:
        return result
    except JudgeError as error:
        result.failed["embedding"] = str(error).removeprefix(f"{name}: ")
        result.kinds.append(error.kind)
        return result
    result.seconds = time.monotonic() - began
    if problem := _wrong(vectors):
        result.failed["embedding"] = problem
        return result
    result.worked.append("embedding")
    result.dimensions = len(vectors[0])
    return result


def _wrong(vectors: list[list[float]]) -> str | None:
    """What is wrong with vectors of two different texts, if anything is."""
    if len({len(one) for one in vectors}) != 1 or not vectors[0]:
        return f"vectors of different lengths: {', '.join(str(len(one)) for one in vectors)}"
    if not all(math.isfinite(value) for one in vectors for value in one):
        return "a vector holds a value that is no finite number"
    if not all(any(one) for one in vectors):
        return "a vector of zeros for a text with words"
    return "the same vector for two different texts" if vectors[0] == vectors[1] else None
