"""Arrays → Altair charts. Nothing here knows where the arrays came from.

One theme for light pages, dark pages and print: text and rules take the page's own text colour,
the background is transparent, and the series colours keep a contrast of at least 3:1 against both
white and near-black and stay apart for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dpassay._typing import FloatArray
from dpassay.errors import MissingExtra

Line: TypeAlias = tuple[FloatArray, FloatArray]

PALETTE = ("#2f7ed8", "#d1690e", "#1f9970", "#9a62c7", "#7d8590", "#c9507f")
_DASHES = ([1, 0], [8, 4], [3, 3], [10, 3, 2, 3], [1, 3], [6, 2])
_INK = "currentColor"
#: More points than a screen has columns only make the file larger.
_POINTS = 800
#: Points a line answers a pointer at, and outputs a bar chart shows.
_HOVER = 160
OUTPUTS = 24

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
        "labelFlush": False,
        "tickCount": 6,
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
        "symbolStrokeWidth": 2,
        "symbolSize": 450,
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
    point: tuple[float, float] | None = None,
    hover: bool = False,
) -> Any:
    """Trade-off curves with a band, a confidence box or outline, a point and a vertical line.

    With `hover`, here and below, the chart answers a pointer with the nearest point of a line.
    """
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
            _data(rows)
            .mark_area(opacity=0.18, color=PALETTE[0])
            .encode(x=alt.X("alpha:Q", **unit), y=alt.Y("low:Q", **unit), y2="high:Q")
        )
    diagonal = [{"alpha": 0.0, "beta": 1.0}, {"alpha": 1.0, "beta": 0.0}]
    layers.append(
        _data(diagonal)
        .mark_line(strokeDash=[2, 4], strokeWidth=1, color=_INK, opacity=0.5)
        .encode(x="alpha:Q", y="beta:Q")
    )
    layers += _lines(
        lines,
        "alpha",
        "beta",
        x=alt.X("alpha:Q", title="type-I error α", **unit),
        y=alt.Y("beta:Q", title="type-II error β", **unit),
        symbols=("α", "β"),
        hover=hover,
    )
    if outline is not None:
        ring = [*outline.tolist(), outline[0].tolist()]
        points = [{"alpha": a, "beta": b, "order": k} for k, (a, b) in enumerate(ring)]
        layers.append(
            _data(points)
            .mark_line(filled=True, fillOpacity=0.35, color=PALETTE[5], strokeWidth=1)
            .encode(x="alpha:Q", y="beta:Q", order="order:Q")
        )
    elif box is not None:
        a0, a1, b0, b1 = box
        layers.append(
            _data([{"a0": a0, "a1": a1, "b0": b0, "b1": b1}])
            .mark_rect(color=PALETTE[5], opacity=0.35, stroke=PALETTE[5])
            .encode(x="a0:Q", x2="a1:Q", y="b0:Q", y2="b1:Q")
        )
    if at is not None:
        layers.append(_rule(at, "alpha"))
    if point is not None:
        layers.append(_mark(point, ("alpha", "beta"), ("α counted", "β counted"), "circle"))
    return _finish(alt.layer(*layers), width=380, height=380)


def spectrum(
    lines: Mapping[str, Line],
    *,
    log: bool = False,
    band: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    point: tuple[float, float] | None = None,
    hover: bool = False,
) -> Any:
    """δ as a function of ε, one line a mechanism or method; a band; `point` marks a claim."""
    alt = altair()
    scale = alt.Scale(type="log") if log else alt.Scale(domainMin=0)
    layers = []
    if band is not None:
        rows = [
            {"epsilon": e, "low": lo, "high": hi}
            for e, lo, hi in zip(*(side.tolist() for side in band), strict=True)
        ]
        layers.append(
            _data(rows)
            .mark_area(opacity=0.18, color=PALETTE[0])
            .encode(x="epsilon:Q", y=alt.Y("low:Q", scale=scale), y2="high:Q")
        )
    layers += _lines(
        lines,
        "epsilon",
        "delta",
        x=alt.X("epsilon:Q", title="ε"),
        y=alt.Y("delta:Q", title="δ(ε)", scale=scale),
        symbols=("ε", "δ"),
        hover=hover,
    )
    if point is not None:
        layers.append(_mark(point, ("epsilon", "delta"), ("claimed ε", "claimed δ"), "diamond"))
    return _finish(alt.layer(*layers))


def renyi(
    lines: Mapping[str, Line], *, point: tuple[float, float] | None = None, hover: bool = False
) -> Any:
    """Rényi divergence as a function of its order; `point` marks a claim."""
    alt = altair()
    layers = _lines(
        lines,
        "order",
        "value",
        x=alt.X("order:Q", title="order λ", scale=alt.Scale(zero=False)),
        y=alt.Y("value:Q", title="ε(λ)", scale=alt.Scale(domainMin=0)),
        symbols=("λ", "ε(λ)"),
        hover=hover,
    )
    if point is not None:
        layers.append(_mark(point, ("order", "value"), ("claimed order", "claimed ε"), "diamond"))
    return _finish(alt.layer(*layers))


def evidence(draws: FloatArray, log: FloatArray, *, limit: float, hover: bool = False) -> Any:
    """The log of the evidence against draws a side, and the line past which a claim is refuted."""
    alt = altair()
    ends = np.array([draws.min(), draws.max()], dtype=float) if draws.size else np.ones(1)
    lines = {"evidence": (draws, log), "refuted": (ends, np.full(ends.size, limit))}
    layers = _lines(
        lines,
        "draws",
        "log",
        x=alt.X("draws:Q", title="draws a side", scale=alt.Scale(type="log", nice=False)),
        y=alt.Y("log:Q", title="log evidence"),
        symbols=("draws", "log evidence"),
        hover=hover,
    )
    return _finish(alt.layer(*layers))


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
        both = masses(labels, p, q), mass_loss(labels, p, q, ell)
    else:
        both = densities(x, p, q), loss_line(x, ell, location=location, truth=truth)
    for chart in both:
        chart.config = alt.Undefined  # one theme, at the top
    stack = alt.vconcat(*both).resolve_scale(color="independent", strokeDash="independent")
    return stack.configure(**CONFIG)


def densities(
    x: FloatArray,
    p: FloatArray,
    q: FloatArray,
    *,
    event: Sequence[tuple[float, float]] = (),
    hover: bool = False,
) -> Any:
    """The two densities, with the intervals of an event shaded."""
    alt = altair()
    layers = _shade(event, x) + _lines(
        {"first input": (x, p), "second input": (x, q)},
        "x",
        "y",
        x=_output_axis(x),
        y=alt.Y("y:Q", title="density"),
        symbols=("output", "density"),
        hover=hover,
    )
    return _finish(alt.layer(*layers), height=160)


def loss_line(
    x: FloatArray,
    ell: FloatArray,
    *,
    location: float | None = None,
    truth: Line | None = None,
    event: Sequence[tuple[float, float]] = (),
    hover: bool = False,
) -> Any:
    """|log p/q| along the outputs, with the intervals of an event shaded."""
    alt = altair()
    lines = {"loss": (x, np.abs(ell))}
    if truth is not None:
        lines["exact loss"] = truth
    layers = _shade(event, x) + _lines(
        lines,
        "x",
        "y",
        x=_output_axis(x),
        y=alt.Y("y:Q", title="|log p/q|"),
        symbols=("output", "|log p/q|"),
        hover=hover,
    )
    if location is not None:
        layers.append(_rule(location, "x"))
    return _finish(alt.layer(*layers), height=160)


def masses(
    labels: Sequence[str], p: FloatArray, q: FloatArray, *, inside: Sequence[bool] | None = None
) -> Any:
    """The two probabilities of each output; with `inside`, those outside an event are pale."""
    alt = altair()
    shown = likeliest(p, q)
    rows = []
    for k in shown:
        for side, mass in (("first input", p[k]), ("second input", q[k])):
            row = {"output": labels[k], "side": side, "probability": float(mass)}
            rows.append(row | _member(inside, k))
    chart = (
        _data(rows)
        .mark_bar()
        .encode(
            y=_outputs(),
            yOffset="side:N",
            x=alt.X("probability:Q", title="probability"),
            color=alt.Color(
                "side:N",
                scale=alt.Scale(range=list(PALETTE[:2])),
                legend=alt.Legend(symbolType="square", symbolSize=140),
            ),
            tooltip=["output:N", alt.Tooltip("side:N", title="on the"), _figures("probability")]
            + ([] if inside is None else [alt.Tooltip("event:N", title="in the event")]),
            **_pale(inside),
        )
    )
    return _finish(chart, height=max(60, 26 * len(shown)))


def mass_loss(
    labels: Sequence[str],
    p: FloatArray,
    q: FloatArray,
    ell: FloatArray,
    *,
    inside: Sequence[bool] | None = None,
) -> Any:
    """|log p/q| of each output; an infinite loss is a bar beyond the longest, and says so."""
    alt = altair()
    finite = np.isfinite(ell)
    cap = float(np.max(np.abs(ell[finite]), initial=0.0)) or 1.0
    rows = []
    for k in likeliest(p, q):
        value = float(np.abs(ell[k])) if finite[k] else 1.1 * cap
        said = f"{abs(ell[k]):.4g}" if finite[k] else "∞"
        rows.append({"output": labels[k], "loss": value, "shown": said} | _member(inside, k))
    base = _data(rows).encode(
        y=_outputs(), x=alt.X("loss:Q", title="|log p/q|", scale=alt.Scale(domainMax=1.2 * cap))
    )
    bars = base.mark_bar(color=PALETTE[4]).encode(
        tooltip=["output:N", alt.Tooltip("shown:N", title="|log p/q|")], **_pale(inside)
    )
    text = base.mark_text(align="left", dx=4, color=_INK).encode(text="shown:N")
    return _finish(alt.layer(bars, text), height=max(60, 22 * len(rows)))


def likeliest(p: FloatArray, q: FloatArray) -> list[int]:
    """The outputs a bar chart has room for, in their own order."""
    order = np.argsort(-np.maximum(p, q), kind="stable")[:OUTPUTS]
    return sorted(int(k) for k in order)


def _data(rows: Sequence[Mapping[str, Any]]) -> Any:
    # a dictionary, not an alt.Data: that one checks every number against the schema, for seconds
    return altair().Chart({"values": list(rows)})


def _outputs() -> Any:
    # in the order of the data: a list to sort by would become an expression with the outputs in it
    alt = altair()
    return alt.Y("output:N", sort=None, title=None, axis=alt.Axis(labelLimit=110, ticks=False))


def _member(inside: Sequence[bool] | None, k: int) -> dict[str, str | float]:
    if inside is None:
        return {}
    return {"event": "yes", "shade": 1.0} if inside[k] else {"event": "no", "shade": 0.45}


def _pale(inside: Sequence[bool] | None) -> dict[str, Any]:
    if inside is None:
        return {}
    return {"opacity": altair().Opacity("shade:Q", scale=None, legend=None)}


def _output_axis(x: FloatArray) -> Any:
    alt = altair()
    ends = [float(x[0]), float(x[-1])]
    return alt.X("x:Q", title="output", scale=alt.Scale(domain=ends, zero=False, nice=False))


def _shade(event: Sequence[tuple[float, float]], x: FloatArray) -> list[Any]:
    """The part of an event's intervals that the axis shows, behind everything."""
    alt = altair()
    clipped = [(max(low, float(x[0])), min(high, float(x[-1]))) for low, high in event]
    rows = [{"from": low, "to": high} for low, high in clipped if high > low]
    if not rows:
        return []
    chart = _data(rows).mark_rect(color=PALETTE[5], opacity=0.16)
    return [chart.encode(x=alt.X("from:Q", title="output"), x2="to:Q")]


