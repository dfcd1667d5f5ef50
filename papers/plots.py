"""Charts of rows of numbers, and how they are written: static SVG and an interactive page."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

import dpassay as dp

Row = dict[str, Any]
#: The values of the charts being made, by name, until they are written.
_DATASETS: dict[str, list[Row]] = {}
#: One interactive page; the script is shared by all of them.
_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>{title}</title>
<script src="../vega.js"></script>
<h1 style="font: 1.2em system-ui">{title}</h1>
<div id="chart"></div>
<script>vegaEmbed("#chart", {spec}, {{actions: false}})</script>
"""


def _axis(name: str, *, log: bool = False, domain: Sequence[float] | None = None) -> Row:
    scale: Row = {"zero": False, "nice": domain is None}
    if log:
        scale["type"] = "log"
    if domain is not None:
        scale["domain"] = list(domain)
    return {"type": "quantitative", "title": name, "scale": alt.Scale(**scale)}


def lines(
    rows: list[Row],
    x: str,
    y: str,
    series: str | None = None,
    *,
    dash: str | None = None,
    points: bool = False,
    step: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    x_domain: Sequence[float] | None = None,
    y_domain: Sequence[float] | None = None,
    title: str = "",
    width: int = 300,
    height: int = 200,
) -> Any:
    """Lines of `y` against `x`, a colour a series."""
    mark: Row = {"clip": True, "point": points}
    if step:
        mark["interpolate"] = "step-after"
    channels: Row = {
        "x": alt.X(x, **_axis(x, log=log_x, domain=x_domain)),
        "y": alt.Y(y, **_axis(y, log=log_y, domain=y_domain)),
        "order": alt.Order(x, type="quantitative"),
    }
    if series is not None:
        names = list(dict.fromkeys(row[series] for row in rows))
        channels["color"] = alt.Color(series, type="nominal", sort=names, title=None)
    if dash is not None:
        kinds = list(dict.fromkeys(row[dash] for row in rows))
        channels["strokeDash"] = alt.StrokeDash(dash, type="nominal", sort=kinds, title=None)
    fields = [f for f in (x, y, series, dash) if f]
    data = _data([{f: _plain(row[f]) for f in fields} for row in rows])
    chart = alt.Chart(data).mark_line(**mark).encode(**channels)
    return chart.properties(width=width, height=height, title=title)


def bars(rows: list[Row], x: str, y: str, series: str, *, title: str = "") -> Any:
    """Bars side by side, a colour a series."""
    names = list(dict.fromkeys(row[series] for row in rows))
    data = _data([{f: _plain(row[f]) for f in (x, y, series)} for row in rows])
    return (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X(x, type="ordinal", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset(series, type="nominal", sort=names),
            y=alt.Y(y, type="quantitative"),
            color=alt.Color(series, type="nominal", sort=names, title=None),
        )
        .properties(width=200, height=140, title=title)
    )


def band(rows: list[Row], x: str, low: str, high: str, *, color: str = "#d1690e") -> Any:
    """The area between two columns."""
    data = _data([{f: _plain(row[f]) for f in (x, low, high)} for row in rows])
    return (
        alt.Chart(data)
        .mark_area(opacity=0.35, color=color)
        .encode(
            x=alt.X(x, **_axis(x)),
            y=alt.Y(low, **_axis("β")),
            y2=alt.Y2(high),
        )
    )


def rule(*, x: float | None = None, y: float | None = None, color: str = "#7d8590") -> Any:
    """A dashed line across the panel."""
    chart = alt.Chart(_data([{"x0": x, "y0": y}])).mark_rule(strokeDash=[4, 3], color=color)
    return chart.encode(x=_x("x0")) if x is not None else chart.encode(y=_y("y0"))


def ticks(values: Sequence[float], x: str, *, y: float = 0.0) -> Any:
    """Where the observations lie."""
    data = _data([{x: _plain(v), "at": y} for v in values])
    mark = alt.Chart(data).mark_tick(thickness=1, height=8, opacity=0.6, color="#2f7ed8")
    return mark.encode(
        x=alt.X(x, type="quantitative"), y=alt.Y("at", type="quantitative", title=None)
    )


