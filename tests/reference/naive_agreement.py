"""Agreement statistics a second time, as loops over the textbook formulas, with exact fractions where possible.

Nothing here uses matrices, weights or the product's code, and each function does one sample at a time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product


def exact(values):
    return [Fraction(value) for value in values]


def average(values):
    return sum(values, Fraction(0)) / len(values)


def variance(values, other=None):
    """Over n; the covariance when a second column is given."""
    other = values if other is None else other
    left, right = average(values), average(other)
    return average([(x - left) * (y - right) for x, y in zip(values, other, strict=True)])


def pearson(a, b):
    a, b = exact(a), exact(b)
    return float(variance(a, b)) / math.sqrt(variance(a) * variance(b))


def ranks(values):
    return [
        Fraction(sum(other < value for other in values)) + Fraction(sum(other == value for other in values) + 1, 2)
        for value in values
    ]


def spearman(a, b):
    return pearson(ranks(a), ranks(b))


def sign(number):
    return (number > 0) - (number < 0)


def kendall(a, b):
    concordance = untied_a = untied_b = 0
    for (x1, y1), (x2, y2) in combinations(zip(a, b, strict=True), 2):
        concordance += sign(x1 - x2) * sign(y1 - y2)
        untied_a += x1 != x2
        untied_b += y1 != y2
    return concordance / math.sqrt(untied_a * untied_b)


def concordance(*columns):
    """Over all pairs of columns; Lin's coefficient for two."""
    columns = [exact(column) for column in columns]
    above = below = Fraction(0)
    for left, right in combinations(columns, 2):
        above += 2 * variance(left, right)
        below += variance(left) + variance(right) + (average(left) - average(right)) ** 2
    return float(above / below)


def icc_absolute(a, b):
    """Two-way analysis of variance, cell by cell."""
    table = [exact(row) for row in zip(a, b, strict=True)]
    n, k = len(table), 2
    grand = average([cell for row in table for cell in row])
    row_means = [average(row) for row in table]
    column_means = [average([row[j] for row in table]) for j in range(k)]
    rows = k * sum((mean - grand) ** 2 for mean in row_means) / (n - 1)
    columns = n * sum((mean - grand) ** 2 for mean in column_means) / (k - 1)
    residual = sum(
        (table[i][j] - row_means[i] - column_means[j] + grand) ** 2 for i, j in product(range(n), range(k))
    ) / ((n - 1) * (k - 1))
    return float((rows - residual) / (rows + (k - 1) * residual + Fraction(k, n) * (columns - residual)))


def regression_slope(x, y):
    x, y = exact(x), exact(y)
    return float(variance(x, y) / variance(x))


def middle(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def hodges_lehmann(a, b):
    differences = [x - y for x, y in zip(exact(a), exact(b), strict=True)]
    return float(middle([(differences[i] + differences[j]) / 2 for j in range(len(a)) for i in range(j + 1)]))


def signed_rank_p(a, b):
    """Every change of signs, with the ranks of all differences, zeros included."""
    differences = [x - y for x, y in zip(exact(a), exact(b), strict=True)]
    placed = ranks([abs(difference) for difference in differences])
    kept = [(rank, difference) for rank, difference in zip(placed, differences, strict=True) if difference]
    seen = sum(rank for rank, difference in kept if difference > 0)
    sums = [
        sum(rank for (rank, _), plus in zip(kept, signs, strict=True) if plus)
        for signs in product((0, 1), repeat=len(kept))
    ]
    low = Fraction(sum(total <= seen for total in sums), len(sums))
    high = Fraction(sum(total >= seen for total in sums), len(sums))
    return float(min(Fraction(1), 2 * min(low, high)))


def disagreement(i, j, k, weighting):
    if weighting == "none":
        return Fraction(i != j)
    apart = Fraction(abs(i - j), k - 1)
    return apart if weighting == "linear" else apart**2


def kappa(a, b, k, weighting="none"):
    n = len(a)
    observed = sum(disagreement(i, j, k, weighting) for i, j in zip(a, b, strict=True)) / Fraction(n)
    expected = sum(disagreement(i, j, k, weighting) for i in a for j in b) / Fraction(n * n)
    return float(1 - observed / expected)


def gwet(a, b, k, weighting="none"):
    n = len(a)
    agree = {(i, j): 1 - disagreement(i, j, k, weighting) for i, j in product(range(k), repeat=2)}
    seen = sum(agree[i, j] for i, j in zip(a, b, strict=True)) / Fraction(n)
    shares = [Fraction(a.count(c) + b.count(c), 2 * n) for c in range(k)]
    chance = sum(agree.values()) / Fraction(k * (k - 1)) * sum(share * (1 - share) for share in shares)
    return float((seen - chance) / (1 - chance))


def binomial_two_sided(hits, n):
    below = sum(math.comb(n, i) for i in range(min(hits, n - hits) + 1))
    return float(min(Fraction(1), Fraction(2 * below, 2**n)))


def auroc(scores, labels):
    good = [score for score, label in zip(scores, labels, strict=True) if label]
    bad = [score for score, label in zip(scores, labels, strict=True) if not label]
    wins = sum(Fraction(sign(x - y) + 1, 2) for x in good for y in bad)
    return float(wins / (len(good) * len(bad)))


def krippendorff(ratings, level):
    """By the coincidence matrix, as in Krippendorff 2011."""
    units = [[row[u] for row in ratings if row[u] is not None] for u in range(len(ratings[0]))]
    units = [unit for unit in units if len(unit) > 1]
    values = sorted({value for unit in units for value in unit})
    together = {pair: Fraction(0) for pair in product(values, repeat=2)}
    for unit in units:
        for i, j in product(range(len(unit)), repeat=2):
            if i != j:
                together[unit[i], unit[j]] += Fraction(1, len(unit) - 1)
    counts = {value: sum(together[value, other] for other in values) for value in values}
    total = sum(counts.values())

    def distance(c, k):
        if level == "nominal":
            return Fraction(c != k)
        if level == "interval":
            return (Fraction(c) - Fraction(k)) ** 2
        low, high = min(c, k), max(c, k)
        between = sum(counts[g] for g in values if low <= g <= high)
        return (between - (counts[c] + counts[k]) / 2) ** 2

    observed = sum(together[c, k] * distance(c, k) for c, k in together) / total
    expected = sum(counts[c] * counts[k] * distance(c, k) for c, k in together) / (total * (total - 1))
    return float(1 - observed / expected)
