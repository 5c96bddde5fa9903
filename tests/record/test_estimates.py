"""Intervals and p-values that pages compute too, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from workers.record.estimates import (
    FALSE_DISCOVERIES,
    benjamini_hochberg,
    bound_share,
    find_student,
    is_beyond_chance,
    is_discovery,
)


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (3, 11), (0, 400), (399, 400), (7, 7)])
def test_a_share_of_whole_counts_has_the_interval_of_scipy(hits: int, n: int) -> None:
    assert bound_share(hits / n, n) == pytest.approx(stats.binomtest(hits, n).proportion_ci(method="wilson"))


def test_half_as_many_cases_widen_an_interval() -> None:
    (low, high), (lower, higher) = bound_share(0.3, 40), bound_share(0.3, 20.5)
    assert lower < low < high < higher


@pytest.mark.parametrize("freedom", [1, 4, 11, 2.5, 1e6])
def test_quantiles_are_those_of_students_t(freedom: float) -> None:
    assert find_student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-12)
    assert find_student(freedom, 0.9) == pytest.approx(stats.t.ppf(0.9, freedom), rel=1e-12)


def test_discoveries_do_not_hang_on_the_last_bit() -> None:
    """Permutation tests give round p-values, so that some adjusted ones are 0.05 but for rounding."""
    for n in range(1, 400):
        adjusted = benjamini_hochberg([FALSE_DISCOVERIES / n, *[1.0] * (n - 1)])
        assert is_discovery(adjusted[0])
        assert is_beyond_chance(0.1, adjusted[0])
    assert not is_discovery(np.nextafter(FALSE_DISCOVERIES, 1) + 1e-9)
    assert not is_discovery(None)
    assert not is_beyond_chance(-0.1, 0.0)
