"""Columns that are no outputs: row numbers, time stamps, identifiers, names of the input; long tables."""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from dpassay._typing import AnyArray, IntArray
from dpassay.errors import UnreadableFile
from dpassay.sampling.columns import KIND_OF_TYPE, Column, Content, as_objects
from dpassay.sampling.text_tables import WRITTEN_DATE

FEW = 20  # rows from which an order is no accident
ROWS = 5000  # at the top of a table, which are looked at
#: What repeats in a fixed order is refused where the chance of that is below, for independent rows.
_PERIODIC = 1e-9
_KEYED = 6  # columns of a frequency table, at most
#: The same of values that do not repeat; the z-score past which a correlation is no accident.
_RARE, _Z = 1e-9, 6.0
_END = 0.05
#: How a table of counts becomes one of releases.
_ONE_ROW = (
    "as t.loc[t.index.repeat(t[{0!r}])].drop(columns={0!r}).sample(frac=1) makes it in pandas; for the "
    "counts of one event use dp.audit_counts (dpassay counts)"
)

#: How columns get one name each after a pivot, without commas.
_NAMES = "then wide.columns = ['_'.join(map(str, c)) for c in wide.columns.to_flat_index()]"


def refuse_identifiers(p: Content, q: Content, dropped: Sequence[str]) -> None:
    """Refuse columns that tell any two tables apart: row numbers, time stamps, identifiers, run names.

    A column with one value a side may also be an output without noise, hence the leak: it is told apart.
    """
    index, constant = {}, one_value_each(p, q)
    ordered: dict[
        str, int
    ] = {}  # columns that show an order of the rows, with their number of values
    for name, a, b in zip(p.called, p.columns, q.columns, strict=True):
        for side, column in ((q, b), (p, a)):
            if sign := _index_like(column):
                index[name] = f"{p.column(name)} of {side.shown} {sign}"
            elif sign := _in_blocks(column):
                index[name] = f"{p.column(name)} of {side.shown} {sign}"
                ordered[name] = len(set(column.values.tolist()))
    if not index and not constant:
        return
    empty = [
        n
        for n, a, b in zip(p.called, p.columns, q.columns, strict=True)
        if not len(a.values) + len(b.values)
    ]
    rest = [name for name in p.called if name not in (*index, *constant, *empty)]
    tables = [name for name in rest if len(p.called) == 2 and _values_once(p, name)]
    outputs = as_option("columns", [*constant, *rest] or ["…"])
    no_output = as_option("drop", [*dropped, *index, *constant])
    said = "; ".join(index.values()) + ". " * bool(index)
    for name in [name for name, many in ordered.items() if many >= FEW][:1]:
        said += (
            f"If the rows with one {name!r} are one release, they are not independent: give tables, "
            f"from_samples([g.drop(columns={_few([name])}).reset_index(drop=True) for _, g in "
            f"p.groupby({name!r})], …). "
        )
    said += (
        f"{'Otherwise such a label' if ordered else 'That'} differs between any two tables, whatever the "
        "mechanism does, and would look like a violation; "
    ) * bool(index)
    if constant:
        also = "".join(f", and so has {p.column(name)}" for name in constant[1:])
        said += (
            f"{p.column(constant[0])} has one value in all of {p.shown} and another in all of {q.shown}"
            f"{also}: an output without noise, which is a violation, or a name of the input, which would "
            f"look like one. If it is an output, name it among them with {outputs}"
        )
        said += f"; if it is a name, leave it out with {no_output}" * bool(rest)
    else:
        said += f"leave out what is no output with {no_output}, or " * bool(rest)
        said += f"name the columns that are outputs with {outputs}"
        said += ", also one by which the rows were sorted" * bool(ordered)
    for name in tables[:1]:
        said += (
            f". If {p.column(name)} counts how often each value came, an audit needs one row a release, "
            f"{_ONE_ROW.format(name)}"
        )
    raise UnreadableFile(said)


def one_value_each(p: Content, q: Content) -> list[str]:
    """The columns that have one value in all of one table and another in all of the other."""
    others = dict(zip(q.called, q.columns, strict=True))
    return [
        name
        for name, a in zip(p.called, p.columns, strict=True)
        if (b := others.get(name)) is not None and _is_constant(a) and _is_constant(b)
        if a.values[:1].tolist() != b.values[:1].tolist()
    ]


