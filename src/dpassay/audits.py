"""The audit: learn on a part of the draws, certify on the rest.

1. Learning. A part of the draws on every pair (a quarter by default) chooses the pair, what ranks the
   outputs, the event and the input on which it is too likely (`notions.search`); for Rényi and zCDP
   claims a score, a clip and a direction (`notions.variational`).
2. Certifying. Fresh draws on the chosen pair: two binomial counts and the exact joint test; for Rényi and
   zCDP a betting bound, since no event can refute every false claim of that kind.

Whatever was chosen by looking was chosen on draws the certificate never uses.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.bounds import joint, power
from dpassay.bounds.ordering import Counts
from dpassay.errors import InvalidInput, NotEnoughDraws
from dpassay.notions.profile import profile_of
from dpassay.notions.search import Found, search
from dpassay.notions.variational import Variation, fit_best, learn_variation
from dpassay.privacy.about import About, Guarantee
from dpassay.privacy.claims import Claim, GaussianDP, RenyiDP, ZeroConcentratedDP
from dpassay.privacy.text import as_claim
from dpassay.results import Verdict, Witness, settled
from dpassay.sampling.draw import Sampling, Seed
from dpassay.sampling.outputs import Outputs
from dpassay.sampling.samples import Samples, Source, sources

#: Orders a zCDP claim is tried at.
_ORDERS = (1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
#: Fewer draws than this behind a variational bound, and the event test is paid for as well.
_EFFECTIVE = 100.0
#: The share of the draws that learn, and the most per side that do: more improve no choice.
_TRAIN, _ENOUGH = 0.25, 50_000
#: Draws per side with which a time budget is measured out.
_PILOT = 256


def audit(
    mechanism: Any,
    pairs: Any = None,
    claim: Any = None,
    *,
    n: int | None = None,
    confidence: float = 0.95,
    loss: Any = "auto",
    train: float | None = None,
    time_budget: float | None = None,
    details: bool = False,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Any:
    """Try to refute a privacy claim, with a probability of at most 1 − confidence of doing so wrongly.

    mechanism    a mechanism, or samples (then leave `pairs` out: all draws are used, each once)
    pairs        a pair of neighbouring inputs, or several: the most promising is tested
    claim        a claim, its text ("eps=1, delta=1e-5"), or a list of them: then a list of verdicts
                 comes back, each at confidence 1 − (1 − confidence)/how many there are
    n            draws per side per pair, training included
    loss         what ranks the outputs: "auto", a name ("kde", "knn", "logistic", …) or any
                 scikit-learn classifier
    train        the share of the draws that learn; by default a quarter, 50 000 a side at most
    time_budget  seconds to spend, in place of n: a pilot measures the mechanism before anything else
    details      also estimate every notion from the training draws, for charts and reports

    >>> import dpassay as dp
    >>> def mechanism(x, size, rng):
    ...     return x + rng.laplace(scale=1.0, size=size)
    >>> verdict = dp.audit(mechanism, (0.0, 1.0), dp.PureDP(0.5), n=10_000, rng=0)
    >>> verdict.violated, verdict.lower_bound > 0.8
    (True, True)
    """
    claims = _claims(claim)
    gamma = (1 - checks.probability("confidence", confidence)) / len(claims)
    if train is not None:
        checks.probability("train", train)
    if (n is None) == (time_budget is None) and not isinstance(mechanism, Samples):
        raise InvalidInput(
            "give n, the draws per side per pair, or time_budget, the seconds to spend"
        )
    found = list(sources(mechanism, pairs, rng=rng, sampling=sampling))
    if not found:
        raise InvalidInput("there is no pair to look at: the iterator is empty")
    if time_budget is not None:
        n = _draws_in(found, checks.real("time_budget", time_budget, above=0.0), train)
    sizes = _sizes(found[0], n, train)
    for one in claims:
        _conclusive(one, sizes.test, gamma)
    stages = [_Stage(one, gamma, loss) for one in claims]
    kept: list[tuple[Source, Samples]] = []
    for source in found:
        learned = _take(source, sizes)
        for stage in stages:
            stage.learn(source, learned, sizes.test)
        if details:
            kept.append((source, learned))
    for source in {id(s.chosen): s.chosen for s in stages}.values():
        group = [stage for stage in stages if stage.chosen is source]
        for part in _blocks(source, sizes, _Look(group)):
            for stage, seen in zip(group, part, strict=True):
                stage.see(seen)
    profiles = {
        id(source): profile_of(source, learned) for source, learned in kept if _used(source, stages)
    }
    verdicts = [
        stage.verdict(confidence, len(claims), profiles.get(id(stage.chosen))) for stage in stages
    ]
    return verdicts if isinstance(claim, (list, tuple)) else verdicts[0]


def _used(source: Source, stages: Sequence[_Stage]) -> bool:
    return any(stage.chosen is source for stage in stages)


class _Stage:
    """One claim on its way through an audit."""

    def __init__(self, claim: Claim, gamma: float, loss: Any) -> None:
        self.claim, self.gamma, self.loss = claim, gamma, loss
        self.pairs: list[tuple[str, float]] = []
        self._promise: tuple[bool, float] | None = None
        self.chosen: Source
        self.event: Found
        self.learned: tuple[int, int]
        self.divergence: _Divergence | None = None
        self._counts = np.zeros(4, dtype=np.int64)
        self._scores: list[tuple[FloatArray, FloatArray]] = []

    def learn(self, source: Source, train: Samples, test: tuple[int, int]) -> None:
        """Look at the training draws of one pair; keep what promises most."""
        train.rewind()
        event = search(
            train,
            _event_claim(self.claim),
            test=test,
            gamma=self.gamma,
            loss=self.loss,
            rng=source.rng,
        )
        divergence = None
        promise = event.cut.rank
        if not self.claim.event_complete:
            divergence = _Divergence.learn(
                source, train, self.claim, self.loss, min(test), self.gamma
            )
            promise = (False, divergence.bound)
        predicted = event.cut.bound if divergence is None else divergence.bound
        self.pairs.append((str(source.pair), predicted))
        if self._promise is None or promise > self._promise:
            self._promise, self.chosen = promise, source
            self.event, self.divergence = event, divergence
            self.learned = train.remaining

    def see(
        self, seen: tuple[tuple[int, int, int, int], tuple[FloatArray, FloatArray] | None]
    ) -> None:
        """Count one block of the draws that certify."""
        counts, scores = seen
        self._counts += counts
        if scores is not None:
            self._scores.append(scores)

    def verdict(self, confidence: float, claims: int, profile: Any) -> Verdict:
        """What the fresh draws say."""
        i, n, j, m = (int(c) for c in self._counts)
        counts = Counts(i, n, j, m)
        if self.event.cut.second:  # a symmetric claim says the same of the complement
            counts = Counts(n - i, n, m - j, m) if self.claim.symmetric else Counts(j, m, i, n)
        claim, gamma = self.claim, self.gamma
        share = 0.0 if self.divergence is None else self.divergence.share
        lower, p_value, budget = 0.0, 1.0, []
        detectable = math.inf
        if share < 1.0:
            level = gamma * (1 - share)
            lower = joint.claim_bound(counts, claim, level)
            p_value = min(1.0, joint.p_value(counts, claim, gamma=level) / (1 - share))
            budget.append(("exact joint test of one event", level))
            detectable = power.smallest_detectable(counts, claim, level)
        guarantee, notes = Guarantee.EXACT, self._notes(claims)
        if self.divergence is not None and share > 0.0:
            level = gamma * share
            score_p, score_q = (
                np.concatenate([part[side] for part in self._scores]) for side in (0, 1)
            )
            value, chance, seen = self.divergence.test(score_p, score_q, level)
            lower, p_value = max(lower, value), min(p_value, chance / share, 1.0)
            detectable = min(detectable, seen)
            budget.append(
                (f"variational bound at order {self.divergence.variation.order:g}", level)
            )
        if claims > 1:
            budget.append((f"the other {claims - 1} claims", gamma * (claims - 1)))
        violated = lower > claim.value
        return Verdict(
            claim=claim,
            violated=violated,
            p_value=settled(p_value, violated, gamma),
            lower_bound=lower,
            confidence=confidence,
            guarantee=guarantee,
            witness=Witness(
                event=self.event.event, pair=self.chosen.pair, hits_p=i, n_p=n, hits_q=j, n_q=m
            ),
            smallest_detectable=detectable,
            budget=tuple(budget),
            curve=None if profile is None else profile.tradeoff_curve,
            profile=profile,
            pairs=tuple(self.pairs),
            about=About(
                method=self._method(),
                guarantee=guarantee,
                n=(n + self.learned[0], m + self.learned[1]),
                seed=self.chosen.seed,
                pair=self.chosen.pair,
                notes=(*notes, *self.chosen.notes),
            ),
        )

    def _method(self) -> str:
        if self.divergence is None:
            return f"exact joint test of an event found by {self.event.loss}"
        loss = self.divergence.loss
        if self.divergence.share == 1.0:
            return f"variational bound with {loss}"
        return f"variational bound with {loss}, and an event found by {self.event.loss}"

    def _notes(self, claims: int) -> list[str]:
        notes = []
        if len(self.pairs) > 1:
            notes.append(
                f"the training draws chose {self.chosen.pair} among {len(self.pairs)} pairs"
            )
        if claims > 1:
            notes.append(f"{claims} claims share the error probability equally")
        if self.divergence is not None:
            notes.append("the event is an illustration; the divergence is bounded as a whole")
        if self.event.event.live:
            notes.append("the event needs the fitted classifier: it cannot be replayed from a file")
        return notes


@dataclass(frozen=True, eq=False)
class _Divergence:
    """The variational way to refute a Rényi or zCDP claim."""

    claim: Claim
    variation: Variation
    scorer: Any
    loss: str
    share: float  # of the error probability; the event test has the rest
    bound: float  # predicted, on the claim's parameter

    @classmethod
    def learn(
        cls, source: Source, train: Samples, claim: Claim, loss: Any, test: int, gamma: float
    ) -> _Divergence:
        """Choose the loss, the order, the direction and the clip."""
        orders = np.array([claim.order] if isinstance(claim, RenyiDP) else _ORDERS, dtype=float)
        train.rewind()
        middle = orders[[orders.size // 3]] if orders.size > 1 else orders
        fitted, scores = fit_best(source, train, loss, middle, [False, True], test, gamma)
        per_order = [
            max(
                (learn_variation(float(o), side, *scores, test, gamma) for side in (False, True)),
                key=lambda found: found.promised,
            )
            for o in orders
        ]
        best = max(per_order, key=lambda v: _parameter(claim, v.order, v.predicted))
        bound = _parameter(claim, best.order, best.predicted)
        share = 1.0 if best.effective >= _EFFECTIVE else 0.5
        return cls(claim, best, fitted.score, fitted.name, share, bound)

    def test(
        self, score_p: FloatArray, score_q: FloatArray, gamma: float
    ) -> tuple[float, float, float]:
        """(lower bound, p-value, smallest detectable value) of the claim's parameter."""
        v, claim = self.variation, self.claim
        allowed = claim.value if isinstance(claim, RenyiDP) else claim.value * v.order
        bound = _parameter(claim, v.order, v.bound(score_p, score_q, gamma))
        seen = v.detectable(allowed, min(len(score_p), len(score_q)), gamma)
        return bound, v.p_value(score_p, score_q, allowed, gamma), _parameter(claim, v.order, seen)


