"""What training draws suggest: causes, the most specific first, each with the event that would show it.

Nothing here is certain. Which causes are looked at, in which part and in which order, is decided on
training draws alone; `diagnoses` says on others how sure each is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpassay._typing import IntArray
from dpassay.diagnosis.causes import CandidateCause
from dpassay.diagnosis.noise_fit import (
    LARGE_RATIO,
    MORE,
    Noise,
    Numbers,
    Weighed,
    best_thresholds,
    interleaved,
    is_curve,
    of_factor,
    one_noise,
    one_sided,
    plug_in,
    shift_first,
    shown,
    within_errors,
)
from dpassay.diagnosis.parts import (
    SIZE,
    Condition,
    Part,
    cells,
    coincide,
    combined,
    coordinates,
    equal,
    failing,
    fails,
    featured,
    in_bits,
    in_words,
    keys,
    labelled,
    labels,
    missing,
    of_order,
    sorted_difference,
    structure_codes,
    structures,
    witnessed,
)
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event
from dpassay.outputs.named_features import Feature
from dpassay.outputs.templates import NUMBER, Template, number_columns, paths
from dpassay.privacy.claims import ApproximateDP, Claim
from dpassay.privacy.relations import Pair
from dpassay.results.explanations import Fault

#: Coordinates, labels and features that are looked at, at most.
_COLUMNS, _LABELS, _FEATURES = 48, 300, 5
#: Outputs have no noise if they are the same so often.
_CONSTANT = 0.998
#: Where a part of the output is missing more often, its value does not come back nearly every time.
_EVERY_TIME = 0.9
#: A value that comes so often, and is the witness, is passed through.
_PASSED = 8
#: The error probability at which keys and failures are weighed: each stands for itself, and rare ones
#: are to be named too. Thresholds of numbers, of which the best is taken, are weighed with less.
_LAX = 0.2
#: The part of a condition, or of its complement, by which the event of the witness may differ from it.
_NEARLY = 0.1
#: The part of the claimed parameter from which on a coordinate tells something.
_TELLING = 0.25
_SAME = 0.99  # the correlation from which on coordinates share their noise
#: Numbers of at most this many different values are categories.
CATEGORIES = 7
_RATIO = 1.2  # from which on spreads differ
#: What may follow from noise, or losses, that spread differently.
_FOLLOWING = (Fault.REPRESENTATION, Fault.SUPPORT, Fault.DELTA)
#: Noise is too small if the claim needs so much more of it.
_EXCESS = 1.02
#: Doubles above this have no digits left for noise: a huge input alone may make outputs constant.
_NOISE_LOST = 2.0**53
#: What is added to a hint where several parts leak in the same outputs.
_COPIED = ", or a record that is copied into the output"
#: The hint where the values of the inputs are multiples of different numbers.
_DIVIDED = "a denominator, a weight or a factor that is computed from the data without noise"
#: Hits that noise would give an event so that none of them is no accident: e⁻⁵ < 0.01.
_EXPECTED = 5


@dataclass(frozen=True)
class CandidateCauses:
    """Training draws, the claim that they refute, the event of the witness, and the pair."""

    p: Outputs
    q: Outputs
    claim: Claim
    event: Event | None
    pair: Pair | None
    features: Sequence[Feature] = ()
    bits: Event | None = None  # of the floating-point representation, where it is not the witness

    def all(self) -> list[CandidateCause]:
        """Every cause that the draws suggest, the most specific first, each kind once."""
        found = self._on_grids()
        if found:
            pass
        elif self.event is not None and self.event.of_representation:
            if not self._in_structures:
                found.append(CandidateCause(Fault.REPRESENTATION, witnessed(self.event)))
        elif self.bits is not None:
            found.append(CandidateCause(Fault.REPRESENTATION, in_bits(self.bits)))
        found += self._structural()
        # where all outputs have one structure the cause is in the numbers
        lost = any(one.kind in (Fault.SUPPRESSION, Fault.FAILURE) for one in found)
        numerical = self._numerical(sure=not found and len(self._structures[0]) == 1, lost=lost)
        found += [one for one in numerical if not (found and within_errors(one.facts))]
        if not found and self.event is not None:  # the witness is all there is
            found = self._suppression(least=0.0) + self._categorical(witnessed(self.event))
        spread = [one for one in found if one.kind is Fault.DATA_DEPENDENT_SCALE][:1]
        if spread and spread[0].facts["ratio"] > LARGE_RATIO:  # which the bits and the ends follow
            of_shift = sorted(found, key=lambda one: one.kind in _FOLLOWING)
            found = of_shift if spread[0].qualified else spread + found
        first: dict[Fault, CandidateCause] = {}
        for one in found:
            first.setdefault(one.kind, one)
        return list(first.values())

    @cached_property
    def _structures(self) -> tuple[list[Template], IntArray]:
        return structures(self.p, self.q)

    @property
    def _in_structures(self) -> bool:
        """Whether the structures of the outputs in the event show as much: a key that is there or not."""
        assert self.event is not None
        sides = [structure_codes(side) for side in (self.p, self.q)]
        held = [self.event.holds(side) for side in (self.p, self.q)]
        inside = np.unique(np.concatenate([c[h] for c, h in zip(sides, held, strict=True)]))
        alone = self._weighed([np.isin(codes, inside).sum() for codes in sides])
        return bool(alone >= 0.9 * self._weighed([h.sum() for h in held]))

    def _breaks(self, theta: float) -> bool:
        return theta > self.claim.value

    def _weighed(self, hits: Any) -> Any:
        """What events with these counts show."""
        i, j = np.round(hits).astype(np.int64)
        return shown(self.claim, i, len(self.p), j, len(self.q), _LAX)

    def _alone(self, condition: Condition) -> float:
        """What an event shows."""
        return float(self._weighed([condition.holds(side).sum() for side in (self.p, self.q)]))

    def _best(self, parts: Iterable[Part]) -> list[Weighed]:
        return best_thresholds([Numbers(part, self.p, self.q) for part in parts], self.claim)

    def _categorical(self, condition: Condition) -> list[CandidateCause]:
        """An event of categories: about their order, on one side only, or with a finite ratio."""
        low, high = sorted(float(condition.holds(side).mean()) for side in (self.p, self.q))
        if condition.part.name in of_order(self.features, self.event):
            kinds = [Fault.ORDER_OR_SIZE]
        elif one_sided(low, high):
            kinds = [Fault.SUPPORT]
            point = self.claim.point
            if point is not None and point[1] > 0 and min(high, 1 - low) < 0.5:
                kinds = [Fault.DELTA, Fault.SUPPORT]
        else:
            kinds = [Fault.SCALE, Fault.SHIFT]
        return [CandidateCause(kind, condition) for kind in kinds]

    # --- structures

    def _structural(self) -> list[CandidateCause]:
        """Failures, the order and the number of values, outputs without noise, keys and categories."""
        kinds, counts = self._structures
        if len(kinds) == 1:
            return []
        top = np.argsort(-counts.sum(axis=0), kind="stable")
        kinds, counts = [kinds[k] for k in top], counts[:, top]
        suppression = self._suppression()
        if suppression:
            event = suppression[0].condition
            other = witnessed(self.event) if self.event is not None else event
            more = self._alone(other) > MORE * self._alone(event)
            also = self._categorical(other) if more else []
            return self._labels(kinds, counts, event) + suppression + also
        bad = [k for k, one in enumerate(kinds) if fails(one)]
        for failure in [failing(kinds[k]) for k in bad[:1]]:
            broken = self._breaks(self._weighed(counts[:, bad].sum(axis=1)))
            if broken or self._is_witness(failure):  # more draws have counted the witness
                return [CandidateCause(Fault.FAILURE, failure)]
        found = []
        share = counts / [[len(self.p)], [len(self.q)]]
        apart = share[0] - share[1]
        most = int(np.argmax(np.abs(apart)))
        if sorted_difference(kinds, apart) < 0.25 * np.abs(apart).sum() > 0.1:
            found.append(CandidateCause(Fault.ORDER_OR_SIZE, equal(kinds[most])))
        a, b = np.argmax(share, axis=1).tolist()
        plain = not number_columns(kinds[a]) and not number_columns(kinds[b])
        if share.max(axis=1).min() > _CONSTANT and a != b and plain:
            found.append(CandidateCause(Fault.NO_NOISE, equal(kinds[a])))
        return found + self._labels(kinds, counts)

    def _suppression(self, least: float | None = None) -> list[CandidateCause]:
        """More values under a key of all outputs are missing on one input, enough to break the claim.

        A text, such as *, is missing too where an input has more numbers than texts.
        """
        kinds, counts = self._structures
        keys = sorted(frozenset.intersection(*(frozenset(cells(one)) for one in kinds)))[:_COLUMNS]
        words = {k: counts @ np.array([cells(one)[k][2:] for one in kinds]) for k in keys}
        shares = self._best(missing(k, bool(np.any(n[:, 1] > n[:, 0]))) for k, n in words.items())
        best = max(shares, key=lambda one: one[1], default=None)
        if best is None or best[1] <= (self.claim.value if least is None else least):
            return []
        suppressed = CandidateCause(Fault.SUPPRESSION, in_words(best[0]))
        also = self._categorical(suppressed.condition)
        return [suppressed, *(one for one in also if one.kind is Fault.DELTA)]

    def _labels(
        self, kinds: Sequence[Template], counts: Any, beside: Condition | None = None
    ) -> list[CandidateCause]:
        """Keys and values that tell more than `beside`; or the number of values, if it tells more."""
        condition, by_size, _ = self._best([SIZE])[0]
        often: dict[tuple[str, str], Any] = {}
        for one, of_one in zip(kinds, counts.T, strict=True):
            for each in labels(one):
                often[each] = often.get(each, 0) + of_one
        apart = {each: abs(i / len(self.p) - j / len(self.q)) for each, (i, j) in often.items()}
        records = all(one[0] == "dict" for one in kinds)  # of which some lack a key
        keyed = frozenset[tuple[str, str]]().union(*map(keys, kinds if records else ()))
        listed = sorted(often, key=lambda each: (-apart[each], each not in keyed, each))[:_LABELS]
        hits = np.array([often[each] for each in listed]).reshape(-1, 2)
        weighed = self._weighed(hits.T) if listed else np.zeros(1)
        best = int(np.argmax(weighed))
        if beside is not None and weighed[best] <= MORE * self._alone(beside):
            return []
        found = []
        label = labelled(listed[best]) if listed else condition
        broken = self._breaks(weighed[best])
        if broken or self._is_witness(label):  # more draws have counted the witness
            label = label if broken or self.event is None else witnessed(self.event)
            found = self._categorical(label)
            both = found[0].kind in (Fault.SCALE, Fault.SHIFT)
            if both and listed and listed[best] in keyed:
                found = [CandidateCause(Fault.SUPPRESSION, label), *found[:1]]
            elif self._for_a_number(label, both):
                delta = [one for one in found if one.kind is Fault.DELTA]
                found = [CandidateCause(Fault.SUPPRESSION, label), *delta]
        if self._breaks(by_size) and weighed[best] < 0.9 * by_size:
            found = [CandidateCause(Fault.ORDER_OR_SIZE, condition), *found]
        return found

    def _for_a_number(self, label: Condition, both: bool) -> bool:
        """Whether it comes where most outputs have a number: on `both` inputs, of either, or None."""
        kinds, counts = self._structures
        path, equals, value = label.code.partition(" == ")
        at = [bool(equals) and dict(paths(one)).get(path) == NUMBER for one in kinds]
        shares = counts[:, at].sum(axis=1) / counts.sum(axis=1)
        return bool(shares.max() > 0.5 or value == "None") if both else bool(shares.mean() > 0.5)

    # --- numbers

    def _numerical(self, *, sure: bool, lost: bool = False) -> list[CandidateCause]:
        """Causes in the numbers; unless `sure`, only if they break the claim by themselves.

        If values are `lost`, a cause by itself, only numbers that all outputs have are looked at.
        """
        columns = best_thresholds([x for x in self._columns if not x.on_other_grids], self.claim)
        if lost:
            columns = [one for one in columns if one[2].draws == tuple(map(len, one[2].sides))]
        most = max((theta for _, theta, _ in columns), default=0.0)
        found: list[CandidateCause] = []
        if len(columns) > 1:
            found = self._joint(columns, sure=sure)
        elif columns and (sure or self._breaks(most)):
            found = self._single(columns[0])
        shared = any(one.kind is Fault.DEPENDENCE for one in found)
        if shared or not sure or self._breaks(most):
            return found
        named = self._best(map(featured, self.features[:_FEATURES]))
        best = max(named, key=lambda one: one[1], default=None)
        if best is None or not self._breaks(best[1]):
            return found
        own = self._categorical(best[0])
        return (self._scales(best, ()) if own[-1].kind is Fault.SHIFT else own) + found

    def _on_grids(self) -> list[CandidateCause]:
        """Values of the inputs that are multiples of different numbers."""
        for one in (column for column in self._columns if column.on_other_grids):
            value, theta = one.best_value(self.claim)
            if self._breaks(theta) or (len(self._columns) == 1 and self.event is not None):
                shows = (
                    value if self._breaks(theta) or self.event is None else witnessed(self.event)
                )
                return [CandidateCause(Fault.SUPPORT, shows, hint=_DIVIDED, qualified=True)]
        return []

    @cached_property
    def _columns(self) -> list[Numbers]:
        """The coordinates of the structure that both sides have most."""
        kinds, counts = self._structures
        both = counts.min(axis=0)
        if both.max() < 20:
            return []
        near = self.p if self.p.rest is not None else self.q
        parts = coordinates(kinds[int(np.argmax(both))], near)
        columns = [Numbers(part, self.p, self.q) for part in parts[: 8 * _COLUMNS]]
        if len(columns) > _COLUMNS:
            columns.sort(key=lambda one: -one.shift / max(*one.spreads, 1e-300))
        return columns[:_COLUMNS]

    def _joint(self, columns: Sequence[Weighed], *, sure: bool) -> list[CandidateCause]:
        """Several coordinates: noise that they share, one that leaks, or leaks that add up."""
        columns = [
            (*x.or_value(condition, shows, self.claim), x) for condition, shows, x in columns
        ]
        theta = np.array([one for _, one, _ in columns])
        best = columns[int(np.argmax(theta))]
        single_value = best[0].low == best[0].high and best[1] > MORE * np.sort(theta)[-2]
        found = self._shared(columns, float(theta.max()))
        telling = [one for one in columns if one[1] > _TELLING * self.claim.value]
        guilty = [one for one in columns if self._breaks(one[1])]
        together = sum(shown for _, shown, _ in telling)  # about the most that the parts can show
        if not guilty and (len(telling) < 2 or not (sure or together > self.claim.value)):
            return found
        single = self._single(best, [one for _, _, one in telling])
        if not guilty:  # nor does an event of one part
            single = [one for one in single if not one.event_alone]
            parts = tuple(condition for condition, _, _ in telling)
            alone = one_noise([one for _, _, one in telling], self.claim) * len(single[:1])
            several = CandidateCause(Fault.COMPOSITION, best[0], parts=parts)
            return [*found, *single[:alone], several, *single[alone:]]
        quiet = [one for one in columns if one[1] <= _TELLING * self.claim.value]
        if not quiet or (len(guilty) > 1 and not single_value):
            return found + single
        events = tuple(condition for condition, _, _ in columns)
        hint = _COPIED * coincide([one for one, _, _ in guilty], self.p, self.q)
        part = CandidateCause(Fault.UNPROTECTED, best[0], parts=events, hint=hint)
        others = float(np.median([max(one.spreads) for _, _, one in quiet]))
        small = max(best[2].spreads) * LARGE_RATIO < others and not any(best[2].constant)
        if small or single_value:
            return [*found, part, *single]
        known = len(single) if not any(best[2].constant) else 1
        return [*found, *single[:known], part, *single[known:]]

    def _shared(self, columns: Sequence[Weighed], most: float) -> list[CandidateCause]:
        """Two coordinates with the same noise, whose difference or sum shows more than either."""
        parts = [one.part for _, _, one in columns if not any(one.constant)]
        rest = []
        for side in (self.p, self.q):
            read = np.stack([part.read(side) for part in parts]) if parts else np.zeros((0, 1))
            read = read[:, ~np.isnan(read).any(axis=0)]
            rest.append(read - read.mean(axis=1, keepdims=True))
        with np.errstate(invalid="ignore", divide="ignore"):
            same = np.atleast_2d(np.nan_to_num(np.corrcoef(np.hstack(rest))))
        pairs = np.argwhere(np.triu(np.abs(same) > _SAME, 1))[:_COLUMNS].tolist()
        joint = self._best(combined(parts[a], parts[b], same[a, b] > 0) for a, b in pairs)
        best = max(joint, key=lambda one: one[1], default=None)
        if best is None or best[1] <= max(most, self.claim.value):
            return []
        return [CandidateCause(Fault.DEPENDENCE, best[0])]

    def _single(self, weighed: Weighed, several: Sequence[Numbers] = ()) -> list[CandidateCause]:
        """Causes in one number; `several` are those that carry the leak together."""
        condition, _, one = weighed
        found: list[CandidateCause] = []
        sides = zip(one.sides, one.sides[::-1], one.draws, one.modes, one.constant, strict=True)
        for side, other, draws, (value, _), constant in sides:
            exact = constant and side.size >= _EVERY_TIME * draws and abs(value) <= _NOISE_LOST
            if exact and np.mean(other == value) < 0.5 and not found:
                found.append(CandidateCause(Fault.NO_NOISE, Condition(one.part, value, value)))
        plain = len(self._columns) == 1 and one.values.size > CATEGORIES
        for value, share in one.modes if plain else ():
            same = Condition(one.part, value, value)
            inner = one.values[0] < value < one.values[-1]  # at an end numbers may be clipped
            if inner and share * one.fewest >= _PASSED and self._is_witness(same) and not found:
                found.append(CandidateCause(Fault.NO_NOISE, same))
        if one.values.size <= CATEGORIES:
            each = [Condition(one.part, value, value) for value in one.values.tolist()]
            shows = one.weighed(each, self.claim)
            broken = self._breaks(shows.max())
            return found + self._categorical(each[int(np.argmax(shows))] if broken else condition)
        if condition.low == condition.high:
            return found + self._categorical(condition)
        if self.event is not None and interleaved(one):
            found.append(CandidateCause(Fault.REPRESENTATION, witnessed(self.event)))
        ends = [(one.weigh(end, self.claim), end) for end in one.beyond_ends()]
        far = one.far_on_one_side()
        alone = [
            (math.inf if self._is_witness(value) else one.weigh(value, self.claim, _LAX), value)
            for value in far
        ]
        theta, end = max([*ends, *alone], key=lambda end: end[0], default=(0.0, condition))
        if end not in far and self._cut_off(one) and self.event is not None:
            theta, end = math.inf, witnessed(self.event)
        if self._breaks(theta) and not any(one.constant):
            found += self._categorical(end)
        return found + self._scales(weighed, several)

    def _cut_off(self, one: Numbers) -> bool:
        """Whether the witness never happens on one input, where fitted Laplace noise gives it hits."""
        noise = one.noise
        if self.event is None or self.event.of_representation:
            return False
        if noise is None or noise.family != "Laplace" or not one.same_noise:
            return False
        low, high = sorted(self.event.count(side) for side in (self.p, self.q))
        return low == 0 and high * math.exp(-one.shift / noise.scale) > _EXPECTED

    def _is_witness(self, condition: Condition) -> bool:
        """Whether it is the event of the witness on nearly all of these draws, or its complement."""
        if self.event is None:
            return False
        event, own = (np.append(x.holds(self.p), x.holds(self.q)) for x in (self.event, condition))
        off, smaller = np.mean(event != own), min(own.mean(), 1 - own.mean())
        return bool(min(off, 1 - off) <= _NEARLY * smaller)

    def _scales(self, weighed: Weighed, several: Sequence[Numbers]) -> list[CandidateCause]:
        """Spreads that differ, a shift that is too large, or noise that is too small."""
        one = weighed[2]
        low, high = sorted(one.spreads)
        ratio = max(high, 1e-300) / max(low, 1e-300)
        found: list[CandidateCause] = []
        # a mixture, as of subsampling, spreads more widely where it is moved
        mixture = is_curve(self.claim) and one.shift >= 0.5 * high
        shifted = mixture or not one.crossing
        # about four standard errors of log
        error = 7.0 / math.sqrt(one.fewest)
        # noise below the grid of whole numbers, which may be truncated, has no spread of its own
        spread = not (one.atoms or any(one.constant) or (one.whole and low < 1))
        if spread and math.log(ratio) > max(math.log(_RATIO), error):
            half = math.sqrt(low * high)
            first, second = (Condition(one.part, c - half, c + half) for c in one.centres)
            kind, facts = Fault.DATA_DEPENDENT_SCALE, {"ratio": ratio}
            found = [CandidateCause(kind, first, second, facts=facts, qualified=shifted)]
        moved = self._moved(one, several, one.noise if ratio < LARGE_RATIO or not spread else None)
        if not found and not one.shift:
            return self._categorical(weighed[0])
        if shifted:
            return moved + found
        after = int(ratio < LARGE_RATIO and one.shift >= 0.5 * high)
        return moved[:after] + found + moved[after:]

    def _moved(
        self, one: Numbers, several: Sequence[Numbers], noise: Noise | None
    ) -> list[CandidateCause]:
        """A shift against the noise: which of the two is wrong draws do not tell."""
        condition = Condition(one.part, low=sum(one.centres) / 2)
        shift = one.shift
        allowed, mixed = 0.0 if noise is None else noise.allowed(self.claim), not one.same_noise
        hopeless = allowed == 0 and self.claim.point is not None  # no scale keeps the claim
        fits = noise is not None and noise.scale and math.isfinite(shift)
        if noise is None or not fits or (mixed and not hopeless):
            plain = CandidateCause(Fault.SHIFT, condition, facts={"shift": shift}, qualified=mixed)
            pair = [plain, replace(plain, kind=Fault.SCALE)]
            error = max(one.spreads) * math.sqrt(2 / one.fewest)
            return (
                pair if mixed or shift_first(one, self.pair, shift, math.nan, error) else pair[::-1]
            )
        shift, error = one.moved(noise)
        many = 1
        if len(several) > 1 and np.ptp([max(s.spreads) for s in several]) < 0.3 * max(one.spreads):
            many, norm = len(several), 2 if noise.family == "Gaussian" else 1
            shift = float(np.linalg.norm([s.moved(noise)[0] for s in several], norm))
        facts = {"shift": shift, "scale": noise.scale, "parts": many, "error of the shift": error}
        if hopeless and self.claim.point is not None:
            in_delta = ApproximateDP(self.claim.point[0], 0.0, headline="delta")
            epsilon = np.array([in_delta.epsilon])
            facts["delta"] = float(noise.profile(shift / noise.scale, epsilon)[0])
            [(condition, _, _)] = best_thresholds([one], in_delta, plug_in)
            kind = Fault.DELTA
            return [CandidateCause(kind, condition, noise=noise, facts=facts, qualified=mixed)]
        if shift <= _EXCESS * noise.scale * allowed:
            return []
        covered = noise.scale * allowed
        facts |= {"protected shift": covered, "needed scale": shift / max(allowed, 1e-9)}
        kinds = (Fault.SHIFT, Fault.SCALE)
        hint = of_factor(self.pair, shift / covered)
        pair = [
            CandidateCause(kind, condition, noise=noise, facts=facts, hint=hint) for kind in kinds
        ]
        return pair if shift_first(one, self.pair, shift, covered, error) else pair[::-1]
