"""Claims of privacy accountants: never stronger than what the accountant says."""

import json
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from scipy.stats import binom

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import claim_of_file, from_accountant, read_claim

EPS = np.linspace(0.0, 3.0, 13)
TRUE = dp.GaussianDP(1.0)


def composed(accountant):
    return accountant.compose(dp_accounting.GaussianDpEvent(2.0), 4)  # 1-GDP


class OpacusLike:
    """What Opacus's accountants have: `get_epsilon(delta)`, a history, the name of a mechanism."""

    def __init__(self, epsilon_at):
        self.history = [(1.0, 1.0, 1)]
        self._epsilon_at = epsilon_at

    def __len__(self):
        return 1

    def mechanism(self):
        return "prv"

    def get_epsilon(self, delta, **kwargs):
        return self._epsilon_at(delta)


def inverse(delta, high=60.0):
    """ε(δ) of 1-GDP, from above."""
    low = 0.0
    if TRUE.delta_at(0.0) <= delta:
        return 0.0
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if TRUE.delta_at(mid) > delta else (low, mid)
    return high


@pytest.fixture(scope="module")
def made():
    return {
        "pld": composed(PLDAccountant()),
        "distribution": privacy_loss_distribution.from_gaussian_mechanism(1.0),
        "opacus": OpacusLike(inverse),
    }


@pytest.mark.parametrize("name", ["pld", "distribution", "opacus"])
def test_the_whole_curve_is_claimed_and_no_more(made, name):
    claim = dp.claim(made[name])
    assert isinstance(claim, dp.TradeoffDP)
    stated, exact = claim.delta_at(EPS), TRUE.delta_at(EPS)
    assert np.all(stated >= exact * (1 - 1e-9))
    assert np.all(stated <= exact + (0.003 if name == "opacus" else 0.001))
    assert dp.TradeoffDP.from_json(claim.to_json()).delta_at(1.0) == claim.delta_at(1.0)


def test_a_renyi_accountant_claims_all_its_orders():
    accountant = composed(RdpAccountant(orders=[1.5, 2, 4, 8, 32]))
    claim = dp.claim(accountant)
    assert isinstance(claim, dp.RenyiCurveDP)
    assert claim.orders == (1.5, 2.0, 4.0, 8.0, 32.0)
    assert claim.renyi(4.0) == pytest.approx(2.0)


def test_older_accountants_keep_their_orders_to_themselves():
    class Old:
        _orders = np.array([1.0, 2.0, 4.0, math.inf])
        _rdp = np.array([0.1, 0.2, 0.4, math.inf])

        def get_epsilon(self, delta):
            raise AssertionError

    assert dp.claim(Old()) == dp.RenyiCurveDP([2.0, 4.0], [0.2, 0.4])


def test_points_that_an_accountant_cannot_answer_are_left_out():
    def picky(delta):
        if delta < 1e-6:
            raise ValueError("delta is too small")
        return math.inf if delta < 1e-4 else inverse(delta)

    claim = dp.claim(OpacusLike(picky))
    assert np.all(claim.delta_at(EPS) >= TRUE.delta_at(EPS) * (1 - 1e-9))


def test_what_is_no_accountant_is_refused():
    assert from_accountant(3) is None
    with pytest.raises(InvalidInput, match=r"a privacy accountant, or a JSON file.*, got \{3\}"):
        dp.claim({3})

    class Fresh:
        def get_epsilon(self, delta):
            raise RuntimeError("no steps yet")

    with pytest.raises(InvalidInput, match=r"no finite epsilon.*no steps yet.*taken a step"):
        dp.claim(Fresh())


@pytest.mark.parametrize(
    "fresh",
    [RdpAccountant(), PLDAccountant(), OpacusLike(lambda delta: 0.0)],
    ids=lambda one: type(one).__name__,
)
def test_an_accountant_without_a_step_is_no_claim_of_perfect_privacy(fresh):
    with pytest.raises(InvalidInput, match="recorded no step; give it after training"):
        dp.one_run([1.0, 2.0, 3.0], [True, False, True], claim=fresh, guesses=2)


