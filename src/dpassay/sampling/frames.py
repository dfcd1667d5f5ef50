"""Data frames, tables and arrays with named fields: what `sampling.files` refuses is refused of them too.

Their cells are values already, so nothing of them is read as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay._typing import AnyArray
from dpassay.errors import InvalidInput
from dpassay.outputs import foreign_arrays
from dpassay.sampling.columns import Column, Content, Table, as_objects, integer_array, number_array
from dpassay.sampling.files import alike, listed


def has_columns(given: Any) -> bool:
    """Whether outputs have columns with names."""
    if isinstance(given, np.ndarray):
        return given.dtype.names is not None
    table = foreign_arrays.columns(given)
    return table is not None and table[0] is not None


def frame_pair(
    p: Any, q: Any, *, columns: Sequence[str] | None = None, drop: Sequence[str] | None = None
) -> tuple[Table, Table]:
    """Two data frames with the same columns in the same order and of the same types."""
    wanted, unwanted = listed(columns, drop)
    return alike(_content("p", p), _content("q", q), wanted, unwanted)


def refuse_one_frame(p: Any, q: Any) -> None:
    """Rows with names beside rows without: they would differ in that alone."""
    named = [side for side in (p, q) if has_columns(side)]
    if len(named) == 1 and len(_content("", named[0]).called) > 1:
        which = ("p", "q") if named[0] is p else ("q", "p")
        raise InvalidInput(
            f"{which[0]} has columns with names and {which[1]} has none: give both as data frames, or "
            "both as arrays (frame.to_numpy())"
        )


def _content(name: str, given: Any) -> Content:
    if isinstance(given, np.ndarray):
        names = tuple(given.dtype.names or ())
        arrays = [given[field] for field in names]
    else:
        table = foreign_arrays.columns(given)
        assert table is not None
        names, arrays = tuple(table[0] or ()), list(table[1])
    if double := [one for one in names if names.count(one) > 1]:
        raise InvalidInput(
            f"{name} has more than one column {double[0]!r}; give every column a name of its own"
        )
    if not names:
        raise InvalidInput(f"{name} has no columns; give a data frame with the outputs in it")
    found = tuple(map(_column, arrays))
    return Content(
        label=name,
        shown=name,
        size=0,
        sha256="",
        modified="",
        rows=found[0].rows,
        called=names,
        named=True,
        columns=found,
    )


def _column(array: AnyArray) -> Column:
    """Cells as `file_formats` has them, but for text, which is not looked into."""
    if isinstance(array, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(array)
        return Column(_column(array.data[~missing]).values, ~missing)
    if array.ndim > 1 or array.dtype.kind not in "biufMO":
        array = as_objects(array.tolist())
    match array.dtype.kind:
        case "i" | "u" | "f":
            return Column(number_array(array))
        case "b" | "M":
            return Column(np.ascontiguousarray(array))
    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in array]
    present = np.array([cell is not None for cell in cells], dtype=bool)
    values = as_objects(cell for cell in cells if cell is not None)
    kinds = set(map(type, values))
    if kinds <= {int, float} and kinds:
        values = number_array(values.astype(float)) if float in kinds else integer_array(values)
    elif kinds == {bool}:
        values = values.astype(bool)
    return Column(values, None if present.all() else present)
