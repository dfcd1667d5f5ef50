"""diffprivlib: under which relation a sum and a histogram keep their claim."""

from diffprivlib.tools import histogram
from diffprivlib.tools import sum as private_sum

for records in (5, 4):
    outputs = [private_sum([100.0] * records, bounds=(100.0, 101.0), epsilon=1.0) for _ in range(9)]
    print(f"sum of {records} records: from {min(outputs):.1f} to {max(outputs):.1f}")
for data in ([0.2, 0.2], [0.2, 0.7]):
    hits = sum(
        histogram(data, bins=2, range=(0.0, 1.0), epsilon=1.0)[0].tolist() == [0, 2]
        for _ in range(10_000)
    )
    print(f"histogram of {data}: [0, 2] in {hits} of 10000")
