"""What the draws say about the cause of a leak, and what it means for a person: records and words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeVar

import numpy as np

from dpassay import validation as checks
from dpassay._typing import FloatArray
from dpassay.privacy.provenance import Guarantee, level
from dpassay.records import Record
from dpassay.rounding import rounded_down, rounded_up

#: Explanations that a terminal shows.
_SAID = 2
#: Names of numbers: what the event of an explanation alone certifies, and how often it happened.
ALONE = "certified by this event"
SHARES = "share, first input", "share, second input"


class Fault(StrEnum):
    """A kind of cause, and where in the code to look for it."""

    SUPPORT = (
        "support",
        "what decides which outputs can occur: categories, keys, bounds or a range that is read off the "
        "data instead of being given; noise that is cut off",
    )
    SCALE = (
        "scale",
        "where the scale of the noise is computed: ε, the sensitivity, a factor 2, σ or σ²",
    )
    DATA_DEPENDENT_SCALE = (
        "data-dependent scale",
        "the quantities that the scale of the noise is computed from: one of them may depend on the "
        "data. To confirm, print that scale on both inputs: if it is the same, something else spreads. "
        "Scores of an attack have a spread of their own, which is no scale of a noise",
    )
    SHIFT = (
        "shift",
        "the sensitivity: clipping or clamping that is missing, comes too late or is by-passed "
        "(overflow, rounding, duplicates), the wrong statistic, or several records of one person",
    )
    UNPROTECTED = "unprotected part", "the noise of this part of the output"
    NO_NOISE = (
        "no noise",
        "a branch that returns without adding noise, a value that is passed through, or a fixed seed",
    )
    DELTA = (
        "larger delta",
        "what only δ can cover: thresholds for keys, tails that are cut off, noise that is not pure",
    )
    COMPOSITION = (
        "composition",
        "how ε is divided: several releases, or several parts that one record changes, with all of it "
        "for each",
    )
    REPRESENTATION = (
        "representation",
        "floating-point noise: round the output to a grid, or use noise on integers",
    )
    FAILURE = (
        "failure",
        "inputs that the code does not handle: NaN, ±∞, empty data or groups, too few rows, exceptions",
    )
    SUPPRESSION = (
        "suppression",
        "the rule that leaves out values (small counts, rare values), if it reads the data; the noise of "
        "the result that it reads, if it reads that; or a computation that gives no value for some data",
    )
    ORDER_OR_SIZE = (
        "order or size",
        "what decides how many parts the output has, or their order: it follows the data",
    )
    DEPENDENCE = (
        "dependence",
        "where noise is drawn: once for several parts, or from a generator that is seeded again",
    )
    NONE = "none detected", ""

    hint: str

    def __new__(cls, value: str, hint: str) -> Fault:
        """A member that equals its value."""
        made = str.__new__(cls, value)
        made._value_, made.hint = value, hint
        return made


#: Causes that are a reading of what is exact: other causes have the same outputs.
_GUESSES = (
    *(Fault.SHIFT, Fault.SCALE, Fault.DATA_DEPENDENT_SCALE, Fault.SUPPRESSION),
    *(Fault.FAILURE, Fault.UNPROTECTED),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Picture(Record):
    """How one part of the output is distributed on the two inputs.

    Densities at `x`; or, where there are `labels`, the probability of each. `low` ≤ part < `high` is the
    event; `inside` says which labels belong to it.
    """

    part: str
    x: FloatArray = field(repr=False)
    p: FloatArray = field(repr=False)
    q: FloatArray = field(repr=False)
    #: The density that would keep the claim, where the family of the noise is known.
    needed: FloatArray | None = field(default=None, repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)
    low: float | None = None
    high: float | None = None
    inside: tuple[bool, ...] = field(default=(), repr=False)
    unit: str = ""  # "date": `x` counts seconds since 1970; "duration": seconds

    def _validate(self) -> None:
        lists = (self.x, self.p, self.q, *(() if self.needed is None else (self.needed,)))
        same = all(one.shape == (self.x.size,) and one.size for one in lists)
        named = len(self.labels) in (0, self.x.size) and len(self.inside) in (0, self.x.size)
        checks.require(same and named, "the lists of a picture must be equally long")
        finite = all(np.isfinite(one).all() for one in lists)
        ends = not any(end is not None and math.isnan(end) for end in (self.low, self.high))
        checks.require(finite and ends, "the numbers of a picture must be finite")


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Record):
    """A cause that the draws support, or, where nothing was refuted, what was looked at.

    What is `exact` holds with `confidence`, on draws that the search did not use; the shortfalls of all
    explanations of a result together are at most the 1 − confidence of the result, and come on top of it.
    """

    kind: Fault
    sentence: str
    hint: str = ""
    #: The part of the output that shows it, and the event as a Python expression of `output`.
    part: str = ""
    condition: str = ""
    numbers: tuple[tuple[str, float], ...] = ()
    guarantee: Guarantee = Guarantee.HEURISTIC
    confidence: float | None = None
    picture: Picture | None = field(default=None, repr=False)

    @property
    def alone(self) -> float:
        """What its event alone certifies of the claim's parameter; 0 where nothing."""
        return dict(self.numbers).get(ALONE, 0.0) if self.confidence is not None else 0.0

    @property
    def backed(self) -> str:
        """What backs it, in a few words."""
        if self.confidence is None:
            return str(self.guarantee)
        sure = level(self.confidence)
        cause = self.kind in _GUESSES or "consistent with" in self.sentence
        return f"{self.guarantee} bounds, with confidence {sure}" + "; the cause is a guess" * cause

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence} ({self.backed})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Belief(Record):
    """What seeing the event of a witness does to somebody who held both inputs for equally likely.

    All three probabilities are bounds that hold together with `confidence`.
    """

    #: The probability, at least, that it was the likelier input; and what the claim allows at most.
    posterior: float
    allowed: float
    #: How often, at least, it happens on that input, which is the first or the second.
    frequency: float
    first: bool
    #: Whether it is the event that is seen, or that it does not happen.
    happens: bool
    confidence: float
    guarantee: Guarantee = Guarantee.EXACT

    def _validate(self) -> None:
        super()._validate()
        for name in ("posterior", "allowed", "frequency"):
            checks.real(name, getattr(self, name), at_least=0.0, at_most=1.0)

    def __str__(self) -> str:
        happens = "happens" if self.happens else "does not happen"
        which = "first" if self.first else "second"
        return (
            "who thinks both inputs equally likely (50%), and then sees that the witness event "
            f"{happens}, can be at least {rounded_down(100 * self.posterior)}% sure of the {which}; "
            f"the claim allows at most {rounded_up(self.allowed, 100)}%. On that input the event "
            f"{happens} in at least {rounded_down(100 * self.frequency)}% of the releases "
            f"({self.guarantee}, {level(self.confidence)} confidence)"
        )


class _OfKind(Protocol):
    @property
    def kind(self) -> Fault: ...


_Cause = TypeVar("_Cause", bound=_OfKind)


def leading(causes: Sequence[_Cause], many: int) -> Sequence[_Cause]:
    """The first causes, one more if that keeps together shift and scale: draws tell their ratio alone."""
    split = {one.kind for one in causes[many - 1 : many + 1]} == {Fault.SHIFT, Fault.SCALE}
    return causes[: many + split]


def explained(
    diagnosis: Sequence[Explanation], belief: Belief | None = None
) -> list[tuple[str, str]]:
    """Rows for a terminal: the causes, where to look for the first, what it means for a person."""
    rows = []
    for k, one in enumerate(leading(diagnosis, _SAID)):
        if one.kind is Fault.NONE:
            rows.append(("searched" if one.numbers else "cause", one.sentence))
        else:
            rows.append(("cause" if k == 0 else "or", str(one)))
            rows += [("look at", one.hint)] if k == 0 else []
    return rows if belief is None else [*rows, ("person", str(belief))]
