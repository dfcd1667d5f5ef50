"""The local estimator and the MPL bound."""

import numpy as np
import pytest
from scipy import stats

import dpassay as dp
from dpassay.errors import InvalidInput, NotEnoughDraws

zoo = dp.zoo
PAIR = (0.0, 1.0)


def quantile_samples(law_p, law_q, n=20_001):
    """Deterministic "samples": what the quantiles of the two laws say, without luck."""
    u = (np.arange(n) + 0.5) / n
    return dp.from_samples(law_p.ppf(u), law_q.ppf(u)[::-1])


# --- estimate


@pytest.mark.parametrize(
    ("laws", "truth"),
    [
        ((stats.laplace(0, 1), stats.laplace(1, 1)), 1.0),
        ((stats.laplace(0, 2), stats.laplace(1, 2)), 0.5),
    ],
)
def test_estimate_without_luck(laws, truth):
    samples = quantile_samples(*laws)
    assert dp.pure.estimate(samples).value == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("rule", ["sj", "isj", "silverman", "scott", 0.2])
def test_estimate_with_every_bandwidth(rule, seed):
    estimate = dp.pure.estimate(zoo.Laplace(), PAIR, n=100_000, bandwidth=rule, rng=seed)
    assert estimate.value == pytest.approx(1.0, abs=0.12)


def test_estimate_says_where(seed):
    estimate = dp.pure.estimate(
        zoo.ReportNoisyMax(1.5), zoo.ReportNoisyMax().pair, n=50_000, rng=seed
    )
    assert estimate.location == "0"
    assert estimate.value == pytest.approx(1.4922, abs=0.1)
    assert estimate.loss.labels is not None
    assert estimate.about.guarantee == "heuristic"
    assert estimate.chart().to_dict()


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (zoo.Laplace(), PAIR),
        (zoo.RandomizedResponse(), zoo.RandomizedResponse().pair),
        (zoo.ProposeTestRelease(), zoo.ProposeTestRelease().pair),
    ],
    ids=["continuous", "discrete", "mixed"],
)
def test_swapping_the_pair_changes_nothing_but_luck(mechanism, pair, seed):
    one = dp.pure.estimate(mechanism, pair, n=100_000, rng=seed).value
    other = dp.pure.estimate(mechanism, (pair[1], pair[0]), n=100_000, rng=seed).value
    assert one == pytest.approx(other, rel=0.15)


def test_rescaling_and_shifting_the_outputs_changes_nothing(seed):
    p, q = (
        dp.zoo.Laplace()(x, 50_000, np.random.default_rng(seed + k)) for k, x in enumerate(PAIR)
    )
    base = dp.pure.estimate(dp.from_samples(p, q)).value
    for scale, shift in ((1e-6, 0.0), (1e6, 5.0), (-1.0, 100.0)):
        moved = dp.pure.estimate(dp.from_samples(scale * p + shift, scale * q + shift)).value
        assert moved == pytest.approx(base, rel=0.02)


def test_region_and_floor_are_the_papers(seed):
    kwargs = {"n": 50_000, "rng": seed, "caution": 0.0}
    inside = dp.pure.estimate(zoo.Laplace(), PAIR, region=(0.4, 0.6), floor=1e-3, **kwargs)
    assert inside.value == pytest.approx(0.2, abs=0.1)  # |ℓ| = |1 − 2t| on [0, 1]
    assert 0.4 <= float(inside.location) <= 0.6
    high = dp.pure.estimate(zoo.Laplace(), PAIR, floor=10.0, **kwargs)
    assert high.value == 0.0


def test_region_of_discrete_outputs():
    nm = zoo.ReportNoisyMax(1.5)
    kwargs = {"n": 20_000, "rng": 0}
    by_words = dp.pure.estimate(nm, nm.pair, region=["3", "4"], **kwargs)
    by_range = dp.pure.estimate(nm, nm.pair, region=(2.5, 4.5), **kwargs)
    assert by_words.location in ("3", "4")
    assert by_words.value == by_range.value


def test_deterministic_mechanisms_give_zero_or_infinity():
    constant = dp.pure.estimate(lambda x, size, rng: np.zeros(size), PAIR, n=100)
    assert constant.value == 0.0
    tell = dp.pure.estimate(lambda x, size, rng: np.full(size, x), PAIR, n=100)
    assert tell.value == np.inf
    assert dp.pure.lower_bound(lambda x, size, rng: np.full(size, x), PAIR, n=100).value == np.inf
    assert dp.pure.lower_bound(lambda x, size, rng: np.zeros(size), PAIR, n=100).value == 0.0


def test_vectors_up_to_three_coordinates(seed):
    for d in (2, 3):
        pair = (np.zeros(d), np.eye(d)[0])
        estimate = dp.pure.estimate(zoo.Laplace(), pair, n=100_000, rng=seed)
        assert 0.6 < estimate.value < 1.6
    with pytest.raises(InvalidInput, match="4 coordinates"):
        dp.pure.estimate(zoo.Laplace(), (np.zeros(4), np.eye(4)[0]), n=1000)


