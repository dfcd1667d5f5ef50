"""The figures of a page: a chart, a drawing of it for viewers without scripts, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpassay import charts
from dpassay._typing import FloatArray
from dpassay.bounds.joint_test import clopper_pearson_box
from dpassay.bounds.ordering import Counts
from dpassay.outputs.events import Event, abridged_keys
from dpassay.outputs.keys import Layout
from dpassay.outputs.templates import exact, number_columns, show, told_apart
from dpassay.privacy.claims import ApproximateDP, Claim, PureDP
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.privacy.finite_pairs import LossCurve
from dpassay.report.embed import drawing
from dpassay.results.explanations import Explanation
from dpassay.results.profile import Profile
from dpassay.results.verdict import Verdict
from dpassay.results.view import percent
from dpassay.rounding import number
from dpassay.theme import unchecked

#: Rows of the table behind a chart.
_ROWS = 25
#: The width of a drawing, and of the first one; the interactive charts take the width there is.
_WIDTH, _WIDE = 400, 620
#: Outputs that fewer training draws have, on the two inputs together, are rare: their ratio is noise.
_RARE = 50
#: Cells of the axis within which draws are counted for that.
_CELLS = 50
#: The share of the outputs beyond either end of a picture of densities.
_TAIL = 5e-4

_LOSS = "Privacy loss, estimated"
_NOT_CERTIFIED = "It is an estimate and certifies nothing."

Box = tuple[float, float, float, float]
Table = list[list[str]]


@dataclass(frozen=True)
class Figure:
    """A chart with its title, its caption and its numbers."""

    key: str
    title: str
    caption: str
    alt: str
    spec: dict[str, Any] | None  # None: there is nothing finite to draw
    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def figure(
    key: str,
    title: str,
    caption: str,
    alt: str,
    draw: Callable[..., Any],
    columns: Sequence[str],
    rows: Table,
    *,
    hover: bool = True,
    width: int = _WIDTH,
) -> Figure:
    """`draw` makes the interactive chart, and once more the drawing; `hover` if it takes that option."""
    with unchecked():
        chart = draw(hover=True) if hover else draw()
        spec, still = (c.to_dict(validate=False) for c in (chart, draw()))
    still["width"], spec["width"] = width, "container"
    # the fonts of the reader may be wider than those the drawing was measured with
    still["padding"] = {"left": 30, "right": 16, "top": 5, "bottom": 5}
    return Figure(key, title, caption, alt, spec, drawing(still, key, alt), columns, rows)


def notions(key: str, profile: Profile, verdict: Verdict | None) -> list[Figure]:
    """δ(ε), the output distributions, the privacy loss and the Rényi curve of a profile."""
    claim = None if verdict is None else verdict.claim
    event = None if verdict is None else verdict.witness.event
    draws, loss = sum(profile.about.n or ()), profile.loss
    return [
        spectrum(f"{key}-spectrum", profile.spectrum, claim),
        *([] if loss is None else losses(key, loss, event, draws)),
        renyi(f"{key}-renyi", profile.renyi_curve, claim),
    ]


def tradeoff(key: str, verdict: Verdict | None, curve: TradeoffCurve | None) -> Figure:
    """The claim against the measured curve, and the confidence region of the point counted."""
    lines: dict[str, charts.Line] = {}
    caption = []
    band = None
    if curve is not None:
        lines["estimate"] = (curve.x, curve.y)
        if curve.band is not None:
            band = curve.band.x, curve.band.lower, curve.band.upper
            caption.append(
                "The true curve lies below the upper edge of the band at all α at once, with "
                f"{percent(curve.band.confidence)} confidence."
            )
    marked: dict[str, Any] = {}
    counted: Table = []
    if verdict is not None:
        grid = np.unique(np.concatenate([np.linspace(0, 1, 401), np.geomspace(1e-4, 0.1, 60)]))
        lines["claimed"] = (grid, np.asarray(verdict.claim.tradeoff(grid)))
        point, box = _counted_point(verdict)
        outline = None if verdict.point is None else verdict.point.outline
        marked = {"point": point, "box": box, "outline": outline}
        if curve is None:
            caption.append("The line is the claimed curve.")
        caption.append(
            "The two errors of a test that guesses from one output which input was used. The claim says "
            "that no test is below the claimed curve. The circle is the witness event as counted, with "
            f"its {percent(verdict.confidence)} confidence "
            f"{'box' if verdict.point is None else 'region'}; the verdict rests on its own test, not on "
            "the picture."
        )
        a0, a1, b0, b1 = map(number, box)
        blank = [""] * (len(lines) - 1)
        counted = [
            [*(f"{number(rate)} (counted)" for rate in point), *blank],
            [f"α in [{a0}, {a1}]", f"β in [{b0}, {b1}]", *blank],
        ]
    caption.append("On the dotted diagonal a test is no better than chance.")
    rows = [
        [number(a), *(number(float(np.interp(a, *line))) for line in lines.values())]
        for a in np.linspace(0, 1, 21).tolist()
    ]
    return figure(
        key,
        "Trade-off curve" if verdict is None else "The claim against what was measured",
        " ".join(caption),
        "Type-II error against type-I error: " + " and ".join(f"the {n} curve" for n in lines),
        partial(charts.tradeoff, lines, band=band, **marked),
        ["α", *(f"β, {name}" for name in lines)],
        rows + counted,
        width=_WIDE,
    )


def _counted_point(verdict: Verdict) -> tuple[tuple[float, float], Box]:
    """The witness as a point (α, β) with a box around it."""
    if verdict.point is not None:
        return (verdict.point.alpha, verdict.point.beta), verdict.point.box
    i, n, j, m = verdict.counted
    found = clopper_pearson_box(Counts(i, n, j, m), 1 - verdict.confidence)
    box = (found.low_alpha, found.high_alpha, found.low_beta, found.high_beta)
    return (j / m, 1 - i / n), box


def evidence(key: str, verdict: Verdict) -> list[Figure]:
    """The log of a monitor's evidence (wealth of its e-process) against draws; none of an audit."""
    if verdict.evidence is None or not len(verdict.evidence):
        return []
    draws, log = verdict.evidence.T
    limit = float(-np.log(1 - verdict.confidence))
    caption = (
        "The log of the wealth that bets against the claim have won (an e-process). If the claim were "
        f"true, it would reach the line at {number(limit)} with probability at most "
        f"{percent(1 - verdict.confidence)}, however many draws are made. It is computed after each "
        "batch of draws. The witness counts only draws that had no part in choosing its event."
    )
    rows = [[f"{draws[k]:,.0f}", f"{log[k]:.3f}"] for k in _some(draws.size)]
    alt = "The log of the evidence against draws a side"
    draw = partial(charts.evidence, draws, log, limit=limit)
    return [figure(key, "Evidence", caption, alt, draw, ("draws a side", "log evidence"), rows)]


