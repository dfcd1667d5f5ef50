"""Projections for several θ at once are those of each by itself, and of a slow search."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.unit.test_e_values import CLAIMS, nearest

import dpassay as dp
from dpassay.bounds import projections as pr
from dpassay.rootfinding import bisect

EVENTS = [claim for claim in CLAIMS if not claim.orders]


def guesses(rng, size):
    """Of all sizes, near 0 and 1 too."""
    return 1 / (1 + np.exp(-rng.normal(scale=4, size=(2, size))))


def halved(region, a, b):
    """The nearest probabilities by halving the boundary between q = b and p = a."""

    def short(q):
        p, rise = region.at(q)
        return (p < a) & ((a - p) * rise * q * (1 - q) > (q - b) * p * (1 - p))

    near, _ = bisect(short, b, a, steps=80)
    out = a > region.at(b)[0]
    return np.where(out, region.at(near)[0], a), np.where(out, near, b)


@pytest.mark.parametrize("claim", EVENTS, ids=str)
def test_the_nearest_probabilities_are_those_of_a_slow_search(claim, seed):
    a, b = guesses(np.random.default_rng(seed), 4000)
    slow = halved(pr.regions_of(claim, (claim.value,)), a, b)
    assert np.any(slow[0] < a)
    for fast, found in zip(nearest(claim, a, b), slow, strict=True):
        assert np.allclose(fast, found, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("claim", EVENTS, ids=str)
def test_several_thetas_are_each_by_itself(claim, seed):
    rng = np.random.default_rng(seed)
    thetas = np.array([0.0, 0.1, 0.5, 0.9])
    which = rng.integers(0, thetas.size, 3000)
    a, b = guesses(rng, 3000)
    p, q = pr.regions_of(claim, tuple(thetas)).nearest(which, a, b)
    for k, theta in enumerate(thetas):
        one = which == k
        alone = nearest(claim.at(theta), a[one], b[one])
        assert np.array_equal(alone[0], p[one])
        assert np.array_equal(alone[1], q[one])


@pytest.mark.parametrize("cells", [2, 3, 6])
def test_limits_may_differ_by_row(cells, seed):
    """A limit for each row of θ, as with one limit at a time."""
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(cells), (2, 50))
    limits = np.array([0.0, 0.2, 1.0, 5.0])
    p, q = pr.project_cells(limits[:, None], a, b)
    for k, limit in enumerate(limits):
        alone = pr.project_cells(limit, a, b)
        assert np.allclose(p[k], alone[0], rtol=0, atol=1e-12)
        assert np.allclose(q[k], alone[1], rtol=0, atol=1e-12)


def test_an_event_and_its_complement_are_two_cells(seed):
    """Two ways to the same pair, where the event is too likely on the first side."""
    both = guesses(np.random.default_rng(seed), 500)
    a, b = both.max(axis=0), both.min(axis=0)
    for epsilon in (0.0, 0.4, 3.0):
        p, q = pr.project_cells(epsilon, np.column_stack([a, 1 - a]), np.column_stack([b, 1 - b]))
        events = nearest(dp.PureDP(epsilon), a, b)
        assert np.allclose(p[:, 0], events[0], rtol=1e-9, atol=1e-12)
        assert np.allclose(q[:, 0], events[1], rtol=1e-9, atol=1e-12)


def test_what_a_claim_allows_stays_as_it_is():
    a, b = np.array([0.5, 0.2]), np.array([0.45, 0.21])
    for claim in (dp.GaussianDP(1.0), dp.PureDP(0.5)):
        p, q = nearest(claim, a, b)
        assert np.array_equal(p, a)
        assert np.array_equal(q, b)


@pytest.mark.parametrize("cells", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
def test_the_largest_sum_on_cells_is_that_of_a_linear_program(cells, epsilon, seed):
    """Σ p x + Σ q y, largest over distributions with e^−ε ≤ p/q ≤ e^ε."""
    ratio, eye, none = np.exp(epsilon), np.eye(cells), np.zeros((1, cells))
    limits = np.block([[eye, -ratio * eye], [-ratio * eye, eye]])
    total = np.block([[none + 1, none], [none, none + 1]])
    for x, y in np.random.default_rng(seed).normal(size=(20, 2, cells)):
        best = linprog(-np.append(x, y), limits, np.zeros(2 * cells), total, [1, 1])
        assert pr.largest_sum_on_cells(epsilon, x, y) == pytest.approx(-best.fun, abs=1e-9)


@pytest.mark.parametrize("claim", EVENTS, ids=str)
def test_the_largest_sum_of_an_event_is_that_of_a_fine_grid(claim, seed):
    """At no point of the boundary is the sum larger, and at one of them it is about as large."""
    region, q = pr.regions_of(claim, (claim.value,)), np.linspace(0, 1, 20_001)
    p = np.stack([np.zeros_like(q), region.at(q)[0]])
    for x, y in np.random.default_rng(seed).normal(size=(20, 2, 2)):
        sums = p * x[0] + (1 - p) * x[1] + q * y[0] + (1 - q) * y[1]
        found = region.largest_sum(np.array([0]), x[None], y[None])[0]
        assert sums.max() <= found + 1e-12
        assert found <= sums.max() + 1e-3