@pytest.mark.parametrize(
    "mechanism", [zoo.Laplace(), zoo.DiscreteLaplace(), zoo.SVT(3, 1.0)], ids=str
)
@pytest.mark.parametrize("n", [2, 3, 10, 50])
def test_tiny_samples_give_finite_answers(mechanism, n):
    assert np.isfinite(dp.pure.estimate(mechanism, mechanism.pair, n=n, rng=1).value)
    assert dp.pure.lower_bound(mechanism, mechanism.pair, n=max(n, 4), rng=1).value >= 0


# --- the bound


def test_bound_names_the_worst_pair_and_keeps_all_estimates(seed):
    pairs = [(0.0, b / 10) for b in (2, 10, 5)]
    bound = dp.pure.lower_bound(zoo.Laplace(), pairs, n=20_000, n_bound=50_000, rng=seed)
    assert bound.pair[1] == 1.0
    assert len(bound.estimates) == 3
    assert np.argmax(bound.estimates) == 1
    assert bound.guarantee == "asymptotic"
    assert "MPL" in str(bound)


def test_pairs_may_be_an_iterator_of_many(seed):
    grid = dp.neighbours.grid(0.0, np.linspace(0, 1, 201))
    bound = dp.pure.lower_bound(zoo.Laplace(), grid, n=2000, n_bound=20_000, rng=seed)
    assert len(bound.estimates) == 200
    assert bound.pair[1] > 0.6


def test_bound_from_samples_uses_each_draw_once(seed):
    samples = dp.draw(zoo.Laplace(), PAIR, n=100_000, rng=seed)
    bound = dp.pure.lower_bound(samples)
    assert 0.85 < bound.value < 1.05
    assert len(samples) == 0
    again = dp.draw(zoo.Laplace(), PAIR, n=1000, rng=seed)
    with pytest.raises(NotEnoughDraws):
        dp.pure.lower_bound(again, n=900, n_bound=900)


def test_a_floor_never_inflates_a_bound(seed):
    for k in range(20):
        for floor in (1e-6, 1e-3, 0.2):
            bound = dp.pure.lower_bound(
                zoo.KaryRandomizedResponse(3, 0.5), (0, 1), n=300, floor=floor, rng=seed + k
            )
            assert bound.value < 0.5 + 4 * np.sqrt(2 / 60)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dp.pure.estimate(zoo.Laplace(), PAIR), "n must be given"),
        (lambda: dp.pure.estimate(zoo.Laplace(), n=10), "needs a pair"),
        (lambda: dp.pure.estimate(zoo.Laplace(), [PAIR, PAIR], n=10), "one pair, got 2"),
        (lambda: dp.pure.estimate(zoo.Laplace(), PAIR, n=10, floor=-1.0), "floor must be"),
        (lambda: dp.pure.estimate(zoo.Laplace(), PAIR, n=10, region=(1, 0)), "low < high"),
        (lambda: dp.pure.estimate(zoo.Laplace(), PAIR, n=100, region=(90, 99)), "no draw fell"),
        (lambda: dp.pure.estimate(zoo.Laplace(), PAIR, n=100, region=["x"]), "no draw fell"),
        (lambda: dp.pure.estimate(zoo.Laplace(), PAIR, n=100, bandwidth="x"), "bandwidth must"),
        (lambda: dp.pure.lower_bound(zoo.Laplace(), [], n=100), "list is empty"),
        (lambda: dp.pure.lower_bound(zoo.Laplace(), iter([]), n=100), "iterator is empty"),
        (lambda: dp.pure.lower_bound(zoo.Laplace(), PAIR, n=9, confidence=95), "confidence must"),
        (lambda: dp.pure.lower_bound(lambda x: x, PAIR, n=9), "from_function"),
    ],
)
def test_wrong_input_is_explained(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_the_floor_holds_the_denominator_up_in_the_second_stage_too(seed):
    """SVT5 gives outputs only one side produces: with floor τ no bound exceeds log 1/τ."""
    options = {"n": 50_000, "n_bound": 100_000, "rng": seed}
    free, held = (
        dp.pure.lower_bound(zoo.SVT(5, 0.7), dp.neighbours.patterns(10), floor=floor, **options)
        for floor in (None, 1e-3)
    )
    assert free.value > np.log(1000) > held.value > 2.0


def test_bit_vectors_at_small_n_are_outputs_like_any_other(seed):
    bound = dp.pure.lower_bound(zoo.SVT(6, 1.5), zoo.SVT(6, 1.5).pair, n=200, n_bound=200, rng=seed)
    assert np.isfinite(bound.value)


def test_an_estimate_says_that_the_truth_may_be_infinite(seed):
    """Gaussian noise has ε = ∞, and no number of draws says so."""
    pair = (0.0, 1.0)
    found = dp.pure.estimate(dp.zoo.Gaussian(1.0), pair, n=20_000, rng=seed)
    said = (
        "outputs rarer than 1 in 20,000 cannot be seen with these draws: the true ε may be larger"
    )
    assert said in str(found)
    assert said in str(dp.estimate(dp.zoo.Gaussian(1.0), pair, n=20_000, rng=seed))
    plain = dp.pure.estimate(dp.zoo.RandomizedResponse(1.0), (0, 1), n=20_000, rng=seed)
    assert not plain.about.notes


def test_the_bias_of_an_estimate_in_a_region_is_noted(seed):
    found = dp.pure.estimate(dp.zoo.Laplace(1.0), (0.0, 1.0), region=(-2, 3), n=20_000, rng=seed)
    assert "too large where" in str(found)
    assert "cannot be seen" not in str(found)
