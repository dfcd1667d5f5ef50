"""Kernel density estimates (TKDE without its floor): kernels, densities, and the rules for bandwidths.

On a grid: linear binning and one product in the frequency domain, O(n + G log G). At single points: the
direct sum over the draws within reach. Bandwidths are found from binned draws alone, in O(G log G):

    silverman   0.9 min(s, IQR/1.34) n^{−1/5}                            Silverman 1986, eq. 3.31
    scott       1.059 s n^{−1/5}, the optimum for a normal density       Scott 1992
    sj          Sheather–Jones, the direct plug-in with two stages       Wand & Jones 1995, ch. 3.6
    isj         the fixed point of the improved Sheather–Jones method    Botev, Grotowski & Kroese 2010
    likelihood  the largest leave-one-out likelihood                     Habbema & Hermans 1977

All but the last are for a Gaussian kernel, and rescaled for others by (∫K²)^{1/5}, the optimum for
kernels of variance 1.

The same names mean other things elsewhere: scikit-learn's "scott" ignores the spread, scipy's
"silverman" is 1.059 s n^{−1/5}. In d > 1 dimensions each coordinate is scaled by n^{1/5 − 1/(d+4)}.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.fft import dct, next_fast_len

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.scores.cell_counts import Axis, Binned

#: Rules that choose a bandwidth.
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


def _order_four(t: FloatArray) -> FloatArray:
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
    "silverman": Kernel(_order_four, 52.0, 3 * _ROOT_2 / 16, _ROOT_2 / 4),
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
        return KERNELS[self.kernel]

    @property
    def separate(self) -> bool:
        return isinstance(self.bandwidth, (tuple, list))

    @property
    def rules(self) -> tuple[Any, Any]:
        """The bandwidth or rule of either input."""
        a, b = self.bandwidth if self.separate else (self.bandwidth, self.bandwidth)
        return a, b

    @property
    def least(self) -> float | None:
        """The smaller bandwidth that is given as a number, if one is."""
        return min((float(w) for w in self.rules if not isinstance(w, str)), default=None)

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
        return tuple(float(end) for end in self.support or () if math.isfinite(end))


def density_on_grid(
    binned: Binned,
    h: tuple[float, ...],
    kernel: Kernel = GAUSSIAN,
    support: tuple[float, float] | None = None,
) -> FloatArray:
    """The density at the grid points; integrates to the share of draws inside the grid.

    With a support of the one coordinate, what lies beyond its ends is folded back.
    """
    shape = []
    for axis, width in zip(binned.axes, h, strict=True):
        room = math.ceil(min(axis.size, kernel.reach * width / axis.step))
        shape.append(next_fast_len(axis.size + room, real=True))
    dimensions = tuple(range(len(shape)))
    spectrum = np.fft.rfftn(binned.weights, shape, dimensions)
    for k, (axis, width, size) in enumerate(zip(binned.axes, h, shape, strict=True)):
        damping = _transform(kernel, width / axis.step, size, k == len(shape) - 1)
        spectrum *= damping.reshape([-1 if j == k else 1 for j in range(len(shape))])
    density = np.fft.irfftn(spectrum, shape, dimensions)[
        tuple(slice(axis.size) for axis in binned.axes)
    ]
    if support is not None:
        density = _reflected(density, binned.axes[0], support)
    return np.asarray(np.maximum(density / (binned.total * binned.cell), 0.0))


def _transform(kernel: Kernel, width: float, size: int, half: bool) -> FloatArray:
    """The Fourier transform of a kernel of this width, in steps of the grid, at `size` frequencies."""
    if kernel is GAUSSIAN:
        frequency = np.fft.rfftfreq(size) if half else np.fft.fftfreq(size)
        return np.asarray(np.exp(-0.5 * (2 * math.pi * frequency * width) ** 2))
    lags = np.arange(size, dtype=float)
    sampled = kernel.density(np.minimum(lags, size - lags) / width) / width
    found = np.fft.rfft(sampled) if half else np.fft.fft(sampled)
    return np.asarray(found.real / sampled.sum())


def _reflected(density: FloatArray, axis: Axis, support: tuple[float, float]) -> FloatArray:
    """A density on one axis with what lies beyond an end of its support folded back."""
    x, (low, high) = axis.points, support
    folded = density.copy()
    for end in (low, high):
        if math.isfinite(end):
            folded += np.interp(2 * end - x, x, density, left=0.0, right=0.0)
    return np.where((x >= low) & (x <= high), folded, 0.0)


def density_at(
    values: FloatArray, points: FloatArray, h: tuple[float, ...], kernel: Kernel = GAUSSIAN
) -> FloatArray:
    """The density at a few points, summed directly over the draws."""
    out = np.empty(len(points))
    for index, point in enumerate(points):
        near = np.ones(len(values), dtype=bool)
        for k, width in enumerate(h):
            near &= np.abs(values[:, k] - point[k]) < kernel.reach * width
        z = (values[near] - point) / np.array(h)
        out[index] = kernel.density(z).prod(axis=1).sum() / (len(values) * math.prod(h))
    return out


def bandwidth(
    binned: Binned, rule: str | float = "sj", kernel: Kernel = GAUSSIAN
) -> tuple[float, ...]:
    """One bandwidth a coordinate; a number is taken as it is."""
    sides = binned.marginals
    if not isinstance(rule, str):
        return (float(rule),) * len(sides)
    change = binned.total ** (1 / 5 - 1 / (len(sides) + 4))
    if rule == "likelihood":
        return tuple(_likelihood(side, kernel) * change for side in sides)
    change *= (kernel.square / GAUSSIAN.square) ** 0.2
    one = {"silverman": _silverman, "scott": _scott, "sj": _sheather_jones, "isj": _improved}[rule]
    return tuple(one(side) * change for side in sides)


def bandwidths(
    p: Binned, q: Binned, density: KernelDensity, inference: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Those of both sides, at least two steps of the grid; less for `inference`.

    Unless the two are to be separate, both are the smaller one.
    """
    found: list[tuple[float, ...] | None] = []
    for side, rule in zip((p, q), density.rules, strict=True):
        if side.total - side.outside < 10:  # too few
            found.append(None)
            continue
        h = bandwidth(side, rule, density.shape)
        if isinstance(rule, str) and density.exponent is not None:
            h = tuple(w**density.exponent for w in h)
        elif isinstance(rule, str) and inference:
            h = tuple(undersmooth(w, scale(m)) for w, m in zip(h, side.marginals, strict=True))
        found.append(h)
    known = [h for h in found if h is not None]
    least = np.min(known, axis=0) if known else np.array([10 * a.step for a in p.axes])
    chosen = [least if h is None or not density.separate else h for h in found]
    first, second = (
        tuple(max(float(w), 2 * a.step) for w, a in zip(h, p.axes, strict=True)) for h in chosen
    )
    return first, second


