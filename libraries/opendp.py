"""OpenDP: every measurement and combinator of `opendp.measurements` and `opendp.combinators`.

The claim of a case is computed from the library: its privacy map at the distance between the inputs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import opendp.prelude as odp
import polars as pl

from dpassay.blackbox.inputs import (
    Category,
    Counts,
    Integer,
    Integers,
    Real,
    Reals,
    Strings,
)
from libraries.cases import Case, Finding, both
from libraries.spaces import with_hunts

DISTRIBUTION = "opendp"
odp.enable_features("contrib", "honest-but-curious")

_N = 6_000
_EXACT = "exact integer samplers, and a map proven in the library's own proof documents"
_GRID = "rounds to a fine grid, adds exact integer noise there, and the map pays for the rounding"

_LIST: dict[str, Any] = {"convert": "list"}
_ROWS: dict[str, Any] = {"space": Integers(length=(0, 5), **_LIST)}  # any of 64 bits
_FEW: dict[str, Any] = {"space": Integers(0, 5, length=(0, 5), **_LIST)}
_SIZED: dict[str, Any] = {"space": Reals(-1, 2, length=5, **_LIST)}
_REAL: dict[str, Any] = {"space": Real(-1e9, 1e9), "relation": "query"}
_WHOLE: dict[str, Any] = {"space": Integer(), "relation": "query", "n": 30_000}
_SCORES: dict[str, Any] = {"space": Reals(-5, 5, length=(2, 4), **_LIST), "relation": "query"}
_KEYS: dict[str, Any] = {"space": Counts(["a", "b", "c"], most=8, keys_at_once=(0, 3))}
#: All vectors of a byte that the domain holds: at most two bits are set.
_LIGHT = [bytes([number]) for number in range(256) if number.bit_count() <= 2]
#: Cases that are hunted too.
_HUNTED: dict[str, dict[str, Any]] = {
    "Laplace, doubles, values": {**_REAL, "n": 30_000},
    "Gaussian, doubles, values": {**_REAL, "n": 30_000},
    "canonical noise, values": _REAL,
    "zCDP as (ε, δ), values": _REAL,
    **dict.fromkeys(("Laplace, integers", "Gaussian, integers", "Geometric, censored"), _WHOLE),
    **dict.fromkeys(("noisy max, pure", "noisy top 2, pure"), _SCORES),
    "median": {"space": Reals(-1, 4, length=(0, 5), **_LIST)},
    "randomized response, 4 answers": {"space": Integer(-1, 5)},  # two of them not listed
    "randomized response, one bit": {"space": Category([False, True])},
    "randomized response, bit vector": {"space": Category(_LIGHT)},
    "thresholded Laplace, integers": {**_KEYS, "n": 100_000},
    "thresholded Gaussian, integers": {**_KEYS, "n": 20_000},
    "approximate Laplace projection": {**_KEYS, "n": 4_000},
    "count by unknown keys": {"space": Strings(longest=10, length=(0, 10)), "n": 100_000},
    "sum, doubles with a NaN row, values": {
        "space": Reals(0, 1, length=(0, 5), **_LIST),
        "outside": True,
    },
    **dict.fromkeys(("mean, values", "variance"), _SIZED),
    **dict.fromkeys(("count", "sum, integers", "two counts"), _ROWS),
    **dict.fromkeys(("count distinct", "histogram, known keys", "b-ary tree"), _FEW),
    "a session, the second query chosen by the first answer": {
        "space": Integers(0, 1, length=(0, 3), **_LIST)
    },
    "amplification by sampling": {"space": Integers(-1, 5, length=8, **_LIST)},
    "selection of a private candidate": _FEW,
    "group by unknown keys": {
        "space": Strings(longest=1, alphabet="abc", length=(0, 6)),
        "n": 10_000,
    },
}


def _text(out: Any) -> str:
    """What a privacy map returned, as a claim of dpassay."""
    if isinstance(out, tuple):
        return f"eps={out[0]!r}, delta={out[1]!r}"
    return f"eps={out!r}"


def _case(name: str, api: str, measurement: Any, pair: Any, d_in: Any, **more: Any) -> Case:
    """A case whose claim is the measurement's own map."""
    out = measurement.map(d_in)
    zcdp = "ZeroConcentrated" in str(measurement.output_measure)
    claim = _text(out)
    if zcdp and isinstance(out, tuple):
        claim = f"rho={out[0]!r}, delta={out[1]!r}"
    elif zcdp:
        claim = f"rho={out!r}"
    if more.get("trap") == "a key that one record brings" and not zcdp:
        claim += " in delta"
    more = {"relation": "add_remove", "n": _N, "sound": _EXACT, **more}
    said = f"{api}(…).map({d_in!r}) = {out!r}, {measurement.output_measure}"
    return Case(name, api, more.pop("call", measurement), pair, claim, said, **more)


