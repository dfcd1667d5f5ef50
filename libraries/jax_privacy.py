"""JAX Privacy: clipped gradients, Gaussian and correlated noise, batch selection.

Noise is drawn for every coordinate by itself, so that one call on a long vector is many draws.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import batch_selection, clipped_grad, noise_addition
from jax_privacy.matrix_factorization import toeplitz

from dpassay.blackbox.inputs import Real, Reals
from libraries.cases import Case, Finding, both
from libraries.spaces import with_hunts

DISTRIBUTION = "jax-privacy"

_BLOCK = 1024  # draws at once; a size for each call would be compiled anew, until memory ends
_PROVEN = "the ideal mechanism keeps the claim; only its values are looked at"
_ADD = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
_REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE
_VALUE: dict[str, Any] = {"space": Real(-20, 20), "relation": "query"}
#: One participation changes one step by 1 at most; the claim holds for mixtures of both steps too.
_STEPS: dict[str, Any] = {
    "space": Reals(-20, 20, length=2, convert="list"),
    "relation": "query",
    "norm": "l1",
}
#: Cases that are hunted too.
_HUNTED: dict[str, dict[str, Any]] = {
    "clipped gradients, replaced": {
        "space": Reals(-1e6, 1e6, length=2, convert="list"),
        "outside": True,
    },
    "Gaussian noise, float32, values": _VALUE,
    "Gaussian noise, float32, bits": _VALUE,
    "Gaussian noise, bfloat16, values": _VALUE,
    **dict.fromkeys(("correlated noise, dense", "correlated noise, streaming"), _STEPS),
    "Poisson sampling": {"space": Reals(-1, 1, length=(1, 4), convert="list"), "n": 20_000},
}


def _key() -> jax.Array:
    return jax.random.key(secrets.randbits(32))


def _noisy(values: jax.Array, stddev: float) -> np.ndarray:
    """Gaussian noise on each coordinate."""
    privatizer = noise_addition.gaussian_privatizer(stddev=stddev, prng_key=_key())
    noisy, _ = privatizer.update(values, privatizer.init(values))
    return np.asarray(noisy)


def _released(stddev: float = 1.0, dtype: Any = jnp.float32, **options: Any) -> tuple[Any, Any]:
    """A clipped sum of gradients of f(w) = w·x with noise, and the function that knows its norm."""
    gradient = clipped_grad(lambda w, x: jnp.sum(w * x), l2_clip_norm=1.0, **options)
    ready = jax.jit(lambda w, x: gradient(w, x))

    def draws(rows: Any, size: int) -> Any:
        total = ready(jnp.zeros(()), jnp.array(rows, dtype=jnp.float32))
        return _noisy(jnp.full(size, total, dtype=dtype), stddev)

    return draws, gradient


def _case(name: str, api: str, call: Any, pair: Any, mu: float, said: str, **more: Any) -> Case:
    more = {"relation": "add_remove", "n": 50_000, "group": "model", "sound": _PROVEN, **more}
    more.setdefault("claim", f"mu={mu!r}")
    claim = more.pop("claim")
    return Case(name, f"jax_privacy.{api}", call, pair, claim, said, vectorised=True, **more)


def cases() -> Iterator[Case]:
    """All cases."""
    return with_hunts(_by_hand(), _HUNTED, n=50_000)


def _by_hand() -> Iterator[Case]:
    yield from _gradients()
    yield from _correlated()
    yield from _sampled()


def _gradients() -> Iterator[Case]:
    added = [1.0, 0.0], [1.0, 1.0]

    def one(name: str, pair: Any, relation: Any = _ADD, trap: str = "", **options: Any) -> Case:
        call, gradient = _released(**options)
        sensitivity = float(gradient.sensitivity(relation))
        said = f"clipped_grad(…).sensitivity({relation.name}) = {sensitivity:g}, noise of stddev 1"
        short = "replace" if relation is _REPLACE else "add_remove"
        return _case(
            name,
            "clipped_grad",
            call,
            pair,
            sensitivity,
            said,
            look="values",
            trap=trap,
            relation=short,
        )

    yield one("clipped gradients", added)
    yield one("clipped gradients, replaced", ([1.0, 1.0], [1.0, -1.0]), _REPLACE)
    yield one("clipped gradients, rescaled to norm 1", added, rescale_to_unit_norm=True)
    yield one("clipped gradients, normalized", added, normalize_by=2.0)
    yield one("clipped gradients, microbatches", added, microbatch_size=1)
    yield one(
        "clipped gradients, an example of 1e30",
        ([1.0, 0.0], [1.0, 1e30]),
        trap="a gradient far beyond the clipping norm",
    )
    yield one(
        "clipped gradients, a tiny example",
        ([1.0, 0.0], [1.0, 1e-30]),
        trap="a gradient whose square underflows",
        rescale_to_unit_norm=True,
    )
    for value, word in ((float("nan"), "NaN"), (float("inf"), "infinite")):
        yield one(
            f"clipped gradients, an example that is {word}",
            ([1.0, 0.0], [1.0, value]),
            trap=f"an example whose gradient is {word}",
        )
    bare: dict[str, Any] = {"relation": "sensitivity_one", "n": 100_000}
    for dtype in (jnp.float32, jnp.bfloat16):

        def draws(value: Any, size: int, dtype: Any = dtype) -> Any:
            return _noisy(jnp.full(size, value, dtype=dtype), 1.0).astype(np.float32)

        yield from both(
            _case(
                f"Gaussian noise, {np.dtype(dtype).name}",
                "noise_addition.gaussian_privatizer",
                draws,
                (0.0, 1.0),
                1.0,
                "gaussian_privatizer(stddev=1): isotropic Gaussian noise; μ = 1",
                sound=_PROVEN if dtype is jnp.float32 else "",
                **bare,
            ),
            "",
        )


def _correlated() -> Iterator[Case]:
    """Two steps with noise that is correlated by a matrix; the strategy has columns of norm 1."""
    strategy = np.array([[1.0, 0.0], [0.5, 1.0]])
    strategy /= np.linalg.norm(strategy, axis=0)
    streaming = toeplitz.inverse_as_streaming_matrix(jnp.array([1.0, 0.5]))

    def two(matrix: Any) -> Callable[[Any, int], Any]:
        def block(values: jax.Array, key: jax.Array) -> jax.Array:
            privatizer = noise_addition.matrix_factorization_privatizer(
                matrix, stddev=1.0, prng_key=key
            )
            state = privatizer.init(jnp.zeros(_BLOCK))
            found = []
            for value in values:
                noisy, state = privatizer.update(jnp.full(_BLOCK, value), state)
                found.append(noisy)
            return jnp.stack(found, axis=1)

        ready = jax.jit(block)

        def draws(values: Any, size: int) -> Any:
            given = jnp.array(values, dtype=jnp.float32)
            blocks = [np.asarray(ready(given, _key())) for _ in range(-(-size // _BLOCK))]
            return np.concatenate(blocks)[:size]

        return draws

    api = "noise_addition.matrix_factorization_privatizer"
    shown = {"look": "values", "relation": "sensitivity_one"}
    yield _case(
        "correlated noise, dense",
        api,
        two(jnp.array(np.linalg.inv(strategy))),
        ([0.0, 0.0], [1.0, 0.0]),
        1.0,
        "noise C⁻¹z with columns of C of norm 1, stddev 1: one participation, μ = 1",
        **shown,
    )
    norm = float(np.hypot(1.0, 0.5))
    yield _case(
        "correlated noise, streaming",
        api,
        two(streaming),
        ([0.0, 0.0], [1.0, 0.0]),
        norm,
        "noise C⁻¹z with a Toeplitz C of columns (1, ½), stddev 1: one participation, μ = ‖(1, ½)‖",
        **shown,
    )


def _sampled() -> Iterator[Case]:
    """Poisson sampling, then a clipped sum with noise; the claim is dp-accounting's."""
    event = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(1.0))
    accountant = dp_accounting.pld.PLDAccountant(_ADD)
    epsilon = float(accountant.compose(event).get_epsilon(1e-3))
    strategy = batch_selection.CyclicPoissonSampling(sampling_prob=0.5, iterations=1)

    def draws(rows: Any, size: int) -> Any:
        data = np.array(rows)
        batches = (next(iter(strategy.batch_iterator(len(data)))) for _ in range(size))
        sums = np.array([data[batch].sum() for batch in batches], dtype=np.float32)
        return _noisy(jnp.array(sums), 1.0)

    yield _case(
        "Poisson sampling",
        "batch_selection.CyclicPoissonSampling",
        draws,
        ([0.0], [0.0, 1.0]),
        0.0,
        f"PoissonSampledDpEvent(0.5, GaussianDpEvent(1)): ε = {epsilon:.4g} at δ = 10⁻³ by PLD",
        claim=f"eps={epsilon!r}, delta=1e-3",
        look="values",
        n=20_000,
    )


FINDINGS: tuple[Finding, ...] = (
    Finding(
        title="Gaussian noise in low precision shows the input in its lowest bits",
        kind="floating point",
        cases=(
            "Gaussian noise, float32, bits",
            "Gaussian noise, bfloat16, values",
            "Gaussian noise, bfloat16, bits",
        ),
        cause=(
            "Noise is drawn and added in the precision of the gradients: which numbers can come out "
            "depends on the value; bfloat16 is so coarse that single numbers show it. The library makes "
            "no statement about finite precision."
        ),
        script="jax_privacy_bits.py",
        report=(
            "gaussian_privatizer adds noise in the dtype of the gradient, as in any other library that "
            "draws in floating point (see opacus #616): of 100,000 float32 outputs on 0 and on 1, the "
            "exponent of the lowest set bit tells them apart far beyond μ = 1. A sentence in the "
            "documentation would help: the guarantee is for exact arithmetic."
        ),
    ),
)
