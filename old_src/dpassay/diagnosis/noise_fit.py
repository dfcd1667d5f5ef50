"""One number on both sides: its centre, spread and ends, the family of its noise, and the best event."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.special import bdtrik, ndtr

from dpassay._typing import BoolArray, FloatArray, IntArray
from dpassay.bounds import clopper_pearson
from dpassay.diagnosis.parts import Condition, Part
from dpassay.privacy.claims import Claim, GaussianDP, RenyiCurveDP, TradeoffDP
from dpassay.privacy.relations import Pair, Relation
from dpassay.rootfinding import bisect
from dpassay.rounding import number

#: The error probability of a limit while suspicions are weighed, which states nothing.
_WEIGHED = 0.02
#: Quantiles at which thresholds are tried.
_LEVELS = np.concatenate(
    [[0.0005, 0.002, 0.005], np.linspace(0.01, 0.99, 50), [0.995, 0.998, 0.9995]]
)
#: An end of a distribution is sharp where so many draws lie within this share of its range.
_ZONE, _PILE, _FEW_PILE = 0.02, 8, 5
#: A side is constant where one value makes up this share of it.
_CONSTANT = 0.995
#: Values so many spreads from the median are no part of the noise.
_FAR = 30
#: Moments differ by so many standard errors where the sides have no noise in common.
_DIFFERENT = 4.0
#: The share beyond each end of the narrower side, at which quantile functions are compared.
_END = 0.05
#: An output occurs on one side only if it is so much rarer on the other.
_NEVER = 0.01
#: Values from which on repeated ones are compared, and from which on those of one side suffice.
_FEW_VALUES, _MANY_VALUES = 8, 20
#: The share of the values of a side that the other one does not have.
_OWN = 0.1
#: Spreads differ so much that a grid may follow them.
LARGE_RATIO = 1.5
#: The hint where a claim about replacing a record fails by a factor near 2.
_REPLACED = (
    "; the factor is near 2: noise for adding or removing a record covers a shift of Δ, and replacing "
    "one takes 2Δ where it may change a sum by as much"
)
#: An event that shows so much more than another one is a cause of its own.
MORE = 1.1
#: Numbers that differ by this part, at most, do so in their last bits; and bits of short floats.
_LAST_BITS, _SHORT = 3e-7, 12
#: Numbers are about the same up to this part, and far larger from this factor on.
_NEAR, _FAR_LARGER = 0.05, 3
#: Seconds of a day, the grid of dates without a time.
DAY = 86400.0
#: ε at which privacy profiles are compared.
_EPSILONS = np.linspace(0.0, 10.0, 81)


def limits(hits: Any, n: int, gamma: float) -> tuple[Any, Any]:
    """Lower and upper Clopper–Pearson limits of a probability, which hold together."""
    return clopper_pearson.lower(hits, n, gamma / 2), clopper_pearson.upper(hits, n, gamma / 2)


def shown(claim: Claim, i: Any, n: int, j: Any, m: int, gamma: float = _WEIGHED) -> Any:
    """A lower bound on the claim's parameter from the counts of an event, in either direction.

    It holds with probability 1 − γ: two Clopper–Pearson intervals of level γ/2 each.
    """
    return _needed(claim, limits(i, n, gamma / 2), limits(j, m, gamma / 2))


def plug_in(claim: Claim, i: Any, n: int, j: Any, m: int) -> Any:
    """The claim's parameter that the observed frequencies of an event need, in either direction."""
    return _needed(claim, (i / n, i / n), (j / m, j / m))


def _needed(claim: Claim, p: tuple[Any, Any], q: tuple[Any, Any]) -> Any:
    """The smallest parameter with which probabilities between these limits keep the claim."""
    (p0, p1), (q0, q1) = p, q
    found = [claim.needed(p0, q1), claim.needed(1 - p1, 1 - q0)]
    if not claim.directional:
        found += [claim.needed(q0, p1), claim.needed(1 - q1, 1 - p0)]
    return np.max(found, axis=0)


