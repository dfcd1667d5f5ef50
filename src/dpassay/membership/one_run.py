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
  there all canaries are used and five numbers are tested. Which it is depends on m and δ alone.

Several runs with coins of their own are together one mechanism of all their coins: right guesses add up,
and one exact test serves them all.

With numbers fixed beforehand one error probability serves all claims at once. Each refutes at some
numbers of right guesses V; the least number at which any true claim is refuted is one at which P(V ≥ v) ≤
γ, and no true claim is refuted below it. So beside the verdict on a curve the ε at a δ costs nothing, and
neither does the certified ε at every δ.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay.bounds import one_run_test as bounds
from dpassay.errors import InvalidInput
from dpassay.membership.guessing import Guesses, Test, tests_of
from dpassay.membership.runs import Run, coin_notes, is_reversed, placed, ranked, read_runs
from dpassay.outputs.events import Event
from dpassay.privacy.claims import ApproximateDP, Claim, PureDP
from dpassay.privacy.event_claims import SMALL_DELTA, digits
from dpassay.privacy.pairs import Pair, Relation
from dpassay.privacy.provenance import About, Guarantee
from dpassay.results.blindness import far_only
from dpassay.results.estimates import CanaryScores, CertifiedEpsilon, LowerBound, SecondBound
from dpassay.results.verdict import Verdict
from dpassay.results.witness import Witness
from dpassay.rounding import number
from dpassay.sampling.draw import seed_of
from dpassay.sampling.progress import claim_with_progress

#: The two inputs a coin decides between.
_PAIR = Pair("with the canary", "without it", Relation.ADD_REMOVE)
#: The share of scores beyond either end of a picture, and the most bins that it has.
_TAIL, _BINS = 0.005, 40


def one_run(
    scores: Any,
    included: Any,
    *,
    claim: Claim | str | None = None,
    groups: Any = None,
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
    groups      a label a canary, such as its class, that depends neither on coins nor on scores: ε is
                bounded for each group too, and all these bounds hold at once
    guesses     how many coins are guessed, fixed before looking at the scores: the highest scores are
                guessed to be included, the lowest to be left out, half of the guesses each; or a tuple
                (to be included, to be left out). A list of such numbers: each is tested at its share of
                the error probability. None: learned on a part of the canaries
    delta       the δ at which ε is bounded; beside the verdict on a curve, such as an accountant's, that
                is 10⁻⁵ if no other is given, and verdict and bound hold at once
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
    given = read_runs(scores, included, groups)
    if claim is None:
        d = checks.real("delta", 0.0 if delta is None else delta, at_least=0.0, below=1.0)
        tested: Claim = ApproximateDP(0.0, d) if d else PureDP(0.0)
    else:
        tested = claim_with_progress(claim)
        if delta is not None and tested.point is not None:
            got = checks.shown(delta)
            both = f'write claim="eps={digits(tested.point[0])}, delta={got}"'
            remedy = "leave delta out" if tested.point[1] else both
            raise InvalidInput(f"{tested} says its own δ, got delta = {got}; {remedy}")
        _check_claim(tested)
    beside = _beside(tested, claim, delta)
    gamma = 1.0 - checks.probability("confidence", confidence)
    seed = seed_of(rng)
    runs = [ranked(run, seed, k) for k, run in enumerate(given)]
    places = len(runs) > 1 or not np.isfinite(runs[0].scores).all()
    if places:
        runs = [placed(run) for run in runs]
    tests, notes = tests_of(runs, tested, guesses, gamma, seed)
    if is_reversed(runs):
        notes.append(
            "scores are lower for canaries that were included, and higher scores count as evidence of "
            "inclusion; if you turn the sign now (−scores; --sign on the command line), raise confidence "
            f"(--confidence) to {digits(1 - gamma / 2)}: the sign was chosen after seeing the result"
        )
    said, doubted = coin_notes(given)
    about = About(
        method="guesses in one run" if len(runs) == 1 else f"guesses in {len(runs)} runs",
        guarantee=Guarantee.HEURISTIC if doubted else Guarantee.EXACT,
        units="canaries",
        seed=seed,
        notes=(*notes, *said),
    )
    levels = [gamma * one.share for one in tests]
    of = _Canaries(tuple(runs), tuple(tests), tuple(levels), confidence, places, about.guarantee)
    found = _result(of, tested, claim is not None, about)
    if beside is not None and isinstance(found, Verdict):
        found = _with_epsilon(of, found, beside)
    shown = found.certified
    by_group = () if shown is None else shown.group_notes
    refuted = isinstance(found, Verdict) and found.violated
    if refuted and shown and shown.claimed and shown.epsilon <= shown.claimed:
        by_group = (
            "the claimed curve is refuted as a whole: it allows so many right guesses too seldom. ε at "
            "one δ says less, and its certified value may be below the claimed one",
            *by_group,
        )
    return replace(found, about=replace(found.about, notes=(*by_group, *found.about.notes)))


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


# --- results


@dataclass(frozen=True, eq=False)
class _Canaries:
    """The runs by falling score, the tests, and the error probability of each."""

    runs: tuple[Run, ...]
    tests: tuple[Test, ...]
    levels: tuple[float, ...]
    confidence: float
    places: bool  # whether scores are places
    guarantee: Guarantee

    def evidence(self, claim: Claim) -> list[bounds.Evidence]:
        """What each test shows."""
        return [
            bounds.evidence(claim, one.guessed, level, one.perfect)
            for one, level in zip(self.tests, self.levels, strict=True)
        ]

    def certified(
        self, delta: float, claimed: float | None, found: list[bounds.Evidence]
    ) -> CertifiedEpsilon:
        """What tests of ε at δ certify, of all canaries and of each group."""

        def of(group: str) -> CertifiedEpsilon:
            some = [e for e, one in zip(found, self.tests, strict=True) if group in ("", one.group)]
            inside = [len(run[run.groups == group]) for run in self.runs]
            return CertifiedEpsilon(
                epsilon=max(one.lower_bound for one in some),
                delta=delta,
                claimed=claimed,
                ceiling=max(one.ceiling for one in some),
                canaries=sum(inside) if group else sum(map(len, self.runs)),
                confidence=self.confidence,
                group=group,
                guarantee=self.guarantee,
            )

        names = [name for name in dict.fromkeys(one.group for one in self.tests) if name]
        return replace(of(""), groups=tuple(map(of, names)), scores=self.scores(found))

    def scores(self, found: list[bounds.Evidence]) -> CanaryScores:
        """What charts are drawn of; thresholds are those of the best test of all canaries."""
        whole = [k for k, one in enumerate(self.tests) if not one.group]
        best = max(whole, key=lambda k: found[k].lower_bound)
        scores = np.concatenate([run.scores for run in self.runs])
        coins = np.concatenate([run.coins for run in self.runs])
        low, high = np.quantile(scores, [_TAIL, 1 - _TAIL])
        if not low < high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, max(5, min(_BINS, math.isqrt(scores.size))) + 1)
        included, left_out = (
            np.histogram(np.clip(scores[c], low, high), edges)[0] for c in (coins, ~coins)
        )
        above, below = self.tests[best].thresholds
        return CanaryScores(
            edges=edges,
            included=included,
            left_out=left_out,
            high=above,
            low=below,
            places=self.places,
            guessed=tuple(astuple(one.guessed) for one in self.tests),
            levels=self.levels,
        )


