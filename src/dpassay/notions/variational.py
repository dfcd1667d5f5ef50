"""A bound on a Rényi divergence that holds for every sample size.

For every w ≥ 0, E_Q[(p/q)^λ] ≥ λ E_P[w^{λ−1}] − (λ−1) E_Q[w^λ], with equality at w = p/q. A loss and a
clip are learned on a part of the draws, w = κ exp(clip(loss)); on the rest the right-hand side is the
mean of a bounded variable, which betting bounds from below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.bounds import betting
from dpassay.errors import InvalidInput, NotEnoughDraws
from dpassay.loss.fit import Loss, crossed, fit, tried
from dpassay.privacy.pairs import SWAPS
from dpassay.sampling.outputs import Outputs
from dpassay.sampling.samples import Samples, Source, draws_per_side

#: The largest logarithm of w^λ.
_LARGEST = 300.0


@dataclass(frozen=True)
class Variational:
    """The bound that holds for every sample size.

    loss    what estimates log p/q: "auto" tries "logistic", "kde" and "boosting", as far as they suit
            the outputs, and takes what promises the largest bound; or one of these names, "knn", "mlp",
            "torch", or any scikit-learn classifier
    train   the share of the draws that learn; by default a quarter, less of more than 10⁵
    """

    loss: Any = "auto"
    train: float | None = None

    def __post_init__(self) -> None:
        if self.train is not None:
            checks.probability("train", self.train)

    def share(self, n: int) -> float:
        """The share of n draws that learn."""
        return self.train if self.train is not None else min(0.25, max(0.1, 25_000 / n))


@dataclass(frozen=True, eq=False)
class Variation:
    """w = κ exp(clip(ŝ, low, high)) and what the training draws promise for it."""

    order: float
    swapped: bool
    low: float
    high: float
    log_scale: float
    spread: float
    mean: float  # of the values, on held-back training draws
    promised: float  # the bound, less what a choice by the largest takes in
    effective: float  # draws that carry the estimate, of those that will test

    def values(self, score_p: FloatArray, score_q: FloatArray) -> FloatArray:
        """λ w(x)^{λ−1} − (λ−1) w(y)^λ for pairs of draws."""
        lam = self.order
        x, y = (score_q, score_p) if self.swapped else (score_p, score_q)
        sign = -1.0 if self.swapped else 1.0
        log_w = [self.log_scale + np.clip(sign * s, self.low, self.high) for s in (x, y)]
        return np.asarray(lam * np.exp((lam - 1) * log_w[0]) - (lam - 1) * np.exp(lam * log_w[1]))

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest the values can be."""
        lam = self.order
        small, large = self.log_scale + self.low, self.log_scale + self.high
        return (
            lam * math.exp((lam - 1) * small) - (lam - 1) * math.exp(lam * large),
            lam * math.exp((lam - 1) * large) - (lam - 1) * math.exp(lam * small),
        )

    def bound(self, score_p: FloatArray, score_q: FloatArray, gamma: float) -> float:
        """log L/(λ−1), L a betting lower bound of the mean."""
        m = min(len(score_p), len(score_q))
        low, high = self.range
        z = self.values(score_p[:m], score_q[:m])
        mean = betting.lower_mean(z, low=low, high=high, gamma=gamma, spread=self.spread)
        return math.log(mean) / (self.order - 1) if mean > 1 else 0.0

    def p_value(
        self, score_p: FloatArray, score_q: FloatArray, epsilon: float, gamma: float
    ) -> float:
        """For the claim that the divergence is at most ε."""
        m = min(len(score_p), len(score_q))
        low, high = self.range
        claimed = math.exp(min((self.order - 1) * epsilon, 700.0))
        z = self.values(score_p[:m], score_q[:m])
        return betting.p_value(z, claimed, low=low, high=high, gamma=gamma, spread=self.spread)

    @property
    def predicted(self) -> float:
        """The bound promised, on the divergence."""
        return math.log(self.promised) / (self.order - 1) if self.promised > 1 else 0.0

    @property
    def estimate(self) -> float:
        """The divergence as the held-back training draws have it."""
        return math.log(self.mean) / (self.order - 1) if self.mean > 1 else 0.0

    def detectable(self, epsilon: float, test: int, gamma: float) -> float:
        """About the smallest divergence that would be told from ε with 90 % probability.

        ∞ where the mean that takes is beyond what clipped values can have, and for so few draws that
        nothing of the kind can be said.
        """
        if test < 30:
            return math.inf
        low, high = self.range
        claimed = math.exp(min((self.order - 1) * epsilon, 700.0))
        wealth = math.log(1 / gamma)
        # few draws show little of the spread there is
        spread = max(self.spread, (high - low) / (2 * math.sqrt(test)))
        noise = (math.sqrt(2 * wealth) + 1.2816) * spread / math.sqrt(test)
        mean = claimed + noise + wealth * max(claimed - low, 0.0) / test
        return math.log(mean) / (self.order - 1) if mean < high else math.inf


