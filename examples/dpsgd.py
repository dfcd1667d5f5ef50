"""DP-SGD, many models at once: exact per-example clipping by batched matrix products, in PyTorch.

Every convolution is one product for all models, [models, examples · positions, 9 · channels] times
[models, 9 · channels, filters]. The backward pass computes the gradient at each layer's output; the norm
of a layer's per-example gradient comes from the gradient itself or from two Gram matrices, whichever is
smaller, and the clipped sum from a second product (ghost clipping: Li et al. 2022, arXiv:2110.05679).

With bfloat16 products (on a GPU) gradients are rounded before their norms are taken, clipping factors are
rounded down, and the products of both are summed in float32 without rounding: no example adds more than
the clipping norm, up to float32's own rounding. Weights, sums and noise are float32.

    first, second = cifar.pair(*cifar.read("data_batch_1.bin"))
    dp.audit(dpsgd.Mechanism(), (first, second), dp.GaussianDP(0.15), n=1000)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from examples.cifar import Array, Database, vector

Tensor = Any  # torch.Tensor, where there is no torch to check types with
#: More than rounding in float32 adds to a norm.
_BELOW = 1 - 2.0**-14
_MOST = 65_535


@dataclass(frozen=True)
class Network:
    """Blocks of 3×3 convolution, ReLU and average pooling, then a linear layer.

    The default is the four-convolution network of Opacus' CIFAR-10 example.
    """

    channels: tuple[int, ...] = (32, 64, 64, 128)
    pools: tuple[int, ...] = (2, 2, 2, 4)
    side: int = 32
    classes: int = 10

    @property
    def layers(self) -> list[Layer]:
        """The layers in order, with their places in the row of all parameters."""
        made, at, side, width = [], 0, self.side, 3
        for filters, pool in zip(self.channels, self.pools, strict=True):
            made.append(Layer(at, 9 * width, filters, side, pool))
            at, side, width = made[-1].end, side // pool, filters
        return [*made, Layer(at, width * side * side, self.classes, 1, 1)]

    @property
    def size(self) -> int:
        """How many parameters a model has."""
        return self.layers[-1].end

    def initial(self, models: int, generator: Any) -> Tensor:
        """PyTorch's default initialisation, a row a model: uniform within ±1/√(inputs of a unit)."""
        device = generator.device
        rows = torch.rand(models, self.size, generator=generator, device=device) * 2 - 1
        for layer in self.layers:
            rows[:, layer.start : layer.end] /= math.sqrt(layer.inputs)
        return rows


@dataclass(frozen=True)
class Layer:
    """One matrix of weights and its biases."""

    start: int
    inputs: int
    filters: int
    side: int
    pool: int

    @property
    def middle(self) -> int:
        """Where the weights end and the biases begin."""
        return self.start + self.inputs * self.filters

    @property
    def end(self) -> int:
        """Where the next layer begins."""
        return self.middle + self.filters

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
        return rows[:, None, self.middle : self.end]


@dataclass(frozen=True)
class Training:
    """How a model is trained, and which canary is planted.

    The defaults are the paper's: 1000 images, batches of about 512, which are two an epoch. As in
    Opacus, batches are Poisson samples with rate 1/2, and the sum is divided by their expected size.

    canary   "example": the image at index 0; "gradient": in place of that image's gradient one of
             `strength` clipping norms in a fixed direction, and in the opposite direction in the
             second database; "against": the same, but opposed to the sum of the others' gradients
    removed  whether the second database has no canary in place of another one
    start    "random": every model its own initial weights; "fixed": the same for all, and known
    fault    "", "noise halved", "layer unclipped" (the last), "averaged by batch" (the sum is divided
             by the size of the actual batch)
    """

    rate: float = 0.5
    steps: int = 50
    learning_rate: float = 0.1
    clip: float = 1.0
    noise: float = 1.0
    batches: str = "poisson"  # or "shuffled": every epoch a permutation, cut into 1/rate parts
    canary: str = "example"
    removed: bool = False
    strength: float = 10.0
    start: str = "random"
    fault: str = ""


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


