"""Whether the methods of a claim of somebody else's class agree with each other, at some events and θ."""

from __future__ import annotations

import numpy as np

from dpassay.errors import InvalidInput
from dpassay.privacy.event_claims import SEE, TWO_ARRAYS, Claim

#: The probabilities that are tried, and errors of them that count as rounding.
_Q, _ROUNDING = np.linspace(0.0, 1.0, 201), 1e-6
#: What fails where g leaves out what the claim says of complements.
_BOTH_ORDERS = (
    "region_inverse(g(q)), by default 1 − g(1 − g(q)), must be q or less: the claim also holds for the "
    "complement in the other order of the inputs, so take the smaller of g(q) and 1 − g⁻¹(1 − q) as g, "
    "and the same in tradeoff and needed. A claim about the first input against the second alone sets "
    "directional = True and defines region_inverse(p, theta)"
)


def check_own(claim: Claim) -> None:
    """Refuse a claim that contradicts itself at the claimed θ, a smaller one or a larger one."""
    name, q = type(claim).__name__, _Q
    if not hasattr(claim, claim.parameter):
        raise InvalidInput(
            f"{name} has no {claim.parameter}: `parameter` must name the field that holds θ; "
            f'it is {claim.parameter!r} unless the class says parameter = "…"'
        )
    theta = np.array([[claim.value], [0.0], [min(2 * claim.value + 0.1, claim.largest)]])
    for at, shape in ((None, q.shape), (theta, (3, q.size))):
        found = claim.region_and_slope(q, at)
        if not isinstance(found, tuple) or [np.shape(one) for one in found] != [shape, shape]:
            given = "q" if at is None else "q, theta"
            raise InvalidInput(
                f"{name}.region_and_slope({given}) must return {TWO_ARRAYS}"
                + ("" if at is None else "; theta may be an array that broadcasts with q")
            )
    p = np.clip(found[0], 0.0, 1.0)
    below, above = np.maximum(p - _ROUNDING, 0.0), p + (1 - p) / 100
    f, inverse = claim.tradeoff(q, theta), claim.region_inverse(below, theta)
    least, more = claim.needed(below, q), claim.needed(above, q)
    middle, step = (p[:, :-2] + p[:, 2:]) / 2, q[1]
    for right, value, rule in (
        (p >= q - _ROUNDING, p, "g(q) must be q or more"),
        (np.diff(p) >= -_ROUNDING, p[:, 1:], f"g(q + {step}) must be g(q) or more"),
        (
            p[:, 1:-1] >= middle - _ROUNDING,
            p[:, 1:-1],
            f"g(q + {step}) must be (g(q) + g(q + {2 * step}))/2 or more, since g is concave",
        ),
        (np.abs(f - (1 - p)) <= _ROUNDING, f, "tradeoff(q) must be 1 − g(q)"),
        (least <= theta + _ROUNDING, least, "needed(g(q), q) must be θ or less"),
        ((more > theta) | (p > 1 - _ROUNDING), more, "needed(p, q) must exceed θ for p > g(q)"),
        (inverse <= q + _ROUNDING, inverse, _BOTH_ORDERS),
    ):
        if not np.all(right):
            row, column = np.argwhere(~np.asarray(right))[0]
            raise InvalidInput(
                f"{name}: {rule}; at θ = {theta[row, 0]:g}, q = {q[column]:g} and g(q) = "
                f"{p[row, column]:.4g} it is {np.asarray(value)[row, column]:.4g}; {SEE}"
            )
