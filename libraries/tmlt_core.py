"""Tumult Core: noise on numbers and quantiles of series. Its Spark measurements need Java: left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.domains.pandas_domains import PandasSeriesDomain
from tmlt.core.measurements import noise_mechanisms as noise
from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
from tmlt.core.measures import PureDP, RhoZCDP

from dpassay.blackbox.inputs import Integer, Real, Reals
from libraries.cases import Case, Finding, both, hunted

DISTRIBUTION = "tmlt.core"
_EXACT = "exact samplers, with outputs rounded as if they were computed to all digits"


def _case(name: str, api: str, made: Any, pair: Any, zcdp: bool = False, **more: Any) -> Case:
    out = made.privacy_function(1)
    said = f"{api}.privacy_function(1) = {out}, {made.output_measure}"
    claim = f"rho={float(out.expr)!r}" if zcdp else f"eps={float(out.expr)!r}"
    more = {"relation": "sensitivity_one", "n": 5_000, "sound": _EXACT, **more}
    return Case(
        name, f"tmlt.core.measurements.{api}", more.pop("call", made), pair, claim, said, **more
    )


#: Cases that are hunted too: the space, and the type that Tumult Core wants.
_HUNTED: dict[str, tuple[Any, Any]] = {
    "Laplace, values": (Real(-1e9, 1e9), np.float64),
    "Gaussian, bits": (Real(-20, 20), np.float64),
    "Geometric": (Integer(-(2**62), 2**62), np.int64),
    "discrete Gaussian": (Integer(-(2**62), 2**62), np.int64),
    "median, pure": (Reals(0, 1, length=(0, 6)), pd.Series),
    "median, zCDP": (Reals(0, 1, length=(0, 6)), pd.Series),
}


def cases() -> Iterator[Case]:
    """All cases."""
    for case in _by_hand():
        yield case
        if case.name in _HUNTED:
            space, kind = _HUNTED[case.name]
            relation = "query" if case.relation == "sensitivity_one" else case.relation

            def call(data: Any, made: Any = case.call, kind: Any = kind) -> Any:
                return made(kind(data))

            yield hunted(case, space, n=case.n, call=call, relation=relation)


def _by_hand() -> Iterator[Case]:
    real = NumpyFloatDomain()
    zero, one = np.float64(0.0), np.float64(1.0)
    far = np.float64(1e9), np.float64(1e9 + 1)
    ints = np.int64(0), np.int64(1)
    huge = np.int64(2**53), np.int64(2**53 + 1)
    beyond: dict[str, Any] = {"trap": "integers that one double does not hold"}
    api = "noise_mechanisms."
    laplace = noise.AddLaplaceNoise(real, 1)
    yield from both(_case("Laplace", f"{api}AddLaplaceNoise", laplace, (zero, one)))
    yield from both(
        _case(
            "Laplace at 1e9", f"{api}AddLaplaceNoise", laplace, far, trap="neighbours far from zero"
        )
    )
    gaussian = noise.AddGaussianNoise(real, 1)
    yield from both(
        _case("Gaussian", f"{api}AddGaussianNoise", gaussian, (zero, one), zcdp=True), ""
    )
    geometric = noise.AddGeometricNoise(1)
    yield _case("Geometric", f"{api}AddGeometricNoise", geometric, ints)
    yield _case("Geometric beyond 2**53", f"{api}AddGeometricNoise", geometric, huge, **beyond)
    discrete = noise.AddDiscreteGaussianNoise(1)
    few: dict[str, Any] = {"n": 2_500, "zcdp": True}
    yield _case("discrete Gaussian", f"{api}AddDiscreteGaussianNoise", discrete, ints, **few)
    yield _case(
        "discrete Gaussian beyond 2**53",
        f"{api}AddDiscreteGaussianNoise",
        discrete,
        huge,
        **few,
        **beyond,
    )
    series = PandasSeriesDomain(real)
    name = "pandas_measurements.series.NoisyQuantile"
    rows: dict[str, Any] = {"relation": "add_remove", "group": "statistic", "look": "values"}
    data = pd.Series([0.2, 0.5]), pd.Series([0.2, 0.5, 0.9])
    for measure, zcdp in ((PureDP(), False), (RhoZCDP(), True)):
        made = NoisyQuantile(series, measure, 0.5, 0, 1, 1)
        label = "zCDP" if zcdp else "pure"
        yield _case(f"median, {label}", name, made, data, zcdp=zcdp, **rows)
        yield _case(
            f"median, {label}, from nothing",
            name,
            made,
            (pd.Series([], dtype=float), pd.Series([1.0])),
            zcdp=zcdp,
            trap="an empty data set",
            shown="[] and [1.0]",
            **rows,
        )


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="Gaussian noise is exact, and then added in doubles",
        kind="floating point",
        cases=("Gaussian, bits",),
        cause=(
            "AddGaussianNoise returns float(value) + gaussian(u=0, …): the sampler is exact, the sum is "
            "rounded to doubles, and on 0 its bits are finer than on 1. AddLaplaceNoise gives the value "
            "to the sampler, which rounds once, and shows nothing."
        ),
        script="tmlt_core_gaussian.py",
        report=(
            "AddGaussianNoise.__call__ ends with `return float(value) + gaussian(u=0, "
            "sigma_squared=float_scale)`. The floating-point sum has the precision of its larger term "
            "(Haney et al. 2022, arXiv:2207.13793): of 5,000 outputs on 0.0 about 1,250 have a bit "
            "below 2**-53, of 5,000 on 1.0 none has. At ρ = 0.5 an audit certifies {Gaussian, bits} "
            "(10⁻³ error probability). AddLaplaceNoise passes the value to the sampler as its "
            "location, and no such event was found for it; `return gaussian(u=float(value), "
            "sigma_squared=float_scale)` would do the same here."
        ),
    ),
)
