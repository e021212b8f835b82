"""Keyword arguments of a metric as an eval file gives them: every wrong one is a `ConfigError` of one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def refuse_unknown(metric: str, given: Iterable[str], accepted: Sequence[str]) -> None:
    """Raise a `ConfigError` for the first kwarg that the metric does not take, naming those that it does.

    >>> refuse_unknown("AnswerRelevancy", ["strictnes"], ["strictness"])
    Traceback (most recent call last):
    ragparity.core.errors.ConfigError: metric AnswerRelevancy: unknown kwarg 'strictnes'; it takes strictness. \
Did you mean strictness?
    """
    for name in given:
        if name not in accepted:
            takes = f"it takes {', '.join(accepted)}" if accepted else "it takes none"
            hint = did_you_mean(str(name), accepted)
            raise ConfigError(f"metric {metric}: unknown kwarg {name!r}; {takes}.{hint}")


def refuse_swapped(metric: str, given: Mapping[str, Any], taken: Mapping[str, Any]) -> None:
    """Raise a `ConfigError` where true or false was given for a number, or a number for true or false.

    pydantic takes one for the other: `strictness: true` would be 1. `taken` are the values after its reading.

    >>> refuse_swapped("AnswerRelevancy", {"strictness": True}, {"strictness": 1})
    Traceback (most recent call last):
    ragparity.core.errors.ConfigError: metric AnswerRelevancy: strictness: expected a number, got true
    """
    for name, value in given.items():
        for one, other in _pairs(value, taken[name]):
            if isinstance(one, bool) != isinstance(other, bool):
                wanted, got = (
                    ("true or false", repr(one)) if isinstance(other, bool) else ("a number", str(one).lower())
                )
                raise ConfigError(f"metric {metric}: {name}: expected {wanted}, got {got}")


def _pairs(given: Any, taken: Any) -> Iterator[tuple[Any, Any]]:
    """The numbers in a value as it was given, each with what it was taken for."""
    if isinstance(given, Mapping) and isinstance(taken, Mapping):
        given, taken = list(given.values()), list(taken.values())
    if isinstance(given, list | tuple) and isinstance(taken, list | tuple):
        for one, other in zip(given, taken, strict=False):
            yield from _pairs(one, other)
    elif isinstance(given, int | float) and isinstance(taken, int | float):
        yield given, taken


def wrong_value(metric: str, problem: Mapping[str, Any]) -> ConfigError:
    """The error for one problem as pydantic's `ValidationError.errors()` lists them.

    >>> str(wrong_value("A", {"loc": ("k",), "msg": "Input should be an integer", "type": "int_type", "input": "x"}))
    "metric A: k: input should be an integer, got 'x'"
    """
    text = str(problem["msg"]).removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    if not problem["loc"]:  # said by the metric itself, about its kwargs together
        return ConfigError(f"metric {metric}: {text}")
    where = ".".join(str(part) for part in problem["loc"])
    shown = "" if problem["type"] == "missing" else f", got {problem['input']!r}"
    return ConfigError(f"metric {metric}: {where}: {text}{shown}")
