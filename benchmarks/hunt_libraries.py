"""Released libraries under a hunt that is told the space and the claim, and nothing else.

Each needs its library, in an environment of its own: `python -m benchmarks.hunt_libraries NAME`, and
without a name what there is.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dpassay as dp
from dpassay.blackbox.inputs import Category, Integer, Real, Reals, Strings, Table
from libraries.spaces import columns


@dataclass(frozen=True)
class Release:
    """A release of a library: what makes it, what inputs look like, what is claimed."""

    make: Callable[[], tuple[Any, str]]  # the mechanism, and its claim
    space: Any
    relation: str
    options: dict[str, Any] = field(default_factory=dict)


def opendp_threshold() -> tuple[Any, str]:
    """Counts by keys that nobody listed; the library says what it costs to add or remove a row."""
    odp = importlib.import_module("opendp.prelude")
    odp.enable_features("contrib")
    rows = odp.vector_domain(odp.atom_domain(T=str)), odp.symmetric_distance()
    release = rows >> odp.t.then_count_by() >> odp.m.then_laplace_threshold(scale=1.0, threshold=5)
    epsilon, delta = release.map(1)
    return dp.from_function(lambda data: release(data)), f"eps={epsilon!r}, delta={delta!r}"


def diffprivlib_nanmean() -> tuple[Any, str]:
    """The mean of numbers from 0 to 1 that leaves out what is missing."""
    tools = importlib.import_module("diffprivlib.tools")
    return dp.from_function(lambda data: tools.nanmean(data, epsilon=1.0, bounds=(0, 1))), "eps=1"


def diffprivlib_geometric() -> tuple[Any, str]:
    """Geometric noise on an integer."""
    mechanisms = importlib.import_module("diffprivlib.mechanisms")
    return dp.from_function(mechanisms.Geometric(epsilon=1.0, sensitivity=1).randomise), "eps=1"


def diffprivlib_mean() -> tuple[Any, str]:
    """The mean of numbers from 0 to 1."""
    tools = importlib.import_module("diffprivlib.tools")
    return dp.from_function(lambda data: tools.mean(data, epsilon=1.0, bounds=(0, 1))), "eps=1"


def diffprivlib_histogram() -> tuple[Any, str]:
    """Counts in five bins, where a record may be replaced."""
    tools = importlib.import_module("diffprivlib.tools")

    def run(data: Any) -> Any:
        return tools.histogram(data, epsilon=1.0, bins=5, range=(0, 1))[0]

    return dp.from_function(run), "eps=1"


def fitted(name: str, read: Callable[[Any], Any], **options: Any) -> Callable[[], tuple[Any, str]]:
    """A model of diffprivlib, fitted to rows of a number and a class."""

    def make() -> tuple[Any, str]:
        model = getattr(importlib.import_module("diffprivlib.models"), name)

        def run(data: Any) -> Any:
            x = np.array([[row["x"]] for row in data])
            y = np.array([row["y"] for row in data])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return read(model(epsilon=1.0, **options).fit(x, y))

        return dp.from_function(run), "eps=1"

    return make


def forest(trees: int) -> Callable[[], tuple[Any, str]]:
    """A random forest of diffprivlib, by what it predicts at one place."""
    return fitted(
        "RandomForestClassifier",
        lambda m: m.predict_proba([[0.5]]).ravel().tolist(),
        n_estimators=trees,
        bounds=(0, 1),
    )


def synthetic(library: str, claim: str, **options: Any) -> Callable[[], tuple[Any, str]]:
    """A table of 20 rows, made by a library as in the gallery; all categories are given."""

    def make() -> tuple[Any, str]:
        module = importlib.import_module(f"libraries.{library}")
        return dp.from_function(module.table(domain=module.DOMAIN, **options)), claim

    return make


def pydp_count() -> tuple[Any, str]:
    """The number of rows, with the library's default settings."""
    algorithms = importlib.import_module("pydp.algorithms.laplacian")

    def run(data: Any) -> Any:
        return algorithms.Count(epsilon=1.0, dtype="int").quick_result(list(data))

    return dp.from_function(run), "eps=1"


def pydp_gaussian() -> tuple[Any, str]:
    """Gaussian noise on a number."""
    numerical = importlib.import_module("pydp.algorithms.numerical_mechanisms")
    noise = numerical.GaussianMechanism(1.0, 1e-3, 1.0)
    return dp.from_function(lambda x: noise.add_noise(float(x))), "eps=1, delta=1e-3"


_CLASSES = Table({"x": Real(0, 1), "y": Category([0, 1, 2])}, rows=12)
_FAR = Table({"x": Real(1000, 1001), "y": Category([0, 1])}, rows=8)
_ATTRIBUTES = {
    name: Category(list(values))
    for name, values in zip("abcd", ("pq", "uvw", "klm", "fgh"), strict=True)
}

RELEASES: dict[str, Release] = {
    "opendp-threshold": Release(
        opendp_threshold, Strings(longest=10, length=(0, 10)), "add_remove"
    ),
    "diffprivlib-nanmean": Release(
        diffprivlib_nanmean, Reals(0, 1, 10), "replace", {"outside": True, "loss": "values"}
    ),
    "diffprivlib-geometric": Release(diffprivlib_geometric, Integer(0, 2**60), "query"),
    "diffprivlib-mean": Release(
        diffprivlib_mean, Reals(0, 1, 10), "replace", {"outside": True, "loss": "values"}
    ),
    "diffprivlib-histogram": Release(diffprivlib_histogram, Reals(0, 1, 10), "replace"),
    "diffprivlib-naive-bayes": Release(
        fitted(
            "GaussianNB",
            lambda m: [*m.class_count_.tolist(), *m.theta_[:, 0].tolist()],
            bounds=(1000, 1001),
        ),
        _FAR,
        "replace",
        {"loss": "values", "seconds": 60},
    ),
    "diffprivlib-logistic": Release(
        fitted("LogisticRegression", lambda m: m.coef_.ravel().round(6).tolist(), data_norm=1.0),
        _CLASSES,
        "replace",
        {"seconds": 60},
    ),
    "diffprivlib-forest": Release(forest(10), _CLASSES, "replace", {"seconds": 120}),
    "diffprivlib-large-forest": Release(forest(100), _CLASSES, "replace", {"seconds": 120}),
    "datasynthesizer-correlated": Release(
        synthetic("datasynthesizer", "eps=1", correlated=True),
        columns(_ATTRIBUTES, (10, 16)),
        "add_remove",
        {"seconds": 240},
    ),
    "dpmm-aim": Release(
        synthetic("dpmm", "eps=1, delta=1e-5", kind="AIM"),
        columns({"a": Category(["p", "q"]), "b": Category(["u", "v"])}, (15, 21)),
        "add_remove",
        {"seconds": 300},
    ),
    "pydp-gaussian": Release(pydp_gaussian, Real(0, 20), "query"),
    "pydp-count": Release(pydp_count, Reals(0, 1, (0, 20)), "add_remove"),
}


def main() -> None:
    """Hunt, or list what there is."""
    for name in sys.argv[1:]:
        asked = RELEASES[name]
        mechanism, claim = asked.make()
        start = time.process_time()
        found = dp.hunt(
            mechanism, asked.space, claim, relation=asked.relation, rng=0, **asked.options
        )
        seconds = time.process_time() - start
        print(f"{name}, {claim}, {found.draws:,} calls, {seconds:.0f} s\n{found}", flush=True)
    if not sys.argv[1:]:
        print("\n".join(RELEASES))


if __name__ == "__main__":
    main()
