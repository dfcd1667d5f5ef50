"""Outputs in canonical form: what kind of thing came out, and its numbers.

Every output is split into a *structure*, which holds everything that is not an ordinary number
(its type and length, None, booleans, strings, NaN, ±∞, a raised exception), and the finite
numbers left over, in columns. Arrays of finite numbers have one structure and stay as they are;
only object outputs are walked one by one. −0.0 is 0.0. Nothing is rounded or jittered.

A structure's template is a nested tuple: a leaf such as ("none",) or ("str", "a"), a container
such as ("tuple", (…)), or a number's place: ("int",) or ("float",).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpassay import checks
from dpassay._typing import AnyArray, FloatArray
from dpassay.blackbox.mechanism import Outcome
from dpassay.errors import BadOutput

Template: TypeAlias = tuple[Any, ...]
Codes: TypeAlias = npt.NDArray[np.int32]

INT: Template = ("int",)
FLOAT: Template = ("float",)
_LARGEST = np.iinfo(np.int64).max
_SPECIAL: tuple[Template, ...] = (FLOAT, ("nan",), ("inf",), ("-inf",))


@dataclass(frozen=True)
class Structure:
    """A template and the columns of `Outputs.numbers` that fill its places, in reading order."""

    template: Template
    columns: tuple[int, ...]

    def show(self, numbers: Sequence[float] | None = None) -> str:
        """The output in words; places without a number are shown as •."""
        given = iter(numbers) if numbers is not None else None
        return _show(self.template, given)


@dataclass(frozen=True, eq=False)
class Outputs:
    """`len(outputs)` outputs in canonical form."""

    numbers: AnyArray  # (n, d), integer or float64; rows are aligned by each structure's columns
    structures: tuple[Structure, ...]
    codes: Codes | None = None  # index into structures; None if there is only one

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def is_plain(self) -> bool:
        """Whether every output is the same kind of number or vector."""
        return len(self.structures) == 1

    def __getitem__(self, rows: Any) -> Outputs:
        codes = None if self.codes is None else self.codes[rows]
        return Outputs(self.numbers[rows], self.structures, codes)

    def structure_of(self, row: int) -> Structure:
        """The structure of one output."""
        return self.structures[0 if self.codes is None else int(self.codes[row])]

    def show(self, row: int) -> str:
        """One output in words."""
        structure = self.structure_of(row)
        return structure.show(self.numbers[row, list(structure.columns)].tolist())

    def only(self, code: int) -> AnyArray:
        """A mask of the outputs with one structure."""
        if self.codes is None:
            return np.full(len(self), code == 0)
        return np.asarray(self.codes == code)


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """Several batches as one, with one table of structures."""
    parts = align(parts)
    numbers = np.concatenate([part.numbers for part in parts])
    if parts[0].codes is None:
        return Outputs(numbers, parts[0].structures)
    return Outputs(numbers, parts[0].structures, np.concatenate([_codes(p) for p in parts]))


def align(parts: Sequence[Outputs]) -> list[Outputs]:
    """The same batches over one common table of structures and one width of numbers."""
    parts = _promote(list(parts))
    first = parts[0]
    width = max(part.numbers.shape[1] for part in parts)
    if all(part.structures == first.structures for part in parts):
        return [_widen(part, width) for part in parts]
    table: dict[Structure, int] = {}
    aligned = []
    for part in parts:
        lookup = np.array(
            [table.setdefault(s, len(table)) for s in part.structures], dtype=np.int32
        )
        aligned.append((part, lookup[_codes(part)]))
    structures = tuple(table)
    return [Outputs(_widen(part, width).numbers, structures, codes) for part, codes in aligned]


def _promote(parts: list[Outputs]) -> list[Outputs]:
    """Arrays of integers from one block and floats from another are both arrays of numbers."""
    plain = [p for p in parts if p.is_plain and _is_array(p.structures[0])]
    widths = sorted({p.numbers.shape[1] for p in plain})
    if len(widths) > 1:
        raise BadOutput(
            f"outputs have {widths[0]} coordinates here and {widths[-1]} there; an output whose "
            "length varies goes into an object array"
        )
    if len({p.structures[0].template for p in plain}) < 2:
        return parts

    def promoted(part: Outputs) -> Outputs:
        if part not in plain or part.numbers.dtype.kind == "f":
            return part
        return (
            from_array(part.numbers[:, 0].astype(float))
            if _is_scalar(part)
            else from_array(part.numbers.astype(float))
        )

    return [promoted(part) for part in parts]


def _is_array(structure: Structure) -> bool:
    return structure.template in (INT, FLOAT) or structure.template[0] == "vector"


def _is_scalar(part: Outputs) -> bool:
    return part.structures[0].template in (INT, FLOAT)


def _codes(part: Outputs) -> Codes:
    return np.zeros(len(part), dtype=np.int32) if part.codes is None else part.codes


def _widen(part: Outputs, width: int) -> Outputs:
    missing = width - part.numbers.shape[1]
    if missing == 0:
        return part
    padding = np.zeros((len(part), missing), dtype=part.numbers.dtype)
    return Outputs(np.hstack([part.numbers, padding]), part.structures, part.codes)


def from_raw(raw: Any, size: int) -> Outputs:
    """What a mechanism returned for `size` outputs, checked and in canonical form."""
    array = _as_array(raw, size)
    if array.ndim == 0 or len(array) != size:
        count = "one value" if array.ndim == 0 else f"{len(array)} outputs"
        raise BadOutput(
            f"the mechanism returned {count} for size={size}; it must return `size` independent "
            "outputs (a function with one output per call is wrapped by dp.from_function)"
        )
    if array.ndim > 2:
        raise BadOutput(
            f"the mechanism returned an array of shape {array.shape}; outputs are numbers (size,), "
            "vectors (size, d), or an object array (size,): flatten the rest"
        )
    if array.dtype.kind == "O" or array.dtype.kind in "US":
        return _from_objects(array)
    return from_array(array)


def _as_array(raw: Any, size: int) -> AnyArray:
    if isinstance(raw, (str, bytes, dict)):
        raise BadOutput(
            f"the mechanism returned {checks.shown(raw)} for size={size}; it must return an array"
        )
    try:
        return np.asarray(raw)
    except ValueError:
        raise BadOutput(
            "the mechanism returned rows of unequal length; if the length is part of the output, "
            "return an object array: out = np.empty(size, dtype=object); out[i] = row"
        ) from None


def from_array(array: AnyArray) -> Outputs:
    """A numeric array (n,) or (n, d) in canonical form; no copy where none is needed."""
    kind = array.dtype.kind
    if kind not in "biuf":
        raise BadOutput(
            f"outputs of dtype {array.dtype} have no canonical form; return real numbers "
            "(complex ones as two columns, dates as numbers or strings)"
        )
    vector = array.ndim == 2
    numbers: AnyArray = array if vector else array.reshape(-1, 1)
    width = numbers.shape[1]
    if width == 0:
        raise BadOutput(f"outputs of shape {array.shape} hold no numbers; return at least one each")
    if kind == "u" and array.size and array.max() > _LARGEST:
        raise BadOutput(
            f"outputs reach {array.max()}, more than the {_LARGEST} that fit into 64 bits with a sign; "
            "return them less an offset, as floats, or as strings"
        )
    if kind in "biu":
        numbers = numbers.view(np.uint8) if kind == "b" else numbers
        return Outputs(numbers, (_plain_structure(INT, width, vector),))
    numbers = np.asarray(numbers, dtype=np.float64) + 0.0  # −0.0 becomes 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum()  # one pass decides nearly always
    if np.isfinite(total) or np.isfinite(numbers).all():
        return Outputs(numbers, (_plain_structure(FLOAT, width, vector),))
    return _with_specials(numbers, vector)


def _plain_structure(leaf: Template, width: int, vector: bool) -> Structure:
    template = ("vector", (leaf,) * width) if vector else leaf
    return Structure(template, tuple(range(width)))


def _with_specials(numbers: FloatArray, vector: bool) -> Outputs:
    """NaN and ±∞ are part of an output's structure, not numbers."""
    kinds: AnyArray = np.zeros(numbers.shape, dtype=np.uint8)
    kinds[np.isnan(numbers)] = 1
    kinds[np.isposinf(numbers)] = 2
    kinds[np.isneginf(numbers)] = 3
    packed: AnyArray = np.ascontiguousarray(kinds).view(f"V{kinds.shape[1]}").ravel()
    _, first, codes = np.unique(packed, return_index=True, return_inverse=True)
    structures = []
    for row in kinds[first]:
        leaves = tuple(_SPECIAL[kind] for kind in row)
        columns = tuple(int(c) for c in np.flatnonzero(row == 0))
        structures.append(Structure(("vector", leaves) if vector else leaves[0], columns))
    clean = np.where(kinds == 0, numbers, 0.0)
    if len(structures) == 1:
        return Outputs(clean, tuple(structures))
    return Outputs(clean, tuple(structures), codes.astype(np.int32))