def _many(measurement: Any) -> Any:
    """`size` outputs on a number in one call: the coordinates of a vector get noise independently."""
    return lambda data, size: measurement([data] * size)


def cases() -> Iterator[Case]:
    """All cases."""
    return with_hunts(_by_hand(), _HUNTED, n=12_000)


def _by_hand() -> Iterator[Case]:
    yield from _noise()
    yield from _selection()
    yield from _response()
    yield from _thresholds()
    yield from _statistics()
    yield from _combinators()
    yield from _frames()


def _noise() -> Iterator[Case]:
    real, whole = odp.atom_domain(T=float, nan=False), odp.atom_domain(T="i64")
    away, away_i = odp.absolute_distance(T=float), odp.absolute_distance(T="i64")
    each, each_i = odp.vector_domain(real), odp.vector_domain(whole)
    m, one = odp.m, {"relation": "sensitivity_one", "n": 30_000, "vectorised": True}

    def vector(name: str, api: str, make: Any, pair: Any, **more: Any) -> Case:
        """The vector version for the draws, the scalar one for the claim."""
        scalar, many, d_in = make
        more = {**one, **more}
        return _case(name, api, scalar, pair, d_in, call=_many(many), **more)

    l1, l1_i = odp.l1_distance(T=float), odp.l1_distance(T="i64")
    l2, l2_i = odp.l2_distance(T=float), odp.l2_distance(T="i64")
    lap = "opendp.measurements.make_laplace"
    gau = "opendp.measurements.make_gaussian"
    floats = m.make_laplace(real, away, 1.0), m.make_laplace(each, l1, 1.0), 1.0
    yield from both(vector("Laplace, doubles", lap, floats, (0.0, 1.0), sound=_GRID))
    yield from both(
        vector(
            "Laplace, doubles at 1e15",
            lap,
            floats,
            (1e15, 1e15 + 1),
            trap="neighbours far from zero",
            sound=_GRID,
        )
    )
    few = {"relation": "sensitivity_one", "n": 8_000, "sound": _GRID}
    coarse = m.make_laplace(real, away, 1.0, k=-3)
    yield from both(_case("Laplace, doubles on a grid of 1/8", lap, coarse, (0.0, 1.0), 1.0, **few))
    yield _case(
        "Laplace, doubles between grid points",
        lap,
        m.make_laplace(real, away, 0.5, k=0),
        (0.25, 0.75),
        0.5,
        trap="inputs that round to neighbouring points of a coarse grid",
        look="values",
        **few,
    )
    wide = m.make_laplace(real, away, 16.0), m.make_laplace(each, l1, 16.0), 16.0
    yield vector(
        "Laplace, adjacent doubles at 1e17",
        lap,
        wide,
        (1e17, 1e17 + 16),
        trap="adjacent doubles",
        sound=_GRID,
    )
    ints = m.make_laplace(whole, away_i, 1.0), m.make_laplace(each_i, l1_i, 1.0), 1
    yield vector("Laplace, integers", lap, ints, (0, 1))
    yield vector(
        "Laplace, integers beyond 2**53",
        lap,
        ints,
        (2**53, 2**53 + 1),
        trap="integers that one double does not hold",
    )
    yield vector(
        "Laplace, integers at the end of the type",
        lap,
        ints,
        (2**63 - 1, 2**63 - 2),
        trap="noise beyond the largest integer",
    )
    tight = m.make_laplace(whole, away_i, 0.3), m.make_laplace(each_i, l1_i, 0.3), 1
    yield vector("Laplace, integers, small scale", lap, tight, (0, 1))
    geo = "opendp.measurements.make_geometric"
    bounded = {"scale": 1.0, "bounds": (0, 4)}
    yield vector(
        "Geometric, censored",
        geo,
        (m.make_geometric(whole, away_i, **bounded), m.make_geometric(each_i, l1_i, **bounded), 1),
        (0, 1),
        trap="an input at the bound",
    )
    floats = m.make_gaussian(real, away, 1.0), m.make_gaussian(each, l2, 1.0), 1.0
    yield from both(vector("Gaussian, doubles", gau, floats, (0.0, 1.0), sound=_GRID))
    ints = m.make_gaussian(whole, away_i, 1.0), m.make_gaussian(each_i, l2_i, 1.0), 1
    yield vector("Gaussian, integers", gau, ints, (0, 1))
    yield vector(
        "Gaussian, integers beyond 2**53",
        gau,
        ints,
        (2**53, 2**53 + 1),
        trap="integers that one double does not hold",
    )
    canonical = m.make_canonical_noise(real, away, 1.0, (1.0, 1e-3))
    yield from both(
        _case(
            "canonical noise",
            "opendp.measurements.make_canonical_noise",
            canonical,
            (0.0, 1.0),
            1.0,
            relation="sensitivity_one",
            n=8_000,
            sound=_GRID,
        )
    )
    joint = m.make_laplace(each_i, l1_i, 2.0)
    yield _case("Laplace, a vector", lap, joint, ([0, 0], [1, 1]), 2, relation="sensitivity_one")
    joint = m.make_gaussian(each_i, l2_i, 1.0)
    yield _case("Gaussian, a vector", gau, joint, ([0, 0], [1, 0]), 1, relation="sensitivity_one")


