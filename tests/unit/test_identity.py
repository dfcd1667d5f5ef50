"""Which mechanism it is: the same in another process, another where anything that matters differs."""

import functools
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest

import dpassay as dp
from dpassay.sampling.identity import difference, identity, input_identity, name_of

SCALE = 1.0


def helper(x):
    return x * SCALE


def with_helper(x, rng):
    return helper(x) + rng.laplace()


def make(scale, table=(1, 2)):
    def mechanism(x, rng, shift=0.5):
        return x + scale * rng.laplace() + shift + table[0]

    return mechanism


class Trainer:
    def __init__(self, epochs, weights):
        self.epochs, self.weights = epochs, weights
        self.rng = np.random.default_rng()

    def __call__(self, x, rng):
        return x

    def train(self, x, rng):
        return x


@dataclass(frozen=True)
class Frozen:
    scale: float
    inner: object = None

    def __call__(self, x, size, rng):
        return rng.random(size)


SAME = [
    lambda: dp.zoo.Laplace(0.5),
    lambda: dp.from_function(with_helper),
    lambda: dp.from_function(make(2.0)),
    lambda: Trainer(3, np.ones(3)),
    lambda: Trainer(3, np.ones(3)).train,
    lambda: functools.partial(make(1.0), shift=3),
    lambda: Frozen(1.0, dp.zoo.Laplace(2.0)),
    lambda: dp.from_command(["prog", "--fast"]),
    lambda: np.add,
]


@pytest.mark.parametrize("build", SAME)
def test_what_is_made_alike_is_the_same(build):
    assert not difference(identity(build()), identity(build()))


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        (dp.zoo.Laplace(0.5), dp.zoo.Laplace(0.6), "scale is 0.5 in the store, and 0.6 here"),
        (dp.zoo.Laplace(0.5), dp.zoo.Gaussian(0.5), "class is .*Laplace.*Gaussian"),
        (make(1.0), make(2.0), "scale is 1.0 in the store, and 2.0 here"),
        (make(1.0), make(1.0, (1, 3)), "table is"),
        (make(1.0), with_helper, "function is .*make.*with_helper"),
        (Trainer(3, np.ones(3)), Trainer(4, np.ones(3)), "epochs is 3 in the store, and 4 here"),
        (Trainer(3, np.ones(3)), Trainer(3, np.zeros(3)), "weights is"),
        (Trainer(3, np.ones(3)).train, Trainer(4, np.ones(3)).train, "self.epochs is 3"),
        (
            functools.partial(make(1.0), shift=3),
            functools.partial(make(1.0), shift=4),
            "shift is 3",
        ),
        (Frozen(1.0, dp.zoo.Laplace(1.0)), Frozen(1.0, dp.zoo.Laplace(2.0)), "inner.scale is 1.0"),
        (dp.from_command(["a", "b"]), dp.from_command(["a", "c"]), "argv is"),
    ],
)
def test_what_differs_is_named(one, two, words):
    import re

    assert re.search(words, difference(identity(one), identity(two)))


def test_a_helper_or_a_global_that_changes_makes_another_mechanism(monkeypatch):
    before = identity(with_helper)
    monkeypatch.setitem(with_helper.__globals__, "SCALE", 2.0)
    assert difference(before, identity(with_helper)).startswith("helper.SCALE is 1.0")
    monkeypatch.setitem(with_helper.__globals__, "SCALE", 1.0)
    monkeypatch.setitem(with_helper.__globals__, "helper", make(1.0))
    assert difference(before, identity(with_helper))


def test_functions_without_a_source_are_told_apart_by_their_code():
    space: dict[str, object] = {}
    exec("def f(x, rng): return x + 1\ndef g(x, rng): return x + 2", space)
    space["g"].__qualname__ = "f"
    assert difference(identity(space["f"]), identity(space["g"])).startswith("source is")


def test_another_process_finds_the_same(tmp_path):
    text = """
    import dpassay as dp, json, sys
    from dpassay.sampling.identity import identity
    SCALE = 2.0
    def release(x, rng):
        return x + SCALE * rng.laplace()
    class Box:
        def __init__(self): self.names = {"a": [1, 2], "b": {3, 4}}
        def __call__(self, x, rng): return release(x, rng)
    if __name__ == "__main__":
        print(json.dumps([identity(dp.from_function(f)) for f in (release, Box())]))
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    found = {
        subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(found) == 1


def test_names_and_inputs():
    assert name_of(dp.from_function(with_helper)).endswith("with_helper")
    assert name_of(dp.zoo.Laplace(0.5)) == "Laplace(scale=0.5)"
    assert name_of(Trainer(1, None)) == "Trainer"
    same = [np.zeros(10**6), [1, {"a": 2}], "text", 0.1, None]
    for data in same:
        again = data.copy() if isinstance(data, np.ndarray) else data
        assert input_identity(data) == input_identity(again)
    changed = np.zeros(10**6)
    changed[-1] = 1e-300
    assert input_identity(changed)["holds"] != input_identity(np.zeros(10**6))["holds"]
    assert input_identity(object())["holds"] == "a builtins.object"