def _with_epsilon(of: _Canaries, verdict: Verdict, beside: ApproximateDP) -> Verdict:
    """The verdict on a curve, and the certified ε at a δ: both hold at once."""
    found = of.evidence(replace(beside, epsilon=0.0))
    certified = of.certified(beside.delta, beside.epsilon, found)
    second = SecondBound(
        symbol="ε",
        claimed=beside.epsilon,
        lower=certified.epsilon,
        smallest_detectable=min(one.detectable for one in found),
        at=f"δ = {digits(beside.delta)}",
    )
    return replace(verdict, second=second, certified=certified)


def _result(of: _Canaries, claim: Claim, claimed: bool, about: About) -> Verdict | LowerBound:
    found, tests, symbol = of.evidence(claim), of.tests, claim.symbol
    p_values = [one.p_value / test.share for one, test in zip(found, tests, strict=True)]
    best = max(range(len(tests)), key=lambda k: (found[k].lower_bound, -p_values[k]))
    lower, ceiling = (max(getattr(e, name) for e in found) for name in ("lower_bound", "ceiling"))
    most = (
        f"the most that these canaries could have shown is {symbol} ≥ {number(ceiling)}, if all guesses "
        "were right"
    )
    certified = None
    if claim.point is not None and symbol == "ε":
        certified = of.certified(claim.point[1], claim.point[0] if claimed else None, found)
    m = tests[0].guessed.canaries
    about = replace(about, n=(m, m), notes=(*[most] * (certified is None), *about.notes))
    common: dict[str, Any] = {
        "confidence": of.confidence,
        "guarantee": about.guarantee,
        "witness": _witness(tests[best]),
        "budget": tuple((one.words, level) for one, level in zip(tests, of.levels, strict=True)),
        "certified": certified,
        "about": about,
    }
    if not claimed:
        return LowerBound(value=lower, notion=claim.meaning, pair=_PAIR, **common)
    violated = any(one.refuted for one in found)
    detectable = min(one.detectable for one in found)
    blind = "" if violated or math.isnan(detectable) else far_only(claim, detectable)
    return Verdict(
        claim=claim,
        violated=violated,
        blind=most if detectable == math.inf and not violated else blind,
        p_value=min(1.0, *p_values),
        lower_bound=lower,
        smallest_detectable=None if math.isnan(detectable) else detectable,
        **common,
    )


def _witness(test: Test) -> Witness:
    """The event "guessed", counted on the canaries that were included and on those left out."""
    words = (
        f"guessed to be {'included' if test.above else 'left out'} ({test.guessed.right:,} of "
        f"{test.guessed.guesses:,} guesses are right{f', group {test.group}' if test.group else ''})"
    )
    p, n, q, m = test.counts
    event = Event(words=words, live=True)
    return Witness(event=event, pair=_PAIR, hits_p=p, n_p=n, hits_q=q, n_q=m)