def _selection() -> Iterator[Case]:
    m, api = odp.m, "opendp.measurements."
    scores = odp.vector_domain(odp.atom_domain(T=float, nan=False)), odp.linf_distance(T=float)
    pure, zcdp = odp.max_divergence(), odp.zero_concentrated_divergence()
    pair = [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]
    more: dict[str, Any] = {"relation": "sensitivity_one", "group": "selection"}
    for measure, name in ((pure, "pure"), (zcdp, "zCDP")):
        made = m.make_noisy_max(*scores, measure, scale=2.0)
        yield _case(f"noisy max, {name}", f"{api}make_noisy_max", made, pair, 1.0, **more)
        made = m.make_noisy_top_k(*scores, measure, k=2, scale=2.0)
        yield _case(f"noisy top 2, {name}", f"{api}make_noisy_top_k", made, pair, 1.0, **more)
    made = m.make_noisy_max(*scores, pure, scale=2.0, negate=True)
    yield _case("noisy min, pure", f"{api}make_noisy_max", made, pair, 1.0, **more)
    made = m.make_noisy_max(*scores, pure, scale=2.0)
    yield _case(
        "noisy max, scores at 1e15",
        f"{api}make_noisy_max",
        made,
        ([1e15, 1e15, 1e15 + 1], [1e15 + 1, 1e15 + 1, 1e15]),
        1.0,
        trap="scores far from zero",
        **more,
    )
    rows = odp.vector_domain(odp.atom_domain(T=float, nan=False)), odp.symmetric_distance()
    made = m.make_private_quantile(
        *rows, pure, candidates=[0.0, 1.0, 2.0, 3.0], alpha=0.5, scale=1.0
    )
    more["relation"] = "add_remove"
    quantile = f"{api}make_private_quantile"
    yield _case("median", quantile, made, ([0.0, 3.0], [0.0, 3.0, 3.0]), 1, **more)
    yield _case(
        "median, from nothing",
        quantile,
        made,
        ([], [3.0]),
        1,
        trap="an empty data set",
        **more,
    )


