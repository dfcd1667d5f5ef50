"""The script that trains the models: what it keeps, and that it ends in time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from examples import audit_dpsgd, join_dpsgd, run_dpsgd


def test_every_run_keeps_both_sides_and_says_how_it_was_made(tmp_path, monkeypatch):
    arguments = ["x", "--small", "--models", "3", "--out", str(tmp_path), "--seed", "4"]
    monkeypatch.setattr("sys.argv", arguments)
    run_dpsgd.main()
    found = audit_dpsgd.folder(tmp_path)
    assert set(found) == set(run_dpsgd.RUNS)
    assert len(json.loads((tmp_path / "runs.json").read_text())) == len(found)
    for name, scores in found.items():
        assert scores.models == 3
        assert scores.steps == [2, 6]
        first, second = scores.columns["losses"]
        assert first.shape == second.shape == (3, 2)
        assert not np.array_equal(first, second)
        assert scores.about["training"]["fault"] == run_dpsgd.RUNS[name].training.fault


def test_a_run_that_is_out_of_time_keeps_what_is_done(tmp_path, monkeypatch):
    clock = iter(np.arange(0.0, 1e4, 10.0))  # every look at the clock is ten seconds later
    monkeypatch.setattr("examples.run_dpsgd.time.perf_counter", lambda: float(next(clock)))
    arguments = ["x", "--small", "--models", "40", "--together", "2", "--limit", "100", "tiny"]
    monkeypatch.setattr("sys.argv", [*arguments, "--out", str(tmp_path)])
    run_dpsgd.main()
    scores = audit_dpsgd.load(tmp_path / "tiny.npz")
    assert 0 < scores.models < 40
    assert len(scores.columns["losses"][0]) == len(scores.columns["losses"][1]) == scores.models
    assert scores.about["wanted"] == 40


def test_a_run_nobody_knows_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["x", "--small", "nothing"])
    with pytest.raises(SystemExit):
        run_dpsgd.main()
    assert "there is no run nothing" in capsys.readouterr().err


def test_the_databases_of_a_run_differ_at_index_0_alone():
    images, labels = run_dpsgd.cifar.synthetic(6)
    for run in run_dpsgd.RUNS.values():
        first, second = run_dpsgd.databases(run, images, labels)
        assert np.array_equal(first.images[1:], second.images[1:])
        assert np.array_equal(first.labels[1:], second.labels[1:])
        if run.training.canary == "example":
            differ = not np.array_equal(first.images[0], second.images[0])
            assert differ or first.labels[0] != second.labels[0]


def test_a_run_in_two_parts_is_the_run_in_one(tmp_path, monkeypatch):
    """Interrupted after four models a side and taken up again there: the same eight, joined."""
    common = ["x", "--small", "--together", "2", "--seed", "3", "authors"]
    for folder, calls in (("one", [["8", "0"]]), ("two", [["4", "0"], ["4", "4"]])):
        for count, first in calls:
            where = ["--out", str(tmp_path / folder), "--models", count, "--first", first]
            monkeypatch.setattr("sys.argv", [*common, *where])
            run_dpsgd.main()
    parts = sorted((tmp_path / "two").glob("*.npz"))
    assert [part.name for part in parts] == ["authors-00004.npz", "authors.npz"]
    monkeypatch.setattr("sys.argv", ["x", *map(str, parts), "--out", str(tmp_path / "all.npz")])
    join_dpsgd.main()
    whole, one = (audit_dpsgd.load(tmp_path / name) for name in ("all.npz", "one/authors.npz"))
    assert whole.models == one.models == 8
    for side in (0, 1):
        assert np.array_equal(whole.columns["logits"][side], one.columns["logits"][side])
        assert len(np.unique(whole.columns["logits"][side][:, -1, 0, 0])) == 8
    first, second = (audit_dpsgd.load(part) for part in parts)
    with pytest.raises(ValueError, match=r"begin at \[4, 4\]"):
        join_dpsgd.joined([first, first])
    second.about["seed"] = 4
    with pytest.raises(ValueError, match="differ in seed"):
        join_dpsgd.joined([first, second])


def test_a_part_begins_where_a_group_does(monkeypatch, capsys):
    arguments = ["x", "--small", "--together", "4", "--first", "6", "authors"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit):
        run_dpsgd.main()
    assert "multiple of --together 4" in capsys.readouterr().err


def test_synthetic_images_are_not_called_cifar_10(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "sys.argv", ["x", "--small", "--models", "1", "--out", str(tmp_path), "authors"]
    )
    run_dpsgd.main()
    about = audit_dpsgd.load(tmp_path / "authors.npz").about
    assert about["data"]["set"] == "other images"
    assert about["data"]["file"] == "synthetic"
    assert len(about["data"]["sha256"]) == len(about["code"]) == 64


def test_the_authors_settings():
    run = run_dpsgd.RUNS["authors"]
    assert run.network.size == 131_466 + 2 * (32 + 64 + 64 + 128)
    how = run.training
    assert (how.learning_rate, how.momentum, how.clip, how.noise) == (0.1, 0.9, 1.0, 1.0)
    assert (how.rate, how.steps, how.batches) == (0.5, 50, "poisson")
    assert run_dpsgd.trainer_of(run, "cpu").at == (2, 20, 30, 40, 50)
