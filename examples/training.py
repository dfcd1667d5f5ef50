"""A training function of one's own, Opacus' or any other's, as a mechanism dpassay can run.

`train(data, seed)` gives one trained model, `score(model)` a number or a row of numbers about it, such as
the loss on the canary. The score must look at the model alone: one that knows which of the two databases
was used would find a difference in any mechanism.

Many expensive runs: `dp.Sampling(workers=…)` trains on several cores.

    >>> import numpy as np
    >>> import dpassay as dp
    >>> def train(data, seed):  # a private mean, for a model
    ...     return np.mean(data) + np.random.default_rng(seed).normal(scale=2 / len(data))
    >>> mechanism = from_training(train, score=lambda model: model)
    >>> pair = ([0.0] * 9 + [1.0], [0.0] * 10)
    >>> bool(dp.audit(mechanism, pair, dp.GaussianDP(1.0), n=500, rng=0).violated)
    False
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpassay as dp


def from_training(train: Callable[[Any, int], Any], score: Callable[[Any], Any]) -> dp.Mechanism:
    """The mechanism `score(train(data, seed))`, with a fresh seed for every model."""

    def one(data: Any, rng: Any) -> Any:
        return score(train(data, int(rng.integers(2**31))))

    return dp.from_function(one)
