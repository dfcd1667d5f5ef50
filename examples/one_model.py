"""One model as a torch module, and one example at a time: what batched gradients are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from examples.cifar import Array
from examples.per_example import Network, Tensor


def module(network: Network, theta: Tensor) -> Any:
    """The network with one row of parameters."""
    parts: list[Any] = []
    width, row = 3, theta.detach()[None]
    *blocks, head = network.layers
    for layer in blocks:
        conv = nn.Conv2d(width, layer.filters, 3, padding=1).to(theta)
        kernel = layer.weights(row)[0].view(3, 3, width, layer.filters)
        conv.weight.data = kernel.permute(3, 2, 0, 1).contiguous()
        conv.bias.data = layer.biases(row)[0, 0].clone()
        parts.append(conv)
        if layer.groups:
            norm = nn.GroupNorm(layer.groups, layer.filters).to(theta)
            norm.weight.data = layer.scales(row)[0, 0].clone()
            norm.bias.data = layer.shifts(row)[0, 0].clone()
            parts.append(norm)
        parts += [nn.LeakyReLU(network.slope), nn.AvgPool2d(layer.pool)]
        width = layer.filters
    linear = nn.Linear(head.inputs, head.filters).to(theta)
    side = blocks[-1].side // blocks[-1].pool
    turned = head.weights(row)[0].view(side, side, width, head.filters)
    linear.weight.data = turned.permute(3, 2, 0, 1).reshape(head.filters, -1).contiguous()
    linear.bias.data = head.biases(row)[0, 0].clone()
    return nn.Sequential(*parts, nn.Flatten(), linear)


def row(network: Network, values: Sequence[Tensor]) -> Tensor:
    """Parameters of the module, or their gradients, as a row."""
    *blocks, _ = network.layers
    side = blocks[-1].side // blocks[-1].pool
    found = []
    for value in values:
        turned = value
        if value.dim() == 2:  # the linear layer, whose inputs are pixels of the last pooling
            turned = value.view(len(value), -1, side, side)
        if value.dim() > 1:
            turned = turned.permute(2, 3, 1, 0)
        found.append(turned.flatten())
    return torch.cat(found)


def batch(images: Array, like: Tensor) -> Tensor:
    """Images (n, side, side, 3) as torch's convolution takes them."""
    return torch.as_tensor(images).to(like).permute(0, 3, 1, 2).contiguous()


def clipped_sum(
    network: Network, theta: Tensor, images: Array, labels: Array, clip: float
) -> Tensor:
    """The sum of clipped per-example gradients of one model, by autograd, one example after another."""
    model = module(network, theta)
    total = torch.zeros_like(theta)
    with torch.enable_grad():
        for image, label in zip(batch(images, theta), labels, strict=True):
            loss = nn.functional.cross_entropy(model(image[None]), torch.tensor([int(label)]))
            each = row(network, torch.autograd.grad(loss, list(model.parameters())))
            total += each * torch.clamp(clip / each.norm(), max=1.0)
    return total
