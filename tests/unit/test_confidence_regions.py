"""Regions for a point of the trade-off curve: coverage, outlines and areas."""

import numpy as np
import pytest
from scipy.stats import binom

from dpassay.bounds import joint_test as joint
from dpassay.bounds.ordering import Counts


def test_the_outline_of_the_joint_region_reaches_along_an_edge():
    """All hits on one side: β = 0 with α up to where its p-value is γ."""
    c = Counts(1000, 1000, 300, 1000)
    outline = joint.joint_region(c, 0.05).outline
    on_edge = outline[outline[:, 1] < 1e-12][:, 0]
    assert joint.point_p_values(c, np.array([[1.0, on_edge.max()]]))[0] <= 0.05
    assert on_edge.max() == pytest.approx(0.3294, abs=2e-3)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (4, 5), (7, 3)])
def test_the_box_of_the_joint_region_covers_by_enumeration(n, m, seed):
    """Over every pair of counts, at truths near the edges and inside."""
    regions = {
        (i, j): joint.joint_region(Counts(i, n, j, m), 0.05)
        for i in range(n + 1)
        for j in range(m + 1)
    }
    rng = np.random.default_rng(seed)
    for p, q in np.concatenate([rng.random((40, 2)), rng.beta(0.2, 0.2, (40, 2))]):
        missed = sum(
            binom.pmf(i, n, p) * binom.pmf(j, m, q)
            for (i, j), r in regions.items()
            if not (r.low_alpha <= q <= r.high_alpha and r.low_beta <= 1 - p <= r.high_beta)
        )
        assert missed <= 0.05


@pytest.mark.parametrize("kind", ["joint_region", "clopper_pearson_box", "hoeffding_box"])
@pytest.mark.parametrize("truth", [(0.5, 0.18), (0.97, 0.6), (0.02, 0.01)])
def test_regions_cover_the_truth_by_full_enumeration(kind, truth):
    n, m, gamma = 15, 11, 0.1
    p, q = truth
    covered = 0.0
    for i in range(n + 1):
        for j in range(m + 1):
            c = Counts(i, n, j, m)
            if kind == "joint_region":
                inside = joint.point_p_values(c, np.array([[p, q]]))[0] > gamma
            else:
                found = getattr(joint, kind)(c, gamma)
                inside = (
                    found.low_alpha <= q <= found.high_alpha
                    and found.low_beta <= 1 - p <= found.high_beta
                )
            covered += inside * binom.pmf(i, n, p) * binom.pmf(j, m, q)
    assert covered >= 1 - gamma


def test_outline_of_the_joint_region_is_where_its_p_value_is_gamma():
    c = Counts(500, 1000, 184, 1000)
    found = joint.joint_region(c, 0.05)
    p_values = joint.point_p_values(
        c, np.column_stack([1 - found.outline[:, 1], found.outline[:, 0]])
    )
    assert p_values.max() <= 0.051
    assert p_values.min() >= 0.045


def test_areas_of_the_three_regions_are_ordered():
    c = Counts(5000, 10_000, 1840, 10_000)
    x, y = joint.joint_region(c, 0.05).outline.T
    area = 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    box, wide = joint.clopper_pearson_box(c, 0.05), joint.hoeffding_box(c, 0.05)
    areas = [(r.high_alpha - r.low_alpha) * (r.high_beta - r.low_beta) for r in (box, wide)]
    assert area < areas[0] < areas[1]
