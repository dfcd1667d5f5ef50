"""Whether claims hold on the pairs given."""

import math
import re

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.auditing.verifications import excess
from dpassay.errors import InvalidInput
from dpassay.panels import panel
from dpassay.rounding import rounded_up
from dpassay.testing import NotShown, assert_holds

zoo = dp.zoo
NOISE = zoo.DiscreteLaplace(1.0)


def test_a_claim_with_room_is_confirmed_and_comes_back_from_json(seed):
    found = dp.verify(NOISE, (0, 1), "eps=1.2, delta=0.01", n=20_000, rng=seed)
    assert found.confirmed
    assert found.statement == "(1.2, 0.01)-DP holds on this pair"
    assert "private" not in str(found)
    assert dp.Verification.from_json(found.to_json()) == found
    assert panel(found).border_style == "green"


def test_a_false_claim_is_not(seed):
    found = dp.verify(NOISE, (0, 1), "eps=0.5, delta=0.1", n=20_000, rng=seed)
    assert not found.confirmed
    assert found.upper > NOISE.delta(0.5, (0, 1))
    assert panel(found).border_style == "yellow"


def test_a_pure_claim_says_up_to_which_delta(seed):
    found = dp.verify(NOISE, [(0, 1), (1, 0), (3, 3)], "eps=1.2", n=20_000, rng=seed)
    assert not found.confirmed
    assert found.statement == f"(1.2, {rounded_up(found.upper)})-DP holds on these 3 pairs"
    assert found.upper == max(one.upper for one in found.pairs)
    assert "δ = 0" in found.reason


def test_continuous_outputs_get_the_trivial_bound_and_advice(seed):
    found = dp.verify(zoo.Laplace(1.0), (0.0, 1.0), "eps=1, delta=0.1", n=5000, rng=seed)
    assert found.upper == 1.0
    assert "round in the release" in found.reason
    assert found.statement == ""


@pytest.mark.parametrize("claim", ["renyi(2)=1", "rho=1"])
def test_divergences_are_not_available(claim, seed):
    found = dp.verify(NOISE, (0, 1), claim, n=5000, rng=seed)
    assert not found.confirmed
    assert "cannot show" in found.reason


def test_curves_are_shown_up_to_a_gap(seed):
    wide = dp.verify(NOISE, (0, 1), dp.GaussianDP(1.5), n=50_000, rng=seed)
    narrow = dp.verify(NOISE, (0, 1), dp.GaussianDP(1.0), n=50_000, rng=seed)
    assert wide.upper < 0.01 < 0.05 < narrow.upper
    assert "dp.TradeoffDP(dp.claim(…).tradeoff, gap=…)" in narrow.reason
    lowered = dp.TradeoffDP(dp.claim("mu=1.5").tradeoff, gap=0.02)
    assert dp.verify(NOISE, (0, 1), lowered, n=50_000, rng=seed).confirmed
    small = dp.TradeoffDP(dp.GaussianDP(1.0).tradeoff, gap=0.01)
    few = dp.verify(NOISE, (0, 1), small, n=50_000, rng=seed)
    assert not few.confirmed
    assert "gap=" not in str(few)  # it has one
    assert "more draws bring it nearer" in few.why


def test_approximate_zcdp_follows_from_a_point(seed):
    claim = dp.ZeroConcentratedDP(0.72, delta=0.01)
    found = dp.verify(NOISE, (0, 1), claim, n=20_000, rng=seed)
    assert found.confirmed
    assert found.epsilon == pytest.approx(1.2)


def test_the_excess_is_that_of_a_fine_grid():
    eps = np.linspace(0, 3, 31)
    curve, above = dp.GaussianDP(1.0).delta_at, dp.GaussianDP(1.1).delta_at
    fine = np.linspace(0, 8, 4001)
    exact = float(np.max(above(fine) - curve(fine)))
    found = excess(eps, above(eps), curve(eps), 0.0)
    assert exact <= found < exact + 0.005


def test_samples_serve_as_well(seed):
    rng = np.random.default_rng(seed)
    pool = dp.from_samples(NOISE(0, 20_000, rng), NOISE(1, 20_000, rng))
    assert dp.verify(pool, claim="eps=1.3, delta=0.01").confirmed


