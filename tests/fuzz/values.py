"""Values that nobody expects."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import math
from collections.abc import Callable
from typing import Any

import numpy as np

#: What JSON can hold, and more: literals beyond what doubles and integers of 64 bits hold.
JSON: tuple[Callable[[], Any], ...] = tuple(
    (lambda value=value: value)
    for value in (
        None,
        True,
        False,
        0,
        1,
        -1,
        7,
        -(2**63),
        2**64,
        10**25,
        10**400,
        -(10**400),
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        1e-320,
        1e308,
        -1e308,
        math.nan,
        math.inf,
        -math.inf,
        "",
        "a",
        "1",
        "nan",
        "exact",
        "\ud800",
        "\u0000",
        "a" * 500,
        "Ünïcode ✓",
        [],
        [0],
        [1, 2],
        [[]],
        [[1], [2, 3]],
        ["a", 1],
        [None],
        {},
        {"a": 1},
        {"type": "Shown"},
        {"type": "Claim"},
        {"type": "Pair", "first": 0, "second": 1},
        {"type": "PureDP", "epsilon": 1.0},
        {"type": 3},
        {"$float": "inf"},
        {"$float": "x"},
        {"$float": None},
        {"$tuple": 3},
        {"$tuple": [1, 2]},
        {"$array": [1, 2], "dtype": "<f8"},
        {"$array": [[1], [2, 3]], "dtype": "<f8"},
        {"$array": ["x"], "dtype": "<i8"},
        {"$array": [1]},
        {"$array": [10**30], "dtype": "<i8"},
        {"$array": [1], "dtype": "x"},
        {"$dict": [[1, 2, 3]]},
        {"$dict": [[[1], 2]]},
        {"$dict": 1},
        {"$repr": [1]},
        {"$what": 1},
    )
)


class _Colour(enum.Enum):
    RED = 1


class NoRepr:
    """An object without a printable form."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class NoEq:
    """An object that compares with nothing, and has no hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")


class NoHash:
    """An object whose hash fails."""

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


class NoBool:
    """An object that is neither true nor false."""

    def __bool__(self) -> bool:
        raise RuntimeError("no bool")

    def __len__(self) -> int:
        raise RuntimeError("no len")


class NoAttributes:
    """An object that fails when it is looked into."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class BadIndex:
    """An object that says it is a whole number, and is not."""

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __float__(self) -> float:
        raise RuntimeError("no float")


def recursive_list() -> list[Any]:
    found: list[Any] = [1.0]
    found.append(found)
    return found


def recursive_dict() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["a"] = found
    return found


def deep(levels: int) -> Any:
    found: Any = 1.0
    for _ in range(levels):
        found = [found]
    return found


class Text(str):
    """Text of a class of its own."""


class Number(float):
    """A number of a class of its own."""


class CallProgress(int):
    """A whole number of a class of its own."""


#: Python objects for arguments and outputs.
OBJECTS: tuple[Callable[[], Any], ...] = (
    *JSON,
    object,
    NoRepr,
    NoEq,
    NoHash,
    NoBool,
    NoAttributes,
    BadIndex,
    recursive_list,
    recursive_dict,
    lambda: deep(2000),
    lambda: 10**308,
    lambda: -(10**308),
    lambda: 10**5000,
    lambda: 1 + 2j,
    lambda: b"bytes",
    lambda: bytearray(b"x"),
    lambda: memoryview(b"xy"),
    lambda: range(3),
    lambda: {1, 2},
    lambda: frozenset(),
    lambda: (1, 2),
    lambda: (0.0, 1.0),
    lambda: iter([1, 2]),
    lambda: (k for k in range(3)),
    lambda: np.array([1, 2]),
    lambda: np.array(3),
    lambda: np.array([]),
    lambda: np.array(0.5),
    lambda: np.array([[1.0, 2.0], [3.0, 4.0]]),
    lambda: np.array(["a", "b"]),
    lambda: np.array([None, 1], dtype=object),
    lambda: np.zeros((2, 0)),
    lambda: np.float32(0.5),
    lambda: np.int8(3),
    lambda: np.bool_(True),
    lambda: np.datetime64("NaT"),
    lambda: np.datetime64("2020-01-01"),
    lambda: np.timedelta64(3, "s"),
    lambda: np.longdouble(1) / 3,
    lambda: np.ma.masked,
    lambda: np.ma.array([1, 2], mask=[True, False]),
    lambda: np.array([(1, "a")], dtype=[("x", int), ("y", "U1")]),
    lambda: np.float64("nan"),
    lambda: decimal.Decimal("1e400"),
    lambda: decimal.Decimal("NaN"),
    lambda: decimal.Decimal("sNaN"),
    lambda: fractions.Fraction(1, 3),
    lambda: datetime.date(2020, 1, 1),
    lambda: datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
    lambda: datetime.timedelta(days=999999999),
    lambda: _Colour.RED,
    lambda: int,
    lambda: len,
    lambda: ...,
    lambda: NotImplemented,
    lambda: Text("a"),
    lambda: Number(0.5),
    lambda: CallProgress(3),
    lambda: Exception("an exception"),
    lambda: type("Odd", (), {"__module__": "pandas.core", "columns": 3})(),
    lambda: _sparse("csr_matrix"),
    lambda: _sparse("coo_array"),
    lambda: _sparse("dok_matrix"),
)


#: Outputs that have a canonical form.
CANONICAL: tuple[Callable[[], Any], ...] = (
    lambda: 1,
    lambda: 0.5,
    lambda: -0.0,
    lambda: math.nan,
    lambda: math.inf,
    lambda: None,
    lambda: True,
    lambda: "word",
    lambda: "\ud800",
    lambda: "",
    lambda: b"bytes",
    lambda: 2**53 + 1,
    lambda: 10**30,
    lambda: 10**400,
    lambda: -(10**308),
    lambda: 1e308,
    lambda: 5e-324,
    lambda: 1 + 2j,
    lambda: complex(math.nan, 1),
    lambda: decimal.Decimal("0.1"),
    lambda: decimal.Decimal("1e400"),
    lambda: fractions.Fraction(1, 3),
    lambda: datetime.date(2020, 1, 1),
    lambda: datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
    lambda: datetime.timedelta(days=999999999),
    lambda: datetime.time(10, 30),
    lambda: np.datetime64("NaT"),
    lambda: np.datetime64("-290000000-01-01"),
    lambda: np.longdouble(1) / 3,
    lambda: np.array([1, 2]),
    lambda: np.array(["a", "b"]),
    lambda: np.zeros((2, 0)),
    lambda: (1, "a"),
    list,
    lambda: {"a": 1, "b": (2, None)},
    lambda: {1: "x", (2, 3): "y"},
    lambda: {1, "a", None},
    lambda: frozenset(),
    lambda: _Colour.RED,
    lambda: Text("a"),
    lambda: Number(0.5),
    lambda: CallProgress(3),
    lambda: np.ma.array([1, 2], mask=[True, False]),
)


def _sparse(kind: str) -> Any:
    from scipy import sparse

    return getattr(sparse, kind)(np.eye(3))


def pick(rng: Any, pool: tuple[Callable[[], Any], ...]) -> Any:
    """One of them, made anew."""
    return pool[int(rng.integers(len(pool)))]()
