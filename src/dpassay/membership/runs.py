"""Scores, coins and groups of the canaries of training runs: read and checked once, and ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray, BoolArray, FloatArray
from dpassay.errors import InvalidInput
from dpassay.sampling.draw import stream

#: The address of the order among equal scores.
_TIES = 1 << 23
#: Standard deviations from a half that fair coins do not reach (probability 1e-9 at most), and hardly
#: reach (2e-4).
_UNFAIR, _UNEVEN = 6.6, 3.7
#: Standard errors by which scores seem to have the wrong sign, and the shares of them that are looked at.
_REVERSED, _TAILS = 4.0, (0.02, 0.05, 0.1, 0.2)
#: Coins that fair ones do not repeat (probability 2e-13 at most with a million canaries).
_REPEATED = 64
#: With fewer canaries than this none are learned from, and they make no group.
FEWEST = 8
#: With fewer canaries than this, exactly half being included is no reason for doubt.
FEW = 20
#: A coincidence that is rarer than this is a reason for doubt.
_RARE = 1e-3
#: What scores must be, and what to do about one that is missing.
SCORES = (
    "one number a canary",
    "every canary needs a score. Where none can be computed, give a value that does not depend on the "
    "coin, such as the lowest of all scores",
)


@dataclass(frozen=True, eq=False)
class Run:
    """The canaries of a run, or some of them."""

    scores: FloatArray
    coins: BoolArray
    groups: AnyArray  # a label each; all of them "" without groups
    whole: int  # canaries of the whole run

    def __len__(self) -> int:
        return len(self.coins)

    def __getitem__(self, chosen: AnyArray) -> Run:
        return Run(self.scores[chosen], self.coins[chosen], self.groups[chosen], self.whole)


def read_runs(scores: Any, included: Any, groups: Any = None) -> list[Run]:
    """Scores, coins and groups of each run, as they were given."""
    several = is_several(scores)
    given = {"scores": scores, "included": included}
    if groups is not None:
        given["groups"] = groups
    if len({is_several(one) for one in given.values()}) > 1:
        raise InvalidInput(
            f"{' and '.join(given)} must all be arrays, or all lists of arrays, one a run"
        )
    columns = list(given.values()) if several else [[one] for one in given.values()]
    counts = [len(one) for one in columns]
    if len(set(counts)) > 1:
        of = " and ".join(f"{name} of {n}" for name, n in zip(given, counts, strict=True))
        raise InvalidInput(f"there are {of} runs; give all of each run")
    runs: list[Run] = []
    for k, (s, c, *labels) in enumerate(zip(*columns, strict=True)):
        read, coins = read_scores("scores", s, *SCORES), _coins(c)
        labels = [_labels(one) for one in labels]
        for name, column in zip(list(given)[1:], (coins, *labels), strict=True):
            if len(column) != len(read):
                of = f" of run {k + 1}" if several else ""
                raise InvalidInput(
                    f"scores{of} has {len(read):,} canaries and {name} has {len(column):,}; give one of "
                    "each a canary, in the same order"
                )
        names = labels[0] if labels else np.full(len(read), "")
        runs.append(Run(read, coins, names, len(read)))
    refuse_shared_coins([run.coins for run in runs])
    return runs


def refuse_shared_coins(runs: Sequence[AnyArray]) -> None:
    """Refuse runs with the same coins in the same order, or with the opposite ones."""
    for k, coins in enumerate(runs):
        for other in runs[:k] if len(coins) > FEW else ():
            agree = np.count_nonzero(coins == other) if len(coins) == len(other) else -1
            if agree in (0, len(coins)):
                what = "" if agree else ", all negated: it includes what that one leaves out"
                raise InvalidInput(
                    "draw coins for each run with dp.Canaries and another seed: run "
                    f"{k + 1} has the coins of a run before it{what}"
                )


def shared_number(included: Sequence[int], canaries: Sequence[int]) -> str:
    """A doubt about runs that all include, or leave out, the same number of canaries; else empty.

    Runs with the same or the opposite coins in another order do. R runs of m canaries with coins of
    their own include the same number with probability about (πm)^(−(R − 1)/2), and include or leave it
    out with probability about (πm/4)^(−(R − 1)/2).
    """
    m, one = canaries[0], included[0]
    same = len({*canaries}) == 1 and one > 0 and {*included} <= {one, m - one}
    negated = len({*included}) > 1
    if not same or (math.pi * m / (4 if negated else 1)) ** (-(len(included) - 1) / 2) >= _RARE:
        return ""
    return (
        f"{one:,} of {m:,} canaries are included {'in, or left out of,' if negated else 'in'} every one "
        f"of the {len(included)} runs: if they share their coins, or a number of canaries was chosen, "
        "the result does not hold; draw coins for each run with dp.Canaries and another seed"
    )


def is_several(given: Any) -> bool:
    """Whether this is a list of arrays, one a run."""
    if not isinstance(given, (list, tuple)) or not len(given):
        return False
    return isinstance(given[0], (list, tuple)) or getattr(given[0], "ndim", 0) > 0


def read_scores(name: str, given: Any, needed: str, without: str) -> FloatArray:
    """One score each; `needed` says of what, `without` what to do about one that is missing."""
    try:
        array = np.asarray(given, dtype=float)
    except Exception:  # an object may raise anything
        hint = "; call .detach() on it" if getattr(given, "requires_grad", False) else ""
        if "bfloat16" in str(getattr(given, "dtype", "")):
            hint += "; call .float() on it: NumPy has no bfloat16"
        raise InvalidInput(f"{name} must be numbers, got {checks.shown(given)}{hint}") from None
    array = _column(array)
    if array.ndim != 1 or not array.size:
        runs = f"; give several runs as a list of arrays: list({name})" if array.ndim == 2 else ""
        raise InvalidInput(f"{name} must be {needed}, got an array of shape {array.shape}{runs}")
    if np.isnan(array).any():
        at = int(np.flatnonzero(np.isnan(array))[0])
        raise InvalidInput(f"{name}[{at}] is NaN; {without}")
    return array


def _column(array: AnyArray) -> AnyArray:
    """A column of shape (m, 1) as an array of shape (m,)."""
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _coins(given: Any) -> BoolArray:
    array = _column(np.asarray(given))
    if array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all():
        array = array.astype(bool)
    if array.ndim != 1 or array.dtype.kind != "b":
        cells = enumerate(array.tolist() if array.ndim == 1 else ())
        odd = next((f"included[{k}] = {v!r}" for k, v in cells if v not in (0, 1)), "")
        raise InvalidInput(
            "included must be True or False (or 1 or 0) for each canary, got "
            f"{odd or checks.shown(given)}"
        )
    heads = int(np.count_nonzero(array))
    if abs(2 * heads - len(array)) > _UNFAIR * math.sqrt(len(array)):
        raise InvalidInput(
            "draw a fair coin for each canary with dp.Canaries: included is True for "
            f"{heads:,} of {len(array):,} canaries, which fair coins do not do"
        )
    coins = np.asarray(array, dtype=bool)
    start = coins[:_REPEATED]
    if (
        0 < start.sum() < _REPEATED
        and (again := max(coins.tobytes().find(some.tobytes(), 1) for some in (start, ~start))) > 0
    ):
        raise InvalidInput(
            "give several runs as a list of arrays (--run), each with coins of its own: included begins "
            f"anew after {again:,} canaries with the same {_REPEATED} coins, or with all of them negated"
        )
    return coins


def _labels(given: Any) -> AnyArray:
    """A label a canary, as text; small groups are refused."""
    listed = _column(np.asarray(given, dtype=object))
    if listed.ndim != 1:
        raise InvalidInput(f"groups (--group): one label a canary, got {checks.shown(given)}")
    if missing := [k for k, one in enumerate(listed) if one is None or one != one]:
        raise InvalidInput(
            f"groups (--group): one label a canary, and {len(missing):,} have none, the first at "
            f"groups[{missing[0]}] = {listed[missing[0]]!r}; give these a label of their own"
        )
    try:
        names = listed.astype(str)
    except Exception:  # any object may raise
        raise InvalidInput(
            f"groups (--group): labels must be text or numbers, got {checks.shown(given)}"
        ) from None
    for name, often in zip(*np.unique(names, return_counts=True), strict=True):
        if often < FEWEST:
            raise InvalidInput(
                "join small groups (--group) before looking at the scores: group "
                f"{str(name)!r} has {often} canaries in a run, and {FEWEST} are the fewest"
            )
    return names


def refuse_unfair(heads: int, tails: int, group: str) -> None:
    """Refuse canaries of a group ("" for all) that no coins, or no fair ones, can have divided."""
    if heads and tails and abs(heads - tails) <= _UNFAIR * math.sqrt(heads + tails):
        return
    of = f" of group {group!r}" if group else ""
    remedy = "take groups (--group) that do not depend on the coins, or join small ones"
    raise InvalidInput(
        f"{remedy if group else 'draw coins of more canaries with dp.Canaries'}: {heads:,} of the "
        f"{heads + tails:,} canaries{of} that are tested were included, and no fair coins are left"
    )


def coin_notes(runs: Sequence[Run]) -> tuple[list[str], bool]:
    """Doubts about the coins, in words; and whether the coins look as if they were chosen.

    Exactly half of the canaries in one block: that is what taking the first half gives. A sorted file of
    fair coins looks the same with a probability of about √(2/πm), and of several runs some may. Many
    distinct rows of score and coin, all of them k, 2k … times, k ≥ 2: that is what k copies of a file
    give, and ties by chance do not.
    """
    said = list[str]()
    often = [np.unique(np.array([r.scores, r.coins]), axis=1, return_counts=True)[1] for r in runs]
    if copied := [n for n in often if len(n) >= FEW and np.gcd.reduce(n) > 1]:
        times = f"every row of score and coin occurs {np.gcd.reduce(copied[0])} times or a multiple of it"
        said.append(f"{times}: copies share a coin, and the result does not hold; leave them out")
    copied_coins = any(len(r) >= FEW and np.array_equal(r.scores, r.coins) for r in runs)
    if copied_coins:
        said.append(
            "the scores are the coins themselves, 1 for included and 0 for left out: unless an attack "
            "guessed every coin from the output of the run, the result does not hold"
        )
    number = shared_number([int(r.coins.sum()) for r in runs], [len(r) for r in runs])
    said += [number] if number else []
    sums = ((int(r.coins.sum()), len(r)) for r in runs)
    uneven = next(
        (one for one in sums if abs(2 * one[0] - one[1]) > _UNEVEN * math.sqrt(one[1])), None
    )
    if uneven:
        said.append(
            f"{uneven[0]:,} of {uneven[1]:,} canaries are included, which fair coins give in fewer than "
            "1 of 5,000 runs: if the members were chosen in another way, the result does not hold"
        )
    doubted = bool(copied or copied_coins or number or uneven)
    many = [r.coins for r in runs if len(r) >= FEW]
    half = [c for c in many if 2 * c.sum() == len(c)]
    blocks = [np.count_nonzero(c[1:] != c[:-1]) == 1 for c in many]
    chosen = any(block and 2 * c.sum() == len(c) for block, c in zip(blocks, many, strict=True))
    by_chance = len(half) < len(many) and not _too_often(half, many)
    if not half or (by_chance and (all(blocks) or not chosen)):
        return said, doubted
    where = f" in {len(half)} of {len(runs)} runs" * (len(runs) > 1)
    where += " and they stand in one block" * chosen
    said.append(
        f"exactly half of the canaries are included{where}: if half were taken, the coins are not "
        "independent and the result does not hold; draw coins with dp.Canaries"
    )
    return said, chosen or doubted


def _too_often(half: Sequence[BoolArray], many: Sequence[BoolArray]) -> bool:
    """Whether fair coins rarely include exactly half of the canaries in so many of the runs."""
    chance = np.ones(1)  # of 0, 1, … such runs
    for m in map(len, many):
        one = 0.0 if m % 2 else math.sqrt(2 / (math.pi * m))  # at least what it is
        chance = np.convolve(chance, [1 - one, one])
    return bool(chance[len(half) :].sum() < _RARE)


def ranked(run: Run, seed: int, k: int) -> Run:
    """The canaries by falling score, and of equal scores at random: rows may be sorted by the coins."""
    mixed = stream(seed, _TIES, k).permutation(len(run))
    return run[mixed[np.argsort(-run.scores[mixed], kind="stable")]]


def placed(run: Run) -> Run:
    """The ranked canaries with their places, from 1 to 0, as scores: those of runs are comparable."""
    return replace(run, scores=1 - (np.arange(len(run)) + 0.5) / len(run))


def auc(x: FloatArray, y: FloatArray) -> float:
    """P(X > Y) + ½ P(X = Y) of two samples; y is sorted."""
    below = np.searchsorted(y, x, side="left") + np.searchsorted(y, x, side="right")
    return float(below.mean() / (2 * y.size))


def mean_auc(runs: Sequence[Run]) -> float | None:
    """The mean AUC of runs; None if a run has canaries of one kind alone."""
    sides = [(run.scores[run.coins], np.sort(run.scores[~run.coins])) for run in runs]
    return (
        float(np.mean([auc(x, y) for x, y in sides]))
        if all(x.size and y.size for x, y in sides)
        else None
    )


def is_reversed(runs: Sequence[Run]) -> bool:
    """Whether included canaries score lower than chance allows: all of them, or those in either tail.

    By ranks (the test of Mann & Whitney), and by how many of the highest and of the lowest scores are
    of included canaries; not if the highest are.
    """
    total = spread = 0.0
    for run in runs:
        m, heads = len(run), int(run.coins.sum())
        places = np.flatnonzero(run.coins).sum()  # 0 is the highest score
        total += places - heads * (m - 1) / 2
        spread += heads * (m - heads) * (m + 1) / 12
    if spread == 0 or total <= 0:
        return False
    shares = [share for share in _TAILS if min(map(len, runs)) * share >= 10]
    highest = [_included(runs, share) for share in shares]
    lowest = [-_included(runs, 1 - share) for share in shares]
    negated = max([total / math.sqrt(spread), *lowest, *(-z for z in highest)])
    return negated > _REVERSED and max(highest, default=0.0) < _REVERSED


def _included(runs: Sequence[Run], share: float) -> float:
    """The z-score of how many of this share of the highest scores are of included canaries."""
    more = variance = 0.0
    for run in runs:
        m, heads = len(run), int(run.coins.sum())
        k, rate = round(share * m), heads / m
        more += int(run.coins[:k].sum()) - k * rate
        variance += k * rate * (1 - rate) * (m - k) / max(m - 1, 1)
    return more / math.sqrt(variance) if variance else 0.0