def _response() -> Iterator[Case]:
    m, api = odp.m, "opendp.measurements."
    more: dict[str, Any] = {"relation": "replace", "group": "randomized response"}
    made = m.make_randomized_response([0, 1, 2, 3], prob=0.6)
    name = f"{api}make_randomized_response"
    yield _case("randomized response, 4 answers", name, made, (0, 1), 1, **more)
    yield _case(
        "randomized response, an unlisted answer",
        name,
        made,
        (0, 9),
        1,
        trap="an answer that is not listed",
        **more,
    )
    made = m.make_randomized_response_bool(prob=0.75)
    name = f"{api}make_randomized_response_bool"
    yield _case("randomized response, one bit", name, made, (True, False), 1, **more)
    bits = odp.bitvector_domain(max_weight=2), odp.discrete_distance()
    made = m.make_randomized_response_bitvec(*bits, f=0.5)
    yield _case(
        "randomized response, bit vector",
        f"{api}make_randomized_response_bitvec",
        made,
        (b"\x03", b"\x0c"),
        1,
        trap="disjoint vectors of the largest weight",
        **more,
    )


def _thresholds() -> Iterator[Case]:
    m, api = odp.m, "opendp.measurements."
    counts = odp.map_domain(odp.atom_domain(T=str), odp.atom_domain(T="i64"))
    real = odp.map_domain(odp.atom_domain(T=str), odp.atom_domain(T=float, nan=False))
    away, away_f = odp.absolute_distance(T="i64"), odp.absolute_distance(T=float)
    more: dict[str, Any] = {"group": "histogram, unknown keys"}
    new = {"trap": "a key that one record brings", "sound": "", "n": 15_000}
    made = m.make_laplace_threshold(counts, odp.l01inf_distance(away), scale=1.0, threshold=5)
    name = f"{api}make_laplace_threshold"
    inputs: Any = ({}, {"a": 1})
    yield _case("thresholded Laplace, integers", name, made, inputs, (1, 1, 1), **more, **new)
    yield _case(
        "thresholded Laplace, a known key",
        name,
        made,
        ({"a": 5}, {"a": 4}),
        (1, 1, 1),
        trap="a count at the threshold",
        **more,
    )
    made = m.make_laplace_threshold(real, odp.l01inf_distance(away_f), scale=1.0, threshold=4.0)
    yield _case(
        "thresholded Laplace, doubles",
        name,
        made,
        ({}, {"a": 1.0}),
        (1, 1.0, 1.0),
        **more,
        trap="a key that one record brings",
        look="values",
        sound=_GRID,
    )
    made = m.make_gaussian_threshold(counts, odp.l02inf_distance(away), scale=1.0, threshold=2)
    made = odp.c.make_fix_delta(odp.c.make_zCDP_to_approxDP(made), 0.2)
    name = f"{api}make_gaussian_threshold"
    yield _case("thresholded Gaussian, integers", name, made, inputs, (1, 1, 1), **more, **new)
    rows = odp.vector_domain(odp.atom_domain(T=str)), odp.symmetric_distance()
    made = rows >> odp.t.then_count_by() >> m.then_laplace_threshold(scale=1.0, threshold=5)
    yield _case(
        "count by unknown keys",
        "opendp.transformations.make_count_by",
        made,
        (["b"] * 5, ["b"] * 5 + ["a"]),
        1,
        **more,
        **new,
    )
    alp = m.make_alp_queryable(
        counts, odp.l01inf_distance(away), scale=1.0, total_limit=8, value_limit=8
    )

    def ask(data: Any) -> Any:
        sketch = alp(data)
        return sketch("a"), sketch("b")

    yield _case(
        "approximate Laplace projection",
        f"{api}make_alp_queryable",
        alp,
        ({"b": 2}, {"a": 1, "b": 2}),
        (1, 1, 1),
        call=ask,
        **{**more, "n": 4_000},
    )


