"""What is audited and what came of it: cases, findings and results, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

HERE = Path(__file__).parent
RESULTS = HERE / "results"
REPRODUCTIONS = HERE / "reproductions"

#: Which events are looked for: all kinds, sets of values, or the bits with which doubles are written.
Look: TypeAlias = Literal["auto", "values", "bits"]
#: The end of the name of a case that is hunted.
HUNTED = ", hunted"
#: What a refuted claim turns out to be.
KINDS = {
    "violation": "the mechanism leaks more than it claims, on inputs the claim covers",
    "documented limit": "the claim fails where the library's documentation says that it may",
    "other relation": "the claim is about other neighbours than the ones audited",
    "floating point": "the values keep the claim; which doubles can come out does not",
}


@dataclass(frozen=True)
class Case:
    """A mechanism of a library, what the library says of it, and the inputs to try it on.

    call       one output a call, `call(data)`; or `size` of them, `call(data, size)`, if vectorised
    claim      what is refuted if it can be, as text for `dpassay.claim`
    said       the guarantee in the library's own words, with the place where it says so
    relation   what makes the inputs neighbours: a short name of `dpassay.Relation`
    trap       what makes the pair a hard one; empty for an ordinary pair
    look       which events are looked for; a mechanism on doubles has a case for its values and one
               for its bits, since a leak of the bits would hide what the values do
    sound      why no violation is possible if the code does what it says; such cases count the false
               alarms. Empty where there is no such argument, or a finding
    space      what inputs look like, for a case that `dpassay.hunt` finds the pair of; then `pair` is
               None, and n is half of the budget; `outside`: values beyond its bounds and NaN too;
               `user`: the column that names people, if the relation is "user"; `norm`: in which
               answers differ by 1 at most, if it is "query"
    """

    name: str
    api: str
    call: Callable[..., Any]
    pair: tuple[Any, Any] | None
    claim: str
    said: str
    relation: str
    n: int
    group: str = "mechanism"
    trap: str = ""
    look: Look = "auto"
    sound: str = ""
    vectorised: bool = False
    shown: str = ""  # the pair in words, where its repr says little
    space: Any = None
    outside: bool = False
    user: str | None = None
    norm: str = "each"


@dataclass(frozen=True)
class Finding:
    """What lies behind the violations of some cases.

    cases      names of cases, in which * stands for any text
    known      where it is on record upstream, as a link; empty if not found there
    script     the name of a file in `libraries/reproductions/`: the library alone, nothing of dpassay
    report     for what is not on record: the text of a report to its maintainers
    by_hunt    whether a hunt led to it before anybody had made a pair for it
    """

    title: str
    kind: str
    cases: tuple[str, ...]
    cause: str
    known: str = ""
    script: str = ""
    report: str = ""
    by_hunt: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")

    def explains(self, name: str) -> bool:
        """Whether a case of that name, or a hunt of it, is one of its cases."""
        name = name.removesuffix(HUNTED)
        return any(re.fullmatch(re.escape(case).replace(r"\*", ".*"), name) for case in self.cases)


@dataclass(frozen=True)
class Counts:
    """How often an event happened on either input."""

    hits_p: int
    n_p: int
    hits_q: int
    n_q: int
    p_value: float
    lower_bound: float


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of one audit, small enough to keep in the repository."""

    name: str
    api: str
    group: str
    look: str
    claim: str
    said: str
    relation: str
    pair: str
    trap: str
    sound: str
    n: int
    seed: int
    seconds: float = 0.0
    own: float = 0.0  # the share of the seconds that the library itself took
    verdict: str  # "violation", "clear" or "blind"; "error" if the library raised
    words: str = ""  # why it was blind, or what was raised
    symbol: str
    claimed: float
    lower_bound: float = 0.0
    smallest_detectable: float | None = None
    p_value: float = 1.0
    event: str = ""
    counts: Counts | None = None
    #: The largest P(event) that the claim allows at the other input's frequency.
    allowed: float | None = None
    replay: Counts | None = None
    tried: int = 0  # pairs that a hunt tried; 0 for a pair made by hand


@dataclass(frozen=True)
class Audited:
    """A library: its versions, the results of its cases, what was found, and the runs again."""

    library: str
    version: str
    versions: Mapping[str, str]
    results: tuple[Result, ...]
    findings: tuple[Finding, ...]
    again: tuple[Mapping[str, Any], ...] = ()

    def finding_of(self, result: Result) -> Finding | None:
        """What is behind a violation; None if it is not one, or is not explained."""
        if result.verdict != "violation":
            return None
        return next((one for one in self.findings if one.explains(result.name)), None)

    def to_json(self) -> str:
        """Text that `from_json` reads, the same for the same content."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Audited:
        """What `to_json` wrote."""
        read = json.loads(text)
        return cls(
            **{
                **read,
                "results": tuple(_result(one) for one in read["results"]),
                "findings": tuple(
                    Finding(**{**one, "cases": tuple(one["cases"])}) for one in read["findings"]
                ),
                "again": tuple(read["again"]),
            }
        )


def _result(read: dict[str, Any]) -> Result:
    for field in ("counts", "replay"):
        read[field] = None if read[field] is None else Counts(**read[field])
    return Result(
        **{field.name: read[field.name] for field in fields(Result) if field.name in read}
    )


def load(folder: Path = RESULTS) -> list[Audited]:
    """The results of all libraries, in alphabetical order."""
    return [
        Audited.from_json(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    ]


def both(case: Case, bits: str | None = None) -> Iterator[Case]:
    """The values of a mechanism on doubles, and the bits they are written with.

    `bits` is why the bits are sound too; by default for the same reason as the values.
    """
    sound = case.sound if bits is None else bits
    yield replace(case, name=f"{case.name}, values", look="values")
    yield replace(case, name=f"{case.name}, bits", look="bits", sound=sound)


def hunted(case: Case, space: Any, n: int = 20_000, **more: Any) -> Case:
    """The same mechanism and claim, with the space of its inputs in place of a pair."""
    name = case.name + HUNTED
    return replace(case, name=name, pair=None, shown="", space=space, n=n, **{"trap": "", **more})
