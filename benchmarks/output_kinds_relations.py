"""Kinds of output whose leak is a relation between parts, or a class of values."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.output_kinds_base import Rng, between, count, kind, letters, sample, value

NAMES = [a + b for a in ("Ana", "Ben", "Cai", "Dan", "Eva", "Fay") for b in ("", "is", "na", "to")]


@kind(lambda out: int((out["start"] > out["end"]).sum()), noise=count)
def columns_compared(number: int, rng: Rng) -> Any:
    """Number of rows of a frame in which one column is larger than another."""
    low = rng.integers(0, 900, 24)
    high = low + rng.integers(1, 100, 24)
    swapped = rng.permutation(24) < between(0, 8 + number, 24)
    start, end = np.where(swapped, high, low), np.where(swapped, low, high)
    return pd.DataFrame({"start": start, "end": end})


@kind(lambda out: sum(letter.isdigit() for letter in out), noise=count)
def text_digits(number: int, rng: Rng) -> Any:
    """Number of digits in a text of fixed length."""
    text, places = list(letters(30, rng)), rng.permutation(30)[: between(0, 10 + number, 30)]
    for place in places.tolist():
        text[place] = str(int(rng.integers(0, 10)))
    return "".join(text)


@kind(lambda out: max(out, key=out.get) == "c")
def largest_key(bit: int, rng: Rng) -> Any:
    """Which key of a histogram has the largest count."""
    counts = sorted(sample(range(10, 60), 6, rng))
    keys = sample(["a", "b", "d", "e", "f"], 5, rng)
    keys.insert(5 if bit else int(rng.integers(0, 5)), "c")
    return dict(zip(keys, counts, strict=True))


@kind(lambda out: round((out[-1] - out[0]) * 64), noise=value)
def series_net_change(number: float, rng: Rng) -> Any:
    """Last value less the first, of a series with a random level."""
    inner = rng.normal(scale=3.0, size=22)
    start = int(rng.integers(-640, 640)) / 64
    return [start, *(start + inner).tolist(), start + number]


@kind(lambda out: max(Counter(itertools.chain(*out)).values()), noise=count)
def graph_largest_degree(number: int, rng: Rng) -> Any:
    """Largest degree in a graph with random labels."""
    names = rng.permutation(1000).tolist()
    many = between(3, 10 + number, 20)
    star = [(names[0], names[k]) for k in range(1, many + 1)]
    rest = [(names[30 + 2 * k], names[31 + 2 * k]) for k in range(24 - many)]
    return sample(star + rest, 24, rng)


@kind(lambda out: max(out.values()), noise=count)
def histogram_of_strangers(number: int, rng: Rng) -> Any:
    """Largest count of a histogram whose keys are drawn anew."""
    keys = [letters(6, rng) for _ in range(8)]
    others = [int(x) for x in rng.integers(1, 20, 7)]
    counts = sample([between(20, 40 + number, 90), *others], 8, rng)
    return dict(zip(keys, counts, strict=True))


@kind(lambda out: max(len(list(same)) for _, same in itertools.groupby(out)), noise=count)
def longest_run(number: int, rng: Rng) -> Any:
    """Longest run of equal items in a list."""
    many = between(2, 8 + number, 16)
    items = [int(x) for x in rng.permutation(26)[:20]]
    place = int(rng.integers(0, 20))
    return [
        *(chr(97 + k) for k in items[:place]),
        *[chr(97 + items[place])] * many,
        *(chr(97 + k) for k in items[place + 1 :]),
    ][:24]


@kind(lambda out: int(out.duplicated().sum()), noise=count)
def frame_duplicate_rows(number: int, rng: Rng) -> Any:
    """Number of rows of a frame that occur earlier in it."""
    again = between(0, 8 + number, 16)
    codes = rng.permutation(10_000)[: 30 - again]
    rows = rng.permutation(np.concatenate([codes, codes[:again]]))
    return pd.DataFrame({"one": rows // 100, "two": rows % 100})


@kind(lambda out: round(64 * out["cost"] / out["income"]), noise=value)
def ratio_of_two(number: float, rng: Rng) -> Any:
    """Ratio of two numbers that share a random scale."""
    scale = float(2 ** rng.integers(0, 12))
    return {"cost": scale * (16 + max(-15.0, min(number, 15.0))), "income": scale}


@kind(lambda out: sum("email" not in record for record in out), noise=count)
def records_lacking_a_field(number: int, rng: Rng) -> Any:
    """Number of records in a list that lack a field."""
    lacking = rng.permutation(20) < between(0, 8 + number, 20)
    return [
        {"id": int(rng.integers(0, 10**6)), **({} if none else {"email": letters(8, rng)})}
        for none in lacking.tolist()
    ]


@kind(lambda out: sum(x == int(x) for x in out), noise=count)
def whole_numbers(number: int, rng: Rng) -> Any:
    """Number of whole numbers in a list of floats."""
    x = rng.integers(1, 1000, 20) + 0.25 * rng.integers(1, 4, 20)
    whole = rng.permutation(20) < between(0, 8 + number, 20)
    return np.where(whole, np.floor(x), x).tolist()


@kind(lambda out: sum(x > 100 for x in out), noise=count)
def values_above(number: int, rng: Rng) -> Any:
    """Number of values above a threshold, in a list with heavy tails."""
    low = rng.uniform(0, 100, 24)
    high = 100 + np.exp(rng.normal(3, 3, 24))
    return np.where(rng.permutation(24) < between(0, 8 + number, 24), high, low).tolist()


@kind(lambda out: sum(at.hour < 6 for at in out), noise=count)
def events_at_night(number: int, rng: Rng) -> Any:
    """Number of times at night, in a list of times."""
    night = rng.permutation(16) < between(0, 6 + number, 16)
    hours = np.where(night, rng.integers(0, 6, 16), rng.integers(6, 24, 16)).tolist()
    days, seconds = rng.integers(0, 400, 16).tolist(), rng.integers(0, 3600, 16).tolist()
    start = datetime(2024, 1, 1)
    return [
        start + timedelta(days=d, hours=h, seconds=s)
        for d, h, s in zip(days, hours, seconds, strict=True)
    ]


@kind(lambda out: out == sorted(out))
def names_in_order(bit: int, rng: Rng) -> Any:
    """Whether names are in alphabetical order."""
    names = sample(NAMES, 8, rng)
    return sorted(names) if bit else names


@kind(lambda out: (out["end"] - out["start"]).days, noise=count)
def days_between(number: int, rng: Rng) -> Any:
    """Days between the two dates of a record."""
    start = datetime(2023, 1, 1) + timedelta(days=int(rng.integers(0, 700)))
    end = start + timedelta(days=between(1, 30 + number, 90))
    return {"name": letters(5, rng), "start": start, "end": end}


@kind(lambda out: bool((out == out.T).all()))
def symmetric_matrix(bit: int, rng: Rng) -> Any:
    """Whether a matrix of integers is symmetric."""
    matrix = rng.integers(0, 50, (6, 6))
    return np.triu(matrix) + np.triu(matrix, 1).T if bit else matrix


@kind(lambda out: sum(item["price"] for order in out for item in order["items"]), noise=count)
def nested_total(number: int, rng: Rng) -> Any:
    """Sum over lists inside of the records of a list."""
    prices = rng.multinomial(between(40, 200 + number, 400), np.full(12, 1 / 12)).tolist()
    cuts = [0, *sorted(sample(range(1, 12), 3, rng)), 12]
    return [
        {"order": letters(4, rng), "items": [{"price": x} for x in prices[a:b]]}
        for a, b in itertools.pairwise(cuts)
    ]


@kind(lambda out: sum(map(len, out["note"])), noise=count)
def frame_text_length(number: int, rng: Rng) -> Any:
    """Number of characters in a column of text of a frame."""
    sizes = 1 + rng.multinomial(between(20, 100 + number, 300), np.full(12, 1 / 12))
    return pd.DataFrame({"note": [letters(k, rng) for k in sizes.tolist()], "x": rng.random(12)})


@kind(lambda out: sum(x % 2 == 0 for x in out), noise=count)
def even_numbers(number: int, rng: Rng) -> Any:
    """Number of even numbers in a set of integers."""
    even = between(0, 8 + number, 20)
    return {2 * x + int(k >= even) for k, x in enumerate(sample(range(5000), 20, rng))}
