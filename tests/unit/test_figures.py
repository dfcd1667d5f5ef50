"""The drawings of a report, number by number."""

from __future__ import annotations

import numpy as np
import pytest

import dpassay as dp
from dpassay.chart_parts import ESTIMATED_DELTA
from dpassay.report import figures, output_figures
from dpassay.report.output_figures import _places, losses


def test_a_witness_is_placed_below_the_diagonal():
    verdict = dp.audit_counts(184, 1000, 450, 1000, dp.PureDP(0.5))
    (alpha, beta), (low_alpha, high_alpha, low_beta, high_beta) = figures._counted_point(verdict)
    assert (alpha, beta) == pytest.approx((0.55, 0.184))
    assert low_alpha < 0.55 < high_alpha
    assert low_beta < 0.184 < high_beta


@pytest.mark.parametrize(
    "claim", [dp.PureDP(0.8), dp.ApproximateDP(0.8, 0.01), dp.GaussianDP(0.9)], ids=str
)
def test_the_claimed_delta_is_the_conjugate_of_the_claimed_curve(claim):
    epsilon = np.linspace(0, 2, 9)
    alpha = np.linspace(0, 1, 20_001)
    by_search = np.max(
        1 - claim.tradeoff(alpha) - np.exp(epsilon)[:, None] * alpha, axis=1, initial=0.0
    )
    drawn = figures.spectrum("k", dp.Spectrum(epsilon, np.zeros(9)), claim)
    assert tuple(drawn.columns) == ("ε", f"δ, {ESTIMATED_DELTA}", "δ, claimed")
    assert [float(row[2]) for row in drawn.rows] == pytest.approx(by_search, abs=1e-3)


def test_a_claim_about_one_order_of_the_pair_has_no_delta_for_both():
    claim = dp.TradeoffDP([(0, 1), (0.4, 0.2), (1, 0)], ordered=True)
    drawn = figures.spectrum("k", dp.Spectrum(np.linspace(0, 1, 5), np.zeros(5)), claim)
    assert tuple(drawn.columns) == ("ε", f"δ, {ESTIMATED_DELTA}")


def test_bounds_behind_a_figure_are_rounded_to_the_safe_side():
    curve = dp.Spectrum([0.0, 1.0], [0.5, 0.3], lower=[0.123456, 0.1], upper=[0.654321, 0.4])
    drawn = figures.spectrum("k", curve, None)
    assert list(drawn.rows[0][2:]) == ["0.1234", "0.6544"]
    verdict = dp.audit_counts(184, 1000, 450, 1000, "eps=0.5")
    (*_, (alpha, beta, *_)) = figures.tradeoff("k", verdict, None).rows
    _, (a0, a1, b0, b1) = figures._counted_point(verdict)
    for text, low, high in ((alpha, a0, a1), (beta, b0, b1)):
        shown = [float(end) for end in text.split("[")[1][:-1].split(", ")]
        assert shown[0] <= low < high <= shown[1]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((3, 1000, 1, 1000), "a rare event"),
        ((999, 1000, 996, 1000), "a frequent event"),
        ((500, 1000, 1, 1000), ""),
        ((999, 1000, 1, 1000), ""),
    ],
)
def test_only_an_event_that_is_rare_on_both_inputs_is_said_to_be(counts, said):
    caption = figures.tradeoff("k", dp.audit_counts(*counts, "eps=1"), None).caption
    assert ("near a corner" in caption) == bool(said)
    assert said in caption


ORDERS = np.array([1.5, 2.0, 4.0, 8.0])


@pytest.mark.parametrize(
    ("claim", "claimed"),
    [
        (dp.ZeroConcentratedDP(0.1), ["0.15", "0.2", "0.4", "0.8"]),
        (dp.GaussianDP(1.0), ["0.75", "1", "2", "4"]),
        (dp.PureDP(1.0), [f"{x:.4g}" for x in dp.PureDP(1.0).renyi(ORDERS)]),
        (dp.RenyiCurveDP([2, 4], [0.1, 0.3]), ["", "0.1", "0.3", ""]),
        (dp.RenyiDP(2, 0.1), None),  # a diamond
        (dp.ApproximateDP(1.0, 1e-3), None),
        (dp.ZeroConcentratedDP(0.1, 1e-6), None),
    ],
    ids=str,
)
def test_what_a_claim_says_of_renyi_divergences_is_drawn(claim, claimed):
    drawn = figures.renyi("k", dp.RenyiCurve(ORDERS, [0.1, 0.2, 0.3, 0.4]), claim)
    assert [row[0] for row in drawn.rows] == ["1.5", "2", "4", "8"]
    if claimed is None:
        assert tuple(drawn.columns) == ("λ", "ε(λ), estimate")
    else:
        assert tuple(drawn.columns) == ("λ", "ε(λ), estimate", "ε(λ), claimed")
        assert [row[2] for row in drawn.rows] == claimed
    assert ("The diamond is the claim" in drawn.caption) == isinstance(claim, dp.RenyiDP)
    assert ("orders in the table only" in drawn.caption) == isinstance(claim, dp.RenyiCurveDP)


def test_the_evidence_of_a_monitor_is_drawn_with_its_limit():
    verdict = dp.monitor(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps=0.3", max_n=2000, rng=0)
    (drawn,) = figures.evidence("k", verdict)
    assert tuple(drawn.columns) == ("draws a side", "log of the wealth")
    assert float(drawn.rows[-1][1]) == pytest.approx(verdict.evidence[-1, 1], abs=1e-3)
    assert "5%" in drawn.caption
    assert verdict.chart().to_dict()["layer"]
    assert figures.evidence("k", dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))) == []


def test_the_table_of_densities_shows_where_there_are_draws():
    x = np.linspace(0, 1, 1001)
    p = np.where(np.arange(1001) % 8 == 3, 0.5, 0.0)
    drawn, _ = losses("k", dp.LossCurve(x, 0 * x, p, p), None)
    assert len(drawn.rows) == 25
    assert all(row[1] == row[2] == "0.5" for row in drawn.rows)


def test_evidence_past_the_line_is_explained():
    verdict = dp.monitor(dp.zoo.Laplace(0.4), (0.0, 1.0), "eps=1", max_n=2000, rng=0)
    assert verdict.violated
    passed = verdict.evidence[verdict.evidence[:, 1] >= np.log(20), 0].min()
    assert verdict.witness.n_p < passed <= verdict.draws
    (drawn,) = figures.evidence("k", verdict)
    assert "computed after each batch" in drawn.caption


def test_places_on_an_axis_are_told_apart():
    assert _places(np.array([1.25, 2.5])) == ["1.25", "2.5"]
    assert _places(np.array([1496.1, 1496.4])) == ["1496.1", "1496.4"]


def test_the_witness_is_shaded_where_it_shows():
    verdict = dp.audit(dp.zoo.Laplace(0.6), (0.0, 1.0), "eps=1", n=12_000, loss="values", rng=0)
    (drawn,) = output_figures.cause("k", verdict.diagnosis, verdict.witness.event)
    assert drawn.caption.count("Shaded: the witness event.") == 1
    ((low, high),) = output_figures.intervals(verdict.witness.event)
    picture = next(one.picture for one in verdict.diagnosis if one.picture is not None)
    assert (picture.low, picture.high) != (low, high)
