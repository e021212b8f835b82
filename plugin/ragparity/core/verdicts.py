"""A yes or no from a judge, however it is spelled: supported, not supported, cannot tell."""

from __future__ import annotations

import re
import unicodedata

_YES = frozenset({"yes", "true"})
_NO = frozenset({"no", "false"})
_UNKNOWN = frozenset({"unknown", "unclear", "unsure", "uncertain", "undetermined", "undecided"})
_CANNOT_TELL = re.compile(
    r"(?:i )?(?:cannot|can ?not|can't|can t|could not|couldn't|unable to) (?:tell|say|determine|decide|judge|verify)\b"
    r"|not (?:sure|applicable|clear|determinable)\b|n/a(?!\w)"
)
_BOTH = re.compile(
    r"(?:yes|no|true|false)\W*(?:(?:/|\||\bor\b|\band\b)\W*(?:yes|no|true|false)\b|\b(?:yes|no|true|false)\Z)"
)
_NUMBER = re.compile(r"([+-]?[01])(?:\.0+)?")
_EDGES = " \t\r\n\"'`*_.,;:!()[]{}<>“”‘’«»…。，！"
_FROM_NUMBER = {"1": True, "+1": True, "0": False, "+0": False, "-0": False, "-1": None}


def read_verdict(value: object) -> bool | None:
    """True for yes, False for no, None for "cannot tell"; raises `ValueError` for anything else.

    Yes: `1`, `1.0`, `true`, "1", and text whose first word is yes or true, in any case, with any
    punctuation ("yes, partly" is a yes). No: the same with 0, false and no. Cannot tell: `-1`, null,
    "unknown", "unclear", "cannot tell", "not sure", "n/a". Refused, since it would be a guess: any other
    number or word, an empty text, both at once ("yes and no", "yes/no").

    >>> read_verdict("Yes."), read_verdict(0), read_verdict("cannot tell")
    (True, False, None)
    >>> read_verdict("maybe")
    Traceback (most recent call last):
    ValueError: expected yes, no or unknown
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (1, 0, -1):
        return None if value == -1 else bool(value)
    if isinstance(value, str):
        return _from_text(value)
    raise ValueError("expected yes, no or unknown")


def _from_text(said: str) -> bool | None:
    shown = "".join(sign for sign in unicodedata.normalize("NFKC", said) if unicodedata.category(sign) != "Cf")
    text = " ".join(shown.replace("\u2212", "-").replace("\u2019", "'").casefold().split()).strip(_EDGES)
    number = _NUMBER.fullmatch(text)
    if number:
        return _FROM_NUMBER[number[1]]
    if _BOTH.match(text):
        raise ValueError("expected yes, no or unknown, not both at once")
    if text in ("null", "none") or _CANNOT_TELL.match(text):
        return None
    first = re.match(r"[^\W\d_]+(?![\w'])", text)
    word = first[0] if first else ""
    if word in _YES or word in _NO:
        return word in _YES
    if word in _UNKNOWN:
        return None
    raise ValueError("expected yes, no or unknown")
