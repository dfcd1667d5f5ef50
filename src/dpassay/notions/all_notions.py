"""`dp.estimate`: all notions of privacy of one pair, from one sample and one estimate of log p/q."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtri, softmax

from dpassay._typing import BoolArray, FloatArray, IntArray
from dpassay.learning.cross_fit import (
    COMPARED,
    ON_CELLS,
    CrossFit,
    LogLoss,
    Scores,
    first_draws,
    select,
)
from dpassay.learning.separation import ks_distance
from dpassay.learning.streaming import (
    cells_serve,
    counts_between,
    grid_loss,
    grid_over,
    score_edges,
    scores_over,
    tail_edges,
)
from dpassay.notions.pure import (
    QUADRATIC,
    UNSEEN,
    above_zero,
    careful_epsilon,
    of_one_input,
    too_large,
    unseen,
)
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.estimates import Profile
from dpassay.sampling.budget import totals
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.identity import same_inputs
from dpassay.sampling.samples import Sizes, Source, one_source
from dpassay.scores.cell_counts import counts_of_levels, first_look
from dpassay.scores.grid import GridScore, coarse_grid

#: Orders of the Rényi curve.
ORDERS = np.array([1.25, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32])
#: Losses that smooth over neighbouring numbers.
_SMOOTHING = (*ON_CELLS, "ranks", "dyadic", "knn")
#: Cells of a learned score, before they are joined.
_CELLS = 200
#: Points of a curve that are kept: more than a chart can show.
_POINTS = 500
#: A Rényi divergence is supported by the draws if at least so many of them, on the side that has fewer,
#: decide its integral, and if the log-ratios without a cap would not make it larger by this factor.
_DECIDE, _UNCAPPED = 50, 1.2
#: Its relative error is then at most this; draws that estimate the tail index of p/q; its largest value.
_ACCURACY, _TAIL, _TAIL_INDEX = 0.15, 50, 0.7
#: Draws that show that an event is no accident, and those from which on an error rate is estimated.
_SEEN, _RARE = 50, 20
#: How many times e^ε draws of one side beyond all draws of the other are no accident.
_BEYOND = 5
#: μ is read off where it is largest less so many standard errors: events chosen on the draws that count
#: them, as those of densities are, look better by three and more.
_CLEARLY = 4.0


def estimate(
    mechanism: Any,
    pair: Any = None,
    *,
    n: int | None = None,
    loss: Any = "auto",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Profile:
    """Every notion of one pair from one sample and one loss: ε, δ(ε), Rényi, trade-off, μ.

    Estimates, not bounds: nothing here is certified. See `audit` for that.

    Memory does not grow with n. The first 2¹⁷ draws a side decide which outputs are distinguished, the
    grid for their numbers, and what a classifier learns; all others are counted as they come and not
    kept. So an output unlike any of the first is "any other output", and with more than twice as many
    draws the curves of a classifier's score are computed from the others alone.

    >>> import dpassay as dp
    >>> profile = dp.estimate(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=50_000, rng=0)
    >>> abs(profile.mu - 1.0) < 0.03, abs(profile.delta(1.0) - 0.1269) < 0.01
    (True, True)
    """
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    first, rest = first_look(totals(source, n, least=20))
    learner = CrossFit(source.deal(first), loss, source.rng, thorough=max(rest) > 0)
    return profile_of(source, learner, rest)


def profile_of(source: Source, learner: CrossFit, rest: Sizes = (0, 0)) -> Profile:
    """Every notion from the draws a learner has and the `rest`, which is counted as it comes."""
    learner = _smoothed(learner)
    by_parts = _by_parts(learner)
    if not by_parts and cells_serve(learner):
        grid = grid_over(source, learner, rest) if max(rest) else grid_loss(learner)
        return _profile(source, learner, grid, grid.cell_counts.n, f"{grid.name} loss", grid.coarse)
    first = learner.batch.sizes
    if max(rest) > 0 and min(rest) < max(first):  # too few to count by themselves
        batch = learner.batch.with_more(source.deal(rest))
        return profile_of(source, learner.on(batch))
    # tables of characters order the words, but their sum is no log-ratio
    values = learner.families[0]
    criterion: Any = _Distance() if by_parts else LogLoss()
    index = select(learner, criterion, values)[0]
    scores = learner.scores(index)
    assert scores is not None
    fitted, edges = learner.fitted(index), score_edges(scores, _CELLS)
    finer = np.union1d(edges, tail_edges(scores, sum(first) / _CELLS))
    if max(rest):
        counts = scores_over(source, fitted, finer, rest)
    else:
        counts, first = counts_between(finer, scores), (0, 0)
    starts = np.append(0, np.searchsorted(finer, edges) + 1)
    grid = _joined(np.add.reduceat(counts, starts, axis=1))
    others = (_joined(counts), *_half(learner, learner.names[index]))
    n = grid.cell_counts.n[0] + first[0], grid.cell_counts.n[1] + first[1]
    name = fitted.name
    note = f"all curves are those of one learned score ({name}), on draws that it was not fitted to"
    part = f"the {name} score (share of the first input)"
    notes = (note, *coarse_grid(fitted))
    found = _profile(source, learner, grid, n, f"{name} score", notes, others)
    return replace(found, loss=replace(grid.curve(), part=part))


def _smoothed(learner: CrossFit) -> CrossFit:
    """The learner; where values lie on a grid, such as cents, one that takes them as numbers if better.

    Frequencies of many values with few draws each are noise; densities borrow from the values around.
    Held-back draws say which of the two predicts better, unless a loss that smooths was asked for.
    """
    if learner.smooth or not learner.training.layout.many_values:
        return learner
    other = learner.on(learner.batch, smooth=True)
    if not other.training.layout.widest:
        return learner
    if isinstance(learner.loss, str) and learner.loss in _SMOOTHING:
        return other
    losses = []
    for one in (learner, other):
        if max(one.batch.sizes) > COMPARED:
            one = one.on(first_draws(one.batch))
        found = [one.scores(one.names.index(name)) for name in one.on_cells]
        means = [float(LogLoss().judge(scores).mean()) for scores in found if scores is not None]
        losses.append(min(means, default=math.inf))
    return other if losses[1] < losses[0] else learner


def _by_parts(learner: CrossFit) -> bool:
    """Whether characters of text, or features of collections, tell the inputs apart.

    Also a single column, where it tells them apart better than cells over all columns.
    """

    def distances(*names: str) -> list[float]:
        scores = (learner.scores(k) for k, name in enumerate(learner.names) if name in names)
        return [ks_distance(*one) for one in scores if one is not None]

    if distances("characters", "features"):
        return True
    least = 2 / math.sqrt(min(learner.batch.sizes))
    least += max(distances(*learner.on_cells), default=0.0)
    return any(one > least for one in distances("feature"))


def _half(learner: CrossFit, name: Any) -> tuple[GridScore, ...]:
    """The pair by a score that was fitted to half as many draws, which shows what few draws lose."""
    half = CrossFit(learner.batch.split(0.5)[0], name, learner.rng, smooth=learner.smooth)
    try:
        scores = half.scores(0)
    except Exception:  # a classifier of the caller's
        scores = None
    if scores is None:  # nothing to compare with
        scores = np.zeros(1), np.zeros(1)
    return (_joined(counts_between(score_edges(scores, _CELLS), scores)),)


class _Distance:
    """Prefers the scores with the most different distributions (Kolmogorov & Smirnov)."""

    def judge(self, scores: Scores, parametric: bool = False) -> float:
        return ks_distance(*scores)

    def beats(self, new: float, best: float) -> bool:
        return new > best


def _joined(counts: IntArray) -> GridScore:
    """A loss by counts of scores in cells, a row a side, joined until the odds rise with the score.

    What is left is the concave hull of the ROC curve on these cells.
    """
    from sklearn.isotonic import isotonic_regression

    a, b = counts / counts.sum(axis=1, keepdims=True)
    weight = a + b
    share = np.divide(a, weight, out=np.full(a.size, 0.5), where=weight > 0)
    rising = isotonic_regression(share, sample_weight=np.maximum(weight, 1e-12))
    levels, joined = np.unique(rising, return_inverse=True)
    sides = [np.bincount(joined, weights=side, minlength=levels.size) for side in counts]
    return GridScore.of(counts_of_levels(levels, np.array(sides).round().astype(np.int64)))


def _profile(
    source: Source,
    learner: CrossFit,
    grid: GridScore,
    n: Sizes,
    name: str,
    notes: tuple[str, ...] = (),
    others: tuple[GridScore, ...] = (),
) -> Profile:
    """All notions of an estimated loss with the probabilities of its cells."""
    masses, least = grid.masses(), min(grid.cell_counts.n)
    epsilon = careful_epsilon(grid, held_out=not others)  # cells of a learned score are joined
    eps, alone = _epsilons(masses, epsilon, least)
    exclusive, capped = _exclusive(masses, least), _capped(masses, epsilon)
    if grid.name == "polynomial":
        others = (*others, GridScore.of(grid.cell_counts))
    compared = [_bounded(one) for one in (grid, *others)]
    larger = _larger_losses(masses, epsilon, n)
    reach, rare = _support(masses, capped, epsilon, least, compared)
    if larger:  # which decide moments of the loss
        reach = 1.0
    both = _thinned(masses.tradeoff_curve()).symmetrise()
    if source.pair is not None and same_inputs(source.pair):
        notes += ("the two inputs are equal: the true ε is 0, and the estimates are noise",)
    else:
        if rare:
            rare = (*rare, too_large(learner.training.layout.widest))
        more = _unreliable(reach) if alone else (*rare, *larger, *_unreliable(reach) * bool(larger))
        notes += (*alone, *more)
        if not exclusive and _exclusive(grid.masses(one_sided=True), least):
            notes += (
                "μ is not reliable: some outputs have hardly any draws on one input, and if it never "
                "produces them, the true μ is ∞",
            )
    if learner.families[1]:
        notes += (
            "these are estimates for the values; an audit also tests the floating-point representation",
        )
    if grid.name == "polynomial":
        notes += (QUADRATIC,)
    about = About.of(source, f"plug-in of the {name}", Guarantee.HEURISTIC, n, notes)
    about = replace(about, files=source.files)
    return Profile(
        epsilon=epsilon,
        mu=math.inf if exclusive else _mu(both, least),
        spectrum=Spectrum(eps, _delta(masses, eps), about=about),
        renyi_curve=RenyiCurve(ORDERS, _renyi(capped), about=about),
        tradeoff_curve=TradeoffCurve(both.x, both.y, about=about),
        loss=grid.curve(),
        pair=source.pair,
        renyi_reach=reach,
        about=about,
    )


def _delta(masses: Masses, eps: FloatArray) -> FloatArray:
    """δ(ε) in the worse direction."""
    return np.asarray(np.maximum(masses.delta(eps), masses.swap().delta(eps)))


def _exclusive(masses: Masses, n: int) -> bool:
    """Whether outputs came on one input alone, beyond chance: no Gaussian curve has those."""
    return max(of_one_input(masses, n), of_one_input(masses.swap(), n)) > 0


def _larger_losses(masses: Masses, epsilon: float, n: Sizes) -> tuple[str, ...]:
    """A note where δ is clearly above 0 far beyond the estimate of ε.

    Where the ratio is e^ε, about e^ε draws of one side lie beyond the last draw of the other.
    """
    if not math.isfinite(epsilon) or not epsilon:
        return ()
    delta = float(_delta(masses, np.array([2 * epsilon]))[0])
    if delta * min(n) < max(_SEEN, _BEYOND * math.exp(epsilon)):
        return ()
    return (
        f"ε ≈ {epsilon:.3g} is estimated from outputs that are frequent on both inputs. Outputs that are "
        f"rare on one of them may have a larger privacy loss: δ({2 * epsilon:.3g}) ≈ {delta:.2g}, "
        f"about {delta * min(n):.0f} of {min(n):,} draws, which is more than the noise of counts",
    )


def _epsilons(masses: Masses, epsilon: float, n: int) -> tuple[FloatArray, tuple[str, ...]]:
    """The grid of δ(ε): to a little beyond ε, and on to where δ is less than half a draw, if near.

    Of outputs that came on one input alone the draws tell δ up to some ε: a probability of 3/n on the
    other input would hardly have shown (the rule of three). There the grid ends, with a note.
    """
    top = max(1.0, min(epsilon, 20.0)) if math.isfinite(epsilon) else 10.0
    inside, beyond = np.linspace(0.0, 1.1 * top, 111), np.linspace(1.1 * top, 1.6 * top, 51)
    above = np.count_nonzero(_delta(masses, beyond) > 0.5 / n)
    eps = np.concatenate([inside, beyond[1 : above + 1]])
    alone = max(of_one_input(masses, n), of_one_input(masses.swap(), n))
    if not alone or (last := math.log(alone * n / 3)) >= eps[-1]:
        return eps, ()
    said = (
        f"outputs that came on one input alone have probability {alone:.3g}: if the other input never "
        f"produces them, δ(ε) is at least that for every ε, and the true ε is ∞. These draws estimate δ "
        f"up to ε = {last:.3g}"
    )
    return np.append(eps[eps < last], last), (said,)


def _support(
    masses: Masses, capped: Masses, epsilon: float, n: int, others: Sequence[Masses] = ()
) -> tuple[float, tuple[str, ...]]:
    """The largest order that the draws support, and a note on what they do not.

    `others` are the pair as estimated in other ways, which must agree where an order is supported.
    """
    if not math.isfinite(epsilon):
        return 1.0, ()
    rare, noisy = np.zeros((2, ORDERS.size), dtype=bool)
    for raw, pair in ((masses, capped), (masses.swap(), capped.swap())):
        held, whole = np.asarray(pair.renyi(ORDERS)), np.asarray(raw.renyi(ORDERS))
        rare |= _undersampled(pair, n) | (np.isfinite(whole) & (whole > _UNCAPPED * held + 0.01))
        noisy |= 2 * _renyi_error(pair, n) > _ACCURACY * held
    found = _renyi(capped)
    for pair in others:
        if not np.isfinite(pair.loss).all():
            noisy[:] = True
            continue
        rare |= _undersampled(pair, n) | _undersampled(pair.swap(), n)
        noisy |= np.abs(_renyi(pair) - found) > _ACCURACY * found
    doubtful = rare | noisy
    reach, orders = math.inf, ""
    if doubtful.any():
        first = ORDERS[doubtful][0]
        reach = float(ORDERS[first > ORDERS].max(initial=1.0))
        orders = f" and Rényi ε at orders of {first:g} and more"
    if not rare.any() and not unseen(masses, epsilon, n):
        return reach, _unreliable(reach)
    return reach, (
        f"{UNSEEN.format(n=n)}. μ and Rényi ε may be larger, too, if such outputs tell more",
        f"values of δ(ε) below {1 / n:.1g}{orders} are not reliable with these draws: they may be much "
        "larger",
        above_zero(n),
    )


def _unreliable(reach: float) -> tuple[str, ...]:
    """A note on the orders beyond a reach."""
    return tuple(
        f"Rényi ε at orders of {first:g} and more is not reliable with these draws: its error may "
        "exceed 15 %"
        for first in ORDERS[reach < ORDERS][:1]
    )


def _renyi(masses: Masses) -> FloatArray:
    """The Rényi curve in the worse direction."""
    return np.asarray(np.maximum(masses.renyi(ORDERS), masses.swap().renyi(ORDERS)))


def _weights(pair: Masses) -> FloatArray:
    """The share of each cell in the integral Σ p^λ q^{1−λ}, a row an order."""
    return np.asarray(softmax(np.log(pair.p) + (ORDERS[:, None] - 1) * pair.loss, axis=1))


def _renyi_error(pair: Masses, n: int) -> FloatArray:
    """The standard error of the Rényi divergence of frequencies, by the delta method."""
    weight = _weights(pair)
    first, second = (np.sum(weight**2 / side, axis=1) - 1 for side in (pair.p, pair.q))
    variance = ORDERS**2 * first + (ORDERS - 1) ** 2 * second
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) / n) / (ORDERS - 1))


def _undersampled(pair: Masses, n: int) -> BoolArray:
    """Orders at which too few draws decide, or at which outputs rarer than those seen may decide.

    Σ w²/(n q) is the part of the integral's relative variance that the draws of a side bring about. The
    mean excess of the loss beyond that of the `_TAIL`-th draw is Hill's estimate of the tail index of
    p/q: (p/q)^λ has no reliable mean where λ times it is large (Pareto-k̂; Vehtari et al. 2024).
    """
    few = np.sum(_weights(pair) ** 2 / (n * np.minimum(pair.p, pair.q)), axis=1) > 1 / _DECIDE
    order = np.argsort(-pair.loss, kind="stable")
    loss, q = pair.loss[order], pair.q[order]
    above = slice(0, int(np.searchsorted(np.cumsum(q), _TAIL / n)) + 1)
    excess = np.average(loss[above], weights=q[above]) - loss[above][-1]
    return np.asarray(few | (ORDERS * excess > _TAIL_INDEX))


def _capped(masses: Masses, epsilon: float) -> Masses:
    """The pair with log-ratios capped at ε: moments of the tails would be noise."""
    if not math.isfinite(epsilon):
        return masses
    loss = np.clip(masses.loss, -epsilon, epsilon)
    both = masses.p + masses.q
    p, q = both * expit(loss), both * expit(-loss)
    return Masses(p / p.sum(), q / q.sum())


def _bounded(grid: GridScore) -> Masses:
    """A pair with finite log-ratios: densities are capped, frequencies are at least half a draw."""
    masses, least = grid.masses(), 0.5 / min(grid.cell_counts.n)
    if any(block.axes for block in grid.blocks):
        return _capped(masses, careful_epsilon(grid))
    p, q = np.maximum(masses.p, least), np.maximum(masses.q, least)
    return Masses(p / p.sum(), q / q.sum())


def _mu(curve: TradeoffCurve, n: int) -> float:
    """The smallest μ of a Gaussian trade-off curve that the estimate does not clearly fall below.

    At rare events the estimate is noise: errors of both kinds have at least `_RARE` draws. The largest of
    many noisy numbers is too large: the one that is largest less some standard errors is taken.
    """
    rare = min(_RARE / n, 0.25)
    alpha = np.unique(np.append(curve.x, np.geomspace(rare, 0.5, 200)))
    beta = np.asarray(curve(alpha))
    seen = (alpha >= rare) & (beta >= rare)
    if not seen.any():
        return curve.fit_gdp()
    rates = np.array([alpha[seen], beta[seen]])
    z = ndtri(rates)
    # the variance of Φ⁻¹ of a rate r of n draws is 2π e^{z²} r(1 − r)/n
    error = np.sqrt(np.sum(2 * np.pi * np.exp(z**2) * rates * (1 - rates), axis=0) / n)
    mu = -z.sum(axis=0)
    return max(0.0, float(mu[np.argmax(mu - _CLEARLY * error)]))


def _thinned(curve: TradeoffCurve) -> TradeoffCurve:
    """A convex curve with at most `_POINTS` knots: chords, never below it."""
    if curve.x.size <= _POINTS:
        return curve
    arc = np.append(0.0, np.cumsum(np.abs(np.diff(curve.x)) + np.abs(np.diff(curve.y))))
    ends = np.geomspace(1e-9, 0.01, 40)  # rare events, which δ at a large ε is read off
    at = np.concatenate([np.linspace(0, arc[-1], _POINTS), ends, arc[-1] - ends])
    long = np.flatnonzero(np.diff(arc) > arc[-1] / _POINTS)  # corners stay
    keep = np.unique(np.append(np.searchsorted(arc, at).clip(0, arc.size - 1), [long, long + 1]))
    return TradeoffCurve(curve.x[keep], curve.y[keep])
