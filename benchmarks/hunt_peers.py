"""Hunts beside the searches for inputs of DP-Sniper and of DP-Auditorium, on their own examples.

Neither is run here. DP-Sniper (Bichsel, Steffen, Bogunovic & Vechev, IEEE S&P 2021) publishes the logs of
its evaluation (github.com/eth-sri/dp-sniper, eval_sp2021/reference-results/dd_search_reg_data.log, commit
a4a2037): the pairs are theirs, and so are the bounds. DP-Auditorium (arXiv:2307.05608,
github.com/google/differential-privacy, python/dp_auditorium) chooses its inputs uniformly in the example
that it comes with, which is repeated here.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binom

import dpassay as dp
from benchmarks.tables import markdown, table
from dpassay import inputs, zoo
from dpassay.privacy.finite_pairs import Masses
from dpassay.rounding import number

#: Hunts of each of their examples.
SEEDS, MEAN_SEEDS = range(200, 205), range(5)
QUIET = dp.Sampling(progress=False)
#: DP-Sniper's settings (dpsniper/search/ddconfig.py): draws a side to train, to set the threshold (one
#: side), to check, and for the final estimate; events have a probability of at least RARE.
TRAIN, SET, CHECK, FINAL, RARE = 10_700_000, 10_700_000, 10_700_000, 200_000_000, 0.01
#: DP-Auditorium's (examples/run_mean_mechanism_example.py): pairs at most, draws a side of each.
TRIALS, SAMPLES = 10, 10_000


def sniper_calls(patterns: int) -> int:
    """Calls of the mechanism for so many patterns of inputs, each in both orders."""
    return 2 * patterns * (2 * TRAIN + SET + 2 * CHECK) + 2 * FINAL


@dataclass(frozen=True)
class Example:
    """An example of DP-Sniper: the pair it reports, the bound it certifies on it, and the truth."""

    name: str
    mechanism: Any
    space: Any
    claim: str
    theirs: tuple[Any, Any]
    bound: float
    patterns: int
    truth: Callable[[Any], tuple[float, ...]]  # the measures of a pair
    budget: int = 400_000  # of a hunt; the default
    options: dict[str, Any] = field(default_factory=dict)


def measures_of(mechanism: Any, epsilon: float) -> Callable[[Any], tuple[float, ...]]:
    """ε; ε of events of probability RARE or more, which DP-Sniper seeks; δ at the ε that is claimed."""

    def measures(pair: Any) -> tuple[float, ...]:
        sides = (tuple(pair), tuple(pair)[::-1])
        caught = max(1 - float(mechanism.tradeoff(RARE, side)) for side in sides)
        delta = max(float(mechanism.delta(epsilon, side)) for side in sides)
        return mechanism.epsilon(pair), math.log(caught / RARE), delta

    return measures


@dataclass(frozen=True)
class PrefixSums:
    """Sums of the first answers, of which each has Laplace noise of its own."""

    scale: float = 10.0

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """The sums, rounded to a grid."""
        return np.cumsum(zoo.Laplace(self.scale)(np.asarray(data, float), size, rng), axis=1)

    def epsilon(self, pair: Any) -> float:
        """The sums and the noisy answers tell the same."""
        return zoo.Laplace(self.scale).epsilon(pair)


def _murmur(text: str, seed: int) -> int:
    """MurmurHash3 of fewer than four bytes, 32 bits, signed (A. Appleby, public domain)."""
    raw, mask = text.encode(), 0xFFFFFFFF
    k = int.from_bytes(raw, "little") * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    h = seed ^ (k * 0x1B873593 & mask) ^ len(raw)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> shift) * factor & mask
    h ^= h >> 16
    return h - (1 << 32 if h >> 31 else 0)


@dataclass(frozen=True, repr=False)
class OneTimeRappor(zoo.ZooMechanism):
    """A Bloom filter whose bits are each kept, or with probability f replaced by a fair coin."""

    f: float = 0.95
    hashes: int = 4
    bits: int = 20

    def filter(self, data: Any) -> Any:
        """Which bits the number sets."""
        found = np.zeros(self.bits, dtype=np.int8)
        found[[_murmur(str(int(data)), k) % self.bits for k in range(self.hashes)]] = 1
        return found

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """A row of bits."""
        flip = rng.random((size, self.bits)) < self.f / 2
        return self.filter(data) ^ flip

    def masses(self, pair: Any) -> Masses:
        """How many of the bits that differ are as the first input has them."""
        differ = int(np.sum(self.filter(pair[0]) != self.filter(pair[1])))
        k = np.arange(differ + 1)
        return Masses(binom.pmf(k, differ, 1 - self.f / 2), binom.pmf(k, differ, self.f / 2))


def sniper() -> list[Example]:
    """Its examples that break ε = 0.1, and one in which the inputs of the patterns are not the worst."""
    few = {"relation": "query", "norm": "l1"}
    each = {"relation": "query"}
    five, ten = inputs.Reals(-10, 10, 5), inputs.Reals(-10, 10, 10)
    ones, half = np.ones(10), np.repeat([2.0, 0.0], 5)
    cross = np.repeat([1.0, 0.0], 5)

    def known(name: str, mechanism: Any, space: Any, theirs: Any, bound: float, **more: Any) -> Any:
        rest: dict[str, Any] = {"options": each, "patterns": 8}
        rest |= {"truth": measures_of(mechanism, 0.1)} | more
        return Example(name, mechanism, space, "eps=0.1", theirs, bound, **rest)

    counts = inputs.Integers(0, 10, 5)
    rappor = OneTimeRappor()
    most = round(rappor.epsilon((1, 0)), 4)
    return [
        known(
            "noisy histogram 2",
            zoo.NoisyHistogram(0.1, broken=True),
            counts,
            (np.array([0, 1, 1, 1, 1]), np.ones(5, int)),
            4.602,
            options=few,
            patterns=2,
        ),
        known(
            "report noisy max 3",
            zoo.ReportNoisyMax(0.1, 7),
            five,
            (np.zeros(5), np.ones(5)),
            0.2478,
            budget=4_000_000,
        ),
        known(
            "report noisy max 4",
            zoo.ReportNoisyMax(0.1, 8),
            five,
            (np.ones(5), 2 * np.ones(5)),
            0.3463,
            budget=4_000_000,
        ),
        known(
            "SVT 3",
            zoo.SVT(3, 0.1),
            inputs.Integers(-10, 10, 10),
            (ones, half),
            0.1716,
            budget=80_000_000,
        ),
        known("SVT 4", zoo.SVT(4, 0.1), ten, (ones, half), 0.1687, budget=20_000_000),
        known("SVT 5", zoo.SVT(5, 0.1), ten, (half, ones), 1.761, budget=4_000_000),
        known("SVT 6", zoo.SVT(6, 0.1), ten, (cross, cross[::-1]), 0.2720, budget=80_000_000),
        known(
            "prefix sums",
            PrefixSums(),
            ten,
            (ones, 0 * ones),
            0.5040,
            truth=lambda pair: (PrefixSums().epsilon(pair),),
        ),
        Example(
            "one-time RAPPOR",
            rappor,
            inputs.Integer(-10, 10),
            f"eps={most}",
            (1, 0),
            0.5978,
            2,
            measures_of(rappor, most),
            budget=4_000_000,
            options=each,
        ),
    ]


@dataclass(frozen=True)
class Run:
    """One hunt: what it found, how bad that is by every measure, and the processor time."""

    found: dp.Hunt
    truth: tuple[float, ...]
    seconds: float


def run(example: Example, seed: int) -> Run:
    """A hunt that is told the space, the claim and the relation."""
    start = time.process_time()
    found = dp.hunt(
        example.mechanism,
        example.space,
        example.claim,
        budget=example.budget,
        rng=seed,
        sampling=QUIET,
        **example.options,
    )
    one = Run(found, example.truth(found.pair), time.process_time() - start)
    print(
        f"{example.name}, {seed}: {one.truth}, bound {found.verdict.lower_bound:.4f}, "
        f"{one.seconds:.1f} s; {found.name}",
        file=sys.stderr,
    )
    return one


def _shown(values: Any) -> str:
    return " · ".join(map(number, values))


def _delta_alone(mean: Any, pair: Any) -> tuple[float, ...]:
    return (mean.delta(pair),)


def _columns(runs: list[Run], theirs: Sequence[tuple[float, ...]]) -> list[str]:
    """Medians by every measure, how many hunts found a pair at least as bad, and what they certify."""
    measures = list(zip(*(one.truth for one in runs), strict=True))
    best = list(zip(*theirs, strict=True))
    bad = [
        sum(a >= b * (1 - 1e-6) for a, b in zip(ours, other, strict=True))
        for ours, other in zip(measures, best, strict=True)
    ]
    draws = statistics.median(one.found.draws for one in runs)
    return [
        _shown(statistics.median(values) for values in measures),
        f"{' · '.join(map(str, bad))} of {len(runs)}",
        number(statistics.median(one.found.verdict.lower_bound for one in runs)),
        f"{sum(one.found.violated for one in runs)} of {len(runs)}",
        f"{draws / 1e6:.2f}",
        f"{statistics.median(one.seconds for one in runs):.1f}",
    ]


_OURS = ["hunted pair", "at least as bad", "certified", "violation", "calls, 10⁶", "seconds"]


@table("hunt-peers")
def beside_sniper() -> str:
    """Hunts beside DP-Sniper's search for inputs, on its examples."""
    rows = []
    for example in sniper():
        truth = example.truth(example.theirs)
        runs = [run(example, seed) for seed in SEEDS]
        calls = f"{sniper_calls(example.patterns) / 1e6:,.0f}"
        claimed = example.claim.removeprefix("eps=")
        columns = _columns(runs, [truth] * len(runs))
        rows.append([example.name, claimed, _shown(truth), number(example.bound), calls, *columns])
        print(" | ".join(rows[-1]), file=sys.stderr)
    headings = ["example", "claimed", "their pair", "they certify", "calls, 10⁶", *_OURS]
    return markdown(headings, rows)


