"""Draws that are copies of each other or follow each other are noticed, others are not."""

import itertools
import warnings

import numpy as np
import pytest
from tests.helpers import canonical

import dpassay as dp
from dpassay.errors import DependenceWarning, DependentDraws
from dpassay.sampling.dependence import _multiples, shared_rows, symptoms
from dpassay.testing import PrivacyViolation, assert_private

PAIR = (0.0, 1.0)


def test_the_same_rows_in_another_order_or_format_are_refused(write):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=500), "g": rng.choice(["a", "b"], size=500)}
    order = rng.permutation(500)
    p, q = (
        write("p.parquet", columns),
        write("q.parquet", {k: v[order] for k, v in columns.items()}),
    )
    with pytest.raises(DependentDraws, match="hold the same draws"):
        dp.from_samples(p, q)


@pytest.mark.parametrize("copies", [2, 5])
def test_copied_rows_are_refused(copies, seeds):
    for seed in seeds[:20]:
        rng = np.random.default_rng(seed)
        p, q = (rng.permutation(np.repeat(rng.normal(size=300), copies)) for _ in range(2))
        with pytest.raises(DependentDraws, match="copied"):
            dp.from_samples(p, q)
        rows = np.column_stack([p, p**2])
        with pytest.raises(DependentDraws, match="copied"):
            dp.from_samples(rows, np.column_stack([q, q**2]))


def counts(rng, n, x):
    """Discrete Laplace, ε = 1 between x = 0 and x = 1."""
    q = 1 - np.exp(-1)
    return rng.geometric(q, n) - rng.geometric(q, n) + x


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("copies", [(2, 2), (4, 4), (6, 1), (1, 6), (3, 2)])
def test_copied_rows_of_counts_are_refused_in_any_order(copies, as_frame, seeds):
    pandas = pytest.importorskip("pandas")
    for seed in seeds[:10]:
        rng = np.random.default_rng(seed)
        p, q = (rng.permutation(np.repeat(counts(rng, 9000, x), k)) for x, k in enumerate(copies))
        if as_frame:
            p, q = pandas.DataFrame({"count": p}), pandas.DataFrame({"count": q})
        with pytest.raises(DependentDraws, match="copied"):
            dp.from_samples(p, q)


def test_one_side_of_counts_written_twice_is_doubted(seed):
    rng = np.random.default_rng(seed)
    p, q = counts(rng, 9000, 0), rng.permutation(np.repeat(counts(rng, 2000, 1), 2))
    with pytest.warns(DependenceWarning, match="2 times or a multiple of that"):
        samples = dp.from_samples(p, q)
    assert dp.audit(samples, claim="eps=1").about.guarantee == "heuristic"


def test_common_divisors_of_the_counts_of_independent_draws_are_as_rare_as_is_said(seed):
    """Few values and few draws, uniform and skewed; the first sides with many divisors of their size."""
    rng = np.random.default_rng(seed)
    for values, n in itertools.product((1, 2, 3, 5, 8), (12, 60, 120)):
        for law in (np.ones(values), np.arange(1.0, values + 1), 0.5 ** np.arange(values)):
            draws = rng.multinomial(n, law / law.sum(), size=(2, 3000))
            pairs = [[side[side > 0] for side in pair] for pair in draws.swapaxes(0, 1)]
            chances = np.array([_multiples(pair)[1] for pair in pairs])
            for limit in (0.5, 0.1, 0.01, 0.001):
                often = np.count_nonzero(chances <= limit)
                assert often <= 3000 * limit + 4 * np.sqrt(3000 * limit) + 2, (values, n, limit)


def test_a_few_copied_rows_are_noticed_and_said_in_the_verdict(seeds):
    rng = np.random.default_rng(seeds[0])
    p, q = rng.normal(size=1000), rng.normal(size=1000)
    p[-100:] = p[:100]
    with pytest.warns(DependenceWarning, match="were rows copied"):
        samples = dp.from_samples(rng.permutation(p), q)
    assert any("copied" in note for note in dp.audit(samples, claim="eps=1").about.notes)


