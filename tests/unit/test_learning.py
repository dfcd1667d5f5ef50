"""What is learned on training draws: each fast routine beside a slow one, and what must not be missed."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import betaln

import dpassay as dp
from dpassay.learning.cuts import EventCriterion
from dpassay.learning.learner import Learner, LogLoss, select
from dpassay.loss.classifier import ClassifierLoss
from dpassay.loss.dyadic import DyadicLoss, _averaged_odds, halve
from dpassay.loss.logistic import LogisticLoss, newton
from dpassay.loss.training import Training
from dpassay.outputs.canonical import from_raw
from dpassay.outputs.events import Event
from dpassay.roots import bisect, last_reaching
from dpassay.sampling.samples import Batch


def training(p, q):
    return Training.of(Batch.of(from_raw(p, len(p)), from_raw(q, len(q))))


# --- cells that halve the draws


def trees(depth):
    """Every tree of halvings of 2^depth cells, as lists of (first, last + 1), with its weight."""

    def grow(first, size, level):
        yield [(first, first + size)], 0.5 if level else 1.0
        if level:
            half = size // 2
            for (a, x), (b, y) in itertools.product(
                list(grow(first, half, level - 1)), list(grow(first + half, half, level - 1))
            ):
                yield a + b, 0.5 * x * y

    return list(grow(0, 2**depth, depth))


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_averaged_odds_are_the_average_over_all_trees(depth, seed):
    rng = np.random.default_rng(seed)
    hits, misses = rng.integers(0, 9, size=(2, 2**depth))
    chance, total = np.zeros(2**depth), 0.0
    for leaves, prior in trees(depth):
        evidence, odds = prior, np.zeros(2**depth)
        for first, last in leaves:
            a, b = hits[first:last].sum(), misses[first:last].sum()
            evidence *= math.exp(betaln(a + 0.5, b + 0.5) - betaln(0.5, 0.5))
            odds[first:last] = (a + 0.5) / (a + b + 1)
        chance += evidence * odds
        total += evidence
    exact = np.log(chance / total) - np.log1p(-chance / total)
    assert _averaged_odds(hits, misses) == pytest.approx(exact)


def test_equal_values_are_never_parted():
    cells = halve(np.repeat([1.0, 2.0], 50), np.repeat([2.0, 3.0], 50), (100, 100))
    assert set(cells.edges) <= {1.0, 2.0, 3.0}
    place = np.searchsorted(cells.edges, [1.0, 2.0, 3.0], side="right")
    assert cells.loss[place[0]] > 2 > -2 > cells.loss[place[2]]


def test_halving_does_not_care_for_the_scale(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=500), rng.normal(1, 1, size=500)
    plain = halve(p, q, (500, 500))
    warped = halve(np.exp(9 * p), np.exp(9 * q), (500, 500))
    assert np.array_equal(plain.loss, warped.loss)


def test_an_event_of_cells_is_where_the_score_passes_the_cut(seed):
    rng = np.random.default_rng(seed)
    p = [None if u < 0.2 else float(x) for u, x in rng.normal(size=(2000, 2))]
    q = [None if u < 0.4 else float(x) for u, x in rng.normal(0.5, 1, size=(2000, 2))]
    draws = training(p, q)
    for loss in (DyadicLoss.fit(draws), DyadicLoss.fit(draws, numbers=False)):
        scores = loss.score(draws.p.outputs)
        for cut, above in itertools.product((-0.3, 0.0, 0.2), (True, False)):
            event = Event.from_json(loss.event(cut, above).to_json())
            wanted = scores >= cut if above else scores <= cut
            assert np.array_equal(event.holds(draws.p.outputs), wanted)


# --- polynomials and trees


def test_newton_agrees_with_scikit_learn(seed):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 3))
    labels = rng.random(600) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.0] - 0.3))
    ones = np.column_stack([np.ones(600), x])
    ours = newton(ones, np.ones(600), labels.astype(float), 1e-9)
    model = LogisticRegression(C=1e9, tol=1e-10).fit(x, labels)
    assert ours == pytest.approx(np.r_[model.intercept_, model.coef_[0]], abs=1e-4)


def test_trees_written_down_score_like_the_classifier(seed):
    rng = np.random.default_rng(seed)
    draws = training(rng.normal(size=(800, 4)), rng.normal(0.3, 1, size=(700, 4)))
    loss = ClassifierLoss.fit("boosting", draws, rng=rng)
    fresh = from_raw(rng.normal(size=(500, 4)), 500)
    event = loss.event(0.1, True)
    again = Event.from_json(event.to_json())
    assert not again.live
    assert again.scorer is None
    assert again.ranking.score(fresh) == pytest.approx(loss.score(fresh), abs=1e-9)
    assert np.array_equal(again.holds(fresh), event.holds(fresh))


def test_an_event_of_trees_replays_from_a_file(seed):
    def rings(data, size, rng):
        angle, radius = 2 * np.pi * rng.random(size), 1 + data + 0.2 * rng.normal(size=size)
        more = rng.normal(size=(size, 2))
        return np.column_stack([radius * np.cos(3 * angle), radius * np.sin(3 * angle), more])

    verdict = dp.audit(rings, (0.0, 0.3), "eps=.5", n=8000, loss="boosting", rng=seed)
    again = dp.Verdict.from_json(verdict.to_json())
    assert verdict.violated
    assert dp.replay(again, rings, n=4000, rng=seed + 1).violated


def test_products_of_many_coordinates_are_thinned_to_the_telling_ones(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(2, 3000, 60))
    p[:, 7] = np.where(rng.random(3000) < 0.9, np.sign(p[:, 3]), -np.sign(p[:, 3])) * np.abs(
        p[:, 7]
    )
    loss = LogisticLoss.fit("products", training(p, q))
    pairs = {tuple(pair) for pair in loss.ranking.model.pairs.tolist()}
    assert (3, 7) in pairs
    assert len(pairs) == 560


def test_more_terms_than_draws_are_fitted_all_the_same(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(400, 1500)), rng.normal(size=(400, 1500)) + 0.2
    loss = LogisticLoss.fit("linear", training(p, q))
    fresh = (
        from_raw(rng.normal(size=(500, 1500)), 500),
        from_raw(rng.normal(size=(500, 1500)) + 0.2, 500),
    )
    assert loss.score(fresh[0]).mean() > 1 > -1 > loss.score(fresh[1]).mean()


# --- choosing


def test_the_layout_and_each_fit_are_made_once_for_all_claims(monkeypatch, seed):
    from dpassay.loss import training as room

    learned = []
    monkeypatch.setattr(
        room, "learn", lambda *a, own=room.learn, **k: learned.append(1) or own(*a, **k)
    )
    dp.audit(dp.zoo.Laplace(), (0.0, 1.0), ["eps=.5", "mu=.5", "rho=.1"], n=2000, rng=seed)
    assert len(learned) == 1


def test_a_candidate_that_fails_is_said_and_does_not_end_the_search(monkeypatch, seed):
    def broken(*arguments, **options):
        raise FloatingPointError("no")

    monkeypatch.setattr("dpassay.loss.dyadic.halve", broken)
    verdict = dp.audit(dp.zoo.Laplace(), (0.0, 1.0), "eps=2", n=4000, rng=seed)
    assert verdict.tone == "blind"
    assert "dyadic" in verdict.blind
    assert dp.audit(dp.zoo.Laplace(), (0.0, 1.0), "eps=.3", n=4000, rng=seed).violated


def test_log_loss_prefers_the_truth(seed):
    samples = dp.draw(dp.zoo.Gaussian(), (0.0, 1.0), n=20_000, rng=seed)
    learner = Learner(samples.deal((20_000, 20_000)), "auto", samples.rng)
    index, _ = select(learner, LogLoss())
    assert learner.names[index] == "polynomial"


def test_where_nothing_is_found_a_sensitive_event_is_tested(seeds):
    """P = Q: the verdict must not be blind because the search ended at a rare event."""
    for seed in seeds[:20]:
        verdict = dp.audit(lambda x, n, r: r.laplace(size=n), (0.0, 1.0), "eps=1", n=2000, rng=seed)
        assert verdict.tone == "clear"
        assert verdict.smallest_detectable < 1.8
    equal = dp.audit(dp.zoo.Laplace(), (0.0, 0.0), "eps=1", n=2000, rng=0)
    assert equal.tone == "blind"
    assert "equal" in equal.blind


def test_a_promise_is_made_of_counts_alone():
    """Scores may be anything that orders the draws: a monotone change moves the cut and nothing else."""
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=500), rng.normal(1, 1, size=500)
    look = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p, q))
    other = EventCriterion(dp.PureDP(0.5), (1500, 1500), 0.05).judge((p**3, q**3))
    assert (look.rank, look.cut.share) == (other.rank, other.cut.share)
    assert other.cut.at == pytest.approx(look.cut.at**3)


@pytest.mark.parametrize(
    ("name", "mechanism", "least"),
    [
        ("scales", lambda x, n, r: r.laplace(scale=15_000 if x else 3, size=n), 6.0),
        ("spike", lambda x, n, r: np.where(r.random(n) < x / 2, 1e-10, 1) * r.normal(size=n), 6.0),
        (
            "waves",
            lambda x, n, r: (
                (r.integers(40, size=n) + (r.random(n) + (r.random(n) < 0.3 + 0.4 * x)) / 2) / 40
            ),
            0.6,
        ),
        ("product", lambda x, n, r: _tied(x, n, r), 1.0),
        ("wide", lambda x, n, r: r.normal(size=(n, 210)) + x / np.sqrt(210), 0.3),
        ("large", lambda x, n, r: 2**62 + int(x) + r.geometric(0.6, n) - r.geometric(0.6, n), 0.7),
    ],
)
def test_what_was_missed_once_is_seen(name, mechanism, least, seeds):
    for seed in seeds[:3]:
        n = 8000 if name == "wide" else 20_000
        verdict = dp.audit(mechanism, (0.0, 1.0), "eps=.05", n=n, rng=seed)
        assert verdict.lower_bound > least


def test_a_release_that_hardly_ever_happens_is_audited(seeds):
    def sparse(x, n, rng):
        return [None if u < 0.99 else float(3 * x + rng.laplace()) for u in rng.random(n)]

    found = [dp.audit(sparse, (0.0, 1.0), "eps=.05", n=8000, rng=s) for s in seeds[:6]]
    assert sum(verdict.violated for verdict in found) >= 3


def _tied(x, n, rng):
    out = rng.normal(size=(n, 10))
    out[:, 1] *= np.sign(out[:, 0] * out[:, 1]) * np.where(
        rng.random(n) < 0.85, 1 - 2 * x, 2 * x - 1
    )
    return out


def test_both_bounds_of_an_approximate_claim_hold_at_once(seeds):
    from scipy.optimize import brentq
    from scipy.stats import binom

    gaussian, pair = dp.zoo.Gaussian(), (0.0, 1.0)
    delta = 0.05
    epsilon = brentq(lambda e: gaussian.delta(e, pair) - delta, 0, 5)
    wrong = 0
    for seed in seeds[:60]:
        verdict = dp.audit(gaussian, pair, dp.ApproximateDP(1.0, delta), n=1000, rng=seed)
        wrong += verdict.lower_bound > epsilon or verdict.second.lower > gaussian.delta(1.0, pair)
    assert wrong <= binom.ppf(1 - 0.01 / 3, 60, 0.05)


def test_delta_can_be_the_headline(seed):
    claim = dp.ApproximateDP(1.0, 0.01, headline="delta")
    verdict = dp.audit(dp.zoo.Gaussian(), (0.0, 1.0), claim, n=20_000, confidence=0.9999, rng=seed)
    assert verdict.violated
    assert 0.07 < verdict.lower_bound < 0.127  # δ(1) of the mechanism
    assert verdict.second.symbol == "ε"
    assert "δ ≥" in str(verdict)


# --- roots


def test_bisection_ends_on_the_sides_it_says():
    inside, outside = bisect(lambda x: x**3 <= 5, np.zeros(4), np.full(4, 9.0))
    assert np.all(inside**3 <= 5)
    assert np.all(outside**3 > 5)
    assert np.all(outside - inside < 1e-12)
    low, high = bisect(lambda x: x > 1, 4.0, 0.0, steps=30, close=1e-3)
    assert high <= 1 < low < high + 4e-3


@pytest.mark.parametrize("power", [0.3, 1.0, 3.0])
def test_regula_falsi_ends_on_the_side_that_reaches_the_goal(power):
    calls = []

    def f(x):
        calls.append(x)
        return 10 - x**power

    low, high = last_reaching(f, 4.0, (0.0, 10.0), (1e4, f(1e4)), close=1e-6)
    assert low[1] >= 4.0 > high[1]
    assert low[0] == pytest.approx(6 ** (1 / power), rel=1e-5)
    assert len(calls) < 60
