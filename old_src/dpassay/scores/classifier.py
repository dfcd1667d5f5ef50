"""The loss as the log-odds of a classifier between draws of the two sides.

With classes weighted to equal size the Bayes classifier's log-odds *are* log p/q, so any probabilistic
classifier estimates the loss, in any dimension; and since log p/q is a sufficient score, everything
after it is one-dimensional. Nothing is retrained for another ε or threshold. A tenth of the draws is held
back to put the scores on the scale of log-odds (Platt): a margin becomes a loss, and a network that
stopped early is not undervalued.

Any kind of output becomes a row of numbers (`outputs.score_models.Features`).

Classifiers of one's own have `fit` and `predict_proba` or `decision_function`; density estimators
`fit` and `score_samples`; "torch" is a small network in PyTorch (an extra), on a GPU if there is one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray, IntArray
from dpassay.errors import InvalidInput, MissingExtra
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.events import Event, of_scores
from dpassay.outputs.score_models import LARGEST, Features, ScoreFunction, Trees
from dpassay.scores.kernel_density import KernelDensity
from dpassay.scores.serializable import platt
from dpassay.scores.training import Training

PRESETS = ("additive", "boosting", "mlp", "torch")
#: Those that are boosted trees.
_TREES = ("additive", "boosting")
#: At most so many draws per side calibrate.
_BACK = 20_000
#: A user's classifier gets indicators of values with this share of the draws: rarer ones may repeat by
#: chance, and their indicators are next to constant.
_SEEN = 0.01
#: Scores are rounded to multiples of this: their last digits depend on the block that a row is scored in.
_STEP = 2.0**-12
#: Rows that are fitted or scored on one core.
_ON_ONE_CORE = 50_000
#: Training draws per side beyond which a preset learns nothing new that its score could use.
_ENOUGH = {"additive": 20_000, "boosting": 200_000, "mlp": 200_000, "torch": 1_000_000}


@dataclass(frozen=True, eq=False)
class ClassifierScore:
    """log-odds of a fitted classifier, with the class sizes taken out."""

    name: str
    features: Features
    model: Any
    line: tuple[float, float]  # the loss is line[0] + line[1] · score
    columns: Any = ...  # those of the features that the model is given

    @classmethod
    def fit(
        cls, classifier: Any, training: Training, *, rng: np.random.Generator
    ) -> ClassifierScore:
        """Fit a preset by name, or any scikit-learn classifier or density estimator."""
        name, model = _resolve(classifier, rng, min(training.sizes))
        training = training.most(_ENOUGH.get(name, max(training.sizes)))
        own = not isinstance(classifier, str)
        features = Features.learn(training.p, training.q, _SEEN if own else 0.0)
        sides = [features.rows(side.outputs) for side in (training.p, training.q)]
        columns: Any = ...
        if own:  # it may invert a covariance matrix
            varied = np.any([np.ptp(side, axis=0) > 0 for side in sides], axis=0)
            varied |= sides[0][0] != sides[1][0]
            columns = np.flatnonzero(varied) if varied.any() else columns
            sides = [side[:, columns] for side in sides]
        back = [min(len(side) // 10, _BACK) for side in sides]
        rows = np.concatenate([side[k:] for side, k in zip(sides, back, strict=True)])
        labels = np.repeat([1, 0], [len(side) - k for side, k in zip(sides, back, strict=True)])
        order = rng.permutation(len(rows))  # some classifiers break ties by the order of the rows
        with free_cores(len(rows)), warnings.catch_warnings():
            # a network that was stopped has not converged, and need not have
            warnings.filterwarnings("ignore", message=".*(?i:converge|iterations)")
            try:
                model.fit(rows[order], labels[order])
            except Exception as error:
                if not own:
                    raise
                raise InvalidInput(
                    f"{name}.fit raised {type(error).__name__} on {len(rows)} rows of "
                    f"{rows.shape[1]} numbers with labels 0 and 1: {error}"
                ) from error
            classes = list(getattr(model, "classes_", (0, 1)))
            if classes != [0, 1]:
                raise InvalidInput(
                    f"{name} must learn the labels 0 and 1, but has classes_ {checks.shown(classes)}"
                )
            odds = (len(sides[0]) - back[0]) / (len(sides[1]) - back[1])
            line = (-float(np.log(odds)), 1.0)
            if min(back) >= 10:
                held = [_log_odds(model, side[:k]) for side, k in zip(sides, back, strict=True)]
                line = platt(*held)
        return cls(name, features, model, line, columns)

    def score(self, outputs: Outputs) -> FloatArray:
        if len(outputs) == 0:
            return np.zeros(0)
        rows = self.features.rows(outputs)[:, self.columns]
        with free_cores(len(rows)):
            scores = self.line[0] + self.line[1] * _log_odds(self.model, rows)
        if self.name not in _TREES:  # these add up the same way for every row
            scores = np.round(scores / _STEP) * _STEP
        return np.clip(scores, -LARGEST, LARGEST)

    def event(self, threshold: float, above: bool) -> Event:
        return of_scores(self, threshold, above)

    @property
    def score_function(self) -> ScoreFunction | None:
        """Boosted trees as data; None for a model that cannot be written down."""
        if self.name not in _TREES:
            return None
        return ScoreFunction(self.name, self.features, _trees(self.model), self.line)


def _trees(model: Any) -> Trees:
    """The trees of a fitted HistGradientBoostingClassifier as arrays."""
    roots, nodes, total = [], [], 0
    for (tree,) in model._predictors:
        roots.append(total)
        own = tree.nodes
        leaf = own["is_leaf"].astype(bool)
        shift = np.where(leaf, -1, total)
        nodes.append(
            (
                own["feature_idx"].astype(np.int64),
                own["num_threshold"].astype(float),
                np.where(leaf, -1, own["left"].astype(np.int64) + shift),
                np.where(leaf, -1, own["right"].astype(np.int64) + shift),
                np.where(leaf, own["value"], 0.0),
            )
        )
        total += own.size
    joined = [np.concatenate(column) for column in zip(*nodes, strict=True)]
    baseline = float(np.ravel(model._baseline_prediction)[0])
    return Trees(baseline, np.array(roots), *joined)


def _log_odds(model: Any, rows: FloatArray) -> FloatArray:
    name = type(model).__name__
    if name == "MLPClassifier":
        logs = model.predict_log_proba(rows)
        return np.asarray(logs[:, 1] - logs[:, 0])
    # of these two it has the log-odds; of what has no probabilities, something of that order
    if name in ("LogisticRegression", "HistGradientBoostingClassifier") or not hasattr(
        model, "predict_proba"
    ):
        return np.asarray(model.decision_function(rows), dtype=float)
    chance = np.asarray(model.predict_proba(rows), dtype=float)
    if chance.shape != (len(rows), 2):
        raise InvalidInput(
            f"predict_proba of {name} must return a column for each of the two labels, got the shape "
            f"{chance.shape} for {len(rows)} rows"
        )
    chance = np.clip(chance[:, 1], 1e-12, 1 - 1e-12)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def check_classifier(given: Any) -> None:
    """Refuse objects that are neither classifiers nor density estimators."""
    if isinstance(given, type):
        name = given.__name__
        raise InvalidInput(f"{name} is a class: give an instance of it, such as {name}()")
    scores = ("predict_proba", "decision_function", "score_samples")
    if not any(checks.has(given, "fit", score) for score in scores):
        remedy = "a function of one output goes into features=[…]"
        if isinstance(given, KernelDensity):
            remedy = (
                "dp.KernelDensity goes into bandwidth= of dp.pure, dp.tradeoff and dp.renyi.Softmax"
            )
        raise InvalidInput(
            "loss takes the name of a score, such as 'kde', 'knn' or 'logistic', or a classifier; "
            f"a classifier must be one of {', '.join(map(repr, PRESETS))} or have fit and predict_proba "
            f"(or decision_function; score_samples, if it estimates a density), got "
            f"{checks.shown(given)}; {remedy}"
        )


def _resolve(classifier: Any, rng: np.random.Generator, draws: int) -> tuple[str, Any]:
    """(name, unfitted model)."""
    seed = int(rng.integers(2**31))
    match classifier if isinstance(classifier, str) else None:
        case "additive":  # a split a tree: steps of each coordinate, which add up
            from sklearn.ensemble import HistGradientBoostingClassifier

            model = HistGradientBoostingClassifier(
                max_iter=40,
                max_leaf_nodes=2,
                learning_rate=0.2,
                early_stopping=False,
                min_samples_leaf=max(5, min(50, draws // 40)),
                random_state=seed,
            )
            return "additive", model
        case "boosting":
            from sklearn.ensemble import HistGradientBoostingClassifier

            model = HistGradientBoostingClassifier(
                max_iter=200,
                max_leaf_nodes=12,  # 31 predict worse up to 10⁴ draws a side, and no better beyond
                learning_rate=0.15,
                early_stopping=True,
                n_iter_no_change=6,
                min_samples_leaf=max(5, min(50, draws // 40)),
                random_state=seed,
            )
            return "boosting", model
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
            return "mlp", model
        case "torch":
            try:
                return "torch", TorchClassifier(seed)
            except ImportError:
                raise MissingExtra('the "torch" classifier', "torch") from None
    check_classifier(classifier)
    name = type(classifier).__name__
    if checks.has(classifier, "score_samples"):
        return name, DensityRatio(classifier)
    from sklearn.base import clone

    try:
        return name, clone(classifier)
    except TypeError:
        return name, deepcopy(classifier)


@contextmanager
def free_cores(rows: int) -> Iterator[None]:
    """Hold OpenMP to the cores that are free: on busy ones it spins a hundred times longer.

    A few rows take one core: others would mostly wait for each other.
    """
    cores = os.cpu_count() or 1 if rows > _ON_ONE_CORE else 1
    try:
        busy = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows has none
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


# --- a small neural network between the two sides, in PyTorch (an extra); on a GPU if there is


class TorchClassifier:
    """Two hidden layers, Adam, and the epoch that did best on a tenth held out."""

    hidden, epochs, batch, rate, patience = 128, 40, 4096, 3e-3, 5

    def __init__(self, seed: int) -> None:
        import torch

        self.seed = seed
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def fit(self, rows: FloatArray, labels: IntArray) -> TorchClassifier:
        import torch
        from torch import nn

        torch.manual_seed(self.seed)
        order = np.random.default_rng(self.seed).permutation(len(rows))
        x = torch.as_tensor(rows[order], dtype=torch.float32, device=self.device)
        y = torch.as_tensor(labels[order], dtype=torch.float32, device=self.device)
        held = max(1, len(x) // 10)
        width = self.hidden
        self.network = nn.Sequential(
            nn.Linear(x.shape[1], width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        ).to(self.device)
        optimiser = torch.optim.Adam(self.network.parameters(), lr=self.rate)
        steps = self.epochs * max(1, (len(x) - held) // self.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        criterion = nn.BCEWithLogitsLoss()
        best, kept, stale = np.inf, self._state(), 0
        for _ in range(self.epochs):
            self.network.train()
            shuffled = held + torch.randperm(len(x) - held, device=self.device)
            for start in range(0, len(shuffled), self.batch):
                index = shuffled[start : start + self.batch]
                optimiser.zero_grad()
                criterion(self.network(x[index])[:, 0], y[index]).backward()
                optimiser.step()
                if schedule.last_epoch < steps:
                    schedule.step()
            self.network.eval()
            with torch.no_grad():
                value = float(criterion(self.network(x[:held])[:, 0], y[:held]))
            if value < best - 1e-6:
                best, kept, stale = value, self._state(), 0
            else:
                stale += 1
                if stale > self.patience:
                    break
        self.network.load_state_dict(kept)
        return self

    def _state(self) -> dict[str, Any]:
        return {k: v.detach().clone() for k, v in self.network.state_dict().items()}

    def decision_function(self, rows: FloatArray) -> FloatArray:
        import torch

        self.network.eval()
        out = []
        with torch.no_grad():
            for start in range(0, len(rows), 1 << 18):
                part = torch.as_tensor(
                    rows[start : start + (1 << 18)], dtype=torch.float32, device=self.device
                )
                out.append(self.network(part)[:, 0].cpu().numpy())
        return np.concatenate(out).astype(float)


class DensityRatio:
    """log p̂ − log q̂; `fit(rows)` and `score_samples(rows)`, log-densities, are what it needs."""

    def __init__(self, density: Any) -> None:
        self.sides = deepcopy(density), deepcopy(density)

    def fit(self, rows: FloatArray, labels: IntArray) -> DensityRatio:
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
