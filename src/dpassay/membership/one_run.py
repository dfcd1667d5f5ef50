"""`dpassay.one_run`: test a privacy claim by membership inference on the canaries of one training run.

A fair coin includes each canary in the training data or leaves it out. An attacker scores the canaries
and guesses coins. The guesses must be a function of the output of the run (scores under the trained model
are) and of things that the coins do not influence. Then the bounds of `bounds.one_run_test` hold, for
every number of canaries.

How many coins are guessed:

- Fixed beforehand: no correction.
- Several numbers: each is tested at its share of the error probability (Bonferroni).
- Learned: a random quarter of the canaries decides how many of the rest to guess, and the rest is tested.
  Given the coins of the quarter, those of the rest are still fair and independent and the run is a
  mechanism of them alone, so that m is the number of canaries in the rest. But the number of guesses now
  depends on the output. For ε-DP that needs no correction, since the bound holds given the output; for
  (ε, δ)-DP only the bound `averaged` holds, with its extra term for the fewest guesses that could have
  been chosen. For trade-off functions no such bound is known, and where mδ is large the term is large:
  there all canaries are used and three numbers are tested. Which it is depends on m and δ alone.

Several runs with coins of their own are together one mechanism of all their coins: right guesses add up,
and one exact test serves them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from dpassay import validation as checks
from dpassay._typing import BoolArray, FloatArray
from dpassay.bounds import binomial_limits as clopper_pearson
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.errors import InvalidInput
from dpassay.outputs.events import Event
from dpassay.privacy.claims import ApproximateDP, Claim, PureDP
from dpassay.privacy.event_claims import SMALL_DELTA, digits
from dpassay.privacy.pairs import Pair, Relation
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.blindness import far_only
from dpassay.results.estimates import SECOND, CertifiedEpsilon, LowerBound, SecondBound
from dpassay.results.rounding import number
from dpassay.results.verdict import Verdict
from dpassay.results.witness import Witness
from dpassay.sampling.draw import seed_of, stream
from dpassay.sampling.progress import claim_with_progress

#: How many to guess: a number, (to be included, to be left out), several of these, or None to learn it.
Guesses: TypeAlias = int | tuple[int, int] | Sequence[int | tuple[int, int]] | None

#: Addresses of randomness: the order among equal scores, the quarter that learns.
_TIES, _SPLIT = 1 << 23, 1 << 24
#: The share of the canaries that decides how many of the others to guess.
_LEARN = 0.25
#: What it can choose: shares guessed to be included and to be left out, together at least _AT_LEAST.
_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
_AT_LEAST = 0.02
#: The largest part of the error probability that δ may cost learned guesses.
_COSTLY = 0.25
#: Shares guessed in all, each tested at a third of the error probability, where none can be learned.
_PAID = (0.5, 0.15, 0.05)
#: Standard deviations from a half that fair coins do not reach (probability 1e-9 at most).
_UNFAIR = 6.6
#: With fewer canaries than this none are learned from.
_FEWEST = 8
#: With fewer canaries than this, exactly half being included is no reason for doubt.
_FEW = 20
#: What scores must be, and what to do about one that is missing.
_SCORES = (
    "one number a canary",
    "every canary needs a score: give those that could not be scored one that does not depend on the "
    "coin, such as the lowest of all",
)
#: The two inputs a coin decides between.
_PAIR = Pair("with the canary", "without it", Relation.ADD_REMOVE)


def one_run(
    scores: Any,
    included: Any,
    *,
    claim: Claim | str | None = None,
    guesses: Guesses = None,
    delta: float | None = None,
    confidence: float = 0.95,
    rng: Any = None,
) -> Verdict | LowerBound:
    """Test a claim, or bound ε at `delta`, by membership inference on the canaries of one training run.

    scores      one number a canary, larger if it seems to have been in the training data
    included    whether it was, by an independent fair coin each (`Canaries` draws them)
    claim       a claim about events, its text, or a privacy accountant; None for a lower bound of ε at
                `delta`
    guesses     how many coins are guessed, fixed before looking at the scores: the highest scores are
                guessed to be included, the lowest to be left out, half of the guesses each; or a tuple
                (to be included, to be left out). A list of such numbers: each is tested at its share of
                the error probability. None: learned on a part of the canaries
    delta       the δ at which ε is bounded; beside the verdict on a curve, such as an accountant's, a
                tenth of the error probability pays for that bound at δ = 10⁻⁵ if no other is given
    rng         the order of equal scores, and the canaries that learn

    Several runs, each with coins of its own: lists of arrays, and `guesses` is of each run.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1000) < 0.5
    >>> scores = included + rng.normal(size=1000)
    >>> verdict = one_run(scores, included, claim="eps=0.5, delta=1e-5", guesses=200, rng=0)
    >>> verdict.violated, round(verdict.lower_bound, 2)
    (True, 1.62)
    >>> verdict.certified.claimed, round(verdict.certified.ceiling, 2)
    (0.5, 4.19)
    """
    runs = _runs(scores, included)
    if claim is None:
        d = checks.real("delta", 0.0 if delta is None else delta, at_least=0.0, below=1.0)
        tested: Claim = ApproximateDP(0.0, d) if d else PureDP(0.0)
    else:
        tested = claim_with_progress(claim)
        if delta is not None and tested.point is not None:
            got = checks.shown(delta)
            raise InvalidInput(f"{tested} says its own δ, got delta = {got}; leave delta out")
        _check_claim(tested)
    gamma = 1.0 - checks.probability("confidence", confidence)
    seed = seed_of(rng)
    ranked = [_ranked(s, c, stream(seed, _TIES, k)) for k, (s, c) in enumerate(runs)]
    beside = (
        _beside(tested, claim, delta)
        if guesses is not None or min(map(len, ranked)) >= _FEWEST
        else None
    )
    spent = SECOND * gamma if beside else 0.0
    tests, notes = _tests(ranked, tested, guesses, gamma - spent, seed)
    if _reversed(ranked):
        notes.append(
            "scores are lower for canaries that were included, and higher scores count as evidence of "
            "inclusion; if you give −scores now, use "
            f"confidence={digits(1 - gamma / 2)}: the sign was chosen after seeing the result"
        )
    said, doubted = _coin_notes([coins for _, coins in runs])
    about = About(
        method="guesses in one run",
        guarantee=Guarantee.HEURISTIC if doubted else Guarantee.EXACT,
        units="canaries",
        seed=seed,
        notes=(*notes, *said),
    )
    total = sum(map(len, ranked))
    found = _result(tested, claim is not None, tests, gamma - spent, confidence, about, total)
    if beside is None or isinstance(found, LowerBound):
        return found
    more, _ = _tests(ranked, replace(beside, epsilon=0.0), guesses, spent, seed)
    return _with_epsilon(found, beside, more, spent, total)


def _beside(claim: Claim, given: Any, delta: float | None) -> ApproximateDP | None:
    """The ε that a curve claims at δ, which is bounded beside it; None for a claim of one ε."""
    if claim.point is not None:
        return None
    at = SMALL_DELTA if delta is None else checks.real("delta", delta, above=0.0, below=1.0)
    try:  # an accountant's own answer, which the curve made of its answers may exceed a little
        epsilon = max(float(given.get_epsilon(at)), 0.0)
    except Exception:  # objects raise what they like
        epsilon = claim.epsilon_at(at)
    return ApproximateDP(epsilon, at) if math.isfinite(epsilon) else None


def _check_claim(claim: Claim) -> None:
    if not claim.set_by_events:
        raise InvalidInput(
            f"{claim} is a claim about divergences, which guesses do not test in full; give what it "
            "implies: eps and delta, mu, or a trade-off function"
        )
    if claim.directional:
        raise InvalidInput(
            "a coin takes a canary out as well as in, and this trade-off function is claimed for one "
            "order of the inputs; make the claim without ordered=True"
        )


# --- arguments


def _runs(scores: Any, included: Any) -> list[tuple[FloatArray, BoolArray]]:
    """Scores and coins of each run."""
    several = [_several(one) for one in (scores, included)]
    if several[0] != several[1]:
        raise InvalidInput(
            "scores and included must both be arrays, or both lists of arrays, one a run"
        )
    pairs = list(zip(scores, included, strict=False)) if several[0] else [(scores, included)]
    if several[0] and len(scores) != len(included):
        raise InvalidInput(
            f"there are scores of {len(scores)} runs and coins of {len(included)}; give both of each"
        )
    runs = [(read_scores("scores", s, *_SCORES), _coins(c)) for s, c in pairs]
    for k, (s, c) in enumerate(runs):
        of = f" of run {k + 1}" if several[0] else ""
        if len(s) != len(c):
            raise InvalidInput(
                f"scores{of} has {len(s):,} canaries and included has {len(c):,}; give one of each a "
                "canary, in the same order"
            )
        if any(len(c) > 20 and np.array_equal(c, other) for _, other in runs[:k]):
            raise InvalidInput(
                f"run {k + 1} has the coins of a run before it; every run needs coins of its own: draw "
                "them with dp.Canaries and another seed"
            )
    return runs


def _several(given: Any) -> bool:
    """Whether this is a list of arrays, one a run."""
    if not isinstance(given, (list, tuple)) or not given:
        return False
    return isinstance(given[0], (list, tuple)) or getattr(given[0], "ndim", 0) > 0


def read_scores(name: str, given: Any, needed: str, without: str) -> FloatArray:
    """One score each; `needed` says of what, `without` what to do about one that is missing."""
    try:
        array = np.asarray(given, dtype=float)
    except Exception:  # an object may raise anything
        raise InvalidInput(f"{name} must be numbers, got {checks.shown(given)}") from None
    if array.ndim != 1 or not array.size:
        raise InvalidInput(f"{name} must be {needed}, got an array of shape {array.shape}")
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
    return np.asarray(array, dtype=bool)


def _coin_notes(runs: Sequence[BoolArray]) -> tuple[list[str], bool]:
    """What the bounds assume of the coins, in words; and whether the coins look as if they were chosen.

    Exactly half of the canaries in one block: that is what taking the first half gives. A sorted file of
    fair coins looks the same with a probability of about √(2/πm).
    """
    said = ["it assumes that a fair coin of its own included each canary or left it out"]
    half = [c for c in runs if len(c) >= _FEW and 2 * np.count_nonzero(c) == len(c)]
    if not half:
        return said, False
    chosen = any(np.count_nonzero(c[1:] != c[:-1]) == 1 for c in half)
    where = " and they stand in one block" if chosen else ""
    said.append(
        f"exactly half of the canaries are included{where}: if half were taken, the coins are not "
        "independent and the result does not hold; draw coins with dp.Canaries"
    )
    return said, chosen


# --- guesses


def _ranked(scores: FloatArray, coins: BoolArray, rng: np.random.Generator) -> BoolArray:
    """The coins by falling score, and of equal scores at random: rows may be sorted by the coins."""
    mixed = rng.permutation(len(scores))
    return coins[mixed[np.argsort(-scores[mixed], kind="stable")]]


def _reversed(runs: Sequence[BoolArray]) -> bool:
    """Whether included canaries score lower than chance allows (the test of Mann & Whitney)."""
    total = spread = 0.0
    for coins in runs:
        m, heads = len(coins), int(coins.sum())
        places = np.flatnonzero(coins).sum()  # 0 is the highest score
        total += places - heads * (m - 1) / 2
        spread += heads * (m - heads) * (m + 1) / 12
    return total > _UNFAIR * math.sqrt(spread) > 0


@dataclass(frozen=True, eq=False)
class _Test:
    """What was guessed, and the share of the error probability it is tested at."""

    guessed: Guessed
    counts: tuple[int, int, int, int]  # included canaries guessed and in all, left out likewise
    share: float
    above: bool  # whether `counts` are of the highest scores, or of the lowest
    most: int  # the largest number of guesses that could have been made

    @property
    def words(self) -> str:
        g = self.guessed
        return f"{g.guesses:,} guesses about {g.canaries:,} canaries"


def _test(
    runs: Sequence[BoolArray],
    sides: Sequence[tuple[int, int]],
    share: float,
    *,
    least: int = 0,
    most: int = 0,
) -> _Test:
    """Guess so many of the highest to be included and of the lowest to be left out, in every run."""
    right, counts = 0, np.zeros(4, dtype=int)
    for coins, (top, bottom) in zip(runs, sides, strict=True):
        high, low = coins[:top], coins[len(coins) - bottom :]
        right += int(np.count_nonzero(high) + np.count_nonzero(~low))
        guessed = high if top else low
        counts += (guessed.sum(), coins.sum(), (~guessed).sum(), (~coins).sum())
    canaries, made = sum(map(len, runs)), sum(top + bottom for top, bottom in sides)
    p, n, q, m = map(int, counts)
    found = Guessed(canaries, made, right, least)
    return _Test(found, (p, n, q, m), share, max(sides)[0] > 0, most or made)


def _tests(
    runs: list[BoolArray], claim: Claim, guesses: Guesses, gamma: float, seed: int
) -> tuple[list[_Test], list[str]]:
    """The tests, and notes about them."""
    if guesses is None and claim.point is not None:
        test, note = _learned(runs, claim.point[0], gamma, seed)
        delta = claim.point[1]
        if delta == 0 or bounds.price(test.guessed, 0.0, delta) <= _COSTLY * gamma:
            return [test], [note]
    listed = _fixed(runs, guesses)
    return [_test(runs, sides, 1 / len(listed)) for sides in listed], []


def _fixed(runs: list[BoolArray], guesses: Guesses) -> list[list[tuple[int, int]]]:
    """How many are guessed on either side in every run, for each number that is tested."""
    if guesses is None:
        halves = [[max(1, round(share * len(run) / 2)) for run in runs] for share in _PAID]
        listed = [[(half, half) for half in run] for run in halves]
        return [sides for k, sides in enumerate(listed) if sides not in listed[:k]]
    alone = isinstance(guesses, (int, np.integer, tuple, float, str))
    several = [guesses] if alone else checks.listed("guesses", guesses)
    if not several:
        raise InvalidInput("guesses must name a number of guesses, got an empty list")
    return [[_sides(one, len(run)) for run in runs] for one in several]


def _sides(given: Any, canaries: int) -> tuple[int, int]:
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
                f"guesses must be even, half of them on either side, got {total}; give a tuple: "
                f"({total - total // 2}, {total // 2})"
            )
        top = bottom = total // 2
    if not 1 <= top + bottom <= canaries:
        raise InvalidInput(
            f"guesses must be at least 1 and at most the {canaries:,} canaries of the run, got "
            f"{checks.shown(given)}"
        )
    return top, bottom


def _learned(runs: list[BoolArray], epsilon: float, gamma: float, seed: int) -> tuple[_Test, str]:
    """Choose on a random quarter of the canaries how many of the rest to guess; and a note about it.

    So few that all of them being right would not refute ε are not considered, if more can be guessed.
    """
    learn, rest = [], []
    for k, run in enumerate(runs):
        if len(run) < _FEWEST:
            raise InvalidInput(
                f"{len(run)} canaries are too few to learn from how many to guess; give guesses = "
                f"{2 * (len(run) // 2) or (1, 0)}"
            )
        quarter = np.zeros(len(run), dtype=bool)
        chosen = stream(seed, _SPLIT, k).permutation(len(run))[: max(1, round(_LEARN * len(run)))]
        quarter[chosen] = True
        learn.append(run[quarter])
        rest.append(run[~quarter])
    options = [(a, b) for a in _SHARES for b in _SHARES if a + b >= _AT_LEAST]

    def sides(parts: list[BoolArray], option: tuple[float, float]) -> list[tuple[int, int]]:
        """How many are guessed in each run: at least one if the share is not 0."""
        a, b = option
        return [
            (max(a > 0, math.floor(a * len(p))), max(b > 0, math.floor(b * len(p)))) for p in parts
        ]

    made = np.array([sum(map(sum, sides(rest, option))) for option in options])
    able = gamma ** (1 / made) > expit(epsilon)
    if able.any():
        options, made = [options[k] for k in np.flatnonzero(able)], made[able]
    tried = [_test(learn, sides(learn, option), 1.0).guessed for option in options]
    # the bound that the rest would give if its guesses were right as often
    rate = np.array([(one.right + 0.5) / (one.guesses + 1) for one in tried])
    best = options[int(np.argmax(clopper_pearson.lower(rate * made, made, gamma)))]
    test = _test(rest, sides(rest, best), 1.0, least=int(made.min()), most=int(made.max()))
    return test, f"how many to guess was learned on {sum(map(len, learn)):,} other canaries"


# --- results


def _evidence(
    claim: Claim, tests: list[_Test], gamma: float
) -> tuple[list[float], list[bounds.Evidence]]:
    """The level of each test, and what it shows."""
    levels = [gamma * test.share for test in tests]
    return levels, [
        bounds.evidence(claim, test.guessed, level)
        for test, level in zip(tests, levels, strict=True)
    ]


def _ceiling(claim: Claim, tests: list[_Test], levels: list[float]) -> float:
    """What perfect scores of these canaries would certify: as many guesses as possible, all right."""
    perfect = [replace(one.guessed, guesses=one.most, right=one.most) for one in tests]
    return max(map(bounds.lower_bound, repeat(claim), perfect, levels))


def _with_epsilon(
    verdict: Verdict, beside: ApproximateDP, tests: list[_Test], gamma: float, canaries: int
) -> Verdict:
    """The verdict on a curve, and the certified ε at a δ: both hold at once."""
    bounded = replace(beside, epsilon=0.0)
    levels, found = _evidence(bounded, tests, gamma)
    lower = max(one.lower_bound for one in found)
    at = f"δ = {digits(beside.delta)}"
    return replace(
        verdict,
        second=SecondBound(
            symbol="ε",
            claimed=beside.epsilon,
            lower=lower,
            smallest_detectable=min(one.detectable for one in found),
            at=at,
        ),
        certified=CertifiedEpsilon(
            epsilon=lower,
            delta=beside.delta,
            claimed=beside.epsilon,
            ceiling=_ceiling(bounded, tests, levels),
            canaries=canaries,
            confidence=verdict.confidence,
        ),
        budget=(
            *verdict.budget,
            *((f"ε at {at}: {one.words}", level) for one, level in zip(tests, levels, strict=True)),
        ),
    )


def _result(
    claim: Claim,
    claimed: bool,
    tests: list[_Test],
    gamma: float,
    confidence: float,
    about: About,
    canaries: int,
) -> Verdict | LowerBound:
    levels, found = _evidence(claim, tests, gamma)
    p_values = [one.p_value / test.share for one, test in zip(found, tests, strict=True)]
    best = max(range(len(tests)), key=lambda k: (found[k].lower_bound, -p_values[k]))
    lower = max(one.lower_bound for one in found)
    ceiling, r = max(
        (one.ceiling, of.guessed.guesses) for one, of in zip(found, tests, strict=True)
    )
    test, symbol = tests[best], claim.symbol
    m = test.guessed.canaries
    note = (
        f"the most that these canaries could have shown is {symbol} ≥ {number(ceiling)}, if all {r:,} "
        f"guesses were right ({m:,} canaries)"
    )
    certified = None
    if claim.point is not None and symbol == "ε":
        certified = CertifiedEpsilon(
            epsilon=lower,
            delta=claim.point[1],
            claimed=claim.point[0] if claimed else None,
            ceiling=_ceiling(claim, tests, levels),
            canaries=canaries,
            confidence=confidence,
        )
    about = replace(about, n=(m, m), notes=(*[note] * (certified is None), *about.notes))
    common: dict[str, Any] = {
        "confidence": confidence,
        "guarantee": about.guarantee,
        "witness": _witness(test),
        "budget": tuple((one.words, level) for one, level in zip(tests, levels, strict=True)),
        "certified": certified,
        "about": about,
    }
    if not claimed:
        return LowerBound(value=lower, notion=claim.meaning, pair=_PAIR, **common)
    violated = any(one.refuted for one in found)
    detectable = min(one.detectable for one in found)
    blind = "" if violated or math.isnan(detectable) else far_only(claim, detectable)
    if detectable == math.inf and not violated:
        blind = (
            f"the most that these {m:,} canaries could have shown is {symbol} ≥ {number(ceiling)}, if "
            "all guesses were right"
        )
    return Verdict(
        claim=claim,
        violated=violated,
        blind=blind,
        p_value=min(1.0, *p_values),
        lower_bound=lower,
        smallest_detectable=None if math.isnan(detectable) else detectable,
        **common,
    )


def _witness(test: _Test) -> Witness:
    """The event "guessed", counted on the canaries that were included and on those left out."""
    words = (
        f"guessed to be {'included' if test.above else 'left out'} ({test.guessed.right:,} of "
        f"{test.guessed.guesses:,} guesses are right)"
    )
    p, n, q, m = test.counts
    event = Event(words=words, live=True)
    return Witness(event=event, pair=_PAIR, hits_p=p, n_p=n, hits_q=q, n_q=m)
