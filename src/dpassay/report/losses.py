"""The figures of the outputs: their two distributions, the privacy loss, the witness event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpassay import charts
from dpassay.outputs.events import Event
from dpassay.privacy.finite_pairs import LossCurve
from dpassay.report.figures import Figure, figure, some
from dpassay.results.rounding import number

#: The share of the outputs beyond either end of a picture of densities.
_TAIL = 5e-4


def losses(key: str, curve: LossCurve, event: Event | None) -> list[Figure]:
    """The two output distributions and the privacy loss, the witness event shaded."""
    if curve.labels is not None:
        return _of_masses(key, curve, curve.labels, event)
    part = curve.part
    shaded = [] if event is None or part != "output" else intervals(event)
    curve = _busy(curve, shaded)
    note = f" Shaded: the witness event, {event}." if shaded else ""
    if part != "output":
        note += (
            f" Shown is {part}, • standing for any value: outputs of another form are not in the "
            "picture, and all of an output may tell more than this part of it."
        )
    columns = [part, "density, first input", "density, second input", "|log p/q|"]
    seen = np.flatnonzero(curve.p + curve.q > 0)  # few draws leave cells without any between them
    rows = [
        [number(float(v)) for v in (curve.x[k], curve.p[k], curve.q[k], abs(curve.y[k]))]
        for k in seen[some(seen.size)]
    ]
    x, p, q, ell = curve.x, curve.p, curve.q, curve.y

    def above(hover: bool = False) -> Any:
        return charts.densities(x, p, q, event=shaded, part=part, hover=hover)

    def below(hover: bool = False) -> Any:
        return charts.loss_line(x, ell, event=shaded, part=part, hover=hover)

    return [
        figure(
            f"{key}-densities",
            "Output densities",
            f"How the outputs fall on the two inputs, estimated; all but {2 * _TAIL:.1%} of them are "
            f"in the picture.{note}",
            "Densities of the outputs on the first and the second input",
            above,
            columns,
            rows,
        ),
        figure(
            f"{key}-loss",
            "Privacy loss",
            "How strongly an output speaks for one of the inputs; its supremum is ε. Where "
            "outputs are rare the estimate is mostly noise."
            + (f" Shown is {part}." if part != "output" else ""),
            "Absolute privacy loss along the outputs",
            below,
            [columns[0], columns[3]],
            [[row[0], row[3]] for row in rows],
        ),
    ]


def _busy(curve: LossCurve, shaded: Sequence[tuple[float, float]]) -> LossCurve:
    """The curve where nearly all the outputs are, and where the event begins and ends."""
    mass = np.cumsum((curve.p + curve.q) * np.gradient(curve.x)) if curve.x.size > 2 else [0.0]
    if not mass[-1] > 0:
        return curve
    first, last = np.searchsorted(mass, np.array([_TAIL, 1 - _TAIL]) * mass[-1])
    edges = [e for pair in shaded for e in pair if curve.x[0] <= e <= curve.x[-1]]
    at = np.searchsorted(curve.x, [curve.x[first], curve.x[last], *edges])
    keep = slice(max(int(at.min()) - 1, 0), int(at.max()) + 2)
    return LossCurve(curve.x[keep], curve.y[keep], curve.p[keep], curve.q[keep], part=curve.part)


def _of_masses(
    key: str, curve: LossCurve, labels: tuple[str, ...], event: Event | None
) -> list[Figure]:
    inside = None if event is None else members(event, labels)
    p, q, ell = curve.p, curve.q, curve.y
    shown = charts.likeliest(p, q)
    note = f" Full colour: the witness event, {event}; pale: outside it." if inside else ""
    if len(shown) < p.size:
        note += f" The {len(shown)} likeliest of {p.size} outputs are shown."
    if any("•" in labels[k] for k in shown):
        note += " • stands for any number."
    columns = ["output", "probability, first input", "probability, second input", "|log p/q|"]
    rows = [[labels[k], *(number(float(v)) for v in (p[k], q[k], abs(ell[k])))] for k in shown]
    if inside is not None:
        columns.append("in the witness event")
        rows = [[*row, "yes" if inside[k] else "no"] for row, k in zip(rows, shown, strict=True)]
    return [
        figure(
            f"{key}-masses",
            "Output probabilities",
            f"How often each output comes on the two inputs, estimated.{note}",
            "Probabilities of the outputs on the first and the second input",
            lambda: charts.masses(labels, p, q, inside=inside),
            columns,
            rows,
            hover=False,
        ),
        figure(
            f"{key}-loss",
            "Privacy loss",
            "How strongly an output speaks for one of the inputs; the largest is ε.",
            "Absolute privacy loss of each output",
            lambda: charts.mass_loss(labels, p, q, ell, inside=inside),
            [columns[0], columns[3]],
            [[row[0], row[3]] for row in rows],
            hover=False,
        ),
    ]


def intervals(event: Event) -> list[tuple[float, float]]:
    """The intervals of an event on outputs that are one number."""
    found = []
    for key, test in event.partial:
        alone = event.layout is None or len(event.layout.free(key)) == 1
        if alone:
            found += list(zip(test.lows.tolist(), test.highs.tolist(), strict=True))
    if event.layout is not None:
        whole = [k for k in event.whole if len(event.layout.free(k)) == 1]
        found += [(-np.inf, np.inf)] * bool(whole)
    return found


def members(event: Event, labels: Sequence[str]) -> list[bool] | None:
    """Which of the outputs named are in an event; None if it cannot be told."""
    if event.layout is None or event.live:
        return None
    whole = {event.layout.words(key) for key in event.whole}
    return [label in whole or (event.otherwise and label == "any other output") for label in labels]