@dataclass(frozen=True)
class Noise:
    """A family of noise that fits, and its scale."""

    family: str
    scale: float

    def __str__(self) -> str:
        return f"{self.family} noise of scale {number(self.scale)}"

    def density(self, x: FloatArray, centre: float, factor: float) -> FloatArray:
        """The density around a centre, the scale multiplied by a factor."""
        b = factor * self.scale
        z = (x - centre) / b
        if self.family == "Gaussian":
            return np.asarray(np.exp(-(z**2) / 2) / (b * math.sqrt(2 * math.pi)))
        return np.asarray(np.exp(-np.abs(z)) / (2 * b))

    def profile(self, shift: float, epsilon: FloatArray) -> FloatArray:
        """δ(ε) of this noise around two centres that are `shift` scales apart."""
        if self.family == "Gaussian":
            return np.asarray(GaussianDP(shift).delta_at(epsilon))
        return np.asarray(-np.expm1(np.minimum(epsilon - shift, 0.0) / 2))

    def divergence(self, shift: float, order: float) -> float:
        """The Rényi divergence of this noise around such centres (Mironov 2017, Table II)."""
        if self.family == "Gaussian":
            return order * shift**2 / 2
        weights = math.log(order / (2 * order - 1)), math.log((order - 1) / (2 * order - 1))
        terms = weights[0] + (order - 1) * shift, weights[1] - order * shift
        return float(np.logaddexp(*terms)) / (order - 1)

    def allowed(self, claim: Claim) -> float:
        """The largest shift, in scales, with which the claim holds; 0 if none does."""
        if self.family == "Gaussian" and claim.point is not None and claim.point[1] == 0:
            return 0.0
        bounds = [(float(order), claim.divergence_limit(float(order))) for order in claim.orders]
        limit = None if bounds else np.asarray(claim.delta_at(_EPSILONS)) + 1e-9

        def kept(shift: float) -> bool:
            if limit is None:
                return all(self.divergence(shift, order) <= most for order, most in bounds)
            return bool(np.all(self.profile(shift, _EPSILONS) <= limit))

        found = float(bisect(kept, 0.0, 50.0, steps=24)[0])
        return found if found > 1e-6 or bounds else 0.0


def _spread(centred: FloatArray) -> float:
    """The mean distance from the median as the middle four fifths suggest it: far values decide nothing.

    It is the mean for Laplace and for Gaussian noise. Where the middle is a single value, all count.
    """
    if not centred.size:
        return math.nan
    low, high = np.quantile(centred, [0.1, 0.9], method="inverted_cdf").tolist()
    return (high - low) / (2 * math.log(5)) if high > low else float(np.abs(centred).mean())


