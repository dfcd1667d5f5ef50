"""Stores: draws on the disk as they come, so that nothing is lost when a run ends early.

    runs/
      store.json     what is in it: seed, versions, and for every pair the mechanism and the inputs
      parts/         the draws, a file for each task; see `parts`
      damaged/       parts that did not hold what was saved
      lock           held by the process that draws, as long as it lives
      work-…/        of the run that draws: what is not yet in place

A store belongs to a seed and, pair by pair, to a mechanism and its inputs. Draws have addresses: pair,
stage and cell. A cell that is there is read, one that is not is drawn, whichever run asks for it, so that
a run that was killed goes on where it was, and no run gets a draw twice.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import shutil
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpassay import checks
from dpassay._typing import BoolArray
from dpassay._version import __version__
from dpassay.errors import (
    DependenceWarning,
    DependentDraws,
    InvalidInput,
    NotEnoughDraws,
    StoreError,
    StoreWarning,
)
from dpassay.outputs.canonical import Outputs, align, arranged, concatenate
from dpassay.privacy.pairs import Pair
from dpassay.records import Opaque, decode, encode
from dpassay.sampling.cells import by_calls
from dpassay.sampling.dependence import fingerprint_of, repeated_rows, symptoms
from dpassay.sampling.identity import (
    Identity,
    difference,
    identity,
    input_identity,
    name_of,
)
from dpassay.sampling.parts import (
    FORMAT,
    PARTS,
    Damaged,
    Part,
    Shelf,
    arrow,
    explained,
    listed,
    sync_folder,
    write_whole,
)

try:
    import fcntl as _fcntl
except ImportError:  # Windows: the last to come takes a store over, and who drew before stops
    _fcntl = None  # type: ignore[assignment]

fcntl: Any = _fcntl

MANIFEST, _LOCK, _WORK, _GONE, _DAMAGED = "store.json", "lock", "work-", "gone-", "damaged"
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
    def of(cls, mechanism: Any, pair: Pair, each_alone: bool, timeout: float | None) -> Entry:
        """The entry of a mechanism on a pair; a failure may be an output."""
        replayable = bool(getattr(mechanism, "replayable", True))
        inputs = input_identity(pair[0]), input_identity(pair[1])
        held = {**identity(mechanism), "failures are outputs": str(each_alone)}
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

    def warn(self, root: Path) -> None:
        """Say if nobody will notice that another input is given."""
        if unknown := [one["holds"] for one in self.inputs if not one["compared"]]:
            warnings.warn(
                f"an input is {unknown[0]}, which cannot be compared from one run to the next: take care "
                f"that the store {root} is used with the same inputs",
                StoreWarning,
                stacklevel=2,
            )

    def check(self, here: Entry, root: Path) -> None:
        """Refuse to go on if these are not the draws that are asked for."""
        if found := difference(self.mechanism, here.mechanism):
            raise StoreError(
                f"the store {root} holds draws of {self.name}, and these would be of {here.name}: "
                f"{found}. Draws of two mechanisms are not mixed: give another folder"
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
                f"format {FORMAT}: use the version that made it, {data.get('dpassay', 'not known')}"
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
    ours = {PARTS, _LOCK, _DAMAGED, f".{MANIFEST}.tmp"}
    try:
        names = os.listdir(root) if root.is_dir() else []
    except OSError as error:
        raise StoreError(f"{root} cannot be read as a store: {error.strerror or error}") from None
    other = [name for name in names if name not in ours and not name.startswith((_WORK, _GONE))]
    if other:
        raise StoreError(
            f"{root} holds {checks.shown(sorted(other)[0])} and no store of draws: give a new or an "
            "empty folder"
        )
    if (root / PARTS).is_dir() and os.listdir(root / PARTS):
        raise StoreError(
            f"{root} holds draws but no {MANIFEST} that says of what: restore it, or give another folder"
        )


# --- drawing into a store


def stored_seed(store: Any) -> int | None:
    """The seed of a store that exists: who gives none goes on with it."""
    found = None if store is None else manifest_of(Path(store).absolute())
    return None if found is None else found.seed


@contextlib.contextmanager
def opened(store: str | Path, here: Entry, *, seed: int, key: tuple[int, int]) -> Iterator[Stage]:
    """A stage of a store, for this process alone; refuses what does not belong into it."""
    arrow()
    root = Path(store).absolute()
    index, stage = key
    manifest_of(root)  # refuses what is no store before anything is written
    with explained(root, "nothing was drawn"):
        (root / PARTS).mkdir(parents=True, exist_ok=True)
    with _locked(root):
        before = manifest_of(root)
        if before is not None and before.seed != seed:
            raise StoreError(
                f"the store {root} holds draws from seed {before.seed}, and these would be from seed "
                f"{seed}: give rng={before.seed} to go on, or another folder"
            )
        if before is not None and before.version != __version__:
            raise StoreError(
                f"the store {root} was made with dpassay {before.version}, and this is {__version__}: "
                "draws of two versions are not mixed. Go on with that version, or give another folder; "
                "dp.Store reads what is there"
            )
        entries = {} if before is None else before.entries
        if index in entries:
            entries[index].check(here, root)
        work = f"{_WORK}{uuid.uuid4().hex}"
        with explained(root, "nothing was drawn"):
            _take_over(root)
            if index not in entries:
                here.warn(root)
                made = Manifest(seed, {**entries, index: here})
                write_whole(root, MANIFEST, made.to_bytes())
            (root / work).mkdir()
        try:
            yield Stage(root, Shelf(root, work, index, stage))
        finally:
            shutil.rmtree(root / work, ignore_errors=True)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Hold the store; the lock goes with the process, however it ends."""
    if fcntl is None:
        yield
        return
    with explained(root, "nothing was drawn"):
        handle = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    _handles.add(handle)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.pread(handle, 200, 0).decode(errors="replace").strip()
            raise StoreError(
                f"the store {root} is in use by {said or 'another process'}: one process draws into a "
                "store at a time. Wait for it, end it, or give another folder"
            ) from None
        except OSError as error:
            raise StoreError(
                f"the folder {root} cannot be locked ({error.strerror}): give one on a local disk"
            ) from None
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        with explained(root, "nothing was drawn"):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()}, since {since}\n".encode(), 0)
        yield
        fcntl.flock(handle, fcntl.LOCK_UN)  # also where a process forked meanwhile has it
    finally:
        _handles.discard(handle)
        os.close(handle)


