"""Fixtures of the tests that need PyTorch (`make test-torch`)."""

from __future__ import annotations

import pytest
import torch

from examples import cifar
from examples.dpsgd import Network


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def network():
    """Small, and with both kinds of layers: per-example gradients kept, and Gram matrices."""
    return Network(channels=(8, 16, 16, 32), pools=(2, 2, 2, 2), side=16)


@pytest.fixture(scope="session")
def pair():
    return cifar.pair(*cifar.synthetic(60, 16))
