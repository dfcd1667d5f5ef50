"""`dp.estimate`: all notions of privacy of one pair, from one sample and one estimate of log p/q."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.learning.cross_fit import CrossFit, LogLoss, Scores, cells_suffice, select
from dpassay.learning.streaming import grid_loss, grid_over, score_edges, scores_over
from dpassay.loss.cell_counts import CellCounts, first_look, tally_of_levels
from dpassay.loss.grid import GridLoss
from dpassay.notions.pure import UNSEEN, careful_epsilon, unseen
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.privacy.finite_pairs import Masses
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.estimates import Profile
from dpassay.sampling.budget import totals
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.samples import Sizes, Source, one_source

#: Orders of the Rényi curve.
ORDERS = np.array([1.25, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32])
#: Cells of a learned score, before they are joined.
_CELLS = 200
#: Points of a curve that are kept: more than a chart can show.
_POINTS = 500
#: A Rényi divergence is supported by the draws if about this many of them, on the side that has fewer,
#: decide its integral, and if the log-ratios without a cap would not make it larger by this factor.
_DECIDE, _UNCAPPED = 20, 1.2
#: Draws that show that an event is no accident.
_SEEN = 50


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
    look, rest = first_look(totals(source, n, least=20))
    batch = source.deal(look)
    learner = CrossFit(batch, loss, source.rng, thorough=max(rest) > 0)
    if not max(rest):
        return profile_of(source, learner)
    if _is_on_cells(learner):
        made = grid_over(source, learner, rest)
        return _profile(source, learner, made, made.tally.n, f"{made.name} loss")
    if min(rest) < max(look):  # too few to count by themselves: every draw is scored by the others
        return profile_of(source, CrossFit(batch.with_more(source.deal(rest)), loss, source.rng))
    index, scores = _score(learner)
    fitted = learner.fitted(index)
    counts = scores_over(source, fitted, score_edges(scores, _CELLS), rest)
    return _of_scores(source, learner, fitted.name, counts, look)


def profile_of(source: Source, learner: CrossFit) -> Profile:
    """Every notion from the draws a learner has: by a loss on cells, or by a classifier's scores."""
    if _is_on_cells(learner):
        made = grid_loss(learner)
        return _profile(source, learner, made, made.tally.n, f"{made.name} loss")
    index, scores = _score(learner)
    edges = score_edges(scores, _CELLS)
    cells = [np.searchsorted(edges, side, side="right") for side in scores]
    counts = np.array([np.bincount(cell, minlength=edges.size + 1) for cell in cells])
    return _of_scores(source, learner, learner.fitted(index).name, counts, (0, 0))


def _of_scores(
    source: Source, learner: CrossFit, name: str, counts: IntArray, others: Sizes
) -> Profile:
    """From counts of a score in cells, a row a side; `others` are draws that are not among them."""
    n_p, n_q = counts.sum(axis=1).tolist()
    said = f"all curves are those of one learned score ({name}), on draws that it was not fitted to"
    made, n = GridLoss.of(_tally_of_scores(counts)), (n_p + others[0], n_q + others[1])
    return _profile(source, learner, made, n, f"{name} score", (said,))


def _profile(
    source: Source,
    learner: CrossFit,
    grid: GridLoss,
    n: Sizes,
    name: str,
    notes: tuple[str, ...] = (),
) -> Profile:
    """All notions of an estimated loss with the probabilities of its cells."""
    masses = grid.masses()
    epsilon = careful_epsilon(grid)
    eps = _epsilons(masses, epsilon, min(grid.tally.n))
    finite = _capped(masses, epsilon)
    reach, rare = _support(masses, finite, epsilon, min(grid.tally.n))
    curve = _thinned(masses.tradeoff_curve())
    both = curve.symmetrise()
    bits = "an audit also tests the floating-point representation"  # which may leak
    left_out = [f"these are estimates for the values; {bits}"] if learner.families[1] else []
    said = *notes, *rare, *_larger_losses(masses, epsilon, n), *left_out
    about = About.of(source, f"plug-in of the {name}", Guarantee.HEURISTIC, n, said)
    about = replace(about, files=source.files)
    delta = np.maximum(masses.delta(eps), masses.swap().delta(eps))
    return Profile(
        epsilon=epsilon,
        mu=both.fit_gdp(),
        spectrum=Spectrum(eps, delta, about=about),
        renyi_curve=RenyiCurve(
            ORDERS, np.maximum(finite.renyi(ORDERS), finite.swap().renyi(ORDERS)), about=about
        ),
        tradeoff_curve=TradeoffCurve(both.x, both.y, about=about),
        loss=grid.curve(),
        pair=source.pair,
        renyi_reach=reach,
        about=about,
    )


def _larger_losses(masses: Masses, epsilon: float, n: Sizes) -> tuple[str, ...]:
    """A note where δ is clearly above 0 far beyond the estimate of ε."""
    far = np.array([2 * epsilon])
    delta = max(float(one.delta(far)[0]) for one in (masses, masses.swap()))
    if not math.isfinite(epsilon) or not epsilon or delta * min(n) < _SEEN:
        return ()
    said = (
        f"δ({2 * epsilon:.3g}) ≈ {delta:.2g} is not 0: outputs that are rare on one input have a "
    )
    return (f"{said}larger loss than ε ≈ {epsilon:.3g}, which is that of outputs seen on both",)


