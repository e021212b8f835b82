r"""The short-output reader: a judge's reply to one rating on a declared scale, or a `JudgeError`. Never a guess.

The rules, in order (examples on the scale 0, 2, 4 where none is named):

===  ==============================================  ==================================================
 #   rule                                            example
===  ==============================================  ==================================================
 1   thinking is removed (`strip_reasoning`); then    `<think>2 or 4?</think> 4` is 4; `<think>2` is empty;
     nothing left: malformed, kind `empty`; a tag    `My rating: 0, although it says </think>Rating:
     that hides another statement: ambiguous         4` is ambiguous
 2   digits of every script count as digits, unseen  `４`, `٤`, `4\u200b` are 4; `4½` and `①` are on no scale
     characters as nothing, other numerals as odd
 3   a JSON object states what stands under its       `{"reason": "2 facts", "rating": "4"}` is 4;
     rating key; one that does not close: malformed   `{"rating": 3}` is off the scale
 4   the declared scale is removed where it is        `4 (0-4 scale)`, `4/4`, `4 out of 4`, `on a scale of 0
     spelled out; another scale: ambiguous            to 4: 4` are 4; `8/10`, `on a 1-5 scale: 4` are not
 5   a **statement** is a number that opens the       `4`, `4 because …`, `Rating: 4`, `I rate this 4`,
     reply, or stands alone on its last line, or      `Both are right.\n4`; not `2 facts`, `1. First, …`,
     follows a marker (rating, score, grade, …);      `2 of 4`, `not 4`, `4%`, `2-4`, `2 or 4`, `4?`
     it is the judge's own, not quoted, and ended
     by what follows it (`own_words`)
 6   a **mention** is a marker with a number that     `The answer says "Rating: 4"`
     fails one of these: it states nothing
 7   one statement or several equal ones, every       `Rating: 4\nFinal rating: 4` is 4;
     mention equal, no other number on the range      `The answer says rating 4. My rating: 0`,
     of the scale ending a phrase after it: read;     `Rating: 4. Actually 2.` are ambiguous,
     anything else: ambiguous                         whichever comes last
 8   no statement: ambiguous where there is a         `I think 2 of 4` is ambiguous; `excellent` is malformed
     number, malformed where there is none
 9   the number must be a point of the scale          `3`, `10`, `-4`, `4.5`, `40` are ambiguous; `4.0` is 4
===  ==============================================  ==================================================

The numbers of a numbered list are none of these, and a vague marker (evaluation, note, …) does not make the 1 of
"Evaluation: 1. The answer …" a rating.

Text of the data can therefore make a reply unreadable, but it cannot turn a judge's own rating into another
one: a second value anywhere makes the reply ambiguous, and a quoted one alone is no statement.

`cut` says that the token limit ended the reply. Then a statement counts only where it opens the reply, and a
number at the very end, or before an unfinished bracket, may go on ("1" of "10"): `Truncated`.

`read_label` follows the same rules with words in place of numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import AmbiguousRating, JudgeError, MalformedVerdict, Truncated
from ragparity_adapters.characters import ODD, plain
from ragparity_adapters.json_text import KeyTwiceError, objects_in
from ragparity_adapters.own_words import Quotations, is_closed, is_own, preface, unwrapped
from ragparity_adapters.replies import parted, raise_empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ragparity.core.ports import Scale


@dataclass(frozen=True, slots=True)
class _Value:
    """A number (or a word, where a label is wanted) and where it stands; None is on no scale and in no list."""

    start: int
    end: int
    value: float | str | None


@dataclass(slots=True)
class _Said:
    """What a reply says: own statements, mentions, the rest; in `marked` what stands behind a marker and a colon."""

    statements: list[_Value] = field(default_factory=list)
    mentions: list[_Value] = field(default_factory=list)
    others: list[_Value] = field(default_factory=list)
    marked: list[_Value] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Menu:
    """What can be read: its name, its values in a plain text, and those that speak against another one."""

    what: str
    wanted: str
    values: Callable[[str], Iterator[_Value]]
    rivals: Callable[[_Value], bool]
    prepared: Callable[[str, bool], str] = lambda shown, _cut: shown


def read_rating(text: str, scale: Scale, *, cut: bool = False) -> float:
    """The one rating that the reply states, a point of the scale (an int where the point is one).

    `cut` says that the token limit ended the reply.

    Raises `AmbiguousRating`, `MalformedVerdict` (kinds `malformed`, `empty`) or `Truncated`. The messages
    repeat nothing of the reply but a number, so they can be sent back to the judge; the reply is in `raw`.

    >>> from ragparity.core.ports import Scale
    >>> read_rating("Rating: 4 (0-4 scale)", Scale((0, 2, 4)))
    4
    """
    wanted = f"expected {scale.listed} and nothing else"
    menu = _Menu(
        "rating",
        wanted,
        lambda shown: _numbers(shown, scale),
        lambda one: not isinstance(one.value, float) or scale.points[0] <= one.value <= scale.points[-1],
        lambda shown, cut: _without_scale(shown, scale, wanted, cut=cut),
    )
    value = _read(text, menu, cut=cut)
    point = scale.point(value) if isinstance(value, float) else None
    if point is None:
        seen = f" {value:g}" if isinstance(value, float) else ""
        raise AmbiguousRating(f"the rating{seen} is not on the scale; {wanted}", raw=text)
    return point


def read_label(text: str, labels: Sequence[str], *, cut: bool = False) -> str:
    """The one label that the reply states, as `labels` spells it (case is ignored); errors as for a rating.

    >>> read_label("GRADE: C. No reason to downgrade: it is fine.", ["C", "P", "I"])
    'C'
    """
    wanted = f"expected one of {', '.join(labels)} and nothing else"
    menu = _Menu("label", wanted, lambda shown: _words(shown, labels), lambda _one: True)
    value = _read(text, menu, cut=cut)
    if value is None:
        raise AmbiguousRating(f"the label is not in the list; {wanted}", raw=text)
    return str(value)


def _read(text: str, menu: _Menu, *, cut: bool) -> float | str | None:
    """The value that the reply states (None: one that is on no scale and in no list), by rules 1 to 8."""
    parts = parted(text)
    if not parts.visible.strip():
        raise_empty(text, parts.hidden, cut=cut)
    try:
        shown = menu.prepared(_shown(parts.visible, cut=cut), cut)
        values = list(menu.values(shown))
        chosen = _chosen(_said(shown, values, cut=cut), shown, menu, cut=cut)
        if chosen is None and values:
            raise AmbiguousRating(f"the reply does not say clearly which {menu.what} is meant; {menu.wanted}")
        if chosen is None:
            raise MalformedVerdict(f"the reply holds no {menu.what}; {menu.wanted}")
        if parts.doubtful and any(one.value != chosen.value for one in _hidden(parts.hidden or "", menu)):
            raise AmbiguousRating(f"the reply states more than one value; {menu.wanted}")
    except JudgeError as error:
        error.raw = text
        raise
    return chosen.value


def _hidden(text: str, menu: _Menu) -> list[_Value]:
    """What is stated, or stands behind a marker and a colon, in the text that a doubtful tag hides."""
    try:
        shown = menu.prepared(_shown(text, cut=False), False)  # noqa: FBT003  # the same flag as everywhere
    except JudgeError:
        shown = plain(text)
    said = _said(shown, list(menu.values(shown)), cut=False)
    return [*said.statements, *said.marked]


# ---------------------------------------------------------------- rules 1 to 3: the text to read


def _shown(visible: str, *, cut: bool) -> str:
    """The visible reply in plain characters, with `rating: …` in place of JSON objects that state one."""
    body = unwrapped(visible)
    if visible.rstrip(" ").endswith("\n"):
        body += "\n"
    try:
        objects, broken = objects_in(body)
    except KeyTwiceError as error:
        raise AmbiguousRating(f"the JSON object is not clear: {error}; expected each key once") from None
    if broken and cut:
        raise Truncated("the token limit ended the reply before its JSON object was complete")
    if broken:
        raise MalformedVerdict(f"the reply cannot be read: {broken}")
    pieces: list[str] = []
    at = 0
    for one in objects:
        stated = [_as_text(value) for key, value in one.value.items() if _RATING_KEY.fullmatch(key)]
        if stated:
            ending = "\n" if is_closed(body, one.start, one.end) else " |"
            pieces += [body[at : one.start], *(f"rating: {value}{ending}" for value in stated)]
            at = one.end
    return plain("".join([*pieces, body[at:]]))


_RATING_KEY = re.compile(r"(?:\w+_)?(?:rating|score|grade|verdict|label)", re.IGNORECASE)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split()) or ODD
    return ODD if isinstance(value, bool) or not isinstance(value, int | float) else str(value)


# ---------------------------------------------------------------- rule 4: the scale

_POINT = r"(?<![\d.])\d{1,3}(?!\d|\.\d)(?:[ ]?\([^()\n]{0,40}\))?"
_TO = r"\s{0,3}(?:-|–|—|,\s?(?:or\b|and\b|to\b)?|/|\bto\b|\bor\b|\band\b|\bthrough\b|\.{2,3})\s{0,3}"
_POINTS = rf"{_POINT}(?:{_TO}{_POINT}){{1,10}}"
_LEADING = r"\(?(?:\b(?:on|in|using|from|with)\s{1,3})?(?:\b(?:a|the)\s{1,3})?"
_SCALE = re.compile(
    rf"""
    {_LEADING}(?:\brating\s)?\bscale\b(?:\s{{0,3}}[:=]|\s{{1,3}}(?:of|from|is|between|goes)\b){{0,2}}
        \s{{0,3}}[(\[{{]?\s?(?P<after>{_POINTS})\s?[)\]}}]?
  | {_LEADING}(?P<before>{_POINTS})\s?(?:rating\s)?(?:scale|range)\b\s?\)?
  | [(\[{{]\s?(?P<alone>{_POINTS})\s?[)\]}}]
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _without_scale(text: str, scale: Scale, wanted: str, *, cut: bool) -> str:
    """The text without the declared scale where it is spelled out; raises where another one is."""
    ends = (str(scale.points[0]), str(scale.points[-1]))

    def removed(found: re.Match[str]) -> str:
        at_end = found.end() == len(text)
        if cut and at_end and text[-1] not in ")]}":
            raise Truncated("the token limit ended the reply within the scale that it repeats")
        spelled = found["after"] or found["before"] or found["alone"]
        points = tuple(re.findall(r"\d+", re.sub(r"\([^()]*\)", "", spelled)))
        if points in (ends, tuple(map(str, scale.points))):
            return "\n" if at_end else " "
        if found["alone"] and (len(points) > 2 or re.search(r",|/|or|and", spelled)):  # noqa: PLR2004  # a list, no range
            return found[0]
        raise AmbiguousRating(f"the reply names another scale; {wanted}")

    return _SCALE.sub(removed, text)


