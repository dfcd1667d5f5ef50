"""Leaks in the representation of numbers: what is found, what is left alone, and what it costs."""

from __future__ import annotations

import math
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import binom

import dpassay as dp
from benchmarks.tables import markdown, table

Mechanism: TypeAlias = Callable[[Any, int, np.random.Generator], Any]
Pair: TypeAlias = tuple[Any, Any]
QUIET = dp.Sampling(progress=False)


@dataclass(frozen=True)
class Case:
    """A mechanism, two inputs and what is claimed of it."""

    name: str
    inputs: str
    mechanism: Any
    pair: Pair
    claim: str
    n: int = 100_000


def audit(case: Case, n: int, seed: int, loss: str = "auto") -> dp.Verdict:
    return dp.audit(case.mechanism, case.pair, case.claim, n=n, rng=seed, loss=loss, sampling=QUIET)


# --- what leaks


def single(x: float, n: int, rng: np.random.Generator) -> Any:
    """Noise, sum and output in float32."""
    return np.float32(x) + rng.laplace(size=n).astype(np.float32)


def one_of_five(x: float, n: int, rng: np.random.Generator) -> Any:
    """The third coordinate leaks, the others are multiples of 2^-20 and do not depend on x."""
    out = np.rint(rng.laplace(size=(n, 5)) * 2**20) / 2**20
    out[:, 2] = x + rng.laplace(size=n)
    return out


def noisy_mean(data: Any, n: int, rng: np.random.Generator) -> Any:
    """The mean of 100 numbers between 0 and 1, with noise for ε = 1."""
    return np.mean(data) + rng.laplace(scale=1 / len(data), size=n)


def mixed(x: float, n: int, rng: np.random.Generator) -> Any:
    """("count", number), or one time in ten None."""
    out = np.empty(n, dtype=object)
    noise, hidden = rng.laplace(size=n), rng.random(n) < 0.1
    for k in range(n):
        out[k] = None if hidden[k] else ("count", x + float(noise[k]))
    return out


def leaks() -> list[Case]:
    laplace = dp.zoo.NaiveLaplace(1.0)
    zeros, one = np.zeros(100), np.append(np.zeros(99), 1.0)
    gauss = dp.zoo.NaiveGaussian(3.73)
    return [
        Case("x + Laplace(1)", "0, 1", laplace, (0.0, 1.0), "eps=1"),
        Case("x + Laplace(1)", "0, 2^-10", laplace, (0.0, 2.0**-10), "eps=1"),
        Case("the same, 10⁶ draws", "0, 2^-10", laplace, (0.0, 2.0**-10), "eps=1", 10**6),
        Case("x + Laplace(1)", "0.1, 1.1", laplace, (0.1, 1.1), "eps=1"),
        Case("x + Laplace(1)", "π, e", laplace, (math.pi, math.e), "eps=1"),
        Case("x + N(0, 3.73²)", "0, 1", gauss, (0.0, 1.0), "eps=1, delta=1e-5"),
        Case("the first in float32", "0, 1", single, (0.0, 1.0), "eps=1"),
        Case("one of 5 coordinates", "0, 1", one_of_five, (0.0, 1.0), "eps=1"),
        Case("mean + Laplace(1/100)", "100 zeros, 99 and a 1", noisy_mean, (zeros, one), "eps=1"),
        Case('("count", number) or None', "0, 1", mixed, (0.0, 1.0), "eps=1"),
    ]


def _short(words: str) -> str:
    """The first thing a witness names."""
    head, _, rest = words.partition(", which comes from: ")
    return words if not rest else f"{head}: {rest.partition(';')[0]}; …"


