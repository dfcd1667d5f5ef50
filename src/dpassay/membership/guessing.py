"""The canaries of training runs, read and checked once, and the guesses of their coins.

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
from functools import cache, cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit, ndtr

from dpassay import validation as checks
from dpassay._typing import AnyArray, BoolArray, FloatArray, IntArray
from dpassay.bounds import binomial_limits as clopper_pearson
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.errors import InvalidInput
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
#: Why ε at a δ differs a little beside a curve.
_FIXED = (
    "for a curve the numbers of guesses are fixed beforehand. For a claim of one (ε, δ) they are learned "
    "from the scores, so the certified ε differs a little"
)
#: The share of the error probability that groups have together.
_OF_GROUPS = 0.5


#: The address of the order among equal scores.
_TIES = 1 << 23
#: Standard deviations from a half that fair coins do not reach (probability 1e-9 at most).
_UNFAIR = 6.6
#: Coins that fair ones do not repeat (probability 1e-13 at most with a million canaries).
_REPEATED = 64
#: With fewer canaries than this none are learned from, and they make no group.
FEWEST = 8
#: With fewer canaries than this, exactly half being included is no reason for doubt.
FEW = 20
#: A coincidence that is rarer than this is a reason for doubt.
_RARE = 1e-3
#: What scores must be, and what to do about one that is missing.
_SCORES = (
    "one number a canary",
    "every canary needs a score: give those that could not be scored one that does not depend on the "
    "coin, such as that of the canary which seems least to have been included",
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
        read, coins = read_scores("scores", s, *_SCORES), _coins(c)
        for name, column in zip(list(given)[1:], (coins, *labels), strict=True):
            if len(column) != len(read):
                of = f" of run {k + 1}" if several else ""
                raise InvalidInput(
                    f"scores{of} has {len(read):,} canaries and {name} has {len(column):,}; give one of "
                    "each a canary, in the same order"
                )
        names = _labels(labels[0]) if labels else np.full(len(read), "")
        runs.append(Run(read, coins, names, len(read)))
    refuse_shared_coins([run.coins for run in runs])
    return runs


def refuse_shared_coins(runs: Sequence[AnyArray]) -> None:
    """Refuse runs with the same coins in the same order."""
    for k, coins in enumerate(runs):
        if len(coins) > FEW and any(np.array_equal(coins, other) for other in runs[:k]):
            raise InvalidInput(
                f"run {k + 1} has the coins of a run before it; every run needs coins of its own: draw "
                "them with dp.Canaries and another seed"
            )


def shared_number(included: Sequence[int], canaries: Sequence[int]) -> str:
    """A doubt about runs that all have the same number of included canaries; empty without doubt.

    Runs with the same coins in another order do. R runs of m canaries with coins of their own do with
    probability about (πm)^(−(R − 1)/2).
    """
    same = len({*included}) == len({*canaries}) == 1 and included[0] > 0
    if not same or (math.pi * canaries[0]) ** (-(len(included) - 1) / 2) >= _RARE:
        return ""
    return (
        f"{included[0]:,} of {canaries[0]:,} canaries are included in every one of the "
        f"{len(included)} runs: if they share their coins, or a number of canaries was chosen, the "
        "result does not hold; draw coins for each run with dp.Canaries and another seed"
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
        detach = "; call .detach() on it" if getattr(given, "requires_grad", False) else ""
        raise InvalidInput(f"{name} must be numbers, got {checks.shown(given)}{detach}") from None
    if array.ndim != 1 or not array.size:
        runs = f"; give several runs as a list of arrays: list({name})" if array.ndim == 2 else ""
        raise InvalidInput(f"{name} must be {needed}, got an array of shape {array.shape}{runs}")
    if np.isnan(array).any():
        at = int(np.flatnonzero(np.isnan(array))[0])
        raise InvalidInput(f"{name}[{at}] is NaN; {without}")
    return array


def _coins(given: Any) -> BoolArray:
    array = np.asarray(given)
    if array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all():
        array = array.astype(bool)
    if array.ndim != 1 or array.dtype.kind != "b":
        raise InvalidInput(
            f"included must be True or False (or 1 or 0) for each canary, got {checks.shown(given)}"
        )
    heads = int(np.count_nonzero(array))
    if abs(2 * heads - len(array)) > _UNFAIR * math.sqrt(len(array)):
        raise InvalidInput(
            f"included is True for {heads:,} of {len(array):,} canaries, which fair coins do not do; the "
            "test needs a fair coin for each canary: draw them with dp.Canaries"
        )
    coins = np.asarray(array, dtype=bool)
    start = coins[:_REPEATED]
    if 0 < start.sum() < _REPEATED and (again := coins.tobytes().find(start.tobytes(), 1)) > 0:
        raise InvalidInput(
            f"included begins anew after {again:,} canaries with the same {_REPEATED} coins: are these "
            "several runs? Every run needs coins of its own, and is given as an array of its own in a "
            "list (--run on the command line)"
        )
    return coins


def _labels(given: Any) -> AnyArray:
    """A label a canary, as text; small groups are refused."""
    listed = np.asarray(given, dtype=object)
    if listed.ndim != 1 or any(one is None or one != one for one in listed):
        raise InvalidInput(f"groups (--group): one label a canary, got {checks.shown(given)}")
    names = listed.astype(str)
    for name, often in zip(*np.unique(names, return_counts=True), strict=True):
        if often < FEWEST:
            raise InvalidInput(
                f"group {str(name)!r} has {often} canaries in a run, and {FEWEST} are the fewest; join "
                "small groups (--group) before looking at the scores"
            )
    return names


def _refuse_unfair(heads: int, tails: int, group: str) -> None:
    """Refuse canaries of a group ("" for all) that no coins, or no fair ones, can have divided."""
    if heads and tails and abs(heads - tails) <= _UNFAIR * math.sqrt(heads + tails):
        return
    of = f" of group {group!r}" if group else ""
    remedy = "groups (--group) must not depend on the coins; small ones can be joined beforehand"
    raise InvalidInput(
        f"{heads:,} of the {heads + tails:,} canaries{of} that are tested were included, which leaves no "
        f"fair coins to guess; {remedy if group else 'draw those of more canaries with dp.Canaries'}"
    )


def coin_notes(runs: Sequence[Run]) -> tuple[list[str], bool]:
    """What the bounds assume of the coins, in words; and whether the coins look as if they were chosen.

    Exactly half of the canaries in one block: that is what taking the first half gives. A sorted file of
    fair coins looks the same with a probability of about √(2/πm). Many distinct rows of score and coin,
    all of them k, 2k … times, k ≥ 2: that is what k copies of a file give, and ties by chance do not.
    """
    said = ["it assumes that a fair coin of its own included each canary or left it out"]
    often = [np.unique(np.array([r.scores, r.coins]), axis=1, return_counts=True)[1] for r in runs]
    if copied := [n for n in often if len(n) >= FEW and np.gcd.reduce(n) > 1]:
        times = f"every row of score and coin occurs {np.gcd.reduce(copied[0])} times or a multiple of it"
        said.append(f"{times}: copies share a coin, and the result does not hold; leave them out")
    number = shared_number([int(r.coins.sum()) for r in runs], [len(r) for r in runs])
    said += [number] if number else []
    doubted = bool(copied or number)
    half = [c for c in (r.coins for r in runs) if len(c) >= FEW and 2 * c.sum() == len(c)]
    if not half:
        return said, doubted
    chosen = any(np.count_nonzero(c[1:] != c[:-1]) == 1 for c in half)
    where = " and they stand in one block" if chosen else ""
    said.append(
        f"exactly half of the canaries are included{where}: if half were taken, the coins are not "
        "independent and the result does not hold; draw coins with dp.Canaries"
    )
    return said, chosen or doubted


def ranked(run: Run, seed: int, k: int) -> Run:
    """The canaries by falling score, and of equal scores at random: rows may be sorted by the coins."""
    mixed = stream(seed, _TIES, k).permutation(len(run))
    return run[mixed[np.argsort(-run.scores[mixed], kind="stable")]]


def placed(run: Run) -> Run:
    """The ranked canaries with their places, from 1 to 0, as scores: those of runs are comparable."""
    return replace(run, scores=1 - (np.arange(len(run)) + 0.5) / len(run))


def is_reversed(runs: Sequence[Run]) -> bool:
    """Whether included canaries score lower than chance allows (the test of Mann & Whitney)."""
    total = spread = 0.0
    for run in runs:
        m, heads = len(run), int(run.coins.sum())
        places = np.flatnonzero(run.coins).sum()  # 0 is the highest score
        total += places - heads * (m - 1) / 2
        spread += heads * (m - heads) * (m + 1) / 12
    return total > _UNFAIR * math.sqrt(spread) > 0


# --- what is guessed


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
            "half of the error probability is for all canaries together, the other half for the "
            f"{len(names)} groups in equal parts: all bounds hold at once, and ε is at least the largest "
            "of them"
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
    _refuse_unfair(*made[0].counts[1::2], group)
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


@dataclass(frozen=True)
class Learner:
    """How the canaries that learn choose the numbers of guesses of the rest; of their numbers alone.

    So few guesses that all of them being right would refute nothing are not considered, if more can be
    made. All others are options, and the one with the largest predicted bound is chosen. Predicted are
    as many right guesses as the quarter had, apart from those that are wrong by force: if more are
    guessed to be included than are, any attack is wrong. The quarter's are known; in the rest
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
        """How many of them are wrong by force, in expectation."""
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
        """Right guesses about m canaries by each option, and how many are wrong by force.

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
    """`_heads` of simulated runs whose scores are the coins, each turned with probability 1 − p."""
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
        "result depends on the seed: fix it before looking. With guesses fixed beforehand it does not"
    )
