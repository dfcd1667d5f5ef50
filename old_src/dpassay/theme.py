"""How charts look, and how they go together: one theme for light pages, dark pages and print.

Text and rules take the page's own text colour, the background is transparent, and the series colours
keep a contrast of at least 3:1 against both white and near-black and stay apart for colour-blind readers.
The theme is added when a chart is serialised, not kept in the chart, so that charts can be layered
(`a + b`) and set side by side (`a | b`, `a & b`), with each other and with other Altair charts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from dpassay._typing import FloatArray
from dpassay.errors import MissingExtra

#: More points than a screen has columns only make the file larger.
POINTS = 300
PALETTE = ("#2f7ed8", "#d1690e", "#1f9970", "#9a62c7", "#7d8590", "#c9507f")
INK = "currentColor"
#: What a group of a drawing has that changes nothing of how its members look.
_NAMING = {"class", "role", "pointer-events", "aria-hidden", "aria-label", "aria-roledescription"}

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": INK,
        "gridOpacity": 0.12,
        "labelFlush": False,
        "labelSeparation": 6,
        "tickCount": 6,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "titlePadding": 12,
    },
    "axisY": {"labelLimit": 280},
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "orient": "top",
        "title": None,
        "labelLimit": 320,
        "symbolStrokeWidth": 2,
        "symbolSize": 450,
        "columnPadding": 20,
    },
    "title": {"color": INK, "fontSize": 14, "fontWeight": "normal", "anchor": "start"},
    "line": {"strokeWidth": 2},
    "range": {"category": list(PALETTE)},
}


def altair() -> Any:
    """The altair module, or an error that says how to get it."""
    try:
        import altair as module
    except ImportError:
        raise MissingExtra("a chart", "report") from None
    return module


def unchecked() -> Any:
    """A context in which Altair does not check every piece of a chart against its schema, which is slow.

    Only for charts made here; the tests check them.
    """
    from altair.utils import schemapi

    return schemapi.debug_mode(False)


@cache
def _classes() -> dict[str, Any]:
    """Altair's compound charts with our theme; made on first use, since altair is optional."""
    alt = altair()

    class Themed:
        """A chart that gets the theme when it is serialised as a whole."""

        def to_dict(self, *args: Any, context: Any = None, **options: Any) -> Any:
            """As altair does; what the chart sets itself overrides the theme."""
            whole: Any = self
            if (context or {}).get("top_level", True):
                whole = self.copy(deep=False)  # type: ignore[attr-defined]
                whole.config = _over(CONFIG, whole.config)
            return super(Themed, whole).to_dict(*args, context=context, **options)  # type: ignore[misc]

        def save(self, fp: Any, format: str | None = None, **options: Any) -> None:
            """As altair does, on white; HTML holds all that it needs."""
            if str(format or fp).endswith("html"):
                options.setdefault("inline", True)
            whole = self.copy(deep=False)  # type: ignore[attr-defined]
            whole.config = _over({"background": "white"}, whole.config)
            if not str(format or fp).endswith("pdf"):
                super(Themed, whole).save(fp, format, **options)  # type: ignore[misc]
                return
            import vl_convert

            drawn = StringIO()
            super(Themed, whole).save(drawn, "svg", **options)  # type: ignore[misc]
            made = vl_convert.svg_to_pdf(flat(drawn.getvalue()))
            (fp.write if hasattr(fp, "write") else Path(fp).write_bytes)(made)

        def __or__(self, other: Any) -> Any:
            return row([self, other])

        def __and__(self, other: Any) -> Any:
            return column([self, other])

        def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
            """An SVG, which notebooks show offline; another renderer if one was chosen."""
            if alt.renderers.active not in ("", "default"):
                return super()._repr_mimebundle_(*args, **options)  # type: ignore[misc]
            import vl_convert

            drawn = str(vl_convert.vegalite_to_svg(self.to_dict(validate=False)))
            # the drawing takes the text colour of the page, which is light on dark pages
            fitting = drawn.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
            held = f'<div style="color:inherit">{fitting}</div>'
            return {"text/html": held, "image/svg+xml": drawn, "text/plain": repr(type(self))}

    return {
        base.__name__: type(base.__name__, (Themed, base), {"__module__": __name__})
        for base in (alt.LayerChart, alt.HConcatChart, alt.VConcatChart)
    }


def flat(svg: str) -> str:
    """The drawing without groups that only name their members: a PDF allows few levels of groups."""
    root = ElementTree.fromstring(svg)
    for group in reversed(list(root.iter())):  # the innermost first
        names = (part.tag.endswith("}g") and _NAMING.issuperset(part.attrib) for part in group)
        parts = zip(group, names, strict=True)
        group[:] = [inner for part, named in parts for inner in (part if named else [part])]
    return ElementTree.tostring(root, encoding="unicode")


def layers(charts: Sequence[Any]) -> Any:
    """Charts on top of each other."""
    return _classes()["LayerChart"](layer=list(charts))


def row(charts: Sequence[Any]) -> Any:
    """Charts side by side, each with its own colours."""
    made = _classes()["HConcatChart"](hconcat=list(charts))
    return made.resolve_scale(color="independent", strokeDash="independent")


def column(charts: Sequence[Any]) -> Any:
    """Charts below each other, each with its own colours."""
    made = _classes()["VConcatChart"](vconcat=list(charts))
    return made.resolve_scale(color="independent", strokeDash="independent")


def _over(theme: dict[str, Any], own: Any) -> dict[str, Any]:
    """The theme, overridden part by part by what the chart sets itself."""
    given = own.to_dict() if hasattr(own, "to_dict") else own if isinstance(own, dict) else {}
    merged = dict(theme)
    for name, value in given.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = merged[name] | value if both else value
    return merged


def thin(x: FloatArray, y: FloatArray, points: int = POINTS) -> tuple[list[float], list[float]]:
    """At most `points` points, first and last among them, for a polyline that looks the same.

    Numbers have five digits, those of x five of their range: more than a chart shows.
    """
    if x.size > points:
        keep = np.unique(np.linspace(0, x.size - 1, points).round().astype(int))
        # equal steps in index miss where the points are sparse in x: add equal steps in x
        steps = np.searchsorted(x, np.linspace(x[0], x[-1], points // 2))
        keep = np.union1d(keep, np.clip(steps, 0, x.size - 1))
        x, y = x[keep], y[keep]
    span = float(np.ptp(x)) if x.size and np.isfinite(x).all() else 0.0
    digits = 5 + max(0, math.ceil(math.log10(float(np.abs(x).max()) / span))) if span else 5
    return [float(f"{v:.{digits}g}") for v in x], [float(f"{v:.5g}") for v in y]
