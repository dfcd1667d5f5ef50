"""diffprivlib: GaussianNB with bounds far from zero; one record changes its label."""

import numpy as np
from diffprivlib.models import GaussianNB

x = np.array([1000.0, 1001.0, 1000.0, 1001.0, 1001.0])[:, None]
for last in (0, 1):
    y, seen = [0, 0, 1, 1, last], 0
    for _ in range(2_000):
        model = GaussianNB(epsilon=1.0, bounds=(1000.0, 1001.0)).fit(x, y)
        seen += model.class_count_[0] == 3 and 1000.0 < model.theta_[0, 0] < 1001.0
    print(f"label {last}: three records in class 0 with a mean inside the bounds in {seen} of 2000")