def search(key: str, at: FloatArray, bounds: FloatArray, claimed: float) -> list[Figure]:
    """What the pairs of a hunt predicted, over its draws; none if none was drawn on thoroughly."""
    if not at.size:
        return []
    caption = (
        "Each point is a pair of inputs, at the draws of the hunt when it was tried last, with the bound "
        "that they predicted. The line is the best so far. Predictions choose the pair to test, no more."
    )
    rows = [[f"{at[k]:,.0f}", number(float(bounds[k]))] for k in _some(at.size)]
    draw = partial(charts.search, at, bounds, claimed=claimed)
    alt = "Predicted bounds of pairs over the draws of the hunt"
    return [figure(key, "The search", caption, alt, draw, ("draws", "predicted bound"), rows)]


def spectrum(key: str, found: Spectrum, claim: Claim | None) -> Figure:
    """δ(ε), estimated and certified, and what the claim allows."""
    lines: dict[str, charts.Line] = {"estimate": (found.x, found.y)}
    caption = ["The smallest δ for which (ε, δ)-DP holds, by ε."]
    point = band = None
    if claim is not None and not claim.directional:  # the estimate is the worse of both directions
        lines["claimed"] = (found.x, np.asarray(claim.delta_at(found.x)))
        caption.append(
            "The claim allows δ up to the claimed curve. An estimate above it proves nothing; the "
            "verdict does, or a certified curve above it."
        )
    if found.lower is not None:
        lines["certified"] = (found.x, found.lower)
        level = "" if found.confidence is None else f" with {percent(found.confidence)} confidence"
        caption.append(f"The true δ lies above the certified curve{level}.")
    if found.upper is not None:
        lines["certified from above"] = (found.x, found.upper)
        caption.append(
            "On these inputs it lies below the curve that is certified from above, with the same "
            "confidence."
        )
        if found.lower is not None:
            band = found.x, found.lower, found.upper
    if isinstance(claim, (PureDP, ApproximateDP)) and claim.epsilon <= found.x[-1]:
        point = (claim.epsilon, float(claim.delta_at(claim.epsilon)))
        caption.append(f"The diamond is the claim, {claim.short}.")
    return figure(
        key,
        "δ(ε)",
        " ".join(caption),
        "δ as a function of ε: " + ", ".join(lines),
        partial(charts.spectrum, lines, band=band, point=point),
        *tabulated("ε", "δ", lines),
    )


