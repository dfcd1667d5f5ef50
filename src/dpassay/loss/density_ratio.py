"""A density estimator on either side as a classifier between them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.outputs.score_models import LARGEST


def as_classifier(loss: Any) -> Any:
    """What has `fit` and `score_samples` becomes a `DensityRatio`; all else is returned as it is."""
    return DensityRatio(loss) if checks.has(loss, "fit", "score_samples") else loss


class DensityRatio:
    """log p̂ − log q̂; `fit(rows)` and `score_samples(rows)`, log-densities, are what it needs."""

    def __init__(self, density: Any) -> None:
        self.sides = deepcopy(density), deepcopy(density)

    def fit(self, rows: FloatArray, labels: IntArray) -> DensityRatio:
        """Fit one to the rows of either label, 0 and 1."""
        for label, side in enumerate(self.sides):
            side.fit(rows[labels == label])
        return self

    def decision_function(self, rows: FloatArray) -> FloatArray:
        """The log-ratio; 0 where both densities are 0."""
        log_q, log_p = (np.asarray(side.score_samples(rows), float) for side in self.sides)
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.nan_to_num(log_p - log_q, nan=0.0, posinf=LARGEST, neginf=-LARGEST)
            )
