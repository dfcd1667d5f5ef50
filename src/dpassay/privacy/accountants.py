"""The claims that privacy accountants make: the whole curve they hold, not one point of it.

Nothing is imported: an accountant is known by what it can be asked.

    orders and rdp, and arrays of them    dp-accounting's RdpAccountant           Rényi DP at those orders
    get_delta, get_delta_for_epsilon      its PLDAccountant, its distributions    δ(ε), asked at many ε
    get_epsilon                           Opacus's accountants, and others        ε(δ), asked at many δ

Every point that is asked for is a valid claim by itself, so fewer points make a weaker claim and never
a stronger one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpassay import checks
from dpassay.errors import InvalidInput
from dpassay.privacy import tabulated
from dpassay.privacy.claims import Claim, RenyiCurveDP, TradeoffDP

#: The δ at which an accountant that only gives ε is asked: the large ones say most of events that draws
#: can see, the small ones are those that are published.
_DELTAS = np.concatenate([np.linspace(0.95, 0.05, 37), np.geomspace(0.04, 1e-9, 37)])


def from_accountant(accountant: Any) -> Claim | None:
    """The claim of an accountant; None if it is not known as one."""
    orders, rdp = (_either(accountant, name, f"_{name}") for name in ("orders", "rdp"))
    if orders is not None and rdp is not None:
        return _renyi(orders, rdp)
    for name in ("get_delta_for_epsilon", "get_delta"):
        if callable(ask := getattr(accountant, name, None)):
            return TradeoffDP.from_delta(ask)
    if callable(ask := getattr(accountant, "get_epsilon", None)):
        return _by_epsilon(accountant, ask)
    return None


def _either(thing: Any, *names: str) -> Any:
    found = (getattr(thing, name, None) for name in names)
    return next((one for one in found if one is not None and not callable(one)), None)


def _renyi(orders: Any, rdp: Any) -> RenyiCurveDP:
    """ε(λ) at every order above 1; accountants also keep orders at which nothing is known."""
    pairs = [(float(a), float(e)) for a, e in zip(np.ravel(orders), np.ravel(rdp), strict=True)]
    kept = [(order, epsilon) for order, epsilon in pairs if 1 < order < np.inf and epsilon >= 0]
    if not kept:
        raise InvalidInput(
            f"the accountant holds no order above 1, got {checks.shown(list(np.ravel(orders)))}"
        )
    return RenyiCurveDP(tuple(a for a, _ in kept), tuple(e for _, e in kept))


def _by_epsilon(accountant: Any, ask: Callable[..., Any]) -> TradeoffDP:
    """(ε(δ), δ) at many δ; those that the accountant cannot answer are left out."""
    found: list[tuple[float, float]] = []
    failed: Exception | None = None
    for delta in _DELTAS:
        try:
            epsilon = float(ask(float(delta)))
        except Exception as error:  # each accountant has its own range, and its own way to say so
            failed = error
            continue
        if 0 <= epsilon < np.inf:
            found.append((epsilon, float(delta)))
    if not found:
        hint = f" ({type(failed).__name__}: {failed})" if failed else ""
        raise InvalidInput(
            f"{type(accountant).__name__}.get_epsilon(delta) gave no finite epsilon at any delta from "
            f"{_DELTAS[-1]:g} to {_DELTAS[0]:g}{hint}; has it taken a step?"
        )
    epsilons, deltas = (np.array(column) for column in zip(*found, strict=True))
    order = np.argsort(epsilons, kind="stable")
    return TradeoffDP(tabulated.from_pairs(epsilons[order], deltas[order]))
