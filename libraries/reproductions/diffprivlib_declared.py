"""diffprivlib: a class that is declared, with no record and with one."""

import numpy as np
from diffprivlib.models import GaussianNB

x = np.array([[0.0], [1.0], [0.0], [1.0], [0.5]])
for last in (0, 2):
    zero = 0
    for _ in range(500):
        model = GaussianNB(epsilon=1.0, bounds=(0.0, 1.0))
        model.partial_fit(x, np.array([0, 0, 1, 1, last]), classes=[0, 1, 2])
        zero += model.class_count_[2] == 0 and model.theta_[2, 0] == 0
    print(f"class of the last record {last}: count and mean of class 2 are 0 in {zero} of 500 fits")
