"""Fixtures of tests that need PyTorch: in `make test` where it is installed, and in `make test-torch`."""

from __future__ import annotations

import importlib.util

import pytest

#: Without PyTorch there is nothing to test here.
collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["*.py"]


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def network():
    """Small, and with both kinds of layers: per-example gradients kept, and Gram matrices."""
    from examples.per_example import Network

    return Network(channels=(8, 16, 16, 32), pools=(2, 2, 2, 2), side=16)


@pytest.fixture(scope="session")
def pair():
    from examples import cifar

    return cifar.pair(*cifar.synthetic(60, 16))
