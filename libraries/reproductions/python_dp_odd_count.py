"""PyDP: how often a mean of integers from 0 to 9, or to 10, ends in .5."""

from pydp.algorithms.laplacian import BoundedMean

for upper in (9, 10):
    for data in ([upper], [upper, 2], [upper, 2, 2], [upper, 2, 2, 2]):
        mean = BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=upper, dtype="int")
        half = 0
        for _ in range(2_000):
            mean.reset()
            half += mean.quick_result(data) % 1 == 0.5
        print(f"mean of {data}, bounds 0 and {upper}: .5 in {half} of 2000")
