"""The quantile of Student's t against SciPy, and at points known in closed form."""

import math

import pytest
from scipy import stats

from ragparity.core.student import t_quantile


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 7, 10, 23, 30, 99, 100, 999, 12_345, 99_999, 1_000_000])
@pytest.mark.parametrize("tail", [0.25, 0.05, 0.025, 0.005])
def test_the_quantile_agrees_with_scipy_to_eleven_digits(df, tail):
    assert t_quantile(df, tail) == pytest.approx(stats.t.ppf(1 - tail, df), rel=1e-11)


def test_one_degree_of_freedom_is_the_cauchy_distribution():
    # Its quantile is tan(π·(p − 1/2)).
    assert t_quantile(1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-11)


def test_two_degrees_of_freedom_have_a_closed_form():
    # t = (2p − 1)·√(2 / (4p(1 − p))), at p = 0.975: 0.95·√(2 / 0.0975)
    assert t_quantile(2) == pytest.approx(0.95 * math.sqrt(2 / 0.0975), rel=1e-11)


def test_more_degrees_of_freedom_never_widen_the_interval_and_end_at_the_normal_quantile():
    values = [t_quantile(df) for df in (1, 2, 5, 20, 100, 10_000)]
    assert values == sorted(values, reverse=True)
    assert t_quantile(10_000_000) == pytest.approx(1.959963985, abs=1e-6)
