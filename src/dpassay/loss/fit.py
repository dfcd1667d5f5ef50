"""One door to all loss estimators: a name, or any scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.loss.classifier import PRESETS, ClassifierLoss
from dpassay.loss.grid import GridLoss, Plan
from dpassay.loss.knn import KnnLoss
from dpassay.sampling.layout import learn
from dpassay.sampling.outputs import Outputs
from dpassay.sampling.samples import Samples

Streams: TypeAlias = Callable[[int], np.random.Generator]

NAMES = ("kde", "polynomial", "knn", *PRESETS)


#: Boosting has more to learn than fewer draws per side than this teach.
_MANY = 2000


class Loss(Protocol):
    """An estimate of log p/q."""

    @property
    def name(self) -> str:
        """What was fitted, for people."""

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output."""


def candidates(p: Outputs, q: Outputs) -> list[str]:
    """The losses worth trying on outputs like these, the stiffest first."""
    layout, _, _ = learn(p, q)
    free = max((len(layout.free(key)) for key in range(len(layout))), default=0)
    width = max(p.numbers.shape[1], q.numbers.shape[1])
    draws = min(len(p), len(q))
    scattered = (
        not free and width > 1 and len(layout) > draws / 100
    )  # frequencies have few draws each
    names = ["logistic"] if width <= 100 and (free > 2 or scattered) else []
    if free <= 2:
        names += ["polynomial", "kde"] if free else ["kde"]
    if (free > 2 or scattered) and (draws >= _MANY or not names):
        names.append("boosting")
    return names


def tried(loss: Any, p: Outputs, q: Outputs) -> list[Any]:
    """The losses a caller's choice stands for."""
    return candidates(p, q) if isinstance(loss, str) and loss == "auto" else [loss]


def crossed(loss: Any, a: Samples, b: Samples, *, rng: Streams) -> tuple[FloatArray, FloatArray]:
    """Scores of each part by what the other part taught, for both sides."""
    there, back = fit(loss, a.p, a.q, rng=rng(0)), fit(loss, b.p, b.q, rng=rng(1))
    return (
        np.concatenate([there.score(b.p), back.score(a.p)]),
        np.concatenate([there.score(b.q), back.score(a.q)]),
    )


def likeliest(losses: list[Any], learn: Samples, held: Samples, *, rng: Streams) -> Any:
    """The loss that predicts best which side held-back draws are from."""
    if len(losses) == 1:
        return losses[0]
    surprises = []
    for index, loss in enumerate(losses):
        found = fit(loss, learn.p, learn.q, rng=rng(index))
        scores = -found.score(held.p), found.score(held.q)
        surprises.append(sum(float(np.logaddexp(0, score).mean()) for score in scores))
    return losses[int(np.argmin(surprises))]


def fit(loss: Any, p: Outputs, q: Outputs, *, rng: np.random.Generator) -> Loss:
    """Fit the loss asked for to draws that may be looked at."""
    match loss:
        case "kde" | "polynomial":
            return GridLoss.named(loss, Plan.learn(p, q))
        case "knn":
            return KnnLoss.fit(p, q)
        case str():
            checks.one_of("loss", loss, NAMES)
    return ClassifierLoss.fit(loss, p, q, rng=rng)
