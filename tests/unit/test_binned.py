"""Draws binned linearly, against a slow loop."""

import math

import numpy as np
import pytest

from dpassay.errors import InvalidInput
from dpassay.scores.cell_counts import Axis, axes_for, bin_linear

RNG = np.random.default_rng(3)
NORMAL = RNG.normal(size=3000)


def slow_bin(values, axes):
    weights = np.zeros([a.size for a in axes])
    for row in values:
        place = [(x - a.low) / a.step for x, a in zip(row, axes, strict=True)]
        if any(t < 0 or t > a.size - 1 for t, a in zip(place, axes, strict=True)):
            continue
        low = [min(int(t), a.size - 2) for t, a in zip(place, axes, strict=True)]
        for corner in np.ndindex(*(2,) * len(axes)):
            share = math.prod(
                (t - k) if up else 1 - (t - k) for t, k, up in zip(place, low, corner, strict=True)
            )
            weights[tuple(k + up for k, up in zip(low, corner, strict=True))] += share
    return weights


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_linear_binning_against_a_slow_loop(dimension):
    values = RNG.normal(size=(300, dimension))
    axes = tuple(Axis(-2.0, 2.5, 9 + k) for k in range(dimension))
    fast = bin_linear(values, axes)
    assert fast.weights == pytest.approx(slow_bin(values, axes))
    assert fast.total == pytest.approx(300)
    inside = np.all((values >= -2) & (values <= 2.5), axis=1).sum()
    assert fast.outside == 300 - inside


@pytest.mark.parametrize("dimension", [1, 2])
def test_binned_draws_merge(dimension):
    values = RNG.normal(size=(1000, dimension))
    axes = tuple(Axis(-3.0, 3.0, 65) for _ in range(dimension))
    parts = [bin_linear(values[k::3], axes) for k in range(3)]
    whole = bin_linear(values, axes)
    total = parts[0] + parts[1] + parts[2]
    assert total.weights == pytest.approx(whole.weights)
    assert total.outside == whole.outside
    with pytest.raises(InvalidInput, match="different grids"):
        parts[0] + bin_linear(values, tuple(Axis(-3.0, 3.0, 33) for _ in range(dimension)))


def test_binning_twice_is_binning_once():
    """Hat functions are refinable: a fine grid loses nothing on the way to a coarse one."""
    values = RNG.normal(size=(500, 1))
    fine, coarse = Axis(-4.0, 4.0, 129), Axis(-4.0, 4.0, 33)
    once = bin_linear(values, (coarse,)).weights
    through = bin_linear(values, (fine,)).weights
    twice = np.zeros(33)
    for x, w in zip(fine.points, through, strict=True):
        twice += w * bin_linear(np.array([[x]]), (coarse,)).weights
    assert twice == pytest.approx(once)


def test_a_far_draw_does_not_stretch_the_grid():
    values = np.append(NORMAL, 1e9)[:, None]
    (axis,) = axes_for([values])
    assert axis.high < 100
    assert bin_linear(values, (axis,)).outside == 1


def test_equal_draws_have_a_grid_too():
    values = np.full((50, 1), 3.0)
    (axis,) = axes_for([values])
    assert axis.low < 3 < axis.high
    assert bin_linear(values, (axis,)).outside == 0
