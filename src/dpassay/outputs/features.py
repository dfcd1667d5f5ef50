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

The cost is that of a few sorts of the leaves; `pairs` and `products` are limited to neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.leaves import Hashes, LeafTable, mix, number_hash, text_hash
from dpassay.records import Record

#: Owners, features and values; and for each triple the leaves that tell its name.
Triples: TypeAlias = tuple[IntArray, Hashes, FloatArray, IntArray, IntArray]

#: Leaves of a row are paired with the next few.
_LAGS = 4
#: Numbers of a column whose order statistics are features, at most.
_SORTED = 24
#: Vectors of at most this many numbers are read as rows of 2 to 16 columns.
_BLOCKS, _WIDEST = 4096, 16
#: Matrices of at most this many numbers have their singular values taken.
_SPECTRUM = 1024


def _counted(owner: IntArray, key: Hashes, first: IntArray, second: IntArray) -> Triples:
    """How often each owner has each key."""
    order = np.lexsort((key, owner))
    owner, key = owner[order], key[order]
    new = np.ones(owner.size, dtype=bool)
    new[1:] = (owner[1:] != owner[:-1]) | (key[1:] != key[:-1])
    at = np.flatnonzero(new)
    count = np.diff(np.append(at, owner.size)).astype(float)
    return owner[at], key[at], count, first[order][at], second[order][at]


def _none() -> Triples:
    empty = np.zeros(0, dtype=np.int64)
    return empty, empty.astype(np.uint64), empty.astype(float), empty, empty


def values(t: LeafTable) -> Triples:
    """How often a column holds a value."""
    leaf = np.arange(len(t))
    return _counted(t.owner, mix(1, t.column, t.code), leaf, leaf)


def anywhere(t: LeafTable) -> Triples:
    """How often a value occurs in any column of a table."""
    leaf = np.arange(len(t))
    return _counted(t.owner, mix(2, t.table, t.code), leaf, leaf)


def rows(t: LeafTable) -> Triples:
    """How often a row of two columns or more occurs in its table."""
    row = t.rows()
    order = np.argsort(row, kind="stable")
    starts = np.flatnonzero(np.append(True, row[order][1:] != row[order][:-1])) if len(t) else order
    if not starts.size:
        return _none()
    sizes = np.diff(np.append(starts, len(t)))
    with np.errstate(over="ignore"):
        total = np.add.reduceat(mix(t.column, t.code)[order], starts)
    wide = sizes > 1
    leaf, total = order[starts][wide], total[wide]
    return _counted(t.owner[leaf], mix(3, t.table[leaf], total), leaf, leaf)


def _paired(t: LeafTable) -> tuple[IntArray, IntArray]:
    """Leaves of one row, each with the next few: two arrays of places in the table."""
    order = np.lexsort((t.column, t.place, t.table, t.owner))  # sums are taken in this order
    row = t.rows()[order]
    first, second = [], []
    for lag in range(1, _LAGS + 1):
        same = row[lag:] == row[:-lag]
        first.append(order[:-lag][same])
        second.append(order[lag:][same])
    return np.concatenate(first), np.concatenate(second)


def pairs(t: LeafTable) -> Triples:
    """How often a row holds two values."""
    a, b = _paired(t)
    return _counted(t.owner[a], mix(4, t.column[a], t.code[a], t.column[b], t.code[b]), a, b)


def by_key(t: LeafTable) -> Triples:
    """The sum of the numbers that stand in a row beside a value that is text or a whole number."""
    a, b = _paired(t)
    first, second = np.append(a, b), np.append(b, a)
    text = np.isnan(t.number[first]) | (t.number[first] == np.round(t.number[first]))
    use = text & np.isfinite(t.number[second])
    first, second = first[use], second[use]
    key = mix(5, t.column[first], t.code[first], t.column[second])
    return _summed(t.owner[first], key, t.number[second], first, second)


def _summed(
    owner: IntArray, key: Hashes, value: FloatArray, first: IntArray, second: IntArray
) -> Triples:
    order = np.lexsort((key, owner))
    owner, key, value = owner[order], key[order], value[order]
    new = np.ones(owner.size, dtype=bool)
    new[1:] = (owner[1:] != owner[:-1]) | (key[1:] != key[:-1])
    at = np.flatnonzero(new)
    total = np.add.reduceat(value, at) if at.size else value
    return owner[at], key[at], total, first[order][at], second[order][at]