def scale(binned: Binned) -> float:
    """min(s, IQR/1.349), the spread of the middle; the grid's step if all draws are equal."""
    s, iqr = _spread(binned)
    robust = min(s, iqr / 1.349) if iqr > 0 else s
    return robust if robust > 0 else binned.axes[0].step


def undersmooth(h: float, s: float) -> float:
    """s (h/s)^1.1: a little less smoothing, so that the bias of a bound vanishes before its width.

    The papers raise h itself to the power 1.1, which depends on the unit and *over*smooths when
    h > 1; measured in the scale of the data it does neither.
    """
    return float(s * (h / s) ** 1.1)


def _spread(binned: Binned) -> tuple[float, float]:
    # in steps of the grid, the squares of which exist
    steps, w = np.arange(binned.axes[0].size, dtype=float), binned.weights
    total = w.sum()
    mean = float(w @ steps) / total
    variance = float(w @ (steps - mean) ** 2) / total
    q25, q75 = np.interp([0.25, 0.75], np.cumsum(w) / total, steps)
    step = binned.axes[0].step
    return step * math.sqrt(max(variance, 0.0)), step * float(q75 - q25)


def _silverman(binned: Binned) -> float:
    s, iqr = _spread(binned)
    robust = min(s, iqr / 1.34) if iqr > 0 else s
    return float(0.9 * (robust or binned.axes[0].step) * binned.total**-0.2)


def _scott(binned: Binned) -> float:
    return float((4 / 3) ** 0.2 * (_spread(binned)[0] or binned.axes[0].step) * binned.total**-0.2)


