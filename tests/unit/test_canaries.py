"""Canaries: honest coins, and files of scores."""

import json
import sys

import numpy as np
import pytest
from scipy.stats import binom

import dpassay as dp
from dpassay.cli import run
from dpassay.errors import InvalidInput, UnreadableFile
from dpassay.membership.canaries import audit_file, read_columns, read_guesses


def test_coins_are_fair_and_come_from_the_seed_alone(seed):
    canaries = dp.Canaries(range(2000), rng=seed + 5)
    low, high = binom.ppf([0.0005, 0.9995], 2000, 0.5)
    assert low <= canaries.included.sum() <= high
    assert np.array_equal(canaries.included, dp.Canaries(["x"] * 2000, rng=seed + 5).included)
    assert not np.array_equal(canaries.included, dp.Canaries(range(2000), rng=seed + 6).included)
    # training with the same seed meets other randomness
    other = np.random.default_rng(seed + 5).integers(2, size=2000).astype(bool)
    assert 850 < np.sum(other == canaries.included) < 1150


def test_the_data_set_is_the_data_and_what_was_included():
    canaries = dp.Canaries(["a", "b", "c", "d"], data=("x", "y"), rng=1)
    kept = [r for r, c in zip("abcd", canaries.included, strict=True) if c]
    assert canaries.dataset() == ["x", "y", *kept]
    rows = np.arange(8.0).reshape(4, 2)
    array = dp.Canaries(rows, data=np.zeros((3, 2)), rng=1)
    assert array.dataset().shape == (3 + len(kept), 2)
    assert np.array_equal(dp.Canaries(rows, rng=1).dataset(), rows[canaries.included])
    assert len(canaries) == 4


def test_a_tuple_of_arrays_is_columns_with_a_canary_a_row():
    features, labels = np.arange(12.0).reshape(6, 2), np.arange(6)
    canaries = dp.Canaries((features, labels), data=(np.zeros((3, 2)), np.ones(3)), rng=1)
    assert len(canaries) == len(canaries.included) == 6
    x, y = canaries.dataset()
    assert np.array_equal(x[3:], features[canaries.included])
    assert np.array_equal(y, [1, 1, 1, *labels[canaries.included]])
    alone = dp.Canaries((features, labels), rng=1).dataset()
    assert np.array_equal(alone[1], labels[canaries.included])
    assert len(dp.Canaries([features, labels], rng=1)) == 2  # a list: an item each


