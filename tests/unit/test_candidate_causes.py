"""Shifts, scales and mixtures are told apart where draws tell them apart."""

import re
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.diagnosis.noise_fit import Numbers
from dpassay.diagnosis.parts import coordinates
from dpassay.outputs.canonical import all_of
from dpassay.outputs.templates import NUMBER
from dpassay.results.explanations import Fault


def numbers(p, q):
    first, second = all_of(p), all_of(q)
    (part,) = coordinates(NUMBER, first)
    return Numbers(part, first, second)


def softplus(z):
    return np.log1p(np.exp(-z))


def subsampled(x, size, rng, q):
    return np.round((rng.random(size) < q) * x + rng.normal(size=size), 4)


@pytest.mark.parametrize("noise", ["normal", "laplace", "exponential"])
def test_the_same_noise_is_seldom_called_another(noise, seeds):
    found = 0
    for seed in seeds[:100]:
        rng = np.random.default_rng(seed)
        p, q = (getattr(rng, noise)(size=2000) for _ in range(2))
        found += not numbers(np.round(p, 2), np.round(1 + q, 2)).same_noise
    assert found <= binom.ppf(1 - 1e-3, 100, 1e-3)


def test_the_sampling_rate_of_a_curve_is_no_scale(seed):
    """The noise multiplier is right and the sampling rate is not: no scale of a Gaussian is named."""
    curve = dp.TradeoffDP.from_delta(
        lambda e: 0.2 * dp.GaussianDP(1.0).delta_at(np.log1p(np.expm1(e) / 0.2))
    )
    found = dp.audit(partial(subsampled, q=0.5), (0.0, 1.0), curve, n=20_000, rng=seed).diagnosis
    assert {one.kind for one in found} == {Fault.SHIFT, Fault.SCALE}
    for one in found:
        assert "Gaussian" not in one.sentence
        assert "as with subsampling" in one.sentence
        assert "the sampling rate" in one.hint
    full = dp.audit(partial(subsampled, q=1.0), (0.0, 1.0), curve, n=20_000, rng=seed).diagnosis
    (scale,) = (one for one in full if one.kind is Fault.SCALE)
    assert "needs, without subsampling, a scale of" in scale.sentence
    assert "the sampling rate" in scale.hint


def unclipped(x, size, rng, gradient):
    """Five steps of which each adds the gradient in half of the cases, and noise of 1.5."""
    steps = gradient * (rng.random((5, size)) < 0.5) * x + 1.5 * rng.normal(size=(5, size))
    return np.round(steps.sum(axis=0), 4)


@pytest.mark.parametrize("gradient", [3.0, 4.0, 10.0])
def test_a_mixture_that_is_moved_is_a_shift_before_it_is_a_scale_of_the_data(gradient, seeds):
    curve = dp.TradeoffDP.from_delta(dp.GaussianDP(1.0).delta_at)
    for seed in seeds[:4]:
        release = partial(unclipped, gradient=gradient)
        found = dp.audit(release, (0, 1), curve, n=4000, rng=seed, loss="values").diagnosis
        assert [one.kind for one in found[:2]] == [Fault.SHIFT, Fault.SCALE]
        assert "draws do not tell which" in found[0].sentence
        for one in found[2:]:
            assert one.kind is Fault.DATA_DEPENDENT_SCALE
            assert "a mixture, as of subsampling" in one.sentence


def test_of_a_curve_a_spread_that_is_not_moved_is_a_scale_of_the_data(seed):
    rng, curve = np.random.default_rng(seed), dp.TradeoffDP.from_delta(dp.GaussianDP(0.5).delta_at)
    samples = dp.from_samples(rng.normal(size=4000), 3 * rng.normal(size=4000))
    found = dp.audit(samples, claim=curve, rng=seed, loss="values").diagnosis
    assert found[0].kind is Fault.DATA_DEPENDENT_SCALE
    assert found[0].backed.endswith("the cause is a guess")


@pytest.mark.parametrize("centre", [-5.0, 4.0])
def test_losses_of_shifted_noise_are_a_shift_before_they_are_a_scale(centre, seeds):
    for seed in seeds[:8]:
        rng = np.random.default_rng(seed)
        sides = softplus(rng.normal(centre, 3, 1000)), softplus(rng.normal(0, 3, 1000))
        samples = dp.from_samples(*sides)
        found = dp.audit(samples, claim="mu=0.5", loss="values", rng=seed).diagnosis
        assert {one.kind for one in found[:2]} == {Fault.SHIFT, Fault.SCALE}
        for one in found[2:]:
            assert one.kind is not Fault.DATA_DEPENDENT_SCALE or "several readings" in one.sentence


def test_quantile_functions_of_two_scales_cross(seeds):
    for seed in seeds[:20]:
        rng = np.random.default_rng(seed)
        z, w = rng.normal(size=(2, 1000))
        assert numbers(z, 0.5 + 2 * w).crossing
        assert not numbers(softplus(z), softplus(w - 1)).crossing
        assert not numbers(np.exp(w + 1), np.exp(z)).crossing


def test_beside_another_cause_noise_is_too_small_by_more_than_its_standard_errors(seeds):
    """A key that comes on one input, and in other outputs the correct noise of a count, or half of it."""
    small = {1.0: 0, 0.5: 0}
    for seed in seeds[:8]:
        for factor in small:
            rng = np.random.default_rng(seed)
            counts = np.round([[0.0], [1.0]] + factor * rng.laplace(scale=2, size=(2, 3000)), 2)
            flags = rng.random((2, 3000)) < [[0.0], [0.2]]
            rows = [
                [{"flag": "a"} if f else {"count": c} for c, f in zip(*side, strict=True)]
                for side in zip(counts.tolist(), flags.tolist(), strict=True)
            ]
            first, *rest = dp.audit(dp.from_samples(*rows), claim="eps=0.5", rng=seed).diagnosis
            assert first.kind is Fault.SUPPORT
            small[factor] += any(one.kind in (Fault.SHIFT, Fault.SCALE) for one in rest)
    assert small[1.0] <= binom.ppf(1 - 1e-3, 8, 0.05)
    assert small[0.5] == 8


def test_a_limit_of_a_shift_is_below_its_estimate(seeds):
    said = 0
    for seed in seeds[:30]:
        rng = np.random.default_rng(seed)
        sides = softplus(rng.normal(2, 1, 600)), softplus(rng.normal(0, 1, 600))
        for one in dp.audit(dp.from_samples(*sides), claim="mu=1", rng=seed).diagnosis:
            if found := re.search(r"moves by about ([\d.]+), at least ([\d.]+)", one.sentence):
                assert float(found[1]) >= float(found[2])
                said += 1
    assert said > 20
