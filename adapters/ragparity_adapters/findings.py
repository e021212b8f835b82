"""What an endpoint shows about itself during a run, and how its refusals are read.

Capabilities come from the eval file first, then from what the endpoint does: a refusal that names a
parameter, a reply longer than the token limit, thinking in a short answer. Never from a list of model names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

TokenParam = Literal["max_tokens", "max_completion_tokens", "none"]

LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
STRUCTURE = ("response_format", "json_schema", "tool_choice", "tools", "strict")
_STRUCTURE_WORDS = re.compile(
    r"response[_ ]format|json[_ ]?(schema|mode|object)|tool|function.?call|\bfunctions?\b|guided|grammar|"
    r"structured|\bschema\b|\bstrict\b",
    re.IGNORECASE,
)
_NO_SYSTEM = re.compile(
    r"system (role|message|prompt)s?\b.{0,40}\b(not|un)|(not|un)\w* .{0,40}system (role|message|prompt)|"
    r"only user(,| and) assistant|roles? must alternate|unsupported role:? .?system",
    re.IGNORECASE,
)
_WINDOW = re.compile(r"maximum context length (?:is|of) (\d+)", re.IGNORECASE)
_PROMPT_SIZE = re.compile(r"(\d+) (?:input tokens|in the messages|tokens? in the (?:input|prompt))", re.IGNORECASE)
_AT_MOST = re.compile(
    r"(?:at most|no more than|up to|<=) (\d+)(?: (?:completion|output|new))?|> (\d+), which is the maximum",
    re.IGNORECASE,
)
_SUM = re.compile(r"context limit: (\d+) \+ \d+ > (\d+)", re.IGNORECASE)
_AT_LEAST = re.compile(r"(?:>=|at least|greater than or equal to|minimum (?:of|is|value of)) (\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Findings:
    """What an endpoint has shown about itself.

    `rung` is the way to ask for structure that is tried now, `level` the allowance for thinking that has been
    needed so far (0: none), `most` and `least` the token limits that the endpoint takes.
    """

    token_param: str = "max_completion_tokens"
    token_params_tried: set[str] = field(default_factory=set)
    token_param_confirmed: bool = False
    dropped: frozenset[str] = frozenset()
    rung: int = 0
    rung_confirmed: bool = False
    level: int = 0
    system_message: bool = True
    most: int | None = None
    least: int = 1
    said: list[str] = field(default_factory=list)

    @property
    def thinks(self) -> bool:
        """Whether the judge needs room for thinking before its answer."""
        return self.level > 0

    def say(self, line: str) -> None:
        """Keep a line for the user, once."""
        if line not in self.said:
            self.said.append(line)


def named_parameter(error: BaseException, text: str, sent: Iterable[str]) -> str | None:
    """The parameter that a refusal is about, among those that were sent (and the spellings of the limit)."""
    names = dict.fromkeys((*sent, *LIMITS))
    stated: Any = getattr(error, "param", None)
    if isinstance(stated, str) and (found := next((one for one in names if _first_part(stated) == one), None)):
        return found
    at = {name: place.start() for name in names if (place := re.search(_mention(name), text, re.IGNORECASE))}
    return min(at, key=at.__getitem__) if at else None


def _first_part(param: str) -> str:
    return re.split(r"[.\[]", param.removeprefix("body."), maxsplit=1)[0]


def _mention(name: str) -> str:
    word = re.escape(name)
    return rf"(?<![\w-]){word}(?![\w-])" if len(name) > 1 else rf"['\"`]{word}['\"`]|\b{word} ?= ?\d"


def is_about_structure(text: str) -> bool:
    """Whether a refusal speaks of schemas, tools or formats."""
    return bool(_STRUCTURE_WORDS.search(text))


def is_about_system_message(text: str) -> bool:
    """Whether a refusal says that there may be no system message."""
    return bool(_NO_SYSTEM.search(text))


def window_in(text: str) -> int | None:
    """The size of the context window that a refusal names.

    >>> window_in("This model's maximum context length is 4096 tokens. However, your messages have 5000 tokens.")
    4096
    """
    found = _WINDOW.search(text)
    return int(found[1]) if found else None


def room(text: str, limit: int) -> tuple[int | None, bool]:
    """The token limit that a refusal leaves room for, and whether this holds for every prompt.

    >>> room("'max_tokens' is too large: 4104. This model's maximum context length is 4096 tokens and your "
    ...      "request has 700 input tokens (4104 > 4096 - 700).", 4104)
    (3396, False)
    >>> room("max_tokens is too large: 9000. This model supports at most 4096 completion tokens.", 9000)
    (4096, True)
    >>> room("'max_tokens' is not supported with this model.", 8)
    (None, False)
    """
    window, prompt = _WINDOW.search(text), _PROMPT_SIZE.search(text)
    if window and prompt:
        left = int(window[1]) - int(prompt[1])
        return (left, False) if 0 < left < limit else (None, False)
    if total := _SUM.search(text):
        left = int(total[2]) - int(total[1])
        return (left, False) if 0 < left < limit else (None, False)
    if not any(name in text for name in LIMITS):
        return None, False
    if most := _AT_MOST.search(text):
        value = int(most[1] or most[2])
        return (value, True) if 0 < value < limit else (None, False)
    if (least := _AT_LEAST.search(text)) and int(least[1]) > limit:
        return int(least[1]), True
    return None, False