def refuse_frequencies(p: Content, q: Content) -> None:
    """Refuse tables of values and of how often each came: their rows are no releases.

    Every combination of values is in one row, beside a positive whole number. Independent rows do so
    with a probability below `_RARE` where the values lie so close that some would repeat; whole
    numbers, which may number rows, are told by counts that are correlated in the order of the values.
    Of words, few are the same in both.
    """
    for side, name in itertools.product(
        (p, q), reversed(p.called if len(p.called) <= _KEYED else ())
    ):
        values = _values_once(side, name)
        if values is None or not (_crowded(side, name, values) or _same_words(p, q, name)):
            continue
        others = enumerated([other for other in side.called if other != name])
        raise UnreadableFile(
            f"{side.shown} looks like a frequency table: every value of {others} is in one row, and "
            f"{side.column(name)} seems to count how often it came. An audit needs one row a release, "
            f"{_ONE_ROW.format(name)}. Rare values must not be cut away: their absence would look like a "
            "violation. If the rows are releases all the same, say so with "
            f"{as_option('columns', side.called)}; if {others} is what numbers them, delete "
            "that from both tables"
        )


def _values_once(side: Content, name: str) -> list[tuple[IntArray, float]] | None:
    """The values of the other columns, if each combination is in one row, beside positive whole numbers.

    Of each column the ranks of its values, and how many there may be without the ends (`_END` of the rows
    on either side): of numbers those as far apart as the nearest two.
    """
    columns = dict(zip(side.called, side.columns, strict=True))
    count, found = columns.pop(name, None), []
    if (
        count is None
        or count.missing
        or count.values.dtype.kind != "i"
        or count.values.min(initial=1) < 1
    ):
        return None
    for column in columns.values():
        numbers = column.values.dtype.kind in "if"
        if column.missing or not (numbers or set(column.kinds) == {"words"}):
            return None
        values, ranks = np.unique(column.values[:ROWS], return_inverse=True)
        with np.errstate(over="ignore", invalid="ignore"):
            x = values.astype(float) if numbers else np.arange(float(values.size))
            low, high = np.quantile(x[ranks], [_END, 1 - _END])
            size = 1 + (high - low) / max(np.diff(x).min(initial=np.inf), 5e-324)
        found.append((ranks, float(np.nan_to_num(size, nan=np.inf, posinf=np.inf))))
    ranked = [ranks for ranks, _ in found]
    if not found or np.unique(ranked, axis=1).shape[1] < ranked[0].size or ranked[0].size < 2:
        return None
    return found


def _crowded(side: Content, name: str, values: list[tuple[IntArray, float]]) -> bool:
    """Whether independent rows would repeat values, and differ more in the numbers beside near ones."""
    n, size = values[0][0].size, math.prod(size for _, size in values)
    inner = n * (1 - 2 * _END * len(values))
    if (
        inner * (inner - 1) / 2 < -math.log(_RARE) * size
    ):  # P(no value twice) ≤ exp(−n(n − 1)/2 size)
        return False
    columns = dict(zip(side.called, side.columns, strict=True))
    counts = columns.pop(name).values[:ROWS]
    if all(column.values.dtype.kind == "f" for column in columns.values()):
        return True  # with decimals: these do not number rows
    _, ranks = np.unique(counts[np.lexsort([r for r, _ in values[::-1]])], return_inverse=True)
    centred = ranks - ranks.mean()
    return float(centred[1:] @ centred[:-1]) * math.sqrt(n) > _Z * float(centred @ centred)


def _same_words(p: Content, q: Content, name: str) -> bool:
    """Whether both tables hold the same few words, each once, beside the numbers."""
    words = []
    for side in (p, q):
        others = [c.values for n, c in zip(side.called, side.columns, strict=True) if n != name]
        if side.origin.rows >= FEW or any(c.dtype.kind != "O" for c in others):
            return False
        words.append(sorted(zip(*(c.tolist() for c in others), strict=True)))
    return words[0] == words[1]


