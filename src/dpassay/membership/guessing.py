"""Which coins are guessed, from which part of the canaries, and at which share of the error probability.

Learned numbers of guesses: a random quarter of the canaries decides how many of the rest to guess, and
the rest is tested. `one_run` says why that holds.

Groups: given the coins of all others, those of a group are fair and independent and the run is a
mechanism of them alone. So the bounds hold for the canaries of a group by themselves. Half of the error
probability is for all canaries together, and the groups have equal parts of the other half: all
statements hold at once (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from dpassay import validation as checks
from dpassay.bounds import binomial_limits as clopper_pearson
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.errors import InvalidInput
from dpassay.membership.runs import FEWEST, Run, refuse_unfair
from dpassay.privacy.claims import Claim
from dpassay.sampling.draw import stream

#: How many to guess: a number, (to be included, to be left out), several of these, or None to learn it.
Guesses: TypeAlias = int | tuple[int, int] | Sequence[int | tuple[int, int]] | None
#: How many are guessed to be included, and to be left out.
Sides: TypeAlias = tuple[int, int]

#: The address of the quarter that learns.
_SPLIT = 1 << 24
#: The share of the canaries that decides how many of the others to guess.
_LEARN = 0.25
#: What it can choose: shares guessed to be included and to be left out, together at least AT_LEAST.
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
AT_LEAST = 0.02
#: The largest part of the error probability that δ may cost learned guesses.
_COSTLY = 0.25
#: Shares guessed to be included and to be left out where none can be learned, and the share of the error
#: probability of each. Some scores, such as losses, tell on one side alone.
_PAID = (
    (0.25, 0.25, 0.3),
    (0.075, 0.075, 0.3),
    (0.025, 0.025, 0.3),
    (0.15, 0.0, 0.05),
    (0.0, 0.15, 0.05),
)
#: Why ε at a δ differs a little beside a curve.
_FIXED = (
    "a curve needs numbers of guesses that are fixed beforehand; without it, or for one (ε, δ), they are "
    "learned, so that the certified ε is another"
)
#: The share of the error probability that groups have together.
_OF_GROUPS = 0.5


@dataclass(frozen=True, eq=False)
class Test:
    """What was guessed, and the share of the error probability it is tested at."""

    guessed: Guessed
    counts: tuple[int, int, int, int]  # included canaries guessed and in all, left out likewise
    share: float
    above: bool  # whether `counts` are of the highest scores, or of the lowest
    #: In the first run: the lowest score guessed to be included, the highest guessed to be left out.
    thresholds: tuple[float | None, float | None]
    perfect: Guessed  # of the best attack
    group: str = ""  # "" for all canaries

    @property
    def words(self) -> str:
        g = self.guessed
        of = f" of group {self.group}" if self.group else ""
        return f"{g.guesses:,} guesses about {g.canaries:,} canaries{of}"


def tests_of(
    runs: list[Run], claim: Claim, guesses: Guesses, gamma: float, seed: int
) -> tuple[list[Test], list[str]]:
    """The tests, those of all canaries first, and notes about them."""
    names = sorted({str(name) for run in runs for name in np.unique(run.groups)} - {""})
    whole = 1 - _OF_GROUPS if names else 1.0
    parts = [("", whole, runs)] + [
        (name, (1 - whole) / len(names), [run[run.groups == name] for run in runs])
        for name in names
    ]
    made: list[Test] = []
    notes: list[str] = []
    for name, share, part in parts:
        of = [len(run) for run, some in zip(runs, part, strict=True) if len(some)]
        found, said = _tests(
            [some for some in part if len(some)], of, claim, guesses, share * gamma, seed
        )
        refuse_unfair(*found[0].counts[1::2], name)
        made += [replace(one, share=share * one.share, group=name) for one in found]
        notes = notes or said
    if names:
        notes.append(
            "half of the error probability is for all canaries together, the other half for the "
            f"{len(names)} groups in equal parts: all bounds hold at once, and ε is at least the largest "
            "of them"
        )
    return made, notes


def _tests(
    runs: list[Run], of: list[int], claim: Claim, guesses: Guesses, gamma: float, seed: int
) -> tuple[list[Test], list[str]]:
    """The tests of a part of the canaries, `of` so many in each run; and notes about them."""
    if guesses is None and claim.point is not None:
        test, note = _learned(runs, gamma, seed)
        delta = claim.point[1]
        if delta == 0 or bounds.price(test.guessed, 0.0, delta) <= _COSTLY * gamma:
            return [test], [note]
    learnable = guesses is None and claim.point is None
    listed = _fixed(runs, of, guesses)
    return [_test(runs, sides, share) for sides, share in listed], [_FIXED] * learnable


def _test(
    runs: Sequence[Run], sides: Sequence[Sides], share: float, *, least: int = 0, most: int = 0
) -> Test:
    """Guess so many of the highest to be included and of the lowest to be left out, in every run."""
    right, wrong, counts = 0, 0, np.zeros(4, dtype=int)
    for run, (top, bottom) in zip(runs, sides, strict=True):
        coins = run.coins
        high, low = coins[:top], coins[len(coins) - bottom :]
        right += int(np.count_nonzero(high) + np.count_nonzero(~low))
        wrong += max(top - int(coins.sum()), bottom - int((~coins).sum()), 0)  # by any attack
        guessed = high if top else low
        counts += (guessed.sum(), coins.sum(), (~guessed).sum(), (~coins).sum())
    canaries, made = sum(map(len, runs)), sum(top + bottom for top, bottom in sides)
    p, n, q, m = map(int, counts)
    found = Guessed(canaries, made, right, least, most)
    best = replace(found, right=made - wrong)
    (top, bottom), scores = sides[0], runs[0].scores
    thresholds = scores[top - 1] if top else None, scores[-bottom] if bottom else None
    return Test(found, (p, n, q, m), share, max(sides)[0] > 0, thresholds, best)


def _strength(guessed: Guessed) -> float:
    """What guesses show of ε without δ, about."""
    return float(clopper_pearson.lower(guessed.right, guessed.guesses, 0.05))


def _fixed(runs: list[Run], of: list[int], guesses: Guesses) -> list[tuple[list[Sides], float]]:
    """How many are guessed on either side in every run, and the share of the error probability of each.

    Numbers are of a whole run; a part of it has its share of them.
    """
    if guesses is None:
        return [
            ([(max(a > 0, round(a * len(r))), max(b > 0, round(b * len(r)))) for r in runs], share)
            for a, b, share in _PAID
        ]
    alone = isinstance(guesses, (int, np.integer, tuple, float, str))
    several = [guesses] if alone else checks.listed("guesses", guesses)
    if not several:
        raise InvalidInput("guesses must name a number of guesses, got an empty list")

    def part(n: int, run: Run, whole: int) -> int:
        return max(n > 0, n * len(run) // whole)

    return [
        (
            [
                (part(top, run, m), part(bottom, run, m))
                for run, m in zip(runs, of, strict=True)
                for top, bottom in [_sides(one, m)]
            ],
            1 / len(several),
        )
        for one in several
    ]


def _sides(given: Any, canaries: int) -> Sides:
    """How many are guessed to be included and to be left out."""
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InvalidInput(
                f"a tuple of guesses is (to be included, to be left out), got {checks.shown(given)}; "
                "several numbers of guesses are a list"
            )
        top, bottom = (checks.whole("guesses", one, at_least=0) for one in given)
    else:
        total = checks.whole("guesses", given, remedy="as many as there are canaries at most")
        if total % 2:
            raise InvalidInput(
                f"guesses must be even, half of them on either side, got {total}; say how many on each: "
                f"({total - total // 2}, {total // 2}) (--guesses {total - total // 2}+{total // 2})"
            )
        top = bottom = total // 2
    if not 1 <= top + bottom <= canaries:
        raise InvalidInput(
            f"guesses must be at least 1 and at most the {canaries:,} canaries of the run, got "
            f"{checks.shown(given)}"
        )
    return top, bottom


def _learned(runs: list[Run], gamma: float, seed: int) -> tuple[Test, str]:
    """Choose on a random quarter of the canaries how many of the rest to guess; and a note about it.

    So few that all of them being right would refute nothing are not considered, if more can be guessed.
    """
    learn, rest = [], []
    for k, run in enumerate(runs):
        if len(run) < FEWEST:
            raise InvalidInput(
                f"{len(run)} canaries are too few to learn from how many to guess; give guesses = "
                f"{2 * (len(run) // 2) or (1, 0)}"
            )
        quarter = np.zeros(len(run), dtype=bool)
        chosen = stream(seed, _SPLIT, k).permutation(len(run))[: max(1, round(_LEARN * len(run)))]
        quarter[chosen] = True
        learn.append(run[quarter])
        rest.append(run[~quarter])
    options = [(a, b) for a in SHARES for b in SHARES if a + b >= AT_LEAST]

    def sides(parts: list[Run], option: tuple[float, float]) -> list[Sides]:
        """How many are guessed in each run: at least one if the share is not 0."""
        a, b = option
        return [
            (max(a > 0, math.floor(a * len(p))), max(b > 0, math.floor(b * len(p)))) for p in parts
        ]

    made = np.array([sum(map(sum, sides(rest, option))) for option in options])
    able = gamma ** (1 / made) > 0.5
    if able.any():
        options, made = [options[k] for k in np.flatnonzero(able)], made[able]
    tried = [_test(learn, sides(learn, option), 1.0).guessed for option in options]
    # the bound that the rest would give if its guesses were right as often
    rate = np.array([(one.right + 0.5) / (one.guesses + 1) for one in tried])
    best = options[int(np.argmax(clopper_pearson.lower(rate * made, made, gamma)))]
    test = _test(rest, sides(rest, best), 1.0, least=int(made.min()), most=int(made.max()))
    ideal = max((_test(rest, sides(rest, o), 1.0).perfect for o in options), key=_strength)
    test = replace(test, perfect=replace(test.guessed, guesses=ideal.guesses, right=ideal.right))
    return test, (
        f"how many to guess was learned on a random quarter, {sum(map(len, learn)):,} canaries. The "
        "result depends on the seed: fix it before looking. With guesses fixed beforehand it does not"
    )
