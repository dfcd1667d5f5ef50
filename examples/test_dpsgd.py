"""DP-SGD for many models at once against one model and one example at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.integrate import trapezoid
from scipy.stats import chi2

import dpassay as dp
from examples import cifar
from examples.audit_dpsgd import claimed
from examples.dpsgd import Mechanism, Trainer, Training
from examples.one_model import batch, module, row
from examples.per_example import Examples, Network, backward, clipped, factors, patches


def gradient(network, theta, image, label):
    """The gradient of one example for one model, by autograd through torch's own layers."""
    model = module(network, theta)
    loss = F.cross_entropy(model(batch(image[None], theta)), torch.tensor([int(label)]))
    return row(network, torch.autograd.grad(loss, list(model.parameters()))).detach()


def looped(network, theta, data, index):
    """Per-example gradients [models, examples, parameters]."""
    rows = [
        torch.stack([gradient(network, one, data.images[i], int(data.labels[i])) for i in chosen])
        for one, chosen in zip(theta, index, strict=True)
    ]
    return torch.stack(rows)


@pytest.fixture(scope="module", params=["plain", "GroupNorm"])
def case(request, network, pair):
    """Three models on six examples each, the canary among them, and their gradients one at a time."""
    if request.param == "GroupNorm":
        network = replace(network, groups=(2, 4, 8, 8), slope=0.01)
    generator = torch.Generator().manual_seed(3)
    theta = network.initial(3, generator)
    theta += 0.1 * torch.randn(theta.shape, generator=generator)
    index = torch.stack([torch.randperm(60, generator=generator)[:6] for _ in range(3)])
    index[:, 0] = 0
    taken = Examples(pair[0].images, pair[0].labels, "cpu", torch.float32).take(index)
    with torch.no_grad():
        pieces = backward(network, theta, *taken)
    return pieces, looped(network, theta, pair[0], index)


def test_patches_are_torch_unfold():
    x = torch.randn(2, 6, 6, 8)
    wanted = F.unfold(x.permute(0, 3, 1, 2), 3, padding=1).view(2, 8, 9, 36).permute(0, 3, 2, 1)
    assert torch.equal(patches(x), wanted.reshape(2, 36, 72))


def test_both_ways_to_a_norm_are_used(network):
    assert {layer.direct for layer in network.layers} == {True, False}
    assert {layer.direct for layer in Network().layers} == {True, False}
    assert Network().size == 131_466


def test_norms_are_those_of_one_example_at_a_time(case):
    pieces, wanted = case
    norms = sum(piece.squares for piece in pieces).sqrt()
    torch.testing.assert_close(norms, wanted.norm(dim=2), rtol=1e-5, atol=0)


