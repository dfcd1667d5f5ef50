"""The bank of kinds of outputs: planted leaks are real, twins are correct, outputs rarely repeat."""

import pickle
import re

import numpy as np
import pytest
from benchmarks.output_kinds import KINDS, certified, main, twins
from scipy.stats import binom


def features(kind, leak, n, confidence, seed):
    """The verdict when only the hand-made feature is released."""
    return certified(kind.reduced(leak), kind.pair, n, confidence, seed)


def test_the_bank_has_at_least_sixty_kinds_that_need_no_knowledge():
    assert sum(not kind.needs_knowledge for kind in KINDS.values()) >= 60


@pytest.mark.parametrize("name", KINDS)
def test_the_feature_alone_certifies_an_epsilon_of_2_from_few_draws(name, seed):
    assert features(KINDS[name], True, 400, 0.95, seed).lower_bound >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_the_feature_alone_certifies_an_epsilon_of_2(name, seed):
    assert features(KINDS[name], True, 4000, 0.999, seed).lower_bound >= 2


@pytest.mark.slow
def test_features_of_twins_are_refuted_at_most_as_often_as_the_confidence_allows(seeds):
    wrong = sum(
        features(kind, False, 1000, 0.95, seed).violated
        for kind, seed in zip(KINDS.values(), seeds, strict=False)
    )
    assert wrong <= binom.ppf(0.999, len(KINDS), 0.05)


def test_outputs_of_most_kinds_do_not_repeat(seed):
    repeating = []
    for kind in KINDS.values():
        outputs = list(kind.release(True)(kind.pair[1], 60, np.random.default_rng(seed)))
        if len({pickle.dumps(output) for output in outputs}) < 58:
            repeating.append(kind.name)
    assert len(repeating) <= 3, repeating


def test_the_runner_compares_raw_outputs_with_the_feature(capsys):
    assert main(["--n", "400", "--only", "mixed_tuple,local_hashing"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"mixed_tuple +[\d.]+ +[\d.]+ +[\d.]+ ", printed)
    assert "needs knowledge" in printed
    assert re.search(r"ratio ≥ 0\.8: [01] of 1 ", printed)


def test_the_runner_counts_violations_of_twins_against_the_binomial_limit(capsys):
    kind = KINDS["parity_of_two"]
    assert twins([(kind.name, kind.release(False), kind.pair)], 400, 3) == 0
    assert "γ = 0.05: 0 of 3 violations (limit 2): ok" in capsys.readouterr().out
    assert twins([(kind.name, kind.reduced(True), kind.pair)], 400, 5) == 2
