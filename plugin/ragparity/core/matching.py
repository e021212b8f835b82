"""Pairing two lists so that the total weight is the greatest possible. Exact, pure functions.

Both take a table `weights[row][column]`: a number from 0 up, or `None` where the two must not be paired.
Both give `{row: column}`, each row and each column at most once.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Weights = Sequence[Sequence[Fraction | None]]


def pairs_in_order(weights: Weights) -> dict[int, int]:
    """The heaviest pairing in which a later row never meets an earlier column.

    Weighted longest common subsequence by dynamic programming; time and space rows times columns.

    >>> half, one = Fraction(1, 2), Fraction(1)
    >>> pairs_in_order([[half, one], [half, None]])
    {0: 1}
    """
    rows = len(weights)
    columns = len(weights[0]) if rows else 0
    best = [[Fraction(0)] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            weight = weights[row][column]
            paired = Fraction(-1) if weight is None else weight + best[row + 1][column + 1]
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    pairs: dict[int, int] = {}
    row = column = 0
    while row < rows and column < columns:
        weight = weights[row][column]
        if weight is not None and best[row][column] == weight + best[row + 1][column + 1]:
            pairs[row] = column
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs


def pairs_in_any_order(weights: Weights) -> dict[int, int]:
    """The heaviest pairing, whatever the order.

    The Hungarian method (Kuhn 1955, Munkres 1957) with one shortest augmenting path per row; time
    rows² times columns, rows being the shorter side.

    >>> half, one = Fraction(1, 2), Fraction(1)
    >>> pairs_in_any_order([[one, half], [one, None]])
    {0: 1, 1: 0}
    """
    if not weights or not weights[0]:
        return {}
    if len(weights) > len(weights[0]):
        turned = pairs_in_any_order([list(column) for column in zip(*weights, strict=True)])
        return dict(sorted((row, column) for column, row in turned.items()))
    # An unwanted pair costs nothing and is dropped at the end, so that every row can have a column.
    cost = [[Fraction(0) if weight is None else -weight for weight in row] for row in weights]
    row_price = [Fraction(0)] * len(cost)
    column_price = [Fraction(0)] * len(cost[0])
    owner: list[int | None] = [None] * len(cost[0])
    for row in range(len(cost)):
        _augment(row, cost, row_price, column_price, owner)
    found = sorted((row, column) for column, row in enumerate(owner) if row is not None)
    return {row: column for row, column in found if weights[row][column] is not None}


def _augment(
    start: int,
    cost: list[list[Fraction]],
    row_price: list[Fraction],
    column_price: list[Fraction],
    owner: list[int | None],
) -> None:
    """Give row `start` a column along the cheapest path, keeping every reduced cost at 0 or above."""
    columns = range(len(column_price))
    reach: dict[int, Fraction] = {}
    before: dict[int, int | None] = {}
    settled: dict[int, Fraction] = {}
    row, last, so_far = start, None, Fraction(0)
    while True:
        for column in columns:
            if column in settled:
                continue
            price = so_far + cost[row][column] - row_price[row] - column_price[column]
            if column not in reach or price < reach[column]:
                reach[column], before[column] = price, last
        last = min((column for column in columns if column not in settled), key=reach.__getitem__)
        so_far = reach[last]
        holder = owner[last]
        if holder is None:
            break
        settled[last] = so_far
        row = holder
    row_price[start] += so_far
    for column, at in settled.items():
        row_price[owner[column]] += so_far - at  # type: ignore[index]  # a settled column has an owner
        column_price[column] -= so_far - at
    free: int | None = last
    while free is not None:
        previous = before[free]
        owner[free] = start if previous is None else owner[previous]
        free = previous
