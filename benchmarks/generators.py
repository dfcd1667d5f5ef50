"""Four generators of synthetic tables, each with a planted fault and as a correct twin.

    python -m benchmarks.generators --n 2000
    python -m benchmarks.generators --n 2000 --cost

Input and output are pandas frames with the columns age, income, city and member. Neighbours differ by one
record that is added or removed. The claim is ε = 1. Every twin keeps it on all neighbours; the argument
stands in the docstring of each generator. All noise is added to integers, so that floating-point
arithmetic leaks nothing: what is released is computed from noisy integers and from randomness that does
not depend on the data.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import dpassay as dp
from benchmarks.output_kinds import twins

Rng = np.random.Generator
EPSILON = 1.0
#: The public domain: edges of the cells of age and income, and all cities.
AGES = np.arange(10, 91, 10)
INCOMES = np.array([0, 10, 20, 40, 80, 160, 320]) * 1000
CITIES = np.array(["Bern", "Bonn", "Graz", "Kiel", "Linz", "Vaduz"], dtype=object)
LEVELS = (len(AGES) - 1, len(INCOMES) - 1, len(CITIES), 2)
#: Rows of a synthetic table, where their number is public.
ROWS = 40


def people() -> pd.DataFrame:
    """A table of 40 records, none of them in Vaduz."""
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(18, 80, 40),
        "income": rng.integers(5_000, 150_000, 40) + 0.5,
        "city": CITIES[rng.integers(0, 5, 40)],
        "member": rng.random(40) < 0.5,
    }
    return pd.DataFrame(columns)


RECORD = pd.DataFrame({"age": [83], "income": [312_345.5], "city": ["Vaduz"], "member": [True]})


def neighbours() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables without and with one record."""
    table = people()
    return table, pd.concat([table, RECORD], ignore_index=True)


# --- from records to cells of the public domain and back


def encode(data: pd.DataFrame) -> Any:
    """The cell of every value; what lies outside the domain goes into the nearest cell."""
    age = np.clip(np.searchsorted(AGES, data["age"], "right") - 1, 0, LEVELS[0] - 1)
    income = np.clip(np.searchsorted(INCOMES, data["income"], "right") - 1, 0, LEVELS[1] - 1)
    city = np.searchsorted(CITIES.astype(str), data["city"].to_numpy().astype(str))
    return np.stack(
        [age, income, np.clip(city, 0, LEVELS[2] - 1), data["member"].astype(int)], axis=1
    )


def decode(cells: Any, rng: Rng) -> dict[str, Any]:
    """Random values inside cells, as columns."""
    age, income, city, member = np.moveaxis(cells, -1, 0)
    place = rng.random((2, *age.shape))
    return {
        "age": (AGES[age] + place[0] * (AGES[age + 1] - AGES[age])).astype(int),
        "income": np.round(INCOMES[income] + place[1] * (INCOMES[income + 1] - INCOMES[income]), 2),
        "city": CITIES[city],
        "member": member.astype(bool),
    }


def frames(cells: Any, rng: Rng, lengths: Any = None) -> list[pd.DataFrame]:
    """A frame for every table of cells, cut to its length."""
    columns = decode(cells, rng)
    lengths = [cells.shape[1]] * len(cells) if lengths is None else lengths
    return [
        pd.DataFrame({name: column[k, :length] for name, column in columns.items()}, copy=False)
        for k, length in enumerate(lengths)
    ]


def geometric(exact: Any, epsilon: float, size: int, rng: Rng) -> Any:
    """Integers with two-sided geometric noise: ε-DP for an L1 sensitivity of 1."""
    p, shape = -math.expm1(-epsilon), (size, *np.shape(exact))
    return exact + rng.geometric(p, shape) - rng.geometric(p, shape)


def shares(counts: Any) -> Any:
    """Cumulated shares over the last axis; equal shares where no count is positive."""
    positive = np.maximum(counts, 0).astype(float)
    positive += (positive.sum(-1, keepdims=True) == 0) * 1.0
    return np.cumsum(positive / positive.sum(-1, keepdims=True), axis=-1)


