"""The script that trains with canaries: its scores find the coins where little noise hides them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks import one_run_cifar as tables

from examples import cifar, one_run_cifar
from examples.one_model import batch, module, row
from examples.one_run_cifar import Cell, Setting, train
from examples.per_example import Network

SMALL = Network(channels=(8, 16), pools=(2, 2), side=8)


@pytest.fixture(scope="module")
def setting():
    images, labels = cifar.synthetic(60)
    x = cifar.normalized(cifar.shrunk(images, 8))
    return Setting(SMALL, x, labels, steps=6, learning_rate=0.5, device="cpu")


def separated(found, score):
    """The share of pairs (included, left out) of every run that a score has in the right order."""
    shares = []
    for ranks, coins in zip(found[score].astype(float), found["coins"], strict=True):
        shares.append((ranks[coins][:, None] > ranks[~coins][None]).mean())
    return np.array(shares)


@pytest.mark.parametrize("rate", [0.5, 1.0])
@pytest.mark.parametrize("canary", ["ordinary", "mislabelled", "dirac"])
def test_without_noise_the_coins_are_found_and_in_noise_they_are_not(setting, canary, rate):
    cell = Cell(canary, 30, rate)
    found = train(setting, cell, [0.03] * 6 + [1e4] * 6, seed=1)
    best = separated(found, "centred" if cell.planted else "decorrelated")
    assert best[:6].mean() > (0.99 if rate == 1 else 0.85)
    # 6 runs of 30 coins: the standard deviation of the mean is below .045
    assert abs(best[6:].mean() - 0.5) < 0.18
    assert separated(found, "gradient")[:6].mean() <= best[:6].mean() + 1e-9


def test_one_full_step_is_the_noisy_sum_with_every_canary(setting):
    """Without noise, one step, full batches: ⟨Σ of clipped gradients, clipped gradient⟩ by autograd."""
    cell, m, n = Cell("ordinary", 20, 1.0), 20, len(setting.images)
    one = Setting(SMALL, setting.images, setting.labels, 1, 0.5, "cpu")
    found = train(one, cell, [1e-4], seed=3)
    generator = torch.Generator().manual_seed(3)
    theta = SMALL.initial(1, generator)
    model, gradients = module(SMALL, theta[0]), []
    for image, label in zip(batch(setting.images, theta), setting.labels, strict=True):
        loss = torch.nn.functional.cross_entropy(model(image[None]), torch.tensor([int(label)]))
        each = row(SMALL, torch.autograd.grad(loss, list(model.parameters())))
        gradients.append(each * torch.clamp(1 / each.norm(), max=1.0))
    every = torch.stack(gradients).double()
    there = torch.ones(n, dtype=torch.float64)
    there[n - m :] = torch.tensor(found["coins"][0])
    total = every.T @ there
    mean = every.T @ torch.cat([torch.ones(n - m), torch.full((m,), 0.5)]).double()
    ends = every[n - m :]
    for name, wanted in (("gradient", ends @ total), ("centred", ends @ (total - mean))):
        ranks = one_run_cifar.ranks(wanted[None].numpy())
        assert np.abs(ranks.astype(int) - found[name].astype(int)).max() <= 1, name


def test_the_script_writes_what_the_tables_read(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["x", "--small", "--out", str(tmp_path), "--seed", "4"])
    one_run_cifar.main()
    about, found = tables.load(tmp_path / "one_run_cifar.npz")
    assert len(found) == 2 * 2 * 3 * 4
    assert about["data"]["set"] == "other images"
    for runs in found:
        m = runs.about["canaries"]
        assert runs.coins.shape == (2, m)
        for ranks in runs.scores.values():
            assert np.array_equal(np.sort(ranks, axis=1), np.tile(np.arange(m), (2, 1)))
    images = [runs for runs in found if runs.about["canary"] != "dirac"]
    assert all(set(runs.scores) == set(tables.SCORES) for runs in images)
    assert [len(found[0].audits("loss", k)) for k in (1, 2, 4)] == [2, 1, 0]
