"""Twenty more mechanisms, written before the audit was run on any of them and not changed since."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln

import dpassay as dp
from benchmarks.bank_rows import Row, discrete_laplace, mixture, objects, of_laws

_GROUP = "held out"


def held_out() -> Iterator[Row]:
    yield from _numbers()
    yield from _counts()
    yield from _several()
    yield from _dressed()


def _row(name: str, pair: tuple[Any, Any], epsilon: float, dress: Any = None) -> Row:
    more = {} if dress is None else {"dress": dress}
    return Row(_GROUP, name, *pair, dp.PureDP(epsilon), **more)


def _numbers() -> Iterator[Row]:
    yield _row("Gumbel noise, shift .7", of_laws(stats.gumbel_r(0), stats.gumbel_r(0.7)), 0.5)
    yield _row(
        "gamma(2), scale 1 against 1.3", of_laws(stats.gamma(2), stats.gamma(2, 0, 1.3)), 0.3
    )
    yield _row("Pareto, tail 3 against 2.5", of_laws(stats.pareto(3), stats.pareto(2.5)), 0.3)
    yield _row("beta(2, 2) against beta(2, 3)", of_laws(stats.beta(2, 2), stats.beta(2, 3)), 0.5)
    yield _row(
        "angles, von Mises, shift 1", of_laws(stats.vonmises(1, 0), stats.vonmises(1, 1)), 0.3
    )
    modes = [stats.norm(-3, 1), stats.norm(3, 1)]
    pair = of_laws(mixture([0.3, 0.7], modes), mixture([0.5, 0.5], modes))
    yield _row("two modes, weights .3 against .5", pair, 0.3)
    edge = mixture([0.99, 0.01], [stats.uniform(0, 1), stats.uniform(1, 0.1)])
    other = mixture([0.999, 0.001], [stats.uniform(0, 1), stats.uniform(1, 0.1)])
    yield _row("1 % beyond an edge against .1 %", of_laws(edge, other), 1.0)


def _pmf(p: Any, q: Any) -> tuple[Any, Any]:
    """Draws and the log-ratio of two discrete laws of scipy."""

    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        return (q if side else p).rvs(size=size, random_state=rng)

    return base, lambda x: p.logpmf(x) - q.logpmf(x)


def _of_probabilities(p: Any, q: Any) -> tuple[Any, Any]:
    """The same of two lists of probabilities."""

    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        return rng.choice(len(p), size=size, p=q if side else p)

    return base, lambda x: np.log(np.asarray(p)[x] / np.asarray(q)[x])


def _counts() -> Iterator[Row]:
    base, _ell = discrete_laplace(10.0)
    ten = (
        (lambda side, size, rng: base(10 * side, size, rng)),
        (lambda x: (np.abs(x - 10) - np.abs(x)) / 10),
    )
    yield _row("Laplace on a grid of .1", ten, 0.5, lambda x: x / 10)
    yield _row("geometric, .5 against .6", _pmf(stats.geom(0.5), stats.geom(0.6)), 0.3)
    yield _row("Poisson 20 against 23", _pmf(stats.poisson(20), stats.poisson(23)), 0.5)
    yield _row(
        "binomial(50), .5 against .56", _pmf(stats.binom(50, 0.5), stats.binom(50, 0.56)), 0.5
    )
    rare = np.full(200, 1 / (199 + math.e))
    p, q = rare.copy(), rare.copy()
    p[0], q[1] = math.e * rare[0], math.e * rare[1]
    yield _row("200-ary randomized response", _of_probabilities(p, q), 0.3)
    scores = np.arange(20) % 7
    p, q = np.exp(0.5 * scores), np.exp(0.5 * (scores + np.where(np.arange(20) < 10, 1, -1)))
    pair = _of_probabilities(p / p.sum(), q / q.sum())
    yield _row("exponential mechanism over 20", pair, 0.3)


def _several() -> Iterator[Row]:
    chances = np.array([[0.2, 0.2, 0.2, 0.2, 0.2], [0.26, 0.2, 0.2, 0.2, 0.14]])
    pair = (
        lambda side, size, rng: rng.multinomial(20, chances[side], size=size),
        lambda x: x @ np.log(chances[0] / chances[1]),
    )
    yield _row("histograms of 20 in 5 bins", pair, 0.5)
    alphas = np.array([[1.0, 1, 1, 1], [2.0, 1, 1, 1]])
    normal = gammaln(alphas.sum(axis=1)) - gammaln(alphas).sum(axis=1)
    pair = (
        lambda side, size, rng: rng.dirichlet(alphas[side], size=size),
        lambda x: normal[0] - normal[1] - np.log(np.maximum(x[:, 0], 1e-300)),
    )
    yield _row("shares of four, Dirichlet", pair, 0.5)
    pair = (
        lambda side, size, rng: side / 2 + rng.laplace(size=(size, 2)),
        lambda x: (np.abs(x - 0.5) - np.abs(x)).sum(axis=1),
    )
    yield _row("two Laplace numbers, both moved", pair, 0.5)
    bit = np.exp(0.25) / (1 + np.exp(0.25))
    pair = (
        lambda side, size, rng: (rng.random((size, 8)) < (bit if side else 1 - bit)).astype(int),
        lambda x: 0.25 * (8 - 2 * x.sum(axis=1)),
    )
    yield _row("8 bits, randomized response each", pair, 1.0)
    yield _row("series of ten, AR .3 against .5", _series(0.3, 0.5), 1.0)


def _series(*coefficients: float) -> tuple[Any, Any]:
    """Ten steps x_t = a x_{t−1} + N(0, 1) from x_0 ~ N(0, 1)."""

    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        x = rng.normal(size=(size, 10))
        for t in range(1, 10):
            x[:, t] += coefficients[side] * x[:, t - 1]
        return x

    def ell(x: Any) -> Any:
        p, q = (((x[:, 1:] - a * x[:, :-1]) ** 2).sum(axis=1) / 2 for a in coefficients)
        return q - p

    return base, ell


def _dressed() -> Iterator[Row]:
    start = datetime.datetime(2024, 5, 1)
    yield _row(
        "times of arrival, rate 1 against 1.3",
        of_laws(stats.expon(0, 1), stats.expon(0, 1.3)),
        0.3,
        lambda x: objects([start + datetime.timedelta(hours=float(v)) for v in x]),
    )
    chance = np.full(12, 0.5)

    def keys(side: int, size: int, rng: np.random.Generator) -> Any:
        chance_of = chance.copy()
        chance_of[4] = 0.7 if side else 0.3
        return (rng.random((size, 12)) < chance_of).astype(int)

    names = np.array([f"key{k}" for k in range(12)])
    yield _row(
        "sets of keys, one of 12 leaks",
        (keys, lambda x: np.where(x[:, 4] == 1, -1, 1) * np.log(7 / 3)),
        0.4,
        lambda x: objects([frozenset(names[row == 1].tolist()) for row in x]),
    )
