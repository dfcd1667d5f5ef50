"""For test suites: fail when a mechanism leaks more than it claims.

    from dpassay.testing import assert_holds, assert_private

    def test_release():
        assert_private(release, (0.0, 1.0), "eps=1", n=20_000)
        assert_holds(release, (0.0, 1.0), "eps=1.1, delta=1e-4", n=1_000_000)

A correct mechanism fails the test with probability at most `flake`, by default one in a million: the
verdict is exact, not asymptotic. The test passing does not show that the claim holds; its draws would
have seen violations down to the `smallest_detectable` of the verdict that comes back. A test whose
draws could not have seen anything does not pass: it raises `AuditTooWeak`.

`hunt_private` looks for the inputs itself: it is told what they look like (`dpassay.inputs`).

`assert_holds` asks for the opposite: it passes only if the draws show that the claim holds on these
pairs, which discrete outputs allow, and raises `NotShown` otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpassay import checks, settings
from dpassay.audits import audit
from dpassay.errors import DpassayError, InvalidInput
from dpassay.hunting.result import Hunt
from dpassay.hunts import hunt
from dpassay.privacy.about import Guarantee
from dpassay.privacy.pairs import Relation
from dpassay.results import Verdict, Verification, number
from dpassay.sampling.draw import Sampling, Seed
from dpassay.verifications import verify

__all__ = [
    "AuditTooWeak",
    "NotShown",
    "PrivacyViolation",
    "assert_holds",
    "assert_private",
    "hunt_private",
]


class PrivacyViolation(AssertionError):
    """A claim was refuted; `verdict` says how."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


