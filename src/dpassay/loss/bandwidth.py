"""Bandwidths of a Gaussian kernel, from binned draws alone: O(G log G) whatever n was.

    silverman   0.9 min(s, IQR/1.34) n^{−1/5}                            Silverman 1986, eq. 3.31
    scott       1.059 s n^{−1/5}, the optimum for a normal density       Scott 1992
    sj          Sheather–Jones, the direct plug-in with two stages       Wand & Jones 1995, ch. 3.6
    isj         the fixed point of the improved Sheather–Jones method    Botev, Grotowski & Kroese 2010

The same names mean other things elsewhere: scikit-learn's "scott" ignores the spread, scipy's
"silverman" is 1.059 s n^{−1/5}. In d > 1 dimensions each coordinate is scaled by n^{1/5 − 1/(d+4)}.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.fft import dct, next_fast_len

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.loss.binned import Binned

NAMES = ("silverman", "scott", "sj", "isj")


def bandwidth(binned: Binned, rule: str | float = "sj") -> tuple[float, ...]:
    """One bandwidth a coordinate; a number is taken as it is."""
    if not isinstance(rule, str):
        return (checks.real("bandwidth", rule, above=0.0),) * len(binned.axes)
    checks.one_of("bandwidth", rule, NAMES)
    d = len(binned.axes)
    change = binned.total ** (1 / 5 - 1 / (d + 4))
    one = {"silverman": _silverman, "scott": _scott, "sj": _sheather_jones, "isj": _improved}[rule]
    return tuple(one(binned.marginal(k) if d > 1 else binned) * change for k in range(d))


def common_bandwidth(p: Binned, q: Binned, rule: str | float, inference: bool) -> tuple[float, ...]:
    """One for both sides: the smaller of theirs, at least two steps of the grid; less for `inference`."""
    pairs = []
    for side in (p, q):
        if side.total - side.outside < 10:
            continue
        h = bandwidth(side, rule)
        if inference and isinstance(rule, str):
            marginals = [side.marginal(k) if len(h) > 1 else side for k in range(len(h))]
            h = tuple(undersmooth(w, scale(m)) for w, m in zip(h, marginals, strict=True))
        pairs.append(h)
    chosen = np.min(pairs, axis=0) if pairs else np.array([10 * a.step for a in p.axes])
    return tuple(max(float(w), 2 * a.step) for w, a in zip(chosen, p.axes, strict=True))


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