# --- DP-Auditorium: means of numbers clipped to [0, 1], a number added or removed, ε = 1


@dataclass(frozen=True)
class Mean:
    """A mean with noise for its sensitivity; what is divided by may be a count with noise of its own.

    As in dp_auditorium/mechanisms/mean.py: the budget is halved if a count has noise, and a scale is at
    least 1e-12.
    """

    noisy_mean: bool
    noisy_scale: bool
    epsilon: float = 1.0

    @property
    def _half(self) -> float:
        return self.epsilon / 2 if self.noisy_mean or self.noisy_scale else self.epsilon

    def _parts(self, data: Any, noise: Any) -> tuple[Any, Any]:
        """The centre and the scale of the output, given the noise of the count."""
        values = np.clip(np.asarray(data, dtype=float), 0.0, 1.0)
        n = values.size
        for_mean = n + noise if self.noisy_mean else np.full_like(noise, n)
        for_scale = n + noise if self.noisy_scale else np.full_like(noise, n)
        return values.sum() / for_mean, np.maximum(1e-12, 1 / (self._half * for_scale))

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """The mean, rounded to a grid: how doubles are represented is another matter."""
        noise = rng.laplace(scale=1 / self._half, size=size)
        centre, scale = self._parts(data, noise)
        return np.rint((centre + rng.laplace(size=size) * scale) * 2.0**30) / 2.0**30

    def delta(self, pair: Any, epsilon: float = 1.0) -> float:
        """δ(ε), the larger of both directions: on cells, by quadrature over the noise of the count."""
        u = (np.arange(2000) + 0.5) / 2000
        noise = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u))) / self._half
        away = np.geomspace(1e-9, 1e6, 500)
        centres = [float(np.clip(side, 0, 1).mean()) for side in pair]
        edges = np.unique(np.concatenate([c + sign * away for c in centres for sign in (-1, 1)]))
        p, q = (self._cells(side, noise, edges) for side in pair)
        return float(max(Masses(p, q).delta(epsilon), Masses(q, p).delta(epsilon)))

    def _cells(self, data: Any, noise: Any, edges: Any) -> Any:
        below = np.zeros(edges.size)
        for centre, scale in zip(*self._parts(data, noise), strict=True):
            z = (edges - centre) / scale
            tail = 0.5 * np.exp(-np.abs(z))
            below += np.where(z < 0, tail, 1 - tail)
        cells = np.diff(np.concatenate([[0.0], below / noise.size, [1.0]]))
        return np.maximum(cells, 0.0)


