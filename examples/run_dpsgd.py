"""Train the models of the DP-SGD audits and keep what was seen of them, a file a run.

    python -m examples.run_dpsgd --smoke --device cuda      gradients checked, steps timed
    python -m examples.run_dpsgd --data FILE --device cuda --out scores authors
    python -m examples.run_dpsgd --data FILE --device cuda --out scores paper start label gradient
    python -m examples.run_dpsgd --small --out scores       every run, small, without a GPU

`--data` (or CIFAR10 in the environment) is data_batch_1.bin of CIFAR-10's binary version, or an .npz with
images and labels; without it the images are synthetic. A file is written again after every group of
models; `--first 960` goes on where another call stopped, and `examples.join_dpsgd` joins the parts.
`examples.audit_dpsgd` reads the files. Only numpy and PyTorch are needed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from examples import cifar, one_model
from examples.cifar import AIRPLANE, FROG
from examples.dpsgd import Record, Trainer, Training
from examples.per_example import Examples, Network, backward, clipped

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
    spread: tuple[float, ...] = tuple(cifar.SPREAD)  # pixels are divided by it, per channel


def _tiny(**settings: Any) -> Run:
    training = Training(canary="gradient", start="fixed", **settings)
    return Run(training, TINY, models=10_000, together=1000, precision="float32")


_AGAINST = Training(canary="against", removed=True, start="fixed")
RUNS = {
    "authors": Run(  # what the authors of arXiv:2502.07066 published (stoneboat/fdp-estimation)
        Training(momentum=0.9),
        Network(groups=(4, 8, 8, 8), slope=0.01),
        models=2000,
        together=80,
        precision="float32",
        spread=(0.2023, 0.1994, 0.2010),
    ),
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
_CODE = ("cifar.py", "per_example.py", "dpsgd.py", "run_dpsgd.py")


def databases(run: Run, images: Any, labels: Any) -> tuple[cifar.Database, cifar.Database]:
    """The two neighbouring training sets of a run."""
    x = cifar.shrunk(images, run.network.side)
    white = np.full_like(x[0], 255)
    if run.alike:
        x, labels = np.broadcast_to(white, x.shape), np.full_like(labels, FROG)
    canaries = (white if run.white else np.zeros_like(white), white)
    return cifar.pair(x, labels, canaries, run.labels, np.array(run.spread))


def code_version() -> str:
    """A digest of the files that train."""
    here = Path(__file__).parent
    return hashlib.sha256(b"".join((here / name).read_bytes() for name in _CODE)).hexdigest()


def trainer_of(run: Run, device: str, **settings: Any) -> Trainer:
    """What trains the models of a run."""
    given: dict[str, Any] = {"precision": run.precision, "together": run.together} | settings
    at = _marks(run.training.steps)
    return Trainer(run.training, run.network, at=at, watch=True, device=device, **given)


def train(
    name: str, run: Run, given: argparse.Namespace, images: Any, labels: Any, until: float
) -> dict[str, Any]:
    """Train both sides in turns, and keep the same number of models of each, also if time runs out."""
    start = time.perf_counter()
    trainer = trainer_of(run, given.device)
    pair = databases(run, images, labels)
    rngs = np.random.default_rng([given.seed, *name.encode()]).spawn(2)
    for rng in rngs:  # a number a group
        rng.integers(2**62, size=given.first // run.together)
    parts: tuple[list[Record], list[Record]] = ([], [])
    about = {
        "run": name,
        "models": 0,
        "first": given.first,
        "wanted": run.models,
        "steps": list(trainer.at),
        "examples": len(images),
        "data": {
            "set": cifar.data_set(images, labels),
            "sha256": cifar.digest(images, labels),
            "file": Path(given.data).name if given.data else "synthetic",
        },
        "code": code_version(),
        "device": torch.cuda.get_device_name(0) if given.device.startswith("cuda") else "cpu",
        "precision": run.precision if run.precision != "auto" else str(trainer.kind),
        "torch": torch.__version__,
        "seed": given.seed,
        "together": run.together,
        "network": asdict(run.network),
        "training": asdict(run.training),
        "spread": list(run.spread),
        "canary_labels": list(run.labels),
    }
    file = given.out / (f"{name}-{given.first:05d}.npz" if given.first else f"{name}.npz")
    done, slowest = 0, 0.0
    while done < run.models and time.perf_counter() + slowest < until:
        before = time.perf_counter()
        size = min(run.together, run.models - done)
        for side in (0, 1):
            parts[side].append(trainer(pair[side], size, rngs[side]))
        done += size
        seconds = time.perf_counter() - start
        about |= {"models": done, "seconds": round(seconds, 2)}
        _keep(file, about, parts, logits=run.models <= 5000)
        slowest = max(slowest, time.perf_counter() - before)
        left = (run.models - done) * seconds / done
        rate = 2 * done * run.training.steps / seconds
        print(
            f"{name}: {done} a side, {seconds:.1f} s, {rate:.0f} model-steps/s, {left:.0f} s left",
            flush=True,
        )
    if not done:
        print(f"{name}: no time left")
    return about


def _keep(file: Path, about: dict[str, Any], parts: Any, logits: bool) -> None:
    """Write what is there, in place of what was: a run that is stopped leaves a whole file."""
    kept: dict[str, Any] = {"about": np.array(json.dumps(about))}
    # of more models, all updates are what the run is about, and logits more than a file may hold
    columns = ("logits", "losses", "along") if logits else ("losses", "along")
    for side in (0, 1):
        for column in columns:
            values = np.concatenate([getattr(part, column) for part in parts[side]])
            kept[f"{column}_{side}"] = values.astype(np.float32)
    part = file.with_suffix(".part.npz")
    np.savez_compressed(part, **kept)
    part.replace(file)


def _marks(steps: int) -> tuple[int, ...]:
    """After 1, 10, 15, 20 and 25 epochs of two steps, and at the end."""
    return (*(mark for mark in (2, 20, 30, 40) if mark < steps), steps)


def check_gradients(run: Run, device: str, images: Any, labels: Any) -> None:
    """Sums of clipped gradients on the device against autograd in float64, one example at a time."""
    network = run.network
    data = databases(run, images[:64], labels[:64])[0]
    rng = torch.Generator().manual_seed(0)
    theta = network.initial(2, rng)
    theta += 0.05 * torch.randn(theta.shape, generator=rng)  # scales and shifts of their own
    index = torch.stack([torch.randperm(64, generator=rng)[:16] for _ in range(2)])
    index[:, 0] = 0  # the canary is one of them
    truth = torch.stack(
        [
            one_model.clipped_sum(network, one, data.images[chosen], data.labels[chosen], 0.5)
            for one, chosen in zip(theta.double(), index.numpy(), strict=True)
        ]
    )
    cuda = device.startswith("cuda")
    asked = "bfloat16" if run.precision == "auto" and cuda else run.precision
    limits = {"float32": (1e-4, 1e-5), "tf32": (3e-3, 2e-3), "bfloat16": (0.05, 0.0)}
    for name in limits if cuda else ("float32",):
        kind = trainer_of(run, device, precision=name).kind
        examples = Examples(data.images, data.labels, device, kind)
        with torch.no_grad():
            pieces = backward(network, theta.to(device), *examples.take(index.to(device)))
            weights = [torch.ones(2, 16), *(row.expand(2, 16) for row in torch.eye(16))]
            sums = [clipped(pieces, w.to(device), 0.5, kind, "")[0].cpu() for w in weights]
        off = float((sums[0] - truth).norm() / truth.norm())
        most = max(float(one.norm(dim=1).max()) for one in sums[1:]) / 0.5
        print(f"{name}: relative error {off:.2g}, largest clipped norm {most:.6f} of the limit")
        if name == asked or not cuda:
            error, slack = limits[name]
            assert off < error, f"{name} differs from autograd"
            assert most <= 1 + slack, "an example adds more than the clipping norm"


def check_precision(run: Run, device: str, images: Any, labels: Any) -> None:
    """The same models, batches and noise with tf32 products: how far the logits of the canary move."""
    data = databases(run, images, labels)[0]
    seen = [
        trainer_of(run, device, precision=name)(data, 32, np.random.default_rng(3)).logits[:, -1, 0]
        for name in ("float32", "tf32")
    ]
    apart, spread = (seen[1] - seen[0])[:, AIRPLANE], seen[0][:, AIRPLANE].std()
    print(
        f"tf32 for float32, after {run.training.steps} steps: logit of 32 models moves by "
        f"{apart.mean():+.2g} ± {apart.std():.2g}, models' standard deviation {spread:.2g}"
    )


def smoke(name: str, run: Run, device: str, images: Any, labels: Any) -> None:
    """Gradients checked, the time of a step for groups of several sizes, and what takes it."""
    check_gradients(run, device, images, labels)
    data = databases(run, images, labels)[0]
    steps = 4
    short = replace(run, training=replace(run.training, steps=steps))
    cuda = device.startswith("cuda")
    best: tuple[float, str] = (np.inf, "")
    sizes = [size for size in (20, 40, 80) if size <= run.models] if cuda else [2]
    for precision in ("float32", "tf32", "bfloat16") if cuda else ("float32",):
        for size in sizes:
            trainer = trainer_of(short, device, precision=precision, together=size)
            try:
                trainer(data, size, np.random.default_rng(0))  # warm
                start = time.perf_counter()
                trainer(data, size, np.random.default_rng(1))
            except torch.OutOfMemoryError:
                print(f"{precision}, {size} at once: not enough memory")
                continue
            each = (time.perf_counter() - start) / (steps * size)
            whole = each * 2 * run.models * run.training.steps
            best = min(best, (whole, f"--precision {precision} --together {size}"))
            print(f"{precision}, {size} at once: {each * size * 1e3:.1f} ms a step", end=", ")
            print(f"{run.models} models a side: {whole:.0f} s", flush=True)
    print(f"fastest: {best[1]}, {best[0]:.0f} s for {name}")
    if cuda:
        print(f"memory at most: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
        trainer = trainer_of(short, device)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            trainer(data, run.together, np.random.default_rng(2))
        kernels = [(e.self_device_time_total / 1e3, e.count, e.key) for e in profile.key_averages()]
        whole = sum(spent for spent, _, _ in kernels)
        for spent, count, key in sorted(kernels, reverse=True)[:16]:
            print(f"{spent / whole:6.1%} {spent / steps:8.2f} ms a step {count:6d} {key[:110]}")
        check_precision(run, device, images, labels)


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="*", help=f"some of {', '.join(RUNS)}; all without a word")
    parser.add_argument("--data", default=os.environ.get("CIFAR10"), help="images; else synthetic")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("scores"))
    parser.add_argument("--models", type=int, help="a side, in place of the run's own number")
    parser.add_argument(
        "--first", type=int, default=0, help="models a side that another call trained"
    )
    parser.add_argument("--together", type=int, help="models trained at once")
    parser.add_argument("--precision", choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--limit", type=float, default=540.0, help="seconds; what is done is kept")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="small networks, few models")
    parser.add_argument("--smoke", action="store_true", help="check gradients and time a step")
    given = parser.parse_args()
    until = time.perf_counter() + given.limit
    count = 100 if given.small else 1000
    images, labels = cifar.read(given.data, count) if given.data else cifar.synthetic(count)
    unknown = [name for name in given.runs if name not in RUNS]
    if unknown:
        parser.error(f"there is no run {unknown[0]}: choose from {', '.join(RUNS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    made = []
    for name in given.runs or (["authors"] if given.smoke else RUNS):
        run = RUNS[name]
        if given.small:
            training = replace(run.training, steps=min(run.training.steps, 6))
            small = replace(SMALL, groups=run.network.groups, slope=run.network.slope)
            run = replace(run, network=small, training=training, models=50, together=50)
        asked = {"models": given.models, "together": given.together, "precision": given.precision}
        run = replace(run, **{key: value for key, value in asked.items() if value})
        if given.first % run.together:
            parser.error(f"--first {given.first} must be a multiple of --together {run.together}")
        if given.smoke:
            smoke(name, run, given.device, images, labels)
            continue
        made.append(train(name, run, given, images, labels, until))
        (given.out / "runs.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
