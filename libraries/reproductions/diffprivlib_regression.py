"""diffprivlib: how far from 0 the slope of a regression is, before and after one record changes."""

import numpy as np
from diffprivlib.models import LinearRegression

for last in (0.1, 1.0):
    x, y = np.array([[0.1], [0.1], [0.1], [last]]), np.array([0.1, 0.1, 0.1, 0.0])
    far = 0
    for _ in range(500):
        model = LinearRegression(
            epsilon=1.0, fit_intercept=False, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0)
        )
        far += abs(model.fit(x, y).coef_[0]) > 20
    print(f"last record {last}: the slope is beyond ±20 in {far} of 500 fits")
