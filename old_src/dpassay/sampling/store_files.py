"""The files of a store: draws on the disk as they come, so that nothing is lost when a run is killed.

    runs/
      store.json     what is in it: seed, versions, and for every pair the mechanism and the inputs
      parts/         the draws, a file for each task
      damaged/       parts that did not hold what was saved
      lock           held by the process that draws, as long as it lives
      work-…/        of the run that draws: files that are not yet complete

A store belongs to a seed and, pair by pair, to a mechanism and its inputs. Draws have addresses: pair,
stage and cell. A cell that is there is read, one that is not is drawn, whichever run asks for it. One
process at a time draws into a store.

A part is a Parquet file with the draws of a task. A row is a draw on either input. The columns `p` and
`q` hold the numbers (a list of them where an output has several), `p_structure` and `q_structure` which
structure an output has where there are several, `p_rest` and `q_rest` what doubles lack of exact values;
the first row of `structures` is the table of structures, as JSON. A part comes back bit for bit.

The name of a part says which cells it holds, and a digest of all its bytes. Its header says the same, and
whose draws they are (`Manifest.owner`): a part of another store, pair or stage is not used. It is written
in the folder of the run that draws, brought to the disk, and then renamed: it is complete or not there.
A run that takes a store over removes the folders of other runs first, so that a worker that outlived its
run saves nothing more.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay import records
from dpassay import validation as checks
from dpassay._typing import AnyArray
from dpassay._version import __version__
from dpassay.errors import StoreError
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import Template
from dpassay.privacy.relations import Pair
from dpassay.sampling.columns import arrow_source, pyarrow_for
from dpassay.sampling.identity import Identity, difference, input_identity, name_of
from dpassay.sampling.job import Task, by_calls

if TYPE_CHECKING:
    from dpassay.sampling.draw import Sampling

#: The version of everything in a store: names, columns, addresses of cells.
FORMAT = 2
#: Files and folders of a store, and how the names of temporary folders begin.
MANIFEST, PARTS, LOCK, DAMAGED = "store.json", "parts", "lock", "damaged"
WORK, GONE = "work-", "gone-"
#: The longest description of a pair that is kept whole.
_LONG = 1 << 20
_NAME = re.compile(r"pair(\d+)-stage(\d+)-size(\d+)-cells(\d+)-(\d+)\.([0-9a-f]{32})\.parquet")
_KEY = b"dpassay"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True)
class Entry:
    """The mechanism and the inputs whose draws are stored under a pair's number."""

    name: str
    mechanism: Identity
    pair: Pair
    inputs: tuple[Identity, Identity]
    replayable: bool
    calls: bool  # whether every output is a call

    @classmethod
    def of(cls, mechanism: Any, pair: Pair, sampling: Sampling, described: Identity) -> Entry:
        """The entry of a mechanism, `described` before the run, on a pair."""
        alone, named = sampling.on_error == "outcome", sampling.identity
        held = {**described, "failures are outputs": str(alone)}
        if alone:  # and when it is one
            held["time-out"] = str(sampling.timeout)
        inputs = input_identity(pair[0], named), input_identity(pair[1], named)
        replayable = bool(getattr(mechanism, "replayable", True))
        return cls(name_of(mechanism), held, pair, inputs, replayable, by_calls(mechanism, alone))

    def to_dict(self) -> dict[str, Any]:
        pair = records.encode(self.pair)
        if len(json.dumps(pair)) > _LONG:
            first, second = (records.Opaque(checks.shown(data)) for data in self.pair)
            pair = records.encode(Pair(first, second, self.pair.relation, self.pair.name))
        return {**vars(self), "pair": pair}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Entry:
        first, second = (dict(one) for one in data["inputs"])
        pair, held = records.decode(data["pair"]), dict(data["mechanism"])
        if not isinstance(pair, Pair):
            raise TypeError("no pair")
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
        entries = {str(index): entry.to_dict() for index, entry in sorted(self.entries.items())}
        content = {"format": FORMAT, "dpassay": self.version, "seed": self.seed, "pairs": entries}
        return (json.dumps(content, indent=1) + "\n").encode()