def _event_claim(claim: Claim) -> Claim:
    """What to seek an event against: the Gaussian mechanism of the same divergence, quick to evaluate."""
    if claim.event_complete:
        return claim
    rho = claim.value / claim.order if isinstance(claim, RenyiDP) else claim.value
    return GaussianDP(math.sqrt(2 * rho))


def _parameter(claim: Claim, order: float, divergence: float) -> float:
    """ε itself for a Rényi claim; ρ = ε(λ)/λ for zCDP."""
    return divergence / order if isinstance(claim, ZeroConcentratedDP) else divergence


@dataclass(frozen=True, eq=False)
class _Look:
    """What the certificates need of a block: hits, and scores where a divergence is bounded."""

    stages: Sequence[_Stage]

    def __call__(self, p: Outputs, q: Outputs) -> list[Any]:
        out: list[Any] = []
        for stage in self.stages:
            scores = None
            if stage.divergence is not None:
                scores = stage.divergence.scorer(p), stage.divergence.scorer(q)
            out.append((np.array(stage.event.count(p, q)), scores))
        return out


# --- borders


@dataclass(frozen=True)
class _Sizes:
    """Draws that learn and draws that test, on either side."""

    learn: tuple[int, int]
    test: tuple[int, int]
    rest: bool  # samples: all that is left tests