def test_outputs_that_repeat_by_themselves_are_not_taken_for_copies(seeds):
    """Lattices, atoms, categories, a choice among many reals, few large counts."""
    for seed in seeds[:30]:
        rng = np.random.default_rng(seed)
        reals = rng.normal(size=700)
        laws = [
            lambda rng=rng: np.round(rng.normal(size=3000), 2),
            lambda rng=rng: 0.1 * np.round(rng.normal(size=3000) * 1000),
            lambda rng=rng: rng.geometric(0.01, size=3000),
            lambda rng=rng: rng.zipf(1.5, size=3000).clip(0, 10**9),
            lambda rng=rng: np.clip(rng.normal(size=3000), -1, 1),
            lambda rng=rng, reals=reals: rng.choice(reals, size=3000),
            lambda rng=rng, reals=reals: rng.choice(reals, size=3000, p=(w := reals**2) / w.sum()),
            lambda rng=rng: rng.integers(0, 2, size=(3000, 9)),
        ]
        for law in laws:
            dp.from_samples(law(), law())
        dp.from_samples(0.3 + rng.geometric(0.01, 3000), 0.7 + rng.geometric(0.01, 3000))


def test_rows_that_follow_each_other_are_noticed_in_one_column_of_many_and_among_mixed_outputs():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(2, 1500)), axis=1)
    wide = rng.normal(size=(2, 1500, 30))
    wide[0, :, 17] = walk[0]
    with pytest.warns(DependenceWarning, match="column 18"):
        samples = dp.from_samples(*wide)
    assert "correlated" in samples.notes[0]
    mixed = [
        [None if u < 0.3 else float(v) for u, v in zip(rng.random(1500), w, strict=True)]
        for w in walk
    ]
    with pytest.warns(DependenceWarning, match="correlated"):
        dp.from_samples(*mixed)
    kinds = [["a" if v > 0 else None for v in w] for w in walk]
    with pytest.warns(DependenceWarning, match="kinds of output"):
        dp.from_samples(*kinds)
    coins = [["abc"[k] for k in rng.integers(3, size=1500)] for _ in kinds]
    rows = [list(zip(*two, strict=True)) for two in zip(coins, kinds, strict=True)]
    with pytest.warns(DependenceWarning, match=r"\+0\.\d\d of the values in column 2\)"):
        dp.from_samples(*rows)
    named = [[{"coin": a, "state": b} for a, b in side] for side in rows]
    with pytest.warns(DependenceWarning, match="of the values in column 'state'"):
        dp.from_samples(*named)


def test_a_random_walk_warns():
    def walk(x, size, rng):
        return x + np.cumsum(rng.normal(size=size))

    with pytest.warns(DependenceWarning, match="successive draws"):
        dp.draw(walk, PAIR, n=1000, rng=0)


