"""String measures against plain textbook programs, written from the definitions and for clarity only."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragparity.core.text import words
from ragparity.metrics.rouge import overlap, rouge
from ragparity.metrics.strings import common, overlap_f1, similarity

strings = st.text(alphabet="abcé東 ", max_size=9)
tokens = st.lists(st.sampled_from(["the", "cat", "sat", "東"]), max_size=7)


def edits(one, other):
    """Wagner and Fischer's table: the cheapest way from each prefix of one to each prefix of the other."""
    table = {(row, 0): row for row in range(len(one) + 1)} | {(0, column): column for column in range(len(other) + 1)}
    for row, left in enumerate(one, start=1):
        for column, right in enumerate(other, start=1):
            table[row, column] = min(
                table[row - 1, column] + 1,
                table[row, column - 1] + 1,
                table[row - 1, column - 1] + (left != right),
            )
    return table[len(one), len(other)]


def jaro_by_definition(one, other):
    if not one and not other:
        return 1.0
    window = max(max(len(one), len(other)) // 2 - 1, 0)
    met = {}
    for row, sign in enumerate(one):
        near = range(max(0, row - window), min(len(other), row + window + 1))
        column = next((at for at in near if other[at] == sign and at not in met.values()), None)
        if column is not None:
            met[row] = column
    if not met:
        return 0.0
    left = [one[row] for row in sorted(met)]
    right = [other[column] for column in sorted(met.values())]
    swaps = sum(a != b for a, b in zip(left, right, strict=True)) // 2
    m = len(met)
    return (m / len(one) + m / len(other) + (m - swaps) / m) / 3


@given(strings, strings)
def test_levenshtein_is_the_exact_fraction_of_the_dynamic_program(one, other):
    longer = max(len(one), len(other))
    expected = float(1 - Fraction(edits(one, other), longer)) if longer else 1.0
    assert similarity(one, other) == expected


@given(strings, strings)
def test_hamming_counts_the_places_that_differ(one, other):
    longer = max(len(one), len(other))
    differ = sum(one[at : at + 1] != other[at : at + 1] for at in range(longer))
    assert similarity(one, other, "hamming") == (float(1 - Fraction(differ, longer)) if longer else 1.0)


@given(strings, strings)
def test_jaro_and_jaro_winkler_follow_their_definitions(one, other):
    expected = jaro_by_definition(one, other)
    assert similarity(one, other, "jaro") == pytest.approx(expected, abs=1e-12)
    prefix = next((at for at in range(4) if one[at : at + 1] != other[at : at + 1] or at >= len(one)), 4)
    boosted = expected + (prefix * 0.1 * (1 - expected) if expected > 0.7 else 0)
    assert similarity(one, other, "jaro_winkler") == pytest.approx(boosted, abs=1e-12)


def longest_common(one, other):
    """By trying every subsequence of the one, the longest first."""
    for size in range(len(one), 0, -1):
        for kept in combinations(one, size):
            rest = iter(other)
            if all(word in rest for word in kept):
                return size
    return 0


def f1(matched, ours, theirs):
    if not matched:
        return Fraction(0)
    precision, recall = Fraction(matched, ours), Fraction(matched, theirs)
    return 2 * precision * recall / (precision + recall)


@given(tokens, tokens.filter(bool))
def test_rouge_l_is_the_f1_of_the_longest_common_subsequence(response, reference):
    found = overlap(response, reference, "rougeL")
    assert found.shared == longest_common(response, reference)
    assert rouge(found) == float(f1(found.shared, len(response), len(reference)))


@pytest.mark.parametrize("n", [1, 2])
@given(response=tokens, reference=tokens)
def test_rouge_n_is_the_f1_of_clipped_n_grams(n, response, reference):
    ours = Counter(tuple(response[at : at + n]) for at in range(len(response) - n + 1))
    theirs = Counter(tuple(reference[at : at + n]) for at in range(len(reference) - n + 1))
    matched = sum(min(count, theirs[gram]) for gram, count in ours.items())
    found = overlap(response, reference, f"rouge{n}")
    assert found == (matched, ours.total(), theirs.total())
    if found.reference:
        assert rouge(found) == float(f1(matched, ours.total(), theirs.total()))


@given(tokens, tokens.filter(bool))
def test_token_f1_is_the_harmonic_mean_of_precision_and_recall(response, reference):
    matched = sum(min(response.count(word), reference.count(word)) for word in set(response))
    found = overlap_f1(len(common(response, reference)), len(response), len(reference))
    assert found == float(f1(matched, len(response), len(reference)))


@given(strings)
def test_every_measure_gives_one_for_the_same_text(text):
    for measure in ("levenshtein", "hamming", "jaro", "jaro_winkler"):
        assert similarity(text, text, measure) == 1.0
    if words(text):
        assert rouge(overlap(words(text), words(text), "rougeL")) == 1.0
