"""Arrays → Altair charts. Nothing here knows where the arrays came from.

Charts can be layered and set side by side with Altair's operators; `compare` draws several results of a
kind into one chart.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpassay import chart_parts as parts
from dpassay._typing import FloatArray
from dpassay.chart_parts import Line
from dpassay.errors import InvalidInput
from dpassay.theme import CONFIG as CONFIG
from dpassay.theme import INK, PALETTE, altair, column, row

#: What the band of a trade-off chart is.
_BAND = (
    "Shaded: the upper edge is an exact upper bound on T. The lower edge is that of the fitted score and "
    "no bound on T."
)
#: Outputs that a bar chart shows.
_OUTPUTS = 24


def tradeoff(
    lines: Mapping[str, Line],
    *,
    band: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    box: tuple[float, float, float, float] | None = None,
    outline: FloatArray | None = None,
    point: tuple[float, float] | None = None,
    hover: bool = False,
) -> Any:
    """Trade-off curves with a band, a confidence box or outline, and a point.

    With `hover`, here and below, the chart answers a pointer with the nearest point of a line.
    """
    alt = altair()
    unit = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("x:Q", title="type-I error α", scale=unit)
    y = alt.Y("y:Q", title="type-II error β", scale=unit)
    diagonal = parts.data([{"x": 0.0, "y": 1.0}, {"x": 1.0, "y": 0.0}])
    diagonal = diagonal.mark_line(strokeDash=[2, 4], strokeWidth=1, color=INK, opacity=0.5)
    drawn = [*parts.band(band, x, y), diagonal.encode(x=x, y=y)]
    drawn += parts.lines(lines, x, y, ("α", "β"), hover, named=point is not None)
    if outline is not None:
        ring = [*outline.tolist(), outline[0].tolist()]
        region = parts.data([{"x": a, "y": b, "order": k} for k, (a, b) in enumerate(ring)])
        look = {"filled": True, "fillOpacity": 0.35, "color": PALETTE[5], "strokeWidth": 1}
        drawn.append(region.mark_line(**look).encode(x="x:Q", y="y:Q", order="order:Q"))
    elif box is not None:
        region = parts.data([dict(zip(("x", "x2", "y", "y2"), box, strict=True))])
        region = region.mark_rect(color=PALETTE[5], opacity=0.35, stroke=PALETTE[5])
        drawn.append(region.encode(x="x:Q", x2="x2:Q", y="y:Q", y2="y2:Q"))
    drawn += parts.mark(point, ("α counted", "β counted"), "circle", "witness" if lines else "")
    return _noted(parts.finish(drawn, width=380, height=380), () if band is None else (_BAND,), 60)


def spectrum(
    lines: Mapping[str, Line],
    *,
    band: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    point: tuple[float, float] | None = None,
    log_from: float | None = None,
    hover: bool = False,
) -> Any:
    """δ as a function of ε, one line a mechanism or method; a band; `point` marks a claim.

    With `log_from` the axis of δ is logarithmic and begins there.
    """
    alt = altair()
    x = alt.X("x:Q", title="ε")
    y = alt.Y("y:Q", title="δ(ε)", scale=alt.Scale(domainMin=0))
    if log_from is not None:
        scale = alt.Scale(type="log", domainMin=log_from, clamp=True)
        y = alt.Y("y:Q", title="δ(ε), logarithmic", scale=scale, axis=alt.Axis(format=".0e"))
        lines = {k: (a[b >= log_from], b[b >= log_from]) for k, (a, b) in lines.items()}
        band = None
    drawn = parts.band(band, x, y) + parts.lines(lines, x, y, ("ε", "δ"), hover)
    return parts.finish(drawn + parts.mark(point, ("claimed ε", "claimed δ"), "diamond"))


def renyi(
    lines: Mapping[str, Line],
    *,
    point: tuple[float, float] | None = None,
    hover: bool = False,
    notes: Sequence[str] = (),
) -> Any:
    """Rényi divergence as a function of its order; `point` marks a claim; `notes` stand above."""
    alt = altair()
    x = alt.X("x:Q", title="order λ", scale=alt.Scale(zero=False))
    y = alt.Y("y:Q", title="ε(λ)", scale=alt.Scale(domainMin=0))
    values = np.concatenate(
        [np.zeros(0), *(np.asarray(line, dtype=float) for _, line in lines.values())]
    )
    seen = values[np.isfinite(values)]
    if seen.size and seen.min() > 0 and seen.max() > 100 * seen.min():
        y = alt.Y("y:Q", title="ε(λ), logarithmic", scale=alt.Scale(type="log"))
    drawn = parts.lines(lines, x, y, ("λ", "ε(λ)"), hover, points=True)
    made = parts.finish(drawn + parts.mark(point, ("claimed order", "claimed ε"), "diamond"))
    return _noted(made, notes)


def within_reach(name: str, curve: Any, reach: float) -> dict[str, Line]:
    """A Rényi curve up to the order that the draws support; what is beyond has a name of its own."""
    last = int(np.count_nonzero(curve.x <= reach))
    lines = {name: (curve.x[:last], curve.y[:last])} if last else {}
    if last < curve.x.size:
        rest = slice(max(last - 1, 0), None)
        lines[f"{name}{parts.UNRELIABLE}"] = curve.x[rest], curve.y[rest]
    return lines


def _noted(chart: Any, notes: Sequence[str], width: int = 80) -> Any:
    """A chart with notes above it."""
    said = [line for note in notes for line in textwrap.wrap(note, width)]
    # images leave out a subtitle below an empty title
    title = altair().Title(" ", subtitle=said, subtitleColor=INK)
    return chart.properties(title=title) if said else chart


def evidence(draws: FloatArray, log: FloatArray, *, limit: float, hover: bool = False) -> Any:
    """The log of the evidence against draws a side, the line past which a claim is refuted, and where."""
    alt = altair()
    lines = {"evidence": (draws, log), "refuted": parts.level(draws, limit)}
    x = alt.X("x:Q", title="draws a side", scale=alt.Scale(type="log", nice=False))
    wealth = "natural log of the wealth (e-value)"
    y = alt.Y("y:Q", title=wealth)
    above = np.flatnonzero(log >= limit)[:1]
    crossing = (float(draws[above[0]]), float(log[above[0]])) if above.size else None
    drawn = parts.lines(lines, x, y, ("draws", wealth), hover)
    stop = (
        ""
        if crossing is None
        else f"refuted after {crossing[0]:,.0f}, stopped after {draws[-1]:,.0f}"
    )
    mark = parts.mark(crossing, ("refuted after", wealth), "circle", stop)
    return parts.finish(drawn + mark)


def canary_scores(
    lines: Mapping[str, Line],
    *,
    guessed: Sequence[tuple[float, float]] = (),
    part: str = "score",
    hover: bool = False,
) -> Any:
    """Shares of canaries by score, of those included and those left out; shaded: what was guessed."""
    x = next(iter(lines.values()))[0]
    y = altair().Y("y:Q", title="share of canaries", axis=altair().Axis(format=".3~%"))
    drawn = parts.lines(lines, _output_axis(x, part), y, (part, "share"), hover)
    return parts.finish(parts.shade(guessed, x, part) + drawn, height=200)


def certified(
    lines: Mapping[str, Line], *, point: tuple[float, float] | None = None, hover: bool = False
) -> Any:
    """ε against δ, one line what is certified and one what is claimed; `point` marks a claim."""
    alt = altair()
    x = alt.X("x:Q", title="δ", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e"))
    y = alt.Y("y:Q", title="ε", scale=alt.Scale(domainMin=0))
    drawn = parts.lines(lines, x, y, ("δ", "ε"), hover, named=point is not None)
    return parts.finish(drawn + parts.mark(point, ("δ", "certified ε"), "circle", "certified here"))


def search(at: FloatArray, bounds: FloatArray, *, claimed: float, hover: bool = False) -> Any:
    """What pairs of inputs predict, over the draws of a hunt: points, the best so far, the claim."""
    alt = altair()
    lines = {"best": (at, np.maximum.accumulate(bounds)), "claimed": parts.level(at, claimed)}
    x = alt.X("x:Q", title="draws of the hunt")
    y = alt.Y("y:Q", title="predicted bound", scale=alt.Scale(domainMin=0))
    points = parts.data(
        [{"x": a, "y": b} for a, b in zip(at.tolist(), bounds.tolist(), strict=True)]
    )
    points = points.mark_circle(size=20, color=INK, opacity=0.5).encode(x=x, y=y)
    return parts.finish([points, *parts.lines(lines, x, y, ("draws", "predicted bound"), hover)])


def loss(
    x: FloatArray,
    p: FloatArray,
    q: FloatArray,
    ell: FloatArray,
    *,
    labels: Sequence[str] | None = None,
    location: float | None = None,
    part: str = "output",
) -> Any:
    """The two output distributions above, the privacy loss below; `part` names what of outputs x is."""
    if labels is not None:
        return column([masses(labels, p, q, part=part), mass_loss(labels, p, q, ell, part=part)])
    below = loss_line(x, ell, location=location, part=part)
    return column([densities(x, p, q, part=part), below])


def densities(
    x: FloatArray,
    p: FloatArray,
    q: FloatArray,
    *,
    event: Sequence[tuple[float, float]] = (),
    part: str = "output",
    needed: FloatArray | None = None,
    unit: str = "",
    hover: bool = False,
) -> Any:
    """The two densities, with the intervals of an event shaded; `needed` would keep the claim.

    Where `unit` is "date", `x` counts seconds since 1970; where it is "duration", seconds.
    """
    alt = altair()
    lines = {"first input": (x, p), "second input": (x, q)}
    lines |= {} if needed is None else {"needed by the claim": (x, needed)}
    y = alt.Y("y:Q", title="density", axis=alt.Axis(format=".6~g"))
    drawn = parts.lines(lines, _output_axis(x, part, unit), y, (part, "density"), hover)
    return parts.finish(parts.shade(event, x, part) + drawn, height=160)


def loss_line(
    x: FloatArray,
    ell: FloatArray,
    *,
    location: float | None = None,
    event: Sequence[tuple[float, float]] = (),
    rare: Sequence[tuple[float, float]] = (),
    part: str = "output",
    hover: bool = False,
) -> Any:
    """|log p/q| along the outputs: the intervals of an event shaded, those of rare outputs grey."""
    lines = {"estimate": (x, np.abs(ell))}
    y = altair().Y("y:Q", title="|log p/q|, estimated")
    drawn = parts.lines(lines, _output_axis(x, part), y, (part, "|log p/q|"), hover)
    drawn += parts.shade(rare, x, part, PALETTE[4], 0.45)
    if location is not None:
        rule = parts.data([{"x": location}]).mark_rule(strokeDash=[4, 3], color=PALETTE[5])
        drawn.append(rule.encode(x="x:Q"))
    return parts.finish(parts.shade(event, x, part) + drawn, height=160)


def masses(
    labels: Sequence[str],
    p: FloatArray,
    q: FloatArray,
    *,
    inside: Sequence[bool] | None = None,
    part: str = "output",
) -> Any:
    """The two probabilities of each output; with `inside`, those outside an event are pale."""
    alt = altair()
    shown = likeliest(p, q)
    rows = [
        {"output": labels[k], "side": side, "probability": float(mass)} | _member(inside, k)
        for k in shown
        for side, mass in (("first input", p[k]), ("second input", q[k]))
    ]
    square = alt.Legend(symbolType="square", symbolSize=140, columns=1)
    tooltip = ["output:N", alt.Tooltip("side:N", title="on the"), parts.figures("probability")]
    tooltip += [] if inside is None else [alt.Tooltip("event:N", title="in the event")]
    bars = parts.data(rows).mark_bar()
    chart = bars.encode(
        y=_outputs(),
        yOffset="side:N",
        x=alt.X("probability:Q", title="probability"),
        color=alt.Color("side:N", scale=alt.Scale(range=list(PALETTE[:2])), legend=square),
        tooltip=tooltip,
        **_pale(inside),
    )
    return parts.finish([chart], height=max(60, 26 * len(shown)), part=part)


def mass_loss(
    labels: Sequence[str],
    p: FloatArray,
    q: FloatArray,
    ell: FloatArray,
    *,
    inside: Sequence[bool] | None = None,
    rare: Sequence[bool] | None = None,
    part: str = "output",
) -> Any:
    """|log p/q| of each output; an infinite loss is a bar longer than all others, labelled ∞.

    Outputs that are too `rare` for an estimate have a grey bar without a number.
    """
    alt = altair()
    size = np.abs(ell)
    few = np.zeros(size.size, dtype=bool) if rare is None else np.asarray(rare, dtype=bool)
    cap = float(np.max(size[np.isfinite(size) & ~few], initial=0.0)) or 1.0
    rows = []
    for k in likeliest(p, q):
        length, text = (size[k], f"{size[k]:.4g}") if np.isfinite(size[k]) else (1.1 * cap, "∞")
        if few[k]:
            length, text = min(float(length), 1.1 * cap), "rare"
        colour = PALETTE[4] if few[k] else PALETTE[0]
        row = {"output": labels[k], "loss": float(length), "shown": text, "colour": colour}
        rows.append(row | _member(inside, k))
    title = "|log p/q|, estimated"
    base = parts.data(rows).encode(
        y=_outputs(), x=alt.X("loss:Q", title=title, scale=alt.Scale(domainMax=1.6 * cap))
    )
    bars = base.mark_bar().encode(
        color=alt.Color("colour:N", scale=None, legend=None),
        tooltip=["output:N", alt.Tooltip("shown:N", title="|log p/q|")],
        **_pale(inside),
    )
    text = base.mark_text(align="left", dx=4, color=INK).encode(text="shown:N")
    return parts.finish([bars, text], height=max(60, 22 * len(rows)), part=part)


def likeliest(p: FloatArray, q: FloatArray) -> list[int]:
    """Indices of the outputs that a bar chart shows, the likeliest, in increasing order."""
    order = np.argsort(-np.maximum(p, q), kind="stable")[:_OUTPUTS]
    return sorted(int(k) for k in order)


def _outputs() -> Any:
    # in the order of the data: a list to sort by would become an expression with the outputs in it
    return altair().Y("output:N", sort=None, title=None, axis=altair().Axis(ticks=False))


def _member(inside: Sequence[bool] | None, k: int) -> dict[str, str | float]:
    if inside is None:
        return {}
    return {"event": "yes", "shade": 1.0} if inside[k] else {"event": "no", "shade": 0.45}


def _pale(inside: Sequence[bool] | None) -> dict[str, Any]:
    if inside is None:
        return {}
    return {"opacity": altair().Opacity("shade:Q", scale=None, legend=None)}


def _output_axis(x: FloatArray, part: str, unit: str = "") -> Any:
    alt = altair()
    ends = [float(x[0]), float(x[-1])]
    wide = max(abs(ends[0]), abs(ends[1])) < 1e4 * max(ends[1] - ends[0], 1e-300)
    # six digits do not tell apart numbers that are large and close together
    shown = {"format": ".6~g"} if wide else {}
    if unit == "date":
        form = "%Y-%m-%d" if ends[1] - ends[0] > 4 * 86400 else "%m-%d %H:%M"
        shown = {"labelExpr": f"utcFormat(1000 * datum.value, '{form}')"}
    return alt.X(
        "x:Q",
        title=f"{part}, in seconds" if unit == "duration" else part,
        axis=alt.Axis(**shown, labelOverlap=True),
        scale=alt.Scale(domain=ends, zero=False, nice=False),
    )


def panels(charts: Sequence[Any], columns: int = 2) -> Any:
    """Charts on one page, `columns` in a row."""
    rows = [row(charts[k : k + columns]) for k in range(0, len(charts), columns)]
    return column(rows)


def compare(results: Mapping[str, Any]) -> Any:
    """Several spectra, trade-off curves, Rényi curves or profiles in one chart, a line each.

    >>> import dpassay as dp
    >>> made = {f"μ = {mu}": dp.TradeoffDP(dp.GaussianDP(mu).tradeoff).f for mu in (0.5, 1.0)}
    >>> chart = dp.charts.compare(made)
    """
    if not isinstance(results, Mapping) or not results:
        raise InvalidInput(
            'compare takes names and results, as in compare({"A": one, "B": other}), got '
            f"{results!r:.60}"
        )
    kinds = {name: getattr(type(result), "drawn_as", "") for name, result in results.items()}
    odd = next((name for name, kind in kinds.items() if not kind), None)
    if odd is not None:
        raise InvalidInput(
            f"compare draws spectra, trade-off curves, Rényi curves and profiles; {odd!r} is a "
            f"{type(results[odd]).__name__}. The chart of a curve takes claims: spectrum.chart(claimed=…)"
        )
    if len(set(kinds.values())) > 1:
        raise InvalidInput(f"compare draws results of one kind, got {sorted(set(kinds.values()))}")
    kind = next(iter(kinds.values()))
    if kind == "profile":
        curves = ("tradeoff_curve", "spectrum")
        made = [compare({n: getattr(r, c) for n, r in results.items()}) for c in curves]
        orders = (within_reach(str(n), r.renyi_curve, r.renyi_reach) for n, r in results.items())
        return panels([*made, renyi({name: line for own in orders for name, line in own.items()})])
    lines = {str(name): (r.x, r.y) for name, r in results.items()}
    if kind == "renyi":
        noted = [(n, r.about.notes) for n, r in results.items() if r.about and r.lower is not None]
        return renyi(lines, notes=[f"{name}: {note}" for name, own in noted for note in own])
    return (tradeoff if kind == "tradeoff" else spectrum)(lines)
