"""Named features of any output: elements, counts, rows, pairs, orders and summaries.

A feature is a number that depends on a single output, so that comparing it with a threshold is
post-processing: features cost power, never validity. Each family below turns the table of leaves
(`outputs.leaves`) into triples (output, feature, value); an output without a triple has the value 0.
Which features tell the two inputs apart is learned on training draws (`loss.feature_search`).

    values       how often a column holds a value: elements of sets and lists, categories, keys
    anywhere     the same in any column: the degree of a vertex in a list of edges
    rows         how often a row occurs: a record in a synthetic table
    pairs        how often a row holds two values; which number stands beside a text (value by key)
    neighbours   how often one value follows another (n-grams)
    positions    where in its list a value comes first (rankings)
    summaries    of the numbers of a column: sum, extremes, quantiles, ties, gaps, autocovariance, …
    sorted       the k-th smallest number of a column: centres that come in any order
    products     covariances of two columns
    blocks       a vector read as rows of a few columns: row counts; largest window of a matrix; spectrum
    target       rows equal or near to a record in which the two inputs differ (`outputs.targets`)

The cost is that of a few sorts of the leaves; `pairs` and `products` are limited to neighbouring columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.leaves import Hashes, LeafTable, grouped, mix, number_hash
from dpassay.outputs.templates import NUMBER

#: Owners, features and values; and for each triple the leaves that tell its name.
Triples: TypeAlias = tuple[IntArray, Hashes, FloatArray, IntArray, IntArray]
#: The features that are needed; None for all.
Wanted: TypeAlias = Hashes | None

#: Numbers of a column whose order statistics are features, at most.
_SORTED = 24
#: Vectors of at most this many numbers are read as rows of 2 to 16 columns.
_BLOCKS, _WIDEST = 4096, 16
#: Matrices of at most this many numbers have their singular values taken.
_SPECTRUM = 1024


def _counted(
    owner: IntArray,
    key: Hashes,
    first: IntArray,
    second: IntArray,
    wanted: Wanted,
    value: FloatArray | None = None,
    how: np.ufunc = np.add,
) -> Triples:
    """How often each owner has each key, or what `how` makes of its values there."""
    if wanted is not None:
        use = np.flatnonzero(np.isin(key, wanted))
        owner, key, first, second = owner[use], key[use], first[use], second[use]
        value = None if value is None else value[use]
    if not owner.size:
        return _none()
    order, at = grouped(mix(owner, key))
    leaf = order[at]
    if value is None:
        found = np.diff(np.append(at, owner.size)).astype(float)
    else:
        found = how.reduceat(value[order], at)
    return owner[leaf], key[leaf], found, first[leaf], second[leaf]


def _none() -> Triples:
    empty = np.zeros(0, dtype=np.int64)
    return empty, empty.astype(np.uint64), empty.astype(float), empty, empty


def values(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a column holds a value."""
    leaf = np.arange(len(t))
    return _counted(t.owner, mix(1, t.column, t.code), leaf, leaf, wanted)


