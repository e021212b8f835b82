"""What people would have said about all rows, from a judge of all rows and people's labels of some.

A judge that errs in a known way can be corrected: a pass rate by its sensitivity and specificity
(Rogan-Gladen), a mean score by its mean error (prediction-powered inference). Both ask that the labelled
rows are a random sample of the same population as the others, and that no row stands on both sides.
"""

from __future__ import annotations

import math

import numpy as np

from ragparity.agreement.resampling import Estimate, Scores, columns, normal_quantile
from ragparity.agreement.verdicts import Codes, confusion

ENOUGH_LABELS = 30
"""Labels per class below which a corrected pass rate is wide and unstable."""


def rogan_gladen(judged: Codes, labelled_judge: Codes, labelled_human: Codes) -> Estimate:
    """The share of `judged` rows that people would pass, 0..1.

    `judged` are the judge's verdicts on the rows in question, without labels; `labelled_judge` and
    `labelled_human` verdicts and labels of other rows. With pass rate p, sensitivity q₁ (m₁ good rows) and
    specificity q₀ (m₀ bad rows) the estimate is (p + q₀ − 1)/(q₀ + q₁ − 1), clipped to 0..1 (Rogan and Gladen
    1978, Am. J. Epidemiol. 107, 71). The interval is that of Lee et al. 2025 (arXiv 2511.21140): p, q₀, q₁
    are shrunk by z²/2 of z² and by 1 of 2 added rows, the centre is shifted by
    2z²·(θ·q₁(1−q₁)/m₁ − (1−θ)·q₀(1−q₀)/m₀), and the variance adds the three binomial ones. Undefined where
    the judge is no better than chance on the labelled rows (q₀ + q₁ ≤ 1): the variance explodes near it.
    """
    verdicts, _ = columns(np.asarray(judged, dtype=np.float64), np.asarray(judged, dtype=np.float64))
    counts = confusion(labelled_judge, labelled_human)
    q1, q0 = counts.sensitivity, counts.specificity
    if not len(verdicts):
        return Estimate(why="undefined: no judged rows without a label")
    if q1 is None or q0 is None:
        return Estimate(why="undefined: it needs labelled rows that people pass and rows that they fail")
    if q0 + q1 <= 1:
        return Estimate(why="undefined: sensitivity + specificity ≤ 1, no better than chance on the labelled rows")
    good, bad = counts.true_pass + counts.false_fail, counts.true_fail + counts.false_pass
    passed = float(verdicts.mean())
    value = min(1.0, max(0.0, (passed + q0 - 1) / (q0 + q1 - 1)))
    z2 = normal_quantile() ** 2
    n, m0, m1 = len(verdicts) + z2, bad + 2, good + 2
    p = (len(verdicts) * passed + z2 / 2) / n
    q0, q1 = (counts.true_fail + 1) / m0, (counts.true_pass + 1) / m1
    if q0 + q1 <= 1:
        return Estimate(value, why="no interval: too few labels to tell the judge from chance")
    rate = (p + q0 - 1) / (q0 + q1 - 1)
    error0, error1 = q0 * (1 - q0) / m0, q1 * (1 - q1) / m1
    shift = 2 * z2 * (rate * error1 - (1 - rate) * error0)
    spread = math.sqrt(p * (1 - p) / n + (1 - rate) ** 2 * error0 + rate**2 * error1) / (q0 + q1 - 1)
    half = math.sqrt(z2) * spread
    low, high = (min(1.0, max(0.0, end)) for end in (rate + shift - half, rate + shift + half))
    few = f"fewer than {ENOUGH_LABELS} labels of a class: wide and unstable" if min(good, bad) < ENOUGH_LABELS else None
    return Estimate(value, low, high, few)


def power_tuning(labelled_human: Scores, labelled_judge: Scores, unlabelled_judge: Scores) -> float:
    """PPI++'s λ: how far to trust the judge, 0 (not at all) to 1.

    cov(label, score) / ((1 + n/N)·var(score)) for n labelled and N other rows, the variance over all of
    them, clipped to 0..1 (Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453). A judge that is
    useless gets 0, so it cannot widen the interval.
    """
    human, judge = columns(labelled_human, labelled_judge)
    (others,) = columns(unlabelled_judge)
    n, rest = len(human), len(others)
    if n < 2 or not rest:  # noqa: PLR2004  # a covariance takes two
        return 0.0
    spread = float(np.concatenate([judge, others]).var(ddof=1))
    together = float(((human - human.mean()) * (judge - judge.mean())).sum()) / (n - 1)
    return min(1.0, max(0.0, together / ((1 + n / rest) * spread))) if spread > 0 else 0.0


def ppi_mean(
    labelled_human: Scores, labelled_judge: Scores, unlabelled_judge: Scores, *, tuning: float | None = None
) -> Estimate:
    """The mean of people's scores over all rows, in the units of the labels (PPI++).

    mean(λ·score of the others) + mean(label − λ·score) with the normal interval of the two independent means
    (Angelopoulos et al. 2023, arXiv 2301.09633 and 2311.01453). `tuning` fixes λ: 1 is plain PPI, 0 the mean
    of the labels alone; without it λ is `power_tuning`.
    """
    human, judge = columns(labelled_human, labelled_judge)
    (others,) = columns(unlabelled_judge)
    if not len(human):
        return Estimate(why="undefined: no labelled rows")
    trust = power_tuning(human, judge, others) if tuning is None else tuning if len(others) else 0.0
    rest = human - trust * judge
    value = float(rest.mean()) + (trust * float(others.mean()) if len(others) else 0.0)
    if len(human) < 2:  # noqa: PLR2004  # a spread takes two
        return Estimate(value, why="no interval: a single labelled row")
    variance = float(rest.var(ddof=1)) / len(human)
    if len(others) > 1:
        variance += trust**2 * float(others.var(ddof=1)) / len(others)
    half = normal_quantile() * math.sqrt(variance)
    if half == 0:
        return Estimate(value, why="no interval: the labels do not vary")
    few = f"fewer than {ENOUGH_LABELS} labels: the normal interval is too short" if len(human) < ENOUGH_LABELS else None
    return Estimate(value, value - half, value + half, few)
