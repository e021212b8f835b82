"""The ids that rows of a data set have taken so far, in few bytes each, so that no two rows have one."""

from __future__ import annotations

from array import array
from bisect import bisect_left

_SHELVES = 4096
"""A power of two. A shelf of a million ids holds about 250 of them."""


class TakenIds:
    """Gives every row an id that no earlier row has.

    An id is remembered as its 64-bit hash: 8 bytes, however long it is. Among a million different ids two have the
    same hash once in 37 million data sets (n² / 2⁶⁵); the later row is then numbered without need.

    >>> taken = TakenIds()
    >>> [taken.given("7"), taken.given("7"), taken.given("7#2"), taken.given("7")]
    ['7', '7#2', '7#2#2', '7#3']
    """

    def __init__(self) -> None:
        self._shelves = [array("q") for _ in range(_SHELVES)]
        self._last: dict[str, int] = {}

    def given(self, wanted: str) -> str:
        """The id itself where it is free, else the first that is free of `wanted#2`, `wanted#3`, …"""
        if self._take(wanted):
            return wanted
        number = self._last.get(wanted, 1) + 1
        while not self._take(candidate := f"{wanted}#{number}"):
            number += 1
        self._last[wanted] = number
        return candidate

    def _take(self, wanted: str) -> bool:
        """Whether the id was free; it no longer is."""
        known = hash(wanted)
        shelf = self._shelves[known & (_SHELVES - 1)]
        at = bisect_left(shelf, known)
        if at < len(shelf) and shelf[at] == known:
            return False
        shelf.insert(at, known)
        return True
