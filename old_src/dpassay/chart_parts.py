"""What charts are made of: lines with a legend and a pointer, shaded intervals, marked points, data."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dpassay._typing import FloatArray
from dpassay.theme import PALETTE, POINTS, altair, layers, thin

Line: TypeAlias = tuple[FloatArray, FloatArray]

_DASHES = ([1, 0], [8, 4], [3, 3], [10, 3, 2, 3], [1, 3], [6, 2])
#: What follows the name of the part of a line that the draws do not support.
UNRELIABLE = ", not reliable"
#: An estimate of δ(ε), which is drawn with less weight than what is certified.
ESTIMATED_DELTA = "estimated δ"
#: Colour and dash of lines that mean the same in every chart.
_ROLES = {
    "estimate": (0, 0),
    f"estimate{UNRELIABLE}": (0, 2),
    ESTIMATED_DELTA: (4, 2),
    "claimed": (1, 1),
    "certified": (2, 2),
    "certified from below": (2, 2),
    "certified from above": (3, 3),
    "lower bound": (2, 2),
}
#: Points of a line that answer a pointer.
_HOVER = 160


def data(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A chart of rows."""
    # a dictionary, not an alt.Data: that one checks every number against the schema, for seconds
    return altair().Chart({"values": list(rows)})


def table(rows: Sequence[Mapping[str, Any]], *columns: str) -> Any:
    """Rows that hold columns of numbers, a row a curve, as the data of a chart.

    As text they are a quarter of the size of a row a point, and altair, which copies data at every step,
    copies them at once.
    """
    text = json.dumps(list(rows), separators=(",", ":"))
    chart = altair().Chart({"values": text, "format": {"type": "json"}})
    return chart.transform_flatten(list(columns))


def band(band: tuple[FloatArray, FloatArray, FloatArray] | None, x: Any, y: Any) -> list[Any]:
    """The area between two curves."""
    if band is None:
        return []
    at, low = thin(band[0], band[1])
    high = thin(band[0], band[2])[1]
    area = table([{"x": at, "y": low, "high": high}], "x", "y", "high")
    return [area.mark_area(opacity=0.18, color=PALETTE[0]).encode(x=x, y=y, y2="high:Q")]


def shade(
    event: Sequence[tuple[float, float]],
    x: FloatArray,
    part: str,
    color: str = PALETTE[5],
    opacity: float = 0.16,
) -> list[Any]:
    """The part of some intervals that the axis shows."""
    clipped = [(max(low, float(x[0])), min(high, float(x[-1]))) for low, high in event]
    rows = [{"from": low, "to": high} for low, high in clipped if high > low]
    if not rows:
        return []
    chart = data(rows).mark_rect(color=color, opacity=opacity)
    return [chart.encode(x=altair().X("from:Q", title=part), x2="to:Q")]


def lines(
    lines: Mapping[str, Line],
    x: Any,
    y: Any,
    symbols: tuple[str, str],
    hover: bool,
    *,
    named: bool = False,
    points: bool = False,
) -> list[Any]:
    """Lines and, for a pointer, points on them; `symbols` name x and y in its tooltip.

    The legend leaves out a single line, unless it is `named`. With `points` each of theirs is marked.
    """
    if not lines:  # an empty legend has an infinite size
        return []
    alt = altair()
    names = list(lines)
    wrap = {"columns": 2} if len(names) == 3 else {}  # three names do not fit a phone
    legend = None if len(names) == 1 and not named else alt.Legend(symbolType="stroke", **wrap)

    # what means the same looks alike; from the seventh line on colours repeat, with other dashes
    base = dict.fromkeys(name.removesuffix(UNRELIABLE) for name in names if name not in _ROLES)
    taken = {_ROLES[name][0] for name in names if name in _ROLES}
    free = (i for i in itertools.count() if i not in taken)
    places = dict(zip(base, free, strict=False))
    roles = []
    for name in names:
        i = places.get(name.removesuffix(UNRELIABLE), 0)
        own = i, i + i // len(PALETTE) + 4 * name.endswith(UNRELIABLE)
        roles.append(_ROLES.get(name, own))

    def styled(styles: Sequence[Any], which: int) -> dict[str, Any]:
        values = [styles[role[which] % len(styles)] for role in roles]
        return {"sort": names, "scale": alt.Scale(domain=names, range=values), "legend": legend}

    tooltip = [alt.Tooltip("series:N", title="curve")] if len(lines) > 1 else []
    tooltip += [figures("x", symbols[0]), figures("y", symbols[1])]
    shared = {
        "x": x,
        "y": y,
        "tooltip": tooltip,
        "color": alt.Color("series:N", **styled(PALETTE, 0)),
    }
    dashes = alt.StrokeDash("series:N", **styled(_DASHES, 1))
    drawn = table(curves(lines, POINTS), "x", "y").mark_line(point=points)
    parts = [drawn.encode(strokeDash=dashes, **shared)]
    if hover:
        near = alt.selection_point(on="pointerover", clear="pointerout", nearest=True, empty=False)
        dots = table(curves(lines, _HOVER), "x", "y").mark_point(filled=True, size=70)
        seen = alt.condition(near, alt.value(1.0), alt.value(0.0))
        parts.append(dots.encode(opacity=seen, **shared).add_params(near))
    return parts


def level(x: FloatArray, value: float) -> Line:
    """A horizontal line over all of x."""
    ends = np.array([x.min(), x.max()], dtype=float) if x.size else np.ones(1)
    return ends, np.full(ends.size, value)


def curves(lines: Mapping[str, Line], points: int) -> list[dict[str, Any]]:
    """Lines as rows, with at most so many points each."""
    out = []
    for name, (xs, ys) in lines.items():
        x, y = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
        seen = np.isfinite(x) & np.isfinite(y)
        if seen.any():
            fewer = thin(x[seen], y[seen], points)
            out.append({"x": fewer[0], "y": fewer[1], "series": name})
    return out


def figures(name: str, title: str | None = None) -> Any:
    """A number in a tooltip."""
    return altair().Tooltip(f"{name}:Q", title=title or name, format=".4~g")


def mark(
    point: tuple[float, float] | None, titles: tuple[str, str], shape: str, name: str = ""
) -> list[Any]:
    """A marked point: a claim, or the counted event; its name is an entry of the legend."""
    if point is None:
        return []
    alt = altair()
    mark = data([{"x": point[0], "y": point[1]} | ({"mark": name} if name else {})])
    mark = mark.mark_point(shape=shape, size=110, strokeWidth=2, color=PALETTE[5])
    tooltip = [figures("x", titles[0]), figures("y", titles[1])]
    made = mark.encode(x="x:Q", y="y:Q", tooltip=tooltip)
    if not name:
        return [made]
    # at the bottom: beside the legend of the lines it does not fit on a phone
    legend = alt.Legend(orient="bottom", symbolStrokeColor=PALETTE[5], symbolSize=110)
    scale = alt.Scale(domain=[name], range=[shape])
    return [made.encode(shape=alt.Shape("mark:N", scale=scale, legend=legend))]


def finish(
    parts: Sequence[Any], *, width: int = 480, height: int = 280, part: str = "output"
) -> Any:
    """Layers; the title says what of the outputs is shown, unless that is all of them."""
    titled = {} if part == "output" else {"title": part}
    return layers(parts).properties(width=width, height=height, **titled)
