"""The synthetic-data generators: planted faults leak, twins keep ε = 1, tables have their shape."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.generators import GENERATORS, neighbours, reduced, verdict
from scipy.stats import binom

NAMES = [generator.name for generator in GENERATORS]


@pytest.mark.parametrize("generator", GENERATORS, ids=NAMES)
@pytest.mark.parametrize("fault", [True, False])
def test_tables_have_mixed_columns_and_30_to_60_rows(generator, fault, seed):
    for data in neighbours():
        tables = generator.make(fault)(data, 20, np.random.default_rng(seed))
        assert all(30 <= len(table) <= 60 for table in tables)
        assert all(list(table.columns) == list(data.columns) for table in tables)
        assert all((table.dtypes == data.dtypes).all() for table in tables)
        assert not any(tables[0].equals(table) for table in tables[1:])
        pd.testing.assert_frame_equal(data, neighbours()[len(data) - 40])


@pytest.mark.parametrize("generator", GENERATORS, ids=NAMES)
def test_the_feature_of_a_fault_certifies_more_than_is_claimed(generator, seed):
    found = verdict(reduced(generator, True), 400, 0.999, seed)
    assert found.violated
    assert found.lower_bound >= 2


def test_features_of_twins_are_refuted_at_most_as_often_as_the_confidence_allows(seed):
    wrong = [
        verdict(reduced(generator, False), 300, 0.95, seed).violated for generator in GENERATORS
    ]
    assert sum(wrong) <= binom.ppf(0.999, len(wrong), 0.05)
