"""Multi-Freq-LDPy: how often RS+FD sends (0, 0, 0), for two tuples that differ in all attributes."""

import math

from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client

epsilon, sizes, n = 1.0, [3, 3, 3], 100_000
hits = [
    sum(RSpFD_GRR_Client(row, sizes, 3, epsilon) == [0, 0, 0] for _ in range(n))
    for row in ((0, 0, 0), (1, 1, 1))
]
print(f"{hits[0]} and {hits[1]} of {n}: ratio {hits[0] / hits[1]:.2f}")
print(f"e^ε = {math.exp(epsilon):.2f}; d (e^ε − 1) + 1 = {3 * (math.exp(epsilon) - 1) + 1:.2f}")
