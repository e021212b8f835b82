"""Tool calls of a conversation against the calls that were wanted, without a judge."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ragparity.core.errors import SampleError
from ragparity.core.matching import pairs_in_any_order, pairs_in_order
from ragparity.core.outcome import Scored, Undefined
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ragparity.core.sample import Sample

Extra = Literal["penalise", "ignore"]
NoCallsWanted = Literal["undefined", "score"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call. `args` is `None` where the agent wrote arguments that are no JSON object."""

    name: str
    args: Mapping[str, Any] | None

    def plain(self) -> dict[str, Any]:
        """The call as JSON-ready data."""
        return {"name": self.name, "args": None if self.args is None else dict(self.args)}


def read_call(call: object, where: str) -> ToolCall:
    """A call in one of the usual shapes; raises `SampleError` where it has no name.

    Shapes: `{name, args}`, `{name, arguments}` and OpenAI's `{function: {name, arguments}}`; arguments are
    an object or its JSON text. Absent and empty arguments are none.

    >>> read_call({"function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}, "here")
    ToolCall(name='weather', args={'city': 'Oslo'})
    """
    if not isinstance(call, Mapping):
        raise SampleError(f"{where}: expected a mapping with name and args, got {call!r:.80}")
    inner = call.get("function")
    source = inner if isinstance(inner, Mapping) else call
    name = source.get("name")
    if not isinstance(name, str) or not name.strip():
        raise SampleError(f"{where}: expected a mapping with name and args, found the keys {', '.join(map(str, call))}")
    args = source.get("args", source.get("arguments"))
    if isinstance(args, str) and args.strip():
        try:
            args = json.loads(args)
        except ValueError:
            return ToolCall(name, None)
    elif args is None or isinstance(args, str):
        args = {}
    return ToolCall(name, args if isinstance(args, Mapping) else None)


def calls_made(messages: Sequence[object]) -> list[ToolCall]:
    """Every call of a conversation, in order; raises `SampleError` for what is no message or no call."""
    made: list[ToolCall] = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise SampleError(f"messages[{index}]: expected a mapping with role and content, got {message!r:.80}")
        calls = message.get("tool_calls") or ()
        if not isinstance(calls, list | tuple):
            raise SampleError(f"messages[{index}].tool_calls: expected a list of calls, got {calls!r:.80}")
        made += [read_call(call, f"messages[{index}].tool_calls[{n}]") for n, call in enumerate(calls)]
    return made


def calls_wanted(references: Sequence[object]) -> list[ToolCall]:
    """The calls that were wanted; raises `SampleError` where one cannot be read."""
    wanted = [read_call(call, f"reference_tool_calls[{n}]") for n, call in enumerate(references)]
    for n, call in enumerate(wanted):
        if call.args is None:
            raise SampleError(f"reference_tool_calls[{n}]: the arguments of {call.name} are no JSON object")
    return wanted


def typed(value: object) -> Hashable:
    """A value such that equal means the same JSON value: the type counts, the spelling of a number does not.

    1 is 1.0 (JSON has one kind of number), but neither is "1" nor true; the order of keys does not count.

    >>> typed(1) == typed(1.0), typed(1) == typed("1"), typed(1) == typed(True)
    (True, False, False)
    """
    if isinstance(value, bool) or value is None:
        return ("constant", str(value))
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, str):
        return ("text", value)
    if isinstance(value, Mapping):
        return ("object", frozenset((str(key), typed(inner)) for key, inner in value.items()))
    if isinstance(value, Sequence):
        return ("list", tuple(typed(inner) for inner in value))
    return (type(value).__name__, repr(value))


