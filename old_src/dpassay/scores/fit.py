"""Fit a score by its name, or any scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event
from dpassay.scores.cells_and_neighbours import DyadicScore, KnnScore
from dpassay.scores.classifier import PRESETS, ClassifierScore
from dpassay.scores.grid import GridScore
from dpassay.scores.parity import fit_parity
from dpassay.scores.serializable import fit_features, fit_logistic, fit_tables
from dpassay.scores.training import Training

NAMES = (
    "kde",
    "polynomial",
    "dyadic",
    "ranks",
    "categories",
    "structure",
    "knn",
    "discriminant",
    "linear",
    "logistic",
    "products",
    "parity",
    "bits",
    "characters",
    "feature",
    "features",
    *PRESETS,
)


class Score(Protocol):
    """An estimate of log p/q."""

    @property
    def name(self) -> str:
        """What was fitted, for people."""

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output."""

    def event(self, threshold: float, above: bool) -> Event:
        """{loss ≥ threshold} or {loss ≤ threshold}."""


def fit(loss: Any, training: Training, *, rng: np.random.Generator) -> Score:
    """Fit the loss asked for to draws that may be looked at."""
    if not isinstance(loss, str):
        return ClassifierScore.fit(loss, training, rng=rng)
    match loss:
        case "kde" | "polynomial":
            return GridScore.named(loss, training.cell_counts)
        case "dyadic" | "categories" | "ranks":
            return DyadicScore.fit(training, loss)
        case "structure":
            return DyadicScore.fit(training.of_structures(), loss)
        case "knn":
            return KnnScore.fit(training)
        case "discriminant" | "linear" | "logistic" | "products":
            return fit_logistic(loss, training)
        case "parity":
            return fit_parity(training)
        case "feature" | "features":
            return fit_features(loss, training)
        case "lowest bit" | "bits" | "characters":
            return fit_tables(loss, training)
        case str():
            checks.one_of("loss", loss, NAMES)
    return ClassifierScore.fit(loss, training, rng=rng)
