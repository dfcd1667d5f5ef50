"""Arguments of any kind are taken, or refused in words that name them."""

import math

import numpy as np
import pytest

import dpassay as dp
from dpassay import validation as checks
from dpassay.errors import InvalidInput

LAPLACE = dp.zoo.Laplace(1.0)


class NoRepr:
    def __repr__(self):
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": np.array([1, 2])}, r"n must be a whole number of at least 8, got \[1 2\]"),
        (
            {"n": 10**308},
            "n must be a whole number of at least 8 and at most 9,007,199,254,740,992",
        ),
        ({"n": 10**5000}, "an? int that cannot be printed"),
        ({"n": np.timedelta64(300, "s")}, "n must be a whole number"),
        ({"confidence": np.array([0.9, 0.95])}, "confidence must be a number above 0 and below 1"),
        ({"confidence": 10**400}, "confidence must be a number above 0 and below 1"),
        ({"confidence": NoRepr()}, "got a NoRepr that cannot be printed"),
        ({"loss": np.array([1, 2])}, "a classifier must be one of"),
        ({"details": np.array([1, 2])}, "details must be True or False"),
        ({"relation": ["replace"]}, "relation must be one of"),
        ({"rng": np.timedelta64(3, "s")}, "rng must be a non-negative seed"),
    ],
)
def test_options_of_another_type_are_refused_with_their_names(options, words):
    with pytest.raises(InvalidInput, match=words):
        dp.audit(LAPLACE, (0.0, 1.0), "eps=1", **{"n": 100, "rng": 0, **options})


@pytest.mark.parametrize(
    "value", [None, "a", {}, [[1], [2, 3]], 10**400, math.nan, [0.1, math.nan]]
)
def test_numbers_that_are_none_are_refused(value):
    curve = dp.TradeoffCurve([0, 0.25, 1], [1, 0.25, 0])
    for ask in (dp.PureDP(1.0).region, dp.PureDP(1.0).delta_at, curve, curve.delta):
        with pytest.raises(InvalidInput, match="must be a number, or an array of numbers"):
            ask(value)


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.uint64(3)])
def test_whole_numbers_of_every_type_are_taken(value):
    assert checks.whole("n", value) == 3


@pytest.mark.parametrize("value", [True, 2.5, "3", np.array(3), math.nan, math.inf, None])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(InvalidInput, match="n must be a whole number of at least 1"):
        checks.whole("n", value)


def test_a_word_that_is_nearly_allowed_is_named():
    with pytest.raises(InvalidInput, match=r"got 'remove'; did you mean 'add_remove'\?"):
        checks.one_of("relation", "remove", ("add_remove", "replace"))
    with pytest.raises(InvalidInput, match="got 3$"):
        checks.one_of("relation", 3, ("add_remove", "replace"))
