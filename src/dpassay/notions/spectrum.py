"""The (ε, δ) spectrum: δ(ε) for all ε from one loss.

After Eureka (Lu, Magdon-Ismail, Wei & Zikas, IACR ePrint 2022/1250).

δ(ε) = sup_E P(E) − e^ε Q(E) is attained by E = {ℓ > ε}, ℓ = log p/q. The paper trains a classifier of
P thinned by e^{−ε} against Q for every ε; the log-odds of one classifier are ℓ, and comparing them with
ε is what the thinned one learns to do. So everything is fitted once:

- `y`, the estimate, **heuristic**: E_P[(1 − e^{ε−ℓ̂})₊] ("smooth"), or held-out counts ("counts");
- `lower`, **exact**: events {ℓ̂ > ε} chosen on training draws, counted on held-out ones.
  Clopper–Pearson limits of all events hold at once, and every event bounds δ(ε) at every ε, so the curve
  is the largest of lines in e^ε. For up to four ε declared beforehand the exact joint test is used
  instead: it is tighter;
- `upper`, **exact**, for discrete outputs: held-out counts of the outputs that the training draws show to
  repeat (`bounds.upper_delta`), at all ε at once; None where outputs are not discrete;
- `accuracy`, **asymptotic**, for nearest neighbours: the paper's Corollary 2.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.blackbox.mechanism import check_mechanism
from dpassay.blackbox.neighbours import Population, remove_one
from dpassay.errors import InvalidInput, MechanismError
from dpassay.notions.pure import QUADRATIC, above_zero
from dpassay.notions.threshold_counts import (
    Options,
    PairSpectrum,
    accuracy,
    bounded_above,
    certified,
    count_thresholds,
)
from dpassay.outputs.canonical import from_raw
from dpassay.privacy.curves import Spectrum
from dpassay.privacy.provenance import UNCERTIFIED, About, Guarantee
from dpassay.privacy.relations import Direction, Pair, Relation
from dpassay.sampling.draw import Sampling, Seed, seed_for
from dpassay.sampling.progress import CallProgress
from dpassay.sampling.samples import Live, one_source

__all__ = ["SetSpectrum", "distributional", "estimate", "parallel", "relative", "sequential"]


def estimate(
    mechanism: Any,
    pair: Any = None,
    *,
    epsilons: npt.ArrayLike | None = None,
    n: int | None = None,
    loss: Any = "auto",
    confidence: float = 0.95,
    plug_in: Literal["auto", "smooth", "counts"] = "auto",
    train: float | None = None,
    direction: Direction = "both",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> Spectrum:
    """Estimate δ(ε) of a pair, by default in the worse direction, with a certified lower curve.

    epsilons    the grid, 41 points in [0, 2] by default; up to four are bounded by the exact joint test
    n           draws per side, training included
    loss        "auto" (a quadratic loss or kernel densities where outputs have up to two free
                coordinates, frequencies where they have none, else the best of logistic regression
                and boosting), "kde", "polynomial", "knn", "logistic", "boosting", "mlp", "torch", or any
                scikit-learn classifier
    plug_in     "smooth" averages 1 − e^{ε−ℓ̂}, far less noisy where δ is small, and too large where ℓ̂ is
                noise; "counts" counts on held-out draws, which biases no estimate upwards. "auto" is
                smooth for losses on a grid of one number (a quadratic: of two) and counts for the others
    train       the share of draws that train; a quarter by default, half for "knn" (as in the paper).
                Unless it is given, at most the first 2¹⁷ draws a side train a classifier

    Memory does not grow with n: the first 2¹⁷ draws are kept, all others counted as they come. Draws that
    train "knn", or by a share that is given any other classifier, are kept.

    >>> import dpassay as dp
    >>> spectrum = dp.spectrum.estimate(dp.zoo.Laplace(1.0), (0.0, 1.0), n=100_000, rng=0)
    >>> bool(abs(spectrum(0.5) - dp.zoo.Laplace(1.0).delta(0.5, (0.0, 1.0))) < 0.01)
    True
    >>> bool(spectrum.lower[10] <= 0.2212)
    True
    """
    options = Options.of(epsilons, loss, plug_in, train, direction)
    eps = options.eps
    source = one_source(mechanism, pair, rng=rng, sampling=sampling)
    gamma = 1 - checks.confidence(confidence)
    draws = None if n is None else checks.whole("n", n, at_least=40)
    found, counted = count_thresholds(source, draws, options)
    upper, notes = bounded_above([found.cells], eps, gamma, options.swaps)
    if found.method == "polynomial":
        notes = (*notes, QUADRATIC)
    if found.method == "kde":
        notes = (*notes, above_zero(min(counted.n)))
    notes = (*notes, *counted.notes)
    name, lower = f"Eureka with {found.method}", certified(found, eps, gamma, options.swaps)
    if source.doubts:
        about = About.of(source, name, Guarantee.HEURISTIC, counted.n, (*notes, UNCERTIFIED))
        return Spectrum(eps, found.y, about=about)
    return Spectrum(
        eps,
        np.maximum(found.y, lower),
        lower=lower,
        confidence=confidence,
        upper=upper,
        accuracy=accuracy(counted, eps, gamma),
        about=About.of(source, name, Guarantee.HEURISTIC, counted.n, notes),
    )


# --- sets of databases


@dataclass(frozen=True, eq=False)
class SetSpectrum(Spectrum):
    """δ(ε) of the worst pair of a set, with the estimate and counts of every pair."""

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
    loss: Any = "auto",
    confidence: float = 0.95,
    plug_in: Literal["auto", "smooth", "counts"] = "auto",
    previous: SetSpectrum | None = None,
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> SetSpectrum:
    """δ_T(ε), relative to a set T of databases: the worst of their remove-one neighbours.

    Every database of T is compared with each database that has one record less, in both directions;
    `n` draws per side per pair. The certified curve holds for all pairs at once (union bound).
    `previous` is a result for another set: its databases are not run again (Proposition 2). The sets must
    not be chosen by looking at results: the certified curves are for pairs fixed beforehand. A pair on
    which the mechanism fails is listed in `failures`, and the others are kept. Draws are kept as in
    `estimate`, of one pair at a time.

    >>> import dpassay as dp, numpy as np
    >>> def count(data, size, rng):
    ...     return np.sum(data) + rng.laplace(size=size)
    >>> result = dp.spectrum.relative(count, [[1, 0, 1]], n=20_000, rng=0)
    >>> result.worst().name in ("without record 0", "without record 2")
    True
    """
    options = Options.of(epsilons, loss, plug_in)
    if previous is not None and not isinstance(previous, SetSpectrum):
        raise InvalidInput(
            f"previous must be a result of dp.spectrum.relative, got {checks.shown(previous)}"
        )
    if previous is not None and not np.array_equal(previous.x, options.eps):
        raise InvalidInput("previous was made on another grid of epsilons: give the same one")
    wanted = {_fingerprint(one): remove_one(one) for one in checks.listed("databases", databases)}
    if not wanted:
        raise InvalidInput("databases holds no database")
    jobs: list[tuple[str, Pair, Any]] = []
    reused: list[PairSpectrum] = []
    black_box = check_mechanism(mechanism)
    for key, pairs in wanted.items():
        parts = () if previous is None else previous.parts
        known = [part for part in parts if part.database == key]
        if len(known) == len(pairs):
            reused += known
        else:
            jobs += [(key, pair, black_box) for pair in pairs]
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
    loss: Any = "auto",
    confidence: float = 0.95,
    plug_in: Literal["auto", "smooth", "counts"] = "auto",
    rng: Seed = None,
    sampling: Sampling | None = None,
) -> SetSpectrum:
    """Distributional DP: what the output reveals of one record when the others are random.

    For every population, every row of its databases (or those in `rows`: one is enough where rows are
    exchangeable) and every two values, the row is set to either value and the rest drawn afresh for
    each output: rows must be independent, as in the paper's definition, for then setting a row is the
    same as conditioning on it. The mechanism may be deterministic. It is called with one database at a
    time, or, with `batched`, with an array of `size` databases at once, `mechanism(databases, rng)`.
    Draws are kept as in `estimate`, and up to 65,536 databases at a time.

    >>> import dpassay as dp
    >>> coins = dp.neighbours.Population(lambda size, rows, rng: rng.integers(2, size=(size, rows)), 11)
    >>> result = dp.spectrum.distributional(
    ...     lambda databases, rng: databases.sum(axis=1), coins, [0, 1], rows=[0], batched=True,
    ...     epsilons=[0.0], n=100_000, rng=0)
    >>> bool(abs(result.y[0] - 0.246) < 0.01)
    True
    """
    options = Options.of(epsilons, loss, plug_in)
    if not callable(mechanism):
        raise InvalidInput(f"mechanism must be a function, got {checks.shown(mechanism)}")
    single = isinstance(populations, Population)
    chosen = [populations] if single else checks.listed("populations", populations)
    given = checks.listed("values", values)
    some = None if rows is None else checks.listed("rows", rows)
    if not chosen or len(given) < 2 or some == []:
        raise InvalidInput("give at least one population, one row and two values a record can take")
    jobs = []
    for k, population in enumerate(chosen):
        if not isinstance(population, Population):
            raise InvalidInput(
                f"populations must hold dp.neighbours.Population, got {checks.shown(population)}"
            )
        for row in range(population.rows) if some is None else some:
            checks.whole("rows", row, at_least=0)
            if row >= population.rows:
                raise InvalidInput(f"row {row} is not in a database of {population.rows} rows")
            box = _OnPopulation(mechanism, population, int(row), batched)
            for a, b in itertools.combinations(given, 2):
                name = f"population {population.name or k}, row {row}"
                jobs.append((name, Pair(a, b, Relation.DISTRIBUTIONAL, name), box))
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
        return [self.mechanism(database, 1, rng)[0] for database in databases]


def _union(
    jobs: list[tuple[str, Pair, Any]],
    reused: list[PairSpectrum],
    options: Options,
    n: int,
    confidence: float,
    rng: Seed,
    sampling: Sampling | None,
) -> SetSpectrum:
    """Every job's spectrum, and the worst of them all."""
    gamma = 1 - checks.confidence(confidence)
    draws = checks.whole("n", n, at_least=40)
    seed, parts, failures = seed_for(rng, sampling), list(reused), []
    first: Exception | None = None
    doubts: list[str] = []
    with CallProgress(len(jobs) * draws) as bar:
        for index, (key, pair, mechanism) in enumerate(jobs):
            bar.say(f"pair {index + 1} of {len(jobs)}", (len(jobs) - index) * draws)
            source = Live(mechanism, pair, seed=seed, index=index, sampling=sampling)
            try:
                parts.append(count_thresholds(source, draws, options, key)[0])
                doubts += source.doubts
            except MechanismError as error:
                failures.append(f"{pair.name}: {error}")
                first = first or error
    if not parts:
        assert first is not None
        raise first
    level = gamma / (len(parts) + len(failures))
    lower = [certified(part, options.eps, level) for part in parts]
    notes = [
        f"{len(parts)} pair{'s' * (len(parts) != 1)}, {len(reused)} of them from an earlier result"
    ]
    # the largest upper bound needs no union bound: it is too small only if that of the worst pair is
    upper, why_none = bounded_above([part.cells for part in parts], options.eps, gamma)
    if failures:
        notes.append(
            f"the mechanism failed on {len(failures)} pair{'s' * (len(failures) != 1)}, not part of this"
        )
        upper = None
        why_none = why_none or ("no upper curve: the mechanism failed on a pair",)
    methods = ", ".join(sorted({part.method for part in parts}))
    notes += [*doubts, *[UNCERTIFIED] * bool(doubts)]
    return SetSpectrum(
        options.eps,
        np.max([part.y for part in parts], axis=0),
        lower=None if doubts else np.max(lower, axis=0),
        upper=None if doubts else upper,
        confidence=None if doubts else confidence,
        about=About(
            method=f"Eureka, worst of a set with {methods}",
            guarantee=Guarantee.HEURISTIC,
            n=(draws, draws),
            seed=seed,
            notes=(*notes, *why_none),
        ),
        parts=tuple(parts),
        failures=tuple(failures),
    )