def _lines(
    lines: Mapping[str, Line],
    x_name: str,
    y_name: str,
    *,
    x: Any,
    y: Any,
    symbols: tuple[str, str],
    hover: bool,
) -> list[Any]:
    alt = altair()
    names = list(lines)
    legend = None if len(names) == 1 else alt.Legend(symbolType="stroke")

    def styled(styles: Sequence[Any]) -> dict[str, Any]:
        values = [styles[i % len(styles)] for i in range(len(names))]
        return {"sort": names, "scale": alt.Scale(domain=names, range=values), "legend": legend}

    color = alt.Color("series:N", **styled(PALETTE))
    tooltip = [alt.Tooltip("series:N", title="curve")] if len(names) > 1 else []
    tooltip += [_figures(x_name, symbols[0]), _figures(y_name, symbols[1])]
    drawn = (
        _data(_rows(lines, x_name, y_name, _POINTS))
        .mark_line()
        .encode(
            x=x,
            y=y,
            color=color,
            strokeDash=alt.StrokeDash("series:N", **styled(_DASHES)),
            tooltip=tooltip,
        )
    )
    if not hover:
        return [drawn]
    near = alt.selection_point(on="pointerover", clear="pointerout", nearest=True, empty=False)
    dots = (
        _data(_rows(lines, x_name, y_name, _HOVER))
        .mark_point(filled=True, size=70)
        .encode(
            x=x,
            y=y,
            color=color,
            opacity=alt.condition(near, alt.value(1.0), alt.value(0.0)),
            tooltip=tooltip,
        )
        .add_params(near)
    )
    return [drawn, dots]


