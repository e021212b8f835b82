"""Rules for the judge in the user's own words, with placeholders.

`{metric}` is the metric's name, `{scale}` the ratings it may give ("0, 2 or 4"), `{language}` the language of
`judge.language`. Braces around anything that is no word are text (`{"port": 1}`, `{}`), and so is a word in
doubled braces: `{{scale}}` is the text `{scale}`. Any other word in braces is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragparity.core.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

PLACEHOLDERS = ("metric", "scale", "language")

_PLACE = re.compile(r"\{\{(?P<text>[A-Za-z_]\w*)\}\}|\{(?P<name>[A-Za-z_]\w*)\}")


def names_in(text: str) -> list[str]:
    """The placeholders of a text, known or not.

    >>> names_in('Rate {metric} on {scale}; {{this}} and {"a": 1} are text.')
    ['metric', 'scale']
    """
    return [found["name"] for found in _PLACE.finditer(text) if found["name"]]


def check(text: str, *, without: Mapping[str, str]) -> None:
    """Raise `ConfigError` for a placeholder that is unknown, or has no value here (`without`: its name and why)."""
    for name in names_in(text):
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{one}}}" for one in PLACEHOLDERS)
            hint = did_you_mean(name, PLACEHOLDERS)
            raise ConfigError(
                f"judge.prompt: unknown placeholder {{{name}}}; known are {known}.{hint} "
                f"For the text itself write {{{{{name}}}}}"
            )
        if name in without:
            raise ConfigError(f"judge.prompt: {{{name}}} has no value here: {without[name]}")


def filled(text: str, values: Mapping[str, str], *, leave: Collection[str] = ()) -> str:
    """The text with its placeholders filled in; with `leave`, those named stay, and doubled braces too.

    >>> filled('{metric}: {scale}, not {{scale}} or {"a": {}}', {"metric": "M", "scale": "0 or 1"})
    'M: 0 or 1, not {scale} or {"a": {}}'
    """

    def put(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0] if leave else f"{{{found['text']}}}"
        return found[0] if name in leave else values.get(name, found[0])

    return _PLACE.sub(put, text)
