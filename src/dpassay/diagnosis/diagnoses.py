"""`diagnose`: what the draws say about the cause of a violation; `belief`: what it means for a person.

Training draws chose the suspicions, testing draws that were kept back them. Each suspicion has an equal
share of γ, the error probability of the verdict, which is spent once more: all that is said to be exact
holds with probability 1 − γ, over all audits, those included that find no violation and say nothing.
Diagnosis and verdict share draws, not error probability: together they hold with probability 1 − 2γ.
Where testing draws chose the event or the pair that is spoken of, each that they chose from has its part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpassay._typing import FloatArray
from dpassay.diagnosis.candidate_causes import CATEGORIES, CandidateCauses
from dpassay.diagnosis.causes import CandidateCause
from dpassay.diagnosis.noise_fit import is_curve, limits, median_shift, one_sided, plug_in, shown
from dpassay.diagnosis.parts import WITNESS, Condition, Kept, coordinates, joined, short, some
from dpassay.learning.cross_fit import CrossFit
from dpassay.outputs.events import Event
from dpassay.outputs.named_features import Feature
from dpassay.outputs.templates import told_apart
from dpassay.privacy.claims import ApproximateDP, Claim
from dpassay.privacy.provenance import Guarantee
from dpassay.privacy.relations import Pair
from dpassay.privacy.tradeoff_claims import CHORDS
from dpassay.results.explanations import ALONE, SHARES, Belief, Explanation, Fault, Picture, leading
from dpassay.results.witness import Witness
from dpassay.rounding import number, rounded_down, rounded_up
from dpassay.sampling.samples import Batch

#: Explanations that are given.
_GIVEN = 3
#: Bins of a picture, and bars.
_BINS, _BARS = 48, 12
#: Parts of the output that are listed.
_LISTED = 4
#: A part that shows so much of the claimed parameter may use all of it.
_WHOLE = 0.75
#: The name of the lower limit of a shift.
_AT_LEAST = "shift of the median, at least"
#: How the sentence about an event begins.
_BEGINNINGS = {
    Fault.NO_NOISE: "the same value comes back: ",
    Fault.DEPENDENCE: "the same noise is in both: ",
    Fault.DELTA: "outputs that δ does not pay for: ",
    Fault.SCALE: "the outputs differ more than the claim allows, consistent with too little noise: ",
    Fault.SHIFT: "the outputs differ more than the claim allows, consistent with one record that "
    "changes the result by more than the noise covers: ",
}
#: From this ratio on one of two ratios is the larger one.
_LARGER = 1.1
_NOT_WITNESS = "the witness event does not happen"
#: Kinds of an event of which it is told whether it happens or not.
_EITHER = (Fault.SUPPORT, Fault.DELTA, Fault.SCALE, Fault.SHIFT)
#: What qualifies a spread where the quantile functions do not cross, and a shift that is not all.
_ORDERED = (
    "; one of several readings: a loss, another function of shifted noise, or a mixture, as of "
    "subsampling, spreads so too"
)
_MIXED = (
    " (the spread or the skewness changes too, as with subsampling or with scores of an attack)"
)
#: How the sentence begins where values of the inputs lie on different grids.
_ON_GRIDS = (
    "the outputs of the two inputs take different values in one range, consistent with multiples of "
    "different numbers, as where a count is divided by an exact total: "
)
#: The hint where the claim is a curve.
_ACCOUNTED = "; of an accountant's curve also the sampling rate, noise multiplier and steps"


def diagnose(
    train: Batch,
    test: Kept,
    claim: Claim,
    pair: Pair | None,
    witness: Witness | None,
    gamma: float,
    guarantee: Guarantee,
    *,
    features: Sequence[Feature] = (),
    chosen: int = 1,
    claimed: bool = True,
    bits: Event | None = None,
) -> tuple[Explanation, ...]:
    """The few explanations that the draws support, the strongest first.

    train      draws that the search used, which choose the explanations
    test       draws that it did not use, which back them; without any, all of it is heuristic
    witness    the event that refutes the claim, with its counts
    gamma      the error probability of all that is said to be exact
    features   named features that a search found telling
    chosen     from how many events or pairs the testing draws chose this one
    claimed    whether somebody made the claim; else nothing is said of what it needs or allows
    bits       an event of the floating-point representation that shows what refutes the claim
    """
    seen = some(train.p, train.q)
    with np.errstate(all="ignore"):  # numbers may be as large as a double
        event = None if witness is None else witness.event
        candidates = CandidateCauses(seen.p, seen.q, claim, event, pair, features, bits).all()
        if not claimed:
            candidates = _without_claim(candidates)
        if CHORDS in claim.notes:  # the curve that the points are of may be kept
            candidates = [one for one in candidates if one.kind not in (Fault.SCALE, Fault.SHIFT)]
        candidates = list(leading(candidates, _GIVEN))
        fresh = joined(test) if test else seen
        stated = guarantee if test else Guarantee.HEURISTIC
        level = gamma / max(len(candidates), 1)
        given = fresh, claim, witness, level / chosen, stated, 1 - level
        candidates = _on_one_side(candidates, [_Test(one, *given, False) for one in candidates])
        tests = [_Test(one, *given, k == 0, claimed) for k, one in enumerate(candidates)]
        found = [test.explanation() for test in tests]
    told: list[Condition] = []
    for k, (one, explanation) in enumerate(zip(candidates, found, strict=True)):
        if explanation is not None and one.event_alone:
            if one.condition in told and one.kind in _BEGINNINGS:  # its counts have been said
                beginning = _BEGINNINGS[one.kind].rpartition(", ")[2].removesuffix(": ")
                found[k] = replace(explanation, sentence=f"{beginning}: the same event")
            told.append(one.condition)
    none = Explanation(kind=Fault.NONE, sentence="no cause is suggested by these outputs")
    return tuple(filter(None, found)) or (none,)


def _on_one_side(candidates: list[CandidateCause], tests: Sequence[_Test]) -> list[CandidateCause]:
    """Without support where testing draws have the event on both inputs: too little noise is likelier.

    What is stated of an event stays the same, so that this choice on testing draws costs nothing.
    """
    both = [one for one, test in zip(candidates, tests, strict=True) if test.on_both]
    rest = [one for one in candidates if one not in both]
    if not both or {Fault.SCALE, Fault.SHIFT} & {one.kind for one in rest}:
        return rest
    pair = [replace(both[0], kind=kind) for kind in (Fault.SCALE, Fault.SHIFT)]
    first = candidates.index(both[0])
    return [*rest[:first], *pair, *rest[first:]]


def _without_claim(candidates: Sequence[CandidateCause]) -> list[CandidateCause]:
    """Without causes that only a claim makes such; a shift and its noise once."""
    kinds = [one.kind for one in candidates]
    wrong = {Fault.DELTA, Fault.COMPOSITION}
    if Fault.SCALE in kinds and Fault.SHIFT in kinds:
        wrong.add(max(Fault.SCALE, Fault.SHIFT, key=kinds.index))
    return [one for one in candidates if one.kind not in wrong]


@dataclass
class _Test:
    """One suspicion on draws that did not suggest it."""

    one: CandidateCause
    batch: Batch
    claim: Claim
    witness: Witness | None
    level: float
    guarantee: Guarantee
    confidence: float
    pictured: bool
    claimed: bool = True
    numbers: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = i, n, j, m = self._counts(self.one.condition)
        of_event = self.one.event_alone and self.one.kind in _EITHER
        sided = one_sided(*sorted((i / n, j / m)))
        self.on_both = (
            of_event and self.one.kind in _EITHER[:2] and not (sided or self.one.qualified)
        )
        _, _, low, high = self._limits(self.counts)
        #: Whether it is told how often the event does not happen: these have the larger ratio.
        self.negated = of_event and low > high and high * (1 - high) > _LARGER * low * (1 - low)
        if self.negated:
            self.counts = n - i, n, m - j, m

    def explanation(self) -> Explanation | None:
        """What can be said of it; nothing of an event alone that tells no input from the other."""
        one = self.one
        event_alone = one.event_alone
        _, _, low, high = self._limits(self.counts)
        if event_alone and low <= high:
            return None
        breaks = shown(self.claim, *self.counts, self.level) > self.claim.value
        if self.claimed and event_alone and one.kind in _EITHER[2:] and not breaks:
            said = f"{_BEGINNINGS[one.kind]}the witness event shows it"
            return Explanation(kind=one.kind, sentence=said, hint=self._hint)
        if not event_alone:  # two statements: of the event, and of spreads, parts or a shift
            self.level /= 2
        self.numbers = {**one.facts, ALONE: float(shown(self.claim, *self.counts, self.level))}
        self._limits(self.counts)
        if one.other is not None:
            sentence, exact = self._spreads(one.other)
            if not exact:  # the limits do not tell the spreads apart
                return None
        elif one.parts:
            sentence, exact = self._parts()
            if not sentence:
                return None
        elif one.facts:
            sentence, exact = self._moved()
            if one.noise is None and not self.numbers[_AT_LEAST]:  # the limits show no shift
                return None
        else:
            sentence, exact = self._event(), True
        code = one.condition.expression if one.other is None else ""
        exact = exact and self.guarantee is not Guarantee.HEURISTIC
        return Explanation(
            kind=one.kind,
            sentence=sentence,
            hint=self._hint,
            part=short(one.condition.part.name),
            condition=f"not ({code})" if code and self.negated else code,
            numbers=tuple(self.numbers.items()),
            guarantee=self.guarantee if exact else Guarantee.HEURISTIC,
            confidence=self.confidence if exact else None,
            picture=self._picture() if self.pictured else None,
        )

    @property
    def _hint(self) -> str:
        """Where to look."""
        added = (self.one.hint + _ACCOUNTED * self._of_curve) * self.claimed
        if self.one.kind is Fault.SUPPORT and self.one.qualified:
            return self.one.hint
        return self.one.kind.hint + added

    @property
    def _of_curve(self) -> bool:
        """Whether the claim is a curve, and the cause may be one of its parameters."""
        return is_curve(self.claim) and self.one.kind in (Fault.SHIFT, Fault.SCALE)

    def _counts(
        self, condition: Condition, other: Condition | None = None
    ) -> tuple[int, int, int, int]:
        """Hits and draws on either side: of the witness in all draws that tested it."""
        if condition.part.name == WITNESS and self.witness is not None:
            return self.witness.counts
        p, q = self.batch.p, self.batch.q
        i = int(np.count_nonzero(condition.holds(p)))
        return i, len(p), int(np.count_nonzero((other or condition).holds(q))), len(q)

    def _limits(self, counts: tuple[int, int, int, int]) -> tuple[str, str, float, float]:
        """On which input an event is likelier, on which not, and how likely at least and at most."""
        i, n, j, m = counts
        (p0, p1), (q0, q1) = limits(i, n, self.level / 2), limits(j, m, self.level / 2)
        self.numbers |= dict(zip(SHARES, (i / n, j / m), strict=True))
        if i * m >= j * n:
            return "first", "second", float(p0), float(q1)
        return "second", "first", float(q0), float(p1)

    def _event(self) -> str:
        """An event that is much likelier on one side."""
        one, counts = self.one, self.counts
        likelier, other, low, high = self._limits(counts)
        i, n, j, m = counts
        a, b = (i / n, j / m) if likelier == "first" else (j / m, i / n)
        what = one.condition.words
        if self.negated:
            what = f"not: {what}".replace("not: the witness event happens", _NOT_WITNESS)
        if one.kind is Fault.SUPPORT and one.qualified:
            what = _ON_GRIDS + what
        if one.kind is Fault.REPRESENTATION:
            what = f"low-order bits of the numbers tell the inputs apart: {what}"
        if one.kind is Fault.SUPPRESSION and one.condition.part.name not in (what, WITNESS):
            sides = (one.condition.part.read(side) for side in (self.batch.p, self.batch.q))
            first, second = (number(100 * float(np.nanmean(side))) for side in sides)
            missing = f"{first}% on the first input and {second}% on the second"
            what = f"{one.condition.part.name}: {missing}; {what}"
        never = f"in {number(100 * b)}%" if b else "never"
        beginning = _BEGINNINGS.get(one.kind, "") * self.claimed
        said = (
            f"{beginning}{what} in {number(100 * a)}% of the outputs on the "
            f"{likelier} input (at least {rounded_down(100 * low)}%), {never} on the {other} (at most "
            f"{rounded_up(high, 100)}%)"
        )
        if one.kind is Fault.DELTA and self.claim.point is not None:
            epsilon = self.claim.point[0]
            delta = max(0.0, low - math.exp(epsilon) * high)
            self.numbers["delta, at least"] = delta
            takes = f"; at ε = {number(epsilon)} that takes δ ≥ {rounded_down(delta)}"
            return said + takes * (delta > 0)
        theta = self.numbers[ALONE]
        if theta > self.claim.value:
            said += f"; this alone shows {self.claim.symbol} ≥ {rounded_down(theta)}"
        return said

    def _spreads(self, other: Condition) -> tuple[str, bool]:
        """The outputs lie closer together on one input."""
        one = self.one
        narrow, wide, low, high = self._limits(self._counts(one.condition, other))
        half = (one.condition.high - one.condition.low) / 2
        said = (
            f"{one.condition.part.name} spreads about {number(one.facts['ratio'])} times as widely on "
            f"the {wide} input: within {one.condition.part.by(half)} of its median lie at least "
            f"{rounded_down(100 * low)}% of the outputs on the {narrow} input and at most "
            f"{rounded_up(high, 100)}% on the {wide}"
        )
        return said + _ORDERED * one.qualified, low > high

    def _parts(self) -> tuple[str, bool]:
        """What each part shows by itself."""
        one, level, symbol = self.one, self.level / len(self.one.parts), self.claim.symbol
        alone = (float(shown(self.claim, *self._counts(c), level)) for c in one.parts)
        ranked = sorted(zip(alone, (c.part.name for c in one.parts), strict=True), reverse=True)
        self.numbers |= {f"certified by {name}": theta for theta, name in ranked}
        if one.kind is Fault.UNPROTECTED:
            (most, name), (next_most, _) = ranked[:2]
            said = (
                f"{name} alone shows {symbol} ≥ {rounded_down(most)}; no other number shows more than "
                f"{symbol} ≥ {rounded_down(next_most)} by one threshold or value"
            )
            return said, most > self.claim.value
        listed = ", ".join(
            f"{symbol} ≥ {rounded_down(theta)} by {name}" for theta, name in ranked[:_LISTED]
        )
        said = (
            f"no part is shown to break the claim alone, and together they do ({listed}"
            f"{' …' * (len(ranked) > _LISTED)}): "
        )
        w, parts = self.witness, f"{len(ranked)} parts that each use all of {symbol}"
        together = 0.0 if w is None else float(shown(self.claim, *w.counts, self.level))
        if together > len(ranked) * self.claim.value:
            why = "look for parts that share their noise, or for a part without noise"
            said = f"{said}they show {symbol} ≥ {rounded_down(together)}"
            return f"{said}. With independent noise {parts} would show less: {why}", False
        if ranked[-1][0] >= _WHOLE * self.claim.value:
            return f"{said}consistent with {parts}", False
        sizes = (np.unique(c.part.read(self.batch.p)).size for c in one.parts)
        if max(sizes) <= CATEGORIES:  # as the answers of a sparse vector, which share their noise
            return "", False
        return f"{said}the parts together use more than the claim", False

    def _moved(self) -> tuple[str, bool]:
        """The median moves further than the noise hides."""
        one, facts, noise = self.one, self.one.facts, self.one.noise
        part = one.condition.part
        sides = part.read(self.batch.p), part.read(self.batch.q)
        self.numbers[_AT_LEAST] = low = median_shift(*sides, self.level)
        least = part.by(low, rounded_down)
        if facts.get("parts", 1) > 1:
            moved = f"{facts['parts']:.0f} parts move by about {part.by(facts['shift'])} together"
            moved += f" (the median of {part.name} by at least {least})"
        else:  # of the draws that the limit is of, so that neither contradicts the other
            middle = [float(np.nanmedian(side)) for side in sides]
            about = part.by(abs(middle[1] - middle[0]))
            moved = f"the median of {part.name} moves by about {about}, at least {least}"
        moved += _MIXED * one.qualified
        fits = ""
        if noise is not None:
            fits = "close to" if one.qualified else "consistent with"
            fits += f" {noise.family} noise of scale {part.by(noise.scale)}"
        if not self.claimed:
            for name in ("needed scale", "protected shift"):
                self.numbers.pop(name, None)
            return "; ".join(filter(None, (moved, fits))), False
        if noise is None:
            little = "consistent with too little noise"
            little += " or too large a sampling rate" * (one.qualified and self._of_curve)
            large = "the noise is too small to hide a shift of this size"
            if one.qualified and self._of_curve:
                large = "the shift is too large, or the noise is too small: draws do not tell which"
            return f"{moved}; {little if one.kind is Fault.SCALE else large}", False
        if one.kind is Fault.DELTA and self.claim.point is not None:
            epsilon = self.claim.point[0]
            holds = f"at ε = {number(epsilon)} it takes δ ≈ {number(self._delta(epsilon))} or more"
            return f"{fits}, which keeps {self.claim.short} at no scale; {holds}", False
        needed, covered = facts["needed scale"], facts["protected shift"]
        if one.kind is Fault.SCALE:
            shift = part.by(facts["shift"])
            if facts["parts"] == 1:
                error = float(f"{facts['error of the shift']:.2g}")
                shift += f" (standard error {part.by(error)})"
            at = f"for the estimated shift of {shift}, {self.claim.short} needs"
            at += ", without subsampling," * self._of_curve
            factor = f"{number(needed / noise.scale)} times as large"
            return f"{fits}; {at} a scale of {part.by(needed)}, which is {factor}", False
        hidden = f"with which {self.claim.short} allows a shift of {part.by(covered)}"
        return f"{moved}; {fits}, {hidden}", low > covered

    def _delta(self, epsilon: float) -> float:
        """δ at the claimed ε: the largest of what the noise, the threshold and the witness give.

        Every event needs at most the true δ, up to errors of its frequencies.
        """
        in_delta, w = ApproximateDP(epsilon, 0.0, headline="delta"), self.witness
        found = [self.one.facts["delta"], plug_in(in_delta, *self.counts)]
        found += [] if w is None else [plug_in(in_delta, *w.counts)]
        self.numbers["delta"] = float(max(found))
        return self.numbers["delta"]

    def _picture(self) -> Picture | None:
        """The part on the two inputs, with the event."""
        condition, noise = self.one.condition, self.one.noise
        sides = [condition.part.read(side) for side in (self.batch.p, self.batch.q)]
        part, both = short(condition.part.name), np.concatenate(sides)
        both = both[~np.isnan(both)]
        values = np.unique(both)
        if values.size <= _BARS:
            p, q = (np.array([np.mean(side == v) for v in values]) for side in sides)
            labels = told_apart(values.tolist())
            if condition.said:
                labels = [condition.words if v else "any other output" for v in values]
            elif condition.part.unit:
                labels = [condition.part.at(v) for v in values]
            inside = tuple((condition.of(values) != self.negated).tolist())
            return Picture(part=part, x=values, p=p, q=q, labels=tuple(labels), inside=inside)
        if condition.low == condition.high:  # a value among continuous ones has no density
            p, q = (np.array([1.0 - (at := np.mean(side == condition.low)), at]) for side in sides)
            shown, inside = ("any other output", condition.part.at(condition.low)), (False, True)
            return Picture(part=part, x=np.arange(2.0), p=p, q=q, labels=shown, inside=inside)
        low, high = np.quantile(both, [0.005, 0.995]).tolist()
        if not 1e-288 < high - low < np.inf:
            return None
        edges = _edges(values[(values >= low) & (values <= high)], (high - low) / _BINS)
        width, middle = edges[1] - edges[0], (edges[1:] + edges[:-1]) / 2
        p, q = (np.histogram(side, edges)[0] / (len(side) * width) for side in sides)
        needed = None
        if self.claimed and self.one.kind is Fault.SCALE and noise is not None:
            factor = self.one.facts["needed scale"] / noise.scale
            needed = noise.density(middle, float(np.nanmedian(sides[0])), factor)
        left, right = (end if np.isfinite(end) else None for end in (condition.low, condition.high))
        if self.negated and None in (left, right):
            left, right = right, left
        return Picture(
            part=part,
            x=middle,
            p=p,
            q=q,
            needed=needed,
            low=left,
            high=right,
            unit=condition.part.unit,
        )


def _edges(values: FloatArray, width: float) -> FloatArray:
    """Edges of bins of about this width; of numbers on a grid, such as cents, all hold as many points."""
    start, gaps = float(values[0]), np.diff(values)
    step = float(gaps.min()) if gaps.size else width
    if np.all(np.abs(gaps / step - np.rint(gaps / step)) < 1e-3):
        width, start = step * math.ceil(width / step), start - step / 2
    return start + width * np.arange(math.ceil((values[-1] - start) / width) + 1)


def belief(
    witness: Witness, claim: Claim, gamma: float, guarantee: Guarantee, chosen: int = 1
) -> Belief | None:
    """What somebody learns who sees the event, or that it does not happen, from its certified limits.

    With equal odds before, P(first | E) = P(E) / (P(E) + Q(E)). Two exact intervals of level γ/2 hold
    together, so that event or complement, and the input, may be chosen by looking at them. The witness
    may be one of several events that was `chosen` so: then each of them has its part of γ.
    """
    p0, p1 = limits(witness.hits_p, witness.n_p, gamma / chosen / 2)
    q0, q1 = limits(witness.hits_q, witness.n_q, gamma / chosen / 2)
    ways = [(p0, q1, True, True), (1 - p1, 1 - q0, True, False)]
    if not claim.directional:
        ways += [(q0, p1, False, True), (1 - q1, 1 - p0, False, False)]
    found = []
    for often, rare, first, happens in ways:
        least = float(claim.region_inverse(often))
        if rare < min(often, least):  # or δ may be what is broken: nothing is learned then
            believed, allowed = often / (often + rare), often / (often + least)
            found.append((believed, allowed, often, first, happens))
    if not found:
        return None
    posterior, allowed, often, first, happens = max(found)
    return Belief(
        posterior=posterior,
        allowed=allowed,
        frequency=often,
        first=first,
        happens=happens,
        confidence=1 - gamma,
        guarantee=guarantee,
    )


def looked_at(learner: CrossFit) -> tuple[Explanation, ...]:
    """What was looked at where nothing was refuted, in the form of an explanation."""
    known = (k for k in range(len(learner.names)) if learner.known_scores(k) is not None)
    tried = [str(learner.names[k]) for k in known]
    features, outputs = len(learner.known_features()), learner.batch.p
    width, kinds = len(coordinates(outputs.structures[0], outputs)), len(outputs.structures)
    bits = "bits" in learner.names
    scores = f"{len(tried)} score{'s' * (len(tried) > 1)} of the output ({', '.join(tried)})"
    parts = [scores if tried else "the output as it is"]
    parts += [f"{width:,} coordinates"] if width > 1 else []
    parts += [f"{kinds:,} kinds of output"] if kinds > 1 else []
    parts += [f"the {features} most telling named features"] if features else []
    parts += ["the floating-point representation"] if bits else []
    numbers = {"scores": len(tried), "coordinates": width, "kinds of output": kinds}
    numbers |= {"named features": features, "floating-point representation": bits}
    named = tuple((name, float(value)) for name, value in numbers.items())
    return (Explanation(kind=Fault.NONE, sentence="; ".join(parts), numbers=named),)
