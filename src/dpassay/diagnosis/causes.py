"""A cause that training draws suggest: its kind, the event that would show it, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpassay.diagnosis.noise_fit import Noise
from dpassay.diagnosis.parts import Condition
from dpassay.results.explanations import Fault


@dataclass(frozen=True)
class CandidateCause:
    """A cause, and the event that would show it: on the second input another one, if that is said."""

    kind: Fault
    condition: Condition
    other: Condition | None = None
    parts: tuple[Condition, ...] = ()  # an event for each, where several parts are compared
    noise: Noise | None = None
    facts: dict[str, float] = field(default_factory=dict)
    hint: str = ""  # beside that of its kind
    #: Of two spreads: whether a shift may explain them; of a shift: whether it is not all that differs;
    #: of a support: whether the values of the inputs are multiples of different numbers.
    qualified: bool = False

    @property
    def event_alone(self) -> bool:
        """Whether its event is all that is said."""
        return self.other is None and not self.parts and not self.facts
