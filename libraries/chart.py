"""The gallery's chart: the certified over the claimed value of every audit."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from libraries.cases import Audited, Result


def ratio(result: Result) -> float:
    """Certified over claimed; a claim of 0 is exceeded by any bound above 0."""
    if result.claimed <= 0:
        return math.inf if result.lower_bound > 0 else 0.0
    return result.lower_bound / result.claimed


def strips(audited: Sequence[Audited]) -> str:
    """A dot an audit: the certified value over the claimed, on a logarithmic axis from 1/20 to 20."""
    left, width, step = 130, 560, 18
    height = step * len(audited) + 40

    def x(value: float) -> float:
        part = math.log(min(max(value, 1 / 20), 20.0) * 20) / math.log(400)
        return left + width * part

    shapes = [
        f'<path d="M{x(tick):.0f} 0V{height - 34}" stroke="currentColor" stroke-opacity="{strong}"/>'
        f'<text x="{x(tick):.0f}" y="{height - 20}" text-anchor="middle">{label}</text>'
        for tick, label, strong in (
            (1 / 20, "≤ 0.05", 0.15),
            (0.2, "0.2", 0.15),
            (0.5, "0.5", 0.15),
            (1.0, "claimed", 0.9),
            (2.0, "2", 0.15),
            (5.0, "5", 0.15),
            (20.0, "≥ 20", 0.15),
        )
    ]
    for row, one in enumerate(audited):
        y = step * row + 12
        shapes.append(f'<text x="0" y="{y + 4}">{html.escape(one.library)}</text>')
        for result in one.results:
            colour = "#b3261e" if result.verdict == "violation" else "#1d5fa8"
            name = html.escape(f"{result.name}: {result.lower_bound:.3g} of {result.claimed:.3g}")
            shapes.append(
                f'<circle cx="{x(ratio(result)):.1f}" cy="{y}" r="3.5" fill="{colour}" '
                f'fill-opacity="0.45"><title>{name}</title></circle>'
            )
    return (
        "A dot is an audit, red if the claim was refuted. Right of the line the certified lower bound is "
        "above the claim; how far left of it a sound mechanism lies shows what these draws can certify."
        '\n\n```{raw} html\n<div class="wide"><svg role="img" aria-label="certified over claimed values '
        f'of every audit" width="{left + width + 40}" height="{height}" font-size="11" '
        f'fill="currentColor">{"".join(shapes)}</svg></div>\n```'
    )