def test_verbs_take_accountants(made, seed):
    found = dp.audit(dp.zoo.Gaussian(sigma=0.4), (0.0, 1.0), made["opacus"], n=4000, rng=seed)
    assert found.violated
    assert isinstance(found.claim, dp.TradeoffDP)


def test_a_refuted_curve_says_which_epsilons_go_with_it(seed):
    curve = dp.TradeoffDP.from_delta(TRUE.delta_at)
    found = dp.audit(dp.zoo.Gaussian(sigma=0.4), (0.0, 1.0), curve, n=4000, rng=seed)
    other, w = found.second, found.witness
    assert found.violated
    assert other.claimed == pytest.approx(inverse(1e-5), abs=1e-3)
    # what the same counts certify at a tenth of the error probability, by the other door
    counts = (w.hits_p, w.n_p, w.hits_q, w.n_q)
    likelier = "first" if w.p >= w.q else "second"
    again = dp.audit_counts(*counts, "eps=0, delta=1e-5", confidence=0.99449, likelier=likelier)
    assert other.lower == pytest.approx(again.lower_bound, abs=2e-3)
    assert other.lower > 1.0
    assert dp.zoo.Gaussian(sigma=0.4).delta(other.lower, (0.0, 1.0)) > 1e-5
    assert f"at {other.at}, where the curve claims" in str(found)
    assert ("(the curve is refuted at other points)" in str(found)) == (other.lower < other.claimed)
    assert sum(share for _, share in found.budget) == pytest.approx(0.05)


def test_a_renyi_curve_is_converted_as_its_accountant_does():
    accountant = composed(RdpAccountant())
    curve = dp.claim(accountant)
    stated = curve.companion()
    assert stated.epsilon == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-9)
    assert stated.epsilon > inverse(1e-5)  # from above
    assert curve.delta_at(stated.epsilon) <= 1e-5
    assert dp.RenyiCurveDP([2.0], [0.0]).companion().epsilon > 0
    assert dp.RenyiCurveDP([1e9], [0.0]).companion().epsilon == pytest.approx(0, abs=1e-7)
    assert curve.at(2.0).companion().epsilon > stated.epsilon


@pytest.mark.parametrize(("sigma", "refuted"), [(1.0, False), (0.4, True)])
def test_the_audit_of_a_renyi_curve_says_which_epsilons_go_with_it(sigma, refuted, seed):
    mechanism, curve = dp.zoo.Gaussian(sigma), dp.claim(composed(RdpAccountant([1.5, 2, 4, 8, 32])))
    found = dp.audit(mechanism, (0.0, 1.0), curve, n=4000, rng=seed)
    other, w = found.second, found.witness
    assert found.violated == refuted
    assert (other.symbol, other.at) == ("ε", "δ = 1e-05")
    assert other.claimed == curve.companion().epsilon
    assert sum(share for _, share in found.budget) == pytest.approx(0.05)
    assert mechanism.delta(other.lower, (0.0, 1.0)) > 1e-5
    assert other.lower > (1.0 if refuted else 0.3)
    if not refuted:  # one event: the one that is shown; at a tenth of the error probability
        counts = (w.hits_p, w.n_p, w.hits_q, w.n_q)
        likelier = "first" if w.p >= w.q else "second"
        again = dp.audit_counts(*counts, "eps=0, delta=1e-5", confidence=0.99449, likelier=likelier)
        assert other.lower == pytest.approx(again.lower_bound, abs=2e-3)


def test_no_bound_of_a_renyi_curve_fails_more_often_than_it_may(seeds):
    """Randomized response against its own curve: one event shows all of ε, at any δ."""
    box, runs = dp.zoo.RandomizedResponse(1.0), 12
    orders = (2.0, 4.0)
    curve = dp.RenyiCurveDP(orders, [box.renyi(order, box.pair) for order in orders])
    likely = math.e / (1 + math.e)
    truth = math.log((likely - 1e-5) / (1 - likely))
    assert box.delta(truth, box.pair) == pytest.approx(1e-5, rel=1e-6)
    wrong = second = 0
    for seed in seeds[:runs]:
        found = dp.audit(box, box.pair, curve, n=400, confidence=0.8, rng=seed)
        second += found.second.lower > truth
        wrong += found.lower_bound > 1 or found.second.lower > truth
    assert wrong <= binom.ppf(1 - 0.01 / 6, runs, 0.2)
    assert second <= binom.ppf(1 - 0.01 / 6, runs, 0.02)


