"""The figures of a page: a chart, a drawing of it for viewers without scripts, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay import charts
from dpassay._typing import FloatArray
from dpassay.bounds.joint_test import clopper_pearson_box
from dpassay.bounds.ordering import Counts
from dpassay.privacy.claims import ApproximateDP, Claim, PureDP
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.report.embed import drawing
from dpassay.report.words import percent
from dpassay.results.rounding import number
from dpassay.results.verdict import Verdict
from dpassay.theme import unchecked

#: Rows of the table behind a chart.
_ROWS = 25
#: The width of the drawings; the interactive charts take the width there is.
_WIDTH = 620


@dataclass(frozen=True)
class Figure:
    """A chart with all that stands around it."""

    key: str
    title: str
    caption: str
    alt: str
    spec: dict[str, Any] | None  # None: there is nothing finite to draw
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def figure(
    key: str,
    title: str,
    caption: str,
    alt: str,
    draw: Callable[..., Any],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    hover: bool = True,
) -> Figure:
    """`draw` is called once for the interactive chart and once for the drawing."""
    with unchecked():
        chart = draw(hover=True) if hover else draw()
        spec, still = (c.to_dict(validate=False) for c in (chart, draw()))
    still["width"], spec["width"] = _WIDTH, "container"
    table = tuple(tuple(row) for row in rows)
    return Figure(key, title, caption, alt, spec, drawing(still, key, alt), tuple(columns), table)


def tradeoff(key: str, verdict: Verdict | None, curve: TradeoffCurve | None) -> Figure | None:
    """The claim against the measured curve, and the confidence region of the point counted."""
    if verdict is None and curve is None:
        return None
    lines: dict[str, charts.Line] = {}
    said = []
    point: tuple[float, float] | None = None
    box: tuple[float, float, float, float] | None = None
    outline = None
    if curve is not None:
        lines["measured"] = (curve.x, curve.y)
        said.append("The measured curve is an estimate.")
        if curve.band is not None:
            level = percent(curve.band.confidence)
            said.append(
                f"The truth lies below the upper edge of its band at all α at once, with {level} "
                "confidence."
            )
    if verdict is not None:
        grid = np.unique(np.concatenate([np.linspace(0, 1, 401), np.geomspace(1e-4, 0.1, 60)]))
        lines["claimed"] = (grid, np.asarray(verdict.claim.tradeoff(grid)))
    if verdict is not None:
        level = percent(verdict.confidence)
        if verdict.point is not None:
            point, box = (verdict.point.alpha, verdict.point.beta), verdict.point.box
            outline = verdict.point.outline
            kind = "region"
        else:
            point, counts = _placed(verdict)
            found = clopper_pearson_box(counts, 1 - verdict.confidence)
            box = (found.low_alpha, found.high_alpha, found.low_beta, found.high_beta)
            kind = "box"
        if curve is None:
            said.append("The line is the claimed curve.")
        said.append(
            f"The circle is the witness event as counted, with its {level} confidence {kind}. A "
            "region wholly below the claimed curve speaks against the claim; the verdict rests on "
            "its own test, not on the picture."
        )
    said.append("Along the dotted diagonal the two inputs cannot be told apart.")
    band = None if curve is None or curve.band is None else curve.band
    x = np.linspace(0, 1, 21)
    columns = ["α", *(f"β, {name}" for name in lines)]
    rows = [
        [number(float(a)), *(number(float(np.interp(a, *line))) for line in lines.values())]
        for a in x
    ]
    if point is not None and box is not None:
        cells = [f"{number(point[0])} (counted)", f"{number(point[1])} (counted)"]
        rows.append(cells + [""] * (len(columns) - 2))
        low, high = (
            f"α in [{number(box[0])}, {number(box[1])}]",
            f"β in [{number(box[2])}, {number(box[3])}]",
        )
        rows.append([low, high] + [""] * (len(columns) - 2))

    def draw(hover: bool = False) -> Any:
        return charts.tradeoff(
            lines,
            band=None if band is None else (band.x, band.lower, band.upper),
            box=box,
            outline=outline,
            point=point,
            hover=hover,
        )

    title = "The claim against what was measured" if verdict is not None else "Trade-off curve"
    alt = "Type-II error against type-I error: " + " and ".join(f"the {n} curve" for n in lines)
    return figure(key, title, " ".join(said), alt, draw, columns, rows)


def evidence(key: str, verdict: Verdict) -> Figure | None:
    """The log of a monitor's evidence against draws."""
    path = verdict.evidence
    if path is None or not len(path):
        return None
    draws, log = path.T
    limit = -np.log(1 - verdict.confidence)

    def draw(hover: bool = False) -> Any:
        return charts.evidence(draws, log, limit=float(limit), hover=hover)

    said = (
        f"The log of the capital that bets against the claim have won. If the claim were true it would "
        f"ever reach the line at {number(float(limit))} with a probability of at most "
        f"{percent(1 - verdict.confidence)}, however long one looks. Draws come in batches: it stops at "
        "the end of the one in which the line is passed. The witness counts the draws that were bet on "
        "with its cells, those before had a part in choosing them."
    )
    rows = [[f"{draws[k]:,.0f}", f"{log[k]:.3f}"] for k in some(draws.size)]
    alt = "The log of the evidence against draws a side"
    return figure(key, "Evidence", said, alt, draw, ("draws a side", "log evidence"), rows)


