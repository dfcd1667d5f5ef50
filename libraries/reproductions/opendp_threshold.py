"""OpenDP: how often a key that one record brings is released, beside the δ that is reported."""

import opendp.prelude as dp

dp.enable_features("contrib")
users = [f"user{k}" for k in range(100_000)]  # each key is one record's
rows = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
release = rows >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
print("reported delta:", release.map(1)[1])
print("released:      ", len(release(users)) / len(users))