def _sizes(source: Source, n: int | None, train: float | None) -> _Sizes:
    if n is not None:
        total = checks.whole("n", n, at_least=8)
        learn = _learners(total, train)
        return _Sizes((learn, learn), (total - learn, total - learn), False)
    left = source.remaining
    assert left is not None
    if min(left) < 8:
        raise NotEnoughDraws(f"an audit needs at least 8 draws per side, there are {min(left)}")
    learns = _learners(left[0], train), _learners(left[1], train)
    return _Sizes(learns, (left[0] - learns[0], left[1] - learns[1]), True)


def _learners(total: int, train: float | None) -> int:
    if train is not None:
        return max(4, round(train * total))
    return max(4, min(round(_TRAIN * total), _ENOUGH))


def _take(source: Source, sizes: _Sizes) -> Samples:
    if isinstance(source, Samples):
        return source.deal(*sizes.learn)
    return source.take(sizes.learn[0])


def _blocks(source: Source, sizes: _Sizes, look: _Look) -> Iterable[list[Any]]:
    """The draws that certify; all that samples still hold, also where the sides differ in length."""
    if sizes.rest:
        rest = source.take()
        return [look(rest.p, rest.q)]
    return source.blocks(min(sizes.test), look)


def _claims(given: Any) -> list[Claim]:
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if not listed:
        raise InvalidInput("claim is an empty list: there is nothing to refute")
    return [as_claim(one) for one in listed]


def _conclusive(claim: Claim, test: tuple[int, int], gamma: float) -> None:
    """Whether these draws could refute the claim at all, were the event as telling as can be."""
    n, m = test
    if claim.event_complete and joint.p_value(Counts(n, n, 0, m), claim, gamma=gamma) > gamma:
        raise NotEnoughDraws(
            f"{n} draws a side to test with cannot refute {claim}, not even if an event happened in "
            "all of them on one input and in none on the other; give more draws (dp.plan says how "
            "many) or a lower confidence"
        )


def _draws_in(found: Sequence[Source], seconds: float, train: float | None) -> int:
    """The draws per side per pair that fit into the time, from a pilot on the first pair."""
    if isinstance(found[0], Samples):
        raise InvalidInput("time_budget is for mechanisms: samples are already drawn")
    start = time.perf_counter()
    found[0].take(_PILOT)
    per_draw = max(time.perf_counter() - start, 1e-6) / _PILOT
    part = _TRAIN if train is None else train
    share = part * len(found) + 1 - part  # every pair learns, one is tested
    return int(min(max(0.7 * seconds / (per_draw * share), 100), 10**9))
