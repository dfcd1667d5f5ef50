"""Files of outputs in every format, with bytes changed, cells replaced, cut short or badly encoded."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import math
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.running import Case

import dpassay as dp

_CELLS = (
    *(
        "",
        "1",
        "-1",
        "0.5",
        "1e5",
        "1e999",
        "-1e999",
        "1e-999",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "None",
        "NA",
    ),
    *(
        "9" * 400,
        "-" + "9" * 25,
        "0x1F",
        "1_000",
        "1,5",
        "1.000,5",
        "true",
        "FALSE",
        "a",
        "é",
        "\ud800",
    ),
    *(
        "2020-01-01",
        "2020-13-45",
        "10:30",
        "2020-01-01T00:00:00Z",
        "'",
        '"',
        '""',
        "\0",
        "\x1a",
        "∞",
    ),
    *(
        "[" * 3000,
        "{",
        "=1+1",
        " 1 ",
        "+1",
        "1.",
        ".5",
        "1e",
        "½",
        "१",
        "\u2028",
        "a;b",
        "a\tb",
        "a\nb",
    ),
)
_JSON_CELLS = (
    None,
    True,
    1,
    -1,
    0.5,
    10**400,
    2**70,
    1e308,
    "a",
    "\ud800",
    "",
    [1],
    {"b": 1},
    [[]],
)


@cache
def written(seed: int = 0) -> dict[str, bytes]:
    """A good file of every format, as bytes."""
    rng = np.random.default_rng(seed)
    numbers = np.round(rng.laplace(size=60), 3)
    table = {
        "x": numbers.tolist(),
        "w": rng.choice(["a", "b"], 60).tolist(),
        "k": rng.integers(5, size=60).tolist(),
    }
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    text = "x,w,k\n" + "".join(f"{row['x']},{row['w']},{row['k']}\n" for row in rows)
    found = {
        "csv": text.encode(),
        "tsv": text.replace(",", "\t").encode(),
        "txt": "\n".join(map(str, numbers)).encode(),
        "jsonl": "\n".join(map(json.dumps, rows)).encode(),
        "npy": _npy(numbers),
    }
    import pyarrow
    from pyarrow import feather, parquet

    for kind, write in (("parquet", parquet.write_table), ("feather", feather.write_feather)):
        held = io.BytesIO()
        write(pyarrow.table(table), held)
        found[kind] = held.getvalue()
    return found


def _npy(array: Any) -> bytes:
    held = io.BytesIO()
    np.save(held, array)
    return held.getvalue()


#: Arrays of every dtype that .npy holds without pickling.
_DTYPES = (
    "?",
    "i1",
    "u8",
    "f2",
    "f8",
    ">f8",
    "c16",
    "M8[s]",
    "m8[ns]",
    "M8[Y]",
    "S3",
    "U3",
    "V4",
    "g",
)


#: Cells of a column of Arrow.
_ARROW = (
    [None, 1, 2**63 - 1],
    [1e308, math.nan, -math.inf],
    ["a", "", None, "1"],
    [b"\xff", b""],
    [[1], [], None],
    [{"a": 1}, {"a": None}],
    [True, None],
    [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    [datetime.datetime(2262, 4, 12), None],
    [datetime.timedelta(days=10**5)],
    [datetime.time(10, 30)],
    [decimal.Decimal("9" * 38), decimal.Decimal(1)],
    [decimal.Decimal("0.1"), None],
    [None],
)


def _table(kind: str, rng: np.random.Generator) -> bytes:
    """A file of Arrow with columns of every type."""
    import pyarrow
    from pyarrow import feather, parquet

    columns = {}
    for name in str(rng.choice(["x", "xw", "xwk", "xwk", ""])):
        cells = _ARROW[int(rng.integers(len(_ARROW)))]
        columns[name] = pyarrow.array([cells[k] for k in rng.integers(len(cells), size=60)])
    held = io.BytesIO()
    write = parquet.write_table if kind == "parquet" else feather.write_feather
    try:
        write(pyarrow.table(columns), held)
    except pyarrow.ArrowException:  # not every format holds every type
        return written()[kind]
    return held.getvalue()


def mutated(kind: str, rng: np.random.Generator) -> bytes:
    """A file of this format with something wrong in it."""
    if kind in ("parquet", "feather") and rng.random() < 0.6:
        return _table(kind, rng)
    data = written()[kind]
    if kind == "npy" and rng.random() < 0.3:
        shape = [(60,), (60, 2), (60, 0), (0,), (), (1, 60), (6, 5, 2)][int(rng.integers(7))]
        raw = rng.integers(256, size=(int(np.prod(shape)), 16)).astype(np.uint8).tobytes()
        dtype = np.dtype(str(rng.choice(_DTYPES)))
        return _npy(np.frombuffer(raw, dtype=dtype, count=int(np.prod(shape))).reshape(shape))
    if kind in ("csv", "tsv", "txt", "jsonl") and rng.random() < 0.6:
        return _cells(kind, data, rng)
    match int(rng.integers(5)):
        case 0:
            return data[: int(rng.integers(len(data)))]
        case 1 | 2:
            found = bytearray(data)
            top = 128 if kind == "npy" and rng.random() < 0.7 else len(data)  # the header
            for at in rng.integers(min(top, len(data)), size=int(rng.integers(1, 6))):
                found[at] = int(rng.integers(256))
            return bytes(found)
        case 3:
            at, more = int(rng.integers(len(data))), rng.integers(256, size=20).astype(np.uint8)
            return data[:at] + more.tobytes() + data[at:]
    return data * 2


def _cells(kind: str, data: bytes, rng: np.random.Generator) -> bytes:
    if kind == "jsonl":
        rows = [json.loads(line) for line in data.decode().splitlines()]
        for _ in range(int(rng.integers(1, 5))):
            row = int(rng.integers(len(rows)))
            value = _JSON_CELLS[int(rng.integers(len(_JSON_CELLS)))]
            if rng.random() < 0.2:
                rows[row] = value
            elif isinstance(rows[row], dict):
                rows[row][str(rng.choice(["x", "w", "new"]))] = value
        text = "\n".join(map(json.dumps, rows))
        return text.replace("null", "[" * 3000 if rng.random() < 0.2 else "null").encode()
    separator = {"csv": ",", "tsv": "\t", "txt": " "}[kind]
    table = [line.split(separator) for line in data.decode().splitlines()]
    for _ in range(int(rng.integers(1, 5))):
        row = table[int(rng.integers(len(table)))]
        match int(rng.integers(6)):
            case 0:
                row.append("1")
            case 1:
                del row[-1:]
            case _ if row:
                row[int(rng.integers(len(row)))] = str(rng.choice(_CELLS))
    text = "\n".join(map(separator.join, table))
    encoding = "utf-8"
    if rng.random() < 0.15:
        encoding = str(rng.choice(["utf-8-sig", "latin-1", "utf-16", "utf-32"]))
    return text.encode(encoding, "replace" if encoding == "latin-1" else "surrogatepass")


def case(seed: int) -> Case:
    """Two files, one of them or both mutated, audited."""
    rng = np.random.default_rng([seed, 3])
    kind = str(rng.choice([*written()]))
    first = mutated(kind, rng)
    second = mutated(kind, rng) if rng.random() < 0.3 else written(1)[kind]
    if rng.random() < 0.02:
        second = first
    columns = [None, None, None, ["x"], ["w", "x"], ["nothing"]][int(rng.integers(6))]

    def run() -> Any:
        folder = Path(tempfile.mkdtemp())
        try:
            paths = [folder / f"{name}.{kind}" for name in "pq"]
            for path, data in zip(paths, (first, second), strict=True):
                path.write_bytes(data)
            samples = dp.from_samples(*paths, columns=columns)
            return str(dp.audit(samples, claim="eps=1")) and samples
        finally:
            shutil.rmtree(folder)

    return Case(f"{kind}, columns {columns}: {first[:300]!r}", run, (dp.Samples,))
