"""Tables of bits, letters and values: the loss by how often each of them occurs on either side.

The columns are the cells of a double (`outputs.bits`) or the letters of a text (`outputs.letters`). A
column whose frequencies differ no more than chance would have it adds nothing, the others as much as
they differ beyond chance: with k values Pearson's X² of two equal distributions is about k − 1, give or
take √(2(k − 1)).
"""

from __future__ import annotations

import numpy as np

from dpassay._typing import AnyArray, IntArray
from dpassay.loss.ranking_loss import RankingLoss
from dpassay.loss.training import Training
from dpassay.outputs.bits import BITS, CELLS, COLUMNS, Bits, LowestBit, powers
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.letters import Letters
from dpassay.outputs.score_models import Polynomial, Ranking, Tables

#: Standard deviations by which X² must exceed what equal distributions have.
_BEYOND = 4.0
#: The z-score from which on a tail of lowest bits is worth a look: the search judges it like any other.
_WORTH = 2.0
#: Training draws per side beyond which frequencies learn nothing new.
_ENOUGH = 25_000


def fit_tables(name: str, training: Training) -> RankingLoss:
    """ "lowest bit", "bits" or "letters"."""
    training = training.most(_ENOUGH)
    p, q = training.p.outputs, training.q.outputs
    match name:
        case "lowest bit":
            return _lowest_bit(p, q)
        case "bits":
            features: Bits | Letters = Bits.learn(p, q)
        case _:
            features = Letters.learn(training.p.outputs.structures)
    rows = features.rows(p), features.rows(q)
    n = len(p), len(q)
    columns, codes, values, beyond = [], [], [], name != "bits"
    for column in range(rows[0].shape[1]):
        a, b = _counted(rows[0][:, column], rows[1][:, column])
        weight = _weight(a, b)
        if weight > 0:
            beyond = beyond or _beyond_values(a, b)
            own = np.flatnonzero(a + b)
            odds = np.log((a[own] + 0.5) / (n[0] + 1)) - np.log((b[own] + 0.5) / (n[1] + 1))
            columns.append(np.full(own.size, column))
            codes.append(own)
            values.append(weight * odds)
    empty = np.zeros(0, dtype=np.int64)
    model = Tables(
        np.concatenate([empty, *columns]),
        np.concatenate([empty, *codes]),
        np.concatenate([empty.astype(float), *values]),
    )
    return RankingLoss(Ranking(name, features, model), bool(columns) and beyond)


def _lowest_bit(p: Outputs, q: Outputs) -> RankingLoss:
    """The coordinate whose lowest set bits differ most."""
    width = p.numbers.shape[1]
    found = []
    for column in range(min(width, COLUMNS)):
        own = (np.asarray(side.numbers[:, column], dtype=float) for side in (p, q))
        a, b = _counted(*(powers(numbers)[0] + 1100 for numbers in own))
        found.append(_largest_z(a, b))
    column = int(np.argmax(np.abs(found)))
    z = found[column]
    name = "the output" if width == 1 else f"x{column + 1}"
    order = Polynomial(0.0, np.array([-1.0 if z > 0 else 1.0]))
    return RankingLoss(
        Ranking("lowest bit", LowestBit(column, name, len(p.structures) > 1), order),
        abs(z) > _WORTH,
    )


def _largest_z(a: IntArray, b: IntArray) -> float:
    """The z-score of the tail that differs most; positive if small values lean to the first side."""
    n, m = a.sum(), b.sum()
    below = np.cumsum(a), np.cumsum(b)
    best = 0.0
    for x, y, sign in ((*below, 1.0), (n - below[0], m - below[1], -1.0)):
        rate = (x + y) / (n + m)
        noise = np.sqrt(np.maximum(rate * (1 - rate) * (1 / n + 1 / m), 1e-300))
        # a tail with next to nothing in it has no normal limit: one draw more on the other side
        z = sign * (x / n - y / m - np.sign(x / n - y / m) / max(n, m)) / noise
        z[(x + y == 0) | (x + y == n + m)] = 0.0
        best = max(best, float(z[np.argmax(np.abs(z))]), key=abs)
    return best


def _counted(a: AnyArray, b: AnyArray) -> tuple[IntArray, IntArray]:
    """How often each value comes on either side."""
    size = int(max(a.max(initial=0), b.max(initial=0))) + 1
    return np.bincount(a, minlength=size), np.bincount(b, minlength=size)


def _weight(a: IntArray, b: IntArray) -> float:
    """1 − (what chance makes of X²)/X², 0 if X² is not beyond chance."""
    both = (a + b)[a + b > 0]
    if both.size < 2:
        return 0.0
    n, m = a.sum(), b.sum()
    x2 = float(np.sum((a[a + b > 0] * np.sqrt(m / n) - b[a + b > 0] * np.sqrt(n / m)) ** 2 / both))
    free = both.size - 1
    if x2 <= free + _BEYOND * np.sqrt(2.0 * free):
        return 0.0
    return 1 - free / x2


def _beyond_values(a: IntArray, b: IntArray) -> bool:
    """Whether lowest bits differ among numbers of one sign and size: those tell of the value alone."""
    both = np.zeros((2, CELLS - 2))
    for side, counts in zip(both, (a, b), strict=True):
        side[: counts.size] = counts[: CELLS - 2]
    first, second = both.reshape(2, -1, BITS)
    cells = first + second
    total = cells.sum(axis=1, keepdims=True)
    share = first.sum(axis=1, keepdims=True) / np.maximum(total, 1)
    spread = np.maximum(cells * share * (1 - share), 1e-300)
    mixed = (cells > 0) & (share > 0) & (share < 1)
    x2 = float(np.sum(((first - cells * share) ** 2 / spread)[mixed]))
    free = int(mixed.sum() - np.count_nonzero(mixed.any(axis=1)))
    return bool(x2 > free + _BEYOND * np.sqrt(2.0 * max(free, 1)))
