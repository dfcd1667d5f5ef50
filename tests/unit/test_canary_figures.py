"""What a one-run audit draws: scores of the canaries, and the certified ε against the claimed one."""

import numpy as np
import pytest

import dpassay as dp
from dpassay.bounds import one_run_test as bounds
from dpassay.bounds.one_run_test import Guessed
from dpassay.report import figures
from dpassay.rounding import number, rounded_down


def scored(m=1000, seed=0):
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return 2 * included + rng.normal(size=m), included


def test_every_canary_is_in_a_bin_and_thresholds_are_those_of_the_guesses():
    scores, included = scored()
    found = dp.one_run(scores, included, claim="eps=1", guesses=(100, 50)).certified.scores
    assert found.included.sum() == included.sum()
    assert found.left_out.sum() == (~included).sum()
    assert (scores >= found.high).sum() == 100
    assert (scores <= found.low).sum() == 50
    one_sided = dp.one_run(scores, included, guesses=(100, 0)).certified.scores
    assert one_sided.low is None
    learned = dp.one_run(scores, included, claim="eps=1", rng=0)
    _, guesses, right, least, most = learned.certified.scores.guessed[0]
    assert f"{right} of {guesses} guesses are right" in str(learned)
    assert 0 < least < most == 750


def test_the_thresholds_drawn_are_those_of_the_test_that_shows_most():
    scores, included = scored()
    found = dp.one_run(scores, included, guesses=[1000, 150])
    assert "of 150 guesses" in str(found.witness)
    assert (scores >= found.certified.scores.high).sum() == 75


@pytest.mark.parametrize("odd", ["infinite", "two runs"])
def test_scores_that_have_no_common_axis_are_drawn_by_place(odd):
    scores, included = scored()
    given = scores, included
    if odd == "infinite":
        scores[0] = np.inf
    else:
        more = scored(500, 1)
        given = [1000 * scores, more[0]], [included, more[1]]
    found = dp.one_run(*given, guesses=100).certified.scores
    assert found.places
    assert 0 <= found.edges[0] < found.edges[-1] <= 1
    assert found.included.sum() + found.left_out.sum() == (1000 if odd == "infinite" else 1500)


def test_equal_scores_are_drawn():
    _, included = scored(100)
    dp.one_run(np.zeros(100), included, guesses=20).chart().to_dict()


def test_the_certified_curve_goes_through_the_certified_point():
    scores, included = scored()
    verdict = dp.one_run(scores, included, claim="mu=1", delta=1e-4, guesses=200)
    drawn = figures._of_canaries(verdict)[1][1]
    at, certified = drawn["certified"]
    assert certified[at == 1e-4] == pytest.approx(verdict.certified.epsilon)
    assert np.all(np.diff(certified) <= 1e-6)
    guessed = Guessed(*verdict.certified.scores.guessed[0])
    wanted = bounds.lower_bound(dp.ApproximateDP(0.0, float(at[0])), guessed, 0.05)
    assert certified[0] == pytest.approx(wanted)
    claimed = drawn["claimed"][1]
    assert claimed[at == 1e-4] == pytest.approx(dp.GaussianDP(1.0).epsilon_at(1e-4))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"claim": "mu=1"}, "the whole curve at once"),
        ({"claim": "eps=4, delta=1e-5"}, "by itself"),
        ({"delta": 1e-5, "guesses": 100}, "the whole curve at once"),
    ],
    ids=str,
)
def test_pages_show_scores_and_curve_and_say_what_holds(options, said, tmp_path):
    scores, included = scored()
    found = dp.one_run(scores, included, groups=np.arange(1000) % 2, rng=0, **options)
    spread, curve = figures.canaries("k", found)
    assert said in curve.caption
    assert sum(float(cell) for row in spread.rows for cell in row[1:]) <= 2.001
    assert spread.columns == ["score", "share, included", "share, left out"]
    assert len(curve.columns) == (3 if "claim" in options else 2)
    found.report(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "Scores of the canaries" in page
    assert "group 1: ε ≥" in page
    assert "confidence box" not in page  # canaries of a run are not independent
    found.chart().to_dict()
    again = type(found).from_json(found.to_json())
    assert again == found


def test_the_table_has_the_numbers_of_the_result():
    class Stated:  # the curve of the points it is asked for says a little more than its answers
        def get_epsilon(self, delta):
            return dp.GaussianDP(0.5).epsilon_at(delta)

    for claim in (Stated(), "eps=1, delta=1e-5"):
        found = dp.one_run(*scored(), claim=claim, rng=0)
        table = figures.canaries("a", found)[1].rows
        wanted = [rounded_down(found.certified.epsilon), number(found.certified.claimed)]
        assert wanted in [row[1:] for row in table if row[0] == "1e-05"]
        assert "∞" not in str(table)


def test_bounds_without_canaries_have_no_chart():
    found = dp.bound(dp.zoo.Laplace(1.0), (0.0, 1.0), "eps", n=200, rng=0)
    with pytest.raises(ValueError, match="no curve"):
        found.chart()


def test_the_table_of_scores_lists_every_bin():
    scores, included = scored()
    found = dp.one_run(scores, included, claim="eps=1", guesses=100)
    table = figures.canaries("a", found)[0].rows
    assert len(table) == found.certified.scores.included.size > 25
    assert np.array(table, dtype=float)[:, 1:].sum(axis=0) == pytest.approx(1, abs=0.01)
