"""The hunt: what it finds, what it does not hold against a mechanism, and how it ends."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies

import dpassay as dp
from dpassay import report, settings
from dpassay.errors import InvalidInput, MechanismError
from dpassay.hunting.common_random_numbers import ADDRESS
from dpassay.hunting.result import beside, compared
from dpassay.panels import panel
from dpassay.testing import PrivacyViolation, hunt_private

QUIET = dp.Sampling(progress=False)
SMALL = {"budget": 40_000, "sampling": QUIET}
UNIT = dp.inputs.Reals(0, 1, 5)


def noisy(value, scale, size, rng):
    return np.round(value + rng.laplace(scale=scale, size=size), 4)


def without_times(found):
    return replace(found, families=tuple(replace(one, seconds=0.0) for one in found.families))


def clamped_sum(data, size, rng):
    return noisy(np.clip(data, 0, 1).sum(), 1.0, size, rng)


def squared_sum(data, size, rng):
    """Ten times too little noise where values are at their upper bound."""
    return noisy((10 * data**2).sum(), 1.0, size, rng)


def test_a_hunt_finds_shrinks_and_tests(seed):
    found = dp.hunt(squared_sum, UNIT, "eps=1", rng=seed, **SMALL)
    assert found.violated
    assert found.verdict.lower_bound > 3
    assert found.verdict.witness.pair == found.pair
    assert sorted(np.concatenate(list(found.pair)))[-1] == 1.0
    assert np.sum(found.pair[0] != found.pair[1]) == 1
    assert set(np.unique(np.concatenate(list(found.pair)))) == {0.0, 1.0}
    assert found.pair.relation is dp.Relation.REPLACE_ONE
    assert found.log[0].outcome.startswith("tested")
    assert len(found.log) == found.tried


def test_the_verdict_is_an_audit_of_the_pair_on_streams_of_its_own(seed):
    found = dp.hunt(squared_sum, UNIT, "eps=1", rng=seed, **SMALL)
    again = dp.audit(
        squared_sum, found.pair, "eps=1", n=found.verdict.about.n[0], rng=seed, sampling=QUIET
    )
    assert again == found.verdict


def test_no_stream_of_the_verdict_was_used_in_the_search(seed):
    used = []

    def watched(data, size, rng):
        used.append(tuple(rng.bit_generator.seed_seq.spawn_key))
        return clamped_sum(data, size, rng)

    dp.hunt(watched, UNIT, "eps=1", rng=seed, **SMALL)
    used = [key for key in used if key[0] != ADDRESS]  # coupled ones are used on all pairs
    assert len(set(used)) == len(used)
    final = [key for key in used if key[0] == 0]
    assert final == used[-len(final) :]
    assert final


def test_the_budget_counts_every_draw(seed):
    drawn = [0]

    def counted(data, size, rng):
        drawn[0] += size
        return clamped_sum(data, size, rng)

    found = dp.hunt(counted, UNIT, "eps=1", rng=seed, **SMALL)
    assert drawn[0] == found.draws <= 40_000


def test_the_same_seed_is_the_same_hunt_and_comes_back_from_json(seed):
    one, two = (dp.hunt(squared_sum, UNIT, "eps=1", rng=seed, **SMALL) for _ in range(2))
    assert without_times(one) == without_times(two)
    back = dp.Hunt.from_json(one.to_json())
    assert back == one
    assert str(back) == str(one)


def test_mechanisms_that_keep_their_claim_are_not_called_violations_too_often(seeds):
    from scipy.stats import binom

    runs = 8
    wrong = sum(
        dp.hunt(clamped_sum, UNIT, "eps=1", rng=seed, budget=5000, sampling=QUIET).violated
        for seed in seeds[:runs]
    )
    assert wrong <= binom.ppf(1 - 1e-4, runs, 0.05)


def test_an_exception_inside_the_space_is_a_leak_and_outside_a_refusal(seed):
    def strict(data, size, rng):
        if np.isnan(data).any() or np.max(data, initial=0) > 1 or np.min(data, initial=0) < 0:
            raise ValueError("out of range")
        return clamped_sum(data, size, rng)

    options = {"budget": 12_000, "sampling": QUIET, "outside": True, "rng": seed}
    refused = dp.hunt(strict, UNIT, "eps=1", **options)
    assert not refused.violated
    assert any("refused" in note for note in refused.notes)
    assert any("refused: ValueError: out of range" in one.outcome for one in refused.log)
    counted = dp.hunt(strict, UNIT, "eps=1", failing="outcome", **options)
    assert counted.violated
    assert counted.outside
    assert "failures are outputs" in counted.log[0].outcome
    assert counted.draws <= options["budget"]


def test_an_exception_on_one_side_is_found_and_ignored_if_asked(seed):
    def needs_two(data, size, rng):
        if len(data) < 2:
            raise ValueError("too few")
        return noisy(len(data), 1.0, size, rng)

    space = dp.inputs.Reals(0, 1, (0, 6))
    options = {"relation": "add_remove", "rng": seed, "budget": 30_000, "sampling": QUIET}
    found = dp.hunt(needs_two, space, "eps=1", **options)
    assert found.violated
    assert sorted(map(len, found.pair)) == [1, 2]
    assert not dp.hunt(needs_two, space, "eps=1", failing="ignore", **options).violated


def test_a_mechanism_that_always_fails_is_an_error(seed):
    def broken(data, size, rng):
        raise ValueError("no")

    for failing in ("leak", "ignore"):
        with pytest.raises(MechanismError, match="on every input that was tried: ValueError: no"):
            dp.hunt(broken, UNIT, "eps=1", failing=failing, rng=seed, **SMALL)


def test_what_is_outside_is_tried_only_if_asked_and_named(seed):
    inside = dp.hunt(clamped_sum, UNIT, "eps=1", rng=seed, **SMALL)
    assert not inside.violated
    found = dp.hunt(clamped_sum, UNIT, "eps=1", rng=seed, outside=True, **SMALL)
    assert found.violated
    assert found.outside
    assert found.pair.name.startswith("outside the space")
    assert np.isnan(np.concatenate(list(found.pair))).any()


def test_an_interruption_ends_the_search_and_not_the_hunt(seed, capsys):
    calls = [0]

    def slow(data, size, rng):
        calls[0] += 1
        if calls[0] == 300:
            raise KeyboardInterrupt
        return squared_sum(data, size, rng)

    found = dp.hunt(slow, UNIT, "eps=1", rng=seed, sampling=QUIET)
    assert any("interrupted" in note for note in found.notes)
    assert "Ctrl-C" in capsys.readouterr().err
    assert found.verdict.about.n is not None


def test_seconds_in_place_of_a_budget(seed):
    found = dp.hunt(squared_sum, UNIT, "eps=1", seconds=2.0, rng=seed, sampling=QUIET)
    assert found.violated


@pytest.mark.parametrize("norm", ["each", "l1", "l2"])
def test_queries_stay_within_their_sensitivity(norm, seed):
    def answers(data, size, rng):
        return noisy(data, 1.0, (size, len(data)), rng)

    space, options = dp.inputs.Reals(-5, 5, 2), {"budget": 20_000, "sampling": QUIET}
    found = dp.hunt(answers, space, "eps=1", relation="query", norm=norm, rng=seed, **options)
    apart = np.abs(found.pair[0] - found.pair[1])
    size = {"each": apart.max(), "l1": apart.sum(), "l2": np.sqrt((apart**2).sum())}[norm]
    assert size <= 1 + 1e-12
    if norm == "each":  # together they leak 2, not 1
        assert found.violated
    elif norm == "l1":
        assert not found.violated


def test_a_users_rows_are_added_together(seed):
    def rows(data, size, rng):
        return noisy(len(data), 1.0, size, rng)

    space = dp.inputs.Table(
        {"who": dp.inputs.Integer(0, 4), "what": dp.inputs.Category(["a", "b"])}, rows=(0, 10)
    )
    found = dp.hunt(rows, space, "eps=1", relation="user", user="who", rng=seed, **SMALL)
    assert found.violated
    more = max(found.pair, key=len)
    assert len({row["who"] for row in more} - {row["who"] for row in min(found.pair, key=len)}) == 1


def test_one_cell_is_edited(seed):
    def total(data, size, rng):
        return noisy(sum(row["a"] + row["b"] for row in data), 1.0, size, rng)

    space = dp.inputs.Table({"a": dp.inputs.Real(0, 1), "b": dp.inputs.Real(0, 3)}, rows=2)
    found = dp.hunt(total, space, "eps=1", relation="edit", rng=seed, **SMALL)
    assert found.violated
    changed = [
        key for one, two in zip(*found.pair, strict=True) for key in one if one[key] != two[key]
    ]
    assert changed == ["b"]


def test_a_strategy_of_hypothesis_is_a_space(seed):
    def total(data, size, rng):
        return noisy(sum(data), 1.0, size, rng)

    space = strategies.lists(strategies.integers(0, 5), min_size=1, max_size=5)
    one, two = (
        dp.hunt(total, space, "eps=1", rng=seed, budget=10_000, sampling=QUIET) for _ in range(2)
    )
    assert without_times(one) == without_times(two)
    assert one.violated
    assert all(1 <= len(side) <= 5 for side in one.pair)


def test_rows_of_a_strategy_may_be_anything(seed):
    def total(data, size, rng):
        return noisy(sum(len(word) + array.sum() for word, array in data), 1.0, size, rng)

    row = strategies.tuples(
        strategies.text("ab", max_size=3),
        strategies.just(np.ones(2)) | strategies.just(np.zeros(2)),
    )
    space = strategies.lists(row, min_size=2, max_size=4)
    found = dp.hunt(total, space, "eps=1", rng=seed, budget=10_000, sampling=QUIET)
    assert found.violated


def test_values_of_a_strategy_are_replaced_whole(seed):
    def local(value, size, rng):
        return noisy(value, 1.0, size, rng)

    found = dp.hunt(local, strategies.floats(0, 4), "eps=1", rng=seed, **SMALL)
    assert found.violated


def test_text_says_what_differs():
    pair = dp.Pair([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 9, 10])
    lines = compared(pair)
    assert lines[-3:] == [("−", "8"), ("+", "9"), ("+", "10")]
    assert (" ", "… 3 more that are equal") in lines
    assert compared(dp.Pair([], [])) == [(" ", "no rows on either side")]
    assert compared(dp.Pair({"a": 1}, {"a": 2})) == [("−", "{'a': 1}"), ("+", "{'a': 2}")]


def test_rows_stand_next_to_each_other():
    rows = list(range(20))
    assert beside(dp.Pair(rows, [*rows[:10], *rows[11:]])) == [
        *[(False, text, text) for text in ("0", "1", "… 6 more that are equal", "8", "9")],
        (True, "10", None),
        *[(False, text, text) for text in ("11", "12", "… 5 more that are equal", "18", "19")],
    ]
    assert beside(dp.Pair([1, 2], [1, 3, 4])) == [
        (False, "1", "1"),
        (True, "2", "3"),
        (True, None, "4"),
    ]
    long = beside(dp.Pair([0.0] * 100, [1.0] * 100))
    assert len(long) == 25
    assert long[-1] == (False, "… 76 more", "… 76 more")


def test_answers_to_queries_are_compared_place_by_place():
    pair = dp.Pair([0, 1, 2, 3, 3, 3], [1, 2, 1, 2, 2, 2], dp.Relation.SENSITIVITY)
    assert all(differs for differs, *_ in beside(pair))
    assert compared(pair)[:4] == [("−", "0"), ("+", "1"), ("−", "1"), ("+", "2")]
    last = dp.Pair([0.0] * 40, [0.0] * 39 + [1.0], dp.Relation.SENSITIVITY)
    assert compared(last)[-2:] == [("−", "0.0"), ("+", "1.0")]
    assert len(compared(last)) == 7


def test_notebooks_panels_and_reports_show_the_pair_and_the_log(seed):
    found = dp.hunt(squared_sum, UNIT, "eps=1", rng=seed, **SMALL)
    assert "violation of 1-DP" in found._repr_html_()
    page = report.render([found])
    assert "Search for inputs that violate a claim of 1-DP" in page
    assert page.count('class="only-first"') == page.count('class="only-second"') == 1
    assert page.count("<td>left behind</td>") == sum(t.outcome == "left behind" for t in found.log)
    assert "Save hunt.json" in page
    assert "dpassay replay hunt.json TARGET" in page
    both = report.render([found, found.verdict])
    assert "2 of 2 claims are refuted" in both
    assert both.count('class="only-first"') == 1
    assert panel(found).border_style == "red"
    assert {"name", "draws", "bound", "outcome", "pair"} == set(found.table()[0])


def test_pytest_helper(seed, capsys):
    with pytest.raises(PrivacyViolation, match="inputs") as caught:
        hunt_private(squared_sum, UNIT, "eps=1", budget=40_000, rng=seed)
    assert caught.value.verdict.violated
    with settings.using(relation="add_remove"):
        some = dp.inputs.Reals(0, 1, (1, 5))
        found = hunt_private(clamped_sum, some, "eps=1", budget=40_000, rng=seed)
    assert not found.violated
    assert found.pair.relation is dp.Relation.ADD_REMOVE
    said = capsys.readouterr().out
    assert said.startswith(f"{found.verdict.headline}; ")
    assert f"{found.tried:,} pairs were tried" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"relation": "sideways"}, "relation must be"),
        ({"relation": "sensitivity_one"}, "for a hunt"),
        ({"relation": "add_remove"}, "changes the number of rows"),
        ({"relation": "user"}, "go together"),
        ({"relation": "user", "user": "who"}, "changes the number|user must name"),
        ({"relation": "query", "norm": "l3"}, "norm must be"),
        ({"failing": "maybe"}, "failing must be"),
        ({"budget": 10}, "budget must be"),
    ],
)
def test_wrong_options_are_answered(options, said):
    with pytest.raises(InvalidInput, match=said):
        dp.hunt(clamped_sum, UNIT, "eps=1", **options)


def test_a_budget_that_cannot_refute_anything_is_refused_before_the_first_draw():
    def never(data, size, rng):
        raise AssertionError

    with pytest.raises(InvalidInput, match="cannot refute 9-DP"):
        dp.hunt(never, UNIT, "eps=9", budget=5000)


def test_the_command_line_ends_like_an_audit(tmp_path, capsys):
    from dpassay.cli import run

    space = tmp_path / "space.json"
    space.write_text('{"type": "Integer", "low": 0, "high": 20}')
    options = ["--space", str(space), "--relation", "query", "--budget", "20000", "-q"]
    target = "zoo:DiscreteLaplace(scale=1.0)"
    place = tmp_path / "found.json"
    assert run(["hunt", target, *options, "--claim", "eps=0.5", "--json", str(place)]) == 1
    assert dp.Hunt.from_dict(json.loads(place.read_text())).violated
    assert run(["hunt", target, *options[:-1], "--claim", "eps=0.5", "--json", str(place)]) == 1
    out = "".join(capsys.readouterr().out.replace("│", "").split())
    assert "".join(f"dpassay replay {place} TARGET".split()) in out
    assert "add--json" not in out
    assert run(["replay", str(place), target, "-q"]) == 1
    page = tmp_path / "found.html"
    assert run(["hunt", target, *options, "--claim", "eps=1.2", "--report", str(page)]) == 0
    assert "The two inputs" in page.read_text(encoding="utf-8")
    assert run(["hunt", target, *options]) == 2
    space.write_text('{"type": "Integer", "lowest": 0}')
    assert run(["hunt", target, *options, "--claim", "eps=1"]) == 2
    assert "Integer has no field 'lowest'" in capsys.readouterr().err


def test_a_hunt_that_finds_nothing_says_what_its_looks_could_miss():
    """The verdict's power is that of one pair: the others had a few draws each."""

    def hidden(data, size, rng):  # one output in five hundred gives a large value away
        noise = np.round(10 * rng.laplace(size=size), 3)
        return np.where((rng.random(size) < 0.002) & (max(data) > 0.99), 1e9, noise)

    found = dp.hunt(hidden, dp.inputs.Reals(0, 1, 3), "eps=1", budget=20_000, rng=0)
    assert not found.violated
    assert any("is easily missed that shows in" in note for note in found.notes)
    few = dp.hunt(hidden, dp.inputs.Reals(0, 1, 3), "eps=1", budget=2000, rng=0)
    assert (
        "about 2 draws a side, with which a leak is easily missed that shows in some outputs"
        in str(few)
    )
    assert "easily missed" in str(found)