MEANS = (
    ("mean: the count has no noise", Mean(False, False)),
    ("mean: the scale is of the count without noise", Mean(True, False)),
    ("mean: the sum is divided by the count without noise", Mean(False, True)),
)


@table("hunt-peers-means")
def beside_auditorium() -> str:
    """Hunts beside DP-Auditorium's search for inputs, on its mean."""
    rows = []
    calls = 2 * TRIALS * SAMPLES
    for name, mean in MEANS:
        runs, theirs = [], []
        for seed in MEAN_SEEDS:
            rng = np.random.default_rng(seed)
            tried = [rng.uniform(-1, 1, 2) for _ in range(TRIALS)]
            theirs.append((max(mean.delta((two[:1], two)) for two in tried),))
            example = Example(
                name,
                mean,
                inputs.Reals(-1, 1, (1, 2)),
                "(1, 1e-05)-DP in δ",
                (0, 0),
                0.0,
                0,
                partial(_delta_alone, mean),
                calls,
                {"relation": "add_remove"},
            )
            runs.append(run(example, seed))
        best = number(statistics.median(one for (one,) in theirs))
        rows.append([name, best, f"{calls / 1e6:.2f}", *_columns(runs, theirs)])
    headings = ["example", "their best pair", "calls, 10⁶", *_OURS]
    return markdown(headings, rows)
