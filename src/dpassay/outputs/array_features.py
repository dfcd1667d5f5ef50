"""Features of vectors and matrices: rows of a few numbers, largest windows, singular values."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.features import Triples, Wanted, counted, no_triples
from dpassay.outputs.leaves import mix, number_hash
from dpassay.outputs.templates import NUMBER

#: Vectors of at most this many numbers are read as rows of 2 to 16 columns.
_BLOCKS, _WIDEST = 4096, 16
#: Matrices of at most this many numbers have their singular values taken.
_SPECTRUM = 1024


def _arrays(outputs: Outputs) -> Iterator[tuple[IntArray, tuple[int, ...], FloatArray]]:
    """The outputs that are arrays of numbers, shape by shape: their rows, the shape, the numbers."""
    for k, node in enumerate(outputs.structures):
        shape: list[int] = []
        while node[0] == "seq" and node[1] and all(child == node[1][0] for child in node[1]):
            shape.append(len(node[1]))
            node = node[1][0]
        if node != NUMBER or not shape or math.prod(shape) > _BLOCKS:
            continue
        rows = (
            np.arange(len(outputs)) if outputs.codes is None else np.flatnonzero(outputs.codes == k)
        )
        if rows.size:
            numbers = outputs.numbers[rows][:, : math.prod(shape)]
            yield rows, tuple(shape), np.asarray(numbers, dtype=float)


def blocks(outputs: Outputs) -> dict[str, FloatArray]:
    """Dense features of arrays, by name: windows, singular values; 0 for outputs that have none."""
    found: dict[str, FloatArray] = {}
    for rows, shape, x in _arrays(outputs):
        for name, values in _array_features(x, shape):
            found.setdefault(name, np.zeros(len(outputs)))[rows] = values
    return found


def _array_features(x: FloatArray, shape: tuple[int, ...]) -> Iterator[tuple[str, FloatArray]]:
    if len(shape) == 2 and min(shape) > 1:
        matrix = x.reshape(len(x), *shape)
        if x.shape[1] <= _SPECTRUM:
            spectrum = np.linalg.svd(matrix, compute_uv=False)[:, :3]
            for k in range(spectrum.shape[1]):
                yield f"singular value {k + 1}", np.round(spectrum[:, k], 9)
        yield "trace", np.trace(matrix, axis1=1, axis2=2)
        for side in (2, 3, 4, 6):
            if side < min(shape):
                sums = _windows(matrix, side).reshape(len(x), -1)
                yield f"largest sum of a {side} × {side} window", sums.max(axis=1)
                yield f"smallest sum of a {side} × {side} window", sums.min(axis=1)
    if len(shape) == 1:
        total = np.cumsum(np.pad(x, ((0, 0), (1, 0))), axis=1)
        for side in (2, 3, 5, 8):
            if 3 < shape[0] > side:
                sums = total[:, side:] - total[:, :-side]
                yield f"largest sum of {side} neighbours", sums.max(axis=1)
                yield f"smallest sum of {side} neighbours", sums.min(axis=1)


def _windows(matrix: FloatArray, side: int) -> FloatArray:
    total = np.pad(matrix, ((0, 0), (1, 0), (1, 0))).cumsum(axis=1).cumsum(axis=2)
    a, b = total[:, side:, :], total[:, :-side, :]
    return np.asarray(a[:, :, side:] - a[:, :, :-side] - b[:, :, side:] + b[:, :, :-side])


def block_rows(outputs: Outputs, width: int, wanted: Wanted = None) -> Triples:
    """How often a row of `width` numbers occurs in a vector that is cut into such rows."""
    parts = []
    for rows, shape, x in _arrays(outputs):
        if width not in _widths(shape):
            continue
        codes = number_hash(x).reshape(len(x), -1, width)
        total = mix(12, width, codes[:, :, 0])
        for k in range(1, width):
            total = mix(total, codes[:, :, k])
        many = total.shape[1]
        first = np.tile(np.arange(many) * width, len(x))
        first += np.repeat(rows * outputs.numbers.shape[1], many)
        parts.append((np.repeat(rows, many), total.ravel(), first))
    if not parts:
        return no_triples()
    owner, key, leaf = (np.concatenate(column) for column in zip(*parts, strict=True))
    return counted(owner, key, leaf, leaf, wanted)


def widths(outputs: Outputs) -> list[int]:
    """In how many columns some of the vectors may be read as rows."""
    return sorted({width for _, shape, _ in _arrays(outputs) for width in _widths(shape)})


def _widths(shape: tuple[int, ...]) -> list[int]:
    """Divisors of the length of a vector, from 2 to 16."""
    if len(shape) != 1 or shape[0] < 4:
        return []
    return [w for w in range(2, _WIDEST + 1) if shape[0] % w == 0 and shape[0] > w]
