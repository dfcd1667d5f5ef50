"""What a project writes that audits its releases: every verb, every kind of result, with strict types.

`assert_type` fails the type check where dpassay's declared types say something else, or nothing.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import dpassay as dp
from dpassay.errors import DpassayError
from dpassay.testing import AuditTooWeak, assert_private

PAIR = (0.0, 1.0)
CLAIMS: Sequence[dp.Claim] = [
    dp.PureDP(1.0),
    dp.ApproximateDP(1.0, 1e-5),
    dp.RenyiDP(order=5, epsilon=0.2),
    dp.ZeroConcentratedDP(rho=0.5),
    dp.GaussianDP(mu=1.0),
    dp.claim("eps=1, delta=1e-5"),
]


def release(x: float, size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """The mechanism under audit."""
    return np.round(x + rng.laplace(scale=1.0, size=size), 6)


def total(
    data: npt.NDArray[np.float64], size: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """A sum over records."""
    return release(float(data.sum()), size, rng)


def one_release(x: float) -> float:
    """One output a call."""
    return round(x + float(np.random.default_rng().laplace()), 6)


def audits() -> list[dp.Verdict]:
    """Claims tested in every way."""
    sampling = dp.Sampling(workers=2, progress=False)
    verdict = assert_type(
        dp.audit(release, PAIR, "eps=1", n=2_000, confidence=0.95, rng=0, sampling=sampling),
        dp.Verdict,
    )
    samples = assert_type(dp.draw(release, PAIR, n=2_000, rng=0), dp.Samples)
    wrapped = dp.from_function(one_release)
    watch = dp.Monitor("eps=1", rng=0)
    rng = np.random.default_rng(0)
    watch.update(release(0.0, 200, rng), release(1.0, 200, rng))
    hunt = assert_type(
        dp.hunt(total, dp.inputs.Reals(0, 1, 3), "eps=1", budget=20_000, rng=0), dp.Hunt
    )
    return [
        verdict,
        dp.audit(samples, claim=dp.PureDP(1.0)),
        dp.audit(wrapped, [PAIR, (1.0, 0.0)], dp.PureDP(1.0), n=500, rng=0),
        dp.audit_counts(450, 1000, 184, 1000, "eps=0.5"),
        assert_type(dp.monitor(release, PAIR, "eps=1", max_n=2_000, rng=0), dp.Verdict),
        dp.tradeoff.audit(release, PAIR, dp.GaussianDP(1.0), n_locate=500, n_test=500, rng=0),
        assert_type(watch.verdict(), dp.Verdict),
        assert_type(dp.replay(verdict.witness, release, claim="eps=1", n=500, rng=1), dp.Verdict),
        hunt.verdict,
    ]


def numbers() -> dict[str, float]:
    """Bounds and estimates, which are different types."""
    bound = assert_type(dp.bound(release, PAIR, "eps", n=2_000, rng=0), dp.LowerBound)
    shown = assert_type(
        dp.verify(release, PAIR, "eps=1, delta=0.1", n=2_000, rng=0), dp.Verification
    )
    profile = assert_type(dp.estimate(release, PAIR, n=2_000, rng=0), dp.Profile)
    spectrum = assert_type(
        dp.spectrum.estimate(release, PAIR, epsilons=[0.0, 1.0], n=2_000, rng=0), dp.Spectrum
    )
    estimate = assert_type(dp.pure.estimate(release, PAIR, n=2_000, rng=0), dp.Estimate)
    plan = assert_type(dp.plan("eps=1", excess=0.2), dp.Plan)
    laplace = dp.zoo.Laplace(scale=1.0)
    return {
        "bound": assert_type(bound.value, float),
        "upper": assert_type(shown.upper, float),
        "epsilon": assert_type(profile.epsilon, float),
        "delta": float(profile.delta(0.5)),  # of an array an array
        "renyi": float(profile.renyi(2.0)),
        "spectrum": float(spectrum.y[0]),
        "estimate": assert_type(estimate.value, float),
        "draws": float(plan.draws or 0),
        "truth": assert_type(laplace.epsilon(PAIR), float),
    }


def kept(verdict: dp.Verdict, path: Path) -> dp.Verdict:
    """A verdict, written to a file and read back."""
    path.write_text(assert_type(verdict.to_json(), str), encoding="utf-8")
    return assert_type(dp.Verdict.from_json(path.read_text(encoding="utf-8")), dp.Verdict)


def described(verdict: dp.Verdict) -> str:
    """The parts of a verdict that a program reads."""
    assert_type(verdict.violated, bool)
    assert_type(verdict.smallest_detectable, float | None)
    assert_type(verdict.witness, dp.Witness)
    assert_type(verdict.witness.pair, dp.Pair | None)
    exact = verdict.guarantee is dp.Guarantee.EXACT
    return f"{verdict.headline}: ≥ {verdict.lower_bound} (p ≤ {verdict.p_value}, exact: {exact})"


def test_release() -> None:
    """A test of one's own suite."""
    assert_private(release, PAIR, "eps=1", n=5_000)


def main() -> int:
    """The exit status: 1 if a claim is refuted."""
    try:
        test_release()
        found = audits()
    except AuditTooWeak as error:
        print(error, file=sys.stderr)
        return 4
    except DpassayError as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        found = [kept(verdict, Path(folder) / "verdict.json") for verdict in found]
    print(numbers())
    for verdict in found:
        print(described(verdict))
    return int(any(verdict.violated for verdict in found))


if __name__ == "__main__":
    sys.exit(main())
