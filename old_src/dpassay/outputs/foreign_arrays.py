"""Outputs of other libraries as NumPy arrays, recognised by their shape: none of them is imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpassay import validation as checks
from dpassay._typing import AnyArray
from dpassay.errors import BadOutput


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def is_missing(value: Any) -> bool:
    """Whether a value is pandas' NA or NaT."""
    return type(value).__name__ in ("NAType", "NaTType") and _library(value) == "pandas"


def is_label(value: Any) -> bool:
    """Whether a value is an interval or a period of pandas, which are read as their text."""
    return type(value).__name__ in ("Interval", "Period") and _library(value) == "pandas"


def is_frame(value: Any) -> bool:
    """Whether this is a data frame of pandas or polars."""
    return type(value).__name__ == "DataFrame" and _library(value) in ("pandas", "polars")


def frames_as_columns(items: Sequence[Any] | AnyArray) -> list[Any]:
    """The same outputs; data frames as dictionaries of lists, read together where their types agree.

    Joining columns of one type changes no value. Frames one by one take four times as long.
    """
    found = list(items)
    groups: dict[Any, list[int]] = {}
    for k, item in enumerate(items):
        if is_frame(item):
            library = _library(item)
            frame = found[k] = _with_labels(item) if library == "pandas" else item
            types = tuple(frame.dtypes if library == "pandas" else frame.schema.values())
            groups.setdefault((library, tuple(frame.columns), types), []).append(k)
    for (library, _, _), rows in groups.items():
        together = sys.modules[library].concat([found[k] for k in rows])
        names, joined = columns(together, of_draws=True) or ((), [])
        listed = dict(zip(names or (), map(_listed, joined), strict=True))
        ends = np.cumsum([len(found[k]) for k in rows]).tolist()
        for k, start, end in zip(rows, [0, *ends], ends, strict=False):
            found[k] = {name: column[start:end] for name, column in listed.items()}
    return found


def _listed(column: AnyArray) -> Any:
    """A column as a list, which is cut quickly; as it is where a list would change its items."""
    kept = column.dtype.kind in "biuO" or column.dtype.str[1:] in ("f8", "f4", "f2")
    return column.tolist() if kept else column


def columns(
    value: Any, *, of_draws: bool = False
) -> tuple[tuple[str, ...] | None, list[AnyArray]] | None:
    """Names and columns of a data frame, a table or a series; None for anything else.

    A series has no names: it is one column. What stands for a missing value in these libraries
    (NaN, NA, NaT, null) depends on what else a column holds, so it is None for all of them.
    If `of_draws`, each row is an output: whole numbers as labels number the draws and are left out.
    """
    kind = type(value).__name__
    match _library(value):
        case "scipy" if hasattr(value, "toarray"):
            raise BadOutput(
                f"outputs that are the rows of one {kind} are sparse; return a list of sparse rows, or "
                ".toarray()"
            )
        case "pandas" if kind == "DataFrame":
            value = _with_labels(value, of_draws)
            names = tuple(map(str, value.columns))
            return names, [_from_pandas(column) for _, column in value.items()]
        case "pandas" if kind == "Series" and _labelled(value.index, of_draws):
            many = value.index.nlevels
            labels = [f"label {k + 1}" for k in range(many)] if many > 1 else ["label"]
            levels = [_from_pandas(value.index.get_level_values(k)) for k in range(many)]
            return (*labels, "value"), [*levels, _from_pandas(value)]
        case "pandas" if kind in ("Series", "Index") or hasattr(value, "_from_sequence"):
            return None, [_from_pandas(value)]
        case "polars" if kind == "DataFrame":
            return tuple(value.columns), [_from_polars(value[name]) for name in value.columns]
        case "polars" if kind == "Series":
            return None, [_from_polars(value)]
        case "pyarrow" if kind in ("Table", "RecordBatch"):
            return tuple(value.schema.names), [from_arrow(column) for column in value.columns]
        case "pyarrow" if hasattr(value, "to_pylist"):
            return None, [from_arrow(value)]
    return None


def _labelled(index: Any, of_draws: bool = False) -> bool:
    """Whether an index of pandas holds more than the row numbers 0, 1, 2, …"""
    if getattr(index.dtype, "kind", "O") not in "iu":
        return True
    return not of_draws and not sys.modules["pandas"].RangeIndex(len(index)).equals(index)


