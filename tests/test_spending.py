"""What a run costs, and the budget that ends it."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragparity.core.errors import BudgetSpent, ConfigError, JudgeUnavailable
from ragparity.core.ports import Answer, Question, Tally, Text, Usage
from ragparity.core.prompt import Prompt
from ragparity.repetitions import Repetitions, flip_rate
from ragparity.spending import Budget, Metered, Spending, about_tokens, budget_of, cost_of

QUESTION = Question(Prompt("Say it.", data={"answer": "7443"}), Text(), 50)


class Priced:
    """A judge that reports the same tokens for every call, or fails after having been asked."""

    identity = "priced"

    def __init__(self, usage=None, *, requests=1, error=None, wait=None):
        self.usage = usage or Usage(100, 20)
        self.requests = requests
        self.error = error
        self.wait = wait
        self.asked = 0

    async def ask(self, question, tally):
        self.asked += 1
        for _ in range(self.requests):
            tally.call(self.usage)
        if self.wait is not None:
            await self.wait.wait()
        if self.error is not None:
            raise self.error
        return Answer("said", "said")


def asks(judge, times):
    """How many of the questions were answered, and what the rest were told."""

    async def body():
        answered, told = 0, ""
        for _ in range(times):
            try:
                await judge.ask(QUESTION, Tally())
                answered += 1
            except BudgetSpent as spent:
                told = str(spent)
        return answered, told

    return asyncio.run(body())


@pytest.mark.parametrize(
    ("budget", "answered", "told"),
    [
        (Budget(), 9, ""),
        (Budget(calls=4), 4, "the budget of 4 calls is spent"),
        (Budget(calls=0), 0, "the budget of 0 calls is spent"),
        (Budget(tokens=240), 2, "the budget of 240 tokens is spent (240 used)"),
        (Budget(tokens=241), 3, "the budget of 241 tokens is spent (360 used)"),
        # 100 tokens in at 2 and 20 out at 5 per million: 0.0003 a call
        (Budget(cost=0.001), 4, "the budget of 0.001 is spent (0.0012 used)"),
    ],
)
def test_calls_go_out_until_a_limit_is_reached(budget, answered, told):
    judge = Priced()
    spending = Spending(budget)
    assert asks(Metered(judge, spending, price=(2, 5)), 9) == (answered, told)
    assert judge.asked == answered and spending.stopped == told
    assert spending.under_way == 0


def test_calls_under_way_count_and_may_end():
    async def body():
        go = asyncio.Event()
        judge = Priced(wait=go)
        spending = Spending(Budget(calls=3))
        metered = Metered(judge, spending)
        tallies = [Tally() for _ in range(5)]
        waiting = asyncio.gather(*(metered.ask(QUESTION, one) for one in tallies), return_exceptions=True)
        await asyncio.sleep(0)
        assert judge.asked == 3, "never more than the budget at once"
        go.set()
        found = await waiting
        assert [isinstance(one, Answer) for one in found] == [True] * 3 + [False] * 2
        assert [bool(one.stopped) for one in tallies] == [False] * 3 + [True] * 2

    asyncio.run(body())


def test_failed_requests_and_several_requests_for_one_answer_count():
    spending = Spending(Budget(calls=10))
    with pytest.raises(JudgeUnavailable):
        asyncio.run(Metered(Priced(requests=3, error=JudgeUnavailable("503")), spending).ask(QUESTION, Tally()))
    asyncio.run(Metered(Priced(requests=2), spending).ask(QUESTION, Tally()))
    assert spending.calls == 5 and spending.tokens == 5 * 120


def test_the_tally_gets_what_the_call_has_cost_also_when_it_fails():
    tally = Tally()
    judge = Metered(Priced(Usage(7, 3, 2, 1), error=JudgeUnavailable("503")), Spending())
    with pytest.raises(JudgeUnavailable):
        asyncio.run(judge.ask(QUESTION, tally))
    assert (tally.calls, tally.input_tokens, tally.output_tokens) == (1, 7, 3)
    assert (tally.reasoning_tokens, tally.cached_tokens) == (2, 1)


def test_tokens_that_nobody_reports_stay_unknown_and_still_use_up_a_budget():
    text = f"{QUESTION.prompt.system()}\n{QUESTION.prompt.user()}"
    each = math.ceil(len(text) / 4) + 1  # the answer has four letters
    spending = Spending(Budget(tokens=2 * each))
    judge, tally = Metered(Priced(Usage()), spending, name="llama"), Tally()
    for _ in range(2):
        asyncio.run(judge.ask(QUESTION, tally))
    assert tally.input_tokens is None and tally.output_tokens is None
    assert spending.tokens == 2 * each
    assert len(spending.said) == 1 and "llama" in spending.said[0]
    with pytest.raises(BudgetSpent):
        asyncio.run(judge.ask(QUESTION, tally))


def test_a_budget_of_calls_says_nothing_about_unknown_tokens():
    spending = Spending(Budget(calls=5))
    asyncio.run(Metered(Priced(Usage()), spending).ask(QUESTION, Tally()))
    assert spending.said == []


@pytest.mark.parametrize("tokens", [(None, 5), (5, None), (None, None)])
def test_the_cost_of_unknown_tokens_is_unknown(tokens):
    assert cost_of(*tokens, (1, 1)) is None
    assert cost_of(5, 5, None) is None


def test_letters_of_other_scripts_weigh_more():
    assert about_tokens("") == 0
    assert about_tokens("七") == 1 and about_tokens("七" * 8) == 6
    assert about_tokens("\ud800") == 1


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"call": 3}, "did you mean calls?"),
        ({"calls": 1.5}, "expected a whole number"),
        ({"tokens": -1}, "expected a whole number"),
        ({"cost": math.nan}, "expected a number, 0 or more"),
        ({"cost": math.inf}, "expected a number, 0 or more"),
    ],
)
def test_a_limit_that_makes_no_sense_is_one_clear_line(limits, said):
    with pytest.raises(ConfigError) as caught:
        budget_of(limits, Budget())
    assert said.casefold() in str(caught.value).casefold() and "\n" not in str(caught.value)


usages = st.builds(Usage, *([st.none() | st.integers(0, 1000)] * 4))


@given(st.lists(usages), st.integers(0, 5))
def test_a_tally_of_tallies_is_the_tally_of_all_calls(calls, cut):
    whole, first, second = Tally(), Tally(), Tally()
    for number, usage in enumerate(calls):
        whole.call(usage)
        (first if number < cut else second).call(usage)
    first.add(second)
    assert first == whole


# -- repetitions


def test_a_row_that_passes_once_out_of_two_flips_always():
    assert flip_rate([True, False]) == 1.0
    assert flip_rate([True, True]) == flip_rate([False, False, False]) == 0.0
    assert flip_rate([True]) is None and flip_rate([]) is None


def test_repetitions_give_spread_flip_rate_and_reliability():
    found = Repetitions()
    # Within: 0.02 and 0.02 with one degree of freedom each, so a variance of 0.02. Means 0.2 and 0.8, grand mean 0.5,
    # between: 2 * (0.09 + 0.09) / 1 = 0.36. ICC(1,1) = (0.36 - 0.02) / (0.36 + 0.02).
    found.add([0.1, 0.3], 0.0)
    found.add([0.7, 0.9], 1.0)
    found.add([0.5], None)
    told = found.as_json()
    assert told["n"] == 2 and told["flip_rate"] == 0.5
    assert told["spread"] == pytest.approx(math.sqrt(0.02))
    assert told["test_retest"] == pytest.approx(0.34 / 0.38)


def test_without_a_row_scored_twice_there_is_nothing_to_say():
    found = Repetitions()
    found.add([0.5], None)
    assert found.as_json() is None


def test_repetitions_that_never_differ_and_rows_that_never_do():
    same = Repetitions()
    same.add([0.5, 0.5], None)
    assert same.as_json() == {"n": 1, "spread": 0.0, "flip_rate": None, "test_retest": None}
    same.add([0.5, 0.5, 0.5], None)
    assert same.reliability() is None, "no row can be told from another"
    noise = Repetitions()
    noise.add([0.0, 1.0], None)
    noise.add([1.0, 0.0], None)
    assert noise.reliability() == -1.0


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=5), min_size=2, max_size=8))
def test_the_reliability_agrees_with_the_analysis_of_variance_written_out(rows):
    found = Repetitions()
    for row in rows:
        found.add(row, None)
    n, counts = len(rows), [len(row) for row in rows]
    total = sum(counts)
    grand = sum(map(sum, rows)) / total
    means = [sum(row) / len(row) for row in rows]
    between = sum(k * (mean - grand) ** 2 for k, mean in zip(counts, means, strict=True)) / (n - 1)
    within = sum((value - mean) ** 2 for row, mean in zip(rows, means, strict=True) for value in row) / (total - n)
    k0 = (total - sum(k * k for k in counts) / total) / (n - 1)
    scale = between + (k0 - 1) * within
    if scale > 1e-9:
        assert found.reliability() == pytest.approx((between - within) / scale, abs=1e-6)
