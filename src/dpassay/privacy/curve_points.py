"""What curves are made of: points that cannot be changed, their lower hull, where they come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.privacy.about import About, Guarantee


def axis(name: str, values: Any, *, increasing: bool = True) -> FloatArray:
    """Numbers that cannot be changed, without NaN; those along an axis increase."""
    array = np.array(values, dtype=float)
    if array.ndim != 1 or array.size == 0 or np.isnan(array).any():
        raise InvalidInput(f"{name} must be a list of numbers without NaN, got {array!r}")
    if increasing and np.any(np.diff(array) < 0):
        raise InvalidInput(f"{name} must be increasing, got {checks.shown(list(array))}")
    array.setflags(write=False)
    return array


def estimated_by(about: About | None) -> str:
    """Where a curve comes from, that it is an estimate, and what is to be said about it."""
    if about is None:
        return ""
    return (
        f"; the curve itself is an estimate by {about.method} ({Guarantee.HEURISTIC}){about.noted}"
    )


def lower_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lower convex hull of points sorted by x (Andrew's monotone chain on distinct x)."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], np.diff(x) > 0])  # the lowest of equal abscissae
    x, y = x[first], y[first]
    slopes = np.diff(y) / np.diff(x)
    if x.size <= 2 or np.all(np.diff(slopes) > 0):
        return frozen(x), frozen(y)
    keep = _hull_indices(x, y)
    return frozen(x[keep]), frozen(y[keep])


def _hull_indices(x: FloatArray, y: FloatArray) -> list[int]:
    xs, ys = x.tolist(), y.tolist()  # scalar arithmetic on lists is several times faster
    hull: list[int] = []
    for i in range(len(xs)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (ys[b] - ys[a]) * (xs[i] - xs[a]) >= (ys[i] - ys[a]) * (xs[b] - xs[a]):
                hull.pop()
            else:
                break
        hull.append(i)
    return hull


def frozen(array: FloatArray) -> FloatArray:
    """A copy that cannot be changed."""
    array = np.array(array, dtype=float)
    array.setflags(write=False)
    return array
