"""Rényi DP: the softmax-floored estimator with its bound, and a bound that holds for every sample size.

ε(λ) = D_λ(P‖Q) = log E_Q[(p/q)^λ] / (λ − 1). Two methods:

`Softmax` (Kutta, Askin & Dunsche, arXiv:2212.04739): plug in densities, the denominator floored at τ so
smoothly that the delta method gives a variance; its bound is **asymptotic**. `Variational`: for all s ≥ 0

    E_P[s^{λ−1}] ≤ E_Q[(p/q)^λ]^{1/λ} E_Q[s^λ]^{(λ−1)/λ},

with a gap of second order around s ∝ p/q. A loss ŝ and a clip are learned on a part of the draws,
s = κ exp(min(ŝ, clip)), and bets on both sides with the rest (`RenyiWealth`) give a bound that is
**exact**: any dimension, atoms allowed.

A lower bound here gives no lower bound for (ε, δ): a small Rényi divergence implies (ε, δ)-DP, but a
large Rényi divergence does not refute it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtri

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.learning.cross_fit import CrossFit, select
from dpassay.learning.renyi_function import MomentCriterion
from dpassay.loss.cell_counts import CellCounts, tally_draws
from dpassay.loss.fit import Loss
from dpassay.loss.grid import GridLoss
from dpassay.loss.kernel_density import KernelDensity
from dpassay.outputs.canonical import Outputs
from dpassay.privacy.curves import RenyiCurve
from dpassay.privacy.pairs import SWAPS, Direction
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.estimates import Estimate, LowerBound
from dpassay.results.witness import BITS
from dpassay.sampling.budget import split, totals
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import Whole
from dpassay.sampling.samples import Source, one_source, sources

__all__ = ["Softmax", "Variational", "curve", "estimate", "lower_bound"]


@dataclass(frozen=True)
class Softmax:
    """The papers' estimator.

    floor       τ, in units of the density (of probability, for discrete outputs). By default the
                density of twenty draws. It makes every value finite, also where the truth is ∞
    sharpness   β of the softmax; 1/τ by default
    correct     subtract the plug-in bias: errors of the densities make p^λ q^{1−λ} larger on average.
                Without it the bound is too large where the divergence is small and λ large
    bandwidth   as in `dpassay.pure.estimate`; what a rule gives is undersmoothed
    """

    floor: float | None = None
    sharpness: float | None = None
    correct: bool = True
    bandwidth: str | float | KernelDensity = "sj"

    def __post_init__(self) -> None:
        KernelDensity.of(self.bandwidth)  # refuses what it cannot be
        for name in ("floor", "sharpness"):
            if getattr(self, name) is not None:
                checks.real(name, getattr(self, name), above=0.0)


@dataclass(frozen=True)
class Variational:
    """The bound that holds for every sample size.

    loss    what estimates log p/q: "auto" tries "logistic", "kde" and "boosting", as far as they suit
            the outputs, and takes the one with the largest predicted bound; or one of these names, "knn",
            "mlp", "torch", or any scikit-learn classifier
    train   the share of training draws; by default a quarter, less of more than 10⁵
    """

    loss: Any = "auto"
    train: float | None = None

    def __post_init__(self) -> None:
        if self.train is not None:
            checks.probability("train", self.train)

    def share(self, n: int) -> float:
        """The share of training draws among n."""
        return self.train if self.train is not None else min(0.25, max(0.1, 25_000 / n))


Method: TypeAlias = Softmax | Variational


def estimate(
    mechanism: Any,
    pair: Any = None,
    *,
    order: float,
    n: int | None = None,
    method: Softmax = Softmax(),
    direction: Direction = "both",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Estimate:
    """Estimate the Rényi divergence of a pair at an order λ > 1, by default the worse direction.

    "forward" is D_λ of the first input from the second, "backward" the other way round.

    >>> import dpassay as dp
    >>> estimate = dp.renyi.estimate(dp.zoo.Laplace(1.0), (0.0, 1.0), order=2, n=200_000, rng=0)
    >>> abs(estimate.value - dp.zoo.Laplace(1.0).renyi(2.0, (0.0, 1.0))) < 0.05
    True
    """
    lam = _order(order)
    checks.one_of("direction", direction, tuple(SWAPS))
    if not isinstance(method, Softmax):
        raise InvalidInput("an estimate is made by method=Softmax(…); Variational() gives bounds")
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    tally = tally_draws(source, totals(source, n))
    results = _softmax(tally, method, SWAPS[direction])
    best = max((result.at(lam) for result in results), key=lambda point: point.value)
    return Estimate(
        value=best.value,
        notion=f"Rényi ε({lam:g})",
        pair=source.pair,
        about=About.of(source, "softmax", Guarantee.HEURISTIC, tally.n, _warnings([best], tally)),
    )


def lower_bound(
    mechanism: Any,
    pairs: Any = None,
    *,
    order: float,
    n: int | None = None,
    confidence: float = 0.95,
    method: Method = Softmax(),
    direction: Direction = "both",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> LowerBound:
    """A lower bound for the Rényi level at an order, the worst of the pairs given.

    Softmax bounds every pair with its own n draws at level (1 − confidence) after Šidák, (1−α)^{1/N} for
    N pairs, and takes the largest, as the paper does at the level (1−α)^N; two directions share draws, so
    half the level each. Variational chooses pair and direction with the training draws, and tests these
    alone at the whole level.

    >>> import dpassay as dp
    >>> bound = dp.renyi.lower_bound(dp.zoo.Gaussian(1.0), (0.0, 1.0), order=2, n=100_000, rng=0,
    ...                              method=dp.renyi.Variational())
    >>> 0.85 < bound.value <= 1.0, str(bound.guarantee)
    (True, 'exact')
    """
    lam = _order(order)
    gamma = 1 - checks.probability("confidence", confidence)
    found = list(sources(mechanism, pairs, rng=rng, sampling=sampling))
    if not found:
        raise InvalidInput("there is no pair to test: the iterator is empty")
    bounds = _bounds(found, np.array([lam]), n, gamma, method, direction)
    return LowerBound(
        value=float(bounds.lower[0]),
        confidence=confidence,
        notion=f"Rényi ε({lam:g})",
        guarantee=bounds.about.guarantee,
        pair=bounds.about.pair,
        estimates=tuple(bounds.estimates),
        about=bounds.about,
    )


def curve(
    mechanism: Any,
    pair: Any = None,
    *,
    orders: npt.ArrayLike,
    n: int | None = None,
    confidence: float = 0.95,
    method: Method = Softmax(),
    direction: Direction = "both",
    simultaneous: bool = True,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> RenyiCurve:
    """Rényi divergences at several orders from one sample, with lower bounds.

    All orders share the draws. With `simultaneous` the bounds hold at all orders at once (Bonferroni);
    without, at each order on its own.
    """
    lam = _orders(orders)
    gamma = 1 - checks.probability("confidence", confidence)
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    each = gamma / (lam.size if checks.flag("simultaneous", simultaneous) else 1)
    bounds = _bounds([source], lam, n, each, method, direction)
    return RenyiCurve(
        lam,
        bounds.values,
        lower=bounds.lower,
        confidence=confidence,
        simultaneous=simultaneous,
        about=bounds.about,
    )


@dataclass(frozen=True)
class Bounds:
    """Estimates and lower bounds at several orders, on the pair where the first bound is largest."""

    values: FloatArray
    lower: FloatArray
    estimates: list[float]  # at the first order, by pair
    about: About


def _bounds(
    found: list[Source],
    orders: FloatArray,
    n: int | None,
    gamma: float,
    method: Method,
    direction: str,
) -> Bounds:
    """Bounds at error γ for each order, with pairs in any number."""
    swaps = SWAPS[checks.one_of("direction", direction, tuple(SWAPS))]
    match method:
        case Variational():
            return _variational_bounds(found, orders, n, gamma, method, swaps)
        case Softmax():
            return _softmax_bounds(found, orders, n, gamma, method, swaps)
    raise InvalidInput(
        f"method must be dp.renyi.Softmax(…) or dp.renyi.Variational(…), got {checks.shown(method)}"
    )


# --- variational


def _variational_bounds(
    found: list[Source],
    orders: FloatArray,
    n: int | None,
    level: float,
    method: Variational,
    swaps: tuple[bool, ...],
) -> Bounds:
    """Learn on every pair, test on the one with the largest predicted bound."""
    candidates = []
    total = min(totals(found[0], n, least=20))
    budget = split(found[0], n, method.share(total), least=(10, 10))
    with Whole(budget.draws(len(found)), "learning") as bar:
        for source in found:
            learner = CrossFit(source.deal(budget.learn), method.loss, source.rng)
            power = MomentCriterion(float(orders[0]), swaps, min(budget.test), level)
            index, first = select(learner, power)
            scores = learner.scores(index)
            assert scores is not None
            scores = np.sort(scores[0]), np.sort(scores[1])  # once for all orders
            witnesses = [first, *(power.at(float(order), scores) for order in orders[1:])]
            bits = index in learner.families[1]
            candidates.append((first.predicted, source, learner.fitted(index), witnesses, bits))
        _, chosen, loss, witnesses, bits = max(candidates, key=lambda c: c[0])
        bar.say("bounding")
        parts = list(chosen.blocks(budget.test, partial(_scores, loss)))
    score_p, score_q = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    lower = np.array([w.bound(score_p, score_q, level) for w in witnesses])
    values = np.maximum([w.estimate for w in witnesses], lower)
    single = len(found) == 1
    estimates = [float(values[0])] if single else [c[3][0].estimate for c in candidates]
    notes = [f"loss: {loss.name}", *[BITS] * bits]
    weak = [w.order for w in witnesses if w.effective < 100]
    if weak:
        listed = ", ".join(f"{order:g}" for order in weak)
        notes.append(
            f"{min(budget.test):,} draws are too few for order {listed}: fewer than 100 of them decide "
            "the estimate, so the bound depends on n more than on the mechanism"
        )
    n_used = len(score_p), len(score_q)
    about = About.of(chosen, "variational", Guarantee.EXACT, n_used, notes)
    return Bounds(values, lower, estimates, about)


def _scores(loss: Loss, p: Outputs, q: Outputs) -> tuple[FloatArray, FloatArray]:
    return loss.score(p), loss.score(q)


# --- softmax


def _softmax_bounds(
    found: list[Source],
    orders: FloatArray,
    n: int | None,
    gamma: float,
    method: Softmax,
    swaps: tuple[bool, ...],
) -> Bounds:
    """The largest bound over pairs (Šidák) and directions (half of the level each)."""
    level = -math.expm1(math.log1p(-gamma) / len(found)) / len(swaps)
    best: tuple[FloatArray, FloatArray, Source, list[Point], CellCounts] | None = None
    estimates = []
    draws = totals(found[0], n)
    with Whole(len(found) * max(draws)):
        for source in found:
            tally = tally_draws(source, draws)
            rows = [
                [one.at(float(lam)) for lam in orders] for one in _softmax(tally, method, swaps)
            ]
            values = np.max([[point.value for point in row] for row in rows], axis=0)
            bounds = np.array([[point.lower(level) for point in row] for row in rows])
            estimates.append(float(values[0]))
            lower = bounds.max(axis=0)
            if best is None or lower[0] > best[1][0]:
                binding = [rows[k][j] for j, k in enumerate(bounds.argmax(axis=0))]
                best = values, lower, source, binding, tally
    assert best is not None
    values, lower, chosen, binding, tally = best
    notes = _warnings(binding, tally)
    about = About.of(chosen, "softmax", Guarantee.ASYMPTOTIC, tally.n, notes)
    return Bounds(values, np.maximum(lower, 0.0), estimates, about)


@dataclass(frozen=True)
class Point:
    """The estimator at one order, with its standard error."""

    order: float
    value: float
    error: float
    floored: float  # the share of the integral where q is below five times the floor

    def lower(self, gamma: float) -> float:
        """value + Φ⁻¹(γ)·error."""
        if not math.isfinite(self.error):
            return 0.0
        return self.value + float(ndtri(gamma)) * self.error


@dataclass(frozen=True, eq=False)
class Floored:
    """log p, log q, log q_τ and log π(q) on all cells, for one direction."""

    log_p: FloatArray
    log_q: FloatArray
    log_floored: FloatArray
    log_pi: FloatArray
    log_cell: FloatArray
    log_kernel: FloatArray
    floor: FloatArray
    n: tuple[int, int]
    correct: bool

    def at(self, lam: float) -> Point:
        """D̂_λ = log ∫ p^λ q_τ^{1−λ} / (λ−1) and its standard error (eqs. 13–18), in log space."""
        lp, lq, lf, cell = self.log_p, self.log_q, self.log_floored, self.log_cell
        ratio = lp - lf
        terms = lam * lp + (1 - lam) * lf + cell
        log_i = _lse(terms)
        if not np.isfinite(log_i):
            return Point(lam, 0.0 if log_i < 0 else math.inf, math.inf, 0.0)
        with np.errstate(invalid="ignore"):
            held = lq < np.log(5 * self.floor)
            floored = math.exp(_lse(terms[held]) - log_i) if held.any() else 0.0
            # σ₁²/Î² and σ₂²/Î²: both halves of the delta method, relative to Î
            first = math.exp(_lse((2 * lam - 1) * ratio + lf + cell) - 2 * log_i) - 1.0
            weight = 2 * self.log_pi + 2 * lam * ratio + lq + cell
            mean = _lse(self.log_pi + lam * ratio + lq + cell) - log_i
            second = math.exp(_lse(weight) - 2 * log_i) - math.exp(2 * mean)
            bias = 0.0
            if self.correct:
                # ½ f'' Var: E[p̂^λ q̂^{1−λ}] exceeds p^λ q^{1−λ} by λ(λ−1)/2 of the relative variances
                half = math.log(lam * (lam - 1) / 2)
                in_p = _lse(terms - lp + self.log_kernel) - log_i - math.log(self.n[0])
                in_q = _lse(terms - 2 * lf + 2 * self.log_pi + lq + self.log_kernel)
                bias = math.exp(half + in_p) + math.exp(half + in_q - log_i - math.log(self.n[1]))
        variance = (
            lam**2 * max(first, 0.0) / self.n[0] + (lam - 1) ** 2 * max(second, 0.0) / self.n[1]
        )
        value = log_i + math.log1p(-min(bias, 0.5))
        return Point(lam, max(0.0, value / (lam - 1)), math.sqrt(variance) / (lam - 1), floored)


def _lse(values: FloatArray) -> float:
    return float(logsumexp(values)) if values.size else -math.inf


def _softmax(tally: CellCounts, method: Softmax, swaps: tuple[bool, ...]) -> list[Floored]:
    loss = GridLoss.of(tally, method.bandwidth, inference=True)
    return [_floored(loss, method, swapped) for swapped in swaps]


def _floored(loss: GridLoss, method: Softmax, swapped: bool) -> Floored:
    n = loss.tally.n[::-1] if swapped else loss.tally.n
    rows = []
    for block in loss.blocks:
        p, q = (block.q, block.p) if swapped else (block.p, block.q)
        floor = method.floor if method.floor is not None else 20 * block.peak / n[1]
        rows.append([p, q, *(np.full_like(p, x) for x in (floor, block.cell, block.kernel))])
    columns = np.concatenate(rows, axis=1)
    p, q, floor_at, cell, kernel = columns[:, columns[0] > 0]
    sharpness = method.sharpness if method.sharpness is not None else 1 / floor_at
    gap = sharpness * (q - floor_at)
    with np.errstate(divide="ignore"):
        log_q = np.log(q)
    # q_τ = β⁻¹ log(e^{βq} + e^{βτ}) as max(q, τ) + β⁻¹ log(1 + e^{−β|q−τ|}); π = 1/(1 + e^{β(τ−q)})
    softened = np.maximum(q, floor_at) + np.log1p(np.exp(-np.abs(gap))) / sharpness
    return Floored(
        np.log(p),
        log_q,
        np.log(softened),
        -np.logaddexp(0.0, -gap),
        np.log(cell),
        np.log(kernel),
        floor_at,
        n,
        method.correct,
    )


def _warnings(points: Sequence[Point], tally: CellCounts) -> tuple[str, ...]:
    # the floor lowers D by about the share `floored`, whatever the order: at small D that is much of it
    held = [p for p in points if p.floored > 0.1 * min(1.0, p.value)]
    if not held:
        return tally.notes
    orders = [f"{order:g}" for order in sorted({p.order for p in held})]
    where = f"order {orders[0]}" if len(orders) == 1 else f"orders {', '.join(orders)}, up to"
    return (
        f"at {where} {max(p.floored for p in held):.1%} of the integral comes from outputs with a "
        "density near the floor or below: the floor makes the value too small, at large orders often "
        "by much. More draws lower the floor; method=dp.renyi.Variational() has none. Where outputs come "
        "on one input alone the true value is ∞",
        *tally.notes,
    )


# --- arguments


def _order(order: npt.ArrayLike) -> float:
    if checks.doubles("order", order).ndim:
        raise InvalidInput(
            f"order must be one number above 1, got {checks.shown(order)}; "
            "dp.renyi.curve(…, orders=[…]) bounds several orders at once"
        )
    return float(_orders(order)[0])


def _orders(orders: npt.ArrayLike) -> FloatArray:
    array = np.atleast_1d(checks.doubles("orders", orders))
    if array.ndim != 1 or array.size == 0 or not np.all((array > 1) & np.isfinite(array)):
        raise InvalidInput(
            f"a Rényi order must be a finite number above 1, got {checks.shown(orders)}; order 1 is "
            "Kullback–Leibler and ∞ is pure DP"
        )
    return np.sort(array)
