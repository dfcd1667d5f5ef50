"""diffprivlib: nanmean with nine NaN of ten records, one of them replaced."""

from diffprivlib.tools import nanmean

nan = float("nan")
for first in (0.0, 1.0):
    data = [first] + [nan] * 9
    high = sum(nanmean(data, bounds=(0.0, 1.0), epsilon=1.0) > 0.5 for _ in range(2_000))
    print(f"[{first}, nan × 9]: above one half in {high} of 2000")
