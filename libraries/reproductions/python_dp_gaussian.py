"""PyDP: how many outputs of Gaussian noise on 0 and on 1 are finer than 2**-53."""

from fractions import Fraction

from pydp.algorithms.numerical_mechanisms import GaussianMechanism

mechanism = GaussianMechanism(1.0, 1e-3, 1.0)
for value in (0.0, 1.0):
    outputs = [mechanism.add_noise(value) for _ in range(20_000)]
    fine = sum(Fraction(output).denominator > 2**53 for output in outputs)
    print(f"on {value}: {fine} of 20000 (at epsilon=1, delta=1e-3)")