def refuse_long(side: Content, names: Sequence[str], dropped: Sequence[str]) -> None:
    """Refuse a long table, in which one release is several rows: these are not independent.

    Every value of a column that numbers releases is in k > 1 rows, and other columns, such as region and
    sex, label these: k combinations, equally often. Leaving out these columns does not help. What is
    advised uses no column that was dropped, and none of `names`, which have one value in either table.
    """
    columns = dict(zip(side.called, side.columns, strict=True))
    for name, column in columns.items() if len(columns) > 1 else ():
        whole = column.values.dtype.kind == "i"
        usable = not column.missing and (whole or set(column.kinds) == {"words"})
        if column.rows < 2 * FEW or not usable:
            continue
        count = Counter(column.values.tolist())
        releases, rows = len(count), max(count.values())
        if rows < 2 or releases < FEW or min(count.values()) < rows:
            continue
        labels = {}
        for other in columns.keys() - {name, *names}:
            cells = list(map(repr, columns[other].array().tolist()))  # some cannot be hashed
            if not any(n % releases for n in Counter(cells).values()):
                labels[other] = cells
        dense = not whole or max(count) - min(count) < 2 * releases
        combined = sorted(Counter(zip(*labels.values(), strict=True)).values())
        told = dense and combined == [releases] * rows
        if not told and not _as_often(releases, rows):
            continue
        kept = [n for n in columns if n in labels or n not in (name, *names, *dropped)]
        left = [n for n in names if n not in dropped]
        why = (
            f". {'Both leave' if told else 'This leaves'} out {enumerated(left)}, of one value in either "
            "table, as a name of the input has; keep what is an output: it has no noise"
        ) * bool(left)
        said = (
            f"{side.column(name)} of {side.shown} has {rows} rows of each value. If a release is "
            "several rows, they are not independent: "
        )
        if told:
            values = [n for n in kept if n not in labels]
            said += (
                "write one row a release, as pandas' "
                f"pivot(index={name!r}, columns={_few(sorted(labels))}, values={_few(values)}) does "
                f"({_NAMES} before to_csv), or "
            )
        raise UnreadableFile(
            f"{said}give tables, from_samples([g[{_few(kept)}].reset_index(drop=True) for _, g in "
            f"p.groupby({name!r})], …){why}. If every row is a release of its own, "
            f"delete {side.column(name)} from both tables"
        )


def _as_often(values: int, rows: int) -> bool:
    """Whether independent rows hardly have so many values equally often, so many rows each."""
    n = values * rows
    chance = math.lgamma(n + 1) - values * math.lgamma(rows + 1) - n * math.log(values)
    return chance < math.log(_RARE)


def blocks_left_out(side: Content, used: Sequence[str]) -> Iterator[str]:
    """Columns that were left out and show that several rows may be one release."""
    for name, column in zip(side.called, side.columns, strict=True):
        if name in used or not _in_blocks(column):
            continue
        many = len(set(column.values.tolist()))
        if many >= FEW and len(column.values) >= 2 * many:
            yield (
                f"{side.column(name)} was left out, and each of its {many:,} values has one block of "
                "rows. If the rows of a block are one release, they are not independent, and nothing of "
                f"this holds: give tables, from_samples([g for _, g in p.groupby({name!r})], …)"
            )


def refuse_periodic(side: Content) -> None:
    """Refuse a table with columns that repeat in a fixed order, as labels of rows of one release do.

    So does a long table without the column that numbers releases.
    """
    arrays = {n: c.array() for n, c in zip(side.called, side.columns, strict=True)}
    periods = {name: k for name, cells in arrays.items() if (k := _period(cells))}
    if not periods or len(periods) == len(arrays):
        return
    labels, k = list(periods), math.lcm(*periods.values())
    repeats = "repeats" if len(labels) == 1 else "repeat"
    raise UnreadableFile(
        f"{enumerated(labels)} of {side.shown} {repeats} in the same order every "
        f"{k} rows, which independent rows do with a probability below {_PERIODIC:g}. Either a release "
        f"is {k} rows with these labels, and they are not independent: write one row "
        f"a release, as pandas' assign(release=np.arange(len(p)) // {k}).pivot(index='release', "
        f"columns={_few(labels)}) does ({_NAMES} before to_csv), or "
        "give tables, from_samples([g.reset_index(drop=True) for _, g in p.groupby(np.arange(len(p)) // "
        f"{k})], …). Or every row is a release of its own, with a label of when it was made, such as "
        f"the day of the week: delete it from both tables, t.drop(columns={_few(labels)}) in "
        "pandas. drop= (--drop) does not suffice, since the rows of one release would pass as several"
    )


