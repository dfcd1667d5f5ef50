"""Canaries in training with PyTorch and Opacus: kinds of data, losses, white-box scores, a whole run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import dpassay as dp
from dpassay.errors import InvalidInput

LOSS = nn.CrossEntropyLoss(reduction="none")
#: Opacus' hooks are for modules whose inputs need no gradient, which torch remarks on.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Full backward hook", "ignore:Secure RNG", "ignore:Optimal order"
)


def images(count, seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, 8, 8, generator=rng), torch.randint(4, (count,), generator=rng)


def network(dropout=0.0):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.AvgPool2d(4),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(32, 4),
    )


class Items(Dataset):
    """A data set of one's own."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, k):
        return self.x[k], int(self.y[k])


# --- kinds


def test_tensors_stay_tensors():
    (x, y), (cx, cy) = images(5, 0), images(12, 1)
    canaries = dp.Canaries((cx, cy), data=(x, y), rng=3)
    made = canaries.dataset()
    kept = torch.tensor(canaries.included.tolist())
    assert torch.equal(made[0], torch.cat([x, cx[kept]]))
    assert torch.equal(made[1], torch.cat([y, cy[kept]]))
    assert made[0].dtype == x.dtype
    assert torch.equal(dp.Canaries(cx, data=x, rng=3).dataset(), made[0])
    with pytest.raises(InvalidInput, match="the canaries are a tensor, so data must be one too"):
        dp.Canaries(cx, data=x.numpy(), rng=3)
    with pytest.raises(InvalidInput, match=r"shape \(3, 8, 8\).*\(8, 8, 3\)"):
        dp.Canaries(cx, data=x.permute(0, 2, 3, 1), rng=3)


@pytest.mark.parametrize("kind", [TensorDataset, Items])
def test_a_data_set_goes_into_a_loader(kind):
    (x, y), (cx, cy) = images(5, 0), images(12, 1)
    canaries = dp.Canaries(kind(cx, cy), data=kind(x, y), rng=3)
    assert len(canaries) == 12
    found = list(DataLoader(canaries.dataset(), batch_size=4))
    wanted = dp.Canaries((cx, cy), data=(x, y), rng=3).dataset()
    assert torch.equal(torch.cat([x for x, _ in found]), wanted[0])
    assert torch.equal(torch.cat([y for _, y in found]), wanted[1])


# --- losses


def slow_losses(model, x, y):
    model.eval()
    with torch.no_grad():
        return np.array([float(LOSS(model(a[None]), b[None])) for a, b in zip(x, y, strict=True)])


def test_scores_are_negative_losses_one_by_one():
    x, y = images(23, 1)
    model = network(dropout=0.5)
    model[1].eval()  # as somebody has it who freezes a layer
    model[5].train()
    wanted = -slow_losses(network(dropout=0.5), x, y)
    kinds = {
        "tensors": (x, y),
        "arrays": (x.double().numpy(), y.numpy()),
        "data set": Items(x, y),
        "list": list(zip(x, y, strict=True)),
        "dict": {"input": x, "labels": y},
    }
    for name, records in kinds.items():
        found = dp.Canaries(records, rng=0).score(model, LOSS, batch_size=5)
        assert found == pytest.approx(wanted, abs=1e-5), name
        assert found.dtype == float
    assert not model[1].training
    assert model[5].training


def test_losses_that_cannot_be_scores_are_refused():
    x, y = images(23, 1)
    canaries, model = dp.Canaries((x, y), rng=0), network()
    with pytest.raises(InvalidInput, match=r'shape \(\) for 23 canaries.*reduction="none"'):
        canaries.score(model, nn.CrossEntropyLoss())
    with pytest.raises(InvalidInput, match=r"loss.flatten\(1\).mean\(1\)"):
        canaries.score(model, lambda out, y: out)
    spoiled = x.clone()
    spoiled[7] = float("nan")
    with pytest.raises(InvalidInput, match="canary 7 is NaN"):
        dp.Canaries((spoiled, y), rng=0).score(model, LOSS)
    with pytest.raises(InvalidInput, match=r"pairs \(x, y\)"):
        dp.Canaries(x, rng=0).score(model, LOSS)
    with pytest.raises(InvalidInput, match=r"pairs \(x, y\)"):
        dp.Canaries((x, y, y), rng=0).score(model, LOSS)
    with pytest.raises(InvalidInput, match=r"torch\.nn\.Module"):
        canaries.score(lambda x: x, LOSS)
    with pytest.raises(InvalidInput, match="batch_size"):
        canaries.score(model, LOSS, batch_size=0)
    with pytest.raises(InvalidInput, match="a record of coins alone"):
        dp.Canaries.from_json(canaries.to_json()).score(model, LOSS)


# --- white box


def slow_products(model, x, y, limit):
    """⟨noisy gradient, clipped gradient of each canary⟩, by autograd, one canary after another."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    found = []
    for a, b in zip(x, y, strict=True):
        loss = LOSS(model(a[None]), b[None]).sum()
        gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])
        update = torch.cat([p.grad.flatten() for p in parameters])
        scale = 1.0 if limit is None else min(1.0, limit / float(gradient.norm()))
        found.append(float(gradient @ update) * scale)
    return np.array(found)


def copied(model):
    """The weights and gradients of the moment in a model of one's own, without hooks."""
    made = network()
    for mine, theirs in zip(made.parameters(), model.parameters(), strict=True):
        mine.data, mine.grad = theirs.detach().clone(), theirs.grad.detach().clone()
        mine.requires_grad_(theirs.requires_grad)
    return made.eval()