def anywhere(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a value occurs in any column of a table."""
    leaf = np.arange(len(t))
    return _counted(t.owner, mix(2, t.table, t.code), leaf, leaf, wanted)


def rows(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a row of two columns or more occurs in its table."""
    if not len(t):
        return _none()
    order, starts = grouped(t.rows)
    sizes = np.diff(np.append(starts, len(t)))
    with np.errstate(over="ignore"):
        total = np.add.reduceat(mix(t.column, t.code)[order], starts)
    wide = sizes > 1
    leaf, total = order[starts][wide], total[wide]
    return _counted(t.owner[leaf], mix(3, t.table[leaf], total), leaf, leaf, wanted)


def pairs(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a row holds two values."""
    a, b = t.paired
    key = mix(4, t.column[a], t.code[a], t.column[b], t.code[b])
    return _counted(t.owner[a], key, a, b, wanted)


def by_key(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The sum of the numbers that stand in a row beside a value that is text or a whole number."""
    a, b = t.paired
    first, second = np.append(a, b), np.append(b, a)
    text = np.isnan(t.number[first]) | (t.number[first] == np.round(t.number[first]))
    use = text & np.isfinite(t.number[second])
    first, second = first[use], second[use]
    key = mix(5, t.column[first], t.code[first], t.column[second])
    return _counted(t.owner[first], key, first, second, wanted, t.number[second])


def neighbours(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often one value of a column follows another."""
    order = np.lexsort((t.place, t.groups))
    a, b = order[:-1], order[1:]
    same = (t.groups[a] == t.groups[b]) & (t.place[b] > t.place[a])
    a, b = a[same], b[same]
    return _counted(t.owner[a], mix(6, t.column[a], t.code[a], t.code[b]), a, b, wanted)


def positions(t: LeafTable, wanted: Wanted = None) -> Triples:
    """Where in its column a value comes first, from 1 on."""
    leaf = np.arange(len(t))
    key, place = mix(7, t.column, t.code), t.place.astype(float) + 1
    return _counted(t.owner, key, leaf, leaf, wanted, place, np.minimum)


#: Statistics of the numbers of a column, in the order of `_summary`.
STATISTICS = (
    *("count", "sum", "mean", "minimum", "maximum", "range", "standard deviation", "median"),
    *("number of distinct values", "number of ties", "smallest gap", "largest gap"),
    *("first", "last", "lag-1 autocovariance", "number of descents", "largest step"),
    *("lower quartile", "upper quartile", "number of zeros", "sum of squares"),
    *("place of the maximum", "place of the minimum", "value"),
)


def summaries(t: LeafTable, wanted: Wanted = None) -> Triples:
    """Statistics of the numbers of each column, and of all values of it that are not numbers."""
    known = np.flatnonzero(np.isfinite(t.number))
    found = [_summary(t, known, wanted is None)] if known.size else []
    texts = np.flatnonzero(~np.isfinite(t.number))
    if texts.size:  # how many, and how many different ones
        group = t.groups[texts]
        order = texts[np.lexsort((t.code[texts], group))]
        own = t.groups[order]
        new = np.append(True, own[1:] != own[:-1])
        fresh = new | np.append(True, t.code[order][1:] != t.code[order][:-1])
        at = np.flatnonzero(new)
        count = np.diff(np.append(at, order.size)).astype(float)
        kinds = np.add.reduceat(fresh.astype(float), at)
        leaf = order[at]
        for name, value in (("count", count), ("number of distinct values", kinds)):
            place = np.full(leaf.size, STATISTICS.index(name))
            found.append((t.owner[leaf], mix(8, t.column[leaf], place), value, leaf, place))
    if not found:
        return _none()
    owner, key, value, leaf, place = (np.concatenate(part) for part in zip(*found, strict=True))
    return owner, key, value, leaf, place


def _summary(t: LeafTable, known: IntArray, searching: bool) -> Triples:
    """By owner and column: sorted once by value and once by place."""
    group = t.groups[known]
    by_value = known[np.lexsort((t.number[known], group))]
    by_place = known[np.lexsort((t.place[known], group))]
    own = t.groups[by_value]
    at = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
    count = np.diff(np.append(at, own.size))
    x, y = t.number[by_value], t.number[by_place]
    last = at + count - 1
    inner = np.ones(x.size - 1, dtype=bool)
    inner[at[1:] - 1] = False  # steps that do not leave a group

    def steps(z: FloatArray, start: float, how: np.ufunc) -> FloatArray:
        """A reduction over the steps inside each group."""
        padded = np.append(np.where(inner, z, start), start)
        return np.asarray(how.reduceat(padded, at))

    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduceat(x, at)
        mean = total / count
        centred = y - np.repeat(mean, count)
        squares = np.add.reduceat(x * x, at)
        spread = np.sqrt(np.maximum(np.add.reduceat(centred * centred, at) / count, 0.0))
        rise, step = np.diff(x), np.diff(y)
        ties = steps((rise == 0).astype(float), 0.0, np.add)
        many = count > 1
        place = t.place[by_place].astype(float)
        top = np.where(y == np.repeat(x[last], count), place, np.inf)
        low = np.where(y == np.repeat(x[at], count), place, np.inf)
        columns = (
            *(count.astype(float), total, mean, x[at], x[last], x[last] - x[at], spread),
            x[at + count // 2],
            *(count - ties, ties),
            np.where(many, steps(rise, np.inf, np.minimum), 0.0),
            steps(rise, 0.0, np.maximum),
            *(y[at], y[last]),
            steps(centred[1:] * centred[:-1], 0.0, np.add) / count,
            steps((step < 0).astype(float), 0.0, np.add),
            steps(np.abs(step), 0.0, np.maximum),
            *(x[at + count // 4], x[at + (3 * count) // 4]),
            np.add.reduceat((x == 0).astype(float), at),
            squares,
            *(np.minimum.reduceat(top, at), np.minimum.reduceat(low, at), x[at]),
        )
    leaf = by_value[at]
    single = count.max(initial=1) == 1  # then most statistics are the number itself
    use = [len(columns) - 1] if searching and single else range(len(columns))
    return (
        np.tile(t.owner[leaf], len(use)),
        np.concatenate([mix(8, t.column[leaf], np.full(leaf.size, k)) for k in use]),
        np.nan_to_num(np.concatenate([columns[k] for k in use])),
        np.tile(leaf, len(use)),
        np.repeat(np.arange(len(columns))[list(use)], leaf.size),
    )


def ordered(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The k-th smallest number of a column, for lists that are not long."""
    known = np.flatnonzero(np.isfinite(t.number))
    group = t.groups[known]
    order = known[np.lexsort((t.number[known], group))]
    own = t.groups[order]
    if not own.size:
        return _none()
    at = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
    count = np.diff(np.append(at, own.size))
    rank = np.arange(own.size) - np.repeat(at, count)
    use = (np.repeat(count, count) <= _SORTED) & (np.repeat(count, count) > 1)
    leaf, rank = order[use], rank[use]
    return t.owner[leaf], mix(9, t.column[leaf], rank), t.number[leaf], leaf, rank


def by_place(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The sum of the numbers in a row, and the numbers of a column by place."""
    known = np.flatnonzero(np.isfinite(t.number))
    key = mix(10, t.table[known], t.place[known])
    return _counted(t.owner[known], key, known, known, wanted, t.number[known])


def products(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The covariance of two columns over the rows of their table."""
    a, b = t.paired
    use = np.isfinite(t.number[a]) & np.isfinite(t.number[b])
    a, b = a[use], b[use]
    key = mix(11, t.column[a], t.column[b])
    if not a.size:
        return _none()
    order, at = grouped(mix(t.owner[a], key))
    count = np.diff(np.append(at, order.size))
    x, y = t.number[a][order], t.number[b][order]
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.add.reduceat(x, at) / count, np.add.reduceat(y, at) / count
        dx, dy = (v - np.repeat(m, count) for v, m in zip((x, y), means, strict=True))
        cov, vx, vy = (np.add.reduceat(z, at) for z in (dx * dy, dx * dx, dy * dy))
        value = np.nan_to_num(cov / np.sqrt(np.maximum(vx * vy, 1e-300)))
    keep = count > 2
    leaf = order[at][keep]
    return t.owner[a][leaf], key[leaf], value[keep], a[leaf], b[leaf]


#: Families about values that occur again and again; a search may leave out all others.
OF_REPEATED = ("values", "anywhere", "pairs", "neighbours", "positions")

FAMILIES: dict[str, Callable[[LeafTable, Wanted], Triples]] = {
    "values": values,
    "anywhere": anywhere,
    "rows": rows,
    "pairs": pairs,
    "by_key": by_key,
    "neighbours": neighbours,
    "positions": positions,
    "by_place": by_place,
    "summaries": summaries,
    "sorted": ordered,
    "products": products,
}


# --- vectors and matrices


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
        return _none()
    owner, key, leaf = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _counted(owner, key, leaf, leaf, wanted)


def widths(outputs: Outputs) -> list[int]:
    """In how many columns some of the vectors may be read as rows."""
    return sorted({width for _, shape, _ in _arrays(outputs) for width in _widths(shape)})


def _widths(shape: tuple[int, ...]) -> list[int]:
    """Divisors of the length of a vector, from 2 to 16."""
    if len(shape) != 1 or shape[0] < 4:
        return []
    return [w for w in range(2, _WIDEST + 1) if shape[0] % w == 0 and shape[0] > w]