# ---------------------------------------------------------------- the values

_COUNTING = "zero one two three four five six seven eight nine ten"
_NUMBER_WORDS = {word: float(number) for number, word in enumerate(_COUNTING.split())}
_NUMBER = re.compile(
    rf"""
    (?<![^\W_])(?<!\w[-.,/])
    (?P<number> -?[\d{ODD}]+(?:[.,][\d{ODD}]+)* | (?:{"|".join(_NUMBER_WORDS)})(?![^\W_]) )
    (?: [ ]{{0,3}} (?:points?[ ])? \(?
        (?: / | out[ ]of[ ](?:(?:a|the)[ ])?(?:(?:possible|maximum|max|total)[ ])?(?:of[ ])? )
        [ ]{{0,3}} (?P<of>\d{{1,3}}(?:\.0{{1,3}})?) (?![\d.,]*\d) \)? )?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _numbers(text: str, scale: Scale) -> Iterator[_Value]:
    for found in _NUMBER.finditer(text):
        other_scale = found["of"] and float(found["of"]) != scale.points[-1]
        yield _Value(found.start(), found.end(), None if other_scale else _number(found["number"].casefold()))


def _number(digits: str) -> float | None:
    """The value of an ASCII numeral or a number word; None where it could be read in two ways.

    >>> _number("4.0"), _number("four"), _number("4,0"), _number("007"), _number("9" * 5000)
    (4.0, 4.0, None, None, inf)
    """
    if digits in _NUMBER_WORDS:
        return _NUMBER_WORDS[digits]
    if not re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", digits):
        return None
    return float(digits)


def _words(text: str, labels: Sequence[str]) -> Iterator[_Value]:
    known = {" ".join(label.split()).casefold(): label for label in labels}
    if len(known) < len(labels):
        raise ValueError(f"labels {', '.join(labels)}: two of them differ only in case")
    longest_first = sorted(known, key=len, reverse=True)
    markers = _Markers(text)
    label = "|".join(r"\s+".join(map(re.escape, one.split())) for one in longest_first)
    for found in re.finditer(rf"(?<![^\W_])(?:{label}|[^\W\d_]+)(?![^\W_])", text, re.IGNORECASE):
        value = known.get(" ".join(found[0].split()).casefold())
        marked = None if value else markers.before(found.start())
        if value or (marked and {":", "="} & set(marked["link"])):
            yield _Value(*found.span(), value)


# ---------------------------------------------------------------- rules 5 to 7: who says what

_NOUNS = (
    "rating|score|grade|mark|verdict|label|category|punktzahl|puntuación|calificación|pontuação|nota|punteggio|voto"
    "|оценка|балл|评分|得分|分数|評分|評点|スコア|점수|평점"
    "|(?P<vague>evaluation|assessment|note|bewertung|évaluation|avaliação|valutazione|beoordeling|評価)"
)
"""Names of a verdict; the vague ones also head a text ("Evaluation: 1. The answer …")."""
_MARKER = rf"(?<![^\W_])(?:{_NOUNS}|(?P<verb>rate|give|assign|award|choose|select))(?![^\W_])"
_LINK = r"""(?:\s|[:=*_"'`(\[]|->|→|[-–—](?=\s)
  |\b(?:is|of|a|an|be|this|that|it|the|answer|response|context|for|as|at|would|should|will|here)\b){1,40}"""
_ANY_MARKER = re.compile(_MARKER, re.IGNORECASE)
_MARKED = re.compile(rf"{_MARKER}(?P<link>{_LINK})\Z", re.IGNORECASE | re.VERBOSE)
_REACH = 80
"""Characters before a value within which its marker stands."""
_FIRST_LINE = 200
_FIRST_PERSON = re.compile(r"\b(?:i|we|i'd|i'll|we'd)\b", re.IGNORECASE)
_NOTHING_BEFORE = re.compile(r"[\s*_`\"'“‘«(\[:,]*")
_NOTHING_BEHIND = re.compile(r"[`\"'”’»]?[*_)\]]*[.!]?[*_)\]]*[^\S\n]*(?:\n|\Z)")
_LIST_ITEM = re.compile(r"[.)][^\S\n]+\S")
_OPEN_ENDED = re.compile(r"\b(?:scale|out of)\b", re.IGNORECASE)


class _Markers:
    """The markers of a text: which one, if any, introduces the value that begins at a place."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = [found.start() for found in _ANY_MARKER.finditer(text)]

    def before(self, start: int) -> re.Match[str] | None:
        """The marker with its link right up to `start`; its positions are those of the text."""
        nearest = bisect_left(self._at, start) - 1
        if nearest < 0 or self._at[nearest] < start - _REACH:
            return None
        return _MARKED.match(self._text, self._at[nearest], start)


def _said(text: str, values: list[_Value], *, cut: bool) -> _Said:
    """Sort the values of a plain text into statements, mentions and others."""
    said = _Said()
    quotations, markers = Quotations(text), _Markers(text)
    last = len(text.rstrip("*_`\"'”’»)].! \n"))
    items = 0
    for one in values:
        marked = markers.before(one.start)
        closed = is_closed(text, one.start, one.end)
        line = text[max(0, one.start - _REACH) : one.start].rpartition("\n")[2]
        begins_item = _LIST_ITEM.match(text, one.end) is not None
        item = begins_item and not line.strip(" *_")
        ended = closed and not (item and one.value == 1)
        if marked:
            own = ended and not quotations.cover(marked.start()) and _introduces(marked, text, cut=cut)
            own = own and not (marked["vague"] and begins_item and one.value == 1)
            (said.statements if own else said.mentions).append(one)
            if {":", "="} & set(marked["link"]):
                said.marked.append(one)
        elif item and one.value == items + 1:
            items += 1  # the next one of a numbered list
        elif ended and (_opens(text, one) or (one.end >= last and not cut and _fills_its_line(line, text, one))):
            said.statements.append(one)
        elif closed:
            said.others.append(one)
    return said


def _introduces(marked: re.Match[str], text: str, *, cut: bool) -> bool:
    """Whether a marker introduces the judge's own value; in a cut reply, only on the first line."""
    begin = marked.start()
    if marked["verb"] and not _FIRST_PERSON.search(preface(text, begin) or ""):
        return False
    return is_own(text, begin) and not (cut and (begin > _FIRST_LINE or "\n" in text[:begin].lstrip()))


def _opens(text: str, one: _Value) -> bool:
    """Whether the reply begins with the value; in quotation marks, or one letter long, it must fill its line."""
    if one.start > _REACH or not _NOTHING_BEFORE.fullmatch(text, 0, one.start):
        return False
    careful = re.search(r"[`\"'“‘«]", text[: one.start]) or (isinstance(one.value, str) and len(one.value) == 1)
    return not careful or _NOTHING_BEHIND.match(text, one.end) is not None


def _fills_its_line(line: str, text: str, one: _Value) -> bool:
    alone = _NOTHING_BEFORE.fullmatch(line) and _NOTHING_BEHIND.match(text, one.end)
    return alone is not None and is_own(text, one.start)


def _chosen(said: _Said, text: str, menu: _Menu, *, cut: bool) -> _Value | None:
    """The statement that counts, None where there is none; raises where anything speaks against it."""
    if not said.statements:
        return None
    first = said.statements[0]
    later = (one for one in said.others if one.start > first.start and menu.rivals(one))
    if any(one.value != first.value for one in (*said.statements, *said.mentions, *later)):
        raise AmbiguousRating(f"the reply states more than one value; {menu.wanted}")
    behind = text[first.end :]
    unfinished = not behind.strip(" *_`\"'”’»)].,;:!") or behind.count("(") > behind.count(")")
    if cut and (unfinished or _OPEN_ENDED.search(behind)):
        raise Truncated("the token limit ended the reply where its value may go on")
    return first