# --- composition, for databases of a set or all (Eureka, Propositions 3 to 5)
#
# Post-processing needs none: a function of the output has no larger δ. Distributional guarantees do not
# compose sequentially: of m fair coins, the sum and the sum without row 0 have small δ each, and give
# row 0 away together.


def parallel(first: Spectrum, *others: Spectrum) -> Spectrum:
    """The spectrum of mechanisms that each see a part of the data of their own: the largest δ.

    >>> import dpassay as dp
    >>> small, large = dp.Spectrum([0.0, 1.0], [0.2, 0.0]), dp.Spectrum([0.0, 1.0], [0.3, 0.1])
    >>> dp.spectrum.parallel(small, large)(0.0)
    0.3
    """
    return _together("parallel", np.maximum, (first, *others))


def sequential(first: Spectrum, *others: Spectrum) -> Spectrum:
    """A bound for the spectrum of mechanisms that all see the same data: least Σ δᵢ(εᵢ) with Σ εᵢ ≤ ε.

    All have one grid, and so has the result: let it reach up to the largest total ε that is wanted.
    Of estimates it is an estimate; `upper` is certified where theirs are, and so is the largest `lower`:
    one output is a function of all. An accountant that knows the mechanisms gives less.

    >>> import dpassay as dp
    >>> one = dp.Spectrum([0.0, 0.5, 1.0], [0.4, 0.1, 0.0])
    >>> dp.spectrum.sequential(one, one)(1.0)  # ½ each
    0.2
    """
    parts = [part for one in (first, *others) for part in getattr(one, "parts", ())]
    if any(part.pair.relation is Relation.DISTRIBUTIONAL for part in parts):
        raise InvalidInput(
            "distributional guarantees do not compose: two outputs of the same random rows may reveal "
            "together what neither does. Estimate the mechanism that returns both"
        )

    def least_sum(a: FloatArray, b: FloatArray) -> FloatArray:
        totals, sums = np.add.outer(first.x, first.x).ravel(), np.add.outer(a, b).ravel()
        order = np.argsort(totals)
        best = np.minimum.accumulate(np.append(1.0, sums[order]))
        reached = first.x * (1 + 1e-12) + 1e-12  # sums of grid points are rounded
        return best[np.searchsorted(totals[order], reached, side="right")]

    return _together("sequential", least_sum, (first, *others))