def _unpool(a: Tensor, g: Tensor, size: int) -> Tensor:
    """The gradient at the input of ReLU and pooling, from that at their output and ReLU's output."""
    n, high, wide, c = g.shape
    tall = (n, high, size, wide, size, c)
    out = torch.empty_like(a)
    spread = (g / size**2)[:, :, None, :, None, :].expand(tall)
    torch.ops.aten.threshold_backward.grad_input(spread, a.view(tall), 0, grad_input=out.view(tall))
    return out


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
    biases: Tensor  # [models, examples, filters]; None in the first layer: there they are a row

    def total(self, factor: Tensor) -> Tensor:
        """The sum over examples with these factors: a row of the layer's parameters a model."""
        models, count = factor.shape
        layer = self.layer
        if self.gradients is not None:
            flat = self.gradients.view(models, count, -1)
            summed = product(factor[:, None].to(flat.dtype), flat)[:, 0]
            if self.biases is None:  # weights and bias are rows 0 … inputs
                return summed[:, : layer.end - layer.start]
        else:
            scaled = self.outputs.view(models, count, -1).float() * factor[..., None]
            scaled = scaled.view(models, -1, layer.filters)
            inputs, kind = self.inputs.transpose(1, 2), self.inputs.dtype
            summed = product(inputs, scaled.to(kind)).flatten(1)
            if kind != torch.float32:  # two factors of 8 bits have a product of 16: the other 8
                lower = (scaled - scaled.to(kind).float()).to(kind)
                summed += product(inputs, lower).flatten(1)
        return torch.cat([summed, torch.bmm(factor[:, None], self.biases)[:, 0]], dim=1)

    def last(self, count: int) -> Tensor:
        """The gradients of the last `count` examples: [models, count, parameters]."""
        models, examples = self.squares.shape
        layer = self.layer
        if self.gradients is not None:
            flat = self.gradients.view(models, examples, -1)[:, -count:].float()
            if self.biases is None:
                return flat[..., : layer.end - layer.start]
        else:
            left = self.inputs.view(models, examples, layer.positions, -1)[:, -count:]
            right = self.outputs.view(models, examples, layer.positions, -1)[:, -count:]
            flat = torch.einsum("mntk,mntc->mnkc", left.float(), right.float()).flatten(2)
        return torch.cat([flat, self.biases[:, -count:]], dim=2)


def _forward(network: Network, theta: Tensor, rows: Tensor) -> tuple[list[Any], Tensor]:
    """Logits, and the inputs (as matrices) and ReLU outputs of each layer."""
    models = theta.shape[0]
    kept = []
    *blocks, head = network.layers
    for i, layer in enumerate(blocks):
        if i == 0:
            block = theta[:, layer.start : layer.end].view(models, -1, layer.filters)
            block = F.pad(block, (0, 0, 0, rows.shape[-1] - block.shape[1])).to(rows.dtype)
            z = torch.bmm(rows, block)
        else:
            bias, weights = layer.biases(theta).to(rows.dtype), layer.weights(theta).to(rows.dtype)
            z = torch.baddbmm(bias, rows, weights)
        a = z.relu_().view(-1, layer.side, layer.side, layer.filters)
        kept.append((rows, a))
        x = _pool(a, layer.pool)
        if i + 1 < len(blocks):
            seen = patches(x)
            rows = seen.view(models, -1, seen.shape[-1])
    rows = x.view(models, -1, head.inputs)
    kept.append((rows, None))
    logits = product(rows, head.weights(theta).to(rows.dtype)) + head.biases(theta)
    return kept, logits


def _piece(layer: Layer, models: int, rows: Tensor, out: Tensor, first: bool) -> _Piece:
    """Per-example gradients of a layer, or what gives their norms."""
    t = layer.positions
    left = rows.view(-1, t, rows.shape[-1])
    right = out.view(-1, t, layer.filters)
    biases = None if first else right.sum(1, dtype=torch.float32).view(models, -1, layer.filters)
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
    if biases is not None:
        squares = squares + biases.square().sum(2)
    return _Piece(layer, squares, *kept, biases)


def backward(network: Network, theta: Tensor, rows: Tensor, labels: Tensor) -> list[_Piece]:
    """The per-example gradients of the cross-entropy, layer by layer, the last layer first."""
    kept, logits = _forward(network, theta, rows)
    models, kind = theta.shape[0], rows.dtype
    layers = network.layers
    error = torch.softmax(logits, dim=2) - F.one_hot(labels, network.classes)
    out = error.to(kind)
    pieces = [_piece(layers[-1], models, kept[-1][0], out, first=False)]
    g = torch.bmm(out, layers[-1].weights(theta).to(kind).transpose(1, 2))
    for i in reversed(range(len(layers) - 1)):
        layer, (seen, a) = layers[i], kept.pop(i)
        side = layer.side // layer.pool
        out = _unpool(a, g.view(-1, side, side, layer.filters), layer.pool)
        pieces.append(_piece(layer, models, seen, out, first=i == 0))
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


