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
