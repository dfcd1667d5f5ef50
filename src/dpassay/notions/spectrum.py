"""The (ε, δ) spectrum: δ(ε) for all ε from one loss (Eureka; Lu, Magdon-Ismail, Wei & Zikas).

δ(ε) = sup_E P(E) − e^ε Q(E) is attained by E = {ℓ > ε}, ℓ = log p/q. The paper trains a classifier of
P thinned by e^{−ε} against Q for every ε; the log-odds of one classifier are ℓ, and comparing them with
ε is what the thinned one learns to do. So everything is fitted once:

- `y`, the estimate, **heuristic**: E_P[(1 − e^{ε−ℓ̂})₊] ("smooth"), or held-out counts ("counts");
- `lower`, **exact**: events {ℓ̂ > ε} chosen on training draws, counted on held-out ones.
  Clopper–Pearson limits of all events hold at once, and every event bounds δ(ε) at every ε, so the curve
  is the largest of lines in e^ε. For up to four ε declared beforehand the exact joint test is used
  instead: it is tighter;
- `accuracy`, **asymptotic**, for nearest neighbours: the paper's Corollary 2.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpassay import checks
from dpassay._typing import FloatArray, IntArray
from dpassay.blackbox.mechanism import check_mechanism
from dpassay.blackbox.neighbours import Population, remove_one
from dpassay.bounds import clopper_pearson, joint
from dpassay.bounds.ordering import Counts
from dpassay.errors import InvalidInput, MechanismError
from dpassay.loss.fit import Loss, candidates, fit
from dpassay.loss.grid import GridLoss, Plan, Tally, stiffest
from dpassay.privacy.about import About, Guarantee
from dpassay.privacy.curves import Spectrum
from dpassay.privacy.masses import Masses
from dpassay.privacy.pairs import Pair, Relation
from dpassay.records import Record
from dpassay.sampling.draw import Sampling, Seed, seed_of
from dpassay.sampling.outputs import Outputs
from dpassay.sampling.progress import Progress
from dpassay.sampling.samples import Live, Samples, Source, draws_per_side, one_source

__all__ = ["SetSpectrum", "distributional", "estimate", "relative"]

Direction = Literal["both", "forward", "backward"]
_DIRECTIONS = {"forward": (False,), "backward": (True,), "both": (False, True)}
#: As many declared ε are bounded by the exact joint test, more by Clopper–Pearson limits.
_DECLARED = 4
#: The constant of Stone's lemma in Corollary 2, to the power of the dimension.
_CONES = 1 + 2 / math.sqrt(2 - math.sqrt(3))
#: The training draws that are looked at to make a plan; the rest stream.
_PILOT = 1 << 17


def estimate(
    mechanism: Any,
    pair: Any = None,
    *,
    epsilons: npt.ArrayLike | None = None,
    n: int | None = None,
    classifier: Any = "auto",
    confidence: float = 0.95,
    plug_in: Literal["auto", "smooth", "counts"] = "auto",
    train: float | None = None,
    direction: Direction = "both",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Spectrum:
    """Estimate δ(ε) of a pair, by default in the worse direction, with a certified lower curve.

    epsilons    where to look, 41 points in [0, 2] by default; one to four are bounded by the exact
                joint test, declared beforehand
    n           draws per side, training included
    classifier  "auto" (a quadratic loss or kernel densities where outputs have up to two free
                coordinates, frequencies where they have none, else the best of logistic regression
                and boosting), "kde", "polynomial", "knn", "logistic", "boosting", "mlp", "torch", or any
                scikit-learn classifier
    plug_in     "smooth" averages 1 − e^{ε−ℓ̂}, far less noisy where δ is small; "counts" counts on
                held-out draws, which an ill-calibrated classifier does not bias. "auto" is smooth for
                losses on a grid and counts for the others
    train       the share of draws that train; a quarter by default, half for "knn" (as in the paper)

    Draws of outputs with one free coordinate are streamed: memory does not grow with n.

    >>> import dpassay as dp
    >>> spectrum = dp.spectrum.estimate(dp.zoo.Laplace(1.0), (0.0, 1.0), n=100_000, rng=0)
    >>> bool(abs(spectrum(0.5) - dp.zoo.Laplace(1.0).delta(0.5, (0.0, 1.0))) < 0.01)
    True
    >>> bool(spectrum.lower[10] <= 0.2212)
    True
    """
    eps = _grid(epsilons)
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    gamma = 1 - checks.probability("confidence", confidence)
    options = _Options.of(eps, classifier, plug_in, train, direction)
    found = _study(source, draws_per_side("n", n, source, at_least=40), options)
    return Spectrum(
        eps,
        found.delta(options),
        lower=found.lower(eps, gamma),
        confidence=confidence,
        accuracy=found.accuracy(eps, gamma),
        about=About(
            method=f"Eureka with {found.name}",
            guarantee=Guarantee.HEURISTIC,
            n=found.n,
            seed=source.seed,
            pair=source.pair,
            notes=(*found.notes, *source.notes),
        ),
    )


@dataclass(frozen=True)
class _Options:
    eps: FloatArray
    classifier: Any
    plug_in: str
    train: float
    flips: tuple[bool, ...]

    @classmethod
    def of(
        cls, eps: FloatArray, classifier: Any, plug_in: str, train: float | None, direction: str
    ) -> _Options:
        checks.one_of("plug_in", plug_in, ("auto", "smooth", "counts"))
        checks.one_of("direction", direction, tuple(_DIRECTIONS))
        if train is None:
            train = 0.5 if isinstance(classifier, str) and classifier == "knn" else 0.25
        checks.probability("train", train)
        return cls(eps, classifier, plug_in, train, _DIRECTIONS[direction])


@dataclass(frozen=True, eq=False)
class _Study:
    """What the draws on one pair amount to, at the thresholds ε of the grid.

    Row k of an event array belongs to {ℓ̂ > ε_k} (forward) or {ℓ̂ < −ε_k} (backward).
    """

    name: str
    n: tuple[int, int]
    eps: FloatArray
    backward: npt.NDArray[np.bool_]  # the direction chosen for the event of each ε
    hits: IntArray  # of the leading side of that direction
    misses: IntArray  # of the other side
    totals: tuple[IntArray, IntArray]
    smooth: FloatArray
    counted: FloatArray
    notes: tuple[str, ...]
    neighbours: tuple[int, int] | None = None  # (draws in all, dimension), for nearest neighbours
    on_grid: bool = False

    def delta(self, options: _Options) -> FloatArray:
        """The estimate asked for."""
        smooth = options.plug_in == "smooth" or (options.plug_in == "auto" and self.on_grid)
        return self.smooth if smooth else self.counted

    def lower(self, eps: FloatArray, gamma: float) -> FloatArray:
        """Bounds at all ε at once."""
        if eps.size <= _DECLARED:
            bound = [
                joint.lower_bound(
                    Counts(*map(int, row)), joint.delta_family(float(e)), gamma / eps.size
                )
                for e, *row in zip(
                    eps, self.hits, self.totals[0], self.misses, self.totals[1], strict=True
                )
            ]
            lines = np.maximum(np.array(bound), 0.0)
        else:
            each = gamma / (2 * eps.size)
            high = clopper_pearson.lower(self.hits, self.totals[0], each)
            low = clopper_pearson.upper(self.misses, self.totals[1], each)
            lines = np.max(high[:, None] - low[:, None] * np.exp(eps)[None, :], axis=0, initial=0.0)
        return np.maximum.accumulate(lines[::-1])[::-1]  # δ does not rise with ε

    def accuracy(self, eps: FloatArray, beta: float) -> FloatArray | None:
        """Corollary 2: 24 e^ε c_d √(ln(4/β)/n) + 2 e^ε √(ln(4/β)/n)."""
        if self.neighbours is None:
            return None
        n, d = self.neighbours
        width = math.sqrt(math.log(4 / beta) / n)
        return np.asarray(np.exp(eps) * width * (24 * (_CONES**d - 1) + 2))


def _study(source: Source, n: int | None, options: _Options) -> _Study:
    """Learn on a part of the draws, look at the rest in blocks."""
    if n is None:
        assert source.remaining is not None
        n = min(source.remaining)
    learn = max(20, round(options.train * n))
    if n - learn < 10:
        raise InvalidInput(f"{n} draws per side leave too few to count after training; give more")
    pilot = source.take(min(learn, _PILOT))
    names = [options.classifier]
    if isinstance(options.classifier, str) and options.classifier == "auto":
        names = candidates(pilot.p, pilot.q)
    if isinstance(names[-1], str) and set(names) & {"kde", "polynomial"}:
        names = [name for name in names if name in ("kde", "polynomial")]
        return _on_grid(source, pilot, n, learn, names, options)
    return _by_scores(source, pilot, n, learn, names, options)


# --- losses on a grid: tallies of draws, which add up


def _on_grid(
    source: Source, pilot: Samples, n: int, learn: int, names: list[Any], options: _Options
) -> _Study:
    half = pilot.share(0.5)
    first = Plan.learn(half.p, half.q)
    rest = pilot.take()
    second = first.plan.tally(rest.p, rest.q)
    for part in _tallies(source, learn - min(learn, _PILOT), first.plan):
        second = second + part
    name = names[0] if len(names) == 1 else stiffest(first, second)
    make = GridLoss.polynomial if name == "polynomial" else GridLoss.of
    trained = first + second
    loss = make(trained)
    cuts = _cuts(_deltas(loss.masses(), options), options)
    held: Tally | None = None
    above = np.zeros((2, 2, options.eps.size), dtype=np.int64)
    if loss.levels(trained) is not None:
        for part in _tallies(source, n - learn, first.plan):
            held = part if held is None else held + part
        assert held is not None
        levels = loss.levels(held)
        assert levels is not None
        above += _hits(levels.loss, levels.loss, options.eps, levels.p, levels.q)
    else:  # more than one free coordinate: cells are no sets of draws, so every draw is scored
        tally = _TallyAndScore(first.plan, loss, options.eps)
        for part, hits in source.blocks(n - learn, tally):
            held = part if held is None else held + part
            above += hits
        assert held is not None
    everything = trained + held
    smooth = _deltas(make(everything).masses(), options)
    return _study_of(loss.name, everything.n, held.n, above, cuts, smooth, options, on_grid=True)


def _deltas(masses: Masses, options: _Options) -> FloatArray:
    """δ(ε) of either direction asked for."""
    return np.array([(masses.swap() if s else masses).delta(options.eps) for s in options.flips])


def _tallies(source: Source, n: int, plan: Plan) -> Iterable[Tally]:
    return source.blocks(n, plan.tally) if n else ()


@dataclass(frozen=True, eq=False)
class _TallyAndScore:
    plan: Plan
    loss: Loss
    eps: FloatArray

    def __call__(self, p: Outputs, q: Outputs) -> tuple[Tally, IntArray]:
        return self.plan.tally(p, q), _hits(self.loss.score(p), self.loss.score(q), self.eps)


def _hits(
    score_p: FloatArray,
    score_q: FloatArray,
    eps: FloatArray,
    weight_p: IntArray | None = None,
    weight_q: IntArray | None = None,
) -> IntArray:
    """[direction, side, ε]: draws with ℓ̂ > ε (forward) and ℓ̂ < −ε (backward), both sides."""
    out = np.zeros((2, 2, eps.size), dtype=np.int64)
    for side, (scores, weights) in enumerate(((score_p, weight_p), (score_q, weight_q))):
        order = np.argsort(scores)
        ranked = scores[order]
        counts = np.ones(ranked.size, dtype=np.int64) if weights is None else weights[order]
        total = np.concatenate([[0], np.cumsum(counts)])
        out[0, side] = total[-1] - total[np.searchsorted(ranked, eps, side="right")]
        out[1, side] = total[np.searchsorted(ranked, -eps, side="left")]
    return out


def _cuts(expected: FloatArray, options: _Options) -> npt.NDArray[np.bool_]:
    """Which direction to certify at each ε: the one with the larger δ in training."""
    if len(options.flips) == 1:
        return np.full(options.eps.size, options.flips[0])
    return np.asarray(expected[1] > expected[0])


def _study_of(
    name: str,
    n: tuple[int, int],
    held: tuple[int, int],
    above: IntArray,
    backward: npt.NDArray[np.bool_],
    smooth: FloatArray,
    options: _Options,
    notes: tuple[str, ...] = (),
    neighbours: tuple[int, int] | None = None,
    on_grid: bool = False,
) -> _Study:
    index = np.arange(options.eps.size)
    flip = backward.astype(int)
    leading, other = above[flip, flip, index], above[flip, 1 - flip, index]
    totals = np.where(backward, held[1], held[0]), np.where(backward, held[0], held[1])
    rates = []
    for side in options.flips:
        a, b = above[int(side), int(side)], above[int(side), 1 - int(side)]
        high, low = a / held[int(side)], b / held[1 - int(side)]
        lines = high[:, None] - low[:, None] * np.exp(options.eps)[None, :]
        rates.append(np.max(lines, axis=0, initial=0.0))
    return _Study(
        name,
        n,
        options.eps,
        backward,
        leading,
        other,
        totals,
        np.maximum(np.max(smooth, axis=0), 0.0),
        np.max(rates, axis=0),
        notes,
        neighbours,
        on_grid,
    )


# --- any other loss: scores of held-out draws


def _by_scores(
    source: Source, pilot: Samples, n: int, learn: int, names: list[Any], options: _Options
) -> _Study:
    train = pilot
    if learn > _PILOT:
        train = _joined(pilot, source.take(learn - _PILOT))
    name = names[0] if len(names) == 1 else _likeliest(train, names, source)
    train.rewind()
    loss = fit(name, train.p, train.q, rng=source.rng(3))
    scores = loss.score(train.p[:20_000]), loss.score(train.q[:20_000])
    backward = _cuts(_averages(*scores, options)[0] / min(len(train), 20_000), options)
    above = np.zeros((2, 2, options.eps.size), dtype=np.int64)
    sums = np.zeros((len(options.flips), options.eps.size))
    held = np.zeros(2, dtype=np.int64)
    for part_sums, hits, count in source.blocks(n - learn, _Averages(loss, options)):
        sums, above, held = sums + part_sums, above + hits, held + count
    per = np.array([held[int(side)] for side in options.flips])
    sizes = int(held[0]) + learn, int(held[1]) + learn
    dimension = train.p.numbers.shape[1]
    return _study_of(
        loss.name,
        sizes,
        (int(held[0]), int(held[1])),
        above,
        backward,
        sums / per[:, None],
        options,
        neighbours=(min(sizes), dimension) if loss.name.startswith("knn") else None,
    )


def _joined(a: Samples, b: Samples) -> Samples:
    from dpassay.sampling.outputs import concatenate

    return Samples(concatenate([a.p, b.p]), concatenate([a.q, b.q]), pair=a.pair, seed=a.seed)


def _likeliest(train: Samples, names: list[Any], source: Source) -> Any:
    """The candidate that predicts best which side held-back training draws are from."""
    half, rest = train.share(0.7), train.take()
    best: tuple[float, Any] | None = None
    for index, name in enumerate(names):
        loss = fit(name, half.p, half.q, rng=source.rng(index))
        surprise = (
            np.logaddexp(0, -loss.score(rest.p)).mean() + np.logaddexp(0, loss.score(rest.q)).mean()
        )
        if best is None or surprise < best[0]:
            best = (float(surprise), name)
    assert best is not None
    return best[1]


@dataclass(frozen=True, eq=False)
class _Averages:
    loss: Loss
    options: _Options

    def __call__(self, p: Outputs, q: Outputs) -> tuple[FloatArray, IntArray, IntArray]:
        scores = self.loss.score(p), self.loss.score(q)
        return *_averages(*scores, self.options), np.array([len(p), len(q)])


def _averages(
    score_p: FloatArray, score_q: FloatArray, options: _Options
) -> tuple[FloatArray, IntArray]:
    """Σ (1 − e^{ε−ℓ̂})₊ over the leading side of each direction, and the hits."""
    eps, sums = options.eps, []
    for side in options.flips:
        ranked = np.sort(-score_q if side else score_p)
        tail = np.concatenate([np.cumsum(np.exp(-ranked)[::-1])[::-1], [0.0]])
        at = np.searchsorted(ranked, eps, side="right")
        sums.append(ranked.size - at - np.exp(eps) * tail[at])
    return np.array(sums), _hits(score_p, score_q, eps)


# --- sets of databases


@dataclass(frozen=True, eq=False, kw_only=True)
class PairSpectrum(Record):
    """One pair of a set: its estimate, and the counts its certificate is made of."""

    database: str  # a fingerprint of the database it belongs to
    pair: Pair
    y: FloatArray = field(repr=False)
    backward: npt.NDArray[np.bool_] = field(repr=False)
    hits: IntArray = field(repr=False)
    misses: IntArray = field(repr=False)
    totals: tuple[IntArray, IntArray] = field(repr=False)
    method: str = ""

    def __post_init__(self) -> None:
        for name, kind in (("y", float), ("backward", bool), ("hits", int), ("misses", int)):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=kind))
        object.__setattr__(self, "totals", tuple(np.asarray(t, dtype=int) for t in self.totals))

    def lower(self, eps: FloatArray, gamma: float) -> FloatArray:
        """The certified curve at a level."""
        none = np.zeros(0)
        study = _Study(
            "", (0, 0), eps, self.backward, self.hits, self.misses, self.totals, none, none, ()
        )
        return study.lower(eps, gamma)


@dataclass(frozen=True, eq=False)
class SetSpectrum(Spectrum):
    """δ(ε) of the worst pair of a set, with what every pair contributed."""

    parts: tuple[PairSpectrum, ...] = field(default=(), repr=False)
    failures: tuple[str, ...] = ()

    def worst(self, epsilon: float = 0.0) -> Pair:
        """The pair with the largest estimate at ε: for relative DP its name says which row."""
        at = int(np.argmin(np.abs(self.x - epsilon)))
        return max(self.parts, key=lambda part: float(part.y[at])).pair


def relative(
    mechanism: Any,
    databases: Iterable[Any],
    *,
    epsilons: npt.ArrayLike | None = None,
    n: int,
    classifier: Any = "auto",
    confidence: float = 0.95,
    plug_in: Literal["auto", "smooth", "counts"] = "auto",
    previous: SetSpectrum | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> SetSpectrum:
    """δ_T(ε), relative to a set T of databases: the worst of their remove-one neighbours.

    Every database of T is compared with each database that has one record less, in both directions;
    `n` draws per side per pair. The certified curve holds for all pairs at once (union bound).
    `previous` is a result for another set: databases it holds, unchanged, are not run again
    (Proposition 2). A pair on which the mechanism fails is listed in `failures` and does not lose the
    others.

    >>> import dpassay as dp, numpy as np
    >>> def count(data, size, rng):
    ...     return np.sum(data) + rng.laplace(size=size)
    >>> result = dp.spectrum.relative(count, [[1, 0, 1]], n=20_000, rng=0)
    >>> result.worst().name in ("without record 0", "without record 2")
    True
    """
    eps = _grid(epsilons)
    known: dict[str, list[PairSpectrum]] = {}
    if previous is not None:
        if not np.array_equal(previous.x, eps):
            raise InvalidInput("previous was made on another grid of epsilons: give the same one")
        for part in previous.parts:
            known.setdefault(part.database, []).append(part)
    wanted: dict[str, list[Pair]] = {}
    for database in databases:
        wanted[_fingerprint(database)] = remove_one(database)
    if not wanted:
        raise InvalidInput("databases holds no database")
    jobs: list[tuple[str, Pair, Any]] = []
    reused: list[PairSpectrum] = []
    black_box = check_mechanism(mechanism)
    for key, pairs in wanted.items():
        if len(known.get(key, [])) == len(pairs):
            reused += known[key]
        else:
            jobs += [(key, pair, black_box) for pair in pairs]
    options = _Options.of(eps, classifier, plug_in, None, "both")
    return _union(jobs, reused, options, n, confidence, rng, sampling)


def distributional(
    mechanism: Any,
    populations: Population | Sequence[Population],
    values: Sequence[Any],
    *,
    epsilons: npt.ArrayLike | None = None,
    n: int,
    rows: Iterable[int] | None = None,
    batched: bool = False,
    classifier: Any = "auto",
    confidence: float = 0.95,
    plug_in: Literal["auto", "smooth", "counts"] = "auto",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> SetSpectrum:
    """Distributional DP: what the output says of one record when the others are random.

    For every population, every row of its databases (or those in `rows`: one is enough where rows are
    exchangeable) and every two values, the row is set to either value and the rest drawn afresh for
    each output. The mechanism may be deterministic. It is called with one database at a time, or,
    with `batched`, with an array of `size` databases at once, `mechanism(databases, rng)`.

    >>> import dpassay as dp
    >>> coins = dp.neighbours.Population(lambda size, rows, rng: rng.integers(2, size=(size, rows)), 11)
    >>> result = dp.spectrum.distributional(
    ...     lambda databases, rng: databases.sum(axis=1), coins, [0, 1], rows=[0], batched=True,
    ...     epsilons=[0.0], n=100_000, rng=0)
    >>> bool(abs(result.y[0] - 0.246) < 0.01)
    True
    """
    eps = _grid(epsilons)
    if not callable(mechanism):
        raise InvalidInput(f"mechanism must be a function, got {checks.shown(mechanism)}")
    chosen = [populations] if isinstance(populations, Population) else list(populations)
    given = list(values)
    if not chosen or len(given) < 2:
        raise InvalidInput("give at least one population and two values a record can take")
    jobs = []
    for k, population in enumerate(chosen):
        if not isinstance(population, Population):
            raise InvalidInput(
                f"populations must hold dp.neighbours.Population, got {population!r}"
            )
        for row in range(population.rows) if rows is None else rows:
            checks.whole("rows", row, at_least=0)
            if row >= population.rows:
                raise InvalidInput(f"row {row} is not in a database of {population.rows} rows")
            box = _OnPopulation(mechanism, population, int(row), batched)
            for a, b in itertools.combinations(given, 2):
                name = f"population {population.name or k}, row {row}"
                jobs.append((name, Pair(a, b, Relation.DISTRIBUTIONAL, name), box))
    options = _Options.of(eps, classifier, plug_in, None, "both")
    return _union(jobs, [], options, n, confidence, rng, sampling)


@dataclass(frozen=True, eq=False)
class _OnPopulation:
    """A mechanism on random databases in which one row is given."""

    mechanism: Any
    population: Population
    row: int
    batched: bool

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        databases = np.array(self.population.draw(size, self.population.rows, rng))
        if databases.shape[:2] != (size, self.population.rows):
            raise InvalidInput(
                f"a population drew databases of shape {databases.shape}, not "
                f"({size}, {self.population.rows}, …)"
            )
        databases[:, self.row] = data
        if self.batched:
            return self.mechanism(databases, rng)
        one = [self.mechanism(database, 1, rng)[0] for database in databases]
        array = np.array(one) if isinstance(one[0], (int, float, np.generic)) else None
        if array is None:
            array = np.empty(size, dtype=object)
            array[:] = one
        return array


def _union(
    jobs: list[tuple[str, Pair, Any]],
    reused: list[PairSpectrum],
    options: _Options,
    n: int,
    confidence: float,
    rng: Seed,
    sampling: Sampling | None,
) -> SetSpectrum:
    """Every job's spectrum, and the worst of them all."""
    gamma = 1 - checks.probability("confidence", confidence)
    draws = checks.whole("n", n, at_least=40)
    seed, parts, failures = seed_of(rng), list(reused), []
    first: Exception | None = None
    quiet = Sampling() if sampling is None else sampling
    with Progress(len(jobs), "pairs", quiet.progress, "pairs") as progress:
        for index, (key, pair, mechanism) in enumerate(jobs):
            source = Live(mechanism, pair, seed=seed, index=index, sampling=sampling)
            try:
                study = _study(source, draws, options)
            except MechanismError as error:
                failures.append(f"{pair.name}: {error}")
                first = first or error
                continue
            finally:
                progress.advance(1)
            parts.append(
                PairSpectrum(
                    database=key,
                    pair=pair,
                    y=study.delta(options),
                    backward=study.backward,
                    hits=study.hits,
                    misses=study.misses,
                    totals=study.totals,
                    method=study.name,
                )
            )
    if not parts:
        assert first is not None
        raise first
    level = gamma / (len(parts) + len(failures))
    lower = np.max([part.lower(options.eps, level) for part in parts], axis=0)
    notes = [f"{len(parts)} pairs, {len(reused)} of them from an earlier result"]
    if failures:
        notes.append(f"the mechanism failed on {len(failures)} pairs, which are not part of this")
    return SetSpectrum(
        options.eps,
        np.max([part.y for part in parts], axis=0),
        lower=lower,
        confidence=confidence,
        about=About(
            method="Eureka, worst of a set with "
            + ", ".join(sorted({part.method for part in parts})),
            guarantee=Guarantee.HEURISTIC,
            n=(draws, draws),
            seed=seed,
            notes=tuple(notes),
        ),
        parts=tuple(parts),
        failures=tuple(failures),
    )


def _fingerprint(database: Any) -> str:
    """The same for equal databases, in this process and the next."""
    if isinstance(database, np.ndarray) and database.dtype != object:
        content = f"{database.dtype} {database.shape}".encode() + database.tobytes()
    else:
        content = repr(database).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _grid(epsilons: npt.ArrayLike | None) -> FloatArray:
    try:
        eps = np.atleast_1d(
            np.asarray(np.linspace(0, 2, 41) if epsilons is None else epsilons, dtype=float)
        )
    except (TypeError, ValueError):
        eps = np.zeros(0)
    if eps.ndim != 1 or eps.size == 0 or not np.all(np.isfinite(eps)) or np.any(eps < 0):
        raise InvalidInput(
            f"epsilons must be finite numbers of at least 0, got {checks.shown(epsilons)}"
        )
    return np.unique(eps)
