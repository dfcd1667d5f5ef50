"""Composition of spectra, against privacy loss distributions and a counterexample."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput

EPS = np.linspace(0, 3, 61)
PAIR = (0.0, 1.0)


def exact(box):
    return dp.Spectrum(EPS, np.maximum(box.delta(EPS, PAIR), box.delta(EPS, PAIR[::-1])))


def test_guarantees_of_single_points_compose_as_the_propositions_say():
    """(1, 0) and (½, .3) give (1, .3) in parallel and (1.5, .3) in sequence."""
    first = dp.Spectrum([0.0, 0.5, 1.0, 1.5], [0.5, 0.4, 0.0, 0.0])
    second = dp.Spectrum([0.0, 0.5, 1.0, 1.5], [1.0, 0.3, 0.3, 0.3])
    side = dp.spectrum.parallel(first, second)
    assert side(1.0) == 0.3
    both = dp.spectrum.sequential(first, second)
    assert list(both.y) == [1.0, 0.8, 0.7, 0.3]  # the best split of ε at each


@pytest.mark.parametrize("noise", [dp.zoo.Laplace(1.0), dp.zoo.Gaussian(2.0)])
def test_sequential_composition_is_above_the_exact_spectrum_of_both(noise):
    """Two releases of the same number: the exact δ is that of the product of the finite pairs."""
    one = noise.masses(PAIR) if isinstance(noise, dp.zoo.Laplace) else None
    bound = dp.spectrum.sequential(exact(noise), exact(noise))
    if one is None:  # Gaussian: two releases are one with σ/√2
        truth = dp.zoo.Gaussian(2.0 / np.sqrt(2)).delta(EPS, PAIR)
    else:
        edges = np.linspace(-0.001, 1.001, 400)
        place = np.searchsorted(edges, (np.clip(one.loss, -1, 1) + 1) / 2)
        p, q = (np.bincount(place, weights=side, minlength=401) for side in (one.p, one.q))
        truth = dp.Masses(np.outer(p, p).ravel(), np.outer(q, q).ravel()).delta(EPS)
    assert np.all(bound.y >= truth - 1e-9)
    assert bound.y[0] < 1.0
    assert np.all(np.diff(bound.y) <= 1e-12)


def test_three_compose_whatever_the_order():
    spectra = [exact(dp.zoo.Laplace(b)) for b in (1.0, 2.0, 4.0)]
    assert dp.spectrum.sequential(*spectra)(1.75) == pytest.approx(0.0, abs=1e-12)
    assert dp.spectrum.sequential(*spectra[::-1]).y == pytest.approx(
        dp.spectrum.sequential(*spectra).y
    )


def test_a_spectrum_that_is_used_several_times_is_wrong_once():
    one = dp.Spectrum([0.0, 1.0], [0.02, 0.0], upper=[0.03, 0.01], confidence=0.95)
    assert dp.spectrum.sequential(*[one] * 5).confidence == pytest.approx(0.95)


def test_certified_curves_hold_at_the_joint_confidence():
    a = dp.Spectrum([0.0, 1.0], [0.4, 0.1], lower=[0.3, 0.0], upper=[0.5, 0.2], confidence=0.95)
    b = dp.Spectrum([0.0, 1.0], [0.2, 0.0], lower=[0.1, 0.0], upper=[0.3, 0.1], confidence=0.98)
    both = dp.spectrum.sequential(a, b)
    assert both.confidence == pytest.approx(0.93)
    assert list(both.upper) == pytest.approx([0.8, 0.5])  # .2 + .3 at ε = 1 + 0
    assert list(both.lower) == [0.3, 0.0]
    side = dp.spectrum.parallel(a, b)
    assert list(side.upper) == [0.5, 0.2]
    assert dp.spectrum.parallel(a, dp.Spectrum([0.0, 1.0], [0.2, 0.0])).upper is None


def test_distributional_guarantees_do_not_compose(seed):
    """The sum of ten coins, and the sum without row 0: each hides row 0, both together do not."""
    coins = dp.neighbours.Population(lambda size, rows, rng: rng.integers(2, size=(size, rows)), 11)

    def spectrum(mechanism):
        return dp.spectrum.distributional(
            mechanism,
            coins,
            [0, 1],
            rows=[0],
            batched=True,
            epsilons=[0.0, 1.0],
            n=20_000,
            rng=seed,
        )

    whole = spectrum(lambda data, rng: data.sum(axis=1))
    rest = spectrum(lambda data, rng: data[:, 1:].sum(axis=1))
    both = spectrum(lambda data, rng: np.stack([data.sum(axis=1), data[:, 1:].sum(axis=1)], axis=1))
    assert whole.y[0] + rest.y[0] < 0.4
    assert both.lower[0] > 0.9
    with pytest.raises(InvalidInput, match="distributional guarantees do not compose"):
        dp.spectrum.sequential(whole, rest)


@pytest.mark.parametrize(
    "other", [0.5, dp.Spectrum([0.0, 2.0], [1, 0]), dp.Spectrum([0.0, 0.5, 1.0], [1, 0.5, 0])]
)
def test_what_cannot_be_composed_is_refused(other):
    with pytest.raises(InvalidInput, match="the same grid"):
        dp.spectrum.parallel(dp.Spectrum([0.0, 1.0], [1, 0]), other)
