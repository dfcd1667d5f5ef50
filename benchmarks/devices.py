"""Audits whose draws never leave a device, and δ = 10⁻⁷.

    python -m benchmarks.devices --device cuda --block 268435456 --workers 2 --draws 1e8 1e9 1e10

prints the tables of docs/devices.md. It needs PyTorch, and on a GPU memory for six blocks of
doubles a worker. Two workers keep a device busy while counts come back.
`--trained` is how often a model is trained, by 200 steps of noisy descent; `--plain` draws with NumPy
instead, for comparison.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

import dpassay as dp
from benchmarks.tables import markdown
from dpassay.sampling.job import stream

PAIR = (0.0, 1.0)
#: Iterations of the mechanism of which a draw is a trained model.
ITERATIONS = 200
DESCENT = f"descent, {ITERATIONS} steps"
#: Drawing that takes so many seconds is audited once.
LONG = 3.0
#: The example of small δ: noise 4 on a query of sensitivity 1.
SIGMA, DELTA = 4.0, 1e-7


def mechanisms(device: str, block: int, plain: bool) -> dict[str, Callable[[float], Any]]:
    """Noise of a scale, and descent with such noise, drawn by PyTorch on a device, or by NumPy."""
    if plain:
        kinds: list[Any] = [dp.zoo.Laplace, dp.zoo.Gaussian, dp.zoo.NoisyGradientDescent]
        where = {}
    else:
        kinds = [dp.zoo.TorchLaplace, dp.zoo.TorchGaussian, dp.zoo.TorchNoisyGradientDescent]
        where = {"device": device, "block": block}
    noises = zip(("Laplace", "Gaussian"), kinds, strict=False)
    makers: dict[str, Any] = {name: partial(kind, **where) for name, kind in noises}
    return makers | {DESCENT: lambda s: kinds[2](sigma=s, iterations=ITERATIONS, **where)}


def wait(device: str) -> None:
    """Until the device has done what it was asked for."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def seconds(call: Callable[[], Any], device: str) -> tuple[float, Any]:
    """How long a call takes, and what it returns."""
    wait(device)
    start = time.perf_counter()
    found = call()
    wait(device)
    return time.perf_counter() - start, found


def draw(mechanism: Any, n: int) -> None:
    """Draw on both inputs, and nothing else."""
    block = getattr(mechanism, "block", 1 << 16)
    for first in range(0, n, block):
        for side, data in enumerate(PAIR):
            mechanism(data, min(block, n - first), stream(0, 0, 0, first // block, side))


def audits(
    makers: dict[str, Callable[[float], Any]],
    sizes: dict[str, list[int]],
    device: str,
    sampling: dp.Sampling,
) -> str:
    """Draws a second, and a whole audit of a true claim ÷ drawing alone: medians of three, if short."""
    rows = []
    for name, claim in (("Laplace", "eps=1"), ("Gaussian", "mu=1"), (DESCENT, "mu=0.95")):
        mechanism = makers[name](1.0)
        for n in sizes[name]:
            alone, _ = seconds(partial(draw, mechanism, n), device)
            audit = partial(dp.audit, mechanism, PAIR, claim, n=n, loss="values", sampling=sampling)
            seeds = range(1, 4 if alone < LONG else 2)
            timed = [seconds(partial(audit, rng=seed), device) for seed in seeds]
            whole, verdict = sorted(timed, key=lambda one: one[0])[len(timed) // 2]
            row = [f"{name}, {claim}", f"{n:.0e}", f"{2 * n / alone:.2g}", f"{alone:.2f}"]
            row += [f"{whole:.2f}", f"{whole / alone:.2f}", f"{verdict.lower_bound:.5f}"]
            print(*row, flush=True)
            rows.append(row)
    headings = ["audit", "draws a side", "draws/s alone", "drawing, s", "whole audit, s", "÷"]
    return markdown([*headings, "certified"], rows)


def small(makers: dict[str, Callable[[float], Any]], n: int, device: str, seeds: range) -> str:
    """The ε at which δ(ε) = 10⁻⁷: estimated, bounded, and the claim of half that δ there refuted."""
    mechanism = makers["Gaussian"](SIGMA)
    truth = float(brentq(lambda eps: mechanism.delta(eps, PAIR) - DELTA, 0.1, 3.0))
    rows: list[list[str]] = []

    def add(
        what: str, size: int, call: Callable[[], Any], said: Callable[[Any], list[str]]
    ) -> None:
        took, found = seconds(call, device)
        rows.append([what, f"{size:.0e}", *said(found), f"{took:.1f}"])
        print(*rows[-1], flush=True)

    def near(eps: float) -> list[str]:
        return [f"{eps:.4f}", f"{eps / truth:.3f}"]

    grid = np.linspace(0.0, 2.0, 201)
    for size in (n // 1000, n // 100, n // 10):
        estimate = partial(dp.spectrum.estimate, mechanism, PAIR, epsilons=grid, n=size, rng=1)
        add("estimated ε", size, estimate, lambda found: near(found.epsilon(DELTA)))
        family = f"eps, delta={DELTA}"
        bound = partial(dp.bound, mechanism, PAIR, family, loss="values", n=size, rng=1)
        add("certified ε", size, bound, lambda found: near(found.value))
    claim = dp.ApproximateDP(truth, DELTA / 2)
    for seed in seeds:
        audit = partial(dp.audit, mechanism, PAIR, claim, n=n, loss="values", rng=seed)
        add(
            f"claim ({truth:.4f}, {DELTA / 2:.0e}), seed {seed}",
            n,
            audit,
            lambda v: ["refuted" if v.violated else "not refuted", f"p ≤ {v.p_value:.2g}"],
        )
    return markdown(["", "draws a side", "found", f"÷ truth {truth:.4f}", "seconds"], rows)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--block", type=int, default=1 << 20)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--draws", type=float, nargs="*", default=[1e7])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--trained", type=float, nargs="*", default=[])
    parser.add_argument("--small", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    makers = mechanisms(given.device, given.block, given.plain)
    draw(makers["Laplace"](1.0), given.block)  # kernels are loaded, memory is there
    sampling = dp.Sampling(workers=given.workers)
    first = max(200_000, 8 * given.block)
    dp.audit(
        makers["Laplace"](1.0), PAIR, "eps=1", n=first, loss="values", rng=0, sampling=sampling
    )
    sizes = {name: [int(n) for n in given.draws] for name in makers}
    sizes[DESCENT] = [int(n) for n in given.trained]
    if any(sizes.values()):
        print(audits(makers, sizes, given.device, sampling))
    if given.small:
        print(small(makers, int(given.small), given.device, range(given.seeds)))
    if given.device.startswith("cuda"):
        import torch

        print(torch.cuda.get_device_name(), f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


if __name__ == "__main__":
    main()
