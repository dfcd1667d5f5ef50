"""The tour of the demo: mechanisms of the zoo audited against what they claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay.auditing.audits import audit
from dpassay.blackbox import zoo
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import Claim, GaussianDP, RenyiDP
from dpassay.results.rounding import number
from dpassay.results.verdict import Verdict
from dpassay.sampling.draw import Sampling


@dataclass(frozen=True)
class Stop:
    """One mechanism of the tour."""

    name: str
    truth: str
    verdict: Verdict
    right: bool  # a false claim was refuted; a true one was not, and could have been


def cast() -> list[tuple[str, Any, Any]]:
    """(name, mechanism, claim or None for its own)."""
    return [
        ("Laplace", zoo.Laplace(1.0), None),
        ("Laplace, sensitivity too low", zoo.WrongSensitivityLaplace(sensitivity=1.2), None),
        ("Gaussian", zoo.Gaussian(1.0), GaussianDP(1.0)),
        ("Gaussian, Rényi claim too low", zoo.Gaussian(1.0), RenyiDP(2, 0.7)),
        ("sparse vector 1", zoo.SVT(1, 1.5), None),
        ("sparse vector 3, releases numbers", zoo.SVT(3, 2.5), None),
        ("sparse vector 6, no cutoff", zoo.SVT(6, 1.5), None),
        ("numerical sparse vector", zoo.NumericalSVT(1.5), None),
        ("noisy max", zoo.ReportNoisyMax(1.5), None),
        ("noisy max, releases the value", zoo.ReportNoisyMax(1.5, variant=8), None),
        ("noisy histogram", zoo.NoisyHistogram(0.5), None),
        ("noisy histogram, ε for 1/ε", zoo.NoisyHistogram(0.5, broken=True), None),
        ("Laplace, truncated", zoo.TruncatedLaplace(), None),
    ]


def tour(*, n: int, seed: int) -> Iterator[Stop]:
    """Audit one after the other."""
    for index, (name, mechanism, given) in enumerate(cast()):
        claim = mechanism.claim if given is None else given
        verdict = audit(
            mechanism,
            mechanism.pair,
            claim,
            n=n,
            rng=seed + index,
            details=True,
            sampling=Sampling(progress=False),
        )
        false = not mechanism.correct if given is None else _false(mechanism, given)
        expected = "violation" if false else "clear"
        yield Stop(name, _truth(mechanism, claim), verdict, verdict.tone == expected)


def _false(mechanism: Any, claim: Claim) -> bool:
    return _value(mechanism, claim) > claim.value + 1e-9


def _value(mechanism: Any, claim: Claim) -> float:
    """The least value of the claim's parameter that is true of the pair."""
    first, second = pair = mechanism.pair
    if claim.point is not None and claim.point[1] == 0:
        return float(mechanism.epsilon(pair))
    if claim.orders:
        return max(
            claim.from_renyi(order, float(mechanism.renyi(order, way)))
            for order in claim.orders
            for way in ((first, second), (second, first))
        )
    alpha = np.linspace(0.0, 1.0, 1001)[1:-1]
    power = 1 - np.asarray(mechanism.tradeoff(alpha, pair))
    return float(np.max(claim.needed(power, alpha)))


def _truth(mechanism: Any, claim: Claim) -> str:
    try:
        return f"{claim.symbol} = {number(_value(mechanism, claim))}"
    except NoClosedForm:
        return "not known"