_handles: set[int] = set()


def _let_go() -> None:
    """A forked process does not hold the locks of its parent: they end with the parent."""
    for handle in _handles:
        with contextlib.suppress(OSError):
            os.close(handle)
    _handles.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _take_over(root: Path) -> None:
    """Remove the folders of runs before: whoever still works for them can save nothing more."""
    for entry in list(os.scandir(root)):
        if entry.name.startswith(_WORK):
            os.replace(
                entry.path, root / f"{_GONE}{uuid.uuid4().hex}"
            )  # at once: no path leads there
    for entry in list(os.scandir(root)):
        if entry.name.startswith(_GONE):
            shutil.rmtree(entry.path, ignore_errors=True)
    sync_folder(root)


class Stage:
    """What a store holds of a stage, and where its tasks are saved."""

    def __init__(self, root: Path, shelf: Shelf) -> None:
        self.root, self.shelf = root, shelf
        self.refresh()

    def refresh(self) -> None:
        """Look what is there; workers that died may have saved what nobody has seen."""
        here = (self.shelf.index, self.shelf.stage)
        self._parts: dict[int, list[Part]] = {}  # by the size of their cells, in order
        for part in listed(self.root):
            if (part.index, part.stage) == here:
                self._parts.setdefault(part.size, []).append(part)

    def at(self, cell: int, size: int) -> Part | None:
        """A part that holds a cell of a size."""
        parts = self._parts.get(size, [])
        place = bisect.bisect_right(parts, cell, key=lambda part: part.first) - 1
        return parts[place] if place >= 0 and cell < parts[place].last else None

    def after(self, cell: int, size: int, limit: int) -> int:
        """The next stored cell of a size, or `limit`."""
        parts = self._parts.get(size, [])
        place = bisect.bisect_right(parts, cell, key=lambda part: part.first)
        return min(parts[place].first, limit) if place < len(parts) else limit

    def read(self, part: Part) -> tuple[Outputs, Outputs] | None:
        """The draws of a part; None if it is damaged: then it is set aside, and that is said."""
        try:
            return part.read()
        except Damaged as why:
            self._parts[part.size].remove(part)
            aside = self.root / _DAMAGED
            with explained(self.root, "nothing else was touched"):
                aside.mkdir(exist_ok=True)
                os.replace(part.path, aside / part.path.name)
                sync_folder(part.path.parent)
            warnings.warn(
                f"a part of the store {self.root} is damaged: {why}. It was set aside "
                f"({aside / part.path.name}), and its {part.draws:,} draws a side are drawn again",
                StoreWarning,
                stacklevel=2,
            )
            return None


# --- reading a store