def _together(
    how: str,
    combine: Callable[[FloatArray, FloatArray], FloatArray],
    spectra: tuple[Spectrum, ...],
) -> Spectrum:
    """Curves combined one after the other; the certified ones hold at once (union bound)."""
    same = all(isinstance(one, Spectrum) for one in spectra)
    if not same or not all(np.array_equal(one.x, spectra[0].x) for one in spectra):
        raise InvalidInput(
            "give spectra (dp.Spectrum) that have the same grid of epsilons, one argument each: "
            f"{how}(first, second)"
        )
    upper = [one.upper for one in spectra if one.upper is not None]
    lower = [one.lower for one in spectra if one.lower is not None]
    different = {id(one): one for one in spectra}.values()  # used k times, it is wrong once
    wrong = sum(1 - (1.0 if one.confidence is None else one.confidence) for one in different)
    return Spectrum(
        spectra[0].x,
        reduce(combine, [one.y for one in spectra]),
        lower=np.max(lower, axis=0) if lower else None,
        upper=reduce(combine, upper) if len(upper) == len(spectra) else None,
        confidence=max(0.0, 1 - wrong) if lower or upper else None,
        about=About(
            method=f"{how} composition of {len(spectra)} spectra", guarantee=Guarantee.HEURISTIC
        ),
    )


def _fingerprint(database: Any) -> str:
    """The same for equal databases, in this process and the next."""
    if isinstance(database, np.ndarray) and database.dtype != object:
        content = f"{database.dtype} {database.shape}".encode() + database.tobytes()
    else:
        try:  # by its canonical form: printed ones are abbreviated
            form = from_raw([database], 1)
            rest = b"" if form.rest is None else form.rest.tobytes()
            numbers = np.asarray(form.numbers, dtype=float)
            content = repr(form.structures).encode("utf-8", "backslashreplace")
            content += numbers.tobytes() + rest
        except Exception as error:  # an object may raise anything
            raise InvalidInput(
                f"a database of type {type(database).__name__} cannot be compared with others: {error}"
            ) from None
    return hashlib.sha256(content).hexdigest()[:16]
