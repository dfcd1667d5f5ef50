"""The examples that need no PyTorch: images, scores, training functions, and tables from kept models."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from examples import audit_dpsgd, cifar
from examples.training import from_training
from scipy.integrate import trapezoid
from tests.helpers import trained_models

import dpassay as dp


@pytest.fixture
def binary(tmp_path):
    """A file of CIFAR-10's binary version: five images whose pixels say where they are."""
    rows, columns = np.mgrid[:32, :32]
    one = np.stack([rows, columns, rows + columns]).astype(np.uint8)  # red, green, blue
    records = [np.concatenate([[label], (one + label).ravel()]) for label in range(5)]
    path = tmp_path / "data_batch_1.bin"
    np.concatenate(records).astype(np.uint8).tofile(path)
    return path


def test_the_binary_version_is_read_pixel_by_pixel(binary):
    images, labels = cifar.read(binary, 4)
    assert images.shape == (4, 32, 32, 3)
    assert labels.tolist() == [0, 1, 2, 3]
    assert images[2, 5, 7].tolist() == [5 + 2, 7 + 2, 12 + 2]


def test_an_npz_is_read_like_the_binary_version(binary, tmp_path):
    images, labels = cifar.read(binary, 5)
    np.savez(tmp_path / "x.npz", images=images, labels=labels)
    again = cifar.read(tmp_path / "x.npz", 5)
    assert np.array_equal(again[0], images)
    assert np.array_equal(again[1], labels)


def test_pickles_short_files_and_other_files_are_refused(binary, tmp_path):
    np.savez(tmp_path / "x.npz", images=np.array([{}], dtype=object), labels=[0])
    with pytest.raises(ValueError, match="pickle"):
        cifar.read(tmp_path / "x.npz", 1)
    with pytest.raises(ValueError, match="5 images, 6 are needed"):
        cifar.read(binary, 6)
    (tmp_path / "x.bin").write_bytes(b"12345")
    with pytest.raises(ValueError, match="no CIFAR-10 file"):
        cifar.read(tmp_path / "x.bin", 1)


def test_the_pair_differs_at_index_0_alone():
    images, labels = cifar.synthetic(7, 8)
    first, second = cifar.pair(images, labels)
    assert np.array_equal(first.images[1:], second.images[1:])
    assert np.array_equal(first.labels[1:], labels[1:])
    assert first.labels[0] == second.labels[0] == cifar.AIRPLANE
    pixels = [d.images[0] * cifar.SPREAD + cifar.MEAN for d in (first, second)]
    np.testing.assert_allclose(pixels[0], 0, atol=1e-6)
    np.testing.assert_allclose(pixels[1], 1, atol=1e-6)
    assert np.array_equal(first.canaries, second.canaries)


def test_other_images_are_not_called_cifar_10():
    images, labels = cifar.synthetic(1000)
    assert cifar.data_set(images, labels) == "other images"
    changed = images.copy()
    changed[3, 2, 1, 0] ^= 1
    assert cifar.digest(changed, labels) != cifar.digest(images, labels)


def test_pixels_can_be_divided_by_another_spread():
    images, labels = cifar.synthetic(7, 8)
    spread = np.array([0.2023, 0.1994, 0.2010])
    first, second = cifar.pair(images, labels, spread=spread)
    np.testing.assert_allclose(second.images[0, 0, 0], (1 - cifar.MEAN) / spread, rtol=1e-6)
    np.testing.assert_allclose(first.canaries[0, 0, 0], -cifar.MEAN / spread, rtol=1e-6)


def test_a_shrunken_image_keeps_its_mean():
    images, _ = cifar.synthetic(3, 32)
    small = cifar.shrunk(images, 8)
    assert small.shape == (3, 8, 8, 3)
    np.testing.assert_allclose(small.mean(axis=(1, 2)), images.mean(axis=(1, 2)), atol=0.5)


def test_scores_are_those_of_their_definitions():
    logits = np.random.default_rng(0).normal(size=(4, 2, 10))
    found = cifar.scores(logits, (0, 6))
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found["logit"], logits[:, 0, 0] - logits[:, 1, 6])
    np.testing.assert_allclose(found["CE"], np.log(p[:, 1, 6]) - np.log(p[:, 0, 0]))
    kl = []
    for canary, label in ((0, 0), (1, 6)):
        target = 0.9 * np.eye(10)[label] + 0.01
        kl.append((target * np.log(target / p[:, canary])).sum(axis=-1))
    np.testing.assert_allclose(found["KL"], kl[0] - kl[1])


def test_scores_on_the_first_canary_alone(kept):
    logits = kept.columns["logits"][0][:, 1].astype(float)
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(kept.at("first logit", 1)[0], logits[:, 0, 0])
    np.testing.assert_allclose(kept.at("first CE", 1)[0], -np.log(p[:, 0, 0]))
    target = np.eye(10)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.nansum(target * np.log(target / p[:, 0]), axis=-1)
    np.testing.assert_allclose(kept.at("first KL", 1)[0], divergence)


