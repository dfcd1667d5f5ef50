"""Arrays of curves: checked, frozen, inside the grid of a curve, and their lower convex hull."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.records import Record


def freeze(curve: Record, **names: str) -> None:
    """Make fields arrays without NaN that cannot be changed, all as long as x, which increases.

    Each field is given with its name in messages. Bounds may be None; points may not.
    """
    for field_name, name in names.items():
        if (values := getattr(curve, field_name)) is not None or field_name in ("x", "y", "p", "q"):
            array = numbers(name, values, increasing=field_name == "x")
            curve._set(**{field_name: array})
            if array.size != (size := curve.x.size):  # type: ignore[attr-defined]
                raise InvalidInput(f"{name} must have {size:,} numbers like x, got {array.size:,}")


def numbers(name: str, values: Any, *, increasing: bool = False) -> FloatArray:
    """A list of numbers without NaN as an array that cannot be changed."""
    array = checks.doubles(name, values)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(
            f"{name} must be a list of numbers without NaN, got {checks.shown(values)}"
        )
    if increasing and np.any(np.diff(array) < 0):
        raise InvalidInput(f"{name} must be increasing, got {checks.shown(list(array))}")
    return frozen(array)


def inside(name: str, values: npt.ArrayLike, x: FloatArray, other: str) -> FloatArray:
    """Numbers inside the grid of a curve."""
    array = checks.doubles(name, values)
    if np.any(array < x[0]) or np.any(array > x[-1]):
        raise InvalidInput(
            f"{name} must lie in [{x[0]:g}, {x[-1]:g}], the grid of this curve, got "
            f"{checks.shown(values)}; {other} estimates others"
        )
    return array


def lower_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lower convex hull of points sorted by x (Andrew's monotone chain on distinct x)."""
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate([[True], np.diff(x) > 0])  # the lowest of equal abscissae
    x, y = x[first], y[first]
    slopes = np.diff(y) / np.diff(x)
    if x.size <= 2 or np.all(np.diff(slopes) > 0):
        return frozen(x), frozen(y)
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
    return frozen(x[hull]), frozen(y[hull])


def frozen(array: FloatArray) -> FloatArray:
    """A copy that cannot be changed."""
    array = np.array(array, dtype=float)
    array.setflags(write=False)
    return array
