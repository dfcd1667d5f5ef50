"""What is said of a verdict."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import pytest

import dpassay as dp
from dpassay import report
from dpassay.cli import run
from dpassay.outputs.event_code import expression
from dpassay.privacy.provenance import About, Origin
from dpassay.report.page import overview
from dpassay.results.view import ResultView, capital, small
from dpassay.tables import Status


def test_small_probabilities_are_written_out():
    assert [small(p) for p in (0.0, 1.0, 0.034, 5e-5, 1.25e-12)] == [
        "0",
        "1",
        "0.034",
        "5 × 10⁻⁵",
        "1.3 × 10⁻¹²",
    ]


def test_a_p_value_is_about_draws_and_says_how_small_it_is():
    strong = dp.audit_counts(700, 1000, 184, 1000, dp.PureDP(0.5))
    said = {name: (value, note) for name, value, note in strong.view().facts}["p-value"]
    assert said[0] == "p ≤ 2.8 × 10⁻⁴¹"
    assert said[1] == "largest probability of evidence this strong if the claim were true"
    assert "given the draws" not in str(strong.view().facts)


def test_no_smallest_detectable_value_where_more_draws_do_not_help():
    def constant(x, size, rng):
        return np.zeros(size)

    pair = (0.0, 1.0)
    found = dp.audit(constant, pair, "eps=1", n=500, rng=0)
    few = dp.audit(dp.zoo.Laplace(1.0), pair, "eps=1", n=60, rng=0)
    shown = [{name: value for name, value, _ in one.view().facts} for one in (found, few)]
    assert found.blind_cause == "constant output"
    assert shown[0]["Smallest detectable"] == "not known"
    assert few.blind_cause == "few draws"
    assert shown[1]["Smallest detectable"].startswith("ε = ")


def test_a_violation_says_how_somebody_else_checks_it():
    found = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000, rng=0)
    (fresh, again), (_, counted) = found.view().checks
    assert fresh.startswith("On fresh draws")
    assert again == "dpassay replay verdict.json TARGET"
    assert run(shlex.split(counted)[1:]) == 1
    w = found.witness
    assert f"dpassay counts {w.hits_p} {w.n_p} {w.hits_q} {w.n_q} --claim" in counted
    assert dp.audit_counts(250, 1000, 184, 1000, "eps=1").view().checks == []
    curve = dp.TradeoffDP(dp.GaussianDP(0.5).tradeoff)
    found = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), curve, n=4000, rng=0)
    assert [command for _, command in found.view("v.json").checks] == [
        "dpassay replay v.json TARGET"
    ]


def _again(command, capsys):
    """The verdict that a printed command gives."""
    run([*shlex.split(command)[1:], "--json", "-"])
    return dp.Verdict.from_json(capsys.readouterr().out)


def test_the_counts_of_one_event_among_several_give_the_bound_of_the_report(capsys):
    rng = np.random.default_rng(0)
    p, q = (rng.poisson(mean, 6000).astype(str) for mean in (10, 13))  # no line through text
    for claim in ("eps=0.2", "eps=0.2, delta=1e-5"):
        found = dp.audit(dp.from_samples(p, q), claim=claim)
        assert found.violated
        assert len(found.budget) > 1
        assert 0 < found.witness.level < 0.04
        said, command = found.view("v.json").checks[-1]
        again = _again(command, capsys)
        assert again.lower_bound == pytest.approx(found.lower_bound, rel=1e-6), claim
        assert "of this event, of 0.05 in all" in said
        bold = dp.audit_counts(*map(int, command.split()[2:6]), claim, likelier="second")
        assert bold.lower_bound > found.lower_bound  # as if nothing had been searched for


def test_counts_and_replays_give_their_own_bound_again(capsys):
    counted = dp.audit_counts(450, 1000, 184, 1000, "eps=0.5")  # both ways are paid for
    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000, rng=0)
    replayed = dp.replay(verdict, dp.zoo.Laplace(0.5), n=4000, rng=1)
    for found in (counted, replayed):
        _, command = found.view("v.json").checks[-1]
        assert _again(command, capsys).lower_bound == pytest.approx(found.lower_bound, rel=1e-6)


def test_no_counts_stand_for_bets_or_guesses():
    watched = dp.monitor(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=0.5", max_n=4000, rng=0)
    rng = np.random.default_rng(1)
    coins = rng.random(1000) < 0.5
    guessed = dp.one_run(
        3 * coins + rng.normal(size=1000), coins, claim="eps=1", guesses=100, rng=0
    )
    for found in (watched, guessed):
        assert found.violated
        assert found.witness.level is None
        assert "dpassay counts" not in str(found.view("v.json").checks)


def test_a_report_of_one_run_speaks_of_canaries_and_coins():
    rng = np.random.default_rng(1)
    coins = rng.random(1000) < 0.5
    found = dp.one_run(3 * coins + rng.normal(size=1000), coins, claim="eps=1", guesses=100, rng=0)
    page = report.render([found])
    assert "fair coin" in page
    assert "provided they are independent" not in page
    assert "a side" not in str(found.view().facts)
    assert "canaries" in str(found.view().facts)
    assert "1,000 a side" not in page
    drawn = dp.audit_counts(450, 1000, 184, 1000, "eps=0.5")
    assert "provided that the event was fixed before the runs were seen" in report.render([drawn])
    for one in (found, dp.one_run(coins + rng.normal(size=1000), coins, guesses=100)):
        assert str(one).count("assumes: a fair coin of its own") == 1
        assert dict(one.view().rows)["assumes"] in str(one)
    assert "assumes: the event was fixed before" in str(drawn)


def test_results_on_files_say_what_is_assumed_of_them_once(tmp_path):
    rng = np.random.default_rng(1)
    paths = [tmp_path / name for name in ("p.npy", "q.npy")]
    for path in paths:
        np.save(path, rng.normal(size=1000))
    audited = dp.audit(dp.from_samples(*paths), claim="eps=1")
    arrays = dp.audit(dp.from_samples(*rng.normal(size=(2, 1000))), claim="eps=1")
    for found in (audited, arrays, dp.bound(dp.from_samples(*paths), of="eps")):
        assert dict(found.view().rows)["assumes"].startswith(
            "every row is the output of a run of its"
        )
        page = report.render([found])
        assert page.count("every row is the output of a run of its own") == 1
        assert "provided they are independent" not in page


def test_rows_of_the_budget_that_are_alike_are_one():
    spent = [("an event", 0.0125)] * 3 + [("the bound on δ", 0.0125)]
    view = ResultView(
        status=Status.CLEAR,
        headline="",
        summary=(),
        about=About(method="m", guarantee="exact"),
        budget=spent,
        file="v.json",
    )
    assert view.spent == [("an event", "3 × 0.0125"), ("the bound on δ", "0.0125")]


def test_what_is_refuted_is_more_than_what_is_claimed():
    found = dp.audit_counts(600, 1000, 184, 1000, "eps=1, delta=1e-5")
    assert found.violated
    same = replace(found, second=replace(found.second, lower=1e-5))
    assert "δ > 1e-05 at ε = 1, claimed 1e-05" in str(same)
    assert "δ > 1e-05 at ε = 1, claimed 1e-05" in same.view().sentence
    more = replace(found, second=replace(found.second, lower=2e-5))
    assert "δ ≥ 2e-05 at ε = 1, claimed 1e-05" in str(more)


def test_one_cell_is_one():
    origin = Origin(
        file="p.csv", bytes=9, sha256="0" * 64, rows=3, columns=("x",), missing=1, modified="now"
    )
    assert "1 cell without a value" in str(origin)
    assert "2 cells without" in str(replace(origin, missing=2))


def test_several_verdicts_print_as_a_table_and_make_one_page(tmp_path):
    found = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), ["eps=1", "eps=3"], n=4000, rng=0)
    head, *rows = str(found).splitlines()
    assert head.split() == ["claim", "result", "certified", "p-value", "witness"]
    assert [row.split()[:2] for row in rows] == [["1-DP", "violation"], ["3-DP", "none"]]
    assert found._repr_html_().count("<tr>") == 3
    found.report(tmp_path / "both.html")
    assert "1 of 2 claims is refuted" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_a_verdict_writes_its_page_and_draws_its_witness(tmp_path):
    verdict = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=4000, rng=0)
    verdict.report(tmp_path / "one.html", command="mine")
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert "In plain words" in page
    assert "A mechanism that keeps its claim is called a violation in at most 5% of audits." in page
    drawn = str(verdict.chart().to_dict())
    assert "'witness'" in drawn
    i, n, j, m = verdict.counted
    assert {i, n - i} & {verdict.witness.hits_p}
    assert j / m < i / n


def test_a_sentence_that_begins_with_a_symbol_keeps_it():
    assert capital("ε ≥ 1") == "ε ≥ 1"
    assert capital("certified") == "Certified"


def test_a_bound_that_is_the_refuted_claim_is_strict():
    verdict = dp.audit_counts(450, 1000, 184, 1000, dp.PureDP(0.5))
    same = replace(verdict, lower_bound=0.5)
    assert same.bound == "ε > 0.5"
    assert "ε is more than 0.5" in same.view().sentence
    assert replace(same, violated=False).bound == "ε ≥ 0.5"
    assert replace(verdict, lower_bound=0.50001).bound == "ε > 0.5"
    assert replace(verdict, lower_bound=0.5015).bound == "ε ≥ 0.5015"


def test_several_verdicts_are_written_and_read(seed):
    found = dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), ["eps=0.5", "eps=2"], n=1000, rng=seed)
    again = type(found).from_json(found.to_json())
    assert str(again) == str(found)
    assert [one.lower_bound for one in again] == [one.lower_bound for one in found]


def test_verdicts_that_share_the_error_probability_hold_together():
    options = {"n": 8000, "rng": 0, "loss": "values"}
    found = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), ["eps=1", "eps=4"], **options)
    assert "1 of 2 claims is refuted, together at 95% confidence." in overview(found)[2]


def test_counts_in_all_rows():
    rng = np.random.default_rng(0)
    p, q = np.round(rng.laplace(size=(2, 4000)) * 0.5 + [[0], [1]], 2)
    witness = dp.audit(dp.from_samples(p, q), claim="eps=1", loss="values", rng=0).witness
    i, n, j, m = witness.in_all_rows
    assert (n, m) == (4000, 4000)
    for x, hits in ((p, i), (q, j)):
        assert hits == sum(eval(expression(witness.event), {"output": one}) for one in x.tolist())
    assert witness.rows()[2][1].startswith(f"in all rows: {i:,} of 4,000 and {j:,} of 4,000")
    live = dp.audit(dp.zoo.Laplace(0.5), (0.0, 1.0), "eps=1", n=2000, rng=0).witness
    assert live.in_all_rows is None


def test_a_long_event_is_shortened_where_it_is_an_example():
    found = dp.audit_counts(50, 100, 49, 100, "eps=1")
    long = replace(found, detectable_on=" or ".join(f"{k} ≤ output < {k}.5" for k in range(9)))
    assert long.alike.startswith('an event like "0 ≤ output < 0.5 or 1 ≤ output < 1.5 or ')
    assert len(long.alike) < 100
    assert long.alike.endswith(' …"')
    terms = " + ".join(f"0.116285{k}·(column {k} − 1419)" for k in range(4))
    assert replace(found, detectable_on=f"-0.93 + {terms} ≥ 0.2").alike == "an event of this score"