def test_a_claim_with_delta_gets_the_draws_that_show_it(seed):
    """A key is released with probability 0.012, and δ is 0.003: a thousand draws do not tell."""

    def keys(data, size, rng):
        out = [{} for _ in range(size)]
        for key, count in data.items():
            for k in np.flatnonzero(count + rng.laplace(size=size) > 4.73).tolist():
                out[k][key] = 1
        return out

    space = dp.inputs.Counts(["a", "b", "c"])
    found = dp.hunt(
        keys, space, "eps=1, delta=0.003", relation="add_remove", rng=seed, sampling=QUIET
    )
    assert found.violated
    assert sorted(map(len, found.pair)) == [0, 1]


@pytest.mark.parametrize(
    "space",
    [
        dp.inputs.Table({"key": dp.inputs.Category(["a", "b"])}, rows=(0, 12)),
        dp.inputs.Integers(0, 1, length=(0, 12)),
    ],
    ids=["table", "integers"],
)
def test_the_first_row_gets_these_draws_in_spaces_of_few_rows_too(space, seed):
    """A key is released with probability 0.013, and δ is 0.001."""

    def keys(rows, size, rng):
        held = [next(iter(row.values())) if isinstance(row, dict) else int(row) for row in rows]
        out = [{} for _ in range(size)]
        for key in set(held):
            noise = rng.geometric(0.632, size) - rng.geometric(0.632, size)
            for k in np.flatnonzero(held.count(key) + noise >= 5).tolist():
                out[k][key] = held.count(key) + int(noise[k])
        return out

    claim = dp.ApproximateDP(1.0, 1e-3, headline="delta")
    options = {"relation": "add_remove", "budget": 100_000, "sampling": QUIET}
    found = dp.hunt(keys, space, claim, rng=seed, **options)
    draws = {one["name"]: one["draws"] for one in found.table()}
    assert draws["the first row against no other"] >= 4000
    assert found.violated


