"""Named features of any output: elements, counts, rows, pairs, orders and summaries.

A feature is a number that depends on a single output, so that comparing it with a threshold is
post-processing: features cost power, never validity. Each family below turns the table of leaves
(`outputs.leaves`) into triples (output, feature, value); an output without a triple has the value 0.
Which features tell the two inputs apart is learned on training draws (`scores.training`).

    values       how often a column holds a value: elements of sets and lists, categories, keys
    anywhere     the same in any column: the degree of a vertex in a list of edges
    rows         how often a row occurs: a record in a synthetic table
    pairs        how often a row holds two values; which number stands beside a text (value by key)
    neighbours   how often one value follows another (n-grams)
    positions    where in its list a value comes first (orders of preference)
    summaries    of the numbers of a column: sum, extremes, quantiles, ties, gaps, autocovariance, …
    sorted       the k-th smallest number of a column: centres that come in any order
    products     correlations of two columns
    larger       rows in which one column is larger than another
    distinct     number of different rows
    blocks       of vectors and matrices: rows of a few numbers, largest windows, singular values
    target       rows equal or near to a record in which the two inputs differ (`outputs.named_features`)

The cost is that of a few sorts of the leaves; `pairs` and `products` are limited to neighbouring columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeAlias

import numpy as np

from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.leaves import Hashes, LeafTable, changes, grouped, mix, number_hash
from dpassay.outputs.templates import NUMBER

#: Owners, features (equal ones together) and values; and for each triple the leaves that tell its name.
Triples: TypeAlias = tuple[IntArray, Hashes, FloatArray, IntArray, IntArray]
#: The features that are needed; None for all.
Wanted: TypeAlias = Hashes | None

#: Numbers of a column whose order statistics are features, at most.
_SORTED = 24


def counted(
    owner: IntArray,
    key: Hashes,
    first: IntArray,
    second: IntArray,
    wanted: Wanted,
    value: FloatArray | None = None,
) -> Triples:
    """How often each owner has each key, or the sum of its values there; equal keys together.

    Owners must ascend.
    """
    many = np.ones(owner.size) if value is None else value
    if wanted is not None:
        use = np.flatnonzero(np.isin(key, wanted))
        owner, first, second = owner[use], first[use], second[use]
        key, many = key[use], many[use]
    order, _ = grouped(key)
    at = changes(key[order], owner[order])
    leaf, total = order[at], np.add.reduceat(many[order], at)
    return owner[leaf], key[leaf], total, first[leaf], second[leaf]


def _by_entry(t: LeafTable, number: int, wanted: Wanted) -> tuple[IntArray, IntArray, Hashes]:
    """The leaves by value of a column, and there by owner; where each begins, and its key."""
    order, at = t.by_entry
    keys = mix(number, t.column[order[at]], t.code[order[at]])
    size = np.diff(np.append(at, order.size))
    if wanted is not None:
        use = np.isin(keys, wanted)
        order, keys, size = order[np.repeat(use, size)], keys[use], size[use]
    entry = np.repeat(np.arange(keys.size), size)
    at = changes(entry, t.owner[order])
    return order, at, keys[entry[at]]


def values(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a column holds a value."""
    order, at, keys = _by_entry(t, 1, wanted)
    leaf, count = order[at], np.diff(np.append(at, order.size)).astype(float)
    return t.owner[leaf], keys, count, leaf, leaf


def positions(t: LeafTable, wanted: Wanted = None) -> Triples:
    """Where in its column a value comes first, from 1 on."""
    order, at, keys = _by_entry(t, 7, wanted)
    leaf = order[at]
    return t.owner[leaf], keys, np.minimum.reduceat(t.place[order], at) + 1.0, leaf, leaf


