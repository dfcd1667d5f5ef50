"""Relatives of mechanisms that were missed once: other parameters, positions; and all rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

import dpassay as dp
from benchmarks.bank_held_out import held_out
from benchmarks.bank_rows import (
    Row,
    discrete,
    gaussian_shift,
    laplace,
    laplace_ell,
    mixture,
    of_laws,
    one_dimensional,
    parity,
    product_sign,
    types,
    vectors,
)


def relatives() -> Iterator[Row]:
    half, one = dp.PureDP(0.5), dp.PureDP(1.0)
    for claim in (0.3, 0.95):
        yield Row("claims", f"Laplace, claim {claim}", laplace, laplace_ell, dp.PureDP(claim))
    for variant, claim in ((1, 0.75), (2, 0.75)):
        svt = dp.zoo.SVT(variant, 1.5)
        yield Row(
            "claims",
            f"SVT{variant}",
            _on_pair(svt),
            _svt_ell(svt),
            dp.PureDP(claim),
        )
    for scale in (0.01, 1e6):
        laws = stats.cauchy(0, scale), stats.cauchy(2 * scale, scale)
        yield Row("scales", f"Cauchy · {scale:g}, shift 2", *of_laws(*laws), one)
    yield Row(
        "scales",
        "log-normal, σ 1 against 1.2",
        *of_laws(stats.norm(), stats.norm(0, 1.2)),
        half,
        np.exp,
    )
    yield Row(
        "scales", "Laplace(1) against (2)", *of_laws(stats.laplace(0, 1), stats.laplace(0, 2)), half
    )
    p = mixture([0.9, 0.1], [stats.norm(0, 1), stats.norm(3, 1e-7)])
    yield Row("scales", "10 % in a spike of 1e-07", *of_laws(p, stats.norm(0, 1)), one)

    def comb(side: int, size: int, rng: np.random.Generator) -> Any:
        cell = rng.integers(100, size=size)
        first = rng.random(size) < (0.8 if side == 0 else 0.2)
        return (cell + (rng.random(size) + np.where(first, 0, 1)) / 2) / 100

    yield Row(
        "scales",
        "100 periods",
        comb,
        lambda x: np.where((x * 100) % 1 < 0.5, 1.0, -1.0) * np.log(4),
        half,
    )
    for place, length in ((0, 6), (2, 12), (-1, 8)):

        def words(
            side: int, size: int, rng: np.random.Generator, k: int = place, n: int = length
        ) -> Any:
            x = rng.integers(0, 26, size=(size, n))
            x[:, k] = np.where(rng.random(size) < 0.8, side, 1 - side)
            return x

        yield Row(
            "strings",
            f"letter {place + 1 if place >= 0 else place} of {length}",
            words,
            _first_letter(place),
            half,
            lambda x: np.array(
                ["".join(row) for row in (x + 97).astype(np.uint8).view("S1").astype(str)]
            ),
        )
    choices = np.array(["red", "green", "blue", "white"])

    def listed(side: int, size: int, rng: np.random.Generator) -> Any:
        x = rng.integers(0, 4, size=(size, 8))
        x[:, 5] = np.where(rng.random(size) < 0.7, side, rng.integers(2, 4, size=size))
        return x

    yield Row(
        "strings",
        "a word in lists of eight",
        listed,
        lambda x: np.where(x[:, 5] == 0, 30.0, np.where(x[:, 5] == 1, -30.0, 0.0)),
        one,
        lambda x: choices[x].tolist(),
    )
    for d in (50, 100):
        name = f"sign of a product of two in {d}-D"
        yield Row("vectors", name, *product_sign(d, 3, 7), one, slow=True)
    yield Row("vectors", "parity of 12 bits", *parity(12), dp.PureDP(0.7))
    spread = np.zeros(30)
    spread[:3] = 1 / np.sqrt(3)
    yield Row(
        "vectors",
        "Gaussian in 3 of 30 coordinates",
        *gaussian_shift(30, spread),
        dp.GaussianDP(0.5),
    )


def _on_pair(mechanism: Any) -> Any:
    """A mechanism of the zoo on its own pair."""
    first, second = mechanism.pair
    return lambda side, size, rng: mechanism(second if side else first, size, rng)


def _first_letter(place: int) -> Any:
    """The loss of randomized response on one letter."""
    return lambda x: np.where(x[:, place] == 0, 1, -1) * np.log(4)


def _svt_ell(svt: Any) -> Any:
    """The exact loss of a sparse vector's output, by the place of its first answer above."""
    masses = svt.masses(svt.pair)
    loss = np.log(masses.p) - np.log(masses.q)

    def ell(x: Any) -> Any:
        x = np.asarray(x)
        if len(loss) == x.shape[1] + 1:  # it stops at the first answer above, or never
            return loss[np.where((x == 1).any(axis=1), np.argmax(x == 1, axis=1), x.shape[1])]
        return loss[np.asarray(x, dtype=np.int64) @ (1 << np.arange(x.shape[1]))]

    return ell


def released() -> Iterator[Row]:
    """Vectors as they are released: with few decimals, or counts. Values repeat there by chance."""

    def moved(by: Any, scale: float) -> tuple[Any, Any]:
        by = np.asarray(by, dtype=float)
        return (
            lambda side, size, rng: side * by + rng.laplace(scale=scale, size=(size, by.size)),
            lambda x: ((np.abs(x - by) - np.abs(x)) / scale).sum(axis=1),
        )

    def decimals(x: Any) -> Any:
        return np.round(x, 4)

    def counts(side: int, size: int, rng: np.random.Generator) -> Any:
        p = 1 - np.exp(-0.3)
        noise = rng.geometric(p, (size, 3)) - rng.geometric(p, (size, 3))
        return noise + side * np.array([1, 0, 1])

    def counts_ell(x: Any) -> Any:
        return 0.3 * (np.abs(x - [1, 0, 1]) - np.abs(x)).sum(axis=1)

    five, twelve = [1, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0, 0, -1, 0, 0, 0, 0]
    name = "five Laplace numbers with four decimals, three moved"
    yield Row("released", name, *moved(five, 6.0), dp.PureDP(0.25), decimals)
    yield Row(
        "released",
        "histogram of twelve, two bins moved",
        *moved(twelve, 2.0),
        dp.PureDP(0.5),
        decimals,
    )
    yield Row("released", "three counts, two moved", counts, counts_ell, dp.PureDP(0.3))
    shift = gaussian_shift(5, np.ones(5) / np.sqrt(5))
    name = "Gaussian over 5 coordinates, four decimals"
    yield Row("released", name, *shift, dp.GaussianDP(0.5), decimals)


def rows() -> list[Row]:
    """The whole bank."""
    own = [*one_dimensional(), *discrete(), *vectors(), *types(), *relatives()]
    return [*own, *held_out(), *released()]
