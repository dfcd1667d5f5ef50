"""Parities of bits: the Walsh–Hadamard coefficient in which the two sides differ most.

Fair bits whose parity leaks look fair in every coordinate, in every pair and in every smaller subset; no
polynomial of low degree, tree or density shows the leak. For a subset S of the coordinates let χ_S be −1
if an odd number of them is high, else 1. Up to `_ALL` coordinates E_P χ_S − E_Q χ_S is computed for all
subsets at once, by the fast Walsh–Hadamard transform of the difference of frequencies, in d·2^d steps. Of
more coordinates all subsets of three are tried. Of 2^d coefficients one exceeds √(2 d log 2 (1/n + 1/m))
by chance: a leak of a smaller coefficient cannot be learned from so many draws.
"""

from __future__ import annotations

import math

import numpy as np

from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray
from dpassay.errors import NotApplicable
from dpassay.outputs.score_models import Features, Parity, ScoreFunction
from dpassay.scores.serializable import SerializableScore
from dpassay.scores.training import Training, log_ratio

#: Coordinates of which all subsets are tried (20 · 2^20 steps), and of which subsets of three are.
_ALL, MOST = 20, 64
#: Draws per side beyond which no more is learned.
_ENOUGH = 10_000


def fit_parity(training: Training) -> SerializableScore:
    """The subset of coordinates with two values each whose parity differs most between the sides."""
    training = training.most(_ENOUGH)
    features = Features.learn(training.p, training.q)
    p, q = (features.rows(side.outputs)[:, : features.width] for side in (training.p, training.q))
    low, high = (f([f(p, axis=0), f(q, axis=0)], axis=0) for f in (np.min, np.max))
    two = (low < high) & np.all([np.all((x == low) | (x == high), axis=0) for x in (p, q)], axis=0)
    columns = np.flatnonzero(two)
    if not 2 < columns.size <= MOST:
        raise NotApplicable(f"parities are for 3 to {MOST} coordinates of two values each")
    middles = ((low + high) / 2)[columns]
    bits = p[:, columns] > middles, q[:, columns] > middles
    subset, difference = (_any_subset if columns.size <= _ALL else _triples)(*bits)
    tried = columns.size * math.log(2) if columns.size <= _ALL else 3 * math.log(columns.size)
    chance = math.sqrt(2 * tried * (1 / len(p) + 1 / len(q)))
    odd = [np.bitwise_xor.reduce(one[:, subset], axis=1) for one in bits]
    counts = [np.bincount(one, minlength=2) for one in odd]
    even_odd = log_ratio(counts[0], counts[1], (len(p), len(q)))
    model = Parity(columns[subset], middles[subset], even_odd)
    return SerializableScore(ScoreFunction("parity", features, model), abs(difference) > chance)


def _any_subset(p: BoolArray, q: BoolArray) -> tuple[IntArray, float]:
    """The subset of all whose coefficients differ most, and by how much."""
    width = p.shape[1]
    place = 1 << np.arange(width)
    found = _frequencies(p @ place, width) - _frequencies(q @ place, width)
    half = 1
    while half < found.size:  # the transform, in place
        pairs = found.reshape(-1, 2, half)
        even, odd = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = even, odd
        half *= 2
    best = int(np.argmax(np.abs(found[1:]))) + 1
    return np.flatnonzero(best & place), float(found[best])


def _frequencies(codes: AnyArray, width: int) -> FloatArray:
    return np.asarray(np.bincount(codes, minlength=1 << width) / len(codes))


def _triples(p: BoolArray, q: BoolArray) -> tuple[IntArray, float]:
    """The same for subsets of three."""
    i, j = np.triu_indices(p.shape[1], 1)
    found = np.zeros((i.size, p.shape[1]))
    for side, sign in ((p, 1.0), (q, -1.0)):
        x = np.where(side, -1.0, 1.0).astype(np.float32)
        found += sign * ((x[:, i] * x[:, j]).T @ x) / len(x)
    found[i[:, None] >= np.arange(p.shape[1])] = 0.0  # each subset once
    found[j[:, None] >= np.arange(p.shape[1])] = 0.0
    pair, third = np.unravel_index(int(np.argmax(np.abs(found))), found.shape)
    return np.array([i[pair], j[pair], third]), float(found[pair, third])
