"""autodp: exact probabilities of the sparse vector technique with Laplace noise, against its ε."""

import math

import numpy as np
from autodp.mechanism_zoo import LaplaceSVT_Mechanism
from scipy.stats import laplace


def last_alone(answers: list[float], b: float) -> float:
    """The probability that the last answer is the first above the threshold 0."""
    noise, step = np.linspace(-40 * b, 40 * b, 400_001, retstep=True)
    below = [laplace.cdf(noise - answer, scale=b) for answer in answers]
    density = laplace.pdf(noise, scale=b) * np.prod(below[:-1], axis=0) * (1 - below[-1])
    return float(density.sum() * step)


p, q = last_alone([0, 0, 0, 0, 1], 1.0), last_alone([1, 1, 1, 1, 0], 1.0)
delta = 1e-3
epsilon = LaplaceSVT_Mechanism({"b": 1.0, "k": 5, "c": 1}).get_eps(delta)
print(f"probabilities {p:.4f} and {q:.4f}; log ratio {math.log(p / q):.3f}; claimed {epsilon:.3f}")
print(f"p − e^ε q = {p - math.exp(epsilon) * q:.4f}; δ = {delta}")
