"""The figures of outputs on a page: distributions, privacy loss, witness event and cause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpassay import charts
from dpassay._typing import FloatArray
from dpassay.outputs.events import Event, abridged_keys
from dpassay.outputs.keys import Layout
from dpassay.outputs.templates import exact, number_columns, show, told_apart, written_in
from dpassay.privacy.finite_pairs import LossCurve
from dpassay.report.figures import Figure, Rows, figure, some
from dpassay.results.explanations import Explanation
from dpassay.rounding import number

#: Outputs that fewer draws have, on the two inputs together, are rare: their ratio is noise.
_RARE = 50
#: Cells of the axis within which draws are counted for that.
_CELLS = 50
#: The share of the outputs beyond either end of a picture of densities.
_TAIL = 5e-4

_LOSS = "Privacy loss, estimated"
_NOT_CERTIFIED = "It is an estimate and certifies nothing."


def losses(key: str, curve: LossCurve, event: Event | None, draws: int = 0) -> list[Figure]:
    """The two output distributions and the privacy loss, the witness event shaded.

    `draws` is how many the estimate is from, on the two inputs together; 0 if that is not known.
    """
    if curve.labels is not None:
        return _discrete_losses(key, curve, curve.labels, event, draws)
    part = curve.part
    shaded = [] if event is None or part != "output" else intervals(event)
    curve = _likely_part(curve, shaded)
    x, p, q, ell = curve.x, curve.p, curve.q, curve.y
    note, which = " Shaded: the witness event." if shaded else "", ""
    if part != "output":
        which = f" Shown is {part}."
        note += (
            f" Shown is {part}, where • stands for any value. Outputs of another form are not shown, and "
            "the whole output may say more than this part of it."
        )
    columns = [part, "density, first input", "density, second input", "|log p/q|"]
    seen = np.flatnonzero(p + q > 0)  # few draws leave cells without any between them
    seen = seen[some(seen.size)]
    rows = [
        [place, *(number(float(v)) for v in (p[k], q[k], abs(ell[k])))]
        for place, k in zip(_places(x[seen]), seen, strict=True)
    ]
    densities = figure(
        f"{key}-densities",
        "Output densities",
        "The distribution of the outputs on the two inputs, estimated from the draws. "
        f"{2 * _TAIL:.1%} of the outputs are beyond the ends of the axis.{note}",
        "Densities of the outputs on the first and the second input",
        partial(charts.densities, x, p, q, event=shaded, part=part),
        (columns, rows),
    )
    loss = figure(
        f"{key}-loss",
        _LOSS,
        "The log-ratio of the two estimated densities: how much an output says about which input was "
        f"used. {_NOT_CERTIFIED} Grey: outputs too rare for an estimate, fewer than {_RARE} draws in "
        f"1/{_CELLS} of the axis.{which}",
        "Estimated absolute privacy loss along the outputs",
        partial(charts.loss_line, x, ell, event=shaded, part=part, rare=_rare(x, p + q, draws)),
        ([part, columns[3]], [[row[0], row[3]] for row in rows]),
    )
    return [densities, loss]


def _discrete_losses(
    key: str, curve: LossCurve, labels: tuple[str, ...], event: Event | None, draws: int
) -> list[Figure]:
    of_feature, inside = curve.part != "output", None
    if event is not None and of_feature:
        held = event.holds_feature(curve.x)
        inside = None if held is None else held.tolist()
    elif event is not None:
        inside = members(event, labels)
    p, q, ell = curve.p, curve.q, curve.y
    shown = charts.likeliest(p, q)
    note = " Full colour: in the witness event; pale: outside it." if inside else ""
    if len(shown) < p.size:
        note += f" Shown: the {len(shown)} most frequent of {p.size} outputs."
    if any("•" in labels[k] for k in shown):
        note += " • stands for any number."
    first, cells = [curve.part], [[label] for label in labels]
    if event is not None and (split := _by_column(event, labels)) is not None:
        first, cells = split
    labels = tuple(" · ".join(row) for row in cells)
    columns = [*first, "probability, first input", "probability, second input", "|log p/q|"]
    rows = [[*cells[k], *(number(float(v)) for v in (p[k], q[k], abs(ell[k])))] for k in shown]
    if inside is not None:
        columns.append("in the witness event")
        rows = [[*row, "yes" if inside[k] else "no"] for row, k in zip(rows, shown, strict=True)]
    title, what = "Output probabilities", "each output comes"
    if of_feature:
        title, what = "Output probabilities, by value", f"each value of {curve.part} comes"
    shade: dict[str, Any] = {"inside": inside, "part": " · ".join(first)}
    masses = figure(
        f"{key}-masses",
        title,
        f"How often {what} on the two inputs, estimated from the draws.{note}",
        f"How often {what} on the first and the second input",
        partial(charts.masses, labels, p, q, **shade),
        (columns, rows),
        hover=False,
    )
    if of_feature:
        return [masses]
    often = (p + q) / 2 * draws
    rare = often < _RARE if draws else np.zeros(p.size, dtype=bool)
    loss = figure(
        f"{key}-loss",
        _LOSS,
        "The log-ratio of the two estimated probabilities of each output: how much it says about "
        f"which input was used. {_NOT_CERTIFIED} Grey: rare outputs, in fewer than {_RARE} draws.",
        "Estimated absolute privacy loss of each output",
        partial(charts.mass_loss, *(labels, p, q, ell), **shade, rare=rare.tolist()),
        (
            [*first, "|log p/q|", "draws"],
            [[*cells[k], number(float(abs(ell[k]))), f"{often[k]:,.0f}"] for k in shown],
        ),
        hover=False,
    )
    return [masses, loss]


def _likely_part(curve: LossCurve, shaded: Sequence[tuple[float, float]]) -> LossCurve:
    """The curve where nearly all the outputs are, and where the event begins and ends."""
    mass = np.cumsum((curve.p + curve.q) * np.gradient(curve.x)) if curve.x.size > 2 else [0.0]
    if not mass[-1] > 0:
        return curve
    first, last = np.searchsorted(mass, np.array([_TAIL, 1 - _TAIL]) * mass[-1])
    edges = [e for pair in shaded for e in pair if curve.x[0] <= e <= curve.x[-1]]
    at = np.searchsorted(curve.x, [curve.x[first], curve.x[last], *edges])
    keep = slice(max(int(at.min()) - 1, 0), int(at.max()) + 2)
    return LossCurve(curve.x[keep], curve.y[keep], curve.p[keep], curve.q[keep], part=curve.part)


def _rare(x: FloatArray, density: FloatArray, draws: int) -> list[tuple[float, float]]:
    """Intervals of the axis that hold too few draws; `density` is the sum of the two."""
    if x.size < 2 or not draws:
        return []
    few = density / 2 * draws * (x[-1] - x[0]) / _CELLS < _RARE
    edges = np.flatnonzero(np.diff(np.concatenate([[0], few.astype(int), [0]])))
    ends = np.concatenate([[x[0]], (x[:-1] + x[1:]) / 2, [x[-1]]])
    return list(zip(ends[edges[::2]].tolist(), ends[edges[1::2]].tolist(), strict=True))


def cause(key: str, diagnosis: Sequence[Explanation], event: Event) -> list[Figure]:
    """The part of the output that the first explanation with a picture is about, on the two inputs.

    The witness event is shaded where it is one of this part, or else the event of the explanation.
    """
    one = next((one for one in diagnosis if one.picture is not None), None)
    if one is None or (seen := one.picture) is None:
        return []
    whole, named = seen.part == "the output", one.condition or "the event of the explanation"
    named = re.sub(r"\d+\.\d{5,}(e-?\d+)?", lambda found: number(float(found[0])), named)
    title = f"Where it shows: {seen.part}"
    about = caption = f"The distribution on the two inputs of: {seen.part}, counted in draws."
    at = np.arange(seen.x.size) if seen.labels else np.array(some(seen.x.size))
    sides = ([number(v) for v in side[at]] for side in (seen.p, seen.q))
    places = seen.labels or _places(seen.x[at], seen.unit)
    rows = [list(row) for row in zip(places, *sides, strict=True)]
    table = [seen.part, "first input", "second input"], rows
    if seen.labels:
        inside = members(event, seen.labels) if whole else None
        witness = inside is not None and any(inside)
        inside = inside if witness else list(seen.inside) or None
        caption += f" Full colour: {'the witness event' if witness else named}."
        draw = partial(charts.masses, seen.labels, seen.p, seen.q, inside=inside)
        return [figure(key, title, caption, about, draw, table, hover=False)]
    low = -np.inf if seen.low is None else seen.low
    high = np.inf if seen.high is None else seen.high
    shaded = intervals(event) if whole else []
    if shaded or low < high:
        other = f"{named} (it shows this cause; the witness is another event)"
        caption += f" Shaded: {'the witness event' if shaded else other}."
    shaded = shaded or ([(low, high)] if low < high else [])
    if seen.needed is not None:
        caption += (
            " The third line is the noise, around the first input, that would keep the claim."
        )
    shown: dict[str, Any] = {"part": seen.part, "needed": seen.needed, "unit": seen.unit}
    draw = partial(charts.densities, seen.x, seen.p, seen.q, event=shaded, **shown)
    return [figure(key, title, caption, about, draw, table)]


def intervals(event: Event) -> list[tuple[float, float]]:
    """The intervals of an event on outputs that are one number."""
    layout = event.layout
    found = []
    for key, test in event.partial:
        if layout is None or len(layout.free(key)) == 1:
            found += list(zip(test.lows.tolist(), test.highs.tolist(), strict=True))
    if layout is not None and any(len(layout.free(key)) == 1 for key in event.whole):
        found.append((-np.inf, np.inf))
    return found


def members(event: Event, labels: Sequence[str]) -> list[bool] | None:
    """Which of the outputs named are in an event; None if it cannot be told."""
    if event.layout is None or event.live:
        return None
    whole = {event.layout.words(key) for key in event.whole}
    return [label in whole or (event.otherwise and label == "any other output") for label in labels]


def _by_column(event: Event, labels: Sequence[str]) -> tuple[list[str], Rows] | None:
    """Rows of a table as cells, with the names of their columns; None where outputs are not such rows."""
    layout = event.layout
    if layout is None:
        return None
    keys = {layout.words(key): key for key in range(len(layout))}
    found = [_cells(layout, keys[label]) if label in keys else {} for label in labels]
    names = next(filter(None, found), {})
    if not names or any(one and one.keys() != names.keys() for one in found):
        return None
    blank = [""] * (len(names) - 1)
    return [*names], [
        [*one.values()] if one else [label, *blank]
        for one, label in zip(found, labels, strict=True)
    ]


def _cells(layout: Layout, key: int) -> dict[str, str]:
    """The cells of a row by column; nothing for outputs that are no rows."""
    part = layout.part(key)
    match part.template:
        case ("dict", entries):
            columns = list(entries)
        case ("seq", items) if len(items) > 1:
            columns = [(f"column {k}", child) for k, child in enumerate(items, 1)]
        case _:
            return {}
    values = zip(part.values(int(layout.codes[key])), part.origins, strict=True)
    numbers = iter([None if v is None else exact(v, origin=o) for v, o in values])
    return {
        str(name): show(child, [next(numbers) for _ in number_columns(child)])
        for name, child in columns
    }


def event_table(event: Event) -> tuple[str, list[str], Rows] | None:
    """All outputs of an event that its words do not list, or all that are not in it; None for others."""
    keys = abridged_keys(event)
    if event.layout is None or not keys:
        return None
    labels = [event.layout.words(key) for key in keys]
    columns, rows = _by_column(event, labels) or (["output"], [[label] for label in labels])
    which = "not in" if event.otherwise else "in"
    return f"The {len(keys)} outputs that are {which} the witness event", columns, rows


def _places(x: FloatArray, unit: str = "") -> list[str]:
    """Places on an axis, with as many digits as tell them apart."""
    if unit:
        return [written_in(unit, float(one)) for one in x]
    few = [number(float(one)) for one in x]
    return few if len(set(few)) == len(few) else told_apart(x.tolist())
