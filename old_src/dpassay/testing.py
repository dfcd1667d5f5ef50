"""For test suites: fail when a mechanism leaks more than it claims.


    def test_release():
        assert_private(release, (0.0, 1.0), "eps=1", n=20_000)
        assert_holds(release, (0.0, 1.0), "eps=1.1, delta=1e-4", n=1_000_000)

A correct mechanism fails the test with probability at most `flake`, by default one in a million: the
verdict is exact, not asymptotic. A test that passes does not show that the claim holds; its draws would
have detected violations down to the `smallest_detectable` of the verdict that it returns. A test whose
draws could have missed a large violation raises `AuditTooWeak`.

Under `@given` of Hypothesis the inputs decide the seed: an example that fails does so again, and
Hypothesis shrinks it, keeps it and tries it first the next time.

`hunt_private` searches for the inputs, given a description of them (`dpassay.inputs`).

`assert_holds` passes only if the draws show that the claim holds on these pairs, which discrete outputs
allow, and raises `NotShown` otherwise.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from dpassay import settings
from dpassay import validation as checks
from dpassay.auditing.audits import audit
from dpassay.auditing.detecting import audit_detecting, check_power, default_draws, detected
from dpassay.auditing.plans import plan
from dpassay.auditing.verifications import verify
from dpassay.errors import AuditTooWeak, DpassayError, InvalidInput, NotEnoughDraws
from dpassay.hunting.hunts import hunt
from dpassay.hunting.result import Hunt, compared
from dpassay.learning.betting_cells import why_trivial
from dpassay.privacy.claim_parsing import as_claim, several
from dpassay.privacy.claims import Claim
from dpassay.privacy.provenance import Guarantee, level
from dpassay.privacy.relations import Relation
from dpassay.results.explanations import explained
from dpassay.results.verdict import Verdict
from dpassay.results.verdict_text import second_bound
from dpassay.results.verification import Verification
from dpassay.results.witness import BITS
from dpassay.rounding import shortest_above
from dpassay.sampling.draw import Sampling, Seed, seed_of
from dpassay.sampling.identity import digest_of
from dpassay.sampling.samples import Samples
from dpassay.tables import Status

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "AuditTooWeak",
    "NotShown",
    "PrivacyViolation",
    "assert_holds",
    "assert_private",
    "hunt_private",
]


class PrivacyViolation(AssertionError):
    """A claim was refuted; `verdict` says how, and `hunt` how a hunt found the inputs."""

    hunt: Hunt | None = None

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


class NotShown(AssertionError):
    """A claim was not verified; `verification` says what was."""

    def __init__(self, message: str, verification: Verification) -> None:
        super().__init__(message)
        self.verification = verification


@dataclass(frozen=True)
class NoResult:
    """An assertion that ended with an error instead of a result."""

    claim: str
    why: str


#: Called with every result, or with `NoResult`; the pytest plugin collects them for a report.
listeners: list[Callable[[Verdict | Verification | NoResult], None]] = []

#: The default of `rng`: the seed of the test suite (see `dpassay.settings`), or 0.
_SUITE: Any = "suite"

#: What an option of one assertion is called in another; a confidence is 1 − flake.
_ELSEWHERE = {"confidence": "flake", "flake": "confidence", "n": "budget", "budget": "n"}


def _named_options(*more: str) -> Callable[[F], F]:
    """Refuse options that an assertion does not have; it has its own and `more`."""

    def decorate(assertion: F) -> F:
        known = [k for k in (*inspect.signature(assertion).parameters, *more) if k != "options"]

        @functools.wraps(assertion)
        def checked(*arguments: Any, **options: Any) -> Any:
            __tracebackhide__ = True
            for name in options.keys() - set(known):
                meant = f" (here {_ELSEWHERE[name]})" if name in _ELSEWHERE else ""
                listed = ", ".join(dict.fromkeys(known[2:]))
                raise InvalidInput(
                    f"{assertion.__name__} has no option {name!r}{meant}; it has {listed}"
                )
            return assertion(*arguments, **options)

        return cast("F", checked)

    return decorate


def _run(
    verb: Callable[..., Any],
    mechanism: Any,
    inputs: Any,
    claim: Any,
    *,
    flake: float | None = None,
    sampling: Sampling | None,
    **options: Any,
) -> Any:
    """What a verb returns; listeners hear of it, or of the error that it ended with."""
    __tracebackhide__ = True
    try:
        if several(claim):
            raise InvalidInput("an assertion takes one claim; write one for each")
        if flake is not None:
            options["confidence"] = 1 - checks.probability("flake", flake)
        sampling = sampling or Sampling(progress=None if _visible() else False)
        found = verb(mechanism, inputs, claim, sampling=sampling, **options)
    except Exception as error:
        raised = error
        # too few draws to refute a claim make a test weak; to show that one holds is to ask for more
        if isinstance(error, NotEnoughDraws) and verb is not verify:
            weak = f"too weak: a large violation of {claim} could have been missed: {error} (flake = 1 − "
            weak += "confidence)"
            if flake is not None and claim is not None:
                weak += f"; {_needed(as_claim(claim), flake)}"
            raised = AuditTooWeak(weak, None)
        told = getattr(raised, "verdict", None)
        if told is None or not told.blind:
            told = NoResult(str(claim), f"{type(raised).__name__}: {raised}".partition("\n")[0])
        _tell(told)
        if isinstance(error, DpassayError | AuditTooWeak):
            raise raised.with_traceback(None) from None  # the message says it; our frames do not
        raise
    _tell(found.verdict if isinstance(found, Hunt) else found)
    return found


def _visible() -> bool:
    """Whether somebody sees stderr now: pytest shows what it captured when the test is over."""
    return "PYTEST_CURRENT_TEST" not in os.environ or sys.stderr is sys.__stderr__


def _tell(result: Verdict | Verification | NoResult) -> None:
    for listener in listeners:
        listener(result)


def _fail(verdict: Verdict, flake: float, weak: str, found: str = "") -> None:
    """Raise if a claim was refuted, or could not have been; `weak` says what helps then."""
    __tracebackhide__ = True
    if verdict.tone is Status.VIOLATION:
        raise PrivacyViolation(_refuted(verdict, flake) + found, verdict)
    if verdict.tone is Status.BLIND:
        raise AuditTooWeak(f"{verdict.headline}: {verdict.blind}\n  {weak}", verdict)


@_named_options()
def assert_private(
    mechanism: Any,
    pairs: Any,
    claim: Any = None,
    *,
    n: int | None = None,
    detects: float | None = None,
    flake: float | None = None,
    seconds: float | None = None,
    relation: Relation | str | None = None,
    loss: Any = None,
    features: Any = None,
    rng: Seed = _SUITE,
    seed: Seed = _SUITE,
    sampling: Sampling | None = None,
) -> Verdict:
    """Fail with the witness in the message if the claim is refuted, or could not have been.

    n            draws per side per pair; 20 000 by default, for an (ε, δ) claim as many as detect a large
                 violation by Gaussian noise (150 000 for (1, 10⁻⁵)), unless that is more than a million.
                 Leave it out if `seconds` to spend or `detects` are given
    detects      in place of n: the relative excess over the claim that is to be detected with probability
                 0.9, such as 0.05; at most 3, for a claim in δ any that leaves δ below 1. A pilot of
                 2 000 draws a side says how many draws that takes; if the event that the audit finds
                 needs more, it is repeated with more, at most twice. The test fails if
                 that takes more than 10⁷, or if the last audit would still miss the excess
    flake        the probability with which a mechanism that keeps its claim may be called a violation,
                 10⁻⁶ by default
    relation     what makes the inputs neighbours ("add_remove", "replace", …), for the record
    loss         the score of the outputs, as for `dpassay.audit`; "values" ignores the floating-point
                 representation
    features     functions of one output, as for `dpassay.audit`
    rng, seed    a fixed seed by default, so that a test that passes keeps passing; the same option

    Under pytest, `dp_n`, `dp_detects`, `dp_flake`, `dp_seed`, `dp_loss` and `dp_relation` in its
    configuration and the marker `@pytest.mark.privacy(n=…, loss=…)` change these defaults.

    >>> import dpassay as dp
    >>> verdict = assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=5000)
    no violation of 1-DP detected; ε = 1.225 shown in full by an event like this would be detected ...
    >>> verdict.violated
    False
    """
    __tracebackhide__ = True
    suite = settings.current()
    flake = suite.flake if flake is None else flake
    if detects is None and n is None and seconds is None:
        detects = suite.detects
        if detects is None:
            rows = isinstance(mechanism, Samples)  # all of them
            n = None if rows else suite.n or default_draws(mechanism, pairs, claim, flake)
    verb = audit if detects is None else functools.partial(audit_detecting, detects)
    verdict: Verdict = _run(
        lambda *given, **options: check_power(verb(*given, **options), detects),
        mechanism,
        pairs,
        claim,
        flake=flake,
        n=n,
        seconds=seconds,
        loss=suite.loss if loss is None else loss,
        features=features,
        relation=suite.relation if relation is None else relation,
        details="violation" if listeners else False,
        rng=_seed(pairs, rng, seed),
        sampling=sampling,
    )
    draws = min(verdict.about.n or (0,))
    weak = verdict.remedy
    if verdict.tone is Status.BLIND and not weak:
        weak = f"with {draws:,} draws a side and flake={flake:g}; {_needed(verdict.claim, flake)}; give "
        weak += "a larger n, a larger flake or another loss"
    _fail(verdict, flake, weak)
    print(f"{verdict.headline}; {detected(verdict, detects)}")
    return verdict


def _needed(claim: Claim, flake: float) -> str:
    """The fewest draws with which a violation can be detected."""
    if not claim.set_by_events:
        return "dp.plan says how many an excess takes"
    least = plan(claim, excess=0.1, confidence=1 - flake).draws
    takes = "more than 10⁹" if least is None else f"at least about {least:,}"
    return f"an excess of 10 % takes {takes} draws a side, more where it shows in part"


@_named_options(*(k for k in inspect.signature(hunt).parameters if k != "confidence"))
def hunt_private(
    mechanism: Any,
    space: Any = None,
    claim: Any = None,
    *,
    flake: float | None = None,
    rng: Seed = _SUITE,
    seed: Seed = _SUITE,
    sampling: Sampling | None = None,
    **options: Any,
) -> Hunt:
    """Hunt for inputs that break the claim, and fail with the shrunk pair in the message if some do.

    flake    the probability with which a mechanism that keeps its claim may be called a violation
    rng      a fixed seed by default, so that a test that passes keeps passing; `seed` is the same
    options  those of `dpassay.hunt`: budget or seconds, relation, outside, failing, …

    Under pytest the settings and the marker change defaults, but not a relation that a library states.

    >>> import dpassay as dp
    >>> found = hunt_private(  # doctest: +ELLIPSIS
    ...     dp.zoo.DiscreteLaplace(1.0), dp.inputs.Integer(0, 9), "eps=1", relation="query", budget=30_000
    ... )
    no violation of 1-DP detected; 18 pairs were tried; ε = 1.147 shown in full by an event ...
    >>> found.violated
    False
    """
    __tracebackhide__ = True
    suite = settings.current()
    flake = suite.flake if flake is None else flake
    seed = _seed(None, rng, seed)
    stated = None if space is None or claim is None else suite.relation
    options = {"loss": suite.loss, "relation": stated, **options}
    found: Hunt = _run(
        hunt, mechanism, space, claim, flake=flake, rng=seed, sampling=sampling, **options
    )
    among = f"on the pair with the largest predicted violation of {found.tried:,} pairs"
    inputs = "".join(f"\n    {mark} {text}" for mark, text in compared(found.pair))
    more = f"\n  inputs ({found.pair.relation}), found among {found.tried:,} pairs:{inputs}"
    try:
        _fail(found.verdict, flake, f"{among}; give a larger budget or a larger flake", more)
    except PrivacyViolation as error:
        error.hunt = found
        raise
    power = found.verdict.power_statement or found.verdict.on_other_events
    said = found.verdict.headline, f"{found.tried:,} pairs were tried", power
    print("; ".join(filter(None, said)))
    return found


@_named_options()
def assert_holds(
    mechanism: Any,
    pairs: Any,
    claim: Any,
    *,
    n: int | None = None,
    confidence: float | None = None,
    relation: Relation | str | None = None,
    rng: Seed = _SUITE,
    seed: Seed = _SUITE,
    sampling: Sampling | None = None,
) -> Verification:
    """Fail unless the draws verify the claim on these pairs (`dpassay.verify`).

    A claim that is false on one of them passes with probability 1 − `confidence` at most, 0.05 by
    default. A true claim passes if n (1 000 000 by default) is large enough for its margin: claim a
    δ > 0, and an ε a little above the proven one. Under pytest, `dp_holds_n` and `dp_confidence` change
    the defaults.

    >>> import dpassay as dp
    >>> shown = assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1.1, delta=1e-3", n=50_000)
    (1.1, 0.001)-DP holds on this pair: δ(1.1) ≤ 7.49e-05 with confidence 0.95
    >>> shown.upper < 1e-3
    True
    """
    __tracebackhide__ = True
    suite = settings.current()
    found: Verification = _run(
        verify,
        mechanism,
        pairs,
        claim,
        n=suite.holds_n if n is None else n,
        confidence=suite.confidence if confidence is None else confidence,
        relation=suite.relation if relation is None else relation,
        rng=_seed(pairs, rng, seed),
        sampling=sampling,
    )
    if not found.confirmed:
        message = f"{found}\n  on inputs {found.worst.pair}"
        message += "" if len(found.pairs) == 1 else ", the worst of them"
        point = found.claim.point
        hopeless = found.looks_false or why_trivial(found.worst.unseen) or found.diagnosis
        if point is not None and point[1] and found.about.n is not None and not hopeless:
            # where the true δ is far below the claimed one the bound falls about as 1/n
            draws = min(found.about.n) * found.upper / point[1]
            takes = shortest_above(1.5 * draws, 2 * draws)
            message += (
                f"\n  to verify it takes about {takes:,.0f} draws a side, more if the true δ is near the "
                "claimed one; with a larger ε in the claim it takes fewer"
            )
        raise NotShown(message, found)
    print(f"{found.headline}: {found.bound} with confidence {level(found.confidence)}")
    return found


def _seed(pairs: Any, rng: Seed, seed: Seed) -> Seed:
    """The seed that was given, as `rng` or as `seed`; else that of the suite.

    Under `@given` of Hypothesis the inputs decide it too: an example that comes again, to be shrunk or
    from the database, has the same draws and verdict.
    """
    __tracebackhide__ = True
    if rng is not _SUITE and seed is not _SUITE:
        raise InvalidInput("rng and seed are the same option: give one of them")
    if rng is not _SUITE or seed is not _SUITE:
        return seed if rng is _SUITE else rng
    suite: Seed = settings.current().rng
    control = sys.modules.get("hypothesis.control")
    if suite is None or control is None or not control.currently_in_test_context():
        return suite
    inputs = digest_of(pairs)
    if inputs is None:
        return suite
    both = str(seed_of(suite)).encode() + inputs
    return int.from_bytes(hashlib.blake2b(both, digest_size=7).digest(), "big")


def _refuted(verdict: Verdict, flake: float) -> str:
    """The message of a violation, with its witness."""
    c, w = verdict.claim, verdict.witness
    lines = [f"not {c.short}: {verdict.bound} on {w.pair and w.pair.inputs}"]
    if verdict.guarantee is Guarantee.EXACT:
        lines.append(f"wrong with probability {flake:g} at most")
    else:  # doubts about independent draws
        lines.append(f"how often this is wrong is not known ({verdict.guarantee}):")
        lines += verdict.about.notes
    if w.pair is not None and w.pair.name:
        lines.append(f"inputs: {w.pair.name}")
    if verdict.second is not None:
        lines.append(f"and {second_bound(verdict)}; both at once")
    lines.append(verdict.witness_text)
    if w.event.of_representation or BITS in verdict.about.notes:
        lines.append(BITS)
    lines += [f"{name}: {text}" for name, text in explained(verdict.diagnosis, verdict.belief)]
    lines += [
        "to repeat it on fresh draws, wrap the assertion:",
        "  import dpassay as dp",
        "  try:",
        "      ...  # this assertion",
        "  except dp.testing.PrivacyViolation as error:",
        "      print(dp.replay(error.verdict, mechanism))",
        "      raise",
        f"  # add confidence={level(1 - flake)} to test as strictly",
    ]
    return "\n  ".join(lines)
