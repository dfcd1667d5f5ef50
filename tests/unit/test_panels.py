"""What the terminal shows of a verdict."""

import dpassay as dp
from dpassay.panels import panel


def test_a_blind_verdict_has_a_border_of_its_own():
    hits = {"red": (450, 184), "green": (250, 184), "yellow": (0, 0)}
    for colour, (p, q) in hits.items():
        verdict = dp.audit_counts(p, 1000, q, 1000, dp.PureDP(0.5))
        assert panel(verdict).border_style == colour
