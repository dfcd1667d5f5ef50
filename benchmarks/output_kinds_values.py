"""Kinds of output that are text, times, amounts, and records of mixed types."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

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

PLAIN = ["a", "and", "cat", "dog", "in", "is", "it", "of", "on", "red", "run", "see", "the", "to"]

# --- tokens and text


def with_bigram(bit: int, length: int, rng: Rng) -> list[str]:
    """Random words with "not" and "good" among them, adjacent in this order or not."""
    words = [PLAIN[k] for k in rng.integers(0, len(PLAIN), length - 2).tolist()]
    one, two = sample(range(length - 1), 2, rng)
    if bit:
        return [*words[:one], "not", "good", *words[one:]]
    one, two = min(one, two), max(one, two)
    first, second = shuffled(["not", "good"], rng)
    return [*words[:one], first, *words[one:two], second, *words[two:]]


@kind(lambda out: ("not", "good") in itertools.pairwise(out))
def token_bigram(bit: int, rng: Rng) -> Any:
    """Presence of a bigram in a list of tokens."""
    return with_bigram(bit, 24, rng)


@kind(lambda out: "not good" in out)
def sentence_bigram(bit: int, rng: Rng) -> Any:
    """Presence of two adjacent words in a text of random length."""
    return " ".join(with_bigram(bit, int(rng.integers(10, 20)), rng))


@kind(lambda out: "#7" in out)
def text_substring(bit: int, rng: Rng) -> Any:
    """Presence of a substring anywhere in a text."""
    text, place = letters(40, rng), int(rng.integers(0, 38))
    return text[:place] + ("#7" if bit else "7#") + text[place:]


@kind(len, noise=count)
def text_length(number: int, rng: Rng) -> Any:
    """Length of a text."""
    return letters(between(1, 20 + number, 60), rng)


@kind(lambda out: out.count("z"), noise=count)
def text_character_count(number: int, rng: Rng) -> Any:
    """Count of a character in a text of fixed length."""
    times = between(0, 5 + number, 40)
    return "".join(shuffled(list("z" * times + letters(40 - times, rng).replace("z", "y")), rng))


@kind(lambda out: out.startswith("err"))
def text_prefix(bit: int, rng: Rng) -> Any:
    """Prefix of a text."""
    return ("err" if bit else "ok-") + letters(int(rng.integers(8, 16)), rng)


@kind(str.isupper)
def text_case(bit: int, rng: Rng) -> Any:
    """Case of a text."""
    text = letters(int(rng.integers(8, 16)), rng)
    return text.upper() if bit else text


@kind(lambda out: b"\xca\xfe" in out)
def bytes_marker(bit: int, rng: Rng) -> Any:
    """Presence of two adjacent bytes anywhere in a byte string."""
    text, place = bytes(rng.integers(0, 200, 30).tolist()), int(rng.integers(0, 28))
    return text[:place] + (b"\xca\xfe" if bit else b"\xfe\xca") + text[place:]


# --- times, amounts, types


def moment(rng: Rng) -> datetime:
    """A random second of 40 years."""
    return datetime(1990, 1, 1) + timedelta(seconds=int(rng.integers(0, 40 * 365 * 86400)))


@kind(lambda out: out.weekday() >= 5)
def time_weekday(bit: int, rng: Rng) -> Any:
    """Whether a time is on a weekend."""
    at = moment(rng)
    return at + timedelta(
        days=int(rng.integers(5, 7) if bit else rng.integers(0, 5)) - at.weekday()
    )


@kind(lambda out: out.hour < 6)
def time_hour(bit: int, rng: Rng) -> Any:
    """Whether a time is at night."""
    return moment(rng).replace(hour=int(rng.integers(0, 6) if bit else rng.integers(6, 24)))


@kind(lambda out: out.seconds % 3600 == 0)
def timedelta_whole_hours(bit: int, rng: Rng) -> Any:
    """Whether a duration is a whole number of hours."""
    rest = 0 if bit else int(rng.integers(1, 3600))
    return timedelta(hours=int(rng.integers(0, 10**6)), seconds=rest)


@kind(lambda out: round(100 * out) % 100)
def amount_cents(bit: int, rng: Rng) -> Any:
    """Cents of an amount."""
    return int(rng.integers(0, 10**6)) + (99 if bit else int(rng.integers(0, 99))) / 100


@kind(lambda out: out % 10)
def integer_last_digit(bit: int, rng: Rng) -> Any:
    """Last digit of a large integer."""
    return 10 * int(rng.integers(0, 10**9)) + (0 if bit else int(rng.integers(1, 10)))


@kind(lambda out: out.as_tuple().exponent)
def decimal_places(bit: int, rng: Rng) -> Any:
    """Number of decimal places of a Decimal."""
    digits = rng.integers(10**7, 10**8) if bit else rng.integers(10**6, 10**7)
    return Decimal(int(digits)).scaleb(-3 if bit else -2)


@kind(lambda out: type(out["total"]).__name__)
def integer_or_float(bit: int, rng: Rng) -> Any:
    """Type of a number."""
    total = int(rng.integers(0, 10**6))
    return {"run": letters(6, rng), "total": total if bit else float(total)}


@kind(lambda out: out.imag > 0)
def complex_sign(bit: int, rng: Rng) -> Any:
    """Sign of the imaginary part of a complex number."""
    return complex(rng.normal(), (1 if bit else -1) * rng.exponential())


@kind(lambda out: sum(item is None for item in out), noise=count)
def missing_in_list(number: int, rng: Rng) -> Any:
    """Number of missing values among numbers."""
    times = between(0, 3 + number, 12)
    return shuffled([None] * times + rng.random(12 - times).tolist(), rng)


@kind(lambda out: out is None)
def missing_or_number(bit: int, rng: Rng) -> Any:
    """A missing value in place of a number."""
    return None if bit else float(rng.normal())


@kind(lambda out: out[2], noise=count)
def mixed_tuple(number: int, rng: Rng) -> Any:
    """A number in a tuple of mixed types."""
    return letters(5, rng), None, 12 + number, float(rng.random()), bool(rng.random() < 0.5)


@dataclass
class Report:
    """What a query returns."""

    title: str
    total: float
    parts: list[int]


@kind(lambda out: out.total, noise=value)
def dataclass_field(number: float, rng: Rng) -> Any:
    """A field of a dataclass."""
    return Report(
        letters(6, rng), 20 + number, rng.integers(0, 100, int(rng.integers(1, 6))).tolist()
    )


@kind(lambda out: len(out.parts), noise=count)
def dataclass_list_length(number: int, rng: Rng) -> Any:
    """Length of a list in a dataclass."""
    parts = rng.integers(0, 100, between(0, 5 + number, 20)).tolist()
    return Report(letters(6, rng), float(rng.normal()), parts)


def bucket(seed: int, item: int) -> int:
    """Hash of an item under a seed, into 1024 buckets."""
    mixed = (seed * 6364136223846793005 + item * 1442695040888963407 + 1) % 2**64
    return (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64 >> 54


@kind(lambda out: bucket(out["seed"], 1) == out["bucket"], needs_knowledge=True)
def local_hashing(bit: int, rng: Rng) -> Any:
    """Which item a bucket belongs to, under a hash function that is released with it."""
    seed = int(rng.integers(0, 2**62))
    return {"seed": seed, "bucket": bucket(seed, bit)}
