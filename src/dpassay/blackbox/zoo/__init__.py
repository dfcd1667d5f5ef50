"""Mechanisms with exact truths, correct and broken: ground truth for everything else.

A zoo mechanism is called like any other, `mechanism(data, size, rng)`, and also knows, for a pair
of inputs, `.epsilon(pair)`, `.delta(epsilon, pair)`, `.renyi(order, pair)` and
`.tradeoff(alpha, pair)`. Where the truth is not known exactly it raises `NoClosedForm`.
"""

from dpassay.blackbox.zoo.base import ZooMechanism
from dpassay.blackbox.zoo.maximum import ReportNoisyMax
from dpassay.blackbox.zoo.noise import Gaussian, Laplace
from dpassay.blackbox.zoo.response import RandomizedResponse

__all__ = [
    "Gaussian",
    "Laplace",
    "RandomizedResponse",
    "ReportNoisyMax",
    "ZooMechanism",
    "members",
]


def members() -> list[ZooMechanism]:
    """One of each, with the parameters of its default pair."""
    return [Laplace(), Gaussian(), RandomizedResponse(), ReportNoisyMax()]
