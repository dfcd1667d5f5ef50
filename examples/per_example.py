"""Per-example gradients of many models at once, clipped and summed, by batched matrix products.

Every convolution is one product for all models, [models, examples · positions, 9 · channels] times
[models, 9 · channels, filters]. The backward pass computes the gradient at each layer's output; the norm
of a layer's per-example gradient comes from the gradient itself or from two Gram matrices, whichever is
smaller, and the clipped sum from a second product (ghost clipping: Li et al. 2022, arXiv:2110.05679).

With bfloat16 products (on a GPU) gradients are rounded before their norms are taken, clipping factors are
rounded down, and the products of both are summed in float32 without rounding: no example adds more than
the clipping norm, up to float32's own rounding. Weights, sums and noise are float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from examples.cifar import Array

Tensor = Any  # torch.Tensor, where there is no torch to check types with
#: More than rounding in float32 adds to a norm.
_BELOW = 1 - 2.0**-14
_MOST = 65_535


@dataclass(frozen=True)
class Network:
    """Blocks of 3×3 convolution, GroupNorm, (leaky) ReLU and average pooling, then a linear layer.

    The default is the four-convolution network of Opacus' CIFAR-10 example. `groups` are those of each
    block's GroupNorm, and none without a word; `slope` is that of the leaky ReLU below 0.
    """

    channels: tuple[int, ...] = (32, 64, 64, 128)
    pools: tuple[int, ...] = (2, 2, 2, 4)
    groups: tuple[int, ...] = ()
    slope: float = 0.0
    side: int = 32
    classes: int = 10

    @property
    def layers(self) -> list[Layer]:
        """The layers in order, with their places in the row of all parameters."""
        made, at, side, width = [], 0, self.side, 3
        groups = self.groups or (0,) * len(self.channels)
        for filters, pool, parts in zip(self.channels, self.pools, groups, strict=True):
            made.append(Layer(at, 9 * width, filters, side, pool, parts))
            at, side, width = made[-1].end, side // pool, filters
        return [*made, Layer(at, width * side * side, self.classes, 1, 1, 0)]

    @property
    def size(self) -> int:
        """How many parameters a model has."""
        return self.layers[-1].end

    def initial(self, models: int, generator: Any) -> Tensor:
        """PyTorch's default initialisation, a row a model: uniform within ±1/√(inputs of a unit)."""
        device = generator.device
        rows = torch.rand(models, self.size, generator=generator, device=device) * 2 - 1
        for layer in self.layers:
            rows[:, layer.start : layer.bias_end] /= math.sqrt(layer.inputs)
            layer.scales(rows).fill_(1.0)
            layer.shifts(rows).zero_()
        return rows