@table("bits")
def bits() -> str:
    """Noise in floating point: bounds with and without a look at the bits (1 minute)."""
    rows = []
    for case in leaks():
        found, alone, blind, seconds = [], [], [], []
        for seed in (41, 42, 43):
            start = time.perf_counter()
            found.append(audit(case, case.n, seed))
            seconds.append(time.perf_counter() - start)
            alone.append(audit(case, case.n, seed, "bits").lower_bound)
            blind.append(audit(case, case.n, seed, "values").lower_bound)
        found.sort(key=lambda verdict: verdict.lower_bound)
        rows.append(
            [
                case.name,
                case.inputs,
                str(found[1].claim),
                f"**{found[1].lower_bound:.2f}**",
                f"{statistics.median(alone):.2f}",
                f"{statistics.median(blind):.2f}",
                f"{statistics.median(seconds):.2f}",
                _short(found[1].witness.event.words),
            ]
        )
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    headings = ["mechanism", "inputs", "claim", "certified ε", 'with `loss="bits"`']
    return markdown([*headings, 'with `loss="values"`', "seconds", "witness"], rows)


# --- what does not


def decimals(x: float, n: int, rng: np.random.Generator) -> Any:
    return np.round(x + rng.laplace(size=n), 6)


def single_decimals(x: float, n: int, rng: np.random.Generator) -> Any:
    return np.round(single(x, n, rng), 3)


def text(x: float, n: int, rng: np.random.Generator) -> Any:
    return np.array([float("%.6g" % v) for v in x + rng.laplace(size=n)])  # noqa: UP031


def snapped(x: float, n: int, rng: np.random.Generator) -> Any:
    return np.rint((x + rng.laplace(size=n)) * 1024) / 1024


def safe() -> list[Case]:
    zoo = dp.zoo
    return [
        Case("`zoo.Laplace`", "0, 1", zoo.Laplace(), (0.0, 1.0), "eps=1"),
        Case("`zoo.Gaussian`", "0, 1", zoo.Gaussian(), (0.0, 1.0), "mu=1"),
        Case("rounded to 6 decimals", "0, 1", decimals, (0.0, 1.0), "eps=1"),
        Case("float32, rounded to 3 decimals", "0, 1", single_decimals, (0.0, 1.0), "eps=1"),
        Case('written as "%.6g"', "0, 1", text, (0.0, 1.0), "eps=1"),
        Case("a multiple of 1/1024", "0, 1", snapped, (0.0, 1.0), "eps=1"),
        Case("discrete Laplace", "0, 1", zoo.DiscreteLaplace(), (0, 1), "eps=1"),
    ]


def _rate(case: Case, n: int, runs: int) -> tuple[int, str]:
    """How many audits report a violation, and the words of the last that did."""
    words = [
        verdict.witness.event.words
        for verdict in (audit(case, n, 50_000 + run) for run in range(runs))
        if verdict.violated
    ]
    return len(words), words[-1] if words else ""


@table("bits-safe")
def bits_safe() -> str:
    """The same noise on a grid: the share of audits that refute a true claim (2 minutes)."""
    runs, limit = 200, binom.ppf(0.999, 200, 0.05) / 200
    rows = []
    for case in safe():
        wrong, words = _rate(case, 2000, runs)
        rows.append(
            [case.name, case.claim.replace("=", " = "), f"{wrong / runs:.3f}", f"{limit:.3f}"]
        )
        print(*rows[-1], words, sep=" | ", file=sys.stderr, flush=True)
    return markdown(["outputs", "claim = truth", "refuted", "limit"], rows)


# --- released libraries, where they are installed


def _diffprivlib() -> Any:
    # its models, which nothing here needs, import names that newer scikit-learn no longer has
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("diffprivlib.models"))
    import diffprivlib

    return diffprivlib


def _of(call: Callable[[Any], float]) -> Any:
    """A library's own generator makes the noise: the seed of the audit decides nothing."""
    return dp.from_function(lambda x, rng: float(call(x)))


