from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragparity.core.matching import pairs_in_any_order, pairs_in_order

HALF, ONE = Fraction(1, 2), Fraction(1)

weights = st.sampled_from([None, Fraction(0), Fraction(1, 3), HALF, Fraction(2, 3), ONE])
tables = st.integers(1, 4).flatmap(
    lambda columns: st.lists(st.lists(weights, min_size=columns, max_size=columns), min_size=1, max_size=4)
)


def heaviest(table, *, in_order):
    """The greatest total weight, by trying every pairing."""
    best = Fraction(0)
    for choice in product([None, *range(len(table[0]))], repeat=len(table)):
        columns = [column for column in choice if column is not None]
        chosen = [table[row][column] for row, column in enumerate(choice) if column is not None]
        if len(set(columns)) < len(columns) or None in chosen:
            continue
        if in_order and columns != sorted(columns):
            continue
        best = max(best, sum(chosen, Fraction(0)))
    return best


def total(table, pairs):
    return sum((table[row][column] for row, column in pairs.items()), Fraction(0))


@given(tables)
def test_any_order_reaches_the_greatest_total_with_each_side_used_once(table):
    pairs = pairs_in_any_order(table)
    assert len(set(pairs.values())) == len(pairs)
    assert total(table, pairs) == heaviest(table, in_order=False)


@given(tables)
def test_in_order_reaches_the_greatest_total_of_the_pairings_that_do_not_cross(table):
    pairs = pairs_in_order(table)
    columns = [pairs[row] for row in sorted(pairs)]
    assert columns == sorted(set(columns))
    assert total(table, pairs) == heaviest(table, in_order=True)


def test_taking_the_best_pair_first_is_not_the_best_pairing():
    # Row 1 must leave column 1 to row 0, which has nothing else worth as much.
    assert pairs_in_any_order([[HALF, ONE], [ONE, ONE]]) == {0: 1, 1: 0}


@pytest.mark.parametrize("pairing", [pairs_in_order, pairs_in_any_order])
@pytest.mark.parametrize("table", [[], [[], []], [[None]]])
def test_nothing_to_pair_gives_no_pair(pairing, table):
    assert pairing(table) == {}
