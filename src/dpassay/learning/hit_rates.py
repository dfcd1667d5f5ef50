"""How often the events of a ranking happen on held-back draws, what that promises, where to cut.

A ranking's events are {score ≥ c} (too likely on the first input) and {score ≤ c} (on the second). On
held-back training draws each event has a predicted test statistic

    z_θ = 2(asin √p̂ − asin √g_θ(q̂)) / √(1/n + r/m),      r = g′² q(1−q) / g(1−g),

for the n and m draws that will test, g_θ being the claim with its parameter at θ. (On the scale of
asin √ the noise of a frequency is the same everywhere, so that z is near the likelihood-ratio distance
also where counts are few.)

The largest of many noisy z is mostly noise. The cuts of one ranking are nested, so that of those that
hold shares of the draws from s₀ (½ where no value repeats) down to s about k = 1 + log(s₀/s) are
independent, and no more than there are cuts; the largest of k errors is about √(2 log k) standard errors
of the training draws. `caution` times that is taken off z.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from dpassay._typing import FloatArray
from dpassay.bounds.power import normal_limit
from dpassay.learning.cross_fit import Scores
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import last_reaching
from dpassay.sampling.samples import Sizes

#: Cuts looked at per ranking.
_CUTS = 200
#: Predicted bounds end here, and are searched to within this share of themselves or this much of a z.
_FAR, _CLOSE, _CLOSE_Z = 100.0, 1e-3, 0.01
#: A z so far below the critical value as good as never reaches it.
_HOPELESS = 10.0
#: How far beyond the critical value z must be predicted for a refutation to count as sure: its own
#: standard error is 1, and as much again comes from the noise of the training draws.
_SURE = 3.5
#: Runs of ascending scores from this length on are merged sooner than sorted.
_RUN = 8
#: Further events of a bold look must promise this share of what the best does, and hold this many times
#: more draws, or fewer, than one chosen already.
_NEAR, _APART = 0.6, 1.5


@dataclass(frozen=True)
class ThresholdEvent:
    """{score ≥ at} or {score ≤ at}, and what the training draws promise for it."""

    at: float
    above: bool
    second: bool  # it is the second input on which the event is too likely
    z: float  # the predicted test statistic at the claim, less its penalty
    bound: float  # the predicted lower bound
    low: float  # how likely it is on the side on which it should be unlikely
    share: float  # of the held-back draws that the event holds, either side weighing the same


@dataclass(frozen=True, eq=False)
class PredictedEvents:
    """The two events of interest of one ranking, each sought when it is asked for."""

    rates: HitRates
    claim: Claim
    goal: float  # the critical value
    sure: float  # the z from which on a refutation is sure
    statistic: Callable[[float], FloatArray]  # z of every cut at a value of the parameter

    @cached_property
    def _own(self) -> FloatArray:
        return self.statistic(self.claim.value)

    @cached_property
    def _strongest(self) -> int:
        return int(np.argmax(self._own))

    @property
    def z(self) -> float:
        """That of the strongest event, the largest there is."""
        return float(self._own[self._strongest])

    def refutes(self, value: float) -> bool:
        """Whether some event would refute this value of the parameter."""
        return bool(self.statistic(value).max() >= self.goal)

    @property
    def rank(self) -> tuple[int, float]:
        """The larger, the more promising."""
        if self.z >= self.sure and self.largest.z >= self.sure:
            return 2, self.largest.bound
        if self.z >= 1.0:
            return 1, self.z
        return 0, self.largest.bound

    @cached_property
    def _largest(self) -> tuple[float, int]:
        bound, largest = _largest(self.statistic, self.goal, self.claim)
        if bound == 0.0:  # nothing promises anything: the event on which an excess would show best
            largest = self.rates.most_sensitive(self.claim, self.goal)
        return bound, largest

    @cached_property
    def largest(self) -> ThresholdEvent:
        """The event with the largest bound."""
        bound, largest = self._largest
        return self.rates.cut(largest, self._own, bound)

    @cached_property
    def strongest(self) -> ThresholdEvent:
        """The event with the largest z at the claim."""
        (reach, largest), strongest = self._largest, self._strongest
        if largest != strongest:
            reach = _reach(lambda value: float(self.statistic(value)[strongest]), self.goal, reach)
        return self.rates.cut(strongest, self._own, reach)

    @property
    def cut(self) -> ThresholdEvent:
        """The event to test."""
        return self.strongest if self.rank[0] == 1 else self.largest


@dataclass(frozen=True, eq=False)
class HitRates:
    """How often the events of a ranking happen on held-back draws: all cuts, in every way of looking."""

    cuts: FloatArray
    ways: list[tuple[bool, bool]]  # (score ≥ cut, too likely on the second input), by way
    high: FloatArray  # of the side that leads, way after way
    low: FloatArray  # of the other side
    n_high: FloatArray  # draws that will test on either
    n_low: FloatArray
    noise: float  # how much of a z the noise of the training draws makes up
    ranked: float  # the share of draws that have a score
    known: dict[tuple[type[Claim], float], FloatArray] = field(default_factory=dict)  # z, by value

    @classmethod
    def of(cls, scores: Scores, directional: bool, test: Sizes, *, tails: bool) -> HitRates:
        """Count; with `tails` an event may be in either tail of the scores. NaN is in no event."""
        p, q = (_sorted(side) for side in scores)
        n_p, n_q = scores[0].size, scores[1].size
        cuts = _places(p, q)
        up, down = [], []  # score ≥ cut, score ≤ cut
        for side, total in ((p, n_p), (q, n_q)):
            up.append((side.size - np.searchsorted(side, cuts, side="left")) / total)
            down.append(np.searchsorted(side, cuts, side="right") / total)
        ways = [(True, False), (False, True), (False, False), (True, True)][: 4 if tails else 2]
        ways = [way for way in ways if not (directional and way[1])]
        ranked = (p.size / n_p + q.size / n_q) / 2
        return cls.of_shares(cuts, ways, up, down, (n_p, n_q), test, ranked)

    @classmethod
    def of_shares(
        cls,
        cuts: FloatArray,
        ways: list[tuple[bool, bool]],
        up: Sequence[FloatArray],
        down: Sequence[FloatArray],
        drawn: Sizes,
        test: Sizes,
        ranked: float = 1.0,
    ) -> HitRates:
        """From the shares of either side's draws with a score ≥ each cut (`up`), and ≤ it (`down`)."""
        high, low = [], []
        for above, second in ways:
            (a, n), (b, m) = zip(up if above else down, drawn, strict=True)
            if second:
                (a, n), (b, m) = (b, m), (a, n)
            # a draw more outside on the side that leads, half a one inside on the other: never 0 or 1
            high.append(a * n / (n + 1))
            low.append((b * m + 0.5) / (m + 1))
        sizes = np.array([test[::-1] if second else test for _, second in ways], dtype=float)
        return cls(
            cuts,
            ways,
            np.concatenate(high),
            np.concatenate(low),
            np.repeat(sizes[:, 0], cuts.size),
            np.repeat(sizes[:, 1], cuts.size),
            math.sqrt(min(test) / min(drawn)),
            ranked,
        )

    def promise(self, claim: Claim, gamma: float, caution: float) -> PredictedEvents:
        """The cut that refutes the claim best, and the one with the largest bound."""
        goal = float(ndtri(1 - gamma))
        sure = goal + _SURE * math.sqrt(1 + self.noise**2)
        return PredictedEvents(self, claim, goal, sure, self.statistic(claim, caution))

    def strongest(self, claim: Claim, caution: float) -> ThresholdEvent:
        """The cut that refutes the claim best, without a bound."""
        own = self.statistic(claim, caution)(claim.value)
        return self.cut(int(np.argmax(own)), own, 0.0)

    def several(
        self, claim: Claim, gamma: float, caution: float, best: ThresholdEvent, most: int
    ) -> list[ThresholdEvent]:
        """The best cut, and others that promise nearly as much but hold clearly more or fewer draws."""
        if most == 1:
            return [best]
        statistic, goal = self.statistic(claim, caution), ndtri(1 - gamma)
        bounds = np.zeros(self.high.size)
        for value in np.linspace(_NEAR, 1.0, 16) * best.bound:
            bounds[statistic(float(value)) >= goal] = value
        found, shares = [best], [min(best.share, 1 - best.share)]
        for index in np.argsort(-bounds, kind="stable"):
            held = float(self.high[index] + self.low[index]) / 2
            held = max(min(held, 1 - held), 1e-9)
            if len(found) == most or bounds[index] == 0.0:
                break
            if min(abs(math.log(held / share)) for share in shares) > math.log(_APART):
                found.append(self.cut(int(index), np.zeros(self.high.size), float(bounds[index])))
                shares.append(held)
        return found

    def statistic(self, claim: Claim, caution: float) -> Callable[[float], FloatArray]:
        """z of every cut at a value of the parameter, less its penalty."""
        penalty = caution * self._penalty

        def statistic(value: float) -> FloatArray:
            key = type(claim), value
            if key not in self.known:
                self.known[key] = self.z(claim, min(value, claim.largest))
            return self.known[key] - penalty

        return statistic

    @cached_property
    def _penalty(self) -> FloatArray:
        return np.asarray(self.noise * np.sqrt(2 * np.log(self._looks())))

    @cached_property
    def _angle(self) -> FloatArray:
        return np.asarray(2 * np.arcsin(np.sqrt(self.high)))

    def z(self, claim: Claim, theta: float | None = None) -> FloatArray:
        """The predicted statistic of every cut, at the claim or with its parameter at θ."""
        allowed, slope = claim.region_and_slope(self.low, theta)
        allowed = np.minimum(allowed, 1.0)
        room = np.maximum(allowed * (1 - allowed), 1e-300)
        with np.errstate(over="ignore"):
            spread = slope**2 * self.low * (1 - self.low) / self.n_low / room
        z: FloatArray = self._angle - 2 * np.arcsin(np.sqrt(allowed))
        z /= np.sqrt(1 / self.n_high + spread)
        z[allowed >= 1.0] = -np.inf
        return z

    def _looks(self) -> FloatArray:
        """About how many independent cuts there are up to each, from the middle outwards."""
        share = np.clip((self.high + self.low) / 2 / self.ranked, 1e-9, 1 - 1e-9)
        share = share.reshape(len(self.ways), -1)
        looks = np.ones(share.shape)
        for tail, inside in ((share, share <= 0.5), (1 - share, share > 0.5)):
            # the first step outwards leads past all draws that no cut parts
            first = np.max(tail, axis=1, where=inside, initial=1e-9, keepdims=True)
            looks = np.where(inside, 1 + np.log(first / tail), looks)
        return np.minimum(looks, max(self.cuts.size - 1, 1)).ravel()

    def index(self, cut: ThresholdEvent) -> int:
        """The number of one of the events."""
        way = self.ways.index((cut.above, cut.second))
        return way * self.cuts.size + int(np.searchsorted(self.cuts, cut.at))

    def cut(self, index: int, z: FloatArray, bound: float) -> ThresholdEvent:
        """One of the events, with its z and what it promises."""
        way, k = divmod(index, self.cuts.size)
        held = float(self.high[index] + self.low[index]) / 2
        low = float(self.low[index])
        return ThresholdEvent(
            float(self.cuts[k]), *self.ways[way], float(z[index]), bound, low, held
        )

    def most_sensitive(self, claim: Claim, goal: float) -> int:
        """The event on which the smallest excess over the claim would be detected nine times in ten."""
        order = np.argsort(np.abs(self.low - 0.5), kind="stable")  # neither empty nor full
        some = order[np.unique(np.linspace(0, order.size // 2, 60).astype(np.int64))]
        low = self.low[some]
        allowed, spread = normal_limit(low, self.n_high[some], self.n_low[some], claim)
        seen = np.minimum(allowed + (goal + 1.2816) * spread, 1 - 1e-12)
        return int(some[int(np.argmin(claim.needed(seen, low)))])


def _sorted(scores: FloatArray) -> FloatArray:
    """Scores in order, without NaN; merged where they come in a few runs, as of ordered numbers."""
    unknown = np.isnan(scores)
    if unknown.any():
        scores = scores[~unknown]
    rises = np.count_nonzero(scores[1:] > scores[:-1])
    falls = np.count_nonzero(scores[1:] < scores[:-1])
    if falls > rises:
        scores = scores[::-1]
    runs = min(rises, falls)
    return np.sort(scores, kind="stable" if _RUN * runs < scores.size else None)


def _places(p: FloatArray, q: FloatArray) -> FloatArray:
    """Where to cut: evenly spaced ranks of all scores, and the extremes, where the rare events are."""
    both = np.sort(np.concatenate([p, q]), kind="stable")  # two sorted runs are merged
    if both.size > 2 * _CUTS:
        ranks = np.unique(
            np.concatenate([np.linspace(0, 1, _CUTS), np.geomspace(3 / both.size, 1, 40)])
        )
        ranks = np.concatenate([ranks, 1 - ranks]) * (both.size - 1)
        both = both[ranks.round().astype(np.int64)]
    return np.unique(both)


def _largest(
    statistic: Callable[[float], FloatArray], goal: float, claim: Claim
) -> tuple[float, int]:
    """The largest θ, from below, that some event would refute; 0 if none, and that event."""
    top = min(_FAR, claim.largest)
    low, high = 0.0, min(max(claim.value, 1e-3), top)
    while (seen := statistic(high)).max() >= goal:
        if high >= top:
            return high, int(np.argmax(seen))
        low, high = high, min(2 * high + 0.1, top)
    low = _reach(lambda value: float(statistic(value).max()), goal, high, low)
    return low, int(np.argmax(statistic(low))) if low else 0


def _reach(z: Callable[[float], float], goal: float, most: float, least: float = 0.0) -> float:
    """The largest θ, from below, at which z reaches the goal, between two; `least` if at none."""

    def hopeful(value: float) -> float:
        return max(z(value), goal - _HOPELESS)

    ends = (least, hopeful(least)), (most, hopeful(most))
    if ends[1][1] >= goal or ends[0][1] < goal:
        return most if ends[1][1] >= goal else least
    return last_reaching(hopeful, goal, *ends, close=_CLOSE_Z, apart=_CLOSE * most)[0][0]