@dataclass(frozen=True)
class Layer:
    """One matrix of weights, its biases, and the scales and shifts of its GroupNorm, if it has one."""

    start: int
    inputs: int
    filters: int
    side: int
    pool: int
    groups: int

    @property
    def middle(self) -> int:
        """Where the weights end and the biases begin."""
        return self.start + self.inputs * self.filters

    @property
    def bias_end(self) -> int:
        """Where the biases end, and scales and then shifts begin."""
        return self.middle + self.filters

    @property
    def end(self) -> int:
        """Where the next layer begins."""
        return self.bias_end + (2 * self.filters if self.groups else 0)

    @property
    def positions(self) -> int:
        """Outputs of a filter for one image."""
        return self.side**2

    @property
    def direct(self) -> bool:
        """Whether per-example gradients are smaller than what Gram matrices take."""
        t, k, c = self.positions, self.inputs, self.filters
        return k * c <= t * (k + c) + 2 * t * t

    def weights(self, rows: Tensor) -> Tensor:
        """[models, inputs, filters]."""
        return rows[:, self.start : self.middle].view(-1, self.inputs, self.filters)

    def biases(self, rows: Tensor) -> Tensor:
        """[models, 1, filters]."""
        return rows[:, None, self.middle : self.bias_end]

    def scales(self, rows: Tensor) -> Tensor:
        """[models, 1, filters]: γ of GroupNorm; without one there are none."""
        return rows[:, None, self.bias_end : (self.bias_end + self.end) // 2]

    def shifts(self, rows: Tensor) -> Tensor:
        """[models, 1, filters]: β of GroupNorm; without one there are none."""
        return rows[:, None, (self.bias_end + self.end) // 2 : self.end]

    def by_group(self, values: Tensor) -> Tensor:
        """Means over a group's channels, at each of them: [models, examples, filters]."""
        grouped = values.unflatten(-1, (self.groups, -1))
        return grouped.mean(-1, keepdim=True).expand_as(grouped).flatten(-2)


def patches(x: Tensor) -> Tensor:
    """The 3×3 surroundings of every pixel: [n, side, side, c] to [n, side², 9c], zeros outside.

    Copied 16 bytes at a time where the channels allow it: a strided copy costs by the element.
    """
    n, high, wide, c = x.shape
    padded = F.pad(x, (0, 0, 1, 1, 1, 1))
    unit = padded
    if c * x.element_size() % 16 == 0:
        unit = padded.view(torch.complex128)
    row, column = unit.stride(1), unit.stride(2)
    seen = unit.as_strided(
        (n, high, wide, 3, 3 * unit.shape[-1]), (unit.stride(0), row, column, row, 1)
    )
    return seen.contiguous().view(x.dtype).view(n, high * wide, 9 * c)


def product(a: Tensor, b: Tensor) -> Tensor:
    """A batched matrix product with a float32 result, whatever the factors are."""
    if a.dtype != torch.float32 and a.is_cuda:
        return torch.bmm(a, b, out_dtype=torch.float32)
    return torch.bmm(a.float(), b.float())


def _each(a: Tensor, b: Tensor, multiply: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Products of a matrix an example, no more at once than a GPU's grid is high."""
    if len(a) <= _MOST:
        return multiply(a, b)
    both = zip(a.split(_MOST), b.split(_MOST), strict=True)
    return torch.cat([multiply(one, two) for one, two in both])


def _pool(a: Tensor, size: int) -> Tensor:
    """The average of size × size pixels: [n, side, side, c]."""
    pooled = F.avg_pool2d(a.permute(0, 3, 1, 2), size).permute(0, 2, 3, 1)
    return pooled.contiguous()


def _unpool(a: Tensor, g: Tensor, size: int, slope: float) -> Tensor:
    """The gradient at the input of ReLU and pooling, from that at their output and ReLU's output."""
    n, high, wide, c = g.shape
    tall = (n, high, size, wide, size, c)
    out = torch.empty_like(a)
    spread = (g / size**2)[:, :, None, :, None, :].expand(tall)
    torch.ops.aten.leaky_relu_backward.grad_input(
        spread, a.view(tall), slope, True, grad_input=out.view(tall)
    )
    return out


@dataclass
class _Norm:
    """GroupNorm of one layer's outputs z [models, examples, positions, filters], in float32.

    ẑ = (z − mean) / √(variance + 10⁻⁵) with both over the positions and channels of a group, y = γẑ + β.
    """

    layer: Layer
    z: Tensor
    mean: Tensor  # [models, examples, filters], the same for all channels of a group
    inverse: Tensor  # 1 / √(variance + 10⁻⁵), likewise

    @classmethod
    def of(cls, layer: Layer, z: Tensor) -> _Norm:
        """The statistics, by channel first: their variance within channels plus that of the means."""
        z = z.float().view(len(z), -1, layer.positions, layer.filters)
        within, means = torch.var_mean(z, dim=2, correction=0)
        mean = layer.by_group(means)
        variance = layer.by_group(within + (means - mean).square())
        return cls(layer, z, mean, (variance + 1e-5).rsqrt())

    def output(self, theta: Tensor) -> Tensor:
        """y, in the form of z."""
        scale = self.inverse * self.layer.scales(theta)
        shift = self.layer.shifts(theta) - self.mean * scale
        return torch.addcmul(shift[:, :, None], self.z, scale[:, :, None])

    def backward(self, theta: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient at z, and per-example gradients of γ and β, from that at y. Uses z up."""
        layer, inverse, scales = self.layer, self.inverse, self.layer.scales(theta)
        g = g.float().view(self.z.shape)
        offset = (-self.mean * inverse)[:, :, None]
        unit = torch.addcmul(offset, self.z, inverse[:, :, None], out=self.z)  # ẑ
        by_scale, by_shift = (g * unit).sum(2), g.sum(2)
        # ∂/∂z = (γg − mean of γg − ẑ · mean of γgẑ) / √(variance + 10⁻⁵), means over the group
        level = layer.by_group(scales * by_shift) / layer.positions
        slope = layer.by_group(scales * by_scale) / layer.positions
        found = torch.addcmul((-inverse * level)[:, :, None], g, (inverse * scales)[:, :, None])
        found.addcmul_(unit, (-inverse * slope)[:, :, None])
        return found, torch.cat([by_scale, by_shift], dim=2)


def _flipped(weights: Tensor, filters: int) -> Tensor:
    """The weights that carry a gradient from a convolution's output to its input."""
    models, inputs, _ = weights.shape
    kernel = weights.view(models, 9, inputs // 9, filters).flip(1)
    return kernel.transpose(2, 3).reshape(models, 9 * filters, inputs // 9)


class Examples:
    """Images as the first layer's patches, once for all models: a one for the bias, then zeros."""

    def __init__(self, images: Array, labels: Array, device: Any, kind: Any) -> None:
        x = torch.as_tensor(images, device=device, dtype=torch.float32)
        seen = patches(x)
        self.width = -(-(seen.shape[-1] + 1) // 8) * 8
        self.rows = F.pad(seen, (0, self.width - seen.shape[-1]))
        self.rows[..., seen.shape[-1]] = 1.0
        self.rows = self.rows.to(kind)
        self.labels = torch.as_tensor(labels, device=device)

    def take(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Patches [models, examples · positions, width] and labels, for [models, examples] indices."""
        models, count = index.shape
        wide = self.rows.view(torch.complex128)  # 16 bytes at a time, as in `patches`
        rows = wide.index_select(0, index.flatten()).view(self.rows.dtype)
        return rows.view(models, count * rows.shape[1], self.width), self.labels[index]


@dataclass
class _Piece:
    """What a layer contributes to per-example gradients: themselves, or the factors they are made of."""

    layer: Layer
    squares: Tensor  # [models, examples]
    gradients: Tensor  # [models · examples, inputs (and more in the first layer), filters], or None
    inputs: Tensor
    outputs: Tensor
    vectors: Tensor  # [models, examples, …]: of biases (in the first layer they are a row), γ and β

    def total(self, factor: Tensor) -> Tensor:
        """The sum over examples with these factors: a row of the layer's parameters a model."""
        models, count = factor.shape
        layer = self.layer
        if self.gradients is not None:
            flat = self.gradients.view(models, count, -1)
            summed = product(factor[:, None].to(flat.dtype), flat)[:, 0, : self._matrix]
        else:
            scaled = self.outputs.view(models, count, -1).float() * factor[..., None]
            scaled = scaled.view(models, -1, layer.filters)
            inputs, kind = self.inputs.transpose(1, 2), self.inputs.dtype
            summed = product(inputs, scaled.to(kind)).flatten(1)
            if kind != torch.float32:  # two factors of 8 bits have a product of 16: the other 8
                lower = (scaled - scaled.to(kind).float()).to(kind)
                summed += product(inputs, lower).flatten(1)
        return torch.cat([summed, torch.bmm(factor[:, None], self.vectors)[:, 0]], dim=1)

    @property
    def _matrix(self) -> int:
        """How many parameters are in the matrix: in the first layer there are further rows, of zeros."""
        return int(self.layer.end - self.layer.start - self.vectors.shape[2])

    def last(self, count: int) -> Tensor:
        """The gradients of the last `count` examples: [models, count, parameters]."""
        models, examples = self.squares.shape
        layer = self.layer
        if self.gradients is not None:
            flat = self.gradients.view(models, examples, -1)[:, -count:, : self._matrix].float()
        else:
            left = self.inputs.view(models, examples, layer.positions, -1)[:, -count:]
            right = self.outputs.view(models, examples, layer.positions, -1)[:, -count:]
            flat = torch.einsum("mntk,mntc->mnkc", left.float(), right.float()).flatten(2)
        return torch.cat([flat, self.vectors[:, -count:]], dim=2)


def forward(network: Network, theta: Tensor, rows: Tensor) -> tuple[list[Any], Tensor]:
    """Logits, and of each layer the inputs (as matrices), the ReLU's outputs, the GroupNorm."""
    models, kind = theta.shape[0], rows.dtype
    kept = []
    *blocks, head = network.layers
    for i, layer in enumerate(blocks):
        if i == 0:
            block = theta[:, layer.start : layer.bias_end].view(models, -1, layer.filters)
            block = F.pad(block, (0, 0, 0, rows.shape[-1] - block.shape[1])).to(kind)
            z = torch.bmm(rows, block)
        else:
            bias, weights = layer.biases(theta).to(kind), layer.weights(theta).to(kind)
            z = torch.baddbmm(bias, rows, weights)
        norm = _Norm.of(layer, z) if layer.groups else None
        y = z if norm is None else norm.output(theta).to(kind)
        a = F.leaky_relu_(y, network.slope).view(-1, layer.side, layer.side, layer.filters)
        kept.append((rows, a, norm))
        x = _pool(a, layer.pool)
        if i + 1 < len(blocks):
            seen = patches(x)
            rows = seen.view(models, -1, seen.shape[-1])
    rows = x.view(models, -1, head.inputs)
    kept.append((rows, None, None))
    logits = product(rows, head.weights(theta).to(kind)) + head.biases(theta)
    return kept, logits


def _piece(layer: Layer, rows: Tensor, out: Tensor, norms: Tensor, first: bool) -> _Piece:
    """Per-example gradients of a layer, or what gives their norms."""
    t, models = layer.positions, len(norms)
    left = rows.view(-1, t, rows.shape[-1])
    right = out.view(-1, t, layer.filters)
    vectors = norms
    if not first:
        biases = right.sum(1, dtype=torch.float32).view(models, -1, layer.filters)
        vectors = torch.cat([biases, norms], dim=2)
    if layer.direct or first:
        gradients = _each(left.transpose(1, 2), right, torch.bmm)
        flat = gradients.view(models, -1, gradients[0].numel())
        squares = torch.linalg.vector_norm(flat, dim=2, dtype=torch.float32).square()
        kept = (gradients, None, None)
    else:
        if t == 1:
            both = left.float().square().sum((1, 2)) * right.float().square().sum((1, 2))
        else:
            grams = (_each(side, side.transpose(1, 2), product) for side in (left, right))
            both = (next(grams) * next(grams)).sum((1, 2))
        squares = both.view(models, -1)
        kept = (None, rows, out)
    return _Piece(layer, squares + vectors.square().sum(2), *kept, vectors)


def backward(network: Network, theta: Tensor, rows: Tensor, labels: Tensor) -> list[_Piece]:
    """The per-example gradients of the cross-entropy, layer by layer, the last layer first."""
    kept, logits = forward(network, theta, rows)
    models, kind = theta.shape[0], rows.dtype
    layers = network.layers
    error = torch.softmax(logits, dim=2) - F.one_hot(labels, network.classes)
    none = error[..., :0]
    out = error.to(kind)
    pieces = [_piece(layers[-1], kept[-1][0], out, none, first=False)]
    g = torch.bmm(out, layers[-1].weights(theta).to(kind).transpose(1, 2))
    for i in reversed(range(len(layers) - 1)):
        layer, (seen, a, norm) = layers[i], kept.pop(i)
        side = layer.side // layer.pool
        out = _unpool(a, g.view(-1, side, side, layer.filters), layer.pool, network.slope)
        norms = none
        if norm is not None:
            found, norms = norm.backward(theta, out)
            out = found.view(a.shape).to(kind)
        pieces.append(_piece(layer, seen, out, norms, first=i == 0))
        if i:
            seen = patches(out)
            kernel = _flipped(layer.weights(theta).to(kind), layer.filters)
            g = torch.bmm(seen.view(models, -1, seen.shape[-1]), kernel)
    return pieces


def factors(squares: Tensor, clip: float, kind: Any) -> Tensor:
    """min(1, clip/norm); for bfloat16 products at most 1 % less, and exact in bfloat16."""
    scale = torch.clamp(clip / squares.sqrt().clamp(min=1e-12), max=1.0)
    if kind == torch.float32:
        return scale
    lower = (scale * _BELOW).view(torch.int32) & -65536  # the upper 16 bits: rounds down
    return lower.view(torch.float32)


def clipped(
    pieces: Sequence[_Piece], weight: Tensor, clip: float, kind: Any, fault: str, last: int = 0
) -> tuple[Tensor, Tensor]:
    """The sum of the clipped gradients with weights 0 or 1, and those of the last examples."""
    _, *rest = pieces  # the last layer, then the others
    counted = rest if fault == "layer unclipped" else pieces
    scale = factors(torch.stack([piece.squares for piece in counted]).sum(0), clip, kind)
    scales = [torch.ones_like(scale) if fault == "layer unclipped" else scale, *[scale] * len(rest)]
    both = list(zip(pieces, scales, strict=True))[::-1]
    total = torch.cat([piece.total(one * weight) for piece, one in both], dim=1)
    if not last:
        return total, total[:, None, :0]
    ends = torch.cat([piece.last(last) * one[:, -last:, None] for piece, one in both], dim=2)
    return total, ends
