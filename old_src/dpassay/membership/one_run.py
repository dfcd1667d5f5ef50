"""`dpassay.one_run`: test a privacy claim by membership inference on the canaries of one training run.

A fair coin includes each canary in the training data or leaves it out. An attacker scores the canaries
and guesses coins. The guesses must be a function of the output of the run (scores under the trained model
are) and of things that the coins do not influence. Then the bounds of `bounds.one_run_test` hold, for
every number of canaries.

How many coins are guessed is fixed beforehand, which needs no correction; or several numbers are, each
tested at its share of the error probability (Bonferroni); or it is learned (`guessing`). Given the coins
of the quarter that learns, those of the rest are still fair and independent and the run is a mechanism of
them alone, so that m is the number of canaries in the rest. But the number of guesses now depends on the
output. For ε-DP that needs no correction, since the bound holds given the output; for (ε, δ)-DP only the
bound `averaged` holds, with its extra term for the fewest guesses that could have been chosen. For
trade-off functions no such bound is known, and where mδ is large the term is large: there all canaries
are used and five numbers are tested. Which it is depends on m and δ alone.

Several runs with coins of their own are together one mechanism of all their coins: right guesses add up,
and one exact test serves them all.

With numbers fixed beforehand one error probability serves all claims at once. Each refutes at some
numbers of right guesses V; the least number at which any true claim is refuted is one at which P(V ≥ v) ≤
γ, and no true claim is refuted below it. So beside the verdict on a curve the ε at a δ costs nothing, and
neither does the certified ε at every δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpassay import validation as checks
from dpassay.bounds import one_run_test as bounds
from dpassay.errors import InvalidInput
from dpassay.membership.claims_of_canaries import (
    at_delta,
    epsilon_beside,
    gaussian_allowed,
    tested_claim,
)
from dpassay.membership.guessing import Guesses, Test, tests_of
from dpassay.membership.runs import (
    FEWEST,
    Run,
    coin_notes,
    is_reversed,
    mean_auc,
    placed,
    ranked,
    read_runs,
)
from dpassay.outputs.events import Event
from dpassay.privacy.claims import Claim, gaussian_mu
from dpassay.privacy.event_claims import SMALL_DELTA, digits
from dpassay.privacy.provenance import About, Guarantee, level
from dpassay.privacy.relations import Pair, Relation
from dpassay.results.blindness import REVERSED, far_only
from dpassay.results.estimates import CanaryScores, CertifiedEpsilon, LowerBound, SecondBound
from dpassay.results.verdict import Verdict
from dpassay.results.witness import Witness
from dpassay.rounding import number, rounded_down
from dpassay.sampling.draw import seed_of
from dpassay.sampling.progress import Progress, claim_with_progress
from dpassay.tables import Shown, as_text

#: The two inputs a coin decides between.
_PAIR = Pair("with the canary", "without it", Relation.ADD_REMOVE)
#: The share of scores beyond either end of a picture, and the most bins that it has.
_TAIL, _BINS = 0.005, 40
#: The most coins of one simulated audit.
_MOST = 10**6


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
    included    whether it was, by an independent fair coin each (`Canaries` draws them): the coins that
                made the training data of this model, not those of another seed
    claim       a claim about events, its text, or a privacy accountant; None for a lower bound of ε at
                `delta`
    groups      a label a canary, such as its class, that depends neither on coins nor on scores: ε is
                bounded for each group too, and all these bounds hold at once. Results name groups by
                their text: 1 is "1"
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
    tested = tested_claim(claim, delta)
    beside = epsilon_beside(tested, claim, delta)
    gamma = 1.0 - checks.confidence(confidence)
    seed = seed_of(rng)
    runs = [ranked(run, seed, k) for k, run in enumerate(given)]
    places = len(runs) > 1 or not np.isfinite(runs[0].scores).all()
    if places:
        runs = [placed(run) for run in runs]
    tests, notes = tests_of(runs, tested, guesses, gamma, seed)
    reversed_scores = is_reversed(runs)
    if reversed_scores:
        notes.append(
            f"{REVERSED}, and higher scores count as evidence of inclusion; if you turn the sign now "
            "(−scores; --sign on the command line), raise confidence (--confidence) to "
            f"{digits(1 - gamma / 2)}: the sign was chosen after seeing the result"
        )
    about_coins, doubted = coin_notes(given)
    guarantee = Guarantee.HEURISTIC if doubted else Guarantee.EXACT
    of = _Canaries(tuple(runs), tuple(tests), confidence, gamma, places, guarantee, mean_auc(given))
    found = of.evidence(tested)
    deciding = found
    p_values = [one.p_value / test.share for one, test in zip(found, tests, strict=True)]
    lower, ceiling = (max(getattr(e, name) for e in found) for name in ("lower_bound", "ceiling"))
    violated = claim is not None and any(one.refuted for one in found)
    most = (
        f"the most that these canaries could have shown is {tested.symbol} ≥ {rounded_down(ceiling)}, "
        "if all guesses were right"
    )
    if tested.parameter == "gap" and ceiling == 0:
        most = (
            "with these numbers of guesses these canaries could not have refuted the claimed curve, even "
            "if all were right; one number, fixed beforehand (guesses=), can show more"
        )
    certified = second = None
    if tested.point is not None and tested.symbol == "ε":
        epsilon, at = tested.point
        certified = of.certified(at, None if claim is None else epsilon, found)
    elif tested.parameter != "gap":  # few readers know what a gap means
        notes.insert(0, most)
    if beside is not None:  # both hold at once
        found_beside = of.evidence(replace(beside, epsilon=0.0))
        deciding = found if violated else found_beside  # the guesses that show what is printed
        certified = of.certified(beside.delta, beside.epsilon, found_beside)
        second = SecondBound(
            symbol="ε",
            claimed=beside.epsilon,
            lower=certified.epsilon,
            smallest_detectable=min(one.detectable for one in found_beside),
            at=at_delta(beside),
        )
    detectable, compared, blind = math.nan, tested, ""
    if claim is not None:
        detectable = of.detectable(tested, found)
    if tested.parameter == "gap":  # detectable is the μ of Gaussian scores
        compared, where = gaussian_allowed(tested, beside)
        if not violated and math.isfinite(detectable):
            notes.append(
                f"Gaussian scores with means μ = {number(detectable)} apart (AUC {_auc(detectable):.3g}) "
                "would refute the claim with probability 0.9; the claimed curve allows about μ = "
                f"{number(compared.mu)} at {where}"
            )
    if not violated and not math.isnan(detectable):
        blind = most if detectable == math.inf else far_only(compared, detectable)
        notes = [note for note in notes if note != blind]
    if certified is not None:
        notes[:0] = _large_delta(certified) + [certified.group_note] * bool(certified.groups)
    if not reversed_scores and all(bounds.tail(t.guessed, 0.0) > gamma * t.share for t in tests):
        notes.append(
            "the guesses are right no more often than chance allows: nothing is certified. Check that "
            "the model was trained on the canaries that these coins include (dataset()), no others. If "
            "your scores are losses: in the next run, the loss before training less the loss after it "
            "may tell more"
        )
    best = max(range(len(tests)), key=lambda k: (deciding[k].lower_bound, -p_values[k]))
    m = tests[0].guessed.canaries
    common: dict[str, Any] = {
        "confidence": confidence,
        "guarantee": guarantee,
        "witness": _witness(tests[best]),
        "budget": tuple((one.words, gamma * one.share) for one in tests),
        "certified": certified,
        "about": About(
            method="guesses in one run" if len(runs) == 1 else f"guesses in {len(runs)} runs",
            guarantee=guarantee,
            n=(m, m),
            units="canaries",
            seed=seed,
            notes=(*notes, *about_coins),
        ),
    }
    if claim is None:
        return LowerBound(value=lower, notion=tested.meaning, pair=_PAIR, **common)
    known = compared is tested and not math.isnan(detectable)
    return Verdict(
        claim=tested,
        violated=violated,
        blind=blind,
        p_value=min(1.0, *p_values),
        lower_bound=lower,
        smallest_detectable=detectable if known else None,
        second=second,
        **common,
    )


def _large_delta(found: CertifiedEpsilon) -> list[str]:
    expected = found.delta * found.canaries
    if found.ceiling > 0 or expected <= 1:
        return []
    return [
        f"δ = {digits(found.delta)} is too large for {found.canaries:,} canaries: it allows a mechanism "
        f"to reveal {expected:.3g} coins in expectation. Take δ far below 1/canaries"
    ]


def _auc(mu: float) -> float:
    """The AUC of scores N(μ, 1) of included canaries and N(0, 1) of others."""
    return float(ndtr(mu / math.sqrt(2)))


@dataclass(frozen=True, eq=False)
class _Canaries:
    """The runs by falling score, the tests, and the error probability of all of them."""

    runs: tuple[Run, ...]
    tests: tuple[Test, ...]
    confidence: float
    gamma: float
    places: bool  # whether scores are places
    guarantee: Guarantee
    auc: float | None

    def evidence(self, claim: Claim) -> list[bounds.Evidence]:
        """What each test shows."""
        return [
            bounds.evidence(claim, one.guessed, self.gamma * one.share, one.perfect)
            for one in self.tests
        ]

    def detectable(self, claim: Claim, found: list[bounds.Evidence]) -> float:
        """The smallest parameter that a test would detect: infinite if none could, NaN if unknown."""
        each = [
            e.detectable
            if one.learner is None or e.detectable == math.inf
            else one.learner.detectable(claim)
            for e, one in zip(found, self.tests, strict=True)
        ]
        return min(each, key=lambda x: (math.isinf(x), math.isnan(x), x))

    def certified(
        self, delta: float, claimed: float | None, found: list[bounds.Evidence]
    ) -> CertifiedEpsilon:
        """What tests of ε at δ certify, of all canaries and of each group."""

        def of(group: str) -> CertifiedEpsilon:
            some = [e for e, one in zip(found, self.tests, strict=True) if group in ("", one.group)]
            inside = [run if not group else run[run.groups == group] for run in self.runs]
            return CertifiedEpsilon(
                epsilon=max(one.lower_bound for one in some),
                delta=delta,
                claimed=claimed,
                ceiling=max(one.ceiling for one in some),
                canaries=sum(map(len, inside)),
                confidence=self.confidence,
                group=group,
                guarantee=self.guarantee,
            )

        names = [name for name in dict.fromkeys(one.group for one in self.tests) if name]
        return replace(of(""), groups=tuple(map(of, names)), scores=self._scores(found))

    def _scores(self, found: list[bounds.Evidence]) -> CanaryScores:
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
            auc=self.auc,
            guessed=tuple(astuple(one.guessed) for one in self.tests),
            levels=tuple(self.gamma * one.share for one in self.tests),
        )


def _witness(test: Test) -> Witness:
    """The event "guessed", counted on the canaries that were included and on those left out."""
    g, (p, _, q, _) = test.guessed, test.counts
    right, made = (p, p + q) if test.above else (0, 0)
    sides = (("included", right, made), ("left out", g.right - right, g.guesses - made))
    each = ", ".join(f"{v:,} of {r:,} guessed to be {what}" for what, v, r in sides if r)
    of = f" in group {test.group}" if test.group else ""
    words = f"{g.right:,} of {g.guesses:,} guesses are right{of}: {each}"
    return Witness.of(Event(words=words, live=True), test.counts, _PAIR)


# --- plans


@dataclass(frozen=True, eq=False, kw_only=True)
class CanaryPlan(Shown):
    """What to expect of audits, for each number of canaries and runs: the certified ε, and refutation."""

    delta: float
    claimed: float | None
    auc: float
    confidence: float
    audits: int  # simulated ones
    #: Canaries, runs, the median certified ε, and the most that all guesses being right would certify.
    rows: tuple[tuple[int, int, float, float], ...]
    #: For each row: the share of the simulated audits that refute the claim. Empty without a claim.
    refuting: tuple[float, ...] = ()
    #: Whether the claim is a curve, which is tested as a whole, and not one (ε, δ).
    of_curve: bool = False
    #: Whether scores are as telling as the claim allows, and no more.
    kept: bool = False

    def __str__(self) -> str:
        claimed = "" if self.claimed is None else f"; the claimed ε is {number(self.claimed)}"
        at = f" at δ = {digits(self.delta)}" if self.delta else ""
        auc = f"{self.auc:{'.3g' if self.auc < 0.999 else '.9g'}}"
        said = (
            f"certified ε{at} ({level(self.confidence, 100)} %), the median of {self.audits:,} simulated "
            f"audits, if Gaussian scores have AUC {auc}{claimed}\n"
        )
        if self.of_curve:
            said += (
                "the claim is a curve, which is tested as a whole: the column refutes (the share of the "
                "audits that refute it) decides, and not ε at one δ, which may stay below the claimed ε\n"
            )
        elif self.refuting:
            said += "refutes: the share of the audits that refute the claim\n"
        if self.kept and self.refuting:
            said += (
                "these scores keep the claim: give the AUC of a training that you want to detect (auc=, "
                "--auc) to see how often it would be refuted\n"
            )
        cells = [
            [f"{m:,}", f"{runs:,}", *map(rounded_down, found)] for m, runs, *found in self.rows
        ]
        columns = ["canaries", "runs", "certified ε", "the most possible"]
        if self.refuting:
            columns.append("refutes")
            cells = [
                [*row, f"{share:.0%}"] for row, share in zip(cells, self.refuting, strict=True)
            ]
        return said + as_text(columns, cells)


def plan_canaries(
    claim: Claim | str | None = None,
    *,
    canaries: int | Sequence[int],
    runs: int | Sequence[int] = 1,
    auc: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    audits: int = 25,
    rng: Any = 0,
) -> CanaryPlan:
    """About what `one_run` would certify and refute, by simulated audits: a guide, nothing certified.

    claim     as in `one_run`; None plans for a bound of ε at `delta`. A curve may be refuted though the
              certified ε at `delta` is below the claimed one: `refuting` of the plan says how often
    canaries  how many there are in a run: a number, or several to compare
    runs      in how many trainings, with coins of their own: a number, or several
    auc       how well scores tell canaries apart: N(μ, 1) if included and N(0, 1) if not, AUC = Φ(μ/√2).
              Without it μ is the largest that the claim allows at its δ
    audits    how many are simulated

    Scores of canaries are taken to be independent. Canaries that disturb each other have a lower AUC:
    take it from a run with about as many (`attack_rates`).

    >>> import dpassay as dp
    >>> plan = dp.plan_canaries("eps=4, delta=1e-5", canaries=[250, 1000], auc=0.76)
    >>> [(m, runs, round(ceiling, 1)) for m, runs, _, ceiling in plan.rows]
    [(250, 1, 4.0), (1000, 1, 5.4)]
    """
    sizes = [checks.whole("canaries", m, at_least=FEWEST) for m in np.atleast_1d(canaries)]
    pairs = [(m, checks.whole("runs", n)) for m in sizes for n in np.atleast_1d(runs)]
    if not pairs or max(m * n for m, n in pairs) > _MOST:
        raise InvalidInput(f"canaries × runs must be at least one pair, each up to {_MOST:,} coins")
    tested = None if claim is None else claim_with_progress(claim)
    shift, repeats = _shift(tested, delta, auc), checks.whole("audits", audits, at_least=1)
    options: Any = {"claim": tested, "delta": delta, "confidence": confidence}
    seed, rows, refuting = seed_of(rng), [], []
    with Progress(repeats * len(pairs), "simulating", unit="audits") as bar:
        for m, many in pairs:
            found: list[CertifiedEpsilon] = []
            refuted = 0
            for k in range(repeats):
                draws = np.random.default_rng([seed, m, many, k])
                coins = draws.random((many, m)) < 0.5
                scores = shift * coins + draws.normal(size=coins.shape)
                result = one_run(list(scores), list(coins), rng=k, **options)
                if result.certified is None:
                    raise InvalidInput(
                        f"{tested} bounds no ε at a δ; give eps and delta, or a curve"
                    )
                found.append(result.certified)
                refuted += isinstance(result, Verdict) and result.violated
                bar.advance(1)
            median = float(np.median([one.epsilon for one in found]))
            most = float(np.median([one.ceiling for one in found]))
            rows.append((m, many, median, most))
            refuting.append(refuted / repeats)
    return CanaryPlan(
        delta=found[0].delta,
        claimed=found[0].claimed,
        auc=_auc(shift),
        confidence=confidence,
        audits=repeats,
        rows=tuple(rows),
        refuting=() if tested is None else tuple(refuting),
        of_curve=tested is not None and tested.point is None,
        kept=auc is None,
    )


def _shift(claim: Claim | None, delta: float | None, auc: float | None) -> float:
    """By how many standard deviations scores of included canaries are higher."""
    if auc is not None:
        return math.sqrt(2) * float(ndtri(checks.real("auc", auc, at_least=0.5, below=1.0)))
    point = None if claim is None else claim.point
    if claim is not None and point is None:
        at = SMALL_DELTA if delta is None else delta
        point = claim.epsilon_at(at), at
    if point is None or not point[1]:
        raise InvalidInput(
            "how well do scores tell canaries apart? Give auc=0.76 (--auc 0.76), or a claim with δ > 0 "
            '(--claim "eps=4, delta=1e-5"), which sets the best attack that it allows'
        )
    return gaussian_mu(*point)
