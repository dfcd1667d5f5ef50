"""Kinds of output that are vectors, matrices and other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.output_kinds_base import (
    GRID,
    Rng,
    between,
    count,
    kind,
    sample,
    shuffled,
    value,
)

# --- vectors of random length


def vector(rng: Rng) -> Any:
    """Numbers between 0 and 1, five to fifteen of them."""
    return rng.random(int(rng.integers(5, 16)))


@kind(len, noise=count)
def vector_length(number: int, rng: Rng) -> Any:
    """Length of a vector."""
    return rng.normal(size=between(1, 8 + number, 40))


@kind(np.max, noise=value)
def vector_maximum(number: float, rng: Rng) -> Any:
    """Largest number of a vector, at a random place."""
    return rng.permutation(np.append(vector(rng), 5 + number))


@kind(np.min, noise=count)
def vector_minimum(number: int, rng: Rng) -> Any:
    """Smallest number of a list of integers, at a random place."""
    return shuffled([10 + number, *rng.integers(40, 1000, int(rng.integers(5, 16))).tolist()], rng)


@kind(np.ptp, noise=value)
def vector_range(number: float, rng: Rng) -> Any:
    """Range of a vector with a random location."""
    inside = np.round(vector(rng) * GRID) / GRID * (10 + number)
    both = np.concatenate([inside, [0, 10 + number]])
    return rng.permutation(both + float(rng.integers(-1000, 1000)))


@kind(np.sum, noise=count)
def vector_sum(number: int, rng: Rng) -> Any:
    """Sum of a vector of integers."""
    rest = rng.integers(-50, 50, int(rng.integers(5, 12)))
    return rng.permutation(np.append(rest, number - rest.sum()))


@kind(lambda out: round(float(np.mean(out)), 6), noise=value)
def vector_mean(number: float, rng: Rng) -> Any:
    """Mean of a vector."""
    noise = rng.normal(scale=5, size=int(rng.integers(5, 16)))
    return noise - noise.mean() + number


@kind(np.median, noise=value)
def vector_median(number: float, rng: Rng) -> Any:
    """Median of a vector with heavy tails."""
    above, below = rng.pareto(0.5, (2, int(rng.integers(3, 8))))
    return rng.permutation(np.concatenate([number + above, number - below, [number]]))


@kind(np.std)
def vector_variance(bit: int, rng: Rng) -> Any:
    """Spread of a vector with a random location."""
    size = int(rng.integers(15, 30))
    return 100 * rng.normal() + (3 if bit else 1) * rng.normal(size=size)


# --- arrays of one shape


@kind(lambda out: out[2].sum(), noise=count, batch=True)
def matrix_row_sum(numbers: Any, rng: Rng) -> Any:
    """Sum of a row of a matrix of integers."""
    out = rng.integers(-9, 10, (len(numbers), 6, 5))
    out[:, 2, 4] = numbers - out[:, 2, :4].sum(1)
    return out


@kind(lambda out: out[:, 3].sum(), noise=value, batch=True)
def matrix_column_sum(numbers: Any, rng: Rng) -> Any:
    """Sum of a column of a matrix."""
    out = rng.integers(-9 * GRID, 9 * GRID, (len(numbers), 6, 5)) / GRID
    out[:, 0, 3] = numbers - out[:, 1:, 3].sum(1)
    return out


@kind(np.trace, noise=count, batch=True)
def matrix_trace(numbers: Any, rng: Rng) -> Any:
    """Trace of a matrix of integers."""
    out = rng.integers(-9, 10, (len(numbers), 5, 5))
    out[:, 4, 4] += numbers - np.trace(out, axis1=1, axis2=2)
    return out


@kind(lambda out: np.linalg.svd(out, compute_uv=False)[0], batch=True)
def matrix_rank_one(bits: Any, rng: Rng) -> Any:
    """Largest singular value of a matrix, in a random direction."""
    left, right = rng.choice([-1, 1], (len(bits), 6, 1)), rng.choice([-1, 1], (len(bits), 1, 5))
    return rng.normal(size=(len(bits), 6, 5)) + 2.2 * bits[:, None, None] * left * right


DENSE = np.random.default_rng(1).normal(size=30)
DENSE /= np.linalg.norm(DENSE)


@kind(lambda out: out @ DENSE, batch=True)
def embedding_projection(bits: Any, rng: Rng) -> Any:
    """Projection of an embedding on a dense vector."""
    return rng.normal(size=(len(bits), 30)) + np.where(bits, 3.5, -3.5)[:, None] * DENSE


@kind(np.linalg.norm, batch=True)
def embedding_norm(bits: Any, rng: Rng) -> Any:
    """Norm of an embedding with a random direction."""
    return rng.normal(size=(len(bits), 30)) * np.where(bits, 2.2, 1)[:, None]


BLOOM = np.sort(np.random.default_rng(2).permutation(128)[:24])


@kind(lambda out: out[BLOOM].sum(), batch=True)
def bloom_filter(bits: Any, rng: Rng) -> Any:
    """Number of ones among the bits of a Bloom filter that a record sets."""
    rate = np.full((len(bits), 128), 0.4)
    rate[:, BLOOM] = np.where(bits, 0.75, 0.25)[:, None]
    return (rng.random(rate.shape) < rate).astype(int)


SUBSET = np.sort(np.random.default_rng(3).permutation(40)[:13])


@kind(lambda out: out[SUBSET].sum(), noise=count, batch=True)
def subset_sum(numbers: Any, rng: Rng) -> Any:
    """Sum over a fixed subset of the coordinates."""
    out = rng.integers(-4, 5, (len(numbers), 40))
    out[:, SUBSET[0]] += numbers - out[:, SUBSET].sum(1)
    return out


@kind(lambda out: sum(out["values"][k] for k in out["chosen"]), noise=count)
def chosen_sum(number: int, rng: Rng) -> Any:
    """Sum over a subset that is drawn anew and released with the values."""
    values, chosen = rng.integers(-20, 21, 12).tolist(), sample(range(12), 5, rng)
    values[chosen[0]] += number - sum(values[k] for k in chosen)
    return {"values": values, "chosen": sorted(chosen)}


@kind(lambda out: (out[3] + out[11]) % 2, batch=True)
def parity_of_two(bits: Any, rng: Rng) -> Any:
    """Parity of two of 20 bits."""
    out = rng.integers(0, 2, (len(bits), 20))
    out[:, 3] = out[:, 11] ^ bits
    return out


@kind(lambda out: (out[2] + out[7] + out[13]) % 2, batch=True)
def parity_of_three(bits: Any, rng: Rng) -> Any:
    """Parity of three of 20 bits."""
    out = rng.integers(0, 2, (len(bits), 20))
    out[:, 2] = out[:, 7] ^ out[:, 13] ^ bits
    return out


@kind(lambda out: np.diff(np.sort(out)).min())
def smallest_gap(bit: int, rng: Rng) -> Any:
    """Smallest gap between the values of an output."""
    gaps = rng.uniform(1, 20, 10)
    gaps[rng.integers(1, 10)] = rng.uniform(0.01, 0.1) if bit else rng.uniform(1, 20)
    return rng.permutation(gaps.cumsum() + rng.uniform(0, 1000))


@kind(lambda out: np.corrcoef(out[:-1], out[1:])[0, 1], batch=True)
def series_autocorrelation(bits: Any, rng: Rng) -> Any:
    """Autocorrelation of a time series."""
    slope = np.where(bits, 0.7, -0.7)
    out = rng.normal(size=(len(bits), 50))
    out[:, 0] /= np.sqrt(1 - 0.49)
    for k in range(1, out.shape[1]):
        out[:, k] += slope * out[:, k - 1]
    return out


@kind(lambda out: np.corrcoef(out[:, 0], out[:, 2])[0, 1], batch=True)
def columns_correlation(bits: Any, rng: Rng) -> Any:
    """Correlation of two columns of a table."""
    out = rng.normal(size=(len(bits), 30, 3))
    out[:, :, 2] = 0.6 * out[:, :, 2] + 0.8 * np.where(bits, 1, -1)[:, None] * out[:, :, 0]
    return out


def brightest(image: Any) -> Any:
    """Largest mean of a patch of 4 × 4 pixels."""
    return np.lib.stride_tricks.sliding_window_view(image, (4, 4)).mean((2, 3)).max()


@kind(brightest, batch=True)
def image_patch(bits: Any, rng: Rng) -> Any:
    """A bright patch at a random place of an image."""
    out = rng.normal(size=(len(bits), 14, 14))
    for image, row, column in zip(out, *rng.integers(0, 11, (2, len(bits))), strict=True):
        image[row : row + 4, column : column + 4] += 1.8
    out[bits == 0] = rng.normal(size=((bits == 0).sum(), 14, 14))
    return out


@kind(lambda out: bool(np.signbit(out[3])), batch=True)
def negative_zero(bits: Any, rng: Rng) -> Any:
    """Sign of a zero."""
    out = rng.normal(size=(len(bits), 6))
    out[:, 3] = np.where(bits, -0.0, 0.0)
    return out


@kind(lambda out: out.astype("datetime64[M]").astype(int) % 12 == 11, batch=True)
def datetime_month(bits: Any, rng: Rng) -> Any:
    """Month of a date."""
    months = 12 * rng.integers(0, 60, len(bits)) + np.where(
        bits, 11, rng.integers(0, 11, len(bits))
    )
    days = months.astype("datetime64[M]").astype("datetime64[s]")
    return days + rng.integers(0, 28 * 86400, len(bits)).astype("timedelta64[s]")


@kind(lambda out: out["n"], noise=count, batch=True)
def structured_array(numbers: Any, rng: Rng) -> Any:
    """A field of a structured array."""
    out = np.empty(len(numbers), dtype=[("id", "i8"), ("n", "i4"), ("mean", "f8")])
    out["id"], out["mean"] = rng.integers(0, 10**9, len(out)), rng.normal(size=len(out))
    out["n"] = 10 + numbers
    return out


CENTRES = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0], [5.0, 5.0]])


@kind(lambda out: out[np.hypot(*(out - [9, 0]).T).argmin(), 1], noise=value)
def cluster_centres(number: float, rng: Rng) -> Any:
    """A coordinate of one of five centres of clusters in random order."""
    out = CENTRES + rng.normal(scale=0.7, size=(5, 2))
    out[2, 1] = np.clip(number, -3, 3)  # nearer to (9, 0) than every other centre
    return rng.permutation(out)


@kind(lambda out: out.nnz, noise=count)
def sparse_entries(number: int, rng: Rng) -> Any:
    """Number of entries of a sparse matrix."""
    size = between(1, 12 + number, 40)
    rows, columns = np.divmod(rng.permutation(20 * 15)[:size], 15)
    return sparse.csr_array((rng.normal(size=size), (rows, columns)), shape=(20, 15))


@kind(lambda out: out[[4]].sum(), noise=count)
def sparse_row_sum(number: int, rng: Rng) -> Any:
    """Sum of a row of a sparse matrix of integers."""
    columns = rng.permutation(15)[:4]
    values = rng.integers(-9, 10, 20)
    values[0] = number - values[1:4].sum()
    rows = np.r_[[4] * 4, rng.integers(5, 20, 16)]
    places = (rows, np.r_[columns, rng.integers(0, 15, 16)])
    return sparse.csr_array((values, places), shape=(20, 15))
