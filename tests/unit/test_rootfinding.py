"""Root searches end on the side they say."""

import numpy as np
import pytest

from dpassay.rootfinding import bisect, last_reaching


def test_bisection_ends_on_the_sides_it_says():
    inside, outside = bisect(lambda x: x**3 <= 5, np.zeros(4), np.full(4, 9.0))
    assert np.all(inside**3 <= 5)
    assert np.all(outside**3 > 5)
    assert np.all(outside - inside < 1e-12)
    low, high = bisect(lambda x: x > 1, 4.0, 0.0, steps=30, close=1e-3)
    assert high <= 1 < low < high + 4e-3


@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
def test_regula_falsi_ends_on_the_side_that_reaches_the_goal(power):
    calls = []

    def f(x):
        calls.append(x)
        return 10 - x**power

    low, high = last_reaching(f, 4.0, (0.0, 10.0), (1e4, f(1e4)), close=1e-6)
    assert low[1] >= 4.0 > high[1]
    assert low[0] == pytest.approx(6 ** (1 / power), rel=1e-5)
    assert len(calls) < 60
