"""Claims from text, and what is printed is read back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpassay as dp
from dpassay.errors import InvalidInput
from dpassay.privacy.claim_parsing import parameter


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("eps=1", dp.PureDP(1)),
        (" epsilon = .5 ", dp.PureDP(0.5)),
        ("ε<=1e-1", dp.PureDP(0.1)),
        ("eps=1, delta=1e-5", dp.ApproximateDP(1, 1e-5)),
        ("delta=1e-5; eps=1", dp.ApproximateDP(1, 1e-5)),
        ("renyi(order=5)=0.2", dp.RenyiDP(5, 0.2)),
        ("RDP(2.5) <= 1", dp.RenyiDP(2.5, 1)),
        ("rho=0.5", dp.ZeroConcentratedDP(0.5)),
        ("mu=1", dp.GaussianDP(1)),
        ("rho=0.5, delta=1e-6", dp.ZeroConcentratedDP(0.5, 1e-6)),
        ("δ=1e-6; ρ=0.5", dp.ZeroConcentratedDP(0.5, 1e-6)),
        ("renyi(2)=0.1, renyi(4)=0.3", dp.RenyiCurveDP((2, 4), (0.1, 0.3))),
        ("rdp(order=4) <= 0.3; rdp(2) ≤ 0.1", dp.RenyiCurveDP((2, 4), (0.1, 0.3))),
        ("eps=1, delta=1e-5 in delta", dp.ApproximateDP(1, 1e-5, headline="delta")),
        ("(1, 1e-5)-DP in ε", dp.ApproximateDP(1, 1e-5)),
        ("1-dp", dp.PureDP(1)),
        ("(2, 0.1)-Renyi DP", dp.RenyiDP(2, 0.1)),
        ("( .5 , 1e-6 )-ZCDP", dp.ZeroConcentratedDP(0.5, 1e-6)),
    ],
)
def test_claims_from_text(text, claim):
    assert dp.claim(text) == claim


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be text such as"),
        ("privacy", "cannot read 'privacy'"),
        ("eps=one", "cannot read 'eps=one'"),
        ("eps=1,0", "if 1,0 is one number, the decimal mark is a point: 1.0; "),
        ("eps=1, delta=1,5e-5", "if 1,5e-5 is one number, the decimal mark is a point: 1.5e-5; "),
        ("renyi(2)=0,1", "if 0,1 is one number, the decimal mark is a point: 0.1; "),
        ("eps=1, mu=2", "epsilon and mu do not go together"),
        ("eps=1, eps=2", "given twice"),
        ("delta=0.1", "write eps=0, delta=0.1"),
        ("eps=-1", "at least 0"),
        ("__import__('os')", "cannot read"),
        ("f-DP", r"has no text.*TradeoffDP\(points\).*from_delta"),
        ("f-DP (2 points joined by chords) lowered by 0.1", "has no text"),
        ("Rényi DP at 3 orders (2 to 8)", r"values are missing.*RenyiCurveDP"),
        ("renyi(2)=0.1, eps=1", "'eps=1' does not go with a Rényi claim"),
        ("renyi(2)=0.1, renyi(2)=0.2", "order 2 is given twice"),
        ("eps=1 in delta", "only a claim with eps and delta"),
        ("(1, 2)-GDP", "one parameter"),
        ("2-Rényi DP", "an order and an epsilon"),
        ("rho=0.5, mu=1", "mu and rho do not go together"),
        ("(1, 1)-DP", "below 1"),
    ],
)
def test_text_that_is_no_claim_is_explained(text, words):
    with pytest.raises(InvalidInput, match=words):
        dp.claim(text)


positive = st.floats(min_value=0, max_value=1e6, allow_subnormal=True)
below_one = st.floats(min_value=0, max_value=1, exclude_max=True)
above_one = st.floats(min_value=1, max_value=1e6, exclude_min=True)
WITH_TEXT = st.one_of(
    st.builds(dp.PureDP, positive),
    st.builds(dp.ApproximateDP, positive, below_one, st.sampled_from(["epsilon", "delta"])),
    st.builds(dp.GaussianDP, positive),
    st.builds(dp.RenyiDP, above_one, positive),
    st.builds(dp.ZeroConcentratedDP, positive, below_one),
)


@given(WITH_TEXT)
@settings(max_examples=300, deadline=None)
def test_what_is_printed_is_read_back(one):
    assert dp.claim(str(one)) == one
    assert dp.claim(f"  {one} ") == one


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (dp.PureDP(1), "1-DP"),
        (dp.PureDP(0.1), "0.1-DP"),
        (dp.PureDP(0.30000000000000004), "0.30000000000000004-DP"),
        (dp.ApproximateDP(1, 1e-5), "(1, 1e-05)-DP"),
        (dp.ApproximateDP(1, 1e-5, headline="delta"), "(1, 1e-05)-DP in δ"),
        (dp.GaussianDP(1), "1-GDP"),
        (dp.RenyiDP(2, 0.1), "(2, 0.1)-Rényi DP"),
        (dp.ZeroConcentratedDP(0.5), "0.5-zCDP"),
        (dp.ZeroConcentratedDP(0.5, 1e-6), "(0.5, 1e-06)-zCDP"),
        (dp.RenyiCurveDP((2, 4, 8), (0.1, 0.2, 0.4)), "Rényi DP at 3 orders (2 to 8)"),
        (dp.RenyiCurveDP((2,), (0.1,)), "Rényi DP at order 2"),
        (dp.RenyiCurveDP((2, 4), (0.1, 0.2), 1.5), "1.5 × Rényi DP at 2 orders (2 to 4)"),
        (
            dp.TradeoffDP([(0, 1), (1, 0)], gap=0.1),
            "f-DP (2 points joined by chords) lowered by 0.1",
        ),
    ],
)
def test_how_claims_are_printed(one, text):
    assert str(one) == text


@pytest.mark.parametrize(
    "text",
    [
        "epsilon 1, delta 1e-5",
        "epsilon 1 delta 1e-5",
        "eps=1 delta=1e-5",
        "eps = 1 and delta = 1e-5",
        "ε: 1, δ: 1e-5",
        "(1, 1e-5)",
        "(1, 10^-5)",
        "(ε = 1, δ = 10⁻⁵)",
        "eps=1, delta=10^-5",
        "eps=1, delta=10^(-5)",
        "eps=1, delta=10**-5",
        "eps=1, delta=1×10⁻⁵",
        "eps=1, delta=0.1*10^-4",
        "(1, 10^-5)-DP",
    ],
)
def test_a_claim_as_people_write_it(text):
    assert dp.claim(text) == dp.ApproximateDP(1.0, 1e-5)


@pytest.mark.parametrize(
    "text", ["eps=2 delta", "eps", "x 1", "1, 1e-5", "eps=110^-5", "(1)", "eps 1 2"]
)
def test_what_may_mean_several_things_is_refused(text):
    with pytest.raises(InvalidInput, match="cannot read"):
        dp.claim(text)


def test_a_class_is_no_claim():
    class PLDAccountant:
        def get_epsilon(self, delta):
            return 1.0

    for kind in (PLDAccountant, dp.PureDP):
        with pytest.raises(InvalidInput, match=f"{kind.__name__} is a class"):
            dp.claim(kind)
        with pytest.raises(InvalidInput, match="is a class"):
            dp.audit(dp.zoo.Laplace(1.0), (0.0, 1.0), kind, n=100)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("eps=" + "9" * 1000, "at most 100 digits, got 1000"),
        ("9" * 1000, "at most 100 digits"),
        ("eps=1, " * 5000, "at most 10,000 characters"),
        ("eps=1" + " x" * 20_000, "at most 10,000 characters"),
    ],
)
def test_text_that_is_too_long_is_refused_before_it_is_read(text, words):
    for read in (dp.claim, parameter):
        with pytest.raises(InvalidInput, match=words):
            read(text)


@pytest.mark.parametrize(
    "text", ["eps=1e-999999999", "eps=1, delta=1e-400", "1e-400-DP", "rho=0.1e-999"]
)
def test_a_number_that_would_be_read_as_0_is_refused(text):
    with pytest.raises(InvalidInput, match="too small for a number of 64 bits"):
        dp.claim(text)


def test_a_number_that_would_be_read_as_infinity_is_refused():
    with pytest.raises(InvalidInput, match="1e999 is too large"):
        dp.claim("mu=1e999")


def test_zero_may_be_written_with_an_exponent():
    assert dp.claim("eps=0e-999, delta=0.0e5") == dp.ApproximateDP(0, 0)


def test_a_tuple_of_two_numbers_is_an_epsilon_and_a_delta():
    for one in ((4.0, 1e-5), (4, np.float64(1e-5))):
        assert dp.claim(one) == dp.ApproximateDP(4.0, 1e-5)
    assert dp.audit(dp.zoo.Laplace(1.0), (0, 1), (1.0, 1e-5), n=500, rng=0).claim.point == (1, 1e-5)
    with pytest.raises(InvalidInput, match="delta must be .*got 4.0"):
        dp.claim((1e-5, 4.0))
    for one in ((1.0,), (1.0, 2.0, 3.0), [4.0, 1e-5]):
        with pytest.raises(InvalidInput, match="a tuple"):
            dp.claim(one)


def test_a_function_is_no_claim_and_the_message_says_what_to_write():
    with pytest.raises(InvalidInput, match=r"dp\.TradeoffDP\(f\)"):
        dp.claim(lambda alpha: 1 - alpha)


def test_trade_off_claims_are_named_after_what_they_come_from():
    class Accountant:
        def get_epsilon(self, delta):
            return 1.0

    assert str(dp.claim(Accountant())) == "f-DP (Accountant)"
    assert str(dp.TradeoffDP(dp.GaussianDP(0.5).tradeoff)) == "f-DP (0.5-GDP)"


def test_points_of_a_file_that_seem_exchanged_are_refused(tmp_path):
    """Pairs are [δ, ε] there and (ε, δ) elsewhere; ε = 1e-5 at δ = .52 is nobody's claim."""
    place = tmp_path / "curve.json"
    place.write_text("[[0.52, 1e-5], [0.44, 1e-4], [0.34, 1e-3]]")
    with pytest.raises(InvalidInput, match="exchanged"):
        dp.claim(str(place))
    place.write_text("[[1e-5, 0.52], [1e-4, 0.44], [1e-3, 0.34]]")
    assert dp.claim(str(place)).delta_at(0.52) < 2e-5
