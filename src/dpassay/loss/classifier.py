"""The loss as the log-odds of a classifier between draws of the two sides.

With classes weighted to equal size the Bayes classifier's log-odds *are* log p/q, so any probabilistic
classifier estimates the loss, in any dimension; and since log p/q is a sufficient score, everything
after it is one-dimensional. Nothing is retrained for another ε or threshold. A tenth of the draws is held
back to put the scores on the scale of log-odds (Platt): a margin becomes a loss, and a network that
stopped early does not promise too little.

Any kind of output becomes a row of numbers (`Features`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

from dpassay import checks
from dpassay._typing import FloatArray
from dpassay.errors import InvalidInput, MissingExtra
from dpassay.events import Event, Layout, Part, Score, Test
from dpassay.sampling.layout import describe, learn
from dpassay.sampling.outputs import Outputs

PRESETS = ("logistic", "boosting", "mlp", "torch")
#: Atoms of a coordinate that get an indicator of their own.
_ATOMS = 10
#: At most so many draws per side calibrate.
_BACK = 20_000
#: Training draws per side beyond which a preset learns nothing new that its score could use.
_ENOUGH = {"logistic": 200_000, "boosting": 200_000, "mlp": 200_000, "torch": 1_000_000}


@dataclass(frozen=True, eq=False)
class Features:
    """Outputs as rows of numbers.

    Standardised coordinates first, 0 where an output has none; then an indicator for each kind of
    output beyond the first, and one for each atom of an otherwise continuous coordinate.
    """

    parts: tuple[Part, ...]
    width: int
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def learn(cls, p: Outputs, q: Outputs) -> Features:
        """Find kinds and atoms, and the centre and spread of every coordinate."""
        layout, first, second = learn(p, q)
        width = p.numbers.shape[1]
        plain = cls(layout.parts, width, np.zeros(width), np.ones(width))
        both = np.concatenate([plain.rows(side.outputs)[:, :width] for side in (first, second)])
        scale = both.std(axis=0)
        return cls(layout.parts, width, both.mean(axis=0), np.where(scale > 0, scale, 1.0))

    def rows(self, outputs: Outputs) -> FloatArray:
        """One row of features an output."""
        known = {part.template: index for index, part in enumerate(self.parts)}
        kinds = np.array([known.get(s.template, -1) for s in outputs.structures])
        kind = kinds[0] if outputs.codes is None else kinds[outputs.codes]
        kind = np.broadcast_to(kind, len(outputs))
        numbers = np.zeros((len(outputs), self.width))
        extra = [(kind == index).astype(float) for index in range(1, len(self.parts))]
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(kind == index) if len(self.parts) > 1 else slice(None)
            for column, atoms, free in zip(part.columns, part.atoms, part.open, strict=True):
                if column >= outputs.numbers.shape[1]:
                    continue
                values = np.asarray(outputs.numbers[rows, column], dtype=float)
                numbers[rows, column] = (values - self.centre[column]) / self.scale[column]
                for atom in atoms[:_ATOMS] if free else ():
                    indicator = np.zeros(len(outputs))
                    indicator[rows] = values == atom
                    extra.append(indicator)
        return np.column_stack([numbers, *extra]) if extra else numbers


@dataclass(frozen=True, eq=False)
class ClassifierLoss:
    """log-odds of a fitted classifier, with the class sizes taken out."""

    name: str
    features: Features
    model: Any
    line: tuple[float, float]  # the loss is line[0] + line[1] · score
    squares: bool

    @classmethod
    def fit(
        cls, classifier: Any, p: Outputs, q: Outputs, *, rng: np.random.Generator
    ) -> ClassifierLoss:
        """Fit a preset by name, or any scikit-learn classifier."""
        name, model, squares = _resolve(classifier, rng)
        most = _ENOUGH.get(name, len(p) + len(q))
        p, q = p[:most], q[:most]
        features = Features.learn(p, q)
        sides = [_expand(features, side, squares) for side in (p, q)]
        back = [0 if name == "logistic" else min(len(side) // 10, _BACK) for side in sides]
        rows = np.concatenate([side[k:] for side, k in zip(sides, back, strict=True)])
        labels = np.repeat([1, 0], [len(side) - k for side, k in zip(sides, back, strict=True)])
        with free_cores(), warnings.catch_warnings():
            # a network that was stopped has not converged, and need not have
            warnings.filterwarnings("ignore", message=".*(?i:converge|iterations)")
            model.fit(rows, labels)
            line = (-float(np.log((len(p) - back[0]) / (len(q) - back[1]))), 1.0)
            if min(back) >= 10:
                held = [_log_odds(model, side[:k]) for side, k in zip(sides, back, strict=True)]
                line = platt(*held)
        return cls(name, features, model, line, squares)

    def score(self, outputs: Outputs) -> FloatArray:
        """log p̂/q̂ of each output."""
        if len(outputs) == 0:
            return np.zeros(0)
        rows = _expand(self.features, outputs, self.squares)
        with free_cores():
            return np.clip(self.line[0] + self.line[1] * _log_odds(self.model, rows), -30.0, 30.0)

    def event(self, cut: float, above: bool) -> Event | None:
        """{loss ≥ cut}, or {loss ≤ cut}, as a polynomial: for logistic regression of plain numbers."""
        parts = self.features.parts
        indicators = len(parts) > 1 or any(
            free and atoms.size for free, atoms in zip(parts[0].open, parts[0].atoms, strict=True)
        )
        if self.name != "logistic" or indicators:
            return None
        weights = np.asarray(self.model.coef_[0], dtype=float)
        width, sign = self.features.width, 1.0 if above else -1.0
        one, two = weights[:width] / self.features.scale, weights[width:] / self.features.scale**2
        centre = self.features.centre
        offset = float(self.model.intercept_[0]) + self.line[0] - cut
        offset += float(-one @ centre + two @ centre**2)
        test = Score(sign * offset, sign * (one - 2 * two * centre), sign * two)
        none = (np.zeros(0),) * width  # every coordinate as a number, atoms or not
        part = Part(parts[0].template, parts[0].columns, none, (True,) * width)
        layout = Layout((part,), np.array([0]), np.array([0]))
        partial: list[tuple[int, Test]] = [(0, test)]
        return Event(
            words=describe(layout, [], partial, False), layout=layout, partial=tuple(partial)
        )


def platt(p: FloatArray, q: FloatArray) -> tuple[float, float]:
    """(a, b) with a + b·score the likeliest log-odds of p against q, either side weighing the same."""
    centre, spread = float(np.mean([p.mean(), q.mean()])), float(np.concatenate([p, q]).std())
    if spread == 0:
        return 0.0, 0.0
    terms = np.column_stack([np.ones(p.size + q.size), (np.concatenate([p, q]) - centre) / spread])
    weight = np.repeat([0.5 / p.size, 0.5 / q.size], [p.size, q.size])
    hits = np.repeat([1.0, 0.0], [p.size, q.size])
    beta, ridge = np.zeros(2), 1.0 / min(p.size, q.size)
    for _ in range(30):
        share = expit(terms @ beta)
        gradient = terms.T @ (weight * (hits - share)) - ridge * beta
        curvature = (terms * (weight * share * (1 - share))[:, None]).T @ terms
        step = np.linalg.solve(curvature + ridge * np.eye(2), gradient)
        beta += step * min(1.0, 5.0 / max(float(np.abs(terms @ step).max()), 1e-300))
    return float(beta[0] - beta[1] * centre / spread), float(beta[1] / spread)


def _log_odds(model: Any, rows: FloatArray) -> FloatArray:
    if hasattr(model, "predict_log_proba") and type(model).__name__ == "MLPClassifier":
        logs = model.predict_log_proba(rows)
        return np.asarray(logs[:, 1] - logs[:, 0])
    if hasattr(model, "decision_function") and not hasattr(model, "predict_proba"):
        return np.asarray(model.decision_function(rows), dtype=float)
    if hasattr(model, "decision_function") and type(model).__name__ in (
        "LogisticRegression",
        "HistGradientBoostingClassifier",
        "TorchClassifier",
    ):
        return np.asarray(model.decision_function(rows), dtype=float)  # log-odds by definition
    chance = np.clip(model.predict_proba(rows)[:, 1], 1e-12, 1 - 1e-12)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def _expand(features: Features, outputs: Outputs, squares: bool) -> FloatArray:
    rows = features.rows(outputs)
    return np.hstack([rows, rows[:, : features.width] ** 2]) if squares else rows


def _resolve(classifier: Any, rng: np.random.Generator) -> tuple[str, Any, bool]:
    """(name, unfitted model, whether squares are added to the features)."""
    seed = int(rng.integers(2**31))
    match classifier:
        case "logistic":
            from sklearn.linear_model import LogisticRegression

            return "logistic", LogisticRegression(solver="newton-cholesky"), True
        case "boosting":
            from sklearn.ensemble import HistGradientBoostingClassifier

            model = HistGradientBoostingClassifier(
                max_iter=200, early_stopping=True, min_samples_leaf=50, random_state=seed
            )
            return "boosting", model, False
        case "mlp":
            from sklearn.neural_network import MLPClassifier

            model = MLPClassifier(
                (64, 64),
                early_stopping=True,
                n_iter_no_change=20,  # it watches the accuracy, which is noisy
                max_iter=80,
                batch_size=512,
                random_state=seed,
            )
            return "mlp", model, False
        case "torch":
            return "torch", _torch(seed), False
        case str():
            checks.one_of("classifier", classifier, PRESETS)
    if not hasattr(classifier, "fit") or not (
        hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function")
    ):
        raise InvalidInput(
            f"a classifier must be one of {', '.join(map(repr, PRESETS))} or have fit and "
            f"predict_proba (or decision_function), got {checks.shown(classifier)}"
        )
    from sklearn.base import clone

    try:
        model = clone(classifier)
    except TypeError:
        model = classifier
    return type(classifier).__name__, model, False


def _torch(seed: int) -> Any:
    from dpassay.loss.network import TorchClassifier

    try:
        return TorchClassifier(seed=seed)
    except ImportError:
        raise MissingExtra('the "torch" classifier', "torch") from None


@contextmanager
def free_cores() -> Iterator[None]:
    """Hold OpenMP to the cores that are free: on busy ones it spins a hundred times longer."""
    cores = os.cpu_count() or 1
    try:
        busy = os.getloadavg()[0]
    except OSError:
        busy = 0.0
    free = max(1, int(cores - busy + 0.5))
    with _threads().limit(limits=free, user_api="openmp"):
        yield


@cache
def _threads() -> Any:
    """Made once, after scikit-learn: looking for the loaded libraries takes longer than a small fit."""
    import sklearn.ensemble  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
