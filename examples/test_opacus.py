"""One model of ours against Opacus: per-example gradients, clipping, the size of the noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import nn

from examples import cifar
from examples.dpsgd import Examples, Network, Trainer, Training, backward

NETWORK = Network()
#: Opacus' hooks are for modules whose inputs need no gradient, which torch remarks on.
pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


def module(theta):
    """The same network as a torch module."""
    parts: list[nn.Module] = []
    width = 3
    *blocks, head = NETWORK.layers
    for layer in blocks:
        conv = nn.Conv2d(width, layer.filters, 3, padding=1)
        kernel = layer.weights(theta[None])[0].view(3, 3, width, layer.filters)
        conv.weight.data = kernel.permute(3, 2, 0, 1).contiguous()
        conv.bias.data = layer.biases(theta[None])[0, 0].clone()
        parts += [conv, nn.ReLU(), nn.AvgPool2d(layer.pool)]
        width = layer.filters
    linear = nn.Linear(head.inputs, head.filters)
    linear.weight.data = head.weights(theta[None])[0].T.contiguous()
    linear.bias.data = head.biases(theta[None])[0, 0].clone()
    return nn.Sequential(*parts, nn.Flatten(), linear)


def row(values):
    """Parameters of the module, in our order."""
    found = []
    for weight, bias in zip(values[::2], values[1::2], strict=True):
        turned = weight.permute(2, 3, 1, 0) if weight.dim() == 4 else weight.T
        found += [turned.flatten(), bias.flatten()]
    return torch.cat(found)


@pytest.fixture(scope="module")
def data():
    return cifar.pair(*cifar.synthetic(24))[0]


@pytest.fixture(scope="module")
def theta():
    return NETWORK.initial(1, torch.Generator().manual_seed(0))


def opacus_step(theta, data, chosen, noise):
    """One step of Opacus' optimizer on the chosen examples: norms before it, weights after it."""
    model = GradSampleModule(module(theta[0]))
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=noise,
        max_grad_norm=1.0,
        expected_batch_size=12,
        generator=torch.Generator().manual_seed(0),
    )
    # contiguous: Opacus 1.6.0 reads images as if they were, and gets other gradients from strided ones
    x = torch.tensor(data.images[chosen]).permute(0, 3, 1, 2).contiguous()
    loss = nn.CrossEntropyLoss()(model(x), torch.tensor(data.labels[chosen]))
    loss.backward()
    squares = sum(p.grad_sample.flatten(1).square().sum(1) for p in model.parameters())
    optimizer.step()
    return squares.detach(), row([p.detach() for p in model.parameters()])


def our_step(theta, data, chosen, noise):
    """The same step of ours."""
    trainer = Trainer(Training(steps=1, noise=noise), NETWORK, (1,))
    examples = Examples(data.images, data.labels, "cpu", torch.float32)
    taken = torch.zeros(1, len(data.images), dtype=torch.bool)
    taken[0, chosen] = True
    none = torch.zeros(1, NETWORK.size)
    with torch.no_grad():
        return trainer._step(data, theta, taken, examples, none, torch.Generator().manual_seed(0))[
            0
        ][0]


def test_norms_of_per_example_gradients(theta, data):
    chosen = np.arange(0, 24, 2)
    wanted, _ = opacus_step(theta, data, chosen, 0.0)
    examples = Examples(data.images, data.labels, "cpu", torch.float32)
    with torch.no_grad():
        pieces = backward(NETWORK, theta, *examples.take(torch.tensor(chosen)[None]))
    found = sum(piece.squares for piece in pieces)[0]
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=0)
    assert (wanted > 1).any()  # some are clipped


def test_a_step_without_noise(theta, data):
    chosen = np.arange(0, 24, 2)
    _, wanted = opacus_step(theta, data, chosen, 0.0)
    found = our_step(theta, data, chosen, 0.0)
    moved = float((wanted - theta[0]).norm())
    assert float((found - wanted).norm()) < 1e-4 * moved


def test_the_noise_has_the_same_standard_deviation(theta, data):
    """131 466 coordinates: a standard error of .2 %."""
    chosen = np.arange(0, 24, 2)
    spread = []
    for step in (lambda *a: opacus_step(*a)[1], our_step):
        noise = step(theta, data, chosen, 1.0) - step(theta, data, chosen, 0.0)
        spread.append(float(noise.std()) * 12 / 0.1)
    assert spread == pytest.approx([1.0, 1.0], abs=0.008)
