"""Two sets of scores joined by row id; rows without a score on either side are counted and left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from ragparity.agreement.resampling import DECIMALS
from ragparity.core.errors import SampleError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Scores of the same rows by two sides, in the order of side a.

    `a` and `b` hold finite numbers, one per id, rounded to 12 decimals: scores that differ by float dust are
    ties, and dust does not reach ranks and exact agreement. Of the rows that both sides know, `n_unscored_a` have no
    score by a and `n_unscored_b` none by b (a row without either counts in both); `n_only_a` and `n_only_b`
    are rows that the other side does not know at all.
    """

    ids: tuple[str, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]
    n_unscored_a: int = 0
    n_unscored_b: int = 0
    n_only_a: int = 0
    n_only_b: int = 0
    names: tuple[str, str] = ("a", "b")

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.a) == len(self.b):
            raise ValueError(f"pairs: {len(self.ids)} ids, {len(self.a)} and {len(self.b)} scores; expected as many")
        for side in ("a", "b"):
            object.__setattr__(self, side, tuple(round(float(score), DECIMALS) for score in getattr(self, side)))

    @property
    def n(self) -> int:
        """How many rows have a score on both sides."""
        return len(self.ids)


def pair(a: Mapping[str, float | None], b: Mapping[str, float | None], *, names: tuple[str, str] = ("a", "b")) -> Pairs:
    """Join scores by row id. `None` and NaN are unscored, and never compared as a number.

    `names` are what the two sides are called in messages. Raises `SampleError` for a score that is no finite
    number.

    >>> joined = pair({"1": 1.0, "2": None, "3": 0.5}, {"1": 0.5, "2": 1.0, "4": 0.0})
    >>> joined.ids, joined.a, joined.b, joined.n_unscored_a, joined.n_only_a, joined.n_only_b
    (('1',), (1.0,), (0.5,), 1, 1, 1)
    """
    kept: list[tuple[str, float, float]] = []
    unscored_a = unscored_b = 0
    for row in a:
        if row not in b:
            continue
        left, right = _score(a[row], row, names[0]), _score(b[row], row, names[1])
        unscored_a += left is None
        unscored_b += right is None
        if left is not None and right is not None:
            kept.append((row, left, right))
    return Pairs(
        ids=tuple(row for row, _, _ in kept),
        a=tuple(left for _, left, _ in kept),
        b=tuple(right for _, _, right in kept),
        n_unscored_a=unscored_a,
        n_unscored_b=unscored_b,
        n_only_a=sum(row not in b for row in a),
        n_only_b=sum(row not in a for row in b),
        names=names,
    )


def _score(value: object, row: str, side: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, Real):
        raise SampleError(
            f"row {row}: the score of {side} is {value!r}; expected a number, or null where there is none"
        )
    number = float(value)
    if math.isnan(number):
        return None
    if math.isinf(number):
        raise SampleError(f"row {row}: the score of {side} is {number}; expected a finite number")
    return number