@pytest.mark.parametrize(
    ("records", "data", "words"),
    [
        ((np.zeros((6, 2)), np.zeros(5)), (), r"they have \[6, 5\] rows"),
        ((np.zeros((6, 2)), np.zeros(6)), (np.zeros((3, 2)), np.zeros(4)), r"data.*\[3, 4\] rows"),
        ((np.zeros((6, 2)), np.zeros(6)), np.zeros((3, 2)), "data must be one of as many"),
        ((np.zeros((6, 2)), np.zeros(6)), (np.zeros((3, 2)),), "data must be one of as many"),
        (np.zeros((6, 2)), (np.zeros((3, 2)), np.zeros(3)), "data is a tuple of 2 arrays"),
        ({"x": [1, 2], "y": [1]}, (), r"a dict of the columns x, y.*\[2, 1\] rows"),
        ({"x": [1, 2]}, {"y": [1]}, "so data must be one of as many, with the same names"),
        ({"x": [1, 2]}, [1], "so data must be one of as many"),
        ({"x": 3}, (), r"records\['x'\] must be a list.*got 3"),
        ({}, (), "at least one canary"),
        ({}, {"x": [1]}, "so data must be one of as many"),
        (np.zeros((6, 2)), np.zeros((3, 4)), r"shape \(2,\), and a row of the data \(4,\)"),
        ({1, 2, 3}, (), r"records must be a list.*got \{1, 2, 3\}"),
        ([1, 2], 7, "data must be a list.*got 7"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(records, data, words):
    with pytest.raises(InvalidInput, match=words):
        dp.Canaries(records, data=data)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("lacking", ["records", "data"])
def test_frames_of_other_columns_are_refused(library, lacking):
    frames = pytest.importorskip(library)
    base = {"age": [1, 2, 3], "sex": ["f", "m", "f"], "zip": [7, 8, 9]}
    given = {"records": dict(base), "data": dict(base)}
    del given[lacking]["sex"], given[lacking]["zip"]
    records, data = (frames.DataFrame(one) for one in given.values())
    with pytest.raises(InvalidInput, match=r"same columns; one of the two lacks 'sex', 'zip'$"):
        dp.Canaries(records, data=data, rng=1)


def test_a_dict_of_columns_gives_a_dict():
    columns = {"input_ids": np.arange(12).reshape(6, 2), "text": list("abcdef"), "labels": range(6)}
    data = {"input_ids": np.zeros((1, 2), dtype=int), "text": ["x"], "labels": [9]}
    canaries = dp.Canaries(columns, data=data, rng=1)
    kept = canaries.included
    made = canaries.dataset()
    assert list(made) == list(columns)
    assert np.array_equal(made["input_ids"], [[0, 0], *columns["input_ids"][kept]])
    assert made["text"] == ["x", *np.array(columns["text"])[kept]]
    assert made["labels"] == [9, *np.arange(6)[kept]]
    assert len(dp.Canaries(columns, rng=1).dataset()["labels"]) == kept.sum()
    assert dp.Canaries(["a"], data={}, rng=1).dataset() in (["a"], [])


def test_a_tuple_with_a_list_in_it_is_columns_too():
    features, labels = np.arange(12.0).reshape(6, 2), list(range(6))
    canaries = dp.Canaries((features, labels), rng=1)
    assert len(canaries) == 6
    assert canaries.dataset()[1] == [y for y in labels if canaries.included[y]]


class Squares:
    """A data set as PyTorch knows it: a length and items by number."""

    def __init__(self, first, count):
        self.first, self.count = first, count

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        if not 0 <= k < self.count:
            raise IndexError(k)
        return (self.first + k) ** 2


def test_a_data_set_gives_a_data_set():
    canaries = dp.Canaries(Squares(10, 6), data=Squares(0, 3), rng=1)
    made = canaries.dataset()
    wanted = [0, 1, 4, *((10 + k) ** 2 for k in np.flatnonzero(canaries.included))]
    assert len(made) == len(wanted)
    assert [made[k] for k in range(len(made))] == list(made) == wanted
    assert made[-1] == made[np.int64(len(made) - 1)] == wanted[-1]
    with pytest.raises(IndexError):
        made[len(made)]
    assert list(dp.Canaries(Squares(10, 6), rng=1).dataset()) == wanted[3:]


def test_scores_of_a_model_need_inputs_and_targets():
    coins = dp.Canaries.from_json(dp.Canaries([1, 2], rng=0).to_json())
    with pytest.raises(InvalidInput, match="score needs canaries that are inputs and targets"):
        coins.score(None, None)
    with pytest.raises(InvalidInput, match="record needs canaries that are inputs and targets"):
        coins.record(None, None, None)


def test_scores_of_a_model_need_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    canaries = dp.Canaries((np.eye(4), np.ones(4)), rng=0)
    with pytest.raises(
        ImportError, match=r"needs PyTorch.*such as −loss, to canaries\.audit.*torch"
    ):
        canaries.score(None, None)


def test_the_record_keeps_seed_and_coins_and_cannot_be_changed():
    canaries = dp.Canaries(range(50), rng=7)
    back = dp.Canaries.from_json(canaries.to_json())
    assert np.array_equal(back.included, canaries.included)
    assert back.rng == 7
    assert back == canaries
    with pytest.raises(ValueError, match="read-only"):
        canaries.included[0] = True
    with pytest.raises(AttributeError):
        canaries.rng = 8
    with pytest.raises(InvalidInput, match="has no canaries"):
        back.dataset()
    data = canaries.to_dict()
    data["included"][0] = not data["included"][0]
    with pytest.raises(InvalidInput, match="not those of the seed 7"):
        dp.Canaries.from_dict(data)
    with pytest.raises(InvalidInput, match="at least one canary"):
        dp.Canaries([])
    with pytest.raises(InvalidInput, match="None"):
        dp.Canaries(None)
    assert isinstance(dp.Canaries([1, 2]).rng, int)


def test_a_whole_run():
    rng = np.random.default_rng(0)
    canaries = dp.Canaries(np.eye(500), data=np.zeros((10, 500)), rng=0)
    model = canaries.dataset().sum(axis=0) + rng.normal(scale=0.5, size=500)  # a sum with noise
    verdict = canaries.audit(model, claim="mu=0.5", guesses=100)
    assert verdict.violated
    bound = canaries.audit(model, delta=1e-5, rng=0)
    assert isinstance(bound, dp.LowerBound)
    assert bound.value > 1.0


# --- files


@pytest.fixture
def scores(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    rng = np.random.default_rng(0)
    included = rng.random(1000) < 0.5
    values = included + rng.normal(size=1000)
    path = tmp_path / "scores.csv"
    rows = (
        f"{k},{s:.6f},{int(c)}\n" for k, (s, c) in enumerate(zip(values, included, strict=True))
    )
    path.write_text("id,score,included\n" + "".join(rows))
    return path


def said(capsys, *arguments):
    status = run(list(arguments))
    out = capsys.readouterr()
    return status, out.out, out.err


def test_the_command_line_ends_as_an_audit_does(scores, capsys):
    claim = "eps=0.5, delta=1e-5"
    status, out, _ = said(capsys, "one-run", str(scores), "--claim", claim, "--guesses", "200")
    assert status == 1
    assert "Violation of (0.5, 1e-05)-DP" in out
    assert "of 200 guesses are right" in out
    assert "1,000 rows of score, included" in out
    status, out, _ = said(capsys, "one-run", str(scores), "--claim", "eps=6", "--guesses", "100+50")
    assert status == 4
    assert "if all guesses were right" in out
    assert said(capsys, "one-run", str(scores), "--claim", "eps=2", "--guesses", "600")[0] == 0
    status, out, _ = said(capsys, "one-run", str(scores), "--delta", "1e-5", "--json", "-")
    assert status == 0
    bound = dp.LowerBound.from_json(out)
    assert json.loads(out)["type"] == "LowerBound"
    assert bound == audit_file(scores, delta=1e-5, rng=0)
    status, out, _ = said(capsys, "one-run", str(scores), "--guesses", "100,200")
    assert status == 0
    assert "the most that these 1,000 canaries could have shown is" in out


def test_files_that_cannot_be_used_are_refused(scores, tmp_path, capsys):
    bad = tmp_path / "bad.csv"
    bad.write_text("score,member\n1.5,1\n2.5,0\n")
    with pytest.raises(UnreadableFile, match="'score', 'member'"):
        audit_file(bad)
    bad.write_text("score,included\n1.5,1\nhigh,0\n2.5,0\n")
    with pytest.raises(UnreadableFile, match="'high' in row 2"):
        audit_file(bad)
    bad.write_text("score,included\n1.5,1\n,0\n2.5,0\n")
    with pytest.raises(UnreadableFile, match="None in row 2"):
        audit_file(bad)
    status, _, err = said(capsys, "one-run", str(scores), "--guesses", "many")
    assert status == 2
    assert "100+50" in err
    assert said(capsys, "one-run", str(scores), "--guesses", "2000")[0] == 2
    with pytest.raises(InvalidInput):
        read_guesses("1+2+3")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_canaries_join_frames_of_data(library):
    module = pytest.importorskip(library)
    data = module.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    records = module.DataFrame({"a": [10, 11, 12, 13], "b": list("efgh")})
    canaries = dp.Canaries(records, data=data, rng=1)
    made = canaries.dataset()
    assert type(made) is type(data)
    assert list(made["a"]) == [
        1,
        2,
        *(a for a, kept in zip(range(10, 14), canaries.included, strict=True) if kept),
    ]
    with pytest.raises(InvalidInput, match="data must be one too"):
        dp.Canaries(records, data=[1, 2], rng=1)


def test_a_copied_category_shows_in_the_nearest_rows(seed):
    """A generator that draws its cities from the data gives a canary with a city of its own away."""
    rng = np.random.default_rng(seed)
    pd = pytest.importorskip("pandas")
    people = pd.DataFrame({"city": ["Oslo"] * 50, "age": rng.integers(18, 90, 50)})
    own = pd.DataFrame(
        {"city": [f"city {k}" for k in range(300)], "age": rng.integers(18, 90, 300)}
    )
    canaries = dp.Canaries(own, data=people, rng=seed)
    data = canaries.dataset()
    table = pd.DataFrame({"city": rng.choice(data["city"], 600), "age": rng.integers(18, 90, 600)})
    scores = canaries.nearest_rows(table)
    slow = []
    spread = max(own["age"].max(), table["age"].max()) - min(own["age"].min(), table["age"].min())
    for city, age in zip(own["city"], own["age"], strict=True):
        gap = ((table["age"] - age).abs() / spread + (table["city"] != city)) / 2
        slow.append(1 - gap.min())
    assert scores == pytest.approx(np.array(slow))
    assert canaries.audit(scores, claim="eps=1", guesses=(100, 0)).violated
    same = canaries.audit(scores, claim="eps=1", rng=0)
    for given in (scores.tolist(), scores[:, None].tolist(), np.array_split(scores, 7)):
        assert canaries.audit(given, claim="eps=1", rng=0) == same


@pytest.mark.parametrize("table", [3, [{"other": 1}], "text"])
def test_a_table_without_the_columns_of_the_canaries_is_refused(table):
    canaries = dp.Canaries([{"a": 1, "b": "x"}, {"a": 5, "b": "y"}], rng=0)
    with pytest.raises(InvalidInput, match="none of the columns of the records, a, b"):
        canaries.nearest_rows(table)
    with pytest.raises(InvalidInput, match="the table has no rows"):
        canaries.nearest_rows([])


def test_a_column_that_was_renamed_or_changed_its_type_is_not_ignored():
    """Without it a leak of the ages would be scored as if there were none."""
    pd = pytest.importorskip("pandas")
    own = pd.DataFrame({"city": ["a", "b"], "age": [30, 40]})
    canaries = dp.Canaries(own, rng=0)
    assert canaries.nearest_rows(own.assign(more=1)).tolist() == [1.0, 1.0]
    with pytest.raises(InvalidInput, match="have different forms; give both as data frames"):
        canaries.nearest_rows(own.to_dict("records"))
    with pytest.raises(InvalidInput, match="lacks columns of the records, age; it has Age, city"):
        canaries.nearest_rows(own.rename(columns={"age": "Age"}))
    with pytest.raises(
        InvalidInput, match="age holds numbers in the records and text in the table"
    ):
        canaries.nearest_rows(own.assign(age=["30", "40"]))
    with pytest.raises(InvalidInput, match="the table has no rows"):
        canaries.nearest_rows(own[:0])
    assert canaries.nearest_rows(own.assign(age=[None, None])).tolist() == [0.5, 0.5]


def test_numbers_of_a_file_may_have_a_decimal_comma(scores, tmp_path, capsys):
    other = tmp_path / "comma.csv"
    other.write_text(scores.read_text().replace(",", ";").replace(".", ","))
    for command in (["one-run", "--delta", "1e-5"], ["attack-rates"]):
        plain = said(capsys, *command, str(scores), "--json", "-")
        assert said(capsys, *command, str(other))[0] == 2
        comma = said(capsys, *command, str(other), "--decimal", ",", "--json", "-")
        assert plain[0] == comma[0] == 0
        values = [json.loads(one[1]) for one in (plain, comma)]
        for one in values:
            one.pop("about", None)
        assert values[0] == values[1]


def test_files_without_names_lead_to_those_with_names(tmp_path):
    for name in ("a.npz", "a.npy"):
        save = np.savez if name.endswith("z") else np.save
        save(tmp_path / name, np.zeros((40, 2)))
        with pytest.raises(
            UnreadableFile, match=r"\.csv, \.parquet or \.jsonl file with named columns"
        ):
            audit_file(tmp_path / name)


def test_the_column_of_the_coins_is_no_score(scores, tmp_path):
    with pytest.raises(InvalidInput, match="given as the score and as the coin"):
        audit_file(scores, {"score": "included"})
    bad = tmp_path / "signs.csv"
    bad.write_text("score,included\n1.5,1\n2.5,-1\n")
    with pytest.raises(UnreadableFile, match=r"has -1 in row 2; it must be 0 or 1"):
        audit_file(bad)


def test_columns_of_a_file_are_named(tmp_path):
    """Losses are lower for canaries that were trained on, and called as a training script calls them."""
    rng = np.random.default_rng(0)
    member = rng.integers(2, size=400)
    loss = rng.normal(size=400) - 2 * member
    path = tmp_path / "scores.csv"
    rows = [f"{x},{c}" for x, c in zip(loss, member, strict=True)]
    path.write_text("\n".join(["loss,member", *rows]), encoding="utf-8")
    named, how = {"score": "loss", "included": "member"}, {"delta": 1e-5, "rng": 0}
    found = audit_file(path, named | {"sign": "lower"}, **how)
    assert found.value == dp.one_run(-loss, member, delta=1e-5, rng=0).value > 1
    assert found.about.files[0].columns == ("loss", "member")
    assert audit_file(path, named, **how).value == 0
    with pytest.raises(UnreadableFile, match="--score, --included"):
        audit_file(path)
    with pytest.raises(InvalidInput, match="sign"):
        audit_file(path, named | {"sign": "down"}, **how)


def test_losses_without_their_sign_and_runs_without_their_column_are_noted(tmp_path, capsys):
    rng = np.random.default_rng(0)
    member = rng.integers(2, size=400)
    rows = [
        f"{x},{c},{k % 2}"
        for k, (x, c) in enumerate(zip(rng.normal(size=400) - 2 * member, member, strict=True))
    ]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(["score,included,run", *rows]), encoding="utf-8")
    assert run(["one-run", str(path), "--claim", "eps=1, delta=1e-5"]) == 0
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--sign lower" in out[out.index(" next ") :]
    assert "give --run run" in out
    assert run(["one-run", str(path), "--claim", "eps=1, delta=1e-5", "--run", "run"]) == 0
    assert "give --run run" not in capsys.readouterr().out
    assert run(["attack-rates", str(path)]) == 0
    assert "give --run run" in capsys.readouterr().out
    assert run(["attack-rates", str(path), "--separate-runs"]) == 0
    assert "give --run run" not in capsys.readouterr().out


@pytest.fixture
def losses(tmp_path, monkeypatch):
    """A file as a training script writes it."""
    monkeypatch.setenv("COLUMNS", "300")
    rng = np.random.default_rng(0)
    member = rng.integers(2, size=1000)
    loss = rng.normal(size=1000) - 2 * member
    rows = [f"{x},{c}" for x, c in zip(loss, member, strict=True)]
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(["loss,member", *rows]), encoding="utf-8")
    return path


NAMED = ("--score", "loss", "--sign", "lower", "--included", "member")


def test_from_a_file_of_losses_and_an_accountants_file_to_the_sentence(losses, capsys, tmp_path):
    claim = tmp_path / "opacus.json"
    claim.write_text('{"epsilon": 4.0, "delta": 1e-5}')
    status, out, _ = said(capsys, "one-run", str(losses), *NAMED, "--claim", str(claim))
    assert status == 0
    assert "the claimed ε is 4; the most that these 1,000 canaries could have shown is" in out
    deltas = [1e-6, 1e-5, *np.geomspace(1e-4, 0.3, 40).tolist()]
    points = [[d, dp.GaussianDP(1.0).epsilon_at(d)] for d in deltas]
    claim.write_text(json.dumps(points))
    status, out, _ = said(
        capsys, "one-run", str(losses), *NAMED, "--claim", str(claim), "--delta", "1e-5"
    )
    assert status == 1
    assert "the claimed ε is 4.377" in out


def test_a_bound_without_a_claim_has_a_report(losses, capsys, tmp_path):
    page = tmp_path / "bound.html"
    arguments = ("--delta", "1e-5", "--report", str(page))
    assert said(capsys, "one-run", str(losses), *NAMED, *arguments)[0] == 0
    text = page.read_text(encoding="utf-8")
    assert "A lower bound" in text
    assert "the most that these 1,000 canaries could have shown is" in text
    assert "fair coin" in text


def test_groups_and_runs_are_columns_of_a_file(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    rng = np.random.default_rng(1)
    member, run = rng.integers(2, size=900), np.repeat([7, 8, 9], 300)
    kind = np.array(["cat", "dog"])[rng.integers(2, size=900)]
    loss = rng.normal(size=900) - 3 * member * (kind == "dog")
    path = tmp_path / "runs.csv"
    rows = [f"{x},{c},{k},{r}" for x, c, k, r in zip(loss, member, kind, run, strict=True)]
    path.write_text("\n".join(["loss,member,kind,seed", *rows]), encoding="utf-8")
    named = {"score": "loss", "included": "member", "sign": "lower", "group": "kind", "run": "seed"}
    found = audit_file(path, named, delta=1e-5, rng=0)
    split = [[one[run == k] for k in (7, 8, 9)] for one in (-loss, member, kind)]
    same = dp.one_run(*split[:2], groups=split[2], delta=1e-5, rng=0)
    assert found.certified == same.certified
    assert [one.group for one in found.certified.groups] == ["cat", "dog"]
    options = ("--group", "kind", "--run", "seed", "--delta", "1e-5")
    status, out, _ = said(capsys, "one-run", str(path), *NAMED, *options)
    assert status == 0
    assert "group dog: ε ≥" in out
    status, out, _ = said(capsys, "attack-rates", str(path), *NAMED, "--run", "seed")
    assert status == 0
    assert "AUC, mean of 3 runs ≈" in out
    assert "(exact)" in out
    with pytest.raises(UnreadableFile, match="loss, member, class.*--group"):
        audit_file(path, named | {"group": "class"})


def test_a_group_that_is_the_coin_and_a_wrong_sign_are_named_as_options(losses, capsys):
    status, _, err = said(capsys, "one-run", str(losses), *NAMED, "--group", "member")
    assert status == 2
    assert "of group '0'" in err
    named = ("--score", "loss", "--included", "member")
    status, out, _ = said(capsys, "one-run", str(losses), *named)
    assert "--sign on the command line), raise confidence (--confidence) to 0.975" in out
    status, out, _ = said(capsys, "attack-rates", str(losses), *named)
    assert "(−scores, or --sign lower)" in out


def test_attack_rates_of_a_file_say_what_holds(losses, capsys):
    status, out, _ = said(capsys, "attack-rates", str(losses), *NAMED, "--fpr", "0.1")
    assert status == 0
    assert "AUC ≈ 0.9" in out
    assert "heuristic" in out
    assert "use dp.one_run" in out
    assert "TPR at FPR 0.1 " in out
    status, out, _ = said(
        capsys, "attack-rates", str(losses), *NAMED, "--separate-runs", "--json", "-"
    )
    assert status == 0
    assert json.loads(out)["auc"]["guarantee"] == "exact"
    losses.write_text("loss,member\n1,2\n2,0\n")
    status, _, err = said(capsys, "attack-rates", str(losses), *NAMED)
    assert status == 2
    assert "must be 0 or 1" in err


def test_a_data_set_that_was_never_asked_for_is_noted():
    canaries = dp.Canaries(list(range(200)), rng=0)
    assert repr(canaries) == f"Canaries(200 canaries, {canaries.included.sum()} included, rng=0)"
    scores = np.random.default_rng(1).normal(size=200)
    assert "dataset() of these canaries was not called" in str(canaries.audit(scores, rng=0))
    canaries.dataset()
    assert "was not called" not in str(canaries.audit(scores, rng=0))


def test_slips_with_canaries_on_the_command_line_are_named(scores, tmp_path, capsys):
    kept = str(tmp_path / "v.json")
    said(capsys, "one-run", str(scores), "--claim", "eps=0.5", "--guesses", "200", "--json", kept)
    for given in ((), ("--samples", str(scores), str(scores))):
        status, _, err = said(capsys, "replay", kept, *given)
        assert status == 2
        assert "have no event to count again" in err
    assert "given as --out v.html" in said(capsys, "report", kept, "v.html")[2]
    both = said(capsys, "attack-rates", str(scores), "--run", "included", "--separate-runs")
    assert "leave one of them out" in both[2]


def test_several_rows_of_a_canary_are_refused(tmp_path, seed):
    """A training log with a row for each canary and epoch: all of a canary share its coin."""
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, 100)
    for epochs in (3, 1):
        rows = [
            (k, epoch, rng.normal(), coins[k])
            for epoch in range(epochs)
            for k in rng.permutation(100)
        ]
        place = tmp_path / f"{epochs}.csv"
        place.write_text(
            "canary,epoch,score,included\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows)
        )
        if epochs == 1:
            assert read_columns(place)[0]["scores"].size == 100
            continue
        for options in ({}, {"run": "epoch"}):
            with pytest.raises(UnreadableFile, match=r"'canary' of .* several rows of one canary"):
                read_columns(place, **options)
