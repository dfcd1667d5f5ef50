"""The tutorials as notebooks: the same text, run, with what it printed.

    python docs/notebooks.py FOLDER

`make docs` does this too, and links each from its page. The code of a page runs in order in one place, as
in its test; no kernel is needed. What a cell prints is its output, and the value of a last expression,
with the HTML that notebooks show.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: The pages that are read from top to bottom with the code at hand.
TUTORIALS = (
    "quickstart",
    "accountants",
    "private-training",
    "audit-your-library",
    "synthetic-data",
)

_HERE = Path(__file__).parent
_CODE = re.compile(r"^```python\n(.*?)^```$\n?", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n*", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#.]*)[^)]*\)")


def written(folder: Path) -> list[Path]:
    """Run the tutorials and write their notebooks."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name in TUTORIALS:
        place = folder / f"{name}.ipynb"
        text = json.dumps(notebook(_HERE / f"{name}.md"), indent=1, ensure_ascii=False)
        place.write_text(text + "\n", encoding="utf-8")
        made.append(place)
    return made


def notebook(page: Path) -> dict[str, Any]:
    """A page as a notebook (nbformat 4.5)."""
    names: dict[str, Any] = {"__name__": "notebook"}
    cells: list[dict[str, Any]] = []
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # pages write files
        try:
            for code, text in _parts(page.read_text(encoding="utf-8")):
                cell: dict[str, Any] = {"id": f"{page.stem}-{len(cells) + 1}", "metadata": {}}
                if code:
                    count = 1 + sum(one["cell_type"] == "code" for one in cells)
                    cell |= {"cell_type": "code", "execution_count": count}
                    cell |= {"outputs": outputs(text, names, f"{page.name}, cell {count}", count)}
                else:
                    cell |= {"cell_type": "markdown"}
                cells.append(cell | {"source": text})
        finally:
            os.chdir(before)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Prose and code in turn. Pictures and links to other pages do not travel: their words do."""
    for k, part in enumerate(_CODE.split(text)):
        words = (
            part if k % 2 else _LINK.sub(lambda found: found[1] or found[2], _PICTURE.sub("", part))
        )
        if words.strip():
            yield bool(k % 2), words.strip()


def outputs(code: str, names: dict[str, Any], place: str, count: int) -> list[dict[str, Any]]:
    """Run a cell: what it printed, and the value of its last expression."""
    tree = ast.parse(code, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value, said = None, io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(tree, place, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
    out: list[dict[str, Any]] = []
    if said.getvalue():
        out.append({"output_type": "stream", "name": "stdout", "text": said.getvalue()})
    if value is not None:
        data = {"text/plain": repr(value)}
        if hasattr(value, "_repr_mimebundle_"):
            data |= value._repr_mimebundle_()
        elif hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_()
        out.append(
            {
                "output_type": "execute_result",
                "execution_count": count,
                "metadata": {},
                "data": data,
            }
        )
    return out


if __name__ == "__main__":
    for one in written(Path(sys.argv[1])):
        print(one)