def _likelihood(binned: Binned, kernel: Kernel) -> float:
    """argmax Σ log f̂₋ᵢ(Xᵢ), f̂₋ᵢ(x) = (n f̂(x) − K_h(0))/(n − 1), within 20 times Silverman's rule."""
    from scipy.optimize import minimize_scalar

    n, start = binned.total, _silverman(binned)

    def loss(log_h: float) -> float:
        h = (math.exp(log_h),)
        others = (n * density_on_grid(binned, h, kernel) - kernel.top(h)) / (n - 1)
        return -float(binned.weights @ np.log(np.maximum(others, 1e-9 / (n * start))))

    low = math.log(max(start / 20, 2 * binned.axes[0].step))
    high = max(math.log(20 * start), low + 1e-6)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return math.exp(found.x)


def _sheather_jones(binned: Binned) -> float:
    """Two stages of plugging in: ψ₈ by a normal reference, then ψ̂₆ → ψ̂₄ → h."""
    s, n = scale(binned), binned.total
    lags, mass = _autocorrelation(binned)
    lags = lags / s
    a = (2 * math.sqrt(2) ** 9 / (7 * n)) ** (1 / 9)
    psi6 = _functional(lags, mass, a, 6)
    if not psi6 < 0:
        return _silverman(binned)
    b = (-3 * math.sqrt(2 / math.pi) / (psi6 * n)) ** (1 / 7)
    psi4 = _functional(lags, mass, b, 4)
    if not psi4 > 0:
        return _silverman(binned)
    return float(s * (1 / (2 * math.sqrt(math.pi) * psi4 * n)) ** 0.2)


def _autocorrelation(binned: Binned) -> tuple[FloatArray, FloatArray]:
    """Σ_i w_i w_{i+k} / n² for all lags k ≥ 0, and the lags."""
    w = binned.weights
    size = next_fast_len(2 * w.size, real=True)
    mass = np.fft.irfft(np.abs(np.fft.rfft(w, size)) ** 2, size)[: w.size] / binned.total**2
    mass[1:] *= 2  # both signs of the lag
    return np.arange(w.size, dtype=float) * binned.axes[0].step, np.asarray(mass)


def _functional(lags: FloatArray, mass: FloatArray, g: float, order: int) -> float:
    """ψ̂_r(g) = n^{−2} ΣΣ φ_g^{(r)}(X_i − X_j)."""
    z = lags / g
    near = z < 9
    z, mass = z[near], mass[near]
    z2 = z**2
    hermite = (z2 - 6) * z2 + 3 if order == 4 else ((z2 - 15) * z2 + 45) * z2 - 15
    density = np.exp(-z2 / 2) / math.sqrt(2 * math.pi)
    return float(np.sum(mass * hermite * density)) / g ** (order + 1)


def _improved(binned: Binned) -> float:
    """The t with t = ξ γ^{[5]}(t), found on the cosine transform of the binned draws."""
    from scipy.optimize import brentq

    axis, n = binned.axes[0], binned.total
    width = axis.high - axis.low + axis.step
    k2 = np.arange(1, axis.size, dtype=float) ** 2
    a2 = (dct(binned.weights / binned.weights.sum())[1:] / 2) ** 2

    def norm(t: float, s: int) -> float:
        with np.errstate(under="ignore"):
            return float(2 * math.pi ** (2 * s) * np.sum(k2**s * a2 * np.exp(-k2 * math.pi**2 * t)))

    def excess(t: float) -> float:
        f = norm(t, 7)
        for s in range(6, 1, -1):
            odd = math.prod(range(1, 2 * s, 2)) / math.sqrt(2 * math.pi)
            constant = (1 + 0.5 ** (s + 0.5)) / 3
            time = (2 * constant * odd / (n * f)) ** (2 / (3 + 2 * s))
            f = norm(time, s)
        return float(t - (2 * n * math.sqrt(math.pi) * f) ** -0.4)

    high = 1e-7
    with np.errstate(over="ignore", divide="ignore"):
        while high < 0.1 and not excess(high) > 0:
            high *= 4
        if not excess(high) > 0:
            return _sheather_jones(binned)
        t = brentq(excess, 1e-14, high) if excess(1e-14) < 0 else high
    return math.sqrt(t) * width
