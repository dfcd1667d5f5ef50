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
    """log p̂ − log q̂ of a density estimator that is fitted to either side.

    The estimator is any object with `fit(rows)` and `score_samples(rows)`, the logarithms of the density.
    """

    def __init__(self, density: Any) -> None:
        self.density = density

    def fit(self, rows: FloatArray, labels: IntArray) -> DensityRatio:
        """Fit a copy to the rows of either label, 0 and 1."""
        self.null, self.other = (deepcopy(self.density) for _ in range(2))
        for label, model in enumerate((self.null, self.other)):
            model.fit(rows[labels == label])
        return self

    def decision_function(self, rows: FloatArray) -> FloatArray:
        """The log-ratio; 0 where both densities are 0."""
        log_p, log_q = (np.asarray(m.score_samples(rows), float) for m in (self.other, self.null))
        with np.errstate(invalid="ignore"):
            ratio = log_p - log_q
        return np.asarray(np.nan_to_num(ratio, nan=0.0, posinf=LARGEST, neginf=-LARGEST))