def _rows(
    lines: Mapping[str, Line], x_name: str, y_name: str, points: int
) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for name, (xs, ys) in lines.items():
        thin = _thin(np.asarray(xs, dtype=float), np.asarray(ys, dtype=float), points)
        rows += [
            {x_name: float(f"{a:.6g}"), y_name: float(f"{b:.6g}"), "series": name}
            for a, b in zip(*thin, strict=True)
            if np.isfinite(a) and np.isfinite(b)
        ]
    return rows


def _thin(x: FloatArray, y: FloatArray, points: int = _POINTS) -> tuple[list[float], list[float]]:
    """At most `points` points, first and last among them, for a polyline that looks the same."""
    if x.size > points:
        keep = np.unique(np.linspace(0, x.size - 1, points).round().astype(int))
        # equal steps in index miss where the points are sparse in x: add equal steps in x
        steps = np.searchsorted(x, np.linspace(x[0], x[-1], points // 2))
        keep = np.union1d(keep, np.clip(steps, 0, x.size - 1))
        x, y = x[keep], y[keep]
    return x.tolist(), y.tolist()


def _figures(name: str, title: str | None = None) -> Any:
    return altair().Tooltip(f"{name}:Q", title=title or name, format=".4~g")


def _rule(at: float, name: str) -> Any:
    return _data([{name: at}]).mark_rule(strokeDash=[4, 3], color=PALETTE[5]).encode(x=f"{name}:Q")


def _mark(
    point: tuple[float, float], names: tuple[str, str], titles: tuple[str, str], shape: str
) -> Any:
    """One point that stands for something else than a curve does."""
    return (
        _data([dict(zip(names, point, strict=True))])
        .mark_point(shape=shape, size=110, strokeWidth=2, color=PALETTE[5])
        .encode(
            x=f"{names[0]}:Q",
            y=f"{names[1]}:Q",
            tooltip=[_figures(n, t) for n, t in zip(names, titles, strict=True)],
        )
    )


def _finish(chart: Any, *, width: int = 480, height: int = 280) -> Any:
    return chart.properties(width=width, height=height).configure(**CONFIG)


def panels(charts: Sequence[Any], columns: int = 2) -> Any:
    """Finished charts on one page, `columns` in a row."""
    alt = altair()
    bare = [chart.copy() for chart in charts]
    for chart in bare:
        chart.config = alt.Undefined
    rows = [alt.hconcat(*bare[k : k + columns]) for k in range(0, len(bare), columns)]
    page = alt.vconcat(*rows).resolve_scale(color="independent", strokeDash="independent")
    return page.configure(**CONFIG)
