"""PipelineDP: aggregations of `DPEngine` on the local backend; neighbours differ in one privacy id."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pipeline_dp as pdp

from dpassay.blackbox.inputs import Category, Real, Table
from libraries.cases import Case, Finding, both
from libraries.spaces import tuples, with_hunts

DISTRIBUTION = "pipeline-dp"
logging.disable(logging.INFO)

_SNAPPED = "noise is drawn and added on a grid of powers of two"
_PROVEN = "the ideal mechanism keeps the claim; only its values are looked at"
_EXACT = "the probabilities of keeping a key are computed, and a coin is flipped"
_EXTRACTORS = pdp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)
_CLAIMS = {
    pdp.NoiseKind.LAPLACE: ("eps=1", 0.0),
    pdp.NoiseKind.GAUSSIAN: ("eps=1, delta=0.01", 0.01),
}


def _people(low: float = 0.0, least: int = 1, **more: Any) -> dict[str, Any]:
    """A hunt over the rows of three people; neighbours differ in all rows of one."""
    cells = {"id": Category([1, 2, 3]), "key": Category(["a", "b"]), "value": Real(low, low + 1)}
    space = Table(cells, rows=(least, 6), convert=tuples)
    return {"space": space, "relation": "user", "user": "id", **more}


def _in_one_partition(rows: Any) -> Any:
    return [(row["id"], "a", row["value"]) for row in rows]


_ONE_PARTITION = Table(
    {"id": Category([1, 2, 3]), "value": Real(0, 1)}, rows=(1, 6), convert=_in_one_partition
)
#: Cases that are hunted too.
_HUNTED = {
    **{
        f"{name}, laplace, values": _people()
        for name in ("COUNT", "PRIVACY_ID_COUNT", "SUM", "MEAN", "VARIANCE")
    },
    "SUM, gaussian, values": _people(),
    "SUM, gaussian, bits": _people(),
    "MEAN, laplace, bounds far from zero": _people(1000),
    "VARIANCE, laplace, bounds far from zero": _people(1000),
    "PERCENTILE, laplace": _people(n=4_000),
    "select_partitions, Truncated Geometric, a new key": _people(n=20_000),
    "select_partitions, Laplace Thresholding, a new key": _people(n=20_000),
    "COUNT, unknown keys, a known key": _people(),
    "post-aggregation threshold, a known key": _people(),
    "COUNT, laplace, an empty collection": _people(least=0),
    **{
        f"{name}, laplace, a NaN value": _people(space=_ONE_PARTITION, outside=True)
        for name in ("SUM", "MEAN", "VARIANCE", "PERCENTILE")
    },
}


def cases() -> Iterator[Case]:
    """All cases."""
    return with_hunts(_by_hand(), _HUNTED, n=10_000)


def _by_hand() -> Iterator[Case]:
    yield from _statistics()
    yield from _keys()
    yield from _odd_inputs()


def _aggregate(
    metric: Any, noise: Any, delta: float, low: float = 0.0, public: bool = True, **more: Any
) -> Callable[[Any], Any]:
    """One aggregation with ε = 1 and this δ, on the key "a" or on the keys there are."""

    def released(rows: Any) -> Any:
        budget = pdp.NaiveBudgetAccountant(1.0, delta)
        engine = pdp.DPEngine(budget, pdp.LocalBackend())
        params = pdp.AggregateParams(
            noise_kind=noise,
            metrics=[metric],
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=low,
            max_value=low + 1,
            **more,
        )
        found = engine.aggregate(rows, params, _EXTRACTORS, ["a"] if public else None)
        budget.compute_budgets()
        values = {key: next(iter(value)) for key, value in found}
        got: Any = values.get("a")
        return [float(x) for x in got] if hasattr(got, "__len__") else got

    return released


def _case(name: str, call: Callable[..., Any], pair: Any, claim: str, **more: Any) -> Case:
    said = (
        "DPEngine with NaiveBudgetAccountant(total_epsilon, total_delta): the budget is spent once"
    )
    more = {"relation": "add_remove", "n": 8_000, "said": said, **more}
    return Case(name, "pipeline_dp.DPEngine.aggregate", call, pair, claim, **more)


def _statistics() -> Iterator[Case]:
    metrics = pdp.Metrics
    for noise, (claim, delta) in _CLAIMS.items():
        kind = noise.value
        sound = _SNAPPED if kind == "laplace" else ""
        one: dict[str, Any] = {"group": "statistic", "sound": _PROVEN}
        pair = [(1, "a", 0.5)], [(1, "a", 0.5), (2, "a", 1.0)]
        far = [(1, "a", 1000.0)], [(1, "a", 1000.0), (2, "a", 1001.0)]
        for name in ("COUNT", "PRIVACY_ID_COUNT", "SUM", "MEAN", "VARIANCE"):
            call = _aggregate(getattr(metrics, name), noise, delta)
            case = _case(f"{name}, {kind}", call, pair, claim, **one)
            if name in ("COUNT", "SUM"):
                yield from both(case, sound)
            else:
                yield next(both(case))
        for name in ("SUM", "MEAN", "VARIANCE"):
            yield _case(
                f"{name}, {kind}, bounds far from zero",
                _aggregate(getattr(metrics, name), noise, delta, 1000.0),
                far,
                claim,
                look="values",
                trap="bounds far from zero",
                **one,
            )
        yield _case(
            f"COUNT, {kind}, from nothing",
            _aggregate(metrics.COUNT, noise, delta),
            ([(1, "b", 1.0)], [(1, "b", 1.0), (2, "a", 1.0)]),
            claim,
            look="values",
            trap="a key that has no records",
            **one,
        )
        yield _case(
            f"COUNT, {kind}, one id in many rows",
            _aggregate(metrics.COUNT, noise, delta),
            ([(1, "a", 0.5)], [(1, "a", 0.5), *[(2, "a", 1.0)] * 50]),
            claim,
            look="values",
            trap="a privacy id that has fifty rows",
            **{**one, "relation": "user"},
        )
        yield _case(
            f"PERCENTILE, {kind}",
            _aggregate(metrics.PERCENTILE(50), noise, delta),
            pair,
            claim,
            look="values",
            **{**one, "n": 2_500},
        )


def _keys() -> Iterator[Case]:
    one: dict[str, Any] = {"group": "histogram, unknown keys", "n": 20_000}
    new = [(1, "b", 1.0)], [(1, "b", 1.0), (2, "a", 1.0)]
    more = [(k, "a", 1.0) for k in range(3)], [(k, "a", 1.0) for k in range(4)]
    strategies = pdp.PartitionSelectionStrategy
    for kind in (
        strategies.TRUNCATED_GEOMETRIC,
        strategies.LAPLACE_THRESHOLDING,
        strategies.GAUSSIAN_THRESHOLDING,
    ):

        def kept(rows: Any, kind: Any = kind) -> Any:
            budget = pdp.NaiveBudgetAccountant(1.0, 0.05)
            engine = pdp.DPEngine(budget, pdp.LocalBackend())
            params = pdp.SelectPartitionsParams(
                max_partitions_contributed=1, partition_selection_strategy=kind
            )
            found = engine.select_partitions(rows, params, _EXTRACTORS)
            budget.compute_budgets()
            return "a" in set(found)

        for name, pair in (("a new key", new), ("a known key", more)):
            yield _case(
                f"select_partitions, {kind.value}, {name}",
                kept,
                pair,
                "eps=1, delta=0.05" + (" in delta" if name == "a new key" else ""),
                trap="a key that one record brings" if name == "a new key" else "",
                sound=_EXACT,
                **one,
            )
    one["n"] = 8_000
    for name, pair in (("a new key", new), ("a known key", more)):
        yield _case(
            f"COUNT, unknown keys, {name}",
            _aggregate(pdp.Metrics.COUNT, pdp.NoiseKind.LAPLACE, 0.05, public=False),
            pair,
            "eps=1, delta=0.05" + (" in delta" if name == "a new key" else ""),
            look="values",
            trap="a key that one record brings" if name == "a new key" else "",
            sound=_PROVEN,
            **one,
        )
        yield _case(
            f"post-aggregation threshold, {name}",
            _aggregate(
                pdp.Metrics.PRIVACY_ID_COUNT,
                pdp.NoiseKind.LAPLACE,
                0.05,
                public=False,
                post_aggregation_thresholding=True,
            ),
            pair,
            "eps=1, delta=0.05" + (" in delta" if name == "a new key" else ""),
            look="values",
            trap="a key that one record brings" if name == "a new key" else "",
            sound=_PROVEN,
            **one,
        )


def _odd_inputs() -> Iterator[Case]:
    """No row at all, and values that are no number."""
    metrics, laplace = pdp.Metrics, pdp.NoiseKind.LAPLACE
    count = _aggregate(metrics.COUNT, laplace, 0.0)

    def caught(rows: Any) -> Any:
        try:
            return count(rows)
        except ValueError as error:
            return str(error)

    yield _case(
        "COUNT, laplace, an empty collection",
        caught,
        ([], [(1, "a", 0.5)]),
        "eps=1",
        trap="an empty data set",
        group="statistic",
    )
    for name in ("SUM", "MEAN", "VARIANCE", "PERCENTILE"):
        metric = getattr(metrics, name)
        yield _case(
            f"{name}, laplace, a NaN value",
            _aggregate(metric(50) if name == "PERCENTILE" else metric, laplace, 0.0),
            ([(1, "a", 0.5)], [(1, "a", 0.5), (2, "a", float("nan"))]),
            "eps=1",
            look="values",
            trap="a NaN row",
            group="statistic",
            **({"n": 2_500, "sound": _PROVEN} if name == "PERCENTILE" else {}),
        )


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="A NaN value decides the output",
        kind="violation",
        cases=tuple(f"{name}, laplace, a NaN value" for name in ("SUM", "MEAN", "VARIANCE")),
        cause=(
            "combiners.py clips values by np.clip(values, min_value, max_value), which leaves NaN as it "
            "is: the sum is NaN, and so is the sum with noise. One privacy id with a NaN decides whether "
            "the output is a number. PERCENTILE uses PyDP's tree, and shows nothing."
        ),
        script="pipeline_dp_nan.py",
        report=(
            "SumCombiner, MeanCombiner and VarianceCombiner bound values by np.clip, and np.clip(nan, 0, "
            "1) is nan. If one privacy id contributes a NaN, SUM, MEAN and VARIANCE of its partition are "
            "NaN with probability 1; without it, never: {SUM, laplace, a NaN value} at epsilon=1 (10⁻³ "
            "error probability). A remedy is to drop NaN where values are extracted, or to replace it by "
            "a constant within the bounds (np.nan_to_num before np.clip)."
        ),
    ),
    Finding(
        title="An empty collection raises an exception",
        kind="violation",
        cases=("COUNT, laplace, an empty collection",),
        cause=(
            "dp_engine.py, _check_col: `if col is None or not col: raise ValueError`. On the local "
            "backend a collection without rows ends with an exception although the partitions are "
            "public, and one with a row does not. A collection whose truth value does not say whether "
            "it is empty passes this check."
        ),
        script="pipeline_dp_empty.py",
        by_hunt=True,
        report=(
            'DPEngine.aggregate(col, params, extractors, public_partitions) raises ValueError ("col must '
            'be non-empty") if col is an empty list, on the local backend. With public partitions the '
            "output has an entry for each of them whatever the rows, so that whether there is any row is "
            "protected information: {COUNT, laplace, an empty collection} at epsilon=1 (10⁻³ error "
            "probability). A remedy is to refuse None only."
        ),
    ),
    Finding(
        title="Gaussian noise from PyDP shows the input in its lowest bits",
        kind="floating point",
        cases=("COUNT, gaussian, bits", "SUM, gaussian, bits"),
        cause=(
            "The noise is PyDP's GaussianMechanism, whose outputs in release 1.1.5 do not lie on a grid; "
            "see python-dp."
        ),
        script="python_dp_gaussian.py",
        report="See python-dp: a fix there is a fix here.",
    ),
)
