"""Multi-Freq-LDPy: how often eight reports of one value are all 0, with eps_perm = 2."""

import math

from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Client

n = 100_000
hits = [
    sum(sum(L_GRR_Client(value, 2, 2.0, 1.0) for _ in range(8)) <= 1 for _ in range(n))
    for value in (0, 1)
]
print(f"at most one 1 in eight reports: {hits[0]} and {hits[1]} of {n}")
print(f"ratio {hits[0] / max(hits[1], 1):.0f}; e^eps_perm = {math.exp(2.0):.1f}")
