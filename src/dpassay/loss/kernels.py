"""Kernels of density estimates, and the option that chooses one with its bandwidth and its support."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput

#: Rules that choose a bandwidth (`loss.bandwidth`).
RULES = ("silverman", "scott", "sj", "isj", "likelihood")


@dataclass(frozen=True)
class Kernel:
    """A symmetric kernel K of one coordinate, with standard deviation 1 if it has order two."""

    density: Callable[[FloatArray], FloatArray]
    reach: float  # beyond it K is nothing, or next to nothing
    square: float  # ∫K²
    peak: float  # K(0)

    def norm(self, h: tuple[float, ...]) -> float:
        """∫K_h², the variance of the estimate at a point per draw and unit of density."""
        return math.prod(self.square / width for width in h)

    def top(self, h: tuple[float, ...]) -> float:
        """K_h(0): what one draw adds to n times the density at its own place."""
        return math.prod(self.peak / width for width in h)

    def near_end(self, distance: FloatArray) -> FloatArray:
        """How much larger the variance of a reflected estimate is, `distance` bandwidths from the end.

        1 + (K∗K)(2d)/∫K²: ∫(K(u − d) + K(u + d))² du = 2∫K² + 2(K∗K)(2d), half of it on the support.
        """
        u = np.linspace(-self.reach, self.reach, 2001)
        overlap = np.convolve(self.density(u), self.density(u)) * (u[1] - u[0]) / self.square
        lags = np.linspace(-2 * self.reach, 2 * self.reach, overlap.size)
        return np.asarray(1 + np.maximum(np.interp(2 * distance, lags, overlap, 0.0, 0.0), 0.0))


def _silverman(t: FloatArray) -> FloatArray:
    z = np.abs(t) / math.sqrt(2)
    return np.asarray(0.5 * np.exp(-z) * np.sin(z + math.pi / 4))


_ROOT_PI, _ROOT_2, _ROOT_5 = math.sqrt(math.pi), math.sqrt(2), math.sqrt(5)
KERNELS = {
    "gaussian": Kernel(
        lambda t: np.exp(-0.5 * t**2) / (_ROOT_2 * _ROOT_PI),
        9.0,
        0.5 / _ROOT_PI,
        1 / (_ROOT_2 * _ROOT_PI),
    ),
    "epanechnikov": Kernel(
        lambda t: np.maximum(0.75 * (1 - t**2 / 5), 0.0) / _ROOT_5,
        _ROOT_5,
        0.6 / _ROOT_5,
        0.75 / _ROOT_5,
    ),
    "laplace": Kernel(
        lambda t: np.exp(-_ROOT_2 * np.abs(t)) / _ROOT_2, 26.0, 0.5 / _ROOT_2, 1 / _ROOT_2
    ),
    # of order four: the second moment vanishes, and K is negative in places
    "silverman": Kernel(_silverman, 52.0, 3 * _ROOT_2 / 16, _ROOT_2 / 4),
}
GAUSSIAN = KERNELS["gaussian"]


@dataclass(frozen=True)
class KernelDensity:
    """How the densities of numbers are estimated: `bandwidth=` of `dp.pure`, `dp.tradeoff`, `Softmax`.

    kernel      "gaussian", "epanechnikov", "laplace", or "silverman", which is of order four
    bandwidth   the kernel's standard deviation: a number, or a rule "sj" (Sheather–Jones), "isj",
                "silverman" (R's "nrd0"), "scott", "likelihood" (leave-one-out cross-validation). One for
                both inputs, where a rule gives two the smaller; or a pair, one for each input
    support     (low, high), where outputs that are one number end: draws are reflected there
    exponent    raise what a rule gives to this power, in the unit of the outputs, instead of
                undersmoothing in their scale; the Rényi paper has 1.1

    >>> import dpassay as dp, numpy as np
    >>> def release(x, size, rng):  # never below 0
    ...     return np.abs(rng.normal(x, size=size))
    >>> density = dp.KernelDensity(kernel="epanechnikov", support=(0, float("inf")))
    >>> loss = dp.pure.estimate(release, (0.0, 1.0), n=100_000, bandwidth=density, rng=0).loss
    >>> bool(abs(loss.p[loss.x >= 0][0] - 0.798) < 0.03)  # half of it without the support
    True
    """

    kernel: str = "gaussian"
    bandwidth: Any = "sj"
    support: tuple[float, float] | None = None
    exponent: float | None = None

    def __post_init__(self) -> None:
        checks.one_of("kernel", self.kernel, tuple(KERNELS))
        if self.separate and len(self.bandwidth) != 2:
            raise InvalidInput(
                "bandwidth must be one, or a pair, one for each, got "
                + checks.shown(self.bandwidth)
            )
        for rule in self.rules:
            if isinstance(rule, str):
                checks.one_of("bandwidth", rule, RULES)
            else:
                checks.real("bandwidth", rule, above=0.0)
        if self.exponent is not None:
            checks.real("exponent", self.exponent, above=0.0)
        if self.support is not None:
            ends = checks.doubles("support", self.support)
            if ends.shape != (2,) or not ends[0] < ends[1]:
                raise InvalidInput(
                    f"support must be (low, high) with low < high, got {checks.shown(self.support)}"
                )

    @classmethod
    def of(cls, given: Any) -> KernelDensity:
        """A bandwidth alone stands for the Gaussian kernel with it."""
        return given if isinstance(given, cls) else cls(bandwidth=given)

    @property
    def shape(self) -> Kernel:
        """The kernel itself."""
        return KERNELS[self.kernel]

    @property
    def separate(self) -> bool:
        """Whether either input has a bandwidth of its own."""
        return isinstance(self.bandwidth, (tuple, list))

    @property
    def rules(self) -> tuple[Any, Any]:
        """The bandwidth or rule of either input."""
        a, b = self.bandwidth if self.separate else (self.bandwidth, self.bandwidth)
        return a, b

    def moved(self, origin: float) -> KernelDensity:
        """The same for outputs from which `origin` was subtracted."""
        low, high = self.support or (-math.inf, math.inf)
        return replace(self, support=(low - origin, high - origin))

    def norm_at(self, points: FloatArray, h: tuple[float, ...]) -> Any:
        """∫K_h², one a point of the axis where draws are reflected."""
        factors = [self.shape.near_end(np.abs(points - end) / h[0]) for end in self.ends if h]
        return math.prod(factors, start=self.shape.norm(h))

    @property
    def ends(self) -> tuple[float, ...]:
        """The finite ends of the support."""
        return tuple(float(end) for end in self.support or () if math.isfinite(end))
