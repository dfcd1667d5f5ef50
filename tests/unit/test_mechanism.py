import functools
import sys

import numpy as np
import pytest

import dpassay as dp
from dpassay.blackbox.mechanism import check_mechanism
from dpassay.errors import BadOutput, InvalidInput, MechanismRaised, MechanismTimedOut

ECHO = """
import json, sys, random
request = json.loads(sys.stdin.readline())
rng = random.Random(request["seed"])
for _ in range(request["size"]):
    print(json.dumps(request["data"] + rng.gauss(0, 1)))
"""


def command(code: str, **kwargs):
    return dp.from_command([sys.executable, "-c", code], **kwargs)


def test_from_function_tells_data_from_data_and_rng():
    assert not dp.from_function(lambda data: data).takes_rng
    assert dp.from_function(lambda data, rng: data).takes_rng
    assert dp.from_function(lambda data, rng=None: data).takes_rng
    assert not dp.from_function(lambda data, scale=2.0: data).takes_rng
    assert not dp.from_function(abs).takes_rng


def noisy(data, epsilon, rng):
    return data + rng.laplace(scale=1 / epsilon)


def later(data, epsilon=1.0, lower=0.0, rng=None):
    assert rng is not None
    return noisy(data, epsilon, rng) + lower


def by_keyword(data, *, rng, epsilon=1.0):
    return noisy(data, epsilon, rng)


@pytest.mark.parametrize("function", [later, by_keyword, functools.partial(noisy, epsilon=1.0)])
def test_a_parameter_rng_is_the_generator_wherever_it_stands(function):
    """Else its draws would come from a randomness of its own, or the generator would be its ε."""
    one, again = (dp.draw(dp.from_function(function), (0.0, 1.0), n=20, rng=3) for _ in range(2))
    assert one.replayable
    assert np.array_equal(one.p.numbers, again.p.numbers)
    plain = dp.draw(dp.from_function(lambda x, r: noisy(x, 1.0, r)), (0.0, 1.0), n=20, rng=3)
    assert np.array_equal(one.q.numbers, plain.q.numbers)


def test_a_generator_is_known_by_its_name_or_type():
    def typed(data, source: np.random.Generator):
        return data

    for function in (lambda x, r: x, lambda x, generator: x, lambda x, _: x, typed):
        assert dp.from_function(function).takes_rng


def test_a_function_that_returns_one_output_is_told_so_before_the_first_draw():
    for function in (later, lambda x, rng, *more: x):
        with pytest.raises(InvalidInput, match="`rng` is not the third.*from_function"):
            dp.audit(function, (0.0, 1.0), "eps=1", n=100)
    check_mechanism(lambda x, size, /, rng: x)


def test_a_function_that_cannot_be_called_as_a_mechanism_is_told_so_and_shows_its_own_lines():
    def mean(data, epsilon=1.0, bound=1.0):
        return min(data, bound)

    with pytest.raises(MechanismRaised, match="TypeError.*Generator") as caught:
        dp.draw(mean, (0.0, 1.0), n=100)
    said = str(caught.value)
    assert "dp.from_function(…)" in said
    assert "on_error" not in said
    assert "return min(data, bound)" in said
    assert "job.py" not in said

    def fails(data, size, rng):
        raise RuntimeError("no")

    with pytest.raises(MechanismRaised, match="on_error"):
        dp.draw(fails, (0.0, 1.0), n=100)


def test_only_functions_that_take_rng_are_replayable():
    own = dp.draw(dp.from_function(lambda x: x + np.random.laplace()), (0.0, 1.0), n=10)
    given = dp.draw(dp.from_function(lambda x, rng: x + rng.laplace()), (0.0, 1.0), n=10)
    assert (own.replayable, given.replayable) == (False, True)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (3, "must be callable"),
        (lambda: 1, "must take \\(data\\) or \\(data, rng\\)"),
        (lambda data, size, rng: data, "mechanism already"),
        (lambda data, n, r: data, "mechanism already"),
        (lambda data, epsilon: data, "functools.partial\\(.*epsilon=…\\)\\), and call"),
        (noisy, r"must take \(data\) or \(data, rng\).*partial\(noisy, epsilon=…\)\)$"),
    ],
)
def test_from_function_explains_what_it_cannot_wrap(function, words):
    with pytest.raises(InvalidInput, match=words):
        dp.from_function(function)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (1.0, "must be callable"),
        (lambda x: x, "from_function"),
        (lambda x, rng: x, "from_function"),
        (lambda: 1, "must accept \\(data, size, rng\\)"),
    ],
)
def test_signatures_are_checked_before_the_first_draw(mechanism, words):
    with pytest.raises(InvalidInput, match=words):
        check_mechanism(mechanism)


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [
        ([1.0, 2.0], "f"),
        ([1, 2], "i"),
        ([1, 2.0], "O"),
        ([None, "a"], "O"),
        ([True, False], "O"),
        ([10**30, 1], "O"),
        ([[1, 2], [3]], "O"),
    ],
)
def test_single_outputs_are_collected_as_they_are(outputs, kind):
    wrapped = dp.from_function(lambda state: state.pop(0))
    assert wrapped(list(outputs), 2, np.random.default_rng(0)) == outputs


def test_command_draws_reproducibly():
    first, second = (dp.draw(command(ECHO), (0.0, 5.0), n=40, rng=1) for _ in range(2))
    assert np.array_equal(first.p.numbers, second.p.numbers)
    assert second.q.numbers.mean() > 3


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (
            "import sys; print('oh no', file=sys.stderr); sys.exit(3)",
            MechanismRaised,
            "status 3(?s:.*)oh no",
        ),
        ("print(1)", BadOutput, "wrote 1 lines for size=10"),
        ("print('hello\\n' * 10)", BadOutput, "line 1 is not JSON(?s:.*)hello"),
    ],
)
def test_command_failures_quote_the_command_and_its_stderr(code, error, words):
    with pytest.raises(error, match=words) as caught:
        dp.draw(command(code), (0, 1), n=20)
    assert sys.executable in str(caught.value)


def test_command_times_out():
    with pytest.raises(MechanismTimedOut, match=r"longer than 0\.2 s"):
        dp.draw(command("import time; time.sleep(60)", timeout=0.2), (0, 1), n=2)


def test_command_that_ignores_its_seed_is_noticed():
    fixed = ECHO.replace('random.Random(request["seed"])', "random.Random(7)")
    with pytest.raises(dp.errors.DependentDraws, match="fixed seed"):
        dp.draw(command(fixed), (0.0, 1.0), n=40)


def test_missing_program_and_unwritable_input_are_explained():
    with pytest.raises(MechanismRaised, match="could not be started"):
        dp.draw(dp.from_command(["no-such-program-anywhere"]), (0, 1), n=2)
    with pytest.raises(InvalidInput, match="written as JSON"):
        dp.draw(command(ECHO), (object(), 1), n=2)
    with pytest.raises(InvalidInput, match="list of strings"):
        dp.from_command("prog arg")


def test_functions_are_called_in_messages_what_their_definition_calls_them():
    def inner(data):
        return data

    with pytest.raises(InvalidInput, match=r"^inner\(data\) is .* dp.from_function\(inner\)"):
        check_mechanism(inner)
    with pytest.raises(InvalidInput, match=r"^lambda\(data, rng\) is .* dp.from_function\(…\)"):
        check_mechanism(lambda data, rng: data)
