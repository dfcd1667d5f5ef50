"""Multi-Freq-LDPy: how often the first entry of HE is no multiple of 2**-53."""

from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client

for value in (0, 1):
    fine = sum(float(HE_Client(value, 4, 1.0)[0]) * 2.0**53 % 1 != 0 for _ in range(20_000))
    print(f"value {value}: {fine} of 20000")
