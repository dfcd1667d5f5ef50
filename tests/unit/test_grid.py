"""The loss on cells of a grid."""

import numpy as np
import pytest
from tests.helpers import objects

import dpassay as dp
from dpassay.outputs.canonical import from_raw
from dpassay.sampling.samples import Live
from dpassay.scores.cell_counts import count_draws, counts_of
from dpassay.scores.grid import GridScore

zoo = dp.zoo
PAIR = (0.0, 1.0)


def test_levels_count_every_draw_once_and_as_the_score_would(seed):
    for mechanism in (
        zoo.Laplace(),
        zoo.DiscreteLaplace(),
        zoo.SVT(3, 1.5),
        zoo.TruncatedLaplace(),
    ):
        samples = dp.draw(mechanism, mechanism.pair, n=20_000, rng=seed)
        train, test = samples.take(10_000), samples.take(10_000)
        cell_counts = counts_of(train.p, train.q)
        loss = GridScore.of(cell_counts)
        levels = loss.levels(cell_counts.binning.count(test.p, test.q))
        assert levels.p.sum() == levels.q.sum() == 10_000
        for cut in (0.1, 0.4):
            by_score = np.count_nonzero(loss.score(test.p) > cut)
            assert abs(levels.p[levels.loss > cut].sum() - by_score) < 200


def loss_of(mechanism, pair, n, rng):
    live = Live(mechanism, dp.Pair(*pair), seed=rng)
    return GridScore.of(count_draws(live, (n, n)))


def test_masses_of_a_grid_loss_are_those_of_the_mechanism(seed):
    for mechanism in (zoo.Laplace(), zoo.DiscreteLaplace(), zoo.SVT(1, 1.5), zoo.SVT(3, 1.5)):
        masses = loss_of(mechanism, mechanism.pair, 200_000, seed).masses()
        assert masses.p.sum() == pytest.approx(1)
        exact = mechanism.delta(0.3, mechanism.pair)
        assert masses.delta(0.3) == pytest.approx(exact, abs=0.02)


def test_score_follows_the_exact_loss(seed):
    loss = loss_of(zoo.Laplace(), PAIR, 400_000, seed)
    fresh = dp.draw(zoo.Laplace(), PAIR, n=2000, rng=seed + 1)
    x = fresh.p.numbers[:, 0]
    exact = np.abs(x - 1) - np.abs(x)
    inside = np.abs(x) < 3
    assert np.abs(loss.score(fresh.p) - exact)[inside].max() < 0.2


def test_score_of_unseen_outputs_is_tame(seed):
    loss = loss_of(zoo.DiscreteLaplace(), (0, 1), 1000, seed)
    strange = dp.from_samples(np.array([10**6, -(10**6)]), np.array([0, 1]))
    assert np.all(np.abs(loss.score(strange.p)) < 5)


def test_rare_cells_do_not_add_up_their_noise(seeds):
    """Ten bits flipped at random: 1024 outputs, of which only one bit tells."""
    mechanism = zoo.RandomizedResponse(1.5)
    for pair in (mechanism.pair, (np.zeros(10), np.zeros(10))):
        masses = loss_of(mechanism, pair, 20_000, seeds[0]).masses()
        assert masses.delta(0.0) == pytest.approx(mechanism.delta(0.0, pair), abs=0.03)
        assert masses.renyi(2.0) == pytest.approx(mechanism.renyi(2.0, pair), abs=0.2)


def test_a_cell_of_one_side_only_is_not_calmed_away(seeds):
    rng = np.random.default_rng(seeds[0])
    p, q = rng.integers(0, 500, 20_000), rng.integers(0, 500, 20_000)
    p[rng.permutation(20_000)[:400]] = 999
    samples = dp.from_samples(p, q)
    masses = GridScore.of(counts_of(samples.p, samples.q)).masses()
    assert masses.delta(3.0) == pytest.approx(0.02, abs=0.005)


def test_of_two_numbers_the_more_telling_one_is_drawn():
    rng = np.random.default_rng(0)
    noise = rng.laplace(size=(2, 20_000, 2)) * [0.5, 4.0]
    drawn = GridScore.of(
        counts_of(*(from_raw(x, len(x)) for x in (noise[0], noise[1] + 1.0)))
    ).curve()
    assert drawn.part == "x in (x, •)"
    assert drawn.labels is None
    step = drawn.x[1] - drawn.x[0]
    assert drawn.p.sum() * step == pytest.approx(1.0, abs=0.01)
    exact = np.exp(-np.abs(drawn.x) / 0.5)  # the density of Laplace noise of scale ½
    assert np.abs(drawn.p - exact).sum() * step < 0.15
    middle = np.abs(drawn.x) < 2
    assert np.abs(drawn.y - 2 * (np.abs(drawn.x - 1) - np.abs(drawn.x)))[middle].max() < 1.0


def test_one_number_is_the_output_and_one_in_a_tuple_is_not():
    rng = np.random.default_rng(0)
    plain, other = rng.normal(size=(2, 2000))
    assert (
        GridScore.of(counts_of(from_raw(plain, 2000), from_raw(other, 2000))).curve().part
        == "output"
    )
    pairs = [objects(*(("yes", float(v)) for v in side)) for side in (plain, other)]
    drawn = GridScore.of(counts_of(*(from_raw(side, 2000) for side in pairs))).curve()
    assert drawn.part == "x in ('yes', x)"
