"""The search for the event that refutes a claim best, on draws the certificate never uses.

Every candidate ranks the outputs: by their own number, by a quadratic log-ratio, by densities, by a
classifier. Its events are {score ≥ c} (too likely on the first input) and {score ≤ c} (on the second).
On held-back training draws each event has a predicted test statistic

    z_θ = (p̂ − g_θ(q̂)) / √(g(1−g)/n + g′² q(1−q)/m),      g_θ the claim with its parameter at θ,

for the n and m draws that will test. The largest of many noisy z is mostly noise, and there are more
independent rare events than frequent ones, so √(2 log(e/share of draws)) is taken off, in units of the
training noise (the multiscale penalty of Dümbgen & Spokoiny 2001). Where the claim itself seems
refutable the event with the largest z is taken, that is, the most powerful test; elsewhere the event
with the largest θ that would be refuted, that is, the largest lower bound. A poor choice costs power and
never validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from dpassay._typing import FloatArray
from dpassay.bounds.power import normal_limit
from dpassay.errors import InvalidInput
from dpassay.events import Event, Intervals, Layout, Test
from dpassay.loss.fit import Loss, Streams, crossed, fit, tried
from dpassay.privacy.claims import Claim, TradeoffDP
from dpassay.sampling.layout import contains, describe, learn
from dpassay.sampling.outputs import Outputs
from dpassay.sampling.samples import Samples

#: Cuts looked at per ranking.
_CUTS = 200
#: A ranking that is tried later must promise this much more: in z on the scale of the training draws, or
#: relative to the bound promised already.
_MARGIN_Z, _MARGIN_BOUND = 1.0, 0.05
#: How many times the multiscale penalty is taken off; see docs/methods/audit.md for what it does.
_CAUTION = 1.4
#: Predicted bounds end here.
_FAR = 100.0
#: Fewer training draws a side than these are not split: only what needs no fit is tried.
_SPLIT = 200


@dataclass(frozen=True)
class Cut:
    """{score ≥ at} or {score ≤ at}, and what the training draws promise for it."""

    at: float
    above: bool
    second: bool  # it is the second input on which the event is too likely
    z: float  # the predicted test statistic at the claim, less its penalty
    noise: float  # how much of that the noise of the training draws makes up
    bound: float  # the predicted lower bound

    @property
    def rank(self) -> tuple[bool, float]:
        """The larger, the more promising."""
        return (self.z >= 1.0, self.z if self.z >= 1.0 else self.bound)

    def beats(self, other: Cut) -> bool:
        """Whether it promises clearly more."""
        if self.rank[0] != other.rank[0]:
            return self.rank[0]
        if self.rank[0]:
            return self.z > other.z + _MARGIN_Z * self.noise
        return self.bound > other.bound * (1 + _MARGIN_BOUND)


@dataclass(frozen=True, eq=False)
class Found:
    """The event of a cut, and what ranks the outputs."""

    event: Event
    scorer: Callable[[Outputs], Any] | None  # for an event that cannot be written down
    cut: Cut
    loss: str

    def holds(self, outputs: Outputs) -> Any:
        """Which outputs belong to the event."""
        return contains(self.event, outputs) if self.scorer is None else self.scorer(outputs)

    def count(self, p: Outputs, q: Outputs) -> tuple[int, int, int, int]:
        """Hits and draws on both sides."""
        hits = (int(np.count_nonzero(self.holds(side))) for side in (p, q))
        i, j = hits
        return i, len(p), j, len(q)


@dataclass(frozen=True)
class _Above:
    """Whether a score reaches a cut."""

    loss: Loss
    cut: float
    above: bool

    def __call__(self, outputs: Outputs) -> Any:
        scores = self.loss.score(outputs)
        return scores >= self.cut if self.above else scores <= self.cut


def search(
    train: Samples,
    claim: Claim,
    *,
    test: tuple[int, int],
    gamma: float,
    loss: Any = "auto",
    rng: Streams,
) -> Found:
    """The most promising event among all candidates."""
    best: tuple[Cut, Callable[[Cut], Found]] | None = None
    for cut, make in _proposals(train, claim, test, gamma, loss, rng):
        if best is None or cut.beats(best[0]):
            best = cut, make
    assert best is not None
    return best[1](best[0])


def _proposals(
    train: Samples,
    claim: Claim,
    test: tuple[int, int],
    gamma: float,
    loss: Any,
    rng: Streams,
) -> Iterable[tuple[Cut, Callable[[Cut], Found]]]:
    """Cuts, and what makes an event of each."""
    p, q = train.p, train.q
    names = tried(loss, p, q)
    if isinstance(loss, str) and loss == "auto":
        layout, first, second = learn(p, q)
        if len(layout) == 1 and len(layout.free(0)) == 1:
            line = first.numbers(0)[:, 0], second.numbers(0)[:, 0]
            if line[0].size == len(p) and line[1].size == len(q):
                cut = best_cut(*line, claim, test, gamma, tails=True)
                yield cut, partial(_on_the_line, layout)
                if min(len(p), len(q)) < _SPLIT:
                    return
    halves = train.share(0.5), train.take()
    train.rewind()
    for index, name in enumerate(names):
        try:
            # scores of each half by what the other half taught
            scores = crossed(name, *halves, rng=partial(_stream, rng, index))
        except InvalidInput:  # half the draws can look like outputs of another kind
            if len(names) == 1:
                raise
            continue
        made = partial(_by_loss, name, train, _stream(rng, index, 2))
        yield best_cut(*scores, claim, test, gamma), made


def _stream(rng: Streams, index: int, part: int) -> np.random.Generator:
    return rng(3 * index + part)


def _on_the_line(layout: Layout, cut: Cut) -> Found:
    low, high = (cut.at, np.inf) if cut.above else (-np.inf, np.nextafter(cut.at, np.inf))
    inside: list[tuple[int, Test]] = [(0, Intervals(np.array([low]), np.array([high])))]
    words = describe(layout, [], inside, False)
    event = Event(words=words, layout=layout, partial=tuple(inside))
    return Found(event, None, cut, "the output itself")


def _by_loss(name: Any, train: Samples, rng: np.random.Generator, cut: Cut) -> Found:
    """The event by a loss that all training draws teach."""
    fitted = fit(name, train.p, train.q, rng=rng)
    make = getattr(fitted, "event", None)
    event = None if make is None else make(cut.at, cut.above)
    scorer = None
    if event is None:
        scorer = _Above(fitted, cut.at, cut.above)
        sign = "≥" if cut.above else "≤"
        event = Event(words=f"the {fitted.name} loss is {sign} {cut.at:.4g}", live=True)
    return Found(event, scorer, cut, fitted.name)


def best_cut(
    score_p: FloatArray,
    score_q: FloatArray,
    claim: Claim,
    test: tuple[int, int],
    gamma: float,
    *,
    tails: bool = False,
) -> Cut:
    """The cut, and the side it leads on, that promise most; with `tails` in either tail."""
    p, q = np.sort(score_p), np.sort(score_q)
    both = np.sort(np.concatenate([p, q]), kind="stable")  # two sorted runs are merged
    if both.size > 2 * _CUTS:
        # evenly spaced ranks, and the extremes, where the rare events are
        ranks = np.unique(
            np.concatenate([np.linspace(0, 1, _CUTS), np.geomspace(3 / both.size, 1, 40)])
        )
        ranks = np.concatenate([ranks, 1 - ranks]) * (both.size - 1)
        both = both[ranks.round().astype(np.int64)]
    cuts = np.unique(both)
    up = [1 - np.searchsorted(s, cuts, side="left") / s.size for s in (p, q)]  # score ≥ cut
    down = [np.searchsorted(s, cuts, side="right") / s.size for s in (p, q)]  # score ≤ cut
    ordered = isinstance(claim, TradeoffDP) and claim.ordered
    plans = [(up, True, False)]
    if not ordered:
        plans.append((down, False, True))
    if tails:
        plans.append((down, False, False))
        if not ordered:
            plans.append((up, True, True))
    rates = []
    for shares, _, second in plans:
        (a, n), (b, m) = (shares[0], p.size), (shares[1], q.size)
        if second:
            (a, n), (b, m) = (b, m), (a, n)
        # a draw more on the side that should have few: that none was seen does not make it free
        rates.append(((a * n + 0.5) / (n + 1), np.minimum((b * m + 1) / (m + 1), 1 - 1e-9)))
    high = np.concatenate([r[0] for r in rates])
    low = np.concatenate([r[1] for r in rates])
    sizes = np.array([test[::-1] if second else test for _, _, second in plans], dtype=float)
    n_high, n_low = (np.repeat(sizes[:, k], cuts.size) for k in (0, 1))
    goal = float(ndtri(1 - gamma))
    noise = math.sqrt(min(test) / min(p.size, q.size))
    share = np.clip((high + low) / 2, 1e-9, 1 - 1e-9)
    share = np.minimum(share, 1 - share)
    penalty = (
        _CAUTION
        * noise
        * (np.sqrt(2 * np.log(math.e / share)) - math.sqrt(2 * math.log(2 * math.e)))
    )

    def statistic(value: float, k: slice = slice(None)) -> FloatArray:
        allowed, noise = normal_limit(low[k], n_high[k], n_low[k], claim.at(value))
        return np.where(allowed >= 1.0, -np.inf, (high[k] - allowed) / noise - penalty[k])

    own = statistic(claim.value)
    best = int(np.argmax(own))
    z = float(own[best])
    below, above, look = 0.0, claim.value, slice(None)
    if z >= goal:  # the most powerful test is taken; how far would it refute?
        look = slice(best, best + 1)
        below, above = claim.value, 2 * claim.value + 0.1
        while above < _FAR and statistic(above, look).max() >= goal:
            below, above = above, 2 * above
    for _ in range(8):  # else the largest bound below the claim
        middle = (below + above) / 2
        reach = statistic(middle, look)
        if reach.max() >= goal:
            below = middle
            best = best if z >= goal else int(np.argmax(reach))
        else:
            above = middle
    plan, k = divmod(best, cuts.size)
    _, above_cut, second = plans[plan]
    return Cut(float(cuts[k]), above_cut, second, z, noise, below)
