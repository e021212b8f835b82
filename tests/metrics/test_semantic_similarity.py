"""Semantic similarity: the cosine of two vectors, or the side of a threshold on which it lies."""

import pytest
from tests.metrics.judged import no_judge, outcome, row

from ragparity.core.errors import ConfigError
from ragparity.metrics.semantic_similarity import SemanticSimilarity
from ragparity.registry import NativeBackend
from ragparity_adapters.scripted import ScriptedEmbedder

BACKEND = NativeBackend()


def scored(response, reference, **settings):
    embedder = ScriptedEmbedder(lambda text: response if text == row().response else reference)
    return outcome(SemanticSimilarity(**settings), row(), no_judge(), embedder=embedder)


@pytest.mark.parametrize(
    ("response", "reference", "cosine"),
    [([1, 0], [3, 4], 0.6), ([2, 0], [5, 0], 1.0), ([1, 0], [-1, 0], -1.0), ([1, 0], [0, 1], 0.0)],
)
def test_it_is_the_cosine(response, reference, cosine):
    assert scored(response, reference).value == pytest.approx(cosine, abs=1e-15)


def test_a_threshold_makes_it_one_or_zero_and_the_cosine_is_kept():
    for threshold, value in ((0.5, 1.0), (0.7, 0.0)):
        found = scored([1, 0], [3, 4], threshold=threshold)
        assert (found.value, found.detail["similarity"]) == (value, pytest.approx(0.6))
    assert scored([1, 0], [1, 0], threshold=1.0).value == 1.0  # reached, not only passed


def test_a_threshold_of_zero_is_a_threshold():
    assert scored([1, 0], [3, 4], threshold=0.0).value == 1.0
    assert scored([1, 0], [-3, 4], threshold=0.0).value == 0.0


def test_a_threshold_that_no_cosine_can_have_is_refused():
    with pytest.raises(ConfigError, match="threshold"):
        BACKEND.build("AnswerSimilarity", {"threshold": 1.5})


def test_a_zero_vector_has_no_similarity():
    assert scored([0, 0], [1, 0], threshold=0.0).why == "zero_vector"
