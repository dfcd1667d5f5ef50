"""Signs of dependence in the draws on a pair: serial correlation, shared randomness, copied rows.

These are no proofs: some dependence goes unnoticed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import shorten

import numpy as np

from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import Template, leaves_of, number_columns, paths
from dpassay.sampling.repeated_draws import MANY, copied, distinct

#: Rows looked at for correlations, and the z-score past which one is no accident.
_ROWS, _Z = 2_000, 6.0
#: The z-score of a correlation across the sides (p < 1e-9, also for skewed counts).
_ACROSS = 8.0
#: Columns looked at: of numbers, and of words.
_COLUMNS, _WORDS = 512, 50
#: Divisors of all counts are refused, or doubted, where their chance is below.
_REFUSED, _DOUBTED = 1e-6, 1e-3


def symptoms(p: Outputs, q: Outputs) -> Iterator[str]:
    """Signs of dependence between draws, in the order they came, as sentences."""
    if min(len(p), len(q)) < 20:
        return
    alone = True
    for name, side in (("first", p[:_ROWS]), ("second", q[:_ROWS])):
        r, where = _most_correlated(side)
        if r:
            alone = False
            yield (
                f"successive draws on the {name} input are correlated (lag-1 rank correlation "
                f"{r:+.2f} {where}). Every guarantee assumes independent draws"
            )
        if column := _rising(side):
            yield (
                f"column {column} rises from draw to draw on the {name} input, as a counter or a time "
                "does: leave it out of the output. Every guarantee assumes independent draws"
            )
    if (value := _only_output(p)) and _only_output(q) not in ("", value):
        value = shorten(value, 80)
        yield (
            f"every output on either input is one and the same ({value} on the first): there is "
            "no noise, or a generator is made anew with a fixed seed in every call, and from outputs the "
            "two cannot be told apart. Every guarantee assumes independent draws"
        )
    if shared := shared_rows(p[:_ROWS], q[:_ROWS]):
        yield f"{shared}, digit for digit: the two sides seem to share their randomness"
    elif alone and not labels_like(p, q) and (same := _same_noise(p, q)):
        yield (
            f"{same}: the two sides seem to share their randomness, as with one seed for both. Every "
            "guarantee assumes independent draws"
        )


@np.errstate(over="ignore", invalid="ignore")  # of the largest doubles
def _same_noise(p: Outputs, q: Outputs) -> str:
    """Why both sides seem to hold the same noise, row by row; empty if they do not.

    Ranks of numbers in the order they came are correlated. Those of sorted rows always are, and say
    nothing: there the same noise leaves differences, or ratios, that are all the same.
    """
    if p.structures != q.structures:
        return ""
    n = min(len(p), len(q), _ROWS)
    for code, template in enumerate(p.structures[:50]):
        rows = np.flatnonzero((p.all_codes[:n] == code) & (q.all_codes[:n] == code))
        columns = number_columns(template)[:_COLUMNS] if rows.size >= 20 else ()
        names = _names(template)
        for column in columns:
            both = np.column_stack([side[rows].value_of(column) for side in (p, q)])
            if how := _alike(*both[np.isfinite(both).all(axis=1)].T):
                of = f" of column {names.get(column, column + 1)}" if len(columns) > 1 else ""
                return f"numbers{of} in the same row of both sides {how}"
    return ""


def _alike(x: FloatArray, y: FloatArray) -> str:
    """How numbers beside each other are more alike than those of independent draws; empty if not."""
    a, b = _ranks(x), _ranks(y)
    if a is not None and b is not None:
        r = float(np.dot(a, b) / math.sqrt(np.dot(a, a) * np.dot(b, b)))
        return f"are correlated (by ranks {r:+.2f})" if abs(r) * math.sqrt(x.size) > _ACROSS else ""
    for gaps in (np.diff(np.sort(x)), np.diff(np.sort(y))):
        if x.size < 20 or 2 * np.count_nonzero(gaps) < x.size or gaps.std() < 0.1 * gaps.mean():
            return ""  # few different numbers, or row numbers
    spreads = [float(np.subtract(*np.quantile(side, [0.75, 0.25]))) for side in (x, y)]
    for same, ratio in ("difference", 1.0), ("ratio", spreads[1] / max(spreads[0], 1e-300)):
        apart = y - ratio * x
        if np.mean(np.abs(apart - np.median(apart)) <= 1e-6 * min(spreads)) > 0.9:
            return f"have one and the same {same}"
    return ""


def _most_correlated(side: Outputs) -> tuple[float, str]:
    """The largest lag-1 rank correlation beyond chance, of kinds or of a column; 0 if there is none."""
    found: list[tuple[float, int, str]] = []
    if side.codes is not None:
        found += [(_lag_one(ranks), len(side), words) for words, ranks in _kind_ranks(side)]
    for code, template in enumerate(side.structures[:50]):
        columns, names = number_columns(template)[:_COLUMNS], _names(template)
        rows = side[side.rows_of(code)]
        for column in columns if len(rows) >= 20 else ():
            words = f"over {len(rows):,} draws"
            words += f" of column {names.get(column, column + 1)}" if len(columns) > 1 else ""
            found.append((_lag_one(rows.value_of(column)), len(rows), words))
    beyond = ((r, words) for r, n, words in found if abs(r) * math.sqrt(n) > _Z)
    return max(beyond, key=lambda one: abs(one[0]), default=(0.0, ""))


def _rising(side: Outputs) -> str:
    """A column of several that rises from draw to draw; empty if none does, or there is one column."""
    if len(side.structures) != 1 or len(numbers := number_columns(side.structures[0])) < 2:
        return ""
    names = _names(side.structures[0])
    rising = (k for k in numbers[:_COLUMNS] if np.all(np.diff(side.value_of(k)) > 0))
    codes = [code for code, _ in paths(side.structures[0])]
    return next((names.get(k, codes[k]) for k in rising), "")


def sorted_note(p: Outputs, q: Outputs) -> Iterator[str]:
    """A sentence if the rows of a side are in the order of their numbers."""
    found = [name for name, side in (("first", p), ("second", q)) if _is_sorted(side)]
    if found:
        sides = f"{' and '.join(found)} input{'s' * (len(found) > 1)}"
        yield (
            f"the rows on the {sides} are sorted: their order cannot show whether draws depend on each "
            "other. Give them in the order in which they were drawn"
        )


def _is_sorted(side: Outputs) -> bool:
    """Whether rows ascend or descend in a column that has a few different values."""
    if len(side) < MANY or len(side.structures) != 1:
        return False
    for column in number_columns(side.structures[0])[:_COLUMNS]:
        steps = np.diff(side.value_of(column))
        if np.count_nonzero(steps) > 1 and (np.all(steps >= 0) or np.all(steps <= 0)):
            return True
    return False


def _names(template: Template) -> dict[int, str]:
    """The names of columns by their places, if every cell of a row holds one value."""
    cells = _cells(template)
    return dict(enumerate(cells)) if all(len(leaves_of(c)) == 1 for c in cells.values()) else {}


def _cells(template: Template) -> dict[str, Template]:
    """What the first columns of a row hold, by their names or places."""
    items = template[1][:_WORDS] if template[0] in ("dict", "seq") else ()
    named = items if template[0] == "dict" else enumerate(items, 1)
    return {repr(name): child for name, child in named}


def _kind_ranks(side: Outputs) -> Iterator[tuple[str, FloatArray]]:
    """A number for the kind of each cell, column by column, and of each output, whichever came first."""
    assert side.codes is not None
    seen, place = np.unique(side.codes, return_inverse=True)
    kinds = [side.structures[code] for code in seen.tolist()]
    rows = [_cells(kind) for kind in kinds]
    for name in (*rows[0], None):
        texts = [repr(a if name is None else b.get(name)) for a, b in zip(kinds, rows, strict=True)]
        ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
        words = "of the kinds of output" if name is None else f"of the values in column {name}"
        yield words, np.array([ranks[text] for text in texts], dtype=float)[place]


def _lag_one(values: FloatArray) -> float:
    """The correlation of the ranks of successive values; 0 where these say nothing."""
    ranks = _ranks(np.asarray(values, dtype=float))
    return 0.0 if ranks is None else float(np.dot(ranks[1:], ranks[:-1]) / np.dot(ranks, ranks))


def _ranks(values: FloatArray) -> FloatArray | None:
    """Ranks of values, centred; None for a constant or a sorted file."""
    if np.all(values[:-1] <= values[1:]) or np.all(values[:-1] >= values[1:]):
        return None  # constant, or sorted: the order says nothing about the draws
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if values.size - counts.max() < max(20, min(0.4 * values.size, 100), 0.1 * values.size):
        return None  # nearly constant: a few rare values side by side would look like a correlation
    ranks = (np.cumsum(counts) - counts)[place]  # ties share the place of the first of them
    centred: FloatArray = ranks - ranks.mean()
    return centred


def _only_output(side: Outputs) -> str:
    """The only output of a side, if it holds a number with many digits, as noise has; else empty.

    Those are numbers with more than six decimals, or that are no multiple of 2⁻²⁰.
    """
    first = np.asarray(side.numbers[0])
    if first.dtype.kind != "f" or distinct(side)[0].size > 1:
        return ""
    numbers = first[np.isfinite(first)].astype(float)
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that have no decimals
        many = (np.round(numbers, 6) != numbers) | (np.fmod(numbers, 2.0**-20) != 0)
    return side.show(0) if np.any(many & (np.fmod(numbers, 1.0) != 0)) else ""


def shared_rows(p: Outputs, q: Outputs) -> str | None:
    """A sentence if both sides hold more of the same rows than independent draws would; else None.

    For independent draws from any two distributions n m Σpq pairs of equal rows across the sides are to
    be expected, at most √(n² Σp² · m² Σq²), and n² Σp² / 2 and m² Σq² / 2 within them. The pairs within a
    small file are few, and may have been more: five standard errors and a dozen.
    """
    (a, often_a), (b, often_b) = distinct(p), distinct(q)
    _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    across = float(np.sum(often_a[i] * often_b[j].astype(float)))
    within = [float(np.sum(c * (c - 1.0) / 2)) for c in (often_a, often_b)]
    allowed = 0.0
    if max(within) > 0:
        most = [pairs + 5 * math.sqrt(pairs) + 12 for pairs in within]
        allowed = 2 * math.sqrt(most[0] * most[1])
        allowed += 6 * math.sqrt(allowed + across)
    # a few values that come often, such as a cell without a value, may well do so in a small file
    if i.size < MANY or across < allowed + max(MANY, 0.02 * min(len(p), len(q))):
        return None
    return f"{i.size:,} of {a.size:,} different outputs on the first input are among those on the second"


def may_coincide(rows: Sequence[str]) -> bool:
    """Whether independent draws may well give these rows again, one by one: their chance is above 1e-6.

    Two draws are equal with probability s = Σ p², estimated without bias, so all n are with sⁿ. If every
    value stands in one block, as in a sorted file, the k counts are compared: two multinomial
    vectors are equal with probability (4πn)^(−(k−1)/2) / √(p₁ … p_k), about.
    """
    n, counts = len(rows), np.array(list(Counter(rows).values()), dtype=float)
    if n < 2:
        return True
    equal = float(np.sum(counts * (counts - 1)) / (n * (n - 1)))
    chance = equal**n
    if 1 + sum(a != b for a, b in itertools.pairwise(rows)) == counts.size:
        blocks = (counts.size - 1) * math.log(4 * math.pi * n) + float(np.sum(np.log(counts / n)))
        chance = max(chance, math.exp(-blocks / 2))
    return equal > 0 and chance > 1e-6


def labels_like(p: Outputs, q: Outputs) -> str | None:
    """A sentence if one side looks like labels, 0 or 1, of scores on the other; else None."""
    if len(p) != len(q) or not (p.is_plain and q.is_plain) or len(p) < MANY:
        return None
    if p.numbers.shape[1] != 1 or q.numbers.shape[1] != 1:
        return None
    binary = [bool(np.isin(side.numbers, (0, 1)).all()) for side in (p, q)]
    many = [np.unique(side.numbers).size for side in (p, q)]
    if binary[0] == binary[1] or many[binary.index(True)] != 2 or max(many) < MANY:
        return None
    scores, labels = ("first", "second") if binary[1] else ("second", "first")
    return (
        f"the outputs on the {labels} input are all 0 or 1, and there is one for each of many different "
        f"numbers on the {scores}: are they labels of scores? Then give the scores of one label and "
        "those of the other: scores[labels == 1] and scores[labels == 0]"
    )


def repeated_rows(p: Outputs, q: Outputs) -> tuple[str, bool] | None:
    """A sentence if rows seem to be copied, as by a faulty join, and whether that is beyond doubt.

    Let f_k be how many distinct outputs come exactly k times on a side. For independent draws from any
    distribution at all, k!·f_k is (up to a factor c^k) the k-th moment of a measure, hence log-convex:
    (k! f_k)² ≤ (k−1)! f_{k−1} · (k+1)! f_{k+1} on average. Copies break this: rows that all come five
    times have f₅ > 0 and f₄ = f₆ = 0. Where outputs are few and come often, as counts do, all of them
    come a multiple of five times: see `_multiples`.
    """
    seen = {"first": distinct(p), "second": distinct(q)}
    for name, (values, counts) in seen.items():
        if (k := copied(counts)) is not None:
            again = int(np.count_nonzero(counts > 1))
            sentence = (
                f"{again:,} different outputs on the {name} input come more than once, digit for digit "
                f"({counts.sum():,} rows, {values.size:,} different ones), too many of them exactly {k} "
                "times for independent draws"
            )
            return sentence, True
    divisors, chance = _multiples([counts for _, counts in seen.values()])
    if chance > _DOUBTED:
        return None
    parts = [
        f"each of the {seen[name][0].size:,} different outputs on the {name} input comes {divisor} times "
        "or a multiple of that"
        for name, divisor in zip(seen, divisors, strict=True)
        if divisor > 1
    ]
    rare = f"independent draws do so with a probability of {chance:.1g} at most"
    return f"{', and '.join(parts)} ({rare})", chance < _REFUSED


def _multiples(counts: Sequence[IntArray]) -> tuple[list[int], float]:
    """The greatest common divisor of the counts of each side, and the chance of such divisors.

    All of K counts of independent draws are multiples of 2 with probability 2^−(K−1) at most, and of a
    larger number with 3^−(K−1), whatever the distribution: the last count follows from the others. (Of
    c ≥ 5 the probability is above c^−(K−1) where outputs come c times on average.) A side has no divisor,
    2 or a larger one: eight cases of two sides.
    """
    divisors = [int(np.gcd.reduce(often)) for often in counts]
    bits = sum((o.size - 1) * math.log(min(c, 3)) for o, c in zip(counts, divisors, strict=True))
    return divisors, min(1.0, 8 * math.exp(-bits))


def one_sided_repeats(p: Outputs, q: Outputs) -> tuple[str, bool] | None:
    """A sentence if outputs repeat on one side and never occur on the other, and if that suggests copies.

    A discrete mechanism shares its values between neighbouring inputs, has them on a lattice, or has so
    few that hardly one comes only once. For copied rows none of these holds: that is a sign, no proof. A
    small support that the other input does not share is a violation unless rows were copied: it is noted
    and not doubted. None where there is nothing to say.
    """
    seen = distinct(p), distinct(q)
    for k, (name, side) in enumerate((("first", p), ("second", q))):
        values, counts = seen[k]
        again, other = values[counts > 1], seen[1 - k][0]
        if again.size >= MANY and np.isin(again, other).mean() < 0.01 and not _lattice(side):
            small_support = np.count_nonzero(counts == 1) < 0.01 * len(side)
            return (
                f"{again.size:,} outputs on the {name} input come more than once, digit for digit, and "
                "hardly one of them on the other input: were rows copied? Every guarantee assumes that "
                "each is a run of its own",
                not small_support,
            )
    return None


def _lattice(side: Outputs) -> bool:
    """Whether the numbers of every column are multiples of a step apart, as rounded ones are."""
    for column in range(side.numbers.shape[1]):
        values = np.unique(side.value_of(column)[:20_000])
        if values.size < 3:
            continue
        gaps = np.diff(values)
        step, size = float(gaps.min()), max(float(np.abs(values).max()), 1e-300)
        multiples = gaps / step
        allowed = 1e-3 + 1e-15 * size / step * multiples
        if step < 1e-14 * size or np.any(np.abs(multiples - np.round(multiples)) > allowed):
            return False
    return True
