"""diffprivlib: the mean and the median with and without a NaN among the records."""

import math

from diffprivlib.tools import mean, median

for data in ([0.0, 0.5, 0.6], [0.0, 0.5, math.nan]):
    for tool in (mean, median):
        none = sum(math.isnan(tool(data, bounds=(0.0, 1.0), epsilon=1.0)) for _ in range(1_000))
        print(f"{tool.__name__} of {data}: NaN in {none} of 1000")
