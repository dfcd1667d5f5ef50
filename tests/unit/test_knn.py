"""Nearest neighbours against brute force."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import dpassay as dp
from dpassay.outputs.canonical import from_raw
from dpassay.sampling.samples import Batch
from dpassay.scores.cells_and_neighbours import KnnScore, _Line, _Tree, default_k
from dpassay.scores.training import Line, Training

RNG = np.random.default_rng(8)


def slow_votes(p, q, queries, k, distance):
    both = np.concatenate([p, q])
    first = np.arange(len(both)) < len(p)
    out = []
    for x in queries:
        d = distance(both, x)
        near = d <= np.sort(d)[k - 1]
        out.append([first[near].sum(), (~first)[near].sum()])
    return np.array(out).T


def euclid(both, x):
    return np.sqrt(np.sum((both - x) ** 2, axis=1))


def hamming(both, x):
    return np.sum(both != x, axis=1)


@pytest.mark.parametrize("k", [1, 2, 7, 50, 349, 350])
@pytest.mark.parametrize("lattice", [False, True], ids=["continuous", "ties"])
def test_windows_of_sorted_numbers_are_the_nearest_neighbours(k, lattice):
    p, q, x = (
        RNG.normal(size=(200, 1)),
        RNG.normal(0.5, size=(150, 1)),
        2 * RNG.normal(size=(99, 1)),
    )
    if lattice:
        p, q, x = (np.round(8 * side) for side in (p, q, x))
    votes = np.array(_Line(Line.of(p[:, 0], q[:, 0]), k).votes(x))
    assert np.array_equal(votes, slow_votes(p, q, x, k, euclid))


@pytest.mark.parametrize("k", [1, 5, 40])
def test_tree_against_brute_force(k):
    p, q, x = RNG.normal(size=(200, 3)), RNG.normal(0.5, size=(150, 3)), RNG.normal(size=(50, 3))
    tree = _Tree.fit(p, q, k)
    scale = np.concatenate([p, q]).std(axis=0)
    slow = slow_votes(p / scale, q / scale, x / scale, k, euclid)
    assert np.array_equal(np.array(tree.votes(x)), slow)


def test_atoms_of_vectors_vote_with_all_their_weight():
    p = np.zeros((300, 2))
    q = np.concatenate([np.zeros((100, 2)), RNG.normal(5, 1, size=(200, 2))])
    votes = np.array(_Tree.fit(p, q, 10).votes(np.zeros((1, 2))))
    assert votes.ravel().tolist() == [300, 100]


def test_bits_against_brute_force():
    p, x = (RNG.integers(0, 2, size=(m, 7)).astype(float) for m in (200, 40))
    q = 1 - p  # so that all columns have one spread
    votes = np.array(_Tree.fit(p, q, 150).votes(x))  # of at most 128 distinct rows
    assert np.array_equal(votes, slow_votes(p, q, x, 150, hamming))


def test_votes_agree_with_scikit_learn():
    p, q = RNG.normal(size=2000), RNG.normal(1.0, size=2000)
    x = RNG.normal(size=300)
    sklearn = KNeighborsClassifier(51).fit(np.concatenate([p, q])[:, None], np.arange(4000) < 2000)
    theirs = sklearn.predict_proba(x[:, None])[:, 1]
    ours = _Line(Line.of(p, q), 51).votes(x[:, None])
    assert ours[0] / 51 == pytest.approx(theirs)


def training(p, q):
    return Training.of(Batch.of(p, q))


def test_score_of_a_mixed_mechanism_uses_its_keys(seed):
    mechanism = dp.zoo.ProposeTestRelease()
    samples = dp.draw(mechanism, mechanism.pair, n=20_000, rng=seed)
    loss = KnnScore.fit(training(samples.p, samples.q))
    silent = from_raw(np.array([np.nan, np.nan]), 2)
    p, q = (mechanism._silent(data) for data in mechanism.pair)
    assert loss.score(silent)[0] == pytest.approx(np.log(p / q), abs=0.1)


def test_sides_of_different_size_are_not_biased(seed):
    rng = np.random.default_rng(seed)
    p, q = from_raw(rng.normal(size=30_000), 30_000), from_raw(rng.normal(size=3000), 3000)
    assert abs(np.mean(KnnScore.fit(training(p, q)).score(q))) < 0.1


def test_k_grows_with_the_draws():
    assert default_k(10**6, 1) == round(10**4.8)
    assert default_k(10**6, 5) == 256 or default_k(10**6, 5) < 10**3
