"""The mechanisms of the bank: each drawn as a plain array with a known likelihood ratio, then dressed."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import stats

import dpassay as dp


def _as_it_is(x: Any) -> Any:
    return x


def _safe(x: Any) -> Any:
    """Forty significant bits: what sums of doubles leak through their last ones is not the subject."""
    if np.asarray(x).dtype.kind != "f":
        return x
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(mantissa * 2.0**40) * 2.0**-40, exponent)


@dataclass(frozen=True)
class Row:
    """A mechanism on two inputs, 0 and 1."""

    group: str
    name: str
    base: Callable[[int, int, np.random.Generator], Any]
    ell: Callable[[Any], Any]  # log p/q of what `base` draws, p being side 0
    claim: dp.Claim
    dress: Callable[[Any], Any] = _as_it_is
    slow: bool = False

    def __call__(self, side: int, size: int, rng: np.random.Generator) -> Any:
        """Draw, and dress."""
        return self.dress(_safe(self.base(side, size, rng)))


def objects(items: Any) -> Any:
    out = np.empty(len(items), dtype=object)
    for k, item in enumerate(items):
        out[k] = item
    return out


# --- one number


def laplace(side: int, size: int, rng: np.random.Generator) -> Any:
    return side + rng.laplace(size=size)


def laplace_ell(x: Any) -> Any:
    return np.abs(x - 1) - np.abs(x)


def of_laws(p: Any, q: Any) -> tuple[Any, Any]:
    """Draws and the log-ratio of two laws of scipy."""

    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        return (q if side else p).rvs(size=size, random_state=rng)

    return base, lambda x: p.logpdf(x) - q.logpdf(x)


def mixture(weights: Any, laws: Any) -> Any:
    class Mixture:
        def rvs(self, size: int, random_state: np.random.Generator) -> Any:
            which = random_state.choice(len(laws), p=weights, size=size)
            out = np.empty(size)
            for k, law in enumerate(laws):
                own = which == k
                out[own] = law.rvs(size=int(own.sum()), random_state=random_state)
            return out

        def logpdf(self, x: Any) -> Any:
            with np.errstate(divide="ignore"):
                return np.logaddexp.reduce(
                    [np.log(w) + law.logpdf(x) for w, law in zip(weights, laws, strict=True)]
                )

    return Mixture()


def one_dimensional() -> Iterator[Row]:
    half = dp.PureDP(0.5)
    for name, dress in {
        "Laplace": lambda x: x,
        "Laplace + 10⁶": lambda x: x + 1e6,
        "Laplace + 10¹²": lambda x: x + 1e12,
        "Laplace · 10⁻¹²": lambda x: 1e-12 * x,
        "Laplace · 10³⁰⁰": lambda x: 1e300 * x,
        "Laplace, float32": lambda x: x.astype(np.float32),
    }.items():
        yield Row("one number", name, laplace, laplace_ell, half, dress)
    shift = stats.norm(0, 1), stats.norm(1, 1)
    yield Row("one number", "Gaussian", *of_laws(*shift), dp.GaussianDP(0.5))
    yield Row("one number", "Gaussian, (ε, 10⁻³)", *of_laws(*shift), dp.ApproximateDP(1.0, 1e-3))
    for scale in (1.0, 1e-9):
        laws = stats.cauchy(0, scale), stats.cauchy(scale, scale)
        yield Row("one number", f"Cauchy · {scale:g}", *of_laws(*laws), half)
    yield Row("one number", "Student t₃", *of_laws(stats.t(3), stats.t(3, 1)), half)
    yield Row("one number", "logistic noise", *of_laws(stats.logistic(0), stats.logistic(1)), half)
    one = dp.PureDP(1.0)
    laws = stats.laplace(0, 3), stats.laplace(0, 15000)
    yield Row("scales", "Laplace(3) against (15000)", *of_laws(*laws), one)
    yield Row(
        "scales", "Gaussian, σ 1 against 1.5", *of_laws(stats.norm(0, 1), stats.norm(0, 1.5)), half
    )
    for place, width in ((0.0, 1e-10), (2.0, 1e-6), (-1.0, 1e-3)):
        p = mixture([0.5, 0.5], [stats.norm(0, 1), stats.norm(place, width)])
        name = f"half in a spike of {width:g} at {place:g}"
        yield Row("scales", name, *of_laws(p, stats.norm(0, 1)), one)
    p = mixture([0.98, 0.02], [stats.norm(0, 1), stats.norm(0.7, 1e-5)])
    yield Row("scales", "2 % in a spike of 1e-05", *of_laws(p, stats.norm(0, 1)), one)
    wide = stats.norm(0, 5)

    def middle(side: int, size: int, rng: np.random.Generator) -> Any:
        x = wide.rvs(size=size, random_state=rng)
        inside = np.abs(x) < 1
        flip = inside & (rng.random(size) < (0.8 if side else 0.2))
        return np.where(inside, np.where(flip, np.abs(x), -np.abs(x)), x)

    def middle_ell(x: Any) -> Any:
        return np.where(np.abs(x) < 1, np.where(x < 0, np.log(4), -np.log(4)), 0.0)

    yield Row("scales", "log-normal σ = 5, leak in the middle", middle, middle_ell, half, np.exp)
    for periods in (10, 40):

        def waves(side: int, size: int, rng: np.random.Generator, k: int = periods) -> Any:
            cell, inside = rng.integers(k, size=size), rng.random(size)
            first = rng.random(size) < (0.7 if side == 0 else 0.3)
            return (cell + (inside + np.where(first, 0, 1)) / 2) / k

        def waves_ell(x: Any, k: int = periods) -> Any:
            return np.where((x * k) % 1 < 0.5, 1.0, -1.0) * np.log(7 / 3)

        yield Row("scales", f"{periods} periods", waves, waves_ell, half)


# --- integers, categories, atoms


def discrete_laplace(scale: float) -> tuple[Any, Any]:
    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        s = 1 - np.exp(-1 / scale)
        return side + rng.geometric(s, size) - rng.geometric(s, size)

    return base, lambda x: (np.abs(x - 1) - np.abs(x)) / scale


def discrete() -> Iterator[Row]:
    half = dp.PureDP(0.5)
    base, ell = discrete_laplace(1.0)
    offsets: dict[str, Callable[[Any], Any]] = {
        "0": lambda x: x,
        "10⁸": lambda x: x + 10**8,
        "2·10⁹": lambda x: x + 2 * 10**9,
        "2⁵³": lambda x: x + 2**53,
        "2⁶²": lambda x: x + 2**62,
        "−2⁶²": lambda x: x - 2**62,
        "2⁶³, unsigned": lambda x: x.astype(np.uint64) + np.uint64(2**63),
        "10³⁰, Python": lambda x: objects([int(v) + 10**30 for v in x]),
        "2⁵³, as Decimal": lambda x: objects([Decimal(int(v) + 2**53) for v in x]),
    }
    for name, dress in offsets.items():
        yield Row("integers", f"discrete Laplace + {name}", base, ell, half, dress)
    base, ell = discrete_laplace(3000.0)
    shifted = (
        (lambda s, n, r: 3000 * s + base(0, n, r)),
        (lambda x: (np.abs(x - 3000) - np.abs(x)) / 3000),
    )
    yield Row("integers", "discrete Laplace, scale 3000", *shifted, half)
    yield Row("integers", "the same + 2⁶²", *shifted, half, lambda x: x + 2**62)

    def response(k: int, eps: float) -> tuple[Any, Any]:
        keep = np.exp(eps) / (np.exp(eps) + k - 1)

        def base(side: int, size: int, rng: np.random.Generator) -> Any:
            other = (side + rng.integers(1, k, size=size)) % k
            return np.where(rng.random(size) < keep, side, other)

        return base, lambda x: eps * ((x == 0).astype(float) - (x == 1))

    yield Row("categories", "coin, as booleans", *response(2, 1.0), half, lambda x: x.astype(bool))
    yield Row(
        "categories",
        "coin, as strings",
        *response(2, 1.0),
        half,
        lambda x: np.array(["no", "yes"])[x],
    )
    yield Row("categories", "5 strings", *response(5, 1.0), half, lambda x: x.astype(str))
    yield Row(
        "categories", "50 strings", *response(50, 3.0), dp.PureDP(1.5), lambda x: x.astype(str)
    )
    signs = np.where(np.arange(1000) % 2 == 0, 0.5, -0.5)

    def leak(side: int, size: int, rng: np.random.Generator) -> Any:
        w = np.exp((signs if side == 0 else -signs) / 1.0)
        return rng.choice(1000, size=size, p=w / w.sum())

    names = np.array([f"k{hash((k, 'x')) % 10**9}" for k in range(1000)])
    yield Row(
        "categories",
        "1000 strings, a leak on each",
        leak,
        lambda x: 2 * signs[x],
        half,
        lambda x: names[x],
    )
    for share in (1e-2, 1e-3):

        def rare(side: int, size: int, rng: np.random.Generator, share: float = share) -> Any:
            x = rng.normal(size=size)
            x[rng.random(size) < (share if side == 0 else share / 20)] = np.inf
            return x

        def rare_ell(x: Any, share: float = share) -> Any:
            return np.where(np.isinf(x), np.log(20), np.log1p(-share) - np.log1p(-share / 20))

        yield Row(
            "atoms",
            f"a string in {share:g} of numbers",
            rare,
            rare_ell,
            dp.PureDP(1.0),
            lambda x: objects(["error" if np.isinf(v) else float(v) for v in x]),
        )
        yield Row(
            "atoms",
            f"an atom in {share:g} of numbers",
            rare,
            rare_ell,
            dp.PureDP(1.0),
            lambda x: np.where(np.isinf(x), 0.25, x),
        )

    def clipped(side: int, size: int, rng: np.random.Generator) -> Any:
        return np.clip(side + rng.laplace(size=size), 0.0, 1.0)

    yield Row(
        "atoms", "Laplace, clipped to [0, 1]", clipped, lambda x: np.clip(1 - 2 * x, -1, 1), half
    )

    def sparse(side: int, size: int, rng: np.random.Generator) -> Any:
        x = side + rng.laplace(size=size)
        x[rng.random(size) < 0.99] = np.nan
        return x

    def sparse_ell(x: Any) -> Any:
        return np.where(np.isnan(x), 0.0, laplace_ell(np.nan_to_num(x)))

    def with_none(x: Any) -> Any:
        return objects([None if np.isnan(v) else float(v) for v in x])

    low = dp.PureDP(0.2)
    yield Row("atoms", "None in 99 %, else Laplace", sparse, sparse_ell, low, with_none)
    yield Row("atoms", "NaN in 99 %, else Laplace", sparse, sparse_ell, low)


# --- vectors


def gaussian_shift(d: int, along: Any) -> tuple[Any, Any]:
    mu = np.asarray(along, dtype=float)

    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        return rng.normal(size=(size, d)) + side * mu

    return base, lambda x: mu @ mu / 2 - x @ mu


def product_sign(d: int, i: int, j: int, share: float = 0.88) -> tuple[Any, Any]:
    """Normal vectors; the sign of x_i x_j tells the input in this share of the draws."""

    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        x = rng.normal(size=(size, d))
        want = np.where(rng.random(size) < share, 1 - 2 * side, 2 * side - 1)
        x[:, j] *= np.sign(x[:, i] * x[:, j]) * want
        return x

    return base, lambda x: np.sign(x[:, i] * x[:, j]) * np.log(share / (1 - share))


def parity(bits: int) -> tuple[Any, Any]:
    """Fair bits whose parity tells the input in four draws of five."""

    def base(side: int, size: int, rng: np.random.Generator) -> Any:
        x = rng.integers(0, 2, size=(size, bits))
        want = (side + (rng.random(size) < 0.2)) % 2
        x[:, -1] ^= (x.sum(axis=1) + want) % 2
        return x

    return base, lambda x: (1 - 2 * (x.sum(axis=1) % 2)) * np.log(4)


def vectors() -> Iterator[Row]:
    rho = 0.7
    mu = dp.GaussianDP(0.5)
    for d in (2, 5, 20, 100, 101, 300):
        spread = np.ones(d) / np.sqrt(d)
        yield Row(
            "vectors", f"Gaussian over {d} coordinates", *gaussian_shift(d, spread), mu, slow=d > 50
        )
    scales = 10.0 ** np.array([-6, 9, 0])
    yield Row(
        "vectors",
        "3 coordinates, scales 10⁻⁶ to 10⁹",
        *gaussian_shift(3, [1, 0, 0]),
        mu,
        lambda x: x * scales,
    )
    yield Row(
        "vectors", "the same + 10⁷", *gaussian_shift(3, [1, 0, 0]), mu, lambda x: x * scales + 1e7
    )
    for d in (5, 20):

        def tied(side: int, size: int, rng: np.random.Generator, d: int = d) -> Any:
            x = rng.normal(size=(size, d))
            x[:, 1] = (1 - 2 * side) * rho * x[:, 0] + np.sqrt(1 - rho**2) * x[:, 1]
            return x

        yield Row(
            "vectors",
            f"correlation of two in {d}-D",
            tied,
            lambda x: 2 * rho * x[:, 0] * x[:, 1] / (1 - rho**2),
            dp.PureDP(1.0),
        )

        name = f"sign of a product of two in {d}-D"
        yield Row("vectors", name, *product_sign(d, 0, 1), dp.PureDP(1.0))
    for bits in (4, 8):
        yield Row("vectors", f"parity of {bits} bits", *parity(bits), dp.PureDP(0.7))

    def ring(side: int, size: int, rng: np.random.Generator) -> Any:
        angle, radius = 2 * np.pi * rng.random(size), 1 + 0.5 * side + 0.3 * rng.normal(size=size)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    def ring_ell(x: Any) -> Any:
        r = np.hypot(x[:, 0], x[:, 1])
        return stats.norm(1, 0.3).logpdf(r) - stats.norm(1.5, 0.3).logpdf(r)

    yield Row("vectors", "a ring in 2-D", ring, ring_ell, dp.GaussianDP(0.8))

    def checkers(side: int, size: int, rng: np.random.Generator) -> Any:
        x = 3 * rng.random((size, 2))
        dark = (np.floor(x).sum(axis=1) % 2).astype(int)
        want = (side + (rng.random(size) < 0.2)) % 2
        x[:, 0] = np.where(dark == want, x[:, 0], (x[:, 0] + 1) % 3)
        return x

    def checkers_ell(x: Any) -> Any:
        p, q = (_checker_density(x, side) for side in (0, 1))
        return np.log(p) - np.log(q)

    yield Row("vectors", "a chess board in 2-D", checkers, checkers_ell, dp.PureDP(0.5))

    def permuted(side: int, size: int, rng: np.random.Generator) -> Any:
        x = rng.permuted(np.tile(np.arange(10), (size, 1)), axis=1)
        low = np.argmax(x == 0, axis=1) < np.argmax(x == 1, axis=1)
        swap = low != (rng.random(size) < (0.8 if side == 0 else 0.2))
        out = x.copy()
        out[swap[:, None] & (x == 0)] = 1
        out[swap[:, None] & (x == 1)] = 0
        return out

    yield Row(
        "vectors",
        "an order in permutations of ten",
        permuted,
        lambda x: (
            np.where(np.argmax(x == 0, axis=1) < np.argmax(x == 1, axis=1), 1, -1) * np.log(4)
        ),
        dp.PureDP(0.7),
    )
    rr = dp.zoo.RandomizedResponse(1.5)
    zero, one = (np.asarray(a) for a in rr.pair)
    yield Row(
        "vectors",
        "randomized response on ten bits",
        lambda s, n, r: rr(one if s else zero, n, r),
        lambda x: (
            1.5
            * np.where(
                np.asarray(x)[:, int(np.argmax(zero != one))] == zero[int(np.argmax(zero != one))],
                1,
                -1,
            )
        ),
        dp.PureDP(0.7),
    )


def _checker_density(x: Any, side: int) -> Any:
    """Of the chess board: a point is kept, or moved one field to the right."""

    def weight(z: Any) -> Any:
        dark = np.floor(z).sum(axis=1) % 2
        return np.where(dark == side, 0.8, 0.2)

    before = np.column_stack([(x[:, 0] - 1) % 3, x[:, 1]])
    dark, dark_before = (np.floor(z).sum(axis=1) % 2 for z in (x, before))
    # kept if its colour is the wanted one; arrived if the colour before was not
    kept = np.where(dark == side, 0.8, 0.2)
    arrived = np.where(dark_before == side, 0.2, 0.8)
    return kept + arrived


# --- types


def types() -> Iterator[Row]:
    half = dp.PureDP(0.5)
    start = datetime.datetime(2024, 1, 1)
    yield Row(
        "types",
        "dates, Laplace in hours",
        laplace,
        laplace_ell,
        half,
        lambda x: objects([start + datetime.timedelta(hours=float(v)) for v in x]),
    )
    yield Row(
        "types",
        "datetime64[ns]",
        laplace,
        laplace_ell,
        half,
        lambda x: np.datetime64("2024-01-01", "ns") + (3.6e12 * x).astype("timedelta64[ns]"),
    )
    yield Row(
        "types",
        "Decimal",
        laplace,
        laplace_ell,
        half,
        lambda x: objects([Decimal(repr(float(v))) for v in x]),
    )
    yield Row(
        "types",
        "complex, Laplace + i·noise",
        lambda s, n, r: np.column_stack([laplace(s, n, r), r.normal(size=n)]),
        lambda x: laplace_ell(x[:, 0]),
        half,
        lambda x: x[:, 0] + 1j * x[:, 1],
    )
    yield Row(
        "types",
        "dictionaries",
        lambda s, n, r: np.column_stack([laplace(s, n, r), r.normal(size=n)]),
        lambda x: laplace_ell(x[:, 0]),
        half,
        lambda x: [{"a": float(u), "b": float(v)} for u, v in x],
    )
    yield Row(
        "types",
        "lists of one to three numbers",
        lambda s, n, r: np.column_stack([laplace(s, n, r), r.integers(1, 4, size=n)]),
        lambda x: laplace_ell(x[:, 0]),
        half,
        lambda x: [[float(u)] * int(k) for u, k in x],
    )
    base, ell = discrete_laplace(1.0)
    yield Row(
        "types",
        "(integer, None or string)",
        lambda s, n, r: np.column_stack([base(s, n, r), r.integers(0, 2, size=n)]),
        lambda x: ell(x[:, 0]),
        half,
        lambda x: [(int(u), None if k else "ok") for u, k in x],
    )
    yield Row(
        "types", "bytes", base, ell, half, lambda x: objects([str(int(v)).encode() for v in x])
    )