def renyi(key: str, curve: RenyiCurve, claim: Claim | None) -> Figure:
    """ε(λ), estimated and bounded, and what the claim allows."""
    lines: dict[str, charts.Line] = {"estimate": (curve.x, curve.y)}
    caption = ["The Rényi divergence of the two outputs, the worse direction, by order."]
    point = None
    stated = None if claim is None else _stated(claim, curve.x)
    if claim is not None and stated is not None and stated[0].size == 1:
        point = (float(stated[0][0]), float(stated[1][0]))
        caption.append(f"The diamond is the claim, {claim.short}.")
    elif stated is not None:
        lines["claimed"] = stated
        caption.append(
            "The claim allows divergences up to the claimed curve; an estimate above it proves nothing."
        )
        if stated[0] is not curve.x:
            caption.append("The claim is about the orders in the table only.")
    if curve.lower is not None:
        lines["lower bound"] = (curve.x, curve.lower)
    if not all(np.all(np.isfinite(y)) for _, y in lines.values()):
        caption.append("Where a value is infinite the line breaks off; the table has it.")
    title, table = "Rényi curve", tabulated("λ", "ε(λ)", lines)
    if not any(np.isfinite(y).any() for _, y in lines.values()):
        nothing = "The Rényi divergence is infinite at every order: there is nothing to draw."
        return Figure(key, title, nothing, "", None, "", *table)
    alt = "Rényi divergence as a function of its order: " + ", ".join(lines)
    draw = partial(charts.renyi, lines, point=point)
    return figure(key, title, " ".join(caption), alt, draw, *table)


def _stated(claim: Claim, orders: FloatArray) -> charts.Line | None:
    """What a claim says of Rényi divergences: at all of these orders, or else at its own."""
    for at in (orders, np.array(claim.orders, dtype=float)):
        allowed = np.asarray(claim.renyi(at))
        if at.size and np.isfinite(allowed).all():
            return at, allowed
    return None


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
    note = " Shaded: the witness event." if shaded else ""
    if part != "output":
        note += (
            f" Shown is {part}, where • stands for any value. Outputs of another form are not shown, and "
            "the whole output may say more than this part of it."
        )
    columns = [part, "density, first input", "density, second input", "|log p/q|"]
    seen = np.flatnonzero(p + q > 0)  # few draws leave cells without any between them
    seen = seen[_some(seen.size)]
    rows = [
        [place, *(number(float(v)) for v in (p[k], q[k], abs(ell[k])))]
        for place, k in zip(_places(x[seen]), seen, strict=True)
    ]
    return [
        figure(
            f"{key}-densities",
            "Output densities",
            "The distribution of the outputs on the two inputs, estimated from the training draws. "
            f"{2 * _TAIL:.1%} of the outputs are beyond the ends of the axis.{note}",
            "Densities of the outputs on the first and the second input",
            partial(charts.densities, x, p, q, event=shaded, part=part),
            columns,
            rows,
        ),
        figure(
            f"{key}-loss",
            _LOSS,
            "The log-ratio of the two estimated densities: how much an output says about which input was "
            f"used. {_NOT_CERTIFIED} Grey: outputs too rare for an estimate, fewer than {_RARE} draws in "
            f"1/{_CELLS} of the axis." + (f" Shown is {part}." if part != "output" else ""),
            "Estimated absolute privacy loss along the outputs",
            partial(charts.loss_line, x, ell, event=shaded, part=part, rare=_rare(x, p + q, draws)),
            [columns[0], columns[3]],
            [[row[0], row[3]] for row in rows],
        ),
    ]


def _rare(x: FloatArray, density: FloatArray, draws: int) -> list[tuple[float, float]]:
    """Intervals of the axis that hold too few draws; `density` is the sum of the two."""
    if x.size < 2 or not draws:
        return []
    few = density / 2 * draws * (x[-1] - x[0]) / _CELLS < _RARE
    edges = np.flatnonzero(np.diff(np.concatenate([[0], few.astype(int), [0]])))
    ends = np.concatenate([[x[0]], (x[:-1] + x[1:]) / 2, [x[-1]]])
    return list(zip(ends[edges[::2]].tolist(), ends[edges[1::2]].tolist(), strict=True))


