"""One door to all loss estimators: a name, or something that fits itself."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput
from dpassay.loss.grid import GridLoss, Plan
from dpassay.loss.knn import KnnLoss
from dpassay.sampling.outputs import Outputs

NAMES = ("kde", "knn")


class Loss(Protocol):
    """An estimate of log p/q."""

    @property
    def name(self) -> str:
        """What was fitted, for people."""

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output."""


def fit(loss: Any, p: Outputs, q: Outputs, *, rng: np.random.Generator) -> Loss:
    """Fit the loss asked for to draws that may be looked at."""
    match loss:
        case "kde":
            return GridLoss.of(Plan.learn(p, q))
        case "knn":
            return KnnLoss.fit(p, q)
        case str():
            checks.one_of("loss", loss, NAMES)
    raise InvalidInput(
        f"loss must be one of {', '.join(map(repr, NAMES))}, got {checks.shown(loss)}"
    )
