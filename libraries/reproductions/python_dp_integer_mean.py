"""PyDP: the mean of one integer, and of that integer and 2, with ε = 1."""

from pydp.algorithms.laplacian import BoundedMean

largest = 2**31 - 2
for data in ([largest], [largest, 2]):
    mean = BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=largest, dtype="int")
    high = 0
    for _ in range(10_000):
        mean.reset()
        high += mean.quick_result(data) == largest
    print(f"mean of {data}: at the upper bound in {high} of 10000; e·{high} is {2.718 * high:.0f}")
