"""Named features of outputs: against slow counts, and as functions of the single output."""

import datetime
import json
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.outputs import features as ft
from dpassay.outputs.canonical import all_of, from_raw
from dpassay.outputs.leaves import LeafTable, _cents
from dpassay.outputs.named_features import Feature, NamedFeatures, words_of
from dpassay.outputs.score_models import ScoreFunction, Steps
from dpassay.outputs.targets import targets_of
from dpassay.results.verdict import Verdict
from dpassay.scores import training
from dpassay.scores.serializable import _steps, feature_curve
from dpassay.scores.training import best_features


def named(outputs):
    """Every feature of every output, by family and name."""
    table = LeafTable.of(from_raw(outputs, len(outputs)))
    found = {}
    for family, extract in ft.FAMILIES.items():
        for owner, _, value, first, second in zip(*extract(table, None), strict=True):
            name = words_of(table, family, int(first), int(second))
            found[int(owner), family, name] = float(value)
    return found


def random_lists(rng, many):
    return [[str(x) for x in rng.integers(0, 5, rng.integers(1, 9))] for _ in range(many)]


def test_elements_neighbours_and_positions_are_those_of_slow_counts(seed):
    outputs = random_lists(np.random.default_rng(seed), 40)
    found = named(outputs)
    for k, items in enumerate(outputs):
        for item, count in Counter(items).items():
            assert found[k, "values", f"the number of times that the items = '{item}'"] == count
            place = items.index(item) + 1
            assert found[k, "positions", f"the place of '{item}' in the items"] == place
        for (a, b), count in Counter(pairwise(items)).items():
            assert found[k, "neighbours", f"how often '{b}' follows '{a}' in the items"] == count
        assert found[k, "summaries", "the count of the items"] == len(items)
        distinct = len(set(items))
        assert found[k, "summaries", "the number of distinct values of the items"] == distinct


def test_summaries_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    outputs = [rng.integers(-3, 9, rng.integers(2, 9)).tolist() for _ in range(40)]
    found = named(outputs)
    for k, x in enumerate(outputs):
        slow = {
            "sum": sum(x),
            "mean": np.mean(x),
            "minimum": min(x),
            "maximum": max(x),
            "range": max(x) - min(x),
            "standard deviation": np.std(x),
            "number of distinct values": len(set(x)),
            "number of ties": len(x) - len(set(x)),
            "smallest gap": np.diff(np.sort(x)).min(),
            "largest step": np.abs(np.diff(x)).max(),
            "number of descents": np.sum(np.diff(x) < 0),
            "first": x[0],
            "last": x[-1],
            "place of the maximum": x.index(max(x)),
            "number of zeros": x.count(0),
        }
        for name, value in slow.items():
            assert found[k, "summaries", f"the {name} of the items"] == pytest.approx(value)
        for rank, value in enumerate(sorted(x)):
            name = f"number {rank + 1} of the items in ascending order"
            assert found[k, "sorted", name] == value


def tables(rng, many):
    """Rows of two texts and a whole number."""
    return [
        [
            {"a": str(a), "b": str(b), "n": int(c)}
            for a, b, c in rng.integers(0, 3, (rng.integers(3, 12), 3))
        ]
        for _ in range(many)
    ]


def test_rows_pairs_and_sums_by_key_are_those_of_slow_counts(seed):
    outputs = tables(np.random.default_rng(seed), 30)
    found = named(outputs)
    for k, rows in enumerate(outputs):
        for row, count in Counter(tuple(row.items()) for row in rows).items():
            listed = [f"{name} = {v!r}" for name, v in row]
            own = [
                value
                for (owner, family, name), value in found.items()
                if owner == k and family == "rows" and all(part in name for part in listed)
            ]
            assert own == [count]
        for a in {row["a"] for row in rows}:
            total = sum(row["n"] for row in rows if row["a"] == a)
            assert found[k, "by_key", f"the sum of n where a = '{a}'"] == total


