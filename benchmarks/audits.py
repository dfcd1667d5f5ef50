"""Quality of the audit: false alarms, power, and what it catches."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom

import dpassay as dp
from benchmarks.parallel import runs
from benchmarks.tables import markdown, table

zoo = dp.zoo
UNIT = (0.0, 1.0)
#: The first of the seeds for measuring power, on which nothing was ever tuned.
FRESH = 9_000_000
UNEVEN = "Laplace, four times as many on one side"


def useless(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Noise that has nothing to do with the input, in three coordinates."""
    return rng.normal(size=(size, 3))


def ties(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Randomized response on one bit among ties."""
    return np.where(rng.random(size) < 1 / (1 + np.exp(1.0)), 1 - data, data)


def constant(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Always the same output."""
    return np.zeros(size)


# Outputs that are rarely of another kind: what NumPy makes of a block depends on whether it holds one.


def integers_or_nan(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Integers, a NaN in one of 300; a list, of which NumPy would make integers or doubles."""
    return [math.nan if rng.random() < 1 / 300 else int(k) for k in rng.integers(0, 9, size=size)]


def doubles_or_nan(data: Any, size: int, rng: np.random.Generator) -> Any:
    """The same as an array: integers in most blocks, doubles in some."""
    return np.array(integers_or_nan(data, size, rng))


def row_or_none(data: Any, rng: np.random.Generator) -> Any:
    """Three numbers, rarely nothing."""
    return None if rng.random() < 1 / 300 else rng.integers(0, 3, size=3)


def row_or_shorter(data: Any, rng: np.random.Generator) -> Any:
    """Three numbers, rarely two."""
    return rng.normal(size=2 if rng.random() < 1 / 300 else 3).tolist()


def none_inside(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Pairs of numbers, rarely with a None in them."""
    return [[None if rng.random() < 1 / 300 else 1.0, float(x)] for x in rng.normal(size=size)]


def number_or_word(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Numbers, rarely a word."""
    return ["word" if rng.random() < 1 / 300 else float(x) for x in rng.normal(size=size)]


def rarely_raises(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Two numbers, or an exception."""
    if rng.random() < 1 / 300:
        raise ValueError
    return rng.integers(0, 4, size=(size, 2))


def random_words(data: Any, size: int, rng: np.random.Generator) -> Any:
    """Words of six letters, of which hardly one comes twice."""
    letters = rng.integers(97, 123, size=(size, 6)).astype(np.uint8)
    return letters.view("S6").ravel().astype(str)


RARE = {
    "integers, rarely NaN": integers_or_nan,
    "an array of integers, rarely NaN": doubles_or_nan,
    "a row or, rarely, None": dp.from_function(row_or_none),
    "a row, rarely shorter": dp.from_function(row_or_shorter),
    "rows, rarely with a None": none_inside,
    "numbers, rarely a word": number_or_word,
    "a row or, rarely, an exception": rarely_raises,
}


@cache
def true_claims() -> dict[str, tuple[Any, Any, Any]]:
    """Claims that hold with equality on their pair, or as nearly as is known."""
    gaussian, ten = zoo.Gaussian(), (np.zeros(10), np.eye(10)[0])
    cells: dict[str, tuple[Any, Any, Any]] = {
        "Laplace": (zoo.Laplace(), UNIT, dp.PureDP(1.0)),
        "Gaussian, GDP": (gaussian, UNIT, dp.GaussianDP(1.0)),
        "Gaussian, (ε,δ)": (gaussian, UNIT, dp.ApproximateDP(1.0, gaussian.delta(1.0, UNIT))),
        "Gaussian, Rényi": (gaussian, UNIT, dp.RenyiDP(2, 1.0)),
        "Gaussian, zCDP": (gaussian, UNIT, dp.ZeroConcentratedDP(0.5)),
        "10-d Gaussian": (gaussian, ten, dp.GaussianDP(1.0)),
        "P = Q": (zoo.Laplace(), (0.0, 0.0), dp.PureDP(0.0)),
        "all equal": (constant, UNIT, dp.PureDP(0.1)),
        "P = Q, doubles as they are": (zoo.NaiveLaplace(), (0.3, 0.3), dp.PureDP(0.0)),
        "P = Q, random words": (random_words, UNIT, dp.PureDP(0.0)),
        "useless score": (useless, UNIT, dp.PureDP(0.0)),
        "ties": (ties, (0, 1), dp.PureDP(1.0)),
        UNEVEN: (zoo.Laplace(), UNIT, dp.PureDP(1.0)),
    }
    cells |= {name: (mechanism, UNIT, dp.PureDP(0.0)) for name, mechanism in RARE.items()}
    exact: list[Any] = [
        zoo.DiscreteLaplace(),
        zoo.RandomizedResponse(1.5),
        zoo.SVT(1, 1.5),
        zoo.NumericalSVT(1.5),
        zoo.ReportNoisyMax(1.5),
    ]
    for mechanism in exact:
        try:
            level = mechanism.epsilon(mechanism.pair)
        except dp.errors.NoClosedForm:
            level = 1.5
        cells[str(mechanism)] = (mechanism, mechanism.pair, dp.PureDP(float(level)))
    for name, leaky, epsilon in (
        ("truncated Laplace", zoo.TruncatedLaplace(), 1.0),
        ("SVT3", zoo.SVT(3, 1.5), 1.5),
    ):
        a, b = leaky.pair
        delta = max(leaky.delta(epsilon, (a, b)), leaky.delta(epsilon, (b, a)))
        cells[name] = (leaky, leaky.pair, dp.ApproximateDP(epsilon, float(delta)))
    return cells


def one_false(seed: int, name: str, n: int) -> float:
    """The p-value of an audit of a true claim (1 where it is not refuted)."""
    mechanism, pair, claim = true_claims()[name]
    if name == UNEVEN:
        rng = np.random.default_rng(seed)
        sides = mechanism(pair[0], n, rng), mechanism(pair[1], 4 * n, rng)
        verdict = dp.audit(dp.from_samples(*sides, rng=seed), claim=claim)
    else:
        way = dp.Sampling(on_error="outcome") if mechanism is rarely_raises else None
        verdict = dp.audit(mechanism, pair, claim, n=n, rng=seed, sampling=way)
    return float(verdict.p_value) if verdict.violated else 1.0


#: Cells whose audits fit trees, or call a function for each output: fewer of them are run.
SLOW = ("10-d", "useless", "P = Q, random", "Randomized", "a row", "rows,", "SVT3", "NumericalSVT")


@table("audit-false")
def false_alarms(count: int = 300, large: int = 60) -> str:
    """False alarms at claim = truth: 300 audits a cell at n = 200 and 2000, 60 at 10⁴ (12 minutes)."""
    rows = []
    cells = true_claims()
    tests = len(cells) * 3 * 2
    for name in cells:
        row: list[str] = [name, str(cells[name][2])]
        part = 5 if name.startswith(SLOW) else 1
        sizes = ((200, count // part), (2000, count // part), (10_000, large // part))
        for n, runs_made in sizes:
            found = np.array(runs(one_false, range(runs_made), name, n, label=f"{name} {n}"))
            for gamma in (0.05, 0.01):
                limit = binom.ppf(1 - 0.01 / tests, runs_made, gamma) / runs_made
                rate = float(np.mean(found <= gamma))
                row.append(f"{rate:.4f}" + ("" if rate <= limit else " **above its limit**"))
        rows.append(row)
    headings = ["mechanism", "claim = truth"]
    headings += [f"n = {n:,}, γ = {g}" for n, _ in sizes for g in (0.05, 0.01)]
    return markdown(headings, rows)


def one_detection(
    seed: int, mechanism: Any, pair: Any, claim: Any, n: int, confidence: float = 0.95
) -> bool:
    """Whether a claim is refuted."""
    fails = isinstance(mechanism, (zoo.RaisesOnOne, zoo.StringOnOne))
    sampling = dp.Sampling(on_error="outcome") if fails else None
    verdict = dp.audit(
        mechanism, pair, claim, n=n, confidence=confidence, rng=seed, sampling=sampling
    )
    return bool(verdict.violated)


@table("audit-power")
def power(count: int = 400) -> str:
    """How often a false claim is refuted, by total draws a side, 400 audits a cell (5 minutes)."""
    laplace, twice, gaussian = zoo.Laplace(1.0), zoo.Laplace(0.5), zoo.Gaussian()
    cells: list[tuple[str, Any, Any, int, str]] = [
        ("Laplace, ε = 1", laplace, dp.PureDP(0.5), 400, "≥ .90"),
        ("Laplace, ε = 1", laplace, dp.PureDP(0.75), 1800, "≥ .90"),
        ("Laplace, ε = 1", laplace, dp.PureDP(0.9), 12_000, "≥ .90"),
        ("Laplace, ε = 1", laplace, dp.PureDP(0.95), 50_000, "≥ .90"),
        ("Laplace, ε = 2", twice, dp.PureDP(1.0), 100, "≥ .75"),
        ("Laplace, ε = 2", twice, dp.PureDP(1.0), 200, "≥ .90"),
        ("Gaussian, μ = 1", gaussian, dp.RenyiDP(2, 0.85), 20_000, "–"),
        ("Gaussian, μ = 1", gaussian, dp.RenyiDP(2, 0.9), 100_000, "≥ .90"),
        ("Gaussian, μ = 1", gaussian, dp.ZeroConcentratedDP(0.45), 100_000, "≥ .90"),
        ("Laplace, ε = 1", laplace, dp.RenyiDP(5, 0.7), 8000, "≥ .90"),
    ]
    rows = []
    for name, mechanism, claim, n, wanted in cells:
        made = count if n < 100_000 else count // 8
        seeds = range(FRESH, FRESH + made)
        found = runs(one_detection, seeds, mechanism, UNIT, claim, n, label=f"{name} {claim}")
        rows.append([name, str(claim), f"{n:,}", f"{np.mean(found):.3f}", wanted])
    return markdown(["truth", "claim", "draws a side", "refuted", "wanted"], rows)


def one_choice(
    seed: int, mechanism: Any, pair: Any, claim: Any, n: int, options: dict[str, Any]
) -> bool:
    """Whether a claim is refuted by an audit that learns in another way."""
    return bool(dp.audit(mechanism, pair, claim, n=n, rng=seed, **options).violated)


@table("audit-choices")
def choices(count: int = 300) -> str:
    """What the training share and the score do to detection, 300 audits a cell, 60 in 10-d (6 min)."""
    one, two, wide = zoo.Laplace(1.0), zoo.Laplace(0.5), (np.zeros(10), np.eye(10)[0])
    cells: dict[str, tuple[Any, Any, Any, int]] = {
        "ε = 2 against 1, n = 100": (two, UNIT, dp.PureDP(1.0), 100),
        "1 against .5, n = 400": (one, UNIT, dp.PureDP(0.5), 400),
        "1 against .75, n = 1,800": (one, UNIT, dp.PureDP(0.75), 1800),
        "1 against .9, n = 12,000": (one, UNIT, dp.PureDP(0.9), 12_000),
        "10-d, μ = 1 against .7, n = 1,500": (zoo.Gaussian(), wide, dp.GaussianDP(0.7), 1500),
    }
    ways: dict[str, dict[str, Any]] = {
        "**as it is**": {},
        "a tenth learns": {"train": 0.1},
        "a sixth": {"train": 1 / 6},
        "a third": {"train": 1 / 3},
        "half": {"train": 0.5},
        "ranked by kernel densities alone": {"loss": "kde"},
        "by a quadratic log-ratio alone": {"loss": "polynomial"},
    }
    rows = []
    for name, options in ways.items():
        row = [name]
        for heading, (mechanism, pair, claim, n) in cells.items():
            if "loss" in options and pair is wide:
                row.append("")
                continue
            arguments = (mechanism, pair, claim, n, options)
            made = count // 5 if pair is wide else count
            seeds = range(FRESH, FRESH + made)
            found = runs(one_choice, seeds, *arguments, label=f"{name}, {heading}")
            row.append(f"{np.mean(found):.3f}")
        rows.append(row)
    return markdown(["", *cells], rows)


def least_seen(seed: int, mechanism: Any, pair: Any, claim: Any, n: int) -> float:
    """The smallest detectable value an audit of a true claim reports."""
    return float(dp.audit(mechanism, pair, claim, n=n, rng=seed).smallest_detectable)


#: Answers that move both ways: ε shows in full on a rare row of answers alone.
_SVT_PAIR = ((1,) * 5 + (0,) * 5, (0,) * 5 + (1,) * 5)


def _svt(epsilon: float) -> Any:
    """The correct sparse vector technique whose ε on this pair is what is asked for."""
    low, high = epsilon, 2 * epsilon
    for _ in range(30):
        middle = (low + high) / 2
        below = zoo.SVT(1, middle).epsilon(_SVT_PAIR) < epsilon
        low, high = (middle, high) if below else (low, middle)
    return zoo.SVT(1, high)


@table("audit-detectable")
def detectable(count: int = 400, n: int = 2000) -> str:
    """What `smallest_detectable` says at the claim ε = 0.5, and what comes of it (4 minutes)."""
    claim, rows = dp.PureDP(0.5), []
    made: list[tuple[str, Any, Any]] = [
        ("Laplace", lambda e: zoo.Laplace(1 / e), UNIT),
        ("randomized response", zoo.RandomizedResponse, (0, 1)),
        ("5-ary randomized response", lambda e: zoo.KaryRandomizedResponse(5, e), (0, 3)),
        ("discrete Laplace", lambda e: zoo.DiscreteLaplace(1 / e), (0, 1)),
        ("SVT, variant 1", _svt, _SVT_PAIR),
    ]
    for name, build, pair in made:
        said = runs(least_seen, range(count // 4), build(0.5), pair, claim, n, label=name)
        least = float(np.median(said))
        row = [name, f"{least:.3f}"]
        for actual in (least, 0.5 + 1.25 * (least - 0.5)):
            found = runs(one_detection, range(count), build(actual), pair, claim, n, label=name)
            row.append(f"{np.mean(found):.3f}")
        rows.append(row)
    return markdown(
        ["mechanism", "smallest detectable", "detected", "with 1.25 × the excess"], rows
    )


@cache
def matrix_cells() -> list[tuple[Any, Any, Any, bool]]:
    """(mechanism, pairs, claim, whether it is broken): each on pairs where it breaks, if it does."""
    ten = dp.neighbours.patterns(10)
    both = [(np.zeros(10), np.r_[np.ones(5), -np.ones(5)]), *ten]
    cells: list[tuple[Any, Any, Any, bool]] = []
    for variant in (1, 2, 3, 4, 5, 6):
        svt = zoo.SVT(variant, 1.5)
        pairs = both if variant == 4 else [svt.pair, *ten]
        cells.append((svt, pairs, dp.PureDP(1.5), variant > 2))
    alone: list[Any] = [
        zoo.NumericalSVT(1.5),
        *(zoo.ReportNoisyMax(1.5, variant=variant) for variant in (5, 6, 7, 8)),
        zoo.NoisyHistogram(0.5),
        zoo.NoisyHistogram(0.5, broken=True),
        zoo.Laplace(1.0),
        zoo.NaiveLaplace(1.0),
        zoo.Gaussian(1.0),
        zoo.NaiveGaussian(1.0),
        zoo.WrongSensitivityLaplace(),
        zoo.TruncatedLaplace(),
        zoo.RaisesOnOne(),
        zoo.StringOnOne(),
    ]
    return cells + [(m, [m.pair], m.claim, not m.correct) for m in alone]


def one_cell(seed: int, index: int, n: int) -> bool:
    """One audit of the matrix."""
    mechanism, pairs, claim, _ = matrix_cells()[index]
    return one_detection(seed, mechanism, pairs, claim, n, confidence=0.999)


@table("audit-matrix")
def matrix(count: int = 10, n: int = 100_000) -> str:
    """Broken mechanisms and their correct twins at n = 10⁵, 10 audits each (10 minutes)."""
    rows = []
    for index, (mechanism, pairs, claim, broken) in enumerate(matrix_cells()):
        found = runs(one_cell, range(count), index, n, label=str(mechanism))
        state = "broken" if broken else "correct"
        rows.append([f"`{mechanism}`", len(pairs), str(claim), state, f"{np.mean(found):.2f}"])
    return markdown(["mechanism", "pairs", "claim", "it is", "refuted"], rows)
