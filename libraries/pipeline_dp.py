"""PipelineDP: aggregations of `DPEngine` on the local backend; neighbours differ in one privacy id."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pipeline_dp as pdp

from libraries.cases import Case, Finding, both

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


def cases() -> Iterator[Case]:
    """All cases."""
    yield from _statistics()
    yield from _keys()


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
            **one,
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


FINDINGS: tuple[Finding, ...] = (
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
