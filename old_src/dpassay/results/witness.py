"""What shows a violation: the event, its counts, the inputs."""

from __future__ import annotations

from dataclasses import dataclass

from dpassay import validation as checks
from dpassay.outputs.events import Event
from dpassay.privacy.relations import Pair
from dpassay.records import Record
from dpassay.results.view import related

#: What a witness, or the bound of a divergence, by the bits of numbers means.
BITS = (
    "this is about the low-order bits of the numbers, their floating-point representation; "
    'loss="values" (--loss values; in dp.renyi, dp.renyi.Variational(loss="values")) looks at the values '
    "alone"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Witness(Record):
    """The pair, the event and the counts that show what a verdict says."""

    event: Event
    pair: Pair | None = None
    hits_p: int
    n_p: int
    hits_q: int
    n_q: int
    #: The error probability it was tested with, where two counts are all that was tested.
    level: float | None = None
    #: Hits and rows on the first input, then on the second, of draws that are at hand: in all rows, also
    #: in those that chose the event.
    in_all_rows: tuple[int, int, int, int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for side in "pq":
            n = checks.whole(f"n_{side}", getattr(self, f"n_{side}"))
            name = f"hits_{side}"
            self._set(**{name: checks.whole(name, getattr(self, name), at_least=0, at_most=n)})
        if self.level is not None:
            checks.real("level", self.level, at_least=0.0, at_most=1.0)

    @classmethod
    def of(
        cls, event: Event, counts: tuple[int, int, int, int], pair: Pair | None = None
    ) -> Witness:
        """From the hits and draws on the first input, and those on the second."""
        i, n, j, m = counts
        return cls(event=event, pair=pair, hits_p=i, n_p=n, hits_q=j, n_q=m)

    @property
    def p(self) -> float:
        return self.hits_p / self.n_p

    @property
    def q(self) -> float:
        return self.hits_q / self.n_q

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Hits and draws on the first input, then on the second."""
        return self.hits_p, self.n_p, self.hits_q, self.n_q

    def rows(self, units: str = "") -> list[tuple[str, str]]:
        """The event, its counts and the inputs, as rows for a terminal; of canaries the event alone."""
        if units == "canaries":
            return [("witness", str(self.event))]
        counts = (
            f"{self.hits_p:,} of {self.n_p:,} on the first input, "
            f"{self.hits_q:,} of {self.n_q:,} on the second"
        )
        rows = [("witness", str(self.event)), ("", counts)]
        rows += [("", self.all_rows)] if self.in_all_rows is not None else []
        if self.pair is not None:
            rows.append(("inputs", related(self.pair, self.pair.inputs)))
            rows += [("", self.pair.name)] if self.pair.name else []
        return rows

    @property
    def all_rows(self) -> str:
        """The counts in all rows, and which of them tested; empty where they are not known."""
        if self.in_all_rows is None:
            return ""
        i, n, j, m = self.in_all_rows
        return (
            f"in all rows: {i:,} of {n:,} and {j:,} of {m:,}; the test is on {self.n_p:,} and "
            f"{self.n_q:,} of them; the others chose the event"
        )

    def __str__(self) -> str:
        return (
            f"{self.event}: {self.hits_p:,} of {self.n_p:,} against {self.hits_q:,} of {self.n_q:,}"
        )
