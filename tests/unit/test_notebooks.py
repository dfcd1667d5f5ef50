"""The tutorials as notebooks."""

import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def notebooks():
    sys.path.insert(0, str(DOCS))
    try:
        import notebooks
    finally:
        sys.path.remove(str(DOCS))
    return notebooks


PAGE = """# A page

Prose with a [link](other.md#part), one of [](pages/more.md) and [another](https://example.org).

![a picture](images/one.png)

```python
x = 2
print("seen", x)
x + 1
```

Between.

```python
class Card:
    def _repr_html_(self):
        return "<b>card</b>"

    def __repr__(self):
        return "Card()"

open("left-behind.txt", "w").close()
Card()
```

```console
$ dpassay zoo
```
"""


def test_a_page_becomes_prose_and_cells_that_ran(notebooks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    made = notebooks.notebook(page)
    kinds = [cell["cell_type"] for cell in made["cells"]]
    assert kinds == ["markdown", "code", "markdown", "code", "markdown"]
    prose = made["cells"][0]["source"]
    assert "a link, one of pages/more and [another](https://example.org)" in prose
    assert "picture" not in prose
    first, second = (cell for cell in made["cells"] if cell["cell_type"] == "code")
    assert first["outputs"] == [
        {"output_type": "stream", "name": "stdout", "text": "seen 2\n"},
        {
            "output_type": "execute_result",
            "execution_count": 1,
            "metadata": {},
            "data": {"text/plain": "3"},
        },
    ]
    assert second["execution_count"] == 2
    assert second["outputs"][0]["data"] == {"text/plain": "Card()", "text/html": "<b>card</b>"}
    assert "$ dpassay zoo" in made["cells"][-1]["source"]
    assert list(tmp_path.iterdir()) == [page]  # what a page writes it writes elsewhere
    assert capsys.readouterr().out == ""


def test_a_cell_that_fails_ends_it_with_its_place(notebooks, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n")
    here = Path.cwd()
    with pytest.raises(AssertionError) as failed:
        notebooks.notebook(page)
    assert str(failed.traceback[-1].path) == "page.md, cell 1"
    assert Path.cwd() == here


def test_tutorials_are_pages_whose_notebooks_are_whole(notebooks, tmp_path, monkeypatch):
    """All of the code and of the prose, as nbformat 4.5 has it; one page stands for all."""
    for name in notebooks.TUTORIALS:
        assert (DOCS / f"{name}.md").is_file()
    monkeypatch.setattr(notebooks, "TUTORIALS", ("quickstart",))
    (place,) = notebooks.written(tmp_path)
    made = json.loads(place.read_text(encoding="utf-8"))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert set(made) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    ids = [cell["id"] for cell in made["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", one) for one in ids)
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    common = {"id", "cell_type", "metadata", "source"}
    assert all(set(cell) == common | {"execution_count", "outputs"} for cell in code)
    assert all(set(cell) == common for cell in made["cells"] if cell not in code)
    text = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    assert [cell["source"] for cell in code] == [
        block.strip()
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]
    assert sum(bool(cell["outputs"]) for cell in code) >= len(code) / 2
    said = "".join(out["text"] for cell in code for out in cell["outputs"] if "text" in out)
    assert "violation of (1, 1e-05)-DP" in said
