"""f-DP: trade-off curves, points with their confidence regions, and the auditor.

After Askin, Dette, Dunsche, Kutta, Lu, Wei & Zikas (arXiv:2502.07066).

The curve T(α) is the smallest type-II error of a test of the second input (the null hypothesis)
against the first with type-I error α: α = Q(E), β = 1 − P(E). By Neyman and Pearson it is the ROC of
the privacy loss. `estimate` (PLRT, Algorithm 3) computes it from estimated densities; `point` (BayBox,
Algorithm 1) counts, on held-out draws, how often a fitted loss exceeds a threshold; `audit`
(Algorithm 2) finds the largest gap to a claimed curve and tests there with fresh draws.

Held-out counts of a fixed test are binomial whatever the test is, so the regions and the audit hold
for every sample size; a poor loss costs power. Only the estimate has no error statement of its own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.bounds import joint_test as joint
from dpassay.bounds import power
from dpassay.bounds.ordering import Counts
from dpassay.errors import InvalidInput, NotApplicable
from dpassay.learning.cross_fit import CrossFit, LogLoss, select
from dpassay.learning.streaming import cells_serve
from dpassay.outputs.events import Event, of_scores
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.curve_arrays import lower_hull
from dpassay.privacy.curves import TradeoffBand, TradeoffCurve
from dpassay.privacy.provenance import UNCERTIFIED, About, Guarantee
from dpassay.results.blindness import why_blind
from dpassay.results.estimates import TradeoffPoint
from dpassay.results.verdict import Verdict
from dpassay.results.witness import Witness
from dpassay.rootfinding import bisect
from dpassay.sampling.budget import split, three_stages, totals
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Batch, Source, one_source
from dpassay.scores.cell_counts import Smoothing, count_draws, counts_of
from dpassay.scores.fit import Score, fit
from dpassay.scores.grid import GridScore, coarse_grid
from dpassay.scores.kernel_density import KernelDensity
from dpassay.scores.training import Training

__all__ = ["audit", "estimate", "point"]

Points: TypeAlias = tuple[FloatArray, FloatArray]
Box = Literal["joint", "clopper-pearson", "hoeffding"]
_REGIONS = {
    "joint": joint.joint_region,
    "clopper-pearson": joint.clopper_pearson_box,
    "hoeffding": joint.hoeffding_box,
}


def estimate(
    mechanism: Any,
    pair: Any = None,
    *,
    n: int | None = None,
    perturbation: float = 0.0,
    thresholds: npt.ArrayLike | None = None,
    bandwidth: str | float | KernelDensity = "sj",
    loss: Any = None,
    confidence: float | None = 0.95,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> TradeoffCurve:
    """Estimate the trade-off curve of a pair (PLRT).

    `n` is draws per side. All ratios p̂/q̂ serve as thresholds, which is the exact Neyman–Pearson
    curve of the estimated pair; `thresholds` restricts them, and `perturbation` h averages each over
    [η − h/2, η + h/2], as the paper does to avoid level sets (harmless: it moves T by about .001).
    `bandwidth` is that of the kernel densities, as in `dpassay.pure.estimate`.

    Kernel densities on a grid serve outputs of up to three numbers. For more, `loss` is what estimates
    p/q: any density estimator with `fit` and `score_samples` (scikit-learn's `KernelDensity`, a
    normalising flow), any classifier, "knn" or another loss by name. Half of the draws fit it, and the
    curve is that of its values on the other half.

    With a `confidence` the curve carries a band for all α at once: half of the draws fit a loss, the
    two empirical distributions of that loss on the other half are each within Massart's distance
    of the truth. Its upper edge bounds T from above; its lower edge bounds the curve of the loss that
    was fitted, which T may lie below.

    >>> import dpassay as dp
    >>> curve = dp.tradeoff.estimate(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=100_000, rng=0)
    >>> abs(curve(0.05) - 0.7405) < 0.02
    True
    """
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    draws = totals(source, n)
    checks.real("perturbation", perturbation, at_least=0.0)
    if confidence is not None:
        checks.confidence(confidence)
    density = KernelDensity.of(bandwidth)
    batch = None if confidence is None and loss is None else source.deal(draws)
    if batch is not None:
        if loss is None:  # a learned score, where kernel densities estimate p/q clearly worse
            learner = CrossFit(batch, "values", source.rng, lean=True)
            if learner.on_cells and not cells_serve(learner):
                loss = learner.names[select(learner, LogLoss())[0]]
        fitted, score_p, score_q = _held_out("kde" if loss is None else loss, batch, source)
    if loss is None:
        if batch is None:
            cell_counts = count_draws(source, draws, density.least)
        else:
            cell_counts = counts_of(batch.p, batch.q, Smoothing(min(draws), density.least))
        grid = GridScore.of(cell_counts, density)
        masses = grid.masses()
        about = About.of(source, "PLRT", Guarantee.HEURISTIC, cell_counts.n, grid.notes)
        curve, p, q = masses.tradeoff_curve(), masses.p, masses.q
        with np.errstate(divide="ignore"):
            ratio = p / q
        x, y = curve.x, curve.y
    else:
        notes = coarse_grid(fitted)
        about = About.of(source, f"PLRT with {fitted.name}", Guarantee.HEURISTIC, draws, notes)
        side = np.repeat([1.0, 0.0], [score_p.size, score_q.size])
        p, q = side / score_p.size, (1 - side) / score_q.size
        ratio = np.exp(np.concatenate([score_p, score_q]))
        x, y = _roc(score_p, score_q)
    if perturbation or thresholds is not None:
        x, y = _perturbed(ratio, p, q, perturbation, thresholds)
    if confidence is not None and source.doubts:
        about = replace(about, notes=(*about.notes, UNCERTIFIED))
        return TradeoffCurve(x, y, about=about)
    band = None if confidence is None else _band(score_p, score_q, confidence)
    return TradeoffCurve(x, y, band=band, about=about)


def _held_out(loss: Any, batch: Batch, source: Source) -> tuple[Score, FloatArray, FloatArray]:
    """A loss fitted to half of the draws, and its sorted values on the other half."""
    train, test = batch.split(0.5)
    fitted = fit(loss, Training.of(train), rng=source.rng(1))
    score_p, score_q = (np.sort(fitted.score(side)) for side in (test.p, test.q))
    return fitted, score_p, score_q


def _errors(score_p: FloatArray, score_q: FloatArray, thresholds: FloatArray) -> Points:
    """Type I and II errors of {score ≥ threshold}, from sorted scores."""
    alpha = 1 - np.searchsorted(score_q, thresholds, side="left") / score_q.size
    return alpha, np.searchsorted(score_p, thresholds, side="left") / score_p.size


def _roc(score_p: FloatArray, score_q: FloatArray) -> Points:
    """The convex hull of (α, β) at all thresholds, from sorted scores."""
    alpha, beta = _errors(score_p, score_q, np.unique(np.concatenate([score_p, score_q])))
    return lower_hull(np.append(alpha, 0.0)[::-1], np.append(beta, 1.0)[::-1])


def _perturbed(
    ratio: FloatArray, p: FloatArray, q: FloatArray, h: float, thresholds: npt.ArrayLike | None
) -> Points:
    """(α(η), β(η)) with η averaged over [η − h/2, η + h/2] (eqs. 3 and 4), by integrals of steps."""
    order = np.argsort(ratio)
    ratio, p, q = ratio[order], p[order], q[order]
    if thresholds is None:
        eta = np.unique(ratio[np.isfinite(ratio)])
    else:
        eta = np.unique(checks.doubles("thresholds", thresholds))
        if eta.size == 0 or eta[0] < 0 or not np.all(np.isfinite(eta)):
            raise InvalidInput("thresholds must be finite numbers of at least 0")
    points = []
    for mass in (q, p):
        above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])  # Σ of mass with ratio > η
        if h == 0.0:
            points.append(above[np.searchsorted(ratio, eta, side="right")])
            continue
        finite = np.isfinite(ratio)
        knots = np.concatenate([[min(0.0, eta[0] - h)], ratio[finite]])
        area = np.concatenate([[0.0], np.cumsum(above[: finite.sum()] * np.diff(knots))])
        ends = eta + np.array([[-h / 2], [h / 2]])
        k = np.searchsorted(knots, ends, side="right") - 1
        low, high = area[k] + (ends - knots[k]) * above[k]  # integrals of `above` over thresholds
        points.append((high - low) / h)
    alpha, beta = np.clip(points[0], 0, 1), np.clip(1 - points[1], 0, 1)
    order = np.argsort(alpha, kind="stable")
    return alpha[order], beta[order]


def _band(score_p: FloatArray, score_q: FloatArray, confidence: float) -> TradeoffBand:
    """The empirical distributions of a loss on draws it was not fitted to are within w of the truth."""
    thresholds = np.quantile(np.concatenate([score_p, score_q]), np.linspace(0, 1, 401))
    alpha, beta = (side[::-1] for side in _errors(score_p, score_q, thresholds))  # α rises
    gamma = 1 - confidence
    w_p, w_q = (math.sqrt(math.log(4 / gamma) / (2 * s.size)) for s in (score_p, score_q))
    grid = np.linspace(0.0, 1.0, 401)
    # (α, β) of every threshold lies in its box, and T is convex: it is below the chords of the upper
    # corners, and the curve of this loss is above the largest lower corner at or right of α
    corners = np.clip([alpha + w_q, beta + w_p], 0, 1)
    upper = np.interp(grid, *lower_hull(*np.hstack([[[0.0], [1.0]], corners, [[1.0], [0.0]]])))
    most = np.append(np.maximum.accumulate(np.clip(beta - w_p, 0, 1)[::-1])[::-1], 0.0)
    lower = most[np.searchsorted(np.clip(alpha - w_q, 0, 1), grid, side="left")]
    upper, lower = np.minimum(upper, 1 - grid), np.minimum(np.minimum(lower, 1 - grid), upper)
    return TradeoffBand(grid, lower, upper, confidence)


def point(
    mechanism: Any,
    pair: Any = None,
    threshold: float = 1.0,
    *,
    n: int | None = None,
    confidence: float = 0.95,
    box: Box = "joint",
    loss: Any = "knn",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> TradeoffPoint:
    """The errors (α, β) of the test fitted at likelihood-ratio threshold η, with a confidence region.

    The region is exact for this test. The trade-off curve passes through its errors if the fit is
    perfect and below them if not, so the region need not hold the curve's own point at η.

    Half of the `n` draws per side fit a loss (as in `estimate`; "knn" by default), the other half count
    how often it exceeds log η on either input (BayBox). Any η > 0 comes from the same fit: comparing
    unthinned votes with a weight is what a majority vote after thinning one side estimates. `box` is
    "joint" (the exact joint region), "clopper-pearson" or "hoeffding" (the paper's).
    """
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    eta = checks.real("threshold", threshold, above=0.0)
    gamma = 1 - checks.confidence(confidence)
    checks.one_of("box", box, tuple(_REGIONS))
    budget = split(source, n, 0.5)
    with CallProgress(budget.draws(1), "learning") as bar:
        training = Training.of(source.deal(budget.learn))
        fitted = fit(loss, training, rng=source.rng(1))
        bar.say("testing")
        return _count(fitted, eta, source.deal(budget.test), box, gamma, source)[2]


def _count(
    loss: Score, eta: float, test: Batch, box: str, gamma: float, source: Source
) -> tuple[Event, Counts, TradeoffPoint]:
    """The event {loss > log η}, how often it happens, and the point of the curve that this shows."""
    event = of_scores(loss, math.nextafter(math.log(eta), math.inf), True)
    event = replace(event, words=f"the {loss.name} loss exceeds log {eta:.4g}")
    c = Counts(event.count(test.p), len(test.p), event.count(test.q), len(test.q))
    region = _REGIONS[box](c, gamma)
    found = TradeoffPoint(
        threshold=eta,
        alpha=c.j / c.m,
        beta=1 - c.i / c.n,
        box=(region.low_alpha, region.high_alpha, region.low_beta, region.high_beta),
        kind=box,
        confidence=1 - gamma,
        outline=region.outline,
        about=About.of(source, f"BayBox with {loss.name}", Guarantee.EXACT, (c.n, c.m)),
    )
    return event, c, found


def audit(
    mechanism: Any,
    pair: Any = None,
    claim: Claim | str | None = None,
    *,
    n: int | None = None,
    n_locate: int | None = None,
    n_test: int | None = None,
    confidence: float = 0.95,
    box: Box = "joint",
    loss: Any = "knn",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Verdict:
    """Test a claimed trade-off curve where it seems weakest (Algorithm 2 of the paper).

    Of `n` draws per side a third estimate the curve and find the threshold with the largest gap to the
    claim, a third fit a loss, and a third count; `n_locate` and `n_test` (for each of the last two) say
    otherwise. The claim is any of the library's:
    a curve, μ-GDP, (ε, δ). It is violated if the confidence region of the point lies below the
    claimed curve; with the "joint" box that is the exact joint test. See `dpassay.audit` for an audit
    that also chooses the loss, the pair and the event for power.

    >>> import dpassay as dp
    >>> verdict = dp.tradeoff.audit(dp.zoo.Gaussian(1.0), (0.0, 1.0), dp.GaussianDP(0.5),
    ...                             n=30_000, rng=0)
    >>> verdict.violated
    True
    """
    claim = as_claim(claim)
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    gamma = 1 - checks.confidence(confidence)
    checks.one_of("box", box, tuple(_REGIONS))
    if n_locate is not None:
        n_locate = checks.whole("n_locate", n_locate, at_least=10)
    if n_test is not None:
        n_test = checks.whole("n_test", n_test, at_least=2)
    locate, test = three_stages(source, n, n_locate, n_test)
    with CallProgress(locate + 2 * test, "locating") as bar:
        batch = source.deal((locate, locate))
        try:
            curve = GridScore.of(counts_of(batch.p, batch.q)).masses().tradeoff_curve()
        except NotApplicable:  # too many numbers for kernel densities
            curve = TradeoffCurve(*_roc(*_held_out(loss, batch, source)[1:]))
        eta = _weakest(curve, claim)
        bar.say("learning")
        training = Training.of(source.deal((test, test)))
        fitted = fit(loss, training, rng=source.rng(1))
        eta = _within_reach(eta, fitted, batch)
        bar.say("testing")
        event, c, found = _count(fitted, eta, source.deal((test, test)), box, gamma, source)
    lower, p_value = _refute(c, claim, box, gamma)
    violated = p_value <= gamma
    detectable = power.smallest_detectable(c, claim, gamma)
    blind = why_blind(claim, violated, detectable, c)
    return Verdict(
        claim=claim,
        violated=violated,
        blind=blind.words,
        blind_cause=blind.cause,
        p_value=p_value,
        lower_bound=lower,
        confidence=confidence,
        guarantee=Guarantee.EXACT.downgraded(source.doubts),
        witness=Witness.of(event, c, source.pair),
        smallest_detectable=detectable,
        budget=((f"{box} region of one point", gamma),),
        curve=curve,
        point=found,
        about=About.of(
            source,
            f"Algorithm 2 with {fitted.name}, {box} region",
            Guarantee.EXACT,
            (locate + 2 * test,) * 2,
            claim.notes,
        ),
    )


def _weakest(curve: TradeoffCurve, claim: Claim) -> float:
    """η at the largest gap between the claim and the curve: minus the slope of the curve there."""
    gap = np.asarray(claim.tradeoff(curve.x)) - curve.y
    k = int(np.argmax(gap))
    with np.errstate(divide="ignore"):
        slope = -np.diff(curve.y) / np.diff(curve.x)
    near = slope[max(k - 1, 0) : k + 1]
    near = near[np.isfinite(near) & (near > 0)]
    return float(np.exp(np.mean(np.log(near)))) if near.size else 1.0


def _within_reach(eta: float, loss: Score, batch: Batch) -> float:
    """η, moved to where the loss lies on either side of log η in a hundredth of these draws.

    Nearest neighbours estimate no large ratios: an event that the curve asks for may never happen.
    """
    scores = np.sort(np.concatenate([loss.score(side) for side in (batch.p, batch.q)]))
    k = scores.size // 100
    low, high = scores[k] + 1e-9, scores[-1 - k] - 1e-9  # more than the rounding of η and its log
    if low <= math.log(eta) <= high or low > high:
        return eta
    return math.exp(low if math.log(eta) < low else high)


def _refute(c: Counts, claim: Claim, box: str, gamma: float) -> tuple[float, float]:
    """A lower bound on the claim's parameter and a p-value, by the chosen region."""
    if box == "joint":
        found = joint.evidence(c, claim, gamma)
        return found.lower_bound, found.p_value

    def bound_at(level: float) -> float:
        found = _REGIONS[box](c, level)
        return float(claim.needed(1 - found.high_beta, found.high_alpha))

    # the p-value is the smallest level at which the region refutes
    level, _ = bisect(lambda level: bound_at(level) > claim.value, 1.0, 0.0, steps=30)
    bound = bound_at(gamma)
    refuted = bound > claim.value
    return bound, min(level, gamma) if refuted else max(level, math.nextafter(gamma, 1.0))