class Stepped:
    """An accountant that counts how often it is asked."""

    asked = 0

    def __init__(self):
        self.steps = 1

    def get_epsilon(self, delta):
        Stepped.asked += 1
        return float(self.steps)


def test_an_accountant_is_asked_once_until_it_takes_a_step():
    accountant = Stepped()
    first = dp.claim(accountant)
    before = Stepped.asked
    assert dp.claim(accountant) is first
    assert dp.claim(Stepped()) is first
    assert Stepped.asked == before > 0
    accountant.steps = 2
    assert dp.claim(accountant).delta_at(1.0) > first.delta_at(1.0)
    heard = []
    read_claim(Stepped(), lambda *points: heard.append(points))
    assert heard == []  # answered already
    accountant.steps = 3
    read_claim(accountant, lambda *points: heard.append(points))
    assert heard == [(1, 74)] * 74


# --- files


def test_files_of_accountants(tmp_path):
    path = tmp_path / "opacus.json"
    path.write_text('{"epsilon": 4.0, "delta": 1e-5}')
    assert claim_of_file(path) == dp.ApproximateDP(4.0, 1e-5)
    for given in (path, str(path), {"epsilon": 4.0, "delta": 1e-5}):
        assert dp.claim(given) == dp.ApproximateDP(4.0, 1e-5)
    points = [(float(d), float(TRUE.epsilon_at(d))) for d in (1e-6, 1e-4, 0.01, 0.2)]
    forms = [
        [list(p) for p in points],
        [{"delta": d, "epsilon": e} for d, e in points],
    ]
    for form in forms:
        path.write_text(json.dumps(form))
        claim = claim_of_file(path)
        for delta, epsilon in points:
            assert claim.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)
        assert np.all(claim.delta_at(EPS) >= TRUE.delta_at(EPS) * (1 - 1e-9))
    path.write_text(dp.GaussianDP(1.5).to_json())
    assert claim_of_file(path) == dp.GaussianDP(1.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[]", "holds no point"),
        ('{"eps": 1}', r"has \{'eps': 1\}; an accountant's file is"),
        ('{"epsilon": -1, "delta": 1e-5}', "epsilon must be"),
        ("[[4.0, 1e-5]]", "delta must be"),
    ],
)
def test_files_that_are_no_accountants_are_refused(tmp_path, text, words):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        claim_of_file(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        claim_of_file(tmp_path / "none.json")


def test_epsilon_at_inverts_the_privacy_profile():
    for claim in (dp.GaussianDP(1.0), dp.TradeoffDP.from_delta(TRUE.delta_at)):
        epsilon = claim.epsilon_at(1e-5)
        assert claim.delta_at(epsilon) <= 1.000001e-5 < claim.delta_at(epsilon * (1 - 1e-6))
    assert dp.ApproximateDP(1.0, 1e-3).epsilon_at(1e-5) == math.inf
    assert dp.ApproximateDP(0.0, 1e-6).epsilon_at(1e-5) == 0.0


def test_points_of_a_file_fall_with_delta(tmp_path):
    path = tmp_path / "accountant.json"
    path.write_text('{"eps": 4.0, "delta": 1e-5}', encoding="utf-8")
    assert claim_of_file(path) == dp.ApproximateDP(4.0, 1e-5)
    path.write_text("[[1e-06, 8.8], [1e-05, 10.0], [0.0001, 11.0]]", encoding="utf-8")
    with pytest.raises(InvalidInput, match="ε = 8.8 at δ = 1e-06 and the larger ε = 10"):
        claim_of_file(path)


def test_an_accountant_of_training_without_noise_is_asked_for_its_noise():
    class Accountant:
        def get_epsilon(self, delta):
            return float("inf")

    with pytest.raises(InvalidInput, match="is its noise multiplier 0"):
        dp.claim(Accountant())