def test_frames_and_lists_of_dictionaries_have_the_same_features(seed):
    outputs = tables(np.random.default_rng(seed), 10)
    frames = [pd.DataFrame(rows) for rows in outputs]
    found, both = named(frames), named(outputs)
    shared = set(ft.FAMILIES) - {"anywhere", "by_place"}  # those have no columns in their names
    keys = [key for key in found if key[1] in shared and "output's" not in key[2]]
    assert len(keys) > 100
    for key in keys:
        assert found[key] == both[key], key


KINDS = {
    "sets": lambda rng: set(map(str, rng.integers(0, 9, 4))),
    "frames": lambda rng: pd.DataFrame({"a": rng.integers(0, 3, 6), "b": list("xyzxyz")}),
    "json": lambda rng: {
        "k": {"m": [1, int(rng.integers(3))]},
        "t": [{"id": "u", "v": rng.normal()}],
    },
    "vectors": lambda rng: rng.integers(0, 2, 12),
    "matrices": lambda rng: rng.normal(size=(5, 6)),
    "dates": lambda rng: np.datetime64("2020-01-01") + rng.integers(0, 10**6),
    "trees": lambda rng: [[1, [2, "x"]], int(rng.integers(4))],
    "text": lambda rng: "".join(rng.choice(list("abc "), 9)),
    "vectors or none": lambda rng: rng.integers(0, 2, 12) if rng.random() < 0.5 else None,
    "matrices of two shapes": lambda rng: rng.normal(size=(5, 6) if rng.random() < 0.5 else (4, 4)),
    "mostly single numbers": lambda rng: (
        rng.normal(size=1 + (rng.random() < 0.3)).round(2).tolist()
    ),
    "short and long": lambda rng: (
        rng.integers(0, 99, 3 if rng.random() < 0.5 else 900) / 100
    ).tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_features_depend_on_the_single_output(kind, seed):
    """Not on the block it comes in, nor on its place there; and they come back from JSON."""
    rng = np.random.default_rng(seed)
    outputs = [KINDS[kind](rng) for _ in range(60)]
    p, q = from_raw(outputs[:30], 30), from_raw(outputs[30:], 30)
    chosen = NamedFeatures.of(tuple(one for one, _ in best_features(p, q, 200)))
    assert len(chosen.features) > 3
    whole = chosen.rows(from_raw(outputs, 60))
    order = rng.permutation(60)
    again = NamedFeatures.from_json(chosen.to_json())
    for k in order:
        assert np.array_equal(again.rows(from_raw([outputs[k]], 1))[0], whole[k])


@pytest.mark.parametrize("kind", ["vectors", "matrices", "dates", "text"])
def test_features_do_not_depend_on_outputs_of_another_kind_beside_them(kind, seed):
    rng = np.random.default_rng(seed)
    outputs = [KINDS[kind](rng) for _ in range(40)]
    p, q = from_raw(outputs[:20], 20), from_raw(outputs[20:], 20)
    chosen = NamedFeatures.of(tuple(one for one, _ in best_features(p, q, 200)))
    others = [None, [1.25] * 20_000, {"a": "b"}]
    alone = chosen.rows(from_raw(outputs, 40))
    assert np.array_equal(chosen.rows(from_raw([*outputs, *others], 43))[:40], alone)


def test_rows_are_compared_with_the_record_in_which_inputs_differ(seed):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame({"age": rng.integers(20, 60, 9), "city": list("abcabcabc")})
    record = pd.DataFrame({"age": [80], "city": ["z"]})
    (target,) = targets_of((people, pd.concat([people, record])))
    outputs = [
        pd.DataFrame({"age": rng.integers(70, 90, 5), "city": rng.choice(list("az"), 5)})
        for _ in range(40)
    ]
    columns = target.features(LeafTable.of(from_raw(outputs, 40)))
    found = dict(zip(target.names, columns.T, strict=True))
    words = "(age = 80, city = 'z')"
    for k, table in enumerate(outputs):
        agree = (table["age"] == 80).astype(int) + (table["city"] == "z")
        gap = np.minimum((table["age"] - 80).abs() / (80 - people["age"].min()), 1)
        far = (gap + (table["city"] != "z")) / 2
        assert found[f"the number of rows equal to {words}"][k] == (agree == 2).sum()
        some = f"the number of rows that agree with {words} in 1 columns or more"
        assert found[some][k] == (agree > 0).sum()
        near = f"the number of rows within distance 0.1 of {words}"
        assert found[near][k] == (far <= 0.1).sum()
        nearest = f"1 − distance of the nearest row to {words}"
        assert found[nearest][k] == pytest.approx(1 - far.min())
        alone = target.features(LeafTable.of(from_raw([table], 1)))
        assert np.array_equal(alone[0], columns[k])


@pytest.mark.parametrize(
    "pair", [(0, 1), ([1, 2], [3, 4, 5, 6, 7]), (print, 1), ("a", "b"), ({"a": 1}, {"a": 1})]
)
def test_inputs_that_do_not_differ_in_a_few_records_have_no_targets_with_columns_of_a_table(pair):
    table = LeafTable.of(from_raw([[{"x": 1, "y": 2}]], 1))
    for target in targets_of(pair):
        assert not target.features(table).any()


def copied_with_noise(data, size, rng):
    """Wide rows of numbers; in .6 of the tables one is the last record with a little noise."""
    tables = rng.normal(size=(size, 12, 6))
    copied = np.flatnonzero(rng.random(size) < 0.6)
    noisy = data.to_numpy()[-1] + rng.normal(scale=0.05, size=(copied.size, 6))
    tables[copied, rng.integers(0, 12, copied.size)] = noisy
    return [pd.DataFrame(table.round(3), columns=list("abcdef")) for table in tables]


def test_a_record_that_comes_back_with_noise_is_found_by_its_nearest_row(seed):
    data = np.random.default_rng(0).normal(size=(20, 6)).round(3)
    people = pd.DataFrame(data, columns=list("abcdef"))
    pair = dp.Pair(people.iloc[:-1], people)
    verdict = dp.audit(copied_with_noise, pair, "eps=1", n=1000, rng=seed, confidence=0.999)
    assert verdict.violated
    assert "row" in str(verdict.witness.event)
    assert verdict.lower_bound > 3


def word_tables(x, rng):
    """Two columns; the word z occurs on one input only, often enough."""
    words = ["x", "y", "z"] if x else ["x", "y"]
    return pd.DataFrame({"a": rng.choice(["p", "q"], 12), "b": rng.choice(words, 12)})


def test_a_word_that_one_input_alone_produces_is_named():
    verdict = dp.audit(
        dp.from_function(word_tables), (0, 1), "eps=1", n=400, confidence=0.999, rng=7
    )
    assert verdict.violated
    assert "b = 'z'" in str(verdict.witness.event)
    again = Verdict.from_json(verdict.to_json())
    replayed = dp.replay(again, dp.from_function(word_tables), n=400, rng=8)
    assert replayed.violated


# --- features of one's own


def hashed_report(bit, rng):
    """Local hashing: a public seed, and a noisy bit of a hash of the value under that seed."""
    seed = int(rng.integers(2**31))
    own = int(np.random.default_rng([seed, bit]).integers(2))
    return seed, own if rng.random() < 0.97 else 1 - own


def supports_one(report):
    """Whether the report agrees with the value 1."""
    seed, bit = report
    return int(np.random.default_rng([seed, 1]).integers(2)) == bit


def supports_first(report, pair):
    """Whether the report agrees with the first input."""
    seed, bit = report
    return int(np.random.default_rng([seed, pair[0]]).integers(2)) == bit


@pytest.mark.parametrize("feature", [supports_one, supports_first])
def test_a_feature_shows_what_no_general_score_can(feature):
    mechanism = dp.from_function(hashed_report)
    options = {"n": 1000, "confidence": 0.999, "rng": 0}
    plain = dp.audit(mechanism, (0, 1), "eps=0.2", **options)
    assert not plain.violated
    verdict = dp.audit(mechanism, (0, 1), "eps=0.2", features=[feature], **options)
    assert verdict.violated
    assert feature.__name__ in str(verdict.witness.event)
    assert dp.bound(mechanism, (0, 1), "eps", features=[feature], n=1000, rng=0).value > 0.2
    again = dp.replay(verdict, mechanism, features=[feature], n=1000, rng=1)
    assert again.violated
    watched = dp.monitor(mechanism, (0, 1), "eps=0.2", features=[feature], max_n=1000, rng=0)
    assert watched.violated


def test_features_that_are_none_are_named():
    mechanism = dp.from_function(hashed_report)
    with pytest.raises(dp.errors.InvalidInput, match="list of functions of one output"):
        dp.audit(mechanism, (0, 1), "eps=1", n=100, features=["length"])
    with pytest.raises(dp.errors.InvalidInput, match="an output, or an output and the pair"):
        dp.audit(mechanism, (0, 1), "eps=1", n=100, features=[lambda a, b, c: 0])

    def seed(report):
        raise KeyError("seed")

    with pytest.raises(dp.errors.MechanismError, match=r"a feature \(seed\) raised KeyError"):
        dp.audit(mechanism, (0, 1), "eps=1", n=100, features=[seed], rng=0)
    with pytest.raises(dp.errors.InvalidInput, match="compute them before"):
        dp.audit(dp.from_samples([1, 2, 3], [4, 5, 6]), claim="eps=1", features=[abs])


def test_the_sum_of_the_numbers_of_one_row_names_its_columns():
    few, many = ({k: float(n) for n, k in enumerate(names)} for names in ("ab", "abcdef"))
    for output, words in ((few, "a + b"), (many, "the sum of all numbers")):
        table = LeafTable.of(all_of([output] * 2))
        first = int(ft.by_place(table)[3][0])
        assert words_of(table, "by_place", first, first) == words


def test_details_show_how_often_the_feature_takes_each_value():
    mechanism = dp.from_function(word_tables)
    verdict = dp.audit(mechanism, (0, 1), "eps=1", n=400, rng=0, confidence=0.999, details=True)
    curve = verdict.profile.loss
    assert curve.part == verdict.witness.event.score_function.feature
    assert curve.p.sum() == pytest.approx(1)
    assert curve.q.sum() == pytest.approx(1)
    inside = curve.x >= 1  # {number of z ≥ 1}
    assert curve.p[inside].sum() == 0
    assert curve.q[inside].sum() == pytest.approx(1 - (2 / 3) ** 12, abs=0.05)
    assert verdict.profile.delta(0.0) > 0.9


def test_many_values_of_a_feature_are_gathered_without_losing_a_draw(seed):
    rng = np.random.default_rng(seed)
    sides = [from_raw((rng.normal(size=(300, 8)) + shift).tolist(), 300) for shift in (0.0, 0.5)]
    chosen = NamedFeatures.of((best_features(*sides, 1)[0][0],))
    values = [chosen.rows(side)[:, 0] for side in sides]
    score_function = ScoreFunction("feature", chosen, Steps(np.unique(values[0]), np.arange(300.0)))
    curve = feature_curve(score_function, *sides, lambda values: values >= values[len(values) // 3])
    assert 5 < curve.x.size <= 25
    for mass, own in zip((curve.p, curve.q), values, strict=True):
        slow = [np.mean((own >= a) & (own < b)) for a, b in pairwise([*curve.x, np.inf])]
        assert mass == pytest.approx(slow)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", None),
        ("key", 99),
        ("key", -1),
        ("key", 2**64),
        ("family", "values"),
        ("family", "nonsense"),
    ],
)
def test_features_of_a_record_that_make_no_sense_are_refused_when_read(field, value):
    (target,) = targets_of(([{"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"a": 3, "b": 4}]))
    chosen = NamedFeatures.of((Feature("target", 0, target.names[0], target=target),))
    content = json.loads(chosen.to_json())
    assert NamedFeatures.from_json(json.dumps(content)).features[0].target.words == target.words
    content["features"][0][field] = value
    with pytest.raises(InvalidInput):
        NamedFeatures.from_json(json.dumps(content))


def test_relations_between_parts_are_features():
    rows = [{"a": 3, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 1}]
    found = named([rows, {"x": 4, "y": 9, "z": 1}, [0.0, -0.0, 7.0], "a1 B2", [{"k": [{"p": 2}]}]])
    assert found[0, "larger", "the number of rows in which a is larger than b"] == 2
    assert found[0, "distinct", "the number of different rows (a, b)"] == 2
    assert found[1, "summaries", "the maximum of all numbers"] == 9
    assert found[2, "summaries", "the number of negative zeros of the items"] == 1
    assert found[2, "summaries", "the number of odd numbers of the items"] == 1
    assert found[2, "summaries", "the last less first of the items"] == 7
    name = "the number of times that the text contains a digit"
    assert found[3, "values", name] == 2
    assert (4, "summaries", "the sum of any p") not in found  # one path alone


def test_days_texts_keys_and_properties_of_the_whole_are_named_as_people_do():
    sunday = np.datetime64("2024-03-03")
    found = named([sunday, 'a "b', {50: 1, "`": 2}, frozenset()])
    name = "the weekday of the output is Sunday"
    assert found[0, "values", name] == 1
    assert found[0, "summaries", "the weekday (Monday = 0) of the output"] == 6
    day = Feature("values", 1, name, subject="the weekday of the output")
    assert day.event(1.0, True) == name
    assert day.event(1.0, False) == "the weekday of the output is not Sunday"
    name = "the number of times that the text contains ' \"b'"
    assert found[1, "values", name] == 1
    part = Feature("values", 1, name, subject="the text")
    assert part.event(1.0, False) == "the text does not contain ' \"b'"
    assert part.event(2.0, True) == "the text contains ' \"b' at least 2 times"
    name = "how often another character follows a space in the text"
    assert found[1, "neighbours", name] == 1
    assert found[2, "values", "the number of times that the key 50"] == 1
    assert found[2, "values", "the number of times that the key '`'"] == 1
    assert found[2, "values", "the output's number of keys and values is 4"] == 1
    assert from_raw([frozenset()], 1).show(0) == "set()"


def test_numbers_of_one_name_are_summed_over_lists_inside_of_rows():
    orders = [{"items": [{"p": 2}, {"p": 5}]}, {"items": [{"p": 1}]}]
    assert named([orders])[0, "summaries", "the sum of any p"] == 8


def test_a_column_is_named_rather_than_a_statistic_with_the_same_values(seed):
    rng = np.random.default_rng(seed)
    tables = [
        [{"age": x + rng.laplace(), "height": 170 + rng.normal()} for _ in range(300)]
        for x in (0, 3)
    ]
    (best, _), *_ = best_features(*(from_raw(rows, 300) for rows in tables), 40)
    assert best.name == "age"


def test_an_output_is_said_to_contain_counted_values():
    one = Feature("values", 1, "the number of times that city = 'Suva'")
    assert one.event(1.0, True) == "the output contains city = 'Suva'"
    assert one.event(1.0, False) == "the output does not contain city = 'Suva'"
    assert one.event(3.0, True) == "the output contains city = 'Suva' at least 3 times"
    assert one.event(3.0, False) == "the output contains city = 'Suva' fewer than 3 times"
    anywhere = Feature("anywhere", 1, "the number of occurrences of 'Suva'")
    assert anywhere.event(1.0, False) == "the output does not contain 'Suva'"
    assert Feature("summaries", 1, "x1").event(0.5, False) == "x1 < 0.5"


@pytest.mark.parametrize("word", ["this is it", "he contains it", "who is who"])
def test_words_of_a_value_never_change_the_value(word):
    """A statement that is denied changes its verb, not a word of the data that looks like one."""

    def words(make):
        rows = ([word] * k + ["no", "other"] * (50 - k // 2) for k in (40, 10))
        outputs = [from_raw([make(one) for one in row], 100) for row in rows]
        found = [one for one, _ in best_features(*outputs, 40) if one.family == "values"]
        return {one.event(1.0, above) for one in found for above in (True, False)}

    assert f"what is is not {word!r}" in words(lambda word: {"what is": word})
    assert f"the output is not {word!r}" in words(lambda word: word)
    of_sets = words(lambda word: {word, "another"}) | words(lambda word: {word: "a", "x": "b"})
    assert not any(
        "not it" in one or "not who" in one or "not contain it" in one for one in of_sets
    )


def test_steps_are_monotone_and_their_words_are_their_events():
    """Half draws on small steps do not change the order of steps; older steps are said as they are."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        p, q = rng.laplace(0, 1, 60), rng.laplace(1.3, 1, 60)
        odds = _steps(p, q).value
        assert np.all(np.diff(odds) >= 0) or np.all(np.diff(odds) <= 0)
    steps = Steps(np.array([0.0, 5.0, 9.0]), np.array([1.0, -2.0, -1.0]))
    feature = Feature("summaries", 0, "the amount")
    assert steps.words(feature, -1.5, False) == "the amount is ≥ 5 and < 9"
    assert steps.words(feature, -1.5, True) == "the amount is < 5 or ≥ 9"


def test_numbers_that_outputs_lack_are_said_to_be_zero():
    rng = np.random.default_rng(0)

    def rows(shift):
        return [
            {
                "kind": "ab"[rng.integers(2)],
                "amount": None if rng.random() < 0.1 else round(1500 + x, 2),
            }
            for x in rng.laplace(shift, 1, 3000)
        ]

    verdict = dp.audit(dp.from_samples(rows(0.0), rows(2.0)), claim="eps=1", loss="feature")
    assert "amount (a missing value or a word counts as 0) " in str(verdict.witness)


def test_names_are_told_apart_from_numbers_and_nothing_is_empty():
    found = {name for _, _, name in named([{"1e5": 7, "a\nb": 2, "x": None}])}
    assert {"'1e5'", r"'a\nb'"} <= found
    assert "x is empty" in found


def test_dates_and_durations_are_written_as_such():
    start = datetime.datetime(2023, 6, 15)

    def day(x, rng):
        return start + datetime.timedelta(days=int(x + rng.geometric(0.4)))

    def wait(x, rng):
        return datetime.timedelta(hours=int(x + rng.geometric(0.4)))

    def record(x, rng):
        return {"when": day(x, rng), "n": rng.normal(), "g": str(rng.choice(["a", "b"]))}

    for one, words, moved in (
        (day, r"the output (<|≥) 2023-06-\d\d", "the output"),
        (record, r"when (<|≥) 2023-06-\d\d", "output['when']"),
        (wait, r"the output (<|≥) 3 hours", "the output < 3 hours in"),
    ):
        verdict = dp.audit(dp.from_function(one), (0, 2), "eps=0.1", n=3000, rng=0)
        assert re.search(words, str(verdict.witness)), verdict.witness
        assert moved in verdict.diagnosis[0].sentence
        assert not any("unprotected" in str(e.kind) for e in verdict.diagnosis) or one is record
        assert dp.Verdict.from_json(verdict.to_json()) == verdict


def test_a_number_beside_a_key_is_summed_only_where_there_are_several():
    rows = [{"sex": str(k % 2), "v": float(k)} for k in range(4)]
    names = {name for *_, name in named(rows)}
    assert "v where sex = '1' (else 0)" in names
    assert not any(name.startswith("the sum of v where") for name in names)


def test_characters_of_texts_are_counted_by_places():
    names = {name for _, family, name in named([[["ab", "x"], ["cd", "y"]]]) if family == "pairs"}
    assert "the number of places with characters of 0 = 'a' and characters of 0 = 'c'" in names


@pytest.mark.parametrize(("value", "words"), [(1.0, "x4 ≥ 1"), (-1e-4, "x4 < 0")])
def test_of_features_with_the_same_values_a_coordinate_is_named(value, words):
    """It was "the items is not 0"."""

    def release(has, size, rng):
        weights = rng.normal(size=(size, 4))
        weights[:, 3] = has * rng.binomial(5, 0.5, size) * value
        return weights

    witness = dp.audit(release, (0, 1), "mu=1", n=4000, rng=0).witness
    assert witness.event.words == words


def test_a_feature_that_neither_half_found_is_none_of_the_search():
    r = np.random.default_rng(47)
    p, q = ([["a"] if r.random() < share else [] for _ in range(60)] for share in (0.02, 0.05))
    verdict = dp.audit(dp.from_samples(p, q), claim="eps=1", loss="feature", rng=47)
    assert not verdict.violated


def test_limits_are_near_those_of_all_thresholds(seed):
    """Only some thresholds are compared, and of every feature one that is nearly the best."""
    rng = np.random.default_rng(seed)
    n, m, z2 = 700, 600, 12.0
    columns = [
        rng.laplace(size=n + m) + np.repeat([1.0, 0.0], [n, m]),
        np.round(rng.exponential(np.repeat([1.0, 1.5], [n, m]))),
        -np.abs(rng.normal(size=n + m)) * np.repeat([1.0, 2.0], [n, m]),
        np.full(n + m, 3.0),
    ]
    some = np.sort(rng.permutation(n + m)[:500])  # a feature that other outputs lack
    owner = np.concatenate([np.arange(n + m)] * 4 + [some])
    key = np.repeat(np.arange(5, dtype=np.uint64), [*[n + m] * 4, some.size])
    value = np.concatenate([*columns, columns[0][some]])
    found = {k: limit for limit, k, _ in training._limits(owner, key, value, n, m, z2, 10)}
    whole = np.zeros(n + m)
    whole[some] = columns[0][some]
    for k, x in enumerate([*columns, whole]):
        best = -np.inf
        for t in np.unique(x[x != 0]):
            held = x >= t if t > 0 else x <= t
            a, b = np.count_nonzero(held[:n]), np.count_nonzero(held[n:])
            if min(a + b, n + m - a - b) < 4:
                continue
            p, q, sizes = a / n, b / m, (n, m)
            if p < q:
                p, q, sizes = q, p, (m, n)
            for high, low, of in ((p, q, sizes), (1 - q, 1 - p, sizes[::-1])):
                best = max(
                    best, *training._limit(*map(np.array, ([high], of[:1], [low], of[1:])), z2)
                )
        if k == 3:
            assert 3 not in found  # a constant tells nothing
        else:
            assert 0.95 * best <= found[k] <= best + 1e-8


def test_cents_are_those_of_amounts_with_two_decimals():
    x = np.array([12.34, 1e6 + 0.07, 12345678.912, 3.0, 0.1234])
    assert _cents(x).tolist()[:2] == [34.0, 7.0]
    assert np.isnan(_cents(x)[2:]).all()


def test_empty_frames_have_no_keys_that_other_frames_lack():
    """Columns of a frame are no keys of it, however many rows it has."""
    empty, full = pd.DataFrame({"a": [], "n": []}), pd.DataFrame({"a": ["x"], "n": [1.0]})
    assert not [
        key for key in named([empty, full]) if "key" in key[2] and "number of" not in key[2]
    ]
