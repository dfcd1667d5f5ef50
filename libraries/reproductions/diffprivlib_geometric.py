"""diffprivlib: what Geometric with ε = 1 makes of two integers that differ by 1."""

from math import exp

from diffprivlib.mechanisms import Geometric

noise = Geometric(epsilon=1.0, sensitivity=1)
low = {}
for value in (2**53 + 1, 2**53 + 2):
    low[value] = sum(noise.randomise(value) < 2**53 for _ in range(20_000))
    print(f"2**53 + {value - 2**53}: below 2**53 in {low[value]} of 20000")
print(f"ε = 1 allows a factor of {exp(1):.2f}; this is {low[2**53 + 1] / low[2**53 + 2]:.2f}")
