"""The loss on cells that halve the draws."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import betaln
from tests.helpers import training

from dpassay.outputs.events import Event
from dpassay.scores.cells_and_neighbours import DyadicScore, _averaged_odds, halve
from dpassay.scores.training import Line


def trees(depth):
    """Every tree of halvings of 2^depth cells, as lists of (first, last + 1), with its weight."""

    def grow(first, size, level):
        yield [(first, first + size)], 0.5 if level else 1.0
        if level:
            half = size // 2
            for (a, x), (b, y) in itertools.product(
                list(grow(first, half, level - 1)), list(grow(first + half, half, level - 1))
            ):
                yield a + b, 0.5 * x * y

    return list(grow(0, 2**depth, depth))


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_averaged_odds_are_the_average_over_all_trees(depth, seed):
    rng = np.random.default_rng(seed)
    hits, misses = rng.integers(0, 9, size=(2, 2**depth))
    chance, total = np.zeros(2**depth), 0.0
    for leaves, prior in trees(depth):
        evidence, odds = prior, np.zeros(2**depth)
        for first, last in leaves:
            a, b = hits[first:last].sum(), misses[first:last].sum()
            evidence *= math.exp(betaln(a + 0.5, b + 0.5) - betaln(0.5, 0.5))
            odds[first:last] = (a + 0.5) / (a + b + 1)
        chance += evidence * odds
        total += evidence
    exact = np.log(chance / total) - np.log1p(-chance / total)
    assert _averaged_odds(hits, misses) == pytest.approx(exact)


def test_equal_values_are_never_parted():
    cells = halve(Line.of(np.repeat([1.0, 2.0], 50), np.repeat([2.0, 3.0], 50)), (100, 100))
    assert set(cells.edges) <= {1.0, 2.0, 3.0}
    place = np.searchsorted(cells.edges, [1.0, 2.0, 3.0], side="right")
    assert cells.loss[place[0]] > 2 > -2 > cells.loss[place[2]]


def test_halving_does_not_care_for_the_scale(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=500), rng.normal(1, 1, size=500)
    plain = halve(Line.of(p, q), (500, 500))
    warped = halve(Line.of(np.exp(9 * p), np.exp(9 * q)), (500, 500))
    assert np.array_equal(plain.loss, warped.loss)


def test_an_event_of_cells_is_where_the_score_passes_the_cut(seed):
    rng = np.random.default_rng(seed)
    p = [None if u < 0.2 else float(x) for u, x in rng.normal(size=(2000, 2))]
    q = [None if u < 0.4 else float(x) for u, x in rng.normal(0.5, 1, size=(2000, 2))]
    draws = training(p, q)
    for loss in [DyadicScore.fit(draws, name) for name in ("dyadic", "ranks", "categories")]:
        scores = loss.score(draws.p.outputs)
        for cut, above in itertools.product((-0.3, 0.0, 0.2), (True, False)):
            event = Event.from_json(loss.event(cut, above).to_json())
            wanted = scores >= cut if above else scores <= cut
            assert np.array_equal(event.holds(draws.p.outputs), wanted)


def test_numbers_are_sorted_once_with_the_side_each_is_from(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.integers(0, 9, 40).astype(float), rng.integers(0, 9, 30).astype(float)
    line = Line.of(p, q)
    assert np.array_equal(line.values, np.sort(np.concatenate([p, q])))
    for value in range(10):  # ties are never parted
        at = np.searchsorted(line.values, value)
        assert line.below[at] == np.count_nonzero(p < value)
    assert line.sizes == (40, 30)
    draws = training(rng.normal(size=50), rng.normal(size=50))
    assert draws.line(0) is draws.line(0)
    assert draws.line(0).sizes == (50, 50)


def test_kinds_that_are_equally_frequent_are_parted_all_the_same():
    """Else the one event there is, which is all outputs, could show nothing."""
    p = np.repeat([0, 1], [3, 7])
    loss = DyadicScore.fit(training(p, p[::-1].copy()), "categories")
    scores = loss.score(training(p, p).p.outputs)
    assert np.unique(scores).size == 2
    np.testing.assert_allclose(scores, 0.0, atol=1e-8)
