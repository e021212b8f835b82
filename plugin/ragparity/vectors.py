"""Similarity of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragparity.core.errors import SampleError


def cosine(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The cosine of the angle between two vectors, from −1 to 1; `None` where one of them is zero.

    Vectors of different length, or with values that are not finite, are an error of the embedder.

    >>> cosine([1.0, 0.0], [3.0, 4.0])
    0.6
    """
    if len(a) != len(b):
        raise SampleError(f"the embedder gave vectors of different length: {len(a)} and {len(b)}")
    largest_a, largest_b = max(map(abs, a), default=0.0), max(map(abs, b), default=0.0)
    if not (math.isfinite(largest_a) and math.isfinite(largest_b)):
        raise SampleError("the embedder gave a value that is not a finite number")
    if largest_a == 0.0 or largest_b == 0.0:
        return None
    x, y = [one / largest_a for one in a], [one / largest_b for one in b]
    value = math.sumprod(x, y) if hasattr(math, "sumprod") else math.fsum(p * q for p, q in zip(x, y, strict=True))
    return max(-1.0, min(1.0, value / (math.hypot(*x) * math.hypot(*y))))