def _period(cells: AnyArray) -> int:
    """After how many rows, two or more, a column repeats in the same order; 0 if chance may do that.

    Rows that are independent of each other are in each order of their values with the same probability.
    A column of d different values that repeats after k rows is one of at most d^k of these orders.
    """
    n = len(cells)
    again = cells[1 : min(n // 2, ROWS) + 1] == cells[:1]
    for k in (np.flatnonzero(again) + 1).tolist() if n >= 2 * FEW else ():
        if np.all(cells[k : k + FEW] == cells[:FEW]) and np.all(cells[k:] == cells[:-k]):
            counts = Counter(map(repr, cells.tolist())).values()
            orders = math.lgamma(n + 1) - sum(math.lgamma(count + 1) for count in counts)
            rare = k * math.log(len(counts)) - orders < math.log(_PERIODIC / n)
            return k if rare and len(counts) > 1 else 0
    return 0


def _is_constant(column: Column) -> bool:
    """Whether all cells have one value and none is missing."""
    values = column.values
    return not column.missing and len(values) >= FEW and all(v == values[0] for v in values)


def _index_like(column: Column) -> str:
    """Why a column is an index and no output; empty if it is not."""
    values = column.values
    if len(values) < FEW:
        return ""
    kind, n = column.kinds.most_common(1)[0]
    if n < len(values):  # a total below row numbers does not hide them
        values = as_objects(v for v in values if KIND_OF_TYPE.get(type(v)) == kind)
    if n < FEW or kind not in ("numbers", "dates", "words", "bytes"):
        return ""
    before, after = values[:-1], values[1:]
    top = values[:ROWS].tolist() if kind == "words" else []
    written = sum(re.fullmatch(WRITTEN_DATE, word) is not None for word in top)
    if kind == "dates" or 2 * written > len(top):  # 31.12.2024 or 12/31/2024
        return "holds different dates, as time stamps are" if np.any(after != before) else ""
    if kind in ("words", "bytes"):
        runs, distinct = 1 + np.count_nonzero(after != before), len(set(values.tolist()))
        same = "all different" if distinct == n else "the same in a row only"
        told = 2 * distinct > n and runs == distinct
        return f"holds {kind} that are {same}, as identifiers and time stamps are" if told else ""
    for way, holds in (("rises", after > before), ("falls", after < before)):
        if np.all(holds):
            return f"{way} from row to row, as a row number or a time stamp does"
    whole = values.dtype.kind == "i" or all(type(value) is int for value in values)
    dense = whole and int(values.max()) - int(values.min()) < 2 * n
    if dense and len(set(values.tolist())) == n:
        return "holds whole numbers without repetition and nearly without gaps, as row numbers are"
    return ""


def _in_blocks(column: Column) -> str:
    """How a column shows that its rows are in an order, if independent rows hardly have it.

    Rows that are independent of each other are in each order of their values with the same probability:
    sorted both ways in 2 Π n_i! of n!, each value in one block in k! Π n_i!.
    """
    values = column.values
    if len(values) < FEW:
        return ""
    new = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    sizes = np.diff(np.append(new, len(values))).tolist()
    firsts = values[new]
    if len(sizes) == 1 or len(set(map(repr, firsts.tolist()))) < len(sizes):
        return ""
    ways = [] if firsts.dtype.kind == "O" else [firsts[1:] > firsts[:-1], firsts[1:] < firsts[:-1]]
    chance = sum(math.lgamma(size + 1) for size in sizes) - math.lgamma(len(values) + 1)
    rare = math.log(_RARE)
    if chance + math.lgamma(len(sizes) + 1) < rare:
        told = f"has each of its {len(sizes):,} values in one block of rows"
    elif chance + math.log(2) < rare and any(map(np.all, ways)):
        told = "is sorted"
    else:
        return ""
    return (
        f"{told}, which independent rows do with a probability below {_RARE:g}, as a week, a machine or "
        "the number of a release does"
    )


def as_option(name: str, values: Sequence[str]) -> str:
    """An argument as Python and as the command line write it."""
    typed = typed_names([*values[:8], *["…"] * (len(values) > 8)])
    return f"{name}={_few(values)} (--{name} {shlex.quote(typed)})"


def _few(names: Sequence[str]) -> str:
    """The first names as a list in Python; "…" alone where no column is left that could be named."""
    listed = [repr(name) if name != "…" else name for name in names[:8]]
    return f"[{', '.join(listed + ['…'] * (len(names) > 8))}]"


def typed_names(names: Sequence[str]) -> str:
    """Names of columns as --columns and --drop read them: one that holds a comma in double quotes."""
    return ",".join(f'"{name}"' if "," in name else name for name in names)


def enumerated(names: Sequence[str], most: int = 8) -> str:
    """The first names of columns in a sentence."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    noun = "the column " if len(names) == 1 else "the columns "
    return noun + ", ".join(repr(name) for name in names[:most]) + more