def test_a_sum_that_overflows_far_below_the_largest_is_found(seed):
    def release(data, size, rng):
        total = np.asarray(data).astype(np.int32).sum(dtype=np.int32)
        return np.round(total + rng.laplace(scale=2.0**20, size=size))

    space = dp.inputs.Integers(0, 2**20, length=(1, 3000))
    found = dp.hunt(release, space, "eps=1", budget=60_000, rng=seed, sampling=QUIET)
    assert found.verdict.lower_bound > 4


def test_a_slow_mechanism_gets_a_screening_and_a_verdict(seed):
    def slow(data, size, rng):
        return noisy(4 * data.max(), 1.0, size, rng)

    found = dp.hunt(slow, UNIT, "eps=1", budget=600, rng=seed, sampling=QUIET)
    assert found.violated
    assert found.draws <= 600
    assert found.tried > 30


def test_the_first_line_of_an_exception_that_is_not_empty_is_shown(seed):
    def strict(data, size, rng):
        if data.max() > 1:
            raise ValueError("\n\n  too large\nsee the manual")
        return clamped_sum(data, size, rng)

    found = dp.hunt(strict, UNIT, "eps=1", outside=True, rng=seed, **SMALL)
    assert any(one.outcome == "refused: ValueError: too large" for one in found.log)


