"""Masses of a finite pair, against their definitions and dp-accounting."""

import numpy as np
import pytest
from tests.helpers import finite_pairs

import dpassay as dp

EPS = np.linspace(0, 3, 61)
ALPHA = np.linspace(0, 1, 501)
FINITE = finite_pairs()
RNG = np.random.default_rng(6)


@pytest.mark.parametrize("masses", FINITE)
def test_masses_against_their_definitions(masses):
    p, q = masses.p, masses.q
    for eps in (0.0, 0.3, 2.0):
        assert masses.delta(eps) == pytest.approx(np.maximum(p - np.exp(eps) * q, 0).sum())
    with np.errstate(divide="ignore"):
        for lam in (0.5, 1.5, 2.0, 9.0):
            direct = np.log(np.sum(p[p > 0] ** lam * q[p > 0] ** (1 - lam))) / (lam - 1)
            assert masses.renyi(lam) == pytest.approx(direct)
    events = RNG.random((2000, p.size)) < 0.5  # no event beats the trade-off curve
    alpha, beta = events @ q, 1 - events @ p
    assert np.all(beta >= masses.tradeoff(np.clip(alpha, 0, 1)) - 1e-12)


def test_zero_and_infinite_ratios():
    masses = FINITE[3]
    assert masses.epsilon() == np.inf
    assert masses.renyi(2.0) == np.inf
    assert masses.delta(50.0) == pytest.approx(masses.p[masses.q == 0].sum())
    assert masses.tradeoff(0.0) == pytest.approx(1 - masses.p[masses.q == 0].sum())


def test_identical_masses_are_perfectly_private():
    same = dp.Masses([0.3, 0.7], [0.3, 0.7])
    assert same.epsilon() == 0
    assert same.renyi([1.0, 2.0, np.inf]) == pytest.approx(0)
    assert same.tradeoff(ALPHA) == pytest.approx(1 - ALPHA)
    assert same.tradeoff_curve().mu() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("masses", FINITE)
def test_swapping_the_pair(masses):
    swapped = masses.swap()
    assert swapped.epsilon() == masses.epsilon()
    assert swapped.tradeoff(ALPHA) == pytest.approx(masses.tradeoff_curve().inverse()(ALPHA))
    assert swapped.delta(EPS) == pytest.approx(masses.tradeoff_curve().inverse().delta(EPS))


@pytest.mark.parametrize("masses", FINITE)
def test_merging_cells_never_tells_more(masses):
    order = RNG.permutation(masses.p.size)
    half = masses.p.size // 2
    groups = np.concatenate([np.zeros(half, int), np.arange(masses.p.size - half)])[order]
    coarse = dp.Masses(np.bincount(groups, masses.p), np.bincount(groups, masses.q))
    assert coarse.epsilon() <= masses.epsilon() + 1e-12
    assert np.all(coarse.delta(EPS) <= masses.delta(EPS) + 1e-12)
    assert coarse.renyi(2.0) <= masses.renyi(2.0) + 1e-12
    assert np.all(coarse.tradeoff(ALPHA) >= masses.tradeoff(ALPHA) - 1e-12)


def test_finite_pair_agrees_with_dp_accounting():
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.common import DifferentialPrivacyParameters  # noqa: F401

    masses = FINITE[2]
    loss = np.log(masses.p / masses.q)
    step = 1e-3
    rounded = np.ceil(loss / step).astype(int)
    pmf = pld_pmf.create_pmf(
        {int(k): float(masses.p[rounded == k].sum()) for k in np.unique(rounded)}, step, 0.0, True
    )
    for eps in (0.0, 0.5, 1.5):
        assert masses.delta(eps) == pytest.approx(pmf.get_delta_for_epsilon(eps), abs=1e-3)
