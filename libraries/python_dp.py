"""PyDP, the Python face of Google's C++ building blocks: neighbours add or remove one record.

`pydp.ml` is left out: in release 1.1.5 its mechanisms raise TypeError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pydp.algorithms import laplacian
from pydp.algorithms import numerical_mechanisms as nm
from pydp.algorithms import partition_selection as ps
from pydp.algorithms.quantile_tree import QuantileTree

from dpassay.blackbox.inputs import Integer, Integers, Real, Reals
from libraries.cases import Case, Finding, both
from libraries.spaces import with_hunts

DISTRIBUTION = "python-dp"

_SNAPPED = "noise is drawn and added on a grid of powers of two"
_UNIT: dict[str, Any] = {"space": Reals(0, 1, length=(0, 6), convert="list")}
_WIDE: dict[str, Any] = {"space": Integer(-(2**62), 2**62), "relation": "query", "n": 20_000}
#: Upper bounds of integers; the sum of two of the last exceeds dtype="int".
_UPPER = {"10": 10, "9": 9, "2**31 − 2": 2**31 - 2}
#: Cases that are hunted too.
_HUNTED: dict[str, dict[str, Any]] = {
    "Laplace, doubles, values": {"space": Real(-1e9, 1e9), "relation": "query", "n": 20_000},
    "Gaussian, doubles, bits": {"space": Real(-20, 20), "relation": "query", "n": 20_000},
    "Laplace, integers": _WIDE,
    "Gaussian, integers": _WIDE,
    "Count": {"space": Integers(0, 5, length=(0, 10), convert="list")},
    "BoundedSum, integers": {"space": Integers(0, 9, length=(0, 6), convert="list")},
    "BoundedMean, a NaN row": {**_UNIT, "outside": True},
    **{
        f"BoundedMean, integers up to {name}": {
            "space": Integers(0, upper, length=(0, 6), convert="list"),
            "n": 30_000,
        }
        for name, upper in _UPPER.items()
    },
    **{
        f"partition selection, {name}, 0 against 1": {"space": Integer(0, 20), "relation": "query"}
        for name in ("laplace", "truncated_geometric", "gaussian")
    },
    **dict.fromkeys(
        (
            *("BoundedSum, doubles, values", "BoundedMean", "BoundedVariance"),
            *("BoundedStandardDeviation", "Max", "Min", "Median", "Percentile", "QuantileTree"),
        ),
        _UNIT,
    ),
}


def cases() -> Iterator[Case]:
    """All cases."""
    return with_hunts(_by_hand(), _HUNTED, n=8_000)


def _by_hand() -> Iterator[Case]:
    yield from _mechanisms()
    yield from _statistics()
    yield from _partitions()


def _case(
    name: str, api: str, call: Callable[..., Any], pair: Any, claim: str, **more: Any
) -> Case:
    said = f"pydp.{api}: differentially private with the epsilon and delta given"
    more = {"relation": "add_remove", "n": 20_000, "said": said, "sound": _SNAPPED, **more}
    return Case(name, f"pydp.{api}", call, pair, claim, **more)


def _mechanisms() -> Iterator[Case]:
    laplace, gaussian = nm.LaplaceMechanism(1.0, 1.0), nm.GaussianMechanism(1.0, 1e-3, 1.0)
    one: dict[str, Any] = {"relation": "sensitivity_one", "n": 60_000}
    for name, made, claim in (
        ("Laplace", laplace, "eps=1"),
        ("Gaussian", gaussian, "eps=1, delta=1e-3"),
    ):
        api = f"algorithms.numerical_mechanisms.{name}Mechanism"
        bits = _SNAPPED if name == "Laplace" else ""
        yield from both(
            _case(f"{name}, doubles", api, made.add_noise, (0.0, 1.0), claim, **one), bits
        )
        yield _case(f"{name}, integers", api, made.add_noise, (0, 1), claim, **one)
        yield _case(
            f"{name}, integers beyond 2**53",
            api,
            made.add_noise,
            (2**53, 2**53 + 1),
            claim,
            trap="integers that one double does not hold",
            **one,
        )
        yield from both(
            _case(
                f"{name}, doubles at 1e12",
                api,
                made.add_noise,
                (1e12, 1e12 + 1),
                claim,
                trap="neighbours far from zero",
                **one,
            )
        )


def _statistics() -> Iterator[Case]:
    def tool(kind: Any, kept: type, **options: Any) -> Callable[[Any], Any]:
        name = "int" if kept is int else "float"
        return lambda data: kind(epsilon=1.0, dtype=name, **options).quick_result(data)

    api = "algorithms.laplacian."
    more: dict[str, Any] = {"group": "statistic"}
    ends = {"lower_bound": 0.0, "upper_bound": 1.0}
    far = {"lower_bound": 1000.0, "upper_bound": 1001.0}
    count = tool(laplacian.Count, int)
    yield _case("Count", f"{api}Count", count, ([1], [1, 1]), "eps=1", **more)
    yield _case(
        "Count, from nothing",
        f"{api}Count",
        count,
        ([], [1]),
        "eps=1",
        trap="an empty data set",
        **more,
    )
    whole = tool(laplacian.BoundedSum, int, lower_bound=0, upper_bound=5)
    yield _case("BoundedSum, integers", f"{api}BoundedSum", whole, ([1], [1, 9]), "eps=1", **more)
    real = tool(laplacian.BoundedSum, float, **ends)
    yield from both(
        _case("BoundedSum, doubles", f"{api}BoundedSum", real, ([0.5], [0.5, 1.0]), "eps=1", **more)
    )
    yield _case(
        "BoundedSum, bounds far from zero",
        f"{api}BoundedSum",
        tool(laplacian.BoundedSum, float, **far),
        ([1000.0], [1000.0, 1001.0]),
        "eps=1",
        look="values",
        trap="bounds far from zero",
        **more,
    )
    yield _case(
        "BoundedSum, a NaN row",
        f"{api}BoundedSum",
        real,
        ([0.5], [0.5, float("nan")]),
        "eps=1",
        look="values",
        trap="a NaN row",
        **more,
    )
    more["n"] = 8_000
    for name in ("BoundedMean", "BoundedVariance", "BoundedStandardDeviation"):
        kind = getattr(laplacian, name)
        one = _case(
            name, f"{api}{name}", tool(kind, float, **ends), ([0.0], [0.0, 1.0]), "eps=1", **more
        )
        yield replace(one, look="values")
        yield replace(
            one,
            name=f"{name}, bounds far from zero",
            call=tool(kind, float, **far),
            pair=([1000.0], [1000.0, 1001.0]),
            trap="bounds far from zero",
            look="values",
        )
        yield replace(
            one,
            name=f"{name}, a NaN row",
            pair=([0.5], [0.5, float("nan")]),
            trap="a NaN row",
            look="values",
        )
    traps = ("", "a middle of the bounds that is no integer", "a sum beyond the largest integer")
    for (name, upper), trap in zip(_UPPER.items(), traps, strict=True):
        yield _case(
            f"BoundedMean, integers up to {name}",
            f"{api}BoundedMean",
            tool(laplacian.BoundedMean, int, lower_bound=0, upper_bound=upper),
            ([upper], [upper, 2]),
            "eps=1",
            trap=trap,
            **{**more, "sound": "" if trap else _SNAPPED},
        )
    more["n"] = 4_000
    for name in ("Max", "Min", "Median"):
        kind = getattr(laplacian, name)
        yield _case(
            name,
            f"{api}{name}",
            tool(kind, float, **ends),
            ([0.25, 0.5], [0.25, 0.5, 0.9]),
            "eps=1",
            look="values",
            **more,
        )
    yield _case(
        "Percentile",
        f"{api}Percentile",
        tool(laplacian.Percentile, float, percentile=0.9, **ends),
        ([0.25, 0.5], [0.25, 0.5, 0.9]),
        "eps=1",
        look="values",
        **more,
    )

    def tree(data: Any) -> Any:
        made = QuantileTree(0.0, 1.0, 2, 4)
        for value in data:
            made.add_entry(value)
        return made.compute_quantiles(1.0, 0.0, 1, 1, [0.25, 0.75], "laplace")

    yield _case(
        "QuantileTree",
        "algorithms.quantile_tree.QuantileTree",
        tree,
        ([0.2, 0.5], [0.2, 0.5, 0.9]),
        "eps=1",
        look="values",
        **{**more, "n": 8_000},
    )


def _partitions() -> Iterator[Case]:
    more: dict[str, Any] = {
        "group": "histogram, unknown keys",
        "n": 60_000,
        "sound": "exact probabilities",
    }
    for name in ("truncated_geometric", "laplace", "gaussian"):
        made = ps.create_partition_strategy(name, 1.0, 0.05, 1)
        api = f"algorithms.partition_selection, {name}"
        for users in (0, 2):
            yield _case(
                f"partition selection, {name}, {users} against {users + 1}",
                api,
                made.should_keep,
                (users, users + 1),
                "eps=1, delta=0.05" + ("" if users else " in delta"),
                trap="a key that one record brings" if not users else "",
                **more,
            )
        if name == "truncated_geometric":
            continue
        for users in (0, 4):
            yield _case(
                f"noisy partition, {name}, {users} against {users + 1}",
                api,
                made.noised_value_if_should_keep,
                (users, users + 1),
                "eps=1, delta=0.05" + ("" if users else " in delta"),
                trap="a key that one record brings" if not users else "",
                look="values",
                **{**more, "n": 30_000, "sound": _SNAPPED},
            )
    made = ps.create_partition_strategy("laplace", 1.0, 0.05, 1, 3)
    for users in (2, 3):
        yield _case(
            f"partition selection, pre-threshold 3, {users} against {users + 1}",
            "algorithms.partition_selection, laplace",
            made.should_keep,
            (users, users + 1),
            "eps=1, delta=0.05" + ("" if users > 2 else " in delta"),
            trap="a count at the threshold",
            **more,
        )


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="A mean of integers shows whether their number is odd",
        kind="violation",
        cases=("BoundedMean, integers up to 9",),
        cause=(
            'With dtype="int" the noise of BoundedMean is a whole number. It is added to the sum less '
            "the count times the middle of the bounds. If lower + upper and the count are odd, that is a "
            "whole number and a half, and divided by a noisy count, a whole number too, it never gives "
            "an output that ends in .5; if the count is even, a fifth of the outputs or more do. With "
            "lower + upper even nothing was found. The steps are concluded from the outputs."
        ),
        script="python_dp_odd_count.py",
        report=(
            'BoundedMean(epsilon=1, lower_bound=0, upper_bound=9, dtype="int") on [9] never ends in .5; '
            "on [9, 2] 576 of 2,000 outputs do. One output can show that the number of records is even: "
            "{BoundedMean, integers up to 9} (10⁻³ error probability), and no ε holds. The sum less "
            "count × midpoint is a multiple of 1/2, and the noise that is added to it a whole number: "
            "the fractional part, which the parity of the count alone decides, gets no noise. With "
            "upper_bound=10 no violation was found. A remedy is noise of granularity 1/2 or less, as for "
            'dtype="float".'
        ),
    ),
    Finding(
        title="The sum behind a mean of integers wraps around at 32 bits",
        kind="violation",
        cases=("BoundedMean, integers up to 2**31 − 2",),
        cause=(
            'dtype="int" keeps the sum of the values in 32 bits, and the mean is made of the sum that '
            "wrapped around: with epsilon = 1000 the mean of three times 2**31 − 1 is a third of that. "
            "One record changes the sum by up to 2**32, beside noise for half the width of the bounds. "
            "google/differential-privacy#40 describes the overflow and says that it is no violation, "
            "since noise can overflow too. That holds for BoundedSum, where none was found; the "
            "division of the mean takes numbers that are far apart for what they are modulo 2**32."
        ),
        script="python_dp_integer_mean.py",
        by_hunt=True,
        report=(
            'BoundedMean(epsilon, lower_bound=0, upper_bound=2**31 - 2, dtype="int") adds up its values '
            "in 32 bits. Of 10,000 outputs on [2**31 - 2] about 3,800 are the upper bound; on "
            "[2**31 - 2, 2], whose sum wraps around to -2**31, about 230: {BoundedMean, integers up to "
            "2**31 − 2} at epsilon=1 (10⁻³ error probability). google/differential-privacy#40 describes "
            "the overflow and argues that it is harmless, since the noise can overflow too. That is "
            "right for BoundedSum, whose output is the noisy sum modulo 2**32, and no violation was "
            "found there; the mean divides the sum that wrapped around. A remedy is to add up in doubles "
            "or in 64 bits, or sums that saturate."
        ),
    ),
    Finding(
        title="Gaussian noise shows the input in its lowest bits",
        kind="floating point",
        cases=("Gaussian, doubles, bits",),
        cause=(
            "Outputs of GaussianMechanism.add_noise on doubles do not lie on a grid: on 0 some have a "
            "lowest set bit of 2**-54, on 1 none has. Those of LaplaceMechanism are multiples of 2**-40 "
            "on both. The values keep the claim."
        ),
        script="python_dp_gaussian.py",
        report=(
            "In python-dp 1.1.5 the outputs of GaussianMechanism(epsilon, delta, sensitivity).add_noise "
            "on a double are not rounded to a grid, though Secure_Noise_Generation.pdf of the C++ "
            "library describes rounding for Gaussian noise, and LaplaceMechanism rounds. Of 20,000 "
            "outputs on 0.0 about 1,600 have denominator 2**54; of 20,000 on 1.0 none has. That one "
            "event shows {Gaussian, doubles, bits} at epsilon=1, delta=1e-3 (10⁻³ error probability). "
            "PipelineDP inherits it."
        ),
    ),
)