def _from_objects(array: AnyArray) -> Outputs:
    if array.ndim == 2:
        rows: Any = [tuple(row) for row in array]
    elif array.dtype.kind in "US":
        words, codes = np.unique(array, return_inverse=True)
        kind = "str" if array.dtype.kind == "U" else "bytes"
        table = tuple(Structure((kind, _text(word)), ()) for word in words)
        return _of_table(np.zeros((len(array), 0)), table, codes)
    else:
        rows = array
    index: dict[Template, int] = {}
    codes = np.empty(len(rows), dtype=np.int32)
    numbers: list[list[float]] = []
    for position, row in enumerate(rows):
        found: list[float] = []
        template = _walk(row, found)
        codes[position] = index.setdefault(template, len(index))
        numbers.append(found)
    width = max(map(len, numbers), default=0)
    matrix = np.zeros((len(rows), width))
    for position, found in enumerate(numbers):
        matrix[position, : len(found)] = found
    table = tuple(Structure(t, tuple(range(_count(t)))) for t in index)
    return _of_table(matrix, table, codes)


def _of_table(numbers: AnyArray, table: tuple[Structure, ...], codes: AnyArray) -> Outputs:
    if len(table) == 1:
        only = table[0].template
        if only == INT:
            numbers = numbers.astype(np.int64)
        return Outputs(numbers, table)
    return Outputs(numbers, table, codes.astype(np.int32))