class AuditTooWeak(AssertionError):
    """The test could not have seen a violation; `verdict.blind` says why."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


class NotShown(AssertionError):
    """A claim was not shown to hold; `verification` says what was."""

    def __init__(self, message: str, verification: Verification) -> None:
        super().__init__(message)
        self.verification = verification


#: Called with every result; the pytest plugin collects them for a report.
listeners: list[Callable[[Verdict | Verification], None]] = []

#: Stands for what the test suite sets (see `dpassay.settings`), or 0.
_SUITE: Any = "suite"


def assert_private(
    mechanism: Any,
    pairs: Any,
    claim: Any,
    *,
    n: int | None = None,
    flake: float | None = None,
    time_budget: float | None = None,
    relation: Relation | str | None = None,
    loss: Any = "auto",
    rng: Seed = _SUITE,
    sampling: Sampling | None = None,
) -> Verdict:
    """Fail with the witness in the message if the claim is refuted, or could not have been.

    n            draws per side per pair; 20 000 unless a `time_budget` in seconds is given
    flake        the probability with which a mechanism that keeps its claim may be called a violation,
                 10⁻⁶ by default
    relation     what makes the inputs neighbours ("add_remove", "replace", …), for the record
    loss         what ranks the outputs, as for `dpassay.audit`
    rng          a fixed seed by default, so that a test that passes keeps passing

    Under pytest, `dp_n`, `dp_flake` and `dp_seed` in its configuration and the marker
    `@pytest.mark.privacy(n=…, flake=…, seed=…)` change what n, flake and rng are by default.

    >>> import dpassay as dp
    >>> verdict = assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=5000)
    >>> verdict.violated
    False
    """
    __tracebackhide__ = True
    if isinstance(claim, (list, tuple)):
        raise InvalidInput(
            "claim must be one claim or its text such as 'eps=1, delta=1e-5', got "
            f"{checks.shown(claim)}; for several claims call assert_private once for each"
        )
    suite = settings.current()
    if n is None and time_budget is None:
        n = suite.n or 20_000
    flake = suite.flake if flake is None else flake
    try:
        verdict: Verdict = audit(
            mechanism,
            pairs,
            claim,
            n=n,
            time_budget=time_budget,
            confidence=1 - checks.probability("flake", flake),
            loss=loss,
            relation=relation,
            details="violation" if listeners else False,
            rng=suite.rng if rng is _SUITE else rng,
            sampling=sampling or Sampling(progress=False),
        )
    except DpassayError as error:
        raise error.with_traceback(None) from None  # the message says it; our frames do not
    for listener in listeners:
        listener(verdict)
    match verdict.tone:
        case "violation":
            raise PrivacyViolation(_refuted(verdict, flake), verdict)
        case "blind":
            raise AuditTooWeak(
                f"{verdict.headline}: {verdict.blind}\n  with {min(verdict.about.n or (0,)):,} draws a "
                f"side and flake={flake:g}; give a larger n (dp.plan says how many draws it takes), a "
                "larger flake or another loss",
                verdict,
            )
        case _:
            return verdict


def hunt_private(
    mechanism: Any,
    space: Any,
    claim: Any,
    *,
    flake: float = 1e-6,
    rng: Seed = 0,
    sampling: Sampling | None = None,
    **options: Any,
) -> Hunt:
    """Hunt for inputs that break the claim, and fail with the shrunk pair in the message if some do.

    flake    the probability with which a mechanism that keeps its claim may be called a violation
    rng      a fixed seed by default, so that a test that passes keeps passing
    options  those of `dpassay.hunt`: budget or seconds, relation, outside, failing, …

    >>> import dpassay as dp
    >>> found = hunt_private(
    ...     dp.zoo.DiscreteLaplace(1.0), dp.inputs.Integer(0, 9), "eps=1", relation="query", budget=30_000
    ... )
    >>> found.violated
    False
    """
    __tracebackhide__ = True
    found = hunt(
        mechanism,
        space,
        claim,
        confidence=1 - flake,
        rng=rng,
        sampling=sampling or Sampling(progress=False),
        **options,
    )
    verdict = found.verdict
    for listener in listeners:
        listener(verdict)
    if verdict.violated:
        raise PrivacyViolation(f"{_refuted(verdict, flake)}\n{found}", verdict)
    if verdict.blind:
        raise AuditTooWeak(
            f"{verdict.headline}: {verdict.blind}\n  on the most promising of {found.tried:,} pairs; "
            "give a larger budget or a larger flake",
            verdict,
        )
    return found


def assert_holds(
    mechanism: Any,
    pairs: Any,
    claim: Any,
    *,
    n: int = 1_000_000,
    confidence: float = 0.95,
    relation: Relation | str | None = None,
    rng: Seed = _SUITE,
    sampling: Sampling | None = None,
) -> Verification:
    """Fail unless the draws show that the claim holds on these pairs (`dpassay.verify`).

    A claim that is false on one of them passes with probability 1 − `confidence` at most. One that is
    true passes if it leaves the draws room: claim a δ, and an ε a little above the proven one.

    >>> import dpassay as dp
    >>> shown = assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1.1, delta=1e-3", n=50_000)
    >>> shown.upper < 1e-3
    True
    """
    __tracebackhide__ = True
    try:
        found = verify(
            mechanism,
            pairs,
            claim,
            n=n,
            confidence=confidence,
            relation=relation,
            rng=settings.current().rng if rng is _SUITE else rng,
            sampling=sampling or Sampling(progress=False),
        )
    except DpassayError as error:
        raise error.with_traceback(None) from None
    for listener in listeners:
        listener(found)
    if not found.confirmed:
        where = "" if len(found.pairs) == 1 else ", the worst of them"
        raise NotShown(f"{found}\n  on inputs {found.worst.pair}{where}", found)
    return found


def _refuted(verdict: Verdict, flake: float) -> str:
    """What a violation is, with its witness."""
    c, w, other = verdict.claim, verdict.witness, verdict.second
    lines = [f"not {c}: {c.symbol} ≥ {number(verdict.lower_bound)} on {w.pair}"]
    if verdict.guarantee is Guarantee.EXACT:
        lines.append(f"wrong with probability {flake:g} at most")
    else:  # doubts about independent draws
        lines.append(f"how often this is wrong is not known ({verdict.guarantee}):")
        lines += verdict.about.notes
    if other is not None and other.at:
        lines.append(f"and {other}; both at once")
    elif other is not None:
        at = f"{c.symbol} = {number(c.value)}"
        lines.append(
            f"and {other.symbol} ≥ {number(other.lower)} at {at}, claimed {number(other.claimed)}; "
            "both at once"
        )
    lines.append(str(w))
    if w.event.of_representation:
        lines.append(
            'which doubles come out leaks, not their values; loss="values" leaves that out'
        )
    return "\n  ".join(lines)
