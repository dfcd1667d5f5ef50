"""A number of draws that the clock decides costs no validity, even where outputs decide the time."""

import numpy as np
from scipy.stats import binom
from tests.unit.test_budget import PAIR, QUIET, fake  # noqa: F401

import dpassay as dp


def test_time_that_depends_on_the_outputs_raises_no_alarm(fake, seeds):  # noqa: F811
    """Outputs above 1 take ten times as long: who stopped by the clock while testing would be misled."""

    def mechanism(x, size, rng):
        found = np.round(x + rng.laplace(size=size), 2)
        fake.now += 1e-3 * (size + 9 * np.count_nonzero(found > 1))
        return found

    count, gamma = 25, 0.05
    alarms = 0
    for seed in seeds[:count]:
        fake.now = 0.0
        verdict = dp.audit(mechanism, PAIR, "eps=1", seconds=3.0, rng=seed, sampling=QUIET)
        assert fake.now <= 1.5 * 3.0  # the outputs decide, and one run is no average
        alarms += verdict.violated
    assert alarms <= binom.ppf(1 - 0.01 / 3, count, gamma)
