"""Fit a score by its name, or any scikit-learn classifier."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.loss.classifier import PRESETS, ClassifierLoss
from dpassay.loss.grid import GridLoss
from dpassay.loss.keyed_losses import DyadicLoss, KnnLoss
from dpassay.loss.parity import fit_parity
from dpassay.loss.ranking_losses import fit_features, fit_logistic, fit_tables
from dpassay.loss.training import Training
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event

NAMES = (
    "kde",
    "polynomial",
    "dyadic",
    "ranks",
    "categories",
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


class Loss(Protocol):
    """An estimate of log p/q."""

    @property
    def name(self) -> str:
        """What was fitted, for people."""

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output."""

    def event(self, cut: float, above: bool) -> Event:
        """{loss ≥ cut} or {loss ≤ cut}."""


def fit(loss: Any, training: Training, *, rng: np.random.Generator) -> Loss:
    """Fit the loss asked for to draws that may be looked at."""
    if not isinstance(loss, str):
        return ClassifierLoss.fit(loss, training, rng=rng)
    match loss:
        case "kde" | "polynomial":
            return GridLoss.named(loss, training.tally)
        case "dyadic" | "categories" | "ranks":
            return DyadicLoss.fit(training, loss)
        case "knn":
            return KnnLoss.fit(training)
        case "discriminant" | "linear" | "logistic" | "products":
            return fit_logistic(loss, training)
        case "parity":
            return fit_parity(training)
        case "feature" | "features":
            return fit_features(loss, training)
        case "lowest bit" | "bits" | "characters":
            return fit_tables(loss, training)
        case str():
            checks.one_of("loss", loss, ("auto", "values", *NAMES))
    return ClassifierLoss.fit(loss, training, rng=rng)
