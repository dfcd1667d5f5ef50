"""Score functions as data: a row of numbers for each output, and a polynomial, trees or tables on it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.keys import KeyedDraws, Part
from dpassay.outputs.named_features import Feature, NamedFeatures
from dpassay.outputs.representations import Bits, Characters, LowestBit
from dpassay.outputs.templates import all_digits, written_in
from dpassay.records import Record
from dpassay.rounding import decimals

#: Atoms of a coordinate that get an indicator of their own.
_ATOMS = 10
#: Structures that get an indicator of their own, the most frequent first.
_KINDS = 30
#: Scores end here: no sample tells a larger loss from ∞.
LARGEST = 30.0
#: Standardised coordinates end here, far beyond any that tells something.
_LARGE = 1e100
#: Terms of a polynomial that are listed.
_LISTED = 4
#: Coordinates whose steps add up to this part of the largest sum are named.
_STEPS = 0.2
#: The error of a standardised term of a polynomial whose terms are all listed, at most.
_ROUNDING = 1e-9
_CHUNK = 1 << 16
#: Codes of a table end here.
_MOST_CODES = 1 << 20
#: Standardised coordinates end here for a polynomial, which one far outlier would decide otherwise.
FAR = 20.0


@dataclass(frozen=True, eq=False)
class Features(Record):
    """Outputs as rows of numbers.

    Standardised coordinates first, 0 where an output has none; then an indicator for each kind of
    output beyond the first, and one for each atom of an otherwise continuous coordinate.
    """

    parts: tuple[Part, ...] = field(repr=False)
    width: int
    centre: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)

    def _validate(self) -> None:
        places = [column for part in self.parts for column in part.columns]
        checks.require(self.width > max(places, default=-1), "width must hold all numbers of parts")
        same = self.centre.shape == self.scale.shape == (self.width,)
        checks.require(same, "centre and scale must have an entry for each coordinate")
        finite = np.isfinite(self.centre).all() and np.all((self.scale > 0) & (self.scale < np.inf))
        checks.require(finite, "centre must be finite, and scale above 0")

    @property
    def size(self) -> int:
        return self.width + max(len(self.parts) - 1, 0) + len(self._atoms)

    @cached_property
    def _atoms(self) -> list[tuple[int, int, float]]:
        """Part, number and value of the atoms that have an indicator."""
        return [
            (index, k, float(atom))
            for index, part in enumerate(self.parts)
            for k, (atoms, free) in enumerate(zip(part.atoms, part.open, strict=True))
            for atom in (atoms[:_ATOMS] if free else ())
        ]

    @property
    def names(self) -> list[str]:
        """Those of the columns, where outputs are rows of a table; else x1, x2, …"""
        of, *rest = self.parts[0].template if self.parts else ("",)
        columns = [key for key, leaf in rest[0] if leaf[0] == "number"] if of == "dict" else []
        if len(columns) == self.width and all(isinstance(key, str) for key in columns):
            return columns
        return [f"x{k + 1}" for k in range(self.width)]

    @property
    def shifts(self) -> FloatArray:
        """Round numbers near the centres of coordinates that lie far from 0: sums of these cancel."""
        near = zip(self.centre.tolist(), self.scale.tolist(), strict=True)
        return np.array(
            [round(c, -math.floor(math.log10(s))) if abs(c) > 5 * s else 0.0 for c, s in near]
        )

    @classmethod
    def learn(cls, p: KeyedDraws, q: KeyedDraws, least: float = 0.0) -> Features:
        """Find kinds and atoms, and the centre and spread of every coordinate.

        An atom of a continuous coordinate needs a share of `least` among the draws.
        """
        width = p.outputs.numbers.shape[1]
        parts = list(p.layout.parts)
        if len(parts) > _KINDS:
            often = np.zeros(len(parts), dtype=np.int64)
            for side in (p, q):
                keys = side.all_keys()
                often += np.bincount(p.layout.parts_of[keys[keys >= 0]], minlength=len(parts))
            parts = [parts[k] for k in np.sort(np.argsort(-often, kind="stable")[:_KINDS])]
        if least:
            parts = [_frequent(part, (p.outputs, q.outputs), least) for part in parts]
        raw = cls(tuple(parts), width, np.zeros(width), np.ones(width))
        some = [side.outputs[:: max(1, len(side) // 10_000)] for side in (p, q)]
        both = np.concatenate([raw.rows(side)[:, :width] for side in some])
        # the middle of the data, so that no far outlier decides the scale of the rest
        low, centre, high = np.quantile(both, [0.1, 0.5, 0.9], axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.where(high > low, high / 2.56 - low / 2.56, both.std(axis=0))
        good = (spread > 0) & np.isfinite(spread)
        return cls(tuple(parts), width, np.where(good, centre, 0.0), np.where(good, spread, 1.0))

    @property
    def plain(self) -> bool:
        """Whether the features are the coordinates of one kind of output, and no more."""
        return len(self.parts) == 1 and not self._atoms

    def rows(self, outputs: Outputs) -> FloatArray:
        found = np.zeros((len(outputs), self.size))
        known = {part.template: index for index, part in enumerate(self.parts)}
        for code, structure in enumerate(outputs.structures):
            if (index := known.get(structure)) is None:
                continue
            part, rows = self.parts[index], outputs.rows_of(code)
            if index > 0:
                found[rows, self.width + index - 1] = 1.0
            values = np.asarray(part.rows(outputs, rows), dtype=float)
            columns = np.array(part.columns, dtype=np.int64)
            with np.errstate(over="ignore"):
                standard = (values - self.centre[columns]) / self.scale[columns]
            at = rows if isinstance(rows, slice) else rows[:, None]
            found[at, columns] = np.clip(standard, -_LARGE, _LARGE)
            for place, (of, k, atom) in enumerate(self._atoms, self.size - len(self._atoms)):
                if of == index:
                    found[rows, place] = values[:, k] == atom
        return found


def _frequent(part: Part, sides: tuple[Outputs, ...], least: float) -> Part:
    """A part without the rare atoms of its open columns, which may repeat by chance."""
    if not any(free and atoms.size for atoms, free in zip(part.atoms, part.open, strict=True)):
        return part
    found = [
        side.rows_of(side.structures.index(part.template))
        for side in sides
        if part.template in side.structures
    ]
    having = [side for side in sides if part.template in side.structures]
    numbers = np.concatenate(
        [part.rows(side, rows) for side, rows in zip(having, found, strict=True)]
    )
    enough = least * sum(map(len, sides))
    atoms = [
        np.array([x for x in own if np.count_nonzero(column == x) >= enough]) if free else own
        for own, free, column in zip(part.atoms, part.open, numbers.T, strict=True)
    ]
    return Part(part.template, tuple(atoms), part.open, part.origins)


@dataclass(frozen=True, eq=False)
class Polynomial(Record):
    """offset + Σ linear·x + Σ weights·x_i·x_j over listed pairs (i, j)."""

    offset: float
    linear: FloatArray
    pairs: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(pairs=self.pairs.reshape(-1, 2))

    def fits(self, size: int) -> bool:
        """Whether it is a function of so many features."""
        inside = self.pairs.size == 0 or 0 <= self.pairs.min() <= self.pairs.max() < size
        return bool(
            inside and self.linear.shape == (size,) and self.weights.shape == (len(self.pairs),)
        )

    def score(self, rows: FloatArray) -> FloatArray:
        """The value of each row, term by term: a matrix product rounds by the size of the block."""
        total = np.empty(len(rows))
        for start in range(0, len(rows), _CHUNK):
            held = np.clip(rows[start : start + _CHUNK], -FAR, FAR).T.copy()
            part = total[start : start + _CHUNK]
            part[:] = self.offset
            for weight, x in zip(self.linear, held, strict=True):
                part += weight * x
            for weight, (i, j) in zip(self.weights, self.pairs, strict=True):
                part += weight * (held[i] * held[j])
        return total


def expanded(rows: FloatArray, pairs: IntArray) -> FloatArray:
    """The coordinates, held to ±20, and the products of the listed pairs of them."""
    held = np.clip(rows, -FAR, FAR)
    if not len(pairs):
        return held
    return np.hstack([held, held[:, pairs[:, 0]] * held[:, pairs[:, 1]]])


@dataclass(frozen=True, eq=False)
class Trees(Record):
    """A sum of regression trees, their nodes in one list: left where x[feature] ≤ threshold."""

    baseline: float
    roots: IntArray
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray

    def fits(self, size: int) -> bool:
        """Whether they are trees, on so many features."""
        nodes = np.arange(self.value.size)
        lists = (self.feature, self.threshold, self.left, self.right)
        if self.roots.ndim != 1 or any(one.shape != nodes.shape for one in lists):
            return False
        inner = self.left >= 0
        children = np.stack([self.left, self.right])[:, inner]
        return bool(
            np.all((self.roots >= 0) & (self.roots < nodes.size))
            and np.all((children > nodes[inner]) & (children < nodes.size))  # so walks end
            and np.all((self.feature >= np.where(inner, 0, -size)) & (self.feature < size))
        )

    def score(self, rows: FloatArray) -> FloatArray:
        """The value of each row: every tree walked by all rows at once."""
        total = np.full(len(rows), self.baseline)
        index = np.arange(len(rows))
        for root in self.roots:
            at = np.full(len(rows), root)
            while (inner := self.left[at] >= 0).any():
                goes_left = rows[index, self.feature[at]] <= self.threshold[at]
                at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
            total += self.value[at]
        return total


@dataclass(frozen=True, eq=False)
class Tables(Record):
    """A sum of scores, one for the value of each column: `value[k]` where column[k] holds code[k]."""

    column: IntArray
    code: IntArray
    value: FloatArray

    def _validate(self) -> None:
        inside = np.all((self.code >= 0) & (self.code < _MOST_CODES))
        checks.require(inside, f"codes of a table must lie between 0 and {_MOST_CODES:,}")

    def fits(self, size: int) -> bool:
        same = self.column.shape == self.code.shape == self.value.shape == (self.column.size,)
        return same and bool(np.all((self.column >= 0) & (self.column < size)))

    @cached_property
    def _dense(self) -> dict[int, FloatArray]:
        """By column, with a 0 at the end for codes that have no score."""
        found = {}
        for column in np.unique(self.column).tolist():
            own = self.column == column
            found[column] = np.zeros(int(self.code[own].max()) + 2)
            found[column][self.code[own]] = self.value[own]
        return found

    def score(self, rows: AnyArray) -> FloatArray:
        total = np.zeros(len(rows))
        for column, table in self._dense.items():
            total += table[np.minimum(rows[:, column], table.size - 1)]
        return total


@dataclass(frozen=True, eq=False)
class Steps(Record):
    """A step function of one feature, rising or falling: `value[k]` from `start[k]` on."""

    start: FloatArray
    value: FloatArray

    def fits(self, size: int) -> bool:
        rising = bool(np.all(np.diff(self.start) > 0))
        return size == 1 and rising and self.start.shape == self.value.shape and self.start.size > 0

    def score(self, rows: FloatArray) -> FloatArray:
        at = np.searchsorted(self.start, rows[:, 0], side="right") - 1
        return np.asarray(self.value[np.maximum(at, 0)])

    def words(self, feature: Feature, threshold: float, above: bool) -> str:
        """{score ≥ threshold}, or {score ≤ threshold}, as a comparison of the feature."""
        inside = self.value >= threshold if above else self.value <= threshold
        if inside.all() or not inside.any():
            return f"{feature.name} is {'anything' if inside.all() else 'none that was seen'}"
        turns = np.flatnonzero(np.diff(inside)) + 1
        if turns.size == 1:
            return feature.event(float(self.start[turns[0]]), bool(inside[-1]))
        ends = [-np.inf, *self.start[turns].tolist(), np.inf]
        runs = itertools.islice(itertools.pairwise(ends), int(not inside[0]), None, 2)
        say = partial(written_in, feature.unit)
        said = [
            " and ".join([f"≥ {say(a)}"] * (a > -np.inf) + [f"< {say(b)}"] * (b < np.inf))
            for a, b in runs
        ]
        return f"{feature.name} is {' or '.join(said)}"


@dataclass(frozen=True, eq=False)
class Parity(Record):
    """One of two scores, by whether an even or an odd number of the columns exceeds its threshold."""

    column: IntArray
    threshold: FloatArray
    value: FloatArray  # even, odd

    def fits(self, size: int) -> bool:
        inside = bool(np.all((self.column >= 0) & (self.column < size)))
        return inside and self.threshold.shape == self.column.shape and self.value.shape == (2,)

    def score(self, rows: FloatArray) -> FloatArray:
        odd = np.bitwise_xor.reduce(rows[:, self.column] > self.threshold, axis=1)
        return np.asarray(self.value[odd.astype(int)])


Model: TypeAlias = Polynomial | Trees | Tables | Steps | Parity


@dataclass(frozen=True, eq=False)
class ScoreFunction(Record):
    """line[0] + line[1] · model(features of the output), an estimate of log p/q."""

    name: str
    features: Features | Bits | LowestBit | Characters | NamedFeatures
    model: Model
    line: tuple[float, float] = (0.0, 1.0)

    def _validate(self) -> None:
        fits = self.model.fits(self.features.size)
        checks.require(fits, f"the model is no function of the {self.features.size} features")

    def score(self, outputs: Outputs) -> FloatArray:
        return self.score_rows(np.asarray(self.features.rows(outputs)))

    def score_rows(self, rows: AnyArray) -> FloatArray:
        found = self.line[0] + self.line[1] * self.model.score(rows)
        if isinstance(self.features, LowestBit):
            return found  # a place in an order, no estimate
        return np.clip(found, -LARGEST, LARGEST)

    @property
    def of_representation(self) -> bool:
        """Whether it ranks the bits of numbers instead of their values."""
        return isinstance(self.features, (Bits, LowestBit))

    @property
    def feature(self) -> str | None:
        """The name of the single feature by which it ranks; None where there are several."""
        single = isinstance(self.features, NamedFeatures) and isinstance(self.model, Steps)
        return self.features.features[0].name if single else None  # type: ignore[union-attr]

    def words(self, threshold: float, above: bool) -> str | None:
        """{score ≥ threshold} as a person can check it; None where there are no words for it."""
        match self.features, self.model:
            case LowestBit() as lowest, Polynomial() as model:
                slope = self.line[1] * float(model.linear[0])
                return lowest.words((threshold - self.line[0]) / slope, above == (slope < 0))
            case (Bits() | Characters()) as cells, Tables() as model:
                return _tables(cells, model, threshold, above)
            case NamedFeatures(features=(feature,)), Steps() as model:
                level = (threshold - self.line[0]) / self.line[1]
                return model.words(feature, level, above == (self.line[1] > 0))
            case NamedFeatures() as chosen, Polynomial() as model:
                order = np.argsort(-np.abs(model.linear), kind="stable")[:_LISTED]
                listed = "; ".join(chosen.features[k].name for k in order)
                sign = "≥" if above else "≤"
                return (
                    f"the score of {len(model.linear)} features {sign} {threshold:.4g}: {listed}; …"
                )
            case Features() as features, Parity() as model:
                names = ", ".join(features.names[k] for k in model.column.tolist())
                odd = (model.value[1] > model.value[0]) == above
                return f"{'an odd' if odd else 'an even'} number of {names} is high"
            case Features(plain=True) as features, Trees() as model if self.name == "additive":
                root = model.roots
                size = np.abs(model.value[model.left[root]] - model.value[model.right[root]])
                total = np.bincount(model.feature[root], size, minlength=features.width)
                order = np.argsort(-total, kind="stable")[:_LISTED]
                named = [features.names[k] for k in order if total[k] > _STEPS * total.max()]
                listed = f"the additive score, a sum of steps of {', '.join(named)}, …"
                return f"{listed} {'≥' if above else '≤'} {threshold:.4g}"
            case Features(plain=True) as features, Polynomial() as model:
                return self._polynomial(features, model, threshold, above)
        return None

    def _polynomial(
        self, features: Features, model: Polynomial, threshold: float, above: bool
    ) -> str | None:
        """The polynomial of the coordinates themselves, or where it is at least 0."""
        a, b = self.line
        kind = features.parts[0].template[0]
        alone = kind == "number" or (
            len(features.parts[0].template) == 2 and kind in ("date", "duration")
        )
        s, shifts = features.scale, features.shifts
        c = features.centre - (0.0 if alone else shifts)
        i, j = model.pairs.T
        with np.errstate(over="ignore", invalid="ignore"):
            linear = b * model.linear[: features.width] / s
            weights = b * model.weights / s[i] / s[j]
            offset = a + b * model.offset - threshold - linear @ c + weights @ (c[i] * c[j])
            linear = linear - np.bincount(i, weights * c[j], linear.size)
            linear = linear - np.bincount(j, weights * c[i], linear.size)
        if not np.isfinite([offset, *linear, *weights]).all():
            return None
        sign = 1.0 if above else -1.0
        offset, linear, weights = sign * offset, sign * linear, sign * weights
        first = (i == 0) & (j == 0)
        if alone and not linear[1:].any() and not weights[~first].any():  # of a date the seconds
            of_one = np.array([weights[first].sum(), linear[0], offset])
            return _of_number(
                of_one,
                c[0],
                FAR * s[0],
                partial(_rounded, kind, features.parts[0], decimals(1e-4 * s[0])),
            )
        factors = np.concatenate([linear, weights])
        units = np.concatenate([s, s[i] * s[j]])  # what a standardised term of 1 is
        big = np.argsort(-np.abs(factors * units), kind="stable")[: 2 * _LISTED]
        listed = [k for k in np.sort(big).tolist() if factors[k]]
        hidden = int(np.count_nonzero(factors)) - len(listed)
        error = 1e-4 if hidden else _ROUNDING
        shifts[list(features.parts[0].columns)] += features.parts[0].origins
        names = [_less(name, shift) for name, shift in zip(features.names, shifts, strict=True)]
        names += [f"{names[k]}²" if k == m else f"{names[k]}·{names[m]}" for k, m in model.pairs]
        terms = [f"{_to(error / units[k], factors[k])}·{names[k]}" for k in listed]
        shown = " ".join([_to(error, offset), *terms]).removeprefix("+")
        return shown + (f" + {hidden} smaller terms" if hidden > 0 else "") + " ≥ 0"


def _less(name: str, shift: float) -> str:
    """A coordinate without a constant."""
    return (
        name if not shift else f"({name} {'−' if shift > 0 else '+'} {all_digits([abs(shift)])[0]})"
    )


def _to(resolution: float, number: float) -> str:
    """A signed number, with an error of at most a resolution."""
    size = math.log10(abs(number) / resolution) if number else 0.0
    return f"{number:+.{min(max(math.ceil(size), 1), 17)}g}"


def _of_number(
    coefficients: FloatArray, centre: float, far: float, form: Callable[[float, bool], str]
) -> str:
    """Where a quadratic a·x² + b·x + c of the output is at least 0; beyond `far` it is constant."""
    roots = np.roots(coefficients)
    roots = np.sort(roots[np.isreal(roots)].real)
    roots = roots[np.abs(roots - centre) < far]
    if not roots.size:
        return f"output is {'a' if np.polyval(coefficients, centre) >= 0 else 'no'} number"
    rises = np.polyval(np.polyder(coefficients), roots[0]) > 0
    low, high = form(roots[0], bool(rises)), form(roots[-1], not rises)
    if roots.size == 1:
        return f"output {'≥' if rises else '≤'} {low}"
    return f"{low} ≤ output ≤ {high}" if rises else f"output ≤ {low} or output ≥ {high}"


def _rounded(kind: str, part: Part, places: int, number: float, up: bool) -> str:
    """A threshold for people, to a ten-thousandth of the spread; no seconds between dates."""
    if kind == "duration":
        return written_in(kind, number)
    if kind != "date":
        return repr(round(float(number), places)).removesuffix(".0")
    days = not part.open[0] and not np.any(part.atoms[0] % 86400)
    step = 86400 if days else 1
    return written_in(kind, step * (math.ceil if up else math.floor)(number / step))


def _tables(cells: Bits | Characters, model: Tables, threshold: float, above: bool) -> str:
    """The values that speak most for the event; all of them where one column decides."""
    sign = 1.0 if above else -1.0
    what = "bits" if isinstance(cells, Bits) else "text"
    some = np.flatnonzero(sign * model.value > 0.5 * np.max(sign * model.value, initial=0.0))
    best = some[np.argsort(-sign * model.value[some], kind="stable")][:_LISTED]
    listed = "; ".join(cells.words(int(model.column[k]), int(model.code[k])) for k in best)
    rest = some.size - best.size
    more = f"; and {rest} more" if rest > 0 else ""
    return f"the {what} score {'≥' if above else '≤'} {threshold:.4g}, which comes from: {listed}{more}"
