"""The script that trains the models: what it keeps, and that it ends in time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from examples import audit_dpsgd, run_dpsgd


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