def _statistics() -> Iterator[Case]:
    t, m = odp.t, odp.m
    real, whole = odp.atom_domain(T=float, nan=False), odp.atom_domain(T="i64")
    rows = odp.vector_domain(whole), odp.symmetric_distance()
    reals = odp.vector_domain(real), odp.symmetric_distance()
    sized = odp.vector_domain(real, size=5), odp.symmetric_distance()
    api = "opendp.transformations."
    more: dict[str, Any] = {"group": "statistic"}

    made = rows >> t.then_count() >> m.then_laplace(1.0)
    yield _case("count", f"{api}make_count", made, ([], [1]), 1, trap="an empty data set", **more)
    made = rows >> t.then_count_distinct() >> m.then_laplace(1.0)
    yield _case("count distinct", f"{api}make_count_distinct", made, ([1, 1], [1, 1, 2]), 1, **more)
    made = rows >> t.then_clamp((0, 10)) >> t.then_sum() >> m.then_laplace(10.0)
    yield _case("sum, integers", f"{api}make_sum", made, ([5], [5, 99]), 1, **more)
    half = 2**62
    made = rows >> t.then_clamp((half, half + 1)) >> t.then_sum() >> m.then_laplace(float(half))
    yield _case(
        "sum, integers that overflow",
        f"{api}make_sum",
        made,
        ([half, half], [half]),
        1,
        trap="a sum beyond the largest integer",
        **more,
    )
    nan = odp.vector_domain(odp.atom_domain(T=float)), odp.symmetric_distance()
    made = (
        nan
        >> t.then_impute_constant(0.5)
        >> t.then_clamp((0.0, 1.0))
        >> t.then_sum()
        >> m.then_laplace(1.0)
    )
    yield from both(
        _case(
            "sum, doubles with a NaN row",
            f"{api}make_sum",
            made,
            ([0.25], [0.25, float("nan")]),
            1,
            trap="a NaN row",
            **more,
        )
    )
    made = reals >> t.then_clamp((0.0, 1.0)) >> t.then_sum() >> m.then_laplace(1.0)
    yield from both(_case("sum, doubles", f"{api}make_sum", made, ([0.5], [0.5, 1.0]), 1, **more))
    more["relation"] = "replace"
    for low, name in ((0.0, ""), (1e9, " at 1e9")):
        made = sized >> t.then_clamp((low, low + 1)) >> t.then_mean() >> m.then_laplace(0.2)
        yield from both(
            _case(
                f"mean{name}",
                f"{api}make_mean",
                made,
                ([low] * 5, [low] * 4 + [low + 1]),
                2,
                trap="bounds far from zero" if low else "",
                **more,
            )
        )
        made = sized >> t.then_clamp((low, low + 1)) >> t.then_variance() >> m.then_laplace(0.2)
        yield _case(
            f"variance{name}",
            f"{api}make_variance",
            made,
            ([low] * 5, [low] * 4 + [low + 1]),
            2,
            trap="bounds far from zero" if low else "",
            look="values",
            **more,
        )
    more["relation"] = "add_remove"
    made = rows >> t.then_count_by_categories([1, 2]) >> m.then_laplace(1.0)
    yield _case(
        "histogram, known keys",
        f"{api}make_count_by_categories",
        made,
        ([1], [1, 7]),
        1,
        trap="a key that is not listed",
        **more,
    )
    made = (
        rows
        >> t.then_count_by_categories([1, 2, 3])
        >> t.then_b_ary_tree(leaf_count=4, branching_factor=2)
        >> m.then_laplace(3.0)
    )
    yield _case("b-ary tree", f"{api}make_b_ary_tree", made, ([1], [1, 2]), 1, **more)


