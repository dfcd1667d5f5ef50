"""What shows a violation: the event, its counts, the inputs."""

from __future__ import annotations

from dataclasses import dataclass

from dpassay.outputs.events import Event
from dpassay.privacy.pairs import Pair
from dpassay.records import Record

#: What a witness about the bits of numbers means.
BITS = (
    "what shows here is the representation, which doubles come out, not their values: the mechanism that "
    "runs leaks, though the ideal one may not"
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

    @property
    def p(self) -> float:
        """How often the event happened on the first input."""
        return self.hits_p / self.n_p

    @property
    def q(self) -> float:
        """How often the event happened on the second input."""
        return self.hits_q / self.n_q

    def __str__(self) -> str:
        return (
            f"{self.event}: {self.hits_p:,} of {self.n_p:,} against {self.hits_q:,} of {self.n_q:,}"
        )
