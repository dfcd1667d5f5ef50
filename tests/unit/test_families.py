"""Bounds for a mechanism that is one of a family (`dp.Family`)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

import dpassay as dp
from dpassay.bounds.joint_test import lower_bound
from dpassay.bounds.ordering import Counts
from dpassay.errors import InvalidInput

NOISE = dp.Family(lambda noise: dp.GaussianDP(1 / noise), 0.25, 4.0, name="noise multiplier")


def test_a_family_of_gaussian_claims_agrees_with_the_bound_on_mu():
    options = {"n": 20_000, "loss": "values", "rng": 3}
    mechanism, pair = dp.zoo.Gaussian(1.0), (0.0, 1.0)
    found = dp.bound(mechanism, pair, "eps, delta=1e-5", family=NOISE, **options)
    mu = dp.bound(mechanism, pair, "mu", **options).value
    assert found.value == pytest.approx(dp.GaussianDP(mu).epsilon_at(1e-5), rel=0.01)
    assert found.value < dp.GaussianDP(1.0).epsilon_at(1e-5)
    assert found.notion == "ε at δ = 1e-05 (assuming the family)"
    assert "noise multiplier" in found.about.notes[0]
    assert "and above are refuted" in found.about.notes[0]
    assert dp.LowerBound.from_json(found.to_json()).claim.at(0.0) is not None


@pytest.mark.parametrize("noise", [0.7, 1.0, 1.9])
@pytest.mark.parametrize("q", [0.05, 0.3, 0.6])
def test_the_parameter_is_covered_exactly(noise, q):
    """All outcomes of small counts: the least private refuted value passes the truth with at most γ."""
    gamma, n = 0.1, 14
    coarse = dp.Family(NOISE.claims, 0.25, 4.0)
    among = coarse.ordered(1e-5)
    among = type(among)(among.make, np.geomspace(4.0, 0.25, 9))  # no value is the truth
    p = float(norm.cdf(norm.ppf(q) + 1 / noise))
    wrong = 0.0
    for i in range(n + 1):
        for j in range(n + 1):
            last = among.last_refuted(lower_bound(Counts(i, n, j, n), among, gamma))
            if last is not None and last < noise:
                wrong += binom.pmf(i, n, p) * binom.pmf(j, n, q)
    assert wrong <= gamma


def test_claims_between_two_values_are_nested_and_concave():
    among = NOISE.ordered(1e-5)
    q = np.linspace(0.0, 1.0, 501)
    before = np.zeros(q.shape)
    for t in (0.0, 0.4, 1.0, 100.5, 700.25, among.largest):
        region, slope = among.region_and_slope(q, t)
        assert np.all(region >= before)
        assert np.all(np.diff(slope[1:-1]) <= 1e-9)
        back = among.region_inverse(region, t)
        assert np.all(among.region_and_slope(back, t)[0] <= region + 1e-12)
        assert np.allclose(back[region < 0.999], q[region < 0.999], atol=1e-6)
        before = region


def test_families_of_one_process_do_not_share_results():
    def bound(*ends):
        samples = dp.draw(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=2000, rng=0)
        return dp.bound(samples, of="eps, delta=1e-5", family=dp.Family(NOISE.claims, *ends), rng=0)

    found = [bound(*ends).value for ends in ((0.5, 8.0), (0.5, 2.0), (0.25, 4.0))]
    assert max(found) - min(found) < 0.02 * max(found)
    assert max(found) < dp.GaussianDP(1.0).epsilon_at(1e-5)
    for ends in ((4.0, 8.0), (1.5, 8.0)):  # no member of these is as noisy as little
        none = bound(*ends)
        assert "the whole range: no claim of the family is true" in none.about.notes[0]
        assert "(all claims of the family are refuted: no bound)" in str(none).splitlines()[0]
        assert none.value == 0.0


def test_a_rising_parameter_and_no_refutation():
    rate = dp.Family(lambda mu: dp.GaussianDP(mu), 0.5, 4.0, name="mu")
    found = dp.bound(
        dp.zoo.Gaussian(1.0), (0.0, 1.0), "eps, delta=1e-5", family=rate, n=4000, rng=1
    )
    assert "and below are refuted" in found.about.notes[0]
    quiet = dp.bound(
        dp.zoo.Gaussian(9.0), (0.0, 1.0), "eps, delta=1e-5", family=rate, n=4000, rng=1
    )
    assert (quiet.value, quiet.claim) == (0.0, None)
    assert "no claim of the family is refuted (mu from 0.5 to 4)" in quiet.about.notes[0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: dp.Family(3, 0.5, 1.0), "claims must be a function"),
        (lambda: dp.Family(dp.GaussianDP, 2.0, 1.0), "low must be below high, got 2 and 1"),
        (lambda: dp.Family(dp.GaussianDP, 0.0, 1.0), "low"),
        (lambda: dp.Family(lambda v: dp.GaussianDP(1.0), 0.5, 1.0).ordered(1e-5), "must differ"),
        (
            lambda: dp.Family(lambda v: 1 / 0, 0.5, 1.0).ordered(1e-5),
            r"claims\(0.5\) raised ZeroDiv",
        ),
        (lambda: dp.Family(lambda v: dp.RenyiDP(2.0, v), 0.5, 1.0).ordered(1e-5), "about events"),
    ],
)
def test_what_is_no_family_is_refused(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()


def test_claims_that_are_not_nested_are_refused():
    """μ rises, falls and rises again with the parameter: the ends alone do not show it."""
    odd = dp.Family(lambda v: dp.GaussianDP(v + 2 * np.sin(3 * v) ** 2), 0.5, 4.0)
    with pytest.raises(InvalidInput, match="are not nested"):
        dp.bound(dp.zoo.Gaussian(0.5), (0.0, 1.0), "eps, delta=1e-5", family=odd, n=4000, rng=0)


def test_only_epsilon_at_a_delta_is_bounded():
    with pytest.raises(InvalidInput, match='such as of="eps, delta=1e-5", got μ'):
        dp.bound(dp.zoo.Gaussian(1.0), (0.0, 1.0), "mu", family=NOISE, n=1000, rng=0)


def test_a_family_is_named_on_the_command_line(tmp_path, capsys):
    from dpassay.cli import run

    path = tmp_path / "families.py"
    path.write_text(
        "import dpassay as dp\n"
        "gaussian = dp.Family(lambda s: dp.GaussianDP(1 / s), 0.5, 2.0, name='noise')\n"
        "number = 5\n",
        encoding="utf-8",
    )
    asked = ["bound", "zoo:Gaussian(sigma=1.0)", "--pair", "0", "1", "--of", "eps, delta=1e-5"]
    asked += ["--n", "4000", "--json", "-", "--family"]
    assert run([*asked, f"{path}:gaussian"]) == 0
    found = dp.LowerBound.from_json(capsys.readouterr().out)
    family = dp.Family(lambda s: dp.GaussianDP(1 / s), 0.5, 2.0, name="noise")
    of = "eps, delta=1e-5"
    same = dp.bound(dp.zoo.Gaussian(1.0), (0, 1), of, family=family, n=4000, rng=0)
    assert found.value == same.value > 3
    for wrong in (f"{path}:number", "gaussian"):
        assert run([*asked, wrong]) == 2
        assert "--family must" in capsys.readouterr().err


def test_what_is_bounded_in_the_place_of_the_pair_is_named():
    samples = dp.draw(dp.zoo.Gaussian(1.0), (0.0, 1.0), n=500, rng=0)
    with pytest.raises(InvalidInput, match="write of='eps, delta=1e-5'"):
        dp.bound(samples, "eps, delta=1e-5", family=NOISE)