def libraries() -> Iterator[tuple[str, bool, Case]]:
    """(library, whether it should be safe, case), of those that can be imported."""
    zeros, one = np.zeros(100), np.append(np.zeros(99), 1.0)
    try:
        lib = _diffprivlib()
    except ImportError as error:
        print(error, file=sys.stderr)
    else:
        name, made, tools = f"diffprivlib {lib.__version__}", lib.mechanisms, lib.tools
        at = {"epsilon": 1.0, "sensitivity": 1.0}
        ends = {"lower": -10.0, "upper": 10.0}
        bounded = made.LaplaceBoundedDomain(**at, **ends)
        for label, safe_, mechanism, claim in [
            ("Laplace", False, made.Laplace(**at), "eps=1"),
            (
                "GaussianAnalytic",
                False,
                made.GaussianAnalytic(**at, delta=1e-5),
                "eps=1, delta=1e-5",
            ),
            ("LaplaceBoundedDomain", False, bounded, "eps=1"),
            ("Staircase", False, made.Staircase(**at), "eps=1"),
            ("Snapping", True, made.Snapping(**at, **ends), "eps=1"),
        ]:
            call = _of(mechanism.randomise)
            yield name, safe_, Case(label, "0, 1", call, (0.0, 1.0), claim)
        data = "100 zeros, 99 and a 1"
        ask = {"epsilon": 1.0, "bounds": (0.0, 1.0)}
        yield (
            name,
            False,
            Case("tools.mean", data, _of(lambda x: tools.mean(x, **ask)), (zeros, one), "eps=1"),
        )
        yield (
            name,
            False,
            Case("tools.sum", data, _of(lambda x: tools.sum(x, **ask)), (zeros, one), "eps=1"),
        )
    try:
        import opendp.prelude as opendp
    except ImportError as error:
        print(error, file=sys.stderr)
    else:
        opendp.enable_features("contrib")
        domain = opendp.atom_domain(T=float, nan=False)
        laplace = opendp.m.make_laplace(domain, opendp.absolute_distance(T=float), scale=1.0)
        claim = f"eps={laplace.map(1.0)!r}"
        name = f"OpenDP {opendp.__version__}"
        yield name, True, Case("make_laplace, floats", "0, 1", _of(laplace), (0.0, 1.0), claim)
    try:
        from importlib.metadata import version

        from pydp.algorithms import numerical_mechanisms
    except ImportError as error:
        print(error, file=sys.stderr)
    else:
        noise = numerical_mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
        name = f"PyDP {version('python-dp')}"
        yield (
            name,
            True,
            Case(
                "LaplaceMechanism", "0, 1", _of(lambda x: noise.add_noise(x)), (0.0, 1.0), "eps=1"
            ),
        )


@table("bits-libraries")
def bits_libraries() -> str:
    """Released libraries asked for ε = 1 (and δ = 1e-5), of those installed (2 minutes)."""
    runs = 50
    limit = int(binom.ppf(0.999, runs, 0.05))
    rows = []
    for library, expected, case in libraries():
        verdict = audit(case, 20_000, 41)
        blind = audit(case, 20_000, 41, "values")
        again = "–"
        words = _short(verdict.witness.event.words) if verdict.violated else "–"
        if expected:
            wrong, last = _rate(case, 2000, runs)
            again = f"{wrong} of {runs} (limit {limit})"
            words = _short(last) if wrong > limit else words
        rows.append(
            [
                library,
                case.name,
                case.inputs,
                str(verdict.claim),
                f"**{verdict.lower_bound:.2f}**" if verdict.violated else "not refuted",
                f"{blind.lower_bound:.2f}",
                again,
                words,
            ]
        )
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    headings = ["library", "mechanism", "inputs", "asked for", "certified ε"]
    headings += ['with `loss="values"`', "refuted", "witness"]
    return markdown(headings, rows)


@table("bits-cost")
def bits_cost() -> str:
    """What looking at bits adds to an audit of 10⁶ draws, best of 7 (10 seconds)."""
    case = Case("", "", dp.zoo.Laplace(), (0.0, 1.0), "eps=.5")
    best = {"auto": math.inf, "values": math.inf}
    for seed in range(7):
        for loss in best:  # in turns: the machine is shared
            start = time.perf_counter()
            audit(case, 10**6, seed, loss)
            best[loss] = min(best[loss], time.perf_counter() - start)
    auto, values = (1000 * best[loss] for loss in ("auto", "values"))
    return (
        f"An audit of 10⁶ draws of `zoo.Laplace` takes {auto:.0f} ms, and {values:.0f} ms without "
        f"the look at the bits ({auto / values - 1:+.0%})."
    )
