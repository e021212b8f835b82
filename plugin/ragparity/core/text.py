"""Text made comparable: normal forms, words, and scripts that are written without spaces. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Normalise = Literal["none", "case", "full"]
"""How two texts are made comparable before they are compared; see `normalised`."""

_UNSPACED = re.compile(
    "["
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Tai Le, New Tai Lue, Tai Tham, Tai Viet
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese iteration marks, Hiragana, Katakana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "]"
)

_ASCII_WORD = re.compile("[a-z0-9]+")

_PART_OF_A_VALUE = frozenset("#%&/@\\§‰‱")
"""Signs that Unicode counts as punctuation, although they change what a word says: 5%, C#, AT&T."""


def folded(text: str) -> str:
    r"""The text for a comparison that ignores case, width, compatibility forms and white space.

    This is compatibility caseless matching (The Unicode Standard, definition D146), with characters that
    nobody sees (soft hyphen, zero-width space, variation selectors) left out and runs of white space
    made one blank.

    >>> folded("  Straße   ½ ")
    'strasse 1⁄2'
    """
    if text.isascii():  # nothing to normalise, and by far the most frequent case
        return " ".join(text.lower().split())
    seen = "".join(sign for sign in unicodedata.normalize("NFD", text) if not _unseen(sign))
    once = unicodedata.normalize("NFKC", seen.casefold())
    return " ".join(unicodedata.normalize("NFKC", once.casefold()).split())


def normalised(text: str, how: Normalise) -> str:
    r"""The text as it is compared.

    `none`: as it is, to the last blank. `case`: case folded, nothing else. `full`: `folded`, and
    punctuation removed at both ends of each word. Punctuation inside a word stays, and so do dashes, a
    point before a digit and the signs ``# % & / @ \ §``, because they change a value: 3.5 is not 35, -5
    is not 5, 5% is not 5. Articles stay too.

    >>> normalised("It is **Paris**, (France).", "full")
    'it is paris france'
    >>> normalised("3.5, -5 and .5%!", "full")
    '3.5 -5 and .5%'
    """
    if how == "none":
        return text
    if how == "case":
        return text.casefold()
    return " ".join(bare_words(text))


def bare_words(text: str) -> list[str]:
    """The words between blanks of a text, folded, without punctuation at both ends.

    >>> bare_words("It is **Paris**, (France).")
    ['it', 'is', 'paris', 'france']
    """
    bare = [word if word.isalnum() else _without_edges(word) for word in folded(text).split()]
    return [word for word in bare if word]


def spaced(text: str) -> str:
    """The text with blanks round each character of a script that is written without spaces.

    Scripts: Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar and the Tai scripts. A character keeps
    the marks above and below it. Text in other scripts does not change.

    >>> spaced("die 東京 Messe")
    'die  東 京  Messe'
    """
    if text.isascii():
        return text
    pieces: list[str] = []
    after_one = False
    for sign in text:
        if unicodedata.category(sign).startswith("M") or _unseen(sign):
            pieces.append(sign)
            continue
        one = _UNSPACED.match(sign) is not None
        if one or after_one:
            pieces.append(" ")
        pieces.append(sign)
        after_one = one
    return "".join(pieces)


def words(text: str) -> list[str]:
    """The words of a text in any script, folded, without punctuation.

    A word is a run of letters, digits and their marks; each character of a script that is written
    without spaces is one word, and so is each pictograph. On ASCII text this is the tokeniser of the
    ROUGE-1.5.5 script: lower case, split at everything that is no letter or digit.

    >>> words("Don't panic: 3.5%!")
    ['don', 't', 'panic', '3', '5']
    >>> words("東京タワー 🗼")
    ['東', '京', 'タ', 'ワ', 'ー', '🗼']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    pieces: list[str] = []
    for sign in spaced(folded(text)):
        kind = unicodedata.category(sign)
        if kind[0] in "LNM":
            pieces.append(sign)
        else:
            pieces.append(f" {sign} " if kind == "So" else " ")
    return "".join(pieces).split()


def _unseen(sign: str) -> bool:
    return unicodedata.category(sign) == "Cf" or "\ufe00" <= sign <= "\ufe0f"


def _strippable(sign: str) -> bool:
    kind = unicodedata.category(sign)
    return kind in ("Ps", "Pe", "Pi", "Pf") or sign == "`" or (kind == "Po" and sign not in _PART_OF_A_VALUE)


_ASCII_EDGES = "".join(sign for sign in map(chr, range(128)) if _strippable(sign))


def _without_edges(word: str) -> str:
    if word.isascii():
        bare = word.rstrip(_ASCII_EDGES)
        inner = bare.lstrip(_ASCII_EDGES)
        return f".{inner}" if inner[:1].isdigit() and bare[-len(inner) - 1 : -len(inner)] == "." else inner
    start, end = 0, len(word)
    while end > start and _strippable(word[end - 1]):
        end -= 1
    while start < end and _strippable(word[start]):
        if word[start] == "." and word[start + 1 : start + 2].isdigit():
            break
        start += 1
    return word[start:end]