def share_right(wanted: ToolCall, made: ToolCall, extra_args: Extra = "ignore") -> Fraction | None:
    """Right arguments / wanted arguments, 1 where none is wanted; `None` for calls of different tools.

    With `penalise`, arguments that nobody wanted count in the divisor. Arguments that cannot be read are
    all wrong.

    >>> share_right(ToolCall("w", {"city": "Oslo", "days": 3}), ToolCall("w", {"city": "Oslo", "days": "3"}))
    Fraction(1, 2)
    """
    if wanted.name != made.name:
        return None
    if made.args is None:
        return Fraction(0)
    args = wanted.args or {}
    right = sum(1 for key, value in args.items() if key in made.args and typed(made.args[key]) == typed(value))
    of = len(args.keys() | made.args.keys()) if extra_args == "penalise" else len(args)
    return Fraction(right, of) if of else Fraction(1)


def accuracy(shares: Sequence[Fraction], wanted: int, made: int, extra_calls: Extra = "penalise") -> float:
    """Σ shares / wanted, times wanted / max(wanted, made) when extra calls are penalised.

    >>> accuracy([Fraction(1)], wanted=1, made=3)
    0.3333333333333333
    """
    of = max(wanted, made) if extra_calls == "penalise" else wanted
    return float(sum(shares, Fraction(0)) / of)


def calls_f1(wanted: Sequence[ToolCall], made: Sequence[ToolCall]) -> tuple[int, float]:
    """How many calls agree in name and all arguments, over multisets, and 2 · agreeing / (wanted + made).

    >>> oslo = ToolCall("weather", {"city": "Oslo"})
    >>> calls_f1([oslo], [oslo, oslo, oslo])  # 2 * 1 / (1 + 3)
    (1, 0.5)
    """
    agreeing = (_bag(wanted) & _bag(made)).total()
    return agreeing, float(Fraction(2 * agreeing, len(wanted) + len(made)))


def _bag(calls: Sequence[ToolCall]) -> Counter[Hashable]:
    return Counter((call.name, typed(call.args)) for call in calls)


def _read(sample: Sample, no_calls_wanted: NoCallsWanted) -> tuple[list[ToolCall], list[ToolCall]] | Undefined:
    if not sample.messages:
        return Undefined("no_messages", "the conversation has no message")
    wanted = calls_wanted(sample.reference_tool_calls or ())
    made = calls_made(sample.messages)
    if not wanted and no_calls_wanted == "undefined":
        detail = {"extra_calls": [call.plain() for call in made]}
        return Undefined("no_reference_tool_calls", "no tool call is wanted", detail)
    return wanted, made


def _nothing_wanted(made: Sequence[ToolCall], extra_calls: Extra) -> Scored:
    right = not made or extra_calls == "ignore"
    reason = f"no tool call is wanted and {len(made) or 'none'} was made"
    return Scored(float(right), reason, {"extra_calls": [call.plain() for call in made]})


