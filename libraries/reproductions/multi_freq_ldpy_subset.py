"""Multi-Freq-LDPy: in which place of the subset the true value is."""

from collections import Counter

from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

for value in (0, 1):
    places: Counter[object] = Counter()
    for _ in range(10_000):
        sent = SS_Client(value, 8, 1.0).tolist()
        places[sent.index(0) if 0 in sent else "not there"] += 1
    print(f"true value {value}: places of 0 in the subset {dict(places)}")
