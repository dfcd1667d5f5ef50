"""Formulas as MathML, made when the pages are: browsers draw them without scripts or a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def _inline(page: Any, node: Any) -> None:
    page.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def _block(page: Any, node: Any) -> None:
    formula = convert(node.astext(), display="block")
    page.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """A renderer of Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
