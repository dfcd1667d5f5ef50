"""Cells to bet on are chosen honestly: on one half, counted on the other."""

import numpy as np
import pytest
from tests.helpers import canonical

import dpassay as dp
from dpassay.bounds.e_values import bets_against
from dpassay.learning import betting_cells
from dpassay.learning.betting_cells import choose, pick
from dpassay.learning.cross_fit import CrossFit
from dpassay.sampling.draw import stream
from dpassay.sampling.samples import Batch


def chosen(p, q, claim, seed=0):
    learner = CrossFit(Batch.of(canonical(p), canonical(q)), "values", lambda k: stream(seed, k))
    return choose(learner, bets_against(claim), claim)


def test_the_tails_of_laplace_noise_are_found(seed):
    rng = np.random.default_rng(seed)
    claim = dp.PureDP(0.5)
    found = chosen(rng.laplace(size=4000), 1 + rng.laplace(size=4000), claim, seed)
    assert found.counts.shape == (2, len(found.partition))
    assert found.counts.sum() == 8000
    p, q = rng.laplace(size=(2, 100_000)) + np.array([[0.0], [1.0]])
    counts = np.array([found.partition.counts(canonical(side)) for side in (p, q)])
    bottom, top = found.parts
    (b0, t0), (b1, t1) = ((side[:bottom].sum(), side[top:].sum()) for side in counts)
    assert np.log(t0 / t1) > 0.85
    assert np.log(b1 / b0) > 0.85


def test_cuts_are_chosen_again_by_what_is_known(seed):
    """Of five values the outermost on one side, and two on the other, are what breaks the claim."""
    claim = dp.PureDP(1.0)
    bets = bets_against(claim)
    p = np.array([600, 600, 800, 1000, 1000])
    q = np.array([100, 1000, 1100, 900, 900])
    draws = [np.repeat(np.arange(5.0), side) for side in (p, q)]
    for side in draws:
        np.random.default_rng(seed).shuffle(side)
    found = chosen(*draws, claim, seed)
    assert np.all(found.counts.sum(axis=1) == 4000)
    for start in (found.parts, (1, 4)):
        bottom, top = betting_cells.again(bets, claim, found.counts, start)
        cells = found.counts[:, top:].sum(axis=1), found.counts[:, :bottom].sum(axis=1)
        assert (600, 100) in {tuple(map(int, side)) for side in cells}
    assert betting_cells.again(bets, claim, found.counts[:, :3], (1, 2)) == (1, 2)


def test_counts_are_hardly_better_than_draws_to_come(seeds):
    """Of equal distributions the best of many events looks telling on the draws that chose it."""
    claim, gap = dp.PureDP(0.1), []
    bets = bets_against(claim)
    for seed in seeds[:40]:
        scores = tuple(np.random.default_rng(seed).normal(size=(2, 64)))
        found = (
            betting_cells._crossed(scores, bets, claim)[0],
            betting_cells._cut(scores, bets, claim)[1],
        )
        tops = [counts[:, 2] + 0.5 for counts in found]
        gap.append([np.log(top[0] / top[1]) for top in tops])
    crossed, own = np.transpose(gap)
    error = 4 / np.sqrt(40)
    assert abs(crossed.mean()) < error * crossed.std()
    assert own.mean() > error * own.std()


def test_outputs_that_cannot_be_told_apart(seed):
    for p in (np.zeros(20), np.array(["a"] * 20)):
        for claim in (dp.PureDP(1.0), dp.GaussianDP(1.0), dp.RenyiDP(order=2, epsilon=0.1)):
            found = chosen(p, p, claim)
            assert found.counts.sum() == 40
            assert found.partition.counts(canonical(p)).sum() == 20
            picks = pick(bets_against(claim), claim, found.counts, found.parts)
            assert picks.shape == (len(bets_against(claim)), 2)


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_the_order_that_gains_most_is_picked(order, seed):
    """Of a curve that is tight at one order and loose at the others."""
    rng = np.random.default_rng(seed)
    orders = [1.5, 4.0]
    claim = dp.RenyiCurveDP(orders, [0.01 if o == order else 9.0 for o in orders])
    found = chosen(rng.normal(size=2000), 1 + rng.normal(size=2000), claim)
    picks = pick(bets_against(claim), claim, found.counts, found.parts)
    assert orders[picks[0, 0]] == order