def test_a_training_function_is_a_mechanism_with_a_fresh_seed_a_model():
    seeds = []

    def train(data, seed):
        seeds.append(seed)
        return {"weights": np.sum(data) + np.random.default_rng(seed).normal(size=2)}

    mechanism = from_training(train, lambda model: model["weights"])
    pair = ([0.0, 3.0], [0.0, 0.0])
    assert dp.audit(mechanism, pair, dp.GaussianDP(1.0), n=200, rng=0).violated
    assert len(set(seeds)) == len(seeds) == 400


@pytest.fixture
def kept(tmp_path):
    return audit_dpsgd.load(trained_models(tmp_path / "tiny.npz", models=200, steps=(2, 50)))


def test_what_was_kept_is_read_by_score_and_mark(kept):
    first, second = kept.at("losses", 1, 20)
    assert first.shape == second.shape == (20,)
    assert first.mean() > second.mean()
    assert kept.at("CE", 0)[0].shape == (200,)
    assert kept.samples("logits", 0).take(5).p.numbers.shape[1] == 20


def test_copied_columns_are_left_out_and_others_keep_their_order():
    first, second = np.array([[3, 1, 3, 0], [4, 1, 4, 5]]), np.array([[2, 1, 2, 0]])
    assert audit_dpsgd._varying(first, second).tolist() == [0, 1, 3]


def test_the_gaussian_curve_nearest_to_a_gaussian_curve_is_itself():
    alpha = np.linspace(0, 1, 2001)
    curve = dp.TradeoffCurve(alpha, dp.GaussianDP(0.7).tradeoff(alpha))
    assert audit_dpsgd.fitted_mu(curve) == pytest.approx(0.7, abs=1e-3)
    epsilon = audit_dpsgd.epsilon_of(0.7, 1e-3)
    assert dp.GaussianDP(0.7).delta_at(epsilon) == pytest.approx(1e-3, rel=1e-6)
    assert audit_dpsgd.epsilon_of(0.001, 1e-3) == 0.0


def test_the_accountant_is_asked_about_replacement_where_a_canary_is_replaced(kept):
    """One step with rate ½ and noise 1: exact δ of the two mixtures, at ε = 1."""
    from scipy.stats import norm

    x = np.linspace(-12, 12, 400_001)
    base, up, down = norm.pdf(x), norm.pdf(x, 1), norm.pdf(x, -1)
    for replaced, bottom in ((True, (base + down) / 2), (False, base)):
        exact = trapezoid(np.clip((base + up) / 2 - np.e * bottom, 0, None), x)
        found = audit_dpsgd.accounted(kept.about, 1, replaced=replaced).get_delta_for_epsilon(1.0)
        assert exact <= found * (1 + 1e-9) <= exact * 1.01
    assert audit_dpsgd.accounted(kept.about, 2) is audit_dpsgd.accountant(2, 0.5, 1.0, True)


def test_the_noise_limit_is_above_the_noise_and_near_it_for_the_optimal_score(
    tmp_path, monkeypatch
):
    """Losses drawn from one step's own pair: noise 1 is true, so no curve of less noise is refuted."""
    path = trained_models(tmp_path / "tiny.npz", models=3000, steps=(1,))
    kept = audit_dpsgd.load(path)
    monkeypatch.setattr("examples.audit_dpsgd._TIMES", (8.0, 2.0, 1.3, 1.0, 0.9, 0.5))
    rng = np.random.default_rng(4)
    sides = []
    for sign in (1, -1):
        x = rng.normal(size=3000) + sign * rng.integers(2, size=3000)
        sides.append((np.logaddexp(0, x - 0.5) - np.logaddexp(0, -x - 0.5))[:, None])
    kept = replace(kept, columns={"losses": tuple(sides)})
    limit = audit_dpsgd.noise_limit(kept, "losses", 0)
    assert limit == 1.3
    nothing = replace(kept, columns={"losses": (sides[0][:1500], sides[0][1500:])})
    assert audit_dpsgd.noise_limit(nothing, "losses", 0) is None


def test_tables_say_what_is_certified_and_what_is_found(tmp_path, capsys, monkeypatch):
    trained_models(tmp_path / "tiny.npz", 200, (2,), shift=0.5)
    trained_models(tmp_path / "tiny-halved.npz", 200, (2,), shift=3.0, fault="noise halved")
    out = tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["x", str(tmp_path), "--out", str(out), "--sizes", "200"])
    monkeypatch.setattr("examples.audit_dpsgd._TIMES", (4.0, 2.0, 1.0))
    audit_dpsgd.main()
    assert "| tiny | all updates" in capsys.readouterr().out
    rows = json.loads((out / "dpsgd-bounds.json").read_text())
    assert {row["run"] for row in rows} == {"tiny"}
    for row in rows:
        assert 0 <= row["certified"] <= row["n can show"]
    seen = {row["seen"]: row["certified"] for row in rows}
    assert seen["all updates, the others' batches"] > 0.1
    found = json.loads((out / "dpsgd-faults.json").read_text())
    assert {row["run"]: row["violated"] for row in found} == {"tiny": False, "tiny-halved": True}
