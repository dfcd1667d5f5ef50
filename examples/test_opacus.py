"""One model of ours against Opacus: per-example gradients, clipping, the size of the noise, momentum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn

from examples import cifar
from examples.dpsgd import Trainer, Training
from examples.one_model import batch, module, row
from examples.per_example import Examples, Network, backward
from examples.run_dpsgd import RUNS

NETWORKS = {"plain": Network(), "authors": RUNS["authors"].network}
#: Opacus' hooks are for modules whose inputs need no gradient, which torch remarks on.
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


@pytest.fixture(scope="module")
def data():
    return cifar.pair(*cifar.synthetic(24))[0]


@pytest.fixture(scope="module", params=NETWORKS)
def network(request):
    return NETWORKS[request.param]


@pytest.fixture(scope="module")
def theta(network):
    """The initial weights, moved a little: scales and shifts of GroupNorm that are not 1 and 0."""
    generator = torch.Generator().manual_seed(0)
    start = network.initial(1, generator)
    return start + 0.02 * torch.randn(start.shape, generator=generator)


def opacus(network, theta, data, chosen, how):
    """Opacus' steps on the chosen examples: norms of the gradients before them, weights after them."""
    model = GradSampleModule(module(network, theta[0]))
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=how.learning_rate, momentum=how.momentum),
        noise_multiplier=how.noise,
        max_grad_norm=how.clip,
        expected_batch_size=int(how.rate * len(data.images)),
        generator=torch.Generator().manual_seed(0),
    )
    # `batch` is contiguous: Opacus 1.6.0 reads images as if they were, and gets other gradients from
    # strided ones
    x, y = batch(data.images[chosen], theta), torch.tensor(data.labels[chosen])
    norms = []
    for _ in range(how.steps):
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(x), y).backward()
        squares = sum(p.grad_sample.flatten(1).square().sum(1) for p in model.parameters())
        norms.append(squares.detach().sqrt())
        optimizer.step()
    return norms[0], row(network, [p.detach() for p in model.parameters()])


def ours(network, theta, data, chosen, how):
    """The same steps of ours."""
    trainer = Trainer(how, network, (how.steps,))
    taken = torch.zeros(1, len(data.images), dtype=torch.bool)
    taken[0, chosen] = True
    trainer_batches = iter([taken.clone() for _ in range(how.steps)])
    object.__setattr__(trainer, "_batches", lambda *_: trainer_batches)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        *_, (after, _) = trainer._steps(data, theta, torch.zeros(1, network.size), generator)
    return after[0]


def test_norms_of_per_example_gradients(network, theta, data):
    chosen = np.arange(0, 24, 2)
    wanted, _ = opacus(network, theta, data, chosen, Training(steps=1, noise=0.0))
    examples = Examples(data.images, data.labels, "cpu", torch.float32)
    with torch.no_grad():
        pieces = backward(network, theta, *examples.take(torch.tensor(chosen)[None]))
    found = sum(piece.squares for piece in pieces)[0].sqrt()
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=0)
    assert (wanted > 1).any()  # some are clipped


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_without_noise(network, theta, data, momentum):
    """Rate 1 and every example, and rate ½ and half of them; with momentum."""
    for rate, chosen in ((0.5, np.arange(0, 24, 2)), (1.0, np.arange(24))):
        how = Training(steps=4, noise=0.0, rate=rate, momentum=momentum)
        _, wanted = opacus(network, theta, data, chosen, how)
        found = ours(network, theta, data, chosen, how)
        moved = float((wanted - theta[0]).norm())
        assert float((found - wanted).norm()) < 1e-4 * moved


def test_the_noise_has_the_same_standard_deviation(network, theta, data):
    """131 466 coordinates or more: a standard error of .2 %."""
    chosen = np.arange(0, 24, 2)
    spread = []
    for steps in (lambda *a: opacus(*a)[1], ours):
        with_, without = (
            steps(network, theta, data, chosen, Training(steps=1, noise=noise))
            for noise in (1.0, 0.0)
        )
        spread.append(float((with_ - without).std()) * 12 / 0.1)
    assert spread == pytest.approx([1.0, 1.0], abs=0.008)
