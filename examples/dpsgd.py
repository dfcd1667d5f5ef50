"""DP-SGD, many models at once, in PyTorch: batches, noise, steps, and what is seen of the models.

first, second = cifar.pair(*cifar.read("data_batch_1.bin"))
dp.audit(dpsgd.Mechanism(), (first, second), dp.GaussianDP(0.15), n=1000)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from examples.cifar import Array, Database, vector
from examples.per_example import Examples, Network, Tensor, backward, clipped, forward


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
    momentum: float = 0.0
    clip: float = 1.0
    noise: float = 1.0
    batches: str = "poisson"  # or "shuffled": every epoch a permutation, cut into 1/rate parts
    canary: str = "example"
    removed: bool = False
    strength: float = 10.0
    start: str = "random"
    fault: str = ""


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
        probes = Examples(data.canaries, data.canary_labels, device, torch.float32)
        probe = torch.arange(2, device=device).expand(models, 2)
        fixed = torch.Generator(device).manual_seed(1)
        direction = torch.randn(1, net.size, generator=fixed, device=device)
        direction = direction / direction.norm()
        theta = net.initial(1, fixed).expand(models, -1) if how.start == "fixed" else None
        theta = net.initial(models, generator) if theta is None else theta
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        for step, (now, loss) in enumerate(self._steps(data, theta, direction, generator), start=1):
            if step in self.at:
                logits = forward(net, now, probes.take(probe)[0])[1]
                along = ((now - theta) @ direction[0]).double()
                seen.append((logits.float(), loss, along))
        columns = [torch.stack(column, dim=1).cpu().numpy() for column in zip(*seen, strict=True)]
        return Record(*columns)

    def _steps(
        self, data: Database, theta: Tensor, direction: Tensor, generator: Any
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The weights after every step, and the log-likelihood ratio of all updates so far."""
        how, models = self.training, len(theta)
        both = np.concatenate([data.images, data.canaries])
        tags = np.concatenate([data.labels, data.canary_labels])
        examples = Examples(both, tags, theta.device, self.kind)
        draws = self._batches(data, models, generator)
        velocity = torch.zeros_like(theta)
        loss = torch.zeros(models, dtype=torch.float64, device=theta.device)
        for _ in range(how.steps):
            update, change = self._update(data, theta, next(draws), examples, direction, generator)
            velocity = how.momentum * velocity + update
            theta = theta - how.learning_rate * velocity
            loss = loss + change
            yield theta, loss

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

    def _update(
        self,
        data: Database,
        theta: Tensor,
        taken: Tensor,
        examples: Examples,
        direction: Tensor,
        generator: Any,
    ) -> tuple[Tensor, Any]:
        """The noisy mean gradient of a step, and what it adds to the log-likelihood ratio."""
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
        return update, change

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
