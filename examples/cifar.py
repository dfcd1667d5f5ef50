"""CIFAR-10 images, two neighbouring training sets, and what is read off a trained model. Numpy alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: Per channel, as is usual for CIFAR-10.
MEAN, SPREAD = np.array([0.4914, 0.4822, 0.4465]), np.array([0.2470, 0.2435, 0.2616])
AIRPLANE, FROG = 0, 6
#: Of the pixels and labels of the first 1,000 images of data_batch_1.
_FIRST_1000 = "796e62793b0862ab0d1e965e48f82e6e49faab780c55fbf9f3110c986a465109"
#: The label byte, then 32 rows of 32 reds, the greens, the blues.
_RECORD = 1 + 3 * 32 * 32


def read(path: str | Path, count: int = 1000) -> tuple[Array, Array]:
    """The first `count` images (n, 32, 32, 3) and labels of a file.

    Either CIFAR-10's binary version (data_batch_1.bin), or an .npz with `images` and `labels` in it;
    nothing is unpickled.
    """
    path = Path(path)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            images, labels = file["images"][:count], file["labels"][:count]
    else:
        records = np.fromfile(path, dtype=np.uint8, count=count * _RECORD)
        if records.size == 0 or records.size % _RECORD:
            raise ValueError(
                f"{path} is no CIFAR-10 file: a record has {_RECORD} bytes (label, then pixels), and "
                f"this is {records.size} bytes; use the binary version of the data set, or an .npz"
            )
        records = records.reshape(-1, _RECORD)
        labels = records[:, 0]
        images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    if len(images) < count:
        raise ValueError(f"{path} has {len(images)} images, {count} are needed: ask for fewer")
    return np.ascontiguousarray(images), labels.astype(np.int64)


def digest(images: Array, labels: Array) -> str:
    """SHA-256 of pixels and labels, whatever file they came in."""
    content = images.astype(np.uint8).tobytes() + labels.astype(np.uint8).tobytes()
    return hashlib.sha256(content).hexdigest()


def data_set(images: Array, labels: Array) -> str:
    """What the images may be called: "CIFAR-10" if they are its first 1,000, else "other images"."""
    return "CIFAR-10" if digest(images, labels) == _FIRST_1000 else "other images"


def synthetic(count: int, side: int = 32, seed: int = 0) -> tuple[Array, Array]:
    """Images of noise whose brightness tells the label, where there is no data set at hand."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(10, size=count)
    noise = rng.normal(scale=40, size=(count, side, side, 3))
    return np.clip(60 + 14 * labels[:, None, None, None] + noise, 0, 255).astype(np.uint8), labels


def shrunk(images: Array, side: int) -> Array:
    """Images averaged down to `side` pixels, for small networks."""
    step = images.shape[1] // side
    blocks = images.reshape(len(images), side, step, side, step, 3)
    return np.asarray(blocks.mean(axis=(2, 4)).round().astype(np.uint8))


def normalized(images: Array, spread: Array = SPREAD) -> Array:
    """Pixels as the network sees them: centred and scaled per channel."""
    return np.asarray((images / 255.0 - MEAN) / spread, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Database:
    """A training set with a canary at index 0, and both canaries: what the adversary asks about."""

    images: Array  # (n, side, side, 3), normalized
    labels: Array
    canaries: Array  # (2, side, side, 3): of the first database and of the second
    canary_labels: Array
    which: int  # which of the two is at index 0

    def __repr__(self) -> str:
        return f"Database({len(self.images)} images, canary {self.which})"


def pair(
    images: Array,
    labels: Array,
    canaries: tuple[Array, Array] | None = None,
    canary_labels: tuple[int, int] = (AIRPLANE, AIRPLANE),
    spread: Array = SPREAD,
) -> tuple[Database, Database]:
    """Two training sets that differ at index 0: by default a black and a white "airplane"."""
    if canaries is None:
        canaries = np.zeros_like(images[0]), np.full_like(images[0], 255)
    probes, tags = normalized(np.stack(canaries), spread), np.asarray(canary_labels, dtype=np.int64)
    made = []
    for which in (0, 1):
        x, y = normalized(images, spread), labels.astype(np.int64).copy()
        x[0], y[0] = probes[which], tags[which]
        made.append(Database(x, y, probes, tags, which))
    return made[0], made[1]


def log_softmax(logits: Array) -> Array:
    """log p of each class, over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def scores(logits: Array, labels: tuple[int, int] = (AIRPLANE, AIRPLANE)) -> dict[str, Array]:
    """One number a model from its logits (…, 2 canaries, classes): the paper's three.

    Each is taken on either canary with its own label, and the difference is the score: what all
    models share cancels. KL is the divergence of the model's distribution from the label's, smoothed
    by a tenth (label smoothing): from a label without it, it would be the cross-entropy.
    """
    logp = log_softmax(logits.astype(float))
    found: dict[str, list[Array]] = {"logit": [], "CE": [], "KL": []}
    for canary, label in enumerate(labels):
        target = np.full(logits.shape[-1], 0.1 / logits.shape[-1])
        target[label] += 0.9
        found["logit"].append(logits[..., canary, label].astype(float))
        found["CE"].append(-logp[..., canary, label])
        found["KL"].append((target * (np.log(target) - logp[..., canary, :])).sum(axis=-1))
    return {name: first - second for name, (first, second) in found.items()}


def first_scores(logits: Array, label: int = AIRPLANE) -> dict[str, Array]:
    """One number a model from its logits on the first database's canary alone: the authors' three.

    KL is the divergence of the model's distribution from the label's, which is the cross-entropy.
    """
    loss = -log_softmax(logits[..., 0, :].astype(float))[..., label]
    return {"logit": logits[..., 0, label].astype(float), "CE": loss, "KL": loss}


def vector(logits: Array) -> Array:
    """All logits of a model on both canaries, as one row a model."""
    return logits.reshape(len(logits), -1).astype(float)