class Store:
    """The draws in a folder, as `Sampling(store=…)` or `dpassay draw` left them.

    >>> import dpassay as dp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> way = dp.Sampling(store=folder)
    >>> drawn = dp.draw(dp.zoo.Laplace(1.0), (0.0, 1.0), n=1000, rng=0, sampling=way)
    >>> store = dp.Store(folder)
    >>> len(store), len(store.samples())
    (1000, 1000)
    """

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, (str, Path)):
            raise InvalidInput(f"a store is a folder, got {checks.shown(path)}")
        self.path = Path(path).absolute()
        found = manifest_of(self.path)
        if found is None:
            raise StoreError(f"there is no store of draws in {self.path}")
        self._manifest = found

    @property
    def seed(self) -> int:
        """What all its draws are derived from."""
        return self._manifest.seed

    @property
    def version(self) -> str:
        """The version of dpassay that drew."""
        return self._manifest.version

    @property
    def pairs(self) -> dict[int, Pair]:
        """The pairs it holds draws on, by their numbers."""
        return {index: entry.pair for index, entry in self._manifest.entries.items()}

    def mechanism(self, pair: int | None = None) -> dict[str, str]:
        """What drew: name, version, digest of the source, parameters."""
        return dict(self._entry(pair)[1].mechanism)

    def __len__(self) -> int:
        """Draws a side, of all pairs together."""
        return sum(held.draws for index in self._manifest.entries for held in self._held(index))

    def __repr__(self) -> str:
        if not self._manifest.entries:
            return f"Store({str(self.path)!r}): empty"
        first = next(iter(self._manifest.entries.values()))
        lines = [
            f"Store({str(self.path)!r}): {first.name}, seed {self.seed}, dpassay {self.version}"
        ]
        for index, entry in self._manifest.entries.items():
            draws = sum(held.draws for held in self._held(index))
            lines.append(f"  {index}: {draws:,} draws a side on {entry.pair}")
        return "\n".join(lines)

    def samples(self, pair: int | None = None) -> Any:
        """The draws on a pair (its number; needed if there are several) as a pool.

        Of a mechanism that draws from the seed every cell counts once, however often it was drawn; of one
        with a randomness of its own all draws do.
        """
        from dpassay.sampling.samples import Samples

        index, entry = self._entry(pair)
        arrow()
        blocks = []
        for held in self._held(index):
            try:
                blocks.append(held.read())
            except Damaged as why:
                warnings.warn(
                    f"a part of the store {self.path} is damaged and left out: {why} "
                    f"({held.part.path.name}, {held.draws:,} draws a side); drawing again replaces it",
                    StoreWarning,
                    stacklevel=2,
                )
        if not blocks:
            raise NotEnoughDraws(f"the store {self.path} holds no draws on {entry.pair}")
        p, q = (concatenate([block[side] for block in blocks]) for side in (0, 1))
        p, q = arranged(p, q) if entry.calls else align([p, q])
        if copied := repeated_rows(p, q):
            raise DependentDraws(
                f"{copied}: the mechanism carries a random state of its own that started again with a "
                "run. Draw anew, from the `rng` it is given"
            )
        doubts = tuple(symptoms(p, q))
        for text in doubts:
            warnings.warn(text, DependenceWarning, stacklevel=2)
        found = Samples(
            p, q, pair=entry.pair, seed=self.seed, replayable=entry.replayable, doubts=doubts
        )
        found.digest = fingerprint_of(p, q)  # a replay needs others than those of the audit
        return found

    def _entry(self, pair: int | None) -> tuple[int, Entry]:
        entries = self._manifest.entries
        if pair is None and len(entries) == 1:
            return next(iter(entries.items()))
        if pair not in entries:
            known = "; ".join(f"{index}: {entry.pair}" for index, entry in entries.items())
            raise InvalidInput(
                f"pair must be the number of one of the pairs in the store ({known}), got "
                f"{checks.shown(pair)}"
            )
        return int(pair), entries[pair]

    def _held(self, index: int) -> list[_Held]:
        """What counts of the parts of a pair."""
        found = [part for part in listed(self.path) if part.index == index]
        if not self._manifest.entries[index].replayable:
            return [_Held(part, np.ones(part.last - part.first, dtype=bool)) for part in found]
        # cells of one address come from one stream, whatever their size: each counts once, and first in
        # the size of which there are most draws
        most = Counter[tuple[int, int]]()
        for part in found:
            most[part.stage, part.size] += part.draws
        taken: dict[int, BoolArray] = {}
        kept = []
        for part in sorted(found, key=lambda p: (p.stage, -most[p.stage, p.size], p.size, p.first)):
            cells = taken.get(part.stage, np.zeros(0, dtype=bool))
            if cells.size < part.last:
                cells = np.pad(cells, (0, 2 * part.last - cells.size))
            free = ~cells[part.first : part.last]
            cells[part.first : part.last] = True
            taken[part.stage] = cells
            if free.any():
                kept.append(_Held(part, free))
        return sorted(kept, key=lambda held: (held.part.stage, held.part.first))


@dataclass(frozen=True, eq=False)
class _Held:
    """A part, and which of its cells count."""

    part: Part
    cells: BoolArray

    @property
    def draws(self) -> int:
        """Draws a side that count."""
        return int(self.cells.sum()) * self.part.size

    def read(self) -> tuple[Outputs, Outputs]:
        """The draws that count."""
        p, q = self.part.read()
        if self.cells.all():
            return p, q
        rows = np.repeat(self.cells, self.part.size)
        return p[rows], q[rows]
