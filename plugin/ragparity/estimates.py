"""What a run will cost, before it starts: an estimate from the prompts of its first rows.

The metrics are run on a few rows with a judge that needs no model, and what they ask is measured. Tokens are
estimated by length; the real judge finds other claims and may think aloud, so these are no promises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragparity import runner
from ragparity.config import OFFLINE
from ragparity.core.errors import JudgeRejected
from ragparity.core.outcome import Failed
from ragparity.core.policy import admit
from ragparity.core.ports import RATED_WITH_REASON, Structured
from ragparity.spending import about_tokens, cost_of
from ragparity.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ragparity.core.ports import Answer, Ask, Judge, Question, Tally
    from ragparity.core.row import Row
    from ragparity.core.sample import Sample
    from ragparity.results import Record
    from ragparity.runner import Evaluator
    from ragparity.spending import Budget
    from ragparity.wiring import Plan, Planned

    Samples = Mapping[str, Sequence[Sample]]  # by evaluator: each has fields of its own

TRIED = 10
"""Rows whose prompts are measured."""
FORMAT_RULE = 20
"""Tokens of the rule that says how to answer."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls to expect, tokens to be read, the most that answers should need, and the cost of that at the price."""

    calls: int
    input_tokens: int | None
    output_tokens: int
    price: tuple[float, float] | None = None

    @property
    def cost(self) -> float | None:
        """The cost in the currency of the price; nothing where the price or the prompts are unknown."""
        return cost_of(self.input_tokens, self.output_tokens, self.price)

    def sentence(self) -> str:
        """The estimate for people.

        >>> Estimate(40, 21_000, 320, (0.15, 0.60)).sentence()
        'about 40 judge calls, 21,000 tokens in, at most 320 out, cost at most 0.0033'
        """
        read = "an unknown number of tokens in" if self.input_tokens is None else f"{self.input_tokens:,} tokens in"
        text = f"about {self.calls} judge calls, {read}, at most {self.output_tokens:,} out"
        return text if self.cost is None else f"{text}, cost at most {self.cost:.2g}"


def ceilings(plan: Plan, samples: Samples) -> list[str]:
    """One line for each evaluator whose answers do not fit under a token limit that the user set."""
    lines = []
    for one in plan.evaluators:
        if not one.judged or one.entry.llm_name in (None, OFFLINE):
            continue
        entry = plan.file.llms[str(one.entry.llm_name)]
        limits = [n for n in (entry.max_tokens, one.entry.judge.max_tokens) if n is not None]
        needed = max((ask.budget for ask in _asks(one, samples[one.entry.name])), default=0)
        if limits and needed > min(limits):
            lines.append(
                f"{one.entry.name}: llms.{entry.name} may answer with {min(limits)} tokens (max_tokens), but the "
                f"answers of {one.metric.name} need about {needed}; expect `truncated`, or raise max_tokens"
            )
    return lines


def _asks(one: Planned, samples: Sequence[Sample]) -> Iterator[Ask]:
    for sample in samples:
        admitted = admit(sample, one.metric, one.entry.policies)
        if not isinstance(admitted, tuple):  # nothing is asked about it
            continue
        for ask in one.metric.asks(admitted[0]):
            with_reason = ask.shape == "rating" and one.entry.judge.output == "structured"
            yield replace(ask, shape="structured", budget=RATED_WITH_REASON) if with_reason else ask


def expected(plan: Plan, samples: Samples, total: int, tokens_per_question: Mapping[str, float]) -> dict[str, Estimate]:
    """What to expect of each evaluator that asks a judge, from the samples looked at, scaled up to all rows."""
    found = {}
    for one in plan.evaluators:
        if not one.judged:
            continue
        seen = samples[one.entry.name]
        scale = one.entry.reps * total / len(seen) if seen else 0.0
        asks = [ask for ask in _asks(one, seen) if ask.shape != "embeddings"]
        calls = round(scale * sum(ask.calls for ask in asks))
        each = tokens_per_question.get(one.entry.name)
        found[one.entry.name] = Estimate(
            calls,
            None if each is None and calls else round(calls * (each or 0)),
            round(scale * sum(ask.calls * ask.budget for ask in asks)),
            one.price,
        )
    return found