def test_the_search_is_described_by_kinds_of_pairs_and_charted(seed):
    found = dp.hunt(squared_sum, UNIT, "eps=1", rng=seed, **SMALL)
    assert sum(one.tried for one in found.families) == found.tried
    bounds = [one.bound for one in found.families]
    assert bounds == sorted(bounds, reverse=True)
    assert max(one.difference for one in found.families) > 3
    at, predicted = found.path()
    assert at.size == sum(one.bound is not None for one in found.log)
    assert np.all(np.diff(at) >= 0)
    assert max(predicted) > 3
    assert "predicted bound" in found.chart().to_json()


def test_all_attributes_of_one_person_are_changed_at_once(seed):
    """Randomised response on three attributes with ε = 1/2 each: two of them keep the claim."""

    def reports(data, size, rng):
        bits = np.array([value == "yes" for value in data[0].values()])
        return np.where(rng.random((size, 3)) < 1 / (1 + np.exp(-0.5)), bits, ~bits).astype(int)

    answer = dp.inputs.Category(["no", "yes"])
    space = dp.inputs.Table({"a": answer, "b": answer, "c": answer}, rows=1)
    found = dp.hunt(reports, space, "eps=1.1", rng=seed, sampling=QUIET)
    assert found.violated
    (one,), (two,) = found.pair
    assert all(one[name] != two[name] for name in "abc")


