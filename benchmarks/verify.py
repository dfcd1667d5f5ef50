"""Bounds on δ(ε) from above: how often they are wrong, and how near they come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

import dpassay as dp
from benchmarks.tables import markdown, table
from dpassay._typing import FloatArray, IntArray
from dpassay.auditing.verifications import ENOUGH, TRAIN
from dpassay.bounds.upper_delta import worse_direction
from dpassay.learning.betting_cells import Cells
from dpassay.sampling.budget import split
from dpassay.sampling.samples import Live

RUNS, GAMMA, QUIET = 1000, 0.05, dp.Sampling(progress=False)


@dataclass(frozen=True)
class Case:
    """A mechanism, two inputs, their exact probabilities, and the share of outputs that never repeat."""

    name: str
    mechanism: Any
    pair: tuple[Any, Any]
    masses: dp.Masses
    epsilons: tuple[float, ...]
    floating: float = 0.0  # outputs on one input that the other never gives count in full

    def truth(self, epsilon: float) -> float:
        """δ of the worse direction."""
        repeated = max(self.masses.delta(epsilon), self.masses.swap().delta(epsilon))
        return (1 - self.floating) * float(repeated) + self.floating


def categories(x: int, size: int, rng: np.random.Generator) -> Any:
    """One of 1 000 values, most of them rare."""
    return rng.choice(1000, size=size, p=_CATEGORIES[x])


def _rare() -> FloatArray:
    weights = np.arange(1, 1001) ** -1.5
    tilted = weights * np.where(np.arange(1000) % 2, math.exp(0.4), math.exp(-0.4))
    return np.array([weights / weights.sum(), tilted / tilted.sum()])


_CATEGORIES = _rare()


def mixed(x: int, size: int, rng: np.random.Generator) -> Any:
    """A bit by randomized response; one time in twenty a number near 10 or near 20 instead."""
    bit = (rng.random(size) < 1 / (1 + math.exp(1 - 2 * x))).astype(float)
    return np.where(rng.random(size) < 0.05, 10 * (x + 1) + rng.random(size), bit)


def cases() -> list[Case]:
    def of(name: str, mechanism: Any, pair: Any, epsilons: tuple[float, ...]) -> Case:
        return Case(name, mechanism, tuple(pair), mechanism.masses(pair), epsilons)

    zoo = dp.zoo
    noisy, sparse = zoo.ReportNoisyMax(), zoo.SVT(variant=1)
    top, lost = noisy.epsilon(noisy.pair), sparse.epsilon(sparse.pair)
    coin = dp.Masses(*[[1 / (1 + math.e), 1 / (1 + 1 / math.e)][:: 1 - 2 * k] for k in (0, 1)])
    return [
        of("binary response, ε = 1", zoo.RandomizedResponse(1.0), (0, 1), (0.5, 1.0, 1.5)),
        of("20-ary response, ε = 1", zoo.KaryRandomizedResponse(20, 1.0), (0, 1), (0.5, 1.0, 1.5)),
        of("discrete Laplace, scale 1", zoo.DiscreteLaplace(1.0), (0, 1), (0.5, 1.0, 1.5)),
        of("discrete Laplace, scale 10", zoo.DiscreteLaplace(10.0), (0, 1), (0.05, 0.1, 0.15)),
        of("discrete Gaussian, σ = 2", zoo.DiscreteGaussian(2.0), (0, 1), (0.25, 0.5, 1.0)),
        of("noisy max", noisy, noisy.pair, (0.5 * top, top, 1.5 * top)),
        of("sparse vector (SVT1)", sparse, sparse.pair, (0.5 * lost, lost, 1.5 * lost)),
        Case("1,000 categories", categories, (0, 1), dp.Masses(*_CATEGORIES), (0.2, 0.6, 1.0)),
        Case("a bit, 5 % continuous", mixed, (0, 1), coin, (0.5, 1.0, 1.5), 0.05),
    ]


def counted(case: Case, n: int, seed: int) -> IntArray:
    """Counts of the cells on held-out draws, as dp.verify makes them."""
    source = Live(case.mechanism, dp.Pair(*case.pair), seed=seed, sampling=QUIET)
    budget = split(source, n, TRAIN, most=ENOUGH)
    cells = Cells.learn(source.deal(budget.learn))
    return np.asarray(np.sum(list(source.blocks(budget.test, cells)), axis=0))


def above(counts: IntArray, epsilons: Sequence[float]) -> FloatArray:
    """The bound at every ε, each on its own."""
    return worse_direction(counts[0], counts[1], epsilons, GAMMA)


def wrong(case: Case, n: int, seeds: Sequence[int]) -> tuple[IntArray, FloatArray]:
    """How often the bound is below the truth at each ε, and its median."""
    truth = np.array([case.truth(epsilon) for epsilon in case.epsilons])
    found = np.array([above(counted(case, n, seed), case.epsilons) for seed in seeds])
    return np.count_nonzero(found < truth, axis=0), np.median(found, axis=0)


@table("verify-coverage")
def coverage() -> str:
    """Bounds on δ(ε) from above: how often they are below the truth (10 minutes)."""
    every, rows = cases(), []
    limit = binom.ppf(1 - 0.01 / (3 * len(every)), RUNS, GAMMA) / RUNS
    for case in every:
        misses, median = wrong(case, 10_000, range(10**6, 10**6 + RUNS))
        for epsilon, miss, middle in zip(case.epsilons, misses, median, strict=True):
            truth = case.truth(epsilon)
            rows.append(
                [
                    case.name,
                    f"{epsilon:.3g}",
                    f"{truth:.4f}",
                    f"{middle:.4f}",
                    f"{miss / RUNS:.3f}",
                    f"{limit:.3f}",
                ]
            )
    return markdown(["mechanism", "ε", "δ(ε)", "median bound", "wrong", "limit"], rows)


def sketched(counts: IntArray, epsilon: float) -> float:
    """The smaller of cell by cell limits and McDiarmid's bound, at γ/2 each, in the worse direction."""
    from dpassay.bounds import clopper_pearson

    out, t = [], math.exp(epsilon)
    for p, q in (counts, counts[::-1]):
        n, m, cells = int(p.sum()), int(q.sum()), p.size - 1
        each = GAMMA / 2 / (2 * cells + 1)
        high = clopper_pearson.upper(p[:-1], n, each)
        low = clopper_pearson.lower(q[:-1], m, each)
        one = np.maximum(high - t * low, 0.0).sum() + clopper_pearson.upper(p[-1], n, each)
        plug_in = np.maximum(p[:-1] / n - t * q[:-1] / m, 0.0).sum()
        width = math.sqrt(math.log(4 / GAMMA) / 2 * (1 / n + t**2 / m))
        other = plug_in + width + clopper_pearson.upper(p[-1], n, GAMMA / 4)
        out.append(min(float(one), float(other), 1.0))
    return max(out)