class Numbers:
    """A part of the outputs on both sides, sorted, without outputs that lack it."""

    def __init__(self, part: Part, p: Any, q: Any) -> None:
        self.part = part
        self.draws = len(p), len(q)  # with those that lack it
        self.sides = [np.sort(found[~np.isnan(found)]) for found in (part.read(p), part.read(q))]
        #: The medians, the distances from them, and the spreads.
        self.centres = [float(s[s.size // 2]) if s.size else math.nan for s in self.sides]
        self.centred = [s - c for s, c in zip(self.sides, self.centres, strict=True)]
        self.spreads = [_spread(c) for c in self.centred]
        self.shift = abs(self.centres[1] - self.centres[0])

    def moved(self, noise: Noise) -> tuple[float, float]:
        """The shift of the mean of Gaussian noise, else of the median, and its standard error."""
        centres = self.centres
        if noise.family == "Gaussian":
            near = [side[~far] for side, far in zip(self.sides, self.far, strict=True)]
            centres = [float(side.mean()) for side in near]
        error = noise.scale * math.sqrt(sum(1 / side.size for side in self.sides))
        return abs(centres[1] - centres[0]), error

    @property
    def fewest(self) -> int:
        """The draws of the side that has fewer."""
        return max(min(side.size for side in self.sides), 1)

    @cached_property
    def modes(self) -> list[tuple[float, float]]:
        """The most frequent value of each side, and its share."""
        found = []
        for side in self.sides:
            values, often = np.unique(side, return_counts=True)
            top = int(np.argmax(often))
            found.append((float(values[top]), float(often[top] / side.size)))
        return found

    @cached_property
    def values(self) -> FloatArray:
        """The different values of both sides."""
        return np.unique(np.concatenate(self.sides))

    @property
    def whole(self) -> bool:
        """Whether all are whole numbers."""
        return bool(np.array_equal(self.values, np.round(self.values)))

    @cached_property
    def constant(self) -> list[bool]:
        """Whether each side is nearly always the same."""
        return [share >= _CONSTANT for _, share in self.modes]

    @property
    def atoms(self) -> bool:
        """Whether a single value makes up much of a side, as where outputs are clamped."""
        ends = self.values[0], self.values[-1]
        return any(s > 0.2 and (not self.whole or v in ends) for v, s in self.modes)

    def weigh(self, condition: Condition, claim: Claim, gamma: float = _WEIGHED) -> float:
        """What an event shows on these draws."""
        return float(self.weighed([condition], claim, gamma)[0])

    def weighed(
        self, conditions: Sequence[Condition], claim: Claim, gamma: float = _WEIGHED
    ) -> FloatArray:
        """What each of some events shows on these draws."""
        hits = [[np.count_nonzero(one.of(side)) for one in conditions] for side in self.sides]
        i, j = np.array(hits, dtype=np.int64)
        return np.asarray(shown(claim, i, self.draws[0], j, self.draws[1], gamma))

    @cached_property
    def far(self) -> list[BoolArray]:
        """Which numbers of either side are so far from its median that they are no part of the noise."""
        return [np.abs(c) > _FAR * s for c, s in zip(self.centred, self.spreads, strict=True)]

    def far_on_one_side(self) -> list[Condition]:
        """The far value that is repeated most among those that only one side has, for either side."""
        found = []
        for side, other, far in zip(self.sides, self.sides[::-1], self.far, strict=True):
            values, often = np.unique(side[far & ~np.isin(side, other)], return_counts=True)
            if often.size and often.max() > 1:
                value = float(values[np.argmax(often)])
                found.append(Condition(self.part, value, value))
        return found

    def thresholds(self) -> tuple[FloatArray, IntArray, IntArray]:
        """Thresholds at quantiles of both sides, and how many numbers of either side reach them."""
        found = np.unique(np.quantile(np.concatenate(self.sides), _LEVELS, method="inverted_cdf"))
        i, j = (side.size - np.searchsorted(side, found, side="left") for side in self.sides)
        return found, i, j

    def best_value(self, claim: Claim) -> tuple[Condition, float]:
        """The value that shows more of the most frequent ones of the sides, and how much."""
        each = [Condition(self.part, value, value) for value, _ in self.modes]
        found = self.weighed(each, claim)
        top = int(np.argmax(found))
        return each[top], float(found[top])

    def or_value(self, event: Condition, shows: float, claim: Claim) -> tuple[Condition, float]:
        """A value that comes back, where it shows more than another event, or that event."""
        value = self.best_value(claim)
        return value if value[1] > MORE * shows and not any(self.constant) else (event, shows)

    def beyond_ends(self) -> list[Condition]:
        """What lies beyond a sharp end of one side: where noise is truncated, or outputs are clamped."""
        found = []
        for side, other in (self.sides, self.sides[::-1]):
            low, high = float(side[0]), float(side[-1])
            zone, least = _ZONE * (high - low), _PILE if side.size >= 500 else _FEW_PILE
            if high <= low:
                continue
            if other[-1] > high and np.count_nonzero(side >= high - zone) >= least:
                beyond = float(other[np.searchsorted(other, high, "right")])
                found.append(Condition(self.part, low=beyond))
            if other[0] < low and np.count_nonzero(side <= low + zone) >= least:
                found.append(Condition(self.part, high=low))
        return found

    @cached_property
    def on_other_grids(self) -> bool:
        """Whether the sides have values of their own in one range, by more than the last bits.

        Multiples of different numbers do. Not floats of half precision or less, whose grid follows
        their size; nor sides with different spreads, whose grid may follow the scale of the noise.
        """
        sizes = [float(np.abs(c).mean()) for c in self.centred]  # spreads jump on a coarse grid
        if not interleaved(self) or max(sizes) > LARGE_RATIO * min(sizes):
            return False
        first, second = map(np.unique, self.sides)
        own = np.setdiff1d(first, second)
        above = np.searchsorted(second, own).clip(1, second.size - 1)
        nearest = np.minimum(np.abs(own - second[above - 1]), np.abs(own - second[above]))
        mantissas = np.frexp(self.values)[0] * 2.0**_SHORT
        coarse = np.median(nearest) > _LAST_BITS * np.abs(self.values).max()
        return bool(coarse and not np.array_equal(mantissas, np.rint(mantissas)))

    @cached_property
    def same_noise(self) -> bool:
        """Whether the second and third central moments allow that the sides are a shift apart."""
        moments = []
        for side, far in zip(self.sides, self.far, strict=True):
            near = side[~far] / max(*self.spreads, 1e-300)
            near = near - near.mean()
            powers = np.stack([near * near, near * near * near])
            moments.append((powers.mean(axis=1), powers.var(axis=1) / near.size))
        (a, va), (b, vb) = moments
        return not bool(np.any(np.abs(a - b) > _DIFFERENT * np.sqrt(va + vb)))

    @cached_property
    def crossing(self) -> bool:
        """Whether the wider side reaches further at both ends, or noise of two scales fits.

        Quantile functions that do not cross are those of h(z) and h(z + shift) for an increasing h: then
        a loss or another function of shifted noise has such spreads as well as noise of two scales.
        """
        narrow, wide = self.sides if self.spreads[0] <= self.spreads[1] else self.sides[::-1]
        low, high = np.quantile(narrow, [_END, 1 - _END], method="inverted_cdf")
        crossing = min(np.mean(wide < low), np.mean(wide > high)) > _END
        return bool(crossing or self._fitted(self.spreads) is not None)

    @cached_property
    def noise(self) -> Noise | None:
        """Laplace or Gaussian noise, if one of them fits both sides."""
        step = DAY if self.part.unit and not np.any(self.values % DAY) else 1.0
        found = self._fitted((step, step))
        return None if found is None else replace(found, scale=step * found.scale)

    def _fitted(self, units: Sequence[float]) -> Noise | None:
        """Noise that fits both sides, in units of its own for each."""
        sides = zip(self.centred, self.far, units, strict=True)
        rest = np.sort(np.concatenate([c[~far] / max(unit, 1e-300) for c, far, unit in sides]))
        size = float(np.abs(rest).mean())
        if not 0 < size < np.inf or self.atoms:
            return None
        discrete = size < 50 and bool(np.array_equal(rest, np.round(rest)))
        if discrete:  # discrete Laplace with P(k) ∝ aᵏ: E|k| = 2a/(1 − a²)
            size = -1 / math.log((math.sqrt(1 + size**2) - 1) / size)
        z, decay = np.abs(rest) / size, math.exp(-1 / size)
        tail = np.exp(-z) * (decay / (1 + decay) if discrete else 0.5)  # beyond rest
        laplace = np.where(rest < 0, tail / (decay if discrete else 1.0), 1 - tail)
        deviation = min(float(rest.std()), 1e300)
        gaussian = ndtr((rest + 0.5 * discrete) / deviation)
        last = np.append(rest[1:] != rest[:-1], True)  # of equal values the last
        places = np.arange(1, rest.size + 1) / rest.size
        apart = [float(np.abs(under - places)[last].max()) for under in (laplace, gaussian)]
        if min(apart) >= max(0.025, 1.7 / math.sqrt(rest.size)):
            return None
        return Noise("Laplace", size) if apart[0] <= apart[1] else Noise("Gaussian", deviation)


def _plainness(value: float, sizes: Sequence[int], tolerance: float = 0.05) -> int:
    """3 for 1 and 2 for 2, also divided by the number of records; 1 for other round numbers."""

    def near(other: float) -> bool:
        return abs(value - other) <= tolerance * other

    for k in (1, 2):
        if any(near(k / n) for n in (1, *sizes) if n):
            return 4 - k
    value = min(max(value, 1e-300), 1e300)
    powers = 10.0 ** round(math.log10(value)), 2.0 ** round(math.log2(value))
    small = 0.95 < value < 10.5 and near(round(value))
    return int(small or near(powers[0]) or (value > 100 and near(powers[1])))


def interleaved(one: Numbers) -> bool:
    """Whether repeated numbers that are not whole differ between the sides, but not their range."""
    many = sum(side.size for side in one.sides)
    if one.whole or not _FEW_VALUES <= one.values.size <= 0.1 * many:
        return False
    apart = []
    for side, other in (one.sides, one.sides[::-1]):
        inner = side[(side >= other[0]) & (side <= other[-1])]
        apart.append(inner.size > 0.5 * side.size and np.mean(~np.isin(inner, other)) > _OWN)
    return any(apart) if one.values.size >= _MANY_VALUES else all(apart)


def plainer(covered: float, shift: float, error: float, sizes: Sequence[int]) -> bool:
    """Whether noise covers a plainer shift than the observed one, or one as plain and far smaller.

    Where no noise fits, so that it is not known what it covers: whether the shift is not plain.
    """
    near = min(max(_NEAR, 2.5 * error / max(shift, 1e-300)), 0.2)
    observed = _plainness(shift, sizes, near)
    if math.isnan(covered):
        return observed < 2
    plain = _plainness(covered, sizes)
    return plain > observed or (plain == observed > 0 and shift > _FAR_LARGER * covered)


def shift_first(
    one: Numbers, pair: Pair | None, shift: float, covered: float, error: float
) -> bool:
    """Whether the sensitivity is more likely wrong than the noise: only their ratio shows.

    First is too little noise, unless the shift is larger than the sensitivity that the pair declares;
    of records, and of dates, unless the shift that the noise covers is the plainer number.
    """
    sizes = [len(each) for each in pair or () if hasattr(each, "__len__")]
    if pair is None or sizes or one.part.unit:
        unit = DAY if one.part.unit else 1.0
        return plainer(covered / unit, shift / unit, error / unit, sizes)
    if pair.relation is Relation.SENSITIVITY_ONE:
        return shift > 1.1
    try:
        return one.shift > 1.1 * abs(float(pair.first - pair.second))
    except (TypeError, ValueError, OverflowError):
        return False


def median_shift(x: FloatArray, y: FloatArray, level: float) -> float:
    """A lower limit of the distance of two medians, from order statistics: exact at every sample size.

    x₍ᵣ₎ is above the median only if at most r − 1 draws are at or below that: with probability
    P(Bin(n, ½) ≤ r − 1) at most. Both sides have a limit below and above, at level/4 each.
    """
    ends = []
    for side in (np.sort(x[~np.isnan(x)]), np.sort(y[~np.isnan(y)])):
        r = math.floor(bdtrik(level / 4, side.size, 0.5)) if side.size > 1 else 0
        if r < 1:
            return 0.0
        ends.append((side[r - 1], side[-r]))
    (x0, x1), (y0, y1) = ends
    return float(max(y0 - x1, x0 - y1, 0.0))


def within_errors(facts: Mapping[str, float]) -> bool:
    """Whether noise covers a shift within two standard errors of the shift and of the scale.

    The scale has half the relative error of the shift, in scales: 1 / √(2 n) against √(2 / n).
    """
    if "protected shift" not in facts:
        return False
    error, covered = facts["error of the shift"], facts["protected shift"]
    return facts["shift"] - covered <= 2 * math.hypot(error, covered * error / facts["scale"] / 2)


def of_factor(pair: Pair | None, factor: float) -> str:
    """What is added to a hint where the shift is so many times what the noise covers."""
    replaced = pair is not None and pair.relation is Relation.REPLACE_ONE
    return _REPLACED if replaced and 1.9 < factor < 2.1 else ""


def one_noise(several: Sequence[Numbers], claim: Claim) -> bool:
    """Whether parts have noise of one scale that is too small, and not each the noise of a release.

    A release of its own uses all of the claim, or has a scale of its own.
    """
    noises = [one.noise for one in several]
    known = [one for one in noises if one is not None and one.allowed(claim)]
    if len(known) < len(several) or len({one.family for one in known}) > 1:
        return False
    scales = np.array([one.scale for one in known])
    moved = np.array([one.moved(noise) for one, noise in zip(several, known, strict=True)])
    used, error = moved.T / scales / [one.allowed(claim) for one in known]
    if np.any(used > 1 + _NEAR + 2 * error):  # a part breaks the claim alone
        return True
    same = np.ptp(np.log(scales)) < _NEAR + 4 / math.sqrt(min(one.fewest for one in several))
    return bool(same and np.any(used < 1 - 2 * _NEAR - 2 * error))


def is_curve(claim: Claim) -> bool:
    """Whether a claim is a curve, as accountants give it, mostly of a subsampled mechanism."""
    return isinstance(claim, (TradeoffDP, RenyiCurveDP))


def one_sided(low: float, high: float) -> bool:
    """Whether an event of these probabilities, or its complement, nearly never comes on one input."""
    return low <= _NEVER * high or 1 - high <= _NEVER * (1 - low)


#: A number with the event that shows most, and how much it shows.
Weighed: TypeAlias = tuple[Condition, float, Numbers]


def best_thresholds(
    columns: Sequence[Numbers], claim: Claim, weigh: Callable[..., Any] = shown
) -> list[Weighed]:
    """The threshold of each column that shows most, and how much; one evaluation serves all."""
    if not columns:
        return []
    each = [one.thresholds() for one in columns]
    sizes = [found.size for found, _, _ in each]
    i, j = (np.concatenate([counts[side] for counts in each]) for side in (1, 2))
    n, m = (np.repeat([one.draws[side] for one in columns], sizes) for side in (0, 1))
    all_shown = np.split(weigh(claim, i, n, j, m), np.cumsum(sizes)[:-1])
    found = []
    for one, (thresholds, _, _), shows in zip(columns, each, all_shown, strict=True):
        top = int(np.argmax(shows))
        found.append((Condition(one.part, low=float(thresholds[top])), float(shows[top]), one))
    return found
