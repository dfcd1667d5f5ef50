"""Whether a claim holds on pairs of inputs, for discrete outputs: bounds on δ(ε) from above.

1. Learn. A part of the draws on every pair says which outputs repeat.
2. Count. Fresh draws are counted by output; everything else is one more cell.
3. Certify. `bounds.upper_delta`: for every set of outputs a limit of P(C) − e^ε Q(C), and the largest
of them.

All pairs, both directions and all ε that a claim speaks of are held against it at the full error
probability. A claim that is false is false at one pair, in one direction and at one ε, which do not
depend on the draws; to be confirmed nevertheless the bound of that one must fail.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.blackbox.library_objects import claim_on
from dpassay.bounds import clopper_pearson
from dpassay.bounds.upper_delta import worse_direction
from dpassay.diagnosis.diagnoses import diagnose
from dpassay.diagnosis.parts import Keeping, Kept
from dpassay.errors import InvalidInput
from dpassay.learning.betting_cells import Cells, outside, why_trivial
from dpassay.privacy.claim_parsing import as_claim
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import About, Guarantee
from dpassay.privacy.relations import Pair, Relation
from dpassay.results.explanations import Explanation
from dpassay.results.verification import PairUpper, Verification
from dpassay.rounding import rounded_down
from dpassay.sampling.budget import split
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Batch, Source, sources

#: The share of the draws that say which outputs there are; the most per side that do, unless a claimed δ
#: needs more: the outputs that they do not say are about 1/draws each, and all count against the claim.
TRAIN, ENOUGH, _TIMES = 0.2, 250_000, 100


def verify(
    mechanism: Any,
    pairs: Any = None,
    claim: Claim | str | None = None,
    *,
    n: int | None = None,
    confidence: float = 0.95,
    train: float | None = None,
    features: Any = None,
    relation: Relation | str | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Verification:
    """Show that a claim holds on the pairs given, as far as draws can show it.

    For discrete outputs δ(ε) of a pair is bounded from above, whatever the distributions are; the outputs
    need not be known. For (ε, δ) claims the result is `confirmed` if the bound is at most δ on every
    pair. A pure claim holds up to the δ that is `upper`. A Gaussian or trade-off claim is held against
    the bounds at all ε ≥ 0, approximate zCDP follows from (√(2ρ), δ)-DP, and for Rényi and pure zCDP
    claims draws show nothing. Nothing is said of other inputs.

    n      draws per side per pair, training included
    train  the share of draws that only say which outputs there are; by default a fifth, up to 250 000
           or 100/δ

    >>> import dpassay as dp
    >>> found = dp.verify(dp.zoo.DiscreteLaplace(1.0), (0, 1), "eps=1.2, delta=1e-3", n=200_000, rng=0)
    >>> found.confirmed, found.statement
    (True, '(1.2, 0.001)-DP holds on this pair')
    """
    claim = claim_on(claim, mechanism, pairs)
    if claim is None:
        raise InvalidInput('what is claimed? Give a claim such as "eps=1, delta=1e-5"')
    asked = as_claim(claim)
    gamma = 1 - checks.confidence(confidence)
    target = asked.shown_by()
    epsilon, allowed = None, 0.0
    if target is not None and target[0].size == 1:
        epsilon, allowed = float(target[0][0]), float(target[1][0])
    share = TRAIN if train is None else checks.probability("train", train)
    most = max(ENOUGH, math.ceil(_TIMES / allowed) if allowed else 0) if train is None else None
    found: list[PairUpper] = []
    notes: dict[str, None] = {}
    doubts: list[str] = []
    first: Source | None = None
    held: tuple[Batch, Kept, Claim, Pair] | None = None  # what a diagnosis of the worst pair needs
    drawn, lower = (0, 0), 0.0
    many = len(pairs) if isinstance(pairs, list) else 1
    with CallProgress(0) as bar:
        for source in sources(
            mechanism, pairs, rng=rng, sampling=sampling, relation=relation, features=features
        ):
            first = first or source
            if target is None:
                found.append(PairUpper(pair=source.pair, upper=1.0, cells=0, unseen=1.0))
                continue
            budget = split(source, n, share, least=(4, 4), most=most)
            bar.total = max(bar.total, many * max(budget.total))
            bar.label = f"pair {len(found) + 1} of {many}" if many > 1 else ""
            batch = source.deal(budget.learn)
            cells = Cells.learn(batch)
            kept: Kept = ()
            counts = np.zeros((2, len(cells) + 1), dtype=np.int64)
            for part, some in source.blocks(budget.test, Keeping.of(cells, budget.test)):
                counts, kept = counts + part, kept + some
            upper = _exceeded(counts, asked, target, gamma)
            if upper > max((one.upper for one in found), default=-1.0):
                held = batch, kept, asked, source.pair
                lower = _lower_delta(cells(batch.p, batch.q), counts, target[0], gamma)
            one = PairUpper(pair=source.pair, upper=upper, cells=len(cells), unseen=outside(counts))
            found.append(one)
            notes |= dict.fromkeys(source.notes)
            doubts += source.doubts
            drawn = budget.total
    if first is None:
        raise InvalidInput("there is no pair to look at: the iterator is empty")
    worst = max(found, key=lambda one: one.upper)
    guarantee = Guarantee.EXACT.downgraded(doubts)
    accepted = allowed if epsilon is not None else float(asked.delta_at(300.0))
    confirmed = target is not None and worst.upper <= allowed
    single = epsilon is not None
    false = asked.point is not None and lower > allowed  # what shows zCDP is more than zCDP
    reason = _never(asked) if target is None else _why(worst, lower, accepted, single, false)
    causes: tuple[Explanation, ...] = ()
    if not confirmed and held is not None:
        # the draws that back them chose the worst of the pairs
        causes = diagnose(*held, None, gamma, guarantee, chosen=len(found))
        if not any(one.alone > asked.value for one in causes):
            causes = ()
    return Verification(
        claim=asked,
        confirmed=confirmed,
        upper=worst.upper,
        epsilon=epsilon,
        confidence=confidence,
        guarantee=guarantee,
        reason="" if confirmed else reason,
        pairs=tuple(found),
        budget=((_SPENT, gamma),),
        diagnosis=causes,
        looks_false=false,
        about=About(
            method="the largest upper confidence limit of P(E) − e^ε Q(E) over sets E of outputs",
            guarantee=guarantee,
            n=drawn,
            seed=first.seed,
            pair=worst.pair,
            notes=tuple(notes),
            files=first.files,
            digest=first.digest,
        ),
    )


_SPENT = "the bound at the worst pair, direction and ε; the result needs no other bound"


def _never(claim: Claim) -> str:
    """Why draws say nothing about a claim."""
    if not claim.set_by_events:
        return (
            "draws cannot show it: an output too unlikely to be seen can make a Rényi divergence "
            "infinite; show (ε, δ)-DP instead"
        )
    if claim.directional:
        return "a claim about the first input against the second alone is not looked at"
    return (
        "only pure, (ε, δ), Gaussian and approximate zCDP claims can be verified, and trade-off curves "
        "f, with a gap g only if g ≤ f(g). Write any other claim as dp.TradeoffDP(claim.tradeoff)"
    )


def _why(worst: PairUpper, lower: float, allowed: float, single: bool, false: bool) -> str:
    """What stands in the way of a smaller bound."""
    if false:
        return (
            f"the claim looks false on {worst.pair}: δ is at least {rounded_down(lower)} (heuristic) and "
            f"the claim allows {allowed:g}. More draws do not help; dp.audit tests whether it is false"
        )
    if trivial := why_trivial(worst.unseen):
        return trivial
    if worst.unseen > worst.upper / 2:
        return (
            f"{worst.unseen:.2g} of the draws are outputs that hardly came before, and all of them "
            "count; more draws, a larger share that trains, or coarser outputs leave fewer"
        )
    if allowed > 0:
        return ""
    if not single:
        return (
            "sampling cannot establish a curve that falls to 0: accept a δ on top of it, in Python with "
            "dp.TradeoffDP(dp.claim(…).tradeoff, gap=…)"
        )
    return "sampling cannot establish δ = 0: state a small δ that you accept"


def _lower_delta(learned: IntArray, counts: IntArray, epsilons: FloatArray, gamma: float) -> float:
    """A lower limit of δ at the smallest ε, on the outputs that showed it in training.

    A confidence bound for one pair. It is heuristic beside the upper bound of the worst of several pairs,
    which has spent the error probability.
    """
    ratio, n, found = math.exp(min(epsilons[0], 700.0)), counts.sum(axis=1), 0.0
    for one, other in ((0, 1), (1, 0)):
        shares = learned / learned.sum(axis=1, keepdims=True)
        i, j = counts[:, shares[one] > ratio * shares[other]].sum(axis=1)[[one, other]]
        p = float(clopper_pearson.lower([i], [n[one]], gamma / 4)[0])
        q = float(clopper_pearson.upper([j], [n[other]], gamma / 4)[0])
        found = max(found, p - ratio * q)
    return found


def _exceeded(
    counts: IntArray, claim: Claim, target: tuple[FloatArray, FloatArray], gamma: float
) -> float:
    """δ at the one ε, or the most by which δ may exceed a curve, from above."""
    eps, delta = target
    if eps.size == 1:
        return float(worse_direction(counts[0], counts[1], eps, gamma)[0])
    # a point of the curve lies between two ε, whose bounds must both hold
    upper = worse_direction(counts[0], counts[1], eps, gamma / 2)
    return max(excess(eps, upper, delta, float(claim.delta_at(300.0))), 0.0)


def excess(eps: FloatArray, upper: FloatArray, delta: FloatArray, last: float) -> float:
    """The most by which a spectrum below `upper` at some ε can exceed a claimed curve at any ε ≥ eps[0].

    Both are convex in t = e^ε and fall. Between two ε the spectrum is below the chord of its bounds, and
    the curve above the chords of the intervals on either side, extended; the difference is largest where
    those two meet, or at an end. To the right of all ε the spectrum is below its last bound and the curve
    above its limit, `last`.
    """
    t = np.exp(eps)
    slope = np.diff(delta) / np.diff(t)
    # before the first interval a curve falls at most as fast as t rises, after the last at least not
    before = np.concatenate([[-1.0], slope[:-1]])
    after = np.concatenate([slope[1:], [0.0]])
    width, rise = np.diff(t), np.diff(delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = (rise - after * width) / (before - after)
    meet = np.where(np.isfinite(meet), np.clip(meet, 0.0, width), 0.0)
    floor = np.maximum(delta[:-1] + before * meet, delta[1:] + after * (meet - width))
    chord = upper[:-1] + np.diff(upper) * meet / width
    return float(np.max([*(upper - delta), *(chord - floor), upper[-1] - last]))
