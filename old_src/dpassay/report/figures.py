"""The figures of a page: a chart, a drawing of it for viewers without scripts, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dpassay import charts
from dpassay._typing import FloatArray
from dpassay.bounds.joint_test import clopper_pearson_box
from dpassay.bounds.one_run_test import Guessed, lower_bound
from dpassay.bounds.ordering import Counts
from dpassay.chart_parts import ESTIMATED_DELTA, Line
from dpassay.privacy.claims import ApproximateDP, Claim, PureDP
from dpassay.privacy.curves import RenyiCurve, Spectrum, TradeoffCurve
from dpassay.report.embed import drawing
from dpassay.results.estimates import LowerBound
from dpassay.results.verdict import Verdict
from dpassay.results.view import capital, percent
from dpassay.rounding import number, rounded_down, rounded_up
from dpassay.theme import column, unchecked

#: Rows of the table behind a chart.
_ROWS = 25
#: The width of a drawing, and of the first one; the interactive charts take the width there is.
_WIDTH, _WIDE = 400, 620
#: The δ at which the certified ε of canaries is computed.
_DELTAS = np.geomspace(1e-9, 0.3, 25)
#: How bounds are rounded in tables, by the names of their lines: to the safe side.
_ROUNDED = dict.fromkeys(("certified", "measured", "lower bound"), rounded_down) | {
    "certified from above": rounded_up
}

#: The axis of δ is logarithmic where a smaller δ is claimed.
_SMALL_DELTA = 0.01
#: A witness that is rarer than this on both inputs, or its complement, lies in a corner.
_CORNER = 0.005

Box: TypeAlias = tuple[float, float, float, float]
Rows: TypeAlias = list[list[str]]
#: The numbers behind a chart: names of columns, and rows.
Table: TypeAlias = tuple[Sequence[str], Rows]


@dataclass(frozen=True)
class Figure:
    """A chart with its title, its caption and its numbers."""

    key: str
    title: str
    caption: str
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
    table: Table,
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
    return Figure(key, title, caption, spec, drawing(still, key, alt), *table)


def tabulated(x_name: str, y_name: str, lines: Mapping[str, Line], *, most: int = _ROWS) -> Table:
    """At most so many points of each line as columns and rows; blank where a line has no point.

    Bounds are rounded to the safe side.
    """
    shown = [
        {float(x[k]): _ROUNDED.get(name, number)(float(y[k])) for k in some(x.size, most)}
        for name, (x, y) in lines.items()
    ]
    at = sorted({x for line in shown for x in line})
    rows = [[number(x), *(line.get(x, "") for line in shown)] for x in at]
    return [x_name, *(f"{y_name}, {name}" for name in lines)], rows


def some(size: int, most: int = _ROWS) -> list[int]:
    """Indices of as many rows as a table behind a chart should have."""
    return [int(k) for k in np.unique(np.linspace(0, size - 1, min(size, most)).round())]


def tradeoff(key: str, verdict: Verdict | None, curve: TradeoffCurve | None) -> Figure:
    """The claim against the measured curve, and the confidence region of the point counted."""
    lines: dict[str, Line] = {}
    caption, counted = [], []
    marked: dict[str, Any] = {}
    if curve is not None:
        lines["estimate"] = (curve.x, curve.y)
        if curve.band is not None:
            marked["band"] = curve.band.x, curve.band.lower, curve.band.upper
            caption.append(
                "The true curve lies below the upper edge of the band at all α at once, with "
                f"{percent(curve.band.confidence)} confidence."
            )
    if verdict is not None:
        grid = np.unique(np.concatenate([np.linspace(0, 1, 401), np.geomspace(1e-4, 0.1, 60)]))
        lines["claimed"] = (grid, np.asarray(verdict.claim.tradeoff(grid)))
        tested = verdict.point
        point, box = _counted_point(verdict)
        marked |= {
            "point": point,
            "box": box,
            "outline": None if tested is None else tested.outline,
        }
        if curve is None:
            caption.append("The line is the claimed curve.")
        caption.append(
            "The two errors of a test that guesses from one output which input was used. The claim says "
            "that no test is below the claimed curve. The circle is the witness event as counted, with "
            f"its {percent(verdict.confidence)} confidence {'box' if tested is None else 'region'}; the "
            "verdict rests on its own test, not on the picture."
        )
        if curve is not None and box[3] < float(curve(min(box[1], 1.0))):
            caption.append(
                "The witness lies below the estimated curve: the estimates here, made from one "
                "score, miss what it shows. The mechanism is less private than they say."
            )
        often = point[0], 1 - point[1]
        if max(often) < _CORNER or min(often) > 1 - _CORNER:
            kind = "rare" if max(often) < _CORNER else "frequent"
            caption.append(
                f"The witness is a {kind} event: it lies so near a corner that the picture does not show "
                "on which side of the claimed curve it is. The table has its numbers."
            )
        a0, b0 = map(rounded_down, box[::2])
        a1, b1 = map(rounded_up, box[1::2])
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
    title = "Trade-off curve" if verdict is None else "The claim against what was measured"
    alt = "Type-II error against type-I error: " + " and ".join(f"the {n} curve" for n in lines)
    draw = partial(charts.tradeoff, lines, **marked)
    table = ["α", *(f"β, {name}" for name in lines)], rows + counted
    return figure(key, title, " ".join(caption), alt, draw, table, width=_WIDE)


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
    rows = [[f"{draws[k]:,.0f}", f"{log[k]:.3f}"] for k in some(draws.size)]
    alt = "The log of the evidence against draws a side"
    draw = partial(charts.evidence, draws, log, limit=limit)
    return [
        figure(key, "Evidence", caption, alt, draw, (("draws a side", "log of the wealth"), rows))
    ]


def search(key: str, at: FloatArray, bounds: FloatArray, claimed: float) -> list[Figure]:
    """What the pairs of a hunt predicted, over its draws; none if none was drawn on thoroughly."""
    if not at.size:
        return []
    caption = (
        "Each point is a pair of inputs, at the draws of the hunt when it was tried last, with the bound "
        "that they predicted. The line is the best so far. Predictions choose the pair to test, no more."
    )
    rows = [[f"{at[k]:,.0f}", number(float(bounds[k]))] for k in some(at.size)]
    draw = partial(charts.search, at, bounds, claimed=claimed)
    alt = "Predicted bounds of pairs over the draws of the hunt"
    return [figure(key, "The search", caption, alt, draw, (("draws", "predicted bound"), rows))]


def spectrum(key: str, found: Spectrum, claim: Claim | None) -> Figure:
    """δ(ε), estimated and certified, and what the claim allows."""
    lines: dict[str, Line] = {ESTIMATED_DELTA: (found.x, found.y)}
    caption = [
        "The smallest δ for which (ε, δ)-DP holds, by ε. The estimate is mostly too large where the true "
        "δ is 0. Where δ is small but not 0 it may be far too small, as for subsampled noise."
    ]
    point = band = None
    if claim is not None and not claim.directional:  # the estimate is the worse of both directions
        lines["claimed"] = (found.x, np.asarray(claim.delta_at(found.x)))
        caption.append(
            "The claim allows δ up to the claimed curve. Only the verdict, or a certified curve above "
            "the claimed one, proves a violation; the estimate does not."
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
    alt = "δ as a function of ε: " + ", ".join(lines)
    small = None if point is None or not 0 < point[1] < _SMALL_DELTA else point[1] / 10
    draw = partial(charts.spectrum, lines, band=band, point=point, log_from=small)
    return figure(key, "δ(ε)", " ".join(caption), alt, draw, tabulated("ε", "δ", lines))


def renyi(key: str, curve: RenyiCurve, claim: Claim | None, reach: float = math.inf) -> Figure:
    """ε(λ), estimated and bounded, and what the claim allows."""
    lines: dict[str, Line] = {"estimate": (curve.x, curve.y)}
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
        return Figure(key, title, nothing, None, "", *table)
    alt = "Rényi divergence as a function of its order: " + ", ".join(lines)
    drawn = charts.within_reach("estimate", curve, reach)
    drawn |= {name: line for name, line in lines.items() if name != "estimate"}
    draw = partial(charts.renyi, drawn, point=point)
    return figure(key, title, " ".join(caption), alt, draw, table)


def _stated(claim: Claim, orders: FloatArray) -> Line | None:
    """What a claim says of Rényi divergences: at all of these orders, or else at its own."""
    for at in (orders, np.array(claim.orders, dtype=float)):
        allowed = np.asarray(claim.renyi(at))
        if at.size and np.isfinite(allowed).all():
            return at, allowed
    return None


def canary_chart(result: Verdict | LowerBound) -> Any:
    """The figures of a one-run audit, one below the other: scores of the canaries, and ε by δ."""
    return column([draw() for draw, _ in _of_canaries(result)])


def canaries(key: str, result: Verdict | LowerBound) -> list[Figure]:
    """The figures of a page; none if the result is not one of canaries that keeps their scores."""
    found = result.certified
    if found is None or found.scores is None:
        return []
    spread = (
        "The scores of the canaries that were included and of those left out, by bins; what lies beyond "
        "the ends of the axis is in the outermost. Shaded: high scores that were guessed to be included, "
        "and low ones guessed to be left out."
    )
    together, curved = "the whole curve at once", ""
    if isinstance(result, Verdict) and result.claim.point is None:
        spread += " These are the guesses that bound ε; the witness may count others."
        curved = (
            " The claim is a curve and is refuted as a whole. That need not certify more than the "
            "claimed ε at any one δ, so the claimed line can lie above the certified one."
        ) * result.violated
    if any(row[3] for row in found.scores.guessed):
        spread += (
            " The thresholds are those of the three quarters of the canaries that were tested."
        )
        together = "each point of the curve by itself, since the number of guesses was learned"
    (scores, bins), (certified, lines) = _of_canaries(result)
    line = next(iter(lines))
    curve = capital(
        f"{found.guarantee.doubt}the training is not (ε, δ)-DP below the {line} curve, with "
        f"{percent(found.confidence)} confidence; {together}. A claimed ε below the line is "
        f"refuted.{curved}"
    )
    title = "Scores of the canaries"
    table = tabulated("score", "share", bins, most=found.scores.included.size)  # shares add to 1
    by_score = figure(f"{key}-scores", title, spread, title, scores, table)
    title = f"{capital(line)} ε at every δ"
    by_delta = figure(
        f"{key}-certified",
        title,
        curve,
        title,
        certified,
        tabulated("δ", "ε", lines, most=_DELTAS.size + 1),
    )
    return [by_score, by_delta]


def _of_canaries(result: Verdict | LowerBound) -> list[tuple[Any, dict[str, Line]]]:
    """The two charts, and their lines: shares of canaries by score, and ε by δ."""
    found = result.certified
    if found is None or found.scores is None:
        raise ValueError("a bound has a chart if it is one of canaries and keeps their scores")
    scores = found.scores
    middle = (scores.edges[1:] + scores.edges[:-1]) / 2
    sides = {"included": scores.included, "left out": scores.left_out}
    bins = {name: (middle, counts / max(counts.sum(), 1)) for name, counts in sides.items()}
    guessed = [] if scores.high is None else [(scores.high, np.inf)]
    guessed += [] if scores.low is None else [(-np.inf, scores.low)]
    at = np.unique([*_DELTAS, *[found.delta] * bool(found.delta)])
    tests = list(zip((Guessed(*row) for row in scores.guessed), scores.levels, strict=True))
    bounds = [max(lower_bound(ApproximateDP(0.0, d), *test) for test in tests) for d in at.tolist()]
    lines = {"measured" if found.guarantee.doubt else "certified": (at, np.array(bounds))}
    if isinstance(result, Verdict):
        claimed = np.array([result.claim.epsilon_at(d) for d in at.tolist()])
        claimed[at == found.delta] = found.claimed  # an accountant's own answer
        limited = np.isfinite(claimed)
        lines["claimed"] = (at[limited], claimed[limited])
    part = "place among the scores of the run" if scores.places else "score"
    point = (found.delta, found.epsilon) if found.delta and not found.guarantee.doubt else None
    return [
        (partial(charts.canary_scores, bins, guessed=guessed, part=part), bins),
        (partial(charts.certified, lines, point=point), lines),
    ]