@pytest.mark.parametrize("clip", [0.3, 1.0, 100.0])
def test_the_clipped_sum_is_that_of_one_example_at_a_time(case, clip):
    pieces, each = case
    weight = torch.tensor([[1.0, 1, 0, 1, 1, 0]]).expand(3, 6)
    each = each * torch.clamp(clip / each.norm(dim=2, keepdim=True), max=1.0)
    total, ends = clipped(pieces, weight, clip, torch.float32, "", 2)
    torch.testing.assert_close(total, (each * weight[..., None]).sum(1), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(ends, each[:, -2:], rtol=1e-4, atol=1e-6)


def test_a_forgotten_layer_is_neither_counted_nor_clipped(case):
    pieces, each = case
    at = pieces[0].layer.start
    factor = torch.clamp(0.3 / each[..., :at].norm(dim=2, keepdim=True), max=1.0)
    wanted = torch.cat([each[..., :at] * factor, each[..., at:]], dim=2).sum(1)
    total, _ = clipped(pieces, torch.ones(3, 6), 0.3, torch.float32, "layer unclipped")
    torch.testing.assert_close(total, wanted, rtol=1e-4, atol=1e-6)


def test_factors_for_bfloat16_are_exact_in_it_and_never_too_large():
    squares = torch.rand(1000, generator=torch.Generator().manual_seed(0)) * 9
    exact, low = (factors(squares, 1.0, kind) for kind in (torch.float32, torch.bfloat16))
    assert torch.equal(low.bfloat16().float(), low)
    assert torch.all(low < exact)
    assert torch.all(low > exact * 0.99)


def test_with_bfloat16_no_example_adds_more_than_the_clipping_norm(network, pair):
    """Rounding is worst where it is systematic, in the factors: those are rounded down."""
    generator = torch.Generator().manual_seed(1)
    theta = network.initial(1, generator)
    taken = Examples(pair[0].images, pair[0].labels, "cpu", torch.bfloat16)
    with torch.no_grad():
        pieces = backward(network, theta, *taken.take(torch.arange(60)[None]))
        norms = [
            float(clipped(pieces, torch.eye(60)[[i]], 0.3, torch.bfloat16, "")[0].norm())
            for i in range(60)
        ]
    assert max(norms) <= 0.3
    assert min(norms) > 0.3 * 0.985


def test_bfloat16_products_give_nearly_the_same_models(network, pair):
    plain = Trainer(Training(steps=4, noise=0.0), network, (4,))
    one, two = (
        trainer(pair[0], 3, np.random.default_rng(0)).logits
        for trainer in (plain, replace(plain, precision="bfloat16"))
    )
    assert 0 < np.abs(one - two).max() < 0.01 * np.abs(one).max()


def test_more_examples_than_a_grid_is_high_are_multiplied_in_parts(monkeypatch, network, pair):
    trainer = Trainer(Training(steps=2, noise=0.0), network, (2,))
    whole = trainer(pair[0], 3, np.random.default_rng(0)).logits
    monkeypatch.setattr("examples.per_example._MOST", 10)
    parts = trainer(pair[0], 3, np.random.default_rng(0)).logits
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-6)


def test_a_step_is_the_formula(network, pair):
    """θ − lr/(rate·n) (Σ clipped + noise): without noise exactly, with it by its standard deviation."""
    data, generator = pair[0], torch.Generator().manual_seed(0)
    how = Training(steps=1, noise=0.0, learning_rate=0.5)
    taken = torch.rand(2, 60, generator=generator) < 0.5
    theta = network.initial(2, generator)
    after = {}
    for noise in (0.0, 2.0):
        trainer = Trainer(replace(how, noise=noise), network, (1,))
        examples = Examples(data.images, data.labels, "cpu", torch.float32)
        direction = torch.zeros(1, network.size)
        with torch.no_grad():
            update, _ = trainer._update(data, theta, taken, examples, direction, generator)
            after[noise] = theta - 0.5 * update
    for model in range(2):
        index = taken[model].nonzero()[:, 0]
        each = looped(network, theta[[model]], data, [index])[0]
        total = (each * torch.clamp(1 / each.norm(dim=1, keepdim=True), max=1.0)).sum(0)
        wanted = theta[model] - 0.5 * total / 30
        torch.testing.assert_close(after[0.0][model], wanted, rtol=1e-4, atol=1e-6)
    noise = ((after[2.0] - after[0.0]) * 30 / 0.5).flatten().double()
    low, high = chi2.ppf([0.0005, 0.9995], noise.numel())
    assert low < float((noise / 2.0).square().sum()) < high


def test_batches_are_poisson_samples_or_parts_of_a_permutation(network, pair):
    generator = torch.Generator().manual_seed(0)
    poisson = next(Trainer(Training(), network)._batches(pair[0], 2000, generator))
    assert abs(poisson.float().mean() - 0.5) < 4 * 0.5 / np.sqrt(2000 * 60)
    assert poisson.sum(1).float().std() > 3.0  # √15 = 3.87
    draws = Trainer(Training(batches="shuffled"), network)._batches(pair[0], 5, generator)
    first, second = next(draws), next(draws)
    assert torch.all(first ^ second)
    assert torch.all(first.sum(1) == 30)


def test_the_same_seed_gives_the_same_models_and_models_differ(network, pair):
    trainer = Trainer(Training(steps=2), network, (1, 2), together=3)
    one, two, other = (
        trainer(pair[0], 5, np.random.default_rng(seed)).logits for seed in (7, 7, 8)
    )
    assert one.shape == (5, 2, 2, 10)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert len(np.unique(one[:, 0, 0, 0])) == 5