def test_shared_randomness_across_sides_warns():
    values = np.random.default_rng(0).normal(size=1000)
    with pytest.raises(DependentDraws, match="hold the same draws"):
        dp.from_samples(values, np.random.default_rng(1).permutation(values))
    calls = itertools.count()

    def same_noise(x, size, rng):  # anew for each block, but not for each side
        return np.random.default_rng(next(calls) // 2).normal(size=size)

    with pytest.warns(DependenceWarning, match="share their randomness"):
        dp.draw(same_noise, PAIR, n=1000)


@pytest.mark.parametrize(
    ("shared", "why"),
    [
        (lambda x, y: (x + 101, x + 102), r"ranks \+1.00"),
        (lambda x, y: (x, 1.3 * x[:1500]), r"ranks \+1.00"),
        (lambda x, y: (np.round(3 * x), np.round(3 * x + 1)), r"ranks \+"),
        (lambda x, y: (x, -x), "ranks -1.00"),
        (lambda x, y: (np.sort(x), np.sort(x) + 1), "the same difference"),
        (lambda x, y: (np.sort(x), 1.3 * np.sort(x)), "the same ratio"),
        (lambda x, y: (np.column_stack([y, x]), np.column_stack([-(y**2), x + 1])), "of column 2"),
        (lambda x, y: (np.where(y > 2, np.inf, x), np.where(y < -2, np.nan, x + 1)), "ranks"),
    ],
)
def test_the_same_noise_in_the_rows_of_both_sides_is_doubted(shared, why, seed):
    rng = np.random.default_rng(seed)
    p, q = shared(rng.laplace(size=2000), rng.normal(size=2000))
    with pytest.warns(DependenceWarning, match=f"{why}.*share their randomness, as with one seed"):
        verdict = dp.audit(dp.from_samples(p, q), claim="eps=2")
    assert verdict.guarantee == "heuristic"


def test_independent_rows_do_not_look_like_the_same_noise(seeds):
    """Also sorted ones, and columns that are correlated with one by which the rows are sorted."""
    for seed in seeds[:300]:
        rng = np.random.default_rng(seed)
        n, m = rng.integers(20, 2500, size=2)
        x, y = rng.laplace(size=n), rng.laplace(size=m) + 1
        for p, q in (
            (x, y),
            (np.sort(x), np.sort(y)),
            (x, np.zeros(m)),
            (np.sort(np.round(x)), np.sort(np.round(y))),
            (np.sort(rng.integers(10**5, size=n)), np.sort(rng.integers(10**5, size=n))),
            (x * (rng.random(n) < 0.12), y * (rng.random(m) < 0.12)),
            *(
                [
                    [
                        np.column_stack([np.sort(v), np.sort(v) + rng.normal(size=v.size)])
                        for v in (x, y)
                    ]
                ]
            ),
        ):
            said = " ".join(symptoms(canonical(p), canonical(q)))
            assert "as with one seed" not in said


def test_independent_draws_do_not_warn(seeds):
    for k in seeds[:20]:
        dp.draw(dp.zoo.Gaussian(), PAIR, n=2000, rng=k)
        dp.draw(dp.zoo.RandomizedResponse(), (np.zeros(3), np.ones(3)), n=2000, rng=k)


def test_rounded_outputs_that_meet_by_chance_are_no_symptom(seeds):
    """Six decimals: in 2 000 draws a side now and then a few coincide across, and none within."""
    rng = np.random.default_rng(seeds[0])
    for _ in range(300):
        p, q = (canonical(np.round(x + rng.laplace(size=2000), 6)) for x in (0.0, 1.0))
        assert not list(symptoms(p, q))


def test_a_fixed_seed_in_every_call_is_named_and_no_guarantee_is_exact():
    release = dp.from_function(lambda x: x + np.random.default_rng(0).laplace())
    with pytest.warns(DependenceWarning, match="fixed seed in every call"):
        verdict = dp.audit(release, (0.0, 1.0), "eps=1", n=400, rng=0)
    assert verdict.guarantee is dp.Guarantee.HEURISTIC
    assert "note: every output" in str(verdict)
    with (
        pytest.warns(DependenceWarning),
        pytest.raises(PrivacyViolation, match=r"not known \(heuristic\):\s+every output") as caught,
    ):
        assert_private(release, (0.0, 1.0), "eps=1", n=400)
    assert "wrong with probability" not in str(caught.value)
    # noise of single precision, or on a grid, has fewer bits; its decimals are many all the same
    for noise in (-2.9827890396118164, 10.793878555297852):
        with pytest.warns(DependenceWarning, match="fixed seed in every call"):
            verdict = dp.audit(
                dp.from_function(lambda x, at=noise: at * (1 + x)), (0, 1), "mu=1", n=400
            )
        assert verdict.guarantee is dp.Guarantee.HEURISTIC
    # a constant that is no noise is an output like any other
    constant = dp.from_function(lambda x: 0.5 + x)
    assert dp.audit(constant, (0.0, 1.0), "eps=1", n=400, rng=0).guarantee is dp.Guarantee.EXACT
    # so is one whole number, which noise may be; the cause names the seed
    whole = dp.from_function(lambda x: int(x + np.random.default_rng(0).geometric(0.5)))
    verdict = dp.audit(whole, (0, 1), "eps=1", n=2000, rng=0)
    assert verdict.guarantee is dp.Guarantee.EXACT
    assert "or a fixed seed" in str(verdict)


def test_a_fixed_seed_in_every_run_of_whole_numbers_is_noticed():
    def release(x, size, rng):
        return x + np.random.default_rng(0).geometric(0.5, size)

    with pytest.raises(DependentDraws, match="fixed seed"):
        dp.audit(release, (0, 1), "eps=1", n=200, rng=0)


def test_correlated_draws_take_the_guarantee_away(seed):
    def walk(x, size, rng):
        return x + np.cumsum(rng.normal(size=size)) / 10

    with pytest.warns(DependenceWarning, match="correlated"):
        verdict = dp.audit(walk, (0.0, 1.0), "eps=1", n=4000, rng=seed)
    assert verdict.guarantee is dp.Guarantee.HEURISTIC
    assert "note: successive draws" in str(verdict)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: np.round(rng.laplace(size=600), 3),
        lambda rng: np.round(rng.normal(size=400), 3),
        lambda rng: rng.integers(0, 16384, size=1500),
        lambda rng: np.round(3 * rng.laplace(size=(300, 3))),
        lambda rng: np.array(["".join(w) for w in rng.choice(list("abcd"), (900, 7))]),
        lambda rng: rng.integers(0, 2, size=2000),
    ],
)
def test_values_that_meet_by_chance_are_no_copies(draw, seeds):
    for seed in seeds[:20]:
        rng = np.random.default_rng(seed)
        dp.from_samples(draw(rng), draw(rng))