@table("verify-tightness")
def tightness() -> str:
    """Bounds on δ(ε) from above at 10⁶ draws, beside the error of Eureka's Corollary 2 (1 minute)."""
    every = {case.name: case for case in cases()}
    asked = [
        ("binary response, ε = 1", (0.0, 0.5, 1.0, 1.1, 2.0)),
        ("20-ary response, ε = 1", (0.5, 1.0, 1.1)),
        ("discrete Laplace, scale 1", (0.0, 0.5, 1.0, 1.1, 2.0)),
        ("discrete Laplace, scale 10", (0.05, 0.1, 0.15)),
        ("discrete Gaussian, σ = 2", (0.5, 1.0, 1.5)),
        ("1,000 categories", (0.2, 0.6, 1.0)),
    ]
    n, cones, rows = 10**6, 1 + 2 / math.sqrt(2 - math.sqrt(3)), []
    for name, epsilons in asked:
        case = every[name]
        seen = [counted(case, n, seed) for seed in range(41, 46)]
        found = np.median([above(one, epsilons) for one in seen], axis=0)
        for epsilon, bound in zip(epsilons, found, strict=True):
            truth = case.truth(epsilon)
            truth = truth if truth > 1e-15 else 0.0  # sums of masses are rounded
            width = math.sqrt(math.log(4 / GAMMA) / n)
            eureka = math.exp(epsilon) * width * (24 * (cones - 1) + 2)
            before = float(np.median([sketched(one, epsilon) for one in seen]))
            rows.append(
                [
                    name,
                    f"{epsilon:g}",
                    f"{truth:.3g}",
                    f"**{bound:.3g}**",
                    f"{before:.3g}",
                    f"{min(truth + eureka, 1.0):.3g}",
                ]
            )
    headings = ["mechanism", "ε", "δ(ε)", "bound", "cells or McDiarmid", "δ + Corollary 2"]
    return markdown(headings, rows)
