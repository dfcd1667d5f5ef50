"""The cell of an output is the number of events that hold for it, however that is found."""

import numpy as np
import pytest
from tests.helpers import canonical, objects

from dpassay.learning.cross_fit import CrossFit
from dpassay.outputs.events import Partition
from dpassay.records import Record
from dpassay.sampling.draw import stream
from dpassay.sampling.samples import Batch


def mixed(rng, n):
    numbers = rng.normal(size=n)
    return objects(
        *(["a", None, x, round(x)][k] for x, k in zip(numbers, rng.integers(0, 4, n), strict=True))
    )


OUTPUTS = {
    "numbers": lambda rng, n: rng.normal(size=n),
    "whole": lambda rng, n: rng.poisson(3, n),
    "mixed": mixed,
    "vectors": lambda rng, n: rng.normal(size=(n, 3)),
}


@pytest.mark.parametrize("name", ["kde", "dyadic", "categories", "logistic"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_cells_count_events(kind, name, seed):
    rng = np.random.default_rng(seed)
    p, q = (canonical(OUTPUTS[kind](rng, 400)) for _ in range(2))
    learner = CrossFit(Batch.of(p, q), name, lambda k: stream(seed, k))
    loss = learner.fitted(0)
    cuts = np.quantile(loss.score(p), [0.2, 0.5, 0.9])
    events = [loss.event(float(cut), True) for cut in cuts]
    found = Partition.of(name, events)
    fresh = canonical(OUTPUTS[kind](rng, 300))
    expected = sum(event.holds(fresh).astype(int) for event in events)
    assert np.array_equal(found.cells(fresh), expected)
    assert found.counts(fresh).sum() == 300
    assert len(found) == 4
    for k, event in enumerate(events):
        assert np.array_equal(found.event(k).holds(fresh), event.holds(fresh))
    if not found.live:
        again = Record.from_json(found.to_json())
        assert np.array_equal(again.cells(fresh), expected)
