"""diffprivlib: a regression on bounds that begin at 0, one record replaced."""

import numpy as np
from diffprivlib.models import LinearRegression

x = np.array([0.0, 0.5, 1.0, 1.0])[:, None]
for last in (1.0, 0.0):
    slopes = []
    for _ in range(500):
        model = LinearRegression(epsilon=1.0, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0))
        slopes.append(float(np.ravel(model.fit(x, [0.0, 0.5, 1.0, last]).coef_)[0]))
    print(f"last target {last}: slope {np.quantile(slopes, [0.05, 0.5, 0.95]).round(2)}")
