"""Texts of claims: put together from parts of claims, and mutated."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.fuzz.running import Case

import dpassay as dp
from dpassay.privacy.claim_parsing import parameter

_WORDS = (
    *(
        "eps",
        "epsilon",
        "ε",
        "delta",
        "δ",
        "rho",
        "mu",
        "GDP",
        "zCDP",
        "DP",
        "f-DP",
        "Rényi DP",
        "at",
    ),
    *(
        "renyi",
        "rdp",
        "(order=5)",
        "(2)",
        "(",
        ")",
        "order",
        "in",
        "and",
        "in delta",
        "10^-5",
        "10⁻⁵",
    ),
    *(
        "=",
        "<=",
        "≤",
        ":",
        ",",
        ";",
        "-",
        "+",
        " ",
        "\t",
        "\n",
        "×",
        "^",
        "**",
        "e",
        "E",
        ".",
        "\0",
    ),
    *(
        "0",
        "1",
        "0.5",
        ".5",
        "1e-5",
        "1e999",
        "1e-999999999",
        "-1",
        "nan",
        "inf",
        "∞",
        "½",
        "१",
        "1_0",
    ),
    *(
        "2×10^-5",
        "1-DP",
        "(1, 1e-5)-DP",
        "renyi(2)=0.1",
        "eps=1",
        "delta=1e-5",
        "\ud800",
        "é",
        "0x10",
    ),
)
_WHOLE = (
    *("eps=1", "eps=1, delta=1e-5", "mu=1", "rho=0.5, delta=1e-6", "renyi(order=5)=0.2", "1-DP"),
    *("renyi(2)=0.1, renyi(4)=0.3", "eps=1, delta=1e-5 in delta", "(0.5, 1e-06)-zCDP", "eps"),
    *("eps, delta=1e-5", "delta, eps=1", "renyi(order=2)", "rho, delta=1e-6"),
)


_GOOD = (
    *("eps={}", "eps={}, delta={}", "mu={}", "rho={}", "({}, {})-DP", "{}-GDP", "({}, {})-zCDP"),
    *(
        "renyi({})={}",
        "renyi({})={}, rdp({}) <= {}",
        "ε ≤ {} and δ ≤ {}",
        "eps={}, delta={} in delta",
    ),
)


def text_of(rng: np.random.Generator) -> str:
    """A text that is a claim, or nearly one."""
    if rng.random() < 0.3:
        numbers = rng.choice([0.0, 1e-320, 1e-5, 0.1, 0.5, 1.5, 2.0, 30.0, 1e300], size=4)
        return str(rng.choice(_GOOD)).format(*map(repr, numbers.tolist()))
    match int(rng.integers(4)):
        case 0:
            return "".join(rng.choice(_WORDS, size=int(rng.integers(1, 8))))
        case 1:
            return str(rng.choice(_WORDS)) * int(10 ** rng.uniform(0, 4.5))
        case 2:
            return "".join(map(chr, rng.integers(1, 0x3000, size=int(rng.integers(1, 30)))))
    letters = list(str(rng.choice(_WHOLE)))
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(letters)))
        letters[at] = str(rng.choice(_WORDS)) * int(10 ** rng.choice([0, 0, 0, 1, 2.5]))
    return "".join(letters)


def case(seed: int) -> Case:
    """One text, read as a claim or as what is to be bounded."""
    rng = np.random.default_rng([seed, 1])
    text = text_of(rng)
    read: Any = dp.claim if rng.random() < 0.7 else parameter

    def run() -> Any:
        found = read(text)
        assert dp.claim(str(found)) == found
        return found

    return Case(f"{read.__name__}({text[:200]!a})", run, (dp.Claim,))
