"""Train the models of the DP-SGD audits and keep what was seen of them, a file a run.

    python -m examples.run_dpsgd --smoke --device cuda      gradients checked, steps timed
    python -m examples.run_dpsgd --data FILE --device cuda --out scores paper start label gradient
    python -m examples.run_dpsgd --small --out scores       every run, small, without a GPU

`--data` (or CIFAR10 in the environment) is data_batch_1.bin of CIFAR-10's binary version, or an .npz with
images and labels; without it the images are synthetic. `examples.table_dpsgd` reads the files.
Only numpy and PyTorch are needed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from examples import cifar
from examples.cifar import AIRPLANE, FROG
from examples.dpsgd import Examples, Network, Record, Trainer, Training, backward, clipped

#: For ten times as many models, where the adversary sees all updates and the network hardly matters.
TINY = Network(channels=(8, 16, 16), pools=(2, 2, 2), side=8)


@dataclass(frozen=True)
class Run:
    """Models trained on both databases."""

    training: Training = field(default_factory=Training)
    network: Network = field(default_factory=Network)
    models: int = 1000  # a side
    together: int = 96
    labels: tuple[int, int] = (AIRPLANE, AIRPLANE)  # of the canaries
    white: bool = False  # both canaries are white
    alike: bool = False  # all other examples are white frogs: their gradients add up
    precision: str = "auto"


def _tiny(**settings: Any) -> Run:
    training = Training(canary="gradient", start="fixed", **settings)
    return Run(training, TINY, models=10_000, together=1000, precision="float32")


_AGAINST = Training(canary="against", removed=True, start="fixed")
RUNS = {
    "paper": Run(),
    "start": Run(Training(start="fixed")),
    "label": Run(Training(start="fixed"), labels=(AIRPLANE, FROG), white=True),
    "gradient": Run(Training(canary="gradient", start="fixed")),
    "tiny": _tiny(),
    "tiny-halved": _tiny(fault="noise halved"),
    "tiny-unclipped": _tiny(fault="layer unclipped"),
    "tiny-against": replace(_tiny(), training=_AGAINST, alike=True),
    "tiny-averaged": replace(
        _tiny(), training=replace(_AGAINST, fault="averaged by batch"), alike=True
    ),
}
#: Every run without a GPU: fewer and smaller.
SMALL = Network(channels=(8, 8, 8, 16), pools=(2, 2, 2, 1), side=8)


def databases(run: Run, images: Any, labels: Any) -> tuple[cifar.Database, cifar.Database]:
    """The two neighbouring training sets of a run."""
    x = cifar.shrunk(images, run.network.side)
    white = np.full_like(x[0], 255)
    if run.alike:
        x, labels = np.broadcast_to(white, x.shape), np.full_like(labels, FROG)
    return cifar.pair(x, labels, (white if run.white else np.zeros_like(white), white), run.labels)


def train(
    name: str, run: Run, images: Any, labels: Any, device: str, out: Path, seed: int, until: float
) -> dict[str, Any]:
    """Train both sides in turns, and keep the same number of models of each, also if time runs out."""
    start = time.perf_counter()
    trainer = Trainer(
        run.training,
        run.network,
        at=_marks(run.training.steps),
        watch=True,
        device=device,
        precision=run.precision,
        together=run.together,
    )
    pair = databases(run, images, labels)
    rngs = np.random.default_rng([seed, *name.encode()]).spawn(2)
    parts: tuple[list[Record], list[Record]] = ([], [])
    done, slowest = 0, 0.0
    while done < run.models and time.perf_counter() + slowest < until:
        before = time.perf_counter()
        size = min(run.together, run.models - done)
        for side in (0, 1):
            parts[side].append(trainer(pair[side], size, rngs[side]))
        done += size
        slowest = max(slowest, time.perf_counter() - before)
        print(f"{name}: {done} a side, {time.perf_counter() - start:.1f} s", flush=True)
    seconds = time.perf_counter() - start
    about = {
        "run": name,
        "models": done,
        "wanted": run.models,
        "steps": list(trainer.at),
        "examples": len(images),
        "seconds": round(seconds, 2),
        "device": torch.cuda.get_device_name(0) if device.startswith("cuda") else device,
        "precision": str(trainer.kind),
        "torch": torch.__version__,
        "seed": seed,
        "network": asdict(run.network),
        "training": asdict(run.training),
        "canary_labels": list(run.labels),
    }
    if not done:
        print(f"{name}: no time left")
        return about
    kept: dict[str, Any] = {"about": np.array(json.dumps(about))}
    for side in (0, 1):
        for column in ("logits", "losses", "along"):
            values = np.concatenate([getattr(part, column) for part in parts[side]])
            kept[f"{column}_{side}"] = values.astype(np.float32)
        if run.models > 2000:  # what a file may hold; all updates are what these runs are about
            del kept[f"logits_{side}"]
    np.savez_compressed(out / f"{name}.npz", **kept)
    return about


def _marks(steps: int) -> tuple[int, ...]:
    """After 1, 10, 15, 20 and 25 epochs of two steps, and at the end."""
    return (*(mark for mark in (2, 20, 30, 40) if mark < steps), steps)


def smoke(device: str, images: Any, labels: Any, together: int) -> None:
    """Gradients on the device against those in float32 here; the time of a step; what takes it."""
    network, how = Network(), Training()
    x = cifar.normalized(images[:64])
    rng = torch.Generator().manual_seed(0)
    theta = network.initial(2, rng)
    index = torch.stack([torch.randperm(64, generator=rng)[:16] for _ in range(2)])
    weight = torch.ones(2, 16)

    def summed(where: str, kind: Any, chosen: Any = weight, clip: float = 0.5) -> Any:
        examples = Examples(x, labels[:64], where, kind)
        pieces = backward(network, theta.to(where), *examples.take(index.to(where)))
        return clipped(pieces, chosen.to(where), clip, kind, "")[0].cpu()

    with torch.no_grad():
        truth = summed("cpu", torch.float32)
        kinds = [torch.float32] + [torch.bfloat16] * device.startswith("cuda")
        for kind in kinds:
            off = float((summed(device, kind) - truth).norm() / truth.norm())
            allowed = 1e-4 if kind == torch.float32 else 0.05
            one = [
                float(summed(device, kind, torch.eye(16)[i].expand(2, 16)).norm(dim=1).max())
                for i in range(16)
            ]
            print(f"{kind}: relative error {off:.2g}, largest clipped norm {max(one):.6f} of 0.5")
            assert off < allowed, f"{device} and cpu differ"
            assert max(one) <= 0.5 * (1 + 1e-6 * (kind == torch.float32)), (
                "an example adds more than the clipping norm"
            )
    data = cifar.pair(images, labels)[0]
    for size in (together // 2, together):
        steps = 6
        trainer = Trainer(replace(how, steps=steps), network, (steps,), True, device, together=size)
        trainer(data, size, np.random.default_rng(0))  # warm
        start = time.perf_counter()
        trainer(data, size, np.random.default_rng(1))
        each = (time.perf_counter() - start) / (steps * size)
        print(f"{size} at once: {each * size * 1e3:.1f} ms a step", end=", ")
        print(f"2000 models of 50 steps: {each * 2000 * 50:.0f} s", flush=True)
    if device.startswith("cuda"):
        print(f"memory at most: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
        activities = [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities) as profile:
            trainer(data, together, np.random.default_rng(2))
        kernels = [(e.self_device_time_total / 1e3, e.count, e.key) for e in profile.key_averages()]
        whole = sum(spent for spent, _, _ in kernels)
        for spent, count, key in sorted(kernels, reverse=True)[:20]:
            print(f"{spent / whole:6.1%} {spent / steps:8.2f} ms a step {count:6d} {key[:110]}")


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="*", help=f"some of {', '.join(RUNS)}; all without a word")
    parser.add_argument("--data", default=os.environ.get("CIFAR10"), help="images; else synthetic")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("scores"))
    parser.add_argument("--models", type=int, help="a side, in place of the run's own number")
    parser.add_argument("--together", type=int, help="models trained at once")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds; what is done is kept")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="small networks, few models")
    parser.add_argument("--smoke", action="store_true", help="check gradients and time a step")
    given = parser.parse_args()
    until = time.perf_counter() + given.limit
    count = 100 if given.small else 1000
    images, labels = cifar.read(given.data, count) if given.data else cifar.synthetic(count)
    if given.smoke:
        smoke(given.device, images, labels, given.together or RUNS["paper"].together)
        return
    unknown = [name for name in given.runs if name not in RUNS]
    if unknown:
        parser.error(f"there is no run {unknown[0]}: choose from {', '.join(RUNS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    made = []
    for name in given.runs or RUNS:
        run = RUNS[name]
        if given.small:
            training = replace(run.training, steps=min(run.training.steps, 6))
            run = replace(run, network=SMALL, training=training, models=50, together=50)
        if given.models:
            run = replace(run, models=given.models)
        if given.together:
            run = replace(run, together=given.together)
        made.append(train(name, run, images, labels, given.device, given.out, given.seed, until))
        (given.out / "runs.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