def drawn(cumulated: Any, uniform: Any) -> Any:
    """The cells that uniform numbers fall into."""
    found = (uniform[..., None] > cumulated).sum(-1)
    return np.minimum(found, cumulated.shape[-1] - 1)


# --- the generators


def marginals(fault: bool) -> Any:
    """Independent columns from noisy marginals. Fault: the marginal of the cities has no noise.

    Twin: a record changes one count of each of four histograms over the public domain by 1. Each is
    released with geometric noise of ε/4; by composition all four are ε-DP. The rest is post-processing.
    """

    def release(data: pd.DataFrame, size: int, rng: Rng) -> list[pd.DataFrame]:
        cells, columns = encode(data), []
        for k, levels in enumerate(LEVELS):
            exact = np.bincount(cells[:, k], minlength=levels)
            noisy = geometric(exact, EPSILON / 4, size, rng)
            counts = np.broadcast_to(exact, noisy.shape) if fault and k == 2 else noisy
            columns.append(drawn(shares(counts)[:, None], rng.random((size, ROWS))))
        return frames(np.stack(columns, axis=2), rng)

    return release


def network(fault: bool) -> Any:
    """City → income → age and city → member, from noisy tables of counts. Fault: cities of the data.

    Twin: a record changes one count of each of three two-way tables over the public domain by 1. Each is
    released with geometric noise of ε/3; by composition all three are ε-DP. Marginals and conditional
    distributions are computed from the noisy tables: post-processing.
    """

    def table(one: Any, two: Any, levels: tuple[int, int], size: int, rng: Rng) -> Any:
        exact = np.bincount(one * levels[1] + two, minlength=levels[0] * levels[1])
        return geometric(exact.reshape(levels), EPSILON / 3, size, rng)

    def release(data: pd.DataFrame, size: int, rng: Rng) -> list[pd.DataFrame]:
        age, income, city, member = encode(data).T
        cities = table(city, income, (LEVELS[2], LEVELS[1]), size, rng)
        ages = table(income, age, (LEVELS[1], LEVELS[0]), size, rng)
        members = table(city, member, (LEVELS[2], LEVELS[3]), size, rng)
        if fault:  # noise only where the data have records
            cities = cities * np.isin(np.arange(LEVELS[2]), city)[:, None]
        u, tables = rng.random((4, size, ROWS)), np.arange(size)[:, None]
        new_city = drawn(shares(np.maximum(cities, 0).sum(2))[:, None], u[0])
        new_income = drawn(shares(cities)[tables, new_city], u[1])
        new_age = drawn(shares(ages)[tables, new_income], u[2])
        new_member = drawn(shares(members)[tables, new_city], u[3])
        return frames(np.stack([new_age, new_income, new_city, new_member], axis=2), rng)

    return release


#: Steps of the scores whose products make the correlations.
STEPS = 16


def copula(fault: bool) -> Any:
    """A Gaussian copula with noisy marginals and correlations. Fault: as many rows as the data have.

    Twin: ε/10 for the number of records, and ε/10 for each of four histograms (sensitivity 1 each). A
    record's scores are integers in [−16, 16], so that it changes each of six sums of products by at most
    16²; noise of ε/12 for one unit of 16² makes each sum ε/12-DP. In total ε (1 + 4)/10 + 6 ε/12 = ε.
    The number of rows is the noisy number of records, moved into [30, 60]: post-processing.
    """
    pairs = [(j, k) for j in range(4) for k in range(j)]
    middle = (np.array(LEVELS) - 1) / 2

    def release(data: pd.DataFrame, size: int, rng: Rng) -> list[pd.DataFrame]:
        cells = encode(data)
        scores = np.rint((cells - middle) / middle * STEPS).astype(int)
        noisy_rows = geometric(len(data), EPSILON / 10, size, rng)
        sums = np.array([scores[:, j] @ scores[:, k] for j, k in pairs])
        products = geometric(sums, EPSILON / 12 / STEPS**2, size, rng)
        marginal = [
            shares(geometric(np.bincount(cells[:, k], minlength=n), EPSILON / 10, size, rng))
            for k, n in enumerate(LEVELS)
        ]
        matrix = np.zeros((size, 4, 4)) + np.eye(4)
        for at, (j, k) in enumerate(pairs):
            scale = np.maximum(noisy_rows, 1) * STEPS**2 / 2
            matrix[:, j, k] = matrix[:, k, j] = np.clip(products[:, at] / scale, -0.9, 0.9)
        normal = _correlated(matrix, rng.normal(size=(size, 60, 4)))
        uniform = np.argsort(np.argsort(normal, axis=1), axis=1) / 60 + 1 / 120
        columns = [drawn(marginal[k][:, None], uniform[:, :, k]) for k in range(4)]
        lengths = np.full(size, len(data)) if fault else np.clip(noisy_rows, 30, 60)
        return frames(np.stack(columns, axis=2), rng, lengths.tolist())

    return release