def anywhere(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a value occurs in any column of a table."""
    leaf = np.arange(len(t))
    return counted(t.owner, mix(2, t.table, t.code), leaf, leaf, wanted)


def _wide_rows(t: LeafTable) -> tuple[IntArray, Hashes]:
    """Rows of two columns or more: their first leaves, and hashes of their contents."""
    order = np.argsort(t.rows, kind="stable")
    starts = changes(t.rows[order])
    sizes = np.diff(np.append(starts, len(t)))
    with np.errstate(over="ignore"):
        total = np.add.reduceat(mix(t.column, t.code)[order], starts)
    wide = sizes > 1
    return order[starts][wide], total[wide]


def rows(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a row of two columns or more occurs in its table."""
    leaf, total = _wide_rows(t)
    return counted(t.owner[leaf], mix(3, t.table[leaf], total), leaf, leaf, wanted)


def distinct(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How many rows of a table are different ones."""
    leaf, total = _wide_rows(t)
    key = mix(13, t.table[leaf])
    _, once = np.unique(mix(t.owner[leaf], key, total), return_index=True)
    once.sort()
    return counted(t.owner[leaf[once]], key[once], leaf[once], leaf[once], wanted)


def pairs(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often a row holds two values."""
    a, b = t.paired
    key = mix(4, t.column[a], t.code[a], t.column[b], t.code[b])
    return counted(t.owner[a], key, a, b, wanted)


def by_key(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The sum of the numbers that stand in a row beside a value that is text or a whole number."""
    a, b = t.paired
    first, second = np.append(a, b), np.append(b, a)
    text = np.isnan(t.number[first]) | (t.number[first] == np.round(t.number[first]))
    use = np.flatnonzero(text & np.isfinite(t.number[second]))
    use = use[np.argsort(first[use], kind="stable")]
    first, second = first[use], second[use]
    key = mix(5, t.column[first], t.code[first], t.column[second])
    return counted(t.owner[first], key, first, second, wanted, t.number[second])


def neighbours(t: LeafTable, wanted: Wanted = None) -> Triples:
    """How often one value of a column follows another."""
    a, b = t.by_group[:-1], t.by_group[1:]
    same = (t.groups[a] == t.groups[b]) & (t.place[b] > t.place[a])
    a, b = a[same], b[same]
    return counted(t.owner[a], mix(6, t.column[a], t.code[a], t.code[b]), a, b, wanted)


class _Numbers:
    """The numbers of each column of each output: sorted once by value, x, and once by place, y."""

    def __init__(self, t: LeafTable) -> None:
        self.table = t
        self.order, self.at, self.count = t.by_value
        self.many = self.count > 1
        self.last = self.at + self.count - 1
        self.by_place = t.by_group[np.isfinite(t.number[t.by_group])]
        self.x, self.y = t.number[self.order], t.number[self.by_place]

    @cached_property
    def inner(self) -> BoolArray:
        """Steps that do not leave a group."""
        inner = np.ones(max(self.x.size - 1, 0), dtype=bool)
        inner[self.at[1:] - 1] = False
        return inner

    @cached_property
    def mean(self) -> FloatArray:
        return self.sum(self.x) / self.count

    @cached_property
    def centred(self) -> FloatArray:
        return self.y - np.repeat(self.mean, self.count)

    @cached_property
    def ties(self) -> FloatArray:
        return self.steps(np.diff(self.x) == 0, 0.0, np.add)

    def sum(self, z: AnyArray) -> FloatArray:
        return np.add.reduceat(z, self.at, dtype=float)

    def steps(self, z: AnyArray, start: float, how: np.ufunc) -> FloatArray:
        """A reduction over the steps inside each group."""
        padded = np.append(np.where(self.inner, z, start), start)
        return np.asarray(how.reduceat(padded, self.at))

    def place_of(self, at: IntArray) -> FloatArray:
        """The first place of the number at this rank."""
        here = self.y == np.repeat(self.x[at], self.count)
        place = np.where(here, self.table.place[self.by_place].astype(float), np.inf)
        return np.asarray(np.minimum.reduceat(place, self.at))


#: Statistics of the numbers of a column. Keys of features are made of their places here.
_FORMULAS: dict[str, Callable[[_Numbers], FloatArray]] = {
    "count": lambda g: g.count.astype(float),
    "sum": lambda g: g.sum(g.x),
    "mean": lambda g: g.mean,
    "minimum": lambda g: g.x[g.at],
    "maximum": lambda g: g.x[g.last],
    "range": lambda g: g.x[g.last] - g.x[g.at],
    "standard deviation": lambda g: np.sqrt(
        np.maximum(g.sum(g.centred * g.centred) / g.count, 0.0)
    ),
    "median": lambda g: g.x[g.at + g.count // 2],
    "number of distinct values": lambda g: g.count - g.ties,
    "number of ties": lambda g: g.ties,
    "smallest gap": lambda g: np.where(g.many, g.steps(np.diff(g.x), np.inf, np.minimum), 0.0),
    "largest gap": lambda g: g.steps(np.diff(g.x), 0.0, np.maximum),
    "first": lambda g: g.y[g.at],
    "last": lambda g: g.y[g.last],
    "lag-1 autocovariance": lambda g: (
        g.steps(g.centred[1:] * g.centred[:-1], 0.0, np.add) / g.count
    ),
    "number of descents": lambda g: g.steps(np.diff(g.y) < 0, 0.0, np.add),
    "largest step": lambda g: g.steps(np.abs(np.diff(g.y)), 0.0, np.maximum),
    "lower quartile": lambda g: g.x[g.at + g.count // 4],
    "upper quartile": lambda g: g.x[g.at + (3 * g.count) // 4],
    "number of zeros": lambda g: g.sum(g.x == 0),
    "sum of squares": lambda g: g.sum(g.x * g.x),
    "place of the maximum": lambda g: g.place_of(g.last),
    "place of the minimum": lambda g: g.place_of(g.at),
    "value": lambda g: g.x[g.at],
    "last less first": lambda g: g.y[g.last] - g.y[g.at],
    "number of odd numbers": lambda g: g.sum(g.x % 2 == 1),
    "number of negative zeros": lambda g: g.sum((g.x == 0) & np.signbit(g.x)),
}
STATISTICS = tuple(_FORMULAS)
#: Those that are dates where the numbers are, and those that are durations then.
OF_DATES = (
    *("mean", "minimum", "maximum", "median", "first", "last"),
    *("lower quartile", "upper quartile", "value"),
)
OF_DURATIONS = (
    *("range", "standard deviation", "smallest gap", "largest gap", "largest step"),
    "last less first",
)
#: Those of all values, whether they are numbers or not.
OF_VALUES = ("count", "number of distinct values")
#: Place of the statistic that stands alone for columns of one number.
VALUE = STATISTICS.index("value")


def _of_columns(
    t: LeafTable, number: int, places: int, wanted: Wanted
) -> tuple[LeafTable, IntArray | None]:
    """Only the leaves of columns of which a wanted feature is made, and the places of those."""
    if wanted is None:
        return t, None
    columns = np.unique(t.column[changes(t.column)])
    keys = mix(number, np.repeat(columns, places), np.tile(np.arange(places), columns.size))
    used = np.isin(keys, wanted).reshape(columns.size, places)
    leaves = np.flatnonzero(np.isin(t.column, columns[used.any(axis=1)]))
    return t.where(leaves), np.flatnonzero(used.any(axis=0))


def summaries(t: LeafTable, wanted: Wanted = None) -> Triples:
    """Statistics of the numbers of each column; how many values there are, and different ones, of all."""
    t, places = _of_columns(t, 8, len(STATISTICS), wanted)
    mixed = np.isin(t.column, np.unique(t.column[~np.isfinite(t.number)]))  # not numbers alone
    of_values = [STATISTICS.index(name) for name in OF_VALUES]
    found = []
    for rows in _single_and_many(t) if places is None else [np.arange(len(t))]:
        triples = _summary(t.where(rows) if rows.size < len(t) else t, places)
        leaf, place = rows[triples[3]], triples[4]
        own = ~(mixed[leaf] & np.isin(place, of_values)) if mixed.any() else slice(None)
        found.append(tuple(part[own] for part in (*triples[:3], leaf, place)))
    others = np.flatnonzero(mixed)
    order = others[np.lexsort((t.code[others], t.groups[others]))]
    at = changes(t.groups[order])
    fresh = np.zeros(order.size)
    fresh[changes(t.groups[order], t.code[order])] = 1
    by = np.argsort(t.column[order[at]], kind="stable")
    leaf = order[at][by]
    many = np.diff(np.append(at, order.size)).astype(float)
    for name, value in zip(OF_VALUES, (many, np.add.reduceat(fresh, at)), strict=True):
        place = np.full(leaf.size, STATISTICS.index(name))
        found.append((t.owner[leaf], mix(8, t.column[leaf], place), value[by], leaf, place))
    owner, key, value, leaf, place = (np.concatenate(part) for part in zip(*found, strict=True))
    return owner, key, value, leaf, place


def _single_and_many(t: LeafTable) -> list[IntArray]:
    """The leaves of the columns of one number an output, and those of the others."""
    order, at, count = t.by_value
    many = np.isin(t.column, np.unique(t.column[order[at[count > 1]]]))
    return [rows for rows in (np.flatnonzero(~many), np.flatnonzero(many)) if rows.size]


def _summary(t: LeafTable, places: IntArray | None) -> Triples:
    """The statistics at these places, or all, by owner and column."""
    numbers = _Numbers(t)
    if places is None:  # of one number most statistics are the number itself
        single = numbers.count.max(initial=1) == 1
        places = np.arange(VALUE if single else 0, len(STATISTICS))
    with np.errstate(over="ignore", invalid="ignore"):
        columns = [_FORMULAS[STATISTICS[k]](numbers) for k in places]
    first = numbers.order[numbers.at]
    by = np.argsort(t.column[first], kind="stable")  # equal keys together
    leaf = first[by]
    column = t.column[leaf]
    at = changes(column)
    keys = mix(8, np.tile(column[at], len(places)), np.repeat(places, at.size))
    return (
        np.tile(t.owner[leaf], len(places)),
        np.repeat(keys, np.tile(np.diff(np.append(at, leaf.size)), len(places))),
        np.nan_to_num(np.concatenate([np.zeros(0), *(column[by] for column in columns)])),
        np.tile(leaf, len(places)),
        np.repeat(places, leaf.size),
    )


def ordered(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The k-th smallest number of a column, for lists that are not long."""
    t, _ = _of_columns(t, 9, _SORTED, wanted)
    order, at, count = t.by_value
    rank = np.arange(order.size) - np.repeat(at, count)
    use = (np.repeat(count, count) <= _SORTED) & (np.repeat(count, count) > 1)
    leaf, rank = order[use], rank[use]
    by = np.lexsort((rank, t.column[leaf]))  # equal keys together
    leaf, rank = leaf[by], rank[by]
    return t.owner[leaf], mix(9, t.column[leaf], rank), t.number[leaf], leaf, rank


def by_place(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The sum of the numbers in a row, and the numbers of a column by place."""
    # numbers of several paths as one column have places that depend on which cells are numbers
    named = (t.table != t.column) if wanted is None else True
    known = np.flatnonzero(np.isfinite(t.number) & named)
    key = mix(10, t.table[known], t.place[known])
    return counted(t.owner[known], key, known, known, wanted, t.number[known])


def _numbers_of_rows(t: LeafTable, number: int) -> tuple[IntArray, IntArray, IntArray, Hashes]:
    """Two numbers of a row by pair of columns: the leaves, where each owner begins, and its key."""
    a, b = t.paired
    use = np.isfinite(t.number[a]) & np.isfinite(t.number[b])
    a, b = a[use], b[use]
    key = mix(number, t.column[a], t.column[b])
    order, _ = grouped(key)
    at = changes(key[order], t.owner[a][order])
    return a[order], b[order], at, key[order[at]]


def products(t: LeafTable, wanted: Wanted = None) -> Triples:
    """The correlation of two columns over the rows of their table."""
    a, b, at, key = _numbers_of_rows(t, 11)
    count = np.diff(np.append(at, a.size))
    x, y = t.number[a], t.number[b]
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.add.reduceat(x, at) / count, np.add.reduceat(y, at) / count
        dx, dy = (v - np.repeat(m, count) for v, m in zip((x, y), means, strict=True))
        cov, vx, vy = (np.add.reduceat(z, at) for z in (dx * dy, dx * dx, dy * dy))
        value = np.nan_to_num(cov / np.sqrt(np.maximum(vx * vy, 1e-300)))
    at, key, value = at[count > 2], key[count > 2], value[count > 2]
    return t.owner[a[at]], key, value, a[at], b[at]


def larger(t: LeafTable, wanted: Wanted = None) -> Triples:
    """In how many rows the number of one column is larger than that of another."""
    a, b, at, key = _numbers_of_rows(t, 14)
    value = np.add.reduceat(t.number[a] > t.number[b], at, dtype=float)
    return t.owner[a[at]], key, value, a[at], b[at]


#: Families about values that occur again and again; a search may leave out all others.
OF_REPEATED = ("values", "anywhere", "pairs", "neighbours", "positions")
#: Families that the order of values decides.
OF_ORDER = ("neighbours", "positions")

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
    "larger": larger,
    "distinct": distinct,
}


#: Vectors of at most this many numbers are read as rows of 2 to 16 columns.
_BLOCKS, _WIDEST_ROW = 4096, 16
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
        rows = np.arange(len(outputs))[outputs.rows_of(k)]
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
        total = np.pad(matrix, ((0, 0), (1, 0), (1, 0))).cumsum(axis=1).cumsum(axis=2)
        for side in (2, 3, 4, 6):
            if side < min(shape):
                a, b = total[:, side:, :], total[:, :-side, :]
                sums = a[:, :, side:] - a[:, :, :-side] - b[:, :, side:] + b[:, :, :-side]
                yield f"largest sum of a {side} × {side} window", sums.max(axis=(1, 2))
                yield f"smallest sum of a {side} × {side} window", sums.min(axis=(1, 2))
    if len(shape) == 1:
        total = np.cumsum(np.pad(x, ((0, 0), (1, 0))), axis=1)
        for side in (2, 3, 5, 8):
            if 3 < shape[0] > side:
                sums = total[:, side:] - total[:, :-side]
                yield f"largest sum of {side} neighbours", sums.max(axis=1)
                yield f"smallest sum of {side} neighbours", sums.min(axis=1)


def block_rows(outputs: Outputs, width: int, wanted: Wanted = None) -> Triples:
    """How often a row of `width` numbers occurs in a vector that is cut into such rows."""
    none = np.zeros(0, dtype=np.int64)
    parts = [(none, none.astype(np.uint64), none)]
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
    owner, key, leaf = (np.concatenate(column) for column in zip(*parts, strict=True))
    return counted(owner, key, leaf, leaf, wanted)


def widths(outputs: Outputs) -> list[int]:
    """In how many columns some of the vectors may be read as rows."""
    return sorted({width for _, shape, _ in _arrays(outputs) for width in _widths(shape)})


def _widths(shape: tuple[int, ...]) -> list[int]:
    """Divisors of the length of a vector, from 2 to 16."""
    if len(shape) != 1 or shape[0] < 4:
        return []
    return [w for w in range(2, _WIDEST_ROW + 1) if shape[0] % w == 0 and shape[0] > w]
