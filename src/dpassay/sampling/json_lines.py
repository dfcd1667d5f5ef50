"""Files of JSON lines: an output a line, an object of named cells, a list of cells, or a cell alone."""

from __future__ import annotations

from typing import Any

from dpassay import validation as checks
from dpassay.errors import UnreadableFile
from dpassay.sampling.columns import Column, pyarrow_module
from dpassay.sampling.text_tables import of_text


def read_json_lines(data: bytes, shown: str) -> tuple[tuple[str, ...] | None, tuple[Column, ...]]:
    """Names and columns; cells are read as those of text are, and what is not there is missing."""
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise UnreadableFile(f"{shown} is not a text file; save it as text in UTF-8") from None
    rows = [
        _row(line, f"{shown}, line {k}") for k, line in enumerate(lines, 1) if line and line.strip()
    ]
    if not rows:
        raise UnreadableFile(f"{shown} is empty")
    kinds = {type(row) for row in rows}
    if len(kinds) > 1 or (kinds == {list} and len({len(row) for row in rows}) > 1):
        raise UnreadableFile(
            f"{shown} has lines of different forms; every output needs the same: an object of the same "
            "names, a list of as many cells, or a cell"
        )
    names: tuple[str, ...] | None = None
    if kinds == {dict}:
        names = tuple(dict.fromkeys(name for row in rows for name in row))
        cells = [[row.get(name) for row in rows] for name in names]
    else:
        cells = [list(column) for column in zip(*rows, strict=True)]
    arrow = pyarrow_module("pyarrow", ".jsonl")
    columns = []
    for k, column in enumerate(cells):
        where = f"{shown}, column {repr(names[k]) if names else k + 1}"
        text = arrow.array([_text(cell, where) for cell in column], arrow.string())
        columns.append(of_text(text, None, where))
    return names, tuple(columns)


def _row(line: str, where: str) -> Any:
    """A line as an object or a list of cells."""
    try:
        found = checks.read_json(line)
    except ValueError as error:
        raise UnreadableFile(f"{where} is no JSON: {error}; write an output a line") from None
    return found if isinstance(found, (dict, list)) else [found]


def _text(cell: Any, where: str) -> str:
    """A cell as text would hold it."""
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case int() | float():
            return repr(cell)
        case str():
            try:
                cell.encode()
            except UnicodeEncodeError:
                raise UnreadableFile(
                    f"{where} holds {checks.shown(cell)}, half of a pair of surrogates, which is no text"
                ) from None
            return cell
    raise UnreadableFile(
        f"{where} holds {checks.shown(cell)}; a cell is a number, a word, true, false or null: give what "
        "is nested columns of its own"
    )
