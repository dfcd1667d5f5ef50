"""pure-LDP: the type of a report of the Hadamard mechanism says whether it is true."""

import warnings
from collections import Counter

warnings.filterwarnings("ignore")
from pure_ldp.frequency_oracles import HadamardMechClient  # noqa: E402

client, index = HadamardMechClient(epsilon=1.0, d=8, t=2), 2
seen: Counter[object] = Counter()
for _ in range(10_000):
    report = client.privatise(index + 1)
    name = type(report).__name__
    true = all(sign == (-1) ** (index & j).bit_count() for j, sign in report)
    seen[f"{name}, {'true' if true else 'false'}"] += 1
print(dict(seen))