def remarks(estimates: Mapping[str, Estimate], budget: Budget) -> list[str]:
    """The sum of the estimates, what they rest on, and whether a budget is too small for them."""
    if not estimates:
        return []
    every = list(estimates.values())
    costs = [one.cost for one in every]
    known = [cost for cost in costs if cost is not None]
    read = [one.input_tokens for one in every if one.input_tokens is not None]
    all_read = sum(read) if len(read) == len(every) else None
    calls, written = sum(one.calls for one in every), sum(one.output_tokens for one in every)
    text = Estimate(calls, all_read, written).sentence()
    cost = sum(known) if len(known) == len(costs) else None
    lines = [
        f"in all: {text}" + ("" if cost is None else f", cost at most {cost:.2g}"),
        "these are estimates by the length of the first rows, without thinking, retries, vectors and stored replies",
    ]
    if budget.calls is not None and budget.calls < calls:
        lines.append(f"warning: the budget of {budget.calls} calls will end the run early")
    if budget.tokens is not None and all_read is not None and budget.tokens < all_read:
        lines.append(f"warning: the budget of {budget.tokens} tokens will end the run early")
    return lines


class Listening(Wrapper["Judge"]):
    """A judge that measures what it is asked."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.questions = 0
        self.tokens = 0

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """The answer of the judge within."""
        self.questions += 1
        self.tokens += tokens_of(question)
        return await self.within.ask(question, tally)


class Windowed(Wrapper["Judge"]):
    """A judge that refuses a question which does not fit into a window with its answer, as the adapter does."""

    def __init__(self, judge: Judge, window: int, most_written: int | None) -> None:
        super().__init__(judge)
        self._window = window
        self._most_written = most_written

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """The answer of the judge within; raises `JudgeRejected`."""
        read, written = tokens_of(question), min(question.budget, self._most_written or question.budget)
        if read + written > self._window:
            text = f"about {read} tokens and {written} for the answer, and the window holds {self._window}"
            raise JudgeRejected(text, kind="context_too_long")
        return await self.within.ask(question, tally)


def tokens_of(question: Question) -> int:
    """The size of a question with its schema and the rule on the form of the answer, in tokens."""
    prompt = question.prompt
    text = prompt.text if prompt.text is not None else f"{prompt.system()}\n{prompt.user()}"
    if isinstance(question.shape, Structured):
        text += json.dumps(question.shape.schema.model_json_schema())
    return about_tokens(text) + FORMAT_RULE


async def over_long(plan: Plan, evaluators: Sequence[Evaluator], rows: Sequence[Sequence[Row]]) -> list[str]:
    """One line for each evaluator whose questions about its longest row do not fit into a window that the file names.

    A metric that can ask in parts is named only where a part is still too long. The judges of the evaluators are
    asked, so bring some that cost nothing.
    """
    lines = []
    entries = {one.entry.name: one.entry for one in plan.evaluators}
    for one in evaluators:
        said, llm = entries[one.name].judge, plan.file.llms.get(str(entries[one.name].llm_name))
        if one.judge is None or said.context_window is None:
            continue
        ceilings = [n for n in (said.max_tokens, llm.max_tokens if llm else None) if n is not None]
        judge = Windowed(one.judge, said.context_window, min(ceilings, default=None))
        made = await _of_longest(replace(one, judge=judge, reps=1), rows)
        if made is not None and isinstance(made.outcome, Failed) and made.outcome.kind == "context_too_long":
            lines.append(f"{one.name}: row {made.id} does not fit into judge.context_window: {made.outcome.message}")
    return lines


async def _of_longest(evaluator: Evaluator, rows: Sequence[Sequence[Row]]) -> Record | None:
    """The record of the row that has most to read, where one can be read."""
    metric = evaluator.metric

    def length(views: Sequence[Row]) -> int:
        sample = views[evaluator.view].sample
        return sum(len(str(getattr(sample, name, None) or "")) for name in (*metric.reads, *metric.may_read))

    readable = [views for views in rows if views[evaluator.view].sample is not None]
    made: list[Record] = []
    longest = sorted(readable, key=length)[-1:]
    await runner.run(longest, [evaluator], lambda batch: made.extend(one for one, _ in batch), concurrency=1)
    return made[0] if made else None


async def tokens_per_question(evaluators: Sequence[Evaluator], rows: Iterable[Sequence[Row]]) -> dict[str, float]:
    """The mean size of the prompts that evaluators send about some rows, in tokens; none for those that ask nothing.

    The judges that they come with are asked, so bring some that cost nothing.
    """
    listening = {one.name: Listening(one.judge) for one in evaluators if one.judge is not None}
    trial = [replace(one, judge=listening[one.name], reps=1) for one in evaluators if one.name in listening]
    await runner.run(rows, trial, lambda _made: None, concurrency=1)
    return {name: one.tokens / one.questions for name, one in listening.items() if one.questions}
