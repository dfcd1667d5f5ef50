"""The figures of a one-run audit: scores of the canaries, and the certified ε against the claimed one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dpassay import charts
from dpassay.bounds.one_run_test import Guessed, lower_bound
from dpassay.privacy.claims import ApproximateDP
from dpassay.report.figures import Figure, figure, tabulated
from dpassay.results.estimates import LowerBound
from dpassay.results.verdict import Verdict
from dpassay.results.view import capital, percent
from dpassay.theme import column

#: The δ at which the certified ε is computed.
_DELTAS = np.geomspace(1e-9, 0.3, 25)


def chart(result: Verdict | LowerBound) -> Any:
    """Both figures, one below the other."""
    return column([draw() for draw, _ in _drawn(result)])


def figures(key: str, result: Verdict | LowerBound) -> list[Figure]:
    """The figures of a page; none if the result is not one of canaries that keeps their scores."""
    found = result.certified
    if found is None or found.scores is None:
        return []
    spread = (
        "The scores of the canaries that were included and of those left out, by bins; what lies beyond "
        "the ends of the axis is in the outermost. Shaded: high scores that were guessed to be included, "
        "and low ones guessed to be left out."
    )
    together = "the whole curve at once"
    if any(row[3] for row in found.scores.guessed):
        spread += (
            " The thresholds are those of the three quarters of the canaries that were tested."
        )
        together = "each point of the curve by itself, since the number of guesses was learned"
    (scores, bins), (certified, lines) = _drawn(result)
    line = next(iter(lines))
    curve = capital(
        f"{found.guarantee.doubt}the training is not (ε, δ)-DP below the {line} curve, with "
        f"{percent(found.confidence)} confidence; {together}. A claim is refuted where it lies below it."
    )
    names = ("Scores of the canaries", f"{capital(line)} ε at every δ")
    return [
        figure(
            f"{key}-scores", names[0], spread, names[0], scores, *tabulated("score", "share", bins)
        ),
        figure(
            f"{key}-certified", names[1], curve, names[1], certified, *tabulated("δ", "ε", lines)
        ),
    ]


def _drawn(result: Verdict | LowerBound) -> list[tuple[Any, dict[str, charts.Line]]]:
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
        lines["claimed"] = (at, np.array([result.claim.epsilon_at(d) for d in at.tolist()]))
    part = "place among the scores of the run" if scores.places else "score"
    point = (found.delta, found.epsilon) if found.delta and not found.guarantee.doubt else None
    return [
        (partial(charts.canary_scores, bins, guessed=guessed, part=part), bins),
        (partial(charts.certified, lines, point=point), lines),
    ]
