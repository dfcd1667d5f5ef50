"""diffprivlib: the fitted model shows a label that only one record has."""

from diffprivlib.models import GaussianNB

x = [[0.0], [1.0], [0.0], [1.0], [0.5]]
for last in (0, 2):
    model = GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)).fit(x, [0, 0, 1, 1, last])
    print(f"label {last}: classes {model.classes_}, means of shape {model.theta_.shape}")
