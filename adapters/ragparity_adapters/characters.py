"""The characters of a reply as they are read: every script's digits, no unseen characters, one kind of dash."""

from __future__ import annotations

import unicodedata

ODD = "\ufffd"
"""Stands for a numeral that is no decimal digit: a half, a superscript, a circled one."""


class _Plain(dict[int, str]):
    """Each character as it is read: decimal digits as ASCII, unseen characters gone, dashes and blanks made one."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        category = unicodedata.category(sign)
        plain = unicodedata.normalize("NFKC", sign)
        if category == "Nd":
            plain = str(unicodedata.decimal(sign))
        elif category in ("No", "Nl") or any(part.isnumeric() and part.isascii() for part in plain):
            plain = ODD
        elif category == "Cf" or sign in "\ufe0e\ufe0f\u20e3":
            plain = ""
        elif sign in "\n\r\x0b\x0c\x85\u2028\u2029":
            plain = "\n"
        elif category in ("Cc", "Zs"):
            plain = " "
        elif sign in "\u2212\u2010\u2011\ufe63\uff0d":
            plain = "-"
        self[code] = plain
        return plain


_PLAIN = _Plain()


def plain(text: str) -> str:
    r"""The text in plain characters.

    >>> plain("４\u200b, \u0664, ½, \u22124")
    '4, 4, \ufffd, -4'
    """
    return text.translate(_PLAIN)
