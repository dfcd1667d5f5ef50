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


def test_a_p_value_is_about_draws_and_says_how_small_it_is():
    import dpassay as dp

    strong = dp.audit_counts(700, 1000, 184, 1000, dp.PureDP(0.5))
    said = {name: (value, note) for name, value, note in words.facts(strong)}["p-value"]
    assert said[0] == "p ≤ 2.8 × 10⁻⁴¹"
    assert said[1].startswith("how often draws speak so strongly against a claim that is true")
    assert "given the draws" not in str(words.facts(strong))


def test_a_violation_says_how_somebody_else_checks_it():
    import shlex

    import dpassay as dp
    from dpassay.cli import run

    found = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000, rng=0)
    (fresh, again), (_, counted) = words.checks(found, "verdict.json")
    assert fresh.startswith("On fresh draws")
    assert again == "dpassay replay verdict.json TARGET"
    assert run(shlex.split(counted)[1:]) == 1
    w = found.witness
    assert f"dpassay counts {w.hits_p} {w.n_p} {w.hits_q} {w.n_q} --claim" in counted
    assert words.checks(dp.audit_counts(250, 1000, 184, 1000, "eps=1"), "verdict.json") == []
    curve = dp.TradeoffDP(dp.GaussianDP(0.5).tradeoff)
    found = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), curve, n=4000, rng=0)
    assert [command for _, command in words.checks(found, "v.json")] == [
        "dpassay replay v.json TARGET"
    ]
