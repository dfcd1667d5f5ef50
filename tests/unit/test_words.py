"""The words of a report."""

from __future__ import annotations

from dpassay.report import words


def test_small_probabilities_are_written_out():
    assert [words.small(p) for p in (0.0, 1.0, 0.034, 5e-5, 1.25e-12)] == [
        "0",
        "1",
        "0.034",
        "5 × 10⁻⁵",
        "1.2 × 10⁻¹²",
    ]