def cause(key: str, diagnosis: Sequence[Explanation]) -> list[Figure]:
    """The part of the output that the first explanation with a picture is about, on the two inputs."""
    seen = next((one.picture for one in diagnosis if one.picture is not None), None)
    if seen is None:
        return []
    title = f"Where it shows: {seen.part}"
    about = f"How {seen.part} is distributed on the two inputs, counted in draws."
    columns = [seen.part, "first input", "second input"]
    at = np.arange(seen.x.size) if seen.labels else np.array(_some(seen.x.size))
    sides = ([number(v) for v in side[at]] for side in (seen.p, seen.q))
    rows = [list(row) for row in zip(seen.labels or _places(seen.x[at]), *sides, strict=True)]
    if seen.labels:
        inside = list(seen.inside) or None
        draw = partial(charts.masses, seen.labels, seen.p, seen.q, inside=inside)
        marked = f"{about} Full colour: the event of the explanation."
        return [figure(key, title, marked, about, draw, columns, rows, hover=False)]
    low = -np.inf if seen.low is None else seen.low
    high = np.inf if seen.high is None else seen.high
    marked = f"{about} Shaded: the event of the explanation." if low < high else about
    if seen.needed is not None:
        marked += " The third line is the noise, around the first input, that would keep the claim."
    shaded = [(low, high)] if low < high else []
    draw = partial(
        charts.densities, seen.x, seen.p, seen.q, event=shaded, part=seen.part, needed=seen.needed
    )
    return [figure(key, title, marked, about, draw, columns, rows)]


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


def _discrete_losses(
    key: str, curve: LossCurve, labels: tuple[str, ...], event: Event | None, draws: int
) -> list[Figure]:
    of_feature = curve.part != "output"
    if event is None:
        inside = None
    elif of_feature:
        held = event.holds_feature(curve.x)
        inside = None if held is None else held.tolist()
    else:
        inside = members(event, labels)
    p, q, ell = curve.p, curve.q, curve.y
    shown = charts.likeliest(p, q)
    note = " Full colour: in the witness event; pale: outside it." if inside else ""
    if len(shown) < p.size:
        note += f" Shown: the {len(shown)} most frequent of {p.size} outputs."
    if any("•" in labels[k] for k in shown):
        note += " • stands for any number."
    first, cells = [curve.part if of_feature else "output"], [[label] for label in labels]
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
        title, what = "Values of the feature", f"{curve.part} takes each value"
    shade: dict[str, Any] = {"inside": inside, "part": " · ".join(first)}
    masses = figure(
        f"{key}-masses",
        title,
        f"How often {what} on the two inputs, estimated from the training draws.{note}",
        f"How often {what} on the first and the second input",
        partial(charts.masses, labels, p, q, **shade),
        columns,
        rows,
        hover=False,
    )
    if of_feature:
        return [masses]
    often = (p + q) / 2 * draws
    rare = often < _RARE if draws else np.zeros(p.size, dtype=bool)
    return [
        masses,
        figure(
            f"{key}-loss",
            _LOSS,
            "The log-ratio of the two estimated probabilities of each output: how much it says about "
            f"which input was used. {_NOT_CERTIFIED} Grey: rare outputs, in fewer than {_RARE} draws.",
            "Estimated absolute privacy loss of each output",
            partial(charts.mass_loss, *(labels, p, q, ell), **shade, rare=rare.tolist()),
            [*first, "|log p/q|", "training draws"],
            [[*cells[k], number(float(abs(ell[k]))), f"{often[k]:,.0f}"] for k in shown],
            hover=False,
        ),
    ]


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


def _by_column(event: Event, labels: Sequence[str]) -> tuple[list[str], Table] | None:
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


def event_table(event: Event) -> tuple[str, list[str], Table] | None:
    """All outputs of an event that its words do not list, or all that are not in it; None for others."""
    keys = abridged_keys(event)
    if event.layout is None or not keys:
        return None
    labels = [event.layout.words(key) for key in keys]
    columns, rows = _by_column(event, labels) or (["output"], [[label] for label in labels])
    which = "not in" if event.otherwise else "in"
    return f"The {len(keys)} outputs that are {which} the witness event", columns, rows


def tabulated(
    x_name: str, y_name: str, lines: Mapping[str, charts.Line]
) -> tuple[list[str], Table]:
    """Lines as columns and rows; a cell is blank where a line has no point."""
    shown = [{float(x[k]): float(y[k]) for k in _some(x.size)} for x, y in lines.values()]
    at = sorted({x for line in shown for x in line})
    rows = [[number(x), *(number(line[x]) if x in line else "" for line in shown)] for x in at]
    return [x_name, *(f"{y_name}, {name}" for name in lines)], rows


def _places(x: FloatArray) -> list[str]:
    """Places on an axis, with as many digits as tell them apart."""
    few = [number(float(one)) for one in x]
    return few if len(set(few)) == len(few) else told_apart(x.tolist())


def _some(size: int) -> list[int]:
    """Indices of as many rows as a table behind a chart should have."""
    return [int(k) for k in np.unique(np.linspace(0, size - 1, min(size, _ROWS)).round())]