def test_a_claim_is_needed():
    with pytest.raises(InvalidInput, match="what is claimed"):
        dp.verify(NOISE, (0, 1), n=100)


def test_assert_holds_passes_and_fails(seed):
    assert_holds(NOISE, (0, 1), "eps=1.3, delta=0.01", n=20_000, rng=seed)
    with pytest.raises(NotShown, match="was not verified"):
        assert_holds(NOISE, (0, 1), "eps=0.5, delta=0.01", n=20_000, rng=seed)


def test_bounds_are_rounded_up():
    for value in (1.00001e-5, 0.123456, 0.5, 9.9999e-3, 1 / 3):
        assert value <= float(rounded_up(value)) <= value * 1.0011
    assert rounded_up(1.0) == "1"


def test_a_spectrum_is_bounded_from_above(seed):
    spectrum = dp.spectrum.estimate(NOISE, (0, 1), n=50_000, rng=seed)
    exact = NOISE.delta(spectrum.x, (0, 1))
    assert spectrum.upper is not None
    assert np.all(spectrum.upper >= exact)
    assert np.max(spectrum.upper - exact) < 0.05
    assert spectrum.certified_upper(0.33) >= NOISE.delta(0.33, (0, 1))
    assert spectrum.certified_upper(9.0) == spectrum.upper[-1]
    assert math.isfinite(spectrum.certified_upper(-0.5))
    spectrum.chart()


def test_a_spectrum_of_continuous_outputs_has_no_upper_curve(seed):
    spectrum = dp.spectrum.estimate(zoo.Laplace(1.0), (0.0, 1.0), n=5000, rng=seed)
    assert spectrum.upper is None
    assert any("no upper curve" in note for note in spectrum.about.notes)
    with pytest.raises(InvalidInput, match="no certified upper"):
        spectrum.certified_upper(1.0)


def test_the_command_line_ends_with_0_or_5(capsys):
    from dpassay.cli import run

    common = ["verify", "zoo:DiscreteLaplace(scale=1.0)", "--pair", "0", "1", "--n", "20000", "-q"]
    assert run([*common, "--claim", "eps=1.3, delta=0.01"]) == 0
    assert run([*common, "--claim", "eps=1"]) == 5
    assert run(common[:1]) == 2


def test_the_command_line_writes_a_page(capsys, tmp_path):
    from dpassay.cli import run

    place, claim = tmp_path / "page.html", "eps=1.3, delta=0.01"
    common = ["verify", "zoo:DiscreteLaplace(scale=1.0)", "--pair", "0", "1", "--n", "20000"]
    assert run([*common, "--claim", claim, "--report", str(place)]) == 0
    assert "holds on this pair" in capsys.readouterr().out
    assert "Verified on this pair" in place.read_text(encoding="utf-8")
    assert run([*common, "--claim", claim, "--report", str(tmp_path / "no" / "page.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("mechanism", "claim", "n"),
    [
        (dp.zoo.RandomizedResponse(1.0), "eps=1.1, delta=1e-5", 5000),
        (dp.zoo.DiscreteLaplace(1.0), "eps=1.1, delta=1e-4", 20_000),
        (dp.zoo.DiscreteLaplace(1.0), "eps=1.1, delta=1e-5", 10_000_000),
    ],
)
def test_a_test_that_takes_the_draws_it_is_told_passes(mechanism, claim, n):
    """With a fixed number of training draws the outputs they do not show were more than δ for any n."""
    for _ in range(3):
        try:
            assert_holds(mechanism, (0, 1), claim, n=n)
            break
        except NotShown as error:
            n = int(re.search(r"it takes about ([\d,]+) draws", str(error))[1].replace(",", ""))
    else:
        pytest.fail(f"the advice does not end: {n:,}")


def test_no_number_of_draws_is_said_to_show_a_delta_of_zero():
    with pytest.raises(NotShown, match="cannot establish δ = 0"):
        assert_holds(dp.zoo.RandomizedResponse(1.0), (0, 1), "eps=1.1", n=5000)


class Separation(dp.Claim):
    """A claim of a class that `verify` does not know."""

    parameter, symbol, largest, tv = "tv", "TV", 1.0, 0.5

    def region_and_slope(self, q, theta=None):
        tv = self._theta(theta)
        return np.minimum(q + tv, 1.0), np.where(q + tv < 1, 1.0, 0.0) * np.ones_like(tv)

    def tradeoff(self, alpha, theta=None):
        return np.maximum(1 - np.asarray(alpha) - self._theta(theta), 0.0)

    def needed(self, p, q):
        return np.maximum(np.asarray(p) - np.asarray(q), 0.0)

    def _delta(self, epsilon):
        return np.full(np.shape(epsilon), self.tv)

    def __str__(self):
        return f"total variation {self.tv:g}"


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (dp.RenyiDP(2, 0.5), "can make a Rényi divergence infinite; show"),
        (dp.ZeroConcentratedDP(0.5), "can make a Rényi divergence infinite; show"),
        (dp.TradeoffDP([(0, 1), (1, 0)], ordered=True), "about the first input against the second"),
        (Separation(), "only pure, .* can be verified"),
    ],
)
def test_the_reason_is_that_of_the_claim(claim, reason, seed):
    found = dp.verify(dp.zoo.DiscreteLaplace(1.0), (0, 1), claim, n=100, rng=seed)
    assert not found.confirmed
    assert re.search(reason, found.reason)
    assert ("Rényi" in found.reason) == (not claim.set_by_events)