def manifest_of(root: Path) -> Manifest | None:
    """The manifest of a store; None if there is no store yet, and nothing else in the folder."""
    place = root / MANIFEST
    try:
        if not place.exists():
            _check_empty(root)
            return None
        data = json.loads(place.read_bytes())
        if data["format"] != FORMAT:
            raise StoreError(
                f"the store {root} is of format {data['format']}, and this dpassay ({__version__}) reads "
                f"format {FORMAT}: use the version that made it, {data.get('dpassay', 'not known')}, or "
                "draw into another folder"
            )
        entries = {int(k): Entry.from_dict(one) for k, one in data["pairs"].items()}
        return Manifest(int(data["seed"]), entries, str(data["dpassay"]))
    except OSError as error:
        raise StoreError(f"{root} cannot be read as a store: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"{place} is damaged ({type(error).__name__}: {error}); the draws in {root / PARTS} are not "
            "used without it: restore it, or give another folder"
        ) from None


def _check_empty(root: Path) -> None:
    """Refuse a folder that holds something else, or draws without a manifest."""
    ours = {PARTS, LOCK, DAMAGED, f".{MANIFEST}.tmp"}
    names = os.listdir(root) if root.is_dir() else []
    other = [name for name in names if name not in ours and not name.startswith((WORK, GONE))]
    if other:
        raise StoreError(
            f"{root} holds {checks.shown(sorted(other)[0])} and no store of draws: give a new or an "
            "empty folder"
        )
    if PARTS in names and os.listdir(root / PARTS):
        raise StoreError(
            f"{root} holds draws but no {MANIFEST} that says of what: restore it, or give another folder"
        )


def stored_seed(store: Any) -> int | None:
    """The seed of a store that exists, with which a run without a seed continues."""
    found = None if store is None else manifest_of(Path(store).absolute())
    return None if found is None else found.seed


# --- parts


class Damaged(Exception):
    """A part does not hold what was saved."""


@dataclass(frozen=True)
class Part:
    """A part as its name tells it: cells `first` up to `last`, of `size` draws a side each."""

    path: Path
    index: int
    stage: int
    size: int
    first: int
    last: int
    digest: str

    @property
    def draws(self) -> int:
        return (self.last - self.first) * self.size

    def read(self, owner: str) -> tuple[Outputs, Outputs]:
        """The draws; Damaged if they are not those that were saved here for this owner."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise Damaged(f"it cannot be read ({error.strerror or error})") from None
        if _digest(data) != self.digest:
            raise Damaged("it is not what was saved: cut short or changed")
        p, q, bound_to = decode(data)
        if bound_to != [owner, self.index, self.stage, self.size, self.first, self.last]:
            raise Damaged("it holds draws of another seed, mechanism, pair or stage")
        if not len(p) == len(q) == self.draws:
            raise Damaged(f"it holds {len(p)} and {len(q)} draws")
        return p, q


def list_parts(root: Path, index: int | None = None, stage: int | None = None) -> list[Part]:
    """The parts of a store, or of one of its pairs and stages, in order."""
    found = []
    for name in os.listdir(root / PARTS) if (root / PARTS).is_dir() else ():
        if match := _NAME.fullmatch(name):
            pair, of_stage, size, first, last = map(int, match.groups()[:5])
            if index in (None, pair) and stage in (None, of_stage):
                path = root / PARTS / name
                found.append(Part(path, pair, of_stage, size, first, last, match[6]))
    return sorted(found, key=lambda p: (p.index, p.stage, p.size, p.first, -p.last, p.digest))


@dataclass(frozen=True)
class PartWriter:
    """Saves the tasks of a stage; travels to workers."""

    root: Path
    work: str  # the folder of this run
    index: int
    stage: int
    owner: str

    def save(self, task: Task, sides: tuple[Outputs, Outputs]) -> None:
        """Save the draws of a task; when this returns, they are on the disk."""
        size = len(sides[0]) // (task.last - task.first)
        address = self.index, self.stage, size, task.first, task.last
        data = encode(*sides, [self.owner, *address])
        name = (
            f"pair{self.index}-stage{self.stage}-size{size}-cells{task.first}-{task.last}"
            f".{_digest(data)}.parquet"
        )
        with disk_errors(self.root, "the draws made before are safe", ours=True):
            write_atomically(self.root / self.work / name, self.root / PARTS / name, data)


def write_atomically(draft: Path, place: Path, data: bytes) -> None:
    """Put a file in place, completely or not at all; it is written as `draft` first."""
    try:
        with open(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, where a folder can be opened for that."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def disk_errors(root: Path, safe: str, ours: bool = False) -> Iterator[None]:
    """Raise errors of the disk as StoreError; `ours` if the folder was there and belongs to this run."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _FULL:
            text = f"the store {root} has no room left ({why}); {safe}: make room and start again"
        elif ours and error.errno == errno.ENOENT:
            text = (
                f"the store {root} was taken over by another process, or this worker does not see its "
                f"folder; {safe}. Let one process draw into a store, in a folder that all workers share"
            )
        else:
            text = f"the store {root} cannot be written ({why}); {safe}: give a folder that can be"
        raise StoreError(text) from None


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


