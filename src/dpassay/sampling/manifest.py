"""What a store says about itself: the seed, the version, and whose draws they are, pair by pair."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpassay import validation as checks
from dpassay._version import __version__
from dpassay.errors import StoreError
from dpassay.privacy.pairs import Pair
from dpassay.records import Opaque, decode, encode
from dpassay.sampling.identity import Identity, difference, input_identity, name_of
from dpassay.sampling.parts import FORMAT, PARTS
from dpassay.sampling.tasks import by_calls

MANIFEST, LOCK, WORK, GONE, DAMAGED = "store.json", "lock", "work-", "gone-", "damaged"
#: The longest description of a pair that is kept whole.
_LONG = 1 << 20


@dataclass(frozen=True)
class Entry:
    """Whose draws are stored under a pair's number."""

    name: str
    mechanism: Identity
    pair: Pair
    inputs: tuple[Identity, Identity]
    replayable: bool
    calls: bool  # whether every output is a call

    @classmethod
    def of(
        cls,
        mechanism: Any,
        pair: Pair,
        each_alone: bool,
        timeout: float | None,
        described: Identity,
        named: str | None = None,
    ) -> Entry:
        """The entry of a mechanism, `described` before the run, on a pair; a failure may be an output."""
        replayable = bool(getattr(mechanism, "replayable", True))
        inputs = input_identity(pair[0], named), input_identity(pair[1], named)
        held = {**described, "failures are outputs": str(each_alone)}
        if each_alone:  # and when it is one
            held["time-out"] = str(timeout)
        calls = by_calls(mechanism, each_alone)
        return cls(name_of(mechanism), held, pair, inputs, replayable, calls)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        pair = encode(self.pair)
        if len(json.dumps(pair)) > _LONG:
            first, second = (Opaque(checks.shown(data)) for data in self.pair)
            pair = encode(Pair(first, second, self.pair.relation, self.pair.name))
        return {
            "name": self.name,
            "mechanism": self.mechanism,
            "inputs": list(self.inputs),
            "pair": pair,
            "replayable": self.replayable,
            "calls": self.calls,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Entry:
        """The inverse of `to_dict`."""
        first, second = (dict(one) for one in data["inputs"])
        pair = decode(data["pair"])
        if not isinstance(pair, Pair):
            raise TypeError("no pair")
        held = dict(data["mechanism"])
        says = bool(data["replayable"]), bool(data["calls"])
        return cls(str(data["name"]), held, pair, (first, second), *says)

    def check(self, here: Entry, root: Path) -> None:
        """Refuse to go on if these are not the draws that are asked for."""
        if found := difference(self.mechanism, here.mechanism):
            raise StoreError(
                f"the store {root} holds draws of {self.name}, and these would be of {here.name}: "
                f"{found}. Draws of two mechanisms are not mixed: give another folder. If that is no "
                'parameter of the mechanism, name it: dp.Sampling(store=…, identity="…") (--identity)'
            )
        for stored, given in zip(self.inputs, here.inputs, strict=True):
            if stored["holds"] != given["holds"]:
                raise StoreError(
                    f"the store {root} holds draws on {stored['shown']} ({stored['holds']}), and these "
                    f"would be on {given['shown']} ({given['holds']}). Draws on two pairs are not mixed: "
                    "give another folder"
                )


@dataclass(frozen=True)
class Manifest:
    """What is in a store."""

    seed: int
    entries: dict[int, Entry]
    version: str = __version__

    def owner(self, index: int) -> str:
        """A digest of whose draws are stored under a pair's number: seed, mechanism and inputs."""
        entry = self.entries[index]
        whose = [self.seed, entry.mechanism, [one["holds"] for one in entry.inputs]]
        return hashlib.sha256(json.dumps(whose, sort_keys=True).encode()).hexdigest()[:32]

    def to_bytes(self) -> bytes:
        """As JSON."""
        entries = {str(index): entry.to_dict() for index, entry in sorted(self.entries.items())}
        content = {"format": FORMAT, "dpassay": self.version, "seed": self.seed, "pairs": entries}
        return (json.dumps(content, indent=1) + "\n").encode()


def manifest_of(root: Path) -> Manifest | None:
    """The manifest of a store; None if there is no store yet."""
    place = root / MANIFEST
    try:
        data = json.loads(place.read_bytes())
        if data["format"] != FORMAT:
            raise StoreError(
                f"the store {root} is of format {data['format']}, and this dpassay ({__version__}) reads "
                f"format {FORMAT}: use the version that made it, {data.get('dpassay', 'not known')}, or "
                "draw into another folder"
            )
        entries = {int(k): Entry.from_dict(one) for k, one in data["pairs"].items()}
        return Manifest(int(data["seed"]), entries, str(data["dpassay"]))
    except FileNotFoundError:
        _check_ours(root)
        return None
    except OSError as error:
        raise StoreError(f"{root} cannot be read as a store: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{place} is damaged ({type(error).__name__}: {error}); the draws in {root / PARTS} are not "
            "used without it: restore it, or give another folder"
        ) from None


def _check_ours(root: Path) -> None:
    """A folder that holds something else is left alone."""
    ours = {PARTS, LOCK, DAMAGED, f".{MANIFEST}.tmp"}
    try:
        names = os.listdir(root) if root.is_dir() else []
    except OSError as error:
        raise StoreError(f"{root} cannot be read as a store: {error.strerror or error}") from None
    other = [name for name in names if name not in ours and not name.startswith((WORK, GONE))]
    if other:
        raise StoreError(
            f"{root} holds {checks.shown(sorted(other)[0])} and no store of draws: give a new or an "
            "empty folder"
        )
    if (root / PARTS).is_dir() and os.listdir(root / PARTS):
        raise StoreError(
            f"{root} holds draws but no {MANIFEST} that says of what: restore it, or give another folder"
        )


def stored_seed(store: Any) -> int | None:
    """The seed of a store that exists: who gives none goes on with it."""
    found = None if store is None else manifest_of(Path(store).absolute())
    return None if found is None else found.seed