def test_true_claims_rarely_look_false(seeds):
    """The lower limit of δ, at a claim that holds exactly: δ(0.5) of discrete Laplace noise."""
    mechanism = dp.zoo.DiscreteLaplace(1.0)
    claim = dp.ApproximateDP(0.5, float(mechanism.delta(0.5, mechanism.pair)))
    found = [dp.verify(mechanism, mechanism.pair, claim, n=500, rng=s) for s in seeds[:100]]
    assert sum(one.looks_false for one in found) <= binom.ppf(1 - 1e-4, len(found), 0.05)
    false = dp.ApproximateDP(0.5, claim.delta / 3)
    assert dp.verify(mechanism, mechanism.pair, false, n=2000, rng=0).looks_false


def test_a_pure_claim_looks_false_as_one_with_delta_does(seeds):
    mechanism = dp.zoo.DiscreteLaplace(1.0)
    found = [dp.verify(mechanism, mechanism.pair, "eps=1", n=500, rng=s) for s in seeds[:100]]
    assert sum(one.looks_false for one in found) <= binom.ppf(1 - 1e-4, len(found), 0.05)
    false = dp.verify(mechanism, mechanism.pair, "eps=0.5", n=2000, rng=seeds[0])
    assert false.looks_false
    assert "the claim looks false on 0 and 1: δ is at least 0." in false.reason
    assert "the claim allows 0. More draws do not help" in false.reason
    [outputs] = [text for name, text in false.view().rows if name == "outputs"]
    assert re.fullmatch(
        r"[0-9]+ counted one by one; all others together are .*% of the draws", outputs
    )


def test_what_shows_zcdp_being_false_does_not_make_the_claim_look_false():
    """(√(2ρ), δ)-DP is more than δ-approximate ρ-zCDP, which this noise keeps."""
    found = dp.verify(zoo.DiscreteGaussian(1.0), (0, 1), "rho=0.5, delta=0.01", n=100_000, rng=0)
    assert not found.confirmed
    assert not found.looks_false
    assert "looks false" not in str(found)


@pytest.mark.filterwarnings("ignore::dpassay.errors.DependenceWarning")
def test_dependent_draws_certify_nothing_and_the_first_line_says_so(seed):
    def sticky(x, size, rng):  # every output twice
        return np.repeat(rng.random((size + 1) // 2) < (0.7 if x else 0.5), 2)[:size].astype(int)

    shown = dp.verify(sticky, (0, 1), "eps=1, delta=0.3", n=5000, rng=seed)
    assert str(shown).startswith("not certified: (1, 0.3)-DP holds on this pair\n")
    assert shown.view().sentence.startswith("Not certified: (1, 0.3)-DP holds")
    weaker = dp.verify(sticky, (0, 1), "eps=0.1, delta=0.03", n=5000, rng=seed)
    assert "\n  not certified: (0.1, " in str(weaker)
