"""Objects of other libraries as mechanisms that state their own claim (real ones: tests/libraries)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpassay as dp
from dpassay import testing
from dpassay.errors import InvalidInput
from dpassay.privacy.relations import Relation


def measurement(metric: str, measure: str, value: Any, kind: str = "f64") -> Any:
    """What dpassay looks at in an OpenDP measurement; the privacy map is d ↦ value(d)."""
    rng = np.random.default_rng(0)
    return SimpleNamespace(
        input_metric=metric,
        output_measure=measure,
        input_distance_type=kind,
        map=value,
        invoke=lambda data: round(float(np.sum(data)) + rng.laplace(), 6),
    )


@pytest.mark.parametrize(
    ("metric", "pair", "distance"),
    [
        ("AbsoluteDistance(f64)", (0.5, 2.0), 1.5),
        ("L1Distance(f64)", ([0.0, 1.0], [2.0, 0.0]), 3.0),
        ("L2Distance(f64)", ([0.0, 0.0], [3.0, 4.0]), 5.0),
        ("SymmetricDistance()", ([1, 2, 2], [2, 2, 2]), 2),
        ("ChangeOneDistance()", ([1, 2, 2], [2, 2, 2]), 1),
        ("HammingDistance()", ([1, 2, 2], [2, 2, 1]), 2),
        ("DiscreteDistance()", ("a", "b"), 1),
    ],
)
def test_the_privacy_map_is_asked_at_the_distance_of_the_pair(metric, pair, distance):
    kind = "f64" if "f64" in metric else "u32"
    asked = []

    def privacy_map(d: Any) -> float:
        asked.append(d)
        return 1.0

    box = measurement(metric, "MaxDivergence", privacy_map, kind)
    box.invoke = lambda data: 0
    assert dp.audit(box, pair, n=200, rng=0).claim.epsilon == 1.0
    assert asked == [distance]
    assert isinstance(asked[0], float if kind == "f64" else int)


@pytest.mark.parametrize(
    ("measure", "value", "claim"),
    [
        ("MaxDivergence", 1.5, "1.5-DP"),
        ("Approximate(MaxDivergence)", (1.5, 1e-6), "(1.5, 1e-06)-DP"),
        ("ZeroConcentratedDivergence", 0.5, "0.5-zCDP"),
        ("Approximate(ZeroConcentratedDivergence)", (0.5, 1e-6), "(0.5, 1e-06)-zCDP"),
        (
            "SmoothedMaxDivergence",
            SimpleNamespace(delta=dp.GaussianDP(1.0).delta_at),
            "f-DP (1-GDP)",
        ),
        ("RenyiDivergence", lambda order: 0.1 * order, "Rényi DP at 9 orders (1.25 to 64)"),
    ],
)
def test_measures_become_claims(measure, value, claim):
    box = measurement("AbsoluteDistance(f64)", measure, lambda d: value)
    assert str(dp.audit(box, (0.0, 1.0), n=400, rng=0).claim) == claim


def test_every_verb_takes_the_claim_from_the_object():
    box = measurement("AbsoluteDistance(f64)", "MaxDivergence", lambda d: 0.2 * d)
    assert dp.audit(box, (0.0, 1.0), n=2000, rng=0).violated
    assert dp.monitor(box, (0.0, 1.0), max_n=2000, rng=0).violated
    assert not dp.verify(box, (0.0, 1.0), n=2000, rng=0).confirmed
    with pytest.raises(testing.PrivacyViolation):
        testing.assert_private(box, (0.0, 1.0), n=2000, seed=0)
    assert not dp.audit(box, (0.0, 1.0), "eps=1.5", n=500, rng=0).violated
    assert dp.bound(box, (0.0, 1.0), n=2000, rng=0).value > 0.5
    with pytest.raises(
        InvalidInput, match=r"claims different things about these pairs \(0.2-DP, 0.4"
    ):
        dp.audit(box, [(0.0, 1.0), (0.0, 2.0)], n=2000, rng=0)


def test_what_an_object_does_not_say_is_asked_for():
    box = measurement("PartitionDistance()", "MaxDivergence", lambda d: 1.0)
    with pytest.raises(InvalidInput, match="the metric PartitionDistance.*give claim="):
        dp.audit(box, (0.0, 1.0), n=100)
    box = measurement("AbsoluteDistance(f64)", "MaxDivergence", lambda d: 1.0)
    with pytest.raises(InvalidInput, match=r"have no AbsoluteDistance.*\[1\]"):
        dp.audit(box, ([1], [2]), n=100)


def test_a_mechanism_with_a_sensitivity():
    rng = np.random.default_rng(0)
    box = SimpleNamespace(
        epsilon=0.3, delta=0.0, sensitivity=1, randomise=lambda x: round(x + rng.laplace(), 6)
    )
    verdict = dp.audit(box, (0.0, 1.0), n=2000, rng=0)
    assert (str(verdict.claim), verdict.violated) == ("0.3-DP", True)
    with pytest.raises(InvalidInput, match="are 2 apart.*sensitivity 1"):
        dp.audit(box, (0.0, 2.0), n=2000)
    box.delta = 1e-3
    assert str(dp.audit(box, (0.0, 1.0), n=500, rng=0).claim) == "(0.3, 0.001)-DP"


def domain(kind: str, bounds: Any = None, **vector: Any) -> Any:
    atom = SimpleNamespace(carrier_type=kind, bounds=bounds)
    return SimpleNamespace(element_domain=atom, **vector) if vector else atom


@pytest.mark.parametrize(
    ("metric", "domain", "relation", "distance", "input_type"),
    [
        ("AbsoluteDistance(f64)", domain("f64", (0.0, 5.0)), Relation.SENSITIVITY, 1.0, float),
        ("AbsoluteDistance(i32)", domain("i32"), Relation.SENSITIVITY, 1, int),
        ("L1Distance(i32)", domain("i32", size=3), Relation.SENSITIVITY, 1, list),
        ("SymmetricDistance()", domain("i32", (0, 9), size=None), Relation.ADD_REMOVE, 1, list),
        ("SymmetricDistance()", domain("f64", (0.0, 9.0), size=4), Relation.REPLACE_ONE, 2, list),
        ("ChangeOneDistance()", domain("String", size=4), Relation.REPLACE_ONE, 1, list),
        ("DiscreteDistance()", domain("bool"), Relation.REPLACE_ONE, 1, bool),
    ],
)
def test_a_hunt_takes_space_relation_and_claim_from_a_measurement(
    metric, domain, relation, distance, input_type
):
    asked = []

    def privacy_map(d: Any) -> float:
        asked.append(d)
        return 1.0

    box = measurement(metric, "MaxDivergence", privacy_map, "f64" if "f64" in metric else "u32")
    box.input_domain = domain
    box.invoke = lambda data: 0
    found = dp.hunt(box, budget=200, rng=0)
    assert asked == [distance]
    assert found.pair.relation is relation
    assert isinstance(found.pair[0], input_type)


def test_what_a_hunt_is_told_comes_before_what_the_object_says():
    box = measurement("AbsoluteDistance(f64)", "MaxDivergence", lambda d: 0.2 * d)
    box.input_domain = domain("f64", (0.0, 5.0))
    found = dp.hunt(box, budget=4000, rng=0)
    assert (str(found.verdict.claim), found.violated) == ("0.2-DP", True)
    assert not dp.hunt(box, claim="eps=3", budget=4000, rng=0).violated
    near = dp.hunt(box, dp.inputs.Real(0, 1), sensitivity=0.01, budget=4000, rng=0)
    assert abs(near.pair[0] - near.pair[1]) <= 0.01
    box.input_domain = domain("Bitvector")
    with pytest.raises(InvalidInput, match="no space is made of.*give space= and claim="):
        dp.hunt(box, budget=4000)
    with pytest.raises(InvalidInput, match="give space: only measurements of OpenDP"):
        dp.hunt(lambda data, size, rng: rng.random(size), claim="eps=1")


def test_a_hunt_of_a_mechanism_with_a_sensitivity():
    rng = np.random.default_rng(0)
    box = SimpleNamespace(
        epsilon=0.3, delta=0.0, sensitivity=1, randomise=lambda x: round(x + rng.laplace(), 6)
    )
    assert dp.hunt(box, budget=4000, rng=0).violated
    box.lower, box.upper = 2.0, 4.0
    assert all(2 <= x <= 4 for x in dp.hunt(box, budget=400, rng=0).pair)
    box.value0, box.value1, box.randomise = "a", "b", lambda x: x
    assert set(dp.hunt(box, budget=400, rng=0).pair) == {"a", "b"}
    del box.value0, box.sensitivity
    with pytest.raises(InvalidInput, match="does not say what its inputs are"):
        dp.hunt(box, budget=400)


class Exact(float):
    """A number of Tumult Core, which is rounded on demand."""

    def to_float(self, *, round_up: bool) -> float:
        assert round_up
        return float(self)


class AbsoluteDifference:
    """A metric of Tumult Core, which computes distances itself."""

    def distance(self, a: Any, b: Any, domain: Any) -> float:
        assert isinstance(a, domain.carrier_type)
        return abs(float(a) - float(b))


class TumultNoise:
    """What dpassay looks at in a measurement of Tumult Core."""

    def __init__(self, measure: str, value: Any) -> None:
        self.input_domain = SimpleNamespace(carrier_type=np.float64)
        self.input_metric = AbsoluteDifference()
        self.output_measure = type(measure, (), {})()
        self.privacy_function = value
        self.rng = np.random.default_rng(0)

    def __call__(self, data: Any) -> float:
        assert isinstance(data, np.float64)
        return round(float(data + self.rng.laplace()), 6)


@pytest.mark.parametrize(
    ("measure", "value", "claim"),
    [
        ("PureDP", lambda d: Exact(1.5 * d), "3-DP"),
        ("ApproxDP", lambda d: (Exact(1.5 * d), Exact(1e-6)), "(3, 1e-06)-DP"),
        ("RhoZCDP", lambda d: Exact(0.5 * d), "1-zCDP"),
    ],
)
def test_a_tumult_measurement_states_its_claim_at_the_distance_of_the_pair(measure, value, claim):
    box = TumultNoise(measure, value)
    assert str(dp.audit(box, (0.0, 2.0), n=400, rng=0).claim) == claim
    found = dp.hunt(box, budget=3000, rng=0)
    assert found.pair.relation is Relation.SENSITIVITY
    assert found.verdict.claim.value == dp.audit(box, (0.0, 1.0), n=400, rng=0).claim.value


def test_measures_of_tumult_that_are_no_claims_are_named():
    with pytest.raises(InvalidInput, match="no claim is made of the measure Other, only of PureDP"):
        dp.audit(TumultNoise("Other", Exact), (0.0, 1.0), n=400)


class Model:
    """What dpassay looks at in a model of diffprivlib: an ε, and a copy that is fitted."""

    epsilon, accountant = 0.5, None

    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def fit(self, x: Any, y: Any = None) -> Any:
        self.mean_ = float(np.mean(x)) + self.rng.laplace() / 10
        return self.mean_


def test_a_model_is_fitted_anew_for_every_output():
    model, rows = Model(), (np.zeros((3, 1)), np.zeros(3))
    verdict = dp.audit(model, (rows, (np.ones((3, 1)), np.zeros(3))), n=400, rng=0)
    assert (verdict.claim, verdict.violated) == (dp.PureDP(0.5), True)
    assert not hasattr(model, "mean_")
    with pytest.raises(
        InvalidInput, match=r"Model does not say what its rows are: .* epsilon is 0.5"
    ):
        dp.hunt(model)


def test_a_claim_in_the_place_of_inputs_is_named():
    with pytest.raises(InvalidInput, match="pairs is 'eps=1', which is a claim"):
        dp.audit(dp.zoo.Laplace(1.0), "eps=1", (0.0, 1.0), n=1000)
    with pytest.raises(InvalidInput, match=r"audit\(samples, claim=…\)"):
        dp.audit(dp.from_samples(np.arange(50.0) % 7, np.arange(50.0) % 5), "eps=0.5")
    with pytest.raises(InvalidInput, match="space is 'eps=1', which is a claim"):
        testing.hunt_private(dp.zoo.Laplace(1.0), "eps=1")
    exponential = SimpleNamespace(randomise=None, epsilon=1.0, delta=0.0, utility=[1, 2])
    with pytest.raises(InvalidInput, match="takes no input, its data are the utility"):
        dp.audit(exponential, (0, 1), n=400)
