"""Arrays → Altair charts. Nothing here knows where the arrays came from.

One theme for light pages, dark pages and print: text and rules take the page's own text colour,
the background is transparent, and the series colours keep a contrast of at least 3:1 against both
white and near-black and stay apart for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpassay._typing import FloatArray
from dpassay.errors import MissingExtra

if TYPE_CHECKING:
    pass

Line: TypeAlias = tuple[FloatArray, FloatArray]

PALETTE = ("#2f7ed8", "#d1690e", "#1f9970", "#9a62c7", "#7d8590", "#c9507f")
_INK = "currentColor"
#: More points than a screen has columns only make the file larger.
_POINTS = 800

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _INK,
        "titleColor": _INK,
        "domainColor": _INK,
        "tickColor": _INK,
        "gridColor": _INK,
        "gridOpacity": 0.12,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
    },
    "legend": {
        "labelColor": _INK,
        "titleColor": _INK,
        "labelFontSize": 12,
        "orient": "top",
        "title": None,
        "labelLimit": 320,
    },
    "title": {"color": _INK, "fontSize": 14, "fontWeight": "normal", "anchor": "start"},
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


def tradeoff(
    lines: Mapping[str, Line],
    *,
    band: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    box: tuple[float, float, float, float] | None = None,
    outline: FloatArray | None = None,
    at: float | None = None,
) -> Any:
    """Trade-off curves with a band, a confidence box or outline, and a vertical line."""
    alt = altair()
    unit = {"scale": alt.Scale(domain=[0, 1], nice=False)}
    layers = []
    if band is not None:
        x, low, high = (_thin(band[0], values) for values in (band[0], band[1], band[2]))
        rows = [
            {"alpha": a, "low": lo, "high": hi}
            for a, lo, hi in zip(x[1], low[1], high[1], strict=True)
        ]
        layers.append(
            alt.Chart(alt.Data(values=rows))
            .mark_area(opacity=0.18, color=PALETTE[0])
            .encode(x=alt.X("alpha:Q", **unit), y=alt.Y("low:Q", **unit), y2="high:Q")
        )
    diagonal = [{"alpha": 0.0, "beta": 1.0}, {"alpha": 1.0, "beta": 0.0}]
    layers.append(
        alt.Chart(alt.Data(values=diagonal))
        .mark_line(strokeDash=[2, 4], strokeWidth=1, color=_INK, opacity=0.5)
        .encode(x="alpha:Q", y="beta:Q")
    )
    layers.append(
        _lines(
            lines,
            "alpha",
            "beta",
            x=alt.X("alpha:Q", title="type-I error α", **unit),
            y=alt.Y("beta:Q", title="type-II error β", **unit),
        )
    )
    if outline is not None:
        ring = [*outline.tolist(), outline[0].tolist()]
        points = [{"alpha": a, "beta": b, "order": k} for k, (a, b) in enumerate(ring)]
        layers.append(
            alt.Chart(alt.Data(values=points))
            .mark_line(filled=True, fillOpacity=0.35, color=PALETTE[5], strokeWidth=1)
            .encode(x="alpha:Q", y="beta:Q", order="order:Q")
        )
    elif box is not None:
        a0, a1, b0, b1 = box
        layers.append(
            alt.Chart(alt.Data(values=[{"a0": a0, "a1": a1, "b0": b0, "b1": b1}]))
            .mark_rect(color=PALETTE[5], opacity=0.35, stroke=PALETTE[5])
            .encode(x="a0:Q", x2="a1:Q", y="b0:Q", y2="b1:Q")
        )
    if at is not None:
        layers.append(_rule(at, "alpha"))
    return _finish(alt.layer(*layers), width=380, height=380)


def spectrum(lines: Mapping[str, Line], *, log: bool = False) -> Any:
    """δ as a function of ε, one line a mechanism or method."""
    alt = altair()
    scale = alt.Scale(type="log") if log else alt.Scale(domainMin=0)
    chart = _lines(
        lines,
        "epsilon",
        "delta",
        x=alt.X("epsilon:Q", title="ε"),
        y=alt.Y("delta:Q", title="δ(ε)", scale=scale),
    )
    return _finish(chart)


def renyi(lines: Mapping[str, Line]) -> Any:
    """Rényi divergence as a function of its order."""
    alt = altair()
    chart = _lines(
        lines,
        "order",
        "value",
        x=alt.X("order:Q", title="order λ", scale=alt.Scale(zero=False)),
        y=alt.Y("value:Q", title="ε(λ)", scale=alt.Scale(domainMin=0)),
    )
    return _finish(chart)


def loss(
    x: FloatArray,
    p: FloatArray,
    q: FloatArray,
    ell: FloatArray,
    *,
    labels: Sequence[str] | None = None,
    location: float | None = None,
    truth: Line | None = None,
) -> Any:
    """The two output distributions above, the privacy loss below."""
    alt = altair()
    if labels is not None:
        return _discrete_loss(labels, p, q, ell)
    axis = alt.X("x:Q", title="output", scale=alt.Scale(zero=False, nice=False))
    above = _lines(
        {"first input": (x, p), "second input": (x, q)},
        "x",
        "y",
        x=axis,
        y=alt.Y("y:Q", title="density"),
    )
    lines = {"loss": (x, np.abs(ell))}
    if truth is not None:
        lines["exact loss"] = truth
    below = _lines(lines, "x", "y", x=axis, y=alt.Y("y:Q", title="|log p/q|"))
    if location is not None:
        below = alt.layer(below, _rule(location, "x"))
    return _stack(above, below)


def _discrete_loss(labels: Sequence[str], p: FloatArray, q: FloatArray, ell: FloatArray) -> Any:
    alt = altair()
    order = np.argsort(-np.maximum(p, q), kind="stable")[:40]
    shown = sorted(int(k) for k in order)
    rows = []
    for k in shown:
        for side, mass in (("first input", p[k]), ("second input", q[k])):
            rows.append({"output": labels[k], "side": side, "probability": float(mass)})
    outputs = [labels[k] for k in shown]
    axis = alt.X("output:N", sort=outputs, title="output", axis=alt.Axis(labelLimit=120))
    above = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=axis,
            xOffset="side:N",
            y=alt.Y("probability:Q", title="probability"),
            color=alt.Color("side:N"),
            tooltip=["output:N", "side:N", alt.Tooltip("probability:Q", format=".4g")],
        )
    )
    finite = np.isfinite(ell)
    cap = float(np.max(np.abs(ell[finite]), initial=0.0)) or 1.0
    values = [
        {
            "output": labels[k],
            "loss": float(np.abs(ell[k])) if finite[k] else 1.1 * cap,
            "shown": f"{abs(ell[k]):.4g}",
        }
        for k in shown
    ]
    below = (
        alt.Chart(alt.Data(values=values))
        .mark_bar(color=PALETTE[4])
        .encode(
            x=axis,
            y=alt.Y("loss:Q", title="|log p/q|"),
            tooltip=["output:N", alt.Tooltip("shown:N", title="|log p/q|")],
        )
    )
    return _stack(above, below)


def _lines(lines: Mapping[str, Line], x_name: str, y_name: str, *, x: Any, y: Any) -> Any:
    alt = altair()
    rows = []
    for name, (xs, ys) in lines.items():
        thin = _thin(np.asarray(xs, dtype=float), np.asarray(ys, dtype=float))
        rows += [
            {x_name: a, y_name: b, "series": name}
            for a, b in zip(*thin, strict=True)
            if np.isfinite(a) and np.isfinite(b)
        ]
    names = list(lines)
    color = alt.Color(
        "series:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[PALETTE[i % len(PALETTE)] for i in range(len(names))]),
        legend=None if len(names) == 1 else alt.Legend(),
    )
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line()
        .encode(
            x=x,
            y=y,
            color=color,
            strokeDash=alt.StrokeDash("series:N", sort=names, legend=None),
            tooltip=[
                alt.Tooltip("series:N", title="curve"),
                alt.Tooltip(f"{x_name}:Q", format=".4g"),
                alt.Tooltip(f"{y_name}:Q", format=".4g"),
            ],
        )
    )


def _thin(x: FloatArray, y: FloatArray) -> tuple[list[float], list[float]]:
    """At most `_POINTS` points, first and last among them, for a polyline that looks the same."""
    if x.size > _POINTS:
        keep = np.unique(np.linspace(0, x.size - 1, _POINTS).round().astype(int))
        # equal steps in index miss where the points are sparse in x: add equal steps in x
        steps = np.searchsorted(x, np.linspace(x[0], x[-1], _POINTS // 2))
        keep = np.union1d(keep, np.clip(steps, 0, x.size - 1))
        x, y = x[keep], y[keep]
    return x.tolist(), y.tolist()


def _rule(at: float, name: str) -> Any:
    alt = altair()
    return (
        alt.Chart(alt.Data(values=[{name: at}]))
        .mark_rule(strokeDash=[4, 3], color=PALETTE[5])
        .encode(x=f"{name}:Q")
    )


def _stack(above: Any, below: Any) -> Any:
    alt = altair()
    both = (chart.properties(width=480, height=160) for chart in (above, below))
    return _finish(alt.vconcat(*both).resolve_scale(color="independent", strokeDash="independent"))


def _finish(chart: Any, *, width: int = 480, height: int = 280) -> Any:
    alt = altair()
    if not isinstance(chart, alt.VConcatChart):
        chart = chart.properties(width=width, height=height)
    return chart.configure(**CONFIG)


def panels(charts: Sequence[Any], columns: int = 2) -> Any:
    """Finished charts on one page, `columns` in a row."""
    alt = altair()
    bare = [chart.copy() for chart in charts]
    for chart in bare:
        chart.config = alt.Undefined
    rows = [alt.hconcat(*bare[k : k + columns]) for k in range(0, len(bare), columns)]
    page = alt.vconcat(*rows).resolve_scale(color="independent", strokeDash="independent")
    return page.configure(**CONFIG)
