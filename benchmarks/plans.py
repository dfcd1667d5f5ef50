"""Plans: the power of audits with as many draws as were planned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dpassay as dp
from benchmarks.parallel import runs
from benchmarks.tables import markdown, table

#: Audits of each mechanism.
AUDITS = 200
QUIET = dp.Sampling(progress=False)
PAIR = (0.0, 1.0)


def histogram(epsilon: float) -> Any:
    """Five counts with geometric noise, of which a record changes one."""
    p = -math.expm1(-epsilon)

    def release(data: float, size: int, rng: Any) -> Any:
        noise = rng.geometric(p, (size, 5)) - rng.geometric(p, (size, 5))
        return np.array([data, 3, 2, 1, 0]).astype(int) + noise

    return release


def directions(mu: float) -> Any:
    """A shift in five coordinates with Gaussian noise, rounded so that its bits tell nothing."""
    shift = mu / math.sqrt(5)
    return lambda data, size, rng: np.round(data * shift + rng.normal(size=(size, 5)), 6)


def answers(epsilon: float) -> Any:
    """Randomized response of four answers."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + 3)

    def release(data: float, size: int, rng: Any) -> Any:
        other = (int(data) + rng.integers(1, 4, size)) % 4
        return np.where(rng.random(size) < keep, int(data), other)

    return release


def bits(epsilon: float) -> Any:
    """Unary encoding of one of eight values, two bits of which differ."""
    flip = 1 / (1 + math.exp(epsilon / 2))

    def release(data: float, size: int, rng: Any) -> Any:
        own = np.arange(8) == int(data)
        return (own ^ (rng.random((size, 8)) < flip)).astype(int)

    return release


#: Claim, the mechanism that keeps it as a function of the parameter, the parameter, the excess.
CASES: list[tuple[str, str, Any, float, float]] = [
    ("Laplace", "eps=1", lambda x: dp.zoo.Laplace(1 / x), 1.0, 0.2),
    ("Laplace", "eps=3", lambda x: dp.zoo.Laplace(1 / x), 3.0, 0.2),
    ("discrete Laplace", "eps=1", lambda x: dp.zoo.DiscreteLaplace(1 / x), 1.0, 0.2),
    ("randomized response", "eps=1", dp.zoo.RandomizedResponse, 1.0, 0.2),
    ("response of four", "eps=1", answers, 1.0, 0.2),
    ("Gaussian", "mu=1", lambda x: dp.zoo.Gaussian(1 / x), 1.0, 0.2),
    ("Gaussian", "rho=0.5", lambda x: dp.zoo.Gaussian(1 / math.sqrt(2 * x)), 0.5, 0.5),
    ("histogram", "eps=1", histogram, 1.0, 0.2),
    ("five coordinates", "mu=1", directions, 1.0, 0.2),
    ("unary encoding", "eps=1", bits, 1.0, 0.3),
]


def refuted(mechanism: Any, claim: str, n: int) -> float:
    """The share of audits that refute a claim."""
    hits = [
        dp.audit(mechanism, PAIR, claim, n=n, rng=10_000 + seed, sampling=QUIET).violated
        for seed in range(AUDITS)
    ]
    return float(np.mean(hits))


def planned(case: int) -> list[object]:
    """Draws planned by audits of the broken mechanism and by a pilot on the sound one, with powers."""
    name, claim, make, value, excess = CASES[case]
    broken = make(value * (1 + excess))
    known = dp.plan(claim, pair=PAIR, shape=broken, rng=1, sampling=QUIET).draws
    assert known is not None
    cells = [name, claim, f"{100 * excess:g} %", f"{known:,}", refuted(broken, claim, known)]
    if claim.startswith("rho"):  # not planned by events
        return [*cells, "", ""]
    pilots = [
        dp.plan(make(value), PAIR, claim, excess=excess, pilot=2000, rng=seed, sampling=QUIET)
        for seed in range(5)
    ]
    median = sorted(one.draws for one in pilots if one.draws is not None)[2]
    return [*cells, f"{median:,}", refuted(broken, claim, median)]


@table("plan-power")
def plan_power() -> str:
    """Planned draws and the power measured with them, where 0.9 was planned."""
    headings = ["outputs", "claim", "excess", "by audits of the broken one", "power"]
    headings += ["by a pilot on the sound one", "power"]
    return markdown(headings, runs(planned, range(len(CASES)), label="plans"))
