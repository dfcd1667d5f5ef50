"""What mechanisms return or raise."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from tests.fuzz.running import Case
from tests.fuzz.values import CANONICAL, OBJECTS, pick

import dpassay as dp


class _Own(Exception):
    """An exception of the mechanism's own."""


class _NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


_RAISED: tuple[type[Exception], ...] = (
    *(ValueError, TypeError, AttributeError, KeyError, IndexError, ZeroDivisionError, RuntimeError),
    *(RecursionError, MemoryError, StopIteration, NotImplementedError, OSError, AssertionError),
    *(UnicodeError, OverflowError, EOFError, ImportError, TimeoutError, _Own, _NoText),
)


def _value(rng: np.random.Generator) -> Any:
    return pick(rng, CANONICAL if rng.random() < 0.8 else OBJECTS)


def _wrapped(value: Any, rng: np.random.Generator) -> Any:
    """A value, or something that holds it."""
    match int(rng.integers(8)):
        case 0:
            return [value]
        case 1:
            return (value, 1.0)
        case 2:
            return {"a": value, "b": 1}
        case 3:
            return {"a": [value, None]}
    return value


def _array(value: Any, size: int, rng: np.random.Generator) -> Any:
    """`size` outputs, or not quite, in some container."""
    match int(rng.integers(18)):
        case 0:
            return value
        case 1:
            return [value] * size
        case 2:
            found = [*rng.laplace(size=size).tolist()]
            found[int(rng.integers(size))] = value
            return found
        case 3:
            found = np.empty(size, dtype=object)
            for k in range(size):
                found[k] = value if rng.random() < 0.3 else float(rng.integers(3))
            return found
        case 4:
            return [value] * max(0, size + int(rng.integers(-2, 3)))
        case 5:
            return rng.normal(size=(size, int(rng.integers(0, 4)), int(rng.integers(0, 3))))
        case 6:
            return (value for _ in range(size))
        case 7:
            return np.where(
                rng.random(size) < 0.2, rng.choice([np.nan, np.inf, 1e308]), rng.random(size)
            )
    return [
        _wrapped(value, rng) if rng.random() < 0.5 else int(rng.integers(3)) for _ in range(size)
    ]


def _mechanism(seed: int, alone: bool) -> Any:
    error = _RAISED[seed % len(_RAISED)]
    calls = itertools.count()

    def returns(x: Any, size: int, rng: np.random.Generator) -> Any:
        own = np.random.default_rng([seed, next(calls)])
        if seed % 10 == 0 and own.random() < 0.5:
            raise error("raised by the mechanism")
        found = _value(np.random.default_rng([seed, 1]))
        return _array(_wrapped(found, own), size, own)

    def returns_one(x: Any, rng: np.random.Generator) -> Any:
        own = np.random.default_rng([seed, next(calls)])
        if seed % 10 == 0 and own.random() < 0.1:
            raise error("raised by the mechanism")
        return _wrapped(_value(own if seed % 3 else np.random.default_rng([seed, 1])), own)

    return dp.from_function(returns_one) if alone else returns


def case(seed: int) -> Case:
    """One mechanism, under one of the functions that draw."""
    rng = np.random.default_rng([seed, 5])
    box = _mechanism(seed, alone=bool(rng.random() < 0.4))
    given: dict[str, Any] = {
        "n": 60,
        "rng": 0,
        "sampling": dp.Sampling(
            progress=False, on_error="outcome" if rng.random() < 0.3 else "raise"
        ),
    }
    calls: list[tuple[str, Any, tuple[type, ...]]] = [
        ("audit", lambda: dp.audit(box, (0.0, 1.0), "eps=1", **given), (dp.Verdict,)),
        ("bound", lambda: dp.bound(box, (0.0, 1.0), "eps", **given), (dp.LowerBound,)),
        (
            "verify",
            lambda: dp.verify(box, (0.0, 1.0), "eps=1, delta=0.1", **given),
            (dp.Verification,),
        ),
        ("estimate", lambda: dp.estimate(box, (0.0, 1.0), **given), (dp.Profile,)),
        ("spectrum", lambda: dp.spectrum.estimate(box, (0.0, 1.0), **given), (dp.Spectrum,)),
    ]
    name, run, results = calls[int(rng.choice(5, p=[0.5, 0.15, 0.15, 0.1, 0.1]))]

    def used() -> Any:
        found = run()
        str(found), found.to_json()
        return found

    return Case(f"{name} of mechanism {seed}", used, results)