def _with_labels(frame: Any, of_draws: bool = False) -> Any:
    """A data frame of pandas with its labels as columns."""
    if not _labelled(frame.index, of_draws):
        return frame
    if not set(frame.columns).isdisjoint(frame.index.names):  # set_index(…, drop=False)
        frame = frame.rename_axis(index=[None] * frame.index.nlevels)
    return frame.reset_index()


def without_row_numbers(value: Any) -> Any:
    """An input whose rows pandas numbers, with these numbers from 0 on; anything else as it is."""
    if not (_library(value) == "pandas" and hasattr(value, "index")):
        return value
    return value if _labelled(value.index, of_draws=True) else value.reset_index(drop=True)


def parts(value: Any) -> dict[str, Any] | None:
    """A sparse matrix by its entries, a fitted scikit-learn estimator by what it learned; None else."""
    if _library(value) in ("pandas", "polars", "pyarrow", "numpy"):
        return None  # `hasattr` takes long on a data frame
    if _library(value) == "scipy" and hasattr(value, "tocoo"):
        found = value.tocoo()
        found.sum_duplicates()
        axes = getattr(found, "coords", None) or (found.row, found.col)  # SciPy 1.13 has the former
        places = {f"index {k}": index for k, index in enumerate(axes)}
        return {"shape": list(found.shape), "entries": {**places, "value": found.data}}
    state = None
    if hasattr(value, "get_params") and hasattr(value, "fit"):
        state = {k: v for k, v in vars(value).items() if k.endswith("_") and k[0] != "_"}
    elif _library(value) == "sklearn" and hasattr(value, "__getstate__"):  # a tree of nodes
        state = value.__getstate__()
    if isinstance(state, dict):
        return {k: v for k, v in state.items() if not callable(v)}
    return None


def _from_pandas(series: Any) -> AnyArray:
    missing = np.asarray(series.isna())
    kind = getattr(series.dtype, "kind", "O")
    if not missing.any() or (kind == "f" and isinstance(series.dtype, np.dtype)):
        array = np.asarray(series)
        if array.dtype.kind != "O":
            return np.ma.array(array, mask=missing) if missing.any() else array
    found = np.asarray(series.astype(object)).copy()
    found[missing] = None
    return found


def _from_polars(series: Any) -> AnyArray:
    if series.null_count() == 0 and series.dtype.is_numeric():
        return np.asarray(series.to_numpy())
    return objects(series.to_list())


def from_arrow(column: Any) -> AnyArray:
    """A column of a table as an array; an object array where it holds nulls or nested values."""
    kind = str(column.type)
    plain = kind.startswith(("int", "uint", "float", "double", "halffloat", "bool", "timestamp"))
    if column.null_count == 0 and plain and "tz=" not in kind:
        joined = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        return np.asarray(joined.to_numpy(zero_copy_only=False))
    return objects(column.to_pylist())


def objects(items: Iterable[Any]) -> AnyArray:
    """An object array of items as they are, which may be sequences themselves."""
    listed = list(items)
    found = np.empty(len(listed), dtype=object)
    for index, item in enumerate(listed):  # `found[:] = listed` takes items apart
        found[index] = item
    return found


def array(value: Any) -> AnyArray:
    """A NumPy array of anything that offers itself as one: NumPy's, PyTorch's, JAX', CuPy's."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor, wherever it is
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):
            value = value.float()
        return np.asarray(value.numpy())
    if hasattr(value, "get") and hasattr(value, "__cuda_array_interface__"):
        return np.asarray(value.get())
    if hasattr(value, "__array__"):
        found = np.asarray(value)
        return found.astype(np.float32) if "bfloat16" in str(found.dtype) else found
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if isinstance(value, (int, float, complex)):
        return np.asarray(value)
    if hasattr(value, "__iter__") and hasattr(value, "__len__"):
        return objects(value)
    raise BadOutput(
        f"an output of type {type(value).__name__} is no array: {checks.shown(value)}; return an array "
        "or a list of outputs (is a `return` missing? a generator goes into list(…))"
    )
