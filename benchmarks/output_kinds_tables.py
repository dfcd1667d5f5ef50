"""Kinds of output that are frames, synthetic tables and fitted models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from benchmarks.output_kinds_base import (
    Rng,
    between,
    count,
    kind,
    letters,
    sample,
    shuffled,
    value,
)

CITIES = ["Bern", "Bonn", "Graz", "Kiel", "Linz", "Oslo", "Pisa", "Riga"]
PLAIN = [city for city in CITIES if city != "Oslo"]

# --- frames


def amounts(size: int, rng: Rng) -> Any:
    """Random amounts of money."""
    return rng.integers(0, 10**7, size) / 100


def cities(size: int, rng: Rng, pool: Any = CITIES) -> list[str]:
    """Random cities."""
    return [pool[k] for k in rng.integers(0, len(pool), size).tolist()]


def dates(size: int, first: str, last: str, rng: Rng) -> Any:
    """Random days of a period."""
    start, end = np.array([first, last], dtype="datetime64[D]")
    return (start + rng.integers(0, (end - start).astype(int), size)).astype("datetime64[s]")


@kind(lambda out: str(out["day"].min())[:4])
def frame_earliest_date(bit: int, rng: Rng) -> Any:
    """Year of the earliest date of a frame."""
    days = dates(8, "2016-01-01", "2024-01-01", rng)
    if bit:
        days[rng.integers(0, 8)] = dates(1, "2015-01-01", "2016-01-01", rng)[0]
    return pd.DataFrame({"day": days, "amount": amounts(8, rng)})


@kind(lambda out: out["at"][0].day_of_week >= 5)
def frame_weekday(bit: int, rng: Rng) -> Any:
    """Whether the first date of a frame is on a weekend."""
    days = dates(3, "2010-01-04", "2024-01-01", rng).astype("datetime64[D]")
    days[0] += (5 if bit else 0) + rng.integers(0, 2) - (days[0].astype(int) + 3) % 7
    return pd.DataFrame({"at": days.astype("datetime64[s]"), "amount": amounts(3, rng)})


@kind(lambda out: out["visits"][0], noise=count)
def frame_one_row(number: int, rng: Rng) -> Any:
    """A number in a frame of one row with text and numbers."""
    row = {
        "city": cities(1, rng),
        "visits": [20 + number],
        "mean": amounts(1, rng),
        "run": [letters(6, rng)],
    }
    return pd.DataFrame(row)


@kind(lambda out: out["city"].tolist().count("Oslo"), noise=count)
def frame_rows_of_a_city(number: int, rng: Rng) -> Any:
    """Number of rows of a frame with a value."""
    times = between(0, 3 + number, 20)
    names = shuffled(["Oslo"] * times + cities(20 - times, rng, PLAIN), rng)
    return pd.DataFrame({"city": names, "age": rng.integers(18, 90, 20), "fee": amounts(20, rng)})


def oslo_total(table: Any) -> int:
    """Sum of the fees in Oslo."""
    rows = zip(table["city"].tolist(), table["fee"].tolist(), strict=True)
    return sum(fee for city, fee in rows if city == "Oslo")


@kind(oslo_total, noise=count)
def frame_group_sum(number: int, rng: Rng) -> Any:
    """Sum of a column over the rows with a value."""
    names, fees = shuffled(["Oslo"] * 3 + cities(9, rng, PLAIN), rng), rng.integers(0, 100, 12)
    mine = np.flatnonzero(np.array(names) == "Oslo")
    fees[mine[0]] += 150 + number - fees[mine].sum()
    return pd.DataFrame({"city": names, "fee": fees})


@kind(len, noise=count)
def frame_row_count(number: int, rng: Rng) -> Any:
    """Number of rows of a frame."""
    size = between(1, 15 + number, 40)
    return pd.DataFrame({"age": rng.integers(18, 90, size), "fee": amounts(size, rng)})


@kind(lambda out: int(np.isnan(out["fee"].to_numpy()).sum()), noise=count)
def frame_missing_numbers(number: int, rng: Rng) -> Any:
    """Number of NaN in a column of a frame."""
    fees = amounts(15, rng)
    fees[rng.permutation(15)[: between(0, 4 + number, 15)]] = np.nan
    return pd.DataFrame({"age": rng.integers(18, 90, 15), "fee": fees})


@kind(lambda out: bool(out["note"].isna().any()))
def frame_missing_text(bit: int, rng: Rng) -> Any:
    """Whether a text is missing in a frame."""
    notes: list[Any] = [letters(4, rng) for _ in range(6)]
    if bit:
        notes[int(rng.integers(0, 6))] = None
    return pd.DataFrame({"note": notes, "fee": amounts(6, rng)})


@kind(lambda out: "Oslo" in set(out["city"]))
def frame_rare_category(bit: int, rng: Rng) -> Any:
    """A category that occurs only with the record."""
    names = cities(12, rng, PLAIN)
    if bit:
        names[int(rng.integers(0, 12))] = "Oslo"
    return pd.DataFrame({"city": names, "age": rng.integers(18, 90, 12)})


@kind(lambda out: out["Oslo"], noise=value)
def series_by_label(number: float, rng: Rng) -> Any:
    """Value at a label of a series in random order."""
    means = np.round(rng.normal(3, 4, 8), 3)
    means[CITIES.index("Oslo")] = 3 + number
    order = rng.permutation(8)
    return pd.Series(means[order], index=[CITIES[k] for k in order.tolist()])


@kind(lambda out: out.filter(pl.col("name") == "total")["n"][0], noise=count)
def polars_row(number: int, rng: Rng) -> Any:
    """A number in the row with a name, of a polars frame in random order."""
    names = shuffled(["total", *cities(7, rng)], rng)
    numbers = rng.integers(0, 80, 8)
    numbers[names.index("total")] = 40 + number
    return pl.DataFrame({"name": names, "n": numbers, "mean": rng.normal(size=8)})


@kind(lambda out: out["city"].n_unique(), noise=count)
def polars_distinct(number: int, rng: Rng) -> Any:
    """Number of distinct values in a column of a polars frame."""
    used = sample(CITIES, between(1, 4 + number, 8), rng)
    names = shuffled(used + cities(15 - len(used), rng, used), rng)
    return pl.DataFrame({"city": names, "fee": amounts(15, rng)})


@kind(lambda out: out["n"][2].as_py(), noise=count)
def arrow_table(number: int, rng: Rng) -> Any:
    """A number in an Arrow table."""
    numbers = rng.integers(0, 80, 5)
    numbers[2] = 40 + number
    return pa.table({"city": cities(5, rng), "n": numbers, "fee": amounts(5, rng)})


# --- the count of a record in a synthetic table of 50 rows and 3 columns, in four forms

RECORD = (2, 1, 3)
LEVELS = (4, 3, 5)
PEOPLE = ((0, 0, 0), (1, 2, 4), (3, 1, 1))
#: Tables that differ by one record, and how often it occurs: sensitivity 1.
TABLES: dict[str, Any] = {
    "pair": (PEOPLE, (*PEOPLE, RECORD)),
    "query": lambda rows: rows.count(RECORD),
    "noise": count,
}


def occurrences(table: Any) -> int:
    """How often the record occurs in an array of rows."""
    return int((table.reshape(-1, 3) == RECORD).all(1).sum())


@kind(occurrences, batch=True, **TABLES)
def table_as_array(numbers: Any, rng: Rng) -> Any:
    """Count of a record in a table, as an array of rows."""
    out = rng.integers(0, LEVELS, (len(numbers), 50, 3))
    out[(out == RECORD).all(2), 0] = 1
    out[np.arange(50) < np.clip(2 + numbers, 0, 50)[:, None]] = RECORD
    order = rng.permuted(np.tile(np.arange(50), (len(numbers), 1)), axis=1)
    return np.take_along_axis(out, order[:, :, None], 1)


@kind(occurrences, batch=True, **TABLES)
def table_flattened(numbers: Any, rng: Rng) -> Any:
    """Count of a record in a table, as a vector."""
    return table_as_array(numbers, rng).reshape(len(numbers), -1)


@kind(lambda out: occurrences(out.to_numpy()), **TABLES)
def table_as_frame(number: int, rng: Rng) -> Any:
    """Count of a record in a table, as a frame."""
    return pd.DataFrame(table_as_array(np.array([number]), rng)[0], columns=list("abc"))


@kind(lambda out: out.count(dict(zip("abc", RECORD, strict=True))), **TABLES)
def table_as_records(number: int, rng: Rng) -> Any:
    """Count of a record in a table, as a list of dictionaries."""
    rows = table_as_array(np.array([number]), rng)[0].tolist()
    return [dict(zip("abc", row, strict=True)) for row in rows]


# --- fitted models


@kind(lambda out: out.coef_[0, 1])
def model_coefficient(bit: int, rng: Rng) -> Any:
    """A coefficient of a logistic regression."""
    x = rng.normal(size=(30, 3))
    y = x[:, 1] * (2 if bit else -2) + rng.normal(size=30) > 0
    y[:2] = 0, 1
    return LogisticRegression(solver="newton-cholesky").fit(x, y)


@kind(lambda out: out.get_n_leaves(), noise=count)
def model_leaves(number: int, rng: Rng) -> Any:
    """Number of leaves of a decision tree."""
    steps = between(2, 5 + number, 15)
    x = np.repeat(rng.random(steps).cumsum() + 0.01 * np.arange(steps), 3)
    return DecisionTreeClassifier(random_state=0).fit(
        x[:, None], np.repeat(np.arange(steps) % 2, 3)
    )
