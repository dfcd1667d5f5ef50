"""Which coins are guessed, from which part of the canaries, and at which share of the error probability.

Learned numbers of guesses: a random quarter of the canaries decides how many of the rest to guess, and
the rest is tested. `one_run` says why that holds.

Groups: given the coins of all others, those of a group are fair and independent and the run is a
mechanism of them alone. So the bounds hold for the canaries of a group by themselves. The bound of
all canaries uses half of the error probability, and the groups share the other half equally: all
statements hold at once (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit, ndtr

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.bounds import clopper_pearson
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.errors import InvalidInput
from dpassay.membership.runs import FEWEST, Run, refuse_unfair
from dpassay.privacy.claims import Claim
from dpassay.rootfinding import bisect
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
#: Simulated audits for the power of learned guesses; and how far above the claim it is looked for.
_SIMULATED, _FAR = 400, 16.0
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
#: Why ε at a δ beside a curve is not the one of an audit of this ε and δ.
_FIXED = (
    "the claim is a curve: how many canaries are guessed is fixed before the scores are seen, so that "
    "the bounds on ε hold for every δ at once. An audit of one (ε, δ) chooses that number by the scores "
    "and may certify another ε"
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
    learner: Learner | None = None  # where the numbers of guesses were learned

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
    made, notes = _tests(runs, claim, guesses, whole * gamma, seed, "")
    made = [replace(one, share=whole * one.share) for one in made]
    for name in names:
        part, share = [run[run.groups == name] for run in runs], (1 - whole) / len(names)
        part = [run for run in part if len(run)]
        found, _ = _tests(part, claim, guesses, share * gamma, seed, name)
        made += [replace(one, share=share * one.share, group=name) for one in found]
    if names:
        notes.append(
            f"all bounds hold at once: the bound of all canaries uses half of the error probability, and "
            f"the {len(names)} groups share the other half equally. ε is at least the largest of them"
        )
    return made, notes


def _tests(
    runs: list[Run], claim: Claim, guesses: Guesses, gamma: float, seed: int, group: str
) -> tuple[list[Test], list[str]]:
    """The tests of all canaries or of those of a group; and notes about them."""
    made, notes = [], []
    if guesses is None and claim.point is not None:
        test, note = _learned(runs, gamma, seed)
        delta = claim.point[1]
        if delta == 0 or bounds.price(test.guessed, 0.0, delta) <= _COSTLY * gamma:
            made, notes = [test], [note]
    if not made:
        made = [_test(runs, sides, share) for sides, share in _fixed(runs, guesses)]
        notes = [_FIXED] if guesses is None and claim.point is None else []
    refuse_unfair(*made[0].counts[1::2], group)
    return made, notes


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


def _shares(runs: list[Run], top: float, bottom: float) -> list[Sides]:
    """How many are guessed on either side in each run: at least one if the share is not 0."""
    return [
        (max(top > 0, round(top * len(r))), max(bottom > 0, round(bottom * len(r)))) for r in runs
    ]


def _fixed(runs: list[Run], guesses: Guesses) -> list[tuple[list[Sides], float]]:
    """How many are guessed on either side in every run, and the share of the error probability of each.

    Numbers are of a whole run; a part of it has its share of them.
    """
    if guesses is None:
        return [(_shares(runs, top, bottom), share) for top, bottom, share in _PAID]
    alone = isinstance(guesses, (int, np.integer, tuple, float, str))
    several = [guesses] if alone else checks.listed("guesses", guesses)
    if not several:
        raise InvalidInput("guesses must name a number of guesses, got an empty list")

    def sides(given: Any, run: Run) -> Sides:
        top, bottom = (max(n > 0, n * len(run) // run.whole) for n in _sides(given, run.whole))
        return top, bottom

    return [([sides(one, run) for run in runs], 1 / len(several)) for one in several]


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
        top, bottom = total - total // 2, total // 2
    if not 1 <= top + bottom <= canaries:
        raise InvalidInput(
            f"guesses must be at least 1 and at most the {canaries:,} canaries of the run, got "
            f"{checks.shown(given)}"
        )
    if top != bottom and not isinstance(given, tuple):
        raise InvalidInput(
            f"guesses must be even, half of them on either side, got {top + bottom}; say how many on "
            f"each: ({top}, {bottom}) (--guesses {top}+{bottom})"
        )
    return top, bottom


@dataclass(frozen=True)
class Learner:
    """How the canaries that learn choose the numbers of guesses of the rest; of their numbers alone.

    So few guesses that all of them being right would refute nothing are not considered, if more can be
    made. All others are options, and the one with the largest predicted bound is chosen. Predicted are
    as many right guesses as the quarter had, apart from those that any attack would get wrong: where
    more are guessed to be included than are. The quarter's are known; in the rest
    E (r − N)₊ are expected on either side, N ~ N(m/2, m/4).
    """

    learn: tuple[int, ...]  # canaries of each run
    rest: tuple[int, ...]
    gamma: float

    @cached_property
    def options(self) -> FloatArray:
        """Shares guessed to be included and to be left out."""
        shares = np.array([(a, b) for a in SHARES for b in SHARES if a + b >= AT_LEAST])
        made = np.sum([_counts(shares, m).sum(axis=1) for m in self.rest], axis=0)
        able = self.gamma ** (1 / made) > 0.5
        return shares[able] if able.any() else shares

    def sides(self, m: int) -> IntArray:
        """How many of m canaries each option guesses on either side."""
        return _counts(self.options, m)

    @cached_property
    def made(self) -> IntArray:
        """How many guesses about the rest each option makes."""
        total: IntArray = np.sum([self.sides(m).sum(axis=1) for m in self.rest], axis=0)
        return total

    @cached_property
    def _forced(self) -> FloatArray:
        """How many of them any attack gets wrong, in expectation."""
        total = np.zeros(len(self.options))
        for m in self.rest:
            z = (2 * self.sides(m) - m) / math.sqrt(m)
            density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
            total += math.sqrt(m) / 2 * (z * ndtr(z) + density).sum(axis=1)
        return total

    def places(self, m: int) -> IntArray:
        """The numbers of highest scores whose coins an option needs to know."""
        top, bottom = self.sides(m).T
        return np.unique(np.concatenate([[0, m], top, m - bottom]))

    def _outcomes(self, m: int, heads: IntArray) -> tuple[IntArray, IntArray]:
        """Right guesses about m canaries by each option, and how many any attack gets wrong.

        `heads` are the included canaries among the highest scores, for every one of `places`.
        """
        top, bottom = self.sides(m).T
        high, low = (heads[..., np.searchsorted(self.places(m), n)] for n in (top, m - bottom))
        included = heads[..., -1:]
        forced = np.maximum(np.maximum(top - included, bottom - (m - included)), 0)
        return high + bottom - (included - low), forced

    def chosen(self, heads: Sequence[IntArray]) -> IntArray:
        """The option with the largest predicted bound."""
        found = [self._outcomes(m, one) for m, one in zip(self.learn, heads, strict=True)]
        tried = np.sum([self.sides(m).sum(axis=1) for m in self.learn], axis=0)
        right = np.sum([right + forced for right, forced in found], axis=0)
        # equal numbers of right guesses of an option have one bound
        many = len(self.made)
        codes, where = np.unique(right * many + np.arange(many), return_inverse=True)
        right_once, k = codes // many, codes % many
        predicted = (right_once + 0.5) / (tried[k] + 1) * self.made[k] - self._forced[k]
        bound = clopper_pearson.lower(np.maximum(predicted, 0.0), self.made[k], self.gamma)
        return np.asarray(np.argmax(bound[where].reshape(right.shape), axis=-1))

    @lru_cache(maxsize=256)  # noqa: B019 (few, and small)
    def detectable(self, claim: Claim) -> float:
        """About the smallest ε at which randomized response of the coins is detected 9 times in 10.

        By simulation of the choice and of the test; NaN if no ε is.
        """
        made, many = self.made, sum(self.rest)

        @cache
        def needed(guesses: int) -> float:
            guessed = Guessed(many, guesses, 0, int(made.min()), int(made.max()))
            found = bounds.fewest(claim, guessed, self.gamma)
            return math.inf if found is None else found

        def detected(epsilon: float) -> bool:
            rng, p = np.random.default_rng(0), float(expit(epsilon))
            learn, rest = (
                [_responses(rng, p, self.places(m)) for m in part]
                for part in (self.learn, self.rest)
            )
            best = self.chosen(learn)
            found = [self._outcomes(m, one)[0] for m, one in zip(self.rest, rest, strict=True)]
            right = np.sum(found, axis=0)[np.arange(len(best)), best]
            least = np.array([needed(int(n)) for n in made[best]])
            return bool(np.mean(right >= least) >= bounds.POWER)

        low = claim.value
        if not detected(low + _FAR):
            return math.nan
        return float(bisect(lambda e: not detected(e), low, low + _FAR, steps=10)[1])


def _counts(shares: FloatArray, m: int) -> IntArray:
    """These shares of m canaries, at least one where a share is not 0."""
    return np.maximum(np.floor(shares * m), shares > 0).astype(int)


def _heads(run: Run, places: IntArray) -> IntArray:
    """How many of so many highest scores are of included canaries."""
    return np.concatenate([[0], np.cumsum(run.coins)])[places]


def _responses(rng: np.random.Generator, p: float, places: IntArray) -> IntArray:
    """`_heads` of simulated runs whose scores are the coins, each inverted with probability 1 − p."""
    ones = rng.binomial(places[-1], 0.5, (_SIMULATED, 1))
    high = np.diff(np.minimum(places, ones), axis=1)
    between = rng.binomial(high, p) + rng.binomial(np.diff(places) - high, 1 - p)
    return np.concatenate([np.zeros_like(ones), np.cumsum(between, axis=1)], axis=1)


def _learned(runs: list[Run], gamma: float, seed: int) -> tuple[Test, str]:
    """Choose on a random quarter of the canaries how many of the rest to guess; and a note about it."""
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
    learner = Learner(tuple(map(len, learn)), tuple(map(len, rest)), gamma)
    made = learner.made
    best = int(learner.chosen([_heads(run, learner.places(len(run))) for run in learn]))

    def tested(k: int) -> Test:
        sides = [tuple(learner.sides(m)[k].tolist()) for m in learner.rest]
        return _test(rest, sides, 1.0, least=int(made.min()), most=int(made.max()))

    perfect = [tested(k).perfect for k in range(len(made))]
    # about what guesses show of ε without δ
    ideal = max(perfect, key=lambda one: float(clopper_pearson.lower(one.right, one.guesses, 0.05)))
    test = replace(tested(best), perfect=ideal, learner=learner)
    return test, (
        f"how many to guess was learned on a random quarter, {sum(map(len, learn)):,} canaries. The "
        "result depends on the seed: fix the seed before looking at results. A number of guesses that is "
        "fixed beforehand (guesses=, --guesses) removes this dependence"
    )
