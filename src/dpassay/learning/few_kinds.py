"""Outputs of few kinds: which of their events are tested, each with what share of the error probability.

Where outputs are of a few kinds, there are a few nested events, and how often each kind came in training
is all there is to know. What the test will bring is then simulated: probabilities of the kinds from their
posterior (Dirichlet, half a draw more of each kind), counts of the draws that will test from those, and
for every event and several shares of the error probability the bound at these counts. One event, or two
that share, are taken: among choices about as likely to refute the claim as the likeliest, that with the
largest mean bound.

Of the shares found here the cautious event of `event_search` keeps a tenth.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from dpassay._typing import FloatArray
from dpassay.learning.learner import Scores
from dpassay.learning.rates import Rates
from dpassay.privacy.claims import Claim

#: Simulated tests.
_RUNS = 200
#: Shares of the error probability that an event may get; the other one gets the rest.
_SHARES = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0)
#: Chances of a refutation within this of the best one count as equal.
_EQUAL = 0.02
#: Values of the parameter at which z is evaluated, and the largest.
_GRID, _FAR = 40, 64.0
#: In place of the z of an event that a claim allows everything.
_NEVER = -1e3


def split_error(
    scores: Scores, rates: Rates, claim: Claim, gamma: float, rng: np.random.Generator
) -> list[tuple[int, float, float]]:
    """The chosen cuts: their numbers among all, shares, and mean bounds."""
    bounds = _bounds(_simulated(scores, rates, rng), claim, gamma)  # share, run, cut
    many = bounds.shape[2]
    values, chosen = [], []
    for share in range(len(_SHARES) // 2 + 1):
        for k in range(many):
            values.append(np.maximum(bounds[share][:, [k]], bounds[-1 - share]))
            chosen += [((k, share), (other, -1 - share)) for other in range(many)]
    found = np.concatenate(values, axis=1)
    refuted = (found > claim.value).mean(axis=0)
    able = refuted >= refuted.max() - _EQUAL
    best = int(np.argmax(np.where(able, found.mean(axis=0), -np.inf)))
    return [(k, _SHARES[s], float(bounds[s][:, k].mean())) for k, s in chosen[best] if _SHARES[s]]


def _simulated(scores: Scores, rates: Rates, rng: np.random.Generator) -> Rates:
    """The rates of all cuts in simulated tests, run after run."""
    kinds = np.unique(np.concatenate(scores))
    sizes = {True: (rates.n_low, rates.n_high), False: (rates.n_high, rates.n_low)}
    shares = []
    for side, given in enumerate(scores):
        seen = np.bincount(np.searchsorted(kinds, given), minlength=kinds.size)
        n = int(sizes[rates.ways[0][1]][side][0])
        chances = rng.dirichlet(seen + 0.5, size=_RUNS)
        shares.append((rng.multinomial(n, chances) / n, n))
    at = np.searchsorted(kinds, rates.cuts)
    high, low = [], []
    for above, second in rates.ways:
        sides = []
        for part, n in shares:
            upto = np.cumsum(part, axis=1)
            held = upto[:, at] if not above else 1 - upto[:, at] + part[:, at]
            sides.append((held, n))
        (a, n), (b, m) = sides[::-1] if second else sides
        high.append(a * n / (n + 1))
        low.append((b * m + 0.5) / (m + 1))
    return replace(
        rates,
        high=np.clip(np.concatenate(high, axis=1), 0.0, 1.0).ravel(),
        low=np.clip(np.concatenate(low, axis=1), 0.0, 1.0).ravel(),
        n_high=np.tile(rates.n_high, _RUNS),
        n_low=np.tile(rates.n_low, _RUNS),
        known={},
    )


def _bounds(simulated: Rates, claim: Claim, gamma: float) -> FloatArray:
    """The bound of every cut in every simulated test, by share of γ, to within the grid."""
    goals = -ndtri(gamma * np.array(_SHARES))[:, None]
    top = min(max(2 * claim.value, 0.5), claim.largest)
    while top < min(_FAR, claim.largest) and simulated.z(claim.at(top)).max() >= goals[0]:
        top = min(2 * top, claim.largest)
    grid = np.linspace(0.0, top, _GRID)
    found = np.zeros((len(_SHARES), simulated.high.size))
    before = np.maximum(simulated.z(claim.at(0.0)), _NEVER)
    for low, high in pairwise(grid):
        z = np.maximum(simulated.z(claim.at(float(high))), _NEVER)
        part = np.clip((before - goals) / np.maximum(before - z, 1e-12), 0.0, 1.0)
        found = np.where(before >= goals, low + part * (high - low), found)
        before = z
    return found.reshape(len(_SHARES), _RUNS, -1)
