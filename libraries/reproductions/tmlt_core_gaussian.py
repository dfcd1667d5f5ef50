"""Tumult Core: how many outputs of Gaussian noise on 0 and on 1 have bits below 2**-53."""

from fractions import Fraction

import numpy as np
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.measurements.noise_mechanisms import AddGaussianNoise

measurement = AddGaussianNoise(NumpyFloatDomain(), 1)
for value in (0.0, 1.0):
    outputs = [measurement(np.float64(value)) for _ in range(5_000)]
    fine = sum(Fraction(output).denominator > 2**53 for output in outputs)
    print(f"on {value}: {fine} of 5000")
