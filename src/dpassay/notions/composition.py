"""Composition of privacy spectra (Eureka, Propositions 3 to 5).

What follows for the mechanisms together from δ(ε) of each, for databases of a set T (relative DP) or all:

    parallel          on disjoint parts of the data: the largest ε and δ (Proposition 3)
    sequential        on the same data, with independent randomness: ε and δ add up (Proposition 4)
    post-processing   a function of the output has no larger δ (Proposition 5): nothing to compute

For distributional DP sequential composition is false: the rows are random, and two outputs of the same
rows may reveal together what neither does. Of m fair coins, their sum and the sum without row 0 have
small δ each, and give row 0 away together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import Spectrum
from dpassay.privacy.pairs import Relation
from dpassay.privacy.provenance import About, Guarantee


def parallel(first: Spectrum, *others: Spectrum) -> Spectrum:
    """The spectrum of mechanisms that each see a part of the data of their own: the largest δ at every ε.

    One record is in one part, so this is an equality. Certified curves hold for all mechanisms at once.

    >>> import dpassay as dp
    >>> small, large = dp.Spectrum([0.0, 1.0], [0.2, 0.0]), dp.Spectrum([0.0, 1.0], [0.3, 0.1])
    >>> dp.spectrum.parallel(small, large)(0.0)
    0.3
    """
    return _together("parallel", np.maximum, (first, *others))


def sequential(first: Spectrum, *others: Spectrum) -> Spectrum:
    """A bound for the spectrum of mechanisms that all see the same data: least Σ δᵢ(εᵢ) with Σ εᵢ ≤ ε.

    An upper bound where the spectra are exact, and an estimate of that bound where they are estimates;
    its `upper` is certified where theirs are. An accountant that knows the mechanisms gives less. Either
    mechanism alone is a function of both outputs, so the largest certified lower curve is one of the
    composition.

    >>> import dpassay as dp, numpy as np
    >>> eps = np.linspace(0, 2, 41)
    >>> one = dp.Spectrum(eps, dp.zoo.Laplace(1.0).delta(eps, (0.0, 1.0)))  # (1, 0)-DP
    >>> bool(abs(dp.spectrum.sequential(one, one)(2.0)) < 1e-12)  # (2, 0)-DP
    True
    """
    for one in (first, *others):
        if any(part.pair.relation is Relation.DISTRIBUTIONAL for part in getattr(one, "parts", ())):
            raise InvalidInput(
                "distributional guarantees do not compose: two outputs of the same random rows may "
                "reveal together what neither does. Estimate the mechanism that returns both"
            )

    def least_sum(a: FloatArray, b: FloatArray) -> FloatArray:
        """min a(s) + b(t) over grid points s + t ≤ ε; at most 1."""
        totals, sums = np.add.outer(first.x, first.x).ravel(), np.add.outer(a, b).ravel()
        order = np.argsort(totals)
        best = np.minimum.accumulate(np.append(1.0, sums[order]))
        # sums of grid points that are one in exact arithmetic may be apart by rounding
        return best[np.searchsorted(totals[order], first.x * (1 + 1e-12) + 1e-12, side="right")]

    return _together("sequential", least_sum, (first, *others))


def _together(
    how: str,
    combine: Callable[[FloatArray, FloatArray], FloatArray],
    spectra: tuple[Spectrum, ...],
) -> Spectrum:
    """Curves combined one after the other; the largest lower curve."""
    for one in spectra:
        if not isinstance(one, Spectrum):
            raise InvalidInput(
                f"give results of dp.spectrum, or dp.Spectrum, got {checks.shown(one)}"
            )
        if not np.array_equal(one.x, spectra[0].x):
            raise InvalidInput(
                "the spectra are on different grids: estimate both with the same epsilons"
            )
    upper = [one.upper for one in spectra if one.upper is not None]
    lower = [one.lower for one in spectra if one.lower is not None]
    known = [one.confidence for one in spectra if one.confidence is not None]
    return Spectrum(
        spectra[0].x,
        reduce(combine, [one.y for one in spectra]),
        lower=np.max(lower, axis=0) if lower else None,
        upper=reduce(combine, upper) if len(upper) == len(spectra) else None,
        confidence=max(0.0, 1 - sum(1 - c for c in known)) if known else None,
        about=About(method=f"{how} composition", guarantee=Guarantee.HEURISTIC),
    )
