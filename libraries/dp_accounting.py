"""dp-accounting: the ε that its two accountants give for compositions, against draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import dp_accounting as dpa
import numpy as np
from absl import logging
from dp_accounting import pld, rdp

from libraries import dominating
from libraries.cases import Case, Finding
from libraries.dominating import Part

DISTRIBUTION = "dp-accounting"
logging.set_verbosity(logging.ERROR)
_API = "dp_accounting"
_RNG = np.random.default_rng()
_SAID = "Gets the current epsilon (docstring of PrivacyAccountant.get_epsilon)"


def _event(part: Part) -> Any:
    events = {
        "Gaussian": lambda: dpa.GaussianDpEvent(part.scale),
        "Laplace": lambda: dpa.LaplaceDpEvent(part.scale),
        "response": lambda: dpa.RandomizedResponseDpEvent(2 * (1 - part.scale), 2),
    }
    event = events[part.kind]()
    if part.rate < 1:
        event = dpa.PoissonSampledDpEvent(part.rate, event)
    return dpa.SelfComposedDpEvent(event, part.times)


def _epsilon(make: Callable[[], Any]) -> Callable[[Sequence[Part], float], float]:
    def epsilon(parts: Sequence[Part], delta: float) -> float:
        accountant = make()
        for part in parts:
            accountant.compose(_event(part))
        return float(accountant.get_epsilon(delta))

    return epsilon


def _related(make: Callable[..., Any]) -> Callable[[Sequence[Part], float], float]:
    """Randomised response is accounted for under replacement alone, sampling under add or remove."""

    def epsilon(parts: Sequence[Part], delta: float) -> float:
        responds = any(part.kind == "response" for part in parts)
        relations = dpa.NeighboringRelation
        relation = relations.REPLACE_ONE if responds else relations.ADD_OR_REMOVE_ONE
        return _epsilon(lambda: make(neighboring_relation=relation))(parts, delta)

    return epsilon


def cases() -> Iterator[Case]:
    """All cases."""
    every = [
        *dominating.gaussians(),
        *dominating.pure(),
        *dominating.sampled(),
        *dominating.mixed(),
    ]
    rare = [[Part("Laplace", 1.0, times, 0.2)] for times in (1, 8)]
    again = [parts for parts in every if parts[0].kind == "response" and parts[0].times > 1]
    others = [parts for parts in every if parts not in again]
    divergences = _related(rdp.RdpAccountant)
    yield from dominating.cases("RDP", f"{_API}.rdp.RdpAccountant", every, divergences, _SAID)
    losses, place = _related(pld.PLDAccountant), f"{_API}.pld.PLDAccountant"
    yield from dominating.cases("PLD", place, [*others, *rare], losses, _SAID)
    yield from dominating.cases("PLD", place, again, losses, _SAID, sound="")
    yield from _replaced()


def _replaced() -> Iterator[Case]:
    """A value of +1 in a sum becomes −1: noise 2s on a change of 2 is drawn as noise s on one of 1."""
    relation = dpa.NeighboringRelation.REPLACE_ONE
    said = f"{_SAID}, REPLACE_ONE; GaussianDpEvent: norms ||v_i|| <= C, noise_multiplier s / C"
    noise = [[Part("Gaussian", 1.0)], [Part("Gaussian", 2.0, 4)], [Part("Gaussian", 5.0, 16)]]
    table: tuple[tuple[str, Any, Sequence[Sequence[Part]], str], ...] = (
        ("PLD", pld.PLDAccountant, noise, dominating.SOUND),
        ("RDP", rdp.RdpAccountant, [*noise, [Part("Laplace", 2.0)], [Part("Laplace", 4.0, 4)]], ""),
    )
    for name, make, compositions, sound in table:
        spent = _epsilon(partial(make, neighboring_relation=relation))

        def doubled(parts: Sequence[Part], delta: float, spent: Any = spent) -> float:
            return float(spent([replace(part, scale=2 * part.scale) for part in parts], delta))

        api = f"{_API}.{name.lower()}.{make.__name__}"
        for case in dominating.cases(
            f"{name}, +1 becomes −1", api, compositions, doubled, said, sound=sound
        ):
            yield replace(
                case,
                relation="replace",
                shown="with +1, and with −1; noise in units of their difference",
            )
    yield from _sampled_and_replaced()


def _sampled_and_replaced() -> Iterator[Case]:
    """One of ten records is +1 or −1, the others 0; three are sampled on average, or exactly."""
    relation, rate, scale, delta = dpa.NeighboringRelation.REPLACE_ONE, 0.3, 1.0, 1e-3
    noise = dpa.GaussianDpEvent(scale)
    for name, event, make, sound in (
        (
            "PLD, Poisson sample",
            dpa.PoissonSampledDpEvent(rate, noise),
            pld.PLDAccountant,
            dominating.SOUND,
        ),
        (
            "RDP, sample without replacement",
            dpa.SampledWithoutReplacementDpEvent(10, 3, noise),
            rdp.RdpAccountant,
            "",
        ),
    ):
        for times in (1, 4):
            accountant = make(neighboring_relation=relation).compose(event, times)
            eps = float(accountant.get_epsilon(delta))
            yield Case(
                f"{name}, +1 becomes −1 × {times}",
                f"{_API}.{make.__name__}",
                _mixed_losses(rate, scale, times),
                (1, -1),
                f"eps={eps!r}, delta={delta!r}",
                f"{_SAID}, REPLACE_ONE: ε = {eps:.4g} at δ = {delta:g}",
                "replace",
                n=20_000,
                group="accountant",
                sound=sound,
                look="values",
                vectorised=True,
                shown="nine zeros with +1, and with −1",
            )


def _mixed_losses(rate: float, scale: float, times: int) -> Callable[[int, int], Any]:
    """The privacy loss of Gaussian noise on a sum that holds +1 or −1 with a probability."""

    def losses(value: int, size: int) -> Any:
        shape = size, times
        x = value * (_RNG.random(shape) < rate) + _RNG.normal(scale=scale, size=shape)
        up, down = ((2 * sign * x - 1) / (2 * scale**2) for sign in (1, -1))
        ratio = np.log1p(rate * np.expm1(up)) - np.log1p(rate * np.expm1(down))
        return np.round(ratio.sum(axis=1), 9)

    return losses


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="The RDP accountant takes the sensitivity of a record added for one that is replaced",
        kind="violation",
        cases=("RDP, +1 becomes −1, *", "RDP, sample without replacement, +1 becomes −1 *"),
        cause=(
            "A GaussianDpEvent (and a LaplaceDpEvent) has noise_multiplier s / C for values of norm at "
            "most C. A record that is replaced changes their sum by up to 2C, but RdpAccountant "
            "composes the event in the same way for every relation. PLDAccountant doubles the "
            "sensitivity for Gaussian noise, and refuses Laplace noise."
        ),
        known="https://github.com/google/differential-privacy/issues/378",
        script="dp_accounting_replace.py",
    ),
    Finding(
        title="The PLD accountant composes randomised response once, however often it is used",
        kind="violation",
        cases=("PLD, response *",),
        cause=(
            "pld/pld_privacy_accountant.py, _maybe_compose: every other event is composed with "
            "self_compose(count) or with noise divided by √count; the branch of "
            "RandomizedResponseDpEvent calls self._pld.compose(rr_pld) once and does not use count. "
            "compose(event, count) and SelfComposedDpEvent then give the ε of one use. RdpAccountant "
            "multiplies by count."
        ),
        script="dp_accounting_response.py",
        report=(
            "PLDAccountant.compose(RandomizedResponseDpEvent(0.8, 2), count) gives the same ε for "
            "every count (0.389 at δ = 0.01), since the branch for that event in _maybe_compose leaves "
            "out self_compose(count). Ten calls of compose(event) give the right value. At count 10 an "
            "audit of draws certifies {PLD, response 0.6 × 10, δ = 0.01} (10⁻³ error probability). A "
            "remedy is self._pld.compose(rr_pld.self_compose(count)), and a test with count > 1."
        ),
    ),
)
