"""Draws that keep the kernels they were handed, so that a test can try a resample of its own on them."""

import math

import numpy as np
import pytest

from ragparity.agreement import Draws


class Seen(Draws):
    kernel = None

    def of(self, kernel):
        self.kernel = kernel
        return super().of(kernel)


def counts_of(n, seed):
    """How often each of n items is drawn in one resample."""
    return np.random.default_rng(seed).multinomial(n, [1 / n] * n)


def same_as_repeated(statistic, columns, counts):
    """The kernel of a resample gives what the statistic gives for columns with the items written out."""
    draws = Seen(len(counts), resamples=2)
    if statistic(*columns, draws=draws).value is None:
        return
    with np.errstate(all="ignore"):
        (found,) = draws.kernel(counts[None, :].astype(float))
    wanted = statistic(*(np.repeat(column, counts, axis=-1) for column in columns)).value
    assert math.isnan(found) if wanted is None else found == pytest.approx(wanted, abs=1e-9)
