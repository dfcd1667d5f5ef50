"""The tour of the demo: mechanisms of the zoo audited against what they claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpassay.audits import audit
from dpassay.blackbox import zoo
from dpassay.errors import NoClosedForm
from dpassay.privacy.claims import GaussianDP, RenyiDP
from dpassay.results import Verdict, number
from dpassay.sampling.draw import Sampling


@dataclass(frozen=True)
class Stop:
    """One mechanism of the tour."""

    name: str
    truth: str
    verdict: Verdict
    right: bool  # a broken one was refuted, a correct one was not


def cast() -> list[tuple[Any, Any]]:
    """(mechanism, claim or None for its own)."""
    return [
        (zoo.Laplace(1.0), None),
        (zoo.WrongSensitivityLaplace(sensitivity=1.2), None),
        (zoo.Gaussian(1.0), GaussianDP(1.0)),
        (zoo.Gaussian(1.0), RenyiDP(2, 0.7)),
        (zoo.SVT(1, 1.5), None),
        (zoo.SVT(3, 1.5), None),
        (zoo.SVT(6, 1.5), None),
        (zoo.NumericalSVT(1.5), None),
        (zoo.ReportNoisyMax(1.5), None),
        (zoo.ReportNoisyMax(1.5, variant=8), None),
        (zoo.NoisyHistogram(0.5), None),
        (zoo.NoisyHistogram(0.5, broken=True), None),
        (zoo.TruncatedLaplace(), None),
    ]


def tour(*, n: int, seed: int) -> Iterator[Stop]:
    """Audit one after the other."""
    for index, (mechanism, given) in enumerate(cast()):
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
        yield Stop(
            str(mechanism), _truth(mechanism, claim), verdict, bool(verdict.violated) == false
        )


def _false(mechanism: Any, claim: Any) -> bool:
    return bool(_value(mechanism, claim) > claim.value + 1e-9)


def _value(mechanism: Any, claim: Any) -> float:
    """The true value of the claim's parameter on the pair."""
    if isinstance(claim, RenyiDP):
        return float(mechanism.renyi(claim.order, mechanism.pair))
    if isinstance(claim, GaussianDP):
        return float(abs(mechanism.pair[0] - mechanism.pair[1]) / mechanism.sigma)
    return float(mechanism.epsilon(mechanism.pair))


def _truth(mechanism: Any, claim: Any) -> str:
    try:
        return f"{claim.symbol} = {number(_value(mechanism, claim))}"
    except NoClosedForm:
        return "not known"
