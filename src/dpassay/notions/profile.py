"""Every notion of one pair, read off one sample and one loss, so that they agree with each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay._typing import FloatArray
from dpassay.loss.fit import fit, likeliest, tried
from dpassay.loss.grid import GridLoss, Plan, stiffest
from dpassay.notions.pure import careful_epsilon
from dpassay.privacy.about import About, Guarantee
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.privacy.masses import Masses
from dpassay.results import Profile
from dpassay.sampling.outputs import Outputs, from_raw
from dpassay.sampling.samples import Samples, Source

#: Orders of the Rényi curve.
ORDERS = np.array([1.25, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32])
#: Points of curves that are kept: more than a chart can show.
_POINTS = 500


def profile_of(source: Source, samples: Samples, loss: Any = "auto") -> Profile:
    """Estimate every notion from the draws in `samples`."""
    samples.rewind()
    grid, name, notes = _grid_loss(source, samples, loss)
    masses = grid.masses()
    epsilon = careful_epsilon(grid)
    top = max(1.0, min(epsilon, 20.0)) if math.isfinite(epsilon) else 10.0
    eps = np.linspace(0.0, 1.1 * top, 111)
    curve = _thinned(masses.tradeoff_curve())
    both = curve.symmetrise()
    about = About(
        method=f"plug-in of the {name} loss",
        guarantee=Guarantee.HEURISTIC,
        n=grid.tally.n,
        seed=source.seed,
        pair=source.pair,
        notes=(*notes, *source.notes),
    )
    delta = np.maximum(masses.delta(eps), masses.swap().delta(eps))
    finite = _capped(masses, epsilon)
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
        about=about,
    )


def _grid_loss(
    source: Source, samples: Samples, loss: Any
) -> tuple[GridLoss, str, tuple[str, ...]]:
    """A loss with masses: directly for few coordinates, else of a classifier's scores."""
    p, q = samples.p, samples.q
    names = tried(loss, p, q)
    grids = [name for name in names if name in ("kde", "polynomial")]
    if grids:
        half, rest = samples.share(0.5), samples.take()
        samples.rewind()
        name = grids[0]
        whole = Plan.learn(p, q)
        if len(grids) > 1:
            first = whole.plan.tally(half.p, half.q)
            name = stiffest(first, whole.plan.tally(rest.p, rest.q))
        made = GridLoss.named(name, whole)
        return made, made.name, ()
    half, rest = samples.share(0.5), samples.take()
    samples.rewind()
    name = likeliest(names, half.share(0.7), half.take(), rng=source.rng)
    half.rewind()
    there = fit(name, half.p, half.q, rng=source.rng(len(names)))
    scores = there.score(rest.p), there.score(rest.q)
    tally = Plan.learn(*(_as_outputs(s) for s in scores))
    note = (
        "outputs have too many coordinates for densities: all curves are those of a learned score"
    )
    return GridLoss.of(tally), f"{there.name} score", (note,)


def _as_outputs(scores: FloatArray) -> Outputs:
    return from_raw(scores, scores.size)


def _capped(masses: Masses, epsilon: float) -> Masses:
    """The pair with log-ratios held to what the draws support: moments of tails would be noise."""
    if not math.isfinite(epsilon):
        return masses
    loss = np.clip(masses.loss, -epsilon, epsilon)
    both = masses.p + masses.q
    share = 1 / (1 + np.exp(-loss))
    p, q = both * share, both * (1 - share)
    return Masses(p / p.sum(), q / q.sum())


def _thinned(curve: TradeoffCurve) -> TradeoffCurve:
    """At most a few hundred knots of a convex curve: chords, never below it."""
    if curve.x.size <= _POINTS:
        return curve
    arc = np.cumsum(np.abs(np.diff(curve.x)) + np.abs(np.diff(curve.y)))
    arc = np.concatenate([[0.0], arc])
    keep = np.unique(np.searchsorted(arc, np.linspace(0, arc[-1], _POINTS)).clip(0, arc.size - 1))
    keep = np.unique(np.concatenate([[0], keep, [arc.size - 1]]))
    return TradeoffCurve(curve.x[keep], curve.y[keep])