def _combinators() -> Iterator[Case]:
    c, t, m = odp.c, odp.t, odp.m
    rows = odp.vector_domain(odp.atom_domain(T="i64")), odp.symmetric_distance()
    count = rows >> t.then_count() >> m.then_laplace(1.0)
    real, away = odp.atom_domain(T=float, nan=False), odp.absolute_distance(T=float)
    api = "opendp.combinators."
    more: dict[str, Any] = {"group": "combinator"}
    yield _case(
        "two counts",
        f"{api}make_composition",
        c.make_composition([count, count]),
        ([], [1]),
        1,
        **more,
    )
    session = c.make_adaptive_composition(
        *rows, output_measure=odp.max_divergence(), d_in=1, d_mids=[0.5, 0.5]
    )
    half = rows >> t.then_count() >> m.then_laplace(2.0)
    ones = rows >> t.then_clamp((0, 1)) >> t.then_sum() >> m.then_laplace(2.0)

    def transcript(data: Any) -> Any:
        """The answers of a session; what is asked second depends on the first answer."""
        ask = session(data)
        first = ask(half)
        return first, ask(ones if first > 1 else half)

    yield _case(
        "a session, the second query chosen by the first answer",
        f"{api}make_adaptive_composition",
        session,
        ([1], [1, 1]),
        1,
        call=transcript,
        **more,
    )
    gaussian = m.make_gaussian(real, away, 1.0)
    made = c.make_fix_delta(c.make_zCDP_to_approxDP(gaussian), 1e-3)
    yield from both(
        _case(
            "zCDP as (ε, δ)",
            f"{api}make_zCDP_to_approxDP",
            made,
            (0.0, 1.0),
            1.0,
            **{**more, "relation": "sensitivity_one"},
        )
    )
    sized = odp.vector_domain(odp.atom_domain(T="i64"), size=2), odp.symmetric_distance()
    total = sized >> t.then_clamp((0, 4)) >> t.then_sum() >> m.then_laplace(2.0)
    made = c.make_population_amplification(total, population_size=8)

    def sampled(population: Any, made: Any = made) -> Any:
        return made(random.sample(population, 2))

    yield _case(
        "amplification by sampling",
        f"{api}make_population_amplification",
        made,
        ([0] * 8, [0] * 7 + [4]),
        2,
        call=sampled,
        **{**more, "relation": "replace"},
    )

    def scored(data: Any) -> Any:
        noisy = count(data)
        return float(noisy), noisy

    scorer = m.make_user_measurement(
        *rows, odp.max_divergence(), scored, count.map, TO="(f64, ExtrinsicObject)"
    )
    made = c.make_select_private_candidate(scorer, stop_probability=0.3, threshold=2.0)
    yield _case(
        "selection of a private candidate",
        f"{api}make_select_private_candidate",
        made,
        ([], [1]),
        1,
        **more,
    )


def _frames() -> Iterator[Case]:
    """Queries on Polars frames."""
    import warnings

    warnings.filterwarnings("ignore", category=FutureWarning)
    api = "opendp.measurements.make_private_lazyframe"
    domain = odp.lazyframe_domain([odp.series_domain("k", odp.atom_domain(T=str))])
    schema = pl.LazyFrame({"k": ["a"]})
    pure = odp.max_divergence()
    grouped = schema.group_by("k").agg(odp.len())
    more: dict[str, Any] = {"group": "data frame", "n": 2_500}

    def rows(release: Any) -> Any:
        return lambda keys: sorted(
            release(pl.LazyFrame({"k": keys}, schema={"k": pl.String})).collect().rows()
        )

    made = odp.m.make_private_lazyframe(
        domain, odp.symmetric_distance(), odp.approximate(pure), grouped, 1.0, 2
    )
    yield _case(
        "group by unknown keys",
        api,
        made,
        (["b"] * 4, ["b"] * 4 + ["a"]),
        1,
        call=rows(made),
        trap="a key that one record brings",
        **{**more, "sound": ""},
    )
    made = odp.m.make_private_lazyframe(
        domain, odp.symmetric_distance(), pure, schema.select(odp.len()), 1.0
    )
    yield _case("length of a frame", api, made, ([], ["a"]), 1, call=rows(made), **more)


FINDINGS = (
    Finding(
        title="Thresholded noise releases a key at the threshold, and δ counts only beyond it",
        kind="violation",
        cases=(
            "thresholded Laplace, integers",
            "thresholded Gaussian, integers",
            "count by unknown keys",
        ),
        cause=(
            "A key is released if its noisy count is at least the threshold, while δ is computed from "
            "the tail strictly beyond it: the mass at the threshold is missing. With integer Laplace "
            "noise of scale 1 the true δ is e times the reported one."
        ),
        known="https://github.com/opendp/opendp/issues/2922",
        script="opendp_threshold.py",
    ),
)
