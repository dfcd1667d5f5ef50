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


def test_a_p_value_is_about_draws_and_says_where_it_ends():
    import dpassay as dp

    strong, weak = (dp.audit_counts(k, 1000, 184, 1000, dp.PureDP(0.5)) for k in (700, 340))
    said = {name: (value, note) for name, value, note in words.facts(strong)}["p-value"]
    assert said[0] == "p ≤ 5 × 10⁻⁵"
    assert said[1].startswith("how often draws speak so strongly against a claim that is true")
    assert said[1].endswith("less is not told apart at this confidence")
    assert "given the draws" not in str(words.facts(strong))
    said = {name: note for name, _, note in words.facts(weak)}["p-value"]
    assert "told apart" not in said