# --- outputs as Parquet


def arrow() -> Any:
    """pyarrow with its Parquet module, or how to install it."""
    return pyarrow_for("a store of draws", "parquet")


def encode(p: Outputs, q: Outputs, bound_to: list[str | int]) -> bytes:
    """Both sides, equally long and over one table of structures, as the bytes of a Parquet file.

    `bound_to` is what it belongs to: owner, pair, stage, size of the cells, first and last of them.
    """
    pa = arrow()
    columns: dict[str, Any] = {}
    about: dict[str, Any] = {"format": FORMAT, "of": bound_to}
    for name, side in (("p", p), ("q", q)):
        numbers = side.numbers.astype(side.numbers.dtype.newbyteorder("="), copy=False)
        about[name] = {
            "width": numbers.shape[1],
            "dtype": numbers.dtype.str,
            "containers": sorted(side.containers),
        }
        held = {name: numbers, f"{name}_rest": side.rest, f"{name}_structure": side.codes}
        for key, array in held.items():
            if array is not None and array.size:
                columns[key] = _column(pa, array)
    table = [json.dumps(template).encode() for template in p.structures]
    ends = np.cumsum([0, *map(len, table)], dtype=np.int64)
    texts = pa.LargeStringArray.from_buffers(
        len(table), pa.py_buffer(ends), pa.py_buffer(b"".join(table))
    )
    offsets = np.full(len(p) + 1, len(table), dtype=np.int64)
    offsets[0] = 0  # the first row holds all of them
    columns["structures"] = pa.LargeListArray.from_arrays(_column(pa, offsets), texts)
    made = pa.Table.from_arrays(list(columns.values()), names=list(columns))
    made = made.replace_schema_metadata({_KEY: json.dumps(about).encode()})
    sink = pa.BufferOutputStream()
    # a dictionary would make one number of 0.0 and −0.0
    pa.parquet.write_table(
        made, sink, use_dictionary=False, compression="none", write_statistics=False
    )
    return bytes(sink.getvalue())


def _column(pa: Any, array: AnyArray) -> Any:
    """Numbers as they are, rows as lists; `pyarrow.array` would import pandas first, in every worker."""
    flat = np.ascontiguousarray(array).reshape(-1)
    kind = pa.from_numpy_dtype(flat.dtype)
    made = pa.Array.from_buffers(kind, flat.size, [None, pa.py_buffer(flat)])
    width = array.shape[1] if array.ndim == 2 else 1
    return made if width == 1 else pa.FixedSizeListArray.from_arrays(made, width)


def decode(data: bytes) -> tuple[Outputs, Outputs, list[str | int]]:
    """The inverse of `encode`; Damaged if the bytes are something else."""
    pa = arrow()
    try:
        table = pa.parquet.ParquetFile(arrow_source(pa, data)).read()
        about = json.loads(table.schema.metadata[_KEY])
        found = tuple(_tuples(json.loads(text)) for text in table["structures"][0].as_py())
        sides = [_side(table, name, about[name], found) for name in ("p", "q")]
        bound_to = list(about["of"])
    except Exception as error:  # pyarrow raises many kinds
        raise Damaged(f"it is no part of a store ({type(error).__name__}: {error})") from None
    return sides[0], sides[1], bound_to


def _side(table: Any, name: str, about: Any, structures: tuple[Template, ...]) -> Outputs:
    numbers, rest, codes = (
        _numbers(table[key]) if key in table.column_names else None
        for key in (name, f"{name}_rest", f"{name}_structure")
    )
    if numbers is None:
        numbers = np.zeros(0, dtype=np.dtype(about["dtype"]))
    shape = table.num_rows, int(about["width"])
    return Outputs(
        numbers.reshape(shape),
        structures,
        codes,
        None if rest is None else rest.reshape(shape),
        frozenset(map(str, about["containers"])),
    )


def _numbers(column: Any) -> AnyArray:
    """The numbers of a column without nulls; `to_numpy` would import pandas."""
    found = []
    for chunk in column.chunks:
        flat = chunk.flatten() if chunk.type.num_fields else chunk
        whole = np.frombuffer(flat.buffers()[1], flat.type.to_pandas_dtype())
        found.append(whole[flat.offset : flat.offset + len(flat)])
    return np.concatenate(found)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