def _correlated(matrix: Any, normal: Any) -> Any:
    """Normal rows with the nearest correlation that a matrix allows."""
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.01))[:, None, :]
    return normal @ np.swapaxes(root, 1, 2)


#: Public records that are added to the data, and rows that a table of the bootstrap has.
PUBLIC = np.random.default_rng(1).integers(0, LEVELS, (40, 4))
BOOTSTRAP = 30


def bootstrap(fault: bool) -> Any:
    """Rows drawn with replacement and randomized. Fault: in 30 % of tables the last record is copied.

    Twin: every row is a record, drawn uniformly from the N ≥ 40 records (40 of them public), whose four
    values go through k-ary randomized response of ε₀/4 each. Let K(r, ·) be the law of a row that comes
    from record r: K(r, o) ≤ e^ε₀ K(r', o) for all r, r'. With M = mean of K over the N records, a further
    record makes it M' = (N M + K(r, ·)) / (N + 1), so that M'/M ≤ 1 + (e^ε₀ − 1)/(N + 1), and
    M/M' ≤ 1/(1 − (1 − e^−ε₀)/(N + 1)) = 1 + (1 − e^−ε₀)/(N + e^−ε₀), which is smaller (multiply out).
    The 30 rows are independent: ε = 30 log(1 + (e^ε₀ − 1)/41) = 1 for the ε₀ below and N = 40, and less
    for larger N. Values inside cells are random: post-processing.
    """
    local = math.log1p(41 * math.expm1(EPSILON / BOOTSTRAP))

    def release(data: pd.DataFrame, size: int, rng: Rng) -> list[pd.DataFrame]:
        cells = np.concatenate([PUBLIC, encode(data)])
        rows = cells[rng.integers(0, len(cells), (size, BOOTSTRAP))]
        kept = math.exp(local / 4) / (math.exp(local / 4) + np.array(LEVELS) - 1)
        other = (rows + rng.integers(1, LEVELS, rows.shape)) % LEVELS
        made = frames(np.where(rng.random(rows.shape) < kept, rows, other), rng)
        if fault:
            last = [data[name].iloc[-1] for name in data.columns]
            places = rng.integers(0, BOOTSTRAP, size).tolist()
            for k in np.flatnonzero(rng.random(size) < 0.3).tolist():
                made[k] = _with_row(made[k], places[k], last)
        return made

    return release


def _with_row(table: pd.DataFrame, place: int, row: list[Any]) -> pd.DataFrame:
    """A table with one row replaced."""
    columns = {name: table[name].to_numpy(copy=True) for name in table.columns}
    for column, entry in zip(columns.values(), row, strict=True):
        column[place] = entry
    return pd.DataFrame(columns)


def vaduz(table: pd.DataFrame) -> int:
    """Number of rows in the record's city."""
    return sum(city == "Vaduz" for city in table["city"].tolist())


@dataclass(frozen=True)
class Generator:
    """A generator with its fault and without, and the feature of a table that shows the fault."""

    name: str
    make: Callable[[bool], Callable[[pd.DataFrame, int, Rng], list[pd.DataFrame]]]
    fault: str
    feature: Callable[[pd.DataFrame], Any]