def _walk(value: Any, numbers: list[float]) -> Template:
    """The template of one output; its ordinary numbers are appended to `numbers`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return ("none",)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int):
        if abs(value) > 2**53:  # a float would not hold it
            return ("bigint", str(value))
        numbers.append(value)
        return INT
    if isinstance(value, float):
        if math.isfinite(value):
            numbers.append(value + 0.0)
            return FLOAT
        return ("nan",) if math.isnan(value) else ("inf",) if value > 0 else ("-inf",)
    if isinstance(value, str):
        return ("str", str(value))
    if isinstance(value, bytes):
        return ("bytes", value.hex())
    if isinstance(value, Outcome):
        return ("outcome", value.kind, value.detail)
    if isinstance(value, (tuple, list)):
        name = "tuple" if isinstance(value, tuple) else "list"
        return (name, tuple(_walk(item, numbers) for item in value))
    if isinstance(value, np.ndarray):
        return ("list", tuple(_walk(item, numbers) for item in value.tolist()))
    if isinstance(value, dict):
        entries = sorted(value.items(), key=lambda entry: str(entry[0]))
        return ("dict", tuple((str(key), _walk(item, numbers)) for key, item in entries))
    if isinstance(value, (set, frozenset)):
        return ("set", tuple(_walk(item, numbers) for item in sorted(value, key=repr)))
    raise BadOutput(
        f"an output of type {type(value).__name__} has no canonical form: {checks.shown(value)}; "
        "return numbers, strings, None, tuples, lists or dictionaries of them"
    )


def _children(template: Template) -> list[Template]:
    match template[0]:
        case "vector" | "tuple" | "list" | "set":
            return list(template[1])
        case "dict":
            return [child for _, child in template[1]]
        case _:
            return []


def _count(template: Template) -> int:
    if template in (INT, FLOAT):
        return 1
    return sum(_count(child) for child in _children(template))


def _text(word: Any) -> str:
    return word.hex() if isinstance(word, bytes) else str(word)


def _show(template: Template, given: Any) -> str:
    match template[0]:
        case "int" | "float":
            return "•" if given is None else f"{next(given):.6g}"
        case "none":
            return "None"
        case "bool" | "bigint":
            return str(template[1])
        case "str":
            return repr(template[1])
        case "bytes":
            return repr(bytes.fromhex(template[1]))
        case "outcome":
            return " ".join(part for part in template[1:] if part)
        case "vector" | "tuple":
            return "(" + ", ".join(_show(child, given) for child in template[1]) + ")"
        case "list":
            return "[" + ", ".join(_show(child, given) for child in template[1]) + "]"
        case "set":
            return "{" + ", ".join(_show(child, given) for child in template[1]) + "}"
        case "dict":
            inner = ", ".join(f"{key!r}: {_show(child, given)}" for key, child in template[1])
            return "{" + inner + "}"
        case special:
            return str(special)
