"""Composition of spectra for databases of a set, or all (Eureka, Propositions 3 to 5).

Post-processing needs none: a function of the output has no larger δ. Distributional guarantees do not
compose sequentially: of m fair coins, the sum and the sum without row 0 have small δ each, and give row 0
away together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.curves import Spectrum
from dpassay.privacy.pairs import Relation


def parallel(first: Spectrum, *others: Spectrum) -> Spectrum:
    """The spectrum of mechanisms that each see a part of the data of their own: the largest δ.

    >>> import dpassay as dp
    >>> small, large = dp.Spectrum([0.0, 1.0], [0.2, 0.0]), dp.Spectrum([0.0, 1.0], [0.3, 0.1])
    >>> dp.spectrum.parallel(small, large)(0.0)
    0.3
    """
    return _together(np.maximum, (first, *others))


def sequential(first: Spectrum, *others: Spectrum) -> Spectrum:
    """A bound for the spectrum of mechanisms that all see the same data: least Σ δᵢ(εᵢ) with Σ εᵢ ≤ ε.

    Of estimates it is an estimate; `upper` is certified where theirs are, and so is the largest `lower`:
    one output is a function of all. An accountant that knows the mechanisms gives less.

    >>> import dpassay as dp
    >>> one = dp.Spectrum([0.0, 0.5, 1.0], [0.4, 0.1, 0.0])
    >>> dp.spectrum.sequential(one, one)(1.0)  # ½ each
    0.2
    """
    parts = [part for one in (first, *others) for part in getattr(one, "parts", ())]
    if any(part.pair.relation is Relation.DISTRIBUTIONAL for part in parts):
        raise InvalidInput(
            "distributional guarantees do not compose: two outputs of the same random rows may reveal "
            "together what neither does. Estimate the mechanism that returns both"
        )

    def least_sum(a: FloatArray, b: FloatArray) -> FloatArray:
        totals, sums = np.add.outer(first.x, first.x).ravel(), np.add.outer(a, b).ravel()
        order = np.argsort(totals)
        best = np.minimum.accumulate(np.append(1.0, sums[order]))
        reached = first.x * (1 + 1e-12) + 1e-12  # sums of grid points are rounded
        return best[np.searchsorted(totals[order], reached, side="right")]

    return _together(least_sum, (first, *others))


def _together(
    combine: Callable[[FloatArray, FloatArray], FloatArray], spectra: tuple[Spectrum, ...]
) -> Spectrum:
    """Curves combined one after the other; the certified ones hold at once (union bound)."""
    same = all(isinstance(one, Spectrum) for one in spectra)
    if not same or not all(np.array_equal(one.x, spectra[0].x) for one in spectra):
        raise InvalidInput("give spectra (dp.Spectrum) that have the same grid of epsilons")
    upper = [one.upper for one in spectra if one.upper is not None]
    lower = [one.lower for one in spectra if one.lower is not None]
    wrong = sum(1 - (1.0 if one.confidence is None else one.confidence) for one in spectra)
    return Spectrum(
        spectra[0].x,
        reduce(combine, [one.y for one in spectra]),
        lower=np.max(lower, axis=0) if lower else None,
        upper=reduce(combine, upper) if len(upper) == len(spectra) else None,
        confidence=max(0.0, 1 - wrong) if lower or upper else None,
    )