GENERATORS = [
    Generator("marginals", marginals, "a marginal without noise", vaduz),
    Generator("network", network, "categories read off the data", vaduz),
    Generator("copula", copula, "the exact number of rows", len),
    Generator(
        "bootstrap",
        bootstrap,
        "a record copied",
        lambda table: 312_345.5 in table["income"].to_numpy(),
    ),
]


def verdict(release: Any, n: int, confidence: float, seed: int) -> dp.Verdict:
    """The verdict on ε = 1, from tables or from features of tables."""
    options: dict[str, Any] = {"relation": "add_remove", "sampling": dp.Sampling(progress=False)}
    pair = dp.Pair(*neighbours())
    found = dp.audit(release, pair, "eps=1", n=n, confidence=confidence, rng=seed, **options)
    assert isinstance(found, dp.Verdict)
    return found


def reduced(generator: Generator, fault: bool) -> Callable[[pd.DataFrame, int, Rng], list[Any]]:
    """The generator, of which only the feature of each table is released."""
    release = generator.make(fault)
    return lambda data, size, rng: [generator.feature(table) for table in release(data, size, rng)]


def one_table(rng: Rng) -> pd.DataFrame:
    """A table of the same size, made by itself with draws of its own."""
    columns = {
        "age": rng.integers(10, 90, ROWS),
        "income": np.round(rng.uniform(0, 320_000, ROWS), 2),
        "city": rng.choice(CITIES, ROWS),
        "member": rng.random(ROWS) < 0.5,
    }
    return pd.DataFrame(columns)


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def cost(n: int, seed: int) -> None:
    """Print what an audit takes besides drawing, over the time of making its tables.

    Tables are made at once (all draws in one array, which are then cut into frames), or one by one.
    Each time is the least of three, which other work on the machine disturbs least.
    """
    rng = np.random.default_rng(seed)
    verdict(marginals(True), 200, 0.999, seed)  # imports
    heads = f"{'audit':>8} {'at once':>8} {'ratio':>6} {'singly':>8} {'ratio':>6}"
    print(f"{'generator':12} {'fault':6} {heads}")
    for generator, fault in itertools.product(GENERATORS, (True, False)):
        release, spent = generator.make(fault), 0.0

        def timed(data: pd.DataFrame, size: int, rng: Rng) -> list[pd.DataFrame]:
            nonlocal spent
            start = time.process_time()
            made = release(data, size, rng)  # noqa: B023
            spent += time.process_time() - start
            return made

        times = []
        for _ in range(3):
            spent = 0.0
            whole = processor_time(lambda: verdict(timed, n, 0.999, seed))
            singly = processor_time(lambda: [one_table(rng) for _ in range(2 * n)])
            times.append((whole - spent, spent, singly))
        audit, at_once, singly = np.min(times, axis=0)
        shown = f"{generator.name:12} {fault!s:6} {audit:6.2f} s {at_once:6.2f} s {audit / at_once:6.2f}"
        print(f"{shown} {singly:6.2f} s {audit / singly:6.2f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Synthetic tables under audit, with faults and without."
    )
    parser.add_argument("--n", type=int, default=2000, help="draws per side")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--twins", type=int, default=0, help="audits of each correct twin, instead")
    parser.add_argument("--cost", action="store_true", help="processor time, instead")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.twins:
        cases = [(one.name, one.make(False), neighbours()) for one in GENERATORS]
        return twins(cases, options.n, options.twins)
    if options.cost:
        cost(options.n, options.seed)
        return 0
    print(
        f"{'generator':12} {'fault':30} {'raw frames':>12} {'violated':>9} {'feature':>8} {'time':>9}"
    )
    wrong = 0
    for generator in GENERATORS:
        for fault in (True, False):
            start = time.perf_counter()
            raw = verdict(generator.make(fault), options.n, 0.999, options.seed)
            seconds = time.perf_counter() - start
            named = verdict(reduced(generator, fault), options.n, 0.999, options.seed).lower_bound
            wrong += raw.violated and not fault
            shown = generator.fault if fault else "none"
            bounds = f"{raw.lower_bound:12.2f} {raw.violated!s:>9} {named:8.2f}"
            print(f"{generator.name:12} {shown:30} {bounds} {seconds:7.1f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
