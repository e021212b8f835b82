"""Whose words a verdict stands in: the judge's own, or text of the data that the judge repeats.

A verdict that is found inside prose is taken as the judge's own only by its place: on its line nothing
stands before it but a preface ("Sure:", "My final rating is"), it is not inside quotation marks, and what
follows it ends it (end of line, punctuation, "because …") and does not carry it on ("4 claims", "4 or 2").
The lists below are what counts as a preface and as an ending; a word that is on neither makes the reply
unclear, which costs a second question and never a wrong number. A label of the data ("response: …") is an
echo of the data.
"""

from __future__ import annotations

import re
from bisect import bisect_left

_PREFACE_WORDS = (
    "a an the this that these my our i we i'd i'll i've we'd would will be is are it it's here here's s of for on "
    "in to as so thus hence therefore overall final finally total sure certainly okay ok alright absolutely "
    "course yes please following below above requested asked wanted needed valid required and now then rate "
    "rating score grade give giving given assign assigned assess award choose select evaluation assessment "
    "judgment judgement verdict verdicts result output object json format form schema label analysis conclusion "
    "summary reasoning based criteria rubric rule rules instructions provided your you list relevance accuracy "
    "groundedness correctness faithfulness quality go answer answers response claim claims statement statements "
    "context contexts passage passages question reference "
)
_PREFACE = frozenset(_PREFACE_WORDS.split())
_ECHO = re.compile(
    r"\b(?:response|claims?|statements?|contexts?|passages?|question|reference|user_input|retrieved_contexts)"
    r"(?:\s+(?:is|are))?\W*:",
    re.IGNORECASE,
)
_ENDING = (
    "because|since|as|given|due|based|therefore|meaning|indicating|which|while|although|though|but|the|this|it|its"
    "|both|i|explanation|reason|reasoning|justification|rationale|comment|hope|let"
)
_CLOSED = re.compile(
    rf"""
    (?:[ ](?:points?|stars?|marks?)\b|分|点|점)? [*_)\]}}]*
    (?: \s*\Z
      | [^\S\n]*\n
      | [.!;:。] [*_)\]}}]* (?=\s|\Z)
      | ,? [^\S\n]+ (?:{_ENDING})\b (?!')
      | [^\S\n]+ [-–—]+ [^\S\n]+ (?=[^\s\d])
      | [^\S\n]* — (?=[^\W\d])
      | [^\S\n]* \( (?!\s*(?:or|to|not)\b)
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEUTRAL = re.compile(r"[\s\w:,.!*_#\-–—'’\[\]()+=]*")
_QUOTE = re.compile(r"(?P<both>[\"`])|(?P<opens>[“«]|(?<!\w)['‘](?=\S))|[”»]|(?<=\S)['’](?!\w)")
_PAIRS = {"“": "”", "«": "»", "‘": "’", "'": "'", '"': '"', "`": "`"}
_LONGEST_PREFACE = 160
_END_OF_TURN = re.compile(r"(?:</s>|<\|(?:im_end|eot_id|end|return|endoftext)\|>)\s*\Z")


def is_closed(text: str, start: int, end: int) -> bool:
    """Whether what stands from `end` on ends a verdict and does not carry it on.

    Quotation marks right around the verdict belong to it.

    >>> is_closed("4 because both agree", 0, 1), is_closed("2 of the claims", 0, 1), is_closed("2-4", 0, 1)
    (True, False, False)
    """
    opening = text[start - 1 : start]
    if opening and text[end : end + 1] == _PAIRS.get(opening):
        end += 1
    return _CLOSED.match(text, end) is not None


def preface(text: str, start: int) -> str | None:
    """What stands before `start` on its line, and the line above where that ends with a colon.

    None where that is too long for a preface.
    """
    lowest = max(0, start - _LONGEST_PREFACE)
    line = text.rfind("\n", lowest, start) + 1
    if line == 0 and lowest > 0:
        return None
    before = text[line:start]
    above = text[max(0, line - _LONGEST_PREFACE) : line].rstrip()
    if not above.rstrip("*_`").endswith(":"):
        return before
    if "\n" not in above and line > _LONGEST_PREFACE:
        return None
    return f"{above.rpartition(chr(10))[2]} {before}"


def is_own(text: str, start: int) -> bool:
    """Whether a verdict that begins at `start` is the judge's own by what stands before it on its line.

    >>> is_own("Sure: 4", 6), is_own("The answer says 4", 16)
    (True, False)
    """
    before = preface(text, start)
    if before is None or not _NEUTRAL.fullmatch(before) or _ECHO.search(before):
        return False
    return all(word.casefold().replace("’", "'") in _PREFACE for word in _WORD.findall(before))


class Quotations:
    """Where a text is inside quotation marks, backticks or a fence. An unclosed one lasts to the end."""

    def __init__(self, text: str) -> None:
        self._at: list[int] = []
        self._inside: list[bool] = [False]
        opened: list[str] = []
        for mark in _QUOTE.finditer(text):
            sign = mark[0]
            if sign in opened:
                del opened[opened.index(sign) :]
            elif mark["both"] or mark["opens"]:
                opened.append(_PAIRS[sign])
            self._at.append(mark.start())
            self._inside.append(bool(opened))

    def cover(self, position: int) -> bool:
        """Whether this position is quoted."""
        return self._inside[bisect_left(self._at, position)]


def unwrapped(text: str) -> str:
    r"""The text without a fence or quotation marks around the whole of it, and without an end-of-turn mark.

    >>> unwrapped('```json\n{"a": 1}\n```'), unwrapped('"Rating: 4"'), unwrapped('"a" or "b"')
    ('{"a": 1}', 'Rating: 4', '"a" or "b"')
    """
    bare = _END_OF_TURN.sub("", text.lstrip("\ufeff")).strip()
    if bare.startswith("```") and bare.endswith("```") and len(bare) > 6:  # noqa: PLR2004  # two fences
        inner = re.sub(r"\A[A-Za-z0-9_+-]*[^\S\n]*\n", "", bare[3:-3])
        return inner.strip()
    closing = _PAIRS.get(bare[:1])
    if closing and len(bare) > 1 and bare.endswith(closing):
        inner = bare[1:-1]
        if closing not in inner and bare[0] not in inner:
            return inner.strip()
    return bare
