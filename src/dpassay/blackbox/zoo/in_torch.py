"""Noise drawn by PyTorch, on any of its devices: how a mechanism with a generator of its own uses `rng`.

The generator is seeded anew in every call, from the `rng` of that call: streams stay independent, and the
same seed gives the same draws on the same device. The outputs stay on the device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay import checks
from dpassay.blackbox.zoo.base import grid_step
from dpassay.blackbox.zoo.descent import NoisyGradientDescent
from dpassay.blackbox.zoo.noise import Gaussian, Laplace, shape_of
from dpassay.errors import MissingExtra


@dataclass(frozen=True, repr=False)
class _OnDevice:
    """Where noise is drawn, and how much of it in one call."""

    device: str = "cpu"
    block: int = 1 << 20

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]
        checks.whole("block", self.block)

    def _seeded(self, rng: np.random.Generator) -> dict[str, Any]:
        """What torch.rand is told: doubles, where, and a generator that this call seeds."""
        try:
            import torch
        except ImportError:
            raise MissingExtra("noise drawn by PyTorch", "torch") from None
        generator = torch.Generator(device=self.device).manual_seed(int(rng.integers(2**63)))
        return {"generator": generator, "dtype": torch.float64, "device": self.device}

    def _drawn(self, kind: str, data: Any, size: int, rng: np.random.Generator) -> Any:
        """torch.rand or torch.randn."""
        how = self._seeded(rng)
        import torch

        return getattr(torch, kind)(shape_of(data, size), **how)


@dataclass(frozen=True, repr=False)
class TorchGaussian(_OnDevice, Gaussian):
    """`Gaussian` with its noise drawn by PyTorch, in doubles.

    block  how many outputs are drawn in one call: a GPU wants tens of millions, and memory for five times
           as many doubles
    """

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add independent noise to every coordinate."""
        noise = self._drawn("randn", data, size, rng)
        return _released(noise.mul_(self.sigma), data, self.sigma)


@dataclass(frozen=True, repr=False)
class TorchLaplace(_OnDevice, Laplace):
    """`Laplace` with its noise drawn by PyTorch, in doubles; `block` as for `TorchGaussian`."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Add independent noise to every coordinate."""
        centred = self._drawn("rand", data, size, rng).sub_(0.5)
        noise = centred.abs().mul_(-2.0).log1p_().mul_(-self.scale)
        return _released(noise.copysign_(centred), data, self.scale)


@dataclass(frozen=True, repr=False)
class TorchNoisyGradientDescent(_OnDevice, NoisyGradientDescent):
    """`NoisyGradientDescent` by PyTorch: a draw is a model, and a block of them is trained at once."""

    def __call__(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """All iterations, for all outputs at once."""
        how = self._seeded(rng)
        import torch

        pull, spread = self.step * float(np.mean(data)), math.sqrt(2 * self.step) * self.sigma
        theta, noise = (torch.zeros(size, dtype=how["dtype"], device=self.device) for _ in range(2))
        for _ in range(self.iterations):
            noise.normal_(pull, spread, generator=how["generator"])
            theta.mul_(1 - self.step).add_(noise)
        return _released(theta, 0.0, self.sigma)


def _released(noise: Any, data: Any, scale: float) -> Any:
    """data + noise on the grid of `on_grid`."""
    import torch

    step = grid_step(scale)
    # a plain number travels with the call: nothing waits for it
    by = torch.as_tensor(data, dtype=torch.float64, device=noise.device) if np.ndim(data) else data
    return noise.add_(by).div_(step).round_().mul_(step)
