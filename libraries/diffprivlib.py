"""IBM's diffprivlib: its mechanisms, its tools, its models.

Inputs of tools and models are neighbours if one record is replaced: their sensitivities divide by the
number of records, which they treat as public. Counts and histograms are also audited for a record added.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from diffprivlib import BudgetAccountant, models
from diffprivlib import mechanisms as dm
from diffprivlib import tools as dt

from dpassay.blackbox.inputs import Category, Integer, Integers, Real, Reals, Table
from libraries.cases import Case, both
from libraries.diffprivlib_findings import FINDINGS as FINDINGS
from libraries.spaces import tuples, with_hunts

DISTRIBUTION = "diffprivlib"
warnings.filterwarnings("ignore", category=UserWarning)
warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", category=RuntimeWarning)

_EXACT = "discrete outputs, sampled by rejection or by cumulative probabilities"
_PROVEN = "the ideal mechanism keeps the claim; only its values are looked at"
_NAN = float("nan")


def _labelled(low: float, classes: int, rows: int | tuple[int, int] = 5) -> Table:
    """Rows of a number and a class."""
    columns = {"x": Real(low, low + 1), "y": Category(range(classes))}
    return Table(columns, rows=rows, convert=tuples)


_OUTSIDE: dict[str, Any] = {"n": 10_000, "outside": True}


def _few(low: float, length: int | tuple[int, int]) -> Reals:
    return Reals(low, low + 1, length=length, convert="list")


_POINTS = Table({"x": Real(0, 1), "y": Real(0, 1)}, rows=4, convert=tuples)
_LARGE: dict[str, Any] = {"space": Integer(0, 2**60), "relation": "query", "n": 20_000}
_REAL: dict[str, Any] = {"space": Real(-1e6, 1e6), "relation": "query", "n": 20_000}
_SCORES: dict[str, Any] = {
    "space": Reals(-5, 5, length=(2, 4), convert="list"),
    "relation": "query",
    "n": 20_000,
}
#: Cases that are hunted too.
_HUNTED: dict[str, dict[str, Any]] = {
    **{
        f"Laplace{name}, values": {**_REAL, "space": Real(0, 4)}
        for name in ("Truncated", "Folded", "BoundedDomain")
    },
    "Snapping, values": {**_REAL, "space": Real(-4, 4)},
    **{
        f"{name}, values": _REAL
        for name in ("LaplaceBoundedNoise", "Gaussian", "GaussianAnalytic", "Staircase", "Uniform")
    },
    "GeometricTruncated": {**_LARGE, "space": Integer(0, 3)},
    "GeometricFolded": {**_LARGE, "space": Integer(0, 4)},
    "Binary": {"space": Category(["a", "b"]), "n": 20_000},
    **dict.fromkeys(("Exponential", "PermuteAndFlip"), _SCORES),
    "ExponentialCategorical": {"space": Category(["a", "b", "c"]), "n": 20_000},
    "ExponentialHierarchical": {"space": Category(["a", "b", "c", "d"]), "n": 20_000},
    "Laplace, bits": {"space": Real(-20, 20), "relation": "query", "n": 10_000},
    "Geometric, beyond 2**53": _LARGE,
    "GaussianDiscrete": _LARGE,
    "mean, values": {"space": _few(0, 10), "n": 10_000},
    "nanmean, nine NaN rows": {"space": _few(0, 10), **_OUTSIDE},
    "nanvar, eight NaN rows": {"space": _few(0, 10), **_OUTSIDE},
    "nansum, bounds far from zero": {"space": _few(100, 5), **_OUTSIDE},
    "mean, a NaN row": {"space": _few(0, 2), **_OUTSIDE},
    "median, a NaN row": {"space": _few(0, 3), **_OUTSIDE},
    "sum at 100, one record removed": {"space": _few(100, (2, 6)), "n": 10_000},
    **{f"{name}, values": {"space": _few(0, 10), "n": 10_000} for name in ("var", "std")},
    "nanstd, eight NaN rows": {"space": _few(0, 10), **_OUTSIDE},
    **{name: {"space": _few(0, 3), "n": 10_000} for name in ("quantiles", "percentile")},
    "count_nonzero, one record replaced": {
        "space": Integers(0, 2, length=4, convert="list"),
        "n": 10_000,
    },
    "histogram, one record replaced": {"space": _few(0, 4), "n": 10_000},
    **{f"histogram{d}": {"space": _few(0, (0, 4)), "n": 10_000} for d in ("2d", "dd")},
    "GaussianNB, bounds far from zero": {"space": _labelled(1000, 2)},
    "GaussianNB, a class of one": {"space": _labelled(0, 3)},
    "GaussianNB.partial_fit, a declared class of one": {"space": _labelled(0, 3)},
    "LogisticRegression, a class of one": {"space": _labelled(0, 3), "n": 500},
    "LinearRegression": {"space": _POINTS, "n": 2_000},
    "DecisionTreeClassifier, one record replaced": {"space": _labelled(0, 2)},
    "RandomForestClassifier, one record added": {"space": _labelled(0, 2, (1, 5)), "n": 5_000},
    "KMeans": {"space": _few(0, (5, 7))},
    "StandardScaler": {"space": _few(0, 5)},
    "PCA": {"space": Table(dict.fromkeys("xy", Real(-1, 1)), rows=4, convert=tuples)},
}


def cases() -> Iterator[Case]:
    """All cases."""
    return with_hunts(_by_hand(), _HUNTED, n=4_000)


def _by_hand() -> Iterator[Case]:
    yield from _doubles()
    yield from _discrete()
    yield from _choices()
    yield from _tools()
    yield from _models()


def _case(
    name: str, api: str, call: Callable[..., Any], pair: Any, claim: str, **more: Any
) -> Case:
    said = f"diffprivlib.{api}: ε-differential privacy with epsilon as given"
    more = {"relation": "replace", "n": 20_000, "said": said, **more}
    return Case(name, f"diffprivlib.{api}", call, pair, claim, **more)


def _both(case: Case) -> Iterator[Case]:
    """The values, which keep the claim, and the bits, which need not."""
    return both(replace(case, sound=_PROVEN), "")


def _doubles() -> Iterator[Case]:
    one = {"epsilon": 1.0, "sensitivity": 1.0}
    box = {**one, "lower": 0.0, "upper": 4.0}
    near = {**one, "delta": 0.1}
    for name, made, pair, claim in (
        ("Laplace", dm.Laplace(**one), (0.0, 1.0), "eps=1"),
        ("LaplaceTruncated", dm.LaplaceTruncated(**box), (0.0, 1.0), "eps=1"),
        ("LaplaceFolded", dm.LaplaceFolded(**box), (1.0, 2.0), "eps=1"),
        ("LaplaceBoundedDomain", dm.LaplaceBoundedDomain(**box), (0.0, 1.0), "eps=1"),
        ("LaplaceBoundedNoise", dm.LaplaceBoundedNoise(**near), (0.0, 1.0), "eps=1, delta=0.1"),
        (
            "Gaussian",
            dm.Gaussian(epsilon=1.0, sensitivity=1.0, delta=1e-3),
            (0.0, 1.0),
            "eps=1, delta=1e-3",
        ),
        (
            "GaussianAnalytic",
            dm.GaussianAnalytic(epsilon=1.0, sensitivity=1.0, delta=1e-3),
            (0.0, 1.0),
            "eps=1, delta=1e-3",
        ),
        ("Staircase", dm.Staircase(epsilon=1.0, sensitivity=1.0), (0.0, 1.0), "eps=1"),
        ("Uniform", dm.Uniform(delta=0.2, sensitivity=1.0), (0.0, 1.0), "eps=0, delta=0.2"),
        ("Snapping", dm.Snapping(**{**box, "lower": -4.0}), (0.0, 1.0), "eps=1"),
    ):
        case = _case(
            name, f"mechanisms.{name}", made.randomise, pair, claim, relation="sensitivity_one"
        )
        for one_look in _both(case):
            snapped = name == "Snapping" and one_look.look == "bits"
            yield replace(one_look, sound=_PROVEN) if snapped else one_look
    yield _case(
        "Laplace at 1e9, values",
        "mechanisms.Laplace",
        dm.Laplace(**one).randomise,
        (1e9, 1e9 + 1),
        "eps=1",
        relation="sensitivity_one",
        look="values",
        trap="neighbours far from zero",
        sound=_PROVEN,
    )


def _discrete() -> Iterator[Case]:
    made: dict[str, Any] = {
        "Geometric": dm.Geometric(epsilon=1.0),
        "GeometricTruncated": dm.GeometricTruncated(epsilon=1.0, lower=0, upper=3),
        "GeometricFolded": dm.GeometricFolded(epsilon=1.0, lower=0, upper=4),
    }
    for name, mechanism in made.items():
        yield _case(
            name,
            f"mechanisms.{name}",
            mechanism.randomise,
            (1, 2),
            "eps=1",
            relation="sensitivity_one",
            sound=_EXACT,
        )
    yield _case(
        "Geometric, at the bound",
        "mechanisms.GeometricTruncated",
        made["GeometricTruncated"].randomise,
        (0, 1),
        "eps=1",
        relation="sensitivity_one",
        trap="an input at the bound",
        sound=_EXACT,
    )
    yield _case(
        "Geometric, beyond 2**53",
        "mechanisms.Geometric",
        made["Geometric"].randomise,
        (2**53, 2**53 + 1),
        "eps=1",
        relation="sensitivity_one",
        trap="integers that one double does not hold",
    )
    yield _case(
        "GaussianDiscrete",
        "mechanisms.GaussianDiscrete",
        dm.GaussianDiscrete(epsilon=1.0, delta=1e-3).randomise,
        (0, 1),
        "eps=1, delta=1e-3",
        relation="sensitivity_one",
        n=8_000,
        sound=_EXACT,
    )
    yield _case(
        "Binary",
        "mechanisms.Binary",
        dm.Binary(epsilon=1.0, value0="a", value1="b").randomise,
        ("a", "b"),
        "eps=1",
        sound=_EXACT,
    )


def _choices() -> Iterator[Case]:
    def chosen(kind: Any) -> Callable[[Any], Any]:
        return lambda utility: kind(epsilon=1.0, sensitivity=1.0, utility=utility).randomise()

    more: dict[str, Any] = {"group": "selection", "sound": _EXACT}
    scores = [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]
    for name in ("Exponential", "PermuteAndFlip"):
        yield _case(
            name,
            f"mechanisms.{name}",
            chosen(getattr(dm, name)),
            scores,
            "eps=1",
            relation="sensitivity_one",
            **more,
        )
    distances = [["a", "b", 1.0], ["a", "c", 2.0], ["b", "c", 2.0]]
    yield _case(
        "ExponentialCategorical",
        "mechanisms.ExponentialCategorical",
        dm.ExponentialCategorical(epsilon=1.0, utility_list=distances).randomise,
        ("a", "c"),
        "eps=1",
        **more,
    )
    yield _case(
        "ExponentialHierarchical",
        "mechanisms.ExponentialHierarchical",
        dm.ExponentialHierarchical(epsilon=1.0, hierarchy=[["a", "b"], ["c", "d"]]).randomise,
        ("a", "c"),
        "eps=1",
        **more,
    )


def _tools() -> Iterator[Case]:
    more: dict[str, Any] = {"group": "statistic", "n": 6_000}
    ends: dict[str, Any] = {"bounds": (0.0, 1.0), "epsilon": 1.0}
    flip = [0.0] * 9 + [0.0], [0.0] * 9 + [1.0]
    mixed = [0.0] * 5 + [1.0] * 4 + [0.0], [0.0] * 5 + [1.0] * 5
    gap = [0.0] + [_NAN] * 9, [1.0] + [_NAN] * 9
    bare = "one record is left beside NaN"

    def tool(name: str) -> Callable[[Any], Any]:
        return lambda data: float(getattr(dt, name)(data, **ends))

    for name, pair in (("mean", flip), ("sum", flip), ("var", flip), ("std", flip)):
        plain, with_nan = tool(name), tool(f"nan{name}")

        yield from _both(_case(name, f"tools.{name}", plain, pair, "eps=1", **more))
        yield _case(
            f"nan{name}, no NaN",
            f"tools.nan{name}",
            with_nan,
            mixed,
            "eps=1",
            look="values",
            sound=_PROVEN,
            **more,
        )
        if name in ("mean", "sum"):
            yield _case(
                f"nan{name}, nine NaN rows",
                f"tools.nan{name}",
                with_nan,
                gap,
                "eps=1",
                look="values",
                trap=bare,
                shown="[0.0, nan × 9] and [1.0, nan × 9]",
                sound=_PROVEN if name == "sum" else "",
                **more,
            )
        else:
            yield _case(
                f"nan{name}, eight NaN rows",
                f"tools.nan{name}",
                with_nan,
                ([0.0, 0.0] + [_NAN] * 8, [0.0, 1.0] + [_NAN] * 8),
                "eps=1",
                look="values",
                trap="two records are left beside NaN",
                shown="[0.0, 0.0, nan × 8] and [0.0, 1.0, nan × 8]",
                **more,
            )

    def far(data: Any) -> Any:
        return float(dt.nansum(data, bounds=(100.0, 101.0), epsilon=1.0))

    yield _case(
        "nansum, bounds far from zero",
        "tools.nansum",
        far,
        ([100.0] * 5, [100.0] * 4 + [_NAN]),
        "eps=1",
        look="values",
        trap="a record becomes NaN, with bounds far from zero",
        **more,
    )

    def sum_far(data: Any) -> Any:
        return float(dt.sum(data, bounds=(100.0, 101.0), epsilon=1.0))

    yield _case(
        "sum at 100, one record replaced",
        "tools.sum",
        sum_far,
        ([100.0] * 5, [100.0] * 4 + [101.0]),
        "eps=1",
        look="values",
        trap="bounds far from zero",
        sound=_PROVEN,
        **more,
    )
    yield _case(
        "sum at 100, one record removed",
        "tools.sum",
        sum_far,
        ([100.0] * 5, [100.0] * 4),
        "eps=1",
        look="values",
        trap="bounds far from zero",
        **{**more, "relation": "add_remove"},
    )

    def whole(data: Any) -> Any:
        return int(dt.sum(data, bounds=(0, 5), epsilon=1.0, dtype=int))

    yield _case(
        "sum, integers", "tools.sum", whole, ([0, 0], [0, 5]), "eps=1", sound=_EXACT, **more
    )

    def median(data: Any) -> Any:
        return float(dt.median(data, **ends))

    spread = [0.1, 0.4, 0.6], [0.1, 0.6, 0.6]
    yield _case(
        "median", "tools.median", median, spread, "eps=1", look="values", sound=_PROVEN, **more
    )
    yield _case(
        "median, a NaN row",
        "tools.median",
        median,
        ([0.1, 0.4, 0.6], [0.1, 0.4, _NAN]),
        "eps=1",
        look="values",
        trap="a NaN row",
        **more,
    )

    def quartiles(data: Any) -> Any:
        return [float(x) for x in dt.quantile(data, [0.25, 0.75], **ends)]

    yield _case(
        "quantiles",
        "tools.quantile",
        quartiles,
        spread,
        "eps=1",
        look="values",
        sound=_PROVEN,
        **more,
    )
    yield _case(
        "percentile",
        "tools.percentile",
        lambda data: float(dt.percentile(data, 90, **ends)),
        spread,
        "eps=1",
        look="values",
        sound=_PROVEN,
        **more,
    )

    def mean(data: Any) -> Any:
        return float(dt.mean(data, **ends))

    yield _case(
        "mean, a NaN row",
        "tools.mean",
        mean,
        ([0.0, 0.5], [0.0, _NAN]),
        "eps=1",
        look="values",
        trap="a NaN row",
        **more,
    )
    more["relation"] = "add_remove"

    def nonzero(data: Any) -> Any:
        return int(dt.count_nonzero(data, epsilon=1.0))

    yield _case(
        "count_nonzero, one record replaced",
        "tools.count_nonzero",
        nonzero,
        ([0, 1, 0], [0, 1, 1]),
        "eps=1",
        sound=_EXACT,
        **{**more, "relation": "replace"},
    )
    yield _case(
        "count_nonzero, one record added",
        "tools.count_nonzero",
        nonzero,
        ([0, 1], [0, 1, 1]),
        "eps=1",
        trap="a count at its largest",
        **more,
    )

    def histogram(data: Any) -> Any:
        return dt.histogram(data, bins=2, range=(0.0, 1.0), epsilon=1.0)[0].tolist()

    yield _case(
        "histogram, one record added",
        "tools.histogram",
        histogram,
        ([0.2], [0.2, 0.7]),
        "eps=1",
        sound=_EXACT,
        **more,
    )
    yield _case(
        "histogram, one record replaced",
        "tools.histogram",
        histogram,
        ([0.2, 0.2], [0.2, 0.7]),
        "eps=1",
        **{**more, "relation": "replace"},
    )
    square = [[0.0, 1.0], [0.0, 1.0]]
    yield _case(
        "histogram2d",
        "tools.histogram2d",
        lambda xs: dt.histogram2d(xs, xs, bins=2, range=square, epsilon=1.0)[0].ravel().tolist(),
        ([0.2], [0.2, 0.7]),
        "eps=1",
        sound=_EXACT,
        **more,
    )
    yield _case(
        "histogramdd",
        "tools.histogramdd",
        lambda xs: dt.histogramdd(np.array(xs)[:, None], bins=2, range=square[:1], epsilon=1.0)[
            0
        ].tolist(),
        ([0.2], [0.2, 0.7]),
        "eps=1",
        sound=_EXACT,
        **more,
    )


def _models() -> Iterator[Case]:
    more: dict[str, Any] = {"group": "model", "n": 1_500, "look": "values"}

    def bayes(low: float) -> Callable[[Any], Any]:
        def fitted(data: Any) -> Any:
            x, y = np.array(data, dtype=float).T
            model = models.GaussianNB(epsilon=1.0, bounds=(low, low + 1)).fit(x[:, None], y)
            return [*model.class_count_.tolist(), *model.theta_.ravel().tolist()]

        return fitted

    api = "models.GaussianNB"
    rows = [(0.0, 0), (1.0, 0), (0.0, 1), (1.0, 1)]
    yield _case("GaussianNB", api, bayes(0.0), (rows, [*rows[:3], (0.0, 1)]), "eps=1", **more)
    far = [(1000.0 + x, y) for x, y in rows]
    yield _case(
        "GaussianNB, bounds far from zero",
        api,
        bayes(1000.0),
        ([*far, (1001.0, 0)], [*far, (1001.0, 1)]),
        "eps=1",
        trap="a record changes its class, with bounds far from zero",
        **more,
    )
    yield _case(
        "GaussianNB, a class of one",
        api,
        bayes(0.0),
        ([*rows, (0.5, 0)], [*rows, (0.5, 2)]),
        "eps=1",
        trap="a class that one record brings",
        **more,
    )

    def declared(data: Any) -> Any:
        x, y = np.array(data, dtype=float).T
        model = models.GaussianNB(epsilon=1.0, bounds=(0.0, 1.0))
        model.partial_fit(x[:, None], y, classes=[0, 1, 2])
        return [*model.class_count_.tolist(), *model.theta_.ravel().tolist()]

    yield _case(
        "GaussianNB.partial_fit, a declared class of one",
        "models.GaussianNB.partial_fit",
        declared,
        ([*rows, (0.5, 0)], [*rows, (0.5, 2)]),
        "eps=1",
        trap="all classes declared, and a class that one record has",
        **more,
    )

    def logistic(data: Any) -> Any:
        x, y = np.array(data, dtype=float).T
        model = models.LogisticRegression(epsilon=1.0, data_norm=1.0).fit(x[:, None], y)
        return [*model.coef_.ravel().tolist(), *model.intercept_.tolist()]

    api = "models.LogisticRegression"
    yield _case(
        "LogisticRegression, a class of one",
        api,
        logistic,
        ([*rows, (0.5, 0)], [*rows, (0.5, 2)]),
        "eps=1",
        trap="a class that one record brings",
        **{**more, "n": 100},  # a fit takes a fifth of a second
    )

    def linear(data: Any) -> Any:
        x, y = np.array(data, dtype=float).T
        model = models.LinearRegression(epsilon=1.0, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0))
        model.fit(x[:, None], y)
        return [*np.ravel(model.coef_).tolist(), float(np.ravel(model.intercept_)[0])]

    points = [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)]
    yield _case(
        "LinearRegression",
        "models.LinearRegression",
        linear,
        ([*points, (1.0, 1.0)], [*points, (1.0, 0.0)]),
        "eps=1",
        **{**more, "n": 1_200},
    )

    def slope(data: Any) -> Any:
        x, y = np.array(data, dtype=float).T
        bounds: dict[str, Any] = {"bounds_X": (0.0, 1.0), "bounds_y": (0.0, 1.0)}
        model = models.LinearRegression(epsilon=1.0, fit_intercept=False, **bounds)
        return float(np.ravel(model.fit(x[:, None], y).coef_)[0])

    small = [(0.1, 0.1)] * 3
    yield _case(
        "LinearRegression without intercept",
        "models.LinearRegression",
        slope,
        ([*small, (0.1, 0.0)], [*small, (1.0, 0.0)]),
        "eps=1",
        trap="a lower bound of 0",
        **{**more, "n": 600},
    )

    def scaled(data: Any) -> Any:
        model = models.StandardScaler(epsilon=1.0, bounds=(0.0, 1.0)).fit(np.array(data)[:, None])
        return [float(model.mean_[0]), float(model.var_[0])]

    yield _case(
        "StandardScaler",
        "models.StandardScaler",
        scaled,
        ([0.0] * 4 + [0.0], [0.0] * 4 + [1.0]),
        "eps=1",
        sound=_PROVEN,
        **more,
    )

    def clusters(start: float = 0.0) -> Callable[[Any], Any]:
        def clustered(data: Any) -> Any:
            table = np.array(data, dtype=float).reshape(len(data), -1)
            model = models.KMeans(2, epsilon=1.0, bounds=(start, start + 1)).fit(table)
            return sorted(model.cluster_centers_.tolist())

        return clustered

    yield _case(
        "KMeans, bounds far from zero, one record replaced",
        "models.KMeans",
        clusters(1000.0),
        ([1000.0] * 3 + [1001.0] * 2 + [1000.0], [1000.0] * 3 + [1001.0] * 2 + [1001.0]),
        "eps=1",
        trap="bounds far from zero",
        **{**more, "n": 1_000},
    )
    for dimensions, where in ((1, ""), (2, ", two dimensions"), (3, ", three dimensions")):
        low, high = [0.0] * dimensions, [1.0] * dimensions
        few = [low] * 5
        for relation, pair in (
            ("add_remove", (few, [*few, high])),
            ("replace", ([*few, low], [*few, high])),
        ):
            replaced = ", one record replaced" if relation == "replace" else ""
            yield _case(
                f"KMeans{where}{replaced}",
                "models.KMeans",
                clusters(),
                pair,
                "eps=1",
                trap="a cluster without records",
                **{**more, "n": 1_000, "relation": relation},
            )

    def components(data: Any) -> Any:
        model = models.PCA(1, epsilon=1.0, data_norm=1.0, bounds=(-1.0, 1.0)).fit(np.array(data))
        return np.abs(model.components_).ravel().tolist()

    spread = [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.2]]
    yield _case(
        "PCA",
        "models.PCA",
        components,
        ([*spread, [1.0, 0.0]], [*spread, [0.0, 1.0]]),
        "eps=1",
        **{**more, "n": 1_200},
    )

    def grown(name: str) -> Callable[[Any], Any]:
        few = {"n_estimators": 1} if name == "RandomForestClassifier" else {}
        ends = {"max_depth": 1, "epsilon": 1.0, "bounds": (0.0, 1.0), "classes": [0, 1], **few}

        def predicted(data: Any) -> Any:
            x, y = np.array(data, dtype=float).T
            BudgetAccountant.pop_default()  # it keeps every earlier spend, and a forest copies it
            model = getattr(models, name)(**ends, accountant=BudgetAccountant())
            return int(model.fit(x[:, None], y).predict([[0.5]])[0])

        return predicted

    for name in ("DecisionTreeClassifier", "RandomForestClassifier"):
        added: dict[str, Any] = {**more, "look": "auto", "relation": "add_remove"}
        added["n"] = 600 if name == "RandomForestClassifier" else 2_000
        two = [(0.5, 0), (0.5, 1)]
        yield _case(
            f"{name}, one record added",
            f"models.{name}",
            grown(name),
            (two, [*two, (0.5, 1)]),
            "eps=1",
            sound=_EXACT,
            **added,
        )
        yield _case(
            f"{name}, one record replaced",
            f"models.{name}",
            grown(name),
            ([*two, (0.5, 0)], [*two, (0.5, 1)]),
            "eps=1",
            **{**added, "relation": "replace"},
        )
