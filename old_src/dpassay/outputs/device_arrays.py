"""Outputs that stay where the mechanism made them: arrays of PyTorch, CuPy or JAX, on any device.

Finite numbers stay. What is asked of them there are comparisons and sums of the Array API standard
(https://data-apis.org/array-api), and only counts come back. Everything else (NaN, ±∞, integers that no
double holds, objects) is copied and read like any other output. Both ways agree output by output: a
number here is the double it is there. Whether blocks may stay at all is `sampling.job.Job.on_device`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dpassay._typing import AnyArray, FloatArray
from dpassay.outputs import canonical, foreign_arrays
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import EXACT, NUMBER, Template, nested

F = TypeVar("F", bound=Callable[..., Any])


def on_device(use: F) -> F:
    """Mark what can be made of a block of draws wherever they are."""
    use.on_device = True  # type: ignore[attr-defined]
    return use


@dataclass(frozen=True, eq=False)
class DeviceOutputs:
    """Finite numbers, all of one structure, in an array that is not NumPy's."""

    numbers: Any  # (n, d) doubles
    structures: tuple[Template, ...]
    containers: frozenset[str]

    #: As `Outputs` with one structure and no remainders.
    is_plain = True
    codes = None
    rest = None

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    @cached_property
    def host_copy(self) -> Outputs:
        """A copy that NumPy can read."""
        return self.first(len(self))

    def first(self, rows: int) -> Outputs:
        numbers = foreign_arrays.array(self.numbers[: min(rows, len(self)), :])
        return Outputs(numbers, self.structures, containers=self.containers)


AnyOutputs: TypeAlias = Outputs | DeviceOutputs


def on_host(outputs: AnyOutputs) -> Outputs:
    """Outputs that NumPy can read."""
    return outputs.host_copy if isinstance(outputs, DeviceOutputs) else outputs


def kept_on_device(raw: Any, size: int) -> DeviceOutputs | None:
    """What a mechanism returned, left where it is; None if it must be copied to be read."""
    xp = namespace(raw)
    if xp is None or raw.ndim == 0 or raw.shape[0] != size or not size:
        return None
    if hasattr(raw, "detach"):
        raw = raw.detach()
    whole = xp.isdtype(raw.dtype, ("bool", "integral"))
    if not whole and not xp.isdtype(raw.dtype, "real floating"):
        return None
    try:
        numbers = xp.astype(
            xp.reshape(raw, (size, math.prod(raw.shape[1:]))), xp.float64, copy=False
        )
    except TypeError:  # a device without doubles
        return None
    if numbers.dtype != xp.float64 or not numbers.shape[1]:
        return None
    if whole:
        if max(-float(xp.min(numbers)), float(xp.max(numbers))) >= EXACT:
            return None
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(xp.sum(numbers))  # one pass decides nearly always
        if not math.isfinite(total) and not bool(xp.all(xp.isfinite(numbers))):
            return None
    template = nested(NUMBER, tuple(raw.shape[1:]))
    kind = canonical.NUMBERS if whole else canonical.DOUBLES
    return DeviceOutputs(numbers, (template,), kind)


def namespace(value: Any) -> Any:
    """The functions for an array of another library; None for everything else."""
    if isinstance(value, np.ndarray) or not hasattr(value, "shape"):
        return None
    import array_api_compat as compat

    known = (compat.is_torch_array, compat.is_cupy_array, compat.is_jax_array)
    strict = type(value).__module__.startswith("array_api_strict")  # of the tests
    # only what holds its numbers: an array that is computed when it is asked for (Dask's) may hold other
    # draws at the next comparison
    if not strict and not any(holds(value) for holds in known):
        return None
    return compat.array_namespace(value)


def count(mask: Any) -> int:
    """How many are true."""
    xp = namespace(mask)
    if not hasattr(mask, "detach"):
        return int(xp.count_nonzero(mask))
    # PyTorch adds truth values one by one, on an H200 at a third of the speed of comparing. Eight of them
    # are a word of eight bytes, and sums of 255 words do not carry from one byte into the next.
    many = mask.shape[0] // (8 * 255)
    whole = many * 8 * 255
    words = xp.reshape(mask[:whole].view(xp.int64), (many, 255))
    return int(xp.sum(xp.sum(words, axis=1).view(xp.uint8))) + int(xp.count_nonzero(mask[whole:]))


def places(ends: FloatArray, x: Any) -> Any:
    """How many of the ends, in order, are at or below each number."""
    xp = namespace(x)
    return xp.searchsorted(xp.asarray(ends, device=x.device), x, side="right")


def bincount(places: Any, size: int, weights: Any = None) -> AnyArray | None:
    """How many, or how much, at each place; None where the library does not count."""
    xp = namespace(places)
    if not hasattr(xp, "bincount"):  # it is no part of the standard
        return None
    return foreign_arrays.array(xp.bincount(places, weights, minlength=size))