def test_features_that_take_the_pair_get_it_in_a_hunt():
    """What an analyst knows about the record in which the inputs differ guides the search too."""

    def release(rows, size, rng):
        return [[round(float(x + rng.laplace(scale=4.0)), 3) for x in rows] for _ in range(size)]

    def moved(output, pair):
        first, second = pair
        assert len(first) == len(second) == len(output)
        return int(any(abs(y - x) < 1e-9 for x, y in zip(second, output, strict=True)))

    space = dp.inputs.Reals(0, 1, length=2)
    found = dp.hunt(release, space, "eps=1", features=[moved], budget=3000, rng=0)
    assert not found.verdict.violated


def test_a_space_of_two_inputs_comes_to_an_end():
    """No pair is left to try: the rest of the budget goes to the verdict."""

    def response(data, size, rng):
        return np.where(rng.random(size) < 0.8, data, 1 - data)

    for mechanism in (
        response,
        lambda data, size, rng: response(data, size, np.random.default_rng()),
    ):
        found = dp.hunt(mechanism, dp.inputs.Category([0, 1]), "eps=1", budget=20_000, rng=0)
        assert found.violated
        assert found.tried <= 4


def test_inputs_side_by_side_show_the_column_that_differs():
    table = [{f"column {k}": k * row for k in range(30)} for row in range(1, 10)]
    other = [dict(row) for row in table]
    other[5]["column 27"] = 99
    pair = dp.Pair(table, other)
    marked = {mark: text for mark, text in compared(pair) if mark != " "}
    assert "'column 27': 162" in marked["−"]
    assert "'column 27': 99" in marked["+"]
    assert str(pair).endswith("differ at [5]['column 27']: 162 against 99")


def test_a_pair_within_the_space_that_keeps_the_claim_does_not_hide_one_outside():
    """NaN passes the clamp: calibrated screening predicted violations of pairs that are at the claim."""

    def release(rows, size, rng):
        total = float(np.sum(np.where(rows > 1, 1.0, np.where(rows < 0, 0.0, rows))))
        return np.round(total + rng.laplace(size=size), 3)

    for seed in range(4):
        found = dp.hunt(
            release, dp.inputs.Reals(0, 1, 10), "eps=1", outside=True, rng=seed, sampling=QUIET
        )
        assert found.violated
        assert found.outside


def test_rows_that_are_read_as_a_frame_are_sent_to_convert(seed):
    def count(frame, size, rng):
        return (frame["age"] > 9).sum() + rng.laplace(size=size)

    table = dp.inputs.Table({"age": dp.inputs.Integer(0, 99)})
    with pytest.raises(MechanismError, match='convert="pandas" makes frames'):
        dp.hunt(count, table, "eps=1", rng=seed, **SMALL)
