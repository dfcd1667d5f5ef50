"""Scores that are data: features of an output and a model of them, which go to JSON with their events.

*Polynomials*: logistic regression by Newton's method, either side weighing the same. Written out here
rather than taken from scikit-learn, whose import alone takes a second: a fit of a few terms to the
weights of a grid takes less than a millisecond, whatever the number of draws.

*Tables*: the loss by how often each value of a column occurs on either side, the columns being the cells
of a double or the characters of a text (`outputs.representations`). A column whose frequencies differ no
more than chance would have it adds nothing, the others as much as they differ beyond chance: with k
values Pearson's X² of two equal distributions is about k − 1, give or take √(2(k − 1)).

*Named features*, found by `scores.training`. "feature" ranks outputs by the best one alone, by
isotonic frequencies: its events are {feature ≥ t} or {feature ≤ t}, which can be counted without this
library. "features" is a logistic regression on the best few. A feature that is no better than
chance costs power, never validity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, of_scores
from dpassay.outputs.named_features import Feature, NamedFeatures
from dpassay.outputs.representations import (
    BITS,
    CELLS,
    COLUMNS,
    ZERO,
    Bits,
    Characters,
    LowestBit,
    powers,
)
from dpassay.outputs.score_models import (
    LARGEST,
    Features,
    Polynomial,
    ScoreFunction,
    Steps,
    Tables,
    expanded,
)
from dpassay.outputs.templates import written
from dpassay.privacy.finite_pairs import LossCurve
from dpassay.scores.cell_counts import Binned
from dpassay.scores.training import Training, log_ratio, ranked


@dataclass(frozen=True, eq=False)
class SerializableScore:
    """An estimate of log p/q; of the lowest set bit only an order."""

    score_function: ScoreFunction
    telling: bool = True  # whether the two sides differ beyond chance, as far as its features show

    @property
    def name(self) -> str:
        return self.score_function.name

    def score(self, outputs: Outputs) -> FloatArray:
        return self.score_function.score(outputs)

    def event(self, threshold: float, above: bool) -> Event:
        return of_scores(self, threshold, above)


#: Training draws per side beyond which a polynomial learns nothing new that its order could use.
_ENOUGH_FOR_POLYNOMIALS = 100_000
#: More terms than these are solved for by conjugate gradients, without the matrix.
_MATRIX = 1_000
_NO_PRODUCTS = np.zeros((0, 2), dtype=np.int64)
#: More pairs of coordinates than these are thinned out to the most telling.
_PAIRS = 500


def newton(
    terms: FloatArray, weight: FloatArray, hits: FloatArray, ridge: float, *, steps: int = 50
) -> FloatArray:
    """The β that maximises Σ hits·log s + (weight − hits)·log(1 − s) − ridge·|β|²/2, s = expit(Xβ)."""
    beta = np.zeros(terms.shape[1])
    for _ in range(steps):
        share = expit(terms @ beta)
        gradient = terms.T @ (hits - weight * share) - ridge * beta
        curvature = (terms * (weight * share * (1 - share))[:, None]).T @ terms
        step = np.linalg.solve(curvature + ridge * np.eye(beta.size), gradient)
        longest = float(np.abs(terms @ step).max(initial=0.0))
        beta += step * min(1.0, 5.0 / max(longest, 1e-300))
        if longest < 1e-6:
            break
    return beta


def quadratic(p: Binned, q: Binned, n: tuple[int, int]) -> FloatArray:
    """The maximum-likelihood log p/q of the form a + b·x + c·x² (all products) on a grid.

    Fitted to the weights of the cells: its cost does not depend on n. The ridge is worth one draw.
    """
    # the grid as a unit cube: standardised it is the same, and its squares exist
    mesh = np.meshgrid(*(np.linspace(0.0, 1.0, axis.size) for axis in p.axes), indexing="ij")
    x = np.stack([m.ravel() for m in mesh], axis=1)
    weight_p, weight_q = p.weights.ravel() / n[0], q.weights.ravel() / n[1]
    both = weight_p + weight_q
    mass = max(float(both.sum()), 1e-300)
    centre = both @ x / mass
    spread = np.sqrt(both @ (x - centre) ** 2 / mass)
    z = (x - centre) / np.where(spread > 0, spread, 1.0)
    d = z.shape[1]
    products = [z[:, i] * z[:, j] for i in range(d) for j in range(i, d)]
    terms = np.column_stack([np.ones(len(z)), z, *products])
    some = both > 0
    beta = newton(terms[some], both[some], weight_p[some], 1.0 / min(n))
    return np.asarray(np.clip(terms @ beta, -LARGEST, LARGEST))


def platt(p: FloatArray, q: FloatArray) -> tuple[float, float]:
    """(a, b) with a + b·score the likeliest log-odds of p against q, either side weighing the same."""
    centre, spread = float(np.mean([p.mean(), q.mean()])), float(np.concatenate([p, q]).std())
    if spread == 0:
        return 0.0, 0.0
    terms = np.column_stack([np.ones(p.size + q.size), (np.concatenate([p, q]) - centre) / spread])
    weight, hits = _sides(p.size, q.size)
    beta = newton(terms, weight, hits, 1.0 / min(p.size, q.size))
    return float(beta[0] - beta[1] * centre / spread), float(beta[1] / spread)


def _sides(n: int, m: int) -> tuple[FloatArray, FloatArray]:
    """Weights of n and m draws, each side half in all; and those of the first side alone."""
    weight = np.repeat([0.5 / n, 0.5 / m], [n, m])
    return weight, np.where(np.arange(n + m) < n, weight, 0.0)


def fit_logistic(name: str, training: Training) -> SerializableScore:
    """ "linear", "logistic" (with squares), "products" (with all, or the most telling, pairs), or
    "discriminant".
    """
    training = training.most(_ENOUGH_FOR_POLYNOMIALS)
    features = Features.learn(training.p, training.q)
    sides = [features.rows(side.outputs) for side in (training.p, training.q)]
    if name == "discriminant":
        return SerializableScore(ScoreFunction(name, features, _discriminant(*sides)))
    rows = np.concatenate(sides)
    weight, hits = _sides(len(sides[0]), len(sides[1]))
    pairs = _products(name, features.width, rows, weight, hits)
    terms = expanded(rows, pairs)
    k = terms.shape[1]
    scale = terms.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    centre = terms.mean(axis=0)
    z = np.column_stack([np.ones(len(terms)), (terms - centre) / scale])
    ridge = (1.0 + k / 10) / len(terms)
    beta = _gradients(z, weight, hits, ridge) if k > _MATRIX else newton(z, weight, hits, ridge)
    weights = beta[1:] / scale
    offset = float(beta[0] - weights @ centre)
    width = rows.shape[1]
    model = Polynomial(offset, weights[:width], pairs, weights[width:])
    return SerializableScore(ScoreFunction(name, features, model))


def _discriminant(p: FloatArray, q: FloatArray) -> Polynomial:
    """Fisher's linear discriminant.

    A combination of coordinates that hardly varies, such as a sum that is released with little noise, has
    weights so large that the ridge of a logistic regression keeps it from them.
    """
    p, q = expanded(p, _NO_PRODUCTS), expanded(q, _NO_PRODUCTS)
    centre, difference = (p.mean(axis=0) + q.mean(axis=0)) / 2, p.mean(axis=0) - q.mean(axis=0)
    spread = np.atleast_2d(np.cov(p, rowvar=False) + np.cov(q, rowvar=False)) / 2
    weights = np.linalg.solve(spread + 1e-6 * np.eye(len(spread)), difference)
    return Polynomial(-float(weights @ centre), weights)


def _products(
    name: str, width: int, rows: FloatArray, weight: FloatArray, hits: FloatArray
) -> IntArray:
    """Which products of coordinates are terms."""
    if name == "linear":
        return _NO_PRODUCTS
    squares = np.column_stack([np.arange(width)] * 2)
    if name == "logistic":
        return squares
    i, j = np.triu_indices(width, 1)
    if i.size > _PAIRS:
        # those whose mean differs most between the sides, by its standard error
        held = np.clip(rows[:, :width], -5.0, 5.0)
        other = weight - hits
        first = (held * hits[:, None]).T @ held / hits.sum()
        second = (held * other[:, None]).T @ held / other.sum()
        square = held**2
        spread = np.sqrt(np.maximum((square * weight[:, None]).T @ square / weight.sum(), 1e-12))
        telling = np.abs(first - second) / spread
        best = np.argsort(-telling[i, j], kind="stable")[:_PAIRS]
        i, j = i[best], j[best]
    return np.concatenate([squares, np.column_stack([i, j])])


def _gradients(z: FloatArray, weight: FloatArray, hits: FloatArray, ridge: float) -> FloatArray:
    """One Newton step from 0 (a ridge discriminant), by conjugate gradients: any number of terms."""
    from scipy.sparse.linalg import LinearOperator, cg

    def curvature(v: FloatArray) -> FloatArray:
        return np.asarray(z.T @ (0.25 * weight * (z @ v)) + ridge * v)

    size = z.shape[1]
    step, _ = cg(
        LinearOperator((size, size), matvec=curvature),
        z.T @ (hits - 0.5 * weight),
        rtol=1e-3,
        maxiter=50,
    )
    return np.asarray(step)


#: Standard deviations by which X² must exceed what equal distributions have.
_BEYOND = 4.0
#: The z-score from which on a tail of lowest bits is worth a look: the search judges it like any other.
_WORTH = 2.0
#: Training draws per side beyond which frequencies learn nothing new.
_ENOUGH_FOR_TABLES = 25_000


def fit_tables(name: str, training: Training) -> SerializableScore:
    """ "lowest bit", "bits" or "characters"."""
    training = training.most(_ENOUGH_FOR_TABLES)
    p, q = training.p.outputs, training.q.outputs
    match name:
        case "lowest bit":
            return _lowest_bit(p, q)
        case "bits":
            features: Bits | Characters = Bits.learn(p, q)
        case _:
            features = Characters.learn(training.p.outputs.structures)
    rows = features.rows(p), features.rows(q)
    columns, codes, values, beyond = [], [], [], name != "bits"
    for column in range(rows[0].shape[1]):
        a, b = _counted(rows[0][:, column], rows[1][:, column])
        if (
            isinstance(features, Bits) and features.mixed
        ):  # whether a number is there is no bit of it
            a[CELLS - 2 : CELLS - 1] = b[CELLS - 2 : CELLS - 1] = 0
        weight = _weight(a, b)
        if weight > 0:
            beyond = beyond or _beyond_values(a, b)
            own = np.flatnonzero(a + b)
            columns.append(np.full(own.size, column))
            codes.append(own)
            values.append(weight * log_ratio(a[own], b[own], (len(p), len(q))))
    empty = np.zeros(0, dtype=np.int64)
    model = Tables(
        np.concatenate([empty, *columns]),
        np.concatenate([empty, *codes]),
        np.concatenate([empty.astype(float), *values]),
    )
    return SerializableScore(ScoreFunction(name, features, model), bool(columns) and beyond)


def _lowest_bit(p: Outputs, q: Outputs) -> SerializableScore:
    """The coordinate whose lowest set bits differ most."""
    width = p.numbers.shape[1]
    found = []
    for column in range(min(width, COLUMNS)):
        own = (np.asarray(side.numbers[:, column], dtype=float) for side in (p, q))
        a, b = _counted(*(powers(numbers)[0] + 1100 for numbers in own))
        if len(p.structures) > 1:  # whether a number is there is no bit of it
            a[ZERO + 1100 :] = b[ZERO + 1100 :] = 0
        found.append(_largest_z(a, b))
    column = int(np.argmax(np.abs(found)))
    z = found[column]
    name = "the output" if width == 1 else f"x{column + 1}"
    order = Polynomial(0.0, np.array([-1.0 if z > 0 else 1.0]))
    return SerializableScore(
        ScoreFunction("lowest bit", LowestBit(column, name, len(p.structures) > 1), order),
        abs(z) > _WORTH,
    )


def _largest_z(a: IntArray, b: IntArray) -> float:
    """The z-score of the tail that differs most; positive if small values lean to the first side."""
    n, m = a.sum(), b.sum()
    if not n or not m:
        return 0.0
    below = np.cumsum(a), np.cumsum(b)
    best = 0.0
    for x, y, sign in ((*below, 1.0), (n - below[0], m - below[1], -1.0)):
        rate = (x + y) / (n + m)
        noise = np.sqrt(np.maximum(rate * (1 - rate) * (1 / n + 1 / m), 1e-300))
        # a tail with next to nothing in it has no normal limit: one draw more on the other side
        z = sign * (x / n - y / m - np.sign(x / n - y / m) / max(n, m)) / noise
        z[(x + y == 0) | (x + y == n + m)] = 0.0
        best = max(best, float(z[np.argmax(np.abs(z))]), key=abs)
    return best


def _counted(a: AnyArray, b: AnyArray) -> tuple[IntArray, IntArray]:
    """How often each value comes on either side."""
    size = int(max(a.max(initial=0), b.max(initial=0))) + 1
    return np.bincount(a, minlength=size), np.bincount(b, minlength=size)


def _weight(a: IntArray, b: IntArray) -> float:
    """1 − (what chance makes of X²)/X², 0 if X² is not beyond chance."""
    both, n, m = (a + b)[a + b > 0], a.sum(), b.sum()
    if both.size < 2 or not n or not m:
        return 0.0
    x2 = float(np.sum((a[a + b > 0] * np.sqrt(m / n) - b[a + b > 0] * np.sqrt(n / m)) ** 2 / both))
    free = both.size - 1
    if x2 <= free + _BEYOND * np.sqrt(2.0 * free):
        return 0.0
    return 1 - free / x2


def _beyond_values(a: IntArray, b: IntArray) -> bool:
    """Whether lowest bits differ among numbers of one sign and size: those tell of the value alone."""
    both = np.zeros((2, CELLS - 2))
    for side, counts in zip(both, (a, b), strict=True):
        side[: counts.size] = counts[: CELLS - 2]
    first, second = both.reshape(2, -1, BITS)
    cells = first + second
    total = cells.sum(axis=1, keepdims=True)
    share = first.sum(axis=1, keepdims=True) / np.maximum(total, 1)
    spread = np.maximum(cells * share * (1 - share), 1e-300)
    mixed = (cells > 0) & (share > 0) & (share < 1)
    x2 = float(np.sum(((first - cells * share) ** 2 / spread)[mixed]))
    free = int(mixed.sum() - np.count_nonzero(mixed.any(axis=1)))
    return bool(x2 > free + _BEYOND * np.sqrt(2.0 * max(free, 1)))


#: Training draws per side beyond which a feature learns nothing new that its score could use.
_ENOUGH_FOR_FEATURES = 20_000
#: Training draws per side from which on either half is searched by itself.
_SPLIT = 200
#: Features of either half that compete for being the best one.
_FEW = 5
#: Features that are combined.
_BEST = 40
#: Values of a feature that a chart shows one by one.
_BARS = 24


def fit_features(name: str, training: Training) -> SerializableScore:
    """ "feature" (the best one) or "features" (the best few)."""
    found, rows, n = _search(training, 1 if name == "feature" else _BEST)
    if not found:
        return SerializableScore(
            ScoreFunction(name, NamedFeatures.of(()), Polynomial(0.0, np.zeros(0))), False
        )
    chosen = NamedFeatures.of(tuple(one for one, _ in found))
    if name == "feature":
        model: Steps | Polynomial = _steps(rows[:n, 0], rows[n:, 0])
    else:
        chosen = chosen.standardised(rows)
        terms = expanded((rows - chosen.centre) / chosen.scale, _NO_PRODUCTS)
        terms = np.column_stack([np.ones(len(rows)), terms])
        beta = newton(terms, *_sides(n, len(rows) - n), (1.0 + terms.shape[1] / 10) / len(rows))
        model = Polynomial(float(beta[0]), beta[1:])
    return SerializableScore(ScoreFunction(name, chosen, model), found[0][1] > 0)


def with_same_feature(score: SerializableScore, training: Training) -> SerializableScore:
    """The score of the single feature that another has, fitted to these draws."""
    assert isinstance(score.score_function.features, NamedFeatures)
    sides = training.most(_ENOUGH_FOR_FEATURES)
    p, q = (score.score_function.features.values(side.outputs)[:, 0] for side in (sides.p, sides.q))
    return replace(score, score_function=replace(score.score_function, model=_steps(p, q)))


def _search(training: Training, most: int) -> tuple[list[tuple[Feature, float]], FloatArray, int]:
    """The best features with their limits, their values by draw, and draws of the first side.

    Those of all training draws are among the best of its two halves, whose tables are there already.
    """
    split = training.whole is None and min(training.sizes) >= _SPLIT
    parts = training.halves if split else (training,)
    best = [one for part in parts for one in part.features[: max(most, _FEW) if split else most]]
    found = list({(x.family, x.key, x.width, x.name): (x, limit) for x, limit in best}.values())
    chosen = NamedFeatures.of(tuple(one for one, _ in found))
    used = [part.most(_ENOUGH_FOR_FEATURES // len(parts)) for part in parts]
    p, q = (
        np.concatenate([chosen.values(side) for side in sides])
        for sides in ([part.p.outputs for part in used], [part.q.outputs for part in used])
    )
    rows, n = np.concatenate([p, q]), len(p)
    if split:
        order = ranked(rows, n)[:most]
        found = [(chosen.features[k], limit) for k, limit in order]
        rows = rows[:, [k for k, _ in order]]
    return found, rows, n


def _steps(p: FloatArray, q: FloatArray) -> Steps:
    """Isotonic log-odds of one feature, in the direction that fits better."""
    both = np.concatenate([p, q])
    weight, hits = _sides(p.size, q.size)
    places, back = np.unique(both, return_inverse=True)
    total, own = np.bincount(back, weight), np.bincount(back, hits)
    ways = [
        isotonic_regression(own / total, weights=total, increasing=rising).x
        for rising in (True, False)
    ]
    share = min(ways, key=lambda way: float(np.sum(total * (way - own / total) ** 2)))
    half = 0.25 / min(p.size, q.size)  # half a draw on either side of each step
    _, level = np.unique(share, return_inverse=True)
    held = np.bincount(level, total)[level]
    odds = np.log(share * held + half) - np.log((1 - share) * held + half)
    # the half draws weigh more on small steps and may change their order
    odds = (np.maximum if share[-1] >= share[0] else np.minimum).accumulate(odds)
    keep = np.append(True, np.diff(odds) != 0)
    return Steps(places[keep], odds[keep])


def feature_curve(
    score_function: ScoreFunction,
    p: Outputs,
    q: Outputs,
    holds: Callable[[FloatArray], BoolArray | None],
) -> LossCurve:
    """How often the single feature of a score takes each value on the two inputs.

    Many values are gathered into intervals, each in the event or outside it, as `holds` says; `x` holds
    the value, or the lower end.
    """
    assert isinstance(score_function.model, Steps)
    sides = [np.asarray(score_function.features.rows(side))[:, 0] for side in (p, q)]
    both = np.concatenate(sides)
    x: FloatArray = np.unique(both)
    labels = [written(value) for value in x.tolist()]
    if x.size > _BARS:  # intervals begin where a step of the score does, and where the event turns
        edges = np.quantile(both, np.linspace(0, 1, _BARS)[1:-1], method="inverted_cdf")
        steps = score_function.model.start
        at = np.searchsorted(steps, edges).clip(max=steps.size - 1)
        held = holds(steps)
        turns = steps[:0] if held is None else steps[1:][held[1:] != held[:-1]]
        x = np.unique(np.concatenate([steps[at], turns, [both.min()]]))
        ends = [*x[1:].tolist(), float(both.max())]
        labels = [f"{written(a)} to {written(b)}" for a, b in zip(x.tolist(), ends, strict=True)]
    places = [np.searchsorted(x, side, side="right") - 1 for side in sides]
    mass = [np.bincount(place, minlength=x.size) / place.size for place in places]
    with np.errstate(divide="ignore", invalid="ignore"):
        ell = np.where(mass[0] == mass[1], 0.0, np.log(mass[0]) - np.log(mass[1]))
    part = score_function.feature or "output"
    return LossCurve(x, ell, mass[0], mass[1], labels=tuple(labels), part=part)