def neighbours(t: LeafTable) -> Triples:
    """How often one value of a column follows another."""
    order = np.lexsort((t.place, t.column, t.owner))
    a, b = order[:-1], order[1:]
    same = (t.owner[a] == t.owner[b]) & (t.column[a] == t.column[b]) & (t.place[b] > t.place[a])
    a, b = a[same], b[same]
    return _counted(t.owner[a], mix(6, t.column[a], t.code[a], t.code[b]), a, b)


def positions(t: LeafTable) -> Triples:
    """Where in its column a value comes first, from 1 on."""
    key = mix(7, t.column, t.code)
    order = np.lexsort((t.place, key, t.owner))
    owner, key = t.owner[order], key[order]
    new = np.ones(owner.size, dtype=bool)
    new[1:] = (owner[1:] != owner[:-1]) | (key[1:] != key[:-1])
    leaf = order[new]
    return t.owner[leaf], key[new], t.place[leaf].astype(float) + 1, leaf, leaf


#: Statistics of the numbers of a column, in the order of `_summary`.
STATISTICS = (
    *("count", "sum", "mean", "minimum", "maximum", "range", "standard deviation", "median"),
    *("number of distinct values", "number of ties", "smallest gap", "largest gap"),
    *("first", "last", "lag-1 autocovariance", "number of descents", "largest step"),
    *("lower quartile", "upper quartile", "number of zeros", "sum of squares"),
    *("place of the maximum", "place of the minimum"),
)


def summaries(t: LeafTable) -> Triples:
    """Statistics of the numbers of each column, and of all values of it that are not numbers."""
    known = np.flatnonzero(np.isfinite(t.number))
    found = [_summary(t, known)] if known.size else []
    texts = np.flatnonzero(~np.isfinite(t.number))
    if texts.size:  # how many, and how many different ones
        group = mix(t.owner, t.column)[texts]
        order = texts[np.lexsort((t.code[texts], group))]
        own = mix(t.owner, t.column)[order]
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


def _summary(t: LeafTable, known: IntArray) -> Triples:
    """By owner and column: sorted once by value and once by place."""
    group = mix(t.owner, t.column)[known]
    by_value = known[np.lexsort((t.number[known], group))]
    by_place = known[np.lexsort((t.place[known], group))]
    own = mix(t.owner, t.column)[by_value]
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
            *(np.minimum.reduceat(top, at), np.minimum.reduceat(low, at)),
        )
    leaf = by_value[at]
    single = count.max(initial=1) == 1  # then most statistics are the number itself
    use = [1] if single else range(len(columns))
    return (
        np.tile(t.owner[leaf], len(use)),
        np.concatenate([mix(8, t.column[leaf], np.full(leaf.size, k)) for k in use]),
        np.nan_to_num(np.concatenate([columns[k] for k in use])),
        np.tile(leaf, len(use)),
        np.repeat(np.arange(len(columns))[list(use)], leaf.size),
    )


def ordered(t: LeafTable) -> Triples:
    """The k-th smallest number of a column, for lists that are not long."""
    known = np.flatnonzero(np.isfinite(t.number))
    group = mix(t.owner, t.column)[known]
    order = known[np.lexsort((t.number[known], group))]
    own = mix(t.owner, t.column)[order]
    if not own.size:
        return _none()
    at = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
    count = np.diff(np.append(at, own.size))
    rank = np.arange(own.size) - np.repeat(at, count)
    use = (np.repeat(count, count) <= _SORTED) & (np.repeat(count, count) > 1)
    leaf, rank = order[use], rank[use]
    return t.owner[leaf], mix(9, t.column[leaf], rank), t.number[leaf], leaf, rank


def by_place(t: LeafTable) -> Triples:
    """The sum of the numbers in a row, and the numbers of a column by place."""
    known = np.flatnonzero(np.isfinite(t.number))
    key = mix(10, t.table[known], t.place[known])
    return _summed(t.owner[known], key, t.number[known], known, known)


def products(t: LeafTable) -> Triples:
    """The covariance of two columns over the rows of their table."""
    a, b = _paired(t)
    use = np.isfinite(t.number[a]) & np.isfinite(t.number[b])
    a, b = a[use], b[use]
    key = mix(11, t.column[a], t.column[b])
    group = mix(t.owner[a], key)
    order = np.argsort(group, kind="stable")
    if not order.size:
        return _none()
    at = np.flatnonzero(np.append(True, group[order][1:] != group[order][:-1]))
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

