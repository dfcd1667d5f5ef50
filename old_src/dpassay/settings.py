"""Settings of a test suite for all its privacy tests; the pytest plugin fills them in.

Fast to load: pytest loads this file in every session, whether privacy is tested or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Defaults of assertions."""

    n: int | None = None
    detects: float | None = None  # in place of n
    flake: float = 1e-6
    rng: Any = 0
    loss: Any = "auto"
    relation: Any = None
    #: Of `assert_holds`: draws, and its confidence.
    holds_n: int = 1_000_000
    confidence: float = 0.95


#: The settings in force, innermost last.
_stack: list[Settings] = [Settings()]


def current() -> Settings:
    """The settings in force."""
    return _stack[-1]


@contextmanager
def using(**changed: Any) -> Iterator[Settings]:
    """Change settings within a `with` block."""
    nearer = {"detects": None} if "n" in changed else {}
    _stack.append(replace(_stack[-1], **nearer | changed))
    try:
        yield _stack[-1]
    finally:
        _stack.pop()