def _placed(verdict: Verdict) -> tuple[tuple[float, float], Counts]:
    """The witness as a point (α, β), read the way that tells most against the claim.

    An event and its complement say the same in the plane of one claimed curve. A claim that is not
    symmetric speaks of both orders of the pair, each with the same curve.
    """
    w = verdict.witness
    there = Counts(w.hits_p, w.n_p, w.hits_q, w.n_q)
    orders = (
        [there] if verdict.claim.symmetric else [there, Counts(there.j, there.m, there.i, there.n)]
    )
    readings = [c for o in orders for c in (o, Counts(o.n - o.i, o.n, o.m - o.j, o.m))]
    best = max(readings, key=lambda c: float(verdict.claim.tradeoff(c.j / c.m)) - 1 + c.i / c.n)
    return (best.j / best.m, 1 - best.i / best.n), best


def spectrum(key: str, found: Spectrum, claim: Claim | None) -> Figure:
    """δ(ε), estimated and certified, and what the claim allows."""
    lines: dict[str, charts.Line] = {"estimate": (found.x, found.y)}
    said = ["The smallest δ for which (ε, δ)-DP holds, by ε."]
    point = None
    if claim is not None and not claim.directional:  # the estimate is the worse of both directions
        lines["claimed"] = (found.x, np.asarray(claim.delta_at(found.x)))
        said.append(
            "The claim allows δ up to the claimed curve. An estimate above it is no refutation: the "
            "verdict is, or a certified curve above it."
        )
    if found.lower is not None:
        lines["certified"] = (found.x, found.lower)
        level = "" if found.confidence is None else f" with {percent(found.confidence)} confidence"
        said.append(f"The truth lies above the certified curve{level}.")
    band = None
    if found.upper is not None:
        lines["certified from above"] = (found.x, found.upper)
        said.append(
            "On these inputs it lies below the curve that is certified from above, likewise."
        )
        if found.lower is not None:
            band = found.x, found.lower, found.upper
    if isinstance(claim, (PureDP, ApproximateDP)) and claim.epsilon <= found.x[-1]:
        point = (claim.epsilon, float(claim.delta_at(claim.epsilon)))
        said.append(f"The diamond is the claim, {claim}.")

    def draw(hover: bool = False) -> Any:
        return charts.spectrum(lines, band=band, point=point, hover=hover)

    columns, rows = _tabulated("ε", "δ", lines)
    alt = "δ as a function of ε: " + ", ".join(lines)
    return figure(key, "δ(ε)", " ".join(said), alt, draw, columns, rows)


def renyi(key: str, curve: RenyiCurve, claim: Claim | None) -> Figure:
    """ε(λ), estimated and bounded, and what the claim allows."""
    lines: dict[str, charts.Line] = {"estimate": (curve.x, curve.y)}
    said = ["The Rényi divergence of the two outputs, the worse direction, by order."]
    point = None
    if claim is not None:
        stated = _stated(claim, curve.x)
        if stated is not None and stated[0].size == 1:
            point = (float(stated[0][0]), float(stated[1][0]))
            said.append(f"The diamond is the claim, {claim}.")
        elif stated is not None:
            lines["claimed"] = stated
            said.append(
                "The claim allows divergences up to the claimed curve; an estimate above it is no "
                "refutation."
            )
            if stated[0] is not curve.x:
                said.append("The claim is about the orders in the table, not about those between.")
    if curve.lower is not None:
        lines["lower bound"] = (curve.x, curve.lower)
    if not all(np.all(np.isfinite(y)) for _, y in lines.values()):
        said.append("Where a value is infinite the line breaks off; the table has it.")

    def draw(hover: bool = False) -> Any:
        return charts.renyi(lines, point=point, hover=hover)

    columns, rows = _tabulated("λ", "ε(λ)", lines)
    if not any(np.isfinite(y).any() for _, y in lines.values()):
        said = ["The Rényi divergence is infinite at every order: there is nothing to draw."]
        table = tuple(tuple(row) for row in rows)
        return Figure(key, "Rényi curve", said[0], "", None, "", tuple(columns), table)
    alt = "Rényi divergence as a function of its order: " + ", ".join(lines)
    return figure(key, "Rényi curve", " ".join(said), alt, draw, columns, rows)


def _stated(claim: Claim, orders: FloatArray) -> charts.Line | None:
    """What a claim says of Rényi divergences: at all of these orders, or else at its own."""
    for at in (orders, np.array(claim.orders, dtype=float)):
        allowed = np.asarray(claim.renyi(at))
        if at.size and np.isfinite(allowed).all():
            return at, allowed
    return None


def _tabulated(
    x_name: str, y_name: str, lines: Mapping[str, charts.Line]
) -> tuple[list[str], list[list[str]]]:
    """Lines as a table; a cell is blank where a line has no point."""
    shown = [{float(x[k]): float(y[k]) for k in some(x.size)} for x, y in lines.values()]
    at = sorted({x for line in shown for x in line})
    rows = [[number(x), *(number(line[x]) if x in line else "" for line in shown)] for x in at]
    return [x_name, *(f"{y_name}, {name}" for name in lines)], rows


def some(size: int) -> list[int]:
    """Indices of as many rows as a table behind a chart should have."""
    return [int(k) for k in np.unique(np.linspace(0, size - 1, min(size, _ROWS)).round())]