FAMILIES: dict[str, Callable[[LeafTable], Triples]] = {
    "values": values,
    "anywhere": anywhere,
    "rows": rows,
    "pairs": pairs,
    "by_key": by_key,
    "neighbours": neighbours,
    "positions": positions,
    "summaries": summaries,
    "sorted": ordered,
    "by_place": by_place,
    "products": products,
}


# --- vectors and matrices


def plain_shape(outputs: Outputs) -> tuple[int, ...] | None:
    """The shape of outputs that are all arrays of numbers of one shape; None for others."""
    if not outputs.is_plain:
        return None
    shape: list[int] = []
    node = outputs.structures[0]
    while node[0] == "seq" and node[1]:
        if any(child != node[1][0] for child in node[1]):
            return None
        shape.append(len(node[1]))
        node = node[1][0]
    return tuple(shape) if node == ("number",) else None


def blocks(outputs: Outputs) -> dict[str, FloatArray]:
    """Dense features of arrays of one shape, by name: rows of a few columns, windows, singular values."""
    shape = plain_shape(outputs)
    found: dict[str, FloatArray] = {}
    if shape is None or not shape or outputs.numbers.shape[1] > _BLOCKS:
        return found
    x = np.asarray(outputs.numbers, dtype=float)
    if len(shape) == 2 and min(shape) > 1:
        matrix = x.reshape(len(x), *shape)
        if x.shape[1] <= _SPECTRUM:
            spectrum = np.linalg.svd(matrix, compute_uv=False)[:, :3]
            for k in range(spectrum.shape[1]):
                found[f"singular value {k + 1}"] = np.asarray(np.round(spectrum[:, k], 9))
        found["trace"] = np.asarray(np.trace(matrix, axis1=1, axis2=2), dtype=float)
        for side in (2, 3, 4, 6):
            if side < min(shape):
                sums = _windows(matrix, side).reshape(len(x), -1)
                found[f"largest sum of a {side} × {side} window"] = sums.max(axis=1)
                found[f"smallest sum of a {side} × {side} window"] = sums.min(axis=1)
    if len(shape) == 1 and shape[0] > 3:
        for side in (2, 3, 5, 8):
            if side < shape[0]:
                total = np.cumsum(np.pad(x, ((0, 0), (1, 0))), axis=1)
                sums = total[:, side:] - total[:, :-side]
                found[f"largest sum of {side} neighbours"] = sums.max(axis=1)
                found[f"smallest sum of {side} neighbours"] = sums.min(axis=1)
    return found


def _windows(matrix: FloatArray, side: int) -> FloatArray:
    total = np.pad(matrix, ((0, 0), (1, 0), (1, 0))).cumsum(axis=1).cumsum(axis=2)
    a, b = total[:, side:, :], total[:, :-side, :]
    return np.asarray(a[:, :, side:] - a[:, :, :-side] - b[:, :, side:] + b[:, :, :-side])


def block_rows(outputs: Outputs, width: int) -> Triples:
    """How often a row of `width` numbers occurs in a vector that is cut into such rows."""
    x = np.asarray(outputs.numbers, dtype=float)
    codes = number_hash(x).reshape(len(x), -1, width)
    total = mix(12, width, codes[:, :, 0])
    for k in range(1, width):
        total = mix(total, codes[:, :, k])
    owner = np.repeat(np.arange(len(x)), total.shape[1])
    leaf = np.tile(np.arange(total.shape[1]) * width, len(x)) + owner * x.shape[1]
    return _counted(owner, total.ravel(), leaf, leaf)


def widths(outputs: Outputs) -> list[int]:
    """In how many columns a vector may be read as rows: its divisors from 2 to 16."""
    shape = plain_shape(outputs)
    if shape is None or len(shape) != 1 or not 4 <= shape[0] <= _BLOCKS:
        return []
    return [w for w in range(2, _WIDEST + 1) if shape[0] % w == 0 and shape[0] > w]


# --- chosen features


@dataclass(frozen=True, eq=False)
class Feature(Record):
    """One feature: its family, its key there, and how it reads."""

    family: str
    key: int
    name: str
    width: int = 0  # of a row, where a vector is read as rows


