"""Parts of a store: the draws of a task in a Parquet file, saved whole or not at all.

A row is a draw on either input. The columns `p` and `q` hold the numbers (a list of them where an output
has several), `p_structure` and `q_structure` which structure an output has where there are several,
`p_rest` and `q_rest` what doubles lack of exact values; the first row of `structures` is the table of
structures, as JSON. A part comes back bit for bit: `outputs.canonical.Outputs` on either side.

The name of a part says which cells it holds, and a digest of all its bytes. Its header says the same, and
whose draws they are (`Manifest.owner`): a part of another store, pair or stage is not used, whatever its
name. It is written under another
name in the folder of the run that draws, brought to the disk, and then renamed. Who takes a store over
removes the folders of other runs first, so that a worker that outlived its run saves nothing more.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpassay._typing import AnyArray
from dpassay.errors import StoreError
from dpassay.outputs.canonical import Outputs
from dpassay.outputs.templates import Template
from dpassay.sampling.columns import arrow_source, pyarrow_for
from dpassay.sampling.tasks import Task

#: The version of everything in a store: names, columns, addresses of cells.
FORMAT = 2
PARTS = "parts"
_NAME = re.compile(r"pair(\d+)-stage(\d+)-size(\d+)-cells(\d+)-(\d+)\.([0-9a-f]{32})\.parquet")
_KEY = b"dpassay"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


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
        """Draws a side."""
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


def listed(root: Path) -> list[Part]:
    """The parts of a store, in order."""
    found = []
    try:
        names = [entry.name for entry in os.scandir(root / PARTS)]
    except FileNotFoundError:
        names = []
    for name in names:
        if match := _NAME.fullmatch(name):
            index, stage, size, first, last = map(int, match.groups()[:5])
            found.append(Part(root / PARTS / name, index, stage, size, first, last, match[6]))
    return sorted(found, key=lambda p: (p.index, p.stage, p.size, p.first, -p.last, p.digest))


@dataclass(frozen=True)
class Shelf:
    """Where the tasks of a stage are saved; travels to workers."""

    root: Path
    work: str  # the folder of this run
    index: int
    stage: int
    owner: str

    def save(self, task: Task, sides: tuple[Outputs, Outputs]) -> None:
        """Save the draws of a task: on the disk when this returns, or a sentence."""
        size = len(sides[0]) // (task.last - task.first)
        address = self.index, self.stage, size, task.first, task.last
        data = encode(*sides, [self.owner, *address])
        name = (
            f"pair{self.index}-stage{self.stage}-size{size}-cells{task.first}-{task.last}"
            f".{_digest(data)}.parquet"
        )
        with explained(self.root, "the draws made before are safe", ours=True):
            _write(self.root / self.work / name, self.root / PARTS / name, data)


def write_whole(folder: Path, name: str, data: bytes) -> None:
    """Put a file in place, whole or not at all."""
    _write(folder / f".{name}.tmp", folder / name, data)


def _write(draft: Path, place: Path, data: bytes) -> None:
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
    """Bring the names in a folder to the disk, where a folder can be opened for that."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def explained(root: Path, safe: str, ours: bool = False) -> Iterator[None]:
    """What goes wrong with a disk, in a sentence; `ours` if the folder was there and this run's."""
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
        numbers = np.ascontiguousarray(side.numbers, dtype=side.numbers.dtype.newbyteorder("="))
        about[name] = {
            "width": numbers.shape[1],
            "dtype": numbers.dtype.str,
            "containers": sorted(side.containers),
        }
        columns[name] = _column(pa, numbers)
        columns[f"{name}_rest"] = None if side.rest is None else _column(pa, side.rest)
        columns[f"{name}_structure"] = None if side.codes is None else _flat(pa, side.codes)
    table = [json.dumps(template).encode() for template in p.structures]
    offsets = np.full(len(p) + 1, len(table), dtype=np.int64)
    offsets[0] = 0
    ends = np.cumsum([0, *map(len, table)], dtype=np.int64)
    texts = pa.LargeStringArray.from_buffers(
        len(table), pa.py_buffer(ends), pa.py_buffer(b"".join(table))
    )
    columns["structures"] = pa.LargeListArray.from_arrays(_flat(pa, offsets), texts)
    held = {name: column for name, column in columns.items() if column is not None}
    made = pa.Table.from_arrays(list(held.values()), names=list(held))
    made = made.replace_schema_metadata({_KEY: json.dumps(about).encode()})
    sink = pa.BufferOutputStream()
    # a dictionary would make one number of 0.0 and −0.0
    pa.parquet.write_table(
        made, sink, use_dictionary=False, compression="none", write_statistics=False
    )
    return bytes(sink.getvalue())


def _column(pa: Any, matrix: AnyArray) -> Any:
    width = matrix.shape[1]
    if width == 0:
        return None
    flat = _flat(pa, matrix)
    return flat if width == 1 else pa.FixedSizeListArray.from_arrays(flat, width)


def _flat(pa: Any, array: AnyArray) -> Any:
    """An array as it is; `pyarrow.array` would import pandas first, in every worker."""
    flat = np.ascontiguousarray(array).reshape(-1)
    kind = pa.from_numpy_dtype(flat.dtype)
    return pa.Array.from_buffers(kind, flat.size, [None, pa.py_buffer(flat)])


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
    width = int(about["width"])
    numbers = _matrix(table, name, width)
    if numbers is None:
        numbers = np.zeros((table.num_rows, 0), dtype=np.dtype(about["dtype"]))
    codes = f"{name}_structure"
    return Outputs(
        numbers,
        structures,
        _numbers(table[codes].chunks, np.int32) if codes in table.column_names else None,
        _matrix(table, f"{name}_rest", width),
        frozenset(map(str, about["containers"])),
    )


def _matrix(table: Any, name: str, width: int) -> AnyArray | None:
    if name not in table.column_names:
        return None
    column = table[name]
    chunks = column.chunks if width == 1 else [chunk.flatten() for chunk in column.chunks]
    return _numbers(chunks, chunks[0].type.to_pandas_dtype()).reshape(-1, width)


def _numbers(chunks: Sequence[Any], dtype: Any) -> AnyArray:
    """Arrays without nulls, as they are."""
    return np.concatenate(
        [
            np.frombuffer(chunk.buffers()[1], dtype)[chunk.offset : chunk.offset + len(chunk)]
            for chunk in chunks
        ]
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
