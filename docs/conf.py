"""Sphinx configuration."""

from __future__ import annotations

from typing import Any

from dpassay import __version__

project = "dpassay"
author = "The dpassay developers"
copyright = "the dpassay developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "screenshots.py", "pictures.py"]
html_theme = "furo"
html_title = "dpassay"
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def _as_written(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: the first paragraph is prose, the rest is shown as it stands."""
    first = next((k for k, line in enumerate(lines) if not line.strip()), len(lines))
    head = [
        line.replace("*", "\\*").replace("|", "\\|").replace("`", "``") for line in lines[:first]
    ]
    rest = lines[first + 1 :]
    lines[:] = head
    if any(line.strip() for line in rest):
        lines += ["", "::", "", *(f"    {line}" for line in rest), ""]


def setup(app: Any) -> None:
    """Connect the hook."""
    app.connect("autodoc-process-docstring", _as_written)
