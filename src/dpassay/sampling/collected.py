"""Outputs that were collected elsewhere, arrays or files, as a pool of draws."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpassay.errors import (
    BadOutput,
    DependenceWarning,
    DependentDraws,
    InvalidInput,
    NotEnoughDraws,
)
from dpassay.outputs.canonical import Outputs, all_of, check_containers, from_columns
from dpassay.privacy.pairs import Pair, as_pair
from dpassay.privacy.provenance import Origin
from dpassay.sampling.columns import has_columns
from dpassay.sampling.copies import fingerprint_of
from dpassay.sampling.dependence import (
    labels_like,
    one_sided_repeats,
    repeated_rows,
    shared_rows,
)
from dpassay.sampling.draw import Seed, seed_of
from dpassay.sampling.files import frame_pair, read_pair, refuse_one_frame
from dpassay.sampling.job import stream
from dpassay.sampling.samples import Batch, Samples, warned


def from_samples(
    p: Any,
    q: Any,
    *,
    pair: tuple[Any, Any] | Pair | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    max_bytes: int | None = None,
    rng: Seed = 0,
) -> Samples:
    """Outputs that were collected elsewhere, as a pool of draws.

    `p` and `q` are arrays or tables of outputs on the first and the second input, or paths of .csv,
    .jsonl, .parquet or .npy files, one output a row. Columns of files and frames are matched by name;
    `columns` says which of them are outputs, `drop` which are not (an identifier, a time stamp). Of a
    file at most `max_bytes` are read, also decompressed: 2 GiB unless more are asked for. Rows are
    shuffled by the seed, since files may be sorted. The two may differ in length. Every row must be an
    independent run of the mechanism: copied rows are refused.
    """
    seed = seed_of(rng)
    files = isinstance(p, (str, Path)), isinstance(q, (str, Path))
    origins: tuple[Origin, ...] = ()
    if all(files):
        tables = read_pair(p, q, columns=columns, drop=drop, max_bytes=max_bytes)
        sides = [from_columns(table.names, table.columns) for table in tables]
        origins = tables[0].origin, tables[1].origin
    elif any(files):
        raise InvalidInput("p and q must both be files, or neither")
    elif has_columns(p) and has_columns(q):
        frames = frame_pair(p, q, columns=columns, drop=drop)
        sides = [from_columns(table.names, table.columns) for table in frames]
    elif columns is not None or drop is not None:
        raise InvalidInput(
            "columns and drop choose among the columns of files and data frames; arrays have no names: "
            "choose with p[:, [0, 2]]"
        )
    else:
        refuse_one_frame(p, q)
        sides = [_side(name, given) for name, given in (("p", p), ("q", q))]
    for name, side in zip("pq", sides, strict=True):
        if len(side) == 0:
            raise NotEnoughDraws(f"{name} holds no outputs")
    widths = [side.numbers.shape[1] for side in sides if side.is_plain]
    if len(set(widths)) > 1:
        raise InvalidInput(
            f"p and q do not go together: outputs have {widths[0]} coordinates in p and {widths[1]} in q"
        )
    try:
        check_containers(frozenset().union(*(side.containers for side in sides)))
    except BadOutput as error:
        raise InvalidInput(f"p and q do not go together: {error}") from None
    origin = as_pair(pair) if pair is not None else Pair(_origin(p, "p"), _origin(q, "q"))
    batch = Batch.of(*sides)
    if shared := shared_rows(batch.p, batch.q):
        raise DependentDraws(
            f"{shared}: the two seem to hold the same draws, in part or in whole, in another order or "
            "format. Give draws of their own for each input"
        )
    if copied := repeated_rows(batch.p, batch.q):
        raise DependentDraws(
            f"{copied}: rows seem to have been copied (a join gone wrong?), and every guarantee "
            "assumes that each is a run of its own. Remove the copies"
        )
    doubts = warned(batch)
    repeats, copies = one_sided_repeats(batch.p, batch.q) or (None, False)
    for doubt in (repeats if copies else None, labels_like(batch.p, batch.q)):
        if doubt is not None:
            warnings.warn(doubt, DependenceWarning, stacklevel=2)
            doubts += (doubt,)
    remarks = (repeats,) if repeats is not None and not copies else ()
    shuffled = (
        side[stream(seed, 0, 1 << 21, index).permutation(len(side))]
        for index, side in enumerate((batch.p, batch.q))
    )
    found = Samples(
        *shuffled, pair=origin, seed=seed, doubts=doubts, files=origins, remarks=remarks
    )
    found.digest = fingerprint_of(batch.p, batch.q)
    return found


def _side(name: str, given: Any) -> Outputs:
    try:
        return all_of(given)
    except BadOutput as error:
        raise InvalidInput(f"{name} cannot be read as outputs: {error}") from None


def _origin(given: Any, name: str) -> str:
    return Path(given).name if isinstance(given, (str, Path)) else f"samples {name}"