@dataclass(frozen=True)
class Record:
    """What was seen of some models at the steps that were asked for.

    logits   [models, steps, canaries, classes]
    losses   [models, steps]: the log-likelihood ratio of first against second database given every
             update so far, the batches of the other examples, and the code, faults included; 0 if not
             asked for
    along    [models, steps]: how far the weights moved in the direction of a planted gradient
    """

    logits: Array
    losses: Array
    along: Array


@dataclass(frozen=True)
class Trainer:
    """Trains many models on a database. `watch`: also keep what somebody sees who sees all updates."""

    training: Training = field(default_factory=Training)
    network: Network = field(default_factory=Network)
    at: tuple[int, ...] = (2, 20, 30, 40, 50)  # 1, 10, 15, 20 and 25 epochs
    watch: bool = False
    device: str = "cpu"
    precision: str = (
        "auto"  # bfloat16 on a GPU, float32 elsewhere; or "bfloat16", "tf32", "float32"
    )
    together: int = 64  # models trained at once; results depend on it, as they do on the seed

    def __post_init__(self) -> None:
        how = self.training
        if self.watch and how.batches != "poisson":
            raise ValueError(
                f"watch=True needs batches='poisson', got {how.batches!r}: only then is the likelihood "
                "ratio of an update a ratio of two mixtures"
            )
        if self.at[-1] != how.steps:
            raise ValueError(f"the last step of at={self.at} must be steps={how.steps}")

    @property
    def kind(self) -> Any:
        """The type of numbers that are multiplied."""
        auto = "bfloat16" if self.device.startswith("cuda") else "float32"
        name = auto if self.precision == "auto" else self.precision
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        return torch.bfloat16 if name == "bfloat16" else torch.float32

    def __call__(
        self,
        data: Database,
        models: int,
        rng: np.random.Generator,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Record:
        """Train that many models."""
        done, parts = 0, []
        while done < models:
            size = min(self.together, models - done)
            parts.append(self._some(data, size, int(rng.integers(2**62))))
            done += size
            progress(done)
        return Record(*(np.concatenate([vars(p)[f] for p in parts]) for f in vars(parts[0])))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _some(self, data: Database, models: int, seed: int) -> Record:
        how, net, device = self.training, self.network, torch.device(self.device)
        generator = torch.Generator(device).manual_seed(seed)
        both = np.concatenate([data.images, data.canaries])
        tags = np.concatenate([data.labels, data.canary_labels])
        examples = Examples(both, tags, device, self.kind)
        probes = Examples(data.canaries, data.canary_labels, device, torch.float32)
        probe = torch.arange(2, device=device).expand(models, 2)
        fixed = torch.Generator(device).manual_seed(1)
        direction = torch.randn(1, net.size, generator=fixed, device=device)
        direction = direction / direction.norm()
        theta = net.initial(1, fixed).expand(models, -1) if how.start == "fixed" else None
        theta = net.initial(models, generator) if theta is None else theta
        origin, theta = theta, theta.clone()
        loss = torch.zeros(models, dtype=torch.float64, device=device)
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        draws = self._batches(data, models, generator)
        for step in range(1, how.steps + 1):
            theta, change = self._step(data, theta, next(draws), examples, direction, generator)
            loss += change
            if step in self.at:
                logits = _forward(net, theta, probes.take(probe)[0])[1]
                along = ((theta - origin) @ direction[0]).double()
                seen.append((logits.float(), loss.clone(), along))
        columns = [torch.stack(column, dim=1).cpu().numpy() for column in zip(*seen, strict=True)]
        return Record(*columns)

    def _batches(self, data: Database, models: int, generator: Any) -> Iterator[Tensor]:
        """Which examples each model takes in a step: [models, examples], True or False."""
        how, n, device = self.training, len(data.images), generator.device
        parts = round(1 / how.rate)
        while True:
            draw = torch.rand(models, n, generator=generator, device=device)
            if how.batches == "poisson":
                yield draw < how.rate
            else:
                place = draw.argsort(1).argsort(1) * parts // n
                yield from (place == part for part in range(parts))

    def _step(
        self,
        data: Database,
        theta: Tensor,
        taken: Tensor,
        examples: Examples,
        direction: Tensor,
        generator: Any,
    ) -> tuple[Tensor, Any]:
        """The weights after a step, and what the step adds to the log-likelihood ratio."""
        how, n = self.training, len(data.images)
        planted = how.canary != "example"
        watched = 2 if self.watch and not planted else 0
        if how.removed and data.which == 1:
            taken[:, 0] = False
        unit = 32 if theta.is_cuda else 8  # few sizes: memory is used again
        count = -(-(int(taken.sum(1).max()) + watched) // unit) * unit - watched
        order = taken.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :count]
        weight = taken.gather(1, order).float()
        if planted:
            weight = weight * (order != 0)
        if watched:  # both canaries, with weight 0: their gradients at the weights of the moment
            ends = torch.tensor([n, n + 1], device=theta.device).expand(len(order), 2)
            order, weight = torch.cat([order, ends], dim=1), F.pad(weight, (0, 2))
        pieces = backward(self.network, theta, *examples.take(order))
        total, ends = clipped(pieces, weight, how.clip, self.kind, how.fault, watched)
        del pieces
        noise = torch.randn(theta.shape, generator=generator, device=theta.device) * self._scale
        noise = noise / (how.rate * n)
        size = taken.sum(1, keepdim=True).float()
        if not planted and not watched:
            update, change = self._mean(total, size, n) + noise, 0.0
        else:
            present = taken[:, :1]
            if planted:
                mine, other = self._planted(total, direction)
            else:
                mine, other = ends[:, 0], ends[:, 1]
                total = total - present * (mine if data.which == 0 else other)
            rest = size - present.float()
            without = self._mean(total, rest, n)
            means = [self._mean(total + canary, rest + 1, n) for canary in (mine, other)]
            means[1] = without if how.removed else means[1]
            update = torch.where(present, means[data.which], without) + noise
            change = self._ratio(update, without, means, n) if self.watch else 0.0
        return theta - how.learning_rate * update, change

    @property
    def _scale(self) -> float:
        """The standard deviation of the noise in the sum."""
        how = self.training
        return how.noise * how.clip * (0.5 if how.fault == "noise halved" else 1.0)

    def _mean(self, total: Tensor, size: Tensor, n: int) -> Tensor:
        """The update without its noise, for a sum of clipped gradients and the size of the batch."""
        how = self.training
        return total / (size if how.fault == "averaged by batch" else how.rate * n)

    def _planted(self, total: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
        """What clipping leaves of the two planted gradients, of `strength` clipping norms each."""
        how, at = self.training, self.network.layers[-1].start
        toward = direction.expand_as(total)
        if how.canary == "against":
            norm = total.norm(dim=1, keepdim=True)  # 0 where the canary is alone
            toward = torch.where(norm > 0, -total / norm.clamp(min=1e-30), toward)
        raw = how.strength * how.clip * toward
        counted = raw[:, :at] if how.fault == "layer unclipped" else raw
        scale = torch.clamp(how.clip / counted.norm(dim=1, keepdim=True), max=1.0)
        left = torch.cat([counted * scale, raw[:, counted.shape[1] :]], dim=1)
        return left, -left

    def _ratio(self, update: Tensor, without: Tensor, means: list[Tensor], n: int) -> Tensor:
        """log p/q of an update, given the weights before it and the other examples' batch.

        Given whether the canary is in the batch the update is Gaussian, so both sides are mixtures:
        (1 − rate) N(without) + rate N(with its canary).
        """
        how = self.training
        sums = []
        for mean in means:
            shift = (mean - without) * (how.rate * n)
            seen = (update - without) * (how.rate * n)
            fit = ((seen * shift).sum(1) - shift.square().sum(1) / 2).double() / self._scale**2
            absent = torch.full_like(fit, math.log1p(-how.rate))
            sums.append(torch.logaddexp(absent, fit + math.log(how.rate)))
        return sums[0] - sums[1]


class Mechanism:
    """DP-SGD as dpassay runs it: trained models' scores, one row a model.

    score  of logits [models, canaries, classes] to an array of numbers or rows, a model each; by default
           all logits
    """

    def __init__(
        self, trainer: Trainer | None = None, score: Callable[[Array], Array] = vector
    ) -> None:
        self.trainer = trainer or Trainer()
        self.score = score

    def __call__(self, data: Database, size: int, rng: np.random.Generator) -> Array:
        """The scores of `size` models after the last step."""
        return self.score(self.trainer(data, size, rng).logits[:, -1])
