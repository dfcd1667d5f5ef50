"""Pure DP: the local estimator and the lower bound of Askin, Kutta & Dette (arXiv:2108.09528).

ε of a pair is the max-divergence, the supremum of |ℓ(t)|, ℓ = log p/q (their Theorem 1), so it can be
found at single outputs t instead of events. `estimate` (DPL, their Algorithm 3) maximises an estimated
loss; `lower_bound` (MPL, Algorithm 4) does so for every pair, and then bounds the loss at the worst
output of the worst pair with fresh draws. Its guarantee is asymptotic: for a finite-sample one see
`dpassay.audit`.

The choice of t. The paper restricts the search to a region C and floors the densities at τ, because the
estimated loss is noise where there are no draws; with many outputs the maximum is still where the noise
is largest. Both can be given. By default neither is needed: t maximises |ℓ̂(t)| minus a few of its
standard errors (`caution`), which avoids outputs without draws, whatever their scale, and tends to the
supremum as n grows. The largest of K independent normal errors is about √(2 log K); that many are
subtracted, K being the number of keys and of bandwidths in the region. An estimate has no second stage to
correct it, and subtracts one more. `caution=0` with a region and a floor is the paper's own rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpassay import validation as checks
from dpassay._typing import AnyArray, BoolArray, FloatArray
from dpassay.errors import InvalidInput
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.keys import Layout
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.estimates import Estimate, LowerBound
from dpassay.sampling.budget import split, totals
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Sizes, Source, one_source, sources
from dpassay.scores.cell_counts import count_draws
from dpassay.scores.grid import GridPart, GridScore
from dpassay.scores.kernel_density import KernelDensity, density_at, undersmooth

__all__ = ["estimate", "lower_bound"]

#: The share of n that finds the worst output when n has to serve both stages.
_SEEK = 0.3
#: How often draws are split into halves to estimate the largest of many log-ratios.
_SPLITS = 20
#: What a quadratic loss assumes.
QUADRATIC = (
    "the loss is fitted as a quadratic, as it is for Gaussian noise. For other noise, such as that of "
    "subsampling, rare outputs may tell more, and μ, δ(ε) and Rényi ε are then larger (loss='kde' "
    "assumes no shape)"
)
#: What n draws cannot say.
UNSEEN = "outputs rarer than 1 in {n:,} cannot be seen with these draws: the true ε may be larger, even ∞"


@dataclass(frozen=True)
class Worst:
    """The worst output of a pair, by the draws of the first stage."""

    value: float  # |ℓ̂| there
    careful: float  # |ℓ̂| minus its standard errors, by which pairs are compared
    sign: int  # of ℓ̂
    loss: GridScore
    block: GridPart
    cell: int


def estimate(
    mechanism: Any,
    pair: Any = None,
    *,
    n: int | None = None,
    region: Any = None,
    floor: float | None = None,
    caution: float | None = None,
    bandwidth: str | float | KernelDensity = "sj",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Estimate:
    """Estimate the pure-DP level of a pair: the largest privacy loss, and where it is.

    `n` is draws per side. `region` restricts the search: (low, high) for numbers, one such pair a
    coordinate for vectors, a list of outputs in words for discrete ones. Densities below `floor` count
    as `floor`. `caution` standard errors are subtracted when the worst output is chosen. `bandwidth` is
    "sj", "isj", "silverman", "scott", "likelihood", a number, or a `dp.KernelDensity`: another
    kernel, a bandwidth for each input, or a support.

    >>> import dpassay as dp
    >>> estimate = dp.pure.estimate(dp.zoo.Laplace(1.0), (0.0, 1.0), n=100_000, rng=0)
    >>> abs(estimate.value - 1.0) < 0.1
    True
    """
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    draws = totals(source, n)
    _check(region, floor, caution)
    density = KernelDensity.of(bandwidth)
    cell_counts = count_draws(source, draws, density.least)
    loss = GridScore.of(cell_counts, density)
    errors = 1.0 + _errors(loss, region) if caution is None else caution
    worst = _worst(loss, region, floor, errors)
    axes = worst.block.axes
    rare = unseen(loss.masses(), worst.value, min(cell_counts.n)) if region is None else ()
    if rare or (region is not None and axes is not None):
        rare = (*rare, too_large(len(axes or ())))
    return Estimate(
        value=worst.value,
        notion="ε",
        location=loss.where(worst.block, worst.cell),
        pair=source.pair,
        loss=loss.curve(),
        about=About.of(source, "DPL", Guarantee.HEURISTIC, cell_counts.n, (*rare, *loss.notes)),
    )


def lower_bound(
    mechanism: Any,
    pairs: Any = None,
    *,
    n: int | None = None,
    n_bound: int | None = None,
    region: Any = None,
    floor: float | None = None,
    caution: float | None = None,
    confidence: float = 0.95,
    bandwidth: str | float | KernelDensity = "sj",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> LowerBound:
    """A lower bound for the pure-DP level, the worst of the pairs given (asymptotic).

    `n` draws per side find the worst output of every pair; `n_bound` fresh ones bound the loss there
    on the worst pair. Without `n_bound`, n serves both: 30 % for the first stage, the rest for the bound.
    The sign of the loss comes from the first stage, so that identical distributions give a positive bound
    with probability 1 − confidence and not twice that.

    With all neighbours of one database as `pairs` (any iterator: one pair is held at a time) this
    bounds the data-centric level ε_x.

    >>> import dpassay as dp
    >>> bound = dp.pure.lower_bound(dp.zoo.Laplace(1.0), [(0.0, 0.5), (0.0, 1.0)], n=50_000, rng=0)
    >>> 0.8 < bound.value < 1.0, bound.pair[1]
    (True, 1.0)
    """
    gamma = 1.0 - checks.confidence(confidence)
    _check(region, floor, caution)
    density = KernelDensity.of(bandwidth)
    length = len(pairs) if isinstance(pairs, Sequence) else 1
    best: tuple[Worst, Source, Sizes] | None = None  # with the draws of its second stage
    values = []
    with CallProgress(0, "seeking the worst pair") as bar:
        for source in sources(mechanism, pairs, rng=rng, sampling=sampling):
            seek, further = _two_stages(n, n_bound, source)
            bar.total = max(bar.total, length * max(seek) + max(further))
            loss = GridScore.of(count_draws(source, seek, density.least), density)
            errors = _errors(loss, region) if caution is None else caution
            if errors:  # the bound of the second stage counts: its own standard errors, too
                errors -= float(ndtri(gamma)) / math.sqrt(min(further) / min(seek))
            worst = _worst(loss, region, floor, errors)
            values.append(worst.value)
            if best is None or worst.careful > best[0].careful:
                best = worst, source, further
        if best is None:
            raise InvalidInput("there is no pair to test: the iterator is empty")
        bar.say("bounding")
        worst, source, further = best
        value, used = _bound_at(worst, source, further, gamma, floor)
    loss = worst.loss
    return LowerBound(
        value=value,
        confidence=confidence,
        notion="ε",
        guarantee=Guarantee.ASYMPTOTIC.downgraded(source.doubts),
        location=loss.where(worst.block, worst.cell),
        pair=source.pair,
        estimates=tuple(values),
        loss=loss.curve(),
        about=About.of(source, "MPL", Guarantee.ASYMPTOTIC, used, loss.notes),
    )


def _errors(loss: GridScore, region: Any) -> float:
    """√(2 log K): about how many standard errors the largest of K independent errors is."""
    places = 0.0
    for block in loss.blocks:
        inside = float(_inside(loss, block, region).sum())
        width = math.prod(math.sqrt(2 * math.pi) * h for h in block.h) * _unit(block)
        places += inside * block.cell / width if block.axes is not None else inside
    return math.sqrt(2 * math.log(max(places, 2.0)))


def _unit(block: GridPart) -> float:
    """What an error of a loss without a bandwidth is relative to: the spread of its draws, by axis."""
    if block.axes is None or block.h:
        return 1.0
    pooled = (block.p + block.q).reshape([axis.size for axis in block.axes])
    unit = 1.0
    for k, axis in enumerate(block.axes):
        weights = pooled.sum(axis=tuple(j for j in range(pooled.ndim) if j != k))
        places = np.arange(axis.size) - np.average(np.arange(axis.size), weights=weights)
        unit *= axis.step * math.sqrt(float(np.average(places**2, weights=weights)))
    return unit or 1.0


def _worst(loss: GridScore, region: Any, floor: float | None, caution: float) -> Worst:
    """The cell whose loss minus `caution` standard errors is largest."""
    best: Worst | None = None
    for block in loss.blocks:
        inside = _inside(loss, block, region) & (block.keys != -2)
        if not inside.any():
            continue
        ell = block.loss
        if floor is not None:
            ell = np.log(np.maximum(block.p, floor)) - np.log(np.maximum(block.q, floor))
        if block.axes is None:
            less = _log_ratio(block.p * block.n[0], block.q * block.n[1], block.n, caution)[1]
        else:  # the standard error of log p̂ − log q̂, with half a draw added so that it stays finite
            kernel, variance = block.kernel / _unit(block), np.zeros_like(block.p)
            for density, n in zip((block.p, block.q), block.n, strict=True):
                variance += kernel / (n * density + 0.5 * kernel)
            less = caution * np.sqrt(variance)
        careful = np.abs(ell) - less
        at = int(np.argmax(np.where(inside, careful, -np.inf)))
        if best is None or careful[at] > best.careful:
            value, sign = abs(float(ell[at])), 1 if ell[at] >= 0 else -1
            best = Worst(value, float(careful[at]), sign, loss, block, at)
    if best is None:
        raise InvalidInput(f"no draw fell into the region {checks.shown(region)}")
    block = loss.blocks[-1]
    single = np.count_nonzero(block.p) == np.count_nonzero(block.q) == 1
    if len(loss.blocks) == 1 and block.axes is None and single:  # each side has one output only
        value = 0.0 if block.p[best.cell] == block.q[best.cell] else math.inf
        return replace(best, value=value, careful=value)
    return best


def careful_epsilon(loss: GridScore, *, held_out: bool = True) -> float:
    """ε̂ of a fitted loss, at the output where it most exceeds its standard errors.

    The largest of many noisy log-ratios is too large. Of discrete outputs two thirds of the draws choose
    the output and the others say its log-ratio, on average over `_SPLITS` random thirds; all of them do
    if not `held_out`.
    """
    errors = 1.0 + _errors(loss, None)
    worst = _worst(loss, None, None, errors)
    block = worst.block
    if not held_out or block.axes is not None or math.isinf(worst.value):
        return worst.value
    rng = np.random.default_rng(0)
    x, y = np.round([block.p * block.n[0], block.q * block.n[1]]).astype(np.int64)
    found = []
    for _ in range(_SPLITS):
        third_x, third_y = rng.binomial(x, 1 / 3), rng.binomial(y, 1 / 3)
        ratio, less = _log_ratio(x - third_x, y - third_y, block.n, errors)
        at = int(np.argmax(np.where(block.keys != -2, np.abs(ratio) - less, -np.inf)))
        said = _log_ratio(third_x, third_y, block.n, errors)[0][at]
        found.append(said if ratio[at] >= 0 else -said)
    return max(float(np.mean(found)), worst.careful, 0.0)


def _log_ratio(x: AnyArray, y: AnyArray, n: Sizes, z: float) -> tuple[FloatArray, FloatArray]:
    """log p̂/q̂ by counts of cells, half a draw added to each; and how far a limit at z lies below it.

    The limits of the two rates, by square roots, are combined as by Zou & Donner (2008): a count of 0
    has a large upper limit and no standard error.
    """
    ratio = np.log((x + 0.5) / n[0]) - np.log((y + 0.5) / n[1])
    swap = ratio < 0
    high, low = np.where(swap, y, x), np.where(swap, x, y)
    n_high, n_low = np.where(swap, n[1], n[0]), np.where(swap, n[0], n[1])
    z_high = z * np.sqrt(np.maximum(1 - high / n_high, 0.0))
    z_low = z * np.sqrt(np.maximum(1 - low / n_low, 0.0))
    below = np.maximum(np.sqrt(high + 0.5) - z_high / 2, 1e-9) ** 2
    above = (np.sqrt(low + 0.5) + z_low / 2) ** 2 + z_low**2 / 6
    return ratio, np.hypot(np.log((high + 0.5) / below), np.log(above / (low + 0.5)))


def unseen(masses: Masses, epsilon: float, n: int) -> tuple[str, ...]:
    """A note where some log-ratio exceeds the estimate, of outputs that are too rare to tell."""
    if not math.isfinite(epsilon) or masses.epsilon() <= 1.1 * epsilon:
        return ()
    return (UNSEEN.format(n=n),)


def too_large(coordinates: int) -> str:
    """A note on the bias of the largest log-ratio, with what was found for one number."""
    found = " (for Laplace noise with ε = 1 by 8 % at 20,000 draws a side, by 4 % at 100,000)"
    return (
        "the estimate of ε is the largest of many noisy log-ratios: on average too large where frequent "
        f"outputs have the largest privacy loss{found * (coordinates == 1)}, too small where rare ones "
        "have it"
    )


def above_zero(n: int) -> str:
    """A note on estimates of a δ that is 0: densities that a kernel smooths, and noise."""
    return (
        f"where the true δ(ε) is 0, the estimate is usually above 0: up to about {n ** (-1 / 3):.1g} at "
        f"the true ε, and up to {n**-0.5:.1g} beyond 1.2 times the true ε (measured for Laplace noise "
        "with ε up to 2; more where ε is larger)"
    )


def of_one_input(masses: Masses, n: int) -> float:
    """The probability of outputs that came on the first input alone; 0 if that may be chance.

    It may be if they would have fewer than eight draws on the other input with the largest ratio of the
    others, which is that of events {loss ≥ t} with at least five draws of the second input.
    """
    order = np.argsort(-masses.loss, kind="stable")
    p, q = masses.p[order], masses.q[order]
    p, q = np.cumsum(p * (q > 0)), np.cumsum(q)
    ratio = np.max(p / np.maximum(q, 1e-300), where=n * q >= 5, initial=1.0)
    alone = float(masses.p[masses.q == 0].sum())
    return alone if alone * n > 8 * ratio else 0.0


def _bound_at(
    worst: Worst, source: Source, sizes: Sizes, gamma: float, floor: float | None
) -> tuple[float, Sizes]:
    """The loss at the chosen output from fresh draws, minus the normal quantile of its error.

    The floor only raises the denominator, so it cannot make a bound larger.
    """
    block, loss = worst.block, worst.loss
    h: tuple[float, ...] = ()
    if block.axes is not None:
        # the bandwidth is fixed before the fresh draws: rescaled to their number, undersmoothed
        seen, power = loss.cell_counts.n[0], 1 / (len(block.h) + 4)
        h = tuple(undersmooth(w * (seen / min(sizes)) ** power, w * seen**power) for w in block.h)
    point = tuple(loss.point(block, worst.cell))
    at = partial(_sums_at, loss.layout, block.key(worst.cell), point, h, block.density)
    sums, totals = np.sum(list(source.blocks(sizes, at)), axis=0)
    p, q = (sums / totals)[:: worst.sign]
    n_p, n_q = totals[:: worst.sign]
    used = (int(totals[0]), int(totals[1]))
    if p == 0:
        return 0.0, used
    if q == 0 and math.isinf(worst.value):
        return math.inf, used
    q = max(q, 0.5 * block.density.shape.top(h) / n_q, floor or 0.0)
    kernel = float(np.ravel(block.density.norm_at(np.array(point[:1]), h))[0])
    less = 0.0 if h else 1.0
    variance = (kernel / p - less) / n_p + (kernel / q - less) / n_q
    bound = math.log(p / q) + float(ndtri(gamma)) * math.sqrt(max(variance, 0.0))
    return max(0.0, bound), used


def _sums_at(
    layout: Layout,
    key: int,
    point: tuple[float, ...],
    h: tuple[float, ...],
    density: KernelDensity,
    p: Outputs,
    q: Outputs,
) -> FloatArray:
    """Draws at one output, counts of a key or kernel weights around a point of it; and all draws."""
    found = []
    for side in (layout.sort(p), layout.sort(q)):
        if not h:
            found.append(float(side.counts()[key]))
            continue
        numbers = side.numbers(key)
        # reflection at an end of the support: the density at the mirror image of the point is added
        points = np.array([point, *((2 * end - point[0],) for end in density.ends)])
        there = density_at(numbers, points, h, density.shape).sum() if len(numbers) else 0.0
        found.append(float(there * len(numbers)))
    return np.array([found, [len(p), len(q)]])


def _inside(loss: GridScore, block: GridPart, region: Any) -> BoolArray:
    """Which cells of a block lie in the region."""
    if region is None:
        return np.ones(block.p.size, dtype=bool)
    if block.axes is None:
        return np.array([_key_inside(loss, int(key), region) for key in block.keys])
    if _in_words(region):  # words are discrete outputs
        return np.zeros(block.p.size, dtype=bool)
    masks = [
        (axis.points >= low) & (axis.points <= high)
        for axis, (low, high) in zip(block.axes, _bounds(region, len(block.axes)), strict=True)
    ]
    return np.asarray(reduce(np.logical_and.outer, masks).ravel())


def _key_inside(loss: GridScore, key: int, region: Any) -> bool:
    if key < 0:
        return False
    if _in_words(region):
        return loss.layout.words(key) in region
    values = loss.layout.part(key).values(int(loss.layout.codes[key]))
    return len(values) > 0 and all(
        v is not None and low <= v <= high
        for v, (low, high) in zip(values, _bounds(region, len(values)), strict=True)
    )


def _in_words(region: Any) -> bool:
    return isinstance(region, (list, set, frozenset)) and all(isinstance(r, str) for r in region)


def _bounds(region: Any, dimension: int) -> FloatArray:
    """(low, high) of every coordinate."""
    array = np.asarray(region, dtype=float)
    if array.ndim > 1 and array.shape != (dimension, 2):
        raise InvalidInput(
            f"region must be (low, high), or one such pair for each of the {dimension} coordinates, "
            f"got {checks.shown(region)}"
        )
    return np.broadcast_to(array, (dimension, 2))


def _check(region: Any, floor: float | None, caution: float | None) -> None:
    if caution is not None:
        checks.real("caution", caution, at_least=0.0)
    if floor is not None:
        checks.real("floor", floor, above=0.0)
    if region is None or _in_words(region):
        return
    array = checks.doubles("region", region)
    if array.size == 0 or array.shape[-1:] != (2,) or np.any(array[..., 0] >= array[..., 1]):
        raise InvalidInput(
            f"region must be (low, high) with low < high, one such pair a coordinate, or a list of "
            f"outputs in words, got {checks.shown(region)}"
        )


def _two_stages(n: int | None, n_bound: int | None, source: Source) -> tuple[Sizes, Sizes]:
    """Draws that find the worst output, and draws that bound the loss there."""
    if n_bound is None:
        budget = split(source, n, _SEEK)
        return budget.learn, budget.test
    bound = checks.whole("n_bound", n_bound, at_least=2)
    seek = totals(source, n, least=2 if n is not None else bound + 2)
    if n is None:
        seek = seek[0] - bound, seek[1] - bound
    return seek, (bound, bound)
