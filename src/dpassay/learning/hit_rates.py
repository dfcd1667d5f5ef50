"""Hit rates of threshold events on held-back draws, and the test statistic and the bound they predict.

The events of a score are {score ≥ t} (too likely on the first input) and {score ≤ t} (on the second). On
held-back training draws each event has a predicted test statistic

    z_θ = 2(asin √p̂ − asin √g_θ(q̂)) / √(1/n + r/m),      r = g′² q(1−q) / g(1−g),

for the n and m draws that will test, g_θ being the claim with its parameter at θ. (On the scale of
asin √ the noise of a frequency is the same everywhere, so that z is near the likelihood-ratio statistic
also where counts are few.)

The largest of many noisy z is mostly noise. The threshold events of one score are nested, so that of
those that hold shares of the draws from s₀ (½ where no value repeats) down to s about k = 1 + log(s₀/s)
are independent, and no more than there are thresholds; the largest of k errors is about √(2 log k)
standard errors of the training draws. `caution` times that is subtracted from z.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtri

from dpassay._typing import FloatArray, IntArray
from dpassay.bounds.power import normal_limit
from dpassay.learning.calibration import calibrated
from dpassay.learning.cross_fit import Scores
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import last_reaching
from dpassay.sampling.samples import Sizes

#: Thresholds per score.
_THRESHOLDS = 200
#: Predicted bounds end here, and are searched to within this share of themselves or this much of a z.
_MAX_PARAMETER, _CLOSE, _CLOSE_Z = 100.0, 1e-3, 0.01
#: A z so far below the critical value as good as never reaches it.
_HOPELESS = 10.0
#: How far above the critical value z must be predicted for a refutation to count as certain (.995): its
#: own standard error is 1, and as much again comes from the noise of the training draws.
_CERTAIN = 2.6
#: Hit rates by a calibrated fit are as precise as those counted among so many times the draws.
_AS_MANY = 4
#: Further optimistic events must have this share of the best predicted bound, and hold this many times
#: more draws, or fewer, than one chosen already.
_NEAR, _APART = 0.6, 1.5


@dataclass(frozen=True)
class ThresholdEvent:
    """{score ≥ threshold} or {score ≤ threshold}, with what the training draws predict for it."""

    threshold: float
    above: bool
    swapped: bool  # it is the second input on which the event is too likely
    z: float  # the predicted test statistic at the claim, less its penalty
    bound: float  # the predicted lower bound
    low: float  # how likely it is on the side on which it should be unlikely
    share: float  # of the held-back draws that the event holds, either side weighing the same


@dataclass(frozen=True, eq=False)
class PredictedEvents:
    """The strongest event of one score and the one with the largest bound, each found on demand."""

    rates: HitRates
    claim: Claim
    critical: float  # the critical value of z
    certain: float  # the z from which on a refutation is certain
    statistic: Callable[[float], FloatArray]  # z of every event at a value of the parameter

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
        return bool(self.statistic(value).max() >= self.critical)

    @property
    def rank(self) -> tuple[int, float]:
        """The larger, the better: refutation certain, likely, unlikely; then the bound, or z."""
        if self.z >= self.certain:
            return 2, self._certain[0]
        if self.z >= 1.0:
            return 1, self.z
        return 0, self.largest.bound

    @cached_property
    def _largest(self) -> tuple[float, int]:
        bound, largest = _largest(self.statistic, self.critical, self.claim)
        if bound == 0.0 and self.z > 0:
            return bound, self._strongest
        if bound == 0.0:  # nothing points to an excess: the event on which one is detected best
            largest = self.rates.most_sensitive(self.claim, self.critical)
        return bound, largest

    @cached_property
    def _certain(self) -> tuple[float, int]:
        """The largest bound among events that are certain to refute the claim."""
        bound, largest = self._largest
        if self._own[largest] >= self.certain:
            return bound, largest
        without = np.where(self._own >= self.certain, 0.0, -np.inf)
        return _largest(lambda value: self.statistic(value) + without, self.critical, self.claim)

    @cached_property
    def largest(self) -> ThresholdEvent:
        bound, largest = self._largest
        return self.rates.event(largest, self._own, bound)

    @cached_property
    def strongest(self) -> ThresholdEvent:
        return self.rates.event(self._strongest, self._own, self.reach(self._strongest))

    def reach(self, index: int) -> float:
        """The bound that one event predicts."""
        most, largest = self._largest
        if index == largest:
            return most
        return _reach(lambda value: float(self.statistic(value)[index]), self.critical, most)

    @property
    def event(self) -> ThresholdEvent:
        match self.rank[0]:
            case 2:
                bound, index = self._certain
                return self.rates.event(index, self._own, bound)
            case 1:
                return self.strongest
        return self.largest


@dataclass(frozen=True, eq=False)
class HitRates:
    """How often the threshold events of a score happen on held-back draws, in every orientation."""

    thresholds: FloatArray
    orientations: list[tuple[bool, bool]]  # (score ≥ threshold, swapped)
    high: FloatArray  # on the side where it is too likely, orientation after orientation
    low: FloatArray  # on the other side
    n_high: FloatArray  # draws that will test on either
    n_low: FloatArray
    noise: float  # how much of a z the noise of the training draws makes up
    ranked: float  # the share of draws that have a score
    modelled: bool = False  # by a calibrated fit
    known: dict[tuple[type[Claim], float], FloatArray] = field(default_factory=dict)  # z, by value

    @classmethod
    def of(
        cls,
        scores: Scores,
        directional: bool,
        test: Sizes,
        *,
        tails: bool = False,
        modelled: bool = False,
    ) -> HitRates:
        """Count, or with `modelled` calibrate where that fits. NaN is in no event.

        With `tails` an event may be in either tail of the scores.
        """
        sides = [np.sort(side[~np.isnan(side)]) for side in scores]
        sizes = scores[0].size, scores[1].size
        thresholds = _candidate_thresholds(*sides)
        below, until = (
            np.array([np.searchsorted(side, thresholds, side=end) for side in sides])
            for end in ("left", "right")
        )
        groups = np.diff(below, append=[[side.size] for side in sides])
        chance = calibrated(thresholds, *groups) if modelled else None
        if chance is not None:  # the draws that the fit expects of each side
            of_each, equal = np.array([chance, 1 - chance]), (until - below).sum(axis=0)
            groups = groups.sum(axis=0) * of_each
            until = np.cumsum(groups, axis=1) - groups + equal * of_each
        total = np.array(sizes)[:, None]
        up, down = np.cumsum(groups[:, ::-1], axis=1)[:, ::-1] / total, until / total
        orientations = [(True, False), (False, True), (False, False), (True, True)][
            : 4 if tails else 2
        ]
        orientations = [
            orientation for orientation in orientations if not (directional and orientation[1])
        ]
        as_many = 1 if chance is None else _AS_MANY
        drawn, ranked = (as_many * sizes[0], as_many * sizes[1]), float(np.mean(up[:, 0]))
        return cls.of_shares(
            thresholds, orientations, up, down, drawn, test, ranked, chance is not None
        )

    @classmethod
    def of_shares(
        cls,
        thresholds: FloatArray,
        orientations: list[tuple[bool, bool]],
        up: Sequence[FloatArray] | FloatArray,
        down: Sequence[FloatArray] | FloatArray,
        drawn: Sizes,
        test: Sizes,
        ranked: float = 1.0,
        modelled: bool = False,
    ) -> HitRates:
        """From the shares of each side's draws with a score ≥ a threshold (`up`), and ≤ it (`down`)."""
        high, low = [], []
        for above, swapped in orientations:
            (a, n), (b, m) = zip(up if above else down, drawn, strict=True)
            if swapped:
                (a, n), (b, m) = (b, m), (a, n)
            # one draw more outside on the first side, half a one inside on the other: never 0 or 1
            high.append(a * n / (n + 1))
            low.append((b * m + 0.5) / (m + 1))
        sizes = np.array(
            [test[::-1] if swapped else test for _, swapped in orientations], dtype=float
        )
        return cls(
            thresholds,
            orientations,
            np.concatenate(high),
            np.concatenate(low),
            np.repeat(sizes[:, 0], thresholds.size),
            np.repeat(sizes[:, 1], thresholds.size),
            math.sqrt(min(test) / min(drawn)),
            ranked,
            modelled,
        )

    def predict(self, claim: Claim, gamma: float, caution: float) -> PredictedEvents:
        """The event that refutes the claim best, and the one with the largest bound."""
        critical = float(ndtri(1 - gamma))
        certain = critical + _CERTAIN * math.sqrt(1 + self.noise**2)
        return PredictedEvents(self, claim, critical, certain, self.statistic(claim, caution))

    def strongest(self, claim: Claim, caution: float) -> ThresholdEvent:
        """The event that refutes the claim best, without a bound."""
        own = self.statistic(claim, caution)(claim.value)
        return self.event(int(np.argmax(own)), own, 0.0)

    def several(
        self, claim: Claim, gamma: float, caution: float, best: ThresholdEvent, most: int
    ) -> list[ThresholdEvent]:
        """The best event, and others with nearly its bound that hold clearly more or fewer draws."""
        if most == 1:
            return [best]
        statistic, critical = self.statistic(claim, caution), ndtri(1 - gamma)
        bounds = np.zeros(self.high.size)
        for value in np.linspace(_NEAR, 1.0, 16) * best.bound:
            bounds[statistic(float(value)) >= critical] = value
        found, shares = [best], [min(best.share, 1 - best.share)]
        for index in np.argsort(-bounds, kind="stable"):
            held = float(self.high[index] + self.low[index]) / 2
            held = max(min(held, 1 - held), 1e-9)
            if len(found) == most or bounds[index] == 0.0:
                break
            if min(abs(math.log(held / share)) for share in shares) > math.log(_APART):
                found.append(self.event(int(index), np.zeros(self.high.size), float(bounds[index])))
                shares.append(held)
        return found

    def statistic(self, claim: Claim, caution: float) -> Callable[[float], FloatArray]:
        """z of every event at a value of the parameter, less its penalty."""
        penalty = caution * self._penalty

        def statistic(value: float) -> FloatArray:
            key = type(claim), value
            if key not in self.known:
                self.known[key] = self.z(claim, min(value, claim.largest))
            return self.known[key] - penalty

        return statistic

    @cached_property
    def _angle(self) -> FloatArray:
        return np.asarray(2 * np.arcsin(np.sqrt(self.high)))

    def z(self, claim: Claim, theta: float | None = None) -> FloatArray:
        """The predicted statistic of every event, at the claim or with its parameter at θ."""
        allowed, slope = claim.region_and_slope(self.low, theta)
        allowed = np.minimum(allowed, 1.0)
        room = np.maximum(allowed * (1 - allowed), 1e-300)
        with np.errstate(over="ignore"):
            spread = slope**2 * self.low * (1 - self.low) / self.n_low / room
        z: FloatArray = self._angle - 2 * np.arcsin(np.sqrt(allowed))
        z /= np.sqrt(1 / self.n_high + spread)
        z[allowed >= 1.0] = -np.inf
        return z

    @cached_property
    def _penalty(self) -> FloatArray:
        """√(2 log k) standard errors for the about k independent events from the middle up to each."""
        share = np.clip((self.high + self.low) / 2 / self.ranked, 1e-9, 1 - 1e-9)
        share = share.reshape(len(self.orientations), -1)
        many = np.ones(share.shape)
        for tail, inside in ((share, share <= 0.5), (1 - share, share > 0.5)):
            # the first step outwards passes all draws that no threshold separates
            first = np.max(tail, axis=1, where=inside, initial=1e-9, keepdims=True)
            many = np.where(inside, 1 + np.log(first / tail), many)
        many = np.minimum(many, max(self.thresholds.size - 1, 1))
        return np.asarray(self.noise * np.sqrt(2 * np.log(many))).ravel()

    def index(self, event: ThresholdEvent) -> int:
        orientation = self.orientations.index((event.above, event.swapped))
        return orientation * self.thresholds.size + int(
            np.searchsorted(self.thresholds, event.threshold)
        )

    def event(self, index: int, z: FloatArray, bound: float) -> ThresholdEvent:
        orientation, k = divmod(index, self.thresholds.size)
        held = float(self.high[index] + self.low[index]) / 2
        low = float(self.low[index])
        return ThresholdEvent(
            float(self.thresholds[k]),
            *self.orientations[orientation],
            float(z[index]),
            bound,
            low,
            held,
        )

    def most_sensitive(self, claim: Claim, critical: float) -> int:
        """The event on which the smallest excess over the claim would be detected nine times in ten."""
        size = self.thresholds.size
        full = [k * size + (size - 1) * (not up) for k, (up, _) in enumerate(self.orientations)]
        order = np.argsort(np.abs(self.low - 0.5), kind="stable")  # of few events half may be full
        order = order[~np.isin(order, full)] if size > 1 else order
        some = order[np.unique(np.linspace(0, order.size // 2, 60).astype(np.int64))]
        low = self.low[some]
        allowed, spread = normal_limit(low, self.n_high[some], self.n_low[some], claim)
        seen = np.minimum(allowed + (critical + 1.2816) * spread, 1 - 1e-12)
        return int(some[int(np.argmin(claim.needed(seen, low)))])


def _candidate_thresholds(p: FloatArray, q: FloatArray) -> FloatArray:
    """Thresholds: evenly spaced ranks of all scores, and the extremes, where the rare events are."""
    both = np.sort(np.concatenate([p, q]), kind="stable")  # two sorted runs are merged
    if both.size > 2 * _THRESHOLDS:
        both = both[_ranks(both.size)]
    return both[np.append(True, both[1:] != both[:-1])] if both.size else both


@lru_cache(maxsize=64)
def _ranks(n: int) -> IntArray:
    """The ranks of the thresholds among n scores."""
    some = np.concatenate([np.linspace(0, 1, _THRESHOLDS), np.geomspace(3 / n, 1, 40)])
    return np.unique((np.concatenate([some, 1 - some]) * (n - 1)).round().astype(np.int64))


def _largest(
    statistic: Callable[[float], FloatArray], critical: float, claim: Claim
) -> tuple[float, int]:
    """The largest θ, from below, that some event would refute; 0 if none, and that event."""
    top = min(_MAX_PARAMETER, claim.largest)
    low, high = 0.0, min(max(claim.value, 1e-3), top)
    while (seen := statistic(high)).max() >= critical:
        if high >= top:
            return high, int(np.argmax(seen))
        low, high = high, min(2 * high + 0.1, top)
    low = _reach(lambda value: float(statistic(value).max()), critical, high, low)
    return low, int(np.argmax(statistic(low))) if low else 0


def _reach(z: Callable[[float], float], critical: float, most: float, least: float = 0.0) -> float:
    """The largest θ, from below, at which z reaches the critical, between two; `least` if at none."""

    def hopeful(value: float) -> float:
        return max(z(value), critical - _HOPELESS)

    ends = (least, hopeful(least)), (most, hopeful(most))
    if ends[1][1] >= critical or ends[0][1] < critical:
        return most if ends[1][1] >= critical else least
    return last_reaching(hopeful, critical, *ends, close=_CLOSE_Z, apart=_CLOSE * most)[0][0]