def learn_variation(
    order: float, swapped: bool, score_p: FloatArray, score_q: FloatArray, test: int, gamma: float
) -> Variation:
    """Choose clip and scale by the bound they promise on `test` draws, from scores of held-back draws."""
    lam, sign = order, (-1.0 if swapped else 1.0)
    x, y = (score_q, score_p) if swapped else (score_p, score_q)
    x, y = sign * x, sign * y
    m = min(x.size, y.size)
    best: Variation | None = None
    wealth = math.log(1 / gamma)
    tops = np.quantile(x, [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0])
    for high in np.unique(np.clip(tops, 0.0, _LARGEST / lam)):
        low = -float(high) - 5.0
        log_x, log_y = np.clip(x, low, high), np.clip(y, low, high)
        log_a = _log_sum_exp((lam - 1) * log_x) - math.log(x.size)
        # one draw of Q more, at the top: that none was seen there does not make w^λ free
        log_b = float(np.logaddexp(_log_sum_exp(lam * log_y), lam * high)) - math.log(y.size + 1)
        # the κ that maximises λκ^{λ−1}A − (λ−1)κ^λ B, as far as w^λ can be squared
        scale = min(log_a - log_b, _LARGEST / lam - float(high))
        z = lam * np.exp((lam - 1) * (scale + log_x[:m])) - (lam - 1) * np.exp(
            lam * (scale + log_y[:m])
        )
        spread = float(z.std())
        mean = lam * math.exp((lam - 1) * scale + log_a) - (lam - 1) * math.exp(lam * scale + log_b)
        reach = mean - (
            lam * math.exp((lam - 1) * (scale + low)) - (lam - 1) * math.exp(lam * (scale + high))
        )
        # betting pays √(2 log(1/γ) σ²/n), or log(1/γ)·reach/n where the largest stake binds; and the
        # mean itself is known to ±σ/√m, which a choice by the largest must not be taken in by
        paid = math.sqrt(2 * wealth * spread**2 / test) + wealth * reach / test
        promised = mean - paid - spread / math.sqrt(m)
        if best is None or promised > best.promised:
            w = np.exp((lam - 1) * (log_x - log_x.max()))
            effective = test * float(w.sum()) ** 2 / (x.size * float(np.sum(w**2)))
            best = Variation(
                lam, swapped, low, float(high), scale, spread, mean, promised, effective
            )
    assert best is not None
    return best


def _log_sum_exp(values: FloatArray) -> float:
    """Of finite values. (scipy's is ten times slower for a few hundred of them.)"""
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


def bounds(
    found: list[Source],
    orders: FloatArray,
    n: int | None,
    gamma: float,
    method: Variational,
    direction: str,
) -> tuple[FloatArray, Source, list[float], tuple[str, ...], tuple[int, int]]:
    """Learn on every pair, test on the one that promises most; bounds by order."""
    flip = SWAPS[direction]
    level = gamma / orders.size
    candidates = []
    for source in found:
        train, test_size = _split(source, n, method)
        loss, scores = fit_best(source, train, method.loss, orders, flip, test_size, level)
        witnesses = [
            max(
                (learn_variation(float(order), side, *scores, test_size, level) for side in flip),
                key=lambda found: found.promised,
            )
            for order in orders
        ]
        promise = witnesses[0].promised
        candidates.append((promise, source, loss, witnesses, test_size))
    _, chosen, loss, witnesses, test_size = max(candidates, key=lambda c: c[0])
    scorer = Scorer(loss)
    parts = list(chosen.blocks(test_size, scorer))
    score_p, score_q = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    bounds = np.array([w.bound(score_p, score_q, level) for w in witnesses])
    estimates = [max(w.estimate, bound) for w, bound in zip(witnesses, bounds, strict=True)]
    if orders.size == 1 and len(found) > 1:
        estimates = [c[3][0].estimate for c in candidates]
    notes = [f"loss: {loss.name}"]
    weak = [w.order for w in witnesses if w.effective < 100]
    if weak:
        listed = ", ".join(f"{order:g}" for order in weak)
        notes.append(
            f"order {listed} is beyond what {test_size:,} draws resolve: fewer than 100 of them would "
            "carry the estimate, so the bound says more about n than about the mechanism"
        )
    return bounds, chosen, estimates, tuple(notes), (len(score_p), len(score_q))


@dataclass(frozen=True)
class Scorer:
    """Keeps only the scores of a block."""

    loss: Loss

    def __call__(self, p: Outputs, q: Outputs) -> tuple[FloatArray, FloatArray]:
        """Scores of both sides."""
        return self.loss.score(p), self.loss.score(q)


def _split(source: Source, n: int | None, method: Variational) -> tuple[Samples, int]:
    total = draws_per_side("n", n, source, at_least=20)
    if total is None:
        left = source.remaining
        assert left is not None
        total = min(left)
    if total < 20:
        raise NotEnoughDraws(f"a bound needs at least 20 draws per side, there are {total}")
    learn = max(10, round(method.share(total) * total))
    return source.take(learn), total - learn


def _stream(source: Source, index: int, part: int) -> np.random.Generator:
    return source.rng(10 * part + index)


def fit_best(
    source: Source,
    train: Samples,
    loss: Any,
    orders: FloatArray,
    flip: Sequence[bool],
    test: int,
    level: float,
) -> tuple[Loss, tuple[FloatArray, FloatArray]]:
    """The loss that promises most, and scores of training draws it was not fitted to."""
    names = tried(loss, train.p, train.q)
    half = train.share(0.5)
    rest = train.take()
    best: tuple[float, Any, tuple[FloatArray, FloatArray]] | None = None
    for index, name in enumerate(names):
        try:
            scores = crossed(name, half, rest, rng=partial(_stream, source, index))
        except InvalidInput:  # half the draws can look like outputs of another kind
            if len(names) == 1:
                raise
            continue
        promise = max(
            (learn_variation(float(orders[0]), s, *scores, test, level) for s in flip),
            key=lambda found: found.promised,
        )
        margin = promise.spread / math.sqrt(
            scores[0].size
        )  # a later, rougher one must be clearly better
        if best is None or promise.promised > best[0] + margin:
            best = (promise.promised, name, scores)
    assert best is not None
    train.rewind()
    return fit(best[1], train.p, train.q, rng=source.rng(20)), best[2]