def test_a_fixed_start_is_shared_and_a_random_one_is_not(network, pair):
    quiet = {"steps": 1, "noise": 0.0, "learning_rate": 0.0}
    for start, shared in (("fixed", True), ("random", False)):
        trainer = Trainer(Training(start=start, **quiet), network, (1,))
        logits = trainer(pair[0], 4, np.random.default_rng(0)).logits
        assert (len(np.unique(logits[:, 0, 0, 0])) == 1) is shared


@pytest.mark.parametrize("canary", ["gradient", "against"])
@pytest.mark.parametrize("removed", [False, True])
def test_the_likelihood_ratio_of_a_step_is_that_of_the_dominating_pair(pair, canary, removed):
    """With a planted gradient a step is (1 − q) N(0, 1) + q N(±1, 1): E_Q[p/q] = 1 and the exact KL."""
    network = Network(channels=(8, 8), pools=(4, 4), side=16)
    how = Training(steps=1, canary=canary, removed=removed, start="fixed")
    trainer = Trainer(how, network, (1,), watch=True, together=500)
    small = [replace(d, images=d.images[:8], labels=d.labels[:8]) for d in pair]
    p, q = (trainer(d, 1000, np.random.default_rng(d.which)).losses[:, 0] for d in small)
    x = np.linspace(-9, 10, 20_001)
    bell = [np.exp(-((x - m) ** 2) / 2) / np.sqrt(2 * np.pi) for m in (0, 1, -1)]
    top = (bell[0] + bell[1]) / 2
    bottom = bell[0] if removed else (bell[0] + bell[2]) / 2
    loss = np.log(top / bottom)
    for seen, density in ((p, top), (q, bottom)):
        mean = trapezoid(density * loss, x)
        spread = np.sqrt(trapezoid(density * (loss - mean) ** 2, x))
        assert abs(seen.mean() - mean) < 4 * spread / np.sqrt(1000)
        assert 0.85 < seen.std() / spread < 1.15


def test_the_ratio_for_an_image_is_a_likelihood_ratio(network, pair):
    """E_Q[p/q] = 1, whatever the canaries' gradients are."""
    trainer = Trainer(Training(steps=2, noise=2.0), network, (2,), watch=True, together=100)
    small = [replace(d, images=d.images[:8], labels=d.labels[:8]) for d in pair]
    ratio = np.exp(trainer(small[1], 400, np.random.default_rng(0)).losses[:, 0])
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / 20
    assert ratio.std() > 0


def test_watching_does_not_change_the_models(network, pair):
    plain = Trainer(Training(steps=2), network, (2,))
    one, two = (
        trainer(pair[0], 3, np.random.default_rng(0)).logits
        for trainer in (plain, replace(plain, watch=True))
    )
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("fault", ["", "noise halved", "layer unclipped"])
def test_an_audit_finds_the_faults_and_not_the_correct_one(pair, fault):
    network = Network(channels=(8, 8), pools=(4, 4), side=16)
    how = Training(steps=2, canary="gradient", start="fixed", fault=fault)
    trainer = Trainer(how, network, (2,), watch=True, together=150)
    small = [replace(d, images=d.images[:8], labels=d.labels[:8]) for d in pair]
    p, q = (trainer(d, 300, np.random.default_rng([5, d.which])).losses[:, 0] for d in small)
    claim = claimed({"training": {"rate": 0.5, "noise": 1.0, "removed": False}}, 2)
    verdict = dp.audit(dp.from_samples(p, q, rng=0), claim=claim, loss="values", rng=0)
    assert verdict.violated == bool(fault)


def test_the_mechanism_gives_a_row_a_model(network, pair):
    trainer = Trainer(Training(steps=1), network, (1,))
    rows = Mechanism(trainer)(pair[0], 3, np.random.default_rng(0))
    assert rows.shape == (3, 20)
    loss = Mechanism(trainer, score=lambda logits: cifar.scores(logits)["CE"])
    assert loss(pair[0], 3, np.random.default_rng(0)).shape == (3,)


def test_settings_that_contradict_each_other_are_refused(network):
    with pytest.raises(ValueError, match="poisson"):
        Trainer(Training(batches="shuffled"), network, watch=True)
    with pytest.raises(ValueError, match="steps=3"):
        Trainer(Training(steps=3), network)
