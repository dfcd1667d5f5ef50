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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtri

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.learning.cross_fit import CrossFit, select
from dpassay.learning.renyi_variational import MomentCriterion
from dpassay.notions.pure import of_one_input
from dpassay.outputs.canonical import Outputs
from dpassay.privacy.curves import RenyiCurve
from dpassay.privacy.provenance import About, Guarantee
from dpassay.privacy.relations import SWAPS, Direction
from dpassay.results.estimates import Estimate, LowerBound
from dpassay.results.witness import BITS
from dpassay.sampling.budget import split, totals
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Sizes, Source, one_source, sources
from dpassay.scores.cell_counts import count_draws
from dpassay.scores.fit import Score
from dpassay.scores.grid import GridScore
from dpassay.scores.kernel_density import KernelDensity

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


#: Why a bound has no witness.
_NO_WITNESS = "all outputs together show this bound, no single event: there is no witness"


@dataclass(frozen=True)
class Variational:
    """The bound that holds for every sample size.

    loss    what estimates log p/q: "auto" tries "logistic", "kde" and "boosting", as far as they suit
            the outputs, and the floating-point representation, and takes the one with the largest
            predicted bound; "values" leaves the representation out, "bits" tries it alone; or one of
            these names, "knn", "mlp", "torch", or any scikit-learn classifier
    train   the share of training draws; by default a quarter, less of more than 10⁵
    """

    loss: Any = "auto"
    train: float | None = None

    def __post_init__(self) -> None:
        if self.train is not None:
            checks.probability("train", self.train)


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
    lam = _orders(order, "order")
    swaps = SWAPS[checks.one_of("direction", direction, tuple(SWAPS))]
    if not isinstance(method, Softmax):
        raise InvalidInput("an estimate is made by method=Softmax(…); Variational() gives bounds")
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    loss = _fitted(source, totals(source, n), method)
    best = max((_row(loss, method, swap, lam)[0] for swap in swaps), key=lambda one: one.value)
    return Estimate(
        value=best.value,
        notion=f"Rényi ε({lam[0]:g})",
        pair=source.pair,
        about=About.of(
            source,
            "softmax",
            Guarantee.HEURISTIC,
            loss.cell_counts.n,
            _warnings([best], loss, swaps),
        ),
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
    lam = _orders(order, "order")
    gamma = 1 - checks.confidence(confidence)
    found = list(sources(mechanism, pairs, rng=rng, sampling=sampling))
    if not found:
        raise InvalidInput("there is no pair to test: the iterator is empty")
    bounds = _bounds(found, lam, n, gamma, method, direction)
    return LowerBound(
        value=float(bounds.lower[0]),
        confidence=confidence,
        notion=f"Rényi ε({lam[0]:g})",
        guarantee=bounds.about.guarantee,
        pair=bounds.about.pair,
        estimates=tuple(bounds.estimates),
        about=replace(bounds.about, notes=(*bounds.about.notes, _NO_WITNESS)),
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

    All orders share the draws. With `simultaneous` the bounds hold at all orders at once (Bonferroni)
    and rise with the order, as the divergence does; without, they hold at each order on its own.
    """
    lam = _orders(orders)
    gamma = 1 - checks.confidence(confidence)
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    each = gamma / (lam.size if checks.flag("simultaneous", simultaneous) else 1)
    bounds = _bounds([source], lam, n, each, method, direction)
    lower = np.maximum.accumulate(bounds.lower) if simultaneous else bounds.lower
    return RenyiCurve(
        lam,
        np.maximum(bounds.values, lower),
        lower=lower,
        confidence=confidence,
        simultaneous=simultaneous,
        about=bounds.about,
    )


class Bounds(NamedTuple):
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
    if isinstance(method, Variational):
        return _variational_bounds(found, orders, n, gamma, method, swaps)
    if isinstance(method, Softmax):
        return _softmax_bounds(found, orders, n, gamma, method, swaps)
    raise InvalidInput(
        f"method must be dp.renyi.Softmax(…) or dp.renyi.Variational(…), got {checks.shown(method)}"
    )


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
    share = min(0.25, max(0.1, 25_000 / total)) if method.train is None else method.train
    budget = split(found[0], n, share, least=(10, 10))
    with CallProgress(budget.draws(len(found)), "learning") as bar:
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
    estimates = [float(values[0])] if len(found) == 1 else [c[3][0].estimate for c in candidates]
    notes = [f"loss: {loss.name}", *[BITS] * bits]
    if weak := [w.order for w in witnesses if w.effective < 100]:
        notes.append(
            f"{min(budget.test):,} draws are too few for {_named(weak)}: outputs with fewer than 100 of "
            "them on one input decide the value, or may. The estimate may be far too small, and the "
            "bound depends on n more than on the mechanism"
        )
    n_used = len(score_p), len(score_q)
    about = About.of(chosen, "variational", Guarantee.EXACT, n_used, notes)
    return Bounds(values, lower, estimates, about)


def _scores(loss: Score, p: Outputs, q: Outputs) -> tuple[FloatArray, FloatArray]:
    return loss.score(p), loss.score(q)


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
    best: Bounds | None = None
    estimates: list[float] = []
    draws = totals(found[0], n)
    with CallProgress(len(found) * max(draws)):
        for source in found:
            loss = _fitted(source, draws, method)
            rows = [_row(loss, method, swap, orders) for swap in swaps]
            points = np.array([[(point.value, point.error) for point in row] for row in rows])
            values, errors = points[..., 0], points[..., 1]
            bounds = np.where(np.isfinite(errors), values + ndtri(level) * errors, 0.0)
            values, lower = values.max(axis=0), bounds.max(axis=0)
            estimates.append(float(values[0]))
            if best is None or lower[0] > best.lower[0]:
                binding = [rows[k][j] for j, k in enumerate(bounds.argmax(axis=0))]
                notes = _warnings(binding, loss, swaps)
                about = About.of(source, "softmax", Guarantee.ASYMPTOTIC, loss.cell_counts.n, notes)
                best = Bounds(values, lower, estimates, about)
    assert best is not None
    return best._replace(lower=np.maximum(best.lower, 0.0))


@dataclass(frozen=True)
class Point:
    """The softmax-floored estimator at one order, with its standard error."""

    order: float
    value: float
    error: float
    floored: float  # the share of the integral where q is below five times the floor


def _fitted(source: Source, sizes: Sizes, method: Softmax) -> GridScore:
    """The densities of both inputs, undersmoothed."""
    density = KernelDensity.of(method.bandwidth)
    return GridScore.of(count_draws(source, sizes, density.least), density, inference=True)


def _row(loss: GridScore, method: Softmax, swapped: bool, orders: FloatArray) -> list[Point]:
    """D̂_λ = log ∫ p^λ q_τ^{1−λ} / (λ−1) and its standard error (eqs. 13–18), in log space."""
    n_p, n_q = loss.cell_counts.n[::-1] if swapped else loss.cell_counts.n
    parts = []
    for block in loss.blocks:
        p, q = (block.q, block.p) if swapped else (block.p, block.q)
        floor = method.floor if method.floor is not None else 20 * block.peak / n_q
        parts.append([p, q, *(np.full_like(p, x) for x in (floor, block.cell, block.kernel))])
    columns = np.concatenate(parts, axis=1)
    p, q, floor, cell, kernel = columns[:, columns[0] > 0]
    sharpness = method.sharpness if method.sharpness is not None else 1 / floor
    gap = sharpness * (q - floor)
    # q_τ = β⁻¹ log(e^{βq} + e^{βτ}) as max(q, τ) + β⁻¹ log(1 + e^{−β|q−τ|}); π = 1/(1 + e^{β(τ−q)})
    softened = np.maximum(q, floor) + np.log1p(np.exp(-np.abs(gap))) / sharpness
    with np.errstate(divide="ignore"):
        lp, lq, lf, cell, kernel = map(np.log, (p, q, softened, cell, kernel))
    log_pi, ratio, held = -np.logaddexp(0.0, -gap), lp - lf, q < 5 * floor

    def at(lam: float) -> Point:
        terms = lam * lp + (1 - lam) * lf + cell
        log_i = float(logsumexp(terms))
        if not np.isfinite(log_i):
            return Point(lam, 0.0 if log_i < 0 else math.inf, math.inf, 0.0)

        def relative(values: FloatArray, to: float) -> float:
            return float(np.exp(logsumexp(values) - to * log_i))

        with np.errstate(invalid="ignore", over="ignore"):
            floored = relative(terms[held], 1) if held.any() else 0.0
            # σ₁²/Î² and σ₂²/Î²: both halves of the delta method, relative to Î
            first = relative((2 * lam - 1) * ratio + lf + cell, 2) - 1.0
            weight = log_pi + lam * ratio + lq + cell
            second = relative(weight + log_pi + lam * ratio, 2) - relative(weight, 1) ** 2
            bias = 0.0
            if method.correct:
                # ½ f'' Var: E[p̂^λ q̂^{1−λ}] exceeds p^λ q^{1−λ} by λ(λ−1)/2 of the relative variances
                in_p = relative(terms - lp + kernel, 1) / n_p
                in_q = relative(terms - 2 * lf + 2 * log_pi + lq + kernel, 1) / n_q
                bias = lam * (lam - 1) / 2 * (in_p + in_q)
        variance = lam**2 * max(first, 0.0) / n_p + (lam - 1) ** 2 * max(second, 0.0) / n_q
        value = log_i + math.log1p(-min(bias, 0.5))
        return Point(lam, max(0.0, value / (lam - 1)), math.sqrt(variance) / (lam - 1), floored)

    return [at(float(lam)) for lam in orders]


def _warnings(points: Sequence[Point], loss: GridScore, swaps: tuple[bool, ...]) -> tuple[str, ...]:
    masses, n = loss.masses(one_sided=True), min(loss.cell_counts.n)
    alone = max(of_one_input(masses.swap() if swap else masses, n) for swap in swaps)
    notes = loss.notes
    if alone:
        notes = (
            f"outputs of probability {alone:.3g} on one input have hardly any draws on the other: if the "
            "other never produces them, the true value is ∞ at every order (the floor keeps the estimate "
            "finite)",
            *notes,
        )
    # the floor lowers D by about the share `floored`, whatever the order: at small D that is much of it;
    # at large orders the noise of rare outputs may raise it by more
    held = [p for p in points if p.floored > 0.1 * min(1.0, p.value)]
    if not held:
        return notes
    most = max(p.floored for p in held)
    return (
        f"the value at {_named(p.order for p in held)} may be {'far ' * (most > 0.5)}too small, or too "
        f"large: up to {most:.1%} of the integral comes from outputs too rare for a density "
        "estimate, where the floor lowers the value and noise raises it. If some outputs occur on one "
        "input only, the true value is ∞. Take more draws, or use "
        "dp.renyi.lower_bound(…, method=dp.renyi.Variational())",
        *notes,
    )


def _named(orders: Iterable[float]) -> str:
    """Orders in words."""
    names = [f"{order:g}" for order in sorted(set(orders))]
    return f"order{'s' * (len(names) > 1)} {', '.join(names)}"


def _orders(orders: npt.ArrayLike, name: str = "orders") -> FloatArray:
    """Sorted orders; "order" must be one."""
    array = checks.doubles(name, orders)
    if array.ndim and name == "order":
        raise InvalidInput(
            f"order must be one number above 1, got {checks.shown(orders)}; "
            "dp.renyi.curve(…, orders=[…]) bounds several orders at once"
        )
    array = np.atleast_1d(array)
    if array.ndim != 1 or array.size == 0 or not np.all((array > 1) & np.isfinite(array)):
        raise InvalidInput(
            f"a Rényi order must be a finite number above 1, got {checks.shown(orders)}; order 1 is "
            "Kullback–Leibler and ∞ is pure DP"
        )
    return np.sort(array)
