"""prv-accountant: the upper bound that it gives for compositions, against draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import prv_accountant as prv

from libraries import dominating
from libraries.cases import Case, Finding
from libraries.dominating import Part

DISTRIBUTION = "prv-accountant"
_SAID = (
    "Return lower bound for ε, estimate for ε and upper bound for ε (docstring of "
    "PRVAccountant.compute_epsilon); the upper bound"
)


def _variable(part: Part) -> Any:
    match part.kind:
        case "Gaussian" if part.rate < 1:
            return prv.PoissonSubsampledGaussianMechanism(part.rate, part.scale)
        case "Gaussian":
            return prv.GaussianMechanism(part.scale)
        case "Laplace":
            return prv.LaplaceMechanism(1 / part.scale)
        case _:
            return prv.PureDPMechanism(math.log(part.scale / (1 - part.scale)))


def _epsilon(parts: Sequence[Part], delta: float) -> float:
    accountant = prv.PRVAccountant(
        prvs=[_variable(part) for part in parts],
        max_self_compositions=[part.times for part in parts],
        eps_error=0.01,
        delta_error=delta / 1000,
    )
    return float(accountant.compute_epsilon(delta, [part.times for part in parts])[2])


def cases() -> Iterator[Case]:
    """All cases."""
    every = [
        *dominating.gaussians(),
        *dominating.pure(),
        *dominating.sampled(),
        *dominating.mixed(),
    ]
    yield from dominating.cases("PRV", "prv_accountant.PRVAccountant", every, _epsilon, _SAID)


FINDINGS: tuple[Finding, ...] = ()
