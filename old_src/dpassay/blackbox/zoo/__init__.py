"""Mechanisms with exact truths, correct and broken: ground truth for everything else.

A zoo mechanism is called like any other, `mechanism(data, size, rng)`, and also knows, for a pair
of inputs, `.epsilon(pair)`, `.delta(epsilon, pair)`, `.renyi(order, pair)` and
`.tradeoff(alpha, pair)`. Where the truth is not known exactly it raises `NoClosedForm`.
"""

from typing import Any

from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.blackbox.zoo.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Staircase,
    TruncatedLaplace,
    WrongSensitivityLaplace,
)
from dpassay.blackbox.zoo.releases import (
    KaryRandomizedResponse,
    NaiveGaussian,
    NaiveLaplace,
    NoiselessHistogram,
    NoisyHistogram,
    ProposeTestRelease,
    RaisesOnOne,
    RandomizedResponse,
    ShuffledRandomizedResponse,
    StringOnOne,
)
from dpassay.blackbox.zoo.selection import (
    ContinuousExponential,
    ContinuousNoisyMax,
    ExponentialCounting,
    ReportNoisyMax,
)
from dpassay.blackbox.zoo.svt import SVT, NumericalSVT
from dpassay.blackbox.zoo.training import (
    NoisyGradientDescent,
    PoissonSubsampled,
    Subsampled,
    TorchGaussian,
    TorchLaplace,
    TorchNoisyGradientDescent,
    ToyDPSGD,
)

__all__ = [
    "SVT", "ContinuousExponential", "ContinuousNoisyMax", "DiscreteGaussian", "DiscreteLaplace",
    "ExponentialCounting", "Gaussian", "KaryRandomizedResponse", "Laplace", "NaiveGaussian",
    "NaiveLaplace", "NoiselessHistogram", "NoisyGradientDescent", "NoisyHistogram", "NumericalSVT",
    "PoissonSubsampled", "ProposeTestRelease", "RaisesOnOne", "RandomizedResponse",
    "ReportNoisyMax", "ShuffledRandomizedResponse", "Staircase", "StringOnOne", "Subsampled",
    "TorchGaussian", "TorchLaplace", "TorchNoisyGradientDescent", "ToyDPSGD", "TruncatedLaplace",
    "WrongSensitivityLaplace", "ZooMechanism", "members",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    meant = [one for one in __all__ if one.lower() == name.lower().replace("_", "")]
    remedy = f"; did you mean dp.zoo.{meant[0]}?" if meant else ""
    raise AttributeError(f"dpassay.zoo has no {name!r}{remedy}")


def members() -> list[ZooMechanism]:
    """One of each, the broken twins included."""
    return [
        Laplace(),
        NaiveLaplace(),
        WrongSensitivityLaplace(),
        TruncatedLaplace(honest=True),
        TruncatedLaplace(),
        Gaussian(),
        NaiveGaussian(),
        DiscreteLaplace(),
        DiscreteGaussian(),
        Staircase(),
        ContinuousExponential(),
        ExponentialCounting(),
        RandomizedResponse(),
        KaryRandomizedResponse(),
        ShuffledRandomizedResponse(),
        PoissonSubsampled(Laplace(5.0)),
        PoissonSubsampled(Gaussian(5.0)),
        Subsampled(Gaussian(1.0)),
        NoisyGradientDescent(),
        ToyDPSGD(),
        *(ReportNoisyMax(1.5, variant) for variant in (5, 6, 7, 8)),
        ContinuousNoisyMax(),
        *(SVT(variant, 0.7) for variant in range(1, 7)),
        NumericalSVT(0.7),
        NoisyHistogram(),
        NoisyHistogram(broken=True),
        NoiselessHistogram(),
        ProposeTestRelease(),
        RaisesOnOne(),
        StringOnOne(),
    ]
