"""dp-accounting: ε of Gaussian noise on a sum in which +1 becomes −1, by both accountants."""

import math

from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

delta, relation = 1e-3, NeighboringRelation.REPLACE_ONE
for make in (RdpAccountant, PLDAccountant):
    accountant = make(neighboring_relation=relation).compose(GaussianDpEvent(2.0))
    epsilon = float(accountant.get_epsilon(delta))
    mu = 2 / 2.0  # a change of 2 over noise of standard deviation 2
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    print(
        f"{make.__name__}: ε = {epsilon:.3f} at δ = {delta}; the exact δ of that ε is {exact:.4f}"
    )