@pytest.mark.parametrize("n", [300, 900, 3000])
def test_rows_copied_to_the_other_side_are_refused(n, seed):
    rng = np.random.default_rng(seed)
    p, q = rng.laplace(size=(2, n))
    q[: n // 5] = rng.permutation(p)[: n // 5]
    with pytest.raises(DependentDraws, match="the same draws"):
        dp.from_samples(p, q)


def test_no_result_keeps_a_guarantee_that_its_draws_do_not_support():
    """Every verb that promises something, on samples that look dependent."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.normal(size=(2, 4000)), axis=1) / 10

    def samples(discrete=False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DependenceWarning)
            p, q = np.round(walks) if discrete else walks
            # a file is shuffled, but what it looked like before is remembered
            return dp.from_samples(p, q + 1.0)

    heuristic = dp.Guarantee.HEURISTIC
    assert samples().doubts
    assert dp.audit(samples(), claim="eps=1").guarantee is heuristic
    assert dp.bound(samples()).guarantee is heuristic
    assert dp.pure.lower_bound(samples()).guarantee is heuristic
    for method in (dp.renyi.Softmax(), dp.renyi.Variational()):
        assert dp.renyi.lower_bound(samples(), order=2, method=method).guarantee is heuristic
    assert dp.tradeoff.audit(samples(), claim=dp.GaussianDP(1.0)).guarantee is heuristic
    found = dp.verify(samples(discrete=True), claim="eps=1, delta=0.1")
    assert found.guarantee is heuristic
    assert found.about.guarantee is heuristic
    verdict = dp.audit(dp.zoo.Laplace(1.0), PAIR, "eps=0.5", n=4000, rng=0)
    assert dp.replay(verdict, samples()).guarantee is heuristic


def _discrete(law, n, rng):
    match law:
        case "poisson":
            return rng.poisson(100, n).astype(float)
        case "geometric":
            return rng.geometric(0.02, n).astype(float)
        case "rounded":
            return np.round(rng.normal(size=n), 2)
    return np.where(rng.random(n) < 0.03, 0.0, np.round(rng.normal(size=n), 4))  # an atom


@pytest.mark.parametrize("law", ["poisson", "geometric", "rounded", "atom"])
@pytest.mark.parametrize("sizes", [(6000, 8), (6000, 50), (60, 2000), (2000, 2000)])
def test_small_files_share_values_without_being_copies(law, sizes, seeds):
    for seed in seeds[:60]:
        rng = np.random.default_rng(seed)
        p, q = (canonical(_discrete(law, n, rng)) for n in sizes)
        assert shared_rows(p, q) is None


@pytest.mark.parametrize(
    ("decimals", "sizes", "share"),
    [(15, (6000, 200), 0.2), (6, (6000, 200), 1.0), (4, (2000, 2000), 0.2)],
)
def test_copies_in_a_small_file_or_of_rounded_numbers_are_noticed(decimals, sizes, share, seeds):
    for seed in seeds[:10]:
        rng = np.random.default_rng(seed)
        p, q = (np.round(rng.normal(size=n), decimals) for n in sizes)
        copies = int(share * min(sizes))
        q[:copies] = p[:copies]
        assert shared_rows(canonical(p), canonical(q)) is not None


def test_scores_beside_labels_are_doubted():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    scores = labels + rng.normal(size=400)
    for sides in ((scores, labels), (labels, scores)):
        with pytest.warns(DependenceWarning, match=r"are they labels.*scores\[labels == 1\]"):
            found = dp.audit(dp.from_samples(*sides), claim="eps=1")
        assert found.guarantee == "heuristic"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.from_samples(scores[labels == 1], scores[labels == 0])
        dp.from_samples(labels, rng.integers(2, size=400))


def test_a_counter_or_a_time_beside_the_value_is_noticed():
    count = itertools.count()
    rng = np.random.default_rng(0)
    for output in (
        lambda x: {"id": next(count), "n": x + float(rng.laplace())},
        lambda x: (next(count) / 7, x + float(rng.laplace())),
    ):
        with pytest.warns(DependenceWarning, match="rises from draw to draw"):
            verdict = dp.audit(dp.from_function(output), (0.0, 1.0), "eps=1", n=400, rng=0)
        assert verdict.guarantee == "heuristic"
    rows = [{"meta": {"t": k, "m": 1.0}, "out": float(rng.laplace())} for k in range(800)]
    with pytest.warns(DependenceWarning, match=r"column output\['meta'\]\['t'\] rises"):
        dp.from_samples(rows[:400], rows[400:])
    rows = [{"id": k, "out": float(rng.laplace())} for k in range(800)]
    with pytest.warns(DependenceWarning, match="column 'id' rises"):
        dp.from_samples(rows[:400], rows[400:])


def test_sorted_rows_are_noted_and_not_doubted(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(2, 500))
    samples = dp.from_samples(p, np.sort(q))
    (note,) = samples.notes
    assert note.startswith("the rows on the second input are sorted")
    assert dp.audit(samples, claim="eps=1").guarantee == "exact"
    assert dp.from_samples(p, q).notes == ()
    assert dp.from_samples(np.zeros(500), np.zeros(500)).notes == ()


@pytest.mark.parametrize("kind", [np.asarray, list, lambda x: {"w": list(x), "t": "a"}])
def test_one_output_a_side_is_doubted_whatever_its_kind(kind):
    def seeded(data):
        return kind(data + np.random.default_rng(42).normal(size=5))

    with pytest.warns(DependenceWarning, match="a generator is made anew with a fixed seed"):
        verdict = dp.audit(dp.from_function(seeded), (0.0, 1.0), "mu=1", n=300)
    assert verdict.guarantee == "heuristic"


def test_few_rare_values_are_no_correlation():
    rng = np.random.default_rng(0)
    for _ in range(300):
        rare = np.where(rng.random((2, 250, 1)) < 0.1, rng.integers(1, 9, (2, 250, 1)), 0)
        assert not list(symptoms(canonical(rare[0]), canonical(rare[1])))


@pytest.mark.parametrize(
    "far", [lambda z: 1e10 + z, lambda z: 1.7e9 + 0.4 * z, lambda z: np.where(z > 6, 1e18, z)]
)
def test_independent_numbers_far_out_are_no_shared_noise(far, seeds):
    rng = np.random.default_rng(seeds[0])
    for sort in (np.asarray, np.sort):
        p, q = (canonical(sort(far(x + rng.laplace(size=2000)))) for x in (0.0, 1.0))
        assert not any("share their randomness" in one for one in symptoms(p, q))
