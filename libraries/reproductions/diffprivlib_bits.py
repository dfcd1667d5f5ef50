"""diffprivlib: how often the lowest set bit of Laplace noise on 0 and on 1 is below 2**-53."""

from fractions import Fraction

from diffprivlib.mechanisms import Laplace

mechanism = Laplace(epsilon=1.0, sensitivity=1.0)
for value in (0.0, 1.0):
    outputs = [mechanism.randomise(value) for _ in range(20_000)]
    fine = sum(Fraction(output).denominator > 2**53 for output in outputs)
    print(f"on {value}: {fine} of 20000 (at epsilon=1 no event is e times likelier)")
