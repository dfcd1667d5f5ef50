"""Lowest bits and cells of numbers against slow oracles, and what an audit makes of them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.helpers import canonical, objects

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.outputs.canonical import align
from dpassay.outputs.events import Event
from dpassay.outputs.representations import CELLS, Bits, LowestBit, powers

PAIR = (0.0, 1.0)
#: Draws a side.
N = 8000


# --- lowest and highest bits


def slow_powers(x):
    """From the exact fraction of a double: an odd numerator times a power of two."""
    if x == 0:
        return (2001 if math.copysign(1, x) < 0 else 2000), 0
    exact = abs(Fraction(x))
    low = 0
    while exact.denominator > 1:
        exact, low = exact * 2, low - 1
    while exact.numerator % 2 == 0:
        exact, low = exact / 2, low + 1
    return low, low + exact.numerator.bit_length() - 1


EDGES = [0.0, -0.0, 1.0, -1.0, 0.1, math.pi, 1e308, -1e308, 1.7976931348623157e308, 2.0**1023]
EDGES += [5e-324, -5e-324, 2.0**-1022, np.nextafter(2.0**-1022, 0), 1e-310, 3 * 5e-324]
EDGES += [2.0**53 - 1, 2.0**53, 2.0**53 + 2, float(np.float32(0.1)), float(np.float32(1e-45))]
EDGES += [float(k) for k in (2, 3, 12, 1024, -7, 10**15, 6 * 2**40)]


def test_powers_of_edges():
    low, top = powers(np.array(EDGES))
    assert list(zip(low.tolist(), top.tolist(), strict=True)) == [slow_powers(x) for x in EDGES]


def test_powers_of_any_doubles(seed):
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 2**63, 400, dtype=np.int64) * rng.choice([-1, 1], 400)
    values = raw.view(np.float64)
    values = np.concatenate([values[np.isfinite(values)], rng.integers(-99, 99, 50) / 64.0])
    values = np.concatenate([values, rng.normal(size=100).astype(np.float32).astype(float)])
    low, top = powers(values)
    assert list(zip(low.tolist(), top.tolist(), strict=True)) == [
        slow_powers(x) for x in values.tolist()
    ]
    bits = values != 0
    assert np.array_equal(top[bits], [math.frexp(x)[1] - 1 for x in values[bits]])


def test_powers_leave_their_argument_alone_and_take_any_layout():
    grid = np.arange(1.0, 13.0).reshape(3, 4)
    before = grid.copy()
    low, _ = powers(grid[:, 1])
    assert low.tolist() == [1, 1, 1]  # 2, 6, 10
    assert np.array_equal(grid, before)


# --- cells


def cells_of(values, columns=1, origins=None):
    outputs = canonical(np.asarray(values))
    bits = Bits(tuple(range(columns)), np.zeros(columns, int) if origins is None else origins)
    return bits, bits.rows(outputs)


def test_a_cell_is_sign_power_and_lowest_bit(seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.laplace(size=300), rng.integers(-9, 9, 100) / 8, [0.0, -0.0]])
    _, rows = cells_of(values)
    cell = rows[:, 0]
    assert cell.min() >= 0
    assert cell.max() < CELLS
    wanted = [(math.copysign(1, x), slow_powers(x)) for x in values.tolist()]
    for one in range(0, 402, 7):
        same = np.array([w == wanted[one] for w in wanted])
        assert np.array_equal(cell == cell[one], same)


def test_float32_float64_and_integers_of_the_same_values_have_the_same_cells(seed):
    rng = np.random.default_rng(seed)
    single = rng.normal(size=500).astype(np.float32)
    assert np.array_equal(cells_of(single)[1], cells_of(single.astype(np.float64))[1])
    whole = rng.integers(-(2**20), 2**20, 500)
    assert np.array_equal(cells_of(whole)[1], cells_of(whole.astype(np.float64))[1])
    assert np.array_equal(cells_of(whole)[1], cells_of(whole.astype(np.int32))[1])


def said(words, x):
    """Whether a number is what the words of a cell say, by reading them."""
    if words.startswith("output is "):
        return x == 0 and str(x) == words.removeprefix("output is ")
    low, top = slow_powers(x)
    size, bit = words.split(" with lowest set bit ")
    minus = "−output" in size
    if x == 0 or minus != (x < 0):
        return False
    ends = [parsed(part) for part in size.replace("−", "").split(" ") if part[0].isdigit()]
    inside = ends[0] <= abs(x) < ends[1] if len(ends) == 2 else abs(x) >= ends[0]
    if bit.endswith("places below its highest"):
        return inside and top - low == int(bit.split()[0])
    return inside and 2.0**low == parsed(bit)


def parsed(power):
    base, _, exponent = power.partition("^")
    return float(base) ** int(exponent or 1)


def test_words_of_a_cell_hold_for_its_members_and_for_no_others(seed):
    rng = np.random.default_rng(seed)
    spread = rng.integers(-60, 60, 200)  # beyond the cells on both sides
    far = rng.choice([-1, 1], 200) * rng.integers(1, 64, 200) * 2.0**spread
    values = np.concatenate([rng.laplace(size=100), rng.integers(-8, 8, 60) / 4, far, [0.0, -0.0]])
    bits, rows = cells_of(values)
    for cell in np.unique(rows):
        words = bits.words(0, int(cell))
        assert [said(words, x) for x in values.tolist()] == (rows[:, 0] == cell).tolist(), words


def test_words_name_the_coordinate_and_what_is_not_there():
    both = canonical(np.array([[1.0, 0.5]]))
    bits = Bits.learn(both, both)
    assert bits.words(1, int(bits.rows(both)[0, 1])) == "2^-1 ≤ x2 < 1 with lowest set bit 2^-1"
    some = canonical(objects(None, 1.5))
    mixed = Bits.learn(some, some)
    assert mixed.words(0, int(mixed.rows(some)[0, 0])) == "output is 0.0 or not there"


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("above", [True, False])
def test_words_of_the_lowest_bit_hold_for_the_event(sign, above, seed):
    from dpassay.outputs.score_models import Polynomial, ScoreFunction

    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.laplace(size=300), rng.integers(-9, 9, 50) / 4])
    outputs = canonical(values)
    score_function = ScoreFunction("lowest bit", LowestBit(0), Polynomial(0.0, np.array([sign])))
    low = np.array([slow_powers(x)[0] for x in values.tolist()])
    scores = score_function.score(outputs)
    places = np.unique(scores)
    for threshold in np.concatenate([places, (places[1:] + places[:-1]) / 2]):
        words = score_function.words(threshold, above)
        if "lowest set bit" in words:
            edge = math.log2(parsed(next(w for w in words.split() if w[0].isdigit()).strip(",")))
            wanted = low <= edge if words.endswith("smaller") else low >= edge
        else:
            is_what = words.removeprefix("the output is ")
            wanted = {"anything": low < 9999, "0": values == 0, "not 0": values != 0}[is_what]
        assert np.array_equal(wanted, scores >= threshold if above else scores <= threshold), words


def test_a_cell_depends_on_the_output_alone():
    """Shorter outputs in a block of their own lack the columns of longer ones."""
    short, long = objects((1.5,), (0.25,)), objects((1.5,), (0.25,), (1.0, 2.0, 3.0))
    bits = Bits((0, 1, 2), np.zeros(3, int))
    assert np.array_equal(bits.rows(canonical(short)), bits.rows(canonical(long))[:2])
    lowest = LowestBit(2)
    assert np.array_equal(lowest.rows(canonical(short)), lowest.rows(canonical(long))[:2])
    wide, narrow = align([canonical(long), canonical(short)])
    assert np.array_equal(bits.rows(narrow), bits.rows(wide)[:2])


# --- audits


def naive_single(x, n, rng):
    return np.float32(x) + rng.laplace(size=n).astype(np.float32)


def naive_vector(x, n, rng):
    out = np.rint(rng.laplace(size=(n, 5)) * 2**20) / 2**20
    out[:, 3] = x + rng.laplace(size=n)
    return out


def naive_mixed(x, n, rng):
    noise, hidden = rng.laplace(size=n), rng.random(n) < 0.2
    return [
        None if h else ("count", x + float(v)) for h, v in zip(hidden.tolist(), noise, strict=True)
    ]


NAIVE = {
    "Laplace": (dp.zoo.NaiveLaplace(), PAIR, "eps=1"),
    "inputs that are no binary fractions": (dp.zoo.NaiveLaplace(), (0.1, 1.1), "eps=1"),
    "Gaussian": (dp.zoo.NaiveGaussian(), PAIR, "mu=1"),
    "float32": (naive_single, PAIR, "eps=1"),
    "vector": (naive_vector, PAIR, "eps=1"),
    "mixed": (naive_mixed, PAIR, "eps=1"),
}


@pytest.mark.parametrize("name", NAIVE)
def test_noise_in_floating_point_is_refuted_by_its_bits_and_by_nothing_else(name, seeds):
    mechanism, pair, claim = NAIVE[name]
    verdict = dp.audit(mechanism, pair, claim, n=N, rng=seeds[0], confidence=0.999)
    assert verdict.violated
    assert verdict.lower_bound > (1.8 if claim == "mu=1" else 2.5)
    assert verdict.witness.event.of_representation
    assert "lowest set bit" in verdict.witness.event.words
    assert any("floating-point representation" in note for note in verdict.about.notes)
    values = dp.audit(mechanism, pair, claim, n=N, rng=seeds[0], confidence=0.999, loss="values")
    assert not values.violated  # claim = truth
    assert not any("floating-point representation" in note for note in values.about.notes)


def test_the_coordinate_that_leaks_is_named(seeds):
    verdict = dp.audit(naive_vector, PAIR, "eps=1", n=N, rng=seeds[0], loss="bits")
    words = verdict.witness.event.words
    assert "x4" in words
    assert not any(f"x{k}" in words for k in (1, 2, 3, 5))


SAFE = {
    "Laplace": (dp.zoo.Laplace(), "eps=1"),
    "Gaussian": (dp.zoo.Gaussian(), "mu=1"),
    "decimals": (lambda x, n, r: np.round(x + r.laplace(size=n), 6), "eps=1"),
    "grid": (lambda x, n, r: np.rint(1024 * (x + r.laplace(size=n))) / 1024, "eps=1"),
    "text": (lambda x, n, r: [float(f"{v:.6g}") for v in x + r.laplace(size=n)], "eps=1"),
    "integers": (dp.zoo.DiscreteLaplace(), "eps=1"),
}


@pytest.mark.parametrize("name", SAFE)
def test_outputs_on_a_grid_are_not_refuted_by_their_bits(name, seeds):
    """At confidence .9999 one audit in 10 000 would be, if the claim is true: six names, 18 audits."""
    mechanism, claim = SAFE[name]
    pair = (0, 1) if name == "integers" else PAIR
    for loss in ("bits", "auto"):
        verdict = dp.audit(
            mechanism, pair, claim, n=4000, rng=seeds[1], confidence=0.9999, loss=loss
        )
        assert not verdict.violated


@pytest.mark.parametrize("name", ["Laplace", "mixed", "vector"])
def test_an_event_of_bits_comes_back_from_json_and_is_replayed(name, seeds):
    mechanism, pair, claim = NAIVE[name]
    verdict = dp.audit(mechanism, pair, claim, n=N, rng=seeds[0])
    again = dp.Verdict.from_json(verdict.to_json())
    event = again.witness.event
    assert not event.live
    assert event.of_representation
    outputs = dp.draw(mechanism, pair, n=2000, rng=seeds[1])
    for side in (outputs.p, outputs.q):
        assert np.array_equal(event.holds(side), verdict.witness.event.holds(side))
    replayed = dp.replay(again, mechanism, n=N, rng=seeds[2])
    assert replayed.violated
    assert replayed.lower_bound > 2.5
    other = {"n": N, "rng": seeds[2], "claim": "eps=1.1"}
    if name in ("vector", "mixed"):
        with pytest.raises(InvalidInput, match="another kind"):
            dp.replay(again, SAFE["Laplace"][0], **other)
    else:
        assert not dp.replay(again, SAFE["Laplace"][0], **other).violated


def test_the_lowest_bit_alone_comes_back_from_json(seeds):
    """Inputs so near that the values tell nothing: what is below the last bit of one input shows."""
    verdict = dp.audit(
        dp.zoo.NaiveLaplace(), (0.0, 2.0**-7), "eps=1", n=60_000, rng=seeds[0], loss="bits"
    )
    assert verdict.violated
    event = Event.from_json(verdict.witness.event.to_json())
    outputs = dp.draw(dp.zoo.NaiveLaplace(), (0.0, 2.0**-7), n=5000, rng=seeds[1])
    assert np.array_equal(event.holds(outputs.p), verdict.witness.event.holds(outputs.p))


def test_small_blocks_of_short_outputs_are_replayed(seeds):
    """Every block must be counted, whatever the longest output in it is."""

    def lists(x, n, rng):
        noise, long = rng.laplace(size=(n, 3)), rng.random(n) < 0.5
        return [
            (x + float(a[0]),) if not two else (0.5, float(a[1]), x + float(a[2]))
            for a, two in zip(noise, long.tolist(), strict=True)
        ]

    verdict = dp.audit(lists, PAIR, "eps=1", n=N, rng=seeds[0])
    assert verdict.violated
    counted = sum(dp.replay(verdict, lists, n=2, rng=seed).witness.n_p for seed in range(20))
    assert counted == 40


def test_a_verdict_says_that_it_is_about_bits_wherever_it_is_printed():
    verdict = dp.audit(dp.zoo.NaiveLaplace(1.0), (0.0, 1.0), "eps=2", n=4000, rng=0)
    assert verdict.violated
    assert verdict.witness.event.of_representation
    assert "floating-point representation" in str(verdict)
    assert str(verdict).count("floating-point representation") == 1


def test_a_divergence_that_is_bounded_by_bits_has_them_as_its_cause():
    """Its witness is an ordinary event: one order of a divergence shows little on any."""

    def release(x, size, rng):
        return x + rng.normal(size=size)

    verdict = dp.audit(release, PAIR, "renyi(order=2)=1", n=20_000, rng=0)
    bound = dp.bound(release, PAIR, "renyi(order=2)", n=20_000, rng=0)
    for found in (verdict, bound):
        assert not found.witness.event.of_representation
        assert found.diagnosis[0].kind == "representation"
        assert any("low-order bits" in note for note in found.about.notes)
    values = dp.audit(release, PAIR, "renyi(order=2)=0.3", n=20_000, rng=0, loss="values")
    assert values.diagnosis[0].kind != "representation"
