"""For test suites: fail when a mechanism leaks more than it claims.

    from dpassay.testing import assert_private

    def test_release():
        assert_private(release, (0.0, 1.0), "eps=1", n=20_000)

A correct mechanism fails the test with probability at most `flake`, by default one in a million: the
verdict is exact, not asymptotic. The test passing does not show that the claim holds; its draws would
have seen violations down to the `smallest_detectable` of the verdict that comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpassay.audits import audit
from dpassay.results import Verdict, number
from dpassay.sampling.draw import Sampling, Seed

__all__ = ["PrivacyViolation", "assert_private"]


class PrivacyViolation(AssertionError):
    """A claim was refuted; `verdict` says how."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict


#: Called with every verdict; the pytest plugin collects them for a report.
listeners: list[Callable[[Verdict], None]] = []


def assert_private(
    mechanism: Any,
    pairs: Any,
    claim: Any,
    *,
    n: int | None = None,
    flake: float = 1e-6,
    time_budget: float | None = None,
    rng: Seed = 0,
    sampling: Sampling | None = None,
) -> Verdict:
    """Fail with the witness in the message if the claim is refuted.

    n            draws per side per pair; 20 000 unless a `time_budget` in seconds is given
    flake        the probability with which a mechanism that keeps its claim may fail the test
    rng          a fixed seed by default, so that a test that passes keeps passing

    >>> import dpassay as dp
    >>> verdict = assert_private(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=1", n=5000)
    >>> verdict.violated
    False
    """
    if n is None and time_budget is None:
        n = 20_000
    verdict: Verdict = audit(
        mechanism,
        pairs,
        claim,
        n=n,
        time_budget=time_budget,
        confidence=1 - flake,
        details=bool(listeners),
        rng=rng,
        sampling=sampling or Sampling(progress=False),
    )
    for listener in listeners:
        listener(verdict)
    if verdict.violated:
        c, w = verdict.claim, verdict.witness
        raise PrivacyViolation(
            f"not {c}: {c.symbol} ≥ {number(verdict.lower_bound)}, wrong with probability {flake:g} "
            f"at most\n  on inputs {w.pair}\n  {w.event}: {w.hits_p:,} of {w.n_p:,} against "
            f"{w.hits_q:,} of {w.n_q:,}",
            verdict,
        )
    return verdict