def _epsilons(masses: Masses, epsilon: float, n: int) -> FloatArray:
    """The grid of δ(ε): to a little beyond ε, and on to where δ is less than half a draw, if near."""
    top = max(1.0, min(epsilon, 20.0)) if math.isfinite(epsilon) else 10.0
    inside, beyond = np.linspace(0.0, 1.1 * top, 111), np.linspace(1.1 * top, 1.6 * top, 51)
    delta = np.maximum(masses.delta(beyond), masses.swap().delta(beyond))
    return np.concatenate([inside, beyond[1 : np.count_nonzero(delta > 0.5 / n) + 1]])


def _support(
    masses: Masses, finite: Masses, epsilon: float, n: int
) -> tuple[float, tuple[str, ...]]:
    """The largest order that the draws support, and a note on outputs that are too rare for them."""
    if not math.isfinite(epsilon):
        return math.inf, ()
    doubtful = np.zeros(ORDERS.size, dtype=bool)
    for raw, pair in ((masses, finite), (masses.swap(), finite.swap())):
        logs = np.log(pair.p) + (ORDERS[:, None] - 1) * pair.loss
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        # Σ w²/(n q) is the part of the integral's relative variance that the draws of a side bring about
        few = np.sum(weight**2 / (n * np.minimum(pair.p, pair.q)), axis=1) > 1 / _DECIDE
        whole, held = np.asarray(raw.renyi(ORDERS)), np.asarray(pair.renyi(ORDERS))
        doubtful |= few | (np.isfinite(whole) & (whole > _UNCAPPED * held + 0.01))
    beyond, reach = ORDERS[doubtful], math.inf
    if beyond.size:
        reach = float(ORDERS[beyond[0] > ORDERS].max(initial=1.0))
    if not beyond.size and not unseen(masses, epsilon, n):
        return reach, ()
    orders = f" and Rényi ε at orders of {beyond[0]:g} and more" if beyond.size else ""
    said = f"Values of δ(ε) below {1 / n:.1g}{orders} may be larger, too"
    return reach, (f"{UNSEEN.format(n=n)}. {said}",)


def _is_on_cells(learner: CrossFit) -> bool:
    """Whether a loss on cells tells all: characters and features, where there are any, tell more."""
    return bool(learner.on_cells) and not _by_parts(learner) and cells_suffice(learner)


def _by_parts(learner: CrossFit) -> bool:
    """Whether characters of text, or features of collections, tell the inputs apart.

    Also a single column, where it tells them apart better than cells over all columns.
    """

    def apart(*names: str) -> list[float]:
        scores = (learner.scores(k) for k, name in enumerate(learner.names) if name in names)
        return [_Distance().judge(one) for one in scores if one is not None]

    if apart("letters", "features"):
        return True
    least = 2 / math.sqrt(min(learner.batch.sizes))
    return any(one > least + max(apart(*learner.on_cells), default=0.0) for one in apart("feature"))


def _score(learner: CrossFit) -> tuple[int, Scores]:
    """The candidate whose scores are best, and its scores of draws it was not fitted to."""
    # tables of characters order the words, but their sum is no log-ratio
    values = learner.families[0]
    if _by_parts(learner):
        index, _ = select(learner, _Distance(), values)
    else:
        index, _ = select(learner, LogLoss(), values)
    scores = learner.scores(index)
    assert scores is not None
    return index, scores


class _Distance:
    """Prefers the scores with the most different distributions (Kolmogorov & Smirnov)."""

    def judge(self, scores: Scores, parametric: bool = False) -> float:
        """The largest distance of the two empirical distribution functions."""
        p, q = (np.sort(side) for side in scores)
        both = np.concatenate([p, q])
        ranks = [np.searchsorted(side, both, side="right") / side.size for side in (p, q)]
        return float(np.max(np.abs(ranks[0] - ranks[1])))

    def beats(self, new: float, best: float) -> bool:
        return new > best


def _tally_of_scores(counts: IntArray) -> CellCounts:
    """Counts of scores in cells, a row a side, with cells joined until the odds rise with the score.

    What is left is the concave hull of the ROC curve on these cells.
    """
    from sklearn.isotonic import isotonic_regression

    a, b = counts / counts.sum(axis=1, keepdims=True)
    weight = a + b
    share = np.divide(a, weight, out=np.full(a.size, 0.5), where=weight > 0)
    rising = isotonic_regression(share, sample_weight=np.maximum(weight, 1e-12))
    levels, joined = np.unique(rising, return_inverse=True)
    sides = [np.bincount(joined, weights=side, minlength=levels.size) for side in counts]
    return tally_of_levels(levels, np.array(sides).round().astype(np.int64))


def _capped(masses: Masses, epsilon: float) -> Masses:
    """The pair with log-ratios capped at ε: moments of the tails would be noise."""
    if not math.isfinite(epsilon):
        return masses
    loss = np.clip(masses.loss, -epsilon, epsilon)
    both = masses.p + masses.q
    share = 1 / (1 + np.exp(-loss))
    p, q = both * share, both * (1 - share)
    return Masses(p / p.sum(), q / q.sum())


def _thinned(curve: TradeoffCurve) -> TradeoffCurve:
    """A convex curve with at most `_POINTS` knots: chords, never below it."""
    if curve.x.size <= _POINTS:
        return curve
    arc = np.cumsum(np.abs(np.diff(curve.x)) + np.abs(np.diff(curve.y)))
    arc = np.concatenate([[0.0], arc])
    ends = np.geomspace(1e-9, 0.01, 40)  # rare events, which δ at a large ε is read off
    at = np.concatenate([np.linspace(0, arc[-1], _POINTS), ends, arc[-1] - ends])
    keep = np.unique(np.searchsorted(arc, at).clip(0, arc.size - 1))
    return TradeoffCurve(curve.x[keep], curve.y[keep])
