"""One door to all loss estimators: a name, or any scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.loss.classifier import PRESETS, ClassifierLoss
from dpassay.loss.grid import GridLoss, Plan
from dpassay.loss.knn import KnnLoss
from dpassay.sampling.layout import learn
from dpassay.sampling.outputs import Outputs

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


def fit(loss: Any, p: Outputs, q: Outputs, *, rng: np.random.Generator) -> Loss:
    """Fit the loss asked for to draws that may be looked at."""
    match loss:
        case "kde":
            return GridLoss.of(Plan.learn(p, q))
        case "polynomial":
            return GridLoss.polynomial(Plan.learn(p, q))
        case "knn":
            return KnnLoss.fit(p, q)
        case str():
            checks.one_of("loss", loss, NAMES)
    return ClassifierLoss.fit(loss, p, q, rng=rng)
