"""The quantile of Student's t distribution, for the interval of a mean without a statistics package."""

from __future__ import annotations

import math
from functools import lru_cache

_STEPS = 200
_TINY = 1e-300
_NEAR = 1e-16
_LARGE = 100.0


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz' method."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    h = d
    for m in range(1, _STEPS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + numerator / c
            c = c if abs(c) > _TINY else _TINY
            h *= d * c
        if abs(d * c - 1.0) < _NEAR:
            break
    return h


def _log_gamma_step(a: float) -> float:
    """The step from ln Γ(a) to ln Γ(a + 1/2); for large a by the series that follows from Abramowitz and Stegun 6.1.40.

    (The two logarithms nearly cancel there.)
    """
    if a < _LARGE:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    return 0.5 * math.log(a) - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5)


def _upper_tail(t: float, df: int) -> float:
    """P(T > t) for t >= 0, as half the regularised incomplete beta function I_{df/(df+t²)}(df/2, 1/2)."""
    a, b, x = df / 2.0, 0.5, df / (df + t * t)
    log_beta = 0.5 * math.log(math.pi) - _log_gamma_step(a)
    front = math.exp(-log_beta - a * math.log1p(t * t / df) + b * math.log(t * t / (df + t * t)))
    if x < (a + 1.0) / (a + b + 2.0):
        return 0.5 * front * _beta_fraction(a, b, x) / a
    return 0.5 * (1.0 - front * _beta_fraction(b, a, t * t / (df + t * t)) / b)


@lru_cache(maxsize=4096)
def t_quantile(df: int, tail: float = 0.025) -> float:
    """The t with P(T > t) = `tail` at `df` >= 1 degrees of freedom, to about 11 digits, by bisection.

    >>> round(t_quantile(1), 4), round(t_quantile(30), 4)
    (12.7062, 2.0423)
    """
    low, high = 1e-9, 1.0
    while _upper_tail(high, df) > tail:
        high *= 2.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if _upper_tail(middle, df) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
