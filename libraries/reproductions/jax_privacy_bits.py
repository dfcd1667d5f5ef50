"""JAX Privacy: how many outputs of float32 Gaussian noise on 0 and on 1 have bits below 2**-26."""

from fractions import Fraction

import jax
import jax.numpy as jnp
from jax_privacy.noise_addition import gaussian_privatizer

for key, value in enumerate((0.0, 1.0)):
    inputs = jnp.full(20_000, value)
    privatizer = gaussian_privatizer(stddev=1.0, prng_key=jax.random.key(key))
    outputs, _ = privatizer.update(inputs, privatizer.init(inputs))
    fine = sum(Fraction(float(output)).denominator > 2**26 for output in outputs)
    print(f"on {value}: {fine} of 20000")
