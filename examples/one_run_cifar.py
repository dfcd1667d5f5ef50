"""Train models with DP-SGD on images some of which are canaries, and score the canaries of every run.

    python -m examples.one_run_cifar --data FILE --device cuda --out FOLDER     one_run_cifar.npz
    python -m examples.one_run_cifar --small --out FOLDER                       few small models, no GPU

A fair coin of its own includes each of m canaries in a run or leaves it out. Canaries are

    ordinary      images with their labels, m of the data set
    mislabelled   the same images, each with a wrong label
    dirac         m gradients beside all images, each of the clipping norm in a coordinate of its own

(Steinke, Nasr & Jagielski 2023, arXiv:2305.08846). Scores of a canary c, larger if it seems included:

    loss           − its loss under the last weights (black box)
    gradient       Σ_t ⟨u_t, g_tc⟩: the noisy sum of a step with the clipped gradient of the canary at the
                   weights before it (white box; Nasr et al. 2023, arXiv:2302.07956)
    centred        Σ_t ⟨u_t − E u_t, g_tc⟩: less what is expected of u_t over coins, batches and noise,
                   which somebody knows who knows the images and the weights
    decorrelated   the best linear estimate of all coins from the centred scores: images whose gradients
                   are alike disturb each other less

None of them looks at a coin or at a batch: they are functions of all noisy sums (white box) and of the
canaries. A file is written again after every group of models. Only numpy and PyTorch are needed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from examples import cifar
from examples.per_example import Examples, Network, Tensor, backward, clipped, forward

#: Noise multipliers of 50 steps whose ε at δ = 1e-5 is about 1, 4, 8 and 16 by dp-accounting's
#: PLDAccountant, for Poisson batches of half of the data and for full batches; `benchmarks.one_run_cifar`
#: computes these ε again.
NOISES = {0.5: (13.33, 3.97, 2.28, 1.375), 1.0: (26.4, 7.65, 4.25, 2.44)}
CLIP = 1.0


@dataclass(frozen=True)
class Cell:
    """Runs that differ in noise and randomness alone."""

    canary: str
    canaries: int
    rate: float

    @property
    def planted(self) -> bool:
        """Whether canaries are gradients, no images."""
        return self.canary == "dirac"


@dataclass(frozen=True)
class Setting:
    """What all runs share."""

    network: Network
    images: Any  # (n, side, side, 3), normalized
    labels: Any
    steps: int
    learning_rate: float
    device: str


def wrong(labels: Any, classes: int = 10) -> Any:
    """Another label for each image, the same in all runs."""
    rng = np.random.default_rng(1)
    return (labels + rng.integers(1, classes, size=len(labels))) % classes


@torch.no_grad()  # type: ignore[untyped-decorator]
def train(setting: Setting, cell: Cell, noises: Any, seed: int) -> dict[str, Any]:
    """One model for each noise multiplier: coins, scores of all canaries, accuracy on the images."""
    net, device = setting.network, torch.device(setting.device)
    kind = torch.bfloat16 if device.type == "cuda" else torch.float32
    generator = torch.Generator(device).manual_seed(seed)
    n, m, models, q = len(setting.images), cell.canaries, len(noises), cell.rate
    labels = setting.labels.copy()
    if cell.canary == "mislabelled":
        labels[n - m :] = wrong(labels)[n - m :]
    examples = Examples(setting.images, labels, device, kind)
    index = torch.arange(n, device=device).expand(models, n)
    rows, tags = examples.take(index)
    sigma = torch.tensor(noises, device=device, dtype=torch.float32)[:, None] * CLIP
    theta = net.initial(models, generator)

    def uniform(count: int) -> Tensor:
        return torch.rand(models, count, generator=generator, device=device)

    coins = uniform(m) < 0.5
    places = torch.randperm(net.size, generator=torch.Generator().manual_seed(2))[:m].to(device)
    there = torch.ones(models, n, dtype=torch.bool, device=device)
    likely = torch.full((models, n), q, device=device)  # in a batch, over the coins as well
    variance = torch.full(
        (n,), q * (1 - q) / setting.steps, device=device
    )  # of the share of batches
    if not cell.planted:
        there[:, n - m :] = coins
        likely[:, n - m :] = q / 2
    variance = q * (1 - q) * likely[0] / q  # of being in a batch, given the coins, on average
    last = 0 if cell.planted else n
    records = n + m * cell.planted
    plain, centred, white = (torch.zeros(models, last or m, device=device) for _ in range(3))
    gram = torch.zeros(models, last, last, device=device)
    for _ in range(setting.steps):
        pieces = backward(net, theta, rows, tags)
        taken = ((uniform(n) < q) & there).float()
        total, ends = clipped(pieces, taken, CLIP, kind, "", last)
        mean, _ = clipped(pieces, likely, CLIP, kind, "")
        del pieces
        if cell.planted:
            total[:, places] += CLIP * ((uniform(m) < q) & coins)
            mean[:, places] += CLIP * q / 2
        seen = total + torch.randn(theta.shape, generator=generator, device=device) * sigma
        if cell.planted:
            plain += CLIP * seen[:, places]
            centred += CLIP * (seen - mean)[:, places]
        else:
            both = torch.bmm(ends, torch.stack([seen, seen - mean], dim=2))
            plain += both[..., 0]
            centred += both[..., 1]
            products = torch.bmm(ends, ends.transpose(1, 2))
            white += whitened(both[..., 1], products, sigma, variance)
            gram += products
        theta = theta - setting.learning_rate * seen / (q * records)
    logits = forward(net, theta, rows)[1].float()
    found = {"gradient": plain, "centred": centred}
    if not cell.planted:
        loss = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
        best = decorrelated(white, gram / setting.steps, sigma, variance, m, q, setting.steps)
        found |= {"loss": -loss, "decorrelated": best}
    right = (logits.argmax(2).cpu().numpy() == setting.labels).mean(axis=1)
    return {
        "coins": coins.cpu().numpy(),
        "accuracy": right,
        **{name: ranks(values[:, -m:].double().cpu().numpy()) for name, values in found.items()},
    }


def whitened(r: Tensor, gram: Tensor, sigma: Tensor, variance: Tensor) -> Tensor:
    """(K V + σ² I)⁻¹ r by conjugate gradients, for r = G (u − E u) of one step and K = G Gᵀ.

    r = K (q z + f) + noise, where z is the coin − ½ of a canary (0 of another image), f the deviation of
    the batch with variances V given the coins, and the noise has covariance σ² K. These are the terms of
    the efficient score of z.
    """
    if not variance.any():
        return r / sigma.square()
    root = variance.sqrt()
    right = root * r
    found, residual = torch.zeros_like(right), right.clone()
    direction, size = residual.clone(), residual.square().sum(1, keepdim=True)
    for _ in range(40):
        image = root * torch.bmm(gram, (root * direction)[..., None])[..., 0]
        image += sigma.square() * direction
        step = size / (direction * image).sum(1, keepdim=True).clamp(min=1e-30)
        found, residual = found + step * direction, residual - step * image
        size, before = residual.square().sum(1, keepdim=True), size
        direction = residual + size / before.clamp(min=1e-30) * direction
    return found / root


def decorrelated(
    white: Tensor, gram: Tensor, sigma: Tensor, variance: Tensor, m: int, q: float, steps: int
) -> Tensor:
    """The best linear estimate of the coins of the last m images: (4 I + J)⁻¹ q Σ_t (K_t V + σ² I)⁻¹ r_t.

    4 I is the inverse of the coins' covariance, and J their information, q² steps (K V + σ² I)⁻¹ K with K
    the mean of all steps (exact for full batches, where V = 0).
    """
    eye = torch.eye(gram.shape[1], device=gram.device)
    noise = gram * variance + sigma.square()[:, :, None] * eye
    information = q * q * steps * torch.linalg.solve(noise, gram)[:, -m:, -m:]
    return torch.linalg.solve(4 * eye[-m:, -m:] + information, q * white[:, -m:, None])[..., 0]


def ranks(scores: Any) -> Any:
    """The place of every canary among those of its run, 0 for the lowest: all that an audit uses."""
    return np.argsort(np.argsort(scores, axis=1), axis=1).astype(np.uint16)


def seed_of(*address: int) -> int:
    """A seed for a group of models."""
    return int(np.random.default_rng(address).integers(2**62))


def cells(sizes: tuple[int, ...]) -> list[Cell]:
    """All that is trained, in this order."""
    kinds = ("ordinary", "mislabelled", "dirac")
    return [Cell(kind, m, rate) for rate in NOISES for m in sizes for kind in kinds]


def keep(file: Path, about: dict[str, Any], parts: dict[str, list[dict[str, Any]]]) -> None:
    """Write what is there, in place of what was: a run that is stopped leaves a whole file."""
    kept: dict[str, Any] = {"about": np.array(json.dumps(about))}
    for name, made in parts.items():
        for column in made[0]:
            values = np.concatenate([part[column] for part in made])
            packed = np.packbits(values, axis=1) if column == "coins" else values
            kept[f"{name}/{column}"] = packed
    part = file.with_suffix(".part.npz")
    np.savez_compressed(part, **kept)
    part.replace(file)


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("CIFAR10"), help="images; else synthetic")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("scores"))
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=64, help="models a cell and noise multiplier")
    parser.add_argument("--together", type=int, default=64, help="models trained at once")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=440.0, help="seconds; what is done is kept")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="few small models, few images")
    given = parser.parse_args()
    start = time.perf_counter()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    network = Network(channels=(16, 32, 32), pools=(2, 2, 2), side=16)
    sizes: tuple[int, ...] = (given.images // 2, given.images)
    if given.small:
        network = Network(channels=(8, 8), pools=(2, 2), side=8)
        given.images, given.seeds, given.steps, sizes = 60, 2, 6, (30, 60)
    images, labels = (
        cifar.read(given.data, given.images) if given.data else cifar.synthetic(given.images)
    )
    x = cifar.normalized(cifar.shrunk(images, network.side))
    setting = Setting(network, x, labels, given.steps, given.learning_rate, given.device)
    cuda = given.device.startswith("cuda")
    about = {
        "data": {
            "set": cifar.data_set(images, labels),
            "sha256": cifar.digest(images, labels),
            "images": len(images),
        },
        "device": torch.cuda.get_device_name(0) if cuda else "cpu",
        "torch": torch.__version__,
        "numpy": np.__version__,
        "precision": "bfloat16 products" if cuda else "float32",
        "network": asdict(network),
        "parameters": network.size,
        "steps": given.steps,
        "learning_rate": given.learning_rate,
        "clip": CLIP,
        "delta": 1e-5,
        "seed": given.seed,
        "cells": {},
    }
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "one_run_cifar.npz"
    parts: dict[str, list[dict[str, Any]]] = {}
    slowest = 0.0
    for number, cell in enumerate(cells(sizes)):
        name = f"{cell.canary}-{cell.canaries}-{cell.rate:g}"
        noises = [noise for _ in range(given.seeds) for noise in NOISES[cell.rate]]
        before = time.perf_counter()
        for k in range(0, len(noises), given.together):
            began = time.perf_counter()
            if began - start + 1.2 * slowest > given.limit:
                print(f"{name}: no time left after {k} models")
                break
            chunk = noises[k : k + given.together]
            made = train(setting, cell, chunk, seed_of(given.seed, number, k))
            parts.setdefault(name, []).append({"noise": np.array(chunk), **made})
            slowest = max(slowest, time.perf_counter() - began)
        if name not in parts:
            continue
        done = sum(len(part["noise"]) for part in parts[name])
        seconds = time.perf_counter() - before
        about["cells"][name] = {**asdict(cell), "models": done, "seconds": round(seconds, 2)}
        about["seconds"] = round(time.perf_counter() - start, 2)
        keep(file, about, parts)
        accuracy = np.concatenate([part["accuracy"] for part in parts[name]])
        which = np.concatenate([part["noise"] for part in parts[name]])
        said = ", ".join(f"{accuracy[which == z].mean():.2f}" for z in NOISES[cell.rate])
        print(f"{name}: {done} models, {seconds:.1f} s, accuracy on all images {said}", flush=True)
    if cuda:
        print(f"memory at most: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    print(f"{time.perf_counter() - start:.1f} s in all, {file.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
