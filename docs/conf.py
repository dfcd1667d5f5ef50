"""Sphinx configuration."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import Any

from dpassay import __version__

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import notebooks
from docutils import nodes
from docutils.parsers.rst import Directive
from papers import page as papers_page
from sphinx.pycode import ModuleAnalyzer

project = "dpassay"
author = "The dpassay developers"
copyright = "the dpassay developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "screenshots.py", "pictures.py", "notebooks.py", "mathml.py"]
linkcheck_ignore = [r"https://doi\.org/.*"]  # publishers refuse programs
html_theme = "furo"
html_title = "dpassay"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
# a parameter a line where a signature is long: nothing runs off the page
python_maximum_signature_line_length = 72
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name for name in ("Seed", "FloatArray", "IntArray", "Direction", "Line")
} | {"npt.ArrayLike": "ArrayLike"}
html_static_path = ["_static"]
html_css_files = ["own.css"]
#: "name   what it is": a parameter in a docstring, with lines that go on further in.
_PARAMETER = re.compile(r"(\w+)\s{2,}(\S.*)")


def _as_written(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: prose, tables of parameters, examples, and drawings as they stand."""
    out: list[str] = []
    for block in _blocks(lines):
        if block[0].startswith(">>>"):
            out += [*block, ""]
        elif found := _parameters(block):
            out += [f":param {argument}: {_escaped(text)}" for argument, text in found] + [""]
        elif block[0].startswith(" "):
            out += ["::", "", *(f"    {line}" for line in block), ""]
        else:
            out += [_escaped(" ".join(block)), ""]
    lines[:] = out


def _blocks(lines: list[str]) -> list[list[str]]:
    """Lines between blank ones."""
    groups = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    return [list(group) for full, group in groups if full]


def _parameters(block: list[str]) -> list[tuple[str, str]]:
    """The parameters a block lists; none if it is something else."""
    found: list[tuple[str, str]] = []
    for line in block:
        if match := _PARAMETER.fullmatch(line):
            found.append((match[1], match[2].strip()))
        elif found and line.startswith("   "):
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
        else:
            return []
    return found


def _escaped(text: str) -> str:
    for sign in ("\\", "*", "|"):
        text = text.replace(sign, f"\\{sign}")
    return re.sub(r"`+([^`]+)`+", r"``\1``", text)


def _offered(app: Any, name: str, source: list[str]) -> None:
    """A link to the notebook, below the title of a tutorial."""
    if name in notebooks.TUTORIALS and app.builder.format == "html":
        title, rest = source[0].split("\n", 1)
        link = (
            f'<a href="notebooks/{name}.ipynb" download>This page as a notebook, with outputs</a>'
        )
        source[0] = f"{title}\n\n{link}\n{rest}"


def _made(app: Any, error: Exception | None) -> None:
    """The notebooks beside the pages."""
    if error is None and app.builder.format == "html":
        notebooks.written(Path(app.outdir) / "notebooks")


def _papers(app: Any) -> None:
    """A page a paper, from the results in the repository."""
    papers_page.write_papers(Path(app.srcdir) / "papers")


class Run(Directive):
    """Code with what it prints and draws, made when the page is built; a page's blocks share names."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        page = self.state.document.settings.env.docname
        names = _NAMES.setdefault(page, {"__name__": "example"})
        code = "\n".join(self.content)
        found: list[nodes.Node] = [nodes.literal_block(code, code, language="python")]
        for out in notebooks.outputs(code, names, page, 1):
            data = out.get("data", {})
            if "image/svg+xml" in data:
                drawn = f'<div class="drawn">{data["image/svg+xml"]}</div>'
                found.append(nodes.raw("", drawn, format="html"))
            else:
                text = out.get("text") or data["text/plain"]
                found.append(nodes.literal_block(text, text, language="text"))
        return found


_NAMES: dict[str, dict[str, Any]] = {}
_analyzed = ModuleAnalyzer.analyze


def _without_overloads(self: ModuleAnalyzer) -> None:
    """The signature of the function itself: overloads repeat it without its options."""
    _analyzed(self)
    self.overloads = {}


def _by_name(app: Any, *about: Any) -> tuple[str | None, str | None]:
    """A signature that calls types by the names they have in the code."""
    *_, signature, returned = about
    found = (
        re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", one or "") for one in (signature, returned)
    )
    return next(found) or None, next(found) or None


def setup(app: Any) -> None:
    """Connect the hooks."""
    app.connect("autodoc-process-signature", _by_name)
    app.connect("builder-inited", _papers)
    app.add_directive("run", Run)
    ModuleAnalyzer.analyze = _without_overloads  # type: ignore[method-assign]
    app.connect("autodoc-process-docstring", _as_written)
    app.connect("source-read", _offered)
    app.connect("build-finished", _made)
