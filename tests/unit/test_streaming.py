"""A loss that a first look taught, on the draws that follow."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.learning import streaming
from dpassay.learning.cross_fit import CrossFit, LogLoss
from dpassay.scores.grid import GridScore

zoo = dp.zoo
PAIR = (0.0, 1.0)
NAMES = ("polynomial", "kde")


def _first(samples, n, loss="auto"):
    return CrossFit(samples.deal((n, n)), loss, samples.rng)


@pytest.mark.parametrize(
    "mechanism", [zoo.Laplace(), zoo.TruncatedLaplace(), zoo.DiscreteLaplace()], ids=str
)
def test_counted_block_by_block_is_counted_at_once(mechanism, seed):
    samples = dp.draw(mechanism, mechanism.pair, n=200_000, rng=seed)
    p, q = samples.p, samples.q
    learner = _first(samples, 20_000)
    made = streaming.grid_over(samples, learner, samples.remaining)
    whole = made.cell_counts.binning.count(p, q)
    assert made.cell_counts.n == (200_000, 200_000)
    assert np.array_equal(made.cell_counts.counts, whole.counts)
    for one, other in zip(made.cell_counts.binned.values(), whole.binned.values(), strict=True):
        assert np.array_equal(one[0].counts, other[0].counts)
        assert one[0].weights == pytest.approx(other[0].weights, abs=1e-6)
    eps = np.linspace(0, 2, 9)
    name = "polynomial" if made.name == "polynomial" else "kde"
    at_once = GridScore.named(name, whole).masses()
    assert made.masses().delta(eps) == pytest.approx(at_once.delta(eps), abs=1e-9)


@pytest.mark.parametrize(
    ("shape", "coarse"), [((), 5e-5), ((2,), 5e-4)], ids=["number", "pair of numbers"]
)
@pytest.mark.parametrize("noise", ["normal", "laplace"])
def test_the_kind_is_chosen_as_if_every_draw_were_scored(noise, shape, coarse, seed):
    """The oracle scores draw by draw; at the corners of cells the surprise is a little larger.

    (It is convex in the loss, which is interpolated: grids of two numbers have wide cells.)
    """

    def mechanism(data, size, rng):
        return data + getattr(rng, noise)(size=(size, *shape))

    samples = dp.draw(mechanism, PAIR, n=40_000, rng=seed)
    halves = _first(samples, 40_000).training.halves
    a, b = (half.cell_counts for half in halves)
    draws = np.concatenate([*b.everywhere(), *a.everywhere()])
    surprises = []
    for name in NAMES:
        taught = [GridScore.named(name, cell_counts) for cell_counts in (a, b)]
        scores = [
            np.concatenate([taught[1].score(x.outputs), taught[0].score(y.outputs)])
            for x, y in ((halves[0].p, halves[1].p), (halves[0].q, halves[1].q))
        ]
        surprises.append(LogLoss().judge((scores[0], scores[1])))
        found = np.average(streaming._log_losses(name, a, b), weights=draws)
        assert 0 <= found - surprises[-1].mean() < coarse
    expected = NAMES[int(LogLoss().beats(surprises[1], surprises[0]))]
    assert streaming.best_kind(list(NAMES), a, b) == expected
    assert expected == ("polynomial" if noise == "normal" else "kde")


def test_one_kind_needs_no_choice(seed):
    samples = dp.draw(zoo.Laplace(), PAIR, n=4_000, rng=seed)
    learner = _first(samples, 1_000, "polynomial")
    assert streaming.grid_over(samples, learner, samples.remaining).name == "polynomial"


def test_scores_are_counted_where_they_lie(seed):
    samples = dp.draw(zoo.Laplace(), PAIR, n=150_000, rng=seed)
    learner = _first(samples, 10_000, "logistic")
    edges = streaming.score_edges(learner.scores(0), 50)
    assert edges.size == 49
    loss, p, q = learner.fitted(0), samples.p, samples.q
    counts = streaming.scores_over(samples, loss, edges, (140_000, 90_000))
    for row, side in zip(counts, (p[:140_000], q[:90_000]), strict=True):
        scores = loss.score(side)
        assert row[0] == np.count_nonzero(scores < edges[0])
        assert row[-1] == np.count_nonzero(scores >= edges[-1])
        assert row.sum() == len(side)


def test_ties_of_scores_make_fewer_cells():
    edges = streaming.score_edges((np.repeat([0.0, 1.0], 50), np.zeros(10)), 20)
    assert edges.tolist() == [0.0, 1.0]
