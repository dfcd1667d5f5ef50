"""Which mechanism it is: the same in another process, another where anything that matters differs."""

import collections
import functools
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest

import dpassay as dp
from dpassay.errors import StoreError
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


class Slots:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x, rng):
        return x + rng.laplace(scale=self.scale)


class Held:
    def __init__(self, scale):
        self._scale = scale

    def one(self, x, rng):
        return x + rng.laplace(scale=self._scale)

    def many(self, x, size, rng):
        return x + rng.laplace(scale=self._scale, size=size)


class OnTheClass:
    scale = 1.0

    def __call__(self, x, rng):
        return x + rng.laplace(scale=self.scale)


class Base:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x, rng):
        return self.draw(x, rng)


class Inherits(Base):
    def draw(self, x, rng):
        return x + rng.laplace(scale=self.scale)


class Named(collections.namedtuple("Named", "scale")):
    def __call__(self, x, rng):
        return x + rng.laplace(scale=self.scale)


class Listed(list):
    def __call__(self, x, rng):
        return x + rng.laplace(scale=self[0])


class Number(float):
    def __call__(self, x, rng):
        return x + rng.laplace(scale=float(self))


def with_scale(x, rng, scale):
    return x + rng.laplace(scale=scale)


def with_config(x, rng, config):
    return x + rng.laplace(scale=config._scale)


def on_the_class(scale):
    return type("OnTheClass", (OnTheClass,), {"scale": scale})()


def attribute(scale):
    def mechanism(x, rng):
        return x + rng.laplace(scale=mechanism.scale)

    mechanism.scale = scale
    return mechanism


def keyword_default(scale):
    def mechanism(x, rng, *, scale=scale):
        return x + rng.laplace(scale=scale)

    return mechanism


def cached(scale):
    @functools.lru_cache(None)
    def found():
        return scale

    return lambda x, rng: x + rng.laplace(scale=found())


def closure(held, scale_of):
    return lambda x, rng: x + rng.laplace(scale=scale_of(held))


def cycle(scale):
    held = {"scale": scale}
    held["self"] = held
    return closure(held, lambda h: h["self"]["scale"])


PLACES = {
    "bound method": lambda s: dp.from_function(Held(s).one),
    "bound method of arrays": lambda s: Held(s).many,
    "slots": Slots,
    "class attribute": on_the_class,
    "inherited call": Inherits,
    "named tuple": Named,
    "list": lambda s: Listed([s]),
    "number": Number,
    "keyword of a partial": lambda s: functools.partial(with_scale, scale=s),
    "object of a partial": lambda s: functools.partial(with_config, config=Held(s)),
    "closure": lambda s: closure(s, float),
    "cached function": cached,
    "closure over a method": lambda s: closure(Held(s).one, lambda one: one.__self__._scale),
    "closure over a list": lambda s: closure([Held(s)], lambda held: held[0]._scale),
    "closure over a dictionary": lambda s: closure({"a": Held(s)}, lambda held: held["a"]._scale),
    "closure over a set": lambda s: closure(frozenset({Named(s), Named(3.0)}), min),
    "cycle": cycle,
    "attribute of a function": attribute,
    "default of a keyword": keyword_default,
    "masked array": lambda s: closure(np.ma.array([s, 1.0], mask=[False, True]), np.min),
    "deque": lambda s: closure(collections.deque([s]), min),
    "one of many": lambda s: closure([*map(Held, range(600)), Held(s)], lambda h: h[-1]._scale),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_parameter_counts_wherever_it_is_held(place):
    build = PLACES[place]
    assert not difference(identity(build(1.0)), identity(build(1.0)))
    assert difference(identity(build(1.0)), identity(build(50.0)))


def test_two_functions_on_one_line_are_two():
    one, two = (lambda x, rng: x + 1.0, lambda x, rng: x + 2.0)
    assert difference(identity(one), identity(two)).startswith("code is")


def test_what_cannot_be_described_is_refused_and_named(tmp_path):
    class Connected:
        def __init__(self):
            self.link = (tmp_path / "file").open("w")

        def __call__(self, x, rng):
            return x

    made = Connected()
    with pytest.raises(StoreError, match=r"link is a _io.TextIOWrapper.*identity="):
        identity(made)
    assert identity(made, "connected, v1") == {"identity": "connected, v1"}
    with pytest.raises(StoreError, match=r"the input .*cannot be described.*identity="):
        input_identity(made.link)
    assert input_identity(made.link, "v1")["holds"] == "a _io.TextIOWrapper"
    made.link.close()


def test_a_module_of_ones_own_counts_by_what_is_used_of_it(tmp_path, monkeypatch):
    (tmp_path / "own_settings.py").write_text("SCALE = 1.0\nOTHER = 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import own_settings

    def inside(x, rng):
        from own_settings import SCALE

        return x + rng.laplace(scale=SCALE)

    def outside(x, rng):
        return x + rng.laplace(scale=own_settings.SCALE)

    for mechanism in (inside, outside):
        before = identity(mechanism)
        monkeypatch.setattr(own_settings, "OTHER", 2.0)
        assert not difference(before, identity(mechanism))
        monkeypatch.setattr(own_settings, "SCALE", 2.0)
        assert "SCALE is 1.0 in the store, and 2.0 here" in difference(before, identity(mechanism))
        monkeypatch.setattr(own_settings, "SCALE", 1.0)


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
        (make(1.0), make(1.0, (1, 3)), "table.1 is 2 in the store, and 3 here"),
        (make(1.0), with_helper, "function is .*make.*with_helper"),
        (Trainer(3, np.ones(3)), Trainer(4, np.ones(3)), "epochs is 3 in the store, and 4 here"),
        (Trainer(3, np.ones(3)), Trainer(3, np.zeros(3)), r"weights is array float64 \(3,\)"),
        (Trainer(3, np.ones(3)).train, Trainer(4, np.ones(3)).train, "self.epochs is 3"),
        (
            functools.partial(make(1.0), shift=3),
            functools.partial(make(1.0), shift=4),
            "shift is 3",
        ),
        (Frozen(1.0, dp.zoo.Laplace(1.0)), Frozen(1.0, dp.zoo.Laplace(2.0)), "inner.scale is 1.0"),
        (dp.from_command(["a", "b"]), dp.from_command(["a", "c"]), "argv.1 is"),
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
    assert difference(identity(space["f"]), identity(space["g"])).startswith("code is")


def test_another_process_finds_the_same(tmp_path):
    text = """
    import dpassay as dp, json, sys, numpy as np
    from dpassay.sampling.identity import identity
    SCALE = 2.0
    def release(x, rng):
        return x + SCALE * rng.laplace()
    class Box:
        __slots__ = ("inner", "names")
        def __init__(self, inner):
            self.names = {"a": [1, 2], "b": {"x", "y", ("z", 1)}}
            self.inner = inner
        def __call__(self, x, rng): return release(x, rng) if x in {"a", "b", "c"} else x
    class Listed(list): pass
    if __name__ == "__main__":
        own = np.random.default_rng().laplace
        made = release, Box(None), Box(Box(Listed([Box])).__call__), Box(own)
        print(json.dumps([identity(dp.from_function(f)) for f in made]))
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    found = {
        subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(k)},
        ).stdout
        for k in range(3)
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


def test_digests_of_inputs_tell_where_a_value_ends():
    from dpassay.sampling.identity import digest_of

    assert digest_of([1, 23]) != digest_of([12, 3])
