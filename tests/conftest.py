"""Seeds for every test come from here.

DPASSAY_TEST_SEED moves all seeds at once (default 0). A statistical test takes `seeds`, which runs
it on three disjoint ranges, the third among the slow tests: no test may pass on a lucky one. Hypothesis
repeats its examples with the default, and draws new ones with any other.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

BASE = int(os.environ.get("DPASSAY_TEST_SEED", "0"))
settings.register_profile("dpassay", derandomize=BASE == 0, deadline=None)
settings.load_profile("dpassay")
#: Seeds in one range; ranges never overlap.
SPAN = 1_000_000


@pytest.fixture
def seed() -> int:
    return BASE * 3 * SPAN


@pytest.fixture(params=[0, 1, pytest.param(2, marks=pytest.mark.slow)], ids=lambda k: f"seeds{k}")
def seeds(request: pytest.FixtureRequest) -> range:
    start = (BASE * 3 + request.param) * SPAN
    return range(start, start + SPAN)