@metric
@dataclass(frozen=True, repr=False)
class ToolCallAccuracy(Unjudged):
    """Σ over the wanted calls of their share of right arguments / wanted calls · wanted / max(wanted, made).

    A wanted call meets at most one call of the same tool and a made call at most one wanted call, so that
    the sum is the greatest possible; in the order of both lists with `order: strict`. A wanted call that
    meets none counts 0.

    Reads: messages, reference_tool_calls.
    Asks: nothing.
    Range: 0 to 1, higher is better. A conversation without calls where one is wanted is 0.
    Settings: order, `strict` (default) or `any`; extra_calls, `penalise` (default) or `ignore`, which
        leaves out the second factor; extra_args, `ignore` (default) or `penalise`, where arguments that nobody
        wanted make the share smaller; no_calls_wanted, `undefined` (default) or `score`, which gives 1 where
        no call was made either and 0 otherwise.
    Undefined when: no call is wanted (`no_reference_tool_calls`); there is no message (`no_messages`).
    Differs from its source in: a call too many or too few, or one out of order, costs its share and not the
        whole score; each call is met once; arguments are compared as JSON values (1 is 1.0, not "1"), where
        Ragas compares their texts; no call wanted and none made, which is 1 in Ragas; an argument given to a
        tool wanted without arguments, which makes that call 0 in Ragas.
    Raises: SampleError for a message, a call or wanted arguments that cannot be read. Unreadable arguments of
        a call that was made are the agent's mistake: all wrong.
    Source: Ragas 0.4.3, ToolCallAccuracy.

    Example::

        >>> accuracy([Fraction(1)], wanted=1, made=3), accuracy([Fraction(1)], wanted=1, made=2)
        (0.3333333333333333, 0.5)
    """

    order: Literal["strict", "any"] = "strict"
    extra_calls: Extra = "penalise"
    extra_args: Extra = "ignore"
    no_calls_wanted: NoCallsWanted = "undefined"

    reads: ClassVar[tuple[str, ...]] = ("messages", "reference_tool_calls")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        read = _read(sample, self.no_calls_wanted)
        if isinstance(read, Undefined):
            return read
        wanted, made = read
        if not wanted:
            return _nothing_wanted(made, self.extra_calls)
        table = [[share_right(one, call, self.extra_args) for call in made] for one in wanted]
        pairs = pairs_in_order(table) if self.order == "strict" else pairs_in_any_order(table)
        shares = {row: table[row][column] or Fraction(0) for row, column in pairs.items()}
        detail = {
            "calls": [
                {
                    "wanted": call.plain(),
                    "made": made[pairs[row]].plain() if row in pairs else None,
                    "share": float(shares.get(row, Fraction(0))),
                }
                for row, call in enumerate(wanted)
            ],
            "extra_calls": [call.plain() for n, call in enumerate(made) if n not in pairs.values()],
        }
        fully = sum(1 for share in shares.values() if share == 1)
        reason = f"{fully} of {len(wanted)} wanted calls were made with the right arguments, {len(made)} were made"
        return Scored(accuracy(list(shares.values()), len(wanted), len(made), self.extra_calls), reason, detail)


@metric
@dataclass(frozen=True, repr=False)
class ToolCallF1(Unjudged):
    """2 · agreeing calls / (wanted calls + made calls); calls agree in name and all arguments, order ignored.

    Reads: messages, reference_tool_calls.
    Asks: nothing.
    Range: 0 to 1, higher is better. A conversation without calls where one is wanted is 0.
    Settings: no_calls_wanted, `undefined` (default) or `score`, which gives 1 where no call was made either
        and 0 otherwise.
    Undefined when: no call is wanted (`no_reference_tool_calls`); there is no message (`no_messages`).
    Differs from its source in: multisets, where Ragas collapses repeated calls into one; not rounded to four
        decimals; true is not 1; no call wanted and none made, which is 0 in Ragas.
    Raises: SampleError for a message, a call or wanted arguments that cannot be read.
    Source: Ragas 0.4.3, ToolCallF1.

    Example::

        >>> oslo, noon = ToolCall("weather", {"city": "Oslo"}), ToolCall("clock", {})
        >>> calls_f1([oslo], [oslo, noon])  # 2 * 1 / (1 + 2)
        (1, 0.6666666666666666)
    """

    no_calls_wanted: NoCallsWanted = "undefined"

    reads: ClassVar[tuple[str, ...]] = ("messages", "reference_tool_calls")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        read = _read(sample, self.no_calls_wanted)
        if isinstance(read, Undefined):
            return read
        wanted, made = read
        if not wanted:
            return _nothing_wanted(made, "penalise")
        agreeing, value = calls_f1(wanted, made)
        unmet, extra = _bag(wanted) - _bag(made), _bag(made) - _bag(wanted)
        detail = {
            "missed_calls": _take(wanted, unmet),
            "extra_calls": _take(made, extra),
            "precision": agreeing / len(made) if made else None,
            "recall": agreeing / len(wanted),
        }
        reason = f"{agreeing} calls agree, {len(wanted)} were wanted and {len(made)} made"
        return Scored(value, reason, detail)


def _take(calls: Sequence[ToolCall], bag: Counter[Hashable]) -> list[dict[str, Any]]:
    """The last calls of each kind, as many as the bag holds, in order."""
    left = Counter(bag)
    taken: list[dict[str, Any]] = []
    for call in reversed(calls):
        key = (call.name, typed(call.args))
        if left[key] > 0:
            left[key] -= 1
            taken.append(call.plain())
    return taken[::-1]
