"""Keyword arguments of a metric as an eval file gives them: every wrong one is a `ConfigError` of one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragparity.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
