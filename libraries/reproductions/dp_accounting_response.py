"""dp-accounting: ε of randomised response that is used several times, composed in two ways."""

from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
from dp_accounting.pld import PLDAccountant

event = RandomizedResponseDpEvent(noise_parameter=0.8, num_buckets=2)  # truth with probability 0.6
for count in (1, 4, 10):
    at_once = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(event, count)
    one_by_one = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    for _ in range(count):
        one_by_one.compose(event)
    print(
        f"{count} times, δ = 0.01: compose(event, {count}) gives ε = {at_once.get_epsilon(0.01):.4f}, "
        f"{count} calls of compose(event) give {one_by_one.get_epsilon(0.01):.4f}"
    )