def box(corners: Sequence[float], centre: Sequence[float]) -> Any:
    """A confidence box (x low, x high, y low, y high) and its centre."""
    low, high, bottom, top = (_plain(value) for value in corners)
    area = alt.Chart(_data([{"x": low, "x2": high, "y": bottom, "y2": top}])).mark_rect(
        color="#9a62c7", opacity=0.45, stroke="#9a62c7"
    )
    dot = alt.Chart(_data([{"x": _plain(centre[0]), "y": _plain(centre[1])}]))
    return area.encode(x=_x("x"), x2="x2", y=_y("y"), y2="y2") + dot.mark_point(
        filled=True, color="#c9507f", size=30
    ).encode(x=_x("x"), y=_y("y"))


def violins(groups: dict[str, Sequence[float]], title: str, y: str, note: dict[str, str]) -> Any:
    """A violin a group: a smooth density, the middle half, and the median; a line at 1."""
    panels = []
    for name, values in groups.items():
        v = np.asarray(values, dtype=float)
        spread = float(v.std()) or 1e-6 * abs(float(v.mean())) or 1e-9
        h = 1.06 * spread * v.size ** (-0.2)
        t = np.linspace(v.min() - 2 * h, v.max() + 2 * h, 40)
        density = np.exp(-0.5 * ((t[:, None] - v) / h) ** 2).sum(axis=1)
        shape = [
            {"t": _plain(a), "w": _plain(w), "m": _plain(-w)}
            for a, w in zip(t, density / density.max(), strict=True)
        ]
        q1, q2, q3 = np.quantile(v, [0.25, 0.5, 0.75])
        body = alt.Chart(_data(shape)).mark_area(opacity=0.5, orient="horizontal")
        body = body.encode(
            y=alt.Y("t", type="quantitative", title=y, scale=alt.Scale(zero=False)),
            x=alt.X("w", type="quantitative", axis=None, scale=alt.Scale(domain=[-1.1, 1.1])),
            x2="m",
        )
        middle = alt.Chart(_data([{"x": 0, "a": _plain(q1), "b": _plain(q3)}]))
        dot = alt.Chart(_data([{"x": 0, "y": _plain(q2)}]))
        layers = alt.layer(
            body,
            middle.mark_rule(color="black", strokeWidth=3).encode(x=_x("x"), y=_y("a"), y2="b"),
            dot.mark_point(filled=True, color="black", size=60).encode(x=_x("x"), y=_y("y")),
            rule(y=1.0, color="#c0392b"),
        )
        panels.append(layers.properties(width=70, height=150, title=[name, note.get(name, "")]))
    return alt.hconcat(*panels).resolve_scale(y="shared").properties(title=title)


def panels(charts: Sequence[Any], columns: int = 2, *, shared: bool = True) -> Any:
    """Charts side by side, with one legend where their colours mean the same."""
    grid = alt.concat(*charts, columns=columns)
    return grid if shared else grid.resolve_scale(color="independent", strokeDash="independent")


def write(chart: Any, path: Path, title: str) -> None:
    """`path`.svg and `path`.html; the script the pages share goes into the folder above."""
    import vl_convert

    spec = chart.configure(**dp.charts.CONFIG).to_dict(validate=False)
    spec["datasets"] = dict(_DATASETS)
    _DATASETS.clear()
    path.with_suffix(".svg").write_text(vl_convert.vegalite_to_svg(spec))
    bundle = path.parent.parent / "vega.js"
    if not bundle.exists() or not bundle.stat().st_size:
        # what the snippet does not name is left out of the bundle
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        bundle.write_text(script, encoding="utf-8")
    text = json.dumps(spec).replace("<", "\\u003c")
    page = _PAGE.format(title=html.escape(title), spec=text)
    path.with_suffix(".html").write_text(page, encoding="utf-8")


def _x(name: str) -> Any:
    return alt.X(name, type="quantitative")


def _y(name: str) -> Any:
    return alt.Y(name, type="quantitative")


def _data(values: list[Row]) -> Any:
    """A name for the values: Altair copies inline data each time charts are put together."""
    name = hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]
    _DATASETS[name] = values
    return alt.NamedData(name=name)


def _plain(value: Any) -> Any:
    """A number JSON can hold, with no more digits than a screen can show."""
    if isinstance(value, (float, np.floating, np.integer)):
        return float(f"{float(value):.5g}") if np.isfinite(value) else None
    return value