@dataclass(frozen=True, eq=False)
class NamedFeatures(Record):
    """Some features, computed for each output."""

    features: tuple[Feature, ...]
    centre: FloatArray
    scale: FloatArray

    def _validate(self) -> None:
        known = all(one.family in (*FAMILIES, "blocks", "block rows") for one in self.features)
        checks.require(known, f"a family of features must be one of {', '.join(FAMILIES)}")
        same = self.centre.shape == self.scale.shape == (self.size,)
        checks.require(same, "centre and scale must have an entry for each feature")

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.features)

    @classmethod
    def of(cls, features: tuple[Feature, ...]) -> NamedFeatures:
        """As they are."""
        return cls(features, np.zeros(len(features)), np.ones(len(features)))

    def standardised(self, rows: FloatArray) -> NamedFeatures:
        """With the centre and the spread of some rows taken out."""
        spread = rows.std(axis=0)
        return NamedFeatures(self.features, rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def rows(self, outputs: Outputs) -> FloatArray:
        """One row of features an output."""
        return np.asarray((self.values(outputs) - self.centre) / self.scale)

    def values(self, outputs: Outputs) -> FloatArray:
        """The features themselves, a row an output; each family is computed once."""
        found = np.zeros((len(outputs), len(self.features)))
        if not len(outputs):
            return found
        families = {(one.family, one.width) for one in self.features}
        table = LeafTable.of(outputs) if any(name in FAMILIES for name, _ in families) else None
        for name, width in sorted(families):
            own = [
                k for k, one in enumerate(self.features) if (one.family, one.width) == (name, width)
            ]
            if name == "blocks":
                dense = blocks(outputs)
                for k in own:
                    if self.features[k].name in dense:
                        found[:, k] = dense[self.features[k].name]
                continue
            if name == "block rows":
                if width not in widths(outputs):
                    continue
                owner, key, value, _, _ = block_rows(outputs, width)
            else:
                assert table is not None
                owner, key, value, _, _ = FAMILIES[name](table)
            wanted = np.array([self.features[k].key for k in own], dtype=np.uint64)
            order = np.argsort(wanted)
            at = np.minimum(np.searchsorted(wanted[order], key), len(own) - 1)
            hit = wanted[order][at] == key
            found[owner[hit], np.array(own)[order][at[hit]]] = value[hit]
        return found


def words_of(table: LeafTable, family: str, first: int, second: int) -> str:
    """What a feature is called, from the leaves that it was found with."""

    def column(leaf: int) -> str:
        known = table.texts.get(int(table.column[leaf]))
        if known is not None:
            return known.removeprefix("[].").removesuffix("[]").strip(".") or "the items"
        for part in ("last digit", "cents", *_CALENDAR_PARTS):
            for text in table.texts.values():
                if int(mix(np.uint64(text_hash(text)), text_hash(part))[0]) == int(
                    table.column[leaf]
                ):
                    return f"the {part} of {text.removesuffix('[]') or 'the output'}"
        return "a column"

    def holds(leaf: int) -> str:
        name = column(leaf)
        if name.endswith("{}"):
            return f"the key {table.text(leaf)!r}"
        return f"{name} = {table.text(leaf)}"

    match family:
        case "values":
            return f"the number of times that {holds(first)}"
        case "anywhere":
            return f"the number of occurrences of {table.text(first)}"
        case "rows":
            same = np.flatnonzero(
                (table.owner == table.owner[first])
                & (table.table == table.table[first])
                & (table.place == table.place[first])
            )
            listed = ", ".join(holds(int(leaf)) for leaf in same)
            return f"the number of rows ({listed})"
        case "pairs":
            return f"the number of rows with {holds(first)} and {holds(second)}"
        case "by_key":
            return f"the sum of {column(second)} where {holds(first)}"
        case "neighbours":
            return f"how often {table.text(second)} follows {table.text(first)} in {column(first)}"
        case "positions":
            return f"the place of {table.text(first)} in {column(first)}"
        case "summaries":
            name = column(first)
            return (
                name if name.startswith("the output's ") else f"the {STATISTICS[second]} of {name}"
            )
        case "sorted":
            return f"number {second + 1} of {column(first)} in ascending order"
        case "by_place":
            return f"the sum of the numbers in row {int(table.place[first]) + 1}"
        case _:
            return f"the correlation of {column(first)} and {column(second)}"


_CALENDAR_PARTS = ("second", "minute", "hour", "weekday", "day", "month")
