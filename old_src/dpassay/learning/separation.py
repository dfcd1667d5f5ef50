"""Whether the scores that a search looked at tell the two inputs apart."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpassay._typing import FloatArray
from dpassay.learning.cross_fit import CrossFit, Scores

#: The chance that some score is said to separate two inputs whose outputs are alike, at most.
_CHANCE = 0.01
#: An event that holds this share of the draws is even enough.
_EVEN = 0.25


def separates(learner: CrossFit) -> bool:
    """Whether some score separated held-back draws of the two inputs better than chance.

    By the distance of Kolmogorov & Smirnov with its exponential bound, shared among the scores. A score
    that orders the draws it is judged by had as many choices as there are sets of its levels.
    """
    found = list(_judged(learner))
    for (p, q), held_back in found:
        distance = ks_distance(p, q) * math.sqrt(p.size * q.size / (p.size + q.size))
        choices = 0.0 if held_back else np.unique(np.concatenate([p, q])).size * math.log(2)
        if distance > math.sqrt((math.log(2 * len(found) / _CHANCE) + choices) / 2):
            return True
    return False


def evenest_share(learner: CrossFit) -> float:
    """The share of the training draws in the most even event of any score; ¼ stands for more.

    Scores that are tried only where they show a difference are left out: whether they do is chance.
    """
    best = 0.0
    for (p, q), _ in _judged(learner, always=True):
        a, b = p.size // 2, q.size // 2  # either half has scores of its own
        halves = np.concatenate([p[:a], q[:b]]), np.concatenate([p[a:], q[b:]])
        best = max(best, min(_even(half) for half in halves))
        if best >= _EVEN:
            break
    return min(best, _EVEN)


def _judged(learner: CrossFit, *, always: bool = False) -> Iterator[tuple[Scores, bool]]:
    """The scores that the search looked at, and whether they are of draws they were not fitted to."""
    if learner.plain_numbers is not None:
        p, q = learner.plain_numbers[1]
        yield (np.nan_to_num(p, nan=-np.inf), np.nan_to_num(q, nan=-np.inf)), True
    for index in range(len(learner.names)):
        if always and learner.tried_if_telling(index):
            continue
        scores = learner.known_scores(index)
        if scores is not None:
            yield scores, not learner.in_sample(index)


def ks_distance(p: FloatArray, q: FloatArray) -> float:
    """The largest distance of the two distribution functions."""
    p, q = np.sort(p), np.sort(q)
    both = np.concatenate([p, q])
    ranks = [np.searchsorted(side, both, side="right") / side.size for side in (p, q)]
    return float(np.max(np.abs(ranks[0] - ranks[1])))


def _even(scores: FloatArray) -> float:
    """The larger of the shares above and below the median: at most a half each."""
    middle = np.quantile(scores, 0.5, method="lower")
    return float(max(np.mean(scores > middle), np.mean(scores < middle)))
