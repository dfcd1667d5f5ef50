"""The provenance of a number: method, guarantee, sample sizes, seed, pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpassay.records import Record

#: The methods of `replay`: the event of a verdict or witness, and that of a bound, which nobody claimed.
REPLAY, REPLAY_OF_BOUND = "replay of an event", "replay of the event of a bound"
#: The method of `audit_counts`.
COUNTS = "exact joint test of two binomial counts"


def level(confidence: float, scale: int = 1) -> str:
    """A confidence for people: four digits, more where it is nearer to 1 than they show.

    >>> level(0.95), level(1 - 1e-6), level(1 - 1e-6, 100)
    ('0.95', '0.999999', '99.9999')
    """
    digits = 4 if confidence >= 1 else max(4, math.ceil(-math.log10(1 - confidence)))
    return f"{scale * confidence:.{digits}g}"


class Guarantee(StrEnum):
    """What error statement a number comes with."""

    EXACT = "exact"  # holds for every sample size
    ASYMPTOTIC = "asymptotic"  # holds in the limit of many draws
    HEURISTIC = "heuristic"  # no error statement

    @property
    def doubt(self) -> str:
        """What stands before a number that comes with no error statement."""
        return "not certified: " if self is Guarantee.HEURISTIC else ""

    def downgraded(self, doubts: Sequence[str]) -> Guarantee:
        """The downgraded guarantee: none where there are doubts that draws are independent."""
        return Guarantee.HEURISTIC if doubts else self


#: Of curves that have bounds otherwise.
UNCERTIFIED = "nothing is certified: draws seem to depend on each other, which bounds rule out"


@dataclass(frozen=True, eq=False)
class Origin(Record):
    """The file that outputs came from, its contents when it was read, and which columns were used."""

    file: str  # without folders
    bytes: int
    sha256: str
    rows: int
    columns: tuple[str, ...]  # those used, in order; positions from "1" where there are no names
    missing: int  # cells without a value in them
    modified: str  # ISO 8601, UTC
    reading: str = ""  # how its text is written, as options of the command line
    delimiter: str = ""  # of text
    left_out: tuple[str, ...] = ()  # the other columns

    def __str__(self) -> str:
        names = ", ".join(self.columns[:6]) + (", …" if len(self.columns) > 6 else "")
        if self.columns == tuple(str(k + 1) for k in range(len(self.columns))):  # no names
            names = f"{len(self.columns)} column{'s' * (len(self.columns) != 1)} without a name"
        if self.left_out:
            more = f" and {len(self.left_out) - 20:,} more" if len(self.left_out) > 20 else ""
            left_out = [f"column {k}" if k.isdigit() else k for k in self.left_out[:20]]
            if self.columns[0].isdigit() < (left_out[0] == "column 1"):  # as pandas' index
                left_out[0] += " (it has no name)"
            names += f", without {', '.join(left_out)}{more}"
        cells = "1 cell" if self.missing == 1 else f"{self.missing:,} cells"
        blank = f", {cells} without a value" if self.missing else ""
        return (
            f"{self.file}: {self.rows:,} rows of {names}{blank}; {self.bytes:,} bytes, SHA-256 "
            f"{self.sha256[:16]}…, modified {self.modified}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class About(Record):
    """How a result was obtained."""

    method: str
    guarantee: Guarantee
    n: tuple[int, int] | None = None
    seed: int | None = None
    pair: Any = None
    notes: tuple[str, ...] = ()
    #: What n counts if not draws of the mechanism, such as "canaries".
    units: str = ""
    #: The files the draws came from, and a digest of draws that were collected elsewhere.
    files: tuple[Origin, ...] = ()
    digest: str = ""

    @classmethod
    def of(
        cls,
        source: Any,
        method: str,
        guarantee: Guarantee,
        n: tuple[int, int],
        notes: Sequence[str] = (),
    ) -> About:
        """About draws from a source: doubts about their independence downgrade the guarantee."""
        return cls(
            method=method,
            guarantee=guarantee.downgraded(source.doubts),
            n=n,
            seed=source.seed,
            pair=source.pair,
            notes=(*notes, *source.notes),
        )

    @property
    def draws(self) -> str:
        """How many draws there were, in words; empty where that is not known."""
        if self.n is None:
            return ""
        p, q = self.n
        if self.units == "canaries":
            return f"{p:,} canaries"
        return f"{p:,} draws a side" if p == q else f"{p:,} and {q:,} draws"

    @property
    def noted(self) -> str:
        """The notes, a line each."""
        return "".join(f"\n  note: {note}" for note in self.notes)