@pytest.mark.parametrize("frozen", [False, True])
def test_the_recorder_adds_up_inner_products_of_a_plain_optimizer(frozen):
    (x, y), (cx, cy) = images(16, 0), images(9, 1)
    model = network(dropout=0.5)
    model[0].requires_grad_(not frozen)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    recorder = dp.Canaries((cx, cy), rng=0).record(model, LOSS, optimizer, batch_size=4)
    with pytest.raises(InvalidInput, match="no step was recorded"):
        _ = recorder.scores
    wanted = np.zeros(9)
    for _ in range(3):
        optimizer.zero_grad()
        LOSS(model(x), y).mean().backward()
        if frozen:
            model[0].weight.grad = torch.zeros_like(model[0].weight)
            model[0].bias.grad = torch.zeros_like(model[0].bias)
        wanted += slow_products(copied(model), cx, cy, None)
        optimizer.step()
    assert recorder.scores == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    assert recorder.steps == 3
    recorder.stop()
    optimizer.step()
    assert recorder.steps == 3
    assert model.training


def private(model, data, *, noise, limit=0.5, rate=0.25, lr=0.1):
    """Opacus' engine, optimizer and loader."""
    from opacus import PrivacyEngine

    engine = PrivacyEngine(accountant="rdp")
    loader = DataLoader(data, batch_size=max(1, int(rate * len(data))))
    return engine, *engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=limit,
    )


def test_the_recorder_sees_the_noisy_clipped_gradient_of_opacus():
    (x, y), (cx, cy) = images(40, 0), images(9, 1)
    canaries = dp.Canaries((cx, cy), data=(x, y), rng=0)
    made = network()
    engine, model, optimizer, loader = private(made, TensorDataset(*canaries.dataset()), noise=1.0)
    recorder = canaries.record(model, LOSS, optimizer, batch_size=4)
    wanted = np.zeros(9)

    def oracle(*_):
        nonlocal wanted
        wanted = wanted + slow_products(copied(made), cx, cy, optimizer.max_grad_norm)

    optimizer.original_optimizer.register_step_pre_hook(oracle)
    for _ in range(2):
        for inputs, targets in loader:
            optimizer.zero_grad()
            LOSS(model(inputs), targets).mean().backward()
            optimizer.step()
    assert recorder.scores == pytest.approx(wanted, rel=1e-3, abs=1e-5)
    # the accountant has counted every step, and the model still trains
    assert sum(steps for *_, steps in engine.accountant.history) == recorder.steps > 4
    assert engine.get_epsilon(1e-5) > 0
    assert model.training
    canaries.score(model, LOSS)
    assert np.isfinite(recorder.scores).all()


def test_models_without_what_is_needed_are_refused():
    x, y = images(9, 1)
    canaries, model = dp.Canaries((x, y), rng=0), network()
    with pytest.raises(InvalidInput, match="optimizer must be one of PyTorch or of Opacus"):
        canaries.record(model, LOSS, None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(InvalidInput, match="requires_grad"):
        canaries.record(model.requires_grad_(False), LOSS, optimizer)


# --- a training script


def opacus_run(noise, seed):
    """What docs/private-training.md adds to a training script; every canary has a feature of its own."""
    torch.manual_seed(seed)
    x, y = torch.randn(60, 320), torch.randint(4, (60,))
    x[:, 20:] = 0.0
    cx, cy = torch.zeros(300, 320), torch.randint(4, (300,))
    cx[:, 20:] = 4 * torch.eye(300)
    canaries = dp.Canaries((cx, cy), data=(x, y), rng=seed)
    data = TensorDataset(*canaries.dataset())
    start = nn.Linear(320, 4)
    engine, model, optimizer, loader = private(
        start, data, noise=noise, limit=1.0, rate=0.5, lr=5.0
    )
    recorder = canaries.record(model, LOSS, optimizer)
    for _ in range(5):
        for inputs, targets in loader:
            optimizer.zero_grad()
            LOSS(model(inputs), targets).mean().backward()
            optimizer.step()
    return canaries, (recorder.scores, canaries.score(model, LOSS)), engine.get_epsilon(1e-5)


def test_a_training_without_noise_is_caught_and_one_with_noise_is_not():
    canaries, both, _ = opacus_run(noise=0.1, seed=0)
    for scores in both:
        assert canaries.audit(scores, claim="eps=2, delta=1e-5", rng=0).violated
    canaries, both, epsilon = opacus_run(noise=1.0, seed=1)
    bounds = []
    for scores in both:
        verdict = canaries.audit(scores, claim=dp.ApproximateDP(epsilon, 1e-5), rng=0)
        assert not verdict.violated
        bounds.append(verdict.lower_bound)
    assert epsilon > bounds[0] > bounds[1]  # who sees every step sees more than the last weights
