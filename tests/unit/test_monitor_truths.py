"""Counts of monitors that refuted true claims: each monitor once, whoever ran it."""

import pytest
from benchmarks import monitor_truths as truths
from benchmarks.monitor_truths import Count


def test_counts_of_several_runs_go_together():
    parts = [
        [Count("a", 100, 0, 3, [1], 2.0), Count("b", 100, 0, 2, [], 1.0)],
        [Count("a", 100, 3, 4, [5, 6], 1.5), Count("b", 50, 0, 1, [0], 1.0), Count("c", 100)],
    ]
    both = truths.merged(parts)
    assert [(one.name, one.draws, one.monitors, one.refuted) for one in both] == [
        ("a", 100, 7, [1, 5, 6]),
        ("b", 100, 2, []),
        ("b", 50, 1, [0]),
    ]
    with pytest.raises(ValueError, match="in two of the files"):
        truths.merged([*parts, [Count("a", 100, 6, 2)]])


def test_kinds_have_names_of_their_own():
    assert len({kind.name for kind in truths.KINDS}) == len(truths.KINDS)


@pytest.mark.parametrize("kind", range(len(truths.KINDS)))
def test_a_monitor_of_every_kind_runs_and_repeats(kind):
    refuted, seconds = truths.ever(kind, 0, 60)
    assert seconds > 0
    assert truths.ever(kind, 0, 60)[0] == refuted
