"""The papers' asymptotic bounds: an estimate minus a normal quantile of its standard error."""

from __future__ import annotations

from scipy.special import ndtri


def lower(estimate: float, standard_error: float, gamma: float) -> float:
    """estimate + Φ⁻¹(γ)·standard_error, a bound in the limit of many draws only.

    >>> round(lower(1.0, 0.1, 0.05), 4)
    0.8355
    """
    return float(estimate + ndtri(gamma) * standard_error)
